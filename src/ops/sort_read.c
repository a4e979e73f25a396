/* Reads StableHLO's sort, which has a comparator: any function of two elements of each operand. Those that people write are recognised,
   and sorted by keys, in a tenth of the time:

     jax.lax.sort's                        the first operands are keys; -0 is 0 and NaN comes last; complex numbers go by their real
                                           parts, and where these are equal by the imaginary ones
     x < y, x > y of the first operand     integers; floats in the total order, as jax.lax.top_k has them; or floats as they compare,
                                           where NaN, which no comparator of this kind has a place for, comes last

   All others are called, element by element (ax_sort_by). Of a sort of which only the first elements are wanted these are selected
   (ax_top_k), if one operand decides. */
#include <math.h>

#include "hlo/read.h"
#include "ops/pointwise.h"
#include "ops/sort.h"
#include "prim/prims.h"
#include "prim/scalars.h"

/* --- Comparators --- */

/* Or what NaN becomes in a dtype that has none, where it is never chosen. */
static double nan_of(ax_dtype dtype) { return ax_has_nan(dtype) ? (double)NAN : -0.0; }

/* A float as JAX's comparator sees it: one zero, and one NaN, which is the greatest. */
static ax_value one_zero_and_nan(ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed() || !ax_is_float(type.dtype)) return x;
  const ax_value zero = ax_full(type.dtype, AX_DIMS(), 0), is_zero = ax_eq(x, zero), with_zero = ax_select_n(is_zero, x, zero);
  const ax_value is_nan = ax_ne(x, x);
  return ax_select_n(is_nan, with_zero, ax_full(type.dtype, AX_DIMS(), nan_of(type.dtype)));
}

typedef struct known_order {
  uint32_t num_keys;
} known_order;

/* The real numbers by which an element is compared: itself, or the real part before the imaginary one. Returns how many. */
static uint32_t compared(ax_value x, ax_value *out) {
  const bool is_complex = !ax_failed() && ax_is_complex(ax_typeof(x).dtype);
  out[0] = one_zero_and_nan(is_complex ? ax_real_part(x) : x);
  if (is_complex) out[1] = one_zero_and_nan(ax_imag_part(x));
  return 1 + is_complex;
}

/* The comparator that JAX gives to a sort by the first num_keys operands: a key decides where those before are equal. */
static AX_BODY(known_less) {
  const known_order *order = context;
  ax_value x[2 * AX_MAX_RANK] = {{0}}, y[2 * AX_MAX_RANK] = {{0}};
  uint32_t count = 0;
  for (uint32_t k = 0; k < order->num_keys; k++) {
    (void)compared(in[2 * k], x + count);
    count += compared(in[2 * k + 1], y + count);
  }
  for (uint32_t k = count; k-- > 0;) {
    const bool last = k + 1 == count;
    const ax_value a = ax_total_order(x[k]), b = ax_total_order(y[k]), less = ax_lt(a, b);
    if (last) out[0] = less;
    if (last) continue;
    const ax_value c = ax_total_order(x[k]), d = ax_total_order(y[k]), equal = ax_eq(c, d), later = ax_and(equal, out[0]);
    out[0] = ax_or(less, later);
  }
}

/* How many keys the comparator of `count` operands has, if it is one of JAX's; 0: it is another function. */
static ax_status known_keys(const ax_program *less, uint32_t count, const ax_dtype *dtypes, uint32_t *out) {
  *out = 0;
  for (uint32_t keys = 1; keys <= count && keys <= AX_MAX_RANK && *out == 0; keys++) {
    known_order order = {keys};
    ax_program *known;
    AX_TRY(ax_scalars_trace("sort", "comparator", (ax_fn){known_less, 2 * count, 1, &order}, dtypes, &known));
    if (ax_program_equal(known, less)) *out = keys;
    ax_program_release(known);
  }
  return AX_OK;
}

typedef struct one_key { /* a comparator of the first operand alone */
  bool found, descends, total;
} one_key;

static AX_BODY(one_key_before) {
  const one_key *key = context;
  const ax_value a = key->total ? ax_total_order(in[0]) : in[0], b = key->total ? ax_total_order(in[1]) : in[1];
  out[0] = key->descends ? ax_gt(a, b) : ax_lt(a, b);
}

