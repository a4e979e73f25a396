/* A reduction over E indices becomes one over `count` blocks of C indices and one over the rest:

       y[k] = reduce over e < E of f(k, e)

       part[b, k]     = reduce over c < C of f(k, b C + c)               b < count
       part[count, k] = reduce over c < E - count C of f(k, count C + c)
       y[k]           = reduce over b of part[b, k]

   A position has only one loop index for each dimension, so b C + c is written as two dimensions (b, c) of an array over the
   same memory. That is possible if C divides the array's dimension, or if it is the array's first dimension, whose extent no
   stride depends on. */
#include "plan/blocks.h"

#include <string.h>

#include "ir/program.h"

typedef struct blocking {
  ax_plan *plan;
  const ax_op *op;
  const ax_loop_kernel *from;
  uint32_t dim;             /* of `from`: it is reduced over in blocks */
  int64_t count, size, rest; /* blocks, indices in each, indices left over */
  uint32_t *parts;           /* by store of `from`: the buffer of its parts */
} blocking;

/* --- Whether it can be --- */

static bool fits_blocks(const blocking *s, uint32_t slot, const ax_position *at) {
  const ax_slot *x = &s->from->slots[slot];
  uint32_t uses = 0;
  for (uint32_t d = 0; d < x->rank; d++) {
    if (at[d].dim != (int)s->dim) continue;
    bool plain = at[d].coef == 1 && at[d].offset == 0 && at[d].dynamic == AX_NONE;
    if (!plain || (d > 0 && x->dims[d] != s->count * s->size)) return false;
    uses++;
  }
  return uses == 0 || (uses == 1 && x->rank < AX_MAX_RANK);
}

static bool can_be_had(const blocking *s) {
  const ax_loop_kernel *k = s->from;
  uint32_t kept = k->rank - k->reduce_rank, stores = 0;
  if (k->running) return false;
  if (k->rank >= 2 * AX_MAX_RANK || kept >= AX_MAX_RANK || k->expr_count + k->store_count > AX_MAX_SLOTS) return false;
  for (uint32_t i = 0; i < k->expr_count; i++)
    if (k->exprs[i].op == AX_LEAF_INSIDE || (k->exprs[i].op == AX_LEAF_LOAD && !fits_blocks(s, k->exprs[i].slot, k->exprs[i].at)))
      return false;
  for (uint32_t i = 0; i < k->store_count; i++) {
    const ax_store *store = &k->stores[i];
    const ax_slot *slot = &k->slots[store->slot];
    bool whole = slot->rank == kept && memcmp(slot->dims, k->dims, kept * sizeof slot->dims[0]) == 0;
    if (store->reduce == AX_SCALAR_NONE || !whole || !ax_at_is_identity(store->at, kept)) return false;
    stores++;
  }
  return stores > 0;
}

/* --- The kernels --- */

typedef struct maker {
  const blocking *s;
  ax_loop_kernel *kernel;
  uint32_t *buffers; /* by slot */
  bool leftover;     /* the kernel for the rest: it has no dimension of blocks */
  ax_ex *moved;      /* by node of `from` */
} maker;

static ax_status maker_init(maker *m, const blocking *s, bool leftover) {
  const ax_loop_kernel *from = s->from;
  int64_t dims[2 * AX_MAX_RANK + 1] = {s->count};
  memcpy(dims + !leftover, from->dims, from->rank * sizeof dims[0]);
  dims[s->dim + !leftover] = leftover ? s->rest : s->size;
  *m = (maker){.s = s, .leftover = leftover};
  m->kernel = ax_kernel_create(&s->plan->arena, from->rank + !leftover, from->reduce_rank, dims);
  m->buffers = ax_arena_alloc(&s->plan->arena, AX_MAX_SLOTS * sizeof m->buffers[0]);
  m->moved = ax_arena_alloc(&s->plan->arena, (from->expr_count + 1) * sizeof m->moved[0]);
  return m->kernel != NULL && m->buffers != NULL && m->moved != NULL ? AX_OK : ax_out_of_memory(sizeof *m->kernel);
}

/* The same memory, with other dimensions. */
static uint32_t view_of(maker *m, uint32_t buffer, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_buffer view = m->s->plan->buffers[buffer];
  view.type = ax_array_type(dtype, AX_LIST(rank, dims));
  if (ax_plan_add_buffer(m->s->plan, &view, &buffer) != AX_OK) m->kernel->failed = true;
  return buffer;
}

