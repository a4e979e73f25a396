/* The pieces of an exchange that are copied: what each of some members has for each peer. */
#ifndef AX_RUN_PIECES_H
#define AX_RUN_PIECES_H

#include "run/compute.h"

/* Operands whose pieces are put together. */
typedef struct ax_sources {
  const ax_activation *activation; /* any member of the group */
  const ax_instr *instr;           /* the PUSH */
  int64_t item;                    /* bytes of an element, here and in the results */
  uint32_t count;
  const char *const *at;   /* by source; NULL: they are the operands of all members, in order, where these lie */
  const uint32_t *numbers; /* by source: its member number, in ascending order; NULL: source i is member i */
} ax_sources;

/* Puts the pieces that the sources have for peers begin to end - 1 in their places in the results of these peers. */
void ax_pieces_put(const ax_sources *sources, uint32_t begin, uint32_t end);
/* The same for all peers. Idle threads help if there is much to copy. */
void ax_pieces_put_all(ax_execution *run, ax_worker_slot *worker_slot, const ax_sources *sources);

/* How many results a member puts pieces into. */
static inline uint32_t ax_push_peers(const ax_push *push) { return push->exchange->peers == AX_PEERS_ONE ? 1 : push->members; }
/* The result of peer j, as seen by a member of its group. */
static inline char *ax_push_result(const ax_activation *activation, const ax_instr *instr, uint32_t j) {
  const ax_push *push = instr->push;
  if (push->exchange->peers == AX_PEERS_ONE) return ax_address(activation, &instr->refs[1]);
  const uint32_t number = push->number[activation->device];
  return ax_address_away(activation, &instr->refs[1], (int64_t)push->place[j] - (int64_t)push->place[number]);
}
/* The operand of member i, likewise. */
static inline const char *ax_push_operand(const ax_activation *activation, const ax_instr *instr, uint32_t i) {
  const uint32_t *place = instr->push->in_place;
  return ax_address_away(activation, &instr->refs[0], (int64_t)place[i] - (int64_t)place[instr->push->number[activation->device]]);
}

#endif
