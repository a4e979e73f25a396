/* x + y by a kernel with a pipeline: while the core adds two blocks, the next ones are copied into fast memory, and the sum before
   is copied out. The checker proves that no copy is in anybody's way, in whatever order core and copies go on. */
#include <stdio.h>

#include <axle/axle.h>

enum { blocks = 8, block = 128, size = blocks * block };

/* Step i works on block i. */
static AX_BODY(by_step) { out[0] = in[0]; }

/* Once a step: the slots in fast memory of x, of y and of the sum. */
static AX_BODY(add) { ax_ref_store(in[2], ax_add(ax_ref_load(in[0]), ax_ref_load(in[1]))); }

/* The kernel: x, y and the sum where they are, in slow memory. */
static AX_BODY(pipelined) {
  const ax_block_spec spec = {.block = {AX_DIMS(block)}, .index_map = by_step};
  const ax_pipeline_options options = {.grid = {AX_DIMS(blocks)},
                                       .in_count = 2,
                                       .in_specs = {AX_BLOCK_SPECS(spec, spec)},
                                       .out_count = 1,
                                       .out_specs = {AX_BLOCK_SPECS(spec)},
                                       .max_concurrent_steps = 3};
  ax_emit_pipeline(&options, AX_FN(add, 3, 0), in);
}

static AX_BODY(sum) {
  const ax_core_mesh core = {.core = "tensorcore"};
  ax_mpmd_map(AX_LIST(1, &core), &AX_FN(pipelined, 3, 0), NULL, in, AX_TYPES(AX_TYPE(AX_F32, size)), out);
}

int main(void) {
  static float x[size], y[size];
  ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(size), x), ax_host_view(AX_F32, AX_DIMS(size), y)}, z;
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  ax_check_report *report;
  for (int i = 0; i < size; i++) x[i] = (float)i, y[i] = (float)(2 * i);

  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_trace(AX_FN(sum, 2, 1), AX_TYPES(AX_TYPE(AX_F32, size), AX_TYPE(AX_F32, size)), &program));
  ax_must(ax_compile(runtime, program, NULL, &executable));
  ax_must(ax_run_host(executable, in, &z));
  int wrong = 0;
  for (int i = 0; i < size; i++) wrong += ((float *)z.data)[i] != (float)(3 * i);
  printf("%d sums, %d wrong\n", size, wrong);

  ax_must(ax_check(program, NULL, &report));
  const ax_check_kernel *kernel = &report->kernels[0];
  printf("%s: %u cores and copies, %llu acts: %s\n", kernel->name, kernel->agents, (unsigned long long)kernel->acts,
         report->verdict == AX_PROVED ? "proved" : "not proved");
  bool proved = report->verdict == AX_PROVED;

  ax_check_report_release(report);
  ax_host_array_release(&z);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return wrong == 0 && proved ? 0 : 1;
}
