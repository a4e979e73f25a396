/* start: T0[d..].. -> future<R0[e..]>..      begins `body`, which gives the results; other work proceeds while it is under way
   done:  future<R[e..]> -> R[e..]            waits for one of them and gives it

     f:future<f32[8]> = start[body={ lambda a:f32[8]{V:d}. let b:f32[8] = psum[axes=(d,)] a in (b,) }] x
     ..                                                      runs beside the exchange
     y:f32[8] = done f

   Parameters of start: body, of collectives and operations of each device, loops without collectives among them; done has none.
   Errors: a body that holds a start, or another program with collectives, or takes other operands; an operand of done that is no
   future. A future is done once, in the program that it was started in: any other use of it is an error, found where it stands or
   when the trace finishes (ir/once.c).
   By value start is its body and done the identity. Derivatives are the body's: tangents and cotangents of a future are arrays,
   whose collectives stand where start does (every collective overlaps with operations that do not need it; the pair only says so
   in the program). A batched start begins the batched body.
   ax_start(expression) traces the body where it stands: the expression is evaluated between two calls, of which the first begins a
   trace and the second ends it; values of the enclosing trace that it uses become operands. */
#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "prim/prims.h"
#include "prim/rebuild.h"

typedef struct start_params {
  ax_program *body;
} start_params;

static const ax_program *body_of(const ax_eqn *eqn) { return ((const start_params *)eqn->params)->body; }

static uint32_t count_outs(const void *params) { return ((const start_params *)params)->body->out_count; }

/* --- start --- */

/* A cond or a loop of each device alone is one of its operations: batched, a look-up by the member's number is such a loop. */
static bool is_refused(const ax_eqn *eqn) {
  return eqn->prim == &ax_prim_start || (eqn->prim->kind == AX_REGION && (ax_eqn_effects(eqn) & AX_EFFECT_EXCHANGE) != 0);
}

