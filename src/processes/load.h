/* Which library of MPI a process uses, decided when it is first needed:

     AXLE_MPI                   the name of a shim, or the path of one
     a library that is loaded   the program, or what it runs in, is linked with MPI
     the launcher               mpirun tells its processes by variables of the environment whose it is
     else                       the first shim whose library can be loaded

   The shims (mpi/shim.h) lie beside libaxle. */
#ifndef AX_PROCESSES_LOAD_H
#define AX_PROCESSES_LOAD_H

#include "base/base.h"
#include "processes/mpi/shim.h"

/* Opens a shim, the first time; any thread. AX_ABSENT: Axle was built without MPI, and AXLE_MPI names no shim. AX_UNAVAILABLE:
   none can be loaded; the message has all that were tried, and why not. The same answer at each later call. */
AX_MUST_USE ax_status ax_mpi_load(const ax_mpi_shim **out);
/* Starts MPI, unless it is started, and sees to it that what was started here is finalized when the process exits. `leave` is
   called before MPI_Finalize is, by whomever. AX_UNAVAILABLE: threads may not call it in turn, or it cannot be started. */
AX_MUST_USE ax_status ax_mpi_start(const ax_mpi_shim *shim, void (*leave)(void));

/* MPI will not be finalized when the process exits: a process is gone that the library would wait for. */
void ax_mpi_leave_unfinished(void);

/* One line for people: the shim and the library, or why there is none. Static. */
const char *ax_mpi_library(void);

/* What a launcher says in the environment. processes 0: no launcher is seen. */
typedef struct ax_mpi_launcher {
  const char *name, *family; /* family: the shims that go with it, by the beginning of their names; "": any */
  const char *number;        /* the variable that has a process's number; "": none */
  uint32_t processes, here;  /* here: on this machine; 0: it does not say */
} ax_mpi_launcher;
ax_mpi_launcher ax_mpi_launcher_of(const char *(*variable)(const char *name));
ax_mpi_launcher ax_mpi_launcher_here(void); /* as this process's environment has it */
/* AX_UNAVAILABLE: MPI_COMM_WORLD has one process where a launcher has started several. They go with different libraries of MPI. */
AX_MUST_USE ax_status ax_mpi_check_world(uint32_t processes);

#endif
