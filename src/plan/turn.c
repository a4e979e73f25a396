/* What a sum would read across its rows, again and again, is turned once.

     kernel of b0 b1 b2                                        kernel of b1 b3
       b2[i, j] = sum over d of |b0[i, d] - b1[j, d]|    ->      b3[d, j] = b1[j, d]
                                                               kernel of b0 b3 b2
                                                                 b2[i, j] = sum over d of |b0[i, d] - b3[d, j]|

   Vectors go along j, as results lie. Of b1 they would put each together from elements of as many rows, for each i anew. That is the
   distance of all pairs of points, as nearest neighbours, clusters and kernels of Gaussian processes have it. Of many terms, vectors go
   along these instead, and nothing is turned. The copy stands before its first reader; kernels soon after it, which read the same, share it. */
#include <string.h>

#include "plan/kernel_rewrite.h"
#include "plan/op.h"
#include "plan/passes.h"

enum {
  most_terms = 64,
  least_results = 8,  /* side by side */
  least_reuse = 8,    /* how often an element is read */
  least_steps = 4096, /* to turn something takes some hundred nanoseconds */
  most_bytes = 1 << 20,
  window = 64 /* operations between the first reader of a copy and the last */
};

typedef struct turning { /* of one load */
  ax_ex node;
  uint32_t rank, source; /* source: the buffer */
  int dims[AX_MAX_RANK]; /* of the kernel: by dimension of what is made; the last is the one along which results lie */
} turning;

typedef struct copy {
  ax_op op;
  uint32_t before; /* the operation of the block before which it stands: that of its first reader */
} copy;

typedef struct turner {
  ax_plan *plan;
  copy *made; /* for the block at hand */
  uint32_t made_count, made_capacity;
} turner;

/* --- What to turn --- */

/* The dimension along which the kernel's results lie side by side, if all are sums along others; -1. */
static int results_lie_along(const ax_loop_kernel *k) {
  int along = -1;
  for (uint32_t i = 0; i < k->store_count; i++) {
    const ax_slot *slot = &k->slots[k->stores[i].slot];
    const ax_position *last = slot->rank > 0 ? &k->stores[i].at[slot->rank - 1] : NULL;
    if (last == NULL || k->stores[i].reduce == AX_SCALAR_NONE || last->dim < 0 || last->coef != 1 || last->dynamic != AX_NONE) return -1;
    if (along >= 0 && last->dim != along) return -1;
    along = last->dim;
  }
  return along >= 0 && (uint32_t)along < k->rank - k->reduce_rank ? along : -1;
}

/* Whether vectors along dimension `along` find the load's elements side by side, or one element for all. */
static bool lies_well(const ax_loop_kernel *k, const ax_expr *load, int along) {
  const ax_slot *slot = &k->slots[load->slot];
  int64_t stride = 0, pitch = 1;
  for (uint32_t d = slot->rank; d-- > 0; pitch *= slot->dims[d])
    if (load->at[d].dim == along) stride += load->at[d].coef * pitch;
  return stride >= -1 && stride <= 1;
}

/* False: the load is not of a plain part of an array, or of one too large, or it reads each element too seldom. */
static bool can_turn(const ax_loop_kernel *k, const ax_expr *load, int along, int64_t steps, turning *t) {
  const ax_slot *slot = &k->slots[load->slot];
  bool walks[AX_MAX_RANK + AX_MAX_RANK] = {false};
  int64_t elems = 1;
  if (load->arg[0] != AX_NONE) return false;
  for (uint32_t d = 0; d < slot->rank; d++) {
    const ax_position *at = &load->at[d];
    if (at->dynamic != AX_NONE || (at->dim >= 0 && (at->coef != 1 || walks[at->dim]))) return false;
    if (at->dim < 0) continue;
    walks[at->dim] = true;
    elems *= k->dims[at->dim];
    if (at->dim != along) t->dims[t->rank++] = at->dim;
  }
  t->dims[t->rank++] = along;
  return elems * least_reuse <= steps && elems * (int64_t)ax_dtype_bytes(slot->dtype) <= most_bytes;
}

