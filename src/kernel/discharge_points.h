/* A kernel on its way to a plain program: what discharge.c, which goes over its points one by one, and discharge_strands.c, which batches
   those that need nothing of one another, have together. */
#ifndef AX_KERNEL_DISCHARGE_POINTS_H
#define AX_KERNEL_DISCHARGE_POINTS_H

#include "kernel/beside.h"
#include "kernel/discharge.h"

typedef struct ax_cut { /* an operand or a result, as bodies get it */
  const ax_content_view *whole, *block; /* block: the same where it is not cut */
  const ax_type *type;                  /* of all of it, without what blocks that stick out have more */
  ax_value given;                       /* as it is given; not of a result without an operand */
  const ax_value *joined; /* a result that strands made in several pieces, without what sticks out; NULL: it is in its memory */
  const ax_type *shape;  /* of blocks; NULL: it is not cut */
  const ax_program *map;
  ax_value starts[AX_MAX_RANK]; /* of the block of the point at hand */
  bool result;
  bool held; /* of a group's points all have this block: it is taken before them and put after them */
} ax_cut;

typedef struct ax_discharged {
  ax_discharge d;
  const ax_kernel_params *params;
  const ax_value *consts;
  ax_cut *cuts; /* by operand and result */
  uint32_t operand_count, cut_count;
  const ax_content_view **scratch;
  uint32_t body; /* at hand */
  const bool *written; /* which of its inputs it writes */
  ax_carried by_core, by_point, by_group; /* what is carried round the loops over cores, over points, and over those of a group */
  ax_beside beside;
  bool apart; /* as options say */
  const ax_value *strands; /* by dimension of the grid: the number, where points are side by side; NULL: none are */
  /* Points in groups, of those that differ along one dimension alone (discharge_apart.c) */
  uint32_t inner;        /* that dimension; AX_NONE: there are no groups */
  const ax_value *group; /* by dimension of the grid: the number; NULL: all but the inner one are 0 */
  const int64_t *point;  /* by dimension of the grid: the number of the point at hand where it is known, or -1; NULL: none is */
} ax_discharged;

/* The dimension of the grid is gone over point by point. */
static inline bool ax_is_gone_over(const ax_discharged *k, uint32_t dim) { return k->strands == NULL || !k->beside.dim[dim]; }

/* One core does all points, so that memory is as it was given until they begin. (discharge.c) */
bool ax_discharges_once(const ax_discharged *k);
/* All points of a core, or, if k->strands is there, `points` of them. (discharge.c) */
void ax_discharge_points(ax_discharged *k, int64_t points);
/* turn(from), turn(from + 1), .., so many of them; carried: what comes round. */
typedef void ax_discharge_turn(ax_discharged *k, ax_value number);
void ax_discharge_repeat(ax_discharged *k, int64_t from, int64_t count, const ax_carried *carried, ax_discharge_turn *turn);
void ax_carry(ax_carried *carried, uint32_t memory);

/* A number per dimension of `sizes`, row-major; `number` is an integer scalar. (discharge_point.c) */
void ax_discharge_number(const ax_discharge *d, ax_value number, uint32_t count, const int64_t *sizes, ax_value *out);
/* The point's number along each dimension of the grid; `number` is among those that are gone over, or in the group. */
const ax_value *ax_discharge_ids(const ax_discharged *k, ax_value number);
void ax_discharge_point(ax_discharged *k, ax_value number);
/* The block at k->d.ids out of the whole; back into it. */
void ax_discharge_take(ax_discharged *k, ax_cut *c);
void ax_discharge_put(ax_discharged *k, const ax_cut *c);

/* x, whose dimensions are at most `dims`, with elements behind its last ones that no one has stored. (discharge.c) */
ax_value ax_discharge_widened(ax_discharged *k, ax_value x, const int64_t *dims);

/* So many points: those of a group each by itself where they are few, or the first and the last one, if that saves branches; otherwise in a
   loop. (discharge_apart.c) */
void ax_discharge_apart(ax_discharged *k, int64_t points);
/* The last dimension that is gone over, of more than one number; AX_NONE. */
uint32_t ax_discharge_inner(const ax_discharged *k);

/* As ax_discharge_apart, in one loop without a branch, if the points only add to blocks that they have in common. False: they do not, and
   nothing is bound. (discharge_sums.c) */
bool ax_discharge_sums(ax_discharged *k, int64_t points);

/* The dimension of the grid that chooses its blocks along dimension `dim`, where points along it are side by side, each with the one
   block that is its own; AX_NONE. (discharge_strands.c) */
uint32_t ax_strand_of(const ax_discharged *k, const ax_cut *c, uint32_t dim);
/* Binds all points of the core, `points` in each strand, of which k->beside has at least two. */
void ax_discharge_strands(ax_discharged *k, int64_t points);

#endif
