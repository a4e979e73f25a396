/* What primitive files share: binding, shared rules for the record's slots, and small helpers. */
#ifndef AX_PRIM_RULES_H
#define AX_PRIM_RULES_H

#include "axle/collectives.h"
#include "axle/ops.h"
#include "hlo/hlo.h"
#include "ir/program.h"
#include "ir/region_link.h"
#include "plan/lower.h"

/* --- Binding: how an equation is added. Casts the operands of all but a REGION first so that they spread alike. --- */
void ax_bind(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count, ax_value *out,
             uint32_t out_count);
ax_value ax_bind1(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count); /* one result */
/* Fails the trace with a message that names the primitive; returns poison. */
ax_value ax_reject(const ax_prim *prim, const char *format, ...) AX_PRINTF(2, 3);
/* The same of a function that is no primitive: messages name what the user called. */
ax_value ax_reject_as(const char *function, const char *format, ...) AX_PRINTF(2, 3);
/* Counts a negative dimension from the end; false and the trace failed when 0 <= dimension < rank does not hold then. */
bool ax_dimension(const char *function, const char *what, int64_t *dimension, uint32_t rank);
/* NumPy broadcasting of n values to one shape, by broadcast_in_dim where needed. False: there is none, and nothing was done. */
bool ax_broadcast_together(ax_value *values, uint32_t count);
/* Numbers become scalars of the dtype of the first value that is none. */
void ax_give_dtype(const char *function, ax_value *values, uint32_t count);
/* For two operands that must both be parts of sums or neither: the number 0 becomes unreduced zeros where the other one is
   unreduced. */
void ax_give_parts(const char *function, ax_value *pair);
/* A number as a scalar of this dtype, any other value as it is; in `function`'s name. */
ax_value ax_as(const char *function, ax_value value, ax_dtype dtype);
/* A number's bits as an element of the dtype; false, and the trace has failed, where the dtype cannot hold it. */
bool ax_number_bits(const char *function, ax_value number, ax_dtype dtype, int64_t *bits);
double ax_number_real(ax_value number); /* rounded to a double */
ax_value ax_number_times(const char *function, ax_value number, int64_t factor); /* of the number's kind; factor > 0 */
/* A scratch array of the current trace's arena; fails the trace and returns NULL when there is no memory. */
void *ax_trace_alloc(size_t bytes);

/* Copies the elements of a tensor of the same size and dtype. */
void ax_tensor_assign(ax_tensor *to, const ax_tensor *from);

/* --- Tangents and cotangents, where the symbolic zero may stand --- */
ax_value ax_add_any(ax_value a, ax_value b);
ax_value ax_filled(const ax_type *type, double value); /* an array of this type; unreduced: whose parts come to this */
ax_value ax_zeros_of(const ax_type *type);
ax_value ax_zero_cotangent(const ax_type *primal); /* real zeros of the dual type */
ax_value ax_instantiate(ax_value tangent, ax_value primal_like); /* real zeros of its tangent's type for a symbolic zero */
ax_value ax_zero_like(ax_value x); /* the scalar 0 of x's dtype, spread as x is */

/* --- Spreading over the mesh (spread.c, casts.c) --- */
/* Makes x vary over all of `varying`: pvary from where it is invariant, reduced_vary_cast from where it is reduced. Where it is
   unreduced it stays so, which whoever uses it then refuses. */
ax_value ax_vary_to(ax_value x, ax_axis_set varying);
/* The same, and reduced over those of wanted->reduced along which it is invariant. */
ax_value ax_spread_to(ax_value x, const ax_spread *wanted);
/* What operands are to be cast to beside those there are: `all` starts as {0}. */
void ax_spread_meet(ax_spread *all, const ax_spread *on);
/* The operands cast so that they spread alike, `in` itself where they do. NULL: the trace has failed. */
const ax_value *ax_spread_together(const ax_value *in, uint32_t count);
/* x cast along `axes`, by a cast without a kind; x where there are none. */
ax_value ax_cast(const ax_prim *prim, ax_value x, ax_axis_set axes);
/* vary_unreduced_cast along `axes`. */
ax_value ax_cast_unreduced(ax_value x, ax_axis_set axes, ax_unreduced_kind kind);
/* The parts of what is unreduced by max or min, as values that vary; any other x as it is. */
ax_value ax_own_parts(ax_value x);
/* x on the first member along the names, zeros on the others: parts that add up to x where it is the same on all. */
ax_value ax_once(ax_value x, const ax_axes *names);
/* x, which is invariant, as a value that spreads so: parts are made that come to it. */
ax_value ax_placed(ax_value x, const ax_spread *on);
/* What the operands come to along `axes`, as the head of spread.c says; refuses those that do not go together. */
AX_MUST_USE ax_status ax_spread_join(const ax_infer_args *args, ax_axis_set axes, ax_spread *out);
typedef enum ax_axis_state { AX_IS_INVARIANT, AX_IS_VARYING, AX_IS_REDUCED, AX_IS_UNREDUCED } ax_axis_state;
ax_axis_state ax_spread_state(const ax_spread *on, uint32_t axis);
const char *ax_state_name(const ax_spread *on, uint32_t axis); /* "varying" */
/* What to do with a value unreduced of this kind: "unreduced_pmax makes it invariant". */
const char *ax_reduce_advice(ax_unreduced_kind kind);

