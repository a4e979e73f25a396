/* Ranges of integers, and the operations that kernels leave out or make shorter because of them, against evaluation: of
   operations drawn at random on all dtypes, and of the forms that // and %, indices and their bounds have. */
#include "plan/kernel_range.h"

#include "ir/number.h"
#include "ops/pointwise.h"
#include "support/arena.h"
#include "support/cmocka.h"
#include "support/random.h"

enum { most = 64, times = 24, extent = 37 };

/* Nodes, with the values that the operations they were made for have in each of some draws of what is loaded. */
typedef struct pool {
  test_random random;
  ax_loop_kernel *kernel;
  uint32_t count, slots;
  ax_ex node[most];
  ax_number value[most][times], loaded[most][times], index[times];
} pool;

static ax_number as(ax_dtype dtype, ax_number x) {
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, x);
  return ax_number_load(dtype, &bits, 0);
}

static ax_dtype dtype_of(const pool *p, uint32_t i) { return p->kernel->exprs[p->node[i]].dtype; }

/* What a node computes. */
static ax_number node_value(const pool *p, ax_ex node, int t) {
  const ax_expr *expr = &p->kernel->exprs[node];
  ax_number x[3] = {{.u = 0}};
  if (expr->op == AX_LEAF_CONST) return ax_number_load(expr->dtype, &expr->imm, 0);
  if (expr->op == AX_LEAF_INDEX) return p->index[t];
  if (expr->op == AX_LEAF_LOAD) return p->loaded[expr->slot][t];
  for (int i = 0; i < ax_scalar_arity(expr->op); i++) x[i] = node_value(p, expr->arg[i], t);
  const ax_dtype operand = p->kernel->exprs[expr->arg[expr->op == AX_SCALAR_SELECT ? 1 : 0]].dtype;
  const bool to = expr->op == AX_SCALAR_CONVERT || expr->op == AX_SCALAR_BITCAST;
  return as(expr->dtype, ax_scalar_eval(expr->op, operand, x, to ? (int64_t)expr->dtype : expr->imm));
}

static void check(const pool *p, uint32_t i) {
  const ax_integers range = ax_kernel_range(p->kernel, p->node[i]);
  for (int t = 0; t < times; t++) {
    const ax_number wanted = p->value[i][t];
    assert_int_equal(node_value(p, p->node[i], t).i, wanted.i);
    if (range.is) assert_true(range.low <= wanted.i && wanted.i <= range.high);
  }
}

static uint32_t keep(pool *p, ax_ex node) {
  p->node[p->count] = node;
  check(p, p->count);
  return p->count++;
}

static uint32_t operation(pool *p, ax_scalar op, ax_dtype dtype, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t args[] = {a, b, c};
  ax_ex arg[3] = {AX_NONE, AX_NONE, AX_NONE};
  const ax_dtype operand = dtype_of(p, op == AX_SCALAR_SELECT ? b : a);
  for (int i = 0; i < ax_scalar_arity(op); i++) arg[i] = p->node[args[i]];
  for (int t = 0; t < times; t++) {
    ax_number x[3] = {{.u = 0}};
    for (int i = 0; i < ax_scalar_arity(op); i++) x[i] = p->value[args[i]][t];
    const bool to = op == AX_SCALAR_CONVERT || op == AX_SCALAR_BITCAST;
    p->value[p->count][t] = as(dtype, ax_scalar_eval(op, operand, x, to ? (int64_t)dtype : 0));
  }
  return keep(p, ax_kernel_op(p->kernel, op, dtype, arg[0], arg[1], arg[2]));
}

static uint32_t number(pool *p, ax_dtype dtype, int64_t value) {
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, (ax_number){.i = value});
  for (int t = 0; t < times; t++) p->value[p->count][t] = ax_number_load(dtype, &bits, 0);
  return keep(p, ax_kernel_const(p->kernel, dtype, bits));
}

/* Large, small, and at the ends of the dtype. */
static int64_t some_bits(test_random *random) {
  const uint64_t bits = test_random_bits(random);
  switch (test_random_below(random, 4)) {
    case 0:
      return (int64_t)bits;
    case 1:
      return test_random_below(random, 2) != 0 ? INT64_MAX >> (bits % 64) : INT64_MIN >> (bits % 64);
    case 2:
      return (int64_t)(UINT64_C(1) << (bits % 64));
    default:
      return test_random_below(random, 41) - 20;
  }
}

static uint32_t loaded(pool *p, ax_dtype dtype) {
  const uint32_t slot = ax_kernel_slot(p->kernel, dtype, 0, NULL);
  for (int t = 0; t < times; t++) p->loaded[slot][t] = p->value[p->count][t] = as(dtype, (ax_number){.i = some_bits(&p->random)});
  return keep(p, ax_kernel_load(p->kernel, slot, NULL));
}

static uint32_t index_of(pool *p) {
  for (int t = 0; t < times; t++) p->value[p->count][t] = p->index[t];
  return keep(p, ax_kernel_index(p->kernel, 0));
}

