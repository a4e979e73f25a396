/* Places in sorted arrays and what is made of them: bins, counts, interpolation; and the different values of an array. The order is
   that of ax_sort: NaN is the greatest, -0 is 0. */
#include <math.h>

#include "axle/numpy.h"
#include "lib/checked.h"

/* a < b in the order of sort. */
static ax_value before(ax_value a, ax_value b, bool is_float) {
  ax_value less = ax_lt(a, b);
  return is_float ? ax_or(less, ax_and(ax_ne(b, b), ax_eq(a, a))) : less;
}

/* Of up to so many elements all are compared, which takes no dependent reads; of more, half is left at each step. */
enum { FEW = 128 };

/* A search: how many elements of `sorted` stand before a value. */
typedef struct search {
  ax_value sorted, values;
  bool right, is_float;
} search;

/* Whether an element stands before the place that is looked for. */
static ax_value stands_before(const search *s, ax_value element, ax_value value) {
  return s->right ? ax_not(before(value, element, s->is_float)) : before(element, value, s->is_float);
}

/* (index, low, high) -> (low, high): the place is between them, and stays so. */
static void halve(const ax_value *in, ax_value *out, void *context) {
  const search *s = context;
  ax_value middle = ax_div(ax_add(in[1], in[2]), ax_integer(2)), open = ax_lt(in[1], in[2]);
  ax_value later = ax_and(open, stands_before(s, ax_take(s->sorted, middle, 0), s->values));
  out[0] = ax_where(later, ax_add(middle, ax_integer(1)), in[1]);
  out[1] = ax_where(ax_and(open, ax_not(later)), middle, in[2]);
}

ax_value ax_searchsorted(ax_value sorted, ax_value values, bool right) {
  static const char name[] = "searchsorted";
  ax_value in[] = {sorted, values};
  ax_type t[2];
  if (!ax_operands(name, 2, in, t)) return ax_poison;
  if (t[0].rank != 1) return ax_reject_as(name, "the sorted operand is %s; it must be a vector", ax_operand_string(&t[0]));
  const int64_t n = t[0].dims[0], last[] = {-1};
  if (n >= INT32_MAX / 2) return ax_reject_as(name, "%s is longer than s32 counts", ax_operand_string(&t[0]));
  search s = {.sorted = sorted, .values = values, .right = right, .is_float = ax_is_float(t[0].dtype)};
  if (n <= FEW) {
    if (t[1].rank == AX_MAX_RANK) return ax_reject_as(name, "the rank would exceed %d", AX_MAX_RANK);
    ax_value all = stands_before(&s, sorted, ax_expand_dims(values, t[1].rank));
    return ax_reduce_sum(ax_convert_element_type(all, AX_S32), AX_LIST(1, last), false);
  }
  int64_t steps = 0;
  while (n >> steps != 0) steps++;
  ax_value ends[] = {ax_full_i64(AX_S32, AX_LIST(t[1].rank, t[1].dims), 0), ax_full_i64(AX_S32, AX_LIST(t[1].rank, t[1].dims), n)};
  ax_fori_loop(ax_integer(0), ax_integer(steps), AX_CLOSURE(halve, 3, 2, &s), AX_LIST(2, ends), AX_LIST(2, ends));
  return ends[0];
}

ax_value ax_digitize(ax_value x, ax_value bins, bool right) {
  static const char name[] = "digitize";
  ax_value in[] = {bins, x};
  ax_type t[2];
  if (!ax_operands(name, 2, in, t)) return ax_poison;
  if (t[0].rank != 1) return ax_reject_as(name, "the bins are %s; they must be a vector", ax_operand_string(&t[0]));
  const int64_t n = t[0].dims[0], first = 0;
  if (n == 0) return ax_full(AX_S32, AX_LIST(t[1].rank, t[1].dims), 0);
  ax_value down = ax_sub(ax_integer(n), ax_searchsorted(ax_rev(bins, AX_LIST(1, &first)), x, !right));
  return ax_where(ax_ge(ax_at(bins, -1, 0), ax_at(bins, 0, 0)), ax_searchsorted(bins, x, !right), down);
}

/* --- Counts --- */

