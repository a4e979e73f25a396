/* Floats of a byte and integers of less than 8 bits: every number of each as f32, and each bf16, each f16 and the numbers around all
   middles as each of them, beside ml_dtypes (vectors/dtypes.npz), by reference evaluation and compiled; f64, and all sums,
   differences, products and quotients of two of them, from first principles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "ir/number.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static const char *vectors_path = "tests/vectors/dtypes.npz";
static ax_npz *vectors;
static ax_runtime *runtime;

/* The floats of a byte, one after the other. */
static ax_dtype next_float(ax_dtype from) {
  while (from < AX_DTYPE_COUNT && !ax_is_byte_float(from)) from++;
  return from;
}
#define EACH_FLOAT(dtype) (ax_dtype dtype = next_float(AX_NO_DTYPE); dtype < AX_DTYPE_COUNT; dtype = next_float(dtype + 1))

enum { words = 1 << 16 };
static const uint32_t widths[] = {64, 32, 16};

static int setup(void **state) {
  (void)state;
  setenv("AXLE_SUBNORMALS", "keep", 1); /* the least power of 2 is one of f32 */
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_npz_read(vectors_path, &vectors));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  ax_npz_release(vectors);
  ax_runtime_release(runtime);
  return 0;
}

static const ax_host_array *vector(ax_dtype dtype, const char *what) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s", ax_dtype_name(dtype), what);
  const ax_host_array *array = ax_npz_find(vectors, dtype == AX_NO_DTYPE ? what : name);
  if (array == NULL) fail_msg("no vector %s", name);
  return array;
}

static void same_number(ax_dtype dtype, int64_t bits, double got, double wanted) {
  if (isnan(got) ? !isnan(wanted) : got != wanted || signbit(got) != signbit(wanted))
    fail_msg("%s of bits %llx is %g, not %g", ax_dtype_name(dtype), (unsigned long long)bits, got, wanted);
}

/* --- Compiled and by reference --- */

typedef struct conversion {
  ax_dtype to;
} conversion;

static void convert(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_convert_element_type(in[0], ((const conversion *)context)->to);
}

static void in_ways(ax_program *program, ax_tensor *const *in, void (*look)(const ax_tensor *, const void *), const void *context) {
  ax_tensor *out;
  TEST_OK(ax_evaluate(program, in, &out));
  look(out, context);
  test_release(&out, 1);
  for (uint32_t w = 0; w < AX_COUNT(widths); w++) {
    test_use_vectors(runtime, widths[w]);
    test_execute(runtime, program, in, &out);
    look(out, context);
    test_release(&out, 1);
  }
}

typedef struct wanted_bits {
  const ax_tensor *from;
  const uint8_t *bits;
} wanted_bits;

static void look_at_bits(const ax_tensor *got, const void *context) {
  const wanted_bits *w = context;
  for (int64_t i = 0; i < test_elems(got); i++) {
    const uint8_t bits = ((const uint8_t *)got->data)[i];
    if (bits != w->bits[i])
      fail_msg("%s of %s %a (element %lld): bits %x, not %x", ax_dtype_name(got->dtype), ax_dtype_name(w->from->dtype),
               test_get(w->from, i), (long long)i, bits, w->bits[i]);
  }
}

static void look_at_numbers(const ax_tensor *got, const void *context) {
  const ax_host_array *wanted = context;
  for (int64_t i = 0; i < test_elems(got); i++) same_number(AX_F32, i, test_get(got, i), ax_host_at(wanted, i));
}

static void check(ax_dtype to, ax_tensor *from, void (*look)(const ax_tensor *, const void *), const void *context) {
  conversion c = {to};
  const ax_type type = ax_array_type(from->dtype, AX_LIST(from->rank, from->dims));
  ax_program *program = test_trace(convert, &c, &type, 1, 1);
  in_ways(program, &from, look, context);
  ax_program_release(program);
}

static ax_tensor *all_bits(ax_dtype dtype, int64_t count) {
  ax_tensor *x = test_tensor(TEST_TYPE(dtype, count), NULL);
  for (int64_t i = 0; i < count; i++)
    if (ax_dtype_bytes(dtype) == 1) ((uint8_t *)x->data)[i] = (uint8_t)i;
    else ((uint16_t *)x->data)[i] = (uint16_t)i;
  return x;
}

