/* b17, b18: kernels that a user writes, beside the same as plain programs. */
#include "axle/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collective_matmul.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

/* --- b17: a product whose left operand is gathered, on 8 devices: x[n/8, n], w[n, n/8] of each --- */

static void gathered_then(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(ax_all_gather(in[0], "d", 0, true), in[1]);
}

static void gathered_beside(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_collective_matmul_kernel(in[0], in[1], "d", NULL, NULL);
}

/* The product alone, with the whole left operand in place: the time that remains if gathering were free. */
static void product_alone(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

void gathered_matmul(char **arguments) {
  const int64_t n = atoll(arguments[1]);
  const bool kernel = strcmp(arguments[0], "kernel") == 0, alone = strcmp(arguments[0], "product") == 0;
  const ax_type types[] = {AX_TYPE(AX_F32, n, n), AX_TYPE(AX_F32, n, n)};
  job j = job_create(&(job_function){kernel ? gathered_beside : alone ? product_alone : gathered_then, NULL, "d=8", 2, 1, types,
                                     (const char *[]){alone ? "" : "d", "_,d"}, (const char *[]){"_,d"}},
                     0);
  bench_serve(job_run, &j, 1);
}

/* --- b18: pipelines on two cores, each with half of the first dimension of the grid --- */

enum { cores = 2, rows = 1 << 14, columns = 1 << 10, block_rows = 128, edge = 1024, tile = 256, deep = 512 };

typedef struct piped {
  const char *kind;
  bool product;
} piped;

static void row_block(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ax_add(ids[0], ax_mul(ax_axis_index("core"), ax_integer(rows / block_rows / cores)));
  index[1] = ax_integer(0);
}

static void scale_step(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_real(1.5)));
}

static void add_step(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  ax_ref_store(in[2], ax_add(ax_ref_load(in[0]), ax_ref_load(in[1])));
}

static void rows_pipe(const ax_value *in, uint32_t in_count, ax_fn step) {
  const ax_block_spec spec = {.block = {AX_DIMS(block_rows, columns)}, .index_map = row_block};
  const ax_block_spec specs[] = {spec, spec};
  const ax_pipeline_options options = {.grid = {AX_DIMS(rows / block_rows / cores)},
                                       .in_count = in_count,
                                       .out_count = 1,
                                       .in_specs = {AX_LIST(in_count, specs)},
                                       .out_specs = {AX_BLOCK_SPECS(spec)},
                                       .max_concurrent_steps = 2};
  ax_emit_pipeline(&options, step, in);
}

static void scale_body(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  rows_pipe(in, 1, AX_FN(scale_step, 2, 0));
}

static void add_body(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  rows_pipe(in, 2, AX_FN(add_step, 3, 0));
}

/* Grid: tiles of rows, of columns, of the sum. Tiles of the operands are `deep` along the sum, so that fewer products are added. */
static void left_tile(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ax_add(ids[0], ax_mul(ax_axis_index("core"), ax_integer(edge / tile / cores)));
  index[1] = ids[2];
}

static void right_tile(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[2];
  index[1] = ids[1];
}

static void result_tile(const ax_value *ids, ax_value *index, void *context) {
  left_tile(ids, index, context);
  index[1] = ids[1];
}

static void first_product(const ax_value *in, ax_value *out, void *context) {
  const ax_value *refs = context;
  (void)in, (void)out;
  ax_ref_store(refs[2], ax_matmul(ax_ref_load(refs[0]), ax_ref_load(refs[1])));
}

static void next_product(const ax_value *in, ax_value *out, void *context) {
  const ax_value *refs = context;
  (void)in, (void)out;
  ax_ref_add(refs[2], ax_matmul(ax_ref_load(refs[0]), ax_ref_load(refs[1])));
}

static void product_step(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  ax_if(ax_eq(ax_program_id(2), ax_integer(0)), AX_CLOSURE(first_product, 0, 0, in), AX_CLOSURE(next_product, 0, 0, in), NULL,
        NULL);
}

static void product_body(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  const ax_block_spec left = {.block = {AX_DIMS(tile, deep)}, .index_map = left_tile},
                      right = {.block = {AX_DIMS(deep, tile)}, .index_map = right_tile},
                      result = {.block = {AX_DIMS(tile, tile)}, .index_map = result_tile};
  const ax_pipeline_options options = {.grid = {AX_DIMS(edge / tile / cores, edge / tile, edge / deep)},
                                       .in_count = 2,
                                       .out_count = 1,
                                       .in_specs = {AX_BLOCK_SPECS(left, right)},
                                       .out_specs = {AX_BLOCK_SPECS(result)},
                                       .max_concurrent_steps = 2};
  ax_emit_pipeline(&options, AX_FN(product_step, 3, 0), in);
}

static void as_kernel(const ax_value *in, ax_value *out, void *context) {
  const piped *p = context;
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = cores}}}};
  bool one = strcmp(p->kind, "scale") == 0;
  const ax_type type = p->product ? AX_TYPE(AX_F32, edge, edge) : AX_TYPE(AX_F32, rows, columns);
  const ax_fn body = p->product ? AX_FN(product_body, 3, 0) : one ? AX_FN(scale_body, 2, 0) : AX_FN(add_body, 3, 0);
  ax_mpmd_map(AX_LIST(1, &mesh), &body, NULL, AX_LIST(one ? 1 : 2, in), AX_LIST(1, &type), out);
}

static void as_program(const ax_value *in, ax_value *out, void *context) {
  const piped *p = context;
  if (p->product) out[0] = ax_matmul(in[0], in[1]);
  else if (strcmp(p->kind, "scale") == 0) out[0] = ax_mul(in[0], ax_real(1.5));
  else out[0] = ax_add(in[0], in[1]);
}

void pipelined(char **arguments) {
  piped p = {.kind = arguments[1], .product = strcmp(arguments[1], "matmul") == 0};
  bool kernel = strcmp(arguments[0], "kernel") == 0;
  const ax_type type = p.product ? AX_TYPE(AX_F32, edge, edge) : AX_TYPE(AX_F32, rows, columns), types[] = {type, type};
  job j = job_create(
      &(job_function){kernel ? as_kernel : as_program, &p, NULL, strcmp(p.kind, "scale") == 0 ? 1 : 2, 1, types, NULL, NULL}, 0);
  bench_serve(job_run, &j, 1);
}
