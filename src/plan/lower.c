/* The plan under construction: buffers, operations, nested blocks, and the walk that calls each primitive's lower rule. */
#include "plan/lowering.h"
#include "plan/passes.h"

#include <string.h>

#include "ir/flow.h"
#include "ir/memo.h"
#include "ir/path.h"
#include "ir/prim.h"

/* --- Buffers --- */

ax_status ax_plan_add_buffer(ax_plan *plan, const ax_buffer *buffer, uint32_t *out) {
  AX_TRY(ax_grow(&plan->buffers, sizeof plan->buffers[0], plan->buffer_count, 1, &plan->buffer_capacity));
  plan->buffers[plan->buffer_count] = *buffer;
  if (buffer->allocation == AX_NONE) plan->buffers[plan->buffer_count].allocation = plan->buffer_count;
  *out = plan->buffer_count++;
  return AX_OK;
}

ax_status ax_lower_buffer(ax_lower *lower, const ax_type *type, ax_axis_set axes, uint32_t *out) {
  ax_buffer buffer = {.type = ax_array_type(type->dtype, AX_LIST(type->rank, type->dims)),
                      .axes = axes | lower->diverging, .allocation = AX_NONE, .loop = AX_NONE};
  return ax_plan_add_buffer(lower->plan, &buffer, out);
}

ax_status ax_lower_result(ax_lower *lower, const ax_eqn *eqn, uint32_t k, uint32_t *out) {
  return ax_lower_buffer(lower, &lower->program->types[eqn->out + k], lower->differs[eqn->out + k], out);
}

ax_status ax_lower_view(ax_lower *lower, uint32_t buffer, const ax_type *type, int64_t offset, uint32_t loop,
                        int64_t step, uint32_t *out) {
  ax_buffer view = lower->plan->buffers[buffer];
  view.type = ax_array_type(type->dtype, AX_LIST(type->rank, type->dims));
  view.offset += offset;
  if (loop != AX_NONE) {
    if (view.loop != AX_NONE) { /* a view of one loop inside another's: copied out, so that one step is enough */
      uint32_t copy;
      AX_TRY(ax_lower_buffer(lower, &lower->plan->buffers[buffer].type, view.axes, &copy));
      AX_TRY(ax_lower_copy(lower, copy, buffer));
      return ax_lower_view(lower, copy, type, offset, loop, step, out);
    }
    view.loop = loop;
    view.step = step;
  }
  return ax_plan_add_buffer(lower->plan, &view, out);
}

const ax_buffer *ax_lower_get(const ax_lower *lower, uint32_t buffer) { return &lower->plan->buffers[buffer]; }

const ax_type *ax_lower_type(const ax_lower *lower, uint32_t buffer) { return &lower->plan->buffers[buffer].type; }

const ax_eqn *ax_lower_operand(const ax_lower *lower, const ax_eqn *eqn, uint32_t k, const ax_prim *prim) {
  const ax_eqn *made_by = lower->made_by != NULL ? lower->made_by[eqn->in[k]] : NULL;
  return made_by != NULL && made_by->prim == prim ? made_by : NULL;
}

/* --- Operations --- */

ax_status ax_lower_append(ax_lower *lower, const ax_op *op) {
  ax_block *block = lower->block;
  if (block->count == block->capacity) {
    uint32_t capacity = block->capacity < 4 ? 4 : block->capacity * 2;
    ax_op *ops = ax_arena_alloc(&lower->plan->drafts, capacity * sizeof ops[0]);
    if (ops == NULL) return ax_out_of_memory(capacity * sizeof ops[0]);
    if (block->count > 0) memcpy(ops, block->ops, block->count * sizeof ops[0]);
    block->ops = ops;
    block->capacity = capacity;
  }
  block->ops[block->count++] = *op;
  return AX_OK;
}

/* Appends an operation for the equation being lowered. */
static ax_status add_op(ax_lower *lower, const ax_op *op) {
  ax_op made = *op;
  made.eqn = lower->eqn;
  made.program = lower->program;
  made.diverging = lower->diverging;
  return ax_lower_append(lower, &made);
}

