/* Fusion: fewer passes over memory. Two rewrites, tried on each kernel of a block in order:

     inline   a kernel that loads b, computed by an earlier kernel, computes b's elements itself. Done if b has no other reader,
              or if computing an element costs no more than loading it.
     merge    two kernels over one index space become one. Arrays that both read are read once, and values that the first
              makes for the second stay in registers.

   Both see through views: other dimensions over the same memory, as reshapes and contiguous slices have. A kernel that loads
   such a view computes the elements that lie there. Two kernels that go through as many steps in the same order are brought
   under the same dimensions. Transposes, strided slices, reversals and broadcasts are kernels that only load, and are taken in
   as such. A view that would need a division stays a pass: a load by one index of an array that was computed under two, unless
   all that was loaded for it lies in that order too.

   Both move work along the block, so the operations in between must not touch the buffers that it reads or writes. Views alias
   their allocation; hazards are decided on allocations. Values computed once for all devices are not pulled into kernels that
   run on each. Kernels of equations with order or state are neither moved nor changed; the values that they load may be computed
   by them.

   This file decides which rewrites are done: by estimates from kernels alone (fuse_worth.c), by what two of them touch
   (fuse_pairs.c), and by the other readers. kernel_rewrite.c does them. The walk along the block notes who touched each allocation
   last, so a question about the operations in between takes no walk of its own. Rewritten kernels are remembered (rewrites.c), and
   equal ones are one object. The remaining operations are copied to the plan's memory at the end. */
#include <string.h>

#include "plan/fuse_pairs.h"
#include "plan/fuse_worth.h"
#include "plan/index_map.h"
#include "plan/op.h"
#include "plan/passes.h"
#include "plan/rewrites.h"

enum { window = 24, reach = 96, small_elems = 4096, small_bytes = 1 << 14, most_shares = 4 };

/* The operation at `position` of the block touches `allocation`. Those of an allocation are linked, the latest first. */
typedef struct touch {
  uint32_t allocation, position, older;
} touch;

typedef struct fuser {
  ax_plan *plan;
  const ax_op *const *only; /* the lists of the blocks that are fused; NULL: all are */
  uint32_t only_count;
  uint32_t *reads; /* by allocation: see ax_plan_count */
  uint32_t *writes;
  uint32_t change; /* what counting adds */
  uint32_t *view, *next_view, next_capacity; /* by allocation, the latest of its buffers; by buffer, the next; AX_NONE */
  uint32_t *last_read; /* by allocation: the last operation of the block that read it to begin with */
  ax_bound *number;    /* by allocation: the kernel that fills all of it with one number; kernel NULL: none does. In whatever block */
  ax_arena *tables;
  ax_kernel_pool pool;
  /* The block being fused: */
  ax_block *block;
  ax_pooled_kernel **pooled; /* by position: the kernel's */
  touch *touches;
  uint32_t touch_count, touch_capacity;
  uint32_t *latest[2]; /* [writes][allocation]: the latest touch, or AX_NONE */
  uint32_t noting;     /* the position of the operation that is being noted */
  bool no_memory;      /* for a note */
  uint32_t *suspects;  /* positions of operations that may have become dead */
  uint32_t suspect_count, suspect_capacity;
} fuser;

static uint32_t allocation_of(const fuser *f, uint32_t buffer) { return f->plan->buffers[buffer].allocation; }

/* --- Who touched an allocation last --- */

/* The list stays in order: work that was merged into an earlier operation goes back by `reach` at most. */
static void note_one(void *context, uint32_t buffer, bool writes) {
  fuser *f = context;
  uint32_t allocation = allocation_of(f, buffer);
  if (ax_grow(&f->touches, sizeof f->touches[0], f->touch_count, 1, &f->touch_capacity) != AX_OK) {
    f->no_memory = true;
    return;
  }
  uint32_t *link = &f->latest[writes][allocation];
  while (*link != AX_NONE && f->touches[*link].position > f->noting) link = &f->touches[*link].older;
  if (*link != AX_NONE && f->touches[*link].position == f->noting) return;
  f->touches[f->touch_count] = (touch){allocation, f->noting, *link};
  *link = f->touch_count++;
}

static ax_status note(fuser *f, uint32_t position) {
  f->noting = position;
  ax_op_visit_all(&f->block->ops[position], note_one, f);
  return f->no_memory ? ax_out_of_memory(0) : AX_OK;
}

static void forget_touches(fuser *f) {
  for (uint32_t i = 0; i < f->touch_count; i++)
    f->latest[0][f->touches[i].allocation] = f->latest[1][f->touches[i].allocation] = AX_NONE;
  f->touch_count = 0;
}

/* The last of the operations noted that reads, or writes, `allocation`; AX_NONE. What was taken out since is forgotten on the
   way. */
static uint32_t last_touch(fuser *f, uint32_t allocation, bool writes) {
  uint32_t *link = &f->latest[writes][allocation];
  while (*link != AX_NONE && f->block->ops[f->touches[*link].position].kind == AX_OP_NONE) *link = f->touches[*link].older;
  return *link != AX_NONE ? f->touches[*link].position : AX_NONE;
}

static bool touched_after(fuser *f, uint32_t buffer, bool writes, uint32_t position) {
  uint32_t last = last_touch(f, allocation_of(f, buffer), writes);
  return last != AX_NONE && last > position;
}

/* No operation after `position` writes what kernel operation `op` reads. */
static bool inputs_unwritten(fuser *f, const ax_op *op, uint32_t position) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (kernel->exprs[i].op == AX_LEAF_LOAD && touched_after(f, op->kernel.buffers[kernel->exprs[i].slot], true, position))
      return false;
  return true;
}

