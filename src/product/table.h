/* The table of kernels. */
#ifndef AX_PRODUCT_TABLE_H
#define AX_PRODUCT_TABLE_H

#include "product/kernels.h"

typedef struct ax_product_entry {
  uint32_t dtypes, needs; /* a bit for each dtype; for each feature (machine/features.h) */
  uint32_t bytes;         /* of a register */
  const char *name;
  const ax_product_kernels *(*kernels)(void); /* NULL if the library was compiled without these instructions */
} ax_product_entry;

/* The entry for a processor with these features, with registers of at most so many bytes. NULL: there are no products of this
   dtype. */
const ax_product_entry *ax_product_entry_of(ax_dtype dtype, uint32_t most_bytes, uint32_t features);
/* The kernels of the entry for this processor. */
const ax_product_kernels *ax_product_kernels_of(ax_dtype dtype, uint32_t most_bytes);

/* For tests: features that count as missing, or as there, when this processor is asked; a bit each. */
extern uint32_t ax_product_hidden, ax_product_added;

/* Each is NULL if its file was compiled without the instructions that it needs. Nothing in them is called before the processor was
   asked for these. */
const ax_product_kernels *ax_product_amx_pairs(void); /* bf16, s8 and u8, in tiles */
const ax_product_kernels *ax_product_amx_fours(void);
const ax_product_kernels *ax_product_amx_u8_fours(void);
const ax_product_kernels *ax_product_256_f32(void);
const ax_product_kernels *ax_product_256_f64(void);
const ax_product_kernels *ax_product_256_s32(void);
const ax_product_kernels *ax_product_256_s8(void);
const ax_product_kernels *ax_product_256_u8(void);
const ax_product_kernels *ax_product_256_bf16(void);
const ax_product_kernels *ax_product_256_f16(void);
const ax_product_kernels *ax_product_256_fours(void); /* s8, and u8, by the processor's products of fours */
const ax_product_kernels *ax_product_256_u8_fours(void);
const ax_product_kernels *ax_product_128_f32(void);
const ax_product_kernels *ax_product_128_f64(void);
const ax_product_kernels *ax_product_128_s32(void);
const ax_product_kernels *ax_product_128_s8(void);
const ax_product_kernels *ax_product_128_u8(void);
const ax_product_kernels *ax_product_128_bf16(void);
const ax_product_kernels *ax_product_128_f16(void);

#endif
