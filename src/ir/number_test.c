/* Integers and decimals become floats by one rounding, to the nearest and of two as near to the even one: tried at ties and beside
   them. */
#include "ir/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text.h"
#include "support/cmocka.h"
#include "support/random.h"

static const ax_dtype floats[] = {AX_BF16, AX_F16, AX_F32};
static const int digits_of[] = {8, 11, 24}, least_of[] = {-133, -24, -149},
                 most_of[] = {127, 15, 127}; /* bits; of units; of numbers, as powers of 2 */

/* Two neighbours of a float dtype and the number in the middle between them; all are exact. */
typedef struct tie {
  double low, middle, high;
} tie;

static tie random_tie(test_random *random, int d, int least, int most) {
  const uint64_t whole = (uint64_t)1 << (digits_of[d] - 1) | (test_random_bits(random) & (((uint64_t)1 << (digits_of[d] - 1)) - 1));
  int exponent = least + (int)(test_random_bits(random) % (uint64_t)(most - least + 1)) - digits_of[d] + 1;
  if (exponent < least_of[d]) exponent = least_of[d];
  return (tie){ldexp((double)whole, exponent), ldexp((double)(2 * whole + 1), exponent - 1), ldexp((double)(whole + 1), exponent)};
}

static double even_of(int d, tie t) {
  uint64_t bits = 0;
  ax_number_store(floats[d], &bits, 0, (ax_number){.f = t.low});
  return bits % 2 == 0 ? t.low : t.high;
}

static void is_held(ax_dtype from, ax_dtype to, ax_number number, double wanted) {
  uint64_t element = 0;
  ax_number_store(to, &element, 0, ax_number_convert(from, to, number));
  const double got = ax_number_load(to, &element, 0).f;
  if (got != wanted)
    fail_msg("%s of %s %" PRId64 ": got %a, want %a", ax_dtype_name(to), ax_dtype_name(from), number.i, got, wanted);
}

static void integers(void **unused) {
  (void)unused;
  test_random random = {41};
  for (int d = 0; d < 3; d++)
    for (int i = 0; i < 20000; i++) {
      const tie t = random_tie(&random, d, digits_of[d] + 1, most_of[d] < 62 ? most_of[d] - 1 : 62);
      const int64_t middle = (int64_t)t.middle;
      for (int sign = -1; sign <= 1; sign += 2) {
        is_held(AX_S64, floats[d], (ax_number){.i = sign * middle}, sign * even_of(d, t));
        is_held(AX_S64, floats[d], (ax_number){.i = sign * (middle - 1)}, sign * t.low);
        is_held(AX_S64, floats[d], (ax_number){.i = sign * (middle + 1)}, sign * t.high);
      }
      const uint64_t larger = (uint64_t)middle * (d == 1 ? 1 : 2);
      is_held(AX_U64, floats[d], (ax_number){.u = larger - 1}, t.low * (d == 1 ? 1 : 2));
      is_held(AX_U64, floats[d], (ax_number){.u = larger + 1}, t.high * (d == 1 ? 1 : 2));
    }
  is_held(AX_U64, AX_F64, (ax_number){.u = UINT64_MAX}, 0x1p64);
  is_held(AX_U64, AX_F32, (ax_number){.u = UINT64_MAX}, 0x1p64);
  is_held(AX_S64, AX_F64, (ax_number){.i = INT64_MIN}, -0x1p63);
  is_held(AX_S64, AX_BF16, (ax_number){.i = INT64_MIN}, -0x1p63);
  is_held(AX_S64, AX_F16, (ax_number){.i = INT64_MAX}, INFINITY);
  is_held(AX_S64, AX_F64, (ax_number){.i = (INT64_C(1) << 53) + 1}, 0x1p53);
}

