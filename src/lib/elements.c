#include "lib/elements.h"

#include "axle/transform.h"

void ax_apply_to_elements(const char *function, ax_fn f, const ax_value *in, ax_value *out) {
  ax_value *flat = ax_trace_alloc((f.in_count + (size_t)f.out_count) * sizeof flat[0]), *made = flat + f.in_count;
  if (flat == NULL || ax_failed()) return;
  const ax_type type = ax_typeof(in[0]);
  const int64_t elements = ax_type_elems(&type);
  for (uint32_t i = 0; i < f.in_count; i++) flat[i] = (ax_reshape)(in[i], 1, &elements);
  (ax_vmap)(f, f.in_count, flat, f.out_count, made, NULL);
  for (uint32_t i = 0; i < f.out_count && !ax_failed(); i++) {
    const ax_type one = ax_typeof(made[i]);
    if (one.rank != 1)
      out[i] = ax_reject_as(function, "the body gives %s as result %u, of all elements at once; it must give a scalar for each",
                            ax_operand_string(&one), i);
    else
      out[i] = (ax_reshape)(made[i], type.rank, type.dims);
  }
}
