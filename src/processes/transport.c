#include "processes/transport.h"

#include <string.h>

#include "base/base.h"

/* A short payload lies behind its delivery, as aligned as memory of its own would be. */
enum { head_bytes = (sizeof(ax_delivery) + 63) / 64 * 64 };

static void *inline_payload(ax_delivery *delivery) { return (char *)delivery + head_bytes; }

ax_status ax_delivery_make(const ax_envelope *envelope, uint32_t from, bool short_payload, const void *payload,
                           ax_delivery **out) {
  const size_t bytes = short_payload ? envelope->bytes : 0;
  ax_delivery *delivery = *out = ax_alloc(head_bytes + bytes);
  if (delivery == NULL) return ax_out_of_memory(head_bytes + bytes);
  *delivery = (ax_delivery){.envelope = *envelope, .from = from, .payload = bytes > 0 ? inline_payload(delivery) : NULL};
  if (bytes > 0 && payload != NULL) memcpy(delivery->payload, payload, bytes);
  return AX_OK;
}

void ax_delivery_free(ax_delivery *delivery) {
  if (delivery == NULL) return;
  if (delivery->payload != inline_payload(delivery)) ax_free(delivery->payload);
  ax_free(delivery);
}

void ax_deliveries_add(ax_delivery **list, ax_delivery *delivery) {
  while (*list != NULL) list = &(*list)->next;
  delivery->next = NULL;
  *list = delivery;
}

void ax_deliveries_free(ax_delivery **list) {
  for (ax_delivery *next; *list != NULL; *list = next) {
    next = (*list)->next;
    ax_delivery_free(*list);
  }
}
