/* b29: kernels over grids whose blocks are small and large, beside the same as plain programs. */
#include "axle/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

typedef struct grid_case grid_case;
typedef void make_kernel(const grid_case *c, const ax_value *in, ax_value *out);

struct grid_case {
  const char *name;
  uint32_t in_count;
  int64_t rows, columns, block_rows, block_columns; /* of the matrices, and of blocks */
  make_kernel *kernel, *plain;
  bool parallel, interpret; /* which kernel */
};

/* --- Rows: blocks of whole rows --- */

static void row_block(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[0];
  index[1] = ax_integer(0);
}

static void tanh_block(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  ax_ref_store(in[1], ax_tanh(ax_ref_load(in[0])));
}

static void softmax_block(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  ax_ref_store(in[1], ax_softmax(ax_ref_load(in[0]), 1));
}

static ax_kernel_options options_of(const grid_case *c) { return (ax_kernel_options){.name = c->name, .interpret = c->interpret}; }

/* The last block may stick out. */
static int64_t blocks_over(int64_t n, int64_t block) { return (n + block - 1) / block; }

static void rows_kernel(const grid_case *c, ax_fn body, const ax_value *in, ax_value *out) {
  const ax_type type = AX_TYPE(AX_F32, c->rows, c->columns);
  const ax_block_spec spec = {.block = {AX_DIMS(c->block_rows, c->columns)}, .index_map = row_block};
  const ax_kernel kernel = {.grid = {AX_DIMS(blocks_over(c->rows, c->block_rows))},
                            .semantics = {AX_SEMANTICS(c->parallel ? AX_PARALLEL : AX_ARBITRARY)},
                            .in_specs = {AX_BLOCK_SPECS(spec)},
                            .out_specs = {AX_BLOCK_SPECS(spec)},
                            .outs = {AX_LIST(1, &type)},
                            .options = options_of(c)};
  ax_kernel_call(&kernel, body, AX_LIST(1, in), AX_LIST(1, out));
}

static void tanh_kernel(const grid_case *c, const ax_value *in, ax_value *out) { rows_kernel(c, AX_FN(tanh_block, 2, 0), in, out); }
static void softmax_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  rows_kernel(c, AX_FN(softmax_block, 2, 0), in, out);
}
static void tanh_plain(const grid_case *c, const ax_value *in, ax_value *out) { (void)c, out[0] = ax_tanh(in[0]); }
static void softmax_plain(const grid_case *c, const ax_value *in, ax_value *out) { (void)c, out[0] = ax_softmax(in[0], 1); }

/* --- Transposes: a block at its place on the other side --- */

static void here(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[0];
  index[1] = ids[1];
}

static void there(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[1];
  index[1] = ids[0];
}

static void transpose_block(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  ax_ref_store(in[1], ax_transpose(ax_ref_load(in[0]), ((const int64_t[]){1, 0})));
}

/* Tiles of the operand's rows and columns; `to`: where they go. */
static void tiles_kernel(const grid_case *c, ax_fn body, const ax_type *type, const ax_block_spec *to, const ax_value *in,
                         ax_value *out) {
  const ax_block_spec from = {.block = {AX_DIMS(c->block_rows, c->block_columns)}, .index_map = here};
  const ax_semantics semantics = c->parallel ? AX_PARALLEL : AX_ARBITRARY;
  const ax_kernel kernel = {.grid = {AX_DIMS(blocks_over(c->rows, c->block_rows), blocks_over(c->columns, c->block_columns))},
                            .semantics = {AX_SEMANTICS(semantics, semantics)},
                            .in_specs = {AX_BLOCK_SPECS(from)},
                            .out_specs = {AX_LIST(1, to)},
                            .outs = {AX_LIST(1, type)},
                            .options = options_of(c)};
  ax_kernel_call(&kernel, body, AX_LIST(1, in), AX_LIST(1, out));
}

static void tiles_in_place(const grid_case *c, ax_fn body, const ax_value *in, ax_value *out) {
  const ax_type type = AX_TYPE(AX_F32, c->rows, c->columns);
  const ax_block_spec to = {.block = {AX_DIMS(c->block_rows, c->block_columns)}, .index_map = here};
  tiles_kernel(c, body, &type, &to, in, out);
}

static void tanh_tiles(const grid_case *c, const ax_value *in, ax_value *out) {
  tiles_in_place(c, AX_FN(tanh_block, 2, 0), in, out);
}

