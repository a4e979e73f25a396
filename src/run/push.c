/* Exchanges, as activations perform them.

   In an exchange that copies, each member copies its own parts. Contributions are combined in the order of members, so that the
   result does not depend on the order of arrival. A member whose turn has not come is parked, with its contribution. The member
   whose turn it is takes along all next members that are parked already. It adds these contributions a block at a time, so that a
   block of the sum stays in the cache meanwhile; idle threads share the blocks of a large sum. For large contributions that are
   arguments of the run (`at_last_arrival`) no member waits for its turn: the last to arrive adds them all. The order of additions
   to an element is the same either way. Of few elements in a loop (`at_once`), members leave copies and the last to arrive combines
   them all. If peers get many short pieces, operands are combined as a whole first (AS_WHOLE); short
   pieces that are copied are put by batches.c. */
#include "run/push.h"

#include <string.h>

#include "run/batches.h"
#include "run/compute.h"
#include "run/crossing.h"
#include "run/gemm.h"
#include "run/pieces.h"
#include "run/scheduler.h"
#include "run/share.h"

enum { shared_elems = 1 << 17 };

/* --- One part, from src to dst: rows of contiguous elements, copied or combined --- */

static inline void put_run(const ax_push *push, const char *src, char *dst, int64_t begin, int64_t end, bool combine) {
  ax_push_put_run(push, ax_push_code(push, combine), src, dst, begin, end);
}

static void put_rows(const ax_push *push, const char *src, char *dst, int64_t begin, int64_t end, bool combine) {
  const ax_exchange *x = push->exchange;
  const ax_push_rows rows = {src, dst, x->src_stride, x->dst_stride, push->out_item};
  ax_push_put_rows(push, ax_push_code(push, combine), &rows, begin, end);
}

int64_t ax_push_row_offset(const ax_push *push, const ax_push_rows *rows, int64_t row) {
  int64_t offset = 0;
  for (uint32_t k = push->outer_rank; k-- > 0; row /= push->exchange->dims[k])
    offset += row % push->exchange->dims[k] * rows->dst_stride[k];
  return offset;
}

void ax_push_put_rows(const ax_push *push, ax_kernel_code code, const ax_push_rows *rows, int64_t begin, int64_t end) {
  const int64_t *dims = push->exchange->dims;
  int64_t index[AX_MAX_RANK], rest = begin;
  for (uint32_t k = push->outer_rank; k-- > 0; rest /= dims[k]) index[k] = rest % dims[k];
  for (int64_t r = begin; r < end; r++) {
    int64_t s = rows->src_stride == NULL ? (r - begin) * push->run : 0, d = 0;
    for (uint32_t k = 0; k < push->outer_rank; k++) {
      if (rows->src_stride != NULL) s += index[k] * rows->src_stride[k];
      d += index[k] * rows->dst_stride[k];
    }
    ax_push_put_run(push, code, rows->src + s * push->item, rows->dst + d * rows->dst_item, 0, push->run);
    for (uint32_t k = push->outer_rank; k-- > 0 && ++index[k] == dims[k];) index[k] = 0;
  }
}

/* The length of a part in steps: elements if it is one run, otherwise rows. */
static int64_t step_count(const ax_push *push) {
  return push->outer_rank == 0 ? push->run : ax_dims_elems(push->outer_rank, push->exchange->dims);
}

static void put_steps(const ax_push *push, const char *src, char *dst, int64_t begin, int64_t end, bool combine) {
  if (push->outer_rank == 0) put_run(push, src, dst, begin, end, combine);
  else if (end > begin) put_rows(push, src, dst, begin, end, combine);
}

