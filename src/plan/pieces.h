/* Inside the pass pieces: arrays put together from parts, which only views of the parts read. */
#ifndef AX_PLAN_PIECES_H
#define AX_PLAN_PIECES_H

#include "plan/plan.h"

/* AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_pieces_by_views(ax_plan *plan);

#endif
