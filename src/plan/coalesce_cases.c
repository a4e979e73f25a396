/* What the cases of a branch touch, for coalesce.c: lists of touches, sorted, so that each question takes a search.

     branch on i
       case 0    c -> s                  a copy, which is nothing if s is in c's memory
       case 1    c + 1 -> s              in place
       case 2    c -> s, s[3] = x        the copy first, then a part of it

   In each case the operation that touches s first must write all of it, and c must not be touched behind that. Only where the first is a copy,
   both are the same until s is written to again; so what writes to it next may still read c, in the places that it writes. */
#include <stdlib.h>
#include <string.h>

#include "plan/coalesce.h"
#include "plan/op.h"

/* The bytes of the block of the array that each step of the kernel has for itself, if the access is to a place in the step's block.
   The array's first dimensions are the kernel's, and further ones are the block's: none, if it is one element; the two parts of a
   complex number; or the coordinates of a point. 0: it is not so. */
static int64_t own_block(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  const ax_slot *array = &kernel->slots[slot];
  if (array->rank < kernel->rank || !ax_at_is_identity(at, kernel->rank) ||
      memcmp(array->dims, kernel->dims, kernel->rank * sizeof array->dims[0]) != 0)
    return 0;
  for (uint32_t d = kernel->rank; d < array->rank; d++)
    if (at[d].dim >= 0 || at[d].dynamic != AX_NONE) return 0;
  return ax_dims_elems(array->rank - kernel->rank, array->dims + kernel->rank) * (int64_t)ax_dtype_bytes(array->dtype);
}

/* Says so, and that the block is the one found before, of *bytes bytes: the same memory may be read as numbers of another dtype,
   whose blocks lie elsewhere if they are shorter or longer. *bytes is 0 at first. */
static bool in_own_block(const ax_plan *plan, const ax_op *op, uint32_t slot, const ax_position *at, int64_t *bytes) {
  const ax_buffer *buffer = &plan->buffers[op->kernel.buffers[slot]];
  const int64_t found = own_block(op->kernel.kernel, slot, at), wanted = *bytes > 0 ? *bytes : found;
  *bytes = wanted;
  return buffer->offset == 0 && buffer->loop == AX_NONE && found > 0 && found == wanted;
}

/* A step, or several steps that are done together, load all that they load before they store. So a single step may load and store anywhere, as
   both parts of a complex number. */
bool ax_kernel_in_place(const ax_plan *plan, const ax_op *op, uint32_t source, uint32_t target) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  int64_t bytes = 0;
  if (kernel->rank == 0) return true;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (plan->buffers[op->kernel.buffers[store->slot]].allocation != source) continue;
    if (!in_own_block(plan, op, store->slot, store->at, &bytes)) return false;
  }
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    if (load->op != AX_LEAF_LOAD || plan->buffers[op->kernel.buffers[load->slot]].allocation != target) continue;
    if (!in_own_block(plan, op, load->slot, load->at, &bytes)) return false;
  }
  return true;
}

static bool is_all(const ax_buffer *buffer) { return buffer->offset == 0 && buffer->loop == AX_NONE; }

static bool same_place(const ax_loop_kernel *kernel, const ax_expr *load, const ax_store *store) {
  const ax_slot *from = &kernel->slots[load->slot], *to = &kernel->slots[store->slot];
  if (from->rank != to->rank || ax_dtype_bytes(from->dtype) != ax_dtype_bytes(to->dtype) || memcmp(from->dims, to->dims, to->rank * sizeof to->dims[0]) != 0) return false;
  for (uint32_t d = 0; d < to->rank; d++) {
    const ax_position *a = &load->at[d], *b = &store->at[d];
    if (a->dim != b->dim || a->coef != b->coef || a->offset != b->offset || a->limit != b->limit || a->dynamic != b->dynamic) return false;
  }
  return true;
}

/* A kernel that reads of target, at each step, at most the element in the place of those of source that it writes. */
static bool updates_in_place(const ax_plan *plan, const ax_op *op, uint32_t source, uint32_t target) {
  if (op->kind != AX_OP_KERNEL) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    if (load->op != AX_LEAF_LOAD || plan->buffers[op->kernel.buffers[load->slot]].allocation != target) continue;
    if (!is_all(&plan->buffers[op->kernel.buffers[load->slot]])) return false;
    for (uint32_t k = 0; k < kernel->store_count; k++) {
      const ax_store *store = &kernel->stores[k];
      const ax_buffer *to = &plan->buffers[op->kernel.buffers[store->slot]];
      if (to->allocation != source) continue;
      if (!is_all(to) || store->reduce != AX_SCALAR_NONE || !same_place(kernel, load, store)) return false;
    }
  }
  return true;
}

typedef struct one_touch { /* by an operation of a case, or inside one */
  uint32_t allocation, of_case, op;
  bool writes;
} one_touch;

struct ax_cases {
  const ax_plan *plan;
  const ax_block *blocks; /* of each case */
  uint32_t block_count, count;
  one_touch *list;
};

/* --- The list --- */

typedef struct listing {
  const ax_plan *plan;
  one_touch *list; /* NULL: they are only counted */
  uint32_t count, of_case, op;
} listing;

static void add_touch(void *context, uint32_t buffer, bool writes) {
  listing *l = context;
  if (l->list != NULL) l->list[l->count] = (one_touch){l->plan->buffers[buffer].allocation, l->of_case, l->op, writes};
  l->count++;
}

