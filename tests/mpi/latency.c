/* Under mpirun, two processes: how long a message takes, by the transport and by MPI called directly through the same shim, half a
   round trip each. No part of the suite:
     AXLE_MPI=mpich4 mpirun.mpich -n 2 build/tests/mpi_latency
   The least of 40 series, because other programs only add to it. */
#include "world.h"

typedef struct pair {
  world w;
  const ax_mpi_shim *shim;
  ax_mpi_communicator *communicator; /* for MPI called directly */
  char *from, *into;
  size_t bytes;
  _Atomic uint32_t came, sent;
} pair;

static void take(void *context, ax_delivery *delivery) {
  pair *p = context;
  if (delivery->envelope.bytes > 0 && delivery->payload == NULL) {
    CHECK(p->w.transport->functions->fetch(p->w.transport, delivery, p->into, count_up, &p->came) == AX_OK);
  } else {
    memcpy(p->into, delivery->payload, delivery->envelope.bytes);
    count_up(&p->came);
  }
  ax_delivery_free(delivery);
}

static void wait_for(pair *p, const _Atomic uint32_t *counter, uint32_t wanted) {
  for (bool any; *counter < wanted;) CHECK(p->w.transport->functions->poll(p->w.transport, &any) == AX_OK);
}

static void send_one(pair *p) {
  const ax_envelope envelope = {.run = 1, .bytes = p->bytes};
  CHECK(p->w.transport->functions->send(p->w.transport, 1 - p->w.me, &envelope, p->from, count_up, &p->sent) == AX_OK);
}

static double by_transport(pair *p, uint32_t rounds) {
  const double start = ax_seconds();
  p->came = p->sent = 0;
  for (uint32_t i = 1; i <= rounds; i++) {
    if (p->w.me == 0) send_one(p);
    wait_for(p, &p->came, i);
    if (p->w.me == 1) send_one(p);
    wait_for(p, &p->sent, i);
  }
  return (ax_seconds() - start) / rounds / 2;
}

static void finish(pair *p, void *request, bool done) {
  for (ax_mpi_arrival arrival; !done;) CHECK(p->shim->test(request, &done, &arrival) == 0);
}

static double by_mpi(pair *p, uint32_t rounds) {
  _Alignas(8) char request[AX_MPI_REQUEST_BYTES];
  const double start = ax_seconds();
  for (uint32_t turn = 0; turn < 2 * rounds; turn++) {
    bool done = false;
    if (turn % 2 == p->w.me) CHECK(p->shim->isend(p->communicator, p->from, p->bytes, 1 - p->w.me, 1, request, &done) == 0);
    else CHECK(p->shim->irecv(p->communicator, p->into, p->bytes, (int)(1 - p->w.me), 1, request) == 0);
    finish(p, request, done);
  }
  return (ax_seconds() - start) / rounds / 2;
}

static void measure(pair *p, size_t bytes) {
  const uint32_t rounds = bytes <= 8192 ? 2000 : (uint32_t)((32 << 20) / bytes) + 1;
  double ours = 1e9, theirs = 1e9;
  p->bytes = bytes;
  for (int series = 0; series < 40; series++) {
    const double a = by_transport(p, rounds), b = by_mpi(p, rounds);
    ours = a < ours ? a : ours;
    theirs = b < theirs ? b : theirs;
  }
  if (p->w.me == 0) printf("%9zu B %11.2f us %11.2f us %8.2f\n", bytes, ours * 1e6, theirs * 1e6, theirs / ours);
}

static double idle_poll(pair *p) {
  enum { polls = 100000 };
  const double start = ax_seconds();
  bool any;
  for (int i = 0; i < polls; i++) CHECK(p->w.transport->functions->poll(p->w.transport, &any) == AX_OK);
  return (ax_seconds() - start) / polls;
}

int main(void) {
  static const size_t sizes[] = {4, 1024, 4096, 8192, 8193, 16384, 65536, 1 << 20, 16 << 20, 64 << 20};
  static pair p;
  ax_mpi_place place;
  open_world(&p.w);
  CHECK(p.w.count == 2 && ax_mpi_load(&p.shim) == AX_OK && p.shim->open(NULL, &p.communicator, &place) == 0);
  p.w.transport->deliver = take;
  p.w.transport->deliver_context = &p;
  p.from = calloc(1, 64 << 20);
  p.into = calloc(1, 64 << 20);
  if (p.w.me == 0) printf("%s\n    bytes     transport            MPI    ratio\n", ax_mpi_library());
  for (size_t i = 0; i < AX_COUNT(sizes); i++) measure(&p, sizes[i]);
  const double idle = idle_poll(&p);
  if (p.w.me == 0) printf("a poll for nothing: %.0f ns\n", idle * 1e9);
  p.shim->close(p.communicator);
  close_world(&p.w);
  free(p.from);
  free(p.into);
  return 0;
}
