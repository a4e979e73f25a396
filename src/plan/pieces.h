/* Inside the pass pieces: arrays put together from parts, or padded, which views read. */
#ifndef AX_PLAN_PIECES_H
#define AX_PLAN_PIECES_H

#include "plan/plan.h"

/* Of which only views of the parts are read: each part gets a buffer of its own. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_pieces_by_views(ax_plan *plan);
/* Of which kernels read slices: they read the array itself. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_pieces_by_slices(ax_plan *plan);

#endif
