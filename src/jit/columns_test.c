/* Columns of rows, loaded together (columns.c): each comes out as it lies, for rows of any length, runs with gaps in them, in whole
   and in ranges that begin anywhere, and nothing is read before the first element or after the last. So do sums and maxima of short
   rows, and such rows turned. */
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
#include "jit/reference_test.h"
#include "jit/widths_test.h"

enum { most_columns = 20 };

typedef struct shape {
  int64_t rows, row; /* elements of a row */
  uint32_t count;
  int64_t columns[most_columns];
} shape;

/* y[k, i] = x[i, columns[k]], but for the last column: of the two before it, the one that is greater. */
static ax_loop_kernel *columns_of(ax_arena *arena, ax_dtype dtype, const shape *s) {
  const int64_t from[] = {s->rows, s->row}, to[] = {s->count, s->rows}, dims[] = {s->rows, 1};
  ax_ex x[most_columns];
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 0, dims);
  uint32_t in = ax_kernel_slot(k, dtype, 2, from), out = ax_kernel_slot(k, dtype, 2, to);
  for (uint32_t c = 0; c < s->count; c++) {
    bool again = false; /* then it is another node, by a dimension of one index */
    for (uint32_t before = 0; before < c; before++) again = again || s->columns[before] == s->columns[c];
    ax_position at[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE},
                        {.dim = again ? 1 : -1, .coef = again, .offset = s->columns[c], .dynamic = AX_NONE}};
    x[c] = ax_kernel_load(k, in, at);
  }
  for (uint32_t c = 0; c < s->count; c++) {
    ax_position at[] = {{.dim = -1, .offset = c, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
    ax_ex value = x[c];
    if (c > 1 && c + 1 == s->count)
      value = ax_kernel_op(k, AX_SCALAR_SELECT, dtype, ax_kernel_op(k, AX_SCALAR_GT, AX_BOOL, x[c - 2], x[c - 1], AX_NONE),
                           x[c - 2], x[c - 1]);
    ax_kernel_store(k, out, at, value, AX_SCALAR_NONE);
  }
  assert_false(k->failed);
  return k;
}

/* Positive numbers of the dtype's order: bits that count up and down, none of them NaN. */
static uint64_t element(ax_dtype dtype, int64_t i) {
  const uint32_t bits = (uint32_t)i * 2654435761u;
  return ax_dtype_bytes(dtype) == 1   ? bits >> 26
         : ax_dtype_bytes(dtype) == 2 ? bits >> 18 & 0x3bff
         : ax_dtype_bytes(dtype) == 4 ? bits >> 2 & 0x3f7fffff
                                      : (uint64_t)(bits >> 2) << 24;
}

static void put(void *data, ax_dtype dtype, int64_t i, uint64_t bits) {
  memcpy((char *)data + i * (int64_t)ax_dtype_bytes(dtype), &bits, ax_dtype_bytes(dtype));
}

static uint64_t expected(const shape *s, ax_dtype dtype, uint32_t c, int64_t i) {
  uint64_t x = element(dtype, i * s->row + s->columns[c]);
  if (c < 2 || c + 1 != s->count) return x;
  uint64_t a = element(dtype, i * s->row + s->columns[c - 2]), b = element(dtype, i * s->row + s->columns[c - 1]);
  return a > b ? a : b;
}

static void try_shape(const shape *s, ax_dtype dtype, int w) {
  ax_arena arena = {0};
  ax_loop_kernel *kernel = columns_of(&arena, dtype, s);
  const size_t bytes = ax_dtype_bytes(dtype), in = (size_t)(s->rows * s->row) * bytes,
               out = (size_t)s->count * (size_t)s->rows * bytes;
  guarded x[2] = {guarded_create(in, true), guarded_create(in, false)};
  char *y = calloc(1, out), *wanted = calloc(1, out);
  ax_kernel_code code;
  if (ax_jit_compile(jits[w], (const ax_loop_kernel *[]){kernel}, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  for (int64_t i = 0; i < s->rows * s->row; i++)
    put(x[0].data, dtype, i, element(dtype, i)), put(x[1].data, dtype, i, element(dtype, i));
  for (uint32_t c = 0; c < s->count; c++)
    for (int64_t i = 0; i < s->rows; i++) put(wanted, dtype, c * s->rows + i, expected(s, dtype, c, i));
  for (int at = 0; at < 2; at++) {
    memset(y, 0xff, out);
    code((void *[]){x[at].data, y}, NULL, 0, s->rows / 3 + 1);
    code((void *[]){x[at].data, y}, NULL, s->rows / 3 + 1, s->rows);
    for (size_t i = 0; i < out; i += bytes)
      if (memcmp(y + i, wanted + i, bytes) != 0)
        fail_msg("%s [%lld,%lld], %u bytes, column %zu of %u, row %zu", ax_dtype_name(dtype), (long long)s->rows, (long long)s->row,
                 widths[w], i / bytes / (size_t)s->rows, s->count, i / bytes % (size_t)s->rows);
  }
  guarded_destroy(&x[0]);
  guarded_destroy(&x[1]);
  free(y);
  free(wanted);
  ax_arena_deinit(&arena);
}

static void shapes(void **unused) {
  static const shape all[] = {
      {8192, 10, 10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
      {8199, 5, 5, {4, 3, 2, 1, 0}},
      {8517, 9, 8, {1, 2, 3, 4, 5, 6, 7, 8}},
      {8193, 16, 16, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
      {8207, 33, 11, {3, 4, 5, 6, 20, 21, 22, 23, 24, 25, 26}},
      {8256, 17, 6, {2, 3, 4, 6, 7, 8}},
      {8194, 6, 5, {1, 2, 3, 4, 5}},
      {8192, 100, 4, {96, 97, 98, 99}},
      {8333, 13, 13, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
      {8200, 9, 3, {5, 6, 7}},
      {15, 7, 7, {0, 1, 2, 3, 4, 5, 6}},
      {8221, 20, 20, {19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
      {8207, 10, 7, {3, 4, 5, 6, 4, 5, 6}},
      {1, 12, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {500, 8, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
      {501, 8, 5, {6, 1, 3, 2, 5}},
      {333, 3, 2, {1, 2}},
      {333, 3, 2, {0, 2}},
      {49, 5, 3, {1, 2, 3}},
      {100, 16, 9, {4, 5, 6, 7, 8, 9, 10, 11, 12}},
      {49, 8, 6, {2, 3, 4, 5, 6, 7}}, /* the second range ends with whole vectors, and with memory */
      {97, 16, 13, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
      {77, 2, 3, {1, 0, 1}},
      {70, 15, 8, {0, 2, 4, 6, 8, 10, 12, 14}},
      {35, 14, 14, {13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
  };
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S8, AX_S32};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++)
      for (uint32_t s = 0; s < AX_COUNT(all); s++)
        try_shape(&all[s], dtypes[d], w);
}

/* --- Columns whose numbers are computed --- */

/* y[k, i] = x[i, at[k / 2] + k % 2]: two columns from each of two places, which the kernel does not know. */
static ax_loop_kernel *looked_up_of(ax_arena *arena, int64_t rows, int64_t row) {
  const int64_t from[] = {rows, row}, places[] = {2}, to[] = {4, rows};
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, &rows);
  const uint32_t in = ax_kernel_slot(k, AX_F32, 2, from), at = ax_kernel_slot(k, AX_S64, 1, places), out = ax_kernel_slot(k, AX_F32, 2, to);
  for (int64_t c = 0; c < 4; c++) {
    const ax_position place[] = {{.dim = -1, .offset = c / 2, .dynamic = AX_NONE}};
    const ax_position load[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE},
                                {.dim = -1, .offset = c % 2, .dynamic = ax_kernel_load(k, at, place), .limit = row - 2}},
                      store[] = {{.dim = -1, .offset = c, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
    ax_kernel_store(k, out, store, ax_kernel_load(k, in, load), AX_SCALAR_NONE);
  }
  assert_false(k->failed);
  return k;
}

static void looked_up(void **unused) {
  static const int64_t sizes[][2] = {{100, 4}, {500, 7}, {9000, 10}, {9001, 6}};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (size_t i = 0; i < AX_COUNT(sizes); i++) {
      const int64_t rows = sizes[i][0], row = sizes[i][1];
      int64_t at[] = {row - 2, 1};
      ax_arena arena = {0};
      ax_kernel_code code;
      float *x = malloc((size_t)(rows * row) * sizeof x[0]), *y = calloc((size_t)(4 * rows), sizeof y[0]);
      if (ax_jit_compile(jits[w], (const ax_loop_kernel *[]){looked_up_of(&arena, rows, row)}, 1, &code) != AX_OK)
        fail_msg("%s", ax_message());
      for (int64_t e = 0; e < rows * row; e++) x[e] = (float)e;
      code((void *[]){x, at, y}, NULL, 0, rows);
      for (int64_t c = 0; c < 4; c++)
        for (int64_t r = 0; r < rows; r++)
          if (y[c * rows + r] != (float)(r * row + at[c / 2] + c % 2))
            fail_msg("[%lld,%lld], %u bytes, column %lld, row %lld", (long long)rows, (long long)row, widths[w], (long long)c, (long long)r);
      free(x);
      free(y);
      ax_arena_deinit(&arena);
    }
}

/* --- Reductions of rows --- */

/* y[i] = the sum, or the greatest, of 2 x[i, ..] over the middle of rows that are longer by `more`. */
static ax_loop_kernel *reduction_of(ax_arena *arena, ax_dtype dtype, const int64_t *dims, int64_t more, ax_scalar reduce) {
  const int64_t from[] = {dims[0], dims[1] + more};
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 1, dims);
  ax_position at[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}, {.dim = 1, .coef = 1, .offset = more / 2, .dynamic = AX_NONE}},
              to[1];
  ax_at_identity(to, 1);
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, from), at);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 1, from), to, ax_kernel_op(k, AX_SCALAR_ADD, dtype, x, x, AX_NONE), reduce);
  assert_false(k->failed);
  return k;
}

/* Whole numbers whose sums every dtype has. */
static void fill_numbers(void *data, ax_dtype dtype, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const number x = {.f = (double)((uint32_t)i * 2654435761u >> 29) - 3}, whole = {.i = (int64_t)x.f};
    put(data, dtype, i, bits_of_number(dtype, ax_is_float(dtype) ? x : whole));
  }
}

static void try_reduction(ax_dtype dtype, int64_t rows, int64_t row, int64_t more, ax_scalar reduce, int w) {
  ax_arena arena = {0};
  const int64_t dims[] = {rows, row};
  ax_loop_kernel *kernel = reduction_of(&arena, dtype, dims, more, reduce);
  const size_t bytes = ax_dtype_bytes(dtype), in = (size_t)(rows * (row + more)) * bytes, out = (size_t)rows * bytes;
  guarded x[2] = {guarded_create(in, true), guarded_create(in, false)};
  char *y = calloc(1, out), *wanted = calloc(1, out);
  ax_kernel_code code;
  if (ax_jit_compile(jits[w], (const ax_loop_kernel *[]){kernel}, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  for (int at = 0; at < 2; at++) {
    fill_numbers(x[at].data, dtype, rows * (row + more));
    reference_run(kernel, (void *[]){x[at].data, wanted}, NULL, 0, rows);
    memset(y, 0xff, out);
    code((void *[]){x[at].data, y}, NULL, 0, rows / 3);
    code((void *[]){x[at].data, y}, NULL, rows / 3, rows);
    for (size_t i = 0; i < out; i += bytes)
      if (memcmp(y + i, wanted + i, bytes) != 0)
        fail_msg("%s of %s [%lld,%lld] of %lld, %u bytes, row %zu", reduce == AX_SCALAR_ADD ? "sum" : "max", ax_dtype_name(dtype),
                 (long long)rows, (long long)row, (long long)(row + more), widths[w], i / bytes);
  }
  guarded_destroy(&x[0]);
  guarded_destroy(&x[1]);
  free(y);
  free(wanted);
  ax_arena_deinit(&arena);
}

static void reductions(void **unused) {
  static const int64_t lengths[] = {2, 3, 5, 6, 7, 8, 9, 10, 13, 15, 16, 17, 20, 31, 33};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S8, AX_S32};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++)
      for (uint32_t l = 0; l < AX_COUNT(lengths); l++)
        try_reduction(dtypes[d], 8205, lengths[l], l % 4 == 3 ? 5 : 0, l % 2 == 0 ? AX_SCALAR_ADD : AX_SCALAR_MAX, w);
}

/* --- Short rows turned --- */

/* y[c, i] = x[i, c + more / 2] + w[c] + v[i], of rows that are longer by `more`. */
static ax_loop_kernel *turned_of(ax_arena *arena, ax_dtype dtype, int64_t rows, int64_t row, int64_t more) {
  const int64_t dims[] = {row, rows}, from[] = {rows, row + more};
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 0, dims);
  ax_position at[] = {{.dim = 1, .coef = 1, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .offset = more / 2, .dynamic = AX_NONE}},
              to[2];
  ax_at_identity(to, 2);
  k->ranged = 1;
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, from), at), w = ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, dims), to);
  ax_ex v = ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, dims + 1), at);
  ax_ex sum = ax_kernel_op(k, AX_SCALAR_ADD, dtype, ax_kernel_op(k, AX_SCALAR_ADD, dtype, x, w, AX_NONE), v, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), to, sum, AX_SCALAR_NONE);
  assert_false(k->failed);
  return k;
}

