/* Finding the types of loops' carries. A carry varies wherever its start, or the body's result for it, varies. It is reduced where
   one of them is reduced and neither varies. The body is traced again until that holds. Two things keep the number of traces small:

     a round   all that follows from one trace is carried through the traced program, so that the next one begins with the types
               found, however long the way from carry to carry is
     a nest    a loop in a body that is traced again begins with the types it ended with before: types only grow from one trace of
               the outer body to the next. Without that, n nested loops would take 2^n traces

   The types that loops ended with are noted by the loops' order in the body around them. If the loop there has another function, or
   starts with smaller types, it counts as new. */
#ifndef AX_PRIM_SETTLE_H
#define AX_PRIM_SETTLE_H

#include "prim/region.h"

typedef struct ax_loop_note {
  ax_function function;
  uint32_t count;
  ax_spread *start, *end;       /* spreads of the carries */
  struct ax_loop_note *inside;  /* the loops in its body, in the last trace */
  struct ax_loop_note *next;    /* the next loop in the body around it */
} ax_loop_note;

/* Notes of a body being traced: `known`, those of the last trace, from the next loop on; `made`, those of this trace. */
typedef struct ax_loop_notes {
  ax_arena *arena;
  ax_loop_note *known, *made, **last;
} ax_loop_notes;

typedef struct ax_settling {
  ax_loop_notes notes; /* the loop's own */
  ax_loop_note *note;  /* its own */
  ax_type *carries;     /* types for the next trace */
  ax_spread *spread;    /* their spreads */
  uint32_t count;
  bool changed;
} ax_settling;

/* In the trace of a loop's body, which has just begun: the loops in it are noted there. False: the trace has failed. */
bool ax_settle_inside(ax_loop_notes *notes);
/* Before the first trace: enlarges the carries' types by the notes about this loop. False: the trace has failed. */
bool ax_settle_begin(ax_settling *s, ax_function function, ax_type *carries, uint32_t count);
/* Before each trace. */
void ax_settle_round(ax_settling *s);
/* After each trace: made[k] is the spread of carry k at the body's end. If that is more than at the body's beginning, enlarges the
   carries' types for the next trace, and sets `changed`. AX_INVALID_ARGUMENT: the body makes a carry unreduced that did not begin
   so. `eqn`: the loop as traced, whose operands vary as in[] says; in[first + k] is for carry k, and is overwritten. */
AX_MUST_USE ax_status ax_settle(ax_settling *s, const ax_eqn *eqn, ax_axis_set *in, uint32_t first, const ax_spread *made);
/* After the last trace. */
void ax_settle_end(ax_settling *s);

#endif
