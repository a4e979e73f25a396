/* Decides where activations wait for each other.

   Order. All activations go through one list, each at its own pace. An access is an instruction that reads or writes
   the memory of an allocation: the part that the activation's own coordinates name, or, when an exchange writes, its peers' parts.
   If two activations touch the same part and one of them writes it, the access that stands earlier in the list comes first; in a
   loop that holds both, the earlier one's nth time comes before the later one's nth, and that before the earlier one's time n + 1.
   So there are two kinds of waits:

     read after write    a read of what another activation wrote waits for the write
     write after read    a write waits until the activations that read the old value are done; in a loop, those of the iteration
                         before

   Two writes need no wait of their own: a part has one activation that writes it, and members of an exchange take turns or write
   apart.

   Counting. An access that others wait for has an event: every activation that does it signals a counter when it is done. An
   activation that waits does so until

     counter >= (entered + delta) * times

   `entered` is how often the waiting activation itself has entered the region (a loop's body, a branch's case) where the signal
   stands, and `times` how many activations signal that counter each time round. What stands earlier in that region has happened
   once each time it was entered: delta is 0. What stands later, once less: delta is -1. So no loop needs a barrier, and no counter
   is ever set back. The count cannot be reached by an activation that runs ahead of the others: to read for time n + 1 it needs the
   write of time n + 1, which has waited for all reads of time n, and the same holds with the two exchanged.

   For example, psum of a carry in a loop. The sum s lives in memory that all four devices read:

       region 1    1  kernel   x = f(x)                             on each device
                   2  wait     reads of s (event r): entered[1] - 1 times 4      what I write to, all have read the iteration before
                   3  push     s += x; signals event p                            on each device, in turn
                   4  wait     pushes (event p): entered[1] times 4               my iteration's contributions are all there
                   5  kernel   x = x / s; signal r                                on each device

   In iteration 1 the wait at 2 asks for 0 signals. A device cannot signal p for iteration 2 before all four have signalled r for
   iteration 1, and those have waited for all four p of iteration 1: p's count of 8 therefore means twice from each.

   Points. A write is done right after it. A read in a region that only some of the activations concerned enter, or that
   they enter differently often, would be counted differently by each: it is reported done at the region's exit, which all pass.
   Activations that may not have read report it as well, so they wait for what they would have read before they do: else they could
   run ahead.

   Groups. The counters of an event belong to groups of activations: a group shares the allocation's coordinates, less
   those along which an exchange writes into other members' parts. An allocation that only pairs of devices exchange (ppermute) has
   a counter for each part instead: a source signals the part of its target, and before it writes there again waits for those who
   read that part, so that a device waits for its own source and target alone.

   By pointer. What an instruction reads through a pointer (pointers.c) is memory of another activation of its group. So an
   allocation that is seen by others is read and written by all of a group, as the result of an exchange with all.

   Dropped waits. Signals of one activation come in the order of the list, so a wait for an access implies waiting for all
   that the same activations have done before it. First, of all accesses of an allocation that are alike (a class: the same region,
   activations and kind) only the last before the waiter counts; then waits that another one implies are dropped. Both cost n log n
   in the number of accesses, and the square of the number of classes of an allocation, of which there are few: a class is a region,
   an exchange and a kind, not an access. synchronise_test.c holds all this against brute force. */
#include <stdlib.h>
#include <string.h>

#include "assemble/synchronise.h"

typedef struct touch { /* an access of a shared allocation, with the fields in which like accesses agree */
  uint32_t allocation, region, done_region, exchange; /* exchange: 1 + the id of the exchange that writes, or 0 */
  ax_axis_set axes;
  bool writes;
  uint64_t done;
  uint32_t access;
} touch;

typedef struct touch_class { /* touches that differ in their position alone, in order */
  uint32_t first, count;
} touch_class;

typedef struct synchroniser {
  ax_assembly *a;
  ax_insertion *items;
  uint32_t count, capacity;
  ax_axis_set *group;                      /* by allocation */
  bool *crosses;                           /* by allocation: an exchange with other processes writes it */
  bool *paired;                            /* by allocation: only ppermutes write it, so each part has its own counter */
  uint32_t *first_exchange, *next_exchange; /* writes by exchanges, by allocation and by access */
  uint32_t *pairs;                         /* by exchange: ppermutes with the same pairs have the same number, from 1 */
  uint32_t pairs_count;                    /* how many such numbers there are */
  uint32_t *first_known;                   /* by kin: the first entry of the knowledge collected; AX_NONE */
  touch *touches;
  uint32_t touch_count;
  touch_class *classes;
  uint32_t class_count;
} synchroniser;

