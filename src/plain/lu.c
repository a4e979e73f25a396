/* lu: large matrices by halves of their columns (linalg/blocked.h), which comes to those of few rows or columns; these column after column. */
#include "axle/linalg.h"
#include "linalg/blocked.h"
#include "ops/pointwise.h"
#include "plain/matrix.h"
#include "prim/prims.h"

enum { narrow = 64 }; /* as in linalg/blocked.c */

/* Of real numbers their sizes, of complex ones |real| + |imaginary|, as LAPACK compares them. NaN counts as 0. */
static ax_value compared(ax_value x) {
  if (ax_failed()) return ax_poison;
  const bool is_complex = ax_is_complex(ax_typeof(x).dtype);
  const ax_value size = is_complex ? ax_add(ax_abs(ax_real_part(x)), ax_abs(ax_imag_part(x))) : ax_abs(x);
  return ax_where(ax_eq(size, size), size, ax_integer(0));
}

/* k, a, pivots -> a, pivots */
static AX_BODY(eliminate) {
  const ax_type type = ax_typeof(in[1]);
  const ax_value k = in[0], rows = ax_plain_rows(type.dims[0]), columns = ax_plain_columns(type.dims[1]);
  (void)context;
  const ax_value candidates = ax_where(ax_ge(rows, k), compared(ax_plain_column(in[1], k)), ax_integer(-1));
  const ax_value best = ax_argmax(ax_squeeze(candidates, AX_DIMS(1)), 0, AX_S32);
  const ax_value here = ax_dynamic_slice_in_dim(in[1], k, 1, 0), row = ax_dynamic_slice_in_dim(in[1], best, 1, 0);
  ax_value a = ax_dynamic_update_slice_in_dim(in[1], here, best, 0);
  a = ax_dynamic_update_slice_in_dim(a, row, k, 0);
  const ax_value pivot = ax_plain_column(row, k), column = ax_plain_column(a, k);
  const ax_value divided = ax_and(ax_gt(rows, k), ax_ne(pivot, ax_integer(0)));
  const ax_value l = ax_where(divided, ax_div(column, pivot), column);
  a = ax_dynamic_update_slice_in_dim(a, l, k, -1);
  out[0] = ax_where(ax_and(ax_gt(rows, k), ax_gt(columns, k)), ax_sub(a, ax_mul(l, row)), a);
  out[1] = ax_dynamic_at_set(in[2], best, k, 0);
}

static void trace(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t m = type.dims[0], n = type.dims[1], k = m < n ? m : n;
  (void)eqn;
  if (m > narrow && n > narrow) {
    ax_blocked_lu(in[0], out);
    return;
  }
  const ax_value start[] = {in[0], ax_full_i64(AX_S32, AX_DIMS(k), 0)};
  ax_fori_loop(ax_integer(0), ax_integer(k), AX_FN(eliminate, 3, 2), AX_LIST(2, start), AX_LIST(2, out));
}

const ax_plain_rule ax_plain_lu = {&ax_prim_lu, ax_plain_lapack, trace, 2};
