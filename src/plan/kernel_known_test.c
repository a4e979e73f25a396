/* What is known of operations on numbers, against C's integers: all pairs of bytes and of bools, and words at the ends of their ranges. */
#include "plan/kernel_known.h"

#include <math.h>

#include "ir/number.h"
#include "support/arena.h"
#include "support/cmocka.h"

static ax_loop_kernel *kernel_of(void) {
  const int64_t dims[] = {5};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 1, 0, dims);
  ax_kernel_slot(k, AX_BOOL, 1, dims);
  return k;
}

/* The bits of the node's number. */
static int64_t bits_of(const ax_loop_kernel *k, ax_ex node, ax_dtype dtype) {
  assert_int_not_equal(node, AX_NONE);
  assert_int_equal(k->exprs[node].op, AX_LEAF_CONST);
  assert_int_equal(k->exprs[node].dtype, dtype);
  return k->exprs[node].imm;
}

static int64_t of(ax_loop_kernel *k, ax_scalar op, ax_dtype from, ax_dtype to, uint64_t a, uint64_t b) {
  const ax_ex arg[] = {ax_kernel_const(k, from, (int64_t)a), ax_kernel_const(k, from, (int64_t)b), AX_NONE};
  return bits_of(k, ax_kernel_known(k, op, to, arg), to);
}

static void bytes(void **state) {
  (void)state;
  for (int is_signed = 0; is_signed < 2; is_signed++)
    for (int i = 0; i < 256; i++) {
      ax_loop_kernel *k = kernel_of();
      const ax_dtype d = is_signed ? AX_S8 : AX_U8;
      for (int j = 0; j < 256; j++) {
        const int a = is_signed ? (int8_t)i : i, b = is_signed ? (int8_t)j : j;
        assert_int_equal(of(k, AX_SCALAR_ADD, d, d, (uint8_t)i, (uint8_t)j), (uint8_t)(a + b));
        assert_int_equal(of(k, AX_SCALAR_SUB, d, d, (uint8_t)i, (uint8_t)j), (uint8_t)(a - b));
        assert_int_equal(of(k, AX_SCALAR_MUL, d, d, (uint8_t)i, (uint8_t)j), (uint8_t)(a * b));
        assert_int_equal(of(k, AX_SCALAR_AND, d, d, (uint8_t)i, (uint8_t)j), i & j);
        assert_int_equal(of(k, AX_SCALAR_OR, d, d, (uint8_t)i, (uint8_t)j), i | j);
        assert_int_equal(of(k, AX_SCALAR_XOR, d, d, (uint8_t)i, (uint8_t)j), i ^ j);
        assert_int_equal(of(k, AX_SCALAR_MIN, d, d, (uint8_t)i, (uint8_t)j), (uint8_t)(a < b ? a : b));
        assert_int_equal(of(k, AX_SCALAR_MAX, d, d, (uint8_t)i, (uint8_t)j), (uint8_t)(a < b ? b : a));
        assert_int_equal(of(k, AX_SCALAR_EQ, d, AX_BOOL, (uint8_t)i, (uint8_t)j), a == b);
        assert_int_equal(of(k, AX_SCALAR_NE, d, AX_BOOL, (uint8_t)i, (uint8_t)j), a != b);
        assert_int_equal(of(k, AX_SCALAR_LT, d, AX_BOOL, (uint8_t)i, (uint8_t)j), a < b);
        assert_int_equal(of(k, AX_SCALAR_LE, d, AX_BOOL, (uint8_t)i, (uint8_t)j), a <= b);
        assert_int_equal(of(k, AX_SCALAR_GT, d, AX_BOOL, (uint8_t)i, (uint8_t)j), a > b);
        assert_int_equal(of(k, AX_SCALAR_GE, d, AX_BOOL, (uint8_t)i, (uint8_t)j), a >= b);
      }
    }
}

static void ends_of_words(void **state) {
  (void)state;
  ax_loop_kernel *k = kernel_of();
  assert_int_equal(of(k, AX_SCALAR_ADD, AX_S32, AX_S32, 0x7fffffff, 1), 0x80000000);
  assert_int_equal(of(k, AX_SCALAR_LT, AX_S32, AX_BOOL, 0x80000000, 1), 1);
  assert_int_equal(of(k, AX_SCALAR_LT, AX_U32, AX_BOOL, 0x80000000, 1), 0);
  assert_int_equal(of(k, AX_SCALAR_MUL, AX_U32, AX_U32, 0xffffffff, 0xffffffff), 1);
  assert_int_equal(of(k, AX_SCALAR_SUB, AX_U64, AX_U64, 0, 1), -1);
  assert_int_equal(of(k, AX_SCALAR_LT, AX_U64, AX_BOOL, UINT64_MAX, 1), 0);
  assert_int_equal(of(k, AX_SCALAR_LT, AX_S64, AX_BOOL, UINT64_MAX, 1), 1);
  assert_int_equal(of(k, AX_SCALAR_MAX, AX_S64, AX_S64, (uint64_t)INT64_MIN, 0), 0);
  assert_int_equal(of(k, AX_SCALAR_ADD, AX_S64, AX_S64, INT64_MAX, 1), INT64_MIN);
}