/* No operation after `position` touches what kernel operation `op` writes. */
static bool outputs_unused(fuser *f, const ax_op *op, uint32_t position) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    uint32_t buffer = op->kernel.buffers[kernel->stores[i].slot];
    if (touched_after(f, buffer, false, position) || touched_after(f, buffer, true, position)) return false;
  }
  return true;
}

/* --- Counting --- */

static void count_one(void *context, uint32_t buffer, bool writes) {
  fuser *f = context;
  (writes ? f->writes : f->reads)[allocation_of(f, buffer)] += f->change;
}

static void count_op(fuser *f, const ax_op *op) {
  f->change = 1;
  ax_op_visit(op, count_one, f);
}

static void uncount_op(fuser *f, const ax_op *op) {
  f->change = (uint32_t)-1;
  ax_op_visit(op, count_one, f);
}

/* --- Operations replaced and taken out --- */

/* The kernel operation at `position` becomes `made`, whose use is the operation's now. */
static ax_status replace(fuser *f, uint32_t position, const ax_rewritten *made) {
  ax_op *op = &f->block->ops[position];
  uint32_t *buffers = ax_arena_copy(&f->plan->drafts, made->buffers, made->pooled->kernel->slot_count * sizeof buffers[0]);
  if (buffers == NULL) return ax_out_of_memory(sizeof made->buffers);
  uncount_op(f, op);
  op->kernel = (ax_bound){made->pooled->kernel, buffers};
  count_op(f, op);
  ax_kernel_pool_release(f->pooled[position]);
  f->pooled[position] = made->pooled;
  return AX_OK;
}

static void take_out(fuser *f, uint32_t position) {
  ax_op *op = &f->block->ops[position];
  uncount_op(f, op);
  op->kind = AX_OP_NONE;
  ax_kernel_pool_release(f->pooled[position]);
  f->pooled[position] = NULL;
}

/* Memory of its own that is written once. */
static bool is_plain(const fuser *f, uint32_t allocation) {
  return f->plan->buffers[allocation].kind == AX_BUFFER_TEMP && f->writes[allocation] == 1;
}

static ax_status suspect(fuser *f, uint32_t position) {
  AX_TRY(ax_grow(&f->suspects, sizeof f->suspects[0], f->suspect_count, 1, &f->suspect_capacity));
  f->suspects[f->suspect_count++] = position;
  return AX_OK;
}

/* Memory of its own that nothing reads, however often it is written. */
static bool is_unread(const fuser *f, uint32_t allocation) {
  return f->plan->buffers[allocation].kind == AX_BUFFER_TEMP && f->reads[allocation] == 0;
}

/* Suspects the operations of this block that write allocations which are not read any more: they may be dead. */
static ax_status suspect_writers(fuser *f, const uint32_t *buffers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t allocation = allocation_of(f, buffers[i]);
    if (!is_unread(f, allocation)) continue;
    uint32_t writer = last_touch(f, allocation, true);
    if (writer != AX_NONE) AX_TRY(suspect(f, writer));
  }
  return AX_OK;
}

/* Drops some stores of the kernel operation at `position`, by store; if none is left, the operation. Who wrote what they alone need is
   suspected. */
static ax_status drop_stores(fuser *f, uint32_t position, const bool *dropped) {
  const ax_op *op = &f->block->ops[position];
  const uint32_t slots = op->kernel.kernel->slot_count;
  uint32_t buffers[AX_MAX_SLOTS];
  bool all = true;
  for (uint32_t i = 0; i < op->kernel.kernel->store_count; i++) all = all && dropped[i];
  memcpy(buffers, op->kernel.buffers, slots * sizeof buffers[0]);
  if (all) {
    take_out(f, position);
  } else {
    ax_rewritten left;
    AX_TRY(ax_pool_prune(&f->pool, &op->kernel, dropped, &left));
    if (left.pooled == NULL) return AX_OK;
    AX_TRY(replace(f, position, &left));
  }
  return suspect_writers(f, buffers, slots);
}

/* Drops the stores of a kernel operation to allocations that are not read. */
static ax_status drop_dead_stores(fuser *f, uint32_t position) {
  const ax_op *op = &f->block->ops[position];
  bool dropped[AX_MAX_SLOTS] = {false}, any = false;
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op) || op->kernel.kernel->store_count > AX_MAX_SLOTS) return AX_OK;
  for (uint32_t i = 0; i < op->kernel.kernel->store_count; i++) {
    dropped[i] = is_unread(f, allocation_of(f, op->kernel.buffers[op->kernel.kernel->stores[i].slot]));
    any = any || dropped[i];
  }
  return any ? drop_stores(f, position, dropped) : AX_OK;
}

/* Drops the operation at `position` if it is dead, and all operations that are dead then. */
static ax_status drop_dead(fuser *f, uint32_t position) {
  AX_TRY(suspect(f, position));
  while (f->suspect_count > 0) AX_TRY(drop_dead_stores(f, f->suspects[--f->suspect_count]));
  return AX_OK;
}

/* How often the kernel operation loads from the allocation. */
static uint32_t loads_from(const fuser *f, const ax_op *op, uint32_t allocation) {
  uint32_t loads = 0;
  for (uint32_t i = 0; i < op->kernel.kernel->expr_count; i++) {
    const ax_expr *expr = &op->kernel.kernel->exprs[i];
    loads += expr->op == AX_LEAF_LOAD && allocation_of(f, op->kernel.buffers[expr->slot]) == allocation;
  }
  return loads;
}

