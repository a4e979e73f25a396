/* One copier does all of it: it copies nodes of one kernel into another under construction, with positions translated. Equal nodes
   are shared by the kernel's own builder. Inlining is a copy of the consumer in which a load becomes a copy of the producer; a
   merge is two copies into one; pruning is a copy of what the stores need. */
#include "loop/kernel_rewrite.h"

#include <string.h>

typedef struct copier {
  ax_arena *arena;
  const ax_bound *from;
  ax_bound *to;
  ax_ex *map;      /* of from's nodes; AX_NONE: not copied yet */
  const ax_at *at; /* from's loop index d is at[d] in terms of `to`; NULL: the same */
  bool failed;     /* a composition that one ax_at cannot express, or too large */
} copier;

/* A kernel without nodes over the index space of `like`, with room for the buffers of its slots. */
static ax_status start(ax_arena *arena, const ax_kernel *like, uint32_t reduce_rank, ax_bound *out) {
  out->kernel = ax_kernel_create(arena, like->rank, reduce_rank, like->dims);
  out->buffers = ax_arena_alloc(arena, AX_MOST_SLOTS * sizeof out->buffers[0]);
  return out->kernel != NULL && out->buffers != NULL ? AX_OK : ax_out_of_memory(0);
}

static ax_status start_copier(copier *c, ax_arena *arena, const ax_bound *from, ax_bound *to) {
  size_t bytes = (from->kernel->expr_count + 1) * sizeof c->map[0];
  *c = (copier){.arena = arena, .from = from, .to = to, .map = ax_arena_alloc(arena, bytes)};
  if (c->map == NULL) return ax_out_of_memory(bytes);
  memset(c->map, 0xff, bytes);
  return AX_OK;
}

/* The slot of `to` for the buffer of from's slot. */
static uint32_t slot_for(copier *c, uint32_t from_slot) {
  ax_kernel *to = c->to->kernel;
  uint32_t buffer = c->from->buffers[from_slot];
  for (uint32_t i = 0; i < to->slot_count; i++)
    if (c->to->buffers[i] == buffer) return i;
  if (to->slot_count == AX_MOST_SLOTS) {
    c->failed = true;
    return 0;
  }
  const ax_slot *like = &c->from->kernel->slots[from_slot];
  uint32_t slot = ax_kernel_slot(to, like->dtype, like->rank, like->dims);
  if (!to->failed) c->to->buffers[slot] = buffer;
  return slot;
}

/* inner: in terms of from's loop -> in terms of to's. */
static ax_at compose(copier *c, ax_at inner) {
  if (inner.dynamic != AX_NONE) inner.dynamic = c->map[inner.dynamic];
  if (c->at == NULL || inner.dim < 0) return inner;
  ax_at outer = c->at[inner.dim];
  if (outer.dynamic != AX_NONE && (inner.dynamic != AX_NONE || inner.coef != 1)) c->failed = true;
  return (ax_at){.dim = outer.dim, .coef = inner.coef * outer.coef, .offset = inner.offset + inner.coef * outer.offset,
                 .dynamic = outer.dynamic != AX_NONE ? outer.dynamic : inner.dynamic,
                 .limit = outer.dynamic != AX_NONE ? outer.limit : inner.limit};
}

/* The loop index d of `from`, as an expression in `to`. */
static ax_ex index_expr(copier *c, uint32_t d) {
  ax_kernel *to = c->to->kernel;
  if (c->at == NULL) return ax_kernel_index(to, d);
  const ax_at *at = &c->at[d];
  if (at->dynamic != AX_NONE) {
    c->failed = true;
    return 0;
  }
  ax_ex offset = ax_kernel_const(to, AX_S64, at->offset);
  if (at->dim < 0) return offset;
  ax_ex index = ax_kernel_index(to, (uint32_t)at->dim);
  if (at->coef != 1) index = ax_kernel_op(to, AX_SCALAR_MUL, AX_S64, index, ax_kernel_const(to, AX_S64, at->coef), AX_NONE);
  return at->offset != 0 ? ax_kernel_op(to, AX_SCALAR_ADD, AX_S64, index, offset, AX_NONE) : index;
}

