/* Stores that fill memory together (woven.c): columns of rows of two to sixteen elements come out as they are, in whichever order
   they are stored, in whole and in ranges; where a column is missing, what lies in its place stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/guarded_test.h"
#include "jit/jit.h"
#include "jit/widths_test.h"

enum { most_columns = 17 };

typedef struct shape {
  int64_t rows;
  uint32_t row, count;            /* elements of a row; columns that are stored */
  uint32_t columns[most_columns]; /* in the order of the stores */
  int64_t skipped;                /* rows before the first */
  uint32_t unrolled;              /* 1: by dimensions, or one store goes along a dimension of so many columns */
} shape;

static uint64_t element(int64_t i, uint32_t column) { return (uint64_t)(i * 5 + column * 77 + 3) * 0x9e3779b97f4a7c15u; }

static void put(void *data, ax_dtype dtype, int64_t i, uint64_t bits) {
  if (dtype == AX_BOOL) bits = bits >> 40 & 1;
  memcpy((char *)data + i * (int64_t)ax_dtype_bytes(dtype), &bits, ax_dtype_bytes(dtype));
}

/* y[skipped + i, columns[c]] = x[c, i]. whole: not to be cut into ranges, and memory ends with the rows. */
static ax_loop_kernel *stores_of(ax_arena *arena, ax_dtype dtype, const shape *s, bool whole) {
  const int64_t from[] = {s->count, s->rows}, to[] = {s->skipped + s->rows + !whole, s->row}, dims[] = {s->rows, s->unrolled};
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 0, dims);
  const uint32_t in = ax_kernel_slot(k, dtype, 2, from), out = ax_kernel_slot(k, dtype, 2, to);
  k->ranged = whole;
  for (uint32_t c = 0; c < (s->unrolled > 1 ? 1 : s->count); c++) {
    const bool along = s->unrolled > 1;
    const ax_position load[] = {{.dim = along ? 1 : -1, .coef = along, .offset = c, .dynamic = AX_NONE},
                                {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
    const ax_position at[] = {{.dim = 0, .coef = 1, .offset = s->skipped, .dynamic = AX_NONE},
                              {.dim = along ? 1 : -1, .coef = along, .offset = s->columns[c], .dynamic = AX_NONE}};
    ax_kernel_store(k, out, at, ax_kernel_load(k, in, load), AX_SCALAR_NONE);
  }
  assert_false(k->failed);
  return k;
}

static void try_shape(const shape *s, ax_dtype dtype, bool whole, int w) {
  ax_arena arena = {0};
  ax_loop_kernel *kernel = stores_of(&arena, dtype, s, whole);
  const size_t bytes = ax_dtype_bytes(dtype), in = s->count * (size_t)s->rows * bytes,
               out = (size_t)(s->skipped + s->rows + !whole) * s->row * bytes;
  char *x = calloc(1, in), *wanted = malloc(out);
  guarded y[2] = {guarded_create(out, true), guarded_create(out, false)};
  ax_kernel_code code;
  if (ax_jit_compile(jits[w], (const ax_loop_kernel *[]){kernel}, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  memset(wanted, 0xa5, out);
  for (uint32_t c = 0; c < s->count; c++)
    for (int64_t i = 0; i < s->rows; i++) {
      put(x, dtype, c * s->rows + i, element(i, c));
      put(wanted, dtype, (s->skipped + i) * s->row + s->columns[c], element(i, c));
    }
  for (int at = 0; at < 2; at++) {
    memset(y[at].data, 0xa5, out);
    code((void *[]){x, y[at].data}, NULL, 0, whole ? s->unrolled : s->rows / 3 + 1);
    if (!whole) code((void *[]){x, y[at].data}, NULL, s->rows / 3 + 1, s->rows);
    for (size_t i = 0; i < out; i += bytes)
      if (memcmp((char *)y[at].data + i, wanted + i, bytes) != 0)
        fail_msg("%s [%lld,%u], %u bytes: element %zu", ax_dtype_name(dtype), (long long)s->rows, s->row, widths[w], i / bytes);
  }
  guarded_destroy(&y[0]);
  guarded_destroy(&y[1]);
  free(x);
  free(wanted);
  ax_arena_deinit(&arena);
}

static void shapes(void **unused) {
  static const shape all[] = {
      {1000, 2, 2, {0, 1}, 0, 1},          {1003, 2, 2, {1, 0}, 3, 1},       {997, 3, 3, {2, 0, 1}, 1, 1},
      {1024, 3, 3, {0, 1, 2}, 0, 1},       {1025, 4, 4, {3, 1, 0, 2}, 2, 1}, {64, 4, 4, {0, 1, 2, 3}, 0, 1},
      {5, 2, 2, {0, 1}, 0, 1},             {1, 3, 3, {0, 1, 2}, 0, 1},       {777, 3, 2, {0, 2}, 0, 1},
      {1001, 4, 3, {1, 2, 3}, 5, 1},       {600, 5, 5, {0, 1, 2, 3, 4}, 0, 1}, {2048, 2, 1, {1}, 0, 1},
      {1500, 2, 2, {0, 1}, 0, 2},          {1501, 3, 3, {0, 1, 2}, 2, 3},    {9001, 4, 4, {0, 1, 2, 3}, 0, 4},
      {9000, 4, 2, {0, 1}, 0, 2},          {1003, 8, 8, {7, 0, 1, 2, 3, 4, 5, 6}, 0, 1},
      {501, 7, 7, {6, 5, 4, 3, 2, 1, 0}, 1, 1}, {500, 6, 6, {0, 1, 2, 3, 4, 5}, 0, 1},
      {333, 12, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 2, 1},
      {257, 13, 13, {1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 0, 1},
      {130, 16, 16, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0, 1},
      {130, 17, 17, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 0, 1},
      {400, 8, 7, {0, 1, 2, 3, 4, 5, 6}, 0, 1}, {3, 9, 9, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 0, 1},
  };
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S8, AX_S32, AX_BOOL, AX_U16, AX_U64};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++)
      for (size_t i = 0; i < AX_COUNT(all); i++)
        for (int whole = 0; whole < 2; whole++) try_shape(&all[i], dtypes[d], whole, w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(shapes, make_jits, destroy_jits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
