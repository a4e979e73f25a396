#include "plan/rows_use.h"

#include "plan/index_map.h"

/* From one index of several dimensions, counted as one, to the next; INT64_MIN: not evenly. */
static int64_t even_step(uint32_t rank, const int64_t *dims, const int64_t *steps) {
  int64_t step = 0, size = 0;
  for (uint32_t d = rank; d-- > 0;) {
    if (dims[d] == 1) continue;
    if (size == 0) step = steps[d];
    else if (steps[d] != step * size) return INT64_MIN;
    size = (size == 0 ? 1 : size) * dims[d];
  }
  return step;
}

/* Whether a dimension before the rows' moves it. */
static bool moves_before(const ax_loop_kernel *k, uint32_t rank, const ax_position *at, uint32_t dim) {
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dim >= 0 && at[d].dim < (int64_t)dim && at[d].coef != 0 && k->dims[at[d].dim] > 1) return true;
  return false;
}

/* The indices of a dimension, first and last, for which a guard holds, as far as it says; there may be none. */
static void narrow_by(const ax_loop_kernel *k, ax_ex guard, uint32_t dim, int64_t *first, int64_t *last) {
  const ax_expr *node = &k->exprs[guard];
  if (node->op == AX_SCALAR_AND) {
    narrow_by(k, node->arg[0], dim, first, last);
    narrow_by(k, node->arg[1], dim, first, last);
    return;
  }
  const ax_position *p = node->at;
  if (node->op != AX_LEAF_INSIDE || p->dim != (int)dim || p->dynamic != AX_NONE || (p->coef != 1 && p->coef != -1)) return;
  const int64_t one = -p->coef * p->offset, other = p->coef * (node->imm - 1 - p->offset); /* indices at both ends */
  *first = ax_most(*first, ax_least(one, other));
  *last = ax_least(*last, ax_most(one, other));
}

/* guard: a load's, or AX_NONE. */
static bool use_of(const ax_plan *plan, const ax_bound *kernel, uint32_t slot, const ax_position *at, ax_ex guard, uint32_t dim,
                   ax_rows_use *out) {
  const ax_loop_kernel *k = kernel->kernel;
  const ax_slot *s = &k->slots[slot];
  const ax_buffer *view = &plan->buffers[kernel->buffers[slot]];
  int64_t item = (int64_t)ax_dtype_bytes(s->dtype);
  ax_affine address;
  *out = (ax_rows_use){
      .allocation = view->allocation, .loop = view->loop, .loop_step = view->loop != AX_NONE ? view->step : 0, .touches = 1};
  if (!ax_affine_of(s->rank, s->dims, at, &address)) {
    out->irregular = true;
    return !moves_before(k, s->rank, at, dim);
  }
  int64_t outer = even_step(dim, k->dims, address.coef);
  if (outer == INT64_MIN) return false;
  out->row = address.coef[dim] * item;
  out->outer = outer * item;
  out->low = view->offset + address.offset * item;
  out->high = out->low + item;
  for (uint32_t d = dim + 1; d < k->rank; d++) {
    int64_t first = 0, last = k->dims[d] - 1;
    if (guard != AX_NONE) narrow_by(k, guard, d, &first, &last);
    if (first > last) first = last = 0; /* it is never loaded */
    const int64_t apart_first = address.coef[d] * first * item, apart_last = address.coef[d] * last * item;
    out->low += ax_least(apart_first, apart_last);
    out->high += ax_most(apart_first, apart_last);
    int64_t apart = address.coef[d] < 0 ? -address.coef[d] : address.coef[d];
    if (k->dims[d] > 1 && out->row != 0 && apart * item > (out->row < 0 ? -out->row : out->row))
      return false; /* rows are its columns */
  }
  return true;
}

bool ax_rows_use_of_load(const ax_plan *plan, const ax_bound *kernel, const ax_expr *load, uint32_t dim, ax_rows_use *out) {
  return use_of(plan, kernel, load->slot, load->at, load->arg[0], dim, out);
}

bool ax_rows_use_of_store(const ax_plan *plan, const ax_bound *kernel, const ax_store *store, uint32_t dim, ax_rows_use *out) {
  const bool regular = use_of(plan, kernel, store->slot, store->at, AX_NONE, dim, out);
  out->written = true;
  return regular;
}

ax_rows_use ax_rows_use_of_product(const ax_plan *plan, const ax_gemm *p, uint32_t index) {
  const ax_op op = {.kind = AX_OP_GEMM, .gemm = (ax_gemm *)p};
  const ax_op_use o = ax_op_slot(&op, index);
  const ax_buffer *view = &plan->buffers[o.buffer];
  const int64_t item = (int64_t)ax_dtype_bytes(view->type.dtype);
  const int64_t offset = index == 0 ? p->a_offset : index == 1 ? p->b_offset : p->c_offset;
  const int64_t outer = even_step(p->batch_rank, p->batch, index == 0 ? p->a_stride : index == 1 ? p->b_stride : p->c_stride);
  const int64_t row = index == 2 ? p->ldc : index == 1 ? 0 : p->transpose_a ? 1 : p->lda;
  const int64_t reach = index == 2 ? p->n : index == 1 ? 0 : p->transpose_a ? (p->k - 1) * p->lda + 1 : p->k;
  ax_rows_use out = {.allocation = view->allocation,
                     .loop = view->loop,
                     .loop_step = view->loop != AX_NONE ? view->step : 0,
                     .touches = 1,
                     .written = o.writes};
  out.irregular = outer == INT64_MIN || index == 1; /* of the factor on the right a row has to do with all */
  if (out.irregular) return out;
  out.row = row * item;
  out.outer = outer * item;
  out.low = view->offset + offset * item;
  out.high = out.low + reach * item;
  return out;
}
