/* Products of few rows by a large b. */
#ifndef AX_PRODUCT_FEW_H
#define AX_PRODUCT_FEW_H

#include "product/product.h"

/* _streams: says whether b is read once, in long runs, where it lies. _choose: then fills in the fields of `way` that differ
   from those of other products. */
bool ax_few_streams(const ax_product *product, const ax_product_kernels *kernels);
void ax_few_choose(ax_product_way *way, const ax_product *product);
/* The same for a b that lies transposed. */
bool ax_few_turns(const ax_product *product, const ax_product_kernels *kernels);
void ax_few_choose_turns(ax_product_way *way, const ax_product *product);
void ax_few_run_turns(const ax_product *product, const ax_product_way *way, const char *a, const char *b, char *c, char *work);
void ax_few_run(const ax_product *product, const ax_product_way *way, const char *a, const char *b, char *c, char *work);

#endif
