/* Tangents of matrices brought to Hessenberg's form, or to three diagonals, by reflectors. */
#ifndef AX_LINALG_HESSENBERG_H
#define AX_LINALG_HESSENBERG_H

#include "linalg/matrices.h"

/* q^H a q = h: a T[b.., n, n], h zero below its first subdiagonal, on which numbers are real. q's reflectors are in the form and
   the taus as ax_hessenberg gives them. From a's tangent: h's; the form's below the subdiagonal, and 0 on and above it; the taus'.
   With n = 1 taus have no elements, and the last two are symbolic zeros. */
typedef struct ax_hessenberg_tangents {
  ax_value h, form, taus;
} ax_hessenberg_tangents;
ax_hessenberg_tangents ax_hessenberg_tangents_of(ax_value h, ax_value form, ax_value taus, ax_value a_tangent);

#endif
