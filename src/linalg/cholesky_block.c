/* cholesky of a matrix that a mesh's axes cut, band after band, without any device ever holding the matrix.

     rows       l[i,k] = (x[i,k] - l[i,..k) l[k,..k)^H) l[k,k]^-H      the device of band k gives l[k,..k), which is finished,
                                                                     and then its block of column k
     columns    l[..,k] from the rest of column k, then                the device of band k gives its column below the diagonal
                x[..,j] -= l[..,k] l[j,k]^H for bands j > k

   So half the matrix is sent. Where rows and columns are cut, blocks are exchanged for bands of columns, and back at the end. A
   block on the diagonal that is not positive definite becomes NaN, and so do all that follow, the last one too. */
#include "axle/collectives.h"
#include "axle/linalg.h"
#include "axle/ops.h"
#include "linalg/bands.h"
#include "linalg/matrices.h"

typedef struct factoring {
  const ax_bands *bands;
  ax_value own, me; /* this device's band, from now on of l; its number */
} factoring;

static ax_value part_of_columns(ax_value x, int64_t from, int64_t to) { return ax_slice_in_dim(x, from, to, 1, -1); }
static ax_value part_of_rows(ax_value x, int64_t from, int64_t to) { return ax_slice_in_dim(x, from, to, 1, -2); }

/* x l^-H */
static ax_value solved(ax_value l, ax_value x) { return ax_triangular_solve(l, x, false, true, true, true, false); }

/* in: a block; finished columns of this device's rows, and of those of the next block on the diagonal -> the block without their
   products */
static AX_BODY(less_finished) { out[0] = ax_sub(in[0], ax_matmul(in[1], ax_matrix_adjoint(in[2]))); }
/* in: a block below the diagonal; the factor of the one on the diagonal */
static AX_BODY(below_diagonal) { out[0] = solved(in[1], in[0]); }
/* in: rows of which the first are a block on the diagonal, of as many columns as *context says, and others behind them */
static AX_BODY(column_of) {
  const int64_t columns = *(const int64_t *)context;
  const ax_type type = ax_typeof(in[0]);
  if (ax_failed()) return;
  const int64_t rows = type.dims[type.rank - 2];
  ax_value l = ax_cholesky(ax_matrix_part(in[0], 0, columns, 0, columns), false);
  if (rows > columns) l = ax_matrix_above(l, solved(l, ax_matrix_part(in[0], columns, rows - columns, 0, columns)));
  out[0] = ax_matrix_fitted(l, type.dims[type.rank - 1], -1);
}
/* in: this device's columns, without the rows whose factors are made; the rows of l below the block on the diagonal */
static AX_BODY(less_column) {
  const factoring *f = context;
  const ax_type type = ax_typeof(in[1]);
  if (ax_failed()) return;
  const int64_t rows = type.dims[type.rank - 2], size = f->bands->size;
  const ax_value first = ax_sub(ax_bands_start(f->bands), ax_integer(f->bands->total - rows));
  const ax_value mine = ax_dynamic_slice_in_dim(ax_matrix_fitted(in[1], rows + size, -2), first, size, -2);
  out[0] = ax_sub(in[0], ax_matmul(in[1], ax_matrix_adjoint(mine)));
}

/* By rows: column block k of l, of which devices before the k-th have no part; theirs is above the diagonal. */
static void next_of_rows(factoring *f, int64_t k) {
  const int64_t begin = ax_band_begin(f->bands, k), end = ax_band_end(f->bands, k), size = end - begin;
  const bool last = end == f->bands->total;
  const char *axes = f->bands->all.text;
  const ax_value is_mine = ax_eq(f->me, ax_integer(k));
  ax_value block = part_of_columns(f->own, begin, end);
  if (begin > 0) {
    const ax_value finished = part_of_columns(f->own, 0, begin), first = part_of_rows(finished, 0, size);
    const ax_value in[] = {block, finished, last ? first : ax_pbroadcast(first, axes, k)};
    block = ax_where_needed(ax_ge(f->me, ax_integer(k)), AX_FN(less_finished, 3, 1), in, 3);
  }
  if (last) {
    const ax_value diagonal = part_of_rows(block, 0, size);
    block = ax_matrix_fitted(ax_where_needed(is_mine, AX_CLOSURE(column_of, 1, 1, &size), &diagonal, 1), f->bands->size, -2);
  } else {
    const ax_value l = ax_cholesky(ax_pbroadcast(part_of_rows(block, 0, size), axes, k), false), in[] = {block, l};
    block = ax_where_needed(ax_gt(f->me, ax_integer(k)), AX_FN(below_diagonal, 2, 1), in, 2);
    block = ax_where(is_mine, ax_matrix_fitted(l, f->bands->size, -2), block);
  }
  f->own = ax_dynamic_update_slice_in_dim(f->own, block, ax_integer(begin), -1);
}

