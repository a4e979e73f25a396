/* Values written straight to the place where they are needed, without a copy:

     a result   into the memory of a donated input that is not needed any more    (w - 0.1 g into w)
     a carry    at the end of a loop's body, into the carry's buffer              (c = f(c))

   `source` may live in `target`'s memory if the one operation that writes source comes after every other use of target, or uses
   target itself only element by element at the places it writes. Synchronisation is derived later, on allocations, so it makes
   devices wait for other devices' uses of the target.

   Questions about an allocation are answered from the list of its touches in the current block. Each allocation's views are
   listed, so uniting two allocations costs as much as they have views, whatever the size of the plan. */
#include <stdlib.h>
#include <string.h>

#include "plan/op.h"
#include "plan/passes.h"

typedef struct touch { /* of an allocation by an operation of the block, or inside one */
  uint32_t op, next;
  bool reads, writes;
} touch;

typedef struct coalescer {
  ax_plan *plan;
  const bool *donate; /* the plan's */
  ax_arena scratch;
  uint32_t *writes;            /* by allocation: see ax_plan_count */
  uint32_t *view, *next_view;  /* by allocation, its first buffer; by buffer, the allocation's next one; AX_NONE */
  const ax_block *block;       /* the one whose touches are listed */
  uint32_t *first;             /* by allocation: its latest touch in the block; AX_NONE */
  touch *touches;
  uint32_t touch_count, touch_capacity;
  uint32_t op;                 /* being listed */
  ax_status status;
} coalescer;

/* --- Touches --- */

static void list_touch(void *context, uint32_t buffer, bool writes) {
  coalescer *c = context;
  uint32_t *first = &c->first[c->plan->buffers[buffer].allocation];
  if (*first == AX_NONE || c->touches[*first].op != c->op) {
    if (c->status == AX_OK) c->status = ax_grow(&c->touches, sizeof c->touches[0], c->touch_count, 1, &c->touch_capacity);
    if (c->status != AX_OK) return;
    c->touches[c->touch_count] = (touch){.op = c->op, .next = *first};
    *first = c->touch_count++;
  }
  if (writes) c->touches[*first].writes = true;
  else c->touches[*first].reads = true;
}

static void clear_touch(void *context, uint32_t buffer, bool writes) {
  coalescer *c = context;
  (void)writes;
  c->first[c->plan->buffers[buffer].allocation] = AX_NONE;
}

static ax_status list_block(coalescer *c, const ax_block *block) {
  c->block = block;
  c->touch_count = 0;
  for (c->op = 0; c->op < block->count; c->op++) ax_op_visit_all(&block->ops[c->op], list_touch, c);
  return c->status;
}

/* By operations from .. to. */
static touch touched(const coalescer *c, uint32_t allocation, uint32_t from, uint32_t to) {
  touch all = {0};
  for (uint32_t i = c->first[allocation]; i != AX_NONE; i = c->touches[i].next) {
    if (c->touches[i].op < from || c->touches[i].op >= to) continue;
    all.reads = all.reads || c->touches[i].reads;
    all.writes = all.writes || c->touches[i].writes;
  }
  return all;
}

static bool untouched(const coalescer *c, uint32_t allocation, uint32_t from, uint32_t to) {
  touch all = touched(c, allocation, from, to);
  return !all.reads && !all.writes;
}

/* From here on, source is target's memory. */
static void unite(coalescer *c, uint32_t source, uint32_t target) {
  uint32_t last = AX_NONE;
  for (uint32_t i = c->view[source]; i != AX_NONE; i = c->next_view[i]) {
    c->plan->buffers[i].allocation = target;
    last = i;
  }
  c->next_view[last] = c->view[target];
  c->view[target] = c->view[source];
  c->view[source] = AX_NONE;
  uint32_t *end = &c->first[source];
  while (*end != AX_NONE) end = &c->touches[*end].next;
  *end = c->first[target];
  c->first[target] = c->first[source];
  c->first[source] = AX_NONE;
  c->writes[source] = 2; /* not a buffer of its own any more */
}

/* --- Whether two may be one --- */

static bool same_storage(const ax_plan *plan, uint32_t a, uint32_t b) {
  const ax_buffer *x = &plan->buffers[a], *y = &plan->buffers[b];
  return x->axes == y->axes && x->type.dtype == y->type.dtype && ax_type_elems(&x->type) == ax_type_elems(&y->type);
}

/* The operation of the block that writes all of `allocation`, which is written once; AX_NONE. */
static uint32_t writer_of(const coalescer *c, uint32_t allocation) {
  if (c->plan->buffers[allocation].kind != AX_BUFFER_TEMP || c->plan->buffers[allocation].allocation != allocation ||
      c->writes[allocation] != 1)
    return AX_NONE;
  for (uint32_t i = c->first[allocation]; i != AX_NONE; i = c->touches[i].next) {
    const uint32_t op = c->touches[i].op;
    if (c->touches[i].writes) return ax_op_rules_of(&c->block->ops[op])->makes_results ? op : AX_NONE;
  }
  return AX_NONE;
}

