/* closed_call: T0.., -> R0..         body on the operands: a function that stays a call
   Parameters: body, a program in the environment of the equation.
   Errors: operands that do not fit the body.
   Linear where its body is linear; each transform is that of the body. Equations that share a body, as equal layers do, share its
   transforms and its lowered form: the body is transformed once for each set of operands that take part, and lowered once
   (plan/fragment.c). */
#include "control/closed_call.h"

#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/memo.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/rules.h"

static ax_program *body_of(const ax_eqn *eqn) { return ((const ax_closed_call_params *)eqn->params)->body; }

uint32_t ax_called_outs(const void *params) { return ((const ax_closed_call_params *)params)->body->out_count; }

/* --- infer, eval, differs, links --- */

ax_status ax_called_infer(const ax_infer_args *args) {
  const ax_program *body = ((const ax_closed_call_params *)args->params)->body;
  AX_TRY(ax_region_check_axes(body, args->axes, "the body"));
  if (body->in_count != args->in_count || body->out_count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u values and gives %u, not %u and %u", body->in_count, body->out_count,
                    args->in_count, args->out_count);
  for (uint32_t i = 0; i < args->in_count; i++)
    AX_TRY(ax_region_check_type(&args->in[i], &body->types[i], args->axes, "operand", i, "is", "the body takes"));
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k] = body->types[body->outs[k]];
  return AX_OK;
}

ax_status ax_called_eval(const ax_eval_args *args) {
  return ax_evaluate_lanes(args->driver, body_of(args->eqn), args->lanes, args->device, args->in, args->out);
}

void ax_called_differs(const ax_differs_args *args) { (void)ax_region_differs(args, body_of(args->eqn), args->in, args->out); }

static ax_region_link links(const ax_region_link_args *args) {
  ax_region_link link = ax_region_links_call(args);
  link.once = !args->is_output;
  return link;
}

/* --- jvp, linearize --- */

/* The parameters of `prim` with another body; NULL: the trace has failed. */
static const void *with_body(const ax_prim *prim, const void *params, ax_program *body) {
  ax_closed_call_params *made = ax_trace_alloc(prim->params_bytes);
  if (made == NULL) return NULL;
  memcpy(made, params, prim->params_bytes);
  made->body = body;
  return made;
}

ax_value *ax_called_bind(const ax_prim *prim, const void *params, ax_program *body, const ax_value *in) {
  const void *made = with_body(prim, params, body);
  ax_value *out = ax_trace_alloc(body->out_count * sizeof out[0]);
  if (made != NULL && out != NULL) ax_bind(prim, made, in, body->in_count, out, body->out_count);
  return ax_failed() ? NULL : out;
}

/* The same for a body that it consumes, which may be NULL. */
static ax_value *bind(ax_status status, const ax_eqn *eqn, ax_program *body, const ax_value *in) {
  if (status != AX_OK) ax_fail(status);
  ax_value *out = status == AX_OK ? ax_called_bind(eqn->prim, eqn->params, body, in) : NULL;
  ax_program_release(body);
  return out;
}

void ax_called_jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_program *body;
  ax_tangents t;
  if (!ax_tangents_init(&t, args)) return;
  ax_value *in = ax_trace_alloc((eqn->in_count + (size_t)t.in_count) * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = args->in[i];
  ax_tangents_take(&t, in + eqn->in_count);
  ax_status status = ax_jvp_program(body_of(eqn), t.in, t.want, &body);
  ax_value *out = bind(status, eqn, body, in);
  if (out != NULL) ax_tangents_give(&t, out, out + eqn->out_count);
}

void ax_called_halves(const ax_tangents *t, ax_program *primal, ax_program *tangent, uint32_t residuals,
                      const void *tangent_params) {
  const ax_eqn *eqn = t->args->eqn;
  ax_value *in = ax_trace_alloc((residuals + (size_t)t->in_count) * sizeof in[0]);
  ax_value *out = ax_called_bind(eqn->prim, eqn->params, primal, t->args->in);
  if (in == NULL || out == NULL) return;
  for (uint32_t r = 0; r < residuals; r++) {
    uint32_t id = primal->outs[eqn->out_count + r];
    in[r] = id < eqn->in_count ? t->args->in[id] : out[eqn->out_count + r];
  }
  ax_tangents_take(t, in + residuals);
  ax_value *tangents = ax_called_bind(eqn->prim, tangent_params, tangent, in);
  if (tangents != NULL) ax_tangents_give(t, out, tangents);
}

/* The halves as they are, so that all calls of the body share them: residuals that are operands leave the first one too, where
   pruning finds that they are not used. */
static void linearize(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_program *primal, *tangent;
  uint32_t residuals;
  ax_tangents t;
  if (!ax_tangents_init(&t, args)) return;
  ax_status status = ax_linearize_program(body_of(eqn), t.in, t.want, NULL, &primal, &tangent, &residuals);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_called_halves(&t, primal, tangent, residuals, eqn->params);
  ax_program_release(primal);
  ax_program_release(tangent);
}

