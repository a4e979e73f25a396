/* Estimates for fusion, from a kernel's expressions and sizes alone: the cost of an element, the order in which memory is
   walked, the size of a reduction. */
#include "plan/fuse_worth.h"

#include <string.h>

#include "plan/index_map.h"
#include "plan/kernel_rewrite.h"

/* --- The cost of an element --- */

bool ax_kernel_is_guard(const ax_loop_kernel *kernel, ax_ex node) {
  const ax_expr *expr = &kernel->exprs[node];
  if (expr->op == AX_LEAF_INSIDE) return true;
  return expr->op == AX_SCALAR_AND && ax_kernel_is_guard(kernel, expr->arg[0]) && ax_kernel_is_guard(kernel, expr->arg[1]);
}

/* Guards, and selections by them, cost nearly nothing, because the compiler removes most of them. */
static bool is_of_guards(const ax_loop_kernel *kernel, ax_ex node) {
  const ax_expr *expr = &kernel->exprs[node];
  return ax_kernel_is_guard(kernel, expr->op == AX_SCALAR_SELECT ? expr->arg[0] : node);
}

/* Operations that take next to nothing beside loading. */
static bool is_quick(const ax_expr *expr) {
  switch (expr->op) {
    case AX_SCALAR_NEG:
    case AX_SCALAR_ABS:
    case AX_SCALAR_ADD:
    case AX_SCALAR_SUB:
    case AX_SCALAR_MUL: return expr->dtype == AX_F32 || expr->dtype == AX_F64;
    default: return false;
  }
}

/* Whether the node is a step from one number to the next along each dimension: an index, a constant, or a sum, difference, multiple
   or conversion of such integers. known: the same of the nodes before. */
static bool is_affine(const ax_loop_kernel *kernel, ax_ex node, const bool *known) {
  const ax_expr *expr = &kernel->exprs[node];
  if (!ax_is_exact(expr->dtype)) return false;
  switch (expr->op) {
    case AX_LEAF_INDEX:
    case AX_LEAF_AXIS:
    case AX_LEAF_CONST: return true;
    case AX_SCALAR_CONVERT:
    case AX_SCALAR_NEG: return known[expr->arg[0]];
    case AX_SCALAR_ADD:
    case AX_SCALAR_SUB: return known[expr->arg[0]] && known[expr->arg[1]];
    case AX_SCALAR_MUL:
      return known[expr->arg[0]] && known[expr->arg[1]] &&
             (kernel->exprs[expr->arg[0]].op == AX_LEAF_CONST || kernel->exprs[expr->arg[1]].op == AX_LEAF_CONST);
    default: return false;
  }
}

/* What a stored element is made of. */
typedef struct makings {
  uint32_t loads, work, quick; /* of many guarded loads one is done; quick: operations among those of `work` */
  bool indexed, in_order;      /* in_order: loads go through the dimensions as the store does, perhaps some places off */
  bool guarded;
} makings;

static bool goes_in_order(const ax_loop_kernel *kernel, const ax_expr *load) {
  if (kernel->slots[load->slot].rank != kernel->rank) return false;
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (load->at[d].dim != (int)d || load->at[d].coef != 1 || load->at[d].dynamic != AX_NONE) return false;
  return true;
}

/* False: it loads, and computes more than `most_work` operations. */
static bool makings_of(const ax_loop_kernel *kernel, const ax_store *store, uint32_t most_work, makings *m) {
  enum { most_choices = 4 };
  bool needed[AX_MOST_EXPRS], affine[AX_MOST_EXPRS], knows_affine = false;
  uint32_t guarded = 0;
  *m = (makings){.in_order = true};
  if (kernel->expr_count > AX_MOST_EXPRS) return false;
  memset(needed, 0, store->expr * sizeof needed[0]);
  needed[store->expr] = true;
  for (uint32_t i = store->expr + 1; i-- > 0;) {
    const ax_expr *expr = &kernel->exprs[i];
    if (!needed[i]) continue;
    ax_kernel_need(kernel, i, needed);
    if (expr->op == AX_LEAF_LOAD) *(expr->arg[0] == AX_NONE ? &m->loads : &guarded) += 1;
    m->in_order = m->in_order && (expr->op != AX_LEAF_LOAD || goes_in_order(kernel, expr));
    m->indexed = m->indexed || expr->op == AX_LEAF_INDEX || expr->op == AX_LEAF_AXIS;
    bool works = expr->op < AX_SCALAR_COUNT && !is_of_guards(kernel, i);
    if (works && ax_is_exact(expr->dtype)) {
      for (uint32_t j = 0; j <= i && !knows_affine; j++) affine[j] = is_affine(kernel, j, affine);
      knows_affine = true;
      works = !affine[i];
    }
    m->work += works;
    m->quick += works && is_quick(expr);
    if (m->work > most_work && m->loads + guarded + m->indexed > 0) return false;
  }
  m->loads += guarded > most_choices ? guarded : guarded > 0;
  m->guarded = guarded > 0;
  return true;
}

