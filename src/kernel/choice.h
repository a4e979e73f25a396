/* The blocks that index maps choose where that is known only in a run, for all points of the grid at once (choice.c). */
#ifndef AX_KERNEL_CHOICE_H
#define AX_KERNEL_CHOICE_H

#include "kernel/beside.h"

/* (consts) -> (s32[]): 1 if every block that beside.h calls `late` is there, and no point comes back to a block of a result after another
   one, as far as order shows: blocks come in ascending order. Otherwise 0. in: the types of the operands of the kernel_call, consts first.
   axes: the environment; NULL: none, and the program takes no consts either (ax_choice_is_known). Owned by the caller; NULL on
   failure. */
AX_MUST_USE ax_status ax_choice_trace(const ax_kernel_params *params, const ax_type *in, uint32_t in_count, const ax_beside *beside,
                                      const ax_mesh *axes, ax_program **out);
/* Whether the grid has so few points that all of them are looked at. */
bool ax_choice_fits(const ax_kernel_params *params);
/* Whether the program needs no const and no axis, and has so few points that it is computed here. */
bool ax_choice_is_known(const ax_kernel_params *params, const ax_beside *beside);

#endif
