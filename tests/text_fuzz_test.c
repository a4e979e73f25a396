/* Texts that are nearly programs: each golden file's, changed at random in ways that the grammar still takes, so that what a
   changed parameter or shape meets is the primitives' own checks. Whatever parses must verify, print and parse again, each
   transform of it must verify or be refused, and where it is small enough it must give, compiled, what evaluation gives. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/transform.h"
#include "ir/prim.h"
#include "ir/text.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/random.h"
#include "support/run.h"

enum { most_texts = 256, most_bytes = 2500, room = 1 << 14 };

static char *texts[most_texts];
static uint32_t text_count;

static void add_text(const char *start, size_t length) {
  ax_program *program;
  if (text_count == most_texts || length > most_bytes || ax_program_parse(start, length, "golden", &program) != AX_OK)
    return;
  ax_program_release(program);
  texts[text_count] = malloc(length + 1);
  memcpy(texts[text_count], start, length);
  texts[text_count++][length] = '\0';
}

/* Every run of lines from one that begins with "{" to an empty one, or the end. */
static void add_file(const char *path) {
  static char data[1 << 20];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t length = fread(data, 1, sizeof data - 1, file);
  fclose(file);
  data[length] = '\0';
  for (const char *line = data; line != NULL && *line != '\0';) {
    const char *end = strstr(line, " }\n");
    if (*line == '{') {
      /* A program ends at the first " }" at which it parses. */
      uint32_t before = text_count;
      for (; end != NULL && text_count == before; end = strstr(end + 1, " }\n"))
        add_text(line, (size_t)(end - line) + 3);
    }
    line = strchr(line, '\n');
    if (line != NULL) line++;
  }
}

