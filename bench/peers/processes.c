/* Exchanges between processes, ours beside MPI's called by hand, by turns in one run: mpirun -n P bench_processes [MOST_BYTES [KIND]].
   One device in each process. Ours are steps of a loop in one run, and MPI's as many calls; least of several rounds. What has P parts
   has at least one element in each. bench/processes.py reads what this prints.

   If all devices were to begin a step with the same values, a compiler could leave the exchange out. So a psum's result, and what
   all_gather is given, are multiplied by a number that each process has for itself, on both sides. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spread.h"

typedef struct kind {
  const char *name;
  ax_function body; /* of a device: f32[n] to f32[n] */
  bool parted;      /* the operand or the result has a part for each process */
  void (*by_hand)(float *in, float *out, int n); /* may overwrite what it is given */
} kind;

static int processes, rank;

/* --- Ours --- */

static ax_value number(void) { return ax_convert_element_type(ax_axis_index("x"), AX_F32); }

static AX_BODY(sums) { out[0] = ax_mul(ax_psum(in[0], "x"), ax_mul(ax_add(number(), 1), 2.0 / (processes * (processes + 1)))); }
static AX_BODY(shifts) { out[0] = ax_pshift(in[0], "x", 1, true); }
static AX_BODY(turns) { out[0] = ax_all_to_all(in[0], "x", 0, 0, true); }
/* Of a part of the operand, so that operands and results have one shape. */
static AX_BODY(gathers) {
  const int64_t part = *(const int64_t *)context;
  ax_value mine = ax_mul(ax_slice_in_dim(in[0], 0, part, 1, 0), ax_sub(1, number()));
  out[0] = ax_all_gather(mine, "x", 0, true);
}

/* Each step does two, the second on what the first has given, so that both sides go between two arrays: what a loop carries has
   one place, where the result of a single exchange would have to be copied to. */
typedef struct twice {
  ax_function body;
  int64_t part;
} twice;
static AX_BODY(both) {
  twice *t = context;
  ax_value between;
  t->body(in, &between, &t->part);
  t->body(&between, out, &t->part);
}

/* --- By hand --- */

static void scale(float *x, int n, float by) {
  for (int i = 0; i < n; i++) x[i] *= by;
}

static void allreduce(float *in, float *out, int n) {
  MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  scale(out, n, (float)(rank + 1) * (2 / (float)(processes * (processes + 1))));
}
static void sendrecv(float *in, float *out, int n) {
  MPI_Sendrecv(in, n, MPI_FLOAT, (rank + 1) % processes, 0, out, n, MPI_FLOAT, (rank + processes - 1) % processes, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}
static void alltoall(float *in, float *out, int n) {
  MPI_Alltoall(in, n / processes, MPI_FLOAT, out, n / processes, MPI_FLOAT, MPI_COMM_WORLD);
}
static void allgather(float *in, float *out, int n) {
  scale(in, n / processes, (float)(1 - rank));
  MPI_Allgather(in, n / processes, MPI_FLOAT, out, n / processes, MPI_FLOAT, MPI_COMM_WORLD);
}

static const kind kinds[] = {{"psum", sums, false, allreduce},
                             {"all_gather", gathers, true, allgather},
                             {"all_to_all", turns, true, alltoall},
                             {"ppermute", shifts, false, sendrecv}};

/* --- Measuring --- */

static int64_t steps_of(int64_t bytes) { /* even */
  return (spread_steps(bytes < 65536 ? 1000 : bytes < 4194304 ? 50 : 16) + 1) / 2 * 2;
}

static double run_by_hand(const kind *k, float **in, float **out, int n, int64_t steps) {
  const double start = spread_seconds();
  for (int64_t s = 0; s < steps; s++) {
    k->by_hand(*in, *out, n);
    float *next = *in;
    *in = *out;
    *out = next;
  }
  return (spread_seconds() - start) / (double)steps;
}

static void keep_least(double *least, double seconds) {
  if (seconds < *least) *least = seconds;
}

static void compare(ax_runtime *runtime, const kind *k, int64_t bytes) {
  const int64_t n = k->parted && bytes / 4 < processes ? processes : bytes / 4, steps = steps_of(bytes);
  const int rounds = bytes < 4194304 ? 20 : 7; /* at most */
  twice t = {k->body, n / processes};
  const ax_type block = ax_array_type(AX_F32, AX_DIMS(n));
  float *in = malloc((size_t)n * 4), *out = calloc((size_t)n, 4);
  double ours = 1e9, theirs = 1e9;
  char what[64];
  for (int64_t i = 0; i < n; i++) in[i] = (float)((i + rank) % 7);
  spread s = spread_create(runtime, AX_CLOSURE(both, 1, 1, &t), steps / 2, &block, (const float *const *)&in);
  const double start = spread_seconds();
  for (int round = 0; spread_goes_on(round, rounds, start); round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    keep_least(&ours, spread_run(&s, steps / 2, NULL) / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    keep_least(&theirs, run_by_hand(k, &in, &out, (int)n, steps));
  }
  snprintf(what, sizeof what, "%s %lld", k->name, (long long)n * 4);
  spread_report(what, "Axle", ours, 0, NULL, 0);
  spread_report(what, "MPI", theirs, 0, NULL, 0);
  spread_release(&s);
  free(in), free(out);
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
    for (int64_t bytes = 4; bytes <= most && (argc <= 2 || strcmp(argv[2], kinds[k].name) == 0); bytes *= 16)
      compare(runtime, &kinds[k], bytes);
  ax_runtime_release(runtime);
  return MPI_Finalize();
}
