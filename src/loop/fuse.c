/* Fusion: fewer passes over memory. Two rewrites, tried on each kernel of a block in order:

     inline   a kernel that loads b, computed by an earlier kernel, computes b's elements itself. Done when nobody else reads b,
              or when computing an element costs no more than loading it.
     merge    two kernels over one index space become one, so that what both read is read once, and what the second reads of the
              first stays in a register.

   Both move work along the block, so the operations in between must not touch what it reads or writes. Views alias their root;
   hazards are decided on roots. Values computed once for all devices are not pulled into kernels that run on each. */
#include <string.h>

#include "loop/passes.h"

enum { most_slots = 24, most_exprs = 160, window = 24, small_elems = 4096 };

typedef struct fuser {
  ax_plan *plan;
  ax_block *block;
  uint32_t *reads;   /* by root: see ax_plan_count */
  uint32_t *writes;
  uint32_t change;   /* what counting adds */
  bool *viewed;      /* by root: some buffer is a view of it */
  bool *hit;         /* scratch: by root */
} fuser;

static uint32_t root_of(const ax_plan *plan, uint32_t buffer) { return plan->buffers[buffer].root; }

/* --- Moving an operation over others --- */

/* Marks (or clears) in f->hit the roots a kernel operation reads or writes. */
static void mark(fuser *f, const ax_op *op, bool writes, bool value) {
  const ax_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; !writes && i < kernel->expr_count; i++)
    if (kernel->exprs[i].op == AX_LEAF_LOAD) f->hit[root_of(f->plan, op->kernel.buffers[kernel->exprs[i].slot])] = value;
  for (uint32_t i = 0; writes && i < kernel->store_count; i++)
    f->hit[root_of(f->plan, op->kernel.buffers[kernel->stores[i].slot])] = value;
}

/* Operations from .. to do not write what operation `at` reads. */
static bool inputs_unwritten(fuser *f, uint32_t at, uint32_t from, uint32_t to) {
  mark(f, &f->block->ops[at], false, true);
  ax_touch touch = ax_block_touch(f->plan, f->block, from, to, f->hit);
  mark(f, &f->block->ops[at], false, false);
  return !touch.writes;
}

/* Operations from .. to do not read or write what operation `at` writes. */
static bool outputs_unused(fuser *f, uint32_t at, uint32_t from, uint32_t to) {
  mark(f, &f->block->ops[at], true, true);
  ax_touch touch = ax_block_touch(f->plan, f->block, from, to, f->hit);
  mark(f, &f->block->ops[at], true, false);
  return !touch.reads && !touch.writes;
}

/* --- Copying expressions from one kernel into another --- */

typedef struct copier {
  fuser *fuser;
  const ax_kernel *from;
  const uint32_t *from_buffers;
  ax_kernel *to;
  uint32_t *to_buffers; /* most_slots */
  ax_ex *map;           /* of from's nodes; AX_NONE: not copied yet */
  const ax_at *at;      /* from's loop index d is at[d] in terms of `to`; NULL: the same */
  bool failed;          /* a composition that one ax_at cannot express, or too large */
} copier;

static uint32_t slot_for(copier *c, uint32_t buffer) {
  for (uint32_t i = 0; i < c->to->slot_count; i++)
    if (c->to_buffers[i] == buffer) return i;
  if (c->to->slot_count == most_slots) {
    c->failed = true;
    return 0;
  }
  const ax_type *type = &c->fuser->plan->buffers[buffer].type;
  uint32_t slot = ax_kernel_slot(c->to, type->dtype, type->rank, type->dims);
  c->to_buffers[slot] = buffer;
  return slot;
}

/* inner: in terms of from's loop -> in terms of to's. */
static ax_at compose(copier *c, ax_at inner) {
  if (inner.dynamic != AX_NONE) inner.dynamic = c->map[inner.dynamic];
  if (c->at == NULL || inner.dim < 0) return inner;
  ax_at outer = c->at[inner.dim];
  if (outer.dynamic != AX_NONE && (inner.dynamic != AX_NONE || inner.coef != 1)) c->failed = true;
  return (ax_at){.dim = outer.dim, .coef = inner.coef * outer.coef, .offset = inner.offset + inner.coef * outer.offset,
                 .dynamic = outer.dynamic != AX_NONE ? outer.dynamic : inner.dynamic,
                 .limit = outer.dynamic != AX_NONE ? outer.limit : inner.limit};
}

