/* Pointwise operations on complex numbers as operations on real ones: z = x + i y. Formulas are chosen so that nothing overflows or
   cancels on the way where the result does not: sizes as big sqrt(1 + (small / big)^2), quotients by the larger part of the divisor,
   inverse functions by Kahan's formulas (Branch cuts for complex elementary functions, 1987). Signs of zeros choose the side of a
   branch cut. */
#include <math.h>

#include "ops/complex.h"
#include "ops/pointwise.h"
#include "prim/prims.h"

typedef struct pair {
  ax_value x, y;
} pair;

static pair parts(ax_value z) {
  pair p;
  p.x = ax_real_part(z);
  p.y = ax_imag_part(z);
  return p;
}

/* One call that adds equations in an argument list at most, as C leaves their order open. */
static ax_value number(ax_value like, double value) { return ax_full_like(like, value); }
static ax_value plus(ax_value x, double value) { return ax_add(x, number(x, value)); }
static ax_value scaled(ax_value x, double value) { return ax_mul(x, number(x, value)); }
static ax_value square(ax_value x) { return ax_mul(x, x); }
static ax_value is(ax_value x, double value) { return ax_eq(x, number(x, value)); }
/* a where the condition holds, else b */
static ax_value choose(ax_value condition, ax_value a, ax_value b) { return ax_select_n(condition, b, a); }
static ax_value choose_number(ax_value condition, double a, ax_value b) { return choose(condition, number(b, a), b); }

/* A real function with the accuracy that the equation asks for. */
static ax_value real(const ax_prim *prim, const ax_eqn *eqn, ax_value x) {
  const int64_t accuracy = eqn->prim->params == ax_function_params ? *(const int64_t *)eqn->params : AX_ACCURACY_DEFAULT;
  return ax_bind1(prim, &accuracy, &x, 1);
}

/* |size| with the sign of y, also of a zero. */
static ax_value with_sign(ax_value size, ax_value y) {
  const bool wide = ax_typeof(y).dtype == AX_F64;
  if (ax_failed()) return ax_poison;
  const ax_dtype bits = wide ? AX_U64 : AX_U32;
  ax_value sign = ax_bitcast_convert_type(y, bits);
  sign = ax_and(sign, wide ? ax_unsigned((uint64_t)1 << 63) : ax_unsigned((uint64_t)1 << 31));
  ax_value made = ax_bitcast_convert_type(ax_abs(size), bits);
  return ax_bitcast_convert_type(ax_or(made, sign), wide ? AX_F64 : AX_F32);
}

/* --- Arithmetic --- */

static pair add(pair a, pair b) {
  pair p;
  p.x = ax_add(a.x, b.x);
  p.y = ax_add(a.y, b.y);
  return p;
}

static pair sub(pair a, pair b) {
  pair p;
  p.x = ax_sub(a.x, b.x);
  p.y = ax_sub(a.y, b.y);
  return p;
}

static pair mul(pair a, pair b) {
  pair p;
  ax_value xx = ax_mul(a.x, b.x), yy = ax_mul(a.y, b.y);
  p.x = ax_sub(xx, yy);
  ax_value xy = ax_mul(a.x, b.y), yx = ax_mul(a.y, b.x);
  p.y = ax_add(xy, yx);
  return p;
}

static pair neg(pair a) {
  pair p;
  p.x = ax_neg(a.x);
  p.y = ax_neg(a.y);
  return p;
}

static pair conjugate(pair a) { return (pair){a.x, ax_neg(a.y)}; }
static pair times_i(pair a) { return (pair){ax_neg(a.y), a.x}; }
static pair over_i(pair a) { return (pair){a.y, ax_neg(a.x)}; }
static pair one_plus(pair a) { return (pair){plus(a.x, 1), a.y}; }
/* 1 for infinities and 0 for finite numbers, with their sign. */
static ax_value infinite_or_0(ax_value x) {
  ax_value size = choose_number(is(ax_abs(x), INFINITY), 1, number(x, 0));
  return with_sign(size, x);
}

