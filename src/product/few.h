/* Products of few rows by a large b. */
#ifndef AX_PRODUCT_FEW_H
#define AX_PRODUCT_FEW_H

#include "product/product.h"

/* _streams: says whether b is read once, in long runs, where it lies. _choose: then fills in the fields of `way` that differ
   from those of other products. */
bool ax_few_streams(const ax_product *product, const ax_product_kernels *kernels);
void ax_few_choose(ax_product_way *way, const ax_product *product);
/* Says whether a is tall and lies transposed, so that the transposed product may be made so, and its rows put where c has columns.
   _turn_back: changes the way of the transposed product, if that streams b in one block of k, to this. */
bool ax_few_may_stream_left(const ax_product *product, const ax_product_kernels *kernels);
void ax_few_turn_back(ax_product_way *way, const ax_product *turned);
/* The same for a b that lies transposed. */
bool ax_few_turns(const ax_product *product, const ax_product_kernels *kernels);
void ax_few_choose_turns(ax_product_way *way, const ax_product *product);
void ax_few_run_turns(const ax_product *product, const ax_product_way *way, const char *a, const char *b, char *c, char *work);
void ax_few_run(const ax_product *product, const ax_product_way *way, const char *a, const char *b, char *c, char *work);

#endif
