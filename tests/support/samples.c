/* The table. For each primitive what makes it different: its forms, parameters at their ends, shapes where it has a case to
   itself. */
#include "base/base.h"
#include "support/sample.h"

#define ONE "{ lambda x:T[S]. let y:T[S] = O x in (y,) }"
#define TWO "{ lambda x:T[S] y:T[S]. let z:T[S] = O x y in (z,) }"
#define COMPARE "{ lambda x:T[S] y:T[S]. let z:bool[S] = O x y in (z,) }"
#define POWER(n) "{ lambda x:T[S]. let y:T[S] = integer_pow[y=" #n "] x in (y,) }"
#define RESHAPE(from, to) "{ lambda x:T[" from "]. let y:T[" to "] = reshape[new_sizes=(" to ")] x in (y,) }"
#define TRANSPOSE(from, to, permutation) \
  "{ lambda x:T[" from "]. let y:T[" to "] = transpose[permutation=(" permutation ")] x in (y,) }"
#define BROADCAST(from, to, dims)                                                                         \
  "{ lambda x:T[" from "]. let y:T[" to "] = broadcast_in_dim[shape=(" to ") broadcast_dimensions=(" dims \
  ")] x in (y,) }"
#define SLICE(from, to, start, limit, steps)                                                        \
  "{ lambda x:T[" from "]. let y:T[" to "] = slice[start_indices=(" start ") limit_indices=(" limit \
  ") strides=(" steps ")] x in (y,) }"
#define PAD(from, to, low_, high_, interior)                                                                \
  "{ lambda x:T[" from "] v:T[]. let y:T[" to "] = pad[low=(" low_ ") high=(" high_ ") interior=(" interior \
  ")] x v in (y,) }"
#define IOTA(shape, dim) \
  "{ lambda x:T[2]. let y:T[" shape "] = iota[dtype=T shape=(" shape ") dimension=" #dim "] in (y, x) }"
#define REDUCE(from, to, over) "{ lambda x:T[" from "]. let y:T[" to "] = O[axes=(" over ")] x in (y,) }"
#define ARGMAX(from, to, axis, index) \
  "{ lambda x:T[" from "]. let y:" index "[" to "] = O[axes=(" axis ") index_dtype=" index "] x in (y,) }"
/* By (1 + a)(1 + b) - 1; and the greatest first operand, or the first NaN, with what stands beside it in the second. */
#define REDUCE_BY(from, start, to, over)                                                                                      \
  "{ lambda x:T[" from "] s:T[" start "]. let y:T[" to "] = reduce[body={ lambda a:T[] b:T[]. let p:T[] = mul a b q:T[] = add a b "  \
  "r:T[] = add p q in (r,) } axes=(" over ")] x s in (y,) }"
#define REDUCE_PAIR(from, start, to, over)                                                                                    \
  "{ lambda x:T[" from "] z:s32[" from "] s:T[" start "] t:s32[" start "]. let y:T[" to "] w:s32[" to "] = reduce[body={ lambda a:T[] c:s32[] "  \
  "b:T[] d:s32[]. let h:bool[] = ge a b i:bool[] = ne a a g:bool[] = or h i m:T[] = select_n g b a n:s32[] = select_n g d c in (m, n) } axes=(" over ")] x z s t in (y, w) }"
#define DOT(left, right, result, lc, rc, lb, rb)                                                                     \
  "{ lambda x:T[" left "] y:T[" right "]. let z:T[" result "] = dot_general[lhs_contract=(" lc ") rhs_contract=(" rc \
  ") lhs_batch=(" lb ") rhs_batch=(" rb ")] x y in (z,) }"

#define CONV(left, right, result, strides, low_, high_, lhs_dilation, rhs_dilation, specs, fg, bg)                           \
  "{ lambda x:T[" left "] y:T[" right "]. let z:T[" result "] = conv_general_dilated[window_strides=(" strides               \
  ") padding_low=(" low_ ") padding_high=(" high_ ") lhs_dilation=(" lhs_dilation ") rhs_dilation=(" rhs_dilation ") " specs \
  " feature_group_count=" #fg " batch_group_count=" #bg "] x y in (z,) }"
#define NCW "lhs_spec=(0, 1, 2) rhs_spec=(0, 1, 2) out_spec=(0, 1, 2)"
#define NHWC "lhs_spec=(0, 3, 1, 2) rhs_spec=(3, 2, 0, 1) out_spec=(0, 3, 1, 2)"
#define WINDOW(from, to, window, strides, low_, high_, base, dilation)                                                         \
  "{ lambda x:T[" from "]. let y:T[" to "] = O[window_dimensions=(" window ") window_strides=(" strides ") padding_low=(" low_ \
  ") padding_high=(" high_ ") base_dilation=(" base ") window_dilation=(" dilation ")] x in (y,) }"
#define GATHER(x, indices, y, offset, collapsed, map, batching, index_batching, mode_, sizes, fill)                      \
  "{ lambda x:T[" x "] i:" indices ". let y:T[" y "] = gather[offset_dims=(" offset ") collapsed_slice_dims=(" collapsed \
  ") start_index_map=(" map ") operand_batching_dims=(" batching ") start_indices_batching_dims=(" index_batching        \
  ") mode=\"" mode_ "\" indices_are_sorted=false unique_indices=false slice_sizes=(" sizes ") fill_value=" fill          \
  ":T[]] x i in (y,) }"
#define FFT(type, from, to, n, axis) \
  "{ lambda x:" from ". let y:" to " = fft[fft_type=\"" type "\" fft_length=" #n " axis=" #axis "] x in (y,) }"
#define CUMULATIVE(dims, axis, reverse) \
  "{ lambda x:T[" dims "]. let y:T[" dims "] = O[axis=" #axis " reverse=" #reverse "] x in (y,) }"
#define SCATTER(mode_, unique, x, indices, u, window, inserted, map, batching, index_batching)                              \
  "{ lambda x:T[" x "] i:" indices " u:T[" u "]. let y:T[" x "] = O[update_window_dims=(" window                            \
  ") inserted_window_dims=(" inserted ") scatter_dims_to_operand_dims=(" map ") operand_batching_dims=(" batching           \
  ") scatter_indices_batching_dims=(" index_batching ") mode=\"" mode_ "\" indices_are_sorted=false unique_indices=" unique \
  "] x i u in (y,) }"

/* Matrices with a large diagonal, made of x and a constant, are positive definite. */
#define CHOLESKY(dims, diagonal) \
  "{ lambda x:T[" dims "]. let d:T[" dims "] = constant[value=" diagonal ":T[" dims "]] a:T[" dims "] = add x d y:T[" dims \
  "] = cholesky a in (y,) }"
#define RANDOM_BITS(keys, bits, dims, whole)                                             \
  "{ lambda x:T[" keys "]. let k:u32[" keys "] = convert_element_type[dtype=u32] x y:" bits "[" whole "] = O[dtype=" bits \
  " shape=(" dims ")] k in (y,) }"
#define TRIANGULAR(a, b, diagonal, left, lower, transposed, unit)                                                               \
  "{ lambda x:T[" a "] y:T[" b "]. let d:T[" a "] = constant[value=" diagonal ":T[" a "]] a:T[" a "] = add x d z:T[" b          \
  "] = triangular_solve[left_side=" left " lower=" lower " transpose_a=" transposed " conjugate_a=false unit_diagonal=" unit    \
  "] a y in (z,) }"
#define LINEAR_SOLVE(a, b, p, diagonal, transposed)                                                                         \
  "{ lambda x:T[" a "] y:T[" b "]. let d:T[" a "] = constant[value=" diagonal ":T[" a "]] a:T[" a "] = add x d f:T[" a      \
  "] p:s32[" p "] = lu a z:T[" b "] = linear_solve[transpose_a=" transposed "] a f p y in (z,) }"
#define FACTORED(prim, x, taus) "{ lambda x:T[" x "]. let f:T[" x "] t:T[" taus "] = " prim " x in (f, t) }"
#define PIVOTED(x, p, taus, order)                                                                                          \
  "{ lambda x:T[" x "]. let o:s32[" p "] = constant[value=" order ":s32[" p "]] f:T[" x "] q:s32[" p "] t:T[" taus           \
  "] = geqp3 x o in (f, q, t) }"
#define QR(x, q, r, full) \
  "{ lambda x:T[" x "]. let q:T[" q "] r:T[" r "] = qr[full_matrices=" full " pivoting=false] x in (q, r) }"
#define SVD(x, s, u, vt, full)                                                                                              \
  "{ lambda x:T[" x "]. let s:T[" s "] u:T[" u "] v:T[" vt "] = svd[full_matrices=" full " compute_uv=true] x in (s, u, v) }"
/* The columns that full matrices add are any: their products alone are smooth. */
#define PROJECTED(x, s, u, vt, projector)                                                                          \
  "{ lambda x:T[" x "]. let s:T[" s "] u:T[" u "] v:T[" vt "] = svd[full_matrices=true compute_uv=true] x " projector        \
  " in (s, y) }"
/* y: the columns of v, each divided by its first element. */
#define BY_FIRST(n)                                                                                                                \
  "r:T[1," n "] = slice[start_indices=(0, 0) limit_indices=(1, " n ") strides=(1, 1)] v c:T[" n "," n                            \
  "] = broadcast_in_dim[shape=(" n ", " n ") broadcast_dimensions=(0, 1)] r y:T[" n "," n "] = div v c"
/* y: the product of the first two columns of u and the first two rows of v. */
#define BY_TWO(m, n)                                                                                                              \
  "a:T[" m ",2] = slice[start_indices=(0, 0) limit_indices=(" m ", 2) strides=(1, 1)] u b:T[2," n                                \
  "] = slice[start_indices=(0, 0) limit_indices=(2, " n ") strides=(1, 1)] v y:T[" m "," n                                       \
  "] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] a b"
#define EIG(in, outs, left, right, x, names)                                                                                     \
  "{ lambda " in ". let " outs " = O[compute_left_eigenvectors=" left " compute_right_eigenvectors=" right "] " x " in (" names ",) }"
#define REAL_EIG(n, outs, left, right, names)                                                                                    \
  "{ lambda x:T[" n "]. let a:f64[" n "] = convert_element_type[dtype=f64] x " outs " = O[compute_left_eigenvectors=" left     \
  " compute_right_eigenvectors=" right "] a in (" names ",) }"
/* Signs and phases of Schur's vectors depend on how often LAPACK's sweeps run: sizes alone are smooth. */
#define SCHUR_SIZES(n)                                                                                                             \
  "{ lambda x:T[" n "]. let t:T[" n "] q:T[" n "] = O[compute_schur_vectors=true] x a:U[" n "] = abs t b:U[" n                  \
  "] = abs q in (a, b) }"
#define REAL_SCHUR(n)                                                                                                              \
  "{ lambda x:T[" n "]. let r:f64[" n "] = convert_element_type[dtype=f64] x t:f64[" n "] q:f64[" n                            \
  "] = O[compute_schur_vectors=true] r a:f64[" n "] = abs t b:f64[" n "] = abs q in (a, b) }"
#define NINES "[[9, 0, 0], [0, 9, 0], [0, 0, 9]]"

/* The text, and what else there is to say. */
#define SAMPLE(prim_, ...) \
  { .prim = prim_, .text = __VA_ARGS__ }

/* One form, of each scatter. */
#define SCATTERS(put_linear, ...)                                                                                              \
  SAMPLE("scatter", SCATTER(__VA_ARGS__), .linear = put_linear), SAMPLE("scatter_add", SCATTER(__VA_ARGS__), .linear = "xu"),   \
      SAMPLE("scatter_min", SCATTER(__VA_ARGS__)), \
      SAMPLE("scatter_max", SCATTER(__VA_ARGS__))

/* A kernel from x to y, both of four elements, with scratch. Its body's first refs are x and y. */
#define KERNEL(scratch_, arrivals_, refs, body)                                                                                               \
  "{ lambda x:T[4]. let z:T[4] = kernel_call[name=\"k\" consts=0 cores=(core) core_axes=(0) threads=() grid=() semantics=() "                 \
  "blocks=(ref<T[4] vmem>, ref<T[4] vmem>) blocked=() index_maps=() block_shapes=() outs=(T[4]) scratch=(" scratch_                           \
  ") arrivals=(" arrivals_                                                                                                                    \
  ") scratch_cores=() aliases=() target=\"\" metadata=\"\" compiler_params=\"\" interpret=false debug=false collective_id=0 flops=0 bytes=0 " \
  "transcendentals=0 bodies=({ lambda x:ref<T[4] vmem> y:ref<T[4] vmem>" refs ". let " body " in () })] x in (z) }"
#define LOAD "a:T[4] = ref_load[masked=false] x "
#define STORE " = ref_store[masked=false] y a"
#define STEP(prim_, ...) \
  { .prim = prim_, .text = KERNEL(__VA_ARGS__), .linear = "x", .kernel = true }
#define COPY(received, sent, barrier, predicate, grouped)                                                         \
  "copy_start[axes=() logical=false received=" received " sent=" sent " barrier=" barrier " predicate=" predicate \
  " grouped=" grouped "] "