/* Copies the parts: rows as pieces are, a single run at once. */
static void put_parts(const ax_activation *activation, const ax_instr *instr, uint32_t number) {
  const ax_push *push = instr->push;
  const ax_exchange *x = push->exchange;
  const char *src = ax_address(activation, &instr->refs[0]);
  int64_t item = push->item, step = number * x->dst_step * item, count = step_count(push);
  if (x->alone && number != x->source) return;
  if (push->outer_rank > 0 && x->peers != AX_PEERS_PAIRS) {
    ax_pieces_put(&(ax_sources){activation, instr, item, 1, &src, &number}, 0, ax_push_peers(push));
    return;
  }
  if (x->peers == AX_PEERS_ONE) {
    put_steps(push, src, (char *)ax_address(activation, &instr->refs[1]) + step, 0, count, false);
    return;
  }
  if (x->peers == AX_PEERS_PAIRS) {
    uint32_t target = push->targets[number];
    if (target != AX_NONE) put_steps(push, src, ax_push_result(activation, instr, target), 0, count, false);
    return;
  }
  for (uint32_t j = 0; j < push->members; j++)
    put_steps(push, src + j * x->src_step * item, ax_push_result(activation, instr, j) + step, 0, count, false);
}

/* --- Several contributions --- */

typedef struct contributions {
  const ax_execution *run;
  const ax_activation *activation; /* the one whose turn it is */
  const ax_instr *instr;
  uint32_t number;       /* of its activation */
  uint32_t first; /* list by parking.next of activations whose contributions follow; AX_NONE. at_last_arrival: unused */
  char *whole;           /* AS_WHOLE: the sum of whole operands; NULL */
  int64_t steps, block;  /* in a part; in a block */
  uint32_t blocks;       /* in a part */
} contributions;

static void put_one(const contributions *c, const char *src, char *dst, int64_t begin, int64_t end, bool combine) {
  if (c->whole != NULL) put_run(c->instr->push, src, dst, begin, end, combine);
  else put_steps(c->instr->push, src, dst, begin, end, combine);
}

static void put_by_last(const contributions *c, int64_t offset, char *dst, int64_t begin, int64_t end) {
  for (uint32_t j = 0; j < c->instr->push->members; j++)
    put_one(c, ax_push_operand(c->activation, c->instr, j) + offset, dst, begin, end, j > 0);
}

static void put_in_turn(const contributions *c, int64_t offset, char *dst, int64_t begin, int64_t end) {
  const ax_ref *in = &c->instr->refs[0];
  put_one(c, (const char *)ax_address(c->activation, in) + offset, dst, begin, end, c->number > 0);
  for (uint32_t f = c->first; f != AX_NONE; f = c->run->parking[f].next)
    put_one(c, (const char *)ax_address(&c->run->activations[f], in) + offset, dst, begin, end, true);
}

/* Makes one block of the part of one peer. */
static ax_status put_block(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  (void)worker_slot;
  const contributions *c = context;
  const ax_push *push = c->instr->push;
  uint32_t peer = part / c->blocks;
  int64_t begin = part % c->blocks * c->block, end = begin + c->block < c->steps ? begin + c->block : c->steps;
  char *dst = c->whole != NULL ? c->whole : ax_push_result(c->activation, c->instr, peer);
  int64_t offset = peer * push->exchange->src_step * push->item;
  if (push->at_last_arrival) put_by_last(c, offset, dst, begin, end);
  else put_in_turn(c, offset, dst, begin, end);
  return AX_OK;
}

/* Returns the steps of a block: a block of the sum stays in the cache, and there are several blocks for threads to share. */
static int64_t block_steps(int64_t steps, int64_t step, int64_t peers) {
  enum { enough_blocks = 8 };
  int64_t elems = steps * step * peers / enough_blocks / AX_PUSH_BLOCK_LEAST * AX_PUSH_BLOCK_LEAST;
  elems = elems < AX_PUSH_BLOCK_LEAST ? AX_PUSH_BLOCK_LEAST : elems < AX_PUSH_BLOCK_MOST ? elems : AX_PUSH_BLOCK_MOST;
  return step < elems ? elems / (step > 0 ? step : 1) : 1;
}

