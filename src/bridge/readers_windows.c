/* select_and_scatter: each window of the operand selects an element, to whose place the source's element is added, or combined
   with what is there in another way.  As ax_select_and_scatter_add where the element is the largest or smallest of floats, the
   sources are added, and nothing is padded: that takes padding for the least float, which may win over one in the operand. (It
   and XLA choose differently where a window has NaN, for which the specification leaves the order open.) Otherwise: the place
   that each window selects, by a reduction over windows of (element, place), and a scatter to these places. */
#include "bridge/readers.h"

#include "axle/ops.h"
#include "ir/dtype.h"
#include "ops/scatter.h"
#include "prim/bind.h"

typedef struct windows {
  ax_dims size, strides, low, high;
} windows;

static ax_status read_windows(const ax_hlo_operation *op, uint32_t rank, windows *w) {
  AX_TRY(ax_hlo_integers_or(op, "window_dimensions", rank, 1, &w->size));
  AX_TRY(ax_hlo_integers_or(op, "window_strides", rank, 1, &w->strides));
  return ax_hlo_read_padding(op, rank, &w->low, &w->high);
}

static bool is_padded(const windows *w) {
  for (uint32_t d = 0; d < w->low.count; d++)
    if (w->low.v[d] != 0 || w->high.v[d] != 0) return true;
  return false;
}

/* (a, place of a, b, place of b): the one that the module's body selects; -1: no place, which padding has. */
static AX_BODY(selected) {
  const ax_fn *select = context;
  ax_value first;
  select->function((const ax_value[]){in[0], in[2]}, &first, select->context);
  const ax_value none = ax_lt(in[3], ax_integer(0)), is_first = ax_or(first, none);
  const ax_value takes = ax_and(is_first, ax_ge(in[1], ax_integer(0)));
  out[0] = ax_where(takes, in[0], in[2]);
  out[1] = ax_where(takes, in[1], in[3]);
}

/* s32[n..]: which place of the flat operand each window selects. */
static ax_value selected_places(ax_value operand, const ax_type *type, ax_fn *select, const windows *w) {
  const int64_t all[] = {ax_type_elems(type)};
  const ax_value places = (ax_reshape)((ax_iota)(AX_S32, AX_LIST(1, all), 0), AX_LIST(type->rank, type->dims));
  const ax_value pairs[] = {operand, places};
  const ax_value starts[] = {ax_zero_like(operand), (ax_full)(AX_S32, AX_LIST(0, NULL), -1)};
  const ax_window_options options = {
      .strides = {type->rank, w->strides.v}, .low = {type->rank, w->low.v}, .high = {type->rank, w->high.v}};
  ax_value out[2] = {ax_poison, ax_poison};
  (ax_reduce_window)(2, pairs, 2, starts, (ax_fn){selected, 4, 2, select}, AX_LIST(type->rank, w->size.v), 2, out, &options);
  return out[1];
}

typedef ax_value scatter(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                         const ax_index_options *options);

static scatter *scatter_by(ax_hlo_slice name, bool of_bool) {
  if (ax_hlo_slice_is(name, "stablehlo.add")) return of_bool ? ax_scatter_max : ax_scatter_add;
  if (ax_hlo_slice_is(name, "stablehlo.multiply")) return of_bool ? ax_scatter_min : ax_scatter_mul;
  if (ax_hlo_slice_is(name, "stablehlo.maximum") || (of_bool && ax_hlo_slice_is(name, "stablehlo.or"))) return ax_scatter_max;
  if (ax_hlo_slice_is(name, "stablehlo.minimum") || (of_bool && ax_hlo_slice_is(name, "stablehlo.and"))) return ax_scatter_min;
  return NULL;
}

