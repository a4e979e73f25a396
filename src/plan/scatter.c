/* Sums into parts. A loop that gathers rows has this derivative: a table of zeros with one row in it, added to a sum.

     t = zeros;  t[i..] = row;  g = a + t            becomes            g = copy of a;  g[i..] = g[i..] + row

   So has one that gathers many rows, or elements, at once: what scatter_add makes of zeros is added to the sum one by one. Of
   several updates of one element each is rounded into the sum then, where they were added up first; a table that has fewer
   elements than there are updates is made, as it costs little.

   The pass update (plan/update.c) then works in a's memory, so the addition costs a row and not two tables. The rewrite leaves
   out adding 0.0 everywhere else, which changes nothing unless a has a -0.0 there. Therefore a must be a sum that began as
   zeros: the carry of a loop that starts as 0.0 and is replaced by sums of itself and other values, or such a sum. A sum of 0.0
   and other values is never -0.0. */
#include <string.h>

#include "plan/passes.h"

enum { near = 16, long_chain = 64 }; /* operations between update and sum; sums in a loop's body */

typedef struct scatterer {
  ax_plan *plan;
  ax_arena scratch;
  uint32_t *reads, *writes;         /* by allocation */
  bool *zeros;                      /* by allocation: 0.0 everywhere and never anything else */
  bool *sums;                       /* by allocation: a rewritten sum */
  uint32_t *from, *again;           /* by allocation: the allocations that were copied to it, whole, first and last; AX_NONE */
  ax_block *block;                  /* the body at hand, and in it, by allocation: */
  uint32_t *first_write, *last_write;
  uint32_t *listed, listed_count;   /* allocations that have them */
  uint32_t op;
} scatterer;

static uint32_t allocation_of(const scatterer *s, uint32_t buffer) { return s->plan->buffers[buffer].allocation; }

/* A buffer that is an allocation. */
static bool is_own(const scatterer *s, uint32_t buffer) {
  return s->plan->buffers[buffer].kind == AX_BUFFER_TEMP && allocation_of(s, buffer) == buffer;
}

/* --- Kinds of operations --- */

/* A kernel that computes all of an array, one element a step, by so many nodes. */
static bool stores_all(const ax_op *op, uint32_t exprs) {
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op)) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  return kernel->store_count == 1 && kernel->expr_count == exprs && kernel->reduce_rank == 0 &&
         kernel->stores[0].reduce == AX_SCALAR_NONE && ax_kernel_covers(kernel, kernel->stores[0].slot, kernel->stores[0].at);
}

static uint32_t stored(const ax_op *op) { return op->kernel.buffers[op->kernel.kernel->stores[0].slot]; }

static bool is_zeros(const ax_op *op) {
  return stores_all(op, 1) && op->kernel.kernel->exprs[0].op == AX_LEAF_CONST && op->kernel.kernel->exprs[0].imm == 0;
}

/* out = x + y, element by element. */
static bool adds(const ax_op *op, uint32_t *x, uint32_t *y) {
  if (!stores_all(op, 3)) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  const ax_expr *sum = &kernel->exprs[kernel->stores[0].expr];
  if (sum->op != AX_SCALAR_ADD) return false;
  for (int k = 0; k < 2; k++) {
    const ax_expr *load = &kernel->exprs[sum->arg[k]];
    if (load->op != AX_LEAF_LOAD || !ax_kernel_covers(kernel, load->slot, load->at)) return false;
    *(k == 0 ? x : y) = op->kernel.buffers[load->slot];
  }
  return true;
}

/* --- Facts about allocations --- */

static void look_at(void *context, ax_op *op) {
  scatterer *s = context;
  uint32_t to, from;
  if (is_zeros(op) && is_own(s, stored(op)) && s->writes[stored(op)] == 1) s->zeros[stored(op)] = true;
  if (!ax_op_copies_all(op, &to, &from) || !is_own(s, to)) return;
  if (s->from[to] == AX_NONE) s->from[to] = allocation_of(s, from);
  s->again[to] = allocation_of(s, from);
}