ax_status ax_lower_kernel_begin(ax_lower *lower, uint32_t rank, uint32_t reduce_rank, const int64_t *dims) {
  lower->kernel = ax_kernel_create(&lower->plan->drafts, rank, reduce_rank, dims);
  return lower->kernel != NULL ? AX_OK : ax_out_of_memory(sizeof *lower->kernel);
}

/* The kernel's slot for a buffer. */
static uint32_t slot_of(ax_lower *lower, uint32_t buffer) {
  ax_loop_kernel *kernel = lower->kernel;
  for (uint32_t i = 0; i < kernel->slot_count; i++)
    if (lower->buffers[i] == buffer) return i;
  const ax_type *type = &lower->plan->buffers[buffer].type;
  if (ax_grow(&lower->buffers, sizeof lower->buffers[0], kernel->slot_count, 1, &lower->buffers_capacity) != AX_OK) {
    kernel->failed = true;
    return 0;
  }
  uint32_t slot = ax_kernel_slot(kernel, type->dtype, type->rank, type->dims);
  lower->buffers[slot] = buffer;
  return slot;
}

/* A constant of one element becomes part of the code instead of a load, so that values made of constants alone depend on no
   memory. */
bool ax_lower_constant(const ax_buffer *buffer, int64_t *bits) {
  if (buffer->kind != AX_BUFFER_CONST || buffer->loop != AX_NONE || ax_type_elems(&buffer->type) != 1) return false;
  if (ax_is_complex(buffer->type.dtype)) return false;
  *bits = 0;
  memcpy(bits, (const char *)buffer->data + buffer->offset, ax_dtype_bytes(buffer->type.dtype));
  return true;
}

ax_ex ax_lower_load(ax_lower *lower, uint32_t buffer, const ax_position *at) {
  int64_t bits;
  const ax_buffer *source = &lower->plan->buffers[buffer];
  if (ax_lower_constant(source, &bits)) return ax_kernel_const(lower->kernel, source->type.dtype, bits);
  uint32_t slot = slot_of(lower, buffer);
  return ax_kernel_load(lower->kernel, slot, at);
}

ax_ex ax_lower_load_where(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_ex guard) {
  ax_loop_kernel *kernel = lower->kernel;
  int64_t bits;
  const ax_buffer *source = &lower->plan->buffers[buffer];
  ax_dtype dtype = source->type.dtype;
  if (!ax_lower_constant(source, &bits)) return ax_kernel_load_where(kernel, slot_of(lower, buffer), at, guard);
  ax_ex value = ax_kernel_const(kernel, dtype, bits);
  return guard == AX_NONE ? value : ax_kernel_op(kernel, AX_SCALAR_SELECT, dtype, guard, value, ax_kernel_const(kernel, dtype, 0));
}

ax_ex ax_lower_load_scalar(ax_lower *lower, uint32_t buffer) { return ax_lower_load(lower, buffer, NULL); }

void ax_lower_store(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_ex expr, ax_scalar reduce) {
  uint32_t slot = slot_of(lower, buffer);
  ax_kernel_store(lower->kernel, slot, at, expr, reduce);
}

ax_status ax_lower_kernel_end(ax_lower *lower) {
  ax_loop_kernel *kernel = lower->kernel;
  lower->kernel = NULL;
  uint32_t bytes = kernel->slot_count * (uint32_t)sizeof(uint32_t);
  ax_op op = {.kind = AX_OP_KERNEL, .kernel = {kernel, ax_arena_copy(&lower->plan->drafts, lower->buffers, bytes)}};
  if (kernel->failed && kernel->slot_count == AX_MAX_SLOTS)
    return ax_error(AX_ABSENT, "more than %d arrays in one kernel", AX_MAX_SLOTS);
  if (kernel->failed || op.kernel.buffers == NULL) return ax_out_of_memory(bytes);
  op.axes = lower->plan->buffers[op.kernel.buffers[kernel->stores[0].slot]].axes;
  return add_op(lower, &op);
}

