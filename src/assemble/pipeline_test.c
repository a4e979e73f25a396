/* The table of passes: nothing is needed that was not made before, and a pass that others rely on is missed; passes over
   instructions have the names of their files and functions. What the passes do is tested by itself. */
#include <stdio.h>
#include <string.h>

#include "assemble/assemble.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static void nothing_is_missing(void **state) {
  (void)state;
  TEST_OK(ax_pipeline_check(NULL));
}

static void missed(const char *left_out, const char *message) {
  assert_int_equal(ax_pipeline_check(left_out), AX_INTERNAL);
  assert_string_equal(ax_message(), message);
}

static void who_is_needed_is_missed(void **state) {
  (void)state;
  missed("flatten", "pass synchronise needs what pass flatten makes, which is not before it");
  missed("memory", "pass events needs what pass memory makes, which is not before it");
  missed("exchanges", "pass codegen needs what pass exchanges makes, which is not before it");
  missed("links", "pass finish needs what pass links makes, which is not before it");
}

static void expect_defined(const char *name) {
  char path[128], line[512], wanted[128];
  bool found = false;
  snprintf(path, sizeof path, "src/assemble/%s.c", name);
  snprintf(wanted, sizeof wanted, "ax_status ax_instrs_%s(ax_assembly *a) {", name);
  FILE *file = fopen(path, "r");
  if (file == NULL) fail_msg("pass %s has no file %s", name, path);
  while (!found && fgets(line, sizeof line, file) != NULL) found = strncmp(line, wanted, strlen(wanted)) == 0;
  fclose(file);
  if (!found) fail_msg("%s does not define ax_instrs_%s", path, name);
}

/* Read from the table's source: {"NAME", .instrs = ax_instrs_NAME, .. */
static void names_agree(void **state) {
  (void)state;
  char line[512], name[64], function[64];
  int count = 0;
  FILE *file = fopen("src/assemble/pipeline.c", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, " {\"%63[a-z]\", .instrs = ax_instrs_%63[a-z]", name, function) == 2) {
      assert_string_equal(function, name);
      expect_defined(name);
      count++;
    }
  fclose(file);
  assert_int_equal(count, 11);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_missing), cmocka_unit_test(who_is_needed_is_missed),
                                     cmocka_unit_test(names_agree)};
  return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
