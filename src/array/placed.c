/* Arrays and shardings: put, moved, assembled from the devices' arrays, and taken apart again. Parts in place are shared. Parts
   know whether they are shared, so donated memory that others have is copied first (ax_parts_lay_out). */
#include "axle/processes.h"
#include "axle/sharding.h"

#include <string.h>

#include "array/joint.h"
#include "array/runtime.h"
#include "mesh/assignment.h"
#include "mesh/sharding.h"

/* --- Devices --- */

int64_t ax_runtime_device_count(const ax_runtime *runtime) { return runtime != NULL ? runtime->options.max_devices : 0; }

ax_status ax_runtime_device(const ax_runtime *runtime, int64_t id, ax_device *out) {
  *out = (ax_device){.platform = "cpu", .memory_kind = "device"};
  AX_TRY(ax_require(runtime, "runtime"));
  if (id < 0 || id >= runtime->options.max_devices)
    return ax_error(AX_INVALID_ARGUMENT, "device %lld of %lld", (long long)id, (long long)runtime->options.max_devices);
  out->id = id;
  out->process = ax_process_index(runtime);
  ax_runtime_memory(runtime, &out->memory_now, &out->memory_peak);
  return AX_OK;
}

/* --- Layouts of shardings --- */

static int64_t largest_id(const ax_sharding *sharding) {
  return sharding->by_id != NULL ? sharding->by_id[sharding->places - 1].id : sharding->places - 1;
}

/* `*out` is retained. */
static ax_status lay(const char *who, ax_runtime *runtime, const ax_sharding *sharding, const ax_type *whole, ax_layout **out) {
  ax_type sound, block;
  *out = NULL;
  ax_status status = ax_require(runtime, "runtime");
  if (status == AX_OK) status = ax_sharding_types(sharding, whole, &sound, &block);
  if (status == AX_OK && largest_id(sharding) >= runtime->options.max_devices)
    status = ax_error(AX_INVALID_ARGUMENT, "device %lld of the %lld there are", (long long)largest_id(sharding),
                      (long long)runtime->options.max_devices);
  if (status == AX_OK) status = ax_layout_create(runtime, &sound, &sharding->mesh, &sharding->spec, sharding, true, out);
  return status == AX_OK ? AX_OK : ax_error_context(status, "%s: ", who);
}

/* Makes an array of parts, which are consumed, or passes on the status with which they failed. */
static ax_status wrap(ax_status status, ax_layout *layout, ax_parts *parts, ax_array **out) {
  if (status == AX_OK) {
    status = ax_array_create(layout, parts, out);
    if (status != AX_OK) ax_parts_release(parts);
  }
  ax_layout_release(layout);
  return status;
}

/* --- Putting --- */

static ax_status put(const char *who, ax_runtime *runtime, const ax_sharding *sharding, const ax_host_array *host, ax_array **out) {
  ax_layout *layout;
  *out = NULL;
  AX_TRY(ax_require(host, "host array"));
  ax_status status = ax_view_check(host);
  if (status != AX_OK) return ax_error_context(status, "%s: ", who);
  const ax_type whole = ax_array_type(host->dtype, AX_LIST(host->rank, host->dims));
  AX_TRY(lay(who, runtime, sharding, &whole, &layout));
  status = ax_array_of_data(runtime, layout, host->data, out);
  ax_layout_release(layout);
  return status;
}

ax_status ax_device_put_as(ax_runtime *runtime, const ax_sharding *sharding, const ax_host_array *host, ax_array **out) {
  return put("device_put_as", runtime, sharding, host, out);
}

/* Releases the results made before a failure. */
static ax_status drop_all(ax_status status, const char *who, uint32_t at, ax_array **out) {
  for (uint32_t i = 0; i < at; i++) {
    ax_array_release(out[i]);
    out[i] = NULL;
  }
  return ax_error_context(status, "%s: array %u: ", who, at);
}

/* Checks the two other lists of a function that makes an array for each entry of its first: `of`, which holds what `what` says, and
   `out`, which is cleared. */
static ax_status check_lists(const char *who, uint32_t count, const char *what, uint32_t of_count, uint32_t out_count,
                             ax_array **out) {
  for (uint32_t i = 0; i < ax_list_entries(out_count, count); i++) out[i] = NULL;
  AX_TRY(ax_list_check(who, "it takes", what, of_count, count));
  return ax_list_check(who, "the call gives", "result", out_count, count);
}

