/* Readers of sdy: constraints, and manual computations, which are shard_maps. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "bridge/devices.h"
#include "bridge/import.h"
#include "bridge/parts.h"
#include "bridge/readers.h"
#include "ir/flow.h"
#include "ir/prim.h"
#include "mesh/constraint.h"
#include "mesh/refine.h"
#include "mesh/shard_map.h"
#include "prim/bind.h"
#include "prim/prims.h"

/* --- Operations that leave values as they are --- */

static ax_status lay_out_by(const ax_hlo_read_args *args, const char *name) {
  const ax_hlo_attribute *sharding = ax_hlo_find(args->op, name);
  if (args->op->operand_count != 1 || args->op->result_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand");
  if (sharding == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute %s is missing", name);
  args->out[0] = args->in[0];
  return ax_hlo_lay_out_by(args->devices, sharding->text, &args->out[0]);
}
static ax_status constraint_read(const ax_hlo_read_args *args) { return lay_out_by(args, "sharding"); }
static ax_status moved_read(const ax_hlo_read_args *args) { return lay_out_by(args, "out_sharding"); }

static ax_status same_read(const ax_hlo_read_args *args) {
  if (args->op->result_count > args->op->operand_count) return ax_error(AX_INVALID_ARGUMENT, "it has more results than operands");
  for (uint32_t k = 0; k < args->op->result_count; k++) args->out[k] = args->in[k];
  return AX_OK;
}

/* The last value of a group of those that lie alike. */
typedef struct ax_hlo_alike {
  int64_t group;
  uint32_t number; /* of the module's value */
  ax_value value;
  struct ax_hlo_alike *next;
} ax_hlo_alike;

/* Each value of a group is tied to the one before it, if they are of one trace and of one shape. */
static ax_status group_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *group = ax_hlo_find(args->op, "group_id");
  if (args->op->operand_count != 1 || args->op->result_count != 0 || group == NULL || group->kind != AX_HLO_INTEGER)
    return ax_error(AX_INVALID_ARGUMENT, "it takes one operand and a group_id, and has no result");
  ax_hlo_alike *last = args->devices->alike;
  while (last != NULL && last->group != group->integer) last = last->next;
  if (last == NULL) {
    last = ax_arena_alloc(args->devices->arena, sizeof *last);
    if (last == NULL) return ax_out_of_memory(sizeof *last);
    *last = (ax_hlo_alike){.group = group->integer, .number = AX_NONE, .value = args->in[0], .next = args->devices->alike};
    args->devices->alike = last;
  }
  ax_value pair[] = {last->value, args->in[0]};
  const uint32_t number = args->op->operands[0];
  if (last->number != AX_NONE && last->number != number && pair[0].trace == pair[1].trace && !ax_failed()) {
    const ax_type x = ax_typeof(pair[0]), y = ax_typeof(pair[1]);
    if (x.rank == y.rank && memcmp(x.dims, y.dims, x.rank * sizeof x.dims[0]) == 0) {
      const ax_value tied[] = {pair[0], pair[1]};
      ax_shard_alike(tied, pair);
      args->import->values[last->number] = pair[0], args->import->values[number] = pair[1];
    }
  }
  last->number = number, last->value = pair[1];
  return AX_OK;
}

/* --- Computations --- */

/* The layout of each operand or result; *count of them, which must be `wanted`. */
static ax_status read_layouts(const ax_hlo_read_args *args, const char *name, uint32_t wanted, ax_sdy_sharding *out) {
  const ax_hlo_attribute *list = ax_hlo_find(args->op, name);
  const ax_hlo_devices *devices = args->devices;
  const char *at = NULL;
  ax_hlo_slice item;
  uint32_t count = 0;
  if (list == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute %s is missing", name);
  for (; ax_sdy_next(list->text, &at, &item); count++) {
    if (count == wanted) break;
    AX_TRY(ax_sdy_read_sharding(item, devices->meshes, devices->mesh_count, devices->arena, &out[count]));
  }
  if (count == wanted && (at == NULL || !ax_sdy_next(list->text, &at, &item))) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s must have %u layouts", name, wanted);
}

static void lay_out_all(const ax_sdy_sharding *layouts, uint32_t count, ax_axis_set but, ax_value *values) {
  for (uint32_t i = 0; i < count; i++)
    if ((ax_spec_set(&layouts[i].spec) & ~but) != 0) values[i] = ax_lay_out(values[i], &layouts[i].mesh.mesh, &layouts[i].spec);
}

typedef struct manual {
  const ax_hlo_read_args *args;
  ax_sdy_sharding *in, *out;
  ax_spec *specs; /* of what blocks are: operands', then results' */
  ax_hlo_grid grid;
  ax_axis_set axes; /* of grid.mesh: those that are taken by hand */
  ax_mesh mesh;     /* the shard_map's */
  ax_fn body;
  const ax_hlo_parts **taken; /* by operand: its parts, which the body takes as they are; NULL: the array */
  ax_axis_set *given;         /* by result: the axes along which its parts are a result, too; 0: they are none */
} manual;

/* The axes taken by hand along which the array is a sum of what devices have, "x,y"; empty: there are none. */
static ax_axes_list summed_along(const manual *m, const ax_sdy_sharding *layout) {
  const ax_axes names = ax_axis_set_names(layout->unreduced & m->axes, &m->grid.mesh);
  return ax_axes_listed(&names);
}

/* Of an operand that is such a sum the first device along these axes has all, and the others have nothing. */
static ax_value as_parts(ax_value x, const char *names) {
  return ax_where(ax_eq(ax_axis_index(names), ax_integer(0)), x, ax_full_like(x, 0));
}

static AX_BODY(run_manual) {
  const manual *m = context;
  const ax_hlo_grid *around = m->args->devices->grid;
  ax_value *blocks = ax_trace_alloc((m->body.in_count + (size_t)1) * sizeof blocks[0]);
  if (blocks == NULL) return;
  for (uint32_t i = 0; i < m->body.in_count; i++) {
    const ax_axes_list names = summed_along(m, &m->in[i]);
    if (m->taken[i] != NULL) blocks[i] = ax_squeeze(in[i], AX_DIMS(0));
    else blocks[i] = names.text[0] != '\0' ? as_parts(in[i], names.text) : in[i];
  }
  m->args->devices->grid = &m->grid;
  m->body.function(blocks, out, m->body.context);
  m->args->devices->grid = around;
  for (uint32_t k = 0, next = m->body.out_count; k < m->body.out_count && !ax_failed(); k++)
    if (m->given[k] != 0) out[next++] = ax_expand_dims(out[k], 0);
  for (uint32_t k = 0; k < m->body.out_count && !ax_failed(); k++) {
    const ax_axes_list names = summed_along(m, &m->out[k]);
    if (names.text[0] != '\0') out[k] = ax_psum(out[k], names.text);
  }
}

/* Gives the axes of a refinement the names of the axes that they are, or are parts of: data, or data__0 and data__1. */
static ax_status name_parts(const ax_mesh *whole, ax_mesh *refined) {
  ax_axis_list runs[AX_MAX_AXES];
  ax_mesh_runs(refined, 0, whole, runs);
  for (uint32_t i = 0; i < whole->count; i++)
    for (uint32_t k = 0; k < runs[i].count; k++) {
      ax_axis *axis = &refined->axis[runs[i].axis[k]];
      const int length = runs[i].count == 1 ? snprintf(axis->name, sizeof axis->name, "%s", whole->axis[i].name)
                                            : snprintf(axis->name, sizeof axis->name, "%s__%u", whole->axis[i].name, k);
      if ((size_t)length >= sizeof axis->name) return ax_error(AX_ABSENT, "the axis \"%s\" has too long a name to be cut up", whole->axis[i].name);
    }
  return AX_OK;
}

static void lay_out_over(const ax_mesh *refined, ax_sdy_sharding *layout) {
  ax_axis_list runs[AX_MAX_AXES];
  const ax_spec from = layout->spec;
  ax_mesh_runs(refined, 0, &layout->mesh.mesh, runs);
  for (uint32_t d = 0; d < from.rank; d++) {
    layout->spec.count[d] = 0;
    for (uint32_t k = 0; k < from.count[d]; k++)
      for (uint32_t r = 0; r < runs[from.axis[d][k]].count; r++)
        layout->spec.axis[d][layout->spec.count[d]++] = runs[from.axis[d][k]].axis[r];
  }
  const ax_axis_set unreduced = layout->unreduced;
  layout->unreduced = 0;
  for (uint32_t i = 0; i < layout->mesh.mesh.count; i++)
    for (uint32_t r = 0; r < runs[i].count && (unreduced >> i & 1) != 0; r++) layout->unreduced |= (ax_axis_set)1 << runs[i].axis[r];
  layout->mesh.mesh = *refined;
}

/* The mesh that all layouts are over, cut up as far as they need it; those without axes say nothing. */
static ax_status find_mesh(const manual *m, uint32_t count, ax_sdy_mesh *out) {
  const ax_sdy_sharding *first = NULL;
  ax_mesh refined;
  *out = (ax_sdy_mesh){0};
  for (uint32_t i = 0; i < count; i++) {
    const ax_sdy_sharding *own = &m->in[i];
    if (own->whole.count == 0) continue;
    if (first == NULL) first = own, *out = own->mesh;
    if (!ax_mesh_equal(&first->whole, &own->whole, false)) return ax_error(AX_ABSENT, "its layouts are over different meshes");
    if (!ax_mesh_refine(&out->mesh, &own->mesh.mesh, &refined)) return ax_error(AX_ABSENT, "its layouts are over parts of axes that do not go together");
    out->mesh = refined;
  }
  if (first == NULL) return AX_OK;
  AX_TRY(name_parts(&first->whole, &out->mesh));
  for (uint32_t i = 0; i < count; i++)
    if (m->in[i].whole.count > 0) lay_out_over(&out->mesh, &m->in[i]);
  return AX_OK;
}

/* A computation inside another has the axes of that one's mesh, by their names. */
static ax_status check_around(const ax_mesh *mesh) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t a = 0; a < axes->count; a++) {
    bool same = false;
    for (uint32_t i = 0; i < mesh->count; i++)
      same = same || (strcmp(axes->axis[a].name, mesh->axis[i].name) == 0 && axes->axis[a].size == mesh->axis[i].size);
    if (!same) return ax_error(AX_ABSENT, "its mesh has not the axis \"%s\" of the computation around it", axes->axis[a].name);
  }
  return AX_OK;
}

