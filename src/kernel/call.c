/* Kernels being traced: each body is a function of refs; what bodies use of the trace around are operands of all of them, as
   values.

     bodies:    refs -> ()                 captured values of each
     together:  (captured of any.., refs) -> ()                                                                            */
#include "kernel/call.h"

#include <string.h>

#include "kernel/grid.h"
#include "prim/rebuild.h"
#include "prim/prims.h"

/* --- Options --- */

static bool take_estimate(const char *function, double given, const char *what, int64_t *out) {
  if (!(given >= 0 && given < 9.2e18)) {
    ax_reject_as(function, "%g %s are estimated", given, what);
    return false;
  }
  *out = (int64_t)given;
  return true;
}

static bool take_aliases(const char *function, const ax_kernel_options *options, ax_pairs *aliases) {
  const ax_alias_list *given = &options->aliases;
  *aliases = (ax_pairs){given->count, ax_trace_alloc(given->count * sizeof aliases->v[0])};
  if (aliases->v == NULL) return false;
  if (given->count > 0 && given->v == NULL) {
    ax_reject_as(function, "there is no list of the %u aliases", given->count);
    return false;
  }
  for (uint32_t i = 0; i < given->count; i++) {
    aliases->v[i][0] = given->v[i][0];
    aliases->v[i][1] = given->v[i][1];
  }
  return true;
}

bool ax_take_kernel_options(const char *function, const ax_kernel_options *options, ax_kernel_params *params) {
  static const char nothing[] = "";
  params->name = options->name != NULL ? options->name : "kernel";
  params->target = options->target != NULL ? options->target : nothing;
  params->metadata = options->metadata != NULL ? options->metadata : nothing;
  params->compiler_params = options->compiler_params != NULL ? options->compiler_params : nothing;
  params->interpret = options->interpret;
  params->debug = options->debug;
  params->collective_id = options->collective_id;
  return take_estimate(function, options->flops, "operations", &params->flops) &&
         take_estimate(function, options->bytes, "bytes", &params->bytes) &&
         take_estimate(function, options->transcendentals, "transcendentals", &params->transcendentals) &&
         take_aliases(function, options, &params->aliases) &&
         ax_take_scratch(function, options->scratch.count, options->scratch.v, &params->scratch, &params->arrivals);
}

uint32_t ax_kernel_operands(uint32_t in_count, const ax_fn *body, uint32_t out_count, const ax_kernel_options *options) {
  uint32_t others = out_count + options->scratch.count;
  return ax_list_entries(in_count, body->in_count > others ? body->in_count - others : 0);
}

bool ax_take_kernel_outs(const char *function, uint32_t count, const ax_type *outs, ax_types *taken) {
  *taken = (ax_types){count, ax_trace_alloc(count * sizeof taken->v[0])};
  if (taken->v == NULL) return false;
  if (count > 0 && outs == NULL) {
    ax_reject_as(function, "there is no list of the types of %u results", count);
    return false;
  }
  for (uint32_t k = 0; k < count; k++) {
    taken->v[k] = outs[k];
    taken->v[k].spread = (ax_spread){0};
    if (outs[k].form == AX_REF) { /* the space is what its maker thinks of, and is no part of an array */
      taken->v[k].form = AX_ARRAY;
      taken->v[k].space = AX_SPACE_NONE;
    }
  }
  return true;
}

