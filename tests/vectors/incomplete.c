/* Incomplete gamma and beta functions, and what is made of logarithms: incomplete.py says the same in JAX. */
#include "axle/special.h"

#include "vectors/vectors.h"

#define FLOAT "f32 f64"

BODY(both_shares) { /* lax.igammac of a = 0 is 1, as lax.igamma */
  out[0] = ax_igamma(in[0], in[1]);
  out[1] = ax_igammac(ax_where(ax_eq(in[0], ax_real(0)), ax_real(2), in[0]), in[1]);
}
BODY(betainc) { out[0] = ax_betainc(in[0], in[1], in[2]); }
static ax_value betainc_x(ax_value x) { return ax_betainc(ax_full_like(x, 2.5), ax_real(0.75), x); }
BODY(both_entropies) {
  out[0] = ax_rel_entr(in[0], in[1]);
  out[1] = ax_kl_div(in[0], in[1]);
}

/* XLA computes f32 in f32, and powers and gamma functions by their logarithms: hundreds of units off. */
static const vector_case incomplete_cases[] = {
    {"igamma_edges", FLOAT, .body = both_shares, .in = 2, .out = 2, .modes = "v", .scaled = true, .ulps = 500},
    {"igamma", FLOAT, .binary = ax_igamma, .scaled = true, .ulps = 500},
    {"igammac", FLOAT, .binary = ax_igammac, .scaled = true, .ulps = 500},
    {"igamma_grad_a", FLOAT, .binary = ax_igamma_grad_a, .modes = "v", .scaled = true, .ulps = 500},
    {"random_gamma_grad", FLOAT, .binary = ax_random_gamma_grad, .modes = "v", .scaled = true, .ulps = 500},
    {"betainc", FLOAT, .body = betainc, .in = 3, .modes = "v", .scaled = true, .ulps = 500},
    {"betainc_edges", FLOAT, .body = betainc, .in = 3, .modes = "v", .scaled = true, .ulps = 500},
    {"betainc_x", FLOAT, .unary = betainc_x, .scaled = true, .ulps = 500},
    {"betaln", "f32", .binary = ax_betaln, .scaled = true, .ulps = 32},
    {"xlogy", FLOAT, .binary = ax_xlogy, .scaled = true},
    {"xlogy_edges", FLOAT, .binary = ax_xlogy, .modes = "v"},
    {"xlog1py", FLOAT, .binary = ax_xlog1py, .scaled = true},
    {"entr", FLOAT, .unary = ax_entr, .scaled = true},
    {"entr_edges", FLOAT, .unary = ax_entr, .modes = "v"},
    {"logit", FLOAT, .unary = ax_logit, .scaled = true},
    {"rel_entr", FLOAT, .body = both_entropies, .in = 2, .out = 2, .modes = "v"},
    {"rel_entr_inside", FLOAT, .body = both_entropies, .in = 2, .out = 2, .scaled = true},
    {"ndtr", FLOAT, .unary = ax_ndtr, .scaled = true},
};

const VECTOR_GROUP(incomplete);
