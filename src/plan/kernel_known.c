#include "plan/kernel_known.h"

#include <float.h>
#include <math.h>

#include "ir/dtype.h"
#include "ir/number.h"

typedef struct known {
  int64_t i; /* with its sign, or zero-extended, as the dtype says */
  bool is;
} known;

static known number_of(const ax_loop_kernel *kernel, ax_ex node) {
  const ax_expr *expr = &kernel->exprs[node];
  if (expr->op != AX_LEAF_CONST || !ax_is_exact(expr->dtype)) return (known){0};
  return (known){ax_number_load(expr->dtype, &expr->imm, 0).i, true};
}

/* The dtype's bits of a sum, a difference or a product modulo 2^64. */
static int64_t wrapped(ax_dtype dtype, uint64_t value) {
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, (ax_number){.u = value});
  return bits;
}

/* Of two numbers of one dtype; false: left to the code. */
static bool result_of(ax_scalar op, ax_dtype from, ax_dtype dtype, int64_t a, int64_t b, int64_t *out) {
  const bool is_signed = ax_dtype_get(from)->kind == AX_KIND_SIGNED;
  const bool less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;
  switch (op) {
    case AX_SCALAR_EQ: *out = a == b; return true;
    case AX_SCALAR_NE: *out = a != b; return true;
    case AX_SCALAR_LT: *out = less; return true;
    case AX_SCALAR_LE: *out = less || a == b; return true;
    case AX_SCALAR_GT: *out = !less && a != b; return true;
    case AX_SCALAR_GE: *out = !less; return true;
    default: break;
  }
  if (from == AX_BOOL && op != AX_SCALAR_AND && op != AX_SCALAR_OR && op != AX_SCALAR_XOR) return false;
  switch (op) {
    case AX_SCALAR_AND: *out = wrapped(dtype, (uint64_t)(a & b)); return true;
    case AX_SCALAR_OR: *out = wrapped(dtype, (uint64_t)(a | b)); return true;
    case AX_SCALAR_XOR: *out = wrapped(dtype, (uint64_t)(a ^ b)); return true;
    case AX_SCALAR_ADD: *out = wrapped(dtype, (uint64_t)a + (uint64_t)b); return true;
    case AX_SCALAR_SUB: *out = wrapped(dtype, (uint64_t)a - (uint64_t)b); return true;
    case AX_SCALAR_MUL: *out = wrapped(dtype, (uint64_t)a * (uint64_t)b); return true;
    case AX_SCALAR_MIN: *out = wrapped(dtype, (uint64_t)(less ? a : b)); return true;
    case AX_SCALAR_MAX: *out = wrapped(dtype, (uint64_t)(less ? b : a)); return true;
    default: return false;
  }
}

/* and, or of a bool that is a number and one that is not: that number, or the other one. */
static ax_ex of_one_bool(ax_scalar op, ax_ex number, bool value, ax_ex other) {
  if (op != AX_SCALAR_AND && op != AX_SCALAR_OR) return AX_NONE;
  return value == (op == AX_SCALAR_AND) ? other : number;
}

/* A number of another dtype, if it is the same there: not rounded, not flushed, no infinity. */
static ax_ex converted(ax_loop_kernel *kernel, ax_dtype dtype, ax_ex node) {
  const ax_expr *expr = &kernel->exprs[node];
  const ax_dtype_info *from = ax_dtype_get(expr->dtype), *to = ax_dtype_get(dtype);
  const bool of_float = from->kind == AX_KIND_FLOAT, to_float = to->kind == AX_KIND_FLOAT;
  if (expr->op != AX_LEAF_CONST || !(of_float || ax_is_exact(expr->dtype)) || !(to_float || ax_is_exact(dtype)) || dtype == AX_BOOL)
    return AX_NONE;
  const ax_number number = ax_number_load(expr->dtype, &expr->imm, 0);
  const double value = ax_number_convert(expr->dtype, AX_F64, number).f;
  if (!(fabs(value) < 0x1p52) || (value != 0 && fabs(value) < 0x1p-6) || (of_float && !to_float)) return AX_NONE;
  if (!to_float && value < 0 && to->kind != AX_KIND_SIGNED) return AX_NONE;
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, ax_number_convert(expr->dtype, dtype, number));
  const double same = ax_number_convert(dtype, AX_F64, ax_number_load(dtype, &bits, 0)).f;
  return same == value && signbit(same) == signbit(value) ? ax_kernel_const(kernel, dtype, bits) : AX_NONE;
}

