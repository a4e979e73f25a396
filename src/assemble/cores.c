/* Tables for users' kernels that several devices run together: the members of a group, the places of their states, and the
   counters on which members are parked. */
#include "assemble/assembly.h"

/* What is sent to a device goes to one process, so no other may have a copy of it (kernel/image/lower.c sees to that). */
static ax_status check_members(const ax_crossing *crossing) {
  for (uint32_t g = 0; g < crossing->groups; g++) {
    uint32_t held = 0;
    for (uint32_t i = crossing->begin[g]; i < crossing->begin[g + 1]; i++) held += crossing->parties[i].count;
    if (held != crossing->members)
      return ax_error(AX_INTERNAL, "%u processes run the cores of %u devices", held, crossing->members);
  }
  return AX_OK;
}

static ax_status describe(ax_assembly *a, const ax_instr *instr) {
  ax_compiled *c = a->compiled;
  const ax_plan *plan = a->plan;
  ax_cores_instr *mine = instr->cores;
  const ax_cores *cores = mine->cores;
  const uint32_t members = (uint32_t)ax_axis_set_size(cores->axes, &plan->mesh);
  uint32_t set, groups, *number, *place;
  AX_TRY(ax_find_crossing(c, &cores->names, cores->axes, a->ops[instr - a->instrs]->axes, &mine->crossing));
  if (mine->crossing != NULL) AX_TRY(check_members(mine->crossing));
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
  mine->crossing_first = c->cores_groups;
  if (mine->crossing != NULL) c->cores_groups += mine->crossing->here_count;
  c->counter_count += c->sets[groups].size;
  return AX_OK;
}

/* The ENTER and the RUN of one kernel share a counter, and the groups of this process. */
static void find_counter(ax_assembly *a, uint32_t enter) {
  for (uint32_t i = enter; i < a->instr_count; i++) {
    const ax_instr *instr = &a->instrs[i];
    if (instr->kind != AX_INSTR_CORES || instr->cores->step != AX_CORES_RUN ||
        a->ops[i]->cores->state != a->ops[enter]->cores->state)
      continue;
    a->instrs[enter].cores->first = instr->cores->first;
    a->instrs[enter].cores->crossing_first = instr->cores->crossing_first;
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
