/* Draws of places and orders: which of several, with and without putting back, and all in another order. */
#include <math.h>

#include "axle/numpy.h"
#include "ir/dtype.h"
#include "random/draw.h"

/* --- Orders --- */

/* Keys at random are put in order along the axis, and x with them; as often as makes equal keys among so many unlikely. */
static ax_value shuffled(ax_value key, ax_value x, int64_t axis) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const double elems = (double)ax_type_elems(&type);
  const int rounds = (int)ceil(3 * log(elems > 1 ? elems : 1) / log(4294967295.0));
  for (int i = 0; i < rounds && !ax_failed(); i++) {
    const ax_value keys = ax_keys_split(key, 1, (int64_t[]){2});
    ax_value both[] = {ax_keys_bits(ax_at(keys, 1, 0), AX_U32, type.rank, type.dims), x};
    (ax_sort_together)(2, both, axis, 1, 2, both);
    key = ax_at(keys, 0, 0);
    x = both[1];
  }
  return x;
}

/* 0, 1 .. n - 1 */
static ax_value places(int64_t n) { return ax_iota(AX_S32, AX_LIST(1, &n), 0); }

/* How many a number says that there are: at most what s32 counts. */
static bool count_of(const char *name, ax_value number, int64_t *count) {
  if (!ax_number_bits(name, number, AX_S32, count)) return false;
  *count = (int32_t)*count;
  if (*count < 0) ax_reject_as(name, "there cannot be %lld of anything", (long long)*count);
  return !ax_failed();
}

/* x as an array with a dimension `axis`; a number n is the places below n. */
static bool take_from(const char *name, ax_value *x, int64_t *axis, ax_type *type) {
  int64_t count;
  if (ax_is_number(*x)) {
    if (!count_of(name, *x, &count)) return false;
    *x = places(count);
    *axis = 0;
  }
  return ax_operand(name, *x, type) && ax_dimension(name, "the axis", axis, type->rank);
}

static ax_value permuted(ax_value key, ax_value x, int64_t axis, bool independent) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  return independent || type.rank == 1 ? shuffled(key, x, axis) : ax_take(x, shuffled(key, places(type.dims[axis]), 0), axis);
}

ax_value ax_random_permutation(ax_value key, ax_value x, int64_t axis, bool independent) {
  static const char name[] = "random_permutation";
  ax_type type;
  if (!ax_key_operand(name, &key, NULL) || !take_from(name, &x, &axis, &type)) return ax_poison;
  return permuted(key, x, axis, independent);
}

/* --- Categories --- */

/* Dimensions that the user asked for before those of the logits; the rest must be the logits' without the axis. */
static bool split_shape(const ax_draw *draw, const ax_type *logits, int64_t axis, uint32_t *before) {
  const uint32_t batch = logits->rank - 1;
  *before = draw->shape.count - batch;
  for (uint32_t d = 0; d < batch && draw->shape.count >= batch; d++)
    if (draw->shape.v[*before + d] != logits->dims[d + (d >= axis)]) *before = UINT32_MAX;
  if (draw->shape.count >= batch && *before != UINT32_MAX) return true;
  const ax_type shape = ax_array_type(AX_S32, AX_LIST(draw->shape.count, draw->shape.v));
  ax_reject_as(draw->name, "the shape of %s does not end in that of the logits, %s, without dimension %lld", ax_operand_string(&shape),
               ax_operand_string(logits), (long long)axis);
  return false;
}

/* The greatest of the logits with Gumbel noise. */
static ax_value with_replacement(const ax_draw *draw, ax_value logits, const ax_type *type, int64_t axis, uint32_t before, ax_random_mode mode) {
  ax_draw noise = ax_draw_as(draw, type->dtype);
  noise.shape.count = before;
  for (uint32_t d = 0; d < type->rank && noise.shape.count < AX_MAX_RANK; d++) noise.shape.v[noise.shape.count++] = type->dims[d];
  if (before + type->rank > AX_MAX_RANK) return ax_reject_as(draw->name, "the rank would exceed %d", AX_MAX_RANK);
  return ax_argmax(ax_add(ax_draw_gumbel(&noise, mode), logits), axis - (int64_t)type->rank, AX_S32);
}

/* The k greatest of them, all different. */
static ax_value without_replacement(const ax_draw *draw, ax_value logits, const ax_type *type, int64_t axis, uint32_t before,
                                    ax_random_mode mode) {
  ax_draw noise = ax_draw_as(draw, type->dtype);
  noise.shape = (ax_dims){.count = type->rank};
  for (uint32_t d = 0; d < type->rank; d++) noise.shape.v[d] = type->dims[d];
  int64_t k = 1;
  for (uint32_t d = 0; d < before; d++) k *= draw->shape.v[d];
  if (k > type->dims[axis])
    return ax_reject_as(draw->name, "%lld of %lld cannot be drawn without replacement", (long long)k, (long long)type->dims[axis]);
  ax_value best[2];
  (ax_top_k)(ax_moveaxis(ax_add(logits, ax_draw_gumbel(&noise, mode)), axis, -1), k, 2, best);
  return (ax_reshape)(ax_moveaxis(best[1], -1, 0), draw->shape.count, draw->shape.v);
}

