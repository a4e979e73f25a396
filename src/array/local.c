/* What a process does with its own part of arrays: asked, made, gathered. axle/processes.h says what each function is for. */
#include "axle/processes.h"

#include <string.h>

#include "array/joint.h"
#include "array/moving.h"
#include "array/runtime.h"
#include "base/digest.h"
#include "mesh/assignment.h"
#include "mesh/sharding.h"

/* --- Processes and their devices --- */

static const ax_processes *processes_of(const ax_runtime *runtime) { return runtime != NULL ? runtime->executor.processes : NULL; }

uint32_t ax_process_index(const ax_runtime *runtime) {
  const ax_processes *processes = processes_of(runtime);
  return processes != NULL ? processes->rule.process : 0;
}

uint32_t ax_process_count(const ax_runtime *runtime) {
  const ax_processes *processes = processes_of(runtime);
  return processes != NULL ? processes->rule.processes : 1;
}

/* Processes of several machines are taken to be on a machine each: how many share one, not all of them know. */
ax_process_layout ax_process_layout_of(const ax_runtime *runtime) {
  const ax_processes *p = processes_of(runtime);
  if (p == NULL) return (ax_process_layout){0};
  const uint32_t beside = p->transport->beside;
  return (ax_process_layout){.processes = p->rule.processes, .per_host = beside == 0 || beside == p->rule.processes ? 0 : 1,
                             .process_of = p->rule.of, .process_of_count = p->rule.listed};
}

/* How devices are given to processes, and how many the mesh has. */
static ax_status rule_of(const ax_runtime *runtime, const ax_mesh *mesh, const ax_process_rule **rule, uint32_t *devices) {
  static const ax_process_rule alone = {.processes = 1};
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_mesh_check(mesh));
  const ax_processes *processes = processes_of(runtime);
  *rule = processes != NULL ? &processes->rule : &alone;
  *devices = (uint32_t)ax_mesh_devices(mesh);
  return AX_OK;
}

ax_status ax_runtime_process_of(const ax_runtime *runtime, const ax_mesh *mesh, int64_t device, uint32_t *out) {
  const ax_process_rule *rule;
  uint32_t devices, none;
  *out = 0;
  AX_TRY(rule_of(runtime, mesh, &rule, &devices));
  if (device >= 0 && device < devices) return ax_process_of(rule, devices, (uint32_t)device, out);
  AX_TRY(ax_process_of(rule, devices, 0, &none));
  return ax_error(AX_INVALID_ARGUMENT, "device %lld of a mesh of %u", (long long)device, devices);
}

ax_status ax_runtime_local_device_count(const ax_runtime *runtime, const ax_mesh *mesh, int64_t *out) {
  const ax_process_rule *rule;
  uint32_t devices, count;
  *out = 0;
  AX_TRY(rule_of(runtime, mesh, &rule, &devices));
  AX_TRY(ax_process_devices(rule, devices, &count));
  *out = count;
  return AX_OK;
}

/* --- Shards --- */

bool ax_array_is_addressable(const ax_array *array) {
  return array != NULL && array->layout->here_count == array->layout->blocks;
}

uint32_t ax_array_addressable_count(const ax_array *array) {
  if (array == NULL) return 0;
  return array->layout->map != NULL ? array->layout->map->here : (uint32_t)array->layout->devices;
}

/* Places that have the same block differ along the axes that the spec does not name. */
static int64_t replica_of(const ax_layout *layout, int64_t place) {
  const ax_mesh *mesh = &layout->mesh;
  int64_t replica = 0;
  for (uint32_t axis = 0; axis < mesh->count; axis++)
    if ((layout->named >> axis & 1) == 0) replica = replica * mesh->axis[axis].size + ax_mesh_coordinate(mesh, place, axis);
  return replica;
}

ax_status ax_array_addressable_shard(const ax_array *array, uint32_t index, ax_shard *out) {
  *out = (ax_shard){0};
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  if (index >= ax_array_addressable_count(array))
    return ax_error(AX_INVALID_ARGUMENT, "shard %u of an array that has %u in this process", index,
                    ax_array_addressable_count(array));
  AX_TRY(ax_array_open(array));
  const int64_t place = layout->map != NULL ? layout->map->own[index] : index;
  *out = (ax_shard){.device = layout->sharding != NULL ? ax_sharding_device(layout->sharding, place) : place,
                    .replica = replica_of(layout, place),
                    .type = layout->block,
                    .data = array->parts->part[ax_layout_block_at(layout, place)],
                    .bytes = layout->block_bytes};
  ax_shard_offset(&layout->block, &layout->spec, &layout->mesh, place, out->start);
  ax_array_close(array);
  return AX_OK;
}

/* --- Arrays of local data --- */

/* Where the blocks of a process lie in its own part: by dimension and part of it, whether the process has such blocks. */
typedef struct region {
  const ax_layout *layout;
  uint8_t *has; /* by dimension: an entry for each part, from first[d] on */
  uint32_t first[AX_MAX_RANK + 1];
  ax_type local;
} region;

