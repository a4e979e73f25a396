/* Kernels that run as plain programs, at the edges of what is known of their numbers: the machine gives the same, or fails in the same way. */
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { COUNT = 4 };

static ax_value s32(int64_t number) { return ax_full_i64(AX_S32, AX_DIMS(), number); }
static AX_BODY(nothing) { (void)in, (void)out; }

typedef struct stored {
  ax_value ref, value;
} stored;
static AX_BODY_OF(store, const stored, s) { ax_ref_store(s->ref, s->value); }
static AX_BODY_OF(add, const stored, s) { ax_ref_add(s->ref, s->value); }

static void when(ax_value holds, ax_fn then, ax_fn otherwise) { (ax_if)(holds, then, otherwise, 0, NULL, 0, NULL); }

static AX_BODY(first) { out[0] = in[0]; }
static AX_BODY(second) { out[0] = in[1]; }

typedef struct called {
  ax_function map, body;
  int64_t grid[2];
  uint32_t rank;
  bool unset; /* no point stores the result */
} called;

/* x f32[4] and a table: blocks of one element of x by the map, added up in the result by the first number. */
static AX_BODY_OF(call, const called, c) {
  const ax_block_spec x = {.block = {AX_DIMS(1)}, .index_map = c->map, .context = (void *)in};
  const ax_block_spec y = {.block = {AX_DIMS(1)}, .index_map = first};
  const ax_kernel kernel = {.grid = {AX_LIST(c->rank, c->grid)},
                            .in_specs = {AX_BLOCK_SPECS(x)},
                            .out_specs = {AX_BLOCK_SPECS(y)},
                            .outs = {AX_TYPES(AX_TYPE(AX_F32, c->grid[0] > 0 ? c->grid[0] : 1))}};
  ax_kernel_call(&kernel, AX_CLOSURE(c->body, 2, 0, (void *)in), AX_LIST(1, in), AX_LIST(1, out));
}

static void same_as_the_machine(ax_fn function, const ax_type *types, ax_tensor *const *in, bool unset) {
  ax_program *program;
  TEST_OK((ax_trace)(function, 2, types, &program));
  (void)test_as_reference(program, in, !unset);
  ax_program_release(program);
}

/* table: COUNT numbers of the dtype. */
static void check(const called *c, ax_dtype dtype, const void *table) {
  const ax_type types[] = {AX_TYPE(AX_F32, COUNT), AX_TYPE(dtype, COUNT)};
  ax_tensor *in[2];
  for (int k = 0; k < 2; k++) TEST_OK(ax_tensor_create(&types[k], &in[k]));
  for (int i = 0; i < COUNT; i++) test_set(in[0], i, i + 1);
  memcpy(in[1]->data, table, COUNT * ax_dtype_bytes(dtype));
  same_as_the_machine(AX_CLOSURE(call, 2, 1, (void *)c), types, in, c->unset);
  for (int k = 0; k < 2; k++) ax_tensor_release(in[k]);
}

static const int32_t some[COUNT] = {2, 0, 1, 1};

/* --- A function that the map calls, and the body with other numbers --- */

static AX_BODY(more) { out[0] = ax_add(in[0], s32(1)); }
static AX_BODY(less) { out[0] = ax_sub(in[0], s32(1)); }
static AX_BODY(step) { ax_if(ax_eq(in[0], s32(0)), AX_FN(more, 1, 1), AX_FN(less, 1, 1), in, out); }
static AX_BODY(stepped) { ax_closed_call(AX_FN(step, 1, 1), in, out); }
static AX_BODY(sums_steps) {
  const ax_value k = ax_program_id(1);
  ax_value number;
  ax_closed_call(AX_FN(step, 1, 1), &k, &number);
  const stored zero = {in[1], ax_full(AX_F32, AX_DIMS(1), 0)};
  when(ax_eq(k, s32(0)), AX_CLOSURE(store, 0, 0, (void *)&zero), AX_FN(nothing, 0, 0));
  ax_ref_add(in[1], ax_add(ax_mul(ax_ref_load(in[0]), ax_real(100)), ax_convert_element_type(number, AX_F32)));
}

static void calls_of_both(void **state) {
  (void)state;
  for (int64_t points = 2; points < 40; points += 17) check(&(called){stepped, sums_steps, {3, points}, 2, false}, AX_S32, some);
}

/* --- Numbers of 64 bits without a sign --- */

