/* One MPI library's functions under the names of shim.h. This file is no part of libaxle (CMakeLists.txt makes the shims). */
#include "processes/mpi/shim.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(OMPI_HAVE_MPI_EXT) || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#include <mpi-ext.h>
#endif

#if defined(OMPI_MAJOR_VERSION)
#define FAMILY "openmpi"
#elif defined(MPICH_NUMVERSION)
#define FAMILY "mpich"
#else
#define FAMILY "abi"
#endif

struct ax_mpi_communicator {
  MPI_Comm world, node;
  MPI_Win shared; /* MPI_WIN_NULL: none */
};

_Static_assert(sizeof(MPI_Request) <= AX_MPI_REQUEST_BYTES, "a request of this library is wider than shim.h allows");

/* --- The library --- */

/* The first line, cut where the text has no room for more. */
static void copy_line(const char *whole, char text[AX_MPI_TEXT]) {
  size_t length = strcspn(whole, "\n");
  if (length >= AX_MPI_TEXT) length = AX_MPI_TEXT - 1;
  for (size_t i = 0; i < length; i++) text[i] = whole[i] == '\t' ? ' ' : whole[i];
  text[length] = '\0';
}

static void library(char text[AX_MPI_TEXT]) {
  char whole[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(whole, &length) != MPI_SUCCESS) length = 0;
  whole[length] = '\0';
  copy_line(whole, text);
}

static void describe(int code, char text[AX_MPI_TEXT]) {
  char whole[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, whole, &length) != MPI_SUCCESS) length = snprintf(whole, sizeof whole, "error %d", code);
  whole[length] = '\0';
  copy_line(whole, text);
}

static ax_mpi_threads threads_of(int level) {
  return level == MPI_THREAD_MULTIPLE ? AX_MPI_MULTIPLE
         : level == MPI_THREAD_SERIALIZED ? AX_MPI_SERIALIZED
         : level == MPI_THREAD_FUNNELED ? AX_MPI_FUNNELED
                                        : AX_MPI_SINGLE;
}

/* Asks for no more than Axle needs: more would make the library lock what the caller's lock guards already. */
static int start(bool *started, ax_mpi_threads *threads) {
  int there = 0, level = MPI_THREAD_SINGLE;
  int code = MPI_Initialized(&there);
  if (code != MPI_SUCCESS) return code;
  *started = !there;
  code = there ? MPI_Query_thread(&level) : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
  *threads = threads_of(level);
  if (code == MPI_SUCCESS && !there) code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return code;
}

static bool finished(void) {
  int there = 0;
  MPI_Finalized(&there);
  return there != 0;
}

static int finalize(void) { return MPI_Finalize(); }

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF before all else. */
static int call_leave(MPI_Comm self, int key, void *leave, void *extra) {
  (void)self, (void)key, (void)extra;
  void (*function)(void);
  memcpy(&function, &leave, sizeof function);
  function();
  return MPI_SUCCESS;
}

static int before_finalize(void (*leave)(void)) {
  int key;
  void *value;
  memcpy(&value, &leave, sizeof value);
  int code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_leave, &key, NULL);
  return code == MPI_SUCCESS ? MPI_Comm_set_attr(MPI_COMM_SELF, key, value) : code;
}

static void end_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* --- Communicators --- */

static int place_on_node(ax_mpi_communicator *c, ax_mpi_place *place) {
  int rank, size;
  int code = MPI_Comm_split_type(c->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c->node);
  if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(c->node, MPI_ERRORS_RETURN);
  if (code != MPI_SUCCESS) return code;
  MPI_Comm_rank(c->node, &rank);
  MPI_Comm_size(c->node, &size);
  place->node_rank = (uint32_t)rank;
  place->node_size = (uint32_t)size;
  return 0;
}

static int place_of(ax_mpi_communicator *c, ax_mpi_place *place) {
  const MPI_Comm world = c->world;
  int rank, size, there = 0, *greatest = NULL;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  int code = MPI_Comm_get_attr(world, MPI_TAG_UB, (void *)&greatest, &there);
  if (code != MPI_SUCCESS) return code;
  *place = (ax_mpi_place){.rank = (uint32_t)rank, .size = (uint32_t)size};
  place->greatest_tag = there ? (uint32_t)*greatest : 32767; /* what MPI promises at least */
  return place_on_node(c, place);
}

