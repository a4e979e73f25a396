/* Kernels transformed: kernel_transforms.py says the same in pallas, and where it can not, without kernels. Each case is the kernel
   as it runs, and as a plain program. */
#include "axle/kernel.h"
#include "vectors/vectors.h"

#define FLOATS "f32 f64"

#define SHAPE(...) \
  { AX_TYPES(AX_TYPE(AX_F32, __VA_ARGS__)) }
#define SPEC(map, ...) \
  { .block = {AX_DIMS(__VA_ARGS__)}, .index_map = (map) }
#define SPECS(...) \
  { AX_BLOCK_SPECS(__VA_ARGS__) }
#define GRID(...) .grid = {AX_DIMS(__VA_ARGS__)}

/* A kernel, whose result is of the operands' dtype, and what is mapped of its operands and result. */
typedef struct kernel {
  ax_kernel of;
  ax_function body;
  uint32_t in_count;
  bool interpret, has_scratch;
  int64_t in_axes[2], out_axis;
} kernel;

static AX_BODY(run) {
  const kernel *k = context;
  ax_kernel made = k->of;
  ax_type type = made.outs.v[0];
  type.dtype = ax_typeof(in[0]).dtype;
  ax_scratch scratch = {.type = ax_ref_type(AX_SPACE_VMEM, type.dtype, AX_LIST(2, LIST(2, 2)))};
  made.outs.v = &type;
  made.options.interpret = k->interpret;
  if (k->has_scratch) made.options.scratch = (ax_scratch_list){1, &scratch};
  ax_kernel_call(&made, ((ax_fn){k->body, k->in_count + 1 + made.options.scratch.count, 0, NULL}), AX_LIST(k->in_count, in), out);
}

static ax_fn function_of(const kernel *k) { return (ax_fn){run, k->in_count, 1, (void *)(uintptr_t)(const void *)k}; }

static void value(const kernel *k, const ax_value *in, ax_value *out) { run(in, out, (void *)(uintptr_t)(const void *)k); }

/* (operands.., ct) -> gradients */
static void gradient(const kernel *k, const ax_value *in, ax_value *out) {
  ax_value result;
  ax_vjp(function_of(k), AX_ALL_ARGS, in, in + k->in_count, &result, out);
}

static AX_BODY(mapped) {
  const kernel *k = context;
  ax_vmap(function_of(k), in, out, &(ax_vmap_options){.in_axes = {k->in_count, k->in_axes}, .out_axes = {AX_DIMS(k->out_axis)}});
}
static void vmap(const kernel *k, const ax_value *in, ax_value *out) { mapped(in, out, (void *)(uintptr_t)(const void *)k); }

/* Its left operand inside, the right one around. */
static void vmap_twice(const kernel *k, const ax_value *in, ax_value *out) {
  const ax_fn inner = {mapped, 2, 1, (void *)(uintptr_t)(const void *)k};
  ax_vmap(inner, in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0)}});
}

/* --- Index maps --- */

static AX_BODY(i) { out[0] = in[0]; }
static AX_BODY(i_0) { out[0] = in[0], out[1] = ax_integer(0); }
static AX_BODY(j) { out[0] = in[1]; }
static AX_BODY(i_j) { out[0] = in[0], out[1] = in[1]; }
static AX_BODY(i_k) { out[0] = in[0], out[1] = in[2]; }
static AX_BODY(k_j) { out[0] = in[2], out[1] = in[1]; }
static AX_BODY(last_i_j) { out[0] = ax_sub(ax_integer(3), in[0]), out[1] = in[1]; }

/* --- Bodies --- */

static AX_BODY(bend) {
  ax_value x = ax_ref_load(in[0]);
  ax_ref_store(in[1], ax_add(ax_mul(x, x), ax_sin(x)));
}

static AX_BODY(nothing) {}
static AX_BODY(clear) { ax_ref_store(*(const ax_value *)context, ax_integer(0)); }
static void clear_at_first(ax_value ref, uint32_t dimension) {
  ax_if(ax_eq(ax_program_id(dimension), ax_integer(0)), ((ax_fn){clear, 0, 0, &ref}), ((ax_fn){nothing, 0, 0, NULL}), NULL, NULL);
}
static AX_BODY(give_total) { ax_ref_store(((const ax_value *)context)[2], ax_ref_load(((const ax_value *)context)[3])); }