/* Integers have one order, which is called total. */
static ax_status find_one_key(const ax_program *less, uint32_t count, const ax_dtype *dtypes, one_key *out) {
  *out = (one_key){0};
  if (ax_is_complex(dtypes[0])) return AX_OK;
  for (uint32_t k = 0; k < (ax_is_float(dtypes[0]) && !ax_is_byte_float(dtypes[0]) ? 4 : 2) && !out->found; k++) {
    one_key key = {.found = true, .descends = k % 2 == 0, .total = k < 2};
    ax_program *known;
    AX_TRY(ax_scalars_trace("sort", "comparator", (ax_fn){one_key_before, 2 * count, 1, &key}, dtypes, &known));
    if (ax_program_equal(known, less)) *out = key;
    ax_program_release(known);
  }
  return AX_OK;
}

/* --- Sorts --- */

/* What ascends (for ax_sort) where the elements are in the order of the key. */
static ax_value ascending(one_key key, ax_value x) {
  if (key.total) return key.descends ? ax_not(ax_total_order(x)) : ax_total_order(x);
  return key.descends ? ax_neg(x) : x;
}

/* Integers by themselves that descend are the complements of ascending ones; floats that ascend as they compare are their own
   keys. */
static bool sort_alone(const ax_hlo_read_args *args, one_key key, int64_t dimension) {
  if (args->op->operand_count != 1 || ax_failed()) return false;
  const ax_dtype_kind kind = ax_dtype_get(ax_typeof(args->in[0]).dtype)->kind;
  const bool is_integer = kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED, as_it_is = !key.total && !key.descends;
  if (is_integer && key.descends) args->out[0] = ax_not(ax_sort(ax_not(args->in[0]), dimension));
  else if (as_it_is) args->out[0] = ax_sort(args->in[0], dimension);
  return as_it_is || (is_integer && key.descends);
}

static ax_status sort_by_one(const ax_hlo_read_args *args, one_key key, int64_t dimension) {
  const uint32_t count = args->op->operand_count;
  if (sort_alone(args, key, dimension)) return AX_OK;
  ax_value *in = ax_trace_alloc((count + 1) * sizeof in[0]), *out = ax_trace_alloc((count + 1) * sizeof out[0]);
  if (in == NULL || out == NULL) return AX_OK;
  in[0] = ascending(key, args->in[0]);
  for (uint32_t k = 0; k < count; k++) in[k + 1] = args->in[k];
  (ax_sort_together)(count + 1, in, dimension, 1, count + 1, out);
  for (uint32_t k = 0; k < count; k++) args->out[k] = out[k + 1];
  return AX_OK;
}

/* What descends in the total order (for ax_top_k) where the elements are in the order of the key: -NaN is the least number. */
static ax_value descending(one_key key, ax_value x) {
  const ax_type type = ax_typeof(x);
  const ax_dtype dtype = type.dtype;
  if (key.total && key.descends && !ax_is_byte_float(dtype)) return x;
  if (key.total) return key.descends ? ax_total_order(x) : ax_not(ax_total_order(x));
  const ax_value zero = (ax_full)(dtype, AX_LIST(type.rank, type.dims), 0),
                 least = (ax_full)(dtype, AX_LIST(type.rank, type.dims), copysign(nan_of(dtype), -1));
  return ax_select_n(ax_ne(x, x), ax_add(key.descends ? x : ax_neg(x), zero), least);
}

static bool counts_places(const ax_hlo_read_args *args, uint32_t k, int64_t dimension) {
  const ax_hlo_operation *maker = ax_hlo_maker_of(args, args->op->operands[k]);
  int64_t along;
  return maker != NULL && ax_hlo_slice_is(maker->name, "stablehlo.iota") && ax_typeof(args->in[k]).dtype == AX_S32 &&
         ax_hlo_integer(maker, "iota_dimension", &along) == AX_OK && along == dimension;
}

