/* Patterns on the names of leaves, and lists of them. */
#include "tree/pattern.h"

#include "support/cmocka.h"
#include "support/tensor.h"

static bool matches(const char *pattern, const char *name) {
  ax_rules rules;
  TEST_OK(ax_rules_parse(pattern, "rules", false, &rules));
  const bool found = ax_rules_find(&rules, name) != NULL;
  ax_rules_deinit(&rules);
  return found;
}

static void a_name_matches_itself_and_what_is_below(void **state) {
  (void)state;
  assert_true(matches("layer/w", "layer/w") && matches("layer", "layer/w"));
  assert_false(matches("layer", "layers/w") || matches("layer/w", "layer") || matches("w", "layer/w"));
}

static void a_star_is_any_text(void **state) {
  (void)state;
  assert_true(matches("*", "a/b") && matches("l*w", "layer/0/w") && matches("a*b*c", "a-b-b-c"));
  assert_false(matches("a*b*c", "a-c-b") || matches("l*w", "layer/0/b"));
}

static void a_question_mark_is_one_character(void **state) {
  (void)state;
  assert_true(matches("layer?", "layer1"));
  assert_false(matches("layer?", "layer") || matches("layer?", "layer12"));
}

/* Below any node, or at the top. */
static void a_star_in_front_is_anywhere(void **state) {
  (void)state;
  assert_true(matches("*/bias", "a/b/bias") && matches("*/bias", "bias"));
  assert_false(matches("*/bias", "mybias"));
}

static void the_first_rule_decides(void **state) {
  (void)state;
  ax_rules rules;
  TEST_OK(ax_rules_parse("!layer/frozen; layer; !*", "rules", false, &rules));
  assert_false(ax_rules_pick(&rules, "layer/frozen"));
  assert_true(ax_rules_pick(&rules, "layer/w"));
  assert_false(ax_rules_pick(&rules, "head"));
  ax_rules_deinit(&rules);
  TEST_OK(ax_rules_parse("", "rules", false, &rules));
  assert_false(ax_rules_pick(&rules, "layer"));
  ax_rules_deinit(&rules);
}

static void a_rule_has_a_value_behind_its_colon(void **state) {
  (void)state;
  ax_rules rules;
  TEST_OK(ax_rules_parse(" w : 1,_ ;\n b:\n", "rules", true, &rules));
  assert_int_equal(rules.count, 2);
  const ax_rule *w = ax_rules_find(&rules, "w"), *b = ax_rules_find(&rules, "b");
  assert_int_equal(w->value.length, 3);
  assert_memory_equal(w->value.start, "1,_", 3);
  assert_int_equal(b->value.length, 0);
  assert_int_equal(b->pattern.line, 2);
  ax_rules_deinit(&rules);
}

static void refused(const char *text, bool with_values, const char *why) {
  ax_rules rules;
  TEST_FAILS(ax_rules_parse(text, "rules", with_values, &rules), AX_PARSE_ERROR, why);
  ax_rules_deinit(&rules);
}

static void wrong_patterns_are_shown(void **state) {
  (void)state;
  ax_rules rules;
  refused("w;\n a b", false, "rules:2:3: a pattern has letters, digits and any of _ - . / * ?");
  refused("w", true, "rules:1:2: expected ':' and a value after the pattern");
  refused("!", false, "expected a pattern");
  refused("!w: 1", true, "a pattern has letters");
  TEST_FAILS(ax_rules_parse(NULL, "rules", false, &rules), AX_INVALID_ARGUMENT, "there is no list of patterns");
  ax_rules_deinit(&rules);
}

static void names_are_made_of_few_characters(void **state) {
  (void)state;
  assert_true(ax_is_leaf_character('z') && ax_is_leaf_character('/') && ax_is_leaf_character('.'));
  assert_false(ax_is_leaf_character('*') || ax_is_leaf_character(' ') || ax_is_leaf_character(':'));
  assert_true(ax_is_blank('\t') && !ax_is_blank('\n'));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_matches_itself_and_what_is_below),
      cmocka_unit_test(a_star_is_any_text),
      cmocka_unit_test(a_question_mark_is_one_character),
      cmocka_unit_test(a_star_in_front_is_anywhere),
      cmocka_unit_test(the_first_rule_decides),
      cmocka_unit_test(a_rule_has_a_value_behind_its_colon),
      cmocka_unit_test(wrong_patterns_are_shown),
      cmocka_unit_test(names_are_made_of_few_characters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