ax_value ax_bincount(ax_value x, ax_value weights, int64_t length) {
  static const char name[] = "bincount";
  ax_type t, w = {.dtype = AX_S32};
  if (!ax_operand(name, x, &t)) return ax_poison;
  const ax_dtype_kind kind = ax_dtype_get(t.dtype)->kind;
  if (t.rank != 1 || (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED))
    return ax_reject_as(name, "the operand is %s; it must be a vector of integers", ax_operand_string(&t));
  if (length < 0) return ax_reject_as(name, "there cannot be %lld counts", (long long)length);
  if (ax_is_given(weights) && (!ax_numeric_operand(name, weights, &w) || w.rank != 1 || w.dims[0] != t.dims[0]))
    return ax_reject_as(name, "the weights are %s; there must be one for each of %s", ax_operand_string(&w), ax_operand_string(&t));
  ax_value counts = ax_full(w.dtype, AX_LIST(1, &length), 0);
  if (length == 0) return counts;
  return ax_at_add(counts, ax_max(x, ax_integer(0)), ax_is_given(weights) ? weights : ax_integer(1), 0, NULL);
}

ax_value ax_histogram_bin_edges(ax_value x, int64_t bins) {
  static const char name[] = "histogram_bin_edges";
  ax_type t;
  if (!ax_float_operand(name, x) || !ax_operand(name, x, &t)) return ax_poison;
  if (bins < 1) return ax_reject_as(name, "there cannot be %lld bins", (long long)bins);
  ax_value low = ax_reduce_min(x, AX_ALL_DIMS, false), high = ax_reduce_max(x, AX_ALL_DIMS, false), flat = ax_eq(low, high);
  return ax_linspace(t.dtype, ax_where(flat, ax_sub(low, ax_real(0.5)), low), ax_where(flat, ax_add(high, ax_real(0.5)), high),
                     bins + 1, true);
}

/* Elements below all edges are counted at 0, which is dropped; those above beyond the end. */
ax_value ax_histogram(ax_value x, ax_value edges, ax_value weights) {
  static const char name[] = "histogram";
  ax_value in[] = {x, edges};
  ax_type t[2];
  if (!ax_operands(name, 2, in, t) || !ax_float_operand(name, x) || !ax_beside(name, "the weights", weights, &t[0]))
    return ax_poison;
  if (t[1].rank != 1 || t[1].dims[0] < 2)
    return ax_reject_as(name, "the edges are %s; they must be a vector of two at least", ax_operand_string(&t[1]));
  const int64_t n = t[1].dims[0], elems = ax_type_elems(&t[0]);
  if (ax_is_given(weights))
    weights = ax_reshape(ax_broadcast_to(weights, AX_LIST(t[0].rank, t[0].dims)), AX_LIST(1, &elems));
  else
    weights = ax_full(t[0].dtype, AX_LIST(1, &elems), 1);
  x = ax_reshape(x, AX_LIST(1, &elems));
  ax_value bin = ax_searchsorted(edges, x, true);
  bin = ax_where(ax_eq(x, ax_at(edges, -1, 0)), ax_integer(n - 1), bin);
  return ax_slice_in_dim(ax_bincount(bin, weights, n), 1, AX_END, 1, 0);
}

/* As jnp.interp: where two xp are equal the line has no slope, and the first fp stands. */
ax_value ax_interp(ax_value x, ax_value xp, ax_value fp) {
  static const char name[] = "interp";
  ax_value in[] = {x, xp, fp};
  ax_type t[3];
  if (!ax_operands(name, 3, in, t) || !ax_float_operand(name, x)) return ax_poison;
  const int64_t n = t[1].dims[0];
  if (t[1].rank != 1 || t[2].rank != 1 || t[2].dims[0] != n || n < 1)
    return ax_reject_as(name, "xp and fp are %s and %s; they must be vectors of one size", ax_operand_string(&t[1]),
                        ax_operand_string(&t[2]));
  ax_value i = ax_min(ax_max(ax_searchsorted(xp, x, true), ax_integer(1)), ax_integer(n - 1)), h = ax_sub(i, ax_integer(1));
  ax_value x0 = ax_take(xp, h, 0), f0 = ax_take(fp, h, 0), dx = ax_sub(ax_take(xp, i, 0), x0);
  const double epsilon = t[0].dtype == AX_F64    ? 0x1p-104
                         : t[0].dtype == AX_F32  ? 0x1p-46
                         : t[0].dtype == AX_BF16 ? 0x1p-14
                                                 : 0x1p-20;
  ax_value none = ax_le(ax_abs(dx), ax_real(epsilon));
  ax_value slope = ax_div(ax_sub(x, x0), ax_where(none, ax_real(1), dx));
  ax_value f = ax_where(none, f0, ax_add(f0, ax_mul(slope, ax_sub(ax_take(fp, i, 0), f0))));
  f = ax_where(ax_lt(x, ax_at(xp, 0, 0)), ax_at(fp, 0, 0), f);
  return ax_where(ax_gt(x, ax_at(xp, -1, 0)), ax_at(fp, -1, 0), f);
}

