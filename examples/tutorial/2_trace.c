/* Step 2 of docs/tutorial.md: a C function traced into a program, printed and run. */
#include <stdio.h>

#include <axle/axle.h>

/* w f32[3], x f32[8,3], y f32[8] -> f32[]: the mean of the squares of x w - y */
static AX_BODY(loss) {
  ax_value w = in[0], x = in[1], y = in[2];
  ax_value error = ax_sub(ax_matmul(x, w), y);
  out[0] = ax_reduce_mean(ax_square(error), AX_ALL_DIMS, false);
}

int main(void) {
  ax_type types[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_F32, 8, 3), AX_TYPE(AX_F32, 8)};
  ax_program *program;
  char *text;
  ax_must(ax_trace(AX_FN(loss, 3, 1), types, &program));
  ax_must(ax_program_print(program, &text));
  printf("%s", text);
  ax_string_free(text);

  ax_runtime *runtime;
  ax_executable *executable;
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_compile(runtime, program, NULL, &executable));

  float w[3] = {1, -2, 0.5f}, x[8][3] = {{0}}, y[8] = {0};
  for (int i = 0; i < 8; i++) x[i][i % 3] = 1;
  ax_host_array in[] = {AX_HOST(w), AX_HOST(x), AX_HOST(y)};
  ax_host_array out;
  ax_must(ax_run_host(executable, in, &out));
  printf("loss %g\n", (double)*(float *)out.data);

  types[0] = AX_TYPE(AX_F32, 4);
  ax_program *none;
  if (ax_trace(AX_FN(loss, 3, 1), types, &none) != AX_OK) printf("%s\n", ax_message());

  ax_host_array_release(&out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return 0;
}
