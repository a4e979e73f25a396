/* Shardings: creation, queries, comparison, and their tile assignments. */
#include "mesh/assignment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/sharding.h"
#include "mesh/tiles.h"

/* --- Making --- */

static int by_id(const void *a, const void *b) {
  const ax_stand *x = a, *y = b;
  return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->place > y->place) - (x->place < y->place);
}

/* Sorts who stands where; all ids are sound and different. */
static ax_status index_ids(ax_sharding *sharding) {
  const size_t count = (size_t)sharding->places;
  sharding->by_id = ax_alloc(count * sizeof sharding->by_id[0]);
  if (sharding->by_id == NULL) return ax_out_of_memory(count * sizeof sharding->by_id[0]);
  for (size_t p = 0; p < count; p++) {
    const int64_t id = sharding->ids[p];
    if (id < 0 || id > INT32_MAX) return ax_error(AX_INVALID_ARGUMENT, "devices[%zu] is %lld", p, (long long)id);
    sharding->by_id[p] = (ax_stand){id, (int64_t)p};
  }
  qsort(sharding->by_id, count, sizeof sharding->by_id[0], by_id);
  for (size_t i = 1; i < count; i++)
    if (sharding->by_id[i].id == sharding->by_id[i - 1].id)
      return ax_error(AX_INVALID_ARGUMENT, "devices[%lld] and devices[%lld] are both %lld", (long long)sharding->by_id[i - 1].place,
                      (long long)sharding->by_id[i].place, (long long)sharding->by_id[i].id);
  return AX_OK;
}

static bool are_places(const int64_t *ids, int64_t count) {
  for (int64_t p = 0; p < count; p++)
    if (ids[p] != p) return false;
  return true;
}

/* Consumes `ids`, which may be NULL. */
static ax_status create(const ax_mesh *mesh, const ax_spec *spec, uint32_t rank, int64_t *ids, ax_sharding **out) {
  ax_sharding *sharding = ax_calloc(1, sizeof *sharding);
  if (sharding == NULL) {
    ax_free(ids);
    return ax_out_of_memory(sizeof *sharding);
  }
  atomic_init(&sharding->references, 1);
  sharding->mesh = ax_mesh_plain(mesh);
  sharding->spec = *spec;
  sharding->rank = rank;
  sharding->places = ax_mesh_devices(mesh);
  sharding->ids = ids;
  if (ids != NULL && are_places(ids, sharding->places)) {
    ax_free(ids);
    sharding->ids = NULL;
  }
  ax_status status = sharding->ids != NULL ? index_ids(sharding) : AX_OK;
  if (status == AX_OK) *out = sharding;
  else ax_sharding_release(sharding);
  return status;
}

ax_status ax_sharding_create(const ax_mesh *mesh, const ax_spec *spec, ax_sharding **out) {
  return create(mesh, spec, AX_NONE, NULL, out);
}

static const ax_sharding_options no_options;

/* 0: the options say nothing of it. */
static uint32_t device_count(const ax_sharding_options *options) {
  return options->devices.count > 0 ? options->devices.count : options->device_count;
}

static const int64_t *ids_of(const ax_sharding_options *options) { return options->devices.count > 0 ? options->devices.v : NULL; }

/* Checks the options that all kinds of shardings have; `places`: the number of places, 0: any number. */
static ax_status check_options(const ax_sharding_options *options, int64_t places) {
  if (options->memory_kind != NULL && strcmp(options->memory_kind, "device") != 0)
    return ax_error(AX_ABSENT, "memory kind \"%.64s\": devices have one kind of memory, \"device\"", options->memory_kind);
  const uint32_t listed = options->devices.count, count = device_count(options);
  if (listed > 0 && options->devices.v == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "devices has a count of %u, but no entries", listed);
  if (listed > 0 && options->device_count > 0 && options->device_count != listed)
    return ax_error(AX_INVALID_ARGUMENT, "device_count is %u, but devices has %u entries", options->device_count, listed);
  if (places == 0 || count == 0 || count == places) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%u device%s for %lld place%s", count, count == 1 ? "" : "s", (long long)places,
                  places == 1 ? "" : "s");
}

static ax_status copy_ids(const int64_t *devices, int64_t count, int64_t **ids) {
  const size_t bytes = (size_t)count * sizeof **ids;
  *ids = NULL;
  if (devices == NULL) return AX_OK;
  *ids = ax_alloc(bytes);
  if (*ids == NULL) return ax_out_of_memory(bytes);
  memcpy(*ids, devices, bytes);
  return AX_OK;
}

