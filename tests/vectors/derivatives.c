/* vjp, linearize, Jacobians and Hessians, and vmap split over a mesh: derivatives.py says the same in JAX. */
#include "vectors/vectors.h"

enum { UNMAPPED = AX_NOT_MAPPED };

#define LINES "d=2 d=4 d=8"
#define GRID "a=4,b=2"

static const vector_variant *variant(void *context) { return context; }
static const char *axes(void *context) { return variant(context)->axes; }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static ax_value square(ax_value x) { return ax_integer_pow(x, 2); }
static ax_value layer(ax_value x, ax_value w) { return ax_tanh(ax_matmul(x, w)); }

/* --- The functions --- */

BODY(layers) { /* x, w, s */
  out[0] = ax_mul(layer(in[0], in[1]), in[2]);
  out[1] = ax_mul(total(ax_exp(in[0])), in[2]);
}
BODY(first_layer) {
  ax_value made[2];
  layers(in, made, context);
  out[0] = made[0];
}
BODY(loss) {
  ax_value made[2];
  layers(in, made, context);
  out[0] = ax_add(total(square(made[0])), square(made[1]));
}
BODY(counted_layers) { /* x, w, s, n */
  ax_value made[2];
  layers(in, made, context);
  out[0] = made[0];
  out[1] = ax_add(in[3], ax_integer(1));
  out[2] = made[1];
}

static const ax_fn layers_fn = {layers, 3, 2, NULL}, first_fn = {first_layer, 3, 1, NULL}, loss_fn = {loss, 3, 1, NULL};

/* --- vjp, linearize --- */

BODY(vjp) { /* x, w, s, n, cy, cz */
  ax_value cotangents[] = {in[4], ax_integer(0), in[5]};
  ax_vjp(AX_FN(counted_layers, 4, 3), AX_ALL_ARGS, in, cotangents, out, out + 3);
}
BODY(vjp_some) { ax_vjp(first_fn, AX_ARGS(1), in, in + 4, out, out + 1); }

BODY(linearize) { /* x, w, s, dx, dw, ds, cy, cz */
  ax_value made[2], tangents[] = {ax_mul(in[3], ax_integer(2)), in[4], in[5]}, cotangents[] = {ax_mul(in[6], ax_integer(3)), in[7]};
  ax_linear map = ax_linearize(layers_fn, AX_ALL_ARGS, in, made);
  ax_pushforward(map, in + 3, out);
  ax_pushforward(map, tangents, out + 2);
  ax_pullback(map, in + 6, out + 4);
  ax_pullback(map, cotangents, out + 7);
}

/* --- Jacobians --- */

BODY(jacfwd) { (void)context, ax_jacfwd(layers_fn, AX_ALL_ARGS, in, out); }
BODY(jacrev) { (void)context, ax_jacrev(layers_fn, AX_FIRST(3), in, out); }
BODY(jacfwd_some) { (void)context, ax_jacfwd(layers_fn, AX_ARGS(0, 2), in, out); }

BODY(edge_shapes) {
  out[0] = ax_mul(total(in[0]), ax_exp(total(in[1])));
  out[1] = ax_mul(in[1], total(in[0]));
  out[2] = ax_full(ax_typeof(in[0]).dtype, DIMS(2, 2), 1);
}
BODY(jacfwd_edges) { ax_jacfwd(AX_CLOSURE(edge_shapes, 2, 3, context), AX_ALL_ARGS, in, out); }
BODY(jacrev_edges) { ax_jacrev(AX_CLOSURE(edge_shapes, 2, 3, context), AX_ALL_ARGS, in, out); }

BODY(hessian) { ax_hessian(loss_fn, AX_ALL_ARGS, in, out); }
BODY(hessian_of_vector) { ax_hessian(first_fn, AX_ARGS(0), in, out); }
BODY(hvp) { ax_hvp(loss_fn, AX_ALL_ARGS, in, in + 3, out, out + 3); }

BODY(rnn_step) { /* w, h, x */
  out[0] = in[0];
  out[1] = ax_tanh(ax_add(ax_matmul(in[1], in[0]), in[2]));
  out[2] = total(ax_mul(in[1], in[2]));
}
BODY(rnn) { /* h, xs, w */
  ax_value operands[] = {in[2], in[0], in[1]}, made[3];
  ax_scan(AX_CLOSURE(rnn_step, 3, 3, context), 2, 3, false, operands, made);
  out[0] = made[1];
  out[1] = made[2];
}
BODY(jacrev_scan) { ax_jacrev(AX_CLOSURE(rnn, 3, 2, context), AX_ALL_ARGS, in, out); }
BODY(jacfwd_scan) { ax_jacfwd(AX_CLOSURE(rnn, 3, 2, context), AX_ALL_ARGS, in, out); }

