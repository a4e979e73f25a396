/* Values that are cheaper to compute again than to hold: saves memory for a little work.

   A backward pass uses values that the forward pass made long before. Of a chain of pointwise operations it often uses every
   link (gelu and softmax give four or five values of one size), and all of them would be held from one pass to the other. It is
   enough to hold those that the others can be made of; a kernel of the backward pass then computes the values it needs itself.

     t = tanh(x);  u = t * x;  y = u W;  ...;  a = u' dy;  b = t * dz      holds x, t and u across the dots
     becomes  ...;  t' = tanh(x);  u' = t' * x;  a = u'' dy;  b = t' * dz   which holds x

   A read is *late* when it comes long after the touch before it and much memory is in use in between. The *crest* is the place
   in between where most memory is in use; it must be at least half of the block's peak. A value may be made again when one
   kernel computes each of its elements by itself, by little work, from values that do not change. Which of these are made again
   and which are kept is chosen as ir/remake.h says; a base is there anyway if it is alive at the value's crest.

   The bits are the same, since the same operations are done on the same values. A value of one device is made again by the
   devices that read it, but only if they are few. A table that is filled with zeros long before its other parts are written is
   filled when it is needed.

   The work is in proportion to the operations: all that is made again at one place is bounded. */
#include <string.h>

#include "ir/remake.h"
#include "plan/op.h"
#include "plan/passes.h"

enum {
  window = AX_HOSTILE ? 2 : 24, /* operations: a value used again so soon stays at hand; also as far as fusion looks */
  most_work = 96,               /* scalar operations an element, of all that is made again for a value */
  most_copies = 4,              /* devices that make the same value again */
  least_bytes = AX_HOSTILE ? 0 : 1 << 14, /* of a value */
  least_peak = AX_HOSTILE ? 0 : 1 << 20   /* of a block, over all devices */
};

typedef struct touch { /* of an allocation by an operation of the block, or inside it; an allocation's are linked in order */
  uint32_t op, next;
  bool writes;
} touch;

typedef struct value { /* an allocation, in the block at hand */
  uint32_t visits, total;      /* touches in the block, and in the plan */
  uint32_t first, tail;        /* touches */
  uint32_t writes, writer, last_write; /* writer: of the last write; AX_NONE when that stands inside an operation */
  uint32_t until;              /* the last operation that reads it, as it will be */
  uint32_t crest;              /* of a late value: the place of most memory in use before its first late read */
  ax_remade remade;            /* wanted: it is read late */
  uint32_t copy, used;         /* the latest that was made again, or AX_NONE; the last operation that used that */
  uint32_t reads;
} value;

typedef struct recomputer {
  ax_plan *plan;
  value *values; /* by allocation; of allocations made here nothing is known, nor need be */
  uint32_t value_count;
  ax_arena tables;
  /* The block at work: */
  ax_arena scratch;
  ax_block *block;
  touch *touches;
  uint32_t touch_count, touch_capacity;
  uint32_t op;         /* being listed */
  double *level, peak; /* by operation: bytes alive */
  uint32_t *highest, leaves; /* a tree over the operations: which of those below a node has the highest level */
  ax_op *made;         /* the new list */
  uint32_t made_count, made_capacity;
  ax_remaking remaking; /* after both walks */
  ax_status status;    /* of a visit */
} recomputer;

static value *value_of(const recomputer *r, uint32_t buffer) {
  uint32_t allocation = r->plan->buffers[buffer].allocation;
  return allocation < r->value_count ? &r->values[allocation] : NULL;
}

static uint32_t number_of(const recomputer *r, const value *v) { return (uint32_t)(v - r->values); }

static double weight(void *context, uint32_t allocation) {
  const ax_plan *plan = ((const recomputer *)context)->plan;
  const ax_buffer *buffer = &plan->buffers[allocation];
  return (double)ax_buffer_bytes(buffer) * (double)ax_axis_set_size(buffer->axes, &plan->mesh);
}

/* All that is done with it is done in this block. */
static bool is_local(const recomputer *r, const value *v) {
  return r->plan->buffers[number_of(r, v)].kind == AX_BUFFER_TEMP && v->visits == v->total;
}

/* --- Touches --- */

static bool holds_blocks(const ax_op *op) { return ax_op_rules_of(op)->block != NULL; }