/* What lies above the diagonal, of an array whose first element is at the row and the column, is 0. */
static ax_value below_diagonal(ax_value x, ax_value row, ax_value column) {
  const ax_type type = ax_typeof(x);
  const ax_value rows = ax_add(ax_iota(AX_S32, AX_LIST(2, type.dims), 0), row),
                 columns = ax_add(ax_iota(AX_S32, AX_LIST(2, type.dims), 1), column);
  return ax_where(ax_ge(rows, columns), x, 0.0f);
}

static AX_BODY(mask_block) {
  const ax_type type = ax_typeof(in[0]);
  (void)out, (void)context;
  ax_ref_store(in[1], below_diagonal(ax_ref_load(in[0]), ax_mul(ax_program_id(0), ax_integer(type.dims[0])),
                                     ax_mul(ax_program_id(1), ax_integer(type.dims[1]))));
}

static void mask_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  tiles_in_place(c, AX_FN(mask_block, 2, 0), in, out);
}
static void mask_plain(const grid_case *c, const ax_value *in, ax_value *out) {
  (void)c, out[0] = below_diagonal(in[0], ax_integer(0), ax_integer(0));
}

static void transpose_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  const ax_type type = AX_TYPE(AX_F32, c->columns, c->rows);
  const ax_block_spec to = {.block = {AX_DIMS(c->block_columns, c->block_rows)}, .index_map = there};
  tiles_kernel(c, AX_FN(transpose_block, 2, 0), &type, &to, in, out);
}

static void transpose_plain(const grid_case *c, const ax_value *in, ax_value *out) { (void)c, out[0] = ax_transpose(in[0], ((const int64_t[]){1, 0})); }

/* --- Products: grid of tiles of rows, of columns, of the sum, which is added up in the result --- */

static void left_tile(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[0];
  index[1] = ids[2];
}

static void right_tile(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[2];
  index[1] = ids[1];
}

static void result_tile(const ax_value *ids, ax_value *index, void *context) { here(ids, index, context); }

static void clear(const ax_value *in, ax_value *out, void *context) {
  const ax_value *refs = context;
  (void)in, (void)out;
  const ax_type type = ax_typeof(refs[2]);
  ax_ref_store(refs[2], ax_full(type.dtype, AX_LIST(type.rank, type.dims), 0));
}

static void nothing(const ax_value *in, ax_value *out, void *context) { (void)in, (void)out, (void)context; }

