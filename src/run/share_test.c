/* Shared work: each part is done once, and by whom: a thread begins at its own place among the parts, and comes to others' when its
   own are done. And when helpers are called for what is small. */
#include "run/share.h"

#include <pthread.h>
#include <string.h>

#include "machine/machine.h"
#include "run/scheduler.h"
#include "run/workers.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { worker_slots = 3, most_parts = 2000 };

/* As much of a run as shares look at. */
typedef struct stage {
  ax_executor executor;
  ax_compiled compiled;
  ax_execution run;
  ax_worker_slot worker_slot[worker_slots];
} stage;

static void set_up(stage *s) {
  memset(s, 0, sizeof *s);
  TEST_OK(ax_workers_create(0, &s->executor.workers));
  s->run = (ax_execution){.compiled = &s->compiled,
                          .executor = &s->executor,
                          .worker_slots = s->worker_slot,
                          .worker_slot_count = worker_slots,
                          .threads = worker_slots,
                          .threaded = true};
  s->run.job.asked = true; /* helpers come by themselves */
  pthread_mutex_init(&s->run.lock, NULL);
  for (int i = 0; i < worker_slots; i++) pthread_cond_init(&s->worker_slot[i].share.left, NULL);
}

static void tear_down(stage *s) {
  ax_workers_destroy(s->executor.workers);
  pthread_mutex_destroy(&s->run.lock);
  for (int i = 0; i < worker_slots; i++) pthread_cond_destroy(&s->worker_slot[i].share.left);
}

/* The helper in the worker slot comes when the owner has begun its first part, which lasts until `helped` others are done. */
typedef struct parts {
  stage *s;
  pthread_t owner;
  uint32_t count, helped, worker_slot, by_helper[most_parts];
  _Atomic uint32_t by_helper_count, times[most_parts];
  _Atomic bool begun, over;
} parts;

static ax_status part(const void *context, ax_worker_slot *worker_slot, uint32_t index) {
  parts *p = (parts *)context;
  assert_ptr_equal(worker_slot, &p->s->worker_slot[pthread_equal(pthread_self(), p->owner) ? 0 : p->worker_slot]);
  atomic_fetch_add(&p->times[index], 1);
  if (pthread_equal(pthread_self(), p->owner)) {
    atomic_store(&p->begun, true);
    while (atomic_load(&p->by_helper_count) < p->helped) ax_relax();
    return AX_OK;
  }
  p->by_helper[atomic_load(&p->by_helper_count)] = index;
  atomic_fetch_add(&p->by_helper_count, 1);
  return index + 1 == p->count ? AX_OUT_OF_MEMORY : AX_OK;
}

static void *help(void *context) {
  parts *p = context;
  while (!atomic_load(&p->begun)) ax_relax();
  while (!atomic_load(&p->over)) (void)ax_share_help(&p->s->run, &p->s->worker_slot[p->worker_slot]);
  return NULL;
}

/* All parts but the first are the helper's, in its order. */
static void in_order(stage *s, uint32_t count, uint32_t worker_slot) {
  static parts p;
  memset(&p, 0, sizeof p);
  p.s = s;
  p.owner = pthread_self();
  p.count = count;
  p.helped = count - 1;
  p.worker_slot = worker_slot;
  pthread_t helper;
  pthread_create(&helper, NULL, help, &p);
  assert_int_equal(ax_share_parts(&s->run, &s->worker_slot[0], part, &p, count), AX_OUT_OF_MEMORY); /* the last one fails */
  atomic_store(&p.over, true);
  pthread_join(helper, NULL);
  for (uint32_t i = 0; i < count; i++)
    if (p.times[i] != 1) fail_msg("part %u of %u was done %u times", i, count, (unsigned)p.times[i]);
  const uint32_t first = count <= AX_PLACED_PARTS ? count * worker_slot / worker_slots : 1;
  for (uint32_t i = 0, at = first; i < count - 1; i++) {
    if (at == 0) at = 1; /* the owner's */
    if (p.by_helper[i] != at)
      fail_msg("worker slot %u did part %u of %u where %u was to come", worker_slot, p.by_helper[i], count, at);
    at = at + 1 < count ? at + 1 : 0;
  }
  assert_int_equal(s->run.shares, 0);
}

static void each_from_its_own_place(void **state) {
  static stage s;
  (void)state;
  set_up(&s);
  for (uint32_t worker_slot = 0; worker_slot < worker_slots; worker_slot++) /* the place of the owner's too */
    for (uint32_t count = 2; count <= 70; count++) in_order(&s, count, worker_slot);
  static const uint32_t many[] = {127, 128, 129, AX_PLACED_PARTS - 1, AX_PLACED_PARTS, AX_PLACED_PARTS + 1, most_parts};
  for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) in_order(&s, many[i], 2);
  tear_down(&s);
}

/* Of one device's run: at once for what is large; for what is small when there has been some. */
static void worth_a_call(void **state) {
  static stage s;
  (void)state;
  set_up(&s);
  const ax_instr whole = {.parts = 1, .microseconds = 1000}, small = {.parts = 2, .microseconds = 6},
                 large = {.parts = 2, .microseconds = 60};
  assert_false(ax_share_worth(&s.run, &whole));
  assert_true(ax_share_worth(&s.run, &small)); /* they are there */
  s.run.job.asked = false;
  assert_true(ax_share_worth(&s.run, &small)); /* they come by themselves */
  s.run.job.late = true;
  assert_true(ax_share_worth(&s.run, &large));
  for (int i = 0; i < 3; i++) assert_false(ax_share_worth(&s.run, &small));
  assert_true(ax_share_worth(&s.run, &small));
  ax_description slow; /* its cores exchange lines in ten times the time */
  TEST_OK(ax_machine_parse("exchange 1000 ns", &slow));
  ax_machine_pretend(&slow);
  s.run.alone = 0;
  assert_false(ax_share_worth(&s.run, &large));
  for (int i = 0; i < 2; i++) assert_false(ax_share_worth(&s.run, &large));
  assert_true(ax_share_worth(&s.run, &large));
  ax_machine_pretend(NULL);
  s.run.threaded = false;
  assert_false(ax_share_worth(&s.run, &large));
  tear_down(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_from_its_own_place), cmocka_unit_test(worth_a_call)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
