/* Values written straight where they are wanted, instead of being copied or put beside:

     a result   into the memory of a donated input that nobody needs any more     (w - 0.1 g into w)
     a carry    at the end of a loop's body, into the carry's buffer              (c = f(c))

   `source` may live in `target`'s memory when the one operation that writes source comes after every other use of target, or uses
   target itself only element by element at the places it writes. Synchronisation is decided later, on roots, so that other
   devices' uses of the target are waited for. */
#include "exec/exec.h"

typedef struct coalescer {
  ax_plan *plan;
  uint32_t *writes; /* by root: see ax_plan_count */
  bool *asked; /* scratch: by root */
} coalescer;

static ax_touch touches(coalescer *c, const ax_block *block, uint32_t from, uint32_t to, uint32_t root) {
  c->asked[root] = true;
  ax_touch touch = ax_block_touch(c->plan, block, from, to, c->asked);
  c->asked[root] = false;
  return touch;
}

static bool touched(coalescer *c, const ax_block *block, uint32_t from, uint32_t to, uint32_t root) {
  ax_touch touch = touches(c, block, from, to, root);
  return touch.reads || touch.writes;
}

static bool same_storage(const ax_plan *plan, uint32_t a, uint32_t b) {
  const ax_buffer *x = &plan->buffers[a], *y = &plan->buffers[b];
  return x->axes == y->axes && x->type.dtype == y->type.dtype && ax_type_elems(&x->type) == ax_type_elems(&y->type);
}

/* The operation of a block that writes all of `root`, which is written once; AX_NONE. */
static uint32_t writer_of(coalescer *c, const ax_block *block, uint32_t root) {
  if (c->plan->buffers[root].kind != AX_BUFFER_TEMP || c->plan->buffers[root].root != root || c->writes[root] != 1) return AX_NONE;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op_kind kind = block->ops[i].kind;
    if (!touches(c, block, i, i + 1, root).writes) continue;
    return kind == AX_OP_KERNEL || kind == AX_OP_GEMM || kind == AX_OP_EVAL ? i : AX_NONE;
  }
  return AX_NONE;
}

/* Operation `at` touches target only by loading, at each step, the element it then stores into source. */
static bool in_place(coalescer *c, const ax_block *block, uint32_t at, uint32_t source, uint32_t target) {
  const ax_op *op = &block->ops[at];
  ax_touch touch = touches(c, block, at, at + 1, target);
  if (!touch.reads && !touch.writes) return true;
  if (touch.writes || op->kind != AX_OP_KERNEL) return false;
  const ax_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (c->plan->buffers[op->kernel.buffers[store->slot]].root != source) continue;
    if (store->reduce != AX_SCALAR_NONE || op->kernel.buffers[store->slot] != source || kernel->slots[store->slot].rank != kernel->rank ||
        !ax_at_is_identity(store->at, kernel->rank))
      return false;
  }
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    if (load->op != AX_LEAF_LOAD || c->plan->buffers[op->kernel.buffers[load->slot]].root != target) continue;
    const ax_slot *slot = &kernel->slots[load->slot];
    if (c->plan->buffers[op->kernel.buffers[load->slot]].offset != 0 || slot->rank != kernel->rank ||
        !ax_at_is_identity(load->at, slot->rank))
      return false;
    for (uint32_t d = 0; d < slot->rank; d++) /* the same element, not the same indices of another shape */
      if (slot->dims[d] != kernel->dims[d]) return false;
  }
  return true;
}

/* From here on, source is target's memory. */
static void unite(ax_plan *plan, uint32_t source, uint32_t target) {
  for (uint32_t i = 0; i < plan->buffer_count; i++)
    if (plan->buffers[i].root == source) plan->buffers[i].root = target;
}

/* --- Donations --- */

static bool result_fits(coalescer *c, uint32_t result, uint32_t input) {
  const ax_plan *plan = c->plan;
  uint32_t source = plan->buffers[plan->out[result]].root, target = plan->in[input];
  if (!same_storage(plan, source, target)) return false;
  const ax_block *block = &plan->block;
  uint32_t writer = writer_of(c, block, source);
  return writer != AX_NONE && in_place(c, block, writer, source, target) &&
         !touched(c, block, writer + 1, block->count, target);
}

/* Only when the whole result has the input's layout does one memory do for both: the same type and spec. */
static bool same_layout(const ax_plan *plan, uint32_t result, uint32_t input) {
  const ax_buffer *out = &plan->buffers[plan->out[result]], *in = &plan->buffers[plan->in[input]];
  return ax_spec_equal(&out->spec, &in->spec) && ax_same_shape(&out->type, &in->type);
}

static ax_status place_donations(coalescer *c, const bool *donate) {
  ax_plan *plan = c->plan;
  bool *taken = ax_arena_alloc(&plan->arena, plan->in_count);
  if (taken == NULL) return ax_out_of_memory(plan->in_count);
  for (uint32_t k = 0; k < plan->out_count; k++)
    for (uint32_t i = 0; i < plan->in_count; i++) {
      if (!donate[i] || taken[i] || !same_layout(plan, k, i) || !result_fits(c, k, i)) continue;
      unite(plan, plan->buffers[plan->out[k]].root, plan->in[i]);
      taken[i] = true;
      break;
    }
  return AX_OK;
}

/* --- Carries --- */

static bool copies_carry(coalescer *c, const ax_block *body, uint32_t at, uint32_t *source, uint32_t *target) {
  const ax_at *position;
  if (!ax_op_is_copy(&body->ops[at], target, source, &position)) return false;
  if (!ax_at_is_identity(position, c->plan->buffers[*source].type.rank) || !same_storage(c->plan, *source, *target)) return false;
  if (c->plan->buffers[*target].root != *target || *source == *target) return false;
  if (touched(c, body, at + 1, body->count, *source) && touches(c, body, at + 1, body->count, *target).writes)
    return false; /* from here on they differ: the start of an inner loop's carry, say */
  uint32_t writer = writer_of(c, body, *source);
  return writer != AX_NONE && writer < at && in_place(c, body, writer, *source, *target) &&
         !touched(c, body, writer + 1, at, *target);
}

static void place_carries(coalescer *c, ax_block *block, bool is_body) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) place_carries(c, ax_op_block(op, k), op->kind == AX_OP_LOOP && k == 1);
    uint32_t source, target;
    if (!is_body || !copies_carry(c, block, i, &source, &target)) continue;
    unite(c->plan, source, target);
    c->writes[source] = 2; /* not a buffer of its own any more */
    ax_block_remove(block, i--);
  }
}

ax_status ax_coalesce(ax_plan *plan, const bool *donate) {
  coalescer c = {.plan = plan};
  uint32_t *reads = ax_arena_alloc(&plan->arena, plan->buffer_count * sizeof reads[0]);
  c.writes = ax_arena_alloc(&plan->arena, plan->buffer_count * sizeof c.writes[0]);
  c.asked = ax_arena_alloc(&plan->arena, plan->buffer_count);
  if (reads == NULL || c.writes == NULL || c.asked == NULL) return ax_out_of_memory(plan->buffer_count * sizeof reads[0]);
  ax_plan_count(plan, reads, c.writes);
  place_carries(&c, &plan->block, false);
  return place_donations(&c, donate);
}
