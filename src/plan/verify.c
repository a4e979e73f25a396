/* The verifier of plans: checks the promises of plan.h and kernel.h independently of the passes.

     buffers    an allocation is its own; a view begins and ends inside its allocation, in every iteration of its loop;
                axes are of the mesh
     kernels    slots are like the buffers they stand for; operands come before their users; every place loaded or stored is inside
     products   all places read and written lie inside the buffers
     ragged     tables have as many slices as there are, and arrays as many rows
     exchanges  the same, on both sides; started once, done once, in that order
     loops      each has an id of its own, and its views are used inside it alone; conditions and indices are scalars
     order      values made during the run are written before they are read

   Only a defect of Axle's own breaks one, so the status is AX_INTERNAL. It costs a walk over the plan. */
#include "plan/kernel_rewrite.h"
#include "plan/panels.h"
#include "plan/passes.h"
#include "product/product.h"

#include <string.h>

typedef struct verifier {
  const ax_plan *plan;
  ax_arena arena;
  bool *written;      /* by allocation */
  bool *open;         /* by loop: being walked */
  int64_t *trips;     /* by loop: -1 for while loops, -2 for loops that are not in the plan */
  uint8_t *exchanges; /* by exchange: 1 started, 2 done */
  ax_status status;   /* of a visit */
} verifier;

/* --- Buffers --- */

