/* The value of a European call option by Monte Carlo: prices at random over four devices, which make their own parts of the random
   numbers. The result is the same for any number of devices, and the derivative by the price today comes from ax_grad. */
#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { PATHS = 1 << 18 };
static const double RATE = 0.05, VOLATILITY = 0.2, YEARS = 1, STRIKE = 105;

/* context: the mesh. price f32[], key u32[2] -> f32[]: the mean of what the option pays, discounted */
static AX_BODY(value) {
  const ax_value price = in[0], z = ax_with_sharding(ax_random_normal(in[1], AX_F32, AX_DIMS(PATHS)), context, "paths");
  const ax_value growth = ax_exp(ax_add(ax_mul(z, VOLATILITY * sqrt(YEARS)), (RATE - VOLATILITY * VOLATILITY / 2) * YEARS));
  const ax_value paid = ax_max(ax_sub(ax_mul(growth, price), STRIKE), 0);
  out[0] = ax_mul(ax_reduce_mean(paid, AX_ALL_DIMS, false), exp(-RATE * YEARS));
}

/* -> the value, and its derivative by the price */
static AX_BODY(value_and_delta) { ax_value_and_grad(AX_CLOSURE(value, 2, 1, context), AX_FIRST(1), in, out); }

int main(void) {
  float price = 100;
  uint32_t key[] = {0, 2026}; /* what ax_random_key makes of the seed 2026 in a program */
  const ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(), &price), ax_host_view(AX_U32, AX_DIMS(2), key)};
  const char *const meshes[] = {"paths=1", "paths=4"};
  for (int i = 0; i < 2; i++) {
    ax_mesh mesh;
    ax_host_array out[2];
    ax_must(ax_mesh_parse(meshes[i], &mesh));
    ax_must(ax_apply(NULL, AX_CLOSURE(value_and_delta, 2, 2, &mesh), in, out));
    printf("%s: value %.3f, derivative %.3f\n", meshes[i], (double)*(float *)out[0].data, (double)*(float *)out[1].data);
    for (int k = 0; k < 2; k++) ax_host_array_release(&out[k]);
  }
  const double d = (log((double)price / STRIKE) + (RATE + VOLATILITY * VOLATILITY / 2) * YEARS) / (VOLATILITY * sqrt(YEARS));
  const double below = erfc(-d / sqrt(2)) / 2, other = erfc(-(d - VOLATILITY * sqrt(YEARS)) / sqrt(2)) / 2;
  printf("Black and Scholes: %.3f, %.3f\n", (double)price * below - STRIKE * exp(-RATE * YEARS) * other, below);
  return 0;
}
