/* shard_map: T0[D..].., -> R0[E..]..       runs body on each device of a mesh, on blocks
   Parameters: mesh; unchecked; in_specs, out_specs: how operands are cut into blocks and how results are put together; body, whose
   axis environment is that of the equation, then the mesh's axes.

     operand f32[8]  --P(data)-->  blocks f32[8/data]{V:data}  --body-->  f32[]{}  --P()-->  result f32[]

   Errors: a spec that does not fit or divide; an axis name that is in scope already; a result that varies over an axis its spec
   does not name, which unless `unchecked` is refused, because the devices would disagree on it.
   Varying: inside, a block varies over the axes of its spec (not when unchecked). A value that the body captures has the spec P().
   jvp, linearize, transpose and batch stand in shard_map_transform.c. Neither plans nor StableHLO modules have shard_maps: they are
   made of what each device runs, after partition.c. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/flow.h"
#include "mesh/shard_map.h"
#include "mesh/sharding.h"
#include "prim/prims.h"
#include "prim/region.h"

static uint32_t count_outs(const void *params) { return ((const ax_shard_map_params *)params)->body->out_count; }

/* The axis environment of the body: `outer`, then the mesh's axes. AX_INVALID_ARGUMENT: a name that is in `outer` already; too many. */
static ax_status body_axes(const ax_shard_map_params *params, const ax_mesh *outer, ax_mesh *out) {
  *out = *outer;
  AX_TRY(ax_mesh_check(&params->mesh));
  for (uint32_t i = 0; i < params->mesh.count; i++) {
    const ax_axis *axis = &params->mesh.axis[i];
    if (ax_mesh_find(outer, axis->name) >= 0)
      return ax_error(AX_INVALID_ARGUMENT, "the axis \"%s\" is in use by a shard_map around this one", axis->name);
    if (out->count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d axes", AX_MAX_AXES);
    out->axis[out->count] = *axis;
    out->axis[out->count++].unchecked = params->unchecked;
  }
  return ax_mesh_check(out); /* together they may be too many devices */
}

/* --- infer --- */

/* The axes over which a block cut by `spec` is typed varying, of those of the body. */
static ax_axis_set block_varying(const ax_shard_map_params *params, const ax_mesh *outer, const ax_spec *spec) {
  return params->unchecked ? 0 : ax_spec_set(spec) << outer->count;
}

/* The type in the body of an operand of type `whole` cut by `spec`. */
static ax_status block_type(const ax_shard_map_params *params, const ax_mesh *outer, const ax_type *whole,
                             const ax_spec *spec, ax_type *out) {
  AX_TRY(ax_shard_type(whole, spec, &params->mesh, out));
  out->spread.varying |= block_varying(params, outer, spec);
  return AX_OK;
}

static ax_status check_counts(const ax_infer_args *args) {
  const ax_shard_map_params *params = args->params;
  if (params->in_specs.count != args->in_count || params->out_specs.count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "%u in_specs and %u out_specs for %u operands and %u results",
                    params->in_specs.count, params->out_specs.count, args->in_count, args->out_count);
  if (params->body->in_count != args->in_count || params->body->out_count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u values and gives %u, not %u and %u",
                    params->body->in_count, params->body->out_count, args->in_count, args->out_count);
  return AX_OK;
}

/* All that makes the value vary over `axes` are all_gathers, whose results are typed varying although they are the same on all devices. What
   was cast for their sake counts as they do. */
static bool only_gathered(const ax_program *body, uint32_t value, ax_axis_set axes) {
  bool *asked = ax_calloc(body->value_count, sizeof asked[0]), gathered = false, elsewhere = asked == NULL;
  if (asked != NULL) asked[value] = true;
  for (uint32_t i = body->eqn_count; i-- > 0 && !elsewhere;) {
    const ax_eqn *eqn = &body->eqns[i];
    bool wanted = false, from_operands = false;
    for (uint32_t k = 0; k < eqn->out_count; k++) wanted = wanted || asked[eqn->out + k];
    if (!wanted) continue;
    for (uint32_t k = 0; k < eqn->in_count && eqn->prim != &ax_prim_all_gather; k++) {
      if ((body->types[eqn->in[k]].spread.varying & axes) == 0) continue;
      asked[eqn->in[k]] = from_operands = true;
    }
    if (eqn->prim == &ax_prim_all_gather) gathered = true;
    else if (!from_operands && eqn->prim != &ax_prim_pvary) elsewhere = true;
  }
  for (uint32_t i = 0; i < body->in_count && !elsewhere; i++) elsewhere = asked[i];
  ax_free(asked);
  return gathered && !elsewhere;
}

/* What is reduced leaves by the cast that says what happens to its cotangent, and parts are not put together. */
static ax_status check_made(const ax_type *type, const ax_mesh *inner, ax_axis_set own, uint32_t k) {
  const ax_spread *on = &type->spread;
  if ((on->unreduced & own) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "out[%u]: %s is unreduced over %s, and parts do not leave; %s", k, ax_type_string(type, inner),
                    ax_axis_set_string(on->unreduced & own, inner), ax_reduce_advice(on->kind));
  if ((on->reduced & own) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "out[%u]: %s is reduced over %s; reduced_invariant_cast makes it invariant", k, ax_type_string(type, inner),
                    ax_axis_set_string(on->reduced & own, inner));
  return AX_OK;
}

/* out[0]: f32[]{V:data} varies over "data", but its spec P() promises it does not */
static ax_status check_promise(const ax_shard_map_params *params, const ax_mesh *inner, uint32_t outer_count, const ax_spec *spec, uint32_t k) {
  uint32_t value = params->body->outs[k];
  const ax_type *type = &params->body->types[value];
  ax_axis_set own = ax_all_axes(inner) >> outer_count << outer_count;
  AX_TRY(check_made(type, inner, own, k));
  ax_axis_set broken = type->spread.varying & own & ~(ax_spec_set(spec) << outer_count);
  if (broken == 0 || params->unchecked) return AX_OK;
  ax_text axes = {0}, text = {0};
  for (uint32_t i = 0; i < inner->count; i++)
    if (broken >> i & 1) ax_text_add(&axes, "%s\"%s\"", axes.length > 0 ? ", " : "", inner->axis[i].name);
  ax_spec_text(&text, spec, &params->mesh);
  ax_status status =
      ax_error(AX_INVALID_ARGUMENT, "out[%u]: %s varies over %s, but its spec %s promises it does not%s", k,
               ax_type_string(type, inner), axes.data != NULL ? axes.data : "?", text.data != NULL ? text.data : "?",
               only_gathered(params->body, value, broken)
                   ? " (it comes from all_gather, whose result is typed varying; that of all_gather_invariant is not)"
                   : "; the results of psum, pmax, pmin and all_gather_invariant do not");
  ax_text_deinit(&axes);
  ax_text_deinit(&text);
  return status;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_shard_map_params *params = args->params;
  const ax_program *body = params->body;
  ax_mesh inner;
  AX_TRY(check_counts(args));
  AX_TRY(body_axes(params, args->axes, &inner));
  if (body->axes.count != inner.count)
    return ax_error(AX_INVALID_ARGUMENT, "the body has %u axes, not %u", body->axes.count, inner.count);
  AX_TRY(ax_region_check_axes(body, &inner, "the body"));
  for (uint32_t i = 0; i < args->in_count; i++) {
    ax_type block;
    ax_status status = block_type(params, args->axes, &args->in[i], &params->in_specs.v[i], &block);
    if (status != AX_OK) return ax_error_context(status, "operand %u: ", i);
    AX_TRY(ax_region_check_type(&block, &body->types[i], &inner, "operand", i, "has blocks", "the body takes"));
  }
  for (uint32_t k = 0; k < args->out_count; k++) {
    const ax_type *block = &body->types[body->outs[k]];
    AX_TRY(check_promise(params, &inner, args->axes->count, &params->out_specs.v[k], k));
    ax_status status = ax_unshard_type(block, &params->out_specs.v[k], &params->mesh, &args->out[k]);
    if (status != AX_OK) return ax_error_context(status, "result %u: ", k);
    args->out[k].spread.varying &= ax_all_axes(args->axes);
  }
  return AX_OK;
}

/* --- eval --- */

/* Lane l of the equation becomes lanes l * devices .. of the body. */
typedef struct eval_state {
  const ax_eval_args *args;
  const ax_shard_map_params *params;
  uint32_t devices, lanes;
  int64_t *device;
  ax_tensor **in, **out; /* of the body's lanes; owned here (in: where it was cut) */
} eval_state;

static ax_status cut(eval_state *s, uint32_t i) {
  const ax_eval_args *args = s->args;
  const ax_spec *spec = &s->params->in_specs.v[i];
  const ax_type *block = &s->params->body->types[i];
  for (uint32_t l = 0; l < s->lanes; l++) {
    const ax_tensor *whole = args->in[i * args->lanes + l / s->devices];
    const ax_type type = ax_array_type(whole->dtype, whole->rank, whole->dims);
    int64_t offset[AX_MAX_RANK];
    AX_TRY(ax_tensor_create(block, &s->in[i * s->lanes + l]));
    ax_shard_offset(block, spec, &s->params->mesh, l % s->devices, offset);
    ax_shard_read(&type, whole->data, offset, block, s->in[i * s->lanes + l]->data);
  }
  return AX_OK;
}

/* Of devices that hold the same block, the first one's counts. */
static ax_status join(eval_state *s, uint32_t k) {
  const ax_eval_args *args = s->args;
  const ax_spec *spec = &s->params->out_specs.v[k];
  const ax_type *block = &s->params->body->types[s->params->body->outs[k]];
  ax_type whole;
  AX_TRY(ax_unshard_type(block, spec, &s->params->mesh, &whole));
  for (uint32_t l = 0; l < args->lanes; l++) AX_TRY(ax_tensor_create(&whole, &args->out[k * args->lanes + l]));
  for (int64_t b = 0; b < ax_shard_count(spec, &s->params->mesh); b++) {
    int64_t offset[AX_MAX_RANK], device = ax_shard_device(spec, &s->params->mesh, b);
    ax_shard_offset(block, spec, &s->params->mesh, device, offset);
    for (uint32_t l = 0; l < args->lanes; l++) {
      const ax_tensor *part = s->out[k * s->lanes + l * s->devices + (uint32_t)device];
      ax_shard_write(block, part->data, offset, &whole, args->out[k * args->lanes + l]->data);
    }
  }
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_shard_map_params *params = args->eqn->params;
  const ax_program *body = params->body;
  eval_state s = {.args = args, .params = params, .devices = (uint32_t)ax_mesh_devices(&params->mesh)};
  s.lanes = args->lanes * s.devices;
  ax_arena arena = {0};
  s.device = ax_arena_alloc(&arena, s.lanes * sizeof s.device[0]);
  s.in = ax_arena_alloc(&arena, (size_t)body->in_count * s.lanes * sizeof s.in[0]);
  s.out = ax_arena_alloc(&arena, (size_t)body->out_count * s.lanes * sizeof s.out[0]);
  if (s.device == NULL || s.in == NULL || s.out == NULL) return ax_region_eval_end(args, &arena, ax_out_of_memory(0));
  ax_status status = AX_OK;
  for (uint32_t l = 0; l < s.lanes; l++) s.device[l] = args->device[l / s.devices] * s.devices + l % s.devices;
  for (uint32_t i = 0; status == AX_OK && i < body->in_count; i++) status = cut(&s, i);
  if (status == AX_OK) status = ax_evaluate_lanes(args->driver, body, s.lanes, s.device, s.in, s.out);
  for (uint32_t k = 0; status == AX_OK && k < body->out_count; k++) status = join(&s, k);
  for (uint32_t i = 0; i < body->in_count * s.lanes; i++) ax_tensor_release(s.in[i]);
  for (uint32_t i = 0; i < body->out_count * s.lanes; i++) ax_tensor_release(s.out[i]);
  return ax_region_eval_end(args, &arena, status);
}

/* --- differs --- */

static void differs(const ax_differs_args *args) {
  const ax_shard_map_params *params = args->eqn->params;
  const ax_program *body = params->body;
  uint32_t outer = body->axes.count - params->mesh.count;
  ax_axis_set *in = ax_differs_alloc(args, body->in_count);
  for (uint32_t i = 0; in != NULL && i < body->in_count; i++)
    in[i] = args->in[i] | ax_spec_set(&params->in_specs.v[i]) << outer;
  if (in == NULL || !ax_region_differs(args, body, in, args->out)) return;
  for (uint32_t k = 0; k < body->out_count; k++) args->out[k] &= ~(ax_all_axes(&params->mesh) << outer);
}

/* --- The record --- */

static const ax_param params[] = {
    {"mesh", AX_PARAM_MESH, offsetof(ax_shard_map_params, mesh)},
    {"unchecked", AX_PARAM_BOOL, offsetof(ax_shard_map_params, unchecked)},
    {"in_specs", AX_PARAM_SPECS, offsetof(ax_shard_map_params, in_specs)},
    {"out_specs", AX_PARAM_SPECS, offsetof(ax_shard_map_params, out_specs)},
    {"body", AX_PARAM_PROGRAM, offsetof(ax_shard_map_params, body)},
};

const ax_prim ax_prim_shard_map = {
    .name = "shard_map", .kind = AX_REGION, .in_count = -1, .out_count = -1, .count_outs = count_outs,
    .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(ax_shard_map_params),
    .infer = infer, .spread = ax_spread_body, .eval = eval, .differs = differs, .jvp = ax_shard_map_jvp,
    .linearize = ax_shard_map_linearize, .transpose = ax_shard_map_transpose, .batch = ax_shard_map_batch,
    .simplify = ax_simplify_nothing, .prune = ax_shard_map_prune, .shard = ax_shard_whole, .lower = ax_lower_eval, .hlo = ax_absent_hlo,
};

/* --- The function --- */

/* One spec, begin .. end, blanks around it and "*N" behind it, which *times gets, taken off. open: it may be "?"; NULL: it must not. */
static ax_status parse_one(const char *begin, const char *end, const ax_mesh *mesh, ax_spec *out, bool *open, uint32_t *times) {
  char text[(AX_MAX_NAME + 1) * (AX_MAX_AXES + AX_MAX_RANK) + 64];
  *times = 1;
  while (begin < end && isspace((unsigned char)*begin)) begin++;
  while (end > begin && isspace((unsigned char)end[-1])) end--;
  if ((size_t)(end - begin) >= sizeof text) return ax_error(AX_INVALID_ARGUMENT, "a spec of %zu bytes", (size_t)(end - begin));
  memcpy(text, begin, (size_t)(end - begin));
  text[end - begin] = '\0';
  char *star = strchr(text, '*'), *rest = star;
  if (star != NULL) {
    unsigned long given = isdigit((unsigned char)star[1]) ? strtoul(star + 1, &rest, 10) : 0;
    if (given == 0 || given > UINT32_MAX || *rest != '\0')
      return ax_error(AX_INVALID_ARGUMENT, "\"%s\": a number of times is expected behind \"*\"", text);
    *times = (uint32_t)given;
    *star = '\0';
    while (star > text && isspace((unsigned char)star[-1])) *--star = '\0';
  }
  bool is_open = open != NULL && strcmp(text, "?") == 0;
  if (open != NULL) *open = is_open;
  *out = (ax_spec){0};
  return is_open ? AX_OK : ax_spec_parse(text, mesh, out);
}

/* The specs of one side, begin .. end; one alone stands for all. */
static ax_status parse_side(const char *which, const char *begin, const char *end, uint32_t count, const ax_mesh *mesh, ax_spec *out, bool *open) {
  uint32_t given = 0, times;
  for (const char *at = begin; at != NULL;) {
    const char *semicolon = memchr(at, ';', (size_t)(end - at));
    ax_spec spec;
    bool is_open = false;
    ax_status status = parse_one(at, semicolon != NULL ? semicolon : end, mesh, &spec, open != NULL ? &is_open : NULL, &times);
    if (status != AX_OK) return ax_error_context(status, "%s %u: ", which, given);
    if (count > 0 && (given == count || times > count - given))
      return ax_error(AX_INVALID_ARGUMENT, "there are more %s specs than %ss, of which there %s %u", which, which, count == 1 ? "is" : "are", count);
    for (uint32_t k = 0; k < times && given + k < count; k++) {
      out[given + k] = spec;
      if (open != NULL) open[given + k] = is_open;
    }
    given += times;
    at = semicolon != NULL ? semicolon + 1 : NULL;
  }
  for (uint32_t i = 1; given == 1 && i < count; i++) {
    out[i] = out[0];
    if (open != NULL) open[i] = open[0];
  }
  if (given == count || given == 1) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "there are %u %s specs for %u %ss", given, which, count, which);
}