/* The store makes every element of its array, once, in whatever order of the kernel's dimensions (ax_kernel_makes: in theirs). */
static bool makes_all(const ax_loop_kernel *kernel, const ax_store *store) {
  const ax_slot *array = &kernel->slots[store->slot];
  bool seen[AX_MAX_RANK + AX_MAX_RANK] = {false};
  if (kernel->reduce_rank > 0) return false;
  for (uint32_t d = 0; d < array->rank; d++) {
    const ax_position *at = &store->at[d];
    if (array->dims[d] == 1) continue;
    if (at->dim < 0 || at->coef != 1 || at->offset != 0 || at->dynamic != AX_NONE || seen[at->dim] ||
        kernel->dims[at->dim] != array->dims[d])
      return false;
    seen[at->dim] = true;
  }
  return true;
}

static ax_status drop_stores_to(fuser *f, uint32_t position, uint32_t allocation) {
  const ax_op *op = &f->block->ops[position];
  bool dropped[AX_MAX_SLOTS];
  if (op->kernel.kernel->store_count > AX_MAX_SLOTS) return AX_OK;
  for (uint32_t i = 0; i < op->kernel.kernel->store_count; i++)
    dropped[i] = allocation_of(f, op->kernel.buffers[op->kernel.kernel->stores[i].slot]) == allocation;
  return drop_stores(f, position, dropped);
}

/* Drops what the last kernel before stored to where the kernel at `at` stores everything, if nobody looked between. */
static ax_status drop_overwritten(fuser *f, uint32_t at) {
  const ax_op *op = &f->block->ops[at];
  for (uint32_t i = 0; i < op->kernel.kernel->store_count; i++) {
    const ax_store *store = &op->kernel.kernel->stores[i];
    const uint32_t buffer = op->kernel.buffers[store->slot], allocation = allocation_of(f, buffer);
    const uint32_t before = last_touch(f, allocation, true), read = last_touch(f, allocation, false);
    const ax_op *old = before != AX_NONE ? &f->block->ops[before] : NULL;
    if (old == NULL || old->kind != AX_OP_KERNEL || ax_op_is_ordered(old) || (read != AX_NONE && read >= before)) continue;
    if (old->axes != op->axes || f->plan->buffers[allocation].kind != AX_BUFFER_TEMP || !ax_is_whole(f->plan, buffer)) continue;
    if (makes_all(op->kernel.kernel, store) && loads_from(f, op, allocation) == 0) AX_TRY(drop_stores_to(f, before, allocation));
  }
  return AX_OK;
}

/* --- Inlining --- */

/* The store by which kernel `op` computes all of `allocation`, element by element; NULL when it does not. */
static const ax_store *whole_store(const fuser *f, const ax_op *op, uint32_t allocation) {
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op)) return NULL;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    uint32_t buffer = op->kernel.buffers[store->slot];
    if (allocation_of(f, buffer) != allocation) continue;
    return ax_is_whole(f->plan, buffer) && ax_kernel_makes(kernel, store) ? store : NULL;
  }
  return NULL;
}

/* Whether inlining would keep more memory in use: the producer's operands, instead of its result, up to a distant reader. In a
   sum of many values that are made one by one, all of them would be kept. */
static bool holds_more(const fuser *f, const ax_bound *producer, uint32_t position, uint32_t at, uint32_t made) {
  int64_t bytes = 0;
  if (at - position <= window) return false;
  for (uint32_t i = 0; i < producer->kernel->slot_count; i++) {
    uint32_t allocation = allocation_of(f, producer->buffers[i]);
    if (allocation != made && f->plan->buffers[allocation].kind == AX_BUFFER_TEMP && f->last_read[allocation] < at)
      bytes += ax_buffer_bytes(&f->plan->buffers[allocation]);
  }
  return bytes > small_bytes && bytes > ax_buffer_bytes(&f->plan->buffers[made]);
}

/* The producer has one result, or several that the consumer alone reads: taken in one by one, they share what they are made of. */
static bool makes_for_one(const fuser *f, const ax_op *producer, const ax_op *consumer) {
  const ax_loop_kernel *from = producer->kernel.kernel, *into = consumer->kernel.kernel;
  if (from->store_count == 1) return true;
  if (from->expr_count + into->expr_count > AX_MOST_EXPRS || from->slot_count + into->slot_count > AX_MOST_SLOTS) return false; /* all or none */
  for (uint32_t i = 0; i < from->store_count; i++) {
    const uint32_t made = allocation_of(f, producer->kernel.buffers[from->stores[i].slot]);
    if (!is_plain(f, made) || loads_from(f, consumer, made) != f->reads[made]) return false;
  }
  return true;
}

/* Whether elements are computed once: by their one reader, or by several that compute a share each. Each load is one read. */
static bool computes_once(const fuser *f, uint32_t position, const ax_store *store, uint32_t at, uint32_t slot) {
  const ax_op *producer = &f->block->ops[position], *consumer = &f->block->ops[at];
  const uint32_t allocation = allocation_of(f, consumer->kernel.buffers[slot]);
  if (producer->axes != consumer->axes || f->reads[allocation] > most_shares || !makes_for_one(f, producer, consumer)) return false;
  if (holds_more(f, &producer->kernel, position, at, allocation)) return false;
  const ax_loop_kernel *kernel = consumer->kernel.kernel;
  const ax_slot *made = &producer->kernel.kernel->slots[store->slot]; /* of parts, where the array is of complex numbers */
  int64_t elems = ax_dims_elems(made->rank, made->dims);
  if (ax_kernel_guards(kernel, slot)) elems += elems / 4; /* padded: computing the padding in vain costs less than a pass */
  return ax_kernel_loads_apart(kernel, slot) && ax_dims_elems(kernel->rank, kernel->dims) * f->reads[allocation] <= elems;
}

