/* Symbols, against the values that programs at random give: each value is within the bounds of its number; the same number is the same
   value; numbers with one part are as far apart as their constants say; and where a predicate has a value, what it says then is right. */
#include "check/symbols.h"

#include <stdlib.h>

#include "axle/axle.h"
#include "ir/number.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"
#include "xform/evaluate.h"

enum { inputs = 3, most_values = 40, steps = 24, predicates = 6, tries = 60, programs = 400 };

typedef struct plan {
  test_random random;
  ax_value made[most_values];
  uint32_t count;
} plan;

static ax_value pick(plan *p) { return p->made[test_random_below(&p->random, p->count)]; }
static ax_value constant(plan *p) { return ax_full_i64(AX_S8, AX_DIMS(), test_random_below(&p->random, 9) - 3); }
static ax_value operand(plan *p) { return test_random_below(&p->random, 2) == 0 ? constant(p) : pick(p); }

static ax_value compared(plan *p) {
  ax_value a = pick(p), b = operand(p);
  switch (test_random_below(&p->random, 4)) {
    case 0:
      return ax_lt(a, b);
    case 1:
      return ax_ge(a, b);
    case 2:
      return test_random_below(&p->random, 2) == 0 ? ax_eq(a, b) : ax_ne(a, b);
    default:
      a = ax_and(ax_gt(a, b), ax_le(operand(p), a));
      return test_random_below(&p->random, 2) == 0 ? a : ax_not(ax_or(a, ax_lt(pick(p), b)));
  }
}

static ax_value any(plan *p) {
  ax_value a = pick(p), b = operand(p), c = operand(p);
  switch (test_random_below(&p->random, 13)) {
    case 0:
      return ax_sub(a, b);
    case 1:
      return ax_mul(a, constant(p));
    case 2:
      return ax_mul(a, b);
    case 3:
      return ax_min(a, b);
    case 4:
      return ax_max(a, b);
    case 5:
      return ax_max(ax_min(a, ax_full_i64(AX_S8, AX_DIMS(), 5)), ax_full_i64(AX_S8, AX_DIMS(), -2));
    case 6:
      return ax_rem(a, ax_full_i64(AX_S8, AX_DIMS(), 1 + test_random_below(&p->random, 6)));
    case 7:
      return ax_div(a, ax_full_i64(AX_S8, AX_DIMS(), 1 + test_random_below(&p->random, 6)));
    case 8:
      return ax_select_n(compared(p), b, c);
    case 9:
      return ax_neg(a);
    case 10:
      return ax_and(a, b);
    case 11:
      return ax_convert_element_type(ax_add(ax_convert_element_type(a, AX_S16), ax_full_i64(AX_S16, AX_DIMS(), 3)), AX_S8);
    default:
      return ax_add(a, b);
  }
}

static AX_BODY(body) {
  plan *p = context;
  for (p->count = 0; p->count < inputs; p->count++) p->made[p->count] = in[p->count];
  for (uint32_t k = 0; k < steps; k++) {
    p->made[p->count] = any(p);
    out[k] = p->made[p->count++];
  }
  for (uint32_t k = 0; k < predicates; k++) out[steps + k] = compared(p);
}

static uint64_t narrowed, narrowed_sums;

/* Numbers of the results; inputs have bounds of their own. */
static void number_program(ax_symbols *symbols, const ax_program *program, const ax_interval *ranges, uint32_t *ids) {
  for (uint32_t i = 0; i < inputs; i++) {
    const uint64_t key[] = {AX_SYMBOL_LOADED, i};
    TEST_OK(ax_symbols_named(symbols, AX_S8, ranges[i], 2, key, &ids[i]));
  }
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const ax_literal *literal = ax_eqn_literal(eqn);
    const ax_dtype dtype = program->types[eqn->out].dtype;
    uint32_t in[4];
    if (literal != NULL) {
      TEST_OK(ax_symbols_constant(symbols, dtype, ax_number_load(dtype, literal->data, 0).i, &ids[eqn->out]));
      continue;
    }
    assert_true(ax_is_elementwise(eqn) && eqn->in_count <= 4);
    for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = ids[eqn->in[i]];
    TEST_OK(ax_symbols_apply(symbols, eqn, in, dtype, &ids[eqn->out]));
  }
}