static int open_communicator(const void *communicator, ax_mpi_communicator **out, ax_mpi_place *place) {
  ax_mpi_communicator *c = malloc(sizeof *c);
  *out = NULL;
  if (c == NULL) return MPI_ERR_NO_MEM;
  c->node = MPI_COMM_NULL;
  c->shared = MPI_WIN_NULL;
  int code = MPI_Comm_dup(communicator != NULL ? *(const MPI_Comm *)communicator : MPI_COMM_WORLD, &c->world);
  if (code != MPI_SUCCESS) {
    free(c);
    return code;
  }
  code = MPI_Comm_set_errhandler(c->world, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS) code = place_of(c, place);
  if (code == MPI_SUCCESS) {
    *out = c;
    return 0;
  }
  MPI_Comm_free(&c->world);
  free(c);
  return code;
}

static int agree(ax_mpi_communicator *c, ax_mpi_standing *standing) {
  int rank, first;
  MPI_Comm_rank(c->world, &rank);
  standing->process = (uint32_t)rank;
  const int mine = standing->status != 0 ? rank : INT_MAX;
  const int code = MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, c->world);
  if (code != MPI_SUCCESS || first == INT_MAX) return code;
  return MPI_Bcast(standing, (int)sizeof *standing, MPI_BYTE, first, c->world);
}

static int gather_on_node(ax_mpi_communicator *c, const void *mine, size_t bytes, void *all) {
  return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, c->node);
}

static int find_parts(MPI_Win window, int count, void **parts) {
  int code = MPI_SUCCESS;
  for (int r = 0; r < count && code == MPI_SUCCESS; r++) {
    MPI_Aint bytes;
    int unit;
    code = MPI_Win_shared_query(window, r, &bytes, &unit, &parts[r]);
  }
  return code;
}

/* Loads and stores of the processes see each other within an epoch. */
static int share(ax_mpi_communicator *c, size_t bytes, void **parts) {
  void *mine;
  int count;
  MPI_Comm_size(c->node, &count);
  int code = MPI_Win_allocate_shared((MPI_Aint)bytes, 1, MPI_INFO_NULL, c->node, &mine, &c->shared);
  if (code != MPI_SUCCESS) {
    c->shared = MPI_WIN_NULL;
    return code;
  }
  MPI_Win_set_errhandler(c->shared, MPI_ERRORS_RETURN);
  code = MPI_Win_lock_all(MPI_MODE_NOCHECK, c->shared);
  return code == MPI_SUCCESS ? find_parts(c->shared, count, parts) : code;
}

static void close_shared(ax_mpi_communicator *c) {
  if (c->shared == MPI_WIN_NULL) return;
  MPI_Win_unlock_all(c->shared);
  MPI_Win_free(&c->shared);
}

static int close_communicator(ax_mpi_communicator *c) {
  close_shared(c);
  int of_node = MPI_Comm_free(&c->node), of_world = MPI_Comm_free(&c->world);
  free(c);
  return of_world != MPI_SUCCESS ? of_world : of_node;
}

static void abandon(ax_mpi_communicator *c) { free(c); }

/* --- Messages --- */

static int isend(ax_mpi_communicator *c, const void *data, size_t bytes, uint32_t to, uint32_t tag, void *request, bool *done) {
  int complete = 0;
  int code = MPI_Isend(data, (int)bytes, MPI_BYTE, (int)to, (int)tag, c->world, request);
  if (code == MPI_SUCCESS) code = MPI_Test(request, &complete, MPI_STATUS_IGNORE);
  *done = complete != 0;
  return code;
}

static int irecv(ax_mpi_communicator *c, void *data, size_t bytes, int from, uint32_t tag, void *request) {
  return MPI_Irecv(data, (int)bytes, MPI_BYTE, from == AX_MPI_ANY ? MPI_ANY_SOURCE : from, (int)tag, c->world, request);
}

#if defined(MPIX_ERR_PROC_FAILED_PENDING)
#define PENDING MPIX_ERR_PROC_FAILED_PENDING
#elif defined(MPI_ERR_PROC_FAILED_PENDING)
#define PENDING MPI_ERR_PROC_FAILED_PENDING
#endif

/* A receive from any process goes on when one is gone, with an error until that is acknowledged (ULFM). If its message comes before
   that, Open MPI gives the message and the error, and keeps the request. */
static int accept_pending(MPI_Request *request, int code, int complete) {
#ifdef PENDING
  int class = MPI_SUCCESS;
  if (code == MPI_SUCCESS || !complete || MPI_Error_class(code, &class) != MPI_SUCCESS || class != PENDING) return code;
  if (*request != MPI_REQUEST_NULL) MPI_Request_free(request);
  return MPI_SUCCESS;
#else
  (void)request, (void)complete;
  return code;
#endif
}

