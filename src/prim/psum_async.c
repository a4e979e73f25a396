/* psum in two parts, so that other work proceeds while it is under way.

     started = psum_start(x)      T[d..]{V: axes, v..} -> T[d..]{V: axes, v..}    is x; the exchange of it begins here
     y = psum_done(started)       T[d..]{V: axes, v..} -> T[d..]{V: v..}          is psum(started); waits for it

   Parameters: axes, the same for both. Errors: as psum; the public psum_done takes only what psum_start returned.
   By value psum_start is the identity and psum_done is psum, so no transform and no other use of `started` can read a half-done
   sum: a psum_done whose operand is not a psum_start beside it (a rule took them apart) does the whole exchange itself. Everything
   but lowering follows from that: both are linear, and transpose as the identity and as psum. */
#include <string.h>

#include "prim/collective.h"
#include "prim/prims.h"

typedef struct psum_params {
  ax_axes axes;
} psum_params;

static ax_status start_eval(const ax_eval_args *args) {
  for (uint32_t lane = 0; lane < args->lanes; lane++) ax_tensor_assign(args->out[lane], args->in[lane]);
  return AX_OK;
}

static void start_transpose(const ax_transpose_args *args) { args->out[0] = args->cotangent[0]; }

static void start_batch(const ax_batch_args *args) {
  psum_params rest;
  ax_axes_without(args->eqn->params, args->axis, &rest.axes);
  args->out[0] = rest.axes.count > 0 ? ax_bind1(&ax_prim_psum_start, &rest, args->in, 1) : args->in[0];
  args->out_dim[0] = args->in_dim[0];
}

/* Is `done` a psum_done of what `start` returns? */
static bool are_pair(const ax_eqn *start, const ax_eqn *done) {
  return start->prim == &ax_prim_psum_start && done->prim == &ax_prim_psum_done && done->in[0] == start->out &&
         ax_axes_equal(start->params, done->params);
}

/* Begins the exchange when a psum_done of this program waits for it. */
static ax_status start_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_program *program = lower->program;
  const psum_params *params = eqn->params;
  const ax_eqn *done = NULL;
  out[0] = in[0];
  for (const ax_eqn *e = eqn + 1; e < program->eqns + program->eqn_count && done == NULL; e++)
    if (are_pair(eqn, e)) done = e;
  if (done == NULL) return AX_OK;
  const ax_type *type = &program->types[done->out];
  ax_exchange exchange = {.names = params->axes, .peers = AX_PEERS_ONE, .combine = AX_SCALAR_ADD};
  ax_exchange_whole(&exchange, ax_type_elems(type));
  return ax_lower_combine_start(lower, &exchange, in[0], type, lower->differs[done->out]);
}

/* The exchange that this psum_done's psum_start has begun in this block (the last: a body may have been put here twice). */
static const ax_exchange *find_started(const ax_lower *lower, const ax_eqn *done) {
  for (uint32_t i = lower->block->count; i-- > 0;) {
    const ax_op *op = &lower->block->ops[i];
    if (op->kind == AX_OP_START && op->program == lower->program && are_pair(op->eqn, done)) return op->exchange;
  }
  return NULL;
}

static ax_status done_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_exchange *started = find_started(lower, eqn);
  if (started == NULL) return ax_psum_lower(lower, eqn, in, out);
  return ax_lower_combine_done(lower, started, &lower->program->types[eqn->out], &out[0]);
}

/* StableHLO's compilers overlap collectives themselves. */
static ax_status start_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)hlo, (void)eqn;
  out[0] = in[0];
  return AX_OK;
}

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(psum_params, axes)}};

const ax_prim ax_prim_psum_start = {
    .name = "psum_start", .kind = AX_COLLECTIVE, .effects = AX_EFFECT_EXCHANGE, .in_count = 1, .out_count = 1,
    .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(psum_params),
    .infer = ax_psum_infer, .spread = ax_spread_keep, .eval = start_eval, .differs = ax_differs_union,
    .jvp = ax_jvp_linear, .linearize = ax_jvp_linear,
    .transpose = start_transpose, .batch = start_batch, .shard = ax_absent_shard, .lower = start_lower, .hlo = start_hlo,
};

const ax_prim ax_prim_psum_done = {
    .name = "psum_done", .kind = AX_COLLECTIVE, .effects = AX_EFFECT_EXCHANGE, .in_count = 1, .out_count = 1,
    .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(psum_params),
    .infer = ax_psum_infer, .spread = ax_spread_drop, .eval = ax_psum_eval, .differs = ax_differs_drop,
    .jvp = ax_jvp_linear, .linearize = ax_jvp_linear,
    .transpose = ax_psum_transpose, .batch = ax_psum_batch, .shard = ax_absent_shard, .lower = done_lower, .hlo = ax_psum_hlo,
};

ax_value ax_psum_start(ax_value x, const char *axes) {
  psum_params params;
  if (!ax_collective_operand(&ax_prim_psum_start, &x, axes, &params.axes)) return ax_poison;
  return ax_bind1(&ax_prim_psum_start, &params, &x, 1);
}

/* The psum_start that made a value, in this trace or one around it; NULL when something else did. */
static const ax_eqn *start_of(ax_value value) {
  const ax_builder *builder = ax_builder_current();
  while (builder != NULL && builder->serial != value.trace) builder = builder->parent;
  for (uint32_t i = builder != NULL ? builder->eqn_count : 0; i-- > 0;)
    if (builder->eqns[i].out_count > 0 && builder->eqns[i].out == value.id)
      return builder->eqns[i].prim == &ax_prim_psum_start ? &builder->eqns[i] : NULL;
  return NULL;
}

ax_value ax_psum_done(ax_value started) {
  if (ax_value_id(started) == AX_NONE) return ax_poison;
  const ax_eqn *start = start_of(started);
  if (start == NULL) return ax_reject(&ax_prim_psum_done, "the operand is not what psum_start returned");
  psum_params params = *(const psum_params *)start->params; /* a copy: binding may move the equations */
  return ax_bind1(&ax_prim_psum_done, &params, &started, 1);
}