bool ax_store_is_cheap(const ax_loop_kernel *kernel, const ax_store *store) {
  enum { most_work = 2 };
  makings m;
  if (!makings_of(kernel, store, most_work, &m) || m.loads > 1) return false;
  return m.loads == 1 ? m.work == 0 : !m.indexed || m.work <= most_work;
}

uint32_t ax_store_light_loads(const ax_loop_kernel *kernel, const ax_store *store) {
  enum { most_work = 3 };
  makings m;
  if (!makings_of(kernel, store, most_work, &m) || !m.in_order || m.quick < m.work) return 0;
  if (m.loads == 1 && m.work == 1) return 1;
  return m.loads == 2 && !m.guarded ? 2 : 0;
}

bool ax_kernel_is_cheap(const ax_loop_kernel *kernel) {
  return kernel->store_count == 1 && kernel->reduce_rank == 0 && ax_store_is_cheap(kernel, &kernel->stores[0]);
}

/* How far apart the elements lie that steps along a dimension touch; 0: they touch the same one, or it is not known. */
static int64_t pitch_of(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, uint32_t dim) {
  ax_affine address;
  return ax_affine_of(kernel->slots[slot].rank, kernel->slots[slot].dims, at, &address) ? address.coef[dim] : 0;
}

/* The innermost dimension of more than one element; the rank: there is none. */
static uint32_t innermost(const ax_loop_kernel *kernel) {
  uint32_t inner = kernel->rank;
  while (inner > 0 && kernel->dims[inner - 1] == 1) inner--;
  return inner > 0 ? inner - 1 : kernel->rank;
}

/* The elements next to each other, of the innermost dimensions, that the copy takes from one place; *pitch: how far apart these places are,
   in elements; 0: there is but one. */
static int64_t run_of(const ax_loop_kernel *producer, const ax_expr *from, int64_t *pitch) {
  int64_t run = 1;
  *pitch = 0;
  for (uint32_t d = producer->rank; d-- > 0;) {
    if (producer->dims[d] == 1) continue;
    *pitch = pitch_of(producer, from->slot, from->at, d);
    if (*pitch != run) return run;
    run *= producer->dims[d];
    *pitch = 0;
  }
  return run;
}

bool ax_copy_gathers(const ax_loop_kernel *producer, const ax_store *store, const ax_loop_kernel *consumer, uint32_t slot) {
  enum { again = 8, short_bytes = 256 };
  const ax_expr *from = &producer->exprs[store->expr];
  const int64_t elems = ax_dims_elems(consumer->slots[slot].rank, consumer->slots[slot].dims);
  const uint32_t inner = innermost(consumer);
  uint32_t stored = AX_NONE;
  bool along = false;
  if (inner == consumer->rank || from->op != AX_LEAF_LOAD || ax_dims_elems(consumer->rank, consumer->dims) / again < elems) return false;
  int64_t pitch;
  const int64_t run = run_of(producer, from, &pitch);
  if (run > 1 && run * (int64_t)ax_dtype_bytes(from->dtype) <= short_bytes && (pitch >= 2 * run || pitch <= -2 * run)) return true;
  for (uint32_t i = 0; i < consumer->expr_count; i++) {
    const ax_expr *load = &consumer->exprs[i];
    if (load->op != AX_LEAF_LOAD || load->slot != slot || load->arg[0] != AX_NONE) continue;
    along = along || pitch_of(consumer, slot, load->at, inner) == 1;
  }
  for (uint32_t d = 0; d < producer->rank; d++)
    if (producer->dims[d] > 1 && pitch_of(producer, store->slot, store->at, d) == 1) stored = d;
  if (!along || stored == AX_NONE) return false;
  pitch = pitch_of(producer, from->slot, from->at, stored);
  return pitch > 1 || pitch < -1;
}

