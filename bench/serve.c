/* A time is the mean over as many calls as take 50 ms: the count is found once, after warming up. */
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const char *line) {
  puts(line);
  fflush(stdout);
}

static void await_question(void) {
  char line[64];
  if (fgets(line, sizeof line, stdin) == NULL) exit(0);
}

void bench_wait(void) {
  say("ready");
  await_question();
}

void bench_answer(double value) {
  char line[64];
  snprintf(line, sizeof line, "%.9g", value);
  say(line);
}

static double time_of(bench_work *work, void *context, int64_t count) {
  double start = bench_seconds();
  work(context, count);
  return bench_seconds() - start;
}

static int64_t find_count(bench_work *work, void *context) {
  const double enough = 0.05;
  work(context, 2);
  for (int64_t count = 1;; count *= 2)
    if (time_of(work, context, count) >= enough) return count;
}

void bench_serve(bench_work *work, void *context, double parts) {
  int64_t count = find_count(work, context);
  for (bench_wait();; await_question()) bench_answer(time_of(work, context, count) / ((double)count * parts));
}
