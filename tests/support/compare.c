/* A float's bits as an ordinal count ulps; where a sample sums, the error is bounded by the sum of absolute values. */
#include "support/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/number.h"

/* As an integer that grows with the number. */
static int64_t ordinal(const ax_tensor *tensor, int64_t at) {
  size_t bytes = ax_dtype_bytes(tensor->dtype);
  uint64_t bits = 0, sign = (uint64_t)1 << (8 * bytes - 1);
  memcpy(&bits, (const char *)tensor->data + (size_t)at * bytes, bytes);
  return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static bool same_bits(const ax_tensor *a, const ax_tensor *b, int64_t at) {
  size_t bytes = ax_dtype_bytes(a->dtype);
  return memcmp((const char *)a->data + (size_t)at * bytes, (const char *)b->data + (size_t)at * bytes, bytes) == 0;
}

static double least_normal(ax_dtype dtype) { return dtype == AX_F64 ? 0x1p-1022 : 0x1p-126; }

static bool within_ulps(const test_sample *sample, const ax_tensor *got, const ax_tensor *wanted, int64_t at) {
  unsigned most = ax_is_narrow_float(got->dtype) ? sample->narrow_ulps : sample->ulps;
  double g = test_get(got, at), w = test_get(wanted, at);
  if (isnan(g) || isnan(w) || signbit(g) != signbit(w)) return false;
  if (most > 0 && got->dtype != AX_F16 && (g == 0 || w == 0) && fabs(g + w) == least_normal(got->dtype))
    return true; /* what would round up to the least normal number may be flushed before */
  return llabs(ordinal(got, at) - ordinal(wanted, at)) <= (long long)most;
}

/* Sums of up to `most_terms` terms are rounded as often at most, and narrow results once more. What is not finite: sums that
   overflow may do so in one order only. */
static bool within_sum(const ax_tensor *got, const ax_tensor *wanted, const ax_tensor *condition, int64_t at) {
  enum { most_terms = 256 };
  double g = test_get(got, at), w = test_get(wanted, at), c = fabs(test_get(condition, at));
  double unit = got->dtype == AX_F64 ? 0x1p-53 : 0x1p-24, most = got->dtype == AX_F64   ? 0x1p1023
                                                                 : got->dtype == AX_F16 ? 65504
                                                                                        : 0x1p127;
  if (isnan(c)) return isnan(g) && isnan(w);
  if (isinf(c)) return got->dtype == AX_F64 || (!isfinite(g) && !isfinite(w));
  if (c >= most) return true;
  if (fabs(g - w) <= most_terms * unit * c) return true;
  return ax_is_narrow_float(got->dtype) && llabs(ordinal(got, at) - ordinal(wanted, at)) <= 1;
}

static bool same(const test_sample *sample, const ax_tensor *got, const ax_tensor *wanted, const ax_tensor *condition,
                 int64_t at) {
  if (same_bits(got, wanted, at)) return true;
  if (!ax_is_float(got->dtype)) return false;
  if (isnan(test_get(got, at)) && isnan(test_get(wanted, at))) return true;
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
  if (type.dtype != AX_F64) memcpy(copy->data, tensor->data, (size_t)test_elems(tensor) * ax_dtype_bytes(type.dtype));
  for (int64_t i = 0; type.dtype == AX_F64 && i < test_elems(tensor); i++) test_set(copy, i, fabs(test_get(tensor, i)));
  return copy;
}
