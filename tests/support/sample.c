/* From a sample's text to programs: holes filled, parsed, and passed over where the parser refuses the dtype. */
#include "support/sample.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ir/text.h"
#include "support/cmocka.h"
#include "support/host.h"

const ax_dtype test_dtypes[] = {
#define AX_DTYPE(enumerator, ...) AX_##enumerator,
#include "ir/dtype.def"
#undef AX_DTYPE
};

static const ax_dtype f64[] = {AX_F64}, c128[] = {AX_C128};
static const char *const few_shapes[] = {"", "3", "2,3", "0", "2,1,2,2"};
const test_variety test_in_f64 = {f64, f64, 1, 1, few_shapes, AX_COUNT(few_shapes)};
const test_variety test_in_c128 = {c128, f64, 1, 1, few_shapes, AX_COUNT(few_shapes)};

/* --- Filling holes --- */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *hole(const test_instance *instance, char letter) {
  switch (letter) {
    case 'O':
      return instance->sample->prim;
    case 'T':
      return ax_dtype_name(instance->t);
    case 'U':
      return ax_dtype_name(instance->u);
    case 'S':
      return instance->shape;
    default:
      return NULL;
  }
}

/* The next hole in the text; NULL when there is none. (U: names unreduced axes.) */
static const char *find_hole(const test_instance *instance, const char *text) {
  for (const char *c = text; *c != 0; c++)
    if (hole(instance, *c) != NULL && !is_word(c[1]) && (c == text || !is_word(c[-1])) && !(c[0] == 'U' && c[1] == ':')) return c;
  return NULL;
}

static bool has_hole(const test_sample *sample, char letter) {
  test_instance none = {.sample = sample, .shape = ""};
  for (const char *at = sample->text; (at = find_hole(&none, at)) != NULL; at++)
    if (*at == letter) return true;
  return false;
}

/* False when a primitive refuses these dtypes. */
static bool parse(test_instance *instance) {
  ax_text text = {0};
  char *whole;
  ax_program_names names;
  const char *from = strchr(instance->sample->text, '{') + 1;
  ax_text_add(&text, instance->axes[0] != 0 ? "{ axes %s ;" : "{%s", instance->axes);
  for (const char *at; (at = find_hole(instance, from)) != NULL; from = at + 1) {
    ax_text_add_bytes(&text, from, (size_t)(at - from));
    ax_text_add(&text, "%s", hole(instance, *at));
  }
  ax_text_add(&text, "%s", from);
  TEST_OK(ax_text_finish(&text, &whole));
  ax_status status = ax_program_parse_named(whole, strlen(whole), instance->sample->prim, test_hooks(), &names, &instance->program);
  ax_free(whole);
  if (status != AX_OK) {
    assert_int_equal(status, AX_PARSE_ERROR);
    return false;
  }
  uint32_t count = ax_program_in_count(instance->program);
  assert_true(count < sizeof instance->names);
  for (uint32_t i = 0; i < count; i++) instance->names[i] = names.in[i][0];
  ax_program_names_deinit(&names);
  return true;
}

/* --- Instances --- */

static void add(test_instances *instances, test_instance instance) {
  if (!parse(&instance)) return;
  instances->v = realloc(instances->v, (instances->count + 1) * sizeof instance);
  assert_non_null(instances->v);
  instances->v[instances->count++] = instance;
}

/* The environment that begins at `text`, and where the next begins; NULL when this is the last. */
static const char *next_axes(const char *text, test_instance *instance) {
  size_t length = text != NULL ? strcspn(text, ";") : 0;
  assert_true(length < sizeof instance->axes);
  if (length > 0) memcpy(instance->axes, text, length);
  instance->axes[length] = 0;
  return length > 0 && text[length] == ';' ? text + length + 1 : NULL;
}

/* One dtype of each kind of code; the others have code of these with conversions around it. */
static bool in_every_shape(ax_dtype dtype) {
  return dtype == AX_BOOL || dtype == AX_S8 || dtype == AX_S32 || dtype == AX_BF16 || dtype == AX_F32 || dtype == AX_F64;
}

test_instances test_instances_of(const test_sample *sample, const test_variety *variety) {
  test_instances instances = {0};
  uint32_t ts = has_hole(sample, 'T') ? variety->dtype_count : 1, us = has_hole(sample, 'U') ? variety->other_count : 1;
  uint32_t shapes = has_hole(sample, 'S') ? variety->shape_count : 1;
  const bool many = ts > 8 && shapes > 3, pairs = many && us > 8;
  const char *axes = sample->axes;
  do {
    test_instance instance = {.sample = sample};
    axes = next_axes(axes, &instance);
    for (uint32_t i = 0; i < ts * us * shapes; i++) {
      instance.t = variety->dtypes[i / us / shapes];
      if (many && (pairs || !in_every_shape(instance.t)) && (i % shapes + i / shapes % us + i / shapes / us) % 3 != 0) continue;
      instance.u = variety->others[i / shapes % us];
      instance.shape = shapes > 1 ? variety->shapes[i % shapes] : "";
      add(&instances, instance);
    }
  } while (axes != NULL);
  return instances;
}

test_instance test_instance_in_f64(const test_instance *instance) {
  test_instance same = *instance;
  same.t = AX_F64;
  assert_true(parse(&same));
  return same;
}

void test_instance_release(test_instance *instance) { ax_program_release(instance->program); }

void test_instances_release(test_instances *instances) {
  for (uint32_t i = 0; i < instances->count; i++) test_instance_release(&instances->v[i]);
  free(instances->v);
}

test_random test_instance_random(const test_instance *instance) {
  const char *other = getenv("AXLE_RANDOM_FROM");
  return (test_random){instance->program->hash + (other == NULL ? 0 : strtoull(other, NULL, 10))};
}

double test_low(const test_sample *sample) { return sample->low == 0 && sample->high == 0 ? -2 : sample->low; }
double test_high(const test_sample *sample) { return sample->low == 0 && sample->high == 0 ? 2 : sample->high; }

/* --- Blame --- */

static int blamed;

void test_blame(const test_instance *instance, const char *format, ...) {
  const char *said = getenv("AXLE_TEST_BLAMED"); /* how many are printed */
  const int most = said != NULL ? atoi(said) : 30;
  char message[1024], *text;
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  if (blamed++ >= most) return;
  TEST_OK(ax_program_print(instance->program, &text));
  print_error("%s: %s\n%s", instance->sample->prim, message, text);
  ax_string_free(text);
}

bool test_passes(const test_instance *instance, const char *what, ax_status status) {
  if (status != AX_OK) test_blame(instance, "%s: %s: %s", what, ax_status_name(status), ax_message());
  return status == AX_OK;
}

void test_blameless(void) {
  int count = blamed;
  blamed = 0;
  if (count > 0) fail_msg("%d times something was wrong", count);
}
