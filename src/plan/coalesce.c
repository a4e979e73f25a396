/* Values written straight to the place where they are needed, without a copy:

     a result   into the memory of a donated input that is not needed any more    (w - 0.1 g into w)
     a carry    at the end of a loop's body, into the carry's buffer              (c = f(c))
     a case's   into the branch's result                                          (s = a with a[i] = x)

   `source` may live in `target`'s memory if the one operation that writes source comes after every other use of target, or uses
   target itself only element by element at the places it writes. Synchronisation is derived later, on allocations, so it makes
   devices wait for other devices' uses of the target. The writer may be a branch: then that must hold in each of its cases, and a case that
   leaves the old value as it is has nothing to do (coalesce_cases.c). Carries and results come first, and then what is a case's own, since
   a value in the carry's place may keep that one from being the carry's.

   What an exchange brings is written by other devices, which do not wait for this one's uses of the target by themselves. It may be made in
   a carry's place if an exchange among all who share that memory or write to it lies in between (others change places with the carry:
   alternate.c). Not in loops inside others:

     s = gather(f(c)), c = gather(g(s))      who puts a part of c has read s, to which all have put their parts, and so have read c

   Questions about an allocation are answered from the list of its touches in the current block. Each allocation's views are
   listed, so uniting two allocations costs as much as they have views, whatever the size of the plan. */
#include <stdlib.h>
#include <string.h>

#include "plan/coalesce.h"
#include "plan/op.h"
#include "plan/passes.h"

typedef struct touch { /* of an allocation by an operation of the block, or inside one */
  uint32_t op, next, visits;
  bool reads, writes;
} touch;

typedef struct coalescer {
  ax_plan *plan;
  const bool *donate; /* the plan's */
  ax_arena scratch;
  const ax_cases **cases; /* by operation of the block: what the cases of a branch touch; NULL: not looked at */
  uint32_t *joined, case_number; /* by allocation: the last case, of those that are looked at, in which another was united with it */
  bool *exchanged;        /* by allocation: other devices read it or write to it */
  bool idle_copies;       /* something is copied to the place where it is, perhaps */
  uint32_t *reads, *writes;    /* by allocation: see ax_plan_count */
  uint32_t *view, *next_view;  /* by allocation, its first buffer; by buffer, the allocation's next one; AX_NONE */
  const ax_block *block;       /* the one whose touches are listed */
  uint32_t *first;             /* by allocation: one of its touches in the block; AX_NONE */
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
  c->touches[*first].visits++;
  if (writes) c->touches[*first].writes = true;
  else c->touches[*first].reads = true;
}

static void clear_touch(void *context, uint32_t buffer, bool writes) {
  coalescer *c = context;
  (void)writes;
  c->first[c->plan->buffers[buffer].allocation] = AX_NONE;
}

static void end_block(coalescer *c, ax_block *block) {
  ax_block_sweep(block);
  for (uint32_t i = 0; i < block->count; i++) ax_op_visit_all(&block->ops[i], clear_touch, c);
}

static ax_status list_block(coalescer *c, const ax_block *block) {
  c->block = block;
  c->touch_count = 0;
  c->cases = NULL;
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

/* From here on, source is target's memory. Its touches stand before target's in the list, which is in no order then. */
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
  c->exchanged[target] = c->exchanged[target] || c->exchanged[source];
  c->reads[target] += c->reads[source];
  c->writes[target] += c->writes[source];
  c->plan->buffers[target].updated = c->plan->buffers[target].updated || c->plan->buffers[source].updated;
  c->writes[source] = 2; /* not a buffer of its own any more */
}

/* --- Whether two may be one --- */

static bool same_storage(const ax_plan *plan, uint32_t a, uint32_t b) {
  const ax_buffer *x = &plan->buffers[a], *y = &plan->buffers[b];
  return x->axes == y->axes && x->type.dtype == y->type.dtype && ax_type_elems(&x->type) == ax_type_elems(&y->type);
}

/* All of its allocation's memory, perhaps as the parts of complex numbers. */
static bool is_whole(const ax_plan *plan, uint32_t buffer) {
  const ax_buffer *b = &plan->buffers[buffer];
  return b->offset == 0 && b->loop == AX_NONE && ax_buffer_bytes(b) == ax_buffer_bytes(&plan->buffers[b->allocation]);
}

static const ax_cases *cases_of(coalescer *c, const ax_op *branch) {
  return ax_cases_list(c->plan, branch->branch.blocks, branch->branch.count, &c->scratch);
}

