/* name: T[d..] -> T[d..]         x, under a name by which a checkpoint may keep it
   Parameters: names, one word.
   Errors: no name, or more than one.
   Linear. Its tangents have no name.
   Sharding: cuts of every dimension are kept. */
#include "control/name.h"

#include "axle/transform.h"
#include "prim/prims.h"
#include "prim/rules.h"

/* --- infer --- */

static ax_status infer(const ax_infer_args *args) {
  const ax_name_params *params = args->params;
  if (params->names.count != 1) return ax_error(AX_INVALID_ARGUMENT, "there are %u names, not one", params->names.count);
  args->out[0] = ax_array_type(args->in[0].dtype, AX_LIST(args->in[0].rank, args->in[0].dims));
  return AX_OK;
}

/* --- jvp, transpose, batch --- */

static void jvp(const ax_jvp_args *args) {
  args->out[0] = ax_bind1(&ax_prim_name, args->eqn->params, args->in, 1);
  args->tangent_out[0] = args->tangent_in[0];
}

static void transpose(const ax_transpose_args *args) { args->out[0] = args->cotangent[0]; }

static void batch(const ax_batch_args *args) {
  args->out[0] = ax_bind1(&ax_prim_name, args->eqn->params, args->in, 1);
  args->out_dim[0] = args->in_dim[0];
}

/* --- The record --- */

static const ax_param params[] = {{"names", AX_PARAM_NAMES, offsetof(ax_name_params, names)}};

const ax_prim ax_prim_name = {
    .name = "name", .kind = AX_LOCAL, .linear = AX_LINEAR_ALL, .kinds = AX_KINDS_ALL, .in_count = 1, .out_count = 1,
    AX_PARAMS(params, ax_name_params),
    .infer = infer, .spread = ax_spread_local, .eval = ax_eval_same, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = ax_shard_pointwise,
    .lower = ax_lower_same, .complex = ax_complex_whole, .keys = ax_keys_whole, .hlo = ax_hlo_same,
};

/* --- The function --- */

bool ax_parse_words(const char *function, const char *words, ax_axes *out) {
  ax_status status = ax_axes_parse(words, NULL, out);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", function));
  return status == AX_OK;
}

ax_value ax_checkpoint_name(ax_value x, const char *name) {
  ax_name_params made = {0};
  return ax_parse_words("checkpoint_name", name, &made.names) ? ax_bind1(&ax_prim_name, &made, &x, 1) : ax_poison;
}