/* The loads to turn, so that afterwards all lie well; 0: nothing is to be gained, or not all can be. */
static uint32_t find_turnings(const ax_loop_kernel *k, turning *found, uint32_t most) {
  const int64_t steps = ax_dims_elems(k->rank, k->dims), terms = ax_dims_elems(k->reduce_rank, k->dims + k->rank - k->reduce_rank);
  const int along = k->reduce_rank > 0 && !k->running ? results_lie_along(k) : -1;
  uint32_t count = 0;
  if (along < 0 || terms > most_terms || steps < least_steps || k->dims[along] < least_results) return 0;
  for (ax_ex node = 0; node < k->expr_count; node++) {
    const ax_expr *load = &k->exprs[node];
    if (load->op != AX_LEAF_LOAD || lies_well(k, load, along)) continue;
    if (count == most) return 0;
    found[count] = (turning){.node = node};
    if (!can_turn(k, load, along, steps, &found[count])) return 0;
    count++;
  }
  return count;
}

/* --- Turning it --- */

/* A kernel that copies what the load reads, in the order of t->dims. */
static ax_loop_kernel *copying(ax_arena *arena, const ax_loop_kernel *k, const turning *t, const int64_t *dims) {
  const ax_expr *load = &k->exprs[t->node];
  const ax_slot *slot = &k->slots[load->slot];
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  ax_loop_kernel *made = ax_kernel_create(arena, t->rank, 0, dims);
  if (made == NULL) return NULL;
  for (uint32_t d = 0; d < slot->rank; d++) {
    from[d] = load->at[d];
    for (uint32_t i = 0; i < t->rank && load->at[d].dim >= 0; i++)
      if (t->dims[i] == load->at[d].dim) from[d].dim = (int)i;
  }
  ax_at_identity(to, t->rank);
  const ax_ex value = ax_kernel_load(made, ax_kernel_slot(made, slot->dtype, slot->rank, slot->dims), from);
  ax_kernel_store(made, ax_kernel_slot(made, slot->dtype, t->rank, dims), to, value, AX_SCALAR_NONE);
  return made->failed ? NULL : made;
}

/* Whether a copy that stands before operation `from` of the block is one still at `at`. */
static bool still_holds(const turner *u, ax_block *block, uint32_t from, uint32_t at, uint32_t source) {
  for (uint32_t i = from; i < at; i++)
    if (ax_op_access_all(u->plan, &block->ops[i], u->plan->buffers[source].allocation).writes) return false;
  return true;
}

/* A copy that an earlier kernel of the block reads; NULL. */
static const copy *made_before(const turner *u, ax_block *block, uint32_t at, const ax_op *made) {
  for (uint32_t m = u->made_count; m-- > 0 && at - u->made[m].before <= window;) {
    const ax_op *other = &u->made[m].op;
    if (other->kernel.buffers[0] == made->kernel.buffers[0] && other->axes == made->axes && other->diverging == made->diverging &&
        ax_kernel_equal(other->kernel.kernel, made->kernel.kernel) &&
        still_holds(u, block, u->made[m].before, at, made->kernel.buffers[0]))
      return &u->made[m];
  }
  return NULL;
}

/* Notes the operation that copies, unless there is one, and gives the buffer it copies to. */
static ax_status make_copy(turner *u, ax_block *block, uint32_t at, const turning *t, uint32_t *out) {
  const ax_op *op = &block->ops[at];
  const ax_loop_kernel *k = op->kernel.kernel;
  const ax_buffer *source = &u->plan->buffers[t->source];
  ax_buffer buffer = {
      .kind = AX_BUFFER_TEMP, .type = source->type, .axes = source->axes | op->diverging, .loop = AX_NONE, .allocation = AX_NONE};
  buffer.type.rank = t->rank;
  for (uint32_t d = 0; d < t->rank; d++) buffer.type.dims[d] = k->dims[t->dims[d]];
  ax_op made = {.kind = AX_OP_KERNEL, .eqn = op->eqn, .program = op->program, .axes = buffer.axes, .diverging = op->diverging};
  made.kernel.kernel = copying(&u->plan->arena, k, t, buffer.type.dims);
  made.kernel.buffers = ax_arena_alloc(&u->plan->arena, 2 * sizeof made.kernel.buffers[0]);
  if (made.kernel.kernel == NULL || made.kernel.buffers == NULL) return ax_out_of_memory(sizeof *made.kernel.kernel);
  made.kernel.buffers[0] = t->source;
  const copy *before = made_before(u, block, at, &made);
  if (before != NULL) {
    *out = before->op.kernel.buffers[1];
    return AX_OK;
  }
  AX_TRY(ax_plan_add_buffer(u->plan, &buffer, out));
  made.kernel.buffers[1] = *out;
  AX_TRY(ax_grow(&u->made, sizeof u->made[0], u->made_count, 1, &u->made_capacity));
  u->made[u->made_count++] = (copy){.op = made, .before = at};
  return AX_OK;
}

