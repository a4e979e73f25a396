#include "plan/kernel_known.h"

#include <float.h>
#include <math.h>

#include "ir/dtype.h"
#include "ir/number.h"
#include "plan/kernel_range.h"

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

static bool is_negative(ax_dtype dtype, int64_t number) { return ax_dtype_get(dtype)->kind == AX_KIND_SIGNED && number < 0; }

/* and, or of a bool that is a number and one that is not: that number, or the other one; whether they differ: the other one. */
static ax_ex of_one_bool(ax_scalar op, ax_ex number, bool value, ax_ex other) {
  if (op == AX_SCALAR_NE || op == AX_SCALAR_XOR) return value ? AX_NONE : other;
  if (op == AX_SCALAR_EQ) return value ? other : AX_NONE;
  if (op != AX_SCALAR_AND && op != AX_SCALAR_OR) return AX_NONE;
  return value == (op == AX_SCALAR_AND) ? other : number;
}

/* An integer that was converted from another before: from that one, if the dtype between has as many bits as the result or more. */
static ax_ex converted_twice(ax_loop_kernel *kernel, ax_dtype dtype, const ax_expr *between) {
  if (between->op != AX_SCALAR_CONVERT || dtype == AX_BOOL || between->dtype == AX_BOOL) return AX_NONE;
  const ax_dtype from = kernel->exprs[between->arg[0]].dtype;
  const bool integers = ax_is_exact(dtype) && ax_is_exact(between->dtype) && ax_is_exact(from);
  if (!integers || ax_dtype_get(dtype)->bits > ax_dtype_get(between->dtype)->bits) return AX_NONE;
  return dtype == from ? between->arg[0] : ax_kernel_op(kernel, AX_SCALAR_CONVERT, dtype, between->arg[0], AX_NONE, AX_NONE);
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

/* --- Integers --- */

static bool is_number(const ax_loop_kernel *kernel, ax_ex node, int64_t value) {
  const known number = number_of(kernel, node);
  return number.is && number.i == value;
}

static bool is_op(const ax_loop_kernel *kernel, ax_ex node, ax_scalar op, ax_ex a) {
  return kernel->exprs[node].op == op && kernel->exprs[node].arg[0] == a;
}

/* k, of the number 2^k; -1: it is none. */
static int power_of(known number) {
  return number.is && number.i > 0 && (number.i & (number.i - 1)) == 0 ? __builtin_ctzll((uint64_t)number.i) : -1;
}

static ax_ex bit_op(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex x, int64_t number) {
  return ax_kernel_op(kernel, op, dtype, x, ax_kernel_const(kernel, dtype, wrapped(dtype, (uint64_t)number)), AX_NONE);
}

/* A comparison whose operands' ranges tell its result, or -1. */
static int compared(ax_scalar op, ax_integers a, ax_integers b) {
  if (!a.is || !b.is) return -1;
  const bool below = a.high<b.low, above = a.low> b.high, apart = below || above, same = a.low == b.high && a.high == b.low;
  switch (op) {
    case AX_SCALAR_EQ: return apart ? 0 : same ? 1 : -1;
    case AX_SCALAR_NE: return apart ? 1 : same ? 0 : -1;
    case AX_SCALAR_LT: return below ? 1 : a.low >= b.high ? 0 : -1;
    case AX_SCALAR_LE: return a.high <= b.low ? 1 : above ? 0 : -1;
    case AX_SCALAR_GT: return above ? 1 : a.high <= b.low ? 0 : -1;
    case AX_SCALAR_GE: return a.low >= b.high ? 1 : below ? 0 : -1;
    default: return -1;
  }
}

/* Of two operands, that one which is the result whatever they are. */
static ax_ex same_as_operand(ax_scalar op, const ax_ex arg[3], ax_integers a, ax_integers b) {
  const bool both = a.is && b.is, number = both && b.low == b.high;
  switch (op) {
    case AX_SCALAR_ADD:
    case AX_SCALAR_OR:
    case AX_SCALAR_XOR: return number && b.low == 0 ? arg[0] : a.is && a.low == 0 && a.high == 0 ? arg[1] : AX_NONE;
    case AX_SCALAR_SUB:
    case AX_SCALAR_SHIFT_LEFT:
    case AX_SCALAR_SHIFT_RIGHT_LOGICAL:
    case AX_SCALAR_SHIFT_RIGHT_ARITHMETIC: return number && b.low == 0 ? arg[0] : AX_NONE;
    case AX_SCALAR_MUL: return number && b.low == 1 ? arg[0] : a.is && a.low == 1 && a.high == 1 ? arg[1] : AX_NONE;
    case AX_SCALAR_DIV: return number && b.low == 1 ? arg[0] : AX_NONE;
    case AX_SCALAR_REM: return number && a.low >= 0 && a.high < b.low ? arg[0] : AX_NONE;
    case AX_SCALAR_AND: return number && a.low >= 0 && a.high <= b.low && (b.low & (b.low + 1)) == 0 ? arg[0] : AX_NONE;
    case AX_SCALAR_MIN: return !both ? AX_NONE : a.high <= b.low ? arg[0] : b.high <= a.low ? arg[1] : AX_NONE;
    case AX_SCALAR_MAX: return !both ? AX_NONE : a.low >= b.high ? arg[0] : b.low >= a.high ? arg[1] : AX_NONE;
    default: return AX_NONE;
  }
}

/* Of integers: the number that the result is, whatever the operands are in their ranges. */
static ax_ex one_number(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, const ax_ex arg[3]) {
  const ax_expr made = {.op = op, .dtype = dtype, .arg = {arg[0], arg[1], AX_NONE}};
  const ax_integers range = dtype != AX_BOOL ? ax_kernel_range_of(kernel, &made) : (ax_integers){.is = false};
  return range.is && range.low == range.high ? ax_kernel_const(kernel, dtype, wrapped(dtype, (uint64_t)range.low)) : AX_NONE;
}

/* By 2^k, what is not negative is shifted, and its last digits are the rest. */
static ax_ex divided(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, const ax_ex arg[3], bool positive) {
  const int digits = power_of(number_of(kernel, arg[1]));
  if (digits == 0 && op == AX_SCALAR_REM) return ax_kernel_const(kernel, dtype, 0);
  if (!positive || digits < 0 || (op != AX_SCALAR_DIV && op != AX_SCALAR_REM)) return AX_NONE;
  return op == AX_SCALAR_DIV ? bit_op(kernel, AX_SCALAR_SHIFT_RIGHT_LOGICAL, dtype, arg[0], digits)
                             : bit_op(kernel, AX_SCALAR_AND, dtype, arg[0], (int64_t)((UINT64_C(1) << digits) - 1));
}

static ax_ex of_integers(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, const ax_ex arg[3]) {
  const ax_dtype from = kernel->exprs[arg[0]].dtype;
  const ax_integers a = ax_kernel_range(kernel, arg[0]), b = ax_kernel_range(kernel, arg[1]);
  if (op >= AX_SCALAR_EQ && op <= AX_SCALAR_GE) {
    const int is = compared(op, a, b);
    return is < 0 ? AX_NONE : ax_kernel_const(kernel, AX_BOOL, is);
  }
  const ax_ex same = same_as_operand(op, arg, a, b);
  if (same != AX_NONE) return same;
  const ax_ex one = one_number(kernel, op, dtype, arg);
  if (one != AX_NONE) return one;
  return divided(kernel, op, dtype, arg, ax_dtype_get(from)->kind == AX_KIND_UNSIGNED || (a.is && a.low >= 0));
}

/* x >= 0 and x <= number, with which indices are looked at: one comparison, of numbers without a sign. */
static ax_ex inside_bounds(ax_loop_kernel *kernel, ax_ex low, ax_ex high) {
  const ax_expr *ge = &kernel->exprs[low], *le = &kernel->exprs[high];
  if (ge->op != AX_SCALAR_GE || le->op != AX_SCALAR_LE || ge->arg[0] != le->arg[0] || !is_number(kernel, ge->arg[1], 0))
    return AX_NONE;
  const known most = number_of(kernel, le->arg[1]);
  const ax_expr *expr = &kernel->exprs[ge->arg[0]];
  const bool widened =
      expr->op == AX_SCALAR_CONVERT && kernel->exprs[expr->arg[0]].dtype == AX_S32 && most.is && most.i <= INT32_MAX;
  const ax_ex x = widened ? expr->arg[0] : ge->arg[0];
  const ax_dtype dtype = kernel->exprs[x].dtype, as = dtype == AX_S32 ? AX_U32 : dtype == AX_S64 ? AX_U64 : AX_NO_DTYPE;
  if (as == AX_NO_DTYPE || !most.is || most.i < 0) return AX_NONE;
  const ax_ex number = ax_kernel_const(kernel, as, most.i);
  return ax_kernel_op(kernel, AX_SCALAR_LE, AX_BOOL, ax_kernel_op(kernel, AX_SCALAR_BITCAST, as, x, AX_NONE, AX_NONE), number,
                      AX_NONE);
}

static bool is_not(const ax_loop_kernel *kernel, ax_ex node, ax_ex *x, int64_t number) {
  const ax_expr *expr = &kernel->exprs[node];
  *x = expr->arg[0];
  return expr->op == AX_SCALAR_NE && is_number(kernel, expr->arg[1], number);
}

/* Whether one asks if the sign of x is not 1, where x is not negative, and the other if x is not 0, as JAX's // does where it rounds
   down: both never hold. */
static bool contradict(const ax_loop_kernel *kernel, ax_ex no_sign, ax_ex nonzero) {
  ax_ex sign, x;
  if (!is_not(kernel, no_sign, &sign, 1) || !is_not(kernel, nonzero, &x, 0) || !is_op(kernel, sign, AX_SCALAR_SIGN, x)) return false;
  const ax_integers range = ax_kernel_range(kernel, x);
  return range.is && range.low >= 0;
}

/* The number by which a node divides x; 0: it does not. */
static int64_t divisor_of(const ax_loop_kernel *kernel, ax_ex node, ax_ex x) {
  const ax_expr *expr = &kernel->exprs[node];
  if (expr->arg[0] != x || (expr->op != AX_SCALAR_DIV && expr->op != AX_SCALAR_SHIFT_RIGHT_LOGICAL)) return 0;
  const known by = number_of(kernel, expr->arg[1]);
  if (!by.is || by.i < 0 || expr->op == AX_SCALAR_DIV) return by.is ? by.i : 0;
  return by.i < 63 ? INT64_C(1) << by.i : 0;
}

/* Whether a node is the rest of x divided by a number: of a smaller x, itself. */
static bool is_rest(const ax_loop_kernel *kernel, ax_ex node, ax_ex x, int64_t number) {
  const ax_expr *expr = &kernel->exprs[node];
  const ax_integers range = node == x ? ax_kernel_range(kernel, x) : (ax_integers){.is = false};
  if (range.is) return range.low >= 0 && range.high < number;
  if (expr->arg[0] != x) return false;
  return (expr->op == AX_SCALAR_REM && is_number(kernel, expr->arg[1], number)) ||
         (expr->op == AX_SCALAR_AND && (number & (number - 1)) == 0 && is_number(kernel, expr->arg[1], number - 1));
}

/* Whether `node` asks if x is of another sign than a positive number, and its division by that leaves a rest. */
static bool leaves_less(const ax_loop_kernel *kernel, ax_ex node, ax_ex x, int64_t number) {
  const ax_expr *both = &kernel->exprs[node];
  ax_ex sign, rest;
  for (int i = 0; both->op == AX_SCALAR_AND && i < 2; i++)
    if (is_not(kernel, both->arg[i], &sign, 1) && is_op(kernel, sign, AX_SCALAR_SIGN, x) &&
        is_not(kernel, both->arg[1 - i], &rest, 0))
      return is_rest(kernel, rest, x, number);
  return false;
}

/* Whether `node` asks if a rest is negative, and maybe once more if it is one. */
static bool is_below_zero(const ax_loop_kernel *kernel, ax_ex node, ax_ex rest) {
  const ax_expr *expr = &kernel->exprs[node];
  ax_ex x;
  if (expr->op != AX_SCALAR_AND) return is_op(kernel, node, AX_SCALAR_LT, rest) && is_number(kernel, expr->arg[1], 0);
  for (int i = 0; i < 2; i++)
    if (is_not(kernel, expr->arg[i], &x, 0) && x == rest) return is_below_zero(kernel, expr->arg[1 - i], rest);
  return false;
}

/* x % number, by a choice: where the rest of a division that rounds towards 0 is negative, the number is added. Of 2^k: the
   last digits. */
static ax_ex rest_from_below(ax_loop_kernel *kernel, ax_dtype dtype, const ax_ex arg[3]) {
  const ax_expr *moved = &kernel->exprs[arg[1]], *rest = &kernel->exprs[arg[2]];
  if (moved->op != AX_SCALAR_ADD || moved->arg[0] != arg[2] || rest->op != AX_SCALAR_REM || moved->arg[1] != rest->arg[1])
    return AX_NONE;
  const known by = number_of(kernel, rest->arg[1]);
  if (power_of(by) < 0 || !is_below_zero(kernel, arg[0], arg[2])) return AX_NONE;
  return bit_op(kernel, AX_SCALAR_AND, dtype, rest->arg[0], by.i - 1);
}

/* x // number, by a choice: where a division that rounds towards 0 leaves a rest, and rounds up so, one is taken off. By 2^k:
   a shift. What is not negative is rounded down already. */
static ax_ex rounded_down(ax_loop_kernel *kernel, ax_dtype dtype, const ax_ex arg[3]) {
  const ax_expr *moved = &kernel->exprs[arg[1]];
  const ax_ex x = kernel->exprs[arg[2]].arg[0];
  if (moved->op != AX_SCALAR_SUB || moved->arg[0] != arg[2] || !is_number(kernel, moved->arg[1], 1)) return AX_NONE;
  const int64_t by = x != AX_NONE ? divisor_of(kernel, arg[2], x) : 0;
  if (by < 1 || !leaves_less(kernel, arg[0], x, by)) return AX_NONE;
  const ax_integers range = ax_kernel_range(kernel, x);
  if (range.is && range.low >= 0) return arg[2];
  const int digits = power_of((known){by, true});
  return digits >= 0 ? bit_op(kernel, AX_SCALAR_SHIFT_RIGHT_ARITHMETIC, dtype, x, digits) : AX_NONE;
}

static ax_ex rounded_choice(ax_loop_kernel *kernel, ax_dtype dtype, const ax_ex arg[3]) {
  if (ax_dtype_get(dtype)->kind != AX_KIND_SIGNED) return AX_NONE;
  const ax_ex rest = rest_from_below(kernel, dtype, arg);
  return rest != AX_NONE ? rest : rounded_down(kernel, dtype, arg);
}

/* --- Choices between what is loaded and 0 --- */

/* Whether `guard` holds wherever `other` does. */
static bool follows(const ax_loop_kernel *kernel, ax_ex guard, ax_ex other) {
  const ax_expr *g = &kernel->exprs[guard], *o = &kernel->exprs[other];
  if (guard == other) return true;
  if (g->op == AX_SCALAR_AND) return follows(kernel, g->arg[0], other) && follows(kernel, g->arg[1], other);
  return o->op == AX_SCALAR_AND && (follows(kernel, guard, o->arg[0]) || follows(kernel, guard, o->arg[1]));
}

/* Whether a node is 0 where a guard does not hold: loads are, under guards of which it is a part. */
static bool is_zero_beside(const ax_loop_kernel *kernel, ax_ex node, ax_ex guard, int depth) {
  enum { deepest = 4 };
  const ax_expr *expr = &kernel->exprs[node];
  if (expr->op == AX_LEAF_CONST) return expr->imm == 0;
  if (expr->op == AX_LEAF_LOAD) return expr->arg[0] != AX_NONE && follows(kernel, guard, expr->arg[0]);
  return expr->op == AX_SCALAR_SELECT && depth < deepest && is_zero_beside(kernel, expr->arg[1], guard, depth + 1) &&
         is_zero_beside(kernel, expr->arg[2], guard, depth + 1);
}

/* --- All --- */

ax_ex ax_kernel_known(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, const ax_ex arg[3]) {
  if (kernel->failed || op >= AX_SCALAR_COUNT || arg[0] == AX_NONE || op == AX_SCALAR_BITCAST) return AX_NONE;
  if (op == AX_SCALAR_CONVERT) {
    const ax_ex twice = converted_twice(kernel, dtype, &kernel->exprs[arg[0]]);
    return twice != AX_NONE ? twice : converted(kernel, dtype, arg[0]);
  }
  if (op == AX_SCALAR_SQRT) return root_of(kernel, dtype, arg[0]);
  const known a = number_of(kernel, arg[0]);
  int64_t bits;
  if (op == AX_SCALAR_SELECT && (a.is || arg[1] == arg[2])) return arg[a.is && a.i == 0 ? 2 : 1];
  const ax_expr *other = op == AX_SCALAR_SELECT ? &kernel->exprs[arg[2]] : NULL;
  if (other != NULL && other->op == AX_LEAF_CONST && other->imm == 0 && is_zero_beside(kernel, arg[1], arg[0], 0)) return arg[1];
  if (op == AX_SCALAR_SELECT) return rounded_choice(kernel, dtype, arg);
  if (op == AX_SCALAR_SIGN && a.is)
    return ax_kernel_const(kernel, dtype, wrapped(dtype, a.i == 0 ? 0 : is_negative(dtype, a.i) ? UINT64_MAX : 1));
  if (op == AX_SCALAR_SIGN && ax_is_exact(dtype)) return one_number(kernel, op, dtype, arg);
  if (op == AX_SCALAR_NOT && a.is && dtype == AX_BOOL) return ax_kernel_const(kernel, AX_BOOL, a.i == 0);
  if (ax_scalar_arity(op) != 2) return AX_NONE;
  const known b = number_of(kernel, arg[1]);
  const ax_dtype from = kernel->exprs[arg[0]].dtype;
  if (a.is && b.is) return result_of(op, from, dtype, a.i, b.i, &bits) ? ax_kernel_const(kernel, dtype, bits) : AX_NONE;
  if (from != AX_BOOL) return ax_is_exact(from) ? of_integers(kernel, op, dtype, arg) : AX_NONE;
  if (dtype != AX_BOOL) return AX_NONE;
  if (op == AX_SCALAR_AND && !a.is && !b.is) {
    if (contradict(kernel, arg[0], arg[1]) || contradict(kernel, arg[1], arg[0])) return ax_kernel_const(kernel, AX_BOOL, 0);
    const ax_ex one = inside_bounds(kernel, arg[0], arg[1]);
    return one != AX_NONE ? one : inside_bounds(kernel, arg[1], arg[0]);
  }
  return a.is ? of_one_bool(op, arg[0], a.i != 0, arg[1]) : b.is ? of_one_bool(op, arg[1], b.i != 0, arg[0]) : AX_NONE;
}
