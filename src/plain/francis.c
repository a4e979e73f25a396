/* See francis.h. A step of complex matrices takes one shift, one of real matrices two, which are conjugate or equal. It begins
   as the first column of (h - shift), or of the product for both shifts, is brought to a unit vector: by a reflector of `width`
   rows, 2 or 3, from both sides. That makes elements below the subdiagonal, a bulge, which reflectors push down the diagonal,
   by a row each, and out of the matrix:

     x x x x x      x x x x x      x x x x x
     x x x x x      x x x x x      x x x x x
     b x x x x  ->  . x x x x  ->  . x x x x
     b b x x x      . b x x x      . . x x x
     . . . x x      . b b x x      . . b x x

   After some steps the last element of the subdiagonal, or the last but one, is negligible. The block of rows that a step works
   on is the last one which is not done. Matrices of a batch go through their blocks together: reflectors of the rows that all
   are at are 1 where a matrix's block has ended or not begun. So each is a slice of rows, and one of columns, at one place.

   q^H stands behind h, so what is done to rows is done to both. */
#include "plain/francis.h"

#include "axle/ops.h"
#include "axle/transform.h"
#include "ops/pointwise.h"

enum { EXCEPTION = 10, EACH = 30 }; /* steps without a deflation until other shifts are tried; steps in all, by row */

typedef struct shape {
  int64_t batch, n, width; /* rows of a reflector */
  int64_t rows, columns;   /* with rows and columns of zeros behind h, so that a reflector at its last row fits */
  ax_dtype dtype;
} shape;

typedef struct block { /* s32[b]: the first and the last row; last: -1 where all is done */
  ax_value first, last;
} block;

typedef struct diagonals { /* T[b, n] */
  ax_value on, above, below; /* above[i] = h[i, i + 1], 0 at the end; below[i] = h[i, i - 1], 0 at the beginning */
} diagonals;

/* --- Numbers beside one another --- */

static ax_value places(const shape *s) { return ax_plain_columns(s->n); }

/* x T[b, n] with so many zeros before and behind it; fewer than none: elements are cut off. */
static ax_value padded(ax_value x, int64_t before, int64_t behind) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  return ax_pad(x, ax_full(type.dtype, AX_DIMS(), 0), AX_DIMS(0, before), AX_DIMS(0, behind), AX_DIMS(0, 0));
}

/* x T[b, n] moved by so many places: result[i] = x[i + by], and 0 beyond the ends. */
static ax_value moved(ax_value x, int64_t by) { return padded(x, -by, by); }

/* T[b, n] -> T[b, 1]: the element at the place, s32[b, 1]; 0 outside. */
static ax_value pick(ax_value x, ax_value at, const shape *s) {
  return ax_reduce_sum(ax_where(ax_eq(places(s), at), x, ax_integer(0)), AX_DIMS(1), true);
}

/* bool[b, n] -> s32[b, 1]: the last place where it holds; -1: nowhere. */
static ax_value last_place(ax_value condition, const shape *s) {
  return ax_reduce_max(ax_where(condition, places(s), ax_integer(-1)), AX_DIMS(1), true);
}

/* |real| + |imaginary| */
static ax_value size_of(ax_value x) {
  if (ax_failed() || !ax_is_complex(ax_typeof(x).dtype)) return ax_abs(x);
  return ax_add(ax_abs(ax_real_part(x)), ax_abs(ax_imag_part(x)));
}

/* --- What is done, and what is to do --- */

/* Every (columns + 1)th element of h and what stands behind it, from that one on, with zeros before and behind. */
static ax_value diagonal(ax_value h, int64_t from, int64_t before, int64_t behind, const shape *s) {
  const int64_t count = s->n - before - behind, step = s->columns + 1, end = from + (count - 1) * step + 1;
  if (count == 0) return ax_full(s->dtype, AX_DIMS(s->batch, s->n), 0);
  const ax_value flat = ax_reshape(h, AX_DIMS(s->batch, s->rows * s->columns));
  return padded(ax_slice_in_dim(flat, from, end, step, 1), before, behind);
}

static diagonals diagonals_of(ax_value h, const shape *s) {
  return (diagonals){diagonal(h, 0, 0, 0, s), diagonal(h, 1, 0, 1, s), diagonal(h, s->columns, 1, 0, s)};
}

/* Where an element of the subdiagonal counts as 0: beside its neighbours on the diagonal, and by what it does to eigenvalues
   (Ahues and Tisseur, 1997). bool[b, n] */
