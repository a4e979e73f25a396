/* shard_maps that take one axis of the mesh by hand, and leave the other to the partitioner: partial.py says the same in JAX. */
#include "axle/must.h"
#include "vectors/vectors.h"

enum { UNMAPPED = AX_NOT_MAPPED };

#define GRID "a=4,b=2"

static const ax_mesh *mesh(void *context) { return &((const vector_variant *)context)->mesh; }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static ax_value square(ax_value x) { return ax_integer_pow(x, 2); }

/* w and u lie along the automatic axis. */
static ax_value layers_on(const ax_mesh *mesh, ax_value w, ax_value u, ax_value x, const char *columns, const char *rows) {
  w = ax_with_sharding(w, mesh, columns);
  u = ax_with_sharding(u, mesh, rows);
  return ax_matmul(ax_tanh(ax_matmul(x, w)), u);
}
static ax_value layers(void *context, const ax_value *in) { return layers_on(mesh(context), in[0], in[1], in[2], "_,b", "b"); }

BODY(mean_square) { out[0] = ax_pmean(ax_reduce_mean(square(layers(context, in)), AX_ALL_DIMS, false), "a"); }
BODY(loss) { ax_shard_map_manual(mesh(context), "a", "; ; a -> ", AX_CLOSURE(mean_square, 3, 1, context), in, out); }

BODY(value_and_grads) { ax_value_and_grad(AX_CLOSURE(mean_square, 3, 1, context), AX_FIRST(2), in, out); }
BODY(grad_inside) { ax_shard_map_manual(mesh(context), "a", "; ; a -> ", AX_CLOSURE(value_and_grads, 3, 3, context), in, out); }

BODY(sum_of_squares) { out[0] = total(square(layers(context, in))); }
BODY(summed_grads) {
  ax_value varying[] = {ax_pvary(in[0], "a"), ax_pvary(in[1], "a"), in[2]};
  ax_grad(AX_CLOSURE(sum_of_squares, 3, 1, context), AX_FIRST(2), varying, out);
  for (int i = 0; i < 2; i++) out[i] = ax_psum(out[i], "a");
}
BODY(grad_by_hand) { ax_shard_map_manual(mesh(context), "a", "; ; a -> ", AX_CLOSURE(summed_grads, 3, 2, context), in, out); }

BODY(times_sum_over_b) {
  out[0] = ax_add(ax_mul(in[0], ax_psum(ax_tanh(in[0]), "b")), ax_convert_element_type(ax_axis_index("b"), AX_F32));
}
BODY(with_map_inside) {
  ax_value h = ax_with_sharding(ax_matmul(in[1], in[0]), mesh(context), "_,b");
  ax_shard_map_manual(mesh(context), "b", "_,b -> _,b", AX_FN(times_sum_over_b, 1, 1), &h, &h);
  out[0] = ax_psum(total(square(h)), "a");
  out[1] = ax_cos(h);
}
BODY(nested) { ax_shard_map_manual(mesh(context), "a", "; a -> ; a", AX_CLOSURE(with_map_inside, 2, 2, context), in, out); }

static const int64_t around_a[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};

BODY(exchanges) {
  ax_value x = ax_with_sharding(in[0], mesh(context), "_,b");
  ax_value y = ax_mul(ax_all_gather(x, "a", 0, true), ax_real(2));
  y = ax_psum_scatter(ax_sin(y), "a", 0, true);
  y = ax_add(y, ax_ppermute(x, "a", 4, around_a));
  out[0] = ax_all_to_all(y, "a", 1, 0, true);
}
BODY(collectives) { ax_shard_map_manual(mesh(context), "a", "a -> a", AX_CLOSURE(exchanges, 1, 1, context), in, out); }

BODY(step) {
  ax_value carry = ax_with_sharding(ax_tanh(ax_matmul(in[1], in[0])), mesh(context), "_,b");
  out[0] = in[0];
  out[1] = ax_ppermute(carry, "a", 4, around_a);
  out[2] = ax_reduce_sum(carry, AX_DIMS(0), false);
}
BODY(three_steps) {
  ax_value carry[] = {ax_pvary(in[0], "a"), in[1]}, made[3];
  ax_scan(AX_CLOSURE(step, 2, 3, context), 2, 3, false, carry, made);
  out[0] = made[1];
  out[1] = made[2];
}
BODY(steps) { ax_shard_map_manual(mesh(context), "a", "; a -> a; _,a", AX_CLOSURE(three_steps, 2, 2, context), in, out); }

BODY(descent) {
  ax_value from[] = {in[0], ax_full(AX_F32, AX_DIMS(6, 2), 1), in[1]}, made[3];
  grad_inside(from, made, context);
  out[0] = ax_with_sharding(ax_sub(in[0], ax_mul(made[1], ax_real(0.5))), mesh(context), "_,b");
  out[1] = in[1];
  out[2] = made[0];
}
BODY(in_steps) {
  ax_value made[3];
  ax_scan(AX_CLOSURE(descent, 2, 3, context), 2, 3, false, in, made);
  out[0] = made[0];
  out[1] = made[2];
}

