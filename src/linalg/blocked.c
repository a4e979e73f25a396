/* Large matrices by blocks. A block is made at once from all that it depends on, so that products are long; what is made stands in one
   array, which is overwritten in place. */
#include "linalg/blocked.h"

#include "axle/linalg.h"
#include "axle/ops.h"

enum { block = 128, least = 512, least_vectors = 64 };

bool ax_is_blocked(ax_dtype dtype, int64_t n, int64_t vectors) {
  return !ax_is_complex(dtype) && n >= least && vectors >= least_vectors;
}

/* A row or column of blocks at once. OpenBLAS solves from the left faster, so others are transposed. */
static ax_value diagonal_solved(const ax_triangular_solve_params *p, ax_value a, ax_value b) {
  if (p->left_side) return ax_triangular_solve(a, b, true, p->lower, p->transpose_a, false, p->unit_diagonal);
  const ax_value x = ax_triangular_solve(a, ax_matrix_transpose(b), true, p->lower, !p->transpose_a, false, p->unit_diagonal);
  return ax_matrix_transpose(x);
}

ax_value ax_blocked_solve(const ax_triangular_solve_params *p, ax_value a, ax_value b) {
  const ax_type type = ax_typeof(a);
  if (ax_failed()) return ax_poison;
  const int64_t n = type.dims[type.rank - 1], along = p->left_side ? -2 : -1, count = (n + block - 1) / block;
  const bool ascends = (p->lower != p->transpose_a) == p->left_side;
  ax_value x = b;
  for (int64_t step = 0; step < count && !ax_failed(); step++) {
    const int64_t begin = (ascends ? step : count - 1 - step) * block, end = begin + block < n ? begin + block : n,
                  size = end - begin;
    const int64_t from = ascends ? 0 : end, solved = ascends ? begin : n - end;
    ax_value right = ax_slice_in_dim(x, begin, end, 1, along);
    if (solved > 0) {
      const bool by_rows = p->left_side != p->transpose_a;
      ax_value factor = by_rows ? ax_matrix_part(a, begin, size, from, solved) : ax_matrix_part(a, from, solved, begin, size);
      const ax_value known = ax_slice_in_dim(x, from, from + solved, 1, along);
      if (p->transpose_a) factor = ax_matrix_transpose(factor);
      right = ax_sub(right, p->left_side ? ax_matmul(factor, known) : ax_matmul(known, factor));
    }
    const ax_value diagonal = ax_matrix_part(a, begin, size, begin, size);
    x = ax_dynamic_update_slice_in_dim(x, diagonal_solved(p, diagonal, right), ax_integer(begin), along);
  }
  return x;
}