static void list_touch(void *context, uint32_t buffer, bool writes) {
  recomputer *r = context;
  value *v = value_of(r, buffer);
  if (v == NULL || r->status != AX_OK) return;
  r->status = ax_grow(&r->touches, sizeof r->touches[0], r->touch_count, 1, &r->touch_capacity);
  if (r->status != AX_OK) return;
  if (v->visits++ == 0) v->first = r->touch_count;
  else r->touches[v->tail].next = r->touch_count;
  v->tail = r->touch_count;
  r->touches[r->touch_count++] = (touch){r->op, AX_NONE, writes};
  if (!writes) v->until = r->op;
  if (!writes) return;
  v->writes++;
  v->last_write = r->op;
  v->writer = holds_blocks(&r->block->ops[r->op]) ? AX_NONE : r->op;
}

static void forget_touch(void *context, uint32_t buffer, bool writes) {
  value *v = value_of(context, buffer);
  (void)writes;
  if (v != NULL) *v = (value){.total = v->total, .copy = AX_NONE};
}

/* --- How much is alive --- */

static void begin_and_end(void *context, uint32_t buffer, bool writes) {
  recomputer *r = context;
  value *v = value_of(r, buffer);
  (void)writes;
  if (v == NULL || !is_local(r, v) || v->used != AX_NONE) return;
  v->used = 0; /* counted */
  r->level[r->touches[v->first].op] += weight(r, number_of(r, v));
  r->level[r->touches[v->tail].op + 1] -= weight(r, number_of(r, v));
}

static void uncount(void *context, uint32_t buffer, bool writes) {
  value *v = value_of(context, buffer);
  (void)writes;
  if (v != NULL) v->used = AX_NONE;
}

static uint32_t higher(const recomputer *r, uint32_t a, uint32_t b) {
  if (a == AX_NONE || b == AX_NONE) return a == AX_NONE ? b : a;
  return r->level[a] >= r->level[b] ? a : b;
}

static ax_status find_levels(recomputer *r) {
  uint32_t count = r->block->count;
  for (r->leaves = 1; r->leaves < count;) r->leaves *= 2;
  r->level = ax_arena_alloc(&r->scratch, ((size_t)count + 1) * sizeof r->level[0]);
  r->highest = ax_arena_alloc(&r->scratch, 2 * (size_t)r->leaves * sizeof r->highest[0]);
  if (r->level == NULL || r->highest == NULL) return ax_out_of_memory(count * sizeof r->level[0]);
  for (uint32_t i = 0; i < count; i++) ax_op_visit_all(&r->block->ops[i], uncount, r);
  for (uint32_t i = 0; i < count; i++) ax_op_visit_all(&r->block->ops[i], begin_and_end, r);
  for (uint32_t i = 1; i < count; i++) r->level[i] += r->level[i - 1];
  for (uint32_t i = 0; i < r->leaves; i++) r->highest[r->leaves + i] = i < count ? i : AX_NONE;
  for (uint32_t i = r->leaves; i-- > 1;) r->highest[i] = higher(r, r->highest[2 * i], r->highest[2 * i + 1]);
  r->peak = r->level[r->highest[1]];
  return AX_OK;
}

/* The operation from `from` to `to`, both included, at which most memory is in use. */
static uint32_t crest_between(const recomputer *r, uint32_t from, uint32_t to) {
  uint32_t best = AX_NONE;
  for (uint32_t low = from + r->leaves, high = to + r->leaves + 1; low < high; low /= 2, high /= 2) {
    if ((low & 1) != 0) best = higher(r, best, r->highest[low++]);
    if ((high & 1) != 0) best = higher(r, best, r->highest[--high]);
  }
  return best;
}

static bool is_late(const recomputer *r, uint32_t before, uint32_t read, uint32_t *crest) {
  if (read - before <= window) return false;
  *crest = crest_between(r, before + 1, read - 1); /* not at the two themselves: what they need for their own work does not count */
  return r->level[*crest] >= r->peak / 2;
}

/* --- What may be made again --- */

static uint32_t work_of(const ax_loop_kernel *kernel) {
  uint32_t work = 1;
  for (uint32_t i = 0; i < kernel->expr_count; i++) work += kernel->exprs[i].op < AX_SCALAR_COUNT;
  return work;
}

/* A kernel that computes all of one allocation, element by element. */
static bool computes_whole(const recomputer *r, const ax_op *op) {
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op)) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  const ax_store *store = &kernel->stores[0];
  uint32_t buffer = op->kernel.buffers[store->slot];
  return kernel->store_count == 1 && store->reduce == AX_SCALAR_NONE && ax_kernel_covers(kernel, store->slot, store->at) &&
         r->plan->buffers[buffer].allocation == buffer;
}