ax_status (ax_device_put_many)(ax_runtime *runtime, uint32_t count, const ax_sharding *const *shardings, uint32_t host_count,
                               const ax_host_array *hosts, uint32_t out_count, ax_array **out) {
  AX_TRY(check_lists("device_put_many", count, "host array", host_count, out_count, out));
  for (uint32_t i = 0; i < count; i++) {
    ax_status status = put("device_put_as", runtime, shardings[i], &hosts[i], &out[i]);
    if (status != AX_OK) return drop_all(status, "device_put_many", i, out);
  }
  return AX_OK;
}

typedef struct reshape { /* what processes compare, if nothing moves */
  const char *who;
  const ax_array *array;
} reshape;

static void describe(const void *context, ax_text *text) {
  const reshape *r = context;
  ax_text_add(text, "%s of ", r->who);
  ax_layout_text(text, r->array->layout);
}

/* The array is made first, so that nothing fails once its parts are there. */
static ax_status move_parts(const ax_array *array, ax_layout *layout, ax_laying laying, ax_array **out) {
  AX_TRY(ax_array_create(layout, NULL, out));
  AX_TRY(ax_array_open(array));
  ax_status status = ax_parts_lay_out(array->parts, array->layout, layout, laying, &(*out)->parts);
  ax_array_close(array);
  return status;
}

static ax_status move(const char *who, const ax_array *array, const ax_sharding *sharding, ax_laying laying, ax_array **out) {
  ax_layout *layout = NULL;
  ax_joint joint;
  *out = NULL;
  AX_TRY(ax_require(array, "array"));
  const reshape r = {who, array};
  const ax_layout *old = array->layout;
  ax_joint_begin(&joint, old->runtime, old->map != NULL, &(ax_doing){ax_hash_word(2, old->hash) | 1, describe, &r, "ax_array_reshard"});
  ax_status status = lay(who, old->runtime, sharding, &old->type, &layout);
  if (status == AX_OK) status = move_parts(array, layout, laying, out);
  status = ax_joint_end(&joint, status);
  ax_layout_release(layout);
  if (status == AX_OK) return AX_OK;
  ax_array_release(*out);
  *out = NULL;
  return status;
}

ax_status ax_array_reshard(const ax_array *array, const ax_sharding *sharding, ax_array **out) {
  return move("array_reshard", array, sharding, AX_LAY_SHARED, out);
}

ax_status ax_array_copy_to(const ax_array *array, const ax_sharding *sharding, ax_array **out) {
  return move("array_copy_to", array, sharding, AX_LAY_COPIED, out);
}

ax_status (ax_array_reshard_many)(uint32_t count, ax_array *const *arrays, uint32_t sharding_count,
                                  const ax_sharding *const *shardings, uint32_t out_count, ax_array **out) {
  AX_TRY(check_lists("array_reshard_many", count, "sharding", sharding_count, out_count, out));
  for (uint32_t i = 0; i < count; i++) {
    ax_status status = move("array_reshard", arrays[i], shardings[i], AX_LAY_SHARED, &out[i]);
    if (status != AX_OK) return drop_all(status, "array_reshard_many", i, out);
  }
  return AX_OK;
}

/* --- Made of what devices have --- */

/* A list with an entry for each place: *count is how many there are. */
static ax_status check_count(const char *who, const ax_sharding *sharding, uint32_t *count) {
  *count = ax_list_entries(*count, (uint32_t)sharding->places);
  if (*count == sharding->places) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: %u for %lld devices", who, *count, (long long)sharding->places);
}

/* The place of the first device that has block b, of this process if it has any. */
static int64_t first_place(const ax_layout *layout, uint32_t b) {
  return ax_layout_has(layout, b) ? ax_layout_own_place(layout, b) : ax_shard_device(&layout->spec, &layout->mesh, b);
}

/* Gives back the parts of devices that are not the first with their block. */
static void give_back_copies(const ax_layout *layout, const ax_part *parts) {
  const int64_t places = ax_mesh_devices(&layout->mesh);
  for (int64_t p = 0; p < places; p++)
    if (p != first_place(layout, ax_layout_block_at(layout, p)) && parts[p].release != NULL) parts[p].release(parts[p].context);
}

