/* Comparisons, logic, choice and conversion: members of the pointwise family.

     eq ne lt le gt ge      T[d..] T[d..] -> bool[d..]         NaN: only ne holds
     and or not             T[d..] .. -> T[d..]                T bool, or an integer (bit by bit)
     select_n               bool[d..] or bool[], T[d..] T[d..] -> T[d..]     the first case where false, the second where true
     convert_element_type   T[d..] -> dtype[d..]               parameter: dtype; see ax_number_convert
     stop_gradient          T[d..] -> T[d..]                   x, whose tangent is zero

   Errors: shapes or dtypes that differ; a choice that is not bool or of another shape; a dtype that does not exist.
   select_n is linear in its cases, and convert_element_type between floats is linear; all others have no tangent.
   Comparisons of integers that bounds decide become constants when programs are simplified (known_comparison.c).
   Sharding: cuts of every dimension are kept. */
#include <stdio.h>
#include <string.h>

#include "hlo/read.h"
#include "machine/float_mode.h"
#include "ops/chosen_update.h"
#include "ops/complex.h"
#include "ops/known_comparison.h"
#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/prims.h"

/* --- Comparisons --- */

/* Floats compare as IEEE says; the kind of comparison follows the dtype. */
static ax_status compare_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  static const char *const kinds[] = {[AX_KIND_BOOL] = "UNSIGNED", [AX_KIND_SIGNED] = "SIGNED",
                                      [AX_KIND_UNSIGNED] = "UNSIGNED", [AX_KIND_FLOAT] = "FLOAT", [AX_KIND_COMPLEX] = "FLOAT"};
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_fields(&attributes, eqn->prim, NULL);
  ax_hlo_add_word(&attributes, "compare_type", kinds[ax_dtype_get(hlo->program->types[eqn->in[0]].dtype)->kind]);
  return ax_hlo_simple(hlo, eqn, eqn->prim->form->op, in, &attributes, out);
}

/* Keys are equal where both words are. */
static ax_value keys_compared(const ax_eqn *eqn, const ax_value *in) {
  ax_value words[2];
  for (int i = 0; i < 2; i++) words[i] = ax_bind1(&ax_prim_random_unwrap, NULL, &in[i], 1);
  const ax_value each = ax_bind1(eqn->prim, NULL, words, 2);
  if (ax_failed()) return ax_poison;
  const int64_t last = (int64_t)ax_typeof(each).rank - 1;
  return eqn->prim == &ax_prim_eq ? ax_reduce_and(each, AX_LIST(1, &last), false) : ax_reduce_or(each, AX_LIST(1, &last), false);
}

static ax_status compare_keys(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, keys_compared, in, out);
}

#define COMPARE(direction) (&(const ax_hlo_form){.op = "stablehlo.compare", .word_of = "comparison_direction", .word = direction})

ax_value ax_total_order(ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed() || !ax_is_float(type.dtype)) return x;
  if (ax_dtype_get(type.dtype)->bits < 8) return ax_total_order(ax_convert_element_type(x, AX_BF16)); /* exact, with the signs of zeros */
  static const ax_dtype of_size[] = {[1] = AX_S8, [2] = AX_S16, [4] = AX_S32, [8] = AX_S64};
  const size_t bytes = ax_dtype_bytes(type.dtype);
  const ax_value bits = ax_bitcast_convert_type(x, of_size[bytes]);
  const ax_value sign = ax_shift_right_arithmetic(bits, ax_integer((int64_t)(8 * bytes) - 1));
  const ax_value all_but_sign = ax_integer(bytes == 8 ? INT64_MAX : ((int64_t)1 << (8 * bytes - 1)) - 1);
  return ax_xor(bits, ax_and(sign, all_but_sign));
}

