/* Operations on the bits of numbers; among them is rounding, which ops/pointwise.c has otherwise.

     op: T[d..] .. -> T[d..]        operands of one dtype and one shape

     op                      T         result                                                          its tangent
     xor                     bool or integer  the bits that differ                                     none
     shift_left              integer   x 2^y; 0 where y is below 0, or at least the number of T's bits  none
     shift_right_logical     integer   x shifted right, zeros coming in; 0 likewise                    none
     shift_right_arithmetic  integer   x shifted right, copies of its highest bit coming in            none
     population_count        integer   how many bits are 1                                             none
     clz, ctz                integer   how many bits are 0 above the highest 1, below the lowest 1; all if x is 0  none
     bitcast_convert_type    any       the same bits as numbers of the parameter dtype                 none
     is_finite               float     -> bool: neither NaN nor infinite                               none
     nextafter               float     the next number from x towards y; y if they are equal           dx
     reduce_precision        float     x rounded to a float of fewer bits                              dx, rounded likewise
     round_nearest_afz       float     the nearest whole number, of two the one away from zero         none

   bitcast_convert_type between dtypes of n times the bytes: T[d..] -> U[d.., n] to the smaller one, the lowest bits first, and
   T[d.., n] -> U[d..] to the larger one; bool and complex numbers only to their own dtype, and dtypes of less than 8
   bits only to those of as many.
   reduce_precision has the parameters exponent_bits (at least 1) and mantissa_bits (at least 0, without the leading one). It rounds to
   the nearest, of two to the even one; numbers beyond the range become infinite, those below the normal ones 0, and NaN stays.
   Bits that the dtype has not are not added. Both take floats of 16 bits and more. It and nextafter keep subnormal numbers where runs flush them.
   Errors: shapes or dtypes that differ; a dtype the operation has no meaning for; parameters outside their ranges.
   reduce_precision and nextafter are linear for derivatives, and parts of an unreduced operand are rounded each for itself by
   reduce_precision.
   Sharding: cuts of every dimension are kept, but for that of the parts of a number. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hlo/read.h"
#include "ir/dtype.h"
#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/shape.h"

static ax_status infer_integer(const ax_infer_args *args) {
  const ax_dtype dtype = args->in[0].dtype;
  if (dtype == AX_BOOL || ax_rounds(dtype))
    return ax_error(AX_INVALID_ARGUMENT, "needs an integer dtype, got %s", ax_dtype_name(dtype));
  return ax_infer_bits(args);
}

static ax_status infer_is_finite(const ax_infer_args *args) {
  AX_TRY(ax_infer_float(args));
  args->out[0].dtype = AX_BOOL;
  return AX_OK;
}

/* --- Integers --- */

/* The bits below the last 1. */
static ax_value ctz_of(const ax_eqn *eqn, const ax_value *in) {
  (void)eqn;
  ax_value below = ax_sub(in[0], ax_full_like(in[0], 1));
  return ax_population_count(ax_and(ax_not(in[0]), below));
}

static ax_status ctz_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, ctz_of, in, out);
}

