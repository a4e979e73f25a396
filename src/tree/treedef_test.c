/* Treedefs: parsed, made, joined; asked by name and pattern; everything that is refused. */
#include "tree/treedef.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/program.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static ax_treedef *parsed(const char *text) {
  ax_treedef *def;
  TEST_OK(ax_treedef_parse(text, &def));
  return def;
}

static void assert_leaf(const ax_treedef *def, uint32_t i, const char *name, ax_type type, const char *spec) {
  assert_string_equal(ax_treedef_name(def, i), name);
  assert_true(ax_type_equal(ax_treedef_type(def, i), &type));
  assert_string_equal(ax_treedef_spec(def, i), spec);
}

static void parse(void **state) {
  (void)state;
  ax_treedef *def = parsed("w1: f32[64,512] @ _, model; b1 :f32[512]@model # the first layer\n"
                           "\n  # and the rest\n"
                           "layers/{0..1}/{q,k}: bf16[8,8] @ a+b; count: s32[];\n");
  assert_int_equal(ax_treedef_count(def), 7);
  assert_leaf(def, 0, "w1", TEST_TYPE(AX_F32, 64, 512), "_,model");
  assert_leaf(def, 1, "b1", TEST_TYPE(AX_F32, 512), "model");
  assert_leaf(def, 2, "layers/0/q", TEST_TYPE(AX_BF16, 8, 8), "a+b");
  assert_leaf(def, 3, "layers/0/k", TEST_TYPE(AX_BF16, 8, 8), "a+b");
  assert_leaf(def, 5, "layers/1/k", TEST_TYPE(AX_BF16, 8, 8), "a+b");
  assert_leaf(def, 6, "count", TEST_SCALAR(AX_S32), "");
  assert_string_equal(ax_treedef_specs(def), "_,model; model; a+b; a+b; a+b; a+b; ");
  assert_int_equal(ax_treedef_find(def, "layers/%d/%s", 1, "k"), 5);
  assert_int_equal(ax_treedef_find(def, "layers"), -1);
  assert_int_equal(ax_treedef_find(def, "layers/2/k"), -1);
  ax_treedef_release(def);
  def = parsed("");
  assert_int_equal(ax_treedef_count(def), 0);
  assert_int_equal(ax_treedef_find(def, "w"), -1);
  assert_string_equal(ax_treedef_specs(def), "");
  ax_treedef_release(def);
}

static void text_reads_back(void **state) {
  (void)state;
  ax_treedef *def = parsed("layers/{0..9}/w: f32[2,3] @ _,model; b: f64[]"), *again;
  char *text, *second;
  TEST_OK(ax_treedef_text(def, &text));
  assert_non_null(strstr(text, "layers/0/w: f32[2,3] @ _,model\n"));
  assert_non_null(strstr(text, "\nb:          f64[]\n# 11 leaves, 61 elements, 248 bytes\n"));
  again = parsed(text);
  TEST_OK(ax_treedef_text(again, &second));
  assert_string_equal(text, second);
  ax_string_free(text), ax_string_free(second);
  ax_treedef_release(def), ax_treedef_release(again);
}