static bool inside(const ax_assembly *a, uint32_t position, uint32_t region) {
  return position >= a->regions[region].begin && position < a->regions[region].end;
}

/* Some loop has both inside, so the later access also comes before the earlier one. */
static bool share_loop(const ax_assembly *a, uint32_t region, uint32_t other) {
  for (uint32_t r = region; r != 0; r = a->regions[r].parent) {
    if (!a->regions[r].is_loop) continue;
    /* the test and the body of a while loop are two regions of one loop: they share its exit */
    for (uint32_t o = other; o != 0; o = a->regions[o].parent)
      if (a->regions[o].is_loop && a->regions[o].exit == a->regions[r].exit && a->regions[o].parent == a->regions[r].parent)
        return true;
  }
  return false;
}

/* --- Allocations --- */

static void list_exchanges(synchroniser *s) {
  const ax_assembly *a = s->a;
  for (uint32_t i = a->access_count; i-- > 0;) {
    const ax_access *access = &a->accesses[i];
    if (access->exchange == NULL) continue;
    s->next_exchange[i] = s->first_exchange[access->allocation];
    s->first_exchange[access->allocation] = i;
  }
}

static int by_pairs(const void *x, const void *y) {
  const ax_exchange *const *a = x, *const *b = y;
  return ax_compare_pairs(*a, *b);
}

static ax_status number_pairs(synchroniser *s) {
  const ax_assembly *a = s->a;
  const ax_exchange **sorted = ax_calloc(a->access_count, sizeof sorted[0]);
  uint32_t count = 0;
  s->pairs = ax_calloc(a->plan->exchange_count, sizeof s->pairs[0]);
  if (sorted == NULL || s->pairs == NULL) {
    ax_free(sorted);
    return ax_out_of_memory(a->access_count * sizeof sorted[0]);
  }
  for (uint32_t i = 0; i < a->access_count; i++) {
    const ax_exchange *exchange = a->accesses[i].exchange;
    if (exchange != NULL && exchange->peers == AX_PEERS_PAIRS) sorted[count++] = exchange;
  }
  if (count > 0) qsort(sorted, count, sizeof sorted[0], by_pairs);
  for (uint32_t i = 0; i < count; i++) {
    if (i == 0 || ax_compare_pairs(sorted[i - 1], sorted[i]) != 0) s->pairs_count++;
    s->pairs[sorted[i]->id] = s->pairs_count;
  }
  ax_free(sorted);
  return AX_OK;
}

/* Members whose parts go to other processes wait for their whole group, since they open it for what comes from there
   (run/crossing.h). */
static ax_status note_crossings(synchroniser *s) {
  ax_assembly *a = s->a;
  for (uint32_t i = 0; i < a->access_count && a->compiled->map != NULL; i++) {
    const ax_exchange *exchange = a->accesses[i].exchange;
    const ax_crossing *crossing = NULL;
    if (exchange != NULL) AX_TRY(ax_find_crossing(a->compiled, &exchange->names, exchange->axes, a->accesses[i].axes, &crossing));
    if (crossing != NULL) s->crosses[a->accesses[i].allocation] = true;
  }
  return AX_OK;
}

/* Finds the shared allocations, and the groups that share them. */
static void describe_allocations(synchroniser *s) {
  const ax_assembly *a = s->a;
  for (uint32_t i = 0; i < a->access_count; i++) {
    const ax_access *access = &a->accesses[i];
    if (access->exchange != NULL || (access->axes & ~a->plan->buffers[access->allocation].axes) != 0)
      a->shared[access->allocation] = true;
    if (ax_seen_along(a, access->allocation) != 0) a->shared[access->allocation] = true;
  }
  for (uint32_t allocation = 0; allocation < a->plan->buffer_count; allocation++) {
    ax_axis_set along = ax_seen_along(a, allocation);
    bool paired = along == 0 && s->first_exchange[allocation] != AX_NONE && !s->crosses[allocation];
    for (uint32_t i = s->first_exchange[allocation]; i != AX_NONE; i = s->next_exchange[i]) {
      const ax_exchange *exchange = a->accesses[i].exchange;
      if (exchange->peers != AX_PEERS_ONE) along |= exchange->axes;
      paired = paired && exchange->peers == AX_PEERS_PAIRS;
    }
    s->group[allocation] = a->plan->buffers[allocation].axes & ~along;
    s->paired[allocation] = paired;
  }
}

