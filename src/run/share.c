/* Work shared between threads: each worker slot has a place for what its thread shares, so that several may share at once.

   Idle threads look at one number, how many shares have parts left; then at the worker slots' own counters. Nothing is locked. A
   thread that looks into a share says so first (helpers), so that the owner, who closes the share and then waits for helpers to be
   none, knows that nobody still holds on to it.

   A part is taken in two steps: a counter says whether there is one left, and then each thread looks for it from its own place on,
   which is where its worker slot among the run's threads is among the parts. So step after step of a loop a thread works on the
   same part of each array, which its own cache still holds, and takes others' parts only when its own are done. */
#include "run/share.h"

#include "machine/processor.h"
#include "machine/rates.h"
#include "run/scheduler.h"
#include "run/timeline.h"

enum { spins = 2000, brief_parts = 16, worth_asking = 8, met_before = 20, long_alone = 5000000, most_brief = 64 };

/* Work in few parts is done alone while helpers are held up, as the wait would be longer than the work. Other work is done alone
   only if that will last for more than long_alone nanoseconds. */
static bool better_alone(const ax_execution *run, uint32_t count) {
  return ax_workers_held_up(run->executor->workers, count < brief_parts ? 0 : long_alone);
}

/* Calling a helper into a run takes a microsecond or two, more if it sleeps, and more where cores exchange lines slowly. That pays
   for work that takes much longer, or after enough small work, as in a loop. */
static bool is_enough(ax_execution *run, const ax_instr *instr) {
  if (run->job.asked) return true;
  const double sharing = ax_rates_planned()->sharing;
  if (instr->microseconds >= worth_asking * sharing) return true;
  run->alone += instr->microseconds;
  return run->alone >= met_before * sharing;
}

/* Work of more than `most_brief` microseconds is shared in any case. */
static bool is_faster_alone(ax_execution *run, const ax_instr *instr) {
  if (run->pace.steps == NULL) return false;
  const uint32_t at = (uint32_t)(instr - run->compiled->codes[0].instrs);
  return ax_pace_step_begins(&run->pace, at, ax_timeline_now()) && instr->microseconds <= most_brief;
}

/* Runs of one device call helpers when they share work; in other runs helpers are there already. */
bool ax_share_worth(ax_execution *run, const ax_instr *instr) {
  if (!run->threaded || instr->parts <= 1) return false;
  if (!run->job.late) return true;
  return is_enough(run, instr) && !is_faster_alone(run, instr);
}