ax_status ax_sharding_create_on(const ax_mesh *mesh, const ax_spec *spec, const ax_sharding *devices, ax_sharding **out) {
  int64_t *ids;
  *out = NULL;
  AX_TRY(copy_ids(devices->ids, devices->places, &ids));
  return create(mesh, spec, AX_NONE, ids, out);
}

static ax_status make(const char *who, const ax_mesh *mesh, const ax_spec *spec, const ax_sharding_options *options,
                      ax_sharding **out) {
  int64_t *ids;
  if (options == NULL) options = &no_options;
  ax_status status = check_options(options, ax_mesh_devices(mesh));
  if (status == AX_OK) status = copy_ids(ids_of(options), ax_mesh_devices(mesh), &ids);
  if (status == AX_OK) status = create(mesh, spec, AX_NONE, ids, out);
  return status == AX_OK ? AX_OK : ax_error_context(status, "%s: ", who);
}

ax_status ax_sharding_named(const ax_mesh *mesh, const char *spec, const ax_sharding_options *options, ax_sharding **out) {
  const ax_mesh one = {0};
  ax_spec parsed;
  *out = NULL;
  if (mesh == NULL) mesh = &one;
  AX_TRY(ax_require(spec, "spec"));
  ax_status status = ax_spec_parse(spec, mesh, &parsed); /* looks at the mesh too */
  if (status != AX_OK) return ax_error_context(status, "sharding_named: ");
  return make("sharding_named", mesh, &parsed, options, out);
}

ax_status ax_sharding_single(int64_t device, ax_sharding **out) {
  const ax_mesh one = {0};
  const ax_spec whole = {0};
  *out = NULL;
  return make("sharding_single", &one, &whole, &(ax_sharding_options){.devices = {1, &device}}, out);
}

ax_status ax_sharding_replicated(const ax_sharding_options *options, ax_sharding **out) {
  const ax_spec whole = {0};
  ax_mesh mesh = {.count = 1, .axis[0] = {.name = "t0", .size = 1}};
  *out = NULL;
  if (options != NULL && device_count(options) > 0) mesh.axis[0].size = device_count(options);
  return make("sharding_replicated", &mesh, &whole, options, out);
}

ax_status ax_sharding_pmap(const ax_pmap_sharding *sharding, const ax_sharding_options *options, ax_sharding **out) {
  char *text;
  *out = NULL;
  AX_TRY(ax_pmap_sharding_print(sharding, &text)); /* which looks at what was filled by hand */
  ax_string_free(text);
  return make("sharding_pmap", &sharding->mesh, &sharding->spec, options, out);
}