ax_status ax_lower_copy(ax_lower *lower, uint32_t dst, uint32_t src) {
  AX_TRY(ax_lower_as_reals(lower, dst, &dst));
  AX_TRY(ax_lower_as_reals(lower, src, &src));
  ax_type type = lower->plan->buffers[dst].type;
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type.rank);
  AX_TRY(ax_lower_kernel_begin(lower, type.rank, 0, type.dims));
  ax_ex x = ax_lower_load(lower, src, at);
  ax_lower_store(lower, dst, at, x, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

ax_status ax_lower_gemm(ax_lower *lower, const ax_gemm *gemm) {
  const int64_t sizes[] = {gemm->m, gemm->n, gemm->k, gemm->lda, gemm->ldb, gemm->ldc};
  for (size_t i = 0; gemm->dtype == AX_F64 && i < AX_COUNT(sizes); i++) /* the library's sizes are ints */
    if (sizes[i] > INT32_MAX) return ax_error(AX_ABSENT, "a product in f64 with a dimension of %lld", (long long)sizes[i]);
  ax_gemm *copy = ax_arena_copy(&lower->plan->arena, gemm, sizeof *gemm);
  if (copy == NULL) return ax_out_of_memory(sizeof *gemm);
  return add_op(lower, &(ax_op){.kind = AX_OP_GEMM, .axes = lower->plan->buffers[gemm->c].axes, .gemm = copy});
}

uint32_t ax_routine_parts(double time, int64_t most) {
  enum { part_time = 30000, most_parts = 64 }; /* nanoseconds */
  const double wanted = time / part_time;
  if (most > most_parts) most = most_parts;
  return most <= 1 || wanted < 1 ? 1 : wanted < (double)most ? (uint32_t)wanted : (uint32_t)most;
}

ax_status ax_lower_routine(ax_lower *lower, const ax_routine *routine, size_t bytes) {
  ax_arena *arena = &lower->plan->arena;
  ax_routine *copy = ax_routine_copy(arena, routine);
  if (copy == NULL || (copy->data = ax_arena_copy(arena, routine->data, bytes)) == NULL) return ax_out_of_memory(bytes);
  return add_op(lower,
                &(ax_op){.kind = AX_OP_ROUTINE, .axes = lower->plan->buffers[copy->buffers[copy->in_count]].axes, .routine = copy});
}

/* Resolves the callback among the equation's parameters; *out NULL if none of them is one. */
static ax_status find_callback(const ax_lower *lower, const ax_eqn *eqn, ax_callback **out) {
  *out = NULL;
  for (uint32_t i = 0; i < eqn->prim->param_count; i++)
    if (eqn->prim->params[i].kind == AX_PARAM_CALLBACK)
      AX_TRY(ax_callback_resolve(lower->plan->options.hooks, *(ax_callback *const *)ax_param_at(eqn, &eqn->prim->params[i]), out));
  return AX_OK;
}

static ax_status add_eval(ax_lower *lower, const ax_eqn *eqn, ax_axis_set axes, const uint32_t *in, const uint32_t *out) {
  ax_op op = {.kind = AX_OP_EVAL, .axes = axes};
  AX_TRY(find_callback(lower, eqn, &op.eval.callback));
  op.eval.in = ax_arena_copy(&lower->plan->arena, in, eqn->in_count * sizeof in[0]);
  op.eval.out = ax_arena_copy(&lower->plan->arena, out, eqn->out_count * sizeof out[0]);
  if (op.eval.in == NULL || op.eval.out == NULL) return ax_out_of_memory(0);
  return add_op(lower, &op);
}

ax_status ax_lower_eval(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  bool alone = eqn->prim->kind == AX_LOCAL || (eqn->prim->outside != NULL && (ax_eqn_effects(eqn) & AX_EFFECT_EXCHANGE) == 0);
  if (!alone) return ax_error(AX_ABSENT, "%s: it has no lower rule", eqn->prim->name);
  for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  return add_eval(lower, eqn, eqn->out_count > 0 ? lower->plan->buffers[out[0]].axes : 0, in, out);
}

/* Wherever control differs, it does so along axes that are named: those in scope. What an operand is stored along says nothing:
   where messages order devices, that is all axes. */
ax_status ax_lower_host_call(ax_lower *lower, const ax_eqn *eqn, const ax_axes *names, const uint32_t *in, uint32_t *out) {
  ax_axis_set axes;
  AX_TRY(ax_axes_resolve(names, &lower->plan->mesh, &axes));
  for (uint32_t i = 0; i < eqn->in_count; i++) axes |= lower->differs[eqn->in[i]];
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
    lower->plan->buffers[out[k]].axes = axes;
  }
  return add_eval(lower, eqn, axes, in, out);
}

