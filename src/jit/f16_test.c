/* Registers that hold f16 as f16 give the same bits as those that hold it as f32 and round after each operation: every operation
   on all 65,536 numbers, and kernels that mix f16 with other dtypes, convert, compare and add up. Where the processor has no
   arithmetic on f16, LLVM spells it out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <string.h>

#include "ir/dtype.h"
#include "jit/jit.h"

enum { all = 1 << 16 };
static ax_compiler *as_f32, *as_f16;
static _Alignas(64) uint16_t x[all], y[all];
static _Alignas(64) unsigned char first[all * 8], second[all * 8];

static bool is_nan(ax_dtype dtype, const unsigned char *at) {
  uint16_t half;
  memcpy(&half, at, sizeof half);
  return dtype == AX_F16 && (half & 0x7fff) > 0x7c00;
}

static void run(ax_compiler *jit, const ax_loop_kernel *kernel, void *to) {
  ax_kernel_code code;
  void *slots[] = {x, y, to};
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  code(slots, NULL, 0, ax_kernel_extent(kernel));
}

/* The kernel's first two slots are x and y, its third one has the results. */
static void expect_same(const ax_loop_kernel *kernel, int64_t results, const char *name) {
  const ax_dtype dtype = kernel->slots[2].dtype;
  const size_t bytes = ax_dtype_bytes(dtype);
  assert_false(kernel->failed);
  run(as_f32, kernel, first);
  run(as_f16, kernel, second);
  for (int64_t i = 0; i < results; i++) {
    const unsigned char *a = &first[(size_t)i * bytes], *b = &second[(size_t)i * bytes];
    if (memcmp(a, b, bytes) == 0 || (is_nan(dtype, a) && is_nan(dtype, b))) continue;
    fail_msg("%s of %04x and %04x, number %lld: %02x%02x in f32, %02x%02x in f16", name, x[i], y[i], (long long)i, a[1], a[0], b[1],
             b[0]);
  }
}

static ax_loop_kernel *begin(ax_arena *arena, uint32_t rank, uint32_t reduced, const int64_t *dims, ax_dtype to, ax_ex *a, ax_ex *b) {
  ax_position at[2];
  ax_loop_kernel *k = ax_kernel_create(arena, rank, reduced, dims);
  ax_at_identity(at, rank);
  const uint32_t of_x = ax_kernel_slot(k, AX_F16, rank, dims), of_y = ax_kernel_slot(k, AX_F16, rank, dims);
  (void)ax_kernel_slot(k, to, rank - reduced, dims);
  *a = ax_kernel_load(k, of_x, at);
  *b = ax_kernel_load(k, of_y, at);
  return k;
}

static void store(ax_loop_kernel *k, ax_ex value, ax_scalar reduce) {
  ax_position at[2];
  ax_at_identity(at, k->slots[2].rank);
  ax_kernel_store(k, 2, at, value, reduce);
}

/* --- One operation --- */

static void fill_second(uint16_t with) {
  for (int i = 0; i < all; i++) y[i] = with;
}

static void try_operation(ax_scalar op, ax_dtype to, int64_t elems) {
  ax_arena arena = {0};
  ax_ex a, b;
  ax_loop_kernel *k = begin(&arena, 1, 0, &elems, to, &a, &b);
  const ax_ex operand = ax_scalar_arity(op) > 1 ? b : AX_NONE;
  const ax_ex above = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, b, a, AX_NONE);
  if (op == AX_SCALAR_SELECT) store(k, ax_kernel_op(k, op, to, above, a, b), AX_SCALAR_NONE);
  else if (op == AX_SCALAR_INTEGER_POW) store(k, ax_kernel_op_imm(k, op, to, a, 3), AX_SCALAR_NONE);
  else if (op == AX_SCALAR_REDUCE_PRECISION) store(k, ax_kernel_op_imm(k, op, to, a, ax_precision_imm(4, 5)), AX_SCALAR_NONE);
  else store(k, ax_kernel_op(k, op, to, a, operand, AX_NONE), AX_SCALAR_NONE);
  expect_same(k, elems, ax_scalar_name(op));
  ax_arena_deinit(&arena);
}

static bool takes_f16(ax_scalar op) {
  const bool of_bits = op == AX_SCALAR_AND || op == AX_SCALAR_OR || op == AX_SCALAR_NOT || (op >= AX_SCALAR_XOR && op <= AX_SCALAR_CTZ);
  return !of_bits && op != AX_SCALAR_THREEFRY && op != AX_SCALAR_CONVERT && op != AX_SCALAR_BITCAST;
}

static bool gives_bool(ax_scalar op) { return (op >= AX_SCALAR_EQ && op <= AX_SCALAR_GE) || op == AX_SCALAR_IS_FINITE; }

