/* Bodies: traced with what they capture, permuted, checked for communication under divergent control, run lane by lane, lowered. */
#include "ir/path.h"
#include "prim/prims.h"
#include "prim/region.h"

#include <stdlib.h>
#include <string.h>

#include "ir/flow.h"
#include "ir/prim.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/settle.h"

/* --- Tracing --- */

void ax_body_deinit(ax_body *body) {
  ax_program_release(body->program);
  ax_free(body->captured);
  *body = (ax_body){0};
}

ax_status ax_body_open(const ax_body_options *options, ax_value **in) {
  ax_builder *builder;
  *in = NULL;
  AX_TRY(ax_builder_open(options->axes, &builder));
  builder->owner = options->owner;
  builder->part = options->part;
  builder->capture_varying = options->capture_varying;
  if (options->notes != NULL) ax_settle_inside(options->notes);
  *in = ax_trace_alloc(options->function.in_count * sizeof in[0][0]);
  for (uint32_t i = 0; *in != NULL && i < options->function.in_count; i++) (*in)[i] = ax_builder_input(builder, &options->in[i]);
  return AX_OK;
}

ax_status ax_body_close(const ax_body_options *options, ax_value *outs, ax_body *out) {
  ax_builder *builder = ax_builder_current();
  *out = (ax_body){0};
  for (uint32_t k = 0; outs != NULL && options->out_spread != NULL && k < options->function.out_count; k++)
    outs[k] = ax_spread_to(outs[k], &options->out_spread[k]);
  for (uint32_t k = 0; outs != NULL && options->out_invariant != 0 && k < options->function.out_count; k++)
    outs[k] = ax_cast(&ax_prim_reduced_invariant_cast, outs[k], ax_typeof(outs[k]).spread.reduced & options->out_invariant);
  return ax_builder_finish(builder, outs, options->function.out_count, &out->program, &out->captured, &out->captured_count);
}

ax_status ax_body_trace(const ax_body_options *options, ax_body *out) {
  ax_value *in;
  *out = (ax_body){0};
  AX_TRY(ax_body_open(options, &in));
  return ax_body_close(options, ax_builder_call(options->function, in), out);
}

ax_type *ax_types_of(const char *function, const ax_value *in, uint32_t count) {
  if (!ax_check_operands(function, in, count)) return NULL;
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  for (uint32_t i = 0; i < count && types != NULL; i++) types[i] = ax_typeof(in[i]);
  return ax_failed() ? NULL : types;
}

ax_value *ax_region_begin(ax_builder *builder, const ax_mesh *axes, const ax_type *in, uint32_t in_count) {
  ax_builder_begin(builder, axes);
  builder->seals = true;
  ax_value *values = ax_trace_alloc(in_count * sizeof values[0]);
  for (uint32_t i = 0; values != NULL && i < in_count; i++) values[i] = ax_builder_input(builder, &in[i]);
  return ax_failed() ? NULL : values;
}

ax_status ax_region_finish(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out) {
  return ax_builder_finish(builder, outs, out_count, out, NULL, NULL);
}

/* --- Transforming --- */

ax_status ax_region_rearrange(const ax_program *program, const ax_type *in, uint32_t in_count, const uint32_t *in_at,
                              const uint32_t *out_from, uint32_t out_count, ax_program **out) {
  ax_builder builder;
  ax_value *given = ax_region_begin(&builder, &program->axes, in, in_count);
  ax_value *operands = ax_trace_alloc(program->in_count * sizeof operands[0]);
  ax_value *results = ax_trace_alloc(program->out_count * sizeof results[0]);
  ax_value *outs = ax_trace_alloc(out_count * sizeof outs[0]);
  if (given != NULL && operands != NULL && results != NULL && outs != NULL) {
    for (uint32_t i = 0; i < program->in_count; i++) operands[i] = given[in_at[i]];
    ax_call(program, operands, results);
    for (uint32_t k = 0; k < out_count; k++) outs[k] = results[out_from[k]];
  }
  return ax_region_finish(&builder, outs, out_count, out);
}

ax_status ax_region_permute(const ax_program *program, const uint32_t *in_at, const uint32_t *out_from,
                            uint32_t out_count, ax_program **out) {
  *out = NULL;
  ax_type *in = ax_calloc(program->in_count, sizeof in[0]);
  if (in == NULL) return ax_out_of_memory(program->in_count * sizeof in[0]);
  for (uint32_t i = 0; i < program->in_count; i++) in[in_at[i]] = program->types[i];
  ax_status status = ax_region_rearrange(program, in, program->in_count, in_at, out_from, out_count, out);
  ax_free(in);
  return status;
}