BODY(sine) {
  out[0] = ax_sin(layers_on(mesh(context), in[0], ax_full(AX_F32, AX_DIMS(6, 2), 1), in[1], "_,b", "b"));
}
BODY(twice) {
  ax_checkpoint(AX_CLOSURE(sine, 2, 1, context), in, out, NULL);
  out[0] = ax_mul(out[0], ax_real(2));
}
BODY(less_one) {
  ax_checkpoint(AX_CLOSURE(sine, 2, 1, context), in, out, NULL);
  out[0] = ax_sub(out[0], ax_real(1));
}
BODY(sum_of_chosen) {
  ax_value y;
  ax_if(ax_gt(ax_psum(total(in[1]), "a"), ax_real(0)), AX_CLOSURE(twice, 2, 1, context), AX_CLOSURE(less_one, 2, 1, context), in,
        &y);
  out[0] = ax_psum(total(ax_mul(y, y)), "a");
}
BODY(chosen) { ax_shard_map_manual(mesh(context), "a", "; a -> ", AX_CLOSURE(sum_of_chosen, 2, 1, context), in, out); }

BODY(sum_of_layers) { out[0] = ax_psum(total(layers(context, in)), "a"); }
BODY(unchecked) {
  ax_mesh of_a;
  ax_must(ax_mesh_manual(mesh(context), "a", &of_a));
  ax_shard_map_unchecked(&of_a, "; ; a -> ", AX_CLOSURE(sum_of_layers, 3, 1, context), in, out);
}

BODY(layers_over_b) { out[0] = ax_psum(layers_on(mesh(context), in[0], in[1], in[2], "_,a", "a"), "b"); }
BODY(other_axis) { ax_shard_map_manual(mesh(context), "b", "_,b; b; -> ", AX_CLOSURE(layers_over_b, 3, 1, context), in, out); }

BODY(mapped) { ax_vmap(AX_CLOSURE(loss, 3, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED, UNMAPPED, 0)}}); }

BODY(whole_product) { out[0] = ax_tanh(ax_with_sharding(ax_matmul(in[1], in[0]), mesh(context), "")); }
BODY(one_product) { ax_shard_map_manual(mesh(context), "a", "; a -> a", AX_CLOSURE(whole_product, 2, 1, context), in, out); }
BODY(mapped_over_b) {
  ax_vmap(AX_CLOSURE(one_product, 2, 1, context), in, out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED, 0)}, .spmd_axis_name = "b"});
}

BODY(squared_slopes) {
  ax_value slope;
  ax_grad(AX_CLOSURE(loss, 3, 1, context), AX_FIRST(1), in, &slope);
  out[0] = total(square(slope));
}
BODY(second) { ax_grad(AX_CLOSURE(squared_slopes, 3, 1, context), AX_FIRST(1), in, out); }

BODY(layers_of_twice) {
  const ax_value operands[] = {in[0], in[1], ax_mul(in[2], ax_real(2))};
  out[0] = layers(context, operands);
}
BODY(around) {
  ax_value x = ax_with_sharding(ax_sin(in[2]), mesh(context), "a,b"), y;
  const ax_value operands[] = {in[0], in[1], x};
  ax_shard_map_manual(mesh(context), "a", "; ; a -> a", AX_CLOSURE(layers_of_twice, 3, 1, context), operands, &y);
  out[0] = ax_reduce_sum(ax_mul(y, ax_slice_in_dim(x, 0, 2, 1, 1)), AX_DIMS(0), false);
}

#define OUTSIDE "the case lays its operands out itself"
#define ROW(name_, in_, out_, modes_) \
  {#name_, GRID, .body = name_, .in = (in_), .out = (out_), .modes = (modes_), .ulps = 256, .scaled = true, .no_hlo = OUTSIDE}

static const vector_case partial_cases[] = {
    ROW(loss, 3, 1, NULL),        ROW(grad_inside, 3, 3, "v"), ROW(grad_by_hand, 3, 2, "v"), ROW(nested, 2, 2, "v"),
    ROW(collectives, 1, 1, NULL), ROW(steps, 2, 2, NULL),      ROW(in_steps, 2, 2, "v"),     ROW(chosen, 2, 1, NULL),
    ROW(unchecked, 3, 1, NULL),   ROW(other_axis, 3, 1, NULL), ROW(mapped, 3, 1, NULL),      ROW(mapped_over_b, 2, 1, NULL),
    ROW(second, 3, 1, "v"),       ROW(around, 3, 1, NULL),
};

const VECTOR_GROUP(partial);
