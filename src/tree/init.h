/* Initialisers: they fill a leaf with its first values, under the names of jax.nn.initializers. */
#ifndef AX_TREE_INIT_H
#define AX_TREE_INIT_H

#include "base/base.h"
#include "tree/random.h"

/* Fills `data`, an array of `type`, as text[0 .. length) says: "zeros", "normal(0.02)", ..; random numbers come from `key`.
   AX_INVALID_ARGUMENT: an unknown initialiser; a missing number, one too many, or one that the dtype does not hold; random numbers
   for a dtype that is not float; fewer than two dimensions for an initialiser that depends on fan in or fan out. */
AX_MUST_USE ax_status ax_init_fill(const char *text, size_t length, const ax_type *type, ax_fill_key key, void *data);

#endif
