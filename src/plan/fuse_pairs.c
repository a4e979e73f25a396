#include "plan/fuse_pairs.h"

#include "plan/kernel_rewrite.h"

static uint32_t allocation_of(const ax_plan *plan, uint32_t buffer) { return plan->buffers[buffer].allocation; }

bool ax_kernels_share(const ax_plan *plan, const ax_bound *a, const ax_bound *b, int64_t least) {
  for (uint32_t i = 0; i < a->kernel->slot_count; i++)
    for (uint32_t j = 0; j < b->kernel->slot_count; j++) {
      const ax_buffer *x = &plan->buffers[a->buffers[i]], *y = &plan->buffers[b->buffers[j]];
      if (x->allocation != y->allocation) continue;
      if (least == 0 || (ax_type_elems(&x->type) >= least && ax_type_elems(&y->type) >= least)) return true;
    }
  return false;
}

static bool stays(const ax_loop_kernel *kernel, const ax_position *at) {
  return at->dynamic == AX_NONE && (at->dim < 0 || kernel->dims[at->dim] == 1);
}

/* Two kernels over one index space store different columns of an array: each step of either stores at one place along the last
   dimension, which is always the same, and they are two different places. */
static bool store_columns(const ax_bound *a, const ax_store *x, const ax_bound *b, const ax_store *y) {
  const uint32_t rank = a->kernel->slots[x->slot].rank;
  if (a->buffers[x->slot] != b->buffers[y->slot] || rank == 0) return false;
  if (x->reduce != AX_SCALAR_NONE || y->reduce != AX_SCALAR_NONE) return false;
  const ax_position *one = &x->at[rank - 1], *other = &y->at[rank - 1];
  return stays(a->kernel, one) && stays(b->kernel, other) && one->offset != other->offset;
}

/* Kernel a does not touch what a store of b writes, but for other columns. */
static bool leaves_alone(const ax_plan *plan, const ax_bound *a, const ax_bound *b, const ax_store *store) {
  const uint32_t allocation = allocation_of(plan, b->buffers[store->slot]);
  for (uint32_t i = 0; i < a->kernel->expr_count; i++) {
    const ax_expr *expr = &a->kernel->exprs[i];
    if (expr->op == AX_LEAF_LOAD && allocation_of(plan, a->buffers[expr->slot]) == allocation) return false;
  }
  for (uint32_t i = 0; i < a->kernel->store_count; i++) {
    const ax_store *own = &a->kernel->stores[i];
    if (allocation_of(plan, a->buffers[own->slot]) == allocation && !store_columns(a, own, b, store)) return false;
  }
  return true;
}

bool ax_kernels_agree(const ax_plan *plan, const ax_bound *a, const ax_bound *b) {
  const ax_loop_kernel *ka = a->kernel, *kb = b->kernel;
  for (uint32_t i = 0; i < ka->store_count; i++) {
    uint32_t buffer = a->buffers[ka->stores[i].slot];
    for (uint32_t j = 0; j < kb->expr_count; j++) {
      const ax_expr *expr = &kb->exprs[j];
      if (expr->op != AX_LEAF_LOAD) continue;
      uint32_t other = b->buffers[expr->slot];
      if (allocation_of(plan, other) != allocation_of(plan, buffer)) continue;
      uint32_t rank = kb->slots[expr->slot].rank;
      if (expr->arg[0] != AX_NONE || other != buffer || ka->stores[i].reduce != AX_SCALAR_NONE ||
          !ax_at_is_identity(expr->at, rank) || !ax_at_is_identity(ka->stores[i].at, rank) || rank != ka->rank)
        return false;
    }
  }
  for (uint32_t i = 0; i < kb->store_count; i++)
    if (!leaves_alone(plan, a, b, &kb->stores[i])) return false;
  return true;
}

/* Whether they touch the same bytes of an allocation. */
static bool overlap(const ax_plan *plan, const ax_bound *a, const ax_bound *b) {
  for (uint32_t i = 0; i < a->kernel->slot_count; i++)
    for (uint32_t j = 0; j < b->kernel->slot_count; j++) {
      const ax_buffer *x = &plan->buffers[a->buffers[i]], *y = &plan->buffers[b->buffers[j]];
      if (x->allocation != y->allocation) continue;
      if (x->loop != AX_NONE || y->loop != AX_NONE) return true;
      if (x->offset < y->offset + ax_buffer_bytes(y) && y->offset < x->offset + ax_buffer_bytes(x)) return true;
    }
  return false;
}

bool ax_kernel_stays_apart(const ax_plan *plan, const ax_bound *a, const ax_bound *b) {
  const int64_t steps = ax_dims_elems(a->kernel->rank, a->kernel->dims);
  return a->kernel->reduce_rank == 0 ? !overlap(plan, a, b) : !ax_kernels_share(plan, a, b, steps / 8);
}

enum { much_bytes = 256 << 10 }; /* no cache near a core holds them */

static int64_t loaded_bytes(const ax_plan *plan, const ax_bound *kernel) {
  bool loads[AX_MAX_SLOTS] = {false};
  int64_t bytes = 0;
  for (uint32_t i = 0; i < kernel->kernel->expr_count; i++)
    if (kernel->kernel->exprs[i].op == AX_LEAF_LOAD) loads[kernel->kernel->exprs[i].slot] = true;
  for (uint32_t i = 0; i < kernel->kernel->slot_count; i++)
    if (loads[i]) bytes += ax_buffer_bytes(&plan->buffers[kernel->buffers[i]]);
  return bytes;
}

bool ax_reductions_have_nothing_in_common(const ax_plan *plan, const ax_bound *a, const ax_bound *b) {
  if (a->kernel->reduce_rank == 0 || b->kernel->reduce_rank == 0) return false;
  return loaded_bytes(plan, a) >= much_bytes && loaded_bytes(plan, b) >= much_bytes && !overlap(plan, a, b);
}

bool ax_kernel_makes_much(const ax_plan *plan, const ax_bound *kernel) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < kernel->kernel->store_count; i++)
    bytes += ax_buffer_bytes(&plan->buffers[kernel->buffers[kernel->kernel->stores[i].slot]]);
  return bytes >= much_bytes;
}

bool ax_kernel_feeds(const ax_bound *a, const ax_bound *b) {
  for (uint32_t i = 0; i < a->kernel->store_count; i++)
    for (uint32_t j = 0; j < b->kernel->expr_count; j++)
      if (b->kernel->exprs[j].op == AX_LEAF_LOAD && b->buffers[b->kernel->exprs[j].slot] == a->buffers[a->kernel->stores[i].slot])
        return true;
  return false;
}