static void is_read(ax_dtype dtype, const char *word, double wanted) {
  uint64_t element = 0;
  if (!ax_element_parse(word, dtype, &element, 0)) fail_msg("%s is no %s", word, ax_dtype_name(dtype));
  const double got = ax_number_load(dtype, &element, 0).f;
  if (got != wanted) fail_msg("%s as %s: got %a, want %a", word, ax_dtype_name(dtype), got, wanted);
}

/* The middle between two neighbours, exactly; a little above and a little below it, in digits that no f64 has; all with a point
   that moves. */
static void around_tie(int d, tie t, int sign) {
  char exact[256], word[600];
  snprintf(exact, sizeof exact, "%s%.170e", sign < 0 ? "-" : "", t.middle);
  char *e = strchr(exact, 'e');
  const int exponent = atoi(e + 1);
  *e = '\0';
  snprintf(word, sizeof word, "%se%d", exact, exponent);
  is_read(floats[d], word, sign * even_of(d, t));
  snprintf(word, sizeof word, "%s00001e%d", exact, exponent);
  is_read(floats[d], word, sign * t.high);
  snprintf(word, sizeof word, "%s000.%s00001e%d", sign < 0 ? "-" : "", exact + (sign < 0), exponent);
  for (char *c = word + (sign < 0) + 4; *c != '\0'; c++) /* one point: behind 000, then 1.5 is written 15 */
    if (*c == '.') memmove(c, c + 1, strlen(c));
  *strchr(word, 'e') = '\0';
  snprintf(word + strlen(word), 16, "e%d", exponent + 1);
  is_read(floats[d], word, sign * t.high);
  char *last = exact + strlen(exact) - 1; /* one less in the last digit that is not 0, then nines */
  while (*last == '0' || *last == '.') last--;
  --*last;
  snprintf(word, sizeof word, "%.*s%s99999e%d", (int)(last + 1 - exact), exact, strchr(exact, '.') > last ? "." : "", exponent);
  is_read(floats[d], word, sign * t.low);
}

static void decimals(void **unused) {
  (void)unused;
  test_random random = {43};
  for (int d = 0; d < 3; d++)
    for (int i = 0; i < 5000; i++) around_tie(d, random_tie(&random, d, least_of[d], most_of[d] - 1), i % 2 == 0 ? 1 : -1);
  is_read(AX_F32, "1.000000059604644775390625000001", 0x1.000002p0);
  is_read(AX_F32, "1.000000059604644775390625", 1);
  is_read(AX_F16, "1e-400", 0);
  is_read(AX_F64, "0.1", 0.1);
}

/* The largest f32 and the tie above it, which would be infinite: refused from there on. */
static void largest(void **unused) {
  (void)unused;
  uint64_t element;
  is_read(AX_F32, "340282346638528859811704183484516925440", 0x1.fffffep127);
  is_read(AX_F32, "340282356779733661637539395458142568447.9999999999999999", 0x1.fffffep127);
  assert_false(ax_element_parse("340282356779733661637539395458142568448", AX_F32, &element, 0));
  is_read(AX_F16, "65519.99999999999999999999", 65504);
  assert_false(ax_element_parse("65520", AX_F16, &element, 0));
}

/* Complex numbers lie in memory as two floats; conversions from them drop the imaginary part, but to bool. */
static void complex_numbers(void **unused) {
  (void)unused;
  const ax_number z = {.f = 1.5, .imag = -0.25}, i = {.imag = 1};
  float narrow[4] = {0};
  double wide[4] = {0};
  ax_number_store(AX_C64, narrow, 1, z);
  ax_number_store(AX_C128, wide, 1, z);
  assert_true(narrow[2] == 1.5F && narrow[3] == -0.25F && wide[2] == 1.5 && wide[3] == -0.25);
  assert_true(ax_number_load(AX_C64, narrow, 1).imag == -0.25 && ax_number_load(AX_C128, wide, 1).f == 1.5);
  assert_int_equal(ax_number_convert(AX_C64, AX_S32, z).i, 1);
  assert_true(ax_number_convert(AX_C64, AX_F32, z).f == 1.5 && ax_number_convert(AX_C128, AX_C64, z).imag == -0.25);
  assert_true(ax_number_convert(AX_C64, AX_BOOL, i).u == 1 && ax_number_convert(AX_C64, AX_BOOL, (ax_number){0}).u == 0);
  assert_true(ax_number_convert(AX_S8, AX_C64, (ax_number){.i = -3}).f == -3 && ax_number_convert(AX_BOOL, AX_C64, (ax_number){.u = 1}).imag == 0);
  assert_true(ax_number_round(AX_C64, (ax_number){.imag = 0.1}).imag == (double)0.1F);
  assert_true(ax_number_holds(AX_C64, INFINITY) && !ax_number_holds(AX_C64, 1e39) && ax_number_holds(AX_C128, 1e39));
}