/* What the cases of the branch at `at` touch. NULL: no memory; the status says so. */
static const ax_cases *cases_at(coalescer *c, uint32_t at) {
  if (c->cases == NULL) c->cases = ax_arena_alloc(&c->scratch, c->block->count * sizeof c->cases[0]);
  if (c->cases != NULL && c->cases[at] == NULL) c->cases[at] = cases_of(c, &c->block->ops[at]);
  const ax_cases *cases = c->cases != NULL ? c->cases[at] : NULL;
  if (cases == NULL && c->status == AX_OK) c->status = ax_out_of_memory(0);
  return cases;
}

/* The latest operation of the block that writes to `allocation`, if that is a temporary of its own; AX_NONE. */
static uint32_t last_write(const coalescer *c, uint32_t allocation) {
  const ax_buffer *buffer = &c->plan->buffers[allocation];
  if (buffer->kind != AX_BUFFER_TEMP || buffer->allocation != allocation) return AX_NONE;
  uint32_t last = AX_NONE;
  for (uint32_t i = c->first[allocation]; i != AX_NONE; i = c->touches[i].next)
    if (c->touches[i].writes && (last == AX_NONE || c->touches[i].op > last)) last = c->touches[i].op;
  return last;
}

/* A temporary that other operations than those of the block do not touch, and no other device: the first operation that touches it. It writes
   it, and what else it takes to make the value follows, as in zeros to which parts are written; so nothing is read of what the memory held
   before. (A loop may write it first and read it then.) AX_NONE: it is none such. */
static uint32_t first_of_several(const coalescer *c, uint32_t allocation) {
  uint32_t first = AX_NONE, visits = 0;
  if (c->exchanged[allocation]) return AX_NONE;
  for (uint32_t i = c->first[allocation]; i != AX_NONE; i = c->touches[i].next) {
    if (first == AX_NONE || c->touches[i].op < first) first = c->touches[i].op;
    visits += c->touches[i].visits;
  }
  const bool own = visits == c->reads[allocation] + c->writes[allocation];
  return own && touched(c, allocation, first, first + 1).writes ? first : AX_NONE;
}

/* The operation of the block that writes all of `allocation`, by one write or, as a branch, by one in each case; AX_NONE: there are several. */
static uint32_t writer_of(coalescer *c, uint32_t allocation, uint32_t last) {
  if (c->block->ops[last].kind != AX_OP_BRANCH)
    return c->writes[allocation] == 1 && ax_op_rules_of(&c->block->ops[last])->makes_results ? last : AX_NONE;
  const ax_cases *cases = c->exchanged[allocation] ? NULL : cases_at(c, last);
  return cases != NULL && ax_cases_writes(cases, allocation) == c->writes[allocation] ? last : AX_NONE;
}

/* The operation of the block from which on an allocation holds its value or parts of it: the one that writes it, or the first of several;
   AX_NONE. */
typedef struct beginning {
  uint32_t op;
  bool of_several;
} beginning;

static beginning begin_of(coalescer *c, uint32_t allocation) {
  const uint32_t last = last_write(c, allocation);
  if (last == AX_NONE) return (beginning){AX_NONE, false};
  const uint32_t writer = writer_of(c, allocation, last);
  if (writer != AX_NONE || c->writes[allocation] == 1) return (beginning){writer, false};
  return (beginning){first_of_several(c, allocation), true};
}

/* Operation `at`, which writes source, touches target only by loading, at each step, the element it then stores into source. */
static bool in_place(coalescer *c, uint32_t at, uint32_t source, uint32_t target) {
  const ax_op *op = &c->block->ops[at];
  if (op->kind == AX_OP_BRANCH) {
    const ax_cases *cases = c->exchanged[target] ? NULL : cases_at(c, at);
    return cases != NULL && ax_cases_in_place(cases, source, target, AX_NONE);
  }
  touch all = touched(c, target, at, at + 1);
  if (!all.reads && !all.writes) return true;
  return !all.writes && op->kind == AX_OP_KERNEL && ax_kernel_in_place(c->plan, op, source, target);
}

/* The value of source begins behind the uses of target, which nothing touches from then on to operation `end`; there it is whole. */
static bool begins_behind(coalescer *c, uint32_t source, uint32_t target, uint32_t end) {
  const beginning begin = begin_of(c, source);
  if (begin.op == AX_NONE || begin.op >= end) return false;
  if (begin.of_several && (c->exchanged[target] || touched(c, source, end, c->block->count).writes)) return false;
  return in_place(c, begin.op, source, target) && untouched(c, target, begin.op + 1, end);
}

/* --- Donations --- */

