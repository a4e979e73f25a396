/* dot_general: lhs T[..], rhs T[..] -> T[batch.., lhs's others.., rhs's others..]
     y[b.., i.., j..] = sum over c.. of lhs[b.., i.., c..] * rhs[b.., j.., c..]
   with the dimensions of each operand in the order its lists and its shape give.
   Parameters: lhs_contract, rhs_contract (pairs that are summed over), lhs_batch, rhs_batch (pairs that go along).
   Errors: bool or dtypes that differ; lists of unequal length; a dimension outside the rank or named twice; paired sizes that
   differ; a result of too many dimensions.
   Numerics: eval adds floats in f64 and rounds once; compiled bf16 and f16 products are made in f32 and rounded once. Integers wrap.
   Bilinear; each transpose is a dot_general of the cotangent with the other operand over the other's free dimensions.
   Compiled: a GEMM over each operand as a matrix where it lies, or copied so that it is one; a kernel, which sums as reduce_sum does, for
   integers of 16 and 64 bits, for vectors (one result dimension of 1) but those by many short rows, for many tiny matrices, and where there is one
   term, so nothing to sum.
   Simplified: operands that were transposed are taken as they lay before, where the order of the result's and of the contracted dimensions is the same.
   Sharding: a batch or free dimension goes through; a contracted one makes a sum over its mesh axes. */
#include <string.h>

#include "prim/prims.h"
#include "prim/shape.h"
#include "product/product.h"

typedef struct dot_params {
  ax_dims lhs_contract, rhs_contract, lhs_batch, rhs_batch;
} dot_params;

/* One operand's dimensions by their part in the product. */
typedef struct side {
  ax_dims batch, free, contract;
} side;

static side lhs_side(const dot_params *p, uint32_t rank) {
  return (side){p->lhs_batch, ax_dims_others(rank, &p->lhs_batch, &p->lhs_contract), p->lhs_contract};
}
static side rhs_side(const dot_params *p, uint32_t rank) {
  return (side){p->rhs_batch, ax_dims_others(rank, &p->rhs_batch, &p->rhs_contract), p->rhs_contract};
}

/* --- infer --- */

static ax_status infer_side(const char *name, const ax_dims *batch, const ax_dims *contract, uint32_t rank) {
  ax_dims both = *batch;
  for (uint32_t i = 0; i < contract->count; i++) {
    if (both.count == AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "%s has too many dimensions named", name);
    both.v[both.count++] = contract->v[i];
  }
  return ax_infer_distinct(name, &both, rank);
}

