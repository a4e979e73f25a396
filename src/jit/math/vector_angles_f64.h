/* Functions of f64 as vector_angles_f32.h has them of f32, behind vector_f64.h. Polynomials are longer, and their pairs are summed in
   pairs again. */

static inline f64s f64_square(f64s x) { return f64_fma(x, x, f64_all(0x1p-60)); }
static inline f64s f64_turned_by(f64s x, f64s sign) { return (f64s)((u64s)x ^ ((u64s)sign & 0x8000000000000000u)); }
static inline f64s f64_if_signed(f64s x, double a) { return (f64s)(-((u64s)x >> 63) & (u64s)f64_all(a)); }

/* --- 2^x --- */

static const double f64_exp2_series[11] = {0.6931471805599453,     0.24022650695910136,   0.05550410866482233,
                                           0.009618129107592587,   0.0013333558146358634, 0.00015403530458754544,
                                           1.5252733828893326e-05, 1.321543456316629e-06, 1.0178076598377052e-07,
                                           7.073894180501247e-09,  4.451517973833838e-10};

/* 2^r, |r| <= 1/2. What the first two terms lose by rounding goes into the others. */
static inline f64s f64_exp2_near(f64s r) {
  const double *c = f64_exp2_series;
  const f64s one = f64_all(1), slope = f64_all(c[0]), line = f64_fma(slope, r, one), lost = f64_fma(slope, r, one - line);
  const f64s r2 = f64_square(r), r4 = r2 * r2, high = f64_fma(r4, f64_pair(r, c[9], c[10]), f64_four(c + 5, r, r2));
  return line + f64_fma(r4 * r2, high, f64_fma(r2, f64_four(c + 1, r, r2), lost));
}

static AX_APART f64s f64_exp2_of_any(f64s x) {
  const f64_mask alive = f64_not_less(x, f64_all(-0x1.0cbffffffffffp10));
  const f64s inside = f64_keep(alive, f64_min(f64_all(1025), x)), n = f64_round(inside);
  return f64_keep(alive, f64_scale(f64_exp2_near(inside - n), n));
}

static f64s f64_exp2(f64s x) {
  const f64s below = f64_min(f64_all(1024), x), shift = f64_all(6755399441055744.0), moved = below + shift;
  if (f64_any_not_less(f64_all(-1022), x)) return f64_exp2_of_any(x);
  return (f64s)((u64s)f64_exp2_near(below - (moved - shift)) + ((u64s)moved << 52));
}

/* --- The cube root --- */

static const double f64_cube_roots[2][8] __attribute__((aligned(64))) = {{1, 1.2599210498948732, 1.5874010519681996},
                                                                         {0, -2.589933375300507e-17, -1.0869008194197823e-16}};

static const double f64_cbrt_series[19] = {
    0.33333333333333337,   -0.11111111111110598,  0.06172839506170681,   -0.041152263376170645,  0.03017832647925394,
    -0.023472031513822024, 0.019001168023136672,  -0.015834317229558813, 0.013488513059265305,   -0.011689725260860056,
    0.010272065010595815,  -0.009136288098065739, 0.008214249572905554,  -0.0073782475150762795, 0.0065420763105458815,
    -0.006230553706344472, 0.006899234808570114,  -0.006444093247106492, 0.0029217075115064014};

