/* Arrays: one block of memory for each distinct part, in mesh order along the axes of the spec (mesh/sharding.h). A replicated array
   is one block however many devices the mesh has.

   Memory has any number of users that read it, or is given to the one run it was donated to: reading an array while another
   thread donates it fails cleanly, on one side or the other. */
#include "exec/exec.h"
#include "mesh/sharding.h"

static size_t type_bytes(const ax_type *type) { return (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype); }

/* Type and memory; false: more bytes than there can be. */
static bool measure(ax_array *array) {
  array->blocks = (uint32_t)ax_shard_count(&array->spec, &array->mesh);
  array->block_bytes = (type_bytes(&array->block) + 63) & ~(size_t)63; /* at most INT64_MAX before: see ax_type_check */
  return ax_mul_size(array->block_bytes, array->blocks, &array->bytes);
}

ax_status ax_array_create(ax_runtime *runtime, const ax_mesh *mesh, const ax_spec *spec, const ax_type *type, void *data,
                          ax_array **out) {
  ax_array *array = ax_calloc(1, sizeof *array);
  *out = NULL;
  if (array == NULL) return ax_out_of_memory(sizeof *array);
  array->type = ax_array_type(type->dtype, type->rank, type->dims);
  array->mesh = *mesh;
  array->spec = *spec;
  ax_status status = ax_shard_type(&array->type, spec, mesh, &array->block);
  if (status == AX_OK && !measure(array)) status = ax_out_of_memory(SIZE_MAX);
  if (status == AX_OK && data == NULL) status = ax_pool_alloc(runtime, array->bytes, &data);
  if (status != AX_OK) {
    ax_free(array);
    return status;
  }
  array->data = data;
  atomic_init(&array->users, 0);
  atomic_init(&array->references, 1);
  array->runtime = ax_runtime_retain(runtime);
  *out = array;
  return AX_OK;
}

ax_array *ax_array_retain(ax_array *array) {
  if (array != NULL) atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
  return array;
}

void ax_array_release(ax_array *array) {
  if (array == NULL || atomic_fetch_sub(&array->references, 1) != 1) return;
  ax_pool_free(array->runtime, array->data, array->bytes);
  ax_runtime_release(array->runtime);
  ax_free(array);
}

const ax_type *ax_array_get_type(const ax_array *array) { return array != NULL ? &array->type : NULL; }
const ax_mesh *ax_array_get_mesh(const ax_array *array) { return array != NULL ? &array->mesh : NULL; }
const ax_spec *ax_array_get_spec(const ax_array *array) { return array != NULL ? &array->spec : NULL; }

/* --- Who uses the memory --- */

bool ax_array_use(ax_array *array) {
  int users = atomic_load(&array->users);
  while (users >= 0)
    if (atomic_compare_exchange_weak(&array->users, &users, users + 1)) return true;
  return false;
}

void ax_array_leave(ax_array *array) { atomic_fetch_sub(&array->users, 1); }

bool ax_array_take(ax_array *array) {
  int none = 0;
  return atomic_compare_exchange_strong(&array->users, &none, -1);
}

void ax_array_give_back(ax_array *array) { atomic_store(&array->users, 0); }

/* --- Blocks and the whole --- */

ax_status ax_array_shard(const ax_array *array, int64_t device, ax_type *type, int64_t *start) {
  AX_TRY(ax_require(array, "array"));
  if (device < 0 || device >= ax_mesh_devices(&array->mesh))
    return ax_error(AX_INVALID_ARGUMENT, "device %lld of a mesh of %lld", (long long)device,
                    (long long)ax_mesh_devices(&array->mesh));
  *type = array->block;
  ax_shard_offset(&array->block, &array->spec, &array->mesh, device, start);
  return AX_OK;
}

/* The memory of block b, and where it begins in the whole. */
static void *block_at(const ax_array *array, uint32_t b, int64_t *start) {
  ax_shard_offset(&array->block, &array->spec, &array->mesh, ax_shard_device(&array->spec, &array->mesh, b), start);
  return (unsigned char *)array->data + b * array->block_bytes;
}

static void gather(const ax_array *array, void *whole) {
  int64_t start[AX_MAX_RANK];
  for (uint32_t b = 0; b < array->blocks; b++) {
    const void *block = block_at(array, b, start);
    ax_shard_write(&array->block, block, start, &array->type, whole);
  }
}

ax_status ax_array_read(const ax_array *array, void *data, size_t bytes) {
  AX_TRY(ax_require(array, "array"));
  if (bytes != type_bytes(&array->type) || (data == NULL && bytes > 0))
    return ax_error(AX_INVALID_ARGUMENT, "reading %s takes %zu bytes, not %zu%s", ax_type_string(&array->type, NULL),
                    type_bytes(&array->type), bytes, data == NULL ? " at no address" : "");
  ax_array *open = (ax_array *)array; /* its count of users is not part of what is const */
  if (!ax_array_use(open)) return ax_error(AX_INVALID_ARGUMENT, "the array was donated to a run");
  gather(array, data);
  ax_array_leave(open);
  return AX_OK;
}

static ax_status put(ax_runtime *runtime, const ax_mesh *mesh, const ax_spec *spec, const ax_type *type, const void *data,
                     ax_array **out) {
  int64_t start[AX_MAX_RANK];
  AX_TRY(ax_array_create(runtime, mesh, spec, type, NULL, out));
  for (uint32_t b = 0; b < (*out)->blocks; b++) {
    void *block = block_at(*out, b, start);
    ax_shard_read(&(*out)->type, data, start, &(*out)->block, block);
  }
  return AX_OK;
}

ax_status ax_device_put(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type, const void *data,
                        ax_array **out) {
  const ax_mesh one = {0};
  ax_spec parsed;
  *out = NULL;
  if (mesh == NULL) mesh = &one;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(type, "type"));
  ax_status status = ax_mesh_check(mesh);
  ax_type sound = *type; /* axis sets are not looked at */
  sound.spread.varying = sound.spread.reduced = sound.spread.unreduced = 0;
  if (status == AX_OK) status = ax_type_check(&sound, mesh);
  if (status != AX_OK) return ax_error_context(status, "device_put: ");
  if (ax_mesh_devices(mesh) > runtime->options.max_devices)
    return ax_error(AX_INVALID_ARGUMENT, "the mesh has %lld devices, more than the %lld there are",
                    (long long)ax_mesh_devices(mesh), (long long)runtime->options.max_devices);
  AX_TRY(ax_spec_parse(spec, mesh, &parsed));
  if (ax_type_elems(type) > 0) AX_TRY(ax_require(data, "data"));
  return put(runtime, mesh, &parsed, type, data, out);
}

/* --- Another layout --- */

static bool same_layout(const ax_array *array, const ax_mesh *mesh, const ax_spec *spec) {
  if (ax_spec_set(&array->spec) == 0 && ax_spec_set(spec) == 0) return true; /* one block, whatever the mesh */
  return ax_mesh_equal(&array->mesh, mesh, false) && ax_spec_equal(&array->spec, spec);
}

ax_status ax_array_relayout(ax_array *array, const ax_mesh *mesh, const ax_spec *spec, ax_array **out) {
  *out = NULL;
  if (same_layout(array, mesh, spec)) {
    *out = ax_array_retain(array);
    return AX_OK;
  }
  size_t bytes = type_bytes(&array->type);
  void *whole;
  AX_TRY(ax_pool_alloc(array->runtime, bytes, &whole));
  gather(array, whole);
  ax_status status = put(array->runtime, mesh, spec, &array->type, whole, out);
  ax_pool_free(array->runtime, whole, bytes);
  return status;
}
