/* shard_map as users write it, and transforms through it: mesh.py says the same in JAX. */
#include "vectors/vectors.h"

#define LINES "d=2 d=4 d=8"
#define GRID "a=4,b=2"

static const vector_variant *variant(void *context) { return context; }
static const char *axes(void *context) { return variant(context)->axes; }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static ax_value square(ax_value x) { return ax_integer_pow(x, 2); }
static ax_value layer(ax_value x, ax_value w) { return ax_tanh(ax_matmul(x, w)); }

/* --- Inside a shard_map --- */

BODY(mean_loss) {
  ax_value error = ax_sub(layer(in[1], in[0]), in[2]);
  out[0] = ax_pmean(ax_reduce_mean(ax_mul(error, error), AX_ALL_DIMS, false), axes(context));
}
BODY(grad_inside) { ax_value_and_grad(AX_CLOSURE(mean_loss, 3, 1, context), AX_FIRST(1), in, out); }

BODY(total_layer) { out[0] = total(layer(in[1], in[0])); }
BODY(grad_without_mean) { ax_grad(AX_CLOSURE(total_layer, 2, 1, context), AX_FIRST(1), in, out); }

BODY(summed_tanh) { out[0] = ax_psum(ax_tanh(in[0]), "d"); }
BODY(total_of_squares) {
  ax_value sums;
  summed_tanh(in, &sums, context);
  out[0] = total(square(sums));
}
BODY(squares_of_slopes) {
  ax_value slope;
  ax_grad(AX_CLOSURE(total_of_squares, 1, 1, context), AX_FIRST(1), in, &slope);
  out[0] = total(square(slope));
}
BODY(second_inside) { ax_grad(AX_CLOSURE(squares_of_slopes, 1, 1, context), AX_FIRST(1), in, out); }
BODY(jvp_inside) { ax_jvp(AX_CLOSURE(summed_tanh, 1, 1, context), AX_FIRST(1), in, in + 1, out, out + 1); }

typedef struct closure {
  ax_value w;
  const char *axes;
} closure;

BODY(summed_product) {
  const closure *c = context;
  out[0] = ax_psum(ax_matmul(in[0], c->w), c->axes);
}
BODY(vmap_inside) {
  closure c = {in[1], axes(context)};
  ax_vmap(AX_CLOSURE(summed_product, 1, 1, &c), in, out, &(ax_vmap_options){0});
}

BODY(vmap_of_grad_inside) {
  ax_vmap(AX_CLOSURE(grad_without_mean, 2, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0)}});
}

BODY(named_sums) { out[0] = ax_add(ax_psum(ax_psum(in[0], "i"), "d"), ax_mul(ax_pmean(in[0], "i"), in[0])); }
BODY(vmap_named_inside) { ax_vmap(AX_CLOSURE(named_sums, 1, 1, context), in, out, &(ax_vmap_options){.axis_name = "i"}); }

BODY(two_layers) { out[0] = ax_psum(ax_matmul(layer(in[2], in[0]), in[1]), "b"); }
BODY(two_layers_over_both) { out[0] = ax_psum(ax_matmul(layer(in[2], in[0]), in[1]), "a,b"); }
BODY(layout_exchange) { out[0] = ax_all_to_all(in[0], "b", 1, 0, true); }
BODY(layout_columns) { out[0] = ax_mul(in[0], ax_full_like(in[0], 2)); }
BODY(layout_both_on_one) { out[0] = ax_add(in[0], ax_full_like(in[0], 1)); }

/* --- Around a shard_map: the sum over d of tanh(x) w, with x of two elements on each of 4 devices --- */

BODY(summed_tanh_times) { out[0] = ax_psum(ax_mul(ax_tanh(in[0]), in[1]), "d"); }
BODY(scaled_sum) {
  ax_shard_map(&variant(context)->mesh, "d;  -> ", AX_FN(summed_tanh_times, 2, 1), in, out);
}

BODY(shard_map_around) {
  ax_value operands[] = {ax_mul(in[0], ax_full_like(in[0], 2)), ax_reduce_sum(in[1], AX_DIMS(0), false)}, sum;
  scaled_sum(operands, &sum, context);
  out[0] = ax_add(ax_exp(ax_neg(sum)), ax_full_like(sum, 1));
}

