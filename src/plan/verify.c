/* The verifier of plans: checks the promises of plan.h and kernel.h independently of the passes.

     buffers    an allocation is its own; a view begins and ends inside its allocation, in every iteration of its loop;
                axes are of the mesh
     operations each runs along axes of the mesh, those that its results are stored along; the file of its kind says what else must
                hold (operations/kernel.c, operations/gemm.c, ..)
     views      those of a loop are used inside it alone
     order      values made during the run are written before they are read

   Only a defect of Axle's own breaks one, so the status is AX_INTERNAL. It costs a walk over the plan. */
#include "plan/verify.h"

#include "ir/prim.h"
#include "plan/op.h"
#include "plan/passes.h"

/* --- Buffers --- */

static ax_status check_view(const ax_plan_verifier *v, uint32_t id) {
  const ax_buffer *view = &v->plan->buffers[id], *allocation = &v->plan->buffers[view->allocation];
  int64_t last = view->offset;
  if (view->loop != AX_NONE) {
    if (view->loop >= v->plan->loop_count)
      return ax_error(AX_INTERNAL, "is a view of loop %u, of %u", view->loop, v->plan->loop_count);
    int64_t trips = v->trips[view->loop];
    if (trips == 0) return AX_OK; /* no operation touches it, and its allocation may be empty */
    last += view->step * (trips > 0 ? trips - 1 : 0);
  }
  int64_t low = last < view->offset ? last : view->offset, high = last < view->offset ? view->offset : last;
  if (low >= 0 && high + ax_buffer_bytes(view) <= ax_buffer_bytes(allocation)) return AX_OK;
  return ax_error(AX_INTERNAL, "is at %lld to %lld of b%u, of %lld bytes", (long long)low,
                  (long long)(high + ax_buffer_bytes(view)), view->allocation, (long long)ax_buffer_bytes(allocation));
}

static ax_status check_buffer(const ax_plan_verifier *v, uint32_t id) {
  const ax_plan *plan = v->plan;
  const ax_buffer *buffer = &plan->buffers[id];
  if (ax_dtype_bytes(buffer->type.dtype) == 0) return ax_error(AX_INTERNAL, "has no dtype");
  if ((buffer->axes & ~ax_all_axes(&plan->mesh)) != 0) return ax_error(AX_INTERNAL, "is stored along axes that the mesh has not");
  if (buffer->allocation >= plan->buffer_count || plan->buffers[buffer->allocation].allocation != buffer->allocation)
    return ax_error(AX_INTERNAL, "is in b%u, which is no allocation", buffer->allocation);
  if (buffer->kind == AX_BUFFER_INPUT && buffer->index >= plan->in_count)
    return ax_error(AX_INTERNAL, "is input %u", buffer->index);
  if (buffer->kind == AX_BUFFER_CONST && buffer->data == NULL && ax_buffer_bytes(buffer) > 0)
    return ax_error(AX_INTERNAL, "has no data");
  return check_view(v, id);
}

static ax_status check_buffers(const ax_plan_verifier *v) {
  for (uint32_t i = 0; i < v->plan->buffer_count; i++) {
    ax_status status = check_buffer(v, i);
    if (status != AX_OK) return ax_error_context(status, "b%u ", i);
  }
  return AX_OK;
}

ax_status ax_verify_buffer(const ax_plan_verifier *v, uint32_t buffer) {
  return buffer < v->plan->buffer_count ? AX_OK : ax_error(AX_INTERNAL, "there is no b%u", buffer);
}

ax_status ax_verify_box(const ax_plan_verifier *v, uint32_t buffer, int64_t offset, uint32_t rank, const int64_t *dims,
                        const int64_t *strides) {
  AX_TRY(ax_verify_buffer(v, buffer));
  int64_t low = offset, high = offset;
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] == 0) return AX_OK;
    (strides[d] < 0 ? (low += strides[d] * (dims[d] - 1)) : (high += strides[d] * (dims[d] - 1)));
  }
  if (low >= 0 && high < ax_type_elems(&v->plan->buffers[buffer].type)) return AX_OK;
  return ax_error(AX_INTERNAL, "elements %lld to %lld of b%u", (long long)low, (long long)high, buffer);
}

ax_status ax_verify_scalar(const ax_plan_verifier *v, uint32_t buffer, ax_dtype dtype) {
  const ax_type *type = &v->plan->buffers[buffer].type;
  return type->rank == 0 && type->dtype == dtype ? AX_OK
                                                 : ax_error(AX_INTERNAL, "b%u is no %s scalar", buffer, ax_dtype_name(dtype));
}

ax_status ax_verify_touch(ax_plan_verifier *v, uint32_t buffer, bool writes) {
  AX_TRY(ax_verify_buffer(v, buffer));
  const ax_buffer *b = &v->plan->buffers[buffer];
  if (writes) v->written[b->allocation] = true;
  else if (!v->written[b->allocation]) return ax_error(AX_INTERNAL, "b%u is read before it is written", buffer);
  if (b->loop == AX_NONE || v->open[b->loop]) return AX_OK;
  return ax_error(AX_INTERNAL, "b%u is used outside of loop %u", buffer, b->loop);
}

