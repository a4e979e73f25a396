/* ax_kernel_call: one body over the points of a grid, on blocks that index maps choose. */
#include <string.h>

#include "kernel/call.h"
#include "prim/prims.h"
#include "prim/shape.h"

static const char function[] = "kernel_call";

typedef struct cutting { /* operands and results, into blocks */
  ax_kernel_params *params;
  ax_body *maps; /* owned here */
} cutting;

static void first_block(const ax_value *in, ax_value *out, void *context) {
  (void)in;
  for (uint32_t d = 0; d < *(const uint32_t *)context; d++) out[d] = ax_integer(0);
}

/* Numbers of C that a map gives are s32, as its operands are. */
typedef struct mapping {
  const ax_block_spec *spec;
  uint32_t rank;
} mapping;

static void call_map(const ax_value *in, ax_value *out, void *context) {
  const mapping *m = context;
  if (m->spec->index_map == NULL) first_block(in, out, (void *)(uintptr_t)(const void *)&m->rank);
  else m->spec->index_map(in, out, m->spec->context);
  for (uint32_t d = 0; d < m->rank; d++)
    if (ax_is_number(out[d])) out[d] = ax_as("index map", out[d], AX_S32);
}

static ax_status trace_map(cutting *c, const ax_block_spec *spec, uint32_t rank, ax_body *out) {
  static const ax_mesh none;
  mapping m = {spec, rank};
  ax_type ids[AX_MAX_RANK];
  for (uint32_t d = 0; d < c->params->grid.count; d++) ids[d] = ax_array_type(AX_S32, AX_DIMS());
  return ax_body_trace(&(ax_body_options){.axes = &none,
                                          .owner = function,
                                          .part = "index map",
                                          .function = AX_CLOSURE(call_map, c->params->grid.count, rank, &m),
                                          .in = ids},
                       out);
}

/* The ref of a block of that shape: without the dimensions of which the spec says 0. */
static ax_type block_ref(const ax_block_spec *spec, const ax_type *whole, ax_type *shape) {
  int64_t dims[AX_MAX_RANK];
  uint32_t rank = 0;
  *shape = ax_array_type(whole->dtype, AX_LIST(whole->rank, whole->dims));
  for (uint32_t d = 0; d < spec->block.count; d++) {
    const int64_t size = spec->block.v[d];
    shape->dims[d] = size == 0 ? 1 : size;
    if (size != 0) dims[rank++] = size;
  }
  return ax_ref_type(spec->space == AX_SPACE_NONE ? AX_SPACE_VMEM : spec->space, whole->dtype, AX_LIST(rank, dims));
}