/* Takes the next free part from *place on. There is one, since `taken` was counted before. */
static uint32_t take_near(ax_share *share, uint32_t count, uint32_t *place) {
  for (;; *place = *place + 1 < count ? *place + 1 : 0) {
    _Atomic uint64_t *word = &share->gone[*place / 64];
    const uint64_t bit = (uint64_t)1 << *place % 64;
    if ((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0 && (atomic_fetch_or(word, bit) & bit) == 0) return *place;
  }
}

static uint32_t place_of(const ax_execution *run, const ax_worker_slot *worker_slot, uint32_t count) {
  return (uint32_t)((uint64_t)((uint32_t)(worker_slot - run->worker_slots) % run->threads) * count / run->threads);
}

/* Returns the number of parts done. */
static uint32_t do_parts(ax_execution *run, ax_worker_slot *worker_slot, ax_share *share) {
  const uint32_t count = atomic_load_explicit(&share->count, memory_order_relaxed);
  uint32_t place = place_of(run, worker_slot, count), done = 0;
  for (uint32_t taken; (taken = atomic_fetch_add(&share->taken, 1)) < count; done++) {
    if (share == &worker_slot->share) atomic_store_explicit(&share->processor, ax_processor(), memory_order_relaxed);
    if (taken + 1 == count) atomic_fetch_sub(&run->shares, 1);
    ax_status status = share->part(share->context, worker_slot, count <= AX_PLACED_PARTS ? take_near(share, count, &place) : taken);
    if (status != AX_OK) atomic_store(&share->status, status);
  }
  return done;
}

/* Waits for the part that each helper still has. A thread that sleeps gets a processor as soon as it wakes; one that yields goes
   behind all others each time. */
static void await_helpers(ax_execution *run, ax_share *share) {
  for (uint32_t i = 0; i < spins && atomic_load(&share->helpers) > 0; i++) ax_wait_turn(i);
  if (atomic_load(&share->helpers) == 0) return;
  pthread_mutex_lock(&run->lock);
  atomic_store(&share->awaited, true); /* before looking again: a helper that leaves reads this afterwards */
  while (atomic_load(&share->helpers) > 0) pthread_cond_wait(&share->left, &run->lock);
  atomic_store(&share->awaited, false);
  pthread_mutex_unlock(&run->lock);
}

static void leave(ax_execution *run, ax_share *share) {
  if (atomic_fetch_sub(&share->helpers, 1) > 1 || !atomic_load(&share->awaited)) return;
  pthread_mutex_lock(&run->lock);
  pthread_cond_signal(&share->left);
  pthread_mutex_unlock(&run->lock);
}

ax_status ax_share_parts(ax_execution *run, ax_worker_slot *worker_slot, ax_part_of_work *part, const void *context,
                         uint32_t count) {
  ax_status status = AX_OK;
  uint32_t first = 0;
  if (!run->threaded || count <= 1) {
    for (; first < count && status == AX_OK; first++) status = part(context, worker_slot, first);
    return status;
  }
  if (better_alone(run, count)) {
    const int64_t begin = ax_timeline_now();
    do status = part(context, worker_slot, first++);
    while (first < count && status == AX_OK && ax_timeline_now() - begin < long_alone); /* longer work is worth a wait */
    if (first == count || status != AX_OK) return status;
  }
  ax_share *share = &worker_slot->share;
  share->part = part;
  share->context = context;
  atomic_store_explicit(&share->count, count, memory_order_relaxed);
  atomic_store_explicit(&share->taken, first, memory_order_relaxed);
  for (uint32_t i = 0; count <= AX_PLACED_PARTS && i * 64 < count; i++)
    atomic_store_explicit(&share->gone[i],
                          first >= (i + 1) * 64 ? ~(uint64_t)0
                          : first <= i * 64     ? 0
                                                : ((uint64_t)1 << first % 64) - 1,
                          memory_order_relaxed);
  atomic_store_explicit(&share->status, AX_OK, memory_order_relaxed);
  atomic_store_explicit(&share->processor, ax_processor(), memory_order_relaxed);
  atomic_store(&share->open, true);
  atomic_fetch_add(&run->shares, 1);
  const int64_t call = ax_timeline_now();
  ax_workers_ask(run->executor->workers, &run->job);
  ax_scheduler_wake(run, true);
  const int64_t begin = ax_timeline_now();
  const uint32_t done = do_parts(run, worker_slot, share);
  atomic_store(&share->open, false);
  const int64_t end = ax_timeline_now();
  await_helpers(run, share);
  const int64_t saved = done > 0 ? (end - begin) / done * (count - first - done) : 0;
  ax_workers_note_help(run->executor->workers, saved, begin - call + (ax_timeline_now() - end));
  return atomic_load(&share->status);
}

static bool has_parts(ax_share *share) {
  return atomic_load_explicit(&share->open, memory_order_relaxed) &&
         atomic_load_explicit(&share->taken, memory_order_relaxed) < atomic_load_explicit(&share->count, memory_order_relaxed);
}

bool ax_share_help(ax_execution *run, ax_worker_slot *worker_slot) {
  bool helped = false;
  if (atomic_load_explicit(&run->shares, memory_order_relaxed) == 0) return false;
  for (uint32_t i = 0; i < run->worker_slot_count; i++) {
    ax_share *share = &run->worker_slots[i].share;
    if (!has_parts(share)) continue;
    if (worker_slot != run->worker_slots)
      ax_processor_leave(
          atomic_load_explicit(&share->processor, memory_order_relaxed)); /* the caller's own thread does not move */
    atomic_fetch_add(&share->helpers, 1);
    if (atomic_load(&share->open)) {
      int64_t begin = run->compiled->timed ? ax_timeline_now() : 0;
      do_parts(run, worker_slot, share);
      if (run->compiled->timed) ax_timeline_add(run, worker_slot, share->activation, share->instr, begin);
      helped = true;
    }
    leave(run, share);
  }
  return helped;
}
