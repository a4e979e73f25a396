/* Many draws of each distribution against what its name says. Of floats: the largest distance between the share of draws below x and the
   distribution's (Kolmogorov and Smirnov), the mean and the variance. Of integers: how often each comes (chi-square). Keys are given,
   so that results are the same in each run; the bounds are those that one in a thousand correct generators would miss. */
#include <math.h>
#include <stdlib.h>

#include "axle/axle.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { DRAWS = 20000 };
static const double PI = 3.14159265358979323846;

/* Traces the body on a key, runs it and gives its results. */
static void draw(ax_function body, uint32_t seed, ax_host_array *out) {
  const uint32_t key[] = {0, seed};
  const ax_host_array in = ax_host_view(AX_U32, AX_DIMS(2), key);
  TEST_OK(ax_apply(NULL, AX_FN(body, 1, 1), &in, out));
}

static double element(const ax_host_array *array, int64_t i) {
  const ax_number x = ax_number_load(array->dtype, array->data, i);
  return ax_is_float(array->dtype) ? x.f : (double)x.i;
}

/* --- Floats --- */

static double normal_below(double x) { return erfc(-x / sqrt(2)) / 2; }

#define BELOW(name, value) \
  static double name##_below(double x) { return value; }

static AX_BODY(uniform) { out[0] = ax_random_uniform(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(-1.5), ax_real(2.5)); }
static AX_BODY(uniform_f16) { out[0] = ax_random_uniform(in[0], AX_F16, AX_DIMS(DRAWS), ax_real(-1.5), ax_real(2.5)); }
static AX_BODY(normal) { out[0] = ax_random_normal(in[0], AX_F32, AX_DIMS(DRAWS)); }
static AX_BODY(normal_f64) { out[0] = ax_random_normal(in[0], AX_F64, AX_DIMS(DRAWS)); }
static AX_BODY(truncated_normal) { out[0] = ax_random_truncated_normal(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(-1), ax_real(2)); }
static AX_BODY(lognormal) { out[0] = ax_random_lognormal(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(0.5)); }
static AX_BODY(exponential) { out[0] = ax_random_exponential(in[0], AX_F32, AX_DIMS(DRAWS)); }
static AX_BODY(laplace) { out[0] = ax_random_laplace(in[0], AX_F32, AX_DIMS(DRAWS)); }
static AX_BODY(logistic) { out[0] = ax_random_logistic(in[0], AX_F32, AX_DIMS(DRAWS)); }
static AX_BODY(cauchy) { out[0] = ax_random_cauchy(in[0], AX_F32, AX_DIMS(DRAWS)); }
static AX_BODY(gumbel) { out[0] = ax_random_gumbel(in[0], AX_F32, AX_DIMS(DRAWS), AX_RANDOM_LOW); }
static AX_BODY(gumbel_high) { out[0] = ax_random_gumbel(in[0], AX_F32, AX_DIMS(DRAWS), AX_RANDOM_HIGH); }
static AX_BODY(gumbel_highest) { out[0] = ax_random_gumbel(in[0], AX_F32, AX_DIMS(DRAWS), AX_RANDOM_HIGHEST); }
static AX_BODY(maxwell) { out[0] = ax_random_maxwell(in[0], AX_F32, AX_DIMS(DRAWS)); }
static AX_BODY(double_sided_maxwell) {
  out[0] = ax_random_double_sided_maxwell(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(0.5), ax_real(2));
}
static AX_BODY(pareto) { out[0] = ax_random_pareto(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(5)); }
static AX_BODY(rayleigh) { out[0] = ax_random_rayleigh(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(3)); }
static AX_BODY(weibull_min) { out[0] = ax_random_weibull_min(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(2), ax_real(1.5)); }
static AX_BODY(triangular) { out[0] = ax_random_triangular(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(-1), ax_real(1), ax_real(2)); }
static AX_BODY(wald) { out[0] = ax_random_wald(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(1.3)); }

