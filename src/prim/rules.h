/* What primitive files share: binding, shared rules for the record's slots, and small helpers. */
#ifndef AX_PRIM_RULES_H
#define AX_PRIM_RULES_H

#include "axle/collectives.h"
#include "axle/ops.h"
#include "hlo/hlo.h"
#include "ir/program.h"
#include "loop/lower.h"

/* --- Binding: how an equation is added. Makes the varying sets of a LOCAL primitive's operands equal by pvary first. --- */
void ax_bind(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count, ax_value *out,
             uint32_t out_count);
ax_value ax_bind1(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count); /* one result */
/* Fails the trace with a message that names the primitive; returns poison. */
ax_value ax_reject(const ax_prim *prim, const char *format, ...) AX_PRINTF(2, 3);
/* The same of a function that is no primitive: messages name what the user called. */
ax_value ax_reject_as(const char *function, const char *format, ...) AX_PRINTF(2, 3);
/* Counts a negative dimension from the end; false and the trace failed when 0 <= dimension < rank does not hold then. */
bool ax_dimension(const char *function, const char *what, int64_t *dimension, uint32_t rank);
/* Makes x vary over all of `varying` (adds pvary over those axes it lacks; none when there is nothing to add). */
ax_value ax_vary_to(ax_value x, ax_axis_set varying);
/* NumPy broadcasting of n values to one shape, by broadcast_in_dim where needed. False: there is none, and nothing was done. */
bool ax_broadcast_together(ax_value *values, uint32_t count);
/* Numbers become scalars of the dtype of the first value that is none. */
void ax_give_dtype(const char *function, ax_value *values, uint32_t count);
/* A number as a scalar of this dtype, any other value as it is; in `function`'s name. */
ax_value ax_as(const char *function, ax_value value, ax_dtype dtype);
double ax_number_real(ax_value number); /* rounded to a double */
ax_value ax_number_times(const char *function, ax_value number, int64_t factor); /* of the number's kind; factor > 0 */
/* A scratch array of the current trace's arena; fails the trace and returns NULL when there is no memory. */
void *ax_trace_alloc(size_t bytes);

/* Copies the elements of a tensor of the same size and dtype. */
void ax_tensor_assign(ax_tensor *to, const ax_tensor *from);

/* --- Tangents and cotangents, where the symbolic zero may stand --- */
ax_value ax_add_any(ax_value a, ax_value b);
ax_value ax_filled(const ax_type *type, double value); /* an array of this type; AX_ABSENT for reduced and unreduced ones */
ax_value ax_zeros_of(const ax_type *type);
ax_value ax_zero_cotangent(const ax_type *primal); /* real zeros of the dual type */
ax_value ax_instantiate(ax_value tangent, ax_value primal_like); /* real zeros of primal_like's type for a symbolic zero */

/* --- Shared rules --- */
/* AX_ABSENT for operands that are reduced or unreduced along an axis: what a rule that does not treat them begins with. */
AX_MUST_USE ax_status ax_refuse_reductions(const ax_infer_args *args);
/* LOCAL primitives: all operands vary over the same axes, and so do the results. */
ax_status ax_spread_local(const ax_infer_args *args);
/* Regions: the results as infer has them from the bodies. */
ax_status ax_spread_body(const ax_infer_args *args);
/* The result is the operand, whatever its type: copied by reference, the same memory when lowered, the same value in StableHLO. */
ax_status ax_eval_same(const ax_eval_args *args);
ax_status ax_lower_same(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
ax_status ax_hlo_same(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* The results vary wherever an operand does. */
void ax_differs_union(const ax_differs_args *args);
/* f(x) is linear in all operands together: bind the same on tangents. */
void ax_jvp_linear(const ax_jvp_args *args);
/* Results have no tangent (integers, comparisons): bind, tangents zero. */
void ax_jvp_zero(const ax_jvp_args *args);
/* Pointwise primitives: all operands one shape (after infer); batching moves batch dimensions together in front. */
void ax_batch_pointwise(const ax_batch_args *args);
/* Nothing simpler is known. */
void ax_simplify_nothing(const ax_simplify_args *args);
/* There is no such rule: AX_ABSENT, "argmax has no transpose rule". */
void ax_absent_transpose(const ax_transpose_args *args);
ax_status ax_absent_shard(const ax_shard_args *args);
ax_status ax_absent_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* For a product, linear in either operand but not in both: false, and the trace has failed, when both are asked for. */
bool ax_linear_in_one(const ax_transpose_args *args);

/* --- Batching helpers --- */
/* Moves dimension `from` to `to`. */
ax_value ax_move_dim(ax_value x, int from, int to);
/* x with its batch dimension in front: moved there, or broadcast there when it has none. (It then varies over the axes that the batch is
   split over.) */
ax_value ax_batch_front(ax_value x, int dim, int64_t size);

/* --- Simplification helpers --- */
/* The equation of `prim` that made the equation's operand k; NULL when something else did. */
const ax_eqn *ax_simplify_operand(const ax_simplify_args *args, uint32_t k, const ax_prim *prim);
/* Whether every element of operand k is `value`, zeros told apart by their sign. */
bool ax_simplify_is(const ax_simplify_args *args, uint32_t k, double value);
/* The equation takes x and `params`, of the size of its own, from now on. */
void ax_simplify_replace(const ax_simplify_args *args, uint32_t x, const void *params);

/* --- StableHLO helpers --- */
/* The rule of primitives with a form: the op it names. */
ax_status ax_hlo_by_form(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* One op, same operands, results and types as the equation's. */
ax_status ax_hlo_simple(ax_hlo *hlo, const ax_eqn *eqn, const char *name, const uint32_t *in, const char *attributes,
                        uint32_t *out);
/* The region of an op that combines by ADD, MAX or MIN: two scalars of `dtype` to one. */
void ax_hlo_combination(ax_hlo *hlo, ax_scalar op, ax_dtype dtype);

#endif
