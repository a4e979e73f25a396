/* Batching of kernels: the batch becomes one more dimension of the grid, in front.

     in: f32[8,4], blocks (2,4) at (i, 0)       in: f32[n,8,4], blocks (1,2,4) at (b, i, 0); the body gets the last two dimensions
     pinned: ref<f32[8,4] hbm>                  ref<f32[n,8,4] hbm>; the body takes the slice at program_id 0
     captured: f32[4]                           an operand f32[n,4] in blocks (1,4), which the body loads

   program_id d becomes d + 1, and the member number along a batched axis is program_id 0. Scratch is kept from one element to the
   next, as from one point to the next: each element begins with scratch whose content is undefined. An operand that the body writes
   is each element's own. Kernels over meshes of cores, and kernels without blocks because they have no elements, are run one
   element after the other. */
#include <string.h>

#include "kernel/discharge.h"
#include "kernel/kernel_call.h"
#include "kernel/rebody.h"
#include "kernel/step.h"
#include "collectives/collective.h"
#include "control/host_call.h"
#include "prim/prims.h"

typedef struct batching {
  const ax_batch_args *args;
  const ax_kernel_params *params;
  ax_kernel_params made;
  uint32_t consts, operands, moved; /* moved: of the consts, those that become operands, behind the others */
  bool gridded; /* a dimension of the grid is added */
  bool *batched; /* by operand of the equation */
  bool *mapped;  /* by captured value: an index map reads it. One that is batched too stays a captured value besides, of all elements */
  bool *written; /* by input of the body */
} batching;

/* --- Bodies in another environment --- */

static ax_value id_of(int64_t dimension) { return ax_bind1(&ax_prim_program_id, &(ax_program_id_params){dimension}, NULL, 0); }

/* The number along names of which one is the batch's. */
static ax_value number_along(const batching *b, const ax_axes *major, const ax_axes *minor) {
  ax_value index = id_of(0);
  if (major->count > 0) index = ax_add(ax_mul(ax_bind1(&ax_prim_axis_index, major, NULL, 0), ax_integer(b->args->size)), index);
  if (minor->count > 0)
    index = ax_add(ax_mul(index, ax_integer(ax_axes_members(minor))), ax_bind1(&ax_prim_axis_index, minor, NULL, 0));
  return index;
}

static ax_mesh axes_without(const void *context, const ax_mesh *was) {
  const batching *b = context;
  ax_mesh axes = *was;
  int at = b->args->axis != NULL ? ax_mesh_find(&axes, b->args->axis) : -1;
  if (at < 0) return axes;
  memmove(&axes.axis[at], &axes.axis[at + 1], (axes.count - (uint32_t)at - 1) * sizeof axes.axis[0]);
  axes.count--;
  return axes;
}

/* The axes of an equation without the batch's. What signals or copies along it cannot do without, and the trace fails. */
static void params_without(const void *context, const ax_eqn *eqn, void *params) {
  const batching *b = context;
  for (uint32_t p = 0; p < eqn->prim->param_count && b->args->axis != NULL; p++) {
    if (eqn->prim->params[p].kind != AX_PARAM_AXES) continue;
    ax_axes *names = (ax_axes *)((char *)params + eqn->prim->params[p].offset), before = *names;
    if (!ax_axes_without(&before, b->args->axis, names) || eqn->prim->kind == AX_COLLECTIVE) continue;
    ax_fail(ax_error(AX_ABSENT, "vmap: %s names \"%s\", which is the batch's: its elements are not cores", eqn->prim->name,
                     b->args->axis));
  }
}