/* The loop index d of `from`, as an expression in `to`. */
static ax_ex index_expr(copier *c, uint32_t d) {
  if (c->at == NULL) return ax_kernel_index(c->to, d);
  const ax_at *at = &c->at[d];
  if (at->dynamic != AX_NONE) {
    c->failed = true;
    return 0;
  }
  ax_ex offset = ax_kernel_const(c->to, AX_S64, at->offset);
  if (at->dim < 0) return offset;
  ax_ex index = ax_kernel_index(c->to, (uint32_t)at->dim);
  if (at->coef != 1)
    index = ax_kernel_op(c->to, AX_SCALAR_MUL, AX_S64, index, ax_kernel_const(c->to, AX_S64, at->coef), AX_NONE);
  return at->offset != 0 ? ax_kernel_op(c->to, AX_SCALAR_ADD, AX_S64, index, offset, AX_NONE) : index;
}

static ax_ex copy_one(copier *c, const ax_expr *expr) {
  ax_at at[AX_MAX_RANK];
  ax_ex arg[3];
  switch (expr->op) {
    case AX_LEAF_LOAD: {
      uint32_t slot = slot_for(c, c->from_buffers[expr->slot]);
      if (c->failed || c->to->failed) return 0;
      for (uint32_t d = 0; d < c->to->slots[slot].rank; d++) at[d] = compose(c, expr->at[d]);
      return ax_kernel_load(c->to, slot, at);
    }
    case AX_LEAF_INDEX: return index_expr(c, (uint32_t)expr->imm);
    case AX_LEAF_CONST:
    case AX_LEAF_AXIS: return ax_kernel_op_imm(c->to, expr->op, expr->dtype, AX_NONE, expr->imm);
    default:
      for (int k = 0; k < 3; k++) arg[k] = expr->arg[k] == AX_NONE ? AX_NONE : c->map[expr->arg[k]];
      if (expr->op == AX_SCALAR_INTEGER_POW) return ax_kernel_op_imm(c->to, expr->op, expr->dtype, arg[0], expr->imm);
      return ax_kernel_op(c->to, expr->op, expr->dtype, arg[0], arg[1], arg[2]);
  }
}

/* Copies all nodes of `from`; those already mapped are kept as they are. */
static void copy_all(copier *c) {
  for (uint32_t i = 0; i < c->from->expr_count && !c->failed; i++)
    if (c->map[i] == AX_NONE) c->map[i] = copy_one(c, &c->from->exprs[i]);
  if (c->to->failed || c->to->expr_count > most_exprs) c->failed = true;
}

static ax_ex *new_map(fuser *f, const ax_kernel *kernel) {
  ax_ex *map = ax_arena_alloc(&f->plan->arena, (kernel->expr_count + 1) * sizeof map[0]);
  if (map != NULL) memset(map, 0xff, (kernel->expr_count + 1) * sizeof map[0]);
  return map;
}

static void copy_stores(copier *c, uint32_t skip_buffer) {
  for (uint32_t i = 0; i < c->from->store_count && !c->failed; i++) {
    const ax_store *store = &c->from->stores[i];
    uint32_t buffer = c->from_buffers[store->slot];
    if (buffer == skip_buffer) continue;
    ax_at at[AX_MAX_RANK];
    uint32_t slot = slot_for(c, buffer);
    if (c->failed || c->to->failed) return;
    for (uint32_t d = 0; d < c->to->slots[slot].rank; d++) at[d] = compose(c, store->at[d]);
    ax_kernel_store(c->to, slot, at, c->map[store->expr], store->reduce);
  }
}

