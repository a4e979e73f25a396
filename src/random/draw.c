/* Checks of draws, and draws of draws. */
#include "random/draw.h"

#include <math.h>
#include <string.h>

#include "ir/dtype.h"
#include "prim/prims.h"
#include "prim/shape.h"

static bool is_of_kind(ax_draw_kind kind, ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (ax_dtype_bytes(dtype) == 0 || info->bits < 8 || ax_is_key(dtype)) return false;
  if (ax_is_complex(dtype)) return kind == AX_DRAW_NUMERIC || kind == AX_DRAW_FLOAT_OR_COMPLEX;
  if (ax_is_float(dtype)) return kind != AX_DRAW_INTEGER && info->fraction > 0;
  return kind == AX_DRAW_INTEGER || kind == AX_DRAW_NUMERIC;
}

static bool is_shape(const char *name, uint32_t rank, const int64_t *dims, ax_dims *out) {
  *out = (ax_dims){.count = rank};
  if (rank > AX_MAX_RANK) ax_reject_as(name, "rank %u is above %d", rank, AX_MAX_RANK);
  else if (rank > 0 && dims == NULL) ax_reject_as(name, "no dimensions are given for rank %u", rank);
  for (uint32_t d = 0; d < rank && !ax_failed(); d++) {
    if (dims[d] < 0) ax_reject_as(name, "dimension %u is %lld", d, (long long)dims[d]);
    out->v[d] = dims[d];
  }
  return !ax_failed();
}

bool ax_draw_of(const char *name, ax_value key, ax_draw_kind kind, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_draw *out) {
  static const char *const wanted[] = {"a float of 8 bits at least, with a fraction", "an integer of 8 bits at least", "a number of 8 bits at least",
                                       "a float of 8 bits at least, with a fraction, or complex"};
  if (!ax_key_operand(name, &key, NULL)) return false;
  *out = (ax_draw){.name = name, .key = key, .dtype = dtype};
  if (!is_of_kind(kind, dtype)) ax_reject_as(name, "%s is no dtype for this draw; it must be %s", ax_dtype_name(dtype), wanted[kind]);
  return !ax_failed() && is_shape(name, rank, dims, &out->shape);
}

/* Whether an array of the type stretches to the shape. */
static bool stretches(const ax_type *from, const ax_dims *to) {
  if (from->rank > to->count) return false;
  for (uint32_t d = 0; d < from->rank; d++)
    if (from->dims[d] != 1 && from->dims[d] != to->v[to->count - from->rank + d]) return false;
  return true;
}

/* The shape to which those of all parameters broadcast. */
static bool shape_of(const char *name, uint32_t count, const ax_type *types, ax_dims *out) {
  *out = (ax_dims){.count = 0};
  for (uint32_t i = 0; i < count; i++) out->count = types[i].rank > out->count ? types[i].rank : out->count;
  for (uint32_t d = 0; d < out->count; d++) {
    out->v[d] = 1;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t missing = out->count - types[i].rank;
      if (d >= missing && types[i].dims[d - missing] != 1) out->v[d] = types[i].dims[d - missing];
    }
  }
  const ax_type shape = ax_array_type(types[0].dtype, AX_LIST(out->count, out->v));
  for (uint32_t i = 0; i < count && !ax_failed(); i++)
    if (!stretches(&types[i], out))
      ax_reject_as(name, "parameter %u is %s, which does not broadcast to %s, the shape of the others", i, ax_operand_string(&types[i]),
                   ax_operand_string(&shape));
  return !ax_failed();
}

bool ax_draw_shape(ax_draw *draw, uint32_t count, const ax_type *types) {
  ax_dims all;
  if (!shape_of(draw->name, count, types, &all)) return false;
  if (draw->shape.count == 0) draw->shape = all;
  const ax_type result = ax_array_type(draw->dtype, AX_LIST(draw->shape.count, draw->shape.v));
  for (uint32_t i = 0; i < count && !ax_failed(); i++)
    if (!stretches(&types[i], &draw->shape))
      ax_reject_as(draw->name, "parameter %u is %s, which does not broadcast to %s", i, ax_operand_string(&types[i]), ax_operand_string(&result));
  return !ax_failed();
}

bool ax_draw_with(ax_draw *draw, ax_dtype dtype, uint32_t count, ax_value *parameters) {
  ax_type types[4];
  for (uint32_t i = 0; i < count && !ax_failed(); i++) {
    parameters[i] = ax_as(draw->name, parameters[i], dtype);
    if (!ax_operand(draw->name, parameters[i], &types[i])) return false;
    if (types[i].dtype != dtype)
      ax_reject_as(draw->name, "parameter %u is %s; it must be of %s", i, ax_operand_string(&types[i]), ax_dtype_name(dtype));
  }
  return !ax_failed() && (count == 0 || ax_draw_shape(draw, count, types));
}

ax_value ax_draw_spread(const ax_draw *draw, ax_value parameter) {
  return (ax_broadcast_to)(parameter, draw->shape.count, draw->shape.v);
}

ax_value ax_draw_call(const char *name, ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, uint32_t count,
                      const ax_value *parameters, ax_distribution_function function) {
  ax_draw draw;
  ax_value made[4] = {{0}};
  if (count > 0) memcpy(made, parameters, count * sizeof made[0]);
  if (!ax_draw_of(name, key, AX_DRAW_FLOAT, dtype, rank, dims, &draw) || !ax_draw_with(&draw, dtype, count, made)) return ax_poison;
  return function(&draw, made);
}

/* --- Other draws --- */

ax_draw ax_draw_from(const ax_draw *draw, ax_value keys, int64_t k) {
  ax_draw made = *draw;
  made.key = ax_at(keys, k, -2);
  return made;
}

ax_draw ax_draw_as(const ax_draw *draw, ax_dtype dtype) {
  ax_draw made = *draw;
  made.dtype = dtype;
  return made;
}

ax_draw ax_draw_wider(const ax_draw *draw, int64_t first, int64_t last) {
  ax_draw made = *draw;
  ax_dims *shape = &made.shape;
  if (first > 0 && ax_dims_insert(&ax_prim_random_bits, shape, 0, first) && last == 0) return made;
  if (last > 0) (void)ax_dims_insert(&ax_prim_random_bits, shape, shape->count, last);
  return made;
}

ax_value ax_draw_keys(const ax_draw *draw, int64_t n) { return ax_keys_split(draw->key, 1, &n); }

ax_value ax_draw_bits(const ax_draw *draw, ax_dtype dtype) { return ax_keys_bits(draw->key, dtype, draw->shape.count, draw->shape.v); }

/* --- Numbers of a float dtype --- */

double ax_dtype_epsilon(ax_dtype dtype) { return ldexp(1, -(int)ax_dtype_get(dtype)->fraction); }
double ax_dtype_tiny(ax_dtype dtype) { return ldexp(1, 1 - (int)ax_dtype_get(dtype)->bias); }
