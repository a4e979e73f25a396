/* Vector mathematics of our own, compiled ahead: calls cost the code generator nothing. A function takes and gives one whole
   register.

     vector_math.h     the functions there are, by width
     vector_lanes.h    what the functions are written in: registers of f32 and f64, and the few operations on them
     vector_f32.h, vector_f64.h    the functions, once
     vector_angles_f32.h, vector_angles_f64.h    tan, the inverse functions, the cube root, 2^x
     vector_pow_f64.h  powers of f64
     vector_rem.h      the remainder
     vector_special.h  special functions, and what is composed of others
     vector_64.c, vector_32.c      them, compiled for AVX-512 and for AVX2 with FMA
     vector_16.c       for registers of 16 bytes, of any processor, only what SLEEF has not right

   Both of the wider forms do the same operations in the same order, so they give the same bits. In registers of 16 bytes kernels
   call SLEEF (emit/math.c). */
#ifndef AX_JIT_MATH_VECTOR_MATH_H
#define AX_JIT_MATH_VECTOR_MATH_H

#include "ir/scalar.h"

/* A function from vector to vector, cast to this type. Its argument and result are in the registers in which the platform's C
   passes vectors. */
typedef void (*ax_vector_function)(void);

/* NULL: there is no such function. */
typedef struct ax_vector_math {
  ax_vector_function f32[AX_SCALAR_COUNT], f64[AX_SCALAR_COUNT];
  ax_vector_function precise_f64[AX_SCALAR_COUNT]; /* where SLEEF's would depend on the neighbours */
  double (*log2_of_f32)(float x);                  /* of a normal positive number, as powers of f32 compute it */
} ax_vector_math;

/* 2^r for r of -1/2 to 1/2, to the digits of an f32: its terms, that of r^0 first. emit/math.c has it in line. */
static const double ax_exp2_terms[7] = {1.0000000005541783,   0.6931472057372289,    0.24022646890544003,   0.05550328777029393,
                                        0.009618488966838713, 0.0013399931198759066, 0.00015345809396182967};

/* By bytes a register. All functions are NULL where the compiler makes no code for such registers. */
extern const ax_vector_math ax_vector_math_64, ax_vector_math_32, ax_vector_math_16;

#endif
