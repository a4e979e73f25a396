/* Initialisers: what fills a leaf with its first values, by the names of jax.nn.initializers. */
#ifndef AX_TREE_INIT_H
#define AX_TREE_INIT_H

#include "base/base.h"
#include "tree/random.h"

/* Fills `data`, an array of `type`, as text[0 .. length) says: "zeros", "normal(0.02)", ..; `key` is where random numbers come
   from. AX_INVALID_ARGUMENT: no initialiser; a number where none belongs, none where one does, or one the dtype does not hold;
   random numbers for a dtype that is not float; fewer than two dimensions where what goes in and out is to be counted. */
AX_MUST_USE ax_status ax_init_fill(const char *text, size_t length, const ax_type *type, ax_random_key key, void *data);

#endif