AX_POINTWISE(xor, XOR, AX_FORM("xor"), 2, ax_infer_bits, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE(shift_left, SHIFT_LEFT, AX_FORM("shift_left"), 2, infer_integer, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE(shift_right_logical, SHIFT_RIGHT_LOGICAL, AX_FORM("shift_right_logical"), 2, infer_integer, ax_jvp_zero,
             ax_absent_transpose);
AX_POINTWISE(shift_right_arithmetic, SHIFT_RIGHT_ARITHMETIC, AX_FORM("shift_right_arithmetic"), 2, infer_integer, ax_jvp_zero,
             ax_absent_transpose);
AX_POINTWISE(population_count, POPULATION_COUNT, AX_FORM("popcnt"), 1, infer_integer, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE(clz, CLZ, AX_FORM("count_leading_zeros"), 1, infer_integer, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE_HLO(ctz, CTZ, NULL, 1, infer_integer, ax_jvp_zero, ax_absent_transpose, ctz_hlo);

/* --- bitcast_convert_type --- */

typedef struct bitcast_params {
  ax_dtype dtype;
} bitcast_params;

static ax_status bitcast_infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  const ax_dtype to = ((const bitcast_params *)args->params)->dtype;
  const size_t from_bytes = ax_dtype_bytes(x->dtype), bytes = ax_dtype_bytes(to);
  ax_dims dims = {.count = x->rank};
  if (bytes == 0) return ax_error(AX_INVALID_ARGUMENT, "no such dtype: %d", (int)to);
  if ((x->dtype == AX_BOOL) != (to == AX_BOOL))
    return ax_error(AX_INVALID_ARGUMENT, "the bits of bool are no number's: %s to %s", ax_dtype_name(x->dtype), ax_dtype_name(to));
  if (x->dtype != to && (ax_is_complex(x->dtype) || ax_is_complex(to)))
    return ax_error(AX_INVALID_ARGUMENT, "the bits of a complex number are those of its parts, which real and imag give: %s to %s",
                    ax_dtype_name(x->dtype), ax_dtype_name(to));
  const uint32_t from_bits = ax_dtype_get(x->dtype)->bits, bits = ax_dtype_get(to)->bits;
  if (from_bits != bits && (from_bits < 8 || bits < 8))
    return ax_error(AX_INVALID_ARGUMENT, "%s has %u bits of a byte, and %s %u", ax_dtype_name(x->dtype), from_bits, ax_dtype_name(to), bits);
  memcpy(dims.v, x->dims, x->rank * sizeof dims.v[0]);
  if (from_bytes > bytes) {
    if (x->rank == AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "the rank would exceed %d", AX_MAX_RANK);
    dims.v[dims.count++] = (int64_t)(from_bytes / bytes);
  } else if (from_bytes < bytes) {
    const int64_t parts = (int64_t)(bytes / from_bytes);
    if (x->rank == 0 || x->dims[x->rank - 1] != parts)
      return ax_error(AX_INVALID_ARGUMENT, "%lld elements of %s make one of %s: the last dimension of %s is not %lld", (long long)parts,
                      ax_dtype_name(x->dtype), ax_dtype_name(to), ax_type_string(x, args->axes), (long long)parts);
    dims.count--;
  }
  return ax_infer_shape(to, &dims, &args->out[0]);
}

static ax_status bitcast_eval(const ax_eval_args *args) {
  const ax_tensor *out = args->out[0];
  memcpy(out->data, args->in[0]->data, (size_t)ax_dims_elems(out->rank, out->dims) * ax_dtype_bytes(out->dtype));
  return AX_OK;
}

static void bitcast_batch(const ax_batch_args *args) {
  ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, &x, 1);
}

/* Bits of bits, where no dimension of parts is left between. */
static void bitcast_simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_bitcast_convert_type);
  const ax_dtype to = args->types[args->eqn->out].dtype;
  if (inner != NULL) {
    const size_t first = ax_dtype_bytes(args->types[inner->in[0]].dtype), second = ax_dtype_bytes(args->types[inner->out].dtype);
    if (first == second || first == ax_dtype_bytes(to)) ax_simplify_replace(args, 0, inner->in[0], args->eqn->params);
  }
  if (args->types[args->eqn->in[0]].dtype == to) args->same[0] = args->eqn->in[0];
}