static bool bind(const void *context, const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const batching *b = context;
  ax_axes major, minor;
  const ax_program_id_params *number = ax_step_grid_number(eqn);
  const ax_grid_point_params *point = ax_step_grid_point(eqn);
  if (number != NULL && b->gridded) {
    out[0] = id_of(number->dimension + 1);
    return true;
  }
  if (point != NULL && b->gridded) { /* its numbers are its own */
    batching inside = *b;
    inside.gridded = false;
    ax_program *body;
    ax_status status = ax_rebody_program(&(ax_rebody){&inside, axes_without, bind, params_without}, point->body, &body);
    if (status != AX_OK) ax_fail(status);
    else ax_emit(eqn->prim, &(ax_grid_point_params){point->grid, body}, in, eqn->in_count, out, 0);
    ax_program_release(body);
    return true;
  }
  if (eqn->prim != &ax_prim_axis_index || b->args->axis == NULL || !ax_axes_around(eqn->params, b->args->axis, &major, &minor))
    return false;
  if (b->gridded) out[0] = number_along(b, &major, &minor);
  else
    ax_fail(ax_error(AX_ABSENT, "vmap: a kernel over core meshes asks for its number along \"%s\", which is the batch's",
                     b->args->axis));
  return true;
}

static ax_rebody anew(const batching *b) { return (ax_rebody){b, axes_without, bind, params_without}; }

/* --- Which operands have elements of their own --- */

static bool is_const(const batching *b, uint32_t i) { return i < b->consts; }

/* Results of one memory with an operand, and operands that are written. */
static void find_batched(batching *b) {
  const ax_eqn *eqn = b->args->eqn;
  for (uint32_t i = 0; i < eqn->in_count; i++) b->batched[i] = b->args->in_dim[i] >= 0 || (!is_const(b, i) && b->written[i]);
  for (uint32_t a = 0; a < b->params->aliases.count; a++) b->batched[b->consts + b->params->aliases.v[a][0]] = true;
  for (uint32_t i = 0; i < b->consts; i++) b->moved += b->batched[i];
}

static bool has_room(const ax_type *type) { return type->rank < AX_MAX_RANK && ax_type_elems(type) > 0; }

/* Whether all that is batched can be cut into blocks. */
static bool can_grid(const batching *b) {
  const ax_kernel_params *p = b->params;
  if (p->bodies.count > 1 || p->core_axes.v[0] > 0 || p->grid.count == AX_MAX_RANK) return false;
  for (uint32_t i = 0; i < b->consts; i++)
    if (b->batched[i] && !has_room(&p->bodies.v[0]->types[i])) return false;
  for (uint32_t i = 0; i < p->blocks.count; i++)
    if ((i >= b->operands || b->batched[b->consts + i]) && !has_room(&p->blocks.v[i])) return false;
  for (uint32_t i = 0; i < p->block_shapes.count; i++)
    if (!has_room(&p->block_shapes.v[i])) return false;
  return b->args->size <= INT32_MAX;
}

/* --- Blocks --- */

typedef struct blocks { /* being put together */
  ax_program **maps;
  uint32_t count; /* operands and results so far */
} blocks;

static ax_type with_front(const ax_type *type, int64_t size) {
  ax_type made = *type;
  made.rank++;
  made.dims[0] = size;
  memcpy(made.dims + 1, type->dims, type->rank * sizeof made.dims[0]);
  return made;
}

/* Whether captured value i is still one. */
static bool stays(const batching *b, uint32_t i) { return !b->batched[i] || b->mapped[i]; }

/* The type of a captured value that stays. */
static ax_type captured_type(const batching *b, uint32_t i) {
  const ax_type *type = &b->params->bodies.v[0]->types[i];
  return b->batched[i] ? with_front(type, b->args->size) : *type;
}

/* What the old map takes: the numbers behind the first, and captured values, of which those that are batched give this element's. */
static void call_map(const batching *b, const ax_program *map, const ax_value *in, uint32_t rank, ax_value *out) {
  const uint32_t grid = b->params->grid.count;
  ax_value *all = ax_trace_alloc((map->in_count + 1) * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t d = 0; d < grid; d++) all[d] = in[1 + d];
  const ax_value *captured = in + 1 + grid;
  for (uint32_t i = 0; i < b->consts && ax_map_takes_consts(b->params, map); i++) {
    if (!stays(b, i)) { /* no map reads it */
      const ax_type *type = &b->params->bodies.v[0]->types[i];
      all[grid + i] = (ax_full)(type->dtype, AX_LIST(type->rank, type->dims), 0);
      continue;
    }
    all[grid + i] = b->batched[i] ? ax_dynamic_at(*captured, in[0], 0) : *captured;
    captured++;
  }
  ax_call(map, AX_LIST(map->in_count, all), AX_LIST(rank, out));
}

