/* The scalar operations, which pointwise primitives apply to elements and kernels are made of (plan/kernel.h). */
#ifndef AX_IR_SCALAR_H
#define AX_IR_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

#include "axle/type.h"

typedef enum ax_scalar {
  AX_SCALAR_NONE = 0,
#define AX_SCALAR(name, text, arity) AX_SCALAR_##name,
#include "ir/scalar.def"
#undef AX_SCALAR
  AX_SCALAR_COUNT,
  /* leaves of a kernel's expressions */
  AX_LEAF_CONST = AX_SCALAR_COUNT, /* imm: the element's bits, zero-extended */
  AX_LEAF_INDEX,                   /* s64: the loop index of dimension imm */
  AX_LEAF_AXIS,                    /* s64: this device's coordinate along mesh axis imm */
  AX_LEAF_LOAD,                    /* of slot, at `at` */
  AX_LEAF_INSIDE,                  /* bool: 0 <= at < imm, a position of loop indices alone */
  AX_LEAF_GIVEN                    /* a number that each call of the code gives: number imm of them */
} ax_scalar;

int ax_scalar_arity(ax_scalar op);
const char *ax_scalar_name(ax_scalar op);
/* The immediate of REDUCE_PRECISION. Bits beyond those of any dtype count as 64. */
int64_t ax_precision_imm(int64_t exponent_bits, int64_t mantissa_bits);
int64_t ax_precision_exponent(int64_t imm);
int64_t ax_precision_mantissa(int64_t imm);

/* Says whether an operation is a function of mathematics: exp, its like, the roots, pow, atan2, and special functions. */
bool ax_scalar_is_function(ax_scalar op);
bool ax_scalar_is_special(ax_scalar op); /* one of those of ops/special.c */

/* The largest error of a function in units of the last place of a result of float `dtype` (ir/accuracy.def); 0: no bound is
   given. */
double ax_scalar_error(ax_scalar op, ax_dtype dtype, bool highest);
/* Says whether an accuracy (AX_ACCURACY_DEFAULT, AX_ACCURACY_HIGHEST or a number of units of the last place) is stricter than the
   default. */
bool ax_scalar_precise(ax_scalar op, ax_dtype dtype, int64_t accuracy);

#endif
