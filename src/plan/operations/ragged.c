/* A step of a ragged exchange as an operation.

   Invariants: tables have as many slices as there are, and arrays as many rows. */
#include "plan/op.h"

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  ax_ragged_buffer list[AX_RAGGED_MOST];
  uint32_t count = ax_ragged_buffers(op->ragged, op->step, list);
  for (uint32_t k = 0; k < count; k++)
    if (list[k].reads) visit(context, list[k].buffer, false);
  for (uint32_t k = 0; k < count; k++)
    if (list[k].writes) visit(context, list[k].buffer, true);
}

/* The rows are put into `out`, which is a copy of the equation's output until then. */
static void visit_updated(const ax_op *op, ax_visit visit, void *context) {
  if (op->step == AX_RAGGED_TAKE) visit(context, op->ragged->out, true);
}

static double time_of(const ax_plan *plan, const ax_op *op) {
  return 50 + (op->step == AX_RAGGED_TAKE ? 0.2 * (double)ax_type_elems(&plan->buffers[op->ragged->out].type) : 0);
}

/* Rows come back to where others may have come. */
static bool sums(const ax_plan *plan, const ax_op *op, ax_op_sum *out) {
  (void)plan;
  *out = (ax_op_sum){&op->ragged->names, op->ragged->in[0], op->ragged->in[1]};
  return op->step == AX_RAGGED_TAKE && op->ragged->back;
}

/* In a group of one, some of the exchange's buffers are AX_NONE. */
static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  ax_ragged *made = op->ragged = ax_arena_copy(r->arena, op->ragged, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  for (uint32_t k = 0; k < AX_RAGGED_OPERANDS; k++) AX_TRY(r->buffer(r->context, &made->in[k]));
  uint32_t *const own[] = {&made->table, &made->received, &made->work, &made->out, &made->taken, &made->released, &made->base};
  for (size_t k = 0; k < AX_COUNT(own); k++) AX_TRY(ax_op_rename_buffer(r, own[k]));
  return AX_OK;
}

static uint32_t stored(const ax_op *op) { return op->ragged->out; }

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)indent;
  static const char *const steps[] = {"pack", "take", "release"};
  ax_ragged_buffer list[AX_RAGGED_MOST];
  uint32_t count = ax_ragged_buffers(op->ragged, op->step, list);
  ax_text_add(text, "%s over %s:", steps[op->step], ax_axis_set_string(op->ragged->axes, &plan->mesh));
  for (uint32_t k = 0; k < count; k++) ax_text_add(text, " b%u", list[k].buffer);
  ax_text_add(text, "\n");
}

/* --- Invariants --- */

static int64_t elems_of(const ax_plan_verifier *v, uint32_t buffer) { return ax_type_elems(&v->plan->buffers[buffer].type); }

/* A view of complex numbers has their parts for elements. */
static int64_t bytes_of(const ax_plan_verifier *v, uint32_t buffer) {
  return elems_of(v, buffer) * (int64_t)ax_dtype_bytes(v->plan->buffers[buffer].type.dtype);
}

/* Checks the sizes of a ragged exchange's tables and rows. The contents of slices are checked when it runs. */
static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  const ax_ragged *ragged = op->ragged;
  const ax_ragged_shape *shape = &ragged->shape;
  ax_ragged_buffer list[AX_RAGGED_MOST];
  uint32_t count = ax_ragged_buffers(ragged, op->step, list);
  int64_t slices = shape->batch * shape->local * shape->members * shape->each;
  for (uint32_t k = 0; k < count; k++) AX_TRY(ax_verify_buffer(v, list[k].buffer));
  if (elems_of(v, ragged->table) != slices * AX_PIECE_WORDS)
    return ax_error(AX_INTERNAL, "b%u is no table of %lld slices", ragged->table, (long long)slices);
  for (uint32_t k = 2; k < AX_RAGGED_OPERANDS; k++)
    if (elems_of(v, ragged->in[k]) != slices)
      return ax_error(AX_INTERNAL, "b%u does not say something of %lld slices", ragged->in[k], (long long)slices);
  if (op->step != AX_RAGGED_TAKE) return AX_OK;
  int64_t rows = shape->batch * shape->local * shape->row_elems, mine = ragged->back ? shape->from_rows : shape->to_rows;
  if (elems_of(v, ragged->out) != rows * mine || elems_of(v, ragged->in[0]) != rows * (shape->from_rows + shape->to_rows - mine))
    return ax_error(AX_INTERNAL, "takes other rows than b%u and b%u have", ragged->in[0], ragged->out);
  if (ragged->base != AX_NONE && bytes_of(v, ragged->base) != bytes_of(v, ragged->out))
    return ax_error(AX_INTERNAL, "b%u is no base of b%u", ragged->base, ragged->out);
  return elems_of(v, ragged->received) == slices * AX_PIECE_WORDS ? AX_OK
                                                                  : ax_error(AX_INTERNAL, "b%u is no table", ragged->received);
}

const ax_op_rules ax_op_ragged_rules = {.name = "ragged",
                                        .visit = visit_all,
                                        .stored = stored,
                                        .visit_updated = visit_updated,
                                        .time = time_of,
                                        .sums = sums,
                                        .rename = rename_all,
                                        .text = text_of,
                                        .verify = verify};
