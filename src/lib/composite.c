/* Functions made of primitives: no record of their own, so every transform goes through them. Values and gradients are those of
   jax.numpy and jax.nn. */
#include <math.h>

#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/shape.h"

static bool is_float(const char *function, const ax_type *type) {
  if (ax_is_float(type->dtype)) return true;
  ax_reject_as(function, "the operand is %s; it must be a float", ax_operand_string(type));
  return false;
}

ax_value ax_where(ax_value condition, ax_value x, ax_value y) {
  static const char name[] = "where";
  ax_value all[] = {condition, x, y};
  ax_type types[3];
  if (!ax_check_operands(name, all, 3)) return ax_poison;
  ax_give_parts(name, all + 1);
  ax_give_dtype(name, all + 1, 2);
  if (!ax_operand(name, condition, types) || !ax_operands(name, 2, all + 1, types + 1)) return ax_poison;
  if (types[0].dtype != AX_BOOL) return ax_reject_as(name, "the condition is %s; it must be bool", ax_operand_string(&types[0]));
  if (!ax_broadcast_together(all, 3))
    return ax_reject_as(name, "%s, %s and %s do not broadcast to one shape", ax_operand_string(&types[0]),
                        ax_operand_string(&types[1]), ax_operand_string(&types[2]));
  return ax_select_n(all[0], all[2], all[1]);
}

/* Not max(x, 0) alone: flat at 0, where max would share the tangent, and at NaN. */
ax_value ax_relu(ax_value x) {
  ax_type type;
  if (!ax_operand("relu", x, &type)) return ax_poison;
  if (type.dtype == AX_BOOL) return ax_reject_as("relu", "the operand is %s; it must be numeric", ax_operand_string(&type));
  ax_value zero = ax_full_like(x, 0);
  return ax_select_n(ax_gt(x, zero), ax_max(ax_stop_gradient(x), zero), x);
}

/* max(x, 0) + log(1 + e^-|x|), of which each is finite where x is. At 0 the derivatives are 1 - 1/2, as abs rises there. */
ax_value ax_softplus(ax_value x) {
  ax_type type;
  if (!ax_operand("softplus", x, &type)) return ax_poison;
  if (!ax_is_float(type.dtype))
    return ax_reject_as("softplus", "the operand is %s; it must be of floats", ax_operand_string(&type));
  return ax_add(ax_where(ax_ge(x, ax_integer(0)), x, ax_integer(0)), ax_log1p(ax_exp(ax_neg(ax_abs(x)))));
}

/* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
ax_value ax_gelu(ax_value x) {
  ax_type type;
  if (!ax_operand("gelu", x, &type) || !is_float("gelu", &type)) return ax_poison;
  ax_value cubic = ax_mul(ax_full_like(x, 0.044715), ax_integer_pow(x, 3));
  ax_value inner = ax_mul(ax_full_like(x, sqrt(2 / 3.14159265358979323846)), ax_add(x, cubic));
  ax_value share = ax_mul(ax_full_like(x, 0.5), ax_add(ax_full_like(x, 1), ax_tanh(inner)));
  return ax_mul(x, share);
}

ax_value ax_expand_dims(ax_value x, int64_t dimension) {
  ax_dims dims;
  ax_type type;
  if (!ax_operand("expand_dims", x, &type)) return ax_poison;
  if (type.rank == AX_MAX_RANK) return ax_reject_as("expand_dims", "the rank would exceed %d", AX_MAX_RANK);
  if (!ax_dimension("expand_dims", "dimension", &dimension, type.rank + 1) ||
      !ax_dims_take(&ax_prim_reshape, type.rank, type.dims, &dims) ||
      !ax_dims_insert(&ax_prim_reshape, &dims, (uint32_t)dimension, 1))
    return ax_poison;
  return ax_reshape(x, AX_LIST(dims.count, dims.v));
}

/* --- Softmax --- */

/* x less its maximum along the axis, so that no exponential overflows; the axis, counted from 0. No tangent goes through the
   maximum: it cancels out. */
