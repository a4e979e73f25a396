/* Temporaries overwritten by the values that are computed from them:

     g = dot_general a b           g = dot_general a b                     g and r are in one memory, which is the result's
     r = w - 0.1 g          as     r = w - 0.1 g, each element over g's

   A kernel that reads a temporary for the last time, element by element at the places that it writes, may write its result there.
   So a gradient needs no memory beside that of the new weights, and a chain of passes over memory needs one array. It is what
   coalesce does with donated inputs and with carries; temporaries come after the pass rows, which decides by allocations what stays
   out of memory altogether. Routines that say so (ax_routine.in_place) overwrite their operand in the same way, as a Fourier transform
   does that is made line by line.

   Synchronisation is derived later, on allocations. What other devices read or write keeps memory of its own, so that no device
   waits for another one because of this pass. */
#include <string.h>

#include "plan/coalesce.h"
#include "plan/op.h"
#include "plan/passes.h"

/* Smaller temporaries keep memory of their own, which a cache holds anyway. The bound is higher within loops: steps of Lorenz'
   equations with arrays of 16 KiB, by two threads, took 1.1 times as long when each array overwrote the one before. */
enum { least = 4 << 10, least_in_loops = 32 << 10 }; /* bytes */

typedef struct overwriter {
  ax_plan *plan;
  ax_arena scratch;
  uint32_t *visits;           /* by allocation: in the whole plan, those as results among them */
  bool *exchanged;            /* by allocation: other devices read it or write to it */
  uint32_t *view, *next_view; /* by allocation, its first buffer; by buffer, the allocation's next one; AX_NONE */
  uint32_t *here, *first, *last; /* by allocation, in the block at work: visits; its first and last operation */
  bool *read_first;           /* likewise: the first operation reads it */
  uint32_t op;                /* being listed */
  int64_t least;              /* bytes of what is overwritten in the block */
} overwriter;

/* A kernel of the block, by itself or in a group. */
typedef struct member {
  const ax_op *op, *group; /* group: NULL, if it is by itself */
  const ax_rows_slot *slots; /* of the member */
  uint32_t number, at;     /* at: of the operation in the block */
} member;

static uint32_t allocation_of(const overwriter *o, uint32_t buffer) { return o->plan->buffers[buffer].allocation; }

/* --- Touches --- */

static void list_touch(void *context, uint32_t buffer, bool writes) {
  overwriter *o = context;
  const uint32_t allocation = allocation_of(o, buffer);
  if (o->here[allocation]++ == 0) o->first[allocation] = o->op;
  if (o->first[allocation] == o->op && !writes) o->read_first[allocation] = true;
  o->last[allocation] = o->op;
}

static void forget_touch(void *context, uint32_t buffer, bool writes) {
  overwriter *o = context;
  (void)writes;
  o->here[allocation_of(o, buffer)] = 0;
  o->read_first[allocation_of(o, buffer)] = false;
}

static void list_block(overwriter *o, const ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) ax_op_visit_all(&block->ops[i], forget_touch, o);
  for (o->op = 0; o->op < block->count; o->op++) ax_op_visit_all(&block->ops[o->op], list_touch, o);
  if (block != &o->plan->block) return;
  for (uint32_t k = 0; k < o->plan->out_count; k++) {
    const uint32_t allocation = allocation_of(o, o->plan->out[k]);
    o->here[allocation]++;
    o->last[allocation] = AX_NONE; /* needed to the end */
  }
}

/* --- Which kernel may write over which temporary --- */

/* A temporary that the block alone touches. */
static bool is_own(const overwriter *o, uint32_t allocation) {
  const bool is_temporary = o->plan->buffers[allocation].kind == AX_BUFFER_TEMP;
  return is_temporary && !o->exchanged[allocation] && o->here[allocation] == o->visits[allocation];
}

