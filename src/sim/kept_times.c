#include "sim/kept_times.h"

#include <pthread.h>
#include <string.h>

enum { places_of_table = 1 << 14, most_kept = places_of_table / 2 };

typedef struct kept {
  ax_sim_procedure procedure; /* kind, group, bytes, root and switches */
  uint32_t axis_count;
  int64_t sizes[AX_MAX_AXES]; /* of the mesh */
  ax_sim_alone alone;
} kept;

struct ax_kept_times {
  pthread_mutex_t lock; /* guards all else */
  kept *table[places_of_table]; /* open addressing; NULL: a free place */
  uint32_t count;
};

static uint64_t hash_of(const ax_sim_procedure *procedure, const ax_mesh *mesh) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, &procedure->bytes, sizeof procedure->bytes);
  hash = ax_hash_word(hash, (uint64_t)procedure->kind);
  hash = ax_hash_word(hash, (uint64_t)procedure->root);
  for (uint32_t a = 0; a < mesh->count; a++) hash = ax_hash_word(hash, (uint64_t)mesh->axis[a].size);
  for (uint32_t c = 0; c < procedure->group.count; c++) hash = ax_hash_word(hash, (uint64_t)procedure->group.cycle[c].stride);
  return ax_hash_word(hash, (uint64_t)procedure->group.members);
}

static bool is_of(const kept *k, const ax_sim_procedure *procedure, const ax_mesh *mesh) {
  if (k->axis_count != mesh->count || !ax_sim_procedure_same(&k->procedure, procedure)) return false;
  for (uint32_t a = 0; a < mesh->count; a++)
    if (k->sizes[a] != mesh->axis[a].size) return false;
  return true;
}

/* Where it is, or would be. With the lock held. */
static kept **place_of(ax_kept_times *t, const ax_sim_procedure *procedure, const ax_mesh *mesh) {
  uint32_t at = (uint32_t)hash_of(procedure, mesh) % places_of_table;
  while (t->table[at] != NULL && !is_of(t->table[at], procedure, mesh)) at = (at + 1) % places_of_table;
  return &t->table[at];
}

bool ax_kept_times_find(ax_kept_times *t, const ax_sim_procedure *procedure, const ax_sim_place *place, ax_sim_alone *out) {
  if (procedure->kind == AX_COLLECTIVE_PERMUTE) return false;
  pthread_mutex_lock(&t->lock);
  const kept *found = *place_of(t, procedure, place->mesh);
  if (found != NULL) *out = found->alone;
  pthread_mutex_unlock(&t->lock);
  return found != NULL;
}

static kept *make(const ax_sim_procedure *procedure, const ax_mesh *mesh, const ax_sim_alone *alone) {
  kept *made = ax_calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->procedure = *procedure;
  made->procedure.chain_count = 0; /* chains stay the caller's */
  memset(made->procedure.chains, 0, sizeof made->procedure.chains);
  made->alone = *alone;
  made->axis_count = mesh->count;
  for (uint32_t a = 0; a < mesh->count; a++) made->sizes[a] = mesh->axis[a].size;
  return made;
}

void ax_kept_times_add(ax_kept_times *t, const ax_sim_procedure *procedure, const ax_sim_place *place, const ax_sim_alone *alone) {
  if (procedure->kind == AX_COLLECTIVE_PERMUTE) return;
  pthread_mutex_lock(&t->lock);
  kept **at = place_of(t, procedure, place->mesh);
  if (*at == NULL && t->count < most_kept) {
    *at = make(procedure, place->mesh, alone);
    t->count += *at != NULL;
  }
  pthread_mutex_unlock(&t->lock);
}

ax_status ax_kept_times_create(ax_kept_times **out) {
  ax_kept_times *t = *out = ax_calloc(1, sizeof *t);
  if (t == NULL) return ax_out_of_memory(sizeof *t);
  pthread_mutex_init(&t->lock, NULL);
  return AX_OK;
}

void ax_kept_times_destroy(ax_kept_times *t) {
  if (t == NULL) return;
  for (uint32_t i = 0; i < places_of_table; i++) ax_free(t->table[i]);
  pthread_mutex_destroy(&t->lock);
  ax_free(t);
}
