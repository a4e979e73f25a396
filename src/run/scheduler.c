/* Chooses the activation that runs next.

   An activation that must wait is parked on a counter and holds no thread. The thread that signals the counter takes out the
   activations that may go on, and puts them into the queues of the threads that ran them last, where their memory is warm. A thread
   whose own queue is empty starts a new activation, or takes one from another queue. There are two kinds of locks: one for each
   queue, rarely used by other threads than its own and those that wake its activations; and 64 stripes, chosen by the counter's
   number, for parking and waking. A wait that succeeds is one atomic read. A signal that wakes no activation is one atomic addition
   and one read.

   The end. A thread that finds neither an activation nor shared work is no longer busy. The last thread to become idle looks once
   more. If there is still no work, and nothing in flight, there never will be, since only busy threads and operations in flight add
   activations. If some activations have not ended, that is a deadlock, reported at once. Shared counts are written only by threads
   that change between busy and idle.

   A run on one thread has one queue and locks nothing. A scheduling policy (policy.h) sees all activations that may go on, in an
   array. */
#include "run/scheduler.h"

#include <stdio.h>
#include <string.h>

#include "machine/processor.h"
#include "run/lent.h"
#include "run/remote.h"

enum { idle_spins = 4000, large_scratch = 16 << 20 };

/* An activation is reset where it starts, not before the run, so that its memory is gone through once. */
static uint32_t begin(ax_execution *run, uint32_t f) {
  const ax_compiled *c = run->compiled;
  ax_activation *activation = &run->activations[f];
  activation->pc = activation->code->entry;
  activation->sent = activation->lending = false;
  activation->counted = false;
  activation->entered[0] = 1;
  activation->turn = 0;
  for (uint32_t region = 1; region < c->region_count; region++) activation->entered[region] = 0;
  return f;
}

/* --- One thread --- */

static void append(ax_execution *run, uint32_t f) {
  uint32_t activations = run->compiled->activation_count;
  if (run->ready_first + run->ready_count == 2 * activations) {
    memmove(run->ready, run->ready + run->ready_first, run->ready_count * sizeof run->ready[0]);
    run->ready_first = 0;
  }
  run->ready[run->ready_first + run->ready_count++] = f;
}

static uint32_t take_first(ax_execution *run, ax_worker_slot *worker_slot) {
  uint32_t f = worker_slot->first;
  if (f != AX_NONE) worker_slot->first = run->parking[f].next;
  return f;
}

static void take_posts(ax_execution *run);

static uint32_t choose(ax_execution *run, ax_worker_slot *worker_slot) {
  uint32_t fresh = atomic_load_explicit(&run->fresh, memory_order_relaxed);
  while (fresh < run->compiled->activation_count) append(run, begin(run, fresh++));
  atomic_store_explicit(&run->fresh, fresh, memory_order_relaxed);
  for (uint32_t f; (f = take_first(run, worker_slot)) != AX_NONE;) append(run, f);
  if (run->ready_count == 0) return AX_NONE;
  uint32_t *ready = run->ready + run->ready_first;
  uint32_t place = run->scheduling_policy->pick(run->scheduling_policy->state, ready, run->ready_count), chosen = ready[place];
  ready[place] = ready[0];
  ready[0] = chosen;
  run->ready_first++;
  run->ready_count--;
  return chosen;
}

/* Depth-first: takes activations that have begun before new ones. */
static uint32_t take_alone(ax_execution *run, ax_worker_slot *worker_slot) {
  if (atomic_load_explicit(&run->post_count, memory_order_relaxed) > 0) take_posts(run);
  if (run->scheduling_policy != NULL) return choose(run, worker_slot);
  if (worker_slot->first != AX_NONE) return take_first(run, worker_slot);
  uint32_t fresh = atomic_load_explicit(&run->fresh, memory_order_relaxed);
  if (fresh == run->compiled->activation_count) return AX_NONE;
  atomic_store_explicit(&run->fresh, fresh + 1, memory_order_relaxed);
  return begin(run, fresh);
}

/* --- Several threads: queues --- */

static bool is_large(const ax_compiled *c) { return c->spaces[c->scratch_space].bytes >= large_scratch; }