static bool shifted(const char *function, ax_value x, int64_t axis, ax_dims *axes, ax_value *out) {
  ax_type type;
  *axes = (ax_dims){1, {axis}};
  if (!ax_operand(function, x, &type) || !is_float(function, &type) || !ax_dimension(function, "axis", &axes->v[0], type.rank))
    return false;
  *out = ax_sub(x, ax_repeat(ax_reduce_max(ax_stop_gradient(x), AX_LIST(1, axes->v), false), &type, axes));
  return !ax_failed();
}

ax_value ax_softmax(ax_value x, int64_t axis) {
  ax_value y;
  ax_dims axes;
  if (!shifted("softmax", x, axis, &axes, &y)) return ax_poison;
  ax_type type = ax_typeof(y);
  ax_value e = ax_exp(y);
  return ax_div(e, ax_repeat(ax_reduce_sum(e, AX_LIST(1, axes.v), false), &type, &axes));
}

ax_value ax_log_softmax(ax_value x, int64_t axis) {
  ax_value y;
  ax_dims axes;
  if (!shifted("log_softmax", x, axis, &axes, &y)) return ax_poison;
  ax_type type = ax_typeof(y);
  return ax_sub(y, ax_repeat(ax_log(ax_reduce_sum(ax_exp(y), AX_LIST(1, axes.v), false)), &type, &axes));
}

/* Indices outside 0 .. classes give zeros. An index dtype that does not count to `classes` is widened. */
ax_value ax_one_hot(ax_value indices, int64_t classes, ax_dtype dtype) {
  ax_type type;
  if (!ax_operand("one_hot", indices, &type)) return ax_poison;
  ax_dtype_kind kind = ax_dtype_get(type.dtype)->kind;
  if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED)
    return ax_reject_as("one_hot", "needs integer indices, got %s", ax_operand_string(&type));
  if (classes < 0) return ax_reject_as("one_hot", "there cannot be %lld classes", (long long)classes);
  if (ax_dtype_bytes(dtype) == 0) return ax_reject_as("one_hot", "no such dtype: %d", (int)dtype);
  if (type.rank == AX_MAX_RANK) return ax_reject_as("one_hot", "the rank would exceed %d", AX_MAX_RANK);
  if (classes > 0 && ax_reduce_identity(AX_SCALAR_MIN, type.dtype).u < (uint64_t)classes) type.dtype = AX_S64;
  ax_dims dims, last = {1, {type.rank}};
  if (!ax_dims_take(&ax_prim_iota, type.rank, type.dims, &dims) ||
      !ax_dims_insert(&ax_prim_iota, &dims, type.rank, classes))
    return ax_poison;
  ax_value class_of = ax_iota(type.dtype, AX_LIST(dims.count, dims.v), type.rank);
  ax_type wide = ax_typeof(class_of);
  ax_value index = ax_repeat(ax_convert_element_type(indices, type.dtype), &wide, &last);
  return ax_convert_element_type(ax_eq(index, class_of), dtype);
}

/* --- Products --- */

/* How matmul's leading dimensions go together. One that both operands have, of one size, is a batch dimension of the product;
   one that only one has, or that the other has as 1, is a free dimension of the one, and dropped from the other: nothing is
   repeated in memory. The product's dimensions are then put back in order. */
typedef struct pairing {
  ax_dims lhs_kept, rhs_kept, lhs_batch, rhs_batch; /* sizes that stay; which of them are paired */
  uint32_t count;                                   /* leading dimensions of the result */
  enum { both, left, right } owner[AX_MAX_RANK];
} pairing;

static uint32_t leading(const ax_type *type) { return type->rank > 2 ? type->rank - 2 : 0; }

static void keep(ax_dims *kept, int64_t size) { kept->v[kept->count++] = size; }

