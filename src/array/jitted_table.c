/* See jitted_table.h. */
#include "array/jitted_table.h"

#include <stddef.h>
#include <string.h>

#include "run/pool.h"

enum { first_chain_count = 16 };

typedef struct ax_jitted_traced {
  struct ax_jitted_traced *next;
  ax_program *program;
  uint32_t users; /* entries, and calls that are about to compile it */
  size_t bytes;
  _Alignas(max_align_t) char statics[]; /* what its function was told */
} traced;

typedef struct ax_jitted_entry {
  struct ax_jitted_entry *next; /* in its chain */
  uint64_t hash;
  traced *of;
  ax_executable *executable;
  uint64_t added;             /* the clock when it was made .. */
  atomic_uint_least64_t used; /* .. and when it was last found */
  ax_layout *layouts[];       /* by argument; retained */
} entry;

/* A call that compiles: on the stack of its thread, in the list of those under way. */
typedef struct ax_jitted_compiling {
  struct ax_jitted_compiling *next;
  const ax_jitted_key *key;
  pthread_t thread;
} compiling;

/* A lock is held, and with it a reference of the table's or the caller's. */
static ax_jitted_held hold(const ax_jitted_key *k, ax_executable *e) {
  if (k->retain) ax_executable_hold(e);
  return (ax_jitted_held){e, ax_callers_enter(&e->callers), k->retain};
}

void ax_jitted_leave(const ax_jitted_held *h) {
  if (h->retained) ax_executable_release(h->executable);
  ax_executable_leave(h->executable, h->place);
}

/* --- The table --- */

static void lock_all(ax_jitted *j) {
  for (uint32_t i = 0; i < AX_CALLER_PLACES; i++) pthread_mutex_lock(&j->places[i].lock);
}

static void unlock_all(ax_jitted *j) {
  for (uint32_t i = AX_CALLER_PLACES; i-- > 0;) pthread_mutex_unlock(&j->places[i].lock);
}

static bool same_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  return a_bytes == b_bytes && (a_bytes == 0 || memcmp(a, b, a_bytes) == 0);
}

/* A lock of the table is held, or `making`. */
static entry *look_up(const ax_jitted *j, const ax_jitted_key *k) {
  entry *e = j->chain_count > 0 ? j->chains[k->hash & (j->chain_count - 1)] : NULL;
  for (; e != NULL; e = e->next)
    if (e->hash == k->hash && memcmp(e->layouts, k->layouts, j->function.in_count * sizeof e->layouts[0]) == 0 &&
        same_bytes(e->of->statics, e->of->bytes, k->statics.data, k->statics.bytes))
      return e;
  return NULL;
}

static void mark_used(const ax_jitted *j, entry *e) {
  if (atomic_load_explicit(&e->used, memory_order_relaxed) != j->clock)
    atomic_store_explicit(&e->used, j->clock, memory_order_relaxed);
}

bool ax_jitted_find(ax_jitted *j, const ax_jitted_key *k, ax_jitted_held *out) {
  const uint32_t place = ax_thread_place(AX_CALLER_PLACES);
  pthread_mutex_lock(&j->places[place].lock);
  entry *e = look_up(j, k);
  if (e != NULL) {
    *out = hold(k, e->executable);
    mark_used(j, e);
    j->places[place].found++;
  }
  pthread_mutex_unlock(&j->places[place].lock);
  return e != NULL;
}

/* Makes the table twice as large once there are more entries than chains. All is locked. False: no memory. */
static bool make_room(ax_jitted *j) {
  if (j->count < j->chain_count) return true;
  const uint32_t chain_count = j->chain_count > 0 ? 2 * j->chain_count : first_chain_count;
  entry **chains = ax_calloc(chain_count, sizeof chains[0]);
  if (chains == NULL) return false;
  for (uint32_t i = 0; i < j->chain_count; i++)
    for (entry *e = j->chains[i], *next; e != NULL; e = next) {
      next = e->next;
      e->next = chains[e->hash & (chain_count - 1)];
      chains[e->hash & (chain_count - 1)] = e;
    }
  ax_free(j->chains);
  j->chains = chains;
  j->chain_count = chain_count;
  return true;
}

/* The entry that was found least lately; of several the one that was added first. */
static entry *oldest(const ax_jitted *j) {
  entry *found = NULL;
  for (uint32_t i = 0; i < j->chain_count; i++)
    for (entry *e = j->chains[i]; e != NULL; e = e->next) {
      const uint64_t used = atomic_load_explicit(&e->used, memory_order_relaxed);
      const uint64_t best = found != NULL ? atomic_load_explicit(&found->used, memory_order_relaxed) : 0;
      if (found == NULL || used < best || (used == best && e->added < found->added)) found = e;
    }
  return found;
}

