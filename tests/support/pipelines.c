#include "support/pipelines.h"

#include <stdio.h>
#include <string.h>

#include "axle/axle.h"

#include "support/cmocka.h"
#include "support/tensor.h"

enum { block = TEST_PIPELINE_BLOCK };

int64_t test_pipeline_steps(const test_pipeline *t) { return t->grid[0] * (t->rank > 1 ? t->grid[1] : 1); }
uint32_t test_pipeline_results(const test_pipeline *t) { return t->carries ? 4 : 3; }

const char *test_pipeline_text(const test_pipeline *t, char *text, size_t bytes) {
  char columns[32] = "", warps[160] = "";
  if (t->rank > 1) snprintf(columns, sizeof columns, " x %lld", (long long)t->grid[1]);
  if (t->wgs > 0)
    snprintf(warps, sizeof warps, ", %lld compute warpgroups, memory thread %lld%s%s", (long long)t->wgs, (long long)t->memory,
             t->manual ? ", manual" : "", t->carries ? ", carries" : "");
  snprintf(text, bytes, "grid %lld%s, %lld stages, delay %lld%s", (long long)t->grid[0], columns, (long long)t->stages,
           (long long)t->delay, warps);
  return text;
}

/* --- The body --- */

static ax_value flat(const test_pipeline *t, ax_value i, ax_value j) {
  return t->rank > 1 ? ax_add(ax_mul(i, ax_integer(t->grid[1])), j) : i;
}

static AX_BODY(by_step) {
  out[0] = flat(context, in[0], in[1]);
  out[1] = ax_integer(0);
}

static AX_BODY(by_row) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

/* Which compute warpgroup this is. */
static ax_value own_number(const test_pipeline *t) {
  ax_value wg = ax_axis_index("wg");
  int64_t memory = t->memory < 0 ? t->wgs : t->memory;
  return ax_select_n(ax_gt(wg, ax_integer(memory)), wg, ax_sub(wg, ax_integer(1)));
}

/* This compute warpgroup's part of a block. */
static ax_value part(const test_pipeline *t, ax_value ref) {
  if (t->wgs <= 1) return ref;
  ax_value start = ax_mul(own_number(t), ax_integer(block / t->wgs));
  return ax_ref_slice(ref, &start, AX_DIMS(block / t->wgs));
}

/* Adds x to the ref, or begins anew with it. */
typedef struct adding {
  ax_value ref, x;
} adding;

static AX_BODY(begin_sum) {
  const adding *a = context;
  ax_ref_store(a->ref, a->x);
}

static AX_BODY(go_on_sum) {
  const adding *a = context;
  ax_ref_add(a->ref, a->x);
}

static void add_up(ax_value ref, ax_value x, ax_value begins) {
  const adding a = {ref, x};
  ax_if(begins, AX_CLOSURE(begin_sum, 0, 0, &a), AX_CLOSURE(go_on_sum, 0, 0, &a), NULL, NULL);
}

/* x, w, table; y, rows, all, [carried], [consumed: three], [carry] */
static AX_BODY(each_step) {
  const test_pipeline *t = context;
  uint32_t refs = 3 + test_pipeline_results(t);
  ax_value i = ax_program_id(0), j = t->rank > 1 ? ax_program_id(1) : ax_integer(0), step = flat(t, i, j);
  ax_value row_begins = t->rank > 1 ? ax_eq(j, ax_integer(0)) : ax_ge(i, ax_integer(0));
  ax_value entry = ax_convert_element_type(ax_ref_load(ax_ref_at(in[2], step)), AX_F32);
  ax_value x = ax_ref_load(part(t, ax_ref_at(in[0], ax_integer(0)))), w = ax_ref_load(part(t, in[1]));
  for (uint32_t b = 0; t->manual && b < 3; b++) ax_barrier_arrive(in[refs + b]);
  ax_ref_store(part(t, ax_ref_at(in[3], ax_integer(0))), ax_add(ax_add(x, w), entry));
  add_up(part(t, ax_ref_at(in[4], ax_integer(0))), x, row_begins);
  add_up(part(t, in[5]), x, ax_eq(step, ax_integer(0)));
  if (t->carries) out[0] = ax_add(in[refs + (t->manual ? 3 : 0)], ax_reduce_sum(x, AX_DIMS(0), false));
}

/* --- The kernel --- */

typedef struct within {
  const test_pipeline *t;
  ax_value carried;
} within;

static AX_BODY(no_sum) { out[0] = ax_full(AX_F32, AX_DIMS(), 0); }

static AX_BODY(last_sum) {
  const within *w = context;
  ax_ref_store(ax_ref_at(w->carried, own_number(w->t)), in[0]);
}

