/* docs/stablehlo.md: a custom call whose function is C, on arrays of the host. */
#include <stdio.h>
#include <string.h>

#include <axle/axle.h>

static const char module[] =
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.custom_call @scale(%x) {api_version = 4 : i32, backend_config = {by = 2.5 : f32}} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n"
    "}\n";

static ax_status scale(ax_callback_call *call, const ax_attribute *attributes, void *context) {
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  double by;
  (void)context;
  if (ax_attribute_number(attributes, "by", &by) != AX_OK) return AX_INVALID_ARGUMENT;
  for (int64_t i = 0; i < call->in[0].dims[0]; i++) y[i] = (float)by * x[i];
  return AX_OK;
}

int main(void) {
  ax_custom_calls *calls;
  ax_program *program;
  float x[] = {1, 2, 3, 4}, y[4];
  ax_must(ax_custom_calls_create(&calls));
  ax_must(ax_custom_call_register(calls, "scale", scale, NULL, NULL, NULL));
  const ax_stablehlo_options options = {.custom_calls = calls};
  ax_must(ax_program_from_stablehlo_with(module, strlen(module), "scale.mlir", &options, &program));
  ax_custom_calls_release(calls);

  ax_runtime *runtime;
  ax_executable *executable;
  ax_host_array out = {0};
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_compile(runtime, program, NULL, &executable));
  ax_must(ax_run_host(executable, AX_HOST_ARRAYS(AX_HOST(x)), &out));
  memcpy(y, out.data, sizeof y);
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);

  ax_host_array_release(&out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return 0;
}
