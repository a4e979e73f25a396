/* Repetitions in sequences: what is folded, and that nothing is lost. */
#include <stdio.h>
#include <string.h>

#include "sim/fold.h"
#include "support/cmocka.h"

/* Folds the letters and compares with "a (bc)x3 d". */
static void check(const char *letters, const char *wanted) {
  uint64_t keys[64];
  const uint32_t count = (uint32_t)strlen(letters);
  ax_sim_fold *folds;
  uint32_t fold_count;
  char got[256] = "";
  for (uint32_t i = 0; i < count; i++) keys[i] = (uint64_t)letters[i];
  assert_int_equal(ax_sim_fold_make(keys, count, &folds, &fold_count), AX_OK);
  for (uint32_t f = 0; f < fold_count; f++) {
    const ax_sim_fold *fold = &folds[f];
    const size_t length = strlen(got);
    const char *gap = f > 0 ? " " : "", *first = letters + fold->first;
    if (fold->times == 1)
      snprintf(got + length, sizeof got - length, "%s%c", gap, *first);
    else
      snprintf(got + length, sizeof got - length, "%s(%.*s)x%u", gap, (int)fold->period, first, fold->times);
  }
  assert_string_equal(got, wanted);
  ax_free(folds);
}

static void repetitions_are_found(void **state) {
  (void)state;
  check("", "");
  check("a", "a");
  check("abab", "a b a b"); /* twice is not shorter when it is explained */
  check("ababab", "(ab)x3");
  check("abcbcbcd", "a (bc)x3 d");
  check("aaaa", "(a)x4");
  check("aabaabaabaab", "(aab)x4"); /* the whole step, not the two a in it */
  check("abcabcabcab", "(abc)x3 a b");
  check("xababababyabcabcabc", "x (ab)x4 y (abc)x3");
}

static void long_loops_are_one_fold(void **state) {
  (void)state;
  enum { count = 30000 };
  uint64_t *keys = ax_alloc(count * sizeof keys[0]);
  ax_sim_fold *folds;
  uint32_t fold_count;
  assert_non_null(keys);
  for (uint32_t i = 0; i < count; i++) keys[i] = i % 30;
  assert_int_equal(ax_sim_fold_make(keys, count, &folds, &fold_count), AX_OK);
  assert_int_equal(fold_count, 1);
  assert_int_equal(folds[0].period, 30);
  assert_int_equal(folds[0].times, 1000);
  ax_free(folds);
  ax_free(keys);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(repetitions_are_found), cmocka_unit_test(long_loops_are_one_fold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
