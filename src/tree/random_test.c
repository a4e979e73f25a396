/* Random numbers and initialisers against those of jax.random and jax.nn.initializers (tests/vectors/make_trees.py). */
#include "tree/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/npy.h"
#include "ir/number.h"
#include "support/cmocka.h"
#include "support/tensor.h"
#include "tree/init.h"

static const char *vectors_path = "tests/vectors/trees.npz";
enum { seed = 20261120 }; /* make_trees.py's */

static const char *const rules[] = {
    "zeros",         "ones",         "constant(1.1)",  "uniform",       "normal(2.5)", "truncated_normal(0.3)",
    "lecun_uniform", "lecun_normal", "glorot_uniform", "glorot_normal", "he_uniform",  "he_normal"};

/* What the authors publish with the generator, and jax.random.fold_in. */
static void bits(void **state) {
  (void)state;
  ax_fill_key zero = ax_fill_key_fold_in((ax_fill_key){{0, 0}}, 0), pi = ax_fill_key_fold_in(ax_fill_key_of(7), 3);
  assert_true(zero.word[0] == 0x6b200159 && zero.word[1] == 0x99ba4efe);
  assert_true(pi.word[0] == 276534068 && pi.word[1] == 1641862660);
  assert_int_equal(ax_fill_key_of(0x123456789abcdef0).word[0], 0x12345678);
}

/* Numbers that lie close to 0 are the difference of larger ones: the unit is that of the array's own size. In f64 JAX's inverse of
   erf is off by up to 17 units. */
static void compare(const char *rule, ax_dtype dtype, uint32_t leaf, const ax_host_array *want) {
  ax_type type = ax_array_type(dtype, AX_LIST(want->rank, want->dims));
  int64_t elems = ax_type_elems(&type);
  double data[128], size = 0, epsilon = dtype == AX_F64 ? 0x1p-52 : dtype == AX_F32 ? 0x1p-23 : dtype == AX_F16 ? 0x1p-10 : 0x1p-7;
  assert_true(elems <= 128);
  TEST_OK(ax_init_fill(rule, strlen(rule), &type, ax_fill_key_fold_in(ax_fill_key_of(seed), leaf), data));
  for (int64_t i = 0; i < elems; i++) size += fabs(ax_number_load(dtype, want->data, i).f) / (double)elems;
  for (int64_t i = 0; i < elems; i++) {
    double ours = ax_number_load(dtype, data, i).f, theirs = ax_number_load(dtype, want->data, i).f;
    if (!(fabs(ours - theirs) <= (dtype == AX_F64 ? 32 : 4) * epsilon * fmax(fabs(theirs), size)))
      fail_msg("%s of %s: element %lld is %.17g, in JAX %.17g", rule, ax_dtype_name(dtype), (long long)i, ours, theirs);
  }
}

static void initialisers(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
  ax_npz *npz;
  TEST_OK(ax_npz_read(vectors_path, &npz));
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (uint32_t i = 0; i < AX_COUNT(rules); i++) {
      char name[64];
      snprintf(name, sizeof name, "init.%s.%s", rules[i], ax_dtype_name(dtypes[d]));
      assert_non_null(ax_npz_find(npz, name));
      compare(rules[i], dtypes[d], i, ax_npz_find(npz, name));
    }
  ax_npz_release(npz);
}

