/* eig: matrices are balanced, brought to Schur's form, of real ones made complex, and the triangle's eigenvectors are found
   from the last row up, all at once. Left ones are those of the triangle's adjoint, which in reverse order is an upper triangle
   again. */
#include "axle/linalg.h"
#include "axle/transform.h"
#include "ops/pointwise.h"
#include "plain/schur.h"
#include "prim/prims.h"

/* --- Balancing: diag(d)^-1 x diag(d), d powers of 2, so that the row and the column of one number have lengths that differ by
   some 2 at most. With the diagonal, and by roots of sums of squares: where sums of sizes are made alike, vectors may get much
   less precise (James, Langou and Lowery, 2014) --- */

enum { COUNT, CHANGED, MATRIX, SCALES, BALANCE, SWEEPS = 16 };

/* R[1, 1]: the root of the sum of squares, which are those of quotients by the largest element. */
static ax_value length_of(ax_value x) {
  const ax_value by = ax_plain_or_one(ax_reduce_max(ax_abs(x), AX_ALL_DIMS, false));
  const ax_value sum = ax_reduce_sum(ax_plain_squares(ax_plain_divided(x, by)), AX_ALL_DIMS, false);
  return ax_reshape(ax_mul(by, ax_sqrt(sum)), AX_DIMS(1, 1));
}

/* i, changed, x, d -> changed, x, d */
static AX_BODY(balance_one) {
  const ax_value i = in[0], x = in[2], d = in[3];
  const ax_type type = ax_typeof(d);
  (void)context;
  if (ax_failed()) return;
  const bool wide = type.dtype == AX_F64;
  const ax_value row = length_of(ax_dynamic_slice_in_dim(x, i, 1, 0)), column = length_of(ax_plain_column(x, i));
  const ax_value some = ax_and(ax_gt(row, ax_integer(0)), ax_gt(column, ax_integer(0)));
  const ax_value before = ax_dynamic_slice_in_dim(d, i, 1, 0);
  const ax_value root = ax_div(ax_sqrt(ax_plain_or_one(row)), ax_sqrt(ax_plain_or_one(column)));
  const ax_value most = ax_real(wide ? 0x1p400 : 0x1p50), least = ax_real(wide ? 0x1p-400 : 0x1p-50);
  const ax_value to = ax_clamp(least, ax_mul(before, ax_reduce_precision(root, wide ? 11 : 8, 0)), most), by = ax_div(to, before);
  const ax_value sum = ax_add(ax_mul(column, by), ax_div(row, by)), pays = ax_lt(sum, ax_mul(ax_add(column, row), ax_real(0.95)));
  const ax_value chosen = ax_where(ax_and(some, pays), by, ax_integer(1)), factor = ax_matrix_as(chosen, x);
  const ax_value wider = ax_dynamic_update_slice_in_dim(x, ax_mul(ax_plain_column(x, i), factor), i, 1);
  const ax_value shorter = ax_plain_divided(ax_dynamic_slice_in_dim(wider, i, 1, 0), chosen);
  out[0] = ax_or(in[1], ax_reshape(ax_ne(chosen, ax_integer(1)), AX_DIMS()));
  out[1] = ax_dynamic_update_slice_in_dim(wider, shorter, i, 0);
  out[2] = ax_dynamic_update_slice_in_dim(d, ax_mul(before, chosen), i, 0);
}

static AX_BODY(unbalanced) {
  (void)context;
  out[0] = ax_and(ax_lt(in[COUNT], ax_integer(SWEEPS)), in[CHANGED]);
}

static AX_BODY(sweep) {
  const ax_type type = ax_typeof(in[MATRIX]);
  if (ax_failed()) return;
  const ax_value start[] = {ax_full(AX_BOOL, AX_DIMS(), 0), in[MATRIX], in[SCALES]};
  (void)context;
  ax_fori_loop(ax_integer(0), ax_integer(type.dims[0]), AX_FN(balance_one, 4, 3), AX_LIST(3, start), AX_LIST(3, out + CHANGED));
  out[COUNT] = ax_add(in[COUNT], ax_integer(1));
}

static AX_BODY(balance) { /* x -> balanced, d R[n, 1] */
  const ax_type type = ax_typeof(in[0]);
  if (ax_failed()) return;
  const ax_value one = ax_full(ax_part_dtype(type.dtype), AX_DIMS(type.dims[0], 1), 1);
  const ax_value start[] = {ax_full_i64(AX_S32, AX_DIMS(), 0), ax_full(AX_BOOL, AX_DIMS(), 1), in[0], one};
  ax_value made[BALANCE];
  (void)context;
  ax_while(AX_FN(unbalanced, BALANCE, 1), AX_FN(sweep, BALANCE, BALANCE), AX_LIST(BALANCE, start), AX_LIST(BALANCE, made));
  out[0] = made[MATRIX], out[1] = made[SCALES];
}

