/* How many vectors a kernel computes side by side: several if its operations wait for each other and registers and the time to
   compile allow it. */
#include "base/base.h"
#include "jit/nest/schedule.h"
#include "plan/contract.h"
#include "support/cmocka.h"

static ax_loop_kernel *begin(ax_arena *arena, ax_dtype dtype, int64_t elems, ax_ex *x) {
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, &elems);
  *x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, &elems), &at);
  return k;
}

static void store(ax_loop_kernel *k, ax_dtype dtype, ax_ex result) {
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 1, k->dims), &at, result, AX_SCALAR_NONE);
}

static uint32_t finish(ax_arena *arena, ax_loop_kernel *k, uint32_t vector_bytes) {
  ax_nest_schedule *s;
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(arena, k, (ax_registers){.bytes = vector_bytes}, false, &s), AX_OK);
  const uint32_t vectors = s->unroll;
  ax_arena_deinit(arena);
  return vectors;
}

/* y = ((x * x + 1) * x + 1) .., of so many products. */
static uint32_t of_chain_with(ax_dtype dtype, int64_t elems, int products, uint32_t vector_bytes, bool contract) {
  bool any = false;
  ax_arena arena = {0};
  ax_ex x;
  ax_loop_kernel *k = begin(&arena, dtype, elems, &x);
  ax_ex y = x, one = ax_kernel_const(k, dtype, dtype == AX_F64 ? 0x3ff0000000000000 : 0x3f800000);
  for (int i = 0; i < products; i++) {
    y = ax_kernel_op(k, AX_SCALAR_MUL, dtype, y, x, AX_NONE);
    y = ax_kernel_op(k, AX_SCALAR_ADD, dtype, y, one, AX_NONE);
  }
  store(k, dtype, y);
  if (contract) assert_int_equal(ax_kernel_contract(k, &any), AX_OK);
  assert_int_equal(any, contract);
  return finish(&arena, k, vector_bytes);
}
static uint32_t of_chain(ax_dtype dtype, int64_t elems, int products, uint32_t vector_bytes) {
  return of_chain_with(dtype, elems, products, vector_bytes, false);
}

/* The same number of operations, none of which waits for another but the last few. */
static uint32_t of_tree(int64_t elems, int leaves) {
  ax_arena arena = {0};
  ax_ex x, all[64];
  ax_loop_kernel *k = begin(&arena, AX_F32, elems, &x);
  for (int i = 0; i < leaves; i++)
    all[i] = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, ax_kernel_const(k, AX_F32, 0x3f800000 + i), AX_NONE);
  for (int count = leaves; count > 1; count /= 2)
    for (int i = 0; i < count / 2; i++) all[i] = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, all[2 * i], all[2 * i + 1], AX_NONE);
  store(k, AX_F32, all[0]);
  return finish(&arena, k, 64);
}

static void long_chains_go_side_by_side(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    assert_true(of_chain(AX_F32, 1 << 16, 20, bytes) >= 4);
    assert_true(of_chain(AX_F64, 1 << 16, 20, bytes) >= 4);
    assert_true(of_chain(AX_F32, 1 << 13, 20, bytes) >= 2);
    assert_int_equal(of_chain(AX_F32, 16, 20, bytes), 1); /* too few to bring the time to compile back */
  }
}

/* The processor looks so far ahead by itself; counting and jumping would be a third of a body of four instructions. */
static void short_bodies_go_side_by_side(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    assert_int_equal(of_chain(AX_F32, 1 << 16, 1, bytes), 4);
    assert_int_equal(of_chain(AX_F32, 1 << 16, 2, bytes), 2);
    assert_int_equal(of_chain(AX_F32, 1 << 9, 1, 64), 1); /* too few */
  }
}

/* Half of the instructions: as many nodes are twice as many vectors. */
static void contracted_products_are_no_instructions(void **state) {
  (void)state;
  assert_int_equal(of_chain_with(AX_F32, 1 << 13, 20, 64, false), 2);
  assert_int_equal(of_chain_with(AX_F32, 1 << 13, 20, 64, true), 4);
}

static void what_waits_for_nothing_goes_alone(void **state) {
  (void)state;
  assert_int_equal(of_tree(1 << 16, 32), 1);
}

/* All of x is used to the end, and so is each power, so that few vectors fit the registers. */
static void registers_are_a_limit(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_ex x, power[24];
  ax_loop_kernel *k = begin(&arena, AX_F32, 1 << 16, &x);
  for (int i = 0; i < 24; i++) power[i] = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, i > 0 ? power[i - 1] : x, x, AX_NONE);
  ax_ex sum = power[0];
  for (int i = 1; i < 24; i++) sum = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, sum, power[i], AX_NONE);
  store(k, AX_F32, sum);
  assert_int_equal(finish(&arena, k, 64), 1);
}

/* A function that is a call saves all registers. */
static void calls_go_alone(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_ex x;
  ax_loop_kernel *k = begin(&arena, AX_F32, 1 << 16, &x);
  ax_ex y = x;
  for (int i = 0; i < 20; i++) y = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, y, x, AX_NONE);
  store(k, AX_F32, ax_kernel_op_imm(k, AX_SCALAR_TANH, AX_F32, y, 0));
  assert_int_equal(finish(&arena, k, 64), 1);
}

/* exp of f32 is in line for many vectors. */
static void exp_in_line_goes_side_by_side(void **state) {
  (void)state;
  for (int64_t elems = 1 << 13; elems <= 1 << 16; elems *= 8) {
    ax_arena arena = {0};
    ax_ex x;
    ax_loop_kernel *k = begin(&arena, AX_F32, elems, &x);
    store(k, AX_F32, ax_kernel_op_imm(k, AX_SCALAR_EXP, AX_F32, x, 0));
    const uint32_t vectors = finish(&arena, k, 64);
    assert_true(elems < 1 << 15 ? vectors == 1 : vectors >= 4);
  }
}

/* Random bits, whose rounds wait for each other, even where what they become is a call; of many counts more than of few. */
static void random_bits_go_side_by_side(void **state) {
  (void)state;
  for (int calls = 0; calls < 2; calls++)
    for (int64_t elems = 1 << 13; elems <= 1 << 16; elems *= 8) {
      ax_arena arena = {0};
      ax_ex x;
      ax_loop_kernel *k = begin(&arena, AX_U32, elems, &x);
      const ax_ex key = ax_kernel_const(k, AX_U64, 0x9e3779b97f4a7c15),
                  count = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_U64, x, AX_NONE, AX_NONE);
      const ax_ex bits = ax_kernel_op(k, AX_SCALAR_THREEFRY, AX_U64, key, count, AX_NONE),
                  word = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_U32, bits, AX_NONE, AX_NONE),
                  number = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, word, AX_NONE, AX_NONE);
      store(k, AX_F32, calls ? ax_kernel_op_imm(k, AX_SCALAR_TANH, AX_F32, number, 0) : number);
      const uint32_t vectors = finish(&arena, k, 64);
      assert_true(elems < 1 << 15 ? vectors == 2 : vectors >= 4);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_chains_go_side_by_side),
      cmocka_unit_test(short_bodies_go_side_by_side),
      cmocka_unit_test(contracted_products_are_no_instructions),
      cmocka_unit_test(what_waits_for_nothing_goes_alone),
      cmocka_unit_test(registers_are_a_limit),
      cmocka_unit_test(calls_go_alone),
      cmocka_unit_test(exp_in_line_goes_side_by_side),
      cmocka_unit_test(random_bits_go_side_by_side),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
