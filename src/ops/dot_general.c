/* dot_general: lhs T[..], rhs T[..] -> T[batch.., lhs's others.., rhs's others..]
     y[b.., i.., j..] = sum over c.. of lhs[b.., i.., c..] * rhs[b.., j.., c..]
   in the order of the lists, then in the order of the operand's shape.
   Parameters: lhs_contract, rhs_contract (pairs that are summed over), lhs_batch, rhs_batch (pairs that go along).
   Errors: bool or dtypes that differ; lists of unequal length; a dimension outside the rank or named twice; paired sizes that
   differ; a result of too many dimensions.
   Numerics: eval adds floats in f64 and rounds once; compiled products of narrower floats than f32 are made in f32 and rounded
   once. Integers wrap.
   Bilinear; each transpose is a dot_general of the cotangent with the other operand over the other's free dimensions.
   Compiled: a GEMM over each operand as a matrix where it lies, or copied so that it is one; a kernel, which sums as reduce_sum
   does, for integers of 16 and 64 bits, for vectors (one result dimension of 1) unless they meet many short rows, for many tiny
   matrices, and for a single term, which needs no sum. Of factors that were converted to s32, both from s8 or both from u8, the
   GEMM reads the narrow numbers. Floats of a byte are converted to bf16 for it, and integers of fewer bits to s8 or u8.
   Simplified: a transposed operand is replaced by the array before its transpose, if the order of the result's and of the
   contracted dimensions stays the same.
   Sharding: a cut of a batch or free dimension is kept; a cut of a contracted one makes a sum over its mesh axes. */
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ops/dot_general.h"
#include "prim/prims.h"

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
  const ax_dot_params *p = args->params;
  const ax_type *lhs = &args->in[0], *rhs = &args->in[1];
  if (lhs->dtype != rhs->dtype)
    return ax_error(AX_INVALID_ARGUMENT, "operand dtypes differ: %s and %s", ax_dtype_name(lhs->dtype),
                    ax_dtype_name(rhs->dtype));
  if (lhs->dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  AX_TRY(infer_side("the left operand", &p->lhs_batch, &p->lhs_contract, lhs->rank));
  AX_TRY(infer_side("the right operand", &p->rhs_batch, &p->rhs_contract, rhs->rank));
  AX_TRY(infer_pairs(args, "contracted", &p->lhs_contract, &p->rhs_contract));
  AX_TRY(infer_pairs(args, "batch", &p->lhs_batch, &p->rhs_batch));
  ax_dot_side left = ax_dot_lhs_side(p, lhs->rank), right = ax_dot_rhs_side(p, rhs->rank);
  int64_t dims[2 * AX_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < left.batch.count; i++) dims[rank++] = lhs->dims[left.batch.v[i]];
  for (uint32_t i = 0; i < left.free.count; i++) dims[rank++] = lhs->dims[left.free.v[i]];
  for (uint32_t i = 0; i < right.free.count; i++) dims[rank++] = rhs->dims[right.free.v[i]];
  if (rank > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "the result has %u dimensions, above %d", rank, AX_MAX_RANK);
  args->out[0] = ax_array_type(lhs->dtype, AX_LIST(rank, dims));
  return AX_OK;
}

/* --- eval --- */

/* Strides of an operand along the result's dimensions (0 where it has none) and along the contracted ones. */
typedef struct walk {
  int64_t outer[AX_MAX_RANK], inner[AX_MAX_RANK];
} walk;

static walk walk_of(const ax_tensor *x, const ax_dot_side *s, uint32_t free_at) {
  walk w = {0};
  int64_t strides[AX_MAX_RANK];
  ax_dense_strides(x->rank, x->dims, strides);
  for (uint32_t i = 0; i < s->batch.count; i++) w.outer[i] = strides[s->batch.v[i]];
  for (uint32_t i = 0; i < s->free.count; i++) w.outer[free_at + i] = strides[s->free.v[i]];
  for (uint32_t i = 0; i < s->contract.count; i++) w.inner[i] = strides[s->contract.v[i]];
  return w;
}

/* Numbers of an operand, `lines` of `length` each along the contracted dimensions, the first at `at[0]`, line k where the result's
   element `step` k further is. In blocks of `width` lines, whose numbers stand beside one another; lines that fill up the last
   block are 0. */
static void pack(const ax_tensor *x, const ax_tensor *out, const walk *w, const int64_t *inner, uint32_t inner_rank, int64_t first,
                 int64_t step, int64_t lines, int64_t length, int64_t width, ax_number *to) {
  for (int64_t k = 0; k < lines; k++) {
    int64_t at = ax_strided_at(first + k * step, out->rank, out->dims, w->outer);
    ax_number *line = to + k / width * width * length + k % width;
    for (int64_t j = 0; j < length; j++)
      line[j * width] = ax_number_load(x->dtype, x->data, at + ax_strided_at(j, inner_rank, inner, w->inner));
  }
}