static pool *begun(uint64_t seed) {
  const int64_t dims[] = {extent};
  pool *p = ax_arena_alloc(&test_arena, sizeof *p);
  assert_non_null(p);
  *p = (pool){.random = {seed}, .kernel = ax_kernel_create(&test_arena, 1, 0, dims)};
  for (int t = 0; t < times; t++) p->index[t].i = t < 2 ? t * (extent - 1) : test_random_below(&p->random, extent);
  return p;
}

static const ax_dtype dtypes[] = {AX_S2, AX_U2, AX_S4, AX_U4, AX_S8, AX_U8, AX_S16, AX_U16, AX_S32, AX_U32, AX_S64, AX_U64};

static ax_dtype some_dtype(test_random *random) { return dtypes[test_random_below(random, AX_COUNT(dtypes))]; }

/* One of this dtype that is there, or else a new one. */
static uint32_t some(pool *p, ax_dtype dtype) {
  const uint32_t first = p->count > 0 ? (uint32_t)test_random_below(&p->random, p->count) : 0;
  for (uint32_t i = 0; i < p->count; i++)
    if (dtype_of(p, (first + i) % p->count) == dtype && test_random_below(&p->random, 4) != 0) return (first + i) % p->count;
  if (dtype == AX_S64 && test_random_below(&p->random, 2) == 0) return index_of(p);
  return test_random_below(&p->random, 2) != 0 ? number(p, dtype, some_bits(&p->random)) : loaded(p, dtype);
}

static void one_operation(pool *p) {
  static const ax_scalar ops[] = {AX_SCALAR_ADD,
                                  AX_SCALAR_SUB,
                                  AX_SCALAR_MUL,
                                  AX_SCALAR_DIV,
                                  AX_SCALAR_REM,
                                  AX_SCALAR_MIN,
                                  AX_SCALAR_MAX,
                                  AX_SCALAR_NEG,
                                  AX_SCALAR_ABS,
                                  AX_SCALAR_SIGN,
                                  AX_SCALAR_AND,
                                  AX_SCALAR_OR,
                                  AX_SCALAR_XOR,
                                  AX_SCALAR_NOT,
                                  AX_SCALAR_SHIFT_LEFT,
                                  AX_SCALAR_SHIFT_RIGHT_LOGICAL,
                                  AX_SCALAR_SHIFT_RIGHT_ARITHMETIC,
                                  AX_SCALAR_POPULATION_COUNT,
                                  AX_SCALAR_CLZ,
                                  AX_SCALAR_CTZ},
                         compare[] = {AX_SCALAR_EQ, AX_SCALAR_NE, AX_SCALAR_LT, AX_SCALAR_LE, AX_SCALAR_GT, AX_SCALAR_GE};
  const ax_dtype dtype = some_dtype(&p->random), other = some_dtype(&p->random);
  const uint32_t a = some(p, dtype), b = some(p, dtype);
  switch (test_random_below(&p->random, 4)) {
    case 0:
      operation(p, AX_SCALAR_CONVERT, other, a, 0, 0);
      return;
    case 1: {
      const uint32_t by = operation(p, compare[test_random_below(&p->random, AX_COUNT(compare))], AX_BOOL, a, b, 0);
      operation(p, AX_SCALAR_SELECT, dtype, by, some(p, dtype), some(p, dtype));
      return;
    }
    default:
      operation(p, ops[test_random_below(&p->random, AX_COUNT(ops))], dtype, a, b, 0);
  }
}

static void at_random(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    pool *p = begun(seed);
    while (p->count + 8 < most) one_operation(p);
  }
}

/* x // number and x % number as JAX writes them. */
static uint32_t floor_of(pool *p, ax_dtype dtype, uint32_t x, uint32_t by) {
  const uint32_t zero = number(p, dtype, 0), quotient = operation(p, AX_SCALAR_DIV, dtype, x, by, 0);
  const uint32_t signs = operation(p, AX_SCALAR_NE, AX_BOOL, operation(p, AX_SCALAR_SIGN, dtype, x, 0, 0),
                                   operation(p, AX_SCALAR_SIGN, dtype, by, 0, 0), 0);
  const uint32_t rest = operation(p, AX_SCALAR_NE, AX_BOOL, operation(p, AX_SCALAR_REM, dtype, x, by, 0), zero, 0);
  return operation(p, AX_SCALAR_SELECT, dtype, operation(p, AX_SCALAR_AND, AX_BOOL, signs, rest, 0),
                   operation(p, AX_SCALAR_SUB, dtype, quotient, number(p, dtype, 1), 0), quotient);
}

static uint32_t modulo(pool *p, ax_dtype dtype, uint32_t x, uint32_t by) {
  const uint32_t zero = number(p, dtype, 0), rest = operation(p, AX_SCALAR_REM, dtype, x, by, 0);
  const uint32_t below = operation(p, AX_SCALAR_LT, AX_BOOL, rest, zero, 0),
                 other = operation(p, AX_SCALAR_LT, AX_BOOL, by, zero, 0);
  const uint32_t apart = operation(p, AX_SCALAR_NE, AX_BOOL, below, other, 0),
                 is = operation(p, AX_SCALAR_NE, AX_BOOL, rest, zero, 0);
  return operation(p, AX_SCALAR_SELECT, dtype, operation(p, AX_SCALAR_AND, AX_BOOL, apart, is, 0),
                   operation(p, AX_SCALAR_ADD, dtype, rest, by, 0), rest);
}