/* (b, point of the grid, captured values if the map takes them) -> (b if batched, index_map(point); zeros without a map) */
static ax_program *map_of(const batching *b, const ax_program *map, uint32_t rank, bool batched) {
  static const ax_mesh none;
  ax_builder builder;
  ax_program *made = NULL;
  ax_value outs[AX_MAX_RANK + 1];
  uint32_t grid = b->params->grid.count, count = 0;
  ax_type *types = ax_trace_alloc((grid + 1 + b->consts) * sizeof types[0]);
  if (types == NULL) return NULL;
  while (count <= grid) types[count++] = ax_array_type(AX_S32, AX_DIMS());
  for (uint32_t i = 0; i < b->consts && map != NULL && ax_map_takes_consts(b->params, map); i++)
    if (stays(b, i)) types[count++] = captured_type(b, i);
  ax_value *in = ax_region_begin(&builder, &none, types, count);
  if (in != NULL && batched) outs[0] = in[0];
  if (in != NULL && map != NULL) call_map(b, map, in, rank, outs + batched);
  for (uint32_t d = 0; in != NULL && map == NULL && d < rank; d++) outs[d + batched] = ax_full_i64(AX_S32, AX_DIMS(), 0);
  ax_status status = ax_region_finish(&builder, outs, rank + batched, &made);
  if (status != AX_OK) ax_fail(status);
  return made;
}

static void add_block(batching *b, blocks *all, const ax_type *ref, const ax_type *shape, const ax_program *map, bool batched) {
  ax_kernel_params *made = &b->made;
  bool pinned = ref->space == AX_SPACE_ANY || ref->space == AX_SPACE_HBM;
  uint32_t i = all->count++;
  made->blocks.v[i] = batched && pinned ? with_front(ref, b->args->size) : *ref;
  if (shape == NULL && (!batched || pinned)) return;
  ax_type whole = ax_array_type(ref->dtype, AX_LIST(ref->rank, ref->dims));
  if (shape == NULL) shape = &whole;
  uint32_t m = made->index_maps.count;
  all->maps[m] = map_of(b, map, shape->rank, batched);
  if (all->maps[m] != NULL) made->index_maps.count++;
  made->blocked.v[made->blocked.count][0] = i;
  made->blocked.v[made->blocked.count++][1] = m;
  made->block_shapes.v[made->block_shapes.count++] = batched ? with_front(shape, 1) : *shape;
}

static void add_blocks(batching *b, blocks *all, uint32_t first, uint32_t count) {
  const ax_kernel_params *p = b->params;
  for (uint32_t i = first, next = 0; i < first + count && !ax_failed(); i++) {
    while (next < p->blocked.count && p->blocked.v[next][0] < i) next++;
    bool blocked = next < p->blocked.count && p->blocked.v[next][0] == i;
    add_block(b, all, &p->blocks.v[i], blocked ? &p->block_shapes.v[next] : NULL,
              blocked ? p->index_maps.v[p->blocked.v[next][1]] : NULL, i >= b->operands || b->batched[b->consts + i]);
  }
}