static void refused_texts(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"w f32[3]", "treedef_parse:1:9: expected ':' and a type after the name"},
      {"w: f32[3]\nb: g32[3]", "treedef_parse:2:4: "},
      {"w: f32[3] f32", "expected '@', ';' or the line's end"},
      {"w: f32", "treedef_parse:1:7: expected '[', got the end"},
      {"w: f32[-1]", "treedef_parse:1:8: "},
      {": f32[3]", "a leaf needs a name"},
      {"a b: f32[3]", "\"a b\" is not a name"},
      {"a*: f32[3]", "\"a*\" is not a name"},
      {"/a: f32[3]", "\"/a\" has an empty word"},
      {"a/: f32[3]", "\"a/\" has an empty word"},
      {"a//b: f32[3]", "\"a//b\" has an empty word"},
      {"a: f32[3]; b: f32[3]; a: f32[3]", "treedef_parse:1:23: there is a leaf \"a\" already"},
      {"a/{0..2}: f32[3]; a/1: f32[3]", "there is a leaf \"a/1\" already"},
      {"a: f32[3]; a/b: f32[3]", "treedef_parse:1:12: \"a/b\" cannot be below \"a\", which is a leaf"},
      {"a/b/c: f32[3]; a/b: f32[3]", "\"a/b\" cannot be a leaf: there are leaves below it"},
      {"a: f32[3] @ x,y", "a: spec \"x,y\" has 2 entries for 1 dimensions"},
      {"a: f32[3,3] @ x,x", "a: spec \"x,x\": axis \"x\" is used twice"},
      {"a: f32[3,3] @ x+_", "expected an axis or _, got \"_\""},
      {"a: f32[3,3] @ x,", "expected an axis or _, got \"\""},
      {"a: f32[3,3] @ 4", "expected an axis or _, got \"4\""},
      {"a{: f32[3]", "treedef_parse:1:2: this brace is not closed"},
      {"a{0..x}: f32[3]", "treedef_parse:1:3: expected {first..last}, two numbers in order of at most 9 digits"},
      {"a{3..1}: f32[3]", "two numbers in order of at most 9 digits"},
      {"a{0..4294967295}: f32[3]", "two numbers in order of at most 9 digits"},
      {"a{x,{y}}: f32[3]", "braces cannot stand in braces"},
      {"a{b,}/c: f32[3]; a/c: f32[3]", "there is a leaf \"a/c\" already"},
      {"a{0..99999999}: f32[3]", "more than 1048576 leaves"},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_treedef *def = (ax_treedef *)&def;
    ax_status status = ax_treedef_parse(cases[i][0], &def);
    if (status != AX_PARSE_ERROR || strstr(ax_message(), cases[i][1]) == NULL)
      fail_msg("%s: %s: no \"%s\" in \"%s\"", cases[i][0], ax_status_name(status), cases[i][1], ax_message());
    assert_null(def);
  }
  char text[2 * AX_MAX_LEAF_NAME + 16];
  ax_treedef *def;
  snprintf(text, sizeof text, "%0*d: f32[3]", AX_MAX_LEAF_NAME, 1);
  TEST_FAILS(ax_treedef_parse(text, &def), AX_PARSE_ERROR, "a name has at most 255 bytes");
  TEST_FAILS(ax_treedef_parse(NULL, &def), AX_INVALID_ARGUMENT, "there is no text of a treedef");
}

/* Braces that stand for nothing make a name no longer. */
static void many_braces(void **state) {
  (void)state;
  enum { count = 200000 };
  ax_treedef *def;
  char *text = malloc(2 * count + 16);
  text[0] = 'a';
  for (int i = 0; i < count; i++) memcpy(text + 1 + 2 * i, "{}", 2);
  memcpy(text + 1 + 2 * count, ": f32[2]", 9);
  TEST_FAILS(ax_treedef_parse(text, &def), AX_PARSE_ERROR, "more than 256 braces in a name");
  free(text);
  def = parsed("a{}{,b}: f32[2]");
  assert_int_equal(ax_treedef_count(def), 2);
  ax_treedef_release(def);
}

static void create(void **state) {
  (void)state;
  ax_treedef *def;
  const ax_type types[] = {TEST_TYPE(AX_F32, 3), TEST_SCALAR(AX_S32), {0}};
  TEST_OK(ax_treedef_create(AX_LIST(2, ((const char *const[]){"a/b", "c"})), types, NULL, &def));
  assert_leaf(def, 0, "a/b", types[0], "");
  assert_leaf(def, 1, "c", types[1], "");
  ax_treedef_release(def);
  TEST_FAILS(ax_treedef_create(AX_LIST(2, ((const char *const[]){"a", NULL})), types, NULL, &def), AX_INVALID_ARGUMENT,
             "treedef_create: leaf 1 has no name");
  TEST_FAILS(ax_treedef_create(AX_LIST(3, ((const char *const[]){"a", "b", "c"})), types, NULL, &def), AX_INVALID_ARGUMENT,
             "treedef_create: c: not a type");
  TEST_FAILS(ax_treedef_create(AX_LIST(1, (const char *const[]){"a"}), types, (const char *const[]){"x,y"}, &def),
             AX_INVALID_ARGUMENT, "treedef_create: a: spec \"x,y\" has 2 entries");
  TEST_FAILS(ax_treedef_create(AX_LIST(1, NULL), types, NULL, &def), AX_INVALID_ARGUMENT, "there is no list of names");
  assert_null(def);
}