static void bitcast_shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]], *y = &args->types[args->eqn->out];
  const uint32_t shared = x->rank < y->rank ? x->rank : y->rank;
  for (uint32_t d = 0; d < shared; d++) {
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

/* The same memory. Between dtypes of one size it is a kernel, which others can be fused with; but where registers hold f16 as f32,
   they have no NaN that signals, and those of floats of a byte are not all told apart. */
static ax_status bitcast_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->in[0]], *type = &lower->program->types[eqn->out];
  ax_position at[AX_MAX_RANK];
  if (x->rank != type->rank || x->dtype == type->dtype || x->dtype == AX_F16 || type->dtype == AX_F16 ||
      ax_is_byte_float(x->dtype) || ax_is_byte_float(type->dtype))
    return ax_lower_as_view(lower, eqn, in[0], 0, &out[0]);
  ax_at_identity(at, type->rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type->rank, 0, type->dims));
  ax_ex bits = ax_lower_load(lower, in[0], at);
  ax_lower_store(lower, out[0], at, ax_kernel_op(lower->kernel, AX_SCALAR_BITCAST, type->dtype, bits, AX_NONE, AX_NONE),
                 AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static const ax_param bitcast_describes[] = {{"dtype", AX_PARAM_DTYPE, offsetof(bitcast_params, dtype)}};

static const ax_hlo_form bitcast_form = {.op = "stablehlo.bitcast_convert", .fields = AX_HLO_FIELDS({NULL, "dtype"})};

/* --- Reading: of StableHLO truth values have one bit, and complex numbers are bits too --- */

static ax_dtype word_of(uint32_t bits) {
  return bits == 64 ? AX_U64 : bits == 32 ? AX_U32 : bits == 16 ? AX_U16 : bits == 8 ? AX_U8 : AX_NO_DTYPE;
}

/* bool[.., n] as a number of n bits, the first one being the lowest. */
static ax_value number_of_bits(ax_value x, ax_dtype to) {
  const ax_type type = ax_typeof(x);
  const ax_dtype word = word_of(ax_dtype_get(to)->bits);
  const int64_t last[] = {(int64_t)type.rank - 1};
  const ax_value place = (ax_iota)(word, AX_LIST(type.rank, type.dims), last[0]);
  const ax_value bits = ax_shift_left(ax_convert_element_type(x, word), place);
  return ax_bitcast_convert_type((ax_reduce_sum)(bits, AX_LIST(1, last), false), to);
}

static ax_value bits_of_number(ax_value x) {
  const ax_type type = ax_typeof(x);
  const ax_dtype word = word_of(ax_dtype_get(type.dtype)->bits);
  ax_dims dims = {.count = type.rank + 1}, at = {.count = type.rank};
  for (uint32_t d = 0; d < type.rank; d++) dims.v[d] = type.dims[d], at.v[d] = d;
  dims.v[type.rank] = ax_dtype_get(type.dtype)->bits;
  const ax_value words = (ax_broadcast_in_dim)(ax_bitcast_convert_type(x, word), AX_LIST(dims.count, dims.v), AX_LIST(at.count, at.v));
  const ax_value shifted = ax_shift_right_logical(words, (ax_iota)(word, AX_LIST(dims.count, dims.v), type.rank));
  return ax_ne(ax_and(shifted, ax_integer(1)), ax_integer(0));
}

/* Index k of the last dimension. */
static ax_value last_at(ax_value x, int64_t k) {
  const ax_type type = ax_typeof(x);
  ax_dims start = {.count = type.rank}, limit = {.count = type.rank};
  if (ax_failed()) return ax_poison;
  memcpy(limit.v, type.dims, type.rank * sizeof limit.v[0]);
  start.v[type.rank - 1] = k, limit.v[type.rank - 1] = k + 1;
  const ax_value one = (ax_slice)(x, AX_LIST(start.count, start.v), AX_LIST(limit.count, limit.v), AX_LIST(0, NULL));
  return (ax_reshape)(one, AX_LIST(type.rank - 1, type.dims));
}

/* c128[..] as c64[.., 2]: its parts, each of which is two floats. */
static ax_value halves_of_complex(ax_value x) {
  ax_value made[2];
  for (int k = 0; k < 2; k++) {
    const ax_value pair = ax_bitcast_convert_type(k == 0 ? ax_real_part(x) : ax_imag_part(x), AX_F32);
    const ax_value low = last_at(pair, 0), high = last_at(pair, 1);
    made[k] = ax_complex(low, high);
  }
  return (ax_stack)(2, made, -1);
}

static ax_value complex_of_halves(ax_value x) {
  ax_value part[2];
  for (int k = 0; k < 2; k++) {
    const ax_value one = last_at(x, k), pair[] = {ax_real_part(one), ax_imag_part(one)};
    part[k] = ax_bitcast_convert_type((ax_stack)(2, pair, -1), AX_F64);
  }
  return ax_complex(part[0], part[1]);
}

static ax_status bitcast_read(const ax_hlo_read_args *args) {
  const ax_dtype to = args->out_types[0].dtype;
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes 1 operands, and here are %u", args->op->operand_count);
  const ax_type x = ax_typeof(args->in[0]);
  const bool from_bits = x.dtype == AX_BOOL && to != AX_BOOL && x.rank > 0 && !ax_is_complex(to);
  if (from_bits && x.dims[x.rank - 1] == ax_dtype_get(to)->bits && word_of(ax_dtype_get(to)->bits) != AX_NO_DTYPE)
    args->out[0] = number_of_bits(args->in[0], to);
  else if (to == AX_BOOL && !ax_is_complex(x.dtype) && x.rank < AX_MAX_RANK && word_of(ax_dtype_get(x.dtype)->bits) != AX_NO_DTYPE &&
           x.dtype != AX_BOOL)
    args->out[0] = bits_of_number(args->in[0]);
  else if (x.dtype == AX_C128 && to == AX_C64)
    args->out[0] = halves_of_complex(args->in[0]);
  else if (x.dtype == AX_C64 && to == AX_C128 && x.rank > 0 && x.dims[x.rank - 1] == 2)
    args->out[0] = complex_of_halves(args->in[0]);
  else
    return ax_hlo_read_by_form(args);
  return AX_OK;
}

static const ax_hlo_reader bitcast_readers[] = {{"stablehlo.bitcast_convert", bitcast_read}, {0}};

const ax_prim ax_prim_bitcast_convert_type = {
    .name = "bitcast_convert_type", .kind = AX_LOCAL, .cheap = true, .form = &bitcast_form, .reads = bitcast_readers, .in_count = 1, .out_count = 1,
    AX_PARAMS(bitcast_describes, bitcast_params),
    .infer = bitcast_infer, .spread = ax_spread_local, .eval = bitcast_eval, .differs = ax_differs_union,
    .jvp = ax_jvp_zero, .linearize = ax_jvp_zero, .transpose = ax_absent_transpose, .batch = bitcast_batch,
    .simplify = bitcast_simplify, .shard = bitcast_shard, .lower = bitcast_lower, .complex = ax_complex_whole,
    .hlo = ax_hlo_by_form,
};

/* --- Floats --- */

/* Constant but for the last place. */
static void nextafter_jvp(const ax_jvp_args *a) {
  a->out[0] = ax_bind1(a->eqn->prim, NULL, a->in, 2);
  a->tangent_out[0] = a->tangent_in[0];
}

static ax_dtype integers_of(ax_dtype dtype) {
  const size_t bytes = ax_dtype_bytes(dtype);
  return bytes == 8 ? AX_U64 : bytes == 4 ? AX_U32 : AX_U16;
}

/* The same steps as those of the reference (ops/scalar.c). */
static ax_value nextafter_of(const ax_eqn *eqn, const ax_value *in) {
  const ax_dtype dtype = ax_typeof(in[0]).dtype, bits = integers_of(dtype);
  const ax_float_form form = ax_float_form_of(dtype);
  const uint64_t sign = (uint64_t)1 << (form.exponent + form.fraction), infinity = sign - ((uint64_t)1 << form.fraction);
  (void)eqn;
  ax_value x = ax_bitcast_convert_type(in[0], bits), y = ax_bitcast_convert_type(in[1], bits), one = ax_full_like(x, 1);
  ax_value size = ax_and(x, ax_unsigned(sign - 1)), size_y = ax_and(y, ax_unsigned(sign - 1));
  ax_value one_sign = ax_eq(ax_and(ax_xor(x, y), ax_unsigned(sign)), ax_integer(0));
  ax_value grows = ax_and(one_sign, ax_lt(size, size_y)), up = ax_add(x, one), down = ax_sub(x, one);
  ax_value least = ax_or(ax_and(y, ax_unsigned(sign)), one);
  ax_value next = ax_where(ax_eq(size, ax_integer(0)), least, ax_where(grows, up, down));
  ax_value zeros = ax_eq(ax_or(size, size_y), ax_integer(0)), same = ax_or(ax_eq(x, y), zeros);
  ax_value number = ax_le(ax_max(size, size_y), ax_unsigned(infinity));
  ax_value made = ax_bitcast_convert_type(ax_where(same, y, next), dtype);
  return ax_where(number, made, ax_full_like(made, NAN));
}

static ax_status nextafter_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, nextafter_of, in, out);
}

