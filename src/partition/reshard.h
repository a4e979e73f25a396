/* A value of the whole program as a device holds it, and the change of its layout by collectives and slices that show in the
   program.

     held      f32[2,4], P(data) of f32[8,4]           wanted P(_, model) on data=4, model=2
     cut       f32[2,2]      dimension 1, by model     no gather needs model, so this cut comes first:
     gather    f32[8,2]      dimension 0, over data    the gather moves fewer bytes

   Along a dimension, the axes that both layouts begin with stay. Blocks that only move to another dimension go by all_to_all. */
#ifndef AX_PARTITION_RESHARD_H
#define AX_PARTITION_RESHARD_H

#include "ir/prim.h"
#include "ir/program.h"

/* Whether a value's blocks were joined, and the layout that they were joined to. */
typedef struct ax_asked {
  bool joined, several;
  ax_spec as; /* as: the first such layout; several: another one followed */
} ax_asked;

/* A layout that a value was changed to, with the value in it. */
typedef struct ax_relaid ax_laid;

typedef struct ax_held {
  ax_value value; /* this device's block; where axes do not divide a dimension the last blocks end in padding, in which anything may
                     stand */
  const ax_type *type; /* type of the whole value */
  const ax_spec *spec; /* of axes of the current trace's environment; NULL: whole */
  ax_axis_set parts; /* axes over which each device holds a part of a sum (or of another combination: `combine`); no reader has
                        needed it yet */
  ax_factor_kind combine;
  const ax_spec *combined; /* layout of the combined value: that of the parts, or cut further, by axes over which there are parts */
  ax_axis_set uneven;  /* axes outside the spec along which blocks may differ: the first device's block counts */
  ax_value whole;      /* the whole value if it was gathered already, or poison */
  ax_laid *laid;       /* all other layouts that the value was changed to, with their values */
  const struct ax_held *part_of; /* the value is the elements from part_first on of this one, along part_dim; or NULL */
  uint32_t part_dim;
  int64_t part_first;
  ax_asked *asked;     /* the caller's record of how blocks are joined, or NULL */
} ax_held;

/* Sets the value and its layout. The type stays; all else is cleared. */
void ax_held_set(ax_held *held, ax_value value, const ax_spec *spec);
/* Combines the parts, if the value is in parts. */
void ax_held_combine(ax_held *held);
/* The whole value, the same on all devices of the spec's axes. */
ax_value ax_held_whole(ax_held *held);
/* This device's block of the value in the layout `spec`. */
ax_value ax_held_as(ax_held *held, const ax_spec *spec);
/* This device's part of a sum over the axes `over`, which is the value in the layout `spec`; that has none of them. Parts that devices
   have are theirs; of a value that is cut over these axes each part has its block, between zeros; the rest is the first device's. The
   value stays as it is held. */
ax_value ax_held_as_part(const ax_held *held, ax_axis_set over, const ax_spec *spec);

#endif
