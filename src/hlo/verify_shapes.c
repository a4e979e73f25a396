#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dtype.h"

/* --- Constants --- */

ax_status ax_hlo_check_constant(const ax_verified *v) {
  const ax_hlo_attribute *value = ax_hlo_find(v->op, "value");
  const ax_hlo_value_type *out = ax_verified_out(v, 0);
  const bool like = v->op->operand_count > 0; /* chlo.constant_like: one number */
  if (!like && out->dynamic) return ax_error(AX_INVALID_ARGUMENT, "a constant must have a shape that is known");
  if (value == NULL || value->type == NULL || (value->kind != AX_HLO_ELEMENTS && !like)) return AX_OK;
  const bool stored = out->quantized != NULL && value->type->quantized == NULL && value->type->dtype == out->quantized->storage;
  if ((!stored && !ax_hlo_elements_fit(value->type, out)) ||
      (!like && (value->type->dynamic || !ax_hlo_shapes_fit(value->type, out))))
    return ax_error(AX_INVALID_ARGUMENT, "its value is %.*s, and the result %.*s", ax_hlo_length(value->type->text),
                    value->type->text.start, ax_hlo_length(out->text), out->text.start);
  return AX_OK;
}

ax_status ax_hlo_check_iota(const ax_verified *v) {
  int64_t dimension;
  const ax_hlo_value_type *out = ax_verified_out(v, 0);
  AX_TRY(ax_hlo_integer(v->op, "iota_dimension", &dimension));
  if (!ax_hlo_ranked(out)) return AX_OK;
  if (out->rank == 0) return ax_error(AX_INVALID_ARGUMENT, "the result must have a dimension to count along");
  if (v->op->operand_count == 0 && out->dynamic) return ax_error(AX_INVALID_ARGUMENT, "the result must have a shape that is known");
  if (dimension < out->rank) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "iota_dimension is %" PRId64 ", which goes beyond the result's rank, %u", dimension,
                  out->rank);
}

/* --- Shapes as operands --- */

/* Operand number i says the extents of result 0: of one dimension, and where they are constants as the result has them. */
static ax_status check_extents(const ax_verified *v, uint32_t i) {
  char text[256];
  const ax_hlo_value_type *shape = ax_verified_in(v, i), *out = ax_verified_out(v, 0);
  ax_dims dims;
  if (!ax_hlo_ranked(shape)) return AX_OK;
  if (shape->rank != 1 || shape->dynamic)
    return ax_error(AX_INVALID_ARGUMENT, "operand %u must have one dimension of a known extent", i);
  if (!ax_hlo_ranked(out)) return AX_OK;
  if (shape->dims[0] != out->rank)
    return ax_error(AX_INVALID_ARGUMENT, "operand %u has %" PRId64 " extents, and the result the rank %u", i, shape->dims[0],
                    out->rank);
  if (!ax_hlo_known_list(v, i, &dims)) return AX_OK;
  bool fit = dims.count == out->rank;
  for (uint32_t d = 0; d < out->rank; d++)
    fit = fit && (out->dims[d] == AX_HLO_DYNAMIC || out->dims[d] == dims.v[d]) && dims.v[d] >= 0;
  if (fit) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "operand %u says the shape %s, which the result, %.*s, does not have", i,
                  ax_hlo_dims_text(&dims, text), ax_hlo_length(out->text), out->text.start);
}

ax_status ax_hlo_check_dynamic_iota(const ax_verified *v) {
  AX_TRY(check_extents(v, 0));
  return ax_hlo_check_iota(v);
}

static int64_t count_of(const ax_hlo_value_type *type) { /* AX_HLO_DYNAMIC: not known */
  int64_t count = 1;
  if (!ax_hlo_ranked(type) || type->dynamic) return AX_HLO_DYNAMIC;
  for (uint32_t d = 0; d < type->rank; d++)
    if (__builtin_mul_overflow(count, type->dims[d], &count)) return AX_HLO_DYNAMIC;
  return count;
}

static ax_status check_sizes(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  if (ax_hlo_extents_fit(count_of(in), count_of(out))) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the operand has %" PRId64 " elements, and the result %" PRId64, count_of(in),
                  count_of(out));
}

ax_status ax_hlo_check_dynamic_reshape(const ax_verified *v) {
  const int64_t count = count_of(ax_verified_in(v, 0));
  ax_dims dims;
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  AX_TRY(check_extents(v, 1));
  if (ax_hlo_known_list(v, 1, &dims) && count >= 0) {
    int64_t said = 1;
    bool known = true;
    for (uint32_t d = 0; d < dims.count && known; d++) known = !__builtin_mul_overflow(said, dims.v[d], &said);
    if (known && said != count)
      return ax_error(AX_INVALID_ARGUMENT, "the operand has %" PRId64 " elements, and operand 1 says a shape of %" PRId64, count,
                      said);
  }
  return check_sizes(v);
}