static uint32_t add_slot(maker *m, ax_dtype dtype, uint32_t rank, const int64_t *dims, uint32_t buffer) {
  uint32_t slot = ax_kernel_slot(m->kernel, dtype, rank, dims);
  m->buffers[slot] = buffer;
  return slot;
}

static ax_ex load(maker *m, const ax_expr *expr) {
  const blocking *s = m->s;
  const ax_slot *from = &s->from->slots[expr->slot];
  int64_t dims[AX_MAX_RANK + 1];
  ax_position at[AX_MAX_RANK + 1];
  uint32_t rank = 0;
  for (uint32_t d = 0; d < from->rank; d++) {
    bool blocked = expr->at[d].dim == (int)s->dim;
    dims[rank] = from->dims[d];
    at[rank] = expr->at[d];
    if (at[rank].dim >= 0) at[rank].dim += !m->leftover;
    if (at[rank].dynamic != AX_NONE) at[rank].dynamic = m->moved[at[rank].dynamic];
    if (blocked && m->leftover) at[rank].offset += s->count * s->size;
    if (blocked && !m->leftover) {
      dims[rank] = s->count;
      dims[rank + 1] = s->size;
      at[rank + 1] = at[rank];
      at[rank++] = (ax_position){.dim = 0, .coef = 1, .dynamic = AX_NONE};
    }
    rank++;
  }
  uint32_t buffer = s->op->kernel.buffers[expr->slot];
  if (rank != from->rank) buffer = view_of(m, buffer, from->dtype, rank, dims);
  return ax_kernel_load(m->kernel, add_slot(m, from->dtype, rank, dims, buffer), at);
}

static ax_ex index_of(maker *m, uint32_t dim) {
  const blocking *s = m->s;
  ax_ex index = ax_kernel_index(m->kernel, dim + !m->leftover);
  if (dim != s->dim) return index;
  ax_ex first = ax_kernel_const(m->kernel, AX_S64, m->leftover ? s->count * s->size : s->size);
  if (!m->leftover) first = ax_kernel_op(m->kernel, AX_SCALAR_MUL, AX_S64, ax_kernel_index(m->kernel, 0), first, AX_NONE);
  return ax_kernel_op(m->kernel, AX_SCALAR_ADD, AX_S64, first, index, AX_NONE);
}

static ax_ex move_node(maker *m, const ax_expr *expr) {
  ax_ex arg[3];
  if (expr->op == AX_LEAF_LOAD) return load(m, expr);
  if (expr->op == AX_LEAF_INDEX) return index_of(m, (uint32_t)expr->imm);
  if (expr->op == AX_LEAF_CONST) return ax_kernel_const(m->kernel, expr->dtype, expr->imm);
  if (expr->op == AX_LEAF_AXIS) return ax_kernel_axis(m->kernel, (uint32_t)expr->imm);
  for (int i = 0; i < 3; i++) arg[i] = expr->arg[i] == AX_NONE ? AX_NONE : m->moved[expr->arg[i]];
  if (ax_scalar_arity(expr->op) == 1) return ax_kernel_op_imm(m->kernel, expr->op, expr->dtype, arg[0], expr->imm);
  return ax_kernel_op(m->kernel, expr->op, expr->dtype, arg[0], arg[1], arg[2]);
}

/* Stores to the parts, which have one more dimension in front. */
static void add_parts(maker *m, uint32_t store) {
  const blocking *s = m->s;
  const ax_type *type = &s->plan->buffers[s->parts[store]].type;
  ax_position at[AX_MAX_RANK];
  for (uint32_t d = 1; d < type->rank; d++) at[d] = (ax_position){.dim = (int)d - m->leftover, .coef = 1, .dynamic = AX_NONE};
  at[0] = (ax_position){.dim = m->leftover ? -1 : 0, .coef = 1, .offset = m->leftover ? s->count : 0, .dynamic = AX_NONE};
  uint32_t slot = add_slot(m, type->dtype, type->rank, type->dims, s->parts[store]);
  ax_kernel_store(m->kernel, slot, at, m->moved[s->from->stores[store].expr], s->from->stores[store].reduce);
}

static ax_status finish(const maker *m, ax_op *out) {
  *out = *m->s->op;
  out->kernel.kernel = m->kernel;
  out->kernel.buffers = m->buffers;
  return m->kernel->failed ? ax_out_of_memory(sizeof *m->kernel) : AX_OK;
}

