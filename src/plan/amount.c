#include "plan/amount.h"

#include "machine/caches.h"
#include "plan/op.h"

/* Elements of a slot that one load or store comes to: all steps of the kernel along dimensions that its position depends on. What a
   stride along the last dimension leaves out comes with the lines of the cache that the others are in. */
static double reach(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  const ax_slot *s = &kernel->slots[slot];
  bool moves[2 * AX_MAX_RANK] = {false};
  double steps = 1, elems = (double)ax_dims_elems(s->rank, s->dims);
  bool looked_up = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (at[d].dim >= 0 && at[d].coef != 0) moves[at[d].dim] = true;
    looked_up = looked_up || at[d].dynamic != AX_NONE;
  }
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (moves[d] || looked_up) steps *= (double)kernel->dims[d];
  if (s->rank > 0 && at[s->rank - 1].dim >= 0) {
    const int64_t coef = at[s->rank - 1].coef, stride = coef < 0 ? -coef : coef,
                  most = AX_LINE_BYTES / (int64_t)ax_dtype_bytes(s->dtype);
    steps *= (double)(stride < 1 ? 1 : stride < most ? stride : most);
  }
  return steps < elems ? steps : elems;
}

ax_amount ax_kernel_amount(const ax_loop_kernel *kernel) {
  double most[AX_MAX_SLOTS][2] = {{0}}, each = 0;
  ax_amount out = {.dtype = AX_F32};
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    if (expr->op == AX_LEAF_LOAD) {
      const double elems = reach(kernel, expr->slot, expr->at);
      if (elems > most[expr->slot][0]) most[expr->slot][0] = elems;
    } else if (expr->op < AX_SCALAR_COUNT && expr->op != AX_SCALAR_CONVERT && expr->op != AX_SCALAR_BITCAST && ax_rounds(expr->dtype)) {
      each++;
    }
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    const double elems = reach(kernel, store->slot, store->at);
    if (elems > most[store->slot][1]) most[store->slot][1] = elems;
    each += store->reduce != AX_SCALAR_NONE;
    out.dtype = kernel->slots[store->slot].dtype;
  }
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    const double item = (double)ax_dtype_bytes(kernel->slots[s].dtype);
    out.read += most[s][0] * item;
    out.written += most[s][1] * item;
  }
  out.flops = each * (double)ax_dims_elems(kernel->rank, kernel->dims);
  return out;
}

typedef struct touching {
  const ax_plan *plan;
  ax_amount *amount;
} touching;

static void touch(void *context, uint32_t buffer, bool writes) {
  const touching *t = context;
  *(writes ? &t->amount->written : &t->amount->read) += (double)ax_buffer_bytes(&t->plan->buffers[buffer]);
}

ax_amount ax_op_amount(const ax_plan *plan, const ax_op *op) {
  ax_amount out = {.dtype = AX_F32};
  if (ax_op_rules_of(op)->amount != NULL) return ax_op_rules_of(op)->amount(plan, op);
  touching all = {plan, &out};
  ax_op_visit(op, touch, &all);
  return out;
}
