/* The program of docs/mpi.md: Laplace's equation on a line, each device with its piece, until all pieces agree that it is solved. */
#include <stdio.h>

#include <axle/axle.h>

enum { DEVICES = 4, POINTS = 32 };

/* u, change -> the next u, the largest change of any point of any device */
static AX_BODY(relax) {
  ax_value u = in[0];
  ax_value left = ax_pshift(ax_slice_in_dim(u, -1, AX_END, 1, 0), "x", 1, false);  /* the left neighbour's last point */
  ax_value right = ax_pshift(ax_slice_in_dim(u, 0, 1, 1, 0), "x", -1, false);      /* the right neighbour's first point */
  ax_value wide = ax_concatenate(AX_VALUES(left, u, right), 0);
  ax_value mean = ax_mul(0.5, ax_add(ax_slice_in_dim(wide, 0, -2, 1, 0), ax_slice_in_dim(wide, 2, AX_END, 1, 0)));

  /* The two ends of the line keep their values. */
  ax_value number = ax_add(ax_mul(ax_axis_index("x"), POINTS / DEVICES), ax_iota(AX_S32, AX_DIMS(POINTS / DEVICES), 0));
  ax_value fixed = ax_or(ax_eq(number, 0), ax_eq(number, POINTS - 1));
  out[0] = ax_where(fixed, u, mean);
  out[1] = ax_pmax(ax_reduce_max(ax_abs(ax_sub(out[0], u)), AX_ALL_DIMS, false), "x");
}

static AX_BODY(going_on) { out[0] = ax_gt(in[1], 1e-5); }

/* u -> the solution; runs on each device */
static AX_BODY(solve) {
  ax_value found[2];
  ax_while(AX_FN(going_on, 2, 1), AX_FN(relax, 2, 2), AX_VALUES(in[0], ax_full(AX_F32, AX_DIMS(), 1)), found);
  out[0] = found[0];
}

int main(void) {
  float line[POINTS] = {0};
  line[POINTS - 1] = 1;
  ax_host_array u = ax_host_view(AX_F32, AX_DIMS(POINTS), line), solution;
  ax_mesh mesh;
  ax_must(ax_mesh_parse("x=4", &mesh));
  ax_must(ax_apply(NULL, AX_SHARDED(&mesh, "x -> x", AX_FN(solve, 1, 1)), &u, &solution));
  for (int i = 0; i < POINTS; i += 10) printf("%.2f ", ax_host_at(&solution, i));
  printf("\n");
  ax_host_array_release(&solution);
  return 0;
}