static ax_value negligible(const diagonals *d, const shape *s) {
  const double epsilon = ax_plain_epsilon(s->dtype), least = ax_plain_least(s->dtype) * (double)s->n / epsilon;
  const ax_value here = size_of(d->on), before = size_of(moved(d->on, -1));
  const ax_value low = size_of(d->below), up = size_of(moved(d->above, -1));
  const ax_value apart = size_of(ax_sub(moved(d->on, -1), d->on)), sum = ax_add(here, before);
  const ax_value others = ax_add(size_of(moved(d->below, -1)), size_of(moved(d->below, 1)));
  const ax_value beside = ax_where(ax_eq(sum, ax_integer(0)), others, sum);
  const ax_value large = ax_max(here, apart), small = ax_min(here, apart), by = ax_plain_or_one(ax_add(large, ax_max(low, up)));
  const ax_value moves = ax_mul(ax_min(low, up), ax_div(ax_max(low, up), by));
  const ax_value allowed = ax_max(ax_mul(ax_real(epsilon), ax_mul(small, ax_div(large, by))), ax_real(least));
  const ax_value both = ax_and(ax_le(low, ax_mul(ax_real(epsilon), beside)), ax_le(moves, allowed));
  return ax_or(ax_le(low, ax_real(least)), both);
}

/* h with zeros for what is negligible, and the block that is next. */
static ax_value deflate(ax_value h, const shape *s, block *next) {
  const diagonals d = diagonals_of(h, s);
  const ax_value none = negligible(&d, s), linked = ax_not(none), i = places(s);
  next->last = last_place(s->width == 2 ? linked : ax_and(linked, moved(linked, -1)), s);
  next->first = last_place(ax_and(ax_le(i, next->last), none), s);
  const ax_value of_row = ax_expand_dims(padded(none, 0, s->rows - s->n), -1);
  const ax_value below = ax_eq(ax_plain_rows(s->rows), ax_add(ax_plain_columns(s->columns), ax_integer(1)));
  return ax_where(ax_and(below, of_row), ax_integer(0), h);
}

/* --- Shifts --- */

typedef struct shifts { /* T[b, 1]: of complex numbers one; of real ones two, middle + i apart and middle - i apart */
  ax_value middle, apart;
} shifts;

/* The eigenvalue of the block's last two rows that is the nearer to its last element, or both if they are not real. */
static shifts nearest(const diagonals *d, const block *at, const shape *s) {
  const ax_value last = at->last, before = ax_sub(last, ax_integer(1)), end = pick(d->on, last, s);
  const ax_value b = pick(d->above, before, s), c = pick(d->below, last, s);
  const ax_value p = ax_mul(ax_sub(pick(d->on, before, s), end), ax_real(0.5));
  const ax_value by = ax_plain_or_one(ax_max(ax_abs(p), ax_mul(ax_sqrt(ax_abs(b)), ax_sqrt(ax_abs(c)))));
  const ax_value unit = ax_plain_divided(p, by), of_b = ax_plain_divided(b, by), of_c = ax_plain_divided(c, by);
  const ax_value square = ax_add(ax_mul(unit, unit), ax_mul(of_b, of_c));
  if (s->width == 2) {
    const ax_value root = ax_sqrt(square), turns = ax_lt(ax_matrix_reals(ax_mul(ax_conjugated(unit), root)), ax_integer(0));
    const ax_value z = ax_add(unit, ax_where(turns, ax_neg(root), root));
    return (shifts){ax_sub(end, ax_mul(of_b, ax_plain_quotient(c, ax_plain_or_one(z)))), ax_poison};
  }
  const ax_value real = ax_ge(square, ax_integer(0)), root = ax_sqrt(ax_abs(square)), none = ax_full_like(root, 0);
  const ax_value z = ax_add(unit, ax_where(ax_lt(unit, ax_integer(0)), ax_neg(root), root));
  const ax_value nearer = ax_sub(end, ax_mul(of_b, ax_div(c, ax_plain_or_one(z))));
  return (shifts){ax_where(real, nearer, ax_add(end, p)), ax_where(real, none, ax_mul(by, root))};
}

/* Where steps have led nowhere: numbers of the matrix's size beside its first or its last element, by turns. */
static shifts others(const diagonals *d, const block *at, ax_value since, shifts usual, const shape *s) {
  const ax_value round = ax_rem(since, ax_integer(2 * EXCEPTION)), at_end = ax_eq(round, ax_integer(0));
  const ax_value exception = ax_and(ax_gt(since, ax_integer(0)), ax_or(at_end, ax_eq(round, ax_integer(EXCEPTION))));
  const ax_value place = ax_where(at_end, at->last, at->first), low = ax_abs(d->below);
  const ax_value one = pick(low, ax_where(at_end, place, ax_add(place, ax_integer(1))), s);
  const ax_value other = pick(low, ax_where(at_end, ax_sub(place, ax_integer(1)), ax_add(place, ax_integer(2))), s);
  const ax_value size = ax_mul(s->width == 2 ? one : ax_add(one, other), ax_real(0.75));
  const ax_value middle = ax_add(pick(d->on, place, s), ax_matrix_as(size, d->on));
  return (shifts){ax_where(exception, middle, usual.middle),
                  s->width == 2 ? ax_poison : ax_where(exception, ax_mul(size, ax_real(0.9)), usual.apart)};
}

