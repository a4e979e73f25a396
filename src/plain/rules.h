/* The rules: what equations of a primitive become. A rule may use primitives that have rules themselves, if that comes to an end: what it makes
   is gone through again. */
#ifndef AX_PLAIN_RULES_H
#define AX_PLAIN_RULES_H

#include "plain/plain.h"
#include "prim/expand.h"

typedef struct ax_plain_rule {
  const ax_prim *prim;
  /* Whether an equation of this primitive, with operands and results of these types, needs what is lacking. */
  bool (*applies)(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out);
  ax_expansion_all trace; /* from operands of the equation's types to results of its types */
} ax_plain_rule;

extern const ax_plain_rule ax_plain_cholesky;
extern const ax_plain_rule ax_plain_reduce;
extern const ax_plain_rule ax_plain_collectives[], ax_plain_narrow[]; /* lists, ended by an empty rule */

/* Parameters of the equation, which has them: where one is in its parameters; a bool. */
const void *ax_plain_parameter(const ax_eqn *eqn, const char *name);
bool ax_plain_bool(const ax_eqn *eqn, const char *name);

#endif
