/* Tables for users' kernels that several devices run together: the members of a group, the places of their states, and the
   counters on which members are parked. */
#include "assemble/assembly.h"

static ax_status describe(ax_assembly *a, const ax_instr *instr) {
  ax_compiled *c = a->compiled;
  const ax_plan *plan = a->plan;
  ax_cores_instr *mine = instr->cores;
  const ax_cores *cores = mine->cores;
  const uint32_t members = (uint32_t)ax_axis_set_size(cores->axes, &plan->mesh);
  uint32_t set, groups, *number, *place;
  const ax_crossing *crossing;
  AX_TRY(ax_find_crossing(c, &cores->names, cores->axes, a->ops[instr - a->instrs]->axes, &crossing));
  if (crossing != NULL)
    return ax_error(AX_ABSENT, "compile: a kernel whose cores reach devices of other processes: kernels run within one process");
  for (uint32_t k = 0; k < 1 + cores->in_count + cores->out_count; k++)
    if (instr->refs[k].space == c->scratch_space)
      return ax_error(AX_INTERNAL, "operand %u of a kernel that others reach is in scratch memory", k);
  AX_TRY(ax_set_of(c, plan->buffers[cores->state].axes, &set));
  AX_TRY(ax_set_of(c, plan->buffers[cores->state].axes & ~cores->axes, &groups));
  AX_TRY(ax_member_numbers(c, &cores->names, &number));
  AX_TRY(ax_member_places(c, &cores->names, members, set, &place));
  mine->number = number;
  mine->place = place;
  mine->group = c->sets[groups].index;
  if (mine->step != AX_CORES_RUN) return AX_OK;
  mine->first = c->counter_count;
  c->counter_count += c->sets[groups].size;
  return AX_OK;
}

/* The ENTER and the RUN of one kernel share a counter. */
static void find_counter(ax_assembly *a, uint32_t enter) {
  for (uint32_t i = enter; i < a->instr_count; i++) {
    const ax_instr *instr = &a->instrs[i];
    if (instr->kind != AX_INSTR_CORES || instr->cores->step != AX_CORES_RUN ||
        a->ops[i]->cores->state != a->ops[enter]->cores->state)
      continue;
    a->instrs[enter].cores->first = instr->cores->first;
    return;
  }
}

ax_status ax_instrs_cores(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_CORES && a->instrs[i].cores->cores->came != AX_NONE) AX_TRY(describe(a, &a->instrs[i]));
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_CORES && a->instrs[i].cores->step == AX_CORES_ENTER) find_counter(a, i);
  return AX_OK;
}
