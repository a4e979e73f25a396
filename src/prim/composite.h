/* What functions made of primitives begin with. They check all that can be wrong before they call a primitive, so that a message
   names the function that the user called, with its operands, and never one that stands below it. Each of these fails the trace. */
#ifndef AX_PRIM_COMPOSITE_H
#define AX_PRIM_COMPOSITE_H

#include "prim/rules.h"

/* The type of an operand: an array of any dtype. False: the trace has failed; a future is refused. */
bool ax_operand(const char *function, ax_value x, ax_type *out);
/* The same of several; `types` has room for them. No two dtypes. */
bool ax_operands(const char *function, uint32_t count, const ax_value *xs, ax_type *types);
/* The text of a type in messages, as ax_type_string. */
const char *ax_operand_string(const ax_type *type);

#endif
