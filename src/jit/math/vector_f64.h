/* Functions of f64, in the operations of vector_lanes.h; as vector_f32.h has them for f32, with longer polynomials. */
#include "jit/math/vector_lanes.h"

/* --- Exponentials: e^x = 2^n e^r, |r| <= log(2)/2 --- */

static inline f64s f64_exponent(f64s x) { return f64_round(x * f64_all(1.4426950408889634)); }
static inline f64s f64_remainder(f64s x, f64s n) {
  return f64_fnma(n, f64_all(0x1.a39ef35793c76p-33), f64_fnma(n, f64_all(0x1.62e42feep-1), x));
}

/* (e^r - 1) / r */
static inline f64s f64_exp_slope(f64s r) {
  f64s p = f64_all(2.0889293789291653e-09);
  p = f64_fma(p, r, f64_all(2.5109153408576033e-08));
  p = f64_fma(p, r, f64_all(2.7557353419037916e-07));
  p = f64_fma(p, r, f64_all(2.7557243851889586e-06));
  p = f64_fma(p, r, f64_all(2.48015872370987e-05));
  p = f64_fma(p, r, f64_all(0.00019841269886515652));
  p = f64_fma(p, r, f64_all(0.0013888888888923918));
  p = f64_fma(p, r, f64_all(0.008333333333321456));
  p = f64_fma(p, r, f64_all(0.04166666666666661));
  p = f64_fma(p, r, f64_all(0.16666666666666677));
  p = f64_fma(p, r, f64_all(0.5));
  return f64_fma(p, r, f64_all(1));
}

static inline f64s f64_exp_bounded(f64s x) {
  f64s n = f64_exponent(x), r = f64_remainder(x, n);
  return f64_scale(f64_fma(f64_exp_slope(r), r, f64_all(1)), n);
}

static AX_APART f64s f64_exp_below(f64s x) {
  f64_mask alive = f64_not_less(x, f64_all(-745.14));
  return f64_keep(alive, f64_exp_bounded(f64_keep(alive, x)));
}

static f64s f64_exp(f64s x) {
  f64s below = f64_min(f64_all(711), x);
  return f64_any_less(x, f64_all(-700)) ? f64_exp_below(below) : f64_exp_bounded(below);
}

static f64s f64_expm1(f64s x) {
  f64s inside = f64_max(f64_all(-40), f64_min(f64_all(710), x)), half = f64_all(0.5);
  f64s n = f64_exponent(inside), r = f64_remainder(inside, n), small = r * f64_exp_slope(r);
  f64s scale = f64_scale(half, n), sum = f64_fma(scale, small, scale - half);
  return f64_pick(f64_equal(n, f64_all(0)), f64_pick(f64_equal(x, f64_all(0)), x + x, small), sum + sum);
}

static f64s f64_logistic(f64s x) {
  f64s one = f64_all(1), size = (f64s)((u64s)x | 0x8000000000000000u);
  f64s bounded = (f64s)((u64s)f64_min(f64_all(60), x) | 0x8000000000000000u);
  f64s e = f64_any_less(size, f64_all(-60)) ? f64_exp_below(bounded) : f64_exp_bounded(size);
  return f64_pick(f64_less(x, f64_all(0)), e, one) / (one + e);
}

/* -y / (2 + y) with y = e^(-2x) - 1, for x >= 0: e^(-2x) = 2^n e^(-2r). One constant will do for n log(2)/2, as for f32. */
static f64s f64_tanh(f64s x) {
  f64s one = f64_all(1), size = f64_min(f64_all(22.5), f64_sized(x));
  f64s n = f64_round(size * f64_all(-2.8853900817779268)), r = f64_fma(n, f64_all(0.34657359027997264), size);
  f64s p = f64_all(-5.132488999390002e-05); /* (e^-2r - 1) / r */
  p = f64_fma(p, r, f64_all(0.0002828934592351914));
  p = f64_fma(p, r, f64_all(-0.001410938133609575));
  p = f64_fma(p, r, f64_all(0.006349185148780456));
  p = f64_fma(p, r, f64_all(-0.025396825270906434));
  p = f64_fma(p, r, f64_all(0.08888888916696364));
  p = f64_fma(p, r, f64_all(-0.2666666666681289));
  p = f64_fma(p, r, f64_all(0.6666666666651798));
  p = f64_fma(p, r, f64_all(-1.3333333333333284));
  p = f64_fma(p, r, f64_all(2.000000000000002));
  p = f64_fma(p, r, f64_all(-2.0));
  f64s scale = f64_scale(one, n), y = f64_fma(scale, p * r, scale - one);
  return f64_signed(f64_sized(y) / (f64_all(2) + y), x);
}

