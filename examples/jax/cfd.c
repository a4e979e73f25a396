#include <axle/axle.h>

enum { N = 32, STEPS = 200, CG_STEPS = 12, RESULTS = 8 };
static const double DT = 0.005, H = 1.0 / 33;
static const ax_mesh mesh = {.count = 2, .axis = {{.name = "y", .size = 4},
                                                  {.name = "x", .size = 2}}};

/* With the neighbours' edges on both sides; at the domain's border with the values at the walls. */
static ax_value pad(ax_value f, int axis, ax_value low_wall, ax_value high_wall) {
  const char *name = mesh.axis[axis].name;
  ax_value low = ax_pshift(ax_slice_in_dim(f, -1, AX_END, 1, axis), name, 1, false);
  ax_value high = ax_pshift(ax_slice_in_dim(f, 0, 1, 1, axis), name, -1, false);
  low = ax_where(ax_eq(ax_axis_index(name), 0), low_wall, low);
  high = ax_where(ax_eq(ax_axis_index(name), ax_axis_size(name) - 1), high_wall, high);
  return ax_concatenate(AX_VALUES(low, f, high), axis);
}

/* Pads a field that is zero at the walls. */
static ax_value pad_zero(ax_value f, int axis) { return pad(f, axis, ax_real(0), ax_real(0)); }

static ax_value slope_y(ax_value fy) {
  return ax_div(ax_sub(ax_index(fy, "2:"), ax_index(fy, ":-2")), 2 * H);
}

static ax_value slope_x(ax_value fx) {
  return ax_div(ax_sub(ax_index(fx, ":, 2:"), ax_index(fx, ":, :-2")), 2 * H);
}

static ax_value laplacian(ax_value fy, ax_value fx) {
  ax_value sum = ax_add(ax_add(ax_index(fy, "2:"), ax_index(fy, ":-2")),
                        ax_add(ax_index(fx, ":, 2:"), ax_index(fx, ":, :-2")));
  return ax_div(ax_sub(sum, ax_mul(4, ax_index(fy, "1:-1"))), H * H);
}

static ax_value minus_laplacian(ax_value psi) {
  return ax_neg(laplacian(pad_zero(psi, 0), pad_zero(psi, 1)));
}

/* u and v, of which psi is the stream function. */
static void velocity(ax_value psi, ax_value *u, ax_value *v) {
  *u = slope_y(pad_zero(psi, 0));
  *v = ax_neg(slope_x(pad_zero(psi, 1)));
}

static ax_value dot(ax_value a, ax_value b) {
  return ax_psum(ax_einsum("ij,ij->", AX_VALUES(a, b)), "y,x");
}

/* psi whose negative Laplacian is omega, by conjugate gradients from the psi of the step before. */
static ax_value solve_poisson(ax_value omega, ax_value psi) {
  ax_value r = ax_sub(omega, minus_laplacian(psi)), p = r, rr = dot(r, r);
  AX_LOOP (i, 0, CG_STEPS, &psi, &r, &p, &rr) {
    ax_value q = minus_laplacian(p), alpha = ax_div(rr, dot(p, q)), rr_before = rr;
    psi = ax_add(psi, ax_mul(alpha, p));
    r = ax_sub(r, ax_mul(alpha, q));
    rr = dot(r, r);
    p = ax_add(r, ax_mul(ax_div(rr, rr_before), p));
  }
  return psi;
}

/* One step of the vorticity equation. No slip at the walls (Thom's formula), and the upper one moves. */
static ax_value advance(ax_value omega, ax_value psi, ax_value lid, ax_value nu) {
  ax_value u, v, wall = ax_mul(-2 / (H * H), psi);
  velocity(psi, &u, &v);
  ax_value upper = ax_sub(ax_index(wall, "-1:"), ax_mul(2 / H, lid));
  ax_value omega_y = pad(omega, 0, ax_index(wall, ":1"), upper);
  ax_value omega_x = pad(omega, 1, ax_index(wall, ":, :1"), ax_index(wall, ":, -1:"));
  ax_value moved = ax_add(ax_mul(u, slope_x(omega_x)), ax_mul(v, slope_y(omega_y)));
  ax_value change = ax_sub(ax_mul(nu, laplacian(omega_y, omega_x)), moved);
  return ax_add(omega, ax_mul(DT, change));
}

/* still, lid's speed, viscosity -> the last kinetic energy; all of them; enstrophies; omega; psi */
static AX_BODY(simulate) {
  ax_value omega = in[0], psi = in[0];
  AX_LOOP (i, 0, STEPS, &omega, &psi) {
    ax_value u, v;
    omega = advance(omega, psi, in[1], in[2]);
    psi = solve_poisson(omega, psi);
    velocity(psi, &u, &v);
    ax_collect(&out[1], ax_mul(0.5 * H * H, ax_add(dot(u, u), dot(v, v))));
    ax_collect(&out[2], ax_mul(0.5 * H * H, dot(omega, omega)));
  }
  out[0] = ax_index(out[1], "-1");
  out[3] = omega;
  out[4] = psi;
}

/* -> what `labels` says */
static AX_BODY(everything) {
  ax_value args[] = {ax_full(AX_F64, AX_DIMS(N, N), 0), ax_full(AX_F64, AX_DIMS(), 1), ax_full(AX_F64, AX_DIMS(), 0.01)};
  ax_value found[7]; /* the results of simulate, d energy / d lid, d energy / d nu */
  ax_value_and_grad(AX_SHARDED(&mesh, "y,x; ; -> ; ; ; y,x; y,x", AX_FN(simulate, 3, 5)), AX_ARGS(1, 2), args, found);
  ax_value psi = found[4], at = ax_argmin(ax_reshape(psi, AX_DIMS(-1)), 0, AX_S32);
  out[0] = ax_index(found[1], "49::50");
  out[1] = ax_index(found[2], "49::50");
  out[2] = ax_reduce_min(psi, AX_ALL_DIMS, false);
  out[3] = ax_stack(AX_VALUES(ax_div(at, N), ax_rem(at, N)), 0);
  out[4] = ax_index(psi, "16, 12:16");
  out[5] = ax_index(found[3], "31, 12:16");
  out[6] = found[5];
  out[7] = found[6];
}

int main(void) {
  const char *labels[RESULTS] = {"kinetic energy", "enstrophy", "least psi", "at", "psi[16, 12:16]",
                                 "omega[31, 12:16]", "d energy / d lid's speed", "d energy / d viscosity"};
  ax_host_array out[RESULTS];
  ax_must(ax_apply(NULL, AX_FN(everything, 0, RESULTS), NULL, out));
  for (int i = 0; i < RESULTS; i++)
    ax_print(labels[i], &out[i]);
}
