/* Inside the pass pieces: kernels that read slices of an array which is put together, or padded, read the array itself.

     tall = [above; u; below];  y = f(tall[0 .. n], tall[2 .. n + 2])      y[i] = f(tall[i], tall[i + 2])

   Such slices are views, since their rows lie next to each other. What takes an array apart, or takes the kernel that makes it into its
   readers, looks for readers of the array. Of arrays that are made in other ways, slices stay views. */
#include <string.h>

#include "plan/fuse_worth.h"
#include "plan/kernel_rewrite.h"
#include "plan/passes.h"
#include "plan/pieces.h"

enum { most_writes = 4, most_slices = 6 }; /* of more, each of which would choose among the parts, the array is read sooner */

typedef struct slicer {
  ax_plan *plan;
  bool *put_together; /* by allocation: each of its writers is a kernel that makes a part, or pads */
  uint32_t *seen;     /* by allocation: how often slices of it are read */
  uint32_t *reads, *writes; /* by allocation, as ax_plan_count's */
  const ax_op *op;    /* at which the walk is */
  ax_arena scratch;
  ax_status status;
} slicer;

/* The outermost dimension of more than one element. */
static uint32_t outermost(const ax_type *type) {
  uint32_t dim = 0;
  while (dim + 1 < type->rank && type->dims[dim] == 1) dim++;
  return dim;
}

/* The view has whole rows of its memory's outermost dimension; *begin: from this one on. */
static bool is_slice(const ax_plan *plan, const ax_buffer *view, int64_t *begin) {
  const ax_buffer *whole = &plan->buffers[view->allocation];
  const uint32_t dim = outermost(&whole->type);
  if (view->loop != AX_NONE || view->axes != whole->axes || view->type.dtype != whole->type.dtype || view->type.rank != whole->type.rank ||
      whole->type.rank == 0)
    return false;
  int64_t row = (int64_t)ax_dtype_bytes(whole->type.dtype);
  for (uint32_t d = 0; d < whole->type.rank; d++) {
    if (d != dim && view->type.dims[d] != whole->type.dims[d]) return false;
    if (d > dim) row *= whole->type.dims[d];
  }
  if (row == 0 || view->offset % row != 0) return false;
  *begin = view->offset / row;
  return *begin >= 0 && *begin + view->type.dims[dim] <= whole->type.dims[dim];
}

/* --- Which arrays --- */

/* It copies an array and puts a number around it, which may be in memory yet. */
static bool pads(const ax_loop_kernel *kernel) {
  enum { few_nodes = 12 };
  if (kernel->store_count != 1 || kernel->expr_count > few_nodes || !ax_kernel_chooses(kernel)) return false;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    if (expr->op == AX_LEAF_LOAD && expr->arg[0] == AX_NONE && kernel->slots[expr->slot].rank > 0) return false;
    if (expr->op < AX_SCALAR_COUNT && expr->op != AX_SCALAR_SELECT && expr->op != AX_SCALAR_AND) return false;
  }
  return true;
}

static void look_at(void *context, uint32_t buffer, bool writes) {
  slicer *s = context;
  const ax_buffer *seen = &s->plan->buffers[buffer];
  const bool by_kernel = s->op->kind == AX_OP_KERNEL;
  int64_t begin;
  if (writes) {
    const ax_loop_kernel *kernel = by_kernel ? s->op->kernel.kernel : NULL;
    const bool makes = buffer == seen->allocation && kernel != NULL && kernel->reduce_rank == 0 && !ax_op_is_ordered(s->op);
    if (!makes || (s->writes[seen->allocation] == 1 && !pads(kernel))) s->put_together[seen->allocation] = false;
  } else if (buffer != seen->allocation) {
    if (++s->seen[seen->allocation] > most_slices) s->put_together[seen->allocation] = false;
    if (!by_kernel || !is_slice(s->plan, seen, &begin)) s->put_together[seen->allocation] = false;
  }
}

static void look_at_op(void *context, ax_op *op) {
  slicer *s = context;
  s->op = op;
  ax_op_visit(op, look_at, s);
}

