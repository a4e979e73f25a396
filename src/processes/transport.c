#include "processes/transport.h"

#include <pthread.h>
#include <string.h>

#include "base/base.h"

/* A short payload lies behind its delivery, as aligned as memory of its own would be. */
enum { head_bytes = (sizeof(ax_delivery) + 63) / 64 * 64 };

static void *inline_payload(ax_delivery *delivery) { return (char *)delivery + head_bytes; }

/* Small deliveries come and go all the time: a few are kept for the next. */
enum { small_payload = 1024, most_kept = 64 };
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the following variables */
static ax_delivery *kept;
static uint32_t kept_count, users;

void ax_deliveries_use(void) {
  pthread_mutex_lock(&kept_lock);
  users++;
  pthread_mutex_unlock(&kept_lock);
}

void ax_deliveries_leave(void) {
  ax_delivery *list = NULL;
  pthread_mutex_lock(&kept_lock);
  if (--users == 0) {
    list = kept;
    kept = NULL;
    kept_count = 0;
  }
  pthread_mutex_unlock(&kept_lock);
  for (ax_delivery *next; list != NULL; list = next) {
    next = list->next;
    ax_free(list);
  }
}

static ax_delivery *take_kept(void) {
  pthread_mutex_lock(&kept_lock);
  ax_delivery *one = kept;
  if (one != NULL) {
    kept = one->next;
    kept_count--;
  }
  pthread_mutex_unlock(&kept_lock);
  return one;
}

/* Returns false if there are enough, or nobody will want it. */
static bool keep(ax_delivery *delivery) {
  pthread_mutex_lock(&kept_lock);
  const bool keeps = users > 0 && kept_count < most_kept;
  if (keeps) {
    delivery->next = kept;
    kept = delivery;
    kept_count++;
  }
  pthread_mutex_unlock(&kept_lock);
  return keeps;
}

ax_status ax_delivery_make(const ax_envelope *envelope, uint32_t from, bool short_payload, const void *payload,
                           ax_delivery **out) {
  const size_t bytes = short_payload ? envelope->bytes : 0;
  const bool small = bytes <= small_payload;
  ax_delivery *delivery = small ? take_kept() : NULL;
  if (delivery == NULL) delivery = ax_alloc(head_bytes + (small ? small_payload : bytes));
  *out = delivery;
  if (delivery == NULL) return ax_out_of_memory(head_bytes + bytes);
  *delivery = (ax_delivery){.envelope = *envelope, .from = from, .small = small,
                            .payload = bytes > 0 ? inline_payload(delivery) : NULL};
  if (bytes > 0 && payload != NULL) memcpy(delivery->payload, payload, bytes);
  return AX_OK;
}

void ax_delivery_free(ax_delivery *delivery) {
  if (delivery == NULL) return;
  if (delivery->payload != inline_payload(delivery)) ax_free(delivery->payload);
  if (!delivery->small || !keep(delivery)) ax_free(delivery);
}

static ax_delivery **place_behind(ax_deliveries *list, ax_delivery *before) {
  return before != NULL ? &before->next : &list->first;
}

void ax_deliveries_insert(ax_deliveries *list, ax_delivery *before, ax_delivery *delivery) {
  ax_delivery **place = place_behind(list, before);
  delivery->next = *place;
  if (delivery->next == NULL) list->last = delivery;
  *place = delivery;
}

void ax_deliveries_add(ax_deliveries *list, ax_delivery *delivery) {
  ax_deliveries_insert(list, list->first != NULL ? list->last : NULL, delivery);
}

ax_delivery *ax_deliveries_take(ax_deliveries *list, ax_delivery *before) {
  ax_delivery **place = place_behind(list, before), *one = *place;
  if (one == NULL) return NULL;
  *place = one->next;
  if (one->next == NULL) list->last = before;
  one->next = NULL;
  return one;
}

void ax_deliveries_free(ax_deliveries *list) {
  for (ax_delivery *one; (one = ax_deliveries_take(list, NULL)) != NULL;) ax_delivery_free(one);
}
