/* A plan's products in the terms of product/product.h, and right factors in panels. A factor is packed once, for all products
   that share it. */
#ifndef AX_PLAN_PANELS_H
#define AX_PLAN_PANELS_H

#include "plan/plan.h"
#include "product/product.h"

/* The product of `rows` rows and `columns` columns of one matrix of the batch; the way it is computed. */
ax_product ax_gemm_product(const ax_gemm *gemm, int64_t rows, int64_t columns);
ax_product_way ax_gemm_way(const ax_gemm *gemm, const ax_product *product);
/* Whether the results, of all products of the batch, are dense in memory from the beginning of c on, and so many. */
bool ax_gemm_is_dense(const ax_gemm *gemm, int64_t elems);
/* Whether the product, if it accumulates, adds the old value last, so that bits are those of a separate addition: its sums end in
   registers. */
bool ax_gemm_adds_last(const ax_gemm *gemm);

/* The k x n matrices of a buffer and their layout. Packed they lie one after the other, ax_panels_each numbers each. */
typedef struct ax_panels {
  ax_dtype dtype;
  int64_t n, k, row, column, offset; /* strides of rows and columns, and the first matrix's place: in numbers */
  uint32_t rank;                     /* dimensions of the batch of matrices, row-major */
  int64_t dims[AX_MAX_RANK + AX_GEMM_TERMS], stride[AX_MAX_RANK + AX_GEMM_TERMS];
} ax_panels;

bool ax_panels_equal(const ax_panels *a, const ax_panels *b);
int64_t ax_panels_each(const ax_panels *panels);
/* The numbers of all matrices, packed; the parts that packing is worth cutting into. */
int64_t ax_panels_numbers(const ax_panels *panels);
uint32_t ax_panels_parts(const ax_panels *panels);
/* Packs memory[0] into memory[1]: the function of a routine whose data is an ax_panels. */
ax_status ax_panels_pack(const void *panels, void *const *memory, uint32_t part);

#endif
