/* A gradient for each example of a batch, by vmap of grad; each cut to a norm of at most 1, and their mean, as differentially
   private training does. Without cutting, the mean is the gradient of the batch. */
#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { BATCH = 6, WIDTH = 4 };

/* w f32[4], x f32[4], y f32[] -> f32[] */
static AX_BODY(loss) {
  ax_value error = ax_sub(ax_tanh(ax_matmul(in[1], in[0])), in[2]);
  out[0] = ax_square(error);
}

static AX_BODY(gradient) {
  ax_grad(AX_FN(loss, 3, 1), AX_FIRST(1), in, out);
}

static AX_BODY(batch_loss) {
  ax_value each;
  ax_vmap(AX_FN(loss, 3, 1), in, &each, &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0, 0)}});
  out[0] = ax_reduce_mean(each, AX_ALL_DIMS, false);
}

/* w f32[4], x f32[6,4], y f32[6] -> the norms f32[6]; the mean of the cut gradients, the mean of all, the batch's gradient, each
   f32[4] */
static AX_BODY(gradients) {
  ax_value each;
  ax_vmap(AX_FN(gradient, 3, 1), in, &each, &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0, 0)}});
  ax_value norms = ax_sqrt(ax_reduce_sum(ax_square(each), AX_DIMS(1), true));
  out[0] = ax_reshape(norms, AX_DIMS(BATCH));
  out[1] = ax_reduce_mean(ax_div(each, ax_max(norms, 1)), AX_DIMS(0), false);
  out[2] = ax_reduce_mean(each, AX_DIMS(0), false);
  ax_grad(AX_FN(batch_loss, 3, 1), AX_FIRST(1), in, &out[3]);
}

int main(void) {
  float w[WIDTH] = {0.1f, -0.2f, 0.3f, 0.4f}, x[BATCH][WIDTH], y[BATCH];
  for (int i = 0; i < BATCH; i++) {
    for (int j = 0; j < WIDTH; j++) x[i][j] = sinf((float)(3 * i + 2 * j));
    y[i] = cosf((float)i);
  }
  ax_type types[] = {AX_TYPE(AX_F32, WIDTH), AX_TYPE(AX_F32, BATCH, WIDTH), AX_TYPE(AX_F32, BATCH)};
  ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(WIDTH), w), ax_host_view(AX_F32, AX_DIMS(BATCH, WIDTH), x),
                        ax_host_view(AX_F32, AX_DIMS(BATCH), y)};
  ax_host_array out[4];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_jit(runtime, AX_FN(gradients, 3, 4), types, NULL, &executable));
  ax_must(ax_run_host(executable, in, out));
  const float *norms = out[0].data, *cut = out[1].data, *mean = out[2].data, *batch = out[3].data;

  float difference = 0;
  printf("norms");
  for (int i = 0; i < BATCH; i++) printf(" %.4f", (double)norms[i]);
  printf("\nmean of the gradients cut to 1:");
  for (int j = 0; j < WIDTH; j++) printf(" %.4f", (double)cut[j]);
  for (int j = 0; j < WIDTH; j++) difference = fmaxf(difference, fabsf(mean[j] - batch[j]));
  printf("\nuncut, their mean is the batch's gradient: %s\n", difference < 1e-6f ? "yes" : "no");

  for (int i = 0; i < 4; i++) ax_host_array_release(&out[i]);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return difference < 1e-6f ? 0 : 1;
}