static ax_status infer_pairs(const ax_infer_args *args, const char *what, const ax_dims *lhs, const ax_dims *rhs) {
  if (lhs->count != rhs->count)
    return ax_error(AX_INVALID_ARGUMENT, "%u %s dimensions of the left operand, %u of the right", lhs->count, what,
                    rhs->count);
  for (uint32_t i = 0; i < lhs->count; i++) {
    int64_t left = args->in[0].dims[lhs->v[i]], right = args->in[1].dims[rhs->v[i]];
    if (left != right)
      return ax_error(AX_INVALID_ARGUMENT, "%s dimensions %lld and %lld differ in size: %lld and %lld", what,
                      (long long)lhs->v[i], (long long)rhs->v[i], (long long)left, (long long)right);
  }
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const dot_params *p = args->params;
  const ax_type *lhs = &args->in[0], *rhs = &args->in[1];
  if (lhs->dtype != rhs->dtype)
    return ax_error(AX_INVALID_ARGUMENT, "operand dtypes differ: %s and %s", ax_dtype_name(lhs->dtype),
                    ax_dtype_name(rhs->dtype));
  if (lhs->dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  AX_TRY(infer_side("the left operand", &p->lhs_batch, &p->lhs_contract, lhs->rank));
  AX_TRY(infer_side("the right operand", &p->rhs_batch, &p->rhs_contract, rhs->rank));
  AX_TRY(infer_pairs(args, "contracted", &p->lhs_contract, &p->rhs_contract));
  AX_TRY(infer_pairs(args, "batch", &p->lhs_batch, &p->rhs_batch));
  side left = lhs_side(p, lhs->rank), right = rhs_side(p, rhs->rank);
  int64_t dims[2 * AX_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < left.batch.count; i++) dims[rank++] = lhs->dims[left.batch.v[i]];
  for (uint32_t i = 0; i < left.free.count; i++) dims[rank++] = lhs->dims[left.free.v[i]];
  for (uint32_t i = 0; i < right.free.count; i++) dims[rank++] = rhs->dims[right.free.v[i]];
  if (rank > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "the result has %u dimensions, above %d", rank, AX_MAX_RANK);
  args->out[0] = ax_array_type(lhs->dtype, rank, dims);
  return AX_OK;
}

/* --- eval --- */

/* Strides of an operand along the result's dimensions (0 where it has none) and along the contracted ones. */
typedef struct walk {
  int64_t outer[AX_MAX_RANK], inner[AX_MAX_RANK];
} walk;

static walk walk_of(const ax_tensor *x, const side *s, uint32_t free_at) {
  walk w = {0};
  int64_t strides[AX_MAX_RANK];
  ax_dense_strides(x->rank, x->dims, strides);
  for (uint32_t i = 0; i < s->batch.count; i++) w.outer[i] = strides[s->batch.v[i]];
  for (uint32_t i = 0; i < s->free.count; i++) w.outer[free_at + i] = strides[s->free.v[i]];
  for (uint32_t i = 0; i < s->contract.count; i++) w.inner[i] = strides[s->contract.v[i]];
  return w;
}

/* Numbers of an operand, `lines` of `length` each along the contracted dimensions, the first at `at[0]`, line k where the result's element `step` k further is.
   In blocks of `width` lines, whose numbers stand beside one another; lines that fill up the last block are 0. */
static void pack(const ax_tensor *x, const ax_tensor *out, const walk *w, const int64_t *inner, uint32_t inner_rank, int64_t first, int64_t step, int64_t lines,
                 int64_t length, int64_t width, ax_number *to) {
  for (int64_t k = 0; k < lines; k++) {
    int64_t at = ax_strided_at(first + k * step, out->rank, out->dims, w->outer);
    ax_number *line = to + k / width * width * length + k % width;
    for (int64_t j = 0; j < length; j++) line[j * width] = ax_number_load(x->dtype, x->data, at + ax_strided_at(j, inner_rank, inner, w->inner));
  }
}

enum { beside = 8 }; /* columns that are summed side by side, each in order */

static void sum_floats(const ax_number *row, const ax_number *columns, int64_t length, ax_number *total) {
  double sum[beside] = {0};
  for (int64_t j = 0; j < length; j++)
    for (int c = 0; c < beside; c++) sum[c] += row[j].f * columns[j * beside + c].f;
  for (int c = 0; c < beside; c++) total[c].f = sum[c];
}

static void sum_integers(const ax_number *row, const ax_number *columns, int64_t length, ax_number *total) {
  uint64_t sum[beside] = {0};
  for (int64_t j = 0; j < length; j++)
    for (int c = 0; c < beside; c++) sum[c] += row[j].u * columns[j * beside + c].u;
  for (int c = 0; c < beside; c++) total[c].u = sum[c];
}

static int64_t size_of(const ax_tensor *x, ax_dims dims) {
  int64_t size = 1;
  for (uint32_t i = 0; i < dims.count; i++) size *= x->dims[dims.v[i]];
  return size;
}

/* The operands are made numbers once, the left row by row. */
static ax_status eval(const ax_eval_args *args) {
  const dot_params *p = args->eqn->params;
  const ax_tensor *lhs = args->in[0], *rhs = args->in[1], *out = args->out[0];
  side left = lhs_side(p, lhs->rank), right = rhs_side(p, rhs->rank);
  walk lw = walk_of(lhs, &left, left.batch.count), rw = walk_of(rhs, &right, left.batch.count + left.free.count);
  int64_t inner[AX_MAX_RANK];
  for (uint32_t i = 0; i < left.contract.count; i++) inner[i] = lhs->dims[left.contract.v[i]];
  int64_t length = ax_dims_elems(left.contract.count, inner), batches = size_of(lhs, left.batch);
  int64_t rows = size_of(lhs, left.free), columns = size_of(rhs, right.free), padded = (columns + beside - 1) / beside * beside;
  if (batches * rows * columns == 0) return AX_OK;
  ax_number *row = ax_calloc((size_t)length + 1, sizeof *row), *packed = ax_calloc((size_t)(padded * length) + 1, sizeof *packed);
  ax_status status = row == NULL || packed == NULL ? ax_out_of_memory((size_t)(padded * length) * sizeof *packed) : AX_OK;
  for (int64_t b = 0; b < batches && status == AX_OK; b++) {
    pack(rhs, out, &rw, inner, left.contract.count, b * rows * columns, 1, columns, length, beside, packed);
    for (int64_t i = 0; i < rows; i++) {
      int64_t first = (b * rows + i) * columns;
      pack(lhs, out, &lw, inner, left.contract.count, first, columns, 1, length, 1, row);
      for (int64_t c = 0; c < columns; c += beside) {
        ax_number total[beside];
        (ax_is_float(lhs->dtype) ? sum_floats : sum_integers)(row, packed + c * length, length, total);
        for (int64_t k = 0; k < beside && c + k < columns; k++) ax_number_store(out->dtype, out->data, first + c + k, total[k]);
      }
    }
  }
  ax_free(row);
  ax_free(packed);
  return status;
}

/* --- jvp --- */

static ax_value bind(const dot_params *p, ax_value lhs, ax_value rhs) {
  ax_value in[] = {lhs, rhs};
  return ax_bind1(&ax_prim_dot_general, p, in, 2);
}

static void jvp(const ax_jvp_args *args) {
  const dot_params *p = args->eqn->params;
  ax_value left = args->tangent_in[0], right = args->tangent_in[1];
  args->out[0] = bind(p, args->in[0], args->in[1]);
  args->tangent_out[0] = ax_add_any(ax_is_zero(left) ? ax_zero : bind(p, left, args->in[1]),
                                    ax_is_zero(right) ? ax_zero : bind(p, args->in[0], right));
}

/* --- transpose --- */

/* x's cotangent, x one side and y the other: the cotangent times y over y's free dimensions, which lie at y_at in it, has the
   dimensions batch.., x's free.., then y's contracted ones in y's order; these go back to x's places. */
static ax_value transpose_side(ax_value cotangent, const side *x, ax_value y, const side *y_side, uint32_t y_at) {
  dot_params p = {.rhs_contract = y_side->free, .rhs_batch = y_side->batch};
  p.lhs_contract.count = y_side->free.count;
  p.lhs_batch.count = y_side->batch.count;
  for (uint32_t i = 0; i < y_side->free.count; i++) p.lhs_contract.v[i] = y_at + i;
  for (uint32_t i = 0; i < y_side->batch.count; i++) p.lhs_batch.v[i] = i;
  ax_value product = bind(&p, cotangent, y);
  int64_t from[AX_MAX_RANK];
  uint32_t next = 0;
  for (uint32_t i = 0; i < x->batch.count; i++) from[x->batch.v[i]] = next++;
  for (uint32_t i = 0; i < x->free.count; i++) from[x->free.v[i]] = next++;
  for (uint32_t i = 0; i < x->contract.count; i++) {
    uint32_t before = 0; /* contracted dimensions of y that stand before this one's partner */
    for (uint32_t j = 0; j < y_side->contract.count; j++) before += y_side->contract.v[j] < y_side->contract.v[i];
    from[x->contract.v[i]] = next + before;
  }
  return ax_transpose(product, from);
}

static void transpose(const ax_transpose_args *args) {
  if (!ax_linear_in_one(args)) return;
  const dot_params *p = args->eqn->params;
  side left = lhs_side(p, args->in_types[0].rank), right = rhs_side(p, args->in_types[1].rank);
  uint32_t batch = left.batch.count;
  if (args->linear[0])
    args->out[0] = transpose_side(args->cotangent[0], &left, args->in[1], &right, batch + left.free.count);
  if (args->linear[1]) args->out[1] = transpose_side(args->cotangent[0], &right, args->in[0], &left, batch);
}

/* --- batch: a dimension of both is one more batch dimension, in front; of one, one more free dimension --- */

/* How many free dimensions of this side stand before `dim`. */
static int free_before(const side *s, int dim) {
  int before = 0;
  for (uint32_t i = 0; i < s->free.count; i++) before += s->free.v[i] < dim;
  return before;
}

static void batch(const ax_batch_args *args) {
  const ax_prim *prim = args->eqn->prim;
  dot_params p = *(const dot_params *)args->eqn->params;
  int left_dim = args->in_dim[0], right_dim = args->in_dim[1];
  if (left_dim >= 0) {
    ax_dims_shift(&p.lhs_contract, left_dim);
    ax_dims_shift(&p.lhs_batch, left_dim);
  }
  if (right_dim >= 0) {
    ax_dims_shift(&p.rhs_contract, right_dim);
    ax_dims_shift(&p.rhs_batch, right_dim);
  }
  if (left_dim >= 0 && right_dim >= 0) {
    if (!ax_dims_insert(prim, &p.lhs_batch, 0, left_dim) || !ax_dims_insert(prim, &p.rhs_batch, 0, right_dim)) return;
    args->out_dim[0] = 0;
  } else {
    side left = lhs_side(&p, ax_typeof(args->in[0]).rank), right = rhs_side(&p, ax_typeof(args->in[1]).rank);
    args->out_dim[0] = (int)p.lhs_batch.count + (left_dim >= 0 ? free_before(&left, left_dim)
                                                               : (int)left.free.count + free_before(&right, right_dim));
  }
  args->out[0] = bind(&p, args->in[0], args->in[1]);
}

/* --- simplify --- */

static bool keeps_order(const ax_dims *dims, const ax_dims *permutation) {
  for (uint32_t i = 0; i < dims->count; i++)
    for (uint32_t j = 0; j < i; j++)
      if ((dims->v[j] < dims->v[i]) != (permutation->v[dims->v[j]] < permutation->v[dims->v[i]])) return false;
  return true;
}

static void permute(ax_dims *dims, const ax_dims *permutation) {
  for (uint32_t i = 0; i < dims->count; i++) dims->v[i] = permutation->v[dims->v[i]];
}

/* A product reads its factors as they lie, so a transposed one need not be made. Whoever else reads it may make it. */
static void simplify_side(const ax_simplify_args *args, uint32_t k) {
  const ax_eqn *inner = ax_simplify_operand(args, k, &ax_prim_transpose);
  dot_params p = *(const dot_params *)args->eqn->params;
  if (inner == NULL || *args->failed) return;
  const ax_dims *permutation = ax_transposed_dims(inner);
  const side of = k == 0 ? lhs_side(&p, permutation->count) : rhs_side(&p, permutation->count);
  if (!keeps_order(&of.free, permutation) || !keeps_order(&of.contract, permutation)) return;
  permute(k == 0 ? &p.lhs_batch : &p.rhs_batch, permutation);
  permute(k == 0 ? &p.lhs_contract : &p.rhs_contract, permutation);
  ax_simplify_replace(args, k, inner->in[0], &p);
}

static void simplify(const ax_simplify_args *args) {
  simplify_side(args, 0);
  simplify_side(args, 1);
}

/* --- shard --- */

static void shard(const ax_shard_args *args) {
  const dot_params *p = args->eqn->params;
  const ax_type *lhs = &args->types[args->eqn->in[0]], *rhs = &args->types[args->eqn->in[1]];
  side left = lhs_side(p, lhs->rank), right = rhs_side(p, rhs->rank);
  uint32_t next = 0; /* of the result */
  for (uint32_t i = 0; i < left.batch.count; i++) {
    uint32_t factor = ax_factor(args, lhs->dims[left.batch.v[i]], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], left.batch.v[i], factor);
    ax_factor_of(&args->in[1], right.batch.v[i], factor);
    ax_factor_of(&args->out[0], next++, factor);
  }
  for (uint32_t s = 0; s < 2; s++) {
    const ax_dims *free = s == 0 ? &left.free : &right.free;
    for (uint32_t i = 0; i < free->count; i++) {
      uint32_t factor = ax_factor(args, (s == 0 ? lhs : rhs)->dims[free->v[i]], AX_FACTOR_ALONG);
      ax_factor_of(&args->in[s], free->v[i], factor);
      ax_factor_of(&args->out[0], next++, factor);
    }
  }
  for (uint32_t i = 0; i < left.contract.count; i++) {
    uint32_t factor = ax_factor(args, lhs->dims[left.contract.v[i]], AX_FACTOR_SUM);
    ax_factor_of(&args->in[0], left.contract.v[i], factor);
    ax_factor_of(&args->in[1], right.contract.v[i], factor);
  }
}

