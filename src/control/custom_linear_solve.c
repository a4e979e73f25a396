/* custom_linear_solve: C0.., T0.., -> T0..         the x for which matvec x = b, by a solver of the caller's; T float or complex
   Parameters: num_consts, how many operands are not b, but what the functions use besides; solves, one program of all operands, or
   two: that which solves, and that which solves for the transposed matvec; matvec, a program of the consts and x, linear in x;
   symmetric: matvec is its own transpose, and the first of solves solves both.
   Errors: programs that do not take the operands, or do not give what b is; b that is no float, reduced or unreduced; transposed,
   no solver for it.
   Linear in b. Its tangent solves the same system for db - dmatvec x, whatever the solver does inside: a solver may be a loop with
   an unknown number of rounds, and nothing of it is kept. Transposed, the solver of the transposed system; all of b is batched where
   a const or a part of b is. */
#include "axle/solvers.h"
#include "control/custom.h"
#include "ir/flow.h"
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/rules.h"

typedef struct solve_params {
  ax_programs solves;
  ax_program *matvec;
  int64_t num_consts;
  bool symmetric;
} solve_params;

static uint32_t count_outs(const void *params) { return ((const solve_params *)params)->matvec->out_count; }

/* --- infer, eval, differs --- */

static ax_status check_operands(const ax_infer_args *args, uint32_t consts) {
  if (args->in_count - consts != args->out_count || args->out_count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "matvec gives %u values, but b has %u", args->out_count, args->in_count - consts);
  for (uint32_t i = consts; i < args->in_count; i++) {
    const ax_type *b = &args->in[i];
    if (b->form != AX_ARRAY || !ax_is_differentiable(b->dtype) || b->spread.reduced != 0 || b->spread.unreduced != 0)
      return ax_error(AX_INVALID_ARGUMENT, "b%u is %s, but must be an array of floats, neither reduced nor unreduced", i - consts,
                      ax_type_string(b, args->axes));
    args->out[i - consts] = *b;
  }
  return AX_OK;
}

static ax_status check_program(const ax_infer_args *args, const ax_program *program, const char *what) {
  AX_TRY(ax_custom_check(args, program, what, 0, args->out_count));
  if (program->out_count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "%s gives %u values, but b has %u", what, program->out_count, args->out_count);
  for (uint32_t k = 0; k < args->out_count; k++)
    AX_TRY(ax_region_check_type(&program->types[program->outs[k]], &args->out[k], args->axes, "result", k, "is", "b is"));
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const solve_params *params = args->params;
  if (params->num_consts < 0 || params->num_consts > args->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "num_consts is %lld, but there are %u operands", (long long)params->num_consts,
                    args->in_count);
  if (params->solves.count != 1 && params->solves.count != 2)
    return ax_error(AX_INVALID_ARGUMENT, "there are %u solves; needed are one, or two", params->solves.count);
  AX_TRY(check_operands(args, (uint32_t)params->num_consts));
  AX_TRY(check_program(args, params->matvec, "matvec"));
  AX_TRY(check_program(args, params->solves.v[0], "solve"));
  return params->solves.count == 2 ? check_program(args, params->solves.v[1], "transpose_solve") : AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  return ax_evaluate_lanes(args->driver, ax_eqn_program(args->eqn, 0), args->lanes, args->device, args->in, args->out);
}

/* Each part of x depends on all of b. */
static void differs(const ax_differs_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_axis_set any = 0;
  if (!ax_region_differs(args, ax_eqn_program(eqn, 0), args->in, args->out)) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) any |= args->in[i];
  for (uint32_t k = 0; k < eqn->out_count; k++) any |= args->out[k];
  for (uint32_t k = 0; k < eqn->out_count; k++) args->out[k] = any;
}

/* --- jvp, linearize: matvec dx = db - dmatvec x --- */

/* The derivative of matvec by the consts, at x. NULL: the trace has failed. */
typedef ax_value *derivative(const ax_program *matvec, const ax_jvp_args *args, const bool *wrt, const ax_value *tangents);

