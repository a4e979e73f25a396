/* One copier does all of it: it copies nodes of one kernel into another under construction, with positions translated. Equal nodes
   are shared by the kernel's own builder. Inlining is a copy of the consumer in which a load becomes a copy of the producer; a
   merge is two copies into one; pruning is a copy of what the stores need. */
#include "plan/kernel_rewrite.h"

#include "ir/program.h"
#include "plan/fuse_worth.h"
#include "plan/index_map.h"

#include <string.h>

typedef struct copier {
  ax_arena *arena;
  const ax_bound *from;
  ax_bound *to;
  ax_ex *map;      /* of from's nodes; AX_NONE: not copied yet */
  const ax_position *at; /* from's loop index d is at[d] in terms of `to`; NULL: the same, or: */
  const ax_digits *digits; /* from's loop indices are the digits of an address, in terms of `to`; NULL */
  uint32_t digit_count;
  const ax_views *views;
  ax_ex guard;     /* in terms of `to`: where anything may be loaded; AX_NONE: everywhere */
  bool failed;     /* a composition that one ax_position cannot express, or too large */
} copier;

/* A kernel without nodes over the index space of `like`, with room for the buffers of its slots. */
static ax_status start(ax_arena *arena, const ax_loop_kernel *like, uint32_t reduce_rank, ax_bound *out) {
  out->kernel = ax_kernel_create(arena, like->rank, reduce_rank, like->dims);
  out->buffers = ax_arena_alloc(arena, AX_MOST_SLOTS * sizeof out->buffers[0]);
  if (out->kernel == NULL || out->buffers == NULL) return ax_out_of_memory(0);
  out->kernel->running = like->running;
  return AX_OK;
}

static ax_status start_copier(copier *c, ax_arena *arena, const ax_bound *from, ax_bound *to) {
  size_t bytes = (from->kernel->expr_count + 1) * sizeof c->map[0];
  *c = (copier){.arena = arena, .from = from, .to = to, .guard = AX_NONE, .map = ax_arena_alloc(arena, bytes)};
  if (c->map == NULL) return ax_out_of_memory(bytes);
  memset(c->map, 0xff, bytes);
  return AX_OK;
}

/* The slot of `to` for a buffer. */
static uint32_t slot_of(copier *c, uint32_t buffer, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_loop_kernel *to = c->to->kernel;
  for (uint32_t i = 0; i < to->slot_count; i++)
    if (c->to->buffers[i] == buffer) return i;
  if (to->slot_count == AX_MOST_SLOTS) {
    c->failed = true;
    return 0;
  }
  uint32_t slot = ax_kernel_slot(to, dtype, rank, dims);
  if (!to->failed) c->to->buffers[slot] = buffer;
  return slot;
}

/* The slot of `to` for the buffer of from's slot. */
static uint32_t slot_for(copier *c, uint32_t from_slot) {
  const ax_slot *like = &c->from->kernel->slots[from_slot];
  return slot_of(c, c->from->buffers[from_slot], like->dtype, like->rank, like->dims);
}

/* inner: in terms of from's loop -> in terms of to's. */
static ax_position compose(copier *c, ax_position inner) {
  if (inner.dynamic != AX_NONE) inner.dynamic = c->map[inner.dynamic];
  if (c->at == NULL || inner.dim < 0) return inner;
  ax_position outer = c->at[inner.dim];
  if (outer.dynamic != AX_NONE && (inner.dynamic != AX_NONE || inner.coef != 1)) c->failed = true;
  return (ax_position){.dim = outer.dim, .coef = inner.coef * outer.coef, .offset = inner.offset + inner.coef * outer.offset,
                 .dynamic = outer.dynamic != AX_NONE ? outer.dynamic : inner.dynamic,
                 .limit = outer.dynamic != AX_NONE ? outer.limit : inner.limit};
}

