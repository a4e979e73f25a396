#include "planner/ahead.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "machine/machine.h"

enum { most_threads = 7, first_places = 256 };

typedef enum known_state { KNOWN_NOTHING, KNOWN_FAILED, KNOWN_UNDER_WAY, KNOWN_MADE } known_state;

typedef struct known { /* by what was tried */
  uint64_t hash;
  known_state state;
  bool asked;  /* by the search itself */
  double most; /* bytes of a device, when it was made: what takes more has no seconds */
  ax_trial trial;
} known;

typedef struct kept_step {
  int64_t microbatches;
  ax_checkpoint_policy saved;
  ax_program *program;
} kept_step;

typedef struct job {
  struct job *next;
  ax_ahead_work work;
  ax_planner view;
  ax_candidate candidate;
  int number;
} job;

struct ax_ahead {
  pthread_mutex_t steps_lock; /* guards the steps, and is held while one is made */
  kept_step *steps;
  uint32_t step_count, step_capacity;

  pthread_mutex_t lock; /* guards the following fields */
  pthread_cond_t change;
  known *known; /* open addressing, at most half full */
  uint32_t known_count, known_places;
  job *first, *last; /* that wait */
  uint32_t generation; /* of jobs that are wanted */
  double best;
  double longest; /* seconds of the longest trial; the longer ago it was, the less of it counts */
  bool begun, stop;
  uint32_t thread_count, idle;
  pthread_t threads[most_threads];
};

/* --- What is known --- */

/* The place of that hash, or the free one that it would take; NULL: there are no places. With the lock held. */
static known *place_of(const ax_ahead *a, uint64_t hash) {
  if (a->known_places == 0) return NULL;
  for (uint32_t i = (uint32_t)hash & (a->known_places - 1);; i = (i + 1) & (a->known_places - 1))
    if (a->known[i].state == KNOWN_NOTHING || a->known[i].hash == hash) return &a->known[i];
}

/* Makes room for one more; what is known is no more found without. */
static bool make_room(ax_ahead *a) {
  if (2 * (a->known_count + 1) <= a->known_places) return true;
  ax_ahead more = {.known_places = a->known_places > 0 ? 2 * a->known_places : first_places};
  more.known = ax_calloc(more.known_places, sizeof more.known[0]);
  if (more.known == NULL) return false;
  for (uint32_t i = 0; i < a->known_places; i++)
    if (a->known[i].state != KNOWN_NOTHING) *place_of(&more, a->known[i].hash) = a->known[i];
  ax_free(a->known);
  a->known = more.known;
  a->known_places = more.known_places;
  return true;
}

/* What was made ahead for another capacity, and may be otherwise for this one. */
static bool is_of_other_memory(const ax_planner *p, const known *k) {
  return !p->is_view && !k->asked && k->most != p->capacity && k->trial.bytes > fmin(k->most, p->capacity);
}

static void begin(ax_planner *p, known *k, uint64_t hash) {
  *k = (known){.hash = hash, .state = KNOWN_UNDER_WAY, .asked = !p->is_view, .most = p->capacity};
  p->tried++;
}

static bool take(ax_planner *p, known *k, ax_trial *out) {
  *out = k->trial;
  if (p->is_view) return true;
  p->tried += !k->asked;
  k->asked = true;
  return true;
}

static job *next_job(ax_ahead *a) {
  job *next = a->first;
  if (next == NULL) return NULL;
  a->first = next->next;
  if (a->first == NULL) a->last = NULL;
  return next;
}

static void destroy_job(job *j) {
  ax_candidate_deinit(&j->candidate);
  for (uint32_t i = 0; i < j->view.found_count; i++) ax_candidate_deinit(&j->view.found[i]);
  ax_free(j->view.found);
  ax_free(j);
}

static void do_job(job *j) {
  (void)!j->work(&j->view, &j->candidate, j->number); /* the search meets what failed itself */
  destroy_job(j);
}

