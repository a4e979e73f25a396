/* Units are cut into runs of about the same work, in their order. What a thread cannot do, for lack of threads or of memory, is
   done again by the caller's, so that its error is told where it is asked for. */
#include "jit/emit/generators.h"

#include <pthread.h>

enum { a_function = 16, least_work = 200 }; /* in nodes: what each function costs besides; from where another thread is worth it */

typedef struct task {
  ax_generator *generator;
  const ax_unit *units;
  ax_emitted *out;
  pthread_t thread;
  bool started;
  ax_status status;
} task;

static uint64_t work_of(const ax_unit *unit) {
  if (unit->fused_loop == NULL) return a_function + unit->kernel->expr_count + unit->kernel->store_count;
  uint64_t work = a_function;
  for (uint32_t i = 0; i < unit->fused_loop->step_count; i++) {
    const ax_fused_loop_step *step = &unit->fused_loop->steps[i];
    if (step->kind == AX_FUSED_LOOP_KERNEL) work += a_function + step->kernel->expr_count + step->kernel->store_count;
  }
  return work;
}

static uint64_t work_of_all(const ax_unit *units, uint32_t count) {
  uint64_t work = 0;
  for (uint32_t i = 0; i < count; i++) work += work_of(&units[i]);
  return work;
}

/* Whether there is memory for all of them at once. Each asks for its own, and several that ask at the same time may all be told of
   the same free memory. */
static bool have_memory(uint32_t generators, uint32_t count) {
  enum { a_stack = 8 << 20 };
  return ax_memory_for_library(generators * (ax_generator_memory(0) + a_stack) + ax_generator_memory(count)) == AX_OK;
}

uint32_t ax_generators_worth(const ax_unit *units, uint32_t count, uint32_t most) {
  const uint64_t worth = work_of_all(units, count) / least_work;
  if (most > AX_MOST_GENERATORS) most = AX_MOST_GENERATORS;
  if (most > count) most = count;
  if (most > worth) most = (uint32_t)worth;
  return most > 1 && have_memory(most, count) ? most : 1;
}

/* Run i ends with the first unit by which i + 1 shares of the work are done. Each has a unit at least. */
static void cut(const ax_unit *units, uint32_t count, uint32_t parts, ax_emitted *out) {
  const uint64_t all = work_of_all(units, count);
  uint64_t done = 0;
  uint32_t at = 0;
  for (uint32_t i = 0; i < parts; i++) {
    const uint32_t first = at, last = count - (parts - 1 - i); /* leaves one for each that follows */
    while (at < last && (at == first || done * parts < all * (i + 1) || i + 1 == parts)) done += work_of(&units[at++]);
    out[i] = (ax_emitted){.first = first, .count = at - first};
  }
}

static void *run(void *context) {
  task *t = context;
  t->status = ax_generator_emit(t->generator, t->units + t->out->first, t->out->count, &t->out->object, &t->out->bytes);
  return NULL;
}

ax_status ax_generators_emit(ax_generator *generators, uint32_t generator_count, const ax_unit *units, uint32_t count,
                             ax_emitted *out) {
  task tasks[AX_MOST_GENERATORS];
  ax_status status = AX_OK;
  cut(units, count, generator_count, out);
  for (uint32_t i = 0; i < generator_count; i++) tasks[i] = (task){.generator = &generators[i], .units = units, .out = &out[i]};
  for (uint32_t i = 1; i < generator_count; i++) tasks[i].started = pthread_create(&tasks[i].thread, NULL, run, &tasks[i]) == 0;
  run(&tasks[0]);
  for (uint32_t i = 1; i < generator_count; i++)
    if (tasks[i].started) pthread_join(tasks[i].thread, NULL);
  status = tasks[0].status;
  for (uint32_t i = 1; i < generator_count && status == AX_OK; i++) {
    if (!tasks[i].started || tasks[i].status != AX_OK) run(&tasks[i]);
    status = tasks[i].status;
  }
  for (uint32_t i = 0; i < generator_count && status != AX_OK; i++) {
    ax_free(out[i].object);
    out[i] = (ax_emitted){0};
  }
  return status;
}
