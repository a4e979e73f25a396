/* Plane rotations of many pairs at once, for eigenvalues and singular values. Of 2 h players half sit at a top row, half at a bottom row, and
   those that face each other are a pair; after each round all but the first move on by one seat. So in 2 h - 1 rounds, a sweep, each has
   met each other, and all sit where they sat. */
#ifndef AX_PLAIN_JACOBI_H
#define AX_PLAIN_JACOBI_H

#include "plain/matrix.h"

enum { AX_PLAIN_SWEEPS = 40 }; /* at most; some 6 to 10 are enough */

/* The rotations j = [c, s; -conj(s), c] for which j^H [a, b; conj(b), d] j is diagonal: t is s over c without the phase of b, so
   that a - t |b| and d + t |b| are on the diagonal. a, d: R[..]; b: T[..]; |c| >= |s|. where: those that are to turn; others are 1. */
typedef struct ax_plain_rotations {
  ax_value c, s; /* T[..] */
  ax_value t, size; /* R[..]; size: |b| */
} ax_plain_rotations;
ax_plain_rotations ax_plain_rotate(ax_value a, ax_value b, ax_value d, ax_value where);
/* Columns or rows of the pairs, with c and s that broadcast with them: *p = c p - conj(s) q, *q = s p + c q. */
void ax_plain_turn(ax_value c, ax_value s, ax_value *p, ax_value *q);
/* All but the first at the top move on, along the dimension. */
void ax_plain_move(ax_value *top, ax_value *bottom, int64_t dimension);

#endif
