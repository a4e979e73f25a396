/* checkpoint: T0.., -> R0..         body on the operands: the values that its derivatives need are computed again, not kept
   Parameters: body, a program in the environment of the equation; differentiated: this equation is part of a derivative, and
   computes again the values of the original body. All that one of these says is kept: save_everything; save_dots: results of
   dot_general and of convolutions; save_unbatched_dots: those of dot_general without batch dimensions; save_names: values to which
   `name` gave one of these names; save_other_names: values to which it gave a name that is not among but_names; save_primitives:
   results of these primitives.
   Errors: operands that do not fit the body; a body that sends or receives messages, which would happen twice. No derivatives of a
   body that has an io_callback, for the same reason; a debug_print in it prints again, unless the equation is one of those kept.
   Linear where its body is linear; each transform is that of the body. Linearized, it becomes a checkpoint for the results, and a
   checkpoint of the operands, the saved values and the tangents for the tangents: so its residuals are its operands and the saved
   values. Equations are merged within a program only, so values computed again stay apart from the original ones. No operation of a
   differentiated checkpoint moves before the point at which all its operands are ready (plan/order.c; in StableHLO an
   optimization_barrier). */
#include <string.h>

#include "control/closed_call.h"
#include "control/name.h"
#include "hlo/hlo.h"
#include "ops/dot_general.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/rules.h"

typedef struct policy { /* what is kept: all that one of them says */
  bool everything, dots, unbatched_dots, other_names;
  ax_axes names, but_names, primitives;
} policy;

typedef struct checkpoint_params {
  ax_closed_call_params call;
  bool differentiated;
  policy saved;
} checkpoint_params;

static ax_program *body_of(const ax_eqn *eqn) { return ((const checkpoint_params *)eqn->params)->call.body; }

/* --- infer --- */

static bool prints(const ax_prim *prim) { return prim == &ax_prim_debug_print || prim == &ax_prim_ordered_debug_print; }
static bool calls(const ax_prim *prim) { return prim == &ax_prim_io_callback || prim == &ax_prim_ordered_io_callback; }

/* The first primitive with state in the program, or in those that it holds, apart from debug_print and, unless `calls_too`, from
   io_callback. */
static const ax_prim *with_state(const ax_program *program, bool calls_too) {
  if ((program->effects & AX_EFFECT_STATE) == 0) return NULL;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if ((eqn->prim->effects & AX_EFFECT_STATE) != 0 && !prints(eqn->prim) && (calls_too || !calls(eqn->prim))) return eqn->prim;
    const ax_program *held;
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) {
      const ax_prim *inside = with_state(held, calls_too);
      if (inside != NULL) return inside;
    }
  }
  return NULL;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_prim *state = with_state(((const checkpoint_params *)args->params)->call.body, false);
  if (state != NULL)
    return ax_error(AX_INVALID_ARGUMENT,
                    "the body has a %s, but what stands in a checkpoint is done again for derivatives; messages are sent once",
                    state->name);
  return ax_called_infer(args);
}

/* --- linearize --- */

static bool among(const ax_axes *names, const char *name) {
  for (uint32_t i = 0; i < names->count; i++)
    if (strcmp(names->name[i], name) == 0) return true;
  return false;
}

static bool keeps_name(const policy *saved, const char *name) {
  return among(&saved->names, name) || (saved->other_names && !among(&saved->but_names, name));
}

static bool saves(const void *by, const ax_eqn *eqn) {
  const policy *saved = by;
  if (saved->everything || among(&saved->primitives, eqn->prim->name)) return true;
  if (eqn->prim == &ax_prim_name) return keeps_name(saved, ((const ax_name_params *)eqn->params)->names.name[0]);
  if (eqn->prim == &ax_prim_conv_general_dilated) return saved->dots;
  if (eqn->prim != &ax_prim_dot_general) return false;
  return saved->dots || (saved->unbatched_dots && ((const ax_dot_params *)eqn->params)->lhs_batch.count == 0);
}

static void linearize(const ax_jvp_args *args) {
  checkpoint_params params = *(const checkpoint_params *)args->eqn->params;
  const ax_saved saved = {saves, &params.saved, sizeof params.saved};
  ax_program *primal, *tangent;
  uint32_t residuals;
  ax_tangents t;
  if (!ax_tangents_init(&t, args)) return;
  const ax_prim *state = with_state(body_of(args->eqn), true);
  if (state != NULL) {
    ax_fail(ax_error(AX_ABSENT, "checkpoint has no derivatives where its body has an %s: it would be called again", state->name));
    return;
  }
  ax_status status = ax_remat_program(body_of(args->eqn), t.in, t.want, &saved, &primal, &tangent, &residuals);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  params.differentiated = true;
  ax_called_halves(&t, primal, tangent, residuals, &params);
  ax_program_release(primal);
  ax_program_release(tangent);
}

