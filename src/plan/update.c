/* Updates in place: a value with a part overwritten lives in the memory of the value it was made from, if that is not needed any
   more. So writing a row costs a row.

     t = copy of s;  t[i..] = part;  ... t ...                  becomes      s[i..] = part;  ... s ...
     the same in a loop's body, with  s = copy of t  at its end  becomes      s[i..] = part

   s and t share memory from the copy on if they hold the same value wherever both are alive. That is so if

     t   is touched in this block only, first by the copy; and
     s   is touched in this block only, and not after the copy (a donated argument counts, in the outermost block);
         or the block is a loop's body at whose end s becomes a copy of t, and nothing touches s between the two copies.

   Inner blocks come first, and copies from the last to the first, so that a chain of updates ends up in one memory. Only updated
   values are considered; fusion treats other copies better. If a part is overwritten, the rest must hold the values that other
   activations put there before. So the allocation is marked `updated`, and each writer of it counts as a reader too
   (assemble/flatten.c). */
#include <string.h>

#include "plan/op.h"
#include "plan/passes.h"

typedef struct summary { /* of an allocation's touches in the block at hand: operations by number, -1 for none */
  int64_t first, last, before_last, last_write;
  uint32_t visits;
} summary;

typedef struct updater {
  ax_plan *plan;
  ax_arena scratch;
  uint32_t *parent;   /* by allocation: the one it was united with, or itself */
  uint32_t *total;    /* by allocation: visits in all blocks */
  bool *updated;      /* by allocation */
  uint32_t *result;   /* by allocation: the result it is; AX_NONE */
  summary *summaries; /* by allocation */
  uint32_t *listed, listed_count; /* allocations that have one */
  uint32_t op;
  bool takes; /* some operation takes rows of a ragged exchange */
} updater;

static uint32_t allocation_of(const updater *u, uint32_t buffer) {
  uint32_t allocation = u->plan->buffers[buffer].allocation;
  for (; u->parent[allocation] != allocation; allocation = u->parent[allocation])
    u->parent[allocation] = u->parent[u->parent[allocation]];
  return allocation;
}

/* --- Touches --- */

static void summarise(void *context, uint32_t buffer, bool writes) {
  updater *u = context;
  uint32_t allocation = allocation_of(u, buffer);
  summary *s = &u->summaries[allocation];
  if (s->visits++ == 0) {
    *s = (summary){.first = u->op, .last = -1, .before_last = -1, .last_write = -1, .visits = 1};
    u->listed[u->listed_count++] = allocation;
  }
  if (s->last != u->op) s->before_last = s->last;
  s->last = u->op;
  if (writes) s->last_write = u->op;
}

static void forget(updater *u) {
  while (u->listed_count > 0) u->summaries[u->listed[--u->listed_count]].visits = 0;
}

/* --- Copies --- */

/* All of its allocation's memory. */
static bool is_whole(const updater *u, uint32_t buffer) {
  const ax_buffer *b = &u->plan->buffers[buffer], *allocation = &u->plan->buffers[allocation_of(u, buffer)];
  return b->offset == 0 && b->loop == AX_NONE && b->axes == allocation->axes && ax_buffer_bytes(b) == ax_buffer_bytes(allocation);
}

/* An operation that does nothing but copy all of one allocation to another. */
static bool copies(const updater *u, const ax_op *op, uint32_t *to, uint32_t *from) {
  if (!ax_op_copies_all(op, to, from) || !is_whole(u, *to) || !is_whole(u, *from)) return false;
  bool alike = u->plan->buffers[*to].axes == u->plan->buffers[*from].axes && op->axes == u->plan->buffers[*to].axes;
  *to = allocation_of(u, *to);
  *from = allocation_of(u, *from);
  return alike && *to != *from;
}

/* A result in an argument's memory has blocks of the argument's shape. */
static bool may_be_overwritten(const updater *u, uint32_t from, uint32_t to, bool outermost) {
  const ax_plan *plan = u->plan;
  const ax_buffer *source = &plan->buffers[from];
  if (source->kind == AX_BUFFER_TEMP) return true;
  if (source->kind != AX_BUFFER_INPUT || !outermost || plan->donate == NULL || !plan->donate[source->index]) return false;
  if (u->result[to] == AX_NONE) return true;
  const ax_buffer *out = &plan->buffers[plan->out[u->result[to]]];
  return out->axes == source->axes && ax_same_shape(&out->type, &source->type);
}