/* --- Exchanges --- */

ax_status ax_lower_start(ax_lower *lower, const ax_exchange *exchange, ax_exchange **started) {
  ax_plan *plan = lower->plan;
  ax_exchange *copy = *started = ax_arena_copy(&plan->arena, exchange, sizeof *exchange);
  if (copy == NULL) return ax_out_of_memory(sizeof *exchange);
  if (exchange->names.groups.count > 0) return ax_error(AX_INTERNAL, "an exchange over groups, which are gone by now");
  AX_TRY(ax_axes_resolve(&exchange->names, &plan->mesh, &copy->axes));
  copy->id = plan->exchange_count++;
  ax_buffer *out = &plan->buffers[exchange->out];
  if (exchange->peers == AX_PEERS_ONE) out->axes &= ~copy->axes; /* one result for the group, wherever its members are */
  else out->axes |= copy->axes;
  ax_axis_set in_axes = plan->buffers[exchange->in].axes;
  return add_op(lower, &(ax_op){.kind = AX_OP_START, .axes = in_axes | copy->axes | out->axes, .exchange = copy});
}

ax_status ax_lower_done(ax_lower *lower, ax_exchange *started) {
  return add_op(lower, &(ax_op){.kind = AX_OP_DONE, .axes = lower->plan->buffers[started->out].axes, .exchange = started});
}

ax_status ax_lower_message(ax_lower *lower, ax_op_kind kind, const ax_mail *message) {
  ax_mail *copy = ax_arena_copy(&lower->plan->arena, message, sizeof *message);
  if (copy == NULL) return ax_out_of_memory(sizeof *message);
  AX_TRY(ax_axes_resolve(&message->names, &lower->plan->mesh, &copy->axes));
  return add_op(lower, &(ax_op){.kind = kind, .axes = ax_all_axes(&lower->plan->mesh), .message = copy});
}

ax_status ax_lower_ragged(ax_lower *lower, ax_ragged *ragged, ax_ragged_step step) {
  return add_op(lower,
                &(ax_op){.kind = AX_OP_RAGGED, .axes = lower->plan->buffers[ragged->table].axes, .ragged = ragged, .step = step});
}

ax_status ax_lower_cores(ax_lower *lower, ax_cores *cores, ax_cores_step step) {
  return add_op(lower,
                &(ax_op){.kind = AX_OP_CORES, .axes = lower->plan->buffers[cores->state].axes, .cores = cores, .cores_step = step});
}

/* --- Regions --- */

static ax_op *last_op(ax_block *block) { return &block->ops[block->count - 1]; }

ax_status ax_lower_loop_begin(ax_lower *lower, int64_t trips, ax_axis_set axes, ax_block **outer, uint32_t *id) {
  *outer = lower->block;
  *id = lower->plan->loop_count++;
  AX_TRY(add_op(lower, &(ax_op){.kind = AX_OP_LOOP, .axes = axes, .loop = {.id = *id, .trips = trips}}));
  ax_op *op = last_op(lower->block);
  lower->block = trips < 0 ? &op->loop.test : &op->loop.body;
  lower->diverging |= axes;
  return AX_OK;
}

ax_status ax_lower_loop_test(ax_lower *lower, ax_block *outer, uint32_t condition) {
  ax_op *op = last_op(outer);
  op->loop.condition = condition;
  lower->block = &op->loop.body;
  return AX_OK;
}

