/* The team: helpers come to every job, as long as there are not more callers than threads, and leave it when another lacks them
   more; tasks are done in order, by threads or by who pulls them; a team without threads; one that is ended by a thread of its
   own. */
#include "run/workers.h"

#include <pthread.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static ax_workers *team_of(uint32_t count) {
  ax_workers *workers;
  TEST_OK(ax_workers_create(count, &workers));
  return workers;
}

/* --- Jobs --- */

/* Its own thread stays until `over`; helpers sleep until then, or until they are nudged and wanted elsewhere. */
typedef struct work_place {
  ax_workers *workers;
  uint32_t wanted;
  uint64_t number;
  pthread_mutex_t lock;
  pthread_cond_t change;
  _Atomic int helpers, left_early;
  _Atomic bool called, over;
} work_place;

static bool work(void *context, const ax_helper *helper) {
  work_place *w = context;
  if (helper != NULL) atomic_fetch_add(&w->helpers, 1);
  else w->called = true;
  pthread_mutex_lock(&w->lock);
  while (!w->over && !(helper != NULL && ax_helper_leaves(helper))) pthread_cond_wait(&w->change, &w->lock);
  if (helper != NULL && !w->over) w->left_early++;
  const bool over = w->over;
  pthread_mutex_unlock(&w->lock);
  if (helper != NULL) atomic_fetch_sub(&w->helpers, 1);
  return !over;
}

static void nudge(void *context) {
  work_place *w = context;
  pthread_mutex_lock(&w->lock);
  pthread_cond_broadcast(&w->change);
  pthread_mutex_unlock(&w->lock);
}

static void *call(void *context) {
  work_place *w = context;
  ax_workers_call(w->workers, &(ax_job){.work = work, .nudge = nudge, .context = w, .number = w->number, .wanted = w->wanted});
  return NULL;
}

static void prepare(work_place *w, ax_workers *workers, uint32_t wanted, uint64_t number) {
  *w = (work_place){.workers = workers, .wanted = wanted, .number = number};
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->change, NULL);
}

static pthread_t begin(work_place *w, ax_workers *workers, uint32_t wanted) {
  pthread_t thread;
  prepare(w, workers, wanted, 0);
  assert_int_equal(pthread_create(&thread, NULL, call, w), 0);
  return thread;
}

static void finish(work_place *w, pthread_t thread) {
  w->over = true;
  nudge(w);
  pthread_join(thread, NULL);
  assert_int_equal(w->helpers, 0); /* the call returns when all have left */
  pthread_mutex_destroy(&w->lock);
  pthread_cond_destroy(&w->change);
}

static void await_count(const _Atomic int *count, int wanted) {
  for (int i = 0; *count < wanted && i < 200000; i++) usleep(50);
  assert_true(*count >= wanted);
}

static void helpers_go_where_they_lack(void **state) {
  (void)state;
  ax_workers *workers = team_of(3);
  work_place first, second;
  pthread_t one = begin(&first, workers, 3);
  await_count(&first.helpers, 3);
  pthread_t two = begin(&second, workers, 2); /* everybody helps in the first, and sleeps */
  await_count(&second.helpers, 1);
  await_count(&first.left_early, 1);
  finish(&first, one);
  await_count(&second.helpers, 2);
  finish(&second, two);
  ax_workers_destroy(workers);
}

/* The callers' threads count: a second caller makes the first one's helper superfluous, until it has left. */
static void no_more_than_processors(void **state) {
  (void)state;
  ax_workers *workers = team_of(1);
  work_place first, second;
  pthread_t one = begin(&first, workers, 1);
  await_count(&first.helpers, 1);
  pthread_t two = begin(&second, workers, 1);
  await_count(&first.left_early, 1);
  usleep(20000);
  assert_int_equal(first.helpers + second.helpers, 0);
  finish(&first, one);
  await_count(&second.helpers, 1);
  finish(&second, two);
  ax_workers_destroy(workers);
}

/* A job with nothing left to do, whose caller takes its time: the helper comes once. */
static bool take_time(void *context, const ax_helper *helper) {
  _Atomic int *came = context;
  if (helper != NULL) {
    atomic_fetch_add(came, 1);
  } else {
    await_count(came, 1);
    usleep(20000);
  }
  return false;
}

