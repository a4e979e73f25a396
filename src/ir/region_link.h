/* The questions that walkers ask about the programs an equation holds (`links`, ir/prim.h): instead of naming scan, while or cond,
   a walker goes through the inputs and outputs of each program, and asks what they are. */
#ifndef AX_IR_REGION_LINK_H
#define AX_IR_REGION_LINK_H

#include "ir/prim.h"
#include "ir/program.h"

ax_region_link ax_region_link_in(const ax_eqn *eqn, uint32_t program, uint32_t input);
ax_region_link ax_region_link_out(const ax_eqn *eqn, uint32_t program, uint32_t output);
/* Whether any output of the program becomes a result; the condition of a loop, for one, only looks at the carries. */
bool ax_region_link_gives(const ax_eqn *eqn, uint32_t program);
/* How many of its programs a run of the equation goes through: of a function with derivatives of its own (`derived`), the first
   alone. */
uint32_t ax_region_link_programs(const ax_eqn *eqn);
/* AX_INTERNAL, with the primitive's name: it holds programs, and has no `links` rule. Asked for each equation as it is made. */
AX_MUST_USE ax_status ax_region_link_check(const ax_prim *prim);

/* --- For rules --- */
static inline ax_region_link ax_region_link_own(void) { return (ax_region_link){AX_LINK_OWN, AX_NONE, AX_NONE, false}; }
static inline ax_region_link ax_region_link_to(ax_region_link_how how, uint32_t number) {
  return (ax_region_link){how, number, AX_NONE, false};
}

#endif