/* What the table says of complex numbers, beside floats and integers. */
static void complex_dtypes(void **unused) {
  (void)unused;
  assert_true(ax_is_complex(AX_C64) && ax_is_complex(AX_C128) && !ax_is_complex(AX_F64) && !ax_is_complex(AX_NO_DTYPE));
  assert_true(ax_part_dtype(AX_C64) == AX_F32 && ax_part_dtype(AX_C128) == AX_F64 && ax_part_dtype(AX_S8) == AX_S8);
  assert_true(ax_complex_dtype(AX_F32) == AX_C64 && ax_complex_dtype(AX_F64) == AX_C128 && ax_complex_dtype(AX_BF16) == AX_NO_DTYPE);
  assert_true(ax_widest_dtype(AX_C64) == AX_C128 && ax_widest_dtype(AX_BF16) == AX_F64 && ax_widest_dtype(AX_U8) == AX_U8);
  assert_true(ax_is_differentiable(AX_C64) && ax_rounds(AX_C64) && !ax_is_float(AX_C64));
  assert_true(ax_dtype_widens(AX_C64, AX_C128) && ax_dtype_widens(AX_F32, AX_C64) && !ax_dtype_widens(AX_C64, AX_F64));
}

/* Plain digits are the same number as with an exponent of 0, which strtod reads: few digits and many, small and large, at ties too. */
static void plain_digits(void **state) {
  (void)state;
  static const char *const hard[] = {"-0", "-0.0", "0.000", "5.", ".5", "16777217", "-16777217.0", "257.5", "2049", "0.1", "999999999999999", "9007199254740993"};
  static const ax_dtype dtypes[] = {AX_BF16, AX_F16, AX_F32, AX_F64};
  test_random random = {.state = 77};
  for (int i = 0; i < 20000; i++) {
    char plain[64], scaled[80], *end;
    if (i < (int)AX_COUNT(hard)) strcpy(plain, hard[i]);
    else {
      const int whole = (int)test_random_below(&random, 9), behind = (int)test_random_below(&random, 10);
      int n = sprintf(plain, "%s%lld", test_random_below(&random, 2) ? "-" : "", (long long)test_random_below(&random, (int64_t)pow(10, whole)));
      int64_t digits = test_random_below(&random, (int64_t)pow(10, behind));
      if (i % 3 == 0) digits -= digits % 125; /* eighths */
      if (behind > 0) sprintf(plain + n, ".%0*lld", behind, (long long)digits);
    }
    snprintf(scaled, sizeof scaled, "%se0", plain);
    for (size_t k = 0; k < AX_COUNT(dtypes); k++) {
      const double a = ax_number_decimal(dtypes[k], plain, &end).f;
      assert_int_equal(*end, '\0');
      const double b = ax_number_decimal(dtypes[k], scaled, &end).f;
      if (memcmp(&a, &b, sizeof a) != 0) fail_msg("%s of %s: %.17g, not %.17g", plain, ax_dtype_name(dtypes[k]), a, b);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(complex_numbers), cmocka_unit_test(complex_dtypes), cmocka_unit_test(integers),
      cmocka_unit_test(decimals), cmocka_unit_test(plain_digits),
      cmocka_unit_test(largest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
