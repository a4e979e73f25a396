#include "plan/kernel_range.h"

#include "ir/dtype.h"
#include "ir/number.h"

static const ax_integers unknown = {0};

static ax_integers between(int64_t low, int64_t high) { return (ax_integers){true, low, high}; }
static ax_integers of_number(int64_t number) { return between(number, number); }
static bool is_positive(ax_integers x) { return x.is && x.low >= 0; } /* or 0 */

/* All numbers of a dtype; those of u64 are more than an int64_t has. */
static ax_integers all_of(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (info->kind == AX_KIND_SIGNED) return between(INT64_MIN >> (64 - info->bits), INT64_MAX >> (64 - info->bits));
  if (info->kind != AX_KIND_UNSIGNED || info->bits > 63) return unknown;
  return between(0, (INT64_C(1) << info->bits) - 1);
}

/* What a result that wraps can be: these numbers, if the dtype has them all; else any. */
static ax_integers within(ax_dtype dtype, ax_integers x) {
  const ax_integers all = all_of(dtype);
  if (!x.is) return all;
  const bool positive = x.low >= 0 && ax_dtype_get(dtype)->kind == AX_KIND_UNSIGNED && ax_dtype_get(dtype)->bits == 64;
  return positive || (all.is && x.low >= all.low && x.high <= all.high) ? x : all;
}

static ax_integers united(ax_integers a, ax_integers b) {
  if (!a.is || !b.is) return unknown;
  return between(ax_least(a.low, b.low), a.high > b.high ? a.high : b.high);
}

static ax_integers sum_of(ax_integers a, ax_integers b) {
  ax_integers out = {.is = a.is && b.is};
  out.is = out.is && !__builtin_add_overflow(a.low, b.low, &out.low) && !__builtin_add_overflow(a.high, b.high, &out.high);
  return out;
}

static ax_integers minus(ax_integers x) { return x.is && x.low > INT64_MIN ? between(-x.high, -x.low) : unknown; }

static ax_integers product_of(ax_integers a, ax_integers b) {
  if (!a.is || !b.is) return unknown;
  const int64_t ends[2][2] = {{a.low, a.high}, {b.low, b.high}};
  ax_integers out = unknown;
  for (int i = 0; i < 4; i++) {
    int64_t corner;
    if (__builtin_mul_overflow(ends[0][i / 2], ends[1][i % 2], &corner)) return unknown;
    out = out.is ? united(out, of_number(corner)) : of_number(corner);
  }
  return out;
}

/* All numbers of as many digits as the largest has. */
static ax_integers digits_of(int64_t largest) {
  uint64_t all = (uint64_t)largest;
  for (int shift = 1; shift < 64; shift *= 2) all |= all >> shift;
  return between(0, (int64_t)all);
}

static ax_integers and_of(ax_integers a, ax_integers b) {
  if (is_positive(a) && is_positive(b)) return between(0, ax_least(a.high, b.high));
  return is_positive(a) ? between(0, a.high) : is_positive(b) ? between(0, b.high) : unknown;
}

static ax_integers or_of(ax_integers a, ax_integers b) {
  return is_positive(a) && is_positive(b) ? digits_of(a.high | b.high) : unknown;
}

/* By a number; what is shifted out to the left is left to `within`. */
static ax_integers shifted(ax_scalar op, ax_dtype dtype, ax_integers x, ax_integers by) {
  const int bits = ax_dtype_get(dtype)->bits;
  if (!by.is || by.low != by.high || by.low < 0 || by.low >= bits) return unknown;
  if (op == AX_SCALAR_SHIFT_LEFT) return by.low < 62 ? product_of(x, of_number(INT64_C(1) << by.low)) : unknown;
  const bool is_signed = op == AX_SCALAR_SHIFT_RIGHT_ARITHMETIC; /* the first bit is a sign, whatever the dtype */
  if (is_signed) return x.is && x.high >> (bits - 1) <= 0 ? between(x.low >> by.low, x.high >> by.low) : unknown;
  if (is_positive(x)) return between(x.low >> by.low, x.high >> by.low);
  return by.low > 0 && op == AX_SCALAR_SHIFT_RIGHT_LOGICAL ? between(0, (int64_t)(UINT64_MAX >> (64 - bits + by.low))) : unknown;
}

/* Of a division by a positive number. */
static ax_integers quotient_of(ax_integers x, ax_integers by) {
  return x.is && by.is && by.low == by.high && by.low > 0 ? between(x.low / by.low, x.high / by.low) : unknown;
}

static ax_integers rest_of(ax_integers x, ax_integers by) {
  if (!by.is || by.low <= 0) return unknown;
  const ax_integers rest = between(is_positive(x) ? 0 : 1 - by.high, by.high - 1);
  return is_positive(x) && x.high < by.low ? x : rest;
}

static ax_integers size_of(ax_integers x) {
  if (is_positive(x)) return x;
  if (!x.is || x.low == INT64_MIN) return unknown;
  return between(x.high < 0 ? -x.high : 0, -x.low > x.high ? -x.low : x.high);
}

/* What is known of one node besides: that it is `x`. */
typedef struct given {
  ax_ex node; /* AX_NONE: nothing is */
  ax_integers x;
} given;

