/* Making, describing and reading arrays. array.h says how an array is built. */
#include <string.h>

#include "array/copying.h"
#include "array/pending.h"
#include "array/runtime.h"
#include "mesh/assignment.h"
#include "mesh/sharding.h"

ax_status ax_array_create(ax_layout *layout, ax_parts *parts, ax_array **out) {
  void *memory;
  *out = NULL;
  /* on its own cache lines, since it counts its users */
  AX_TRY(ax_pool_alloc(&layout->runtime->executor.pool, sizeof(ax_array), &memory));
  ax_array *array = *out = memory;
  *array = (ax_array){.parts = parts};
  atomic_init(&array->references, 1);
  array->layout = ax_layout_retain(layout);
  return AX_OK;
}

ax_array *ax_array_retain(ax_array *array) {
  if (array != NULL) atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
  return array;
}

static void destroy(ax_array *array) {
  ax_parts_release(array->parts);
  ax_pending_release(array->maker);
  ax_layout *layout = array->layout;
  ax_pool_free(&layout->runtime->executor.pool, array, sizeof *array);
  ax_layout_release(layout); /* and with it perhaps the runtime */
}

void ax_array_release(ax_array *array) {
  if (array == NULL || atomic_fetch_sub(&array->references, 1) != 1) return;
  const uint32_t readers = AX_ARRAY_UNHELD - 1;
  if ((atomic_load(&array->users) & readers) != 0 && (atomic_fetch_or(&array->users, AX_ARRAY_UNHELD) & readers) != 0) return;
  destroy(array);
}

const ax_type *ax_array_typeof(const ax_array *array) { return array != NULL ? &array->layout->type : NULL; }
const ax_mesh *ax_array_mesh(const ax_array *array) { return array != NULL ? &array->layout->mesh : NULL; }
const ax_spec *ax_array_spec(const ax_array *array) { return array != NULL ? &array->layout->spec : NULL; }
bool ax_array_is_committed(const ax_array *array) { return array != NULL && array->layout->committed; }
uint32_t ax_array_part_count(const ax_array *array) { return array != NULL ? array->layout->blocks : 0; }

/* --- Who uses the parts --- */

bool ax_array_use(ax_array *array) {
  uint32_t users = atomic_load(&array->users);
  while ((users & AX_ARRAY_GIVEN) == 0)
    if (atomic_compare_exchange_weak(&array->users, &users, users + 1)) return true;
  return false;
}

void ax_array_leave(ax_array *array) {
  const uint32_t users = atomic_fetch_sub(&array->users, 1);
  if (users == (AX_ARRAY_GIVEN | 1)) ax_pending_array_free(array);
  if (users == (AX_ARRAY_UNHELD | 1)) destroy(array);
}

bool ax_array_take(ax_array *array) {
  uint32_t none = 0;
  return atomic_compare_exchange_strong(&array->users, &none, AX_ARRAY_GIVEN | 1);
}

void ax_array_end_taking(ax_array *array, bool began) {
  const uint32_t ended = began ? 1 : AX_ARRAY_GIVEN | 1;
  if ((atomic_fetch_sub(&array->users, ended) & AX_ARRAY_UNHELD) != 0) destroy(array);
}

/* --- Parts and the whole --- */

ax_status ax_array_shard(const ax_array *array, int64_t device, ax_type *type, int64_t *start) {
  int64_t place;
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  AX_TRY(ax_layout_place(layout, device, &place));
  *type = layout->block;
  ax_shard_offset(&layout->block, &layout->spec, &layout->mesh, place, start);
  return AX_OK;
}

ax_status ax_array_refuse_donated(const ax_array *array) {
  return ax_error(AX_INVALID_ARGUMENT, "the array %s was donated to a run", ax_type_string(&array->layout->type, NULL));
}

