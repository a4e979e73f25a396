/* Matrix products with pipelines, in two ways, beside the plain one:

     one core      a grid of tiles of the result, and along the sum: a tile of the result stays while the sum goes on, so the body
                   adds to it
     warpgroups    one brings blocks in, two multiply, each its half of the rows; what they have summed up so far is carried from
                   step to step  */
#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { rows = 32, columns = 48, inner = 64, tile = 16, wgs = 2, half = tile / wgs };

static AX_BODY(nothing) {}
static AX_BODY(i_k) { out[0] = in[0], out[1] = in[2]; }
static AX_BODY(k_j) { out[0] = in[2], out[1] = in[1]; }
static AX_BODY(i_j) { out[0] = in[0], out[1] = in[1]; }

#define TILES(map) \
  { .block = {AX_DIMS(tile, tile)}, .index_map = (map) }

/* --- One core --- */

static AX_BODY(clear) { ax_ref_store(*(const ax_value *)context, ax_real(0)); }

static AX_BODY(add_product) {
  ax_if(ax_eq(ax_program_id(2), ax_integer(0)), AX_CLOSURE(clear, 0, 0, &in[2]), AX_FN(nothing, 0, 0), NULL, NULL);
  ax_ref_add(in[2], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
}

static AX_BODY(by_core) {
  const ax_block_spec a = TILES(i_k), b = TILES(k_j), result = TILES(i_j);
  const ax_pipeline_options options = {.grid = {AX_DIMS(rows / tile, columns / tile, inner / tile)},
                                       .in_count = 2,
                                       .in_specs = {AX_BLOCK_SPECS(a, b)},
                                       .out_count = 1,
                                       .out_specs = {AX_BLOCK_SPECS(result)},
                                       .max_concurrent_steps = 2};
  ax_emit_pipeline(&options, AX_FN(add_product, 3, 0), in);
}

static AX_BODY(core_product) {
  const ax_core_mesh core = {.core = "tensorcore"};
  ax_mpmd_map(AX_LIST(1, &core), &AX_FN(by_core, 3, 0), NULL, in, AX_TYPES(AX_TYPE(AX_F32, rows, columns)), out);
}

/* --- Warpgroups: a pipeline along the sum for each tile of the result --- */

typedef struct place { /* of the tile */
  int64_t i, j;
  ax_value result;
} place;

static AX_BODY(along_row) { out[0] = ax_integer(((const place *)context)->i), out[1] = in[0]; }
static AX_BODY(along_column) { out[0] = in[0], out[1] = ax_integer(((const place *)context)->j); }
static ax_value own_rows(void) { return ax_mul(ax_axis_index("wg"), ax_integer(half)); }

/* Slots of a and b; the sum so far. */
static AX_BODY(multiply) {
  const ax_value starts[] = {own_rows(), ax_integer(0)};
  ax_value a = ax_ref_load(ax_ref_slice(in[0], starts, AX_DIMS(half, tile)));
  out[0] = ax_add(in[2], ax_matmul(a, ax_ref_load(in[1])));
}

static AX_BODY(zero) { out[0] = ax_full(AX_F32, AX_DIMS(half, tile), 0); }

static AX_BODY(store) {
  const place *p = context;
  const ax_value starts[] = {ax_add(own_rows(), ax_integer(p->i * tile)), ax_integer(p->j * tile)};
  ax_ref_store(ax_ref_slice(p->result, starts, AX_DIMS(half, tile)), in[0]);
}

static void multiply_tile(const ax_value *refs, int64_t i, int64_t j) {
  place p = {i, j, refs[2]};
  const ax_block_spec a = {.block = {AX_DIMS(tile, tile)}, .index_map = along_row, .context = &p},
                      b = {.block = {AX_DIMS(tile, tile)}, .index_map = along_column, .context = &p};
  const ax_warp_pipeline_options options = {
      .pipeline = {.grid = {AX_DIMS(inner / tile)}, .in_count = 2, .in_specs = {AX_BLOCK_SPECS(a, b)}, .max_concurrent_steps = 2},
      .memory_registers = 40,
      .wg_axis = "wg",
      .compute_wgs = wgs,
      .memory_thread = -1,
      .carry_count = 1,
      .carry_init = AX_FN(zero, 0, 1),
      .carry_final = AX_CLOSURE(store, 1, 0, &p)};
  ax_emit_pipeline_warp_specialized(&options, AX_FN(multiply, 3, 1), refs);
}

static AX_BODY(by_warpgroups) {
  for (int64_t i = 0; i < rows / tile; i++)
    for (int64_t j = 0; j < columns / tile; j++) multiply_tile(in, i, j);
}

static AX_BODY(warp_product) {
  const ax_core_mesh warpgroups = {
      .core = "warpgroup", .mesh = {.count = 1, .axis = {{.name = "wg", .size = wgs + 1}}}, .threads = "wg"};
  ax_mpmd_map(AX_LIST(1, &warpgroups), &AX_FN(by_warpgroups, 3, 0), NULL, in, AX_TYPES(AX_TYPE(AX_F32, rows, columns)),
              out);
}

static AX_BODY(all) {
  core_product(in, &out[0], NULL);
  warp_product(in, &out[1], NULL);
  out[2] = ax_matmul(in[0], in[1]);
}

int main(void) {
  static float a[rows * inner], b[inner * columns];
  ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(rows, inner), a), ax_host_view(AX_F32, AX_DIMS(inner, columns), b)}, made[3];
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  ax_check_report *report;
  for (int i = 0; i < rows * inner; i++) a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < inner * columns; i++) b[i] = (float)(i % 5 - 2);

  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_trace(AX_FN(all, 2, 3), AX_TYPES(AX_TYPE(AX_F32, rows, inner), AX_TYPE(AX_F32, inner, columns)), &program));
  ax_must(ax_compile(runtime, program, NULL, &executable));
  ax_must(ax_run_host(executable, in, made));
  double most = 0;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < rows * columns; i++)
      most = fmax(most, fabs((double)((float *)made[k].data)[i] - (double)((float *)made[2].data)[i]));
  printf("largest difference from the plain product: %g\n", most);

  ax_must(ax_check(program, NULL, &report));
  for (uint32_t k = 0; k < report->kernel_count; k++)
    printf("kernel %u: %u agents, %llu acts: %s\n", k, report->kernels[k].agents, (unsigned long long)report->kernels[k].acts,
           report->kernels[k].verdict == AX_PROVED ? "proved" : "not proved");
  bool proved = report->verdict == AX_PROVED;

  ax_check_report_release(report);
  for (int k = 0; k < 3; k++) ax_host_array_release(&made[k]);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return most < 1e-3 && proved ? 0 : 1;
}
