/* Shared by the kernels for registers of 32 bytes: the operations on 32-bit integers. The header is empty if the compiler does not
   target AVX2. */
#ifndef AX_PRODUCT_KERNELS_256_H
#define AX_PRODUCT_KERNELS_256_H

#include "product/table.h"

#if defined(__AVX2__)

#include <immintrin.h>
#include <string.h>

typedef uint32_t words __attribute__((vector_size(32)));

/* A mask of the first `count` lanes. */
static inline __m256i first_8(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline words s32_multiply_add(words sum, words a, words b) { return sum + a * b; }
static inline words s32_broadcast(const char *p) {
  int x;
  memcpy(&x, p, sizeof x); /* four bytes need not be aligned */
  return (words)_mm256_set1_epi32(x);
}
static inline words s32_load(const char *p) { return (words)_mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline words s32_load_some(const char *p, int count) {
  return (words)_mm256_maskload_epi32((const int *)(const void *)p, first_8(count));
}
static inline void s32_store(char *p, words x) { _mm256_storeu_si256((__m256i *)(void *)p, (__m256i)x); }
static inline void s32_store_some(char *p, words x, int count) {
  _mm256_maskstore_epi32((int *)(void *)p, first_8(count), (__m256i)x);
}
static inline words s32_unit_along(const char *p, int count) { return count == 8 ? s32_load(p) : s32_load_some(p, count); }

#endif
#endif
