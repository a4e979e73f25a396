/* See executable_cache.h. Equal programs traced at other lines have one hash, and so one chain; all else tells hashes apart. */
#include "array/executable_cache.h"

#include <string.h>
#include <unistd.h>

#include "array/executable.h"

enum { first_chain_count = 64 };

/* --- The key --- */

ax_compile_key ax_compile_key_of(const ax_program *program, const ax_compile_options *options, const bool *donate) {
  const uint32_t words[] = {options->timeline,         options->reference,   options->check_numerics,
                            options->unchecked_ragged, options->keep_unused, options->names.count > 0,
                            options->subnormals,       options->contraction, options->late_sums};
  uint64_t hash = ax_hash_bytes(program->hash, words, sizeof words);
  hash = ax_hash_bytes(hash, donate, program->in_count * sizeof donate[0]);
  for (uint32_t i = 0; i < options->names.count; i++)
    if (options->names.v[i] != NULL) hash = ax_hash_bytes(hash, options->names.v[i], strlen(options->names.v[i]) + 1);
  return (ax_compile_key){program, options, donate, hash};
}

/* Messages must have the caller's names, so executables with other names are not shared. */
static bool same_names(const char *const *a, const char *const *b, uint32_t count) {
  if (a == NULL || b == NULL) return a == b;
  for (uint32_t i = 0; i < count; i++)
    if (a[i] != b[i] && (a[i] == NULL || b[i] == NULL || strcmp(a[i], b[i]) != 0)) return false;
  return true;
}

static bool same_options(const ax_executable *e, const ax_compile_options *options, const bool *donate) {
  const ax_plan_options *own = &e->compiled.plan->options;
  if (e->compiled.timed != options->timeline || e->compiled.flushes != (options->subnormals == AX_SUBNORMALS_FLUSH) ||
      own->reference != options->reference || own->check != options->check_numerics ||
      own->unchecked_ragged != options->unchecked_ragged || own->contract != (options->contraction == AX_CONTRACTION_FUSED) ||
      e->keep_unused != options->keep_unused || e->late_sums != options->late_sums)
    return false;
  for (uint32_t i = 0; i < e->signature.in_count; i++)
    if (e->signature.in[i].asked != donate[i]) return false;
  return same_names((const char *const *)e->names, options->names.count > 0 ? options->names.v : NULL, e->signature.in_count);
}

static bool matches(const ax_executable *e, const ax_compile_key *key) {
  return e->cached.hash == key->hash && ax_program_equal(e->program, key->program) &&
         ax_program_same_locations(e->program, key->program, true) && same_options(e, key->options, key->donate);
}

/* --- The table --- */

void ax_executable_cache_init(ax_executable_cache *cache) {
  pthread_mutex_init(&cache->lock, NULL);
  cache->process = getpid();
}

void ax_executable_cache_deinit(ax_executable_cache *cache) { ax_free(cache->chains); }

static ax_executable **chain_of(const ax_executable_cache *cache, uint64_t hash) {
  return &cache->chains[hash & (cache->chain_count - 1)];
}

static void put(ax_executable_cache *cache, ax_executable *e) {
  ax_executable **chain = chain_of(cache, e->cached.hash);
  e->cached.next = *chain;
  *chain = e;
}

/* Makes the table twice as large once there are more executables than chains. */
static ax_status make_room(ax_executable_cache *cache) {
  if (cache->count < cache->chain_count) return AX_OK;
  const ax_executable_cache old = *cache;
  const uint32_t chain_count = old.chain_count > 0 ? 2 * old.chain_count : first_chain_count;
  ax_executable **chains = ax_calloc(chain_count, sizeof chains[0]);
  if (chains == NULL) return ax_out_of_memory(chain_count * sizeof chains[0]);
  cache->chains = chains;
  cache->chain_count = chain_count;
  for (uint32_t i = 0; i < old.chain_count; i++)
    for (ax_executable *e = old.chains[i], *next; e != NULL; e = next) {
      next = e->cached.next;
      put(cache, e);
    }
  ax_free(old.chains);
  return AX_OK;
}

ax_executable *ax_executable_cache_find(ax_executable_cache *cache, const ax_compile_key *key) {
  pthread_mutex_lock(&cache->lock);
  ax_executable *e = cache->chain_count > 0 ? *chain_of(cache, key->hash) : NULL;
  for (; e != NULL; e = e->cached.next) {
    cache->looked_at++;
    if (matches(e, key)) break;
  }
  if (e != NULL) {
    ax_executable_hold(e);
    cache->found++;
  }
  pthread_mutex_unlock(&cache->lock);
  return e;
}

ax_status ax_executable_cache_add(ax_executable_cache *cache, ax_executable *e, const ax_compile_key *key) {
  pthread_mutex_lock(&cache->lock);
  cache->compiled++;
  ax_status status = make_room(cache);
  e->cached.hash = key->hash;
  e->cached.is_in = status == AX_OK;
  if (status == AX_OK) {
    cache->count++;
    put(cache, e);
  }
  pthread_mutex_unlock(&cache->lock);
  return status;
}

static void take_out(ax_executable_cache *cache, ax_executable *e) {
  ax_executable **link = chain_of(cache, e->cached.hash);
  while (*link != e) link = &(*link)->cached.next;
  *link = e->cached.next;
  cache->count--;
}

/* The lock is held, so that the cache does not hand out an executable that is being destroyed. A forked process, which does not
   compile, leaves the lock and the table as they are. */
bool ax_executable_cache_drop(ax_executable_cache *cache, ax_executable *e) {
  if (cache->process != getpid()) return atomic_fetch_sub(&e->references, 1) == 1;
  pthread_mutex_lock(&cache->lock);
  const bool last = atomic_fetch_sub(&e->references, 1) == 1;
  if (last && e->cached.is_in) take_out(cache, e);
  pthread_mutex_unlock(&cache->lock);
  return last;
}