/* --- Operations --- */

static void visit(void *context, uint32_t buffer, bool writes) {
  ax_plan_verifier *v = context;
  if (v->status == AX_OK) v->status = ax_verify_touch(v, buffer, writes);
}

ax_status ax_verify_inside(ax_plan_verifier *v, ax_op *op) {
  ax_op_visit(op, visit, v);
  AX_TRY(v->status);
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) AX_TRY(ax_verify_block(v, ax_op_block(op, k)));
  return AX_OK;
}

/* Run along what it writes is stored along; more, where a device's own part of a group's result is written. */
static ax_status check_axes(const ax_plan_verifier *v, const ax_op *op) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  const uint32_t to = rules->stored != NULL ? rules->stored(op) : AX_NONE;
  if (to == AX_NONE || v->plan->buffers[to].axes == op->axes) return AX_OK;
  return ax_error(AX_INTERNAL, "runs along %s, but b%u is stored along %s", ax_axis_set_string(op->axes, &v->plan->mesh), to,
                  ax_axis_set_string(v->plan->buffers[to].axes, &v->plan->mesh));
}

static ax_status check_op(ax_plan_verifier *v, ax_op *op) {
  if (((op->axes | op->diverging) & ~ax_all_axes(&v->plan->mesh)) != 0)
    return ax_error(AX_INTERNAL, "runs along axes that the mesh has not");
  if ((uint32_t)op->kind >= AX_OP_KINDS) return ax_error(AX_INTERNAL, "is no operation");
  const ax_op_rules *rules = ax_op_rules_of(op);
  AX_TRY(rules->verify(v, op));
  AX_TRY(check_axes(v, op));
  return rules->verify_inside != NULL ? rules->verify_inside(v, op) : ax_verify_inside(v, op);
}

ax_status ax_verify_block(ax_plan_verifier *v, const ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    ax_status status = check_op(v, op);
    if (status == AX_OK) continue;
    return ax_error_context(status, "operation %u%s%s: ", i, op->eqn != NULL ? ", of " : "",
                            op->eqn != NULL ? op->eqn->prim->name : "");
  }
  return AX_OK;
}

/* --- The plan --- */

/* An id that two loops have gets trips that neither has. */
static void find_loop(void *context, ax_op *op) {
  ax_plan_verifier *v = context;
  if (op->kind != AX_OP_LOOP || v->status != AX_OK) return;
  if (op->loop.id >= v->plan->loop_count) v->status = ax_error(AX_INTERNAL, "loop %u of %u", op->loop.id, v->plan->loop_count);
  else v->trips[op->loop.id] = v->trips[op->loop.id] == -2 ? op->loop.trips : -3;
}

static ax_status check_results(const ax_plan_verifier *v) {
  const ax_plan *plan = v->plan;
  for (uint32_t i = 0; i < plan->in_count; i++)
    if (plan->in[i] >= plan->buffer_count || plan->buffers[plan->in[i]].kind != AX_BUFFER_INPUT)
      return ax_error(AX_INTERNAL, "input %u is no input", i);
  for (uint32_t k = 0; k < plan->out_count; k++)
    if (plan->out[k] >= plan->buffer_count || !v->written[plan->buffers[plan->out[k]].allocation])
      return ax_error(AX_INTERNAL, "result %u is not written", k);
  return AX_OK;
}

static ax_status verify(ax_plan_verifier *v) {
  const ax_plan *plan = v->plan;
  v->written = ax_arena_alloc(&v->arena, plan->buffer_count);
  v->open = ax_arena_alloc(&v->arena, plan->loop_count);
  v->trips = ax_arena_alloc(&v->arena, plan->loop_count * sizeof v->trips[0]);
  v->exchanges = ax_arena_alloc(&v->arena, plan->exchange_count);
  if (v->written == NULL || v->open == NULL || v->trips == NULL || v->exchanges == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < plan->loop_count; i++) v->trips[i] = -2;
  for (uint32_t i = 0; i < plan->buffer_count; i++) v->written[i] = plan->buffers[i].kind != AX_BUFFER_TEMP;
  ax_block_walk(&plan->block, find_loop, v);
  AX_TRY(v->status);
  AX_TRY(check_buffers(v));
  AX_TRY(ax_verify_block(v, &plan->block));
  return check_results(v);
}

ax_status ax_plan_verify(const ax_plan *plan) {
  ax_plan_verifier v = {.plan = plan};
  ax_status status = verify(&v);
  ax_arena_deinit(&v.arena);
  return status == AX_OK || status == AX_OUT_OF_MEMORY ? status : ax_error_context(status, "verify: ");
}
