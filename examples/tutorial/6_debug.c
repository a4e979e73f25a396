/* Step 6 of docs/tutorial.md: a step that makes NaNs, and who says where they come from. */
#include <stdio.h>

#include <axle/axle.h>

static ax_mesh mesh;

/* The length of the error instead of the mean of its squares: where the error is 0 the square root has no derivative. */
static AX_BODY(part) {
  ax_value error = ax_sub(ax_matmul(in[1], in[0]), in[2]);
  ax_value squares = ax_reduce_sum(ax_square(error), AX_ALL_DIMS, false);
  out[0] = ax_pmean(ax_sqrt(squares), "data");
}

static AX_BODY(loss) {
  ax_shard_map(&mesh, "; data; data -> ", AX_FN(part, 3, 1), in, out);
}

static AX_BODY(step) {
  ax_value gradient;
  ax_grad(AX_FN(loss, 3, 1), AX_FIRST(1), in, &gradient);
  out[0] = ax_sub(in[0], ax_mul(gradient, 0.1));
}

int main(void) {
  float w[3] = {0}, x[8][3] = {{0}}, y[8] = {1, 1, 1, 1, 0, 0, 1, 1}; /* rows 4 and 5, on device 2, fit from the beginning */
  for (int i = 0; i < 8; i++) x[i][i % 3] = 1;
  ax_type types[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_F32, 8, 3), AX_TYPE(AX_F32, 8)};
  ax_host_array in[] = {AX_HOST(w), AX_HOST(x), AX_HOST(y)};
  ax_host_array out;
  ax_program *program;
  ax_runtime *runtime;
  ax_executable *plain, *checked;
  ax_must(ax_mesh_parse("data=4", &mesh));
  ax_must(ax_trace(AX_FN(step, 3, 1), types, &program));
  ax_must(ax_runtime_create(NULL, &runtime));

  ax_must(ax_compile(runtime, program, NULL, &plain));
  ax_must(ax_run_host(plain, in, &out));
  printf("w[0] is %s\n", ((float *)out.data)[0] == ((float *)out.data)[0] ? "a number" : "not a number");
  ax_host_array_release(&out);

  ax_must(ax_compile(runtime, program, &(ax_compile_options){.check_numerics = AX_CHECK_NAN}, &checked));
  ax_status status = ax_run_host(checked, in, &out);
  printf("%s: %s\n", ax_status_name(status), ax_message());

  ax_executable_release(plain);
  ax_executable_release(checked);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return status == AX_NOT_FINITE ? 0 : 1;
}
