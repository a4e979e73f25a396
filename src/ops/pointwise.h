/* Declarations shared by the files of the pointwise family. */
#ifndef AX_OPS_POINTWISE_H
#define AX_OPS_POINTWISE_H

#include "hlo/hlo.h"
#include "ir/number.h"
#include "ir/prim.h"
#include "prim/rules.h"

ax_status ax_infer_bits(const ax_infer_args *args);    /* bool or integers */
ax_status ax_infer_float(const ax_infer_args *args);
ax_status ax_infer_compare(const ax_infer_args *args); /* operands alike, result bool */
/* Of functions, which have the parameter `accuracy`. */
extern const ax_param ax_function_params[1];
ax_status ax_infer_function(const ax_infer_args *args);
ax_status ax_function_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out); /* by form, with the accuracy */
/* The jvp of a function y = f(x): the tangent times a factor. */
typedef ax_value (*ax_factor_function)(ax_value x, ax_value y);
void ax_jvp_factor(const ax_jvp_args *args, ax_factor_function factor);
ax_status ax_eval_pointwise(const ax_eval_args *args);
ax_status ax_lower_pointwise(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
ax_value ax_bind_binary(const ax_prim *prim, ax_value a, ax_value b); /* broadcasts first */

/* One element: operands of `dtype` -> the result, unrounded; imm: the exponent of INTEGER_POW, the dtype CONVERT and BITCAST
   convert to, the bits of REDUCE_PRECISION. The reference semantics of every scalar operation. */
ax_number ax_scalar_eval(ax_scalar op, ax_dtype dtype, const ax_number *x, int64_t imm);

/* The parameters of reduce_precision (ops/bits.c). */
typedef struct ax_precision_params {
  int64_t exponent_bits, mantissa_bits;
} ax_precision_params;

/* Integers that are ordered as the floats x are in total: by their bits, all of which but the sign are turned where the sign is set. Of
   other dtypes x itself. */
ax_value ax_total_order(ax_value x);

/* The op "stablehlo.text" on the same operands. */
#define AX_FORM(text) (&(const ax_hlo_form){.op = "stablehlo." text})
/* A record of the family, which applies AX_SCALAR_scalar. The first macro takes every rule that differs between members, the last of
   which, hlo, may be followed by further slots (`.complex = ..`); the second is for members that are not linear, likewise; AX_POINTWISE below is for those that are exported by their form. */
#define AX_POINTWISE_RECORD(name_, scalar_, form_, operands, linear_, kinds_, infer_, jvp_, transpose_, simplify_, ...)   \
  const ax_prim ax_prim_##name_ = {                                                                                     \
      .name = #name_, .kind = AX_LOCAL, .cheap = true, .scalar = AX_SCALAR_##scalar_, .form = form_,                        \
      .linear = linear_, .kinds = kinds_, .in_count = operands, .out_count = 1,                                         \
      .infer = infer_, .spread = ax_spread_local, .eval = ax_eval_pointwise, .differs = ax_differs_union,               \
      .jvp = jvp_, .linearize = jvp_, .transpose = transpose_, .batch = ax_batch_pointwise,                             \
      .simplify = simplify_, .shard = ax_shard_pointwise, .lower = ax_lower_pointwise, .hlo = __VA_ARGS__,                 \
  }
#define AX_POINTWISE_HLO(name_, scalar_, form_, operands, infer_, jvp_, transpose_, ...) \
  AX_POINTWISE_RECORD(name_, scalar_, form_, operands, AX_LINEAR_NOT, 0, infer_, jvp_, transpose_, ax_simplify_nothing, __VA_ARGS__)
/* A member that has the parameter `accuracy`. */
#define AX_FUNCTION(name_, scalar_, form_, jvp_, ...)                                                                   \
  const ax_prim ax_prim_##name_ = {                                                                                     \
      .name = #name_, .kind = AX_LOCAL, .cheap = true, .scalar = AX_SCALAR_##scalar_, .form = form_,                        \
      .in_count = 1, .out_count = 1, .params = ax_function_params, .param_count = 1, .params_bytes = sizeof(int64_t),      \
      .infer = ax_infer_function, .spread = ax_spread_local, .eval = ax_eval_pointwise, .differs = ax_differs_union,       \
      .jvp = jvp_, .linearize = jvp_, .transpose = ax_absent_transpose, .batch = ax_batch_pointwise,                    \
      .simplify = ax_simplify_nothing, .shard = ax_shard_pointwise, .lower = ax_lower_pointwise, .hlo = __VA_ARGS__,       \
  }
#define AX_POINTWISE(name_, scalar_, form_, operands, infer_, jvp_, transpose_) \
  AX_POINTWISE_HLO(name_, scalar_, form_, operands, infer_, jvp_, transpose_, ax_hlo_by_form)

#endif
