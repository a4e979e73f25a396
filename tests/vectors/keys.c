/* Keys as a dtype: keys.py says the same in JAX. All results are JAX's to the bit. */
#include "axle/random.h"

#include "vectors.h"

static ax_value wrap(ax_value words) { return ax_random_wrap_key_data(words); }
static ax_value data(ax_value keys) { return ax_random_key_data(keys); }
static ax_value unit(ax_value key, uint32_t rank, const int64_t *dims) {
  return (ax_random_uniform)(key, AX_F32, rank, dims, ax_integer(0), ax_integer(1));
}

BODY(of_seed) { out[0] = data(ax_random_typed_key(in[0])); }
BODY(split) { out[0] = data(ax_random_split(wrap(in[0]), AX_DIMS(2, 3))); }
BODY(fold_in) { out[0] = data(ax_random_fold_in(wrap(in[0]), ax_integer(77))); }

BODY(draws) {
  const ax_value k = wrap(in[0]);
  out[0] = unit(k, AX_DIMS(3));
  out[1] = ax_random_randint(k, AX_S32, AX_DIMS(5), ax_integer(0), ax_integer(100));
  out[2] = ax_random_permutation(k, ax_integer(7), 0, false);
  out[3] = ax_random_bits(k, AX_U32, AX_DIMS(2));
}

BODY(moves) {
  static const bool first[] = {true, false, true};
  const ax_type flags = ax_array_type(AX_BOOL, AX_DIMS(3));
  const ax_value k = wrap(in[0]), column[] = {ax_at(k, 0, 1), ax_at(k, 1, 1)};
  const ax_value across = ax_reshape(ax_transpose(k, AX_DIMS(1, 0)), AX_DIMS(6)), back = ax_rev(column[0], AX_DIMS(0));
  const ax_value moved = ax_concatenate(AX_VALUES(across, back, ax_broadcast_to(ax_at(column[1], 0, 0), AX_DIMS(2))), 0);
  const ax_value chosen = ax_where(ax_constant(&flags, first), column[0], column[1]);
  const ax_gather_dims dims = {.collapsed_slice_dims = {AX_DIMS(0)}, .start_index_map = {AX_DIMS(0)}};
  out[0] = data(moved);
  out[1] = data(chosen);
  out[2] = data(ax_gather(moved, ax_expand_dims(in[1], 1), AX_DIMS(1), &dims, NULL));
  out[3] = data(ax_slice_in_dim(moved, 0, 11, 4, 0));
  out[4] = data(ax_full_like(chosen, 7));
}

BODY(compares) {
  const ax_value k = wrap(in[0]), two = ax_slice_in_dim(k, 0, 2, 1, 0), other = ax_concatenate(AX_VALUES(two, two), 0);
  out[0] = ax_eq(k, other);
  out[1] = ax_ne(k, other);
}

BODY(updates) {
  const ax_value k = wrap(in[0]), two = ax_slice_in_dim(k, 0, 2, 1, 0), one = ax_slice_in_dim(k, 0, 1, 1, 0);
  const ax_scatter_dims dims = {.inserted_window_dims = {AX_DIMS(0)}, .scatter_dims_to_operand_dims = {AX_DIMS(0)}};
  out[0] = data(ax_dynamic_slice(k, AX_VALUES(in[1]), AX_DIMS(2)));
  out[1] = data(ax_dynamic_update_slice(k, two, AX_VALUES(in[1])));
  out[2] = data(ax_scatter(k, ax_broadcast_to(in[1], AX_DIMS(1, 1)), one, &dims, NULL));
}

BODY(scan_step) {
  const ax_value both = ax_random_split(in[0], AX_DIMS(2));
  out[0] = ax_at(both, 0, 0);
  out[1] = ax_random_fold_in(in[1], ax_integer(3));
  out[2] = unit(ax_at(both, 1, 0), AX_DIMS(2));
}
BODY(scans) {
  ax_scan(AX_FN(scan_step, 2, 3), 1, -1, false, AX_VALUES(wrap(in[0]), wrap(in[1])), AX_LIST(3, out));
  for (int i = 0; i < 2; i++) out[i] = data(out[i]);
}

BODY(below_five) { out[0] = ax_lt(in[0], ax_integer(5)); }
BODY(while_step) {
  const ax_value both = ax_random_split(in[1], AX_DIMS(2));
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = ax_at(both, 0, 0);
  out[2] = ax_xor(in[2], ax_random_bits(ax_at(both, 1, 0), AX_U32, AX_DIMS(3)));
}
BODY(whiles) {
  ax_value made[3];
  const ax_value zero = ax_full(AX_S32, AX_DIMS(), 0), zeros = ax_full(AX_U32, AX_DIMS(3), 0);
  ax_while(AX_FN(below_five, 3, 1), AX_FN(while_step, 3, 3), AX_VALUES(zero, wrap(in[0]), zeros), AX_LIST(3, made));
  out[0] = data(made[1]), out[1] = made[2];
}