bool ax_ahead_ask(ax_planner *p, uint64_t hash, ax_trial *out) {
  ax_ahead *a = p->ahead;
  bool is_known = false;
  pthread_mutex_lock(&a->lock);
  for (;;) {
    if (!make_room(a)) break;
    known *k = place_of(a, hash);
    if (k->state == KNOWN_NOTHING) a->known_count++;
    if (k->state <= KNOWN_FAILED || (k->state == KNOWN_MADE && is_of_other_memory(p, k))) {
      begin(p, k, hash);
      break;
    }
    is_known = k->state == KNOWN_MADE && take(p, k, out);
    if (is_known) break;
    if (p->is_view && k->asked) {
      p->is_met = is_known = true;
      *out = (ax_trial){.seconds = INFINITY};
      break;
    }
    job *other = p->is_view ? NULL : next_job(a);
    if (other == NULL) {
      pthread_cond_wait(&a->change, &a->lock);
      continue;
    }
    pthread_mutex_unlock(&a->lock);
    do_job(other);
    pthread_mutex_lock(&a->lock);
  }
  pthread_mutex_unlock(&a->lock);
  return is_known;
}

void ax_ahead_answer(ax_planner *p, uint64_t hash, const ax_trial *trial) {
  ax_ahead *a = p->ahead;
  pthread_mutex_lock(&a->lock);
  known *k = place_of(a, hash);
  if (k != NULL && k->state == KNOWN_UNDER_WAY) {
    k->state = trial != NULL ? KNOWN_MADE : KNOWN_FAILED;
    if (trial != NULL) k->trial = *trial;
  }
  pthread_cond_broadcast(&a->change);
  pthread_mutex_unlock(&a->lock);
}

void ax_ahead_note(ax_planner *p, uint64_t hash, ax_status status, const ax_trial *trial) {
  const ax_trial none = {.seconds = INFINITY};
  const bool says_nothing = status == AX_INTERNAL || status == AX_UNAVAILABLE || (p->is_view && status == AX_OUT_OF_MEMORY);
  ax_ahead_answer(p, hash, status == AX_OK ? trial : says_nothing ? NULL : &none);
}

/* --- Steps --- */

static ax_status make_step(ax_planner *p, int64_t microbatches, ax_checkpoint_policy saved, ax_program **out) {
  ax_ahead *a = p->ahead;
  for (uint32_t i = 0; i < a->step_count; i++)
    if (a->steps[i].microbatches == microbatches && a->steps[i].saved == saved) {
      *out = a->steps[i].program;
      return AX_OK;
    }
  AX_TRY(ax_grow(&a->steps, sizeof a->steps[0], a->step_count, 1, &a->step_capacity));
  AX_TRY(ax_model_step(&p->model, microbatches, saved, out));
  a->steps[a->step_count++] = (kept_step){microbatches, saved, *out};
  return AX_OK;
}

ax_status ax_ahead_step(ax_planner *p, int64_t microbatches, ax_checkpoint_policy saved, ax_program **out) {
  pthread_mutex_lock(&p->ahead->steps_lock);
  const ax_status status = make_step(p, microbatches, saved, out);
  pthread_mutex_unlock(&p->ahead->steps_lock);
  return status;
}

/* --- Jobs --- */

static void *thread_main(void *context) {
  ax_ahead *a = context;
  pthread_mutex_lock(&a->lock);
  while (!a->stop) {
    job *next = next_job(a);
    if (next == NULL) {
      a->idle++;
      pthread_cond_wait(&a->change, &a->lock);
      a->idle--;
      continue;
    }
    pthread_mutex_unlock(&a->lock);
    do_job(next);
    pthread_mutex_lock(&a->lock);
  }
  pthread_mutex_unlock(&a->lock);
  return NULL;
}

/* Fewer threads than there are processors still do the work. With the lock held. */
static void begin_threads(ax_ahead *a) {
  const uint32_t wanted = ax_machine_threads() - 1;
  while (a->thread_count < wanted && a->thread_count < most_threads) {
    if (pthread_create(&a->threads[a->thread_count], NULL, thread_main, a) != 0) break;
    a->thread_count++;
  }
  a->begun = true;
}

static job *make_job(const ax_planner *p, ax_ahead_work work, const ax_candidate *candidate, int number) {
  job *made = ax_calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->work = work;
  made->number = number;
  made->view = *p;
  made->view.is_view = true;
  made->view.found = made->view.settled = NULL;
  made->view.found_count = made->view.found_capacity = made->view.settled_count = made->view.settled_capacity = 0;
  made->view.tensor = made->view.expert = made->view.sequence = (ax_arrangement){0};
  if (candidate == NULL || ax_candidate_copy(p, candidate, &made->candidate) == AX_OK) return made;
  ax_free(made);
  return NULL;
}

