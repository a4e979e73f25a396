/* 2^x, the cube root, tan, the inverse functions of angles and atanh of f32, behind vector_f32.h. A loop over scalars waits for each
   result, so polynomials are summed in pairs, whose products do not wait for each other.

   Odd functions are t + t P(t^2), where P has no constant, as one fused operation: small results keep their digits. Squares are made
   with 2^-25 on top (f64: 2^-60), which is too little to count: then neither they nor their powers underflow. */

static inline f32s f32_pair(f32s x, float a, float b) { return f32_fma(f32_all(b), x, f32_all(a)); } /* a + b x */
static inline f32s f32_square(f32s x) { return f32_fma(x, x, f32_all(0x1p-25f)); }
/* -x where `sign` has its sign set */
static inline f32s f32_turned_by(f32s x, f32s sign) { return (f32s)((u32s)x ^ ((u32s)sign & 0x80000000u)); }
/* a where x has its sign set, 0 elsewhere */
static inline f32s f32_if_signed(f32s x, float a) { return (f32s)(-((u32s)x >> 31) & (u32s)f32_all(a)); }

/* --- 2^x = 2^n 2^r, |r| <= 1/2 --- */

/* 2^r */
static inline f32s f32_exp2_short(f32s r) {
  const f32s s = f32_square(r);
  const f32s low = f32_fma(s, f32_pair(r, 0.0555035882f, 0.00961883366f), f32_pair(r, 0.693147182f, 0.240226448f));
  const f32s slope = f32_fma(s * s, f32_pair(r, 0.00133913022f, 0.000152412846f), low);
  return f32_fma(slope, r, f32_all(1));
}

static AX_APART f32s f32_exp2_of_any(f32s x) { /* as f32_exp_below; of -150 the result is rounded to 0 */
  const f32_mask alive = f32_not_less(x, f32_all(-0x1.2bfffep7f));
  const f32s inside = f32_keep(alive, f32_min(f32_all(129), x)), n = f32_round(inside);
  return f32_keep(alive, f32_scale(f32_exp2_short(inside - n), n));
}

/* Above -126 2^n goes into the exponent of 2^r, which is 1 for 128: then the sum of both is that of infinity. */
static f32s f32_exp2(f32s x) {
  const f32s below = f32_min(f32_all(128), x), shift = f32_all(12582912.0f), moved = below + shift;
  if (f32_any_not_less(f32_all(-126), x)) return f32_exp2_of_any(x);
  return (f32s)((u32s)f32_exp2_short(below - (moved - shift)) + ((u32s)moved << 23));
}

/* --- The cube root of 2^(3q + s) (1 + f): 2^q times that of 2^s, from a table in two parts, times that of 1 + f --- */

static const float f32_cube_roots[2][16]
    __attribute__((aligned(64))) = {{1, 1.25992107f, 1.58740103f}, {0, -2.40187017e-08f, 1.95203853e-08f}};

/* x > 0 and normal. The exponent comes with 129 on top, a multiple of 3, so that quotients of whole numbers above 0 do. */
static inline f32s f32_cbrt_normal(f32s x) {
  const u32s moved = (u32s)x + (0x3f800000u - 0x3f3504f3u), exponent = (moved >> 23) + 2;
  const u32s third = exponent * 171 >> 9, rest = exponent - third * 3, scale = (third << 23) - (43u << 23);
  const f32s high = (f32s)((u32s)f32_look_up(f32_cube_roots[0], rest) + scale);
  const f32s low = f32_look_up(f32_cube_roots[1], rest) * (f32s)(scale + 0x3f800000u);
  const f32s f = (f32s)((moved & 0x007fffffu) + 0x3f3504f3u) - f32_all(1), g = f * f;
  const f32s first = f32_fma(g, f32_pair(f, 0.0617318898f, -0.0411031879f), f32_pair(f, 0.333333313f, -0.111111917f));
  const f32s second = f32_fma(g, f32_pair(f, 0.0216060691f, -0.0128978416f), f32_pair(f, 0.0300216544f, -0.0242775958f));
  return high + f32_fma(f32_fma(g * g, second, first), f * high, low);
}

static AX_APART f32s f32_cbrt_of_any(f32s x) {
  const f32s size = f32_sized(x), least = f32_all(0x1p-126f);
  const f32_mask small = f32_less(size, least);
  f32s result = f32_cbrt_normal(f32_pick(small, f32_max(least, size * f32_all(0x1p24f)), size));
  result = f32_pick(small, result * f32_all(0x1p-8f), result);
  result = f32_signed(f32_pick(f32_equal(size, f32_all(0)), f32_all(0), result), x);
  return f32_pick(f32_less(size, f32_all(__builtin_inff())), result, x + x);
}