static const ax_dim_list columns = {AX_DIMS(1, AX_NOT_MAPPED)};
BODY(shard_map_vmap) { ax_vmap(AX_CLOSURE(scaled_sum, 2, 1, context), in, out, &(ax_vmap_options){.in_axes = columns}); }

BODY(squares_of_columns) {
  ax_value sums;
  shard_map_vmap(in, &sums, context);
  out[0] = total(square(sums));
}
BODY(shard_map_grad_of_vmap) { ax_grad(AX_CLOSURE(squares_of_columns, 2, 1, context), AX_FIRST(2), in, out); }

BODY(squares_of_sums) {
  ax_value sums;
  scaled_sum(in, &sums, context);
  out[0] = total(square(sums));
}
BODY(grad_of_squares) { ax_grad(AX_CLOSURE(squares_of_sums, 2, 1, context), AX_FIRST(2), in, out); }
BODY(shard_map_vmap_of_grad) {
  ax_vmap(AX_CLOSURE(grad_of_squares, 2, 2, context), in, out, &(ax_vmap_options){.in_axes = columns});
}

BODY(squares_of_sum_slopes) {
  ax_value slope;
  ax_grad(AX_CLOSURE(squares_of_sums, 2, 1, context), AX_FIRST(1), in, &slope);
  out[0] = total(square(slope));
}
BODY(shard_map_second) { ax_grad(AX_CLOSURE(squares_of_sum_slopes, 2, 1, context), AX_FIRST(1), in, out); }
BODY(shard_map_jvp) { ax_jvp(AX_CLOSURE(scaled_sum, 2, 1, context), AX_FIRST(2), in, in + 2, out, out + 1); }

#define OUTSIDE "operations stand outside the shard_map, on sharded values, or the case lays its operands out itself"

static const vector_case mesh_cases[] = {
    {"mean_loss", LINES " " GRID, ". A A > .", .body = mean_loss, .in = 3, .scaled = true},
    {"grad_inside", LINES " " GRID, ". A A > . .", .body = grad_inside, .in = 3, .out = 2, .ulps = 256, .scaled = true},
    {"grad_without_mean", "d=4 " GRID ":a", ". A > .", .body = grad_without_mean, .in = 2, .ulps = 256, .scaled = true},
    {"second_inside", "d=4", "A > A", .body = second_inside, .ulps = 256, .scaled = true},
    {"jvp_inside", "d=4", "A A > . .", .body = jvp_inside, .in = 2, .out = 2, .scaled = true},
    {"vmap_inside", "d=4 " GRID ":a", "A . > R", .body = vmap_inside, .in = 2, .scaled = true},
    {"vmap_of_grad_inside", "d=4", ". A > A", .body = vmap_of_grad_inside, .in = 2, .ulps = 256, .scaled = true},
    {"vmap_named_inside", "d=4", "A > A", .body = vmap_named_inside, .unchecked = true, .scaled = true},
    {"two_layers", GRID, "_/b b a > a", .body = two_layers, .in = 3, .scaled = true},
    {"two_layers_over_both", GRID, "_/a+b b+a . > .", .body = two_layers_over_both, .in = 3, .scaled = true},
    {"layout_exchange", GRID, "a+b > a/b", .body = layout_exchange},
    {"layout_columns", GRID, "b/a > b/a", .body = layout_columns},
    {"layout_both_on_one", GRID, "_/b+a > _/b+a", .body = layout_both_on_one},
    {"shard_map", "d=4", .body = scaled_sum, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"shard_map_around", "d=4", .body = shard_map_around, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"shard_map_vmap", "d=4", .body = shard_map_vmap, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"shard_map_grad_of_vmap", "d=4", .body = shard_map_grad_of_vmap, .in = 2, .out = 2, .modes = "vj", .ulps = 256, .scaled = true,
     .no_hlo = OUTSIDE},
    {"shard_map_vmap_of_grad", "d=4", .body = shard_map_vmap_of_grad, .in = 2, .out = 2, .modes = "v", .ulps = 256, .scaled = true,
     .no_hlo = OUTSIDE},
    {"shard_map_second", "d=4", .body = shard_map_second, .in = 2, .modes = "v", .ulps = 256, .scaled = true, .no_hlo = OUTSIDE},
    {"shard_map_jvp", "d=4", .body = shard_map_jvp, .in = 4, .out = 2, .scaled = true, .no_hlo = OUTSIDE},
};

const VECTOR_GROUP(mesh);
