/* Kernels for fours of s8, and of u8, which the processor multiplies and adds in one instruction. */
#include "product/kernels_512.h"

#if AX_HAS_512 && defined(__AVX512VNNI__)

#define KIND(name) four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD four_multiply_add
#define SHIFTED 1
#define LANES 16
#define ROWS 14
#define UNIT 4
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

#define KIND(name) u8_four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD u8_four_multiply_add
#define SHIFTED 1
#define LANES 16
#define ROWS 14
#define UNIT 4
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_512_fours(void) { return &four_kernels; }
const ax_product_kernels *ax_product_512_u8_fours(void) { return &u8_four_kernels; }

#else

const ax_product_kernels *ax_product_512_fours(void) { return NULL; }
const ax_product_kernels *ax_product_512_u8_fours(void) { return NULL; }

#endif
