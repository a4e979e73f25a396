/* Carries that change places instead of being copied:

     loop n: s = exchange(c) or f(c);  c = s        becomes        loop n / 2: s = exchange(c);  c = exchange(s)

   If a carry is still read, its next value cannot be written in its place. It is made beside it and copied at the end of each
   step. Two steps in one need no copy: the second has the two memories exchanged. If the number of steps is odd, the last one
   comes after the loop, and copies.

   Only short bodies without loops or branches are done twice; their machine code is made once. Copies that fusion has made parts
   of other kernels stay. Either exchanges or kernels may make s and read c. But each device must read its own part of c in each
   step, since that read orders the next write of it by another device. After an even number of steps, another device may have
   written into c last. That write must be read behind the loop, or c must never be written again: a loop around this one would
   have each device write c's first value, and no device waits for a write that it does not read. */
#include <string.h>

#include "plan/op.h"
#include "plan/passes.h"

enum { most_ops = 32, most_pairs = 8 };

typedef struct pair { /* allocations */
  uint32_t carry, next;
} pair;

typedef struct alternator {
  ax_plan *plan;
  uint32_t *all, *here; /* by allocation: how often it is touched, in the whole plan and in the body at hand */
  pair pairs[most_pairs];
  uint32_t pair_count;
  uint32_t *counting;   /* all, or here */
  const ax_block *around; /* the loop at hand stands there, at `at` */
  uint32_t at;
} alternator;

/* --- What may change places --- */

static void count_one(void *context, uint32_t buffer, bool writes) {
  alternator *a = context;
  (void)writes;
  a->counting[a->plan->buffers[buffer].allocation]++;
}

static void forget_one(void *context, uint32_t buffer, bool writes) {
  alternator *a = context;
  (void)writes;
  a->here[a->plan->buffers[buffer].allocation] = 0;
}

static bool is_short(const ax_block *body) {
  if (body->count > most_ops) return false;
  for (uint32_t i = 0; i < body->count; i++) {
    const ax_op_rules *rules = ax_op_rules_of(&body->ops[i]);
    if (!(rules->makes_results || rules->is_exchange) || ax_op_is_ordered(&body->ops[i])) return false;
  }
  return true;
}

/* The operation that makes all of `next`, before `at`, and before anything reads it; nothing else writes it. */
static bool made_once(const alternator *a, const ax_block *body, uint32_t next, uint32_t at) {
  const ax_op *maker = NULL;
  for (uint32_t i = 0; i < body->count; i++) {
    const ax_op *op = &body->ops[i];
    const ax_op_access q = ax_op_access_of(a->plan, op, next);
    if (i > at && (q.reads || q.writes)) return false;
    if (maker == NULL && q.reads) return false;
    if (!q.writes) continue;
    bool same = maker != NULL && maker->kind == AX_OP_START && op->kind == AX_OP_DONE && op->exchange == maker->exchange;
    if (maker != NULL && !same) return false;
    if (maker == NULL) maker = op;
  }
  return maker != NULL;
}

/* Whether only the copy at `at` writes `carry`, no operation reads it after that, and each device that holds a part reads its
   part before. */
static bool read_before(const alternator *a, const ax_block *body, uint32_t carry, uint32_t at) {
  bool read = false;
  for (uint32_t i = 0; i < body->count; i++) {
    const ax_op_access q = ax_op_access_of(a->plan, &body->ops[i], carry);
    if (i == at) continue;
    if (q.writes || (i > at && q.reads)) return false;
    read = read || (q.reads && (a->plan->buffers[carry].axes & ~body->ops[i].axes) == 0);
  }
  return read;
}

static bool is_exchanged(const alternator *a, const ax_block *body, uint32_t next) {
  for (uint32_t i = 0; i < body->count; i++)
    if (body->ops[i].kind == AX_OP_START && ax_op_access_of(a->plan, &body->ops[i], next).writes) return true;
  return false;
}

/* Each device reads its part of `carry` behind the loop, before anything writes it; or the loop is gone through once. */
static bool read_behind(const alternator *a, uint32_t carry) {
  if (a->around == &a->plan->block) return true;
  for (uint32_t i = a->at + 1; i < a->around->count; i++) {
    const ax_op *op = &a->around->ops[i];
    const bool passed = ax_op_rules_of(op)->only_computes || op->kind == AX_OP_START;
    const ax_op_access q = ax_op_access_all(a->plan, op, carry);
    if (q.reads && passed && (a->plan->buffers[carry].axes & ~op->axes) == 0) return true;
    if (q.writes) break;
  }
  return false;
}