static void none_come_when_it_is_over(void **state) {
  (void)state;
  ax_workers *workers = team_of(1);
  _Atomic int came = 0;
  ax_workers_call(workers, &(ax_job){.work = take_time, .nudge = nudge, .context = &came, .wanted = 1});
  assert_int_equal(came, 1);
  ax_workers_destroy(workers);
}

/* A job that asks late: nobody comes before. */
typedef struct late_job {
  ax_workers *workers;
  ax_job job;
  _Atomic int came;
  int before;
} late_job;

static bool ask_late(void *context, const ax_helper *helper) {
  late_job *l = context;
  if (helper != NULL) {
    atomic_fetch_add(&l->came, 1);
    return false;
  }
  usleep(20000);
  l->before = l->came;
  ax_workers_ask(l->workers, &l->job);
  ax_workers_ask(l->workers, &l->job); /* once is enough */
  await_count(&l->came, 1);
  return false;
}

static void helpers_that_are_asked_for(void **state) {
  (void)state;
  late_job l = {.workers = team_of(1)};
  for (int i = 0; i < 2; i++) {
    l.came = 0;
    l.job = (ax_job){.work = ask_late, .nudge = nudge, .context = &l, .wanted = 1, .late = true};
    ax_workers_call(l.workers, &l.job);
    assert_int_equal(l.before, 0);
    assert_int_equal(l.came, 1);
  }
  ax_workers_destroy(l.workers);
}

/* Who waits for job 7 may help in it, and in earlier ones, until what it waits for is there. */
typedef struct guest {
  work_place *place;
  uint64_t number;
  _Atomic bool until, helped;
} guest;

static void *helps(void *context) {
  guest *g = context;
  g->helped = ax_workers_help(g->place->workers, g->number, &g->until);
  return NULL;
}

typedef struct job_task { /* as a run that was started is: a task that calls a job */
  ax_task task; /* the first member */
  work_place *place;
  _Atomic bool done;
} job_task;

static bool call_job(ax_task *task) {
  job_task *t = (job_task *)task;
  call(t->place);
  t->done = true;
  return true;
}

static void help_from_outside(void **state) {
  (void)state;
  ax_workers *workers = team_of(1);
  work_place w;
  job_task t = {.task = {.perform = call_job}, .place = &w};
  prepare(&w, workers, 1, 7);
  ax_workers_push(workers, &t.task);
  while (!w.called) usleep(50);
  assert_false(ax_workers_help(workers, 6, NULL)); /* nothing so early */
  guest g = {.place = &w, .number = 9};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, helps, &g), 0);
  await_count(&w.helpers, 1);
  assert_false(ax_workers_help(workers, 7, NULL)); /* it wants no more */
  g.until = true;
  ax_workers_tell(workers);
  pthread_join(thread, NULL);
  assert_true(g.helped);
  assert_int_equal(w.left_early, 1);
  w.over = true;
  nudge(&w);
  while (!t.done) usleep(50);
  ax_workers_destroy(workers);
}

/* --- Tasks --- */

typedef struct errand {
  ax_task task; /* the first member */
  ax_workers *workers, *ends;
  _Atomic int *done;
  int order;
} errand;

static bool run_errand(ax_task *task) {
  errand *e = (errand *)task;
  ax_workers *ends = e->ends;
  e->order = *e->done;
  atomic_fetch_add(e->done, 1); /* from here on the errand may be gone */
  ax_workers_destroy(ends);
  return ends == NULL;
}

static void tasks_in_order(void **state) {
  (void)state;
  enum { count = 20 };
  _Atomic int done = 0;
  errand errands[count];
  ax_workers *workers = team_of(1);
  for (int i = 0; i < count; i++) {
    errands[i] = (errand){.task = {.perform = run_errand}, .done = &done};
    ax_workers_push(workers, &errands[i].task);
  }
  await_count(&done, count);
  for (int i = 0; i < count; i++) assert_int_equal(errands[i].order, i);
  ax_workers_destroy(workers);
}

