/* Complex numbers and their parts: members of the pointwise family.

     op        T -> result                         result                              its tangent
     real      c64 -> f32, c128 -> f64             the real part                       its real part
     imag      c64 -> f32, c128 -> f64             the imaginary part                  its imaginary part
     complex   f32 f32 -> c64, f64 f64 -> c128     x + i y                             dx + i dy
     conj      c64 -> c64, c128 -> c128            the conjugate: x - i y              its conjugate

   Errors: shapes that differ; parts of different dtypes, or other than f32 and f64; no complex operand of real, imag, conj.
   All four are linear over the real numbers. Transposes are those of the form <t, z> = Re(sum of t z), as in JAX: the transpose of
   real gives t + 0 i, of imag 0 - i t, of complex Re(t) and -Im(t), of conj the conjugate of t. So the gradient of a real function of
   x + i y is df/dx - i df/dy, and a step against its conjugate descends.
   Sharding: cuts of every dimension are kept. */
#include "ops/complex.h"

#include "hlo/read.h"
#include "machine/float_mode.h"
#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/prims.h"

/* --- infer --- */

static ax_status infer_part(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  if (!ax_is_complex(x->dtype)) return ax_error(AX_INVALID_ARGUMENT, "needs a complex dtype, got %s", ax_dtype_name(x->dtype));
  args->out[0] = ax_array_type(args->prim == &ax_prim_conj ? x->dtype : ax_part_dtype(x->dtype), AX_LIST(x->rank, x->dims));
  return AX_OK;
}

static ax_status infer_complex(const ax_infer_args *args) {
  const ax_type *x = &args->in[0], *y = &args->in[1];
  const ax_dtype dtype = ax_complex_dtype(x->dtype);
  if (dtype == AX_NO_DTYPE || x->dtype != y->dtype)
    return ax_error(AX_INVALID_ARGUMENT, "the parts must be both f32 or both f64, got %s and %s", ax_dtype_name(x->dtype),
                    ax_dtype_name(y->dtype));
  if (!ax_same_shape(x, y))
    return ax_error(AX_INVALID_ARGUMENT, "operand shapes differ: %s and %s", ax_type_string(x, args->axes),
                    ax_type_string(y, args->axes));
  args->out[0] = ax_array_type(dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

/* --- eval --- */

/* Bits are moved, so subnormal numbers are kept in every mode. */
static ax_status eval(const ax_eval_args *args) {
  const ax_prim *prim = args->eqn->prim;
  const ax_tensor *x = args->in[0], *out = args->out[0];
  const int64_t elems = ax_dims_elems(out->rank, out->dims);
  const ax_float_mode mode = ax_float_mode_enter(false);
  for (int64_t i = 0; i < elems; i++) {
    ax_number number = ax_number_load(x->dtype, x->data, i);
    if (prim == &ax_prim_imag) number.f = number.imag;
    if (prim == &ax_prim_conj) number.imag = -number.imag;
    if (prim == &ax_prim_complex) number.imag = ax_number_load(x->dtype, args->in[1]->data, i).f;
    ax_number_store(out->dtype, out->data, i, number);
  }
  ax_float_mode_leave(mode);
  return AX_OK;
}

/* --- transpose --- */

static ax_value zeros_like(ax_value x) { return ax_full_like(x, 0); }

static void real_transpose(const ax_transpose_args *a) { a->out[0] = ax_complex(a->cotangent[0], zeros_like(a->cotangent[0])); }

static void imag_transpose(const ax_transpose_args *a) {
  ax_value zero = zeros_like(a->cotangent[0]);
  a->out[0] = ax_complex(zero, ax_neg(a->cotangent[0]));
}

static void complex_transpose(const ax_transpose_args *a) {
  if (a->linear[0]) a->out[0] = ax_real_part(a->cotangent[0]);
  if (a->linear[1]) a->out[1] = ax_neg(ax_imag_part(a->cotangent[0]));
}

static void conj_transpose(const ax_transpose_args *a) { a->out[0] = ax_conj(a->cotangent[0]); }

/* complex is linear in both operands together: a tangent that is zero becomes zeros. */
static void complex_jvp(const ax_jvp_args *a) {
  a->out[0] = ax_bind1(&ax_prim_complex, NULL, a->in, 2);
  a->tangent_out[0] = ax_zero;
  if (ax_is_zero(a->tangent_in[0]) && ax_is_zero(a->tangent_in[1])) return;
  ax_value part[2];
  for (int k = 0; k < 2; k++) part[k] = ax_instantiate(a->tangent_in[k], a->in[k]);
  a->tangent_out[0] = ax_complex(part[0], part[1]);
}

/* --- simplify --- */

static void real_simplify(const ax_simplify_args *args) {
  const ax_eqn *made = ax_simplify_operand(args, 0, &ax_prim_complex);
  if (made != NULL) args->same[0] = made->in[args->eqn->prim == &ax_prim_imag];
}

static void complex_simplify(const ax_simplify_args *args) {
  const ax_eqn *x = ax_simplify_operand(args, 0, &ax_prim_real), *y = ax_simplify_operand(args, 1, &ax_prim_imag);
  if (x != NULL && y != NULL && x->in[0] == y->in[0]) args->same[0] = x->in[0];
}

static void conj_simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_conj);
  if (inner != NULL) args->same[0] = inner->in[0];
}