static int64_t parts_along(const ax_layout *layout, uint32_t d) { return ax_shard_parts(&layout->spec, &layout->mesh, d); }

static void note_blocks(region *r) {
  const ax_layout *layout = r->layout;
  for (uint32_t b = 0; b < layout->blocks; b++) {
    int64_t offset[AX_MAX_RANK];
    if (!ax_layout_has(layout, b)) continue;
    ax_layout_offset(layout, b, offset);
    for (uint32_t d = 0; d < layout->type.rank; d++)
      r->has[r->first[d] + (layout->block.dims[d] > 0 ? offset[d] / layout->block.dims[d] : 0)] = 1;
  }
}

static ax_status refuse_region(const ax_layout *layout) {
  return ax_error(AX_INVALID_ARGUMENT, "the %u blocks %s of this process do not make a box of %s", layout->here_count,
                  ax_type_string(&layout->block, NULL), ax_type_string(&layout->type, NULL));
}

/* has: ax_free, whatever the status. */
static ax_status find_region(region *r, const ax_layout *layout) {
  const uint32_t rank = layout->type.rank;
  *r = (region){.layout = layout, .local = layout->type};
  for (uint32_t d = 0; d < rank; d++) r->first[d + 1] = r->first[d] + (uint32_t)parts_along(layout, d);
  r->has = ax_calloc((size_t)r->first[rank] + 1, 1);
  if (r->has == NULL) return ax_out_of_memory(r->first[rank]);
  note_blocks(r);
  uint64_t product = 1;
  for (uint32_t d = 0; d < rank; d++) {
    uint32_t count = 0;
    for (uint32_t i = r->first[d]; i < r->first[d + 1]; i++) count += r->has[i];
    if (r->first[d + 1] == r->first[d] + 1) count = 1; /* not cut: also of a process that has no block */
    r->local.dims[d] = count * layout->block.dims[d];
    product *= count;
  }
  const bool is_box = layout->here_count == 0 || product == layout->here_count || ax_type_elems(&layout->type) == 0;
  return is_box ? AX_OK : refuse_region(layout);
}

ax_status ax_array_local_type(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type, ax_type *local) {
  ax_layout *layout;
  region r;
  *local = (ax_type){0};
  AX_TRY(ax_layout_describe("array_local_type", runtime, mesh, spec, type, &layout));
  ax_status status = find_region(&r, layout);
  if (status == AX_OK) *local = r.local;
  ax_free(r.has);
  ax_layout_release(layout);
  return status;
}

typedef ax_status fill(const void *context, const ax_layout *layout, uint32_t block, void *data);

/* Makes an array whose blocks here are filled in turn. Consumes the layout. */
static ax_status make(ax_layout *layout, fill *fill, const void *context, ax_array **out) {
  ax_parts *parts;
  ax_status status = ax_parts_create(layout->runtime, layout, &parts);
  for (uint32_t b = 0; status == AX_OK && b < layout->blocks && layout->block_bytes > 0; b++)
    if (ax_layout_has(layout, b)) status = fill(context, layout, b, parts->part[b]);
  if (status == AX_OK) status = ax_array_create(layout, parts, out);
  if (status != AX_OK) ax_parts_release(parts);
  ax_layout_release(layout);
  return status;
}

typedef struct local_data {
  region region;
  uint32_t *before; /* by dimension and part, as region.has: how many parts before it the process has */
  const void *data;
} local_data;

static ax_status count_before(local_data *l) {
  const region *r = &l->region;
  const uint32_t rank = r->layout->type.rank;
  l->before = ax_calloc((size_t)r->first[rank] + 1, sizeof l->before[0]);
  if (l->before == NULL) return ax_out_of_memory(r->first[rank] * sizeof l->before[0]);
  for (uint32_t d = 0; d < rank; d++)
    for (uint32_t i = r->first[d] + 1; i < r->first[d + 1]; i++) l->before[i] = l->before[i - 1] + r->has[i - 1];
  return AX_OK;
}

static ax_status copy_local(const void *context, const ax_layout *layout, uint32_t block, void *data) {
  const local_data *l = context;
  const ax_type *type = &layout->block;
  int64_t offset[AX_MAX_RANK];
  ax_layout_offset(layout, block, offset);
  for (uint32_t d = 0; d < type->rank; d++)
    offset[d] = type->dims[d] * l->before[l->region.first[d] + offset[d] / type->dims[d]];
  ax_shard_read(&l->region.local, l->data, offset, type, data);
  return AX_OK;
}