static void close_region(ax_lower *lower, ax_block *outer) {
  lower->block = outer;
  lower->diverging = last_op(outer)->diverging;
}

void ax_lower_loop_end(ax_lower *lower, ax_block *outer) { close_region(lower, outer); }

ax_status ax_lower_branch_begin(ax_lower *lower, uint32_t index, uint32_t count, ax_axis_set axes, ax_block **outer) {
  *outer = lower->block;
  ax_block *blocks = ax_arena_alloc(&lower->plan->arena, count * sizeof blocks[0]);
  if (blocks == NULL) return ax_out_of_memory(count * sizeof blocks[0]);
  AX_TRY(add_op(lower, &(ax_op){.kind = AX_OP_BRANCH, .axes = axes, .branch = {index, count, blocks}}));
  lower->diverging |= axes;
  return AX_OK;
}

void ax_lower_branch_case(ax_lower *lower, ax_block *outer, uint32_t k) { lower->block = &last_op(outer)->branch.blocks[k]; }

void ax_lower_branch_end(ax_lower *lower, ax_block *outer) { close_region(lower, outer); }

/* --- The walk --- */

/* Adds to the message which equation cannot be compiled. An equation with a region is not named, since the one inside it has
   been. */
static ax_status refuse(const ax_lower *lower, const ax_eqn *eqn, ax_status status) {
  ax_text text = {0};
  ax_path path;
  if (status != AX_ABSENT || eqn->prim->kind == AX_REGION) return status;
  ax_path_find(lower->plan->program, lower->program, eqn, &path);
  ax_path_text(&text, &path);
  status = ax_error_context(status, "%s%s: ", eqn->prim->name, text.data != NULL && !text.failed ? text.data : "");
  ax_text_deinit(&text);
  return status;
}

static bool has_complex(const ax_program *program, const ax_eqn *eqn) {
  bool found = false;
  for (uint32_t i = 0; i < eqn->in_count; i++) found = found || ax_is_complex(program->types[eqn->in[i]].dtype);
  for (uint32_t k = 0; k < eqn->out_count; k++) found = found || ax_is_complex(program->types[eqn->out + k].dtype);
  return found;
}

static ax_status lower_eqn(ax_lower *lower, const ax_eqn *eqn, uint32_t *map, uint32_t *in) {
  const ax_plan_options *options = &lower->plan->options;
  uint32_t first = lower->block->count, *out = map + eqn->out;
  lower->eqn = eqn;
  for (uint32_t k = 0; k < eqn->in_count; k++) in[k] = map[eqn->in[k]];
  for (uint32_t k = 0; k < eqn->out_count; k++) lower->made_by[eqn->out + k] = eqn;
  bool by_eval = options->reference && eqn->prim->kind == AX_LOCAL;
  const bool is_complex = eqn->prim->complex != NULL && has_complex(lower->program, eqn);
  ax_status status = by_eval      ? ax_lower_eval(lower, eqn, in, out)
                     : is_complex ? eqn->prim->complex(lower, eqn, in, out)
                                  : eqn->prim->lower(lower, eqn, in, out);
  if (status != AX_OK) return refuse(lower, eqn, status);
  return options->check != 0 ? ax_lower_checks(lower, eqn, first, in, out) : AX_OK;
}

/* The axes along which the program's values differ, given as these buffers. NULL: no memory. */
static const ax_axis_set *differs_of(ax_lower *lower, const ax_program *program, const uint32_t *in) {
  ax_plan *plan = lower->plan;
  ax_axis_set *axes = ax_arena_alloc(&plan->drafts, program->in_count * sizeof axes[0]);
  if (axes == NULL) return NULL;
  for (uint32_t i = 0; i < program->in_count; i++) axes[i] = plan->buffers[in[i]].axes;
  return ax_flow_program(lower->flow, program, axes);
}

