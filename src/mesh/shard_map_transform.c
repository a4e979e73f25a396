/* shard_map: the rules that make shard_maps of shard_maps. Each transforms the body, and lays out the new operands and results:

     jvp         a tangent has the spec of its value
     linearize   two shard_maps; a residual leaves the first and enters the second in blocks along dimension 0 over all axes that
                 it varies over (all that the body takes by hand when unchecked). One that is an operand is passed as it is.
     transpose   a cotangent has the spec of its value. A value that is invariant in the body but joined from blocks was copied to
                 them: its cotangent is the psum of theirs. Unchecked, types tell nothing: a result's cotangent is shared out among
                 the devices that hold the result, and an operand's is summed over those that hold the operand, as in JAX.
     batch       the batch dimension is not split, unless vmap's spmd_axis_name says so: then its entry in the specs names these
                 axes, and
                 the body is batched by a device's part of the size */
#include <string.h>

#include "ir/prim.h"
#include "mesh/shard_map.h"
#include "mesh/sharding.h"
#include "prim/prims.h"
#include "prim/rebuild.h"

/* A shard_map under construction: operands and results with their specs. */
typedef struct new_map {
  ax_shard_map_params params; /* the counts of its specs: so far */
  ax_value *in;
} new_map;

static bool new_map_init(new_map *a, const ax_eqn *eqn, uint32_t in_capacity, uint32_t out_capacity) {
  const ax_shard_map_params *params = eqn->params;
  *a = (new_map){.params = {.mesh = params->mesh, .unchecked = params->unchecked}};
  a->in = ax_trace_alloc(in_capacity * sizeof a->in[0]);
  a->params.in_specs.v = ax_trace_alloc(in_capacity * sizeof(ax_spec));
  a->params.out_specs.v = ax_trace_alloc(out_capacity * sizeof(ax_spec));
  return !ax_failed();
}

static void add_in(new_map *a, ax_value value, const ax_spec *spec) {
  a->in[a->params.in_specs.count] = value;
  a->params.in_specs.v[a->params.in_specs.count++] = *spec;
}

static void add_out(new_map *a, const ax_spec *spec) { a->params.out_specs.v[a->params.out_specs.count++] = *spec; }

/* Binds it; `body` is consumed. NULL: the trace has failed. */
static ax_value *new_map_bind(new_map *a, ax_status status, ax_program *body) {
  uint32_t count = a->params.out_specs.count;
  if (status != AX_OK) ax_fail(status);
  ax_value *out = ax_trace_alloc(count * sizeof out[0]);
  a->params.body = body;
  if (out != NULL) ax_bind(&ax_prim_shard_map, &a->params, a->in, a->params.in_specs.count, out, count);
  ax_program_release(body);
  return ax_failed() ? NULL : out;
}

/* --- jvp, linearize --- */

static void add_tangents(const ax_tangents *t, new_map *a) {
  const ax_eqn *eqn = t->args->eqn;
  const ax_shard_map_params *params = eqn->params;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (t->in[i]) add_in(a, t->args->tangent_in[i], &params->in_specs.v[i]);
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (t->out[k]) add_out(a, &params->out_specs.v[k]);
}

static void add_primals(new_map *a, const ax_jvp_args *args) {
  const ax_shard_map_params *params = args->eqn->params;
  for (uint32_t i = 0; i < args->eqn->in_count; i++) add_in(a, args->in[i], &params->in_specs.v[i]);
  for (uint32_t k = 0; k < args->eqn->out_count; k++) add_out(a, &params->out_specs.v[k]);
}

void ax_shard_map_jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_shard_map_params *params = eqn->params;
  ax_tangents t;
  new_map a;
  ax_program *body;
  if (!ax_tangents_init(&t, args) || !new_map_init(&a, eqn, 2 * eqn->in_count, 2 * eqn->out_count)) return;
  add_primals(&a, args);
  add_tangents(&t, &a);
  ax_status status = ax_jvp_program(params->body, t.in, t.want, &body);
  ax_value *out = new_map_bind(&a, status, body);
  if (out != NULL) ax_tangents_give(&t, out, out + eqn->out_count);
}

/* A body split in two, with residuals that can leave it. A scalar residual becomes [1], so that there is a dimension along which
   blocks are joined. A residual that is reduced over the map's axes leaves as invariant, and one that is unreduced leaves as
   varying parts; both are cast back in the second half. */