/* --- Different values --- */

/* s32[n]: for each place how many of the marks, bool[n], stand before it or at it, less 1. */
static ax_value rank_of(ax_value marks) {
  return ax_sub(ax_cumsum(ax_convert_element_type(marks, AX_S32), 0, false), ax_integer(1));
}

/* x as a vector, of which s32 can count the elements; -1: it cannot. */
static int64_t flatten(const char *name, ax_value *x, ax_type *t) {
  if (!ax_operand(name, *x, t)) return -1;
  const int64_t n = ax_type_elems(t);
  if (n > INT32_MAX) ax_reject_as(name, "%s has more elements than s32 counts", ax_operand_string(t));
  *x = ax_reshape(*x, AX_LIST(1, &n));
  return ax_failed() ? -1 : n;
}

static ax_value first_or(ax_value fill, ax_value x) { return ax_is_given(fill) ? fill : ax_at(x, 0, 0); }

/* The elements are sorted with their places; the first of each run of equal ones is marked, and its rank is its value's place.
   Ranks from `size` on are dropped, as is all that is not marked. */
void (ax_unique)(ax_value x, int64_t size, ax_value fill_value, uint32_t out_count, ax_value *out) {
  static const char name[] = "unique";
  ax_type t;
  if (!ax_lists_fit(name, 1, 1, out_count, 4, out)) return;
  ax_poison_list(out_count, 4, out);
  const int64_t n = flatten(name, &x, &t), zero = 0, one = 1;
  if (n == 0) ax_reject_as(name, "%s has no elements", ax_operand_string(&t));
  if (n >= 0 && size < 0) ax_reject_as(name, "there cannot be %lld values", (long long)size);
  if (ax_is_given(fill_value) && n >= 0) fill_value = ax_as(name, fill_value, t.dtype);
  if (ax_failed()) return;
  ax_value sorted[2], both[] = {x, ax_iota(AX_S32, AX_LIST(1, &n), 0)};
  ax_sort_together(AX_LIST(2, both), 0, 1, AX_LIST(2, sorted));
  ax_value left = ax_slice_in_dim(sorted[0], 0, n - 1, 1, 0), right = ax_slice_in_dim(sorted[0], 1, AX_END, 1, 0);
  ax_value differs = ax_ne(left, right);
  if (ax_is_float(t.dtype)) differs = ax_and(differs, ax_not(ax_and(ax_ne(left, left), ax_ne(right, right))));
  ax_value marked = ax_pad(differs, ax_full(AX_BOOL, AX_DIMS(), 1), AX_LIST(1, &one), AX_LIST(1, &zero), AX_LIST(1, &zero));
  ax_value rank = rank_of(marked), place = ax_where(marked, rank, ax_integer(INT32_MAX));
  ax_value room = ax_broadcast_to(first_or(fill_value, sorted[0]), AX_LIST(1, &size));
  out[0] = size == 0 ? room : ax_at_set(room, place, sorted[0], 0, NULL);
  room = ax_broadcast_to(ax_at(sorted[1], 0, 0), AX_LIST(1, &size));
  out[1] = size == 0 ? room : ax_at_set(room, place, sorted[1], 0, NULL);
  out[2] = ax_at_set(ax_full(AX_S32, AX_LIST(1, &n), 0), sorted[1], rank, 0, NULL);
  out[3] = ax_bincount(rank, (ax_value){0}, size);
}

void (ax_nonzero)(ax_value x, int64_t size, int64_t fill_value, uint32_t out_count, ax_value *out) {
  static const char name[] = "nonzero";
  ax_type t;
  ax_poison_list(out_count, 0, out);
  const int64_t n = flatten(name, &x, &t);
  if (n >= 0 && size < 0) ax_reject_as(name, "there cannot be %lld places", (long long)size);
  if (ax_failed() || !ax_list_fits(name, "there are", "result", out_count, t.rank)) return;
  ax_value marked = ax_convert_element_type(x, AX_BOOL);
  ax_value place = n == 0 ? ax_iota(AX_S32, AX_LIST(1, &n), 0) : ax_where(marked, rank_of(marked), ax_integer(INT32_MAX));
  for (uint32_t d = 0; d < t.rank && !ax_failed(); d++) {
    ax_value room = ax_full_i64(AX_S32, AX_LIST(1, &size), fill_value);
    ax_value index = ax_reshape(ax_iota(AX_S32, AX_LIST(t.rank, t.dims), d), AX_LIST(1, &n));
    out[d] = size == 0 ? room : ax_at_set(room, place, index, 0, NULL);
  }
}
