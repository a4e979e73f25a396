/* Devices of modules.

   Two kinds of modules speak of several devices. In one, arrays are whole, and some have layouts (sdy.sharding, mhlo.sharding,
   sdy.manual_computation): programs of it are laid out by the partitioner, as programs with ax_with_sharding and ax_shard_map are.
   In the other, the module is what each device runs, with collectives among its operations and no layouts: it becomes the body of
   one shard_map. */
#include "bridge/devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "bridge/parts.h"
#include "bridge/shardy_calls.h"
#include "collectives/ragged.h"
#include "mesh/constraint.h"
#include "mesh/shard_map.h"
#include "mesh/tiles.h"
#include "prim/bind.h"

/* --- What the module says --- */

static const ax_hlo_attribute *attribute_of(const ax_hlo_attribute *attributes, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (ax_hlo_slice_is(attributes[i].name, name)) return &attributes[i];
  return NULL;
}

static ax_status count_of(const ax_hlo_module *module, const char *name, int64_t *out) {
  const ax_hlo_attribute *said = attribute_of(module->attributes, module->attribute_count, name);
  *out = said != NULL ? said->integer : 0;
  if (said != NULL && said->kind != AX_HLO_INTEGER) return ax_error(AX_INVALID_ARGUMENT, "%s: %s must be an integer", module->source, name);
  if (said == NULL || said->integer >= 1) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: %s is %" PRId64, module->source, name, said->integer);
}

typedef struct survey { /* of all operations of a module */
  bool collectives, ids, layouts, tests, kept, by_hand, own; /* own: a function has arguments or results that are one device's */
  int64_t replicas, partitions; /* that groups need */
} survey;

static bool has_layout(const ax_hlo_attribute *attributes, uint32_t count) {
  const ax_hlo_attribute *tiles = attribute_of(attributes, count, "mhlo.sharding");
  return attribute_of(attributes, count, "sdy.sharding") != NULL || ax_hlo_frontend(attributes, count, "xla.sdy.sharding") != NULL ||
         (tiles != NULL && !ax_hlo_slice_is(tiles->text, "{manual}"));
}

static bool is_own(const ax_hlo_attribute *attributes, uint32_t count) {
  const ax_hlo_attribute *tiles = attribute_of(attributes, count, "mhlo.sharding");
  return tiles != NULL && ax_hlo_slice_is(tiles->text, "{manual}");
}

/* Whether some argument or result of a function is so, by what it is marked with. */
static bool any_marked(const ax_hlo_operation *function, bool is(const ax_hlo_attribute *attributes, uint32_t count)) {
  const ax_hlo_attribute *lists[] = {ax_hlo_find(function, "arg_attrs"), ax_hlo_find(function, "res_attrs")};
  for (int l = 0; l < 2; l++)
    for (uint32_t i = 0; lists[l] != NULL && lists[l]->kind == AX_HLO_ARRAY && i < lists[l]->count; i++)
      if (is(lists[l]->items[i].items, lists[l]->items[i].kind == AX_HLO_DICTIONARY ? lists[l]->items[i].count : 0)) return true;
  return false;
}

static void look_at_ragged(const ax_hlo_operation *op, survey *s) {
  const ax_hlo_attribute *target = ax_hlo_find(op, "call_target_name");
  if (target == NULL || !ax_hlo_slice_is(target->text, AX_RAGGED_TARGET)) return;
  const ax_hlo_attribute *config = ax_hlo_find(op, "backend_config");
  const bool has_items = config != NULL && config->kind == AX_HLO_DICTIONARY;
  const ax_hlo_operation call = {.attributes = has_items ? config->items : NULL, .attribute_count = has_items ? config->count : 0};
  s->collectives = true;
  ax_hlo_count_devices(&call, AX_HLO_BY_CHANNEL, &s->replicas, &s->partitions);
}