static AX_BODY(product_block) {
  clear_at_first(in[3], 2);
  ax_ref_add(in[3], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
  ax_value last = ax_eq(ax_program_id(2), ax_sub(ax_num_programs(2), ax_integer(1)));
  ax_if(last, ((ax_fn){give_total, 0, 0, (void *)in}), ((ax_fn){nothing, 0, 0, NULL}), NULL, NULL);
}

static AX_BODY(row_step) {
  const ax_value *refs = context;
  ax_value x = ax_ref_load(ax_ref_at(refs[0], in[0]));
  ax_ref_store(ax_ref_at(refs[1], in[0]), ax_add(ax_mul(x, in[1]), ax_cos(x)));
  out[0] = ax_mul(in[1], ax_integer(2));
}

static AX_BODY(doubling_rows) {
  ax_value factor = ax_full(ax_typeof(in[0]).dtype, AX_DIMS(), 1);
  ax_fori_loop(ax_integer(0), ax_integer(3), ((ax_fn){row_step, 2, 1, (void *)in}), &factor, &factor);
}

static AX_BODY(times_scale) {
  ax_value x = ax_ref_load(in[0]), w = ax_broadcast_in_dim(ax_ref_load(in[1]), DIMS(2, 3), LIST(1));
  ax_ref_store(in[2], ax_mul(x, w));
}

static AX_BODY(twice) { ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_integer(2))); }

static AX_BODY(masked) {
  ax_value at = ax_add(ax_iota(AX_S32, DIMS(4), 0), ax_mul(ax_program_id(0), ax_integer(4)));
  ax_value inside = ax_lt(at, ax_full_i64(AX_S32, DIMS(4), 10));
  ax_ref_store_masked(in[1], inside, ax_exp(ax_ref_load_masked(in[0], inside, ax_integer(0))));
}

