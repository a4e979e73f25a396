/* Reductions by functions: which functions are refused and how, which are known reductions, the order of elements, functions that
   call others; and the same on a mesh, where blocks of a reduced dimension end in padding. */
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "ir/prim.h"
#include "partition/partition.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "xform/evaluate.h"

#define BODY(name) static void name(const ax_value *in, ax_value *out, void *context)

BODY(add) { (void)context, out[0] = ax_add(in[0], in[1]); }
BODY(sub) { (void)context, out[0] = ax_sub(in[0], in[1]); }
BODY(first) { (void)context, (void)in, out[0] = in[0]; }
BODY(both) { (void)context, out[0] = ax_and(in[0], in[1]); }
BODY(greater) { (void)context, out[0] = ax_gt(in[0], in[1]); }
BODY(summed) { (void)context, out[0] = ax_reduce_sum(ax_stack(AX_VALUES(in[0], in[1]), 0), AX_DIMS(0), false); }
BODY(captures) { out[0] = ax_add(ax_add(in[0], in[1]), *(const ax_value *)context); }
BODY(called) { (void)context, ax_closed_call(AX_FN(sub, 2, 1), AX_LIST(2, in), AX_LIST(1, out)); }
BODY(nested) {
  (void)context;
  ax_value made;
  ax_closed_call(AX_FN(called, 2, 1), AX_LIST(2, in), AX_LIST(1, &made));
  out[0] = ax_add(made, ax_mul(in[1], ax_integer(2)));
}
/* 2x2 matrices, which do not commute. */
BODY(matrices) {
  (void)context;
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 2; c++) out[2 * r + c] = ax_add(ax_mul(in[2 * r], in[4 + c]), ax_mul(in[2 * r + 1], in[6 + c]));
}

enum { ROWS = 3, LENGTH = 37 };

typedef struct given {
  ax_fn body;
  ax_value start;
  int64_t axis;
  bool two;
} given;

static void reduced(const ax_value *in, ax_value *out, void *context) {
  given g = *(const given *)context;
  if (g.body.function == captures) g.body.context = (void *)(uintptr_t)&in[0];
  const ax_value xs[] = {in[0], in[0]}, starts[] = {g.start, g.start};
  ax_value made[] = {in[0], in[0]};
  ax_reduce(AX_LIST(1u + g.two, xs), AX_LIST(1u + g.two, starts), g.body, AX_DIMS(g.axis), AX_LIST(1u + g.two, made));
  out[0] = made[0];
}

static ax_status trace(const given *g, ax_dtype dtype, ax_program **out) {
  const ax_type type = TEST_TYPE(dtype, ROWS, LENGTH);
  return ax_trace(AX_CLOSURE(reduced, 1, 1, g), AX_LIST(1, &type), out);
}

static void refused(void **state) {
  (void)state;
  const ax_value zero = ax_integer(0);
  const struct {
    given given;
    const char *message;
  } slips[] = {
      {{AX_FN(add, 1, 1), zero, 1, false}, "reduce: 1 operands are combined by a body with 1 inputs and 1 results; it must have 2 and 1"},
      {{AX_FN(add, 2, 1), zero, 1, true}, "reduce: 2 operands are combined by a body with 2 inputs and 1 results; it must have 4 and 2"},
      {{AX_FN(add, 2, 1), zero, 2, false}, "reduce: axis is 2, but there are 2 dimensions"},
      {{AX_FN(add, 2, 1), ax_real(0.5), 1, false}, "reduce"},
      {{AX_FN(greater, 2, 1), zero, 1, false}, "result 0 of the body is bool, but the operand is s32"},
      {{AX_FN(summed, 2, 1), zero, 1, false}, "is no operation on scalars"},
      {{AX_FN(captures, 2, 1), zero, 1, false}, "reduce: the body uses a value from outside"},
  };
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    ax_program *program = NULL;
    const ax_status status = trace(&slips[i].given, AX_S32, &program);
    if (status != AX_INVALID_ARGUMENT || strstr(ax_message(), slips[i].message) == NULL)
      fail_msg("%zu: %s, \"%s\" instead of \"%s\"", i, ax_status_name(status), ax_message(), slips[i].message);
    assert_null(program);
  }
}

static bool has(const ax_program *program, const ax_prim *prim) {
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].prim == prim) return true;
  return false;
}

