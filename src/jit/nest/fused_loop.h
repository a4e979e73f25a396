/* A fused loop: kernels, and the loops and branches around them, compiled as one function. So an iteration of a small loop costs
   the instructions of its kernels, without a call and an instruction of the executor for each.

     steps, in the order of the list:   LOOP trips            .. END
                                        LOOP -1   ..  TEST c  .. END     while c holds
                                        BRANCH i  CASE .. CASE .. END    the case of number i, clamped
                                        KERNEL

   Steps work on *places*: memory whose addresses are given when the function is called. A place can be *held* if it has few
   elements and only the fused loop's own steps touch it while the function runs. It is read before the first step if it is
   needed, stays in registers, and is written after the last step if it is wanted. The registers hold one element, or a few
   vectors if every step that touches the place goes through them one by one, or a few elements each for itself (elements.h). */
#ifndef AX_JIT_NEST_FUSED_LOOP_H
#define AX_JIT_NEST_FUSED_LOOP_H

#include "plan/kernel.h"

typedef enum ax_fused_loop_step_kind {
  AX_FUSED_LOOP_KERNEL,
  AX_FUSED_LOOP_LOOP,
  AX_FUSED_LOOP_TEST,
  AX_FUSED_LOOP_BRANCH,
  AX_FUSED_LOOP_CASE,
  AX_FUSED_LOOP_END
} ax_fused_loop_step_kind;

typedef struct ax_fused_loop_operand { /* a place, from an element on, plus `step` bytes for each iteration of a loop */
  uint32_t place, first;               /* first: the element; 0 where no part of the place is held */
  uint32_t loop; /* index among the fused loop's LOOPs; AX_NONE: the address is the same in every iteration */
  int64_t step;
} ax_fused_loop_operand;

typedef struct ax_fused_loop_step {
  ax_fused_loop_step_kind kind;
  uint32_t count;                /* BRANCH: cases */
  int64_t trips;                 /* LOOP; -1: as long as its TEST's operand, a bool, is true */
  const ax_loop_kernel *kernel;  /* KERNEL */
  const ax_fused_loop_operand *operands;    /* KERNEL: by slot; TEST, BRANCH: one */
} ax_fused_loop_step;

typedef struct ax_fused_loop_place {
  ax_dtype dtype;
  uint16_t elems;            /* elements, if it can be held; 0: it cannot */
  bool needed, wanted;
} ax_fused_loop_place;

enum {
  AX_FUSED_LOOP_PLACES = 128,
  AX_FUSED_LOOP_NESTED = 32,
  AX_FUSED_LOOP_HELD = 512,
  AX_FUSED_LOOP_ELEMENTS = 40
}; /* limits on the bytes of a held place, and on its elements if it is held element by element */
typedef struct ax_fused_loop {
  uint32_t step_count, place_count;
  const ax_fused_loop_step *steps;
  const ax_fused_loop_place *places;
} ax_fused_loop;

/* The number of a step's operands. */
static inline uint32_t ax_fused_loop_operands(const ax_fused_loop_step *step) {
  return step->kind == AX_FUSED_LOOP_KERNEL ? step->kernel->slot_count
                                            : step->kind == AX_FUSED_LOOP_TEST || step->kind == AX_FUSED_LOOP_BRANCH;
}
/* These compare structure only: equal fused loops give the same machine code. */
void ax_fused_loop_words(const ax_fused_loop *fused_loop, ax_take_word *take, void *context); /* all of it, as ax_kernel_words */
uint64_t ax_fused_loop_hash(const ax_fused_loop *fused_loop);
bool ax_fused_loop_equal(const ax_fused_loop *a, const ax_fused_loop *b);
/* A copy, with copies of the kernels; NULL: no memory. */
ax_fused_loop *ax_fused_loop_copy(ax_arena *arena, const ax_fused_loop *fused_loop);
/* Whether a kernel may be a step: its code is small enough to repeat instead of call. */
bool ax_fused_loop_takes(const ax_loop_kernel *kernel);

#endif