/* Picks the parts by block from a list by place. *out: ax_free. */
static ax_status pick_blocks(const ax_layout *layout, const ax_part *by_place, ax_part **out) {
  *out = ax_alloc_plain(layout->blocks * sizeof **out);
  if (*out == NULL) return ax_out_of_memory(layout->blocks * sizeof **out);
  for (uint32_t b = 0; b < layout->blocks; b++) (*out)[b] = by_place[first_place(layout, b)];
  return AX_OK;
}

/* On failure nothing is released. */
static ax_status lend_blocks(const char *who, ax_runtime *runtime, ax_layout *layout, const ax_part *by_place, ax_array **out) {
  ax_part *blocks;
  AX_TRY(pick_blocks(layout, by_place, &blocks));
  ax_status status = ax_array_lend(who, runtime, layout, blocks, layout->blocks, out);
  ax_free(blocks);
  if (status == AX_OK) give_back_copies(layout, by_place);
  return status;
}

ax_status (ax_array_from_device_parts)(ax_runtime *runtime, const ax_sharding *sharding, const ax_type *type, uint32_t count,
                                       const ax_part *parts, ax_array **out) {
  static const char who[] = "array_from_device_parts";
  ax_layout *layout;
  *out = NULL;
  AX_TRY(ax_require(parts, "list of parts"));
  AX_TRY(lay(who, runtime, sharding, type, &layout));
  ax_status status = check_count(who, sharding, &count);
  if (status == AX_OK) status = lend_blocks(who, runtime, layout, parts, out);
  ax_layout_release(layout);
  return status;
}

static int64_t device_at(const ax_layout *layout, int64_t place) {
  return layout->sharding != NULL ? layout->sharding->ids[place] : place;
}

/* Checks an array for one place: it lies on one device, the one at this place, and has the shape of a block. */
static ax_status check_array(const ax_layout *whole, const ax_array *array, int64_t place) {
  AX_TRY(ax_require(array, "array"));
  const ax_layout *own = array->layout;
  const int64_t wanted = device_at(whole, place);
  if (own->runtime != whole->runtime) return ax_error(AX_INVALID_ARGUMENT, "it belongs to another runtime");
  if (!ax_type_equal(&own->type, &whole->block))
    return ax_error(AX_INVALID_ARGUMENT, "it is %s, but a block is %s", ax_type_string(&own->type, NULL),
                    ax_type_string(&whole->block, NULL));
  if (ax_mesh_devices(&own->mesh) != 1)
    return ax_error(AX_INVALID_ARGUMENT, "it lies on %lld devices", (long long)ax_mesh_devices(&own->mesh));
  if (device_at(own, 0) != wanted)
    return ax_error(AX_INVALID_ARGUMENT, "it lies on device %lld, not on %lld", (long long)device_at(own, 0), (long long)wanted);
  return AX_OK;
}

static void release_parts(void *parts) { ax_parts_release(parts); }

/* Lends the array's part, which keeps the array's parts alive. It is read-only, since the array still has it. */
static ax_status borrow(const ax_array *array, ax_part *part) {
  AX_TRY(ax_array_open(array));
  *part = (ax_part){.data = array->parts->part[0], .bytes = array->layout->block_bytes, .release = release_parts,
                    .context = ax_parts_retain(array->parts), .read_only = true};
  ax_array_close(array);
  return AX_OK;
}

static ax_status borrow_all(const ax_layout *layout, ax_array *const *arrays, uint32_t count, ax_part *parts, uint32_t *borrowed) {
  for (*borrowed = 0; *borrowed < count; ++*borrowed) {
    parts[*borrowed] = (ax_part){0};
    if (layout->map != NULL && !ax_device_is_here(layout->map, *borrowed)) continue;
    ax_status status = check_array(layout, arrays[*borrowed], *borrowed);
    if (status == AX_OK) status = borrow(arrays[*borrowed], &parts[*borrowed]);
    if (status != AX_OK) return ax_error_context(status, "array_from_device_arrays: array %u: ", *borrowed);
  }
  return AX_OK;
}