/* --- Logarithms: x = 2^k (1 + f), 1 + f between sqrt(1/2) and sqrt(2) --- */

/* log(1 + f) + k log 2, by log(1 + f) = 2 atanh(s) with s = f / (2 + f), where 2s is written f - s f: what it is more than f and k
   times the first digits of log 2 */
static inline f64s f64_log_rest(f64s f, f64s k) {
  f64s s = f / (f64_all(2) + f), z = s * s, p = f64_all(0.1461838382952859);
  p = f64_fma(p, z, f64_all(0.1533156930891272));
  p = f64_fma(p, z, f64_all(0.18182893499826527));
  p = f64_fma(p, z, f64_all(0.22222211079798967));
  p = f64_fma(p, z, f64_all(0.2857142862625001));
  p = f64_fma(p, z, f64_all(0.39999999999899255));
  p = f64_fma(p, z, f64_all(0.666666666666667));
  return f64_fma(k, f64_all(0x1.a39ef35793c76p-33), s * f64_fma(z, p, -f));
}

static inline f64s f64_log_sum(f64s f, f64s k) { return f64_fma(k, f64_all(0x1.62e42feep-1), f + f64_log_rest(f, k)); }

typedef struct f64_parts {
  u64s moved;
  f64s k;
} f64_parts;

static inline f64_parts f64_split(f64s x, double more) {
  u64s moved = (u64s)x + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  return (f64_parts){moved, (f64s)(moved >> 52 | 0x4330000000000000u) - f64_all(4503599627370496.0 + 1023 - more)};
}

