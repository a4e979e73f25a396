/* Which entry of a list has a key. The list is its owner's, and so are what an entry's hash is and whether it has the key; the table
   has numbers of entries by hash, with open addressing, at most half full. */
#ifndef AX_BASE_TABLE_H
#define AX_BASE_TABLE_H

#include "base/base.h"

typedef struct ax_table { /* zero to start */
  uint32_t *slots;        /* 1 + the number of an entry; 0: none */
  uint32_t size;          /* 0, or a power of two */
} ax_table;

/* Whether entry `number` of the list has the key. */
typedef bool ax_table_has(const void *list, uint32_t number, const void *key);

/* The slot of the entry that has the key, or the empty one where it would be. The table has room. Inline, so that `has` is. */
static inline uint32_t *ax_table_slot(const ax_table *table, uint64_t hash, ax_table_has *has, const void *list, const void *key) {
  uint32_t at = (uint32_t)hash & (table->size - 1);
  for (; table->slots[at] != 0; at = (at + 1) & (table->size - 1))
    if (has(list, table->slots[at] - 1, key)) break;
  return &table->slots[at];
}

/* Room for one entry more than `count`. *emptied: the table is larger, and nothing is in it: all entries are to be put in anew, in
   their order if the last are to be taken out again (then each slot has what it had before, and no run of slots gets a gap). */
AX_MUST_USE ax_status ax_table_room(ax_table *table, uint32_t count, bool *emptied);
static inline void ax_table_deinit(ax_table *table) { ax_free(table->slots); }

#endif