/* What of a layout the shard_map cuts: the axes that are taken by hand, which come first. */
static ax_status block_spec(const manual *m, const ax_sdy_sharding *layout, ax_spec *out) {
  *out = (ax_spec){.rank = layout->spec.rank};
  for (uint32_t d = 0; d < layout->spec.rank; d++)
    for (uint32_t k = 0; k < layout->spec.count[d]; k++) {
      const uint8_t axis = layout->spec.axis[d][k];
      if ((m->axes >> axis & 1) == 0) continue;
      if (out->count[d] < k)
        return ax_error(AX_INVALID_ARGUMENT, "a dimension is cut by a free axis before one that is taken by hand");
      out->axis[d][out->count[d]++] = axis;
    }
  ax_spec_renumber(out, &m->grid.mesh, &m->mesh);
  return AX_OK;
}

/* The mesh without the axes that are taken by hand around it, as one GSPMD computation inside another says all of them. */
static void own_mesh(manual *m) {
  const ax_mesh *axes = &ax_builder_current()->axes, *whole = &m->grid.mesh;
  for (uint32_t i = 0; i < whole->count; i++) {
    const bool taken = ax_mesh_find_manual(axes, whole->axis[i].name) >= 0, mine = (m->axes >> i & 1) != 0;
    if (taken) m->axes &= ~((ax_axis_set)1 << i);
    if (taken) continue;
    m->mesh.axis[m->mesh.count] = whole->axis[i];
    m->mesh.axis[m->mesh.count++].automatic = !mine;
  }
}