/* Of bools, one of which may be no number: itself, the other one, or nothing. */
static void bools(void **state) {
  (void)state;
  ax_loop_kernel *k = kernel_of();
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  const ax_ex x = ax_kernel_load(k, 0, &at), no = ax_kernel_const(k, AX_BOOL, 0), yes = ax_kernel_const(k, AX_BOOL, 1);
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 2; b++) {
      const uint64_t i = (uint64_t)a, j = (uint64_t)b;
      assert_int_equal(of(k, AX_SCALAR_AND, AX_BOOL, AX_BOOL, i, j), a && b);
      assert_int_equal(of(k, AX_SCALAR_OR, AX_BOOL, AX_BOOL, i, j), a || b);
      assert_int_equal(of(k, AX_SCALAR_XOR, AX_BOOL, AX_BOOL, i, j), a != b);
      assert_int_equal(of(k, AX_SCALAR_LT, AX_BOOL, AX_BOOL, i, j), a < b);
    }
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_AND, AX_BOOL, x, yes, AX_NONE), x);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_AND, AX_BOOL, no, x, AX_NONE), no);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_OR, AX_BOOL, x, yes, AX_NONE), yes);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_OR, AX_BOOL, no, x, AX_NONE), x);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_NOT, AX_BOOL, no, AX_NONE, AX_NONE), yes);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SELECT, AX_BOOL, yes, x, no), x);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SELECT, AX_BOOL, no, x, yes), yes);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SELECT, AX_BOOL, x, yes, yes), yes);
  assert_int_equal(ax_kernel_known(k, AX_SCALAR_AND, AX_BOOL, (const ax_ex[]){x, x, AX_NONE}), AX_NONE);
}

/* Floats, whose results depend on how numbers are rounded and flushed, and quotients by 0 are left alone; so is what one number decides only
   in mathematics. */
static void what_is_left(void **state) {
  (void)state;
  ax_loop_kernel *k = kernel_of();
  const ax_ex half = ax_kernel_const(k, AX_F32, 0x3f000000), zero = ax_kernel_const(k, AX_S32, 0), i = ax_kernel_index(k, 0);
  assert_int_equal(ax_kernel_known(k, AX_SCALAR_ADD, AX_F32, (const ax_ex[]){half, half, AX_NONE}), AX_NONE);
  assert_int_equal(ax_kernel_known(k, AX_SCALAR_EQ, AX_BOOL, (const ax_ex[]){half, half, AX_NONE}), AX_NONE);
  assert_int_equal(ax_kernel_known(k, AX_SCALAR_DIV, AX_S32, (const ax_ex[]){zero, zero, AX_NONE}), AX_NONE);
  assert_int_equal(ax_kernel_known(k, AX_SCALAR_ADD, AX_S64, (const ax_ex[]){i, ax_kernel_const(k, AX_S64, 1), AX_NONE}), AX_NONE);
}

static ax_ex float_of(ax_loop_kernel *k, ax_dtype dtype, double value) {
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, (ax_number){.f = value});
  return ax_kernel_const(k, dtype, bits);
}