static AX_BODY(gamma_3) { out[0] = ax_random_gamma(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(3)); }
static AX_BODY(gamma_half) { out[0] = ax_random_gamma(in[0], AX_F64, AX_DIMS(DRAWS), ax_real(0.5)); }
static AX_BODY(loggamma) { out[0] = ax_random_loggamma(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(0.5)); }
static AX_BODY(beta) { out[0] = ax_random_beta(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(2), ax_real(3)); }
static AX_BODY(chisquare) { out[0] = ax_random_chisquare(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(4)); }
static AX_BODY(f) { out[0] = ax_random_f(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(4), ax_real(6)); }
static AX_BODY(t) { out[0] = ax_random_t(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(2)); }
static AX_BODY(generalized_normal) { out[0] = ax_random_generalized_normal(in[0], AX_F32, AX_DIMS(DRAWS), ax_real(1)); }
static AX_BODY(first_share) {
  out[0] = ax_at(ax_random_dirichlet(in[0], AX_DIMS(DRAWS), ax_full(AX_F32, AX_DIMS(3), 1)), 0, -1);
}
static AX_BODY(radius) {
  const ax_value x = ax_random_ball(in[0], AX_F32, AX_DIMS(DRAWS), 3, ax_real(2));
  out[0] = ax_sqrt(ax_reduce_sum(ax_mul(x, x), AX_DIMS(-1), false));
}

static double maxwell_share(double x) { return x <= 0 ? 0 : erf(x / sqrt(2)) - sqrt(2 / PI) * x * exp(-x * x / 2); }

BELOW(uniform, (x + 1.5) / 4)
BELOW(truncated_normal, (normal_below(x) - normal_below(-1)) / (normal_below(2) - normal_below(-1)))
BELOW(lognormal, normal_below(log(x) / 0.5))
BELOW(exponential, 1 - exp(-x))
BELOW(laplace, x < 0 ? exp(x) / 2 : 1 - exp(-x) / 2)
BELOW(logistic, 1 / (1 + exp(-x)))
BELOW(cauchy, atan(x) / PI + 0.5)
BELOW(gumbel, exp(-exp(-x)))
BELOW(maxwell, maxwell_share(x))
BELOW(double_sided_maxwell, 0.5 + copysign(maxwell_share(fabs(x - 0.5) / 2), x - 0.5) / 2)
BELOW(pareto, 1 - pow(x, -5))
BELOW(rayleigh, 1 - exp(-x * x / 18))
BELOW(weibull_min, 1 - exp(-pow(x / 2, 1.5)))
BELOW(triangular, x < 1 ? (x + 1) * (x + 1) / 6 : 1 - (2 - x) * (2 - x) / 3)
BELOW(wald, normal_below(sqrt(1 / x) * (x / 1.3 - 1)) + exp(2 / 1.3) * normal_below(-sqrt(1 / x) * (x / 1.3 + 1)))

static double beta_2_3(double x) { return x * x * (6 - 8 * x + 3 * x * x); } /* also of F, of 4 x / (4 x + 6) */
BELOW(gamma_3, 1 - exp(-x) * (1 + x + x * x / 2))
BELOW(gamma_half, erf(sqrt(x)))
BELOW(loggamma, erf(exp(x / 2)))
BELOW(beta, beta_2_3(x))
BELOW(chisquare, 1 - exp(-x / 2) * (1 + x / 2))
BELOW(f, beta_2_3(4 * x / (4 * x + 6)))
BELOW(t, 0.5 + x / (2 * sqrt(2 + x * x)))
BELOW(first_share, 1 - (1 - x) * (1 - x))
BELOW(radius, x * x * x)

typedef struct distribution {
  const char *name;
  ax_function body;
  double (*below)(double x); /* the share of draws that are at most x */
  double mean, variance;     /* NAN: it has none */
} distribution;

static const double EULER = 0.57721566490153286;

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Moments are within four of their own deviations, which the draws tell. */
static void check_moments(const distribution *d, const double *x) {
  double mean = 0, variance = 0, fourth = 0;
  for (int i = 0; i < DRAWS; i++) mean += x[i] / DRAWS;
  for (int i = 0; i < DRAWS; i++) variance += pow(x[i] - mean, 2) / DRAWS, fourth += pow(x[i] - mean, 4) / DRAWS;
  if (fabs(mean - d->mean) > 4 * sqrt(variance / DRAWS)) fail_msg("%s: the mean is %g instead of %g", d->name, mean, d->mean);
  if (fabs(variance - d->variance) > 4 * sqrt((fourth - variance * variance) / DRAWS))
    fail_msg("%s: the variance is %g instead of %g", d->name, variance, d->variance);
}

/* `step`: how far apart numbers of the dtype are, as a share of draws. */
static void check_shares(const distribution *d, double *x, double step) {
  double distance = 0;
  qsort(x, DRAWS, sizeof x[0], by_size);
  for (int i = 0; i < DRAWS; i++) {
    const double share = d->below(x[i]);
    distance = fmax(distance, fmax(share - (double)i / DRAWS, (double)(i + 1) / DRAWS - share));
  }
  if (!(distance <= 1.95 / sqrt(DRAWS) + step)) fail_msg("%s: shares are off by %g", d->name, distance);
}

