/* The program of the README: a mean over eight devices, what it looks like, and what comes out. */
#include <stdio.h>

#include <axle/axle.h>

static ax_mesh mesh;

/* On each device: x is its part. The mean is the same everywhere. */
static void center(const ax_value *x, ax_value *y, void *context) {
  (void)context;
  y[0] = ax_sub(x[0], ax_pmean(x[0], "data"));
}

static void on_mesh(const ax_value *x, ax_value *y, void *context) {
  (void)context;
  ax_shard_map(&mesh, "data -> data", AX_FN(center, 1, 1), x, y);
}

int main(void) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
  ax_type type = AX_TYPE(AX_F32, 8);
  ax_program *program = NULL;
  ax_runtime *runtime = NULL;
  ax_executable *executable = NULL;
  ax_array *in = NULL, *out = NULL;
  char *text = NULL;
  ax_status status;

  if ((status = ax_mesh_parse("data=8", &mesh))) goto cleanup;
  if ((status = ax_trace(AX_FN(on_mesh, 1, 1), &type, &program))) goto cleanup;
  if ((status = ax_program_print(program, &text))) goto cleanup;
  printf("%s", text);

  if ((status = ax_runtime_create(NULL, &runtime))) goto cleanup;
  if ((status = ax_compile(runtime, program, NULL, &executable))) goto cleanup;
  if ((status = ax_device_put(runtime, &mesh, "data", &type, x, &in))) goto cleanup;
  if ((status = ax_run(executable, 1, &in, 1, &out))) goto cleanup;
  if ((status = ax_array_read(out, y, sizeof y))) goto cleanup;
  for (int i = 0; i < 8; i++) printf("%g ", (double)y[i]);
  printf("\n");

cleanup:
  if (status != AX_OK) fprintf(stderr, "hello: %s\n", ax_message());
  ax_string_free(text);
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return status != AX_OK;
}
