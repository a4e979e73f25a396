/* The team: see workers.h. Threads with nothing to do spin for a moment, since the next step of a training loop comes soon, then sleep;
   so does a caller until its helpers have left. */
#include "exec/workers.h"

#include <pthread.h>
#include <unistd.h>

#include "exec/float_mode.h"

enum { spins = 20000 };

struct ax_workers {
  pid_t process;  /* that has the threads: a forked child has none */
  uint32_t count; /* of them */
  pthread_t *threads;
  pthread_mutex_t lock;
  pthread_cond_t wake, left;
  _Atomic uint32_t news; /* changes when there is a job or a task more */
  _Atomic uint32_t came;    /* jobs and tasks so far */
  _Atomic uint32_t lacking; /* tasks that wait, and jobs that could use more helpers than they have */
  uint32_t free;         /* threads with nothing to do */
  ax_job *jobs;
  ax_task *first_task, *last_task;
  bool stop;
};

/* --- Jobs and tasks, with the lock held --- */

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
  for (ax_job *job = workers->jobs; job != NULL; job = job->next)
    if (lacks(job) && (best == NULL || job->joined < best->joined)) best = job;
  return best;
}

/* Lets go of the lock in between. */
static void join(ax_workers *workers, ax_job *job) {
  const ax_helper helper = {workers, atomic_load(&workers->came)};
  set_helpers(workers, job, job->wanted, job->joined + 1);
  pthread_mutex_unlock(&workers->lock);
  job->work(job->context, &helper);
  pthread_mutex_lock(&workers->lock);
  set_helpers(workers, job, job->wanted, job->joined - 1);
  if (job->joined == 0) pthread_cond_broadcast(&workers->left);
}

/* `task`, or the oldest when NULL. NULL: it is not there. */
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

static void spin_and_sleep(ax_workers *workers) { /* with the lock held; it is let go in between */
  uint32_t seen = atomic_load(&workers->news);
  workers->free++;
  pthread_mutex_unlock(&workers->lock);
  for (uint32_t i = 0; i < spins && atomic_load_explicit(&workers->news, memory_order_relaxed) == seen; i++) ax_relax();
  pthread_mutex_lock(&workers->lock);
  while (atomic_load(&workers->news) == seen && !workers->stop) pthread_cond_wait(&workers->wake, &workers->lock);
  workers->free--;
}