static void numbers_of_all_bits(void **state) {
  (void)state;
  for EACH_FLOAT(dtype) {
    const ax_host_array *wanted = vector(dtype, "f32");
    assert_int_equal(wanted->dims[0], 1 << ax_dtype_get(dtype)->bits);
    ax_tensor *x = all_bits(dtype, wanted->dims[0]);
    for (int64_t i = 0; i < wanted->dims[0]; i++) same_number(dtype, i, test_get(x, i), ax_host_at(wanted, i));
    check(AX_F32, x, look_at_numbers, wanted);
    test_release(&x, 1);
  }
}

static void bits_of(const char *what, ax_tensor *from) {
  for EACH_FLOAT(dtype) {
    const ax_host_array *wanted = vector(dtype, what);
    assert_int_equal(wanted->dims[0], test_elems(from));
    check(dtype, from, look_at_bits, &(wanted_bits){from, wanted->data});
  }
}

static void all_halves_beside_ml_dtypes(void **state) {
  (void)state;
  ax_tensor *bf16 = all_bits(AX_BF16, words), *f16 = all_bits(AX_F16, words);
  bits_of("from_bf16", bf16);
  bits_of("from_f16", f16);
  test_release(&bf16, 1);
  test_release(&f16, 1);
}

static void middles_beside_ml_dtypes(void **state) {
  (void)state;
  const ax_host_array *numbers = vector(AX_NO_DTYPE, "f32");
  ax_tensor *x = test_tensor(TEST_TYPE(AX_F32, numbers->dims[0]), NULL);
  memcpy(x->data, numbers->data, test_tensor_bytes(x));
  bits_of("from_f32", x);
  test_release(&x, 1);
}

/* --- From first principles --- */

/* The numbers of a dtype without a sign, in order, and the one that would follow the largest. */
typedef struct ladder {
  ax_dtype dtype;
  uint32_t count;
  double step[257];
} ladder;

static ladder ladder_of(ax_dtype dtype) {
  ladder l = {.dtype = dtype, .count = (uint32_t)ax_float_largest_bits(dtype) + 1};
  for (uint32_t i = 0; i < l.count; i++) l.step[i] = ax_number_load(dtype, &(uint8_t){(uint8_t)i}, 0).f;
  const double last = l.step[l.count - 1], before = l.step[l.count - 2];
  l.step[l.count] = ax_has_sign(dtype) ? 2 * last - before : 2 * last;
  return l;
}

/* The nearest one's bits; of two as near the even one, or of powers of 2 the larger one. */
static uint8_t nearest(const ladder *l, double x) {
  const ax_dtype_info *info = ax_dtype_get(l->dtype);
  const uint8_t sign = (uint8_t)(1 << (info->bits - 1)), nan = (uint8_t)ax_float_nan_bits(l->dtype);
  if (isnan(x) || (!ax_has_sign(l->dtype) && !(x > 0))) return nan;
  const double size = fabs(x);
  uint32_t at = 0;
  while (at < l->count && l->step[at + 1] <= size) at++;
  const double half = at < l->count ? (l->step[at] + l->step[at + 1]) / 2 : 0;
  if (at < l->count && (size > half || (size == half && (at % 2 == 1 || !ax_has_sign(l->dtype))))) at++;
  if (size < l->step[0]) at = 0;
  else if (!ax_has_sign(l->dtype) && at == 0 && size > l->step[0]) at = 1; /* as ml_dtypes: up */
  const uint8_t bits = at < l->count ? (uint8_t)at : (uint8_t)ax_float_infinity_bits(l->dtype);
  const bool signless = info->specials == AX_SPECIALS_ONE_ZERO && (bits == 0 || bits == nan);
  return signbit(x) && !signless ? bits | sign : bits;
}

