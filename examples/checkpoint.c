/* Training that is saved and taken up again by another runtime comes to the same weights, bit for bit, as training that went
   through.
     checkpoint [FOLDER]        where to save; here when not given */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <axle/axle.h>

enum { ROWS = 16, WIDTH = 5 };

static ax_mesh mesh; /* data=4 */

static AX_BODY(loss) {
  ax_value error = ax_sub(ax_tanh(ax_matmul(in[1], in[0])), in[2]);
  out[0] = ax_pmean(ax_reduce_mean(ax_square(error), AX_ALL_DIMS, false), "data");
}

/* w, momentum, x, y -> w, momentum */
static AX_BODY(device_step) {
  ax_value gradient;
  ax_grad(AX_FN(loss, 3, 1), AX_FIRST(1), AX_VALUES(in[0], in[2], in[3]), &gradient);
  out[1] = ax_add(ax_mul(in[1], 0.9), gradient);
  out[0] = ax_sub(in[0], ax_mul(out[1], 0.1));
}

static AX_BODY(step) { ax_shard_map(&mesh, "; ; data; data -> ", AX_FN(device_step, 4, 2), in, out); }

static void put_data(ax_tree *batch) {
  float x[ROWS][WIDTH], y[ROWS];
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < WIDTH; j++) x[i][j] = sinf((float)(3 * i + 2 * j));
    y[i] = cosf((float)i);
  }
  ax_must(ax_tree_put(batch, x, "x"));
  ax_must(ax_tree_put(batch, y, "y"));
}

/* `count` steps in a runtime of their own, beginning with the state saved in file `from` (NULL: a new one), and saving the state to
   file `to`. */
static void train(const char *from, const char *to, int count) {
  ax_treedef *defs[2], *all;
  ax_tree *state, *batch;
  ax_runtime *runtime;
  ax_executable *executable;
  ax_must(ax_treedef_parse("{w,momentum}: f32[5]", &defs[0]));
  ax_must(ax_treedef_parse("x: f32[16,5] @ data; y: f32[16] @ data", &defs[1]));
  ax_must(ax_treedef_join("state; batch", AX_LIST(2, defs), &all));
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_compile_options options = {.donate = ax_treedef_select(all, "state")};
  ax_must(ax_jit(runtime, AX_FN(step, 4, 2), ax_treedef_types(all), &options, &executable));
  ax_must(ax_tree_create(runtime, &mesh, defs[0], &state));
  ax_must(ax_tree_create(runtime, &mesh, defs[1], &batch));

  if (from == NULL) ax_must(ax_tree_init(state, "*: zeros", 0));
  else ax_must(ax_tree_read_npz(state, from));
  put_data(batch);
  for (int n = 0; n < count; n++) ax_must(ax_tree_run(executable, AX_TREES(state, batch), AX_TREES(state)));
  ax_must(ax_tree_write_npz(state, to));

  ax_tree_release(state);
  ax_tree_release(batch);
  for (int i = 0; i < 2; i++) ax_treedef_release(defs[i]);
  ax_treedef_release(all);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static bool equal(const char *a, const char *b, const char *name) {
  ax_npz *files[2];
  ax_must(ax_npz_read(a, &files[0]));
  ax_must(ax_npz_read(b, &files[1]));
  bool same = memcmp(ax_npz_find(files[0], name)->data, ax_npz_find(files[1], name)->data, WIDTH * sizeof(float)) == 0;
  ax_npz_release(files[0]);
  ax_npz_release(files[1]);
  return same;
}

int main(int argc, char **argv) {
  char through[4096], half[4096], resumed[4096];
  const char *folder = argc > 1 ? argv[1] : ".";
  snprintf(through, sizeof through, "%s/through.npz", folder);
  snprintf(half, sizeof half, "%s/half.npz", folder);
  snprintf(resumed, sizeof resumed, "%s/resumed.npz", folder);
  ax_must(ax_mesh_parse("data=4", &mesh));
  train(NULL, through, 20);
  train(NULL, half, 10);
  train(half, resumed, 10);
  bool same = equal(through, resumed, "w") && equal(through, resumed, "momentum"), moved = !equal(half, resumed, "w");
  printf("resumed after 10 of 20 steps, the weights are %s as without a break\n", same && moved ? "bit for bit" : "not");
  return same && moved ? 0 : 1;
}
