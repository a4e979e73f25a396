/* slice: T[d..] -> T[n..]         y[i..] = x[start + i * stride ..],  n = ceil((limit - start) / stride)
   Parameters: start_indices, limit_indices, strides; one entry a dimension.
   Errors: a range outside the operand or reversed; a stride below 1.
   Linear; the transpose pads with zeros outside and between. A part that lies in one piece is the operand's memory. */
#include "hlo/hlo.h"
#include "ops/slice.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct slice_params {
  ax_dims start_indices, limit_indices, strides;
} slice_params;

static ax_status infer(const ax_infer_args *args) {
  const slice_params *p = args->params;
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_one_each("start_indices", &p->start_indices, x->rank));
  AX_TRY(ax_infer_one_each("limit_indices", &p->limit_indices, x->rank));
  AX_TRY(ax_infer_one_each("strides", &p->strides, x->rank));
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  for (uint32_t d = 0; d < x->rank; d++) {
    int64_t start = p->start_indices.v[d], limit = p->limit_indices.v[d];
    if (start < 0 || limit < start || limit > x->dims[d])
      return ax_error(AX_INVALID_ARGUMENT, "%lld to %lld is not a range of dimension %u, of %lld", (long long)start,
                      (long long)limit, d, (long long)x->dims[d]);
    if (p->strides.v[d] < 1)
      return ax_error(AX_INVALID_ARGUMENT, "the stride of dimension %u is %lld: at least 1 is needed", d,
                      (long long)p->strides.v[d]);
    args->out[0].dims[d] = limit == start ? 0 : (limit - start - 1) / p->strides.v[d] + 1;
  }
  return AX_OK;
}

/* The stride; one that leads beyond the operand is never taken, and made small enough to compute with. */
static int64_t step_of(const slice_params *p, uint32_t d, const int64_t *x_dims) {
  int64_t most = x_dims[d] > 0 ? x_dims[d] : 1;
  return p->strides.v[d] < most ? p->strides.v[d] : most;
}

static ax_status eval(const ax_eval_args *args) {
  const slice_params *p = args->eqn->params;
  const ax_tensor *out = args->out[0];
  ax_strided to = ax_strided_dense(out), from = ax_strided_dense(args->in[0]);
  for (uint32_t d = 0; d < out->rank; d++) {
    from.offset += p->start_indices.v[d] * from.strides[d];
    from.strides[d] *= step_of(p, d, args->in[0]->dims);
  }
  ax_strided_copy(out->rank, out->dims, ax_dtype_bytes(out->dtype), &to, &from);
  return AX_OK;
}

/* --- simplify --- */

/* A slice of a slice is one. */
static void of_slice(const ax_simplify_args *args, const ax_eqn *inner) {
  const slice_params *first = inner->params;
  const ax_dims *starts = &first->start_indices;
  slice_params p = *(const slice_params *)args->eqn->params;
  const ax_type *x = &args->types[inner->in[0]], *y = &args->types[args->eqn->out];
  for (uint32_t d = 0; d < y->rank; d++) {
    const int64_t by = step_of(first, d, x->dims), step = step_of(&p, d, args->types[inner->out].dims), start = p.start_indices.v[d];
    p.start_indices.v[d] = starts->v[d] + (y->dims[d] > 0 ? start * by : 0);
    p.limit_indices.v[d] = p.start_indices.v[d] + (y->dims[d] > 0 ? (y->dims[d] - 1) * by * step + 1 : 0);
    p.strides.v[d] = y->dims[d] > 1 ? by * step : 1;
  }
  ax_simplify_replace(args, 0, inner->in[0], &p);
}