static bool same_storage(const ax_plan *plan, uint32_t a, uint32_t b) {
  const ax_buffer *x = &plan->buffers[a], *y = &plan->buffers[b];
  return x->axes == y->axes && x->type.dtype == y->type.dtype && ax_type_elems(&x->type) == ax_type_elems(&y->type);
}

/* In bytes, since a kernel sees the two parts of a complex number as elements. */
static bool is_whole(const ax_plan *plan, uint32_t buffer) {
  return ax_buffer_bytes(&plan->buffers[buffer]) == ax_buffer_bytes(&plan->buffers[plan->buffers[buffer].allocation]);
}

static bool touches(const overwriter *o, const ax_op *op, uint32_t allocation) {
  for (uint32_t i = 0; i < ax_op_slots(op); i++)
    if (allocation_of(o, ax_op_slot(op, i).buffer) == allocation) return true;
  return false;
}

/* In a group, no other member reads the old value, and none writes the new one before. All members touch a row in the same block
   of rows, so those that read the new value find its rows written, and those of later blocks not begun. */
static bool alone_in_group(const overwriter *o, const member *m, uint32_t made, uint32_t old) {
  for (uint32_t k = 0; m->group != NULL && k < m->group->rows->count; k++) {
    const ax_op *other = &m->group->rows->members[k];
    if (k != m->number && touches(o, other, old)) return false;
    if (k < m->number && touches(o, other, made)) return false;
  }
  return true;
}

/* Both are in memory, and kernels of a group that stand for several find theirs at the same distance in both. */
static bool same_rows(const member *m, uint32_t store, uint32_t load) {
  if (m->group == NULL) return true;
  const ax_rows_slot *to = &m->slots[store], *from = &m->slots[load];
  return to->row_bytes == 0 && from->row_bytes == 0 && to->outer_step == from->outer_step;
}

static bool writes(const overwriter *o, const ax_op *kernel, uint32_t allocation) {
  const ax_loop_kernel *k = kernel->kernel.kernel;
  for (uint32_t i = 0; i < k->store_count; i++)
    if (allocation_of(o, kernel->kernel.buffers[k->stores[i].slot]) == allocation) return true;
  return false;
}

/* As far as other operations go, operation `at` may write buffer `to`, which it makes, over buffer `from`, which it reads. */
static bool may_unite(const overwriter *o, uint32_t to, uint32_t from, uint32_t at) {
  const ax_plan *plan = o->plan;
  const uint32_t made = allocation_of(o, to), old = allocation_of(o, from);
  if (made == old || ax_buffer_bytes(&plan->buffers[made]) < o->least) return false;
  if (!is_own(o, made) || !is_own(o, old) || !same_storage(plan, made, old)) return false;
  if (o->first[made] != at || o->last[old] != at || o->first[old] == at || o->read_first[old]) return false;
  return is_whole(plan, to) && is_whole(plan, from);
}

/* The kernel may write what it stores in slot `store` over what it loads from slot `load`. */
static bool may_overwrite(const overwriter *o, const member *m, uint32_t store, uint32_t load) {
  const ax_plan *plan = o->plan;
  const uint32_t *buffers = m->op->kernel.buffers, made = allocation_of(o, buffers[store]), old = allocation_of(o, buffers[load]);
  if (!may_unite(o, buffers[store], buffers[load], m->at) || !same_rows(m, store, load)) return false;
  return !writes(o, m->op, old) && alone_in_group(o, m, made, old) && ax_kernel_in_place(plan, m->op, made, old);
}

/* --- One memory for both --- */

/* From here on, `made` is in the memory of `old`. */
static void unite(overwriter *o, uint32_t made, uint32_t old) {
  ax_buffer *buffers = o->plan->buffers;
  uint32_t end = AX_NONE;
  for (uint32_t i = o->view[made]; i != AX_NONE; i = o->next_view[i]) {
    buffers[i].allocation = old;
    end = i;
  }
  o->next_view[end] = o->view[old];
  o->view[old] = o->view[made];
  o->view[made] = AX_NONE;
  buffers[old].updated = buffers[old].updated || buffers[made].updated;
  o->visits[old] += o->visits[made];
  o->here[old] += o->here[made];
  o->last[old] = o->last[made];
}

