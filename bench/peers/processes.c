/* Exchanges between processes, ours beside MPI's called by hand, by turns in one run: mpirun -n P bench_processes [MOST_BYTES].
   One device in each process. Ours are steps of a loop in one run, and MPI's as many calls; least of several rounds. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"

enum { rounds = 7 };

typedef struct kind {
  const char *name;
  ax_function body; /* of a device: f32[n] to f32[n] */
  void (*by_hand)(const float *in, float *out, int n, int processes, int rank);
} kind;

static int processes, rank;

/* --- Ours --- */

static void sums(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  out[0] = ax_mul(ax_pvary(ax_psum(in[0], "x"), "x"), 0.5);
}
static void shifts(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  out[0] = ax_pshift(in[0], "x", 1, true);
}
static void turns(const ax_value *in, ax_value *out, void *c) {
  (void)c;
  out[0] = ax_all_to_all(in[0], "x", 0, 0, true);
}
/* Of a part of the operand, so that operands and results have one shape. */
static void gathers(const ax_value *in, ax_value *out, void *c) {
  const int64_t n = *(const int64_t *)c;
  out[0] = ax_all_gather(ax_slice(in[0], AX_DIMS(0), AX_DIMS(n), AX_DIMS(1)), "x", 0, true);
}

typedef struct repeated {
  ax_function body;
  int64_t steps, part;
} repeated;

static void one_step(const ax_value *in, ax_value *out, void *context) {
  repeated *r = context;
  r->body(in + 1, out, &r->part);
}

static void all_steps(const ax_value *in, ax_value *out, void *context) {
  const repeated *r = context;
  ax_fori_loop(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), (double)r->steps), AX_CLOSURE(one_step, 2, 1, context),
               AX_VALUES(in[0]), out);
}

static void on_devices(const ax_value *in, ax_value *out, void *context) {
  char text[32];
  ax_mesh mesh;
  snprintf(text, sizeof text, "x=%d", processes);
  ax_must(ax_mesh_parse(text, &mesh));
  ax_shard_map_unchecked(&mesh, "x -> x", AX_CLOSURE(all_steps, 1, 1, context), in, out);
}

/* --- By hand --- */

static void allreduce(const float *in, float *out, int n, int p, int r) {
  (void)p, (void)r;
  MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void sendrecv(const float *in, float *out, int n, int p, int r) {
  MPI_Sendrecv(in, n, MPI_FLOAT, (r + 1) % p, 0, out, n, MPI_FLOAT, (r + p - 1) % p, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void alltoall(const float *in, float *out, int n, int p, int r) {
  (void)r;
  MPI_Alltoall(in, n / p, MPI_FLOAT, out, n / p, MPI_FLOAT, MPI_COMM_WORLD);
}
static void allgather(const float *in, float *out, int n, int p, int r) {
  (void)r;
  MPI_Allgather(in, n / p, MPI_FLOAT, out, n / p, MPI_FLOAT, MPI_COMM_WORLD);
}

static const kind kinds[] = {
    {"psum", sums, allreduce}, {"ppermute", shifts, sendrecv}, {"all_gather", gathers, allgather}, {"all_to_all", turns, alltoall}};

/* --- Measuring --- */

static void compare(ax_runtime *runtime, const kind *k, int64_t bytes) {
  const int64_t n = bytes / 4 < processes ? processes : bytes / 4, steps = bytes < 65536 ? 1000 : bytes < 4194304 ? 50 : 4;
  repeated r = {k->body, steps, n / processes};
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(n * processes));
  ax_executable *executable;
  float *data = calloc((size_t)(n * processes), sizeof data[0]), *in = malloc((size_t)n * 4), *out = malloc((size_t)n * 4);
  ax_array *array, *result;
  double ours = 1e9, theirs = 1e9;
  for (int64_t i = 0; i < n * processes; i++) data[i] = (float)(i % 7);
  memcpy(in, data, (size_t)n * 4);
  ax_must(ax_jit(runtime, AX_CLOSURE(on_devices, 1, 1, &r), &type, NULL, &executable));
  ax_must((ax_executable_put)(executable, 0, AX_F32, data, (size_t)(n * processes) * 4, &array));
  for (int round = 0; round < rounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    ax_must(ax_run(executable, AX_LIST(1, &array), AX_LIST(1, &result)));
    double took = (MPI_Wtime() - begin) / (double)steps;
    if (took < ours) ours = took;
    ax_array_release(result);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int64_t s = 0; s < steps; s++) {
      k->by_hand(in, out, (int)n, processes, rank);
      float *next = in;
      in = out;
      out = next;
    }
    took = (MPI_Wtime() - begin) / (double)steps;
    if (took < theirs) theirs = took;
  }
  if (rank == 0)
    printf("%-10s %10lld bytes  %10.2f us  MPI %10.2f us  %.2f\n", k->name, (long long)n * 4, ours * 1e6, theirs * 1e6,
           theirs / ours);
  fflush(stdout);
  ax_array_release(array);
  ax_executable_release(executable);
  free(data), free(in), free(out);
}

int main(int argc, char **argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const int64_t most = argc > 1 ? atoll(argv[1]) : 64 << 20;
  ax_runtime *runtime;
  ax_must(ax_runtime_create(&(ax_runtime_options){.processes = AX_MPI, .workers = 1}, &runtime));
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    for (int64_t bytes = 4; bytes <= most; bytes *= 16) compare(runtime, &kinds[k], bytes);
  ax_runtime_release(runtime);
  MPI_Finalize();
  return 0;
}