static void note_write(void *context, uint32_t buffer, bool writes) {
  scatterer *s = context;
  uint32_t allocation = allocation_of(s, buffer);
  if (!writes) return;
  if (s->first_write[allocation] == AX_NONE) {
    s->first_write[allocation] = s->op;
    s->listed[s->listed_count++] = allocation;
  }
  s->last_write[allocation] = s->op;
}

/* Sums lead from the carry back to it. */
static bool replaced_by_sum(const scatterer *s, uint32_t carry) {
  uint32_t allocation = s->again[carry], x, y;
  for (int i = 0; i < long_chain && allocation != carry && !s->sums[allocation]; i++) {
    if (s->writes[allocation] != 1 || s->first_write[allocation] == AX_NONE) return false; /* not written in this body */
    assert(s->last_write[allocation] < s->block->count);
    const ax_op *op = &s->block->ops[s->last_write[allocation]];
    if (op->kind != AX_OP_KERNEL) return false;
    if (adds(op, &x, &y) && allocation_of(s, stored(op)) == allocation)
      allocation = allocation_of(s, y) == carry ? carry : allocation_of(s, x);
    else return false;
  }
  return allocation == carry || s->sums[allocation];
}

static bool began_as_zeros(const scatterer *s, uint32_t buffer) {
  uint32_t allocation = allocation_of(s, buffer);
  if (s->sums[allocation]) return true;
  return is_own(s, allocation) && s->writes[allocation] == 2 && s->from[allocation] != AX_NONE && s->zeros[s->from[allocation]] &&
         replaced_by_sum(s, allocation);
}

/* --- Rewriting --- */

typedef struct watch { /* whether an operation writes what another reads */
  const scatterer *s;
  const ax_op *reader;
  uint32_t base;   /* an allocation that it must not write either */
  uint32_t writes; /* the allocation at hand, which an operation between writes */
  bool written;
} watch;

static void compare_one(void *context, uint32_t buffer, bool writes) {
  watch *w = context;
  (void)writes;
  w->written = w->written || allocation_of(w->s, buffer) == w->writes;
}

static void watch_one(void *context, uint32_t buffer, bool writes) {
  watch *w = context;
  if (!writes) return;
  w->writes = allocation_of(w->s, buffer);
  w->written = w->written || w->writes == w->base;
  ax_op_visit(w->reader, compare_one, w);
}

/* Whether no operation between the update and the sum writes the base or the update's operands. */
static bool may_move(const scatterer *s, uint32_t update, uint32_t sum, uint32_t base) {
  watch w = {.s = s, .reader = &s->block->ops[update], .base = allocation_of(s, base)};
  for (uint32_t i = update + 1; i < sum && !w.written; i++) {
    ax_op *op = &s->block->ops[i];
    if (ax_op_block(op, 0) != NULL) return false;
    ax_op_visit(op, watch_one, &w);
  }
  return !w.written;
}

/* A kernel that stores a part of the table, or a routine that adds to elements of it. */
static bool writes_part(const scatterer *s, const ax_op *update, uint32_t table) {
  if (update->kind == AX_OP_ROUTINE) {
    const ax_routine *routine = update->routine;
    int64_t most = 0; /* elements of what it reads */
    for (uint32_t k = 0; k < routine->in_count; k++)
      most = ax_most(most, ax_type_elems(&s->plan->buffers[routine->buffers[k]].type));
    if (most > ax_type_elems(&s->plan->buffers[table].type)) return false;
    return routine->adds && routine->updates && routine->out_count == 1 && routine->buffers[routine->in_count] == table &&
           s->reads[table] == 2;
  }
  if (update->kind != AX_OP_KERNEL || ax_op_is_ordered(update) || update->kernel.kernel->store_count != 1) return false;
  const ax_loop_kernel *kernel = update->kernel.kernel;
  return kernel->reduce_rank == 0 && kernel->stores[0].reduce == AX_SCALAR_NONE && stored(update) == table && s->reads[table] == 1;
}

