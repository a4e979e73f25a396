/* shard_map: T0[D..].., -> R0[E..]..       runs body on each device of a mesh, on blocks
   Parameters: mesh; unchecked; in_specs, out_specs: how operands are cut into blocks and how results are put together; body, whose
   axis environment is that of the equation, then the mesh's axes. Those that are automatic the body does not take by hand: neither
   specs nor what the body does with devices names them, blocks are whole along them, and the partitioner lays out the body over
   them as it does programs outside (partition.c). A mesh of axes that are automatic around it takes them by hand: they stand where
   they stood.

     operand f32[8]  --P(data)-->  blocks f32[8/data]{V:data}  --body-->  f32[]{}  --P()-->  result f32[]

   Errors: a spec that does not fit or divide, or that names an automatic axis; an axis name that is in scope already and not
   automatic; axes of which some alone are automatic around it; a result that varies over an axis its spec
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
#include "mesh/shardy.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/region.h"
#include "prim/rules.h"

static uint32_t count_outs(const void *params) { return ((const ax_shard_map_params *)params)->body->out_count; }

/* --- Axes --- */

bool ax_mesh_is_around(const ax_mesh *mesh, const ax_mesh *axes) {
  for (uint32_t i = 0; i < mesh->count; i++) {
    const int at = ax_mesh_find(axes, mesh->axis[i].name);
    if (at < 0 || !axes->axis[at].automatic || axes->axis[at].size != mesh->axis[i].size) return false;
  }
  return mesh->count > 0;
}

ax_axis_set ax_shard_map_own(const ax_shard_map_params *params) {
  return ax_axis_set_on(ax_manual_axes(&params->mesh), &params->mesh, &params->body->axes);
}

ax_status ax_mesh_check_new(const ax_axis *axis, const ax_mesh *outer) {
  const int at = ax_mesh_find(outer, axis->name);
  if (at < 0) return AX_OK;
  if (!outer->axis[at].automatic)
    return ax_error(AX_INVALID_ARGUMENT, "the axis \"%s\" is in use by a shard_map around this one", axis->name);
  if (outer->axis[at].size != axis->size)
    return ax_error(AX_INVALID_ARGUMENT,
                    "the axis \"%s\" has size %lld here and %lld in the shard_map around, which leaves it automatic", axis->name,
                    (long long)axis->size, (long long)outer->axis[at].size);
  return ax_error(AX_INVALID_ARGUMENT, "the axis \"%s\" is automatic in the shard_map around, and others of this mesh are not",
                  axis->name);
}

/* The axis environment of the body: `outer`, then the mesh's axes; or `outer` with those of its axes taken by hand.
   AX_INVALID_ARGUMENT: a name that is in `outer` already; too many. */