/* Whether the copy at `at` can go; *back: the copy at the end of the body that goes with it, or the same. */
static bool may_unite(const updater *u, const ax_block *block, uint32_t at, uint32_t from, uint32_t to, bool is_body,
                      uint32_t *back) {
  bool outermost = block == &u->plan->block;
  const summary *source = &u->summaries[from], *target = &u->summaries[to];
  if (!u->updated[to] || u->plan->buffers[to].kind != AX_BUFFER_TEMP) return false;
  if (target->first != at || target->visits != u->total[to] || (u->result[to] != AX_NONE && !outermost)) return false;
  if (!may_be_overwritten(u, from, to, outermost)) return false;
  *back = at;
  if (source->last <= at) return source->visits == u->total[from] && u->result[from] == AX_NONE;
  uint32_t end_to, end_from;
  if (!is_body || source->before_last > at || target->last_write >= source->last) return false;
  *back = (uint32_t)source->last;
  return copies(u, &block->ops[*back], &end_to, &end_from) && end_to == from && end_from == to;
}

static void unite(updater *u, uint32_t to, uint32_t from, bool twice) {
  summary *source = &u->summaries[from];
  const summary *target = &u->summaries[to];
  uint32_t gone = twice ? 4 : 2; /* each copy visits two */
  u->parent[to] = from;
  u->updated[from] = u->plan->buffers[from].updated = true;
  if (u->result[to] != AX_NONE) u->result[from] = u->result[to];
  u->total[from] += u->total[to] - gone;
  source->visits += target->visits - gone;
  source->last = target->last;
  source->before_last = target->before_last;
  source->last_write = target->last_write;
}

static ax_status place_block(void *context, ax_block *block, bool is_body) {
  updater *u = context;
  bool any = false;
  uint32_t to, from, back;
  for (uint32_t i = 0; i < block->count && !any; i++) any = copies(u, &block->ops[i], &to, &from) && u->updated[to];
  if (!any) return AX_OK;
  for (u->op = 0; u->op < block->count; u->op++) ax_op_visit_all(&block->ops[u->op], summarise, u);
  for (uint32_t i = block->count; i-- > 0;) {
    if (!copies(u, &block->ops[i], &to, &from) || !may_unite(u, block, i, from, to, is_body, &back)) continue;
    unite(u, to, from, back != i);
    block->ops[i].kind = block->ops[back].kind = AX_OP_NONE;
  }
  forget(u);
  ax_block_sweep(block);
  return AX_OK;
}

/* --- Ragged exchanges --- */

/* A TAKE whose output is a copy that cannot be united with its source need not have the copy: it takes the rows that no slice
   covers from the source. If a kernel makes the source for the copy alone, the copy stays, since fusion then removes it. One
   walk over each block notes by allocation its latest writer, whether that is a kernel, and the copy that it holds if nothing
   has touched it since. */
typedef struct taker {
  updater *u;
  const uint32_t *reads;
  int64_t *written, *copied; /* -1 */
  bool *by_kernel;
  uint32_t *source; /* buffer */
  int64_t op;
  bool is_kernel, clears;
} taker;

static void note_touch(void *context, uint32_t buffer, bool writes) {
  taker *t = context;
  uint32_t allocation = allocation_of(t->u, buffer);
  t->copied[allocation] = -1;
  if (!writes && !t->clears) return;
  t->written[allocation] = t->clears ? -1 : t->op;
  t->by_kernel[allocation] = !t->clears && t->is_kernel;
}

static void take_from_source(taker *t, ax_block *block, ax_ragged *ragged) {
  uint32_t allocation = allocation_of(t->u, ragged->out);
  int64_t copy = t->copied[allocation];
  if (copy < 0) return;
  uint32_t from = allocation_of(t->u, t->source[allocation]);
  if (t->written[from] > copy || (t->by_kernel[from] && t->reads[from] == 1)) return;
  ragged->base = t->source[allocation];
  block->ops[copy].kind = AX_OP_NONE;
}

