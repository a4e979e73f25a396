/* What the reductions by one operation share with the rules that stand in files beside them. */
#ifndef AX_OPS_REDUCE_H
#define AX_OPS_REDUCE_H

#include "prim/rules.h"

typedef struct ax_reduce_params {
  ax_dims axes;
} ax_reduce_params;

/* reduce_prod.c: the jvp rule of reduce_prod, and its linearize rule. */
void ax_reduce_prod_jvp(const ax_jvp_args *args);

/* reduce_by.c: the equation of `reduce` as a tree of its body, which takes each start once. */
void ax_reduce_expand(const ax_eqn *eqn, const ax_value *in, ax_value *out);

typedef struct ax_reduce_by_params {
  ax_program *body;
  ax_dims axes;
} ax_reduce_by_params;
/* reduce_places.c: the rewrite rule of `reduce`. */
bool ax_reduce_places(const ax_rewrite_args *args);

#endif
