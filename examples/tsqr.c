/* Least squares with many rows, a block of them on each of eight devices, by a QR factorisation in two steps (TSQR: Demmel, Grigori,
   Hoemmen, Langou, SIAM J. Sci. Comput. 34, 2012). Each device factors its block; the small triangles, one above the other, are
   factored by all. So a device sends COLUMNS x COLUMNS numbers instead of its rows. The numbers found are those of a cubic. Here
   the steps are written by hand; ax_qr takes them by itself where a sharding cuts the rows (docs/sharding.md). */
#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { ROWS = 256, COLUMNS = 4, DEVICES = 8 };

/* x f64[32,4], on each device -> its rows of q, f64[32,4], and r, f64[4,4], the same on all */
static void tall_qr(ax_value x, ax_value *q, ax_value *r) {
  ax_value own[2], joint[2];
  ax_qr(x, false, false, own);
  ax_qr(ax_all_gather_invariant(own[1], "data", 0, true), false, false, joint);
  const ax_value first = ax_mul(ax_axis_index("data"), COLUMNS);
  *q = ax_matmul(own[0], ax_dynamic_slice_in_dim(joint[0], first, COLUMNS, 0));
  *r = joint[1];
}

/* x f64[32,4], y f64[32] -> w f64[4], for which the sum of (x w - y)^2 over all devices is least; r^T r; x^T x */
static AX_BODY(least_squares) {
  ax_value q, r;
  tall_qr(in[0], &q, &r);
  const ax_value right = ax_psum(ax_matmul(ax_matrix_transpose(q), ax_expand_dims(in[1], -1)), "data");
  out[0] = ax_squeeze(ax_triangular_solve(r, right, true, false, false, false, false), AX_DIMS(-1));
  out[1] = ax_matmul(ax_matrix_transpose(r), r);
  out[2] = ax_psum(ax_matmul(ax_matrix_transpose(in[0]), in[0]), "data");
}

int main(void) {
  static double x[ROWS][COLUMNS], y[ROWS];
  const double wanted[COLUMNS] = {1, -2, 0.5, 3};
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) {
      x[i][j] = pow(2.0 * i / ROWS - 1, j);
      y[i] += wanted[j] * x[i][j];
    }
  const ax_host_array in[] = {AX_HOST(x), AX_HOST(y)};
  ax_host_array out[3];
  ax_mesh mesh;
  ax_must(ax_mesh_parse("data=8", &mesh));
  ax_must(ax_apply(NULL, AX_SHARDED(&mesh, "data; data -> _; _; _", AX_FN(least_squares, 2, 3)), in, out));
  const double *w = out[0].data, *by_r = out[1].data, *by_x = out[2].data;
  double wrong = 0;
  for (int j = 0; j < COLUMNS; j++) wrong = fmax(wrong, fabs(w[j] - wanted[j]));
  for (int i = 0; i < COLUMNS * COLUMNS; i++) wrong = fmax(wrong, fabs(by_r[i] - by_x[i]) / ROWS);
  printf("%.4f + %.4f t + %.4f t^2 + %.4f t^3, from %d rows on %d devices\n", w[0], w[1], w[2], w[3], ROWS, DEVICES);
  for (int k = 0; k < 3; k++) ax_host_array_release(&out[k]);
  if (wrong < 1e-13) return 0;
  printf("off by %g\n", wrong);
  return 1;
}
