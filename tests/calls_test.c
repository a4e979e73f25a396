/* Calls of bodies lowered once: the plan is, to the letter, that of the same equations written out. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct model {
  bool kept; /* by ax_closed_call; otherwise written out */
  ax_function body;
  bool in_scan;
  ax_value scalar; /* for bodies that capture it */
} model;

static void call(const model *m, ax_function body, ax_value x, ax_value y, ax_value *out) {
  const ax_value in[] = {x, y};
  if (m->kept) ax_closed_call(AX_CLOSURE(body, 2, 2, (void *)m), in, out);
  else body(in, out, (void *)m);
}

/* --- Bodies: (f32[4,6], f32[4,6]) -> the same --- */

static void pointwise(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_mul(in[0], in[1]));
  out[1] = ax_add(out[0], ax_full_like(in[0], 2));
}

/* Views of operands, views of those, and results that are operands. */
static void views(const ax_value *in, ax_value *out, void *context) {
  const int64_t flat = 24, dims[] = {4, 6};
  ax_value x = ax_reshape(ax_reshape(in[0], AX_LIST(1, &flat)), AX_LIST(2, dims));
  (void)context;
  out[0] = in[1];
  out[1] = x;
}

static void products(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value square = ax_matmul(in[0], ax_transpose(in[1], AX_DIMS(1, 0)));
  out[0] = ax_matmul(square, in[1]);
  out[1] = ax_sub(in[0], ax_matmul(square, in[0]));
}

static void row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_mul(in[0], in[1]), in[1]);
  out[1] = in[1];
}
static void loops(const ax_value *in, ax_value *out, void *context) {
  ax_value first = ax_slice(in[1], AX_DIMS(0, 0), AX_DIMS(1, 6), NULL), made[2];
  const ax_value all[] = {ax_reshape(first, AX_DIMS(6)), in[0]};
  ax_scan(AX_CLOSURE(row, 2, 2, context), 1, -1, false, all, made);
  out[0] = ax_add(made[1], in[1]);
  out[1] = in[0];
}

static void below_nine(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(ax_reduce_max(in[0], AX_ALL_DIMS, false), ax_full(AX_F32, AX_DIMS(), 9));
}
static void doubled(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}
static void negated(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}
static void choices(const ax_value *in, ax_value *out, void *context) {
  ax_value holds;
  below_nine(in, &holds, context);
  ax_if(holds, AX_FN(negated, 1, 1), AX_FN(doubled, 1, 1), in, &out[0]);
  ax_while(AX_FN(below_nine, 1, 1), AX_FN(doubled, 1, 1), in + 1, &out[1]);
}

static void nested(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  call(context, pointwise, in[0], in[1], made);
  call(context, pointwise, made[1], made[0], made);
  call(context, products, in[0], made[1], out);
}

/* A constant that is captured is an operand, and part of the code all the same. */
static void scaled(const ax_value *in, ax_value *out, void *context) {
  const model *m = context;
  out[0] = ax_mul(ax_add(in[0], m->scalar), ax_reshape(m->scalar, AX_DIMS(1, 1)));
  out[1] = ax_sub(in[1], m->scalar);
}

static void summed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_psum(in[0], "d"), in[1]);
  out[1] = ax_ppermute(ax_add(in[0], in[1]), "d", AX_PAIRS({0, 1}, {1, 0}));
}

/* Single elements of an operand: of a constant they are part of the code. */
static void polynomial(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0], out[1] = in[1];
  for (int64_t k = 0; k < 4; k++) {
    const ax_value one = ax_reshape(ax_slice(in[1], AX_DIMS(k, 2), AX_DIMS(k + 1, 3), NULL), AX_DIMS());
    out[0] = ax_add(ax_mul(out[0], in[0]), ax_broadcast_in_dim(one, AX_DIMS(4, 6), AX_DIMS()));
  }
}
static void polynomial_inside(const ax_value *in, ax_value *out, void *context) { call(context, polynomial, in[0], in[1], out); }

/* --- Models --- */

static ax_value table(float first) {
  const ax_type type = TEST_TYPE(AX_F32, 4, 6);
  float numbers[24];
  for (int i = 0; i < 24; i++) numbers[i] = first + (float)i / 8;
  return ax_constant(&type, numbers);
}

/* Operands that are the same, constants, views, rows of what a loop goes over, and others. */
static void calls(const ax_value *in, ax_value *out, void *context) {
  model *m = context;
  m->scalar = ax_full(AX_F32, AX_DIMS(), 3);
  ax_value a[2], b[2], half = ax_full_like(in[0], 0.5);
  call(m, m->body, in[0], in[1], a);
  call(m, m->body, a[1], a[0], b);
  call(m, m->body, b[0], b[0], a);
  m->scalar = ax_reduce_sum(in[0], AX_ALL_DIMS, false);
  call(m, m->body, a[0], half, b);
  m->scalar = ax_full(AX_F32, AX_DIMS(), 4);
  call(m, m->body, ax_reshape(b[1], AX_DIMS(4, 6)), a[1], a);
  for (int k = 0; k < 2; k++) call(m, m->body, a[0], table((float)k), b);
  out[0] = ax_add(a[0], b[0]);
  out[1] = a[1];
}

