/* Checks of operands that the functions of this room share. Each that fails also fails the trace. */
#ifndef AX_LIB_CHECKED_H
#define AX_LIB_CHECKED_H

#include "prim/composite.h"

/* The operand is an array of floats. */
bool ax_float_operand(const char *function, ax_value x);
/* The operand is an array of floats or complex numbers. */
bool ax_inexact_operand(const char *function, ax_value x);
/* The operand is an array of integers, floats or complex numbers. */
bool ax_numeric_operand(const char *function, ax_value x, ax_type *out);
/* Operand i, of this type, has the shape of the first one. */
bool ax_shaped_as(const char *function, uint32_t i, const ax_type *type, const ax_type *first);
/* Whether an optional operand is there: {0} is none. */
bool ax_is_given(ax_value x);
/* An optional operand that must be bool, and broadcasts to `like`; none passes. */
bool ax_mask_operand(const char *function, ax_value mask, const ax_type *like);
/* An optional operand that must have the dtype of `like`, and broadcasts to it; none passes. */
bool ax_beside(const char *function, const char *what, ax_value x, const ax_type *like);

#endif