ax_status ax_kernel_axes(const ax_mesh *cores, ax_mesh *out) {
  *out = ax_builder_current()->axes;
  for (uint32_t i = 0; i < out->count; i++) out->axis[i].unchecked = !out->axis[i].automatic;
  AX_TRY(ax_mesh_check(cores));
  for (uint32_t i = 0; i < cores->count; i++) {
    if (ax_mesh_find(out, cores->axis[i].name) >= 0)
      return ax_error(AX_INVALID_ARGUMENT, "the core axis \"%s\" is called as an axis of devices in scope", cores->axis[i].name);
    if (out->count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d axes", AX_MAX_AXES);
    out->axis[out->count] = cores->axis[i];
    out->axis[out->count].automatic = false;
    out->axis[out->count++].unchecked = true;
  }
  return ax_mesh_check(out);
}

/* --- Bodies --- */

typedef struct tracing {
  ax_kernel_trace *of;
  ax_body *bodies;
  ax_value *captures; /* of all bodies and index maps, in the order they were first met */
  uint32_t capture_count;
  uint32_t **place; /* by body, then index map, and capture of its own: which of these it is */
} tracing;

static uint32_t map_count(const tracing *t) { return t->of->maps != NULL ? t->of->params.index_maps.count : 0; }
static uint32_t part_count(const tracing *t) { return t->of->params.bodies.count + map_count(t); }

/* A body, or behind them an index map. */
static ax_body *part(const tracing *t, uint32_t i) {
  const uint32_t bodies = t->of->params.bodies.count;
  return i < bodies ? &t->bodies[i] : &t->of->maps[i - bodies];
}

/* The user's function, with the grid around it. */
typedef struct gridded {
  ax_fn function;
  const ax_dims *grid;
} gridded;

static AX_BODY(call_gridded) {
  const gridded *g = context;
  if (!ax_grid_push(g->grid->count, NULL, g->grid->v)) return;
  g->function.function(in, out, g->function.context);
  ax_grid_pop();
}

static ax_status trace_body(tracing *t, uint32_t b) {
  const ax_kernel_trace *of = t->of;
  uint32_t refs = of->params.blocks.count, count = refs + of->params.scratch.count;
  const ax_fn *function = &of->bodies[b];
  if (function->function == NULL) return ax_error(AX_INVALID_ARGUMENT, "there is no function");
  if (function->out_count != 0)
    return ax_error(AX_INVALID_ARGUMENT, "it gives %u results; a kernel stores its results, and gives none", function->out_count);
  if (function->in_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it takes %u operands; there are %u refs of operands, %u of results and %u scratch",
                    function->in_count, of->in_count, refs - of->in_count, of->params.scratch.count);
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  if (types == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < count; i++) types[i] = i < refs ? of->refs[b][i] : of->params.scratch.v[i - refs];
  gridded g = {*function, &of->params.grid};
  return ax_body_trace(&(ax_body_options){.axes = &of->axes[b],
                                          .owner = of->function,
                                          .part = "body",
                                          .function = AX_CLOSURE(call_gridded, count, 0, &g),
                                          .in = types},
                       &t->bodies[b]);
}

/* Captures are values of the trace in progress, and there are few. */
static uint32_t place_of(tracing *t, ax_value captured) {
  uint32_t at = 0;
  while (at < t->capture_count && (t->captures[at].id != captured.id || t->captures[at].trace != captured.trace)) at++;
  if (at == t->capture_count) t->captures[t->capture_count++] = captured;
  return at;
}

static ax_status join_captures(tracing *t) {
  size_t all = 0;
  const uint32_t count = part_count(t);
  for (uint32_t b = 0; b < count; b++) all += part(t, b)->captured_count;
  t->captures = ax_trace_alloc(all * sizeof t->captures[0]);
  t->place = ax_trace_alloc(count * sizeof t->place[0]);
  for (uint32_t b = 0; b < count && !ax_failed(); b++) {
    const ax_body *body = part(t, b);
    t->place[b] = ax_trace_alloc(body->captured_count * sizeof t->place[b][0]);
    for (uint32_t i = 0; t->place[b] != NULL && i < body->captured_count; i++) t->place[b][i] = place_of(t, body->captured[i]);
  }
  return ax_failed() ? AX_OUT_OF_MEMORY : AX_OK;
}

static void take_capture_types(const tracing *t, ax_type *types) {
  for (uint32_t i = 0; i < t->capture_count; i++) {
    types[i] = ax_typeof(t->captures[i]);
    types[i].spread = (ax_spread){0};
  }
}

/* (captures of all.., refs..) -> () */
static ax_status make_alike(tracing *t, uint32_t b) {
  ax_body *body = &t->bodies[b];
  uint32_t own = body->captured_count, refs = body->program->in_count - own, count = t->capture_count + refs;
  if (own == t->capture_count && t->of->params.bodies.count == 1) return AX_OK;
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  uint32_t *at = ax_trace_alloc(body->program->in_count * sizeof at[0]);
  if (types == NULL || at == NULL) return AX_OUT_OF_MEMORY;
  take_capture_types(t, types);
  for (uint32_t i = 0; i < refs; i++) types[t->capture_count + i] = body->program->types[own + i];
  for (uint32_t i = 0; i < body->program->in_count; i++) at[i] = i < own ? t->place[b][i] : t->capture_count + i - own;
  ax_program *made;
  AX_TRY(ax_region_rearrange(body->program, types, count, at, NULL, 0, &made));
  ax_program_release(body->program);
  body->program = made;
  return AX_OK;
}

/* An index map that captures something: (numbers of the grid.., captures of all..) -> (indices..) */
static ax_status make_map(tracing *t, uint32_t m) {
  ax_body *map = &t->of->maps[m];
  const uint32_t own = map->captured_count, grid = map->program->in_count - own, count = grid + t->capture_count;
  if (own == 0) return AX_OK;
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  uint32_t *at = ax_trace_alloc(map->program->in_count * sizeof at[0]);
  if (types == NULL || at == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < grid; i++) types[i] = map->program->types[own + i];
  take_capture_types(t, types + grid);
  for (uint32_t i = 0; i < own; i++) at[i] = grid + t->place[t->of->params.bodies.count + m][i];
  for (uint32_t i = 0; i < grid; i++) at[own + i] = i;
  ax_program *made;
  uint32_t *all = ax_in_order(map->program->out_count);
  if (all == NULL) return AX_OUT_OF_MEMORY;
  AX_TRY(ax_region_rearrange(map->program, types, count, at, all, map->program->out_count, &made));
  ax_program_release(map->program);
  map->program = made;
  return AX_OK;
}

static ax_status trace_all(tracing *t) {
  uint32_t count = t->of->params.bodies.count;
  for (uint32_t b = 0; b < count; b++) {
    ax_status status = trace_body(t, b);
    if (status == AX_OK) continue;
    return count > 1 ? ax_error_context(status, "body %u, of \"%s\": ", b, t->of->params.cores.name[b])
                     : ax_error_context(status, "body: ");
  }
  AX_TRY(join_captures(t));
  for (uint32_t b = 0; b < count; b++) AX_TRY(make_alike(t, b));
  for (uint32_t m = 0; m < map_count(t); m++) AX_TRY(make_map(t, m));
  return AX_OK;
}

/* --- The equation --- */

static void bind(tracing *t) {
  ax_kernel_trace *of = t->of;
  uint32_t count = t->capture_count + of->in_count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  of->params.bodies.v = ax_trace_alloc(of->params.bodies.count * sizeof of->params.bodies.v[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < count; i++) all[i] = i < t->capture_count ? t->captures[i] : of->in[i - t->capture_count];
  for (uint32_t b = 0; b < of->params.bodies.count; b++) of->params.bodies.v[b] = t->bodies[b].program;
  for (uint32_t m = 0; m < map_count(t); m++) of->params.index_maps.v[m] = of->maps[m].program;
  of->params.consts = t->capture_count;
  ax_bind(&ax_prim_kernel_call, &of->params, all, count, of->out, of->params.outs.count);
}

void ax_kernel_bind(ax_kernel_trace *trace) {
  tracing t = {.of = trace, .bodies = ax_trace_alloc(trace->params.bodies.count * sizeof t.bodies[0])};
  if (t.bodies == NULL) return;
  ax_status status = trace_all(&t);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", trace->function));
  if (!ax_failed()) bind(&t);
  for (uint32_t b = 0; b < trace->params.bodies.count; b++) ax_body_deinit(&t.bodies[b]);
}