BODY(is_large) { out[0] = ax_gt(total(square(in[0])), ax_real(1)); }
BODY(smaller) { out[0] = ax_mul(ax_mul(in[0], ax_real(0.5)), ax_tanh(*(const ax_value *)context)); }
BODY(until) {
  ax_value w = in[1];
  ax_while(AX_CLOSURE(is_large, 1, 1, context), AX_CLOSURE(smaller, 1, 1, &w), in, out);
}
BODY(jacfwd_while) { ax_jacfwd(AX_CLOSURE(until, 2, 1, context), AX_ALL_ARGS, in, out); }

BODY(tanh_times) { out[0] = ax_mul(ax_tanh(in[0]), in[1]); }
BODY(exp_of_product) { out[0] = ax_exp(ax_mul(in[0], in[1])); }
BODY(itself) { out[0] = in[0]; }
BODY(branch) {
  const ax_fn branches[] = {AX_FN(tanh_times, 2, 1), AX_FN(exp_of_product, 2, 1), AX_FN(itself, 2, 1)};
  ax_switch(in[0], AX_LIST(3, branches), in + 1, out);
}
BODY(jacrev_switch) { ax_jacrev(AX_CLOSURE(branch, 3, 1, context), AX_ALL_ARGS, in, out); }

/* --- With vmap, and with one another --- */

BODY(jacrev_first) { ax_jacrev(first_fn, AX_ARGS(0), in, out); }
BODY(vmap_of_jacrev) {
  ax_vmap(AX_CLOSURE(jacrev_first, 3, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED, UNMAPPED)}});
}
BODY(hvp_first) { ax_hvp(loss_fn, AX_ARGS(0), in, in + 3, NULL, out); }
BODY(vmap_of_hvp) {
  ax_vmap(AX_CLOSURE(hvp_first, 4, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED, UNMAPPED, 0)}});
}

BODY(centred) {
  ax_value y = ax_tanh(ax_mul(in[0], in[1]));
  out[0] = ax_sub(y, ax_pmean(y, "i"));
}
static const ax_vmap_options members = {.in_axes = {AX_DIMS(0, UNMAPPED)}, .axis_name = "i"};
BODY(all_centred) { ax_vmap(AX_CLOSURE(centred, 2, 1, context), in, out, &members); }
BODY(jacfwd_of_vmap_named) { ax_jacfwd(AX_CLOSURE(all_centred, 2, 1, context), AX_ALL_ARGS, in, out); }
BODY(jacrev_centred) { ax_jacrev(AX_CLOSURE(centred, 2, 1, context), AX_FIRST(1), in, out); }
BODY(vmap_named_of_jacrev) { ax_vmap(AX_CLOSURE(jacrev_centred, 2, 1, context), in, out, &members); }

BODY(jacfwd_by_w) { ax_jacfwd(first_fn, AX_ARGS(1), in, out); }
BODY(jacrev_of_jacfwd) { ax_jacrev(AX_CLOSURE(jacfwd_by_w, 3, 1, context), AX_ARGS(0), in, out); }

BODY(push_step) {
  ax_value made;
  ax_pushforward(*(const ax_linear *)context, in, &made);
  out[0] = ax_add(in[0], ax_mul(ax_reduce_mean(made, AX_ALL_DIMS, false), ax_real(0.1)));
  out[1] = made;
}
BODY(push_often) { /* x, w, s, v */
  ax_value y, made[2];
  ax_linear map = ax_linearize(first_fn, AX_ARGS(1), in, &y);
  ax_scan(AX_CLOSURE(push_step, 1, 2, &map), 1, 3, false, in + 3, made);
  out[0] = ax_add(total(made[0]), total(square(made[1])));
}
BODY(linear_captured) { ax_value_and_grad(AX_CLOSURE(push_often, 4, 1, context), AX_FIRST(1), in, out); }

/* --- In a shard_map --- */

