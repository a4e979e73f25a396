/* A step of a kernel that a user wrote, as an operation.

   Invariants: what a step writes has no memory in common with anything else that it touches. */
#include "plan/op.h"

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  uint32_t count = ax_cores_buffer_count(op->cores, op->cores_step);
  for (int writes = 0; writes < 2; writes++)
    for (uint32_t k = 0; k < count; k++) {
      const ax_cores_buffer b = ax_cores_buffer_at(op->cores, op->cores_step, k);
      if (writes ? b.writes : b.reads) visit(context, b.buffer, writes);
    }
}

/* Results of a kernel that are not fresh are copies of operands until the kernel writes them. */
static void visit_updated(const ax_op *op, ax_visit visit, void *context) {
  const ax_cores *cores = op->cores;
  for (uint32_t k = cores->fresh_count; k < cores->out_count; k++) visit(context, cores->buffers[cores->in_count + k], true);
}

static double time_of(const ax_plan *plan, const ax_op *op) {
  (void)plan;
  return op->cores_step == AX_CORES_RUN ? 500 + op->cores->time : 100;
}

/* A kernel and its steps are several operations. The copy holds what they share, under the copy's buffers; the kernel itself is not
   copied. */
static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  ax_cores *made = op->cores = ax_arena_copy(r->arena, op->cores, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  made->next = NULL;
  AX_TRY(ax_op_rename_list(r, r->arena, &made->buffers, made->in_count + made->out_count));
  uint32_t *const own[] = {&made->state, &made->came, &made->all_came, &made->done, &made->all_done};
  for (size_t k = 0; k < AX_COUNT(own); k++) AX_TRY(ax_op_rename_buffer(r, own[k]));
  return AX_OK;
}

static uint32_t stored(const ax_op *op) { return op->cores->state; }

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  static const char *const steps[] = {"enter", "run", "leave"};
  (void)indent;
  ax_text_add(text, "cores %s", steps[op->cores_step]);
  if (op->cores->came != AX_NONE) ax_text_add(text, " over %s", ax_axis_set_string(op->cores->axes, &plan->mesh));
  ax_text_add(text, ":");
  for (uint32_t k = 0; k < ax_cores_buffer_count(op->cores, op->cores_step); k++)
    ax_text_add(text, " b%u", ax_cores_buffer_at(op->cores, op->cores_step, k).buffer);
  ax_text_add(text, "\n");
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  const ax_cores *cores = op->cores;
  const ax_cores_step step = op->cores_step;
  if (cores->came == AX_NONE && step != AX_CORES_RUN) return ax_error(AX_INTERNAL, "a kernel of one device is only run");
  for (uint32_t k = 0; k < ax_cores_buffer_count(cores, step); k++) {
    const ax_cores_buffer b = ax_cores_buffer_at(cores, step, k);
    AX_TRY(ax_verify_buffer(v, b.buffer));
    for (uint32_t i = 0; i < k && b.writes; i++) {
      uint32_t other = ax_cores_buffer_at(cores, step, i).buffer;
      if (v->plan->buffers[other].allocation == v->plan->buffers[b.buffer].allocation)
        return ax_error(AX_INTERNAL, "b%u is written and has memory in common with b%u", b.buffer, other);
    }
  }
  return AX_OK;
}

const ax_op_rules ax_op_cores_rules = {.name = "cores",
                                       .visit = visit_all,
                                       .stored = stored,
                                       .visit_updated = visit_updated,
                                       .time = time_of,
                                       .rename = rename_all,
                                       .text = text_of,
                                       .verify = verify};
