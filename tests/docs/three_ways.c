/* What docs/three_ways.md shows: one step of gradient descent, called once, compiled with arrays, and with named trees. */
#include <stdio.h>

#include <axle/axle.h>

/* w f32[3], x f32[8,3], y f32[8] -> f32[] */
static AX_BODY(loss) {
  ax_value error = ax_sub(ax_matmul(in[1], in[0]), in[2]);
  out[0] = ax_reduce_mean(ax_square(error), AX_ALL_DIMS, false);
}

/* w, x, y -> the next w, the loss */
static AX_BODY(step) {
  ax_value found[2];
  ax_value_and_grad(AX_FN(loss, 3, 1), AX_FIRST(1), in, found);
  out[0] = ax_sub(in[0], ax_mul(0.5, found[1]));
  out[1] = found[0];
}

static float w[3], x[8][3], y[8];

static void by_one_call(void) {
  ax_host_array in[] = {AX_HOST(w), AX_HOST(x), AX_HOST(y)};
  AX_OWNED_HOSTS(out, 2);
  ax_must(ax_apply(NULL, AX_FN(step, 3, 2), in, out));
  ax_print("one call: w", &out[0]);
}

static void by_arrays(void) {
  ax_type types[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_F32, 8, 3), AX_TYPE(AX_F32, 8)};
  const void *data[] = {w, x, y};
  AX_OWNED(ax_runtime, runtime);
  AX_OWNED(ax_executable, executable);
  AX_OWNED_ARRAYS(in, 3);
  ax_array *out[2];
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_jit(runtime, AX_FN(step, 3, 2), types, &(ax_compile_options){.donate = AX_FIRST(1)}, &executable));
  for (uint32_t i = 0; i < 3; i++) ax_must(ax_executable_put(executable, i, data[i], &in[i]));
  for (int n = 0; n < 60; n++) {
    ax_must(ax_run(executable, in, out));
    ax_array_release(in[0]);
    ax_array_release(out[1]);
    in[0] = out[0];
  }
  float found[3];
  ax_must(ax_array_read(in[0], found, sizeof found));
  printf("arrays: w %.3f %.3f %.3f\n", (double)found[0], (double)found[1], (double)found[2]);
}

/* leaves of params, batch -> leaves of params, report: the same step, with its operands by name */
static AX_BODY(named_step) {
  const ax_treedef *def = context;
  step((ax_value[]){ax_leaf(def, in, "params/w"), ax_leaf(def, in, "batch/x"), ax_leaf(def, in, "batch/y")}, out, NULL);
}

static void by_trees(void) {
  AX_OWNED(ax_runtime, runtime);
  AX_OWNED(ax_executable, executable);
  AX_OWNED(ax_treedef, params_def, batch_def, report_def, in, out);
  AX_OWNED(ax_tree, params, batch, report);
  ax_mesh mesh;
  ax_must(ax_treedef_parse("w: f32[3]", &params_def));
  ax_must(ax_treedef_parse("x: f32[8,3]; y: f32[8]", &batch_def));
  ax_must(ax_treedef_parse("loss: f32[]", &report_def));
  ax_must(ax_treedef_join("params; batch", AX_TREEDEFS(params_def, batch_def), &in));
  ax_must(ax_treedef_join("params; report", AX_TREEDEFS(params_def, report_def), &out));
  ax_must(ax_mesh_parse("data=1", &mesh));
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_compile_options options = {.donate = ax_treedef_select(in, "params")};
  ax_must(ax_tree_jit(runtime, &mesh, in, out, AX_CLOSURE(named_step, 0, 0, in), &options, &executable));
  ax_must(ax_tree_create(runtime, &mesh, params_def, &params));
  ax_must(ax_tree_create(runtime, &mesh, batch_def, &batch));
  ax_must(ax_tree_create(runtime, &mesh, report_def, &report));
  ax_must(ax_tree_put(params, w, "w"));
  ax_must(ax_tree_put(batch, x, "x"));
  ax_must(ax_tree_put(batch, y, "y"));
  for (int n = 0; n < 60; n++) ax_must(ax_tree_run(executable, AX_TREES(params, batch), AX_TREES(params, report)));
  float found[3];
  ax_must(ax_tree_read(params, found, sizeof found, "w"));
  printf("trees: w %.3f %.3f %.3f\n", (double)found[0], (double)found[1], (double)found[2]);
}

int main(void) {
  for (int i = 0; i < 8; i++) x[i][i % 3] = 1, y[i] = (float[]){1, -2, 0.5f}[i % 3];
  by_one_call();
  by_arrays();
  by_trees();
  return 0;
}