static ax_value is_infinite(pair z) {
  ax_value x = is(ax_abs(z.x), INFINITY);
  return ax_or(x, is(ax_abs(z.y), INFINITY));
}

/* What the quotient is where the formula gives NaN in both parts (C17, G.5.1): by zero, of infinities by finite numbers, of finite
   numbers by infinities. It is a conj(b) with one of them replaced, times infinity or 0: infinities by numbers of size 1, finite parts
   beside them by 0; and a zero divisor by the sign of its real part. */
static pair special_quotient(pair a, pair b, pair q) {
  ax_value nans = ax_and(ax_ne(q.x, q.x), ax_ne(q.y, q.y)), zero = ax_and(is(b.x, 0), is(b.y, 0));
  const ax_value a_infinite = is_infinite(a), b_infinite = is_infinite(b), infinity = number(a.x, INFINITY);
  const ax_value large = ax_and(a_infinite, ax_not(zero)), one = ax_or(b_infinite, zero);
  const pair far = {choose(large, infinite_or_0(a.x), a.x), choose(large, infinite_or_0(a.y), a.y)};
  const ax_value unit = with_sign(number(b.x, 1), b.x), beside = infinite_or_0(b.x);
  const pair near = {choose(one, choose(zero, unit, beside), b.x), choose(b_infinite, infinite_or_0(b.y), b.y)};
  ax_value xx = ax_mul(far.x, near.x), yy = ax_mul(far.y, near.y), yx = ax_mul(far.y, near.x), xy = ax_mul(far.x, near.y);
  const ax_value times = choose_number(b_infinite, 0, infinity), x = choose(zero, xx, ax_add(xx, yy)), y = choose(zero, yx, ax_sub(yx, xy));
  nans = ax_and(nans, ax_or(zero, ax_ne(a_infinite, b_infinite)));
  pair r;
  r.x = choose(nans, ax_mul(times, x), q.x);
  r.y = choose(nans, ax_mul(times, y), q.y);
  return r;
}

/* By the larger part p of the divisor and the other, q (Smith's): with r = q / p, (u + v r) / (p + q r). */
static pair divide(pair a, pair b) {
  ax_value size = ax_abs(b.x), first = ax_ge(size, ax_abs(b.y));
  ax_value p = choose(first, b.x, b.y), q = choose(first, b.y, b.x), u = choose(first, a.x, a.y), v = choose(first, a.y, a.x);
  ax_value r = ax_div(q, p), below = ax_add(p, ax_mul(q, r));
  pair made;
  made.x = ax_div(ax_add(u, ax_mul(v, r)), below);
  ax_value ur = ax_mul(u, r), left = choose(first, v, ur);
  made.y = ax_div(ax_sub(left, choose(first, ur, v)), below);
  return special_quotient(a, b, made);
}

static pair over(double imag, pair a) {
  pair one;
  one.x = number(a.x, 1);
  one.y = number(a.x, imag);
  return divide(one, a);
}

static pair reciprocal(pair a) { return over(0, a); }

static pair integer_power(pair a, int64_t exponent) {
  pair square_of = a, product = a;
  bool any = false;
  for (uint64_t n = exponent < 0 ? -(uint64_t)exponent : (uint64_t)exponent; n > 0; n >>= 1) {
    if (n & 1) product = any ? mul(product, square_of) : square_of;
    any = any || (n & 1) != 0;
    if (n > 1) square_of = mul(square_of, square_of);
  }
  if (!any) {
    product.x = number(a.x, 1);
    product.y = number(a.x, 0);
  }
  return exponent < 0 ? reciprocal(product) : product;
}

/* --- Sizes --- */

/* The larger and the smaller of |x| and |y|, their ratio, at most 1, and |z| / big. */
typedef struct sizes {
  ax_value x, y, big, small, ratio, over_big;
} sizes;

static sizes sizes_of(pair z) {
  sizes s;
  s.x = ax_abs(z.x);
  s.y = ax_abs(z.y);
  s.big = ax_max(s.x, s.y);
  s.small = ax_min(s.x, s.y);
  ax_value ratio = ax_div(s.small, s.big);
  s.ratio = choose_number(ax_eq(s.small, s.big), 1, ratio); /* zeros and infinities have one */
  s.over_big = ax_sqrt(plus(square(s.ratio), 1));
  return s;
}

