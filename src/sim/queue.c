#include "sim/queue.h"

#include <string.h>

void ax_sim_queue_deinit(ax_sim_queue *q) {
  ax_free(q->events);
  ax_free(q->instants);
  ax_free(q->heap);
  *q = (ax_sim_queue){0};
}

/* Of whole numbers the lower half is mostly zero. */
static uint32_t *recent(ax_sim_queue *q, double time) {
  uint64_t bits;
  memcpy(&bits, &time, sizeof bits);
  return &q->recent[ax_hash_word(AX_HASH_SEED, bits ^ bits >> 32) % AX_SIM_RECENT];
}

static bool is_before(const ax_sim_instant *a, const ax_sim_instant *b) {
  return a->time < b->time || (a->time == b->time && a->number < b->number);
}

/* Puts an instant into the heap, whose last place is free. */
static void rise(ax_sim_queue *q, uint32_t instant) {
  uint32_t i = q->heap_count++;
  for (; i > 0 && is_before(&q->instants[instant], &q->instants[q->heap[(i - 1) / 2]]); i = (i - 1) / 2)
    q->heap[i] = q->heap[(i - 1) / 2];
  q->heap[i] = instant;
}

static ax_status add_instant(ax_sim_queue *q, double time, uint32_t *out) {
  uint32_t made = q->instant_free;
  AX_TRY(ax_grow(&q->heap, sizeof q->heap[0], q->heap_count, 1, &q->heap_capacity));
  if (made != 0) {
    q->instant_free = q->instants[made - 1].first;
  } else {
    AX_TRY(ax_grow(&q->instants, sizeof q->instants[0], q->instant_count, 1, &q->instant_capacity));
    made = ++q->instant_count;
  }
  q->instants[made - 1] = (ax_sim_instant){time, q->made++, AX_NONE, AX_NONE};
  rise(q, made - 1);
  *recent(q, time) = made;
  *out = made - 1;
  return AX_OK;
}

ax_status ax_sim_queue_push(ax_sim_queue *q, const ax_sim_event *event) {
  const uint32_t known = *recent(q, event->time);
  uint32_t made = q->event_free, at = known - 1;
  if (made != 0) {
    q->event_free = q->events[made - 1].next + 1;
  } else {
    AX_TRY(ax_grow(&q->events, sizeof q->events[0], q->event_count, 1, &q->event_capacity));
    made = ++q->event_count;
  }
  q->events[made - 1] = (ax_sim_queued){*event, AX_NONE};
  if (known == 0 || q->instants[at].time != event->time) AX_TRY(add_instant(q, event->time, &at));
  ax_sim_instant *instant = &q->instants[at];
  if (instant->last != AX_NONE) q->events[instant->last].next = made - 1;
  else instant->first = made - 1;
  instant->last = made - 1;
  return AX_OK;
}

/* The first instant is over. A free one has no time that an event could have. */
static void drop_instant(ax_sim_queue *q) {
  const uint32_t over = q->heap[0], last = q->heap[--q->heap_count];
  uint32_t i = 0;
  for (uint32_t child = 1; child < q->heap_count; child = 2 * i + 1) {
    if (child + 1 < q->heap_count && is_before(&q->instants[q->heap[child + 1]], &q->instants[q->heap[child]])) child++;
    if (is_before(&q->instants[last], &q->instants[q->heap[child]])) break;
    q->heap[i] = q->heap[child];
    i = child;
  }
  q->heap[i] = last;
  q->instants[over] = (ax_sim_instant){-1, 0, q->instant_free, AX_NONE};
  q->instant_free = over + 1;
}

ax_sim_event ax_sim_queue_pop(ax_sim_queue *q) {
  ax_sim_instant *instant = &q->instants[q->heap[0]];
  const uint32_t taken = instant->first;
  ax_sim_queued *queued = &q->events[taken];
  instant->first = queued->next;
  queued->next = q->event_free - 1;
  q->event_free = taken + 1;
  if (instant->first == AX_NONE) drop_instant(q);
  return queued->event;
}

ax_status ax_sim_queue_delay(ax_sim_queue *q, ax_sim_event_kind from, double later) {
  ax_sim_queue moved = {0};
  ax_status status = AX_OK;
  while (!ax_sim_queue_is_empty(q) && status == AX_OK) {
    ax_sim_event event = ax_sim_queue_pop(q);
    if (event.kind >= from) event.time += later;
    status = ax_sim_queue_push(&moved, &event);
  }
  ax_sim_queue_deinit(q);
  *q = moved;
  return status;
}
