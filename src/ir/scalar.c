/* The tables of scalar operations, from scalar.def, and of errors, from accuracy.def. */
#include "ir/scalar.h"

#include "axle/ops.h"

static const struct {
  const char *name;
  int arity;
} scalars[] = {
    {"none", 0},
#define AX_SCALAR(name, text, arity) {text, arity},
#include "ir/scalar.def"
#undef AX_SCALAR
    {"const", 0},
    {"index", 0},
    {"axis", 0},
    {"load", 0},
    {"inside", 0},
    {"given", 0},
};

int ax_scalar_arity(ax_scalar op) { return scalars[op].arity; }
const char *ax_scalar_name(ax_scalar op) { return scalars[op].name; }
bool ax_scalar_is_function(ax_scalar op) { return op == AX_SCALAR_POW || (op >= AX_SCALAR_EXP && op <= AX_SCALAR_ZETA); }
bool ax_scalar_is_special(ax_scalar op) { return op >= AX_SCALAR_ERF_INV && op <= AX_SCALAR_ZETA; }

int64_t ax_precision_imm(int64_t exponent_bits, int64_t mantissa_bits) {
  return (exponent_bits < 64 ? exponent_bits : 64) << 8 | (mantissa_bits < 64 ? mantissa_bits : 64);
}
int64_t ax_precision_exponent(int64_t imm) { return imm >> 8; }
int64_t ax_precision_mantissa(int64_t imm) { return imm & 255; }

/* [default, highest][f32, f64] */
static const double errors[AX_SCALAR_COUNT][2][2] = {
#define AX_ACCURACY(name, f32, f64, highest_f32, highest_f64) [AX_SCALAR_##name] = {{f32, f64}, {highest_f32, highest_f64}},
#include "ir/accuracy.def"
#undef AX_ACCURACY
};

double ax_scalar_error(ax_scalar op, ax_dtype dtype, bool highest) {
  if (op >= AX_SCALAR_COUNT || errors[op][0][0] == 0) return 0;
  return dtype == AX_F64 || dtype == AX_F32 ? errors[op][highest][dtype == AX_F64] : 0.51;
}

bool ax_scalar_precise(ax_scalar op, ax_dtype dtype, int64_t accuracy) {
  double error = ax_scalar_error(op, dtype, false);
  if (accuracy == AX_ACCURACY_DEFAULT || error == 0) return false;
  return accuracy == AX_ACCURACY_HIGHEST ? ax_scalar_error(op, dtype, true) < error : (double)accuracy < error;
}
