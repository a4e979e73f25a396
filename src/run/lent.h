/* Payloads that a run lends to other processes, which read them where they lie until their owner goes on. */
#ifndef AX_RUN_LENT_H
#define AX_RUN_LENT_H

#include "run/remote.h"

/* What is lent at one time; zero-initialised. */
typedef struct ax_lent {
  ax_loan *loans;
  uint32_t count, capacity;
  int64_t bytes; /* of each */
  double since;
} ax_lent;
static inline void ax_lent_deinit(ax_lent *lent) { ax_free(lent->loans); }

/* Sends a message: a long payload is lent, a shorter one copied. AX_OUT_OF_MEMORY; AX_UNAVAILABLE. */
AX_MUST_USE ax_status ax_lent_send(ax_lent *lent, ax_remote *remote, uint32_t to, ax_envelope *envelope, const void *payload);
/* The memory is needed. Waits for readers about as long as copying takes, and then copies: so a copy is made at most once too
   often, and nothing waits for what may never come. handles: messages of the run are handled in the meantime. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_lent_settle(ax_lent *lent, ax_remote *remote, bool handles);

#endif
