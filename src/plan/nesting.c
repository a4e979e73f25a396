#include "plan/nesting.h"

#include <string.h>

/* --- Tables --- */

static void note_touch(void *context, uint32_t buffer, bool writes) {
  ax_nesting *n = context;
  const uint32_t allocation = n->plan->buffers[buffer].allocation;
  if (n->first[allocation] == UINT32_MAX) n->first[allocation] = n->number;
  n->last[allocation] = n->number;
  if (writes) n->written[n->first_write[allocation] + n->filled[allocation]++] = n->number;
}

static void note_block(ax_nesting *n, const ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    const uint32_t begin = n->number;
    ax_op_visit(op, note_touch, n);
    n->number++;
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) note_block(n, ax_op_block(op, k));
    if (op->kind != AX_OP_LOOP) continue;
    n->begin[op->loop.id] = begin;
    n->end[op->loop.id] = n->number;
  }
}

ax_status ax_nesting_make(ax_nesting *n, const ax_plan *plan, ax_arena *scratch) {
  const size_t allocations = plan->buffer_count, loops = plan->loop_count;
  *n = (ax_nesting){.plan = plan, .allocations = plan->buffer_count};
  uint32_t **tables[] = {&n->reads, &n->writes, &n->first, &n->last, &n->first_write, &n->filled};
  for (size_t t = 0; t < AX_COUNT(tables); t++)
    if ((*tables[t] = ax_arena_alloc(scratch, allocations * sizeof n->reads[0])) == NULL)
      return ax_out_of_memory(allocations * sizeof n->reads[0]);
  n->begin = ax_arena_alloc(scratch, loops * sizeof n->begin[0]);
  n->end = ax_arena_alloc(scratch, loops * sizeof n->end[0]);
  if (n->begin == NULL || n->end == NULL) return ax_out_of_memory(loops * sizeof n->begin[0]);
  ax_plan_count(plan, n->reads, n->writes);
  size_t all = 0;
  for (uint32_t i = 0; i < allocations; i++) {
    n->first[i] = UINT32_MAX;
    n->first_write[i] = (uint32_t)all;
    all += n->writes[i];
  }
  n->written = ax_arena_alloc(scratch, all * sizeof n->written[0]);
  if (n->written == NULL) return ax_out_of_memory(all * sizeof n->written[0]);
  note_block(n, &plan->block);
  for (uint32_t k = 0; k < plan->out_count; k++) n->last[plan->buffers[plan->out[k]].allocation] = UINT32_MAX;
  return AX_OK;
}

void ax_nesting_move(ax_nesting *n, uint32_t allocation, uint32_t loop) {
  n->first[allocation] = n->written[n->first_write[allocation]] = n->begin[loop];
}

/* Inside of the loop: its own number is that of what was moved to before it. */
static bool changes(const ax_nesting *n, uint32_t allocation, uint32_t loop) {
  const uint32_t *list = n->written + n->first_write[allocation];
  uint32_t low = 0, high = n->filled[allocation];
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (list[middle] <= n->begin[loop]) low = middle + 1;
    else high = middle;
  }
  return low < n->filled[allocation] && list[low] < n->end[loop];
}

/* --- Levels --- */

typedef struct ax_moved {
  ax_op op;
  uint32_t at;
  struct ax_moved *next;
} ax_moved;

void ax_level_begin(ax_loop_level *l, ax_block *block, ax_loop_level *outer) {
  *l = (ax_loop_level){.block = block, .outer = outer};
  l->last = &l->first;
}

ax_status ax_level_put(ax_loop_level *l, ax_arena *scratch, const ax_op *op) {
  ax_moved *made = ax_arena_alloc(scratch, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  *made = (ax_moved){.op = *op, .at = l->at};
  *l->last = made;
  l->last = &made->next;
  l->count++;
  return AX_OK;
}

ax_status ax_level_end(ax_loop_level *l, ax_arena *arena) {
  ax_block *block = l->block;
  const size_t all = block->count + (size_t)l->count;
  uint32_t count = 0;
  if (l->count == 0) {
    ax_block_sweep(block);
    return AX_OK;
  }
  ax_op *ops = ax_arena_alloc(arena, all * sizeof ops[0]);
  if (ops == NULL) return ax_out_of_memory(all * sizeof ops[0]);
  const ax_moved *next = l->first;
  for (uint32_t i = 0; i < block->count; i++) {
    for (; next != NULL && next->at == i; next = next->next) ops[count++] = next->op;
    if (block->ops[i].kind != AX_OP_NONE) ops[count++] = block->ops[i];
  }
  *block = (ax_block){.ops = ops, .count = count, .capacity = (uint32_t)all};
  return AX_OK;
}

static bool keeps(const ax_nesting *n, const ax_op *loop, const uint32_t *buffers, uint32_t count) {
  const uint32_t id = loop->loop.id;
  for (uint32_t i = 0; i < count; i++) {
    const ax_buffer *b = &n->plan->buffers[buffers[i]];
    if (b->allocation >= n->allocations || b->loop == id || changes(n, b->allocation, id)) return false;
  }
  return !ax_op_has_messages(loop);
}

ax_loop_level *ax_nesting_place(const ax_nesting *n, ax_loop_level *inner, const uint32_t *buffers, uint32_t count,
                                bool past_branches) {
  ax_loop_level *found = NULL;
  bool often = false;
  for (ax_loop_level *l = inner; l != NULL; l = l->outer) {
    const ax_op *op = &l->block->ops[l->at];
    if (op->kind == AX_OP_BRANCH && !past_branches) break;
    if (op->kind != AX_OP_LOOP) continue;
    if (!keeps(n, op, buffers, count)) break;
    often = often || op->loop.trips < 0 || op->loop.trips > 1;
    found = l;
  }
  return often ? found : NULL;
}