static ax_integers operand(const ax_loop_kernel *kernel, ax_ex node, given given) {
  return node == given.node ? given.x : kernel->exprs[node].range;
}

/* Numbers of x of which x < limit (below) or x >= limit. */
static ax_integers bounded(ax_integers x, int64_t limit, bool below) {
  if (!x.is || limit == INT64_MIN) return x;
  if (below) return x.low < limit ? between(x.low, ax_least(x.high, limit - 1)) : x;
  return x.high >= limit ? between(x.low > limit ? x.low : limit, x.high) : x;
}

/* Of one operation but a choice, before it wraps. */
static ax_integers result_of(const ax_loop_kernel *kernel, const ax_expr *expr, given given) {
  ax_integers arg[2] = {unknown, unknown};
  for (int i = 0; i < ax_scalar_arity(expr->op) && i < 2; i++) arg[i] = operand(kernel, expr->arg[i], given);
  const ax_integers a = arg[0], b = arg[1];
  const int64_t bits = ax_dtype_get(expr->dtype)->bits;
  switch (expr->op) {
    case AX_SCALAR_ADD: return sum_of(a, b);
    case AX_SCALAR_SUB: return sum_of(a, minus(b));
    case AX_SCALAR_MUL: return product_of(a, b);
    case AX_SCALAR_NEG: return minus(a);
    case AX_SCALAR_ABS: return size_of(a);
    case AX_SCALAR_SIGN: return between(is_positive(a) ? a.low > 0 : -1, a.is && a.high <= 0 ? -(a.high < 0) : 1);
    case AX_SCALAR_DIV: return quotient_of(a, b);
    case AX_SCALAR_REM: return rest_of(a, b);
    case AX_SCALAR_MIN: return a.is && b.is ? between(ax_least(a.low, b.low), ax_least(a.high, b.high)) : unknown;
    case AX_SCALAR_MAX: return a.is && b.is ? between(a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high) : unknown;
    case AX_SCALAR_AND: return and_of(a, b);
    case AX_SCALAR_OR:
    case AX_SCALAR_XOR: return or_of(a, b);
    case AX_SCALAR_SHIFT_LEFT:
    case AX_SCALAR_SHIFT_RIGHT_LOGICAL:
    case AX_SCALAR_SHIFT_RIGHT_ARITHMETIC: return shifted(expr->op, expr->dtype, a, b);
    case AX_SCALAR_POPULATION_COUNT:
    case AX_SCALAR_CLZ:
    case AX_SCALAR_CTZ: return between(0, bits);
    case AX_SCALAR_CONVERT:
      return kernel->exprs[expr->arg[0]].dtype == AX_BOOL     ? between(0, 1)
             : ax_is_float(kernel->exprs[expr->arg[0]].dtype) ? unknown
                                                              : a;
    case AX_SCALAR_BITCAST: return is_positive(a) && ax_dtype_get(kernel->exprs[expr->arg[0]].dtype)->bits == bits ? a : unknown;
    default: return unknown;
  }
}

/* A side of a choice, where one node is given; its own operands may be that node. */
static ax_integers side_of(const ax_loop_kernel *kernel, ax_ex node, given given) {
  const ax_expr *expr = &kernel->exprs[node];
  if (node == given.node) return given.x;
  const bool uses =
      expr->op < AX_SCALAR_COUNT && expr->op != AX_SCALAR_SELECT && (expr->arg[0] == given.node || expr->arg[1] == given.node);
  return uses && given.node != AX_NONE ? within(expr->dtype, result_of(kernel, expr, given)) : expr->range;
}

/* A choice by x < number, as an index that counts from the end is made one that does not: each side knows what x is then. */
static ax_integers chosen(const ax_loop_kernel *kernel, const ax_expr *expr) {
  const ax_expr *by = &kernel->exprs[expr->arg[0]];
  given sides[2] = {{.node = AX_NONE}, {.node = AX_NONE}};
  if (by->op == AX_SCALAR_LT) {
    const ax_integers x = kernel->exprs[by->arg[0]].range, limit = kernel->exprs[by->arg[1]].range;
    for (int below = 0; limit.is && limit.low == limit.high && below < 2; below++)
      sides[below] = (given){by->arg[0], bounded(x, limit.low, below != 0)};
  }
  return united(side_of(kernel, expr->arg[1], sides[1]), side_of(kernel, expr->arg[2], sides[0]));
}

ax_integers ax_kernel_range_of(const ax_loop_kernel *kernel, const ax_expr *expr) {
  if (expr->dtype == AX_BOOL || !ax_is_exact(expr->dtype)) return unknown;
  switch ((int)expr->op) {
    case AX_LEAF_CONST: {
      const int64_t number = ax_number_load(expr->dtype, &expr->imm, 0).i;
      return expr->dtype == AX_U64 && number < 0 ? unknown : of_number(number);
    }
    case AX_LEAF_INDEX: return between(0, kernel->dims[expr->imm] > 0 ? kernel->dims[expr->imm] - 1 : 0);
    case AX_SCALAR_SELECT: return within(expr->dtype, chosen(kernel, expr));
    default:
      return expr->op < AX_SCALAR_COUNT ? within(expr->dtype, result_of(kernel, expr, (given){.node = AX_NONE}))
                                        : all_of(expr->dtype);
  }
}