/* --- transpose, batch --- */

static void bind_transposed(const ax_eqn *eqn, ax_program *transposed, const ax_value *in, ax_value *out) {
  const void *params = with_body(eqn->prim, eqn->params, transposed);
  if (params != NULL) ax_bind(eqn->prim, params, in, transposed->in_count, out, transposed->out_count);
}
void ax_called_transpose(const ax_transpose_args *args) { ax_transpose_by_body(args, body_of(args->eqn), bind_transposed); }

void ax_called_batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_program *body;
  ax_status status = ax_batch_program(body_of(eqn), args->in_dim, args->size, args->axis, NULL, args->out_dim, &body);
  const ax_value *out = bind(status, eqn, body, args->in);
  for (uint32_t k = 0; out != NULL && k < eqn->out_count; k++) args->out[k] = out[k];
}

/* --- rewrite --- */

enum { few = 4, most_variants = 16 };

/* A call of few cheap equations is no shorter than these, and among them what uses its results can be simplified. */
static bool is_short(const ax_program *body) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < body->eqn_count && count <= few; i++) {
    const ax_eqn *eqn = &body->eqns[i];
    const bool literal = ax_eqn_literal(eqn) != NULL;
    if (!literal && (eqn->prim->kind != AX_LOCAL || !eqn->prim->cheap)) return false;
    count += !literal;
  }
  return count <= few;
}

/* The truth value that is known to be operand i: with it a body needs but one side of each choice. Other numbers decide less, and could be
   others in each call, each of which would then have a body of its own. */
static const ax_eqn *known_choice(const ax_rewrite_args *args, uint32_t i) {
  const ax_literal *literal = ax_made_literal(args->made_by, args->eqn->in[i]);
  return literal != NULL && literal->type.dtype == AX_BOOL ? args->made_by[args->eqn->in[i]] : NULL;
}

static bool knows_choices(const ax_rewrite_args *args) {
  for (uint32_t i = 0; i < args->eqn->in_count; i++)
    if (known_choice(args, i) != NULL) return true;
  return false;
}

/* The body with the known choices in the place of operands. */
static ax_status make_chosen(const ax_rewrite_args *args, ax_program **out) {
  const ax_program *body = body_of(args->eqn);
  ax_type *types = ax_trace_alloc(body->in_count * sizeof types[0]);
  uint32_t count = 0;
  if (types == NULL) return ax_out_of_memory(body->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < body->in_count; i++)
    if (known_choice(args, i) == NULL) types[count++] = body->types[i];
  ax_builder builder;
  const ax_value *given = ax_region_begin(&builder, &body->axes, types, count);
  ax_value *in = ax_trace_alloc(body->in_count * sizeof in[0]), *outs = ax_trace_alloc(body->out_count * sizeof outs[0]);
  for (uint32_t i = 0; given != NULL && in != NULL && i < body->in_count; i++) {
    const ax_eqn *known = known_choice(args, i);
    if (known != NULL) ax_emit(known->prim, known->params, NULL, 0, &in[i], 1);
    else in[i] = *given++;
  }
  if (given != NULL && in != NULL && outs != NULL) (ax_call)(body, AX_LIST(body->in_count, in), AX_LIST(body->out_count, outs));
  return ax_region_finish(&builder, outs, body->out_count, out);
}

/* Calls of one body with the same choices share what becomes of it. *out NULL: the body has so many variants already that the call stays
   as it is; functions that call each other twice, with another choice each, would double them with each level. */
static ax_status chosen(const ax_rewrite_args *args, ax_program **out) {
  ax_memo *memo = ax_builder_current()->memo;
  const uint32_t count = args->eqn->in_count;
  int8_t *key = ax_trace_alloc(count * sizeof key[0]);
  *out = NULL;
  for (uint32_t i = 0; key != NULL && i < count; i++) {
    const ax_eqn *known = known_choice(args, i);
    key[i] = known == NULL ? -1 : *(const bool *)ax_eqn_literal(known)->data;
  }
  if (memo == NULL) return make_chosen(args, out);
  ax_memo_entry *entry = key == NULL ? NULL : ax_memo_ask(memo, "chosen", body_of(args->eqn), key, count),
                *variants = ax_memo_ask(memo, "variants", body_of(args->eqn), NULL, 0);
  if (entry == NULL || variants == NULL) return ax_out_of_memory(count);
  if (!entry->known && variants->count == most_variants) return AX_OK;
  if (!entry->known) AX_TRY(make_chosen(args, &entry->made[0]));
  variants->count += !entry->known;
  entry->known = true;
  *out = ax_program_retain(entry->made[0]);
  return AX_OK;
}

static void choose(const ax_rewrite_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  ax_program *body;
  uint32_t count = 0;
  if (in == NULL) return;
  const ax_status status = chosen(args, &body);
  const bool stays = status == AX_OK && body == NULL;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (stays || known_choice(args, i) == NULL) in[count++] = args->values[eqn->in[i]];
  if (stays) body = ax_program_retain(body_of(eqn));
  const ax_value *out = bind(status, eqn, body, in);
  for (uint32_t k = 0; out != NULL && k < eqn->out_count; k++) args->out[k] = out[k];
}

