/* Sorts in an order that a function says: a bitonic network over the places, padded to a power of two, as one scan over its steps.
   In a step the element at place p meets the one at p xor distance, and each place keeps one of the two:

     run       1    2  2    4  4  4          runs so long, ascending and descending in turn, are put together
     distance  1    2  1    4  2  1

   Both sides of a meeting decide alike, whatever the function says, so that each element is kept once: of two that the function puts in
   either order, or in none, the one that stood first goes first. */
#include "axle/transform.h"
#include "lib/checked.h"
#include "lib/elements.h"
#include "prim/shape.h"

static const char name[] = "sort_by";

typedef struct order {
  ax_fn less;
  uint32_t count; /* of operands */
  int64_t length; /* places that count; those from here on are padding, and go last */
} order;

/* Whether the elements of a go first, where those stand at places p, and those of b, at q, do not. */
static ax_value first_of(const order *o, const ax_value *a, ax_value p, const ax_value *b, ax_value q) {
  ax_value *pair = ax_trace_alloc(2 * o->count * sizeof pair[0]), before = ax_poison, after = ax_poison;
  if (pair == NULL) return ax_poison;
  for (uint32_t i = 0; i < o->count; i++) pair[i] = a[i], pair[o->count + i] = b[i];
  ax_apply_to_elements(name, o->less, pair, &before);
  for (uint32_t i = 0; i < o->count; i++) pair[i] = b[i], pair[o->count + i] = a[i];
  ax_apply_to_elements(name, o->less, pair, &after);
  if (ax_failed()) return ax_poison;
  const ax_type said = ax_typeof(before);
  if (said.dtype != AX_BOOL)
    return ax_reject_as(name, "less gives %s for each pair of elements; it must give bool[]", ax_dtype_name(said.dtype));
  const ax_value earlier = ax_lt(p, q), length = ax_full_like(p, (double)o->length);
  const ax_value padding = ax_or(ax_ge(p, length), ax_ge(q, length));
  const ax_value decided = ax_ne(before, after); /* they agree on one order */
  return ax_where(ax_or(padding, ax_not(decided)), earlier, before);
}

/* (operands.., place, distance, run) -> (operands.., place) */
static void meet(const ax_value *in, ax_value *out, void *context) {
  const order *o = context;
  const uint32_t carried = o->count + 1;
  const ax_type type = ax_typeof(in[0]);
  ax_value *other = ax_trace_alloc(carried * sizeof other[0]);
  if (other == NULL || ax_failed()) return;
  const ax_value own = (ax_iota)(AX_S32, 1, &type.dims[1], 0), met = ax_xor(own, in[carried]);
  for (uint32_t i = 0; i < carried; i++) other[i] = ax_take(in[i], met, 1);
  const ax_value none = ax_integer(0), below = ax_eq(ax_and(own, in[carried]), none),
                 ascending = ax_eq(ax_and(own, in[carried + 1]), none);
  const ax_value first = first_of(o, in, in[o->count], other, other[o->count]);
  if (ax_failed()) return;
  const ax_value keeps = ax_eq(first, (ax_broadcast_to)(ax_eq(below, ascending), type.rank, type.dims));
  for (uint32_t i = 0; i < carried; i++) out[i] = ax_where(keeps, in[i], other[i]);
}

/* The distances and runs of all steps, for `places`, a power of two. */
static int64_t steps_of(int64_t places, ax_value *distances, ax_value *runs) {
  int32_t distance[64 * 63 / 2], run[AX_COUNT(distance)];
  int64_t steps = 0;
  for (int64_t r = 2; r <= places; r *= 2)
    for (int64_t d = r / 2; d > 0; d /= 2) distance[steps] = (int32_t)d, run[steps] = (int32_t)(r < places ? r : 0), steps++;
  const ax_type type = ax_array_type(AX_S32, AX_LIST(1, &steps));
  *distances = ax_constant(&type, distance);
  *runs = ax_constant(&type, run);
  return steps;
}