/* Booleans are combined as numbers of a byte. */
static ax_value scattered(scatter *by, const ax_type *type, ax_value places, ax_value source, ax_value start) {
  const int64_t all[] = {ax_type_elems(type)}, inserted[] = {0}, flat[] = {-1};
  const bool of_bool = type->dtype == AX_BOOL;
  if (of_bool) source = ax_convert_element_type(source, AX_U8), start = ax_convert_element_type(start, AX_U8);
  const ax_value x = (ax_broadcast_in_dim)(start, AX_LIST(1, all), AX_LIST(0, NULL));
  const ax_value at = ax_expand_dims((ax_reshape)(places, AX_LIST(1, flat)), -1);
  const ax_scatter_dims dims = {.inserted_window_dims = {1, inserted}, .scatter_dims_to_operand_dims = {1, inserted}};
  const ax_value y = by(x, at, (ax_reshape)(source, AX_LIST(1, flat)), &dims, &(ax_index_options){.mode = AX_INDEX_FILL});
  const ax_value whole = (ax_reshape)(y, AX_LIST(type->rank, type->dims));
  return of_bool ? ax_convert_element_type(whole, AX_BOOL) : whole;
}

/* By any body: each source's element is combined with what is in its place, in order. */
static ax_status scatter_by_body(const ax_hlo_read_args *args, const ax_type *type, ax_value places) {
  const int64_t all[] = {ax_type_elems(type)}, flat[] = {-1};
  const ax_scatter_params p = {.at = {.collapsed = {1, {0}}, .map = {1, {0}}, .mode = "fill"}};
  ax_hlo_body body;
  ax_fn function;
  AX_TRY(ax_hlo_body_of(args, 1, 1, &body, &function));
  const ax_value x = (ax_broadcast_in_dim)(args->in[2], AX_LIST(1, all), AX_LIST(0, NULL));
  const ax_value at = ax_expand_dims((ax_reshape)(places, AX_LIST(1, flat)), -1);
  const ax_value source = (ax_reshape)(args->in[1], AX_LIST(1, flat));
  ax_value y = ax_poison;
  if (!ax_failed()) AX_TRY(ax_scatter_by(1, &x, at, &source, &p, function, &y));
  args->out[0] = (ax_reshape)(y, AX_LIST(type->rank, type->dims));
  return AX_OK;
}

/* "LE" or the like, if the select body compares its two arguments; empty: it does something else. */
static ax_hlo_slice direction_of(const ax_hlo_operation *op) {
  const ax_hlo_slice none = {0}, name = ax_hlo_body_operation(op, 0);
  if (!ax_hlo_slice_is(name, "stablehlo.compare")) return none;
  const ax_hlo_block *block = &op->regions[0].blocks[0];
  const ax_hlo_attribute *direction = ax_hlo_find(block->operations[0], "comparison_direction");
  return direction != NULL && block->operations[0]->operands[0] == block->argument ? direction->text : none;
}

static ax_status read(const ax_hlo_read_args *args) {
  const ax_hlo_operation *op = args->op;
  ax_hlo_body body;
  ax_fn select;
  windows w;
  if (op->operand_count != 3 || op->region_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes 3 operands and 2 regions");
  const ax_type type = ax_typeof(args->in[0]);
  const ax_hlo_slice direction = direction_of(op), name = ax_hlo_body_operation(op, 1);
  scatter *by = scatter_by(name, type.dtype == AX_BOOL);
  AX_TRY(read_windows(op, type.rank, &w));
  AX_TRY(ax_hlo_body_of(args, 0, 1, &body, &select));
  if (select.in_count != 2) return ax_error(AX_INVALID_ARGUMENT, "region 0 must take two elements");
  const bool largest = ax_hlo_slice_is(direction, "GE"), known = largest || ax_hlo_slice_is(direction, "LE");
  const bool promoted = ax_typeof(args->in[1]).dtype != type.dtype;
  if (known && by == ax_scatter_add && ax_is_float(type.dtype) && !promoted && !is_padded(&w)) {
    const ax_window_options options = {
        .strides = {type.rank, w.strides.v}, .low = {type.rank, w.low.v}, .high = {type.rank, w.high.v}};
    const ax_value sum = (ax_select_and_scatter_add)(args->in[1], args->in[0], largest, AX_LIST(type.rank, w.size.v), &options);
    args->out[0] = ax_add(sum, args->in[2]);
    return AX_OK;
  }
  const ax_value places = selected_places(args->in[0], &type, &select, &w);
  if (by == NULL) return scatter_by_body(args, &type, places);
  args->out[0] = scattered(by, &type, places, args->in[1], args->in[2]);
  return AX_OK;
}

const ax_hlo_reader ax_hlo_window_readers[] = {{"stablehlo.select_and_scatter", read}, {0}};