/* Operation `at` touches target only by loading, at each step, the element it then stores into source. */
static bool in_place(const coalescer *c, uint32_t at, uint32_t source, uint32_t target) {
  const ax_op *op = &c->block->ops[at];
  touch all = touched(c, target, at, at + 1);
  if (!all.reads && !all.writes) return true;
  if (all.writes || op->kind != AX_OP_KERNEL) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    const ax_buffer *to = &c->plan->buffers[op->kernel.buffers[store->slot]];
    if (to->allocation != source) continue;
    if (to->offset != 0 || to->loop != AX_NONE || !ax_kernel_covers(kernel, store->slot, store->at)) return false;
  }
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    if (load->op != AX_LEAF_LOAD) continue;
    const ax_buffer *from = &c->plan->buffers[op->kernel.buffers[load->slot]];
    if (from->allocation != target) continue;
    if (from->offset != 0 || from->loop != AX_NONE || !ax_kernel_covers(kernel, load->slot, load->at)) return false;
  }
  return true;
}

/* --- Donations --- */

/* One memory does for both when the blocks have one shape: they are in mesh order in it, whatever dimensions they cut. */
static bool same_block(const coalescer *c, uint32_t result, uint32_t input) {
  const ax_buffer *out = &c->plan->buffers[c->plan->out[result]], *in = &c->plan->buffers[c->plan->in[input]];
  return ax_same_shape(&out->type, &in->type) && same_storage(c->plan, out->allocation, c->plan->in[input]);
}

static bool result_fits(const coalescer *c, uint32_t result, uint32_t input) {
  uint32_t source = c->plan->buffers[c->plan->out[result]].allocation, target = c->plan->in[input];
  uint32_t writer = writer_of(c, source);
  return writer != AX_NONE && same_block(c, result, input) && in_place(c, writer, source, target) &&
         untouched(c, target, writer + 1, c->block->count);
}

static void give_input(coalescer *c, uint32_t result, uint32_t input, bool *taken) {
  unite(c, c->plan->buffers[c->plan->out[result]].allocation, c->plan->in[input]);
  taken[input] = true;
}

/* The operation that writes the result reads a donated input of its kind: most often its old value. */
static bool give_own_input(coalescer *c, uint32_t result, bool *taken) {
  uint32_t writer = writer_of(c, c->plan->buffers[c->plan->out[result]].allocation);
  if (writer == AX_NONE || c->block->ops[writer].kind != AX_OP_KERNEL) return false;
  const ax_op *op = &c->block->ops[writer];
  for (uint32_t i = 0; i < op->kernel.kernel->slot_count; i++) {
    const ax_buffer *allocation = &c->plan->buffers[c->plan->buffers[op->kernel.buffers[i]].allocation];
    if (allocation->kind != AX_BUFFER_INPUT || !c->donate[allocation->index] || taken[allocation->index] ||
        !result_fits(c, result, allocation->index))
      continue;
    give_input(c, result, allocation->index, taken);
    return true;
  }
  return false;
}

/* The others: results and inputs, sorted by layout and then by when they are written and last touched, so that a result finds those
   that are free by then on top of a stack. */
typedef struct candidate {
  uint64_t layout;
  uint32_t position, index;
  bool is_input;
} candidate;

static int by_layout(const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->layout != b->layout) return a->layout < b->layout ? -1 : 1;
  if (a->position != b->position) return a->position < b->position ? -1 : 1;
  if (a->is_input != b->is_input) return a->is_input ? 1 : -1; /* touched by the very operation: not free yet */
  return a->index < b->index ? -1 : a->index > b->index;
}

static candidate candidate_of(const coalescer *c, uint32_t buffer, uint32_t position, uint32_t index, bool is_input) {
  const ax_buffer *b = &c->plan->buffers[buffer];
  uint64_t layout = ax_hash_bytes(AX_HASH_SEED, b->type.dims, b->type.rank * sizeof b->type.dims[0]);
  layout = ax_hash_bytes(layout, &b->type.dtype, sizeof b->type.dtype);
  layout = ax_hash_bytes(layout, &b->axes, sizeof b->axes);
  return (candidate){layout, position, index, is_input};
}

static uint32_t list_candidates(const coalescer *c, candidate *list, const bool *taken, const bool *placed) {
  const ax_plan *plan = c->plan;
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->in_count; i++) {
    uint32_t after = 0; /* its last touch */
    if (!c->donate[i] || taken[i]) continue;
    for (uint32_t t = c->first[plan->in[i]]; t != AX_NONE; t = c->touches[t].next)
      if (c->touches[t].op + 1 > after) after = c->touches[t].op + 1;
    list[count++] = candidate_of(c, plan->in[i], after, i, true);
  }
  for (uint32_t k = 0; k < plan->out_count; k++) {
    uint32_t writer = writer_of(c, plan->buffers[plan->out[k]].allocation);
    if (writer != AX_NONE && !placed[k]) list[count++] = candidate_of(c, plan->out[k], writer + 1, k, false);
  }
  return count;
}