/* x > 0 and normal. 1023 is a multiple of 3. The exponent has no more than 12 bits, so that products of 32 bits do. */
static inline f64s f64_cbrt_normal(f64s x) {
  const double *c = f64_cbrt_series;
  const u64s moved = (u64s)x + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu), exponent = moved >> 52;
  const u64s third = (u64s)((u32s)exponent * 21846) >> 16, rest = exponent - third - third - third;
  const u64s scale = (third << 52) - (341ull << 52);
  const f64s high = (f64s)((u64s)f64_look_up_4(f64_cube_roots[0], rest) + scale);
  const f64s low = f64_look_up_4(f64_cube_roots[1], rest) * (f64s)(scale + 0x3ff0000000000000u);
  const f64s f = (f64s)((moved & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - f64_all(1), f2 = f * f, f4 = f2 * f2, f8 = f4 * f4;
  const f64s last = f64_fma(f2, f64_all(c[18]), f64_pair(f, c[16], c[17]));
  const f64s slope = f64_fma(f8, f64_fma(f8, last, f64_eight(c + 8, f, f2, f4)), f64_eight(c, f, f2, f4));
  return high + f64_fma(slope, f * high, low);
}

static AX_APART f64s f64_cbrt_of_any(f64s x) {
  const f64s size = f64_sized(x), least = f64_all(0x1p-1022);
  const f64_mask small = f64_less(size, least);
  f64s result = f64_cbrt_normal(f64_pick(small, f64_max(least, size * f64_all(0x1p54)), size));
  result = f64_pick(small, result * f64_all(0x1p-18), result);
  result = f64_signed(f64_pick(f64_equal(size, f64_all(0)), f64_all(0), result), x);
  return f64_pick(f64_less(size, f64_all(__builtin_inf())), result, x + x);
}

static f64s f64_cbrt(f64s x) {
  const f64s size = f64_sized(x);
  if (f64_any_not_inside(size, f64_all(0x1p-1022), f64_all(0x1.fffffffffffffp1023))) return f64_cbrt_of_any(x);
  return f64_signed(f64_cbrt_normal(size), x);
}

/* --- tan; above 2^30 SLEEF's (vector_f64.h) --- */

static inline f64s f64_tangent(f64s r, f64s n) {
  const u64s odd = (u64s)(n + f64_all(6755399441055744.0)) << 63;
  const f64_mask is_odd = f64_less((f64s)(odd | 0x3ff0000000000000u), f64_all(0));
  const f64s z = f64_square(r), z2 = z * z;
  const f64s p = f64_fma(z2, f64_all(-1.7860758156202293e-05), f64_pair(z, -0.133383019612878, 0.003424829809771097));
  const f64s q = f64_fma(z2, f64_pair(z, -0.00031180570864238074, 4.981503158943202e-07),
                         f64_pair(z, -0.46671635294621133, 0.025663614125175108));
  const f64s above = f64_fma(z * p, r, r), below = f64_fma(z, q, f64_all(1));
  return (f64s)((u64s)(f64_pick(is_odd, below, above) / f64_pick(is_odd, above, below)) ^ odd);
}

static AX_APART f64s f64_tan_large(f64s x, f64s near) {
  const f64s most = f64_all(1073741824.0), size = f64_sized(x);
  const f64_mask finite = f64_less(size, f64_all(__builtin_inf()));
  const f64s reach = f64_pick(finite, size, f64_all(0)), result = f64_pick(finite, near, x - x);
  if (!f64_any_less(most, reach)) return result;
  const f64_mask is_large = f64_less(most, reach);
  return f64_pick(is_large, f64_tan_precise(f64_pick(is_large, x, most)), result);
}

static f64s f64_tan(f64s x) {
  const f64s size = f64_sized(x), n = f64_round(size * f64_all(0.6366197723675814));
  f64s r = f64_fnma(n, f64_all(1.5707963267948966), size);
  r = f64_fnma(n, f64_all(-1.4973849048591698e-33), f64_fnma(n, f64_all(6.123233995736766e-17), r));
  const f64s near = f64_turned_by(f64_tangent(r, n), x);
  return f64_any_not_inside(x, f64_all(-1073741824.0), f64_all(1073741824.0)) ? f64_tan_large(x, near) : near;
}

/* --- atan and atan2 --- */

static const double f64_atan_series[20] = {
    -0.3333333333333307,  0.19999999999951745,    -0.14285714282587922,  0.11111111007339133,     -0.09090907007770596,
    0.07692279888748624,  -0.06666404422799531,   0.05880529808063525,   -0.052535267922981736,   0.04722348435954093,
    -0.04219243870122565, 0.03664316806442097,    -0.029905763635913157, 0.021987101513490273,    -0.01390260254178964,
    0.007197903194676534, -0.0028856183806215416, 0.0008315625794681698, -0.00015221177088622405, 1.32300631503104e-05};

static inline f64s f64_atan_rest(f64s t) {
  const double *c = f64_atan_series;
  const f64s z = f64_square(t), z2 = z * z, z4 = z2 * z2, z8 = z4 * z4;
  const f64s high = f64_fma(z8, f64_four(c + 16, z, z2), f64_eight(c + 8, z, z2, z4));
  return f64_fma(z8 * z, high, z * f64_eight(c, z, z2, z4));
}

static f64s f64_atan(f64s x) {
  const f64s one = f64_all(1), size = f64_sized(x), t = f64_min(one, size) / f64_max(one, size);
  const f64_mask large = f64_less(one, size);
  const f64s signed_t = f64_pick(large, -t, t), most = f64_keep(large, f64_all(1.5707963267948966));
  const f64s sum = most + signed_t + f64_keep(large, f64_all(6.123233995736766e-17));
  return f64_signed(f64_fma(signed_t, f64_atan_rest(t), sum), x);
}

static inline f64s f64_atan2_plain(f64s y, f64s x) {
  const f64s y_size = f64_sized(y), x_size = f64_sized(x), t = f64_min(x_size, y_size) / f64_max(x_size, y_size);
  const f64_mask steep = f64_less(x_size, y_size);
  const f64s signed_t = f64_turned_by(f64_turned_by(t, x), f64_keep(steep, f64_all(-0.0)));
  const f64s most = f64_pick(steep, f64_all(1.5707963267948966), f64_if_signed(x, 3.141592653589793));
  const f64s sum = most + signed_t + f64_pick(steep, f64_all(6.123233995736766e-17), f64_if_signed(x, 1.2246467991473532e-16));
  return f64_signed(f64_fma(signed_t, f64_atan_rest(t), sum), y);
}

static AX_APART f64s f64_atan2_of_any(f64s y, f64s x) {
  const f64s one = f64_all(1), infinity = f64_all(__builtin_inf()), y_size = f64_sized(y), x_size = f64_sized(x);
  const f64s larger = f64_max(x_size, y_size), sum = x + y;
  const f64_mask endless = f64_equal(larger, infinity);
  const f64s up = f64_pick(endless, f64_keep(f64_equal(y_size, infinity), one), y_size);
  f64s aside = f64_pick(endless, f64_keep(f64_equal(x_size, infinity), one), x_size);
  aside = f64_pick(f64_equal(larger, f64_all(0)), one, aside);
  const f64s result = f64_atan2_plain(f64_signed(up, y), f64_signed(aside, x));
  return f64_pick(f64_equal(x, x), f64_pick(f64_equal(y, y), result, sum), sum);
}

static f64s f64_atan2(f64s y, f64s x) {
  const f64s sum = f64_sized(x) + f64_sized(y);
  if (f64_any_not_inside(sum, f64_all(0x1p-1022), f64_all(0x1.fffffffffffffp1023))) return f64_atan2_of_any(y, x);
  return f64_atan2_plain(y, x);
}

/* --- asin and acos --- */

static const double f64_asin_series[12] = {0.1666666666666541,   0.07500000000336747,  0.044642856828476525,  0.03038195913213965,
                                           0.022371758149838734, 0.01735970341916895,  0.013885247664413162,  0.012169136940720054,
                                           0.006528279542160963, 0.019527475626823776, -0.016223071732662353, 0.03191149462497339};

typedef struct f64_arc {
  f64s rest, root;
  f64_mask small;
} f64_arc;

static inline f64_arc f64_arc_of(f64s x, f64s size) {
  const double *c = f64_asin_series;
  const f64s half = f64_all(0.5), z = f64_min(f64_square(x), f64_fnma(half, size, half)), z2 = z * z, z4 = z2 * z2;
  const f64s rest = f64_fma(z4 * z4 * z, f64_four(c + 8, z, z2), z * f64_eight(c, z, z2, z4));
  return (f64_arc){rest, f64_root(f64_fnma(f64_all(2), size, f64_all(2))), f64_less(size, half)};
}

static f64s f64_asin(f64s x) {
  const f64s size = f64_sized(x);
  const f64_arc arc = f64_arc_of(x, size);
  const f64s large = f64_all(1.5707963267948966) - arc.root + f64_fnma(arc.root, arc.rest, f64_all(6.123233995736766e-17));
  return f64_signed(f64_pick(arc.small, f64_fma(size, arc.rest, size), large), x);
}

static f64s f64_acos(f64s x) {
  const f64_arc arc = f64_arc_of(x, f64_sized(x));
  const f64s s = f64_pick(arc.small, -x, f64_turned_by(arc.root, x));
  const f64s most = f64_pick(arc.small, f64_all(1.5707963267948966), f64_if_signed(x, 3.141592653589793));
  const f64s more = f64_pick(arc.small, f64_all(6.123233995736766e-17), f64_if_signed(x, 1.2246467991473532e-16));
  return most + s + f64_fma(s, arc.rest, more);
}

/* --- atanh: with a second part of log(2)/2 --- */

static const double f64_atanh_series[8] = {0.333333333333333,   0.20000000000028503, 0.14285714277853975, 0.11111112156414167,
                                           0.09090832393585963, 0.07695574999728429, 0.06586464189101132, 0.0692387212028171};

static inline f64s f64_atanh_inside(f64s x) { /* 0 <= x < 1 */
  const f64s one = f64_all(1), half = f64_all(0.5), away = one - x;
  const u64s ratio = (u64s)(one + x) - (u64s)away + 0x0008000000000000u;
  const f64s k = (f64s)(ratio >> 52 | 0x4330000000000000u) - f64_all(4503599627370496.0);
  const f64s m = (f64s)((ratio & 0xfff0000000000000u) + 0x3fe0000000000000u) - half; /* (2^k - 1) / 2 */
  const f64s w = f64_fnma(m, away, x) / f64_fma(m, away, one), z = f64_square(w), z2 = z * z;
  const f64s rest = z * f64_eight(f64_atanh_series, z, z2, z2 * z2);
  const f64s sum = f64_fma(k, f64_all(0.34657359027997264), f64_fma(k, f64_all(1.1595234069231498e-17), w));
  return f64_fma(w, rest, sum);
}

static AX_APART f64s f64_atanh_of_any(f64s x) {
  const f64s one = f64_all(1), size = f64_sized(x);
  f64s result = f64_atanh_inside(f64_min(f64_all(0x1.fffffffffffffp-1), size));
  result = f64_pick(f64_equal(size, one), f64_all(__builtin_inf()), result);
  result = f64_pick(f64_less(one, size), f64_all(__builtin_nan("")), result);
  return f64_pick(f64_equal(x, x), f64_signed(result, x), x + x);
}

static f64s f64_atanh(f64s x) {
  const f64s most = f64_all(0x1.fffffffffffffp-1);
  return f64_any_not_inside(x, -most, most) ? f64_atanh_of_any(x) : f64_signed(f64_atanh_inside(f64_sized(x)), x);
}
