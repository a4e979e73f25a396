/* Work that each step of a loop would repeat is done once, before the loop. This holds for a kernel, product or routine that
   reads nothing which the loop changes, and whose results are not touched outside the loop.

     loop 0, 1000 times                       kernel of b1 b4      weights in another dtype
       kernel of b1 b4              ->        loop 0, 1000 times
       gemm b6 = b2 b4'                         gemm b6 = b2 b4'

   The operation goes before the outermost loop for which that is true. Work in a branch stays there, since it may never be done.
   Results live through the loop, so their bytes are bounded. The pass runs after fusion: by then cheap work has gone into its
   readers, and what is left is written and read in each step anyway. What takes long has gone before (invariants.c). */
#include <string.h>

#include "plan/hoist.h"
#include "plan/op.h"
#include "plan/passes.h"

enum { most_bytes = 64 << 20 }; /* of all results made before loops */

static void list_buffer(void *context, uint32_t buffer, bool writes) {
  ax_hoister *h = context;
  uint32_t **list = writes ? &h->written : &h->read, *count = writes ? &h->written_count : &h->read_count;
  if (h->status == AX_OK) h->status = ax_grow(list, sizeof **list, *count, 1, writes ? &h->written_capacity : &h->read_capacity);
  if (h->status == AX_OK) (*list)[(*count)++] = buffer;
}

void ax_hoist_list(ax_hoister *h, const ax_op *op) {
  h->read_count = h->written_count = 0;
  ax_op_visit(op, list_buffer, h);
}

/* The innermost loop around; NULL. */
static const ax_op *loop_around(const ax_loop_level *inner) {
  for (const ax_loop_level *l = inner; l != NULL; l = l->outer)
    if (l->block->ops[l->at].kind == AX_OP_LOOP) return &l->block->ops[l->at];
  return NULL;
}

/* Whether only this operation writes the allocation, in each step before any read of it, and no operation after the loop touches
   it. */
static bool is_own(const ax_hoister *h, uint32_t buffer, uint32_t loop) {
  const ax_nesting *n = &h->nesting;
  const ax_buffer *b = &h->plan->buffers[buffer];
  if (b->allocation >= n->allocations || b->loop != AX_NONE || h->plan->buffers[b->allocation].kind != AX_BUFFER_TEMP) return false;
  if (n->writes[b->allocation] != 1 || n->first[b->allocation] != h->number || n->last[b->allocation] >= n->end[loop]) return false;
  for (uint32_t i = 0; i < h->read_count; i++)
    if (h->plan->buffers[h->read[i]].allocation == b->allocation) return false;
  return true;
}

/* NULL: it stays. */
static ax_loop_level *place_of(ax_hoister *h, ax_loop_level *inner) {
  const ax_op *op = &inner->block->ops[inner->at], *loop = loop_around(inner->outer);
  int64_t bytes = 0;
  if (loop == NULL || !ax_op_only_computes(op)) return NULL;
  ax_hoist_list(h, op);
  for (uint32_t i = 0; i < h->written_count; i++) {
    if (!is_own(h, h->written[i], loop->loop.id)) return NULL;
    bytes += ax_buffer_bytes(&h->plan->buffers[h->plan->buffers[h->written[i]].allocation]);
  }
  if (h->status != AX_OK || h->written_count == 0 || bytes > most_bytes - h->bytes) return NULL;
  ax_loop_level *place = ax_nesting_place(&h->nesting, inner->outer, h->read, h->read_count, false);
  if (place != NULL) h->bytes += bytes;
  return place;
}

static ax_status hoist_block(ax_hoister *h, ax_block *block, ax_loop_level *outer) {
  ax_loop_level here;
  const bool *chosen = h->choose != NULL ? h->choose(h, block, outer) : NULL;
  AX_TRY(h->status);
  ax_level_begin(&here, block, outer);
  for (; here.at < block->count; here.at++) {
    ax_op *op = &block->ops[here.at];
    ax_loop_level *place = h->choose == NULL || (chosen != NULL && chosen[here.at]) ? place_of(h, &here) : NULL;
    AX_TRY(h->status);
    h->number++;
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) AX_TRY(hoist_block(h, ax_op_block(op, k), &here));
    if (place == NULL) continue;
    const ax_op *loop = &place->block->ops[place->at];
    for (uint32_t i = 0; i < h->written_count; i++)
      ax_nesting_move(&h->nesting, h->plan->buffers[h->written[i]].allocation, loop->loop.id);
    op->diverging = loop->diverging;
    AX_TRY(ax_level_put(place, &h->scratch, op));
    op->kind = AX_OP_NONE;
  }
  return ax_level_end(&here, &h->plan->arena);
}

ax_status ax_hoist(ax_plan *plan, ax_hoist_choose *choose) {
  ax_hoister h = {.plan = plan, .choose = choose};
  if (plan->loop_count == 0) return AX_OK;
  ax_status status = ax_nesting_make(&h.nesting, plan, &h.scratch);
  if (status == AX_OK) status = hoist_block(&h, &plan->block, NULL);
  ax_free(h.read);
  ax_free(h.written);
  ax_arena_deinit(&h.scratch);
  return status;
}

ax_status ax_plan_hoist(ax_plan *plan) { return ax_hoist(plan, NULL); }
