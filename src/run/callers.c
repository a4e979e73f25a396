/* See callers.h. The end marks the places one after the other, and adds up the calls that it finds there. A call that leaves a
   marked place counts itself off that sum. Until all places are marked the sum holds UNFINISHED besides, so that it cannot reach 0
   early. */
#include "run/callers.h"

#include "run/pool.h"

#define ENDED (1u << 31)
#define UNFINISHED (1u << 31)

void ax_callers_init(ax_callers *callers) {
  for (uint32_t i = 0; i < AX_CALLER_PLACES; i++) atomic_init(&callers->places[i].count, 0);
  atomic_init(&callers->left, UNFINISHED);
}

uint32_t ax_callers_enter(ax_callers *callers) {
  const uint32_t place = ax_thread_place(AX_CALLER_PLACES);
  if ((atomic_fetch_add_explicit(&callers->places[place].count, 1, memory_order_relaxed) & ENDED) != 0)
    atomic_fetch_add(&callers->left, 1); /* not from 0, since another call goes on */
  return place;
}

bool ax_callers_leave(ax_callers *callers, uint32_t place) {
  const uint32_t count = atomic_fetch_sub_explicit(&callers->places[place].count, 1, memory_order_acq_rel);
  return (count & ENDED) != 0 && atomic_fetch_sub(&callers->left, 1) == 1;
}

bool ax_callers_end(ax_callers *callers) {
  for (uint32_t i = 0; i < AX_CALLER_PLACES; i++)
    atomic_fetch_add(&callers->left, atomic_fetch_or(&callers->places[i].count, ENDED) & ~ENDED);
  return atomic_fetch_sub(&callers->left, UNFINISHED) == UNFINISHED;
}