/* The loop index d of `from`, as an expression in `to`. */
static ax_ex index_expr(copier *c, uint32_t d) {
  ax_loop_kernel *to = c->to->kernel;
  if (c->at == NULL) return ax_kernel_index(to, d);
  const ax_position *at = &c->at[d];
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

/* --- Loop indices that are digits --- */

/* An address in terms of from's loop indices, in terms of to's; false when it takes a digit that is not told apart from others. */
static bool address_by_digits(const copier *c, const ax_affine *address, ax_affine *out) {
  const int64_t *dims = c->from->kernel->dims;
  *out = (ax_affine){.offset = address->offset};
  for (uint32_t g = 0; g < c->digit_count; g++) {
    const ax_digits *one = &c->digits[g];
    uint32_t last = one->last;
    while (last > one->first && dims[last] == 1) last--;
    int64_t coef = address->coef[last], next = coef * dims[last];
    for (uint32_t d = last; d-- > one->first;) {
      if (dims[d] > 1 && address->coef[d] != next) return false;
      next *= dims[d];
    }
    out->offset += coef * one->number.offset;
    for (uint32_t k = 0; k < c->to->kernel->rank; k++) out->coef[k] += coef * one->number.coef[k];
  }
  return true;
}

/* Says that the address is the number of the step: the kernel walks the array from its beginning, element by element. */
static bool is_step(const ax_affine *address, const ax_loop_kernel *kernel) {
  bool same = address->offset == 0;
  int64_t pitch = 1;
  for (uint32_t d = kernel->rank; d-- > 0; pitch *= kernel->dims[d])
    same = same && (kernel->dims[d] == 1 || address->coef[d] == pitch);
  return same;
}

/* The position of a loop index of `from` in terms of one of to's, or of none; false: it takes more than one, or is not told apart
   from others. */
static bool index_of_one(const copier *c, int dim, ax_position *out) {
  const ax_digits *one = c->digits;
  *out = (ax_position){.dim = -1, .dynamic = AX_NONE};
  if (dim < 0 || c->from->kernel->dims[dim] == 1) return true; /* it is 0 */
  while (one->last < (uint32_t)dim) one++;
  if (one->first != one->last) return false;
  out->offset = one->number.offset;
  for (uint32_t k = 0; k < c->to->kernel->rank; k++) {
    if (one->number.coef[k] == 0) continue;
    if (out->dim >= 0) return false;
    out->dim = (int)k;
    out->coef = one->number.coef[k];
  }
  return true;
}

static bool is_computed(const ax_position *at, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dynamic != AX_NONE) return true;
  return false;
}

static bool position_varies(const ax_loop_kernel *kernel, const ax_position *at, const bool *varies) {
  return (at->dim >= 0 && kernel->dims[at->dim] > 1) || (at->dynamic != AX_NONE && varies[at->dynamic]);
}

/* Whether all places that are computed are the same in each step. */
static bool computes_one_place(const ax_loop_kernel *kernel, const ax_position *at, uint32_t rank) {
  bool varies[AX_MOST_EXPRS];
  if (kernel->expr_count > AX_MOST_EXPRS) return false;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    varies[i] = expr->op == AX_LEAF_INDEX ? kernel->dims[expr->imm] > 1 : expr->op == AX_LEAF_INSIDE;
    for (int k = 0; k < 3; k++) varies[i] = varies[i] || (expr->arg[k] != AX_NONE && varies[expr->arg[k]]);
    for (uint32_t d = 0; expr->op == AX_LEAF_LOAD && d < kernel->slots[expr->slot].rank; d++)
      varies[i] = varies[i] || position_varies(kernel, &expr->at[d], varies);
  }
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dynamic != AX_NONE && varies[at[d].dynamic]) return false;
  return true;
}

/* Of places that are computed, which have no address: in the array itself, dimension by dimension, if they are computed once for all
   steps, as where a slice begins. Others are passes of their own. */
static uint32_t slot_by_places(copier *c, uint32_t from_slot, const ax_position *from, ax_position *at) {
  c->failed = c->failed || !computes_one_place(c->from->kernel, from, c->from->kernel->slots[from_slot].rank);
  for (uint32_t d = 0; d < c->from->kernel->slots[from_slot].rank && !c->failed; d++) {
    c->failed = !index_of_one(c, from[d].dim, &at[d]);
    at[d].coef *= from[d].coef;
    at[d].offset = from[d].offset + from[d].coef * at[d].offset;
    at[d].limit = from[d].limit;
    if (from[d].dynamic == AX_NONE) continue;
    at[d].dynamic = c->map[from[d].dynamic];
    c->failed = c->failed || at[d].dynamic == AX_NONE;
  }
  return c->failed ? 0 : slot_for(c, from_slot);
}

static uint32_t slot_of_view(copier *c, uint32_t buffer, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  const uint32_t view = c->views->make(c->views->context, buffer, rank, dims);
  c->to->kernel->failed = c->to->kernel->failed || view == AX_NONE;
  return c->to->kernel->failed ? 0 : slot_of(c, view, dtype, rank, dims);
}

/* Returns the slot for an array of from's, or for a view of it, and sets `at` to the places there that `from` names. An array
   that is walked as a whole is seen under the kernel's own dimensions; other arrays as they are, if that is possible; the rest
   under one dimension for each loop index. */