static ax_ex copy_one(copier *c, const ax_expr *expr) {
  ax_kernel *to = c->to->kernel;
  ax_at at[AX_MAX_RANK];
  ax_ex arg[3];
  switch (expr->op) {
    case AX_LEAF_LOAD: {
      uint32_t slot = slot_for(c, expr->slot);
      if (c->failed || to->failed) return 0;
      for (uint32_t d = 0; d < to->slots[slot].rank; d++) at[d] = compose(c, expr->at[d]);
      return ax_kernel_load(to, slot, at);
    }
    case AX_LEAF_INDEX: return index_expr(c, (uint32_t)expr->imm);
    case AX_LEAF_CONST:
    case AX_LEAF_AXIS: return ax_kernel_op_imm(to, expr->op, expr->dtype, AX_NONE, expr->imm);
    default:
      for (int k = 0; k < 3; k++) arg[k] = expr->arg[k] == AX_NONE ? AX_NONE : c->map[expr->arg[k]];
      if (expr->op == AX_SCALAR_INTEGER_POW) return ax_kernel_op_imm(to, expr->op, expr->dtype, arg[0], expr->imm);
      return ax_kernel_op(to, expr->op, expr->dtype, arg[0], arg[1], arg[2]);
  }
}

/* Copies all nodes of `from`; those already mapped are kept as they are. */
static void copy_all(copier *c) {
  const ax_kernel *from = c->from->kernel;
  for (uint32_t i = 0; i < from->expr_count && !c->failed; i++)
    if (c->map[i] == AX_NONE) c->map[i] = copy_one(c, &from->exprs[i]);
  if (c->to->kernel->failed || c->to->kernel->expr_count > AX_MOST_EXPRS) c->failed = true;
}

static void copy_stores(copier *c, const bool *dropped) {
  const ax_kernel *from = c->from->kernel;
  for (uint32_t i = 0; i < from->store_count && !c->failed; i++) {
    const ax_store *store = &from->stores[i];
    ax_at at[AX_MAX_RANK];
    if (dropped != NULL && dropped[i]) continue;
    uint32_t slot = slot_for(c, store->slot);
    if (c->failed || c->to->kernel->failed) return;
    for (uint32_t d = 0; d < c->to->kernel->slots[slot].rank; d++) at[d] = compose(c, store->at[d]);
    ax_kernel_store(c->to->kernel, slot, at, c->map[store->expr], store->reduce);
  }
}

/* What was made, unless it is too large or could not be. */
static ax_status made(const ax_bound *made, bool failed, ax_bound *out) {
  *out = (ax_bound){NULL, NULL};
  if (made->kernel->failed) return ax_out_of_memory(0);
  if (!failed && made->kernel->expr_count <= AX_MOST_EXPRS) *out = *made;
  return AX_OK;
}

/* --- Inlining --- */

/* What the producer stores at the position of a load of the consumer, as a node of the kernel under construction. */
static ax_status copy_producer(copier *c, const ax_bound *producer, const ax_store *store, const ax_expr *load, ax_ex *out) {
  ax_at at[AX_MAX_RANK];
  copier inner;
  *out = 0;
  for (uint32_t d = 0; d < c->from->kernel->slots[load->slot].rank; d++) at[d] = compose(c, load->at[d]);
  AX_TRY(start_copier(&inner, c->arena, producer, c->to));
  inner.at = at;
  inner.failed = c->failed;
  copy_all(&inner);
  c->failed = inner.failed;
  if (!c->failed) *out = inner.map[store->expr];
  return AX_OK;
}

ax_status ax_kernel_inline(ax_arena *arena, const ax_bound *producer, const ax_store *store, const ax_bound *consumer,
                           uint32_t slot, ax_bound *out) {
  const ax_kernel *old = consumer->kernel;
  ax_bound fresh;
  copier c;
  AX_TRY(start(arena, old, old->reduce_rank, &fresh));
  AX_TRY(start_copier(&c, arena, consumer, &fresh));
  for (uint32_t i = 0; i < old->expr_count && !c.failed; i++) {
    const ax_expr *expr = &old->exprs[i];
    if (expr->op == AX_LEAF_LOAD && expr->slot == slot)
      AX_TRY(copy_producer(&c, producer, store, expr, &c.map[i]));
    else
      c.map[i] = copy_one(&c, expr);
  }
  copy_stores(&c, NULL);
  AX_TRY(made(&fresh, c.failed, out));
  return out->kernel == NULL || ax_kernel_is_pruned(out->kernel) ? AX_OK : ax_kernel_prune(arena, &fresh, NULL, out);
}