/* --- Reshaping --- */

/* A dimension with a scale for each index: as much lies before it in the result as in the operand. */
static ax_status check_reshaped_scales(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  const ax_hlo_quantized *p = in->quantized, *q = out->quantized;
  int64_t before = 1, behind = 1;
  if (p == NULL || q == NULL) return AX_OK;
  if (p->count != q->count || (p->axis < 0) != (q->axis < 0) || memcmp(p->scales, q->scales, p->count * sizeof p->scales[0]) != 0 ||
      memcmp(p->zeros, q->zeros, p->count * sizeof p->zeros[0]) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the operand and the result must have the same scales and zero points");
  if (p->axis < 0 || !ax_hlo_ranked(in) || !ax_hlo_ranked(out) || in->dynamic || out->dynamic) return AX_OK;
  for (int64_t d = 0; d < p->axis; d++) before *= in->dims[d];
  for (int64_t d = 0; d < q->axis; d++) behind *= out->dims[d];
  if (before == behind) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT,
                  "%" PRId64 " indices lie before the dimension of scales of the operand, and %" PRId64
                  " before that of the result",
                  before, behind);
}

/* A result whose extents are known, or one of which has a bound. */
static ax_status check_bounded(const ax_hlo_value_type *out) {
  uint32_t open = 0;
  for (uint32_t d = 0; out->ranked && d < out->rank; d++) open += out->dims[d] == AX_HLO_DYNAMIC;
  if (open == 0 || (open == 1 && out->encoding != NULL)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the result must have a shape that is known, but for one extent that has a bound");
}

ax_status ax_hlo_check_reshape(const ax_verified *v) {
  AX_TRY(check_bounded(ax_verified_out(v, 0)));
  AX_TRY(check_sizes(v));
  return check_reshaped_scales(v);
}

static uint32_t bits_of(const ax_hlo_value_type *type) {
  const ax_dtype_info *info = ax_dtype_get(type->dtype);
  return info->kind == AX_KIND_COMPLEX ? 8 * (uint32_t)info->bytes : info->bits;
}

ax_status ax_hlo_check_bitcast(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  if (!in->element_known || !out->element_known) return AX_OK;
  const bool from = ax_is_complex(in->dtype), to = ax_is_complex(out->dtype);
  if (from != to) return ax_error(AX_INVALID_ARGUMENT, "it does not convert between real and complex numbers");
  if (!ax_hlo_ranked(in) || !ax_hlo_ranked(out)) return AX_OK;
  const uint32_t a = bits_of(in), b = bits_of(out);
  const ax_hlo_value_type *small = a < b ? in : out, *large = a < b ? out : in;
  const uint32_t less = a < b ? a : b, more = a < b ? b : a, extra = a == b ? 0 : 1;
  if (small->rank != large->rank + extra)
    return ax_error(AX_INVALID_ARGUMENT, "elements of %u bits must have %u dimensions, and have %u", less, large->rank + extra,
                    small->rank);
  for (uint32_t d = 0; d < large->rank; d++)
    if (!ax_hlo_extents_fit(small->dims[d], large->dims[d]))
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u must have the same extent in the operand and in the result", d);
  if (extra == 0 || ax_hlo_extents_fit(small->dims[large->rank] * less, more) || small->dims[large->rank] == AX_HLO_DYNAMIC)
    return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%" PRId64 " elements of %u bits do not make one of %u", small->dims[large->rank], less,
                  more);
}

/* --- Broadcasting --- */

ax_status ax_hlo_check_broadcast(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  ax_dims sizes, dims;
  AX_TRY(ax_hlo_integers(v->op, "broadcast_sizes", &sizes));
  for (uint32_t d = 0; d < sizes.count; d++)
    if (sizes.v[d] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "broadcast_sizes has %" PRId64 ", and must have no negative number", sizes.v[d]);
  if (!ax_hlo_ranked(in) || sizes.count + in->rank > AX_MAX_RANK) return AX_OK;
  dims = sizes;
  for (uint32_t d = 0; d < in->rank; d++) dims.v[dims.count++] = in->dims[d];
  return ax_hlo_check_shape(v, 0, &dims);
}

