/* Large matrices by blocks. A block is made at once from all that it depends on, so that products are long; what is made stands in one
   array, which is overwritten in place. */
#include "linalg/blocked.h"

#include "axle/linalg.h"
#include "axle/ops.h"
#include "ops/sort.h"
#include "prim/prims.h"

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

/* --- LU: of the left half of the columns first; then, with its exchanges, of what it leaves of the right half --- */

enum { lu_block = 64 };

bool ax_is_blocked_lu(ax_dtype dtype, int64_t m, int64_t n) { return !ax_is_complex(dtype) && m >= least && n >= least; }

/* x's rows as the pivots exchange them. */
static ax_value exchanged(ax_value x, ax_value pivots) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  ax_value order = ax_lu_pivots_to_permutation(pivots, type.dims[type.rank - 2]);
  if (type.rank == 2) return ax_take(x, order, 0);
  order = ax_broadcast_to(ax_expand_dims(order, -1), AX_LIST(type.rank, type.dims));
  return ax_taken_in_order(x, order, type.rank - 2);
}

/* The x with l x = b, l having ones on its diagonal. */
static ax_value solved_from_left(ax_value l, ax_value b, int64_t n) {
  const ax_triangular_solve_params p = {.left_side = true, .lower = true, .unit_diagonal = true};
  return n > block ? ax_blocked_solve(&p, l, b) : diagonal_solved(&p, l, b);
}

static ax_value rows_of(ax_value x, int64_t from, int64_t to) { return ax_slice_in_dim(x, from, to, 1, -2); }

static void factor(ax_value x, int64_t m, int64_t n, ax_value *out) {
  const int64_t half = (n / 2 + lu_block - 1) / lu_block * lu_block, first = half < m ? half : m;
  ax_value left[2], right[2];
  if (n <= lu_block || m <= lu_block) {
    ax_bind(&ax_prim_lu, NULL, &x, 1, out, 2);
    return;
  }
  factor(ax_slice_in_dim(x, 0, first, 1, -1), m, first, left);
  const ax_value other = exchanged(ax_slice_in_dim(x, first, n, 1, -1), left[1]), l = rows_of(left[0], 0, first);
  const ax_value above = solved_from_left(l, rows_of(other, 0, first), first);
  out[0] = ax_matrix_beside(l, above), out[1] = left[1];
  if (first == m) return;
  const ax_value low = rows_of(left[0], first, m);
  factor(ax_sub(rows_of(other, first, m), ax_matmul(low, above)), m - first, n - first, right);
  out[0] = ax_matrix_above(out[0], ax_matrix_beside(exchanged(low, right[1]), right[0]));
  const ax_type type = ax_typeof(x);
  if (!ax_failed()) out[1] = ax_concatenate(AX_VALUES(left[1], ax_add(right[1], ax_integer(first))), type.rank - 2);
}

void ax_blocked_lu(ax_value x, ax_value *out) {
  const ax_type type = ax_typeof(x);
  out[0] = out[1] = ax_poison;
  if (!ax_failed()) factor(x, type.dims[type.rank - 2], type.dims[type.rank - 1], out);
}