/* --- Where accesses are done --- */

/* Members meet in an exchange, so all that write this allocation by one enter this region equally often. */
static bool exchanged_in(const synchroniser *s, uint32_t allocation, uint32_t region) {
  for (uint32_t i = s->first_exchange[allocation]; i != AX_NONE; i = s->next_exchange[i])
    if (inside(s->a, s->a->accesses[i].position, region)) return true;
  return false;
}

static void find_done(const synchroniser *s, ax_access *access) {
  const ax_assembly *a = s->a;
  uint32_t region = access->done_region;
  if (access->writes) return;
  while (region != 0 && (a->regions[region].axes & ~s->group[access->allocation]) != 0 &&
         !exchanged_in(s, access->allocation, region)) {
    access->done_before = access->hoisted = true;
    access->done_position = a->regions[region].exit;
    region = access->done_region = a->regions[region].parent;
  }
}

/* --- Classes --- */

static int by_likeness(const touch *x, const touch *y) {
  if (x->allocation != y->allocation) return x->allocation < y->allocation ? -1 : 1;
  if (x->writes != y->writes) return x->writes ? -1 : 1;
  if (x->region != y->region) return x->region < y->region ? -1 : 1;
  if (x->done_region != y->done_region) return x->done_region < y->done_region ? -1 : 1;
  if (x->axes != y->axes) return x->axes < y->axes ? -1 : 1;
  return x->exchange < y->exchange ? -1 : x->exchange > y->exchange;
}

static int by_class(const void *a, const void *b) {
  const touch *x = a, *y = b;
  int order = by_likeness(x, y);
  if (order != 0) return order;
  if (x->done != y->done) return x->done < y->done ? -1 : 1;
  return x->access < y->access ? -1 : x->access > y->access;
}

static ax_status find_classes(synchroniser *s) {
  const ax_assembly *a = s->a;
  s->touches = ax_calloc(a->access_count, sizeof s->touches[0]);
  s->classes = ax_calloc(a->access_count, sizeof s->classes[0]);
  if (s->touches == NULL || s->classes == NULL) return ax_out_of_memory(a->access_count * sizeof s->touches[0]);
  for (uint32_t i = 0; i < a->access_count; i++) {
    ax_access *access = &a->accesses[i];
    if (!a->shared[access->allocation]) continue;
    find_done(s, access);
    s->touches[s->touch_count++] = (touch){access->allocation, access->region, access->done_region,
                                           access->exchange != NULL ? access->exchange->id + 1 : 0, access->axes, access->writes,
                                           ax_done_point(access), i};
  }
  if (s->touch_count > 0) qsort(s->touches, s->touch_count, sizeof s->touches[0], by_class);
  for (uint32_t i = 0; i < s->touch_count; i++) {
    if (i == 0 || by_likeness(&s->touches[i - 1], &s->touches[i]) != 0) s->classes[s->class_count++].first = i;
    s->classes[s->class_count - 1].count++;
  }
  return AX_OK;
}

/* --- Waits --- */

static ax_status add_item(synchroniser *s, const ax_insertion *item) {
  AX_TRY(ax_grow(&s->items, sizeof s->items[0], s->count, 1, &s->capacity));
  s->items[s->count++] = *item;
  return AX_OK;
}