ax_value (ax_random_categorical)(ax_value key, ax_value logits, int64_t axis, uint32_t rank, const int64_t *dims, bool replace,
                                 ax_random_mode mode) {
  static const char name[] = "random_categorical";
  ax_type type;
  ax_draw draw;
  uint32_t before;
  if (!ax_operand(name, logits, &type) || !ax_dimension(name, "the axis", &axis, type.rank)) return ax_poison;
  if (!ax_draw_of(name, key, AX_DRAW_FLOAT, type.dtype, rank, dims, &draw)) return ax_poison;
  if (mode > AX_RANDOM_HIGHEST) return ax_reject_as(name, "there is no mode %d", (int)mode);
  if (type.dims[axis] == 0) return ax_reject_as(name, "the logits are %s: there is no category", ax_operand_string(&type));
  if (rank == 0)
    for (uint32_t d = 0; d < type.rank; d++)
      if (d != axis) draw.shape.v[draw.shape.count++] = type.dims[d];
  if (!split_shape(&draw, &type, axis, &before)) return ax_poison;
  return replace ? with_replacement(&draw, logits, &type, axis, before, mode) : without_replacement(&draw, logits, &type, axis, before, mode);
}

/* --- Choices --- */

/* Places of the draw's shape among n, by probabilities p: T[n]. */
static ax_value weighted(const ax_draw *draw, ax_value p, int64_t n, int64_t count, bool replace, ax_random_mode mode) {
  if (replace) {
    const ax_value sums = ax_cumsum(p, 0, false), all = ax_at(sums, -1, 0);
    return ax_searchsorted(sums, ax_mul(all, ax_sub(ax_real(1), ax_draw_unit(draw))), false);
  }
  ax_draw noise = *draw;
  ax_value best[2];
  noise.shape = (ax_dims){.count = 1, .v = {n}};
  (ax_top_k)(ax_add(ax_draw_gumbel(&noise, mode), ax_log(p)), count, 2, best);
  return best[1];
}

static bool check_choice(const char *name, const ax_type *type, int64_t axis, int64_t count, bool replace, ax_value p, ax_type *of_p) {
  const int64_t n = type->dims[axis];
  if (n == 0) ax_reject_as(name, "%s has nothing to choose from", ax_operand_string(type));
  else if (!replace && count > n) ax_reject_as(name, "%lld of %lld cannot be drawn without replacement", (long long)count, (long long)n);
  if (ax_failed() || (p.trace == 0 && p.id == 0)) return !ax_failed();
  if (!ax_operand(name, p, of_p)) return false;
  if (of_p->rank != 1 || of_p->dims[0] != n || !ax_is_float(of_p->dtype))
    ax_reject_as(name, "the probabilities are %s; they must be floats, one for each of %lld", ax_operand_string(of_p), (long long)n);
  return !ax_failed();
}

/* Parts that were taken along the axis, which becomes the dimensions of the shape. */
static ax_value parts_at(ax_value taken, const ax_type *type, int64_t axis, const ax_dims *shape) {
  ax_dims dims = {.count = 0};
  for (uint32_t d = 0; d < type->rank; d++) {
    if (d == axis)
      for (uint32_t i = 0; i < shape->count && dims.count < AX_MAX_RANK; i++) dims.v[dims.count++] = shape->v[i];
    else if (dims.count < AX_MAX_RANK) dims.v[dims.count++] = type->dims[d];
  }
  return (ax_reshape)(taken, dims.count, dims.v);
}

ax_value (ax_random_choice)(ax_value key, ax_value x, uint32_t rank, const int64_t *dims, bool replace, ax_value p, int64_t axis,
                            ax_random_mode mode) {
  static const char name[] = "random_choice";
  ax_type type, of_p = {.dtype = AX_F32};
  ax_draw draw;
  const bool numbers = ax_is_number(x), given = p.trace != 0 || p.id != 0;
  if (!take_from(name, &x, &axis, &type)) return ax_poison;
  if (!ax_draw_of(name, key, AX_DRAW_NUMERIC, AX_S32, rank, dims, &draw)) return ax_poison;
  if (type.rank - 1 + rank > AX_MAX_RANK) return ax_reject_as(name, "the rank would exceed %d", AX_MAX_RANK);
  const ax_type shape = ax_array_type(AX_S32, AX_LIST(rank, draw.shape.v));
  const int64_t n = type.dims[axis], count = ax_type_elems(&shape);
  if (!check_choice(name, &type, axis, count, replace, p, &of_p)) return ax_poison;
  ax_value at;
  if (!given && !replace)
    return parts_at(ax_slice_in_dim(permuted(draw.key, x, axis, false), 0, count, 1, axis), &type, axis, &draw.shape);
  draw.dtype = of_p.dtype;
  at = given ? weighted(&draw, p, n, count, replace, mode) : (ax_random_randint)(draw.key, AX_S32, rank, dims, ax_integer(0), ax_integer(n));
  return numbers ? (ax_reshape)(at, rank, dims) : parts_at(ax_take(x, at, axis), &type, axis, &draw.shape);
}
