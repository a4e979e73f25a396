/* Ragged exchanges, as activations perform them. The member that receives rows takes them out of the memory of those that have
   them. That is kept memory, an argument or a constant, found by its place in the run's table of parts. Its contents stay the same
   from the PACK to the RELEASE of its own activation. */
#include "exec/ragged.h"

#include "exec/check.h"
#include "exec/compute.h"

/* --- Tables --- */

static ax_status make_tables(ax_assembly *a, ax_instr *instr) {
  ax_executable *e = a->executable;
  const ax_plan *plan = a->plan;
  const ax_ragged *ragged = instr->ragged->ragged;
  const uint32_t devices = (uint32_t)ragged->shape.devices;
  uint32_t set, *number = ax_arena_alloc(&a->plan->arena, e->devices * sizeof number[0]),
                *place = ax_arena_alloc(&a->plan->arena, devices * sizeof place[0]);
  if (number == NULL || place == NULL) return ax_out_of_memory(e->devices * sizeof number[0]);
  if (devices > 1 && instr->refs[0].space == e->scratch_space)
    return ax_error(AX_INTERNAL, "others take rows out of scratch memory");
  AX_TRY(ax_set_of(e, plan->buffers[plan->buffers[ragged->in[0]].allocation].axes, &set));
  for (uint32_t d = 0; d < e->devices; d++) number[d] = (uint32_t)ax_axes_index(&ragged->names, &plan->mesh, d);
  for (uint32_t i = 0; i < devices; i++) place[i] = e->sets[set].index[ax_axes_device(&ragged->names, &plan->mesh, 0, i)];
  instr->ragged->number = number;
  instr->ragged->place = place;
  return AX_OK;
}

ax_status ax_instrs_ragged(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_RAGGED && a->instrs[i].ragged->step == AX_RAGGED_TAKE) AX_TRY(make_tables(a, &a->instrs[i]));
  return AX_OK;
}

/* --- Steps: operands as ax_ragged_buffers has them --- */

static ax_counts counts_at(const ax_activation *activation, const ax_instr *instr, uint32_t ref, uint32_t operand) {
  const ax_eqn *eqn = instr->eqn;
  return (ax_counts){instr->program->types[eqn->in[operand]].dtype, ax_address(activation, &instr->refs[ref])};
}

static void pack(const ax_activation *activation, const ax_instr *instr) {
  const ax_counts from = counts_at(activation, instr, 1, 2), size = counts_at(activation, instr, 2, 3),
                  to = counts_at(activation, instr, 3, 4);
  ax_ragged_pack(&instr->ragged->ragged->shape, &from, &size, &to, ax_address(activation, &instr->refs[4]));
}

typedef struct taker {
  const ax_activation *activation;
  const ax_instr *instr;
} taker;

static const void *operand_of(const void *context, uint32_t number) {
  const taker *t = context;
  const ax_ragged_instr *ragged = t->instr->ragged;
  int64_t away = (int64_t)ragged->place[number] - (int64_t)ragged->place[ragged->number[t->activation->device]];
  return ax_address_away(t->activation, &t->instr->refs[0], away);
}

static bool take(ax_execution *run, ax_activation *activation, const ax_instr *instr) {
  const ax_ragged_instr *ragged = instr->ragged;
  const taker context = {activation, instr};
  const ax_taking taking = {.shape = &ragged->ragged->shape,
                            .device = ragged->number[activation->device],
                            .received = ax_address(activation, &instr->refs[1]),
                            .packed = ax_address(activation, &instr->refs[2]),
                            .expected = counts_at(activation, instr, 3, 5),
                            .agree = ragged->ragged->agree,
                            .back = ragged->ragged->back,
                            .work = ax_address(activation, &instr->refs[4]),
                            .operand = operand_of,
                            .context = &context,
                            .out = ax_address(activation, &instr->refs[5]),
                            .base = ragged->ragged->base != AX_NONE ? ax_address(activation, &instr->refs[6]) : NULL};
  ax_finding finding = {.status = AX_INVALID_ARGUMENT};
  if (ax_ragged_take(&taking, &finding.fault)) return true;
  ax_finding_note(run, (uint32_t)(activation - run->activations), &finding);
  return false;
}

bool ax_ragged_do(ax_execution *run, ax_activation *activation, const ax_instr *instr) {
  switch (instr->ragged->step) {
    case AX_RAGGED_PACK: pack(activation, instr); return true;
    case AX_RAGGED_TAKE: return take(run, activation, instr);
    case AX_RAGGED_RELEASE: return true; /* only its waits matter */
  }
  return true;
}
