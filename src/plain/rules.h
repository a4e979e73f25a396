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
  uint32_t rank; /* of what `trace` takes for the first operand: leading dimensions are a batch that all have, and are not there; 0: all are */
} ax_plain_rule;
extern const ax_plain_rule ax_plain_cholesky, ax_plain_lu, ax_plain_geqrf, ax_plain_geqp3, ax_plain_householder_product, ax_plain_ormqr,
    ax_plain_qr, ax_plain_hessenberg, ax_plain_tridiagonal, ax_plain_tridiagonal_solve, ax_plain_eigh,
    ax_plain_eigh_steps, ax_plain_svd, ax_plain_schur, ax_plain_eig, ax_plain_reduce;
extern const ax_plain_rule ax_plain_collectives[], ax_plain_narrow[]; /* lists, ended by an empty rule */

/* For `applies`: LAPACK's functions are lacking. */
bool ax_plain_lapack(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out);

/* Of what moves numbers, whose results have its operands' dtypes. For `applies`: some are of two bits, which the device cannot move; for
   `trace`: those of less than a byte as bytes, there and back. */
bool ax_plain_two_bits(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out);
void ax_plain_as_bytes(const ax_eqn *eqn, const ax_value *in, ax_value *out);

/* Parameters of the equation, which has them: where one is in its parameters; a bool. */
const void *ax_plain_parameter(const ax_eqn *eqn, const char *name);
bool ax_plain_bool(const ax_eqn *eqn, const char *name);

#endif
