/* Convolutions, windowed reductions, pools, arrays turned round: windows.py says the same in JAX. */
#include <math.h>

#include "vectors/vectors.h"

#define ALL "f32 f64 bf16 s32"
#define FLOAT "f32 bf16"

#define CONV(name, ...)                                                        \
  static ax_value name(ax_value x, ax_value w) {                               \
    return ax_conv_general_dilated(x, w, &(ax_conv_options){__VA_ARGS__});     \
  }
CONV(conv_plain, .padding = "VALID")
CONV(conv_strided, .strides = {AX_DIMS(2, 3)}, .padding = "SAME")
CONV(conv_nhwc, .lhs = "NHWC", .rhs = "HWIO", .padding = "SAME")
CONV(conv_padded, .low = {AX_DIMS(2)}, .high = {AX_DIMS(1)})
CONV(conv_cut, .strides = {AX_DIMS(2)}, .low = {AX_DIMS(-1)}, .high = {AX_DIMS(-2)})
CONV(conv_lhs_dilated, .strides = {AX_DIMS(1, 2)}, .low = {AX_DIMS(1, 0)}, .high = {AX_DIMS(2, 1)}, .lhs_dilation = {AX_DIMS(2, 3)})
CONV(conv_rhs_dilated, .low = {AX_DIMS(1, 0)}, .high = {AX_DIMS(2, 1)}, .rhs_dilation = {AX_DIMS(2, 3)})
CONV(conv_both_dilated, .strides = {AX_DIMS(3)}, .low = {AX_DIMS(2)}, .high = {AX_DIMS(-1)}, .lhs_dilation = {AX_DIMS(2)},
     .rhs_dilation = {AX_DIMS(3)})
CONV(conv_grouped, .strides = {AX_DIMS(2)}, .padding = "SAME", .feature_group_count = 2)
CONV(conv_depthwise, .lhs = "NHWC", .rhs = "HWIO", .out = "NHWC", .padding = "SAME", .feature_group_count = 4)
CONV(conv_batch_grouped, .padding = "SAME", .batch_group_count = 2)
CONV(conv_long_kernel, .padding = "VALID")
CONV(conv_no_space, .padding = "VALID")
CONV(conv_volume, .strides = {AX_DIMS(1, 2, 1)}, .padding = "SAME")
CONV(conv_orders, .lhs = "CNHW", .rhs = "HOWI", .out = "HCWN", .strides = {AX_DIMS(1, 2)}, .low = {AX_DIMS(1, 0)},
     .high = {AX_DIMS(0, 2)})
CONV(conv_wider, .preferred_element_type = AX_F32)
static ax_value conv_same(ax_value x, ax_value w) { return ax_conv(x, w, NULL, "SAME"); }
static ax_value conv_lower(ax_value x, ax_value w) { return ax_conv(x, w, LIST(2, 1), "SAME_LOWER"); }

static void inner(const ax_value *in, ax_value *out, void *context) { out[0] = ax_conv_general_dilated(in[0], in[1], context); }
static ax_value mapped(ax_value x, ax_value w, int left, int right, const ax_conv_options *options) {
  ax_value in[] = {x, w}, made;
  ax_vmap(AX_CLOSURE(inner, 2, 1, options), in, &made, &(ax_vmap_options){.in_axes = {AX_DIMS(left, right)}});
  return made;
}
#define MAPPED(name, left, right, ...) \
  static ax_value name(ax_value x, ax_value w) { return mapped(x, w, left, right, &(ax_conv_options){__VA_ARGS__}); }
MAPPED(conv_map_left, 0, AX_NOT_MAPPED, .strides = {AX_DIMS(2)}, .padding = "SAME")
MAPPED(conv_map_right, AX_NOT_MAPPED, 3, .padding = "SAME")
MAPPED(conv_map_both, 1, 0, .padding = "VALID")
MAPPED(conv_map_groups, 2, 1, .feature_group_count = 2)
MAPPED(conv_map_right_groups, AX_NOT_MAPPED, 0, .feature_group_count = 2)
MAPPED(conv_map_left_batches, 1, AX_NOT_MAPPED, .batch_group_count = 2)
MAPPED(conv_map_both_batches, 0, 0, .batch_group_count = 2)