/* The tile dimensions themselves, then copies. */
static ax_status mesh_of_tiles(const ax_tiles *tiles, ax_mesh *mesh, ax_spec *spec) {
  *mesh = (ax_mesh){0};
  *spec = (ax_spec){.rank = tiles->rank};
  for (uint32_t d = 0; d <= tiles->rank; d++) {
    const int64_t size = d < tiles->rank ? tiles->dims[d] : tiles->copies;
    if (size == 1) continue;
    if (mesh->count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d axes", AX_MAX_AXES);
    if (d < tiles->rank) spec->axis[d][spec->count[d]++] = (uint8_t)mesh->count;
    ax_axis *axis = &mesh->axis[mesh->count];
    axis->size = size;
    snprintf(axis->name, sizeof axis->name, "t%u", mesh->count++);
  }
  return AX_OK;
}

/* Writes out the numbers of a tile assignment that is not a mesh's, if it is given by digits. */
static ax_status list_digits(ax_tiles *tiles) {
  const int64_t count = ax_tiles_count(tiles);
  if (tiles->list != NULL) return AX_OK;
  tiles->list = ax_alloc((size_t)count * sizeof tiles->list[0]);
  if (tiles->list == NULL) return ax_out_of_memory((size_t)count * sizeof tiles->list[0]);
  for (int64_t k = 0; k < count; k++) tiles->list[k] = ax_digits_number(&tiles->digits, k);
  return AX_OK;
}

/* Numbers become ids of the user's. */
static ax_status name_devices(ax_tiles *tiles, const ax_sharding_options *options, int64_t places, int64_t **ids) {
  const int64_t *named = ids_of(options);
  if (tiles->list == NULL) return copy_ids(named, places, ids);
  *ids = tiles->list;
  tiles->list = NULL;
  for (int64_t p = 0; named != NULL && p < places; p++) (*ids)[p] = named[(*ids)[p]];
  return AX_OK;
}

static ax_status make_tiled(ax_tiles *tiles, const ax_sharding_options *options, ax_sharding **out) {
  const int64_t places = ax_tiles_count(tiles);
  ax_mesh mesh;
  ax_spec spec;
  int64_t *ids;
  AX_TRY(check_options(options, places));
  if (!ax_tiles_simplify(tiles) || !ax_tiles_lay(tiles, &mesh, &spec)) {
    AX_TRY(mesh_of_tiles(tiles, &mesh, &spec));
    AX_TRY(list_digits(tiles));
  }
  AX_TRY(name_devices(tiles, options, places, &ids));
  return create(&mesh, &spec, tiles->rank, ids, out);
}

static ax_status make_maximal(int64_t device, const ax_sharding_options *options, ax_sharding **out) {
  AX_TRY(check_options(options, 0));
  const uint32_t count = device_count(options);
  if (count > 0 && device >= count) return ax_error(AX_INVALID_ARGUMENT, "device %lld of %u", (long long)device, count);
  return ax_sharding_single(ax_option_at(&options->devices, (uint32_t)device, device), out);
}

ax_status ax_sharding_tiled(const char *text, const ax_sharding_options *options, ax_sharding **out) {
  ax_tiles tiles = {0};
  *out = NULL;
  AX_TRY(ax_require(text, "text"));
  if (options == NULL) options = &no_options;
  ax_status status = ax_tiles_parse(text, &tiles);
  if (status == AX_OK && tiles.kind == AX_TILES_REPLICATED) status = ax_sharding_replicated(options, out);
  else if (status == AX_OK && tiles.kind == AX_TILES_MAXIMAL) status = make_maximal(tiles.device, options, out);
  else if (status == AX_OK) status = make_tiled(&tiles, options, out);
  ax_tiles_deinit(&tiles);
  return status == AX_OK ? AX_OK : ax_error_context(status, "sharding_tiled: ");
}

ax_sharding *ax_sharding_retain(ax_sharding *sharding) {
  if (sharding != NULL) atomic_fetch_add_explicit(&sharding->references, 1, memory_order_relaxed);
  return sharding;
}

void ax_sharding_release(ax_sharding *sharding) {
  if (sharding == NULL || atomic_fetch_sub(&sharding->references, 1) != 1) return;
  ax_free(sharding->ids);
  ax_free(sharding->by_id);
  ax_free(sharding);
}

/* --- Asking --- */

const ax_mesh *ax_sharding_mesh(const ax_sharding *sharding) { return sharding != NULL ? &sharding->mesh : NULL; }
const ax_spec *ax_sharding_spec(const ax_sharding *sharding) { return sharding != NULL ? &sharding->spec : NULL; }
int64_t ax_sharding_device_count(const ax_sharding *sharding) { return sharding != NULL ? sharding->places : 0; }

int64_t ax_sharding_block_count(const ax_sharding *sharding) {
  return sharding != NULL ? ax_shard_count(&sharding->spec, &sharding->mesh) : 0;
}

bool ax_sharding_is_replicated(const ax_sharding *sharding) { return ax_sharding_block_count(sharding) == 1; }

int64_t ax_sharding_device(const ax_sharding *sharding, int64_t place) {
  if (place < 0 || place >= ax_sharding_device_count(sharding)) return -1;
  return sharding->ids != NULL ? sharding->ids[place] : place;
}

static int compare_id(const void *id, const void *stand) {
  const int64_t x = *(const int64_t *)id, y = ((const ax_stand *)stand)->id;
  return (x > y) - (x < y);
}

int64_t ax_sharding_place(const ax_sharding *sharding, int64_t device) {
  if (device < 0 || sharding == NULL) return -1;
  if (sharding->ids == NULL) return device < sharding->places ? device : -1;
  const ax_stand *found = bsearch(&device, sharding->by_id, (size_t)sharding->places, sizeof sharding->by_id[0], compare_id);
  return found != NULL ? found->place : -1;
}

ax_status ax_sharding_types(const ax_sharding *sharding, const ax_type *whole, ax_type *sound, ax_type *block) {
  static const ax_mesh none;
  AX_TRY(ax_require(sharding, "sharding"));
  AX_TRY(ax_require(whole, "type"));
  *sound = ax_array_type(whole->dtype, AX_LIST(whole->rank, whole->dims));
  AX_TRY(ax_type_check(sound, &none));
  if (whole->form != AX_ARRAY) return ax_error(AX_INVALID_ARGUMENT, "a future or a token is no array, and lies nowhere");
  if (sharding->rank != AX_NONE && sharding->rank != sound->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the tiles are of arrays of rank %u, not of %s", sharding->rank,
                    ax_type_string(sound, NULL));
  return ax_shard_type(sound, &sharding->spec, &sharding->mesh, block);
}

ax_status ax_sharding_block(const ax_sharding *sharding, const ax_type *whole, ax_type *block) {
  ax_type sound, made;
  *block = (ax_type){0};
  AX_TRY(ax_sharding_types(sharding, whole, &sound, &made));
  *block = made;
  return AX_OK;
}

ax_status ax_sharding_start(const ax_sharding *sharding, const ax_type *whole, int64_t device, int64_t *start) {
  ax_type sound, block;
  AX_TRY(ax_sharding_types(sharding, whole, &sound, &block));
  const int64_t place = ax_sharding_place(sharding, device);
  if (place < 0)
    return ax_error(AX_INVALID_ARGUMENT, "device %lld is none of the sharding's %lld", (long long)device,
                    (long long)sharding->places);
  ax_shard_offset(&block, &sharding->spec, &sharding->mesh, place, start);
  return AX_OK;
}

ax_status ax_sharding_starts(const ax_sharding *sharding, const ax_type *whole, int64_t *starts) {
  ax_type sound, block;
  AX_TRY(ax_sharding_types(sharding, whole, &sound, &block));
  for (int64_t p = 0; p < sharding->places; p++)
    ax_shard_offset(&block, &sharding->spec, &sharding->mesh, p, starts + p * block.rank);
  return AX_OK;
}

/* An array of one element a block, whose blocks begin at their numbers along each dimension. */
static ax_type units(uint32_t rank) {
  int64_t ones[AX_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) ones[d] = 1;
  return ax_array_type(AX_BOOL, AX_LIST(rank, ones));
}

bool ax_sharding_equal(const ax_sharding *a, const ax_sharding *b) {
  int64_t part_a[AX_MAX_RANK], part_b[AX_MAX_RANK];
  uint32_t cut = 0; /* dimensions up to the last that is cut */
  if (a == b || a == NULL || b == NULL) return a == b;
  if (a->places != b->places) return false;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    const int64_t parts = ax_shard_parts(&a->spec, &a->mesh, d);
    if (parts != ax_shard_parts(&b->spec, &b->mesh, d)) return false;
    if (parts > 1) cut = d + 1;
  }
  if (a->ids == NULL && b->ids == NULL && ax_mesh_equal(&a->mesh, &b->mesh, false) && ax_spec_equal(&a->spec, &b->spec))
    return true;
  const ax_type one = units(cut);
  for (int64_t i = 0; i < a->places; i++) {
    const ax_stand in_a = a->by_id != NULL ? a->by_id[i] : (ax_stand){i, i},
                   in_b = b->by_id != NULL ? b->by_id[i] : (ax_stand){i, i};
    if (in_a.id != in_b.id) return false;
    ax_shard_offset(&one, &a->spec, &a->mesh, in_a.place, part_a);
    ax_shard_offset(&one, &b->spec, &b->mesh, in_b.place, part_b);
    if (memcmp(part_a, part_b, cut * sizeof part_a[0]) != 0) return false;
  }
  return true;
}