static uint32_t list_all(listing *l, const ax_block *blocks, uint32_t count) {
  l->count = 0;
  for (l->of_case = 0; l->of_case < count; l->of_case++) {
    const ax_block *block = &blocks[l->of_case];
    for (l->op = 0; l->op < block->count; l->op++) ax_op_visit_all(&block->ops[l->op], add_touch, l);
  }
  return l->count;
}

static int by_place(const void *a, const void *b) {
  const one_touch *x = a, *y = b;
  if (x->allocation != y->allocation) return x->allocation < y->allocation ? -1 : 1;
  if (x->of_case != y->of_case) return x->of_case < y->of_case ? -1 : 1;
  return x->op < y->op ? -1 : x->op > y->op;
}

const ax_cases *ax_cases_list(const ax_plan *plan, const ax_block *blocks, uint32_t block_count, ax_arena *arena) {
  listing l = {.plan = plan};
  ax_cases *cases = ax_arena_alloc(arena, sizeof *cases);
  if (cases == NULL) return NULL;
  const uint32_t count = list_all(&l, blocks, block_count);
  l.list = ax_arena_alloc(arena, (count + (size_t)1) * sizeof l.list[0]);
  if (l.list == NULL) return NULL;
  (void)list_all(&l, blocks, block_count);
  if (count > 1) qsort(l.list, count, sizeof l.list[0], by_place);
  *cases = (ax_cases){plan, blocks, block_count, count, l.list};
  return cases;
}

/* --- Questions --- */

/* The first touch of the allocation in this case or a later one. */
static uint32_t first_of(const ax_cases *cases, uint32_t allocation, uint32_t of_case) {
  const one_touch wanted = {.allocation = allocation, .of_case = of_case};
  uint32_t from = 0, to = cases->count;
  while (from < to) {
    const uint32_t middle = from + (to - from) / 2;
    if (by_place(&cases->list[middle], &wanted) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

static bool is_of(const ax_cases *cases, uint32_t i, uint32_t allocation, uint32_t of_case) {
  return i < cases->count && cases->list[i].allocation == allocation && cases->list[i].of_case == of_case;
}

uint32_t ax_cases_writes(const ax_cases *cases, uint32_t allocation) {
  uint32_t writes = 0;
  for (uint32_t i = first_of(cases, allocation, 0); i < cases->count && cases->list[i].allocation == allocation; i++)
    writes += cases->list[i].writes;
  return writes;
}

const ax_op *ax_cases_first(const ax_cases *cases, uint32_t allocation, uint32_t of_case) {
  const uint32_t i = first_of(cases, allocation, of_case);
  return is_of(cases, i, allocation, of_case) ? &cases->blocks[of_case].ops[cases->list[i].op] : NULL;
}

/* How often operation `op` writes to the allocation, and the others of the case; reads: `op` reads it. */
typedef struct uses {
  uint32_t here, elsewhere;
  bool reads;
} uses;
static uses uses_of(const ax_cases *cases, uint32_t allocation, uint32_t of_case, uint32_t op) {
  uses all = {0};
  for (uint32_t i = first_of(cases, allocation, of_case); is_of(cases, i, allocation, of_case); i++) {
    const one_touch *touch = &cases->list[i];
    if (touch->op != op) all.elsewhere += touch->writes;
    else if (touch->writes) all.here++;
    else all.reads = true;
  }
  return all;
}

/* The operation writes all of source, in the place of what it reads of target. */
static bool begins(const ax_cases *cases, uint32_t of_case, uint32_t op, uint32_t source, uint32_t target) {
  const ax_op *first = &cases->blocks[of_case].ops[op];
  const uses of_source = uses_of(cases, source, of_case, op), of_target = uses_of(cases, target, of_case, op);
  if (of_source.here == 0 || of_source.reads || of_target.here > 0) return false;
  if (first->kind == AX_OP_KERNEL) return ax_kernel_in_place(cases->plan, first, source, target);
  return ax_op_rules_of(first)->makes_results && of_source.here == 1 && of_source.elsewhere == 0 && !of_target.reads;
}

/* Up to which operation of the case target may be read: the one that touches source first, or, if that is a copy of it, the next one. */
static uint32_t last_reader(const ax_cases *cases, uint32_t k, uint32_t source, uint32_t target) {
  const ax_op *ops = cases->blocks[k].ops;
  uint32_t i = first_of(cases, source, k), to, from;
  const uint32_t op = cases->list[i].op;
  while (is_of(cases, i, source, k) && cases->list[i].op == op) i++;
  if (!is_of(cases, i, source, k) || !ax_op_copies_all(&ops[op], &to, &from)) return op;
  const ax_buffer *x = &cases->plan->buffers[from];
  const uint32_t next = cases->list[i].op;
  return x->allocation == target && is_all(x) && updates_in_place(cases->plan, &ops[next], source, target) ? next : op;
}

bool ax_cases_in_place(const ax_cases *cases, uint32_t source, uint32_t target, uint32_t copy) {
  for (uint32_t k = 0; k < cases->block_count; k++) {
    const uint32_t first = first_of(cases, source, k);
    if (!is_of(cases, first, source, k) || !begins(cases, k, cases->list[first].op, source, target)) return false;
    const uint32_t last = last_reader(cases, k, source, target);
    for (uint32_t i = first_of(cases, target, k); is_of(cases, i, target, k); i++)
      if (cases->list[i].op != copy && (cases->list[i].writes || cases->list[i].op > last)) return false;
  }
  return true;
}