static bool takes_rows(const ax_loop_kernel *kernel, uint32_t along) {
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    bool computed = false, goes = false;
    for (uint32_t d = 0; load->op == AX_LEAF_LOAD && d < kernel->slots[load->slot].rank; d++) {
      computed = computed || load->at[d].dynamic != AX_NONE;
      goes = goes || (load->at[d].dynamic == AX_NONE && load->at[d].dim == (int)along);
    }
    if (computed && goes) return true;
  }
  return false;
}

/* But for roots, which are instructions. */
static bool computes_functions(const ax_loop_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_scalar op = kernel->exprs[i].op;
    if (ax_scalar_is_function(op) && op != AX_SCALAR_SQRT && op != AX_SCALAR_RSQRT) return true;
  }
  return false;
}

bool ax_rows_fill_little(const ax_loop_kernel *producer, const ax_store *store, const ax_loop_kernel *consumer) {
  enum { most_bytes = 28, least_elems = 1 << 12 };
  const uint32_t along = innermost(producer);
  if (along == producer->rank || consumer->reduce_rank > 0 || !ax_kernels_same_space(producer, consumer)) return false;
  if (producer->dims[along] * (int64_t)ax_dtype_bytes(producer->exprs[store->expr].dtype) > most_bytes) return false;
  return ax_dims_elems(producer->rank, producer->dims) >= least_elems && computes_functions(consumer) && takes_rows(producer, along);
}

/* Whether all these loads are at one place along a dimension, and no two of them at the same. */
static bool differ_along(const ax_position *const *at, uint32_t count, uint32_t dim) {
  for (uint32_t i = 0; i < count; i++) {
    if (at[i][dim].dim >= 0 || at[i][dim].dynamic != AX_NONE) return false;
    for (uint32_t k = 0; k < i; k++)
      if (at[i][dim].offset == at[k][dim].offset) return false;
  }
  return true;
}

bool ax_kernel_loads_apart(const ax_loop_kernel *consumer, uint32_t slot) {
  const ax_position *at[AX_MAX_RANK];
  uint32_t loads = 0;
  for (uint32_t i = 0; i < consumer->expr_count; i++) {
    const ax_expr *load = &consumer->exprs[i];
    if (load->op != AX_LEAF_LOAD || load->slot != slot) continue;
    if (loads == AX_COUNT(at)) return false;
    at[loads++] = load->at;
  }
  for (uint32_t d = 0; d < consumer->slots[slot].rank && loads > 1; d++)
    if (differ_along(at, loads, d)) return true;
  return loads == 1;
}

bool ax_kernel_guards(const ax_loop_kernel *consumer, uint32_t slot) {
  for (uint32_t i = 0; i < consumer->expr_count; i++) {
    const ax_expr *expr = &consumer->exprs[i];
    if (expr->op == AX_LEAF_LOAD && expr->slot == slot && expr->arg[0] != AX_NONE) return true;
  }
  return false;
}

bool ax_kernel_chooses(const ax_loop_kernel *kernel) {
  for (uint32_t slot = 0; slot < kernel->slot_count; slot++)
    if (ax_kernel_guards(kernel, slot)) return true;
  return false;
}

uint32_t ax_kernel_looks_up(const ax_loop_kernel *kernel) {
  bool differs[AX_MOST_EXPRS]; /* by node: along the rows */
  const uint32_t along = innermost(kernel);
  uint32_t found = 0;
  if (kernel->expr_count > AX_MOST_EXPRS || along == kernel->rank) return 0;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    const uint32_t rank = expr->op == AX_LEAF_LOAD ? kernel->slots[expr->slot].rank : 0;
    bool here = false, computed = false;
    for (int k = 0; k < 3; k++) here = here || (expr->arg[k] != AX_NONE && differs[expr->arg[k]]);
    for (uint32_t d = 0; d < rank; d++) {
      computed = computed || (expr->at[d].dynamic != AX_NONE && differs[expr->at[d].dynamic]);
      here = here || expr->at[d].dim == (int)along;
    }
    differs[i] = here || computed || (expr->op == AX_LEAF_INDEX && expr->imm == (int64_t)along);
    found += computed;
  }
  return found;
}

/* --- How memory is walked --- */