/* --- lower --- */

/* An operand as matrices: element (row, column) of matrix b lies at b . batch_stride + row * ld + column, or, transposed,
   + column * ld + row. */
typedef struct matrix {
  uint32_t buffer;
  bool transposed;
  int64_t rows, columns, ld, batch_stride[AX_MAX_RANK];
} matrix;

/* The listed dimensions as one of `extent` elements, `stride` apart; false when they do not lie so. */
static bool collapse(const ax_dims *which, const int64_t *dims, const int64_t *strides, int64_t *extent,
                     int64_t *stride) {
  *extent = *stride = 1;
  for (uint32_t i = 0; i < which->count; i++) {
    int64_t d = which->v[i];
    if (dims[d] == 1) continue;
    if (*extent > 1 && *stride != dims[d] * strides[d]) return false;
    *extent *= dims[d];
    *stride = strides[d];
  }
  return true;
}

static bool as_matrix(const ax_type *type, const ax_dims *batch, const ax_dims *rows, const ax_dims *columns,
                      matrix *out) {
  int64_t strides[AX_MAX_RANK], row_stride, column_stride;
  ax_dense_strides(type->rank, type->dims, strides);
  if (!collapse(rows, type->dims, strides, &out->rows, &row_stride) ||
      !collapse(columns, type->dims, strides, &out->columns, &column_stride))
    return false;
  for (uint32_t i = 0; i < batch->count; i++) out->batch_stride[i] = strides[batch->v[i]];
  out->transposed = column_stride != 1 && out->columns > 1;
  if (out->transposed && row_stride != 1 && out->rows > 1) return false;
  if (out->transposed)
    out->ld = column_stride;
  else
    out->ld = out->rows > 1 ? row_stride : out->columns;
  return true;
}