static bool is_replaced_whole(const ax_plan *plan, uint32_t buffer) {
  return ax_is_whole(plan, buffer) && !plan->buffers[plan->buffers[buffer].allocation].updated;
}

static bool in_pairs(const alternator *a, uint32_t allocation) {
  for (uint32_t i = 0; i < a->pair_count; i++)
    if (a->pairs[i].carry == allocation || a->pairs[i].next == allocation) return true;
  return false;
}

/* The copy at `at` can go. */
static bool changes_places(const alternator *a, const ax_block *body, uint32_t at, bool even, pair *out) {
  const ax_plan *plan = a->plan;
  uint32_t to, from;
  if (!ax_op_copies_all(&body->ops[at], &to, &from) || !is_replaced_whole(plan, to) || !is_replaced_whole(plan, from)) return false;
  const ax_buffer *carry = &plan->buffers[plan->buffers[to].allocation], *next = &plan->buffers[plan->buffers[from].allocation];
  *out = (pair){plan->buffers[to].allocation, plan->buffers[from].allocation};
  if (carry == next || carry->axes != next->axes || carry->type.dtype != next->type.dtype || next->kind != AX_BUFFER_TEMP)
    return false;
  return a->here[out->next] == a->all[out->next] && !in_pairs(a, out->carry) && !in_pairs(a, out->next) &&
         made_once(a, body, out->next, at) && read_before(a, body, out->carry, at) &&
         (!even || !is_exchanged(a, body, out->next) || read_behind(a, out->carry));
}

/* --- A step once more --- */

typedef struct again {
  alternator *a;
  uint32_t loop;
  bool exchanged;     /* the pairs' memories are */
  int64_t step;       /* of the loop, or how many after the one that stands first in it */
  bool last;          /* it stands after the loop */
  uint32_t *from, *to; /* buffers in other places, so far */
  uint32_t count, capacity;
  const ax_exchange *started[most_ops];
  ax_exchange *restarted[most_ops];
  uint32_t started_count;
} again;

static uint32_t other(const again *g, uint32_t allocation) {
  for (uint32_t i = 0; g->exchanged && i < g->a->pair_count; i++) {
    if (g->a->pairs[i].carry == allocation) return g->a->pairs[i].next;
    if (g->a->pairs[i].next == allocation) return g->a->pairs[i].carry;
  }
  return allocation;
}

static ax_status rename_buffer(void *context, uint32_t *buffer) {
  again *g = context;
  ax_plan *plan = g->a->plan;
  const ax_buffer old = plan->buffers[*buffer];
  uint32_t allocation = other(g, old.allocation);
  if (allocation == old.allocation && old.loop != g->loop) return AX_OK;
  for (uint32_t i = 0; i < g->count; i++)
    if (g->from[i] == *buffer) {
      *buffer = g->to[i];
      return AX_OK;
    }
  ax_buffer made = plan->buffers[allocation];
  made.type = old.type;
  made.offset = old.offset;
  made.loop = old.loop;
  made.step = old.step;
  if (old.loop == g->loop) {
    made.offset += g->step * old.step;
    made.loop = g->last ? AX_NONE : old.loop;
    made.step = g->last ? 0 : 2 * old.step;
  }
  uint32_t capacity = g->capacity;
  AX_TRY(ax_grow(&g->from, sizeof g->from[0], g->count, 1, &g->capacity));
  AX_TRY(ax_grow(&g->to, sizeof g->to[0], g->count, 1, &capacity));
  g->from[g->count] = *buffer;
  AX_TRY(ax_plan_add_buffer(plan, &made, buffer));
  g->to[g->count++] = *buffer;
  return AX_OK;
}

static void restart(void *context, const ax_exchange *from, ax_exchange *to) {
  again *g = context;
  to->id = g->a->plan->exchange_count++;
  g->started[g->started_count] = from;
  g->restarted[g->started_count++] = to;
}

static ax_exchange *restarted(void *context, ax_exchange *from) {
  const again *g = context;
  for (uint32_t i = 0; i < g->started_count; i++)
    if (g->started[i] == from) return g->restarted[i];
  return from;
}

static ax_status do_again(again *g, ax_op *op) {
  ax_arena *arena = &g->a->plan->arena;
  const ax_op_renaming renaming = {
      .arena = arena, .lists = arena, .buffer = rename_buffer, .start = restart, .started = restarted, .context = g};
  return ax_op_rename(&renaming, op);
}

/* The step at the end of a list of operations; without the copies, or with them. */
static ax_status append_step(again *g, const ax_block *body, const bool *is_copy, ax_op *ops, uint32_t *count) {
  for (uint32_t i = 0; i < body->count; i++) {
    if (is_copy[i] && !g->last) continue;
    ops[*count] = body->ops[i];
    AX_TRY(do_again(g, &ops[(*count)++]));
  }
  return AX_OK;
}