static ax_value *by_jvp(const ax_program *matvec, const ax_jvp_args *args, const bool *wrt, const ax_value *tangents) {
  const uint32_t count = matvec->out_count, consts = matvec->in_count - count;
  ax_program *program;
  ax_status status = ax_jvp_program(matvec, wrt, NULL, &program);
  if (status != AX_OK) {
    ax_fail(status);
    return NULL;
  }
  ax_value *in = ax_trace_alloc(program->in_count * sizeof in[0]), *out = ax_trace_alloc(program->out_count * sizeof out[0]);
  for (uint32_t i = 0; !ax_failed() && i < program->in_count; i++)
    in[i] = i < consts ? args->in[i] : i < matvec->in_count ? args->out[i - consts] : tangents[i - matvec->in_count];
  if (!ax_failed()) ax_call(program, in, out);
  ax_program_release(program);
  return ax_failed() ? NULL : out + count;
}

static ax_value *by_halves(const ax_program *matvec, const ax_jvp_args *args, const bool *wrt, const ax_value *tangents) {
  const uint32_t count = matvec->out_count, consts = matvec->in_count - count;
  ax_program *primal, *tangent;
  uint32_t residuals;
  ax_status status = ax_linearize_program(matvec, wrt, NULL, NULL, &primal, &tangent, &residuals);
  if (status != AX_OK) {
    ax_fail(status);
    return NULL;
  }
  ax_value *in = ax_trace_alloc(primal->in_count * sizeof in[0]), *made = ax_trace_alloc(primal->out_count * sizeof made[0]);
  ax_value *map_in = ax_trace_alloc(tangent->in_count * sizeof in[0]), *out = ax_trace_alloc(tangent->out_count * sizeof out[0]);
  for (uint32_t i = 0; !ax_failed() && i < primal->in_count; i++) in[i] = i < consts ? args->in[i] : args->out[i - consts];
  if (!ax_failed()) ax_call(primal, in, made);
  for (uint32_t i = 0; !ax_failed() && i < tangent->in_count; i++)
    map_in[i] = i < residuals ? made[count + i] : tangents[i - residuals];
  if (!ax_failed()) ax_call(tangent, map_in, out);
  ax_program_release(primal);
  ax_program_release(tangent);
  return ax_failed() ? NULL : out;
}

static void differentiate(const ax_jvp_args *args, derivative *derivative_of) {
  const ax_eqn *eqn = args->eqn;
  const solve_params *params = eqn->params;
  const uint32_t consts = (uint32_t)params->num_consts;
  bool *wrt = ax_trace_alloc(eqn->in_count), in_b = false;
  ax_value *tangents = ax_trace_alloc(eqn->in_count * sizeof tangents[0]), *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  uint32_t count = 0;
  if (ax_failed()) return;
  ax_bind(eqn->prim, params, args->in, eqn->in_count, args->out, eqn->out_count);
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    in[i] = args->in[i];
    wrt[i] = i < consts && !ax_is_zero(args->tangent_in[i]);
    if (wrt[i]) tangents[count++] = args->tangent_in[i];
    in_b = in_b || (i >= consts && !ax_is_zero(args->tangent_in[i]));
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) args->tangent_out[k] = ax_zero;
  if (count == 0 && !in_b) return;
  const ax_value *moved = count > 0 ? derivative_of(params->matvec, args, wrt, tangents) : NULL;
  for (uint32_t k = 0; !ax_failed() && k < eqn->out_count; k++) {
    const ax_value db = args->tangent_in[consts + k];
    in[consts + k] = moved == NULL    ? ax_instantiate(db, args->in[consts + k])
                     : ax_is_zero(db) ? ax_neg(moved[k])
                                      : ax_sub(db, moved[k]);
  }
  if (!ax_failed()) ax_bind(eqn->prim, params, in, eqn->in_count, args->tangent_out, eqn->out_count);
}

static void jvp(const ax_jvp_args *args) { differentiate(args, by_jvp); }
static void linearize(const ax_jvp_args *args) { differentiate(args, by_halves); }

/* --- transpose --- */

