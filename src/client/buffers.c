/* What devices have of arrays. */
#include <string.h>

#include "client/client.h"
#include "client/elements.h"
#include "ir/program.h"

ax_status ax_buffers_create(const ax_client *client, uint32_t count, ax_buffers **out) {
  const size_t bytes = sizeof(ax_buffers) + count * sizeof(ax_pjrt_buffer *);
  ax_buffers *buffers = *out = ax_calloc(1, bytes);
  if (buffers == NULL) return ax_out_of_memory(bytes);
  atomic_init(&buffers->references, 1);
  buffers->client = client;
  buffers->count = count;
  return AX_OK;
}

ax_buffers *ax_buffers_retain(ax_buffers *buffers) {
  atomic_fetch_add_explicit(&buffers->references, 1, memory_order_relaxed);
  return buffers;
}

void ax_buffers_release(ax_buffers *buffers) {
  if (buffers == NULL || atomic_fetch_sub(&buffers->references, 1) != 1) return;
  for (uint32_t i = 0; i < buffers->count; i++) {
    ax_pjrt_buffer_destroy_args args = {.struct_size = sizeof args, .of = buffers->buffer[i]};
    if (buffers->buffer[i] != NULL) (void)!AX_CLIENT_CALL(buffers->client->api, buffer_destroy, &args);
  }
  ax_free(buffers);
}

bool ax_buffers_shared(const ax_buffers *buffers) { return atomic_load(&buffers->references) > 1; }

/* --- From the host --- */

static ax_status fill(ax_buffers *buffers, const ax_type *type, unsigned char *const *data, ax_pjrt_event **events) {
  const ax_client *client = buffers->client;
  const ax_pjrt_element element = ax_pjrt_element_of(type->dtype);
  if (element == AX_PJRT_NO_ELEMENT) return ax_error(AX_ABSENT, "plugins have no arrays of %s", ax_type_string(type, NULL));
  for (uint32_t i = 0; i < buffers->count; i++) {
    ax_pjrt_client_buffer_from_host_buffer_args args = {.struct_size = sizeof args,
                                                        .of = client->client,
                                                        .data = data[i],
                                                        .element = element,
                                                        .dims = type->dims,
                                                        .rank = type->rank,
                                                        .semantics = AX_PJRT_UNTIL_COPIED,
                                                        .device = client->devices[i]};
    AX_TRY(AX_CLIENT_CALL(client->api, client_buffer_from_host_buffer, &args));
    buffers->buffer[i] = args.value;
    events[i] = args.done;
  }
  return AX_OK;
}

ax_status ax_buffers_fill(ax_buffers *buffers, const ax_type *type, unsigned char *const *data) {
  ax_pjrt_event **events = ax_calloc((size_t)buffers->count + 1, sizeof events[0]);
  if (events == NULL) return ax_out_of_memory(buffers->count * sizeof events[0]);
  const ax_status status = fill(buffers, type, data, events);
  const ax_status ended =
      ax_client_await_all(buffers->client, events, buffers->count, ax_client_name_client_buffer_from_host_buffer, status);
  ax_free(events);
  return ended;
}

/* --- To the host --- */

/* Devices may hold arrays with their dimensions in another order, which a read without a layout would keep. */
static ax_status read(const ax_buffers *buffers, uint32_t rank, uint32_t count, const uint32_t *place, unsigned char *const *data,
                      size_t bytes, ax_pjrt_event **events) {
  int64_t minor_to_major[AX_MAX_RANK + 1];
  for (uint32_t d = 0; d < rank; d++) minor_to_major[d] = (int64_t)(rank - 1 - d);
  for (uint32_t i = 0; i < count; i++) {
    ax_pjrt_memory_layout layout = {.struct_size = sizeof layout};
    layout.tiled = (ax_pjrt_tiled){.struct_size = sizeof layout.tiled, .minor_to_major = minor_to_major, .rank = rank};
    ax_pjrt_buffer_to_host_buffer_args args = {
        .struct_size = sizeof args, .of = buffers->buffer[place[i]], .layout = &layout, .data = data[i], .bytes = bytes};
    AX_TRY(AX_CLIENT_CALL(buffers->client->api, buffer_to_host_buffer, &args));
    events[i] = args.done;
  }
  return AX_OK;
}

ax_status ax_buffers_read(const ax_buffers *buffers, uint32_t rank, uint32_t count, const uint32_t *place,
                          unsigned char *const *data, size_t bytes) {
  ax_pjrt_event **events = ax_calloc((size_t)count + 1, sizeof events[0]);
  if (events == NULL) return ax_out_of_memory(count * sizeof events[0]);
  const ax_status status = read(buffers, rank, count, place, data, bytes, events);
  const ax_status ended = ax_client_await_all(buffers->client, events, count, ax_client_name_buffer_to_host_buffer, status);
  ax_free(events);
  return ended;
}
