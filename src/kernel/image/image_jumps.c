/* Jumps between operations: where steps lead to, what that is among operations, and shorter ways there. */
#include "kernel/image/image.h"

/* Marks the steps that a jump leads to. */
void ax_image_find_targets(const ax_core_code *code, bool *is) {
  for (uint32_t i = 0; i < code->step_count; i++) {
    const ax_core_code_step *step = &code->steps[i];
    bool jumps =
        step->kind == AX_STEP_JUMP || step->kind == AX_STEP_TEST || step->kind == AX_STEP_NEXT || step->kind == AX_STEP_ADVANCE;
    if (jumps) is[step->target] = true;
    for (uint32_t k = 0; step->kind == AX_STEP_SWITCH && k < step->target_count; k++) is[step->targets[k]] = true;
  }
}

/* Where a jump to that operation leads in the end, as far as it goes forward: at jumps back others may take the lock. */
static uint32_t thread_target(const ax_image_body *body, uint32_t target) {
  while (body->ops[target].kind == AX_IMAGE_JUMP && body->ops[target].target > target) target = body->ops[target].target;
  return target;
}

static void thread_jumps(ax_image_body *body) {
  for (uint32_t i = body->op_count; i-- > 0;) { /* those that lead forward come after what leads to them */
    ax_image_op *op = &body->ops[i];
    if (op->kind == AX_IMAGE_JUMP || op->kind == AX_IMAGE_TEST || op->kind == AX_IMAGE_NEXT) op->target = thread_target(body, op->target);
    for (uint32_t k = 0; op->kind == AX_IMAGE_SWITCH && k < op->step->target_count; k++)
      op->targets[k] = thread_target(body, op->targets[k]);
  }
}

/* A jump leads to that operation: to its step, or to one before it of which no operation was made here. */
static bool is_reached(const ax_image_body *body, const uint32_t *op_of, uint32_t op) {
  const int64_t step = body->ops[op].step - body->code->steps;
  bool is = false;
  for (int64_t i = step; i >= 0 && op_of[i] == op && !is; i--) is = body->is_target[i];
  return is;
}

/* A branch takes the predicate itself, where that is made an integer for it alone: it stands in the place of what made it one. */
static void branch_at_once(ax_image_body *body, const uint32_t *op_of, const uint32_t *uses) {
  for (uint32_t i = 0; i + 1 < body->op_count; i++) {
    ax_image_op *same = &body->ops[i];
    const ax_image_op *branch = same + 1;
    if (same->kind != AX_IMAGE_SAME || branch->kind != AX_IMAGE_SWITCH || branch->step->in[0] != same->step->out[0]) continue;
    if (same->out[0].narrow || uses[same->step->out[0]] != 1 || is_reached(body, op_of, i + 1)) continue;
    const ax_image_place *in = same->in;
    *same = *branch;
    same->in = in;
  }
}

/* Targets are steps until all operations are there. */
static ax_status renumber(ax_image *image, ax_image_body *body, const uint32_t *op_of) {
  for (uint32_t i = 0; i < body->op_count; i++) {
    ax_image_op *op = &body->ops[i];
    if (op->step == NULL) continue;
    op->target = op_of[op->step->target];
    if (op->kind != AX_IMAGE_SWITCH) continue;
    op->targets = ax_arena_copy(&image->arena, op->step->targets, op->step->target_count * sizeof op->targets[0]);
    if (op->targets == NULL) return ax_out_of_memory(0);
    for (uint32_t k = 0; k < op->step->target_count; k++) op->targets[k] = op_of[op->targets[k]];
  }
  return AX_OK;
}

ax_status ax_image_join(ax_image *image, ax_image_body *body, const uint32_t *op_of, const uint32_t *uses) {
  AX_TRY(renumber(image, body, op_of));
  thread_jumps(body);
  branch_at_once(body, op_of, uses);
  return AX_OK;
}