static f32s f32_cbrt(f32s x) {
  const f32s size = f32_sized(x);
  if (f32_any_not_inside(size, f32_all(0x1p-126f), f32_all(0x1.fffffep127f))) return f32_cbrt_of_any(x);
  return f32_signed(f32_cbrt_normal(size), x);
}

/* --- tan: x = n pi/2 + r, |r| <= pi/4; a quotient of polynomials, or -1 by it where n is odd --- */

static inline f32s f32_tangent(f32s r, f32s n) {
  const u32s odd = (u32s)(n + f32_all(12582912.0f)) << 31;
  const f32_mask is_odd = f32_less((f32s)(odd | 0x3f800000u), f32_all(0));
  const f32s z = f32_square(r);
  const f32s above = f32_fma(z * f32_pair(z, -0.111355238f, 0.00107490423f), r, r);
  const f32s below = f32_fma(z, f32_pair(z, -0.444688559f, 0.0159710217f), f32_all(1));
  return (f32s)((u32s)(f32_pick(is_odd, below, above) / f32_pick(is_odd, above, below)) ^ odd);
}

/* Of an f32 of 2^17 or more: its angle from -pi/4 to pi/4, and whether pi/2 was taken off */
static inline f64s f64_large_quarter(f64s size, f64s *n) {
  f64s halves;
  const f64s part = f64_large_part(size, &halves);
  *n = f64_round(part + part);
  return f64_all(3.141592653589793) * f64_fnma(*n, f64_all(0.5), part);
}

static AX_BESIDE f32s f32_tan_large(f32s x, f32s result) {
  const f32_large_lanes large = f32_find_large(x, result);
  if (!large.any) return large.result;
  const f32s size = f32_sized(large.x);
  f64s n_low, n_high;
  const f64s low = f64_large_quarter(f64_low(size), &n_low), high = f64_large_quarter(f64_high(size), &n_high);
  return f32_pick(large.are, f32_turned_by(f32_tangent(f32_join(low, high), f32_join(n_low, n_high)), x), large.result);
}

static f32s f32_tan(f32s x) {
  const f32s size = f32_sized(x), n = f32_round(size * f32_all(0.636619747f));
  f32s r = f32_fnma(n, f32_all(1.57079637f), size);
  r = f32_fnma(n, f32_all(-1.71512451e-15f), f32_fnma(n, f32_all(-4.37113883e-08f), r));
  const f32s result = f32_turned_by(f32_tangent(r, n), x);
  return f32_any_not_inside(x, f32_all(-131072.0f), f32_all(131072.0f)) ? f32_tan_large(x, result) : result;
}

/* --- atan and atan2: of the smaller operand by the larger, from 0 to 1, and from there to the angle's octant --- */

/* atan(t) / t - 1 */
static inline f32s f32_atan_rest(f32s t) {
  const f32s z = f32_square(t), z2 = z * z, z3 = z2 * z;
  const f32s low = f32_fma(z3, f32_pair(z, -0.142110243f, 0.106658928f), z * f32_pair(z, -0.333331525f, 0.199937686f));
  const f32s high = f32_fma(z2, f32_pair(z, -0.0163665209f, 0.00292036007f), f32_pair(z, -0.0755199343f, 0.0432094261f));
  return f32_fma(z3 * z2, high, low);
}

static f32s f32_atan(f32s x) {
  const f32s one = f32_all(1), size = f32_sized(x), t = f32_min(one, size) / f32_max(one, size);
  const f32_mask large = f32_less(one, size);
  const f32s signed_t = f32_pick(large, -t, t), most = f32_keep(large, f32_all(1.57079637f));
  const f32s sum = most + signed_t + f32_keep(large, f32_all(-4.37113883e-08f));
  return f32_signed(f32_fma(signed_t, f32_atan_rest(t), sum), x);
}

/* The larger of the sizes is normal and finite. */
static inline f32s f32_atan2_plain(f32s y, f32s x) {
  const f32s y_size = f32_sized(y), x_size = f32_sized(x), t = f32_min(x_size, y_size) / f32_max(x_size, y_size);
  const f32_mask steep = f32_less(x_size, y_size);
  const f32s signed_t = f32_turned_by(f32_turned_by(t, x), f32_keep(steep, f32_all(-0.0f)));
  const f32s most = f32_pick(steep, f32_all(1.57079637f), f32_if_signed(x, 3.14159274f));
  const f32s sum = most + signed_t + f32_pick(steep, f32_all(-4.37113883e-08f), f32_if_signed(x, -8.74227766e-08f));
  return f32_signed(f32_fma(signed_t, f32_atan_rest(t), sum), y);
}