static inline f64s f64_log_fraction(f64_parts parts) {
  return (f64s)((parts.moved & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - f64_all(1);
}

static inline f64s f64_log_normal(f64s x, double more) {
  f64_parts parts = f64_split(x, more);
  return f64_log_sum(f64_log_fraction(parts), parts.k);
}

static AX_APART f64s f64_log_of_any(f64s x) {
  f64s zero = f64_all(0), least = f64_all(0x1p-1022), result = f64_log_normal(x, 0);
  if (f64_any_less(f64_pick(f64_less(zero, x), x, least), least)) /* subnormal */
    result = f64_pick(f64_less(x, least), f64_log_normal(x * f64_all(0x1p64), -64), result);
  result = f64_pick(f64_equal(x, zero), f64_all(-__builtin_inf()), result);
  result = f64_pick(f64_less(x, zero), f64_all(__builtin_nan("")), result);
  return f64_pick(f64_less(x, f64_all(__builtin_inf())), result, x + x);
}

static f64s f64_log(f64s x) {
  return f64_any_not_inside(x, f64_all(0x1p-1022), f64_all(0x1.fffffffffffffp1023)) ? f64_log_of_any(x) : f64_log_normal(x, 0);
}

static inline f64s f64_log1p_fraction(f64s x, f64_parts parts) {
  f64s shrink = (f64s)(0x7fe0000000000000u - (parts.moved & 0x7ff0000000000000u)); /* 2^-k */
  return f64_fma(shrink, x, shrink - f64_all(1));
}

static inline f64s f64_log1p_sum(f64s x, f64s f, f64s k) {
  return (f64s)((u64s)f64_log_sum(f, k) | ((u64s)x & 0x8000000000000000u)); /* of -0 too */
}

static AX_APART f64s f64_log1p_of_any(f64s x) {
  f64s u = f64_all(1) + x;
  f64_parts parts = f64_split(u, 0);
  f64s large = f64_log_fraction(parts); /* where 2^-k may be subnormal */
  f64s f = f64_pick(f64_less(f64_all(0x1p100), x), large, f64_log1p_fraction(x, parts));
  f64s result = f64_log1p_sum(x, f, parts.k);
  result = f64_pick(f64_equal(u, f64_all(0)), f64_all(-__builtin_inf()), result);
  result = f64_pick(f64_less(u, f64_all(0)), f64_all(__builtin_nan("")), result);
  return f64_pick(f64_less(x, f64_all(__builtin_inf())), result, x + x);
}

static f64s f64_log1p(f64s x) {
  f64s u = f64_all(1) + x;
  f64_parts parts = f64_split(u, 0);
  if (f64_any_not_inside(u, f64_all(0x1p-60), f64_all(0x1p1000))) return f64_log1p_of_any(x);
  return f64_log1p_sum(x, f64_log1p_fraction(x, parts), parts.k);
}

/* --- erf: 16 polynomials of degree 13, each over 3/8 --- */

static const double erf_centres[16] __attribute__((aligned(64))) = {
    0, 0.5625, 0.9375, 1.3125, 1.6875, 2.0625, 2.4375, 2.8125, 3.1875, 3.5625, 3.9375, 4.3125, 4.6875, 5.0625, 5.4375, 5.8125};
/* [degree][interval]; in x less the centre. The first has no constant, so that small results keep their digits. */
static const double erf_coefficients[14][16] __attribute__((aligned(64))) = {
    {0.0, 0.5736744566155919, 0.8151024010343998, 0.9365685747113888, 0.982989716601978, 0.9964637508747902, 0.9994334567454198,
     0.9999303492456073, 0.999993449849224, 0.999999529912161, 0.9999999743008093, 0.9999999989312964, 0.999999999966232,
     0.99999999999919, 0.9999999999999852, 0.9999999999999998},
    {1.1283791670955126, 0.8223213592243077, 0.46854458689539813, 0.20151851572462268, 0.06542348334839115, 0.01603271410867742,
     0.0029657539001367375, 0.00041411203187016797, 4.3647087040858086e-05, 3.47254080195249e-06, 2.085422846117495e-07,
     9.453564106999096e-09, 3.2348317551096594e-10, 8.355307416056611e-12, 1.6290157661648767e-13, 2.396663721379067e-15},
    {6.027862968470028e-15, -0.46255576456363795, -0.43926055021442706, -0.26449305188861055, -0.11040212815037098,
     -0.03306747284915576, -0.007229025131583086, -0.0011646900895967165, -0.00013912508996949773, -1.2370926642628434e-05,
     -8.211352046453696e-07, -4.076852602668435e-08, -1.5163433845424174e-09, -4.226586162640041e-11, -8.635932971154625e-13,
     9.886633662345042e-16},
    {-0.37612638903250184, -0.10064870803004161, 0.11835631491888271, 0.16425858182762157, 0.10239456638641212, 0.04012353713135084,
     0.010758581205443941, 0.002045756574108881, 0.00028109178711123727, 2.8223437090515346e-05, 2.0859659269085676e-06,
     1.1405823570541365e-07, 4.630695004689481e-09, 1.3997416297720056e-10, 3.1574648472063866e-12, 5.381960074291022e-14},
    {3.2907525218378395e-11, 0.182492703979965, 0.09094066078474693, -0.01963034368504604, -0.049594706013999686,
     -0.030354906715015135, -0.010702345800317443, -0.002488615161143673, -0.0004016149996393209, -4.614934699736253e-05,
     -3.833043001249818e-06, -2.3234155997651577e-07, -1.0344108577389304e-08, -3.476913770103506e-10, -1.3336156083564871e-11,
     -3.5458629325987457e-12},
    {0.11283791581302395, -0.010866245991599636, -0.0696096422694023, -0.03897164410853822, 0.002758056637866831,
     0.013005736902244687, 0.007207212793625825, 0.0021859650742280367, 0.0004277315969566921, 5.729579999226814e-05,
     5.411237814356425e-06, 3.665838145568222e-07, 1.8012900179103964e-08, 6.467042660820987e-10, 1.6894280016563492e-11,
     1.9157317851647928e-13},
    {1.4963079564170578e-08, -0.046627299149401946, -0.002497829508336996, 0.02228485166568186, 0.011673848953009665,
     -0.0008468025249995946, -0.0030019015111473744, -0.0013857107024878054, -0.000347368080386232, -5.573305951014839e-05,
     -6.0791975141270145e-06, -4.6568849903366706e-07, -2.5740735203534702e-08, -2.7112258825902795e-10, 4.6367129546174115e-10,
     3.3056891648782134e-10},
    {-0.026866333481147836, 0.010080874919389832, 0.017242785767671517, 0.0009221431687297495, -0.006285142648252018,
     -0.0025975955204072835, 0.0003746069390169415, 0.0005930503405264653, 0.00021451159938365918, 4.308562190157169e-05,
     5.551773502153e-06, 4.856704603916291e-07, 2.9702246167628772e-08, 1.3156476391322389e-09, 5.841208673819567e-11,
     1.469135037425348e-11},
    {1.1967270681934865e-06, 0.008573903266714816, -0.0035060346115878696, -0.005077859210234591, 0.0001499636388638376,
     0.0015208523831175586, 0.00041498838885199827, -0.00012009054895206696, -9.647492829862559e-05, -2.639296709273741e-05,
     -4.205263133727768e-06, -3.9154797544027756e-07, -1.254215020226914e-08, -3.6022864268172796e-08, -2.3392769966891278e-08,
     -1.5701018868159486e-08},
    {0.005217948084980617, -0.0030319249268554722, -0.002622337215051072, 0.0013017483253903342, 0.0011658603871436274,
     -0.00019196444161382, -0.0002976258123623301, -4.028415171611173e-05, 2.6649387645537426e-05, 1.2546758574445924e-05,
     2.5603385390618114e-06, 3.118580431164547e-07, 2.5184053070147076e-08, 3.135392157538352e-10, -7.937567101123971e-10,
     -6.513232570493429e-10},
    {2.074428069895163e-05, -0.0011822787271999209, 0.0011150427078074248, 0.0005600369870884454, -0.0004191678502002553,
     -0.00019141609959763174, 7.131712834377347e-05, 4.491957080387064e-05, -4.715229094770716e-07, -5.0950912480626975e-06,
     -2.95860466603632e-07, -9.313828764224346e-07, -4.0112010587621984e-07, 7.862220347054413e-07, 5.311475325820003e-07,
     3.572512510684398e-07},
    {-0.0009021951562398435, 0.0006173686976860439, 0.00023898053864097752, -0.0003468482933378598, -6.190694896692961e-05,
     0.00010309592090214041, 1.71013961477038e-05, -1.5903347862851487e-05, -4.5412629504552545e-06, 6.853783970900385e-07,
     5.411106936470743e-07, 1.0101482100029354e-07, 3.1176410376262093e-09, 2.4372534504713803e-08, 1.9269788168218667e-08,
     1.4855582790896848e-08},
    {6.660166599282914e-05, 0.0001130632471451817, -0.00020485534409963712, -1.0205406172588682e-06, 7.195910608695197e-05,
     -4.146872303033164e-06, -1.7692079353272576e-05, -7.301985382376386e-06, 7.947793241314662e-06, 7.715696097520894e-06,
     -8.725817487224773e-06, 6.413804742452905e-06, 3.3464954818295062e-06, -6.891348778374197e-06, -4.649076130793226e-06,
     -3.126687709492306e-06},
    {7.412039788592785e-05, -9.859846787762229e-05, -3.5578118469477943e-06, 4.99822210814168e-05, -1.1777482897073256e-05,
     -1.2369442628421835e-05, 4.14125609866233e-06, 1.8575986637444496e-06, 2.1208987256514957e-07, -1.5251734250681704e-07,
     -3.891926793960819e-07, 1.2256273308006594e-08, 7.462584463908155e-08, -2.0599030924318558e-07, -1.6830797448048827e-07,
     -1.300174016314241e-07},
};

static f64s f64_erf(f64s x) {
  f64s size = f64_min(f64_all(5.99), f64_sized(x)), whole = f64_round(f64_fma(size, f64_all(8.0 / 3), f64_all(-0.5)));
  u64s interval = (u64s)(whole + f64_all(0x1p52));
  f64s d = size - f64_look_up(erf_centres, interval), p = f64_look_up(erf_coefficients[13], interval);
  for (int k = 12; k >= 0; k--) p = f64_fma(p, d, f64_look_up(erf_coefficients[k], interval));
  return f64_signed(p, x);
}

/* --- sin and cos: x = n pi + r, |r| <= pi/2, and half a pi on for cos. pi in three parts, of which the first leaves no rounding.
   --- */

/* The sine of x - n pi, less its sign */
static inline f64s f64_sine(f64s x, f64s n) {
  f64s r = f64_fnma(n, f64_all(3.141592653589793), x);
  r = f64_fnma(n, f64_all(-2.9947698097183397e-33), f64_fnma(n, f64_all(1.2246467991473532e-16), r));
  f64s t = r * r;
  f64s p = f64_all(2.71464929702136e-15);
  p = f64_fma(p, t, f64_all(-7.642411315596536e-13));
  p = f64_fma(p, t, f64_all(1.6058919399412696e-10));
  p = f64_fma(p, t, f64_all(-2.5052106520671734e-08));
  p = f64_fma(p, t, f64_all(2.7557319208039146e-06));
  p = f64_fma(p, t, f64_all(-0.00019841269841196967));
  p = f64_fma(p, t, f64_all(0.008333333333333182));
  p = f64_fma(p, t, f64_all(-0.16666666666666666));
  return f64_max(f64_all(-1), f64_min(f64_all(1), f64_fma(r * t, p, r)));
}

/* x with the sign turned where n, a whole number, is odd */
static inline f64s f64_turned(f64s x, f64s n) { return (f64s)((u64s)x ^ (u64s)(n + f64_all(6755399441055744.0)) << 63); }

/* Infinities have no sine. Lanes too large for the above are computed one by one. Which they are does not depend on their
   neighbours. */
static AX_APART f64s f64_one_by_one(f64s x, f64s result, double (*function)(double)) {
  const f64s most = f64_all(1073741824.0), size = f64_sized(x);
  const f64_mask finite = f64_less(size, f64_all(__builtin_inf()));
  result = f64_pick(finite, result, x - x);
  if (!f64_any_less(most, f64_pick(finite, size, most))) return result;
  for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++)
    if (size[i] > 1073741824.0 && size[i] < __builtin_inf()) result[i] = function(x[i]);
  return result;
}

static f64s f64_of_each(f64s x, double (*function)(double)) {
  for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++) x[i] = function(x[i]);
  return x;
}