/* One memory does for both when the blocks have one shape: they are in mesh order in it, whatever dimensions they cut. */
static bool same_block(const coalescer *c, uint32_t result, uint32_t input) {
  const ax_buffer *out = &c->plan->buffers[c->plan->out[result]], *in = &c->plan->buffers[c->plan->in[input]];
  return ax_same_shape(&out->type, &in->type) && same_storage(c->plan, out->allocation, c->plan->in[input]);
}

static bool result_fits(coalescer *c, uint32_t result, uint32_t input) {
  uint32_t source = c->plan->buffers[c->plan->out[result]].allocation, target = c->plan->in[input];
  return same_block(c, result, input) && begins_behind(c, source, target, c->block->count);
}

/* Where a branch makes source, some of its cases may be copies of target to itself, once both are one; so is a copy of target with which the
   value of source begins, as the start of a loop inside. */
static void note_begin(coalescer *c, uint32_t source) {
  uint32_t to, from;
  const uint32_t begin = begin_of(c, source).op;
  if (begin == AX_NONE) return;
  c->idle_copies = c->idle_copies || c->block->ops[begin].kind == AX_OP_BRANCH || ax_op_copies_all(&c->block->ops[begin], &to, &from);
}

static void give_input(coalescer *c, uint32_t result, uint32_t input, bool *taken) {
  const uint32_t source = c->plan->buffers[c->plan->out[result]].allocation;
  note_begin(c, source);
  unite(c, source, c->plan->in[input]);
  taken[input] = true;
}

/* The kernel, which writes the result, reads a donated input of its kind: most often its old value. */
static bool give_read_input(coalescer *c, const ax_op *kernel, uint32_t result, bool *taken) {
  for (uint32_t i = 0; kernel->kind == AX_OP_KERNEL && i < kernel->kernel.kernel->slot_count; i++) {
    const ax_buffer *allocation = &c->plan->buffers[c->plan->buffers[kernel->kernel.buffers[i]].allocation];
    if (allocation->kind != AX_BUFFER_INPUT || !c->donate[allocation->index] || taken[allocation->index] ||
        !result_fits(c, result, allocation->index))
      continue;
    give_input(c, result, allocation->index, taken);
    return true;
  }
  return false;
}