/* --- Complex triangles of real matrices: a block [m, b; c, m] with b c < 0 has the values m + i w and m - i w, w^2 = -b c, and
   the first one's vector is (b, i w) --- */

/* R[n - 1]: w of a block, and 0 elsewhere. */
static ax_value above_real(const ax_value *x) { return ax_mul(ax_sqrt(ax_abs(x[1])), ax_sqrt(ax_abs(x[2]))); }

static ax_plain_blocks to_complex(ax_value t) {
  ax_plain_blocks blocks = {.is = ax_plain_block_at(t)};
  ax_value x[4];
  ax_plain_block_elements(t, x);
  const ax_value b = ax_abs(x[1]), c = ax_abs(x[2]), length = ax_plain_or_one(ax_add(b, c));
  const ax_value none = ax_full_like(b, 0), w = above_real(x);
  const ax_value first = ax_sqrt(ax_div(b, length)), second = ax_sqrt(ax_div(c, length));
  blocks.turn[0] = blocks.turn[3] = ax_complex(ax_where(ax_lt(x[1], ax_integer(0)), ax_neg(first), first), none);
  blocks.turn[1] = blocks.turn[2] = ax_complex(none, second);
  blocks.made[0] = ax_complex(x[0], w), blocks.made[1] = ax_complex(ax_add(x[1], x[2]), none);
  blocks.made[2] = ax_complex(none, none), blocks.made[3] = ax_complex(x[3], ax_neg(w));
  return blocks;
}

/* --- Vectors --- */

typedef struct triangle {
  ax_value t, values, least; /* T[n, n]; T[1, n]: its diagonal; R[1, n]: differences of values that count as this */
} triangle;

/* i, x -> x: of vectors x whose rows n - i .. are known, row n - 1 - i. Columns are divided where that is larger than 1. */
static AX_BODY(substitute) {
  const triangle *s = context;
  const ax_type type = ax_typeof(in[1]);
  if (ax_failed()) return;
  const int64_t n = type.dims[0];
  const ax_value k = ax_sub(ax_integer(n - 1), in[0]), columns = ax_plain_columns(n), one = ax_integer(1);
  const ax_value row = ax_dynamic_slice_in_dim(s->t, k, 1, 0), value = ax_dynamic_slice_in_dim(s->values, k, 1, 1);
  const ax_value behind = ax_where(ax_gt(columns, k), row, ax_integer(0));
  const ax_value sums = ax_reduce_sum(ax_mul(ax_matrix_transpose(behind), in[1]), AX_DIMS(0), true);
  const ax_value distance = ax_sub(s->values, value), near = ax_le(ax_abs(distance), s->least);
  const ax_value by = ax_where(near, ax_matrix_as(s->least, row), distance), found = ax_plain_quotient(sums, by);
  const ax_value x = ax_where(ax_gt(columns, k), found, ax_where(ax_eq(columns, k), one, ax_full_like(row, 0)));
  const ax_value size = ax_abs(x), factor = ax_where(ax_gt(size, one), size, one);
  out[0] = ax_plain_divided(ax_where(ax_eq(ax_plain_rows(n), k), x, in[1]), factor);
}

/* The eigenvectors of an upper triangle, in the order of its diagonal; the largest elements are near 1. */
static ax_value vectors_of(ax_value t) {
  const ax_type type = ax_typeof(t);
  if (ax_failed()) return ax_poison;
  const int64_t n = type.dims[0];
  const double epsilon = ax_plain_epsilon(type.dtype), least = ax_plain_least(type.dtype) * (double)n / epsilon;
  triangle s = {.t = t, .values = ax_expand_dims(ax_diagonal_to_vector(t), 0)};
  s.least = ax_max(ax_mul(ax_abs(s.values), ax_real(epsilon)), ax_real(least));
  ax_value made;
  ax_fori_loop(ax_integer(0), ax_integer(n), AX_CLOSURE(substitute, 2, 1, &s), AX_VALUES(ax_full_like(t, 0)), AX_LIST(1, &made));
  return made;
}

/* Of length 1, with a real largest element. others: NULL, or R[n]: positive where the values are the first of two conjugate
   ones, negative where they are the second; of a real one the vector is real. */