/* Messages between devices say their pairs; those of the host have none. */
static void look_at_messages(const ax_hlo_operation *op, survey *s) {
  if (!ax_hlo_slice_is(op->name, "stablehlo.send") && !ax_hlo_slice_is(op->name, "stablehlo.recv")) return;
  if (ax_hlo_find(op, "source_target_pairs") == NULL) return;
  s->collectives = true;
  ax_hlo_count_devices(op, AX_HLO_BY_CHANNEL, &s->replicas, &s->partitions);
}

static void look_at(const ax_hlo_operation *op, survey *s) {
  static const struct {
    const char *op;
    ax_hlo_numbering numbering;
  } collectives[] = {{"stablehlo.collective_reduce", AX_HLO_BY_IDS},
                     {"stablehlo.all_reduce", AX_HLO_BY_IDS},
                     {"stablehlo.all_gather", AX_HLO_BY_IDS},
                     {"stablehlo.reduce_scatter", AX_HLO_BY_IDS},
                     {"stablehlo.all_to_all", AX_HLO_BY_CHANNEL},
                     {"stablehlo.collective_permute", AX_HLO_BY_CHANNEL},
                     {"stablehlo.collective_broadcast", AX_HLO_BY_CHANNEL}};
  for (size_t i = 0; i < AX_COUNT(collectives); i++) {
    if (!ax_hlo_slice_is(op->name, collectives[i].op)) continue;
    s->collectives = true;
    ax_hlo_count_devices(op, collectives[i].numbering, &s->replicas, &s->partitions);
  }
  look_at_ragged(op, s);
  look_at_messages(op, s);
  s->ids = s->ids || ax_hlo_slice_is(op->name, "stablehlo.partition_id") || ax_hlo_slice_is(op->name, "stablehlo.replica_id");
  s->tests = s->tests || ax_hlo_slice_is(op->name, AX_HLO_RUN_PARALLEL);
  s->kept = s->kept || ax_hlo_frontend(op->attributes, op->attribute_count, "xla.sdy.sharding") != NULL;
  s->own = s->own || any_marked(op, is_own);
  s->by_hand = s->by_hand || ax_hlo_slice_is(op->name, "sdy.manual_computation");
  s->layouts = s->layouts || s->by_hand || has_layout(op->attributes, op->attribute_count) || any_marked(op, has_layout);
}

/* Regions are inside each other no deeper than readers allow. */
static void look_through(const ax_hlo_block *block, survey *s) {
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    look_at(op, s);
    for (uint32_t r = 0; r < op->region_count; r++)
      for (uint32_t b = 0; b < op->regions[r].block_count; b++) look_through(&op->regions[r].blocks[b], s);
  }
}

/* --- Meshes --- */

static ax_status add_mesh(ax_hlo_slice name, ax_hlo_slice text, ax_arena *arena, ax_sdy_named_mesh *out) {
  out->name = name;
  const ax_status status = ax_sdy_read_mesh(text, arena, &out->mesh);
  return status == AX_OK ? AX_OK : ax_error_context(status, "the mesh @%.*s: ", (int)name.length, name.start);
}

/* {mesh = #sdy.mesh<[..]>, other = ..}, as frontends keep meshes. */
static uint32_t kept_count(ax_hlo_slice text) {
  uint32_t count = 0;
  for (size_t i = 0; i < text.length; i++) count += text.start[i] == '#';
  return count;
}

static ax_status add_kept(ax_hlo_slice text, ax_arena *arena, ax_sdy_named_mesh *meshes, uint32_t *count) {
  const char *at = text.start, *end = text.start + text.length;
  while (at < end) {
    while (at < end && strchr("{, \n", *at) != NULL) at++;
    ax_hlo_slice name = {at, 0}, mesh = {0};
    while (at < end && strchr(" =}", *at) == NULL) at++;
    name.length = (size_t)(at - name.start);
    while (at < end && *at != '#') at++;
    mesh.start = at;
    while (at < end && *at != '>') at++;
    if (at == end) break;
    mesh.length = (size_t)(++at - mesh.start);
    AX_TRY(add_mesh(name, mesh, arena, &meshes[(*count)++]));
  }
  return AX_OK;
}