static void put_contributions(ax_execution *run, ax_worker_slot *worker_slot, contributions *c, uint32_t count) {
  const ax_push *push = c->instr->push;
  int64_t step = push->outer_rank == 0 || c->whole != NULL ? 1 : push->run, peers = c->whole != NULL ? 1 : ax_push_peers(push);
  c->steps = c->whole != NULL ? push->elems : step_count(push);
  c->block = block_steps(c->steps, step, peers);
  while ((c->steps + c->block - 1) / c->block * peers > UINT32_MAX / 2) c->block *= 2;
  c->blocks = (uint32_t)((c->steps + c->block - 1) / c->block);
  uint32_t parts = c->blocks * (uint32_t)peers;
  bool shared = c->steps * step * peers * count >= shared_elems;
  for (uint32_t i = 0; i < parts && !shared; i++) (void)put_block(c, worker_slot, i);
  worker_slot->share.activation = (uint32_t)(c->activation - run->activations);
  worker_slot->share.instr = (uint32_t)(c->instr - c->activation->code->instrs);
  ax_status status = shared ? ax_share_parts(run, worker_slot, put_block, c, parts) : AX_OK;
  assert(status == AX_OK); /* a block cannot fail */
  (void)status;
}

/* --- Pushes --- */

static ax_stage *stage_of(ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  return &run->stages[instr->push->stage + instr->push->counter[activation->device]];
}

/* Makes memory for the sum of the group's whole operands. */
static ax_status make_whole(ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  ax_stage *stage = stage_of(run, activation, instr);
  stage->bytes = (size_t)(instr->push->elems * instr->push->out_item);
  return ax_pool_alloc(&run->executor->pool, stage->bytes, &stage->memory);
}

/* Gives each peer its piece of that sum, which is complete. */
static void deal_out(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr) {
  ax_stage *stage = stage_of(run, activation, instr);
  const char *whole = stage->memory;
  ax_pieces_put_all(run, worker_slot, &(ax_sources){activation, instr, instr->push->out_item, 1, &whole, &(uint32_t){0}});
  ax_pool_free(&run->executor->pool, stage->memory, stage->bytes);
  stage->memory = NULL;
}

/* A push without turns: all contributions are inputs of the run, which stay. The last member combines them. */
static ax_status push_by_last(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                              const ax_instr *instr, uint32_t counter) {
  const ax_push *push = instr->push;
  const bool as_whole = push->way == AX_PUSH_AS_WHOLE;
  contributions c = {
      .run = run, .activation = activation, .instr = instr, .number = push->number[activation->device], .first = AX_NONE};
  if (atomic_fetch_add(&run->arrived[counter], 1) + 1 == push->members) {
    if (as_whole) AX_TRY(make_whole(run, activation, instr));
    c.whole = as_whole ? stage_of(run, activation, instr)->memory : NULL;
    put_contributions(run, worker_slot, &c, push->members);
    if (as_whole) deal_out(run, worker_slot, activation, instr);
  }
  ax_scheduler_signal(run, counter, 1);
  return AX_OK;
}

/* Takes along the next members that are parked at this push, without a gap. */
static uint32_t take_along(ax_execution *run, contributions *c, uint32_t counter, uint64_t turn) {
  uint32_t count = 0, last = AX_NONE;
  while (c->number + count + 1 < c->instr->push->members) {
    uint32_t f = ax_scheduler_unpark(run, counter, turn + count + 1);
    if (f == AX_NONE) break;
    assert(run->parking[f].next == AX_NONE && &run->activations[f].code->instrs[run->activations[f].pc] == c->instr);
    if (last == AX_NONE) c->first = f;
    else run->parking[last].next = f;
    last = f;
    count++;
  }
  if (last != AX_NONE) run->parking[c->first].last = last;
  return count;
}

