#include "plan/amount.h"

#include "ir/program.h"

/* Elements of a slot that one load or store comes to: all steps of the kernel along dimensions that its position depends on. What a
   stride along the last dimension leaves out comes with the lines of the cache that the others are in. */
static double reach(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  enum { line_bytes = 64 };
  const ax_slot *s = &kernel->slots[slot];
  bool moves[2 * AX_MAX_RANK] = {false};
  double steps = 1, elems = (double)ax_dims_elems(s->rank, s->dims);
  bool looked_up = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (at[d].dim >= 0 && at[d].coef != 0) moves[at[d].dim] = true;
    looked_up = looked_up || at[d].dynamic != AX_NONE;
  }
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (moves[d] || looked_up) steps *= (double)kernel->dims[d];
  if (s->rank > 0 && at[s->rank - 1].dim >= 0) {
    const int64_t coef = at[s->rank - 1].coef, stride = coef < 0 ? -coef : coef,
                  most = line_bytes / (int64_t)ax_dtype_bytes(s->dtype);
    steps *= (double)(stride < 1 ? 1 : stride < most ? stride : most);
  }
  return steps < elems ? steps : elems;
}

ax_amount ax_kernel_amount(const ax_loop_kernel *kernel) {
  double most[AX_MAX_SLOTS][2] = {{0}}, each = 0;
  ax_amount out = {.dtype = AX_F32};
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    if (expr->op == AX_LEAF_LOAD) {
      const double elems = reach(kernel, expr->slot, expr->at);
      if (elems > most[expr->slot][0]) most[expr->slot][0] = elems;
    } else if (expr->op < AX_SCALAR_COUNT && expr->op != AX_SCALAR_CONVERT && ax_is_float(expr->dtype)) {
      each++;
    }
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    const double elems = reach(kernel, store->slot, store->at);
    if (elems > most[store->slot][1]) most[store->slot][1] = elems;
    each += store->reduce != AX_SCALAR_NONE;
    out.dtype = kernel->slots[store->slot].dtype;
  }
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    const double item = (double)ax_dtype_bytes(kernel->slots[s].dtype);
    out.read += most[s][0] * item;
    out.written += most[s][1] * item;
  }
  out.flops = each * (double)ax_dims_elems(kernel->rank, kernel->dims);
  return out;
}

typedef struct walk { /* over memory: where the numbers of a product's factor are */
  uint32_t count;
  int64_t extents[AX_MAX_RANK + AX_GEMM_TERMS + 2], strides[AX_MAX_RANK + AX_GEMM_TERMS + 2]; /* strides ascend, and are above 0 */
} walk;

static void go_along(walk *w, int64_t extent, int64_t stride) {
  uint32_t i = w->count;
  if (extent == 1 || (stride == 0 && extent > 0)) return;
  if (stride < 0) stride = -stride;
  for (w->count++; i > 0 && w->strides[i - 1] > stride; i--) w->extents[i] = w->extents[i - 1], w->strides[i] = w->strides[i - 1];
  w->extents[i] = extent;
  w->strides[i] = stride;
}

/* Steps of the i-th stride that are a whole number of those of an earlier one, and not beyond its last, only make that one's way
   longer: its rows overlap. */
static bool overlaps(walk *w, uint32_t i) {
  for (uint32_t j = 0; j < i; j++) {
    const int64_t apart = w->strides[i] / w->strides[j];
    if (w->strides[i] % w->strides[j] != 0 || apart > w->extents[j]) continue;
    w->extents[j] += (w->extents[i] - 1) * apart;
    return true;
  }
  return false;
}

/* Places that it comes to, each once, as a convolution's windows overlap. At most as many as there are. */
static double places(walk *w) {
  double found = 1, span = 1;
  for (uint32_t i = 0; i < w->count; i++)
    if (w->extents[i] == 0) return 0;
  for (uint32_t i = 1; i < w->count; i++)
    if (overlaps(w, i)) w->extents[i] = 1;
  for (uint32_t i = 0; i < w->count; i++) {
    found *= (double)w->extents[i];
    span += (double)(w->extents[i] - 1) * (double)w->strides[i];
    if (found > span) found = span;
  }
  return found;
}