const test_sample test_samples[] = {
    /* --- constant --- */
    SAMPLE("constant", "{ lambda x:T[2]. let y:T[2,3] = constant[value=[[0, 1, 2], [3, 100, 7]]:T[2,3]] in (y, x) }"),
    SAMPLE("constant", "{ lambda x:T[2]. let y:T[5] = constant[value=[-0.0, inf, nan, -inf, 1.5]:T[5]] in (y, x) }"),
    SAMPLE("constant", "{ lambda x:T[2]. let y:T[2] = constant[value=[true, false]:T[2]] in (y, x) }"),
    SAMPLE("constant", "{ lambda x:T[S]. let y:T[0,3] = constant[value=[]:T[0,3]] in (3:T[], y, x, 3:T[]) }"),

    /* --- pointwise --- */
    SAMPLE("add", TWO, .linear = "xy"),
    SAMPLE("sub", TWO, .linear = "xy"),
    SAMPLE("mul", TWO, .linear = "x y"),
    SAMPLE("div", TWO, .linear = "x", .low = 0.5, .high = 2),
    SAMPLE("max", TWO),
    SAMPLE("min", TWO),
    SAMPLE("pow", TWO, .low = 0.5, .high = 2, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("neg", ONE, .linear = "x"),
    SAMPLE("abs", ONE),
    SAMPLE("sign", ONE),
    SAMPLE("rem", TWO, .low = 0.6, .high = 0.9),
    SAMPLE("floor", ONE),
    SAMPLE("ceil", ONE),
    SAMPLE("round_nearest_even", ONE),
    SAMPLE("exp", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("log", ONE, .low = 0.5, .high = 3, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("log1p", ONE, .low = -0.5, .high = 3, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("expm1", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("sin", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("cos", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("tanh", ONE, .ulps = 4, .narrow_ulps = 1),
    SAMPLE("tanh", "{ lambda x:T[S]. let y:T[S] = tanh[accuracy=highest] x in (y,) }", .ulps = 3, .narrow_ulps = 1),
    SAMPLE("sin", "{ lambda x:T[S]. let y:T[S] = sin[accuracy=3] x in (y,) }", .ulps = 3, .narrow_ulps = 1),
    SAMPLE("logistic", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("sqrt", ONE, .low = 0.5, .high = 3),
    SAMPLE("rsqrt", ONE, .low = 0.5, .high = 3, .ulps = 1),
    SAMPLE("erf", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("integer_pow", POWER(0)),
    SAMPLE("integer_pow", POWER(1)),
    SAMPLE("integer_pow", POWER(2)),
    SAMPLE("integer_pow", POWER(3), .ulps = 2),
    SAMPLE("integer_pow", POWER(7), .ulps = 6, .narrow_ulps = 1),
    SAMPLE("integer_pow", POWER(-1), .low = 0.5, .high = 2),
    SAMPLE("integer_pow", POWER(-4), .low = 0.5, .high = 2, .ulps = 4, .narrow_ulps = 1),
    SAMPLE("eq", COMPARE),
    SAMPLE("ne", COMPARE),
    SAMPLE("lt", COMPARE),
    SAMPLE("le", COMPARE),
    SAMPLE("gt", COMPARE),
    SAMPLE("ge", COMPARE),
    SAMPLE("and", TWO),
    SAMPLE("or", TWO),
    SAMPLE("not", ONE),
    SAMPLE("select_n", "{ lambda b:bool[S] x:T[S] y:T[S]. let z:T[S] = select_n b x y in (z,) }", .linear = "xy"),
    SAMPLE("select_n", "{ lambda b:bool[] x:T[S] y:T[S]. let z:T[S] = select_n b x y in (z,) }", .linear = "xy"),
    SAMPLE("convert_element_type", "{ lambda x:T[S]. let y:U[S] = convert_element_type[dtype=U] x in (y,) }", .linear = "x"),
    SAMPLE("stop_gradient", ONE, .stops_gradients = true),

    SAMPLE("exp2", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("cbrt", ONE, .low = 0.3, .high = 3, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("tan", ONE, .low = -1, .high = 1, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("asin", ONE, .low = -0.9, .high = 0.9, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("acos", ONE, .low = -0.9, .high = 0.9, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("atan", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("sinh", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("cosh", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("asinh", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("acosh", ONE, .low = 1.2, .high = 4, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("atanh", ONE, .low = -0.9, .high = 0.9, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("erfc", ONE, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("atan2", TWO, .low = 0.5, .high = 2, .ulps = 3, .narrow_ulps = 1),

    /* --- special functions --- */
    SAMPLE("erf_inv", ONE, .low = -0.9, .high = 0.9, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("lgamma", ONE, .low = 0.5, .high = 4, .ulps = 4, .narrow_ulps = 1),
    SAMPLE("digamma", ONE, .low = 0.5, .high = 4, .ulps = 4, .narrow_ulps = 1),
    SAMPLE("polygamma", "{ lambda x:T[S]. let n:T[S] = ceil x  y:T[S] = polygamma n x in (y,) }", .low = 1.2, .high = 1.9, .ulps = 4, .narrow_ulps = 1),
    SAMPLE("zeta", "{ lambda x:T[S]. let s:T[S] = ceil x  y:T[S] = zeta s x in (y,) }", .low = 1.2, .high = 1.9, .ulps = 4, .narrow_ulps = 1),
    SAMPLE("bessel_i0e", ONE, .low = 0.3, .high = 3, .ulps = 3, .narrow_ulps = 1),
    SAMPLE("bessel_i1e", ONE, .low = 0.3, .high = 3, .ulps = 3, .narrow_ulps = 1),

    /* --- bits --- */
    SAMPLE("xor", TWO),
    SAMPLE("shift_left", TWO),
    SAMPLE("shift_right_logical", TWO),
    SAMPLE("shift_right_arithmetic", TWO),
    SAMPLE("population_count", ONE),
    SAMPLE("clz", ONE),
    SAMPLE("ctz", ONE),
    SAMPLE("bitcast_convert_type", "{ lambda x:T[S]. let y:U[S] = bitcast_convert_type[dtype=U] x in (y,) }", .stops_gradients = true),
    SAMPLE("bitcast_convert_type", "{ lambda x:T[3]. let y:u16[3,2] = bitcast_convert_type[dtype=u16] x in (y,) }", .stops_gradients = true),
    SAMPLE("bitcast_convert_type", "{ lambda x:s16[3,2]. let y:T[3] = bitcast_convert_type[dtype=T] x in (y,) }", .stops_gradients = true),
    SAMPLE("bitcast_convert_type", "{ lambda x:T[2]. let y:u8[2,4] = bitcast_convert_type[dtype=u8] x in (y,) }", .stops_gradients = true),
    SAMPLE("bitcast_convert_type", "{ lambda x:u8[4]. let y:T[] = bitcast_convert_type[dtype=T] x in (y,) }", .stops_gradients = true),
    SAMPLE("bitcast_convert_type", "{ lambda x:u8[0,4]. let y:T[0] = bitcast_convert_type[dtype=T] x in (y,) }", .stops_gradients = true),
    SAMPLE("is_finite", "{ lambda x:T[S]. let y:bool[S] = is_finite x in (y,) }"),
    SAMPLE("nextafter", TWO),
    SAMPLE("reduce_precision", "{ lambda x:T[S]. let y:T[S] = reduce_precision[exponent_bits=8 mantissa_bits=49] x in (y,) }"),
    SAMPLE("reduce_precision", "{ lambda x:T[S]. let y:T[S] = reduce_precision[exponent_bits=11 mantissa_bits=52] x in (y,) }",
           .linear = "x"),
    SAMPLE("round_nearest_afz", ONE),
    SAMPLE("optimization_barrier", "{ lambda x:T[S] y:T[2,3]. let a:T[S] b:T[2,3] = optimization_barrier x y in (a, b) }",
           .linear = "xy"),
    SAMPLE("optimization_barrier", ONE, .linear = "x"),

    /* --- shape --- */
    SAMPLE("reshape", RESHAPE("2,3", "6"), .linear = "x"),
    SAMPLE("reshape", RESHAPE("6", "3,1,2"), .linear = "x"),
    SAMPLE("reshape", RESHAPE("2,3,4", "4,6"), .linear = "x"),
    SAMPLE("reshape", RESHAPE("0,3", "0"), .linear = "x"),
    SAMPLE("reshape", RESHAPE("", "1,1"), .linear = "x"),
    SAMPLE("reshape", RESHAPE("1", ""), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("", "", ""), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("3,5", "5,3", "1, 0"), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("17,33", "33,17", "1, 0"), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("2,3,4", "4,2,3", "2, 0, 1"), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("2,3,4", "3,2,4", "1, 0, 2"), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("2,3,4,5", "5,3,2,4", "3, 1, 0, 2"), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("0,3", "3,0", "1, 0"), .linear = "x"),
    SAMPLE("transpose", TRANSPOSE("1,4", "4,1", "1, 0"), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("", "2,3", ""), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("3", "2,3", "1"), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("3", "3,2", "0"), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("1,3", "4,3", "0, 1"), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("2,1,3", "2,5,4,3", "0, 1, 3"), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("3", "0,3", "1"), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("1", "37", "0"), .linear = "x"),
    SAMPLE("broadcast_in_dim", BROADCAST("0", "2,0", "1"), .linear = "x"),
    SAMPLE("slice", SLICE("10", "3", "2", "9", "3"), .linear = "x"),
    SAMPLE("slice", SLICE("7,5", "3,2", "1, 0", "6, 4", "2, 3"), .linear = "x"),
    SAMPLE("slice", SLICE("4,3", "4,3", "0, 0", "4, 3", "1, 1"), .linear = "x"),
    SAMPLE("slice", SLICE("4,40", "3,33", "1, 5", "4, 38", "1, 1"), .linear = "x"),
    SAMPLE("slice", SLICE("4,3", "0,3", "2, 0", "2, 3", "1, 1"), .linear = "x"),
    SAMPLE("slice", SLICE("5", "1", "4", "5", "100"), .linear = "x"),
    SAMPLE("slice", SLICE("", "", "", "", ""), .linear = "x"),
    SAMPLE("pad", PAD("5", "10", "2", "3", "0"), .linear = "xv"),
    SAMPLE("pad", PAD("5", "13", "0", "0", "2"), .linear = "xv"),
    SAMPLE("pad", PAD("5", "2", "-1", "-2", "0"), .linear = "xv"),
    SAMPLE("pad", PAD("5", "10", "-1", "2", "1"), .linear = "xv"),
    SAMPLE("pad", PAD("2,3", "3,8", "1, 0", "0, 3", "0, 1"), .linear = "xv"),
    SAMPLE("pad", PAD("3,4", "4,2", "2, -1", "-1, -1", "0, 0"), .linear = "xv"),
    SAMPLE("pad", PAD("0,2", "3,2", "1, 0", "2, 0", "4, 0"), .linear = "xv"),
    SAMPLE("pad", PAD("3", "0", "-2", "-1", "0"), .linear = "xv"),
    SAMPLE("pad", PAD("", "", "", "", ""), .linear = "xv"),
    SAMPLE("concatenate", "{ lambda x:T[2,3] y:T[4,3]. let z:T[6,3] = concatenate[dimension=0] x y in (z,) }", .linear = "xy"),
    SAMPLE("concatenate", "{ lambda x:T[2,3] y:T[2,0] z:T[2,17]. let r:T[2,20] = concatenate[dimension=1] x y z in (r,) }",
           .linear = "xyz"),
    SAMPLE("concatenate", "{ lambda x:T[2,3]. let y:T[2,3] = concatenate[dimension=1] x in (y,) }", .linear = "x"),
    SAMPLE("concatenate", "{ lambda x:T[2,1,3] y:T[2,2,3]. let r:T[2,5,3] = concatenate[dimension=1] x y y in (r,) }",
           .linear = "xy"),
    SAMPLE("rev", "{ lambda x:T[5]. let y:T[5] = rev[dimensions=(0,)] x in (y,) }", .linear = "x"),
    SAMPLE("rev", "{ lambda x:T[3,33]. let y:T[3,33] = rev[dimensions=(1, 0)] x in (y,) }", .linear = "x"),
    SAMPLE("rev", "{ lambda x:T[2,1,3]. let y:T[2,1,3] = rev[dimensions=(1,)] x in (y,) }", .linear = "x"),
    SAMPLE("rev", "{ lambda x:T[2,0]. let y:T[2,0] = rev[dimensions=(0, 1)] x in (y,) }", .linear = "x"),
    SAMPLE("iota", IOTA("7", 0)),
    SAMPLE("iota", IOTA("3,19", 0)),
    SAMPLE("iota", IOTA("3,19", 1)),
    SAMPLE("iota", IOTA("2,0,3", 2)),
    SAMPLE("iota", IOTA("2,3,4,2", 1)),
    SAMPLE("dynamic_slice", "{ lambda x:T[7] i:s32[]. let y:T[3] = dynamic_slice[slice_sizes=(3,)] x i in (y,) }", .linear = "x"),
    SAMPLE("dynamic_slice",
           "{ lambda x:T[5,36] i:s64[] j:s64[]. let y:T[2,33] = dynamic_slice[slice_sizes=(2, 33)] x i j in (y,) }", .linear = "x"),
    SAMPLE("dynamic_slice", "{ lambda x:T[4,3] i:U[] j:U[]. let y:T[0,3] = dynamic_slice[slice_sizes=(0, 3)] x i j in (y,) }"),
    SAMPLE("dynamic_slice", "{ lambda x:f32[300] i:U[]. let y:f32[5] = dynamic_slice[slice_sizes=(5,)] x i in (y,) }"),
    SAMPLE("dynamic_slice", "{ lambda x:T[]. let y:T[] = dynamic_slice[slice_sizes=()] x in (y,) }", .linear = "x"),
    SAMPLE("dynamic_update_slice", "{ lambda x:T[7] u:T[3] i:s32[]. let y:T[7] = dynamic_update_slice x u i in (y,) }",
           .linear = "xu"),
    SAMPLE("dynamic_update_slice",
           "{ lambda x:T[5,6] u:T[2,5] i:u8[] j:u8[]. let y:T[5,6] = dynamic_update_slice x u i j in (y, x) }", .linear = "xu"),
    SAMPLE("dynamic_update_slice",
           "{ lambda x:T[4,3] u:T[4,0] i:s32[] j:s32[]. let y:T[4,3] = dynamic_update_slice x u i j in (y,) }", .linear = "xu"),
    SAMPLE("dynamic_update_slice", "{ lambda x:f32[300] u:f32[5] i:U[]. let y:f32[300] = dynamic_update_slice x u i in (y,) }"),

    /* --- gather, scatter --- */
    SAMPLE("sort", "{ lambda x:T[9]. let y:T[9] = sort[dimension=0 num_keys=1 is_stable=true] x in (y,) }"),
    SAMPLE("sort", "{ lambda x:T[3,5,2]. let y:T[3,5,2] = sort[dimension=1 num_keys=1 is_stable=false] x in (y,) }"),
    SAMPLE("sort",
           "{ lambda i:U[5,4] x:T[5,4]. let j:U[5,4] y:T[5,4] = sort[dimension=0 num_keys=2 is_stable=true] i x in (y, j) }"),
    SAMPLE("sort", "{ lambda x:T[5,7] y:T[5,7]. let a:T[5,7] b:T[5,7] = sort[dimension=1 num_keys=1 is_stable=true] x y in (b,) }"),
    SAMPLE("sort", "{ lambda x:T[3,0]. let y:T[3,0] = sort[dimension=1 num_keys=1 is_stable=true] x in (y,) }"),
    SAMPLE("sort",
           "{ lambda x:T[3,0] y:T[3,0]. let a:T[3,0] b:T[3,0] = sort[dimension=1 num_keys=2 is_stable=true] x y in (a, b) }"),
    SAMPLE("sort",
           "{ lambda x:T[0,3] i:U[0,3]. let y:T[0,3] j:U[0,3] = sort[dimension=1 num_keys=1 is_stable=true] x i in (y, j) }"),
    SAMPLE("top_k", "{ lambda x:T[9]. let y:T[4] i:s32[4] = top_k[k=4] x in (y, i) }"),
    SAMPLE("top_k", "{ lambda x:T[3,5]. let y:T[3,5] i:s32[3,5] = top_k[k=5] x in (y, i) }"),
    SAMPLE("top_k", "{ lambda x:T[2,0]. let y:T[2,0] i:s32[2,0] = top_k[k=0] x in (y, i) }"),
    SAMPLE("top_k", "{ lambda x:T[0,3]. let y:T[0,2] i:s32[0,2] = top_k[k=2] x in (y, i) }"),
    SAMPLE("top_k", "{ lambda x:T[2,3]. let y:T[2,0] i:s32[2,0] = top_k[k=0] x in (y, x) }"),
    SAMPLE("gather", GATHER("7", "s32[4,1]", "4", "", "0,", "0,", "", "", "fill", "1,", "0"), .linear = "x"),
    SAMPLE("gather", GATHER("5,36", "U[3,1]", "3,36", "1,", "0,", "0,", "", "", "clip", "1, 36", "0"), .linear = "x"),
    SAMPLE("gather", GATHER("4,5,3", "s64[2,3,2]", "2,2,3,3", "1, 3", "1,", "1, 0", "", "", "fill", "2, 1, 3", "0"), .linear = "x"),
    SAMPLE("gather", GATHER("3,6", "s32[3,5,1]", "3,5", "", "1,", "1,", "0,", "0,", "promise_in_bounds", "1, 1", "0"),
           .linear = "x"),
    SAMPLE("gather", GATHER("5,3,2", "u8[2,4,3,1]", "2,4,3,2", "3,", "0,", "0,", "1,", "2,", "fill", "1, 1, 2", "0"),
           .linear = "x"),
    SAMPLE("gather", GATHER("4,3", "s8[0,1]", "0,3", "1,", "0,", "0,", "", "", "clip", "1, 3", "0")),
    SAMPLE("gather", GATHER("4,3", "s32[2,2]", "0,2,3", "0, 2", "", "0, 1", "", "", "fill", "0, 3", "0")),
    SAMPLE("gather", GATHER("4,3", "s32[2,0]", "2,4,3", "1, 2", "", "", "", "", "fill", "4, 3", "0"), .linear = "x"),
    SCATTERS(NULL, "fill", "false", "7", "s32[4,1]", "4", "", "0,", "0,", "", ""),
    SCATTERS(NULL, "clip", "false", "5,6", "U[3,1]", "3,6", "1,", "0,", "0,", "", ""),
    SCATTERS(NULL, "fill", "false", "4,5,3", "s64[2,3,2]", "2,2,3,3", "1, 3", "1,", "1, 0", "", ""),
    SCATTERS("xu", "promise_in_bounds", "true", "3,6", "s32[3,1,1]", "3,1", "", "1,", "1,", "0,", "0,"),
    SCATTERS(NULL, "fill", "false", "5,3,2", "u8[2,4,3,1]", "2,4,3,2", "3,", "0,", "0,", "1,", "2,"),
    SCATTERS(NULL, "clip", "false", "4,3", "s8[0,1]", "0,3", "1,", "0,", "0,", "", ""),
    SAMPLE("scatter_mul", SCATTER("promise_in_bounds", "true", "3,6", "s32[3,1,1]", "3,1", "", "1,", "1,", "0,", "0,"),
           .linear = "x", .low = 0.5, .high = 2),
    SAMPLE("scatter_mul",
           "{ lambda x:T[4,2] i:U[5,1]. let u:T[5,2] = constant[value=[[2, 3], [1, 2], [3, 1], [2, 2], [1, 3]]:T[5,2]] y:T[4,2] = "
           "O[update_window_dims=(1,) inserted_window_dims=(0,) scatter_dims_to_operand_dims=(0,) operand_batching_dims=() "
           "scatter_indices_batching_dims=() mode=\"fill\" indices_are_sorted=false unique_indices=false] x i u in (y,) }",
           .linear = "x"),

    /* --- reductions and products --- */
    SAMPLE("reduce_sum", REDUCE("17", "", "0"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("4,5", "5", "0"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("4,37", "4", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("37,4", "4", "0"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("300,25", "300", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("2,3,2,4", "2,2", "1, 3"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("2,3,2,4", "3,4", "0, 2"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("3,0", "3", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("0,3", "0", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("2,3", "2,3", ""), .linear = "x", .sums = true),
    SAMPLE("reduce_sum", REDUCE("", "", ""), .linear = "x", .sums = true),
    SAMPLE("reduce_max", REDUCE("17", "", "0")),
    SAMPLE("reduce_max", REDUCE("4,39", "4", "1")), /* of complex numbers it jumps where real parts meet, as they do in 4,37 */
    SAMPLE("reduce_max", REDUCE("37,4", "4", "0")),
    SAMPLE("reduce_max", REDUCE("2,3,2,4", "2,2", "1, 3")),
    SAMPLE("reduce_max", REDUCE("3,0", "3", "1")),
    SAMPLE("reduce_max", REDUCE("2,3", "2,3", "")),
    SAMPLE("reduce_min", REDUCE("17", "", "0")),
    SAMPLE("reduce_min", REDUCE("4,37", "4", "1")),
    SAMPLE("reduce_min", REDUCE("37,4", "4", "0")),
    SAMPLE("reduce_min", REDUCE("2,3,2,4", "3,4", "0, 2")),
    SAMPLE("reduce_min", REDUCE("3,0", "3", "1")),
    SAMPLE("reduce_min", REDUCE("", "", "")),
    SAMPLE("reduce_prod", REDUCE("17", "", "0"), .low = 0.5, .high = 1.5, .ulps = 60, .narrow_ulps = 1, .generic = true),
    SAMPLE("reduce_prod", REDUCE("4,37", "4", "1"), .low = 0.5, .high = 1.5, .ulps = 60, .narrow_ulps = 1, .generic = true),
    SAMPLE("reduce_prod", REDUCE("37,4", "4", "0"), .low = 0.5, .high = 1.5, .ulps = 60, .narrow_ulps = 1, .generic = true),
    SAMPLE("reduce_prod", REDUCE("2,3,2,4", "2,2", "1, 3"), .low = 0.5, .high = 1.5, .ulps = 60, .narrow_ulps = 1, .generic = true),
    SAMPLE("reduce_prod", REDUCE("1,3", "3", "0")),
    SAMPLE("reduce_prod", REDUCE("3,0", "3", "1")),
    SAMPLE("reduce_prod", REDUCE("2,3", "2,3", "")),
    SAMPLE("reduce_and", REDUCE("17", "", "0")),
    SAMPLE("reduce_and", REDUCE("4,37", "4", "1")),
    SAMPLE("reduce_and", REDUCE("37,4", "4", "0")),
    SAMPLE("reduce_and", REDUCE("3,0", "3", "1")),
    SAMPLE("reduce_or", REDUCE("17", "", "0")),
    SAMPLE("reduce_or", REDUCE("4,37", "4", "1")),
    SAMPLE("reduce_or", REDUCE("2,3,2,4", "3,4", "0, 2")),
    SAMPLE("reduce_or", REDUCE("3,0", "3", "1")),
    SAMPLE("reduce_xor", REDUCE("17", "", "0")),
    SAMPLE("reduce_xor", REDUCE("4,37", "4", "1")),
    SAMPLE("reduce_xor", REDUCE("37,4", "4", "0")),
    SAMPLE("reduce_xor", REDUCE("3,0", "3", "1")),
    SAMPLE("reduce", REDUCE_BY("17", "", "", "0"), .low = 0.02, .high = 0.12, .ulps = 120, .narrow_ulps = 60, .generic = true),
    SAMPLE("reduce", REDUCE_BY("3,37", "", "3", "1"), .low = 0.02, .high = 0.12, .ulps = 120, .narrow_ulps = 60, .generic = true),
    SAMPLE("reduce", REDUCE_BY("37,3", "3", "3", "0"), .low = 0.02, .high = 0.12, .ulps = 120, .narrow_ulps = 60, .generic = true),
    SAMPLE("reduce", REDUCE_BY("2,3,2,4", "", "2,2", "1, 3"), .low = 0.02, .high = 0.12, .ulps = 120, .narrow_ulps = 60, .generic = true),
    SAMPLE("reduce", REDUCE_BY("3,0", "", "3", "1")),
    SAMPLE("reduce", REDUCE_BY("2,3", "", "2,3", "")),
    SAMPLE("reduce", REDUCE_PAIR("3,19", "", "3", "1")),
    SAMPLE("reduce", REDUCE_PAIR("19,3", "3", "3", "0")),
    SAMPLE("argmin", ARGMAX("19", "", "0", "U")),
    SAMPLE("argmin", ARGMAX("128", "", "0", "s8")),
    SAMPLE("argmin", ARGMAX("3,5", "5", "0", "s32")),
    SAMPLE("argmin", ARGMAX("3,35", "3", "1", "s32")),
    SAMPLE("argmin", ARGMAX("2,3,4", "2,4", "1", "s64")),
    SAMPLE("argmin", ARGMAX("0,3", "0", "1", "s32")),
    SAMPLE("argmax", ARGMAX("19", "", "0", "U")),
    SAMPLE("argmax", ARGMAX("128", "", "0", "s8")),
    SAMPLE("argmax", ARGMAX("3,5", "5", "0", "s32")),
    SAMPLE("argmax", ARGMAX("3,35", "3", "1", "s32")),
    SAMPLE("argmax", ARGMAX("2,3,4", "2,4", "1", "s64")),
    SAMPLE("argmax", ARGMAX("0,3", "0", "1", "s32")),
    SAMPLE("conv_general_dilated", CONV("2,3,7", "4,3,3", "2,4,5", "1", "0", "0", "1", "1", NCW, 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("2,3,7", "4,3,3", "2,4,4", "2", "1", "1", "1", "1", NCW, 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("1,2,5", "2,2,3", "1,2,4", "2", "1", "2", "2", "2", NCW, 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("1,2,7", "2,2,2", "1,2,4", "1", "-1", "-1", "1", "1", NCW, 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("2,4,5", "6,2,2", "2,6,4", "1", "0", "0", "1", "1", NCW, 2, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("4,3,5", "6,3,2", "2,6,4", "1", "0", "0", "1", "1", NCW, 1, 2), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("1,3,9", "2,3,8", "1,2,2", "1", "0", "0", "1", "1", NCW, 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("2,6,5,3", "3,3,3,4", "2,6,5,4", "1, 1", "1, 1", "1, 1", "1, 1", "1, 1", NHWC, 1, 1),
           .linear = "x y", .sums = true),
    SAMPLE("conv_general_dilated", CONV("1,5,6,4", "3,2,1,4", "1,2,5,4", "2, 1", "0, 0", "1, 0", "1, 1", "1, 1", NHWC, 4, 1),
           .linear = "x y", .sums = true),
    SAMPLE("conv_general_dilated", CONV("1,4,9,2", "2,8,2,3", "1,3,4,3", "1, 1", "0, 1", "0, 1", "1, 1", "1, 1", NHWC, 1, 1),
           .linear = "x y", .sums = true),
    SAMPLE("conv_general_dilated",
           CONV("3,4", "2,4", "3,2", "", "", "", "", "", "lhs_spec=(0, 1) rhs_spec=(0, 1) out_spec=(0, 1)", 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated",
           CONV("3,4", "4,2", "2,3", "", "", "", "", "", "lhs_spec=(0, 1) rhs_spec=(1, 0) out_spec=(1, 0)", 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("2,0,7", "4,0,3", "2,4,5", "1", "0", "0", "1", "1", NCW, 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated", CONV("2,3,2", "4,3,3", "2,4,0", "1", "0", "0", "1", "1", NCW, 1, 1), .linear = "x y",
           .sums = true),
    SAMPLE("conv_general_dilated",
           CONV("1,1,15,25", "1,1,12,12", "1,1,4,14", "1, 1", "0, 0", "0, 0", "1, 1", "1, 1",
                "lhs_spec=(0, 1, 2, 3) rhs_spec=(0, 1, 2, 3) out_spec=(0, 1, 2, 3)", 1, 1),
           .linear = "x y", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("6", "4", "3", "1", "0", "0", "1", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("7", "4", "3", "2", "1", "1", "1", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("5", "4", "3", "2", "2", "1", "2", "2"), .linear = "x", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("4,5", "3,2", "2, 3", "1, 2", "0, 0", "0, 0", "1, 1", "1, 1"), .linear = "x", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("2,40", "2,3", "1, 20", "1, 7", "0, 0", "0, 0", "1, 1", "1, 1"), .linear = "x",
           .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("6", "2", "3", "1", "-1", "-1", "1", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("", "", "", "", "", "", "", ""), .linear = "x", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("20", "1", "17", "4", "0", "0", "1", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_window_sum", WINDOW("3", "0", "5", "1", "0", "0", "1", "1"), .linear = "x", .sums = true),
    SAMPLE("reduce_window_max", WINDOW("6", "4", "3", "1", "0", "0", "1", "1")),
    SAMPLE("reduce_window_max", WINDOW("7", "4", "3", "2", "1", "1", "1", "1")),
    SAMPLE("reduce_window_max", WINDOW("5", "4", "3", "2", "2", "1", "2", "2")),
    SAMPLE("reduce_window_max", WINDOW("4,5", "3,2", "2, 3", "1, 2", "0, 0", "0, 0", "1, 1", "1, 1")),
    SAMPLE("reduce_window_max", WINDOW("2,40", "2,3", "1, 20", "1, 7", "0, 0", "0, 0", "1, 1", "1, 1")),
    SAMPLE("reduce_window_max", WINDOW("6", "2", "3", "1", "-1", "-1", "1", "1")),
    SAMPLE("reduce_window_max", WINDOW("", "", "", "", "", "", "", "")),
    SAMPLE("reduce_window_max", WINDOW("20", "1", "17", "4", "0", "0", "1", "1")),
    SAMPLE("reduce_window_max", WINDOW("3", "0", "5", "1", "0", "0", "1", "1")),
    SAMPLE("reduce_window_min", WINDOW("6", "4", "3", "1", "0", "0", "1", "1")),
    SAMPLE("reduce_window_min", WINDOW("7", "4", "3", "2", "1", "1", "1", "1")),
    SAMPLE("reduce_window_min", WINDOW("5", "4", "3", "2", "2", "1", "2", "2")),
    SAMPLE("reduce_window_min", WINDOW("4,5", "3,2", "2, 3", "1, 2", "0, 0", "0, 0", "1, 1", "1, 1")),
    SAMPLE("reduce_window_min", WINDOW("2,40", "2,3", "1, 20", "1, 7", "0, 0", "0, 0", "1, 1", "1, 1")),
    SAMPLE("reduce_window_min", WINDOW("6", "2", "3", "1", "-1", "-1", "1", "1")),
    SAMPLE("reduce_window_min", WINDOW("", "", "", "", "", "", "", "")),
    SAMPLE("reduce_window_min", WINDOW("20", "1", "17", "4", "0", "0", "1", "1")),
    SAMPLE("reduce_window_min", WINDOW("3", "0", "5", "1", "0", "0", "1", "1")),
    SAMPLE("cumsum", CUMULATIVE("6", 0, false), .linear = "x", .sums = true),
    SAMPLE("cumsum", CUMULATIVE("2,19", 1, true), .linear = "x", .sums = true),
    SAMPLE("cumsum", CUMULATIVE("3,5,4", 1, false), .linear = "x", .sums = true),
    SAMPLE("cumsum", CUMULATIVE("1", 0, true), .linear = "x", .sums = true),
    SAMPLE("cumsum", CUMULATIVE("0,3", 0, false), .linear = "x", .sums = true),
    SAMPLE("cumsum", CUMULATIVE("3,0", 0, false), .linear = "x", .sums = true),
    SAMPLE("cumprod", CUMULATIVE("6", 0, false), .ulps = 24, .narrow_ulps = 2, .generic = true),
    SAMPLE("cumprod", CUMULATIVE("2,19", 1, true), .ulps = 24, .narrow_ulps = 2, .generic = true),
    SAMPLE("cumprod", CUMULATIVE("3,5,4", 1, false), .ulps = 24, .narrow_ulps = 2, .generic = true),
    SAMPLE("cumprod", CUMULATIVE("0,3", 0, false), .ulps = 24, .narrow_ulps = 2, .generic = true),
    SAMPLE("cummax", CUMULATIVE("6", 0, false)),
    SAMPLE("cummax", CUMULATIVE("2,19", 1, true)),
    SAMPLE("cummax", CUMULATIVE("3,5,4", 1, false)),
    SAMPLE("cummax", CUMULATIVE("0,3", 0, false)),
    SAMPLE("cummin", CUMULATIVE("6", 0, false)),
    SAMPLE("cummin", CUMULATIVE("2,19", 1, true)),
    SAMPLE("cummin", CUMULATIVE("3,5,4", 1, false)),
    SAMPLE("cummin", CUMULATIVE("0,3", 0, false)),
    SAMPLE("cumlogsumexp", CUMULATIVE("6", 0, false), .ulps = 24, .narrow_ulps = 2, .complex_generic = true),
    SAMPLE("cumlogsumexp", CUMULATIVE("2,19", 1, true), .ulps = 24, .narrow_ulps = 2, .complex_generic = true),
    SAMPLE("cumlogsumexp", CUMULATIVE("3,5,4", 1, false), .ulps = 24, .narrow_ulps = 2, .complex_generic = true),
    SAMPLE("cumlogsumexp", CUMULATIVE("0,3", 0, false), .ulps = 24, .narrow_ulps = 2, .complex_generic = true),
    SAMPLE("dot_general", DOT("5", "5", "", "0", "0", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("2,3", "3,4", "2,4", "1", "0", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("70,66", "66,50", "70,50", "1", "0", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("17,9", "33,9", "17,33", "1", "1", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("3,2", "3,4", "2,4", "0", "0", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("2,3,4", "2,4,5", "2,3,5", "2", "1", "0", "0"), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("3,4,2", "5,2,4", "2,3,5", "1", "2", "2", "1"), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("2,3,4", "4,3,5", "2,5", "1, 2", "1, 0", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("2,3", "4", "2,3,4", "", "", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("2,3", "3,2", "2,3", "", "", "0, 1", "1, 0"), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("2,0", "0,3", "2,3", "1", "0", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("0,3", "3,2", "0,2", "1", "0", "", ""), .linear = "x y", .sums = true),
    SAMPLE("dot_general", DOT("2,3,2,2", "2,2,3,2", "2,3,2,3,2", "3", "1", "0", "0"), .linear = "x y", .sums = true),

    /* --- regions --- */
    SAMPLE("cond",
           "{ lambda i:s32[] x:T[S] y:T[S]. let z:T[S] r:T[S] = cond[branches=("
           "  { lambda a:T[S] b:T[S]. let c:T[S] = sub a b in (c, a) },"
           "  { lambda a:T[S] b:T[S]. let in (b, b) },"
           "  { lambda a:T[S] b:T[S]. let c:T[S] = mul a b d:T[S] = sub c a in (d, c) })] i x y in (z, r) }"),
    SAMPLE("cond",
           "{ lambda i:s32[] x:T[3] y:T[3]. let z:T[3] r:T[3] = cond[branches=("
           "  { lambda a:T[3] b:T[3]. let c:T[3] = sub a b in (c, a) },"
           "  { lambda a:T[3] b:T[3]. let c:T[3] = constant[value=0:T[3]] in (b, c) })] i x y in (z, r) }",
           .linear = "xy"),
    SAMPLE("cond",
           "{ lambda i:s32[] x:T[3]{V:d}. let y:T[3] z:T[3]{V:d} = cond[branches=("
           "  { lambda a:T[3]{V:d}. let b:T[3] = psum[axes=(d,)] a in (b, a) },"
           "  { lambda a:T[3]{V:d}. let b:T[3]{V:d} = neg a c:T[3]{V:d} = ppermute[axes=(d,) pairs=((0, 1),)] b"
           "    d:T[3] = psum[axes=(d,)] c in (d, c) })] i x in (y, z) }",
           .axes = "d=2; d=3", .linear = "x", .sums = true),
    SAMPLE("cond",
           "{ lambda i:s32[]{V:d} x:T[3]{V:d}. let y:T[3]{V:d} = cond[branches=("
           "  { lambda a:T[3]{V:d}. let in (a,) },"
           "  { lambda a:T[3]{V:d}. let b:T[3]{V:d} = neg a in (b,) })] i x in (y,) }",
           .axes = "d=4; d=2 e=2", .linear = "x"),
    SAMPLE(
        "closed_call",
        "{ lambda x:T[3] y:T[3]. let a:T[3] b:T[3] = closed_call[body={ lambda x:T[3] y:T[3]. let z:T[3] = mul x y w:T[3] = add z x"
        "  in (w, y) }] x y in (a, b) }"),
    SAMPLE(
        "closed_call",
        "{ lambda x:T[3]{V:d} y:T[3]. let z:T[3]{V:d} = pvary[axes=(d,)] y a:T[3] = closed_call[body={ lambda x:T[3]{V:d} y:T[3]{V:d}."
        "  let z:T[3]{V:d} = add x y w:T[3] = psum[axes=(d,)] z in (w,) }] x z in (a,) }",
        .axes = "d=2; d=3", .linear = "xy", .sums = true),
    SAMPLE(
        "checkpoint",
        "{ lambda x:T[3] y:T[3]. let a:T[3] b:T[3] = checkpoint[body={ lambda x:T[3] y:T[3]. let z:T[3] = mul x y w:T[3] = mul z x in (w, y) }"
        " differentiated=false save_everything=false save_dots=false save_unbatched_dots=false save_names=() save_other_names=false but_names=() save_primitives=()] x y in (a, b) }"),
    SAMPLE(
        "checkpoint",
        "{ lambda x:T[3]{V:d} y:T[3]. let z:T[3]{V:d} = pvary[axes=(d,)] y a:T[3] = checkpoint[body={ lambda x:T[3]{V:d} y:T[3]{V:d}."
        "  let z:T[3]{V:d} = add x y w:T[3] = psum[axes=(d,)] z in (w,) } differentiated=true save_everything=false save_dots=true save_unbatched_dots=true save_names=(a, b) save_other_names=true but_names=(c,)"
        " save_primitives=(exp, reduce_sum)] x z in (a,) }",
        .axes = "d=2; d=3", .linear = "xy", .sums = true),
    SAMPLE("name", "{ lambda x:T[S]. let y:T[S] = name[names=(kept,)] x in (y,) }", .linear = "x"),
    SAMPLE(
        "custom_jvp",
        "{ lambda x:T[3]. let a:T[3] = iota[dtype=T shape=(3) dimension=0] y:T[3] = custom_jvp[call={ lambda k:T[3] x:T[3]. let z:T[3] = mul k x y:T[3] = mul z x in (y,) }"
        "  rule={ lambda k:T[3] x:T[3] dx:T[3]. let z:T[3] = mul k x y:T[3] = mul z x w:T[3] = add z z dy:T[3] = mul w dx in (y, dy) }"
        "  num_consts=1] a x in (y,) }"),
    SAMPLE("custom_linear_solve",
           "{ lambda d:T[3] b:T[3]. let x:T[3] = custom_linear_solve[solves=({ lambda d:T[3] b:T[3]. let x:T[3] = div b d in (x,) })"
           "  matvec={ lambda d:T[3] x:T[3]. let y:T[3] = mul d x in (y,) } num_consts=1 symmetric=true] d b in (x,) }",
           .linear = "b", .low = 1, .high = 2, .complex_generic = true),
    SAMPLE("custom_linear_solve", /* x0 + d x1, x1: not symmetric */
           "{ lambda d:T[3] a:T[3] b:T[3]. let x:T[3] y:T[3] = custom_linear_solve[solves=("
           "  { lambda d:T[3] a:T[3] b:T[3]. let e:T[3] = mul d b x:T[3] = sub a e in (x, b) },"
           "  { lambda d:T[3] a:T[3] b:T[3]. let e:T[3] = mul d a y:T[3] = sub b e in (a, y) })"
           "  matvec={ lambda d:T[3] x:T[3] y:T[3]. let e:T[3] = mul d y z:T[3] = add x e in (z, y) } num_consts=1 symmetric=false] d a b in (x, y) }",
           .linear = "ab", .sums = true),
    SAMPLE(
        "custom_vjp",
        "{ lambda k:T[3] x:T[3] y:T[2]. let a:T[3] b:T[2] = custom_vjp[call={ lambda k:T[3] x:T[3] y:T[2]. let z:T[3] = mul k x in (z, y) }"
        "  forward={ lambda k:T[3] x:T[3] y:T[2]. let z:T[3] = mul k x in (z, y, k) }"
        "  backward={ lambda k:T[3] dz:T[3] dy:T[2]. let z:T[3] = mul k dz in (z, dy) } num_consts=1] k x y in (a, b) }",
        .own_derivative = true),
    SAMPLE("custom_vjp",
           "{ lambda x:T[3]{V:d}. let y:T[3] = custom_vjp[call={ lambda x:T[3]{V:d}. let y:T[3] = psum[axes=(d,)] x in (y,) }"
           "  forward={ lambda x:T[3]{V:d}. let y:T[3] = psum[axes=(d,)] x in (y,) }"
           "  backward={ lambda dy:T[3]. let dx:T[3]{V:d} = pvary[axes=(d,)] dy in (dx,) } num_consts=0] x in (y,) }",
           .axes = "d=2; d=3", .own_derivative = true, .sums = true),
    SAMPLE(
        "custom_linear",
        "{ lambda x:T[3]. let y:T[3] = custom_vjp[call={ lambda x:T[3]. let y:T[3] = neg x in (y,) }"
        "  forward={ lambda x:T[3]. let y:T[3] = neg x in (y, x) }"
        "  backward={ lambda x:T[3] dy:T[3]. let dx:T[3] = custom_linear[backward={ lambda x:T[3] t:T[3]. let s:T[3] = mul x t in (s,) }"
        "    num_residuals=1] x dy in (dx,) } num_consts=0] x in (y,) }",
        .own_derivative = true),
    SAMPLE("scan",
           "{ lambda c:T[2] x:T[5,2]. let h:T[2] y:T[5,2] = scan[length=5 reverse=false num_consts=0 num_carry=1"
           "  body={ lambda c:T[2] x:T[2]. let n:T[2] = mul c x m:T[2] = add n x in (m, n) }] c x in (h, y) }"),
    SAMPLE("scan",
           "{ lambda k:T[2] c:T[2] x:T[3,2]. let h:T[2] y:T[3,2] = scan[length=3 reverse=true num_consts=1 num_carry=1"
           "  body={ lambda k:T[2] c:T[2] x:T[2]. let n:T[2] = mul c k m:T[2] = add n x in (m, n) }] k c x in (h, y) }",
           .linear = "cx"),
    SAMPLE("scan",
           "{ lambda c:T[] d:T[]. let h:T[] r:T[] y:T[0] = scan[length=0 reverse=false num_consts=0 num_carry=2"
           "  body={ lambda c:T[] d:T[]. let n:T[] = add c d in (n, c, d) }] c d in (h, r, y) }"),
    SAMPLE("scan",
           "{ lambda c:T[3] d:T[3]. let h:T[3] r:T[3] = scan[length=4 reverse=false num_consts=0 num_carry=2"
           "  body={ lambda c:T[3] d:T[3]. let n:T[3] = sub c d in (d, n) }] c d in (h, r) }",
           .linear = "cd"),
    SAMPLE("scan",
           "{ lambda k:T[2] c:T[2]{V:d} x:T[3,2]{V:d}. let j:T[2]{V:d} = pvary[axes=(d,)] k"
           "  h:T[2]{V:d} y:T[3,2] = scan[length=3 reverse=false num_consts=1 num_carry=1"
           "  body={ lambda k:T[2]{V:d} c:T[2]{V:d} x:T[2]{V:d}. let n:T[2]{V:d} = mul c k"
           "    s:T[2] = psum[axes=(d,)] x v:T[2]{V:d} = pvary[axes=(d,)] s m:T[2]{V:d} = add n v in (m, s) }] j c x "
           "in (h, y) }",
           .axes = "d=2; d=3", .linear = "cx", .sums = true),
    SAMPLE("while",
           "{ lambda n:s32[] x:T[3] k:T[3]. let m:s32[] = min n 7:s32[] i:s32[] y:T[3] = while["
           "  cond={ lambda l:s32[] i:s32[] y:T[3]. let b:bool[] = lt i l in (b,) } cond_nconsts=1"
           "  body={ lambda k:T[3] i:s32[] y:T[3]. let j:s32[] = add i 1:s32[] z:T[3] = sub k y in (j, z) } body_nconsts=1"
           "  ] m k 0:s32[] x in (i, y) }",
           .low = -2, .high = 9, .forward_only = true),
    SAMPLE("while",
           "{ lambda n:s32[] x:T[3]{V:d}. let m:s32[] = min n 4:s32[] i:s32[] y:T[3]{V:d} = while["
           "  cond={ lambda l:s32[] i:s32[] y:T[3]{V:d}. let b:bool[] = lt i l in (b,) } cond_nconsts=1"
           "  body={ lambda i:s32[] y:T[3]{V:d}. let j:s32[] = add i 1:s32[] s:T[3] = psum[axes=(d,)] y"
           "    v:T[3]{V:d} = pvary[axes=(d,)] s z:T[3]{V:d} = add v y in (j, z) } body_nconsts=0"
           "  ] m 0:s32[] x in (i, y) }",
           .axes = "d=2; d=3", .low = -2, .high = 6, .forward_only = true, .sums = true),
    SAMPLE("while",
           "{ lambda x:T[3]{V:d} n:s32[]{V:d}. let k:s32[] = mul 4:s32[] 1:s32[] l:s32[]{V:d} = pvary[axes=(d,)] k"
           "  m:s32[]{V:d} = min n l z:s32[]{V:d} = sub m m i:s32[]{V:d} y:T[3]{V:d} = while["
           "  cond={ lambda l:s32[]{V:d} i:s32[]{V:d} y:T[3]{V:d}. let b:bool[]{V:d} = lt i l in (b,) } cond_nconsts=1"
           "  body={ lambda i:s32[]{V:d} y:T[3]{V:d}. let o:s32[]{V:d} = pvary[axes=(d,)] 1:s32[] j:s32[]{V:d} = add i o"
           "    z:T[3]{V:d} = neg y in (j, z) } body_nconsts=0] m z x in (i, y) }",
           .axes = "d=2; d=3", .low = -2, .high = 6, .forward_only = true),
    SAMPLE("sharding_constraint",
           "{ lambda x:T[4,6]. let y:T[4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(u, v),)] x"
           "  z:T[4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(),)] x in (y, z) }",
           .linear = "x"),
    SAMPLE("shard_alike",
           "{ lambda x:T[4,6] y:T[4,6]. let c:T[4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(u, v),)] x"
           "  a:T[4,6] b:T[4,6] = shard_alike c y in (a, b) }",
           .linear = "xy"),
    SAMPLE("sum_parts",
           "{ lambda x:T[4,6]. let c:T[4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(u, v),)] x y:T[2,4,6] = sum_parts[size=2] c"
           "  z:T[2,4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(u, _, v),)] y s:T[4,6] = reduce_sum[axes=(0,)] z"
           "  w:T[6,4,6] = sum_parts[size=6] c q:T[6,4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(v+u),)] w"
           "  r:T[4,6] = reduce_sum[axes=(0,)] q in (s, r) }",
           .linear = "x", .sums = true),
    SAMPLE("sum_parts",
           "{ lambda x:T[4,6]. let c:T[4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(_, u+v),)] x t:T[4] = reduce_sum[axes=(1,)] c"
           "  y:T[3,4] = sum_parts[size=3] t z:T[3,4] = sharding_constraint[mesh=(u=2, v=3) specs=(P(v, u),)] y"
           "  s:T[4] = reduce_sum[axes=(0,)] z w:T[5,4] = sum_parts[size=5] t r:T[4] = reduce_sum[axes=(0,)] w in (s, r) }",
           .linear = "x", .sums = true),
    SAMPLE("shard_map",
           "{ lambda x:T[4,3] y:T[3]. let z:T[4,3] s:T[2,3] = shard_map[mesh=(d=2) unchecked=false in_specs=(P(d), P())"
           "  out_specs=(P(d), P()) body={ axes d=2 ; lambda x:T[2,3]{V:d} y:T[3]. let b:T[2,3] = broadcast_in_dim["
           "    shape=(2, 3) broadcast_dimensions=(1,)] y v:T[2,3]{V:d} = pvary[axes=(d,)] b r:T[2,3]{V:d} = mul v x"
           "    p:T[2,3] = psum[axes=(d,)] r in (r, p) }] x y in (z, s) }",
           .linear = "x y", .sums = true),
    SAMPLE("shard_map",
           "{ lambda x:T[4,6]. let z:T[6,4] = shard_map[mesh=(a=2, b=3) unchecked=false in_specs=(P(a, b),)"
           "  out_specs=(P(b, a),) body={ axes a=2 b=3 ; lambda x:T[2,2]{V:a,b}. let y:T[2,2]{V:a,b} = transpose["
           "  permutation=(1, 0)] x in (y,) }] x in (z,) }",
           .linear = "x"),

    SAMPLE("shard_map",
           "{ lambda x:T[4,6]. let w:T[4,6] = neg x z:T[4,6] = shard_map[mesh=(a=2, b=3) unchecked=false "
           "in_specs=(P(a, b),)"
           "  out_specs=(P(a, b),) body={ axes a=2 b=3 ; lambda x:T[2,2]{V:a,b}. let y:T[2,2]{V:a,b} = transpose["
           "  permutation=(1, 0)] x in (y,) }] w r:T[4,6] = sub z x s:T[4,6] = shard_map[mesh=(a=2, b=3) unchecked=true"
           "  in_specs=(P(_, b+a),) out_specs=(P(_, b+a),) body={ axes a=2? b=3? ; lambda x:T[4,1]. let"
           "  y:T[4,1] = add x x in (y,) }] z in (z, r, s) }",
           .linear = "x"),

    /* --- collectives --- */
    SAMPLE("psum", "{ lambda x:T[S]{V:d}. let y:T[S] = psum[axes=(d,)] x in (y,) }", .axes = "d=1; d=2; d=3; d=8", .linear = "x",
           .sums = true),
    SAMPLE("psum", "{ lambda x:T[3]{V:a,b}. let y:T[3]{V:a} = psum[axes=(b,)] x in (y,) }", .axes = "a=2 b=2; a=4 b=2",
           .linear = "x", .sums = true),
    SAMPLE("psum", "{ lambda x:T[3]{V:a,b}. let y:T[3] = psum[axes=(b, a)] x in (y,) }", .axes = "a=2 b=3", .linear = "x",
           .sums = true),
    SAMPLE("psum", "{ lambda x:T[3]. let y:T[3] = psum[axes=(d,)] x in (y,) }", .axes = "d=2?; d=4?", .linear = "x", .sums = true),
    SAMPLE("pmax", "{ lambda x:T[S]{V:d}. let y:T[S] = pmax[axes=(d,)] x in (y,) }", .axes = "d=1; d=2; d=3; d=8"),
    SAMPLE("pmax", "{ lambda x:T[3]{V:a,b}. let y:T[3]{V:b} = pmax[axes=(a,)] x in (y,) }", .axes = "a=2 b=2; a=4 b=2"),
    SAMPLE("pmax", "{ lambda x:T[S]. let y:T[S] = pmax[axes=(d,)] x in (y,) }", .axes = "d=3?"),
    SAMPLE("pmin", "{ lambda x:T[S]{V:d}. let y:T[S] = pmin[axes=(d,)] x in (y,) }", .axes = "d=1; d=2; d=3; d=8"),
    SAMPLE("pmin", "{ lambda x:T[3]{V:a,b}. let y:T[3] = pmin[axes=(a, b)] x in (y,) }", .axes = "a=2 b=2"),
    /* groups: of neighbours, strided, in another order, uneven, of one, over two axes */
    SAMPLE("psum", "{ lambda x:T[3]{V:d}. let y:T[3]{V:d} = O[axes=(d {0,1} {2,3})] x in (y,) }", .axes = "d=4; d=4 e=2",
           .linear = "x", .sums = true),
    SAMPLE("psum", "{ lambda x:T[S]{V:d}. let y:T[S]{V:d} = O[axes=(d {0} {1,2,4} {3,5})] x in (y,) }", .axes = "d=6",
           .linear = "x", .sums = true),
    SAMPLE("psum", "{ lambda x:T[3]. let y:T[3] = O[axes=(d {0,3} {1,2})] x in (y,) }", .axes = "d=4?", .linear = "x",
           .sums = true),
    SAMPLE("psum", "{ lambda x:T[3]{V:a,b}. let y:T[3]{V:a,b} = O[axes=(b, a {0,2,4} {1,3,5})] x in (y,) }", .axes = "a=2 b=3",
           .linear = "x", .sums = true),
    SAMPLE("pmax", "{ lambda x:T[3]{V:d}. let y:T[3]{V:d} = O[axes=(d {0,2} {1,3})] x in (y,) }", .axes = "d=4"),
    SAMPLE("pmin", "{ lambda x:T[3]{V:d}. let y:T[3]{V:d} = O[axes=(d {0,2,1} {3})] x in (y,) }", .axes = "d=4"),
    SAMPLE("all_gather", "{ lambda x:T[3,2]{V:d}. let y:T[6,2]{V:d} = O[axes=(d {0,2} {1,3}) dimension=0] x in (y,) }",
           .axes = "d=4", .linear = "x"),
    SAMPLE("all_gather", "{ lambda x:T[3,2]. let y:T[3,4] = O[axes=(d {3,0} {2,1}) dimension=1] x in (y,) }",
           .axes = "d=4?; d=4? e=2", .linear = "x"),
    SAMPLE("all_gather", "{ lambda x:T[3,2]{V:a,b}. let y:T[3,6]{V:a,b} = O[axes=(a, b {3,0,1} {2,4,5}) dimension=1] x in (y,) }",
           .axes = "a=2 b=3", .linear = "x"),
    SAMPLE("psum_scatter", "{ lambda x:T[6,2]{V:d}. let y:T[3,2]{V:d} = O[axes=(d {0,1} {2,3}) dimension=0] x in (y,) }",
           .axes = "d=4; d=4 e=2", .linear = "x", .sums = true),
    SAMPLE("psum_scatter", "{ lambda x:T[2,6]{V:d}. let y:T[2,2]{V:d} = O[axes=(d {4,0,1} {2,5,3}) dimension=1] x in (y,) }",
           .axes = "d=6", .linear = "x", .sums = true),
    SAMPLE("all_to_all",
           "{ lambda x:T[6,2]{V:d}. let y:T[3,4]{V:d} = O[axes=(d {0,2} {1,3}) split_axis=0 concat_axis=1] x in (y,) }",
           .axes = "d=4; d=4 e=2", .linear = "x"),
    SAMPLE("all_to_all",
           "{ lambda x:T[2,6]{V:d}. let y:T[6,2]{V:d} = O[axes=(d {4,0,1} {2,5,3}) split_axis=1 concat_axis=0] x in (y,) }",
           .axes = "d=6", .linear = "x"),
    SAMPLE("all_to_all", "{ lambda x:T[2,3]. let y:T[2,3] = O[axes=(d {2} {0} {1}) split_axis=1 concat_axis=1] x in (y,) }",
           .axes = "d=3?", .linear = "x"),
    SAMPLE("pvary", "{ lambda x:T[S]. let y:T[S]{V:d} = pvary[axes=(d,)] x in (y,) }", .axes = "d=1; d=2; d=3", .linear = "x"),
    SAMPLE("pvary", "{ lambda x:T[3]{V:a}. let y:T[3]{V:a,b} = pvary[axes=(b,)] x in (y,) }", .axes = "a=2 b=2", .linear = "x"),
    SAMPLE("preduced",
           "{ lambda x:T[S] z:T[S]. let r:T[S]{R:d} = O[axes=(d,)] x s:T[S]{R:d} = O[axes=(d,)] z t:T[S]{R:d} = add r s"
           "  y:T[S]{V:d} = reduced_vary_cast[axes=(d,)] t in (y,) }",
           .axes = "d=1; d=2; d=3", .linear = "xz", .sums = true),
    SAMPLE("preduced",
           "{ lambda x:T[3]{V:a}. let r:T[3]{V:a R:b} = O[axes=(b,)] x y:T[3]{V:a,b} = reduced_vary_cast[axes=(b,)] r in (y,) }",
           .axes = "a=2 b=2", .linear = "x"),
    SAMPLE("reduced_vary_cast",
           "{ lambda x:T[3,2]{V:d}. let r:T[6,2]{R:d} = all_gather_reduced[axes=(d,) dimension=0] x"
           "  y:T[6,2]{V:d} = O[axes=(d,)] r in (y,) }",
           .axes = "d=2", .linear = "x"),
    SAMPLE("reduced_invariant_cast",
           "{ lambda x:T[S]. let r:T[S]{R:a,b} = preduced[axes=(a,b)] x y:T[S] = O[axes=(b,a)] r in (y,) }", .axes = "a=2 b=2",
           .linear = "x"),
    SAMPLE("vary_unreduced_cast",
           "{ lambda x:T[S]{V:d}. let u:T[S]{U:d} = O[axes=(d,) kind=sum] x v:T[S]{U:d} = neg u"
           "  y:T[S] = psum[axes=(d,)] v in (y,) }",
           .axes = "d=1; d=2; d=3", .linear = "x", .sums = true),
    SAMPLE("vary_unreduced_cast",
           "{ lambda x:T[3]{V:a,b}. let u:T[3]{U:a,b} = O[axes=(b,a) kind=sum] x y:T[3]{U:a} = psum[axes=(b,)] u"
           "  z:T[3] = psum[axes=(a,)] y in (z,) }",
           .axes = "a=2 b=2", .linear = "x", .sums = true),
    SAMPLE("vary_unreduced_cast",
           "{ lambda x:T[3]{V:d} z:T[3]{V:d}. let u:T[3]{Umax:d} = O[axes=(d,) kind=max] x v:T[3]{Umax:d} = O[axes=(d,) kind=max] z"
           "  w:T[3]{Umax:d} = max u v y:T[3] = pmax[axes=(d,)] w in (y,) }",
           .axes = "d=2; d=3"),
    SAMPLE("vary_unreduced_cast",
           "{ lambda x:T[3]{V:d}. let u:T[3]{Umin:d} = O[axes=(d,) kind=min] x y:T[3] = pmin[axes=(d,)] u in (y,) }",
           .axes = "d=3"),
    SAMPLE("unreduced_vary_cast",
           "{ lambda x:T[S]{V:d}. let u:T[S]{Umax:d} = vary_unreduced_cast[axes=(d,) kind=max] x"
           "  y:T[S]{V:d} = O[axes=(d,)] u in (y,) }",
           .axes = "d=2", .linear = "x"),
    SAMPLE("all_gather", "{ lambda x:T[3,2]{V:d}. let y:T[3,2]{V:d} = O[axes=(d,) dimension=0] x in (y,) }", .axes = "d=1",
           .linear = "x"),
    SAMPLE("all_gather", "{ lambda x:T[3,2]{V:d}. let y:T[6,2]{V:d} = O[axes=(d,) dimension=0] x in (y,) }", .axes = "d=2; d=2 e=2",
           .linear = "x"),
    SAMPLE("all_gather", "{ lambda x:T[3,2,5]{V:a,b}. let y:T[3,8,5]{V:a,b} = O[axes=(b, a) dimension=1] x in (y,) }",
           .axes = "a=2 b=2", .linear = "x"),
    SAMPLE("all_gather", "{ lambda x:T[3,2]. let y:T[3,6] = O[axes=(d,) dimension=1] x in (y,) }", .axes = "d=3?", .linear = "x"),
    SAMPLE("all_gather_invariant", "{ lambda x:T[3,2]{V:d}. let y:T[6,2] = O[axes=(d,) dimension=0] x in (y,) }",
           .axes = "d=2; d=2 e=2", .linear = "x"),
    SAMPLE("all_gather_invariant", "{ lambda x:T[3,2,5]{V:a,b}. let y:T[3,6,5]{V:a} = O[axes=(b,) dimension=1] x in (y,) }",
           .axes = "a=2 b=3", .linear = "x"),
    SAMPLE("all_gather_reduced",
           "{ lambda x:T[3,2]{V:a,b}. let r:T[3,8]{R:a,b} = O[axes=(b, a) dimension=1] x"
           "  y:T[3,8]{V:a,b} = reduced_vary_cast[axes=(a, b)] r in (y,) }",
           .axes = "a=2 b=2", .linear = "x", .sums = true),
    SAMPLE("psum_scatter",
           "{ lambda x:T[6,2]{V:d}. let u:T[6,2]{U:d} = vary_unreduced_cast[axes=(d,) kind=sum] x"
           "  y:T[3,2]{V:d} = O[axes=(d,) dimension=0] u in (y,) }",
           .axes = "d=2; d=2 e=2", .linear = "x", .sums = true),
    SAMPLE("psum_scatter", "{ lambda x:T[6,2]{V:d}. let y:T[3,2]{V:d} = O[axes=(d,) dimension=0] x in (y,) }",
           .axes = "d=2; d=2 e=2", .linear = "x", .sums = true),
    SAMPLE("psum_scatter", "{ lambda x:T[3,8,5]{V:a,b}. let y:T[3,2,5]{V:a,b} = O[axes=(b, a) dimension=1] x in (y,) }",
           .axes = "a=2 b=2", .linear = "x", .sums = true),
    SAMPLE("psum_scatter", "{ lambda x:T[6]. let y:T[2] = O[axes=(d,) dimension=0] x in (y,) }", .axes = "d=3?", .linear = "x",
           .sums = true),
    SAMPLE("all_to_all", "{ lambda x:T[6,2]{V:d}. let y:T[3,4]{V:d} = O[axes=(d,) split_axis=0 concat_axis=1] x in (y,) }",
           .axes = "d=2; d=2 e=2", .linear = "x"),
    SAMPLE("all_to_all", "{ lambda x:T[6,2]{V:d}. let y:T[6,2]{V:d} = O[axes=(d,) split_axis=0 concat_axis=0] x in (y,) }",
           .axes = "d=1; d=3", .linear = "x"),
    SAMPLE("all_to_all", "{ lambda x:T[2,3]. let y:T[6,1] = O[axes=(d,) split_axis=1 concat_axis=0] x in (y,) }", .axes = "d=3?",
           .linear = "x"),
    SAMPLE("all_to_all",
           "{ lambda x:T[2,3,8]{V:a,b}. let y:T[8,3,2]{V:a,b} = O[axes=(b, a) split_axis=2 concat_axis=0] x in (y,) }",
           .axes = "a=2 b=2", .linear = "x"),
    SAMPLE("ppermute", "{ lambda x:T[S]{V:d}. let y:T[S]{V:d} = O[axes=(d,) pairs=((0, 1), (1, 0))] x in (y,) }",
           .axes = "d=2; d=3; d=8", .linear = "x"),
    SAMPLE("ppermute", "{ lambda x:T[S]. let y:T[S] = O[axes=(d,) pairs=((0, 1), (1, 2))] x in (y,) }", .axes = "d=3?",
           .linear = "x"),
    SAMPLE("ppermute", "{ lambda x:T[5]{V:a,b}. let y:T[5]{V:a,b} = O[axes=(b, a) pairs=((0, 3), (3, 1), (2, 2))] x in (y,) }",
           .axes = "a=2 b=2; a=4 b=2", .linear = "x"),
    SAMPLE("ppermute", "{ lambda x:T[5]{V:d}. let y:T[5]{V:d} = O[axes=(d,) pairs=()] x in (y,) }", .axes = "d=2", .linear = "x"),
    SAMPLE("pbroadcast", "{ lambda x:T[S]{V:d}. let y:T[S]{V:d} = O[axes=(d,) source=1] x in (y,) }", .axes = "d=2; d=3; d=8",
           .linear = "x"),
    SAMPLE("pbroadcast", "{ lambda x:T[3,2]{V:d}. let y:T[3,2]{V:d} = O[axes=(d,) source=0] x in (y,) }", .axes = "d=1",
           .linear = "x"),
    SAMPLE("pbroadcast", "{ lambda x:T[S]. let y:T[S] = O[axes=(d,) source=2] x in (y,) }", .axes = "d=3?", .linear = "x"),
    SAMPLE("pbroadcast", "{ lambda x:T[5]{V:a,b}. let y:T[5]{V:a,b} = O[axes=(b, a) source=5] x in (y,) }",
           .axes = "a=2 b=3; a=3 b=2", .linear = "x"),
    SAMPLE("pbroadcast", "{ lambda x:T[5]{V:a,b}. let y:T[5]{V:a,b} = O[axes=(b,) source=1] x in (y,) }", .axes = "a=2 b=2",
           .linear = "x"),
    SAMPLE("ragged_all_to_all",
           "{ lambda x:T[5,2]{V:d} y:T[6,2]{V:d}. let\n"
           "i:s32[]{V:d} = axis_index[axes=(d,)]\n"
           "two:u8[2] = constant[value=[2, 2]:u8[2]]\n"
           "sizes:u8[2]{V:d} = pvary[axes=(d,)] two\n"
           "starts:s64[2] = constant[value=[0, 1]:s64[2]]\n"
           "from:s64[2]{V:d} = pvary[axes=(d,)] starts\n"
           "three:s32[]{V:d} = pvary[axes=(d,)] 3:s32[]\n"
           "place:s32[]{V:d} = mul i three\n"
           "to:s32[2]{V:d} = broadcast_in_dim[shape=(2,) broadcast_dimensions=()] place\n"
           "z:T[6,2]{V:d} = O[axes=(d,) batch=0 local=() back=false] x y from sizes to sizes in (z,) }",
           .axes = "d=2; d=2 e=2", .linear = "xy"),
    SAMPLE("ragged_all_to_all",
           "{ lambda x:T[2,3,4] y:T[2,3,5]. let\n"
           "size:s32[2,3,3] = constant[value=[[[1, 1, 1], [1, 1, 1], [1, 1, 1]], [[1, 1, 1], [1, 1, 1], [1, 1, 1]]]:s32[2,3,3]]\n"
           "i:s32[2,3,3] = iota[dtype=s32 shape=(2, 3, 3) dimension=1]\n"
           "j:s32[2,3,3] = iota[dtype=s32 shape=(2, 3, 3) dimension=2]\n"
           "z:T[2,3,5] = O[axes=() batch=1 local=(1,) back=false] x y j size i size in (z,) }",
           .linear = "xy"),
    /* back: rows 1 and 2 of 3 were sent to both, so that two rows are added to each */
    SAMPLE("ragged_all_to_all",
           "{ lambda x:T[5,2]{V:d} y:T[3,2]{V:d}. let\n"
           "i:s32[]{V:d} = axis_index[axes=(d,)]\n"
           "two:s32[2] = constant[value=[2, 2]:s32[2]]\n"
           "sizes:s32[2]{V:d} = pvary[axes=(d,)] two\n"
           "one:s32[2] = constant[value=[1, 1]:s32[2]]\n"
           "from:s32[2]{V:d} = pvary[axes=(d,)] one\n"
           "three:s32[]{V:d} = pvary[axes=(d,)] 3:s32[]\n"
           "place:s32[]{V:d} = mul i three\n"
           "to:s32[2]{V:d} = broadcast_in_dim[shape=(2,) broadcast_dimensions=()] place\n"
           "z:T[3,2]{V:d} = O[axes=(d,) batch=0 local=() back=true] x y from sizes to sizes in (z,) }",
           .axes = "d=2", .linear = "xy", .sums = true),
    SAMPLE("ragged_all_to_all",
           "{ lambda x:T[3]{V:d} y:T[4]{V:d}. let\n"
           "one:s32[2] = constant[value=[1, 1]:s32[2]]\n"
           "sizes:s32[2]{V:d} = pvary[axes=(d,)] one\n"
           "i:s32[]{V:d} = axis_index[axes=(d,)]\n"
           "to:s32[2]{V:d} = broadcast_in_dim[shape=(2,) broadcast_dimensions=()] i\n"
           "z:T[4]{V:d} = O[axes=(d {0,3} {2,1}) batch=0 local=() back=false] x y sizes sizes to sizes in (z,) }",
           .axes = "d=4", .linear = "xy"),
    SAMPLE("axis_index", "{ lambda x:T[2]. let i:s32[]{V:d} = O[axes=(d,)] in (i, x) }", .axes = "d=1; d=3; d=2 e=2"),
    SAMPLE("axis_index", "{ lambda x:T[2]. let i:s32[] = O[axes=(d,)] in (i, x) }", .axes = "d=3?"),
    SAMPLE("axis_index", "{ lambda x:T[2]. let i:s32[]{V:a,b} = O[axes=(b, a)] in (i, x) }", .axes = "a=2 b=3"),
    SAMPLE("start",
           "{ lambda x:T[S]{V:d} y:T[S]{V:d}. let"
           "  s:future<T[S]> = O[body={ lambda a:T[S]{V:d}. let b:T[S] = psum[axes=(d,)] a in (b,) }] x"
           "  z:T[S]{V:d} = sub y x r:T[S] = done s in (r, z) }",
           .axes = "d=1; d=2; d=3", .linear = "xy", .sums = true),
    SAMPLE("start",
           "{ lambda x:T[S] y:T[S]. let s:future<T[S]> = O[body={ lambda a:T[S]. let b:T[S] = psum[axes=(d,)] a in (b,) }] x"
           "  z:T[S] = mul y x r:T[S] = done s in (r, z) }",
           .axes = "d=3?", .sums = true),
    SAMPLE("start",
           "{ lambda x:T[4]{V:d} y:T[4]{V:d}. let"
           "  s:future<T[8]{V:d}> t:future<T[4]> = O[body={ lambda a:T[4]{V:d} b:T[4]{V:d}. let"
           "    c:T[8]{V:d} = all_gather[axes=(d,) dimension=0] a e:T[4]{V:d} = sub b a f:T[4] = psum[axes=(d,)] e in (c, f) }] x y"
           "  z:T[4]{V:d} = sub y x u:T[4] = done t r:T[8]{V:d} = done s in (r, z, u) }",
           .axes = "d=2", .linear = "xy", .sums = true),
    SAMPLE("done",
           "{ lambda x:T[3]{V:d}. let"
           "  s:future<T[3]> = start[body={ lambda a:T[3]{V:d}. let b:T[3] = pmax[axes=(d,)] a in (b,) }] x r:T[3] = O s in (r,) }",
           .axes = "d=2; d=2 e=2", .forward_only = true),
    SAMPLE("psend",
           "{ lambda x:T[S]{V:d}. let t:token{V:d} = O[axes=(d,) pairs=((0, 1), (1, 0)) link=0] x"
           "  y:T[S]{V:d} = precv[dtype=T dims=(S) axes=(d,) pairs=((0, 1), (1, 0)) link=0] t in (y,) }",
           .axes = "d=2; d=3", .forward_only = true, .two_sides = true),
    SAMPLE("psend",
           "{ lambda x:T[5]{V:a,b}. let t:token{V:a,b} = O[axes=(b, a) pairs=((0, 3), (3, 1), (2, 2)) link=4] x"
           "  y:T[5]{V:a,b} = precv[dtype=T dims=(5,) axes=(b, a) pairs=((0, 3), (3, 1), (2, 2)) link=4] t in (y, x) }",
           .axes = "a=2 b=2", .forward_only = true, .two_sides = true),
    SAMPLE(
        "precv",
        "{ lambda x:T[3]. let t:token = psend[axes=(d,) pairs=((0, 1), (1, 2)) link=0] x s:token = psend[axes=(d,) pairs=((2, 1),) link=0] x"
        "  y:T[3] = O[dtype=T dims=(3,) axes=(d,) pairs=((2, 1),) link=0] t"
        "  z:T[3] = O[dtype=T dims=(3,) axes=(d,) pairs=((0, 1), (1, 2)) link=0] s in (y, z) }",
        .axes = "d=3?", .forward_only = true, .two_sides = true),
    SAMPLE("create_token",
           "{ lambda x:T[2]{V:d}. let s:token{V:d} = psend[axes=(d,) pairs=((1, 0),) link=0] x t:token = O"
           "  y:T[2]{V:d,e} = precv[dtype=T dims=(2,) axes=(d,) pairs=((1, 0),) link=0] t in (y,) }",
           .axes = "d=2 e=2", .forward_only = true, .two_sides = true),
    SAMPLE("pure_callback",
           "{ lambda x:T[S]. let a:T[S] = stop_gradient x y:T[S] = O[vectorized=false callback=\"copy\" types=(T[S])] a in (y,) }",
           .stops_gradients = true),
    SAMPLE("pure_callback",
           "{ lambda x:T[3] y:T[2,2]. let a:T[3] = stop_gradient x b:T[2,2] = stop_gradient y"
           "  c:T[3] d:T[2,2] = O[vectorized=true callback=\"copy\" types=(T[3], T[2,2])] a b in (d, c) }",
           .stops_gradients = true),
    SAMPLE(
        "io_callback",
        "{ lambda x:T[S]{V:d}. let a:T[S]{V:d} = stop_gradient x y:T[S]{V:d} = O[axes=(d) callback=\"copy\" types=(T[S])] a in (y,) }",
        .axes = "d=2; d=2 e=3", .stops_gradients = true),
    SAMPLE("io_callback",
           "{ lambda x:T[2]. let a:T[2] = stop_gradient x y:T[2] = O[axes=() callback=\"copy\" types=(T[2])] a in (y,) }",
           .stops_gradients = true),
    SAMPLE(
        "ordered_io_callback",
        "{ lambda x:T[2]{V:d}. let a:T[2]{V:d} = stop_gradient x y:T[2]{V:d} = O[axes=(d) callback=\"copy\" types=(T[2])] a in (y,) }",
        .axes = "d=3", .stops_gradients = true, .no_batch = true),
    SAMPLE("debug_print", "{ lambda x:T[S]{V:d}. let = O[axes=(d) format=\"a {{{}}} b\"] x y:T[S]{V:d} = neg x in (y,) }",
           .axes = "d=2", .linear = "x"),
    SAMPLE("debug_print", "{ lambda x:T[2]. let y:T[2] = neg x = O[axes=() format=\"{:8} and {}\"] y x z:T[2] = neg y in (z,) }",
           .linear = "x"),
    SAMPLE("ordered_debug_print",
           "{ lambda x:T[2]. let = O[axes=() format=\"\"] = O[axes=() format=\"{}\"] x y:T[2] = neg x in (y,) }", .linear = "x",
           .no_batch = true),
    /* --- kernels --- */
    STEP("kernel_call", "", "", "", LOAD STORE),
    STEP(
        "ref_load", "", "", "",
        "m:bool[4] = constant[value=[true, false, true, true]:bool[4]] o:T[4] = O[masked=false] x a:T[4] = O[masked=true] x m o" STORE),
    STEP("ref_store", "", "", "",
         LOAD " = O[masked=false] y a m:bool[4] = constant[value=[true, false, true, true]:bool[4]] = O[masked=true] y a m"),
    STEP(
        "ref_swap", "", "", "",
        LOAD
        "b:T[4] = O[masked=false] y a m:bool[4] = constant[value=[true, false, true, true]:bool[4]] c:T[4] = O[masked=true] y a m a"),
    STEP("ref_add", "", "", "", LOAD STORE " = O y a"),
    STEP(
        "ref_slice", "", "", "",
        "r:ref<T[2] vmem> = O[sizes=(2) strides=()] x 1:s32[] s:ref<T[2] vmem> = O[sizes=(2) strides=(2)] y 0:s32[]"
        " b:T[2] = ref_load[masked=false] r = ref_store[masked=false] s b t:ref<T[2] vmem> = O[sizes=(2) strides=(2)] y 1:s32[] = ref_store[masked=false] t b"),
    STEP(
        "ref_transpose", "", "", "",
        "r:ref<T[2,2] vmem> = ref_reshape[dims=(2, 2)] x t:ref<T[2,2] vmem> = O[permutation=(1, 0)] r b:T[2,2] = ref_load[masked=false] t"
        " s:ref<T[2,2] vmem> = ref_reshape[dims=(2, 2)] y = ref_store[masked=false] s b"),
    STEP(
        "ref_reshape", "", "", "",
        "r:ref<T[2,2] vmem> = O[dims=(2, 2)] x s:ref<T[2,2] vmem> = O[dims=(2, 2)] y b:T[2,2] = ref_load[masked=false] r = ref_store[masked=false] s b"),
    STEP(
        "run_scoped", "", "", "",
        LOAD
        "b:T[4] = O[scratch=(ref<T[4] vmem>,) arrivals=() along=() body={ lambda a:T[4] r:ref<T[4] vmem>. let = ref_store[masked=false] r a"
        " b:T[4] = ref_load[masked=false] r in (b) }] a = ref_store[masked=false] y b"),
    STEP(
        "grid_point", "", "", "",
        "i:s32[] = constant[value=2:s32[]] = O[grid=(4,) body={ lambda x:ref<T[4] vmem> y:ref<T[4] vmem>. let i:s32[] = program_id[dimension=0] a:T[4] = ref_load[masked=false] x "
        "f:T[] = convert_element_type[dtype=T] i g:T[4] = broadcast_in_dim[shape=(4) broadcast_dimensions=()] f b:T[4] = mul a g = ref_store[masked=false] y b in () }] i x y"),
    STEP("semaphore_signal", "semaphore[]", "", " s:semaphore[]",
         LOAD STORE " = O[axes=() logical=false] s 2:s32[] = semaphore_wait s 2:s32[]"),
    STEP("semaphore_wait", "semaphore[2]", "", " s:semaphore[2]",
         LOAD STORE " s0:semaphore[1] = ref_slice[sizes=(1) strides=()] s 1:s32[] s1:semaphore[] = ref_reshape[dims=()] s0"
                    " = semaphore_signal[axes=() logical=false] s1 3:s32[] = O s1 1:s32[] = O s1 2:s32[]"),
    STEP("semaphore_read", "semaphore[]", "", " s:semaphore[]",
         LOAD STORE " = semaphore_signal[axes=() logical=false] s 2:s32[] n:s32[] = O s = semaphore_wait s n"),
    STEP("barrier_semaphore", "", "", "",
         LOAD STORE " s:semaphore[] = O = semaphore_signal[axes=() logical=false] s 1:s32[] = semaphore_wait s 1:s32[]"),
    STEP("barrier_arrive", "barrier[]", "(0, 2)", " b:barrier[]", LOAD " = O b = O b = barrier_wait b" STORE),
    STEP("barrier_wait", "barrier[]", "(0, 1)", " b:barrier[]", LOAD " = barrier_arrive b = O b = barrier_arrive b = O b" STORE),
    STEP("copy_start", "dma_semaphore[], dma_semaphore[]", "", " s:dma_semaphore[] t:dma_semaphore[]",
         " = " COPY("true", "true", "false", "true", "false") "x y s t true:bool[] = copy_wait s y = copy_wait t x"),
    STEP("copy_wait", "dma_semaphore[]", "", " s:dma_semaphore[]",
         " = " COPY("true", "false", "false", "false", "false") "x y s = O s x"),
    STEP("copy_commit", "ref<T[4] hbm>", "", " h:ref<T[4] hbm>",
         " = " COPY("false", "false", "false", "false",
                    "true") "x h = O = copy_wait_groups[pending=0 read_only=false] a:T[4] = ref_load[masked=false] h" STORE),
    STEP("copy_wait_groups", "ref<T[4] hbm>", "", " h:ref<T[4] hbm>",
         " = " COPY("false", "false", "false", "false",
                    "true") "x h = copy_commit = O[pending=1 read_only=true] = O[pending=0 read_only=false]"
                            " a:T[4] = ref_load[masked=false] h" STORE),
    STEP("commit_smem", "ref<T[4] hbm>", "", " h:ref<T[4] hbm>",
         LOAD STORE " = O = " COPY("false", "false", "false", "false",
                                   "true") "y h = copy_commit = copy_wait_groups[pending=0 read_only=false]"),
    SAMPLE(
        "program_id",
        "{ lambda x:T[4]. let z:T[4] = kernel_call[name=\"k\" consts=0 cores=(core) core_axes=(0) threads=() grid=(2,) semantics=() "
        "blocks=(ref<T[2] vmem>, ref<T[4] vmem>) blocked=((0, 0),) index_maps=({ axes ; lambda i:s32[]. let in (i) }) block_shapes=(T[2]) outs=(T[4]) "
        "scratch=() arrivals=() scratch_cores=() aliases=() target=\"\" metadata=\"\" compiler_params=\"\" interpret=false debug=false collective_id=0 "
        "flops=0 bytes=0 transcendentals=0 bodies=({ lambda x:ref<T[2] vmem> y:ref<T[4] vmem>. let i:s32[] = O[dimension=0] j:s32[] = mul i 2:s32[] "
        "r:ref<T[2] vmem> = ref_slice[sizes=(2) strides=()] y j a:T[2] = ref_load[masked=false] x = ref_store[masked=false] r a in () })] x in (z) }",
        .linear = "x", .kernel = true),
    STEP("set_max_registers", "", "", "", " = O[count=40 increase=false]" LOAD STORE),
    STEP("trace_begin", "", "", "", " = O[name=\"load\"] " LOAD " = trace_end[name=\"\"]" STORE),
    STEP("trace_end", "", "", "", " = trace_begin[name=\"load\"] " LOAD " = O[name=\"\"]" STORE),
    /* --- kernels that come with the library: of these the rules; what the kernel itself computes src/kernel tests --- */
    SAMPLE(
        "collective_matmul",
        "{ lambda x:T[3,2]{V:d} w:T[2,4]{V:d}. let z:T[6,4]{V:d} = O[body={ lambda x:T[3,2]{V:d} w:T[2,4]{V:d}. let b:T[6,2]{V:d} = all_gather[axes=(d,) dimension=0] x z:T[6,4]{V:d} = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] b w in (z) }"
        " axes=(d) columns=false buffering=2 collective_id=0] x w in (z) }",
        .axes = "d=2", .linear = "x w", .sums = true),
    SAMPLE(
        "collective_matmul",
        "{ lambda x:T[3,2]{V:d} w:T[4,4]{V:d}. let z:T[3,4]{V:d} = O[body={ lambda x:T[3,2]{V:d} w:T[4,4]{V:d}. let b:T[3,4]{V:d} = all_gather[axes=(d,) dimension=1] x z:T[3,4]{V:d} = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] b w in (z) }"
        " axes=(d) columns=true buffering=2 collective_id=0] x w in (z) }",
        .axes = "d=2; d=2 e=2", .linear = "x w", .sums = true),
    SAMPLE(
        "matmul_reduce_scatter",
        "{ lambda x:T[6,2]{V:d} w:T[2,4]{V:d}. let z:T[3,4]{V:d} = O[body={ lambda x:T[6,2]{V:d} w:T[2,4]{V:d}. let b:T[6,4]{V:d} = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] x w z:T[3,4]{V:d} = psum_scatter[axes=(d,) dimension=0] b in (z) }"
        " axes=(d) columns=false buffering=2 collective_id=0] x w in (z) }",
        .axes = "d=2; d=2 e=2", .linear = "x w", .sums = true),
    SAMPLE(
        "matmul_reduce_scatter",
        "{ lambda x:T[3,2]{V:d} w:T[2,8]{V:d}. let z:T[3,4]{V:d} = O[body={ lambda x:T[3,2]{V:d} w:T[2,8]{V:d}. let b:T[3,8]{V:d} = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] x w z:T[3,4]{V:d} = psum_scatter[axes=(d,) dimension=1] b in (z) }"
        " axes=(d) columns=true buffering=2 collective_id=0] x w in (z) }",
        .axes = "d=2", .linear = "x w", .sums = true),
    /* --- linear algebra --- */
    SAMPLE("cholesky", CHOLESKY("3,3", NINES), .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("cholesky", CHOLESKY("2,3,3", "[" NINES ", " NINES "]"), .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("cholesky", CHOLESKY("1,1", "[[9]]"), .ulps = 2, .generic = true, .by_largest = true),
    SAMPLE("cholesky", "{ lambda x:T[0,0]. let y:T[0,0] = cholesky x in (y,) }"),
    SAMPLE("cholesky", "{ lambda x:T[0,2,2]. let y:T[0,2,2] = cholesky x in (y,) }"),
    SAMPLE("triangular_solve", TRIANGULAR("3,3", "3,2", NINES, "true", "true", "false", "false"), .linear = "y", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("triangular_solve", TRIANGULAR("3,3", "3,5", NINES, "true", "false", "true", "false"), .linear = "y", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("triangular_solve", TRIANGULAR("3,3", "2,3", NINES, "false", "true", "true", "false"), .linear = "y", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("triangular_solve", TRIANGULAR("2,3,3", "2,5,3", "[" NINES ", " NINES "]", "false", "false", "false", "false"),
           .linear = "y", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("triangular_solve",
           "{ lambda x:T[3,3] y:T[3,4]. let z:T[3,4] = O[left_side=true lower=true transpose_a=true conjugate_a=false "
           "unit_diagonal=true] x y in (z,) }",
           .linear = "y", .low = -0.5, .high = 0.5, .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("triangular_solve", TRIANGULAR("1,1", "1,1", "[[9]]", "true", "true", "false", "false"), .linear = "y", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("triangular_solve",
           "{ lambda x:T[0,0] y:T[0,3]. let z:T[0,3] = O[left_side=true lower=true transpose_a=false conjugate_a=false "
           "unit_diagonal=false] x y in (z,) }",
           .linear = "y"),
    SAMPLE("triangular_solve",
           "{ lambda x:T[2,2] y:T[0,2]. let z:T[0,2] = O[left_side=false lower=true transpose_a=false conjugate_a=false "
           "unit_diagonal=true] x y in (z,) }",
           .linear = "y"),
    SAMPLE("lu", "{ lambda x:T[4,4]. let y:T[4,4] p:s32[4] = lu x in (y, p) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("lu", "{ lambda x:T[2,3,5]. let y:T[2,3,5] p:s32[2,3] = lu x in (y, p) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("lu", "{ lambda x:T[5,2]. let y:T[5,2] p:s32[2] = lu x in (y, p) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("lu", "{ lambda x:T[1,1]. let y:T[1,1] p:s32[1] = lu x in (y, p) }", .ulps = 1, .generic = true, .by_largest = true),
    SAMPLE("lu", "{ lambda x:T[2,0]. let y:T[2,0] p:s32[0] = lu x in (y, p) }"),
    /* --- complex --- */
    SAMPLE("real", "{ lambda x:T[S]. let y:U[S] = real x in (y,) }", .linear = "x"),
    SAMPLE("imag", "{ lambda x:T[S]. let y:U[S] = imag x in (y,) }", .linear = "x"),
    SAMPLE("complex", "{ lambda x:U[S] y:U[S]. let z:T[S] = complex x y in (z,) }", .linear = "xy"),
    SAMPLE("conj", ONE, .linear = "x"),
    SAMPLE("conj", "{ lambda x:T[S] y:T[S]. let a:T[S] = mul x y b:T[S] = conj a c:T[S] = exp b d:U[S] = abs c e:U[S] = imag a "
                   "f:T[S] = complex d e in (f, b) }", .ulps = 4, .generic = true),

    SAMPLE("lu_pivots_to_permutation",
           "{ lambda x:T[S]. let i:s32[2,3] = constant[value=[[2, 3, 2], [0, 3, 3]]:s32[2,3]] p:s32[2,4] = O[permutation_size=4] i in (p, x) }"),
    SAMPLE("lu_pivots_to_permutation",
           "{ lambda x:T[S]. let i:s32[0] = constant[value=[]:s32[0]] p:s32[2] = O[permutation_size=2] i in (p, x) }"),
    /* --- random bits: of the operand's numbers as keys --- */
    SAMPLE("threefry2x32",
           "{ lambda x:T[S] y:T[S]. let a:u32[S] = convert_element_type[dtype=u32] x b:u32[S] = convert_element_type[dtype=u32] y "
           "z:u32[S] w:u32[S] = O a b b a in (z, w) }"),
    SAMPLE("random_bits", RANDOM_BITS("2", "u32", "5", "5")),
    SAMPLE("random_bits", RANDOM_BITS("3,2", "u8", "2, 4", "3,2,4")),
    SAMPLE("random_bits", RANDOM_BITS("3,2", "u16", "", "3")),
    SAMPLE("random_bits", RANDOM_BITS("2,2", "u64", "3, 1", "2,3,1")),
    SAMPLE("random_bits", RANDOM_BITS("0,2", "u64", "2", "0,2")),
    SAMPLE("random_bits", RANDOM_BITS("2", "u32", "0, 2", "0,2")),
    SAMPLE("random_wrap", "{ lambda x:T[3,2]. let w:u32[3,2] = convert_element_type[dtype=u32] x y:key[3] = O w "
                          "r:key[3] = rev[dimensions=(0)] y e:bool[3] = eq y r in (e,) }"),
    SAMPLE("random_wrap", "{ lambda x:T[2]. let y:key[] = O x e:bool[] = eq y y in (y, e) }"),
    SAMPLE("random_wrap", "{ lambda x:T[2,0,2]. let y:key[2,0] = O x in (y,) }"),
    SAMPLE("random_unwrap", "{ lambda x:T[3,2]. let w:u32[3,2] = convert_element_type[dtype=u32] x y:key[3] = random_wrap w "
                            "r:key[3] = rev[dimensions=(0)] y z:u32[3,2] = O r in (z,) }"),
    SAMPLE("random_unwrap", "{ lambda x:T[2,3]. let y:u32[2,3,2] = O x in (y,) }"),
    SAMPLE("random_unwrap", "{ lambda x:T[]. let y:u32[2] = O x in (y,) }"),
    SAMPLE("linear_solve", LINEAR_SOLVE("3,3", "3,2", "3", NINES, "false"), .linear = "y", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("linear_solve", LINEAR_SOLVE("2,3,3", "2,3,1", "2,3", "[" NINES ", " NINES "]", "true"), .linear = "y", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("linear_solve", LINEAR_SOLVE("1,1", "1,4", "1", "[[9]]", "false"), .linear = "y", .ulps = 4, .generic = true, .by_largest = true),
    SAMPLE("linear_solve", LINEAR_SOLVE("0,0", "0,3", "0", "[]", "false"), .linear = "y"),
    SAMPLE("geqrf", FACTORED("geqrf", "5,3", "3"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("geqrf", FACTORED("geqrf", "2,3,3", "2,3"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("geqrf", FACTORED("geqrf", "2,4", "2"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("geqrf", FACTORED("geqrf", "1,1", "1"), .ulps = 1, .generic = true, .by_largest = true),
    SAMPLE("geqrf", FACTORED("geqrf", "0,2", "0")),
    SAMPLE("geqp3", PIVOTED("5,3", "3", "3", "[0, 0, 0]"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("geqp3", PIVOTED("2,2,4", "2,4", "2,2", "[[0, 0, 1, 0], [0, 0, 0, 0]]"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("geqp3", PIVOTED("0,2", "2", "0", "[0, 0]")),
    SAMPLE("householder_product", "{ lambda x:T[4,3] t:T[3]. let y:T[4,3] = O x t in (y,) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("householder_product", "{ lambda x:T[2,3,3] t:T[2,2]. let y:T[2,3,3] = O x t in (y,) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("householder_product", "{ lambda x:T[2,2] t:T[0]. let y:T[2,2] = O x t in (y,) }"),
    SAMPLE("ormqr", "{ lambda x:T[4,3] t:T[3] y:T[4,2]. let z:T[4,2] = O[left=true transpose=false] x t y in (z,) }", .linear = "y", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("ormqr", "{ lambda x:T[2,4,4] t:T[2,2] y:T[2,3,4]. let z:T[2,3,4] = O[left=false transpose=true] x t y in (z,) }", .linear = "y", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("ormqr", "{ lambda x:T[3,5] t:T[3] y:T[3,2]. let z:T[3,2] = O[left=true transpose=true] x t y in (z,) }", .linear = "y", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("ormqr", "{ lambda x:T[3,2] t:T[0] y:T[2,3]. let z:T[2,3] = O[left=false transpose=false] x t y in (z,) }", .linear = "y"),
    SAMPLE("qr", QR("4,3", "4,3", "3,3", "false"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("qr", QR("4,2", "4,4", "4,2", "true"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("qr",
           "{ lambda x:T[2,2,4]. let d:T[2,2,4] = constant[value=[[[9, 0, 0, 0], [0, 9, 0, 0]], [[9, 0, 0, 0], [0, 9, 0, 0]]]:T[2,2,4]] "
           "a:T[2,2,4] = add x d q:T[2,2,2] r:T[2,2,4] = O[full_matrices=true pivoting=false] a in (q, r) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("qr", "{ lambda x:T[4,3]. let q:T[4,3] r:T[3,3] p:s32[3] = O[full_matrices=false pivoting=true] x in (q, r, p) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("qr", "{ lambda x:T[2,3]. let q:T[2,2] r:T[2,3] p:s32[3] = O[full_matrices=false pivoting=true] x in (q, r, p) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("qr", QR("3,0", "3,3", "3,0", "true")),
    SAMPLE("qr", "{ lambda x:T[0,2]. let q:T[0,0] r:T[0,2] p:s32[2] = O[full_matrices=true pivoting=true] x in (q, r, p) }"),
    SAMPLE("eigh", "{ lambda x:T[4,4]. let v:T[4,4] w:T[4] = O[lower=true compute_v=true] x in (v, w) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eigh", "{ lambda x:T[2,3,3]. let v:T[2,3,3] w:T[2,3] = O[lower=false compute_v=true] x in (v, w) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eigh", "{ lambda x:T[2,3,3]. let w:T[2,3] = O[lower=true compute_v=false] x in (w,) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eigh", "{ lambda x:T[1,1]. let v:T[1,1] w:T[1] = O[lower=true compute_v=true] x in (v, w) }", .ulps = 1, .generic = true, .by_largest = true),
    SAMPLE("eigh", "{ lambda x:T[0,0]. let v:T[0,0] w:T[0] = O[lower=true compute_v=true] x in (v, w) }"),
    SAMPLE("svd", SVD("4,3", "3", "4,3", "3,3", "false"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", SVD("2,2,3", "2,2", "2,2,2", "2,2,3", "false"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", SVD("3,3", "3", "3,3", "3,3", "true"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", PROJECTED("4,2", "2", "4,4", "2,2", "r:T[4,2] = slice[start_indices=(0, 2) limit_indices=(4, 4) strides=(1, 1)] u t:T[2,4] = transpose[permutation=(1, 0)] r y:T[4,4] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] r t"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", PROJECTED("2,3", "2", "2,2", "3,3", "r:T[1,3] = slice[start_indices=(2, 0) limit_indices=(3, 3) strides=(1, 1)] v t:T[3,1] = transpose[permutation=(1, 0)] r y:T[3,3] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] t r"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", "{ lambda x:T[2,3]. let s:T[2] = O[full_matrices=true compute_uv=false] x in (s,) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", SVD("3,0", "0", "3,3", "0,0", "true")),
    SAMPLE("svd", SVD("0,2", "0", "0,0", "0,2", "false")),
    /* Of Hermitian and other complex matrices: vectors may be multiplied by numbers of size 1, so that what these do not change is alone smooth. */
    SAMPLE("eigh", "{ lambda x:T[4,4]. let v:T[4,4] w:U[4] = O[lower=true compute_v=true] x " BY_FIRST("4") " in (w, y) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eigh", "{ lambda x:T[3,3]. let v:T[3,3] w:U[3] = O[lower=false compute_v=true] x " BY_FIRST("3") " in (w, y) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eigh", "{ lambda x:T[2,3,3]. let v:T[2,3,3] w:U[2,3] = O[lower=false compute_v=true] x a:U[2,3,3] = abs v in (w, a) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eigh", "{ lambda x:T[3,3]. let w:U[3] = O[lower=true compute_v=false] x in (w,) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", "{ lambda x:T[4,3]. let s:U[3] u:T[4,3] v:T[3,3] = O[full_matrices=false compute_uv=true] x " BY_TWO("4", "3") " in (s, y) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", "{ lambda x:T[2,4]. let s:U[2] u:T[2,2] v:T[2,4] = O[full_matrices=false compute_uv=true] x " BY_TWO("2", "4") " in (s, y) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", "{ lambda x:T[3,4]. let s:U[3] u:T[3,3] v:T[4,4] = O[full_matrices=true compute_uv=true] x " BY_TWO("3", "4") " in (s, y) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", "{ lambda x:T[2,3]. let s:U[2] = O[full_matrices=true compute_uv=false] x in (s,) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("svd", "{ lambda x:T[3,0]. let s:U[0] u:T[3,3] v:T[0,0] = O[full_matrices=true compute_uv=true] x in (s, u, v) }"),
    SAMPLE("schur", SCHUR_SIZES("4,4"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("schur", SCHUR_SIZES("1,1"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("schur", SCHUR_SIZES("2,3,3"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("schur", "{ lambda x:T[3,2,2]. let t:T[3,2,2] = O[compute_schur_vectors=false] x a:U[3,2,2] = abs t in (a,) }", .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal",
           "{ lambda x:T[4,4]. let f:T[4,4] d:U[4] e:U[3] t:T[3] = O[lower=true] x in (f, d, e, t) }",
           .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal", "{ lambda x:T[2,5,5]. let f:T[2,5,5] d:U[2,5] e:U[2,4] t:T[2,4] = O[lower=false] x in (f, d, e, t) }", .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal", "{ lambda x:T[1,1]. let f:T[1,1] d:U[1] e:U[0] t:T[0] = O[lower=false] x in (f, d, e, t) }"),
    SAMPLE("eig", EIG("x:T[4,4]", "w:T[4] l:T[4,4] r:T[4,4]", "true", "true", "x", "w, l, r"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eig", EIG("x:T[2,3,3]", "w:T[2,3] l:T[2,3,3]", "true", "false", "x", "w, l"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eig", EIG("x:T[3,3]", "w:U[3] r:U[3,3]", "false", "true", "x", "w, r"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eig", EIG("x:T[2,3,3]", "w:U[2,3]", "false", "false", "x", "w"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eig", REAL_EIG("4,4", "w:c128[4] l:c128[4,4] r:c128[4,4]", "true", "true", "w, l, r"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eig", REAL_EIG("3,3", "w:c128[3]", "false", "false", "w"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("eig", EIG("x:T[1,1]", "w:T[1] r:T[1,1]", "false", "true", "x", "w, r"), .ulps = 1, .generic = true, .by_largest = true),
    SAMPLE("eig", EIG("x:T[0,0]", "w:T[0] l:T[0,0]", "true", "false", "x", "w, l")),
    SAMPLE("fft", FFT("FFT", "T[8]", "T[8]", 8, 0), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("FFT", "T[3,5,2]", "T[3,5,2]", 5, 1), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("IFFT", "T[2,12]", "T[2,12]", 12, 1), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("IFFT", "T[7,20]", "T[7,20]", 7, 0), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("FFT", "T[3,1]", "T[3,1]", 1, 1), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("RFFT", "U[2,6]", "T[2,4]", 6, 1), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("RFFT", "U[5,17]", "T[3,17]", 5, 0), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("RFFT", "U[1]", "T[1]", 1, 0), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("IRFFT", "T[2,4]", "U[2,6]", 6, 1), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("IRFFT", "T[3,17]", "U[5,17]", 5, 0), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("IRFFT", "T[1,2]", "U[1,2]", 1, 0), .linear = "x", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("fft", FFT("FFT", "T[0,4]", "T[0,4]", 4, 1), .linear = "x"),
    SAMPLE("tridiagonal_solve",
           "{ lambda x:T[3] y:T[3] z:T[3] b:T[3,2]. let n:T[3] = constant[value=[9, 9, 9]:T[3]] d:T[3] = add y n c:T[3,2] = O x d z b in (c,) }",
           .linear = "b", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal_solve",
           "{ lambda x:T[2,4] y:T[2,4] z:T[2,4] b:T[2,4,1]. let n:T[2,4] = constant[value=[[9, 9, 9, 9], [9, 9, 9, 9]]:T[2,4]] d:T[2,4] = add y n "
           "c:T[2,4,1] = O x d z b in (c,) }",
           .linear = "b", .ulps = 16, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal_solve",
           "{ lambda x:T[1] y:T[1] z:T[1] b:T[1,3]. let n:T[1] = constant[value=[9]:T[1]] d:T[1] = add y n c:T[1,3] = O x d z b in (c,) }",
           .linear = "b", .ulps = 4, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal_solve", "{ lambda x:T[0] y:T[0] z:T[0] b:T[0,3]. let c:T[0,3] = O x y z b in (c,) }", .linear = "b"),
    SAMPLE("tridiagonal",
           "{ lambda x:T[4,4]. let f:T[4,4] d:T[4] e:T[3] t:T[3] = O[lower=true] x in (f, d, e, t) }",
           .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal",
           "{ lambda x:T[2,3,3]. let f:T[2,3,3] d:T[2,3] e:T[2,2] t:T[2,2] = O[lower=false] x in (f, d, e, t) }",
           .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("tridiagonal", "{ lambda x:T[1,1]. let f:T[1,1] d:T[1] e:T[0] t:T[0] = O[lower=true] x in (f, d, e, t) }"),
    SAMPLE("tridiagonal", "{ lambda x:T[2,2]. let f:T[2,2] d:T[2] e:T[1] t:T[1] = O[lower=false] x in (f, d, e, t) }", .ulps = 4, .generic = true, .by_largest = true),
    SAMPLE("hessenberg", FACTORED("hessenberg", "4,4", "3"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("hessenberg", FACTORED("hessenberg", "2,3,3", "2,2"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("hessenberg", FACTORED("hessenberg", "7,7", "6"), .ulps = 64, .generic = true, .by_largest = true),
    SAMPLE("hessenberg", FACTORED("hessenberg", "2,2", "1"), .ulps = 4, .generic = true, .by_largest = true),
    SAMPLE("hessenberg", FACTORED("hessenberg", "1,1", "0")),
    SAMPLE("schur", REAL_SCHUR("4,4"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("schur", REAL_SCHUR("2,3,3"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("schur", REAL_SCHUR("5,2,2"), .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("schur", REAL_SCHUR("1,1"), .ulps = 1, .generic = true, .by_largest = true),
    SAMPLE("schur", "{ lambda x:T[2,3,3]. let a:f64[2,3,3] = convert_element_type[dtype=f64] x t:f64[2,3,3] = O[compute_schur_vectors=false] a b:f64[2,3,3] = abs t in (b,) }",
           .ulps = 256, .generic = true, .by_largest = true),
    SAMPLE("schur", "{ lambda x:T[0,0]. let t:T[0,0] q:T[0,0] = O[compute_schur_vectors=true] x in (t, q) }"),
};

const size_t test_sample_count = AX_COUNT(test_samples);
