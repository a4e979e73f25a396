/* Kernels for 32-bit integers in registers of 64 bytes, and for s8 and u8 that become such when they are packed. */
#include "product/kernels_512.h"

#if AX_HAS_512

#define KIND(name) s32_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 4
#include "product/tile_template.h"

static inline words s8_unit_along(const char *p, int count) {
  return (words)_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first_16(count < 16 ? count : 16), p));
}

#define KIND(name) s8_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

static inline words u8_unit_along(const char *p, int count) {
  return (words)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_16(count < 16 ? count : 16), p));
}

#define KIND(name) u8_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_512_s32(void) { return &s32_kernels; }
const ax_product_kernels *ax_product_512_s8(void) { return &s8_kernels; }
const ax_product_kernels *ax_product_512_u8(void) { return &u8_kernels; }

#else

const ax_product_kernels *ax_product_512_s32(void) { return NULL; }
const ax_product_kernels *ax_product_512_s8(void) { return NULL; }
const ax_product_kernels *ax_product_512_u8(void) { return NULL; }

#endif
