/* Measures how fast this machine reads, writes and computes. The programs for it do little else: a sum reads memory, a negation
   reads and writes it, a product of matrices computes. */
#include <math.h>
#include <time.h>

#include "axle/ops.h"
#include "cli.h"

static AX_BODY(total) { out[0] = ax_reduce_sum(in[0], AX_ALL_DIMS, false); }
static AX_BODY(negated) { out[0] = ax_neg(in[0]); }
static AX_BODY(multiplied) { out[0] = ax_matmul(in[0], in[1]); }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time of the shortest run, in seconds. There are at least three runs, and more until 50 ms have passed. The first is not
   counted, because memory and caches are cold in it. */
static ax_status least_time(ax_executable *e, uint32_t count, ax_array *const *in, double *out) {
  const double enough = 0.05, begin = now();
  *out = HUGE_VAL;
  for (int i = 0; i < 3 || (now() - begin < enough && i < 1000); i++) {
    ax_array *result;
    double before = now();
    AX_TRY(ax_run(e, AX_LIST(count, in), &result));
    AX_TRY(ax_array_wait(result));
    double took = now() - before;
    ax_array_release(result);
    if (i > 0 && took < *out) *out = took;
  }
  return AX_OK;
}

static ax_status time_program(ax_runtime *runtime, ax_function body, uint32_t count, const ax_type *type, double *out) {
  ax_type types[2] = {*type, *type};
  ax_array *in[2] = {NULL};
  ax_program *program = NULL;
  ax_executable *e = NULL;
  const ax_mesh none = {0};
  void *zeros = ax_calloc((size_t)ax_type_elems(type), sizeof(float));
  ax_status status = zeros != NULL ? AX_OK : ax_out_of_memory(0);
  if (status == AX_OK) status = ax_trace(AX_CLOSURE(body, count, 1, NULL), types, &program);
  if (status == AX_OK) status = ax_compile(runtime, program, NULL, &e);
  for (uint32_t i = 0; i < count && status == AX_OK; i++) status = ax_device_put_data(runtime, &none, "", type, zeros, &in[i]);
  if (status == AX_OK) status = least_time(e, count, in, out);
  for (uint32_t i = 0; i < count; i++) ax_array_release(in[i]);
  ax_executable_release(e);
  ax_program_release(program);
  ax_free(zeros);
  return status;
}

/* Sets *read and *write to bytes a second, from two programs that touch `bytes` bytes. A sum reads all of them; a negation reads
   half of them and writes the other half. The time to write is what the negation takes beyond its reads, but at least half of the
   time to read as much: a smaller difference is an error of the measurement. */
static ax_status measure_memory(ax_runtime *runtime, int64_t bytes, double *read, double *write) {
  const ax_type all = ax_array_type(AX_F32, AX_DIMS(bytes / 4)), half = ax_array_type(AX_F32, AX_DIMS(bytes / 8));
  double reading, copying;
  AX_TRY(time_program(runtime, total, 1, &all, &reading));
  AX_TRY(time_program(runtime, negated, 1, &half, &copying));
  const double each = reading / (double)bytes, left = copying - each * (double)bytes / 2;
  *read = 1 / each;
  *write = (double)bytes / 2 / (left > each * (double)bytes / 4 ? left : each * (double)bytes / 4);
  return AX_OK;
}

ax_status measure_speeds(ax_runtime *runtime, ax_speeds *out) {
  static const int64_t sizes[AX_SPEED_SIZES] = {1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 27};
  const int64_t edge = 1024;
  const ax_type square = ax_array_type(AX_F32, AX_DIMS(edge, edge));
  double seconds;
  for (uint32_t i = 0; i < AX_SPEED_SIZES; i++) {
    out->size[i] = (double)sizes[i];
    AX_TRY(measure_memory(runtime, sizes[i], &out->read[i], &out->write[i]));
  }
  AX_TRY(time_program(runtime, multiplied, 2, &square, &seconds));
  out->flops = 2 * (double)edge * (double)edge * (double)edge / seconds;
  return AX_OK;
}