static void take_out(ax_jitted *j, entry *e) {
  entry **link = &j->chains[e->hash & (j->chain_count - 1)];
  while (*link != e) link = &(*link)->next;
  *link = e->next;
  e->next = NULL;
  j->count--;
  j->dropped++;
}

/* `making` is held. */
static void leave_traced(ax_jitted *j, traced *t) {
  if (--t->users > 0) return;
  traced **link = &j->traced;
  while (*link != t) link = &(*link)->next;
  *link = t->next;
  ax_program_release(t->program);
  ax_free(t);
}

/* Releases entries that were taken out, in a list. No lock is held, for the last reference to an executable frees much. */
static void release_entries(const ax_jitted *j, entry *e) {
  for (entry *next; e != NULL; e = next) {
    next = e->next;
    ax_executable_release(e->executable);
    for (uint32_t i = 0; i < j->function.in_count; i++) ax_layout_release(e->layouts[i]);
    ax_free(e);
  }
}

/* --- Calls that miss --- */

static traced *find_traced(const ax_jitted *j, const ax_jitted_key *k) {
  for (traced *t = j->traced; t != NULL; t = t->next) {
    bool same = same_bytes(t->statics, t->bytes, k->statics.data, k->statics.bytes);
    for (uint32_t i = 0; same && i < j->function.in_count; i++) {
      const ax_type *want = ax_program_in_type(t->program, i), *type = &k->layouts[i]->type;
      same = want->dtype == type->dtype && ax_same_shape(want, type);
    }
    if (same) return t;
  }
  return NULL;
}

