/* Transforms, nested: transforms.py says the same in JAX. */
#include "vectors/vectors.h"

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static ax_value mean(ax_value x) { return ax_reduce_mean(x, AX_ALL_DIMS, false); }
static ax_value square(ax_value x) { return ax_integer_pow(x, 2); }

/* --- Derivatives --- */

BODY(mlp_loss) {
  ax_value error = ax_sub(ax_matmul(ax_tanh(ax_matmul(in[2], in[0])), in[1]), in[3]);
  out[0] = mean(ax_mul(error, error));
}

BODY(grad) { ax_grad(AX_CLOSURE(mlp_loss, 4, 1, context), AX_FIRST(2), in, out); }
BODY(value_and_grad) { ax_value_and_grad(AX_CLOSURE(mlp_loss, 4, 1, context), AX_FIRST(2), in, out); }
BODY(jvp) { ax_jvp(AX_CLOSURE(mlp_loss, 4, 1, context), AX_FIRST(4), in, in + 4, out, out + 1); }

/* Of a pointwise function: the sum of its values; the sum of its derivatives; its second derivatives. */
typedef struct pointwise {
  ax_value (*unary)(ax_value);
  ax_value (*binary)(ax_value, ax_value);
  uint32_t count;
} pointwise;

BODY(sum_of_values) {
  const pointwise *f = context;
  out[0] = total(f->unary != NULL ? f->unary(in[0]) : f->binary(in[0], in[1]));
}

BODY(sum_of_derivatives) {
  ax_value slope;
  ax_grad(AX_CLOSURE(sum_of_values, ((const pointwise *)context)->count, 1, context), AX_FIRST(1), in, &slope);
  out[0] = total(slope);
}

static ax_value power_4(ax_value x) { return ax_integer_pow(x, 4); }
static ax_value power_m2(ax_value x) { return ax_integer_pow(x, -2); }

BODY(second_pointwise) {
  static ax_value (*const functions[])(ax_value) = {ax_exp,  ax_log,   ax_log1p, ax_expm1, ax_tanh,  ax_logistic,
                                                    ax_sqrt, ax_rsqrt, ax_erf,   power_4,  power_m2, ax_gelu};
  for (int i = 0; i < 12; i++) {
    pointwise f = {.unary = functions[i], .count = 1};
    ax_grad(AX_CLOSURE(sum_of_derivatives, 1, 1, &f), AX_FIRST(1), in, &out[i]);
  }
}

BODY(second_pow) {
  pointwise f = {.binary = ax_pow, .count = 2};
  ax_grad(AX_CLOSURE(sum_of_derivatives, 2, 1, &f), AX_FIRST(2), in, out);
}

static ax_value over_times(ax_value y, ax_value x) { return ax_mul(ax_div(x, y), x); }

BODY(second_div) { /* of the derivative by the second operand */
  pointwise f = {.binary = over_times, .count = 2};
  ax_value swapped[] = {in[1], in[0]}, made[2];
  ax_grad(AX_CLOSURE(sum_of_derivatives, 2, 1, &f), AX_FIRST(2), swapped, made);
  out[0] = made[1];
  out[1] = made[0];
}

static ax_value tanh_times(ax_value x) { return ax_mul(ax_tanh(x), x); }

BODY(sum_of_second) {
  ax_value curve;
  ax_grad(AX_CLOSURE(sum_of_derivatives, 1, 1, context), AX_FIRST(1), in, &curve);
  out[0] = total(curve);
}

BODY(third) {
  pointwise f = {.unary = tanh_times, .count = 1};
  ax_grad(AX_CLOSURE(sum_of_second, 1, 1, &f), AX_FIRST(1), in, out);
}

/* f(x) = sum(tanh(w x) x), with w of the enclosing trace. */
BODY(bowl) {
  const ax_value *w = context;
  out[0] = total(ax_mul(ax_tanh(ax_matmul(*w, in[0])), in[0]));
}
BODY(bowl_slope) { ax_grad(AX_CLOSURE(bowl, 1, 1, context), AX_FIRST(1), in, out); }

typedef struct at_point {
  ax_value x, w;
} at_point;

BODY(hessian_row) {
  at_point *p = context;
  ax_value operands[] = {p->x, in[0]}, both[2];
  ax_jvp(AX_CLOSURE(bowl_slope, 1, 1, &p->w), AX_FIRST(1), operands, operands + 1, both, both + 1);
  out[0] = both[1];
}