/* Drops nodes nobody uses and slots nobody touches, by copying what the stores need. */
static ax_status prune(fuser *f, ax_op *op) {
  const ax_kernel *old = op->kernel.kernel;
  bool *needed = ax_arena_alloc(&f->plan->arena, old->expr_count + 1);
  copier c = {.fuser = f, .from = old, .from_buffers = op->kernel.buffers, .map = new_map(f, old)};
  c.to = ax_kernel_create(&f->plan->arena, old->rank, old->reduce_rank, old->dims);
  c.to_buffers = ax_arena_alloc(&f->plan->arena, most_slots * sizeof c.to_buffers[0]);
  if (needed == NULL || c.map == NULL || c.to == NULL || c.to_buffers == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < old->store_count; i++) {
    needed[old->stores[i].expr] = true;
    for (uint32_t d = 0; d < old->slots[old->stores[i].slot].rank; d++)
      if (old->stores[i].at[d].dynamic != AX_NONE) needed[old->stores[i].at[d].dynamic] = true;
  }
  for (uint32_t i = old->expr_count; i-- > 0;) {
    const ax_expr *expr = &old->exprs[i];
    if (!needed[i]) continue;
    for (int k = 0; k < 3; k++)
      if (expr->arg[k] != AX_NONE) needed[expr->arg[k]] = true;
    for (uint32_t d = 0; expr->op == AX_LEAF_LOAD && d < old->slots[expr->slot].rank; d++)
      if (expr->at[d].dynamic != AX_NONE) needed[expr->at[d].dynamic] = true;
  }
  for (uint32_t i = 0; i < old->expr_count && !c.failed; i++)
    if (needed[i]) c.map[i] = copy_one(&c, &old->exprs[i]);
  copy_stores(&c, AX_NONE);
  if (c.to->failed) return ax_out_of_memory(0);
  if (c.failed) return AX_OK; /* too many slots to rebuild: stays as it is */
  op->kernel.kernel = c.to;
  op->kernel.buffers = c.to_buffers;
  return AX_OK;
}

/* --- Counting --- */

static void count_one(void *context, uint32_t buffer, bool writes) {
  fuser *f = context;
  (writes ? f->writes : f->reads)[root_of(f->plan, buffer)] += f->change;
}

static void count_op(fuser *f, const ax_op *op) {
  f->change = 1;
  ax_op_visit(op, count_one, f);
}

static void uncount_op(fuser *f, const ax_op *op) {
  f->change = (uint32_t)-1;
  ax_op_visit(op, count_one, f);
}

/* --- Inlining --- */

/* The store by which kernel `op` computes all of `buffer`, element by element; NULL when it does not. */
static const ax_store *whole_store(const fuser *f, const ax_op *op, uint32_t buffer) {
  if (op->kind != AX_OP_KERNEL) return NULL;
  const ax_kernel *kernel = op->kernel.kernel;
  const ax_type *type = &f->plan->buffers[buffer].type;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (op->kernel.buffers[store->slot] != buffer || store->reduce != AX_SCALAR_NONE || kernel->reduce_rank != 0) continue;
    bool whole = kernel->rank == type->rank && memcmp(kernel->dims, type->dims, type->rank * sizeof type->dims[0]) == 0;
    return whole && ax_at_is_identity(store->at, type->rank) ? store : NULL;
  }
  return NULL;
}

static bool is_plain(const fuser *f, uint32_t buffer) {
  return f->plan->buffers[buffer].kind == AX_BUFFER_TEMP && root_of(f->plan, buffer) == buffer && !f->viewed[buffer] &&
         f->writes[buffer] == 1;
}

/* An element of it costs no more than a load: one load and nothing else, a little work on indices, anything on constants
   (which the compiler does). */
static bool is_cheap(const ax_kernel *kernel) {
  uint32_t loads = 0, indices = 0, work = 0;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    loads += kernel->exprs[i].op == AX_LEAF_LOAD;
    indices += kernel->exprs[i].op == AX_LEAF_INDEX || kernel->exprs[i].op == AX_LEAF_AXIS;
    work += kernel->exprs[i].op < AX_SCALAR_COUNT;
  }
  if (kernel->store_count != 1 || loads > 1) return false;
  return loads == 1 ? work == 0 : indices == 0 || work <= 2;
}

static bool is_loaded_once(const ax_kernel *consumer, uint32_t slot) {
  uint32_t loads = 0;
  for (uint32_t i = 0; i < consumer->expr_count; i++)
    loads += consumer->exprs[i].op == AX_LEAF_LOAD && consumer->exprs[i].slot == slot;
  return loads == 1;
}

static bool worth_inlining(const fuser *f, const ax_op *producer, const ax_op *consumer, uint32_t slot) {
  uint32_t buffer = consumer->kernel.buffers[slot];
  if (is_cheap(producer->kernel.kernel)) return true;
  if (producer->axes != consumer->axes || f->reads[buffer] != 1 || producer->kernel.kernel->store_count != 1) return false;
  const ax_kernel *kernel = consumer->kernel.kernel;
  return is_loaded_once(kernel, slot) &&
         ax_dims_elems(kernel->rank, kernel->dims) <= ax_type_elems(&f->plan->buffers[buffer].type);
}

