/* One device: what a library call, or a copy, does alone is in peers/alone.c. */
#include <stdlib.h>

#include "axle/ops.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

static void product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

void sgemm(char **arguments) {
  ax_type square = ax_array_type(AX_F32, AX_DIMS(1024, 1024)), types[] = {square, square};
  job j = job_create(&(job_function){.body = product, .in_count = 2, .out_count = 1, .types = types},
                     (uint32_t)atoi(arguments[0]));
  bench_serve(job_run, &j, 1);
}

static void ten_operations(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0], y = ax_mul(x, ax_full_like(x, 1.5));
  y = ax_max(ax_add(y, ax_full_like(x, 0.25)), x);
  y = ax_abs(ax_sub(ax_neg(y), x));
  y = ax_min(ax_mul(y, y), ax_full_like(x, 1e6));
  out[0] = ax_sub(ax_mul(y, ax_full_like(x, 0.5)), x);
}

void pointwise(char **arguments) {
  ax_type type = ax_array_type(AX_F32, AX_DIMS(64 << 20));
  job j = job_create(&(job_function){.body = ten_operations, .in_count = 1, .out_count = 1, .types = &type},
                     (uint32_t)atoi(arguments[0]));
  bench_serve(job_run, &j, 1);
}
