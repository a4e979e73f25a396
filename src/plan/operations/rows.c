/* A group of kernels and products over the same rows as an operation (plan/rows.c).

   Invariants: members are kernels and products over the group's rows, each sound by itself; local allocations lie inside the block
   of rows. */
#include "plan/op.h"

static double time_of(const ax_plan *plan, const ax_op *op) {
  const ax_rows *rows = op->rows;
  double time = 0;
  (void)plan;
  for (uint32_t k = 0; k < rows->count; k++)
    time += ax_op_member_time(&rows->members[k]) * (rows->members[k].kind == AX_OP_GEMM ? 1 : (double)rows->outer);
  return 20 + time;
}

typedef struct moved { /* an allocation that lies in memory */
  uint32_t allocation;
  bool read, written;
} moved;

static moved *moved_allocation(moved *list, uint32_t *count, uint32_t allocation) {
  uint32_t i = 0;
  while (i < *count && list[i].allocation != allocation) i++;
  if (i == *count) list[(*count)++] = (moved){.allocation = allocation};
  return &list[i];
}

/* An allocation in memory is read and written once, however many members touch it. A value that a member has written is not read
   from memory by the next ones. */
static ax_amount amount_of(const ax_plan *plan, const ax_op *op) {
  const ax_rows *rows = op->rows;
  moved list[AX_ROWS_SLOTS];
  uint32_t count = 0, first = 0;
  ax_amount out = {.dtype = AX_F32};
  for (uint32_t k = 0; k < rows->count; first += ax_op_slots(&rows->members[k++])) {
    const ax_op *member = &rows->members[k];
    const bool product = member->kind == AX_OP_GEMM;
    const ax_amount one = ax_op_amount(plan, member);
    out.flops += one.flops * (product ? 1 : (double)rows->outer);
    out.product += one.product;
    out.core_ns += one.core_ns * (product ? 1 : (double)rows->outer);
    out.dividing_ns += one.dividing_ns * (double)rows->outer; /* products have none */
    out.turning_ns += one.turning_ns * (double)rows->outer;
    out.dtype = one.dtype;
    for (uint32_t i = 0; i < ax_op_slots(member); i++) {
      if (rows->slots[first + i].row_bytes != 0) continue;
      const ax_op_use o = ax_op_slot(member, i);
      const ax_buffer *buffer = &plan->buffers[o.buffer];
      moved *m = moved_allocation(list, &count, buffer->allocation);
      if (o.reads && !m->read && !m->written) out.read += (double)ax_buffer_bytes(buffer);
      if (o.writes && !m->written) out.written += (double)ax_buffer_bytes(buffer);
      m->read = m->read || o.reads;
      m->written = m->written || o.writes;
    }
  }
  return out;
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

/* Passes before it look at its members one by one, so it has few rules for them. */
const ax_op_rules ax_op_rows_rules = {
    .name = "rows", .visit = visit_all, .stored = stored, .time = time_of, .amount = amount_of, .text = text_of, .verify = verify};
