/* Flow: sets carried from a program's inputs to all its values, equation by equation. One analysis answers three questions:

     lowering       a bit an axis: along which axes may a value differ between devices
     derivatives    one bit: which values have a tangent
     batching       one bit (of the axis that is batched, where it has a name): which values have a batch dimension

   What is carried is monotone in the inputs, so that a loop's carries are the least sets that going round does not enlarge.
   Everything is asked once for each program and inputs' sets, and a loop begins with what is known of it: a body is gone through at
   most once for each of its inputs, however deep it stands. */
#ifndef AX_IR_FLOW_H
#define AX_IR_FLOW_H

#include "ir/memo.h"

typedef struct ax_flow {
  ax_memo *memo;
  const char *question; /* a name for it in the memo */
  /* For equations that hold no programs; NULL: their `differs`. */
  void (*rule)(const ax_differs_args *args);
  bool tangents;       /* it asks for derivatives: what has its own answers by that */
  bool first_apart;    /* a scan's first step may be done by itself, so that its carries are what the second begins with
                          (control/scan.c) */
  bool failed;         /* there was no memory */
} ax_flow;

/* The sets of all values of `program`, from those of its inputs; owned by the memo. NULL: no memory. */
const ax_axis_set *ax_flow_program(ax_flow *flow, const ax_program *program, const ax_axis_set *in);
/* The sets of one equation's results. False: no memory. */
bool ax_flow_eqn(ax_flow *flow, const ax_program *program, const ax_eqn *eqn, const ax_axis_set *in, ax_axis_set *out);

/* For loops, whose result k of `body` is carried to input first + k, of `count` carries: the sets of all values of `body`, where
   `in` are those of its inputs before, enlarged to the least sets that going round does not enlarge. Owned by the memo, until it is
   asked of this loop again. NULL: no memory. */
const ax_axis_set *ax_flow_loop(const ax_differs_args *args, const ax_program *body, const ax_axis_set *in, uint32_t first,
                                uint32_t count);

#endif