static ax_status find(slicer *s) {
  const ax_plan *plan = s->plan;
  const size_t count = plan->buffer_count;
  s->put_together = ax_arena_alloc(&s->scratch, count);
  s->seen = ax_arena_alloc(&s->scratch, count * sizeof s->seen[0]);
  s->reads = ax_arena_alloc(&s->scratch, count * sizeof s->reads[0]);
  s->writes = ax_arena_alloc(&s->scratch, count * sizeof s->writes[0]);
  if (s->put_together == NULL || s->seen == NULL || s->reads == NULL || s->writes == NULL) return ax_out_of_memory(count * sizeof s->reads[0]);
  ax_plan_count(plan, s->reads, s->writes);
  for (size_t i = 0; i < count; i++) {
    const ax_buffer *b = &plan->buffers[i];
    s->put_together[i] = b->allocation == i && b->kind == AX_BUFFER_TEMP && !b->updated && s->writes[i] > 0 && s->writes[i] <= most_writes;
  }
  for (uint32_t k = 0; k < plan->out_count; k++) s->put_together[plan->buffers[plan->out[k]].allocation] = false;
  ax_block_walk(&plan->block, look_at_op, s);
  return AX_OK;
}

/* --- Reading the array --- */

/* view[i] = array[i + begin]; NULL: no memory. */
static ax_loop_kernel *slice_of(ax_arena *arena, const ax_type *array, const ax_type *view, int64_t begin) {
  ax_loop_kernel *kernel = ax_kernel_create(arena, view->rank, 0, view->dims);
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  if (kernel == NULL) return NULL;
  const uint32_t whole = ax_kernel_slot(kernel, array->dtype, array->rank, array->dims),
                 part = ax_kernel_slot(kernel, view->dtype, view->rank, view->dims);
  ax_at_identity(from, view->rank);
  ax_at_identity(to, view->rank);
  from[outermost(array)].offset = begin;
  ax_kernel_store(kernel, part, to, ax_kernel_load(kernel, whole, from), AX_SCALAR_NONE);
  return kernel->failed ? NULL : kernel;
}

static uint32_t make_no_view(void *context, uint32_t buffer, uint32_t rank, const int64_t *dims) {
  (void)context, (void)buffer, (void)rank, (void)dims;
  return AX_NONE;
}

static ax_status read_array(slicer *s, ax_op *op, uint32_t slot, bool *done) {
  const ax_plan *plan = s->plan;
  const uint32_t buffer = op->kernel.buffers[slot];
  const ax_buffer *view = &plan->buffers[buffer];
  const ax_views views = {make_no_view, NULL};
  ax_arena *arena = &s->plan->drafts;
  uint32_t buffers[] = {view->allocation, buffer};
  int64_t begin;
  if (buffer == view->allocation || !s->put_together[view->allocation] || !is_slice(plan, view, &begin)) return AX_OK;
  const ax_slot *seen = &op->kernel.kernel->slots[slot];
  if (seen->rank != view->type.rank || memcmp(seen->dims, view->type.dims, seen->rank * sizeof seen->dims[0]) != 0) return AX_OK;
  ax_bound slice = {slice_of(arena, &plan->buffers[view->allocation].type, &view->type, begin), buffers}, made;
  if (slice.kernel == NULL) return ax_out_of_memory(sizeof *slice.kernel);
  AX_TRY(ax_kernel_inline(arena, &slice, &slice.kernel->stores[0], &op->kernel, slot, 0, &views, &made));
  if (made.kernel == NULL) return AX_OK;
  op->kernel = made;
  *done = true;
  return AX_OK;
}

static void read_arrays(void *context, ax_op *op) {
  slicer *s = context;
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op)) return;
  for (uint32_t slot = 0; slot < op->kernel.kernel->slot_count && s->status == AX_OK; slot++) {
    bool done = false;
    s->status = read_array(s, op, slot, &done);
    if (done) slot = AX_NONE; /* the slots are new */
  }
}

ax_status ax_pieces_by_slices(ax_plan *plan) {
  slicer s = {.plan = plan};
  bool any = false;
  int64_t begin;
  for (uint32_t i = 0; i < plan->buffer_count && !any; i++) any = plan->buffers[i].allocation != i && is_slice(plan, &plan->buffers[i], &begin);
  if (!any) return AX_OK; /* as in most plans */
  ax_status status = find(&s);
  any = false;
  for (uint32_t i = 0; status == AX_OK && i < plan->buffer_count; i++) any = any || (s.put_together[i] && s.seen[i] > 0);
  if (any) ax_block_walk(&plan->block, read_arrays, &s);
  if (status == AX_OK) status = s.status;
  ax_arena_deinit(&s.scratch);
  return status;
}