void ax_ahead_offer(ax_planner *p, ax_ahead_work work, const ax_candidate *candidate, int number) {
  ax_ahead *a = p->ahead;
  if (p->is_view) return;
  pthread_mutex_lock(&a->lock);
  if (!a->begun) begin_threads(a);
  job *made = a->thread_count > 0 ? make_job(p, work, candidate, number) : NULL;
  if (made != NULL) {
    made->view.generation = a->generation;
    if (a->last != NULL) a->last->next = made;
    else a->first = made;
    a->last = made;
    pthread_cond_broadcast(&a->change);
  }
  pthread_mutex_unlock(&a->lock);
}

bool ax_ahead_is_idle(const ax_planner *p) {
  ax_ahead *a = p->ahead;
  if (p->is_view) return false;
  pthread_mutex_lock(&a->lock);
  const bool idle = a->first == NULL && a->idle > 0;
  pthread_mutex_unlock(&a->lock);
  return idle;
}

static void drop_jobs(ax_ahead *a) {
  a->generation++;
  a->best = INFINITY;
  for (job *waiting; (waiting = next_job(a)) != NULL;) destroy_job(waiting);
}

void ax_ahead_forget(ax_planner *p) {
  ax_ahead *a = p->ahead;
  if (p->is_view) return;
  pthread_mutex_lock(&a->lock);
  drop_jobs(a);
  pthread_mutex_unlock(&a->lock);
}

bool ax_ahead_is_wanted(const ax_planner *view) {
  ax_ahead *a = view->ahead;
  pthread_mutex_lock(&a->lock);
  const bool wanted = view->generation == a->generation && !view->is_met;
  pthread_mutex_unlock(&a->lock);
  return wanted;
}

double ax_ahead_best(const ax_planner *view) {
  ax_ahead *a = view->ahead;
  pthread_mutex_lock(&a->lock);
  const double best = a->best;
  pthread_mutex_unlock(&a->lock);
  return best;
}

void ax_ahead_note_best(ax_planner *p, double seconds) {
  ax_ahead *a = p->ahead;
  if (p->is_view) return;
  pthread_mutex_lock(&a->lock);
  a->best = fmin(a->best, seconds);
  pthread_mutex_unlock(&a->lock);
}

double ax_ahead_longest(const ax_planner *p) {
  ax_ahead *a = p->ahead;
  if (a == NULL) return 0;
  pthread_mutex_lock(&a->lock);
  const double longest = a->longest;
  pthread_mutex_unlock(&a->lock);
  return longest;
}

void ax_ahead_note_longest(ax_planner *p, double seconds) {
  static const double still_counts = 0.9;
  ax_ahead *a = p->ahead;
  pthread_mutex_lock(&a->lock);
  a->longest = fmax(seconds, still_counts * a->longest);
  pthread_mutex_unlock(&a->lock);
}

/* --- All of it --- */

ax_status ax_ahead_create(ax_ahead **out) {
  ax_ahead *a = *out = ax_calloc(1, sizeof *a);
  if (a == NULL) return ax_out_of_memory(sizeof *a);
  a->best = INFINITY;
  pthread_mutex_init(&a->steps_lock, NULL);
  pthread_mutex_init(&a->lock, NULL);
  pthread_cond_init(&a->change, NULL);
  return AX_OK;
}

void ax_ahead_destroy(ax_ahead *a) {
  if (a == NULL) return;
  pthread_mutex_lock(&a->lock);
  a->stop = true;
  drop_jobs(a);
  pthread_cond_broadcast(&a->change);
  pthread_mutex_unlock(&a->lock);
  for (uint32_t i = 0; i < a->thread_count; i++) pthread_join(a->threads[i], NULL);
  for (uint32_t i = 0; i < a->step_count; i++) ax_program_release(a->steps[i].program);
  pthread_cond_destroy(&a->change);
  pthread_mutex_destroy(&a->lock);
  pthread_mutex_destroy(&a->steps_lock);
  ax_free(a->steps);
  ax_free(a->known);
  ax_free(a);
}