static void link_in(ax_execution *run, ax_worker_slot *worker_slot, uint32_t first, uint32_t last) {
  if (worker_slot->first == AX_NONE) worker_slot->first = first;
  else run->parking[worker_slot->last].next = first;
  worker_slot->last = last;
}

static void add_to_queue(ax_execution *run, ax_worker_slot *worker_slot, uint32_t first, uint32_t last, uint32_t count) {
  pthread_mutex_lock(&worker_slot->lock);
  link_in(run, worker_slot, first, last);
  atomic_store(&worker_slot->count, atomic_load_explicit(&worker_slot->count, memory_order_relaxed) + count);
  pthread_mutex_unlock(&worker_slot->lock);
}

static uint32_t take_from_queue(ax_execution *run, ax_worker_slot *worker_slot) {
  if (atomic_load_explicit(&worker_slot->count, memory_order_relaxed) == 0) return AX_NONE;
  pthread_mutex_lock(&worker_slot->lock);
  uint32_t f = take_first(run, worker_slot);
  if (f != AX_NONE) {
    if (is_large(run->compiled)) atomic_fetch_add(&run->running, 1); /* counted before the queue is seen empty: see start_new */
    atomic_store(&worker_slot->count, atomic_load_explicit(&worker_slot->count, memory_order_relaxed) - 1);
  }
  pthread_mutex_unlock(&worker_slot->lock);
  return f;
}

/* Puts a list into the queues of the threads that ran its activations last; neighbours with the same home go together. */
static void send_home(ax_execution *run, uint32_t f) {
  uint32_t total = 0;
  while (f != AX_NONE) {
    uint32_t first = f, last = f, next = run->parking[f].next, count = 1, home = run->activations[f].home;
    for (; next != AX_NONE && run->activations[next].home == home; next = run->parking[next].next, count++) last = next;
    run->parking[last].next = AX_NONE;
    add_to_queue(run, &run->worker_slots[home], first, last, count);
    total += count;
    f = next;
  }
  ax_scheduler_wake(run, total > 1);
}

/* Adds a list of activations linked by parking.next, whose head knows its last. */
static void add_ready(ax_execution *run, uint32_t first) {
  if (first == AX_NONE) return;
  if (run->threaded) send_home(run, first);
  else link_in(run, &run->worker_slots[0], first, run->parking[first].last);
}

static bool any_queued(ax_execution *run) {
  for (uint32_t i = 0; i < run->worker_slot_count; i++)
    if (atomic_load(&run->worker_slots[i].count) > 0) return true;
  return false;
}

/* Activations that wait for their turn keep their scratch memory. If that is large, no more activations start than threads can
   use, as long as one is running that will let the waiting ones go on. */
static bool may_start(ax_execution *run) {
  const ax_compiled *c = run->compiled;
  if (atomic_load(&run->fresh) >= c->activation_count) return false;
  return !is_large(c) || atomic_load(&run->scratch_out) < run->worker_slot_count || atomic_load(&run->running) == 0;
}

/* If scratch memory is large, one activation starts at a time, only if no other is ready, and its block is counted at once. */
static uint32_t start_large(ax_execution *run) {
  uint32_t f = AX_NONE;
  pthread_mutex_lock(&run->lock);
  if (!any_queued(run) && may_start(run)) {
    f = begin(run, atomic_fetch_add(&run->fresh, 1));
    atomic_fetch_add(&run->running, 1);
    atomic_fetch_add(&run->scratch_out, 1);
    run->activations[f].counted = true;
  }
  pthread_mutex_unlock(&run->lock);
  return f;
}

static uint32_t start_new(ax_execution *run) {
  if (!may_start(run)) return AX_NONE;
  if (is_large(run->compiled)) return start_large(run);
  uint32_t f = atomic_fetch_add(&run->fresh, 1);
  return f < run->compiled->activation_count ? begin(run, f) : AX_NONE;
}

static uint32_t take_from_others(ax_execution *run, const ax_worker_slot *worker_slot) {
  uint32_t own = (uint32_t)(worker_slot - run->worker_slots);
  for (uint32_t i = 1; i < run->worker_slot_count; i++) {
    uint32_t f = take_from_queue(run, &run->worker_slots[(own + i) % run->worker_slot_count]);
    if (f != AX_NONE) return f;
  }
  return AX_NONE;
}