static ax_status start_infer(const ax_infer_args *args) {
  const ax_program *body = ((const start_params *)args->params)->body;
  AX_TRY(ax_region_check_axes(body, args->axes, "the body"));
  if (body->in_count != args->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u values, not %u", body->in_count, args->in_count);
  for (uint32_t i = 0; i < args->in_count; i++)
    AX_TRY(ax_region_check_type(&args->in[i], &body->types[i], args->axes, "operand", i, "is", "the body takes"));
  for (uint32_t i = 0; i < body->eqn_count; i++)
    if (is_refused(&body->eqns[i]))
      return ax_error(AX_INVALID_ARGUMENT, "the body holds a %s%s; it may have collectives and operations of each device",
                      body->eqns[i].prim->name, body->eqns[i].prim == &ax_prim_start ? "" : " with collectives in it");
  if ((body->effects & AX_EFFECT_MESSAGE) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the body has messages between two devices: psend never waits, and precv only does");
  if ((body->effects & AX_EFFECT_STATE) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the body calls the host; calls stand in program order, not beside other work");
  for (uint32_t k = 0; k < args->out_count; k++) {
    args->out[k] = body->types[body->outs[k]];
    args->out[k].form = AX_FUTURE;
  }
  return AX_OK;
}

static ax_status start_eval(const ax_eval_args *args) {
  const ax_eqn *eqn = args->eqn;
  uint32_t lanes = args->lanes;
  ax_arena arena = {0};
  uint32_t *lane = ax_arena_alloc(&arena, lanes * sizeof lane[0]);
  ax_tensor *const **in = ax_arena_alloc(&arena, eqn->in_count * sizeof in[0]);
  ax_tensor ***out = ax_arena_alloc(&arena, eqn->out_count * sizeof out[0]);
  ax_status status = lane == NULL || in == NULL || out == NULL ? ax_out_of_memory(lanes * sizeof lane[0]) : AX_OK;
  for (uint32_t l = 0; l < lanes && status == AX_OK; l++) lane[l] = l;
  for (uint32_t i = 0; i < eqn->in_count && status == AX_OK; i++) in[i] = args->in + (size_t)i * lanes;
  for (uint32_t k = 0; k < eqn->out_count && status == AX_OK; k++) out[k] = args->out + (size_t)k * lanes;
  if (status == AX_OK) status = ax_region_eval(args, body_of(eqn), lane, lanes, in, out);
  return ax_region_eval_end(args, &arena, status);
}

static void start_differs(const ax_differs_args *args) {
  (void)ax_region_differs(args, body_of(args->eqn), args->in, args->out);
}

/* The body's jvp beside the start: (x.., dx..) -> (y.., dy..), of which y is the future's. */
static void start_jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_program *jvp;
  ax_tangents t;
  if (!ax_tangents_init(&t, args)) return;
  ax_value *in = ax_trace_alloc((eqn->in_count + (size_t)t.in_count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  ax_value *made = ax_trace_alloc((eqn->out_count + (size_t)t.out_count) * sizeof made[0]);
  if (in == NULL || out == NULL || made == NULL) return;
  ax_bind(eqn->prim, eqn->params, args->in, eqn->in_count, out, eqn->out_count);
  ax_status status = ax_jvp_program(body_of(eqn), t.in, t.want, &jvp);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = args->in[i];
  ax_tangents_take(&t, in + eqn->in_count);
  ax_call(jvp, in, made);
  ax_tangents_give(&t, out, made + eqn->out_count);
  ax_program_release(jvp);
}

/* The body's transpose, in place. */
static void bind_here(AX_UNUSED const ax_eqn *eqn, ax_program *transposed, const ax_value *in, ax_value *out) {
  ax_call(transposed, in, out);
}
static void start_transpose(const ax_transpose_args *args) { ax_transpose_by_body(args, body_of(args->eqn), bind_here); }

static void start_batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  start_params params;
  ax_status status = ax_batch_program(body_of(eqn), args->in_dim, args->size, args->axis, NULL, args->out_dim, &params.body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_bind(&ax_prim_start, &params, args->in, eqn->in_count, args->out, eqn->out_count);
  ax_program_release(params.body);
}

/* The body's exchanges begin here; an operation that reads a result waits for it. */
static ax_status start_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_program(lower, body_of(eqn), in, out);
}

/* --- StableHLO's form of it: an op with the exchange in its region, which must be the only op there --- */

/* %f = "stablehlo.async_start"(%x) ({ ^bb0(%a): %r = the exchange of %a  return %r }) : (..) -> !stablehlo.future<..>. False: the
   exchange is more than one op, and nothing was written. */
static ax_status write_begun(ax_hlo *hlo, const ax_eqn *eqn, uint32_t x, uint32_t *out, bool *written) {
  const ax_type *types = hlo->program->types;
  const uint32_t channel = hlo->channel;
  ax_type future = types[eqn->out];
  uint32_t result;
  future.form = AX_FUTURE;
  *out = AX_HLO_FUTURE | ax_hlo_begin(hlo, "stablehlo.async_start", &x, 1, &future, 1);
  uint32_t inside = ax_hlo_region_begin(hlo, &types[eqn->in[0]], 1);
  AX_TRY(ax_hlo_eqn(hlo, eqn, &inside, &result));
  *written = ax_hlo_region_count(hlo) == 1;
  ax_hlo_region_end(hlo, &result, 1);
  ax_hlo_end(hlo, NULL);
  if (*written) return AX_OK;
  ax_hlo_drop(hlo);
  hlo->channel = channel;
  return AX_OK;
}

/* An exchange of one operand whose result is one of the body's and nothing else. */
static bool may_begin(const ax_program *body, const ax_eqn *eqn, const uint32_t *uses, const bool *given) {
  return eqn->prim->kind == AX_COLLECTIVE && (eqn->prim->effects & AX_EFFECT_EXCHANGE) != 0 && eqn->in_count == 1 &&
         eqn->out_count == 1 && body->types[eqn->in[0]].form == AX_ARRAY && body->types[eqn->out].form == AX_ARRAY &&
         uses[eqn->out] == 1 && given[eqn->out];
}

/* value: room for the SSA ids of the body's values; operand: for those of one equation's operands. */
static ax_status write_started(ax_hlo *hlo, const ax_program *body, const uint32_t *uses, const bool *given, uint32_t *value,
                               uint32_t *operand) {
  for (uint32_t i = 0; i < body->eqn_count; i++) {
    const ax_eqn *eqn = &body->eqns[i];
    bool written = false;
    for (uint32_t k = 0; k < eqn->in_count; k++) operand[k] = value[eqn->in[k]];
    if (!hlo->at_once && may_begin(body, eqn, uses, given)) AX_TRY(write_begun(hlo, eqn, operand[0], &value[eqn->out], &written));
    if (!written) AX_TRY(ax_hlo_eqn(hlo, eqn, operand, value + eqn->out));
  }
  return AX_OK;
}

/* Exchanges whose results need nothing more are begun here and ended by done; what else there is stands here as it is, which
   StableHLO's compilers overlap as they see fit. */
static ax_status start_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_program *body = body_of(eqn), *outer = hlo->program;
  uint32_t *uses = NULL, *value = ax_calloc((size_t)body->value_count + ax_most_operands(body), sizeof value[0]);
  bool *given = ax_calloc(body->value_count, sizeof given[0]);
  ax_status status =
      value == NULL || given == NULL ? ax_out_of_memory(body->value_count * sizeof value[0]) : ax_program_uses(body, &uses);
  for (uint32_t i = 0; status == AX_OK && i < body->in_count; i++) value[i] = in[i];
  for (uint32_t k = 0; status == AX_OK && k < body->out_count; k++) given[body->outs[k]] = true;
  hlo->program = body;
  if (status == AX_OK) status = write_started(hlo, body, uses, given, value, value + body->value_count);
  hlo->program = outer;
  for (uint32_t k = 0; status == AX_OK && k < body->out_count; k++) out[k] = value[body->outs[k]];
  ax_free(uses);
  ax_free(value);
  ax_free(given);
  return status;
}

/* --- done --- */

static ax_status done_infer(const ax_infer_args *args) {
  args->out[0] = args->in[0];
  args->out[0].form = AX_ARRAY;
  return AX_OK;
}

static void done_jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, NULL, args->in, 1, args->out, 1);
  args->tangent_out[0] = args->tangent_in[0];
}