typedef struct split {
  const ax_shard_map_params *of;
  ax_program *primal, *tangent; /* (x..) -> (y.., r..); (r.., dx..) -> (dy..) */
  uint32_t y_count, residual_count;
} split;

/* The operand that a residual is, or AX_NONE. */
static uint32_t operand_of(const split *s, uint32_t r) {
  uint32_t id = s->primal->outs[s->y_count + r];
  return id < s->primal->in_count ? id : AX_NONE;
}

static ax_type carried_type(const split *s, uint32_t r) {
  ax_type type = s->tangent->types[r];
  ax_axis_set own = ax_shard_map_own(s->of);
  type.spread.varying |= type.spread.unreduced & own;
  type.spread.reduced &= ~own;
  type.spread.unreduced &= ~own;
  if (type.spread.unreduced == 0) type.spread.kind = AX_UNREDUCED_SUM;
  if (operand_of(s, r) != AX_NONE || type.rank > 0) return type;
  type.rank = 1;
  type.dims[0] = 1;
  return type;
}

/* Along dimension 0 over all axes that the residual may differ along. */
static ax_spec carried_spec(const split *s, uint32_t r) {
  ax_spec spec = {0};
  ax_axis_set over = ax_axis_set_on(carried_type(s, r).spread.varying, &s->of->body->axes, &s->of->mesh);
  if (s->of->unchecked) over = ax_manual_axes(&s->of->mesh);
  for (uint32_t i = 0; i < s->of->mesh.count; i++)
    if (over >> i & 1) spec.axis[0][spec.count[0]++] = (uint8_t)i;
  spec.rank = spec.count[0] > 0 ? 1 : 0;
  return spec;
}

static ax_value reshaped(ax_value x, const ax_type *type) {
  return ax_typeof(x).rank == type->rank ? x : ax_reshape(x, AX_LIST(type->rank, type->dims));
}

static ax_value leave(ax_value x, const ax_type *carried) {
  const ax_spread on = ax_typeof(x).spread;
  x = ax_cast(&ax_prim_reduced_invariant_cast, x, on.reduced & ~carried->spread.reduced);
  return reshaped(ax_cast(&ax_prim_unreduced_vary_cast, x, on.unreduced & ~carried->spread.unreduced), carried);
}

static ax_value come_in(ax_value x, const ax_type *type) {
  const ax_spread on = ax_typeof(x).spread;
  x = ax_cast(&ax_prim_preduced, x, type->spread.reduced & ~on.reduced);
  return reshaped(ax_cast_unreduced(x, type->spread.unreduced & ~on.unreduced, type->spread.kind), type);
}

/* (x..) -> (y.., r.. that are no operands) */
static ax_status build_primal(const split *s, ax_program **out) {
  const ax_program *primal = s->primal;
  ax_builder builder;
  ax_value *in = ax_region_begin(&builder, &primal->axes, primal->types, primal->in_count);
  ax_value *outs = ax_trace_alloc(primal->out_count * sizeof outs[0]);
  uint32_t count = s->y_count;
  if (in != NULL && outs != NULL) {
    ax_call(primal, in, outs);
    for (uint32_t r = 0; r < s->residual_count && !ax_failed(); r++) {
      ax_type type = carried_type(s, r);
      if (operand_of(s, r) == AX_NONE) outs[count++] = leave(outs[s->y_count + r], &type);
    }
  }
  return ax_region_finish(&builder, outs, count, out);
}

