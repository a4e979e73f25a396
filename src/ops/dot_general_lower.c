/* Lowers dot_general: to GEMMs over operands as they lie or copied into matrices, or to kernels that sum. */
#include <string.h>

#include "ops/dot_general.h"
#include "ops/slice.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "product/product.h"

/* An operand as matrices: element (row, column) of matrix b lies at offset + b . batch_stride + row * ld + column, or, transposed,
   + column * ld + row. */
typedef struct matrix {
  uint32_t buffer;
  int64_t offset;
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

static bool as_matrix(const ax_type *type, const int64_t *strides, const ax_dims *batch, const ax_dims *rows, const ax_dims *columns,
                      matrix *out) {
  int64_t row_stride, column_stride;
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
  ax_type from = *ax_lower_type(lower, src), to = from;
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

/* Operand k, if it is a slice of another value, as matrices that lie in that: then nothing reads the slice, which is dropped. */
static bool in_whole(const ax_lower *lower, const ax_eqn *eqn, uint32_t k, const ax_dims *batch, const ax_dims *rows, const ax_dims *columns,
                     matrix *out) {
  const ax_type *part = &lower->program->types[eqn->in[k]];
  int64_t strides[AX_MAX_RANK];
  uint32_t whole;
  if (!ax_slice_place(lower, eqn, k, &whole, strides, &out->offset)) return false;
  if (!as_matrix(part, strides, batch, rows, columns, out)) return false;
  out->buffer = lower->map[whole];
  return true;
}

/* Operand k as matrices: where it lies, or copied into the order batch, rows, columns. buffer: what it was made of the operand's. */
static ax_status lower_matrix(ax_lower *lower, const ax_eqn *eqn, uint32_t k, uint32_t buffer, const ax_dims *batch, const ax_dims *rows,
                              const ax_dims *columns, matrix *out) {
  const ax_axis_set axes = lower->differs[eqn->in[k]];
  ax_type type = *ax_lower_type(lower, buffer);
  int64_t strides[AX_MAX_RANK];
  *out = (matrix){.buffer = buffer};
  if (buffer == lower->map[eqn->in[k]] && in_whole(lower, eqn, k, batch, rows, columns, out)) return AX_OK;
  *out = (matrix){.buffer = buffer};
  ax_dense_strides(type.rank, type.dims, strides);
  if (as_matrix(&type, strides, batch, rows, columns, out)) return AX_OK;
  ax_dims order = joined(batch, rows, columns);
  AX_TRY(lower_permuted(lower, buffer, axes, &order, &out->buffer));
  ax_dims first = numbers(0, batch->count), second = numbers(batch->count, rows->count);
  ax_dims third = numbers(batch->count + rows->count, columns->count);
  type = *ax_lower_type(lower, out->buffer);
  ax_dense_strides(type.rank, type.dims, strides);
  return as_matrix(&type, strides, &first, &second, &third, out) ? AX_OK : ax_error(AX_INTERNAL, "a copied operand is no matrix");
}

/* Whether threads cannot share the product by its results (run/gemm.c), which are a single tile. */
static bool is_one_tile(const ax_gemm *gemm) {
  enum { tile_rows = 28, tile_columns = 32 };
  return gemm->m < 2 * tile_rows && gemm->n < 2 * tile_columns;
}

/* The number of blocks that k is cut into. It is 1 unless k is so long that one sum over it would be inexact, or the results alone
   give threads too few parts. The blocks' products are always small compared with the operands. */
static int64_t contracted_blocks(const ax_gemm *gemm) {
  enum { least_size = 2048, long_size = 1 << 15, few_results = 1 << 18, most_blocks = 32, block_work = 1 << 20 };
  double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->k, least = 16 * m * n / (m + n);
  if (gemm->batch_rank > 0) return 1;
  int64_t most = (int64_t)(k / (least < least_size ? least_size : least)), wanted = gemm->k / long_size;
  if (wanted < most_blocks && m * n < few_results && m * n * k > 1 << 25) wanted = most_blocks;
  if (is_one_tile(gemm) && wanted < most_blocks && m * n * k >= 2 * block_work) {
    const int64_t worth = (int64_t)(m * n * k / block_work), blocks = worth < most_blocks ? worth : most_blocks;
    wanted = wanted < blocks ? blocks : wanted;
  }
  if (wanted > most) wanted = most;
  for (int64_t count = wanted; count >= 2 && count > wanted / 2; count--)
    if (gemm->k % count == 0) return count;
  return wanted;
}

/* Computes a batch of products, one for each block of k and one for the remainder if there is one, and then their sum. */
static ax_status lower_blocks(ax_lower *lower, ax_gemm gemm, int64_t blocks, uint32_t out) {
  const ax_buffer *result = ax_lower_get(lower, out);
  int64_t size = gemm.k / blocks, rest = gemm.k - size * blocks, dims[AX_MAX_RANK + 1] = {blocks + (rest > 0)};
  uint32_t rank = result->type.rank, parts;
  ax_type type = result->type;
  ax_position from[AX_MAX_RANK + 1], to[AX_MAX_RANK];
  memcpy(dims + 1, type.dims, rank * sizeof dims[0]);
  type = ax_array_type(type.dtype, AX_LIST(rank + 1, dims));
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

static ax_gemm product_of(const ax_lower *lower, const matrix *a, const matrix *b, const ax_dims *batch, const int64_t *lhs_dims) {
  ax_gemm gemm = {.dtype = ax_lower_type(lower, a->buffer)->dtype,
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
                  .a_offset = a->offset,
                  .b_offset = b->offset};
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
  return gemm;
}

static ax_status lower_product(ax_lower *lower, const ax_gemm *gemm, int64_t blocks) {
  if (blocks > 1 && ax_lower_type(lower, gemm->c)->rank < AX_MAX_RANK) return lower_blocks(lower, *gemm, blocks, gemm->c);
  return ax_lower_gemm(lower, gemm);
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
  if (!ax_product_result(ax_multiplied_as(type->dtype), &made) || made == type->dtype) return AX_OK;
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
static ax_status lower_products(ax_lower *lower, const ax_eqn *eqn, ax_dot_side left, ax_dot_side right, const uint32_t *in,
                                bool swapped, uint32_t out) {
  ax_type type = lower->program->types[eqn->out];
  const uint32_t first = swapped, second = !swapped;
  uint32_t product = out;
  matrix a, b;
  sort_pairs(&left.contract, &right.contract);
  AX_TRY(lower_matrix(lower, eqn, first, in[first], &left.batch, &left.free, &left.contract, &a));
  AX_TRY(lower_matrix(lower, eqn, second, in[second], &right.batch, &right.contract, &right.free, &b));
  ax_gemm gemm = product_of(lower, &a, &b, &left.batch, lower->program->types[eqn->in[0]].dims);
  const int64_t blocks = contracted_blocks(&gemm);
  gemm.rounds = blocks <= 1 && type.dtype == gemm.dtype && ax_product_rounds(gemm.dtype, gemm.k); /* as its sums are made */
  if (!gemm.rounds) AX_TRY(product_buffer(lower, eqn, &type, &product));
  gemm.c = product;
  AX_TRY(lower_product(lower, &gemm, blocks));
  return narrow_product(lower, &type, product, out);
}

/* Finds the loop of each dimension of an operand: the loops are the result's dimensions, then the contracted ones. */
static void loop_places(const ax_dot_side *s, uint32_t free_at, uint32_t contract_at, ax_position *at) {
  const ax_position here = {.coef = 1, .dynamic = AX_NONE};
  for (uint32_t i = 0; i < s->batch.count; i++) at[s->batch.v[i]] = here, at[s->batch.v[i]].dim = (int)i;
  for (uint32_t i = 0; i < s->free.count; i++) at[s->free.v[i]] = here, at[s->free.v[i]].dim = (int)(free_at + i);
  for (uint32_t i = 0; i < s->contract.count; i++)
    at[s->contract.v[i]] = here, at[s->contract.v[i]].dim = (int)(contract_at + i);
}

/* Converted to what it is multiplied in. */
static ax_ex load_factor(ax_lower *lower, uint32_t buffer, const ax_position *at, ax_dtype dtype) {
  ax_ex x = ax_lower_load(lower, buffer, at);
  if (ax_lower_type(lower, buffer)->dtype == dtype) return x;
  return ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, dtype, x, AX_NONE, AX_NONE);
}

/* A product with one term is no reduction, so that other kernels may absorb it. It adds 0 as a sum does, so -0.0 becomes 0.0. */
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
  if (ax_rounds(type->dtype))
    value = ax_kernel_op(kernel, AX_SCALAR_ADD, type->dtype, value, ax_kernel_const(kernel, type->dtype, 0), AX_NONE);
  ax_lower_store(lower, product, to, value, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* Lowers to one kernel: a sum of products over the contracted dimensions. */
static ax_status lower_loops(ax_lower *lower, const ax_eqn *eqn, const ax_dot_side *left, const ax_dot_side *right,
                             const uint32_t *in, uint32_t out) {
  const ax_type *lhs = &lower->program->types[eqn->in[0]], *type = &lower->program->types[eqn->out];
  ax_position left_at[AX_MAX_RANK], right_at[AX_MAX_RANK], to[AX_MAX_RANK];
  int64_t dims[2 * AX_MAX_RANK];
  uint32_t summed = left->contract.count, product = out;
  ax_type wide = *type;
  if (ax_rounds(type->dtype)) AX_TRY(product_buffer(lower, eqn, &wide, &product));
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

/* A matrix of many short rows, times a vector: loops would take each row by itself, unless rows are so short that they pick numbers
   of several, or so many that loops read several column by column (jit/emit/columns.c). */
static bool has_short_rows(const ax_type *matrix, const ax_dot_side *s) {
  enum { short_row = 32, many = 1 << 16, row_of_columns = 16, many_rows = 1 << 13 };
  int64_t k = listed_elems(matrix, &s->contract), picked = ax_dtype_bytes(matrix->dtype) == 8 ? 4 : 8;
  ax_dtype made;
  if (k <= row_of_columns && ax_type_elems(matrix) / k >= many_rows) return false;
  return s->batch.count == 0 && s->contract.count == 1 && s->contract.v[0] + 1 == matrix->rank && k > picked && k <= short_row &&
         ax_type_elems(matrix) >= many && ax_product_result(matrix->dtype, &made) && made == matrix->dtype;
}

/* A matrix of a few rows and columns, as the gate of a quantum computer is, times many columns; or many rows times it, as points
   are turned (plan/unroll.c). Panels would be mostly empty, and what a kernel is fused with would pass through memory. A matrix that
   begins with the dimension that is summed over is one whose columns are rows: a GEMM takes it as it lies, and registers of a kernel
   would have to be turned. */
static bool is_few_by_few(const ax_dot_side *left, ax_dtype dtype, int64_t m, int64_t n, int64_t k) {
  enum { few = 4, most_terms = 6, most_columns = 8, most_in_all = 24, least_results = 1024 };
  if (k <= few && m <= few) return true;
  const bool by_rows = left->contract.count == 1 && left->contract.v[0] > 0;
  const bool is_short = dtype == AX_F32 && k <= most_terms && n <= most_columns && k * n <= most_in_all && m * n >= least_results;
  return by_rows && ((k <= few && n <= few) || is_short);
}

/* Says whether a kernel is faster than a GEMM: for vectors, which are one long row, for many tiny matrices, and for one so tiny
   that calling for its product takes longer than making it, as in a loop. */
static bool suits_loops(const ax_type *lhs, const ax_type *rhs, const ax_dot_side *left, const ax_dot_side *right) {
  enum { tiny = 512, tiny_alone = 1024 };
  int64_t m = listed_elems(lhs, &left->free), n = listed_elems(rhs, &right->free), k = listed_elems(lhs, &left->contract);
  ax_dtype made;
  if (!ax_product_result(ax_multiplied_as(lhs->dtype), &made) || m == 1 || n == 1 || k == 1) return true;
  return is_few_by_few(left, lhs->dtype, m, n, k) || m * n * k <= (listed_elems(lhs, &left->batch) > 1 ? tiny : tiny_alone);
}

/* Floats of a byte are multiplied as bf16, and integers of fewer bits as s8 or u8, which have all their numbers. */
static ax_status lower_factor(ax_lower *lower, uint32_t buffer, uint32_t *out) {
  const ax_buffer *from = ax_lower_get(lower, buffer);
  ax_type type = from->type;
  ax_position at[AX_MAX_RANK];
  type.dtype = ax_multiplied_as(type.dtype);
  *out = buffer;
  if (type.dtype == from->type.dtype) return AX_OK;
  AX_TRY(ax_lower_buffer(lower, &type, from->axes, out));
  ax_at_identity(at, type.rank);
  return ax_lower_move(lower, type.rank, type.dims, *out, at, buffer, at);
}

/* Returns the buffers of factors that were converted to s32, both from s8 or both from u8: the product of the narrow numbers is the
   same. Conversions that nothing else reads are dropped (plan/fuse.c). Returns `in` if the factors are others. */
static const uint32_t *narrow_factors(const ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *narrow) {
  ax_dtype dtypes[2];
  if (lower->program->types[eqn->out].dtype != AX_S32) return in;
  for (uint32_t k = 0; k < 2; k++) {
    const ax_eqn *converted = ax_lower_operand(lower, eqn, k, &ax_prim_convert_element_type);
    if (converted == NULL) return in;
    narrow[k] = lower->map[converted->in[0]];
    dtypes[k] = ax_multiplied_as(lower->program->types[converted->in[0]].dtype);
  }
  return dtypes[0] == dtypes[1] && (dtypes[0] == AX_S8 || dtypes[0] == AX_U8) ? narrow : in;
}

ax_status ax_dot_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *lhs = &lower->program->types[eqn->in[0]], *rhs = &lower->program->types[eqn->in[1]];
  ax_dot_side left = ax_dot_lhs_side(eqn->params, lhs->rank), right = ax_dot_rhs_side(eqn->params, rhs->rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  if (ax_type_elems(lhs) == 0 || ax_type_elems(rhs) == 0) return ax_lower_fill(lower, out[0], (ax_number){0});
  bool one_row = listed_elems(lhs, &left.free) == 1, one_column = listed_elems(rhs, &right.free) == 1;
  if (one_column && has_short_rows(lhs, &left)) return lower_products(lower, eqn, left, right, in, false, out[0]);
  if (one_row && has_short_rows(rhs, &right)) return lower_products(lower, eqn, right, left, in, true, out[0]);
  if (suits_loops(lhs, rhs, &left, &right)) return lower_loops(lower, eqn, &left, &right, in, out[0]);
  uint32_t narrow[2], factors[2];
  const uint32_t *from = narrow_factors(lower, eqn, in, narrow);
  for (uint32_t k = 0; k < 2; k++) AX_TRY(lower_factor(lower, from[k], &factors[k]));
  return lower_products(lower, eqn, left, right, factors, false, out[0]);
}
