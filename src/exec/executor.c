/* The executor: frames run depth-first until they must wait; a waiting frame is parked on a counter and holds no thread.

   Whoever signals a counter moves those parked there that may go on to the ready ring. When nobody is ready, nobody runs and some
   are not finished, they never will be: a deadlock, reported at once. One thread or several run the same code; with one, counters
   are plain loads and stores and nothing is locked. */
#include <stdio.h>
#include <string.h>

#include "exec/compute.h"

void omp_set_num_threads(int count); /* libgomp's; clang 14 has no omp.h */
int omp_get_max_threads(void);

enum { late_block = 1 << 14 }; /* elements */
enum { idle_spins = 20000, large_scratch = 16 << 20 };
typedef enum outcome { GOES_ON, PARKED, YIELDS, FINISHED, FAILED } outcome;

/* --- Ready frames --- */

static void lock(ax_execution *run) {
  if (run->threaded) pthread_mutex_lock(&run->lock);
}
static void unlock(ax_execution *run) {
  if (run->threaded) pthread_mutex_unlock(&run->lock);
}

/* With the lock held, as the next three. */
static void make_ready(ax_execution *run, uint32_t f) {
  uint32_t devices = run->executable->devices, at = run->ready_first + run->ready_count++;
  run->ready[at < devices ? at : at - devices] = f;
  run->frames[f].state = FRAME_ACTIVE;
  if (!run->threaded) return;
  atomic_store_explicit(&run->ready_hint, run->ready_count, memory_order_relaxed);
  if (run->idle > 0) pthread_cond_signal(&run->change);
}