static void make_blocks(batching *b, blocks *all) {
  const ax_kernel_params *p = b->params;
  ax_kernel_params *made = &b->made;
  uint32_t most = p->blocks.count + b->moved + 1;
  all->maps = ax_trace_alloc(most * sizeof all->maps[0]);
  made->index_maps = (ax_programs){0, all->maps};
  made->blocks = (ax_types){p->blocks.count + b->moved, ax_trace_alloc(most * sizeof made->blocks.v[0])};
  made->block_shapes = (ax_types){0, ax_trace_alloc(most * sizeof made->block_shapes.v[0])};
  made->blocked = (ax_pairs){0, ax_trace_alloc(most * sizeof made->blocked.v[0])};
  made->outs.v = ax_trace_alloc((p->outs.count + 1) * sizeof made->outs.v[0]);
  if (ax_failed()) return;
  for (uint32_t k = 0; k < p->outs.count; k++) made->outs.v[k] = with_front(&p->outs.v[k], b->args->size);
  add_blocks(b, all, 0, b->operands);
  for (uint32_t i = 0; i < b->consts && !ax_failed(); i++) {
    const ax_type *type = &p->bodies.v[0]->types[i];
    ax_type ref = ax_ref_type(AX_SPACE_VMEM, type->dtype, AX_LIST(type->rank, type->dims));
    if (b->batched[i]) add_block(b, all, &ref, NULL, NULL, true);
  }
  add_blocks(b, all, b->operands, p->outs.count);
}

/* --- The body --- */

/* Gives the ref that the old body takes: for a pinned operand or result the slice of this element. */
static ax_value own_ref(const batching *b, uint32_t i, ax_value ref) {
  const ax_type *was = &b->params->blocks.v[i];
  bool batched = i >= b->operands || b->batched[b->consts + i];
  return batched && (was->space == AX_SPACE_ANY || was->space == AX_SPACE_HBM) ? ax_ref_at(ref, id_of(0)) : ref;
}

static ax_program *make_body(const batching *b) {
  const ax_program *old = b->params->bodies.v[0];
  const ax_kernel_params *made = &b->made;
  ax_builder builder;
  ax_program *body = NULL;
  ax_mesh axes = ax_builder_current()->axes;
  for (uint32_t i = 0; i < axes.count; i++) axes.axis[i].unchecked = !axes.axis[i].automatic;
  uint32_t consts = (uint32_t)made->consts, count = consts + made->blocks.count + made->scratch.count, at = 0;
  ax_type *types = ax_trace_alloc((count + 1) * sizeof types[0]);
  if (types == NULL) return NULL;
  for (uint32_t i = 0; i < b->consts; i++)
    if (stays(b, i)) types[at++] = captured_type(b, i);
  for (uint32_t i = 0; i < made->blocks.count; i++) types[at++] = made->blocks.v[i];
  for (uint32_t i = 0; i < made->scratch.count; i++) types[at++] = made->scratch.v[i];
  ax_value *given = ax_region_begin(&builder, &axes, types, count);
  ax_value *in = ax_trace_alloc((old->in_count + 1) * sizeof in[0]);
  if (given != NULL && in != NULL) {
    const ax_value *refs = given + consts, *plain = given, *moved = refs + b->operands;
    for (uint32_t i = 0; i < b->consts; i++) {
      in[i] = b->batched[i] ? ax_ref_load(*moved++) : *plain;
      plain += stays(b, i);
    }
    for (uint32_t i = 0; i < b->params->blocks.count; i++)
      in[b->consts + i] = own_ref(b, i, refs[i < b->operands ? i : i + b->moved]);
    for (uint32_t i = 0; i < made->scratch.count; i++) in[b->consts + b->params->blocks.count + i] = refs[made->blocks.count + i];
    const ax_rebody how = anew(b);
    if (!ax_failed()) ax_rebody_bind(&how, old, in, NULL);
  }
  ax_status status = ax_region_finish(&builder, NULL, 0, &body);
  if (status != AX_OK) ax_fail(status);
  return body;
}

/* --- Both ways --- */

static int64_t times(int64_t estimate, int64_t size) {
  int64_t all;
  return ax_mul_i64(estimate, size, &all) ? all : INT64_MAX;
}