static bool is_loaded(const ax_loop_kernel *kernel, uint32_t slot) {
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (kernel->exprs[i].op == AX_LEAF_LOAD && kernel->exprs[i].slot == slot) return true;
  return false;
}

/* Whether operation `op`, on other axes than the value perhaps, can have a copy of its own. */
static bool fits_reader(const recomputer *r, ax_axis_set axes, const ax_op *op) {
  const ax_mesh *mesh = &r->plan->mesh;
  return (axes & ~op->axes) == 0 && ax_axis_set_size(op->axes, mesh) <= most_copies * ax_axis_set_size(axes, mesh);
}

/* Finds whether a value is read late. If an operation with blocks reads it late, the value is kept: the operations inside might
   make it again in every step. */
static void find_late_reads(recomputer *r, value *v) {
  const ax_buffer *buffer = &r->plan->buffers[number_of(r, v)];
  uint32_t before = v->writer, crest;
  bool late = false, fits = ax_buffer_bytes(buffer) >= least_bytes;
  for (uint32_t t = r->touches[v->first].next; t != AX_NONE; t = r->touches[t].next) {
    uint32_t read = r->touches[t].op;
    const ax_op *op = &r->block->ops[read];
    if (is_late(r, before, read, &crest)) {
      fits = fits && fits_reader(r, buffer->axes, op) && !holds_blocks(op) && op->kind != AX_OP_DONE;
      if (!late) v->crest = crest;
      late = true;
    }
    before = read;
  }
  v->remade.wanted = late && fits;
  if (late && !fits) v->remade.makeable = false;
}

static void find_makeable(recomputer *r) {
  for (uint32_t i = 0; i < r->block->count; i++) {
    const ax_op *op = &r->block->ops[i];
    if (!computes_whole(r, op)) continue;
    value *v = value_of(r, op->kernel.buffers[op->kernel.kernel->stores[0].slot]);
    if (v == NULL || !is_local(r, v) || v->writes != 1 || r->touches[v->first].op != i || !r->touches[v->first].writes) continue;
    v->remade.makeable = true;
    find_late_reads(r, v);
  }
}

/* --- Which are made again --- */

static ax_remade *remade_of(void *context, uint32_t allocation) {
  return &((const recomputer *)context)->values[allocation].remade;
}

static bool is_alive(void *context, uint32_t base, uint32_t allocation) {
  const recomputer *r = context;
  return r->values[base].until >= r->values[allocation].crest || !is_local(r, &r->values[base]);
}

/* The base is read where the value was. */
static void keep(void *context, uint32_t base, uint32_t allocation) {
  const recomputer *r = context;
  const uint32_t last = r->touches[r->values[allocation].tail].op;
  if (r->values[base].until < last) r->values[base].until = last;
}

/* Adds what one operand is made of. False: v cannot be made of it, or only by too much work. */
static bool add_operand(const recomputer *r, const ax_remaking *remaking, value *v, uint32_t buffer) {
  const value *u = value_of(r, buffer);
  if (u == NULL) return false;
  if (u->writes == 0) return true;              /* it comes from outside, and stays */
  if (u->last_write >= v->writer) return false; /* it will be another value */
  return ax_remake_operand(remaking, &v->remade, number_of(r, u));
}

static void decide(const recomputer *r, const ax_remaking *remaking, uint32_t at) {
  const ax_op *op = &r->block->ops[at];
  value *v = op->kind == AX_OP_KERNEL ? value_of(r, op->kernel.buffers[op->kernel.kernel->stores[0].slot]) : NULL;
  if (v == NULL || !v->remade.makeable || v->writer != at) return;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  bool fits = ax_remake_begin(remaking, &v->remade, work_of(kernel));
  for (uint32_t k = 0; k < kernel->slot_count && fits; k++)
    if (is_loaded(kernel, k)) fits = add_operand(r, remaking, v, op->kernel.buffers[k]);
  v->remade.opaque = !fits;
  ax_remake_decide(remaking, number_of(r, v));
}

static void choose(recomputer *r) {
  r->remaking = (ax_remaking){
      .most_work = most_work, .value = remade_of, .weight = weight, .is_kept = is_alive, .keep = keep, .context = r};
  for (int walk = 0; walk < 2; walk++) {
    r->remaking.decided = walk == 1;
    for (uint32_t i = 0; i < r->block->count; i++) decide(r, &r->remaking, i);
  }
}

/* --- The new list --- */

static ax_status put(recomputer *r, const ax_op *op) {
  AX_TRY(ax_grow(&r->made, sizeof r->made[0], r->made_count, 1, &r->made_capacity));
  r->made[r->made_count++] = *op;
  return AX_OK;
}