/* The number of accesses of a class that are done before a point in the list. */
static uint32_t count_done(const synchroniser *s, const touch_class *c, uint64_t point) {
  uint32_t low = 0, high = c->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (s->touches[c->first + middle].done < point) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Finds the one access of a class that a wait is for: each activation makes all others of the class earlier. False: there is
   none. */
static bool latest(const synchroniser *s, const touch_class *c, ax_insertion *wait) {
  const ax_assembly *a = s->a;
  const touch *first = &s->touches[c->first];
  uint32_t count = c->count;
  bool again = share_loop(a, first->region, wait->waiter_region);
  wait->region = first->done_region;
  wait->delta = 0;
  if (inside(a, wait->position, first->done_region)) {
    count = count_done(s, c, ax_wait_point(wait));
    if (count == 0 && again) {
      count = c->count;
      wait->delta = -1;
    }
  } else if (!again && a->accesses[first->access].position > wait->position) {
    return false; /* all come later */
  }
  while (count > 0 && wait->order == AX_WAIT_BEFORE && a->accesses[first[count - 1].access].position == wait->position)
    count--; /* the waiter itself */
  if (count > 0) wait->access = first[count - 1].access;
  return count > 0;
}

/* Says whether one of two accesses must wait for the other. An owner that reads what it wrote itself need not. */
static bool conflict(const synchroniser *s, const touch *x, const touch *y) {
  const touch *write = x->writes ? x : y, *read = x->writes ? y : x;
  if (x->writes == y->writes) return false;
  if (ax_seen_along(s->a, x->allocation) != 0) return true;
  return write->exchange != 0 || (read->axes & ~s->a->plan->buffers[x->allocation].axes) != 0;
}

/* Adds the wait of `waiter` for a class. `wait` has the position of the waiter. */
static ax_status wait_for_class(synchroniser *s, const touch *waiter, ax_insertion wait, const touch_class *c) {
  wait.axes = waiter->axes;
  if (!latest(s, c, &wait)) return AX_OK;
  if (s->paired[waiter->allocation]) {
    if (waiter->exchange != 0) wait.away = s->a->accesses[waiter->access].exchange;
  } else {
    wait.axes &= ~(s->group[waiter->allocation] & ~s->touches[c->first].axes); /* less the groups in which no activation makes it */
  }
  return add_item(s, &wait);
}

static ax_status wait_for_all_of(synchroniser *s, const touch_class *waiters, const touch_class *c) {
  for (uint32_t t = 0; t < waiters->count; t++) {
    const touch *waiter = &s->touches[waiters->first + t];
    ax_insertion wait = {
        .order = AX_WAIT_BEFORE, .position = s->a->accesses[waiter->access].position, .waiter_region = waiter->region};
    AX_TRY(wait_for_class(s, waiter, wait, c));
  }
  return AX_OK;
}

static ax_status find_waits(synchroniser *s, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++)
    for (uint32_t k = begin; k < end; k++)
      if (conflict(s, &s->touches[s->classes[i].first], &s->touches[s->classes[k].first]))
        AX_TRY(wait_for_all_of(s, &s->classes[i], &s->classes[k]));
  return AX_OK;
}

/* At the exit of a region, activations may report a read that they have not made. Such an activation first waits for the writes
   that it would have read. Otherwise it could run ahead, and its reports would count for others. That applies only to reads that
   some write waits for: items from `first` on. */
static ax_status guard_reports(synchroniser *s, uint32_t begin, uint32_t end, uint32_t first) {
  const ax_assembly *a = s->a;
  for (uint32_t i = first, count = s->count; i < count; i++) {
    const ax_access *read = &a->accesses[s->items[i].access];
    if (!read->hoisted) continue;
    const touch like = {.allocation = read->allocation, .region = read->done_region, .axes = read->axes};
    ax_insertion wait = {.order = AX_WAIT_FIRST, .position = read->done_position, .waiter_region = read->done_region};
    for (uint32_t k = begin; k < end; k++)
      if (conflict(s, &like, &s->touches[s->classes[k].first])) AX_TRY(wait_for_class(s, &like, wait, &s->classes[k]));
  }
  return AX_OK;
}

/* Two allocations live in the same memory, one after the other. The writers of one wait for all that accessed the other, except
   for accesses of their own activation. In a loop that holds in both directions, for the next iteration. */
static bool conflict_as_aliased_allocations(const synchroniser *s, const touch *writer, const touch *other) {
  ax_axis_set stored = s->a->plan->buffers[writer->allocation].axes;
  if (!writer->writes) return false;
  if (ax_seen_along(s->a, writer->allocation) != 0 || ax_seen_along(s->a, other->allocation) != 0) return true;
  return writer->exchange != 0 || other->exchange != 0 || ((writer->axes | other->axes) & ~stored) != 0;
}

/* A wait for a later read of the same allocation includes the wait for its writers, since the reader has waited for these, if
   there is a reader in every group. from, to: the classes of the allocation. */