/* A buffer with the listed dimensions of `src`, in that order. */
static ax_status lower_permuted(ax_lower *lower, uint32_t src, ax_axis_set axes, const ax_dims *order, uint32_t *out) {
  ax_type from = ax_lower_get(lower, src)->type, to = from;
  ax_position src_at[AX_MAX_RANK], dst_at[AX_MAX_RANK];
  ax_at_identity(dst_at, from.rank);
  for (uint32_t i = 0; i < order->count; i++) {
    to.dims[i] = from.dims[order->v[i]];
    src_at[order->v[i]] = dst_at[i];
  }
  AX_TRY(ax_lower_buffer(lower, &to, axes, out));
  return ax_lower_move(lower, to.rank, to.dims, *out, dst_at, src, src_at);
}

static ax_dims joined(const ax_dims *a, const ax_dims *b, const ax_dims *c) {
  ax_dims all = *a;
  for (uint32_t i = 0; i < b->count; i++) all.v[all.count++] = b->v[i];
  for (uint32_t i = 0; i < c->count; i++) all.v[all.count++] = c->v[i];
  return all;
}

static ax_dims numbers(uint32_t first, uint32_t count) {
  ax_dims dims = {.count = count};
  for (uint32_t i = 0; i < count; i++) dims.v[i] = first + i;
  return dims;
}

