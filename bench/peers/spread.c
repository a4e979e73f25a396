#include "spread.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

double spread_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool spread_goes_on(int rounds, int most, double start) {
  int more = rounds < most && (rounds < 3 || spread_seconds() - start < 2);
  MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return more;
}

int64_t spread_steps(int64_t steps) {
  int processes;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  return processes <= sysconf(_SC_NPROCESSORS_ONLN) ? steps : (steps + 19) / 20;
}

/* --- Running --- */

typedef struct loop {
  ax_fn step;
  int64_t steps;
  ax_mesh mesh;
} loop;

static void numbered_step(const ax_value *in, ax_value *out, void *context) { /* the loop's number is not used */
  const ax_fn *step = &((loop *)context)->step;
  step->function(in + 1, out, step->context);
}

static void all_steps(const ax_value *in, ax_value *out, void *context) {
  const loop *l = context;
  const uint32_t n = l->step.in_count;
  (ax_fori_loop)(AX_X(0), AX_X(l->steps), AX_CLOSURE(numbered_step, n + 1, n, context), n, in, n, out);
}

static void on_devices(const ax_value *in, ax_value *out, void *context) {
  const loop *l = context;
  const uint32_t n = l->step.in_count;
  (ax_shard_map_unchecked)(&l->mesh, n == 1 ? "x -> x" : "x; x -> x; x", AX_CLOSURE(all_steps, n, n, context), n, in, n, out);
}

spread spread_create(ax_runtime *runtime, ax_fn step, int64_t steps, const ax_type *block, const float *const *data) {
  const uint32_t processes = ax_process_count(runtime);
  spread s = {.count = step.in_count};
  loop l = {.step = step, .steps = steps};
  ax_type whole = *block, types[spread_most];
  char mesh[32];
  whole.dims[0] *= processes;
  snprintf(mesh, sizeof mesh, "x=%u", processes);
  ax_must(ax_mesh_parse(mesh, &l.mesh));
  const size_t bytes = (size_t)ax_type_elems(block) * sizeof(float);
  for (uint32_t i = 0; i < s.count; i++) {
    types[i] = whole;
    ax_must((ax_array_from_local)(runtime, &l.mesh, "x", &whole, AX_F32, data[i], bytes, &s.in[i]));
  }
  ax_must((ax_jit)(runtime, AX_CLOSURE(on_devices, s.count, s.count, &l), s.count, types, NULL, &s.executable));
  return s;
}

double spread_run(const spread *s, int64_t steps, float *const *results) {
  ax_array *out[spread_most];
  const double start = spread_seconds();
  ax_must(ax_run(s->executable, AX_LIST(s->count, s->in), AX_LIST(s->count, out)));
  const double took = (spread_seconds() - start) / (double)steps;
  for (uint32_t i = 0; i < s->count; i++) {
    ax_shard mine;
    if (results != NULL) {
      ax_must(ax_array_addressable_shard(out[i], 0, &mine));
      memcpy(results[i], mine.data, mine.bytes);
    }
    ax_array_release(out[i]);
  }
  return took;
}

void spread_release(spread *s) {
  for (uint32_t i = 0; i < s->count; i++) ax_array_release(s->in[i]);
  ax_executable_release(s->executable);
}

/* --- Reporting --- */

/* Each array's, weighed by its place, so that two that were swapped are seen. */
static uint64_t digest_here(uint32_t count, float *const *arrays, int64_t elems) {
  uint64_t sum = 0;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (uint32_t i = 0; i < count; i++)
    sum += (uint64_t)crc32(0, (const void *)arrays[i], (uInt)(elems * (int64_t)sizeof(float))) * ((uint64_t)rank * count + i + 1);
  return sum;
}

void spread_report(const char *what, const char *side, double seconds, uint32_t count, float *const *arrays, int64_t elems) {
  uint64_t here = digest_here(count, arrays, elems), digest;
  double longest;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(&here, &digest, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\t%s\t%.9g\t%llu\n", what, side, longest, (unsigned long long)digest);
  fflush(stdout);
}
