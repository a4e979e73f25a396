/* A table of initialisers: the distribution each draws from, and the factor. Those named after Lecun, Glorot and He keep the
   variance of a signal that passes a layer: the variance is scale / n, where n is the number of inputs of an element of the result
   (fan in), or the mean of the numbers of inputs and outputs. A weight is [.., in, out]; the dimensions before form a window, and
   each of its places counts as an input. */
#include "tree/init.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/number.h"
#include "ir/text.h"

typedef enum fan { NO_FAN, FAN_IN, FAN_MEAN } fan;
typedef enum argument { NO_ARGUMENT, MAY, MUST } argument;

typedef struct initializer {
  const char *name;
  bool random;
  ax_distribution distribution;
  fan fan;
  argument takes;
  double number; /* of no fan: the argument's default. Of a fan: the scale */
} initializer;

static const initializer initializers[] = {
    {"zeros", false, 0, NO_FAN, NO_ARGUMENT, 0},
    {"ones", false, 0, NO_FAN, NO_ARGUMENT, 1},
    {"constant", false, 0, NO_FAN, MUST, 0},
    {"uniform", true, AX_UNIFORM, NO_FAN, MAY, 0.01},
    {"normal", true, AX_NORMAL, NO_FAN, MAY, 0.01},
    {"truncated_normal", true, AX_TRUNCATED_NORMAL, NO_FAN, MAY, 0.01},
    {"lecun_uniform", true, AX_UNIFORM, FAN_IN, NO_ARGUMENT, 1},
    {"lecun_normal", true, AX_TRUNCATED_NORMAL, FAN_IN, NO_ARGUMENT, 1},
    {"glorot_uniform", true, AX_UNIFORM, FAN_MEAN, NO_ARGUMENT, 1},
    {"glorot_normal", true, AX_TRUNCATED_NORMAL, FAN_MEAN, NO_ARGUMENT, 1},
    {"he_uniform", true, AX_UNIFORM, FAN_IN, NO_ARGUMENT, 2},
    {"he_normal", true, AX_TRUNCATED_NORMAL, FAN_IN, NO_ARGUMENT, 2},
};

/* --- What is asked for --- */

enum { word_bytes = 64 };

static ax_status unknown(const char *word) {
  ax_text names = {0};
  for (size_t i = 0; i < AX_COUNT(initializers); i++) ax_text_add(&names, "%s%s", i > 0 ? ", " : "", initializers[i].name);
  ax_status status = names.failed ? ax_out_of_memory(0)
                                  : ax_error(AX_INVALID_ARGUMENT, "\"%s\" is no initializer; there are %s", word, names.data);
  ax_text_deinit(&names);
  return status;
}

static ax_status read_number(const char *word, const char *inside, double *out) {
  locale_t saved;
  AX_TRY(ax_text_locale_enter(&saved));
  bool number = ax_element_parse(inside, AX_F64, out, 0);
  ax_text_locale_leave(saved);
  if (number && isfinite(*out)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s(%s): \"%s\" is not a finite number", word, inside, inside);
}

/* *number: the argument, or what stands for it. */
static ax_status parse(const char *text, size_t length, const initializer **out, double *number) {
  char word[word_bytes];
  if (length >= sizeof word) return ax_error(AX_INVALID_ARGUMENT, "\"%.40s..\" is no initializer", text);
  memcpy(word, text, length);
  word[length] = '\0';
  char *open = strchr(word, '('), *close = open != NULL ? strchr(open, ')') : NULL;
  if (open != NULL && (close == NULL || close[1] != '\0'))
    return ax_error(AX_INVALID_ARGUMENT, "\"%s\": expected one number in parentheses", word);
  if (open != NULL) *open = *close = '\0';
  *out = NULL;
  for (size_t i = 0; i < AX_COUNT(initializers) && *out == NULL; i++)
    if (strcmp(initializers[i].name, word) == 0) *out = &initializers[i];
  if (*out == NULL) return unknown(word);
  if (open == NULL && (*out)->takes == MUST) return ax_error(AX_INVALID_ARGUMENT, "%s needs a number: %s(0.5)", word, word);
  if (open != NULL && (*out)->takes == NO_ARGUMENT) return ax_error(AX_INVALID_ARGUMENT, "%s takes no number", word);
  *number = (*out)->number;
  return open != NULL ? read_number(word, open + 1, number) : AX_OK;
}