BODY(device_layer) {
  out[0] = ax_psum(layer(in[0], in[1]), axes(context));
  out[1] = ax_mul(in[0], ax_integer(2));
}
BODY(vjp_inside) {
  ax_value cotangents[] = {ax_real(0.5), in[2]}, made[2];
  ax_vjp(AX_CLOSURE(device_layer, 2, 2, context), AX_ALL_ARGS, in, cotangents, made, out + 1);
  out[0] = made[0];
}
BODY(linearize_inside) {
  ax_value made[2], tangents[] = {in[2], ax_mul(in[1], ax_real(0.25))};
  ax_linear map = ax_linearize(AX_CLOSURE(device_layer, 2, 2, context), AX_ALL_ARGS, in, made);
  out[0] = made[0];
  ax_pushforward(map, tangents, out + 1);
}
BODY(summed_layer) { out[0] = ax_psum(layer(in[0], in[1]), axes(context)); }
BODY(device_loss) { out[0] = ax_psum(total(square(layer(in[0], in[1]))), axes(context)); }
BODY(jacrev_inside) { ax_jacrev(AX_CLOSURE(summed_layer, 2, 1, context), AX_ARGS(1), in, out); }
BODY(jacfwd_inside) { ax_jacfwd(AX_CLOSURE(summed_layer, 2, 1, context), AX_ARGS(1), in, out); }
BODY(hvp_inside) { ax_hvp(AX_CLOSURE(device_loss, 2, 1, context), AX_ARGS(1), in, in + 2, out, out + 1); }
BODY(hessian_inside) { ax_hessian(AX_CLOSURE(device_loss, 2, 1, context), AX_ARGS(1), in, out); }

/* --- vmap split over a mesh --- */

BODY(on_b) {
  out[0] = ax_psum(ax_mul(ax_tanh(in[0]), in[1]), "b");
  out[1] = ax_exp(in[0]);
}
BODY(over_b) { ax_shard_map(&variant(context)->mesh, "b; -> ; b", AX_FN(on_b, 2, 2), in, out); }
BODY(split) {
  const ax_vmap_options options = {.in_axes = {AX_DIMS(1, UNMAPPED)}, .out_axes = {AX_DIMS(0, 1)}, .spmd_axis_name = "a"};
  ax_vmap(AX_CLOSURE(over_b, 2, 2, context), in, out, &options);
}

BODY(sum_of_products) { out[0] = total(ax_mul(ax_tanh(in[0]), in[1])); }
BODY(over_all) { ax_shard_map(&variant(context)->mesh, " -> ", AX_FN(sum_of_products, 2, 1), in, out); }
BODY(split_over_b) {
  ax_vmap(AX_CLOSURE(over_all, 2, 1, context), in, out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED)}, .spmd_axis_name = "b"});
}
BODY(split_twice) {
  ax_vmap(AX_CLOSURE(split_over_b, 2, 1, context), in, out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED)}, .spmd_axis_name = "a"});
}

BODY(scan_step) { /* w, c, s */
  out[0] = in[0];
  out[1] = ax_tanh(ax_add(ax_mul(in[1], in[0]), in[2]));
  out[2] = ax_psum(total(in[1]), "b");
}
BODY(scan_on_b) {
  ax_value operands[] = {in[1], ax_full_like(in[0], 1), ax_stack(AX_VALUES(in[0], ax_mul(in[0], ax_integer(2))), 0)}, made[3];
  ax_scan(AX_FN(scan_step, 3, 3), 2, 2, false, operands, made);
  out[0] = made[1];
  out[1] = made[2];
}
BODY(scan_over_b) { ax_shard_map(&variant(context)->mesh, "b; -> b; ", AX_FN(scan_on_b, 2, 2), in, out); }
BODY(split_scan) {
  ax_vmap(AX_CLOSURE(scan_over_b, 2, 2, context), in, out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED)}, .spmd_axis_name = "a"});
}

static const ax_vmap_options columns = {.in_axes = {AX_DIMS(1, UNMAPPED)}, .spmd_axis_name = "a"};
BODY(first_over_b) {
  ax_value made[2];
  over_b(in, made, context);
  out[0] = made[0];
}
BODY(squares_over_b) {
  first_over_b(in, out, context);
  out[0] = total(square(out[0]));
}
BODY(slopes_over_b) { ax_grad(AX_CLOSURE(squares_over_b, 2, 1, context), AX_FIRST(2), in, out); }
BODY(split_grad) { ax_vmap(AX_CLOSURE(slopes_over_b, 2, 2, context), in, out, &columns); }
BODY(jacobian_over_b) { ax_jacrev(AX_CLOSURE(first_over_b, 2, 1, context), AX_FIRST(1), in, out); }
BODY(split_jacobian) { ax_vmap(AX_CLOSURE(jacobian_over_b, 2, 1, context), in, out, &columns); }

BODY(own_square) { out[0] = square(in[0]); }
BODY(unmapped) {
  ax_vmap(AX_CLOSURE(own_square, 1, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED)}, .size = 3});
}

#define OUTSIDE "operations stand outside the shard_map, on sharded values, or the case lays its operands out itself"
#define FLOAT "f32 f64"