enum { beside = 8 }; /* columns that are summed side by side, each in order */

static void sum_floats(const ax_number *row, const ax_number *columns, int64_t length, ax_number *total) {
  double sum[beside] = {0};
  for (int64_t j = 0; j < length; j++)
    for (int c = 0; c < beside; c++) sum[c] += row[j].f * columns[j * beside + c].f;
  for (int c = 0; c < beside; c++) total[c].f = sum[c];
}

static void sum_complex(const ax_number *row, const ax_number *columns, int64_t length, ax_number *total) {
  for (int c = 0; c < beside; c++) total[c] = (ax_number){.f = 0};
  for (int64_t j = 0; j < length; j++)
    for (int c = 0; c < beside; c++) {
      const ax_number x = row[j], y = columns[j * beside + c];
      total[c].f += x.f * y.f - x.imag * y.imag;
      total[c].imag += x.f * y.imag + x.imag * y.f;
    }
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
  const ax_dot_params *p = args->eqn->params;
  const ax_tensor *lhs = args->in[0], *rhs = args->in[1], *out = args->out[0];
  ax_dot_side left = ax_dot_lhs_side(p, lhs->rank), right = ax_dot_rhs_side(p, rhs->rank);
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
        (ax_is_complex(lhs->dtype) ? sum_complex : ax_rounds(lhs->dtype) ? sum_floats : sum_integers)(row, packed + c * length, length, total);
        for (int64_t k = 0; k < beside && c + k < columns; k++) ax_number_store(out->dtype, out->data, first + c + k, total[k]);
      }
    }
  }
  ax_free(row);
  ax_free(packed);
  return status;
}

/* --- jvp --- */

static ax_value bind(const ax_dot_params *p, ax_value lhs, ax_value rhs) {
  ax_value in[] = {lhs, rhs};
  return ax_bind1(&ax_prim_dot_general, p, in, 2);
}

static void jvp(const ax_jvp_args *args) {
  const ax_dot_params *p = args->eqn->params;
  ax_value left = args->tangent_in[0], right = args->tangent_in[1];
  args->out[0] = bind(p, args->in[0], args->in[1]);
  const ax_value by_right = ax_is_zero(right) ? ax_zero : bind(p, args->in[0], right);
  args->tangent_out[0] = ax_add_any(ax_is_zero(left) ? ax_zero : bind(p, left, args->in[1]), by_right);
}

/* --- transpose --- */

/* x's cotangent, x one side and y the other: the cotangent times y over y's free dimensions, which lie at y_at in it, has the
   dimensions batch.., x's free.., then y's contracted ones in y's order; these go back to x's places. */
static ax_value transpose_side(ax_value cotangent, const ax_dot_side *x, ax_value y, const ax_dot_side *y_side, uint32_t y_at) {
  ax_dot_params p = {.rhs_contract = y_side->free, .rhs_batch = y_side->batch};
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
  const ax_dot_params *p = args->eqn->params;
  ax_dot_side left = ax_dot_lhs_side(p, args->in_types[0].rank), right = ax_dot_rhs_side(p, args->in_types[1].rank);
  uint32_t batch = left.batch.count;
  if (args->linear[0])
    args->out[0] = transpose_side(args->cotangent[0], &left, args->in[1], &right, batch + left.free.count);
  if (args->linear[1]) args->out[1] = transpose_side(args->cotangent[0], &right, args->in[0], &left, batch);
}

/* --- batch: a dimension of both is one more batch dimension, in front; of one, one more free dimension --- */

/* How many free dimensions of this side stand before `dim`. */
static int free_before(const ax_dot_side *s, int dim) {
  int before = 0;
  for (uint32_t i = 0; i < s->free.count; i++) before += s->free.v[i] < dim;
  return before;
}