static int read_texts(void **state) {
  (void)state;
  struct dirent **entries;
  int count = scandir("tests/golden", &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    char path[512];
    size_t length = strlen(entries[i]->d_name);
    snprintf(path, sizeof path, "tests/golden/%s", entries[i]->d_name);
    if (length > 5 && strcmp(entries[i]->d_name + length - 5, ".axle") == 0) add_file(path);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  return text_count > 10 ? 0 : -1;
}

static int free_texts(void **state) {
  (void)state;
  for (uint32_t i = 0; i < text_count; i++) free(texts[i]);
  return 0;
}

static const char *pick(test_random *random, const char *const *choices, size_t count) {
  return choices[test_random_below(random, (int64_t)count)];
}

/* Where the n-th word (a name, or a number) begins, and its length. */
static char *word_at(char *text, int64_t n, size_t *length) {
  static const char parts[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  for (char *c = text + strcspn(text, parts); *c != '\0'; c += strcspn(c, parts)) {
    *length = strspn(c, parts);
    if (n-- == 0) return c;
    c += *length;
  }
  return NULL;
}

static bool is_number(const char *word) { return (*word >= '0' && *word <= '9') || *word == '-'; }

/* A number, name or primitive becomes another; or a word of this text takes another's place. */
static void change(char *text, test_random *random) {
  static const char *const numbers[] = {
      "0", "1", "2", "3", "-1",     "7", "17", "4294967296", "9223372036854775807", "-9223372036854775808",
      "2", "1", "4", "8", "1000000"};
  static const char *const words[] = {"f32",   "s32", "bool", "u8", "f64", "bf16", "true",
                                      "false", "a",   "b",    "c",  "d",   "V",    "data"};
  size_t length, other_length;
  int64_t count = 0;
  while (word_at(text, count, &length) != NULL && count < 500) count++;
  char *word = word_at(text, test_random_below(random, count), &length), fresh[80] = "";
  for (int i = 0; i < 4 && !is_number(word); i++) word = word_at(text, test_random_below(random, count), &length);
  const char *other = word_at(text, test_random_below(random, count), &other_length);
  int64_t how = test_random_below(random, 8);
  if (is_number(word) && how < 6)
    snprintf(fresh, sizeof fresh, "%s", pick(random, numbers, AX_COUNT(numbers)));
  else if (how < 2)
    snprintf(fresh, sizeof fresh, "%s", pick(random, words, AX_COUNT(words)));
  else if (how < 4)
    snprintf(fresh, sizeof fresh, "%s", ax_prims[test_random_below(random, ax_prim_count)]->name);
  else if (how < 7)
    snprintf(fresh, sizeof fresh, "%.*s", (int)other_length, other);
  memmove(word + strlen(fresh), word + length, strlen(word + length) + 1);
  memcpy(word, fresh, strlen(fresh));
}

/* Types that do not fit are the usual end; with them written anew the text gets further. */
static bool repair(char *text) {
  static const char marker[] = " gives ";
  const char *message = ax_message(), *gives = strstr(message, marker);
  unsigned line, column;
  char *place = text, type[256];
  if (gives == NULL || sscanf(message, "t:%u:%u:", &line, &column) != 2) return false;
  if (sscanf(gives + strlen(marker), "%255s here", type) != 1) return false;
  for (unsigned i = 1; i < line && place != NULL; i++)
    place = strchr(place, '\n') != NULL ? strchr(place, '\n') + 1 : NULL;
  if (place == NULL) return false;
  place += column - 1;
  size_t old = strcspn(place, "]") + 1;
  if (place[old] == '{') old += strcspn(place + old, "}") + 1;
  if (strlen(place) < old || strlen(text) + strlen(type) > room - 1) return false;
  memmove(place + strlen(type), place + old, strlen(place + old) + 1);
  memcpy(place, type, strlen(type));
  return true;
}

static void check_parsed(const ax_program *program, const char *text) {
  char *printed, *again;
  ax_program *back;
  if (ax_program_verify(program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  assert_int_equal(ax_program_print(program, &printed), AX_OK);
  if (ax_program_parse(printed, strlen(printed), "again", &back) != AX_OK) fail_msg("%s\n%s", ax_message(), printed);
  assert_true(ax_program_equal(program, back));
  assert_int_equal(ax_program_print(back, &again), AX_OK);
  assert_string_equal(printed, again);
  ax_program_release(back);
  ax_string_free(printed);
  ax_string_free(again);
}

/* A transform gives a program that verifies, or says why not; it never gives what no primitive takes. */
static void check_made(ax_status status, ax_program *made, const char *name, const char *text) {
  if (status == AX_INTERNAL) fail_msg("%s: %s\n%s", name, ax_message(), text);
  if (status == AX_OK && ax_program_verify(made) != AX_OK) fail_msg("%s: %s\n%s", name, ax_message(), text);
  ax_program_release(made);
}

static void check_transforms(const ax_program *program, const char *text) {
  ax_program *made, *tangent, *back;
  uint32_t residuals;
  ax_status status = ax_program_dce(program, &made);
  check_made(status, made, "dce", text);
  status = ax_program_cse(program, &made);
  check_made(status, made, "cse", text);
  status = ax_program_jvp(program, AX_ALL_ARGS, &made);
  check_made(status, made, "jvp", text);
  status = ax_program_vmap(program, &(ax_vmap_options){.size = 3}, &made);
  check_made(status, made, "vmap", text);
  status = ax_program_linearize(program, AX_ALL_ARGS, &made, &tangent, &residuals);
  check_made(status, made, "linearize", text);
  if (status != AX_OK) return;
  bool *linear = calloc(tangent->in_count + 1, sizeof linear[0]);
  for (uint32_t i = residuals; i < tangent->in_count; i++) linear[i] = true;
  status = ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &back);
  check_made(status, back, "transpose", text);
  check_made(AX_OK, tangent, "tangent", text);
  free(linear);
}

/* --- Running --- */

enum { most_elems = 4096, most_devices = 32, most_trips = 50, most_steps = 4000 };

/* Elements and loops are few, and no loop has to find its own end. */
static bool is_small(const ax_program *program, int64_t times) {
  if (ax_mesh_devices(&program->axes) > most_devices || times * program->eqn_count > most_steps) return false;
  for (uint32_t v = 0; v < program->value_count; v++)
    if (ax_type_elems(&program->types[v]) > most_elems || program->types[v].rank > 8) return false;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    int64_t trips = 1;
    if (strcmp(eqn->prim->name, "while") == 0) return false;
    for (uint32_t k = 0; k < eqn->prim->param_count; k++)
      if (strcmp(eqn->prim->params[k].name, "length") == 0) trips = *(const int64_t *)ax_param_at(eqn, &eqn->prim->params[k]);
    if (trips > most_trips) return false;
    for (uint32_t k = 0; ax_eqn_program(eqn, k) != NULL; k++)
      if (!is_small(ax_eqn_program(eqn, k), times * (trips > 0 ? trips : 1))) return false;
  }
  return true;
}

static bool all_near(ax_tensor *const *a, ax_tensor *const *b, uint32_t count) {
  for (uint32_t k = 0; k < count; k++)
    for (int64_t i = 0; i < test_elems(a[k]); i++)
      if (!test_near(test_get(a[k], i), test_get(b[k], i), ax_is_narrow_float(a[k]->dtype) ? 0.1 : 1e-3))
        return false;
  return true;
}

/* Compiled it gives what evaluation of what compiling leaves gives, or fails as that. */
static void check_runs(ax_program *program, uint64_t seed, const char *text) {
  ax_program *whole, *simple;
  if (!is_small(program, 1) || test_on_mesh(program, &whole) != AX_OK) return;
  uint32_t in_count = ax_program_in_count(whole), out_count = ax_program_out_count(whole);
  ax_tensor **in = calloc(in_count + 1, sizeof in[0]), **wanted = calloc(out_count + 1, sizeof wanted[0]),
            **got = calloc(out_count + 1, sizeof got[0]);
  test_random data = {seed};
  for (uint32_t i = 0; i < in_count; i++) in[i] = test_random_tensor(&data, *ax_program_in_type(whole, i), -2, 3);
  assert_int_equal(ax_program_simplify(whole, &simple), AX_OK);
  ax_status evaluated = ax_evaluate(simple, in, wanted), ran = test_try(whole, in, got);
  if (evaluated != ran && ran != AX_ABSENT)
    fail_msg("evaluated: %s, ran: %s: %s\n%s", ax_status_name(evaluated), ax_status_name(ran), ax_message(), text);
  if (evaluated == AX_OK && ran == AX_OK && !all_near(wanted, got, out_count))
    fail_msg("seed %llu: other results than by evaluation\n%s", (unsigned long long)seed, text);
  test_release(in, in_count);
  if (evaluated == AX_OK) test_release(wanted, out_count);
  if (ran == AX_OK) test_release(got, out_count);
  free(in), free(wanted), free(got);
  ax_program_release(simple);
  ax_program_release(whole);
}

/* --- The walk --- */

static int parsed, changed;

static void one_text(uint64_t seed, bool show) {
  static char text[room];
  test_random random = {seed};
  strcpy(text, texts[test_random_below(&random, text_count)]);
  for (int64_t n = test_random_below(&random, 3); n >= 0; n--) change(text, &random);
  ax_program *program;
  ax_status status = ax_program_parse(text, strlen(text), "t", &program);
  for (int tries = 0; status == AX_PARSE_ERROR && tries < 40 && repair(text); tries++)
    status = ax_program_parse(text, strlen(text), "t", &program);
  if (show) print_message("%s\n", text);
  changed++;
  if (status == AX_OK) {
    check_parsed(program, text);
    check_transforms(program, text);
    if (seed % 4 == 0 || show) check_runs(program, seed, text);
    parsed++;
  } else if (status != AX_PARSE_ERROR) {
    assert_int_equal(status, AX_OUT_OF_MEMORY);
  }
  ax_program_release(program);
}

static void test_changed_words(void **state) {
  (void)state;
  test_each_seed(1500, one_text);
  print_message("%d of %d parsed\n", parsed, changed);
  if (changed > 100) assert_true(parsed > changed / 10); /* or the changes are too wild to test anything */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_changed_words)};
  return cmocka_run_group_tests(tests, read_texts, free_texts);
}
