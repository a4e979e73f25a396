/* A group of kernels and products over the same rows as an operation, and its members' buffers.

   Invariants: members are kernels and products over the group's rows, each sound by itself; local allocations lie inside the block
   of rows. */
#include "plan/op.h"

uint32_t ax_op_slots(const ax_op *op) { return op->kind == AX_OP_GEMM ? 3 : op->kernel.kernel->slot_count; }

ax_op_use ax_op_slot(const ax_op *op, uint32_t index) {
  if (op->kind == AX_OP_GEMM) {
    const uint32_t buffers[] = {op->gemm->a, op->gemm->b, op->gemm->c};
    return (ax_op_use){buffers[index], index < 2 || op->gemm->accumulate, index == 2};
  }
  const ax_loop_kernel *kernel = op->kernel.kernel;
  ax_op_use o = {.buffer = op->kernel.buffers[index]};
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    o.reads = o.reads || (kernel->exprs[i].op == AX_LEAF_LOAD && kernel->exprs[i].slot == index);
  for (uint32_t i = 0; i < kernel->store_count; i++) o.writes = o.writes || kernel->stores[i].slot == index;
  return o;
}

double ax_rows_time(const ax_rows *rows) {
  double time = 0;
  for (uint32_t k = 0; k < rows->count; k++) {
    const ax_op *member = &rows->members[k];
    time += member->kind == AX_OP_GEMM ? ax_gemm_time(member->gemm) : ax_kernel_time(member->kernel.kernel) * (double)rows->outer;
  }
  return time;
}

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  for (uint32_t k = 0; k < op->rows->count; k++) ax_op_visit(&op->rows->members[k], visit, context);
}

/* The first buffer that the first member writes. */
static uint32_t stored(const ax_op *op) {
  const ax_op *member = &op->rows->members[0];
  uint32_t i = 0;
  while (!ax_op_slot(member, i).writes) i++;
  return ax_op_slot(member, i).buffer;
}

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  const ax_rows *rows = op->rows;
  ax_text_add(text, "%lld rows, %lld at a time, %lld bytes of them beside memory\n", (long long)(rows->outer * rows->extent),
              (long long)rows->step, (long long)rows->block_bytes);
  for (uint32_t k = 0; k < rows->count; k++) ax_op_text(text, plan, &rows->members[k], indent + 4);
}

static ax_status verify(ax_plan_verifier *v, const ax_op *group) {
  const ax_rows *rows = group->rows;
  uint32_t slots = 0;
  if (rows->count < 2 || rows->count > AX_ROWS_MEMBERS || rows->block_bytes > AX_ROWS_BYTES || rows->step < 1 || rows->parts < 1)
    return ax_error(AX_INTERNAL, "is no group of rows");
  for (uint32_t k = 0; k < rows->count; k++) {
    const ax_op *op = &rows->members[k];
    bool product = op->kind == AX_OP_GEMM;
    if ((op->kind != AX_OP_KERNEL && !product) || op->axes != rows->members[0].axes)
      return ax_error(AX_INTERNAL, "operation %u is no member", k);
    AX_TRY(ax_op_rules_of(op)->verify(v, op));
    if ((product ? op->gemm->m : ax_kernel_extent(op->kernel.kernel)) != rows->extent ||
        (product && ax_dims_elems(op->gemm->batch_rank, op->gemm->batch) != rows->outer))
      return ax_error(AX_INTERNAL, "member %u goes over other rows", k);
    for (uint32_t i = 0; i < ax_op_slots(op) && slots < rows->slot_count; i++, slots++) {
      const ax_rows_slot *slot = &rows->slots[slots];
      if (slot->row_bytes != 0 && (slot->place < 0 || slot->place + slot->row_bytes * rows->step > rows->block_bytes))
        return ax_error(AX_INTERNAL, "member %u: slot %u is outside of the block", k, i);
    }
  }
  return slots == rows->slot_count && slots <= AX_ROWS_SLOTS
             ? AX_OK
             : ax_error(AX_INTERNAL, "has %u slots, not %u", rows->slot_count, slots);
}

const ax_op_rules ax_op_rows_rules = {.name = "rows", .visit = visit_all, .stored = stored, .text = text_of, .verify = verify};