static ax_status check_view(const verifier *v, uint32_t id) {
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

static ax_status check_buffer(const verifier *v, uint32_t id) {
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

static ax_status check_buffers(const verifier *v) {
  for (uint32_t i = 0; i < v->plan->buffer_count; i++) {
    ax_status status = check_buffer(v, i);
    if (status != AX_OK) return ax_error_context(status, "b%u ", i);
  }
  return AX_OK;
}

/* --- Kernels --- */

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* The steps first .. last of loop index `dim` in which a guard may hold. */
static void narrow(const ax_loop_kernel *kernel, ax_ex guard, int dim, int64_t *first, int64_t *last) {
  if (guard == AX_NONE) return;
  const ax_expr *expr = &kernel->exprs[guard];
  if (expr->op == AX_SCALAR_AND) {
    narrow(kernel, expr->arg[0], dim, first, last);
    narrow(kernel, expr->arg[1], dim, first, last);
  }
  if (expr->op != AX_LEAF_INSIDE || expr->at->dim != dim || expr->at->coef == 0) return;
  int64_t coef = expr->at->coef, at_0 = -expr->at->offset, at_end = expr->imm - 1 - expr->at->offset;
  int64_t low = -divide_down(-(coef > 0 ? at_0 : at_end), coef), high = divide_down(coef > 0 ? at_end : at_0, coef);
  if (low > *first) *first = low;
  if (high < *last) *last = high;
}

/* The places that the static part of a position takes, where the guard holds. False: it never does. */
static bool range_of(const ax_loop_kernel *kernel, const ax_position *at, ax_ex guard, int64_t *low, int64_t *high) {
  int64_t first = 0, last = at->dim < 0 || kernel->dims[at->dim] == 0 ? 0 : kernel->dims[at->dim] - 1,
          coef = at->dim < 0 ? 0 : at->coef;
  if (at->dim >= 0) narrow(kernel, guard, at->dim, &first, &last);
  if (last < first) return false;
  *low = at->offset + coef * (coef < 0 ? last : first);
  *high = at->offset + coef * (coef < 0 ? first : last);
  return true;
}

/* `before`: nodes that a dynamic position may be. */
static ax_status check_position(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex guard, ax_ex before) {
  if (slot >= kernel->slot_count) return ax_error(AX_INTERNAL, "slot %u of %u", slot, kernel->slot_count);
  for (uint32_t d = 0; d < kernel->slots[slot].rank; d++) {
    int64_t low, high;
    if (at == NULL || at[d].dim >= (int)kernel->rank) return ax_error(AX_INTERNAL, "slot %u: position %u is missing", slot, d);
    if (at[d].dynamic != AX_NONE && (at[d].dynamic >= before || at[d].limit < 0))
      return ax_error(AX_INTERNAL, "slot %u: position %u is moved by e%u up to %lld", slot, d, at[d].dynamic,
                      (long long)at[d].limit);
    if (!range_of(kernel, &at[d], guard, &low, &high)) return AX_OK; /* nothing is touched */
    if (at[d].dynamic != AX_NONE) high += at[d].limit;
    if (low < 0 || high >= kernel->slots[slot].dims[d])
      return ax_error(AX_INTERNAL, "slot %u: position %u goes from %lld to %lld of %lld", slot, d, (long long)low, (long long)high,
                      (long long)kernel->slots[slot].dims[d]);
  }
  return AX_OK;
}

static bool is_empty(const ax_loop_kernel *kernel) { return ax_dims_elems(kernel->rank, kernel->dims) == 0; }

static bool is_short_float(ax_dtype dtype) { return dtype == AX_F32 || dtype == AX_BF16 || dtype == AX_F16; }

static bool suits_slot(const ax_store *store, ax_dtype value, ax_dtype slot) {
  return value == slot || (store->reduce != AX_SCALAR_NONE && is_short_float(value) && is_short_float(slot));
}

/* A store goes to places that follow from loop indices as its positions say, and from nothing else that they bring. */
static ax_status check_still(const ax_loop_kernel *kernel, const ax_store *store) {
  bool needed[AX_MOST_EXPRS] = {false};
  if (kernel->expr_count > AX_MOST_EXPRS) return AX_OK;
  for (uint32_t d = 0; d < kernel->slots[store->slot].rank; d++)
    if (store->at[d].dynamic != AX_NONE) needed[store->at[d].dynamic] = true;
  ax_kernel_needs(kernel, needed);
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    const ax_expr *expr = &kernel->exprs[e];
    bool moves = needed[e] && (expr->op == AX_LEAF_INDEX || expr->op == AX_LEAF_INSIDE);
    for (uint32_t d = 0; needed[e] && expr->op == AX_LEAF_LOAD && d < kernel->slots[expr->slot].rank; d++)
      moves = moves || expr->at[d].dim >= 0;
    if (moves)
      return ax_error(AX_INTERNAL, "slot %u: where e%u is stored depends on an index, by e%u", store->slot, store->expr, e);
  }
  return AX_OK;
}

/* Conditions on loop indices and conjunctions of them, and nothing else. */
static ax_status check_guard(const ax_loop_kernel *kernel, ax_ex load, ax_ex guard) {
  if (guard >= load) return ax_error(AX_INTERNAL, "e%u is guarded by e%u", load, guard);
  const ax_expr *expr = &kernel->exprs[guard];
  if (expr->op == AX_LEAF_INSIDE) return AX_OK;
  if (expr->op != AX_SCALAR_AND || expr->arg[0] >= guard || expr->arg[1] >= guard)
    return ax_error(AX_INTERNAL, "e%u is guarded by e%u", load, guard);
  AX_TRY(check_guard(kernel, load, expr->arg[0]));
  return check_guard(kernel, load, expr->arg[1]);
}

static ax_status check_nest(const ax_loop_kernel *kernel) {
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    const ax_expr *expr = &kernel->exprs[e];
    for (int i = 0; i < ax_scalar_arity(expr->op); i++)
      if (expr->arg[i] >= e) return ax_error(AX_INTERNAL, "e%u uses e%u", e, expr->arg[i]);
    if (expr->op == AX_LEAF_LOAD && expr->arg[0] != AX_NONE) AX_TRY(check_guard(kernel, e, expr->arg[0]));
    if (expr->op == AX_LEAF_LOAD && !is_empty(kernel)) AX_TRY(check_position(kernel, expr->slot, expr->at, expr->arg[0], e));
    if (expr->op == AX_LEAF_INSIDE && (expr->at == NULL || expr->at->dim >= (int)kernel->rank || expr->at->dynamic != AX_NONE))
      return ax_error(AX_INTERNAL, "e%u: the position is missing", e);
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (store->expr >= kernel->expr_count) return ax_error(AX_INTERNAL, "stores e%u", store->expr);
    if (!is_empty(kernel)) {
      AX_TRY(check_position(kernel, store->slot, store->at, AX_NONE, kernel->expr_count));
      AX_TRY(check_still(kernel, store));
    }
    if (!suits_slot(store, kernel->exprs[store->expr].dtype, kernel->slots[store->slot].dtype))
      return ax_error(AX_INTERNAL, "e%u is not of its slot's dtype", store->expr);
  }
  return kernel->store_count > 0 ? AX_OK : ax_error(AX_INTERNAL, "nothing is stored");
}