static void check(const distribution *d, uint32_t seed) {
  static double x[DRAWS];
  ax_host_array out;
  draw(d->body, seed, &out);
  assert_int_equal(out.dims[0], DRAWS);
  for (int64_t i = 0; i < DRAWS; i++) x[i] = element(&out, i);
  if (!isnan(d->mean)) check_moments(d, x);
  check_shares(d, x, out.dtype == AX_F16 ? 0x1p-11 : 0);
  ax_host_array_release(&out);
}

static void floats(void **state) {
  (void)state;
  const double low = exp(-0.5) / sqrt(2 * PI), high = exp(-2) / sqrt(2 * PI), inside = normal_below(2) - normal_below(-1);
  const double m = (low - high) / inside, g = tgamma(1 + 1 / 1.5);
  const distribution all[] = {
      {"uniform", uniform, uniform_below, 0.5, 16 / 12.},
      {"uniform of f16", uniform_f16, uniform_below, 0.5, 16 / 12.},
      {"normal", normal, normal_below, 0, 1},
      {"normal of f64", normal_f64, normal_below, 0, 1},
      {"truncated_normal", truncated_normal, truncated_normal_below, m, 1 + (-low - 2 * high) / inside - m * m},
      {"lognormal", lognormal, lognormal_below, exp(0.125), (exp(0.25) - 1) * exp(0.25)},
      {"exponential", exponential, exponential_below, 1, 1},
      {"laplace", laplace, laplace_below, 0, 2},
      {"logistic", logistic, logistic_below, 0, PI * PI / 3},
      {"cauchy", cauchy, cauchy_below, NAN, NAN},
      {"gumbel", gumbel, gumbel_below, EULER, PI * PI / 6},
      {"gumbel, high", gumbel_high, gumbel_below, EULER, PI * PI / 6},
      {"gumbel, highest", gumbel_highest, gumbel_below, EULER, PI * PI / 6},
      {"maxwell", maxwell, maxwell_below, 2 * sqrt(2 / PI), 3 - 8 / PI},
      {"double_sided_maxwell", double_sided_maxwell, double_sided_maxwell_below, 0.5, 12},
      {"pareto", pareto, pareto_below, 1.25, 5 / 48.},
      {"rayleigh", rayleigh, rayleigh_below, 3 * sqrt(PI / 2), (4 - PI) / 2 * 9},
      {"weibull_min", weibull_min, weibull_min_below, 2 * g, 4 * (tgamma(1 + 2 / 1.5) - g * g)},
      {"triangular", triangular, triangular_below, 2 / 3., 7 / 18.},
      {"wald", wald, wald_below, 1.3, 1.3 * 1.3 * 1.3},
      {"gamma of 3", gamma_3, gamma_3_below, 3, 3},
      {"gamma of 1/2", gamma_half, gamma_half_below, 0.5, 0.5},
      {"loggamma", loggamma, loggamma_below, -EULER - 2 * log(2), PI * PI / 2},
      {"beta", beta, beta_below, 0.4, 0.04},
      {"chisquare", chisquare, chisquare_below, 4, 8},
      {"f", f, f_below, NAN, NAN},
      {"t", t, t_below, NAN, NAN},
      {"generalized_normal", generalized_normal, laplace_below, 0, 2},
      {"dirichlet", first_share, first_share_below, 1 / 3., 1 / 18.},
      {"ball", radius, radius_below, 0.75, 0.6 - 0.75 * 0.75},
  };
  for (uint32_t i = 0; i < AX_COUNT(all); i++) check(&all[i], 1000 + i);
}

/* --- Integers: how often each comes --- */