static uint32_t slot_by_digits(copier *c, uint32_t from_slot, const ax_position *from, ax_position *at) {
  ax_loop_kernel *to = c->to->kernel;
  const ax_slot *array = &c->from->kernel->slots[from_slot];
  ax_affine here, there;
  int64_t dims[AX_MAX_RANK];
  uint32_t rank, buffer = c->from->buffers[from_slot];
  if (is_computed(from, array->rank)) return slot_by_places(c, from_slot, from, at);
  c->failed = !ax_affine_of(array->rank, array->dims, from, &here) || !address_by_digits(c, &here, &there);
  if (c->failed) return 0;
  if (is_step(&there, to) && ax_dims_elems(array->rank, array->dims) == ax_dims_elems(to->rank, to->dims)) {
    ax_at_identity(at, to->rank);
    const bool same = array->rank == to->rank && memcmp(array->dims, to->dims, to->rank * sizeof to->dims[0]) == 0;
    return same ? slot_for(c, from_slot) : slot_of_view(c, buffer, array->dtype, to->rank, to->dims);
  }
  if (ax_affine_at(&there, to->rank, to->dims, array->rank, array->dims, at)) return slot_for(c, from_slot);
  c->failed = !ax_affine_array(&there, to->rank, to->dims, ax_dims_elems(array->rank, array->dims), &rank, dims, at);
  return c->failed ? 0 : slot_of_view(c, buffer, array->dtype, rank, dims);
}

/* An affine number in terms of `to`, as a node of the dtype. */
static ax_ex affine_node(copier *c, const ax_affine *number, ax_dtype dtype) {
  ax_loop_kernel *to = c->to->kernel;
  ax_ex sum = ax_kernel_const(to, AX_S64, number->offset);
  for (uint32_t k = 0; k < to->rank; k++) {
    if (number->coef[k] == 0) continue;
    ax_ex coef = ax_kernel_const(to, AX_S64, number->coef[k]);
    sum = ax_kernel_op(to, AX_SCALAR_ADD, AX_S64, sum,
                       ax_kernel_op(to, AX_SCALAR_MUL, AX_S64, ax_kernel_index(to, k), coef, AX_NONE), AX_NONE);
  }
  return dtype == AX_S64 ? sum : ax_kernel_op(to, AX_SCALAR_CONVERT, dtype, sum, AX_NONE, AX_NONE);
}

/* A node of `from` that counts: its index, if it is told apart from others, or what is computed of several that are one number only
   together, as block * 256 + place is. AX_NONE: nodes that are computed of it may be such. */
static ax_ex number_by_digits(copier *c, ax_ex node) {
  ax_affine number, there;
  if (!ax_affine_node(c->from->kernel, node, &number)) c->failed = true;
  return !c->failed && address_by_digits(c, &number, &there) ? affine_node(c, &there, c->from->kernel->exprs[node].dtype) : AX_NONE;
}

/* The node is computed of an index that is not told apart from others. Guards, which are arguments of loads too, always have a node. */
static bool is_of_digits(const copier *c, const ax_expr *expr) {
  if (c->digits == NULL) return false;
  for (int k = 0; k < 3; k++)
    if (expr->arg[k] != AX_NONE && c->map[expr->arg[k]] == AX_NONE) return true;
  return expr->op == AX_LEAF_INDEX;
}

/* --- Nodes --- */

/* The slot of `to` for one of from's, and positions in it. */
static uint32_t slot_and_at(copier *c, uint32_t from_slot, const ax_position *from, ax_position *at) {
  if (c->digits != NULL) return slot_by_digits(c, from_slot, from, at);
  uint32_t slot = slot_for(c, from_slot);
  for (uint32_t d = 0; d < c->from->kernel->slots[from_slot].rank && !c->failed; d++) at[d] = compose(c, from[d]);
  return slot;
}

static ax_ex mapped(const copier *c, ax_ex node) { return node == AX_NONE ? AX_NONE : c->map[node]; }

/* With one loop index and no more, or the composition fails. */
static ax_ex inside_by_digits(copier *c, const ax_expr *expr) {
  ax_position one;
  c->failed = c->failed || !index_of_one(c, expr->at->dim, &one);
  if (c->failed) return 0;
  return ax_kernel_inside(c->to->kernel, one.dim, expr->at->coef * one.coef, expr->at->offset + expr->at->coef * one.offset,
                          expr->imm);
}

/* Whether an index that is computed, which *at says, is the one of a piece of one element: then it is that number, and no guard. */
static ax_ex is_chosen(copier *c, const ax_position *at, int64_t extent) {
  ax_loop_kernel *to = c->to->kernel;
  c->failed = c->failed || at->dim >= 0 || extent != 1;
  if (c->failed) return 0;
  const ax_ex least = ax_kernel_op(to, AX_SCALAR_MAX, AX_S64, at->dynamic, ax_kernel_const(to, AX_S64, 0), AX_NONE);
  const ax_ex index = ax_kernel_op(to, AX_SCALAR_MIN, AX_S64, least, ax_kernel_const(to, AX_S64, at->limit), AX_NONE);
  return ax_kernel_op(to, AX_SCALAR_EQ, AX_BOOL, index, ax_kernel_const(to, AX_S64, -at->offset), AX_NONE);
}

static ax_ex copy_inside(copier *c, const ax_expr *expr) {
  if (c->digits != NULL) return inside_by_digits(c, expr);
  const ax_position at = compose(c, *expr->at);
  if (at.dynamic != AX_NONE) return is_chosen(c, &at, expr->imm);
  return c->failed ? 0 : ax_kernel_inside(c->to->kernel, at.dim, at.coef, at.offset, expr->imm);
}

