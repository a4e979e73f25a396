/* Of the work that each step of a loop would repeat, what takes longer to do than to read is done before the loop: an exponential, a
   look-up, a sum of rows of what the loop does not change, with what it is made of.

     loop 0, 1000 times                       kernel of b1 b4      exp(-w)
       kernel of b1 b4              ->        loop 0, 1000 times
       kernel of b4 b2 b3                       kernel of b4 b2 b3

   It runs before fusion, which would make this work part of a kernel that also reads what the loop changes. A broadcast of such a value,
   or a mask, stays and becomes part of its readers; so what counts is the time for each byte of the result. */
#include "plan/amount.h"
#include "plan/fuse_worth.h"
#include "plan/hoist.h"
#include "plan/op.h"
#include "plan/passes.h"

typedef struct maker { /* of an allocation, in the block at hand */
  uint32_t op;         /* AX_NONE: none of those that read nothing which the loop changes */
  double ns;           /* what it takes to make it, with what it is made of, but for what is done before the loop anyway */
} maker;

static maker *makers_of(const ax_hoister *h) { return h->choosing; }

/* Nanoseconds, roughly. */
static double time_of(const ax_hoister *h, const ax_op *op, int64_t bytes) {
  static const double a_byte = 0.4; /* of routines, as sorts */
  const ax_amount amount = ax_op_amount(h->plan, op);
  return amount.core_ns + 0.01 * amount.product + (op->kind == AX_OP_ROUTINE ? a_byte * (double)bytes : 0);
}

static uint32_t maker_of(const ax_hoister *h, uint32_t buffer) {
  const uint32_t allocation = h->plan->buffers[buffer].allocation;
  return allocation < h->nesting.allocations ? makers_of(h)[allocation].op : AX_NONE;
}

/* What the operation touches has no maker until one is noted: the table is that of all blocks, whose operations have numbers of their
   own. */
static void forget_makers(ax_hoister *h, const ax_op *op) {
  ax_hoist_list(h, op);
  for (uint32_t i = 0; i < h->read_count + h->written_count; i++) {
    const uint32_t buffer = i < h->read_count ? h->read[i] : h->written[i - h->read_count];
    const uint32_t allocation = h->plan->buffers[buffer].allocation;
    if (allocation < h->nesting.allocations) makers_of(h)[allocation].op = AX_NONE;
  }
}

/* Notes the operation as the maker of its results if nothing that it reads is changed by the loop; a result of another such operation
   is not. Returns whether it takes longer to do than to read. What is made of its results is then judged without it. */
static bool note_maker(ax_hoister *h, const ax_op *op, ax_loop_level *loop, uint32_t at) {
  static const double least_ns = 5, ns_a_byte = 0.02; /* a kernel of its own is not worth less */
  uint32_t outside = 0;
  int64_t bytes = 0;
  double ns = 0;
  ax_hoist_list(h, op);
  bool stays = !ax_op_only_computes(op) || h->written_count == 0;
  for (uint32_t i = 0; i < h->written_count && !stays; i++) {
    const ax_buffer *b = &h->plan->buffers[h->written[i]];
    stays = b->allocation >= h->nesting.allocations || b->loop != AX_NONE || h->nesting.writes[b->allocation] != 1;
    bytes += stays ? 0 : ax_buffer_bytes(b);
  }
  if (!stays) ns = time_of(h, op, bytes);
  for (uint32_t i = 0; i < h->read_count && !stays; i++) {
    if (maker_of(h, h->read[i]) == AX_NONE) h->read[outside++] = h->read[i];
    else ns += makers_of(h)[h->plan->buffers[h->read[i]].allocation].ns;
  }
  if (stays || ax_nesting_place(&h->nesting, loop, h->read, outside, false) == NULL) return false;
  const bool goes = ns >= least_ns && ns >= ns_a_byte * (double)bytes;
  for (uint32_t i = 0; i < h->written_count; i++) makers_of(h)[h->plan->buffers[h->written[i]].allocation] = (maker){at, goes ? 0 : ns};
  return goes;
}

static const bool *find_invariants(ax_hoister *h, const ax_block *block, ax_loop_level *outer) {
  if (outer == NULL || outer->block->ops[outer->at].kind != AX_OP_LOOP) return NULL;
  if (h->choosing == NULL) h->choosing = ax_arena_alloc(&h->scratch, h->nesting.allocations * sizeof(maker));
  bool *goes = ax_arena_alloc(&h->scratch, (block->count + 1) * sizeof goes[0]);
  if (h->choosing == NULL || goes == NULL) {
    h->status = ax_out_of_memory(h->nesting.allocations * sizeof(maker) + block->count * sizeof goes[0]);
    return NULL;
  }
  for (uint32_t i = 0; i < block->count; i++) forget_makers(h, &block->ops[i]);
  for (uint32_t i = 0; i < block->count; i++) goes[i] = note_maker(h, &block->ops[i], outer, i);
  for (uint32_t i = block->count; i-- > 0;) {
    if (!goes[i]) continue;
    ax_hoist_list(h, &block->ops[i]);
    for (uint32_t k = 0; k < h->read_count; k++)
      if (maker_of(h, h->read[k]) != AX_NONE) goes[maker_of(h, h->read[k])] = true;
  }
  return goes;
}

ax_status ax_plan_invariants(ax_plan *plan) { return ax_hoist(plan, find_invariants); }