/* --- Powers of two --- */

/* A float that is a number, as f32, f64 or bf16; NaN: it is none. */
static double float_of(const ax_loop_kernel *kernel, ax_ex node, ax_dtype dtype) {
  const ax_expr *expr = &kernel->exprs[node];
  if (expr->op != AX_LEAF_CONST || (dtype != AX_F32 && dtype != AX_F64 && dtype != AX_BF16)) return NAN;
  return ax_number_load(dtype, &expr->imm, 0).f;
}

static ax_ex float_number(ax_loop_kernel *kernel, ax_dtype dtype, double value) {
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, (ax_number){.f = value});
  return ax_kernel_const(kernel, dtype, bits);
}

/* Of either sign, such that it and its inverse are normal numbers of f32, and so of bf16 and f64, whatever the thread flushes. */
static bool is_power_of_two(double value, int *exponent) {
  return fabs(frexp(value, exponent)) == 0.5 && *exponent > FLT_MIN_EXP && *exponent < FLT_MAX_EXP - 2;
}

/* The root of a power of four, as queries of attention are divided by. */
static ax_ex root_of(ax_loop_kernel *kernel, ax_dtype dtype, ax_ex node) {
  const double value = float_of(kernel, node, dtype);
  int exponent;
  if (!(value > 0) || !is_power_of_two(value, &exponent) || exponent % 2 == 0) return AX_NONE;
  return float_number(kernel, dtype, ldexp(1, (exponent - 1) / 2));
}

ax_ex ax_kernel_inverse(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex divisor) {
  if (kernel->failed || op != AX_SCALAR_DIV) return AX_NONE;
  const double value = float_of(kernel, divisor, dtype);
  int exponent;
  return is_power_of_two(value, &exponent) ? float_number(kernel, dtype, 1 / value) : AX_NONE;
}

/* --- All --- */

ax_ex ax_kernel_known(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, const ax_ex arg[3]) {
  if (kernel->failed || op >= AX_SCALAR_COUNT || arg[0] == AX_NONE || op == AX_SCALAR_BITCAST) return AX_NONE;
  if (op == AX_SCALAR_CONVERT) return converted(kernel, dtype, arg[0]);
  if (op == AX_SCALAR_SQRT) return root_of(kernel, dtype, arg[0]);
  const known a = number_of(kernel, arg[0]);
  int64_t bits;
  if (op == AX_SCALAR_SELECT) return a.is ? arg[a.i != 0 ? 1 : 2] : arg[1] == arg[2] ? arg[1] : AX_NONE;
  if (op == AX_SCALAR_NOT && a.is && dtype == AX_BOOL) return ax_kernel_const(kernel, AX_BOOL, a.i == 0);
  if (ax_scalar_arity(op) != 2) return AX_NONE;
  const known b = number_of(kernel, arg[1]);
  const ax_dtype from = kernel->exprs[arg[0]].dtype;
  if (a.is && b.is) return result_of(op, from, dtype, a.i, b.i, &bits) ? ax_kernel_const(kernel, dtype, bits) : AX_NONE;
  if (dtype != AX_BOOL || from != AX_BOOL) return AX_NONE;
  return a.is ? of_one_bool(op, arg[0], a.i != 0, arg[1]) : b.is ? of_one_bool(op, arg[1], b.i != 0, arg[0]) : AX_NONE;
}