/* Whether all that the kernel loads is of one allocation. */
static bool loads_from_one(const fuser *f, const ax_bound *kernel) {
  uint32_t one = AX_NONE;
  for (uint32_t i = 0; i < kernel->kernel->expr_count; i++) {
    if (kernel->kernel->exprs[i].op != AX_LEAF_LOAD) continue;
    const uint32_t from = allocation_of(f, kernel->buffers[kernel->kernel->exprs[i].slot]);
    if (one != AX_NONE && one != from) return false;
    one = from;
  }
  return true;
}

/* Of large arrays a load and one operation are made again sooner than stored and loaded, unless they are made many times; so is
   what differs from its neighbour by as much, if one kernel looks at each once or twice. */
static bool is_made_again(const fuser *f, uint32_t position, const ax_store *store, uint32_t at, uint32_t slot) {
  enum { few_times = 4, large_elems = 1 << 17, few_reads = 2 };
  const ax_bound *producer = &f->block->ops[position].kernel, *consumer = &f->block->ops[at].kernel;
  const uint32_t made = allocation_of(f, consumer->buffers[slot]);
  const int64_t elems = ax_dims_elems(producer->kernel->rank, producer->kernel->dims),
                steps = ax_dims_elems(consumer->kernel->rank, consumer->kernel->dims);
  if (elems <= small_elems || steps > few_times * elems) return false;
  const uint32_t loads = ax_store_light_loads(producer->kernel, store);
  if (loads == 1 && elems <= large_elems) return false;
  if (loads > 1 && (f->reads[made] > few_reads || steps > elems + elems / 4 || !loads_from_one(f, producer))) return false;
  return loads > 0 && !holds_more(f, producer, position, at, made);
}

/* What chooses among parts at each element is made once for many loads, each of which would choose. */
static bool chooses_often(const fuser *f, const ax_loop_kernel *producer, uint32_t allocation) {
  enum { many_loads = 12 };
  return f->reads[allocation] > many_loads && ax_kernel_chooses(producer);
}

static bool worth_inlining(const fuser *f, uint32_t position, const ax_store *store, uint32_t at, uint32_t slot) {
  const ax_loop_kernel *producer = f->block->ops[position].kernel.kernel, *consumer = f->block->ops[at].kernel.kernel;
  if (ax_rows_fill_little(producer, store, consumer)) return false;
  if (computes_once(f, position, store, at, slot) || is_made_again(f, position, store, at, slot)) return true;
  return ax_store_is_cheap(producer, store) && !ax_copy_gathers(producer, store, consumer, slot) &&
         !chooses_often(f, producer, allocation_of(f, f->block->ops[at].kernel.buffers[slot]));
}

/* The consumer writes what the producer reads: computed at once, an element might be read after it is written. Not so when the
   consumer copies, each element to where the producer reads it; `seen`: under the dimensions that the producer has. */
static bool overwrites(const fuser *f, const ax_op *producer, const ax_op *consumer, bool seen) {
  const ax_loop_kernel *from = producer->kernel.kernel, *into = consumer->kernel.kernel;
  uint32_t to, source;
  const ax_position *at;
  bool copies = seen && ax_op_is_copy(consumer, &to, &source, &at) && f->plan->buffers[source].type.rank == into->rank &&
                ax_at_is_identity(at, into->rank);
  for (uint32_t i = 0; i < from->expr_count; i++)
    for (uint32_t k = 0; from->exprs[i].op == AX_LEAF_LOAD && k < into->store_count; k++) {
      uint32_t read = producer->kernel.buffers[from->exprs[i].slot], written = consumer->kernel.buffers[into->stores[k].slot];
      if (allocation_of(f, read) != allocation_of(f, written)) continue;
      if (!copies || read != written || !ax_at_is_identity(from->exprs[i].at, into->rank)) return true;
    }
  return false;
}

static ax_status list_view(fuser *f, uint32_t buffer) {
  uint32_t *first = &f->view[allocation_of(f, buffer)];
  AX_TRY(ax_grow(&f->next_view, sizeof f->next_view[0], buffer, 1, &f->next_capacity));
  f->next_view[buffer] = *first;
  *first = buffer;
  return AX_OK;
}

/* A view like `buffer` but of other dimensions: one that there is, or a new one. */
static uint32_t make_view(void *context, uint32_t buffer, uint32_t rank, const int64_t *dims) {
  fuser *f = context;
  ax_plan *plan = f->plan;
  ax_buffer view = plan->buffers[buffer];
  view.type = ax_array_type(view.type.dtype, AX_LIST(rank, dims));
  for (uint32_t i = f->view[view.allocation], tried = 0; i != AX_NONE && tried < window; i = f->next_view[i], tried++) {
    const ax_buffer *b = &plan->buffers[i];
    if (b->offset == view.offset && b->loop == view.loop && b->step == view.step && b->axes == view.axes &&
        b->type.dtype == view.type.dtype && ax_same_shape(&b->type, &view.type))
      return i;
  }
  if (ax_plan_add_buffer(plan, &view, &buffer) != AX_OK || list_view(f, buffer) != AX_OK) return AX_NONE;
  return buffer;
}

/* --- Numbers: arrays of one number that a kernel made, in this block or in one around it, as before a loop --- */

static bool is_number(const ax_loop_kernel *kernel) { return kernel->exprs[kernel->stores[0].expr].op == AX_LEAF_CONST; }

/* Whether the kernel, of a few nodes, makes all of an allocation. */
static bool may_be_number(const fuser *f, const ax_op *op) {
  enum { few_nodes = 6, few_slots = 4 };
  if (op->kind != AX_OP_KERNEL || op->kernel.kernel->store_count != 1 || op->kernel.kernel->reduce_rank > 0) return false;
  if (op->kernel.kernel->expr_count > few_nodes || op->kernel.kernel->slot_count > few_slots) return false;
  const uint32_t made = allocation_of(f, op->kernel.buffers[op->kernel.kernel->stores[0].slot]);
  return is_plain(f, made) && whole_store(f, op, made) != NULL;
}

