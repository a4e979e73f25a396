/* Arrays: one block of memory for each distinct part, in mesh order along the axes of the spec. A replicated array is one block
   however many devices the mesh has. */
#include <string.h>

#include "exec/exec.h"

static ax_status block_shape(const ax_type *type, const ax_mesh *mesh, const ax_spec *spec, ax_type *block) {
  *block = *type;
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    int64_t parts = 1;
    for (uint32_t i = 0; i < spec->count[d]; i++) parts *= mesh->axis[spec->axis[d][i]].size;
    if (d >= type->rank && spec->count[d] > 0)
      return ax_error(AX_INVALID_ARGUMENT, "a spec of %u entries on %s", spec->rank, ax_type_string(type, NULL));
    if (d >= type->rank) continue;
    if (type->dims[d] % parts != 0)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u of %s is %lld, which %lld devices do not divide", d,
                      ax_type_string(type, NULL), (long long)type->dims[d], (long long)parts);
    block->dims[d] = type->dims[d] / parts;
  }
  return AX_OK;
}

static int64_t type_bytes(const ax_type *type) { return ax_type_elems(type) * (int64_t)ax_dtype_bytes(type->dtype); }

ax_status ax_array_create(ax_runtime *runtime, const ax_mesh *mesh, const ax_spec *spec, const ax_type *type, void *data,
                          ax_array **out) {
  ax_type block;
  *out = NULL;
  AX_TRY(block_shape(type, mesh, spec, &block));
  ax_array *array = ax_calloc(1, sizeof *array);
  if (array == NULL) return ax_out_of_memory(sizeof *array);
  array->type = ax_array_type(type->dtype, type->rank, type->dims);
  array->mesh = *mesh;
  array->spec = *spec;
  array->axes = ax_spec_set(spec);
  array->block_bytes = (type_bytes(&block) + 63) & ~(int64_t)63;
  array->blocks = (uint32_t)ax_axis_set_size(array->axes, mesh);
  ax_status status = AX_OK;
  if (data == NULL) status = ax_pool_alloc(runtime, (size_t)array->block_bytes * array->blocks, &data);
  if (status != AX_OK) {
    ax_free(array);
    return status;
  }
  atomic_init(&array->data, data);
  atomic_init(&array->references, 1);
  array->runtime = ax_runtime_retain(runtime);
  *out = array;
  return AX_OK;
}

ax_array *ax_array_retain(ax_array *array) {
  atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
  return array;
}

void ax_array_release(ax_array *array) {
  if (array == NULL || atomic_fetch_sub(&array->references, 1) != 1) return;
  ax_pool_free(array->runtime, atomic_load(&array->data), (size_t)array->block_bytes * array->blocks);
  ax_runtime_release(array->runtime);
  ax_free(array);
}

const ax_type *ax_array_get_type(const ax_array *array) { return &array->type; }
const ax_mesh *ax_array_get_mesh(const ax_array *array) { return &array->mesh; }
const ax_spec *ax_array_get_spec(const ax_array *array) { return &array->spec; }

/* --- Blocks and the whole --- */

/* Coordinates of block `b` along the array's axes, in mesh order. */
static void block_coordinates(const ax_array *array, uint32_t b, int64_t *coordinates) {
  for (uint32_t axis = array->mesh.count; axis-- > 0;) {
    coordinates[axis] = 0;
    if ((array->axes >> axis & 1) == 0) continue;
    coordinates[axis] = b % array->mesh.axis[axis].size;
    b /= (uint32_t)array->mesh.axis[axis].size;
  }
}

static void block_start(const ax_array *array, const int64_t *coordinates, const ax_type *block, int64_t *start) {
  for (uint32_t d = 0; d < array->type.rank; d++) {
    int64_t index = 0;
    for (uint32_t i = 0; i < array->spec.count[d]; i++) {
      uint32_t axis = array->spec.axis[d][i];
      index = index * array->mesh.axis[axis].size + coordinates[axis];
    }
    start[d] = index * block->dims[d];
  }
}

ax_status ax_array_shard(const ax_array *array, int64_t device, ax_type *type, int64_t *start) {
  AX_TRY(ax_require(array, "array"));
  if (device < 0 || device >= ax_mesh_devices(&array->mesh))
    return ax_error(AX_INVALID_ARGUMENT, "device %lld of a mesh of %lld", (long long)device,
                    (long long)ax_mesh_devices(&array->mesh));
  int64_t coordinates[AX_MAX_AXES];
  for (uint32_t axis = 0; axis < array->mesh.count; axis++) coordinates[axis] = ax_mesh_coordinate(&array->mesh, device, axis);
  AX_TRY(block_shape(&array->type, &array->mesh, &array->spec, type));
  block_start(array, coordinates, type, start);
  return AX_OK;
}