static ax_ex copy_op(copier *c, const ax_expr *expr) {
  ax_ex arg[3];
  for (int k = 0; k < 3; k++) arg[k] = mapped(c, expr->arg[k]);
  return ax_kernel_op_like(c->to->kernel, expr, arg);
}

/* A load under a condition that has become a choice (is_chosen). Where the piece is chosen, its index is known, and with that index the load is
   within the piece, so that it is done in any case. So of pieces put together one is chosen for each element, and they are not put together. */
static ax_ex load_chosen(copier *c, const ax_expr *expr) {
  ax_loop_kernel *to = c->to->kernel;
  const ax_expr *inside = &c->from->kernel->exprs[expr->arg[0]];
  const ax_ex chosen = mapped(c, expr->arg[0]);
  ax_position at[AX_MAX_RANK], known[AX_MAX_RANK];
  const ax_position *all = c->at;
  c->failed = c->failed || inside->op != AX_LEAF_INSIDE || inside->at->dim < 0 || c->from->kernel->rank > AX_MAX_RANK;
  if (c->failed) return 0;
  memcpy(known, all, c->from->kernel->rank * sizeof known[0]);
  known[inside->at->dim] = (ax_position){.dim = -1, .offset = -inside->at->offset, .dynamic = AX_NONE};
  c->at = known;
  const uint32_t slot = slot_and_at(c, expr->slot, expr->at, at);
  c->at = all;
  if (c->failed || to->failed) return 0;
  const ax_ex value = ax_kernel_load_where(to, slot, at, c->guard);
  return ax_kernel_op(to, AX_SCALAR_SELECT, expr->dtype, chosen, value, ax_kernel_const(to, expr->dtype, 0));
}

static ax_ex copy_load(copier *c, const ax_expr *expr) {
  ax_loop_kernel *to = c->to->kernel;
  ax_position at[AX_MAX_RANK];
  const ax_ex own = mapped(c, expr->arg[0]);
  if (own != AX_NONE && to->exprs[own].op != AX_LEAF_CONST && !ax_kernel_is_guard(to, own)) return load_chosen(c, expr);
  uint32_t slot = slot_and_at(c, expr->slot, expr->at, at);
  if (c->failed || to->failed) return 0;
  ax_ex guard = ax_kernel_both(to, c->guard, own);
  return to->failed ? 0 : ax_kernel_load_where(to, slot, at, guard);
}

static ax_ex copy_one(copier *c, ax_ex node) {
  ax_loop_kernel *to = c->to->kernel;
  const ax_expr *expr = &c->from->kernel->exprs[node];
  if (is_of_digits(c, expr)) return number_by_digits(c, node);
  switch (expr->op) {
    case AX_LEAF_LOAD: return copy_load(c, expr);
    case AX_LEAF_INSIDE: return copy_inside(c, expr);
    case AX_LEAF_INDEX:
      return index_expr(c, (uint32_t)expr->imm);
    case AX_LEAF_CONST:
    case AX_LEAF_AXIS: return ax_kernel_op_imm(to, expr->op, expr->dtype, AX_NONE, expr->imm);
    default: return copy_op(c, expr);
  }
}

/* Nodes are never fewer again: what has too many needs no copying of the rest. */
static void copy_node(copier *c, ax_ex node) {
  c->map[node] = copy_one(c, node);
  if (c->to->kernel->failed || c->to->kernel->expr_count > AX_MOST_EXPRS) c->failed = true;
}

/* Copies all nodes of `from`; those already mapped are kept as they are. */
static void copy_all(copier *c) {
  const ax_loop_kernel *from = c->from->kernel;
  for (uint32_t i = 0; i < from->expr_count && !c->failed; i++)
    if (c->map[i] == AX_NONE) copy_node(c, i);
}

static void copy_stores(copier *c, const bool *dropped) {
  const ax_loop_kernel *from = c->from->kernel;
  for (uint32_t i = 0; i < from->store_count && !c->failed; i++) {
    const ax_store *store = &from->stores[i];
    ax_position at[AX_MAX_RANK];
    if (dropped != NULL && dropped[i]) continue;
    uint32_t slot = slot_and_at(c, store->slot, store->at, at);
    c->failed = c->failed || c->map[store->expr] == AX_NONE;
    if (c->failed || c->to->kernel->failed) return;
    ax_kernel_store(c->to->kernel, slot, at, c->map[store->expr], store->reduce);
  }
}

/* Gives the new kernel to *out, unless the rewrite failed or the kernel has more than AX_MOST_EXPRS nodes. */
static ax_status made(const ax_bound *made, bool failed, ax_bound *out) {
  *out = (ax_bound){NULL, NULL};
  if (made->kernel->failed) return ax_out_of_memory(0);
  if (!failed && made->kernel->expr_count <= AX_MOST_EXPRS) *out = *made;
  return AX_OK;
}