/* --- Checking --- */

ax_status ax_region_check_axes(const ax_program *body, const ax_mesh *axes, const char *what) {
  const ax_mesh *own = &body->axes;
  if (own->count == 0 || ax_mesh_equal(own, axes, true)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s is a program over the axes %s, but here they are %s", what,
                  ax_axis_set_string(ax_all_axes(own), own), ax_axis_set_string(ax_all_axes(axes), axes));
}

/* The first axis along which the two spread differently; `count` where there is none. */
static uint32_t differing_axis(const ax_type *a, const ax_type *b, const ax_mesh *axes) {
  uint32_t axis = 0;
  while (axis < axes->count && strcmp(ax_state_name(&a->spread, axis), ax_state_name(&b->spread, axis)) == 0) axis++;
  return axis;
}

ax_status ax_region_check_type(const ax_type *type, const ax_type *wanted, const ax_mesh *axes, const char *what,
                               uint32_t index, const char *is, const char *but) {
  if (ax_type_equal(type, wanted)) return AX_OK;
  uint32_t axis = differing_axis(type, wanted, axes);
  if (axis == axes->count)
    return ax_error(AX_INVALID_ARGUMENT, "%s %u %s %s, but %s %s", what, index, is, ax_type_string(type, axes), but,
                    ax_type_string(wanted, axes));
  return ax_error(AX_INVALID_ARGUMENT, "%s %u %s %s, but %s %s: along \"%s\" the one is %s and the other %s", what, index, is,
                  ax_type_string(type, axes), but, ax_type_string(wanted, axes), axes->axis[axis].name,
                  ax_state_name(&type->spread, axis), ax_state_name(&wanted->spread, axis));
}

ax_status ax_region_check_tokens(const ax_program *body, uint32_t first, uint32_t count, const char *what) {
  for (uint32_t i = first; i < first + count; i++)
    if (body->types[i].form == AX_TOKEN)
      return ax_error(AX_INVALID_ARGUMENT, "the body of %s uses a token from outside, and would again each time round; carry it",
                      what);
  return AX_OK;
}

ax_status ax_region_check_memory(const ax_infer_args *args, uint32_t first, uint32_t count, const char *what) {
  for (uint32_t i = first; i < first + count; i++)
    if (ax_is_memory(args->in[i].form))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u is %s, which %s cannot carry; its body uses the one around, as a constant",
                      i, ax_type_string(&args->in[i], args->axes), what);
  return AX_OK;
}

static ax_axis_set communicates_over(const ax_eqn *eqn, const ax_mesh *axes) {
  ax_axis_set set = 0;
  if (eqn->prim->outside != NULL) return (eqn->prim->outside(eqn->params, &set) & AX_EFFECT_EXCHANGE) != 0 ? set : 0;
  if ((eqn->prim->effects & AX_EFFECT_EXCHANGE) == 0) return 0;
  for (uint32_t i = 0; i < eqn->prim->param_count; i++) {
    if (eqn->prim->params[i].kind != AX_PARAM_AXES) continue;
    const ax_axes *names = ax_param_at(eqn, &eqn->prim->params[i]);
    for (uint32_t j = 0; j < names->count; j++) {
      int axis = ax_mesh_find(axes, names->name[j]);
      if (axis >= 0) set |= (ax_axis_set)1 << axis;
    }
  }
  return set;
}

static ax_status refuse_exchange(const ax_eqn *eqn, const ax_program *body, ax_axis_set set, ax_axis_set meets, const ax_mesh *axes,
                                 const char *what) {
  const ax_path path = {.count = 1, .step = {{eqn, body, 0}}};
  ax_text where = {0};
  ax_path_text(&where, &path);
  ax_status status = ax_error(
      AX_INVALID_ARGUMENT,
      "devices may differ along %s in what they run here, so not all of them would reach the %s over %s in %s%s",
      ax_axis_set_string(set, axes), eqn->prim->name, ax_axis_set_string(meets, axes), what, where.data != NULL ? where.data : "");
  ax_text_deinit(&where);
  return status;
}

ax_status ax_region_check_silent(const ax_program *body, ax_axis_set set, const ax_mesh *axes, const char *what) {
  if (set == 0 || (body->effects & AX_EFFECT_EXCHANGE) == 0) return AX_OK;
  for (uint32_t i = 0; i < body->eqn_count; i++) {
    const ax_eqn *eqn = &body->eqns[i];
    ax_axis_set meets = communicates_over(eqn, axes) & set;
    if (meets != 0) return refuse_exchange(eqn, body, set, meets, axes, what);
    const ax_program *nested;
    for (uint32_t p = 0; (nested = ax_eqn_program(eqn, p)) != NULL; p++)
      AX_TRY(ax_region_check_silent(nested, set, axes, what));
  }
  return AX_OK;
}

