/* Step 5 of docs/tutorial.md: a training loop whose weights are one piece of memory. */
#include <stdio.h>

#include <axle/axle.h>

static ax_mesh mesh;

static AX_BODY(part) {
  ax_value error = ax_sub(ax_matmul(in[1], in[0]), in[2]);
  out[0] = ax_pmean(ax_reduce_mean(ax_square(error), AX_ALL_DIMS, false), "data");
}

static AX_BODY(loss) {
  ax_shard_map(&mesh, "; data; data -> ", AX_FN(part, 3, 1), in, out);
}

/* w, x, y -> the next w, the loss */
static AX_BODY(step) {
  const double *rate = context;
  ax_value found[2];
  ax_value_and_grad(AX_FN(loss, 3, 1), AX_FIRST(1), in, found);
  out[0] = ax_sub(in[0], ax_mul(found[1], *rate));
  out[1] = found[0];
}

int main(void) {
  double rate = 0.5;
  ax_type types[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_F32, 8, 3), AX_TYPE(AX_F32, 8)};
  ax_runtime *runtime;
  ax_executable *executable;
  ax_must(ax_mesh_parse("data=4", &mesh));
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_jit(runtime, AX_CLOSURE(step, 3, 2, &rate), types, &(ax_compile_options){.donate = AX_FIRST(1)}, &executable));

  /* y = x w for w = 1, -2, 0.5, which the loop does not know */
  float w[3] = {0}, x[8][3] = {{0}}, y[8] = {0}, value;
  for (int i = 0; i < 8; i++) x[i][i % 3] = 1, y[i] = (float[]){1, -2, 0.5f}[i % 3];
  const void *data[] = {w, x, y};
  ax_array *in[3], *out[2];
  for (uint32_t i = 0; i < 3; i++) ax_must(ax_executable_put(executable, i, data[i], &in[i]));

  for (int n = 0; n <= 60; n++) {
    ax_must(ax_run_start(executable, in, out));
    ax_array_release(in[0]); /* it is gone: the run has its memory */
    in[0] = out[0];
    if (n % 20 == 0) {
      ax_must(ax_array_read(out[1], &value, sizeof value));
      printf("step %2d: loss %.6f\n", n, (double)value);
    }
    ax_array_release(out[1]);
  }
  ax_must(ax_array_read(in[0], w, sizeof w));
  printf("w %.3f %.3f %.3f\n", (double)w[0], (double)w[1], (double)w[2]);

  ax_array *gone = ax_array_retain(in[0]);
  ax_must(ax_run(executable, in, out));
  if (ax_array_read(gone, w, sizeof w) != AX_OK) printf("%s\n", ax_message());

  ax_array_release(gone);
  for (int i = 0; i < 3; i++) ax_array_release(in[i]);
  for (int i = 0; i < 2; i++) ax_array_release(out[i]);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return 0;
}
