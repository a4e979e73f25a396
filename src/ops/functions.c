/* More functions of mathematics, members of the pointwise family (ops/pointwise.c): roots, angles, hyperbolic functions, and those
   of erf and gamma.

     op: T[d..] -> T[d..]        T float; atan2: T[d..] T[d..] -> T[d..]

     op             result                                                    its tangent, with y the result
     exp2           2^x                                                       log(2) y dx
     cbrt           the real root x^(1/3)                                     y / (3 x) dx, as y^-2 / 3 dx
     tan            of x in radians                                           (1 + y^2) dx
     asin, acos     the angle of a sine, a cosine                             dx / sqrt(1 - x^2), its negative
     atan           the angle of a tangent                                    dx / (1 + x^2)
     atan2          the angle of the point (second, first), by its quadrant   (x1 dx0 - x0 dx1) / (x0^2 + x1^2)
     sinh, cosh     hyperbolic functions                                      cosh(x) dx, sinh(x) dx
     asinh, acosh   their inverses                                            dx / sqrt(x^2 + 1), dx / sqrt(x^2 - 1)
     atanh          the inverse of tanh                                       dx / ((1 + x) (1 - x))
     erfc           1 - erf(x)                                                -2 / sqrt(pi) e^(-x^2) dx

   All but atan2 have the parameter accuracy, as exp has. All but cbrt and erfc take complex numbers, with the branch cuts
   of C; atan2(y, x) is then -i log((x + i y) / sqrt(x^2 + y^2)). Of c64, log, log1p and the inverse functions are computed in f64.
   Errors: shapes or dtypes that differ; a dtype that is no float.
   Sharding: cuts of every dimension are kept. */
#include <math.h>

#include "hlo/read.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
#include "prim/prims.h"

/* --- Derivatives --- */

static ax_value one_like(ax_value x) { return ax_full_like(x, 1); }
static ax_value reciprocal(ax_value x) { return ax_div(one_like(x), x); }
static ax_value square(ax_value x) { return ax_mul(x, x); }

static ax_value exp2_factor(ax_value x, ax_value y) { return (void)x, ax_mul(y, ax_full_like(y, 0.69314718055994530942)); }
static ax_value cbrt_factor(ax_value x, ax_value y) {
  return (void)x, ax_mul(ax_integer_pow(y, -2), ax_full_like(y, 1.0 / 3));
}
static ax_value tan_factor(ax_value x, ax_value y) { return (void)x, ax_add(square(y), one_like(y)); }
static ax_value asin_factor(ax_value x, ax_value y) { return (void)y, ax_rsqrt(ax_sub(one_like(x), square(x))); }
static ax_value acos_factor(ax_value x, ax_value y) { return ax_neg(asin_factor(x, y)); }
static ax_value atan_factor(ax_value x, ax_value y) { return (void)y, reciprocal(ax_add(square(x), one_like(x))); }
static ax_value sinh_factor(ax_value x, ax_value y) { return (void)y, ax_cosh(x); }
static ax_value cosh_factor(ax_value x, ax_value y) { return (void)y, ax_sinh(x); }
static ax_value asinh_factor(ax_value x, ax_value y) { return (void)y, ax_rsqrt(ax_add(square(x), one_like(x))); }
/* Of complex x the root of the product is on the wrong side where x is left of the imaginary axis. */
static ax_value acosh_factor(ax_value x, ax_value y) {
  if (!ax_is_complex(ax_typeof(y).dtype)) return ax_rsqrt(ax_sub(square(x), one_like(x)));
  ax_value below = ax_rsqrt(ax_sub(x, one_like(x))), above = ax_rsqrt(ax_add(x, one_like(x)));
  return ax_mul(below, above);
}
static ax_value atanh_factor(ax_value x, ax_value y) {
  ax_value above = ((void)y, ax_add(x, one_like(x))), below = ax_sub(one_like(x), x);
  return ax_mul(reciprocal(above), reciprocal(below));
}
static ax_value erfc_factor(ax_value x, ax_value y) {
  ax_value bell = ((void)y, ax_exp(ax_neg(square(x))));
  return ax_mul(bell, ax_full_like(x, -2 / sqrt(3.14159265358979323846)));
}

static void exp2_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, exp2_factor); }
static void cbrt_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, cbrt_factor); }
static void tan_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, tan_factor); }
static void asin_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, asin_factor); }
static void acos_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, acos_factor); }
static void atan_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, atan_factor); }
static void sinh_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, sinh_factor); }
static void cosh_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, cosh_factor); }
static void asinh_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, asinh_factor); }
static void acosh_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, acosh_factor); }
static void atanh_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, atanh_factor); }
static void erfc_jvp(const ax_jvp_args *a) { ax_jvp_factor(a, erfc_factor); }

