/* Kernels over grids whose points need nothing of one another: how the blocks of a point lie, and which points may be computed side by
   side, as one batch (beside.c). */
#ifndef AX_KERNEL_BESIDE_H
#define AX_KERNEL_BESIDE_H

#include "kernel/kernel.h"

/* What the index of an operand's or a result's block along one of its dimensions is. */
enum { AX_FEED_FIRST = -1, /* 0: the dimension is one block, or its blocks are not gone over */
       AX_FEED_OTHER = -2 };
typedef struct ax_feeds {
  int8_t dim[AX_MAX_RANK]; /* a dimension of the grid, whose number it is; or one of the above */
  bool late[AX_MAX_RANK];  /* a run alone shows whether there is such a block; or, of a result, in which order its blocks come */
} ax_feeds;

typedef struct ax_beside {
  bool dim[AX_MAX_RANK]; /* of the grid: its points may be computed side by side */
  uint32_t count;        /* so many */
  ax_feeds *feeds;       /* by operand, then result. Owned */
  bool computes_only;    /* each point: it waits for no other core, and it stores to results and scratch */
  bool asks;             /* a run alone shows whether its views are there, or its copies, which are its own, arrive before they are waited for */
  double product;        /* multiplications of the largest product of a point */
  uint64_t equations;    /* of a point, with those of the programs in its body */
  bool reduces;          /* an operation of a point makes fewer elements than it is given */
  bool copies_more;      /* what steps leave where it lies would be copied, and is large: blocks that are not chosen in order,
                            copies by hand where points come one after the other */
  double bytes;          /* of all values that a point computes, as if none took another's place; 0 of a kernel that has several cores */
} ax_beside;
/* in: the types of the operands of the kernel_call, without consts. Deinit after a failure too. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_beside_find(const ax_kernel_params *params, const ax_type *in, uint32_t in_count, ax_beside *out);
/* Leaves so many dimensions, the last ones, that the values of all points that are computed at once take at most so many bytes, or one.
   All stay where each batch is of one point: then no value comes back to be added to. */
void ax_beside_limit(const ax_kernel_params *params, double most, ax_beside *beside);
/* Whether, wherever the dimensions from `outer` on begin that are not AX_PARALLEL, the body stores all of its scratch before it reads any (beside_scratch.c).
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_beside_begins_anew(const ax_kernel_params *params, uint32_t outer, bool *out);
void ax_beside_deinit(ax_beside *beside);

/* Whether a run of the kernel cannot tell it from the plain program: each point only computes, and its blocks are all there. in,
   beside: as above. */
typedef enum ax_regular {
  AX_REGULAR_NEVER,
  AX_REGULAR_SOMETIMES, /* if the blocks are there that index maps choose in a run (choice.h) */
  AX_REGULAR_TRIED,     /* if the plain program finds that it is right (`checked`, discharge.h) */
  AX_REGULAR_ALWAYS
} ax_regular;
ax_regular ax_kernel_is_regular(const ax_kernel_params *params, const ax_type *in, uint32_t in_count, const ax_beside *beside);

#endif
