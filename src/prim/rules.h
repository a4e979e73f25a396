/* Rules that many records share, one group for each slot of a record (ir/prim.h), and small functions that rules call. What binds
   equations is in prim/bind.h. Lowering and StableHLO are known here by name only; a file whose rules lower or export includes
   plan/lower.h or hlo/hlo.h. */
#ifndef AX_PRIM_RULES_H
#define AX_PRIM_RULES_H

#include "ir/prim.h"
#include "ir/region_link.h"
#include "prim/bind.h"

/* --- Shared rules --- */
/* The common spread of the operands along `axes`, by the rules at the head of spread.c. Refuses operands that have none. */
AX_MUST_USE ax_status ax_spread_join(const ax_infer_args *args, ax_axis_set axes, ax_spread *out);
/* LOCAL primitives: the common spread of the operands is that of the results (spread.c). */
ax_status ax_spread_local(const ax_infer_args *args);
/* Each result spreads as the operand at its place; binding leaves the operands as they are. */
ax_status ax_spread_each(const ax_infer_args *args);
/* REGIONs: the results' spreads are those that infer took from the bodies. */
ax_status ax_spread_body(const ax_infer_args *args);
/* The result is the operand under another type: copied by reference, the same memory when lowered, the same value in StableHLO. */
ax_status ax_eval_same(const ax_eval_args *args);
ax_status ax_lower_same(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
ax_status ax_hlo_same(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* The results vary wherever an operand does. */
void ax_differs_union(const ax_differs_args *args);
/* Regions of one program, or `derived` ones, that are calls: operand i is input i of each program, output k is result k. A
   program's other inputs and outputs are its own. */
ax_region_link ax_region_links_call(const ax_region_link_args *args);
/* For f linear in all operands together: binds the same equation on the tangents. */
void ax_jvp_linear(const ax_jvp_args *args);
/* Slots that many records fill alike. AX_LINEAR_TANGENTS: for primitives that are linear in all operands together. AX_LINEAR_RULES:
   for those that also only move each device's numbers, of any dtype, to another place. */
#define AX_LINEAR_TANGENTS .linear = AX_LINEAR_ALL, .jvp = ax_jvp_linear, .linearize = ax_jvp_linear
#define AX_LINEAR_RULES AX_LINEAR_TANGENTS, .kinds = AX_KINDS_ALL, .spread = ax_spread_local, .differs = ax_differs_union
/* For results without tangents (integers, comparisons): binds, and the tangents are zero. */
void ax_jvp_zero(const ax_jvp_args *args);
/* Pointwise primitives: all operands have one shape (after infer); their batch dimensions are moved in front. */
void ax_batch_pointwise(const ax_batch_args *args);
/* The rule of primitives without simplifications. */
void ax_simplify_nothing(const ax_simplify_args *args);
/* The rules of primitives without such a rule: AX_ABSENT, "argmax has no transpose rule". */
void ax_absent_jvp(const ax_jvp_args *args);
void ax_absent_transpose(const ax_transpose_args *args);
ax_status ax_absent_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* For a product, linear in either operand but not in both. False: both are asked for; the trace has failed. */
bool ax_linear_in_one(const ax_transpose_args *args);

/* --- Complex numbers: rules for the slot `complex` (complex.c). Parts that are computed apart stay apart (plan/parts.c). --- */
/* For operations whose `lower` rule hands whole values on, or copies bytes, whatever their dtype. */
ax_status ax_complex_whole(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* For operations that are linear in their complex operands together, and whose results are all complex: the same equation on the
   real parts and on the imaginary parts. Other operands, such as indices and conditions, are those of both. */
ax_status ax_complex_parts(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* For products of two operands: the same equation on real and imaginary parts, four times. */
ax_status ax_complex_product(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

/* --- Keys: rules for the slot `keys` (words.c). StableHLO has a key[d..] as ui32[d.., 2]. --- */
/* For operations whose `hlo` rule says nothing of the last dimension, or hands whole values on. */
ax_status ax_keys_whole(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* For operations whose results are all keys: the same equation on the words, batched over them. */
ax_status ax_keys_words(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

/* --- Factors (shard.c) --- */
/* Nothing is cut: each device computes the whole. Also the rule of all REGIONs. */
void ax_shard_whole(const ax_shard_args *args);
/* Pointwise primitives: each dimension of an operand that has any is the result's dimension. */
void ax_shard_pointwise(const ax_shard_args *args);
/* Collectives of one operand: its dimensions are the result's, except those in the bits `changed`. Collectives over groups are not
   asked. */
void ax_shard_kept(const ax_shard_args *args, uint64_t changed);
/* Adds a factor. */
uint32_t ax_factor(const ax_shard_args *args, int64_t size, ax_factor_kind kind);
/* Gives dimension d one more factor. */
void ax_factor_of(ax_factored *tensor, int64_t d, uint32_t factor);
/* Gives dimension d a factor that counts the positions of windows over it. */
void ax_factor_reaches(ax_factored *tensor, int64_t d, uint32_t factor, ax_reach reach);
/* The first index of this device's block along dimension d, of an array that spec cuts and that has `size` elements there: a scalar
   of `dtype`. */
ax_value ax_spec_start(const ax_spec *spec, uint32_t d, int64_t size, ax_dtype dtype);
/* The first index of this device's block of result k along dimension d: a scalar of `dtype`. */
ax_value ax_block_start(const ax_block_args *args, uint32_t k, uint32_t d, ax_dtype dtype);
/* bool[block]: which elements of this device's block along dimension d, of an array that spec cuts, are of the array's `size`. */
ax_value ax_spec_unpadded(const ax_spec *spec, uint32_t d, const ax_type *block, int64_t size);
/* The axes that cut dimension d of operand k; whether the last blocks end in padding. */
ax_axes ax_block_axes(const ax_block_args *args, uint32_t k, uint32_t d, bool *padded);
/* Whether an element of operand k's block is one of the whole array, along those of these dimensions that are padded. */
ax_value ax_block_unpadded(const ax_block_args *args, uint32_t k, const ax_dims *dims);

/* --- Simplification helpers --- */
/* The equation that made operand k, if it is one of `prim`; otherwise NULL. */
const ax_eqn *ax_simplify_operand(const ax_simplify_args *args, uint32_t k, const ax_prim *prim);
/* The equation that made a value, or that made what it only repeats; NULL: an input, or there are too many on the way. */
const ax_eqn *ax_behind_repeats(const ax_eqn *const *made_by, uint32_t id);
/* Says whether every element of operand k is `value`; 0 and -0 are different. */
bool ax_simplify_is(const ax_simplify_args *args, uint32_t k, double value);
/* Replaces operand k of the equation by x, and its parameters by `params`, which has their size. */
void ax_simplify_replace(const ax_simplify_args *args, uint32_t k, uint32_t x, const void *params);

/* --- StableHLO helpers --- */
/* The rule of primitives with a form: writes the op that the form names. */
ax_status ax_hlo_by_form(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* The other way: binds the primitive for an op that its form names; also a reader of ops that a primitive's file lists. */
ax_status ax_hlo_read_by_form(const ax_hlo_read_args *args);
struct ax_hlo_attribute; /* hlo/module.h */
struct ax_hlo_operation;
struct ax_hlo_attributes; /* hlo/hlo.h */
/* The value of dense<..>; of equal elements one is written, which is broadcast. */
AX_MUST_USE ax_status ax_hlo_elements_value(const struct ax_hlo_attribute *elements, ax_value *out);
/* Says whether the op reduces one operand, of real numbers, and its second operand is a constant that is neutral in `op`. */
bool ax_hlo_starts_neutral(const ax_hlo_read_args *args, ax_scalar op);
/* The attributes that the primitive's form has, of these parameters. */
void ax_hlo_add_fields(struct ax_hlo_attributes *to, const ax_prim *prim, const void *params);
/* The same the other way; *params is zero before. AX_INVALID_ARGUMENT: attributes that are missing, or something else. */
AX_MUST_USE ax_status ax_hlo_read_fields(const ax_hlo_read_args *args, const ax_prim *prim, void *params);
/* Writes one op with the equation's operands, results and types. `attributes` may be NULL. */
ax_status ax_hlo_simple(ax_hlo *hlo, const ax_eqn *eqn, const char *name, const uint32_t *in,
                        const struct ax_hlo_attributes *attributes, uint32_t *out);
/* The region of an op that combines by ADD, MUL, MAX, MIN, AND, OR or XOR: two scalars of `dtype` to one. */
void ax_hlo_combination(ax_hlo *hlo, ax_scalar op, ax_dtype dtype);
const char *ax_hlo_combination_name(ax_scalar op); /* "stablehlo.add" */
/* By what a region combines two scalars; AX_SCALAR_NONE: it does something else. */
ax_scalar ax_hlo_body_scalar(const struct ax_hlo_operation *op, uint32_t region);
/* The one of the primitives whose form has this reducer; NULL: none has. */
const ax_prim *ax_hlo_reducer_of(const ax_prim *const *family, uint32_t count, ax_scalar op);
/* Single ops. compare: a direction, "GE", and a type of comparison or NULL; to truth values in the shape of `type`. */
uint32_t ax_hlo_compare(ax_hlo *hlo, const char *direction, const char *kind, uint32_t a, uint32_t b, const ax_type *type);
uint32_t ax_hlo_iota(ax_hlo *hlo, const ax_type *type, int64_t dimension);
uint32_t ax_hlo_broadcast(ax_hlo *hlo, uint32_t x, const ax_dims *where, const ax_type *to);

#endif