/* A slice of what one operand gave to a concatenation is a slice of the operand, if that spreads as the whole. */
static void of_concatenation(const ax_simplify_args *args, const ax_eqn *inner) {
  const uint32_t d = (uint32_t)ax_concatenated_dimension(inner);
  slice_params p = *(const slice_params *)args->eqn->params;
  int64_t begin = 0;
  for (uint32_t k = 0; k < inner->in_count; k++) {
    const ax_type *operand = &args->types[inner->in[k]];
    const int64_t end = begin + operand->dims[d];
    if (p.start_indices.v[d] >= begin && p.limit_indices.v[d] <= end && end > begin) {
      p.start_indices.v[d] -= begin, p.limit_indices.v[d] -= begin;
      if (ax_spread_equal(&operand->spread, &args->types[inner->out].spread)) ax_simplify_replace(args, 0, inner->in[k], &p);
      return;
    }
    begin = end;
  }
}

/* All of x is x. */
static void simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_concatenate);
  if (inner != NULL) of_concatenation(args, inner);
  inner = ax_simplify_operand(args, 0, &ax_prim_slice);
  if (inner != NULL) of_slice(args, inner);
  const uint32_t x = args->eqn->in[0];
  if (ax_same_shape(&args->types[x], &args->types[args->eqn->out])) args->same[0] = x;
}

/* --- rewrite --- */

/* A small part of a transpose is the transpose of a part. So what takes columns of a matrix by its transpose does not need that. */
static bool rewrite(const ax_rewrite_args *args) {
  enum { small = 8 };
  const ax_eqn *eqn = args->eqn, *inner = args->made_by[eqn->in[0]];
  const slice_params *p = eqn->params;
  if (inner == NULL || inner->prim != &ax_prim_transpose) return false;
  const ax_type *x = &args->types[inner->in[0]];
  if (ax_type_elems(&args->types[eqn->out]) > ax_type_elems(x) / small) return false;
  if (args->values == NULL) return true;
  const ax_dims *permutation = ax_transposed_dims(inner);
  int64_t start[AX_MAX_RANK], limit[AX_MAX_RANK], strides[AX_MAX_RANK];
  for (uint32_t d = 0; d < x->rank; d++) {
    const int64_t to = permutation->v[d];
    start[to] = p->start_indices.v[d], limit[to] = p->limit_indices.v[d], strides[to] = p->strides.v[d];
  }
  args->out[0] = (ax_transpose)(ax_slice(args->values[inner->in[0]], start, limit, strides), x->rank, permutation->v);
  return true;
}

/* --- part --- */

static bool part(const ax_part_args *args) {
  const slice_params *p = args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]];
  int64_t start[AX_MAX_RANK] = {0}, limit[AX_MAX_RANK], strides[AX_MAX_RANK];
  bool all = true;
  for (uint32_t d = 0; d < x->rank; d++) {
    strides[d] = step_of(p, d, x->dims);
    args->in[0].low[d] = p->start_indices.v[d] + args->box->low[d] * strides[d];
    args->in[0].high[d] = p->start_indices.v[d] + (args->box->high[d] - 1) * strides[d] + 1;
    limit[d] = args->in[0].high[d] - args->in[0].low[d];
    all = all && (strides[d] == 1 || limit[d] == 1);
  }
  if (args->values != NULL) args->out[0] = all ? args->values[0] : ax_slice(args->values[0], start, limit, strides);
  return true;
}

static bool has_steps(const slice_params *p, const ax_type *x, const ax_type *y) {
  for (uint32_t d = 0; d < x->rank; d++)
    if (y->dims[d] > 1 && step_of(p, d, x->dims) != 1) return true;
  return false;
}

/* Adds the cotangent to its part of the sum. */
static void add_to_sum(const ax_transpose_args *args, const ax_type *y) {
  const slice_params *p = args->eqn->params;
  ax_value starts[AX_MAX_RANK];
  int64_t limit[AX_MAX_RANK];
  for (uint32_t d = 0; d < y->rank; d++) {
    starts[d] = ax_full_i64(AX_S64, AX_DIMS(), p->start_indices.v[d]);
    limit[d] = p->start_indices.v[d] + y->dims[d];
  }
  ax_value part = ax_add_any(ax_slice(args->sum, p->start_indices.v, limit, NULL), args->cotangent[0]);
  args->out[0] = ax_dynamic_update_slice(args->sum, part, starts);
  *args->summed = true;
}