/* The operand as matrices: where it lies, or copied into the order batch, rows, columns. */
static ax_status lower_matrix(ax_lower *lower, uint32_t buffer, ax_axis_set axes, const ax_dims *batch, const ax_dims *rows,
                              const ax_dims *columns, matrix *out) {
  ax_type type = ax_lower_get(lower, buffer)->type;
  out->buffer = buffer;
  if (as_matrix(&type, batch, rows, columns, out)) return AX_OK;
  ax_dims order = joined(batch, rows, columns);
  AX_TRY(lower_permuted(lower, buffer, axes, &order, &out->buffer));
  ax_dims first = numbers(0, batch->count), second = numbers(batch->count, rows->count);
  ax_dims third = numbers(batch->count + rows->count, columns->count);
  type = ax_lower_get(lower, out->buffer)->type;
  return as_matrix(&type, &first, &second, &third, out) ? AX_OK : ax_error(AX_INTERNAL, "a copied operand is no matrix");
}

/* Into how many blocks of k a product is cut: 1, unless k is so long that one sum over it would be inexact, or that the results alone
   make too few parts for threads. The blocks' products are always a small part of what is read. */
static int64_t contracted_blocks(const ax_gemm *gemm) {
  enum { least_size = 2048, long_size = 1 << 15, few_results = 1 << 18, most_blocks = 32 };
  double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->k, least = 16 * m * n / (m + n);
  if (gemm->batch_rank > 0) return 1;
  int64_t most = (int64_t)(k / (least < least_size ? least_size : least)), wanted = gemm->k / long_size;
  if (wanted < most_blocks && m * n < few_results && m * n * k > 1 << 25) wanted = most_blocks;
  if (wanted > most) wanted = most;
  for (int64_t count = wanted; count >= 2 && count > wanted / 2; count--)
    if (gemm->k % count == 0) return count;
  return wanted;
}

/* A batch of products, one for each block of k, perhaps one of what is left over, and their sum. */
static ax_status lower_blocks(ax_lower *lower, ax_gemm gemm, int64_t blocks, uint32_t out) {
  const ax_buffer *result = ax_lower_get(lower, out);
  int64_t size = gemm.k / blocks, rest = gemm.k - size * blocks, dims[AX_MAX_RANK + 1] = {blocks + (rest > 0)};
  uint32_t rank = result->type.rank, parts;
  ax_type type = result->type;
  ax_position from[AX_MAX_RANK + 1], to[AX_MAX_RANK];
  memcpy(dims + 1, type.dims, rank * sizeof dims[0]);
  type = ax_array_type(type.dtype, rank + 1, dims);
  AX_TRY(ax_lower_buffer(lower, &type, result->axes, &parts));
  ax_gemm block = gemm, last = gemm;
  block.c = last.c = parts;
  block.k = size;
  block.batch_rank = 1;
  block.batch[0] = blocks;
  block.a_stride[0] = size * (gemm.transpose_a ? gemm.lda : 1);
  block.b_stride[0] = size * (gemm.transpose_b ? 1 : gemm.ldb);
  block.c_stride[0] = gemm.m * gemm.n;
  AX_TRY(ax_lower_gemm(lower, &block));
  last.k = rest;
  last.a_offset += blocks * block.a_stride[0];
  last.b_offset += blocks * block.b_stride[0];
  last.c_offset = blocks * block.c_stride[0];
  if (rest > 0) AX_TRY(ax_lower_gemm(lower, &last));
  memmove(dims, dims + 1, rank * sizeof dims[0]);
  dims[rank] = blocks + (rest > 0);
  ax_at_identity(to, rank);
  ax_at_identity(from + 1, rank);
  from[0] = (ax_position){.dim = (int)rank, .coef = 1, .dynamic = AX_NONE};
  AX_TRY(ax_lower_kernel_begin(lower, rank + 1, 1, dims));
  ax_lower_store(lower, out, to, ax_lower_load(lower, parts, from), AX_SCALAR_ADD);
  return ax_lower_kernel_end(lower);
}

