/* Inside the pass pieces: arrays that are put together from parts, of which only pieces within a part are read.

     c[0] = y;  c[1] = x;  f(c[0]);  g(c[1])      becomes      c0 = y;  c1 = x;  f(c0);  g(c1)

   Such pieces are views, whatever operations read them. (A product that reads a piece names the whole array and a place in it;
   then the array stays.) If the parts lie one behind the other in memory and each view is in one of them, each part gets a buffer
   of its own, and the views move there. Arrays that are written part by part and read whole are left to pieces.c. */
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"
#include "plan/pieces.h"

typedef struct part { /* a kernel's store */
  ax_op *op;
  uint32_t store, dim;
  int64_t begin, end; /* bytes */
} part;

typedef struct parts {
  uint32_t count, capacity;
  part *part;
} parts;

typedef struct viewer {
  ax_plan *plan;
  ax_arena scratch;
  bool *whole;  /* by allocation: it is read as a whole, or written otherwise than part by part; or it has no views */
  parts **made; /* by allocation: its writers; NULL: none yet */
  ax_op *op;    /* at which the walk is */
  ax_status status;
} viewer;

/* --- What there is --- */

/* The kernel's only store to the buffer; AX_NONE: there are several, or none. */
static uint32_t only_store(const ax_op *kernel, uint32_t buffer) {
  const ax_loop_kernel *k = kernel->kernel.kernel;
  uint32_t found = AX_NONE, count = 0;
  for (uint32_t s = 0; s < k->store_count; s++) {
    if (kernel->kernel.buffers[k->stores[s].slot] != buffer) continue;
    found = s;
    count++;
  }
  return count == 1 ? found : AX_NONE;
}

/* A store of rows of the outermost dimension of more than one element: the part is dense in memory. */
static bool find_part(const ax_plan *plan, ax_op *op, uint32_t buffer, part *out) {
  if (op->kind != AX_OP_KERNEL || op->kernel.kernel->reduce_rank != 0) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  uint32_t store = only_store(op, buffer), dim = 0;
  if (store == AX_NONE) return false;
  const ax_slot *slot = &kernel->slots[kernel->stores[store].slot];
  const ax_position *at = kernel->stores[store].at;
  if (slot->rank != kernel->rank || slot->rank == 0) return false;
  while (dim + 1 < slot->rank && slot->dims[dim] == 1) dim++;
  int64_t row = (int64_t)ax_dtype_bytes(slot->dtype);
  for (uint32_t d = 0; d < slot->rank; d++) {
    if (at[d].dim != (int)d || at[d].coef != 1 || at[d].dynamic != AX_NONE) return false;
    if (d != dim && (at[d].offset != 0 || kernel->dims[d] != slot->dims[d])) return false;
    if (d > dim) row *= slot->dims[d];
  }
  const ax_type *type = &plan->buffers[buffer].type;
  if (type->rank != slot->rank || memcmp(type->dims, slot->dims, slot->rank * sizeof slot->dims[0]) != 0) return false;
  *out = (part){op, store, dim, at[dim].offset * row, (at[dim].offset + kernel->dims[dim]) * row};
  return kernel->dims[dim] > 0;
}

static void add_part(viewer *v, parts *p, const part *one) {
  if (p->count == p->capacity) {
    const uint32_t capacity = p->capacity > 0 ? 2 * p->capacity : 4;
    part *more = ax_arena_alloc(&v->scratch, capacity * sizeof more[0]);
    if (more == NULL) {
      if (v->status == AX_OK) v->status = ax_out_of_memory(capacity * sizeof more[0]);
      return;
    }
    if (p->count > 0) memcpy(more, p->part, p->count * sizeof more[0]);
    p->part = more;
    p->capacity = capacity;
  }
  p->part[p->count++] = *one;
}

static void look_at(void *context, uint32_t buffer, bool writes) {
  viewer *v = context;
  const uint32_t allocation = v->plan->buffers[buffer].allocation;
  if (buffer != allocation || !writes) {
    if (writes || buffer == allocation) v->whole[allocation] = true;
    return;
  }
  part one;
  parts **made = &v->made[allocation];
  if (v->whole[allocation]) return;
  if (*made == NULL && (*made = ax_arena_alloc(&v->scratch, sizeof **made)) == NULL) {
    if (v->status == AX_OK) v->status = ax_out_of_memory(sizeof **made);
    return;
  }
  if (!find_part(v->plan, v->op, buffer, &one)) v->whole[allocation] = true;
  else add_part(v, *made, &one);
}

static void look_at_op(void *context, ax_op *op) {
  viewer *v = context;
  v->op = op;
  ax_op_visit(op, look_at, v);
}

static ax_status begin(viewer *v) {
  const ax_plan *plan = v->plan;
  v->whole = ax_arena_alloc(&v->scratch, plan->buffer_count);
  v->made = ax_arena_alloc(&v->scratch, plan->buffer_count * sizeof v->made[0]);
  if (v->whole == NULL || v->made == NULL) return ax_out_of_memory(plan->buffer_count * sizeof v->made[0]);
  memset(v->whole, 1, plan->buffer_count);
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const uint32_t allocation = plan->buffers[i].allocation;
    const ax_buffer *memory = &plan->buffers[allocation];
    if (allocation != i && memory->kind == AX_BUFFER_TEMP && !memory->updated) v->whole[allocation] = false;
  }
  for (uint32_t i = 0; i < plan->buffer_count; i++)
    if (plan->buffers[i].loop != AX_NONE) v->whole[plan->buffers[i].allocation] = true;
  for (uint32_t k = 0; k < plan->out_count; k++) v->whole[plan->buffers[plan->out[k]].allocation] = true;
  ax_block_walk(&plan->block, look_at_op, v);
  return v->status;
}

