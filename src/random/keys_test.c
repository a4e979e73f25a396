/* Bits and keys: what the authors of Threefry publish, arrays of keys, and the numbers that draws begin with. */
#include "random/keys.h"

#include <float.h>
#include <math.h>

#include "axle/axle.h"
#include "base/threefry.h"
#include "random/draw.h"
#include "random/erf_inv.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static void published(void **state) {
  (void)state;
  assert_true(ax_threefry_bits(0, 0) == 0x6b20015999ba4efe);
  assert_true(ax_threefry_bits(UINT64_MAX, UINT64_MAX) == 0x1cb996fcbb002be7);
  assert_true(ax_threefry_bits(0x13198a2e03707344, 0x243f6a8885a308d3) == 0xc4923a9c483df7a0);
}

/* --- Arrays of keys: each key gives what it gives alone --- */

enum { KEYS = 3, EACH = 5 };

static AX_BODY(of_all) {
  out[0] = ax_keys_bits(in[0], AX_U32, 1, (int64_t[]){EACH});
  out[1] = ax_keys_split(in[0], 1, (int64_t[]){EACH});
  ax_draw draw = {.name = "test", .key = in[0], .dtype = AX_F32, .shape = {.count = 1, .v = {EACH}}};
  const ax_value keys = ax_draw_keys(&draw, 2);
  const ax_draw second = ax_draw_from(&draw, keys, 1), wide = ax_draw_wider(&second, 2, 0), doubles = ax_draw_as(&wide, AX_F64);
  out[2] = ax_draw_unit(&doubles);
  out[3] = ax_key_word(in[0], 1);
}
static AX_BODY(of_one) {
  const ax_value second = ax_at(ax_random_split(in[0], AX_DIMS(2)), 1, 0);
  out[0] = ax_random_bits(in[0], AX_U32, AX_DIMS(EACH));
  out[1] = ax_random_split(in[0], AX_DIMS(EACH));
  out[2] = ax_random_uniform(second, AX_F64, AX_DIMS(2, EACH), ax_real(0), ax_real(1));
  out[3] = ax_at(in[0], 1, 0);
}

static void arrays_of_keys(void **state) {
  (void)state;
  static const uint32_t keys[KEYS][2] = {{0, 0}, {UINT32_MAX, 7}, {3, 0x80000000}};
  const ax_host_array all = ax_host_view(AX_U32, AX_DIMS(KEYS, 2), keys);
  ax_host_array together[4], alone[4];
  TEST_OK(ax_apply(NULL, AX_FN(of_all, 1, 4), &all, together));
  for (int k = 0; k < KEYS; k++) {
    const ax_host_array one = ax_host_view(AX_U32, AX_DIMS(2), keys[k]);
    TEST_OK(ax_apply(NULL, AX_FN(of_one, 1, 4), &one, alone));
    for (int i = 0; i < 4; i++) {
      const ax_type type = ax_array_type(alone[i].dtype, AX_LIST(alone[i].rank, alone[i].dims));
      const size_t bytes = (size_t)ax_type_elems(&type) * ax_dtype_bytes(type.dtype);
      assert_int_equal(together[i].dtype, alone[i].dtype);
      assert_memory_equal((const char *)together[i].data + (size_t)k * bytes, alone[i].data, bytes);
      ax_host_array_release(&alone[i]);
    }
  }
  for (int i = 0; i < 4; i++) ax_host_array_release(&together[i]);
}

/* --- The inverse of erf, and what it is made of --- */

enum { POINTS = 9 };
static const double points[POINTS] = {-1, -0.999999, -0.7, -0x1p-60, 0, 0.1, 0.95, 1, 1.5};

static AX_BODY(inverse_of) { out[0] = ax_draw_erf_inv_of(in[0]); }
static AX_BODY(inverses) {
  const ax_value ones = ax_full_like(in[0], 1);
  out[0] = ax_draw_erf_inv(in[0]);
  ax_jvp(AX_FN(inverse_of, 1, 1), AX_FIRST(1), in, &ones, &out[1], &out[2]);
}

static void inverse_of_erf(void **state) {
  (void)state;
  const ax_host_array x = ax_host_view(AX_F64, AX_DIMS(POINTS), points);
  ax_host_array made[3];
  TEST_OK(ax_apply(NULL, AX_FN(inverses, 1, 3), &x, made));
  const double *y = made[0].data, *same = made[1].data, *slope = made[2].data;
  assert_true(isinf(y[0]) && y[0] < 0 && isinf(y[7]) && y[7] > 0 && isnan(y[8]) && y[4] == 0);
  for (int i = 1; i < 7; i++) {
    assert_true(y[i] == same[i]);
    assert_true(fabs(erf(y[i]) - points[i]) <= 1e-15 * fmax(fabs(points[i]), 0x1p-60));
    assert_true(fabs(slope[i] * exp(-y[i] * y[i]) * 2 / sqrt(acos(-1)) - 1) < 1e-12);
  }
  for (int i = 0; i < 3; i++) ax_host_array_release(&made[i]);
}

static void numbers_of_dtypes(void **state) {
  (void)state;
  assert_true(ax_dtype_epsilon(AX_F32) == (double)FLT_EPSILON && ax_dtype_epsilon(AX_F64) == DBL_EPSILON);
  assert_true(ax_dtype_tiny(AX_F32) == (double)FLT_MIN && ax_dtype_tiny(AX_F64) == DBL_MIN);
  assert_true(ax_dtype_epsilon(AX_BF16) == 0x1p-7 && ax_dtype_tiny(AX_F16) == 0x1p-14);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(published), cmocka_unit_test(arrays_of_keys), cmocka_unit_test(inverse_of_erf),
                                     cmocka_unit_test(numbers_of_dtypes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