ax_status (ax_array_from_device_arrays)(ax_runtime *runtime, const ax_sharding *sharding, const ax_type *type, uint32_t count,
                                        ax_array *const *arrays, ax_array **out) {
  static const char who[] = "array_from_device_arrays";
  ax_layout *layout;
  uint32_t borrowed = 0;
  *out = NULL;
  AX_TRY(ax_require(arrays, "list of arrays"));
  AX_TRY(lay(who, runtime, sharding, type, &layout));
  ax_status status = check_count(who, sharding, &count);
  ax_part *parts = ax_alloc(count * sizeof parts[0]);
  if (status == AX_OK && parts == NULL) status = ax_out_of_memory(count * sizeof parts[0]);
  if (status == AX_OK) status = borrow_all(layout, arrays, count, parts, &borrowed);
  if (status == AX_OK) status = lend_blocks(who, runtime, layout, parts, out);
  for (uint32_t p = 0; status != AX_OK && p < borrowed; p++)
    if (parts[p].release != NULL) parts[p].release(parts[p].context);
  ax_free(parts);
  ax_layout_release(layout);
  return status;
}

/* --- Taken apart --- */

ax_status ax_array_on_device(const ax_array *array, int64_t device, ax_array **out) {
  static const char who[] = "array_on_device";
  ax_layout *layout;
  ax_sharding *single;
  ax_parts *parts = NULL;
  *out = NULL;
  AX_TRY(ax_require(array, "array"));
  const ax_layout *whole = array->layout;
  int64_t place;
  AX_TRY(ax_layout_place(whole, device, &place));
  AX_TRY(ax_sharding_single(device, &single));
  ax_status status = lay(who, whole->runtime, single, &whole->block, &layout);
  ax_sharding_release(single);
  if (status != AX_OK) return status;
  status = ax_array_open(array);
  if (status == AX_OK) {
    status = ax_parts_of_block(array->parts, layout, ax_layout_block_at(whole, place), &parts);
    ax_array_close(array);
  }
  return wrap(status, layout, parts, out);
}

static ax_status check_box(const ax_layout *layout, const int64_t *start, const int64_t *sizes, ax_type *box) {
  *box = layout->type;
  for (uint32_t d = 0; d < box->rank; d++) {
    if (start[d] < 0 || sizes[d] < 0 || sizes[d] > box->dims[d] || start[d] > box->dims[d] - sizes[d])
      return ax_error(AX_INVALID_ARGUMENT, "array_read_slice: %lld from %lld on leave dimension %u of %s", (long long)sizes[d],
                      (long long)start[d], d, ax_type_string(&layout->type, NULL));
    box->dims[d] = sizes[d];
  }
  return AX_OK;
}

ax_status (ax_array_read_slice)(const ax_array *array, uint32_t start_count, const int64_t *start, uint32_t size_count,
                                const int64_t *sizes, ax_dtype element, void *data, size_t bytes) {
  ax_type box;
  AX_TRY(ax_require(array, "array"));
  AX_TRY(ax_list_check("array_read_slice", "the array has", "dimension", start_count, array->layout->type.rank));
  AX_TRY(ax_list_check("array_read_slice", "the array has", "dimension", size_count, array->layout->type.rank));
  if (array->layout->type.rank > 0) {
    AX_TRY(ax_require(start, "start"));
    AX_TRY(ax_require(sizes, "list of sizes"));
  }
  AX_TRY(check_box(array->layout, start, sizes, &box));
  AX_TRY(ax_memory_check("array_read_slice", &box, element, SIZE_MAX));
  return ax_array_read_box(array, &box, start, data, bytes);
}

/* --- Asked --- */

ax_status ax_array_sharding(const ax_array *array, ax_sharding **out) {
  *out = NULL;
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  if (layout->sharding == NULL) return ax_sharding_create(&layout->mesh, &layout->spec, out);
  *out = ax_sharding_retain(layout->sharding);
  return AX_OK;
}

bool ax_array_is_laid_as(const ax_array *array, const ax_sharding *sharding) {
  if (array == NULL || sharding == NULL) return false;
  const ax_layout *layout = array->layout;
  struct ax_sharding own = {.mesh = layout->mesh, .spec = layout->spec, .places = ax_mesh_devices(&layout->mesh)};
  return ax_sharding_equal(layout->sharding != NULL ? layout->sharding : &own, sharding);
}
