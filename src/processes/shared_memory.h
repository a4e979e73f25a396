/* Memory of this process that the others of its node can map: an exchange reads its operands where they lie, without a system call
   and without a copy in between.

   It is one file without a name (memfd_create), as long as the machine has memory, of which only pages that were written take any.
   Another process opens it by its number in /proc. It is made once and stays until the process ends. In a forked process nothing is
   allocated in it or given back, since it is the parent's too. */
#ifndef AX_PROCESSES_SHARED_MEMORY_H
#define AX_PROCESSES_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Blocks shorter than this are not worth it: messages carry what they hold. */
enum { AX_SHARED_LEAST = AX_HOSTILE ? 1 : 16 << 10 };

/* What another process must know of it. bytes 0: there is none. */
typedef struct ax_shared_memory_name {
  uint64_t address, bytes; /* where it lies in its process */
  uint64_t number;         /* of the file, which tells it from another one that got the same descriptor later */
  int32_t pid, descriptor;
} ax_shared_memory_name;

/* Any thread. Makes it, if it can be made here: the system may not have it, or limits may forbid it. */
ax_shared_memory_name ax_shared_memory_begin(void);

/* Any thread. Memory aligned to a page, not cleared. NULL: there is no room, or no such memory, or the
   caller of ax_set_allocator wants to have all memory. */
void *ax_shared_memory_alloc(size_t bytes);
/* Gives it back to the system, with the same `bytes`. Returns false if it does not lie there. */
bool ax_shared_memory_free(void *memory, size_t bytes);
/* The same where there is some, and other memory (ax_alloc) where not. NULL: out of memory. */
void *ax_shared_or_own_alloc(size_t bytes);
void ax_shared_or_own_free(void *memory, size_t bytes);

/* The memory of another process as this one sees it. */
typedef struct ax_shared_view {
  char *at; /* NULL: it is not seen */
  uint64_t address, bytes;
} ax_shared_view;
ax_shared_view ax_shared_view_open(const ax_shared_memory_name *name);
void ax_shared_view_close(ax_shared_view *view);
/* Where this process sees bytes of the other; NULL: they do not lie in what it shares. */
static inline const char *ax_shared_view_at(const ax_shared_view *view, uint64_t address, size_t bytes) {
  const uint64_t offset = address - view->address;
  return view->at != NULL && address >= view->address && offset <= view->bytes && bytes <= view->bytes - offset ? view->at + offset : NULL;
}

#endif
