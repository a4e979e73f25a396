/* Sums and maxima over both dimensions of a product with a transposed factor, which is read in squares (nest/squares.c): as the
   plain way gives them, of dimensions with any rest, and nothing is read before the first element or after the last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/guarded_test.h"
#include "jit/jit.h"
#include "jit/nest/schedule.h"
#include "jit/reference_test.h"
#include "jit/widths_test.h"

enum { parts = 2 };

/* y[p] = the sum, or the greatest, of a[p, i, j] b[p, j, i]. */
static ax_loop_kernel *trace_of(ax_arena *arena, ax_dtype dtype, int64_t rows, int64_t columns, ax_scalar reduce) {
  const int64_t dims[] = {parts, rows, columns}, turned[] = {parts, columns, rows};
  ax_loop_kernel *k = ax_kernel_create(arena, 3, 2, dims);
  ax_position at[3], across[3];
  ax_at_identity(at, 3);
  ax_at_identity(across, 3);
  across[1].dim = 2, across[2].dim = 1;
  ax_ex a = ax_kernel_load(k, ax_kernel_slot(k, dtype, 3, dims), at);
  ax_ex b = ax_kernel_load(k, ax_kernel_slot(k, dtype, 3, turned), across);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 1, dims), at, ax_kernel_op(k, AX_SCALAR_MUL, dtype, a, b, AX_NONE), reduce);
  assert_false(k->failed);
  return k;
}

static bool is_turned(ax_arena *arena, const ax_loop_kernel *kernel, int w) {
  ax_nest_schedule *s;
  assert_int_equal(ax_nest_schedule_create(arena, kernel, (ax_registers){.bytes = widths[w]}, false, &s), AX_OK);
  return s->shape == AX_NEST_TRANSPOSE;
}

/* Whole numbers whose products every dtype has; few are not 0, so that it has their sums too. */
static void fill(void *data, ax_dtype dtype, int64_t count, uint32_t seed) {
  for (int64_t i = 0; i < count; i++) {
    const uint32_t bits = ((uint32_t)i + seed) * 2654435761u;
    const number x = {.f = bits >> 24 == 7 ? 0 : (double)(bits >> 29) - 3}, whole = {.i = (int64_t)x.f};
    const uint64_t own = bits_of_number(dtype, ax_is_float(dtype) ? x : whole);
    memcpy((char *)data + (size_t)i * ax_dtype_bytes(dtype), &own, ax_dtype_bytes(dtype));
  }
}

static void try_one(ax_dtype dtype, int64_t rows, int64_t columns, ax_scalar reduce, int w) {
  ax_arena arena = {0};
  ax_loop_kernel *kernel = trace_of(&arena, dtype, rows, columns, reduce);
  const size_t bytes = ax_dtype_bytes(dtype), in = (size_t)(parts * rows * columns) * bytes;
  ax_kernel_code code;
  assert_true(is_turned(&arena, kernel, w) == (widths[w] / bytes > 2)); /* two lanes are gathered */
  if (ax_jit_compile(jits[w], (const ax_loop_kernel *[]){kernel}, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  for (int at = 0; at < 2; at++) {
    guarded a = guarded_create(in, at == 0), b = guarded_create(in, at == 0);
    char y[parts * 8] = {0}, wanted[parts * 8] = {0};
    fill(a.data, dtype, parts * rows * columns, 1);
    fill(b.data, dtype, parts * rows * columns, 77);
    reference_run(kernel, (void *[]){a.data, b.data, wanted}, NULL, 0, parts);
    code((void *[]){a.data, b.data, y}, NULL, 1, parts);
    code((void *[]){a.data, b.data, y}, NULL, 0, 1);
    if (memcmp(y, wanted, parts * bytes) != 0)
      fail_msg("%s of %s [%lld,%lld], %u bytes", reduce == AX_SCALAR_ADD ? "sum" : "max", ax_dtype_name(dtype), (long long)rows,
               (long long)columns, widths[w]);
    guarded_destroy(&a);
    guarded_destroy(&b);
  }
  ax_arena_deinit(&arena);
}

static void products_with_transposes(void **unused) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S8, AX_S32, AX_U16};
  static const int64_t sizes[][2] = {{256, 256}, {401, 187}, {187, 401}, {65, 1031}, {1031, 67}};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++)
      for (uint32_t s = 0; s < AX_COUNT(sizes); s++)
        try_one(dtypes[d], sizes[s][0], sizes[s][1], (s + d) % 3 == 2 ? AX_SCALAR_MAX : AX_SCALAR_ADD, w);
}

/* What the first caches hold is gathered as fast. */
static void small_ones_are_gathered(void **unused) {
  ax_arena arena = {0};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    assert_false(is_turned(&arena, trace_of(&arena, AX_F32, 90, 90, AX_SCALAR_ADD), w));
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_with_transposes), cmocka_unit_test(small_ones_are_gathered)};
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
