/* Functions of scalars on arrays, as compositions apply them to all elements at once. */
#ifndef AX_LIB_ELEMENTS_H
#define AX_LIB_ELEMENTS_H

#include "prim/composite.h"

/* f on the elements of arrays of one shape, f.in_count of them: as a batch. out: f.out_count arrays of that shape; it may be `in`.
   A result of f that is no scalar fails the trace. */
void ax_apply_to_elements(const char *function, ax_fn f, const ax_value *in, ax_value *out);

#endif
