/* triangular_solve with a triangle that a mesh's axes cut: band after band of rows, which stay where they are.

     op(a) = a      the device of band k solves for x[k] by its block on the diagonal and gives it to all, which take a[i,k] x[k]
                    from their right sides
     op(a) = a^T    all devices add up what their solved x[j] have at band k, a[j,k]^T x[j]; the device of band k takes the sum
                    from its right sides and solves

   Right sides are cut as rows of a are. Where columns of a are cut, blocks are exchanged for bands of rows. Sent are the right
   sides, once or twice, and nothing of a. x op(a) = b is solved as op(a)^T x^T = b^T. */
#include "axle/collectives.h"
#include "axle/linalg.h"
#include "axle/ops.h"
#include "linalg/bands.h"
#include "linalg/matrices.h"
#include "linalg/triangular_solve.h"

typedef struct solving {
  const ax_bands *bands;
  ax_triangular_solve_params p; /* with the triangle on the left */
  bool ascends;
  ax_value a, right, x, me; /* this device's bands, and its number */
} solving;

/* in: right sides; the block on the diagonal -> their solutions */
static AX_BODY(solved) {
  const ax_triangular_solve_params *p = context;
  out[0] = ax_triangular_solve(in[1], in[0], true, p->lower, p->transpose_a, p->conjugate_a, p->unit_diagonal);
}
/* in: right sides; a block of the triangle; solutions */
static AX_BODY(less_solved) { out[0] = ax_sub(in[0], ax_matmul(in[1], in[2])); }

/* What the device of band k solves for; on others, their right sides. */
static ax_value solutions(const solving *s, int64_t k, ax_value right) {
  const int64_t begin = ax_band_begin(s->bands, k), rows = ax_band_end(s->bands, k) - begin;
  const ax_value in[] = {right, ax_matrix_part(s->a, 0, rows, begin, rows)};
  return ax_where_needed(ax_eq(s->me, ax_integer(k)), AX_CLOSURE(solved, 2, 1, &s->p), in, 2);
}

static void keep(solving *s, int64_t k, ax_value x) {
  s->x = ax_where(ax_eq(s->me, ax_integer(k)), ax_matrix_fitted(x, s->bands->size, -2), s->x);
}

static void next_of_rows(solving *s, int64_t k) {
  const int64_t begin = ax_band_begin(s->bands, k), end = ax_band_end(s->bands, k);
  const ax_value own = solutions(s, k, ax_slice_in_dim(s->right, 0, end - begin, 1, -2));
  keep(s, k, own);
  if (s->ascends ? end == s->bands->total : begin == 0) return;
  const ax_value column = ax_slice_in_dim(s->a, begin, end, 1, -1), theirs = ax_pbroadcast(own, s->bands->all.text, k);
  const ax_value in[] = {s->right, s->p.conjugate_a ? ax_conjugated(column) : column, theirs}, mine = ax_integer(k);
  s->right = ax_where_needed(s->ascends ? ax_gt(s->me, mine) : ax_lt(s->me, mine), AX_FN(less_solved, 3, 1), in, 3);
}

/* Where x is not solved for yet it is zero, but a may have anything. */
static void next_of_columns(solving *s, int64_t k) {
  const int64_t begin = ax_band_begin(s->bands, k), end = ax_band_end(s->bands, k);
  ax_value right = ax_slice_in_dim(s->right, 0, end - begin, 1, -2);
  if (s->ascends ? begin > 0 : end < s->bands->total) {
    ax_value row = ax_matrix_transpose(ax_slice_in_dim(s->a, begin, end, 1, -1));
    if (s->p.conjugate_a) row = ax_conjugated(row);
    const ax_value mine = ax_integer(k), before = s->ascends ? ax_lt(s->me, mine) : ax_gt(s->me, mine);
    right = ax_sub(right, ax_psum(ax_where(before, ax_matmul(row, s->x), ax_integer(0)), s->bands->all.text));
  }
  keep(s, k, solutions(s, k, right));
}

/* The rows of this device's band, of those that `outer` leaves it. */
static ax_value rows_of_band(const ax_bands *b, ax_value x) {
  if (b->inner_count == 1) return x;
  const ax_value at = ax_mul(ax_axis_index(b->inner.text), ax_integer(b->size));
  return ax_dynamic_slice_in_dim(ax_matrix_fitted(x, b->inner_count * b->size, -2), at, b->size, -2);
}

static ax_value rows_of_block(const ax_bands *b, ax_value x) {
  if (b->inner_count == 1) return x;
  return ax_matrix_fitted(ax_all_gather_invariant(x, b->inner.text, (int64_t)ax_typeof(x).rank - 2, true), b->outer_size, -2);
}

void ax_triangular_solve_block(const ax_block_args *args) {
  const ax_triangular_solve_params *given = args->eqn->params;
  const ax_type *a = &args->types[args->eqn->in[0]];
  const uint32_t row = a->rank - 2, column = a->rank - 1;
  const int64_t n = a->dims[column];
  const ax_bands bands = ax_bands_of(&args->in_specs[0], row, column, n);
  if (bands.count == 1) {
    args->out[0] = ax_bind1(args->eqn->prim, given, args->in, 2);
    return;
  }
  solving s = {.bands = &bands, .p = *given, .me = ax_bands_own(&bands)};
  const ax_value right = given->left_side ? args->in[1] : ax_matrix_transpose(args->in[1]);
  s.p.left_side = true;
  if (!given->left_side) s.p.transpose_a = !s.p.transpose_a;
  s.ascends = s.p.lower != s.p.transpose_a;
  s.a = ax_bands_without_padding(&bands, ax_bands_exchange(&bands, args->in[0], row, column, n), -2);
  s.right = ax_bands_without_padding(&bands, rows_of_band(&bands, right), -2);
  s.x = ax_full_like(s.right, 0);
  for (int64_t step = 0; step < bands.count && !ax_failed(); step++) {
    const int64_t k = s.ascends ? step : bands.count - 1 - step;
    if (ax_band_begin(&bands, k) == ax_band_end(&bands, k)) continue;
    if (s.p.transpose_a)
      next_of_columns(&s, k);
    else
      next_of_rows(&s, k);
  }
  const ax_value x = rows_of_block(&bands, s.x);
  args->out[0] = given->left_side ? x : ax_matrix_transpose(x);
}
