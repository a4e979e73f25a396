/* docs/running.md: a program on its way to a run, asked at each stage. */
#include <stdio.h>

#include <axle/axle.h>

static AX_BODY(layer) {
  out[0] = ax_tanh(ax_matmul(in[0], in[1]));
}

int main(void) {
  ax_mesh mesh;
  ax_program *program;
  ax_lowered *lowered;
  ax_runtime *runtime;
  ax_executable *executable;
  ax_cost cost;
  ax_memory memory;
  char *table;
  ax_must(ax_mesh_parse("data=2,model=4", &mesh));
  ax_must(ax_trace(AX_FN(layer, 2, 1), AX_TYPES(AX_TYPE(AX_F32, 64, 256), AX_TYPE(AX_F32, 256, 128)), &program));

  const ax_compile_options options = {.mesh = &mesh, .shardings = "data,model; model -> data"};
  ax_must(ax_program_lower(program, &options, &lowered));
  ax_must(ax_program_cost(ax_lowered_program(lowered), &cost));
  ax_must(ax_cost_text(&cost, &table));
  printf("%s", table);

  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_lowered_memory(runtime, lowered, &memory));
  printf("\n%zu bytes of arguments on a device, %zu in all\n", memory.device.arguments, memory.all.arguments);

  ax_must(ax_lowered_compile(runtime, lowered, &executable));
  const ax_counters counters = ax_runtime_counters(runtime);
  printf("%d program compiled, %d found\n", (int)counters.programs_compiled, (int)counters.programs_found);

  ax_string_free(table);
  ax_cost_release(&cost);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return 0;
}