/* --- Inlining --- */

static bool same_array(const ax_slot *a, const ax_slot *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

/* They are the same but for dimensions of one element; then *at has the load's positions by dimension of the stored array. */
static bool same_but_for_ones(copier *c, const ax_slot *loaded, const ax_slot *stored, const ax_position *load, ax_position *at) {
  uint32_t from = 0;
  for (uint32_t d = 0; d < stored->rank; d++) {
    at[d] = (ax_position){.dim = -1, .dynamic = AX_NONE};
    if (stored->dims[d] == 1) continue;
    while (from < loaded->rank && loaded->dims[from] == 1) from++;
    if (from == loaded->rank || loaded->dims[from] != stored->dims[d]) return false;
    at[d] = compose(c, load[from++]);
  }
  while (from < loaded->rank && loaded->dims[from] == 1) from++;
  return from == loaded->rank;
}

/* Replaces a guarded load: where the guard holds, the value is computed; elsewhere it is 0. A value that is itself a load has
   the guard already. */
static ax_ex guarded(const copier *inner, const ax_store *store) {
  ax_loop_kernel *to = inner->to->kernel;
  const ax_expr *value = &inner->from->kernel->exprs[store->expr];
  ax_ex made = inner->map[store->expr];
  if (to->failed || inner->guard == AX_NONE || value->op == AX_LEAF_LOAD) return made;
  return ax_kernel_op(to, AX_SCALAR_SELECT, value->dtype, inner->guard, made, ax_kernel_const(to, value->dtype, 0));
}

/* The node for the value that the producer stores at the position of a load of the consumer, in the kernel under construction. */
static ax_status copy_producer(copier *c, const ax_bound *producer, const ax_store *store, const ax_expr *load, int64_t offset,
                               ax_ex *out) {
  const ax_slot *loaded = &c->from->kernel->slots[load->slot], *stored = &producer->kernel->slots[store->slot];
  ax_position at[AX_MAX_RANK];
  ax_digits digits[AX_MAX_RANK];
  ax_affine address;
  copier inner;
  *out = 0;
  AX_TRY(start_copier(&inner, c->arena, producer, c->to));
  c->failed = c->failed || loaded->dtype != stored->dtype; /* bytes that are seen as others */
  inner.failed = c->failed;
  inner.views = c->views;
  inner.guard = mapped(c, load->arg[0]);
  if (same_array(loaded, stored) && offset == 0) {
    inner.failed = c->failed || producer->kernel->rank > AX_MAX_RANK;
    for (uint32_t d = 0; d < loaded->rank; d++) at[d] = compose(c, load->at[d]);
    for (uint32_t d = loaded->rank; d < producer->kernel->rank && !inner.failed; d++) at[d] = (ax_position){.dim = -1, .dynamic = AX_NONE};
    inner.at = at;
    inner.failed = inner.failed || c->failed;
  } else if (ax_affine_of(loaded->rank, loaded->dims, load->at, &address)) {
    const ax_loop_kernel *to = c->to->kernel;
    address.offset += offset;
    inner.digits = digits;
    inner.failed = !ax_affine_digits(&address, to->rank, to->dims, stored->rank, stored->dims, digits, &inner.digit_count);
  } else { /* a place that is computed */
    inner.failed = c->failed || offset != 0 || producer->kernel->rank != stored->rank ||
                   !same_but_for_ones(c, loaded, stored, load->at, at) || c->failed;
    inner.at = at;
  }
  copy_all(&inner);
  c->failed = inner.failed || inner.map[store->expr] == AX_NONE;
  if (!c->failed) *out = guarded(&inner, store);
  return AX_OK;
}

/* Whether the consumer's nodes can follow the producer's as they are: each element is made where it is loaded, once, and nothing
   else of the producer is needed. Its array is the last slot, which then goes. */
static bool follows(const ax_loop_kernel *producer, const ax_store *store, const ax_loop_kernel *consumer, uint32_t slot,
                    int64_t offset) {
  enum { many_exprs = 16 }; /* nodes that are worth it */
  if (producer->expr_count <= many_exprs || producer->slot_count > AX_MOST_SLOTS || offset != 0) return false;
  if (producer->store_count != 1 || store->slot + 1 != producer->slot_count) return false;
  if (!ax_kernels_same_space(producer, consumer) || !ax_kernel_covers(producer, store->slot, store->at)) return false;
  for (uint32_t i = 0; i < producer->expr_count; i++)
    if (producer->exprs[i].op == AX_LEAF_LOAD && producer->exprs[i].slot == store->slot) return false;
  for (uint32_t i = 0; i < consumer->expr_count; i++) {
    const ax_expr *expr = &consumer->exprs[i];
    if (expr->op != AX_LEAF_LOAD || expr->slot != slot) continue;
    if (expr->arg[0] != AX_NONE || !ax_kernel_covers(consumer, slot, expr->at)) return false;
  }
  return true;
}

/* What uses a load of the slot, directly or not, is none of the nodes that the loaded value is made of. */
static uint32_t users_of(const ax_loop_kernel *kernel, uint32_t slot) {
  bool uses[AX_MOST_EXPRS] = {false};
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    for (int k = 0; k < 3 && !uses[i]; k++) uses[i] = expr->arg[k] != AX_NONE && uses[expr->arg[k]];
    count += uses[i];
    uses[i] = uses[i] || (expr->op == AX_LEAF_LOAD && expr->slot == slot);
  }
  return count;
}