static const vector_case derivatives_cases[] = {
    {"vjp", FLOAT " bf16", .body = vjp, .in = 6, .out = 6, .modes = "v", .ulps = 64, .scaled = true},
    {"vjp_some", FLOAT, .body = vjp_some, .in = 6, .out = 2, .modes = "v", .ulps = 64, .scaled = true},
    {"linearize", FLOAT " bf16", .body = linearize, .in = 8, .out = 10, .modes = "v", .ulps = 64, .scaled = true},
    {"jacfwd", FLOAT " bf16", .body = jacfwd, .in = 3, .out = 6, .ulps = 64, .scaled = true},
    {"jacrev", FLOAT " bf16", .body = jacrev, .in = 3, .out = 6, .ulps = 64, .scaled = true},
    {"jacfwd_some", FLOAT, .body = jacfwd_some, .in = 3, .out = 4, .ulps = 64, .scaled = true},
    {"jacfwd_edges", FLOAT, .body = jacfwd_edges, .in = 2, .out = 6, .ulps = 64, .scaled = true},
    {"jacrev_edges", FLOAT, .body = jacrev_edges, .in = 2, .out = 6, .ulps = 64, .scaled = true},
    {"hessian", FLOAT, .body = hessian, .in = 3, .out = 9, .modes = "vj", .ulps = 256, .scaled = true},
    {"hessian_of_vector", "f64", .body = hessian_of_vector, .in = 3, .modes = "v", .ulps = 256, .scaled = true},
    {"hvp", FLOAT, .body = hvp, .in = 6, .out = 6, .ulps = 256, .scaled = true},
    {"jacrev_scan", FLOAT, .body = jacrev_scan, .in = 3, .out = 6, .modes = "vj", .ulps = 64, .scaled = true},
    {"jacfwd_scan", FLOAT, .body = jacfwd_scan, .in = 3, .out = 6, .modes = "vj", .ulps = 64, .scaled = true},
    {"jacfwd_while", FLOAT, .body = jacfwd_while, .in = 2, .out = 2, .modes = "vj", .ulps = 64, .scaled = true},
    {"jacrev_switch", FLOAT, .body = jacrev_switch, .in = 3, .out = 2, .ulps = 64, .scaled = true},
    {"vmap_of_jacrev", FLOAT, .body = vmap_of_jacrev, .in = 3, .ulps = 64, .scaled = true},
    {"vmap_of_hvp", FLOAT, .body = vmap_of_hvp, .in = 4, .modes = "vj", .ulps = 256, .scaled = true},
    {"jacfwd_of_vmap_named", FLOAT, .body = jacfwd_of_vmap_named, .in = 2, .out = 2, .ulps = 64, .scaled = true},
    {"vmap_named_of_jacrev", FLOAT, .body = vmap_named_of_jacrev, .in = 2, .ulps = 64, .scaled = true},
    {"jacrev_of_jacfwd", "f64", .body = jacrev_of_jacfwd, .in = 3, .modes = "vj", .ulps = 256, .scaled = true},
    {"linear_captured", FLOAT, .body = linear_captured, .in = 4, .out = 2, .modes = "vj", .ulps = 256, .scaled = true},
    {"vjp_inside", LINES " " GRID ":a", "A . A > R A R", .body = vjp_inside, .in = 3, .out = 3, .ulps = 64, .scaled = true},
    {"linearize_inside", LINES " " GRID ":a", "A . A > R R A", .body = linearize_inside, .in = 3, .out = 3, .ulps = 64,
     .scaled = true},
    {"jacrev_inside", "d=4", "A . > .", .body = jacrev_inside, .in = 2, .ulps = 64, .scaled = true},
    {"jacfwd_inside", "d=4", "A . > .", .body = jacfwd_inside, .in = 2, .ulps = 64, .scaled = true},
    {"hvp_inside", LINES " " GRID ":a", "A . . > R R", .body = hvp_inside, .in = 3, .out = 2, .ulps = 256, .scaled = true},
    {"hessian_inside", "d=4", "A . > .", .body = hessian_inside, .in = 2, .modes = "v", .ulps = 256, .scaled = true},
    {"split", GRID, .body = split, .in = 2, .out = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"split_twice", GRID, .body = split_twice, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"split_scan", GRID, .body = split_scan, .in = 2, .out = 2, .ulps = 64, .scaled = true, .no_hlo = OUTSIDE},
    {"split_grad", GRID, .body = split_grad, .in = 2, .out = 2, .modes = "vj", .ulps = 256, .scaled = true, .no_hlo = OUTSIDE},
    {"split_jacobian", GRID, .body = split_jacobian, .in = 2, .modes = "vj", .ulps = 64, .scaled = true, .no_hlo = OUTSIDE},
    {"unmapped", FLOAT, .body = unmapped},
};

const VECTOR_GROUP(derivatives);