static bool give_own_input(coalescer *c, uint32_t result, bool *taken) {
  const uint32_t source = c->plan->buffers[c->plan->out[result]].allocation, begin = begin_of(c, source).op;
  if (begin == AX_NONE) return false;
  const ax_op *op = &c->block->ops[begin];
  if (op->kind != AX_OP_BRANCH) return give_read_input(c, op, result, taken);
  const ax_cases *cases = cases_at(c, begin);
  for (uint32_t k = 0; cases != NULL && k < op->branch.count; k++) {
    const ax_op *first = ax_cases_first(cases, source, k);
    if (first != NULL && give_read_input(c, first, result, taken)) return true;
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

static uint32_t list_candidates(coalescer *c, candidate *list, const bool *taken, const bool *placed) {
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
    const uint32_t begin = begin_of(c, plan->buffers[plan->out[k]].allocation).op;
    if (begin != AX_NONE && !placed[k]) list[count++] = candidate_of(c, plan->out[k], begin + 1, k, false);
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
  end_block(c, &plan->block);
  return AX_OK;
}

/* --- Carries --- */

/* The exchange of the block that writes all of `allocation`; AX_NONE. */
static uint32_t exchange_of(const coalescer *c, uint32_t allocation) {
  const uint32_t at = last_write(c, allocation);
  if (at == AX_NONE || c->writes[allocation] != 1) return AX_NONE;
  const ax_op *op = &c->block->ops[at];
  return op->kind == AX_OP_START && is_whole(c->plan, op->exchange->out) ? at : AX_NONE;
}

/* Each device along the axes reads, before operation `end`, what the exchange that starts at `start` has brought: so it has waited for all
   others along them to put their parts. */
static bool meets(const coalescer *c, uint32_t start, uint32_t end, ax_axis_set axes) {
  const ax_exchange *x = c->block->ops[start].exchange;
  if (x->peers == AX_PEERS_PAIRS || x->alone || x->names.groups.count > 0 || (axes & ~x->axes) != 0) return false;
  for (uint32_t i = c->first[c->plan->buffers[x->out].allocation]; i != AX_NONE; i = c->touches[i].next) {
    const ax_op *op = &c->block->ops[c->touches[i].op];
    const bool between = c->touches[i].op > start && c->touches[i].op < end;
    if (between && c->touches[i].reads && ax_op_rules_of(op)->makes_results && (axes & ~op->axes) == 0) return true;
  }
  return false;
}

/* The last use of `allocation` before the exchange `at` is by operations of each device alone, and then all who share it meet, with all
   who are to write to it. */
static bool met_since_used(const coalescer *c, uint32_t allocation, uint32_t at) {
  const ax_axis_set sharing = ax_all_axes(&c->plan->mesh) & ~c->plan->buffers[allocation].axes;
  const ax_axis_set axes = sharing | c->block->ops[at].exchange->axes;
  uint32_t used = 0; /* behind its last use */
  for (uint32_t i = c->first[allocation]; i != AX_NONE; i = c->touches[i].next) {
    const uint32_t op = c->touches[i].op;
    if (op >= at) continue;
    if (!ax_op_rules_of(&c->block->ops[op])->makes_results) return false;
    if (op + 1 > used) used = op + 1;
  }
  for (uint32_t i = used; i < at; i++)
    if (c->block->ops[i].kind == AX_OP_START && meets(c, i, at, axes)) return true;
  return false;
}

/* The block is the body of a loop that is gone through once. In a loop around it the carry would get its first value again, and a device
   that has not read what others put there last would not wait for them. */
static bool is_outermost(const coalescer *c) {
  const ax_block *block = &c->plan->block;
  for (uint32_t i = 0; i < block->count; i++)
    if (block->ops[i].kind == AX_OP_LOOP && &block->ops[i].loop.body == c->block) return true;
  return false;
}

static bool copies_carry(coalescer *c, uint32_t at, uint32_t *source, uint32_t *target) {
  uint32_t end = c->block->count;
  if (!ax_op_copies_all(&c->block->ops[at], target, source)) return false;
  const ax_buffer *view = &c->plan->buffers[*source];
  if (view->offset == 0 && view->loop == AX_NONE)
    *source = view->allocation; /* under another shape; of less than all storage is not the same */
  if (is_whole(c->plan, *target)) *target = c->plan->buffers[*target].allocation; /* an outer loop's carry, say */
  if (!same_storage(c->plan, *source, *target)) return false;
  if (c->plan->buffers[*target].allocation != *target || *source == *target) return false;
  if (!untouched(c, *source, at + 1, end) && touched(c, *target, at + 1, end).writes)
    return false; /* from here on they differ: the start of an inner loop's carry, say */
  const uint32_t exchange = exchange_of(c, *source);
  if (exchange != AX_NONE)
    return exchange < at && untouched(c, *target, exchange, at) && met_since_used(c, *target, exchange) && is_outermost(c);
  return begins_behind(c, *source, *target, at);
}

static void forget_touch(coalescer *c, uint32_t allocation, uint32_t at) {
  for (uint32_t *link = &c->first[allocation]; *link != AX_NONE;) {
    if (c->touches[*link].op == at) *link = c->touches[*link].next;
    else link = &c->touches[*link].next;
  }
}

/* The copy at `at` is none any more. */
static void drop_copy(coalescer *c, ax_block *block, uint32_t at, uint32_t source, uint32_t target) {
  forget_touch(c, source, at);
  forget_touch(c, target, at);
  c->reads[source]--;
  c->writes[target]--;
  unite(c, source, target);
  block->ops[at].kind = AX_OP_NONE;
}

static ax_status place_body(void *context, ax_block *body, bool is_body) {
  coalescer *c = context;
  if (!is_body) return AX_OK;
  AX_TRY(list_block(c, body));
  for (uint32_t i = 0; i < body->count; i++) {
    uint32_t source, target;
    if (!copies_carry(c, i, &source, &target)) continue;
    note_begin(c, source);
    drop_copy(c, body, i, source, target);
  }
  end_block(c, body);
  return c->status;
}

/* --- Cases --- */

/* The copy of a value that is the case's own, which may be made in the place of the copy. *own: what the case touches; NULL: not known yet. */
static bool copies_own(coalescer *c, uint32_t at, uint32_t *source, uint32_t *target, const ax_cases **own) {
  const ax_plan *plan = c->plan;
  if (!ax_op_copies_all(&c->block->ops[at], target, source) || !is_whole(plan, *source) || !is_whole(plan, *target)) return false;
  *source = plan->buffers[*source].allocation;
  *target = plan->buffers[*target].allocation;
  if (*source == *target || plan->buffers[*source].kind != AX_BUFFER_TEMP || plan->buffers[*target].kind == AX_BUFFER_CONST) return false;
  if (c->joined[*target] == c->case_number || c->joined[*source] == c->case_number) return false; /* what the list says of them holds no more */
  if (c->exchanged[*source] || c->exchanged[*target]) return false; /* the copy waits for other devices: no other operation of the case does */
  if (!same_storage(plan, *source, *target) || !untouched(c, *source, at + 1, c->block->count)) return false;
  uint32_t visits = 0;
  for (uint32_t i = c->first[*source]; i != AX_NONE; i = c->touches[i].next) visits += c->touches[i].visits;
  if (visits != c->reads[*source] + c->writes[*source]) return false;
  if (untouched(c, *target, 0, at)) return true;
  if (!untouched(c, *target, at + 1, c->block->count)) return false;
  if (*own == NULL) *own = ax_cases_list(plan, c->block, 1, &c->scratch);
  if (*own == NULL) c->status = ax_out_of_memory(0);
  return *own != NULL && ax_cases_in_place(*own, *source, *target, at);
}

static ax_status place_case(void *context, ax_block *block, bool is_body) {
  coalescer *c = context;
  const ax_cases *own = NULL;
  if (is_body || block == &c->plan->block) return AX_OK;
  AX_TRY(list_block(c, block));
  c->case_number++;
  for (uint32_t i = 0; i < block->count; i++) {
    uint32_t source, target;
    if (!copies_own(c, i, &source, &target, &own)) continue;
    drop_copy(c, block, i, source, target);
    c->joined[target] = c->case_number;
    c->idle_copies = true;
  }
  end_block(c, block);
  return c->status;
}

static void note_exchanged(void *context, uint32_t buffer, bool writes) {
  coalescer *c = context;
  (void)writes;
  c->exchanged[c->plan->buffers[buffer].allocation] = true;
}

static ax_status note_exchanges(void *context, ax_block *block, bool is_body) {
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    const ax_op_rules *rules = ax_op_rules_of(&block->ops[i]);
    if (rules->is_exchange || rules->is_message || rules->waits) ax_op_visit(&block->ops[i], note_exchanged, context);
  }
  return AX_OK;
}

static ax_status list_views(coalescer *c) {
  const ax_plan *plan = c->plan;
  uint32_t count = plan->buffer_count;
  c->reads = ax_arena_alloc(&c->scratch, count * sizeof c->reads[0]);
  c->writes = ax_arena_alloc(&c->scratch, count * sizeof c->writes[0]);
  c->joined = ax_arena_alloc(&c->scratch, count * sizeof c->joined[0]);
  c->view = ax_arena_alloc(&c->scratch, count * sizeof c->view[0]);
  c->next_view = ax_arena_alloc(&c->scratch, count * sizeof c->next_view[0]);
  c->first = ax_arena_alloc(&c->scratch, count * sizeof c->first[0]);
  c->exchanged = ax_arena_alloc(&c->scratch, count * sizeof c->exchanged[0]);
  if (c->exchanged == NULL || c->reads == NULL || c->writes == NULL || c->joined == NULL || c->view == NULL || c->next_view == NULL || c->first == NULL)
    return ax_out_of_memory(count * sizeof c->reads[0]);
  memset(c->view, 0xff, count * sizeof c->view[0]);
  memset(c->first, 0xff, count * sizeof c->first[0]);
  for (uint32_t i = 0; i < count; i++) {
    c->next_view[i] = c->view[plan->buffers[i].allocation];
    c->view[plan->buffers[i].allocation] = i;
  }
  ax_plan_count(plan, c->reads, c->writes);
  return ax_blocks_visit(&c->plan->block, note_exchanges, c);
}

/* Drops copies of what is in its place already. */
static ax_status drop_copies(void *context, ax_block *block, bool is_body) {
  const coalescer *c = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    uint32_t to, from;
    if (!ax_op_copies_all(&block->ops[i], &to, &from)) continue;
    const ax_buffer *x = &c->plan->buffers[to], *y = &c->plan->buffers[from];
    if (x->allocation == y->allocation && x->offset == y->offset && x->loop == AX_NONE && y->loop == AX_NONE)
      block->ops[i].kind = AX_OP_NONE;
  }
  ax_block_sweep(block);
  return AX_OK;
}

static ax_status coalesce(coalescer *c) {
  AX_TRY(list_views(c));
  AX_TRY(ax_blocks_visit(&c->plan->block, place_body, c));
  if (c->donate != NULL) AX_TRY(place_donations(c));
  AX_TRY(ax_blocks_visit(&c->plan->block, place_case, c));
  return c->idle_copies ? ax_blocks_visit(&c->plan->block, drop_copies, c) : AX_OK;
}

ax_status ax_plan_coalesce(ax_plan *plan) {
  coalescer c = {.plan = plan, .donate = plan->donate};
  ax_status status = coalesce(&c);
  ax_arena_deinit(&c.scratch);
  ax_free(c.touches);
  return status;
}