static void give_free_inputs(coalescer *c, candidate *list, uint32_t count, bool *taken) {
  uint32_t free_count = 0; /* the stack: the list's beginning, which has been read */
  qsort(list, count, sizeof list[0], by_layout);
  for (uint32_t i = 0; i < count; i++) {
    candidate one = list[i];
    if (free_count > 0 && list[free_count - 1].layout != one.layout) free_count = 0;
    if (one.is_input) list[free_count++] = one;
    else if (free_count > 0 && result_fits(c, one.index, list[free_count - 1].index))
      give_input(c, one.index, list[--free_count].index, taken);
  }
}

static ax_status place_donations(coalescer *c) {
  ax_plan *plan = c->plan;
  bool *taken = ax_arena_alloc(&c->scratch, plan->in_count), *placed = ax_arena_alloc(&c->scratch, plan->out_count);
  candidate *list = ax_arena_alloc(&c->scratch, ((size_t)plan->in_count + plan->out_count) * sizeof list[0]);
  if (taken == NULL || placed == NULL || list == NULL) return ax_out_of_memory(plan->in_count);
  AX_TRY(list_block(c, &plan->block));
  for (uint32_t k = 0; k < plan->out_count; k++) { /* updated in place */
    const ax_buffer *allocation = &plan->buffers[plan->buffers[plan->out[k]].allocation];
    if (allocation->kind == AX_BUFFER_INPUT) taken[allocation->index] = true;
  }
  for (uint32_t k = 0; k < plan->out_count; k++) placed[k] = give_own_input(c, k, taken);
  give_free_inputs(c, list, list_candidates(c, list, taken, placed), taken);
  return AX_OK;
}

/* --- Carries --- */

static bool copies_carry(const coalescer *c, uint32_t at, uint32_t *source, uint32_t *target) {
  uint32_t end = c->block->count;
  if (!ax_op_copies_all(&c->block->ops[at], target, source)) return false;
  const ax_buffer *view = &c->plan->buffers[*source];
  if (view->offset == 0 && view->loop == AX_NONE)
    *source = view->allocation; /* under another shape; of less than all storage is not the same */
  if (!same_storage(c->plan, *source, *target)) return false;
  if (c->plan->buffers[*target].allocation != *target || *source == *target) return false;
  if (!untouched(c, *source, at + 1, end) && touched(c, *target, at + 1, end).writes)
    return false; /* from here on they differ: the start of an inner loop's carry, say */
  uint32_t writer = writer_of(c, *source);
  return writer != AX_NONE && writer < at && in_place(c, writer, *source, *target) && untouched(c, *target, writer + 1, at);
}

/* The copy at `at` is not one any more. */
static void forget_copy(coalescer *c, uint32_t allocation, uint32_t at) {
  for (uint32_t *link = &c->first[allocation]; *link != AX_NONE;) {
    if (c->touches[*link].op == at) *link = c->touches[*link].next;
    else link = &c->touches[*link].next;
  }
}

static ax_status place_body(void *context, ax_block *body, bool is_body) {
  coalescer *c = context;
  if (!is_body) return AX_OK;
  AX_TRY(list_block(c, body));
  for (uint32_t i = 0; i < body->count; i++) {
    uint32_t source, target;
    if (!copies_carry(c, i, &source, &target)) continue;
    forget_copy(c, source, i);
    forget_copy(c, target, i);
    unite(c, source, target);
    body->ops[i].kind = AX_OP_NONE;
  }
  ax_block_sweep(body);
  for (uint32_t i = 0; i < body->count; i++) ax_op_visit_all(&body->ops[i], clear_touch, c);
  return AX_OK;
}

static ax_status list_views(coalescer *c) {
  const ax_plan *plan = c->plan;
  uint32_t count = plan->buffer_count;
  uint32_t *reads = ax_arena_alloc(&c->scratch, count * sizeof reads[0]);
  c->writes = ax_arena_alloc(&c->scratch, count * sizeof c->writes[0]);
  c->view = ax_arena_alloc(&c->scratch, count * sizeof c->view[0]);
  c->next_view = ax_arena_alloc(&c->scratch, count * sizeof c->next_view[0]);
  c->first = ax_arena_alloc(&c->scratch, count * sizeof c->first[0]);
  if (reads == NULL || c->writes == NULL || c->view == NULL || c->next_view == NULL || c->first == NULL)
    return ax_out_of_memory(count * sizeof reads[0]);
  memset(c->view, 0xff, count * sizeof c->view[0]);
  memset(c->first, 0xff, count * sizeof c->first[0]);
  for (uint32_t i = 0; i < count; i++) {
    c->next_view[i] = c->view[plan->buffers[i].allocation];
    c->view[plan->buffers[i].allocation] = i;
  }
  ax_plan_count(plan, reads, c->writes);
  return AX_OK;
}

static ax_status coalesce(coalescer *c) {
  AX_TRY(list_views(c));
  AX_TRY(ax_blocks_visit(&c->plan->block, place_body, c));
  return c->donate != NULL ? place_donations(c) : AX_OK;
}

ax_status ax_plan_coalesce(ax_plan *plan) {
  coalescer c = {.plan = plan, .donate = plan->donate};
  ax_status status = coalesce(&c);
  ax_arena_deinit(&c.scratch);
  ax_free(c.touches);
  return status;
}