static uint64_t next_random(ax_execution *run) { /* splitmix64 */
  uint64_t z = run->random += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

static void shuffle_first(ax_execution *run) { /* a random ready frame, brought to the front of the ring */
  uint32_t devices = run->executable->devices;
  uint32_t a = run->ready_first, b = (uint32_t)((a + next_random(run) % run->ready_count) % devices);
  uint32_t kept = run->ready[a];
  run->ready[a] = run->ready[b];
  run->ready[b] = kept;
}

/* Frames that wait for their turn keep their scratch memory. When that is large, no more of them are started than threads can
   use, as long as somebody runs who will let them go on. */
static bool enough_started(const ax_execution *run) {
  const ax_executable *e = run->executable;
  uint32_t out = run->scratch_made - run->scratch_count;
  return e->spaces[e->scratch_space].bytes >= large_scratch && out >= e->runtime->options.workers && run->running > 0;
}

/* A frame to run; AX_NONE when there is none now. */
static uint32_t take_ready(ax_execution *run) {
  uint32_t devices = run->executable->devices;
  if (run->random != 0)
    while (run->fresh < devices) make_ready(run, run->fresh++);
  if (run->ready_count == 0) return run->fresh < devices && !enough_started(run) ? run->fresh++ : AX_NONE;
  if (run->random != 0) shuffle_first(run);
  uint32_t f = run->ready[run->ready_first];
  run->ready_first = run->ready_first + 1 < devices ? run->ready_first + 1 : 0;
  run->ready_count--;
  atomic_store_explicit(&run->ready_hint, run->ready_count, memory_order_relaxed);
  return f;
}

/* Those parked on a counter whose target is reached. */
static void wake_parked(ax_execution *run, ax_counter *counter, uint64_t count) {
  uint32_t f = ax_counter_release(counter, run->parking, count);
  for (; f != AX_NONE; f = run->parking[f].next) make_ready(run, f);
}

/* --- Events --- */

static void signal_counter(ax_execution *run, ax_counter *counter) {
  if (!run->threaded) {
    uint64_t count = atomic_load_explicit(&counter->count, memory_order_relaxed) + 1;
    atomic_store_explicit(&counter->count, count, memory_order_relaxed);
    if (atomic_load_explicit(&counter->least, memory_order_relaxed) <= count) wake_parked(run, counter, count);
    return;
  }
  uint64_t count = atomic_fetch_add(&counter->count, 1) + 1;
  if (atomic_load(&counter->least) > count) return;
  pthread_mutex_lock(&run->lock);
  wake_parked(run, counter, atomic_load(&counter->count));
  pthread_mutex_unlock(&run->lock);
}

/* True when the frame may go on; otherwise it is parked. The count is read again once whoever signals can see that somebody waits,
   so that no signal in between is lost. */
static bool await_counter(ax_execution *run, uint32_t f, uint32_t index, uint64_t target, bool hard) {
  ax_counter *counter = &run->counters[index];
  if (atomic_load_explicit(&counter->count, memory_order_acquire) >= target) return true;
  ax_frame *frame = &run->frames[f];
  lock(run);
  uint64_t least = atomic_load_explicit(&counter->least, memory_order_relaxed);
  if (target < least) atomic_store(&counter->least, target);
  if (atomic_load(&counter->count) >= target) {
    atomic_store_explicit(&counter->least, least, memory_order_relaxed);
    unlock(run);
    return true;
  }
  run->parking[f].counter = index;
  run->parking[f].target = target;
  ax_counter_park(counter, run->parking, f);
  if (hard && frame->scratch != NULL) {
    run->scratch[run->scratch_count++] = frame->scratch;
    frame->scratch = NULL;
  }
  frame->state = FRAME_PARKED;
  unlock(run);
  return false;
}

/* --- Work shared between threads --- */

static void do_parts(ax_split *split) {
  for (uint32_t part; (part = atomic_fetch_add(&split->next, 1)) < split->instr->parts;) {
    ax_status status = ax_compute_part(split->frame, split->instr, part);
    if (status != AX_OK) atomic_store(&split->status, status);
  }
}

/* With the lock held, which is let go in between: lends a hand to the frame that shares its work, if there is one. */
static bool help(ax_execution *run) {
  ax_split *split = run->split;
  if (split == NULL || atomic_load(&split->next) >= split->instr->parts) return false;
  split->helpers++;
  pthread_mutex_unlock(&run->lock);
  do_parts(split);
  pthread_mutex_lock(&run->lock);
  split->helpers--;
  return true;
}

/* A large kernel or product is done in parts by whoever is idle. The parts depend on its size alone, so the result does not depend
   on who that is. */
static ax_status compute(ax_execution *run, const ax_frame *frame, const ax_instr *instr) {
  if (!run->threaded || instr->parts <= 1) return ax_compute(frame, instr);
  ax_split split = {.instr = instr, .frame = frame};
  pthread_mutex_lock(&run->lock);
  bool mine = run->split == NULL;
  if (mine) run->split = &split;
  if (mine && run->idle > 0) pthread_cond_broadcast(&run->change);
  pthread_mutex_unlock(&run->lock);
  if (!mine) return ax_compute(frame, instr);
  do_parts(&split);
  pthread_mutex_lock(&run->lock);
  run->split = NULL; /* nobody joins from here on */
  while (split.helpers > 0) { /* at most a part each */
    pthread_mutex_unlock(&run->lock);
    ax_relax();
    pthread_mutex_lock(&run->lock);
  }
  pthread_mutex_unlock(&run->lock);
  return atomic_load(&split.status);
}

/* --- Exchanges --- */

/* One part, from src to dst: runs of contiguous elements, copied or combined. */
static void put_run(const ax_push *push, const char *src, char *dst, bool combine) {
  if (combine) {
    void *slots[] = {dst, (void *)src};
    push->combine(slots, NULL, 0, push->run);
  } else {
    if (push->run > 0) memcpy(dst, src, (size_t)(push->run * push->item)); /* empty arrays have no address */
  }
}

static void put_part(const ax_push *push, const char *src, char *dst, bool combine) {
  const ax_exchange *x = push->exchange;
  if (push->outer_rank == 0) {
    put_run(push, src, dst, combine);
    return;
  }
  int64_t index[AX_MAX_RANK] = {0}, rows = ax_dims_elems(push->outer_rank, x->dims);
  for (int64_t r = 0; r < rows; r++) {
    int64_t s = 0, d = 0;
    for (uint32_t k = 0; k < push->outer_rank; k++) {
      s += index[k] * x->src_stride[k];
      d += index[k] * x->dst_stride[k];
    }
    put_run(push, src + s * push->item, dst + d * push->item, combine);
    for (uint32_t k = push->outer_rank; k-- > 0 && ++index[k] == x->dims[k];) index[k] = 0;
  }
}

/* Where member j's part of the result is, by the frame of member `number`. */
static char *member_out(const ax_frame *frame, const ax_instr *instr, uint32_t number, uint32_t j) {
  const uint32_t *place = instr->push->place;
  return ax_address_away(frame, &instr->refs[1], (int64_t)place[j] - (int64_t)place[number]);
}

static void put_parts(const ax_frame *frame, const ax_instr *instr, uint32_t number) {
  const ax_push *push = instr->push;
  const ax_exchange *x = push->exchange;
  int64_t item = push->item;
  const char *src = ax_address(frame, &instr->refs[0]);
  int64_t step = number * x->dst_step * item;
  bool combine = x->combine != AX_SCALAR_NONE && number > 0;
  if (x->peers == AX_PEERS_ONE) {
    put_part(push, src, (char *)ax_address(frame, &instr->refs[1]) + step, combine);
    return;
  }
  if (x->peers == AX_PEERS_PAIRS) {
    uint32_t target = push->targets[number];
    if (target != AX_NONE) put_part(push, src, member_out(frame, instr, number, target), false);
    return;
  }
  for (uint32_t j = 0; j < push->members; j++)
    put_part(push, src + j * x->src_step * item, member_out(frame, instr, number, j) + step, combine);
}

/* What every member puts into `dst`, from `offset` elements into its input on, combined in member order; a block at a time, so that
   the sum stays in the cache while all contributions pass. */
static void combine_inputs(const ax_frame *frame, const ax_instr *instr, uint32_t number, int64_t offset, char *dst) {
  const ax_push *push = instr->push;
  for (int64_t begin = 0; begin < push->run; begin += late_block) {
    int64_t end = begin + late_block < push->run ? begin + late_block : push->run;
    for (uint32_t j = 0; j < push->members; j++) {
      int64_t away = (int64_t)push->in_place[j] - (int64_t)push->in_place[number];
      const char *src = (const char *)ax_address_away(frame, &instr->refs[0], away) + offset * push->item;
      void *slots[] = {dst, (void *)src};
      if (j > 0) push->combine(slots, NULL, begin, end);
      else memcpy(dst + begin * push->item, src + begin * push->item, (size_t)((end - begin) * push->item));
    }
  }
}

/* A push that nobody need take turns in: all contributions are inputs of the run, which stay. */
static void do_late_push(ax_execution *run, const ax_frame *frame, const ax_instr *instr, uint32_t number, uint32_t counter) {
  const ax_push *push = instr->push;
  if (atomic_fetch_add(&run->arrived[counter], 1) + 1 == push->members) {
    if (push->exchange->peers == AX_PEERS_ONE) combine_inputs(frame, instr, number, 0, ax_address(frame, &instr->refs[1]));
    for (uint32_t j = 0; push->exchange->peers == AX_PEERS_ALL && j < push->members; j++)
      combine_inputs(frame, instr, number, j * push->exchange->src_step, member_out(frame, instr, number, j));
  }
  signal_counter(run, &run->counters[counter]);
}

/* Who combines waits until all members with lower numbers have: PARKED until then. */
static outcome do_push(ax_execution *run, ax_frame *frame, const ax_instr *instr, uint32_t f) {
  const ax_executable *e = run->executable;
  const ax_push *push = instr->push;
  uint32_t number = push->number[e->sets[push->set].index[f]], counter = push->counter[f];
  if (counter != AX_NONE) counter += push->first; /* none: a ppermute in which I am no source */
  if (push->late) {
    do_late_push(run, frame, instr, number, counter);
    return GOES_ON;
  }
  uint64_t turn = (uint64_t)(frame->entered[instr->region] - 1) * push->members + number;
  if (push->exchange->combine != AX_SCALAR_NONE && !await_counter(run, f, counter, turn, false)) return PARKED;
  put_parts(frame, instr, number);
  if (counter != AX_NONE) signal_counter(run, &run->counters[counter]);
  return GOES_ON;
}

static void do_clear(const ax_executable *e, const ax_frame *frame, const ax_instr *instr, uint32_t f) {
  const ax_push *push = instr->push;
  uint32_t number = push->number[e->sets[push->set].index[f]];
  if (push->sources[number] == AX_NONE) memset(ax_address(frame, &instr->refs[1]), 0, (size_t)instr->bytes);
}

/* --- Control --- */

static bool do_wait(ax_execution *run, const ax_frame *frame, const ax_instr *instr, uint32_t f) {
  uint32_t counter = instr->sync.counter[f];
  if (counter == AX_NONE) return true;
  int64_t target = (frame->entered[instr->sync.region] + instr->sync.delta) * instr->sync.times[counter];
  return target <= 0 || await_counter(run, f, instr->sync.first + counter, (uint64_t)target, instr->sync.hard);
}

static uint32_t branch_target(const ax_frame *frame, const ax_instr *instr) {
  int32_t index = *(const int32_t *)ax_address(frame, &instr->refs[0]);
  uint32_t last = instr->branch.count - 1, chosen = index < 0 ? 0 : (uint32_t)index;
  return instr->branch.targets[chosen > last ? last : chosen];
}

static outcome fail(ax_execution *run, ax_status status) {
  lock(run);
  if (run->status == AX_OK) {
    run->status = status;
    snprintf(run->message, sizeof run->message, "%s", ax_message());
  }
  run->over = true;
  unlock(run);
  return FAILED;
}

/* Runs a frame until it waits or ends. */
static outcome run_frame(ax_execution *run, uint32_t f) {
  const ax_executable *e = run->executable;
  ax_frame *frame = &run->frames[f];
  uint32_t pc = frame->pc;
  for (;;) {
    const ax_instr *instr = &e->instrs[pc];
    uint32_t next = pc + 1;
    if ((instr->skip & frame->nonzero) != 0) {
      pc = next;
      continue;
    }
    switch (instr->kind) {
      case AX_INSTR_KERNEL:
      case AX_INSTR_GEMM: {
        ax_status status = compute(run, frame, instr);
        if (status != AX_OK) return fail(run, ax_compute_failed(instr, status));
        break;
      }
      case AX_INSTR_EVAL: {
        ax_status status = ax_compute_eval(e, frame, instr, f);
        if (status != AX_OK) return fail(run, status);
        break;
      }
      case AX_INSTR_PUSH:
        frame->pc = pc;
        if (do_push(run, frame, instr, f) == PARKED) return PARKED;
        break;
      case AX_INSTR_CLEAR: do_clear(e, frame, instr, f); break;
      case AX_INSTR_WAIT:
        frame->pc = pc;
        if (!do_wait(run, frame, instr, f)) return PARKED;
        break;
      case AX_INSTR_SIGNAL: signal_counter(run, &run->counters[instr->sync.first + instr->sync.counter[f]]); break;
      case AX_INSTR_LOOP:
        frame->iteration[instr->loop] = 0;
        if (instr->trips == 0) next = instr->target;
        break;
      case AX_INSTR_ENTER: frame->entered[instr->region]++; break;
      case AX_INSTR_NEXT:
        if (++frame->iteration[instr->loop] < instr->trips || instr->trips < 0) next = instr->target;
        break;
      case AX_INSTR_TEST:
        if (!*(const uint8_t *)ax_address(frame, &instr->refs[0])) next = instr->target;
        break;
      case AX_INSTR_BRANCH: next = branch_target(frame, instr); break;
      case AX_INSTR_JUMP: next = instr->target; break;
      case AX_INSTR_END: return FINISHED;
    }
    pc = next;
    if (run->random != 0 && (AX_HOSTILE || instr->kind >= AX_INSTR_PUSH) && next_random(run) % 4 == 0) {
      frame->pc = pc;
      return YIELDS;
    }
  }
}

/* --- Threads --- */

static ax_status take_scratch(ax_execution *run, ax_frame *frame) { /* with the lock held */
  const ax_executable *e = run->executable;
  size_t bytes = (size_t)e->spaces[e->scratch_space].bytes;
  if (bytes == 0 || frame->scratch != NULL || !e->instrs[frame->pc].scratch) return AX_OK;
  if (run->scratch_count > 0) {
    frame->scratch = run->scratch[--run->scratch_count];
  } else {
    AX_TRY(ax_grow(&run->scratch, sizeof run->scratch[0], run->scratch_count, run->scratch_made + 1, &run->scratch_capacity));
    AX_TRY(ax_pool_alloc(e->runtime, bytes, &frame->scratch));
    run->scratch_made++;
  }
  if (AX_HOSTILE) memset(frame->scratch, 0xff, bytes);
  run->part[e->spaces[e->scratch_space].first + frame->device] = frame->scratch;
  return AX_OK;
}

static void end_segment(ax_execution *run, uint32_t f, outcome how) { /* with the lock held */
  ax_frame *frame = &run->frames[f];
  run->running--;
  if (how == YIELDS) make_ready(run, f);
  if (run->idle > 0) pthread_cond_signal(&run->change);
  if (how != FINISHED && how != FAILED) return;
  frame->state = FRAME_DONE;
  run->finished++;
  if (frame->scratch != NULL) run->scratch[run->scratch_count++] = frame->scratch;
  frame->scratch = NULL;
  if (run->finished == run->executable->devices) run->over = true;
}

/* Nothing to take now. True when there never will be. */
static bool nothing_left(ax_execution *run) { /* with the lock held */
  if (run->over) return true;
  if (run->running > 0) return false;
  ax_execution_report_deadlock(run);
  run->over = true;
  return true;
}

/* False: a helper of the team may be of more use elsewhere. */
static bool wait_for_change(ax_execution *run, const ax_helper *helper) { /* with the lock held; it is let go in between */
  if (help(run)) return true;
  pthread_mutex_unlock(&run->lock);
  for (int i = 0; i < idle_spins && atomic_load_explicit(&run->ready_hint, memory_order_relaxed) == 0 &&
                  atomic_load_explicit(&run->split, memory_order_relaxed) == NULL &&
                  !atomic_load_explicit(&run->over, memory_order_relaxed);
       i++)
    ax_relax();
  pthread_mutex_lock(&run->lock);
  if (run->ready_count == 0 && !run->over && run->running > 0 && run->split == NULL) {
    if (helper != NULL && ax_helper_leaves(helper)) return false;
    run->idle++;
    pthread_cond_wait(&run->change, &run->lock);
    run->idle--;
  }
  return true;
}

static void nudge(void *context) {
  ax_execution *run = context;
  pthread_mutex_lock(&run->lock);
  if (run->idle > 0) pthread_cond_broadcast(&run->change);
  pthread_mutex_unlock(&run->lock);
}

static void work(void *context, const ax_helper *helper) {
  ax_execution *run = context;
  int threads = omp_get_max_threads(); /* the libraries' own threads would fight with ours */
  if (threads != 1) omp_set_num_threads(1);
  bool stays = true;
  lock(run);
  while (!run->over) {
    uint32_t f = take_ready(run);
    if (f == AX_NONE) {
      if (nothing_left(run)) break;
      stays = wait_for_change(run, helper);
      if (!stays) break;
      continue;
    }
    ax_status status = take_scratch(run, &run->frames[f]);
    run->running++;
    run->frames[f].state = FRAME_ACTIVE;
    unlock(run);
    outcome how = status == AX_OK ? run_frame(run, f) : fail(run, status);
    lock(run);
    end_segment(run, f, how);
  }
  if (stays) run->over = true;
  if (stays && run->threaded) pthread_cond_broadcast(&run->change);
  unlock(run);
  if (threads != 1) omp_set_num_threads(threads);
}

/* --- Calls --- */

static ax_execution *idle_run(ax_executable *e) {
  pthread_mutex_lock(&e->lock);
  ax_execution *run = e->idle;
  if (run != NULL) e->idle = run->next;
  pthread_mutex_unlock(&e->lock);
  return run;
}

static void keep_run(ax_executable *e, ax_execution *run) {
  pthread_mutex_lock(&e->lock);
  run->next = e->idle;
  e->idle = run;
  pthread_mutex_unlock(&e->lock);
}

ax_status ax_execute(ax_executable *e, ax_parts *const *inputs, ax_parts *const *outputs, const void *owner, bool *began) {
  const ax_runtime_options *options = &e->runtime->options;
  ax_execution *run = idle_run(e);
  *began = false;
  if (run == NULL) AX_TRY(ax_execution_create(e, &run));
  *began = true;
  ax_execution_reset(run, inputs, outputs);
  run->random = options->policy == AX_POLICY_SEEDED ? options->seed | 1ull << 63 : 0;
  uint32_t threads = e->splits || options->workers < e->devices ? options->workers : e->devices;
  run->threaded = threads > 1 && e->threaded && ax_workers_any(e->runtime->workers);
  if (run->threaded) ax_workers_call(e->runtime->workers, &(ax_job){work, nudge, run, owner, .wanted = threads - 1});
  else work(run, NULL);
  ax_status status = run->status != AX_OK ? ax_error(run->status, "%s", run->message) : AX_OK;
  if (status == AX_OK)
    keep_run(e, run);
  else
    ax_execution_destroy(e, run);
  return status;
}
