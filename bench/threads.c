/* Runs from several threads at once, each with arrays of its own, on one runtime that all share; and runs started before those
   whose results they take are over. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

enum { most_threads = 64 };

typedef struct share {
  job job;
  int64_t count;
} share;

typedef struct crew {
  share shares[most_threads];
  int threads;
} crew;

static void *run_share(void *context) {
  share *s = context;
  job_run(&s->job, s->count);
  return NULL;
}

/* `count` runs in each thread. */
static void run_crew(void *context, int64_t count) {
  crew *c = context;
  pthread_t ids[most_threads];
  for (int i = 0; i < c->threads; i++) {
    c->shares[i].count = count;
    if (pthread_create(&ids[i], NULL, run_share, &c->shares[i]) != 0) {
      fprintf(stderr, "no thread\n");
      exit(1);
    }
  }
  for (int i = 0; i < c->threads; i++) pthread_join(ids[i], NULL);
}

static void one_more(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_full_like(in[0], 1));
}

static job make_job(const char *name, ax_runtime *runtime) {
  const char *spec = "d";
  ax_type type = ax_array_type(AX_F32, AX_DIMS(8));
  if (strcmp(name, "small") != 0) return job_train(find_model(name), runtime);
  return job_create_on(&(job_function){one_more, NULL, "d=8", 1, 1, &type, &spec, &spec}, runtime);
}

/* Seconds a run, counting the runs of all threads. */
void at_once(char **arguments) {
  crew c = {.threads = atoi(arguments[1])};
  ax_runtime *runtime;
  if (c.threads < 1 || c.threads > most_threads) fprintf(stderr, "from 1 to %d threads\n", most_threads), exit(1);
  check(ax_runtime_create(NULL, &runtime));
  for (int i = 0; i < c.threads; i++) c.shares[i].job = make_job(arguments[0], runtime);
  bench_serve(run_crew, &c, c.threads);
}

/* Seconds a step. */
void ahead(char **arguments) {
  ax_runtime *runtime;
  check(ax_runtime_create(NULL, &runtime));
  job j = make_job(arguments[0], runtime);
  bench_serve(job_run_ahead, &j, job_steps_ahead);
}