BODY(hessian) {
  ax_type x = ax_typeof(in[0]);
  at_point p = {in[0], in[1]};
  ax_value unit = ax_convert_element_type(ax_eq(ax_iota(AX_S32, DIMS(4, 4), 0), ax_iota(AX_S32, DIMS(4, 4), 1)), x.dtype);
  ax_vmap(AX_CLOSURE(hessian_row, 1, 1, &p), &unit, out, &(ax_vmap_options){0});
}

static ax_value cross_entropy(ax_value logits, ax_value label) {
  return ax_neg(total(ax_mul(ax_log_softmax(logits, 0), ax_one_hot(label, 5, ax_typeof(logits).dtype))));
}

BODY(cross_entropy_at_2) { out[0] = cross_entropy(in[0], ax_full(AX_S32, AX_DIMS(), 2)); }
BODY(squares_of_slopes) {
  ax_value slope;
  ax_grad(AX_FN(cross_entropy_at_2, 1, 1), AX_FIRST(1), in, &slope);
  out[0] = total(square(slope));
}
BODY(second_softmax) { ax_grad(AX_CLOSURE(squares_of_slopes, 1, 1, context), AX_FIRST(1), in, out); }

BODY(sum_of_largest) { out[0] = total(ax_reduce_max(ax_mul(in[0], in[0]), AX_LIST(1, LIST(1)), false)); }
BODY(squares_of_max_slopes) {
  ax_value slope;
  ax_grad(AX_FN(sum_of_largest, 1, 1), AX_FIRST(1), in, &slope);
  out[0] = total(square(slope));
}
BODY(second_max) { ax_grad(AX_CLOSURE(squares_of_max_slopes, 1, 1, context), AX_FIRST(1), in, out); }

/* --- vmap --- */

/* Over `f`, with its axes given in the call. */
static void map(ax_function f, void *context, ax_dim_list in_axes, ax_dim_list out_axes, const ax_value *in, uint32_t in_count,
                ax_value *out, uint32_t out_count) {
  ax_vmap(AX_CLOSURE(f, in_count, out_count, context), in, out, &(ax_vmap_options){.in_axes = in_axes, .out_axes = out_axes});
}
#define AXES(...) ((ax_dim_list){AX_DIMS(__VA_ARGS__)})

BODY(add_two) { out[0] = ax_add(in[0], in[1]); }
BODY(multiply) { out[0] = ax_mul(in[0], in[1]); }
BODY(matmul) { out[0] = ax_matmul(in[0], in[1]); }
BODY(multiply_each) { map(multiply, context, AXES(AX_NOT_MAPPED, 0), AXES(), in, 2, out, 1); }
BODY(vmap) { map(add_two, context, AXES(0, AX_NOT_MAPPED), AXES(), in, 2, out, 1); }
BODY(vmap_axes) { map(matmul, context, AXES(1, 2), AXES(1), in, 2, out, 1); }
BODY(vmap_twice) { map(multiply_each, context, AXES(0, AX_NOT_MAPPED), AXES(), in, 2, out, 1); }

BODY(reductions) {
  out[0] = ax_reduce_sum(in[0], AX_DIMS(0), false);
  out[1] = ax_reduce_max(in[0], AX_LIST(1, LIST(1)), false);
  out[2] = ax_argmax(in[0], 0, AX_S32);
  out[3] = mean(in[0]);
}
BODY(vmap_reduce) { map(reductions, context, AXES(1), AXES(), in, 1, out, 4); }

BODY(shapes) {
  ax_value x = in[0], y = in[1], twice[] = {x, x};
  out[0] = ax_reshape(x, DIMS(6));
  out[1] = ax_transpose(x, LIST(1, 0));
  out[2] = ax_slice(x, LIST(0, 1), LIST(2, 3), NULL);
  out[3] = ax_pad(x, y, LIST(1, 0), LIST(0, 1), LIST(0, 1));
  out[4] = ax_concatenate(AX_LIST(2, twice), 0);
  out[5] = ax_broadcast_in_dim(y, DIMS(2, 2), NULL);
  out[6] = ax_where(ax_gt(x, y), ax_neg(x), x);
}
BODY(vmap_shape) { map(shapes, context, AXES(2, 0), AXES(), in, 2, out, 7); }