/* Whether the view is all of its allocation, of the same dtype, perhaps under other dimensions. */
static bool is_reshaped(const scatterer *s, uint32_t view) {
  return ax_is_whole(s->plan, view) && s->plan->buffers[view].type.dtype == s->plan->buffers[allocation_of(s, view)].type.dtype;
}

/* The memory of `sum` under the table's dimensions. */
static ax_status seen_as(scatterer *s, uint32_t sum, uint32_t table, uint32_t *out) {
  const ax_type *type = &s->plan->buffers[table].type;
  *out = sum;
  if (ax_same_shape(type, &s->plan->buffers[sum].type)) return AX_OK;
  ax_buffer view = s->plan->buffers[sum];
  view.type = *type;
  return ax_plan_add_buffer(s->plan, &view, out);
}

/* Whether the table that the sum at `at` adds to `base` is zeros with one part written. *made, *updated: the operations that do
   so. */
static bool is_part_in_zeros(const scatterer *s, uint32_t table, uint32_t at, uint32_t *made, uint32_t *updated) {
  uint32_t to, from;
  if (!is_own(s, table) || s->writes[table] != 2 || s->first_write[table] == AX_NONE) return false;
  *made = s->first_write[table];
  *updated = s->last_write[table];
  if (*made >= *updated || *updated >= at || at - *updated > near) return false;
  if (!ax_op_copies_all(&s->block->ops[*made], &to, &from) || to != table || !s->zeros[allocation_of(s, from)]) return false;
  return writes_part(s, &s->block->ops[*updated], table);
}

static ax_status make_copy(scatterer *s, ax_op *op, uint32_t to, uint32_t from) {
  const ax_type *type = &s->plan->buffers[to].type;
  ax_loop_kernel *kernel = ax_kernel_create(&s->plan->arena, type->rank, 0, type->dims);
  const uint32_t buffers[] = {from, to};
  op->kernel.kernel = kernel;
  op->kernel.buffers = ax_arena_copy(&s->plan->arena, buffers, sizeof buffers);
  if (kernel == NULL || op->kernel.buffers == NULL) return ax_out_of_memory(sizeof *kernel);
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type->rank);
  uint32_t source = ax_kernel_slot(kernel, type->dtype, type->rank, type->dims),
           target = ax_kernel_slot(kernel, type->dtype, type->rank, type->dims);
  ax_kernel_store(kernel, target, at, ax_kernel_load(kernel, source, at), AX_SCALAR_NONE);
  return kernel->failed ? ax_out_of_memory(sizeof *kernel) : AX_OK;
}

/* The kernel stores its part in `sum` instead, added to what is there. */
static ax_status add_to_old(const scatterer *s, ax_op *part, uint32_t sum) {
  ax_loop_kernel *kernel = ax_kernel_copy(&s->plan->drafts, part->kernel.kernel); /* the other may be at work elsewhere too */
  if (kernel == NULL) return ax_out_of_memory(sizeof *kernel);
  part->kernel.kernel = kernel;
  ax_store *store = &kernel->stores[0];
  part->kernel.buffers[store->slot] = sum;
  ax_ex old = ax_kernel_load(kernel, store->slot, store->at);
  store->expr = ax_kernel_op(kernel, AX_SCALAR_ADD, kernel->slots[store->slot].dtype, old, store->expr, AX_NONE);
  return kernel->failed ? ax_out_of_memory(sizeof *kernel) : AX_OK;
}

static ax_status retarget_routine(const scatterer *s, ax_op *part, uint32_t sum) {
  part->routine = ax_routine_copy(&s->plan->arena, part->routine);
  if (part->routine == NULL) return ax_out_of_memory(sizeof *part->routine);
  part->routine->buffers[part->routine->in_count] = sum;
  return AX_OK;
}

/* sum = base + table becomes sum = copy of base where the table was updated, and the part added to the sum where that was
   computed. */
