/* What an optimiser's state has: scalars, then for each kind of moment one leaf for each parameter that is trained. And adafactor
   and shampoo, whose moments are of other shapes than the parameters. */
#ifndef AX_TREE_MOMENTS_H
#define AX_TREE_MOMENTS_H

#include "tree/leaves.h"

/* The shape of a moment beside its parameter. LIKE: the same. SCALAR: none. ROWS, COLUMNS: of factored parameters, without the
   largest dimension, or the one after it; else [1]. WHOLE: the parameter's, of factored ones [1]. WIDE: the same, in f32 or f64.
   LEFT, RIGHT: of shampoo's blocks, in f32 or f64. */
typedef enum ax_moment_shape {
  AX_MOMENT_LIKE,
  AX_MOMENT_SCALAR,
  AX_MOMENT_ROWS,
  AX_MOMENT_COLUMNS,
  AX_MOMENT_WHOLE,
  AX_MOMENT_WIDE,
  AX_MOMENT_LEFT,
  AX_MOMENT_RIGHT
} ax_moment_shape;

typedef struct ax_moment {
  const char *name;
  ax_moment_shape shape;
} ax_moment;

enum { AX_MOMENTS = 6 };
/* Fills in the moments: those of the optimiser itself, then acc_grads and ema if there are any. */
uint32_t ax_moments_of(const ax_optimizer *o, ax_moment out[AX_MOMENTS]);
/* count and mini_step. */
uint32_t ax_moment_scalars(const ax_optimizer *o);
bool ax_accumulates(const ax_optimizer *o);

/* Says whether adafactor keeps means along two dimensions in the place of squares, and which: the largest, and the one after it. */
bool ax_is_factored(const ax_optimizer *o, const ax_type *whole, uint32_t *largest, uint32_t *next);
/* The dtype and shape of a moment of a parameter that is `whole`, and here `part`. */
ax_type ax_moment_type(const ax_optimizer *o, ax_moment_shape shape, const ax_type *whole, const ax_type *part);

/* The treedef of the parameters that are trained. Retains the given one if these are all. */
AX_MUST_USE ax_status ax_trained(const ax_optimizer *o, const ax_treedef *params, ax_treedef **out);
AX_MUST_USE ax_status ax_moments_treedef(const ax_optimizer *o, const ax_treedef *trained, ax_treedef **out);

/* --- Leaves that a mesh cuts (cut.c) --- */

typedef struct ax_leaf_cut {
  const ax_type *whole;
  const char *spec;
  ax_axis_set axes; /* along which parts differ */
} ax_leaf_cut;
/* The axes that cut dimension d, of those along which parts differ. */
ax_axis_set ax_cut_axes(const ax_leaf_cut *cut, uint32_t d);
/* Says whether the part that is here is what the spec says. If not, the trace has failed; `why` begins the message. */
bool ax_is_cut_as_said(const ax_leaf_cut *cut, const ax_type *part, const char *why);
/* The whole leaf, gathered from its parts; this device's part of a whole leaf. The part is cut as the spec says. */
ax_value ax_whole_of(const ax_leaf_cut *cut, ax_value part);
ax_value ax_part_of(const ax_leaf_cut *cut, ax_value whole, const ax_type *part);

/* --- adafactor --- */

typedef struct ax_adafactor_leaf {
  const ax_optimizer *o;
  ax_leaf_cut cut;
  ax_value decay, rate; /* in the leaf's dtype: of the means of squares; the learning rate, negative */
  bool decays;
} ax_adafactor_leaf;
/* The new parameter. moments: their places, which hold the old ones. */
ax_value ax_adafactor_step(const ax_adafactor_leaf *leaf, ax_value g, ax_value p, ax_value *const *moments);
/* x less long where the root of the mean of its squares is above the bound: optax.clip_by_block_rms. */
ax_value ax_within_rms(ax_value x, ax_axis_set axes, double bound);
/* The root of the mean of the squares of x, of which devices hold parts. */
ax_value ax_rms_of_parts(ax_value x, ax_axis_set axes);

/* --- shampoo --- */

/* A leaf as a matrix in blocks: of its last dimension the columns, of all others the rows. A leaf of one dimension or none is one
   column, and has no right statistics. Blocks are as even as they can be; what they have beyond the leaf are zeros. */
typedef struct ax_shampoo_blocks {
  int64_t rows, columns;             /* of the leaf */
  int64_t down, across;              /* how many blocks */
  int64_t block_rows, block_columns; /* of a block */
  bool vector;
} ax_shampoo_blocks;
ax_shampoo_blocks ax_shampoo_blocks_of(const ax_optimizer *o, const ax_type *whole);
/* The direction of the step, in the dtype of g. left, right: the places of the statistics, which hold the old ones. */
ax_value ax_shampoo_direction(const ax_optimizer *o, const ax_leaf_cut *cut, ax_value g, ax_value *left, ax_value *right);

#endif
