/* Events that are to come, by time. Of devices that are alike in pairs or by the thousand, many events come at one instant: those
   stand in a list of their own, and only the instants are in a heap. */
#ifndef AX_SIM_QUEUE_H
#define AX_SIM_QUEUE_H

#include "base/base.h"

/* RETURN: what a switch gives arrives at all that are there; the image is the first of them. */
typedef enum ax_sim_event_kind { AX_EVENT_WALK, AX_EVENT_POST, AX_EVENT_DELIVER, AX_EVENT_SEND, AX_EVENT_ARRIVE, AX_EVENT_RETURN } ax_sim_event_kind;
typedef struct ax_sim_event {
  double time;
  ax_sim_event_kind kind;
  uint32_t transfer, chain, image; /* WALK: the image alone; POST: transfer is the post; DELIVER: the queue */
  int64_t key;                     /* ARRIVE, RETURN; DELIVER: the way from its sender */
  uint32_t cause;                  /* ARRIVE, RETURN, POST, DELIVER */
} ax_sim_event;

typedef struct ax_sim_queued {
  ax_sim_event event;
  uint32_t next; /* of its instant; AX_NONE */
} ax_sim_queued;
typedef struct ax_sim_instant {
  double time;
  uint64_t number; /* of all that were made: one time's instants come in that order */
  uint32_t first, last;
} ax_sim_instant;

enum { AX_SIM_RECENT = 1 << 10 };
/* Zero to start. A time may have several instants: then events go to the last. */
typedef struct ax_sim_queue {
  uint64_t made; /* instants */
  ax_sim_queued *events;    /* free ones are linked */
  ax_sim_instant *instants; /* free ones are linked by `first` */
  uint32_t *heap;           /* instants, the earliest on top */
  uint32_t event_count, event_capacity, instant_count, instant_capacity, heap_count, heap_capacity;
  uint32_t event_free, instant_free;    /* 1 + the first; 0: none */
  uint32_t recent[AX_SIM_RECENT];       /* by time's hash: 1 + an instant that may have it */
} ax_sim_queue;

void ax_sim_queue_deinit(ax_sim_queue *queue);
AX_MUST_USE ax_status ax_sim_queue_push(ax_sim_queue *queue, const ax_sim_event *event);
static inline bool ax_sim_queue_is_empty(const ax_sim_queue *queue) { return queue->heap_count == 0; }
/* Not of an empty queue: the time of its first event; the event, taken out. */
static inline double ax_sim_queue_time(const ax_sim_queue *queue) { return queue->instants[queue->heap[0]].time; }
ax_sim_event ax_sim_queue_pop(ax_sim_queue *queue);

/* For each event, `q`, of each instant, number `i`. */
#define AX_SIM_QUEUE_EACH(queue, i, q)                                                                                          \
  for (uint32_t i = 0; i < (queue)->heap_count; i++)                                                                            \
    for (const ax_sim_queued *q = &(queue)->events[(queue)->instants[(queue)->heap[i]].first]; q != NULL;                       \
         q = q->next != AX_NONE ? &(queue)->events[q->next] : NULL)
/* Events of this kind and those behind it come so much later. */
AX_MUST_USE ax_status ax_sim_queue_delay(ax_sim_queue *queue, ax_sim_event_kind from, double later);

#endif
