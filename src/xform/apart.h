/* Reference evaluation of devices apart, for programs with messages between two devices (AX_EFFECT_MESSAGE). In lock step, a device
   that waits for a message would keep the sender from going on. So each lane is a thread here, and one of them runs at a time. */
#ifndef AX_XFORM_APART_H
#define AX_XFORM_APART_H

#include "prim/region.h"

typedef struct ax_crowd ax_crowd;

/* The regions around the equation being evaluated, for error messages. */
struct ax_evaluator {
  const ax_evaluator *outer;
  const ax_eqn *eqn; /* the equation; NULL: outside of all */
  const ax_program *program; /* the program that holds it */
  ax_crowd *crowd; /* the threads; NULL: lanes run in lock step */
  const ax_hooks *hooks; /* NULL: there is no host */
};

/* Evaluates a whole program apart, as ax_evaluate_lanes does, with the same errors. AX_DEADLOCK: also a precv whose message never
   comes. AX_INVALID_ARGUMENT: a message that does not fit its precv, or that no precv takes. */
AX_MUST_USE ax_status ax_crowd_evaluate(const ax_hooks *hooks, const ax_program *program, uint32_t lanes, const int64_t *device,
                                        ax_tensor *const *in, ax_tensor **out);
/* Evaluates a program inside it, each lane by itself. */
AX_MUST_USE ax_status ax_crowd_spread(ax_evaluator *driver, const ax_program *program, uint32_t lanes, const int64_t *device,
                                      ax_tensor *const *in, ax_tensor **out);
/* Meets the other members of a group at driver->eqn. The caller is member `index` of `size`; `group` tells apart the groups that
   meet there. in and out are the caller's own. */
AX_MUST_USE ax_status ax_crowd_meet(ax_evaluator *driver, int64_t group, int64_t index, int64_t size, int64_t device,
                                    ax_tensor *const *in, ax_tensor **out);
/* The first error of any lane. */
AX_MUST_USE ax_status ax_crowd_status(const ax_crowd *crowd);

/* --- evaluate.c --- */
/* Writes at->eqn and its place: "psum f32[4]{V:data} (equation 0 of branch 1 of cond, equation 3, line 7)". */
void ax_evaluator_text(ax_text *text, const ax_evaluator *at);

#endif