/* --- As tiles, and in order --- */

/* The axes in the order of tiles: those of each dimension, then those that copies lie along. */
static uint32_t tile_order(const ax_sharding *sharding, uint8_t *order) {
  const ax_axis_set named = ax_spec_set(&sharding->spec);
  uint32_t count = 0;
  for (uint32_t d = 0; d < sharding->spec.rank; d++)
    for (uint32_t i = 0; i < sharding->spec.count[d]; i++) order[count++] = sharding->spec.axis[d][i];
  for (uint32_t axis = 0; axis < sharding->mesh.count; axis++)
    if ((named >> axis & 1) == 0) order[count++] = (uint8_t)axis;
  return count;
}

static int64_t stride_of(const ax_mesh *mesh, uint32_t axis) {
  int64_t stride = 1;
  for (uint32_t i = axis + 1; i < mesh->count; i++) stride *= mesh->axis[i].size;
  return stride;
}

/* The tiles of arrays of `rank` dimensions, by ids; ax_tiles_deinit. */
static ax_status tiles_of(const ax_sharding *sharding, uint32_t rank, ax_tiles *tiles) {
  uint8_t order[AX_MAX_AXES];
  ax_tile_digits digits = {0};
  const uint32_t axes = tile_order(sharding, order);
  *tiles = (ax_tiles){.kind = AX_TILES_TILED, .rank = rank, .copies = sharding->places / ax_sharding_block_count(sharding)};
  for (uint32_t d = 0; d < rank; d++) tiles->dims[d] = ax_shard_parts(&sharding->spec, &sharding->mesh, d);
  for (uint32_t i = 0; i < axes; i++) {
    if (sharding->mesh.axis[order[i]].size == 1) continue;
    digits.size[digits.count] = sharding->mesh.axis[order[i]].size;
    digits.stride[digits.count++] = stride_of(&sharding->mesh, order[i]);
  }
  tiles->digits = digits;
  if (sharding->ids == NULL) return AX_OK;
  AX_TRY(list_digits(tiles));
  for (int64_t k = 0; k < sharding->places; k++) tiles->list[k] = sharding->ids[tiles->list[k]];
  return AX_OK;
}