static ax_status body_axes(const ax_shard_map_params *params, const ax_mesh *outer, ax_mesh *out) {
  *out = *outer;
  AX_TRY(ax_mesh_check(&params->mesh));
  const bool around = ax_mesh_is_around(&params->mesh, outer);
  for (uint32_t i = 0; i < params->mesh.count; i++) {
    const ax_axis *axis = &params->mesh.axis[i];
    uint32_t at = around ? (uint32_t)ax_mesh_find(outer, axis->name) : out->count;
    if (!around) AX_TRY(ax_mesh_check_new(axis, outer));
    if (at == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d axes", AX_MAX_AXES);
    if (!around) out->count++;
    out->axis[at] = *axis;
    out->axis[at].unchecked = params->unchecked && !axis->automatic;
  }
  return ax_mesh_check(out); /* together they may be too many devices */
}

void ax_spec_renumber(ax_spec *spec, const ax_mesh *from, const ax_mesh *to) {
  for (uint32_t d = 0; d < spec->rank; d++)
    for (uint32_t k = 0; k < spec->count[d]; k++) spec->axis[d][k] = (uint8_t)ax_mesh_find(to, from->axis[spec->axis[d][k]].name);
}

static ax_status check_spec(const ax_mesh *mesh, const ax_spec *spec) {
  const ax_axis_set automatic = ax_spec_set(spec) & ~ax_manual_axes(mesh);
  if (automatic == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT,
                  "the spec names %s, left automatic: a shard_map's specs name axes that its body takes by hand",
                  ax_axis_set_string(automatic, mesh));
}

/* --- infer --- */

/* The type in the body, of environment `inner`, of an operand of type `whole` cut by `spec`. */
static ax_status block_type(const ax_shard_map_params *params, const ax_mesh *inner, const ax_type *whole,
                             const ax_spec *spec, ax_type *out) {
  AX_TRY(check_spec(&params->mesh, spec));
  AX_TRY(ax_shard_type(whole, spec, &params->mesh, out));
  if (!params->unchecked) out->spread.varying |= ax_axis_set_on(ax_spec_set(spec), &params->mesh, inner);
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

/* All that makes the value vary over `axes` are all_gathers, whose results are typed varying although they are the same on all
   devices. What was cast for their sake counts as they do. */
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

/* Refuses results that are unreduced, as parts cannot leave the body, or reduced: the user must choose the cast that makes them
   invariant, since it decides about the cotangent. */
static ax_status check_made(const ax_type *type, const ax_mesh *inner, ax_axis_set own, uint32_t k) {
  const ax_spread *on = &type->spread;
  if ((on->unreduced & own) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "out[%u]: %s is unreduced over %s, and parts do not leave; %s", k,
                    ax_type_string(type, inner), ax_axis_set_string(on->unreduced & own, inner), ax_reduce_advice(on->kind));
  if ((on->reduced & own) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "out[%u]: %s is reduced over %s; reduced_invariant_cast makes it invariant", k,
                    ax_type_string(type, inner), ax_axis_set_string(on->reduced & own, inner));
  return AX_OK;
}

/* out[0]: f32[]{V:data} varies over "data", but its spec P() promises it does not */
static ax_status check_promise(const ax_shard_map_params *params, const ax_spec *spec, uint32_t k) {
  const ax_mesh *inner = &params->body->axes;
  uint32_t value = params->body->outs[k];
  const ax_type *type = &params->body->types[value];
  ax_axis_set own = ax_shard_map_own(params);
  AX_TRY(check_made(type, inner, own, k));
  ax_axis_set broken = type->spread.varying & own & ~ax_axis_set_on(ax_spec_set(spec), &params->mesh, inner);
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
    ax_status status = block_type(params, &inner, &args->in[i], &params->in_specs.v[i], &block);
    if (status != AX_OK) return ax_error_context(status, "operand %u: ", i);
    AX_TRY(ax_region_check_type(&block, &body->types[i], &inner, "operand", i, "has blocks", "the body takes"));
  }
  for (uint32_t k = 0; k < args->out_count; k++) {
    const ax_type *block = &body->types[body->outs[k]];
    AX_TRY(check_promise(params, &params->out_specs.v[k], k));
    ax_status status = check_spec(&params->mesh, &params->out_specs.v[k]);
    if (status == AX_OK) status = ax_unshard_type(block, &params->out_specs.v[k], &params->mesh, &args->out[k]);
    if (status != AX_OK) return ax_error_context(status, "result %u: ", k);
    args->out[k].spread.varying &= ~ax_shard_map_own(params);
  }
  return AX_OK;
}

/* --- eval --- */

/* Lane l of the equation becomes lanes l * devices .. of the body: one for each device of the axes taken by hand, as all along
   automatic ones do the same; there the first stands for all. */
typedef struct eval_state {
  const ax_eval_args *args;
  const ax_shard_map_params *params;
  uint32_t devices, lanes;
  int64_t *place;  /* of each of the devices: its number on the mesh */
  int64_t *device; /* of each lane: on the body's environment */
  ax_tensor **in, **out; /* of the body's lanes; owned here (in: where it was cut) */
} eval_state;

static ax_status cut(eval_state *s, uint32_t i) {
  const ax_eval_args *args = s->args;
  const ax_spec *spec = &s->params->in_specs.v[i];
  const ax_type *block = &s->params->body->types[i];
  for (uint32_t l = 0; l < s->lanes; l++) {
    const ax_tensor *whole = args->in[i * args->lanes + l / s->devices];
    const ax_type type = ax_array_type(whole->dtype, AX_LIST(whole->rank, whole->dims));
    int64_t offset[AX_MAX_RANK];
    AX_TRY(ax_tensor_create(block, &s->in[i * s->lanes + l]));
    ax_shard_offset(block, spec, &s->params->mesh, s->place[l % s->devices], offset);
    ax_shard_read(&type, whole->data, offset, block, s->in[i * s->lanes + l]->data);
  }
  return AX_OK;
}

/* The number along the manual axes alone of a place on the mesh. */
static uint32_t number_of(const ax_mesh *mesh, int64_t place) {
  int64_t number = 0;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (!mesh->axis[i].automatic) number = number * mesh->axis[i].size + ax_mesh_coordinate(mesh, place, i);
  return (uint32_t)number;
}

/* Finds each device's place on the mesh, and its offset in the body's environment from the first device's place. */
static void place_devices(const eval_state *s, int64_t *offset) {
  const ax_mesh *mesh = &s->params->mesh, *axes = &s->params->body->axes;
  for (uint32_t j = 0; j < s->devices; j++) {
    int64_t left = j;
    s->place[j] = offset[j] = 0;
    for (uint32_t i = mesh->count; i-- > 0;) {
      if (mesh->axis[i].automatic) continue;
      const ax_axes name = ax_axis_set_names((ax_axis_set)1 << i, mesh);
      s->place[j] = ax_axes_device(&name, mesh, s->place[j], left % mesh->axis[i].size);
      offset[j] = ax_axes_device(&name, axes, offset[j], left % mesh->axis[i].size);
      left /= mesh->axis[i].size;
    }
  }
}

/* Joins blocks to result k. If several devices hold a block, the first one's is taken. */
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
      const ax_tensor *part = s->out[k * s->lanes + l * s->devices + number_of(&s->params->mesh, device)];
      ax_shard_write(block, part->data, offset, &whole, args->out[k * args->lanes + l]->data);
    }
  }
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_shard_map_params *params = args->eqn->params;
  const ax_program *body = params->body;
  eval_state s = {
      .args = args, .params = params, .devices = (uint32_t)ax_axis_set_size(ax_manual_axes(&params->mesh), &params->mesh)};
  s.lanes = args->lanes * s.devices;
  ax_arena arena = {0};
  int64_t *offset = ax_arena_alloc(&arena, s.devices * sizeof offset[0]);
  s.place = ax_arena_alloc(&arena, s.devices * sizeof s.place[0]);
  s.device = ax_arena_alloc(&arena, s.lanes * sizeof s.device[0]);
  s.in = ax_arena_alloc(&arena, (size_t)body->in_count * s.lanes * sizeof s.in[0]);
  s.out = ax_arena_alloc(&arena, (size_t)body->out_count * s.lanes * sizeof s.out[0]);
  if (offset == NULL || s.place == NULL || s.device == NULL || s.in == NULL || s.out == NULL)
    return ax_region_eval_end(args, &arena, ax_out_of_memory(0));
  ax_status status = AX_OK;
  place_devices(&s, offset);
  const int64_t added = ax_mesh_devices(&body->axes) / ax_mesh_devices(args->axes); /* for each there was */
  for (uint32_t l = 0; l < s.lanes; l++) s.device[l] = args->device[l / s.devices] * added + offset[l % s.devices];
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
  ax_axis_set *in = ax_differs_alloc(args, body->in_count);
  for (uint32_t i = 0; in != NULL && i < body->in_count; i++)
    in[i] = args->in[i] | ax_axis_set_on(ax_spec_set(&params->in_specs.v[i]), &params->mesh, &body->axes);
  if (in == NULL || !ax_region_differs(args, body, in, args->out)) return;
  for (uint32_t k = 0; k < body->out_count; k++) args->out[k] &= ~ax_shard_map_own(params);
}