static bool read_since(const synchroniser *s, uint32_t c, uint32_t from, uint32_t to) {
  const touch *write = &s->touches[s->classes[c].first + s->classes[c].count - 1];
  for (uint32_t i = from; i < to && write->writes; i++) {
    const touch *read = &s->touches[s->classes[i].first + s->classes[i].count - 1];
    if (!read->writes && read->region == write->region && (s->group[read->allocation] & ~read->axes) == 0 &&
        s->a->accesses[read->access].position > s->a->accesses[write->access].position)
      return true;
  }
  return false;
}

static ax_status find_waits_of_aliased_allocations(synchroniser *s) {
  const ax_assembly *a = s->a;
  uint32_t *first = ax_arena_alloc(&s->a->scratch, (a->plan->buffer_count + 1) * sizeof first[0]); /* classes, by allocation */
  if (first == NULL) return ax_out_of_memory(a->plan->buffer_count * sizeof first[0]);
  for (uint32_t allocation = 0, c = 0; allocation <= a->plan->buffer_count; allocation++) {
    while (c < s->class_count && s->touches[s->classes[c].first].allocation < allocation) c++;
    first[allocation] = c;
  }
  for (uint32_t i = 0; i < 2 * a->aliased_allocation_count; i++) {
    uint32_t later = i % 2 == 0 ? a->aliased_allocations[i / 2].b : a->aliased_allocations[i / 2].a,
             earlier = i % 2 == 0 ? a->aliased_allocations[i / 2].a : a->aliased_allocations[i / 2].b;
    for (uint32_t w = first[later]; w < first[later + 1]; w++)
      for (uint32_t c = first[earlier]; c < first[earlier + 1]; c++)
        if (conflict_as_aliased_allocations(s, &s->touches[s->classes[w].first], &s->touches[s->classes[c].first]) &&
            !read_since(s, c, first[earlier], first[earlier + 1]))
          AX_TRY(wait_for_all_of(s, &s->classes[w], &s->classes[c]));
  }
  return AX_OK;
}

static ax_status find_all_waits(synchroniser *s) {
  for (uint32_t begin = 0, end; begin < s->class_count; begin = end) {
    uint32_t allocation = s->touches[s->classes[begin].first].allocation, first = s->count;
    for (end = begin; end < s->class_count && s->touches[s->classes[end].first].allocation == allocation;) end++;
    AX_TRY(find_waits(s, begin, end));
    AX_TRY(guard_reports(s, begin, end, first));
  }
  return find_waits_of_aliased_allocations(s);
}

/* --- Waits that others imply --- */

/* Knowledge of activations that have come past some waits: the latest access among like ones that is known to be done. */
typedef struct knowledge {
  const ax_insertion *from;
  int64_t delta;
  uint64_t done;
  uint32_t kin, next; /* next: of the same kin */
} knowledge;

static uint32_t pairs_of(const synchroniser *s, const ax_exchange *exchange) {
  return exchange != NULL ? s->pairs[exchange->id] : 0;
}
static bool same_pairs(const synchroniser *s, const ax_exchange *a, const ax_exchange *b) {
  return pairs_of(s, a) == pairs_of(s, b);
}

/* Says whether a wait like `item` waits for all activations that `wait` waits for, on all activations that perform `wait`. What
   comes from other processes comes when it has been put, not when its sender did what follows: only a wait for the very access says
   that. */
static bool includes(const synchroniser *s, const ax_insertion *item, const ax_insertion *wait) {
  const ax_access *known = &s->a->accesses[item->access], *access = &s->a->accesses[wait->access];
  if (access != known && access->exchange != NULL && s->crosses[access->allocation]) return false;
  if ((wait->axes & ~item->axes) != 0 || (access->axes & ~known->axes) != 0) return false;
  if (!s->paired[known->allocation]) return (s->group[known->allocation] & ~s->group[access->allocation]) == 0;
  return s->paired[access->allocation] && same_pairs(s, item->away, wait->away) &&
         same_pairs(s, known->exchange, access->exchange) &&
         s->a->plan->buffers[known->allocation].axes == s->a->plan->buffers[access->allocation].axes;
}

/* Groups knowledge for the search: a wait can only be included in one of its own kin, or of kin 0. Kin 0 has all waits for
   allocations that are not paired. The others have kin by their pairs, of which there may be as many as ppermutes. */
