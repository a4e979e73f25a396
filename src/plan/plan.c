/* Questions about plans and their operations that every pass asks, and plans as text. */
#include "machine/rates.h"
#include "plan/op.h"

void ax_op_walk(ax_op *op, ax_visit_op visit, void *context) {
  visit(context, op);
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) ax_block_walk(ax_op_block(op, k), visit, context);
}

void ax_block_walk(const ax_block *block, ax_visit_op visit, void *context) {
  for (uint32_t i = 0; i < block->count; i++) ax_op_walk(&block->ops[i], visit, context);
}

typedef struct visitor {
  ax_visit visit;
  void *context;
} visitor;

static void visit_op(void *context, ax_op *op) {
  const visitor *v = context;
  ax_op_visit(op, v->visit, v->context);
}

void ax_op_visit_all(ax_op *op, ax_visit visit, void *context) { ax_op_walk(op, visit_op, &(visitor){visit, context}); }

typedef struct question {
  const ax_plan *plan;
  uint32_t allocation;
  ax_op_access access;
} question;

static void answer(void *context, uint32_t buffer, bool writes) {
  question *q = context;
  if (q->plan->buffers[buffer].allocation == q->allocation) *(writes ? &q->access.writes : &q->access.reads) = true;
}

ax_op_access ax_op_access_of(const ax_plan *plan, const ax_op *op, uint32_t allocation) {
  question q = {.plan = plan, .allocation = allocation};
  ax_op_visit(op, answer, &q);
  return q.access;
}

ax_op_access ax_op_access_all(const ax_plan *plan, const ax_op *op, uint32_t allocation) {
  question q = {.plan = plan, .allocation = allocation};
  ax_op_visit_all((ax_op *)op, answer, &q);
  return q.access;
}

static ax_status visit_blocks(ax_block *block, bool is_body, ax_visit_block visit, void *context) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++)
      AX_TRY(visit_blocks(ax_op_block(op, k), op->kind == AX_OP_LOOP && k == 1, visit, context));
  }
  return visit(context, block, is_body);
}

ax_status ax_blocks_visit(ax_block *block, ax_visit_block visit, void *context) {
  return visit_blocks(block, false, visit, context);
}

void ax_block_sweep(ax_block *block) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < block->count; i++)
    if (block->ops[i].kind != AX_OP_NONE) block->ops[kept++] = block->ops[i];
  block->count = kept;
}

typedef struct counts {
  const ax_plan *plan;
  uint32_t *reads, *writes;
} counts;

static void count_one(void *context, uint32_t buffer, bool writes) {
  counts *c = context;
  (writes ? c->writes : c->reads)[c->plan->buffers[buffer].allocation]++;
}

static void count_op(void *context, ax_op *op) { ax_op_visit(op, count_one, context); }

void ax_plan_count(const ax_plan *plan, uint32_t *reads, uint32_t *writes) {
  counts c = {plan, reads, writes};
  ax_block_walk(&plan->block, count_op, &c);
  for (uint32_t i = 0; i < plan->out_count; i++) reads[plan->buffers[plan->out[i]].allocation]++;
}

bool ax_is_whole(const ax_plan *plan, uint32_t buffer) {
  const ax_buffer *b = &plan->buffers[buffer];
  return b->offset == 0 && b->loop == AX_NONE && ax_buffer_bytes(b) == ax_buffer_bytes(&plan->buffers[b->allocation]);
}

bool ax_is_all(const ax_plan *plan, uint32_t buffer) {
  const ax_buffer *b = &plan->buffers[buffer];
  return ax_is_whole(plan, buffer) && b->type.dtype == plan->buffers[b->allocation].type.dtype;
}

bool ax_is_passed_on(const ax_plan *plan, const uint32_t *reads, const uint32_t *writes, uint32_t buffer) {
  const uint32_t allocation = plan->buffers[buffer].allocation;
  return plan->buffers[allocation].kind == AX_BUFFER_TEMP && reads[allocation] == 1 && writes[allocation] == 1 &&
         ax_is_whole(plan, buffer);
}

bool ax_op_is_copy(const ax_op *op, uint32_t *to, uint32_t *from, const ax_position **at) {
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op)) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  if (kernel->store_count != 1 || kernel->expr_count != 1 || kernel->reduce_rank != 0) return false;
  const ax_store *store = &kernel->stores[0];
  const ax_expr *load = &kernel->exprs[0];
  if (load->op != AX_LEAF_LOAD || !ax_kernel_covers(kernel, store->slot, store->at)) return false;
  *to = op->kernel.buffers[store->slot];
  *from = op->kernel.buffers[load->slot];
  *at = load->at;
  return true;
}

