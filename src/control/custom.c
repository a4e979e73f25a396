/* Functions with derivatives of their own (custom.h): they are traced one after the other, and then given the same operands. */
#include "control/custom.h"

#include <string.h>

#include "hlo/hlo.h"
#include "ir/flow.h"
#include "ir/prim.h"
#include "plan/lower.h"
#include "prim/composite.h"

/* --- Tracing --- */

static void join(ax_spread *all, const ax_spread *on) {
  if (on->unreduced != 0) all->kind = on->kind;
  all->unreduced |= on->unreduced;
  all->varying |= on->varying;
  all->reduced |= on->reduced;
  all->reduced &= ~(all->varying | all->unreduced);
}

bool ax_custom_init(ax_custom *c, const char *owner, ax_fn function, const ax_value *in, ax_value *out) {
  *c = (ax_custom){.owner = owner, .in_count = function.in_count, .out_count = function.out_count};
  c->in = ax_take_operands(in, function.in_count, out, function.out_count);
  c->types = ax_types_of(owner, c->in, function.in_count);
  return c->types != NULL && ax_custom_trace(c, "function", function, c->types, NULL);
}

void ax_custom_deinit(ax_custom *c) {
  for (uint32_t b = 0; b < c->body_count; b++) ax_body_deinit(&c->body[b]);
}

bool ax_custom_trace(ax_custom *c, const char *part, ax_fn function, const ax_type *in, const ax_spread *out_spread) {
  assert(c->body_count < AX_CUSTOM_FUNCTIONS);
  ax_body_options options = {.owner = c->owner, .part = part, .function = function, .in = in, .out_spread = out_spread};
  ax_status status = ax_body_trace(&options, &c->body[c->body_count++]);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: %s: ", c->owner, part));
  return status == AX_OK;
}

bool ax_custom_join(ax_custom *c, const char *part) {
  const ax_program *call = c->body[0].program, *other = c->body[1].program;
  c->spread = ax_trace_alloc(c->out_count * sizeof c->spread[0]);
  for (uint32_t k = 0; c->spread != NULL && k < c->out_count; k++) {
    const ax_type *type = ax_program_out_type(call, k), *made = ax_program_out_type(other, k);
    if (type->form != made->form || type->dtype != made->dtype || !ax_same_shape(type, made)) {
      ax_reject_as(c->owner, "result %u is %s, but %s gives %s", k, ax_operand_string(type), part, ax_operand_string(made));
      return false;
    }
    join(&c->spread[k], &type->spread);
    join(&c->spread[k], &made->spread);
  }
  return !ax_failed();
}

ax_type ax_custom_result(const ax_custom *c, uint32_t k) {
  ax_type type = *ax_program_out_type(c->body[0].program, k);
  type.spread = c->spread[k];
  return type;
}

uint32_t ax_custom_float_operands(const ax_custom *c) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->in_count; i++) count += ax_is_differentiable(c->types[i].dtype);
  return count;
}

uint32_t ax_custom_float_results(const ax_custom *c) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < c->out_count; k++) count += ax_is_differentiable(ax_program_out_type(c->body[0].program, k)->dtype);
  return count;
}

uint32_t ax_custom_captured(const ax_custom *c) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < c->body_count; b++) count += c->body[b].captured_count;
  return count;
}

ax_axis_set ax_custom_grown(const ax_custom *c) {
  ax_axis_set varying = 0, own = ~(ax_axis_set)0;
  for (uint32_t i = 0; i < c->in_count; i++) own &= c->types[i].spread.varying;
  for (uint32_t b = 0; b < c->body_count; b++)
    for (uint32_t k = 0; k < c->out_count; k++) varying |= ax_program_out_type(c->body[b].program, k)->spread.varying;
  for (uint32_t i = 0; i < c->in_count; i++) varying |= c->types[i].spread.varying;
  return c->in_count > 0 ? varying & ~own : 0;
}

const ax_value *ax_custom_spread(const ax_custom *c, ax_axis_set varying) {
  ax_value *in = ax_trace_alloc(c->in_count * sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < c->in_count; i++) {
    ax_spread spread = c->types[i].spread;
    spread.varying |= varying;
    in[i] = ax_spread_to(c->in[i], &spread);
  }
  return ax_failed() ? NULL : in;
}

/* The place of a body's captured values among the captured values of all bodies. */
static uint32_t first_captured(const ax_custom *c, uint32_t body) {
  uint32_t first = 0;
  for (uint32_t b = 0; b < body; b++) first += c->body[b].captured_count;
  return first;
}

