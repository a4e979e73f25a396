#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dtype.h"

/* Both operands and the result are quantized, or none; with as many scales each, along one dimension. */
ax_status ax_hlo_check_add(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1), *out = ax_verified_out(v, 0);
  const ax_hlo_quantized *x = a->quantized, *y = b->quantized, *z = out->quantized;
  if (x == NULL && y == NULL && z == NULL) {
    if (!ax_hlo_elements_fit(a, b)) return ax_error(AX_INVALID_ARGUMENT, "operands must have the same elements");
    return ax_hlo_check_elements(v, 0, 0);
  }
  if (x == NULL || y == NULL || z == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "operands and the result must all be quantized, or none");
  if (x->storage != y->storage || x->storage != z->storage)
    return ax_error(AX_INVALID_ARGUMENT, "operands and the result are stored as different integers");
  if (x->expressed != y->expressed || x->expressed != z->expressed)
    return ax_error(AX_INVALID_ARGUMENT, "operands and the result stand for different numbers");
  if (z->axis < 0 && (x->axis >= 0 || y->axis >= 0))
    return ax_error(AX_INVALID_ARGUMENT, "the result has one scale, and an operand several");
  if ((x->axis >= 0 && x->axis != z->axis) || (y->axis >= 0 && y->axis != z->axis))
    return ax_error(AX_INVALID_ARGUMENT, "the scales of operands and the result are those of different dimensions");
  return AX_OK;
}

/* uniform_quantize, from numbers or from other scales; uniform_dequantize. */
ax_status ax_hlo_check_quantize(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  if (!in->element_known || !out->element_known) return AX_OK;
  const ax_dtype from = in->quantized != NULL ? in->quantized->expressed : in->dtype;
  const ax_dtype to = out->quantized != NULL ? out->quantized->expressed : out->dtype;
  if (from == to) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the operand stands for %s, and the result for %s", ax_dtype_get(from)->hlo,
                  ax_dtype_get(to)->hlo);
}

/* --- Pointwise operations whose results have other elements --- */

ax_status ax_hlo_check_complex(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1), *out = ax_verified_out(v, 0);
  if (!a->element_known || !b->element_known || !out->element_known) return AX_OK;
  if (a->dtype != b->dtype) return ax_error(AX_INVALID_ARGUMENT, "both operands must have the same elements");
  if (a->dtype != AX_F32 && a->dtype != AX_F64) return ax_error(AX_INVALID_ARGUMENT, "operands must be of f32 or f64");
  return ax_part_dtype(out->dtype) == a->dtype
             ? AX_OK
             : ax_error(AX_INVALID_ARGUMENT, "the result must be complex<%s>", ax_dtype_get(a->dtype)->hlo);
}

/* abs, real, imag: of complex numbers their parts' elements, of others the same. */
ax_status ax_hlo_check_parts(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  if (in->quantized != NULL || out->quantized != NULL) return ax_hlo_check_elements(v, 0, 0);
  if (!in->element_known || !out->element_known || ax_part_dtype(in->dtype) == out->dtype) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the result must be of %s", ax_dtype_get(ax_part_dtype(in->dtype))->hlo);
}

ax_status ax_hlo_check_compare(const ax_verified *v) {
  const ax_hlo_value_type *a = ax_verified_in(v, 0), *b = ax_verified_in(v, 1);
  if (!ax_hlo_elements_fit(a, b))
    return ax_error(AX_INVALID_ARGUMENT, "operands have different elements: %.*s and %.*s", ax_hlo_length(a->text), a->text.start,
                    ax_hlo_length(b->text), b->text.start);
  return AX_OK;
}

ax_status ax_hlo_check_clamp(const ax_verified *v) {
  const ax_hlo_value_type *x = ax_verified_in(v, 1);
  for (uint32_t i = 0; i < 3; i += 2) {
    const ax_hlo_value_type *bound = ax_verified_in(v, i);
    if (!ax_hlo_ranked(bound) || bound->rank == 0 || ax_hlo_shapes_fit(bound, x)) continue;
    return ax_error(AX_INVALID_ARGUMENT, "operand %u must be a scalar, or have the shape of operand 1", i);
  }
  if (!ax_hlo_ranked(x)) return AX_OK;
  const ax_dims dims = ax_hlo_dims_of(x);
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_select(const ax_verified *v) {
  const ax_hlo_value_type *which = ax_verified_in(v, 0), *a = ax_verified_in(v, 1), *b = ax_verified_in(v, 2);
  if (!ax_hlo_shapes_fit(a, b) || !ax_hlo_elements_fit(a, b))
    return ax_error(AX_INVALID_ARGUMENT, "operands 1 and 2 must have one type, and are %.*s and %.*s", ax_hlo_length(a->text),
                    a->text.start, ax_hlo_length(b->text), b->text.start);
  if (ax_hlo_ranked(which) && which->rank > 0 && !ax_hlo_shapes_fit(which, a))
    return ax_error(AX_INVALID_ARGUMENT, "operand 0 must be a scalar, or have the shape of operand 1");
  AX_TRY(ax_hlo_check_elements(v, 0, 1));
  if (!ax_hlo_ranked(a)) return AX_OK;
  const ax_dims dims = ax_hlo_dims_of(a);
  return ax_hlo_check_shape(v, 0, &dims);
}

/* --- Random numbers --- */

ax_status ax_hlo_check_rng(const ax_verified *v) {
  const ax_hlo_value_type *shape = ax_verified_in(v, 2), *out = ax_verified_out(v, 0);
  const ax_hlo_attribute *distribution = ax_hlo_find(v->op, "rng_distribution");
  ax_dims dims;
  for (uint32_t i = 0; i < 2; i++)
    if (ax_hlo_ranked(ax_verified_in(v, i)) && ax_verified_in(v, i)->rank > 0)
      return ax_error(AX_INVALID_ARGUMENT, "operand %u must be a scalar", i);
  if (!ax_hlo_elements_fit(ax_verified_in(v, 0), ax_verified_in(v, 1)) || !ax_hlo_elements_fit(ax_verified_in(v, 0), out))
    return ax_error(AX_INVALID_ARGUMENT, "operands 0 and 1 and the result must have the same elements");
  if (distribution != NULL && ax_hlo_slice_is(distribution->text, "NORMAL") && (ax_hlo_class_of(out) & AX_HLO_FLOATS) == 0)
    return ax_error(AX_INVALID_ARGUMENT, "normal numbers must be floats");
  if (!ax_hlo_ranked(shape)) return AX_OK;
  if (shape->rank != 1 || shape->dynamic)
    return ax_error(AX_INVALID_ARGUMENT, "operand 2 must have one dimension of a known extent");
  if (ax_hlo_ranked(out) && out->rank != shape->dims[0])
    return ax_error(AX_INVALID_ARGUMENT, "operand 2 has %" PRId64 " extents, and the result the rank %u", shape->dims[0],
                    out->rank);
  if (!ax_hlo_known_list(v, 2, &dims)) return AX_OK;
  return ax_hlo_check_shape(v, 0, &dims);
}

ax_status ax_hlo_check_rng_bits(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  AX_TRY(ax_hlo_check_elements(v, 0, 0));
  if (ax_hlo_ranked(in)) {
    const ax_dims dims = ax_hlo_dims_of(in);
    AX_TRY(ax_hlo_check_shape(v, 0, &dims));
  }
  return ax_verified_out(v, 1)->dynamic ? ax_error(AX_INVALID_ARGUMENT, "result 1 must have a shape that is known") : AX_OK;
}
