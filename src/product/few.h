/* Products of few rows by a large b. */
#ifndef AX_PRODUCT_FEW_H
#define AX_PRODUCT_FEW_H

#include "product/product.h"

/* Whether b is read where it lies, in long runs, once; then how, but for what the way says of every product. */
bool ax_few_streams(const ax_product *product, const ax_product_kernels *kernels);
void ax_few_choose(ax_product_way *way, const ax_product *product);
/* The same of a b that lies transposed. */
bool ax_few_turns(const ax_product *product, const ax_product_kernels *kernels);
void ax_few_choose_turns(ax_product_way *way, const ax_product *product);
void ax_few_run_turns(const ax_product *product, const ax_product_way *way, const char *a, const char *b, char *c, char *work);
void ax_few_run(const ax_product *product, const ax_product_way *way, const char *a, const char *b, char *c, char *work);

#endif
