#include "array/packets.h"

#include <string.h>

enum { least_room = 4096 };

ax_status ax_packet_send(ax_packet *p, ax_together *together, uint32_t to) {
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .bytes = p->bytes, .words = {p->first}};
  void *data = p->data;
  if (p->count == 0) return AX_OK;
  *p = (ax_packet){.first = p->first + p->count};
  return ax_together_send_owned(together, to, &envelope, data);
}

/* As much as is needed for a piece that is larger than a message; otherwise the double, so that few bytes take little memory. */
static ax_status make_room(ax_packet *p, size_t more) {
  if (p->bytes + more <= p->room) return AX_OK;
  size_t room = p->bytes + more;
  if (room < 2 * p->room) room = 2 * p->room;
  if (room < least_room) room = least_room;
  if (room > AX_PACKET_BYTES && p->bytes + more <= AX_PACKET_BYTES) room = AX_PACKET_BYTES;
  char *data = ax_alloc(room);
  if (data == NULL) return ax_out_of_memory(room);
  if (p->bytes > 0) memcpy(data, p->data, p->bytes);
  ax_free(p->data);
  p->data = data;
  p->room = room;
  return AX_OK;
}

ax_status ax_packet_add(ax_packet *p, ax_together *together, uint32_t to, size_t bytes, void **piece) {
  const bool fits = p->bytes <= AX_PACKET_BYTES && bytes <= AX_PACKET_BYTES - p->bytes;
  if (!fits) AX_TRY(ax_packet_send(p, together, to));
  AX_TRY(make_room(p, bytes));
  *piece = p->data + p->bytes;
  p->bytes += bytes;
  p->count++;
  return AX_OK;
}

void ax_packet_deinit(ax_packet *p) { ax_free(p->data); }
