/* shard_alike: T0[d..], T1[d..] -> T0[d..], T1[d..]         the operands, which lie alike
   Errors: operands of different dimensions.
   Linear; tangents and cotangents lie alike, too, where both are there. As jax.experimental.shard_alike.
   The values stay the same: the partitioner carries the layout of each to the other (propagate.c). */
#include <string.h>

#include "hlo/hlo.h"
#include "mesh/constraint.h"
#include "prim/prims.h"
#include "prim/rules.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0], *y = &args->in[1];
  if (x->rank != y->rank || memcmp(x->dims, y->dims, x->rank * sizeof x->dims[0]) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the operands are %s and %s", ax_type_string(x, args->axes), ax_type_string(y, args->axes));
  for (uint32_t k = 0; k < 2; k++) args->out[k] = ax_array_type(args->in[k].dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  for (uint32_t k = 0; k < 2; k++) ax_tensor_assign(args->out[k], args->in[k]);
  return AX_OK;
}

static void differs(const ax_differs_args *args) {
  for (uint32_t k = 0; k < 2; k++) args->out[k] = args->in[k];
}

static void pair(const ax_prim *prim, const ax_value *in, ax_value *out) {
  if (ax_is_zero(in[0]) || ax_is_zero(in[1])) out[0] = in[0], out[1] = in[1];
  else ax_bind(prim, NULL, in, 2, out, 2);
}

static void jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, NULL, args->in, 2, args->out, 2);
  pair(args->eqn->prim, args->tangent_in, args->tangent_out);
}

static void transpose(const ax_transpose_args *args) { pair(args->eqn->prim, args->cotangent, args->out); }

static void batch(const ax_batch_args *args) {
  ax_value in[2];
  for (uint32_t k = 0; k < 2; k++) {
    in[k] = ax_batch_front(args->in[k], args->in_dim[k], args->size);
    args->out_dim[k] = 0;
  }
  ax_bind(args->eqn->prim, NULL, in, 2, args->out, 2);
}

static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  for (uint32_t d = 0; d < x->rank && args->factors->count < AX_MAX_FACTORS; d++) {
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    for (uint32_t k = 0; k < 2; k++) {
      ax_factor_of(&args->in[k], d, factor);
      ax_factor_of(&args->out[k], d, factor);
    }
  }
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)lower, (void)eqn;
  out[0] = in[0], out[1] = in[1];
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)hlo, (void)eqn;
  out[0] = in[0], out[1] = in[1];
  return AX_OK;
}

const ax_prim ax_prim_shard_alike = {
    .name = "shard_alike", .kind = AX_LOCAL, .linear = AX_LINEAR_EACH, .kinds = AX_KINDS_ALL, .in_count = 2, .out_count = 2,
    .infer = infer, .spread = ax_spread_each, .eval = eval, .differs = differs, .jvp = jvp, .linearize = jvp, .transpose = transpose,
    .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower,
    .complex = ax_complex_whole, .keys = ax_keys_whole, .hlo = hlo,
};

void ax_shard_alike(const ax_value in[2], ax_value out[2]) { ax_bind(&ax_prim_shard_alike, NULL, in, 2, out, 2); }