/* Adds the products of this member and of those behind it, some at a time. */
static ax_status put_products(ax_execution *run, ax_worker_slot *worker_slot, const contributions *c) {
  enum { at_once = 64 };
  const ax_activation *list[at_once];
  ax_gemm_sum sum = {list, 0, c->number == 0, c->instr->push->combine};
  ax_status status = AX_OK;
  list[sum.count++] = c->activation;
  worker_slot->share.activation = (uint32_t)(c->activation - run->activations);
  worker_slot->share.instr = (uint32_t)(c->instr - c->activation->code->instrs);
  for (uint32_t f = c->first; f != AX_NONE && status == AX_OK; f = run->parking[f].next) {
    if (sum.count == at_once) {
      status = ax_gemm_add_up(run, worker_slot, c->instr, &sum);
      sum.count = 0;
      sum.first = false;
    }
    list[sum.count++] = &run->activations[f];
  }
  return status == AX_OK ? ax_gemm_add_up(run, worker_slot, c->instr, &sum) : status;
}

/* Combines the contributions of this member, whose turn has come, and of members parked behind it. */
static ax_status push_together(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                          char *whole, uint32_t counter, uint64_t turn) {
  contributions c = {.run = run, .activation = activation, .instr = instr, .number = instr->push->number[activation->device],
                     .first = AX_NONE, .whole = whole};
  uint32_t more = take_along(run, &c, counter, turn);
  ax_status status = AX_OK;
  if (instr->push->product != NULL) status = put_products(run, worker_slot, &c);
  else put_contributions(run, worker_slot, &c, 1 + more);
  if (whole != NULL && c.number + 1 + more == instr->push->members) deal_out(run, worker_slot, activation, instr);
  ax_scheduler_signal(run, counter, 1 + more);
  for (uint32_t k = c.first; k != AX_NONE; k = run->parking[k].next) run->activations[k].pc++; /* past the push */
  ax_scheduler_resume(run, c.first);
  return status == AX_OK ? AX_OK : ax_compute_failed(instr, status);
}

/* Combines this member's short runs, into every peer or into the sum of whole operands. */
static void put_small(const ax_activation *activation, const ax_instr *instr, uint32_t number, char *whole) {
  const ax_push *push = instr->push;
  const char *src = ax_address(activation, &instr->refs[0]);
  if (whole != NULL || push->exchange->peers == AX_PEERS_ONE) {
    put_run(push, src, whole != NULL ? whole : ax_address(activation, &instr->refs[1]), 0, push->combined, number > 0);
    return;
  }
  int64_t step = push->exchange->src_step * push->item;
  for (uint32_t j = 0; j < push->members; j++)
    put_run(push, src + j * step, ax_push_result(activation, instr, j), 0, push->run, number > 0);
}

/* Combines the member's contribution when its turn has come. */
static ax_status push_in_turn(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                              const ax_instr *instr, uint32_t counter, uint32_t f, bool *parked) {
  const ax_push *push = instr->push;
  const uint32_t number = push->number[activation->device];
  char *whole = NULL;
  uint64_t turn = (uint64_t)(activation->entered[instr->region] - 1) * push->members + number;
  *parked = !ax_scheduler_await(run, worker_slot, f, counter, turn, false);
  if (*parked) return AX_OK;
  if (push->way == AX_PUSH_AS_WHOLE) {
    if (number == 0) AX_TRY(make_whole(run, activation, instr));
    whole = stage_of(run, activation, instr)->memory;
  }
  bool followed = number + 1 < push->members && ax_scheduler_is_next(run, counter, turn + 1);
  if (push->small && !followed) {
    put_small(activation, instr, number, whole);
    if (whole != NULL && number + 1 == push->members) deal_out(run, worker_slot, activation, instr);
    ax_scheduler_signal(run, counter, 1);
    return AX_OK;
  }
  return push_together(run, worker_slot, activation, instr, whole, counter, turn);
}

/* --- Few elements, in a loop --- */

static size_t operand_bytes(const ax_push *push) { return (size_t)(push->elems * push->item); }

