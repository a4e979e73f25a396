/* schur: Hessenberg's form, then Francis' iteration; of real matrices at last each block of 2 by 2 is turned, all at once. */
#include "plain/schur.h"

#include "axle/linalg.h"
#include "axle/transform.h"
#include "ops/pointwise.h"
#include "prim/prims.h"

enum { A, B, C, D }; /* elements of a block [a b; c d], at rows i and i + 1, where element i + 1 of the subdiagonal is not 0 */

/* --- Blocks --- */

static ax_value at_block(ax_value x, int element, int64_t n) {
  return ax_matrix_within(ax_vector_to_diagonal(x), element / 2, element % 2, n);
}

ax_value ax_plain_block_at(ax_value t) {
  const int64_t n = ax_typeof(t).dims[0];
  return ax_ne(ax_diagonal_to_vector(ax_matrix_part(t, 1, n - 1, 0, n - 1)), ax_integer(0));
}

void ax_plain_block_elements(ax_value t, ax_value *elements) {
  const int64_t n = ax_typeof(t).dims[0];
  for (int i = 0; i < 4; i++) elements[i] = ax_diagonal_to_vector(ax_matrix_part(t, i / 2, n - 1, i % 2, n - 1));
}

void ax_plain_turn_blocks(const ax_plain_blocks *blocks, ax_value *t, ax_value *q) {
  const ax_type type = ax_typeof(*t);
  if (ax_failed()) return;
  const int64_t n = type.dims[0];
  const ax_value one = ax_matrix_as(ax_convert_element_type(blocks->is, ax_part_dtype(type.dtype)), *t), none = ax_integer(0);
  ax_value p = ax_matrix_eye(*t, n, n), made = ax_full_like(p, 0), inside = made;
  for (int i = 0; i < 4; i++) {
    const ax_value unit = i == A || i == D ? one : ax_full_like(one, 0); /* which stands there in p, and is replaced */
    p = ax_add(p, at_block(ax_where(blocks->is, ax_sub(blocks->turn[i], unit), none), i, n));
    made = ax_add(made, at_block(ax_where(blocks->is, blocks->made[i], none), i, n));
    inside = ax_add(inside, at_block(one, i, n));
  }
  const ax_value turned = ax_matrix_upper(ax_matmul(ax_matmul(ax_matrix_adjoint(p), *t), p), 0);
  *t = ax_where(ax_ne(inside, none), made, turned);
  if (q != NULL) *q = ax_matmul(*q, p);
}

/* --- Real blocks: rotations [cosine, -sine; sine, cosine], by which a block has eigenvalues that are not real, and a = d,
   or c = 0. Elements are divided by the largest. --- */

static ax_value signed_as(ax_value size, ax_value sign) { return ax_where(ax_lt(sign, ax_integer(0)), ax_neg(size), size); }
static ax_value length_of(ax_value a, ax_value b) { return ax_sqrt(ax_add(ax_square(a), ax_square(b))); }

/* Two real eigenvalues, d + z and d - b c / z, z^2 - (a - d) z = b c: the first one's vector is (z, c). */
static void to_triangle(const ax_value *x, ax_value z, ax_value *rotation, ax_value *made) {
  const ax_value length = ax_plain_or_one(length_of(z, x[C])), share = ax_div(x[C], ax_plain_or_one(z));
  rotation[0] = ax_div(z, length), rotation[1] = ax_div(x[C], length);
  made[A] = ax_add(x[D], z), made[B] = ax_sub(x[B], x[C]), made[C] = ax_full_like(z, 0);
  made[D] = ax_where(ax_eq(z, ax_integer(0)), x[D], ax_sub(x[D], ax_mul(x[B], share)));
}

/* Two complex ones. The block is its mean and [p, q + r; q - r, -p]: a rotation by half an angle turns (p, q) by that angle,
   here to (0, h) or (0, -h), and keeps r, which is larger than h. square: h^2 - r^2, which roundings have not made of nothing.
   */
static void to_equal(const ax_value *x, ax_value p, ax_value square, ax_value *rotation, ax_value *made) {
  const ax_value half = ax_real(0.5), q = ax_mul(ax_add(x[B], x[C]), half), r = ax_mul(ax_sub(x[B], x[C]), half);
  const ax_value h = length_of(p, q), none = ax_eq(h, ax_integer(0)), by = ax_plain_or_one(h);
  rotation[0] = ax_sqrt(ax_mul(ax_add(ax_div(ax_where(none, by, ax_abs(q)), by), ax_integer(1)), half));
  rotation[1] = ax_neg(ax_div(signed_as(ax_div(p, by), q), ax_mul(rotation[0], ax_integer(2))));
  const ax_value large = ax_add(h, ax_abs(r)), small = ax_div(square, ax_plain_or_one(large));
  const ax_value alike = ax_eq(ax_lt(q, ax_integer(0)), ax_lt(r, ax_integer(0)));
  made[B] = signed_as(ax_where(alike, large, small), q), made[C] = signed_as(ax_where(alike, small, large), q);
  made[A] = made[D] = ax_add(x[D], p);
}