static ax_status infer_long_float(const ax_infer_args *args) {
  if (ax_is_byte_float(args->in[0].dtype))
    return ax_error(AX_INVALID_ARGUMENT, "needs a float of at least 16 bits, got %s", ax_dtype_name(args->in[0].dtype));
  return ax_infer_float(args);
}

static ax_status reduce_precision_infer(const ax_infer_args *args) {
  const ax_precision_params *p = args->params;
  if (p->exponent_bits < 1) return ax_error(AX_INVALID_ARGUMENT, "exponent_bits is %lld: at least 1 is needed", (long long)p->exponent_bits);
  if (p->mantissa_bits < 0) return ax_error(AX_INVALID_ARGUMENT, "mantissa_bits is %lld: at least 0 are needed", (long long)p->mantissa_bits);
  return infer_long_float(args);
}

static void reduce_precision_transpose(const ax_transpose_args *args) {
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->cotangent, 1);
}

static ax_status reduce_precision_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_precision_params p = *(const ax_precision_params *)eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo};
  if (p.exponent_bits > 64) p.exponent_bits = 64;
  if (p.mantissa_bits > 64) p.mantissa_bits = 64;
  ax_hlo_add_fields(&attributes, eqn->prim, &p);
  return ax_hlo_simple(hlo, eqn, eqn->prim->form->op, in, &attributes, out);
}