static ax_status rewrite(scatterer *s, uint32_t made, uint32_t updated, uint32_t at, uint32_t base) {
  ax_op *ops = s->block->ops, part = ops[updated];
  const ax_loop_kernel *copy = ops[made].kernel.kernel;
  uint32_t sum = stored(&ops[at]), zeros = allocation_of(s, ops[made].kernel.buffers[copy->exprs[0].slot]);
  uint32_t seen;
  AX_TRY(seen_as(s, sum, s->plan->buffers[stored(&ops[made])].allocation, &seen));
  ops[updated] = ops[at];
  AX_TRY(make_copy(s, &ops[updated], sum, base));
  AX_TRY(part.kind == AX_OP_ROUTINE ? retarget_routine(s, &part, seen) : add_to_old(s, &part, seen));
  ops[at] = part;
  ops[made].kind = AX_OP_NONE;
  s->sums[sum] = true;
  s->writes[sum] = 2;
  uint32_t filled = s->first_write[zeros];
  if (--s->reads[zeros] == 0 && filled != AX_NONE && is_zeros(&ops[filled])) ops[filled].kind = AX_OP_NONE;
  return AX_OK;
}

static ax_status look_at_sum(scatterer *s, uint32_t at) {
  const ax_op *op = &s->block->ops[at];
  uint32_t in[2], made, updated;
  if (!adds(op, &in[0], &in[1]) || !is_own(s, stored(op)) || s->writes[stored(op)] != 1) return AX_OK;
  for (int k = 0; k < 2; k++) {
    uint32_t base = in[k], table = allocation_of(s, in[1 - k]);
    if (!ax_same_shape(&s->plan->buffers[base].type, &s->plan->buffers[stored(op)].type)) continue;
    if (!is_reshaped(s, in[1 - k]) || !is_part_in_zeros(s, table, at, &made, &updated) || !began_as_zeros(s, base)) continue;
    if (op->axes != s->block->ops[updated].axes || s->plan->buffers[table].axes != s->plan->buffers[stored(op)].axes) continue;
    if (may_move(s, updated, at, base)) return rewrite(s, made, updated, at, base);
  }
  return AX_OK;
}

static ax_status scatter_body(void *context, ax_block *body, bool is_body) {
  scatterer *s = context;
  if (!is_body) return AX_OK;
  s->block = body;
  for (s->op = 0; s->op < body->count; s->op++) ax_op_visit_all(&body->ops[s->op], note_write, s);
  for (uint32_t i = 0; i < body->count; i++) AX_TRY(look_at_sum(s, i));
  while (s->listed_count > 0) s->first_write[s->listed[--s->listed_count]] = AX_NONE;
  ax_block_sweep(body);
  return AX_OK;
}

static ax_status scatter(scatterer *s) {
  ax_plan *plan = s->plan;
  size_t count = plan->buffer_count;
  uint32_t **tables[] = {&s->reads, &s->writes, &s->from, &s->again, &s->first_write, &s->last_write, &s->listed};
  for (size_t i = 0; i < AX_COUNT(tables); i++)
    if ((*tables[i] = ax_arena_alloc(&s->scratch, count * sizeof(uint32_t))) == NULL)
      return ax_out_of_memory(count * sizeof(uint32_t));
  s->zeros = ax_arena_alloc(&s->scratch, count);
  s->sums = ax_arena_alloc(&s->scratch, count);
  if (s->zeros == NULL || s->sums == NULL) return ax_out_of_memory(count);
  memset(s->from, 0xff, count * sizeof s->from[0]);
  memset(s->again, 0xff, count * sizeof s->again[0]);
  memset(s->first_write, 0xff, count * sizeof s->first_write[0]);
  ax_plan_count(plan, s->reads, s->writes);
  ax_block_walk(&plan->block, look_at, s);
  return ax_blocks_visit(&plan->block, scatter_body, s);
}

ax_status ax_plan_scatter(ax_plan *plan) {
  scatterer s = {.plan = plan};
  ax_status status = plan->buffer_count > 0 ? scatter(&s) : AX_OK;
  ax_arena_deinit(&s.scratch);
  return status;
}