/* --- Shared rules --- */
/* LOCAL primitives: operands and results as the head of spread.c says. */
ax_status ax_spread_local(const ax_infer_args *args);
/* Regions: the results as infer has them from the bodies. */
ax_status ax_spread_body(const ax_infer_args *args);
/* The result is the operand, whatever its type: copied by reference, the same memory when lowered, the same value in StableHLO. */
ax_status ax_eval_same(const ax_eval_args *args);
ax_status ax_lower_same(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
ax_status ax_hlo_same(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* The results vary wherever an operand does. */
void ax_differs_union(const ax_differs_args *args);
/* Regions of one program, or `derived` ones, that are calls: operand i is input i of each program, output k is result k. Whatever
   else a program takes or gives is its own. */
ax_region_link ax_region_links_call(const ax_region_link_args *args);
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
ax_status ax_absent_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* For a product, linear in either operand but not in both: false, and the trace has failed, when both are asked for. */
bool ax_linear_in_one(const ax_transpose_args *args);

/* --- Factors (shard.c) --- */
/* Nothing is cut: what each device computes whole. Also the rule of all REGIONs. */
void ax_shard_whole(const ax_shard_args *args);
/* Pointwise primitives: the dimensions of all that have any are those of the result. */
void ax_shard_pointwise(const ax_shard_args *args);
/* Collectives of one operand: the dimensions are the result's, but for those that change; a bit each. Over groups they are not
   asked. */
void ax_shard_kept(const ax_shard_args *args, uint64_t changed);
/* A new factor. */
uint32_t ax_factor(const ax_shard_args *args, int64_t size, ax_factor_kind kind);
/* The factor is the next of dimension d. */
void ax_factor_of(ax_factored *tensor, int64_t d, uint32_t factor);
/* The factor counts positions of windows over dimension d. */
void ax_factor_reaches(ax_factored *tensor, int64_t d, uint32_t factor, ax_reach reach);
/* Where this device's block of `size` along dimension d begins, of an array that is cut so: a scalar of `dtype`. */
ax_value ax_spec_start(const ax_spec *spec, uint32_t d, int64_t size, ax_dtype dtype);
/* Where this device's block of result k begins along dimension d, a scalar of `dtype`. */
ax_value ax_block_start(const ax_block_args *args, uint32_t k, uint32_t d, ax_dtype dtype);

/* --- Batching helpers --- */
/* Moves dimension `from` to `to`. */
ax_value ax_move_dim(ax_value x, int from, int to);
/* x with its batch dimension in front: moved there, or broadcast there when it has none. (It then varies over the axes that the
   batch is split over.) */
ax_value ax_batch_front(ax_value x, int dim, int64_t size);

/* --- Simplification helpers --- */
/* The equation of `prim` that made the equation's operand k; NULL when something else did. */
const ax_eqn *ax_simplify_operand(const ax_simplify_args *args, uint32_t k, const ax_prim *prim);
/* Whether every element of operand k is `value`, zeros told apart by their sign. */
bool ax_simplify_is(const ax_simplify_args *args, uint32_t k, double value);
/* The equation takes x for its operand k, and `params`, of the size of its own, from now on. */
void ax_simplify_replace(const ax_simplify_args *args, uint32_t k, uint32_t x, const void *params);

/* --- StableHLO helpers --- */
/* The rule of primitives with a form: the op it names. */
ax_status ax_hlo_by_form(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* One op, same operands, results and types as the equation's. */
ax_status ax_hlo_simple(ax_hlo *hlo, const ax_eqn *eqn, const char *name, const uint32_t *in, const char *attributes,
                        uint32_t *out);
/* The region of an op that combines by ADD, MUL, MAX or MIN: two scalars of `dtype` to one. */
void ax_hlo_combination(ax_hlo *hlo, ax_scalar op, ax_dtype dtype);

#endif