static void doubles_are_rounded_once(void **state) {
  (void)state;
  enum { count = 20000 };
  test_random random = {7};
  ax_tensor *x = test_tensor(TEST_TYPE(AX_F64, count), NULL);
  uint8_t *wanted = malloc(count);
  for EACH_FLOAT(dtype) {
    const ladder l = ladder_of(dtype);
    for (int64_t i = 0; i < count; i++) {
      const uint32_t at = (uint32_t)test_random_below(&random, l.count);
      const double middle = (l.step[at] + l.step[at + 1]) / 2, least = l.step[1] - l.step[0];
      const double beside[] = {middle, nextafter(middle, 0), nextafter(middle, INFINITY), l.step[at],
                               test_random_uniform(&random, l.step[at], l.step[at + 1]), least * 0x1p-20};
      const double size = beside[i % 6];
      ((double *)x->data)[i] = i % 2 == 0 ? size : -size;
      wanted[i] = nearest(&l, i % 2 == 0 ? size : -size);
    }
    check(dtype, x, look_at_bits, &(wanted_bits){x, wanted});
  }
  test_release(&x, 1);
  free(wanted);
}

typedef struct operation {
  ax_value (*made)(ax_value, ax_value);
  double (*exact)(double, double);
} operation;

static double plus(double x, double y) { return x + y; }
static double minus(double x, double y) { return x - y; }
static double times(double x, double y) { return x * y; }
static double over(double x, double y) { return x / y; }
static ax_value add(ax_value x, ax_value y) { return ax_add(x, y); }
static ax_value sub(ax_value x, ax_value y) { return ax_sub(x, y); }
static ax_value mul(ax_value x, ax_value y) { return ax_mul(x, y); }
static ax_value div_by(ax_value x, ax_value y) { return ax_div(x, y); }
static const operation operations[] = {{add, plus}, {sub, minus}, {mul, times}, {div_by, over}};

static void operate(const ax_value *in, ax_value *out, void *context) {
  out[0] = ((const operation *)context)->made(in[0], in[1]);
}

/* Of numbers without NaN, so that only bits are compared; f32 holds each operation's result exactly enough. */
static void operations_are_rounded_once(void **state) {
  (void)state;
  for EACH_FLOAT(dtype) {
    const ladder l = ladder_of(dtype);
    const int64_t count = 1 << ax_dtype_get(dtype)->bits;
    const ax_type types[] = {TEST_TYPE(dtype, count * count), TEST_TYPE(dtype, count * count)};
    ax_tensor *in[] = {test_tensor(types[0], NULL), test_tensor(types[1], NULL)};
    uint8_t *wanted = malloc((size_t)(count * count));
    for (int64_t i = 0; i < count * count; i++) {
      ((uint8_t *)in[0]->data)[i] = (uint8_t)(i / count);
      ((uint8_t *)in[1]->data)[i] = (uint8_t)(i % count);
    }
    for (size_t o = 0; o < AX_COUNT(operations); o++) {
      for (int64_t i = 0; i < count * count; i++) {
        const double exact = operations[o].exact(test_get(in[0], i), test_get(in[1], i));
        wanted[i] = nearest(&l, (double)(float)exact == 0 || isinf((float)exact) ? (double)(float)exact : exact);
        if (isnan(exact) && ax_dtype_get(dtype)->specials != AX_SPECIALS_ONE_ZERO && ax_has_sign(dtype)) {
          ((uint8_t *)in[0]->data)[i] = ((uint8_t *)in[1]->data)[i] = 1;
          wanted[i] = nearest(&l, operations[o].exact(l.step[1], l.step[1]));
        }
      }
      ax_program *program = test_trace(operate, (void *)(uintptr_t)&operations[o], types, 2, 1);
      in_ways(program, in, look_at_bits, &(wanted_bits){in[0], wanted});
      ax_program_release(program);
    }
    test_release(in, 2);
    free(wanted);
  }
}

/* --- Integers --- */

static const ax_dtype integers[] = {AX_S2, AX_S4, AX_U2, AX_U4};

static int64_t wrapped(ax_dtype dtype, int64_t x) {
  const int64_t size = 1 << ax_dtype_get(dtype)->bits, low = ((x % size) + size) % size;
  return ax_has_sign(dtype) && low >= size / 2 ? low - size : low;
}

