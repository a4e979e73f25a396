/* Under mpirun: programs that call MPI themselves.
     caller half        MPI_THREAD_MULTIPLE; a transport over half of the processes, and MPI_Finalize by the caller
     caller finalize    process 0 calls MPI_Finalize with its transport open: the others are told
     caller funneled    MPI_THREAD_FUNNELED is refused, and so is MPI_Init */
#include <mpi.h>

#include "world.h"

static void start(int wanted) {
  int level;
  CHECK(MPI_Init_thread(NULL, NULL, wanted, &level) == MPI_SUCCESS && level == wanted);
}

static void half(void) {
  int rank, size;
  MPI_Comm mine;
  world w;
  start(MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine) == MPI_SUCCESS);
  open_world_over(&w, &mine);
  MPI_Comm_free(&mine);
  CHECK(w.me == (uint32_t)rank / 2 && w.count == (uint32_t)(size + 1 - rank % 2) / 2);
  const uint32_t to = (w.me + 1) % w.count, from = (w.me + w.count - 1) % w.count;
  CHECK(w.transport->functions->send(w.transport, to, &(ax_envelope){.words = {(uint64_t)rank}}, NULL, NULL, NULL) == AX_OK);
  ax_delivery *one = next_delivery(&w);
  CHECK(one->from == from && one->envelope.words[0] == 2 * from + (uint64_t)rank % 2);
  ax_delivery_free(one);
  close_world(&w);
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* the caller's MPI is as it was */
  CHECK(sum == size * (size - 1) / 2);
  MPI_Finalize();
}

static void finalize(void) {
  world w;
  bool any;
  start(MPI_THREAD_SERIALIZED);
  open_world(&w);
  if (w.me != 0) {
    ax_status status = AX_OK;
    for (; status == AX_OK; sched_yield()) status = w.transport->functions->poll(w.transport, &any);
    CHECK(status == AX_UNAVAILABLE && strstr(ax_message(), "process 0 is gone") != NULL);
  } else {
    MPI_Finalize();
    CHECK(w.transport->functions->poll(w.transport, &any) == AX_UNAVAILABLE);
    CHECK(strstr(ax_message(), "MPI_Finalize") != NULL);
  }
  const bool first = w.me == 0;
  close_world(&w);
  if (!first) MPI_Finalize();
  ax_transport *none;
  CHECK(ax_mpi_create(NULL, &none) == AX_UNAVAILABLE && none == NULL);
  CHECK(strstr(ax_message(), "finalized") != NULL);
}

static void funneled(void) {
  ax_transport *none;
  start(MPI_THREAD_FUNNELED);
  CHECK(ax_mpi_create(NULL, &none) == AX_UNAVAILABLE && none == NULL);
  CHECK(strstr(ax_message(), "MPI_THREAD_FUNNELED") != NULL && strstr(ax_message(), "MPI_THREAD_SERIALIZED") != NULL);
  MPI_Finalize();
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  const char *what = arguments[1];
  if (strcmp(what, "half") == 0) half();
  else if (strcmp(what, "finalize") == 0) finalize();
  else if (strcmp(what, "funneled") == 0) funneled();
  else CHECK(!"such a case");
  return 0;
}