static void transpose(const ax_transpose_args *args) {
  const slice_params *p = args->eqn->params;
  const ax_type *x = &args->in_types[0];
  ax_type y = ax_typeof(args->cotangent[0]);
  if (!ax_is_zero(args->sum) && !has_steps(p, x, &y)) {
    add_to_sum(args, &y);
    return;
  }
  int64_t high[AX_MAX_RANK], interior[AX_MAX_RANK];
  for (uint32_t d = 0; d < y.rank; d++) {
    int64_t step = step_of(p, d, x->dims), used = y.dims[d] > 0 ? 1 + (y.dims[d] - 1) * step : 0;
    high[d] = x->dims[d] - p->start_indices.v[d] - used;
    interior[d] = step - 1;
  }
  args->out[0] = ax_pad(args->cotangent[0], ax_zero_like(args->cotangent[0]), p->start_indices.v, high, interior);
}

static void batch(const ax_batch_args *args) {
  slice_params p = *(const slice_params *)args->eqn->params;
  const ax_prim *prim = args->eqn->prim;
  uint32_t at = (uint32_t)args->in_dim[0];
  if (!ax_dims_insert(prim, &p.start_indices, at, 0) || !ax_dims_insert(prim, &p.limit_indices, at, args->size) ||
      !ax_dims_insert(prim, &p.strides, at, 1))
    return;
  args->out[0] = ax_bind1(prim, &p, args->in, 1);
  args->out_dim[0] = args->in_dim[0];
}

/* One piece: a range of one dimension, whole dimensions inside it, single elements outside it. */
static bool is_contiguous(const slice_params *p, const ax_type *x, const ax_type *y) {
  uint32_t d = 0;
  while (d < y->rank && y->dims[d] == 1) d++;
  if (d < y->rank && step_of(p, d, x->dims) != 1) return false;
  for (d++; d < y->rank; d++)
    if (y->dims[d] != x->dims[d]) return false;
  return true;
}

/* Each index of a dimension that is not taken whole reads one element of the operand. */
static void shard(const ax_shard_args *args) {
  const slice_params *p = args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]], *y = &args->types[args->eqn->out];
  for (uint32_t d = 0; d < x->rank; d++) {
    bool whole = p->start_indices.v[d] == 0 && p->limit_indices.v[d] == x->dims[d] && p->strides.v[d] == 1;
    if (!whole && y->dims[d] == 0) continue;
    uint32_t factor = ax_factor(args, y->dims[d], AX_FACTOR_ALONG);
    if (whole) ax_factor_of(&args->in[0], d, factor);
    else ax_factor_reaches(&args->in[0], d, factor, (ax_reach){p->start_indices.v[d], step_of(p, d, x->dims), 1, 1, AX_FILL_ANY});
    ax_factor_of(&args->out[0], d, factor);
  }
}

static void block(const ax_block_args *args) {
  slice_params p = *(const slice_params *)args->eqn->params;
  const ax_type x = ax_typeof(args->in[0]);
  bool whole = true;
  for (uint32_t d = 0; d < p.limit_indices.count; d++) {
    if (args->specs[0].count[d] > 0) p.start_indices.v[d] = 0, p.limit_indices.v[d] = x.dims[d];
    if (x.dims[d] == args->blocks[0].dims[d]) p.strides.v[d] = 1; /* what lies between the elements was left out before they came */
    whole = whole && p.start_indices.v[d] == 0 && p.limit_indices.v[d] == x.dims[d] && p.strides.v[d] == 1;
  }
  args->out[0] = whole ? args->in[0] : ax_bind1(args->eqn->prim, &p, args->in, 1);
}