static ax_status check_broadcast(const ax_verified *v, const ax_dims *list) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  if (!ax_hlo_ranked(in) || !ax_hlo_ranked(out)) return AX_OK;
  if (list->count != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "broadcast_dimensions has %u entries, and the operand the rank %u", list->count, in->rank);
  AX_TRY(ax_hlo_check_places("broadcast_dimensions", list, out->rank, false));
  for (uint32_t d = 0; d < in->rank; d++) {
    const int64_t from = in->dims[d], to = out->dims[list->v[d]];
    if (from != 1 && !ax_hlo_extents_fit(from, to))
      return ax_error(AX_INVALID_ARGUMENT,
                      "dimension %u has the extent %" PRId64 ", and the result's dimension %" PRId64 " has %" PRId64, d, from,
                      list->v[d], to);
  }
  return AX_OK;
}

ax_status ax_hlo_check_moved_scales(const ax_verified *v, int64_t axis) {
  const ax_hlo_quantized *p = ax_verified_in(v, 0)->quantized, *q = ax_verified_out(v, 0)->quantized;
  if (p == NULL || q == NULL) return AX_OK;
  if (p->count != q->count || (p->axis < 0) != (q->axis < 0) || memcmp(p->scales, q->scales, p->count * sizeof p->scales[0]) != 0 ||
      memcmp(p->zeros, q->zeros, p->count * sizeof p->zeros[0]) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the operand and the result must have the same scales and zero points");
  if (p->axis < 0 || axis == AX_HLO_DYNAMIC || q->axis == axis) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the result's scales are those of dimension %" PRId64 ", and must be those of %" PRId64,
                  q->axis, axis);
}

/* Scales of a dimension of one index may become those of several equal ones. */
static ax_status check_broadcast_scales(const ax_verified *v, const ax_dims *list) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  const ax_hlo_quantized *p = in->quantized, *q = out->quantized;
  if (p == NULL || q == NULL || (p->axis < 0) != (q->axis < 0) || p->axis < 0 || p->axis >= list->count)
    return ax_hlo_check_moved_scales(v, AX_HLO_DYNAMIC);
  if (q->axis != list->v[p->axis])
    return ax_error(AX_INVALID_ARGUMENT, "the result's scales are those of dimension %" PRId64 ", and must be those of %" PRId64,
                    q->axis, list->v[p->axis]);
  if (p->count != 1) return ax_hlo_check_moved_scales(v, list->v[p->axis]);
  for (uint32_t i = 0; i < q->count; i++)
    if (q->scales[i] != p->scales[0] || q->zeros[i] != p->zeros[0])
      return ax_error(AX_INVALID_ARGUMENT, "each scale and zero point of the result must be the operand's");
  return AX_OK;
}

ax_status ax_hlo_check_broadcast_in_dim(const ax_verified *v) {
  ax_dims list;
  AX_TRY(ax_hlo_integers(v->op, "broadcast_dimensions", &list));
  AX_TRY(check_bounded(ax_verified_out(v, 0)));
  AX_TRY(check_broadcast(v, &list));
  return check_broadcast_scales(v, &list);
}

ax_status ax_hlo_check_dynamic_broadcast(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  ax_dims list, grows = {0}, stays = {0}, all;
  AX_TRY(ax_hlo_integers(v->op, "broadcast_dimensions", &list));
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  AX_TRY(check_broadcast(v, &list));
  if (ax_hlo_find(v->op, "known_expanding_dimensions") != NULL)
    AX_TRY(ax_hlo_integers(v->op, "known_expanding_dimensions", &grows));
  if (ax_hlo_find(v->op, "known_nonexpanding_dimensions") != NULL)
    AX_TRY(ax_hlo_integers(v->op, "known_nonexpanding_dimensions", &stays));
  all = grows;
  for (uint32_t i = 0; i < stays.count && all.count < AX_MAX_RANK; i++) all.v[all.count++] = stays.v[i];
  if (ax_hlo_ranked(in)) AX_TRY(ax_hlo_check_places("what is known of expansions", &all, in->rank, false));
  AX_TRY(check_broadcast_scales(v, &list));
  if (ax_hlo_known_list(v, 1, &all))
    for (uint32_t d = 0; ax_hlo_ranked(in) && d < in->rank; d++)
      if (in->dims[d] > 1 && list.v[d] < all.count && all.v[list.v[d]] != in->dims[d])
        return ax_error(AX_INVALID_ARGUMENT, "dimension %u has the extent %" PRId64 ", and operand 1 says %" PRId64, d, in->dims[d],
                        all.v[list.v[d]]);
  return check_extents(v, 1);
}

