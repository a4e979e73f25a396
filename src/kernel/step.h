/* The record of a kernel's step: everything that walkers over bodies of kernels know of a primitive that stands in them alone. A
   primitive's own record (ir/prim.h) says what it is in any program, and its `step` is this one. So a walker asks the record, and
   names no step. */
#ifndef AX_KERNEL_STEP_H
#define AX_KERNEL_STEP_H

#include "kernel/kernel.h"
#include "prim/rules.h"

typedef enum ax_step_role {
  AX_STEP_MAKES_VIEW, /* gives a view of memory, or a number that the core knows; other agents cannot notice it */
  AX_STEP_MAKES_ACT,  /* an act: other agents may notice it */
  AX_STEP_MAKES_NOTE, /* a hint, or something that the core only remembers; other agents cannot notice it */
  AX_STEP_HOLDS_BODY  /* a REGION that has a meaning of its own in kernels */
} ax_step_role;

/* Spans of the text that findings name. The parameters of the step that begins one are ax_trace_params. */
typedef enum ax_step_span { AX_SPAN_NONE, AX_SPAN_BEGINS, AX_SPAN_ENDS } ax_step_span;

/* An access of the core itself to the memory of operand 0, a ref, before it goes on. Where `mask` is an operand's number, the
   parameters are ax_ref_masked_params. */
typedef struct ax_step_access {
  bool reads, writes;
  uint32_t value;         /* the operand that is stored; 0: none */
  uint32_t mask, other;   /* the operands of a masked one: the mask, and what a load gives where it is false; 0: none */
  const ax_prim *combine; /* stored is what it makes of the elements there and the value; NULL: the value itself */
} ax_step_access;

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
  bool copies;       /* from the memory of operand 0 to that of operand 1; its parameters are ax_copy_params */
  bool counts;       /* it changes the count of operand 0, a semaphore */
  bool views_all;    /* a view of all elements of operand 0 */
  bool elsewhere;    /* its parameters begin with ax_core_params, and its last operands are the coordinates of that core */
  bool meets_others; /* signals, waits and arrivals: cores order themselves by it */
  bool reads_count;  /* it gives a count that other agents change */
  bool opens_scope;  /* its parameters are ax_run_scoped_params */
  ax_status (*check)(ax_step_check_args *args); /* NULL: it may stand anywhere */
} ax_step;

/* --- What walkers ask of any equation of a body --- */
/* The core that the step is for; NULL: it is no step that goes to another core. */
static inline const ax_core_params *ax_step_target(const ax_eqn *eqn) {
  return eqn->prim->step != NULL && eqn->prim->step->elsewhere ? eqn->params : NULL;
}
static inline const ax_step_access *ax_step_access_of(const ax_eqn *eqn) {
  return eqn->prim->step != NULL ? eqn->prim->step->access : NULL;
}
static inline bool ax_step_is_masked(const ax_eqn *eqn) {
  const ax_step_access *access = ax_step_access_of(eqn);
  return access != NULL && access->mask != 0 && ((const ax_ref_masked_params *)eqn->params)->masked;
}
/* NULL: it opens no scope. */
static inline const ax_run_scoped_params *ax_step_scope(const ax_eqn *eqn) {
  return eqn->prim->step != NULL && eqn->prim->step->opens_scope ? eqn->params : NULL;
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
/* What is stored where `was` stands, by an access that writes. */
static inline ax_value ax_step_stored(const ax_step_access *access, ax_value was, ax_value value) {
  return access->combine != NULL ? ax_bind1(access->combine, NULL, (ax_value[]){was, value}, 2) : value;
}

#endif