/* The places of [rows, length] operands' elements in the order: s32[rows, length]. */
static ax_value sorted_places(order *o, const ax_value *x, int64_t rows) {
  int64_t places = 1;
  while (places < o->length) places *= 2;
  const int64_t dims[] = {rows, places}, none[] = {0, 0}, more[] = {0, places - o->length}, length[] = {rows, o->length};
  ax_value *in = ax_trace_alloc((o->count + 3) * sizeof in[0]);
  if (in == NULL || ax_failed()) return ax_poison;
  for (uint32_t i = 0; i < o->count; i++)
    in[i] = (ax_pad)(ax_stop_gradient(x[i]), (ax_full)(ax_typeof(x[i]).dtype, 0, NULL, 1), 2, none, 2, more, 2, none);
  in[o->count] = (ax_iota)(AX_S32, 2, dims, 1);
  const int64_t steps = steps_of(places, &in[o->count + 1], &in[o->count + 2]);
  (ax_scan)(AX_CLOSURE(meet, o->count + 3, o->count + 1, o), o->count + 1, steps, false, o->count + 3, in, o->count + 1, in);
  return ax_failed() ? ax_poison : (ax_slice)(in[o->count], 2, none, 2, length, 0, NULL);
}

static bool take_operands(const ax_value *x, const order *o, ax_type *first) {
  for (uint32_t i = 0; i < o->count; i++) {
    ax_type type;
    if (!ax_operand(name, x[i], &type)) return false;
    if (i == 0) *first = type;
    if (!ax_shaped_as(name, i, &type, first)) return false;
  }
  return true;
}

/* [.., length, ..] -> [rows, length], and back. */
static ax_value in_rows(ax_value x, int64_t dimension, int64_t rows, int64_t length) {
  return (ax_reshape)(ax_moveaxis(x, dimension, -1), 2, (int64_t[]){rows, length});
}
static ax_value out_of_rows(ax_value x, int64_t dimension, ax_type type) {
  int64_t dims[AX_MAX_RANK];
  uint32_t kept = 0;
  for (uint32_t d = 0; d < type.rank; d++)
    if (d != dimension) dims[kept++] = type.dims[d];
  dims[kept] = type.dims[dimension];
  return ax_moveaxis((ax_reshape)(x, type.rank, dims), -1, dimension);
}

void(ax_sort_by)(uint32_t count, const ax_value *xs, int64_t dimension, ax_fn less, uint32_t out_count, ax_value *out) {
  ax_type type;
  if (!ax_lists_fit(name, count, count, out_count, count, out)) return;
  xs = ax_take_operands(xs, count, out, count);
  if (ax_failed()) return;
  if (count == 0 || less.in_count != 2 * count || less.out_count != 1) {
    (void)ax_reject_as(name, "less takes %u values and gives %u; it must take two for each of %u operands, and give one",
                       less.in_count, less.out_count, count);
    return;
  }
  order o = {.less = less, .count = count};
  if (!take_operands(xs, &o, &type) || !ax_dimension(name, "dimension", &dimension, type.rank)) return;
  o.length = type.dims[dimension];
  if (o.length > (int64_t)1 << 30) {
    (void)ax_reject_as(name, "there are %lld places in dimension %lld; at most 2^30 are sorted", (long long)o.length,
                       (long long)dimension);
    return;
  }
  const int64_t elements = ax_type_elems(&type);
  if (elements == 0 || o.length == 1) {
    for (uint32_t i = 0; i < count; i++) out[i] = xs[i];
    return;
  }
  const int64_t rows = elements / o.length;
  ax_value *x = ax_trace_alloc(count * sizeof x[0]);
  if (x == NULL) return;
  for (uint32_t i = 0; i < count; i++) x[i] = in_rows(xs[i], dimension, rows, o.length);
  const ax_value place = sorted_places(&o, x, rows);
  const ax_index_options inside = {.mode = AX_INDEX_PROMISE_IN_BOUNDS};
  for (uint32_t i = 0; i < count && !ax_failed(); i++)
    out[i] = out_of_rows(ax_take_along_axis(x[i], place, 1, &inside), dimension, type);
}
