/* Parts of arrays that are on a plugin's devices. Their elements are brought here when they are asked for, and stay then. */
#include "array/runtime.h"
#include "client/client.h"
#include "hlo/hlo.h"
#include "mesh/sharding.h"

/* --- To the host --- */

/* Reads each block from the first device that has it. */
static ax_status read_blocks(const ax_parts *parts, const ax_layout *layout, unsigned char *memory) {
  const ax_type physical = ax_hlo_physical(&layout->block);
  const size_t entries = layout->blocks;
  unsigned char **data = ax_alloc(entries * sizeof data[0]);
  uint32_t *place = ax_alloc(entries * sizeof place[0]);
  ax_status status = data != NULL && place != NULL ? AX_OK : ax_out_of_memory(entries * sizeof data[0]);
  for (uint32_t b = 0; status == AX_OK && b < layout->blocks; b++) {
    place[b] = (uint32_t)ax_shard_device(&layout->spec, &layout->mesh, b);
    data[b] = memory + b * layout->stride;
  }
  if (status == AX_OK && layout->block_bytes > 0)
    status = ax_buffers_read(parts->buffers, physical.rank, layout->blocks, place, data, layout->block_bytes);
  ax_free(data);
  ax_free(place);
  return status;
}

static ax_status bring(ax_parts *parts, const ax_layout *layout) {
  ax_pool *pool = &parts->runtime->executor.pool;
  void *memory;
  AX_TRY(ax_pool_alloc(pool, layout->bytes, &memory));
  const ax_status status = read_blocks(parts, layout, memory);
  if (status != AX_OK) {
    ax_pool_free(pool, memory, layout->bytes);
    return status;
  }
  parts->memory = memory;
  parts->bytes = layout->bytes;
  for (uint32_t b = 0; b < parts->count; b++) parts->part[b] = (unsigned char *)memory + b * layout->stride;
  atomic_store_explicit(&parts->away, false, memory_order_release);
  return AX_OK;
}

ax_status ax_parts_bring(ax_parts *parts, const ax_layout *layout) {
  if (!atomic_load_explicit(&parts->away, memory_order_acquire)) return AX_OK;
  pthread_mutex_lock(&parts->runtime->bringing);
  const ax_status status = atomic_load(&parts->away) ? bring(parts, layout) : AX_OK;
  pthread_mutex_unlock(&parts->runtime->bringing);
  return status;
}

/* --- To the devices --- */

static ax_status send_blocks(const ax_parts *parts, const ax_layout *layout, ax_buffers *buffers) {
  const ax_type physical = ax_hlo_physical(&layout->block);
  unsigned char **data = ax_alloc((size_t)layout->devices * sizeof data[0]);
  if (data == NULL) return ax_out_of_memory((size_t)layout->devices * sizeof data[0]);
  for (int64_t place = 0; place < layout->devices; place++) data[place] = parts->part[ax_layout_block_at(layout, place)];
  const ax_status status = ax_buffers_fill(buffers, &physical, data);
  ax_free(data);
  return status;
}

/* Called with the lock held. A replicated array may get more devices than it had. */
static ax_status send(ax_parts *parts, const ax_layout *layout) {
  const ax_client *client = parts->runtime->client;
  ax_buffers *buffers;
  if (parts->buffers != NULL && parts->buffers->count >= layout->devices) return AX_OK;
  if (layout->devices > client->device_count)
    return ax_error(AX_INVALID_ARGUMENT, "the array %s lies on %lld devices, and the plugin has %u",
                    ax_type_string(&layout->type, NULL), (long long)layout->devices, client->device_count);
  if (atomic_load(&parts->away)) AX_TRY(bring(parts, layout));
  AX_TRY(ax_buffers_create(client, (uint32_t)layout->devices, &buffers));
  const ax_status status = send_blocks(parts, layout, buffers);
  if (status != AX_OK) {
    ax_buffers_release(buffers);
    return status;
  }
  ax_buffers_release(parts->buffers);
  parts->buffers = buffers;
  return AX_OK;
}

ax_status ax_parts_send(ax_parts *parts, const ax_layout *layout, ax_buffers **out) {
  *out = NULL;
  pthread_mutex_lock(&parts->runtime->bringing);
  const ax_status status = send(parts, layout);
  if (status == AX_OK) *out = ax_buffers_retain(parts->buffers);
  pthread_mutex_unlock(&parts->runtime->bringing);
  return status;
}

ax_status ax_parts_send_away(ax_parts *parts, const ax_layout *layout) {
  ax_buffers *buffers;
  AX_TRY(ax_parts_send(parts, layout, &buffers));
  ax_buffers_release(buffers);
  ax_pool_free(&parts->runtime->executor.pool, parts->memory, parts->bytes);
  parts->memory = NULL;
  parts->bytes = 0;
  for (uint32_t b = 0; b < parts->count; b++) parts->part[b] = NULL;
  atomic_store(&parts->away, true);
  return AX_OK;
}