/* The number that a kernel which loads through this view, of any part and shape, loads everywhere; NULL: it is none, or its bytes are seen as
   another dtype. */
static const ax_bound *number_of(const fuser *f, uint32_t view) {
  const ax_buffer *seen = &f->plan->buffers[view];
  const ax_bound *number = &f->number[seen->allocation];
  const bool same = seen->type.dtype == f->plan->buffers[seen->allocation].type.dtype && seen->loop == AX_NONE;
  return number->kernel != NULL && same ? number : NULL;
}

static int64_t elements_before(const ax_buffer *view) { return view->offset / (int64_t)ax_dtype_bytes(view->type.dtype); }

/* Puts the numbers that the kernel reads in their places. */
static ax_status take_numbers(fuser *f, ax_bound *kernel) {
  const ax_views views = {make_view, f};
  for (uint32_t slot = 0; slot < kernel->kernel->slot_count; slot++) {
    const ax_bound *number = number_of(f, kernel->buffers[slot]);
    const int64_t offset = elements_before(&f->plan->buffers[kernel->buffers[slot]]);
    ax_bound made;
    if (number == NULL) continue;
    AX_TRY(ax_kernel_inline(f->tables, number, &number->kernel->stores[0], kernel, slot, offset, &views, &made));
    if (made.kernel == NULL) return AX_OK;
    *kernel = made, slot = AX_NONE; /* the slots are new */
  }
  return AX_OK;
}

typedef struct numbering {
  fuser *f;
  ax_status status;
} numbering;

static void note_number(void *context, ax_op *op) {
  numbering *n = context;
  if (n->status != AX_OK || !may_be_number(n->f, op)) return;
  const uint32_t made = allocation_of(n->f, op->kernel.buffers[op->kernel.kernel->stores[0].slot]);
  ax_bound kernel = op->kernel;
  n->status = take_numbers(n->f, &kernel);
  if (n->status == AX_OK && is_number(kernel.kernel)) n->f->number[made] = kernel;
}

/* Of the operations in the order of the plan, so that those before a loop are known in it. */
static ax_status find_numbers(fuser *f) {
  numbering n = {f, AX_OK};
  ax_block_walk(&f->plan->block, note_number, &n);
  return n.status;
}

static bool stores_to(const ax_loop_kernel *kernel, uint32_t slot) {
  for (uint32_t i = 0; i < kernel->store_count; i++)
    if (kernel->stores[i].slot == slot) return true;
  return false;
}

static ax_status inline_number(fuser *f, uint32_t at, uint32_t slot, bool *done) {
  ax_op *consumer = &f->block->ops[at];
  const ax_bound *number = number_of(f, consumer->kernel.buffers[slot]);
  const int64_t offset = elements_before(&f->plan->buffers[consumer->kernel.buffers[slot]]);
  const ax_views views = {make_view, f};
  ax_rewritten made;
  if (number == NULL || stores_to(consumer->kernel.kernel, slot)) return AX_OK;
  AX_TRY(ax_pool_inline(&f->pool, number, 0, &consumer->kernel, slot, offset, &views, &made));
  if (made.pooled == NULL) return AX_OK;
  *done = true;
  return replace(f, at, &made);
}

/* --- Values --- */

/* Tries to inline what slot `slot` of the operation at `at` loads: a value, or a view of it. */
static ax_status inline_slot(fuser *f, uint32_t at, uint32_t slot, bool *done) {
  ax_op *consumer = &f->block->ops[at];
  const ax_buffer view = f->plan->buffers[consumer->kernel.buffers[slot]];
  if (!is_plain(f, view.allocation) || view.loop != AX_NONE) return AX_OK;
  uint32_t position = last_touch(f, view.allocation, true);
  if (position == AX_NONE) return inline_number(f, at, slot, done); /* computed outside of this block, or by the consumer */
  ax_op *producer = &f->block->ops[position];
  const ax_store *store = whole_store(f, producer, view.allocation);
  if (store == NULL || producer->kernel.kernel->slots[store->slot].dtype != view.type.dtype) return AX_OK; /* parts of complex numbers are */
  if (!worth_inlining(f, position, store, at, slot) || !inputs_unwritten(f, producer, position) ||
      overwrites(f, producer, consumer, consumer->kernel.buffers[slot] == producer->kernel.buffers[store->slot]))
    return AX_OK;
  const ax_views views = {make_view, f};
  uint32_t number = (uint32_t)(store - producer->kernel.kernel->stores);
  ax_rewritten made;
  AX_TRY(ax_pool_inline(&f->pool, &producer->kernel, number, &consumer->kernel, slot, elements_before(&view), &views, &made));
  if (made.pooled == NULL) return AX_OK;
  AX_TRY(replace(f, at, &made));
  *done = true;
  return drop_dead(f, position);
}

/* The nodes of the kernel that made what the slot loads; 0: no kernel of this block did. */
static uint32_t nodes_behind(fuser *f, uint32_t at, uint32_t slot) {
  const uint32_t position = last_touch(f, allocation_of(f, f->block->ops[at].kernel.buffers[slot]), true);
  if (position == AX_NONE || position == at || f->block->ops[position].kind != AX_OP_KERNEL) return 0;
  return f->block->ops[position].kernel.kernel->expr_count;
}