static AX_BODY(randint) { out[0] = ax_random_randint(in[0], AX_S32, AX_DIMS(DRAWS), ax_integer(-3), ax_integer(9)); }
static AX_BODY(bits) { out[0] = ax_rem(ax_random_bits(in[0], AX_U16, AX_DIMS(DRAWS)), ax_integer(16)); }
static AX_BODY(bernoulli) {
  out[0] = ax_convert_element_type(ax_random_bernoulli(in[0], AX_DIMS(DRAWS), ax_real(0.3), AX_RANDOM_LOW), AX_S32);
}
static AX_BODY(bernoulli_high) {
  out[0] = ax_convert_element_type(ax_random_bernoulli(in[0], AX_DIMS(DRAWS), ax_real(0.3), AX_RANDOM_HIGH), AX_S32);
}
static AX_BODY(rademacher) { out[0] = ax_random_rademacher(in[0], AX_S32, AX_DIMS(DRAWS)); }
static AX_BODY(geometric) { out[0] = ax_min(ax_random_geometric(in[0], AX_S32, AX_DIMS(DRAWS), ax_real(0.4)), ax_integer(8)); }
static AX_BODY(poisson) { out[0] = ax_min(ax_random_poisson(in[0], AX_S32, AX_DIMS(DRAWS), ax_real(2)), ax_integer(6)); }
static AX_BODY(poisson_many) {
  out[0] = ax_clamp(ax_integer(5), ax_random_poisson(in[0], AX_S32, AX_DIMS(DRAWS), ax_real(12)), ax_integer(20));
}
static AX_BODY(binomial) { out[0] = ax_random_binomial(in[0], AX_F32, AX_DIMS(DRAWS), ax_integer(6), ax_real(0.7)); }
static AX_BODY(binomial_many) {
  const ax_value drawn = ax_random_binomial(in[0], AX_F32, AX_DIMS(DRAWS), ax_integer(60), ax_real(0.4));
  out[0] = ax_clamp(ax_integer(17), drawn, ax_integer(32));
}
static ax_value given(void);
static AX_BODY(third_outcome) {
  out[0] = ax_at(ax_random_multinomial(in[0], AX_DIMS(DRAWS), ax_integer(6), given()), 2, -1);
}
static const float shares[] = {0.1f, 0.2f, 0.3f, 0.4f};
static ax_value given(void) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  return ax_constant(&type, shares);
}
static AX_BODY(categorical) { out[0] = ax_random_categorical(in[0], ax_log(given()), 0, AX_DIMS(DRAWS), true, AX_RANDOM_LOW); }
static AX_BODY(choice) { out[0] = ax_random_choice(in[0], ax_integer(4), AX_DIMS(DRAWS), true, given(), 0, AX_RANDOM_LOW); }
static AX_BODY(choice_of_any) { out[0] = ax_random_choice(in[0], ax_integer(5), AX_DIMS(DRAWS), true, (ax_value){0}, 0, AX_RANDOM_LOW); }

/* Of each key, the first of two that are drawn without putting back. */
static AX_BODY(first_of_two) {
  out[0] = ax_at(ax_random_choice(in[0], ax_integer(4), AX_DIMS(2), false, given(), 0, AX_RANDOM_LOW), 0, 0);
}
static AX_BODY(first_of_permutation) { out[0] = ax_at(ax_random_permutation(in[0], ax_integer(5), 0, false), 0, 0); }
static AX_BODY(many_firsts) {
  const ax_value keys = ax_random_split(in[0], AX_DIMS(DRAWS));
  ax_vmap(AX_FN(first_of_two, 1, 1), &keys, out, NULL);
}
static AX_BODY(many_permutations) {
  const ax_value keys = ax_random_split(in[0], AX_DIMS(DRAWS));
  ax_vmap(AX_FN(first_of_permutation, 1, 1), &keys, out, NULL);
}

typedef struct counted {
  const char *name;
  ax_function body;
  int least, count;  /* results are from least to below least + count */
  double share[16]; /* of each; all 0: all as likely */
  double (*chance)(int k); /* or what says it; of the least and the last with all beyond them */
} counted;

static double poisson_chance(double rate, int k) { return exp(k * log(rate) - rate - lgamma(k + 1)); }
static double binomial_chance(int n, double p, int k) {
  return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
}
static double of_2(int k) { return poisson_chance(2, k); }
static double of_12(int k) { return poisson_chance(12, k); }
static double of_6(int k) { return k > 6 ? 0 : binomial_chance(6, 0.7, k); }
static double of_60(int k) { return k > 60 ? 0 : binomial_chance(60, 0.4, k); }
static double of_third(int k) { return k > 6 ? 0 : binomial_chance(6, 0.3, k); }

/* The share of draws that are least + k, where the least and the last stand for all beyond. */
static double share_of(const counted *c, int k) {
  double share = 0;
  if (c->chance == NULL) return c->share[0] > 0 || c->share[2] > 0 ? c->share[k] : 1. / c->count;
  for (int i = k == 0 ? 0 : c->least + k; i <= (k == c->count - 1 ? 200 : c->least + k); i++) share += c->chance(i);
  return share;
}