/* matvec's transpose as a program of the consts and a vector. */
static ax_status transposed_matvec(const solve_params *params, ax_program **out) {
  if (params->symmetric) {
    *out = ax_program_retain(params->matvec);
    return AX_OK;
  }
  const ax_program *matvec = params->matvec;
  bool *linear = ax_trace_alloc(matvec->in_count);
  *out = NULL;
  if (linear == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < matvec->in_count; i++) linear[i] = i >= params->num_consts;
  return ax_transpose_program(matvec, linear, NULL, NULL, out);
}

static void transpose(const ax_transpose_args *args) {
  const ax_eqn *eqn = args->eqn;
  const solve_params *params = eqn->params;
  const uint32_t consts = (uint32_t)params->num_consts;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < consts; i++) {
    if (args->linear[i]) {
      ax_absent_transpose(args);
      return;
    }
    in[i] = args->in[i];
  }
  if (!params->symmetric && params->solves.count == 1) {
    ax_fail(
        ax_error(AX_ABSENT,
                 "custom_linear_solve: a derivative backwards needs a solver of the transposed system: give transpose_solve, or "
                 "say that matvec is symmetric"));
    return;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++)
    in[consts + k] = ax_is_zero(args->cotangent[k]) ? ax_zero_cotangent(&args->in_types[consts + k]) : args->cotangent[k];
  solve_params made = *params;
  ax_program *swapped[2];
  if (!params->symmetric) {
    swapped[0] = params->solves.v[1], swapped[1] = params->solves.v[0];
    made.solves.v = swapped;
  }
  ax_status status = transposed_matvec(params, &made.matvec);
  if (status == AX_OK)
    ax_bind(eqn->prim, &made, in, eqn->in_count, out, eqn->out_count);
  else
    ax_fail(status);
  ax_program_release(made.matvec);
  for (uint32_t k = 0; !ax_failed() && k < eqn->out_count; k++)
    if (args->linear[consts + k]) args->out[consts + k] = out[k];
}

/* --- batch: all of b --- */

static void batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  const solve_params *params = eqn->params;
  const uint32_t consts = (uint32_t)params->num_consts;
  int *in_dim = ax_trace_alloc(eqn->in_count * sizeof in_dim[0]), *want = ax_trace_alloc(eqn->out_count * sizeof want[0]);
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  ax_program *made[2] = {NULL, NULL};
  solve_params batched = *params;
  if (ax_failed()) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    in_dim[i] = i < consts ? args->in_dim[i] : 0;
    in[i] = i < consts ? args->in[i] : ax_batch_front(args->in[i], args->in_dim[i], args->size);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) args->out_dim[k] = want[k] = 0;
  batched.solves.v = made;
  batched.matvec = NULL;
  ax_status status = AX_OK;
  for (uint32_t s = 0; status == AX_OK && s < params->solves.count; s++)
    status = ax_batch_program(params->solves.v[s], in_dim, args->size, args->axis, want, NULL, &made[s]);
  if (status == AX_OK) status = ax_batch_program(params->matvec, in_dim, args->size, args->axis, want, NULL, &batched.matvec);
  if (status == AX_OK)
    ax_bind(eqn->prim, &batched, in, eqn->in_count, args->out, eqn->out_count);
  else
    ax_fail(status);
  ax_program_release(made[0]);
  ax_program_release(made[1]);
  ax_program_release(batched.matvec);
}

/* --- prune: a part of x needs all of b --- */

static ax_status prune(const ax_prune_args *args) {
  const solve_params *params = args->eqn->params;
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = true;
  for (uint32_t i = 0; i < args->eqn->in_count; i++) args->in[i] = true;
  if (args->params == NULL) return AX_OK;
  solve_params *made = args->params;
  *made = *params;
  made->solves.v = ax_arena_alloc(&args->memo->arena, params->solves.count * sizeof made->solves.v[0]);
  if (made->solves.v == NULL) return ax_out_of_memory(params->solves.count * sizeof made->solves.v[0]);
  for (uint32_t s = 0; s < params->solves.count; s++) made->solves.v[s] = ax_program_retain(params->solves.v[s]);
  made->matvec = ax_program_retain(params->matvec);
  return AX_OK;
}

/* --- The record --- */