/* A chain of operations is taken in one by one: then it is copied as a whole each time, and not node by node. */
static ax_status follow(ax_arena *arena, const ax_bound *producer, const ax_store *store, const ax_bound *consumer, uint32_t slot,
                        ax_bound *out) {
  const ax_loop_kernel *old = consumer->kernel;
  *out = (ax_bound){NULL, NULL};
  if (old->expr_count > AX_MOST_EXPRS || producer->kernel->expr_count + users_of(old, slot) > AX_MOST_EXPRS) return AX_OK;
  ax_bound fresh = {ax_kernel_extend(arena, producer->kernel, old->expr_count),
                    ax_arena_alloc(arena, AX_MOST_SLOTS * sizeof fresh.buffers[0])};
  copier c;
  if (fresh.kernel == NULL || fresh.buffers == NULL) return ax_out_of_memory(0);
  fresh.kernel->slot_count--; /* the producer's array */
  memcpy(fresh.buffers, producer->buffers, fresh.kernel->slot_count * sizeof fresh.buffers[0]);
  fresh.kernel->reduce_rank = old->reduce_rank;
  fresh.kernel->running = old->running;
  AX_TRY(start_copier(&c, arena, consumer, &fresh));
  for (uint32_t i = 0; i < old->expr_count; i++)
    if (old->exprs[i].op == AX_LEAF_LOAD && old->exprs[i].slot == slot) c.map[i] = store->expr;
  copy_all(&c);
  copy_stores(&c, NULL);
  return made(&fresh, c.failed, out);
}

static ax_status take_in(ax_arena *arena, const ax_bound *producer, const ax_store *store, const ax_bound *consumer, uint32_t slot,
                         int64_t offset, const ax_views *views, ax_bound *out) {
  const ax_loop_kernel *old = consumer->kernel;
  ax_bound fresh;
  copier c;
  AX_TRY(start(arena, old, old->reduce_rank, &fresh));
  AX_TRY(start_copier(&c, arena, consumer, &fresh));
  c.views = views;
  for (uint32_t i = 0; i < old->expr_count && !c.failed; i++) {
    const ax_expr *expr = &old->exprs[i];
    if (expr->op == AX_LEAF_LOAD && expr->slot == slot)
      AX_TRY(copy_producer(&c, producer, store, expr, offset, &c.map[i]));
    else
      copy_node(&c, i);
  }
  copy_stores(&c, NULL);
  return made(&fresh, c.failed, out);
}

ax_status ax_kernel_inline(ax_arena *arena, const ax_bound *producer, const ax_store *store, const ax_bound *consumer,
                           uint32_t slot, int64_t offset, const ax_views *views, ax_bound *out) {
  if (follows(producer->kernel, store, consumer->kernel, slot, offset)) AX_TRY(follow(arena, producer, store, consumer, slot, out));
  else AX_TRY(take_in(arena, producer, store, consumer, slot, offset, views, out));
  if (out->kernel == NULL || ax_kernel_is_pruned(out->kernel)) return AX_OK;
  const ax_bound whole = *out;
  return ax_kernel_prune(arena, &whole, NULL, out);
}

/* --- Merging --- */

/* The nodes of second that load what first stores are first's expressions. */
static void map_through(const copier *first, copier *second) {
  const ax_loop_kernel *a = first->from->kernel, *b = second->from->kernel;
  for (uint32_t j = 0; j < b->expr_count; j++)
    for (uint32_t i = 0; b->exprs[j].op == AX_LEAF_LOAD && i < a->store_count; i++)
      if (first->from->buffers[a->stores[i].slot] == second->from->buffers[b->exprs[j].slot])
        second->map[j] = first->map[a->stores[i].expr];
}

/* What the second makes of the first's only result is nothing that the first has: so many nodes are too many. */
static bool too_many(const ax_bound *first, const ax_bound *second) {
  const ax_loop_kernel *a = first->kernel, *b = second->kernel;
  if (a->store_count != 1 || b->expr_count > AX_MOST_EXPRS) return false;
  for (uint32_t slot = 0; slot < b->slot_count; slot++)
    if (second->buffers[slot] == first->buffers[a->stores[0].slot]) return a->expr_count + users_of(b, slot) > AX_MOST_EXPRS;
  return false;
}

