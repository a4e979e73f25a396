/* Kernels that run: what is reduced up to each step is stored, as the plain way gives it, along lanes and across them, forward and
   back, of any length; nothing is read or written outside; and errors do not grow with the length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/guarded_test.h"
#include "jit/jit.h"
#include "jit/nest/schedule.h"
#include "jit/reference_test.h"
#include "jit/widths_test.h"

typedef struct example {
  ax_dtype dtype;
  ax_scalar reduce;
  int64_t outer, length, inner;
  bool reverse;
} example;

/* y[o, n, i] = x[o, 0 .. n, i], reduced, twice; reverse: x[o, n .., i]. Each x is increased first. */
static ax_loop_kernel *kernel_of(ax_arena *arena, const example *e) {
  const int64_t dims[] = {e->outer, e->inner, e->length}, array[] = {e->outer, e->length, e->inner};
  ax_loop_kernel *k = ax_kernel_create(arena, 3, 1, dims);
  ax_position at[3];
  ax_at_identity(at, 3);
  at[1].dim = 2, at[2].dim = 1;
  if (e->reverse) at[1].coef = -1, at[1].offset = e->length - 1;
  k->running = true;
  const uint64_t one = bits_of_number(e->dtype, ax_is_float(e->dtype) ? (number){.f = 1} : (number){.i = 1});
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, e->dtype, 3, array), at);
  x = ax_kernel_op(k, AX_SCALAR_ADD, e->dtype, x, ax_kernel_const(k, e->dtype, (int64_t)one), AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, e->dtype, 3, array), at, x, e->reduce);
  assert_false(k->failed);
  return k;
}

/* Whole numbers; few are not -1, so that narrow floats have their sums. */
static void fill(void *data, ax_dtype dtype, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const uint32_t bits = (uint32_t)i * 2654435761u;
    const number x = {.f = bits >> 25 == 7 ? (double)(bits >> 22 & 3) - 2 : -1}, whole = {.i = (int64_t)x.f};
    const uint64_t own = bits_of_number(dtype, ax_is_float(dtype) ? x : whole);
    memcpy((char *)data + (size_t)i * ax_dtype_bytes(dtype), &own, ax_dtype_bytes(dtype));
  }
}

static void compile(int w, const ax_loop_kernel *kernel, ax_kernel_code *code) {
  if (ax_jit_compile(jits[w], (const ax_loop_kernel *[]){kernel}, 1, code) != AX_OK) fail_msg("%s", ax_message());
}

static void try_one(const example *e, int w) {
  ax_arena arena = {0};
  ax_loop_kernel *kernel = kernel_of(&arena, e);
  const size_t bytes = (size_t)(e->outer * e->length * e->inner) * ax_dtype_bytes(e->dtype);
  char *wanted = malloc(bytes);
  ax_kernel_code code;
  compile(w, kernel, &code);
  for (int at = 0; at < 2; at++) {
    guarded x = guarded_create(bytes, at == 0), y = guarded_create(bytes, at == 0);
    fill(x.data, e->dtype, e->outer * e->length * e->inner);
    reference_run(kernel, (void *[]){x.data, wanted}, NULL, 0, e->outer);
    code((void *[]){x.data, y.data}, NULL, 1, e->outer);
    code((void *[]){x.data, y.data}, NULL, 0, 1);
    if (memcmp(y.data, wanted, bytes) != 0)
      fail_msg("%s %d of [%lld,%lld,%lld]%s, %u bytes", ax_dtype_name(e->dtype), (int)e->reduce, (long long)e->outer,
               (long long)e->length, (long long)e->inner, e->reverse ? " back" : "", widths[w]);
    guarded_destroy(&x);
    guarded_destroy(&y);
  }
  free(wanted);
  ax_arena_deinit(&arena);
}

static void every_kind(void **unused) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S8, AX_U16, AX_S32, AX_S64};
  static const ax_scalar reduces[] = {AX_SCALAR_ADD, AX_SCALAR_MAX, AX_SCALAR_MIN, AX_SCALAR_MUL};
  static const int64_t sizes[][3] = {{2, 1, 5},   {3, 2, 1},  {2, 16, 1},  {2, 67, 1},
                                     {1, 301, 1}, {2, 40, 3}, {2, 35, 33}, {1, 20, 700}};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++)
      for (uint32_t s = 0; s < AX_COUNT(sizes); s++)
        for (uint32_t r = 0; r < 2; r++)
          try_one(&(example){dtypes[d], reduces[(d + s + 2 * r) % 4], sizes[s][0], sizes[s][1], sizes[s][2], (d + s) % 3 == 0}, w);
}

/* Fractions of one sign, all the same: each addition errs to one side, and a long sum would lose digits. */
static void long_sums(void **unused) {
  enum { length = 1000000, most_units = 8 };
  static const ax_dtype dtypes[] = {AX_F32, AX_F64};
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++) {
      ax_arena arena = {0};
      const example e = {dtypes[d], AX_SCALAR_ADD, 1, length, 1, false};
      ax_kernel_code code;
      void *x = malloc(length * 8), *y = malloc(length * 8);
      const number tenth = {.f = round_dtype(e.dtype, 0.1)};
      const double each = round_dtype(e.dtype, tenth.f + 1), unit = ldexp(1, e.dtype == AX_F32 ? -24 : -53);
      for (int64_t i = 0; i < length; i++) store_number(e.dtype, x, i, tenth);
      compile(w, kernel_of(&arena, &e), &code);
      code((void *[]){x, y}, NULL, 0, 1);
      for (int64_t i = 0; i < length; i++) {
        const long double wanted = (long double)each * (long double)(i + 1), found = (long double)load_number(e.dtype, y, i).f;
        if (fabsl(found - wanted) > most_units * (long double)unit * wanted)
          fail_msg("%s, %u bytes, after %lld: off by %.3g units", ax_dtype_name(e.dtype), widths[w], (long long)i + 1,
                   (double)((found - wanted) / wanted) / unit);
      }
      free(x);
      free(y);
      ax_arena_deinit(&arena);
    }
}

/* An infinite sum stays infinite, and what comes before it stays finite. */
static void infinite(void **unused) {
  enum { length = 1000, at = 500 };
  (void)unused;
  for (int w = 0; w < width_count; w++)
    for (int f64 = 0; f64 < 2; f64++) {
      ax_arena arena = {0};
      const example e = {f64 ? AX_F64 : AX_F32, AX_SCALAR_ADD, 1, length, 1, false};
      double x[length], y[length];
      ax_kernel_code code;
      for (int64_t i = 0; i < length; i++) store_number(e.dtype, x, i, (number){.f = i == at ? INFINITY : 1});
      compile(w, kernel_of(&arena, &e), &code);
      code((void *[]){x, y}, NULL, 0, 1);
      for (int64_t i = 0; i < length; i++) {
        const double found = load_number(e.dtype, y, i).f, wanted = i < at ? 2.0 * (double)(i + 1) : INFINITY;
        if (found != wanted) fail_msg("%s, %u bytes, at %lld: %g", ax_dtype_name(e.dtype), widths[w], (long long)i, found);
      }
      ax_arena_deinit(&arena);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind), cmocka_unit_test(long_sums), cmocka_unit_test(infinite)};
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