static void next_of_columns(factoring *f, int64_t k) {
  const int64_t begin = ax_band_begin(f->bands, k), end = ax_band_end(f->bands, k), size = end - begin, n = f->bands->total;
  ax_value rest = part_of_rows(f->own, begin, n);
  rest = ax_where_needed(ax_eq(f->me, ax_integer(k)), AX_CLOSURE(column_of, 1, 1, &size), &rest, 1);
  if (end < n) {
    const ax_value low = part_of_rows(rest, size, n - begin);
    const ax_value in[] = {low, ax_pbroadcast(part_of_columns(low, 0, size), f->bands->all.text, k)};
    const ax_value less = ax_where_needed(ax_gt(f->me, ax_integer(k)), AX_CLOSURE(less_column, 2, 1, f), in, 2);
    rest = ax_matrix_above(part_of_rows(rest, 0, size), less);
  }
  f->own = ax_dynamic_update_slice_in_dim(f->own, rest, ax_integer(begin), -2);
}

/* The last element on the diagonal. */
static ax_value corner_of(const factoring *f, bool rows) {
  int64_t k = f->bands->count - 1;
  while (k > 0 && ax_band_begin(f->bands, k) == ax_band_end(f->bands, k)) k--;
  const int64_t own = ax_band_end(f->bands, k) - ax_band_begin(f->bands, k) - 1, all = f->bands->total - 1;
  return ax_pbroadcast(ax_matrix_part(f->own, rows ? own : all, 1, rows ? all : own, 1), f->bands->all.text, k);
}

/* The band of l: zero above the diagonal, and NaN below where the last element on the diagonal is. */
static ax_value finished_band(const factoring *f, bool rows) {
  const ax_value places = ax_bands_places(f->bands, f->own, rows ? -2 : -1), corner = corner_of(f, rows);
  const ax_type own = ax_typeof(f->own);
  if (ax_failed()) return ax_poison;
  const ax_value across = ax_iota(AX_S64, AX_LIST(own.rank, own.dims), own.rank - (rows ? 1 : 2));
  const ax_value below = rows ? ax_ge(places, across) : ax_ge(across, places);
  return ax_where(below, ax_where(ax_ne(corner, corner), corner, f->own), ax_integer(0));
}

void ax_cholesky_block(const ax_block_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  const uint32_t row = x->rank - 2, column = x->rank - 1;
  const int64_t n = x->dims[column];
  const ax_bands by_rows = ax_bands_of(&args->specs[0], row, AX_NONE, n), by_columns = ax_bands_of(&args->specs[0], column, row, n);
  const bool rows = by_rows.count > 1 && by_columns.count == by_rows.count;
  const ax_bands *bands = rows ? &by_rows : &by_columns;
  const int64_t kept = args->blocks[0].dims[row];
  if (bands->count == 1) {
    args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 1);
    return;
  }
  factoring f = {.bands = bands, .own = args->in[0], .me = ax_bands_own(bands)};
  if (!rows) f.own = ax_bands_exchange(bands, f.own, column, row, n);
  for (int64_t k = 0; k < bands->count && !ax_failed(); k++) {
    if (ax_band_begin(bands, k) == ax_band_end(bands, k)) continue;
    if (rows)
      next_of_rows(&f, k);
    else
      next_of_columns(&f, k);
  }
  f.own = finished_band(&f, rows);
  args->out[0] = rows ? f.own : ax_bands_exchange_back(bands, f.own, column, row, kept);
}