static bool any_ready(ax_execution *run) { return any_queued(run) || may_start(run); }

uint32_t ax_scheduler_take(ax_execution *run, ax_worker_slot *worker_slot) {
  uint32_t f;
  if (!run->threaded) {
    f = take_alone(run, worker_slot);
  } else {
    f = take_from_queue(run, worker_slot);
    if (f == AX_NONE) f = take_from_others(run, worker_slot);
    if (f == AX_NONE) f = start_new(run);
    if (f != AX_NONE) run->activations[f].home = (uint32_t)(worker_slot - run->worker_slots);
  }
  if (f != AX_NONE) run->activations[f].state = ACTIVATION_ACTIVE;
  return f;
}

/* Only scheduling policies make activations yield, so there is one thread. */
void ax_scheduler_yield(ax_execution *run, uint32_t f) {
  run->parking[f].next = AX_NONE;
  link_in(run, &run->worker_slots[0], f, f);
}

/* --- Scratch memory --- */

ax_status ax_scheduler_give_scratch(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation) {
  const ax_compiled *c = run->compiled;
  size_t bytes = (size_t)c->spaces[c->scratch_space].bytes;
  void *block = worker_slot->scratch;
  if (block != NULL) {
    worker_slot->scratch = NULL;
  } else {
    if (run->threaded) pthread_mutex_lock(&run->lock);
    if ((block = run->scratch) != NULL) run->scratch = *(void **)block;
    if (run->threaded) pthread_mutex_unlock(&run->lock);
    if (block == NULL) AX_TRY(ax_pool_borrow(&run->executor->pool, bytes, &block));
  }
  if (AX_HOSTILE) memset(block, 0xff, bytes);
  activation->scratch = block;
  if (run->threaded && is_large(c) && !activation->counted) {
    atomic_fetch_add(&run->scratch_out, 1);
    activation->counted = true;
  }
  run->part[c->spaces[c->scratch_space].first + activation->code->first_activation + activation->device] = block;
  return AX_OK;
}

/* A worker slot keeps one warm block, unless blocks are large; further blocks go to the run's list. */
static void put_back(ax_execution *run, ax_worker_slot *worker_slot, void *block) {
  if (worker_slot->scratch == NULL && !is_large(run->compiled)) {
    *(void **)block = NULL;
    worker_slot->scratch = block;
    return;
  }
  if (run->threaded) pthread_mutex_lock(&run->lock);
  *(void **)block = run->scratch;
  run->scratch = block;
  if (run->threaded) pthread_mutex_unlock(&run->lock);
}

/* The block is put back before the count goes down, so that a thread that may start an activation finds it. */
static void give_back_scratch(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation) {
  if (activation->scratch != NULL) put_back(run, worker_slot, activation->scratch);
  activation->scratch = NULL;
  if (activation->counted) atomic_fetch_sub(&run->scratch_out, 1);
  activation->counted = false;
}

void ax_scheduler_end(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f) {
  ax_activation *activation = &run->activations[f];
  if (activation->scratch != NULL || activation->counted) give_back_scratch(run, worker_slot, activation);
  activation->state = ACTIVATION_DONE;
  const uint32_t finished = atomic_load_explicit(&worker_slot->finished, memory_order_relaxed) + 1;
  atomic_store_explicit(&worker_slot->finished, finished, memory_order_release);
  if (run->threaded && is_large(run->compiled)) atomic_fetch_sub(&run->running, 1);
  if (!run->threaded && finished == run->compiled->activation_count) atomic_store_explicit(&run->over, true, memory_order_relaxed);
}

/* --- Worker slots, and the end --- */

/* The first free slot from number `from` on, or from the first one. */
static ax_worker_slot *take_slot(ax_execution *run, uint32_t from) {
  for (uint32_t i = 0; i < run->worker_slot_count; i++) {
    ax_worker_slot *slot = &run->worker_slots[(from + i) % run->worker_slot_count];
    bool taken = false;
    if (!atomic_compare_exchange_strong(&slot->taken, &taken, true)) continue;
    atomic_fetch_add(&run->busy, 1);
    return slot;
  }
  return NULL;
}

