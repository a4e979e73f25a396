#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dtype.h"

/* --- Windows --- */

int64_t ax_hlo_windows_in(int64_t extent, int64_t low, int64_t high, int64_t base, int64_t window, int64_t dilation,
                          int64_t stride) {
  int64_t dilated, reach;
  if (extent < 0 || window < 0) return AX_HLO_DYNAMIC;
  if (__builtin_mul_overflow(extent > 0 ? extent - 1 : 0, base, &dilated) || __builtin_add_overflow(dilated, extent > 0, &dilated))
    return AX_HLO_DYNAMIC;
  if (__builtin_add_overflow(dilated, low, &dilated) || __builtin_add_overflow(dilated, high, &dilated)) return AX_HLO_DYNAMIC;
  if (__builtin_mul_overflow(window > 0 ? window - 1 : 0, dilation, &reach) || __builtin_add_overflow(reach, window > 0, &reach))
    return AX_HLO_DYNAMIC;
  return dilated < reach || dilated <= 0 ? 0 : (dilated - reach) / stride + 1;
}

ax_status ax_hlo_window_list(const ax_verified *v, const char *name, uint32_t count, ax_dims *out) {
  const ax_hlo_attribute *found = ax_hlo_find(v->op, name);
  if (found == NULL || ((found->kind == AX_HLO_NUMBERS || found->kind == AX_HLO_ARRAY) && found->count == 0)) {
    *out = (ax_dims){.count = count};
    for (uint32_t d = 0; d < count; d++) out->v[d] = 1;
    return AX_OK;
  }
  return ax_hlo_integers_or(v->op, name, count, 1, out);
}

typedef struct window {
  ax_dims sizes, strides, base, dilation, low, high;
} window;