/* --- Filling --- */

static ax_status fill_constant(const char *name, const ax_type *type, double value, void *data) {
  ax_number number = ax_number_of(type->dtype, value);
  if (ax_is_key(type->dtype)) return ax_error(AX_INVALID_ARGUMENT, "%s gives numbers, and keys are none", name);
  double held = ax_number_convert(type->dtype, AX_F64, number).f;
  double beyond = type->dtype == AX_U64 ? 0x1p64 : 0x1p63; /* what 64 bits do not hold is clamped, and comes back as this */
  bool fits = ax_is_float(type->dtype) ? isfinite(value) && (value == 0 || ax_number_holds(type->dtype, value)) : held == value && value < beyond;
  int64_t elems = ax_type_elems(type);
  if (!fits) return ax_error(AX_INVALID_ARGUMENT, "%s: %s does not hold %g", name, ax_dtype_name(type->dtype), value);
  for (int64_t i = 0; i < elems; i++) ax_number_store(type->dtype, data, i, number);
  return AX_OK;
}

static ax_status variance_of(const initializer *init, const ax_type *type, double *out) {
  if (type->rank < 2)
    return ax_error(AX_INVALID_ARGUMENT, "%s counts what goes in and out: it needs 2 dimensions, not %s", init->name,
                    ax_type_string(type, NULL));
  double in = (double)type->dims[type->rank - 2], result = (double)type->dims[type->rank - 1];
  double window = (double)ax_type_elems(type) / in / result;
  double n = init->fan == FAN_IN ? in * window : (in * window + result * window) / 2;
  *out = init->number / n;
  return AX_OK;
}

/* The factor for numbers between -1 and 1, or for normal numbers cut off at twice their deviation. */
static double factor_of(const initializer *init, ax_dtype dtype, double variance) {
  const double deviation_left = 0.87962566103423978; /* deviation of a normal distribution of deviation 1 that is cut off at -2 and
                                                        2 */
  variance = ax_rounded(dtype, variance);
  if (init->distribution == AX_UNIFORM) return ax_rounded(dtype, sqrt(ax_rounded(dtype, 3 * variance)));
  return ax_rounded(dtype, ax_rounded(dtype, sqrt(variance)) / ax_rounded(dtype, deviation_left));
}

ax_status ax_init_fill(const char *text, size_t length, const ax_type *type, ax_fill_key key, void *data) {
  const initializer *init = NULL;
  double number = 0, low = 0, high = 1, variance = 0;
  AX_TRY(parse(text, length, &init, &number));
  if (!init->random) return fill_constant(init->name, type, number, data);
  if (!ax_is_float(type->dtype))
    return ax_error(AX_INVALID_ARGUMENT, "%s gives floats, not %s", init->name, ax_type_string(type, NULL));
  if (init->fan != NO_FAN) {
    AX_TRY(variance_of(init, type, &variance));
    low = -1;
    number = factor_of(init, type->dtype, variance);
  }
  if (init->fan == NO_FAN && !isfinite(ax_rounded(type->dtype, number)))
    return ax_error(AX_INVALID_ARGUMENT, "%s: %s does not hold %g", init->name, ax_dtype_name(type->dtype), number);
  if (init->distribution == AX_TRUNCATED_NORMAL) low = -2, high = 2;
  ax_random_fill(key, init->distribution, low, high, number, type->dtype, ax_type_elems(type), data);
  return AX_OK;
}