static ax_value scaled(ax_value v, const ax_value *others) {
  const ax_type type = ax_typeof(v);
  if (ax_failed()) return ax_poison;
  const int64_t n = type.dims[0];
  const ax_value sizes = ax_abs(v), zero = ax_integer(0), place = ax_argmax(sizes, 0, AX_S32);
  const ax_value largest = ax_eq(ax_plain_rows(n), ax_expand_dims(place, 0));
  const ax_value by = ax_plain_divided(v, ax_plain_or_one(ax_reduce_max(sizes, AX_DIMS(0), true)));
  const ax_value element = ax_reduce_sum(ax_where(largest, by, zero), AX_DIMS(0), true);
  const ax_value phase = ax_conjugated(ax_plain_divided(element, ax_plain_or_one(ax_abs(element)))), turned = ax_mul(by, phase);
  const ax_value real = others == NULL ? largest : ax_or(largest, ax_eq(ax_expand_dims(*others, 0), zero));
  const ax_value w = ax_where(real, ax_matrix_real(turned), turned);
  const ax_value length = ax_sqrt(ax_reduce_sum(ax_plain_squares(w), AX_DIMS(0), true));
  const ax_value unit = ax_plain_divided(w, ax_plain_or_one(length));
  if (others == NULL) return unit;
  const ax_value before = ax_matrix_beside(ax_matrix_part(unit, 0, n, 0, 1), ax_matrix_part(unit, 0, n, 0, n - 1));
  return ax_where(ax_lt(ax_expand_dims(*others, 0), zero), ax_conjugated(before), unit);
}

/* --- eig --- */

typedef struct wanted {
  bool left, right;
  ax_dtype dtype; /* of the matrices */
} wanted;

/* R[n]: the imaginary parts of a real triangle's eigenvalues. */
static ax_value imaginary_parts(ax_value t) {
  const int64_t n = ax_typeof(t).dims[0];
  const ax_value none = ax_full(ax_typeof(t).dtype, AX_DIMS(1), 0);
  ax_value x[4];
  if (n == 1) return none;
  ax_plain_block_elements(t, x);
  const ax_value w = ax_where(ax_plain_block_at(t), above_real(x), ax_integer(0));
  return ax_sub(ax_concatenate(AX_VALUES(w, none), 0), ax_concatenate(AX_VALUES(none, w), 0));
}

/* t, what it is divided by, whether it is known, and for vectors d and q -> values, vectors */
static AX_BODY(finish) {
  const wanted *w = context;
  const bool real = !ax_is_complex(w->dtype);
  ax_value t = in[0], made = ax_diagonal_to_vector(t), imaginary = ax_poison, vectors[2];
  if (ax_failed()) return;
  const int64_t n = ax_typeof(t).dims[0];
  if (real) imaginary = imaginary_parts(t), made = ax_complex(made, imaginary);
  out[0] = ax_plain_or_nan(in[2], ax_mul(made, ax_matrix_as(in[1], made)));
  if (!w->left && !w->right) return;
  ax_value q = in[4];
  const ax_plain_blocks blocks = real && n > 1 ? to_complex(t) : (ax_plain_blocks){.is = ax_poison};
  if (real) t = ax_matrix_as(t, made), q = ax_matrix_as(q, made);
  if (real && n > 1) ax_plain_turn_blocks(&blocks, &t, &q);
  uint32_t count = 0;
  if (w->left) {
    const ax_value reversed = vectors_of(ax_rev(ax_matrix_adjoint(t), AX_DIMS(0, 1)));
    vectors[count++] = ax_plain_divided(ax_matmul(q, ax_rev(reversed, AX_DIMS(0, 1))), in[3]);
  }
  if (w->right) vectors[count++] = ax_mul(ax_matmul(q, vectors_of(t)), ax_matrix_as(in[3], made));
  for (uint32_t k = 0; k < count; k++) out[1 + k] = ax_plain_or_nan(in[2], scaled(vectors[k], real ? &imaginary : NULL));
}

static void trace(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  wanted w = {ax_plain_bool(eqn, "compute_left_eigenvectors"), ax_plain_bool(eqn, "compute_right_eigenvectors"), type.dtype};
  const bool vectors = w.left || w.right;
  const ax_plain_prepared x = ax_plain_prepare(in[0]);
  ax_value balanced[2], made[3];
  ax_vmap(AX_FN(balance, 1, 2), AX_VALUES(x.matrices), AX_LIST(2, balanced), NULL);
  const ax_plain_schur_form form = ax_plain_schur_of(balanced[0], vectors);
  const ax_value parts[] = {form.t, x.scale, ax_and(x.finite, form.known), balanced[1], form.q};
  (ax_vmap)((ax_fn){finish, vectors ? 5 : 3, eqn->out_count, &w}, vectors ? 5 : 3, parts, eqn->out_count, made, NULL);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) {
    ax_dims dims = {.count = type.rank - (k == 0)};
    for (uint32_t i = 0; i < dims.count; i++) dims.v[i] = type.dims[i];
    out[k] = ax_reshape(made[k], AX_LIST(dims.count, dims.v));
  }
}

const ax_plain_rule ax_plain_eig = {&ax_prim_eig, ax_plain_lapack, trace, 0};