/* --- Taking apart --- */

static int by_begin(const void *a, const void *b) {
  const int64_t x = ((const part *)a)->begin, y = ((const part *)b)->begin;
  return x < y ? -1 : x > y;
}

/* Puts the parts in order. Returns whether they are all of the array. */
static bool complete(const ax_plan *plan, uint32_t allocation, parts *p) {
  int64_t end = 0;
  if (p->count > 0) qsort(p->part, p->count, sizeof p->part[0], by_begin);
  for (uint32_t i = 0; i < p->count; end = p->part[i++].end)
    if (p->part[i].begin != end || p->part[i].dim != p->part[0].dim) return false;
  return p->count > 1 && end == ax_buffer_bytes(&plan->buffers[allocation]);
}

/* The part that a view lies in; p->count: in none alone. */
static uint32_t part_of(const parts *p, const ax_buffer *view) {
  uint32_t i = 0, behind = p->count; /* it begins before part `behind`, and not before part i */
  while (i + 1 < behind) {
    const uint32_t middle = (i + behind) / 2;
    if (p->part[middle].begin <= view->offset) i = middle;
    else behind = middle;
  }
  return view->offset + ax_buffer_bytes(view) <= p->part[i].end ? i : p->count;
}

/* The kernel writes its part to a buffer that has nothing else. */
static ax_status move_writer(viewer *v, const part *one, uint32_t buffer) {
  ax_arena *arena = &v->plan->drafts;
  ax_bound *bound = &one->op->kernel;
  ax_loop_kernel *kernel = ax_kernel_copy(arena, bound->kernel);
  uint32_t *buffers = ax_arena_copy(arena, bound->buffers, bound->kernel->slot_count * sizeof buffers[0]);
  if (kernel == NULL || buffers == NULL) return ax_out_of_memory(sizeof *kernel);
  ax_store *store = &kernel->stores[one->store];
  ax_slot *slot = &kernel->slots[store->slot];
  ax_position *at = ax_arena_copy(arena, store->at, slot->rank * sizeof at[0]);
  if (at == NULL) return ax_out_of_memory(slot->rank * sizeof at[0]);
  at[one->dim].offset = 0;
  store->at = at;
  slot->dims[one->dim] = kernel->dims[one->dim];
  buffers[store->slot] = buffer;
  *bound = (ax_bound){kernel, buffers};
  return AX_OK;
}

/* views: by allocation, the first of its views; next: by view. */
static ax_status take_apart(viewer *v, uint32_t allocation, const uint32_t *first, const uint32_t *next) {
  parts *p = v->made[allocation];
  if (v->whole[allocation] || p == NULL || !complete(v->plan, allocation, p)) return AX_OK;
  for (uint32_t i = first[allocation]; i != AX_NONE; i = next[i])
    if (part_of(p, &v->plan->buffers[i]) == p->count) return AX_OK;
  uint32_t *made = ax_arena_alloc(&v->scratch, p->count * sizeof made[0]);
  if (made == NULL) return ax_out_of_memory(p->count * sizeof made[0]);
  for (uint32_t i = 0; i < p->count; i++) {
    ax_buffer buffer = v->plan->buffers[allocation];
    buffer.type.dims[p->part[i].dim] = p->part[i].op->kernel.kernel->dims[p->part[i].dim];
    buffer.allocation = AX_NONE;
    AX_TRY(ax_plan_add_buffer(v->plan, &buffer, &made[i]));
    AX_TRY(move_writer(v, &p->part[i], made[i]));
  }
  for (uint32_t i = first[allocation]; i != AX_NONE; i = next[i]) {
    ax_buffer *view = &v->plan->buffers[i];
    const uint32_t k = part_of(p, view);
    view->allocation = made[k];
    view->offset -= p->part[k].begin;
  }
  return AX_OK;
}

static ax_status take_all_apart(viewer *v) {
  const ax_plan *plan = v->plan;
  const uint32_t count = plan->buffer_count;
  uint32_t *first = ax_arena_alloc(&v->scratch, count * sizeof first[0]);
  uint32_t *next = ax_arena_alloc(&v->scratch, count * sizeof next[0]);
  if (first == NULL || next == NULL) return ax_out_of_memory(count * sizeof first[0]);
  memset(first, 0xff, count * sizeof first[0]);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t allocation = plan->buffers[i].allocation;
    if (allocation == i) continue;
    next[i] = first[allocation];
    first[allocation] = i;
  }
  for (uint32_t i = 0; i < count; i++) AX_TRY(take_apart(v, i, first, next));
  return AX_OK;
}

ax_status ax_pieces_by_views(ax_plan *plan) {
  viewer v = {.plan = plan};
  ax_status status = begin(&v);
  if (status == AX_OK) status = take_all_apart(&v);
  ax_arena_deinit(&v.scratch);
  return status;
}
