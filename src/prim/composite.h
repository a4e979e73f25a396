/* Checks for functions made of primitives. Such a function checks all operands before it calls a primitive, so that a message names
   the function that the user called, with its operands, and never a primitive that it is made of. Each check that fails also fails
   the trace. */
#ifndef AX_PRIM_COMPOSITE_H
#define AX_PRIM_COMPOSITE_H

#include "prim/bind.h"

/* Gives the type of an operand, which must be an array of any dtype. False: it is no array, or a future; the trace has failed. */
bool ax_operand(const char *function, ax_value x, ax_type *out);
/* The same for several operands, which must have one dtype; `types` has room for them. */
bool ax_operands(const char *function, uint32_t count, const ax_value *xs, ax_type *types);
/* The text of a type in messages, as ax_type_string. */
const char *ax_operand_string(const ax_type *type);

#endif
