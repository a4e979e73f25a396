/* A program handed to somebody else: softmax over rows whose columns lie on four devices, as a StableHLO module, with inputs and
   with our results. stablehlo.py lets XLA run the module, through JAX, and compares.
     stablehlo FOLDER && python3 examples/stablehlo.py FOLDER */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <axle/axle.h>

enum { DEVICES = 4, ROWS = 3, COLUMNS = 2 }; /* columns on each device */

static ax_mesh mesh; /* model=4 */

static AX_BODY(device) {
  ax_value largest = ax_pmax(ax_reduce_max(in[0], AX_DIMS(-1), true), "model");
  ax_value e = ax_exp(ax_sub(in[0], largest));
  out[0] = ax_div(e, ax_psum(ax_reduce_sum(e, AX_DIMS(-1), true), "model"));
}

/* The blocks one after the other, so that part i of an array is device i's. */
static AX_BODY(softmax) {
  ax_shard_map(&mesh, "model -> model", AX_FN(device, 1, 1), in, out);
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

/* As run_stablehlo.py reads arrays: the devices in front. */
static void write_array(const char *path, const float *data) {
  ax_host_array array = ax_host_view(AX_F32, AX_DIMS(DEVICES, ROWS, COLUMNS), data);
  ax_must(ax_npz_write(path, AX_LIST(1, (const char *const[]){"0"}), &array));
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : ".";
  float x[DEVICES * ROWS * COLUMNS];
  char path[4096], *text;
  ax_type type = AX_TYPE(AX_F32, DEVICES * ROWS, COLUMNS);
  ax_program *program;
  ax_runtime *runtime;
  ax_executable *executable;
  for (int i = 0; i < DEVICES * ROWS * COLUMNS; i++) x[i] = 3 * sinf((float)i);
  ax_host_array in = ax_host_view(AX_F32, AX_DIMS(DEVICES * ROWS, COLUMNS), x), out;

  ax_must(ax_mesh_parse("model=4", &mesh));
  ax_must(ax_trace(AX_FN(softmax, 1, 1), &type, &program));
  ax_must(ax_program_stablehlo(program, &text));
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_compile(runtime, program, NULL, &executable));
  ax_must(ax_run_host(executable, &in, &out));

  snprintf(path, sizeof path, "%s/softmax.mlir", folder);
  write_text(path, text);
  snprintf(path, sizeof path, "%s/softmax_in.npz", folder);
  write_array(path, x);
  snprintf(path, sizeof path, "%s/softmax_out.npz", folder);
  write_array(path, out.data);

  const float *y = out.data;
  float sum = 0; /* of the first row, over all devices */
  for (int d = 0; d < DEVICES; d++)
    for (int c = 0; c < COLUMNS; c++) sum += y[d * ROWS * COLUMNS + c];
  printf("wrote softmax.mlir; a row of our result sums to %.4f\n", (double)sum);

  ax_string_free(text);
  ax_host_array_release(&out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return 0;
}