ax_status ax_kernel_merge(ax_arena *arena, const ax_bound *first, const ax_bound *second, ax_bound *out) {
  const ax_loop_kernel *a = first->kernel, *b = second->kernel;
  ax_bound fresh;
  copier from_first, from_second;
  assert(!a->running && !b->running);
  if (too_many(first, second)) {
    *out = (ax_bound){NULL, NULL};
    return AX_OK;
  }
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

/* --- Other dimensions --- */

ax_status ax_kernel_redimension(ax_arena *arena, const ax_bound *kernel, uint32_t rank, const int64_t *dims, const ax_views *views,
                                ax_bound *out) {
  const ax_loop_kernel *old = kernel->kernel;
  const ax_loop_kernel like = {.rank = rank};
  ax_digits digits[AX_MAX_RANK];
  ax_affine step = {0};
  ax_bound fresh;
  copier c;
  *out = (ax_bound){NULL, NULL};
  assert(old->reduce_rank == 0);
  if (old->rank > AX_MAX_RANK) return AX_OK;
  AX_TRY(start(arena, &like, 0, &fresh));
  AX_TRY(start_copier(&c, arena, kernel, &fresh));
  memcpy(fresh.kernel->dims, dims, rank * sizeof dims[0]);
  for (int64_t d = (int64_t)rank - 1, pitch = 1; d >= 0; pitch *= dims[d--]) step.coef[d] = pitch;
  c.digits = digits;
  c.views = views;
  c.failed = !ax_affine_digits(&step, rank, dims, old->rank, old->dims, digits, &c.digit_count);
  copy_all(&c);
  copy_stores(&c, NULL);
  AX_TRY(made(&fresh, c.failed, out)); /* parts of indices that are one now are not needed */
  return out->kernel == NULL || ax_kernel_is_pruned(out->kernel) ? AX_OK : ax_kernel_prune(arena, &fresh, NULL, out);
}

ax_status ax_kernel_piece(ax_arena *arena, const ax_bound *kernel, uint32_t dim, int64_t begin, int64_t extent, ax_bound *out) {
  const ax_loop_kernel *old = kernel->kernel;
  ax_position at[AX_MAX_RANK];
  ax_bound fresh;
  copier c;
  assert(old->reduce_rank == 0 && old->rank <= AX_MAX_RANK);
  AX_TRY(start(arena, old, 0, &fresh));
  AX_TRY(start_copier(&c, arena, kernel, &fresh));
  fresh.kernel->dims[dim] = extent;
  ax_at_identity(at, old->rank);
  at[dim].offset = begin;
  c.at = at;
  copy_all(&c);
  copy_stores(&c, NULL);
  AX_TRY(made(&fresh, c.failed, out)); /* guards may have become certain, and what they decide is not needed then */
  return out->kernel == NULL || ax_kernel_is_pruned(out->kernel) ? AX_OK : ax_kernel_prune(arena, &fresh, NULL, out);
}

/* --- Unrolling --- */

/* Sums of these are rounded once a step in any case. */
static bool reduces_by_steps(const ax_loop_kernel *kernel, const ax_store *store) {
  const ax_dtype dtype = kernel->slots[store->slot].dtype;
  const bool wide = dtype == AX_F32 || dtype == AX_F64 || ax_is_exact(dtype);
  return store->reduce == AX_SCALAR_NONE || (wide && kernel->exprs[store->expr].dtype == dtype);
}

static bool unrolls(const ax_loop_kernel *kernel, uint32_t kept, int64_t most) {
  const int64_t steps = ax_dims_elems(kernel->rank - kept, kernel->dims + kept);
  bool can = kept + kernel->reduce_rank <= kernel->rank && !kernel->running && !kernel->failed && steps > 0 && steps <= most &&
             kernel->slot_count <= AX_MOST_SLOTS && steps * kernel->store_count <= AX_MOST_EXPRS && kernel->rank <= AX_MAX_RANK;
  for (uint32_t i = 0; can && i < kernel->store_count; i++) can = reduces_by_steps(kernel, &kernel->stores[i]);
  for (ax_ex node = 0; can && node < kernel->expr_count; node++) {
    const ax_scalar op = kernel->exprs[node].op;
    can = op != AX_LEAF_GIVEN && (ax_scalar_arity(op) != 2 || kernel->exprs[node].imm == 0); /* contracted, or precise */
  }
  return can;
}

/* The stores of one step. sums: by store, what is reduced so far; `first` and `last`: of the steps that one result is reduced
   over. */
static void unroll_stores(copier *c, ax_ex *sums, bool first, bool last) {
  const ax_loop_kernel *from = c->from->kernel;
  ax_loop_kernel *to = c->to->kernel;
  for (uint32_t i = 0; i < from->store_count && !c->failed && !to->failed; i++) {
    const ax_store *store = &from->stores[i];
    const ax_dtype dtype = from->slots[store->slot].dtype;
    ax_position at[AX_MAX_RANK];
    ax_ex value = c->map[store->expr];
    if (store->reduce == AX_SCALAR_ADD && first) sums[i] = ax_kernel_const(to, dtype, 0); /* of -0 alone the sum is 0 */
    if (store->reduce != AX_SCALAR_NONE && (!first || store->reduce == AX_SCALAR_ADD))
      value = ax_kernel_op(to, store->reduce, dtype, sums[i], value, AX_NONE);
    sums[i] = value;
    if (store->reduce != AX_SCALAR_NONE && !last) continue;
    const uint32_t slot = slot_and_at(c, store->slot, store->at, at);
    if (!c->failed && !to->failed) ax_kernel_store(to, slot, at, value, AX_SCALAR_NONE);
  }
}

static bool next_step(const ax_loop_kernel *kernel, uint32_t kept, ax_position *at) {
  for (uint32_t d = kernel->rank; d-- > kept; at[d].offset = 0)
    if (++at[d].offset < kernel->dims[d]) return true;
  return false;
}

/* Whether a step is the first, or the last, of those that a result is reduced over. */
static bool is_end(const ax_loop_kernel *kernel, const ax_position *at, bool last) {
  for (uint32_t d = kernel->rank - kernel->reduce_rank; d < kernel->rank; d++)
    if (at[d].offset != (last ? kernel->dims[d] - 1 : 0)) return false;
  return true;
}

ax_status ax_kernel_unroll(ax_arena *arena, const ax_loop_kernel *kernel, uint32_t kept, int64_t most, ax_loop_kernel **out) {
  ax_loop_kernel steps = {.rank = kept};
  ax_position at[AX_MAX_RANK];
  ax_ex sums[AX_MOST_EXPRS];
  uint32_t numbers[AX_MOST_SLOTS];
  ax_bound fresh, done, from = {ax_arena_copy(arena, kernel, sizeof *kernel), numbers};
  copier c;
  *out = NULL;
  if (!unrolls(kernel, kept, most)) return AX_OK;
  if (from.kernel == NULL) return ax_out_of_memory(sizeof *kernel);
  if (kept > 0) memcpy(steps.dims, kernel->dims, kept * sizeof steps.dims[0]);
  AX_TRY(start(arena, &steps, 0, &fresh));
  AX_TRY(start_copier(&c, arena, &from, &fresh));
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    numbers[s] = s;
    slot_for(&c, s);
  }
  for (uint32_t d = 0; d < kernel->rank; d++)
    at[d] = d < kept ? (ax_position){.dim = (int)d, .coef = 1, .dynamic = AX_NONE} : (ax_position){.dim = -1, .dynamic = AX_NONE};
  c.at = at;
  do {
    memset(c.map, 0xff, kernel->expr_count * sizeof c.map[0]);
    copy_all(&c);
    unroll_stores(&c, sums, is_end(kernel, at, false), is_end(kernel, at, true));
  } while (!c.failed && !fresh.kernel->failed && next_step(kernel, kept, at));
  AX_TRY(made(&fresh, c.failed, &done));
  *out = done.kernel;
  return AX_OK;
}

