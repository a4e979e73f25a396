/* Questions about plans that every pass asks, and their text. */
#include "ir/path.h"
#include "plan/passes.h"

static void visit_kernel(const ax_op *op, ax_visit visit, void *context) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (kernel->exprs[i].op == AX_LEAF_LOAD) visit(context, op->kernel.buffers[kernel->exprs[i].slot], false);
  for (uint32_t i = 0; i < kernel->store_count; i++) visit(context, op->kernel.buffers[kernel->stores[i].slot], true);
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
    case AX_RAGGED_RELEASE: out[count++] = (ax_ragged_buffer){ragged->released, true, false}; break;
  }
  return count;
}

static void visit_ragged(const ax_op *op, ax_visit visit, void *context) {
  ax_ragged_buffer list[AX_RAGGED_MOST];
  uint32_t count = ax_ragged_buffers(op->ragged, op->step, list);
  for (uint32_t k = 0; k < count; k++)
    if (list[k].reads) visit(context, list[k].buffer, false);
  for (uint32_t k = 0; k < count; k++)
    if (list[k].writes) visit(context, list[k].buffer, true);
}

ax_status ax_plan_keep_cores(ax_plan *plan, const ax_cores *cores, ax_cores **out) {
  uint32_t count = cores->in_count + cores->out_count;
  *out = ax_arena_copy(&plan->arena, cores, sizeof *cores);
  uint32_t *buffers = ax_arena_copy(&plan->arena, cores->buffers, count * sizeof buffers[0]);
  if (*out == NULL || (buffers == NULL && count > 0)) {
    cores->rules->release(cores->kernel);
    return ax_out_of_memory(sizeof *cores);
  }
  (*out)->buffers = buffers;
  (*out)->next = plan->cores;
  plan->cores = *out;
  return AX_OK;
}

uint32_t ax_cores_buffer_count(const ax_cores *cores, ax_cores_step step) {
  bool group = cores->came != AX_NONE;
  return 1 + cores->in_count + cores->out_count + (!group ? 0 : step == AX_CORES_RUN ? 2 : 1);
}

ax_cores_buffer ax_cores_buffer_at(const ax_cores *cores, ax_cores_step step, uint32_t k) {
  bool run = step == AX_CORES_RUN, leave = step == AX_CORES_LEAVE, alone = cores->came == AX_NONE;
  if (k == 0)
    return (ax_cores_buffer){cores->state, leave || (run && !alone), !leave}; /* others run cores in it until all are through */
  uint32_t at = k - 1;
  if (at < cores->in_count) return (ax_cores_buffer){cores->buffers[at], true, false};
  if (at < cores->in_count + cores->out_count)
    return (ax_cores_buffer){cores->buffers[at], leave || (run && !alone) || at - cores->in_count >= cores->fresh_count, !leave};
  bool last = at > cores->in_count + cores->out_count;
  if (step == AX_CORES_ENTER) return (ax_cores_buffer){cores->came, false, true};
  if (leave) return (ax_cores_buffer){cores->all_done, true, false};
  return last ? (ax_cores_buffer){cores->done, false, true} : (ax_cores_buffer){cores->all_came, true, false};
}

static void visit_cores(const ax_op *op, ax_visit visit, void *context) {
  uint32_t count = ax_cores_buffer_count(op->cores, op->cores_step);
  for (int writes = 0; writes < 2; writes++)
    for (uint32_t k = 0; k < count; k++) {
      const ax_cores_buffer b = ax_cores_buffer_at(op->cores, op->cores_step, k);
      if (writes ? b.writes : b.reads) visit(context, b.buffer, writes);
    }
}

void ax_op_visit(const ax_op *op, ax_visit visit, void *context) {
  switch (op->kind) {
    case AX_OP_NONE: break;
    case AX_OP_KERNEL: visit_kernel(op, visit, context); break;
    case AX_OP_ROWS:
      for (uint32_t k = 0; k < op->rows->count; k++) ax_op_visit(&op->rows->members[k], visit, context);
      break;
    case AX_OP_GEMM:
      visit(context, op->gemm->a, false);
      visit(context, op->gemm->b, false);
      if (op->gemm->accumulate) visit(context, op->gemm->c, false);
      visit(context, op->gemm->c, true);
      break;
    case AX_OP_EVAL:
      for (uint32_t k = 0; k < op->eqn->in_count; k++) visit(context, op->eval.in[k], false);
      for (uint32_t k = 0; k < op->eqn->out_count; k++) visit(context, op->eval.out[k], true);
      break;
    case AX_OP_ROUTINE:
      for (uint32_t k = 0; k < op->routine->in_count + (op->routine->updates ? op->routine->out_count : 0); k++)
        visit(context, op->routine->buffers[k], false);
      for (uint32_t k = 0; k < op->routine->out_count; k++) visit(context, op->routine->buffers[op->routine->in_count + k], true);
      break;
    case AX_OP_START:
      visit(context, op->exchange->in, false);
      visit(context, op->exchange->out, true);
      break;
    case AX_OP_DONE:
      if (op->exchange->peers == AX_PEERS_PAIRS) visit(context, op->exchange->out, true);
      break;
    case AX_OP_SEND: visit(context, op->message->buffer, false); break;
    case AX_OP_RECEIVE: visit(context, op->message->buffer, true); break;
    case AX_OP_RAGGED: visit_ragged(op, visit, context); break;
    case AX_OP_CORES: visit_cores(op, visit, context); break;
    case AX_OP_CHECK:
      for (uint32_t k = 0; k < op->check.count; k++) visit(context, op->check.buffers[k], false);
      break;
    case AX_OP_LOOP:
      if (op->loop.trips < 0) visit(context, op->loop.condition, false);
      break;
    case AX_OP_BRANCH: visit(context, op->branch.index, false); break;
  }
}

