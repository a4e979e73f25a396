/* Elements that devices need of each other's blocks along one dimension, and the rounds of exchanges that bring them.

     concatenate x y, blocks of 2 of each, 4 devices; each makes 4 elements
     device      0        1        2        3
     x           a b      c d      e f      g h
     makes       a b c d  e f g h  ...
     pieces   1 -> 0   2 -> 1, 3 -> 1             x: a device receives from two others at most, and sends to one
     rounds      1 -> 0, 2 -> 1 | 3 -> 1             each is one ppermute, in which a device sends once and receives once

   If all pieces of each round put the elements to the same place on every device, the places are written into the program
   (`uniform`). Otherwise each device looks its own up in tables. */
#ifndef AX_PARTITION_REDISTRIBUTE_H
#define AX_PARTITION_REDISTRIBUTE_H

#include "ir/prim.h"
#include "ir/program.h"

/* An array that elements are taken of. */
typedef struct ax_piece_source {
  int64_t block; /* elements of a device's block of it */
  bool whole;    /* each device has all of it */
} ax_piece_source;

typedef struct ax_moved_piece {
  uint32_t source, round;
  int64_t from, to;            /* devices, by their numbers along the axes */
  int64_t first, count, place; /* elements of the sender's block, and where the receiver puts them */
} ax_moved_piece;

typedef struct ax_piece_round {
  uint32_t source;
  bool local;                /* devices take elements of their own blocks */
  int64_t distance, offset;  /* uniform: from receiver to sender, around the ring; place less first */
  int64_t longest, low, end; /* the most elements of a piece; uniform: the places of all are in low <= place < end */
} ax_piece_round;

/* The most exchanges along one dimension. Beyond that a device had better have all of the dimension. */
enum { AX_MOST_EXCHANGES = 16, AX_MOST_ROUNDS = 64 };

typedef struct ax_redistribution {
  int64_t parts, length; /* devices; the elements that each makes */
  const ax_piece_source *sources;
  uint32_t source_count;
  ax_moved_piece *all; /* by receiver */
  uint32_t count, capacity;
  ax_piece_round rounds[AX_MOST_ROUNDS];
  uint32_t round_count;
  bool uniform;
} ax_redistribution;

void ax_redistribution_deinit(ax_redistribution *t);
/* Device `to` needs the elements first <= e < end of the whole source, from `place` on. Devices come in order. */
AX_MUST_USE ax_status ax_redistribution_need(ax_redistribution *t, uint32_t source, int64_t to, int64_t first, int64_t end,
                                             int64_t place);
/* Puts the pieces into rounds. AX_ABSENT: they are too many. */
AX_MUST_USE ax_status ax_redistribution_arrange(ax_redistribution *t);
/* The elements that a device receives, and the exchanges that bring them. */
void ax_redistribution_received(const ax_redistribution *t, int64_t *elements, int64_t *exchanges);
/* Returns what this device makes along dimension d. values: its blocks of the sources. Where nothing is put stands `fill`, or anything
   if the pieces are uniform. */
ax_value ax_redistribution_bring(const ax_redistribution *t, const ax_value *values, const char *axes, uint32_t d, ax_value fill);

#endif
