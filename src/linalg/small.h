/* Small matrices, in our own code: LAPACK's calls take longer for them than what they compute, and each takes a lock. Of many, as
   many as fill 64 bytes with a part of an element each are factored or solved side by side (f32 and c64: 16; f64 and c128: 8), one in each lane; of few, one after the other.
   Either way a matrix has the same bits, whatever stands beside it and on whatever processor. LAPACK must be there all the same: without it
   no routine on matrices is compiled. */
#ifndef AX_LINALG_SMALL_H
#define AX_LINALG_SMALL_H

#include "linalg/matrices.h"

enum { AX_SMALL_ORDER = 64 }; /* rows and columns, at most */

typedef enum ax_small {
  AX_SMALL_LU,
  AX_SMALL_CHOLESKY,
  AX_SMALL_TRIANGULAR_SOLVE,
  AX_SMALL_LINEAR_SOLVE,
  AX_SMALL_GEQRF,
  AX_SMALL_HOUSEHOLDER_PRODUCT,
  AX_SMALL_QR, /* columns in their order */
  AX_SMALL_COUNT
} ax_small;

/* If the operands of the routine, whose m and n (or n alone) are set, are small, its code becomes ours, and its time. */
void ax_small_code(ax_matrix_routine *routine, ax_small which);

/* The code alone, by registers of `bytes` bytes, 64, 32 or 16. False: the processor has none. */
bool ax_small_by(ax_matrix_routine *routine, ax_small which, uint32_t bytes);

#endif
