/* For pool.c: the large blocks in use that have more bytes than were asked for, by their address. If all calls ask for the same
   sizes, there are none; then the table is empty and takes no memory. */
#ifndef AX_RUN_LARGER_H
#define AX_RUN_LARGER_H

#include "base/base.h"

typedef struct ax_larger_block {
  void *memory; /* NULL: the slot is empty */
  size_t bytes;
} ax_larger_block;

typedef struct ax_larger { /* zero to start */
  ax_larger_block *slots;
  uint32_t size, count; /* size: a power of two, or 0 */
} ax_larger;

/* False: no memory for it. */
bool ax_larger_put(ax_larger *larger, void *memory, size_t bytes);
/* Takes the block out. Returns its bytes; 0: it is not there. */
size_t ax_larger_take(ax_larger *larger, const void *memory);
void ax_larger_deinit(ax_larger *larger);

#endif