#define WINDOW(name, how, window, ...) \
  static ax_value name(ax_value x) { return ax_reduce_window_##how(x, window, &(ax_window_options){__VA_ARGS__}); }
WINDOW(window_sum, sum, LIST(2, 3), .strides = {AX_DIMS(1, 2)})
WINDOW(window_sum_same, sum, LIST(3, 2), .strides = {AX_DIMS(2, 1)}, .padding = "SAME")
WINDOW(window_sum_dilated, sum, LIST(2, 2), .strides = {AX_DIMS(1, 2)}, .low = {AX_DIMS(2, -1)}, .high = {AX_DIMS(1, 2)},
       .base_dilation = {AX_DIMS(2, 1)}, .window_dilation = {AX_DIMS(3, 2)})
WINDOW(window_sum_long, sum, LIST(1, 37), .strides = {AX_DIMS(1, 3)}, .low = {AX_DIMS(0, 5)}, .high = {AX_DIMS(0, 6)})
WINDOW(window_sum_all, sum, LIST(1, 50), .padding = "VALID")
WINDOW(window_max, max, LIST(2, 3), .strides = {AX_DIMS(1, 2)})
WINDOW(window_max_same, max, LIST(3, 2), .strides = {AX_DIMS(2, 1)}, .padding = "SAME")
WINDOW(window_max_dilated, max, LIST(2, 2), .strides = {AX_DIMS(1, 2)}, .low = {AX_DIMS(2, 0)}, .high = {AX_DIMS(1, 2)},
       .window_dilation = {AX_DIMS(3, 2)})
WINDOW(window_max_long, max, LIST(1, 21), .strides = {AX_DIMS(1, 2)}, .padding = "SAME")
WINDOW(window_min, min, LIST(2, 3), .strides = {AX_DIMS(2, 1)}, .padding = "SAME")

/* Few different numbers, so that windows hold several that are equal. */
static ax_value rounded(ax_value x) {
  ax_value up = ax_convert_element_type(ax_convert_element_type(ax_add(ax_abs(x), ax_real(0.5)), AX_S32), AX_F32);
  return ax_mul(up, ax_sign(x));
}
static ax_value most(ax_value x, const int64_t *window) { return ax_reduce_window_max(x, window, NULL); }
static ax_value least(ax_value x, const int64_t *window) { return ax_reduce_window_min(x, window, NULL); }
BODY(window_ties) {
  ax_value x = rounded(in[0]);
  out[0] = ax_reduce_window_max(x, LIST(2, 3), (&(ax_window_options){.strides = {AX_DIMS(1, 2)}, .padding = "SAME"}));
  out[1] = least(x, LIST(3, 2));
}
BODY(most_of_four) { out[0] = most(in[0], LIST(2, 2)); }
BODY(window_tied_derivative) {
  ax_value x = rounded(in[0]), count = ax_reshape(ax_iota(AX_F32, DIMS(30), 0), DIMS(5, 6)), made;
  ax_jvp(AX_FN(most_of_four, 1, 1), AX_FIRST(1), &x, &count, &made, out);
}
static ax_value weighted(ax_value x) {
  ax_value weights = ax_add(ax_reshape(ax_iota(AX_F32, DIMS(12), 0), DIMS(3, 4)), ax_real(1));
  return ax_reduce_sum(ax_mul(x, weights), AX_ALL_DIMS, false);
}
BODY(most_of_nine) { out[0] = weighted(most(in[0], LIST(3, 3))); }
BODY(least_of_nine) { out[0] = weighted(least(in[0], LIST(3, 3))); }
BODY(window_tied_gradient) {
  ax_value x = rounded(in[0]);
  ax_grad(AX_FN(most_of_nine, 1, 1), AX_FIRST(1), &x, &out[0]);
  ax_grad(AX_FN(least_of_nine, 1, 1), AX_FIRST(1), &x, &out[1]);
}
BODY(times) { out[0] = ax_mul(in[0], in[1]); }
BODY(product) {
  const ax_fn f = AX_FN(times, 2, 1);
  ax_value one = ax_full(ax_typeof(in[0]).dtype, AX_DIMS(), 1);
  const ax_window_options dilated = {.strides = {DIMS(1, 2)}, .low = {DIMS(1, 0)}, .high = {DIMS(0, 2)}, .base_dilation = {DIMS(2, 1)},
                                     .window_dilation = {DIMS(1, 2)}};
  const ax_window_options valid = {.strides = {DIMS(2, 1)}, .padding = "VALID"};
  (ax_reduce_window)(1, in, 1, &one, f, DIMS(2, 3), 1, out, &dilated);
  (ax_reduce_window)(1, in, 1, &one, f, DIMS(1, 7), 1, out + 1, &(ax_window_options){.padding = "SAME"});
  (ax_reduce_window)(1, in, 1, &one, f, DIMS(3, 2), 1, out + 2, &valid);
}
BODY(larger) {
  ax_value first = ax_or(ax_gt(in[0], in[2]), ax_and(ax_eq(in[0], in[2]), ax_lt(in[1], in[3])));
  out[0] = ax_where(first, in[0], in[2]);
  out[1] = ax_where(first, in[1], in[3]);
}
BODY(largest_and_place) {
  const ax_type type = ax_typeof(in[0]);
  const ax_value both[] = {in[0], (ax_iota)(AX_S32, type.rank, type.dims, 1)};
  const ax_value starts[] = {ax_full(type.dtype, AX_DIMS(), -INFINITY), ax_full(AX_S32, AX_DIMS(), 99)};
  const ax_window_options options = {.strides = {DIMS(1, 2)}, .padding = "SAME"};
  (ax_reduce_window)(2, both, 2, starts, AX_FN(larger, 4, 2), DIMS(2, 5), 2, out, &options);
}
BODY(pools) {
  out[0] = ax_max_pool(in[0], DIMS(3, 2), LIST(2, 1), "SAME");
  out[1] = ax_avg_pool(in[0], DIMS(3, 2), LIST(2, 1), "SAME");
}
BODY(rev) {
  out[0] = ax_rev(in[0], DIMS(1));
  out[1] = ax_rev(in[0], DIMS(2, 0));
  out[2] = ax_rev(in[0], AX_DIMS());
}

BODY(select_and_gather) {
  out[0] = ax_select_and_gather_add(in[0], in[1], true, AX_DIMS(2, 3), &(ax_window_options){.strides = {AX_DIMS(1, 2)}});
  out[1] = ax_select_and_gather_add(in[0], in[1], false, AX_DIMS(2, 3),
                                    (&(ax_window_options){.strides = {AX_DIMS(2, 1)}, .low = {AX_DIMS(1, 1)}, .high = {AX_DIMS(0, 2)}}));
}
BODY(select_and_gather_dilated) {
  out[0] = ax_select_and_gather_add(
      in[0], in[1], true, AX_DIMS(2, 3),
      (&(ax_window_options){.low = {AX_DIMS(0, 2)}, .high = {AX_DIMS(0, 2)}, .window_dilation = {AX_DIMS(1, 2)}}));
}
BODY(select_and_scatter) {
  const ax_window_options by_two = {.strides = {AX_DIMS(2, 2)}};
  out[0] = ax_select_and_scatter_add(in[0], in[1], true, AX_DIMS(2, 3), &by_two);
  out[1] = ax_select_and_scatter_add(in[0], in[1], false, AX_DIMS(2, 3), &by_two);
}

#define BOTH(name_, variants) {#name_, variants, .binary = name_, .scaled = true}
#define ONE(name_, variants) {#name_, variants, .unary = name_, .scaled = true}

static const vector_case windows_cases[] = {
    BOTH(conv_plain, ALL),
    BOTH(conv_same, FLOAT),
    BOTH(conv_strided, "f32 s32"),
    BOTH(conv_lower, "f32"),
    BOTH(conv_nhwc, FLOAT),
    BOTH(conv_padded, "f32"),
    BOTH(conv_cut, "f32"),
    BOTH(conv_lhs_dilated, "f32"),
    BOTH(conv_rhs_dilated, "f32"),
    BOTH(conv_both_dilated, "f32 s32"),
    BOTH(conv_grouped, "f32 s32"),
    BOTH(conv_depthwise, "f32"),
    BOTH(conv_batch_grouped, "f32"),
    BOTH(conv_long_kernel, "f32"),
    BOTH(conv_no_space, "f32"),
    BOTH(conv_volume, "f32"),
    BOTH(conv_orders, "f32"),
    BOTH(conv_wider, "bf16"),
    BOTH(conv_map_left, "f32"),
    BOTH(conv_map_right, "f32"),
    BOTH(conv_map_both, "f32"),
    BOTH(conv_map_groups, "f32"),
    BOTH(conv_map_right_groups, "f32"),
    BOTH(conv_map_left_batches, "f32"),
    BOTH(conv_map_both_batches, "f32"),
    ONE(window_sum, ALL),
    ONE(window_sum_same, ALL),
    ONE(window_sum_dilated, ALL),
    ONE(window_sum_long, "f32 s32"),
    ONE(window_sum_all, "f32 bf16"),
    ONE(window_max, ALL),
    ONE(window_max_same, "f32 s32 u8"),
    {"window_max_dilated", "f32 s32", .unary = window_max_dilated, .modes = "vj", .scaled = true},
    ONE(window_max_long, "f32"),
    ONE(window_min, "f32 s32 u8"),
    {"window_ties", "f32", .body = window_ties, .out = 2, .modes = "v"},
    {"window_tied_derivative", "f32", .body = window_tied_derivative, .modes = "v"},
    {"window_tied_gradient", "f32", .body = window_tied_gradient, .out = 2, .modes = "v"},
    {"product", "f32 f64 s32", .body = product, .out = 3, .modes = "v"},
    {"largest_and_place", "f32", .body = largest_and_place, .out = 2, .modes = "v"},
    {"select_and_gather", FLOAT, .body = select_and_gather, .in = 2, .out = 2, .scaled = true},
    {"select_and_gather_dilated", "f32", .body = select_and_gather_dilated, .in = 2, .modes = "vj", .scaled = true},
    {"select_and_scatter", FLOAT, .body = select_and_scatter, .in = 2, .out = 2, .scaled = true},
    {"pools", FLOAT, .body = pools, .out = 2, .scaled = true},
    {"rev", "f32 bf16 s32 bool", .body = rev, .out = 3},
};

const VECTOR_GROUP(windows);