/* Beside an infinity NaN does not count. */
static ax_value size_of(pair z) {
  const sizes s = sizes_of(z);
  ax_value size = ax_mul(s.big, s.over_big), infinite = is(s.x, INFINITY);
  infinite = ax_or(infinite, is(s.y, INFINITY));
  return choose_number(infinite, INFINITY, size);
}

static pair sign(pair z) {
  const sizes s = sizes_of(z);
  const ax_value nothing = is(s.big, 0);
  pair p;
  p.x = choose(nothing, z.x, ax_div(ax_div(z.x, s.big), s.over_big));
  p.y = choose(nothing, z.y, ax_div(ax_div(z.y, s.big), s.over_big));
  return p;
}

/* --- Roots --- */

/* t = sqrt((|x| + |z|) / 2) is the larger part, or as large; the other is |y| / (2 t). */
static pair square_root(pair z) {
  const sizes s = sizes_of(z);
  ax_value share = ax_div(s.x, s.big);
  share = choose_number(ax_eq(s.x, s.big), 1, share);
  ax_value root = ax_sqrt(scaled(ax_add(share, s.over_big), 0.5)), t = ax_mul(root, ax_sqrt(s.big));
  ax_value other = ax_div(s.y, scaled(t, 2));
  other = choose_number(is(t, 0), 0, other);
  other = choose_number(is(s.y, INFINITY), INFINITY, other);
  t = choose_number(is(s.y, INFINITY), INFINITY, t);
  const ax_value right = ax_ge(z.x, number(z.x, 0));
  pair p;
  p.x = choose(right, t, other);
  p.y = with_sign(choose(right, other, t), z.y);
  p.y = choose(ax_ne(z.y, z.y), z.y, p.y);
  return p;
}

/* --- Exponentials and logarithms --- */

/* e (cos y + i sin y), where the real number stays real. */
static pair turned(const ax_eqn *eqn, ax_value e, ax_value y) {
  pair p;
  p.x = ax_mul(e, real(&ax_prim_cos, eqn, y));
  ax_value sine = ax_mul(e, real(&ax_prim_sin, eqn, y));
  p.y = choose(is(y, 0), y, sine);
  return p;
}

/* An exponent, lowered where its exponential would be infinite, and what makes up for it: the parts of the result may be finite. */
typedef struct lowered {
  ax_value x, times;
} lowered;

static lowered lower_exponent(ax_value x, ax_value size, double from, double by, double times) {
  const ax_value high = ax_gt(size, number(x, from));
  lowered l;
  l.x = choose(high, ax_sub(x, with_sign(number(x, by), x)), x);
  l.times = choose_number(high, times, number(x, 1));
  return l;
}

static lowered lower_natural(ax_value x, ax_value size) {
  return ax_typeof(x).dtype == AX_F64 ? lower_exponent(x, size, 709, 650, exp(650)) : lower_exponent(x, size, 88, 70, exp(70));
}

static pair times_real(pair z, ax_value by) {
  pair p;
  p.x = ax_mul(z.x, by);
  p.y = ax_mul(z.y, by);
  return p;
}

static pair exponential(const ax_eqn *eqn, pair z) {
  const lowered l = lower_natural(z.x, z.x);
  return times_real(turned(eqn, real(&ax_prim_exp, eqn, l.x), z.y), l.times);
}

static pair power_of_2(const ax_eqn *eqn, pair z) {
  const bool wide = ax_typeof(z.x).dtype == AX_F64;
  const lowered l = wide ? lower_exponent(z.x, z.x, 1023, 900, 0x1p900) : lower_exponent(z.x, z.x, 127, 100, 0x1p100);
  ax_value e = real(&ax_prim_exp2, eqn, l.x);
  return times_real(turned(eqn, e, scaled(z.y, 0.69314718055994530942)), l.times);
}

