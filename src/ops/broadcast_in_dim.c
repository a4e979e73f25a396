/* broadcast_in_dim: T[d..] -> T[shape..]         x's dimension i becomes the result's broadcast_dimensions[i]
   Parameters: shape; broadcast_dimensions, strictly increasing.
   Errors: one entry a dimension of x is not given, or not increasing; a dimension of x that is neither 1 nor the result's.
   Linear; the transpose sums over what was repeated. Where nothing is repeated, the result is the operand's memory. */
#include "hlo/hlo.h"
#include "ops/broadcast.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_broadcast_params *p = args->params;
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_one_each("broadcast_dimensions", &p->broadcast_dimensions, x->rank));
  AX_TRY(ax_infer_distinct("broadcast_dimensions", &p->broadcast_dimensions, p->shape.count));
  AX_TRY(ax_infer_shape(x->dtype, &p->shape, &args->out[0]));
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t to = p->broadcast_dimensions.v[i];
    if (i > 0 && to < p->broadcast_dimensions.v[i - 1])
      return ax_error(AX_INVALID_ARGUMENT, "broadcast_dimensions do not increase at %u", i);
    if (x->dims[i] != 1 && x->dims[i] != p->shape.v[to])
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u, of %lld, does not stretch to dimension %lld of %s", i,
                      (long long)x->dims[i], (long long)to, ax_type_string(&args->out[0], args->axes));
  }
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_broadcast_params *p = args->eqn->params;
  const ax_tensor *x = args->in[0], *out = args->out[0];
  ax_strided to = ax_strided_dense(out), dense = ax_strided_dense(x), from = {.data = x->data};
  for (uint32_t i = 0; i < x->rank; i++)
    if (x->dims[i] != 1) from.strides[p->broadcast_dimensions.v[i]] = dense.strides[i];
  ax_strided_copy(out->rank, out->dims, ax_dtype_bytes(out->dtype), &to, &from);
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  const ax_broadcast_params *p = args->eqn->params;
  const ax_type *x = &args->in_types[0];
  ax_dims repeated = ax_dims_others(p->shape.count, &p->broadcast_dimensions, NULL);
  for (uint32_t i = 0; i < x->rank; i++)
    if (x->dims[i] != p->shape.v[p->broadcast_dimensions.v[i]])
      repeated.v[repeated.count++] = p->broadcast_dimensions.v[i];
  args->out[0] =
      ax_reshape(ax_reduce_sum(args->cotangent[0], AX_LIST(repeated.count, repeated.v), false), AX_LIST(x->rank, x->dims));
}

static void batch(const ax_batch_args *args) {
  ax_broadcast_params p = *(const ax_broadcast_params *)args->eqn->params;
  const ax_prim *prim = args->eqn->prim;
  ax_dims_shift(&p.broadcast_dimensions, 0);
  if (!ax_dims_insert(prim, &p.shape, 0, args->size) || !ax_dims_insert(prim, &p.broadcast_dimensions, 0, 0)) return;
  ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  args->out[0] = ax_bind1(prim, &p, &x, 1);
}

/* A dimension of x that is repeated is not cut; the result's dimension is. */
static void shard(const ax_shard_args *args) {
  const ax_broadcast_params *p = args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]];
  for (uint32_t d = 0; d < p->shape.count; d++) ax_factor_of(&args->out[0], d, ax_factor(args, p->shape.v[d], AX_FACTOR_ALONG));
  for (uint32_t i = 0; i < x->rank; i++)
    if (x->dims[i] != 1) ax_factor_of(&args->in[0], i, (uint32_t)p->broadcast_dimensions.v[i]);
}

static void block(const ax_block_args *args) {
  const ax_broadcast_params *p = args->eqn->params;
  args->out[0] = ax_broadcast_in_dim(args->in[0], AX_LIST(p->shape.count, args->blocks[0].dims), p->broadcast_dimensions.v);
}

/* Two broadcasts in a row become one. A broadcast to the operand's own shape is dropped. */
static void simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_broadcast_in_dim);
  if (inner != NULL) {
    ax_broadcast_params p = *(const ax_broadcast_params *)args->eqn->params;
    const ax_dims *first = &((const ax_broadcast_params *)inner->params)->broadcast_dimensions, second = p.broadcast_dimensions;
    p.broadcast_dimensions = *first;
    for (uint32_t i = 0; i < first->count; i++) p.broadcast_dimensions.v[i] = second.v[first->v[i]];
    ax_simplify_replace(args, 0, inner->in[0], &p);
  }
  uint32_t x = args->eqn->in[0];
  if (ax_same_shape(&args->types[x], &args->types[args->eqn->out])) args->same[0] = x;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_broadcast_params *p = eqn->params;
  const ax_type *x = &lower->program->types[eqn->in[0]], *type = &lower->program->types[eqn->out];
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  if (ax_type_elems(x) == ax_type_elems(type)) return ax_lower_as_view(lower, eqn, in[0], 0, &out[0]);
  ax_at_identity(to, type->rank);
  for (uint32_t i = 0; i < x->rank; i++)
    from[i] = x->dims[i] == 1 ? (ax_position){.dim = -1, .dynamic = AX_NONE} : to[p->broadcast_dimensions.v[i]];
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return ax_lower_move(lower, type->rank, type->dims, out[0], to, in[0], from);
}

static const ax_hlo_form form = {
    .op = "stablehlo.broadcast_in_dim",
    .fields = AX_HLO_FIELDS({"broadcast_dimensions", "broadcast_dimensions"}, {NULL, "shape"})};

static const ax_param params[] = {
    {"shape", AX_PARAM_DIMS, offsetof(ax_broadcast_params, shape)},
    {"broadcast_dimensions", AX_PARAM_DIMS, offsetof(ax_broadcast_params, broadcast_dimensions)},
};

const ax_prim ax_prim_broadcast_in_dim = {
    .name = "broadcast_in_dim",
    .kind = AX_LOCAL,
    .cheap = true,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, ax_broadcast_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = eval,
    .transpose = transpose,
    .batch = batch,
    .simplify = simplify,
    .shard = shard,
    .block = block,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_words,
    .form = &form, .hlo = ax_hlo_by_form,
};

ax_value (ax_broadcast_in_dim)(ax_value x, uint32_t rank, const int64_t *dims, uint32_t count,
                               const int64_t *broadcast_dimensions) {
  ax_broadcast_params p;
  ax_type type = ax_typeof(x);
  ax_status status = ax_list_length("broadcast_in_dim", "dimensions", rank, &rank);
  if (status != AX_OK) ax_fail(status);
  if (ax_failed() || !ax_list_fits("broadcast_in_dim", "the array has", "dimension", count, type.rank) ||
      !ax_dims_take(&ax_prim_broadcast_in_dim, rank, dims, &p.shape) ||
      !ax_dims_take(&ax_prim_broadcast_in_dim, type.rank, broadcast_dimensions, &p.broadcast_dimensions))
    return ax_poison;
  ax_type wanted = ax_array_type(type.dtype, AX_LIST(rank, dims));
  bool moves = wanted.dtype == AX_NO_DTYPE || !ax_same_shape(&type, &wanted);
  for (uint32_t i = 0; i < type.rank; i++) moves = moves || broadcast_dimensions[i] != i;
  return moves ? ax_bind1(&ax_prim_broadcast_in_dim, &p, &x, 1) : x;
}