static void atan2_jvp(const ax_jvp_args *a) {
  ax_value y = a->in[0], x = a->in[1];
  a->out[0] = ax_bind1(&ax_prim_atan2, NULL, a->in, 2);
  a->tangent_out[0] = ax_zero;
  if (ax_is_zero(a->tangent_in[0]) && ax_is_zero(a->tangent_in[1])) return;
  ax_value size = ax_add(square(y), square(x)), parts[] = {ax_zero, ax_zero};
  if (!ax_is_zero(a->tangent_in[0])) parts[0] = ax_mul(a->tangent_in[0], ax_div(x, size));
  if (!ax_is_zero(a->tangent_in[1])) parts[1] = ax_mul(a->tangent_in[1], ax_div(ax_neg(y), size));
  a->tangent_out[0] = ax_add_any(parts[0], parts[1]);
}

/* --- StableHLO: ops of its own, or of CHLO, which have no accuracy --- */

/* As a power of 2. */
static ax_status exp2_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *type = &hlo->program->types[eqn->out];
  ax_element two = {0};
  ax_number_store(type->dtype, &two, 0, ax_number_of(type->dtype, 2));
  const uint32_t operands[] = {ax_hlo_splat(hlo, type, &two), in[0]};
  out[0] = ax_hlo_op(hlo, "stablehlo.power", operands, 2, NULL, type, 1);
  return AX_OK;
}

#define CHLO(text) (&(const ax_hlo_form){.op = "chlo." text})
AX_FUNCTION(exp2, EXP2, NULL, exp2_jvp, exp2_hlo, .complex = ax_complex_pointwise);
AX_FUNCTION(cbrt, CBRT, AX_FORM("cbrt"), cbrt_jvp, ax_function_hlo);
static const ax_hlo_reader tan_readers[] = {{"chlo.tan", ax_hlo_read_by_form}, {0}};
AX_FUNCTION(tan, TAN, AX_FORM("tan"), tan_jvp, ax_function_hlo, .complex = ax_complex_pointwise, .reads = tan_readers);
AX_FUNCTION(asin, ASIN, CHLO("asin"), asin_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(acos, ACOS, CHLO("acos"), acos_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(atan, ATAN, CHLO("atan"), atan_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(sinh, SINH, CHLO("sinh"), sinh_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(cosh, COSH, CHLO("cosh"), cosh_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(asinh, ASINH, CHLO("asinh"), asinh_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(acosh, ACOSH, CHLO("acosh"), acosh_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(atanh, ATANH, CHLO("atanh"), atanh_jvp, ax_hlo_by_form, .complex = ax_complex_pointwise);
AX_FUNCTION(erfc, ERFC, CHLO("erfc"), erfc_jvp, ax_hlo_by_form);
AX_POINTWISE_HLO(atan2, ATAN2, AX_FORM("atan2"), 2, ax_infer_float, atan2_jvp, ax_absent_transpose, ax_hlo_by_form,
                 .complex = ax_complex_pointwise);

/* --- The functions --- */

static ax_value function(const ax_prim *prim, ax_value x) {
  const int64_t accuracy = AX_ACCURACY_DEFAULT;
  return ax_bind1(prim, &accuracy, &x, 1);
}

ax_value ax_exp2(ax_value x) { return function(&ax_prim_exp2, x); }
ax_value ax_cbrt(ax_value x) { return function(&ax_prim_cbrt, x); }
ax_value ax_tan(ax_value x) { return function(&ax_prim_tan, x); }
ax_value ax_asin(ax_value x) { return function(&ax_prim_asin, x); }
ax_value ax_acos(ax_value x) { return function(&ax_prim_acos, x); }
ax_value ax_atan(ax_value x) { return function(&ax_prim_atan, x); }
ax_value ax_sinh(ax_value x) { return function(&ax_prim_sinh, x); }
ax_value ax_cosh(ax_value x) { return function(&ax_prim_cosh, x); }
ax_value ax_asinh(ax_value x) { return function(&ax_prim_asinh, x); }
ax_value ax_acosh(ax_value x) { return function(&ax_prim_acosh, x); }
ax_value ax_atanh(ax_value x) { return function(&ax_prim_atanh, x); }
ax_value ax_erfc(ax_value x) { return function(&ax_prim_erfc, x); }
ax_value ax_atan2(ax_value a, ax_value b) { return ax_bind_binary(&ax_prim_atan2, a, b); }