static ax_status take_in_block(void *context, ax_block *block, bool is_body) {
  taker *t = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    uint32_t to, from;
    if (op->kind == AX_OP_RAGGED && op->step == AX_RAGGED_TAKE) take_from_source(t, block, op->ragged);
    t->op = i;
    t->is_kernel = op->kind == AX_OP_KERNEL;
    ax_op_visit_all(op, note_touch, t);
    if (!ax_op_copies_all(op, &to, &from) || !is_whole(t->u, to) || op->axes != t->u->plan->buffers[to].axes) continue;
    t->copied[allocation_of(t->u, to)] = i;
    t->source[allocation_of(t->u, to)] = from;
  }
  t->clears = true;
  for (uint32_t i = 0; i < block->count; i++) ax_op_visit_all(&block->ops[i], note_touch, t);
  t->clears = false;
  ax_block_sweep(block);
  return AX_OK;
}

static ax_status take_from_sources(updater *u) {
  size_t count = u->plan->buffer_count;
  uint32_t *reads = ax_arena_alloc(&u->scratch, count * sizeof reads[0]),
           *writes = ax_arena_alloc(&u->scratch, count * sizeof writes[0]);
  taker t = {.u = u, .reads = reads, .written = ax_arena_alloc(&u->scratch, count * sizeof t.written[0]),
             .copied = ax_arena_alloc(&u->scratch, count * sizeof t.copied[0]), .by_kernel = ax_arena_alloc(&u->scratch, count),
             .source = ax_arena_alloc(&u->scratch, count * sizeof t.source[0])};
  if (reads == NULL || writes == NULL || t.written == NULL || t.copied == NULL || t.by_kernel == NULL || t.source == NULL)
    return ax_out_of_memory(count * sizeof t.written[0]);
  for (size_t i = 0; i < count; i++) t.written[i] = t.copied[i] = -1;
  ax_plan_count(u->plan, reads, writes);
  return ax_blocks_visit(&u->plan->block, take_in_block, &t);
}

/* --- The plan --- */

static void count_one(void *context, uint32_t buffer, bool writes) {
  updater *u = context;
  (void)writes;
  u->total[allocation_of(u, buffer)]++;
}

static void note_updated(void *context, uint32_t buffer, bool writes) {
  updater *u = context;
  (void)writes;
  u->updated[allocation_of(u, buffer)] = true;
}

static void look_at(void *context, ax_op *op) {
  updater *u = context;
  const ax_op_rules *rules = ax_op_rules_of(op);
  ax_op_visit(op, count_one, u);
  if (rules->visit_updated != NULL) rules->visit_updated(op, note_updated, u);
  u->takes = u->takes || (op->kind == AX_OP_RAGGED && op->step == AX_RAGGED_TAKE);
}

static ax_status place(updater *u) {
  ax_plan *plan = u->plan;
  uint32_t count = plan->buffer_count;
  u->parent = ax_arena_alloc(&u->scratch, count * sizeof u->parent[0]);
  u->total = ax_arena_alloc(&u->scratch, count * sizeof u->total[0]);
  u->updated = ax_arena_alloc(&u->scratch, count);
  u->result = ax_arena_alloc(&u->scratch, count * sizeof u->result[0]);
  u->summaries = ax_arena_alloc(&u->scratch, count * sizeof u->summaries[0]);
  u->listed = ax_arena_alloc(&u->scratch, count * sizeof u->listed[0]);
  if (u->parent == NULL || u->total == NULL || u->updated == NULL || u->result == NULL || u->summaries == NULL || u->listed == NULL)
    return ax_out_of_memory(count * sizeof u->summaries[0]);
  for (uint32_t i = 0; i < count; i++) u->parent[i] = i;
  memset(u->result, 0xff, count * sizeof u->result[0]);
  for (uint32_t k = 0; k < plan->out_count; k++) u->result[plan->buffers[plan->out[k]].allocation] = k;
  ax_block_walk(&plan->block, look_at, u);
  AX_TRY(ax_blocks_visit(&plan->block, place_block, u));
  for (uint32_t i = 0; i < count; i++) plan->buffers[i].allocation = allocation_of(u, i);
  return u->takes ? take_from_sources(u) : AX_OK;
}

ax_status ax_plan_update(ax_plan *plan) {
  updater u = {.plan = plan};
  ax_status status = place(&u);
  ax_arena_deinit(&u.scratch);
  return status;
}
