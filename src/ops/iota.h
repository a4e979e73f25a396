#ifndef AX_OPS_IOTA_H
#define AX_OPS_IOTA_H

#include "ir/prim.h"

/* The dimension along which an iota counts, of the equation that made a value, which may be NULL; -1: it is no iota. */
int64_t ax_iota_dimension(const ax_eqn *eqn);

#endif
