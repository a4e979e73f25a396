/* Special functions: special.py says the same in JAX. */
#include "vectors/vectors.h"

#define FLOAT "f32 f64 bf16"

static ax_value of_n_alone(ax_value n, ax_value x) { return ax_polygamma(ax_stop_gradient(n), x); }

static const vector_case special_cases[] = {
    {"erf_inv_edges", FLOAT, .unary = ax_erf_inv, .modes = "v"},
    {"erf_inv", FLOAT, .unary = ax_erf_inv, .ulps = 64},
    {"lgamma_edges", FLOAT, .unary = ax_lgamma, .modes = "v", .scaled = true},
    {"lgamma", FLOAT, .unary = ax_lgamma, .scaled = true},
    {"lgamma_below", FLOAT, .unary = ax_lgamma, .scaled = true, .ulps = 64},
    {"digamma_edges", FLOAT, .unary = ax_digamma, .modes = "v", .scaled = true},
    {"digamma", FLOAT, .unary = ax_digamma, .scaled = true},
    {"digamma_below", FLOAT, .unary = ax_digamma, .scaled = true, .ulps = 64},
    {"polygamma", FLOAT, .binary = of_n_alone, .ulps = 64},
    {"zeta", FLOAT, .binary = ax_zeta, .modes = "v"},
    {"bessel_i0e_edges", FLOAT, .unary = ax_bessel_i0e, .modes = "v"},
    {"bessel_i0e", FLOAT, .unary = ax_bessel_i0e, .scaled = true},
    {"bessel_i1e_edges", FLOAT, .unary = ax_bessel_i1e, .modes = "v"},
    {"bessel_i1e", FLOAT, .unary = ax_bessel_i1e, .scaled = true},
};

const VECTOR_GROUP(special);