double ax_gemm_time(const ax_gemm *g) {
  return 0.012 * (double)g->m * (double)g->n * (double)g->k * (double)ax_dims_elems(g->term_rank, g->terms) *
         (double)ax_dims_elems(g->batch_rank, g->batch);
}

double ax_rows_time(const ax_rows *rows) {
  double time = 0;
  for (uint32_t k = 0; k < rows->count; k++) {
    const ax_op *member = &rows->members[k];
    time += member->kind == AX_OP_GEMM ? ax_gemm_time(member->gemm) : ax_kernel_time(member->kernel.kernel) * (double)rows->outer;
  }
  return time;
}

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

ax_routine *ax_routine_copy(ax_arena *arena, const ax_routine *routine) {
  ax_routine *made = ax_arena_copy(arena, routine, sizeof *made);
  if (made == NULL) return NULL;
  made->buffers = ax_arena_copy(arena, routine->buffers, (routine->in_count + routine->out_count) * sizeof made->buffers[0]);
  return made->buffers != NULL ? made : NULL;
}

ax_block *ax_op_block(ax_op *op, uint32_t index) {
  if (op->kind == AX_OP_LOOP) return index == 0 ? &op->loop.test : index == 1 ? &op->loop.body : NULL;
  return op->kind == AX_OP_BRANCH && index < op->branch.count ? &op->branch.blocks[index] : NULL;
}

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

bool ax_op_is_ordered(const ax_op *op) {
  if (op->kind == AX_OP_CHECK) return true;
  return op->eqn != NULL && (op->eqn->prim->effects & (AX_EFFECT_ORDER | AX_EFFECT_STATE)) != 0;
}

bool ax_op_takes_turns(const ax_op *op) {
  return op->kind == AX_OP_EVAL && op->eqn != NULL && (op->eqn->prim->effects & AX_EFFECT_ORDER) != 0;
}

bool ax_op_has_messages(const ax_op *op) {
  if (op->kind == AX_OP_SEND || op->kind == AX_OP_RECEIVE) return true;
  bool holds = op->kind == AX_OP_LOOP || op->kind == AX_OP_BRANCH;
  return holds && op->eqn != NULL && (ax_eqn_effects(op->eqn) & AX_EFFECT_MESSAGE) != 0;
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

static void block_text(ax_text *text, const ax_plan *plan, const ax_block *block, int indent);

static void add_list(ax_text *text, const char *lead, const uint32_t *buffers, uint32_t count) {
  ax_text_add(text, "%s", lead);
  for (uint32_t i = 0; i < count; i++) ax_text_add(text, " b%u", buffers[i]);
}

static void gemm_text(ax_text *text, const ax_gemm *gemm) {
  ax_text_add(text, "gemm b%u %s b%u%s %sb%u%s m=%lld n=%lld k=%lld", gemm->c, gemm->accumulate ? "+=" : "=", gemm->a,
              gemm->transpose_a ? "'" : "", gemm->packed ? "packed " : "", gemm->b, gemm->transpose_b ? "'" : "",
              (long long)gemm->m, (long long)gemm->n, (long long)gemm->k);
  for (uint32_t i = 0; i < gemm->term_rank; i++) ax_text_add(text, " terms=%lld", (long long)gemm->terms[i]);
  for (uint32_t i = 0; i < gemm->batch_rank; i++) ax_text_add(text, " batch=%lld", (long long)gemm->batch[i]);
  ax_text_add(text, "\n");
}

static void ragged_text(ax_text *text, const ax_plan *plan, const ax_op *op) {
  static const char *const steps[] = {"pack", "take", "release"};
  ax_ragged_buffer list[AX_RAGGED_MOST];
  uint32_t count = ax_ragged_buffers(op->ragged, op->step, list);
  ax_text_add(text, "%s over %s:", steps[op->step], ax_axis_set_string(op->ragged->axes, &plan->mesh));
  for (uint32_t k = 0; k < count; k++) ax_text_add(text, " b%u", list[k].buffer);
  ax_text_add(text, "\n");
}

static void cores_text(ax_text *text, const ax_plan *plan, const ax_op *op) {
  static const char *const steps[] = {"enter", "run", "leave"};
  ax_text_add(text, "cores %s", steps[op->cores_step]);
  if (op->cores->came != AX_NONE) ax_text_add(text, " over %s", ax_axis_set_string(op->cores->axes, &plan->mesh));
  ax_text_add(text, ":");
  for (uint32_t k = 0; k < ax_cores_buffer_count(op->cores, op->cores_step); k++)
    ax_text_add(text, " b%u", ax_cores_buffer_at(op->cores, op->cores_step, k).buffer);
  ax_text_add(text, "\n");
}

static void op_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent);

