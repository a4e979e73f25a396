/* Draws that are all as likely: floats between bounds, integers between bounds, true and false. */
#include "ir/dtype.h"
#include "ir/number.h"
#include "random/draw.h"

/* --- Floats: random bits become the fraction of a number from 1 to 2, less 1 --- */

/* How many bits are drawn for a float: as many as it has, but 8 where its fraction has fewer than those. */
static uint32_t drawn_bits(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  return info->fraction < 8 ? 8 : (uint32_t)info->bits;
}

static ax_dtype unsigned_of(uint32_t bits) { return bits == 8 ? AX_U8 : bits == 16 ? AX_U16 : bits == 32 ? AX_U32 : AX_U64; }

static uint64_t bits_of_one(ax_dtype dtype) {
  uint64_t bits = 0;
  ax_number_store(dtype, &bits, 0, (ax_number){.f = 1});
  return bits;
}

ax_value ax_draw_unit(const ax_draw *draw) {
  const uint32_t drawn = drawn_bits(draw->dtype);
  const ax_dtype holds = unsigned_of((uint32_t)ax_dtype_get(draw->dtype)->bits);
  ax_value bits = ax_convert_element_type(ax_draw_bits(draw, unsigned_of(drawn)), holds);
  bits = ax_shift_right_logical(bits, ax_integer((int64_t)drawn - ax_dtype_get(draw->dtype)->fraction));
  bits = ax_or(bits, ax_unsigned(bits_of_one(draw->dtype)));
  return ax_sub(ax_bitcast_convert_type(bits, draw->dtype), ax_real(1));
}

static bool is_number_of(ax_value x, double value) { return ax_is_number(x) && ax_number_real(x) == value; }

ax_value ax_draw_uniform(const ax_draw *draw, ax_value minval, ax_value maxval) {
  const ax_value unit = ax_draw_unit(draw);
  if (is_number_of(minval, 0) && is_number_of(maxval, 1)) return unit;
  minval = ax_as(draw->name, minval, draw->dtype), maxval = ax_as(draw->name, maxval, draw->dtype);
  return ax_max(minval, ax_add(ax_mul(unit, ax_sub(maxval, minval)), minval));
}

ax_value (ax_random_uniform)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value minval, ax_value maxval) {
  ax_draw draw;
  const bool unit = is_number_of(minval, 0) && is_number_of(maxval, 1);
  ax_value bounds[] = {minval, maxval};
  if (!ax_draw_of("random_uniform", key, AX_DRAW_FLOAT, dtype, rank, dims, &draw)) return ax_poison;
  if (unit) return ax_draw_unit(&draw);
  return ax_draw_with(&draw, dtype, 2, bounds) ? ax_draw_uniform(&draw, bounds[0], bounds[1]) : ax_poison;
}

/* --- Integers --- */

static const char RANDINT[] = "random_randint";

static uint64_t greatest_of(ax_dtype dtype) {
  const uint64_t all = UINT64_MAX >> (64 - ax_dtype_get(dtype)->bits);
  return ax_dtype_get(dtype)->kind == AX_KIND_UNSIGNED ? all : all >> 1;
}

/* Says that a bound is the number one beyond the dtype's greatest, which bounds from above everything that it has. */
static bool is_end_of(ax_value bound, ax_dtype dtype) {
  int64_t bits;
  const uint64_t greatest = greatest_of(dtype);
  if (!ax_is_number(bound) || ax_number_real(bound) != (double)greatest + 1) return false;
  if (greatest == UINT64_MAX) return false; /* no number */
  return ax_number_bits(RANDINT, bound, AX_U64, &bits) && (uint64_t)bits == greatest + 1;
}

typedef struct bounds {
  ax_value min, max;
  bool ends; /* max is one beyond, and stands for the greatest number */
} bounds;

/* The offset from the least of `span` numbers: two draws' worth of bits, of which the upper ones count with their weight modulo the
   span. */
static ax_value offset_of(const ax_draw *draw, ax_value span) {
  const ax_dtype type = unsigned_of((uint32_t)ax_dtype_get(draw->dtype)->bits);
  const ax_value keys = ax_draw_keys(draw, 2);
  const ax_draw first = ax_draw_from(draw, keys, 0), second = ax_draw_from(draw, keys, 1);
  const ax_value high = ax_rem(ax_draw_bits(&first, type), span), low = ax_rem(ax_draw_bits(&second, type), span);
  const int64_t half = (int64_t)1 << (ax_dtype_get(draw->dtype)->bits / 2);
  const ax_value once = ax_rem(ax_full_like(span, (double)half), span);
  return ax_rem(ax_add(ax_mul(high, ax_rem(ax_mul(once, once), span)), low), span);
}

