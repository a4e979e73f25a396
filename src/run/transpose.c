/* See transpose.h. Dense rows of items of 1, 2, 4 or 8 bytes are transposed in squares of 16 bytes by 16 bytes, in registers:

     q0: a b c d        p0: a e i m      with 4-byte items; each round of zips doubles the items of one column
     q1: e f g h   -->  p1: b f j n      that stand together
     q2: i j k l        p2: c g k o
     q3: m n o p        p3: d h l p

   All else is copied item by item. */
#include "run/transpose.h"

#include <string.h>

typedef uint8_t vector __attribute__((vector_size(16)));
enum { square_bytes = sizeof(vector), line_bytes = 64 };

/* --- Squares. `item` is a constant wherever these are inlined. --- */

#define INLINE static inline __attribute__((always_inline))

/* The lower, or upper, halves of two vectors, item by item in turn. */
INLINE vector zip_low(vector a, vector b, int64_t item) {
  switch (item) {
    case 1: return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    case 2: return __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
    case 4: return __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    default: return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  }
}

INLINE vector zip_high(vector a, vector b, int64_t item) {
  switch (item) {
    case 1: return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    case 2: return __builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
    case 4: return __builtin_shufflevector(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    default: return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
}

INLINE void transpose_square(char *const *dst, int64_t to, const char *const *src, int64_t from, int64_t item) {
  const int side = (int)(square_bytes / item);
  vector rows[square_bytes], zipped[square_bytes];
#pragma GCC unroll 16
  for (int i = 0; i < side; i++) memcpy(&rows[i], src[i] + from, square_bytes);
#pragma GCC unroll 4
  for (int width = 1; width < side; width *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < side / 2; i++) {
      zipped[2 * i] = zip_low(rows[i], rows[i + side / 2], item);
      zipped[2 * i + 1] = zip_high(rows[i], rows[i + side / 2], item);
    }
#pragma GCC unroll 16
    for (int i = 0; i < side; i++) rows[i] = zipped[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < side; i++) memcpy(dst[i] + to, &rows[i], square_bytes);
}

/* Transposes a cache line of each source row. Rows often lie a power of two apart, so their lines would drive each other out of the
   cache if results were written 16 bytes at a time: they are put together here first. */
INLINE void transpose_lines(char *const *dst, int64_t to, const char *const *src, int64_t from, int64_t item) {
  const uint32_t side = (uint32_t)(square_bytes / item), line = (uint32_t)(line_bytes / item);
  _Alignas(line_bytes) char lines[line_bytes][line_bytes];
  char *rows[line_bytes];
  for (uint32_t p = 0; p < line; p++) rows[p] = lines[p];
  for (uint32_t q = 0; q < line; q += side)
    for (uint32_t p = 0; p < line; p += side) transpose_square(rows + p, q * item, src + q, from + p * item, item);
  for (uint32_t p = 0; p < line; p++) memcpy(dst[p] + to, lines[p], line_bytes);
}

/* Does whole squares: as many as possible by cache lines. */
INLINE void transpose_squares(char *const *dst, uint32_t dst_count, const char *const *src, uint32_t src_count, int64_t item) {
  const uint32_t side = (uint32_t)(square_bytes / item), line = (uint32_t)(line_bytes / item);
  for (uint32_t p = 0; p < dst_count; p += line)
    for (uint32_t q = 0; q < src_count; q += line) {
      if (p + line <= dst_count && q + line <= src_count) {
        transpose_lines(dst + p, q * item, src + q, p * item, item);
        continue;
      }
      for (uint32_t j = q; j < src_count && j < q + line; j += side)
        for (uint32_t i = p; i < dst_count && i < p + line; i += side)
          transpose_square(dst + i, j * item, src + j, i * item, item);
    }
}

/* --- Items --- */

INLINE void copy_items(char *const *dst, int64_t dst_step, uint32_t dst_count, const char *const *src, int64_t src_step,
                       uint32_t src_first, uint32_t src_count, int64_t item) {
  for (uint32_t p = 0; p < dst_count; p++)
    for (uint32_t q = src_first; q < src_count; q++) memcpy(dst[p] + q * dst_step, src[q] + p * src_step, (size_t)item);
}

/* The squares, then the rest of each source row, then the rest of each destination row. */
INLINE void transpose_items(char *const *dst, int64_t dst_step, uint32_t dst_count, const char *const *src, int64_t src_step,
                            uint32_t src_count, int64_t item) {
  const uint32_t side = (uint32_t)(square_bytes / item);
  uint32_t p = 0, q = 0;
  if (side > 1 && dst_step == item && src_step == item) {
    p = dst_count / side * side;
    q = src_count / side * side;
    transpose_squares(dst, p, src, q, item);
  }
  copy_items(dst, dst_step, p, src, src_step, q, src_count, item);
  for (; p < dst_count; p++)
    for (uint32_t i = 0; i < src_count; i++) memcpy(dst[p] + i * dst_step, src[i] + p * src_step, (size_t)item);
}

void ax_transpose_rows(char *const *dst, int64_t dst_step, uint32_t dst_count, const char *const *src, int64_t src_step,
                       uint32_t src_count, int64_t item) {
  switch (item) {
    case 1: transpose_items(dst, dst_step, dst_count, src, src_step, src_count, 1); break;
    case 2: transpose_items(dst, dst_step, dst_count, src, src_step, src_count, 2); break;
    case 4: transpose_items(dst, dst_step, dst_count, src, src_step, src_count, 4); break;
    case 8: transpose_items(dst, dst_step, dst_count, src, src_step, src_count, 8); break;
    case 16: copy_items(dst, dst_step, dst_count, src, src_step, 0, src_count, 16); break;
    case 32: copy_items(dst, dst_step, dst_count, src, src_step, 0, src_count, 32); break;
    case 64: copy_items(dst, dst_step, dst_count, src, src_step, 0, src_count, 64); break;
    default: copy_items(dst, dst_step, dst_count, src, src_step, 0, src_count, item);
  }
}