/* Numbers of any dtype that are the same in another; others are left, as are those that a thread may flush there. */
static void conversions(void **state) {
  static const double numbers[] = {0, 1, -1, 2, 7, 127, 128, -128, 255, 256, 257, 1023, 2049, 65504, 65536, 0x1p24 + 1, 0x1p31, 0x1p53, -0.0, 0.5,
                                   0.1, -0.375, 1e-3, 0x1p-14, 0x1p-140, INFINITY, NAN};
  (void)state;
  uint32_t known_count = 0;
  for (int from = AX_S8; from < AX_DTYPE_COUNT; from++)
    for (int to = AX_BOOL; to < AX_DTYPE_COUNT; to++)
      for (size_t i = 0; i < AX_COUNT(numbers); i++) {
        const ax_dtype_kind kind = ax_dtype_get((ax_dtype)from)->kind, made_kind = ax_dtype_get((ax_dtype)to)->kind;
        const bool whole = numbers[i] == floor(numbers[i]) && fabs(numbers[i]) < 0x1p60;
        if (kind >= AX_KIND_COMPLEX || made_kind >= AX_KIND_COMPLEX || (kind != AX_KIND_FLOAT && (!whole || signbit(numbers[i])))) continue;
        ax_loop_kernel *k = kernel_of();
        int64_t bits = 0;
        ax_number_store((ax_dtype)from, &bits, 0, kind == AX_KIND_FLOAT ? (ax_number){.f = numbers[i]} : (ax_number){.i = (int64_t)numbers[i]});
        const ax_number before = ax_number_load((ax_dtype)from, &bits, 0);
        const double was = kind == AX_KIND_FLOAT ? before.f : kind == AX_KIND_SIGNED ? (double)before.i : (double)before.u;
        const ax_ex made = ax_kernel_known(k, AX_SCALAR_CONVERT, (ax_dtype)to, (const ax_ex[]){ax_kernel_const(k, (ax_dtype)from, bits), AX_NONE, AX_NONE});
        if (made == AX_NONE) continue;
        const int64_t made_bits = bits_of(k, made, (ax_dtype)to);
        const ax_number after = ax_number_load((ax_dtype)to, &made_bits, 0);
        const double is = made_kind == AX_KIND_FLOAT ? after.f : made_kind == AX_KIND_SIGNED ? (double)after.i : (double)after.u;
        assert_true(is == was && signbit(is) == signbit(was));
        known_count++;
      }
  assert_true(known_count > 500);
  ax_loop_kernel *k = kernel_of();
  const ax_ex zero = ax_kernel_const(k, AX_S32, 0);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, zero, AX_NONE, AX_NONE), float_of(k, AX_F32, 0));
  assert_int_equal(ax_kernel_known(k, AX_SCALAR_CONVERT, AX_F16, (const ax_ex[]){float_of(k, AX_F32, 0x1p-20), AX_NONE, AX_NONE}), AX_NONE);
  assert_int_equal(ax_kernel_known(k, AX_SCALAR_CONVERT, AX_BF16, (const ax_ex[]){float_of(k, AX_F32, 0.1f), AX_NONE, AX_NONE}), AX_NONE);
}

/* An integer that passes through a dtype of as many digits or more comes from where it began; of fewer, it has lost some. */
static void conversions_of_conversions(void **state) {
  (void)state;
  static const ax_dtype integers[] = {AX_S8, AX_U8, AX_S16, AX_U16, AX_S32, AX_U32, AX_S64, AX_U64};
  static const int64_t dims[] = {5};
  static const uint64_t numbers[] = {0, 1, 127, 128, 200, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, UINT32_MAX, 0x123456789abcdef0,
                                     INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
  ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  uint32_t shorter = 0;
  for (size_t from = 0; from < AX_COUNT(integers); from++)
    for (size_t over = 0; over < AX_COUNT(integers); over++)
      for (size_t to = 0; to < AX_COUNT(integers); to++) {
        ax_loop_kernel *k = kernel_of();
        const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, integers[from], 1, dims), &at);
        const ax_ex between = ax_kernel_op(k, AX_SCALAR_CONVERT, integers[over], x, AX_NONE, AX_NONE);
        const ax_ex made = ax_kernel_known(k, AX_SCALAR_CONVERT, integers[to], (const ax_ex[]){between, AX_NONE, AX_NONE});
        if (made == AX_NONE) continue;
        assert_true(made == x || (k->exprs[made].op == AX_SCALAR_CONVERT && k->exprs[made].arg[0] == x));
        assert_int_equal(k->exprs[made].dtype, integers[to]);
        shorter++;
        for (size_t i = 0; i < AX_COUNT(numbers); i++) {
          int64_t bits = (int64_t)numbers[i], middle = 0, twice = 0, once = 0;
          const ax_number number = ax_number_load(integers[from], &bits, 0);
          ax_number_store(integers[over], &middle, 0, ax_number_convert(integers[from], integers[over], number));
          ax_number_store(integers[to], &twice, 0, ax_number_convert(integers[over], integers[to], ax_number_load(integers[over], &middle, 0)));
          ax_number_store(integers[to], &once, 0, ax_number_convert(integers[from], integers[to], number));
          assert_int_equal(twice, once);
        }
      }
  assert_true(shorter > 200);
}

