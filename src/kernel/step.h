/* The record of a kernel's step: everything that walkers over bodies of kernels know of a primitive that stands in them alone. A
   primitive's own record (ir/prim.h) says what it is in any program, and its `step` is this one. So a walker asks the record, and
   names no step:

     typing        check          kernel_call.c           the machine    about, act, note     machine/agent.c, frame.c
     discharge     discharge      discharge_step.c        the executor   run, land            image/run_step.c, _act.c, _away.c
     what it touches   access, view, copies, counts, elsewhere, ..: target.c, content.c, image/, check/decides.c

   Simulated time and the checker see the acts that `about` makes. Structs that rules take are of the rooms below; the steps
   themselves stand below all of these (kernel/steps). */
#ifndef AX_KERNEL_STEP_H
#define AX_KERNEL_STEP_H

#include "ir/prim.h"
#include "kernel/kernel.h"
#include "prim/rules.h"

struct ax_about;           /* machine/agent.h */
struct ax_content_view;    /* discharge.h */
struct ax_core_frame;      /* machine/state.h */
struct ax_discharge;       /* discharge.h */
struct ax_discharge_args;  /* discharge.h */
struct ax_landing;         /* image/run.h */
struct ax_row_walk;        /* image/run.h */
struct ax_view;            /* machine/state.h */

typedef enum ax_step_role {
  AX_STEP_MAKES_VIEW, /* gives a view of memory, or a number that the core knows; other agents cannot notice it */
  AX_STEP_MAKES_ACT,  /* an act: other agents may notice it. It has an `access`, or `about` and `act` */
  AX_STEP_MAKES_NOTE, /* a hint, or something that the core only remembers; other agents cannot notice it */
  AX_STEP_HOLDS_BODY  /* a REGION that has a meaning of its own in kernels */
} ax_step_role;

/* Spans of the text that findings name. The parameters of the step that begins one are ax_trace_params. */
typedef enum ax_step_span { AX_SPAN_NONE, AX_SPAN_BEGINS, AX_SPAN_ENDS } ax_step_span;

/* An access of the core itself to the memory of operand 0, a ref, before it goes on. It needs no other rule: this is what all rooms
   ask. Where `mask` is an operand's number, the parameters are ax_ref_masked_params. */
typedef struct ax_step_access {
  bool reads, writes;
  uint32_t value;         /* the operand that is stored; 0: none */
  uint32_t mask, other;   /* the operands of a masked one: the mask, and what a load gives where it is false; 0: none */
  const ax_prim *combine; /* stored is what it makes of the elements there and the value; NULL: the value itself */
} ax_step_access;

/* A view of operand 0, memory. */
typedef struct ax_step_view {
  bool all; /* of all its elements */
  /* Makes the operand's view into this one: dimensions and strides. `type`: the result's. */
  ax_status (*shape)(const ax_eqn *eqn, const ax_type *type, struct ax_view *view);
  /* Adds to *offset, of the operand's view, where this one begins. starts: the other operands. AX_INVALID_ARGUMENT: it leaves the
     operand; the message says "takes elements ..". NULL: it begins where the operand's does. */
  ax_status (*offset)(const ax_eqn *eqn, const ax_type *of, const int64_t *strides, const int64_t *starts, int64_t *offset);
  /* The greatest start along each dimension, if all from 0 to it are inside and the view then begins at the sum of starts times
     strides; what is outside is for `offset` to say. NULL: that says it always. */
  void (*lasts)(const ax_eqn *eqn, const ax_type *of, int64_t *last);
  /* Whether it is one index along the first dimensions and all of the others, or all of the operand in its order. NULL: it is
     not. */
  bool (*keeps_place)(const ax_eqn *eqn, const ax_type *of);
  /* Memory as values: the view's elements of `whole`, which is what the operand views; and `whole` with `value` there instead (of
     `all` elements `whole` is not used). */
  ax_value (*read)(const struct ax_content_view *view, ax_value whole);
  ax_value (*write)(const struct ax_discharge *d, const struct ax_content_view *view, ax_value whole, ax_value value);
  /* Whether it is all in the operand: bool[]. NULL: it always is. */
  ax_value (*there)(const struct ax_content_view *view);
} ax_step_view;

/* --- check: whether the step may stand where it stands in a kernel. AX_INVALID_ARGUMENT. --- */
typedef struct ax_step_check_args {
  const ax_program *program;
  const ax_eqn *eqn;
  uint32_t devices; /* axes of devices: the first of the program's */
  uint32_t grid;    /* the dimensions that program_id may ask for; a REGION may set it, for its programs */
} ax_step_check_args;