static ax_status find_meshes(const ax_hlo_module *module, ax_arena *arena, ax_hlo_devices *out) {
  const ax_hlo_block *body = &module->body;
  const ax_hlo_attribute *kept = ax_hlo_frontend(module->attributes, module->attribute_count, "xla.sdy.meshes");
  uint32_t most = kept != NULL ? kept_count(kept->text) : 0;
  for (uint32_t i = 0; i < body->operation_count; i++) most += ax_hlo_slice_is(body->operations[i]->name, "sdy.mesh");
  if (most == 0) return AX_OK;
  ax_sdy_named_mesh *meshes = ax_arena_alloc(arena, most * sizeof meshes[0]);
  if (meshes == NULL) return ax_out_of_memory(most * sizeof meshes[0]);
  if (kept != NULL) AX_TRY(add_kept(kept->text, arena, meshes, &out->mesh_count));
  for (uint32_t i = 0; i < body->operation_count; i++) {
    const ax_hlo_operation *op = body->operations[i];
    if (!ax_hlo_slice_is(op->name, "sdy.mesh")) continue;
    const ax_hlo_attribute *name = ax_hlo_find(op, "sym_name"), *mesh = ax_hlo_find(op, "mesh");
    if (name == NULL || mesh == NULL) return ax_error(AX_INVALID_ARGUMENT, "%s: a mesh without name or axes", module->source);
    AX_TRY(add_mesh(name->text, mesh->text, arena, &meshes[out->mesh_count++]));
  }
  out->meshes = meshes;
  return AX_OK;
}

ax_status ax_hlo_find_devices(const ax_hlo_module *module, ax_arena *arena, ax_hlo_devices *out) {
  survey s = {.replicas = 1, .partitions = 1};
  int64_t devices;
  *out = (ax_hlo_devices){.arena = arena, .parts_wanted = out->parts_wanted};
  AX_TRY(count_of(module, "mhlo.num_replicas", &out->replicas));
  AX_TRY(count_of(module, "mhlo.num_partitions", &out->partitions));
  AX_TRY(find_meshes(module, arena, out));
  look_through(&module->body, &s);
  if (out->replicas == 0) out->replicas = s.replicas;
  if (out->partitions == 0) out->partitions = s.partitions;
  if (!ax_mul_i64(out->replicas, out->partitions, &devices) || devices > AX_HLO_MOST_DEVICES)
    return ax_error(AX_ABSENT, "%s: %" PRId64 " replicas of %" PRId64 " partitions are more than the %d devices that are read",
                    module->source, out->replicas, out->partitions, (int)AX_HLO_MOST_DEVICES);
  if (s.layouts && out->replicas > 1)
    return ax_error(AX_ABSENT, "%s: layouts are of partitions, and this module has %" PRId64 " replicas, too", module->source,
                    out->replicas);
  out->kept = s.kept || ax_hlo_frontend(module->attributes, module->attribute_count, "xla.sdy.meshes") != NULL;
  out->each = (s.collectives || (s.ids && devices > 1) || (out->parts_wanted && (out->replicas > 1 || (s.own && devices > 1)))) && (!s.layouts || (devices == 1 && !s.by_hand)) && !s.tests; /* on one device layouts say nothing */
  return AX_OK;
}

/* --- Layouts --- */

/* Whether the trace in progress takes all of the mesh's axes by hand. */
static bool all_by_hand(const ax_mesh *mesh) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (ax_mesh_find_manual(axes, mesh->axis[i].name) < 0) return false;
  return true;
}