AX_POINTWISE(is_finite, IS_FINITE, AX_FORM("is_finite"), 1, infer_is_finite, ax_jvp_zero, ax_absent_transpose);
AX_POINTWISE_HLO(nextafter, NEXTAFTER, (&(const ax_hlo_form){.op = "chlo.next_after"}), 2, infer_long_float, nextafter_jvp, ax_absent_transpose, nextafter_hlo);
AX_POINTWISE(round_nearest_afz, ROUND_NEAREST_AFZ, AX_FORM("round_nearest_afz"), 1, ax_infer_float, ax_jvp_zero,
             ax_absent_transpose);

static const ax_param precision_describes[] = {
    {"exponent_bits", AX_PARAM_I64, offsetof(ax_precision_params, exponent_bits)},
    {"mantissa_bits", AX_PARAM_I64, offsetof(ax_precision_params, mantissa_bits)},
};

static const ax_hlo_form precision_form = {
    .op = "stablehlo.reduce_precision", .fields = AX_HLO_FIELDS({"exponent_bits", "exponent_bits"}, {"mantissa_bits", "mantissa_bits"})};

static ax_status reduce_precision_read(const ax_hlo_read_args *args) {
  ax_precision_params p = {0};
  AX_TRY(ax_hlo_read_fields(args, args->prim, &p));
  args->out[0] = ax_bind1(args->prim, &p, args->in, args->op->operand_count);
  if (p.mantissa_bits == 0 && !ax_failed()) { /* a float without a mantissa has no NaN */
    const ax_value x = args->in[0], largest = ax_full_like(x, INFINITY);
    args->out[0] = ax_where(ax_ne(x, x), largest, args->out[0]);
  }
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.reduce_precision", reduce_precision_read}, {0}};

const ax_prim ax_prim_reduce_precision = {
    .name = "reduce_precision", .kind = AX_LOCAL, .linear = AX_LINEAR_ALL, .kinds = AX_KINDS_ALL, .cheap = true,
    .scalar = AX_SCALAR_REDUCE_PRECISION, .in_count = 1, .out_count = 1,
    AX_PARAMS(precision_describes, ax_precision_params),
    .infer = reduce_precision_infer, .spread = ax_spread_local, .eval = ax_eval_pointwise, .differs = ax_differs_union,
    .jvp = ax_jvp_linear, .linearize = ax_jvp_linear, .transpose = reduce_precision_transpose, .batch = ax_batch_pointwise,
    .simplify = ax_simplify_nothing, .shard = ax_shard_pointwise, .lower = ax_lower_pointwise, .form = &precision_form, .reads = readers,
    .hlo = reduce_precision_hlo,
};

/* --- The functions --- */

ax_value ax_xor(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_xor, a, b); }
ax_value ax_shift_left(ax_value x, ax_value amount) { return ax_bind_binary(&ax_prim_shift_left, x, amount); }
ax_value ax_shift_right_logical(ax_value x, ax_value amount) { return ax_bind_binary(&ax_prim_shift_right_logical, x, amount); }
ax_value ax_shift_right_arithmetic(ax_value x, ax_value amount) { return ax_bind_binary(&ax_prim_shift_right_arithmetic, x, amount); }
ax_value ax_population_count(ax_value x) { return ax_bind1(&ax_prim_population_count, NULL, &x, 1); }
ax_value ax_clz(ax_value x) { return ax_bind1(&ax_prim_clz, NULL, &x, 1); }
ax_value ax_ctz(ax_value x) { return ax_bind1(&ax_prim_ctz, NULL, &x, 1); }
ax_value ax_is_finite(ax_value x) { return ax_bind1(&ax_prim_is_finite, NULL, &x, 1); }
ax_value ax_nextafter(ax_value x, ax_value y) { return ax_bind_binary(&ax_prim_nextafter, x, y); }
ax_value ax_round_nearest_afz(ax_value x) { return ax_bind1(&ax_prim_round_nearest_afz, NULL, &x, 1); }

ax_value ax_bitcast_convert_type(ax_value x, ax_dtype dtype) {
  const bitcast_params params = {dtype};
  return ax_bind1(&ax_prim_bitcast_convert_type, &params, &x, 1);
}

ax_value ax_reduce_precision(ax_value x, int64_t exponent_bits, int64_t mantissa_bits) {
  const ax_precision_params params = {exponent_bits, mantissa_bits};
  return ax_bind1(&ax_prim_reduce_precision, &params, &x, 1);
}
