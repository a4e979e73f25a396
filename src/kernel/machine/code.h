/* A kernel's body as one list of steps with jumps, which a frame walks through: what cond, scan, while, calls and scopes hold
   stands in line.

     program { x = .. ; scan { body } ; store }   ->   0 EVAL x | 1 BEGIN loop | 2 NEXT (out: 6) | 3 .. body .. | 5 ADVANCE (to: 2)
                                                       | 6 ACT store

   Every value of every program inlined has a slot. A body's inputs are the slots of the operands themselves, so entering one moves
   nothing; results and carries are moved, all of an equation at once. */
#ifndef AX_KERNEL_MACHINE_CODE_H
#define AX_KERNEL_MACHINE_CODE_H

#include "kernel/kernel.h"

typedef enum ax_step_kind {
  AX_STEP_EVAL,    /* an equation on values, by its eval rule */
  AX_STEP_VIEW,    /* a view of a ref, or a number that the frame knows (program_id); others do not notice it */
  AX_STEP_ACT,     /* a primitive of kernels that others may notice */
  AX_STEP_MOVE,    /* in[k] to out[k], all read before any is written */
  AX_STEP_JUMP,    /* to `target` */
  AX_STEP_SWITCH,  /* to targets[clamp(in[0])], of `target_count` */
  AX_STEP_TEST,    /* to `target` when in[0] is false */
  AX_STEP_BEGIN,   /* counter `loop` is 0, and out[..] are fresh arrays for what the loop stacks */
  AX_STEP_NEXT,    /* to `target` when the counter is `length`; else out[k] is slice number counter of in[k] */
  AX_STEP_STACK,   /* in[k] becomes slice number counter of out[k] */
  AX_STEP_ADVANCE, /* the counter goes up; to `target` */
  AX_STEP_OPEN,    /* a scope: out[k] are refs of its new scratch */
  AX_STEP_CLOSE,   /* the scope ends; `target` is the step that opened it */
  AX_STEP_END
} ax_step_kind;

typedef struct ax_code_sum { /* an addition to memory: sums.c */
  bool part;      /* the step is one, or a load or store of one */
  uint32_t load;  /* of a store: the step that loaded the other term; AX_NONE: the step is all of the addition, or its load */
  uint32_t value; /* the slot of the term that is added; AX_NONE: of a load */
  uint8_t update; /* an ax_update (act.h) */
} ax_code_sum;

typedef struct ax_core_code_step {
  ax_step_kind kind;
  const ax_eqn *eqn;         /* EVAL, VIEW, ACT, OPEN, CLOSE: the step's equation; of others the one it was made from */
  const ax_program *program; /* which the equation is of */
  const char *span;          /* the innermost trace_begin around; NULL */
  const char *location;      /* of the equation, or the one around it: its own, or "line 12" of a text; NULL */
  uint32_t *in, *out;        /* slots */
  uint32_t in_count, out_count;
  uint32_t target, target_count, *targets;
  uint32_t loop;
  int64_t length;
  bool reverse;
  ax_code_sum sum;
  const ax_eqn *around;      /* the innermost equation around it whose place is known; NULL: there is none */
  bool in_point;             /* it is a part of what a point of a grid does */
} ax_core_code_step;

typedef struct ax_core_code_constant {
  uint32_t slot;
  const ax_literal *literal;
} ax_core_code_constant;

typedef struct ax_core_code {
  const ax_program *program; /* retained */
  ax_core_code_step *steps;
  ax_type *types; /* by slot; the first are the program's inputs */
  ax_core_code_constant *constants;
  uint32_t step_count, slot_count, constant_count, loop_count;
  const uint32_t *point; /* of a body over a grid: the slots of the last point's numbers; NULL: there is no grid */
  const uint32_t *ids;   /* while it is made: the slots of the numbers in the grid around, NULL: there is none */
  const ax_eqn *around;  /* likewise: of a step */
  uint32_t step_capacity, slot_capacity, constant_capacity;
  ax_arena arena;
} ax_core_code;

/* AX_ABSENT: an equation that a core cannot run: a collective, a shard_map. */
AX_MUST_USE ax_status ax_core_code_create(ax_program *program, ax_core_code **out);
void ax_core_code_release(ax_core_code *code);

/* Finds the steps that are parts of additions: their `sum`. */
AX_MUST_USE ax_status ax_core_code_find_sums(ax_core_code *code);

/* "kernel.c:12"; "line 12" of a text; NULL where it is not known or memory is gone. */
const char *ax_eqn_place(const ax_eqn *eqn, ax_arena *arena);
/* "ref_store, kernel.c:12": an equation, for people; in `text`, which is returned. */
const char *ax_step_text(const ax_core_code_step *step, char *text, size_t bytes);

#endif
