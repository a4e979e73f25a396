#include <axle/axle.h>

enum { NY = 32, NX = 24, STEPS = 50, RESULTS = 7 };
static const double ALPHA = 0.2;
static const ax_mesh mesh = {.count = 2, .axis = {{.name = "y", .size = 4},
                                                  {.name = "x", .size = 2}}};

/* With the neighbours' rows on both sides; zeros outside the domain. */
static ax_value pad_with_halo(ax_value u, int axis, const char *name) {
  ax_value before = ax_pshift(ax_slice_in_dim(u, -1, AX_END, 1, axis), name, 1, false);
  ax_value after = ax_pshift(ax_slice_in_dim(u, 0, 1, 1, axis), name, -1, false);
  return ax_concatenate(AX_VALUES(before, u, after), axis);
}

static AX_BODY(heat_step) {
  ax_value u = in[0], uy = pad_with_halo(u, 0, "y"), ux = pad_with_halo(u, 1, "x");
  ax_value sum = ax_add(ax_add(ax_index(uy, ":-2"), ax_index(uy, "2:")),
                        ax_add(ax_index(ux, ":, :-2"), ax_index(ux, ":, 2:")));
  out[0] = ax_add(u, ax_mul(ALPHA, ax_sub(sum, ax_mul(4, u))));
}

/* u -> energy, u */
static AX_BODY(simulate) {
  ax_scan(AX_FN(heat_step, 1, 1), 1, STEPS, false, in, &out[1]);
  out[0] = ax_mul(0.5, ax_psum(ax_reduce_sum(ax_square(out[1]), AX_ALL_DIMS, false), "y,x"));
}

/* -> what `labels` says */
static AX_BODY(everything) {
  ax_value row = ax_iota(AX_F64, AX_DIMS(NY, NX), 0), col = ax_iota(AX_F64, AX_DIMS(NY, NX), 1);
  ax_value wave = ax_mul(ax_sin(ax_mul(0.3, row)), ax_cos(ax_mul(0.2, col)));
  ax_value u0 = ax_convert_element_type(ax_add(wave, ax_mul(0.01, row)), AX_F32), found[3];
  ax_fn energy = AX_SHARDED(&mesh, "y,x -> ; y,x", AX_FN(simulate, 1, 2));
  ax_value_and_grad(energy, AX_FIRST(1), &u0, found);
  ax_value grad = found[2];
  out[0] = ax_mul(0.5, ax_einsum("ij,ij->", AX_VALUES(u0, u0)));
  out[1] = found[0];
  out[2] = ax_index(found[1], "15, 10:14");
  out[3] = ax_global_norm(AX_VALUES(grad));
  out[4] = ax_index(grad, "15, 10:14");
  out[5] = ax_stack(AX_VALUES(ax_index(grad, "0, 0"), ax_index(grad, "31, 23")), 0);
  /* The step is linear and symmetric, so <grad, u0> is twice the final energy. */
  out[6] = ax_div(ax_einsum("ij,ij->", AX_VALUES(grad, u0)), found[0]);
}

int main(void) {
  const char *labels[RESULTS] = {"initial energy", "final energy", "u[15, 10:14]", "grad norm",
                                 "grad[15, 10:14]", "grad[0, 0], grad[31, 23]", "<grad, u0> / final energy"};
  ax_host_array out[RESULTS];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, RESULTS), NULL, out));
  for (int i = 0; i < RESULTS; i++) {
    ax_print(labels[i], &out[i]);
    ax_host_array_release(&out[i]);
  }
}