static const ax_param params[] = {{"solves", AX_PARAM_PROGRAMS, offsetof(solve_params, solves)},
                                  {"matvec", AX_PARAM_PROGRAM, offsetof(solve_params, matvec)},
                                  {"num_consts", AX_PARAM_I64, offsetof(solve_params, num_consts)},
                                  {"symmetric", AX_PARAM_BOOL, offsetof(solve_params, symmetric)}};

const ax_prim ax_prim_custom_linear_solve = {
    .name = "custom_linear_solve",
    .kind = AX_REGION,
    .derived = true,
    .runs = AX_RUNS_FIRST,
    .unify = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, solve_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .links = ax_region_links_call,
    .jvp = jvp,
    .linearize = linearize,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .prune = prune,
    .shard = ax_shard_whole,
    .lower = ax_custom_lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = ax_custom_hlo,
};

/* --- The function --- */

static const char owner[] = "custom_linear_solve";

typedef struct solve_call {
  ax_fn matvec, solve, transpose_solve;
  bool symmetric, transposed; /* whether transpose_solve is given */
} solve_call;

static bool check_count(const char *part, ax_fn f, const char *other, uint32_t count) {
  if (f.in_count == count && f.out_count == count) return true;
  ax_reject_as(owner, "%s takes %u values and gives %u; it must take and give what b is, as many as %s, %u", part, f.in_count,
               f.out_count, other, count);
  return false;
}

static bool trace_all(ax_custom *c, const solve_call *call, const ax_value *b, ax_value *out) {
  return ax_custom_init(c, owner, call->solve, b, out) && ax_custom_trace(c, "matvec", call->matvec, c->types, NULL) &&
         (!call->transposed || ax_custom_trace(c, "transpose_solve", call->transpose_solve, c->types, NULL));
}

static ax_program *program_of(const ax_custom *c, uint32_t body) {
  ax_spread *spread = ax_trace_alloc(c->out_count * sizeof spread[0]);
  if (spread == NULL) return NULL;
  for (uint32_t k = 0; k < c->out_count; k++) spread[k] = c->types[k].spread;
  return ax_custom_program(c, &(ax_custom_part){.body = body, .spread = spread, .spread_count = c->out_count, .keeps = AX_NONE});
}

static void make(const ax_custom *c, const solve_call *call, ax_value *out) {
  ax_program *solves[2] = {program_of(c, 0), NULL};
  solve_params made = {.solves = {1, solves}, .num_consts = ax_custom_captured(c), .symmetric = call->symmetric};
  made.matvec = program_of(c, 1);
  if (call->transposed) {
    solves[1] = program_of(c, 2);
    made.solves.count = 2;
  }
  if (!ax_failed()) ax_custom_bind(c, &ax_prim_custom_linear_solve, &made, out);
  ax_program_release(solves[0]);
  ax_program_release(solves[1]);
  ax_program_release(made.matvec);
}

void(ax_custom_linear_solve)(ax_fn matvec, ax_fn solve, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out,
                             const ax_linear_solve_options *options) {
  solve_call call = {.matvec = matvec, .solve = solve};
  if (options != NULL) {
    call.transpose_solve = options->transpose_solve;
    call.symmetric = options->symmetric;
    call.transposed = call.transpose_solve.function != NULL && !call.symmetric;
  }
  if (!ax_lists_fit(owner, in_count, matvec.in_count, out_count, matvec.out_count, out)) return;
  b = ax_take_operands(b, matvec.in_count, out, matvec.out_count);
  if (ax_failed() || !check_count("matvec", matvec, "it gives", matvec.out_count) ||
      !check_count("solve", solve, "matvec", matvec.in_count) ||
      (call.transposed && !check_count("transpose_solve", call.transpose_solve, "matvec", matvec.in_count)))
    return;
  ax_custom c;
  bool traced = trace_all(&c, &call, b, out);
  const ax_axis_set varying = traced ? ax_custom_grown(&c) : 0;
  if (varying != 0) {
    b = ax_custom_spread(&c, varying);
    ax_custom_deinit(&c);
    c = (ax_custom){0};
    traced = b != NULL && trace_all(&c, &call, b, out);
  }
  if (traced) make(&c, &call, out);
  ax_custom_deinit(&c);
}
