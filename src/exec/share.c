/* Work shared between threads: each seat has a place for what its thread shares, so that several may share at once.

   Idle threads look at one number, how many shares have parts left; then at the seats' own counters. Nothing is locked. A thread that looks
   into a share says so first (helpers), so that the owner, who closes the share and then waits for helpers to be none, knows
   that nobody still holds on to it. */
#include "exec/share.h"

#include <sched.h>

#include "exec/scheduler.h"
#include "exec/timeline.h"

enum { spins = 2000 };

static void do_parts(ax_execution *run, ax_share *share) {
  uint32_t count = atomic_load_explicit(&share->count, memory_order_relaxed);
  for (uint32_t part; (part = atomic_fetch_add(&share->next, 1)) < count;) {
    if (part + 1 == count) atomic_fetch_sub(&run->shares, 1);
    ax_status status = share->part(share->context, part);
    if (status != AX_OK) atomic_store(&share->status, status);
  }
}

ax_status ax_share_parts(ax_execution *run, ax_seat *seat, ax_status (*part)(const void *context, uint32_t part), const void *context,
                         uint32_t count) {
  ax_status status = AX_OK;
  if (!run->threaded || count <= 1) {
    for (uint32_t i = 0; i < count && status == AX_OK; i++) status = part(context, i);
    return status;
  }
  ax_share *share = &seat->share;
  share->part = part;
  share->context = context;
  atomic_store_explicit(&share->count, count, memory_order_relaxed);
  atomic_store_explicit(&share->next, 0, memory_order_relaxed);
  atomic_store_explicit(&share->status, AX_OK, memory_order_relaxed);
  atomic_store(&share->open, true);
  atomic_fetch_add(&run->shares, 1);
  ax_schedule_wake(run, true);
  const int64_t begin = ax_timeline_now();
  do_parts(run, share);
  atomic_store(&share->open, false);
  const bool waits = atomic_load(&share->helpers) > 0;
  const int64_t own = waits ? ax_timeline_now() - begin : 0;
  for (int i = 0; atomic_load(&share->helpers) > 0; i++) { /* at most a part each */
    if (i < spins) ax_relax();
    else sched_yield();
  }
  const int64_t waited = waits ? ax_timeline_now() - begin - own : 0;
  if (waited > 2 * own) ax_workers_note_wait(run->executable->runtime->workers, waited);
  return atomic_load(&share->status);
}

static bool has_parts(ax_share *share) {
  return atomic_load_explicit(&share->open, memory_order_relaxed) &&
         atomic_load_explicit(&share->next, memory_order_relaxed) < atomic_load_explicit(&share->count, memory_order_relaxed);
}

bool ax_share_help(ax_execution *run, ax_seat *seat) {
  bool helped = false;
  if (atomic_load_explicit(&run->shares, memory_order_relaxed) == 0) return false;
  for (uint32_t i = 0; i < run->seat_count; i++) {
    ax_share *share = &run->seats[i].share;
    if (!has_parts(share)) continue;
    atomic_fetch_add(&share->helpers, 1);
    if (atomic_load(&share->open)) {
      int64_t begin = run->executable->timeline != NULL ? ax_timeline_now() : 0;
      do_parts(run, share);
      if (run->executable->timeline != NULL) ax_timeline_add(run, seat, share->frame, share->instr, begin);
      helped = true;
    }
    atomic_fetch_sub(&share->helpers, 1);
  }
  return helped;
}