bool ax_slice_place(const ax_lower *lower, const ax_eqn *eqn, uint32_t k, uint32_t *whole, int64_t *strides, int64_t *offset) {
  const ax_eqn *made = ax_lower_operand(lower, eqn, k, &ax_prim_slice);
  if (made == NULL) return false;
  const slice_params *p = made->params;
  const ax_type *x = &lower->program->types[made->in[0]];
  *whole = made->in[0];
  *offset = 0;
  ax_dense_strides(x->rank, x->dims, strides);
  for (uint32_t d = 0; d < x->rank; d++) {
    if (p->strides.v[d] != 1) return false;
    *offset += p->start_indices.v[d] * strides[d];
  }
  return true;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const slice_params *p = eqn->params;
  const ax_type *x = &lower->program->types[eqn->in[0]], *y = &lower->program->types[eqn->out];
  if (is_contiguous(p, x, y)) {
    int64_t strides[AX_MAX_RANK], offset = 0;
    ax_dense_strides(x->rank, x->dims, strides);
    for (uint32_t d = 0; d < x->rank; d++) offset += p->start_indices.v[d] * strides[d];
    return ax_lower_as_view(lower, eqn, in[0], ax_type_elems(y) > 0 ? offset : 0, &out[0]);
  }
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  ax_at_identity(to, y->rank);
  for (uint32_t d = 0; d < y->rank; d++)
    from[d] =
        (ax_position){.dim = (int)d, .coef = step_of(p, d, x->dims), .offset = p->start_indices.v[d], .dynamic = AX_NONE};
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return ax_lower_move(lower, y->rank, y->dims, out[0], to, in[0], from);
}

/* Strides are written as the result has them: of a dimension of one element any would do. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  slice_params p = *(const slice_params *)eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo};
  for (uint32_t d = 0; d < p.strides.count; d++) p.strides.v[d] = step_of(eqn->params, d, hlo->program->types[eqn->in[0]].dims);
  ax_hlo_add_fields(&attributes, eqn->prim, &p);
  return ax_hlo_simple(hlo, eqn, "stablehlo.slice", in, &attributes, out);
}

static const ax_param params[] = {
    {"start_indices", AX_PARAM_DIMS, offsetof(slice_params, start_indices)},
    {"limit_indices", AX_PARAM_DIMS, offsetof(slice_params, limit_indices)},
    {"strides", AX_PARAM_DIMS, offsetof(slice_params, strides)},
};

static const ax_hlo_form form = {
    .op = "stablehlo.slice",
    .fields = AX_HLO_FIELDS({"start_indices", "start_indices"}, {"limit_indices", "limit_indices"}, {"strides", "strides"})};

const ax_prim ax_prim_slice = {
    .name = "slice",
    .kind = AX_LOCAL,
    .cheap = true,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, slice_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = eval,
    .transpose = transpose,
    .batch = batch,
    .simplify = simplify,
    .rewrite = rewrite,
    .part = part,
    .shard = shard,
    .block = block,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_words,
    .form = &form, .hlo = hlo,
};

ax_value (ax_slice)(ax_value x, uint32_t start_count, const int64_t *start, uint32_t limit_count, const int64_t *limit,
                    uint32_t stride_count, const int64_t *strides) {
  slice_params p;
  uint32_t rank = ax_typeof(x).rank;
  int64_t ones[AX_MAX_RANK];
  for (int d = 0; d < AX_MAX_RANK; d++) ones[d] = 1;
  if (ax_failed() || !ax_list_fits("slice", "the array has", "dimension", start_count, rank) ||
      !ax_list_fits("slice", "the array has", "dimension", limit_count, rank) ||
      (strides != NULL && !ax_list_fits("slice", "the array has", "dimension", stride_count, rank)) ||
      !ax_dims_take(&ax_prim_slice, rank, start, &p.start_indices) ||
      !ax_dims_take(&ax_prim_slice, rank, limit, &p.limit_indices) ||
      !ax_dims_take(&ax_prim_slice, rank, strides != NULL ? strides : ones, &p.strides))
    return ax_poison;
  return ax_bind1(&ax_prim_slice, &p, &x, 1);
}