static ax_status lower_product(ax_lower *lower, const matrix *a, const matrix *b, const ax_dims *batch,
                               const int64_t *lhs_dims, uint32_t out) {
  ax_gemm gemm = {.dtype = ax_lower_get(lower, a->buffer)->type.dtype,
                  .transpose_a = a->transposed,
                  .transpose_b = b->transposed,
                  .m = a->rows,
                  .n = b->columns,
                  .k = a->columns,
                  .lda = a->ld,
                  .ldb = b->ld,
                  .ldc = b->columns,
                  .a = a->buffer,
                  .b = b->buffer,
                  .c = out};
  int64_t stride = gemm.m * gemm.n;
  for (uint32_t i = batch->count; i-- > 0;) {
    gemm.c_stride[i] = stride;
    stride *= lhs_dims[batch->v[i]];
  }
  for (uint32_t i = 0; i < batch->count; i++) {
    int64_t size = lhs_dims[batch->v[i]];
    if (size == 1) continue;
    uint32_t at = gemm.batch_rank++;
    gemm.batch[at] = size;
    gemm.a_stride[at] = a->batch_stride[i];
    gemm.b_stride[at] = b->batch_stride[i];
    gemm.c_stride[at] = gemm.c_stride[i]; /* at <= i: not yet read */
  }
  int64_t blocks = contracted_blocks(&gemm);
  if (blocks > 1 && ax_lower_get(lower, out)->type.rank < AX_MAX_RANK) return lower_blocks(lower, gemm, blocks, out);
  return ax_lower_gemm(lower, &gemm);
}

/* Pairs in the order in which the left operand has them: then its contracted dimensions are most likely one. */
static void sort_pairs(ax_dims *key, ax_dims *other) {
  for (uint32_t i = 1; i < key->count; i++)
    for (uint32_t j = i; j > 0 && key->v[j - 1] > key->v[j]; j--) {
      int64_t k = key->v[j], o = other->v[j];
      key->v[j] = key->v[j - 1], other->v[j] = other->v[j - 1];
      key->v[j - 1] = k, other->v[j - 1] = o;
    }
}

/* The dtype that products of `type` are made in goes into it; `product` is a buffer of that: the given one, or one of its own. */
static ax_status product_buffer(ax_lower *lower, const ax_eqn *eqn, ax_type *type, uint32_t *product) {
  ax_dtype made;
  if (!ax_product_result(type->dtype, &made) || made == type->dtype) return AX_OK;
  type->dtype = made;
  return ax_lower_buffer(lower, type, lower->differs[eqn->out], product);
}

static ax_status narrow_product(ax_lower *lower, const ax_type *type, uint32_t product, uint32_t out) {
  ax_position at[AX_MAX_RANK];
  if (product == out) return AX_OK;
  ax_at_identity(at, type->rank);
  return ax_lower_move(lower, type->rank, type->dims, out, at, product, at);
}

/* `swapped`: the right operand's rows by the left one, which is a vector; the result lies the same way. */
static ax_status lower_products(ax_lower *lower, const ax_eqn *eqn, side left, side right, const uint32_t *in, bool swapped, uint32_t out) {
  ax_type type = lower->program->types[eqn->out];
  const ax_axis_set *differs = lower->differs;
  const uint32_t first = swapped, second = !swapped;
  uint32_t product = out;
  matrix a, b;
  AX_TRY(product_buffer(lower, eqn, &type, &product));
  sort_pairs(&left.contract, &right.contract);
  AX_TRY(lower_matrix(lower, in[first], differs[eqn->in[first]], &left.batch, &left.free, &left.contract, &a));
  AX_TRY(lower_matrix(lower, in[second], differs[eqn->in[second]], &right.batch, &right.contract, &right.free, &b));
  AX_TRY(lower_product(lower, &a, &b, &left.batch, lower->program->types[eqn->in[0]].dims, product));
  return narrow_product(lower, &type, product, out);
}