/* Two zeros are as 0 and 1, an infinity beside a finite number as 1 and 0, two infinities as 1 and 1. */
static AX_APART f32s f32_atan2_of_any(f32s y, f32s x) {
  const f32s one = f32_all(1), infinity = f32_all(__builtin_inff()), y_size = f32_sized(y), x_size = f32_sized(x);
  const f32s larger = f32_max(x_size, y_size), sum = x + y;
  const f32_mask endless = f32_equal(larger, infinity);
  const f32s up = f32_pick(endless, f32_keep(f32_equal(y_size, infinity), one), y_size);
  f32s aside = f32_pick(endless, f32_keep(f32_equal(x_size, infinity), one), x_size);
  aside = f32_pick(f32_equal(larger, f32_all(0)), one, aside);
  const f32s result = f32_atan2_plain(f32_signed(up, y), f32_signed(aside, x));
  return f32_pick(f32_equal(x, x), f32_pick(f32_equal(y, y), result, sum), sum);
}

static f32s f32_atan2(f32s y, f32s x) {
  const f32s sum = f32_sized(x) + f32_sized(y);
  if (f32_any_not_inside(sum, f32_all(0x1p-126f), f32_all(0x1.fffffep127f))) return f32_atan2_of_any(y, x);
  return f32_atan2_plain(y, x);
}

/* --- asin and acos: up to 1/2 from the square; above, twice the arcsine of h = sqrt((1 - |x|) / 2) is what is left to the end, and
   2 h is a root too. Neither root nor polynomial waits for the other. --- */

typedef struct f32_arc {
  f32s rest, root; /* asin(s) / s - 1, s being |x| or h; 2 h */
  f32_mask small;
} f32_arc;

static inline f32_arc f32_arc_of(f32s x, f32s size) {
  const f32s half = f32_all(0.5f), z = f32_min(f32_square(x), f32_fnma(half, size, half)), z2 = z * z;
  const f32s low = z * f32_pair(z, 0.166667521f, 0.0749530941f);
  const f32s high = f32_fma(z2, f32_all(0.0421583615f), f32_pair(z, 0.0454691537f, 0.0241847485f));
  return (f32_arc){f32_fma(z2 * z, high, low), f32_root(f32_fnma(f32_all(2), size, f32_all(2))), f32_less(size, half)};
}

static f32s f32_asin(f32s x) {
  const f32s size = f32_sized(x);
  const f32_arc arc = f32_arc_of(x, size);
  const f32s large = f32_all(1.57079637f) - arc.root + f32_fnma(arc.root, arc.rest, f32_all(-4.37113883e-08f));
  return f32_signed(f32_pick(arc.small, f32_fma(size, arc.rest, size), large), x);
}

static f32s f32_acos(f32s x) {
  const f32_arc arc = f32_arc_of(x, f32_sized(x));
  const f32s s = f32_pick(arc.small, -x, f32_turned_by(arc.root, x));
  const f32s most = f32_pick(arc.small, f32_all(1.57079637f), f32_if_signed(x, 3.14159274f));
  const f32s more = f32_pick(arc.small, f32_all(-4.37113883e-08f), f32_if_signed(x, -8.74227766e-08f));
  return most + s + f32_fma(s, arc.rest, more);
}

/* --- atanh: (1 + x) / (1 - x) = 2^k (1 + w) / (1 - w), so that it is k log(2)/2 + atanh(w). k is the difference of the exponents of
   1 + x and 1 - x, taken with their fractions and rounded: |w| < 0.2005. Where k = 0, w is x. --- */

static inline f32s f32_atanh_inside(f32s x) { /* 0 <= x < 1 */
  const f32s one = f32_all(1), half = f32_all(0.5f), away = one - x;
  const u32s ratio = (u32s)(one + x) - (u32s)away + 0x00400000u;
  const f32s k = (f32s)(ratio >> 23 | 0x4b000000u) - f32_all(8388608.0f);
  const f32s m = (f32s)((ratio & 0xff800000u) + 0x3f000000u) - half; /* (2^k - 1) / 2 */
  const f32s w = f32_fnma(m, away, x) / f32_fma(m, away, one), z = f32_square(w);
  const f32s rest = f32_fma(z * z, z * f32_all(0.151831776f), z * f32_pair(z, 0.333334744f, 0.199788004f));
  return f32_fma(w, rest, f32_fma(k, f32_all(0.346573591f), w));
}

static AX_APART f32s f32_atanh_of_any(f32s x) {
  const f32s one = f32_all(1), size = f32_sized(x);
  f32s result = f32_atanh_inside(f32_min(f32_all(0x1.fffffep-1f), size));
  result = f32_pick(f32_equal(size, one), f32_all(__builtin_inff()), result);
  result = f32_pick(f32_less(one, size), f32_all(__builtin_nanf("")), result);
  return f32_pick(f32_equal(x, x), f32_signed(result, x), x + x);
}

static f32s f32_atanh(f32s x) {
  const f32s most = f32_all(0x1.fffffep-1f);
  return f32_any_not_inside(x, -most, most) ? f32_atanh_of_any(x) : f32_signed(f32_atanh_inside(f32_sized(x)), x);
}
