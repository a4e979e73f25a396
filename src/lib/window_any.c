/* reduce_window of any function, dimension by dimension from the last, which keeps the order of a window's places: along one, places
   are combined in pairs, pairs in fours, and so on, and a window is put together of these.

     size 6 = 4 + 2:    places 0 1 2 3 | 4 5        fours from p on, then pairs from p + 4 on */
#include "lib/checked.h"
#include "lib/elements.h"
#include "ops/window.h"

static const char name[] = "reduce_window";

typedef struct windows {
  ax_fn body;
  uint32_t count; /* of operands */
  uint32_t rank;
  ax_window along[AX_MAX_RANK];
} windows;

/* The body on arrays. out may be a or b. */
static void combine(const windows *w, const ax_value *a, const ax_value *b, ax_value *out) {
  ax_value *both = ax_trace_alloc(2 * w->count * sizeof both[0]);
  if (both == NULL) return;
  for (uint32_t i = 0; i < w->count; i++) both[i] = a[i], both[w->count + i] = b[i];
  ax_apply_to_elements(name, w->body, both, out);
}

/* What begins at places start, start + stride, .. of dimension d, `count` of them. */
static void parts(const windows *w, const ax_value *x, uint32_t d, int64_t start, int64_t count, int64_t stride, ax_value *out) {
  for (uint32_t i = 0; i < w->count; i++) out[i] = ax_window_part(x[i], d, start, count, stride);
}

/* Along dimension d, in place. power: of `group` places, from each place on that has so many. */
static void reduce_dimension(const windows *w, uint32_t d, ax_value *x) {
  const ax_window *along = &w->along[d];
  const int64_t positions = ax_window_count(along);
  ax_value *power = ax_trace_alloc(4 * w->count * sizeof power[0]);
  if (power == NULL) return;
  ax_value *sum = power + w->count, *piece = sum + w->count, *next = piece + w->count;
  if (positions == 0) {
    parts(w, x, d, 0, 0, 1, x);
    return;
  }
  int64_t done = 0, places = along->array;
  bool any = false;
  for (uint32_t i = 0; i < w->count; i++) power[i] = x[i];
  for (int64_t group = 1; group <= along->size && !ax_failed(); group *= 2) {
    if (along->size & group) { /* the window's last places that no larger group takes: in front of those taken so far */
      const int64_t from = along->size - done - group;
      parts(w, power, d, from * along->dilation, positions, along->stride, piece);
      if (any)
        combine(w, piece, sum, sum);
      else
        parts(w, piece, d, 0, positions, 1, sum);
      any = true;
      done += group;
    }
    if (2 * group > along->size) break;
    places -= group * along->dilation;
    parts(w, power, d, 0, places, 1, piece);
    parts(w, power, d, group * along->dilation, places, 1, next);
    combine(w, piece, next, power);
  }
  for (uint32_t i = 0; i < w->count; i++) x[i] = sum[i];
}

static bool take_options(windows *w, const ax_type *type, const int64_t *window, const ax_window_options *o) {
  const struct {
    const char *name;
    const ax_dim_list *list;
  } lists[] = {{"strides", &o->strides},
               {"low", &o->low},
               {"high", &o->high},
               {"base_dilation", &o->base_dilation},
               {"window_dilation", &o->window_dilation}};
  for (size_t i = 0; i < AX_COUNT(lists); i++)
    if (!ax_option_fits(name, lists[i].name, lists[i].list->count, lists[i].list->v, w->rank, "dimension")) return false;
  if (o->padding != NULL && (o->low.count > 0 || o->high.count > 0))
    return ax_reject_as(name, "padding is \"%.40s\", and low or high is given too", o->padding), false;
  for (uint32_t d = 0; d < w->rank; d++) {
    int64_t positions;
    ax_window *along = &w->along[d];
    *along = (ax_window){.array = type->dims[d],
                         .base = ax_option_at(&o->base_dilation, d, 1),
                         .low = ax_option_at(&o->low, d, 0),
                         .high = ax_option_at(&o->high, d, 0),
                         .size = window[d],
                         .dilation = ax_option_at(&o->window_dilation, d, 1),
                         .stride = ax_option_at(&o->strides, d, 1)};
    if (along->size < 1) return ax_reject_as(name, "the window has %lld places in dimension %u", (long long)along->size, d), false;
    if (o->padding != NULL && !ax_window_pads(name, o->padding, along)) return false;
    if (ax_window_positions(along, "the array", d, &positions) != AX_OK) {
      ax_fail(ax_error_context(AX_INVALID_ARGUMENT, "%s: ", name));
      return false;
    }
  }
  return true;
}

static bool take_operands(windows *w, const ax_value *operands, const ax_value *starts, ax_type *first) {
  for (uint32_t i = 0; i < w->count; i++) {
    ax_type type, start;
    if (!ax_operand(name, operands[i], &type) || !ax_operand(name, starts[i], &start)) return false;
    if (i == 0) *first = type;
    if (!ax_shaped_as(name, i, &type, first)) return false;
    if (start.rank != 0 || start.dtype != type.dtype)
      return ax_reject_as(name, "start %u is %s; it must be %s[]", i, ax_operand_string(&start), ax_dtype_name(type.dtype)), false;
  }
  w->rank = first->rank;
  return true;
}

static void reduce(windows *w, const ax_value *operands, const ax_value *starts, ax_value *out) {
  ax_value *x = ax_trace_alloc(2 * w->count * sizeof x[0]), *first = x + w->count;
  ax_window padded[AX_MAX_RANK];
  if (x == NULL) return;
  for (uint32_t i = 0; i < w->count; i++) {
    for (uint32_t d = 0; d < w->rank; d++) padded[d] = w->along[d];
    x[i] = ax_window_padded(operands[i], starts[i], 0, w->rank, padded);
  }
  for (uint32_t d = 0; d < w->rank; d++) w->along[d] = padded[d];
  for (uint32_t d = w->rank; d > 0; d--) reduce_dimension(w, d - 1, x);
  if (ax_failed()) return;
  ax_type type = ax_typeof(x[0]);
  for (uint32_t i = 0; i < w->count; i++) first[i] = (ax_broadcast_to)(starts[i], type.rank, type.dims);
  combine(w, first, x, out);
}

void(ax_reduce_window)(uint32_t count, const ax_value *operands, uint32_t start_count, const ax_value *starts, ax_fn body,
                       uint32_t window_count, const int64_t *window, uint32_t out_count, ax_value *out,
                       const ax_window_options *options) {
  static const ax_window_options none = {0};
  windows w = {.body = body, .count = body.out_count};
  ax_type type;
  if (!ax_lists_fit(name, count, w.count, out_count, w.count, out) ||
      !ax_list_fits(name, "there are", "start", start_count, w.count))
    return;
  operands = ax_take_operands(operands, w.count, out, w.count);
  if (ax_failed()) return;
  if (w.count == 0 || body.in_count != 2 * w.count) {
    (void)ax_reject_as(name, "the body takes %u values and gives %u; it must take two for each that it gives", body.in_count,
                       body.out_count);
    return;
  }
  if (!take_operands(&w, operands, starts, &type) || !ax_list_fits(name, "the operands have", "dimension", window_count, w.rank))
    return;
  if (window == NULL && w.rank > 0)
    (void)ax_reject_as(name, "there is no window");
  else if (take_options(&w, &type, window, options != NULL ? options : &none))
    reduce(&w, operands, starts, out);
}