/* e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2 (y / 2) */
static pair exponential_minus_one(const ax_eqn *eqn, pair z) {
  ax_value e = real(&ax_prim_expm1, eqn, z.x), sine = real(&ax_prim_sin, eqn, scaled(z.y, 0.5));
  pair p = turned(eqn, plus(e, 1), z.y);
  ax_value most = ax_mul(e, real(&ax_prim_cos, eqn, z.y));
  p.x = ax_sub(most, scaled(square(sine), 2));
  return p;
}

/* log |z| = log(big) + log1p(ratio^2) / 2; where |z| is near 1, log1p(big^2 - 1 + small^2) / 2. */
static ax_value log_of_size(const ax_eqn *eqn, pair z) {
  const sizes s = sizes_of(z);
  ax_value near = ax_gt(s.big, number(s.big, 0.5));
  near = ax_and(near, ax_lt(s.big, number(s.big, 2)));
  ax_value above = plus(s.big, 1), beyond = ax_mul(plus(s.big, -1), above);
  beyond = ax_add(beyond, square(s.small));
  ax_value more = choose(near, beyond, square(s.ratio)), whole = choose_number(near, 0, real(&ax_prim_log, eqn, s.big));
  return ax_add(whole, scaled(real(&ax_prim_log1p, eqn, more), 0.5));
}

static pair logarithm(const ax_eqn *eqn, pair z) {
  pair p;
  p.x = log_of_size(eqn, z);
  p.y = ax_atan2(z.y, z.x);
  return p;
}

static pair logarithm_plus_one(const ax_eqn *eqn, pair z) {
  const pair above = one_plus(z);
  ax_value x = ax_abs(z.x), big = ax_max(x, ax_abs(z.y)), beyond = ax_mul(z.x, plus(z.x, 2));
  beyond = ax_add(beyond, square(z.y));
  pair p = logarithm(eqn, above);
  ax_value near = scaled(real(&ax_prim_log1p, eqn, beyond), 0.5);
  p.x = choose(ax_lt(big, number(big, 0.5)), near, p.x);
  return p;
}

/* |z|^c e^(-d angle), turned by d log |z| + c angle. 0 to the power 0 is 1; to powers with c > 0 it is 0. */
static pair power(const ax_eqn *eqn, pair z, pair w) {
  const pair l = logarithm(eqn, z);
  ax_value size = ax_pow(size_of(z), w.x), less = real(&ax_prim_exp, eqn, ax_neg(ax_mul(w.y, l.y)));
  ax_value angle = ax_mul(w.y, l.x);
  angle = ax_add(angle, ax_mul(w.x, l.y));
  const pair p = turned(eqn, ax_mul(size, less), angle);
  ax_value nothing = is(z.x, 0), none = is(w.x, 0);
  nothing = ax_and(nothing, is(z.y, 0));
  none = ax_and(none, is(w.y, 0));
  const ax_value zero = number(z.x, 0), vanishes = ax_and(nothing, ax_gt(w.x, zero));
  pair r;
  r.x = choose_number(none, 1, choose(vanishes, zero, p.x));
  r.y = choose(ax_or(none, vanishes), zero, p.y);
  return r;
}

static pair logistic(const ax_eqn *eqn, pair z) { return reciprocal(one_plus(exponential(eqn, neg(z)))); }

/* The larger or the smaller by the real part, and of equal ones by the imaginary part; NaN if either has one. */
static pair extreme(ax_scalar op, pair a, pair b) {
  const bool larger = op == AX_SCALAR_MAX;
  const ax_prim *prim = larger ? &ax_prim_max : &ax_prim_min;
  const double none = larger ? -INFINITY : INFINITY;
  ax_value ya = choose(larger ? ax_ge(a.x, b.x) : ax_le(a.x, b.x), a.y, number(a.y, none));
  ax_value yb = choose(larger ? ax_ge(b.x, a.x) : ax_le(b.x, a.x), b.y, number(b.y, none));
  ax_value known = ax_and(ax_eq(a.x, a.x), ax_eq(a.y, a.y)), other = ax_and(ax_eq(b.x, b.x), ax_eq(b.y, b.y));
  known = ax_and(known, other);
  const ax_value nan = number(a.x, NAN);
  pair p;
  p.x = choose(known, ax_bind_binary(prim, a.x, b.x), nan);
  p.y = choose(known, ax_bind_binary(prim, ya, yb), nan);
  return p;
}

