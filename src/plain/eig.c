/* eig: matrices are balanced (balance.h), brought to Schur's form, of real ones made complex, and the triangle's eigenvectors are
   found from the last row up, all at once. Left ones are those of the triangle's adjoint, which in reverse order is an upper
   triangle again. */
#include "axle/linalg.h"
#include "axle/transform.h"
#include "ops/pointwise.h"
#include "plain/balance.h"
#include "plain/schur.h"
#include "prim/prims.h"

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

/* t, what it is divided by, whether it is known, and for vectors scales, places and q -> values, vectors */
static AX_BODY(finish) {
  const wanted *w = context;
  const bool real = !ax_is_complex(w->dtype);
  ax_value t = in[0], made = ax_diagonal_to_vector(t), imaginary = ax_poison, vectors[2];
  if (ax_failed()) return;
  const int64_t n = ax_typeof(t).dims[0];
  if (real) imaginary = imaginary_parts(t), made = ax_complex(made, imaginary);
  out[0] = ax_plain_or_nan(in[2], ax_mul(made, ax_matrix_as(in[1], made)));
  if (!w->left && !w->right) return;
  ax_value q = in[5];
  const ax_plain_blocks blocks = real && n > 1 ? to_complex(t) : (ax_plain_blocks){.is = ax_poison};
  if (real) t = ax_matrix_as(t, made), q = ax_matrix_as(q, made);
  if (real && n > 1) ax_plain_turn_blocks(&blocks, &t, &q);
  uint32_t count = 0;
  if (w->left) {
    const ax_value reversed = vectors_of(ax_rev(ax_matrix_adjoint(t), AX_DIMS(0, 1)));
    vectors[count++] = ax_plain_divided(ax_matmul(q, ax_rev(reversed, AX_DIMS(0, 1))), in[3]);
  }
  if (w->right) vectors[count++] = ax_mul(ax_matmul(q, vectors_of(t)), ax_matrix_as(in[3], made));
  for (uint32_t k = 0; k < count; k++) out[1 + k] = ax_plain_or_nan(in[2], scaled(ax_take(vectors[k], in[4], 0), real ? &imaginary : NULL));
}

static void trace(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  wanted w = {ax_plain_bool(eqn, "compute_left_eigenvectors"), ax_plain_bool(eqn, "compute_right_eigenvectors"), type.dtype};
  const bool vectors = w.left || w.right;
  const ax_plain_prepared x = ax_plain_prepare(in[0]);
  const ax_plain_balanced balanced = ax_plain_balance(x.matrices);
  const ax_plain_schur_form form = ax_plain_schur_of(balanced.matrices, vectors);
  const ax_value parts[] = {form.t, x.scale, ax_and(x.finite, form.known), balanced.scales, balanced.places, form.q};
  const uint32_t count = vectors ? AX_COUNT(parts) : 3;
  ax_value made[3];
  (ax_vmap)((ax_fn){finish, count, eqn->out_count, &w}, count, parts, eqn->out_count, made, NULL);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) {
    ax_dims dims = {.count = type.rank - (k == 0)};
    for (uint32_t i = 0; i < dims.count; i++) dims.v[i] = type.dims[i];
    out[k] = ax_reshape(made[k], AX_LIST(dims.count, dims.v));
  }
}

const ax_plain_rule ax_plain_eig = {&ax_prim_eig, ax_plain_lapack, trace, 0};
