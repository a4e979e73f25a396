/* Loops whose carries' types are being found. A carry varies wherever its start, or what the body makes of it, does, and is reduced
   where one of them is and neither varies; the body is traced again until that holds. What keeps this from costing too much:

     a round   all that follows from one trace is carried through the traced program, so that the next begins with what it comes to,
               however long the way from carry to carry is
     a nest    a loop in a body that is traced again begins with what it came to before: types only grow from one trace of the body
               around it to the next, so it comes to no less. Without that, n loops inside one another would take 2^n

   What loops came to is noted by their order in the body around them. A loop of another function there, or one that starts with
   less, is taken for a new one. */
#ifndef AX_PRIM_SETTLE_H
#define AX_PRIM_SETTLE_H

#include "prim/region.h"

typedef struct ax_loop_note {
  ax_function function;
  uint32_t count;
  ax_spread *start, *end;       /* of the carries */
  struct ax_loop_note *inside;  /* the loops in its body, as last traced */
  struct ax_loop_note *next;    /* the next in the body around it */
} ax_loop_note;

/* Of a body being traced: what its loops came to last time, from the next one on, and now. */
typedef struct ax_loop_notes {
  ax_arena *arena;
  ax_loop_note *known, *made, **last;
} ax_loop_notes;

typedef struct ax_settling {
  ax_loop_notes notes; /* for the traces of the loop's functions */
  ax_loop_note *note;  /* its own */
  ax_type *carries;     /* as they are traced next */
  ax_spread *spread;    /* likewise */
  uint32_t count;
  bool changed;
} ax_settling;

/* Before the first trace; enlarges the carries' types to what is known of them. False: the trace has failed. */
bool ax_settle_begin(ax_settling *s, ax_function function, ax_type *carries, uint32_t count);
/* Before each trace. */
void ax_settle_round(ax_settling *s);
/* After it: made[k] is how carry k spreads at the body's end. When that is more than at its beginning, enlarges the carries' types
   to what that comes to, for the next trace, and sets `changed`. AX_INVALID_ARGUMENT: the body makes unreduced what was not. `eqn`:
   the loop as traced, whose operands vary as in[] says; in[first + k] is for carry k, and is overwritten. */
AX_MUST_USE ax_status ax_settle(ax_settling *s, const ax_eqn *eqn, ax_axis_set *in, uint32_t first, const ax_spread *made);
/* After the last trace. */
void ax_settle_end(ax_settling *s);

#endif