static ax_type *input_types(const ax_custom *c, const ax_custom_part *part, uint32_t *count) {
  *count = ax_custom_captured(c) + c->in_count + part->more_count;
  ax_type *types = ax_trace_alloc(*count * sizeof types[0]), *next = types;
  if (types == NULL) return NULL;
  for (uint32_t b = 0; b < c->body_count; b++)
    for (uint32_t i = 0; i < c->body[b].captured_count; i++) *next++ = c->body[b].program->types[i];
  for (uint32_t i = 0; i < c->in_count; i++) *next++ = c->types[i];
  for (uint32_t i = 0; i < part->more_count; i++) *next++ = part->more[i];
  return types;
}

/* Calls the body on its own of `given`. Gives its results, with the values kept among them. NULL: the trace has failed. */
static ax_value *call_part(const ax_custom *c, const ax_custom_part *part, const ax_value *given, uint32_t *out_count) {
  const ax_body *body = &c->body[part->body];
  const ax_program *program = body->program;
  uint32_t kept = part->keeps != AX_NONE ? c->body[part->keeps].captured_count : 0, all = ax_custom_captured(c);
  const ax_value *captured = given + first_captured(c, part->body);
  ax_value *in = ax_trace_alloc(program->in_count * sizeof in[0]), *made = ax_trace_alloc(program->out_count * sizeof made[0]);
  ax_value *outs = ax_trace_alloc((program->out_count + (size_t)kept) * sizeof outs[0]);
  if (ax_failed()) return NULL;
  for (uint32_t i = 0; i < program->in_count; i++)
    in[i] = i < body->captured_count ? captured[i] : given[all + i - body->captured_count];
  ax_call(program, in, made);
  *out_count = 0;
  for (uint32_t k = 0; k < part->spread_count; k++) outs[(*out_count)++] = ax_spread_to(made[k], &part->spread[k]);
  for (uint32_t i = 0; i < kept; i++) outs[(*out_count)++] = given[first_captured(c, part->keeps) + i];
  for (uint32_t k = part->spread_count; k < program->out_count; k++) outs[(*out_count)++] = made[k];
  return outs;
}

ax_program *ax_custom_program(const ax_custom *c, const ax_custom_part *part) {
  uint32_t in_count, out_count = 0;
  ax_program *program;
  ax_builder builder;
  const ax_type *types = input_types(c, part, &in_count);
  if (types == NULL) return NULL;
  const ax_value *given = ax_region_begin(&builder, &c->body[part->body].program->axes, types, in_count);
  const ax_value *outs = given != NULL ? call_part(c, part, given, &out_count) : NULL;
  ax_status status = ax_region_finish(&builder, outs, out_count, &program);
  if (status != AX_OK) ax_fail(status);
  return status == AX_OK ? ax_unify_program(program) : NULL;
}

void ax_custom_bind(const ax_custom *c, const ax_prim *prim, const void *params, ax_value *out) {
  uint32_t captured = ax_custom_captured(c), count = 0;
  ax_value *all = ax_trace_alloc((captured + (size_t)c->in_count) * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t b = 0; b < c->body_count; b++)
    for (uint32_t i = 0; i < c->body[b].captured_count; i++) all[count++] = c->body[b].captured[i];
  for (uint32_t i = 0; i < c->in_count; i++) all[count++] = c->in[i];
  ax_bind(prim, params, all, count, out, c->out_count);
}

/* --- Rules --- */

ax_status ax_custom_check(const ax_infer_args *args, const ax_program *program, const char *what, uint32_t more, uint32_t results) {
  AX_TRY(ax_region_check_axes(program, args->axes, what));
  if (program->in_count != args->in_count + more || program->out_count < results)
    return ax_error(AX_INVALID_ARGUMENT, "%s takes %u values and gives %u; it must take %u and give %u at least", what,
                    program->in_count, program->out_count, args->in_count + more, results);
  for (uint32_t i = 0; i < args->in_count; i++)
    AX_TRY(ax_region_check_type(&args->in[i], &program->types[i], args->axes, "operand", i, "is", "a program takes"));
  return AX_OK;
}

ax_status ax_custom_check_results(const ax_infer_args *args, const ax_program *call, const ax_program *program, const char *what) {
  for (uint32_t k = 0; k < args->out_count; k++) {
    const ax_type *type = &call->types[call->outs[k]];
    if (type->form != AX_ARRAY)
      return ax_error(AX_INVALID_ARGUMENT, "result %u is %s, but must be an array", k, ax_type_string(type, args->axes));
    AX_TRY(ax_region_check_type(&program->types[program->outs[k]], type, args->axes, what, k, "is", "that of the function is"));
    args->out[k] = *type;
  }
  return AX_OK;
}

