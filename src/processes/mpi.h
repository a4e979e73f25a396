/* The transport by MPI (transport.h). The library of MPI is found when it is first needed (load.h).

   One lock for the whole process guards MPI, so a library that allows one thread at a time (MPI_THREAD_SERIALIZED) is enough.
   A send that finds it taken leaves its message in a queue, which the holder of the lock empties. A poll that finds it taken moves
   what goes through shared memory all the same: the holder may be in MPI for long, making another transport.

   What goes to a process of the same node goes through node.h: messages of the same types, in rings. To others:

     tag 0      envelopes with their short payloads, and what transports tell each other:
                  rest       the next 4 KiB of the short payload whose envelope came before
                  fetch      post the payload of a ticket to my tag t
                  forgotten  there is no such payload any more
                  read       I have read the payload of a ticket where it lies
                  end        the last message from me: I am in destroy
                  left       the last message from me: my process calls MPI_Finalize with this transport still open
     tag t > 0  the long payload for fetch t of the receiver, in pieces of 1 GiB

   Envelopes are received into a ring of buffers, posted in order for any source. MPI matches messages of one sender with receives
   in the order in which they were posted, so reading the buffers in turn keeps the order. */
#ifndef AX_PROCESSES_MPI_H
#define AX_PROCESSES_MPI_H

#include "base/base.h"
#include "processes/mpi/shim.h"
#include "processes/transport.h"

/* A transport between the processes of a communicator: a pointer to the caller's MPI_Comm, which is duplicated, or NULL for
   MPI_COMM_WORLD. Starts MPI if the caller has not; what Axle started is finalized when the process exits. Collective.
   AX_UNAVAILABLE: no library of MPI can be loaded, or it allows the main thread only (start it with MPI_THREAD_SERIALIZED or
   MPI_THREAD_MULTIPLE), or MPI reports an error. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_mpi_create(const void *communicator, ax_transport **out);
/* The same over a given shim, which has been started. */
AX_MUST_USE ax_status ax_mpi_create_over(const ax_mpi_shim *shim, const void *communicator, ax_transport **out);

/* Where a process is among those of a transport, and among those on its node. */
const ax_mpi_place *ax_mpi_place_of(const ax_transport *transport);

#endif