static ax_region_link links(const ax_region_link_args *args) { return ax_region_link_to(AX_LINK_BLOCK, args->number); }

/* --- The record --- */

static const ax_param params[] = {
    {"mesh", AX_PARAM_MESH, offsetof(ax_shard_map_params, mesh)},
    {"unchecked", AX_PARAM_BOOL, offsetof(ax_shard_map_params, unchecked)},
    {"in_specs", AX_PARAM_SPECS, offsetof(ax_shard_map_params, in_specs)},
    {"out_specs", AX_PARAM_SPECS, offsetof(ax_shard_map_params, out_specs)},
    {"body", AX_PARAM_PROGRAM, offsetof(ax_shard_map_params, body)},
};

const ax_prim ax_prim_shard_map = {
    .name = "shard_map",
    .kind = AX_REGION,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, ax_shard_map_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .links = links,
    .jvp = ax_shard_map_jvp,
    .linearize = ax_shard_map_linearize,
    .transpose = ax_shard_map_transpose,
    .batch = ax_shard_map_batch,
    .simplify = ax_simplify_nothing,
    .prune = ax_shard_map_prune,
    .shard = ax_shard_whole,
    .lower = ax_lower_eval,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = ax_shard_map_hlo,
};

/* --- The function --- */

/* One spec, begin .. end, blanks around it and "*N" behind it, which *times gets, taken off. saying: it may be "?" or "auto", and
   its entries "?"; NULL: they must not. */
