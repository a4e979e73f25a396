/* Bands of matrices on devices. */
#include "linalg/bands.h"

#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"

static int64_t members(const ax_axes_list *list) { return list->text[0] != '\0' ? ax_axis_size(list->text) : 1; }

static int64_t divided(int64_t size, int64_t parts) { return (size + parts - 1) / parts; }

static ax_axes_list names_of(const ax_spec *spec, uint32_t dimension) {
  ax_axes_list none = {""};
  if (dimension == AX_NONE) return none;
  const ax_axes names = ax_spec_names(spec, &ax_builder_current()->axes, dimension, 0);
  return names.count > 0 ? ax_axes_listed(&names) : none;
}

ax_bands ax_bands_of(const ax_spec *spec, uint32_t outer, uint32_t inner, int64_t total) {
  ax_bands b = {.outer = names_of(spec, outer), .inner = names_of(spec, inner), .total = total};
  const size_t length = strlen(b.outer.text);
  memcpy(b.all.text, b.outer.text, length + 1);
  snprintf(b.all.text + length, sizeof b.all.text - length, "%s%s", length > 0 && b.inner.text[0] != '\0' ? "," : "", b.inner.text);
  b.outer_count = members(&b.outer), b.inner_count = members(&b.inner);
  b.count = b.outer_count * b.inner_count;
  b.outer_size = divided(total, b.outer_count);
  b.size = divided(b.outer_size, b.inner_count);
  return b;
}

int64_t ax_band_begin(const ax_bands *b, int64_t k) {
  const int64_t at = k / b->inner_count * b->outer_size + k % b->inner_count * b->size;
  return ax_least(ax_least(at, (k / b->inner_count + 1) * b->outer_size), b->total);
}

int64_t ax_band_end(const ax_bands *b, int64_t k) {
  const int64_t at = k / b->inner_count * b->outer_size + (k % b->inner_count + 1) * b->size;
  return ax_least(ax_least(at, (k / b->inner_count + 1) * b->outer_size), b->total);
}

ax_value ax_bands_own(const ax_bands *b) { return ax_axis_index(b->all.text); }

static ax_value index_of(const ax_axes_list *list, int64_t size) {
  return ax_mul(ax_convert_element_type(ax_axis_index(list->text), AX_S64), ax_integer(size));
}

ax_value ax_bands_start(const ax_bands *b) {
  if (b->inner_count == 1) return index_of(&b->outer, b->outer_size);
  if (b->outer_count == 1) return index_of(&b->inner, b->size);
  return ax_add(index_of(&b->outer, b->outer_size), index_of(&b->inner, b->size));
}

ax_value ax_bands_places(const ax_bands *b, ax_value x, int64_t dimension) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const int64_t d = dimension < 0 ? dimension + (int64_t)type.rank : dimension;
  return ax_add(ax_iota(AX_S64, AX_LIST(type.rank, type.dims), d), ax_bands_start(b));
}

/* Where the numbers of the band of `outer` end that this device's band is part of. */
static ax_value outer_end(const ax_bands *b) {
  if (b->inner_count == 1 || b->outer_count == 1) return ax_integer(b->total);
  return ax_min(ax_add(index_of(&b->outer, b->outer_size), ax_integer(b->outer_size)), ax_integer(b->total));
}

ax_value ax_bands_without_padding(const ax_bands *b, ax_value x, int64_t dimension) {
  bool full = true;
  for (int64_t k = 0; k < b->count; k++) full = full && ax_band_end(b, k) - ax_band_begin(b, k) == b->size;
  return full ? x : ax_where(ax_lt(ax_bands_places(b, x, dimension), outer_end(b)), x, ax_integer(0));
}

ax_value ax_matrix_fitted(ax_value x, int64_t size, int64_t dimension) {
  const ax_type type = ax_typeof(x);
  int64_t none[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {0};
  if (ax_failed()) return ax_poison;
  const int64_t d = dimension < 0 ? dimension + (int64_t)type.rank : dimension;
  high[d] = size - type.dims[d];
  if (high[d] == 0) return x;
  if (high[d] < 0) return ax_slice_in_dim(x, 0, size, 1, d);
  return ax_pad(x, ax_integer(0), AX_LIST(type.rank, none), AX_LIST(type.rank, high), AX_LIST(type.rank, none));
}

ax_value ax_bands_exchange(const ax_bands *b, ax_value block, int64_t d, int64_t other_dimension, int64_t other) {
  if (b->inner_count == 1) return block;
  const ax_value cut = ax_matrix_fitted(block, b->inner_count * b->size, d);
  return ax_matrix_fitted(ax_all_to_all(cut, b->inner.text, d, other_dimension, true), other, other_dimension);
}

ax_value ax_bands_exchange_back(const ax_bands *b, ax_value band, int64_t d, int64_t other_dimension, int64_t kept) {
  if (b->inner_count == 1) return band;
  const ax_value cut = ax_matrix_fitted(band, b->inner_count * kept, other_dimension);
  return ax_matrix_fitted(ax_all_to_all(cut, b->inner.text, other_dimension, d, true), b->outer_size, d);
}

static AX_BODY(first_of) { out[0] = in[0]; }

ax_value ax_where_needed(ax_value condition, ax_fn body, const ax_value *in, uint32_t count) {
  const ax_value *alike = ax_spread_together(in, count);
  ax_value out = ax_poison;
  if (alike == NULL) return ax_poison;
  ax_if(condition, body, AX_FN(first_of, count, 1), AX_LIST(count, alike), AX_LIST(1, &out));
  return out;
}
