/* Blocks that move between processes: a change of layout where a process lacks some of what its new blocks are made of.

   For each new block of a process, and each old block that it overlaps and the process lacks, the first process that has the old
   block sends the elements that both have, dense and row-major:

     old   P(x)  x=2      0 0 0 0   process 0        new   P(_, x)    0 0 1 1       process 0 sends 1 the piece at (0, 2),
                          1 1 1 1   process 1                         0 0 1 1       process 1 sends 0 the piece at (1, 0)

   All such pieces from one process to another are packed into messages (packets.h), whose number grows with bytes and processes, not
   with pairs of blocks. Who sends what follows from the two layouts alone. So all processes know without asking whether anything
   moves at all. */
#ifndef AX_ARRAY_MOVING_H
#define AX_ARRAY_MOVING_H

#include "array/array.h"

/* Says whether some process lacks some of what its new blocks are made of; the same in all processes. */
bool ax_moving_needed(const ax_layout *old, const ax_layout *to);
/* Copies into new block b what old blocks of this process have of it. */
void ax_moving_fill(const ax_layout *old, const ax_parts *from, const ax_layout *to, uint32_t b, void *data);
/* Sends and receives the rest. status: whether this process has got so far; if it is none, it fails everywhere. */
AX_MUST_USE ax_status ax_moving_do(ax_status status, const ax_layout *old, const ax_parts *from, const ax_layout *to,
                                   ax_parts *parts);
/* The whole array, dense and row-major, to `data` in process `root`, or in all (AX_NONE); elsewhere it is not looked at. */
AX_MUST_USE ax_status ax_moving_gather(ax_status status, const ax_layout *old, const ax_parts *from, uint32_t root, void *data);

/* Slabs: an array cut along its first dimension of more than one index into `count` parts that are as equal as can be, so that each
   is contiguous in the whole. Those that are empty come last. */
void ax_moving_slab(const ax_type *whole, uint32_t slab, uint32_t count, ax_type *type, int64_t *start);
/* Copies into a slab what old blocks of this process have of it. */
void ax_moving_fill_slab(const ax_layout *old, const ax_parts *from, uint32_t slab, uint32_t count, void *data);
/* Brings each process its slab, of as many as there are processes. data: room for it; the old layout is spread. If nothing moves,
   the status is this process's own. */
AX_MUST_USE ax_status ax_moving_slabs(ax_status status, const ax_layout *old, const ax_parts *from, void *data);

#endif