/* --- lower, hlo --- */

static ax_status part_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_part(lower, in[0], eqn->prim == &ax_prim_imag, &out[0]);
}

static ax_status complex_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_of_parts(lower, &lower->program->types[eqn->out], lower->differs[eqn->out], in, &out[0]);
}

static ax_value conj_parts(const ax_eqn *eqn, const ax_value *in) {
  (void)eqn;
  ax_value real = ax_real_part(in[0]);
  return ax_complex(real, ax_neg(ax_imag_part(in[0])));
}

static ax_status conj_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, conj_parts, in, out);
}

static ax_status conj_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, conj_parts, in, out);
}

/* --- The records --- */

/* StableHLO has parts of real numbers too: themselves, and zeros. */
static ax_status part_read(const ax_hlo_read_args *args) {
  const ax_value x = args->in[0];
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes 1 operands, and here are %u", args->op->operand_count);
  if (ax_is_complex(ax_typeof(x).dtype)) return ax_hlo_read_by_form(args);
  args->out[0] = args->prim == &ax_prim_real ? x : ax_full_like(x, 0);
  return AX_OK;
}

static const ax_hlo_reader real_readers[] = {{"stablehlo.real", part_read}, {0}};
static const ax_hlo_reader imag_readers[] = {{"stablehlo.imag", part_read}, {0}};

/* hlo, which may be followed by further slots, comes last. */
#define COMPLEX_RECORD(name_, operands_, infer_, jvp_, transpose_, simplify_, lower_, ...)                                    \
  const ax_prim ax_prim_##name_ = {                                                                                         \
      .name = #name_, .kind = AX_LOCAL, .cheap = true, .form = AX_FORM(#name_), .in_count = operands_, .out_count = 1,      \
      .linear = AX_LINEAR_ALL, .kinds = AX_KINDS_SUM, .infer = infer_, .spread = ax_spread_local, .eval = eval,             \
      .differs = ax_differs_union, .jvp = jvp_, .linearize = jvp_, .transpose = transpose_, .batch = ax_batch_pointwise,    \
      .simplify = simplify_, .shard = ax_shard_pointwise, .lower = lower_, .complex = lower_, .hlo = __VA_ARGS__,           \
  }
COMPLEX_RECORD(real, 1, infer_part, ax_jvp_linear, real_transpose, real_simplify, part_lower, ax_hlo_by_form, .reads = real_readers);
COMPLEX_RECORD(imag, 1, infer_part, ax_jvp_linear, imag_transpose, real_simplify, part_lower, ax_hlo_by_form, .reads = imag_readers);
COMPLEX_RECORD(complex, 2, infer_complex, complex_jvp, complex_transpose, complex_simplify, complex_lower, ax_hlo_by_form);
COMPLEX_RECORD(conj, 1, infer_part, ax_jvp_linear, conj_transpose, conj_simplify, conj_lower, conj_hlo);

/* --- The functions --- */

static ax_value unary(const ax_prim *prim, ax_value x) { return ax_bind1(prim, NULL, &x, 1); }

ax_value ax_real_part(ax_value x) { return unary(&ax_prim_real, x); }
ax_value ax_imag_part(ax_value x) { return unary(&ax_prim_imag, x); }
ax_value ax_complex(ax_value x, ax_value y) { return ax_bind_binary(&ax_prim_complex, x, y); }
/* As jax.lax.conj, of a real number the complex one. */
ax_value ax_conj(ax_value x) {
  if (!ax_check_operands("conj", &x, 1)) return ax_poison;
  const ax_type type = ax_typeof(x);
  const bool is_real = type.form == AX_ARRAY && (type.dtype == AX_F32 || type.dtype == AX_F64);
  if (!is_real || ax_failed()) return unary(&ax_prim_conj, x);
  return ax_complex(x, zeros_like(x));
}