static uint32_t kin_of(const synchroniser *s, const ax_insertion *wait) {
  const ax_access *access = &s->a->accesses[wait->access];
  if (!s->paired[access->allocation]) return 0;
  return 1 + (pairs_of(s, access->exchange) + 7 * pairs_of(s, wait->away)) % (s->pairs_count + 1);
}

static bool at_least(int64_t delta, uint64_t done, int64_t other_delta, uint64_t other_done) {
  return delta != other_delta ? delta > other_delta : done >= other_done;
}

/* Waits in one region for signals of one region, in order. */
typedef struct bucket {
  ax_insertion *items;
  uint32_t count;
  knowledge *known;
  uint32_t known_count;
} bucket;

/* Says that knowledge is out of date: since it was gained, the signals' region was entered once more, and counts have a new
   beginning. */
static bool outdated(const synchroniser *s, const knowledge *k, const ax_insertion *wait) {
  uint32_t begin = s->a->regions[wait->region].begin;
  return wait->region != wait->waiter_region && k->from->position <= begin && begin < wait->position;
}

/* Says whether knowledge of this kin implies `wait`. *own: the entry that says the same about other accesses, if there is one.
   */
static bool knows(const synchroniser *s, const bucket *b, uint32_t kin, const ax_insertion *wait, knowledge **own) {
  uint64_t done = ax_done_point(&s->a->accesses[wait->access]);
  for (uint32_t i = s->first_known[kin]; i != AX_NONE; i = b->known[i].next) {
    knowledge *k = &b->known[i];
    if (!includes(s, k->from, wait)) continue;
    if (!outdated(s, k, wait) && at_least(k->delta, k->done, wait->delta, done)) return true;
    if (includes(s, wait, k->from)) *own = k;
  }
  return false;
}

/* Notes that `wait` is over. True: it was known before. */
static bool learn(const synchroniser *s, bucket *b, const ax_insertion *wait) {
  uint32_t kin = kin_of(s, wait);
  knowledge *own = NULL;
  if (knows(s, b, 0, wait, &own) || (kin != 0 && knows(s, b, kin, wait, &own))) return true;
  if (own == NULL) {
    own = &b->known[b->known_count];
    own->kin = kin;
    own->next = s->first_known[kin];
    s->first_known[kin] = b->known_count++;
  }
  own->from = wait;
  own->delta = wait->delta;
  own->done = ax_done_point(&s->a->accesses[wait->access]);
  return false;
}

/* In a loop, knowledge from the end of an iteration holds in the next one, as of the iteration before. So the waits are gone
   through twice, the first time to learn. */
static void mark_implied(const synchroniser *s, bucket *b) {
  uint32_t region = b->items[0].waiter_region;
  b->known_count = 0;
  if (region == b->items[0].region && s->a->regions[region].is_loop) {
    for (uint32_t i = 0; i < b->count; i++) (void)learn(s, b, &b->items[i]);
    for (uint32_t i = 0; i < b->known_count; i++) b->known[i].delta--;
  }
  for (uint32_t i = 0; i < b->count; i++) b->items[i].implied = learn(s, b, &b->items[i]);
  for (uint32_t i = 0; i < b->known_count; i++) s->first_known[b->known[i].kin] = AX_NONE;
}

static int by_bucket(const void *x, const void *y) {
  const ax_insertion *a = x, *b = y;
  if (a->waiter_region != b->waiter_region) return a->waiter_region < b->waiter_region ? -1 : 1;
  if (a->region != b->region) return a->region < b->region ? -1 : 1;
  if (ax_wait_point(a) != ax_wait_point(b)) return ax_wait_point(a) < ax_wait_point(b) ? -1 : 1;
  if (a->delta != b->delta) return a->delta > b->delta ? -1 : 1;
  return a->access > b->access ? -1 : a->access < b->access; /* later ones first: they imply more */
}

