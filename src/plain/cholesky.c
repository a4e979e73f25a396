/* cholesky of complex numbers: StableHLO's own operation takes Hermitian matrices alone, so LAPACK's function is written for them. The factor of
   the real matrix in which each element a + b i is the block [a -b; b a] has such blocks, too, those of l: on its diagonal they are
   a [1 0; 0 1], so it is triangular. */
#include "axle/linalg.h"
#include "linalg/matrices.h"
#include "ops/pointwise.h"
#include "plain/rules.h"
#include "prim/prims.h"

static bool applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)out;
  return lacks->lapack && ax_is_complex(in->dtype) && ax_type_elems(in) > 0;
}

/* T[.., n, n], twice, -> T[.., 2 n, 2 n] */
static ax_value in_blocks(ax_value a, ax_value b, const ax_type *type) {
  ax_dims dims = {.count = type->rank};
  const ax_value top = ax_stack(AX_VALUES(a, ax_neg(b)), -1), bottom = ax_stack(AX_VALUES(b, a), -1);
  for (uint32_t d = 0; d < type->rank; d++) dims.v[d] = type->dims[d] * (d + 2 < type->rank ? 1 : 2);
  return ax_reshape(ax_stack(AX_VALUES(top, bottom), -3), AX_LIST(dims.count, dims.v));
}

/* Back, with numbers on the diagonal that are real, or NaN. */
static ax_value of_blocks(ax_value l, const ax_type *type) {
  ax_dims dims = {.count = type->rank + 2};
  uint32_t at = 0;
  for (uint32_t d = 0; d < type->rank; d++) {
    dims.v[at++] = type->dims[d];
    if (d + 2 >= type->rank) dims.v[at++] = 2;
  }
  const ax_value first = ax_at(ax_reshape(l, AX_LIST(dims.count, dims.v)), 0, -1), imaginary = ax_at(first, 1, -2);
  const int64_t n = type->dims[type->rank - 1];
  return ax_complex(ax_at(first, 0, -2), ax_mul(imaginary, ax_matrix_diagonal(imaginary, n, 0, 1)));
}

static void trace(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  (void)eqn;
  const ax_value x = ax_matrix_of_triangle(in[0], true), whole = in_blocks(ax_real_part(x), ax_imag_part(x), &type);
  out[0] = of_blocks(ax_cholesky(whole, false), &type);
}

const ax_plain_rule ax_plain_cholesky = {&ax_prim_cholesky, applies, trace, 0};