static void product_block(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  ax_if(ax_eq(ax_program_id(2), ax_integer(0)), AX_CLOSURE(clear, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  ax_ref_add(in[2], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
}

static void product_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  const int64_t n = c->rows, b = c->block_rows;
  const ax_type type = AX_TYPE(AX_F32, n, n);
  const ax_block_spec left = {.block = {AX_DIMS(b, b)}, .index_map = left_tile},
                      right = {.block = {AX_DIMS(b, b)}, .index_map = right_tile},
                      result = {.block = {AX_DIMS(b, b)}, .index_map = result_tile};
  const ax_semantics semantics = c->parallel ? AX_PARALLEL : AX_ARBITRARY;
  const ax_kernel kernel = {.grid = {AX_DIMS(n / b, n / b, n / b)},
                            .semantics = {AX_SEMANTICS(semantics, semantics, AX_ARBITRARY)},
                            .in_specs = {AX_BLOCK_SPECS(left, right)},
                            .out_specs = {AX_BLOCK_SPECS(result)},
                            .outs = {AX_LIST(1, &type)},
                            .options = options_of(c)};
  ax_kernel_call(&kernel, AX_FN(product_block, 3, 0), AX_LIST(2, in), AX_LIST(1, out));
}

static void product_plain(const grid_case *c, const ax_value *in, ax_value *out) { (void)c, out[0] = ax_matmul(in[0], in[1]); }

/* The same with whole rows and columns in a block, so that the last tiles may stick out. */
static void left_strip(const ax_value *ids, ax_value *index, void *context) { row_block(ids, index, context); }

static AX_BODY(right_strip) {
  (void)context;
  out[0] = ax_integer(0);
  out[1] = in[1];
}

static AX_BODY(strips_block) {
  (void)out, (void)context;
  ax_ref_store(in[2], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
}

static void strips_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  const int64_t n = c->rows, b = c->block_rows;
  const ax_type type = AX_TYPE(AX_F32, n, n);
  const ax_block_spec left = {.block = {AX_DIMS(b, n)}, .index_map = left_strip},
                      right = {.block = {AX_DIMS(n, b)}, .index_map = right_strip},
                      to = {.block = {AX_DIMS(b, b)}, .index_map = here};
  const ax_semantics semantics = c->parallel ? AX_PARALLEL : AX_ARBITRARY;
  const ax_kernel kernel = {.grid = {AX_DIMS(blocks_over(n, b), blocks_over(n, b))},
                            .semantics = {AX_SEMANTICS(semantics, semantics)},
                            .in_specs = {AX_BLOCK_SPECS(left, right)},
                            .out_specs = {AX_BLOCK_SPECS(to)},
                            .outs = {AX_LIST(1, &type)},
                            .options = options_of(c)};
  ax_kernel_call(&kernel, AX_FN(strips_block, 3, 0), AX_LIST(2, in), AX_LIST(1, out));
}

/* --- Sums: of rows, columns and all of a matrix, block by block, added up in the result --- */

static AX_BODY(first_number) { (void)context, out[0] = in[0]; }
static AX_BODY(no_number) { (void)in, (void)context, out[0] = ax_integer(0); }

static void begin_sum(ax_value sum, ax_value is_first) {
  const ax_value refs[] = {sum, sum, sum};
  ax_if(is_first, AX_CLOSURE(clear, 0, 0, (void *)(uintptr_t)refs), AX_FN(nothing, 0, 0), NULL, NULL);
}

static AX_BODY(row_sums_block) {
  (void)out, (void)context;
  begin_sum(in[1], ax_eq(ax_program_id(1), ax_integer(0)));
  ax_ref_add(in[1], ax_reduce_sum(ax_ref_load(in[0]), AX_DIMS(1), false));
}
static AX_BODY(column_sums_block) {
  (void)out, (void)context;
  begin_sum(in[1], ax_eq(ax_program_id(1), ax_integer(0)));
  ax_ref_add(in[1], ax_reduce_sum(ax_ref_load(in[0]), AX_DIMS(0), false));
}
static AX_BODY(sum_block) {
  (void)out, (void)context;
  begin_sum(in[1], ax_and(ax_eq(ax_program_id(0), ax_integer(0)), ax_eq(ax_program_id(1), ax_integer(0))));
  ax_ref_add(in[1], ax_reshape(ax_reduce_sum(ax_ref_load(in[0]), AX_ALL_DIMS, false), AX_DIMS(1)));
}

/* A result of `elems` numbers in blocks of `block`, as many along the grid's first dimension. */
static void sums_kernel(const grid_case *c, ax_fn body, bool by_columns, int64_t block, int64_t elems, const ax_value *in,
                        ax_value *out) {
  const ax_type type = AX_TYPE(AX_F32, elems);
  const int64_t down = c->rows / c->block_rows, along = c->columns / c->block_columns;
  const ax_block_spec from = {.block = {AX_DIMS(c->block_rows, c->block_columns)}, .index_map = by_columns ? there : here},
                      to = {.block = {AX_DIMS(block)}, .index_map = elems == block ? no_number : first_number};
  const ax_semantics semantics = c->parallel && elems > block ? AX_PARALLEL : AX_ARBITRARY;
  const ax_kernel kernel = {.grid = {AX_DIMS(by_columns ? along : down, by_columns ? down : along)},
                            .semantics = {AX_SEMANTICS(semantics, AX_ARBITRARY)},
                            .in_specs = {AX_BLOCK_SPECS(from)},
                            .out_specs = {AX_BLOCK_SPECS(to)},
                            .outs = {AX_LIST(1, &type)},
                            .options = options_of(c)};
  ax_kernel_call(&kernel, body, AX_LIST(1, in), AX_LIST(1, out));
}

static void row_sums_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  sums_kernel(c, AX_FN(row_sums_block, 2, 0), false, c->block_rows, c->rows, in, out);
}
static void column_sums_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  sums_kernel(c, AX_FN(column_sums_block, 2, 0), true, c->block_columns, c->columns, in, out);
}
static void sum_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  sums_kernel(c, AX_FN(sum_block, 2, 0), false, 1, 1, in, out);
}
static void row_sums_plain(const grid_case *c, const ax_value *in, ax_value *out) {
  (void)c, out[0] = ax_reduce_sum(in[0], AX_DIMS(1), false);
}
static void column_sums_plain(const grid_case *c, const ax_value *in, ax_value *out) {
  (void)c, out[0] = ax_reduce_sum(in[0], AX_DIMS(0), false);
}
static void sum_plain(const grid_case *c, const ax_value *in, ax_value *out) {
  (void)c, out[0] = ax_reshape(ax_reduce_sum(in[0], AX_ALL_DIMS, false), AX_DIMS(1));
}

