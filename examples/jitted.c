/* A function that is compiled when it is called, as f = jax.jit(f): once for each kind of arguments. Batches of two sizes, whole and
   cut over four devices, and a number of steps that the function is told beside its arguments, each compile it once; every other call
   finds what was compiled. */
#include <stdio.h>

#include <axle/axle.h>

enum { ROWS = 8, COLUMNS = 3, ROUNDS = 5 };

/* context: how many steps. w f32[3], x f32[n,3], y f32[n] -> w after as many steps of gradient descent */
static AX_BODY(loss) { out[0] = ax_reduce_mean(ax_square(ax_sub(ax_matmul(in[1], in[0]), in[2])), AX_ALL_DIMS, false); }

static AX_BODY(train) {
  const int *steps = context;
  out[0] = in[0];
  for (int i = 0; i < *steps; i++) {
    ax_value slope;
    ax_grad(AX_FN(loss, 3, 1), AX_FIRST(1), AX_VALUES(out[0], in[1], in[2]), &slope);
    out[0] = ax_sub(out[0], ax_mul(slope, 0.25));
  }
}

/* The first `rows` rows of the examples, on one device or cut over a mesh. */
static void put(ax_runtime *runtime, const ax_mesh *mesh, int64_t rows, ax_array *out[2]) {
  float x[ROWS][COLUMNS], y[ROWS];
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < COLUMNS; j++) x[i][j] = (float)((5 * i + 3 * j) % 7 - 3) / 3;
    y[i] = x[i][0] - 2 * x[i][2];
  }
  const ax_host_array host[] = {ax_host_view(AX_F32, AX_DIMS(rows, COLUMNS), &x[0][0]), ax_host_view(AX_F32, AX_DIMS(rows), y)};
  for (int i = 0; i < 2; i++) ax_must(ax_device_put(runtime, mesh, mesh != NULL ? "data" : "", &host[i], &out[i]));
}

int main(void) {
  ax_runtime *runtime;
  ax_jitted *step;
  ax_mesh mesh;
  const float zeros[COLUMNS] = {0};
  const ax_type weights = AX_TYPE(AX_F32, COLUMNS);
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_jitted_create(runtime, AX_FN(train, 3, 1), NULL, &step));
  ax_must(ax_mesh_parse("data=4", &mesh));
  const struct {
    const char *name;
    const ax_mesh *mesh;
    int64_t rows;
    int steps;
  } kinds[] = {{"8 rows", NULL, 8, 1}, {"4 rows", NULL, 4, 1}, {"8 rows on 4 devices", &mesh, 8, 1}, {"8 rows, 3 steps", NULL, 8, 3}};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    ax_array *batch[2], *w, *next;
    float last[COLUMNS];
    put(runtime, kinds[k].mesh, kinds[k].rows, batch);
    ax_must(ax_device_put_data(runtime, kinds[k].mesh, "", &weights, zeros, &w));
    for (int round = 0; round < ROUNDS; round++) {
      ax_must(ax_jitted_run_static(step, AX_STATIC(kinds[k].steps), AX_ARRAYS(w, batch[0], batch[1]), &next));
      ax_array_release(w);
      w = next;
    }
    ax_must(ax_array_read(w, last, sizeof last));
    const ax_jitted_counters count = ax_jitted_count(step);
    printf("%-20s w = %.3f %.3f %.3f   traced %d, compiled %d, found %d\n", kinds[k].name, (double)last[0], (double)last[1],
           (double)last[2], (int)count.traced, (int)count.compiled, (int)count.found);
    ax_array_release(w);
    for (int i = 0; i < 2; i++) ax_array_release(batch[i]);
  }
  ax_jitted_release(step);
  ax_runtime_release(runtime);
  return 0;
}
