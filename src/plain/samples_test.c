/* Every sample whose program is replaced gives what Axle's own primitives give, as far as results are unique: vectors of eigh and svd are
   compared up to a sign each, and of eig and schur what no order and no choice of vectors changes. */
#include <stdio.h>

#include "ir/prim.h"
#include "plain/plain.h"
#include "support/cmocka.h"
#include "support/compare.h"
#include "support/run.h"
#include "support/vectors.h"

enum { most = 32 };

/* Elements of complex matrices, too, may be off by so many units of the largest one. */
static void compare(const test_instance *instance, const ax_tensor *got, const ax_tensor *wanted) {
  test_sample sample = *instance->sample;
  test_instance judged = *instance;
  sample.sums = sample.sums || sample.by_largest;
  if (ax_is_complex(got->dtype)) judged.sample = &sample;
  test_compare(&judged, "plain", got, wanted, NULL);
}

static void check_instance(const test_instance *given, uint32_t *replaced) {
  ax_tensor *in[most] = {NULL}, *got[most] = {NULL}, *wanted[most] = {NULL};
  ax_program *plain;
  test_instance fixed = *given;
  const test_instance *instance = &fixed;
  TEST_OK(test_fixed_program(given->program, &fixed.program));
  TEST_OK(ax_plain_program(instance->program, &(ax_plain_lacks){.lapack = true}, &plain));
  TEST_OK(ax_program_verify(plain));
  test_random random = test_instance_random(given);
  if (plain != instance->program) {
    const uint32_t in_count = plain->in_count, out_count = plain->out_count;
    ++*replaced;
    for (uint32_t i = 0; i < in_count; i++)
      in[i] = test_random_tensor(&random, plain->types[i], test_low(instance->sample), test_high(instance->sample));
    if (test_passes(instance, "its own", test_try(instance->program, in, wanted)) && test_passes(instance, "plain", test_try(plain, in, got))) {
      test_align_vectors(instance->program, got, wanted);
      for (uint32_t k = 0; k < out_count; k++) compare(instance, got[k], wanted[k]);
    }
    test_release(in, in_count), test_release(got, out_count), test_release(wanted, out_count);
  }
  ax_program_release(plain), ax_program_release(fixed.program);
}

static void samples(void **state) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_C64, AX_C128}, others[] = {AX_F32, AX_F64};
  static const char *const shapes[] = {"2,3"};
  uint32_t replaced = 0;
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    if (test_samples[i].kernel || test_samples[i].axes != NULL) continue;
    test_instances instances = test_instances_of(&test_samples[i], &(test_variety){dtypes, others, AX_COUNT(dtypes), AX_COUNT(others), shapes, AX_COUNT(shapes)});
    for (uint32_t n = 0; n < instances.count; n++) check_instance(&instances.v[n], &replaced);
    test_instances_release(&instances);
  }
  printf("%u programs replaced\n", replaced);
  assert_true(replaced > 100);
  test_blameless();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