/* The first elements of the column that a step which begins at row i brings to a unit vector, for all i: T[b, n]. */
static void columns_of(const diagonals *d, shifts by, const shape *s, ax_value *v) {
  const ax_value on = ax_sub(d->on, by.middle), low = moved(d->below, 1);
  if (s->width == 2) {
    v[0] = on, v[1] = low;
  } else {
    const ax_value size = ax_plain_or_one(ax_add(ax_add(ax_abs(on), ax_abs(low)), by.apart)), lower = ax_div(low, size);
    const ax_value squares = ax_add(ax_mul(on, ax_div(on, size)), ax_mul(by.apart, ax_div(by.apart, size)));
    v[0] = ax_add(squares, ax_mul(lower, d->above));
    v[1] = ax_mul(lower, ax_add(on, ax_sub(moved(d->on, 1), by.middle)));
    v[2] = ax_mul(lower, moved(d->below, 2));
  }
  ax_value sum = size_of(v[0]);
  for (int64_t i = 1; i < s->width; i++) sum = ax_add(sum, size_of(v[i]));
  for (int64_t i = 0; i < s->width; i++) v[i] = ax_plain_divided(v[i], ax_plain_or_one(sum));
}

/* --- A step --- */

typedef struct step {
  const shape *shape;
  ax_value first, last; /* s32[b, 1, 1]: the rows where the bulge begins, and of the block's end */
  ax_value v;           /* T[b, width, 1] */
} step;

/* The step begins at the last row before which two elements of the subdiagonal in a row are so small that what stands left of
   it is changed by less than roundings. */
static step plan(const diagonals *d, const block *at, ax_value since, const shape *s) {
  ax_value v[3], rest = ax_poison, begin[3];
  columns_of(d, others(d, at, since, nearest(d, at, s), s), s, v);
  for (int64_t i = 1; i < s->width; i++) rest = i == 1 ? size_of(v[i]) : ax_add(rest, size_of(v[i]));
  const ax_value on = size_of(d->on), around = ax_add(on, ax_add(moved(on, -1), moved(on, 1))), i = places(s);
  const ax_value bound = ax_mul(ax_real(ax_plain_epsilon(s->dtype)), ax_mul(size_of(v[0]), around));
  const ax_value small = ax_le(ax_mul(size_of(d->below), rest), bound);
  const ax_value fits = ax_and(ax_ge(i, at->first), ax_le(i, ax_sub(at->last, ax_integer(s->width - 1))));
  const ax_value first = last_place(ax_and(fits, ax_or(small, ax_eq(i, at->first))), s);
  for (int64_t k = 0; k < s->width; k++) begin[k] = pick(v[k], first, s);
  const ax_value works = ax_ge(at->last, ax_integer(0));
  return (step){s, ax_expand_dims(ax_where(works, first, ax_integer(s->n)), -1), ax_expand_dims(at->last, -1),
                ax_expand_dims(ax_concatenate(AX_LIST((uint32_t)s->width, begin), 1), -1)};
}

static AX_BODY(reflect_one) {
  const ax_plain_reflector r = ax_plain_reflect(in[0], ax_integer(0));
  (void)context;
  out[0] = r.v, out[1] = r.tau, out[2] = r.beta;
}

/* a b, of few columns and rows. */
static ax_value product(ax_value a, ax_value b, int64_t width) {
  ax_value sum = ax_poison;
  for (int64_t j = 0; j < width; j++) {
    const ax_value term = ax_mul(ax_slice_in_dim(a, j, j + 1, 1, 2), ax_slice_in_dim(b, j, j + 1, 1, 1));
    sum = j == 0 ? term : ax_add(sum, term);
  }
  return sum;
}

/* k, h, bulge -> h, bulge: the bulge at rows k + 1 .. goes on by a row. That of the next row is read from what is made, so that
   a compiler changes h in place. */
