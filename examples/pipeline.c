/* A pipeline: four devices, a layer each, through which eight microbatches go one behind the other. Its loss and gradient are those
   of the same layers without a pipeline.

     tick      0    1    2    3    4   ..        device s works at tick t on microbatch t - s, and hands what it made to device
     stage 0   m0   m1   m2   m3   m4            s + 1 by a shift along "stage"; the gradient goes the same way back
     stage 1        m0   m1   m2   m3                                                                                    */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <axle/axle.h>

enum { STAGES = 4, BATCHES = 8, ROWS = 2, WIDTH = 3, WEIGHTS = STAGES * WIDTH * WIDTH, INPUTS = BATCHES * ROWS * WIDTH };

static ax_mesh mesh; /* stage=4 */

static ax_value layer(ax_value x, ax_value w) { return ax_tanh(ax_matmul(x, w)); }
static ax_value loss_of(ax_value y) { return ax_reduce_mean(ax_square(y), AX_ALL_DIMS, false); }

/* what the stage before made, the next microbatch -> what the next stage gets, what this one made */
static AX_BODY(tick) {
  const ax_value *w = context;
  out[1] = layer(ax_where(ax_eq(ax_axis_index("stage"), 0), in[1], in[0]), *w);
  out[0] = ax_pshift(out[1], "stage", 1, false);
}

/* w f32[1,3,3] of this stage, x f32[8,2,3] -> f32[] */
static AX_BODY(stages) {
  ax_value w = ax_at(in[0], 0, 0), made[2];
  ax_value nothing = ax_full(AX_F32, AX_DIMS(ROWS, WIDTH), 0), after = ax_full(AX_F32, AX_DIMS(STAGES - 1, ROWS, WIDTH), 0);
  ax_value batches = ax_concatenate(AX_VALUES(in[1], after), 0);
  ax_scan(AX_CLOSURE(tick, 2, 2, &w), 1, -1, false, AX_VALUES(nothing, batches), made);
  ax_value last = ax_eq(ax_axis_index("stage"), STAGES - 1), loss = loss_of(ax_slice_in_dim(made[1], STAGES - 1, AX_END, 1, 0));
  out[0] = ax_psum(ax_where(last, loss, 0), "stage");
}

static AX_BODY(pipelined) {
  ax_shard_map(&mesh, "stage; -> ", AX_FN(stages, 2, 1), in, out);
}

static AX_BODY(plain) {
  ax_value y = in[1];
  for (int s = 0; s < STAGES; s++) y = layer(y, ax_at(in[0], s, 0));
  out[0] = loss_of(y);
}

static AX_BODY(value_and_grad) {
  ax_value_and_grad(*(ax_fn *)context, AX_FIRST(1), in, out);
}

static void run(ax_runtime *runtime, ax_fn loss, const float *w, const float *x, float *value, float *gradient) {
  ax_type types[] = {AX_TYPE(AX_F32, STAGES, WIDTH, WIDTH), AX_TYPE(AX_F32, BATCHES, ROWS, WIDTH)};
  ax_executable *executable;
  ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(STAGES, WIDTH, WIDTH), w),
                        ax_host_view(AX_F32, AX_DIMS(BATCHES, ROWS, WIDTH), x)};
  ax_host_array out[2];
  ax_must(ax_jit(runtime, AX_CLOSURE(value_and_grad, 2, 2, &loss), types, NULL, &executable));
  ax_must(ax_run_host(executable, in, out));
  memcpy(value, out[0].data, sizeof *value);
  memcpy(gradient, out[1].data, WEIGHTS * sizeof gradient[0]);
  for (int i = 0; i < 2; i++) ax_host_array_release(&out[i]);
  ax_executable_release(executable);
}

int main(void) {
  float w[WEIGHTS], x[INPUTS], value[2], gradient[2][WEIGHTS], difference = 0;
  for (int i = 0; i < WEIGHTS; i++) w[i] = (float)(7 * i % 11 - 5) / 5;
  for (int i = 0; i < INPUTS; i++) x[i] = (float)(5 * i % 13 - 6) / 6;
  ax_runtime *runtime;
  ax_must(ax_mesh_parse("stage=4", &mesh));
  ax_must(ax_runtime_create(NULL, &runtime));
  run(runtime, AX_FN(pipelined, 2, 1), w, x, &value[0], gradient[0]);
  run(runtime, AX_FN(plain, 2, 1), w, x, &value[1], gradient[1]);
  ax_runtime_release(runtime);
  for (int i = 0; i < WEIGHTS; i++) difference = fmaxf(difference, fabsf(gradient[0][i] - gradient[1][i]));
  bool same = fabsf(value[0] - value[1]) < 1e-6f && difference < 1e-6f;
  printf("loss %.5f in a pipeline, %.5f without; gradients %s\n", (double)value[0], (double)value[1], same ? "agree" : "differ");
  return same ? 0 : 1;
}
