/* Declarations shared by the files of dot_general. */
#ifndef AX_OPS_DOT_GENERAL_H
#define AX_OPS_DOT_GENERAL_H

#include "prim/shape.h"

typedef struct ax_dot_params {
  ax_dims lhs_contract, rhs_contract, lhs_batch, rhs_batch;
} ax_dot_params;

/* One operand's dimensions, sorted by their role in the product. */
typedef struct ax_dot_side {
  ax_dims batch, free, contract;
} ax_dot_side;

static inline ax_dot_side ax_dot_lhs_side(const ax_dot_params *p, uint32_t rank) {
  return (ax_dot_side){p->lhs_batch, ax_dims_others(rank, &p->lhs_batch, &p->lhs_contract), p->lhs_contract};
}
static inline ax_dot_side ax_dot_rhs_side(const ax_dot_params *p, uint32_t rank) {
  return (ax_dot_side){p->rhs_batch, ax_dims_others(rank, &p->rhs_batch, &p->rhs_contract), p->rhs_contract};
}

ax_status ax_dot_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