static void join(void **state) {
  (void)state;
  ax_treedef *a = parsed("w: f32[3] @ x"), *b = parsed("count: s32[]; mu/w: f32[3] @ x"), *def;
  TEST_OK(ax_treedef_join("params; opt; ", AX_TREEDEFS(a, b, a), &def));
  assert_int_equal(ax_treedef_count(def), 4);
  assert_leaf(def, 0, "params/w", TEST_TYPE(AX_F32, 3), "x");
  assert_leaf(def, 2, "opt/mu/w", TEST_TYPE(AX_F32, 3), "x");
  assert_leaf(def, 3, "w", TEST_TYPE(AX_F32, 3), "x");
  ax_treedef_release(def);
  TEST_FAILS(ax_treedef_join("a; a", AX_TREEDEFS(a, a), &def), AX_INVALID_ARGUMENT,
             "treedef_join: there is a leaf \"a/w\" already");
  TEST_FAILS(ax_treedef_join("; w", AX_TREEDEFS(a, a), &def), AX_INVALID_ARGUMENT,
             "treedef_join: \"w/w\" cannot be below \"w\", which is a leaf");
  TEST_FAILS(ax_treedef_join("a; b", AX_TREEDEFS(a, NULL), &def), AX_INVALID_ARGUMENT,
             "treedef_join: part 1 has no treedef");
  TEST_FAILS(ax_treedef_join("a; b", AX_TREEDEFS(a), &def), AX_INVALID_ARGUMENT, "treedef_join: \"a; b\" has 2 names for 1 parts");
  TEST_FAILS(ax_treedef_join(NULL, AX_TREEDEFS(a), &def), AX_INVALID_ARGUMENT, "there is no list of prefixes");
  TEST_FAILS(ax_treedef_join("a b", AX_TREEDEFS(a), &def), AX_INVALID_ARGUMENT,
             "\"a b/w\" is not a name");
  assert_null(def);
  ax_treedef_release(a), ax_treedef_release(b);
}

static void specs_by_pattern(void **state) {
  (void)state;
  ax_treedef *plain = parsed("w: f32[2,2]; layers/{0,1}/w: f32[2,2]; layers/{0,1}/b: f32[2]"), *def;
  TEST_OK(ax_treedef_with_specs(plain, "layers/1/w: data ; */w: _, model\n*: ", &def));
  assert_string_equal(ax_treedef_specs(def), "_,model; _,model; data; ; ");
  assert_string_equal(ax_treedef_specs(plain), "; ; ; ; ");
  ax_treedef_release(def);
  TEST_FAILS(ax_treedef_with_specs(plain, "*/w: _,model", &def), AX_INVALID_ARGUMENT,
             "treedef_with_specs: no pattern matches the leaf \"layers/0/b\"");
  TEST_FAILS(ax_treedef_with_specs(plain, "*: _,model", &def), AX_INVALID_ARGUMENT,
             "treedef_with_specs: layers/0/b: spec \"_,model\" has 2 entries for 1");
  TEST_FAILS(ax_treedef_with_specs(plain, "*/w", &def), AX_PARSE_ERROR, "treedef_with_specs:1:4: expected ':' and a value");
  TEST_FAILS(ax_treedef_with_specs(plain, "*:;\n [a]: ", &def), AX_PARSE_ERROR, "treedef_with_specs:2:2: a pattern has letters");
  TEST_FAILS(ax_treedef_with_specs(plain, ": x", &def), AX_PARSE_ERROR, "expected a pattern");
  TEST_FAILS(ax_treedef_with_specs(NULL, "*: ", &def), AX_INVALID_ARGUMENT, "there is no treedef");
  TEST_FAILS(ax_treedef_with_specs(plain, NULL, &def), AX_INVALID_ARGUMENT, "there is no list of patterns");
  assert_null(def);
  ax_treedef_release(plain);
}

