/* The team: see workers.h. Threads with nothing to do spin for a moment, since the next step of a training loop comes soon, then
   sleep; so does a caller until its helpers have left.

   When callers leave no room for helpers, one of the free threads looks every now and then whether there is some again: callers
   that run one small job after another leave it for an instant only, and to wake somebody at the end of each would cost more
   than the help is worth.

   On a busy machine a helper may lose its processor for milliseconds, in which a job of microseconds waits for it. After that short
   jobs are done without helpers for a while: for as long as the wait was, and when the next such wait comes before this one is made
   up for, four times as long each time, up to sixteen times, so that they take a small part of the time and one wait now and then
   costs little. A wait is made up for by what helpers save since, and by time. An account is kept of what helpers save and what
   they cost: a debt counts as such a wait. A thirty-second of the time may be lost besides, of what they saved lately a few waits
   are not forgotten, and there is as much to begin with: or a wait now and then, on a machine that is busy now and then, would end
   most of the help. */
#include "run/workers.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "machine/processor.h"

enum {
  spins = 20000,
  watch_nanoseconds = 1000000,
  long_wait = 200000,
  most_times_alone = 16,
  makes_up = 256,
  allowed = 32,
  most_alone = 500000000,
  most_credit = 10000000
};

struct ax_workers {
  pid_t process;  /* process that has the threads: a forked child has none */
  uint32_t count; /* of them */
  pthread_t *threads;
  _Alignas(64) pthread_mutex_t lock; /* no thread writes the fields above once the team runs */
  pthread_cond_t wake; /* for threads of the team */
  pthread_cond_t told; /* wakes threads that wait for news */
  pthread_cond_t left; /* wakes callers that wait for their helpers to leave */
  _Atomic uint32_t news;    /* see ax_workers_news */
  _Atomic uint32_t came;    /* number of jobs and tasks so far */
  _Atomic uint32_t lacking; /* number of waiting tasks, and of jobs that could use more helpers */
  _Atomic uint32_t active;  /* number of callers of jobs, and of their helpers */
  _Atomic int64_t alone_until; /* nanoseconds of the monotonic clock: until then helpers count as held up */
  _Atomic int64_t times_alone; /* factor by which that time exceeds the last wait */
  _Atomic int64_t owed, owed_at; /* nanoseconds of waits not made up for, as of owed_at */
  _Atomic int64_t debt, debt_at; /* nanoseconds that helpers cost beyond their allowance, as of debt_at; below 0: credit */
  uint32_t free;            /* number of idle threads of the team */
  uint32_t visitors;        /* number of helpers that also wait for something else */
  bool watched;             /* a thread of the team looks for room */
  ax_job *jobs;
  ax_task *first_task, *last_task;
  bool stop;
};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* --- Jobs and tasks, with the lock held --- */

/* Says whether one more thread may work on a job. Callers' threads count too, so that there are no more threads at work than
   processors. */
static bool room(const ax_workers *workers) { return atomic_load(&workers->active) <= workers->count; }

/* Says whether jobs or tasks lack threads that have no room to come. */
static bool crowded(const ax_workers *workers) { return atomic_load(&workers->lacking) > 0 && !room(workers); }

static bool lacks(const ax_job *job) { return job->joined < job->wanted; }

static void set_helpers(ax_workers *workers, ax_job *job, uint32_t wanted, uint32_t joined) {
  bool before = lacks(job);
  job->wanted = wanted;
  job->joined = joined;
  if (lacks(job) && !before) atomic_fetch_add(&workers->lacking, 1);
  if (!lacks(job) && before) atomic_fetch_sub(&workers->lacking, 1);
}

static ax_job *job_to_help(const ax_workers *workers) {
  ax_job *best = NULL;
  if (!room(workers)) return NULL;
  for (ax_job *job = workers->jobs; job != NULL; job = job->next)
    if (lacks(job) && (best == NULL || job->joined < best->joined)) best = job;
  return best;
}

/* Wakes one thread of the team, or all if more are wanted; and all threads that wait for news. */
static void tell(ax_workers *workers, uint32_t wanted) {
  atomic_fetch_add_explicit(&workers->news, 1, memory_order_release);
  if (wanted > 1) pthread_cond_broadcast(&workers->wake);
  if (wanted == 1) pthread_cond_signal(&workers->wake);
  pthread_cond_broadcast(&workers->told);
}