static void batch(const ax_batch_args *args) {
  const ax_prim *prim = args->eqn->prim;
  ax_dot_params p = *(const ax_dot_params *)args->eqn->params;
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
    ax_dot_side left = ax_dot_lhs_side(&p, ax_typeof(args->in[0]).rank), right = ax_dot_rhs_side(&p, ax_typeof(args->in[1]).rank);
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

/* A product reads its factors as they lie, so a transposed one need not be made. Other operations that read it may make it. */
static void simplify_side(const ax_simplify_args *args, uint32_t k) {
  const ax_eqn *inner = ax_simplify_operand(args, k, &ax_prim_transpose);
  ax_dot_params p = *(const ax_dot_params *)args->eqn->params;
  if (inner == NULL || *args->failed) return;
  const ax_dims *permutation = ax_transposed_dims(inner);
  const ax_dot_side of = k == 0 ? ax_dot_lhs_side(&p, permutation->count) : ax_dot_rhs_side(&p, permutation->count);
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
  const ax_dot_params *p = args->eqn->params;
  const ax_type *lhs = &args->types[args->eqn->in[0]], *rhs = &args->types[args->eqn->in[1]];
  ax_dot_side left = ax_dot_lhs_side(p, lhs->rank), right = ax_dot_rhs_side(p, rhs->rank);
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

/* --- StableHLO --- */

static const ax_param params[] = {
    {"lhs_contract", AX_PARAM_DIMS, offsetof(ax_dot_params, lhs_contract)},
    {"rhs_contract", AX_PARAM_DIMS, offsetof(ax_dot_params, rhs_contract)},
    {"lhs_batch", AX_PARAM_DIMS, offsetof(ax_dot_params, lhs_batch)},
    {"rhs_batch", AX_PARAM_DIMS, offsetof(ax_dot_params, rhs_batch)},
};

/* The module says the dtype in which products are added: narrower operands become that first. Of booleans, `and` and `or` take the
   places of product and sum. */
static ax_value product_as(const ax_dot_params *p, ax_value lhs, ax_value rhs, ax_dtype wanted) {
  if (wanted == AX_BOOL) {
    const ax_value left = ax_convert_element_type(lhs, AX_S32);
    const ax_value count = bind(p, left, ax_convert_element_type(rhs, AX_S32));
    return ax_ne(count, ax_zero_like(count));
  }
  const ax_dtype left = ax_typeof(lhs).dtype, right = ax_typeof(rhs).dtype;
  if (left == right && left != AX_BOOL && !ax_is_multiplied_as(left, wanted)) return ax_convert_element_type(bind(p, lhs, rhs), wanted);
  const ax_value wide = ax_convert_element_type(lhs, wanted);
  return bind(p, wide, ax_convert_element_type(rhs, wanted));
}

/* It does more than the form: the result's dtype is that of the sums. */
static ax_status read(const ax_hlo_read_args *args) {
  ax_dot_params p = {0};
  if (args->op->operand_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes 2 operands, and here are %u", args->op->operand_count);
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_dot_general, &p));
  args->out[0] = product_as(&p, args->in[0], args->in[1], args->out_types[0].dtype);
  return AX_OK;
}

static const ax_hlo_form form = {.op = "stablehlo.dot_general", .precise = true,
                                 .fields = AX_HLO_FIELDS({"dot_dimension_numbers.lhs_batching_dimensions", "lhs_batch"},
                                                         {"dot_dimension_numbers.rhs_batching_dimensions", "rhs_batch"},
                                                         {"dot_dimension_numbers.lhs_contracting_dimensions", "lhs_contract"},
                                                         {"dot_dimension_numbers.rhs_contracting_dimensions", "rhs_contract"})};
static const ax_hlo_reader readers[] = {{"stablehlo.dot_general", read}, {0}};

const ax_prim ax_prim_dot_general = {
    .name = "dot_general", .kind = AX_LOCAL, .in_count = 2, .out_count = 1,
    AX_PARAMS(params, ax_dot_params),
    .linear = AX_LINEAR_ONE, .kinds = AX_KINDS_SUM,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = transpose, .batch = batch, .simplify = simplify, .shard = shard, .lower = ax_dot_lower, .complex = ax_complex_product, .form = &form,
    .reads = readers, .hlo = ax_hlo_by_form,
};

static bool take_list(uint32_t count, const int64_t *list, ax_dims *out) {
  ax_status status = ax_list_length("dot_general", "dimensions", count, &count);
  if (status != AX_OK) ax_fail(status);
  return !ax_failed() && ax_dims_take(&ax_prim_dot_general, count, list, out);
}

ax_value (ax_dot_general)(ax_value lhs, ax_value rhs, uint32_t lhs_contract_count, const int64_t *lhs_contract,
                          uint32_t rhs_contract_count, const int64_t *rhs_contract, uint32_t lhs_batch_count,
                          const int64_t *lhs_batch, uint32_t rhs_batch_count, const int64_t *rhs_batch) {
  const ax_prim *prim = &ax_prim_dot_general;
  ax_dot_params p;
  if (!take_list(lhs_contract_count, lhs_contract, &p.lhs_contract) ||
      !take_list(rhs_contract_count, rhs_contract, &p.rhs_contract) || !take_list(lhs_batch_count, lhs_batch, &p.lhs_batch) ||
      !take_list(rhs_batch_count, rhs_batch, &p.rhs_batch) ||
      !ax_list_fits(prim->name, "lhs gives", "dimension to contract", rhs_contract_count, p.lhs_contract.count) ||
      !ax_list_fits(prim->name, "lhs gives", "batch dimension", rhs_batch_count, p.lhs_batch.count))
    return ax_poison;
  return bind(&p, lhs, rhs);
}
