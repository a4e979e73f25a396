/* Which findings are told: those that others follow from, and which say the same. What follows is tested with kernels
   (check_test.c). */
#include "check/told.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static void faults_and_copies_are_causes(void **state) {
  (void)state;
  ax_act_finding finding = ax_act_finding_of(AX_FINDING_UNSET_READ);
  assert_false(ax_finding_is_cause(&finding));
  finding.fault.kind = AX_FINDING_UNSET_READ;
  assert_true(ax_finding_is_cause(&finding));
  for (ax_finding_kind kind = AX_FINDING_DEADLOCK; kind < AX_FINDING_KINDS; kind++) {
    finding = ax_act_finding_of(kind);
    assert_int_equal(ax_finding_is_cause(&finding), kind == AX_FINDING_COPY_NOT_AWAITED);
  }
}

static ax_act_finding said(ax_finding_kind kind, const char *text) {
  ax_act_finding finding = ax_act_finding_of(kind);
  finding.text = ax_alloc(strlen(text) + 1);
  assert_non_null(finding.text);
  memcpy(finding.text, text, strlen(text) + 1);
  return finding;
}

/* Numbers of devices and bytes make no difference; kinds, words and lines of the program do. */
static void findings_that_differ_in_numbers_are_alike(void **state) {
  (void)state;
  ax_act_findings all = {0};
  const char *const texts[] = {"x[3] of device 1, at line 12", "x[14] of device 0, at line 12", "x[3] of device 1, at line 13",
                               "y[3] of device 1, at line 12", "x[3] of device 1, at line 12"};
  for (uint32_t k = 0; k < AX_COUNT(texts); k++)
    TEST_OK(ax_act_findings_add(&all, said(k < 4 ? AX_FINDING_RACE : AX_FINDING_LEAK, texts[k])));
  for (uint32_t k = 0; k < AX_COUNT(texts); k++) assert_int_equal(ax_findings_alike(&all.items[0], &all.items[k]), k < 2);
  ax_act_findings_deinit(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(faults_and_copies_are_causes),
                                     cmocka_unit_test(findings_that_differ_in_numbers_are_alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