static ax_status drop_implied(synchroniser *s) {
  knowledge *known = ax_calloc(s->count, sizeof known[0]);
  uint32_t kept = 0;
  s->first_known = ax_alloc(((size_t)s->pairs_count + 2) * sizeof s->first_known[0]);
  if (known == NULL || s->first_known == NULL) {
    ax_free(known);
    return ax_out_of_memory(s->count * sizeof known[0]);
  }
  memset(s->first_known, 0xff, ((size_t)s->pairs_count + 2) * sizeof s->first_known[0]);
  if (s->count > 0) qsort(s->items, s->count, sizeof s->items[0], by_bucket);
  for (uint32_t begin = 0, end; begin < s->count; begin = end) {
    for (end = begin; end < s->count && s->items[end].region == s->items[begin].region &&
                      s->items[end].waiter_region == s->items[begin].waiter_region;)
      end++;
    mark_implied(s, &(bucket){.items = &s->items[begin], .count = end - begin, .known = known});
  }
  for (uint32_t i = 0; i < s->count; i++)
    if (!s->items[i].implied) s->items[kept++] = s->items[i];
  s->count = kept;
  ax_free(known);
  return AX_OK;
}

/* --- Events --- */

static ax_status add_event(synchroniser *s, uint32_t index) {
  ax_assembly *a = s->a;
  ax_access *access = &a->accesses[index];
  if (access->event != AX_NONE) return AX_OK;
  bool paired = s->paired[access->allocation];
  AX_TRY(ax_grow(&a->events, sizeof a->events[0], a->event_count, 1, &a->event_capacity));
  access->event = a->event_count++;
  a->events[access->event] = (ax_event){.by = access->axes,
                                        .groups = paired ? a->plan->buffers[access->allocation].axes : s->group[access->allocation],
                                        .away = paired ? access->exchange : NULL};
  if (access->exchange != NULL) return AX_OK; /* the push signals it */
  return add_item(s, &(ax_insertion){.order = access->done_before ? AX_SIGNAL_BEFORE : AX_SIGNAL_AFTER, .access = index,
                                     .position = access->done_position, .region = access->done_region, .axes = access->axes});
}

/* Makes an event for each access that is awaited, and for every push, since combining counts on it. */
static ax_status find_events(synchroniser *s) {
  const ax_assembly *a = s->a;
  bool *awaited = ax_calloc(a->access_count, 1);
  if (awaited == NULL) return ax_out_of_memory(a->access_count);
  for (uint32_t i = 0; i < s->count; i++) awaited[s->items[i].access] = true;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < a->access_count && status == AX_OK; i++)
    if (awaited[i] || a->accesses[i].exchange != NULL) status = add_event(s, i);
  ax_free(awaited);
  return status;
}

/* --- The pass --- */

static ax_status synchronise(synchroniser *s) {
  ax_assembly *a = s->a;
  size_t allocations = a->plan->buffer_count;
  a->shared = ax_arena_alloc(&a->plan->arena, allocations + 1);
  s->group = ax_calloc(allocations, sizeof s->group[0]);
  s->crosses = ax_calloc(allocations, sizeof s->crosses[0]);
  s->paired = ax_calloc(allocations, sizeof s->paired[0]);
  s->first_exchange = ax_calloc(allocations, sizeof s->first_exchange[0]);
  s->next_exchange = ax_calloc(a->access_count, sizeof s->next_exchange[0]);
  if (a->shared == NULL || s->group == NULL || s->crosses == NULL || s->paired == NULL || s->first_exchange == NULL ||
      s->next_exchange == NULL)
    return ax_out_of_memory(allocations * sizeof s->group[0]);
  if (allocations > 0) memset(s->first_exchange, 0xff, allocations * sizeof s->first_exchange[0]);
  list_exchanges(s);
  AX_TRY(note_crossings(s));
  describe_allocations(s);
  AX_TRY(number_pairs(s));
  AX_TRY(ax_reuse_shared(a, s->group, s->paired));
  AX_TRY(find_classes(s));
  AX_TRY(find_all_waits(s));
  AX_TRY(drop_implied(s));
  AX_TRY(find_events(s));
  return ax_weave(a, s->items, s->count);
}

ax_status ax_instrs_synchronise(ax_assembly *a) {
  synchroniser s = {.a = a};
  ax_status status = synchronise(&s);
  ax_free(s.items);
  ax_free(s.group);
  ax_free(s.crosses);
  ax_free(s.paired);
  ax_free(s.first_exchange);
  ax_free(s.next_exchange);
  ax_free(s.pairs);
  ax_free(s.first_known);
  ax_free(s.touches);
  ax_free(s.classes);
  return status;
}
