/* Opening an engine by name beside libaxle, as libraries of MPI are (processes/load.c); and plans, kept in a list, the one taken
   last in front. Programs have few lengths: the list is short. Plans belong to the process, not to a runtime: their memory does not
   come from its allocator. */
#include "fourier/engines.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "machine/features.h"

/* --- The engine --- */

static const ax_fourier_engine *here;

static const ax_fourier_engine *opened(const char *file) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const ax_fourier_engine *engine = library != NULL ? dlsym(library, "axle_fourier") : NULL;
  if (engine != NULL && engine->version == AX_FOURIER_ENGINE_VERSION) return engine;
  if (library != NULL) dlclose(library);
  return NULL;
}

/* On x86-64 it is compiled for AVX2 and FMA (cmake/ducc.cmake). */
static bool runs_here(void) {
#ifdef __x86_64__
  return ax_machine_has(AX_FEATURE_AVX2);
#else
  return true;
#endif
}

static void open_once(void) {
  if (runs_here()) here = opened(AX_FOURIER_LIBRARY);
}

const ax_fourier_engine *ax_fourier_engine_here(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_once);
  return here;
}

/* --- Plans --- */

enum { kept_bytes = 256 << 20, kept_plans = 256 }; /* beyond which plans that nobody has taken are dropped */

struct ax_fourier_plan {
  ax_fourier_key key;
  const ax_fourier_engine *engine;
  void *made;
  int64_t bytes;
  uint32_t users;
  ax_fourier_plan *next;
};

static struct {
  pthread_mutex_t lock;
  ax_fourier_plan *first;
  int64_t bytes;
  uint32_t count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

const void *ax_fourier_made(const ax_fourier_plan *plan) { return plan->made; }

static bool is_for(const ax_fourier_plan *plan, const ax_fourier_key *key) {
  return plan->key.n == key->n && plan->key.wide == key->wide && plan->key.real == key->real &&
         plan->key.many == key->many && plan->key.alone == key->alone;
}

/* The plan for the key, which becomes the first, or NULL. Under the lock, as the next two. */
static ax_fourier_plan *find(const ax_fourier_key *key) {
  for (ax_fourier_plan **at = &kept.first; *at != NULL; at = &(*at)->next) {
    ax_fourier_plan *plan = *at;
    if (!is_for(plan, key)) continue;
    *at = plan->next;
    plan->next = kept.first;
    return kept.first = plan;
  }
  return NULL;
}

static void destroy(ax_fourier_plan *plan) {
  plan->engine->free(plan->made);
  free(plan);
}

/* Drops the plan that was taken longest ago of those that nobody has. False: there is none. */
static bool drop_one(void) {
  ax_fourier_plan **last = NULL;
  for (ax_fourier_plan **at = &kept.first; *at != NULL; at = &(*at)->next)
    if ((*at)->users == 0) last = at;
  if (last == NULL) return false;
  ax_fourier_plan *plan = *last;
  *last = plan->next;
  kept.bytes -= plan->bytes;
  kept.count--;
  destroy(plan);
  return true;
}

static void keep(ax_fourier_plan *plan) {
  plan->next = kept.first;
  kept.first = plan;
  kept.bytes += plan->bytes;
  kept.count++;
  while ((kept.bytes > kept_bytes || kept.count > kept_plans) && drop_one()) continue;
}

static ax_fourier_plan *make(const ax_fourier_engine *engine, const ax_fourier_key *key) {
  ax_fourier_plan *plan = malloc(sizeof *plan);
  if (plan == NULL) return NULL;
  *plan = (ax_fourier_plan){.key = *key, .engine = engine, .made = engine->make(key), .users = 1};
  if (plan->made == NULL) {
    free(plan);
    return NULL;
  }
  plan->bytes = engine->bytes(plan->made) + (int64_t)sizeof *plan;
  return plan;
}

/* Two threads may make one plan at the same time: the second to come drops its own. */
ax_status ax_fourier_take(const ax_fourier_engine *engine, const ax_fourier_key *key, bool quiet, ax_fourier_plan **out) {
  pthread_mutex_lock(&kept.lock);
  ax_fourier_plan *plan = find(key);
  if (plan != NULL) plan->users++;
  pthread_mutex_unlock(&kept.lock);
  *out = plan;
  if (plan != NULL) return AX_OK;
  ax_fourier_plan *made = make(engine, key);
  if (made == NULL) return quiet ? AX_OUT_OF_MEMORY : ax_out_of_memory((size_t)key->n * sizeof(double));
  pthread_mutex_lock(&kept.lock);
  plan = find(key);
  if (plan != NULL) plan->users++;
  else keep(plan = made), made = NULL;
  pthread_mutex_unlock(&kept.lock);
  if (made != NULL) destroy(made);
  *out = plan;
  return AX_OK;
}

void ax_fourier_give(ax_fourier_plan *plan) {
  pthread_mutex_lock(&kept.lock);
  plan->users--;
  pthread_mutex_unlock(&kept.lock);
}