ax_status (ax_array_from_local)(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type, ax_dtype element,
                                const void *data, size_t bytes, ax_array **out) {
  static const char who[] = "array_from_local";
  ax_layout *layout;
  local_data l = {.data = data};
  *out = NULL;
  AX_TRY(ax_layout_describe(who, runtime, mesh, spec, type, &layout));
  ax_status status = find_region(&l.region, layout);
  if (status == AX_OK && ax_type_elems(&l.region.local) > 0) status = ax_require(data, "data");
  if (status == AX_OK && data != NULL) status = ax_memory_check(who, &l.region.local, element, bytes);
  if (status == AX_OK) status = count_before(&l);
  if (status == AX_OK) status = make(ax_layout_retain(layout), copy_local, &l, out);
  ax_free(l.before);
  ax_free(l.region.has);
  ax_layout_release(layout);
  return status;
}

typedef struct writer {
  ax_block_writer write;
  void *context;
} writer;

static ax_status write_block(const void *context, const ax_layout *layout, uint32_t block, void *data) {
  const writer *w = context;
  int64_t start[AX_MAX_RANK];
  ax_layout_offset(layout, block, start);
  return w->write(w->context, &layout->block, start, data);
}

ax_status ax_array_from_callback(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                                 ax_block_writer write, void *context, ax_array **out) {
  ax_layout *layout;
  *out = NULL;
  if (write == NULL) return ax_require(NULL, "callback");
  AX_TRY(ax_layout_describe("array_from_callback", runtime, mesh, spec, type, &layout));
  return make(layout, write_block, &(writer){write, context}, out);
}

/* --- The same data in all processes --- */

static ax_digest digest_of_host(const ax_host_array *host, ax_type *type) {
  ax_digester digester;
  *type = ax_array_type(host->dtype, AX_LIST(host->rank, host->dims));
  ax_digester_init(&digester);
  ax_digester_add(&digester, host->data, (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype));
  return ax_digester_finish(&digester);
}

static void describe_host(const void *context, ax_text *text) {
  ax_type type;
  const ax_digest digest = digest_of_host(context, &type);
  ax_text_add(text, "puts %s with digest ", ax_type_string(&type, NULL));
  for (uint32_t i = 0; i < 8; i++) ax_text_add(text, "%02x", digest.bytes[i]);
}

static uint64_t check_host(const ax_host_array *host) {
  ax_type type;
  const ax_digest digest = digest_of_host(host, &type);
  const uint64_t shape = ax_hash_bytes(ax_hash_word(5, type.dtype), type.dims, type.rank * sizeof type.dims[0]);
  return ax_hash_bytes(shape, digest.bytes, sizeof digest.bytes) | 1;
}

ax_status ax_device_put_same(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_host_array *host,
                             ax_array **out) {
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  ax_status status = ax_device_put(runtime, mesh, spec, host, out); /* also without a host array: others may have one */
  ax_joint joint;
  ax_joint_begin(&joint, runtime, true, &(ax_doing){status == AX_OK ? check_host(host) : 0, describe_host, host, "ax_device_put_same"});
  status = ax_joint_end(&joint, status);
  if (status == AX_OK) return AX_OK;
  ax_array_release(*out);
  *out = NULL;
  return status;
}

/* --- Gathered --- */

static void describe_gather(const void *context, ax_text *text) {
  ax_text_add(text, "gathers ");
  ax_layout_text(text, ((const ax_array *)context)->layout);
}

/* Room for the whole, in a process that gets it. */
static ax_status make_host(const ax_layout *layout, bool wanted, ax_host_array *out) {
  const ax_type *type = &layout->type;
  const size_t bytes = (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype);
  if (!wanted) return AX_OK;
  void *data = ax_alloc(bytes);
  if (data == NULL) return ax_out_of_memory(bytes);
  *out = (ax_host_view)(type->dtype, type->rank, type->dims, AX_NO_DTYPE, data, bytes);
  out->view = false;
  return AX_OK;
}

static ax_status gather(const ax_array *array, uint32_t root, ax_host_array *out) {
  const ax_layout *layout = array->layout;
  AX_TRY(ax_array_open(array));
  ax_status status = make_host(layout, root == AX_NONE || root == ax_process_index(layout->runtime), out);
  status = ax_moving_gather(status, layout, array->parts, root, out->data);
  ax_array_close(array);
  return status;
}

ax_status ax_array_gather(const ax_array *array, int64_t process, ax_host_array *out) {
  *out = (ax_host_array){0};
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  ax_runtime *runtime = layout->runtime;
  ax_joint joint;
  ax_joint_begin(&joint, runtime, layout->map != NULL, &(ax_doing){ax_hash_word(6, layout->hash) | 1, describe_gather, array, "ax_array_gather"});
  ax_status status = AX_OK;
  if (process < AX_EVERY_PROCESS || process >= (int64_t)ax_process_count(runtime))
    status = ax_error(AX_INVALID_ARGUMENT, "process %lld of %u", (long long)process, ax_process_count(runtime));
  if (status == AX_OK) status = gather(array, process == AX_EVERY_PROCESS ? AX_NONE : (uint32_t)process, out);
  status = ax_joint_end(&joint, status);
  if (status != AX_OK) ax_host_array_release(out);
  return status;
}