/* A sleeping helper leaves its job for a task. */
static void a_task_beside_a_job(void **state) {
  (void)state;
  _Atomic int done = 0;
  ax_workers *workers = team_of(1);
  work_place w;
  pthread_t thread = begin(&w, workers, 1);
  await_count(&w.helpers, 1);
  errand e = {.task = {.perform = run_errand}, .done = &done};
  ax_workers_push(workers, &e.task);
  await_count(&done, 1);
  finish(&w, thread);
  ax_workers_destroy(workers);
}

static void no_threads(void **state) {
  (void)state;
  _Atomic int done = 0;
  ax_workers *workers = team_of(0);
  assert_false(ax_workers_any(workers));
  work_place w;
  finish(&w, begin(&w, workers, 4));
  errand first = {.task = {.perform = run_errand}, .done = &done}, second = first;
  uint32_t seen = ax_workers_news(workers);
  ax_workers_push(workers, &first.task);
  ax_workers_push(workers, &second.task);
  ax_workers_await(workers, seen); /* there are news, so it does not wait */
  assert_int_equal(done, 0);
  assert_ptr_equal(ax_workers_pull(workers, &second.task), &second.task);
  assert_null(ax_workers_pull(workers, &second.task));
  ax_workers_push(workers, &second.task);
  assert_ptr_equal(ax_workers_pull(workers, NULL), &first.task);
  assert_ptr_equal(ax_workers_pull(workers, NULL), &second.task);
  assert_null(ax_workers_pull(workers, NULL));
  ax_workers_destroy(workers);
}

/* Long waits are remembered for a while, and those that come soon after others many times as long as they were. */
/* This thread may be without a processor for longer than they are held up: some of many times it is not. */
static bool after_long_waits(ax_workers *workers) {
  bool held = false;
  for (int times = 0; times < 50 && !held; times++) {
    for (int i = 0; i < 8; i++) ax_workers_note_wait(workers, 20000000);
    usleep(100000); /* five times one of them */
    held = ax_workers_held_up(workers, 0);
  }
  return held;
}

static bool after_a_debt(ax_workers *workers) {
  bool held = false;
  for (int times = 0; times < 100 && !held; times++) {
    for (int i = 0; i < 4; i++) ax_workers_note_help(workers, 0, 90000);
    held = ax_workers_held_up(workers, 0);
  }
  return held;
}

static void held_up(void **state) {
  ax_workers *workers = team_of(1);
  (void)state;
  assert_false(ax_workers_held_up(workers, 0));
  ax_workers_note_wait(workers, 10000);
  assert_false(ax_workers_held_up(workers, 0));
  assert_true(after_long_waits(workers));
  assert_false(ax_workers_held_up(workers, 1000000000));
  for (int i = 0; i < 10000 && ax_workers_held_up(workers, 0); i++) usleep(1000);
  assert_false(ax_workers_held_up(workers, 0));
  ax_workers_note_help(workers, 0, 9000000); /* of the credit there is */
  assert_false(ax_workers_held_up(workers, 0));
  ax_workers_note_help(workers, 1000000000, 0); /* of which only so much counts: see after_a_debt */
  ax_workers_note_help(workers, 0, 9000000);
  assert_false(ax_workers_held_up(workers, 0));
  assert_true(after_a_debt(workers));
  ax_workers_destroy(workers);
}

static void ended_from_inside(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    _Atomic int done = 0;
    ax_workers *workers = team_of(3);
    errand e = {.task = {.perform = run_errand}, .ends = workers, .done = &done};
    ax_workers_push(workers, &e.task);
    await_count(&done, 1);
  }
  usleep(1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(helpers_go_where_they_lack), cmocka_unit_test(no_more_than_processors),
      cmocka_unit_test(help_from_outside),          cmocka_unit_test(tasks_in_order),
      cmocka_unit_test(a_task_beside_a_job),        cmocka_unit_test(no_threads),
      cmocka_unit_test(none_come_when_it_is_over),  cmocka_unit_test(helpers_that_are_asked_for),
      cmocka_unit_test(ended_from_inside),          cmocka_unit_test(held_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
