/* sum_parts: T[d..] -> T[n, d..]         n parts, along a new first dimension, whose sum the operand is
   Parameters: size, which is n.
   Errors: keys; f8e8m0fnu, which has no zero; a size below 1; an operand of the greatest rank.
   Linear: the cotangent of one part, as all parts have the same one.
   Which part has what is not said: the first one all of it, and the others zeros, unless devices have parts already. If the
   partitioner cuts the new dimension so that each device has one part, it keeps those of a sum that is not made yet. */
#include <string.h>

#include "hlo/hlo.h"
#include "mesh/constraint.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/rules.h"

typedef struct sum_parts_params {
  int64_t size;
} sum_parts_params;

static ax_status infer(const ax_infer_args *args) {
  const sum_parts_params *p = args->params;
  const ax_type *x = &args->in[0];
  if (p->size < 1) return ax_error(AX_INVALID_ARGUMENT, "size is %lld", (long long)p->size);
  if (ax_is_power(x->dtype)) return ax_error(AX_INVALID_ARGUMENT, "%s has no zero", ax_dtype_name(x->dtype));
  if (x->rank == AX_MAX_RANK) return ax_error(AX_ABSENT, "the operand has %d dimensions: its parts have one more", AX_MAX_RANK);
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  memmove(args->out[0].dims + 1, args->out[0].dims, x->rank * sizeof x->dims[0]);
  args->out[0].dims[0] = p->size;
  args->out[0].rank++;
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const size_t bytes = ax_dtype_bytes(args->in[0]->dtype) * (size_t)ax_dims_elems(args->in[0]->rank, args->in[0]->dims);
  const sum_parts_params *p = args->eqn->params;
  if (bytes == 0) return AX_OK;
  memcpy(args->out[0]->data, args->in[0]->data, bytes);
  memset((char *)args->out[0]->data + bytes, 0, bytes * (size_t)(p->size - 1));
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) { args->out[0] = ax_squeeze(ax_slice_in_dim(args->cotangent[0], 0, 1, 1, 0), AX_DIMS(0)); }

static void batch(const ax_batch_args *args) {
  const ax_value x = ax_move_dim(args->in[0], args->in_dim[0], 0);
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, &x, 1);
  args->out_dim[0] = 1;
}

static void shard(const ax_shard_args *args) {
  const sum_parts_params *p = args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]];
  ax_factor_of(&args->out[0], 0, ax_factor(args, p->size, AX_FACTOR_ALONG));
  for (uint32_t d = 0; d < x->rank && args->factors->count < AX_MAX_FACTORS; d++) {
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d + 1, factor);
  }
}

static ax_value padded(const ax_eqn *eqn, const ax_value *in) {
  const sum_parts_params *p = eqn->params;
  const ax_value x = ax_expand_dims(in[0], 0);
  const int64_t none[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {p->size - 1};
  return ax_pad(x, ax_full(ax_typeof(x).dtype, AX_DIMS(), 0), none, high, none);
}
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, padded, in, out);
}
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, padded, in, out);
}

static const ax_param params[] = {{"size", AX_PARAM_I64, offsetof(sum_parts_params, size)}};

const ax_prim ax_prim_sum_parts = {
    .name = "sum_parts",
    .kind = AX_LOCAL,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, sum_parts_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = eval,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .shard = shard,
    .lower = lower,
    .complex = lower,
    .hlo = hlo,
};

ax_value ax_sum_parts(ax_value x, int64_t size) {
  const sum_parts_params p = {size};
  return ax_bind1(&ax_prim_sum_parts, &p, &x, 1);
}