bool ax_op_copies_all(const ax_op *op, uint32_t *to, uint32_t *from) {
  const ax_position *at;
  return ax_op_is_copy(op, to, from, &at) && ax_kernel_covers(op->kernel.kernel, op->kernel.kernel->exprs[0].slot, at);
}

/* --- Questions about one kind of operation --- */

/* Products reach five sixths of the arithmetic, about. */
double ax_gemm_time(const ax_gemm *g) {
  const double flops = 2 * (double)g->m * (double)g->n * (double)g->k * (double)ax_dims_elems(g->term_rank, g->terms) *
                       (double)ax_dims_elems(g->batch_rank, g->batch);
  return 1.2e9 * ax_rates_computing(ax_rates_planned(), flops, g->dtype);
}

ax_routine *ax_routine_copy(ax_arena *arena, const ax_routine *routine) {
  ax_routine *made = ax_arena_copy(arena, routine, sizeof *made);
  if (made == NULL) return NULL;
  made->buffers = ax_arena_copy(arena, routine->buffers, (routine->in_count + routine->out_count) * sizeof made->buffers[0]);
  return made->buffers != NULL ? made : NULL;
}

uint32_t ax_ragged_buffers(const ax_ragged *ragged, ax_ragged_step step, ax_ragged_buffer *out) {
  enum { operand, input_offsets = 2, send_sizes, output_offsets, recv_sizes };
  uint32_t count = 0;
  out[count++] = (ax_ragged_buffer){ragged->in[operand], true, false};
  switch (step) {
    case AX_RAGGED_PACK:
      for (uint32_t k = input_offsets; k <= output_offsets; k++) out[count++] = (ax_ragged_buffer){ragged->in[k], true, false};
      out[count++] = (ax_ragged_buffer){ragged->table, false, true};
      break;
    case AX_RAGGED_TAKE:
      out[count++] = (ax_ragged_buffer){ragged->received, true, false};
      out[count++] = (ax_ragged_buffer){ragged->table, true, false};
      out[count++] = (ax_ragged_buffer){ragged->in[recv_sizes], true, false};
      out[count++] = (ax_ragged_buffer){ragged->work, false, true};
      out[count++] = (ax_ragged_buffer){ragged->out, ragged->base == AX_NONE, true};
      if (ragged->base != AX_NONE) out[count++] = (ax_ragged_buffer){ragged->base, true, false};
      if (ragged->shape.devices > 1) out[count++] = (ax_ragged_buffer){ragged->taken, false, true};
      break;
    case AX_RAGGED_RELEASE:
      out[count++] = (ax_ragged_buffer){ragged->released, true, false};
      break;
  }
  return count;
}

/* --- Kernels and products, alone or as members of a group of rows --- */

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

ax_op *ax_op_members(ax_op *op, uint32_t *count) {
  const bool group = op->kind == AX_OP_ROWS;
  *count = group ? op->rows->count : 1;
  return group ? op->rows->members : op;
}

double ax_op_member_time(const ax_op *member) {
  return member->kind == AX_OP_GEMM ? ax_gemm_time(member->gemm) : ax_kernel_time(member->kernel.kernel);
}

/* --- Text --- */

void ax_plan_text(ax_text *text, const ax_plan *plan) {
  for (const ax_called *c = plan->called; c != NULL; c = c->next)
    ax_text_add(text, "body of %u operations, lowered once for %u calls\n", c->op_count, c->call_count);
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const ax_buffer *buffer = &plan->buffers[i];
    static const char *const kinds[] = {"temp", "input", "const"};
    ax_text_add(text, "b%u: %s %s per %s", i, kinds[buffer->kind], ax_type_string(&buffer->type, &plan->mesh),
                ax_axis_set_string(buffer->axes, &plan->mesh));
    if (buffer->panels != NULL) ax_text_add(text, ", packed");
    if (buffer->allocation != i) ax_text_add(text, ", in b%u at %lld", buffer->allocation, (long long)buffer->offset);
    if (buffer->loop != AX_NONE) ax_text_add(text, " + %lld * loop %u", (long long)buffer->step, buffer->loop);
    ax_text_add(text, "\n");
  }
  ax_block_text(text, plan, &plan->block, 0);
  ax_buffers_text(text, "out:", plan->out, plan->out_count);
  ax_text_add(text, "\n");
}
