/* Powers of f64: 2^(y log2 |x|), behind vector_angles_f64.h. An exponent of up to 1075 leaves 11 digits less behind the point, so the
   logarithm's first terms are sums of two f64, of which the second has what the first lacks: about 66 digits together. Its other terms
   are so much smaller that one f64 has these digits. Where x is not normal and positive, or y not finite, results are put right
   afterwards, as for f32. */

/* A sum or a product; low is small beside high. */
typedef struct f64_two {
  f64s high, low;
} f64_two;

/* f / (2 + f), where 1 + f is m. The divisor is rounded, and so is its reciprocal: what they leave of f is divided again. */
static inline f64_two f64_log2_quotient(f64s m) {
  const f64s one = f64_all(1), f = m - one, below = m + one, rest = m - (below - one), reciprocal = one / below;
  const f64s high = f * reciprocal;
  return (f64_two){high, f64_fnma(high, rest, f64_fnma(high, below, f)) * reciprocal};
}

/* The logarithm of m, 2 atanh(s) / log(2), is the sum of s (first + second s^2) and s times this: terms from s^4 on, z being s^2 */
static inline f64s f64_log2_rest(f64s z) {
  static const double c[8] = {0.5770780163555851,  0.4121985831113458,  0.3205988979127586,  0.26230819866232635,
                              0.22195226998173814, 0.19240133938334558, 0.16845111762196732, 0.17282097865055168};
  const f64s z2 = z * z;
  return z2 * f64_eight(c, z, z2, z2 * z2);
}

/* k + s (first + second s^2) */
static inline f64_two f64_log2_start(f64_two s, f64s z, f64s k) {
  const f64s first = f64_all(2.8853900817779268), second = f64_all(0.9617966939259756);
  const f64s z_low = f64_fma(s.high, s.high, -z) + (s.high + s.high) * s.low;
  const f64s term = z * second, term_low = f64_fma(z, second, -term) + f64_fma(z_low, second, z * f64_all(5.0577616648125907e-17));
  const f64s factor = first + term, factor_low = (first - factor + term) + (term_low + f64_all(4.0710547481862066e-17));
  const f64s product = s.high * factor, high = k + product;
  const f64s low = f64_fma(s.high, factor, -product) + f64_fma(s.high, factor_low, s.low * factor);
  return (f64_two){high, (k - high + product) + low};
}

/* 2^(n + r), where it is subnormal or ends; n and r are those of an exponent of about `high` where that is not far outside. */
static AX_APART f64s f64_pow_ends(f64s high, f64s n, f64s r) {
  const f64s most = f64_all(1200), sum = f64_pick(f64_less(f64_sized(high), most), n + r, high);
  const f64_mask alive = f64_not_less(sum, f64_all(-1075)), known = f64_less(f64_sized(sum), most);
  const f64s power = f64_exp2_near(f64_keep(alive, f64_keep(known, r)));
  return f64_keep(alive, f64_scale(power, f64_keep(alive, f64_pick(known, n, most))));
}

/* x normal and positive, y finite; the logarithm of x is `more` than it seems, which is a whole number. Where |y| is below 2^-80, the
   result is 1. The whole number next to the exponent does not wait for the exponent, but for a few of its digits. */
static inline f64s f64_pow_plain(f64s x, f64s y, f64s more) {
  const f64_parts parts = f64_split(x, 0);
  const f64_two s = f64_log2_quotient((f64s)((parts.moved & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu));
  const f64s k = parts.k + more, z = s.high * s.high, by = f64_keep(f64_not_less(f64_sized(y), f64_all(0x1p-80)), y);
  const f64s about = f64_fma(s.high, f64_fma(z, f64_pair(z, 0.9618, 0.585), f64_all(2.88539)), k);
  const f64s shift = f64_all(6755399441055744.0), moved = f64_fma(by, about, shift), n = moved - shift, most = f64_all(1021);
  const f64_two start = f64_log2_start(s, z, k);
  const f64s rest = by * s.high, term = f64_log2_rest(z), high = by * start.high;
  const f64s low = f64_fma(by, start.low, f64_fma(by, start.high, -high));
  const f64s r = f64_fma(rest, term, high - n) + low;
  if (f64_any_not_inside(high, -most, most)) return f64_pow_ends(high, n, r);
  return (f64s)((u64s)f64_exp2_near(r) + ((u64s)moved << 52));
}

static inline f64s f64_where(u64s mask, f64s yes, f64s no) { return (f64s)((mask & (u64s)yes) | (~mask & (u64s)no)); }

/* As f32_pow_strange. */
static AX_APART f64s f64_pow_strange(f64s x, f64s y) {
  const f64s zero = f64_all(0), one = f64_all(1), infinity = f64_all(__builtin_inf()), size = f64_sized(x);
  const u64s whole = (u64s)(f64_round(y) == y), odd = whole & (u64s)(f64_round(y * f64_all(0.5)) != y * f64_all(0.5));
  const u64s below = (u64s)(size < f64_all(0x1p-1022)), none = (u64s)(size == zero), endless = (u64s)(size == infinity);
  const u64s finite = (u64s)(size < infinity) & ~none, bounded = (u64s)(f64_sized(y) < infinity);
  const f64s normal = f64_where(finite, f64_where(below, size * f64_all(0x1p54), size), one);
  const f64s result = f64_pow_plain(normal, f64_where(bounded, y, zero), f64_where(below & finite, f64_all(-54), zero));
  const u64s grows = (u64s)(size > one) ^ (u64s)(y < zero), far = none | endless | (~bounded & (u64s)(size != one));
  f64s made = f64_where(far, f64_where(grows, infinity, zero), result);
  made = (f64s)((u64s)made | ((u64s)x & 0x8000000000000000u & odd));
  made = f64_where((u64s)(x < zero) & finite & ~whole, f64_all(__builtin_nan("")), made);
  made = f64_where((u64s)(x != x) | (u64s)(y != y), x + y, made);
  return f64_where((u64s)(x == one) | (u64s)(y == zero), one, made);
}

static f64s f64_pow(f64s x, f64s y) {
  const f64s most = f64_all(0x1.fffffffffffffp1023);
  if (f64_any_not_inside(x, f64_all(0x1p-1022), most) || f64_any_not_inside(y, -most, most)) return f64_pow_strange(x, y);
  return f64_pow_plain(x, y, f64_all(0));
}