/* Kernels of one node, as numbers, first: each rewrite copies all that has been taken in before. */
static ax_status inline_into(fuser *f, uint32_t at) {
  bool done = false;
  for (uint32_t slot = 0; slot < f->block->ops[at].kernel.kernel->slot_count; slot++) {
    if (nodes_behind(f, at, slot) == 1) AX_TRY(inline_slot(f, at, slot, &done));
    if (done) slot = AX_NONE; /* the slots are new: start again (each time one producer less is left) */
    done = false;
  }
  for (uint32_t slot = 0; slot < f->block->ops[at].kernel.kernel->slot_count; slot++) {
    AX_TRY(inline_slot(f, at, slot, &done));
    if (done) slot = AX_NONE;
    done = false;
  }
  return AX_OK;
}

/* --- Dimensions that are one --- */

/* A kernel that counts along two of its dimensions together, as block * 256 + place, goes along one dimension instead if all else that it
   does allows that: then its loops are longer, and its paddings are known. */
static ax_status join_dims(fuser *f, uint32_t at, bool *done) {
  const ax_op *op = &f->block->ops[at];
  const ax_views views = {make_view, f};
  for (uint32_t d = op->kernel.kernel->rank; d-- > 1;) {
    const ax_loop_kernel *kernel = op->kernel.kernel;
    int64_t dims[AX_MAX_RANK];
    ax_rewritten made;
    if (kernel->reduce_rank > 0 || kernel->running || kernel->rank > AX_MAX_RANK) return AX_OK;
    if (!ax_kernel_counts_over(kernel, d) || !ax_mul_i64(kernel->dims[d - 1], kernel->dims[d], &dims[d - 1])) continue;
    memcpy(dims, kernel->dims, (d - 1) * sizeof dims[0]);
    memcpy(&dims[d], &kernel->dims[d + 1], (kernel->rank - d - 1) * sizeof dims[0]);
    AX_TRY(ax_pool_redimension(&f->pool, &op->kernel, kernel->rank - 1, dims, &views, &made));
    if (made.pooled == NULL) continue;
    *done = true;
    AX_TRY(replace(f, at, &made));
  }
  return AX_OK;
}

/* --- Merging --- */

/* Two kernels that go through as many steps in the same order are made to do so under the same dimensions: those of the one with
   fewer, if the other can be had so, or of the one with more. */
static ax_status bring_together(fuser *f, ax_bound *a, ax_bound *b, ax_rewritten *made) {
  const ax_views views = {make_view, f};
  for (int k = 0; k < 2; k++) {
    ax_bound *one = (a->kernel->rank > b->kernel->rank) == (k == 0) ? a : b;
    const ax_loop_kernel *like = (one == a ? b : a)->kernel;
    if (one->kernel->reduce_rank != 0 || like->rank > AX_MAX_RANK) continue;
    AX_TRY(ax_pool_redimension(&f->pool, one, like->rank, like->dims, &views, made));
    if (made->pooled == NULL) continue;
    *one = (ax_bound){made->pooled->kernel, made->buffers};
    return AX_OK;
  }
  return AX_OK;
}

/* Prepares two kernels to be merged, a first, as *x and *y; without kernels if they should not be merged. *brought is the one
   that had to be rewritten, if any; the caller releases it. */
static ax_status prepare_merge(fuser *f, const ax_op *a, const ax_op *b, ax_bound *x, ax_bound *y, ax_rewritten *brought) {
  brought->pooled = NULL;
  *x = *y = (ax_bound){NULL, NULL};
  if (a->kind != AX_OP_KERNEL || a->axes != b->axes || ax_op_is_ordered(a) || ax_op_is_ordered(b)) return AX_OK;
  const ax_loop_kernel *ka = a->kernel.kernel, *kb = b->kernel.kernel;
  int64_t elems = ax_dims_elems(ka->rank, ka->dims);
  const bool same = ax_kernels_same_space(ka, kb);
  if (ka->running || kb->running) return AX_OK; /* its steps have an order, which its accumulators follow */
  if (ka->reduce_rank != kb->reduce_rank && ka->reduce_rank != 0 && kb->reduce_rank != 0) return AX_OK;
  if (!same && (elems == 0 || elems != ax_dims_elems(kb->rank, kb->dims))) return AX_OK;
  if ((!same || elems > small_elems) && !ax_kernels_share(f->plan, &a->kernel, &b->kernel, 0)) return AX_OK;
  ax_bound first = a->kernel, second = b->kernel;
  if (!same) AX_TRY(bring_together(f, &first, &second, brought));
  if (!ax_kernels_same_space(first.kernel, second.kernel) || !ax_bounds_fit(&first, &second) ||
      !ax_kernels_agree(f->plan, &first, &second) ||
      (elems > small_elems &&
       (!ax_kernels_walk_alike(first.kernel, second.kernel) || ax_kernels_need_blocks(first.kernel, second.kernel))))
    return AX_OK;
  *x = first;
  *y = second;
  return AX_OK;
}

/* Merges the operations at `first` and `second`, whose kernels are x and y, into one at `into`, which is one of the two places. */
static ax_status merge(fuser *f, uint32_t first, uint32_t second, const ax_bound *x, const ax_bound *y, uint32_t into, bool *done) {
  ax_rewritten made;
  AX_TRY(ax_pool_merge(&f->pool, x, y, &made));
  if (made.pooled == NULL) return AX_OK;
  AX_TRY(replace(f, into, &made));
  take_out(f, into == first ? second : first);
  *done = true;
  return AX_OK;
}

/* Whether the kernel's readers will compute its result themselves, for no more than a load. */
static bool left_to_readers(const fuser *f, const ax_op *op) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  uint32_t buffer = op->kernel.buffers[kernel->stores[0].slot];
  return ax_kernel_is_cheap(kernel) && is_plain(f, allocation_of(f, buffer)) && ax_is_whole(f->plan, buffer);
}