static ax_status build_tangent(const split *s, ax_program **out) {
  const ax_program *tangent = s->tangent;
  *out = NULL;
  ax_type *types = ax_calloc(tangent->in_count, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(tangent->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < tangent->in_count; i++)
    types[i] = i < s->residual_count ? carried_type(s, i) : tangent->types[i];
  ax_builder builder;
  ax_value *in = ax_region_begin(&builder, &tangent->axes, types, tangent->in_count);
  ax_value *outs = ax_trace_alloc(tangent->out_count * sizeof outs[0]);
  if (in != NULL && outs != NULL) {
    for (uint32_t r = 0; r < s->residual_count; r++) in[r] = come_in(in[r], &tangent->types[r]);
    ax_call(tangent, in, outs);
  }
  ax_free(types);
  return ax_region_finish(&builder, outs, tangent->out_count, out);
}

/* The first half. The residuals become operands of the second. Gives the results; NULL: the trace has failed. */
static ax_value *bind_primal(const split *s, const ax_jvp_args *args, new_map *second) {
  const ax_eqn *eqn = args->eqn;
  new_map a;
  ax_program *body;
  if (!new_map_init(&a, eqn, eqn->in_count, eqn->out_count + s->residual_count)) return NULL;
  add_primals(&a, args);
  for (uint32_t r = 0; r < s->residual_count; r++) {
    ax_spec spec = carried_spec(s, r);
    if (operand_of(s, r) == AX_NONE) add_out(&a, &spec);
  }
  ax_status status = build_primal(s, &body);
  ax_value *out = new_map_bind(&a, status, body);
  for (uint32_t r = 0, next = s->y_count; out != NULL && r < s->residual_count; r++) {
    uint32_t operand = operand_of(s, r);
    if (operand != AX_NONE) {
      add_in(second, args->in[operand], &s->of->in_specs.v[operand]);
    } else {
      add_in(second, out[next], &a.params.out_specs.v[next]);
      next++;
    }
  }
  return out;
}

void ax_shard_map_linearize(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  split s = {.of = eqn->params, .y_count = eqn->out_count};
  ax_tangents t;
  new_map a;
  ax_program *body;
  if (!ax_tangents_init(&t, args)) return;
  ax_status status = ax_linearize_program(s.of->body, t.in, t.want, NULL, &s.primal, &s.tangent, &s.residual_count);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_value *results = NULL;
  if (new_map_init(&a, eqn, s.residual_count + eqn->in_count, eqn->out_count)) results = bind_primal(&s, args, &a);
  if (results != NULL) {
    add_tangents(&t, &a);
    status = build_tangent(&s, &body);
    ax_value *tangents = new_map_bind(&a, status, body);
    if (tangents != NULL) ax_tangents_give(&t, results, tangents);
  }
  ax_program_release(s.primal);
  ax_program_release(s.tangent);
}

/* --- transpose --- */

/* A block of a result's cotangent -> the cotangent of the body's result. */
static ax_value entering(const ax_shard_map_params *params, ax_value cotangent, const ax_type *type, const ax_spec *spec) {
  ax_axis_set named = ax_spec_set(spec), all = ax_manual_axes(&params->mesh);
  if (params->unchecked) {
    int64_t holders = ax_axis_set_size(all & ~named, &params->mesh);
    return holders == 1 ? cotangent : ax_div(cotangent, ax_full_like(cotangent, (double)holders));
  }
  ax_axes spread =
      ax_axis_set_names(named & ~ax_axis_set_on(type->spread.varying, &params->body->axes, &params->mesh), &params->mesh);
  return spread.count == 0 ? cotangent : ax_bind1(&ax_prim_psum, &spread, &cotangent, 1);
}

static ax_value leaving(const ax_shard_map_params *params, ax_value cotangent, const ax_spec *spec) {
  if (!params->unchecked) return cotangent;
  ax_axes holders = ax_axis_set_names(ax_manual_axes(&params->mesh) & ~ax_spec_set(spec), &params->mesh);
  return holders.count == 0 ? cotangent : ax_bind1(&ax_prim_psum, &holders, &cotangent, 1);
}

typedef struct transposition {
  const ax_transpose_args *args;
  const ax_shard_map_params *params;
  bool *made_zero; /* linear operands whose cotangent is zero */
} transposition;

/* The types of the inputs of the transposed body: constants, blocks of cotangents that are not zero. */
static uint32_t block_types(const transposition *t, ax_type *types) {
  const ax_program *body = t->params->body;
  uint32_t count = 0;
  for (uint32_t i = 0; i < body->in_count; i++)
    if (!t->args->linear[i]) types[count++] = body->types[i];
  for (uint32_t k = 0; k < body->out_count; k++) {
    if (ax_is_zero(t->args->cotangent[k])) continue;
    types[count] = ax_dual(&body->types[body->outs[k]]);
    if (!t->params->unchecked)
      types[count].spread.varying |= ax_axis_set_on(ax_spec_set(&t->params->out_specs.v[k]), &t->params->mesh, &body->axes);
    count++;
  }
  return count;
}

static ax_status build_transposed(const transposition *t, ax_program **out) {
  const ax_program *body = t->params->body;
  ax_program *transposed;
  *out = NULL;
  const bool *zero = ax_cotangents_zero(t->args);
  if (zero == NULL) return AX_OUT_OF_MEMORY;
  AX_TRY(ax_transpose_program(body, t->args->linear, zero, t->made_zero, &transposed));
  ax_type *types = ax_calloc(transposed->in_count, sizeof types[0]);
  ax_builder builder;
  uint32_t count = types != NULL ? block_types(t, types) : 0, next = 0;
  for (uint32_t i = 0; i < body->in_count; i++) next += !t->args->linear[i];
  ax_value *in = ax_region_begin(&builder, &body->axes, types, count);
  ax_value *operands = ax_trace_alloc(transposed->in_count * sizeof operands[0]);
  ax_value *outs = ax_trace_alloc(transposed->out_count * sizeof outs[0]);
  if (types == NULL) ax_fail(ax_out_of_memory(transposed->in_count * sizeof types[0]));
  if (!ax_failed()) {
    memcpy(operands, in, next * sizeof in[0]);
    in += next;
    for (uint32_t k = 0; k < body->out_count; k++) {
      const ax_type *type = &body->types[body->outs[k]];
      if (ax_is_zero(t->args->cotangent[k])) continue;
      operands[next++] = entering(t->params, *in++, type, &t->params->out_specs.v[k]);
    }
    ax_call(transposed, operands, outs);
    for (uint32_t i = 0, k = 0; i < body->in_count; i++) {
      if (!t->args->linear[i]) continue;
      outs[k] = leaving(t->params, outs[k], &t->params->in_specs.v[i]);
      k++;
    }
  }
  ax_status status = ax_region_finish(&builder, outs, transposed->out_count, out);
  ax_program_release(transposed);
  ax_free(types);
  return status;
}

void ax_shard_map_transpose(const ax_transpose_args *args) {
  const ax_eqn *eqn = args->eqn;
  transposition t = {.args = args, .params = eqn->params};
  new_map a;
  ax_program *body;
  if (!new_map_init(&a, eqn, eqn->in_count + eqn->out_count, eqn->in_count)) return;
  t.made_zero = ax_trace_alloc(eqn->in_count);
  if (t.made_zero == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    if (args->linear[i])
      add_out(&a, &t.params->in_specs.v[i]);
    else
      add_in(&a, args->in[i], &t.params->in_specs.v[i]);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (!ax_is_zero(args->cotangent[k])) add_in(&a, args->cotangent[k], &t.params->out_specs.v[k]);
  ax_status status = build_transposed(&t, &body);
  ax_value *out = new_map_bind(&a, status, body);
  for (uint32_t i = 0; out != NULL && i < eqn->in_count; i++) {
    if (!args->linear[i]) continue;
    if (!t.made_zero[i]) args->out[i] = *out;
    out++;
  }
}

/* --- batch --- */

/* How the batch is laid over the mesh: the axes that it is split over, by number, in order. */
typedef struct batch_layout {
  uint8_t count, axis[AX_MAX_AXES];
  int64_t size; /* of a device's part */
} batch_layout;

static ax_status check_unused(const ax_specs *specs, const ax_axis_set set, const ax_mesh *mesh, const char *which) {
  for (uint32_t i = 0; i < specs->count; i++)
    if ((ax_spec_set(&specs->v[i]) & set) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "vmap: spmd_axis_name: %s is in use in the spec of shard_map's %s %u",
                      ax_axis_set_string(ax_spec_set(&specs->v[i]) & set, mesh), which, i);
  return AX_OK;
}

/* Constraints in the body split it then. */
static bool are_automatic(const ax_axes *names, const ax_mesh *mesh) {
  for (uint32_t k = 0; k < names->count; k++) {
    const int axis = ax_mesh_find(mesh, names->name[k]);
    if (axis < 0 || !mesh->axis[axis].automatic) return false;
  }
  return true;
}

static ax_status lay_batch(const ax_batch_args *args, batch_layout *out) {
  const ax_shard_map_params *params = args->eqn->params;
  const ax_builder *builder = ax_builder_current();
  const ax_axes *split = ax_batching_here().split;
  ax_axis_set set;
  *out = (batch_layout){.size = args->size};
  if (split == NULL || ax_mesh_find_manual(&builder->axes, split->name[0]) >= 0) return AX_OK; /* none, or it is split already */
  if (are_automatic(split, ax_mesh_find(&params->mesh, split->name[0]) >= 0 ? &params->mesh : &builder->axes)) return AX_OK;
  ax_status status = ax_axes_resolve(split, &params->mesh, &set);
  if (status != AX_OK) return ax_error_context(status, "vmap: spmd_axis_name: shard_map's mesh: ");
  AX_TRY(check_unused(&params->in_specs, set, &params->mesh, "operand"));
  AX_TRY(check_unused(&params->out_specs, set, &params->mesh, "result"));
  int64_t parts = ax_axis_set_size(set, &params->mesh);
  if (args->size % parts != 0)
    return ax_error(AX_INVALID_ARGUMENT, "vmap: spmd_axis_name: the size %lld cannot be split over the %lld devices along %s",
                    (long long)args->size, (long long)parts, ax_axis_set_string(set, &params->mesh));
  out->size /= parts;
  for (uint32_t k = 0; k < split->count; k++) out->axis[out->count++] = (uint8_t)ax_mesh_find(&params->mesh, split->name[k]);
  return AX_OK;
}

/* The spec with an entry for the batch put in at `dim`; as it is for -1. Inside the rank limit because the body's types are. */
static ax_spec with_batch(const ax_spec *spec, int dim, const batch_layout *layout) {
  ax_spec made = *spec;
  if (dim < 0 || ((uint32_t)dim >= spec->rank && layout->count == 0) || spec->rank == AX_MAX_RANK) return made;
  uint32_t at = (uint32_t)dim, after = spec->rank > at ? spec->rank - at : 0;
  memmove(made.count + at + 1, made.count + at, after * sizeof made.count[0]);
  memmove(made.axis + at + 1, made.axis + at, after * sizeof made.axis[0]);
  for (uint32_t d = spec->rank; d < at; d++) made.count[d] = 0;
  made.count[at] = layout->count;
  memcpy(made.axis[at], layout->axis, sizeof made.axis[at]);
  made.rank = at + 1 + after;
  return made;
}

void ax_shard_map_batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_shard_map_params *params = eqn->params;
  new_map a;
  batch_layout layout;
  ax_program *body = NULL;
  if (!new_map_init(&a, eqn, eqn->in_count, eqn->out_count)) return;
  ax_status status = lay_batch(args, &layout);
  if (status == AX_OK) status = ax_batch_program(params->body, args->in_dim, layout.size, args->axis, NULL, args->out_dim, &body);
  for (uint32_t i = 0; status == AX_OK && i < eqn->in_count; i++) {
    ax_spec spec = with_batch(&params->in_specs.v[i], args->in_dim[i], &layout);
    add_in(&a, args->in[i], &spec);
  }
  for (uint32_t k = 0; status == AX_OK && k < eqn->out_count; k++) {
    ax_spec spec = with_batch(&params->out_specs.v[k], args->out_dim[k], &layout);
    add_out(&a, &spec);
  }
  ax_value *out = new_map_bind(&a, status, body);
  if (out != NULL) memcpy(args->out, out, eqn->out_count * sizeof out[0]);
}

/* --- prune --- */

static ax_specs marked_specs(ax_arena *arena, const ax_specs *specs, const bool *marks) {
  ax_specs made = {0, ax_arena_alloc(arena, specs->count * sizeof made.v[0])};
  for (uint32_t i = 0; made.v != NULL && i < specs->count; i++)
    if (marks[i]) made.v[made.count++] = specs->v[i];
  return made;
}

ax_status ax_shard_map_prune(const ax_prune_args *args) {
  const ax_shard_map_params *of = args->eqn->params;
  AX_TRY(ax_needs_program(args->memo, of->body, args->out, args->in));
  if (args->params == NULL) return AX_OK;
  ax_shard_map_params params = *of;
  params.in_specs = marked_specs(&args->memo->arena, &of->in_specs, args->in);
  params.out_specs = marked_specs(&args->memo->arena, &of->out_specs, args->out);
  if (params.in_specs.v == NULL || params.out_specs.v == NULL) return ax_out_of_memory(0);
  AX_TRY(ax_prune_program(args->memo, of->body, args->out, args->in, &params.body));
  memcpy(args->params, &params, sizeof params);
  return AX_OK;
}