ax_status ax_sharding_in_order(const ax_sharding *sharding, ax_mesh *mesh, ax_spec *spec) {
  ax_tiles tiles;
  *mesh = (ax_mesh){0};
  *spec = (ax_spec){0};
  AX_TRY(ax_require(sharding, "sharding"));
  if (sharding->ids == NULL) {
    *mesh = sharding->mesh;
    *spec = sharding->spec;
    return AX_OK;
  }
  ax_status status = tiles_of(sharding, sharding->spec.rank, &tiles);
  if (status == AX_OK && (!ax_tiles_simplify(&tiles) || !ax_tiles_lay(&tiles, mesh, spec)))
    status = ax_error(AX_ABSENT, "sharding_in_order: no mesh whose places are the devices' ids has these blocks");
  if (status != AX_OK) {
    *mesh = (ax_mesh){0};
    *spec = (ax_spec){0};
  }
  ax_tiles_deinit(&tiles);
  return status;
}

static void add_ids(ax_text *text, const ax_sharding *sharding) {
  enum { shown = 16 };
  for (int64_t p = 0; p < sharding->places && p < shown; p++)
    ax_text_add(text, "%s%lld", p > 0 ? " " : "", (long long)sharding->ids[p]);
  if (sharding->places > shown) ax_text_add(text, " .. %lld", (long long)sharding->ids[sharding->places - 1]);
}

ax_status ax_sharding_print(const ax_sharding *sharding, char **out) {
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(sharding, "sharding"));
  ax_spec_text(&text, &sharding->spec, &sharding->mesh);
  ax_text_add(&text, " over ");
  ax_mesh_text(&text, &sharding->mesh);
  if (sharding->ids != NULL) {
    ax_text_add(&text, sharding->places == 1 ? ", device " : ", devices ");
    add_ids(&text, sharding);
  }
  return ax_text_finish(&text, out);
}

ax_status ax_sharding_tiles(const ax_sharding *sharding, uint32_t rank, char **out) {
  ax_tiles tiles = {.kind = AX_TILES_REPLICATED};
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(sharding, "sharding"));
  if (rank > AX_MAX_RANK || sharding->spec.rank > rank || (sharding->rank != AX_NONE && sharding->rank != rank))
    return ax_error(AX_INVALID_ARGUMENT, "sharding_tiles: the sharding is of arrays of %s%u dimensions, not of %u",
                    sharding->rank == AX_NONE ? "at least " : "", sharding->spec.rank, rank);
  ax_status status = AX_OK;
  if (sharding->places == 1) tiles = (ax_tiles){.kind = AX_TILES_MAXIMAL, .device = ax_sharding_device(sharding, 0)};
  else if (!ax_sharding_is_replicated(sharding)) status = tiles_of(sharding, rank, &tiles);
  if (status == AX_OK && tiles.kind == AX_TILES_TILED) ax_tiles_simplify(&tiles);
  if (status == AX_OK) ax_tiles_text(&text, &tiles);
  ax_tiles_deinit(&tiles);
  return status == AX_OK ? ax_text_finish(&text, out) : status;
}

ax_status ax_sharding_picture(const ax_sharding *sharding, const ax_type *whole, char **out) {
  ax_type sound, block;
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_sharding_types(sharding, whole, &sound, &block));
  ax_draw_layout(&text, &sound, &block, &sharding->spec, &sharding->mesh, sharding->ids);
  return ax_text_finish(&text, out);
}
