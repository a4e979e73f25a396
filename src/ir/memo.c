/* A hash table of questions and their answers (memo.h). Entries are in the arena, so their addresses stay when the table grows. */
#include "ir/memo.h"

#include <string.h>

static uint64_t hash_question(const char *question, const ax_program *program, const void *key, size_t key_bytes) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, question, strlen(question));
  hash = ax_hash_bytes(hash, &program, sizeof program);
  return ax_hash_bytes(hash, key, key_bytes);
}

static bool is_it(const ax_memo_entry *entry, const ax_memo_entry *question) {
  return entry->hash == question->hash && entry->program == question->program && entry->key_bytes == question->key_bytes &&
         strcmp(entry->question, question->question) == 0 &&
         (question->key_bytes == 0 || memcmp(entry->key, question->key, question->key_bytes) == 0);
}

static ax_memo_entry **place(ax_memo_entry **table, size_t slots, const ax_memo_entry *question) {
  size_t at = (size_t)question->hash & (slots - 1);
  while (table[at] != NULL && !is_it(table[at], question)) at = (at + 1) & (slots - 1);
  return &table[at];
}

static bool reserve(ax_memo *memo) {
  if (2 * memo->count < memo->slots) return true;
  size_t slots = memo->slots > 0 ? 2 * memo->slots : 64;
  ax_memo_entry **table = ax_calloc(slots, sizeof table[0]);
  if (table == NULL) return false;
  for (size_t i = 0; i < memo->slots; i++)
    if (memo->table[i] != NULL) *place(table, slots, memo->table[i]) = memo->table[i];
  ax_free(memo->table);
  memo->table = table;
  memo->slots = slots;
  return true;
}

ax_memo_entry *ax_memo_ask(ax_memo *memo, const char *question, const ax_program *program, const void *key, size_t key_bytes) {
  if (!reserve(memo)) return NULL;
  ax_memo_entry asked = {.question = question, .program = (ax_program *)program, .key = key, .key_bytes = key_bytes,
                         .hash = hash_question(question, program, key, key_bytes)};
  ax_memo_entry **at = place(memo->table, memo->slots, &asked);
  if (*at != NULL) return *at;
  ax_memo_entry *entry = ax_arena_copy(&memo->arena, &asked, sizeof asked);
  void *kept = ax_arena_copy(&memo->arena, key, key_bytes);
  if (entry == NULL || kept == NULL) return NULL;
  entry->key = kept;
  (void)ax_program_retain(entry->program);
  memo->count++;
  return *at = entry;
}

ax_memo_entry *ax_memo_ask_equal(ax_memo *memo, const char *question, const ax_program *program) {
  enum { most_places = 16 };
  for (uint64_t place = 0;; place++) {
    const uint64_t key[] = {program->hash, place};
    ax_memo_entry *entry = ax_memo_ask(memo, question, place < most_places ? NULL : program, key, sizeof key);
    if (entry == NULL) return NULL;
    if (entry->made[0] == NULL) entry->made[0] = ax_program_retain((ax_program *)(uintptr_t)program);
    if (ax_program_same_locations(entry->made[0], program, false) && ax_program_equal(entry->made[0], program)) return entry;
  }
}

void ax_memo_deinit(ax_memo *memo) {
  for (size_t i = 0; i < memo->slots; i++) {
    if (memo->table[i] == NULL) continue;
    ax_program_release(memo->table[i]->program);
    for (size_t k = 0; k < AX_COUNT(memo->table[i]->made); k++) ax_program_release(memo->table[i]->made[k]);
  }
  ax_free(memo->table);
  ax_arena_deinit(&memo->arena);
  *memo = (ax_memo){0};
}
