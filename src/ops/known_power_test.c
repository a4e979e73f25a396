/* Powers whose exponent is a number: which are written as roots and products, also where the exponent is a sum or difference, and that
   all give what pow does, for zeros, infinities, NaN and subnormal numbers too. */
#include "ops/known_power.h"

#include <math.h>
#include <stdio.h>

#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

enum { count = 64 };

typedef struct dtype_case {
  const char *name;
  ax_dtype dtype;
  double last_place;
} dtype_case;

static const dtype_case dtypes[] = {
    {"f32", AX_F32, 0x1p-23}, {"f64", AX_F64, 0x1p-52}, {"bf16", AX_BF16, 0x1p-7}, {"f16", AX_F16, 0x1p-10}};

/* x to the power that `exponent` makes, as a program's text; "%1$s" stands for the dtype. The reciprocal tells 0 from -0. */
static ax_program *power(const dtype_case *d, const char *exponent) {
  char form[512], text[1024];
  snprintf(form, sizeof form,
           "{ lambda x:%%1$s[64]. let %s y:%%1$s[64] = broadcast_in_dim[shape=(64,) broadcast_dimensions=()] n z:%%1$s[64] = pow x y "
           "r:%%1$s[64] = integer_pow[y=-1] z s:%%1$s[64] = sign r in (z, s) }",
           exponent);
  snprintf(text, sizeof text, form, d->name);
  return test_parsed(text);
}

static bool is_left(ax_program *program) {
  ax_program *simple;
  TEST_OK(ax_program_simplify(program, &simple));
  const bool left = test_count_prim(simple, "pow") > 0;
  ax_program_release(simple);
  return left;
}

static void check(const char *exponent, bool left) {
  test_random random = {23};
  for (size_t i = 0; i < AX_COUNT(dtypes); i++) {
    ax_program *program = power(&dtypes[i], exponent);
    assert_int_equal(is_left(program), left);
    for (int round = 0; round < 2; round++) {
      const ax_type type = TEST_TYPE(dtypes[i].dtype, count);
      ax_tensor *x = round == 0 ? test_edge_tensor(&random, type) : test_random_tensor(&random, type, -2, 3);
      TEST_EVERY_WAY(program, &x, 2 * dtypes[i].last_place);
      ax_tensor_release(x);
    }
    ax_program_release(program);
  }
}

static void numbers(void **state) {
  (void)state;
  check("n:%1$s[] = add 0.5:%1$s[] 0.0:%1$s[]", false);
  check("n:%1$s[] = sub 1.5:%1$s[] 1.0:%1$s[]", false);
  check("n:%1$s[] = sub 3.0:%1$s[] 1.0:%1$s[]", false);
  check("n:%1$s[] = add 2.0:%1$s[] 1.0:%1$s[]", false);
  check("n:%1$s[] = sub 2.0:%1$s[] 1.0:%1$s[]", false);
  check("n:%1$s[] = sub 0.0:%1$s[] 1.0:%1$s[]", false);
  check("n:%1$s[] = sub 1.0:%1$s[] 1.0:%1$s[]", false);
  check("n:%1$s[] = sub 3.5:%1$s[] 1.0:%1$s[]", true);
  check("n:%1$s[] = sub 0.5:%1$s[] 1.0:%1$s[]", true);
  check("n:%1$s[] = mul 0.5:%1$s[] 1.0:%1$s[]", false); /* the product is simplified first */
}

/* Floats of a byte, of which some have no infinity. */
static void byte_floats(void **state) {
  (void)state;
  static const dtype_case bytes[] = {{"f8e4m3fn", AX_F8E4M3FN, 0}, {"f8e5m2", AX_F8E5M2, 0}};
  test_random random = {3};
  for (size_t i = 0; i < AX_COUNT(bytes); i++) {
    ax_program *program = power(&bytes[i], "n:%1$s[] = sub 1.5:%1$s[] 1.0:%1$s[]");
    ax_tensor *x = test_random_tensor(&random, TEST_TYPE(bytes[i].dtype, count), 0, 8);
    assert_true(is_left(program));
    TEST_EVERY_WAY(program, &x, 0.26);
    ax_tensor_release(x);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(byte_floats)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
