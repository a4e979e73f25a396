/* Tables for users' kernels that several devices run together: the members of a group, the places of their states, and the
   counters on which members are parked. */
#include "assemble/assembly.h"

static ax_status describe(ax_assembly *a, const ax_instr *instr) {
  ax_compiled *c = a->compiled;
  const ax_plan *plan = a->plan;
  ax_cores_instr *mine = instr->cores;
  const ax_cores *cores = mine->cores;
  const uint32_t members = (uint32_t)ax_axis_set_size(cores->axes, &plan->mesh);
  uint32_t set, groups, *number = ax_arena_alloc(&a->plan->arena, c->devices * sizeof number[0]),
                        *place = ax_arena_alloc(&a->plan->arena, members * sizeof place[0]);
  if (number == NULL || place == NULL) return ax_out_of_memory(c->devices * sizeof number[0]);
  for (uint32_t k = 0; k < 1 + cores->in_count + cores->out_count; k++)
    if (instr->refs[k].space == c->scratch_space)
      return ax_error(AX_INTERNAL, "operand %u of a kernel that others reach is in scratch memory", k);
  AX_TRY(ax_set_of(c, plan->buffers[cores->state].axes, &set));
  AX_TRY(ax_set_of(c, plan->buffers[cores->state].axes & ~cores->axes, &groups));
  for (uint32_t d = 0; d < c->devices; d++) number[d] = (uint32_t)ax_axes_index(&cores->names, &plan->mesh, d);
  for (uint32_t i = 0; i < members; i++) place[i] = c->sets[set].index[ax_axes_device(&cores->names, &plan->mesh, 0, i)];
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