BODY(dynamic_slice) { out[0] = ax_dynamic_slice(in[0], in + 1, LIST(2)); }
BODY(vmap_dynamic_slice) { map(dynamic_slice, context, AXES(0, 0), AXES(), in, 2, out, 1); }
BODY(vmap_dynamic_slice_index) { map(dynamic_slice, context, AXES(AX_NOT_MAPPED, 0), AXES(), in, 2, out, 1); }

BODY(dynamic_update_slice) { out[0] = ax_dynamic_update_slice(in[0], in[1], in + 2); }
BODY(vmap_dynamic_update_slice) { map(dynamic_update_slice, context, AXES(AX_NOT_MAPPED, 1, 0), AXES(), in, 3, out, 1); }

BODY(vmap_dot_left) { map(matmul, context, AXES(0, AX_NOT_MAPPED), AXES(), in, 2, out, 1); }
BODY(vmap_dot_right) { map(matmul, context, AXES(AX_NOT_MAPPED, 1), AXES(2), in, 2, out, 1); }

BODY(one_example) {
  ax_value operands[] = {in[0], in[1], ax_expand_dims(in[2], 0), ax_expand_dims(in[3], 0)};
  mlp_loss(operands, out, context);
}
BODY(grad_of_one) { ax_grad(AX_CLOSURE(one_example, 4, 1, context), AX_FIRST(2), in, out); }
BODY(vmap_of_grad) { map(grad_of_one, context, AXES(AX_NOT_MAPPED, AX_NOT_MAPPED, 0, 0), AXES(), in, 4, out, 2); }

BODY(distance) {
  const ax_value *w = context;
  out[0] = total(square(ax_sub(ax_tanh(ax_matmul(in[0], *w)), in[1])));
}
BODY(mean_distance) {
  ax_value w = in[0], each;
  map(distance, &w, AXES(0, 0), AXES(), in + 1, 2, &each, 1);
  out[0] = mean(each);
}
BODY(grad_of_vmap) { ax_grad(AX_CLOSURE(mean_distance, 3, 1, context), AX_FIRST(1), in, out); }

BODY(sum_of_cubes) { out[0] = total(ax_integer_pow(ax_tanh(in[0]), 3)); }
BODY(slope_of_cubes) { ax_grad(AX_CLOSURE(sum_of_cubes, 1, 1, context), AX_FIRST(1), in, out); }
BODY(sum_of_slopes) {
  ax_value slopes;
  map(slope_of_cubes, context, AXES(), AXES(), in, 1, &slopes, 1);
  out[0] = total(slopes);
}
BODY(grad_of_vmap_of_grad) { ax_grad(AX_CLOSURE(sum_of_slopes, 1, 1, context), AX_FIRST(1), in, out); }

BODY(exp_tanh) { out[0] = ax_exp(ax_tanh(in[0])); }
BODY(jvp_exp_tanh) { ax_jvp(AX_CLOSURE(exp_tanh, 1, 1, context), AX_FIRST(1), in, in + 1, out, out + 1); }
BODY(vmap_of_jvp) { map(jvp_exp_tanh, context, AXES(), AXES(), in, 2, out, 2); }

BODY(labelled) { out[0] = cross_entropy(in[0], in[1]); }
BODY(vmap_cross_entropy) { map(labelled, context, AXES(), AXES(), in, 2, out, 1); }

/* --- A named axis --- */

BODY(collectives) {
  static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  ax_value x = in[0], first = ax_reshape(ax_slice(x, LIST(0, 0), LIST(1, 2), NULL), DIMS(2));
  out[0] = ax_mul(ax_psum(first, "i"), first);
  out[1] = ax_add(ax_pmean(x, "i"), x);
  out[2] = ax_all_gather(first, "i", 1, false);
  out[3] = ax_all_gather(x, "i", 0, true);
  out[4] = ax_psum_scatter(x, "i", 0, false);
  out[5] = ax_psum_scatter(x, "i", 0, true);
  out[6] = ax_all_to_all(x, "i", 0, 1, false);
  out[7] = ax_all_to_all(x, "i", 0, 1, true);
  out[8] = ax_ppermute(x, "i", 4, ring);
  out[9] = ax_mul(ax_convert_element_type(ax_axis_index("i"), ax_typeof(x).dtype), x);
}
BODY(vmap_named) { ax_vmap(AX_CLOSURE(collectives, 1, 10, context), in, out, &(ax_vmap_options){.axis_name = "i"}); }

