/* A team of threads that serves all runs of a runtime at once.

     job    something that a thread does for itself and in which others may help, as long as it lasts: a run that is going on
     task   something that any thread may do, once: a run that was started and nobody has begun

   Threads with nothing to do take the oldest task, or else help in the job that has the fewest helpers. A helper that finds nothing
   to do in its job asks whether others have come since that lack threads, and then leaves. The caller of a job stays until its end.
   No more threads work on jobs than the team has and one caller: when there are as many callers, nobody helps, and nobody spins,
   since each would take a processor from somebody with work of his own. A team without threads is sound: jobs are done by their
   callers, tasks by who waits for them. */
#ifndef AX_EXEC_WORKERS_H
#define AX_EXEC_WORKERS_H

#include <stdatomic.h>

#include "base/base.h"

typedef struct ax_workers ax_workers;

/* A thread that helps in a job it did not start. */
typedef struct ax_helper {
  ax_workers *workers;
  uint32_t seen; /* jobs and tasks that had come when it joined */
  const _Atomic bool *until; /* what it waits for besides is true; NULL: nothing */
} ax_helper;

typedef struct ax_job {
  /* helper NULL: the caller's own thread, which stays to the end. False: nothing is left to do, and no helper need come any
     more. */
  bool (*work)(void *context, const ax_helper *helper);
  void (*nudge)(void *context); /* helpers that sleep in it should ask whether to leave */
  void *context;
  uint64_t number; /* see ax_workers_help; 0: its caller waits for it, nobody else */
  uint32_t wanted; /* helpers it can use */
  bool late;       /* but only from when it asks for them on: see ax_workers_ask */
  /* the team's */
  bool asked;
  int processor;   /* on which it was asked for */
  _Atomic uint32_t joined; /* written with its lock held */
  struct ax_job *next;
} ax_job;

typedef struct ax_task {
  bool (*perform)(struct ax_task *task); /* false: the team is gone since, and nothing of it may be touched */
  /* the team's */
  struct ax_task *next, *before;
  bool queued;
} ax_task;

/* `count` threads, or as many as the system gives. */
AX_MUST_USE ax_status ax_workers_create(uint32_t count, ax_workers **out);
/* From any thread, one of the team's too. In a process forked from the one that made the team there are no threads to end. */
void ax_workers_destroy(ax_workers *workers);
bool ax_workers_any(const ax_workers *workers); /* it has threads */
/* Does the job, with helpers, and returns when all have left it. */
void ax_workers_call(ax_workers *workers, ax_job *job);
/* Inside of a job, on a thread that works on it: helpers may come from now on. Until then only the caller's own thread is there,
   and its end waits for nobody. */
void ax_workers_ask(ax_workers *workers, ax_job *job);
/* Helps in a job whose number is not greater than this, until it is over, or others lack threads more, or `until`, of which
   ax_workers_tell tells. False: no such job, or none wants anybody. */
bool ax_workers_help(ax_workers *workers, uint64_t number, const _Atomic bool *until);
/* True when a job or task came since the helper joined its own, and some lack threads; or when it is to stay no longer. */
bool ax_helper_leaves(const ax_helper *helper);

/* Who has waited so long for a helper that had nothing more to do than to leave, or to end what takes an instant, tells of it: the
   helper had no processor. For some time, many times as long, short jobs are then better done alone, as ax_workers_held_up says:
   for longer than so many nanoseconds from now on. */
void ax_workers_note_wait(ax_workers *workers, int64_t nanoseconds);
/* The same of work that was shared: what helpers saved, and what calling them and waiting for them took. */
void ax_workers_note_help(ax_workers *workers, int64_t saved, int64_t lost);
bool ax_workers_held_up(const ax_workers *workers, int64_t longer_than);

void ax_workers_push(ax_workers *workers, ax_task *task);
/* A number that changes with each task that comes and each job that may be helped in, and whenever somebody tells; sleeps while it
   is still
   `seen`. */
uint32_t ax_workers_news(const ax_workers *workers);
void ax_workers_await(ax_workers *workers, uint32_t seen);
void ax_workers_tell(ax_workers *workers);
/* Takes `task` out of those that wait, or the oldest when NULL. NULL: it is not there. */
ax_task *ax_workers_pull(ax_workers *workers, ax_task *task);

#endif