static void known_reductions(void **state) {
  (void)state;
  const struct {
    ax_fn body;
    ax_dtype dtype;
    const ax_prim *prim;
  } cases[] = {{AX_FN(add, 2, 1), AX_F32, &ax_prim_reduce_sum},
               {AX_FN(both, 2, 1), AX_BOOL, &ax_prim_reduce_and},
               {AX_FN(both, 2, 1), AX_U8, &ax_prim_reduce_and},
               {AX_FN(sub, 2, 1), AX_F32, &ax_prim_reduce},
               {AX_FN(first, 2, 1), AX_F32, &ax_prim_reduce}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const given g = {cases[i].body, ax_integer(0), 1, false};
    ax_program *program;
    TEST_OK(trace(&g, cases[i].dtype, &program));
    assert_true(has(program, cases[i].prim));
    ax_program_release(program);
  }
}

/* Calls in a body are written out: (a - b) + 2 b = a + b. */
static void calls_in_bodies(void **state) {
  (void)state;
  const given g = {AX_FN(nested, 2, 1), ax_integer(0), 1, false};
  int32_t data[ROWS * LENGTH], wanted[ROWS] = {0};
  ax_program *program;
  for (int i = 0; i < ROWS * LENGTH; i++) data[i] = i * i % 1000, wanted[i / LENGTH] += data[i];
  TEST_OK(trace(&g, AX_S32, &program));
  ax_tensor in = {AX_S32, 2, {ROWS, LENGTH}, data}, *ins[] = {&in}, *out[1];
  TEST_OK(ax_evaluate(program, ins, out));
  assert_memory_equal(out[0]->data, wanted, sizeof wanted);
  ax_tensor_release(out[0]);
  ax_program_release(program);
}

/* --- Products of matrices, in order, with the length cut over devices that do not divide it --- */

enum { LONG = 101, COLUMNS = 3 };

typedef struct layout {
  const char *mesh, *spec;
} layout;

static void products(const ax_value *in, ax_value *out, void *context) {
  const ax_value one = ax_integer(1), none = ax_integer(0);
  const layout *laid = context;
  ax_mesh mesh;
  ax_value xs[4];
  TEST_OK(ax_mesh_parse(laid->mesh, &mesh));
  for (int k = 0; k < 4; k++) xs[k] = laid->spec != NULL ? ax_with_sharding(in[k], &mesh, laid->spec) : in[k];
  ax_reduce(AX_LIST(4, xs), AX_VALUES(one, none, none, one), AX_FN(matrices, 8, 4), AX_DIMS(0, 1), AX_LIST(4, out));
}

/* Of integers that wrap, so that nothing is rounded. */
static void multiply_all(ax_tensor *const *in, uint32_t *made) {
  made[0] = made[3] = 1, made[1] = made[2] = 0;
  for (int64_t i = 0; i < LONG * COLUMNS; i++) {
    uint32_t b[4], a[4];
    for (int k = 0; k < 4; k++) b[k] = ((const uint32_t *)in[k]->data)[i], a[k] = made[k];
    for (int r = 0; r < 2; r++)
      for (int c = 0; c < 2; c++) made[2 * r + c] = a[2 * r] * b[c] + a[2 * r + 1] * b[2 + c];
  }
}

static void in_order(void **state) {
  (void)state;
  const layout layouts[] = {{"d=2", NULL}, {"d=3", "d,_"}, {"d=2", "_,d"}, {"d=2,e=2", "e,d"}, {"d=2,e=4", "d+e,_"}};
  const ax_type type = TEST_TYPE(AX_U32, LONG, COLUMNS), types[] = {type, type, type, type};
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
    ax_program *program, *partitioned;
    ax_tensor *in[4], *got[4];
    uint32_t wanted[4];
    TEST_OK(ax_trace(AX_CLOSURE(products, 4, 4, &layouts[i]), types, &program));
    TEST_OK(ax_program_partition(program, &partitioned));
    for (int k = 0; k < 4; k++) {
      in[k] = test_tensor(type, NULL);
      for (int64_t j = 0; j < LONG * COLUMNS; j++) ((uint32_t *)in[k]->data)[j] = (uint32_t)(j * j * 7 + k * 5 + j) % 11;
    }
    multiply_all(in, wanted);
    test_run(partitioned, in, got);
    for (int k = 0; k < 4; k++) assert_int_equal(*(const uint32_t *)got[k]->data, wanted[k]);
    TEST_EVERY_WAY(partitioned, in, 0);
    test_release(in, 4);
    test_release(got, 4);
    ax_program_release(partitioned);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused), cmocka_unit_test(known_reductions), cmocka_unit_test(calls_in_bodies),
                                     cmocka_unit_test(in_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