/* A thread that has found work wakes the next one, so that no more are woken than there is room for. */
static void tell_next(ax_workers *workers) {
  if (workers->free > 0 && atomic_load(&workers->lacking) > 0 && room(workers)) tell(workers, 1);
}

/* Helps in the job until nothing is left to do or the helper is to leave. The lock is released meanwhile. A finished job wants
   no more helpers, even if its caller, which may have no processor, has not said so yet: other helpers would leave at once, and
   come again. */
static void join(ax_workers *workers, ax_job *job, const _Atomic bool *until) {
  const ax_helper helper = {workers, atomic_load(&workers->came), until};
  set_helpers(workers, job, job->wanted, job->joined + 1);
  atomic_fetch_add(&workers->active, 1);
  workers->visitors += until != NULL;
  tell_next(workers);
  const int processor =
      until == NULL ? job->processor : AX_NO_PROCESSOR; /* a visitor, perhaps a user's thread, stays on its processor */
  pthread_mutex_unlock(&workers->lock);
  ax_processor_leave(processor);
  const bool more = job->work(job->context, &helper);
  pthread_mutex_lock(&workers->lock);
  workers->visitors -= until != NULL;
  atomic_fetch_sub(&workers->active, 1);
  set_helpers(workers, job, more ? job->wanted : 0, job->joined - 1);
  if (job->joined == 0) pthread_cond_broadcast(&workers->left);
  if (until != NULL) tell_next(workers); /* visitors do not look for other jobs */
}

/* Takes `task`, or the oldest one when `task` is NULL, out of the queue. NULL: it is not queued, or none is. */
static ax_task *pull(ax_workers *workers, ax_task *task) {
  if (task == NULL) task = workers->first_task;
  if (task == NULL || !task->queued) return NULL;
  *(task->before != NULL ? &task->before->next : &workers->first_task) = task->next;
  *(task->next != NULL ? &task->next->before : &workers->last_task) = task->before;
  task->queued = false;
  atomic_fetch_sub(&workers->lacking, 1);
  return task;
}

/* --- Threads --- */

static void spin_for_news(const ax_workers *workers, uint32_t seen) {
  for (uint32_t i = 0; i < spins && atomic_load_explicit(&workers->news, memory_order_relaxed) == seen && room(workers); i++)
    ax_wait_turn(i);
}

static void watch(ax_workers *workers) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += watch_nanoseconds;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  workers->watched = true;
  pthread_cond_timedwait(&workers->wake, &workers->lock, &until);
  workers->watched = false;
}

static void spin_and_sleep(ax_workers *workers) { /* with the lock held; it is let go in between */
  uint32_t seen = atomic_load(&workers->news);
  workers->free++;
  pthread_mutex_unlock(&workers->lock);
  spin_for_news(workers, seen);
  pthread_mutex_lock(&workers->lock);
  while (atomic_load(&workers->news) == seen && !workers->stop) {
    if (job_to_help(workers) != NULL) break; /* there is room now, which is not announced */
    if (!crowded(workers) || workers->watched) {
      pthread_cond_wait(&workers->wake, &workers->lock);
    } else {
      watch(workers);
      break;
    }
  }
  workers->free--;
}

static void *thread_main(void *argument) {
  ax_workers *workers = argument;
  pthread_mutex_lock(&workers->lock);
  while (!workers->stop) {
    ax_task *task = pull(workers, NULL);
    ax_job *job = task == NULL ? job_to_help(workers) : NULL;
    if (task != NULL) {
      pthread_mutex_unlock(&workers->lock);
      if (!task->perform(task)) return NULL;
      pthread_mutex_lock(&workers->lock);
    } else if (job != NULL) {
      join(workers, job, NULL);
    } else {
      spin_and_sleep(workers);
    }
  }
  pthread_mutex_unlock(&workers->lock);
  return NULL;
}

