/* See large_gamma.h. The derivatives of what follows from eta and mu:

     d mu / da = -(1 + mu) / a      d eta / d mu = mu / (eta (1 + mu))      d eta / da = -(mu / eta) / a

   so the exponential falls out of -(dP/da) / p:  (x / a) g (mu / eta - eta / 2 + s' - s / (2 a) - s (eta^2 / 2 - mu)),
   where s' = ds/da, and g = gamma(a + 1) / (sqrt(2 pi a) (a / e)^a) by Stirling's series. */
#include "ops/large_gamma.h"

#include "base/base.h"

static const double LEAST = 2e4, NEAR = 0.1; /* of a; of mu: then what is left out is below 2^-53 */

/* c_k(eta) by powers of eta: c0 = 1 / mu - 1 / eta, c_k = c_(k-1)' / eta + (-1)^k g_k / mu, g_k of Stirling's series. */
static const double c0[] = {-0.3333333333333333,     0.08333333333333333,    -0.014814814814814815,  0.0011574074074074073,
                            0.0003527336860670194,   -0.0001787551440329218, 3.919263178522438e-05,  -2.185448510679992e-06,
                            -1.85406221071516e-06,   8.296711340953087e-07,  -1.7665952736826078e-07, 6.707853543401498e-09,
                            1.0261809784240309e-08,  -4.382036018453353e-09},
                    c1[] = {-0.001851851851851852,  -0.003472222222222222, 0.0026455026455026454,   -0.0009902263374485596,
                            0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
                            -1.6120900894563446e-06, 4.647127802807434e-09},
                    c2[] = {0.004133597883597883,    -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
                            -0.0001073665322636516, 5.2923448829120125e-05},
                    c3[] = {0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557};
static const struct {
  const double *by_power;
  int count;
} c[] = {{c0, AX_COUNT(c0)}, {c1, AX_COUNT(c1)}, {c2, AX_COUNT(c2)}, {c3, AX_COUNT(c3)}};

static ax_value times(ax_value x, double by) { return ax_mul(x, ax_real(by)); }
static ax_value plus(ax_value x, double by) { return ax_add(x, ax_real(by)); }
static ax_value square(ax_value x) { return ax_mul(x, x); }

/* The polynomial, or its derivative. */
static ax_value polynomial(const double *by_power, int count, ax_value x, bool derivative) {
  ax_value sum = ax_full_like(x, 0);
  for (int k = count; k-- > derivative;) sum = plus(ax_mul(sum, x), derivative ? k * by_power[k] : by_power[k]);
  return sum;
}

typedef struct parts {
  ax_value mu, eta, rise; /* rise: eta / mu */
  ax_value s;
} parts;

static parts parts_of(ax_value a, ax_value x) {
  enum { terms = 14 };
  double halves[terms]; /* (mu - log(1 + mu)) / mu^2 = 1/2 - mu / 3 + mu^2 / 4 - .., doubled */
  for (int k = 0; k < terms; k++) halves[k] = (k % 2 == 0 ? 2.0 : -2.0) / (k + 2);
  parts p = {.mu = ax_div(ax_sub(x, a), a)};
  p.rise = ax_sqrt(polynomial(halves, terms, p.mu, false));
  p.eta = ax_mul(p.mu, p.rise);
  p.s = ax_full_like(a, 0);
  for (size_t k = AX_COUNT(c); k-- > 0;) p.s = ax_add(ax_div(p.s, a), polynomial(c[k].by_power, c[k].count, p.eta, false));
  return p;
}

static ax_value stirling(ax_value a) {
  static const double g[] = {1, 1.0 / 12, 1.0 / 288, -139.0 / 51840};
  return polynomial(g, AX_COUNT(g), ax_div(ax_full_like(a, 1), a), false);
}

ax_value ax_large_gamma_has(ax_value a, ax_value x) {
  return ax_and(ax_ge(a, ax_real(LEAST)), ax_and(ax_lt(a, ax_real(1e300)), ax_le(ax_abs(ax_sub(x, a)), times(a, NEAR))));
}

/* Operands that are not of the kind give way to some that are. */
static void make_safe(ax_value *a, ax_value *x) {
  const ax_value has = ax_large_gamma_has(*a, *x);
  *a = ax_where(has, *a, ax_real(LEAST));
  *x = ax_where(has, *x, ax_real(LEAST));
}

/* exp(-a eta^2 / 2) / sqrt(2 pi a) */
static ax_value weight(ax_value a, const parts *p) {
  const double pi = 3.14159265358979323846;
  return ax_div(ax_exp(times(ax_mul(a, square(p->eta)), -0.5)), ax_sqrt(times(a, 2 * pi)));
}

ax_value ax_large_gamma_share(ax_value a, ax_value x, bool below) {
  make_safe(&a, &x);
  const parts p = parts_of(a, x);
  const ax_value at = ax_mul(p.eta, ax_sqrt(times(a, 0.5))), rest = ax_mul(weight(a, &p), p.s);
  return below ? ax_sub(times(ax_erfc(ax_neg(at)), 0.5), rest) : ax_add(times(ax_erfc(at), 0.5), rest);
}

ax_value ax_large_gamma_density(ax_value a, ax_value x) {
  make_safe(&a, &x);
  const parts p = parts_of(a, x);
  return ax_div(ax_mul(weight(a, &p), ax_div(a, x)), stirling(a));
}

ax_value ax_large_gamma_move(ax_value a, ax_value x) {
  make_safe(&a, &x);
  const parts p = parts_of(a, x);
  const ax_value fall = ax_div(ax_full_like(a, 1), p.rise); /* mu / eta */
  ax_value slope = ax_full_like(a, 0), powers = ax_full_like(a, 0); /* ds / d eta; the sum of k c_k / a^k */
  for (size_t k = AX_COUNT(c); k-- > 0;) {
    slope = ax_add(ax_div(slope, a), polynomial(c[k].by_power, c[k].count, p.eta, true));
    powers = ax_add(ax_div(powers, a), times(polynomial(c[k].by_power, c[k].count, p.eta, false), (double)k));
  }
  const ax_value moved = ax_div(ax_neg(ax_add(ax_mul(slope, fall), powers)), a); /* ds / da */
  const ax_value own = ax_sub(fall, times(p.eta, 0.5)), halved = ax_div(times(p.s, 0.5), a);
  const ax_value grown = ax_mul(p.s, ax_sub(times(square(p.eta), 0.5), p.mu));
  return ax_mul(ax_mul(ax_div(x, a), stirling(a)), ax_sub(ax_sub(ax_add(own, moved), halved), grown));
}