static void look_at_wrapped(const ax_tensor *got, const void *context) {
  const ax_tensor *from = context;
  for (int64_t i = 0; i < test_elems(got); i++) {
    const double x = test_get(from, i), low = (double)wrapped(got->dtype, INT64_MIN / 2), size = 1 << ax_dtype_get(got->dtype)->bits;
    const double least = ax_has_sign(got->dtype) ? -size / 2 : low, most = least + size - 1;
    const double wanted = !ax_is_float(from->dtype) ? (double)wrapped(got->dtype, (int64_t)x)
                          : isnan(x)                ? 0
                                                    : fmin(fmax(trunc(x), least), most);
    if (test_get(got, i) != wanted)
      fail_msg("%s of %g is %g, not %g", ax_dtype_name(got->dtype), x, test_get(got, i), wanted);
    if (((const uint8_t *)got->data)[i] >> ax_dtype_get(got->dtype)->bits != 0) fail_msg("bits above those of %g", wanted);
  }
}

/* Integers wrap, floats are cut off and end at the largest and the least. */
static void short_integers_of_all(void **state) {
  (void)state;
  static const ax_dtype froms[] = {AX_S8, AX_U8, AX_S16, AX_S32, AX_U32, AX_S64, AX_F32, AX_F64, AX_BF16, AX_F8E4M3FN, AX_S4, AX_U4};
  for (size_t f = 0; f < AX_COUNT(froms); f++) {
    ax_tensor *x = test_tensor(TEST_TYPE(froms[f], 600), NULL);
    for (int64_t i = 0; i < 600; i++) {
      const double number = ax_is_float(froms[f]) ? (i == 0 ? NAN : i == 1 ? INFINITY : (double)(i - 300) / 16) : (double)(i - 300);
      ax_number_store(froms[f], x->data, i, ax_number_convert(AX_F64, AX_S64, (ax_number){.f = number}));
      if (ax_is_float(froms[f])) test_set(x, i, number);
    }
    for (size_t k = 0; k < AX_COUNT(integers); k++)
      if (integers[k] != froms[f]) check(integers[k], x, look_at_wrapped, x);
    test_release(&x, 1);
  }
}

static void look_at_products(const ax_tensor *got, const void *context) {
  ax_tensor *const *in = context;
  const int64_t m = got->dims[0], n = got->dims[1], depth = in[0]->dims[1];
  for (int64_t i = 0; i < m * n; i++) {
    double sum = 0;
    for (int64_t j = 0; j < depth; j++) sum += test_get(in[0], i / n * depth + j) * test_get(in[1], j * n + i % n);
    if (ax_is_float(got->dtype)) {
      sum = ax_number_round(got->dtype, (ax_number){.f = sum}).f;
    } else {
      sum = (double)wrapped(got->dtype, (int64_t)sum);
    }
    if (test_get(got, i) != sum && !(isnan(sum) && isnan(test_get(got, i))))
      fail_msg("product of %s, element %lld: %g, not %g", ax_dtype_name(in[0]->dtype), (long long)i, test_get(got, i), sum);
  }
}

static void multiply(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

/* Sums of few small factors, which f32 holds exactly. */
static void products(void **state) {
  (void)state;
  test_random random = {11};
  for (ax_dtype dtype = AX_S2; dtype < AX_DTYPE_COUNT; dtype++) {
    if (!ax_is_byte_float(dtype) && !ax_is_short_integer(dtype)) continue;
    const ax_type types[] = {TEST_TYPE(dtype, 37, 40), TEST_TYPE(dtype, 40, 33)};
    ax_tensor *in[] = {test_random_tensor(&random, types[0], 0, 3), test_random_tensor(&random, types[1], 0, 3)};
    ax_program *program = test_trace(multiply, NULL, types, 2, 1);
    in_ways(program, in, look_at_products, in);
    ax_program_release(program);
    test_release(in, 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_of_all_bits),         cmocka_unit_test(all_halves_beside_ml_dtypes),
      cmocka_unit_test(middles_beside_ml_dtypes),    cmocka_unit_test(doubles_are_rounded_once),
      cmocka_unit_test(operations_are_rounded_once), cmocka_unit_test(short_integers_of_all),
      cmocka_unit_test(products),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