static void assert_selects(const ax_treedef *def, const char *patterns, const char *leaves) {
  char text[128] = "";
  ax_args args = ax_treedef_select(def, patterns), again = ax_treedef_select(def, patterns);
  for (uint32_t i = 0; i < args.count; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%u ", args.list != NULL ? args.list[i] : args.first + i);
  if (strcmp(text, leaves) != 0) fail_msg("\"%s\" selects %s, not %s", patterns, text, leaves);
  assert_ptr_equal(args.list, again.list);
}

static void select_leaves(void **state) {
  (void)state;
  ax_treedef *def = parsed("params/{a,b}/w: f32[3]; opt/mu/{a,b}/w: f32[3]; x: f32[3]; wide: f32[3]");
  assert_selects(def, "params", "0 1 ");
  assert_selects(def, "params; x", "0 1 4 ");
  assert_selects(def, "*/w", "0 1 2 3 ");
  assert_selects(def, "*/a", "0 2 ");
  assert_selects(def, "*/x", "4 ");
  assert_selects(def, "!*/mu; *", "0 1 4 5 ");
  assert_selects(def, "*a*w", "0 1 2 ");
  assert_selects(def, "?*/?/w", "0 1 2 3 ");
  assert_int_equal(ax_treedef_select(def, "para").first, UINT32_MAX);
  assert_non_null(strstr(ax_message(), "treedef_select: no leaf is meant by \"para\"; the first of 6 is \"params/a/w\""));
  assert_int_equal(ax_treedef_select(def, "a b").first, UINT32_MAX);
  assert_non_null(strstr(ax_message(), "treedef_select:1:2: a pattern has letters"));
  assert_int_equal(ax_treedef_select(NULL, "x").first, UINT32_MAX);
  assert_int_equal(ax_treedef_select(def, NULL).first, UINT32_MAX);
  ax_treedef_release(def);
}

static void nearest_names(void **state) {
  (void)state;
  ax_treedef *def = parsed("layers/{0..3}/{w,b}: f32[3]; embed: f32[3]");
  TEST_FAILS(ax_treedef_no_leaf(def, "who", "layer/2/w"), AX_INVALID_ARGUMENT,
             "who: there is no leaf \"layer/2/w\"; the nearest: \"layers/2/w\", \"layers/0/w\", \"layers/1/w\"");
  ax_treedef_release(def);
}

static void nothing(void **state) {
  (void)state;
  char *text;
  assert_null(ax_treedef_retain(NULL));
  ax_treedef_release(NULL);
  assert_int_equal(ax_treedef_count(NULL), 0);
  assert_null(ax_treedef_name(NULL, 0));
  assert_null(ax_treedef_types(NULL));
  assert_int_equal(ax_treedef_find(NULL, "w"), -1);
  TEST_FAILS(ax_treedef_text(NULL, &text), AX_INVALID_ARGUMENT, "there is no treedef");
}

/* Where each leaf looked at all others, this would take minutes. */
static void many_leaves(void **state) {
  (void)state;
  ax_treedef *one = parsed("layers/{0..29999}/{w,b}: f32[3] @ model"), *def;
  TEST_OK(ax_treedef_join("params; opt", AX_TREEDEFS(one, one), &def));
  for (int i = 0; i < 30000; i++) assert_int_equal(ax_treedef_find(def, "opt/layers/%d/b", i), 60000 + 2 * i + 1);
  assert_int_equal(ax_treedef_select(def, "*/b").count, 60000);
  ax_treedef_release(one), ax_treedef_release(def);
}

/* Texts made of pieces at random: what is read prints, and reads back to the same; all else is refused with a message. */
static void random_texts(void **state) {
  (void)state;
  static const char *const pieces[] = {"a", "b",  "w",   "/", "{0..2}", "{a,b}", "{",      "}",     "..",       ",", ":", ": ",
                                       ";", "\n", " @ ", "@", "_",      "+",     "f32[2]", "s32[]", "f32[2,2]", "[", "]", "3",
                                       "*", "*/", "?",   "!", "#",      "\t",    "zeros",  "model", ".",        "-", "("};
  uint64_t random = 5;
  int good = 0;
  for (int i = 0; i < 20000; i++) {
    char text[256] = "", *printed, *again;
    ax_treedef *def, *other;
    if (i % 3 == 0) strcat(text, "a: f32[2,2]");
    for (uint64_t k = ax_next_random(&random) % 12; k > 0; k--) strcat(text, pieces[ax_next_random(&random) % AX_COUNT(pieces)]);
    ax_status status = ax_treedef_parse(text, &def);
    if (status != AX_OK) {
      assert_true(status == AX_PARSE_ERROR && strncmp(ax_message(), "treedef_parse:", 14) == 0);
      TEST_OK(ax_treedef_parse("a/w: f32[2,2]; b: f32[2]", &def));
    } else good++;
    TEST_OK(ax_treedef_text(def, &printed));
    TEST_OK(ax_treedef_parse(printed, &other));
    TEST_OK(ax_treedef_text(other, &again));
    assert_string_equal(printed, again);
    ax_string_free(printed), ax_string_free(again);
    ax_treedef_release(other);
    status = ax_treedef_with_specs(def, text, &other);
    assert_true(status == AX_OK || status == AX_PARSE_ERROR || status == AX_INVALID_ARGUMENT);
    ax_treedef_release(other);
    ax_args args = ax_treedef_select(def, text);
    assert_true(args.count > 0 && (args.first == UINT32_MAX || args.first + args.count <= ax_treedef_count(def)));
    ax_treedef_release(def);
  }
  assert_true(good > 1000);
}

static ax_status everything(void *context) {
  (void)context;
  ax_treedef *def = NULL, *other = NULL, *joined = NULL;
  char *text = NULL;
  ax_status status = ax_treedef_parse("layers/{0..9}/w: f32[3,3] @ _,model; b: f32[3]", &def);
  if (status == AX_OK) status = ax_treedef_with_specs(def, "*/w: model; *:", &other);
  if (status == AX_OK) status = ax_treedef_join("x; y", AX_TREEDEFS(def, other), &joined);
  if (status == AX_OK) status = ax_treedef_select(joined, "*/b").count == 2 ? AX_OK : AX_OUT_OF_MEMORY;
  if (status == AX_OK) status = ax_treedef_text(joined, &text);
  ax_string_free(text);
  ax_treedef_release(def), ax_treedef_release(other), ax_treedef_release(joined);
  return status;
}

static void no_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(everything, NULL) > 30);
}

