/* Lists of parked activations by target, in a pairing heap (counter.h). */
#include "run/counter.h"

#include "base/base.h"

void ax_counter_reset(ax_counter *counter) {
  atomic_store_explicit(&counter->count, 0, memory_order_relaxed);
  atomic_store_explicit(&counter->least, AX_NO_TARGET, memory_order_relaxed);
  counter->parked = AX_NONE;
}

/* Merges two heaps. The head with the greater target goes below the other. If the targets are equal and one has nothing below
   it, its list is appended to the other. */
static uint32_t meld(ax_parking *parking, uint32_t a, uint32_t b) {
  if (a == AX_NONE) return b;
  if (b == AX_NONE) return a;
  if (parking[b].target < parking[a].target) {
    uint32_t greater = a;
    a = b;
    b = greater;
  }
  ax_parking *head = &parking[a], *other = &parking[b];
  if (head->target == other->target && other->child == AX_NONE) {
    parking[head->last].next = b;
    head->last = other->last;
  } else {
    other->sibling = head->child;
    head->child = b;
  }
  return a;
}

/* Merges the heaps below a removed head: in pairs from the left, then the pairs from the right. */
static uint32_t meld_all(ax_parking *parking, uint32_t first) {
  uint32_t pairs = AX_NONE, heap = AX_NONE;
  while (first != AX_NONE) {
    uint32_t a = first, b = parking[a].sibling;
    first = b != AX_NONE ? parking[b].sibling : AX_NONE;
    parking[a].sibling = AX_NONE;
    if (b != AX_NONE) parking[b].sibling = AX_NONE;
    uint32_t pair = meld(parking, a, b);
    parking[pair].sibling = pairs;
    pairs = pair;
  }
  while (pairs != AX_NONE) {
    uint32_t next = parking[pairs].sibling;
    parking[pairs].sibling = AX_NONE;
    heap = meld(parking, pairs, heap);
    pairs = next;
  }
  return heap;
}

void ax_counter_park(ax_counter *counter, ax_parking *parking, uint32_t f) {
  ax_parking *mine = &parking[f], *head = counter->parked != AX_NONE ? &parking[counter->parked] : NULL;
  mine->next = AX_NONE;
  if (head != NULL && head->target == mine->target) { /* the usual case: append it to this list */
    parking[head->last].next = f;
    head->last = f;
    return;
  }
  mine->child = mine->sibling = AX_NONE;
  mine->last = f;
  counter->parked = meld(parking, counter->parked, f);
  atomic_store_explicit(&counter->least, parking[counter->parked].target, memory_order_relaxed);
}

uint32_t ax_counter_release(ax_counter *counter, ax_parking *parking, uint64_t count) {
  uint32_t first = AX_NONE, last = AX_NONE, head = counter->parked;
  while (head != AX_NONE && parking[head].target <= count) {
    if (first == AX_NONE) first = head;
    else parking[last].next = head;
    last = parking[head].last;
    head = meld_all(parking, parking[head].child);
  }
  if (first != AX_NONE) parking[first].last = last;
  counter->parked = head;
  atomic_store_explicit(&counter->least, head != AX_NONE ? parking[head].target : AX_NO_TARGET, memory_order_relaxed);
  return first;
}
