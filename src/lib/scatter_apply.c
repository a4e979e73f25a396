/* Scatters of subtraction, and of a function of the elements that are met. */
#include "lib/elements.h"

ax_value ax_scatter_sub(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options) {
  ax_type type;
  if (!ax_operand("scatter_sub", updates, &type)) return ax_poison;
  if (type.dtype == AX_BOOL)
    return ax_reject_as("scatter_sub", "the updates are %s; they must be numeric", ax_operand_string(&type));
  return ax_scatter_add(x, indices, ax_sub(ax_full_like(updates, ax_rounds(type.dtype) ? -0.0 : 0), updates), dims, options);
}

/* --- scatter_apply: counts how often each element is met, and applies f so often --- */

static const char name[] = "scatter_apply";

static ax_value applied(ax_fn f, ax_value x) {
  ax_value out = ax_poison;
  ax_apply_to_elements(name, f, &x, &out);
  if (ax_failed()) return ax_poison;
  const ax_type type = ax_typeof(x), made = ax_typeof(out);
  if (made.dtype != type.dtype)
    return ax_reject_as(name, "f gives %s for each element; it must give %s[]", ax_dtype_name(made.dtype),
                        ax_dtype_name(type.dtype));
  return out;
}

static AX_BODY(any_left) { out[0] = ax_reduce_or(ax_gt(in[1], ax_integer(0)), AX_ALL_DIMS, false); }

static AX_BODY(once_more) {
  out[0] = ax_where(ax_gt(in[1], ax_integer(0)), applied(*(const ax_fn *)context, in[0]), in[0]);
  out[1] = ax_sub(in[1], ax_integer(1));
}

ax_value(ax_scatter_apply)(ax_value x, ax_value indices, ax_fn f, uint32_t count, const int64_t *update_shape,
                           const ax_scatter_dims *dims, const ax_index_options *options) {
  ax_type type;
  if (!ax_operand(name, x, &type)) return ax_poison;
  if (f.in_count != 1 || f.out_count != 1)
    return ax_reject_as(name, "f takes %u values and gives %u; it must take and give one", f.in_count, f.out_count);
  ax_value none = (ax_full)(AX_S32, type.rank, type.dims, 0), ones = (ax_full)(AX_S32, count, update_shape, 1);
  ax_value times = ax_scatter_add(none, indices, ones, dims, options);
  if (ax_failed()) return ax_poison;
  const ax_value start[] = {x, times};
  ax_value made[2];
  if (options != NULL && options->unique_indices)
    once_more(start, made, &f);
  else
    (ax_while)(AX_FN(any_left, 2, 1), AX_CLOSURE(once_more, 2, 2, &f), 2, start, 2, made);
  return ax_failed() ? ax_poison : made[0];
}