static ax_scalar op_of(const pool *p, uint32_t i) { return p->kernel->exprs[p->node[i]].op; }

static void divisions(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 400; seed++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
      pool *p = begun(seed);
      const ax_dtype dtype = dtypes[d];
      const int64_t wish = seed % 3 == 0 ? some_bits(&p->random) : INT64_C(1) << test_random_below(&p->random, 31);
      const uint32_t x = loaded(p, dtype), by = number(p, dtype, wish);
      const uint32_t quotient = floor_of(p, dtype, x, by), rest = modulo(p, dtype, x, by);
      const int64_t is = p->value[by][0].i;
      if (ax_dtype_get(dtype)->kind != AX_KIND_SIGNED || is < 2 || (is & (is - 1)) != 0) continue;
      assert_int_equal(op_of(p, quotient), AX_SCALAR_SHIFT_RIGHT_ARITHMETIC);
      assert_int_equal(op_of(p, rest), AX_SCALAR_AND);
    }
}

/* Of an index, which is not negative, the roundings are those of the processor; its rest may be itself, and its quotient 0. */
static void of_indices(void **state) {
  (void)state;
  for (int64_t by = 1; by < 70; by++) {
    pool *p = begun((uint64_t)by);
    const uint32_t i = index_of(p), divisor = number(p, AX_S64, by);
    const uint32_t quotient = floor_of(p, AX_S64, i, divisor), rest = modulo(p, AX_S64, i, divisor);
    const bool digits = (by & (by - 1)) == 0;
    assert_int_equal(op_of(p, quotient), by == 1        ? AX_LEAF_INDEX
                                         : by >= extent ? AX_LEAF_CONST
                                         : digits       ? AX_SCALAR_SHIFT_RIGHT_LOGICAL
                                                        : AX_SCALAR_DIV);
    assert_int_equal(op_of(p, rest), by == 1        ? AX_LEAF_CONST
                                     : by >= extent ? AX_LEAF_INDEX
                                     : digits       ? AX_SCALAR_AND
                                                    : AX_SCALAR_REM);
  }
}

/* t[i], where i counts from the end if it is negative: (x & 255) - 3 is in -3 .. 252, and then in 0 .. 252 or 253 .. 255. */
static void from_the_end(void **state) {
  (void)state;
  pool *p = begun(1);
  const uint32_t x = loaded(p, AX_S32), low = operation(p, AX_SCALAR_AND, AX_S32, x, number(p, AX_S32, 255), 0);
  const uint32_t zero = number(p, AX_S32, 0), many = number(p, AX_S32, 256);
  const uint32_t same = operation(p, AX_SCALAR_SELECT, AX_S32, operation(p, AX_SCALAR_LT, AX_BOOL, low, zero, 0),
                                  operation(p, AX_SCALAR_ADD, AX_S32, low, many, 0), low);
  assert_int_equal(p->node[same], p->node[low]);
  const uint32_t less = operation(p, AX_SCALAR_SUB, AX_S32, low, number(p, AX_S32, 3), 0);
  const uint32_t at = operation(p, AX_SCALAR_SELECT, AX_S32, operation(p, AX_SCALAR_LT, AX_BOOL, less, zero, 0),
                                operation(p, AX_SCALAR_ADD, AX_S32, less, many, 0), less);
  const ax_integers range = ax_kernel_range(p->kernel, p->node[at]);
  assert_true(range.is && range.low == 0 && range.high == 255);
}

/* 0 <= x and x <= a number, of 32 and 64 bits and widened, in both orders. */
static void bounds(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; seed++)
    for (int which = 0; which < 3; which++) {
      pool *p = begun(seed);
      const ax_dtype dtype = which == 0 ? AX_S32 : AX_S64;
      uint32_t x = loaded(p, which == 1 ? AX_S64 : AX_S32);
      if (which == 2) x = operation(p, AX_SCALAR_CONVERT, AX_S64, x, 0, 0);
      const uint32_t low = operation(p, AX_SCALAR_GE, AX_BOOL, x, number(p, dtype, 0), 0),
                     high = operation(p, AX_SCALAR_LE, AX_BOOL, x, number(p, dtype, some_bits(&p->random) & INT32_MAX), 0);
      const uint32_t both =
          seed % 2 != 0 ? operation(p, AX_SCALAR_AND, AX_BOOL, low, high, 0) : operation(p, AX_SCALAR_AND, AX_BOOL, high, low, 0);
      if (op_of(p, high) != AX_SCALAR_LE) continue; /* always so */
      assert_int_equal(op_of(p, both), AX_SCALAR_LE);
      assert_int_equal(p->kernel->exprs[p->kernel->exprs[p->node[both]].arg[0]].dtype, which == 1 ? AX_U64 : AX_U32);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_random), cmocka_unit_test(divisions), cmocka_unit_test(of_indices),
                                     cmocka_unit_test(from_the_end), cmocka_unit_test(bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
