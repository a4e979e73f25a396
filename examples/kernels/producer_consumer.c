/* Two kinds of core at work on one kernel: a memory core brings blocks into two slots, two vector cores square their halves of
   each. Which slot is full and which is free again goes by semaphores alone; the checker proves that nothing else is needed, in
   whatever order the three go on. */
#include <stdio.h>

#include <axle/axle.h>

enum { blocks = 8, width = 64, slots = 2, vectors = 2, half = width / vectors };

/* Refs of both kernels: x, y; slots, the copy's semaphore, full[slot, core] and free[slot]. */
enum { x, y, slot_ref, copied, full, empty, refs };

static ax_value one_of(ax_value semaphores, ax_value row, int64_t column) { return ax_ref_at(ax_ref_at(semaphores, row), column); }

static AX_BODY(memory_core) {
  for (int64_t s = 0; s < slots; s++) ax_semaphore_signal(ax_ref_at(in[empty], s), vectors, NULL); /* both slots are free */
  AX_LOOP (i, 0, blocks) {
    ax_value slot = ax_and(i, slots - 1), block = ax_ref_at(in[slot_ref], slot);
    ax_semaphore_wait(ax_ref_at(in[empty], slot), vectors); /* both have read what was there */
    ax_copy_start(ax_ref_at(in[x], i), block, &(ax_copy_options){.received = &in[copied]});
    ax_copy_wait(in[copied], block);
    for (int64_t core = 0; core < vectors; core++) ax_semaphore_signal(one_of(in[full], slot, core), 1, NULL);
  }
  for (int64_t s = 0; s < slots; s++) ax_semaphore_wait(ax_ref_at(in[empty], s), vectors); /* .. and are again */
}

static ax_value half_of(ax_value row, ax_value core) {
  return ax_ref_slice(row, AX_VALUES(ax_mul(core, half)), AX_DIMS(half));
}

static AX_BODY(vector_core) {
  ax_value me = ax_axis_index("lane");
  AX_LOOP (i, 0, blocks) {
    ax_value slot = ax_and(i, slots - 1);
    ax_semaphore_wait(ax_ref_at(ax_ref_at(in[full], slot), me), 1);
    ax_value part = ax_ref_load(half_of(ax_ref_at(in[slot_ref], slot), me));
    ax_ref_store(half_of(ax_ref_at(in[y], i), me), ax_mul(part, part));
    ax_semaphore_signal(ax_ref_at(in[empty], slot), 1, NULL);
  }
}

static AX_BODY(squares) {
  const ax_core_mesh meshes[] = {{.core = "memory"},
                                 {.core = "vector", .mesh = {.count = 1, .axis = {{.name = "lane", .size = vectors}}}}};
  const ax_fn bodies[] = {AX_FN(memory_core, refs, 0), AX_FN(vector_core, refs, 0)};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, slots, width), .shared = true},
                                {.type = ax_dma_semaphore_type(AX_DIMS()), .core = "memory"},
                                {.type = ax_semaphore_type(AX_DIMS(slots, vectors)), .shared = true},
                                {.type = ax_semaphore_type(AX_DIMS(slots)), .shared = true}};
  const ax_kernel_options options = {.name = "squares", .scratch = {AX_LIST(refs - 2, scratch)}};
  ax_mpmd_map(AX_LIST(2, meshes), bodies, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, blocks, width)), out);
}

static bool proved(const ax_program *program) {
  ax_check_report *report;
  ax_must(ax_check(program, NULL, &report));
  bool proved = report->verdict == AX_PROVED;
  printf("%s: %s\n", report->kernels[0].name, proved ? "proved" : report->kernels[0].findings[0].text);
  ax_check_report_release(report);
  return proved;
}

int main(void) {
  static float values[blocks * width];
  ax_host_array in = ax_host_view(AX_F32, AX_DIMS(blocks, width), values), out;
  const ax_type type = AX_TYPE(AX_F32, blocks, width);
  ax_program *program;
  ax_runtime *runtime;
  ax_executable *executable;
  int wrong = 0;
  for (int i = 0; i < blocks * width; i++) values[i] = (float)(i % 37) - 18;

  ax_must(ax_trace(AX_FN(squares, 1, 1), &type, &program));
  if (!proved(program)) return 1;
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_compile(runtime, program, NULL, &executable));
  ax_must(ax_run_host(executable, &in, &out));
  for (int i = 0; i < blocks * width; i++) wrong += ((const float *)out.data)[i] != values[i] * values[i];
  printf("%d squares, %d wrong\n", blocks * width, wrong);

  ax_host_array_release(&out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return wrong != 0;
}
