/* iota: -> T[shape..]         y[i..] = i[dimension], converted to T
   Parameters: dtype, shape, dimension.
   Errors: bool; a dimension outside the shape.
   No operands: nothing to differentiate, batch or communicate; the same on all devices. */
#include "ops/iota.h"

#include "hlo/hlo.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct iota_params {
  ax_dtype dtype;
  ax_dims shape;
  int64_t dimension;
} iota_params;

static ax_status infer(const ax_infer_args *args) {
  const iota_params *p = args->params;
  AX_TRY(ax_infer_shape(p->dtype, &p->shape, &args->out[0]));
  if (p->dtype == AX_BOOL) return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  if (p->dimension < 0 || p->dimension >= p->shape.count)
    return ax_error(AX_INVALID_ARGUMENT, "dimension %lld is outside rank %u", (long long)p->dimension, p->shape.count);
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const iota_params *p = args->eqn->params;
  const ax_tensor *out = args->out[0];
  int64_t only[AX_MAX_RANK] = {0}, elems = ax_dims_elems(out->rank, out->dims);
  only[p->dimension] = 1;
  for (int64_t i = 0; i < elems; i++) {
    ax_number index = {.i = ax_strided_at(i, out->rank, out->dims, only)};
    ax_number_store(out->dtype, out->data, i, ax_number_convert(AX_S64, out->dtype, index));
  }
  return AX_OK;
}

static void batch(const ax_batch_args *args) {
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, NULL, 0);
  args->out_dim[0] = -1;
}

static void shard(const ax_shard_args *args) {
  const iota_params *p = args->eqn->params;
  for (uint32_t d = 0; d < p->shape.count; d++) ax_factor_of(&args->out[0], d, ax_factor(args, p->shape.v[d], AX_FACTOR_ALONG));
}

/* Each block counts from where it begins, and is converted then, so that it is rounded once. */
static void block(const ax_block_args *args) {
  const iota_params *p = args->eqn->params;
  const bool cut = args->specs[0].count[p->dimension] > 0;
  ax_value index = ax_iota(cut ? AX_S64 : p->dtype, AX_LIST(p->shape.count, args->blocks[0].dims), p->dimension);
  if (cut) index = ax_add(index, ax_block_start(args, 0, (uint32_t)p->dimension, AX_S64));
  args->out[0] = ax_convert_element_type(index, p->dtype);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)in;
  const iota_params *p = eqn->params;
  const ax_type *type = &lower->program->types[eqn->out];
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type->rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  ax_ex index = ax_kernel_index(lower->kernel, (uint32_t)p->dimension);
  if (type->dtype != AX_S64)
    index = ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, type->dtype, index, AX_NONE, AX_NONE);
  ax_lower_store(lower, out[0], at, index, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  const iota_params *p = ((void)in, eqn->params);
  ax_value real = ax_iota(ax_part_dtype(p->dtype), AX_LIST(p->shape.count, p->shape.v), p->dimension);
  return ax_complex(real, ax_full_like(real, 0));
}

static ax_status iota_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, expand, in, out);
}

static const ax_hlo_form form = {.op = "stablehlo.iota", .fields = AX_HLO_FIELDS({"iota_dimension", "dimension"}, {NULL, "shape"}, {NULL, "dtype"})};

static const ax_param params[] = {
    {"dtype", AX_PARAM_DTYPE, offsetof(iota_params, dtype)},
    {"shape", AX_PARAM_DIMS, offsetof(iota_params, shape)},
    {"dimension", AX_PARAM_I64, offsetof(iota_params, dimension)},
};

const ax_prim ax_prim_iota = {
    .name = "iota",
    .kind = AX_LOCAL,
    .cheap = true,
    .in_count = 0,
    .out_count = 1,
    AX_PARAMS(params, iota_params),
    .infer = infer,
    .spread = ax_spread_local,
    .eval = eval,
    .differs = ax_differs_union,
    .jvp = ax_jvp_zero,
    .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .shard = shard,
    .block = block,
    .lower = lower,
    .complex = iota_complex,
    .form = &form, .hlo = ax_hlo_by_form,
};

int64_t ax_iota_dimension(const ax_eqn *eqn) {
  return eqn != NULL && eqn->prim == &ax_prim_iota ? ((const iota_params *)eqn->params)->dimension : -1;
}

ax_value (ax_iota)(ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t dimension) {
  iota_params p = {.dtype = dtype, .dimension = dimension};
  if (!ax_dims_take(&ax_prim_iota, rank, dims, &p.shape)) return ax_poison;
  if (!ax_dimension(ax_prim_iota.name, "dimension", &p.dimension, rank)) return ax_poison;
  return ax_bind1(&ax_prim_iota, &p, NULL, 0);
}
