/* Inside combine.c: extremes at places that are met often. */
#ifndef AX_OPS_COMBINE_KEPT_H
#define AX_OPS_COMBINE_KEPT_H

#include "ir/dtype.h"
#include "ops/combine.h"

typedef void ax_combine_rows(ax_scalar combine, const ax_short_rows *rows);

/* Whether it pays to look at elements before they are combined. */
bool ax_combines_kept(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows);
/* The same bits as `plain` makes, which combines one row after the other. */
void ax_combine_kept(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows, ax_combine_rows *plain);

#endif
