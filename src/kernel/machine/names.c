/* Numbers by key: an open-addressed table from keys to numbers, and a list back for each kind. */
#include <string.h>

#include "kernel/machine/state.h"

struct ax_names {
  ax_name_key *keys[AX_NAME_KINDS];
  uint32_t count[AX_NAME_KINDS], capacity[AX_NAME_KINDS];
  struct { uint32_t kind, number; } *table; /* number + 1; 0: empty */
  uint32_t size, used;
};

ax_status ax_names_create(ax_names **out) {
  *out = ax_calloc(1, sizeof **out);
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof **out);
}

void ax_names_release(ax_names *names) {
  if (names == NULL) return;
  for (int k = 0; k < AX_NAME_KINDS; k++) ax_free(names->keys[k]);
  ax_free(names->table);
  ax_free(names);
}

static uint32_t place_of(const ax_names *names, const ax_name_key *key) {
  for (uint64_t at = ax_hash_bytes(AX_HASH_SEED, key, sizeof *key);; at++) {
    uint32_t i = (uint32_t)(at & (names->size - 1));
    if (names->table[i].number == 0) return i;
    if (names->table[i].kind == key->kind && memcmp(&names->keys[key->kind][names->table[i].number - 1], key, sizeof *key) == 0)
      return i;
  }
}

static ax_status enlarge(ax_names *names) {
  if (2 * names->used < names->size) return AX_OK;
  uint32_t size = names->size == 0 ? 64 : 2 * names->size;
  void *table = ax_calloc(size, sizeof names->table[0]);
  if (table == NULL) return ax_out_of_memory(size * sizeof names->table[0]);
  ax_free(names->table);
  names->table = table;
  names->size = size;
  for (uint32_t k = 0; k < AX_NAME_KINDS; k++)
    for (uint32_t n = 0; n < names->count[k]; n++) {
      uint32_t at = place_of(names, &names->keys[k][n]);
      names->table[at].kind = k;
      names->table[at].number = n + 1;
    }
  return AX_OK;
}

bool ax_names_find(const ax_names *names, const ax_name_key *key, uint32_t *out) {
  if (names->size == 0) return false;
  uint32_t at = place_of(names, key);
  if (names->table[at].number == 0) return false;
  *out = names->table[at].number - 1;
  return true;
}

ax_status ax_names_number(ax_names *names, const ax_name_key *key, uint32_t *out) {
  if (ax_names_find(names, key, out)) return AX_OK;
  uint32_t k = key->kind;
  AX_TRY(enlarge(names));
  AX_TRY(ax_grow(&names->keys[k], sizeof *key, names->count[k], 1, &names->capacity[k]));
  uint32_t at = place_of(names, key);
  names->keys[k][names->count[k]] = *key;
  *out = names->count[k]++;
  names->table[at].kind = k;
  names->table[at].number = *out + 1;
  names->used++;
  return AX_OK;
}

const ax_name_key *ax_names_key(const ax_names *names, ax_name_kind kind, uint32_t number) { return &names->keys[kind][number]; }

uint32_t ax_names_count(const ax_names *names, ax_name_kind kind) { return names->count[kind]; }
