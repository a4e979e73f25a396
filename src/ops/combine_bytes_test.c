/* Numbers of one byte combined by tables: all pairs of all dtypes, with the bits of the reference evaluator, whichever thread comes
   first, and also where there are more combinations than tables. */
#include "ops/combine_bytes.h"

#include <pthread.h>
#include <string.h>

#include "ir/dtype.h"
#include "ops/pointwise.h"
#include "support/cmocka.h"

enum { numbers = 256, threads = 4 };
static const ax_scalar operations[] = {AX_SCALAR_ADD, AX_SCALAR_MUL, AX_SCALAR_MIN, AX_SCALAR_MAX};

typedef struct work {
  ax_scalar operation;
  ax_dtype dtype;
  const uint8_t *wanted; /* of b and a, in this order */
  int wrong;
} work;

/* Row b: each a, combined with b. */
static void *all_pairs(void *context) {
  static const int64_t first = 0;
  work *w = context;
  uint8_t to[numbers], from[numbers];
  for (int b = 0; b < numbers; b++) {
    for (int a = 0; a < numbers; a++) to[a] = (uint8_t)a, from[a] = (uint8_t)b;
    ax_combine_bytes(w->operation, w->dtype, &(ax_combined){(char *)to, (const char *)from, 0, 0, &first, &first, 1, numbers, false});
    w->wrong += memcmp(to, w->wanted + b * numbers, numbers) != 0;
  }
  return NULL;
}

static void evaluate(ax_scalar operation, ax_dtype dtype, uint8_t *out) {
  for (int i = 0; i < numbers * numbers; i++) {
    const uint8_t a = (uint8_t)i, b = (uint8_t)(i / numbers);
    const ax_number x[] = {ax_number_load(dtype, &a, 0), ax_number_load(dtype, &b, 0)};
    ax_number_store(dtype, &out[i], 0, ax_scalar_eval(operation, dtype, x, 0));
  }
}

static void pairs(void **state) {
  static uint8_t wanted[numbers * numbers];
  uint32_t combinations = 0;
  (void)state;
  for (int dtype = AX_BOOL; dtype < AX_KEY; dtype++)
    for (size_t o = 0; o < AX_COUNT(operations); o++) {
      work of[threads];
      pthread_t id[threads];
      if (ax_combiner(operations[o], (ax_dtype)dtype) != ax_combine_bytes) continue;
      evaluate(operations[o], (ax_dtype)dtype, wanted);
      for (int t = 0; t < threads; t++) {
        of[t] = (work){operations[o], (ax_dtype)dtype, wanted, 0};
        assert_int_equal(pthread_create(&id[t], NULL, all_pairs, &of[t]), 0);
      }
      for (int t = 0; t < threads; t++) pthread_join(id[t], NULL);
      for (int t = 0; t < threads; t++)
        if (of[t].wrong > 0) fail_msg("%s of %s: %d rows differ", ax_scalar_name(operations[o]), ax_dtype_name((ax_dtype)dtype), of[t].wrong);
      combinations++;
    }
  assert_true(combinations > 24);
}

static void no_others(void **state) {
  (void)state;
  assert_ptr_not_equal(ax_combiner(AX_SCALAR_ADD, AX_S8), ax_combine_bytes);
  assert_ptr_not_equal(ax_combiner(AX_SCALAR_ADD, AX_BF16), ax_combine_bytes);
  assert_ptr_not_equal(ax_combiner(AX_SCALAR_ADD, AX_BOOL), ax_combine_bytes);
  assert_ptr_not_equal(ax_combiner(AX_SCALAR_ADD, AX_F8E8M0FNU), ax_combine_bytes);
  assert_ptr_not_equal(ax_combiner(AX_SCALAR_NONE, AX_F8E5M2), ax_combine_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pairs), cmocka_unit_test(no_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
