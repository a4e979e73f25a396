/* Bounds of what equations on integers give. Where a result may wrap, nothing is known of it but its dtype. */
#include "prim/intervals.h"

#include "ir/dtype.h"
#include "ir/number.h"
#include "prim/prims.h"

bool ax_is_counted(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (info->kind == AX_KIND_UNSIGNED) return info->bits < 64;
  return info->kind == AX_KIND_SIGNED || info->kind == AX_KIND_BOOL;
}

ax_interval ax_interval_of_dtype(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (!ax_is_counted(dtype) || (info->kind == AX_KIND_SIGNED && info->bits == 64)) return (ax_interval){INT64_MIN, INT64_MAX};
  if (info->kind == AX_KIND_SIGNED) return (ax_interval){-((int64_t)1 << (info->bits - 1)), ((int64_t)1 << (info->bits - 1)) - 1};
  return (ax_interval){0, (int64_t)(((uint64_t)1 << info->bits) - 1)};
}

ax_interval ax_interval_of_literal(const ax_literal *literal, int64_t most) {
  const ax_dtype dtype = literal->type.dtype;
  const int64_t elems = ax_type_elems(&literal->type);
  ax_interval all = ax_interval_of_dtype(dtype);
  for (int64_t e = 0; e < elems && elems <= most && ax_is_counted(dtype); e++) {
    const int64_t i = ax_number_load(dtype, literal->data, e).i;
    all = e == 0 ? (ax_interval){i, i} : ax_interval_hull(all, (ax_interval){i, i});
  }
  return all;
}

ax_interval ax_interval_of_iota(const ax_type *type) {
  const ax_interval dtype = ax_interval_of_dtype(type->dtype);
  ax_interval all = {0, 0};
  for (uint32_t d = 0; d < type->rank; d++) all = ax_interval_hull(all, (ax_interval){0, type->dims[d] - 1});
  return ax_interval_is_within(all, dtype) ? all : dtype;
}

static bool add(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }

bool ax_interval_sum(ax_interval a, ax_interval b, ax_interval *out) { return add(a.low, b.low, &out->low) && add(a.high, b.high, &out->high); }

/* Of all four products of the ends. */
bool ax_interval_product(ax_interval a, ax_interval b, ax_interval *out) {
  int64_t ends[4] = {0};
  const bool whole = ax_mul_i64(a.low, b.low, &ends[0]) && ax_mul_i64(a.low, b.high, &ends[1]) &&
                     ax_mul_i64(a.high, b.low, &ends[2]) && ax_mul_i64(a.high, b.high, &ends[3]);
  *out = (ax_interval){ends[0], ends[0]};
  for (uint32_t k = 1; k < 4; k++) *out = ax_interval_hull(*out, (ax_interval){ends[k], ends[k]});
  return whole;
}

static ax_interval fitting(bool whole, ax_interval range, ax_dtype dtype) {
  const ax_interval all = ax_interval_of_dtype(dtype);
  return whole && ax_interval_is_within(range, all) ? range : all;
}

static ax_interval sum(ax_interval a, ax_interval b, ax_dtype dtype) {
  ax_interval out = {0, 0};
  const bool whole = ax_interval_sum(a, b, &out);
  return fitting(whole, out, dtype);
}

static ax_interval negative(ax_interval a, ax_dtype dtype) {
  const bool whole = a.low != INT64_MIN && a.high != INT64_MIN;
  return fitting(whole, whole ? (ax_interval){-a.high, -a.low} : a, dtype);
}

static ax_interval difference(ax_interval a, ax_interval b, ax_dtype dtype) {
  ax_interval out = {0, 0};
  const bool whole = b.low != INT64_MIN && b.high != INT64_MIN && add(a.low, -b.high, &out.low) && add(a.high, -b.low, &out.high);
  return fitting(whole, out, dtype);
}

static ax_interval product(ax_interval a, ax_interval b, ax_dtype dtype) {
  ax_interval out;
  const bool whole = ax_interval_product(a, b, &out);
  return fitting(whole, out, dtype);
}

/* Quotients are truncated, so they grow with the dividend, and go towards 0 as the divisor grows, which is positive. */
static ax_interval quotient(ax_interval a, ax_interval b, ax_dtype dtype) {
  if (b.low <= 0 || b.high < b.low) return ax_interval_of_dtype(dtype);
  return ax_interval_hull((ax_interval){a.low / b.low, a.high / b.low}, (ax_interval){a.low / b.high, a.high / b.high});
}

/* A rest has the sign of the dividend, and is nearer to 0 than the divisor and no farther than the dividend. */
static ax_interval rest(ax_interval a, ax_interval b, ax_dtype dtype) {
  if (b.low <= 0 || b.high < b.low) return ax_interval_of_dtype(dtype);
  if (ax_interval_is_one(a) && ax_interval_is_one(b)) return (ax_interval){a.low % b.low, a.low % b.low};
  const int64_t most = b.high - 1;
  return (ax_interval){a.low >= 0 ? 0 : a.low < -most ? -most : a.low, a.high <= 0 ? 0 : a.high > most ? most : a.high};
}

static ax_interval both(ax_interval a, ax_interval b, ax_dtype dtype) {
  if (a.low < 0 && b.low < 0) return ax_interval_of_dtype(dtype);
  const int64_t from_a = a.low >= 0 ? a.high : INT64_MAX, from_b = b.low >= 0 ? b.high : INT64_MAX;
  if (ax_interval_is_one(a) && ax_interval_is_one(b)) return (ax_interval){a.low & b.low, a.low & b.low};
  return (ax_interval){0, from_a < from_b ? from_a : from_b};
}