static ax_status take_spec(cutting *c, const ax_block_spec *spec, const ax_type *whole, uint32_t i) {
  ax_kernel_params *p = c->params;
  bool pinned = spec->space == AX_SPACE_ANY || spec->space == AX_SPACE_HBM;
  if (spec->space < AX_SPACE_NONE || spec->space >= AX_SPACE_COUNT || spec->space == AX_SPACE_REGISTERS)
    return ax_error(AX_INVALID_ARGUMENT, "%s is no space for operands",
                    spec->space == AX_SPACE_REGISTERS ? "registers" : "what is given");
  if (spec->block.count == 0) {
    if (spec->index_map != NULL && whole->rank > 0)
      return ax_error(AX_INVALID_ARGUMENT, "an index map, but no block that it could choose");
    p->blocks.v[i] =
        ax_ref_type(spec->space == AX_SPACE_NONE ? AX_SPACE_VMEM : spec->space, whole->dtype, AX_LIST(whole->rank, whole->dims));
    return AX_OK;
  }
  if (spec->block.v == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "a block of %u dimensions without their sizes", spec->block.count);
  if (spec->block.count != whole->rank)
    return ax_error(AX_INVALID_ARGUMENT, "a block of %u dimensions, but it is %s", spec->block.count,
                    ax_type_string(whole, &ax_builder_current()->axes));
  if (pinned)
    return ax_error(AX_INVALID_ARGUMENT, "what is pinned in %s has no blocks: bodies get the whole of it",
                    ax_space_names[spec->space]);
  for (uint32_t d = 0; d < whole->rank; d++)
    if (spec->block.v[d] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u of the block is %lld", d, (long long)spec->block.v[d]);
  p->blocks.v[i] = block_ref(spec, whole, &p->block_shapes.v[p->block_shapes.count++]);
  p->blocked.v[p->blocked.count][0] = i;
  p->blocked.v[p->blocked.count++][1] = p->index_maps.count;
  AX_TRY(trace_map(c, spec, whole->rank, &c->maps[p->index_maps.count]));
  p->index_maps.count++;
  return AX_OK;
}

static bool take_specs(cutting *c, const char *option, const ax_block_spec_list *specs, const char *side, const ax_type *whole,
                       uint32_t count) {
  static const ax_block_spec none;
  if (!ax_option_fits(function, option, specs->count, specs->v, count, side)) return false;
  uint32_t first = c->params->blocks.count;
  for (uint32_t i = 0; i < count; i++) {
    ax_status status = take_spec(c, specs->count > 0 ? &specs->v[i] : &none, &whole[i], first + i);
    if (status == AX_OK) continue;
    ax_fail(ax_error_context(status, "%s: %s %u: ", function, side, i));
    return false;
  }
  c->params->blocks.count += count;
  return true;
}

static bool take_blocks(cutting *c, const ax_kernel *kernel, const ax_type *in, uint32_t in_count) {
  ax_kernel_params *p = c->params;
  uint32_t both = in_count + kernel->outs.count;
  c->maps = ax_trace_alloc(both * sizeof c->maps[0]);
  p->blocks.v = ax_trace_alloc(both * sizeof p->blocks.v[0]);
  p->blocked.v = ax_trace_alloc(both * sizeof p->blocked.v[0]);
  p->block_shapes.v = ax_trace_alloc(both * sizeof p->block_shapes.v[0]);
  p->index_maps.v = ax_trace_alloc(both * sizeof p->index_maps.v[0]);
  return !ax_failed() && take_specs(c, "in_specs", &kernel->in_specs, "operand", in, in_count) &&
         take_specs(c, "out_specs", &kernel->out_specs, "result", p->outs.v, kernel->outs.count);
}

static bool take_grid(const ax_kernel *kernel, ax_kernel_params *params) {
  const ax_semantics_list *semantics = &kernel->semantics;
  const uint32_t rank = kernel->grid.count;
  if (!ax_dims_take(&ax_prim_kernel_call, rank, kernel->grid.v, &params->grid) ||
      !ax_option_fits(function, "semantics", semantics->count, semantics->v, rank, "grid dimension"))
    return false;
  for (uint32_t d = 0; d < rank; d++) {
    if (kernel->grid.v[d] < 0 || kernel->grid.v[d] > INT32_MAX) {
      ax_reject_as(function, "dimension %u of the grid is %lld", d, (long long)kernel->grid.v[d]);
      return false;
    }
    if (semantics->count > 0) params->semantics.v[d] = semantics->v[d];
  }
  params->semantics.count = semantics->count;
  return true;
}

/* A kernel over a grid has no core meshes, so none of its scratch may name one. */
static bool take_scratch_cores(const ax_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->options.scratch.count; i++) {
    if (kernel->options.scratch.v[i].core == NULL) continue;
    ax_reject_as(function, "scratch %u is of the core type \"%s\", but a kernel over a grid has no core meshes", i,
                 kernel->options.scratch.v[i].core);
    return false;
  }
  return true;
}

void(ax_kernel_call)(const ax_kernel *kernel, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count,
                     ax_value *out) {
  static const ax_mesh none;
  if (ax_failed()) return;
  if (kernel == NULL) {
    ax_reject_as(function, "there is no kernel");
    return;
  }
  in_count = ax_kernel_operands(in_count, &body, kernel->outs.count, &kernel->options);
  if (!ax_lists_fit(function, in_count, in_count, out_count, kernel->outs.count, out)) return;
  in = ax_take_operands(in, in_count, out, kernel->outs.count);
  ax_kernel_trace t = {.function = function, .bodies = &body, .in_count = in_count, .in = in, .out = out};
  cutting c = {.params = &t.params};
  const ax_type *types = ax_types_of(function, in, in_count);
  if (types == NULL || !ax_take_kernel_options(function, &kernel->options, &t.params) || !take_scratch_cores(kernel) ||
      !ax_take_kernel_outs(function, kernel->outs.count, kernel->outs.v, &t.params.outs) || !take_grid(kernel, &t.params))
    return;
  ax_mesh axes;
  ax_status status = ax_kernel_axes(&none, &axes);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", function));
  strcpy(t.params.cores.name[0], "core");
  t.params.cores.count = t.params.core_axes.count = t.params.bodies.count = 1;
  if (!ax_failed() && take_blocks(&c, kernel, types, in_count)) {
    const ax_type *refs = t.params.blocks.v;
    t.axes = &axes;
    t.refs = &refs;
    t.maps = c.maps;
    ax_kernel_bind(&t);
  }
  for (uint32_t i = 0; c.maps != NULL && i < t.params.index_maps.count; i++) ax_body_deinit(&c.maps[i]);
}