/* --- Angles and hyperbolic functions --- */

/* -i log((x + i y) / sqrt(x^2 + y^2)) */
static pair angle_of_both(const ax_eqn *eqn, pair y, pair x) {
  const pair along = add(x, times_i(y)), size = square_root(add(mul(x, x), mul(y, y)));
  const pair l = logarithm(eqn, divide(along, size));
  return (pair){l.y, ax_sub(number(l.x, 0), l.x)};
}


/* sinh x cos y + i cosh x sin y, and cosh x cos y + i sinh x sin y */
static pair sinh_of(const ax_eqn *eqn, pair z) {
  pair p;
  const lowered l = lower_natural(z.x, ax_abs(z.x));
  ax_value s = real(&ax_prim_sinh, eqn, l.x), c = real(&ax_prim_cosh, eqn, l.x);
  p.x = ax_mul(s, real(&ax_prim_cos, eqn, z.y));
  ax_value sine = ax_mul(c, real(&ax_prim_sin, eqn, z.y));
  p.y = choose(is(z.y, 0), z.y, sine);
  return times_real(p, l.times);
}

static pair cosh_of(const ax_eqn *eqn, pair z) {
  pair p;
  const lowered l = lower_natural(z.x, ax_abs(z.x));
  ax_value s = real(&ax_prim_sinh, eqn, l.x), c = real(&ax_prim_cosh, eqn, l.x);
  p.x = ax_mul(c, real(&ax_prim_cos, eqn, z.y));
  ax_value sine = ax_mul(s, real(&ax_prim_sin, eqn, z.y)), flat = infinite_or_0(z.x);
  p.y = choose(is(z.y, 0), ax_mul(flat, z.y), sine);
  return times_real(p, l.times);
}

/* With t = tan y, s = sinh x, b = 1 + t^2: (b s cosh x + i t) / (1 + b s^2). Where e^(-2 |x|) does not count beside 1, the real part
   is 1 or -1, and the imaginary part 4 sin y cos y e^(-2 |x|), where sin y cos y = t / b: at infinity a zero with that sign, which an
   infinite or unknown y lends where it has no tangent. */
static pair tanh_of(const ax_eqn *eqn, pair z) {
  const double most = ax_typeof(z.x).dtype == AX_F64 ? 20 : 10;
  ax_value t = real(&ax_prim_tan, eqn, z.y), s = real(&ax_prim_sinh, eqn, z.x), b = plus(square(t), 1), bs = ax_mul(b, s);
  ax_value below = plus(ax_mul(bs, s), 1), size = ax_abs(z.x), c = ax_sqrt(plus(square(s), 1));
  const ax_value lost = ax_ne(t, t), at_infinity = is(size, INFINITY);
  pair p;
  p.x = ax_div(ax_mul(bs, c), below);
  p.y = ax_div(t, below);
  ax_value decay = scaled(real(&ax_prim_exp, eqn, scaled(size, -2)), 4), small = ax_mul(ax_div(t, b), decay);
  small = choose(at_infinity, with_sign(number(z.x, 0), choose(lost, z.y, t)), small);
  const ax_value far = ax_and(ax_gt(size, number(size, most)), ax_or(at_infinity, ax_not(lost)));
  p.x = choose(far, with_sign(number(z.x, 1), z.x), p.x);
  p.y = choose(far, small, p.y);
  p.y = choose(is(z.y, 0), z.y, p.y);
  return p;
}

/* An angle, which of infinite z is that of the point (y, x) with its infinities as 1 and other numbers as 0. */
static ax_value angle(pair z, ax_value angle_of_finite, ax_value y, ax_value x) {
  ax_value above = infinite_or_0(y), made = choose(is_infinite(z), ax_atan2(above, infinite_or_0(x)), angle_of_finite);
  made = choose(ax_ne(x, x), x, made);
  return choose(ax_ne(y, y), y, made);
}