static ax_status check_kernel(const verifier *v, const ax_op *op) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->slot_count; i++) {
    const ax_slot *slot = &kernel->slots[i];
    if (op->kernel.buffers[i] >= v->plan->buffer_count) return ax_error(AX_INTERNAL, "slot %u is b%u", i, op->kernel.buffers[i]);
    const ax_type *type = &v->plan->buffers[op->kernel.buffers[i]].type;
    if (slot->dtype != type->dtype || slot->rank != type->rank ||
        memcmp(slot->dims, type->dims, slot->rank * sizeof slot->dims[0]) != 0)
      return ax_error(AX_INTERNAL, "slot %u is not like b%u", i, op->kernel.buffers[i]);
  }
  return check_nest(kernel);
}

/* --- Products and exchanges --- */

/* A strided box of elements inside a buffer. */
static ax_status check_box(const verifier *v, uint32_t buffer, int64_t offset, uint32_t rank, const int64_t *dims,
                           const int64_t *strides) {
  if (buffer >= v->plan->buffer_count) return ax_error(AX_INTERNAL, "there is no b%u", buffer);
  int64_t low = offset, high = offset;
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] == 0) return AX_OK;
    (strides[d] < 0 ? (low += strides[d] * (dims[d] - 1)) : (high += strides[d] * (dims[d] - 1)));
  }
  if (low >= 0 && high < ax_type_elems(&v->plan->buffers[buffer].type)) return AX_OK;
  return ax_error(AX_INTERNAL, "elements %lld to %lld of b%u", (long long)low, (long long)high, buffer);
}

static ax_status check_matrix(const verifier *v, const ax_gemm *g, uint32_t buffer, int64_t offset, int64_t rows, int64_t columns,
                              int64_t ld, const int64_t *batch, const int64_t *term, ax_dtype dtype) {
  int64_t dims[AX_MAX_RANK + 2 + AX_GEMM_TERMS], strides[AX_MAX_RANK + 2 + AX_GEMM_TERMS];
  uint32_t rank = g->batch_rank;
  memcpy(dims, g->batch, g->batch_rank * sizeof dims[0]);
  memcpy(strides, batch, g->batch_rank * sizeof strides[0]);
  dims[rank] = rows, strides[rank++] = ld;
  dims[rank] = columns, strides[rank++] = 1;
  for (uint32_t i = 0; term != NULL && i < g->term_rank; i++) dims[rank] = g->terms[i], strides[rank++] = term[i];
  AX_TRY(check_box(v, buffer, offset, rank, dims, strides));
  return v->plan->buffers[buffer].type.dtype == dtype ? AX_OK : ax_error(AX_INTERNAL, "b%u is of another dtype", buffer);
}

/* The panels of each right factor lie one after the other. */
static ax_status check_panels(const verifier *v, const ax_gemm *g) {
  const ax_panels one = {.dtype = g->dtype, .n = g->n, .k = g->k};
  const int64_t numbers = ax_panels_each(&one);
  return check_matrix(v, g, g->b, g->b_offset, 1, numbers, numbers, g->b_stride, g->b_term, g->dtype);
}

static ax_status check_gemm(const verifier *v, const ax_gemm *g) {
  ax_dtype made;
  if (!ax_product_result(g->dtype, &made)) return ax_error(AX_INTERNAL, "a product of %s", ax_dtype_name(g->dtype));
  AX_TRY(check_matrix(v, g, g->a, g->a_offset, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, g->lda, g->a_stride,
                      g->a_term, g->dtype));
  if (g->packed) AX_TRY(check_panels(v, g));
  else
    AX_TRY(check_matrix(v, g, g->b, g->b_offset, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, g->ldb, g->b_stride,
                        g->b_term, g->dtype));
  return check_matrix(v, g, g->c, g->c_offset, g->m, g->n, g->ldc, g->c_stride, NULL, made);
}

