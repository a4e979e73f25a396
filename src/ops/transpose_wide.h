/* Transposes of elements of 16 bytes. */
#ifndef AX_OPS_TRANSPOSE_WIDE_H
#define AX_OPS_TRANSPOSE_WIDE_H

#include "plan/lower.h"

/* out[i..] = in[.., i at dimension permutation[d], ..], of c128. Memory that moves: some dimensions other than 1 change their order. */
AX_MUST_USE ax_status ax_lower_transpose_wide(ax_lower *lower, const ax_dims *permutation, uint32_t in, uint32_t out);

#endif
