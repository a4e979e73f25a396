/* Poisson's equation on a periodic square, u_xx + u_yy = f, by Fourier transforms. Each of eight devices has a band of rows: it
   transforms these, then all exchange blocks, so that each has a band of columns and transforms those; and back again. */
#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { N = 128, DEVICES = 8, BAND = N / DEVICES };

/* f f64[16,128], a band of rows on each device -> u, of mean 0, likewise */
static AX_BODY(poisson) {
  const ax_value by_rows = ax_fft(in[0], 1);
  const ax_value y = ax_fft(ax_all_to_all(by_rows, "band", 1, 0, true), 0); /* c128[128,16]: this device's columns */
  const ax_value k = ax_fftfreq(AX_F64, N, 1.0 / N), first = ax_mul(ax_axis_index("band"), BAND);
  const ax_value down = ax_expand_dims(k, 1), across = ax_expand_dims(ax_dynamic_slice_in_dim(k, first, BAND, 0), 0);
  const ax_value square = ax_add(ax_mul(down, down), ax_mul(across, across)), mean = ax_eq(square, 0);
  const ax_value factor = ax_where(mean, 0, ax_div(-1, ax_where(mean, 1, square)));
  const ax_value u = ax_ifft(ax_mul(y, ax_complex(factor, ax_full_like(factor, 0))), 0);
  out[0] = ax_real_part(ax_ifft(ax_all_to_all(u, "band", 0, 1, true), 1));
}

int main(void) {
  static double f[N][N], wanted[N][N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      const double y = 2 * M_PI * i / N, x = 2 * M_PI * j / N, a = sin(3 * x) * cos(2 * y), b = cos(7 * x + 5 * y);
      wanted[i][j] = a + b;
      f[i][j] = -(9 + 4) * a - (49 + 25) * b;
    }
  const ax_host_array in[] = {AX_HOST(f)};
  ax_host_array out;
  ax_mesh mesh;
  ax_must(ax_mesh_parse("band=8", &mesh));
  ax_must(ax_apply(NULL, AX_SHARDED(&mesh, "band -> band", AX_FN(poisson, 1, 1)), in, &out));
  const double *u = out.data;
  double wrong = 0;
  for (int i = 0; i < N * N; i++) wrong = fmax(wrong, fabs(u[i] - wanted[i / N][i % N]));
  printf("%d x %d points on %d devices: %s\n", N, N, DEVICES, wrong < 1e-13 ? "u as it should be" : "wrong");
  ax_host_array_release(&out);
  if (wrong < 1e-13) return 0;
  printf("off by %g\n", wrong);
  return 1;
}
