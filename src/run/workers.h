/* A team of threads that serves all runs of a runtime at once.

     job    work that its caller's thread does, and in which other threads may help as long as it lasts: a run that is going on
     task   work that any one thread does, once: a run that was started and has not begun

   Idle threads take the oldest task, or else help in the job that has the fewest helpers. A helper without work in its job asks
   whether new work has come that lacks threads, and then leaves. The caller of a job stays until its end. At most one thread more
   than the team has works on jobs at any time. If there are that many callers, no thread of the team helps or spins, since it would
   take a processor from a caller.

   A team without threads works too: callers do their jobs, and threads that wait for a task do it. */
#ifndef AX_RUN_WORKERS_H
#define AX_RUN_WORKERS_H

#include <stdatomic.h>

#include "base/base.h"

typedef struct ax_workers ax_workers;

/* A thread that helps in a job it did not start. */
typedef struct ax_helper {
  ax_workers *workers;
  uint32_t seen; /* jobs and tasks that had come when it joined */
  const _Atomic bool *until; /* a flag that ends its help when set; NULL: none */
} ax_helper;

typedef struct ax_job {
  /* Works on the job. helper NULL: the caller's own thread, which stays to the end. False: nothing is left to do, and no more
     helpers are needed. */
  bool (*work)(void *context, const ax_helper *helper);
  void (*nudge)(void *context); /* makes helpers that sleep in the job ask whether to leave */
  void *context;
  uint64_t number; /* see ax_workers_help; 0: only its caller waits for it */
  uint32_t wanted; /* helpers it can use */
  bool late;       /* helpers come only once ax_workers_ask is called */
  /* the team's */
  bool asked;
  int processor;   /* processor of the thread that asked */
  _Atomic uint32_t joined; /* written with the team's lock held */
  struct ax_job *next;
} ax_job;

typedef struct ax_task {
  bool (*perform)(struct ax_task *task); /* false: the team was destroyed meanwhile and must not be touched */
  /* the team's */
  struct ax_task *next, *before;
  bool queued;
} ax_task;

/* Makes a team of `count` threads, or as many as the system gives. */
AX_MUST_USE ax_status ax_workers_create(uint32_t count, ax_workers **out);
/* May be called from any thread, one of the team's too. In a process forked from the one that made the team there are no threads
   to end. */
void ax_workers_destroy(ax_workers *workers);
bool ax_workers_any(const ax_workers *workers); /* it has threads */
/* Does the job, with helpers, and returns when all have left it. */
void ax_workers_call(ax_workers *workers, ax_job *job);
/* Called inside a job, by a thread that works on it: helpers may come from now on. Before that only the caller's own thread
   works on the job, and its end waits for no other. */
void ax_workers_ask(ax_workers *workers, ax_job *job);
/* Helps in a job whose number is at most this one. Returns when the job is over, when other work lacks threads more, or when
   *until is set (which ax_workers_tell announces). False: there is no such job, or none needs help. */
bool ax_workers_help(ax_workers *workers, uint64_t number, const _Atomic bool *until);
/* True if a job or task has come since the helper joined and some lack threads; or if the helper is to stay no longer. */
bool ax_helper_leaves(const ax_helper *helper);

/* Notes a long wait for a helper that only had to leave or to end something short: the helper had lost its processor. For a time
   many times as long, short jobs are better done without helpers. ax_workers_held_up says so; its argument is the least number of
   nanoseconds that this state must still last. */
void ax_workers_note_wait(ax_workers *workers, int64_t nanoseconds);
/* Notes the same for shared work: the nanoseconds that helpers saved, and those spent on calling them and waiting for them. */
void ax_workers_note_help(ax_workers *workers, int64_t saved, int64_t lost);
bool ax_workers_held_up(const ax_workers *workers, int64_t longer_than);

void ax_workers_push(ax_workers *workers, ax_task *task);
/* _news: a number that changes with each new task, with each job that may be helped in, and with each ax_workers_tell. _await:
   returns once the number is no longer `seen`. */
uint32_t ax_workers_news(const ax_workers *workers);
void ax_workers_await(ax_workers *workers, uint32_t seen);
void ax_workers_tell(ax_workers *workers);
/* Takes `task` out of the queue, or the oldest task if it is NULL. NULL: it is not there. */
ax_task *ax_workers_pull(ax_workers *workers, ax_task *task);

#endif
