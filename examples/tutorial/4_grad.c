/* Step 4 of docs/tutorial.md: the loss and its gradient in one program, and a check of the gradient. */
#include <stdio.h>
#include <string.h>

#include <axle/axle.h>

static ax_mesh mesh;

static AX_BODY(part) {
  ax_value error = ax_sub(ax_matmul(in[1], in[0]), in[2]);
  out[0] = ax_pmean(ax_reduce_mean(ax_square(error), AX_ALL_DIMS, false), "data");
}

static AX_BODY(loss) {
  ax_shard_map(&mesh, "; data; data -> ", AX_FN(part, 3, 1), in, out);
}

/* w, x, y -> the loss, its gradient with respect to w */
static AX_BODY(value_and_grad) {
  ax_value_and_grad(AX_FN(loss, 3, 1), AX_FIRST(1), in, out);
}

static double loss_at(ax_executable *executable, const float *w, const void *x, const void *y, float *gradient) {
  ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(3), w), ax_host_view(AX_F32, AX_DIMS(8, 3), x),
                        ax_host_view(AX_F32, AX_DIMS(8), y)};
  ax_host_array out[2];
  ax_must(ax_run_host(executable, in, out));
  double value = (double)*(float *)out[0].data;
  if (gradient != NULL) memcpy(gradient, out[1].data, 3 * sizeof gradient[0]);
  for (int i = 0; i < 2; i++) ax_host_array_release(&out[i]);
  return value;
}

int main(void) {
  ax_type types[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_F32, 8, 3), AX_TYPE(AX_F32, 8)};
  ax_runtime *runtime;
  ax_executable *executable;
  ax_must(ax_mesh_parse("data=4", &mesh));
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_jit(runtime, AX_FN(value_and_grad, 3, 2), types, NULL, &executable));

  float w[3] = {1, -2, 0.5f}, x[8][3] = {{0}}, y[8] = {0}, gradient[3];
  for (int i = 0; i < 8; i++) x[i][i % 3] = 1;
  printf("loss %g\n", loss_at(executable, w, x, y, gradient));
  for (int i = 0; i < 3; i++) {
    float up[3] = {w[0], w[1], w[2]}, down[3] = {w[0], w[1], w[2]};
    up[i] += 0.125f, down[i] -= 0.125f;
    double slope = (loss_at(executable, up, x, y, NULL) - loss_at(executable, down, x, y, NULL)) / 0.25;
    printf("gradient %g, by differences %g\n", (double)gradient[i], slope);
  }

  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return 0;
}