/* --- Pruning --- */

static void need_position(const ax_position *at, uint32_t rank, bool *needed) {
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dynamic != AX_NONE) needed[at[d].dynamic] = true;
}

/* needed: cleared, one a node. */
static void find_needed(const ax_loop_kernel *kernel, const bool *dropped, bool *needed) {
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (dropped != NULL && dropped[i]) continue;
    needed[store->expr] = true;
    need_position(store->at, kernel->slots[store->slot].rank, needed);
  }
  ax_kernel_needs(kernel, needed);
}

void ax_kernel_need(const ax_loop_kernel *kernel, ax_ex node, bool *needed) {
  const ax_expr *expr = &kernel->exprs[node];
  for (int k = 0; k < 3; k++)
    if (expr->arg[k] != AX_NONE) needed[expr->arg[k]] = true;
  if (expr->op == AX_LEAF_LOAD) need_position(expr->at, kernel->slots[expr->slot].rank, needed);
}

void ax_kernel_needs(const ax_loop_kernel *kernel, bool *needed) {
  for (uint32_t i = kernel->expr_count; i-- > 0;)
    if (needed[i]) ax_kernel_need(kernel, i, needed);
}

bool ax_kernel_is_pruned(const ax_loop_kernel *kernel) {
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
  const ax_loop_kernel *old = kernel->kernel;
  ax_bound fresh;
  copier c;
  bool *needed = ax_arena_alloc(arena, old->expr_count + 1);
  if (needed == NULL) return ax_out_of_memory(old->expr_count + 1);
  AX_TRY(start(arena, old, old->reduce_rank, &fresh));
  AX_TRY(start_copier(&c, arena, kernel, &fresh));
  find_needed(old, dropped, needed);
  for (uint32_t i = 0; i < old->expr_count && !c.failed; i++)
    if (needed[i]) copy_node(&c, i);
  copy_stores(&c, dropped);
  return made(&fresh, c.failed, out);
}