/* The casts: counting users and references does not change the array. */
ax_status ax_array_open(const ax_array *array) {
  AX_TRY(ax_require(array, "array"));
  ax_array *held = ax_array_retain((ax_array *)array);
  ax_status status = ax_array_wait(held);
  if (status == AX_OK && !ax_array_use(held)) status = ax_array_refuse_donated(held);
  else if (status == AX_OK) {
    status = ax_parts_bring(held->parts, held->layout);
    if (status != AX_OK) ax_array_leave(held);
  }
  ax_array_release(held); /* the reader holds it from here on */
  return status;
}

void ax_array_close(const ax_array *array) { ax_array_leave((ax_array *)array); }

ax_status ax_array_part(const ax_array *array, uint32_t index, const void **data, size_t *bytes, int64_t *device) {
  *data = NULL;
  *bytes = 0;
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  if (index >= layout->blocks)
    return ax_error(AX_INVALID_ARGUMENT, "part %u of an array that has %u", index, layout->blocks);
  if (!ax_layout_has(layout, index))
    return ax_error(AX_INVALID_ARGUMENT, "part %u of the array is in another process", index);
  AX_TRY(ax_array_open(array));
  *data = array->parts->part[index];
  *bytes = layout->block_bytes;
  const int64_t place = ax_layout_own_place(layout, index);
  if (device != NULL) *device = layout->sharding != NULL ? ax_sharding_device(layout->sharding, place) : place;
  ax_array_close(array);
  return AX_OK;
}

ax_status ax_array_read_box(const ax_array *array, const ax_type *box, const int64_t *start, void *data, size_t bytes) {
  const ax_layout *layout = array->layout;
  const size_t wanted = (size_t)ax_type_elems(box) * ax_dtype_bytes(box->dtype);
  if (bytes != wanted || (data == NULL && bytes > 0))
    return ax_error(AX_INVALID_ARGUMENT, "reading %s takes %zu bytes, not %zu%s", ax_type_string(box, NULL), wanted, bytes,
                    data == NULL ? " at no address" : "");
  AX_TRY(ax_layout_check_here(layout, box, start));
  AX_TRY(ax_array_open(array));
  ax_blocks_copy(layout->runtime, &(ax_blocks){&layout->block, &layout->spec, &layout->mesh, array->parts->part}, box, start, data);
  ax_array_close(array);
  return AX_OK;
}

ax_status (ax_array_read)(const ax_array *array, ax_dtype element, void *data, size_t bytes) {
  static const int64_t start[AX_MAX_RANK];
  AX_TRY(ax_require(array, "array"));
  AX_TRY(ax_memory_check("array_read", &array->layout->type, element, SIZE_MAX));
  return ax_array_read_box(array, &array->layout->type, start, data, bytes);
}

ax_status ax_array_picture(const ax_array *array, char **out) {
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  ax_draw_layout(&text, &layout->type, &layout->block, &layout->spec, &layout->mesh,
                 layout->sharding != NULL ? layout->sharding->ids : NULL);
  return ax_text_finish(&text, out);
}

/* --- Making arrays --- */

ax_status ax_layout_describe(const char *who, ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                             ax_layout **out) {
  const ax_mesh one = {0};
  ax_spec parsed;
  *out = NULL;
  if (mesh == NULL) mesh = &one;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(type, "type"));
  ax_status status = ax_mesh_check(mesh);
  ax_type sound = *type; /* a copy, since the caller's axis sets are ignored */
  sound.spread = (ax_spread){0};
  if (status == AX_OK) status = ax_type_check(&sound, mesh);
  if (status == AX_OK && sound.form != AX_ARRAY)
    status = ax_error(AX_INVALID_ARGUMENT, "%s is no array", ax_type_string(&sound, mesh));
  if (status != AX_OK) return ax_error_context(status, "%s: ", who);
  if (ax_mesh_devices(mesh) > runtime->options.max_devices)
    return ax_error(AX_INVALID_ARGUMENT, "the mesh has %lld devices, more than the %lld there are",
                    (long long)ax_mesh_devices(mesh), (long long)runtime->options.max_devices);
  AX_TRY(ax_spec_parse(spec, mesh, &parsed));
  return ax_layout_create(runtime, &sound, mesh, &parsed, NULL, mesh->count > 0, out);
}