/* The kernel, with loads of what was copied. */
static ax_status read_copies(turner *u, ax_op *op, const turning *found, const uint32_t *copies, uint32_t count) {
  ax_arena *arena = &u->plan->arena;
  const ax_bound *old = &op->kernel;
  ax_bound made = {.kernel = ax_kernel_copy(arena, old->kernel)}, pruned;
  made.buffers = ax_arena_alloc(arena, (old->kernel->slot_count + count) * sizeof made.buffers[0]);
  if (made.kernel == NULL || made.buffers == NULL) return ax_out_of_memory(sizeof *made.kernel);
  memcpy(made.buffers, old->buffers, old->kernel->slot_count * sizeof made.buffers[0]);
  for (uint32_t i = 0; i < count; i++) {
    const ax_type *type = &u->plan->buffers[copies[i]].type;
    ax_position *at = ax_arena_alloc(arena, type->rank * sizeof at[0]);
    if (at == NULL) return ax_out_of_memory(type->rank * sizeof at[0]);
    for (uint32_t d = 0; d < type->rank; d++) at[d] = (ax_position){.dim = found[i].dims[d], .coef = 1, .dynamic = AX_NONE};
    const uint32_t slot = ax_kernel_slot(made.kernel, type->dtype, type->rank, type->dims);
    if (made.kernel->failed) return ax_out_of_memory(sizeof *made.kernel);
    made.buffers[slot] = copies[i];
    made.kernel->exprs[found[i].node].slot = slot;
    made.kernel->exprs[found[i].node].at = at;
  }
  AX_TRY(ax_kernel_prune(arena, &made, NULL, &pruned));
  if (pruned.kernel != NULL) op->kernel = pruned;
  return AX_OK;
}

static ax_status turn_op(turner *u, ax_block *block, uint32_t at) {
  enum { most = 4 };
  turning found[most];
  uint32_t copies[most];
  ax_op *op = &block->ops[at];
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op)) return AX_OK;
  const uint32_t count = find_turnings(op->kernel.kernel, found, most);
  if (op->kernel.kernel->slot_count + count > AX_MOST_SLOTS) return AX_OK;
  for (uint32_t i = 0; i < count; i++) {
    found[i].source = op->kernel.buffers[op->kernel.kernel->exprs[found[i].node].slot];
    AX_TRY(make_copy(u, block, at, &found[i], &copies[i]));
  }
  return count > 0 ? read_copies(u, op, found, copies, count) : AX_OK;
}

/* Puts what was made in its places, which are in order. */
static ax_status put(turner *u, ax_block *block) {
  const uint32_t count = block->count + u->made_count;
  ax_op *ops = ax_arena_alloc(&u->plan->arena, count * sizeof ops[0]), *next = ops;
  if (ops == NULL) return ax_out_of_memory(count * sizeof ops[0]);
  for (uint32_t i = 0, m = 0; i < block->count; i++) {
    while (m < u->made_count && u->made[m].before == i) *next++ = u->made[m++].op;
    *next++ = block->ops[i];
  }
  block->ops = ops;
  block->count = block->capacity = count;
  return AX_OK;
}

static ax_status turn_block(void *context, ax_block *block, bool is_body) {
  turner *u = context;
  (void)is_body;
  u->made_count = 0;
  for (uint32_t i = 0; i < block->count; i++) AX_TRY(turn_op(u, block, i));
  return u->made_count > 0 ? put(u, block) : AX_OK;
}

ax_status ax_plan_turn(ax_plan *plan) {
  turner u = {.plan = plan};
  const ax_status status = ax_blocks_visit(&plan->block, turn_block, &u);
  ax_free(u.made);
  return status;
}
