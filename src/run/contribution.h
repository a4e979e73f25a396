/* What a member of an exchange that crosses processes gives to others: how it lies in messages, and how it is put into the results
   that this process has. */
#ifndef AX_RUN_CONTRIBUTION_H
#define AX_RUN_CONTRIBUTION_H

#include "run/push.h"
#include "run/remote.h"

/* Elements of a part; the rows of one lie one after the other in messages. */
typedef struct ax_elems {
  int64_t begin, end;
} ax_elems;
static inline int64_t ax_part_elems(const ax_push *push) {
  return ax_dims_elems(push->outer_rank, push->exchange->dims) * push->run;
}

typedef struct ax_contribution {
  const ax_push *push;
  const ax_party *own;   /* the members here */
  uint32_t number;       /* the member */
  const char *src;       /* of the first element of the range; NULL: it is read where it lies */
  const int64_t *stride; /* elements between rows of a part, by dimension around a run; NULL: they lie one after the other */
  ax_elems range;        /* of parts that are one row; else all of it */
  int64_t piece;         /* elements between the pieces for successive peers: by their numbers, or as they are here */
  bool dense;            /* pieces are those for the members here, one after the other */
} ax_contribution;

/* Puts it into the results of all members here. view: a member of the group, as it was when the round began. */
void ax_contribution_put(const ax_contribution *contribution, const ax_activation *view, const ax_instr *instr);
/* The same for one that is read where its sender has it, block by block, so that the caches have each while it is put.
   AX_OUT_OF_MEMORY; AX_UNAVAILABLE: the sender is gone. */
AX_MUST_USE ax_status ax_contribution_read(ax_remote *remote, const ax_contribution *contribution, const ax_activation *view,
                                           const ax_instr *instr, const ax_delivery *delivery);

/* How many pieces a member sends to a process, and where its operand at src has the i-th. */
uint32_t ax_pieces_for(const ax_push *push, const ax_party *party);
const char *ax_piece_for(const ax_push *push, const char *src, const ax_party *party, uint32_t i);
/* Writes the pieces, one after the other; of a piece that is one row, the elements in the range. */
void ax_pieces_write(const ax_push *push, const char *src, const ax_party *party, ax_elems range, char *out);
/* The same, whole, into memory that the caller frees. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_pieces_gather(const ax_push *push, const char *src, const ax_party *party, char **out);

static inline const ax_party *ax_own_party(const ax_remote *remote, const ax_crossing *crossing, uint32_t group) {
  return ax_party_of(crossing, group, remote->run->compiled->map->process);
}

#endif
