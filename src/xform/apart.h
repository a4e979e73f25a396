/* Reference evaluation of devices apart, for programs with messages from one device to another (AX_EFFECT_MESSAGE): in lock step a
   device that waits for a message would keep the one that is to send it from going on. Each lane is a thread then, of which one
   runs at a time. */
#ifndef AX_XFORM_APART_H
#define AX_XFORM_APART_H

#include "prim/region.h"

typedef struct ax_crowd ax_crowd;

/* The regions around what is being evaluated, for messages. */
struct ax_evaluator {
  const ax_evaluator *outer;
  const ax_eqn *eqn; /* NULL: none, outside of all */
  const ax_program *program; /* that it is in */
  ax_crowd *crowd; /* NULL: all go in lock step */
  const ax_hooks *hooks; /* NULL: there is no host */
};

/* Evaluates a whole program apart: what ax_evaluate_lanes does, and its errors. AX_DEADLOCK: also a precv whose message never
   comes. AX_INVALID_ARGUMENT: a message that precv does not want, or that nobody takes. */
AX_MUST_USE ax_status ax_crowd_evaluate(const ax_hooks *hooks, const ax_program *program, uint32_t lanes, const int64_t *device,
                                        ax_tensor *const *in, ax_tensor **out);
/* The lanes of a program inside it, each by itself. */
AX_MUST_USE ax_status ax_crowd_spread(ax_evaluator *driver, const ax_program *program, uint32_t lanes, const int64_t *device,
                                      ax_tensor *const *in, ax_tensor **out);
/* The caller is member `index` of a group of `size` that meets at driver->eqn, `group` among such groups; in and out are its
   own. */
AX_MUST_USE ax_status ax_crowd_meet(ax_evaluator *driver, int64_t group, int64_t index, int64_t size, int64_t device,
                                    ax_tensor *const *in, ax_tensor **out);
/* The error that somebody has met. */
AX_MUST_USE ax_status ax_crowd_status(const ax_crowd *crowd);

/* --- evaluate.c --- */
/* "psum f32[4]{V:data} (equation 0 of branch 1 of cond, equation 3, line 7)" of at->eqn */
void ax_evaluator_text(ax_text *text, const ax_evaluator *at);

#endif
