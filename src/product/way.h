/* How a product is made (ax_product_way in product.h), for those who make it. */
#ifndef AX_PRODUCT_WAY_H
#define AX_PRODUCT_WAY_H

#include "product/product.h"

enum { AX_WAY_LONG_TILE = 64 }; /* steps: such a tile leaves time to prefetch */

static inline int64_t ax_round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }
/* Units have one, two or four numbers; a shift is used since a division takes as long as a small product. */
static inline int64_t ax_units_of(const ax_product_kernels *k, int64_t numbers) { return (numbers + k->unit - 1) >> k->unit / 2; }

/* The transposed product: rows and columns change places. */
ax_product ax_product_turned(const ax_product *product);
/* Says whether tiles can take rows of a where they lie: groups of steps are whole. */
bool ax_takes_in_place(const ax_product *product, const ax_product_kernels *kernels);
/* Says whether sums are rounded a group of rows at a time, while a near cache has them: they are one block of k. */
bool ax_rounds_groups(const ax_product *product, const ax_product_way *way);
/* Bytes from a row of such sums to the next; rows are not all in one set of the cache. */
int64_t ax_sums_row(const ax_product_way *way);

#endif