/* Likewise of kernel `op`, some of whose readers are kernels beyond `at`. With this one it would be stored. */
static bool goes_into_readers(const fuser *f, const ax_op *op, uint32_t at) {
  if (op->kind != AX_OP_KERNEL || !left_to_readers(f, op)) return false;
  const uint32_t last = f->last_read[allocation_of(f, op->kernel.buffers[op->kernel.kernel->stores[0].slot])];
  return last > at && last < f->block->count && f->block->ops[last].kind == AX_OP_KERNEL;
}

/* Whether the kernel loads the value under a guard, as one that puts values together. Whoever looks at each of the pieces takes that kernel in,
   and then the pieces. */
static bool puts_together(const fuser *f, const ax_bound *kernel, uint32_t allocation) {
  for (uint32_t slot = 0; slot < kernel->kernel->slot_count; slot++)
    if (allocation_of(f, kernel->buffers[slot]) == allocation && ax_kernel_guards(kernel->kernel, slot)) return true;
  return false;
}

/* Whether only one kernel, beyond `at`, reads the result, and will take this kernel in. */
static bool waits_for_reader(const fuser *f, const ax_op *op, uint32_t at) {
  if (op->kind != AX_OP_KERNEL || op->kernel.kernel->store_count != 1) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  uint32_t allocation = allocation_of(f, op->kernel.buffers[kernel->stores[0].slot]);
  if (!is_plain(f, allocation) || f->reads[allocation] != 1 || f->last_read[allocation] <= at ||
      f->last_read[allocation] >= f->block->count)
    return false;
  const ax_op *reader = &f->block->ops[f->last_read[allocation]];
  return whole_store(f, op, allocation) != NULL && reader->kind == AX_OP_KERNEL && reader->axes == op->axes &&
         !ax_op_is_ordered(reader) &&
         (ax_dims_elems(reader->kernel.kernel->rank, reader->kernel.kernel->dims) <=
              ax_type_elems(&f->plan->buffers[allocation].type) ||
          puts_together(f, &reader->kernel, allocation));
}

/* Whether a kernel may go far, down or up: what it makes is small, or going down it holds no more than its result. */
static bool may_go_far(const fuser *f, const ax_op *op, uint32_t position, uint32_t at, bool down) {
  const uint32_t made = allocation_of(f, op->kernel.buffers[op->kernel.kernel->stores[0].slot]);
  return ax_buffer_bytes(&f->plan->buffers[made]) <= small_bytes || (down && !holds_more(f, &op->kernel, position, at, made));
}

/* Whether two kernels make large results, neither from the other's, and share hardly anything, as two gathers by the same numbers
   do. Together they would save next to nothing, and both results would be held from the first kernel's place to the second's. */
static bool hold_more_together(const fuser *f, const ax_bound *a, const ax_bound *b) {
  const int64_t steps = ax_dims_elems(a->kernel->rank, a->kernel->dims);
  return steps > small_elems && ax_kernel_makes_much(f->plan, a) && ax_kernel_makes_much(f->plan, b) && !ax_kernel_feeds(a, b) &&
         !ax_kernels_share(f->plan, a, b, steps / 8);
}

static bool fill_little_together(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  return ax_rows_fill_little(a, &a->stores[0], b) || ax_rows_fill_little(b, &b->stores[0], a);
}

/* A copy to a place that no other operation can write (a row that a loop stacks, say) joins only the kernel that computes the
   value. Copies of carries stay by themselves, since coalescing removes them. */
static ax_status merge_back(fuser *f, uint32_t at) {
  ax_op *ops = f->block->ops, *b = &ops[at];
  if (left_to_readers(f, b)) return AX_OK;
  bool cheap = ax_kernel_is_cheap(b->kernel.kernel), waits = waits_for_reader(f, b, at);
  uint32_t lowest = at > reach ? at - reach : 0, passed = 0;
  for (uint32_t i = at; i-- > lowest && passed < window;) {
    ax_op *a = &ops[i];
    bool done = false;
    passed += a->kind != AX_OP_NONE;
    if (waits_for_reader(f, a, at) || goes_into_readers(f, a, at)) continue;
    if (ax_op_rules_of(a)->is_exchange || ax_op_has_messages(a))
      return AX_OK; /* what comes before must not wait for what comes after */
    if (a->kind != AX_OP_KERNEL || (cheap && !ax_kernel_feeds(&a->kernel, &b->kernel) && !ax_bounds_fill_rows(&a->kernel, &b->kernel)) ||
        (waits && ax_kernel_stays_apart(f->plan, &a->kernel, &b->kernel)) || hold_more_together(f, &a->kernel, &b->kernel) ||
        fill_little_together(a->kernel.kernel, b->kernel.kernel) || ax_reductions_have_nothing_in_common(f->plan, &a->kernel, &b->kernel))
      continue;
    bool down = inputs_unwritten(f, a, i) && outputs_unused(f, a, i);
    bool up = !down && inputs_unwritten(f, b, i) && outputs_unused(f, b, i);
    if (!down && !up) continue;
    if (at - i > window && !may_go_far(f, down ? a : b, i, at, down)) continue;
    ax_bound x, y;
    ax_rewritten brought;
    AX_TRY(prepare_merge(f, a, b, &x, &y, &brought));
    if (x.kernel != NULL) AX_TRY(merge(f, i, at, &x, &y, down ? at : i, &done));
    ax_kernel_pool_release(brought.pooled);
    if (!done) continue;
    AX_TRY(drop_dead(f, down ? at : i));
    if (up) return note(f, i); /* b is gone */
    if (b->kind == AX_OP_NONE) return AX_OK; /* all it does is dead */
  }
  return AX_OK;
}

/* --- Blocks --- */