static AX_BODY(sine) { out[0] = ax_sin(in[0]); }
static AX_BODY(square) { out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(chosen) {
  ax_value id = ax_program_id(0), half = ax_div(id, ax_integer(2)), x = ax_ref_load(in[0]), y;
  ax_if(ax_eq(id, ax_mul(half, ax_integer(2))), ((ax_fn){sine, 1, 1, NULL}), ((ax_fn){square, 1, 1, NULL}), &x, &y);
  ax_ref_store(in[1], y);
}

static AX_BODY(sum_rows) {
  clear_at_first(in[1], 1);
  ax_value x = ax_ref_load(in[0]);
  ax_ref_add(in[1], ax_reduce_sum(ax_mul(x, x), DIMS(1), false));
}

static AX_BODY(below_four) { out[0] = ax_lt(in[1], ax_integer(4)); }
static AX_BODY(halve) {
  out[0] = ax_add(ax_mul(in[0], ax_real(0.5)), ax_sin(in[0]));
  out[1] = ax_add(in[1], ax_integer(1));
}
static AX_BODY(halved) {
  ax_value carry[] = {ax_ref_load(in[0]), ax_full_i64(AX_S32, AX_DIMS(), 0)};
  ax_while(((ax_fn){below_four, 2, 1, NULL}), ((ax_fn){halve, 2, 2, NULL}), carry, carry);
  ax_ref_store(in[1], carry[0]);
}

/* --- Kernels, and what is made of them --- */

#define EDGES                                                                                                                     \
  .of = {GRID(3, 3), .in_specs = SPECS(SPEC(i_j, 2, 3)), .out_specs = SPECS(SPEC(i_j, 2, 3)), .outs = SHAPE(5, 7)}, .body = bend, \
  .in_count = 1
#define ROWS .of = {.outs = SHAPE(3, 4)}, .body = doubling_rows, .in_count = 1
#define SCALE                                                                                                                   \
  .of = {GRID(2, 2), .in_specs = SPECS(SPEC(i_j, 2, 3), SPEC(j, 3)), .out_specs = SPECS(SPEC(i_j, 2, 3)), .outs = SHAPE(4, 6)}, \
  .body = times_scale, .in_count = 2
#define IN_PLACE                                                                                                \
  .of = {GRID(2), .in_specs = SPECS(SPEC(i_0, 2, 3)), .out_specs = SPECS(SPEC(i_0, 2, 3)), .outs = SHAPE(6, 3), \
         .options = {.aliases = {AX_ALIASES({0, 0})}}},                                                         \
  .body = twice, .in_count = 1
#define MASK \
  .of = {GRID(3), .in_specs = SPECS(SPEC(i, 4)), .out_specs = SPECS(SPEC(i, 4)), .outs = SHAPE(10)}, .body = masked, .in_count = 1
#define CHOICE                                                                                                                   \
  .of = {GRID(4), .in_specs = SPECS(SPEC(i_0, 1, 3)), .out_specs = SPECS(SPEC(i_0, 1, 3)), .outs = SHAPE(4, 3)}, .body = chosen, \
  .in_count = 1
#define SQUARES                                                                                                               \
  .of = {GRID(2, 3), .in_specs = SPECS(SPEC(i_j, 2, 2)), .out_specs = SPECS(SPEC(i, 2)), .outs = SHAPE(4)}, .body = sum_rows, \
  .in_count = 1
#define HALVING \
  .of = {GRID(2), .in_specs = SPECS(SPEC(i, 2)), .out_specs = SPECS(SPEC(i, 2)), .outs = SHAPE(4)}, .body = halved, .in_count = 1
#define SQUEEZED                                                                                                         \
  .of = {GRID(4, 2), .in_specs = SPECS(SPEC(i_j, 0, 3)), .out_specs = SPECS(SPEC(last_i_j, 0, 3)), .outs = SHAPE(4, 6)}, \
  .body = twice, .in_count = 1
#define PRODUCT                                                                                                   \
  .of = {GRID(2, 2, 3), .in_specs = SPECS(SPEC(i_k, 2, 2), SPEC(k_j, 2, 2)), .out_specs = SPECS(SPEC(i_j, 2, 2)), \
         .outs = SHAPE(4, 4)},                                                                                    \
  .body = product_block, .in_count = 2, .has_scratch = true

#define AXES(...) .in_axes = {__VA_ARGS__}

/* Name, dtypes, modes, operands, results, what is made, of what kernel. */
#define EACH(X)                                                                                  \
  X(edges, FLOATS, "vj", 1, 1, value, EDGES)                                                     \
  X(edges_grad, FLOATS, "v", 2, 1, gradient, EDGES)                                              \
  X(edges_vmap, FLOATS, "vj", 1, 1, vmap, EDGES, AXES(2), .out_axis = 1)                         \
  X(product_grad, FLOATS, "v", 3, 2, gradient, PRODUCT)                                          \
  X(product_vmap, FLOATS, "v", 2, 1, vmap, PRODUCT, AXES(0, 0))                                  \
  X(product_vmap_left, FLOATS, "v", 2, 1, vmap, PRODUCT, AXES(0, AX_NOT_MAPPED))                            \
  X(product_vmap_twice, FLOATS, "v", 2, 1, vmap_twice, PRODUCT, AXES(0, AX_NOT_MAPPED))                     \
  X(rows, FLOATS, "vj", 1, 1, value, ROWS)                                                       \
  X(rows_grad, FLOATS, "v", 2, 1, gradient, ROWS)                                                \
  X(rows_vmap, FLOATS, "vj", 1, 1, vmap, ROWS, AXES(0))                                          \
  X(scale, FLOATS, "vj", 2, 1, value, SCALE)                                                     \
  X(scale_grad, FLOATS, "v", 3, 2, gradient, SCALE)                                              \
  X(scale_vmap_right, FLOATS, "vj", 2, 1, vmap, SCALE, AXES(AX_NOT_MAPPED, 0))                              \
  X(in_place_vmap, "f32 s32", "v", 1, 1, vmap, IN_PLACE, AXES(0))                                \
  X(in_place_grad, FLOATS, "v", 2, 1, gradient, IN_PLACE)                                        \
  X(mask, FLOATS, "v", 1, 1, value, MASK)                                                        \
  X(mask_vmap, FLOATS, "v", 1, 1, vmap, MASK, AXES(0))                                           \
  X(mask_grad, FLOATS, "v", 2, 1, gradient, MASK)                                                \
  X(choice, FLOATS, "v", 1, 1, value, CHOICE)                                                    \
  X(choice_vmap, FLOATS, "v", 1, 1, vmap, CHOICE, AXES(0))                                       \
  X(choice_grad, FLOATS, "v", 2, 1, gradient, CHOICE)                                            \
  X(squares_vmap, FLOATS, "v", 1, 1, vmap, SQUARES, AXES(1))                                     \
  X(squares_grad, FLOATS, "v", 2, 1, gradient, SQUARES)                                          \
  X(halving, FLOATS, "vj", 1, 1, value, HALVING)                                                 \
  X(squeezed_vmap, FLOATS, "vj", 1, 1, vmap, SQUEEZED, AXES(1), .out_axis = 2)

#define BODIES(name, variants_, modes_, ins, outs_, make, ...)                                            \
  static AX_BODY(name##_case) { make(&(kernel){__VA_ARGS__, .interpret = false}, in, out); }                                  \
  static AX_BODY(name##_plain_case) { make(&(kernel){__VA_ARGS__, .interpret = true}, in, out); }
EACH(BODIES)

#define ROWS_OF(name, variants_, modes_, ins, outs_, make, ...)                        \
  {#name, variants_, .body = name##_case, .in = ins, .out = outs_, .modes = modes_, .scaled = true}, \
      {#name "_plain", variants_, .body = name##_plain_case, .in = ins, .out = outs_, .modes = modes_, .scaled = true},

static const vector_case kernel_transforms_cases[] = {EACH(ROWS_OF)};

const VECTOR_GROUP(kernel_transforms);