/* The first of the last dimension. */
static ax_status select_first(const ax_hlo_read_args *args, one_key key, int64_t first) {
  const uint32_t count = args->op->operand_count;
  const ax_value x = args->in[0], by = descending(key, x);
  const int64_t dimension = ax_typeof(x).rank - 1;
  ax_value best[] = {ax_poison, ax_poison};
  (ax_top_k)(by, first, 2, best);
  for (uint32_t k = 0; k < count && !ax_failed(); k++) {
    const bool whole = k == 0 && key.total && key.descends && ax_typeof(by).dtype == ax_typeof(x).dtype;
    args->out[k] = whole ? best[0] : counts_places(args, k, dimension) ? best[1] : ax_taken_in_order(args->in[k], best[1], dimension);
  }
  return AX_OK;
}

static ax_status take_first(const ax_hlo_read_args *args, int64_t dimension, int64_t first) {
  const ax_dims start = {.count = ax_typeof(args->in[0]).rank};
  for (uint32_t k = 0; k < args->op->operand_count && !ax_failed(); k++) {
    ax_type type = ax_typeof(args->in[k]);
    type.dims[dimension] = first;
    args->out[k] = (ax_slice)(args->out[k], AX_LIST(start.count, start.v), AX_LIST(type.rank, type.dims), AX_LIST(0, NULL));
  }
  return AX_OK;
}

/* StableHLO's comparators take an element of the first operand and another one of it, then two of the second, ..; ours one of each
   operand, then another of each. */
static AX_BODY(less_by_operand) {
  const ax_fn *less = context;
  ax_value *pairs = ax_trace_alloc(less->in_count * sizeof pairs[0]);
  if (pairs == NULL) return;
  for (uint32_t k = 0; k < less->in_count; k++) pairs[k] = in[k / 2 + (k % 2) * (less->in_count / 2)];
  less->function(pairs, out, less->context);
}

typedef struct found_order { /* neither: another function */
  uint32_t keys;
  one_key one;
} found_order;

static ax_status find_order(ax_fn less, uint32_t count, const ax_dtype *dtypes, found_order *out) {
  ax_program *body;
  AX_TRY(ax_scalars_trace("sort", "comparator", less, dtypes, &body));
  ax_status status = known_keys(body, count, dtypes, &out->keys);
  if (status == AX_OK && out->keys == 0 && count > 0) status = find_one_key(body, count, dtypes, &out->one);
  ax_program_release(body);
  return status;
}

ax_status ax_hlo_read_sort(const ax_hlo_read_args *args, int64_t dimension, int64_t first) {
  const uint32_t count = args->op->operand_count;
  found_order order = {0};
  ax_hlo_body body;
  ax_fn less;
  ax_dtype *dtypes = ax_trace_alloc(2 * count * sizeof dtypes[0]);
  if (dtypes == NULL) return AX_OK;
  AX_TRY(ax_hlo_body_of(args, 0, 1, &body, &less));
  if (less.in_count != 2 * count || args->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "%u operands need a comparator of %u scalars, and as many results", count, 2 * count);
  for (uint32_t k = 0; k < 2 * count; k++) dtypes[k] = ax_typeof(args->in[k / 2]).dtype;
  AX_TRY(find_order(less, count, dtypes, &order));
  const ax_type x = ax_typeof(args->in[0]);
  const bool selects = first > 0 && dimension == x.rank - 1 && x.dims[dimension] <= INT32_MAX && x.rank < AX_MAX_RANK;
  const bool plain = order.keys == 1 && !ax_is_byte_float(x.dtype) && !ax_is_complex(x.dtype);
  const one_key one = plain ? (one_key){.found = true, .total = !ax_is_float(x.dtype)} : order.one;
  if (selects && one.found) return select_first(args, one, first);
  if (order.one.found) AX_TRY(sort_by_one(args, order.one, dimension));
  else if (order.keys > 0) (ax_sort_together)(count, args->in, dimension, order.keys, count, args->out);
  else (ax_sort_by)(count, args->in, dimension, (ax_fn){less_by_operand, less.in_count, 1, &less}, count, args->out);
  return first >= 0 ? take_first(args, dimension, first) : AX_OK;
}

static ax_status read(const ax_hlo_read_args *args) {
  ax_sort_params p = {0};
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_sort, &p));
  return ax_hlo_read_sort(args, p.dimension, -1);
}

const ax_hlo_reader ax_sort_readers[] = {{"stablehlo.sort", read}, {0}};