/* Of very many: the mean, the deviation, and how far out they go. */
static void tails(void **state) {
  (void)state;
  enum { count = 1 << 20 };
  static float data[count];
  static double doubles[count];
  double sum = 0, squares = 0, most = 0;
  ax_random_fill(ax_fill_key_of(1), AX_NORMAL, 0, 1, 1, AX_F32, count, data);
  ax_random_fill(ax_fill_key_of(1), AX_NORMAL, 0, 1, 1, AX_F64, count, doubles);
  for (int i = 0; i < count; i++) {
    sum += (double)data[i];
    squares += (double)data[i] * (double)data[i];
    most = fmax(most, fabs((double)data[i]));
    assert_true(isfinite(data[i]) && isfinite(doubles[i]) && fabs(doubles[i]) < 8.3);
  }
  assert_true(fabs(sum / count) < 4e-3 && fabs(squares / count - 1) < 6e-3 && most > 4.4 && most < 5.5);
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *rule;
    ax_type type;
    const char *part;
  } cases[] = {
      {"zeroes", {.dtype = AX_F32}, "\"zeroes\" is no initializer; there are zeros, ones, constant, uniform"},
      {"", {.dtype = AX_F32}, "\"\" is no initializer"},
      {"normal(x)", {.dtype = AX_F32}, "normal(x): \"x\" is not a finite number"},
      {"normal(inf)", {.dtype = AX_F32}, "is not a finite number"},
      {"normal(1", {.dtype = AX_F32}, "expected one number in parentheses"},
      {"normal(1)2", {.dtype = AX_F32}, "expected one number in parentheses"},
      {"zeros(1)", {.dtype = AX_F32}, "zeros takes no number"},
      {"constant", {.dtype = AX_F32}, "constant needs a number"},
      {"constant(0.5)", {.dtype = AX_S32}, "constant: s32 does not hold 0.5"},
      {"constant(300)", {.dtype = AX_U8}, "u8 does not hold 300"},
      {"constant(1e30)", {.dtype = AX_F16}, "f16 does not hold 1e+30"},
      {"constant(2)", {.dtype = AX_BOOL}, "bool does not hold 2"},
      {"normal", {.dtype = AX_S32}, "normal gives floats, not s32[]"},
      {"he_normal",
       {.dtype = AX_F32, .rank = 1, .dims = {4}},
       "he_normal counts what goes in and out: it needs 2 dimensions, not f32[4]"},
      {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", {.dtype = AX_F32}, "aaa..\" is no initializer"},
  };
  double data[16];
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    TEST_FAILS(ax_init_fill(cases[i].rule, strlen(cases[i].rule), &cases[i].type, (ax_fill_key){{0, 0}}, data),
               AX_INVALID_ARGUMENT, cases[i].part);
  const ax_type truth = {.dtype = AX_BOOL, .rank = 1, .dims = {2}}, empty = {.dtype = AX_F32, .rank = 2, .dims = {0, 3}};
  TEST_OK(ax_init_fill("ones", 4, &truth, (ax_fill_key){{0, 0}}, data));
  assert_memory_equal(data, "\1\1", 2);
  TEST_OK(ax_init_fill("he_normal", 9, &empty, (ax_fill_key){{0, 0}}, data));
}

static void numbers_are_rounded_to_their_dtype(void **state) {
  (void)state;
  assert_true(ax_rounded(AX_F64, 1 + 0x1p-52) == 1 + 0x1p-52);
  assert_true(ax_rounded(AX_F32, 1 + 0x1p-24) == 1); /* a tie, to even */
  assert_true(ax_rounded(AX_F16, 1 + 0x1.8p-10) == 1 + 0x1p-9);
  assert_true(ax_rounded(AX_BF16, 1 + 0x1.1p-8) == 1 + 0x1p-7);
}

static void an_element_depends_on_its_key_and_place_alone(void **state) {
  (void)state;
  float few[3], many[100];
  ax_random_fill(ax_fill_key_of(5), AX_UNIFORM, -2, 4, 1, AX_F32, 3, few);
  ax_random_fill(ax_fill_key_of(5), AX_UNIFORM, -2, 4, 1, AX_F32, 100, many);
  assert_memory_equal(few, many, sizeof few);
  double sum = 0;
  for (int i = 0; i < 100; i++) {
    assert_true(many[i] >= -2 && many[i] < 4);
    sum += (double)many[i];
  }
  assert_true(fabs(sum / 100 - 1) < 1); /* the mean is 1, give or take 0.17 */
  ax_random_fill(ax_fill_key_of(5), AX_UNIFORM, -2, 4, 0.5, AX_F32, 3, few);
  for (int i = 0; i < 3; i++) assert_true(few[i] == 0.5f * many[i]);
}

int main(int argc, char **argv) {
  if (argc > 1) vectors_path = argv[1]; /* tests/oracle/run gives fresh ones */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bits),
      cmocka_unit_test(initialisers),
      cmocka_unit_test(tails),
      cmocka_unit_test(refused),
      cmocka_unit_test(numbers_are_rounded_to_their_dtype),
      cmocka_unit_test(an_element_depends_on_its_key_and_place_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
