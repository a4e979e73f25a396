/* Dependences between points of a grid that are in no order, as their numbers along an AX_PARALLEL dimension differ: strands.c says
   which, and why none is missed. */
#ifndef AX_CHECK_STRANDS_H
#define AX_CHECK_STRANDS_H

#include "check/finding.h"
#include "kernel/machine/machine.h"

typedef struct ax_point_label { /* of an act of a core, in a kernel over a grid */
  uint32_t point;               /* row-major: where the core is in the grid, or was last; AX_NONE: it has come to no point yet */
  bool inside;                  /* the act is one of the body's */
  bool reads;                   /* it is an access that reads, whatever its touches say */
  bool may;                     /* it may not come, or not write all that it touches */
} ax_point_label;

/* Into how many strands the grid is cut; 1: all points are in order. */
uint32_t ax_strands_count(const ax_machine *machine);
/* The label of the act that a core comes to at `pc`, but for its point. */
ax_point_label ax_strands_label(const ax_machine *machine, uint32_t core, uint32_t pc);
/* The number of a point. ids: one for each dimension of the grid. */
uint32_t ax_strands_point(const ax_machine *machine, const int64_t *ids);

/* Appends the dependences that a run has, at most `most` of them. record: a run to its end, without a fault, or the general run
   that is made of one. labels: one for each of its steps; only those of cores count. */
AX_MUST_USE ax_status ax_strands_find(const ax_machine *machine, const ax_act_record *record, const ax_point_label *labels,
                                      uint32_t most, ax_act_findings *out);

#endif