static bool pair_up(const ax_type *lhs, const ax_type *rhs, pairing *p) {
  uint32_t nl = leading(lhs), nr = leading(rhs);
  *p = (pairing){.count = nl > nr ? nl : nr};
  for (uint32_t i = 0; i < p->count; i++) {
    bool in_left = i + nl >= p->count, in_right = i + nr >= p->count;
    int64_t sl = in_left ? lhs->dims[i + nl - p->count] : 1, sr = in_right ? rhs->dims[i + nr - p->count] : 1;
    p->owner[i] = in_left && in_right && sl == sr ? both : in_left && sr == 1 ? left : right;
    if (p->owner[i] == right && sl != 1) return false;
    if (p->owner[i] == both) {
      keep(&p->lhs_batch, p->lhs_kept.count);
      keep(&p->rhs_batch, p->rhs_kept.count);
    }
    if (p->owner[i] != right) keep(&p->lhs_kept, sl);
    if (p->owner[i] != left) keep(&p->rhs_kept, sr);
  }
  for (uint32_t d = nl; d < lhs->rank; d++) keep(&p->lhs_kept, lhs->dims[d]);
  for (uint32_t d = nr; d < rhs->rank; d++) keep(&p->rhs_kept, rhs->dims[d]);
  return true;
}

/* p: how they go together. False: they do not, and the trace has failed. */
static bool match(const ax_type *lhs, const ax_type *rhs, pairing *p) {
  int64_t last = lhs->rank > 0 ? lhs->dims[lhs->rank - 1] : 0,
          other = rhs->rank > 0 ? rhs->dims[rhs->rank > 1 ? rhs->rank - 2 : 0] : 0;
  if (lhs->dtype != AX_BOOL && lhs->rank > 0 && rhs->rank > 0 && last == other && pair_up(lhs, rhs, p)) return true;
  const char *left = ax_operand_string(lhs), *right = ax_operand_string(rhs);
  if (lhs->dtype == AX_BOOL)
    ax_reject_as("matmul", "operand 0 is %s; it must be numeric", left);
  else if (lhs->rank == 0 || rhs->rank == 0)
    ax_reject_as("matmul", "takes no %s and %s: scalars", left, right);
  else if (last != other)
    ax_reject_as("matmul", "%s and %s: the last dimension of the first is %lld, but the %s of the second %lld", left, right,
                 (long long)last, rhs->rank > 1 ? "last but one" : "dimension", (long long)other);
  else
    ax_reject_as("matmul", "takes no %s and %s: leading dimensions differ", left, right);
  return false;
}

ax_value ax_matmul(ax_value a, ax_value b) {
  ax_value in[] = {a, b};
  ax_type types[2];
  pairing p;
  if (!ax_operands("matmul", 2, in, types) || !match(&types[0], &types[1], &p)) return ax_poison;
  ax_type lhs = types[0], rhs = types[1];
  int64_t lhs_contract = p.lhs_kept.count - 1, rhs_contract = (int64_t)p.rhs_kept.count - (rhs.rank > 1 ? 2 : 1);
  a = ax_reshape(a, AX_LIST(p.lhs_kept.count, p.lhs_kept.v));
  b = ax_reshape(b, AX_LIST(p.rhs_kept.count, p.rhs_kept.v));
  ax_value product =
      ax_dot_general(a, b, AX_LIST(1, &lhs_contract), AX_LIST(1, &rhs_contract), AX_LIST(p.lhs_batch.count, p.lhs_batch.v),
                     AX_LIST(p.lhs_batch.count, p.rhs_batch.v));
  int64_t order[AX_MAX_RANK], next_both = 0, next_left = p.lhs_batch.count, next_right = p.lhs_kept.count - 1;
  for (uint32_t i = 0; i < p.count; i++)
    order[i] = p.owner[i] == both ? next_both++ : p.owner[i] == left ? next_left++ : next_right++;
  uint32_t rank = p.count;
  if (lhs.rank > 1) order[rank++] = next_left;
  if (rhs.rank > 1) order[rank++] = next_right;
  return ax_transpose(product, order);
}