static void overwrite_by(overwriter *o, const member *m) {
  const ax_loop_kernel *kernel = m->op->kernel.kernel;
  for (uint32_t s = 0; s < kernel->store_count; s++) {
    const uint32_t store = kernel->stores[s].slot;
    for (uint32_t load = 0; load < kernel->slot_count; load++) {
      if (!may_overwrite(o, m, store, load)) continue;
      unite(o, allocation_of(o, m->op->kernel.buffers[store]), allocation_of(o, m->op->kernel.buffers[load]));
      break;
    }
  }
}

static void overwrite_by_routine(overwriter *o, const ax_op *op, uint32_t at) {
  const ax_routine *routine = op->routine;
  const uint32_t to = routine->buffers[routine->in_count], from = routine->buffers[0];
  if (!routine->in_place || !may_unite(o, to, from, at)) return;
  for (uint32_t k = 1; k < routine->in_count; k++)
    if (allocation_of(o, routine->buffers[k]) == allocation_of(o, from)) return;
  unite(o, allocation_of(o, to), allocation_of(o, from));
}

static ax_status overwrite_in(void *context, ax_block *block, bool is_body) {
  overwriter *o = context;
  (void)is_body;
  o->least = block == &o->plan->block ? least : least_in_loops;
  list_block(o, block);
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    uint32_t count;
    if (op->kind == AX_OP_ROUTINE) overwrite_by_routine(o, op, i);
    const ax_op *members = ax_op_members(op, &count);
    const ax_rows_slot *slots = op->kind == AX_OP_ROWS ? op->rows->slots : NULL;
    for (uint32_t k = 0; k < count; k++) {
      const member one = {&members[k], slots != NULL ? op : NULL, slots, k, i};
      if (members[k].kind == AX_OP_KERNEL) overwrite_by(o, &one);
      if (slots != NULL) slots += ax_op_slots(&members[k]);
    }
  }
  return AX_OK;
}

/* --- The plan --- */

static void note_exchanged(void *context, uint32_t buffer, bool is_written) {
  overwriter *o = context;
  (void)is_written;
  o->exchanged[allocation_of(o, buffer)] = true;
}

static void note_operation(void *context, ax_op *op) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  if (rules->is_exchange || rules->is_message || rules->waits) ax_op_visit(op, note_exchanged, context);
}

static ax_status begin(overwriter *o) {
  const ax_plan *plan = o->plan;
  const size_t count = plan->buffer_count;
  uint32_t *tables = ax_arena_alloc(&o->scratch, 7 * count * sizeof tables[0]);
  bool *flags = ax_arena_alloc(&o->scratch, 2 * count);
  if (tables == NULL || flags == NULL) return ax_out_of_memory(7 * count * sizeof tables[0]);
  uint32_t *const writes_of = tables + 6 * count;
  o->visits = tables, o->view = tables + count, o->next_view = tables + 2 * count;
  o->here = tables + 3 * count, o->first = tables + 4 * count, o->last = tables + 5 * count;
  o->exchanged = flags, o->read_first = flags + count;
  memset(o->view, 0xff, count * sizeof o->view[0]);
  for (uint32_t i = 0; i < count; i++) {
    o->next_view[i] = o->view[plan->buffers[i].allocation];
    o->view[plan->buffers[i].allocation] = i;
  }
  ax_plan_count(plan, o->visits, writes_of);
  for (uint32_t i = 0; i < count; i++) o->visits[i] += writes_of[i];
  ax_block_walk(&plan->block, note_operation, o);
  return AX_OK;
}

ax_status ax_plan_overwrite(ax_plan *plan) {
  overwriter o = {.plan = plan};
  ax_status status = begin(&o);
  if (status == AX_OK) status = ax_blocks_visit(&plan->block, overwrite_in, &o);
  ax_arena_deinit(&o.scratch);
  return status;
}
