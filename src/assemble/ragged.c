/* Tables for the steps of ragged exchanges: the members of a group, and the places of the operands that others take rows out of. */
#include "assemble/assembly.h"

static ax_status make_tables(ax_assembly *a, ax_instr *instr) {
  ax_compiled *c = a->compiled;
  const ax_plan *plan = a->plan;
  const ax_ragged *ragged = instr->ragged->ragged;
  const uint32_t devices = (uint32_t)ragged->shape.devices;
  uint32_t set, *number, *place;
  const ax_crossing *crossing;
  AX_TRY(ax_find_crossing(c, &ragged->names, ragged->axes, a->ops[instr - a->instrs]->axes, &crossing));
  if (crossing != NULL)
    return ax_error(AX_ABSENT, "compile: ragged_all_to_all between devices of several processes: it runs within one process");
  if (devices > 1 && instr->refs[0].space == c->scratch_space)
    return ax_error(AX_INTERNAL, "others take rows out of scratch memory");
  AX_TRY(ax_set_of(c, plan->buffers[plan->buffers[ragged->in[0]].allocation].axes, &set));
  AX_TRY(ax_member_numbers(c, &ragged->names, &number));
  AX_TRY(ax_member_places(c, &ragged->names, devices, set, &place));
  instr->ragged->number = number;
  instr->ragged->place = place;
  return AX_OK;
}

ax_status ax_instrs_ragged(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_RAGGED && a->instrs[i].ragged->step == AX_RAGGED_TAKE) AX_TRY(make_tables(a, &a->instrs[i]));
  return AX_OK;
}
