#include "processes/opening_watch.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "processes/load.h"

/* --- What is said --- */

enum { most_named = 8 };

static void add_awaited(ax_text *text, uint32_t process, uint32_t processes, const ax_sibling *sibling) {
  ax_text_add(text, "process %u of %u, which ", process, processes);
  if (sibling->state == AX_SIBLING_UNSEEN) ax_text_add(text, "is not seen: it has ended, or hides its environment");
  else if (sibling->stopped) ax_text_add(text, "is stopped (pid %d, %s)", (int)sibling->pid, sibling->program);
  else ax_text_add(text, "has not come (pid %d, %s)", (int)sibling->pid, sibling->program);
}

/* Those that were started here and keep the others waiting. A process that is not seen may be on another machine, if there is one. */
static bool keeps_waiting(const ax_opening *o, const ax_sibling *sibling) {
  if (sibling->state == AX_SIBLING_UNSEEN) return o->here == o->processes;
  return sibling->state == AX_SIBLING_ELSEWHERE || sibling->stopped;
}

static uint32_t add_all_awaited(const ax_opening *o, const ax_sibling *of, ax_text *text) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < o->processes; i++) {
    if (!keeps_waiting(o, &of[i]) || count++ >= most_named) continue;
    ax_text_add(text, count > 1 ? "; for " : " for ");
    add_awaited(text, i, o->processes, &of[i]);
  }
  if (count > most_named) ax_text_add(text, "; and for %u more", count - most_named);
  return count;
}

/* Nobody is seen that keeps the others waiting. */
static void add_others(const ax_opening *o, uint32_t seen, ax_text *text) {
  if (o->of_some) ax_text_add(text, " for others of its communicator");
  else if (seen == o->processes) ax_text_add(text, " for others to be ready, or for MPI: all %u processes have come", o->processes);
  else if (o->here > seen) ax_text_add(text, " for %u of the %u processes of this machine, which are not seen", o->here - seen, o->here);
  else ax_text_add(text, " for some of the %u processes, which are on other machines or are not seen", o->processes);
}

void ax_opening_say(const ax_opening *o, const ax_sibling *of, ax_text *text) {
  uint32_t come = 0, seen = 0;
  for (uint32_t i = 0; i < o->processes; i++) {
    const bool comes = of[i].state == AX_SIBLING_COME && !of[i].stopped;
    seen += of[i].state != AX_SIBLING_UNSEEN;
    if (comes && i < o->process) return; /* that one says it */
    come += comes;
  }
  ax_text line = {0};
  ax_text_add(&line, come > 1 && !o->of_some ? "axle: process %u and %u more wait in ax_runtime_create" : "axle: process %u waits in ax_runtime_create",
              o->process, come - 1);
  const bool named = !o->of_some && add_all_awaited(o, of, &line) > 0;
  const bool of_all_machines = o->process == 0 || o->of_some || o->here > seen; /* where nobody is seen, one machine speaks for all */
  if (!named) add_others(o, seen, &line);
  if (line.data != NULL && !line.failed && (named || of_all_machines)) ax_text_add(text, "%s\n", line.data);
  ax_text_deinit(&line);
}

/* --- The thread --- */

struct ax_opening_watch {
  ax_stalls stalls;
  ax_opening opening;
  const char *variable;
  pthread_t thread;
  pthread_mutex_t lock; /* guards the following fields */
  pthread_cond_t change;
  bool over;
};

static void report(const ax_opening_watch *w) {
  ax_text text = {0};
  ax_sibling *of = ax_calloc(w->opening.processes, sizeof of[0]);
  if (of != NULL && ax_siblings_find("", w->variable, (int32_t)getpid(), of, w->opening.processes))
    ax_opening_say(&w->opening, of, &text);
  else ax_text_add(&text, "axle: a process waits in ax_runtime_create for the others (pid %d)\n", (int)getpid());
  if (text.data != NULL && !text.failed) w->stalls.write(text.data, w->stalls.context);
  ax_text_deinit(&text);
  ax_free(of);
}

static struct timespec later(double seconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double at = (double)now.tv_nsec * 1e-9 + fmin(seconds, 1e8);
  return (struct timespec){.tv_sec = now.tv_sec + (time_t)at, .tv_nsec = (long)((at - floor(at)) * 1e9)};
}

/* Without reports it only stands there, so that other processes see that this one has come. */
static void *thread_main(void *context) {
  ax_opening_watch *w = context;
  double waits = w->stalls.seconds > 0 ? w->stalls.seconds : INFINITY, waited = 0;
  pthread_setname_np(pthread_self(), AX_OPENING_THREAD);
  pthread_mutex_lock(&w->lock);
  while (!w->over) {
    const struct timespec until = later(waits);
    int code = 0;
    while (!w->over && code != ETIMEDOUT) code = pthread_cond_timedwait(&w->change, &w->lock, &until);
    if (w->over) break;
    pthread_mutex_unlock(&w->lock);
    report(w);
    pthread_mutex_lock(&w->lock);
    waited += waits;
    waits = waited; /* whenever the time has doubled */
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Signals are for the program's threads. */
static int start_thread(ax_opening_watch *w) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int code = pthread_create(&w->thread, NULL, thread_main, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

static void free_watch(ax_opening_watch *w) {
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->lock);
  ax_free(w);
}

ax_opening_watch *ax_opening_watch_begin(const ax_stalls *stalls, bool of_some) {
  const ax_mpi_launcher launcher = ax_mpi_launcher_here();
  if (launcher.processes == 1) return NULL;
  ax_opening_watch *w = ax_calloc(1, sizeof *w);
  if (w == NULL) return NULL;
  const char *number = getenv(launcher.number);
  w->stalls = *stalls;
  w->variable = launcher.number;
  w->opening = (ax_opening){number != NULL ? (uint32_t)strtoul(number, NULL, 10) : 0, launcher.processes, launcher.here, of_some};
  pthread_condattr_t by_clock;
  pthread_condattr_init(&by_clock);
  pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
  pthread_cond_init(&w->change, &by_clock);
  pthread_condattr_destroy(&by_clock);
  pthread_mutex_init(&w->lock, NULL);
  if (start_thread(w) == 0) return w;
  free_watch(w);
  return NULL;
}

void ax_opening_watch_end(ax_opening_watch *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  w->over = true;
  pthread_cond_signal(&w->change);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  free_watch(w);
}