void ax_called_in_place(const ax_rewrite_args *args, uint32_t first, const ax_program *body) {
  ax_value *in = ax_trace_alloc(body->in_count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < body->in_count; i++) in[i] = args->values[args->eqn->in[first + i]];
  ax_builder_current()->number = 0; /* that of the equation would be taken for theirs */
  (ax_call)(body, AX_LIST(body->in_count, in), AX_LIST(body->out_count, args->out));
}

static bool rewrite(const ax_rewrite_args *args) {
  const ax_program *body = body_of(args->eqn);
  const bool writes_out = is_short(body);
  if (!writes_out && !knows_choices(args)) return false;
  if (args->values == NULL) return true;
  if (writes_out) ax_called_in_place(args, 0, body);
  else choose(args);
  return true;
}

/* --- lower, hlo --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_call(lower, body_of(eqn), in, out);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return hlo->call_program(hlo, body_of(eqn), in, out);
}

/* --- The record --- */

static const ax_param params[] = {{"body", AX_PARAM_PROGRAM, offsetof(ax_closed_call_params, body)}};

static ax_status call_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *callee = ax_hlo_find(args->op, "callee");
  if (callee == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute callee is missing");
  return ax_hlo_call(args, callee->text);
}

/* Whether a composite is chlo.top_k, as which XLA's clients send jax.lax.top_k. Its decomposition sorts all of each row. Floats of a
   byte have another order there, and stay. */
static bool is_top_k(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *name = ax_hlo_find(args->op, "name"), *attributes = ax_hlo_find(args->op, "composite_attributes"),
                         *version = ax_hlo_find(args->op, "version");
  return name != NULL && ax_hlo_slice_is(name->text, "chlo.top_k") && attributes != NULL && attributes->kind == AX_HLO_DICTIONARY &&
         ax_hlo_item(attributes, "k") != NULL && (version == NULL || version->integer <= 1) && args->op->operand_count == 1 &&
         !ax_is_byte_float(ax_typeof(args->in[0]).dtype);
}

static ax_status top_k_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *attributes = ax_hlo_find(args->op, "composite_attributes");
  ax_hlo_operation op = *args->op;
  ax_hlo_read_args other = *args;
  op.attributes = attributes->items, op.attribute_count = attributes->count;
  other.op = &op;
  return ax_hlo_read_as(&other, "chlo.top_k", args->in);
}

/* The decomposition says what a composite means. */
static ax_status composite_read(const ax_hlo_read_args *args) {
  if (is_top_k(args)) return top_k_read(args);
  const ax_hlo_attribute *decomposition = ax_hlo_find(args->op, "decomposition");
  if (decomposition == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute decomposition is missing");
  return ax_hlo_call(args, decomposition->text);
}

static const ax_hlo_reader readers[] = {{"func.call", call_read}, {"stablehlo.composite", composite_read}, {0}};

const ax_prim ax_prim_closed_call = {
    .name = "closed_call",
    .kind = AX_REGION,
    .tokens = true,
    .memory = true,
    .unify = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = ax_called_outs,
    AX_PARAMS(params, ax_closed_call_params),
    .infer = ax_called_infer,
    .spread = ax_spread_body,
    .eval = ax_called_eval,
    .differs = ax_called_differs,
    .links = links,
    .jvp = ax_called_jvp,
    .linearize = linearize,
    .transpose = ax_called_transpose,
    .batch = ax_called_batch,
    .simplify = ax_simplify_nothing,
    .rewrite = rewrite,
    .prune = ax_prune_body,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .reads = readers, .hlo = hlo,
};

/* --- The function --- */

void ax_called_function(const ax_prim *prim, const void *params, ax_fn function, const ax_value *in, ax_value *out) {
  uint32_t in_count = function.in_count;
  in = ax_take_operands(in, in_count, out, function.out_count);
  const ax_type *types = ax_types_of(prim->name, in, in_count);
  if (types == NULL) return;
  ax_body body;
  ax_status status =
      ax_body_trace(&(ax_body_options){.owner = prim->name, .part = "function", .function = function, .in = types}, &body);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: function: ", prim->name));
    return;
  }
  uint32_t count = body.captured_count + in_count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  for (uint32_t i = 0; all != NULL && i < count; i++)
    all[i] = i < body.captured_count ? body.captured[i] : in[i - body.captured_count];
  body.program = ax_unify_program(body.program);
  const void *made = all != NULL ? with_body(prim, params, body.program) : NULL;
  if (made != NULL) ax_bind(prim, made, all, count, out, function.out_count);
  ax_body_deinit(&body);
}

void (ax_closed_call)(ax_fn function, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("closed_call", in_count, function.in_count, out_count, function.out_count, out)) return;
  ax_called_function(&ax_prim_closed_call, &(ax_closed_call_params){NULL}, function, in, out);
}