static ax_status parse_one(const char *begin, const char *end, const ax_mesh *mesh, ax_spec *out, ax_saying *saying,
                           uint32_t *times) {
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
  *out = (ax_spec){0};
  if (saying == NULL) return ax_spec_parse(text, mesh, out);
  *saying = strcmp(text, "?") == 0                                      ? AX_SAYS_NOTHING
            : strcmp(text, "auto") == 0 && ax_mesh_find(mesh, text) < 0 ? AX_SAYS_AUTO
                                                                        : AX_SAYS_SPEC;
  return *saying == AX_SAYS_SPEC ? ax_spec_parse_open(text, mesh, out) : AX_OK;
}

/* The specs of one side, begin .. end; one alone stands for all. */
static ax_status parse_side(const char *which, const char *begin, const char *end, uint32_t count, const ax_mesh *mesh,
                            ax_spec *out, ax_saying *sayings) {
  uint32_t given = 0, times;
  for (const char *at = begin; at != NULL;) {
    const char *semicolon = memchr(at, ';', (size_t)(end - at));
    ax_spec spec;
    ax_saying saying = AX_SAYS_SPEC;
    ax_status status = parse_one(at, semicolon != NULL ? semicolon : end, mesh, &spec, sayings != NULL ? &saying : NULL, &times);
    if (status != AX_OK) return ax_error_context(status, "%s %u: ", which, given);
    if (count > 0 && (given == count || times > count - given))
      return ax_error(AX_INVALID_ARGUMENT, "there are more %s specs than %ss, of which there %s %u", which, which,
                      count == 1 ? "is" : "are", count);
    for (uint32_t k = 0; k < times && given + k < count; k++) {
      out[given + k] = spec;
      if (sayings != NULL) sayings[given + k] = saying;
    }
    given += times;
    at = semicolon != NULL ? semicolon + 1 : NULL;
  }
  for (uint32_t i = 1; given == 1 && i < count; i++) {
    out[i] = out[0];
    if (sayings != NULL) sayings[i] = sayings[0];
  }
  if (given == count || given == 1) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "there are %u %s specs for %u %ss", given, which, count, which);
}

ax_status ax_parse_specs(const char *specs, uint32_t in_count, uint32_t out_count, const ax_mesh *mesh, ax_spec *in, ax_spec *out,
                         ax_saying *sayings) {
  if (specs == NULL) return ax_error(AX_INVALID_ARGUMENT, "there are no specs");
  const char *arrow = strstr(specs, "->");
  ax_status status = AX_OK;
  if (arrow == NULL) status = ax_error(AX_INVALID_ARGUMENT, "operands' specs, \"->\", results' specs are expected");
  if (status == AX_OK) status = parse_side("operand", specs, arrow, in_count, mesh, in, sayings);
  if (status == AX_OK)
    status =
        parse_side("result", arrow + 2, arrow + strlen(arrow), out_count, mesh, out, sayings != NULL ? sayings + in_count : NULL);
  return status == AX_OK ? AX_OK : ax_error_context(status, "specs \"%.200s\": ", specs);
}