/* --- prune --- */

static ax_status prune(const ax_prune_args *args) {
  checkpoint_params *made = args->params;
  AX_TRY(ax_needs_program(args->memo, body_of(args->eqn), args->out, args->in));
  if (made == NULL) return AX_OK;
  *made = *(const checkpoint_params *)args->eqn->params;
  return ax_prune_program(args->memo, body_of(args->eqn), args->out, args->in, &made->call.body);
}

/* --- lower, hlo --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  bool late = ((const checkpoint_params *)eqn->params)->differentiated;
  return late ? ax_lower_call_late(lower, body_of(eqn), in, out) : ax_lower_call(lower, body_of(eqn), in, out);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_program *body = body_of(eqn);
  if (!((const checkpoint_params *)eqn->params)->differentiated || eqn->in_count == 0) return hlo->call_program(hlo, body, in, out);
  uint32_t first =
      ax_hlo_op(hlo, "stablehlo.optimization_barrier", in, eqn->in_count, NULL, body->types, eqn->in_count);
  uint32_t *held = ax_alloc(eqn->in_count * sizeof held[0]);
  if (held == NULL) return ax_out_of_memory(eqn->in_count * sizeof held[0]);
  for (uint32_t i = 0; i < eqn->in_count; i++) held[i] = first + i;
  ax_status status = hlo->call_program(hlo, body, held, out);
  ax_free(held);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {{"body", AX_PARAM_PROGRAM, offsetof(checkpoint_params, call.body)},
                                  {"differentiated", AX_PARAM_BOOL, offsetof(checkpoint_params, differentiated)},
                                  {"save_everything", AX_PARAM_BOOL, offsetof(checkpoint_params, saved.everything)},
                                  {"save_dots", AX_PARAM_BOOL, offsetof(checkpoint_params, saved.dots)},
                                  {"save_unbatched_dots", AX_PARAM_BOOL, offsetof(checkpoint_params, saved.unbatched_dots)},
                                  {"save_names", AX_PARAM_NAMES, offsetof(checkpoint_params, saved.names)},
                                  {"save_other_names", AX_PARAM_BOOL, offsetof(checkpoint_params, saved.other_names)},
                                  {"but_names", AX_PARAM_NAMES, offsetof(checkpoint_params, saved.but_names)},
                                  {"save_primitives", AX_PARAM_NAMES, offsetof(checkpoint_params, saved.primitives)}};

const ax_prim ax_prim_checkpoint = {
    .name = "checkpoint",
    .kind = AX_REGION,
    .unify = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = ax_called_outs,
    AX_PARAMS(params, checkpoint_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = ax_called_eval,
    .differs = ax_called_differs,
    .links = ax_region_links_call,
    .jvp = ax_called_jvp,
    .linearize = linearize,
    .transpose = ax_called_transpose,
    .batch = ax_called_batch,
    .simplify = ax_simplify_nothing,
    .prune = prune,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = hlo,
};

/* --- The function --- */

/* An unknown primitive is a slip. */
static bool parse_primitives(const char *words, ax_axes *out) {
  if (!ax_parse_words("checkpoint", words, out)) return false;
  for (uint32_t i = 0; i < out->count; i++) {
    if (ax_prim_find(out->name[i], strlen(out->name[i])) != NULL) continue;
    (void)ax_reject_as("checkpoint", "there is no primitive \"%s\" to save the results of", out->name[i]);
    return false;
  }
  return true;
}

static bool take_options(const ax_checkpoint_options *options, policy *out) {
  out->everything = options->save_everything;
  out->dots = options->save_dots;
  out->unbatched_dots = options->save_unbatched_dots;
  out->other_names = options->save_names_but != NULL;
  return (options->save_names == NULL || ax_parse_words("checkpoint", options->save_names, &out->names)) &&
         (options->save_names_but == NULL || ax_parse_words("checkpoint", options->save_names_but, &out->but_names)) &&
         (options->save_primitives == NULL || parse_primitives(options->save_primitives, &out->primitives));
}

void (ax_checkpoint)(ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out,
                     const ax_checkpoint_options *options) {
  if (!ax_lists_fit("checkpoint", in_count, f.in_count, out_count, f.out_count, out)) return;
  checkpoint_params made = {0};
  if (options == NULL || take_options(options, &made.saved)) ax_called_function(&ax_prim_checkpoint, &made, f, in, out);
}