static ax_interval truth(bool always, bool never) { return (ax_interval){always, !never}; }

static ax_interval compared(const ax_prim *prim, ax_interval a, ax_interval b) {
  const bool apart = a.high < b.low || b.high < a.low, one = ax_interval_is_one(a) && ax_interval_is_one(b) && a.low == b.low;
  if (prim == &ax_prim_eq) return truth(one, apart);
  if (prim == &ax_prim_ne) return truth(apart, one);
  if (prim == &ax_prim_lt) return truth(a.high < b.low, a.low >= b.high);
  if (prim == &ax_prim_le) return truth(a.high <= b.low, a.low > b.high);
  if (prim == &ax_prim_gt) return truth(a.low > b.high, a.high <= b.low);
  return truth(a.low >= b.high, a.high < b.low);
}

static bool is_comparison(const ax_prim *prim) {
  return prim == &ax_prim_eq || prim == &ax_prim_ne || prim == &ax_prim_lt || prim == &ax_prim_le || prim == &ax_prim_gt ||
         prim == &ax_prim_ge;
}

static ax_interval of_pair(const ax_prim *prim, ax_interval a, ax_interval b, ax_dtype dtype) {
  const ax_interval all = ax_interval_of_dtype(dtype);
  const bool logical = dtype == AX_BOOL;
  if (prim == &ax_prim_add && !logical) return sum(a, b, dtype);
  if (prim == &ax_prim_sub && !logical) return difference(a, b, dtype);
  if (prim == &ax_prim_mul && !logical) return product(a, b, dtype);
  if (prim == &ax_prim_max) return (ax_interval){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
  if (prim == &ax_prim_min) return (ax_interval){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
  if (prim == &ax_prim_div && !logical) return quotient(a, b, dtype);
  if (prim == &ax_prim_rem && !logical) return rest(a, b, dtype);
  if (prim == &ax_prim_and) return both(a, b, dtype);
  if (prim == &ax_prim_or && logical) return (ax_interval){a.low | b.low, a.high | b.high};
  return all;
}

/* The elements are those of the operands from the first to the last that counts, each somewhere. */
static bool moves(const ax_prim *prim, uint32_t in_count, uint32_t *first, uint32_t *last) {
  static const ax_prim *const of_one[] = {
      &ax_prim_reshape, &ax_prim_transpose,     &ax_prim_broadcast_in_dim, &ax_prim_slice,
      &ax_prim_rev,     &ax_prim_dynamic_slice, &ax_prim_stop_gradient,    &ax_prim_optimization_barrier};
  *first = *last = 0;
  for (uint32_t k = 0; k < AX_COUNT(of_one); k++)
    if (prim == of_one[k]) return prim != &ax_prim_optimization_barrier || in_count == 1;
  if (prim == &ax_prim_select_n) *first = 1;
  if (prim == &ax_prim_select_n || prim == &ax_prim_concatenate) *last = in_count - 1;
  if (prim == &ax_prim_dynamic_update_slice || prim == &ax_prim_pad) *last = 1;
  return *last > 0;
}

bool ax_is_elementwise(const ax_eqn *eqn) {
  static const ax_prim *const more[] = {&ax_prim_neg,
                                        &ax_prim_not,
                                        &ax_prim_or,
                                        &ax_prim_xor,
                                        &ax_prim_abs,
                                        &ax_prim_sign,
                                        &ax_prim_select_n,
                                        &ax_prim_convert_element_type,
                                        &ax_prim_stop_gradient,
                                        &ax_prim_add,
                                        &ax_prim_sub,
                                        &ax_prim_mul,
                                        &ax_prim_max,
                                        &ax_prim_min,
                                        &ax_prim_div,
                                        &ax_prim_rem,
                                        &ax_prim_and,
                                        &ax_prim_shift_left,
                                        &ax_prim_shift_right_arithmetic,
                                        &ax_prim_shift_right_logical};
  for (uint32_t k = 0; k < AX_COUNT(more); k++)
    if (eqn->prim == more[k]) return true;
  return is_comparison(eqn->prim);
}

ax_interval ax_interval_of_eqn(const ax_eqn *eqn, const ax_dtype *in_dtypes, const ax_interval *in, ax_dtype out) {
  const ax_prim *prim = eqn->prim;
  uint32_t first, last;
  if (eqn->in_count == 0 || !ax_is_counted(out)) return ax_interval_of_dtype(out);
  if (is_comparison(prim)) {
    for (uint32_t i = 0; i < 2; i++)
      if (!ax_is_counted(in_dtypes[i])) return ax_interval_of_dtype(out);
    return compared(prim, in[0], in[1]);
  }
  if (moves(prim, eqn->in_count, &first, &last)) {
    ax_interval all = in[first];
    for (uint32_t i = first + 1; i <= last && i < eqn->in_count; i++) all = ax_interval_hull(all, in[i]);
    return all;
  }
  if (!ax_is_counted(in_dtypes[0])) return ax_interval_of_dtype(out);
  if (prim == &ax_prim_convert_element_type)
    return out != AX_BOOL ? fitting(true, in[0], out) : truth(in[0].low > 0 || in[0].high < 0, in[0].low == 0 && in[0].high == 0);
  if (prim == &ax_prim_neg && out != AX_BOOL) return negative(in[0], out);
  if (prim == &ax_prim_not && out == AX_BOOL) return (ax_interval){1 - in[0].high, 1 - in[0].low};
  if (prim == &ax_prim_reduce_max || prim == &ax_prim_reduce_min) return ax_interval_of_dtype(out);
  return eqn->in_count == 2 ? of_pair(prim, in[0], in[1], out) : ax_interval_of_dtype(out);
}
