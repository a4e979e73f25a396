/* argmax of every dtype against its definition, along axes of lengths around those at which it is compiled in another way: ties,
   zeros of both signs, infinities, and NaN first, last and more than once. */
#include <math.h>
#include <stdio.h>

#include "axle/ops.h"
#include "base/base.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/layouts.h"
#include "support/run.h"
#include "support/sample.h"
#include "support/tensor.h"

static ax_runtime *runtime;

enum { before = 3, few = 37, many = 2731, longest = 40 };

static AX_BODY(argmax) { out[0] = ax_argmax(in[0], *(const int64_t *)context, AX_S32); }

static const double numbers[] = {0, 1, 1, 3, 2, 3, 7, 5}, floats[] = {-0.0, 0, -2, 1, 1, -INFINITY, INFINITY, NAN};

/* Few different values, so that many are equal; NaN and +inf in some places only. */
static double value_at(ax_dtype dtype, int64_t i) {
  const uint32_t bits = (uint32_t)i * 2654435761u >> 13;
  if (dtype == AX_BOOL) return bits % 3 == 0;
  if (!ax_is_float(dtype)) return numbers[bits % 8];
  const double value = floats[bits % 8];
  return (isnan(value) || value == INFINITY) && bits / 8 % 4 != 0 ? -1 : value;
}

static int64_t first_greatest(const double *x, int64_t count, int64_t step) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; i++)
    if (x[i * step] > x[best * step] || (isnan(x[i * step]) && !isnan(x[best * step]))) best = i;
  return best;
}

static void check(ax_dtype dtype, int64_t axis, int64_t length, int64_t after) {
  static double data[before * many * longest];
  const int64_t inner = axis == 2 ? 1 : axis == 1 ? after : before * after;
  const ax_type type = axis == 2   ? TEST_TYPE(dtype, before, after, length)
                       : axis == 1 ? TEST_TYPE(dtype, before, length, after)
                                   : TEST_TYPE(dtype, length, before, after);
  const int64_t elems = before * after * length;
  for (int64_t i = 0; i < elems; i++) data[i] = value_at(dtype, i);
  ax_program *program = test_trace(argmax, &axis, &type, 1, 1);
  ax_tensor *in = test_tensor(type, data), *out;
  test_execute(runtime, program, &in, &out);
  for (int64_t i = 0; i < before * after; i++) {
    int64_t wanted = first_greatest(data + i / inner * inner * length + i % inner, length, inner);
    if (test_get(out, i) != (double)wanted)
      fail_msg("%s along %lld of %lld, result %lld: %g, not %lld", ax_dtype_name(dtype), (long long)axis, (long long)length,
               (long long)i, test_get(out, i), (long long)wanted);
  }
  test_release(&in, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

static void first_of_the_greatest(void **state) {
  static const int64_t lengths[] = {1, 2, 3, 5, 8, 15, 16, 17, 40};
  static const ax_dtype dtypes[] = {AX_F64, AX_F32, AX_F16, AX_BF16, AX_S8, AX_S32, AX_S64, AX_U8, AX_U64, AX_BOOL};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (int64_t axis = 0; axis < 3; axis++)
      for (size_t l = 0; l < AX_COUNT(lengths); l++) {
        check(dtypes[d], axis, lengths[l], few);
        if (axis == 2) check(dtypes[d], axis, lengths[l], many); /* rows */
      }
}

/* The axis is cut: evenly, with padding, with devices that have only padding; equal elements and NaN on several devices, and places
   that the padding's would be too many for. */
static void along_what_is_cut(void **state) {
  static const int64_t lengths[] = {1, 2, 3, 5, 8, 15, 16, 40, 256};
  static const ax_dtype dtypes[] = {AX_F32, AX_BF16, AX_S8, AX_S32, AX_U64, AX_BOOL}, places[] = {AX_S32, AX_U8, AX_S64};
  static const test_layout layouts[] = {{"a=2,b=4", "a -> "}, {"a=2,b=4", "b+a, -> "}, {"a=3", "a -> "}, {"a=3,b=2", "a,b -> b"}};
  char text[200];
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t l = 0; l < AX_COUNT(lengths); l++)
      for (size_t k = 0; k < AX_COUNT(layouts) * 2; k++) {
        const ax_type type = TEST_TYPE(dtypes[d], lengths[l], few);
        snprintf(text, sizeof text, "{ lambda x:%s[%lld,%d]. let y:%s[%d] = %s[axes=(0,) index_dtype=%s] x in (y,) }",
                 ax_dtype_name(dtypes[d]), (long long)lengths[l], few, ax_dtype_name(places[k % 3]), few,
                 k % 2 ? "argmax" : "argmin", ax_dtype_name(places[k % 3]));
        ax_program *program = test_parsed(text);
        ax_tensor *in = test_tensor(type, NULL);
        for (int64_t i = 0; i < lengths[l] * few; i++)
          test_set(in, i, i % few == 0 && dtypes[d] != AX_BOOL && ax_is_float(dtypes[d]) ? -INFINITY : value_at(dtypes[d], i));
        test_same_laid_out(runtime, program, &layouts[k / 2], &in, 0);
        test_release(&in, 1);
        ax_program_release(program);
      }
}

/* Each device receives the extremes and the places of the others, and not the array. */
static void little_is_exchanged(void **state) {
  (void)state;
  ax_program *program = test_parsed("{ lambda x:f32[4096,16]. let y:s32[16] = argmax[axes=(0,) index_dtype=s32] x in (y,) }");
  assert_true(test_received(program, &(test_layout){"a=8", "a -> "}) <= 2 * 7 * 16 * 4);
  ax_program_release(program);
}

static int start(void **state) {
  (void)state;
  return ax_runtime_create(NULL, &runtime) != AX_OK;
}

static int stop(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(first_of_the_greatest), cmocka_unit_test(along_what_is_cut),
                                     cmocka_unit_test(little_is_exchanged)};
  return cmocka_run_group_tests(tests, start, stop);
}