static void release(again *g) {
  ax_free(g->from);
  ax_free(g->to);
}

/* Two steps in one; `after`: room for the odd one. */
static ax_status alternate(alternator *a, ax_op *loop, const bool *is_copy, again *second, again *third, ax_op *after,
                           uint32_t *after_count) {
  ax_block *body = &loop->loop.body;
  ax_op *ops = ax_arena_alloc(&a->plan->arena, 2 * (size_t)body->count * sizeof ops[0]);
  uint32_t count = 0;
  if (ops == NULL) return ax_out_of_memory(body->count * sizeof ops[0]);
  for (uint32_t i = 0; i < body->count; i++)
    if (!is_copy[i]) ops[count++] = body->ops[i];
  AX_TRY(append_step(second, body, is_copy, ops, &count));
  if (loop->loop.trips % 2 != 0) AX_TRY(append_step(third, body, is_copy, after, after_count));
  for (uint32_t i = 0; i < second->count; i++) {
    ax_buffer *view = &a->plan->buffers[second->from[i]];
    if (view->loop == loop->loop.id) view->step *= 2;
  }
  *body = (ax_block){ops, count, count};
  loop->loop.trips /= 2;
  return AX_OK;
}

/* A loop whose copies can go: after[0 .. *after_count) is what then comes behind it, most_ops at most. */
static ax_status alternate_loop(alternator *a, ax_op *loop, ax_op *after, uint32_t *after_count) {
  ax_block *body = &loop->loop.body;
  bool is_copy[most_ops] = {false};
  if (loop->kind != AX_OP_LOOP || loop->loop.trips < 2 || !is_short(body)) return AX_OK;
  a->counting = a->here;
  for (uint32_t i = 0; i < body->count; i++) ax_op_visit(&body->ops[i], count_one, a);
  a->pair_count = 0;
  for (uint32_t i = 0; i < body->count && a->pair_count < most_pairs; i++) {
    is_copy[i] = changes_places(a, body, i, loop->loop.trips % 2 == 0, &a->pairs[a->pair_count]);
    a->pair_count += is_copy[i];
  }
  for (uint32_t i = 0; i < body->count; i++) ax_op_visit(&body->ops[i], forget_one, a);
  if (a->pair_count == 0) return AX_OK;
  again second = {.a = a, .loop = loop->loop.id, .exchanged = true, .step = 1};
  again third = {.a = a, .loop = loop->loop.id, .step = loop->loop.trips - 1, .last = true};
  ax_status status = alternate(a, loop, is_copy, &second, &third, after, after_count);
  release(&second);
  release(&third);
  return status;
}

static ax_status alternate_in(void *context, ax_block *block, bool is_body) {
  alternator *a = context;
  ax_op after[most_ops];
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    uint32_t more = 0;
    a->around = block, a->at = i;
    AX_TRY(alternate_loop(a, &block->ops[i], after, &more));
    if (more == 0) continue;
    ax_op *ops = ax_arena_alloc(&a->plan->arena, ((size_t)block->count + more) * sizeof ops[0]);
    if (ops == NULL) return ax_out_of_memory(more * sizeof ops[0]);
    memcpy(ops, block->ops, (i + 1) * sizeof ops[0]);
    memcpy(ops + i + 1, after, more * sizeof ops[0]);
    memcpy(ops + i + 1 + more, block->ops + i + 1, (block->count - i - 1) * sizeof ops[0]);
    *block = (ax_block){ops, block->count + more, block->count + more};
    i += more;
  }
  return AX_OK;
}

ax_status ax_plan_alternate(ax_plan *plan) {
  ax_arena tables = {0};
  alternator a = {.plan = plan};
  a.all = ax_arena_alloc(&tables, plan->buffer_count * sizeof a.all[0]);
  a.here = ax_arena_alloc(&tables, plan->buffer_count * sizeof a.here[0]);
  ax_status status = a.all != NULL && a.here != NULL ? AX_OK : ax_out_of_memory(plan->buffer_count * sizeof a.all[0]);
  a.counting = a.all;
  for (uint32_t i = 0; status == AX_OK && i < plan->block.count; i++) ax_op_visit_all(&plan->block.ops[i], count_one, &a);
  for (uint32_t i = 0; status == AX_OK && i < plan->out_count; i++) count_one(&a, plan->out[i], false);
  if (status == AX_OK) status = ax_blocks_visit(&plan->block, alternate_in, &a);
  ax_arena_deinit(&tables);
  return status;
}
