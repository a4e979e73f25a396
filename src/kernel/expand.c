/* Rewrites a kernel over a grid as one without a grid: a body over the whole operands and results, in HBM, with a pipeline that
   brings the blocks of each point in and takes results out (pipeline.c). So running, checking and lowering handle one form.

     kernel_call[grid, blocks, body]
       becomes
     (consts.., whole refs.., scratch..) -> () { emit_pipeline, at each step: grid_point[body] }

   Scratch belongs to the kernel, so it is kept from point to point. Points run in row-major order, also along AX_PARALLEL
   dimensions, which allow any order. A result's slot keeps its content as long as its block stays the same. A block that is
   visited again after another one begins anew, except where the result is the memory of an operand: then each step waits until the
   one before has stored, and the slot starts with the block's content in the whole. */
#include <string.h>

#include "ir/transform.h"
#include "kernel/pipeline.h"
#include "prim/prims.h"

static const char function[] = "kernel_call";

typedef struct expansion {
  const ax_kernel_params *params;
  uint32_t operands, results;
  const ax_type *in; /* of the equation's operands, with consts */
  ax_value *given;   /* consts, whole refs, scratch */
  ax_pipe pipe;
} expansion;

static uint32_t ref_count(const expansion *e) { return e->operands + e->results; }

/* --- Blocks --- */

static const ax_type *whole_of(const expansion *e, uint32_t i) {
  return i < e->operands ? &e->in[e->params->consts + i] : &e->params->outs.v[i - e->operands];
}

static bool is_pinned(const ax_type *ref) { return ref->space == AX_SPACE_HBM || ref->space == AX_SPACE_ANY; }

typedef struct mapping {
  const expansion *e;
  const ax_program *map;
} mapping;

static AX_BODY(call_map) {
  const mapping *m = context;
  const uint32_t grid = m->e->params->grid.count, count = m->map->in_count;
  int *dims = ax_trace_alloc((count + 1) * sizeof dims[0]); /* nothing is batched: the equations as they are */
  ax_value *all = ax_trace_alloc((count + 1) * sizeof all[0]);
  if (dims == NULL || all == NULL) return;
  for (uint32_t i = 0; i < count; i++) {
    dims[i] = -1;
    all[i] = i < grid ? in[i] : m->e->given[i - grid];
  }
  ax_batch_call(m->map, all, dims, 1, NULL, NULL, out);
}

/* The block's dimensions, of which those that its ref lacks are 0. The ref's are the others in order, so it is found which from the
   first on. */
static void find_squeezed(const ax_type *shape, const ax_type *ref, int64_t *block) {
  uint32_t at = 0;
  for (uint32_t d = 0; d < shape->rank; d++) {
    bool there = at < ref->rank && ref->dims[at] == shape->dims[d];
    block[d] = there ? shape->dims[d] : 0;
    at += there;
  }
}

/* The specs that the kernel was made of. NULL: the trace has failed. */
static ax_block_spec *specs_of(const expansion *e) {
  const ax_kernel_params *p = e->params;
  ax_block_spec *specs = ax_trace_alloc((ref_count(e) + 1) * sizeof specs[0]);
  if (specs == NULL) return NULL;
  for (uint32_t i = 0; i < ref_count(e); i++) specs[i] = (ax_block_spec){.space = p->blocks.v[i].space};
  for (uint32_t k = 0; k < p->blocked.count; k++) {
    uint32_t i = (uint32_t)p->blocked.v[k][0];
    const ax_type *shape = &p->block_shapes.v[k];
    int64_t *block = ax_trace_alloc((shape->rank + 1) * sizeof block[0]);
    if (block == NULL) return NULL;
    find_squeezed(shape, &p->blocks.v[i], block);
    specs[i].block = (ax_dim_list){shape->rank, block};
    specs[i].index_map = call_map;
    mapping *m = ax_trace_alloc(sizeof *m);
    if (m == NULL) return NULL;
    *m = (mapping){e, p->index_maps.v[p->blocked.v[k][1]]};
    specs[i].context = m;
  }
  return specs;
}

/* --- The body --- */

/* The refs of one point -> () */
static AX_BODY(at_point) {
  const expansion *e = context;
  const ax_kernel_params *p = e->params;
  uint32_t rank = p->grid.count, consts = (uint32_t)p->consts, refs = ref_count(e), count = 0;
  ax_value *all = ax_trace_alloc((rank + consts + refs + p->scratch.count + 1) * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t d = 0; d < rank; d++) all[count++] = ax_program_id(d);
  for (uint32_t i = 0; i < consts; i++) all[count++] = e->given[i];
  for (uint32_t i = 0; i < refs; i++) all[count++] = in[i];
  for (uint32_t i = 0; i < p->scratch.count; i++) all[count++] = e->given[consts + refs + i];
  ax_bind(&ax_prim_grid_point, &(ax_grid_point_params){p->grid, p->bodies.v[0]}, all, count, NULL, 0);
}

static AX_BODY(expanded) {
  expansion *e = context;
  const ax_kernel_params *p = e->params;
  uint32_t count = ref_count(e);
  const ax_block_spec *specs = specs_of(e);
  ax_value *refs = e->given + p->consts;
  if (specs == NULL) return;
  const ax_pipeline_options options = {.grid = {p->grid.count, p->grid.v},
                                       .in_count = e->operands,
                                       .out_count = e->results,
                                       .in_specs = {e->operands, specs},
                                       .out_specs = {e->results, specs + e->operands},
                                       .max_concurrent_steps = p->aliases.count > 0 ? 1 : 2};
  if (!ax_pipe_take(function, &options, 1, refs, &e->pipe) || e->pipe.steps == 0 || !ax_pipe_look(&e->pipe)) return;
  e->pipe.in_place = p->aliases.count > 0;
  for (uint32_t k = 0; k < p->aliases.count; k++) e->pipe.of[e->operands + (uint32_t)p->aliases.v[k][1]].loaded = true;
  ax_pipe_emit(&e->pipe, AX_CLOSURE(at_point, count, 0, e));
}

/* --- The program --- */

static ax_type input_type(const expansion *e, uint32_t i) {
  const ax_program *body = e->params->bodies.v[0];
  uint32_t consts = (uint32_t)e->params->consts;
  if (i < consts || i >= consts + ref_count(e)) return body->types[i];
  const ax_type *whole = whole_of(e, i - consts), *ref = &body->types[i];
  return ax_ref_type(is_pinned(ref) ? ref->space : AX_SPACE_HBM, whole->dtype, AX_LIST(whole->rank, whole->dims));
}

bool ax_kernel_has_grid(const ax_kernel_params *params) { return params->grid.count > 0 || params->blocked.count > 0; }

ax_status ax_kernel_expand(const ax_kernel_params *params, uint32_t in_count, const ax_type *in, ax_program **out) {
  expansion e = {.params = params, .operands = in_count - (uint32_t)params->consts, .results = params->outs.count, .in = in};
  const ax_program *body = params->bodies.v[0];
  ax_builder *builder;
  *out = NULL;
  AX_TRY(ax_builder_open(&body->axes, &builder));
  builder->owner = function;
  e.given = ax_trace_alloc((body->in_count + 1) * sizeof e.given[0]);
  for (uint32_t i = 0; e.given != NULL && i < body->in_count; i++) {
    const ax_type type = input_type(&e, i);
    e.given[i] = ax_builder_input(builder, &type);
  }
  if (!ax_failed()) expanded(NULL, NULL, &e);
  return ax_builder_finish(builder, NULL, 0, out, NULL, NULL);
}
