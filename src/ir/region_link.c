#include "ir/region_link.h"

ax_region_link ax_region_link_in(const ax_eqn *eqn, uint32_t program, uint32_t input) {
  return eqn->prim->links(&(ax_region_link_args){eqn, program, false, input});
}

ax_region_link ax_region_link_out(const ax_eqn *eqn, uint32_t program, uint32_t output) {
  return eqn->prim->links(&(ax_region_link_args){eqn, program, true, output});
}

bool ax_region_link_gives(const ax_eqn *eqn, uint32_t program) {
  const ax_program *held = ax_eqn_program(eqn, program);
  for (uint32_t j = 0; j < held->out_count; j++)
    if (ax_region_link_out(eqn, program, j).number != AX_NONE) return true;
  return false;
}

uint32_t ax_region_link_programs(const ax_eqn *eqn) {
  uint32_t count = 0;
  while (ax_eqn_program(eqn, count) != NULL) count++;
  return count > 1 && eqn->prim->derived ? 1 : count;
}

ax_status ax_region_link_check(const ax_prim *prim) {
  if (prim->kind != AX_REGION || prim->links != NULL) return AX_OK;
  return ax_error(AX_INTERNAL,
                  "%s holds programs, but its record has no `links` rule, which says what their inputs and outputs are",
                  prim->name);
}
