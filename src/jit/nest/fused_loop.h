/* A fused loop: kernels, and the loops and branches around them, as one function. So an iteration of a small loop costs the
   instructions of its kernels, not a call and a look at each.

     steps, in the order of the list:   LOOP trips            .. END
                                        LOOP -1   ..  TEST c  .. END     while c holds
                                        BRANCH i  CASE .. CASE .. END    the case of number i, clamped
                                        KERNEL

   What steps touch are *places*: memory whose address is given when the function is called. A place that can be *held* is a few
   elements, which nothing but the fused loop's own steps touches while it runs: it is read before the first of them if it is
   needed, written after the last if it is wanted, and in registers in between: one element, or a few vectors where every step that
   touches it goes through them one by one. */
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

typedef struct ax_fused_loop_operand { /* a place, and so many bytes times the iteration of a loop */
  uint32_t place;
  uint32_t loop; /* the number of the LOOP among those of the fused loop; AX_NONE */
  int64_t step;
} ax_fused_loop_operand;

typedef struct ax_fused_loop_step {
  ax_fused_loop_step_kind kind;
  uint32_t count;                /* BRANCH: cases */
  int64_t trips;                 /* LOOP: -1 for as long as its TEST's operand, a bool, is true */
  const ax_loop_kernel *kernel;  /* KERNEL */
  const ax_fused_loop_operand *operands;    /* KERNEL: by slot; TEST, BRANCH: one */
} ax_fused_loop_step;

typedef struct ax_fused_loop_place {
  ax_dtype dtype;
  uint16_t elems;            /* of one that can be held; 0: it cannot */
  bool needed, wanted;
} ax_fused_loop_place;

enum {
  AX_FUSED_LOOP_PLACES = 128,
  AX_FUSED_LOOP_NESTED = 32,
  AX_FUSED_LOOP_HELD = 512
}; /* the last: bytes of a place that is held, at most */
typedef struct ax_fused_loop {
  uint32_t step_count, place_count;
  const ax_fused_loop_step *steps;
  const ax_fused_loop_place *places;
} ax_fused_loop;

/* How many operands a step has. */
static inline uint32_t ax_fused_loop_operands(const ax_fused_loop_step *step) {
  return step->kind == AX_FUSED_LOOP_KERNEL ? step->kernel->slot_count
                                            : step->kind == AX_FUSED_LOOP_TEST || step->kind == AX_FUSED_LOOP_BRANCH;
}
/* Structure only: equal fused loops give the same machine code. */
void ax_fused_loop_words(const ax_fused_loop *fused_loop, ax_take_word *take, void *context); /* all of it, as ax_kernel_words */
uint64_t ax_fused_loop_hash(const ax_fused_loop *fused_loop);
bool ax_fused_loop_equal(const ax_fused_loop *a, const ax_fused_loop *b);
/* A copy, with copies of the kernels; NULL: no memory. */
ax_fused_loop *ax_fused_loop_copy(ax_arena *arena, const ax_fused_loop *fused_loop);
/* Whether a kernel may be a step: one whose code is better repeated than called. */
bool ax_fused_loop_takes(const ax_loop_kernel *kernel);

#endif