typedef struct ax_step {
  ax_step_role role;
  ax_step_span span;
  const ax_step_access *access; /* NULL: it is no access */
  const ax_step_view *view;     /* NULL: it is no view of an operand */
  bool copies;       /* from the memory of operand 0 to that of operand 1; its parameters are ax_copy_params */
  bool counts;       /* it changes the count of operand 0, a semaphore */
  bool reads_count;  /* it gives a count that other agents change */
  bool elsewhere;    /* its parameters begin with ax_core_params, and its last operands are the coordinates of that core */
  bool meets_others; /* signals, waits and arrivals: cores order themselves by it */
  bool own_barrier;  /* it gives the device's own semaphore */
  bool moves;        /* it starts copies, groups them or waits for them */
  bool grid_number;  /* it gives the number in the grid along the dimension of its ax_program_id_params */
  bool grid_point;   /* its first operands are the numbers in the grid of its ax_grid_point_params */
  bool opens_scope;  /* its parameters are ax_run_scoped_params */
  ax_status (*check)(ax_step_check_args *args); /* NULL: it may stand anywhere */

  /* In the machine. about: what the act is, and its touches. act: does it; *more: the step has another act. note: what the core
     remembers; NULL: nothing. */
  ax_status (*about)(struct ax_about *about);
  ax_status (*act)(struct ax_about *about, bool *more);
  ax_status (*note)(struct ax_core_frame *frame);
  /* In a plain program. NULL: nothing is left of it, or it is an access or a view. */
  void (*discharge)(const struct ax_discharge_args *args);
  /* In the executor, with the group's lock held. *waits: it is not done, and the core stands in a list. NULL: there is nothing to
     do, or it is an access or a view. */
  ax_status (*run)(struct ax_row_walk *walk, bool *waits);
  /* Of a step that is done on another core: what it does there, if that core's device is of another process, to which `run` has
     sent it. With the lock of the group there held, on entry and at the end. */
  ax_status (*land)(struct ax_landing *landing);
} ax_step;

/* --- What walkers ask of any equation of a body --- */
static inline const ax_step_access *ax_step_access_of(const ax_eqn *eqn) {
  return eqn->prim->step != NULL ? eqn->prim->step->access : NULL;
}
static inline bool ax_step_is_masked(const ax_eqn *eqn) {
  const ax_step_access *access = ax_step_access_of(eqn);
  return access != NULL && access->mask != 0 && ((const ax_ref_masked_params *)eqn->params)->masked;
}
/* The elements that a writing access stores over `was`: `value`, or `was` combined with it, as by an atomic add. */
static inline ax_value ax_step_stored(const ax_step_access *access, ax_value was, ax_value value) {
  return access->combine != NULL ? ax_bind1(access->combine, NULL, (ax_value[]){was, value}, 2) : value;
}
/* NULL: it is no view of an operand. */
static inline const ax_step_view *ax_step_view_of(const ax_eqn *eqn) {
  return eqn->prim->step != NULL ? eqn->prim->step->view : NULL;
}
/* The core that the step is for; NULL: it is no step that goes to another core. */
static inline const ax_core_params *ax_step_target(const ax_eqn *eqn) {
  return eqn->prim->step != NULL && eqn->prim->step->elsewhere ? eqn->params : NULL;
}
/* NULL: it opens no scope. */
static inline const ax_run_scoped_params *ax_step_scope(const ax_eqn *eqn) {
  return eqn->prim->step != NULL && eqn->prim->step->opens_scope ? eqn->params : NULL;
}
/* NULL: it gives no number in the grid. */
static inline const ax_program_id_params *ax_step_grid_number(const ax_eqn *eqn) {
  return eqn->prim->step != NULL && eqn->prim->step->grid_number ? eqn->params : NULL;
}
/* NULL: it is no point of a grid. */
static inline const ax_grid_point_params *ax_step_grid_point(const ax_eqn *eqn) {
  return eqn->prim->step != NULL && eqn->prim->step->grid_point ? eqn->params : NULL;
}
static inline bool ax_step_copies(const ax_eqn *eqn) { return eqn->prim->step != NULL && eqn->prim->step->copies; }
/* Whether it reads elements of operand i's memory. */
static inline bool ax_step_reads(const ax_eqn *eqn, uint32_t i) {
  const ax_step_access *access = ax_step_access_of(eqn);
  return i == 0 && ((access != NULL && access->reads) || ax_step_copies(eqn));
}
/* Whether it changes elements of operand i's memory, or its count. */
static inline bool ax_step_writes(const ax_eqn *eqn, uint32_t i) {
  const ax_step_access *access = ax_step_access_of(eqn);
  if (i == 1 && ax_step_copies(eqn)) return true;
  return i == 0 && ((access != NULL && access->writes) || (eqn->prim->step != NULL && eqn->prim->step->counts));
}

#endif
