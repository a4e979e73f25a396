#include "processes/transport.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "machine/rates.h"

/* A short payload lies behind its delivery, as aligned as memory of its own would be. */
enum { head_bytes = (sizeof(ax_delivery) + 63) / 64 * 64 };

static void *inline_payload(ax_delivery *delivery) { return (char *)delivery + head_bytes; }

/* Short deliveries come and go all the time: a few of each of two sizes are kept for the next. */
static const struct {
  uint32_t payload, most; /* bytes; how many are kept */
} sizes[] = {{1024, 64}, {AX_HOST_SHORT, 16}};
enum { size_count = sizeof sizes / sizeof sizes[0] };
static struct {
  ax_delivery *first;
  uint32_t count;
} kept[size_count];
static uint32_t users;
static atomic_flag keeping = ATOMIC_FLAG_INIT; /* guards them. Who finds it taken allocates or frees instead of waiting */

static bool begin_keeping(void) { return !atomic_flag_test_and_set_explicit(&keeping, memory_order_acquire); }
static void end_keeping(void) { atomic_flag_clear_explicit(&keeping, memory_order_release); }

/* size_count: it is larger than all of them. */
static uint32_t size_of(size_t payload) {
  uint32_t size = 0;
  while (size < size_count && payload > sizes[size].payload) size++;
  return size;
}

/* The keeping has begun. */
static ax_delivery *take_kept(uint32_t size) {
  ax_delivery *one = kept[size].first;
  if (one == NULL) return NULL;
  kept[size].first = one->next;
  kept[size].count--;
  return one;
}

void ax_deliveries_use(void) {
  while (!begin_keeping()) sched_yield();
  users++;
  end_keeping();
}

void ax_deliveries_leave(void) {
  while (!begin_keeping()) sched_yield();
  const bool last = --users == 0;
  for (uint32_t size = 0; size < size_count && last; size++)
    for (ax_delivery *one; (one = take_kept(size)) != NULL;) ax_free(one);
  end_keeping();
}

static ax_delivery *reuse(uint32_t size) {
  if (size == size_count || !begin_keeping()) return NULL;
  ax_delivery *one = take_kept(size);
  end_keeping();
  return one;
}

/* Returns false if there are enough, or nobody will want it. */
static bool keep(ax_delivery *delivery) {
  const uint32_t size = delivery->size;
  if (size == size_count || !begin_keeping()) return false;
  const bool keeps = users > 0 && kept[size].count < sizes[size].most;
  if (keeps) {
    delivery->next = kept[size].first;
    kept[size].first = delivery;
    kept[size].count++;
  }
  end_keeping();
  return keeps;
}

ax_status ax_delivery_make(const ax_envelope *envelope, uint32_t from, bool short_payload, const void *payload,
                           ax_delivery **out) {
  const size_t bytes = short_payload ? envelope->bytes : 0;
  const uint32_t size = size_of(bytes);
  ax_delivery *delivery = reuse(size);
  if (delivery == NULL) delivery = ax_alloc(head_bytes + (size < size_count ? sizes[size].payload : bytes));
  *out = delivery;
  if (delivery == NULL) return ax_out_of_memory(head_bytes + bytes);
  *delivery = (ax_delivery){.envelope = *envelope, .from = from, .size = size,
                            .payload = bytes > 0 ? inline_payload(delivery) : NULL};
  if (bytes > 0 && payload != NULL) memcpy(delivery->payload, payload, bytes);
  return AX_OK;
}

void ax_delivery_free(ax_delivery *delivery) {
  if (delivery == NULL) return;
  if (delivery->payload != inline_payload(delivery)) ax_free(delivery->payload);
  if (!keep(delivery)) ax_free(delivery);
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