static AX_BODY(piped) {
  test_pipeline *t = context;
  const within w = {t, in[6]};
  const ax_block_spec ins[] = {{.block = {AX_DIMS(1, block)}, .index_map = by_step, .context = t, .delay_release = t->late},
                               {.block = {AX_DIMS(block)}},
                               {.space = AX_SPACE_ANY}};
  const ax_block_spec outs[] = {{.block = {AX_DIMS(1, block)}, .index_map = by_step, .context = t},
                                {.block = {AX_DIMS(1, block)}, .index_map = by_row},
                                {0},
                                {.space = AX_SPACE_HBM}};
  const ax_pipeline_options options = {.grid = {t->rank, t->grid},
                                       .in_count = 3,
                                       .out_count = test_pipeline_results(t),
                                       .in_specs = {AX_LIST(3, ins)},
                                       .out_specs = {AX_LIST(test_pipeline_results(t), outs)},
                                       .max_concurrent_steps = t->stages,
                                       .delay_release = t->delay};
  uint32_t refs = 3 + options.out_count;
  if (t->wgs == 0) {
    ax_emit_pipeline(&options, AX_CLOSURE(each_step, 6, 0, t), in);
    return;
  }
  const ax_warp_pipeline_options warps = {.pipeline = options,
                                          .memory_registers = 40,
                                          .wg_axis = "wg",
                                          .compute_wgs = t->wgs,
                                          .memory_thread = t->memory,
                                          .manual_consumed_barriers = t->manual,
                                          .carry_count = t->carries,
                                          .carry_init = AX_CLOSURE(no_sum, 0, 1, t),
                                          .carry_final = AX_CLOSURE(last_sum, 1, 0, &w)};
  ax_emit_pipeline_warp_specialized(&warps, AX_CLOSURE(each_step, refs + (t->manual ? 3 : 0) + t->carries, t->carries, t), in);
}

static AX_BODY(kernel) {
  const test_pipeline *t = context;
  const ax_type outs[] = {AX_TYPE(AX_F32, test_pipeline_steps(t), block), AX_TYPE(AX_F32, t->grid[0], block),
                          AX_TYPE(AX_F32, block), AX_TYPE(AX_F32, t->wgs)};
  const ax_core_mesh one = {.core = "tensorcore"};
  const ax_core_mesh warpgroups = {
      .core = "warpgroup", .mesh = {.count = 1, .axis = {{.name = "wg", .size = t->wgs + 1}}}, .threads = "wg"};
  ax_mpmd_map(AX_LIST(1, t->wgs == 0 ? &one : &warpgroups), &AX_CLOSURE(piped, 3 + test_pipeline_results(t), 0, context), NULL,
              AX_LIST(3, in), AX_LIST(test_pipeline_results(t), outs), out);
}

/* --- What goes in, and what should come out --- */

static ax_type operand(const test_pipeline *t, int i) {
  int64_t n = test_pipeline_steps(t);
  return i == 0 ? AX_TYPE(AX_F32, n, block) : i == 1 ? AX_TYPE(AX_F32, block) : AX_TYPE(AX_S32, n);
}

ax_status test_pipeline_trace(const test_pipeline *t, ax_program **out) {
  const ax_type types[] = {operand(t, 0), operand(t, 1), operand(t, 2)};
  return ax_trace(AX_CLOSURE(kernel, 3, test_pipeline_results(t), t), types, out);
}

ax_program *test_pipeline_program(const test_pipeline *t) {
  ax_program *program;
  TEST_OK(test_pipeline_trace(t, &program));
  return program;
}

static float x_at(int64_t i) { return (float)(i * 7 % 23 + 1); }

void test_pipeline_operands(const test_pipeline *t, ax_tensor **in) {
  int64_t n = test_pipeline_steps(t);
  for (int i = 0; i < 3; i++) {
    const ax_type type = operand(t, i);
    TEST_OK(ax_tensor_create(&type, &in[i]));
  }
  for (int64_t i = 0; i < block * n; i++) ((float *)in[0]->data)[i] = x_at(i);
  for (int64_t i = 0; i < block; i++) ((float *)in[1]->data)[i] = (float)(100 * (i + 1));
  for (int64_t i = 0; i < n; i++) ((int32_t *)in[2]->data)[i] = (int32_t)(i * 1000);
}

static void compare(const test_pipeline *t, const char *name, const ax_tensor *made, const float *want, int64_t count) {
  char text[200];
  for (int64_t i = 0; i < count; i++)
    if (((const float *)made->data)[i] != want[i])
      fail_msg("%s: %s[%lld] is %g, not %g", test_pipeline_text(t, text, sizeof text), name, (long long)i,
               ((const float *)made->data)[i], want[i]);
}

void test_pipeline_compare(const test_pipeline *t, ax_tensor *const *made) {
  float y[block * TEST_PIPELINE_STEPS], rows[block * TEST_PIPELINE_STEPS] = {0}, all[block] = {0}, carried[3] = {0};
  int64_t n = test_pipeline_steps(t), columns = t->rank > 1 ? t->grid[1] : 1;
  if (n == 0) return; /* nothing is run */
  for (int64_t i = 0; i < block * n; i++) {
    int64_t step = i / block, k = i % block;
    y[i] = x_at(i) + (float)(100 * (k + 1)) + (float)(step * 1000);
    rows[step / columns * block + k] += x_at(i);
    all[k] += x_at(i);
    if (t->wgs > 0) carried[k / (block / t->wgs)] += x_at(i);
  }
  compare(t, "y", made[0], y, block * n);
  compare(t, "rows", made[1], rows, block * t->grid[0]);
  compare(t, "all", made[2], all, block);
  if (t->carries) compare(t, "carried", made[3], carried, t->wgs);
}