/* A size, which is infinite where z is, with the sign of another number. */
static ax_value sized(pair z, ax_value size, ax_value sign_of) { return with_sign(choose_number(is_infinite(z), INFINITY, size), sign_of); }

static pair asin_of(const ax_eqn *eqn, pair z) {
  const pair a = square_root(one_plus(neg(z))), b = square_root(one_plus(z));
  const ax_value along = mul(a, b).x, across = mul(conjugate(a), b).y;
  pair p;
  p.x = ax_atan2(z.x, along);
  p.x = angle(z, p.x, z.x, ax_abs(z.y));
  p.y = sized(z, real(&ax_prim_asinh, eqn, across), z.y);
  return p;
}

static pair acos_of(const ax_eqn *eqn, pair z) {
  const pair a = square_root(one_plus(neg(z))), b = square_root(one_plus(z));
  const ax_value across = mul(conjugate(b), a).y;
  pair p;
  p.x = scaled(ax_atan2(a.x, b.x), 2);
  p.x = angle(z, p.x, ax_abs(z.y), z.x);
  p.y = sized(z, real(&ax_prim_asinh, eqn, across), ax_neg(z.y));
  return p;
}

static pair acosh_of(const ax_eqn *eqn, pair z) {
  const pair below = {plus(z.x, -1), z.y}, a = square_root(below), b = square_root(one_plus(z));
  const ax_value along = mul(conjugate(a), b).x;
  pair p;
  p.x = choose_number(is_infinite(z), INFINITY, real(&ax_prim_asinh, eqn, along));
  p.y = scaled(ax_atan2(a.y, b.x), 2);
  p.y = angle(z, p.y, z.y, z.x);
  return p;
}

/* Far from 0, atanh(z) is 1 / z + i pi / 2 with the sign of y. */
static pair atanh_of(const ax_eqn *eqn, pair z) {
  ax_value x = ax_abs(z.x), below = square(ax_sub(number(x, 1), x)), four = scaled(x, 4);
  below = ax_add(below, square(z.y));
  ax_value size = scaled(real(&ax_prim_log1p, eqn, ax_div(four, below)), 0.25);
  ax_value along = ax_sub(number(x, 1), x);
  along = ax_mul(along, plus(x, 1));
  along = ax_sub(along, square(z.y));
  pair p;
  p.y = scaled(ax_atan2(scaled(z.y, 2), along), 0.5);
  const sizes s = sizes_of(z);
  ax_value share = choose_number(ax_eq(s.x, s.big), 1, ax_div(s.x, s.big)), inverse = ax_div(share, square(s.over_big));
  inverse = ax_div(inverse, s.big);
  const ax_value far = ax_gt(s.big, number(s.big, ax_typeof(s.big).dtype == AX_F64 ? 0x1p500 : 0x1p60));
  p.x = with_sign(choose(far, inverse, size), z.x);
  p.y = choose(far, with_sign(number(s.big, 1.57079632679489661923), z.y), p.y);
  return p;
}

/* --- The rule --- */

