/* Tables for the steps of ragged exchanges: the members of a group, the places of the operands that others take rows out of, and
   the members in other processes, which send theirs (run/arrivals.h). */
#include "assemble/assembly.h"

/* Those of a group that are here have numbers too, which stay unused. */
static ax_status find_givers(ax_assembly *a, ax_instr *instr) {
  ax_compiled *c = a->compiled;
  ax_ragged_instr *ragged = instr->ragged;
  AX_TRY(ax_find_crossing(c, &ragged->ragged->names, ragged->ragged->axes, a->ops[instr - a->instrs]->axes, &ragged->crossing));
  if (ragged->crossing == NULL) return AX_OK;
  const uint64_t givers = (uint64_t)ragged->crossing->here_count * ragged->crossing->members;
  if (givers > AX_NONE - c->counter_count) return ax_error(AX_OUT_OF_MEMORY, "compile: more than 2^32 counters");
  ragged->first_givers = c->giver_count;
  c->giver_count += (uint32_t)givers;
  c->counter_count += (uint32_t)givers;
  return AX_OK;
}

static ax_status make_tables(ax_assembly *a, ax_instr *instr) {
  ax_compiled *c = a->compiled;
  const ax_plan *plan = a->plan;
  const ax_ragged *ragged = instr->ragged->ragged;
  const uint32_t devices = (uint32_t)ragged->shape.devices;
  uint32_t set, *number, *place;
  if (devices > 1 && instr->refs[0].space == c->scratch_space)
    return ax_error(AX_INTERNAL, "others take rows out of scratch memory");
  AX_TRY(ax_set_of(c, plan->buffers[plan->buffers[ragged->in[0]].allocation].axes, &set));
  AX_TRY(ax_member_numbers(c, &ragged->names, &number));
  AX_TRY(ax_member_places(c, &ragged->names, devices, set, &place));
  instr->ragged->number = number;
  instr->ragged->place = place;
  return find_givers(a, instr);
}

ax_status ax_instrs_ragged(ax_assembly *a) {
  a->compiled->first_giver = a->compiled->counter_count;
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_RAGGED && a->instrs[i].ragged->step == AX_RAGGED_TAKE) AX_TRY(make_tables(a, &a->instrs[i]));
  return AX_OK;
}