/* --- Merging --- */

/* The nodes of second that load what first stores are first's expressions. */
static void map_through(const copier *first, copier *second) {
  const ax_kernel *a = first->from->kernel, *b = second->from->kernel;
  for (uint32_t j = 0; j < b->expr_count; j++)
    for (uint32_t i = 0; b->exprs[j].op == AX_LEAF_LOAD && i < a->store_count; i++)
      if (first->from->buffers[a->stores[i].slot] == second->from->buffers[b->exprs[j].slot])
        second->map[j] = first->map[a->stores[i].expr];
}

ax_status ax_kernel_merge(ax_arena *arena, const ax_bound *first, const ax_bound *second, ax_bound *out) {
  const ax_kernel *a = first->kernel, *b = second->kernel;
  ax_bound fresh;
  copier from_first, from_second;
  AX_TRY(start(arena, a, a->reduce_rank > b->reduce_rank ? a->reduce_rank : b->reduce_rank, &fresh));
  AX_TRY(start_copier(&from_first, arena, first, &fresh));
  AX_TRY(start_copier(&from_second, arena, second, &fresh));
  copy_all(&from_first);
  from_second.failed = from_first.failed;
  if (!from_first.failed) map_through(&from_first, &from_second);
  copy_all(&from_second);
  from_first.failed = from_second.failed;
  copy_stores(&from_first, NULL);
  copy_stores(&from_second, NULL);
  return made(&fresh, from_first.failed || from_second.failed, out);
}

/* --- Pruning --- */

static void need_position(const ax_at *at, uint32_t rank, bool *needed) {
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dynamic != AX_NONE) needed[at[d].dynamic] = true;
}

/* needed: cleared, one a node. */
static void find_needed(const ax_kernel *kernel, const bool *dropped, bool *needed) {
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (dropped != NULL && dropped[i]) continue;
    needed[store->expr] = true;
    need_position(store->at, kernel->slots[store->slot].rank, needed);
  }
  for (uint32_t i = kernel->expr_count; i-- > 0;) {
    const ax_expr *expr = &kernel->exprs[i];
    if (!needed[i]) continue;
    for (int k = 0; k < 3; k++)
      if (expr->arg[k] != AX_NONE) needed[expr->arg[k]] = true;
    if (expr->op == AX_LEAF_LOAD) need_position(expr->at, kernel->slots[expr->slot].rank, needed);
  }
}

bool ax_kernel_is_pruned(const ax_kernel *kernel) {
  bool needed[AX_MOST_EXPRS] = {false}, touched[AX_MOST_SLOTS] = {false};
  if (kernel->expr_count > AX_MOST_EXPRS || kernel->slot_count > AX_MOST_SLOTS) return false;
  find_needed(kernel, NULL, needed);
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    if (!needed[i]) return false;
    if (kernel->exprs[i].op == AX_LEAF_LOAD) touched[kernel->exprs[i].slot] = true;
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) touched[kernel->stores[i].slot] = true;
  for (uint32_t i = 0; i < kernel->slot_count; i++)
    if (!touched[i]) return false;
  return true;
}

ax_status ax_kernel_prune(ax_arena *arena, const ax_bound *kernel, const bool *dropped, ax_bound *out) {
  const ax_kernel *old = kernel->kernel;
  ax_bound fresh;
  copier c;
  bool *needed = ax_arena_alloc(arena, old->expr_count + 1);
  if (needed == NULL) return ax_out_of_memory(old->expr_count + 1);
  AX_TRY(start(arena, old, old->reduce_rank, &fresh));
  AX_TRY(start_copier(&c, arena, kernel, &fresh));
  find_needed(old, dropped, needed);
  for (uint32_t i = 0; i < old->expr_count && !c.failed; i++)
    if (needed[i]) c.map[i] = copy_one(&c, &old->exprs[i]);
  copy_stores(&c, dropped);
  return made(&fresh, c.failed, out);
}
