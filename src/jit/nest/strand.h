/* A strand: kernels, and the loops and branches around them, as one function. So an iteration of a small loop costs the instructions of its
   kernels, not a call and a look at each.

     steps, in the order of the list:   LOOP trips            .. END
                                        LOOP -1   ..  TEST c  .. END     while c holds
                                        BRANCH i  CASE .. CASE .. END    the case of number i, clamped
                                        KERNEL

   What steps touch are *places*: memory whose address is given when the function is called. A place that can be *held* is a few elements, which
   nothing but the strand's own steps touches while it runs: it is read before the first of them if it is needed, written after the last if it is
   wanted, and in registers in between: one element, or a few vectors where every step that touches it goes through them one by one. */
#ifndef AX_JIT_NEST_STRAND_H
#define AX_JIT_NEST_STRAND_H

#include "plan/kernel.h"

typedef enum ax_strand_step_kind { AX_STRAND_KERNEL, AX_STRAND_LOOP, AX_STRAND_TEST, AX_STRAND_BRANCH, AX_STRAND_CASE, AX_STRAND_END } ax_strand_step_kind;

typedef struct ax_strand_operand { /* a place, and so many bytes times the iteration of a loop */
  uint32_t place;
  uint32_t loop; /* the number of the LOOP among those of the strand; AX_NONE */
  int64_t step;
} ax_strand_operand;

typedef struct ax_strand_step {
  ax_strand_step_kind kind;
  uint32_t count;                /* BRANCH: cases */
  int64_t trips;                 /* LOOP: -1 for as long as its TEST's operand, a bool, is true */
  const ax_loop_kernel *kernel;  /* KERNEL */
  const ax_strand_operand *operands;    /* KERNEL: by slot; TEST, BRANCH: one */
} ax_strand_step;

typedef struct ax_strand_place {
  ax_dtype dtype;
  uint16_t elems;            /* of one that can be held; 0: it cannot */
  bool needed, wanted;
} ax_strand_place;

enum { AX_STRAND_PLACES = 128, AX_STRAND_NESTED = 32, AX_STRAND_HELD = 512 }; /* the last: bytes of a place that is held, at most */
typedef struct ax_strand {
  uint32_t step_count, place_count;
  const ax_strand_step *steps;
  const ax_strand_place *places;
} ax_strand;

/* How many operands a step has. */
static inline uint32_t ax_strand_operands(const ax_strand_step *step) {
  return step->kind == AX_STRAND_KERNEL ? step->kernel->slot_count : step->kind == AX_STRAND_TEST || step->kind == AX_STRAND_BRANCH;
}
/* Structure only: equal strands give the same machine code. */
void ax_strand_words(const ax_strand *strand, ax_take_word *take, void *context); /* all of it, as ax_kernel_words */
uint64_t ax_strand_hash(const ax_strand *strand);
bool ax_strand_equal(const ax_strand *a, const ax_strand *b);
/* A copy, with copies of the kernels; NULL: no memory. */
ax_strand *ax_strand_copy(ax_arena *arena, const ax_strand *strand);
/* Whether a kernel may be a step: one whose code is better repeated than called. */
bool ax_strand_takes(const ax_loop_kernel *kernel);

#endif
