/* What docs/kernels.md shows: a kernel over a grid, its text, its gradient, its batch, and the same interpreted. */
#include <stdio.h>

#include <axle/axle.h>

enum { rows = 4, inner = 6, columns = 4, block = 2 };

/* Which block of x [rows, inner], of w [inner, columns] and of the result goes with the point (i, j, k) of the grid. */
static AX_BODY(x_block) {
  out[0] = in[0];
  out[1] = in[2];
}

static AX_BODY(w_block) {
  out[0] = in[2];
  out[1] = in[1];
}

static AX_BODY(y_block) {
  out[0] = in[0];
  out[1] = in[1];
}

/* Refs of the blocks of x, w and y, and of an accumulator, which stays from point to point. */
static AX_BODY(product_block) {
  ax_value k = ax_program_id(2);
  AX_IF (ax_eq(k, 0)) ax_ref_store(in[3], 0);
  ax_ref_add(in[3], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
  AX_IF (ax_eq(k, ax_sub(ax_num_programs(2), 1))) ax_ref_store(in[2], ax_ref_load(in[3]));
}

static AX_BODY(product) {
  const ax_block_spec x = {.block = {AX_DIMS(block, block)}, .index_map = x_block},
                      w = {.block = {AX_DIMS(block, block)}, .index_map = w_block},
                      y = {.block = {AX_DIMS(block, block)}, .index_map = y_block};
  const ax_scratch sum = {.type = AX_VMEM(AX_F32, block, block)};
  const ax_kernel kernel = {.grid = {AX_DIMS(rows / block, columns / block, inner / block)},
                            .in_specs = {AX_BLOCK_SPECS(x, w)},
                            .out_specs = {AX_BLOCK_SPECS(y)},
                            .outs = {AX_TYPES(AX_TYPE(AX_F32, rows, columns))},
                            .options = {.name = "product", .scratch = {AX_SCRATCH(sum)}}};
  ax_kernel_call(&kernel, AX_FN(product_block, 4, 0), AX_LIST(2, in), out);
}

static AX_BODY(total) {
  ax_value y;
  product(in, &y, NULL);
  out[0] = ax_reduce_sum(y, AX_ALL_DIMS, false);
}

static AX_BODY(gradient) { ax_grad(AX_FN(total, 2, 1), AX_FIRST(1), in, out); }
static AX_BODY(batch) { ax_vmap(AX_FN(product, 2, 1), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}}); }

/* The first of the results. */
static float run(ax_runtime *runtime, ax_fn function, const ax_type *types, const ax_host_array *arrays) {
  ax_executable *executable;
  ax_host_array out;
  ax_must(ax_jit(runtime, function, types, NULL, &executable));
  ax_must(ax_run_host(executable, arrays, &out));
  float first = *(const float *)out.data;
  ax_host_array_release(&out);
  ax_executable_release(executable);
  return first;
}

int main(void) {
  static float x[3 * rows * inner], w[inner * columns];
  ax_runtime *runtime;
  for (int i = 0; i < 3 * rows * inner; i++) x[i] = (float)(i % 7) - 3;
  for (int i = 0; i < inner * columns; i++) w[i] = (float)(i % 5) - 2;
  const ax_type types[] = {AX_TYPE(AX_F32, rows, inner), AX_TYPE(AX_F32, inner, columns)};
  const ax_type batched[] = {AX_TYPE(AX_F32, 3, rows, inner), types[1]};
  const ax_host_array one[] = {ax_host_view(AX_F32, AX_DIMS(rows, inner), x), ax_host_view(AX_F32, AX_DIMS(inner, columns), w)};
  const ax_host_array three[] = {ax_host_view(AX_F32, AX_DIMS(3, rows, inner), x), one[1]};
  float sum = 0, of_row = 0;
  for (int k = 0; k < inner; k++) sum += x[k] * w[k * columns];
  for (int j = 0; j < columns; j++) of_row += w[j];

  ax_must(ax_runtime_create(NULL, &runtime));
  printf("product: %g, and by hand %g\n", run(runtime, AX_FN(product, 2, 1), types, one), sum);
  printf("gradient: %g, and by hand %g\n", run(runtime, AX_FN(gradient, 2, 1), types, one), of_row);
  printf("of three: %g\n", run(runtime, AX_FN(batch, 2, 1), batched, three));
  ax_runtime_release(runtime);
  return 0;
}