bool ax_custom_check_captured(const ax_jvp_args *args, uint32_t num_consts) {
  for (uint32_t i = 0; i < num_consts && !ax_failed(); i++) {
    if (ax_is_zero(args->tangent_in[i])) continue;
    ax_type type = ax_typeof(args->in[i]);
    ax_reject(args->eqn->prim,
              "derivatives are taken by a value %s that its functions use without being given it; make it an operand, or use its "
              "stop_gradient",
              ax_operand_string(&type));
  }
  return !ax_failed();
}

void ax_custom_differs(const ax_differs_args *args, const ax_program *call, const ax_program *other, const ax_axis_set *more) {
  const ax_eqn *eqn = args->eqn;
  uint32_t more_count = other->in_count - eqn->in_count;
  ax_axis_set *in = ax_differs_alloc(args, other->in_count), *made = ax_differs_alloc(args, other->out_count), any = 0;
  if (in == NULL || made == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) any |= in[i] = args->in[i];
  for (uint32_t i = 0; i < more_count; i++) in[eqn->in_count + i] = more[i];
  if (!ax_region_differs(args, call, args->in, args->out) || !ax_region_differs(args, other, in, made)) return;
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    args->out[k] |= made[k];
    if (args->flow->tangents && ax_is_differentiable(call->types[call->outs[k]].dtype)) args->out[k] |= any;
  }
}

/* --- lower, hlo --- */

ax_status ax_custom_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_call(lower, ax_eqn_program(eqn, 0), in, out);
}

ax_status ax_custom_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return hlo->call_program(hlo, ax_eqn_program(eqn, 0), in, out);
}

/* --- prune --- */

ax_status ax_custom_needs(const ax_prune_args *args, uint32_t first, const ax_program *call, const ax_program *other,
                          const bool *out) {
  bool *in = ax_arena_alloc(&args->memo->arena, other->in_count);
  if (in == NULL) return ax_out_of_memory(other->in_count);
  AX_TRY(ax_needs_program(args->memo, call, args->out, args->in));
  AX_TRY(ax_needs_program(args->memo, other, out, in));
  for (uint32_t i = 0; i < args->eqn->in_count; i++) args->in[i] = args->in[i] || in[i] || i >= first;
  return AX_OK;
}

/* The program with zeros for the inputs that are not marked. */
static ax_status with_zeros(ax_memo *memo, const ax_program *program, const bool *given, ax_program **out) {
  ax_builder builder;
  ax_type *types = ax_arena_alloc(&memo->arena, program->in_count * sizeof types[0]);
  uint32_t count = 0;
  *out = NULL;
  if (types == NULL) return ax_out_of_memory(program->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < program->in_count; i++)
    if (given[i]) types[count++] = program->types[i];
  const ax_value *next = ax_region_begin(&builder, &program->axes, types, count);
  ax_value *in = ax_trace_alloc(program->in_count * sizeof in[0]), *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  for (uint32_t i = 0; i < program->in_count && !ax_failed(); i++) {
    ax_type tangent = ax_dual(&program->types[i]);
    in[i] = given[i] ? *next++ : ax_zero_cotangent(&tangent);
  }
  if (!ax_failed()) ax_call(program, in, outs);
  return ax_region_finish(&builder, outs, program->out_count, out);
}

/* Once in a transform for each set of inputs. */
static ax_status with_zeros_once(ax_memo *memo, const ax_program *program, const bool *given, ax_program **out) {
  ax_memo_entry *entry = ax_memo_ask(memo, "zero cotangents", program, given, program->in_count);
  *out = NULL;
  if (entry == NULL) return ax_out_of_memory(0);
  if (!entry->known) AX_TRY(with_zeros(memo, program, given, &entry->made[0]));
  entry->known = true;
  *out = ax_program_retain(entry->made[0]);
  return AX_OK;
}

ax_status ax_custom_prune_backward(ax_memo *memo, const ax_program *backward, uint32_t residuals, const bool *in,
                                   ax_program **out) {
  bool *marks = ax_arena_alloc(&memo->arena, 2 * (size_t)backward->in_count + backward->out_count);
  uint32_t count = 0, given_count = 0;
  *out = NULL;
  if (marks == NULL) return ax_out_of_memory(2 * (size_t)backward->in_count + backward->out_count);
  bool *kept = marks, *given = kept + backward->in_count, *all = given + backward->in_count;
  for (uint32_t k = 0; k < backward->out_count; k++) all[k] = true;
  for (uint32_t i = 0; i < backward->in_count; i++) {
    kept[i] = i >= residuals || in[i];
    if (!kept[i]) continue;
    given[count++] = in[i];
    given_count += in[i];
  }
  ax_program *pruned;
  AX_TRY(ax_prune_program(memo, backward, all, kept, &pruned));
  if (given_count == count) {
    *out = pruned;
    return AX_OK;
  }
  ax_status status = with_zeros_once(memo, pruned, given, out);
  ax_program_release(pruned);
  return status;
}
