/* Flow: sets carried from a program's inputs to all its values, equation by equation. One analysis answers three questions:

     lowering       a bit an axis: along which axes may a value differ between devices
     derivatives    one bit: which values have a tangent
     batching       one bit (of the axis that is batched, where it has a name): which values have a batch dimension

   The sets grow with the inputs' sets. So a loop's carries have the least sets that an iteration does not enlarge. Each program is
   analysed once for given inputs' sets, and a loop starts from its last result: a body is walked at most once for each of its
   inputs, however deep it is nested. */
#ifndef AX_IR_FLOW_H
#define AX_IR_FLOW_H

#include "ir/memo.h"
#include "ir/program.h"

typedef struct ax_flow {
  ax_memo *memo;
  const char *question; /* the question's name in the memo */
  /* The rule for equations that hold no programs; NULL: their `differs`. */
  void (*rule)(const ax_differs_args *args);
  bool tangents;       /* the question is about derivatives, so primitives with derivatives of their own answer by these */
  bool first_apart;    /* the first step of a scan may be computed apart, so that the carries are those that the second step begins
                          with (control/scan.c) */
  /* Axes along which devices choose whether to exchange with each other, since a condition around the exchange differs along them. In a
     loop one may then be ahead of the other. Noted when an equation is first asked about: an answer from the memo adds none, so lowering
     begins with an empty memo. */
  ax_axis_set choosing;
  bool failed;         /* there was no memory */
} ax_flow;

/* Notes that devices that differ along `predicate` choose whether they run the program. */
static inline void ax_flow_choose(ax_flow *flow, const ax_program *program, ax_axis_set predicate) {
  if ((program->effects & AX_EFFECT_EXCHANGE) != 0 && (program->named & predicate) != 0) flow->choosing |= predicate;
}

/* Finds the sets of all values of `program` from those of its inputs; owned by the memo. NULL: no memory. */
const ax_axis_set *ax_flow_program(ax_flow *flow, const ax_program *program, const ax_axis_set *in);
/* Finds the sets of one equation's results. False: no memory. */
bool ax_flow_eqn(ax_flow *flow, const ax_program *program, const ax_eqn *eqn, const ax_axis_set *in, ax_axis_set *out);

/* For loops that carry result k of `body` to input first + k, for `count` carries: enlarges `in`, the sets of the inputs, to the
   least sets that an iteration does not enlarge, and finds the sets of all values of `body`. Owned by the memo, until the next call
   for this loop. NULL: no memory. */
const ax_axis_set *ax_flow_loop(const ax_differs_args *args, const ax_program *body, const ax_axis_set *in, uint32_t first,
                                uint32_t count);

#endif