ax_status ax_lower_program(ax_lower *lower, const ax_program *program, const uint32_t *in, uint32_t *out) {
  ax_plan *plan = lower->plan;
  ax_lower saved = *lower;
  uint32_t *map = ax_arena_alloc(&plan->drafts, program->value_count * sizeof map[0]);
  uint32_t *operands = ax_arena_alloc(&plan->drafts, ax_most_operands(program) * sizeof operands[0]);
  const ax_eqn **made_by = ax_arena_alloc(&plan->drafts, program->value_count * sizeof(ax_eqn *));
  if (map == NULL || operands == NULL || made_by == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < program->in_count; i++) {
    map[i] = in[i];
    made_by[i] = NULL;
  }
  lower->program = program;
  lower->map = map;
  lower->made_by = made_by;
  lower->differs = differs_of(lower, program, in);
  if (lower->differs == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < program->eqn_count; i++) AX_TRY(lower_eqn(lower, &program->eqns[i], map, operands));
  for (uint32_t i = 0; i < program->out_count; i++) out[i] = map[program->outs[i]];
  lower->program = saved.program;
  lower->differs = saved.differs;
  lower->map = saved.map;
  lower->made_by = saved.made_by;
  lower->eqn = saved.eqn;
  return AX_OK;
}

/* --- The plan --- */

/* Messages may put each device at a different place of the program. So may loops in which devices choose whether to exchange, as exchanges
   are matched by count. If one device computed a value for all, it could be waiting for a device that waits for that value. So each
   device computes its own. */
static ax_status find_diverging(ax_lower *lower, const ax_program *program, const uint32_t *in) {
  lower->diverging = (program->effects & AX_EFFECT_MESSAGE) != 0 ? ax_all_axes(&lower->plan->mesh) : 0;
  if (lower->diverging != 0 || (program->effects & AX_EFFECT_EXCHANGE) == 0) return AX_OK;
  if (differs_of(lower, program, in) == NULL) return ax_out_of_memory(0);
  lower->diverging = lower->flow->choosing;
  return AX_OK;
}

static ax_status add_input(ax_plan *plan, uint32_t i, ax_axis_set axes) {
  const ax_type *type = &plan->program->types[i];
  ax_buffer buffer = {.kind = AX_BUFFER_INPUT,
                      .type = ax_array_type(type->dtype, AX_LIST(type->rank, type->dims)),
                      .axes = axes,
                      .index = i,
                      .allocation = AX_NONE,
                      .loop = AX_NONE};
  return ax_plan_add_buffer(plan, &buffer, &plan->in[i]);
}

/* Whether result k is all of a memory of its own that is stored along `axes`. */
static bool storable(const ax_plan *plan, uint32_t k, ax_axis_set axes, const bool *taken) {
  const ax_buffer *buffer = &plan->buffers[plan->out[k]], *allocation = &plan->buffers[buffer->allocation];
  return allocation->kind == AX_BUFFER_TEMP && !taken[buffer->allocation] && buffer->offset == 0 && buffer->loop == AX_NONE &&
         buffer->axes == axes && allocation->axes == axes &&
         ax_type_elems(&buffer->type) * (int64_t)ax_dtype_bytes(buffer->type.dtype) ==
             ax_type_elems(&allocation->type) * (int64_t)ax_dtype_bytes(allocation->type.dtype);
}

/* The axes along which result k is stored: those along which its array is cut. If much memory is saved, blocks that are the same
   are stored once; then no run can write into the array, so small ones have a memory for each block. */
static ax_axis_set stored_along(const ax_plan *plan, uint32_t k) {
  enum { worth_bytes = 64 << 10 };
  const ax_buffer *buffer = &plan->buffers[plan->out[k]];
  const ax_axis_set wanted = plan->out_axes[k], differs = wanted & buffer->axes;
  const int64_t blocks = ax_axis_set_size(wanted, &plan->mesh) - ax_axis_set_size(differs, &plan->mesh);
  const int64_t bytes = ax_type_elems(&buffer->type) * (int64_t)ax_dtype_bytes(buffer->type.dtype);
  return blocks > 0 && bytes >= worth_bytes / blocks ? differs : wanted;
}

/* Results that are inputs, constants, parts of something or the same thing twice are copied, so that each has its memory; so are
   those stored along other axes. Of one that differs along more, the first device's is taken. */