static f64s f64_sin(f64s x) {
  f64s n = f64_round(x * f64_all(0.3183098861837907)), result = f64_turned(f64_sine(x, n), n);
  result = f64_pick(f64_equal(x, f64_all(0)), x + x, result); /* -0; subnormal numbers that are flushed */
  return f64_any_not_inside(x, f64_all(-1073741824.0), f64_all(1073741824.0)) ? f64_one_by_one(x, result, sin) : result;
}

static f64s f64_cos(f64s x) {
  f64s half = f64_all(0.5), n = f64_round(f64_fma(x, f64_all(0.3183098861837907), -half));
  f64s result = -f64_turned(f64_sine(x, n + half), n);
  return f64_any_not_inside(x, f64_all(-1073741824.0), f64_all(1073741824.0)) ? f64_one_by_one(x, result, cos) : result;
}

/* Within 0.6 units of the last place, for precise functions. */
static f64s f64_sin_precise(f64s x) { return f64_of_each(x, sin); }
static f64s f64_cos_precise(f64s x) { return f64_of_each(x, cos); }

/* --- tan: SLEEF's, for precise functions and large numbers. It goes one of several ways by the sizes of all lanes; so that a result
   depends on no neighbour, lanes of one way are given to it together, with others like them in the places of the rest --- */

f64s AX_SLEEF_TAN(f64s x);

static AX_APART f64s f64_tan_far(f64s x, f64s near) {
  const f64s size = f64_sized(x);
  const f64_mask is_near = f64_less(size, f64_all(15)), is_far = f64_less(size, f64_all(1e14));
  const f64s far = AX_SLEEF_TAN(f64_pick(is_near, f64_all(16), f64_pick(is_far, x, f64_all(16))));
  const f64s result = f64_pick(is_near, near, far);
  if (!f64_any_not_inside(x, f64_all(-0.9e14), f64_all(0.9e14))) return result;
  return f64_pick(is_far, result, AX_SLEEF_TAN(f64_pick(is_far, f64_all(1e15), x)));
}

static f64s f64_tan_precise(f64s x) {
  const f64s near = AX_SLEEF_TAN(f64_keep(f64_less(f64_sized(x), f64_all(15)), x));
  return f64_any_not_inside(x, f64_all(-14), f64_all(14)) ? f64_tan_far(x, near) : near;
}
