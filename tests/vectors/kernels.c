/* Kernels over grids: kernels.py says the same in pallas. */
#include "axle/kernel.h"
#include "vectors/vectors.h"

#define SOME "f32 s32 bf16"

/* A result of the operand's dtype. */
static void call(const ax_kernel *kernel, ax_function body, uint32_t in_count, const ax_value *in, ax_value *out) {
  ax_kernel made = *kernel;
  ax_type type = kernel->outs.v[0];
  type.dtype = ax_typeof(in[0]).dtype;
  made.outs.v = &type;
  ax_kernel_call(&made, ((ax_fn){body, in_count + 1 + kernel->options.scratch.count, 0, NULL}), AX_LIST(in_count, in), out);
}

#define SHAPE(...) \
  { AX_TYPES(AX_TYPE(AX_F32, __VA_ARGS__)) }
#define SPEC(map, ...) \
  { .block = {AX_DIMS(__VA_ARGS__)}, .index_map = (map) }
#define SPECS(...) \
  { AX_BLOCK_SPECS(__VA_ARGS__) }

BODY(i_0) { out[0] = in[0], out[1] = ax_integer(0); }
static AX_BODY(i) { out[0] = in[0]; }
static AX_BODY(i_j) { out[0] = in[0], out[1] = in[1]; }
static AX_BODY(j_i) { out[0] = in[1], out[1] = in[0]; }
static AX_BODY(j) { out[0] = in[1]; }
static AX_BODY(i_k) { out[0] = in[0], out[1] = in[2]; }
static AX_BODY(k_j) { out[0] = in[2], out[1] = in[1]; }
static AX_BODY(back_i_j) { out[0] = ax_sub(ax_integer(2), in[0]), out[1] = in[1]; }
static AX_BODY(i_back_j) { out[0] = in[0], out[1] = ax_sub(ax_integer(1), in[1]); }
static AX_BODY(last_i_j) { out[0] = ax_sub(ax_integer(3), in[0]), out[1] = in[1]; }

/* --- Bodies --- */

static AX_BODY(add) { ax_ref_store(in[2], ax_add(ax_ref_load(in[0]), ax_ref_load(in[1]))); }
static AX_BODY(twice) { ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_integer(2))); }
static AX_BODY(square) { ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_ref_load(in[0]))); }
static AX_BODY(sum_block) { ax_ref_store(in[1], ax_reduce_sum(ax_ref_load(in[0]), AX_ALL_DIMS, false)); }
static AX_BODY(transpose) { ax_ref_store(in[1], ax_transpose(ax_ref_load(in[0]), LIST(1, 0))); }
static AX_BODY(row_of_all) {
  const ax_value starts[] = {ax_program_id(0), ax_integer(0)};
  ax_ref_store(in[1], ax_ref_load(ax_ref_slice(in[0], starts, LIST(1, 3))));
}

static AX_BODY(nothing) {}
static AX_BODY(clear) { ax_ref_store(*(const ax_value *)context, ax_integer(0)); }
static void clear_at_first(ax_value ref, uint32_t dimension) {
  ax_if(ax_eq(ax_program_id(dimension), ax_integer(0)), ((ax_fn){clear, 0, 0, &ref}), ((ax_fn){nothing, 0, 0, NULL}), NULL, NULL);
}

