/* See table.h. */
#include "base/table.h"

ax_status ax_table_room(ax_table *table, uint32_t count, bool *emptied) {
  *emptied = table->size < 2 * ((uint64_t)count + 1);
  if (!*emptied) return AX_OK;
  uint32_t size = table->size == 0 ? 64 : 2 * table->size;
  uint32_t *slots = ax_calloc(size, sizeof slots[0]);
  if (slots == NULL) return ax_out_of_memory(size * sizeof slots[0]);
  ax_free(table->slots);
  *table = (ax_table){slots, size};
  return AX_OK;
}
