/* A float's bits as an ordinal count ulps; where a sample sums, the error is bounded by the sum of absolute values. */
#include "support/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/number.h"

/* As an integer that grows with the number. */
static int64_t ordinal(const ax_tensor *tensor, int64_t at) {
  const ax_dtype dtype = ax_part_dtype(tensor->dtype);
  const size_t bytes = ax_dtype_bytes(dtype);
  uint64_t bits = 0;
  const uint64_t sign = ax_has_sign(dtype) ? (uint64_t)1 << (ax_dtype_get(dtype)->bits - 1) : 0;
  memcpy(&bits, (const char *)tensor->data + (size_t)at * bytes, bytes);
  return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static bool same_bits(const ax_tensor *a, const ax_tensor *b, int64_t at) {
  size_t bytes = ax_dtype_bytes(ax_part_dtype(a->dtype));
  return memcmp((const char *)a->data + (size_t)at * bytes, (const char *)b->data + (size_t)at * bytes, bytes) == 0;
}

/* Subnormal numbers of others are none of f32, as which they are computed. */
static bool has_f32_range(ax_dtype dtype) { return ax_float_smallest_normal(dtype) <= 0x1p-126; }

static bool within_ulps(const test_sample *sample, const ax_tensor *got, const ax_tensor *wanted, int64_t at) {
  unsigned most = ax_is_narrow_float(got->dtype) ? sample->narrow_ulps : sample->ulps;
  double g = test_get(got, at), w = test_get(wanted, at);
  if (isnan(g) || isnan(w) || signbit(g) != signbit(w)) return false;
  if (most > 0 && has_f32_range(got->dtype) && fabs(g - w) <= ax_float_smallest_normal(got->dtype))
    return true; /* what is added, or would round up to the least normal number, may be flushed before */
  return llabs(ordinal(got, at) - ordinal(wanted, at)) <= (long long)most;
}

/* Sums of up to `most_terms` terms are rounded as often at most, and narrow results once more. What is not finite: sums that
   overflow may do so in one order only. */
static bool within_sum(const ax_tensor *got, const ax_tensor *wanted, const ax_tensor *condition, int64_t at) {
  enum { most_terms = 256 };
  double g = test_get(got, at), w = test_get(wanted, at), c = fabs(test_get(condition, at));
  const bool in_f64 = ax_part_dtype(got->dtype) == AX_F64;
  const double unit = in_f64 ? 0x1p-53 : 0x1p-24;
  const double most = ax_is_narrow_float(got->dtype) && got->dtype != AX_BF16 ? ax_float_largest(got->dtype)
                      : in_f64                                                ? 0x1p1023
                                                                              : 0x1p127;
  if (isnan(c)) return isnan(g) && isnan(w);
  if (isinf(c)) return in_f64 || (!isfinite(g) && !isfinite(w));
  if (c >= most) return true;
  const double flushed = has_f32_range(got->dtype) ? ax_float_smallest_normal(got->dtype) : 0; /* each term at most */
  if (fabs(g - w) <= most_terms * (unit * c + flushed)) return true;
  return ax_is_narrow_float(got->dtype) && llabs(ordinal(got, at) - ordinal(wanted, at)) <= 1;
}

/* A library's result may be off by so many units of the largest element. */
static bool within_largest(const test_sample *sample, const ax_tensor *got, const ax_tensor *wanted, int64_t at) {
  const double unit = ax_part_dtype(got->dtype) == AX_F64 ? 0x1p-52 : 0x1p-23;
  double largest = 0;
  for (int64_t i = 0; i < test_elems(wanted); i++) largest = fmax(largest, fabs(test_get(wanted, i)));
  return fabs(test_get(got, at) - test_get(wanted, at)) <= sample->ulps * unit * largest;
}

/* A complex number's parts lose digits to each other: it may be off by so many units of its size, or of the largest element's where a
   sample sums. Below the normal numbers it may be flushed. */
static bool within_size(const test_sample *sample, const ax_tensor *got, const ax_tensor *wanted, int64_t at) {
  enum { units = 16 };
  const ax_dtype part = ax_part_dtype(got->dtype);
  const int64_t first = at - at % 2;
  double apart[2], size = 0;
  for (int64_t i = 0; i < 2; i++) apart[i] = same_bits(got, wanted, first + i) ? 0 : test_get(got, first + i) - test_get(wanted, first + i);
  const double off = hypot(apart[0], apart[1]);
  for (int64_t i = sample->sums ? 0 : first; i < (sample->sums ? test_elems(wanted) : first + 2); i += 2)
    size = fmax(size, hypot(test_get(wanted, i), test_get(wanted, i + 1)));
  return off <= (units + 4 * sample->ulps) * (part == AX_F64 ? 0x1p-53 : 0x1p-24) * size + 4 * ax_float_smallest_normal(part);
}

static bool same(const test_sample *sample, const ax_tensor *got, const ax_tensor *wanted, const ax_tensor *condition,
                 int64_t at) {
  if (same_bits(got, wanted, at)) return true;
  if (!ax_rounds(got->dtype)) return false;
  if (isnan(test_get(got, at)) && isnan(test_get(wanted, at))) return true;
  if (ax_is_complex(got->dtype)) return within_size(sample, got, wanted, at);
  if (sample->by_largest) return within_largest(sample, got, wanted, at);
  if (sample->sums && condition != NULL) return within_sum(got, wanted, condition, at);
  return within_ulps(sample, got, wanted, at);
}

void test_compare(const test_instance *instance, const char *what, const ax_tensor *got, const ax_tensor *wanted,
                  const ax_tensor *condition) {
  if (got->dtype != wanted->dtype || got->rank != wanted->rank ||
      memcmp(got->dims, wanted->dims, got->rank * sizeof got->dims[0]) != 0) {
    test_blame(instance, "%s: results of different types", what);
    return;
  }
  for (int64_t i = 0; i < test_elems(got); i++) {
    if (same(instance->sample, got, wanted, condition, i)) continue;
    test_blame(instance, "%s: element %lld is %.17g, not %.17g", what, (long long)i, test_get(got, i),
               test_get(wanted, i));
    return;
  }
}

ax_tensor *test_absolute(const ax_tensor *tensor) {
  ax_type type = ax_array_type(ax_is_float(tensor->dtype) ? AX_F64 : tensor->dtype, AX_LIST(tensor->rank, tensor->dims));
  ax_tensor *copy = test_tensor(type, NULL);
  if (type.dtype != AX_F64) memcpy(copy->data, tensor->data, test_tensor_bytes(tensor));
  for (int64_t i = 0; type.dtype == AX_F64 && i < test_elems(tensor); i++) test_set(copy, i, fabs(test_get(tensor, i)));
  return copy;
}
