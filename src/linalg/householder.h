/* Products of Householder reflectors in derivatives. Of a T[b.., m, n] and taus T[b.., k] the product is q = 1 - v t v^T: v has the
   first k columns of a below its diagonal, and ones on it; t, k by k, is (1 + d s)^-1 d with d of taus on its diagonal and s the part
   of v^T v above the diagonal. This holds for any taus, also where q is not orthogonal. Of complex numbers the transposes are
   adjoints. */
#ifndef AX_LINALG_HOUSEHOLDER_H
#define AX_LINALG_HOUSEHOLDER_H

#include "linalg/matrices.h"
#include "prim/rules.h"

/* LAPACK's geqp3 on the call's m by n matrix at `a`; `work` has room for ax_pivoted_work elements, of which call->lwork are asked
   for. lwork: that number, or -1: it asks. */
void ax_pivoted(const ax_matrix_call *call, void *a, int32_t *order, void *taus, void *work, const int *lwork);
int64_t ax_pivoted_work(const ax_matrix_call *call);

/* For infer: refuses other dtypes, leading dimensions of operands that differ, more taus than rows or columns of a. The operands are
   a, taus, and perhaps a batch of matrices. */
AX_MUST_USE ax_status ax_infer_reflectors(const ax_infer_args *args);

/* What an equation of qr is made of where its results are written for others: geqrf, or geqp3, and householder_product. */
void ax_qr_by_reflectors(const ax_eqn *eqn, const ax_value *in, ax_value *out);

typedef struct ax_reflectors {
  ax_value v, t, v_tangent, t_tangent;
} ax_reflectors;

/* The reflectors, and their tangents by those of a and taus, which may be symbolic zeros. */
ax_reflectors ax_reflectors_of(ax_value a, ax_value taus, ax_value a_tangent, ax_value taus_tangent);
/* The tangent of q, or of its adjoint, times x from the left or the right. */
ax_value ax_reflectors_tangent(const ax_reflectors *r, ax_value x, bool left, bool transposed);

/* What q^H dq is, given g = q^H da r^-1: it is skew, and the diagonal of dr r^-1 = g - q^H dq is real. */
ax_value ax_skew_part(ax_value g);
/* Tangents of the form below its diagonal, and 0 elsewhere, and of the taus, of a square form whose q turns by `skew` = q^H dq. */
void ax_reflectors_turned(ax_value form, ax_value taus, ax_value skew, ax_value *form_tangent, ax_value *taus_tangent);
/* Tangents of a = q r in LAPACK's form (v below the diagonal of r, and taus), given that form and the tangent of a. */
void ax_reflectors_factored(ax_value form, ax_value taus, ax_value a_tangent, ax_value *form_tangent, ax_value *taus_tangent);

#endif