static void by_grid(batching *b) {
  const ax_batch_args *args = b->args;
  ax_kernel_params *made = &b->made;
  blocks all = {0};
  for (uint32_t i = made->consts = 0; i < b->consts; i++) made->consts += stays(b, i);
  made->grid.count = b->params->grid.count + 1;
  made->grid.v[0] = args->size;
  memcpy(made->grid.v + 1, b->params->grid.v, b->params->grid.count * sizeof made->grid.v[0]);
  made->semantics.count = b->params->semantics.count > 0 ? made->grid.count : 0;
  for (uint32_t d = 1; d < made->semantics.count; d++) made->semantics.v[d] = b->params->semantics.v[d - 1];
  if (made->semantics.count > 0) made->semantics.v[0] = AX_ARBITRARY;
  made->flops = times(b->params->flops, args->size);
  made->bytes = times(b->params->bytes, args->size);
  made->transcendentals = times(b->params->transcendentals, args->size);
  make_blocks(b, &all);
  ax_program *body = ax_failed() ? NULL : make_body(b);
  ax_value *in = ax_trace_alloc((args->eqn->in_count + b->consts + 1) * sizeof in[0]);
  uint32_t at = 0;
  for (uint32_t i = 0; i < b->consts && in != NULL; i++)
    if (stays(b, i)) in[at++] = b->batched[i] ? ax_batch_front(args->in[i], args->in_dim[i], args->size) : args->in[i];
  for (uint32_t i = b->consts; i < args->eqn->in_count && in != NULL; i++)
    in[at++] = b->batched[i] ? ax_batch_front(args->in[i], args->in_dim[i], args->size) : args->in[i];
  for (uint32_t i = 0; i < b->consts && in != NULL; i++)
    if (b->batched[i]) in[at++] = ax_batch_front(args->in[i], args->in_dim[i], args->size);
  made->bodies = (ax_programs){1, &body};
  if (!ax_failed()) ax_bind(&ax_prim_kernel_call, made, in, at, args->out, args->eqn->out_count);
  for (uint32_t m = 0; m < made->index_maps.count; m++) ax_program_release(all.maps[m]);
  ax_program_release(body);
}

/* The same kernel for each element. */
static void by_scan(batching *b) {
  const ax_program *const *old = (const ax_program *const *)b->params->bodies.v;
  ax_program **bodies = ax_trace_alloc(b->params->bodies.count * sizeof bodies[0]);
  uint32_t count = 0;
  if (bodies == NULL) return;
  const ax_rebody how = anew(b);
  for (; count < b->params->bodies.count && !ax_failed(); count++) {
    ax_status status = ax_rebody_program(&how, old[count], &bodies[count]);
    if (status != AX_OK) ax_fail(status);
  }
  b->made.bodies.v = bodies;
  if (!ax_failed()) ax_batch_one_by_one(b->args, &b->made);
  while (count > 0) ax_program_release(bodies[--count]);
}

/* Marks the captured values that index maps read. */
static void find_mapped(batching *b) {
  const uint32_t grid = b->params->grid.count;
  for (uint32_t m = 0; m < b->params->index_maps.count; m++) {
    const ax_program *map = b->params->index_maps.v[m];
    for (uint32_t e = 0; e < map->eqn_count; e++)
      for (uint32_t i = 0; i < map->eqns[e].in_count; i++)
        if (map->eqns[e].in[i] >= grid && map->eqns[e].in[i] < map->in_count) b->mapped[map->eqns[e].in[i] - grid] = true;
    for (uint32_t d = 0; d < map->out_count; d++)
      if (map->outs[d] >= grid && map->outs[d] < map->in_count) b->mapped[map->outs[d] - grid] = true;
  }
}

void ax_kernel_call_batch(const ax_batch_args *args) {
  const ax_kernel_params *params = args->eqn->params;
  const ax_program *body = params->bodies.v[0];
  batching b = {.args = args, .params = params, .made = *params, .consts = (uint32_t)params->consts};
  b.operands = args->eqn->in_count - b.consts;
  b.batched = ax_trace_alloc(args->eqn->in_count + 1);
  b.written = ax_trace_alloc(body->in_count + 1);
  b.mapped = ax_trace_alloc(b.consts + 1);
  if (ax_failed()) return;
  find_mapped(&b);
  ax_status status = ax_written_inputs(body, b.written);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  find_batched(&b);
  b.gridded = can_grid(&b);
  if (b.gridded) by_grid(&b);
  else by_scan(&b);
}
