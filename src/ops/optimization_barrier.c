/* optimization_barrier: T0[d..], T1[d..].. -> T0[d..], T1[d..]..         the operands

   Simplification, merging of equal equations and transforms see results that are no operands: an equation on a result is not merged
   with the same one on the operand, and if one result is needed, all operands are.
   Linear; tangents and cotangents pass another barrier, together. Each result varies over the axes its operand varies over.
   Sharding: cuts of every dimension are kept. As jax.lax.optimization_barrier. */
#include "hlo/hlo.h"
#include "hlo/read.h"
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/rules.h"

static ax_status infer(const ax_infer_args *args) {
  for (uint32_t k = 0; k < args->in_count; k++)
    args->out[k] = ax_array_type(args->in[k].dtype, AX_LIST(args->in[k].rank, args->in[k].dims));
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  for (uint32_t k = 0; k < args->eqn->in_count; k++) ax_tensor_assign(args->out[k], args->in[k]);
  return AX_OK;
}

static void differs(const ax_differs_args *args) {
  for (uint32_t k = 0; k < args->eqn->in_count; k++) args->out[k] = args->in[k];
}

/* Those of the values that are no symbolic zeros pass one barrier; the others stay zero. */
static void pass_together(const ax_eqn *eqn, const ax_value *values, ax_value *out) {
  const uint32_t count = eqn->in_count;
  ax_value *some = ax_trace_alloc(count * sizeof some[0]), *passed = ax_trace_alloc(count * sizeof passed[0]);
  uint32_t given = 0;
  if (some == NULL || passed == NULL) return;
  for (uint32_t k = 0; k < count; k++)
    if (!ax_is_zero(values[k])) some[given++] = values[k];
  if (given > 0) ax_bind(eqn->prim, NULL, some, given, passed, given);
  for (uint32_t k = count; k-- > 0;) out[k] = ax_is_zero(values[k]) ? ax_zero : passed[--given];
}

static void jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, NULL, args->in, args->eqn->in_count, args->out, args->eqn->in_count);
  pass_together(args->eqn, args->tangent_in, args->tangent_out);
}

static void transpose(const ax_transpose_args *args) { pass_together(args->eqn, args->cotangent, args->out); }

static void batch(const ax_batch_args *args) {
  const uint32_t count = args->eqn->in_count;
  for (uint32_t k = 0; k < count; k++) args->out_dim[k] = args->in_dim[k];
  ax_bind(args->eqn->prim, NULL, args->in, count, args->out, count);
}

/* Dimensions of later operands are not cut once there are as many factors as there may be. */
static void shard(const ax_shard_args *args) {
  for (uint32_t k = 0; k < args->eqn->in_count; k++) {
    const ax_type *type = &args->types[args->eqn->in[k]];
    for (uint32_t d = 0; d < type->rank && args->factors->count < AX_MAX_FACTORS; d++) {
      const uint32_t factor = ax_factor(args, type->dims[d], AX_FACTOR_ALONG);
      ax_factor_of(&args->in[k], d, factor);
      ax_factor_of(&args->out[k], d, factor);
    }
  }
}

/* Compiled code rounds alike however it is arranged, so in a plan there is nothing to be kept apart. */
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)lower;
  for (uint32_t k = 0; k < eqn->in_count; k++) out[k] = in[k];
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  if (eqn->in_count == 0) return AX_OK;
  return ax_hlo_simple(hlo, eqn, "stablehlo.optimization_barrier", in, NULL, out);
}

static ax_status read(const ax_hlo_read_args *args) {
  ax_bind(args->prim, NULL, args->in, args->op->operand_count, args->out, args->op->result_count);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.optimization_barrier", read}, {0}};

const ax_prim ax_prim_optimization_barrier = {
    .name = "optimization_barrier", .kind = AX_LOCAL, .linear = AX_LINEAR_EACH, .kinds = AX_KINDS_ALL,
    .in_count = -1, .out_count = AX_AS_OPERANDS,
    .infer = infer, .spread = ax_spread_each, .eval = eval, .differs = differs, .jvp = jvp, .linearize = jvp, .transpose = transpose,
    .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower,
    .complex = ax_complex_whole, .keys = ax_keys_whole, .reads = readers, .hlo = hlo,
};

void(ax_optimization_barrier)(uint32_t count, const ax_value *xs, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("optimization_barrier", count, count, out_count, count, out)) return;
  const ax_value *in = ax_take_operands(xs, count, out, count);
  if (ax_check_operands("optimization_barrier", in, count)) ax_bind(&ax_prim_optimization_barrier, NULL, in, count, out, count);
}