static AX_BODY(give_total) { ax_ref_store(((const ax_value *)context)[2], ax_ref_load(((const ax_value *)context)[3])); }
static AX_BODY(matmul) {
  clear_at_first(in[3], 2);
  ax_ref_add(in[3], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
  ax_value last = ax_eq(ax_program_id(2), ax_sub(ax_num_programs(2), ax_integer(1)));
  ax_if(last, ((ax_fn){give_total, 0, 0, (void *)in}), ((ax_fn){nothing, 0, 0, NULL}), NULL, NULL);
}

static AX_BODY(sum_rows) {
  clear_at_first(in[1], 1);
  ax_ref_add(in[1], ax_reduce_sum(ax_ref_load(in[0]), AX_DIMS(1), false));
}

static AX_BODY(count) { out[0] = ax_add(ax_add(in[1], ax_mul(in[0], ax_program_id(0))), ax_program_id(1)); }
static AX_BODY(ids) {
  ax_value total = ax_num_programs(1), x = ax_ref_load(in[0]);
  ax_fori_loop(ax_integer(0), ax_integer(3), ((ax_fn){count, 2, 1, NULL}), &total, &total);
  ax_ref_store(in[1], ax_add(x, ax_convert_element_type(total, ax_typeof(x).dtype)));
}

static AX_BODY(prefix) {
  clear_at_first(in[2], 0);
  ax_ref_add(in[2], ax_ref_load(in[0]));
  ax_ref_store(in[1], ax_ref_load(in[2]));
}

/* --- Calls --- */

#define KERNEL(name, body, in_count, ...) static AX_BODY(name) { call(&(ax_kernel){__VA_ARGS__}, body, in_count, in, out); }
#define GRID(...) .grid = {AX_DIMS(__VA_ARGS__)}

KERNEL(add_blocks, add, 2, GRID(4), .in_specs = SPECS(SPEC(i_0, 2, 6), SPEC(NULL, 6)), .out_specs = SPECS(SPEC(i_0, 2, 6)),
       .outs = SHAPE(8, 6))
KERNEL(add_edges, add, 2, GRID(3, 3), .in_specs = SPECS(SPEC(i_j, 3, 2), SPEC(j, 2)), .out_specs = SPECS(SPEC(i_j, 3, 2)),
       .outs = SHAPE(7, 5))
KERNEL(sum_edges, sum_block, 1, GRID(3), .in_specs = SPECS(SPEC(i, 3)), .out_specs = SPECS(SPEC(i, 1)), .outs = SHAPE(3))
KERNEL(sum_of_rows, sum_rows, 1, GRID(2, 3), .in_specs = SPECS(SPEC(i_j, 2, 2)), .out_specs = SPECS(SPEC(i, 2)), .outs = SHAPE(4))
KERNEL(transposed, transpose, 1, GRID(2, 2), .in_specs = SPECS(SPEC(j_i, 2, 3)), .out_specs = SPECS(SPEC(i_j, 3, 2)),
       .outs = SHAPE(6, 4))
KERNEL(turned, twice, 1, GRID(3, 2), .in_specs = SPECS(SPEC(back_i_j, 2, 3)), .out_specs = SPECS(SPEC(i_back_j, 2, 3)),
       .outs = SHAPE(6, 6))
KERNEL(squeezed, twice, 1, GRID(4, 2), .in_specs = SPECS(SPEC(i_j, 0, 3)), .out_specs = SPECS(SPEC(last_i_j, 0, 3)),
       .outs = SHAPE(4, 6))
KERNEL(ids_of, ids, 1, GRID(2, 3), .in_specs = SPECS(SPEC(i_j, 2, 2)), .out_specs = SPECS(SPEC(i_j, 2, 2)), .outs = SHAPE(4, 6))
KERNEL(pinned, row_of_all, 1, GRID(4), .in_specs = SPECS({.space = AX_SPACE_ANY}), .out_specs = SPECS(SPEC(i_0, 1, 3)),
       .outs = SHAPE(4, 3))
KERNEL(in_place, twice, 1, GRID(2), .in_specs = SPECS(SPEC(i_0, 2, 3)), .out_specs = SPECS(SPEC(i_0, 2, 3)), .outs = SHAPE(6, 3),
       .options = {.aliases = {AX_ALIASES({0, 0})}})
KERNEL(no_grid, square, 1, .outs = SHAPE(3, 4))
KERNEL(one_block, twice, 1, .in_specs = SPECS(SPEC(NULL, 2, 4)), .out_specs = SPECS(SPEC(NULL, 2, 4)), .outs = SHAPE(2, 4))

static AX_BODY(matmul_blocks) {
  const ax_scratch total = {.type = ax_ref_type(AX_SPACE_VMEM, ax_typeof(in[0]).dtype, AX_LIST(2, LIST(2, 2)))};
  call(&(ax_kernel){GRID(2, 2, 3), .in_specs = SPECS(SPEC(i_k, 2, 2), SPEC(k_j, 2, 2)), .out_specs = SPECS(SPEC(i_j, 2, 2)),
                    .outs = SHAPE(4, 4), .options = {.scratch = {AX_SCRATCH(total)}}},
       matmul, 2, in, out);
}

static AX_BODY(prefix_sums) {
  const ax_scratch total = {.type = ax_ref_type(AX_SPACE_VMEM, ax_typeof(in[0]).dtype, AX_LIST(1, LIST(2)))};
  call(&(ax_kernel){GRID(5), .in_specs = SPECS(SPEC(i, 2)), .out_specs = SPECS(SPEC(i, 2)), .outs = SHAPE(10),
                    .options = {.scratch = {AX_SCRATCH(total)}}},
       prefix, 1, in, out);
}

static const vector_case kernels_cases[] = {
    {"add_blocks", SOME, .body = add_blocks, .in = 2, .modes = "v"},
    {"add_edges", SOME, .body = add_edges, .in = 2, .modes = "v"},
    {"sum_edges", "f32 s32", .body = sum_edges, .modes = "v"},
    {"matmul", "f32 s32", .body = matmul_blocks, .in = 2, .modes = "v"},
    {"sum_rows", "f32 s32", .body = sum_of_rows, .modes = "v"},
    {"transpose", SOME, .body = transposed, .modes = "v"},
    {"turned", SOME, .body = turned, .modes = "v"},
    {"squeezed", SOME, .body = squeezed, .modes = "v"},
    {"ids", SOME, .body = ids_of, .modes = "v"},
    {"pinned", SOME, .body = pinned, .modes = "v"},
    {"prefix", "f32 s32", .body = prefix_sums, .modes = "v"},
    {"in_place", SOME, .body = in_place, .modes = "v"},
    {"no_grid", SOME, .body = no_grid, .modes = "v"},
    {"one_block", SOME, .body = one_block, .modes = "v"},
};

const VECTOR_GROUP(kernels);
