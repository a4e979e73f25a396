/* Kernels for pairs of bf16, which the processor multiplies and adds in one instruction. For numbers that this instruction takes
   as 0 (subnormal ones) there is a tile that makes the same additions in f32. */
#include "product/kernels_512.h"

#if AX_HAS_512 && defined(__AVX512BF16__)

static inline floats pair_multiply_add(floats sum, words a, words b) {
  return (floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

/* The same additions in f32: the processor adds the second product of a pair first. */
static inline floats careful_multiply_add(floats sum, words a, words b) {
  const words second = (words){0} + 0xffff0000u;
  return f32_multiply_add(f32_multiply_add(sum, (floats)(a & second), (floats)(b & second)), (floats)(a << 16), (floats)(b << 16));
}
#define careful_unit_across pair_unit_across
#define careful_unit_along pair_unit_along

#define KIND(name) careful_##name
#define UNITS(name) s32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD careful_multiply_add
#define LANES 16
#define ROWS 14
#define UNIT 2
#define SOME 1
#define FACTOR words
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

#define KIND(name) pair_##name
#define ROUND bf16_round
#define UNITS(name) s32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD pair_multiply_add
#define CAREFUL 1
#define CAREFUL_KIND(name) careful_##name
#define LANES 16
#define ROWS 14
#define UNIT 2
#define SOME 1
#define FACTOR words
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

const ax_product_kernels *ax_product_512_pairs(void) { return &pair_kernels; }

#else

const ax_product_kernels *ax_product_512_pairs(void) { return NULL; }

#endif
