/* Random numbers: see random_draws.py. What is made of bits by exact operations must be JAX's to the bit. Where an operand only tells
   the dtype, it is the second one. */
#include "axle/random.h"

#include "vectors.h"

#define FLOAT "f32 f64"
#define UNSTEADY 1024 /* singular vectors of values that lie together: LAPACK has other last digits on each processor */
#define UNSIGNED "u8 u16 u32 u64"
#define EXACTLY 1e-30

static ax_dtype like(const ax_value *in) { return ax_typeof(in[1]).dtype; }

BODY(threefry) { ax_threefry2x32(in[0], in[1], in[2], in[3], AX_LIST(2, out)); }
BODY(bits) { out[0] = ax_random_bits(in[0], like(in), AX_DIMS(7, 5)); }
BODY(bits_scalar) { out[0] = ax_random_bits(in[0], like(in), AX_DIMS()); }
BODY(bits_none) { out[0] = ax_random_bits(in[0], like(in), AX_DIMS(0, 3)); }
BODY(five) { out[0] = ax_random_bits(in[0], like(in), AX_DIMS(5)); }
BODY(batch_of_five) { ax_vmap(AX_FN(five, 2, 1), AX_LIST(2, in), AX_LIST(1, out), &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}}); }
BODY(bits_batch) {
  ax_vmap(AX_FN(batch_of_five, 2, 1), AX_LIST(2, in), AX_LIST(1, out),
          &(ax_vmap_options){.in_axes = {AX_DIMS(1, AX_NOT_MAPPED)}, .out_axes = {AX_DIMS(1)}});
}

#define GENERATOR(name, algorithm, dims) \
  BODY(name) { (ax_rng_bit_generator)(in[0], like(in), dims, algorithm, 2, out); }
GENERATOR(threefry_0, AX_RNG_THREE_FRY, AX_DIMS())
GENERATOR(threefry_1, AX_RNG_THREE_FRY, AX_DIMS(4, 3))
GENERATOR(threefry_2, AX_RNG_THREE_FRY, AX_DIMS(3, 5))
GENERATOR(threefry_3, AX_RNG_THREE_FRY, AX_DIMS(2, 0))
GENERATOR(threefry_4, AX_RNG_THREE_FRY, AX_DIMS(3, 4, 5))
GENERATOR(philox_0, AX_RNG_PHILOX, AX_DIMS())
GENERATOR(philox_1, AX_RNG_PHILOX, AX_DIMS(4, 3))
GENERATOR(philox_2, AX_RNG_PHILOX, AX_DIMS(3, 5))
GENERATOR(philox_3, AX_RNG_PHILOX, AX_DIMS(2, 0))
GENERATOR(philox_4, AX_RNG_DEFAULT, AX_DIMS(3, 4, 5))
GENERATOR(generator_wide, AX_RNG_PHILOX, AX_DIMS(5))

BODY(key) { out[0] = ax_random_key(in[0]); }
BODY(key_number) { out[0] = ax_xor(in[0], ax_random_key(ax_integer(0x123456789abc))); }
BODY(split) { out[0] = ax_random_split(in[0], AX_DIMS(2, 3)); }
BODY(fold_in) { out[0] = ax_random_fold_in(in[0], in[1]); }
BODY(fold_in_number) { out[0] = ax_random_fold_in(in[0], ax_integer(77)); }