static ax_status fuse_op(fuser *f, uint32_t i) {
  AX_TRY(drop_dead(f, i));
  if (f->block->ops[i].kind == AX_OP_KERNEL) {
    bool joined = false;
    AX_TRY(inline_into(f, i));
    AX_TRY(join_dims(f, i, &joined));
    if (joined) AX_TRY(inline_into(f, i));
    AX_TRY(drop_overwritten(f, i));
    AX_TRY(merge_back(f, i));
  }
  return note(f, i);
}

/* Each kernel operation does the kernel of the pool that equals its own. */
static ax_status pool_kernels(fuser *f) {
  for (uint32_t i = 0; i < f->block->count; i++) {
    ax_op *op = &f->block->ops[i];
    if (op->kind != AX_OP_KERNEL) continue;
    f->pooled[i] = ax_kernel_pool_find(&f->pool, op->kernel.kernel);
    if (f->pooled[i] == NULL) return ax_out_of_memory(0);
    op->kernel.kernel = f->pooled[i]->kernel;
  }
  return AX_OK;
}

/* Moves the block's list, and each kernel in it once, to the plan's memory. */
static ax_status settle(fuser *f) {
  ax_block *block = f->block;
  ax_arena *arena = &f->plan->arena;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    ax_pooled_kernel *pooled = f->pooled[i];
    if (op->kind != AX_OP_KERNEL) continue;
    if (pooled->kept == NULL) pooled->kept = ax_kernel_copy(arena, pooled->kernel);
    op->kernel.kernel = pooled->kept;
    op->kernel.buffers = ax_arena_copy(arena, op->kernel.buffers, pooled->kernel->slot_count * sizeof op->kernel.buffers[0]);
    if (op->kernel.kernel == NULL || op->kernel.buffers == NULL) return ax_out_of_memory(0);
  }
  ax_block_sweep(block);
  ax_op *ops = ax_arena_copy(arena, block->ops, block->count * sizeof ops[0]);
  if (ops == NULL) return ax_out_of_memory(block->count * sizeof ops[0]);
  block->ops = ops;
  block->capacity = block->count;
  return AX_OK;
}

static void note_read(void *context, uint32_t buffer, bool writes) {
  fuser *f = context;
  if (!writes) f->last_read[allocation_of(f, buffer)] = f->noting;
}

static bool is_wanted(const fuser *f, const ax_block *block) {
  for (uint32_t i = 0; i < f->only_count; i++)
    if (f->only[i] == block->ops) return true;
  return f->only == NULL;
}

static ax_status fuse_block(void *context, ax_block *block, bool is_body) {
  fuser *f = context;
  ax_status status = AX_OK;
  (void)is_body;
  if (!is_wanted(f, block)) return AX_OK;
  f->block = block;
  uint32_t count = block->count;
  f->pooled = ax_calloc(count, sizeof f->pooled[0]);
  if (f->pooled == NULL) return ax_out_of_memory(count * sizeof f->pooled[0]);
  status = pool_kernels(f);
  for (f->noting = 0; f->noting < count; f->noting++) ax_op_visit_all(&block->ops[f->noting], note_read, f);
  for (uint32_t i = 0; i < count && status == AX_OK; i++) status = fuse_op(f, i);
  if (status == AX_OK) status = settle(f);
  /* They are drafts, which go when the pass ends: a pass `order` after this one has none to follow. */
  for (uint32_t i = 0; i < block->count; i++) block->ops[i].control_dependence = NULL;
  for (uint32_t i = 0; i < count; i++) ax_kernel_pool_release(f->pooled[i]);
  ax_free(f->pooled);
  forget_touches(f);
  return status;
}

/* The tables by allocation, which go when the pass ends. */
static ax_status make_tables(fuser *f, ax_arena *tables) {
  uint32_t count = f->plan->buffer_count;
  f->tables = tables;
  f->number = ax_arena_alloc(tables, count * sizeof f->number[0]);
  f->reads = ax_arena_alloc(tables, count * sizeof f->reads[0]);
  f->writes = ax_arena_alloc(tables, count * sizeof f->writes[0]);
  f->view = ax_arena_alloc(tables, count * sizeof f->view[0]);
  f->last_read = ax_arena_alloc(tables, count * sizeof f->last_read[0]);
  for (int k = 0; k < 2; k++) f->latest[k] = ax_arena_alloc(tables, count * sizeof f->latest[k][0]);
  if (f->number == NULL || f->reads == NULL || f->writes == NULL || f->view == NULL || f->last_read == NULL || f->latest[0] == NULL ||
      f->latest[1] == NULL)
    return ax_out_of_memory(count * sizeof f->reads[0]);
  for (int k = 0; k < 2 && count > 0; k++) memset(f->latest[k], 0xff, count * sizeof f->latest[k][0]);
  if (count > 0) memset(f->view, 0xff, count * sizeof f->view[0]);
  for (uint32_t i = 0; i < count; i++) AX_TRY(list_view(f, i));
  ax_plan_count(f->plan, f->reads, f->writes);
  return find_numbers(f);
}

ax_status ax_plan_fuse(ax_plan *plan) { return ax_plan_fuse_again(plan, NULL, 0); }

ax_status ax_plan_fuse_again(ax_plan *plan, const ax_op *const *lists, uint32_t count) {
  ax_arena tables = {0};
  fuser f = {.plan = plan, .only = lists, .only_count = count};
  ax_status status = make_tables(&f, &tables);
  if (status == AX_OK) status = ax_blocks_visit(&plan->block, fuse_block, &f);
  ax_free(f.touches);
  ax_free(f.suspects);
  ax_free(f.next_view);
  ax_kernel_pool_deinit(&f.pool);
  ax_arena_deinit(&tables);
  if (status == AX_OK && lists == NULL) ax_arena_deinit(&plan->drafts); /* no kernel lies there any more */
  return status;
}