/* The types of the blocks of the operands, in the body's environment. */
static bool cut_types(const char *owner, const ax_shard_map_params *params, const ax_mesh *inner, const ax_value *in,
                      uint32_t in_count, const ax_spec *specs, ax_type *types) {
  if (!ax_check_operands(owner, in, in_count)) return false;
  for (uint32_t i = 0; i < in_count; i++) {
    ax_type whole = ax_typeof(in[i]);
    if (ax_failed()) return false;
    ax_status status = block_type(params, inner, &whole, &specs[i], &types[i]);
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
  if (ax_failed() || !cut_types(owner, params, &inner, in, function.in_count, in_specs, types)) return;
  ax_body body;
  ax_axis_set own = ax_axis_set_on(ax_manual_axes(&params->mesh), &params->mesh, &inner);
  status = ax_body_trace(&(ax_body_options){.owner = owner, .part = "body", .axes = &inner, .function = function, .in = types,
                                            .out_invariant = own}, &body);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: body: ", owner));
  if (!ax_failed()) bind_traced(params, &body, in, in_specs, function.in_count, out, function.out_count);
  ax_body_deinit(&body);
}

static ax_status renumber_all(const char *which, ax_spec *specs, uint32_t count, const ax_mesh *from, const ax_mesh *to) {
  for (uint32_t i = 0; i < count; i++) {
    ax_status status = check_spec(from, &specs[i]);
    if (status != AX_OK) return ax_error_context(status, "%s %u: ", which, i);
    ax_spec_renumber(&specs[i], from, to);
  }
  return AX_OK;
}

/* The user may pass the whole mesh. Axes that are in use around this shard_map, and are marked automatic here, are left out. */
static ax_mesh map_mesh(const ax_mesh *mesh, const ax_mesh *outer) {
  ax_mesh own = *mesh;
  own.count = 0;
  for (uint32_t i = 0; i < mesh->count; i++) {
    ax_axis axis = mesh->axis[i];
    if (axis.automatic && ax_mesh_find(outer, axis.name) >= 0) continue;
    axis.unchecked = false;
    own.axis[own.count++] = axis;
  }
  return own;
}

static void shard_map(const char *owner, const ax_mesh *mesh, const char *specs, bool unchecked, ax_fn function, const ax_value *in,
                      ax_value *out) {
  in = ax_take_operands(in, function.in_count, out, function.out_count);
  ax_spec *in_specs = ax_trace_alloc(function.in_count * sizeof in_specs[0]);
  ax_spec *out_specs = ax_trace_alloc(function.out_count * sizeof out_specs[0]);
  if (in_specs == NULL || out_specs == NULL) return;
  if (mesh == NULL) {
    ax_reject_as(owner, "there is no mesh");
    return;
  }
  ax_shard_map_params params = {.unchecked = unchecked, .out_specs = {function.out_count, out_specs}};
  ax_status status = ax_mesh_check(mesh);
  if (status == AX_OK) params.mesh = map_mesh(mesh, &ax_builder_current()->axes);
  if (status == AX_OK) status = ax_parse_specs(specs, function.in_count, function.out_count, mesh, in_specs, out_specs, NULL);
  if (status == AX_OK) status = renumber_all("operand", in_specs, function.in_count, mesh, &params.mesh);
  if (status == AX_OK) status = renumber_all("result", out_specs, function.out_count, mesh, &params.mesh);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", owner));
  if (!ax_failed()) ax_shard_map_trace(owner, &params, in_specs, function, in, out);
}

void (ax_shard_map)(const ax_mesh *mesh, const char *specs, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count,
                    ax_value *out) {
  if (!ax_lists_fit("shard_map", in_count, body.in_count, out_count, body.out_count, out)) return;
  shard_map("shard_map", mesh, specs, false, body, in, out);
}

void (ax_shard_map_unchecked)(const ax_mesh *mesh, const char *specs, ax_fn body, uint32_t in_count, const ax_value *in,
                              uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("shard_map_unchecked", in_count, body.in_count, out_count, body.out_count, out)) return;
  shard_map("shard_map_unchecked", mesh, specs, true, body, in, out);
}

void (ax_shard_map_manual)(const ax_mesh *mesh, const char *names, const char *specs, ax_fn body, uint32_t in_count,
                           const ax_value *in, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("shard_map_manual", in_count, body.in_count, out_count, body.out_count, out)) return;
  static const char owner[] = "shard_map_manual";
  ax_mesh by_hand;
  ax_status status = ax_mesh_manual(mesh, names, &by_hand);
  if (status == AX_OK) {
    shard_map(owner, &by_hand, specs, false, body, in, out);
    return;
  }
  (void)ax_take_operands(in, body.in_count, out, body.out_count);
  ax_fail(ax_error_context(status, "%s: ", owner));
}

void ax_call_sharded(const ax_value *in, ax_value *out, void *sharded) {
  const ax_sharded *s = sharded;
  ax_shard_map(s->mesh, s->specs, s->body, in, out);
  if (s->call != NULL) ax_stamp(s->call);
}
