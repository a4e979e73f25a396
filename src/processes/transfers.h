/* Long payloads that have not arrived yet: at their sender, or at their receiver. A table finds them by number, because numbers
   come back from other processes, perhaps after the payload is gone. Guarded by the owner's lock. */
#ifndef AX_PROCESSES_TRANSFERS_H
#define AX_PROCESSES_TRANSFERS_H

#include "base/base.h"
#include "processes/transport.h"

typedef struct ax_transfer {
  uint64_t ticket; /* its slot in the table, and above it a number that makes it unique */
  uint64_t run, bytes;
  char *memory;
  void *copy;     /* NULL: the memory is the caller's */
  struct ax_copies *copies; /* where the copy is given back (copies.h) */
  uint64_t loan;  /* 0: it is not lent (loans.h) */
  ax_on_done *done;  /* NULL: nothing to call */
  void *context;
  uint32_t peer;   /* the process at the other end */
  uint32_t pieces; /* that are on their way */
  bool incoming;   /* this process receives it */
  bool started;    /* it can no longer be forgotten */
  struct ax_transfer *next; /* for lists of its owner */
} ax_transfer;

typedef struct ax_transfers {
  ax_transfer **slots;
  uint32_t count, capacity, first_free; /* first_free: no slot below it is free */
  uint32_t used;
  uint32_t serial;
} ax_transfers;

static inline uint32_t ax_transfer_slot(uint64_t ticket) { return (uint32_t)ticket; }

/* A copy of `like` in the lowest free slot, below `most`. AX_OUT_OF_MEMORY. AX_UNAVAILABLE: all slots are taken. */
AX_MUST_USE ax_status ax_transfers_add(ax_transfers *table, const ax_transfer *like, uint32_t most, ax_transfer **out);
ax_transfer *ax_transfers_find(const ax_transfers *table, uint64_t ticket); /* NULL: there is none any more */
void ax_transfers_remove(ax_transfers *table, ax_transfer *transfer);       /* does not free it */
/* Takes those out that `wanted` is true of, in front of a list. */
ax_transfer *ax_transfers_take(ax_transfers *table, bool (*wanted)(const ax_transfer *transfer, const void *context),
                               const void *context, ax_transfer *list);
/* Bytes of those between this process and `peer` that have started. */
uint64_t ax_transfers_started(const ax_transfers *table, uint32_t peer);
void ax_transfers_deinit(ax_transfers *table);                              /* with the transfers in it */

void ax_transfer_end(ax_transfer *transfer); /* calls done, and frees the transfer with its copy */

#endif
