/* Layouts of buffers: the order of their dimensions in memory. Axle's arrays are row-major, so that another order is what a buffer is
   said to have, and callers that copy see it: nothing is laid out so. */
#ifndef AX_PJRT_LAYOUTS_H
#define AX_PJRT_LAYOUTS_H

#include "pjrt/pjrt.h"

/* From XLA's text, {0,1}, or the words default and auto, which are row-major. AX_PJRT_UNIMPLEMENTED: tiles and what else there is. */
ax_pjrt_error *ax_pjrt_order_read(const char *text, uint32_t rank, ax_pjrt_order *out);
/* Of `rank` dimensions, the one that changes fastest first. AX_PJRT_INVALID_ARGUMENT: not each of them once. */
ax_pjrt_error *ax_pjrt_order_of(const int64_t *minor_to_major, uint32_t rank, ax_pjrt_order *out);
/* What callers get of these values' layouts, and its end; layouts NULL: nothing is done. */
ax_pjrt_error *ax_pjrt_layouts_of(const ax_pjrt_value *values, size_t count, ax_pjrt_layout ***out);
void ax_pjrt_layouts_free(ax_pjrt_layout **layouts, size_t count);
extern ax_pjrt_layouts ax_pjrt_layouts_extension;

#endif