/* Copies a block between its memory and its place in the whole: rows of the last dimensions that are contiguous in both. */
static void copy_block(const ax_array *array, uint32_t b, unsigned char *whole, bool to_whole) {
  ax_type block;
  int64_t coordinates[AX_MAX_AXES], start[AX_MAX_RANK], index[AX_MAX_RANK] = {0};
  ax_status status = block_shape(&array->type, &array->mesh, &array->spec, &block);
  assert(status == AX_OK); /* checked when the array was made */
  (void)status;
  block_coordinates(array, b, coordinates);
  block_start(array, coordinates, &block, start);
  const uint32_t rank = array->type.rank;
  const int64_t item = (int64_t)ax_dtype_bytes(array->type.dtype);
  unsigned char *part = (unsigned char *)atomic_load(&array->data) + b * array->block_bytes;
  uint32_t outer = rank; /* dimensions outer.. are whole in the block, so they are one run with the one before */
  while (outer > 0 && block.dims[outer - 1] == array->type.dims[outer - 1]) outer--;
  if (outer > 0) outer--;
  int64_t run = ax_dims_elems(rank - outer, block.dims + outer) * item, rows = ax_dims_elems(outer, block.dims);
  for (int64_t r = 0; r < rows && run > 0; r++) {
    int64_t place = 0;
    for (uint32_t d = 0; d < rank; d++) place = place * array->type.dims[d] + start[d] + (d < outer ? index[d] : 0);
    if (to_whole) memcpy(whole + place * item, part + r * run, (size_t)run);
    else memcpy(part + r * run, whole + place * item, (size_t)run);
    for (uint32_t d = outer; d-- > 0 && ++index[d] == block.dims[d];) index[d] = 0;
  }
}

ax_status ax_array_read(const ax_array *array, void *data, size_t bytes) {
  AX_TRY(ax_require(array, "array"));
  if (bytes != (size_t)type_bytes(&array->type) || (data == NULL && bytes > 0))
    return ax_error(AX_INVALID_ARGUMENT, "reading %s takes %lld bytes, not %zu%s", ax_type_string(&array->type, NULL),
                    (long long)type_bytes(&array->type), bytes, data == NULL ? " at no address" : "");
  if (atomic_load(&array->data) == NULL) return ax_error(AX_INVALID_ARGUMENT, "the array was donated to a run");
  for (uint32_t b = 0; b < array->blocks; b++) copy_block(array, b, data, true);
  return AX_OK;
}

static ax_status put(ax_runtime *runtime, const ax_mesh *mesh, const ax_spec *spec, const ax_type *type, const void *data,
                     ax_array **out) {
  AX_TRY(ax_array_create(runtime, mesh, spec, type, NULL, out));
  for (uint32_t b = 0; b < (*out)->blocks; b++) copy_block(*out, b, (unsigned char *)data, false);
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
  ax_type sound = *type; /* axis sets are not looked at */
  sound.varying = sound.reduced = sound.unreduced = 0;
  ax_status status = ax_type_check(&sound, mesh);
  if (status != AX_OK) return ax_error_context(status, "device_put: ");
  if (ax_mesh_devices(mesh) > runtime->options.max_devices)
    return ax_error(AX_INVALID_ARGUMENT, "the mesh has %lld devices, more than the %lld there are",
                    (long long)ax_mesh_devices(mesh), (long long)runtime->options.max_devices);
  AX_TRY(ax_spec_parse(spec, mesh, &parsed));
  if (ax_type_elems(type) > 0) AX_TRY(ax_require(data, "data"));
  return put(runtime, mesh, &parsed, type, data, out);
}

static bool same_layout(const ax_array *array, const ax_mesh *mesh, const ax_spec *spec) {
  if (array->axes == 0 && ax_spec_set(spec) == 0) return true;
  if (array->mesh.count != mesh->count) return false;
  for (uint32_t i = 0; i < mesh->count; i++)
    if (strcmp(array->mesh.axis[i].name, mesh->axis[i].name) != 0 || array->mesh.axis[i].size != mesh->axis[i].size) return false;
  return memcmp(array->spec.count, spec->count, sizeof spec->count) == 0 &&
         memcmp(array->spec.axis, spec->axis, sizeof spec->axis) == 0;
}

ax_status ax_array_relayout(const ax_array *array, const ax_mesh *mesh, const ax_spec *spec, ax_array **out) {
  *out = NULL;
  if (same_layout(array, mesh, spec)) {
    *out = ax_array_retain((ax_array *)array);
    return AX_OK;
  }
  size_t bytes = (size_t)type_bytes(&array->type);
  void *whole;
  AX_TRY(ax_pool_alloc(array->runtime, bytes, &whole));
  ax_status status = ax_array_read(array, whole, bytes);
  if (status == AX_OK) status = put(array->runtime, mesh, spec, &array->type, whole, out);
  ax_pool_free(array->runtime, whole, bytes);
  return status;
}
