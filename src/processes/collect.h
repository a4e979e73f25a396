/* What each process gives, brought to one of them or to all: bytes, of any length in each. */
#ifndef AX_PROCESSES_COLLECT_H
#define AX_PROCESSES_COLLECT_H

#include "processes/together.h"

typedef struct ax_collected { /* of one process */
  void *data;                 /* ends in a 0 that `bytes` does not count; NULL: this process gets none */
  size_t bytes;
} ax_collected;

/* Brings `bytes` bytes of each process to process `root`, or to all (AX_NONE). out: by process; empty on failure, and where
   nothing is brought; else ax_collected_deinit. status: whether this process has got so far; if it is none, it fails everywhere.
   All processes must call it, with the same root. Others' errors; AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_collect_bytes(ax_processes *processes, const ax_doing *doing, ax_status status, uint32_t root, const void *data,
                                 size_t bytes, ax_collected *out);
void ax_collected_deinit(ax_collected *collected, uint32_t count);

#endif