static int test(void *request, bool *done, ax_mpi_arrival *arrival) {
  MPI_Status status;
  int complete = 0, bytes = 0;
  int code = accept_pending(request, MPI_Test(request, &complete, &status), complete);
  *done = complete != 0;
  if (code != MPI_SUCCESS || !complete) return code;
  code = MPI_Get_count(&status, MPI_BYTE, &bytes);
  *arrival = (ax_mpi_arrival){.from = status.MPI_SOURCE, .bytes = (size_t)bytes};
  return code;
}

enum { most_at_once = 64 };

static int test_some(uint32_t count, void *requests, uint32_t *complete, int *indices, int *errors) {
  MPI_Status statuses[most_at_once];
  *complete = 0;
  for (uint32_t first = 0; first < count; first += most_at_once) {
    const uint32_t these = count - first < most_at_once ? count - first : most_at_once;
    int found = 0;
    int code = MPI_Testsome((int)these, (MPI_Request *)requests + first, &found, indices + *complete, statuses);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
    if (found == MPI_UNDEFINED) found = 0; /* none of them is a request any more */
    for (int i = 0; i < found; i++) {
      indices[*complete] += (int)first;
      errors[*complete] = code == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : 0;
      ++*complete;
    }
  }
  return 0;
}

static int cancel(void *request) {
  int code = MPI_Cancel(request);
  return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

static void drop(void *request) { MPI_Request_free(request); }

/* --- Files --- */

struct ax_mpi_file {
  MPI_File file;
};

/* A file's errors are returned, unless the user has changed that for all files. */
static int open_file(ax_mpi_communicator *c, const char *path, ax_mpi_file **out) {
  ax_mpi_file *f = malloc(sizeof *f); /* without it this process opens the file with the others all the same */
  MPI_File file;
  *out = NULL;
  int code = MPI_File_open(c->world, path, MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  if (code == MPI_SUCCESS && f != NULL) {
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    f->file = file;
    *out = f;
    return 0;
  }
  free(f);
  return code != MPI_SUCCESS ? code : MPI_ERR_NO_MEM;
}

static int write_file(ax_mpi_file *f, uint64_t place, const void *data, size_t bytes) {
  MPI_Status status;
  int written = 0;
  int code = MPI_File_write_at_all(f->file, (MPI_Offset)place, data, (int)bytes, MPI_BYTE, &status);
  if (code == MPI_SUCCESS) code = MPI_Get_count(&status, MPI_BYTE, &written);
  return code == MPI_SUCCESS && (size_t)written != bytes ? MPI_ERR_NO_SPACE : code;
}

static int close_file(ax_mpi_file *f) {
  int code = MPI_File_close(&f->file);
  free(f);
  return code;
}

/* --- Processes that are gone --- */

#if defined(OMPI_HAVE_MPI_EXT_FTMPI) || defined(MPICH_NUMVERSION)
static int first_of(MPI_Comm world, MPI_Group gone) {
  MPI_Group all;
  int size = 0, first = 0, rank = -1;
  MPI_Group_size(gone, &size);
  if (size == 0) return -1;
  MPI_Comm_group(world, &all);
  MPI_Group_translate_ranks(gone, 1, &first, all, &rank);
  MPI_Group_free(&all);
  return rank == MPI_UNDEFINED ? -1 : rank;
}

static int lost(ax_mpi_communicator *c) {
  MPI_Group gone;
  if (MPIX_Comm_failure_ack(c->world) != MPI_SUCCESS || MPIX_Comm_failure_get_acked(c->world, &gone) != MPI_SUCCESS) return -1;
  int rank = first_of(c->world, gone);
  if (gone != MPI_GROUP_EMPTY) MPI_Group_free(&gone);
  return rank;
}
#else
static int lost(ax_mpi_communicator *c) {
  (void)c;
  return -1;
}
#endif

__attribute__((visibility("default"))) const ax_mpi_shim axle_mpi = {
    .version = AX_MPI_SHIM_VERSION,
    .request_bytes = sizeof(MPI_Request),
    .family = FAMILY,
    .init = (void (*)(void))MPI_Init,
    .library = library,
    .describe = describe,
    .start = start,
    .finished = finished,
    .finalize = finalize,
    .before_finalize = before_finalize,
    .open = open_communicator,
    .agree = agree,
    .gather_on_node = gather_on_node,
    .share = share,
    .close = close_communicator,
    .abandon = abandon,
    .isend = isend,
    .irecv = irecv,
    .test = test,
    .test_some = test_some,
    .cancel = cancel,
    .drop = drop,
    .open_file = open_file,
    .write_file = write_file,
    .close_file = close_file,
    .lost = lost,
    .abort = end_all,
};