static void operations(void **state) {
  /* zeros, subnormals, the numbers around 1, halves, ties, the largest, infinities, NaN */
  static const uint16_t others[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3bff, 0x3c00, 0x3c01, 0xc200, 0x3555,
                                    0x1400, 0xe400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x2e66, 0x7101, 0x9234};
  (void)state;
  for (size_t k = 0; k < AX_COUNT(others); k++) {
    fill_second(others[k]);
    for (int op = 1; op < AX_SCALAR_COUNT; op++)
      if (takes_f16((ax_scalar)op) && (k == 0 || ax_scalar_arity((ax_scalar)op) > 1))
        try_operation((ax_scalar)op, gives_bool((ax_scalar)op) ? AX_BOOL : AX_F16, k == 0 ? all - 1 : all / 4 * 4);
  }
}

static void conversions(void **state) {
  (void)state;
  for (int to = AX_BOOL; to < AX_DTYPE_COUNT; to++)
    if (to != AX_F16 && !ax_is_byte_float((ax_dtype)to) && !ax_is_short_integer((ax_dtype)to) && /* tests/byte_floats_test.c */
        !ax_is_complex((ax_dtype)to))
      try_operation(AX_SCALAR_CONVERT, (ax_dtype)to, all);
}

/* --- Several operations --- */

static void fill(void) {
  for (int i = 0; i < all; i++) {
    x[i] = (uint16_t)(0x2c00 + i * 2654435761u % 0x1800); /* 1/16 .. 4 */
    y[i] = (uint16_t)(x[(i * 7) % all] | (i % 3 == 0 ? 0x8000 : 0));
  }
}

/* A chain in which f16 becomes f32, s32 and f16 again, with a function. */
static ax_ex mixed(ax_loop_kernel *k, ax_ex a, ax_ex b) {
  ax_ex sum = ax_kernel_op(k, AX_SCALAR_ADD, AX_F16, ax_kernel_op(k, AX_SCALAR_MUL, AX_F16, a, b, AX_NONE), a, AX_NONE);
  ax_ex wide = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, sum, AX_NONE, AX_NONE);
  ax_ex whole = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S32, ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, wide, wide, AX_NONE), AX_NONE, AX_NONE);
  ax_ex back = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F16, whole, AX_NONE, AX_NONE);
  ax_ex raised = ax_kernel_op_imm(k, AX_SCALAR_EXP, AX_F16, ax_kernel_op(k, AX_SCALAR_MIN, AX_F16, a, back, AX_NONE), 0);
  return ax_kernel_op(k, AX_SCALAR_DIV, AX_F16, raised, ax_kernel_op(k, AX_SCALAR_MAX, AX_F16, sum, b, AX_NONE), AX_NONE);
}

static void f16_among_others(void **state) {
  static const int64_t counts[] = {1, 7, 31, 33, 100, 4099, 40000, all};
  (void)state;
  fill();
  for (size_t c = 0; c < AX_COUNT(counts); c++) {
    ax_arena arena = {0};
    ax_ex a, b;
    ax_loop_kernel *k = begin(&arena, 1, 0, &counts[c], AX_F16, &a, &b);
    store(k, mixed(k, a, b), AX_SCALAR_NONE);
    expect_same(k, counts[c], "a chain");
    ax_arena_deinit(&arena);
  }
}

/* Over rows and over columns, short and long ones: the same order of additions. */
static void reductions(void **state) {
  static const int64_t shapes[][2] = {{1, 65536}, {16, 4096}, {4096, 16}, {100, 33}, {3, 7}, {600, 100}};
  static const ax_scalar kinds[] = {AX_SCALAR_ADD, AX_SCALAR_MAX, AX_SCALAR_MIN, AX_SCALAR_MUL};
  (void)state;
  fill();
  for (size_t s = 0; s < AX_COUNT(shapes); s++)
    for (size_t kind = 0; kind < AX_COUNT(kinds); kind++)
      for (int turned = 0; turned < 2; turned++) {
        ax_arena arena = {0};
        ax_ex a, b;
        const ax_position columns[] = {{.dim = 1, .coef = 1, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
        const int64_t back[] = {shapes[s][1], shapes[s][0]};
        ax_loop_kernel *k = begin(&arena, 2, 1, shapes[s], AX_F16, &a, &b);
        if (turned) {
          memcpy(k->slots[0].dims, back, sizeof back);
          a = ax_kernel_load(k, 0, columns);
        }
        store(k, ax_kernel_op(k, AX_SCALAR_MUL, AX_F16, a, a, AX_NONE), kinds[kind]);
        expect_same(k, shapes[s][0], ax_scalar_name(kinds[kind]));
        ax_arena_deinit(&arena);
      }
}

static int begin_all(void **state) {
  (void)state;
  for (int i = 0; i < all; i++) x[i] = (uint16_t)i;
  return ax_jit_create(&(ax_jit_options){.f16 = AX_F16_AS_F32}, &as_f32) != AX_OK ||
         ax_jit_create(&(ax_jit_options){.f16 = AX_F16_AS_F16}, &as_f16) != AX_OK;
}

static int end_all(void **state) {
  (void)state;
  ax_jit_destroy(as_f32);
  ax_jit_destroy(as_f16);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operations),
      cmocka_unit_test(conversions),
      cmocka_unit_test(f16_among_others),
      cmocka_unit_test(reductions),
  };
  return cmocka_run_group_tests(tests, begin_all, end_all);
}