/* (x, y, rows[3,4,6]) */
static void calls_in_scan(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  calls(in, out, context);
  call(context, ((const model *)context)->body, in[2], out[0], made);
  call(context, ((const model *)context)->body, made[0], in[2], made);
  out[0] = made[0];
}

static void per_device(const ax_value *in, ax_value *out, void *context) {
  const model *m = context;
  ax_value all[] = {in[0], in[1], ax_broadcast_in_dim(in[0], AX_DIMS(3, 4, 6), AX_DIMS(1, 2))};
  if (m->in_scan) ax_scan(AX_CLOSURE(calls_in_scan, 3, 2, context), 2, -1, false, all, out);
  else calls(in, out, context);
}

static void sharded(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  const char *const specs[] = {"d", "d"};
  if (ax_mesh_parse("d=2", &mesh) != AX_OK) return;
  test_shard_map(&mesh, specs, specs, false, AX_CLOSURE(per_device, 2, 2, context), in, out);
}

static ax_plan *plan_of(const model *m) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 6), TEST_TYPE(AX_F32, 8, 6)};
  ax_program *program = test_trace(sharded, (void *)m, types, 2, 2);
  ax_plan *plan;
  TEST_OK(test_make_plan(program, &plan));
  TEST_OK(ax_plan_verify(plan));
  ax_program_release(program);
  return plan;
}

static char *text_of(const ax_plan *plan) {
  ax_text text = {0};
  char *out;
  ax_plan_text(&text, plan);
  TEST_OK(ax_text_finish(&text, &out));
  return out;
}

/* What a text says of bodies, at its beginning, is of no concern. */
static const char *operations(const char *text) {
  while (strncmp(text, "body ", 5) == 0) text = strchr(text, '\n') + 1;
  return text;
}

static void a_call_is_what_it_calls(void **state) {
  (void)state;
  static const ax_function bodies[] = {pointwise, views, products, loops, choices, nested, scaled, summed, polynomial, polynomial_inside};
  for (size_t i = 0; i < 2 * AX_COUNT(bodies); i++) {
    model m = {.body = bodies[i / 2], .in_scan = i % 2 == 1};
    ax_plan *plain = plan_of(&m);
    m.kept = true;
    ax_plan *kept = plan_of(&m);
    char *wanted = text_of(plain), *got = text_of(kept);
    assert_null(plain->called);
    assert_non_null(kept->called);
    assert_string_equal(operations(got), operations(wanted));
    TEST_OK(ax_plan_optimise(plain, NULL, NULL));
    TEST_OK(ax_plan_optimise(kept, NULL, NULL));
    char *made = text_of(plain), *made_of_calls = text_of(kept);
    assert_string_equal(operations(made_of_calls), operations(made));
    char *all[] = {wanted, got, made, made_of_calls};
    for (size_t k = 0; k < AX_COUNT(all); k++) ax_free(all[k]);
    ax_plan_destroy(plain);
    ax_plan_destroy(kept);
  }
}

/* --- How often a body is lowered --- */

static void chain(const ax_value *in, ax_value *out, void *context) {
  const model m = {.kept = true};
  ax_value pair[] = {in[0], in[1]};
  for (int i = 0; i < *(int *)context; i++) {
    call(&m, pointwise, pair[0], pair[1], pair);
    if (i == 0) call(&m, pointwise, pair[0], pair[0], pair); /* operands that are the same: another fragment */
  }
  out[0] = ax_add(pair[0], pair[1]);
}

static void a_body_is_lowered_once(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 6), TEST_TYPE(AX_F32, 4, 6)};
  int layers = 50;
  ax_program *program = test_trace(chain, &layers, types, 2, 1);
  ax_plan *plan;
  TEST_OK(test_make_plan(program, &plan));
  char *text = text_of(plan);
  static const char wanted[] = "body of 4 operations, lowered once for 1 calls\nbody of 4 operations, lowered once for 50 calls\n";
  assert_memory_equal(text, wanted, sizeof wanted - 1);
  const ax_op *first = &plan->block.ops[0], *last = &plan->block.ops[4 * layers];
  assert_ptr_equal(first->kernel.kernel, last->kernel.kernel);
  ax_free(text);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

static ax_status planned(void *context) {
  ax_plan *plan;
  AX_TRY(test_make_plan(context, &plan));
  ax_plan_destroy(plan);
  return AX_OK;
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 6), TEST_TYPE(AX_F32, 8, 6)};
  model m = {.kept = true, .body = summed};
  ax_program *program = test_trace(sharded, &m, types, 2, 2);
  assert_true(test_each_allocation(planned, program) > 20);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_call_is_what_it_calls),
      cmocka_unit_test(a_body_is_lowered_once),
      cmocka_unit_test(each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