ax_status ax_hlo_lay_out_by(ax_hlo_devices *devices, ax_hlo_slice text, ax_value *x) {
  ax_sdy_sharding s;
  AX_TRY(ax_sdy_read_sharding(text, devices->meshes, devices->mesh_count, devices->arena, &s));
  if (all_by_hand(&s.mesh.mesh)) return AX_OK;
  const ax_value before = *x;
  devices->sums_stay = devices->sums_stay || s.unreduced != 0;
  if (s.unreduced != 0 && devices->parts_wanted) return AX_OK; /* devices keep their parts of it */
  *x = ax_lay_out(*x, &s.mesh.mesh, &s.spec);
  return ax_hlo_parts_carry(devices, before, &s, *x);
}

/* Dimensions that a call of @Sharding leaves open: backend_config = "unspecified_dims=[0,1]". */
static void open_dimensions(const ax_hlo_attribute *config, ax_spec *spec) {
  static const char begin[] = "unspecified_dims=[";
  if (config == NULL || config->kind != AX_HLO_STRING || config->text.length < sizeof begin ||
      memcmp(config->text.start, begin, sizeof begin - 1) != 0)
    return;
  const char *at = config->text.start + sizeof begin - 1, *end = config->text.start + config->text.length;
  for (uint32_t d = 0; at < end && *at != ']'; at++) {
    if (*at >= '0' && *at <= '9') d = (d * 10 + (uint32_t)(*at - '0')) % 1000;
    const bool last = at + 1 == end || at[1] == ',' || at[1] == ']';
    if (!last || *at == ',') continue;
    if (d < AX_MAX_RANK && spec->count[d] == 0) {
      spec->open |= (uint16_t)(1u << d);
      if (spec->rank <= d) spec->rank = d + 1;
    }
    d = 0;
  }
}

/* Layouts of parts of a manual computation, of one device, and of devices in an order that no mesh has, say nothing that matters to
   results. */
static ax_status lay_out_tiled(const ax_hlo_devices *devices, const ax_hlo_attribute *said, const ax_hlo_attribute *config,
                               ax_value *x) {
  char text[4096];
  ax_tiles tiles;
  ax_mesh mesh = {0};
  ax_spec spec = {0};
  if (said->text.length >= sizeof text) return AX_OK;
  memcpy(text, said->text.start, said->text.length);
  text[said->text.length] = '\0';
  if (strstr(text, "manual") != NULL || strstr(text, "unknown") != NULL || ax_builder_current()->axes.count > 0) return AX_OK;
  AX_TRY(ax_tiles_parse(text, &tiles));
  const bool laid = tiles.kind == AX_TILES_TILED && ax_tiles_simplify(&tiles) && ax_tiles_lay(&tiles, &mesh, &spec);
  const bool whole = tiles.kind == AX_TILES_REPLICATED && devices->partitions > 1;
  ax_tiles_deinit(&tiles);
  if (whole) mesh = (ax_mesh){.count = 1, .axis = {{.name = "t0", .size = devices->partitions}}};
  if ((!laid && !whole) || mesh.count == 0) return AX_OK;
  open_dimensions(config, &spec);
  *x = ax_lay_out(*x, &mesh, &spec);
  return AX_OK;
}

static ax_status lay_out_item(ax_hlo_devices *devices, ax_hlo_slice text, uint32_t index, ax_value *x) {
  const char *at = NULL;
  ax_hlo_slice item, per_value = {"sharding_per_value", strlen("sharding_per_value")};
  const bool many = text.length > per_value.length + 5 && memcmp(text.start + 5, per_value.start, per_value.length) == 0;
  if (!many) return ax_hlo_lay_out_by(devices, text, x);
  for (uint32_t k = 0; ax_sdy_next(text, &at, &item); k++)
    if (k == index) return ax_hlo_lay_out_by(devices, item, x);
  return AX_OK;
}

