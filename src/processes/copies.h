/* Memory for copies of long payloads. What is given back is kept for the next copy, since to touch fresh memory costs several times what
   the copy does: with those in use, no more bytes than ever were. It comes from what other processes of the node map (shared_memory.h),
   if there is such memory, so that they read a copy where it lies. Any thread. */
#ifndef AX_PROCESSES_COPIES_H
#define AX_PROCESSES_COPIES_H

#include <pthread.h>

#include "base/base.h"

typedef struct ax_copy ax_copy; /* in front of a copy's bytes */

typedef struct ax_copies {
  pthread_mutex_t lock; /* guards what follows */
  ax_copy *kept;        /* the one that was given back last first */
  size_t bytes_used, bytes_most; /* most: at a time */
  int process;                   /* a process that is forked from it has none of this memory */
} ax_copies;

void ax_copies_init(ax_copies *copies);
void ax_copies_deinit(ax_copies *copies); /* none is in use */

/* Memory of so many bytes, to a line of the cache. NULL: out of memory. */
void *ax_copies_take(ax_copies *copies, size_t bytes);
void ax_copies_give(ax_copies *copies, void *memory); /* NULL is allowed */

#endif