ax_status ax_workers_create(uint32_t count, ax_workers **out) {
  ax_workers *workers = *out = ax_calloc(1, sizeof *workers);
  if (workers == NULL) return ax_out_of_memory(sizeof *workers);
  workers->process = getpid();
  workers->debt = -most_credit; /* helpers begin with credit */
  workers->debt_at = now();
  pthread_mutex_init(&workers->lock, NULL);
  pthread_condattr_t by_clock;
  pthread_condattr_init(&by_clock);
  pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
  pthread_cond_init(&workers->wake, &by_clock);
  pthread_condattr_destroy(&by_clock);
  pthread_cond_init(&workers->told, NULL);
  pthread_cond_init(&workers->left, NULL);
  workers->threads = ax_calloc(count, sizeof workers->threads[0]);
  if (workers->threads == NULL) {
    ax_workers_destroy(workers);
    *out = NULL;
    return ax_out_of_memory(count * sizeof workers->threads[0]);
  }
  pthread_mutex_lock(&workers->lock); /* threads wait for the lock until their number is known */
  while (workers->count < count) {    /* fewer threads than asked for still do the work */
    if (pthread_create(&workers->threads[workers->count], NULL, thread_main, workers) != 0) break;
    workers->count++;
  }
  pthread_mutex_unlock(&workers->lock);
  return AX_OK;
}

static void end_threads(ax_workers *workers) {
  pthread_mutex_lock(&workers->lock);
  workers->stop = true;
  atomic_fetch_add(&workers->news, 1);
  pthread_cond_broadcast(&workers->wake);
  pthread_mutex_unlock(&workers->lock);
  for (uint32_t i = 0; i < workers->count; i++) {
    if (pthread_equal(workers->threads[i], pthread_self()))
      pthread_detach(pthread_self()); /* and returns from its task's perform */
    else pthread_join(workers->threads[i], NULL);
  }
  pthread_cond_destroy(&workers->wake);
  pthread_cond_destroy(&workers->told);
  pthread_cond_destroy(&workers->left);
  pthread_mutex_destroy(&workers->lock);
}

void ax_workers_destroy(ax_workers *workers) {
  if (workers == NULL) return;
  if (workers->process == getpid()) end_threads(workers); /* in a forked process even the lock may be held for ever */
  ax_free(workers->threads);
  ax_free(workers);
}

bool ax_workers_any(const ax_workers *workers) { return workers->count > 0 && workers->process == getpid(); }

/* --- Jobs --- */

bool ax_helper_leaves(const ax_helper *helper) {
  const ax_workers *workers = helper->workers;
  if (helper->until != NULL && atomic_load(helper->until)) return true;
  return atomic_load(&workers->came) != helper->seen && atomic_load(&workers->lacking) > 0;
}

/* --- News, with the lock held --- */

static void nudge_helpers(ax_workers *workers) {
  for (ax_job *job = workers->jobs; job != NULL; job = job->next)
    if (job->joined > 0) job->nudge(job->context);
}

static void ask(ax_workers *workers, ax_job *job) {
  pthread_mutex_lock(&workers->lock);
  job->asked = true;
  job->processor = ax_processor();
  job->joined = 0;
  atomic_fetch_add(&workers->came, 1);
  atomic_fetch_add(&workers->lacking, lacks(job) ? 1 : 0);
  if (room(workers)) tell(workers, job->wanted);
  else if (!workers->watched) tell(workers, 1);
  if (job->wanted > workers->free) nudge_helpers(workers); /* too few are idle: some must come from other jobs */
  job->next = workers->jobs;
  workers->jobs = job;
  pthread_mutex_unlock(&workers->lock);
}

void ax_workers_note_wait(ax_workers *workers, int64_t nanoseconds) {
  if (nanoseconds < long_wait) return;
  const int64_t time = now(), since = time - atomic_load_explicit(&workers->owed_at, memory_order_relaxed);
  int64_t owed = atomic_load_explicit(&workers->owed, memory_order_relaxed) - since / makes_up;
  int64_t times = owed > 0 ? 4 * atomic_load_explicit(&workers->times_alone, memory_order_relaxed) : 1;
  if (times < 1) times = 1; /* another thread may be writing it just now */
  if (times > most_times_alone) times = most_times_alone;
  int64_t alone = nanoseconds < most_alone / times ? nanoseconds * times : most_alone;
  if (owed < 0) owed = 0;
  atomic_store_explicit(&workers->owed, owed < most_alone ? owed + nanoseconds : owed, memory_order_relaxed);
  atomic_store_explicit(&workers->owed_at, time, memory_order_relaxed);
  atomic_store_explicit(&workers->times_alone, times, memory_order_relaxed);
  atomic_store_explicit(&workers->alone_until, time + alone, memory_order_relaxed);
}

