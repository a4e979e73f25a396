/* Kernels for f64 in registers of 64 bytes. */
#include "product/kernels_512.h"

#if AX_HAS_512

static inline doubles f64_multiply_add(doubles sum, doubles a, doubles b) {
  return (doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
}
static inline doubles f64_broadcast(const char *p) { return (doubles)_mm512_set1_pd(*(const double *)(const void *)p); }
static inline doubles f64_load(const char *p) { return (doubles)_mm512_loadu_pd(p); }
static inline doubles f64_load_some(const char *p, int count) {
  return (doubles)_mm512_maskz_loadu_pd((__mmask8)first_16(count), p);
}
static inline void f64_store(char *p, doubles x) { _mm512_storeu_pd(p, (__m512d)x); }
static inline void f64_store_some(char *p, doubles x, int count) {
  _mm512_mask_storeu_pd(p, (__mmask8)first_16(count), (__m512d)x);
}
static inline doubles f64_unit_along(const char *p, int count) { return count == 8 ? f64_load(p) : f64_load_some(p, count); }

#define KIND(name) f64_##name
#define UNITS(name) f64_##name
#define RESULTS(name) f64_##name
#define MULTIPLY_ADD f64_multiply_add
#define LANES 8
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR doubles
#define SUM doubles
#define NUMBER_BYTES 8
#include "product/tile_template.h"

const ax_product_kernels *ax_product_512_f64(void) { return &f64_kernels; }

#else

const ax_product_kernels *ax_product_512_f64(void) { return NULL; }

#endif