BODY(uniform) { out[0] = ax_random_uniform(in[0], like(in), AX_DIMS(40), ax_integer(0), ax_integer(1)); }
BODY(uniform_bounds) { out[0] = ax_random_uniform(in[0], like(in), AX_DIMS(40), ax_real(-1.7), ax_real(3.3)); }
BODY(uniform_arrays) { out[0] = ax_random_uniform(in[0], like(in), AX_DIMS(5, 3), in[1], in[2]); }
BODY(normal) { out[0] = ax_random_normal(in[0], like(in), AX_DIMS(50)); }
BODY(normal_complex) { out[0] = ax_random_normal(in[0], like(in), AX_DIMS(20)); }
BODY(exponential) { out[0] = ax_random_exponential(in[0], like(in), AX_DIMS(20)); }
BODY(laplace) { out[0] = ax_random_laplace(in[0], like(in), AX_DIMS(20)); }
BODY(logistic) { out[0] = ax_random_logistic(in[0], like(in), AX_DIMS(20)); }
BODY(cauchy) { out[0] = ax_random_cauchy(in[0], like(in), AX_DIMS(20)); }
BODY(gumbel) { out[0] = ax_random_gumbel(in[0], like(in), AX_DIMS(20), AX_RANDOM_LOW); }
BODY(gumbel_high) { out[0] = ax_random_gumbel(in[0], like(in), AX_DIMS(20), AX_RANDOM_HIGH); }
BODY(gumbel_highest) { out[0] = ax_random_gumbel(in[0], like(in), AX_DIMS(20), AX_RANDOM_HIGHEST); }
BODY(maxwell) { out[0] = ax_random_maxwell(in[0], like(in), AX_DIMS(20)); }
BODY(truncated_normal) {
  out[0] = ax_random_truncated_normal(in[0], like(in), AX_DIMS(4, 3), ax_neg(in[1]), ax_mul(in[1], ax_integer(2)));
}
BODY(lognormal) { out[0] = ax_random_lognormal(in[0], like(in), AX_DIMS(4, 3), in[1]); }
BODY(pareto) { out[0] = ax_random_pareto(in[0], like(in), AX_DIMS(4, 3), in[1]); }
BODY(rayleigh) { out[0] = ax_random_rayleigh(in[0], like(in), AX_DIMS(4, 3), in[1]); }
BODY(weibull_min) { out[0] = ax_random_weibull_min(in[0], like(in), AX_DIMS(4, 3), in[1], in[2]); }
BODY(triangular) {
  out[0] = ax_random_triangular(in[0], like(in), AX_DIMS(4, 3), ax_neg(in[1]), ax_mul(in[1], ax_real(0.5)), in[1]);
}
BODY(wald) { out[0] = ax_random_wald(in[0], like(in), AX_DIMS(4, 3), in[1]); }
BODY(double_sided_maxwell) { out[0] = ax_random_double_sided_maxwell(in[0], AX_F32, AX_DIMS(6), ax_real(0.5), ax_integer(2)); }
BODY(geometric) { out[0] = ax_random_geometric(in[0], AX_S32, AX_DIMS(5, 3), in[1]); }
BODY(gammas) { out[0] = ax_random_gamma(in[0], like(in), AX_DIMS(6, 3), in[1]); }
BODY(gamma_large) { out[0] = ax_random_gamma(in[0], like(in), AX_DIMS(6, 3), ax_mul(in[1], ax_integer(20))); }
BODY(gamma_none) { out[0] = ax_random_gamma(in[0], like(in), AX_DIMS(0, 3), ax_add(in[1], ax_integer(1))); }
BODY(loggamma) { out[0] = ax_random_loggamma(in[0], like(in), AX_DIMS(6, 3), in[1]); }
BODY(beta) { out[0] = ax_random_beta(in[0], like(in), AX_DIMS(6, 3), in[1], in[2]); }
BODY(chisquare) { out[0] = ax_random_chisquare(in[0], like(in), AX_DIMS(6, 3), in[1]); }
BODY(f) { out[0] = ax_random_f(in[0], like(in), AX_DIMS(12), in[1], in[2]); }
BODY(t) { out[0] = ax_random_t(in[0], like(in), AX_DIMS(6, 3), in[1]); }
BODY(dirichlet) { out[0] = ax_random_dirichlet(in[0], AX_DIMS(5, 2), in[1]); }
BODY(generalized_normal) { out[0] = ax_random_generalized_normal(in[0], like(in), AX_DIMS(20), ax_real(1.7)); }
BODY(ball) { out[0] = ax_random_ball(in[0], like(in), AX_DIMS(6), 3, ax_real(2.5)); }
BODY(poisson) { out[0] = ax_random_poisson(in[0], AX_S32, AX_DIMS(9, 3), ax_mul(in[1], ax_integer(2))); }
BODY(poisson_large) { out[0] = ax_random_poisson(in[0], AX_S64, AX_DIMS(9, 3), ax_mul(in[1], ax_integer(30))); }
BODY(poisson_edges) { out[0] = ax_random_poisson(in[0], AX_S32, AX_DIMS(), in[1]); }
BODY(binomial) { out[0] = ax_random_binomial(in[0], like(in), AX_DIMS(9, 3), ax_integer(12), in[1]); }
BODY(binomial_large) { out[0] = ax_random_binomial(in[0], like(in), AX_DIMS(9, 3), ax_integer(300), in[1]); }
BODY(binomial_edges) { out[0] = ax_random_binomial(in[0], like(in), AX_DIMS(), in[1], in[2]); }
BODY(multinomial) { out[0] = ax_random_multinomial(in[0], AX_DIMS(4, 2), in[1], in[2]); }
BODY(multivariate_normal) { out[0] = ax_random_multivariate_normal(in[0], AX_DIMS(4), in[1], in[2], AX_RANDOM_CHOLESKY); }
BODY(multivariate_normal_svd) { out[0] = ax_random_multivariate_normal(in[0], AX_DIMS(4), in[1], in[2], AX_RANDOM_SVD); }
BODY(multivariate_normal_eigh) { out[0] = ax_random_multivariate_normal(in[0], AX_DIMS(4), in[1], in[2], AX_RANDOM_EIGH); }
BODY(orthogonal) { out[0] = ax_random_orthogonal(in[0], like(in), AX_DIMS(), 5, 0); }
BODY(orthogonal_tall) { out[0] = ax_random_orthogonal(in[0], like(in), AX_DIMS(2, 3), 6, 4); }
BODY(orthogonal_wide) { out[0] = ax_random_orthogonal(in[0], like(in), AX_DIMS(3), 2, 7); }