/* As jax.random.randint: of an empty range the result is its first number. */
static ax_value randint(const ax_draw *draw, const bounds *b) {
  const ax_dtype type = unsigned_of((uint32_t)ax_dtype_get(draw->dtype)->bits);
  ax_value span = ax_convert_element_type(ax_sub(b->max, b->min), type);
  const ax_value some = ax_gt(b->max, b->min);
  if (b->ends) span = ax_where(some, ax_add(span, ax_integer(1)), span);
  span = ax_where(some, span, ax_integer(1));
  return ax_add(b->min, ax_convert_element_type(offset_of(draw, span), draw->dtype));
}

/* A bound, a number or an array of the dtype, as an array of `as`. */
static bool take_bound(ax_value *bound, ax_dtype dtype, ax_dtype as) {
  ax_type type;
  *bound = ax_as(RANDINT, *bound, dtype);
  if (ax_failed() || !ax_operand(RANDINT, *bound, &type)) return false;
  if (type.dtype != dtype) ax_reject_as(RANDINT, "a bound is %s; it must be of %s", ax_operand_string(&type), ax_dtype_name(dtype));
  *bound = ax_convert_element_type(*bound, as);
  return !ax_failed();
}

/* Dtypes of fewer than 32 bits are drawn in s32. */
ax_value (ax_random_randint)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value minval, ax_value maxval) {
  ax_draw draw;
  if (!ax_draw_of(RANDINT, key, AX_DRAW_INTEGER, dtype, rank, dims, &draw)) return ax_poison;
  const bool is_short = ax_dtype_get(dtype)->bits < 32, ends = is_end_of(maxval, dtype);
  const int64_t greatest = (int64_t)greatest_of(dtype);
  draw.dtype = is_short ? AX_S32 : dtype;
  ax_value both[] = {minval, ends ? ax_full_i64(draw.dtype, AX_LIST(0, NULL), is_short ? greatest + 1 : greatest) : maxval};
  if (!take_bound(&both[0], dtype, draw.dtype) || (!ends && !take_bound(&both[1], dtype, draw.dtype))) return ax_poison;
  if (!ax_draw_with(&draw, draw.dtype, 2, both)) return ax_poison;
  const bounds b = {both[0], both[1], ends && !is_short};
  return ax_convert_element_type(randint(&draw, &b), dtype);
}

/* --- True and false --- */

static ax_value bernoulli(const ax_draw *draw, ax_value p, bool high) {
  if (!high) return ax_lt(ax_draw_unit(draw), p);
  const ax_draw two = ax_draw_wider(draw, 2, 0);
  const ax_value u = ax_draw_unit(&two);
  return ax_lt(ax_mul(ax_at(u, 1, 0), ax_real(ax_dtype_epsilon(draw->dtype))), ax_sub(p, ax_at(u, 0, 0)));
}

ax_value (ax_random_bernoulli)(ax_value key, uint32_t rank, const int64_t *dims, ax_value p, ax_random_mode mode) {
  static const char name[] = "random_bernoulli";
  ax_draw draw;
  ax_type type = {.dtype = AX_F32};
  if (mode != AX_RANDOM_LOW && mode != AX_RANDOM_HIGH) return ax_reject_as(name, "mode %d is neither low nor high", (int)mode);
  if (!ax_is_number(p) && !ax_operand(name, p, &type)) return ax_poison;
  if (!ax_draw_of(name, key, AX_DRAW_FLOAT, type.dtype, rank, dims, &draw) || !ax_draw_with(&draw, type.dtype, 1, &p)) return ax_poison;
  return bernoulli(&draw, p, mode == AX_RANDOM_HIGH);
}

ax_value ax_draw_signs(const ax_draw *draw) {
  const ax_draw of_floats = ax_draw_as(draw, ax_dtype_bytes(ax_part_dtype(draw->dtype)) == 8 ? AX_F64 : AX_F32);
  const ax_value heads = ax_lt(ax_draw_unit(&of_floats), ax_real(0.5));
  const ax_value twice = ax_mul(ax_convert_element_type(heads, draw->dtype), ax_integer(2));
  return ax_sub(twice, ax_integer(1));
}

ax_value (ax_random_rademacher)(ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_draw draw;
  if (!ax_draw_of("random_rademacher", key, AX_DRAW_NUMERIC, dtype, rank, dims, &draw)) return ax_poison;
  return ax_draw_signs(&draw);
}
