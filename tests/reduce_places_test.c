/* Which reductions of elements and their places become argmax or argmin, and that these give the same. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/transform.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"
#include "xform/evaluate.h"

typedef struct body {                    /* of a, i: what there is so far; b, j: the next */
  ax_value (*first)(const ax_value *in); /* whether a is kept */
  ax_value (*place)(const ax_value *in); /* whether i is */
  double start, place_start;
  int64_t axis, along; /* along: the iota's */
  ax_dtype places;
  bool least_place; /* of equals */
} body;

static ax_value is_nan(ax_value x) { return ax_ne(x, x); }
static ax_value tie(const ax_value *in) { return ax_and(ax_eq(in[0], in[2]), ax_lt(in[1], in[3])); }
static ax_value less(const ax_value *in) { return ax_or(ax_lt(in[0], in[2]), is_nan(in[0])); } /* as JAX says it */
static ax_value greater(const ax_value *in) { return ax_or(ax_gt(in[0], in[2]), is_nan(in[0])); }
static ax_value less_or_tie(const ax_value *in) { return ax_or(less(in), tie(in)); }
static ax_value greater_or_tie(const ax_value *in) { return ax_or(greater(in), tie(in)); }
static ax_value greater_or_equal(const ax_value *in) { return ax_or(ax_ge(in[0], in[2]), is_nan(in[0])); }
static ax_value not_behind(const ax_value *in) { return ax_or(ax_not(ax_lt(in[0], in[2])), is_nan(in[0])); } /* b NaN: a is kept */
static ax_value greater_last(const ax_value *in) { return ax_or(greater(in), ax_and(ax_eq(in[0], in[2]), ax_gt(in[1], in[3]))); }
static ax_value not_nan(const ax_value *in) { return ax_gt(in[0], in[2]); }
static ax_value with_number(const ax_value *in) { return ax_or(greater_or_tie(in), ax_gt(in[0], ax_full(AX_F32, AX_DIMS(), 100))); }
static ax_value mixed(const ax_value *in) {
  return ax_or(greater_or_tie(in), ax_lt(ax_convert_element_type(in[1], AX_F32), in[0]));
}

static void combine(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  out[0] = ax_select_n(b->first(in), in[2], in[0]);
  out[1] = ax_select_n(b->place(in), in[3], in[1]);
  if (b->least_place) out[1] = ax_select_n(ax_eq(in[0], in[2]), out[1], ax_min(in[1], in[3])); /* as XLA's own library says it */
}

static AX_BODY(reduced) {
  const body *b = context;
  const ax_type type = ax_typeof(in[0]);
  const ax_value places = ax_iota(b->places, AX_LIST(type.rank, type.dims), b->along);
  const ax_value starts[] = {ax_full(type.dtype, AX_DIMS(), b->start), ax_full(b->places, AX_DIMS(), b->place_start)};
  ax_reduce(AX_VALUES(in[0], places), AX_LIST(2, starts), AX_CLOSURE(combine, 4, 2, (void *)b), AX_DIMS(b->axis), AX_LIST(2, out));
}

static bool has(const ax_program *program, const char *name) {
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (strcmp(program->eqns[i].prim->name, name) == 0) return true;
  return false;
}