/* The comparison whose form has the op's direction. */
static ax_status compare_read(const ax_hlo_read_args *args) {
  static const ax_prim *const family[] = {&ax_prim_eq, &ax_prim_ne, &ax_prim_lt, &ax_prim_le, &ax_prim_gt, &ax_prim_ge};
  const ax_hlo_attribute *direction = ax_hlo_find(args->op, "comparison_direction"), *type = ax_hlo_find(args->op, "compare_type");
  ax_value in[] = {args->in[0], args->in[1]};
  if (args->op->operand_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes 2 operands, and here are %u", args->op->operand_count);
  for (int i = 0; i < 2 && type != NULL && ax_hlo_slice_is(type->text, "TOTALORDER"); i++) in[i] = ax_total_order(in[i]);
  for (size_t i = 0; direction != NULL && i < AX_COUNT(family); i++) {
    if (!ax_hlo_slice_is(direction->text, family[i]->form->word)) continue;
    args->out[0] = ax_bind1(family[i], NULL, in, 2);
    return AX_OK;
  }
  return ax_error(AX_INVALID_ARGUMENT, "comparison_direction must be EQ, NE, LT, LE, GT or GE");
}

static const ax_hlo_reader compare_readers[] = {{"stablehlo.compare", compare_read}, {0}};
AX_POINTWISE_HLO(eq, EQ, COMPARE("EQ"), 2, ax_infer_compare, ax_jvp_zero, ax_absent_transpose, compare_hlo,
                 .complex = ax_complex_pointwise, .keys = compare_keys, .rewrite = ax_rewrite_comparison, .reads = compare_readers);
AX_POINTWISE_HLO(ne, NE, COMPARE("NE"), 2, ax_infer_compare, ax_jvp_zero, ax_absent_transpose, compare_hlo,
                 .complex = ax_complex_pointwise, .keys = compare_keys, .rewrite = ax_rewrite_comparison);
AX_POINTWISE_HLO(lt, LT, COMPARE("LT"), 2, ax_infer_compare, ax_jvp_zero, ax_absent_transpose, compare_hlo, .rewrite = ax_rewrite_comparison);
AX_POINTWISE_HLO(le, LE, COMPARE("LE"), 2, ax_infer_compare, ax_jvp_zero, ax_absent_transpose, compare_hlo, .rewrite = ax_rewrite_comparison);
AX_POINTWISE_HLO(gt, GT, COMPARE("GT"), 2, ax_infer_compare, ax_jvp_zero, ax_absent_transpose, compare_hlo, .rewrite = ax_rewrite_comparison);
AX_POINTWISE_HLO(ge, GE, COMPARE("GE"), 2, ax_infer_compare, ax_jvp_zero, ax_absent_transpose, compare_hlo, .rewrite = ax_rewrite_comparison);

/* --- Logic --- */

AX_POINTWISE(and, AND, AX_FORM("and"), 2, ax_infer_bits, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE(or, OR, AX_FORM("or"), 2, ax_infer_bits, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE(not, NOT, AX_FORM("not"), 1, ax_infer_bits, ax_jvp_zero, ax_absent_transpose);

/* --- select_n --- */

static ax_status select_infer(const ax_infer_args *args) {
  const ax_type *which = &args->in[0], *no = &args->in[1], *yes = &args->in[2];
  if (which->dtype != AX_BOOL)
    return ax_error(AX_INVALID_ARGUMENT, "what chooses must be bool, got %s", ax_dtype_name(which->dtype));
  if (no->dtype != yes->dtype || !ax_same_shape(no, yes))
    return ax_error(AX_INVALID_ARGUMENT, "the cases differ: %s and %s", ax_type_string(no, args->axes),
                    ax_type_string(yes, args->axes));
  if (which->rank != 0 && !ax_same_shape(which, no))
    return ax_error(AX_INVALID_ARGUMENT, "what chooses must be a scalar or of the cases' shape: %s and %s",
                    ax_type_string(which, args->axes), ax_type_string(no, args->axes));
  args->out[0] = ax_array_type(no->dtype, AX_LIST(no->rank, no->dims));
  return AX_OK;
}

static ax_status select_eval(const ax_eval_args *args) {
  const ax_tensor *which = args->in[0], *out = args->out[0];
  const uint8_t *chosen = which->data;
  size_t bytes = ax_dtype_bytes(out->dtype), elems = (size_t)ax_dims_elems(out->rank, out->dims);
  for (size_t i = 0; i < elems; i++) {
    const ax_tensor *from = args->in[chosen[which->rank == 0 ? 0 : i] != 0 ? 2 : 1];
    memcpy((char *)out->data + i * bytes, (const char *)from->data + i * bytes, bytes);
  }
  return AX_OK;
}

static void select_jvp(const ax_jvp_args *args) {
  ax_value tangents[] = {args->in[0], args->tangent_in[1], args->tangent_in[2]};
  args->out[0] = ax_bind1(&ax_prim_select_n, NULL, args->in, 3);
  args->tangent_out[0] = ax_zero;
  if (ax_is_zero(tangents[1]) && ax_is_zero(tangents[2])) return;
  for (int k = 1; k < 3; k++) tangents[k] = ax_instantiate(tangents[k], args->in[k]);
  args->tangent_out[0] = ax_bind1(&ax_prim_select_n, NULL, tangents, 3);
}

/* The cotangent goes to the case that was chosen; the other gets zeros there. */
static void select_transpose(const ax_transpose_args *args) {
  for (int k = 1; k < 3; k++) {
    if (!args->linear[k]) continue;
    ax_value cases[] = {args->in[0], args->cotangent[0], args->cotangent[0]};
    cases[3 - k] = ax_zero_cotangent(&args->in_types[k]);
    args->out[k] = ax_bind1(&ax_prim_select_n, NULL, cases, 3);
  }
}

/* A scalar choice between arrays: it stays one when it is not batched, and is stretched over the cases when it is. */
static void select_batch_scalar(const ax_batch_args *args) {
  ax_value in[] = {args->in[0], args->in[1], args->in[2]};
  for (int k = 1; k < 3; k++) in[k] = ax_batch_front(in[k], args->in_dim[k], args->size);
  if (args->in_dim[0] >= 0) {
    ax_type type = ax_typeof(in[1]);
    int64_t front = 0;
    if (type.dtype != AX_NO_DTYPE) in[0] = ax_broadcast_in_dim(in[0], AX_LIST(type.rank, type.dims), &front);
  }
  args->out[0] = ax_bind1(&ax_prim_select_n, NULL, in, 3);
}

static void select_batch(const ax_batch_args *args) {
  uint32_t rank[2];
  for (int k = 0; k < 2; k++) rank[k] = ax_typeof(args->in[k]).rank - (args->in_dim[k] >= 0);
  if (rank[0] == 0 && rank[1] != 0)
    select_batch_scalar(args);
  else
    ax_batch_pointwise(args);
}

/* Equal cases; a choice that is known. */
static void select_simplify(const ax_simplify_args *args) {
  const uint32_t *in = args->eqn->in;
  if (in[1] == in[2] || ax_simplify_is(args, 0, 0)) args->same[0] = in[1];
  if (ax_simplify_is(args, 0, 1)) args->same[0] = in[2];
}

static ax_status select_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  bool scalar = lower->program->types[eqn->in[0]].rank == 0;
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type->rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  ax_ex which = scalar ? ax_lower_load_scalar(lower, in[0]) : ax_lower_load(lower, in[0], at);
  ax_ex no = ax_lower_load(lower, in[1], at), yes = ax_lower_load(lower, in[2], at);
  ax_ex chosen = ax_kernel_op(lower->kernel, AX_SCALAR_SELECT, type->dtype, which, yes, no);
  ax_lower_store(lower, out[0], at, chosen, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* stablehlo.select has the case for true first. */
static ax_status select_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = hlo->program->types;
  uint32_t operands[] = {in[0], in[2], in[1]};
  out[0] = ax_hlo_op(hlo, "stablehlo.select", operands, 3, NULL, &types[eqn->out], 1);
  return AX_OK;
}

static ax_status select_read(const ax_hlo_read_args *args) {
  if (args->op->operand_count != 3) return ax_error(AX_INVALID_ARGUMENT, "it takes 3 operands, and here are %u", args->op->operand_count);
  args->out[0] = ax_select_n(args->in[0], args->in[2], args->in[1]);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.select", select_read}, {0}};

const ax_prim ax_prim_select_n = {
    .name = "select_n", .kind = AX_LOCAL, .cheap = true, .in_count = 3, .out_count = 1,
    .linear = AX_LINEAR_REST, .kinds = AX_KINDS_ALL,
    .infer = select_infer, .spread = ax_spread_local, .eval = select_eval, .differs = ax_differs_union,
    .jvp = select_jvp, .linearize = select_jvp,
    .transpose = select_transpose, .batch = select_batch,
    .simplify = select_simplify, .rewrite = ax_choose_update, .shard = ax_shard_pointwise, .lower = select_lower,
    .complex = ax_complex_parts, .keys = ax_keys_words, .reads = readers, .hlo = select_hlo,
};

/* --- convert_element_type --- */

typedef struct convert_params {
  ax_dtype dtype;
} convert_params;

static ax_status convert_infer(const ax_infer_args *args) {
  const convert_params *params = args->params;
  ax_type out = ax_array_type(params->dtype, AX_LIST(args->in[0].rank, args->in[0].dims));
  if (ax_dtype_bytes(out.dtype) == 0) return ax_error(AX_INVALID_ARGUMENT, "no such dtype: %d", (int)params->dtype);
  args->out[0] = out;
  return AX_OK;
}

/* Fractions that are cut off each part are not those of the sum; the largest part stays the largest while no bits above are cut
   off. */
static ax_status convert_spread(const ax_infer_args *args) {
  const ax_spread *on = &args->in[0].spread;
  bool to_float = ax_rounds(args->out[0].dtype), from_float = ax_rounds(args->in[0].dtype),
       to_bool = args->out[0].dtype == AX_BOOL;
  bool keeps = on->kind == AX_UNREDUCED_SUM ? to_float || (!from_float && !to_bool) : to_float;
  if (on->unreduced != 0 && !keeps)
    return ax_error(AX_INVALID_ARGUMENT, "the operand %s is unreduced, and its parts as %s are no parts of the whole as %s; %s",
                    ax_type_string(&args->in[0], args->axes), ax_dtype_name(args->out[0].dtype), ax_dtype_name(args->out[0].dtype),
                    ax_reduce_advice(on->kind));
  return ax_spread_local(args);
}

static bool has_f32_exponents(ax_dtype dtype) { return ax_dtype_get(ax_part_dtype(dtype))->exponent == 8; }

/* Between f32, bf16 and powers of 2 subnormal numbers are kept in every mode: compiled code moves and rounds their bits. */
static ax_status convert_eval(const ax_eval_args *args) {
  const ax_tensor *in = args->in[0], *out = args->out[0];
  int64_t elems = ax_dims_elems(out->rank, out->dims);
  const bool moves = has_f32_exponents(in->dtype) && has_f32_exponents(out->dtype);
  ax_float_mode mode = {0};
  if (moves) mode = ax_float_mode_enter(false);
  for (int64_t i = 0; i < elems; i++) {
    ax_number x = ax_number_load(in->dtype, in->data, i);
    ax_number_store(out->dtype, out->data, i, ax_number_convert(in->dtype, out->dtype, x));
  }
  if (moves) ax_float_mode_leave(mode);
  return AX_OK;
}

static void convert_jvp(const ax_jvp_args *args) {
  const convert_params *params = args->eqn->params;
  if (ax_is_differentiable(ax_typeof(args->in[0]).dtype) && ax_is_differentiable(params->dtype))
    ax_jvp_linear(args);
  else
    ax_jvp_zero(args);
}

static void convert_transpose(const ax_transpose_args *args) {
  args->out[0] = ax_convert_element_type(args->cotangent[0], args->in_types[0].dtype);
}

/* A conversion of what was only widened is one from what there was before; to the dtype there is, none. */
static void convert_simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_convert_element_type);
  if (inner != NULL && ax_dtype_widens(args->types[inner->in[0]].dtype, args->types[inner->out].dtype))
    ax_simplify_replace(args, 0, inner->in[0], args->eqn->params);
  uint32_t x = args->eqn->in[0];
  if (args->types[x].dtype == args->types[args->eqn->out].dtype) args->same[0] = x;
}

static ax_status convert_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &lower->program->types[eqn->out];
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, type->rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  ax_ex x = ax_lower_load(lower, in[0], at);
  ax_ex converted = ax_kernel_op(lower->kernel, AX_SCALAR_CONVERT, type->dtype, x, AX_NONE, AX_NONE);
  ax_lower_store(lower, out[0], at, converted, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

/* A complex number that becomes real loses its imaginary part; it is true where one of its parts is. */
static ax_value convert_expand(const ax_eqn *eqn, const ax_value *in) {
  const ax_dtype to = ((const convert_params *)eqn->params)->dtype, part = ax_part_dtype(to);
  if (!ax_is_complex(ax_typeof(in[0]).dtype)) {
    ax_value real = ax_convert_element_type(in[0], part);
    return ax_complex(real, ax_full_like(real, 0));
  }
  ax_value real = ax_real_part(in[0]), imag = ax_imag_part(in[0]);
  ax_value converted = ax_convert_element_type(real, part);
  if (to != AX_BOOL && !ax_is_complex(to)) return converted;
  imag = ax_convert_element_type(imag, part);
  return to == AX_BOOL ? ax_or(converted, imag) : ax_complex(converted, imag);
}

static ax_status convert_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, convert_expand, in, out);
}

static const ax_param convert_describes[] = {{"dtype", AX_PARAM_DTYPE, offsetof(convert_params, dtype)}};

/* A complex number becomes a truth value by its real part, where the primitive looks at both. */
static ax_status convert_read(const ax_hlo_read_args *args) {
  const ax_dtype dtype = args->out_types[0].dtype;
  ax_value x = args->in[0];
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes 1 operands, and here are %u", args->op->operand_count);
  if (dtype == AX_BOOL && ax_is_complex(ax_typeof(x).dtype)) x = ax_real_part(x);
  args->out[0] = ax_convert_element_type(x, dtype);
  return AX_OK;
}

static const ax_hlo_reader convert_readers[] = {{"stablehlo.convert", convert_read}, {0}};

const ax_prim ax_prim_convert_element_type = {
    .name = "convert_element_type", .kind = AX_LOCAL, .cheap = true, .form = AX_FORM("convert"), .reads = convert_readers, .in_count = 1, .out_count = 1,
    AX_PARAMS(convert_describes, convert_params),
    .linear = AX_LINEAR_ALL, .kinds = AX_KINDS_ALL,
    .infer = convert_infer, .spread = convert_spread, .eval = convert_eval, .differs = ax_differs_union,
    .jvp = convert_jvp, .linearize = convert_jvp,
    .transpose = convert_transpose, .batch = ax_batch_pointwise,
    .simplify = convert_simplify, .shard = ax_shard_pointwise, .lower = convert_lower, .complex = convert_complex, .hlo = ax_hlo_by_form,
};

/* --- stop_gradient --- */

static ax_status stop_infer(const ax_infer_args *args) {
  args->out[0] = ax_array_type(args->in[0].dtype, AX_LIST(args->in[0].rank, args->in[0].dims));
  return AX_OK;
}

const ax_prim ax_prim_stop_gradient = {
    .name = "stop_gradient", .kind = AX_LOCAL, .cheap = true, .in_count = 1, .out_count = 1,
    .linear = AX_LINEAR_ALL, .kinds = AX_KINDS_ALL,
    .infer = stop_infer, .spread = ax_spread_local, .eval = ax_eval_same, .differs = ax_differs_union,
    .jvp = ax_jvp_zero, .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose, .batch = ax_batch_pointwise,
    .simplify = ax_simplify_nothing, .shard = ax_shard_pointwise, .lower = ax_lower_same,
    .complex = ax_complex_whole, .keys = ax_keys_whole, .hlo = ax_hlo_same,
};

/* --- The functions --- */

ax_value ax_eq(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_eq, a, b); }
ax_value ax_ne(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_ne, a, b); }
ax_value ax_lt(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_lt, a, b); }
ax_value ax_le(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_le, a, b); }
ax_value ax_gt(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_gt, a, b); }
ax_value ax_ge(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_ge, a, b); }
ax_value ax_and(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_and, a, b); }
ax_value ax_or(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_or, a, b); }
ax_value ax_not(ax_value x) { return ax_bind1(&ax_prim_not, NULL, &x, 1); }

ax_value ax_select_n(ax_value which, ax_value case_false, ax_value case_true) {
  ax_value in[] = {which, case_false, case_true};
  return ax_bind1(&ax_prim_select_n, NULL, in, 3);
}

ax_value ax_convert_element_type(ax_value x, ax_dtype dtype) {
  convert_params params = {dtype};
  if (ax_typeof(x).dtype == dtype) return x;
  return ax_bind1(&ax_prim_convert_element_type, &params, &x, 1);
}

ax_value ax_stop_gradient(ax_value x) { return ax_bind1(&ax_prim_stop_gradient, NULL, &x, 1); }
