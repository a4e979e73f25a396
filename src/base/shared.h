/* Memory that several owners hold, with a count: large constants of programs, and the files that they lie in. */
#ifndef AX_BASE_SHARED_H
#define AX_BASE_SHARED_H

#include "base/base.h"

typedef struct ax_shared ax_shared;

enum { AX_SHARED_LEAST = 4096 }; /* bytes of an array from which on programs that are made of each other share it instead of copying it */

/* Both give one reference. `*out` is NULL on failure. Any thread. AX_OUT_OF_MEMORY. */
/* New memory, aligned to 64 bytes, not cleared. */
AX_MUST_USE ax_status ax_shared_create(size_t bytes, ax_shared **out);
/* Memory of the caller's, which is not touched here: release(context) is called once, on the thread of the last release. */
AX_MUST_USE ax_status ax_shared_lend(void (*release)(void *context), void *context, ax_shared **out);
/* For memory of ax_shared_lend: forget(context, start, bytes) is called where its users have what they need of a part, as a copy. It may
   free what the part takes, but the part must still hold the same bytes. Before the memory is used. */
void ax_shared_set_forget(ax_shared *shared, void (*forget)(void *context, const void *start, size_t bytes));
/* Says that a part of the memory is not needed soon. NULL is allowed, and memory that has no such function. Any thread. */
void ax_shared_forget(const ax_shared *shared, const void *start, size_t bytes);
/* Of ax_shared_create: its memory. */
void *ax_shared_data(ax_shared *shared);
/* NULL is allowed. Any thread. */
ax_shared *ax_shared_retain(ax_shared *shared);
void ax_shared_release(ax_shared *shared);

#endif