static ax_status read_manual(manual *m) {
  const ax_hlo_read_args *args = m->args;
  const uint32_t in_count = args->op->operand_count, count = in_count + args->op->result_count;
  const ax_hlo_attribute *axes = ax_hlo_find(args->op, "manual_axes");
  ax_sdy_mesh mesh;
  if (axes == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute manual_axes is missing");
  AX_TRY(read_layouts(args, "in_shardings", in_count, m->in));
  AX_TRY(read_layouts(args, "out_shardings", args->op->result_count, m->out));
  AX_TRY(find_mesh(m, count, &mesh));
  AX_TRY(ax_sdy_read_axes(axes->text, &mesh, &m->axes));
  AX_TRY(check_around(&mesh.mesh));
  m->grid = (ax_hlo_grid){mesh.mesh, 1, mesh.ids};
  own_mesh(m);
  for (uint32_t i = 0; i < count; i++) AX_TRY(block_spec(m, &m->in[i], &m->specs[i]));
  return AX_OK;
}

/* --- Parts of devices (bridge/parts.h) --- */

/* Operands that have parts which the body takes. */
static void take_parts(manual *m, ax_value *in) {
  for (uint32_t i = 0; i < m->body.in_count; i++) {
    const ax_hlo_parts *p = m->taken[i] = ax_hlo_parts_for(m->args->devices, m->args->in[i], &m->in[i], m->axes);
    if (p == NULL) continue;
    in[i] = p->stacked;
    m->specs[i] = ax_hlo_parts_spec(p->axes, &m->specs[i]);
  }
}

/* The results that may have parts: sums, and what the body may give otherwise to devices that have the same by the layout. */
static uint32_t expect_parts(manual *m) {
  const uint32_t in_count = m->body.in_count, out_count = m->body.out_count;
  uint32_t count = out_count;
  for (uint32_t k = 0; ax_hlo_parts_here(m->args->devices) && k < out_count; k++) {
    const ax_axis_set summed = m->out[k].unreduced & m->axes;
    m->given[k] = summed != 0 ? summed : m->axes & ~ax_spec_set(&m->out[k].spec);
    if (ax_axis_set_size(m->given[k], &m->grid.mesh) == 1) m->given[k] = 0;
    if (m->given[k] == 0) continue;
    m->specs[in_count + count++] = ax_hlo_parts_spec(m->given[k], &m->specs[in_count + k]);
  }
  return count;
}

/* The axes along which the results of the shard_map that was bound last may differ between devices; by result, in the trace's memory. */
static const ax_axis_set *find_differing(uint32_t out_count) {
  const ax_builder *builder = ax_builder_current();
  const ax_eqn *eqn = &builder->eqns[builder->eqn_count - 1];
  const ax_shard_map_params *params = eqn->params;
  const ax_program *body = params->body;
  ax_axis_set *in = ax_trace_alloc((body->in_count + (size_t)1) * sizeof in[0]), *out = ax_trace_alloc((out_count + (size_t)1) * sizeof out[0]);
  if (in == NULL || out == NULL) return NULL;
  for (uint32_t i = 0; i < body->in_count; i++) in[i] = ax_axis_set_on(ax_spec_set(&params->in_specs.v[i]), &params->mesh, &body->axes);
  ax_memo memo = {0};
  ax_flow flow = {.memo = &memo, .question = "differs"};
  const ax_axis_set *sets = ax_flow_program(&flow, body, in);
  if (sets == NULL) ax_fail(ax_out_of_memory(body->value_count * sizeof sets[0]));
  for (uint32_t k = 0; sets != NULL && k < out_count; k++) out[k] = ax_axis_set_on(sets[body->outs[k]], &body->axes, &params->mesh);
  ax_memo_deinit(&memo);
  return ax_failed() ? NULL : out;
}

/* Notes the parts of results that have any. */
static ax_status give_parts(const manual *m, const ax_value *out, uint32_t made) {
  const uint32_t out_count = m->body.out_count;
  const ax_axis_set *differing = made > out_count ? find_differing(made) : NULL;
  for (uint32_t k = 0, next = out_count; differing != NULL && k < out_count; k++) {
    if (m->given[k] == 0) continue;
    const uint32_t own = next++;
    const bool summed = (m->out[k].unreduced & m->axes) != 0;
    if (!summed && (differing[own] & m->given[k]) == 0) continue;
    ax_hlo_parts parts = {.of = out[k], .mesh = m->grid.mesh, .axes = m->given[k], .summed = summed};
    parts.spec = ax_hlo_parts_spec(parts.axes, &m->out[k].spec);
    parts.stacked = ax_lay_out(out[own], &parts.mesh, &parts.spec);
    if (!ax_failed()) AX_TRY(ax_hlo_parts_note(m->args->devices, &parts));
  }
  return AX_OK;
}

static ax_status bind_manual(manual *m, ax_value *in, ax_value *out) {
  const uint32_t in_count = m->body.in_count, out_count = m->body.out_count;
  take_parts(m, in);
  const uint32_t made = expect_parts(m);
  ax_value *all = ax_trace_alloc((made + (size_t)1) * sizeof all[0]);
  if (all == NULL) return AX_OK;
  ax_shard_map_params params = {.mesh = m->mesh, .unchecked = true, .out_specs = {made, m->specs + in_count}};
  const ax_fn function = {run_manual, in_count, made, m};
  if (!ax_failed()) ax_shard_map_trace("sdy.manual_computation", &params, m->specs, function, in, all);
  if (ax_failed()) return AX_OK;
  if (out_count > 0) memcpy(out, all, out_count * sizeof out[0]);
  lay_out_all(m->out, out_count, m->axes, out);
  memcpy(all, out, out_count * sizeof out[0]);
  return ax_failed() ? AX_OK : give_parts(m, all, made);
}

static ax_status manual_read(const ax_hlo_read_args *args) {
  const uint32_t in_count = args->op->operand_count, out_count = args->op->result_count, count = in_count + out_count;
  const ax_hlo_attribute *callee = ax_hlo_find(args->op, "callee"); /* bridge/shardy_calls.h */
  manual m = {.args = args};
  ax_hlo_body body;
  AX_TRY(callee != NULL ? ax_hlo_function_body(args, callee->text, out_count, &body, &m.body)
                        : ax_hlo_body_of(args, 0, out_count, &body, &m.body));
  if (m.body.in_count != in_count) return ax_error(AX_INVALID_ARGUMENT, "its body must take as many values as it has operands");
  m.in = ax_trace_alloc((count + 1) * sizeof m.in[0]);
  m.specs = ax_trace_alloc((count + (size_t)out_count + 1) * sizeof m.specs[0]);
  m.taken = ax_trace_alloc((in_count + (size_t)1) * sizeof m.taken[0]);
  m.given = ax_trace_alloc((out_count + (size_t)1) * sizeof m.given[0]);
  ax_value *in = ax_trace_alloc((in_count + 1) * sizeof in[0]);
  if (m.in == NULL || m.specs == NULL || m.taken == NULL || m.given == NULL || in == NULL) return AX_OK;
  memset(m.given, 0, out_count * sizeof m.given[0]);
  m.out = m.in + in_count;
  if (in_count > 0) memcpy(in, args->in, in_count * sizeof in[0]);
  AX_TRY(read_manual(&m));
  if (m.axes == 0) { /* nothing is taken by hand */
    m.body.function(in, args->out, m.body.context);
    return AX_OK;
  }
  lay_out_all(m.in, in_count, m.axes, in);
  return ax_failed() ? AX_OK : bind_manual(&m, in, args->out);
}

static ax_status lay_out_named(const ax_hlo_read_args *args, const char *name, uint32_t count, ax_value *values) {
  const ax_hlo_attribute *list = ax_hlo_find(args->op, name);
  const char *at = NULL;
  ax_hlo_slice item;
  for (uint32_t k = 0; list != NULL && k < count && ax_sdy_next(list->text, &at, &item); k++)
    AX_TRY(ax_hlo_lay_out_by(args->devices, item, &values[k]));
  return AX_OK;
}

/* Its region on its operands. */
static ax_status named_read(const ax_hlo_read_args *args) {
  const uint32_t in_count = args->op->operand_count, out_count = args->op->result_count;
  ax_hlo_body body;
  ax_fn function;
  AX_TRY(ax_hlo_body_of(args, 0, out_count, &body, &function));
  if (function.in_count != in_count) return ax_error(AX_INVALID_ARGUMENT, "its body must take as many values as it has operands");
  ax_value *in = ax_trace_alloc((in_count + 1) * sizeof in[0]);
  if (in == NULL) return AX_OK;
  if (in_count > 0) memcpy(in, args->in, in_count * sizeof in[0]);
  AX_TRY(lay_out_named(args, "in_shardings", in_count, in));
  function.function(in, args->out, function.context);
  return ax_failed() ? AX_OK : lay_out_named(args, "out_shardings", out_count, args->out);
}

/* Moves between layouts by name: the value is the same, also where it was a sum of what devices have, or becomes one. */
const ax_hlo_reader ax_hlo_sharding_readers[] = {{"sdy.sharding_constraint", constraint_read},
                                                 {"sdy.reshard", constraint_read},
                                                 {"sdy.all_gather", moved_read},
                                                 {"sdy.all_slice", moved_read},
                                                 {"sdy.all_to_all", moved_read},
                                                 {"sdy.collective_permute", moved_read},
                                                 {"sdy.all_reduce", moved_read},
                                                 {"sdy.reduce_scatter", moved_read},
                                                 {"sdy.sharded_to_unreduced", moved_read},
                                                 {"sdy.replicated_to_unreduced", moved_read},
                                                 {"sdy.sharding_group", group_read},
                                                 {"sdy.propagation_barrier", same_read},
                                                 {"sdy.manual_computation", manual_read},
                                                 {"sdy.named_computation", named_read},
                                                 {0}};