/* Where an operand's dimensions are in the loop nest: the result's dimensions, then the contracted ones. */
static void loop_places(const side *s, uint32_t free_at, uint32_t contract_at, ax_position *at) {
  const ax_position here = {.coef = 1, .dynamic = AX_NONE};
  for (uint32_t i = 0; i < s->batch.count; i++) at[s->batch.v[i]] = here, at[s->batch.v[i]].dim = (int)i;
  for (uint32_t i = 0; i < s->free.count; i++) at[s->free.v[i]] = here, at[s->free.v[i]].dim = (int)(free_at + i);
  for (uint32_t i = 0; i < s->contract.count; i++)
    at[s->contract.v[i]] = here, at[s->contract.v[i]].dim = (int)(contract_at + i);
}

/* Converted to what it is multiplied in. */
static ax_ex load_factor(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_dtype dtype) {
  ax_ex x = ax_lower_load(lower, buffer, at);
  if (ax_lower_get(lower, buffer)->type.dtype == dtype) return x;
  return ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, dtype, x, AX_NONE, AX_NONE);
}

/* Of one term: nothing is reduced over, so that others may take it in. 0 is added, as a sum begins with it: -0.0 becomes 0.0. */
static ax_status lower_one_term(ax_lower *lower, const ax_type *type, const uint32_t *in, ax_position *left_at, uint32_t left_rank,
                                ax_position *right_at, uint32_t right_rank, uint32_t product) {
  ax_position to[AX_MAX_RANK];
  ax_loop_kernel *kernel;
  for (uint32_t d = 0; d < left_rank; d++)
    if (left_at[d].dim >= (int)type->rank) left_at[d] = (ax_position){.dim = -1, .dynamic = AX_NONE};
  for (uint32_t d = 0; d < right_rank; d++)
    if (right_at[d].dim >= (int)type->rank) right_at[d] = (ax_position){.dim = -1, .dynamic = AX_NONE};
  ax_at_identity(to, type->rank);
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  kernel = lower->kernel;
  ax_ex a = load_factor(lower, in[0], left_at, type->dtype), b = load_factor(lower, in[1], right_at, type->dtype);
  ax_ex value = ax_kernel_op(kernel, AX_SCALAR_MUL, type->dtype, a, b, AX_NONE);
  if (ax_is_float(type->dtype)) value = ax_kernel_op(kernel, AX_SCALAR_ADD, type->dtype, value, ax_kernel_const(kernel, type->dtype, 0), AX_NONE);
  ax_lower_store(lower, product, to, value, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* As one kernel: a sum of products over the contracted dimensions. */
static ax_status lower_loops(ax_lower *lower, const ax_eqn *eqn, const side *left, const side *right, const uint32_t *in,
                             uint32_t out) {
  const ax_type *lhs = &lower->program->types[eqn->in[0]], *type = &lower->program->types[eqn->out];
  ax_position left_at[AX_MAX_RANK], right_at[AX_MAX_RANK], to[AX_MAX_RANK];
  int64_t dims[2 * AX_MAX_RANK];
  uint32_t summed = left->contract.count, product = out;
  ax_type wide = *type;
  if (ax_is_float(type->dtype)) AX_TRY(product_buffer(lower, eqn, &wide, &product));
  memcpy(dims, type->dims, sizeof type->dims);
  for (uint32_t i = 0; i < summed; i++) dims[type->rank + i] = lhs->dims[left->contract.v[i]];
  loop_places(left, left->batch.count, type->rank, left_at);
  loop_places(right, left->batch.count + left->free.count, type->rank, right_at);
  if (summed > 0 && ax_dims_elems(summed, dims + type->rank) == 1) {
    AX_TRY(lower_one_term(lower, &wide, in, left_at, lhs->rank, right_at, lower->program->types[eqn->in[1]].rank, product));
    return narrow_product(lower, &wide, product, out);
  }
  ax_at_identity(to, type->rank);
  AX_TRY(ax_lower_kernel_begin(lower, type->rank + summed, summed, dims));
  ax_ex a = load_factor(lower, in[0], left_at, wide.dtype), b = load_factor(lower, in[1], right_at, wide.dtype);
  ax_ex factors = ax_kernel_op(lower->kernel, AX_SCALAR_MUL, wide.dtype, a, b, AX_NONE);
  ax_lower_store(lower, product, to, factors, summed > 0 ? AX_SCALAR_ADD : AX_SCALAR_NONE);
  AX_TRY(ax_lower_kernel_end(lower));
  return narrow_product(lower, &wide, product, out);
}

static int64_t listed_elems(const ax_type *type, const ax_dims *which) {
  int64_t elems = 1;
  for (uint32_t i = 0; i < which->count; i++) elems *= type->dims[which->v[i]];
  return elems;
}

/* A matrix of many short rows, times a vector: loops would take each row by itself, unless rows are so short that they pick numbers of several. */
static bool has_short_rows(const ax_type *matrix, const side *s) {
  enum { short_row = 32, many = 1 << 16 };
  int64_t k = listed_elems(matrix, &s->contract), picked = ax_dtype_bytes(matrix->dtype) == 8 ? 4 : 8;
  ax_dtype made;
  return s->batch.count == 0 && s->contract.count == 1 && s->contract.v[0] + 1 == matrix->rank && k > picked && k <= short_row && ax_type_elems(matrix) >= many &&
         ax_product_result(matrix->dtype, &made) && made == matrix->dtype;
}

/* Where a product is not worth its call: vectors, which are one long row, and many tiny matrices. */
static bool suits_loops(const ax_type *lhs, const ax_type *rhs, const side *left, const side *right) {
  enum { tiny = 512 };
  int64_t m = listed_elems(lhs, &left->free), n = listed_elems(rhs, &right->free), k = listed_elems(lhs, &left->contract);
  ax_dtype made;
  if (!ax_product_result(lhs->dtype, &made) || m == 1 || n == 1 || k == 1) return true;
  return listed_elems(lhs, &left->batch) > 1 && m <= tiny && n <= tiny && k <= tiny && m * n * k <= tiny;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *lhs = &lower->program->types[eqn->in[0]], *rhs = &lower->program->types[eqn->in[1]];
  side left = lhs_side(eqn->params, lhs->rank), right = rhs_side(eqn->params, rhs->rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  if (ax_type_elems(lhs) == 0 || ax_type_elems(rhs) == 0) return ax_lower_fill(lower, out[0], (ax_number){0});
  bool one_row = listed_elems(lhs, &left.free) == 1, one_column = listed_elems(rhs, &right.free) == 1;
  if (one_column && has_short_rows(lhs, &left)) return lower_products(lower, eqn, left, right, in, false, out[0]);
  if (one_row && has_short_rows(rhs, &right)) return lower_products(lower, eqn, right, left, in, true, out[0]);
  if (suits_loops(lhs, rhs, &left, &right)) return lower_loops(lower, eqn, &left, &right, in, out[0]);
  return lower_products(lower, eqn, left, right, in, false, out[0]);
}

/* --- hlo --- */

static void add_list(ax_text *text, const char *name, const ax_dims *dims, const char *end) {
  ax_text_add(text, "%s = [", name);
  for (uint32_t i = 0; i < dims->count; i++) ax_text_add(text, "%s%lld", i ? ", " : "", (long long)dims->v[i]);
  ax_text_add(text, "]%s", end);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const dot_params *p = eqn->params;
  ax_text attributes = {0};
  ax_text_add(&attributes, "dot_dimension_numbers = #stablehlo.dot<");
  add_list(&attributes, "lhs_batching_dimensions", &p->lhs_batch, ", ");
  add_list(&attributes, "rhs_batching_dimensions", &p->rhs_batch, ", ");
  add_list(&attributes, "lhs_contracting_dimensions", &p->lhs_contract, ", ");
  add_list(&attributes, "rhs_contracting_dimensions", &p->rhs_contract, ">");
  return ax_hlo_attributed(hlo, eqn, "stablehlo.dot_general", in, &attributes, out);
}

static const ax_param params[] = {
    {"lhs_contract", AX_PARAM_DIMS, offsetof(dot_params, lhs_contract)},
    {"rhs_contract", AX_PARAM_DIMS, offsetof(dot_params, rhs_contract)},
    {"lhs_batch", AX_PARAM_DIMS, offsetof(dot_params, lhs_batch)},
    {"rhs_batch", AX_PARAM_DIMS, offsetof(dot_params, rhs_batch)},
};

const ax_prim ax_prim_dot_general = {
    .name = "dot_general", .kind = AX_LOCAL, .in_count = 2, .out_count = 1,
    .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(dot_params),
    .linear = AX_LINEAR_ONE, .kinds = AX_KINDS_SUM,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = transpose, .batch = batch, .simplify = simplify, .shard = shard, .lower = lower, .hlo = hlo,
};

ax_value ax_dot_general(ax_value lhs, ax_value rhs, uint32_t contract_count, const int64_t *lhs_contract,
                        const int64_t *rhs_contract, uint32_t batch_count, const int64_t *lhs_batch, const int64_t *rhs_batch) {
  const ax_prim *prim = &ax_prim_dot_general;
  dot_params p;
  if (!ax_dims_take(prim, contract_count, lhs_contract, &p.lhs_contract) ||
      !ax_dims_take(prim, contract_count, rhs_contract, &p.rhs_contract) ||
      !ax_dims_take(prim, batch_count, lhs_batch, &p.lhs_batch) ||
      !ax_dims_take(prim, batch_count, rhs_batch, &p.rhs_batch))
    return ax_poison;
  return bind(&p, lhs, rhs);
}
