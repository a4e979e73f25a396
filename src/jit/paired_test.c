/* Kernels of bf16 that are large enough to be taken two registers at a time (paired.c), beside the plain way to run them: whole and
   in ranges that begin anywhere, with rows that end within a pair, with sums along rows and along columns, and with an operand that
   is the same for a whole row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "jit/jit.h"
#include "jit/reference_test.h"
#include "jit/widths_test.h"

enum { most = 1 << 17 };
static _Alignas(64) uint16_t a[most], b[most], row[most], y[2][most], z[2][most], sum[2][most];

static ax_kernel_code compile(ax_compiler *jit, const ax_loop_kernel *kernel) {
  ax_kernel_code code;
  assert_false(kernel->failed);
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  return code;
}

/* y = (a + b) a - r, z = the larger of a and b. */
static ax_loop_kernel *pointwise(ax_arena *arena, const int64_t *dims) {
  ax_position at[2], first[1];
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 0, dims);
  ax_at_identity(at, 2);
  ax_at_identity(first, 1);
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at),
        w = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at);
  ax_ex r = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 1, dims), first);
  ax_ex product = ax_kernel_op(k, AX_SCALAR_MUL, AX_BF16, ax_kernel_op(k, AX_SCALAR_ADD, AX_BF16, x, w, AX_NONE), x, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_BF16, 2, dims), at, ax_kernel_op(k, AX_SCALAR_SUB, AX_BF16, product, r, AX_NONE),
                  AX_SCALAR_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_BF16, 2, dims), at, ax_kernel_op(k, AX_SCALAR_MAX, AX_BF16, x, w, AX_NONE),
                  AX_SCALAR_NONE);
  return k;
}

/* y = a where the column, as f32 and as s32, is before the row's number, b elsewhere; z = the column. */
static ax_loop_kernel *masked(ax_arena *arena, const int64_t *dims) {
  ax_position at[2];
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 0, dims);
  ax_at_identity(at, 2);
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at),
              w = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at);
  const ax_ex index = ax_kernel_index(k, 1), line = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S32, ax_kernel_index(k, 0), AX_NONE, AX_NONE);
  const ax_ex column = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S32, index, AX_NONE, AX_NONE),
              real = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, index, AX_NONE, AX_NONE);
  const ax_ex before = ax_kernel_op(k, AX_SCALAR_LE, AX_BOOL, column, line, AX_NONE),
              few = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, real, ax_kernel_const(k, AX_F32, 0x47000000), AX_NONE);
  const ax_ex both = ax_kernel_op(k, AX_SCALAR_AND, AX_BOOL, before, few, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_BF16, 2, dims), at, ax_kernel_op(k, AX_SCALAR_SELECT, AX_BF16, both, x, w), AX_SCALAR_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_BF16, 2, dims), at, ax_kernel_op(k, AX_SCALAR_CONVERT, AX_BF16, index, AX_NONE, AX_NONE),
                  AX_SCALAR_NONE);
  return k;
}

/* The sum of a b over columns or over rows; over columns z = a b is kept. */
static ax_loop_kernel *summed(ax_arena *arena, const int64_t *dims, bool over_rows) {
  const int64_t loops[] = {dims[over_rows], dims[!over_rows]};
  ax_position at[2], to[1];
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 1, loops);
  ax_at_identity(at, 2);
  ax_at_identity(to, 1);
  if (over_rows) at[0].dim = 1, at[1].dim = 0;
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at),
        w = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at);
  ax_ex product = ax_kernel_op(k, AX_SCALAR_MUL, AX_BF16, x, w, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_BF16, 1, loops), to, product, AX_SCALAR_ADD);
  if (!over_rows) ax_kernel_store(k, ax_kernel_slot(k, AX_BF16, 2, dims), at, product, AX_SCALAR_NONE);
  return k;
}

/* Small whole numbers, whose products and sums are exact in f32: the order does not matter. */
static void fill(bool whole) {
  for (uint32_t i = 0; i < most; i++) {
    const uint32_t bits = i * 2654435761u >> 7;
    const number small = {.f = (double)(bits % 15) - 7}, other = {.f = (double)(bits / 64 % 13) - 6};
    a[i] = whole ? (uint16_t)bits_of_number(AX_BF16, small) : (uint16_t)bits;
    b[i] = whole ? (uint16_t)bits_of_number(AX_BF16, other) : (uint16_t)(bits >> 5);
    row[i] = (uint16_t)(0x3f80 + i % 100);
  }
}

static void same(const char *what, const int64_t *dims, uint32_t width, const uint16_t *got, const uint16_t *wanted,
                 int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    number g = number_of_bits(AX_BF16, got[i]), w = number_of_bits(AX_BF16, wanted[i]);
    if (got[i] != wanted[i] && !(isnan(g.f) && isnan(w.f)))
      fail_msg("%s of [%lld,%lld], %u bytes, at %lld: %a, not %a", what, (long long)dims[0], (long long)dims[1], width,
               (long long)i, g.f, w.f);
  }
}

static void try_shape(const int64_t *dims, int w) {
  ax_arena arena = {0};
  const int64_t elems = dims[0] * dims[1], some = dims[0] / 3;
  ax_loop_kernel *k = pointwise(&arena, dims);
  ax_kernel_code code = compile(jits[w], k);
  memset(y, 0, sizeof y);
  memset(z, 0, sizeof z);
  fill(false);
  reference_run(k, (void *[]){a, b, row, y[1], z[1]}, NULL, 0, dims[0]);
  code((void *[]){a, b, row, y[0], z[0]}, NULL, 0, some);
  code((void *[]){a, b, row, y[0], z[0]}, NULL, some, dims[0]);
  same("y", dims, widths[w], y[0], y[1], most);
  same("z", dims, widths[w], z[0], z[1], most);
  k = masked(&arena, dims);
  code = compile(jits[w], k);
  reference_run(k, (void *[]){a, b, y[1], z[1]}, NULL, 0, dims[0]);
  code((void *[]){a, b, y[0], z[0]}, NULL, 0, some);
  code((void *[]){a, b, y[0], z[0]}, NULL, some, dims[0]);
  same("chosen", dims, widths[w], y[0], y[1], elems);
  same("columns", dims, widths[w], z[0], z[1], elems);
  fill(true);
  for (int over_rows = 0; over_rows < 2; over_rows++) {
    k = summed(&arena, dims, over_rows);
    code = compile(jits[w], k);
    reference_run(k, (void *[]){a, b, sum[1], z[1]}, NULL, 0, dims[over_rows]);
    code((void *[]){a, b, sum[0], z[0]}, NULL, 0, dims[over_rows]);
    same(over_rows ? "sums of columns" : "sums of rows", dims, widths[w], sum[0], sum[1], dims[over_rows]);
    same("terms", dims, widths[w], z[0], z[1], elems);
  }
  ax_arena_deinit(&arena);
}

static void shapes(void **unused) {
  static const int64_t all[][2] = {{1, 40000}, {40000, 1}, {513, 64},  {600, 65},  {420, 95}, {350, 96},
                                   {130, 257}, {2, 32769}, {33000, 3}, {17, 2047}, {1100, 31}};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (uint32_t s = 0; s < AX_COUNT(all); s++) try_shape(all[s], w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes)};
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
