/* Kernels for f32 in registers of 64 bytes, and for bf16 and f16 that become such when they are packed: their tiles are the same
   code. */
#include "product/kernels_512.h"

#if AX_HAS_512

#define KIND(name) f32_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 4
#include "product/tile_template.h"

static inline floats bf16_unit_along(const char *p, int count) {
  return (floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(short_lanes(p, count < 16 ? count : 16)), 16);
}

#define KIND(name) bf16_##name
#define ROUND bf16_round
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

static inline floats f16_unit_along(const char *p, int count) {
  return (floats)_mm512_cvtph_ps(short_lanes(p, count < 16 ? count : 16));
}

#define KIND(name) f16_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 1
#define SOME 1
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

const ax_product_kernels *ax_product_512_f32(void) { return &f32_kernels; }
const ax_product_kernels *ax_product_512_bf16(void) { return &bf16_kernels; }
const ax_product_kernels *ax_product_512_f16(void) { return &f16_kernels; }

#else

const ax_product_kernels *ax_product_512_f32(void) { return NULL; }
const ax_product_kernels *ax_product_512_bf16(void) { return NULL; }
const ax_product_kernels *ax_product_512_f16(void) { return NULL; }

#endif