static ax_status trace_types(const ax_jitted *j, const ax_jitted_key *k, traced *t) {
  ax_fn function = j->function;
  ax_type *types = ax_calloc((size_t)function.in_count + 1, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(function.in_count * sizeof types[0]);
  for (uint32_t i = 0; i < function.in_count; i++) types[i] = k->layouts[i]->type;
  if (k->statics.bytes > 0) {
    memcpy(t->statics, k->statics.data, t->bytes = k->statics.bytes);
    function.context = t->statics;
  }
  ax_status status = (ax_trace)(function, function.in_count, types, &t->program);
  if (t->bytes > 0) memcpy(t->statics, k->statics.data, t->bytes); /* as the key, whatever the function did to them */
  ax_free(types);
  if (status == AX_OK)
    ax_runtime_log(j->runtime, "trace: %u equations, %.3f s", t->program->eqn_count, ax_program_seconds(t->program));
  return status;
}

/* Gives the program of the call, with one more user: one that is there, or traced here. Of threads that trace at the same time the
   first to end gives it to all. */
static ax_status trace_for(ax_jitted *j, const ax_jitted_key *k, traced **out) {
  pthread_mutex_lock(&j->making);
  j->missed++;
  *out = find_traced(j, k);
  if (*out != NULL) (*out)->users++;
  pthread_mutex_unlock(&j->making);
  if (*out != NULL) return AX_OK;
  const size_t bytes = sizeof(traced) + k->statics.bytes;
  traced *made = ax_calloc(1, bytes);
  if (made == NULL) return ax_out_of_memory(bytes);
  ax_status status = trace_types(j, k, made);
  pthread_mutex_lock(&j->making);
  j->traces++;
  *out = status == AX_OK ? find_traced(j, k) : NULL;
  if (status == AX_OK && *out == NULL) {
    made->next = j->traced;
    j->traced = *out = made;
  }
  if (*out != NULL) (*out)->users++;
  pthread_mutex_unlock(&j->making);
  if (*out == made) return AX_OK;
  ax_program_release(made->program);
  ax_free(made);
  return status;
}

/* Keeps the executable, whose reference the table takes if there is memory for that. `making` is held. dropped: what made room for
   it. */
static ax_status keep(ax_jitted *j, const ax_jitted_key *k, traced *t, ax_executable *executable, entry **dropped) {
  const uint32_t in_count = j->function.in_count;
  const size_t bytes = sizeof(entry) + in_count * sizeof(ax_layout *);
  entry *e = ax_alloc(bytes);
  *dropped = NULL;
  if (e == NULL) return ax_out_of_memory(bytes);
  *e = (entry){.hash = k->hash, .of = t, .executable = executable, .added = j->clock};
  atomic_init(&e->used, j->clock);
  for (uint32_t i = 0; i < in_count; i++) e->layouts[i] = ax_layout_retain(k->layouts[i]);
  if (j->count >= j->most_kept) *dropped = oldest(j);
  lock_all(j);
  if (*dropped != NULL) take_out(j, *dropped);
  const bool room = make_room(j);
  if (room) {
    entry **chain = &j->chains[e->hash & (j->chain_count - 1)];
    e->next = *chain;
    *chain = e;
    j->count++;
    j->clock++;
    t->users++;
  }
  unlock_all(j);
  if (*dropped != NULL) leave_traced(j, (*dropped)->of);
  if (room) return AX_OK;
  for (uint32_t i = 0; i < in_count; i++) ax_layout_release(e->layouts[i]);
  ax_free(e);
  return ax_out_of_memory(2 * (size_t)j->chain_count * sizeof j->chains[0]);
}

static bool same_key(const ax_jitted *j, const ax_jitted_key *a, const ax_jitted_key *b) {
  return a->hash == b->hash && memcmp(a->layouts, b->layouts, j->function.in_count * sizeof a->layouts[0]) == 0 &&
         same_bytes(a->statics.data, a->statics.bytes, b->statics.data, b->statics.bytes);
}

/* Waits as long as another thread compiles for this key. True: the table has the executable, which is held. A thread that is itself
   compiling it, and calls from the runtime's log, does not wait. `making` is held. */
static bool wait_for_others(ax_jitted *j, const ax_jitted_key *k, ax_jitted_held *out) {
  for (;;) {
    entry *e = look_up(j, k);
    if (e != NULL) {
      *out = hold(k, e->executable);
      return true;
    }
    const compiling *other = j->compiling;
    while (other != NULL && !(same_key(j, other->key, k) && !pthread_equal(other->thread, pthread_self()))) other = other->next;
    if (other == NULL) return false;
    pthread_cond_wait(&j->made, &j->making);
  }
}

static void end_compiling(ax_jitted *j, const compiling *mine) {
  compiling **link = &j->compiling;
  while (*link != mine) link = &(*link)->next;
  *link = mine->next;
  pthread_cond_broadcast(&j->made);
}

/* Compiles for the key, unless it is done meanwhile. */
static ax_status compile_for(ax_jitted *j, const ax_jitted_key *k, traced *t, ax_jitted_held *out) {
  entry *dropped = NULL;
  ax_executable *executable = NULL;
  ax_compile_options options = j->options;
  if (k->arrays != NULL) options.like = (ax_array_list){j->function.in_count, k->arrays};
  pthread_mutex_lock(&j->making);
  if (wait_for_others(j, k, out)) {
    pthread_mutex_unlock(&j->making);
    return AX_OK;
  }
  compiling mine = {j->compiling, k, pthread_self()};
  j->compiling = &mine;
  pthread_mutex_unlock(&j->making);
  ax_status status = ax_compile(j->runtime, t->program, &options, &executable);
  pthread_mutex_lock(&j->making);
  j->compiles += status == AX_OK;
  if (status == AX_OK && executable->compiled.map != NULL) atomic_store(&j->spread, true);
  const bool kept = look_up(j, k) != NULL; /* by a call within this one's compilation */
  if (status == AX_OK && !kept) status = keep(j, k, t, executable, &dropped);
  if (status == AX_OK) *out = hold(k, executable);
  if (status == AX_OK && !kept) executable = NULL;
  end_compiling(j, &mine);
  pthread_mutex_unlock(&j->making);
  ax_executable_release(executable);
  release_entries(j, dropped);
  return status;
}

ax_status ax_jitted_make(ax_jitted *j, const ax_jitted_key *k, ax_jitted_held *out) {
  traced *t;
  AX_TRY(trace_for(j, k, &t));
  ax_status status = compile_for(j, k, t, out);
  pthread_mutex_lock(&j->making);
  leave_traced(j, t);
  pthread_mutex_unlock(&j->making);
  return status;
}

/* --- All of it --- */

/* Takes out all entries, in a list. */
static entry *take_all(ax_jitted *j) {
  entry *all = NULL;
  for (uint32_t i = 0; i < j->chain_count; i++)
    while (j->chains[i] != NULL) {
      entry *e = j->chains[i];
      take_out(j, e);
      e->next = all;
      all = e;
    }
  return all;
}

static void leave_all(ax_jitted *j, const entry *e) {
  for (; e != NULL; e = e->next) leave_traced(j, e->of);
}

void ax_jitted_clear(ax_jitted *j) {
  if (j == NULL) return;
  pthread_mutex_lock(&j->making);
  lock_all(j);
  entry *all = take_all(j);
  unlock_all(j);
  leave_all(j, all);
  pthread_mutex_unlock(&j->making);
  release_entries(j, all);
}

void ax_jitted_end(ax_jitted *j) {
  entry *all = take_all(j);
  leave_all(j, all);
  release_entries(j, all);
  ax_free(j->chains);
}

ax_jitted_counters ax_jitted_count(ax_jitted *j) {
  ax_jitted_counters counters = {0};
  if (j == NULL) return counters;
  pthread_mutex_lock(&j->making);
  lock_all(j);
  for (uint32_t i = 0; i < AX_CALLER_PLACES; i++) counters.found += j->places[i].found;
  counters.missed = j->missed;
  counters.traced = j->traces;
  counters.compiled = j->compiles;
  counters.dropped = j->dropped;
  counters.kept = j->count;
  unlock_all(j);
  pthread_mutex_unlock(&j->making);
  return counters;
}