ax_worker_slot *ax_scheduler_enter(ax_execution *run) {
  if (run->threaded) return take_slot(run, 0);
  atomic_store_explicit(&run->busy, 1, memory_order_relaxed);
  return &run->worker_slots[0];
}

ax_worker_slot *ax_scheduler_join(ax_execution *run) {
  static _Thread_local uint32_t own = 1;
  ax_worker_slot *slot = take_slot(run, own);
  if (slot != NULL) own = (uint32_t)(slot - run->worker_slots);
  return slot;
}

void ax_scheduler_leave(ax_execution *run, ax_worker_slot *worker_slot) {
  if (run->threaded) atomic_store(&worker_slot->taken, false);
}

static void end_run(ax_execution *run) { /* with the lock held */
  atomic_store(&run->over, true);
  pthread_cond_broadcast(&run->change);
}

/* Decides whether the run is over. Called with the lock held, under which operations begin and end being in flight. A thread that
   finds a message of another process may begin and end activations meanwhile: they are counted here, or when it is idle again. */
static void judge(ax_execution *run) {
  uint32_t finished = 0;
  if (atomic_load(&run->over) || atomic_load(&run->in_flight) > 0) return;
  if (run->threaded ? any_ready(run) || atomic_load(&run->busy) > 0 : atomic_load(&run->post_count) > 0) return;
  for (uint32_t i = 0; i < run->worker_slot_count; i++)
    finished += atomic_load_explicit(&run->worker_slots[i].finished, memory_order_acquire);
  const bool goes_on = run->status == AX_OK || run->status == run->finding.status; /* others may have earlier findings */
  if (finished < run->compiled->activation_count && goes_on) {
    if (run->remote != NULL && !ax_remote_idle(run->remote)) return; /* a message may come */
    if (run->status == AX_OK) ax_execution_report_deadlock(run);
  }
  end_run(run);
}

bool ax_scheduler_exhausted(ax_execution *run) {
  if (atomic_fetch_sub(&run->busy, 1) == 1) {
    if (run->remote != NULL) ax_remote_flush(run->remote);
    pthread_mutex_lock(&run->lock);
    judge(run);
    pthread_mutex_unlock(&run->lock);
  }
  return atomic_load(&run->over);
}

static bool anything(ax_execution *run) {
  if (atomic_load(&run->over) || atomic_load(&run->shares) > 0) return true;
  return run->threaded ? any_ready(run) : atomic_load(&run->post_count) > 0;
}

void ax_scheduler_wait(ax_execution *run) {
  bool changed = run->remote != NULL;
  if (changed) ax_remote_wait(run->remote, anything);
  for (uint32_t i = 0; i < idle_spins && !changed; i++) {
    changed = anything(run);
    if (!changed) ax_wait_turn(i);
  }
  if (!changed) {
    pthread_mutex_lock(&run->lock);
    atomic_fetch_add(&run->sleepers, 1); /* before looking again: a thread that adds work reads this count afterwards */
    if (!anything(run)) pthread_cond_wait(&run->change, &run->lock);
    atomic_fetch_sub(&run->sleepers, 1);
    pthread_mutex_unlock(&run->lock);
  }
  atomic_fetch_add(&run->busy, 1);
}

void ax_scheduler_stop(ax_execution *run, ax_status status, const char *message) {
  pthread_mutex_lock(&run->lock);
  if (run->status == AX_OK || run->status == run->finding.status) { /* another activation may still have an earlier finding */
    run->status = status;
    snprintf(run->message, sizeof run->message, "%s", message);
  }
  end_run(run);
  pthread_mutex_unlock(&run->lock);
}

void ax_scheduler_wake(ax_execution *run, bool all) {
  if (!run->threaded || atomic_load(&run->sleepers) == 0) return;
  pthread_mutex_lock(&run->lock);
  if (all) pthread_cond_broadcast(&run->change);
  else pthread_cond_signal(&run->change);
  pthread_mutex_unlock(&run->lock);
}

/* --- Counters --- */

