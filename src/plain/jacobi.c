/* See jacobi.h. */
#include "plain/jacobi.h"

#include "axle/ops.h"
#include "ops/pointwise.h"

/* b / |b|; 1 for 0. */
static ax_value phase_of(ax_value b, ax_value size) {
  const ax_value none = ax_eq(size, ax_integer(0));
  return ax_where(none, ax_integer(1), ax_plain_divided(b, ax_where(none, ax_integer(1), size)));
}

ax_plain_rotations ax_plain_rotate(ax_value a, ax_value b, ax_value d, ax_value where) {
  const ax_value size = ax_abs(b), turns = ax_and(where, ax_gt(size, ax_integer(0)));
  const ax_value tau = ax_div(ax_sub(d, a), ax_mul(ax_where(turns, size, ax_integer(1)), ax_integer(2)));
  const ax_value whole = ax_add(ax_abs(tau), ax_sqrt(ax_add(ax_square(tau), ax_integer(1))));
  const ax_value t = ax_where(turns, ax_div(ax_where(ax_lt(tau, ax_integer(0)), ax_full_like(tau, -1), ax_integer(1)), whole), ax_integer(0));
  const ax_value c = ax_div(ax_integer(1), ax_sqrt(ax_add(ax_square(t), ax_integer(1))));
  return (ax_plain_rotations){ax_matrix_as(c, b), ax_mul(ax_matrix_as(ax_mul(t, c), b), phase_of(b, size)), t, size};
}

void ax_plain_turn(ax_value c, ax_value s, ax_value *p, ax_value *q) {
  const ax_value turned = ax_sub(ax_mul(c, *p), ax_mul(ax_conjugated(s), *q));
  *q = ax_add(ax_mul(s, *p), ax_mul(c, *q));
  *p = turned;
}

void ax_plain_move(ax_value *top, ax_value *bottom, int64_t dimension) {
  const ax_type type = ax_typeof(*top);
  if (ax_failed()) return;
  const int64_t h = type.dims[dimension];
  if (h == 1) return;
  const ax_value first = ax_slice_in_dim(*top, 0, 1, 1, dimension), stay = ax_slice_in_dim(*top, 1, h - 1, 1, dimension),
                 down = ax_slice_in_dim(*top, h - 1, h, 1, dimension), up = ax_slice_in_dim(*bottom, 0, 1, 1, dimension);
  *top = ax_concatenate(AX_VALUES(first, up, stay), dimension);
  *bottom = ax_concatenate(AX_VALUES(ax_slice_in_dim(*bottom, 1, h, 1, dimension), down), dimension);
}