/* Memory for all operands of a group, which the run keeps. */
static ax_status find_stage(ax_execution *run, const ax_push *push, uint32_t counter, ax_stage *stage, char **out) {
  if (run->threaded) pthread_mutex_lock(&run->stripes[counter % AX_STRIPES]);
  stage->bytes = push->members * operand_bytes(push);
  ax_status status = stage->memory == NULL ? ax_pool_alloc(&run->executor->pool, stage->bytes, &stage->memory) : AX_OK;
  *out = stage->memory;
  if (run->threaded) pthread_mutex_unlock(&run->stripes[counter % AX_STRIPES]);
  return status;
}

/* Combines the operands of all members, which lie one after the other, in one call. */
static void put_at_once(const ax_activation *activation, const ax_instr *instr, char *operands) {
  const ax_push *push = instr->push;
  void *slots[2 * AX_PUSH_AT_ONCE];
  uint32_t count = 0;
  for (uint32_t j = 0; j < ax_push_peers(push); j++) slots[count++] = ax_push_result(activation, instr, j);
  for (uint32_t i = 0; i < push->members; i++) slots[count++] = operands + i * operand_bytes(push);
  push->all(slots, NULL, 0, push->run);
}

/* No member waits for its turn: each leaves a copy of its operand and goes on. The last one combines all. */
static ax_status push_at_once(ax_execution *run, const ax_activation *activation, const ax_instr *instr, uint32_t counter) {
  const ax_push *push = instr->push;
  char *operands;
  AX_TRY(find_stage(run, push, counter, stage_of(run, activation, instr), &operands));
  memcpy(operands + push->number[activation->device] * operand_bytes(push), ax_address(activation, &instr->refs[0]),
         operand_bytes(push));
  if (atomic_fetch_add(&run->arrived[counter], 1) + 1 < push->members) return AX_OK;
  atomic_store(&run->arrived[counter], 0);
  put_at_once(activation, instr, operands);
  ax_scheduler_signal(run, counter, push->members);
  return AX_OK;
}

/* A member that puts for several waits until everything of the loop's step before has been put. */
static ax_status push_for_several(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                                  const ax_instr *instr, uint32_t counter, uint32_t f, bool *parked) {
  uint64_t before = (uint64_t)(activation->entered[instr->region] - 1) * instr->push->members;
  *parked = !ax_scheduler_await(run, worker_slot, f, counter, before, false);
  if (*parked) return AX_OK;
  return instr->push->at_once ? push_at_once(run, activation, instr, counter)
                              : ax_batch_push(run, worker_slot, activation, instr, counter);
}

ax_status ax_push_do(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                     uint32_t f, bool *parked) {
  const ax_push *push = instr->push;
  uint32_t number = push->number[activation->device], counter = push->first + push->counter[activation->device];
  *parked = false;
  if (push->crossing != NULL) return ax_crossing_push(run, worker_slot, activation, instr, f, parked);
  if (push->way == AX_PUSH_IN_BATCHES || push->at_once)
    return push_for_several(run, worker_slot, activation, instr, counter, f, parked);
  if (push->at_last_arrival) return push_by_last(run, worker_slot, activation, instr, counter);
  if (push->exchange->combine != AX_SCALAR_NONE) return push_in_turn(run, worker_slot, activation, instr, counter, f, parked);
  put_parts(activation, instr, number);
  if (push->counter[activation->device] != AX_NONE)
    ax_scheduler_signal(run, counter, 1); /* AX_NONE: this member is no source of the ppermute */
  return AX_OK;
}

void ax_push_clear(const ax_activation *activation, const ax_instr *instr) {
  const ax_push *push = instr->push;
  bool awaited = push->sources[push->number[activation->device]] != AX_NONE;
  if (!awaited && instr->bytes > 0) memset(ax_address(activation, &instr->refs[1]), 0, (size_t)instr->bytes);
}