static void lock_counter(ax_execution *run, uint32_t counter) {
  if (run->threaded) pthread_mutex_lock(&run->stripes[counter % AX_STRIPES]);
}
static void unlock_counter(ax_execution *run, uint32_t counter) {
  if (run->threaded) pthread_mutex_unlock(&run->stripes[counter % AX_STRIPES]);
}

void ax_scheduler_release(ax_execution *run, uint32_t index) {
  ax_counter *counter = &run->counters[index];
  lock_counter(run, index);
  uint32_t f = ax_counter_release(counter, run->parking, atomic_load(&counter->count));
  unlock_counter(run, index);
  add_ready(run, f);
}

/* The count is read again once signalling threads can see the new target, so that no signal in between is lost. */
bool ax_scheduler_park(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f, uint32_t index, uint64_t target, bool parks) {
  ax_counter *counter = &run->counters[index];
  if (run->remote != NULL && ax_remote_await(run->remote, worker_slot, index, target)) return true;
  if (run->threaded) {
    lock_counter(run, index);
    uint64_t least = atomic_load_explicit(&counter->least, memory_order_relaxed);
    if (target < least) atomic_store(&counter->least, target);
    if (atomic_load(&counter->count) >= target) {
      atomic_store_explicit(&counter->least, least, memory_order_relaxed);
      unlock_counter(run, index);
      return true;
    }
    if (is_large(run->compiled)) atomic_fetch_sub(&run->running, 1);
  }
  ax_activation *activation = &run->activations[f];
  if (parks) give_back_scratch(run, worker_slot, activation);
  activation->state = ACTIVATION_PARKED;
  run->parking[f].counter = index;
  run->parking[f].target = target;
  ax_counter_park(counter, run->parking, f);
  unlock_counter(run, index);
  return false;
}

uint32_t ax_scheduler_take_out(ax_execution *run, uint32_t index, uint64_t target) {
  ax_counter *counter = &run->counters[index];
  lock_counter(run, index);
  uint32_t f = AX_NONE;
  if (atomic_load_explicit(&counter->least, memory_order_relaxed) == target) f = ax_counter_release(counter, run->parking, target);
  unlock_counter(run, index);
  return f;
}

void ax_scheduler_resume(ax_execution *run, uint32_t first) { add_ready(run, first); }

/* --- From outside --- */

ax_status ax_execution_begin_flight(ax_execution *run) {
  pthread_mutex_lock(&run->lock);
  ax_status status = ax_grow(&run->posts, sizeof run->posts[0], atomic_load(&run->post_count), atomic_load(&run->in_flight) + 1,
                             &run->post_capacity);
  atomic_store(&run->flown, true);
  if (status == AX_OK) atomic_fetch_add(&run->in_flight, 1);
  pthread_mutex_unlock(&run->lock);
  return status;
}

void ax_execution_post(ax_execution *run, uint32_t counter, uint32_t times) {
  if (run->threaded) ax_scheduler_signal(run, counter, times);
  pthread_mutex_lock(&run->lock);
  if (!run->threaded) { /* its counters belong to its own thread */
    uint32_t count = atomic_load(&run->post_count);
    run->posts[count] = (struct ax_post){counter, times};
    atomic_store(&run->post_count, count + 1);
  }
  atomic_fetch_sub(&run->in_flight, 1);
  pthread_cond_broadcast(&run->change);
  pthread_mutex_unlock(&run->lock);
}

static void take_posts(ax_execution *run) {
  pthread_mutex_lock(&run->lock);
  for (uint32_t i = 0; i < atomic_load(&run->post_count); i++) ax_scheduler_signal(run, run->posts[i].counter, run->posts[i].times);
  atomic_store(&run->post_count, 0);
  pthread_mutex_unlock(&run->lock);
}

void ax_scheduler_land(ax_execution *run) {
  if (!atomic_load_explicit(&run->flown, memory_order_relaxed)) return;
  if (run->remote != NULL) (void)ax_lent_look(run->remote, true);
  pthread_mutex_lock(&run->lock); /* also with nothing in flight: the thread that posted last may still hold it */
  while (atomic_load(&run->in_flight) > 0) pthread_cond_wait(&run->change, &run->lock);
  pthread_mutex_unlock(&run->lock);
}
