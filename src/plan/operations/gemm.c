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

static double time_of(const ax_plan *plan, const ax_op *op) {
  (void)plan;
  return 200 + ax_gemm_time(op->gemm);
}

static uint32_t *operand(ax_op *op, uint32_t index) { return index == 0 ? &op->gemm->a : index == 1 ? &op->gemm->b : NULL; }

static bool makes_nonfinite(const ax_op *op) {
  (void)op;
  return true;
}

static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  ax_gemm *made = op->gemm = ax_arena_copy(r->arena, op->gemm, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  AX_TRY(r->buffer(r->context, &made->a));
  AX_TRY(r->buffer(r->context, &made->b));
  return r->buffer(r->context, &made->c);
}

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  const ax_gemm *gemm = op->gemm;
  (void)plan, (void)indent;
  ax_text_add(text, "gemm b%u %s b%u%s %sb%u%s m=%lld n=%lld k=%lld", gemm->c, gemm->accumulate ? "+=" : "=", gemm->a,
              gemm->transpose_a ? "'" : "", gemm->packed ? "packed " : "", gemm->b, gemm->transpose_b ? "'" : "",
              (long long)gemm->m, (long long)gemm->n, (long long)gemm->k);
  if (gemm->rounds) ax_text_add(text, " rounded");
  for (uint32_t i = 0; i < gemm->term_rank; i++) ax_text_add(text, " terms=%lld", (long long)gemm->terms[i]);
  for (uint32_t i = 0; i < gemm->batch_rank; i++) ax_text_add(text, " batch=%lld", (long long)gemm->batch[i]);
  ax_text_add(text, "\n");
}

/* --- What it reads and computes --- */

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

/* Nanoseconds in which the factors are packed, on the core that times of plans were fitted on (plan/amount.h): narrow floats are
   widened or put in pairs; of others what a first cache does not hold, where more than a few rows and columns use it. */
static double packing_ns(const ax_gemm *g, ax_dtype dtype, double factors_elems) {
  enum { few = 16, first_cache = 32 << 10 };
  if (ax_is_narrow_float(dtype)) return 0.3 * factors_elems;
  if (g->packed || g->m < few || g->n < few || g->k * g->n * (int64_t)ax_dtype_bytes(dtype) <= first_cache) return 0;
  return 0.03 * (double)ax_dtype_bytes(dtype) * factors_elems;
}

/* A product of narrow numbers may be made in wide ones here, and one of widened numbers in narrow ones: both are of narrow ones. */
static ax_amount amount_of(const ax_plan *plan, const ax_op *op) {
  const ax_gemm *g = op->gemm;
  (void)plan;
  const double m = (double)g->m, n = (double)g->n, k = (double)g->k * (double)ax_dims_elems(g->term_rank, g->terms),
               batch = (double)ax_dims_elems(g->batch_rank, g->batch);
  ax_amount out = {.flops = 2 * m * n * k * batch, .product = 2 * m * n * k * batch};
  out.dtype = op->eqn != NULL && op->program != NULL && op->eqn->in_count > 0 ? op->program->types[op->eqn->in[0]].dtype : g->dtype;
  const double wide = (double)ax_dtype_bytes(out.dtype);
  if (ax_dtype_bytes(g->dtype) < ax_dtype_bytes(out.dtype)) out.dtype = g->dtype;
  const double item = (double)ax_dtype_bytes(out.dtype);
  out.written = m * n * batch * wide;
  out.read = (factor_elems(g, false) + factor_elems(g, true)) * item + (g->accumulate ? out.written : 0);
  out.core_ns = packing_ns(g, out.dtype, (m * k + k * n) * batch);
  return out;
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
  if (g->rounds && (g->accumulate || g->term_rank > 0 || !ax_product_rounds(g->dtype, g->k)))
    return ax_error(AX_INTERNAL, "a product that cannot be rounded");
  return check_matrix(v, g, g->c, g->c_offset, g->m, g->n, g->ldc, g->c_stride, NULL, g->rounds ? g->dtype : made);
}

const ax_op_rules ax_op_gemm_rules = {.name = "gemm",
                                      .only_computes = true,
                                      .makes_results = true,
                                      .visit = visit_all,
                                      .stored = stored,
                                      .operand = operand,
                                      .time = time_of,
                                      .amount = amount_of,
                                      .makes_nonfinite = makes_nonfinite,
                                      .rename = rename_all,
                                      .text = text_of,
                                      .verify = verify};