static pair function(const ax_eqn *eqn, pair z) {
  switch (eqn->prim->scalar) {
    case AX_SCALAR_EXP: return exponential(eqn, z);
    case AX_SCALAR_EXP2: return power_of_2(eqn, z);
    case AX_SCALAR_EXPM1: return exponential_minus_one(eqn, z);
    case AX_SCALAR_LOG: return logarithm(eqn, z);
    case AX_SCALAR_LOG1P: return logarithm_plus_one(eqn, z);
    case AX_SCALAR_LOGISTIC: return logistic(eqn, z);
    case AX_SCALAR_SQRT: return square_root(z);
    case AX_SCALAR_RSQRT: return over(-0.0, square_root(z)); /* so an imaginary part that is too small keeps its sign */
    case AX_SCALAR_SIN: return over_i(sinh_of(eqn, times_i(z)));
    case AX_SCALAR_COS: return cosh_of(eqn, times_i(z));
    case AX_SCALAR_TAN: return over_i(tanh_of(eqn, times_i(z)));
    case AX_SCALAR_SINH: return sinh_of(eqn, z);
    case AX_SCALAR_COSH: return cosh_of(eqn, z);
    case AX_SCALAR_TANH: return tanh_of(eqn, z);
    case AX_SCALAR_ASIN: return asin_of(eqn, z);
    case AX_SCALAR_ACOS: return acos_of(eqn, z);
    case AX_SCALAR_ATAN: return over_i(atanh_of(eqn, times_i(z)));
    case AX_SCALAR_ASINH: return over_i(asin_of(eqn, times_i(z)));
    case AX_SCALAR_ACOSH: return acosh_of(eqn, z);
    case AX_SCALAR_ATANH: return atanh_of(eqn, z);
    default: return (pair){ax_reject(eqn->prim, "has no formula for complex numbers"), ax_poison};
  }
}

static pair arithmetic(const ax_eqn *eqn, pair a, pair b) {
  switch (eqn->prim->scalar) {
    case AX_SCALAR_ADD: return add(a, b);
    case AX_SCALAR_SUB: return sub(a, b);
    case AX_SCALAR_MUL: return mul(a, b);
    case AX_SCALAR_DIV: return divide(a, b);
    case AX_SCALAR_POW: return power(eqn, a, b);
    case AX_SCALAR_ATAN2: return angle_of_both(eqn, a, b);
    case AX_SCALAR_MAX:
    case AX_SCALAR_MIN: return extreme(eqn->prim->scalar, a, b);
    case AX_SCALAR_NEG: return neg(a);
    case AX_SCALAR_SIGN: return sign(a);
    case AX_SCALAR_INTEGER_POW: return integer_power(a, *(const int64_t *)eqn->params);
    default: return function(eqn, a);
  }
}

static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  pair a = parts(in[0]), b = a, made;
  ax_value first, second;
  if (eqn->in_count > 1) b = parts(in[1]);
  switch (eqn->prim->scalar) {
    case AX_SCALAR_ABS: return size_of(a);
    case AX_SCALAR_EQ: first = ax_eq(a.x, b.x), second = ax_eq(a.y, b.y); return ax_and(first, second);
    case AX_SCALAR_NE: first = ax_ne(a.x, b.x), second = ax_ne(a.y, b.y); return ax_or(first, second);
    default: made = arithmetic(eqn, a, b); return ax_complex(made.x, made.y);
  }
}

ax_status ax_complex_pointwise_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded(hlo, eqn, expand, in, out);
}

/* Functions whose formulas cancel, or take several roundings, where f32 holds the result well: logarithms of numbers of about size 1,
   angles and inverse hyperbolic functions. */
static bool wants_f64(ax_scalar op) {
  switch (op) {
    case AX_SCALAR_LOG:
    case AX_SCALAR_LOG1P:
    case AX_SCALAR_ASIN:
    case AX_SCALAR_ACOS:
    case AX_SCALAR_ATAN:
    case AX_SCALAR_ASINH:
    case AX_SCALAR_ACOSH:
    case AX_SCALAR_ATANH: return true;
    default: return false;
  }
}

/* Of c64 those functions are computed in f64, and each part is rounded once. */
static ax_value expand_in_f64(const ax_eqn *eqn, const ax_value *in) {
  pair z = parts(in[0]);
  if (ax_failed() || ax_typeof(z.x).dtype != AX_F32 || !wants_f64(eqn->prim->scalar)) return expand(eqn, in);
  z.x = ax_convert_element_type(z.x, AX_F64);
  z.y = ax_convert_element_type(z.y, AX_F64);
  const pair made = function(eqn, z);
  ax_value x = ax_convert_element_type(made.x, AX_F32);
  return ax_complex(x, ax_convert_element_type(made.y, AX_F32));
}

ax_status ax_complex_pointwise(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, expand_in_f64, in, out);
}