static void *thread_main(void *argument) {
  ax_workers *workers = argument;
  ax_float_mode_enter(); /* whatever the thread that made the team had */
  pthread_mutex_lock(&workers->lock);
  while (!workers->stop) {
    ax_task *task = pull(workers, NULL);
    ax_job *job = task == NULL ? job_to_help(workers) : NULL;
    if (task != NULL) {
      pthread_mutex_unlock(&workers->lock);
      if (!task->perform(task)) return NULL;
      pthread_mutex_lock(&workers->lock);
    } else if (job != NULL) {
      join(workers, job);
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
  pthread_mutex_init(&workers->lock, NULL);
  pthread_cond_init(&workers->wake, NULL);
  pthread_cond_init(&workers->left, NULL);
  workers->threads = ax_calloc(count, sizeof workers->threads[0]);
  if (workers->threads == NULL) {
    ax_workers_destroy(workers);
    *out = NULL;
    return ax_out_of_memory(count * sizeof workers->threads[0]);
  }
  while (workers->count < count) { /* fewer threads than asked for still do the work */
    if (pthread_create(&workers->threads[workers->count], NULL, thread_main, workers) != 0) break;
    workers->count++;
  }
  return AX_OK;
}

static void end_threads(ax_workers *workers) {
  pthread_mutex_lock(&workers->lock);
  workers->stop = true;
  atomic_fetch_add(&workers->news, 1);
  pthread_cond_broadcast(&workers->wake);
  pthread_mutex_unlock(&workers->lock);
  for (uint32_t i = 0; i < workers->count; i++) {
    if (pthread_equal(workers->threads[i], pthread_self())) pthread_detach(pthread_self()); /* and returns from its task's perform */
    else pthread_join(workers->threads[i], NULL);
  }
  pthread_cond_destroy(&workers->wake);
  pthread_cond_destroy(&workers->left);
  pthread_mutex_destroy(&workers->lock);
}

void ax_workers_destroy(ax_workers *workers) {
  if (workers == NULL) return;
  if (workers->process == getpid()) end_threads(workers); /* else even the lock may be held for ever */
  ax_free(workers->threads);
  ax_free(workers);
}

bool ax_workers_any(const ax_workers *workers) { return workers->count > 0 && workers->process == getpid(); }

/* --- Jobs --- */

bool ax_helper_leaves(const ax_helper *helper) {
  const ax_workers *workers = helper->workers;
  return atomic_load(&workers->came) != helper->seen && atomic_load(&workers->lacking) > 0;
}

/* Something has come: wakes the free, and when they are too few, the helpers that sleep in other jobs. With the lock held. */
static void tell(ax_workers *workers, uint32_t wanted) {
  atomic_fetch_add_explicit(&workers->news, 1, memory_order_release);
  pthread_cond_broadcast(&workers->wake);
  if (wanted <= workers->free) return;
  for (ax_job *job = workers->jobs; job != NULL; job = job->next)
    if (job->joined > 0) job->nudge(job->context);
}

void ax_workers_call(ax_workers *workers, ax_job *job) {
  if (!ax_workers_any(workers)) {
    job->work(job->context, NULL);
    return;
  }
  pthread_mutex_lock(&workers->lock);
  job->joined = 0;
  atomic_fetch_add(&workers->came, 1);
  atomic_fetch_add(&workers->lacking, lacks(job) ? 1 : 0);
  tell(workers, job->wanted);
  job->next = workers->jobs;
  workers->jobs = job;
  pthread_mutex_unlock(&workers->lock);
  job->work(job->context, NULL);
  pthread_mutex_lock(&workers->lock);
  set_helpers(workers, job, 0, job->joined); /* who has not come yet need not */
  pthread_mutex_unlock(&workers->lock);
  for (uint32_t i = 0; i < spins && atomic_load_explicit(&job->joined, memory_order_relaxed) > 0; i++) ax_relax();
  pthread_mutex_lock(&workers->lock);
  while (job->joined > 0) pthread_cond_wait(&workers->left, &workers->lock);
  ax_job **link = &workers->jobs;
  while (*link != job) link = &(*link)->next;
  *link = job->next;
  pthread_mutex_unlock(&workers->lock);
}

bool ax_workers_help(ax_workers *workers, const void *owner) {
  pthread_mutex_lock(&workers->lock);
  ax_job *job = workers->jobs;
  while (job != NULL && (job->owner != owner || !lacks(job))) job = job->next;
  if (job != NULL) join(workers, job);
  pthread_mutex_unlock(&workers->lock);
  return job != NULL;
}

/* --- News --- */

uint32_t ax_workers_news(const ax_workers *workers) { return atomic_load(&workers->news); }

void ax_workers_await(ax_workers *workers, uint32_t seen) {
  pthread_mutex_lock(&workers->lock);
  while (atomic_load(&workers->news) == seen) pthread_cond_wait(&workers->wake, &workers->lock);
  pthread_mutex_unlock(&workers->lock);
}

void ax_workers_tell(ax_workers *workers) {
  pthread_mutex_lock(&workers->lock);
  tell(workers, 0);
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
  pthread_mutex_unlock(&workers->lock);
}

ax_task *ax_workers_pull(ax_workers *workers, ax_task *task) {
  pthread_mutex_lock(&workers->lock);
  ax_task *pulled = pull(workers, task);
  pthread_mutex_unlock(&workers->lock);
  return pulled;
}