static void try_turned(ax_dtype dtype, int64_t rows, int64_t row, int64_t more, int width) {
  ax_arena arena = {0};
  ax_loop_kernel *kernel = turned_of(&arena, dtype, rows, row, more);
  const size_t bytes = ax_dtype_bytes(dtype), in = (size_t)(rows * (row + more)) * bytes, out = (size_t)(rows * row) * bytes;
  guarded x = guarded_create(in, more == 0);
  char *y = calloc(1, out), *wanted = calloc(1, out), *w = calloc((size_t)row, bytes), *v = calloc((size_t)rows, bytes);
  ax_kernel_code code;
  if (ax_jit_compile(jits[width], (const ax_loop_kernel *[]){kernel}, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  fill_numbers(x.data, dtype, rows * (row + more));
  fill_numbers(w, dtype, row);
  fill_numbers(v, dtype, rows);
  reference_run(kernel, (void *[]){x.data, w, v, wanted}, NULL, 0, row);
  code((void *[]){x.data, w, v, y}, NULL, 0, rows / 3);
  code((void *[]){x.data, w, v, y}, NULL, rows / 3, rows);
  for (size_t i = 0; i < out; i += bytes)
    if (memcmp(y + i, wanted + i, bytes) != 0)
      fail_msg("%s [%lld,%lld] of %lld, %u bytes, column %zu, row %zu", ax_dtype_name(dtype), (long long)rows, (long long)row,
               (long long)(row + more), widths[width], i / bytes / (size_t)rows, i / bytes % (size_t)rows);
  guarded_destroy(&x);
  free(y);
  free(wanted);
  free(w);
  free(v);
  ax_arena_deinit(&arena);
}

static void turned(void **unused) {
  static const int64_t lengths[] = {2, 3, 5, 6, 9, 12, 13, 16};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S8, AX_S32};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++)
      for (uint32_t l = 0; l < AX_COUNT(lengths); l++) try_turned(dtypes[d], 8205, lengths[l], l % 3 == 2 ? 3 : 0, w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(looked_up), cmocka_unit_test(reductions), cmocka_unit_test(turned)};
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