static ax_plain_blocks rotations_of(ax_value t) {
  ax_plain_blocks blocks = {.is = ax_plain_block_at(t)};
  ax_value x[4], triangle[4], equal[4], cosine[2], sine[2], r[2];
  ax_plain_block_elements(t, x);
  const ax_value by = ax_plain_or_one(ax_max(ax_max(ax_abs(ax_sub(x[A], x[D])), ax_abs(x[D])), ax_max(ax_abs(x[B]), ax_abs(x[C]))));
  for (int i = 0; i < 4; i++) x[i] = ax_div(x[i], by);
  const ax_value p = ax_mul(ax_sub(x[A], x[D]), ax_real(0.5)), square = ax_add(ax_square(p), ax_mul(x[B], x[C]));
  const ax_value real = ax_ge(square, ax_integer(0));
  to_triangle(x, ax_add(p, signed_as(ax_sqrt(ax_max(square, ax_integer(0))), p)), r, triangle);
  cosine[0] = r[0], sine[0] = r[1];
  to_equal(x, p, square, r, equal);
  cosine[1] = r[0], sine[1] = r[1];
  for (int i = 0; i < 4; i++) blocks.made[i] = ax_mul(ax_where(real, triangle[i], equal[i]), by);
  blocks.turn[0] = blocks.turn[3] = ax_where(real, cosine[0], cosine[1]);
  blocks.turn[2] = ax_where(real, sine[0], sine[1]), blocks.turn[1] = ax_neg(blocks.turn[2]);
  return blocks;
}

static AX_BODY(turn_real_blocks) { /* t, or t and q */
  const ax_plain_blocks blocks = rotations_of(in[0]);
  const bool vectors = context != NULL;
  out[0] = in[0];
  if (vectors) out[1] = in[1];
  ax_plain_turn_blocks(&blocks, out, vectors ? out + 1 : NULL);
}

/* --- The form --- */

static AX_BODY(prepare_one) {
  const ax_value finite = ax_plain_finite(in[0]), x = ax_where(finite, in[0], ax_integer(0)), by = ax_plain_scale(x);
  (void)context;
  out[0] = ax_plain_divided(x, by), out[1] = finite, out[2] = by;
}

ax_plain_prepared ax_plain_prepare(ax_value x) {
  const ax_type type = ax_typeof(x);
  ax_value made[3] = {ax_poison, ax_poison, ax_poison};
  if (ax_failed()) return (ax_plain_prepared){made[0], made[1], made[2]};
  const int64_t n = type.dims[type.rank - 1], batch = ax_dims_elems(type.rank - 2, type.dims);
  ax_vmap(AX_FN(prepare_one, 1, 3), AX_VALUES(ax_reshape(x, AX_DIMS(batch, n, n))), AX_LIST(3, made), NULL);
  return (ax_plain_prepared){made[0], made[1], made[2]};
}

static AX_BODY(reduce) { /* x -> h, z^H with h = z^H x z */
  const int64_t n = ax_typeof(in[0]).dims[0];
  ax_value f[2], z = ax_matrix_eye(in[0], n, n);
  (void)context;
  ax_hessenberg(in[0], AX_LIST(2, f));
  if (n > 1) {
    const ax_value rest = ax_householder_product(ax_matrix_part(f[0], 1, n - 1, 0, n - 1), f[1]);
    z = ax_add(ax_matrix_within(rest, 1, 1, n), ax_matrix_padded(ax_matrix_eye(in[0], 1, 1), n, n));
  }
  out[0] = ax_matrix_upper(f[0], -1), out[1] = ax_matrix_adjoint(z);
}

ax_plain_schur_form ax_plain_schur_of(ax_value x, bool vectors) {
  const ax_type type = ax_typeof(x);
  const uint32_t count = 1u + vectors;
  ax_value made[2];
  if (ax_failed()) return (ax_plain_schur_form){ax_poison, ax_poison, ax_poison};
  ax_vmap(AX_FN(reduce, 1, 2), AX_VALUES(x), AX_LIST(2, made), NULL);
  ax_plain_schur_form form = ax_plain_francis(made[0], vectors ? &made[1] : NULL);
  if (ax_is_complex(type.dtype) || type.dims[1] < 2) return form;
  const ax_value both[] = {form.t, form.q};
  ax_vmap(AX_CLOSURE(turn_real_blocks, count, count, vectors ? &vectors : NULL), AX_LIST(count, both),
           AX_LIST(count, made), NULL);
  form.t = made[0];
  if (vectors) form.q = made[1];
  return form;
}

/* --- schur --- */

static AX_BODY(finish) { /* t or q, whether it is known, what t is divided by */
  const bool is_form = context != NULL;
  out[0] = ax_plain_or_nan(in[1], is_form ? ax_mul(in[0], ax_matrix_as(in[2], in[0])) : in[0]);
}

static void trace(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  const bool vectors = ax_plain_bool(eqn, "compute_schur_vectors");
  ax_plain_prepared x = ax_plain_prepare(in[0]);
  const ax_plain_schur_form form = ax_plain_schur_of(x.matrices, vectors);
  for (int k = 0; k < 1 + vectors; k++) {
    const ax_value parts[] = {k == 0 ? form.t : form.q, ax_and(x.finite, form.known), x.scale};
    ax_value made;
    ax_vmap(AX_CLOSURE(finish, 3, 1, k == 0 ? &x : NULL), AX_LIST(3, parts), AX_LIST(1, &made), NULL);
    out[k] = ax_reshape(made, AX_LIST(type.rank, type.dims));
  }
}

const ax_plain_rule ax_plain_schur = {&ax_prim_schur, ax_plain_lapack, trace, 0};