/* --- Attention by blocks of keys, with the maximum and the sum so far in scratch: operands [heads, positions, features] --- */

enum { features = 64 };

static void query_block(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[0];
  index[1] = ids[1];
  index[2] = ax_integer(0);
}

static void key_block(const ax_value *ids, ax_value *index, void *context) {
  (void)context;
  index[0] = ids[0];
  index[1] = ids[2];
  index[2] = ax_integer(0);
}

static void begin_rows(const ax_value *in, ax_value *out, void *context) {
  const ax_value *refs = context;
  (void)in, (void)out;
  const ax_type sums = ax_typeof(refs[4]), most = ax_typeof(refs[5]);
  ax_ref_store(refs[4], ax_full(AX_F32, AX_LIST(sums.rank, sums.dims), 0));
  ax_ref_store(refs[5], ax_full(AX_F32, AX_LIST(most.rank, most.dims), -1e30));
  ax_ref_store(refs[6], ax_full(AX_F32, AX_LIST(most.rank, most.dims), 0));
}

static void end_rows(const ax_value *in, ax_value *out, void *context) {
  const ax_value *refs = context;
  (void)in, (void)out;
  ax_ref_store(refs[3], ax_div(ax_ref_load(refs[4]), ax_ref_load(refs[6])));
}

static void attention_block(const ax_value *in, ax_value *out, void *context) {
  (void)out, (void)context;
  const ax_value step = ax_program_id(2);
  ax_if(ax_eq(step, ax_integer(0)), AX_CLOSURE(begin_rows, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
  const ax_value scores = ax_einsum("qd,kd->qk", ((const ax_value[]){ax_ref_load(in[0]), ax_ref_load(in[1])})),
                 most = ax_max(ax_ref_load(in[5]), ax_reduce_max(scores, AX_DIMS(1), true)),
                 weights = ax_exp(ax_sub(scores, most)), fade = ax_exp(ax_sub(ax_ref_load(in[5]), most));
  ax_ref_store(in[6], ax_add(ax_mul(ax_ref_load(in[6]), fade), ax_reduce_sum(weights, AX_DIMS(1), true)));
  ax_ref_store(in[4], ax_add(ax_mul(ax_ref_load(in[4]), fade), ax_matmul(weights, ax_ref_load(in[2]))));
  ax_ref_store(in[5], most);
  ax_if(ax_eq(step, ax_integer((int64_t)*(const int64_t *)context - 1)), AX_CLOSURE(end_rows, 0, 0, in), AX_FN(nothing, 0, 0), NULL, NULL);
}

static void attention_kernel(const grid_case *c, const ax_value *in, ax_value *out) {
  const int64_t b = c->block_rows;
  int64_t steps = c->columns / b;
  const ax_type type = AX_TYPE(AX_F32, c->rows, c->columns, features);
  const ax_block_spec query = {.block = {AX_DIMS(0, b, features)}, .index_map = query_block},
                      key = {.block = {AX_DIMS(0, b, features)}, .index_map = key_block};
  const ax_scratch sums = {.type = AX_VMEM(AX_F32, b, features)}, column = {.type = AX_VMEM(AX_F32, b, 1)};
  const ax_semantics semantics = c->parallel ? AX_PARALLEL : AX_ARBITRARY;
  const ax_kernel kernel = {.grid = {AX_DIMS(c->rows, steps, steps)},
                            .semantics = {AX_SEMANTICS(semantics, semantics, AX_ARBITRARY)},
                            .in_specs = {AX_BLOCK_SPECS(query, key, key)},
                            .out_specs = {AX_BLOCK_SPECS(query)},
                            .outs = {AX_LIST(1, &type)},
                            .options = {.name = c->name, .interpret = c->interpret, .scratch = {AX_SCRATCH(sums, column, column)}}};
  ax_kernel_call(&kernel, AX_CLOSURE(attention_block, 7, 0, &steps), AX_LIST(3, in), AX_LIST(1, out));
}

static void attention_plain(const grid_case *c, const ax_value *in, ax_value *out) {
  (void)c;
  const ax_value scores = ax_einsum("hqd,hkd->hqk", ((const ax_value[]){in[0], in[1]}));
  out[0] = ax_einsum("hqk,hkd->hqd", ((const ax_value[]){ax_softmax(scores, 2), in[2]}));
}

/* --- The cases --- */

static const grid_case cases[] = {
    {"tanh_1", 1, 65536, 16, 1, 16, tanh_kernel, tanh_plain, false, false},
    {"tanh_16", 1, 4096, 256, 16, 256, tanh_kernel, tanh_plain, false, false},
    {"softmax_8", 1, 4096, 1024, 8, 1024, softmax_kernel, softmax_plain, false, false},
    {"softmax_64", 1, 4096, 1024, 64, 1024, softmax_kernel, softmax_plain, false, false},
    {"transpose_32", 1, 2048, 2048, 32, 32, transpose_kernel, transpose_plain, false, false},
    {"transpose_128", 1, 2048, 2048, 128, 128, transpose_kernel, transpose_plain, false, false},
    {"product_32", 2, 512, 512, 32, 32, product_kernel, product_plain, false, false},
    {"product_128", 2, 512, 512, 128, 128, product_kernel, product_plain, false, false},
    {"product_256", 2, 1024, 1024, 256, 256, product_kernel, product_plain, false, false},
    {"product_big", 2, 2048, 2048, 256, 256, product_kernel, product_plain, false, false},
    {"product_mid", 2, 1024, 1024, 128, 128, product_kernel, product_plain, false, false},
    {"mask_256", 1, 2048, 2048, 256, 256, mask_kernel, mask_plain, false, false},
    {"tanh_out_16", 1, 4090, 256, 16, 256, tanh_kernel, tanh_plain, false, false}, /* the last blocks stick out */
    {"tanh_out_128", 1, 1000, 1000, 128, 128, tanh_tiles, tanh_plain, false, false},
    {"softmax_out_64", 1, 4090, 1000, 64, 1000, softmax_kernel, softmax_plain, false, false},
    {"transpose_out_128", 1, 2000, 2000, 128, 128, transpose_kernel, transpose_plain, false, false},
    {"mask_out_256", 1, 2000, 2000, 256, 256, mask_kernel, mask_plain, false, false},
    {"product_out_128", 2, 1000, 1000, 128, 128, strips_kernel, product_plain, false, false},
    {"row_sums_256", 1, 2048, 2048, 256, 256, row_sums_kernel, row_sums_plain, false, false},
    {"row_sums_32", 1, 1024, 512, 16, 32, row_sums_kernel, row_sums_plain, false, false},
    {"column_sums_64", 1, 4096, 512, 64, 64, column_sums_kernel, column_sums_plain, false, false},
    {"sum_256", 1, 2048, 2048, 256, 256, sum_kernel, sum_plain, false, false},
    {"attention_16", 3, 8, 512, 16, 16, attention_kernel, attention_plain, false, false},
    {"attention_128", 3, 16, 2048, 128, 128, attention_kernel, attention_plain, false, false},
};

static void as_kernel(const ax_value *in, ax_value *out, void *context) {
  const grid_case *c = context;
  c->kernel(c, in, out);
}

static void as_program(const ax_value *in, ax_value *out, void *context) {
  const grid_case *c = context;
  c->plain(c, in, out);
}

void grid(char **arguments) {
  grid_case c = {0};
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (strcmp(cases[i].name, arguments[1]) == 0) c = cases[i];
  check(c.name != NULL ? AX_OK : AX_INVALID_ARGUMENT);
  c.parallel = strcmp(arguments[0], "parallel") == 0;
  c.interpret = strcmp(arguments[0], "interpret") == 0;
  const ax_type matrix = AX_TYPE(AX_F32, c.rows, c.columns), heads = AX_TYPE(AX_F32, c.rows, c.columns, features),
                type = c.in_count == 3 ? heads : matrix, types[] = {type, type, type};
  const job_function f = {strcmp(arguments[0], "plain") == 0 ? as_program : as_kernel, &c, NULL, c.in_count, 1, types, NULL, NULL};
  job j = job_create(&f, (uint32_t)atoi(arguments[2]));
  bench_serve(job_run, &j, 1);
}
