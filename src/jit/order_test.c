/* The largest and the smallest of floats, where the order of their bits is not theirs: zeros of both signs, NaNs of both signs,
   infinities, subnormals; along rows and along columns, with remainders. And that narrow floats which are only moved keep their
   bits, NaNs too. */
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

enum { most = 4096 };
static _Alignas(64) unsigned char in[most * 8], out[most * 8];

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static void run(ax_compiler *jit, const ax_loop_kernel *kernel) {
  ax_kernel_code code;
  assert_false(kernel->failed);
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  code((void *[]){in, out}, NULL, 0, ax_kernel_extent(kernel));
}

static uint64_t bits_at(ax_dtype dtype, const void *array, int64_t at) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)array + (size_t)at * ax_dtype_bytes(dtype), ax_dtype_bytes(dtype));
  return bits;
}

static void put(ax_dtype dtype, int64_t at, uint64_t bits) {
  memcpy(in + (size_t)at * ax_dtype_bytes(dtype), &bits, ax_dtype_bytes(dtype));
}

/* Mostly any bits of one sign, so that the edges among them are often the result. */
static uint64_t element(ax_dtype dtype, uint64_t row) {
  const uint64_t all = UINT64_MAX >> (64 - 8 * ax_dtype_bytes(dtype)), sign = all / 2 + 1;
  const uint64_t infinity = dtype == AX_BF16  ? 0x7f80
                            : dtype == AX_F16 ? 0x7c00
                            : dtype == AX_F32 ? 0x7f800000
                                              : 0x7ff0000000000000;
  const uint64_t edges[] = {0, sign, 1, sign | 1, infinity, sign | infinity, infinity - 1, sign | (infinity - 1)};
  const uint64_t number = draw() % (infinity / 4);
  if (row % 5 == 0) return draw() % 2 * sign;                             /* zeros */
  if (row % 5 == 1) return edges[draw() % AX_COUNT(edges)];
  if (row % 5 == 2 && draw() % 16 == 0) return (draw() & sign) | infinity | (1 + draw() % (sign - infinity - 1)); /* NaNs */
  return row % 2 == 0 ? number : sign | number;
}

/* Of [rows, columns], over columns or over rows. */
static void extremes_of(ax_compiler *jit, ax_dtype dtype, ax_scalar reduce, bool over_rows, int64_t rows, int64_t columns) {
  ax_arena arena = {0};
  const int64_t kept = over_rows ? columns : rows, reduced = over_rows ? rows : columns, dims[] = {kept, reduced},
                shape[] = {rows, columns};
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  ax_position at[2], to[1];
  ax_at_identity(at, 2);
  ax_at_identity(to, 1);
  if (over_rows) at[0].dim = 1, at[1].dim = 0;
  uint32_t from = ax_kernel_slot(k, dtype, 2, shape), result = ax_kernel_slot(k, dtype, 1, &kept);
  ax_kernel_store(k, result, to, ax_kernel_load(k, from, at), reduce);
  for (int64_t i = 0; i < rows * columns; i++) put(dtype, i, element(dtype, (uint64_t)(over_rows ? i % columns : i / columns)));
  run(jit, k);
  for (int64_t i = 0; i < kept; i++) {
    double wanted = reduce == AX_SCALAR_MAX ? -INFINITY : INFINITY, got = load_number(dtype, out, i).f;
    for (int64_t j = 0; j < reduced; j++) {
      const double x = load_number(dtype, in, over_rows ? j * columns + i : i * columns + j).f;
      wanted = reduce == AX_SCALAR_MAX ? float_max(wanted, x) : -float_max(-wanted, -x);
    }
    if (isnan(wanted) ? !isnan(got) : got != wanted || signbit(got) != signbit(wanted))
      fail_msg("%s of %s[%lld,%lld] over %s: %a at %lld, not %a", ax_scalar_name(reduce), ax_dtype_name(dtype), (long long)rows,
               (long long)columns, over_rows ? "rows" : "columns", got, (long long)i, wanted);
  }
  ax_arena_deinit(&arena);
}

static void extremes(void **unused) {
  static const int64_t sizes[][2] = {{7, 1}, {5, 3}, {40, 17}, {33, 64}, {11, 100}, {3, 1025}, {100, 33}, {65, 63}};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (int d = AX_BF16; d <= AX_F64; d++)
      for (uint32_t s = 0; s < AX_COUNT(sizes); s++)
        for (int way = 0; way < 4; way++)
          extremes_of(jits[w], (ax_dtype)d, way % 2 ? AX_SCALAR_MAX : AX_SCALAR_MIN, way / 2, sizes[s][0], sizes[s][1]);
}

/* All bits there are, reversed, where an element is chosen; zeros elsewhere. */
static void moves(void **unused) {
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (int d = AX_BF16; d <= AX_F16; d++)
      for (int64_t first = 0; first < 65536; first += most) {
        ax_arena arena = {0};
        const int64_t elems = most - 3; /* and a remainder */
        ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &elems);
        ax_position at[1], back[1] = {{.dim = 0, .coef = -1, .offset = most - 1, .dynamic = AX_NONE}};
        const int64_t dims[] = {most};
        ax_at_identity(at, 1);
        uint32_t from = ax_kernel_slot(k, (ax_dtype)d, 1, dims), to = ax_kernel_slot(k, (ax_dtype)d, 1, &elems);
        ax_ex early = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, ax_kernel_index(k, 0), ax_kernel_const(k, AX_S64, 4000), AX_NONE);
        ax_ex value = ax_kernel_op(k, AX_SCALAR_SELECT, (ax_dtype)d, early, ax_kernel_load(k, from, back),
                                   ax_kernel_const(k, (ax_dtype)d, 0));
        ax_kernel_store(k, to, at, value, AX_SCALAR_NONE);
        for (int64_t i = 0; i < most; i++) put((ax_dtype)d, i, (uint64_t)(first + i));
        run(jits[w], k);
        for (int64_t i = 0; i < elems; i++)
          assert_int_equal(bits_at((ax_dtype)d, out, i), i < 4000 ? (uint64_t)(first + most - 1 - i) : 0);
        ax_arena_deinit(&arena);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(extremes),
      cmocka_unit_test(moves),
  };
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
