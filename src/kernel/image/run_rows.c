/* Rows of views: pieces that lie dense on both sides, in row-major order of the elements.

   What goes to memory that nobody reads soon, an operand's or a result's, is written past the caches where there is much of it:
   else each line would be read before it is written, a third of all the traffic. */
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include "kernel/image/run.h"
#include "machine/features.h"

enum { least_past = 1 << 14 }; /* bytes */

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx"))) static void copy_past(char *to, const char *from, size_t bytes) {
  size_t head = -(uintptr_t)to & 31;
  memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= 128; to += 128, from += 128, bytes -= 128) {
    __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)from),
            b = _mm256_loadu_si256((const __m256i *)(const void *)(from + 32));
    __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(from + 64)),
            d = _mm256_loadu_si256((const __m256i *)(const void *)(from + 96));
    _mm256_stream_si256((__m256i *)(void *)to, a), _mm256_stream_si256((__m256i *)(void *)(to + 32), b);
    _mm256_stream_si256((__m256i *)(void *)(to + 64), c), _mm256_stream_si256((__m256i *)(void *)(to + 96), d);
  }
  memcpy(to, from, bytes);
}
static bool can_copy_past(void) { return ax_machine_has(AX_FEATURE_AVX); }
static void end_past(void) { _mm_sfence(); }
#else
static void copy_past(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }
static bool can_copy_past(void) { return false; }
static void end_past(void) {}
#endif

/* The last dimensions that lie in one piece in both: how many, and their bytes. */
static uint32_t dense_tail(const ax_type *type, const int64_t *a, const int64_t *b, int64_t *bytes) {
  uint32_t dense = 0;
  *bytes = (int64_t)ax_dtype_bytes(type->dtype);
  while (dense < type->rank) {
    uint32_t d = type->rank - 1 - dense;
    if (type->dims[d] != 1 && (a[d] != *bytes || b[d] != *bytes)) break;
    *bytes *= type->dims[d];
    dense++;
  }
  return dense;
}

static void dense_strides(const ax_type *type, int64_t *out) {
  int64_t stride = (int64_t)ax_dtype_bytes(type->dtype);
  for (uint32_t d = type->rank; d-- > 0; stride *= type->dims[d]) out[d] = stride;
}

static bool overlap(const char *a, const char *b, int64_t bytes) { return a < b + bytes && b < a + bytes; }

/* One piece after the other. */
void ax_rows_copy(const ax_type *type, const int64_t *from_strides, const void *from, const int64_t *to_strides, void *to,
                  bool far) {
  int64_t bytes, index[AX_MAX_RANK] = {0};
  const char *source = from;
  char *target = to;
  if (ax_type_elems(type) == 0) return;
  uint32_t outer = type->rank - dense_tail(type, from_strides, to_strides, &bytes);
  bool past = far && ax_type_elems(type) * (int64_t)ax_dtype_bytes(type->dtype) >= least_past && bytes >= 256 && can_copy_past();
  for (bool more = true; more;) {
    if (past && !overlap(target, source, bytes)) copy_past(target, source, (size_t)bytes);
    else memmove(target, source, (size_t)bytes);
    more = false;
    for (uint32_t d = outer; d-- > 0 && !more;) {
      source += from_strides[d], target += to_strides[d];
      more = ++index[d] < type->dims[d];
      if (more) continue;
      source -= from_strides[d] * type->dims[d], target -= to_strides[d] * type->dims[d];
      index[d] = 0;
    }
  }
  if (past) end_past();
}

/* Element by element: to or from dense memory. */
static void masked(const ax_type *type, const int64_t *strides, char *view, const unsigned char *mask, char *dense, bool takes) {
  size_t bytes = ax_dtype_bytes(type->dtype);
  int64_t elems = ax_type_elems(type), index[AX_MAX_RANK] = {0};
  for (int64_t i = 0; i < elems; i++, dense += bytes) {
    if (mask[i] != 0) memcpy(takes ? dense : view, takes ? view : dense, bytes);
    for (uint32_t d = type->rank; d-- > 0;) {
      view += strides[d];
      if (++index[d] < type->dims[d]) break;
      view -= strides[d] * type->dims[d];
      index[d] = 0;
    }
  }
}

void ax_rows_take(const ax_type *type, const int64_t *strides, const void *view, const unsigned char *mask, void *to) {
  int64_t dense[AX_MAX_RANK];
  dense_strides(type, dense);
  if (mask != NULL) masked(type, strides, (char *)(uintptr_t)view, mask, to, true);
  else ax_rows_copy(type, strides, view, dense, to, false);
}

void ax_rows_put(const ax_type *type, const int64_t *strides, void *view, const unsigned char *mask, const void *from) {
  int64_t dense[AX_MAX_RANK];
  dense_strides(type, dense);
  if (mask != NULL) masked(type, strides, view, mask, (char *)(uintptr_t)from, false);
  else ax_rows_copy(type, dense, from, strides, view, false);
}