ax_status ax_parse_specs(const char *specs, uint32_t in_count, uint32_t out_count, const ax_mesh *mesh, ax_spec *in, ax_spec *out, bool *open) {
  if (specs == NULL) return ax_error(AX_INVALID_ARGUMENT, "there are no specs");
  const char *arrow = strstr(specs, "->");
  ax_status status = AX_OK;
  if (arrow == NULL) status = ax_error(AX_INVALID_ARGUMENT, "operands' specs, \"->\", results' specs are expected");
  if (status == AX_OK) status = parse_side("operand", specs, arrow, in_count, mesh, in, open);
  if (status == AX_OK) status = parse_side("result", arrow + 2, arrow + strlen(arrow), out_count, mesh, out, open != NULL ? open + in_count : NULL);
  return status == AX_OK ? AX_OK : ax_error_context(status, "specs \"%.200s\": ", specs);
}

/* The types of the blocks of the operands. */
static bool cut_types(const char *owner, const ax_shard_map_params *params, const ax_value *in, uint32_t in_count, const ax_spec *specs,
                      ax_type *types) {
  const ax_mesh *outer = &ax_builder_current()->axes;
  if (!ax_check_operands(owner, in, in_count)) return false;
  for (uint32_t i = 0; i < in_count; i++) {
    ax_type whole = ax_typeof(in[i]);
    if (ax_failed()) return false;
    ax_status status = block_type(params, outer, &whole, &specs[i], &types[i]);
    if (status == AX_OK) continue;
    ax_fail(ax_error_context(status, "%s: operand %u: ", owner, i));
    return false;
  }
  return true;
}

