/* Angles of f32 above 2^17, of every exponent: their sines and cosines, in registers of 32 bytes. jit/accuracy_test.c measures all widths. */
#include "jit/math/vector_math.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define AX_VECTOR_BYTES 32
#include "jit/math/vector_lanes.h"

enum { lanes = AX_VECTOR_BYTES / 4 };
typedef f32s of_f32(f32s);

static void near(double x, double got, double wanted) {
  if (!(fabs(got - wanted) <= 0x1.8p-23 * fabs(wanted))) fail_msg("of %a: %.12g instead of %.12g", x, got, wanted);
}

static void try_angles(const uint32_t *bits) {
  f32s x;
  memcpy(&x, bits, sizeof x);
  const f32s sine = ((of_f32 *)ax_vector_math_32.f32[AX_SCALAR_SIN])(x), cosine = ((of_f32 *)ax_vector_math_32.f32[AX_SCALAR_COS])(x);
  for (int i = 0; i < lanes; i++) {
    near((double)x[i], (double)sine[i], sin((double)x[i]));
    near((double)x[i], (double)cosine[i], cos((double)x[i]));
  }
}

/* Beside others of all sizes. */
static void angles(void **state) {
  test_random random = {1};
  (void)state;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || ax_vector_math_32.f32[AX_SCALAR_SIN] == NULL) skip();
  for (uint32_t exponent = 144; exponent < 255; exponent++)
    for (int i = 0; i < 2000; i++) {
      uint32_t bits[lanes];
      for (int l = 0; l < lanes; l++)
        bits[l] = (uint32_t)(test_random_bits(&random) & 0x807fffff) | (l % 3 == 2 ? (uint32_t)(120 + i % 135) : exponent) << 23;
      if (i == 0) bits[0] &= 0xff800000u;
      if (i == 1) bits[0] |= 0x7fffff;
      try_angles(bits);
    }
}
#pragma GCC pop_options

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(angles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) { return 0; }
#endif