static void a_name_is_a_leaf_or_a_node(void **state) {
  (void)state;
  ax_treedef *def = parsed("a: f32[]\nlayers/{0..1}/{q,k}: f32[2]"), *none = parsed("");
  assert_int_equal(ax_treedef_leaf(def, "layers/1/q", 10), 3);
  assert_int_equal(ax_treedef_leaf(def, "layers/1/queue", 10), 3); /* so much of the text */
  assert_int_equal(ax_treedef_leaf(def, "layers/1", 8), AX_NONE);
  assert_int_equal(ax_treedef_leaf(def, "layers/2/q", 10), AX_NONE);
  assert_int_equal(ax_treedef_first(def, "layers"), 1);
  assert_int_equal(ax_treedef_first(def, "layers/1"), 3);
  assert_int_equal(ax_treedef_first(def, "layers/1/k"), 4);
  assert_int_equal(ax_treedef_first(def, "layer"), AX_NONE);
  assert_int_equal(ax_treedef_first(none, "a"), AX_NONE);
  ax_treedef_release(def), ax_treedef_release(none);
}

/* By the steps that all treedefs are made in. */
static void a_treedef_is_made_leaf_by_leaf(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_treedef *def, *made;
  TEST_OK(ax_treedef_begin(&def));
  TEST_OK(ax_treedef_add(def, "w?", 1, &type, "model,", 5));
  TEST_OK(ax_treedef_finish(def, AX_OK, &made));
  assert_leaf(made, 0, "w", type, "model");
  ax_treedef_release(made);
  TEST_OK(ax_treedef_begin(&def));
  TEST_OK(ax_treedef_add(def, "w", 1, &type, "", 0));
  TEST_FAILS(ax_treedef_finish(def, ax_treedef_add(def, "w", 1, &type, "", 0), &made), AX_INVALID_ARGUMENT, "w");
  assert_null(made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parse),
      cmocka_unit_test(text_reads_back),
      cmocka_unit_test(refused_texts),
      cmocka_unit_test(create),
      cmocka_unit_test(join),
      cmocka_unit_test(select_leaves),
      cmocka_unit_test(specs_by_pattern),
      cmocka_unit_test(nearest_names),
      cmocka_unit_test(nothing),
      cmocka_unit_test(many_leaves),
      cmocka_unit_test(random_texts),
      cmocka_unit_test(no_memory),
      cmocka_unit_test(many_braces),
      cmocka_unit_test(a_name_is_a_leaf_or_a_node),
      cmocka_unit_test(a_treedef_is_made_leaf_by_leaf),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