/* CHLO's: of two shapes the shorter one is that of the last dimensions, or broadcast_dimensions says of which. */
ax_status ax_hlo_check_chlo_broadcast(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1), *small, *large;
  ax_dims dims, list = {0};
  if (!ax_hlo_elements_fit(a, b)) return ax_error(AX_INVALID_ARGUMENT, "operands must have the same elements");
  if (!ax_hlo_ranked(a) || !ax_hlo_ranked(b)) return AX_OK;
  small = a->rank < b->rank ? a : b, large = a->rank < b->rank ? b : a;
  for (uint32_t d = 0; d < small->rank; d++) list.v[list.count++] = large->rank - small->rank + d;
  if (ax_hlo_find(v->op, "broadcast_dimensions") != NULL && a->rank != b->rank) {
    AX_TRY(ax_hlo_integers(v->op, "broadcast_dimensions", &list));
    if (list.count != small->rank)
      return ax_error(AX_INVALID_ARGUMENT, "broadcast_dimensions must have an entry for each of %u dimensions", small->rank);
    AX_TRY(ax_hlo_check_places("broadcast_dimensions", &list, large->rank, false));
  }
  dims = ax_hlo_dims_of(large);
  for (uint32_t d = 0; d < list.count; d++) {
    int64_t *to = &dims.v[list.v[d]];
    const int64_t from = small->dims[d];
    if (*to != 1 && from != 1 && !ax_hlo_extents_fit(*to, from))
      return ax_error(AX_INVALID_ARGUMENT, "extents %" PRId64 " and %" PRId64 " are not broadcast to one", from, *to);
    if (*to == 1)
      *to = from;
    else if (*to == AX_HLO_DYNAMIC && from > 1)
      *to = from;
  }
  return ax_hlo_check_shape(v, 0, &dims);
}

/* --- Others --- */

ax_status ax_hlo_check_concatenate(const ax_verified *v) {
  int64_t along;
  const ax_hlo_value_type *first = ax_verified_in(v, 0);
  AX_TRY(ax_hlo_integer(v->op, "dimension", &along));
  if (!ax_hlo_ranked(first)) return AX_OK;
  if (along >= first->rank)
    return ax_error(AX_INVALID_ARGUMENT, "dimension is %" PRId64 ", and must be less than the rank, %u", along, first->rank);
  ax_dims dims = ax_hlo_dims_of(first);
  for (uint32_t i = 1; i < v->op->operand_count; i++) {
    const ax_hlo_value_type *type = ax_verified_in(v, i);
    if (!ax_hlo_ranked(type)) return AX_OK;
    bool fit = type->rank == dims.count;
    for (uint32_t d = 0; fit && d < dims.count; d++) {
      fit = d == along || ax_hlo_extents_fit(dims.v[d], type->dims[d]);
      if (dims.v[d] == AX_HLO_DYNAMIC && d != along) dims.v[d] = type->dims[d];
    }
    if (!fit)
      return ax_error(AX_INVALID_ARGUMENT, "operand %u, %.*s, must have the shape of operand 0, %.*s, but along dimension %" PRId64,
                      i, ax_hlo_length(type->text), type->text.start, ax_hlo_length(first->text), first->text.start, along);
    const bool known = dims.v[along] >= 0 && type->dims[along] >= 0;
    if (!known || __builtin_add_overflow(dims.v[along], type->dims[along], &dims.v[along])) dims.v[along] = AX_HLO_DYNAMIC;
  }
  return ax_hlo_check_shape(v, 0, &dims);
}

/* The padded array's shape; AX_HLO_DYNAMIC: an extent that is not known. Of one that has a bound the bound must not become negative. */
static ax_status padded(const ax_hlo_value_type *in, const ax_dims *low, const ax_dims *high, const ax_dims *inner, ax_dims *dims) {
  *dims = ax_hlo_dims_of(in);
  for (uint32_t d = 0; d < in->rank; d++) {
    if (inner->v[d] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "interior padding has %" PRId64 ", and must have no negative number", inner->v[d]);
    const bool known = dims->v[d] != AX_HLO_DYNAMIC;
    const int64_t most = known ? dims->v[d] : ax_hlo_bound(in, d);
    if (most == AX_HLO_DYNAMIC) continue;
    int64_t extent, between;
    const bool fits = !__builtin_mul_overflow(most > 0 ? most - 1 : 0, inner->v[d], &between) &&
                      !__builtin_add_overflow(most, between, &extent) && !__builtin_add_overflow(extent, low->v[d], &extent) &&
                      !__builtin_add_overflow(extent, high->v[d], &extent);
    if (!fits || extent < 0)
      return ax_error(AX_INVALID_ARGUMENT, "padding leaves dimension %u %s of less than 0, or too large a one", d,
                      known ? "an extent" : "a bound");
    if (known) dims->v[d] = extent;
  }
  return AX_OK;
}