static ax_status use(recomputer *r, uint32_t at, uint32_t *buffer);

/* Gives the kernel a list of operands of its own, since kernels that are made again still need the old one. */
static ax_status use_loads(recomputer *r, uint32_t at, ax_bound *bound) {
  bound->buffers = ax_arena_copy(&r->plan->drafts, bound->buffers, bound->kernel->slot_count * sizeof bound->buffers[0]);
  if (bound->buffers == NULL) return ax_out_of_memory(bound->kernel->slot_count * sizeof bound->buffers[0]);
  for (uint32_t k = 0; k < bound->kernel->slot_count; k++)
    if (is_loaded(bound->kernel, k)) AX_TRY(use(r, at, &bound->buffers[k]));
  return AX_OK;
}

/* The kernel that makes v once more, for the operation at `at`. */
static ax_status make_again(recomputer *r, value *v, uint32_t at) {
  ax_op op = r->block->ops[v->writer];
  const ax_loop_kernel *kernel = op.kernel.kernel;
  ax_buffer buffer = r->plan->buffers[number_of(r, v)];
  op.axes = buffer.axes = r->block->ops[at].axes;
  buffer.allocation = AX_NONE;
  AX_TRY(use_loads(r, at, &op.kernel));
  AX_TRY(ax_plan_add_buffer(r->plan, &buffer, &v->copy));
  op.kernel.buffers[kernel->stores[0].slot] = v->copy;
  return put(r, &op);
}

/* Replaces *buffer, which the operation at `at` reads, by a value made again, if that is decided for it. */
static ax_status use(recomputer *r, uint32_t at, uint32_t *buffer) {
  value *v = value_of(r, *buffer);
  const ax_op *op = &r->block->ops[at];
  ax_buffer view = r->plan->buffers[*buffer];
  uint32_t crest;
  if (v == NULL || !ax_remake_sees_through(&r->remaking, &v->remade) || !fits_reader(r, r->plan->buffers[number_of(r, v)].axes, op))
    return AX_OK;
  bool near = at - v->used <= window, same = v->copy != AX_NONE && (op->axes & ~r->plan->buffers[v->copy].axes) == 0;
  if (v->copy == AX_NONE ? is_late(r, v->used, at, &crest) : !near || !same) AX_TRY(make_again(r, v, at));
  v->used = at;
  if (v->copy == AX_NONE) return AX_OK;
  if (*buffer == view.allocation) {
    *buffer = v->copy;
    return AX_OK;
  }
  view.allocation = v->copy;
  view.axes = r->plan->buffers[v->copy].axes;
  return ax_plan_add_buffer(r->plan, &view, buffer);
}

static ax_status use_operands(recomputer *r, uint32_t at, ax_op *op) {
  uint32_t *buffer;
  if (op->kind == AX_OP_KERNEL) return use_loads(r, at, &op->kernel);
  for (uint32_t k = 0; (buffer = ax_op_operand(op, k)) != NULL; k++) AX_TRY(use(r, at, buffer));
  return AX_OK;
}

/* An operation that fills in something for others, of which the next comes late; that one's number, or AX_NONE. */
static uint32_t filled_for(const recomputer *r, uint32_t at) {
  const ax_op *op = &r->block->ops[at];
  uint32_t crest;
  if (!computes_whole(r, op)) return AX_NONE;
  for (uint32_t k = 0; k < op->kernel.kernel->slot_count; k++)
    if (is_loaded(op->kernel.kernel, k) &&
        r->plan->buffers[r->plan->buffers[op->kernel.buffers[k]].allocation].kind != AX_BUFFER_CONST)
      return AX_NONE;
  const value *v = value_of(r, op->kernel.buffers[op->kernel.kernel->stores[0].slot]);
  if (v == NULL || !is_local(r, v) || v->writes < 2 || r->touches[v->first].op != at) return AX_NONE;
  const touch *second = &r->touches[r->touches[v->first].next];
  return is_late(r, at, second->op, &crest) ? second->op : AX_NONE;
}

static ax_status rewrite(recomputer *r) {
  uint32_t count = r->block->count;
  uint32_t *filler = ax_arena_alloc(&r->scratch, count * sizeof filler[0]),
           *next = ax_arena_alloc(&r->scratch, count * sizeof next[0]);
  if (filler == NULL || next == NULL) return ax_out_of_memory(count * sizeof filler[0]);
  memset(filler, 0xff, count * sizeof filler[0]);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t later = filled_for(r, i);
    if (later != AX_NONE) {
      next[i] = filler[later];
      filler[later] = i;
      continue;
    }
    for (uint32_t k = filler[i]; k != AX_NONE; k = next[k]) AX_TRY(put(r, &r->block->ops[k]));
    ax_op op = r->block->ops[i];
    AX_TRY(use_operands(r, i, &op));
    AX_TRY(put(r, &op));
  }
  return AX_OK;
}