BODY(randint) { out[0] = ax_random_randint(in[0], like(in), AX_DIMS(30), ax_integer(3), ax_integer(101)); }
BODY(randint_all) {
  static const int64_t least[] = {[AX_S8] = INT8_MIN, [AX_S16] = INT16_MIN, [AX_S32] = INT32_MIN, [AX_S64] = INT64_MIN, [AX_U16] = 0};
  static const uint64_t ends[] = {[AX_S8] = 1 << 7, [AX_S16] = 1 << 15, [AX_S32] = 1u << 31, [AX_S64] = 1ull << 63, [AX_U8] = 1 << 8, [AX_U16] = 1 << 16};
  out[0] = ax_random_randint(in[0], like(in), AX_DIMS(30), ax_integer(least[like(in)]), ax_unsigned(ends[like(in)]));
}
BODY(randint_empty) { out[0] = ax_random_randint(in[0], like(in), AX_DIMS(5), ax_integer(7), ax_integer(7)); }
BODY(randint_arrays) { out[0] = ax_random_randint(in[0], like(in), AX_DIMS(4, 3), in[1], ax_integer(100)); }
BODY(bernoulli) { out[0] = ax_random_bernoulli(in[0], AX_DIMS(20, 3), in[1], AX_RANDOM_LOW); }
BODY(bernoulli_high) { out[0] = ax_random_bernoulli(in[0], AX_DIMS(), in[1], AX_RANDOM_HIGH); }
BODY(rademacher) { out[0] = ax_random_rademacher(in[0], like(in), AX_DIMS(20)); }
BODY(categorical) { out[0] = ax_random_categorical(in[0], in[1], -1, AX_DIMS(), true, AX_RANDOM_LOW); }
BODY(categorical_axis) { out[0] = ax_random_categorical(in[0], in[1], 0, AX_DIMS(5, 3), true, AX_RANDOM_LOW); }
BODY(categorical_distinct) { out[0] = ax_random_categorical(in[0], in[1], -1, AX_DIMS(3, 5), false, AX_RANDOM_LOW); }
static const ax_value none;
BODY(choice) { out[0] = ax_random_choice(in[0], ax_integer(50), AX_DIMS(4, 5), true, none, 0, AX_RANDOM_LOW); }
BODY(choice_distinct) { out[0] = ax_random_choice(in[0], ax_integer(20), AX_DIMS(4, 5), false, none, 0, AX_RANDOM_LOW); }
BODY(choice_parts) { out[0] = ax_random_choice(in[0], in[1], AX_DIMS(2, 3), true, none, 1, AX_RANDOM_LOW); }
BODY(choice_parts_distinct) { out[0] = ax_random_choice(in[0], in[1], AX_DIMS(3), false, none, 1, AX_RANDOM_LOW); }
BODY(choice_weighted) { out[0] = ax_random_choice(in[0], ax_integer(6), AX_DIMS(20), true, in[1], 0, AX_RANDOM_LOW); }
BODY(choice_weighted_distinct) { out[0] = ax_random_choice(in[0], ax_integer(6), AX_DIMS(4), false, in[1], 0, AX_RANDOM_LOW); }
BODY(permutation) { out[0] = ax_random_permutation(in[0], ax_integer(30), 0, false); }
BODY(permutation_rows) { out[0] = ax_random_permutation(in[0], in[1], 0, false); }
BODY(permutation_independent) { out[0] = ax_random_permutation(in[0], in[1], 1, true); }