ax_status ax_array_of_data(ax_runtime *runtime, ax_layout *layout, const void *data, ax_array **out) {
  int64_t start[AX_MAX_RANK];
  ax_parts *parts;
  if (layout->block_bytes > 0) AX_TRY(ax_require(data, "data"));
  AX_TRY(ax_parts_create(runtime, layout, &parts));
  static const ax_mesh one;
  static const ax_spec uncut;
  unsigned char *whole = (unsigned char *)data; /* only read */
  for (uint32_t b = 0; b < layout->blocks; b++) {
    if (!ax_layout_has(layout, b)) continue;
    ax_layout_offset(layout, b, start);
    ax_blocks_copy(runtime, &(ax_blocks){&layout->type, &uncut, &one, &whole}, &layout->block, start, parts->part[b]);
  }
  ax_status status = runtime->client != NULL ? ax_parts_send_away(parts, layout) : AX_OK;
  if (status == AX_OK) status = ax_array_create(layout, parts, out);
  if (status != AX_OK) ax_parts_release(parts);
  return status;
}

ax_status (ax_device_put_data)(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type, ax_dtype element,
                          const void *data, size_t bytes, ax_array **out) {
  ax_layout *layout;
  *out = NULL;
  AX_TRY(ax_layout_describe("device_put_data", runtime, mesh, spec, type, &layout));
  ax_status status = data != NULL ? ax_memory_check("device_put_data", type, element, bytes) : AX_OK;
  if (status == AX_OK) status = ax_array_of_data(runtime, layout, data, out);
  ax_layout_release(layout);
  return status;
}

static ax_status check_parts(const char *who, const ax_layout *layout, const ax_part *parts, uint32_t count) {
  size_t item = ax_dtype_bytes(layout->type.dtype);
  if (count != layout->blocks)
    return ax_error(AX_INVALID_ARGUMENT, "%s: %s has %u parts of %s, not %u", who, ax_type_string(&layout->type, NULL),
                    layout->blocks, ax_type_string(&layout->block, NULL), count);
  for (uint32_t b = 0; b < count; b++) {
    if (!ax_layout_has(layout, b)) continue;
    if (parts[b].bytes < layout->block_bytes)
      return ax_error(AX_INVALID_ARGUMENT, "%s: part %u has %zu bytes, but %s takes %zu", who, b, parts[b].bytes,
                      ax_type_string(&layout->block, NULL), layout->block_bytes);
    if (parts[b].data == NULL && layout->block_bytes > 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s: part %u is at no address", who, b);
    if ((uintptr_t)parts[b].data % item != 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s: part %u, at %p, is not aligned to an element's %zu bytes", who, b,
                      parts[b].data, item);
  }
  return AX_OK;
}

ax_status ax_array_lend(const char *who, ax_runtime *runtime, ax_layout *layout, const ax_part *parts, uint32_t count,
                        ax_array **out) {
  ax_parts *lent;
  AX_TRY(check_parts(who, layout, parts, count));
  AX_TRY(ax_parts_lend(runtime, layout, parts, &lent));
  ax_status status = ax_array_create(layout, lent, out);
  if (status != AX_OK) ax_parts_return(lent);
  return status;
}

ax_status (ax_array_from_parts)(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                              uint32_t count, const ax_part *parts, ax_array **out) {
  ax_layout *layout;
  *out = NULL;
  AX_TRY(ax_require(parts, "list of parts"));
  AX_TRY(ax_layout_describe("array_from_parts", runtime, mesh, spec, type, &layout));
  ax_status status = ax_array_lend("array_from_parts", runtime, layout, parts, ax_list_entries(count, layout->blocks), out);
  ax_layout_release(layout);
  return status;
}