/* The consumer writes what the producer reads: computed at once, an element might be read after it is written. Not so when the
   consumer copies, each element to where the producer reads it. */
static bool overwrites(const fuser *f, const ax_op *producer, const ax_op *consumer) {
  const ax_kernel *from = producer->kernel.kernel, *into = consumer->kernel.kernel;
  uint32_t to, source;
  const ax_at *at;
  bool copies = ax_op_is_copy(consumer, &to, &source, &at) && f->plan->buffers[source].type.rank == into->rank &&
                ax_at_is_identity(at, into->rank);
  for (uint32_t i = 0; i < from->expr_count; i++)
    for (uint32_t k = 0; from->exprs[i].op == AX_LEAF_LOAD && k < into->store_count; k++) {
      uint32_t read = producer->kernel.buffers[from->exprs[i].slot], written = consumer->kernel.buffers[into->stores[k].slot];
      if (root_of(f->plan, read) != root_of(f->plan, written)) continue;
      if (!copies || read != written || !ax_at_is_identity(from->exprs[i].at, into->rank)) return true;
    }
  return false;
}

/* Rewrites `consumer` with every load of `slot` replaced by the producer's expression. */
static ax_status substitute(fuser *f, const ax_op *producer, const ax_store *store, ax_op *consumer, uint32_t slot, bool *done) {
  const ax_kernel *old = consumer->kernel.kernel;
  copier c = {.fuser = f, .from = old, .from_buffers = consumer->kernel.buffers, .map = new_map(f, old)};
  c.to = ax_kernel_create(&f->plan->arena, old->rank, old->reduce_rank, old->dims);
  c.to_buffers = ax_arena_alloc(&f->plan->arena, most_slots * sizeof c.to_buffers[0]);
  if (c.map == NULL || c.to == NULL || c.to_buffers == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < old->expr_count && !c.failed; i++) {
    const ax_expr *expr = &old->exprs[i];
    if (expr->op != AX_LEAF_LOAD || expr->slot != slot) {
      c.map[i] = copy_one(&c, expr);
      continue;
    }
    ax_at at[AX_MAX_RANK]; /* the load's position, in terms of the new kernel */
    for (uint32_t d = 0; d < old->slots[slot].rank; d++) at[d] = compose(&c, expr->at[d]);
    copier inner = c;
    inner.from = producer->kernel.kernel;
    inner.from_buffers = producer->kernel.buffers;
    inner.map = new_map(f, inner.from);
    inner.at = at;
    if (inner.map == NULL) return ax_out_of_memory(0);
    copy_all(&inner);
    c.failed = inner.failed;
    if (!c.failed) c.map[i] = inner.map[store->expr];
  }
  copy_stores(&c, AX_NONE);
  if (c.to->failed) return ax_out_of_memory(0);
  if (c.failed || c.to->expr_count > most_exprs) return AX_OK;
  uncount_op(f, consumer);
  consumer->kernel.kernel = c.to;
  consumer->kernel.buffers = c.to_buffers;
  AX_TRY(prune(f, consumer));
  count_op(f, consumer);
  *done = true;
  return AX_OK;
}

/* An operation whose result nobody reads any more becomes an empty kernel, swept later. */
static void drop_if_dead(fuser *f, ax_op *op, uint32_t buffer) {
  if (f->reads[buffer] > 0 || op->kernel.kernel->store_count != 1) return;
  uncount_op(f, op);
  op->kernel.kernel->store_count = 0;
  op->kernel.kernel->expr_count = 0;
}

static ax_status inline_into(fuser *f, uint32_t at) {
  ax_op *consumer = &f->block->ops[at];
  for (uint32_t slot = 0; slot < consumer->kernel.kernel->slot_count; slot++) {
    uint32_t buffer = consumer->kernel.buffers[slot];
    bool done = false;
    if (!is_plain(f, buffer)) continue;
    for (uint32_t i = at; i-- > 0;) {
      ax_op *producer = &f->block->ops[i];
      const ax_store *store = whole_store(f, producer, buffer);
      if (store == NULL) continue;
      if (!worth_inlining(f, producer, consumer, slot) || overwrites(f, producer, consumer) || !inputs_unwritten(f, i, i + 1, at)) break;
      AX_TRY(substitute(f, producer, store, consumer, slot, &done));
      if (done) drop_if_dead(f, producer, buffer);
      break;
    }
    if (done) slot = AX_NONE; /* the slots are new: start again (each time one producer less is left) */
  }
  return AX_OK;
}