/* Captured values come first; they are whole on each device. */
static void bind_traced(ax_shard_map_params *params, const ax_body *body, const ax_value *in, const ax_spec *in_specs,
                        uint32_t in_count, ax_value *out, uint32_t out_count) {
  uint32_t count = body->captured_count + in_count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  ax_spec *specs = ax_trace_alloc(count * sizeof specs[0]);
  if (all == NULL || specs == NULL) return;
  for (uint32_t i = 0; i < body->captured_count; i++) all[i] = body->captured[i];
  for (uint32_t i = 0; i < in_count; i++) {
    all[body->captured_count + i] = in[i];
    specs[body->captured_count + i] = in_specs[i];
  }
  params->in_specs = (ax_specs){count, specs};
  params->body = body->program;
  ax_bind(&ax_prim_shard_map, params, all, count, out, out_count);
}

void ax_shard_map_trace(const char *owner, ax_shard_map_params *params, const ax_spec *in_specs, ax_fn function, const ax_value *in,
                        ax_value *out) {
  const ax_mesh *outer = &ax_builder_current()->axes;
  ax_mesh inner;
  ax_type *types = ax_trace_alloc(function.in_count * sizeof types[0]);
  if (types == NULL) return;
  ax_status status = body_axes(params, outer, &inner);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", owner));
  if (ax_failed() || !cut_types(owner, params, in, function.in_count, in_specs, types)) return;
  ax_body body;
  ax_axis_set own = ax_all_axes(&inner) & ~ax_all_axes(outer);
  status = ax_body_trace(&(ax_body_options){.owner = owner, .part = "body", .axes = &inner, .function = function, .in = types,
                                            .out_invariant = own}, &body);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: body: ", owner));
  if (!ax_failed()) bind_traced(params, &body, in, in_specs, function.in_count, out, function.out_count);
  ax_body_deinit(&body);
}