static double factor_elems(const ax_gemm *g, bool right) {
  walk w = {0};
  go_along(&w, right ? g->n : g->m, right ? (g->transpose_b ? g->ldb : 1) : (g->transpose_a ? 1 : g->lda));
  go_along(&w, g->k, right ? (g->transpose_b ? 1 : g->ldb) : (g->transpose_a ? g->lda : 1));
  for (uint32_t d = 0; d < g->batch_rank; d++) go_along(&w, g->batch[d], right ? g->b_stride[d] : g->a_stride[d]);
  for (uint32_t d = 0; d < g->term_rank; d++) go_along(&w, g->terms[d], right ? g->b_term[d] : g->a_term[d]);
  return places(&w);
}

/* A product of narrow numbers may be made in wide ones here, but is one of narrow ones. */
static ax_amount gemm_amount(const ax_op *op) {
  const ax_gemm *g = op->gemm;
  const double m = (double)g->m, n = (double)g->n, k = (double)g->k * (double)ax_dims_elems(g->term_rank, g->terms),
               batch = (double)ax_dims_elems(g->batch_rank, g->batch);
  ax_amount out = {.flops = 2 * m * n * k * batch};
  out.dtype = op->eqn != NULL && op->program != NULL && op->eqn->in_count > 0 ? op->program->types[op->eqn->in[0]].dtype : g->dtype;
  const double item = (double)ax_dtype_bytes(out.dtype);
  out.written = m * n * batch * item;
  out.read = (factor_elems(g, false) + factor_elems(g, true)) * item + (g->accumulate ? out.written : 0);
  return out;
}

typedef struct moved { /* an allocation that lies in memory */
  uint32_t allocation;
  bool read, written;
} moved;

static moved *moved_allocation(moved *list, uint32_t *count, uint32_t allocation) {
  uint32_t i = 0;
  while (i < *count && list[i].allocation != allocation) i++;
  if (i == *count) list[(*count)++] = (moved){.allocation = allocation};
  return &list[i];
}

/* An allocation in memory is read and written once, however many members touch it. A value that a member has written is not read
   from memory by the next ones. */
static ax_amount rows_amount(const ax_plan *plan, const ax_rows *rows) {
  moved list[AX_ROWS_SLOTS];
  uint32_t count = 0, first = 0;
  ax_amount out = {.dtype = AX_F32};
  for (uint32_t k = 0; k < rows->count; first += ax_op_slots(&rows->members[k++])) {
    const ax_op *member = &rows->members[k];
    const bool product = member->kind == AX_OP_GEMM;
    const ax_amount one = product ? gemm_amount(member) : ax_kernel_amount(member->kernel.kernel);
    out.flops += one.flops * (product ? 1 : (double)rows->outer);
    out.dtype = one.dtype;
    for (uint32_t i = 0; i < ax_op_slots(member); i++) {
      if (rows->slots[first + i].row_bytes != 0) continue;
      const ax_op_use o = ax_op_slot(member, i);
      const ax_buffer *buffer = &plan->buffers[o.buffer];
      moved *m = moved_allocation(list, &count, buffer->allocation);
      if (o.reads && !m->read && !m->written) out.read += (double)ax_buffer_bytes(buffer);
      if (o.writes && !m->written) out.written += (double)ax_buffer_bytes(buffer);
      m->read = m->read || o.reads;
      m->written = m->written || o.writes;
    }
  }
  return out;
}

typedef struct touching {
  const ax_plan *plan;
  ax_amount *amount;
} touching;

static void touch(void *context, uint32_t buffer, bool writes) {
  const touching *t = context;
  *(writes ? &t->amount->written : &t->amount->read) += (double)ax_buffer_bytes(&t->plan->buffers[buffer]);
}

ax_amount ax_op_amount(const ax_plan *plan, const ax_op *op) {
  ax_amount out = {.dtype = AX_F32};
  if (op->kind == AX_OP_KERNEL) return ax_kernel_amount(op->kernel.kernel);
  if (op->kind == AX_OP_ROWS) return rows_amount(plan, op->rows);
  if (op->kind == AX_OP_GEMM) return gemm_amount(op);
  touching all = {plan, &out};
  ax_op_visit(op, touch, &all);
  return out;
}