BODY(folds) { out[0] = ax_random_fold_in(in[0], ax_integer(1)); }
BODY(splits) { out[0] = ax_at(ax_random_split(in[0], AX_DIMS(2)), 1, 0); }
BODY(either) { ax_if(ax_gt(in[0], ax_integer(0)), AX_FN(folds, 1, 1), AX_FN(splits, 1, 1), AX_VALUES(in[1]), AX_LIST(1, out)); }
BODY(conds) {
  const ax_value k = wrap(in[0]);
  for (int i = 0; i < 2; i++) either((ax_value[]){ax_at(in[1], i, 0), k}, &out[i], context);
  ax_vmap(AX_FN(either, 2, 1), AX_VALUES(in[1], k), AX_LIST(1, out + 2),
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}});
  for (int i = 0; i < 3; i++) out[i] = data(out[i]);
}

BODY(draw_two) { out[0] = unit(in[0], AX_DIMS(2)); }
BODY(draw_rows) { ax_vmap(AX_FN(draw_two, 1, 1), AX_LIST(1, in), AX_LIST(1, out), NULL); }
BODY(split_two) { out[0] = ax_random_split(in[0], AX_DIMS(2)); }
BODY(split_rows) { ax_vmap(AX_FN(split_two, 1, 1), AX_LIST(1, in), AX_LIST(1, out), NULL); }
BODY(batches) {
  const ax_value k = wrap(in[0]);
  ax_vmap(AX_FN(draw_rows, 1, 1), AX_VALUES(k), AX_LIST(1, out),
          &(ax_vmap_options){.in_axes = {AX_DIMS(1)}, .out_axes = {AX_DIMS(1)}});
  ax_vmap(AX_FN(split_rows, 1, 1), AX_VALUES(k), AX_LIST(1, out + 1),
          &(ax_vmap_options){.in_axes = {AX_DIMS(1)}, .out_axes = {AX_DIMS(2)}});
  out[1] = data(out[1]);
}

BODY(choice) { out[0] = data(ax_random_choice(wrap(in[0]), wrap(in[1]), AX_DIMS(3), true, (ax_value){0}, 0, AX_RANDOM_LOW)); }

BODY(gradient_step) {
  const ax_value both = ax_random_split(in[0], AX_DIMS(2));
  out[0] = ax_at(both, 0, 0);
  out[1] = ax_tanh(ax_mul(in[1], unit(ax_at(both, 1, 0), AX_DIMS())));
  out[2] = in[1];
}
BODY(gradient) {
  ax_value made[3];
  ax_scan(AX_FN(gradient_step, 2, 3), 2, 3, false, AX_VALUES(wrap(in[0]), in[1]), AX_LIST(3, made));
  out[0] = ax_add(made[1], ax_reduce_sum(made[2], AX_DIMS(0), false));
}

BODY(shards) {
  static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  const ax_value k = wrap(in[0]), sent = ax_ppermute(k, "d", 4, ring);
  out[0] = data(ax_all_to_all(ax_concatenate(AX_VALUES(k, sent), 0), "d", 0, 0, true));
  out[1] = ax_random_bits(ax_random_fold_in(ax_at(sent, 0, 0), ax_axis_index("d")), AX_U32, AX_DIMS(2));
}

static const vector_case keys_cases[] = {
    {"of_seed", "s32 u32 s64 u64", .body = of_seed},
    {"split", "u32", .body = split},
    {"fold_in", "u32", .body = fold_in},
    {"draws", "u32", .body = draws, .out = 4},
    {"moves", "u32", .body = moves, .in = 2, .out = 5},
    {"compares", "u32", .body = compares, .out = 2},
    {"updates", "u32", .body = updates, .in = 2, .out = 3},
    {"scans", "u32", .body = scans, .in = 2, .out = 3},
    {"whiles", "u32", .body = whiles, .out = 2},
    {"conds", "u32", .body = conds, .in = 2, .out = 3},
    {"batches", "u32", .body = batches, .out = 2},
    {"choice", "u32", .body = choice, .in = 2},
    {"gradient", "f32", .body = gradient, .in = 2},
    {"shards", "d=4", "A > A A", .body = shards, .out = 2},
};

const VECTOR_GROUP(keys);