static void check_counts(const counted *c, uint32_t seed) {
  ax_host_array out;
  double squares = 0, often[16] = {0};
  draw(c->body, seed, &out);
  for (int64_t i = 0; i < DRAWS; i++) {
    const int k = (int)element(&out, i) - c->least;
    if (k < 0 || k >= c->count) fail_msg("%s: %d is drawn", c->name, k + c->least);
    often[k]++;
  }
  for (int k = 0; k < c->count; k++) {
    const double expected = DRAWS * share_of(c, k);
    if (expected > 0) squares += pow(often[k] - expected, 2) / expected;
    else if (often[k] > 0) fail_msg("%s: %d is drawn", c->name, k + c->least);
  }
  const double freedom = c->count - 1; /* Wilson and Hilferty: one in a thousand is beyond */
  const double most = freedom * pow(1 - 2 / (9 * freedom) + 3.09 * sqrt(2 / (9 * freedom)), 3);
  if (squares > most) fail_msg("%s: chi-square is %g; %g is expected, and at most %g", c->name, squares, freedom, most);
  ax_host_array_release(&out);
}

static void integers(void **state) {
  (void)state;
  static const counted all[] = {
      {"randint", randint, -3, 12, {0}, NULL},
      {"bits", bits, 0, 16, {0}, NULL},
      {"bernoulli", bernoulli, 0, 2, {0.7, 0.3}, NULL},
      {"bernoulli, high", bernoulli_high, 0, 2, {0.7, 0.3}, NULL},
      {"rademacher", rademacher, -1, 3, {0.5, 0, 0.5}, NULL},
      {"geometric", geometric, 1, 8, {0.4, 0.24, 0.144, 0.0864, 0.05184, 0.031104, 0.0186624, 0.0279936}, NULL},
      {"categorical", categorical, 0, 4, {0.1, 0.2, 0.3, 0.4}, NULL},
      {"choice", choice, 0, 4, {0.1, 0.2, 0.3, 0.4}, NULL},
      {"choice of any", choice_of_any, 0, 5, {0}, NULL},
      {"choice without replacement", many_firsts, 0, 4, {0.1, 0.2, 0.3, 0.4}, NULL},
      {"permutation", many_permutations, 0, 5, {0}, NULL},
      {"poisson", poisson, 0, 7, {0}, of_2},
      {"poisson of many", poisson_many, 5, 16, {0}, of_12},
      {"binomial", binomial, 0, 7, {0}, of_6},
      {"binomial of many", binomial_many, 17, 16, {0}, of_60},
      {"multinomial", third_outcome, 0, 7, {0}, of_third},
  };
  for (uint32_t i = 0; i < AX_COUNT(all); i++) check_counts(&all[i], 2000 + i);
}

/* --- Several at once --- */

static const double covariance[2][2] = {{2, 0.6}, {0.6, 1}};

static AX_BODY(pairs) {
  const ax_type of_mean = AX_TYPE(AX_F64, 2), of_covariance = AX_TYPE(AX_F64, 2, 2);
  const double mean[] = {1, -2};
  out[0] = ax_random_multivariate_normal(in[0], AX_DIMS(DRAWS), ax_constant(&of_mean, mean), ax_constant(&of_covariance, covariance),
                                         AX_RANDOM_CHOLESKY);
}

static void multivariate_normal(void **state) {
  (void)state;
  ax_host_array out;
  double mean[2] = {0}, product[2][2] = {{0}};
  draw(pairs, 3000, &out);
  const double (*x)[2] = out.data;
  for (int i = 0; i < DRAWS; i++)
    for (int a = 0; a < 2; a++) mean[a] += x[i][a] / DRAWS;
  for (int i = 0; i < DRAWS; i++)
    for (int a = 0; a < 2; a++)
      for (int b = 0; b < 2; b++) product[a][b] += (x[i][a] - mean[a]) * (x[i][b] - mean[b]) / DRAWS;
  assert_true(fabs(mean[0] - 1) < 0.04 && fabs(mean[1] + 2) < 0.03);
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 2; b++)
      if (!(fabs(product[a][b] - covariance[a][b]) < 0.08)) fail_msg("covariance %d, %d is %g", a, b, product[a][b]);
  ax_host_array_release(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(floats), cmocka_unit_test(integers), cmocka_unit_test(multivariate_normal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
