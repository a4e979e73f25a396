/* The tangent of a product of many numbers, in halves:

     d(x0 x1 .. x7) = d(p0) p1 + p0 d(p1)     p0 = x0 .. x3, p1 = x4 .. x7, and each of them likewise

   So nothing is divided by x, which may be 0, and the work is that of a few products of the array. As jax.lax has it. */
#include "ops/reduce.h"

#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/shape.h"

/* x as rows that are multiplied: [all of the axes, the others..]. */
static ax_value as_rows(ax_value x, const ax_type *type, const ax_dims *axes) {
  const ax_dims kept = ax_dims_others(type->rank, axes, NULL), reduced = ax_dims_others(type->rank, &kept, NULL);
  int64_t order[AX_MAX_RANK], dims[AX_MAX_RANK + 1] = {1};
  for (uint32_t i = 0; i < reduced.count; i++) order[i] = reduced.v[i], dims[0] *= type->dims[reduced.v[i]];
  for (uint32_t i = 0; i < kept.count; i++) order[reduced.count + i] = kept.v[i], dims[1 + i] = type->dims[kept.v[i]];
  return ax_reshape(ax_transpose(x, AX_LIST(type->rank, order)), AX_LIST(kept.count + 1, dims));
}

/* The second half of the rows; of an odd number it gets one more row, of `fill`. */
static ax_value second_half(ax_value x, int64_t half, int64_t count, double fill) {
  ax_value rest = ax_slice_in_dim(x, half, count, 1, 0);
  const ax_type type = ax_typeof(x);
  const int64_t none[AX_MAX_RANK] = {0}, one[AX_MAX_RANK] = {1};
  if (count == 2 * half || ax_failed()) return rest;
  return ax_pad(rest, ax_real(fill), AX_LIST(type.rank, none), AX_LIST(type.rank, one), AX_LIST(type.rank, none));
}

void ax_reduce_prod_jvp(const ax_jvp_args *args) {
  const ax_dims *axes = &((const ax_reduce_params *)args->eqn->params)->axes;
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 1);
  args->tangent_out[0] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed()) return;
  const ax_type type = ax_typeof(args->in[0]);
  if (ax_type_elems(&type) == 0) return;
  ax_value x = as_rows(args->in[0], &type, axes), dx = as_rows(args->tangent_in[0], &type, axes);
  for (int64_t count = ax_failed() ? 1 : ax_typeof(x).dims[0]; count > 1 && !ax_failed();) {
    const int64_t half = (count + 1) / 2;
    const ax_value a = ax_slice_in_dim(x, 0, half, 1, 0), da = ax_slice_in_dim(dx, 0, half, 1, 0),
                   b = second_half(x, half, count, 1), db = second_half(dx, half, count, 0);
    dx = ax_add(ax_mul(da, b), ax_mul(a, db));
    x = ax_mul(a, b);
    count = half;
  }
  args->tangent_out[0] = ax_squeeze(dx, AX_DIMS(0));
}
