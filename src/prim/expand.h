/* Equations as programs of other equations. */
#ifndef AX_PRIM_EXPAND_H
#define AX_PRIM_EXPAND_H

#include "ir/prim.h"

/* Traces the program of an equation of one result, on values of the operands' types, and returns the result. */
typedef ax_value (*ax_expansion)(const ax_eqn *eqn, const ax_value *in);

/* For lower rules: lowers the equation as that program. */
AX_MUST_USE ax_status ax_lower_expanded(ax_lower *lower, const ax_eqn *eqn, ax_expansion function, const uint32_t *in, uint32_t *out);
/* For hlo rules: writes that program's StableHLO here. */
AX_MUST_USE ax_status ax_hlo_expanded(ax_hlo *hlo, const ax_eqn *eqn, ax_expansion function, const uint32_t *in, uint32_t *out);

/* The same for equations with any number of results. */
typedef void (*ax_expansion_all)(const ax_eqn *eqn, const ax_value *in, ax_value *out);
AX_MUST_USE ax_status ax_lower_expanded_all(ax_lower *lower, const ax_eqn *eqn, ax_expansion_all function, const uint32_t *in,
                                            uint32_t *out);
AX_MUST_USE ax_status ax_hlo_expanded_all(ax_hlo *hlo, const ax_eqn *eqn, ax_expansion_all function, const uint32_t *in,
                                          uint32_t *out);
/* The same as a call of a function of the module, which equations of one primitive, with the same parameters and types, share wherever they
   come from. */
AX_MUST_USE ax_status ax_hlo_called_all(ax_hlo *hlo, const ax_eqn *eqn, ax_expansion_all function, const uint32_t *in, uint32_t *out);

#endif
