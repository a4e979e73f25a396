/* Values overwritten in parts, step by step: rows of a table, and a cache of keys and values that each step attends over. */
#include <stdlib.h>

#include "axle/ops.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

enum { row_width = 1024, heads = 8, key = 64 };

static ax_value integer(double value) { return ax_full(AX_S32, AX_DIMS(), value); }
static ax_value scaled(ax_value x, double by) { return ax_mul(x, ax_full_like(x, by)); }

/* (i, table) -> the next i, the table with row i renewed. */
static void renew_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value at[] = {in[0], integer(0)};
  ax_value row = ax_dynamic_slice(in[1], at, AX_DIMS(1, row_width));
  out[0] = ax_add(in[0], integer(1));
  out[1] = ax_dynamic_update_slice(in[1], ax_add(scaled(row, 0.5), ax_full_like(row, 1)), at);
}

static void renew_rows(const ax_value *in, ax_value *out, void *context) {
  const int64_t *rows = context;
  ax_value start[] = {integer(0), in[0]}, end[2];
  ax_scan(AX_FN(renew_row, 2, 2), 2, *rows, false, start, end);
  out[0] = end[1];
}

/* A scan over the rows of f32[ROWS,1024] that overwrites each. */
void rows_in_scan(char **arguments) {
  int64_t rows = atoll(arguments[0]);
  ax_type type = ax_array_type(AX_F32, AX_DIMS(rows, row_width));
  job j = job_create(&(job_function){renew_rows, &rows, NULL, 1, 1, &type, NULL, NULL}, 0);
  bench_serve(job_run, &j, 1);
}

/* (i, keys, values, x): x is written into both at i, and attends over all that is there so far. */
static void decode(const ax_value *in, ax_value *out, void *context) {
  int64_t steps = *(const int64_t *)context, last = 1;
  const ax_value at[] = {integer(0), in[0], integer(0)};
  ax_value entry = ax_reshape(in[3], AX_DIMS(heads, 1, key));
  ax_value keys = ax_dynamic_update_slice(in[1], entry, at), values = ax_dynamic_update_slice(in[2], scaled(entry, 0.5), at);
  ax_value scores = ax_dot_general(in[3], keys, AX_DIMS(1), AX_DIMS(2), AX_DIMS(0), AX_DIMS(0));
  ax_value places = ax_iota(AX_S32, AX_DIMS(heads, steps), 1);
  ax_value seen = ax_le(places, ax_broadcast_in_dim(in[0], AX_DIMS(heads, steps), NULL));
  ax_value weights = ax_where(seen, ax_exp(scaled(scores, 0.125)), ax_full_like(scores, 0));
  weights =
      ax_div(weights, ax_broadcast_in_dim(ax_reduce_sum(weights, AX_LIST(1, &last), false), AX_DIMS(heads, steps), AX_DIMS(0)));
  out[0] = ax_add(in[0], integer(1));
  out[1] = keys;
  out[2] = values;
  out[3] = ax_tanh(ax_dot_general(weights, values, AX_DIMS(1), AX_DIMS(1), AX_DIMS(0), AX_DIMS(0)));
}

static void decode_all(const ax_value *in, ax_value *out, void *context) {
  const int64_t *steps = context;
  ax_value start[] = {integer(0), in[0], in[1], in[2]}, end[4];
  ax_scan(AX_CLOSURE(decode, 4, 4, context), 4, *steps, false, start, end);
  out[0] = end[3];
}

/* So many steps of 8 heads of 64 over caches f32[8,STEPS,64]. */
void cache_in_scan(char **arguments) {
  int64_t steps = atoll(arguments[0]);
  ax_type cache = ax_array_type(AX_F32, AX_DIMS(heads, steps, key));
  ax_type types[] = {cache, cache, ax_array_type(AX_F32, AX_DIMS(heads, key))};
  job j = job_create(&(job_function){decode_all, &steps, NULL, 3, 1, types, NULL, NULL}, 0);
  bench_serve(job_run, &j, 1);
}