static ax_status make_partial(const blocking *s, bool leftover, ax_op *out) {
  maker m;
  AX_TRY(maker_init(&m, s, leftover));
  for (uint32_t i = 0; i < s->from->expr_count && !m.kernel->failed; i++) m.moved[i] = move_node(&m, &s->from->exprs[i]);
  for (uint32_t i = 0; i < s->from->store_count && !m.kernel->failed; i++) add_parts(&m, i);
  return finish(&m, out);
}

static ax_status make_combination(const blocking *s, ax_op *out) {
  const ax_loop_kernel *from = s->from;
  uint32_t kept = from->rank - from->reduce_rank;
  int64_t dims[AX_MAX_RANK + 1];
  ax_position at[AX_MAX_RANK + 1], to[AX_MAX_RANK];
  maker m = {.s = s};
  memcpy(dims, from->dims, kept * sizeof dims[0]);
  dims[kept] = s->count + (s->rest > 0);
  m.kernel = ax_kernel_create(&s->plan->arena, kept + 1, 1, dims);
  m.buffers = ax_arena_alloc(&s->plan->arena, AX_MAX_SLOTS * sizeof m.buffers[0]);
  if (m.kernel == NULL || m.buffers == NULL) return ax_out_of_memory(sizeof *m.kernel);
  ax_at_identity(at + 1, kept);
  ax_at_identity(to, kept);
  at[0] = (ax_position){.dim = (int)kept, .coef = 1, .dynamic = AX_NONE};
  for (uint32_t i = 0; i < from->store_count && !m.kernel->failed; i++) {
    const ax_type *type = &s->plan->buffers[s->parts[i]].type;
    const ax_slot *slot = &from->slots[from->stores[i].slot];
    ax_ex part = ax_kernel_load(m.kernel, add_slot(&m, type->dtype, type->rank, type->dims, s->parts[i]), at);
    uint32_t result = add_slot(&m, slot->dtype, kept, slot->dims, s->op->kernel.buffers[from->stores[i].slot]);
    ax_kernel_store(m.kernel, result, to, part, from->stores[i].reduce);
  }
  return finish(&m, out);
}

/* --- Together --- */

/* Sums of narrow floats stay in f32 until the last; the greatest is one of them. */
static ax_status add_part_buffers(blocking *s) {
  const ax_loop_kernel *from = s->from;
  uint32_t kept = from->rank - from->reduce_rank;
  s->parts = ax_arena_alloc(&s->plan->arena, from->store_count * sizeof s->parts[0]);
  if (s->parts == NULL) return ax_out_of_memory(from->store_count * sizeof s->parts[0]);
  for (uint32_t i = 0; i < from->store_count; i++) {
    int64_t dims[AX_MAX_RANK + 1] = {s->count + (s->rest > 0)};
    memcpy(dims + 1, from->dims, kept * sizeof dims[0]);
    ax_dtype dtype = from->slots[from->stores[i].slot].dtype;
    const bool adds = from->stores[i].reduce != AX_SCALAR_MAX && from->stores[i].reduce != AX_SCALAR_MIN;
    if (adds && ax_is_narrow_float(dtype)) dtype = AX_F32;
    ax_buffer result = s->plan->buffers[s->op->kernel.buffers[from->stores[i].slot]];
    ax_buffer part = {
        .type = ax_array_type(dtype, AX_LIST(kept + 1, dims)), .axes = result.axes, .allocation = AX_NONE, .loop = AX_NONE};
    AX_TRY(ax_plan_add_buffer(s->plan, &part, &s->parts[i]));
  }
  return AX_OK;
}

ax_status ax_reduce_in_blocks(ax_plan *plan, const ax_op *op, uint32_t dim, int64_t count, ax_op *out, uint32_t *made) {
  const ax_loop_kernel *from = op->kernel.kernel;
  int64_t extent = from->dims[dim];
  blocking s = {.plan = plan, .op = op, .from = from, .dim = dim, .count = count, .size = extent / count};
  s.count = extent / s.size;
  s.rest = extent - s.count * s.size;
  *made = 0;
  if (!can_be_had(&s)) return AX_OK;
  AX_TRY(add_part_buffers(&s));
  AX_TRY(make_partial(&s, false, &out[(*made)++]));
  if (s.rest > 0) AX_TRY(make_partial(&s, true, &out[(*made)++]));
  return make_combination(&s, &out[(*made)++]);
}