ax_status ax_hlo_lay_out_as(ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count, uint32_t index,
                            ax_value *x) {
  const ax_hlo_attribute *sdy = attribute_of(attributes, count, "sdy.sharding"),
                         *tiled = attribute_of(attributes, count, "mhlo.sharding");
  if (sdy == NULL) sdy = ax_hlo_frontend(attributes, count, "xla.sdy.sharding");
  if (devices->each) return AX_OK;
  if (sdy != NULL) return lay_out_item(devices, sdy->text, index, x);
  if (tiled == NULL || tiled->kind != AX_HLO_STRING || devices->kept) return AX_OK;
  return lay_out_tiled(devices, tiled, attribute_of(attributes, count, "backend_config"), x);
}

/* --- Each device --- */

static AX_BODY(run_block) {
  const ax_hlo_each *each = context;
  const ax_hlo_grid grid = {.mesh = each->mesh, .replicas = each->devices->replicas}, *around = each->devices->grid;
  const bool stacked = ax_mesh_devices(&each->mesh) > 1;
  const uint32_t in_count = each->function.in_count, out_count = each->function.out_count;
  ax_value *block = ax_trace_alloc((in_count + 1) * sizeof block[0]);
  if (block == NULL) return;
  for (uint32_t i = 0; i < in_count; i++) block[i] = stacked ? ax_squeeze(in[i], AX_DIMS(0)) : in[i];
  each->devices->grid = &grid;
  each->function.function(block, out, each->function.context);
  each->devices->grid = around;
  for (uint32_t k = 0; k < out_count && !ax_failed() && stacked; k++) out[k] = ax_expand_dims(out[k], 0);
}

static AX_BODY(run_stacked) {
  const ax_hlo_each *each = context;
  const uint32_t in_count = each->function.in_count, out_count = each->function.out_count;
  ax_spec *specs = ax_trace_alloc((in_count + out_count + 1) * sizeof specs[0]);
  if (specs == NULL) return;
  for (uint32_t i = 0; i < in_count + out_count; i++) {
    specs[i] = (ax_spec){0};
    if (ax_mesh_devices(&each->mesh) == 1) continue;
    specs[i].rank = 1;
    specs[i].count[0] = (uint8_t)each->mesh.count;
    for (uint32_t a = 0; a < each->mesh.count; a++) specs[i].axis[0][a] = (uint8_t)a;
  }
  ax_shard_map_params params = {.mesh = each->mesh, .unchecked = true, .out_specs = {out_count, specs + in_count}};
  const ax_fn body = {run_block, in_count, out_count, (void *)context};
  ax_shard_map_trace("the module", &params, specs, body, in, out);
}

static void add_axis(ax_mesh *mesh, const char *name, int64_t size) {
  ax_axis *axis = &mesh->axis[mesh->count++];
  snprintf(axis->name, sizeof axis->name, "%s", name);
  axis->size = size;
}

ax_hlo_each ax_hlo_each_of(ax_hlo_devices *devices, ax_fn function) {
  ax_hlo_each each = {devices, function, {0}};
  if (devices->replicas > 1) add_axis(&each.mesh, "replica", devices->replicas);
  if (devices->partitions > 1 || devices->replicas == 1) add_axis(&each.mesh, "partition", devices->partitions);
  return each;
}

ax_fn ax_hlo_each_function(ax_hlo_each *each) {
  return (ax_fn){run_stacked, each->function.in_count, each->function.out_count, each};
}

ax_status ax_hlo_each_types(const ax_hlo_each *each, uint32_t count, ax_type *types) {
  const int64_t devices = ax_mesh_devices(&each->mesh);
  for (uint32_t i = 0; i < count && devices > 1; i++) {
    ax_type *type = &types[i];
    if (type->rank == AX_MAX_RANK)
      return ax_error(AX_ABSENT, "argument %u has %d dimensions: those of all devices have one more", i, AX_MAX_RANK);
    memmove(type->dims + 1, type->dims, type->rank * sizeof type->dims[0]);
    type->dims[0] = devices;
    type->rank++;
  }
  return AX_OK;
}