static ax_status check_positive(const char *name, const ax_dims *list) {
  for (uint32_t d = 0; d < list->count; d++)
    if (list->v[d] <= 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s has %" PRId64 ", and must have numbers above 0", name, list->v[d]);
  return AX_OK;
}

static ax_status read_window(const ax_verified *v, uint32_t rank, window *w) {
  AX_TRY(ax_hlo_integers(v->op, "window_dimensions", &w->sizes));
  if (w->sizes.count != rank)
    return ax_error(AX_INVALID_ARGUMENT, "window_dimensions has %u entries, and must have %u", w->sizes.count, rank);
  AX_TRY(ax_hlo_window_list(v, "window_strides", rank, &w->strides));
  AX_TRY(ax_hlo_window_list(v, "base_dilations", rank, &w->base));
  AX_TRY(ax_hlo_window_list(v, "window_dilations", rank, &w->dilation));
  AX_TRY(ax_hlo_read_padding(v->op, rank, &w->low, &w->high));
  AX_TRY(check_positive("window_dimensions", &w->sizes));
  AX_TRY(check_positive("window_strides", &w->strides));
  AX_TRY(check_positive("base_dilations", &w->base));
  return check_positive("window_dilations", &w->dilation);
}

static ax_dims windows_of(const ax_hlo_value_type *in, const window *w) {
  ax_dims dims = {.count = in->rank};
  for (uint32_t d = 0; d < in->rank; d++)
    dims.v[d] =
        ax_hlo_windows_in(in->dims[d], w->low.v[d], w->high.v[d], w->base.v[d], w->sizes.v[d], w->dilation.v[d], w->strides.v[d]);
  return dims;
}

/* --- Reductions of several arrays --- */

static ax_status check_arrays(const ax_verified *v, uint32_t count) {
  if (v->op->operand_count != 2 * count || v->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it must have a start and a result for each array, and has %u operands and %u results",
                    v->op->operand_count, v->op->result_count);
  for (uint32_t i = 1; i < count; i++)
    if (!ax_hlo_shapes_fit(ax_verified_in(v, 0), ax_verified_in(v, i)))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u has another shape than operand 0", i);
  return AX_OK;
}

/* The region, and results that have the elements it makes. */
static ax_status check_reduction(const ax_verified *v, uint32_t count, const ax_dims *most) {
  const ax_hlo_value_type **types = ax_calloc(2 * (size_t)count + 1, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(2 * count * sizeof types[0]);
  for (uint32_t i = 0; i < 2 * count; i++) types[i] = ax_verified_in(v, i);
  const ax_status status = ax_hlo_check_reducer(v, 0, count, types, types + count, most);
  ax_free(types);
  AX_TRY(status);
  const ax_hlo_block *block = &v->op->regions[0].blocks[0];
  const ax_hlo_operation *last = block->operations[block->operation_count - 1];
  for (uint32_t k = 0; k < count; k++) {
    const ax_hlo_value_type *made = v->module->values[last->operands[k]], *out = ax_verified_out(v, k);
    if (!ax_hlo_elements_fit(made, out))
      return ax_error(AX_INVALID_ARGUMENT, "result %u is %.*s, and must have the elements of %.*s, which the region makes", k,
                      ax_hlo_length(out->text), out->text.start, ax_hlo_length(made->text), made->text.start);
  }
  return AX_OK;
}

ax_status ax_hlo_check_reduce(const ax_verified *v) {
  const uint32_t count = v->op->operand_count / 2;
  ax_dims list, dims = {0};
  AX_TRY(check_arrays(v, count));
  AX_TRY(ax_hlo_integers(v->op, "dimensions", &list));
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  if (ax_hlo_ranked(in)) {
    AX_TRY(ax_hlo_check_places("dimensions", &list, in->rank, false));
    for (uint32_t d = 0; d < in->rank; d++) {
      bool kept = true;
      for (uint32_t i = 0; i < list.count; i++) kept = kept && list.v[i] != d;
      if (kept) dims.v[dims.count++] = in->dims[d];
    }
  }
  AX_TRY(check_reduction(v, count, &dims));
  for (uint32_t k = 0; k < count && ax_hlo_ranked(in); k++) AX_TRY(ax_hlo_check_shape(v, k, &dims));
  return AX_OK;
}

ax_status ax_hlo_check_reduce_window(const ax_verified *v) {
  const uint32_t count = v->op->operand_count / 2;
  window w;
  AX_TRY(check_arrays(v, count));
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  if (ax_hlo_ranked(in)) AX_TRY(read_window(v, in->rank, &w));
  AX_TRY(check_reduction(v, count, ax_hlo_ranked(in) ? &w.sizes : NULL));
  if (!ax_hlo_ranked(in)) return AX_OK;
  const ax_dims dims = windows_of(in, &w);
  for (uint32_t k = 0; k < count; k++) AX_TRY(ax_hlo_check_shape(v, k, &dims));
  return AX_OK;
}

/* --- select_and_scatter --- */

static ax_status check_select(const ax_verified *v) {
  const ax_hlo_block *block;
  const ax_hlo_operation *last;
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  AX_TRY(ax_hlo_check_block(v, 0, 2, &block, &last));
  for (uint32_t i = 0; i < 2; i++) {
    const ax_hlo_value_type *type = v->module->values[block->argument + i];
    if (!ax_hlo_ranked(type) || type->rank > 0 || !ax_hlo_elements_fit(type, in))
      return ax_error(AX_INVALID_ARGUMENT, "region 0: argument %u is %.*s, and must be a scalar of the elements of operand 0", i,
                      ax_hlo_length(type->text), type->text.start);
  }
  if (last->operand_count == 1 && ax_hlo_is_scalar(v->module->values[last->operands[0]], AX_BOOL)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "region 0 must return one tensor<i1>");
}

ax_status ax_hlo_check_select_and_scatter(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *source = ax_verified_in(v, 1), *start = ax_verified_in(v, 2);
  window w;
  AX_TRY(check_select(v));
  AX_TRY(ax_hlo_check_reducer(v, 1, 1, &source, &start, NULL));
  if (!ax_hlo_elements_fit(in, source)) return ax_error(AX_INVALID_ARGUMENT, "operands 0 and 1 must have the same elements");
  const ax_hlo_operation *last = v->op->regions[1].blocks[0].operations[v->op->regions[1].blocks[0].operation_count - 1];
  const ax_hlo_value_type *made = v->module->values[last->operands[0]], *out = ax_verified_out(v, 0);
  if (!ax_hlo_elements_fit(made, out))
    return ax_error(AX_INVALID_ARGUMENT, "the result is %.*s, and must have the elements of %.*s, which the region makes",
                    ax_hlo_length(out->text), out->text.start, ax_hlo_length(made->text), made->text.start);
  if (!ax_hlo_ranked(in)) return AX_OK;
  AX_TRY(read_window(v, in->rank, &w));
  const ax_dims windows = windows_of(in, &w), dims = ax_hlo_dims_of(in);
  bool fit = !ax_hlo_ranked(source) || source->rank == in->rank;
  for (uint32_t d = 0; fit && ax_hlo_ranked(source) && d < in->rank; d++) fit = ax_hlo_extents_fit(source->dims[d], windows.v[d]);
  if (fit) return ax_hlo_check_shape(v, 0, &dims);
  char text[256];
  return ax_error(AX_INVALID_ARGUMENT, "operand 1 is %.*s, and must have an element for each window: %s",
                  ax_hlo_length(source->text), source->text.start, ax_hlo_dims_text(&windows, text));
}