/* Digits that no index has, and what is added to nothing. */
static void ranges_of_one_number(void **state) {
  (void)state;
  ax_loop_kernel *k = kernel_of();
  const ax_ex i = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_U64, ax_kernel_index(k, 0), AX_NONE, AX_NONE), zero = ax_kernel_const(k, AX_U64, 0);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SHIFT_RIGHT_LOGICAL, AX_U64, i, ax_kernel_const(k, AX_U64, 32), AX_NONE), zero);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SHIFT_RIGHT_LOGICAL, AX_U64, i, ax_kernel_const(k, AX_U64, 3), AX_NONE), zero);
  assert_int_not_equal(ax_kernel_op(k, AX_SCALAR_SHIFT_RIGHT_LOGICAL, AX_U64, i, ax_kernel_const(k, AX_U64, 2), AX_NONE), zero);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_OR, AX_U64, i, zero, AX_NONE), i);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_XOR, AX_U64, zero, i, AX_NONE), i);
}

static ax_expr node(const ax_loop_kernel *k, ax_ex id) { return k->exprs[id]; }

/* x / 8 is x * 0.125, and what has no exact inverse, or one that a thread may flush, is divided by. */
static void powers_of_two(void **state) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16};
  static const double whole[] = {2, 8, -4, 0.5, 1, 0x1p100, 0x1p-100}, others[] = {3, 0, -0.0, INFINITY, NAN, 6, 0x1p-126, 0x1p127};
  (void)state;
  ax_loop_kernel *k = kernel_of();
  const ax_ex x = ax_kernel_load(k, 0, &(ax_position){.dim = 0, .coef = 1, .dynamic = AX_NONE});
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_dtype dtype = dtypes[d];
    for (size_t i = 0; i < AX_COUNT(whole); i++) {
      const ax_expr made = node(k, ax_kernel_op(k, AX_SCALAR_DIV, dtype, x, float_of(k, dtype, whole[i]), AX_NONE));
      assert_int_equal(made.op, AX_SCALAR_MUL);
      assert_int_equal(made.arg[1], float_of(k, dtype, 1 / whole[i]));
    }
    for (size_t i = 0; i < AX_COUNT(others); i++)
      assert_int_equal(node(k, ax_kernel_op(k, AX_SCALAR_DIV, dtype, x, float_of(k, dtype, others[i]), AX_NONE)).op, AX_SCALAR_DIV);
    assert_int_equal(ax_kernel_op_imm(k, AX_SCALAR_SQRT, dtype, float_of(k, dtype, 64), 0), float_of(k, dtype, 8));
    assert_int_equal(ax_kernel_op_imm(k, AX_SCALAR_SQRT, dtype, float_of(k, dtype, 0.25), 1), float_of(k, dtype, 0.5));
    assert_int_equal(node(k, ax_kernel_op_imm(k, AX_SCALAR_SQRT, dtype, float_of(k, dtype, 2), 0)).op, AX_SCALAR_SQRT);
    assert_int_equal(node(k, ax_kernel_op_imm(k, AX_SCALAR_SQRT, dtype, float_of(k, dtype, -4), 0)).op, AX_SCALAR_SQRT);
  }
  assert_int_equal(node(k, ax_kernel_op(k, AX_SCALAR_DIV, AX_F16, x, float_of(k, AX_F16, 2), AX_NONE)).op, AX_SCALAR_DIV);
}

/* Where what is loaded is 0 anyway, nothing is to be chosen. */
static void zeros_beside_loads(void **state) {
  (void)state;
  ax_loop_kernel *k = kernel_of();
  const int64_t dims[] = {5};
  const uint32_t slot = ax_kernel_slot(k, AX_F32, 1, dims);
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  const ax_ex first = ax_kernel_inside(k, 0, 1, 0, 3), last = ax_kernel_inside(k, 0, 1, -1, 4),
              both = ax_kernel_both(k, first, last);
  const ax_ex x = ax_kernel_load_where(k, slot, &at, both), y = ax_kernel_load_where(k, slot, &at, first),
              zero = ax_kernel_const(k, AX_F32, 0), minus = ax_kernel_const(k, AX_F32, 0x80000000),
              free = ax_kernel_load(k, slot, &at);
  const ax_ex is = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, free, y, AX_NONE),
              one = ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, is, x, y);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, first, x, zero), x);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, both, x, zero), x);
  assert_int_equal(ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, first, one, zero), one);
  const ax_ex others[][2] = {{both, y}, {last, one}, {first, free}, {is, x}};
  for (size_t i = 0; i < AX_COUNT(others); i++)
    assert_int_equal(k->exprs[ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, others[i][0], others[i][1], zero)].op, AX_SCALAR_SELECT);
  assert_int_equal(k->exprs[ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, first, x, minus)].op, AX_SCALAR_SELECT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(bytes, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(ends_of_words, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(bools, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_is_left, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(conversions, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(conversions_of_conversions, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(ranges_of_one_number, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(powers_of_two, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(zeros_beside_loads, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