static AX_BODY_OF(sums_by_size, const ax_value, given) {
  const ax_value k = ax_program_id(1), x = ax_ref_load(in[0]), number = ax_dynamic_at(given[1], k, 0);
  const stored zero = {in[1], ax_full(AX_F32, AX_DIMS(1), 0)}, once = {in[1], x}, often = {in[1], ax_mul(x, ax_real(100))};
  when(ax_eq(k, s32(0)), AX_CLOSURE(store, 0, 0, (void *)&zero), AX_FN(nothing, 0, 0));
  when(ax_le(number, ax_full_i64(AX_U64, AX_DIMS(), INT64_MAX)), AX_CLOSURE(add, 0, 0, (void *)&once), AX_CLOSURE(add, 0, 0, (void *)&often));
}

static void numbers_without_a_sign(void **state) {
  static const uint64_t numbers[COUNT] = {0, UINT64_MAX, UINT64_C(3) << 62, (UINT64_C(1) << 63) + 5};
  (void)state;
  check(&(called){second, sums_by_size, {2, COUNT}, 2, false}, AX_U64, numbers);
}

/* --- Maps that read a table and have branches, loops and calls --- */

static AX_BODY(at_most_two) { out[0] = ax_min(in[0], s32(2)); }
static AX_BODY(above_three) { out[0] = ax_gt(in[0], s32(3)); }
static AX_BODY(adds) { out[0] = ax_add(in[1], in[0]); }
static AX_BODY_OF(by_branch, const ax_value, given) {
  const ax_value number = ax_dynamic_at(given[1], in[0], 0);
  ax_if(ax_lt(number, s32(1)), AX_FN(more, 1, 1), AX_FN(less, 1, 1), &number, out);
}
static AX_BODY_OF(by_while, const ax_value, given) {
  const ax_value number = ax_dynamic_at(given[1], in[0], 0);
  ax_while(AX_FN(above_three, 1, 1), AX_FN(less, 1, 1), &number, out);
}
static AX_BODY_OF(by_loop, const ax_value, given) {
  const ax_value number = ax_dynamic_at(given[1], in[0], 0), zero = ax_sub(number, number);
  ax_fori_loop(s32(0), s32(2), AX_FN(adds, 2, 1), &zero, out);
}
static AX_BODY_OF(by_call, const ax_value, given) {
  const ax_value number = ax_dynamic_at(given[1], in[0], 0);
  ax_closed_call(AX_FN(at_most_two, 1, 1), &number, out);
}
static AX_BODY(adds_one) { ax_ref_store(in[1], ax_add(ax_ref_load(in[0]), ax_real(1))); }

typedef struct spread_call {
  ax_mesh mesh;
  called inner;
} spread_call;
static AX_BODY_OF(on_devices, const spread_call, s) {
  ax_shard_map(&s->mesh, "_; _ -> d", AX_CLOSURE(call, 2, 1, (void *)&s->inner), in, out);
}

static void maps_with_programs(void **state) {
  static const ax_function maps[] = {by_branch, by_while, by_loop, by_call};
  const ax_type types[] = {AX_TYPE(AX_F32, COUNT), AX_TYPE(AX_S32, COUNT)};
  (void)state;
  for (size_t m = 0; m < AX_COUNT(maps); m++) {
    spread_call s = {.inner = {maps[m], adds_one, {3}, 1, false}};
    check(&s.inner, AX_S32, some);
    TEST_OK(ax_mesh_parse("d=2", &s.mesh));
    ax_tensor *in[2];
    for (int k = 0; k < 2; k++) TEST_OK(ax_tensor_create(&types[k], &in[k]));
    for (int i = 0; i < COUNT; i++) test_set(in[0], i, i), test_set(in[1], i, some[i]);
    same_as_the_machine(AX_CLOSURE(on_devices, 2, 1, &s), types, in, false);
    for (int k = 0; k < 2; k++) ax_tensor_release(in[k]);
  }
}

/* --- Two points, none, and quotients by their numbers --- */

static AX_BODY(quotients) {
  const ax_value k = ax_program_id(1);
  ax_value x = ax_ref_load(in[0]);
  const stored zero = {in[1], ax_full(AX_F32, AX_DIMS(1), 0)};
  for (int i = 0; i < 140; i++) x = ax_mul(x, ax_real(1.01));
  when(ax_eq(k, s32(0)), AX_CLOSURE(store, 0, 0, (void *)&zero), AX_FN(nothing, 0, 0));
  ax_ref_add(in[1], ax_add(x, ax_convert_element_type(ax_div(s32(100), ax_add(k, s32(1))), AX_F32)));
}

static void few_points(void **state) {
  (void)state;
  for (int64_t points = 0; points < 5; points++) check(&(called){first, quotients, {2, points}, 2, points == 0}, AX_S32, some);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(calls_of_both), cmocka_unit_test(numbers_without_a_sign),
                                     cmocka_unit_test(maps_with_programs), cmocka_unit_test(few_points)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
