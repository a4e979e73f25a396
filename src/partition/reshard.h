/* A value of the whole program inside the per-device program, and the change of its layout by collectives and slices that show in
   the program.

     held      f32[2,4], P(data) of f32[8,4]           wanted P(_, model) on data=4, model=2
     cut       f32[2,2]      dimension 1, by model     what is cut by axes that nothing is gathered over is cut first:
     gather    f32[8,2]      dimension 0, over data    less moves

   Along a dimension the axes that both layouts begin with stay. Blocks that only move to another dimension go by all_to_all. */
#ifndef AX_PARTITION_RESHARD_H
#define AX_PARTITION_RESHARD_H

#include "ir/program.h"

/* What a value's blocks were joined to. */
typedef struct ax_asked {
  bool joined, several;
  ax_spec as; /* the first time; several: and in another way */
} ax_asked;

/* A layout that a value was brought to. */
typedef struct ax_relaid ax_laid;

typedef struct ax_held {
  ax_value value; /* this device's block; where axes do not divide a dimension the last blocks end in padding, in which anything may
                     stand */
  const ax_type *type; /* of the whole */
  const ax_spec *spec; /* of axes of the current trace's environment; NULL: whole */
  ax_axis_set parts; /* over these each device holds a part of a sum (or of what `combine` says), which nobody has asked for yet */
  ax_factor_kind combine;
  const ax_spec *combined; /* how the sum will lie: as the parts do, or cut further, by axes over which there are parts */
  ax_axis_set uneven;  /* along these, which the spec does not name, blocks may differ: the first device's counts */
  ax_value whole;      /* gathered already, or poison */
  ax_laid *laid;       /* all others that it was brought to */
  ax_asked *asked;     /* to fill, or NULL */
} ax_held;

/* What it holds from now on; its type stays. */
void ax_held_set(ax_held *held, ax_value value, const ax_spec *spec);
/* Combines its parts, if it has any. */
void ax_held_combine(ax_held *held);
/* The whole value, the same on all devices of the spec's axes. */
ax_value ax_held_whole(ax_held *held);
/* The block of it that `spec` says. */
ax_value ax_held_as(ax_held *held, const ax_spec *spec);

#endif