static void shard_map(const ax_mesh *mesh, const char *specs, bool unchecked, ax_fn function, const ax_value *in, ax_value *out) {
  const char *owner = unchecked ? "shard_map_unchecked" : "shard_map";
  in = ax_take_operands(in, function.in_count, out, function.out_count);
  ax_spec *in_specs = ax_trace_alloc(function.in_count * sizeof in_specs[0]);
  ax_spec *out_specs = ax_trace_alloc(function.out_count * sizeof out_specs[0]);
  if (in_specs == NULL || out_specs == NULL) return;
  if (mesh == NULL) {
    ax_reject_as(owner, "there is no mesh");
    return;
  }
  ax_shard_map_params params = {.mesh = *mesh, .unchecked = unchecked, .out_specs = {function.out_count, out_specs}};
  for (uint32_t i = 0; i < AX_MAX_AXES; i++) params.mesh.axis[i].unchecked = false;
  ax_status status = ax_mesh_check(mesh);
  if (status == AX_OK) status = ax_parse_specs(specs, function.in_count, function.out_count, &params.mesh, in_specs, out_specs, NULL);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", owner));
  if (!ax_failed()) ax_shard_map_trace(owner, &params, in_specs, function, in, out);
}

void ax_shard_map(const ax_mesh *mesh, const char *specs, ax_fn body, const ax_value *in, ax_value *out) {
  shard_map(mesh, specs, false, body, in, out);
}

void ax_shard_map_unchecked(const ax_mesh *mesh, const char *specs, ax_fn body, const ax_value *in, ax_value *out) {
  shard_map(mesh, specs, true, body, in, out);
}

void ax_call_sharded(const ax_value *in, ax_value *out, void *sharded) {
  const ax_sharded *s = sharded;
  ax_shard_map(s->mesh, s->specs, s->body, in, out);
  if (s->call != NULL) ax_stamp(s->call);
}
