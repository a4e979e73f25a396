/* Ragged exchanges, as activations perform them. The member that receives rows takes them out of the memory of those that have
   them. That is kept memory, an argument or a constant, found by its place in the run's table of parts. Its contents stay the same
   from the PACK to the RELEASE of its own activation. */
#include "run/ragged.h"

#include "run/check.h"
#include "run/compute.h"

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