static AX_BODY(push) {
  const step *st = context;
  const shape *s = st->shape;
  const ax_value k = in[0], h = in[1], zero = ax_integer(0), i = ax_plain_rows(s->width), column = ax_sub(k, ax_integer(1));
  const ax_value begins = ax_eq(k, st->first), works = ax_and(ax_ge(k, st->first), ax_lt(k, st->last));
  const ax_value x = ax_where(ax_le(ax_add(i, k), st->last), ax_where(begins, st->v, in[2]), zero);
  ax_value r[3];
  ax_vmap(AX_FN(reflect_one, 1, 3), AX_VALUES(x), AX_LIST(3, r), NULL);
  const ax_value v = r[0], tau = ax_where(works, r[1], zero), eye = ax_matrix_eye(v, s->width, s->width);
  const ax_value p = ax_sub(eye, ax_mul(ax_mul(tau, v), ax_matrix_adjoint(v))); /* h becomes p^H h p */
  const ax_value turned = product(ax_matrix_adjoint(p), ax_dynamic_slice_in_dim(h, k, s->width, 1), s->width);
  const ax_value is_bulge = ax_and(works, ax_eq(ax_plain_columns(s->columns), column));
  const ax_value known = ax_where(ax_eq(i, zero), ax_where(begins, turned, r[2]), zero);
  const ax_value left = ax_dynamic_update_slice_in_dim(h, ax_where(is_bulge, known, turned), k, 1);
  out[0] = ax_dynamic_update_slice_in_dim(left, product(ax_dynamic_slice_in_dim(left, k, s->width, 2), p, s->width), k, 2);
  out[1] = ax_dynamic_slice(out[0], AX_VALUES(zero, ax_add(k, ax_integer(1)), k), AX_DIMS(s->batch, s->width, 1));
}

/* --- The iteration --- */

enum { COUNT, SINCE, FIRST, LAST, FORM, CARRIES }; /* SINCE: s32[b, 1], steps since the last deflation */

static ax_value any_left(const ax_value *carries) { return ax_reduce_or(ax_ge(carries[LAST], ax_integer(0)), AX_ALL_DIMS, false); }

static AX_BODY(goes_on) {
  const shape *s = context;
  const int64_t most = EACH * (s->n < 10 ? 10 : s->n);
  out[0] = ax_and(ax_lt(in[COUNT], ax_integer(most)), any_left(in));
}

static AX_BODY(take_step) {
  const shape *s = context;
  const diagonals d = diagonals_of(in[FORM], s);
  block at = {in[FIRST], in[LAST]}, next;
  step st = plan(&d, &at, in[SINCE], s);
  const ax_value from = ax_reduce_min(st.first, AX_ALL_DIMS, false), to = ax_reduce_max(st.last, AX_ALL_DIMS, false);
  ax_value made[2];
  ax_fori_loop(from, to, AX_CLOSURE(push, 3, 2, &st), AX_VALUES(in[FORM], st.v), AX_LIST(2, made));
  out[FORM] = deflate(made[0], s, &next);
  out[COUNT] = ax_add(in[COUNT], ax_integer(1));
  out[SINCE] = ax_where(ax_eq(next.last, at.last), ax_add(in[SINCE], ax_integer(1)), ax_integer(0));
  out[FIRST] = next.first, out[LAST] = next.last;
}

ax_plain_schur_form ax_plain_francis(ax_value h, const ax_value *adjoint) {
  const ax_type type = ax_typeof(h);
  if (ax_failed()) return (ax_plain_schur_form){ax_poison, ax_poison, ax_poison};
  const int64_t n = type.dims[1], width = ax_is_complex(type.dtype) ? 2 : 3;
  shape s = {type.dims[0], n, width, n < 2 ? width : n + width - 2, 0, type.dtype};
  s.columns = s.rows + (adjoint != NULL ? n : 0);
  const ax_value square = ax_matrix_padded(h, s.rows, s.rows);
  const ax_value whole = adjoint == NULL ? square : ax_matrix_beside(square, ax_matrix_padded(*adjoint, s.rows, n));
  ax_value made[CARRIES];
  block at;
  const ax_value form = deflate(whole, &s, &at);
  const ax_value none = ax_full_i64(AX_S32, AX_DIMS(), 0), since = ax_full_i64(AX_S32, AX_DIMS(s.batch, 1), 0);
  const ax_value start[] = {none, since, at.first, at.last, form};
  ax_while(AX_CLOSURE(goes_on, CARRIES, 1, &s), AX_CLOSURE(take_step, CARRIES, CARRIES, &s), AX_LIST(CARRIES, start),
           AX_LIST(CARRIES, made));
  ax_plain_schur_form out = {.t = ax_matrix_part(made[FORM], 0, n, 0, n), .q = ax_poison};
  out.known = ax_reshape(ax_lt(made[LAST], ax_integer(0)), AX_DIMS(s.batch));
  if (adjoint != NULL) out.q = ax_matrix_adjoint(ax_matrix_part(made[FORM], 0, n, s.rows, n));
  return out;
}