void ax_workers_note_help(ax_workers *workers, int64_t saved, int64_t lost) {
  const int64_t owed = atomic_load_explicit(&workers->owed, memory_order_relaxed);
  int64_t debt = atomic_load_explicit(&workers->debt, memory_order_relaxed) + lost - saved;
  if (owed > 0) atomic_store_explicit(&workers->owed, owed - saved, memory_order_relaxed);
  if (debt >= long_wait) { /* the clock is read only now, when it matters */
    const int64_t time = now();
    debt -= (time - atomic_exchange_explicit(&workers->debt_at, time, memory_order_relaxed)) / allowed;
  }
  if (debt < -most_credit) debt = -most_credit;
  ax_workers_note_wait(workers, debt);
  atomic_store_explicit(&workers->debt, debt < long_wait ? debt : 0, memory_order_relaxed);
}

bool ax_workers_held_up(const ax_workers *workers, int64_t longer_than) {
  int64_t until = atomic_load_explicit(&workers->alone_until, memory_order_relaxed);
  return until != 0 && now() + longer_than < until;
}

/* The caller's own thread is done. */
static void end(ax_workers *workers, ax_job *job) {
  pthread_mutex_lock(&workers->lock);
  set_helpers(workers, job, 0, job->joined); /* threads that have not come yet need not come */
  pthread_mutex_unlock(&workers->lock);
  const bool helped = atomic_load_explicit(&job->joined, memory_order_relaxed) > 0;
  const int64_t since = helped ? now() : 0;
  for (uint32_t i = 0; i < spins && atomic_load_explicit(&job->joined, memory_order_relaxed) > 0; i++) ax_wait_turn(i);
  pthread_mutex_lock(&workers->lock);
  while (job->joined > 0) pthread_cond_wait(&workers->left, &workers->lock);
  ax_job **link = &workers->jobs;
  while (*link != job) link = &(*link)->next;
  *link = job->next;
  atomic_fetch_sub(&workers->active, 1);
  pthread_mutex_unlock(&workers->lock);
  const int64_t waited = helped ? now() - since : 0;
  if (waited >= long_wait) ax_workers_note_help(workers, 0, waited);
}

void ax_workers_call(ax_workers *workers, ax_job *job) {
  if (!ax_workers_any(workers)) {
    job->work(job->context, NULL);
    return;
  }
  job->asked = false;
  atomic_fetch_add(&workers->active, 1);
  if (!job->late) ask(workers, job);
  job->work(job->context, NULL);
  if (job->asked) end(workers, job);
  else atomic_fetch_sub(&workers->active, 1);
}

void ax_workers_ask(ax_workers *workers, ax_job *job) {
  if (!job->asked) ask(workers, job);
}

bool ax_workers_help(ax_workers *workers, uint64_t number, const _Atomic bool *until) {
  pthread_mutex_lock(&workers->lock);
  ax_job *job = room(workers) ? workers->jobs : NULL;
  while (job != NULL && (job->number == 0 || job->number > number || !lacks(job))) job = job->next;
  if (job != NULL) join(workers, job, until);
  pthread_mutex_unlock(&workers->lock);
  return job != NULL;
}

/* --- News --- */

uint32_t ax_workers_news(const ax_workers *workers) { return atomic_load(&workers->news); }

void ax_workers_await(ax_workers *workers, uint32_t seen) {
  spin_for_news(workers, seen);
  pthread_mutex_lock(&workers->lock);
  while (atomic_load(&workers->news) == seen) pthread_cond_wait(&workers->told, &workers->lock);
  pthread_mutex_unlock(&workers->lock);
}

void ax_workers_tell(ax_workers *workers) {
  pthread_mutex_lock(&workers->lock);
  tell(workers, 0);
  if (workers->visitors > 0) nudge_helpers(workers);
  pthread_mutex_unlock(&workers->lock);
}

/* --- Tasks --- */

void ax_workers_push(ax_workers *workers, ax_task *task) {
  pthread_mutex_lock(&workers->lock);
  task->next = NULL;
  task->before = workers->last_task;
  task->queued = true;
  *(task->before != NULL ? &task->before->next : &workers->first_task) = task;
  workers->last_task = task;
  atomic_fetch_add(&workers->came, 1);
  atomic_fetch_add(&workers->lacking, 1);
  tell(workers, 1);
  if (workers->free == 0) nudge_helpers(workers);
  pthread_mutex_unlock(&workers->lock);
}

ax_task *ax_workers_pull(ax_workers *workers, ax_task *task) {
  pthread_mutex_lock(&workers->lock);
  ax_task *pulled = pull(workers, task);
  pthread_mutex_unlock(&workers->lock);
  return pulled;
}
