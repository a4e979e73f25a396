/* The program of the README: a mean over eight devices, what it looks like, and what comes out. */
#include <stdio.h>

#include <axle/axle.h>

/* On each device: in[0] is its part. The mean is the same everywhere. */
static AX_BODY(center) { out[0] = ax_sub(in[0], ax_pmean(in[0], "data")); }

int main(void) {
  ax_host_array x = ax_host_view(AX_F32, AX_DIMS(8), (float[]){1, 2, 3, 4, 5, 6, 7, 8}), y;
  ax_mesh mesh;
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  char *text;
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_mesh_parse("data=8", &mesh));
  ax_must(ax_trace(AX_SHARDED(&mesh, "data -> data", AX_FN(center, 1, 1)), AX_TYPES(AX_TYPE(AX_F32, 8)), &program));
  ax_must(ax_program_print(program, &text));
  ax_must(ax_compile(runtime, program, NULL, &executable));
  ax_must(ax_run_host(executable, 1, &x, 1, &y));
  printf("%s", text);
  for (int i = 0; i < 8; i++) printf("%g ", (double)((float *)y.data)[i]);
  printf("\n");
  ax_string_free(text);
  ax_host_array_release(&y);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return 0;
}
