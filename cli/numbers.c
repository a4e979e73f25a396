/* Numbers for inputs that are not given. How long an operation takes may depend on them: exponentials that underflow, and numbers
   too small for a whole mantissa, cost many times as much on some processors. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "tree/random.h"

enum {
  most_drawn = 1 << 20, /* elements; from there on an array repeats itself, so that large inputs are soon made */
  most_unlimited = 10   /* integers that index nothing are below it */
};

static const char *const names[] = {"normal", "uniform", "ones", "masked", "vanishing"};

const char *numbers_name(numbers_kind kind) { return names[kind]; }

bool numbers_find(const char *name, numbers_kind *out) {
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    if (strcmp(names[i], name) != 0) continue;
    *out = (numbers_kind)i;
    return true;
  }
  return false;
}

/* Draws from 0 to 1, without 1. Owned by the caller; NULL: no memory. */
static double *draw(ax_fill_key key, uint32_t number, int64_t count) {
  double *drawn = ax_alloc(((size_t)count + 1) * sizeof drawn[0]);
  if (drawn != NULL) ax_random_fill(ax_fill_key_fold_in(key, number), AX_UNIFORM, 0, 1, 1, AX_F64, count, drawn);
  return drawn;
}

/* --- Floats --- */

/* Models put such numbers where attention must not look. -1e9 is halved for smaller floats until they
   have it. */
static double masked_out(ax_dtype dtype) {
  double x = -1e9;
  while (ax_has_sign(dtype) && !ax_number_holds(dtype, x)) x /= 2;
  return x;
}

static void mask_out(ax_dtype dtype, const double *draws, int64_t count, void *data) {
  const ax_number out = {.f = masked_out(dtype)};
  for (int64_t i = 0; i < count; i++)
    if (draws[i] < 0.5) ax_number_store(dtype, data, i, out);
}

/* The exponent of the least number above 0. */
static int least_exponent(ax_dtype dtype) {
  int exponent = 0;
  while (ax_number_round(dtype, (ax_number){.f = ldexp(1, exponent - 1)}).f > 0) exponent--;
  return exponent;
}

/* Numbers of either sign, as many in 1e-20 .. 1e-19 as in 0.1 .. 1. */
static void vanish(ax_dtype dtype, const double *draws, int64_t count, void *data) {
  const int least = least_exponent(dtype);
  for (int64_t i = 0; i < count; i++) {
    const double twice = 2 * draws[i], part = twice - floor(twice);
    ax_number_store(dtype, data, i, (ax_number){.f = (twice < 1 ? 1 : -1) * exp2(part * least)});
  }
}

static void fill_floats(numbers_kind kind, ax_fill_key key, const double *draws, ax_dtype dtype, int64_t count, void *data) {
  if (!ax_has_sign(dtype)) ax_random_fill(key, AX_UNIFORM, 0.25, 4, 1, dtype, count, data);
  else if (kind == NUMBERS_VANISHING) vanish(dtype, draws, count, data);
  else if (kind == NUMBERS_UNIFORM) ax_random_fill(key, AX_UNIFORM, -1, 1, 1, dtype, count, data);
  else ax_random_fill(key, AX_NORMAL, 0, 1, 1, dtype, count, data);
  if (kind == NUMBERS_MASKED) mask_out(dtype, draws, count, data);
}

/* --- Integers and booleans --- */

static int64_t below(ax_dtype dtype, int64_t limit) {
  if (dtype == AX_BOOL) return 2;
  return limit < INT64_MAX ? limit : most_unlimited;
}

static void fill_whole(const double *draws, ax_dtype dtype, int64_t limit, int64_t count, void *data) {
  for (int64_t i = 0; i < count; i++) ax_number_store(dtype, data, i, (ax_number){.i = (int64_t)(draws[i] * (double)limit)});
}

/* --- Arrays --- */

static void fill_ones(ax_host_array *array, int64_t count) {
  const ax_number one = ax_number_convert(AX_F64, array->dtype, (ax_number){.f = 1});
  for (int64_t i = 0; i < count; i++) ax_number_store(array->dtype, array->data, i, one);
}

static ax_status fill_drawn(const numbers *n, uint32_t input, int64_t limit, ax_host_array *array, int64_t count) {
  const ax_fill_key key = ax_fill_key_fold_in(ax_fill_key_of(n->seed), input);
  const bool is_complex = ax_is_complex(array->dtype); /* drawn part by part */
  const ax_dtype dtype = ax_part_dtype(array->dtype);
  if (is_complex) count *= 2;
  double *draws = draw(key, 1, count);
  if (draws == NULL) return ax_out_of_memory((size_t)count * sizeof draws[0]);
  if (ax_is_float(dtype)) fill_floats(n->kind, key, draws, dtype, count, array->data);
  else fill_whole(draws, array->dtype, below(array->dtype, limit), count, array->data);
  ax_free(draws);
  return AX_OK;
}

/* The first `count` elements, over and over. */
static void repeat(ax_host_array *array, int64_t count, int64_t elems) {
  const size_t bytes = ax_dtype_bytes(array->dtype);
  for (int64_t i = count; i < elems; i += count)
    memcpy((char *)array->data + (size_t)i * bytes, array->data, (size_t)(elems - i < count ? elems - i : count) * bytes);
}

ax_status numbers_fill(const numbers *n, uint32_t input, const ax_type *type, int64_t limit, ax_host_array *out) {
  const int64_t elems = ax_type_elems(type), count = elems < most_drawn ? elems : most_drawn;
  AX_TRY(host_make(type, out));
  if (n->kind == NUMBERS_ONES) fill_ones(out, count);
  else AX_TRY(fill_drawn(n, input, limit, out, count));
  repeat(out, count, elems);
  return AX_OK;
}