static ax_status store_results(ax_lower *lower, const ax_axis_set *axes) {
  ax_plan *plan = lower->plan;
  bool *taken =
      ax_arena_alloc(&plan->drafts, plan->buffer_count); /* allocations that are an earlier result's; copies are not looked up */
  if (taken == NULL) return ax_out_of_memory(plan->buffer_count);
  for (uint32_t k = 0; k < plan->out_count; k++) {
    plan->out_axes[k] = axes != NULL ? axes[k] : ax_spread_differs(&ax_program_out_type(plan->program, k)->spread);
    const ax_axis_set stored = stored_along(plan, k);
    if (!storable(plan, k, stored, taken)) {
      uint32_t copy;
      const ax_type type = plan->buffers[plan->out[k]].type;
      AX_TRY(ax_lower_buffer(lower, &type, stored, &copy));
      AX_TRY(ax_lower_copy(lower, copy, plan->out[k]));
      plan->out[k] = copy;
    } else {
      taken[plan->buffers[plan->out[k]].allocation] = true;
    }
  }
  return AX_OK;
}

static ax_status build(ax_plan *plan, ax_lower *lower, const ax_axis_set *in_axes, const ax_axis_set *out_axes) {
  ax_program *program = plan->program;
  plan->mesh = program->axes;
  plan->in_count = program->in_count;
  plan->out_count = program->out_count;
  plan->in = ax_arena_alloc(&plan->arena, program->in_count * sizeof plan->in[0]);
  plan->out = ax_arena_alloc(&plan->arena, program->out_count * sizeof plan->out[0]);
  plan->out_axes = ax_arena_alloc(&plan->arena, program->out_count * sizeof plan->out_axes[0]);
  if (plan->in == NULL || plan->out == NULL || plan->out_axes == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < program->in_count; i++)
    AX_TRY(add_input(plan, i, in_axes != NULL ? in_axes[i] : ax_spread_differs(&program->types[i].spread)));
  AX_TRY(find_diverging(lower, program, plan->in));
  AX_TRY(ax_lower_program(lower, program, plan->in, plan->out));
  lower->diverging = 0;
  lower->program = program; /* the copies' */
  return store_results(lower, out_axes);
}

ax_status ax_plan_create(ax_program *program, const ax_axis_set *in_axes, const ax_axis_set *out_axes,
                         const ax_plan_options *options, ax_plan **out) {
  ax_plan *plan = *out = ax_calloc(1, sizeof *plan);
  if (plan == NULL) return ax_out_of_memory(sizeof *plan);
  plan->program = ax_program_retain(program);
  if (options != NULL) plan->options = *options;
  ax_memo memo = {0};
  ax_flow flow = {.memo = &memo, .question = "differs", .first_apart = plan->options.check == 0}; /* checks say in which step */
  ax_lower lower = {.plan = plan, .block = &plan->block, .flow = &flow};
  ax_status status = build(plan, &lower, in_axes, out_axes);
  ax_free(lower.buffers);
  ax_free(lower.operand);
  ax_free(lower.parts);
  ax_memo_deinit(&memo);
  if (status == AX_OK) return AX_OK;
  ax_plan_destroy(plan);
  *out = NULL;
  return status;
}

ax_status ax_plan_keep(ax_plan *plan, ax_program *program) {
  ax_status status = ax_grow(&plan->kept, sizeof plan->kept[0], plan->kept_count, 1, &plan->kept_capacity);
  if (status == AX_OK) plan->kept[plan->kept_count++] = program;
  else ax_program_release(program);
  return status;
}

void ax_plan_destroy(ax_plan *plan) {
  if (plan == NULL) return;
  for (ax_cores *c = plan->cores; c != NULL; c = c->next) c->rules->release(c->kernel); /* they know programs */
  ax_program_release(plan->program);
  for (uint32_t i = 0; i < plan->kept_count; i++) ax_program_release(plan->kept[i]);
  ax_free(plan->kept);
  ax_free(plan->buffers);
  ax_arena_deinit(&plan->arena);
  ax_arena_deinit(&plan->drafts);
  ax_free(plan);
}
