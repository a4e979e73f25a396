/* A product as an operation.

   Invariants: all places read and written lie inside the buffers, which are of the product's dtypes. */
#include <string.h>

#include "plan/op.h"
#include "plan/panels.h"
#include "product/product.h"

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  visit(context, op->gemm->a, false);
  visit(context, op->gemm->b, false);
  if (op->gemm->accumulate) visit(context, op->gemm->c, false);
  visit(context, op->gemm->c, true);
}

static uint32_t stored(const ax_op *op) { return op->gemm->c; }

double ax_gemm_time(const ax_gemm *g) {
  return 0.012 * (double)g->m * (double)g->n * (double)g->k * (double)ax_dims_elems(g->term_rank, g->terms) *
         (double)ax_dims_elems(g->batch_rank, g->batch);
}

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  const ax_gemm *gemm = op->gemm;
  (void)plan, (void)indent;
  ax_text_add(text, "gemm b%u %s b%u%s %sb%u%s m=%lld n=%lld k=%lld", gemm->c, gemm->accumulate ? "+=" : "=", gemm->a,
              gemm->transpose_a ? "'" : "", gemm->packed ? "packed " : "", gemm->b, gemm->transpose_b ? "'" : "",
              (long long)gemm->m, (long long)gemm->n, (long long)gemm->k);
  for (uint32_t i = 0; i < gemm->term_rank; i++) ax_text_add(text, " terms=%lld", (long long)gemm->terms[i]);
  for (uint32_t i = 0; i < gemm->batch_rank; i++) ax_text_add(text, " batch=%lld", (long long)gemm->batch[i]);
  ax_text_add(text, "\n");
}

/* --- Invariants --- */

static ax_status check_matrix(const ax_plan_verifier *v, const ax_gemm *g, uint32_t buffer, int64_t offset, int64_t rows,
                              int64_t columns, int64_t ld, const int64_t *batch, const int64_t *term, ax_dtype dtype) {
  int64_t dims[AX_MAX_RANK + 2 + AX_GEMM_TERMS], strides[AX_MAX_RANK + 2 + AX_GEMM_TERMS];
  uint32_t rank = g->batch_rank;
  memcpy(dims, g->batch, g->batch_rank * sizeof dims[0]);
  memcpy(strides, batch, g->batch_rank * sizeof strides[0]);
  dims[rank] = rows, strides[rank++] = ld;
  dims[rank] = columns, strides[rank++] = 1;
  for (uint32_t i = 0; term != NULL && i < g->term_rank; i++) dims[rank] = g->terms[i], strides[rank++] = term[i];
  AX_TRY(ax_verify_box(v, buffer, offset, rank, dims, strides));
  return v->plan->buffers[buffer].type.dtype == dtype ? AX_OK : ax_error(AX_INTERNAL, "b%u is of another dtype", buffer);
}

/* The panels of each right factor lie one after the other. */
static ax_status check_panels(const ax_plan_verifier *v, const ax_gemm *g) {
  const ax_panels one = {.dtype = g->dtype, .n = g->n, .k = g->k};
  const int64_t numbers = ax_panels_each(&one);
  return check_matrix(v, g, g->b, g->b_offset, 1, numbers, numbers, g->b_stride, g->b_term, g->dtype);
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  const ax_gemm *g = op->gemm;
  ax_dtype made;
  if (!ax_product_result(g->dtype, &made)) return ax_error(AX_INTERNAL, "a product of %s", ax_dtype_name(g->dtype));
  AX_TRY(check_matrix(v, g, g->a, g->a_offset, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, g->lda, g->a_stride,
                      g->a_term, g->dtype));
  if (g->packed)
    AX_TRY(check_panels(v, g));
  else
    AX_TRY(check_matrix(v, g, g->b, g->b_offset, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, g->ldb, g->b_stride,
                        g->b_term, g->dtype));
  return check_matrix(v, g, g->c, g->c_offset, g->m, g->n, g->ldc, g->c_stride, NULL, made);
}

const ax_op_rules ax_op_gemm_rules = {.name = "gemm", .visit = visit_all, .stored = stored, .text = text_of, .verify = verify};