ax_status ax_hlo_check_pad(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *value = ax_verified_in(v, 1);
  ax_dims low, high, inner, dims;
  AX_TRY(ax_hlo_integers(v->op, "edge_padding_low", &low));
  AX_TRY(ax_hlo_integers(v->op, "edge_padding_high", &high));
  AX_TRY(ax_hlo_integers(v->op, "interior_padding", &inner));
  if (ax_hlo_ranked(value) && value->rank != 0) return ax_error(AX_INVALID_ARGUMENT, "operand 1 must be a scalar");
  if (!ax_hlo_ranked(in)) return AX_OK;
  if (low.count != in->rank || high.count != in->rank || inner.count != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "edge_padding_low, edge_padding_high and interior_padding must have %u entries each",
                    in->rank);
  AX_TRY(padded(in, &low, &high, &inner, &dims));
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_dynamic_pad(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *value = ax_verified_in(v, 1), *out = ax_verified_out(v, 0);
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  if (!ax_hlo_elements_fit(in, value) || (ax_hlo_ranked(value) && value->rank != 0))
    return ax_error(AX_INVALID_ARGUMENT, "operand 1 must be a scalar of the elements of operand 0");
  for (uint32_t i = 2; i < 5; i++) {
    const ax_hlo_value_type *list = ax_verified_in(v, i);
    if (ax_hlo_ranked(list) && (list->rank != 1 || (ax_hlo_ranked(in) && !ax_hlo_extents_fit(list->dims[0], in->rank))))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u must have an entry for each of the %u dimensions of operand 0", i, in->rank);
  }
  if (ax_hlo_ranked(in) && ax_hlo_ranked(out) && in->rank != out->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the result has the rank %u, and the operand %u", out->rank, in->rank);
  ax_dims low, high, inner, dims;
  if (!ax_hlo_ranked(in) || !ax_hlo_known_list(v, 4, &inner)) return AX_OK;
  for (uint32_t d = 0; d < inner.count; d++)
    if (inner.v[d] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "operand 4, interior padding, has %" PRId64 ", and must have no negative number",
                      inner.v[d]);
  if (!ax_hlo_known_list(v, 2, &low) || !ax_hlo_known_list(v, 3, &high)) return AX_OK;
  AX_TRY(padded(in, &low, &high, &inner, &dims));
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_reverse(const ax_verified *v) {
  ax_dims list;
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  AX_TRY(ax_hlo_integers(v->op, "dimensions", &list));
  return ax_hlo_ranked(in) ? ax_hlo_check_places("dimensions", &list, in->rank, false) : AX_OK;
}

ax_status ax_hlo_check_transpose(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  ax_dims order, dims;
  AX_TRY(ax_hlo_integers(v->op, "permutation", &order));
  if (!ax_hlo_ranked(in)) return AX_OK;
  if (order.count != in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "permutation has %u entries, and the operand the rank %u", order.count, in->rank);
  AX_TRY(ax_hlo_check_places("permutation", &order, in->rank, false));
  dims.count = order.count;
  for (uint32_t d = 0; d < order.count; d++) dims.v[d] = in->dims[order.v[d]];
  AX_TRY(ax_hlo_check_shape(v, 0, &dims));
  int64_t axis = AX_HLO_DYNAMIC;
  for (uint32_t d = 0; in->quantized != NULL && d < order.count; d++)
    if (order.v[d] == in->quantized->axis) axis = d;
  return out->quantized != NULL ? ax_hlo_check_moved_scales(v, axis) : AX_OK;
}

ax_status ax_hlo_check_dimension_size(const ax_verified *v) {
  int64_t dimension;
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  AX_TRY(ax_hlo_integer(v->op, "dimension", &dimension));
  if (ax_hlo_ranked(in) && dimension >= in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "dimension is %" PRId64 ", and must be less than the rank, %u", dimension, in->rank);
  if (v->op->operand_count > 1 || ax_hlo_is_scalar(ax_verified_out(v, 0), AX_S32)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the result must be tensor<i32>");
}

ax_status ax_hlo_check_set_dimension_size(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *size = ax_verified_in(v, 1), *out = ax_verified_out(v, 0);
  AX_TRY(ax_hlo_check_dimension_size(v));
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  if (ax_hlo_ranked(size) && size->rank != 0) return ax_error(AX_INVALID_ARGUMENT, "operand 1 must be tensor<i32>");
  if (!ax_hlo_ranked(in) || !ax_hlo_ranked(out) || in->rank == out->rank) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the result has the rank %u, and the operand %u", out->rank, in->rank);
}