/* --- Running --- */

ax_status ax_region_eval(const ax_eval_args *args, const ax_program *body, const uint32_t *lane, uint32_t count,
                         ax_tensor *const *const *in, ax_tensor **const *out) {
  if (count == 0) return AX_OK;
  ax_arena arena = {0};
  size_t in_bytes = (size_t)body->in_count * count * sizeof(ax_tensor *);
  size_t out_bytes = (size_t)body->out_count * count * sizeof(ax_tensor *);
  ax_tensor **ins = ax_arena_alloc(&arena, in_bytes), **outs = ax_arena_alloc(&arena, out_bytes);
  int64_t *device = ax_arena_alloc(&arena, count * sizeof device[0]);
  ax_status status = ins == NULL || outs == NULL || device == NULL ? ax_out_of_memory(in_bytes + out_bytes) : AX_OK;
  for (uint32_t j = 0; status == AX_OK && j < count; j++) {
    device[j] = args->device[lane[j]];
    for (uint32_t i = 0; i < body->in_count; i++) ins[i * count + j] = in[i][lane[j]];
  }
  if (status == AX_OK) status = ax_evaluate_lanes(args->driver, body, count, device, ins, outs);
  for (uint32_t k = 0; status == AX_OK && k < body->out_count; k++)
    for (uint32_t j = 0; j < count; j++) {
      ax_tensor_release(out[k][lane[j]]);
      out[k][lane[j]] = outs[k * count + j];
    }
  ax_arena_deinit(&arena);
  return status;
}

ax_status ax_region_eval_end(const ax_eval_args *args, ax_arena *scratch, ax_status status) {
  ax_arena_deinit(scratch);
  uint32_t count = status == AX_OK ? 0 : args->eqn->out_count * args->lanes;
  for (uint32_t i = 0; i < count; i++) {
    ax_tensor_release(args->out[i]);
    args->out[i] = NULL;
  }
  return status;
}

/* --- Lowering --- */

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* The carries' allocations, sorted; NULL: no memory. */
static uint32_t *roots_of(const ax_lower *lower, const uint32_t *carries, uint32_t count) {
  uint32_t *allocations = ax_calloc(count, sizeof allocations[0]);
  for (uint32_t k = 0; allocations != NULL && k < count; k++) allocations[k] = ax_lower_get(lower, carries[k])->allocation;
  if (allocations != NULL && count > 0) qsort(allocations, count, sizeof allocations[0], by_number);
  return allocations;
}

ax_status ax_region_lower_carries(ax_lower *lower, const uint32_t *carries, uint32_t *results, uint32_t count) {
  uint32_t *allocations = roots_of(lower, carries, count);
  ax_status status = allocations != NULL ? AX_OK : ax_out_of_memory(count * sizeof allocations[0]);
  for (uint32_t k = 0; k < count && status == AX_OK; k++) {
    ax_buffer from = *ax_lower_get(lower, results[k]);
    uint32_t copy;
    if (results[k] == carries[k] || bsearch(&from.allocation, allocations, count, sizeof allocations[0], by_number) == NULL)
      continue;
    status = ax_lower_buffer(lower, &from.type, from.axes, &copy);
    if (status == AX_OK) status = ax_lower_copy(lower, copy, results[k]);
    results[k] = copy;
  }
  ax_free(allocations);
  AX_TRY(status);
  for (uint32_t k = 0; k < count; k++)
    if (results[k] != carries[k]) AX_TRY(ax_lower_copy(lower, carries[k], results[k]));
  return AX_OK;
}

/* --- Variation --- */

bool ax_region_differs(const ax_differs_args *args, const ax_program *body, const ax_axis_set *in, ax_axis_set *out) {
  const ax_axis_set *all = ax_flow_program(args->flow, body, in);
  for (uint32_t k = 0; all != NULL && k < body->out_count; k++) out[k] = all[body->outs[k]];
  return all != NULL;
}

ax_axis_set *ax_differs_alloc(const ax_differs_args *args, size_t count) {
  ax_axis_set *sets = ax_arena_alloc(&args->flow->memo->arena, count * sizeof sets[0]);
  args->flow->failed = args->flow->failed || sets == NULL;
  return sets;
}
