/* Angles of f32 above 2^17, of every exponent: sines and cosines of the angle less its turns are those of the angle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "jit/math/large_angle.h"

static void near(float x, double got, double wanted) {
  if (!(fabs(got - wanted) <= 0x1p-26 * fabs(wanted))) fail_msg("of %a: %.12g instead of %.12g", (double)x, got, wanted);
}

static void try_angle(uint32_t bits) {
  const double pi = 3.141592653589793;
  float x;
  int odd;
  memcpy(&x, &bits, sizeof x);
  const double part = large_angle(x, &odd), sign = odd ? -1 : 1;
  assert_true(fabs(part) <= 0.5);
  near(x, sign * sin(pi * part), sin((double)x));
  near(x, sign * sin(pi * (0.5 - fabs(part))), cos((double)x));
}

static void angles(void **state) {
  uint64_t random = 1;
  (void)state;
  for (uint32_t exponent = 144; exponent < 255; exponent++)
    for (int i = 0; i < 2000; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const uint32_t fraction = i == 0 ? 0 : i == 1 ? 0x7fffff : (uint32_t)(random >> 40) & 0x7fffff;
      try_angle((uint32_t)(i % 2) << 31 | exponent << 23 | fraction);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(angles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