/* --- Operations whose results are not read any more --- */

static void count_read(void *context, uint32_t buffer, bool writes) {
  value *v = value_of(context, buffer);
  if (v != NULL && !writes) v->reads++;
}

static void uncount_read(void *context, uint32_t buffer, bool writes) {
  value *v = value_of(context, buffer);
  if (v != NULL && !writes) v->reads--;
}

static void drop_unread(recomputer *r) {
  ax_block made = {r->made, r->made_count, r->made_capacity};
  for (uint32_t i = 0; i < made.count; i++) ax_op_visit_all(&made.ops[i], count_read, r);
  for (uint32_t i = made.count; i-- > 0;) {
    ax_op *op = &made.ops[i];
    if (!computes_whole(r, op)) continue;
    const value *v = value_of(r, op->kernel.buffers[op->kernel.kernel->stores[0].slot]);
    if (v == NULL || !v->remade.makeable || v->reads > 0) continue;
    ax_op_visit(op, uncount_read, r);
    op->kind = AX_OP_NONE;
  }
  ax_block_sweep(&made);
  r->made_count = made.count;
}

/* --- Blocks --- */

static void begin_use(recomputer *r) {
  for (uint32_t i = 0; i < r->block->count; i++) {
    const ax_op *op = &r->block->ops[i];
    value *v = op->kind == AX_OP_KERNEL ? value_of(r, op->kernel.buffers[op->kernel.kernel->stores[0].slot]) : NULL;
    if (v != NULL && v->remade.makeable) v->used = v->writer;
  }
}

static ax_status work_on(recomputer *r) {
  for (r->op = 0; r->op < r->block->count; r->op++) ax_op_visit_all(&r->block->ops[r->op], list_touch, r);
  AX_TRY(r->status);
  AX_TRY(find_levels(r));
  if (r->peak < least_peak) return AX_OK;
  find_makeable(r);
  choose(r);
  begin_use(r);
  AX_TRY(rewrite(r));
  drop_unread(r);
  return AX_OK;
}

static ax_status recompute_block(void *context, ax_block *block, bool is_body) {
  recomputer *r = context;
  (void)is_body;
  if (block->count <= window) return AX_OK;
  r->block = block;
  r->made_count = r->touch_count = 0;
  ax_status status = work_on(r);
  for (uint32_t i = 0; i < block->count; i++) ax_op_visit_all(&block->ops[i], forget_touch, r);
  ax_arena_deinit(&r->scratch);
  if (status != AX_OK || r->made_count == 0) return status;
  ax_op *ops = ax_arena_copy(&r->plan->drafts, r->made, r->made_count * sizeof ops[0]);
  if (ops == NULL) return ax_out_of_memory(r->made_count * sizeof ops[0]);
  *block = (ax_block){ops, r->made_count, r->made_count};
  return AX_OK;
}

static void count_touch(void *context, uint32_t buffer, bool writes) {
  value *v = value_of(context, buffer);
  (void)writes;
  v->total++;
}

static ax_status recompute(recomputer *r) {
  ax_plan *plan = r->plan;
  r->values = ax_arena_alloc(&r->tables, plan->buffer_count * sizeof r->values[0]);
  if (r->values == NULL) return ax_out_of_memory(plan->buffer_count * sizeof r->values[0]);
  r->value_count = plan->buffer_count;
  for (uint32_t i = 0; i < plan->block.count; i++) ax_op_visit_all(&plan->block.ops[i], count_touch, r);
  for (uint32_t i = 0; i < plan->out_count; i++)
    r->values[plan->buffers[plan->out[i]].allocation].total++; /* no block has it to itself */
  for (uint32_t i = 0; i < r->value_count; i++) r->values[i].copy = AX_NONE;
  return ax_blocks_visit(&plan->block, recompute_block, r);
}

ax_status ax_plan_recompute(ax_plan *plan) {
  recomputer r = {.plan = plan};
  ax_status status = recompute(&r);
  ax_free(r.touches);
  ax_free(r.made);
  ax_arena_deinit(&r.scratch);
  ax_arena_deinit(&r.tables);
  return status;
}