/* --- Merging --- */

static bool share_data(const fuser *f, const ax_op *a, const ax_op *b) {
  for (uint32_t i = 0; i < a->kernel.kernel->slot_count; i++)
    for (uint32_t j = 0; j < b->kernel.kernel->slot_count; j++)
      if (root_of(f->plan, a->kernel.buffers[i]) == root_of(f->plan, b->kernel.buffers[j])) return true;
  return false;
}

/* b may read what a writes only at the very element, and may write nothing that a reads or writes. */
static bool pointwise_related(const fuser *f, const ax_op *a, const ax_op *b) {
  const ax_kernel *ka = a->kernel.kernel, *kb = b->kernel.kernel;
  for (uint32_t i = 0; i < ka->store_count; i++) {
    uint32_t buffer = a->kernel.buffers[ka->stores[i].slot];
    for (uint32_t j = 0; j < kb->expr_count; j++) {
      const ax_expr *expr = &kb->exprs[j];
      if (expr->op != AX_LEAF_LOAD) continue;
      uint32_t other = b->kernel.buffers[expr->slot];
      if (root_of(f->plan, other) != root_of(f->plan, buffer)) continue;
      uint32_t rank = kb->slots[expr->slot].rank;
      if (other != buffer || ka->stores[i].reduce != AX_SCALAR_NONE || !ax_at_is_identity(expr->at, rank) ||
          !ax_at_is_identity(ka->stores[i].at, rank) || rank != ka->rank)
        return false;
    }
  }
  for (uint32_t i = 0; i < kb->store_count; i++)
    for (uint32_t j = 0; j < ka->slot_count; j++)
      if (root_of(f->plan, b->kernel.buffers[kb->stores[i].slot]) == root_of(f->plan, a->kernel.buffers[j])) return false;
  return true;
}

static bool mergeable(const fuser *f, const ax_op *a, const ax_op *b) {
  if (a->kind != AX_OP_KERNEL || a->axes != b->axes || a->kernel.kernel->store_count == 0) return false;
  const ax_kernel *ka = a->kernel.kernel, *kb = b->kernel.kernel;
  if (ka->rank != kb->rank || memcmp(ka->dims, kb->dims, ka->rank * sizeof ka->dims[0]) != 0) return false;
  if (ka->reduce_rank != kb->reduce_rank && ka->reduce_rank != 0 && kb->reduce_rank != 0) return false;
  bool small = ax_dims_elems(ka->rank, ka->dims) <= small_elems;
  return (small || share_data(f, a, b)) && pointwise_related(f, a, b);
}

/* The nodes of b that load what a stores are a's expressions. */
static void map_through(const ax_op *a, const ax_op *b, const ax_ex *a_map, ax_ex *b_map) {
  const ax_kernel *ka = a->kernel.kernel, *kb = b->kernel.kernel;
  for (uint32_t j = 0; j < kb->expr_count; j++)
    for (uint32_t i = 0; kb->exprs[j].op == AX_LEAF_LOAD && i < ka->store_count; i++)
      if (a->kernel.buffers[ka->stores[i].slot] == b->kernel.buffers[kb->exprs[j].slot])
        b_map[j] = a_map[ka->stores[i].expr];
}

static ax_status merge(fuser *f, ax_op *a, ax_op *b, ax_op *into, bool *done) {
  const ax_kernel *ka = a->kernel.kernel, *kb = b->kernel.kernel;
  copier first = {.fuser = f, .from = ka, .from_buffers = a->kernel.buffers, .map = new_map(f, ka)};
  uint32_t reduce_rank = ka->reduce_rank > kb->reduce_rank ? ka->reduce_rank : kb->reduce_rank;
  first.to = ax_kernel_create(&f->plan->arena, ka->rank, reduce_rank, ka->dims);
  first.to_buffers = ax_arena_alloc(&f->plan->arena, most_slots * sizeof first.to_buffers[0]);
  if (first.map == NULL || first.to == NULL || first.to_buffers == NULL) return ax_out_of_memory(0);
  copy_all(&first);
  copier second = first;
  second.from = kb;
  second.from_buffers = b->kernel.buffers;
  second.map = new_map(f, kb);
  if (second.map == NULL) return ax_out_of_memory(0);
  if (!first.failed) map_through(a, b, first.map, second.map);
  copy_all(&second);
  copy_stores(&first, AX_NONE);
  copy_stores(&second, AX_NONE);
  if (first.to->failed) return ax_out_of_memory(0);
  if (first.failed || second.failed) return AX_OK;
  uncount_op(f, a);
  uncount_op(f, b);
  ax_op merged = *into;
  merged.kernel.kernel = first.to;
  merged.kernel.buffers = first.to_buffers;
  count_op(f, &merged);
  ax_op *other = into == a ? b : a;
  other->kernel.kernel->store_count = other->kernel.kernel->expr_count = 0;
  *into = merged;
  *done = true;
  return AX_OK;
}

