/* What programs say of the operands of kernels. */
#include "check/facts.h"

#include "axle/axle.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { operands = 5 };

static AX_BODY(nothing) {}

static void call(const ax_value *in, ax_value *out) {
  const ax_core_mesh mesh = {.core = "core"};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(nothing, operands + 1, 0), NULL, AX_LIST(operands, in), AX_TYPES(AX_TYPE(AX_S32)), out);
}

static ax_value number(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }

/* An input; the same clamped; a rest of that; a constant; a sum that does not depend on inputs. */
static AX_BODY(straight) {
  ax_value clamped = ax_max(ax_min(in[0], number(9)), number(2));
  ax_value made[operands] = {in[0], clamped, ax_rem(clamped, number(4)), number(5), ax_add(number(3), number(4))};
  call(made, out);
}

static AX_BODY(within) { straight(in, out, context); }
static AX_BODY(in_call) { ax_closed_call(AX_FN(within, 1, 1), AX_LIST(1, in), out); }

/* Clamped outside of a loop, and in it. What it carries is not known. */
static AX_BODY(round_of) {
  ax_value carried = in[1], clamped = ((const ax_value *)context)[0];
  ax_value made[operands] = {carried, clamped, ax_min(carried, number(3)), number(5), in[0]};
  call(made, out);
}
static AX_BODY(in_loop) {
  ax_value clamped = ax_max(ax_min(in[0], number(9)), number(2));
  ax_fori_loop(number(0), number(3), AX_CLOSURE(round_of, 2, 1, &clamped), AX_LIST(1, in), out);
}

static const ax_eqn *kernel_in(const ax_program *program) {
  const ax_program *held;
  const ax_eqn *found = NULL;
  for (uint32_t e = 0; e < program->eqn_count && found == NULL; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    if (eqn->prim == &ax_prim_kernel_call) return eqn;
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL && found == NULL; k++) found = kernel_in(held);
  }
  return found;
}

static void expect(ax_function body, const ax_operand_fact *expected) {
  const ax_type type = AX_TYPE(AX_S32);
  ax_operand_fact facts[operands] = {0};
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(body, 1, 1), &type, &program));
  const ax_eqn *kernel = kernel_in(program);
  assert_non_null(kernel);
  assert_int_equal(kernel->in_count, operands);
  TEST_OK(ax_facts_of(program, kernel, facts));
  for (uint32_t i = 0; i < operands; i++) {
    assert_int_equal(facts[i].fixed, expected[i].fixed);
    assert_true(facts[i].range.low == expected[i].range.low && facts[i].range.high == expected[i].range.high);
  }
  ax_program_release(program);
}

static void test_facts(void **state) {
  (void)state;
  const ax_interval any = {INT32_MIN, INT32_MAX};
  const ax_operand_fact of_calls[] = {
      {.range = any}, {.range = {2, 9}}, {.range = {0, 3}}, {.fixed = true, .range = {5, 5}}, {.fixed = true, .range = {7, 7}}};
  const ax_operand_fact of_loops[] = {
      {.range = any}, {.range = {2, 9}}, {.range = {INT32_MIN, 3}}, {.range = {5, 5}}, {.range = any}};
  expect(straight, of_calls);
  expect(in_call, of_calls);
  expect(in_loop, of_loops);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_facts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