static const vector_case random_draws_cases[] = {
    {"threefry2x32", "u32", .body = threefry, .in = 4, .out = 2},
    {"bits", UNSIGNED, .body = bits, .in = 2, .modes = "v"},
    {"bits_scalar", UNSIGNED, .body = bits_scalar, .in = 2, .modes = "v"},
    {"bits_none", UNSIGNED, .body = bits_none, .in = 2, .modes = "v"},
    {"threefry_0", UNSIGNED, .body = threefry_0, .in = 2, .out = 2},
    {"threefry_1", UNSIGNED, .body = threefry_1, .in = 2, .out = 2},
    {"threefry_2", UNSIGNED, .body = threefry_2, .in = 2, .out = 2},
    {"threefry_3", UNSIGNED, .body = threefry_3, .in = 2, .out = 2},
    {"threefry_4", UNSIGNED, .body = threefry_4, .in = 2, .out = 2},
    {"philox_0", UNSIGNED, .body = philox_0, .in = 2, .out = 2},
    {"philox_1", UNSIGNED, .body = philox_1, .in = 2, .out = 2},
    {"philox_2", UNSIGNED, .body = philox_2, .in = 2, .out = 2},
    {"philox_3", UNSIGNED, .body = philox_3, .in = 2, .out = 2},
    {"philox_4", UNSIGNED, .body = philox_4, .in = 2, .out = 2},
    {"generator_wide", UNSIGNED, .body = generator_wide, .in = 2, .out = 2},
    {"bits_batch", UNSIGNED, .body = bits_batch, .in = 2},
    {"key", "s32 u32 s64 u64", .body = key},
    {"key_number", "u32", .body = key_number},
    {"split", "u32", .body = split},
    {"fold_in", "s32 u32", .body = fold_in, .in = 2},
    {"fold_in_number", "u32", .body = fold_in_number},
    {"uniform", "bf16 f16 f32 f64", .body = uniform, .in = 2, .modes = "v", .ulps = EXACTLY},
    {"uniform_bounds", FLOAT, .body = uniform_bounds, .in = 2, .modes = "v", .ulps = 1, .scaled = true},
    {"uniform_arrays", FLOAT, .body = uniform_arrays, .in = 3, .scaled = true},
    {"normal", "bf16 f16 f32 f64", .body = normal, .in = 2, .modes = "v"},
    {"normal_complex", "c64 c128", .body = normal_complex, .in = 2, .modes = "v"},
    {"exponential", FLOAT, .body = exponential, .in = 2, .modes = "v"},
    {"laplace", FLOAT, .body = laplace, .in = 2, .modes = "v"},
    {"logistic", FLOAT, .body = logistic, .in = 2, .modes = "v"},
    {"cauchy", FLOAT, .body = cauchy, .in = 2, .modes = "v"},
    {"gumbel", FLOAT, .body = gumbel, .in = 2, .modes = "v", .scaled = true},
    {"gumbel_high", FLOAT, .body = gumbel_high, .in = 2, .modes = "v", .scaled = true},
    {"gumbel_highest", FLOAT, .body = gumbel_highest, .in = 2, .modes = "v", .scaled = true},
    {"maxwell", FLOAT, .body = maxwell, .in = 2, .modes = "v"},
    {"truncated_normal", FLOAT, .body = truncated_normal, .in = 2, .scaled = true},
    {"lognormal", FLOAT, .body = lognormal, .in = 2},
    {"pareto", FLOAT, .body = pareto, .in = 2},
    {"rayleigh", FLOAT, .body = rayleigh, .in = 2},
    {"weibull_min", FLOAT, .body = weibull_min, .in = 3, .scaled = true},
    {"triangular", FLOAT, .body = triangular, .in = 2},
    {"wald", FLOAT, .body = wald, .in = 2, .scaled = true},
    {"double_sided_maxwell", "f32", .body = double_sided_maxwell},
    {"geometric", FLOAT, .body = geometric, .in = 2},
    {"gamma", FLOAT, .body = gammas, .in = 2, .scaled = true},
    {"gamma_small", FLOAT, .body = gammas, .in = 2, .modes = "v", .scaled = true},
    {"gamma_large", FLOAT, .body = gamma_large, .in = 2, .ulps = 64, .scaled = true},
    {"gamma_none", FLOAT, .body = gamma_none, .in = 2, .modes = "v", .scaled = true},
    {"loggamma", FLOAT, .body = loggamma, .in = 2, .scaled = true},
    {"beta", FLOAT, .body = beta, .in = 3, .modes = "v", .scaled = true},
    {"chisquare", FLOAT, .body = chisquare, .in = 2, .modes = "v", .scaled = true},
    {"f", FLOAT, .body = f, .in = 3, .modes = "v", .scaled = true},
    {"t", FLOAT, .body = t, .in = 2, .modes = "v", .scaled = true},
    {"dirichlet", FLOAT, .body = dirichlet, .in = 2, .modes = "v", .scaled = true},
    {"generalized_normal", FLOAT, .body = generalized_normal, .in = 2, .modes = "v", .scaled = true},
    {"ball", FLOAT, .body = ball, .in = 2, .modes = "v", .scaled = true},
    {"poisson", "f32", .body = poisson, .in = 2, .modes = "v"},
    {"poisson_large", "f32", .body = poisson_large, .in = 2, .modes = "v"},
    {"poisson_edges", "f32", .body = poisson_edges, .in = 2, .modes = "v"},
    {"binomial", FLOAT, .body = binomial, .in = 2, .modes = "v"},
    {"binomial_large", FLOAT, .body = binomial_large, .in = 2, .modes = "v"},
    {"binomial_edges", FLOAT, .body = binomial_edges, .in = 3, .modes = "v"},
    {"multinomial", FLOAT, .body = multinomial, .in = 3, .modes = "v"},
    {"multivariate_normal", FLOAT, .body = multivariate_normal, .in = 3, .scaled = true},
    {"multivariate_normal_svd", FLOAT, .body = multivariate_normal_svd, .in = 3, .scaled = true, .ulps = UNSTEADY},
    {"multivariate_normal_eigh", FLOAT, .body = multivariate_normal_eigh, .in = 3, .scaled = true, .ulps = UNSTEADY},
    {"orthogonal", FLOAT, .body = orthogonal, .in = 2, .modes = "v", .scaled = true},
    {"orthogonal_tall", FLOAT, .body = orthogonal_tall, .in = 2, .modes = "v", .scaled = true},
    {"orthogonal_wide", FLOAT, .body = orthogonal_wide, .in = 2, .modes = "v", .scaled = true},
    {"randint", "s32 s64 u32 u64 s8 u8 s16 u16", .body = randint, .in = 2, .modes = "v"},
    {"randint_all", "s8 u8 s16 u16 s32 s64", .body = randint_all, .in = 2, .modes = "v"},
    {"randint_empty", "s32", .body = randint_empty, .in = 2, .modes = "v"},
    {"randint_arrays", "s32 u32 s64", .body = randint_arrays, .in = 2},
    {"bernoulli", FLOAT, .body = bernoulli, .in = 2},
    {"bernoulli_high", FLOAT, .body = bernoulli_high, .in = 2},
    {"rademacher", "s32 f32 s8 s64 f64 c64 c128", .body = rademacher, .in = 2, .modes = "v"},
    {"categorical", FLOAT, .body = categorical, .in = 2},
    {"categorical_axis", FLOAT, .body = categorical_axis, .in = 2},
    {"categorical_distinct", FLOAT, .body = categorical_distinct, .in = 2},
    {"choice", "u32", .body = choice},
    {"choice_distinct", "u32", .body = choice_distinct},
    {"choice_parts", "f32", .body = choice_parts, .in = 2, .modes = "v"},
    {"choice_parts_distinct", "f32", .body = choice_parts_distinct, .in = 2, .modes = "v"},
    {"choice_weighted", "f32", .body = choice_weighted, .in = 2},
    {"choice_weighted_distinct", "f32", .body = choice_weighted_distinct, .in = 2},
    {"permutation", "u32", .body = permutation},
    {"permutation_rows", "f32", .body = permutation_rows, .in = 2, .modes = "v"},
    {"permutation_independent", "f32", .body = permutation_independent, .in = 2, .modes = "v"},
};

const VECTOR_GROUP(random_draws);