static void rows_text(ax_text *text, const ax_plan *plan, const ax_rows *rows, int indent) {
  ax_text_add(text, "%lld rows, %lld at a time, %lld bytes of them beside memory\n", (long long)(rows->outer * rows->extent),
              (long long)rows->step, (long long)rows->block_bytes);
  for (uint32_t k = 0; k < rows->count; k++) op_text(text, plan, &rows->members[k], indent + 4);
}

static void op_text(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  ax_text_add(text, "%*son %s", indent, "", ax_axis_set_string(op->axes, &plan->mesh));
  if (op->eqn != NULL) {
    ax_text_add(text, ", ");
    ax_origin_text(text, op->eqn);
  }
  ax_text_add(text, ": ");
  switch (op->kind) {
    case AX_OP_NONE: break;
    case AX_OP_KERNEL:
      add_list(text, "kernel of", op->kernel.buffers, op->kernel.kernel->slot_count);
      ax_text_add(text, ", ");
      ax_kernel_text(text, op->kernel.kernel);
      break;
    case AX_OP_ROWS: rows_text(text, plan, op->rows, indent); break;
    case AX_OP_GEMM: gemm_text(text, op->gemm); break;
    case AX_OP_EVAL:
      ax_text_add(text, "eval %s", op->eqn->prim->name);
      add_list(text, " of", op->eval.in, op->eqn->in_count);
      add_list(text, " to", op->eval.out, op->eqn->out_count);
      ax_text_add(text, "\n");
      break;
    case AX_OP_ROUTINE:
      ax_text_add(text, "%s%s of", op->routine->name != NULL ? op->routine->name : "routine",
                  op->routine->updates ? ", updating," : "");
      add_list(text, "", op->routine->buffers, op->routine->in_count);
      add_list(text, " to", op->routine->buffers + op->routine->in_count, op->routine->out_count);
      ax_text_add(text, ", in %u parts\n", op->routine->parts);
      break;
    case AX_OP_START:
      ax_text_add(text, "start %u: %s over %s, b%u to b%u\n", op->exchange->id, ax_scalar_name(op->exchange->combine),
                  ax_axis_set_string(op->exchange->axes, &plan->mesh), op->exchange->in, op->exchange->out);
      break;
    case AX_OP_DONE: ax_text_add(text, "done %u\n", op->exchange->id); break;
    case AX_OP_SEND:
    case AX_OP_RECEIVE:
      ax_text_add(text, "%s b%u over %s, link %lld\n", op->kind == AX_OP_SEND ? "send" : "receive", op->message->buffer,
                  ax_axis_set_string(op->message->axes, &plan->mesh), (long long)op->message->link);
      break;
    case AX_OP_RAGGED: ragged_text(text, plan, op); break;
    case AX_OP_CORES: cores_text(text, plan, op); break;
    case AX_OP_CHECK:
      ax_text_add(text, "check %s b%u", op->eqn->prim->name, op->check.buffers[0]);
      add_list(text, " of", op->check.buffers + 1, op->check.count - 1);
      ax_text_add(text, "\n");
      break;
    case AX_OP_LOOP:
      ax_text_add(text, "loop %u, %lld times\n", op->loop.id, (long long)op->loop.trips);
      block_text(text, plan, &op->loop.test, indent + 4);
      if (op->loop.trips < 0) ax_text_add(text, "%*swhile b%u\n", indent + 2, "", op->loop.condition);
      block_text(text, plan, &op->loop.body, indent + 4);
      break;
    case AX_OP_BRANCH:
      ax_text_add(text, "branch on b%u\n", op->branch.index);
      for (uint32_t k = 0; k < op->branch.count; k++) {
        ax_text_add(text, "%*scase %u\n", indent + 2, "", k);
        block_text(text, plan, &op->branch.blocks[k], indent + 4);
      }
      break;
  }
}

static void block_text(ax_text *text, const ax_plan *plan, const ax_block *block, int indent) {
  for (uint32_t i = 0; i < block->count; i++) op_text(text, plan, &block->ops[i], indent);
}

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
  block_text(text, plan, &plan->block, 0);
  add_list(text, "out:", plan->out, plan->out_count);
  ax_text_add(text, "\n");
}
