/* Francis' iteration: matrices of Hessenberg's form become Schur's by shifted QR steps. */
#ifndef AX_PLAIN_FRANCIS_H
#define AX_PLAIN_FRANCIS_H

#include "plain/matrix.h"

typedef struct ax_plain_schur_form {
  ax_value t, q; /* T[b, n, n] */
  ax_value known; /* bool[b]: the iteration has come to an end */
} ax_plain_schur_form;
/* h T[b, n, n]: finite numbers, the largest near 1, zero below the first subdiagonal. adjoint T[b, n, n]: z^H, where h is z^H x
   z; then x = q t q^H. NULL: q is not wanted, and not there. t is upper triangular; of real numbers it has blocks of 2 by 2
   besides, which no other block touches and whose eigenvalues may be any. */
ax_plain_schur_form ax_plain_francis(ax_value h, const ax_value *adjoint);

#endif
