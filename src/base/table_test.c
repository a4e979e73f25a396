/* Tables of numbers by hash, beside a search of the list: keys that share a hash, many entries, and the last ones taken out again. */
#include <stdlib.h>

#include "base/table.h"
#include "support/cmocka.h"

enum { MOST = 5000 };

typedef struct words {
  uint32_t key[MOST], before[MOST]; /* what a slot had before the entry */
  uint32_t count, hashes;           /* keys of one remainder share a hash */
  ax_table table;
} words;

static bool has(const void *list, uint32_t number, const void *key) { return ((const words *)list)->key[number] == *(const uint32_t *)key; }

static uint32_t *slot(const words *w, uint32_t key) {
  return ax_table_slot(&w->table, ax_hash_word(AX_HASH_SEED, key % w->hashes), has, w, &key);
}

static void put(words *w, uint32_t number) {
  uint32_t *at = slot(w, w->key[number]);
  w->before[number] = *at;
  *at = number + 1;
}

static void add(words *w, uint32_t key) {
  bool emptied;
  assert_int_equal(ax_table_room(&w->table, w->count, &emptied), AX_OK);
  for (uint32_t i = 0; emptied && i < w->count; i++) put(w, i);
  w->key[w->count] = key;
  put(w, w->count++);
}

static void drop(words *w, uint32_t mark) {
  for (; w->count > mark; w->count--) *slot(w, w->key[w->count - 1]) = w->before[w->count - 1];
}

/* The last entry that has the key, as 1 + its number. */
static uint32_t last_with(const words *w, uint32_t key) {
  uint32_t i = w->count;
  while (i > 0 && w->key[i - 1] != key) i--;
  return i;
}

static void check(const words *w, uint32_t keys) {
  for (uint32_t key = 0; key < keys; key += 7) assert_int_equal(*slot(w, key), last_with(w, key));
}

static void test_finds_the_last_entry_of_a_key(void **state) {
  (void)state;
  for (uint32_t hashes = 1; hashes <= 1000000; hashes *= 100) {
    words *w = calloc(1, sizeof *w);
    assert_non_null(w);
    uint64_t seed = hashes;
    w->hashes = hashes;
    for (int round = 0; round < 6; round++) {
      const uint32_t mark = w->count, more = hashes == 1 ? 60 : 700;
      for (uint32_t i = 0; i < more; i++) add(w, (uint32_t)(ax_next_random(&seed) % (2 * more)));
      check(w, 2 * more);
      drop(w, mark + more / 3);
      check(w, 2 * more);
      assert_true(w->table.size >= 2 * w->count && (w->table.size & (w->table.size - 1)) == 0);
    }
    ax_table_deinit(&w->table);
    free(w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_finds_the_last_entry_of_a_key)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