static void done_transpose(const ax_transpose_args *args) { args->out[0] = args->cotangent[0]; }

static void done_batch(const ax_batch_args *args) {
  ax_bind(args->eqn->prim, NULL, args->in, 1, args->out, 1);
  args->out_dim[0] = args->in_dim[0];
}

static ax_status done_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = hlo->program->types;
  uint32_t future = in[0] & ~AX_HLO_FUTURE;
  out[0] =
      future == in[0] ? in[0] : ax_hlo_op(hlo, "stablehlo.async_done", &future, 1, NULL, &types[eqn->out], 1);
  return AX_OK;
}

/* --- The records --- */

static const ax_param params[] = {{"body", AX_PARAM_PROGRAM, offsetof(start_params, body)}};

const ax_prim ax_prim_start = {
    .name = "start",
    .kind = AX_REGION,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, start_params),
    .infer = start_infer,
    .spread = ax_spread_body,
    .eval = start_eval,
    .differs = start_differs,
    .links = ax_region_links_call,
    .jvp = start_jvp,
    .linearize = start_jvp,
    .transpose = start_transpose,
    .batch = start_batch,
    .simplify = ax_simplify_nothing,
    .prune = ax_prune_body,
    .shard = ax_shard_whole,
    .lower = start_lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = start_hlo,
};

const ax_prim ax_prim_done = {
    .name = "done", .kind = AX_LOCAL, .operands = AX_FUTURE, .in_count = 1, .out_count = 1,
    .linear = AX_LINEAR_ALL, .kinds = AX_KINDS_ALL,
    .infer = done_infer, .spread = ax_spread_local, .eval = ax_eval_same, .differs = ax_differs_union,
    .jvp = done_jvp, .linearize = done_jvp,
    .transpose = done_transpose, .batch = done_batch,
    .simplify = ax_simplify_nothing, .shard = ax_shard_whole, .lower = ax_lower_same,
    .complex = ax_complex_whole, .keys = ax_keys_whole, .hlo = done_hlo,
};

/* --- The functions --- */

static const char name[] = "start";

/* The trace of the expression that ax_start takes. */
static const ax_context_key expression = {.name = "expression of start"};

void ax_start_open(void) {
  if (ax_failed()) return;
  ax_builder *body;
  ax_status status = ax_builder_open(NULL, &body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  if (body->parent == NULL) { /* the trace that there was had been left */
    ax_builder_cancel(body);
    return;
  }
  if (!ax_context_set(&expression, body)) { /* what closes the expression would not find it */
    ax_builder_cancel(body);
    ax_fail(ax_out_of_memory(sizeof(ax_context)));
    return;
  }
  body->owner = name;
  body->part = "expression";
  /* It lives as long as the caller's frame, in which what the expression calls may begin where this function did. */
  body->frame = (const char *)__builtin_frame_address(0) + 1;
}

ax_value ax_start_with(ax_value x) {
  ax_start_open();
  return x;
}

/* Checks the value of the expression at the end of its trace. */
static void check_started(const ax_builder *body, ax_value value) {
  if (ax_failed() || !ax_check_operands(name, &value, 1)) return;
  if (ax_is_number(value)) ax_reject_as(name, "the expression is a number; nothing is started");
  else if (value.trace != body->serial) ax_reject_as(name, "the expression is a value made before; nothing is started");
}

ax_value ax_start_close(ax_value value) {
  ax_builder *body = ax_builder_current() != NULL ? ax_context_get(&expression) : NULL;
  if (body == NULL) { /* it was never opened, because the trace had failed */
    (void)ax_failed();
    return ax_poison;
  }
  while (ax_builder_current() != body) ax_builder_cancel(ax_builder_current()); /* traces that the expression left */
  check_started(body, value);
  bool blamed = body->blamed;
  ax_body made = {0};
  ax_status status = ax_builder_finish(body, &value, 1, &made.program, &made.captured, &made.captured_count);
  if (status != AX_OK) {
    ax_fail(status);
    ax_builder_current()->blamed |= blamed;
    return ax_poison;
  }
  start_params params = {made.program};
  ax_value future = ax_bind1(&ax_prim_start, &params, made.captured, made.captured_count);
  ax_body_deinit(&made);
  return future;
}

ax_value ax_done(ax_value future) { return ax_bind1(&ax_prim_done, NULL, &future, 1); }