/* The dimensions, a bit each, along which elements lie closest together in one of the arrays that are as large as the kernel,
   nearly. *least: the elements of the smallest of these arrays. */
static uint32_t inner_dims(const ax_loop_kernel *kernel, int64_t *least) {
  uint32_t inner = 0;
  *least = ax_dims_elems(kernel->rank, kernel->dims);
  for (uint32_t i = 0; i < kernel->expr_count + kernel->store_count; i++) {
    const ax_expr *load = i < kernel->expr_count ? &kernel->exprs[i] : NULL;
    if (load != NULL && load->op != AX_LEAF_LOAD) continue;
    const ax_store *store = load != NULL ? NULL : &kernel->stores[i - kernel->expr_count];
    const ax_slot *slot = &kernel->slots[load != NULL ? load->slot : store->slot];
    ax_affine address;
    int64_t nearest = INT64_MAX, steps = 1;
    uint32_t closest = AX_NONE;
    if (!ax_affine_of(slot->rank, slot->dims, load != NULL ? load->at : store->at, &address)) continue;
    for (uint32_t d = 0; d < kernel->rank; d++) {
      int64_t apart = address.coef[d] < 0 ? -address.coef[d] : address.coef[d];
      if (apart == 0 || kernel->dims[d] == 1) continue;
      steps *= kernel->dims[d];
      if (apart < nearest) nearest = apart, closest = d;
    }
    if (closest == AX_NONE || steps < ax_dims_elems(kernel->rank, kernel->dims) / 8) continue;
    inner |= (uint32_t)1 << closest;
    if (steps < *least) *least = steps;
  }
  return inner;
}

bool ax_kernel_turns(const ax_loop_kernel *kernel) { return ax_kernel_turned_elems(kernel) > 0; }

int64_t ax_kernel_turned_elems(const ax_loop_kernel *kernel) {
  int64_t least;
  return __builtin_popcount(inner_dims(kernel, &least)) > 1 ? least : 0;
}

bool ax_kernels_walk_alike(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  int64_t least;
  uint32_t x = inner_dims(a, &least), y = inner_dims(b, &least);
  return x == 0 || y == 0 || (x & y) != 0;
}

bool ax_kernels_need_blocks(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  enum { few_rows = 16, long_rows = 1 << 14 };
  const ax_loop_kernel *reducing = a->reduce_rank != 0 ? a : b, *other = reducing == a ? b : a;
  if (reducing->reduce_rank == 0 || other->reduce_rank != 0) return false;
  uint32_t kept = reducing->rank - reducing->reduce_rank;
  return ax_dims_elems(kept, reducing->dims) < few_rows && ax_dims_elems(reducing->reduce_rank, reducing->dims + kept) > long_rows;
}

bool ax_bounds_fit(const ax_bound *a, const ax_bound *b) {
  uint32_t slots = a->kernel->slot_count;
  for (uint32_t j = 0; j < b->kernel->slot_count; j++) {
    uint32_t i = 0;
    while (i < a->kernel->slot_count && a->buffers[i] != b->buffers[j]) i++;
    slots += i == a->kernel->slot_count;
  }
  return slots <= AX_MOST_SLOTS;
}

/* Whether a store makes one column of an array of a few. */
static bool makes_column(const ax_loop_kernel *kernel, const ax_store *store) {
  enum { most_columns = 4 };
  const ax_slot *slot = &kernel->slots[store->slot];
  if (store->reduce != AX_SCALAR_NONE || slot->rank == 0 || slot->dims[slot->rank - 1] < 2 || slot->dims[slot->rank - 1] > most_columns) return false;
  const ax_position *last = &store->at[slot->rank - 1];
  return last->dynamic == AX_NONE && (last->dim < 0 || kernel->dims[last->dim] == 1);
}

bool ax_bounds_fill_rows(const ax_bound *a, const ax_bound *b) {
  for (uint32_t i = 0; i < a->kernel->store_count; i++)
    for (uint32_t k = 0; k < b->kernel->store_count; k++)
      if (a->buffers[a->kernel->stores[i].slot] == b->buffers[b->kernel->stores[k].slot] && makes_column(a->kernel, &a->kernel->stores[i]) &&
          makes_column(b->kernel, &b->kernel->stores[k]))
        return true;
  return false;
}

bool ax_kernels_same_space(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}
