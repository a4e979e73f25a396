/* A plan's products as product/product.h has them, and their right factors in panels, as they read them: packed once, for whatever
   products have them in common. */
#ifndef AX_PLAN_PANELS_H
#define AX_PLAN_PANELS_H

#include "plan/plan.h"
#include "product/product.h"

/* Some rows and columns of a product of a batch, and how that is made. */
ax_product ax_gemm_product(const ax_gemm *gemm, int64_t rows, int64_t columns);
ax_product_way ax_gemm_way(const ax_gemm *gemm, const ax_product *product);

/* Matrices k x n of a buffer, and how they lie there. Packed they lie one after the other, each ax_panels_each numbers. */
typedef struct ax_panels {
  ax_dtype dtype;
  int64_t n, k, row, column, offset; /* from row to row and from column to column, and where the first begins: numbers */
  uint32_t rank;                     /* of which there are so many: row-major */
  int64_t dims[AX_MAX_RANK + AX_GEMM_TERMS], stride[AX_MAX_RANK + AX_GEMM_TERMS];
} ax_panels;

bool ax_panels_equal(const ax_panels *a, const ax_panels *b);
int64_t ax_panels_each(const ax_panels *panels);
/* All of them; and the parts into which packing is worth cutting. */
int64_t ax_panels_numbers(const ax_panels *panels);
uint32_t ax_panels_parts(const ax_panels *panels);
/* Packs memory[0] into memory[1]: the function of a routine whose data is an ax_panels. */
ax_status ax_panels_pack(const void *panels, void *const *memory, uint32_t part);

#endif