static ax_status check_rows(const verifier *v, const ax_rows *rows) {
  uint32_t slots = 0;
  if (rows->count < 2 || rows->count > AX_ROWS_MEMBERS || rows->block_bytes > AX_ROWS_BYTES || rows->step < 1 || rows->parts < 1)
    return ax_error(AX_INTERNAL, "is no group of rows");
  for (uint32_t k = 0; k < rows->count; k++) {
    const ax_op *op = &rows->members[k];
    bool product = op->kind == AX_OP_GEMM;
    if ((op->kind != AX_OP_KERNEL && !product) || op->axes != rows->members[0].axes)
      return ax_error(AX_INTERNAL, "operation %u is no member", k);
    AX_TRY(product ? check_gemm(v, op->gemm) : check_kernel(v, op));
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

static ax_status check_start(const verifier *v, const ax_exchange *x) {
  int64_t members = ax_axis_set_size(x->axes, &v->plan->mesh);
  if (x->id >= v->plan->exchange_count || v->exchanges[x->id] != 0)
    return ax_error(AX_INTERNAL, "exchange %u is started again", x->id);
  AX_TRY(check_box(v, x->in, 0, x->rank, x->dims, x->src_stride));
  AX_TRY(check_box(v, x->in, (members - 1) * x->src_step, x->rank, x->dims, x->src_stride));
  AX_TRY(check_box(v, x->out, 0, x->rank, x->dims, x->dst_stride));
  AX_TRY(check_box(v, x->out, (members - 1) * x->dst_step, x->rank, x->dims, x->dst_stride));
  v->exchanges[x->id] = 1;
  return AX_OK;
}

static ax_status check_done(const verifier *v, const ax_exchange *x) {
  if (x->id >= v->plan->exchange_count || v->exchanges[x->id] != 1)
    return ax_error(AX_INTERNAL, "exchange %u is %s", x->id,
                    x->id < v->plan->exchange_count && v->exchanges[x->id] == 2 ? "done again" : "not started");
  v->exchanges[x->id] = 2;
  return AX_OK;
}

static int64_t elems_of(const verifier *v, uint32_t buffer) { return ax_type_elems(&v->plan->buffers[buffer].type); }

/* Checks the sizes of a ragged exchange's tables and rows. The contents of slices are checked when it runs. */
static ax_status check_ragged(const verifier *v, const ax_ragged *ragged, ax_ragged_step step) {
  const ax_ragged_shape *shape = &ragged->shape;
  ax_ragged_buffer list[AX_RAGGED_MOST];
  uint32_t count = ax_ragged_buffers(ragged, step, list);
  int64_t slices = shape->batch * shape->local * shape->members * shape->each;
  for (uint32_t k = 0; k < count; k++)
    if (list[k].buffer >= v->plan->buffer_count) return ax_error(AX_INTERNAL, "there is no b%u", list[k].buffer);
  if (elems_of(v, ragged->table) != slices * AX_PIECE_WORDS)
    return ax_error(AX_INTERNAL, "b%u is no table of %lld slices", ragged->table, (long long)slices);
  for (uint32_t k = 2; k < AX_RAGGED_OPERANDS; k++)
    if (elems_of(v, ragged->in[k]) != slices)
      return ax_error(AX_INTERNAL, "b%u does not say something of %lld slices", ragged->in[k], (long long)slices);
  if (step != AX_RAGGED_TAKE) return AX_OK;
  int64_t rows = shape->batch * shape->local * shape->row_elems, mine = ragged->back ? shape->from_rows : shape->to_rows;
  if (elems_of(v, ragged->out) != rows * mine || elems_of(v, ragged->in[0]) != rows * (shape->from_rows + shape->to_rows - mine))
    return ax_error(AX_INTERNAL, "takes other rows than b%u and b%u have", ragged->in[0], ragged->out);
  if (ragged->base != AX_NONE && elems_of(v, ragged->base) != rows * mine)
    return ax_error(AX_INTERNAL, "b%u is no base of b%u", ragged->base, ragged->out);
  return elems_of(v, ragged->received) == slices * AX_PIECE_WORDS ? AX_OK
                                                                  : ax_error(AX_INTERNAL, "b%u is no table", ragged->received);
}

static ax_status check_cores(const verifier *v, const ax_cores *cores, ax_cores_step step) {
  if (cores->came == AX_NONE && step != AX_CORES_RUN) return ax_error(AX_INTERNAL, "a kernel of one device is only run");
  for (uint32_t k = 0; k < ax_cores_buffer_count(cores, step); k++) {
    const ax_cores_buffer b = ax_cores_buffer_at(cores, step, k);
    if (b.buffer >= v->plan->buffer_count) return ax_error(AX_INTERNAL, "there is no b%u", b.buffer);
    for (uint32_t i = 0; i < k && b.writes; i++) {
      uint32_t other = ax_cores_buffer_at(cores, step, i).buffer;
      if (v->plan->buffers[other].allocation == v->plan->buffers[b.buffer].allocation)
        return ax_error(AX_INTERNAL, "b%u is written and has memory in common with b%u", b.buffer, other);
    }
  }
  return AX_OK;
}

/* --- Operations --- */

static void visit(void *context, uint32_t buffer, bool writes) {
  verifier *v = context;
  if (v->status != AX_OK) return;
  if (buffer >= v->plan->buffer_count) {
    v->status = ax_error(AX_INTERNAL, "there is no b%u", buffer);
    return;
  }
  const ax_buffer *b = &v->plan->buffers[buffer];
  if (b->loop != AX_NONE && !v->open[b->loop]) v->status = ax_error(AX_INTERNAL, "b%u is used outside of loop %u", buffer, b->loop);
  if (writes) v->written[b->allocation] = true;
  else if (!v->written[b->allocation]) v->status = ax_error(AX_INTERNAL, "b%u is read before it is written", buffer);
}

static ax_status check_routine(const verifier *v, const ax_routine *routine) {
  if (routine->out_count == 0 || routine->parts == 0) return ax_error(AX_INTERNAL, "nothing is written");
  for (uint32_t k = 0; k < routine->in_count + routine->out_count; k++) {
    if (routine->buffers[k] >= v->plan->buffer_count) return ax_error(AX_INTERNAL, "there is no b%u", routine->buffers[k]);
    for (uint32_t i = 0; i < k && k >= routine->in_count; i++)
      if (v->plan->buffers[routine->buffers[i]].allocation == v->plan->buffers[routine->buffers[k]].allocation)
        return ax_error(AX_INTERNAL, "b%u is written and has memory in common with b%u", routine->buffers[k], routine->buffers[i]);
  }
  return AX_OK;
}

/* Checks the parts of an operation's structure that must hold before its buffers can be visited. */
static ax_status check_shape(const verifier *v, const ax_op *op) {
  ax_axis_set all = ax_all_axes(&v->plan->mesh);
  if (((op->axes | op->diverging) & ~all) != 0) return ax_error(AX_INTERNAL, "runs along axes that the mesh has not");
  switch (op->kind) {
    case AX_OP_NONE: return ax_error(AX_INTERNAL, "was taken out");
    case AX_OP_KERNEL: return check_kernel(v, op);
    case AX_OP_ROWS: return check_rows(v, op->rows);
    case AX_OP_GEMM: return check_gemm(v, op->gemm);
    case AX_OP_START: return check_start(v, op->exchange);
    case AX_OP_DONE: return check_done(v, op->exchange);
    case AX_OP_RAGGED: return check_ragged(v, op->ragged, op->step);
    case AX_OP_CORES: return check_cores(v, op->cores, op->cores_step);
    case AX_OP_EVAL: return op->eqn != NULL && op->program != NULL ? AX_OK : ax_error(AX_INTERNAL, "has no equation");
    case AX_OP_ROUTINE: return check_routine(v, op->routine);
    case AX_OP_SEND:
    case AX_OP_RECEIVE: return op->message != NULL && op->eqn != NULL ? AX_OK : ax_error(AX_INTERNAL, "has no message");
    case AX_OP_CHECK:
      return op->eqn != NULL && op->program != NULL && op->check.count > 0 ? AX_OK : ax_error(AX_INTERNAL, "checks nothing");
    case AX_OP_LOOP:
      return op->loop.trips == v->trips[op->loop.id] ? AX_OK : ax_error(AX_INTERNAL, "loop %u is there twice", op->loop.id);
    case AX_OP_BRANCH: return op->branch.count > 0 ? AX_OK : ax_error(AX_INTERNAL, "there are no cases");
  }
  return ax_error(AX_INTERNAL, "is no operation");
}

static uint32_t written_by(const ax_op *member) {
  uint32_t i = 0;
  while (!ax_op_slot(member, i).writes) i++;
  return ax_op_slot(member, i).buffer;
}

/* Run along what it writes is stored along; more, where a device's own part of a group's result is written. */
static ax_status check_axes(const verifier *v, const ax_op *op) {
  uint32_t to = op->kind == AX_OP_KERNEL ? op->kernel.buffers[op->kernel.kernel->stores[0].slot]
                : op->kind == AX_OP_ROWS ? written_by(&op->rows->members[0])
                : op->kind == AX_OP_GEMM ? op->gemm->c
                : op->kind == AX_OP_RAGGED ? op->ragged->out
                : op->kind == AX_OP_CORES ? op->cores->state
                : op->kind == AX_OP_ROUTINE ? op->routine->buffers[op->routine->in_count]
                                         : AX_NONE;
  if (to == AX_NONE || v->plan->buffers[to].axes == op->axes) return AX_OK;
  return ax_error(AX_INTERNAL, "runs along %s, but b%u is stored along %s", ax_axis_set_string(op->axes, &v->plan->mesh), to,
                  ax_axis_set_string(v->plan->buffers[to].axes, &v->plan->mesh));
}

static ax_status is_scalar(const verifier *v, uint32_t buffer, ax_dtype dtype) {
  const ax_type *type = &v->plan->buffers[buffer].type;
  return type->rank == 0 && type->dtype == dtype ? AX_OK
                                                 : ax_error(AX_INTERNAL, "b%u is no %s scalar", buffer, ax_dtype_name(dtype));
}

static ax_status check_block(verifier *v, const ax_block *block);

/* The test's results are read after each test; so are those of the body by the next. */
static ax_status check_loop(verifier *v, const ax_op *op) {
  v->open[op->loop.id] = true;
  AX_TRY(check_block(v, &op->loop.test));
  if (op->loop.trips < 0) {
    visit(v, op->loop.condition, false);
    AX_TRY(v->status);
    AX_TRY(is_scalar(v, op->loop.condition, AX_BOOL));
  }
  AX_TRY(check_block(v, &op->loop.body));
  v->open[op->loop.id] = false;
  return AX_OK;
}

static ax_status check_op(verifier *v, ax_op *op) {
  AX_TRY(check_shape(v, op));
  AX_TRY(check_axes(v, op));
  if (op->kind == AX_OP_LOOP) return check_loop(v, op);
  ax_op_visit(op, visit, v);
  AX_TRY(v->status);
  if (op->kind == AX_OP_BRANCH) AX_TRY(is_scalar(v, op->branch.index, AX_S32));
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) AX_TRY(check_block(v, ax_op_block(op, k)));
  return AX_OK;
}

static ax_status check_block(verifier *v, const ax_block *block) {
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
  verifier *v = context;
  if (op->kind != AX_OP_LOOP || v->status != AX_OK) return;
  if (op->loop.id >= v->plan->loop_count) v->status = ax_error(AX_INTERNAL, "loop %u of %u", op->loop.id, v->plan->loop_count);
  else v->trips[op->loop.id] = v->trips[op->loop.id] == -2 ? op->loop.trips : -3;
}

static ax_status check_results(const verifier *v) {
  const ax_plan *plan = v->plan;
  for (uint32_t i = 0; i < plan->in_count; i++)
    if (plan->in[i] >= plan->buffer_count || plan->buffers[plan->in[i]].kind != AX_BUFFER_INPUT)
      return ax_error(AX_INTERNAL, "input %u is no input", i);
  for (uint32_t k = 0; k < plan->out_count; k++)
    if (plan->out[k] >= plan->buffer_count || !v->written[plan->buffers[plan->out[k]].allocation])
      return ax_error(AX_INTERNAL, "result %u is not written", k);
  return AX_OK;
}

static ax_status verify(verifier *v) {
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
  AX_TRY(check_block(v, &plan->block));
  return check_results(v);
}

ax_status ax_plan_verify(const ax_plan *plan) {
  verifier v = {.plan = plan};
  ax_status status = verify(&v);
  ax_arena_deinit(&v.arena);
  return status == AX_OK || status == AX_OUT_OF_MEMORY ? status : ax_error_context(status, "verify: ");
}