/* name: what it becomes; NULL: nothing else. The results are compared with those of the equation, on few different numbers. */
static void expect(const char *name, const body *b, ax_dtype dtype) {
  static const double numbers[] = {0, -0.0, 1, 2, 2, -3, NAN, INFINITY, -INFINITY};
  const ax_type type = TEST_TYPE(dtype, 5, 40, 3);
  ax_program *program = test_trace(reduced, (void *)b, &type, 1, 2), *simple;
  TEST_OK(ax_program_simplify(program, &simple));
  const bool becomes = name != NULL && has(simple, name) && !has(simple, "reduce");
  if (name != NULL ? !becomes : !has(simple, "reduce")) fail_msg("%s: %s", name == NULL ? "nothing" : name, ax_dtype_name(dtype));
  test_random random = {7};
  ax_tensor *in = test_tensor(type, NULL), *is[2], *wanted[2];
  for (int64_t i = 0; i < 600; i++) {
    const double x = numbers[test_random_below(&random, ax_is_float(dtype) ? 9 : 5)];
    test_set(in, i, i % 7 == 0 || !isnan(x) ? x : 1);
  }
  TEST_OK(ax_evaluate(program, &in, wanted));
  TEST_OK(ax_evaluate(simple, &in, is));
  for (int64_t i = 0; i < 600 / type.dims[b->axis]; i++) { /* elements as numbers: of zeros either may be found */
    assert_true(test_get(is[0], i) == test_get(wanted[0], i) || (isnan(test_get(is[0], i)) && isnan(test_get(wanted[0], i))));
    assert_true(test_get(is[1], i) == test_get(wanted[1], i));
  }
  test_release(is, 2);
  test_release(wanted, 2);
  test_release(&in, 1);
  ax_program_release(simple);
  ax_program_release(program);
}

static void become(void **state) {
  (void)state;
  for (int64_t axis = 0; axis < 3; axis++) {
    expect("argmin", &(body){less, less_or_tie, INFINITY, 0, axis, axis, AX_S32, false}, AX_F32);
    expect("argmax", &(body){greater, greater_or_tie, -INFINITY, 0, axis, axis, AX_S64, false}, AX_F32);
    expect("argmax", &(body){greater, greater_or_tie, -INFINITY, 0, axis, axis, AX_U8, false}, AX_F64);
    expect("argmax", &(body){greater, greater_or_tie, -INFINITY, 0, axis, axis, AX_S32, false}, AX_BF16);
    expect("argmax", &(body){greater_or_tie, greater_or_tie, INT32_MIN, 0, axis, axis, AX_S32, false}, AX_S32);
    expect("argmin", &(body){less, less_or_tie, 255, 0, axis, axis, AX_S32, false}, AX_U8);
    expect("argmax", &(body){not_nan, greater_or_tie, 0, 0, axis, axis, AX_S32, false}, AX_U32); /* integers are never NaN */
    expect("argmax", &(body){greater, greater_or_tie, -2, 0, axis, axis, AX_S32, false}, AX_S2);
    expect("argmax", &(body){greater_or_equal, greater_or_equal, -INFINITY, 0, axis, axis, AX_S32, .least_place = true}, AX_F32);
  }
}

static void stay(void **state) {
  (void)state;
  const body usual = {greater, greater_or_tie, -INFINITY, 0, 1, 1, AX_S32, false};
  body b = usual;
  expect("argmax", &b, AX_F32);
  b.start = 0; /* no element below it is found */
  expect(NULL, &b, AX_F32);
  b.start = 1; /* the greatest of a dtype in which 2 is -2 */
  expect(NULL, &b, AX_S2);
  b = usual, b.place_start = -1;
  expect(NULL, &b, AX_F32);
  b = usual, b.along = 0; /* places along another dimension */
  expect(NULL, &b, AX_F32);
  b = usual, b.place = greater; /* the last of equals */
  expect(NULL, &b, AX_F32);
  b = usual, b.first = b.place = greater_last;
  expect(NULL, &b, AX_F32);
  b = usual, b.first = b.place = not_nan;
  expect(NULL, &b, AX_F32);
  b = usual, b.first = b.place = not_behind;
  expect(NULL, &b, AX_F32);
  b = usual, b.first = b.place = with_number; /* on small numbers it does what argmax does */
  expect(NULL, &b, AX_F32);
  b = usual, b.first = b.place = mixed;
  expect(NULL, &b, AX_F32);
}

static ax_status simplified(void *program) {
  ax_program *simple = NULL;
  ax_status status = ax_program_simplify(program, &simple);
  ax_program_release(simple);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  body b = {greater, greater_or_tie, -INFINITY, 0, 1, 1, AX_S32, false};
  const ax_type type = TEST_TYPE(AX_F32, 5, 40, 3);
  ax_program *program = test_trace(reduced, &b, &type, 1, 2);
  assert_true(test_each_allocation(simplified, program) > 10);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(become), cmocka_unit_test(stay), cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