/* Each predicate by itself, and all of them together. */
static void compare_guards(ax_symbols *symbols, const ax_program *program, const uint32_t *ids, const int64_t *values,
                           const bool *holds) {
  for (uint32_t j = 0; j <= predicates; j++) {
    ax_guard guards[AX_MOST_GUARDS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < predicates; i++)
      if (i == j || j == predicates) ax_symbols_guard(symbols, ids[program->outs[steps + i]], holds[i], guards, &count);
    for (uint32_t k = 0; k < steps; k++) {
      ax_interval range;
      TEST_OK(ax_symbols_guarded(symbols, ids[program->outs[k]], guards, count, &range));
      assert_true(values[k] >= range.low && values[k] <= range.high);
      const ax_interval all = ax_symbols_range(symbols, ids[program->outs[k]]);
      narrowed += range.low > all.low || range.high < all.high;
      ax_symbols_terms terms;
      ax_symbols_sum(symbols, ids[program->outs[k]], &terms);
      narrowed_sums += terms.count > 1 && (range.low > all.low || range.high < all.high);
    }
  }
}

static void compare(ax_symbols *symbols, const ax_program *program, const uint32_t *ids, const int64_t *values) {
  for (uint32_t k = 0; k < steps; k++) {
    const uint32_t id = ids[program->outs[k]];
    const ax_interval range = ax_symbols_range(symbols, id);
    assert_true(values[k] >= range.low && values[k] <= range.high);
    uint32_t part, other;
    int64_t constant, other_constant;
    TEST_OK(ax_symbols_split(symbols, id, &part, &constant));
    for (uint32_t i = 0; i < k; i++) {
      const uint32_t before = ids[program->outs[i]];
      TEST_OK(ax_symbols_split(symbols, before, &other, &other_constant));
      if (before == id) assert_true(values[i] == values[k]);
      if (part == other) assert_true((uint8_t)(values[k] - values[i]) == (uint8_t)(constant - other_constant));
    }
  }
}

static void run(ax_symbols *symbols, const ax_program *program, const uint32_t *ids, const int8_t *given) {
  ax_tensor *in[inputs], *out[steps + predicates];
  int64_t values[steps];
  bool holds[predicates];
  const ax_type type = AX_TYPE(AX_S8);
  for (uint32_t i = 0; i < inputs; i++) {
    TEST_OK(ax_tensor_create(&type, &in[i]));
    *(int8_t *)in[i]->data = given[i];
  }
  TEST_OK(ax_evaluate(program, in, out));
  for (uint32_t k = 0; k < steps; k++) values[k] = *(const int8_t *)out[k]->data;
  for (uint32_t k = 0; k < predicates; k++) holds[k] = *(const unsigned char *)out[steps + k]->data != 0;
  compare(symbols, program, ids, values);
  compare_guards(symbols, program, ids, values, holds);
  for (uint32_t i = 0; i < inputs; i++) ax_tensor_release(in[i]);
  for (uint32_t k = 0; k < steps + predicates; k++) ax_tensor_release(out[k]);
}

static uint64_t same_parts;

static void one(uint64_t seed, bool show) {
  plan p = {.random = {seed}};
  ax_program *program;
  ax_symbols *symbols;
  const ax_type types[inputs] = {AX_TYPE(AX_S8), AX_TYPE(AX_S8), AX_TYPE(AX_S8)};
  ax_interval ranges[inputs];
  TEST_OK(ax_trace(AX_CLOSURE(body, inputs, steps + predicates, &p), types, &program));
  (void)show;
  TEST_OK(ax_symbols_create(&symbols));
  uint32_t *ids = calloc(program->value_count + 1, sizeof ids[0]);
  for (uint32_t i = 0; i < inputs; i++) {
    const int64_t low = test_random_below(&p.random, 2) == 0 ? -128 : test_random_below(&p.random, 20) - 10;
    ranges[i] = (ax_interval){low, low == -128 ? 127 : low + test_random_below(&p.random, 20)};
  }
  number_program(symbols, program, ranges, ids);
  for (uint32_t t = 0; t < tries; t++) {
    int8_t given[inputs];
    for (uint32_t i = 0; i < inputs; i++)
      given[i] = (int8_t)(ranges[i].low + test_random_below(&p.random, ranges[i].high - ranges[i].low + 1));
    run(symbols, program, ids, given);
  }
  for (uint32_t k = 1; k < steps; k++) {
    uint32_t part, before;
    int64_t constant;
    TEST_OK(ax_symbols_split(symbols, ids[program->outs[k]], &part, &constant));
    TEST_OK(ax_symbols_split(symbols, ids[program->outs[k - 1]], &before, &constant));
    same_parts += part == before;
  }
  free(ids);
  ax_symbols_release(symbols);
  ax_program_release(program);
}

static void test_programs_at_random(void **state) {
  (void)state;
  test_each_seed(programs, one);
  assert_true(same_parts > programs / 10 && narrowed > programs && narrowed_sums > programs / 10); /* else nothing was compared */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs_at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
