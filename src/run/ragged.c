/* Ragged exchanges, as activations perform them. The member that receives rows takes them out of the memory of those that have
   them. That is kept memory, an argument or a constant, found by its place in the run's table of parts. Its contents stay the same
   from the PACK to the RELEASE of its own activation. Members in other processes send their rows (arrivals.h). */
#include "run/ragged.h"

#include "run/arrivals.h"
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
  const char **rows; /* by member: what has come from another process; NULL: it is here. NULL: all are here */
} taker;

static const void *operand_of(const void *context, uint32_t number) {
  const taker *t = context;
  const ax_ragged_instr *ragged = t->instr->ragged;
  if (t->rows != NULL && t->rows[number] != NULL) return NULL;
  int64_t away = (int64_t)ragged->place[number] - (int64_t)ragged->place[ragged->number[t->activation->device]];
  return ax_address_away(t->activation, &t->instr->refs[0], away);
}

static const void *rows_of(const void *context, uint32_t number, int64_t bytes) {
  const taker *t = context;
  const char *rows = t->rows[number];
  t->rows[number] += bytes;
  return rows;
}

/* Slices that do not fit are a finding, after which the activation does not go on. */
static void take(ax_execution *run, ax_activation *activation, const ax_instr *instr, const char **rows) {
  const ax_ragged_instr *ragged = instr->ragged;
  const taker context = {activation, instr, rows};
  const ax_taking taking = {.shape = &ragged->ragged->shape,
                            .device = ragged->number[activation->device],
                            .received = ax_address(activation, &instr->refs[1]),
                            .packed = ax_address(activation, &instr->refs[2]),
                            .expected = counts_at(activation, instr, 3, 5),
                            .agree = ragged->ragged->agree,
                            .back = ragged->ragged->back,
                            .work = ax_address(activation, &instr->refs[4]),
                            .operand = operand_of,
                            .rows = rows_of,
                            .context = &context,
                            .out = ax_address(activation, &instr->refs[5]),
                            .base = ragged->ragged->base != AX_NONE ? ax_address(activation, &instr->refs[6]) : NULL};
  ax_finding finding = {.status = AX_INVALID_ARGUMENT};
  if (ax_ragged_take(&taking, &finding.fault)) return;
  ax_finding_note(run, (uint32_t)(activation - run->activations), &finding);
}

/* Takes rows of members some of which are in other processes. */
static ax_status take_from_all(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                               uint32_t f, bool *parked) {
  const uint32_t members = instr->ragged->crossing->members;
  if (!activation->sent) AX_TRY(ax_arrivals_send(run, activation, instr));
  activation->sent = true; /* it may come here again, when rows have come */
  *parked = !ax_arrivals_await(run, worker_slot, activation, instr, f);
  if (*parked) return AX_OK;
  activation->sent = false;
  const char **rows = ax_alloc(members * sizeof rows[0]);
  if (rows == NULL) return ax_out_of_memory(members * sizeof rows[0]);
  ax_arrivals_find(run, activation, instr, rows);
  take(run, activation, instr, rows);
  ax_arrivals_leave(run, activation, instr);
  ax_free(rows);
  return AX_OK;
}

ax_status ax_ragged_do(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr, uint32_t f,
                       bool *parked) {
  *parked = false;
  switch (instr->ragged->step) {
    case AX_RAGGED_PACK: pack(activation, instr); break;
    case AX_RAGGED_TAKE:
      if (instr->ragged->crossing != NULL) return take_from_all(run, worker_slot, activation, instr, f, parked);
      take(run, activation, instr, NULL);
      break;
    case AX_RAGGED_RELEASE: break; /* only its waits matter */
  }
  return AX_OK;
}