BODY(extremes) {
  out[0] = ax_sub(ax_pmax(in[0], "i"), in[0]);
  out[1] = ax_sub(ax_pmin(in[0], "i"), in[0]);
}
BODY(vmap_named_max) { ax_vmap(AX_CLOSURE(extremes, 1, 2, context), in, out, &(ax_vmap_options){.axis_name = "i"}); }

BODY(mean_output) {
  const ax_value *w = context;
  out[0] = ax_pmean(ax_tanh(ax_matmul(in[0], *w)), "i");
}
BODY(sum_of_means) {
  ax_value w = in[0], means;
  ax_vmap(AX_CLOSURE(mean_output, 1, 1, &w), in + 1, &means, &(ax_vmap_options){.axis_name = "i"});
  out[0] = total(means);
}
BODY(vmap_named_mean_loss) { ax_grad(AX_CLOSURE(sum_of_means, 2, 1, context), AX_FIRST(1), in, out); }

static const vector_case transforms_cases[] = {
    {"grad", "f32 f64", .body = grad, .in = 4, .out = 2, .ulps = 256, .scaled = true},
    {"value_and_grad", "f32", .body = value_and_grad, .in = 4, .out = 3, .modes = "v", .ulps = 256, .scaled = true},
    {"jvp", "f32", .body = jvp, .in = 8, .out = 2, .modes = "v", .scaled = true},
    {"second_pointwise", "f64", .body = second_pointwise, .out = 12, .scaled = true},
    {"second_pow", "f64", .body = second_pow, .in = 2, .out = 2, .scaled = true},
    {"second_div", "f64", .body = second_div, .in = 2, .out = 2, .scaled = true},
    {"third", "f64", .body = third, .scaled = true},
    {"hessian", "f64 f32", .body = hessian, .in = 2, .ulps = 256, .scaled = true},
    {"second_softmax", "f64", .body = second_softmax, .scaled = true},
    {"second_max", "f64", .body = second_max, .scaled = true},
    {"vmap", "f32", .body = vmap, .in = 2},
    {"vmap_axes", "f32", .body = vmap_axes, .in = 2, .scaled = true},
    {"vmap_twice", "f32", .body = vmap_twice, .in = 2, .scaled = true},
    {"vmap_reduce", "f32", .body = vmap_reduce, .out = 4, .scaled = true},
    {"vmap_shape", "f32", .body = vmap_shape, .in = 2, .out = 7, .scaled = true},
    {"vmap_dynamic_slice", "f32", .body = vmap_dynamic_slice, .in = 2},
    {"vmap_dynamic_slice_index", "f32", .body = vmap_dynamic_slice_index, .in = 2},
    {"vmap_dynamic_update_slice", "f32", .body = vmap_dynamic_update_slice, .in = 3},
    {"vmap_dot_left", "f32 bf16", .body = vmap_dot_left, .in = 2, .scaled = true},
    {"vmap_dot_right", "f32", .body = vmap_dot_right, .in = 2, .scaled = true},
    {"vmap_of_grad", "f32 f64", .body = vmap_of_grad, .in = 4, .out = 2, .ulps = 256, .scaled = true},
    {"grad_of_vmap", "f32 f64", .body = grad_of_vmap, .in = 3, .ulps = 256, .scaled = true},
    {"grad_of_vmap_of_grad", "f64", .body = grad_of_vmap_of_grad, .scaled = true},
    {"vmap_of_jvp", "f32", .body = vmap_of_jvp, .in = 2, .out = 2, .scaled = true},
    {"vmap_cross_entropy", "f32", .body = vmap_cross_entropy, .in = 2, .scaled = true},
    {"vmap_named", "f32", .body = vmap_named, .out = 10, .scaled = true},
    {"vmap_named_max", "f32", .body = vmap_named_max, .out = 2, .modes = "v", .scaled = true},
    {"vmap_named_mean_loss", "f64", .body = vmap_named_mean_loss, .in = 2, .scaled = true},
};

const VECTOR_GROUP(transforms);