/* A store of the merged kernel that is read nowhere else goes. */
static ax_status drop_dead_stores(fuser *f, ax_op *op) {
  ax_kernel *kernel = op->kernel.kernel;
  bool dropped = false;
  for (uint32_t i = kernel->store_count; i-- > 0;) {
    uint32_t buffer = op->kernel.buffers[kernel->stores[i].slot];
    if (!is_plain(f, buffer) || f->reads[buffer] > 0) continue;
    if (!dropped) uncount_op(f, op);
    dropped = true;
    memmove(&kernel->stores[i], &kernel->stores[i + 1], (kernel->store_count - i - 1) * sizeof kernel->stores[0]);
    kernel->store_count--;
  }
  if (!dropped) return AX_OK;
  AX_TRY(prune(f, op));
  count_op(f, op);
  return AX_OK;
}

static ax_status merge_back(fuser *f, uint32_t at) {
  ax_op *ops = f->block->ops, *b = &ops[at];
  if (is_cheap(b->kernel.kernel)) return AX_OK; /* its readers compute it themselves */
  uint32_t lowest = at > window ? at - window : 0;
  for (uint32_t i = at; i-- > lowest;) {
    ax_op *a = &ops[i];
    bool done = false;
    if (a->kind == AX_OP_START || a->kind == AX_OP_DONE) return AX_OK; /* what comes before must not wait for what comes after */
    if (!mergeable(f, a, b)) continue;
    bool down = inputs_unwritten(f, i, i + 1, at) && outputs_unused(f, i, i + 1, at);
    bool up = !down && inputs_unwritten(f, at, i + 1, at) && outputs_unused(f, at, i + 1, at);
    if (!down && !up) continue;
    AX_TRY(merge(f, a, b, down ? b : a, &done));
    if (!done) continue;
    AX_TRY(drop_dead_stores(f, down ? b : a));
    if (up) return AX_OK; /* b is gone */
  }
  return AX_OK;
}

/* --- Blocks --- */

static void sweep(ax_block *block) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < block->count; i++) {
    const ax_op *op = &block->ops[i];
    if (op->kind == AX_OP_KERNEL && op->kernel.kernel->store_count == 0) continue;
    block->ops[kept++] = *op;
  }
  block->count = kept;
}

static ax_status fuse_block(fuser *f, ax_block *block);

static ax_status fuse_op(fuser *f, ax_block *block, uint32_t i) {
  ax_op *op = &block->ops[i];
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) AX_TRY(fuse_block(f, ax_op_block(op, k)));
  f->block = block;
  if (op->kind != AX_OP_KERNEL || op->kernel.kernel->store_count == 0) return AX_OK;
  AX_TRY(inline_into(f, i));
  return merge_back(f, i);
}

static ax_status fuse_block(fuser *f, ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) AX_TRY(fuse_op(f, block, i));
  sweep(block);
  return AX_OK;
}

ax_status ax_plan_fuse(ax_plan *plan) {
  fuser f = {.plan = plan};
  f.reads = ax_arena_alloc(&plan->arena, plan->buffer_count * sizeof f.reads[0]);
  f.writes = ax_arena_alloc(&plan->arena, plan->buffer_count * sizeof f.writes[0]);
  f.viewed = ax_arena_alloc(&plan->arena, plan->buffer_count);
  f.hit = ax_arena_alloc(&plan->arena, plan->buffer_count);
  if (f.reads == NULL || f.writes == NULL || f.viewed == NULL || f.hit == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < plan->buffer_count; i++)
    if (plan->buffers[i].root != i) f.viewed[plan->buffers[i].root] = true;
  ax_plan_count(plan, f.reads, f.writes);
  return fuse_block(&f, &plan->block);
}
