/* What Axle calls of an MPI library, without a type of MPI. Each library has types of its own (a communicator is a number in one, a
   pointer in another), so shim.c is compiled once for each library that is found when Axle is built. The result is a shared object,
   libaxle_mpi_NAME.so, which exports one symbol: `axle_mpi`, a struct of functions. The loader (load.h) opens one of them.

   Every function returns 0, or an error code of the library, of which `describe` makes a text. Only one thread at a time may call.
   Lengths are at most AX_MPI_PIECE bytes. */
#ifndef AX_PROCESSES_MPI_SHIM_H
#define AX_PROCESSES_MPI_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AX_MPI_SHIM_VERSION = 4, AX_MPI_ANY = -1, AX_MPI_PIECE = 1 << 30, AX_MPI_TEXT = 512, AX_MPI_REQUEST_BYTES = 8 };

/* From the weakest on, as MPI_THREAD_SINGLE .. MPI_THREAD_MULTIPLE. */
typedef enum ax_mpi_threads { AX_MPI_SINGLE, AX_MPI_FUNNELED, AX_MPI_SERIALIZED, AX_MPI_MULTIPLE } ax_mpi_threads;

typedef struct ax_mpi_communicator ax_mpi_communicator;
typedef struct ax_mpi_file ax_mpi_file;

typedef struct ax_mpi_place {
  uint32_t rank, size;           /* in the communicator */
  uint32_t node_rank, node_size; /* among the processes that share memory with this one */
  uint32_t greatest_tag;
} ax_mpi_place;

/* How a process stands; status 0: well. */
typedef struct ax_mpi_standing {
  int status;
  uint32_t process; /* its rank; set by `agree` */
  char text[AX_MPI_TEXT];
} ax_mpi_standing;

typedef struct ax_mpi_arrival {
  int from;
  int error; /* 0: none */
  size_t bytes;
} ax_mpi_arrival;

/* Requests lie in memory of the caller, request_bytes apart where there are several: test_some takes them as one array. */
typedef struct ax_mpi_shim {
  uint32_t version, request_bytes; /* at most AX_MPI_REQUEST_BYTES */
  const char *family;              /* whose types it was compiled with: mpich, openmpi, or abi (the standard ABI of MPI 5) */
  void (*init)(void);              /* MPI_Init: two libraries in one process are told apart by its address, and it is not called */

  void (*library)(char text[AX_MPI_TEXT]); /* one line: name and version; at any time */
  void (*describe)(int code, char text[AX_MPI_TEXT]);

  /* Starts MPI if it is not started. *started: by this call. *threads: what the library allows. */
  int (*start)(bool *started, ax_mpi_threads *threads);
  bool (*finished)(void); /* MPI_Finalize was called */
  int (*finalize)(void);
  /* MPI_Finalize, whoever calls it, calls `leave` first, while MPI works still. */
  int (*before_finalize)(void (*leave)(void));

  /* Duplicates the communicator that an MPI_Comm lies at, or MPI_COMM_WORLD (NULL). Its errors are returned. Collective. */
  int (*open)(const void *communicator, ax_mpi_communicator **out, ax_mpi_place *place);
  /* *standing: how this process stands. If some do not stand well, it gets how the first of them stands. Collective. */
  int (*agree)(ax_mpi_communicator *communicator, ax_mpi_standing *standing);
  /* Collects what the processes of this node give, in the order of their ranks on it. Collective on the node. */
  int (*gather_on_node)(ax_mpi_communicator *communicator, const void *mine, size_t bytes, void *all);
  /* Memory that the processes of this node share until `close`: parts[r] gets where the part of the process of rank r on it lies, which
     has the bytes that this one asked for. Collective on the node; at most once for a communicator. */
  int (*share)(ax_mpi_communicator *communicator, size_t bytes, void **parts);
  int (*close)(ax_mpi_communicator *communicator); /* collective */
  void (*abandon)(ax_mpi_communicator *communicator); /* forgets it without a word to other processes, one of which is gone */

  /* *done: the request is complete already, and there is none to test. */
  int (*isend)(ax_mpi_communicator *communicator, const void *data, size_t bytes, uint32_t to, uint32_t tag, void *request,
               bool *done);
  /* from: a rank, or AX_MPI_ANY. */
  int (*irecv)(ax_mpi_communicator *communicator, void *data, size_t bytes, int from, uint32_t tag, void *request);
  int (*test)(void *request, bool *done, ax_mpi_arrival *arrival);
  /* *complete: how many are; their indices and errors. Requests that are complete are no requests any more, and are skipped when
     they are given again. */
  int (*test_some)(uint32_t count, void *requests, uint32_t *complete, int *indices, int *errors);
  int (*cancel)(void *request); /* of a receive; waits until it is cancelled or complete */
  void (*drop)(void *request);  /* of a send to a process that is gone */

  /* Writes one file together (MPI-IO). open_file: of a file that is there. write_file: each process its own bytes, or none, at its
     own place. All are collective, and wait for the other processes. */
  int (*open_file)(ax_mpi_communicator *communicator, const char *path, ax_mpi_file **out);
  int (*write_file)(ax_mpi_file *file, uint64_t place, const void *data, size_t bytes);
  int (*close_file)(ax_mpi_file *file);

  /* A process that the library knows to be gone; -1: none. */
  int (*lost)(ax_mpi_communicator *communicator);
  void (*abort)(int code);
} ax_mpi_shim;

#endif
