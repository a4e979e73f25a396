/* Operations of modules that are no primitives: each in a module of its own that checks its results, which follow from the
   mathematics; tuples and tokens, and what a module asks of the host. */
#include <stdio.h>
#include <string.h>

#include "axle/callback.h"
#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "bridge/readers.h"
#include "hlo/flatten.h"
#include "hlo/read_text.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

#define T "!stablehlo.token"
#define PAIR "tuple<tensor<2xf32>, tuple<tensor<i32>>>"

static ax_program *import(const char *text) {
  ax_program *program;
  if (ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  return program;
}

/* --- Results --- */

#define C(name, value, type) "  " name " = stablehlo.constant dense<" value "> : " type "\n"
#define CLOSE(value, wanted, type) "  check.expect_almost_eq_const " value ", dense<" wanted "> : " type "\n"
#define EQ(value, wanted, type) "  check.expect_eq_const " value ", dense<" wanted "> : " type "\n"
#define SUM                                                                                                                       \
  "{\n  ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n    %s = stablehlo.add %x, %y : tensor<i32>\n    stablehlo.return %s : tensor<i32>\n  }"
#define BITS(name, state, words, element, algorithm)                                                                                \
  "  " name ":2 = \"stablehlo.rng_bit_generator\"(" state ") {rng_algorithm = #stablehlo<rng_algorithm " algorithm ">} : (tensor<" words \
  "xui64>) -> (tensor<" words "xui64>, tensor<3x" element ">)\n"
static const char *const results[] = {
    /* tuples in tuples, through a function, an optimization barrier and a loop */
    C("%a", "[1.0, 2.0]", "tensor<2xf32>") C("%n", "3", "tensor<i32>")
    "  %t = stablehlo.create_token : " T "\n  %u = stablehlo.after_all %t, %t : " T "\n"
    "  %0 = stablehlo.tuple %n : tuple<tensor<i32>>\n  %1 = stablehlo.tuple %a, %0 : " PAIR "\n"
    "  %2 = call @turn(%1, %u) : (" PAIR ", " T ") -> " PAIR "\n"
    "  %3, %v = stablehlo.optimization_barrier %2, %u : " PAIR ", " T "\n  %w = stablehlo.optimization_barrier %v : " T "\n"
    "  %4 = \"stablehlo.while\"(%3) ({\n  ^bb0(%x: " PAIR "):\n    %5 = stablehlo.get_tuple_element %x[1] : (" PAIR
    ") -> tuple<tensor<i32>>\n    %6 = stablehlo.get_tuple_element %5[0] : (tuple<tensor<i32>>) -> tensor<i32>\n"
    "    %7 = stablehlo.constant dense<12> : tensor<i32>\n    %8 = stablehlo.compare LT, %6, %7 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %8 : tensor<i1>\n  }, {\n  ^bb0(%x: " PAIR "):\n    %5 = func.call @turn(%x, %w) : (" PAIR ", " T ") -> " PAIR "\n"
    "    stablehlo.return %5 : " PAIR "\n  }) : (" PAIR ") -> " PAIR "\n"
    "  %5 = stablehlo.get_tuple_element %4[0] : (" PAIR ") -> tensor<2xf32>\n"
    "  %6 = stablehlo.get_tuple_element %4[1] : (" PAIR ") -> tuple<tensor<i32>>\n"
    "  %7 = stablehlo.get_tuple_element %6[0] : (tuple<tensor<i32>>) -> tensor<i32>\n"
    EQ("%5", "[1.0, 2.0]", "tensor<2xf32>") EQ("%7", "12", "tensor<i32>"),
    /* a number times a truth value: that or 0, whatever it is, in either order; of one that was 0 or 1 before, a product */
    C("%a", "[0x7F800000, 0x7FC00000, 0xFF800000, -2.0, -0.0]", "tensor<5xf32>") C("%p", "[false, false, true, true, true]", "tensor<5xi1>")
    C("%n", "[0, 0, 1, 1, 1]", "tensor<5xi32>")
    "  %m = stablehlo.convert %p : (tensor<5xi1>) -> tensor<5xf32>\n  %0 = stablehlo.multiply %m, %a : tensor<5xf32>\n"
    "  %1 = stablehlo.multiply %a, %m : tensor<5xf32>\n  %k = stablehlo.convert %n : (tensor<5xi32>) -> tensor<5xf32>\n"
    "  %2 = stablehlo.multiply %k, %a : tensor<5xf32>\n  %3 = stablehlo.compare NE, %2, %2 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>\n"
    EQ("%0", "[0.0, 0.0, 0xFF800000, -2.0, -0.0]", "tensor<5xf32>") EQ("%1", "[0.0, 0.0, 0xFF800000, -2.0, -0.0]", "tensor<5xf32>")
    EQ("%3", "[true, true, false, false, false]", "tensor<5xi1>"),
    /* a product of booleans: or of and */
    C("%a", "[[true, true], [true, false], [false, false]]", "tensor<3x2xi1>") C("%b", "[true, true]", "tensor<2xi1>")
    "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x2xi1>, tensor<2xi1>) -> tensor<3xi1>\n"
    "  %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x2xi1>, tensor<2xi1>) -> tensor<3xf32>\n"
    EQ("%0", "[true, true, false]", "tensor<3xi1>") EQ("%1", "[2.0, 1.0, 0.0]", "tensor<3xf32>"),
    C("%a", "[[[true, false, true, true]]]", "tensor<1x1x4xi1>") C("%k", "[[[true, true]]]", "tensor<1x1x2xi1>")
    C("%f", "false", "tensor<i1>")
    "  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2]} {batch_group_count = 1 : i64, "
    "feature_group_count = 1 : i64} : (tensor<1x1x4xi1>, tensor<1x1x2xi1>) -> tensor<1x1x2xi1>\n"
    "  %1 = stablehlo.clamp %f, %a, %a : (tensor<i1>, tensor<1x1x4xi1>, tensor<1x1x4xi1>) -> tensor<1x1x4xi1>\n"
    EQ("%0", "[[[true, true]]]", "tensor<1x1x2xi1>") EQ("%1", "[[[true, false, true, true]]]", "tensor<1x1x4xi1>"),
    /* products of integers that are added as floats: none wraps around */
    C("%a", "[[100, 100, -100]]", "tensor<1x3xi8>") C("%b", "[100, 100, 1]", "tensor<3xi8>") C("%k", "[[[100, -100]]]", "tensor<1x1x2xi8>")
    "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1x3xi8>, tensor<3xi8>) -> tensor<1xf32>\n"
    "  %1 = stablehlo.reshape %a : (tensor<1x3xi8>) -> tensor<1x1x3xi8>\n"
    "  %2 = stablehlo.convolution(%1, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, "
    "feature_group_count = 1 : i64} : (tensor<1x1x3xi8>, tensor<1x1x2xi8>) -> tensor<1x1x2xf32>\n"
    EQ("%0", "[19900.0]", "tensor<1xf32>") EQ("%2", "[[[0.0, 20000.0]]]", "tensor<1x1x2xf32>"),
    /* running sums whose start is a constant that is broadcast: of f16 in f32, of complex numbers by their parts; a sum of these */
    C("%a", "[2048.0, 1.0, 1.0, 1.0, 1.0]", "tensor<5xf16>") C("%c", "0.0", "tensor<f16>")
    "  %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f16>) -> tensor<f16>\n"
    "  %0 = \"stablehlo.reduce_window\"(%a, %z) <{padding = dense<[[4, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 5>}> ({\n"
    "  ^bb0(%x: tensor<f16>, %y: tensor<f16>):\n    %s = stablehlo.add %x, %y : tensor<f16>\n"
    "    stablehlo.return %s : tensor<f16>\n  }) : (tensor<5xf16>, tensor<f16>) -> tensor<5xf16>\n"
    EQ("%0", "[2048.0, 2048.0, 2050.0, 2052.0, 2052.0]", "tensor<5xf16>"),
    C("%a", "[(1.0, 8.0), (2.0, -4.0), (3.0, 2.0)]", "tensor<3xcomplex<f32>>") C("%c", "(0.0, 0.0)", "tensor<complex<f32>>")
    "  %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<complex<f32>>) -> tensor<complex<f32>>\n"
    "  %0 = \"stablehlo.reduce_window\"(%a, %z) <{padding = dense<[[2, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({\n"
    "  ^bb0(%x: tensor<complex<f32>>, %y: tensor<complex<f32>>):\n    %s = stablehlo.add %x, %y : tensor<complex<f32>>\n"
    "    stablehlo.return %s : tensor<complex<f32>>\n  }) : (tensor<3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>\n"
    "  %1 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3xcomplex<f32>>, "
    "tensor<complex<f32>>) -> tensor<complex<f32>>\n"
    "  %2 = stablehlo.reduce(%a init: %z) applies stablehlo.multiply across dimensions = [0] : (tensor<3xcomplex<f32>>, "
    "tensor<complex<f32>>) -> tensor<complex<f32>>\n"
    C("%o", "(1.0, 0.0)", "tensor<complex<f32>>")
    "  %3 = stablehlo.reduce(%a init: %o) applies stablehlo.multiply across dimensions = [0] : (tensor<3xcomplex<f32>>, "
    "tensor<complex<f32>>) -> tensor<complex<f32>>\n"
    EQ("%0", "[(1.0, 8.0), (3.0, 4.0), (6.0, 6.0)]", "tensor<3xcomplex<f32>>") EQ("%1", "(6.0, 6.0)", "tensor<complex<f32>>")
    EQ("%2", "(0.0, 0.0)", "tensor<complex<f32>>") EQ("%3", "(78.0, 104.0)", "tensor<complex<f32>>"),
    /* a cast, beside StableHLO's operations */
    C("%a", "[1.0, 4.0]", "tensor<2xf32>") "  %0 = tensor.cast %a : tensor<2xf32> to tensor<?xf32>\n"
    "  %1 = tensor.cast %0 : tensor<?xf32> to tensor<2xf32>\n" EQ("%1", "[1.0, 4.0]", "tensor<2xf32>"),
    /* probes, which keep a value each time that it is computed */
    C("%0", "0", "tensor<i32>") C("%1", "1", "tensor<i32>") C("%2", "2", "tensor<i32>") C("%3", "3", "tensor<i32>")
    "  %r = stablehlo.while(%i = %0) : tensor<i32>\n  cond {\n    %c = stablehlo.compare LT, %i, %3 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %c : tensor<i1>\n  } do {\n    %n = stablehlo.add %i, %1 : tensor<i32>\n"
    "    %p = interpreter.probe %n, probe_id = \"a/b\" : tensor<i32>\n    stablehlo.return %p : tensor<i32>\n  }\n"
    "  interpreter.print %r : tensor<i32>\n"
    "  check.expect_serialized_eq %1, probe_id = \"a/b\" : tensor<i32>\n  check.expect_serialized_eq %2, probe_id = \"a/b\", iter = 1 : "
    "tensor<i32>\n  check.expect_serialized_eq %r, probe_id = \"a/b\", iter = 2 : tensor<i32>\n",
    /* what begins and is done */
    C("%a", "[1.0, 4.0]", "tensor<2xf32>")
    "  %0 = \"stablehlo.async_start\"(%a) ({\n  ^bb0(%x: tensor<2xf32>):\n    %1 = stablehlo.slice %x [1:2] : (tensor<2xf32>) -> tensor<1xf32>\n"
    "    stablehlo.return %1 : tensor<1xf32>\n  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<1xf32>>\n"
    "  %1 = \"stablehlo.async_done\"(%0) : (!stablehlo.future<tensor<1xf32>>) -> tensor<1xf32>\n" EQ("%1", "[4.0]", "tensor<1xf32>"),
    /* broadcast by NumPy's rules, and as the attribute says */
    C("%a", "[[1, 2], [3, 4]]", "tensor<2x2xi32>") C("%b", "[10, 20]", "tensor<2xi32>")
    "  %0 = chlo.broadcast_add %a, %b : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>\n"
    "  %1 = chlo.broadcast_subtract %b, %a {broadcast_dimensions = array<i64: 0>} : (tensor<2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>\n"
    "  %2 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction GE>} : (tensor<2x2xi32>, tensor<2xi32>) -> "
    "tensor<2x2xi1>\n"
    EQ("%0", "[[11, 22], [13, 24]]", "tensor<2x2xi32>") EQ("%1", "[[9, 8], [17, 16]]", "tensor<2x2xi32>")
    EQ("%2", "false", "tensor<2x2xi1>"),
    C("%a", "[2.0, 3.0]", "tensor<2xf32>") C("%b", "2.0", "tensor<f32>")
    "  %0 = chlo.broadcast_power %a, %b : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\n"
    "  %1 = chlo.broadcast_next_after %b, %a : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>\n"
    EQ("%0", "[4.0, 9.0]", "tensor<2xf32>") EQ("%1", "[0x40000000, 0x40000001]", "tensor<2xf32>"),
    /* functions by their names in MHLO, as TensorFlow's compiler writes them */
    C("%a", "[0.5, -0.5]", "tensor<2xf64>")
    "  %0 = mhlo.erf %a : tensor<2xf64>\n  %1 = \"mhlo.sinh\"(%a) : (tensor<2xf64>) -> tensor<2xf64>\n  %2 = mhlo.acos %a : tensor<2xf64>\n"
    CLOSE("%0", "[0.52049987781304654, -0.52049987781304654]", "tensor<2xf64>") CLOSE("%1", "[0.52109530549374738, -0.52109530549374738]", "tensor<2xf64>")
    CLOSE("%2", "[1.0471975511965979, 2.0943951023931953]", "tensor<2xf64>"),
    /* matrices, as XLA's own library calls for them: the factors' product, and values in ascending order */
    C("%a", "[[3.0, 1.0], [4.0, 2.0]]", "tensor<2x2xf64>")
    "  %t = stablehlo.custom_call @Qr(%a) {backend_config = \"\"} : (tensor<2x2xf64>) -> tuple<tensor<2x2xf64>, tensor<2xf64>>\n"
    "  %f = stablehlo.get_tuple_element %t[0] : (tuple<tensor<2x2xf64>, tensor<2xf64>>) -> tensor<2x2xf64>\n"
    "  %s = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2x2xf64>, tensor<2xf64>>) -> tensor<2xf64>\n"
    "  %q = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%f, %s) {backend_config = \"\"} : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>\n"
    CLOSE("%q", "[[-0.6, -0.8], [-0.8, 0.6]]", "tensor<2x2xf64>"),
    C("%a", "[[2.0, 9.0], [1.0, 2.0]]", "tensor<2x2xf64>")
    "  %t = stablehlo.custom_call @Eigh(%a) {backend_config = \"1,1,15,0.000001\"} : (tensor<2x2xf64>) -> tuple<tensor<2x2xf64>, tensor<2xf64>>\n"
    "  %w = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2x2xf64>, tensor<2xf64>>) -> tensor<2xf64>\n"
    CLOSE("%w", "[1.0, 3.0]", "tensor<2xf64>"),
    /* infinities */
    C("%a", "[0x7F800000, 0xFF800000, 0x7FC00000, 1.0]", "tensor<4xf32>")
    "  %0 = chlo.is_pos_inf %a : tensor<4xf32> -> tensor<4xi1>\n  %1 = chlo.is_neg_inf %a : tensor<4xf32> -> tensor<4xi1>\n"
    EQ("%0", "[true, false, false, false]", "tensor<4xi1>") EQ("%1", "[false, true, false, false]", "tensor<4xi1>"),
    /* -1 squared has nothing above its low half; 2^63 - 1 squared has 2^62 - 1; and 2^64 - 1 squared has 2^64 - 2 */
    C("%a", "[-1, 9223372036854775807, -9223372036854775808]", "tensor<3xi64>")
    "  %0 = chlo.mulhi %a, %a : tensor<3xi64>\n" EQ("%0", "[0, 4611686018427387903, 4611686018427387904]", "tensor<3xi64>")
    C("%b", "[18446744073709551615, 4294967296]", "tensor<2xui64>")
    "  %1 = chlo.mulhi %b, %b : tensor<2xui64>\n" EQ("%1", "[18446744073709551614, 1]", "tensor<2xui64>")
    C("%c", "[-128, 100]", "tensor<2xi8>") "  %2 = chlo.mulhi %c, %c : tensor<2xi8>\n" EQ("%2", "[64, 39]", "tensor<2xi8>"),
    /* constants */
    "  %a = chlo.constant dense<3> : tensor<2xi32>\n  %0 = \"chlo.constant_like\"(%a) {value = 1.5 : f32} : (tensor<2xi32>) -> tensor<2xf32>\n"
    EQ("%0", "1.5", "tensor<2xf32>")
    "  %1 = \"chlo.constant_like\"(%a) {value = 0xFF800000 : f32} : (tensor<2xi32>) -> tensor<2xf32>\n" EQ("%1", "0xFF800000", "tensor<2xf32>")
    "  %2 = \"chlo.constant_like\"(%a) {value = 0x7FC1 : bf16} : (tensor<2xi32>) -> tensor<2xbf16>\n" EQ("%2", "0x7FC1", "tensor<2xbf16>")
    "  %3 = \"chlo.constant_like\"(%a) {value = 0x3FF8000000000000 : f64} : (tensor<2xi32>) -> tensor<2xf64>\n" EQ("%3", "1.5", "tensor<2xf64>")
    "  %4 = \"chlo.constant_like\"(%a) {value = true} : (tensor<2xi32>) -> tensor<2xi1>\n" EQ("%4", "true", "tensor<2xi1>")
    "  %5 = \"chlo.constant_like\"(%a) {value = 18446744073709551615 : ui64} : (tensor<2xi32>) -> tensor<2xui64>\n"
    EQ("%5", "18446744073709551615", "tensor<2xui64>")
    "  %6 = \"chlo.constant_like\"(%a) {value = #complex.number<:f32 1.0, -2.0> : complex<f32>} : (tensor<2xi32>) -> tensor<2xcomplex<f32>>\n"
    "  %7 = \"chlo.constant_like\"(%a) {value = #complex.number<:f64 0x7FF0000000000000, 2.0>} : (tensor<2xi32>) -> tensor<2xcomplex<f64>>\n"
    EQ("%6", "(1.0, -2.0)", "tensor<2xcomplex<f32>>") EQ("%7", "(0x7FF0000000000000, 2.0)", "tensor<2xcomplex<f64>>"),
    /* epsilon as bits: 12 / sqrt(15 + 1) */
    C("%a", "12.0", "tensor<1x1xf32>") C("%o", "1.0", "tensor<1xf32>") C("%z", "0.0", "tensor<1xf32>") C("%v", "15.0", "tensor<1xf32>")
    "  %0 = \"stablehlo.batch_norm_inference\"(%a, %o, %z, %z, %v) {epsilon = 0x3F800000 : f32, feature_index = 1 : i64} : (tensor<1x1xf32>, "
    "tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1xf32>\n" EQ("%0", "3.0", "tensor<1x1xf32>"),
    /* sums of i8 by a body of i32, which none wraps around: of all, of windows, of updates, of what windows select */
    C("%a", "[[100, 100, 100], [1, 2, 3]]", "tensor<2x3xi8>") C("%z", "100", "tensor<i8>") C("%b", "[1, 2, 4, 3]", "tensor<4xi8>")
    C("%i", "[[1]]", "tensor<1x1xi32>") C("%u", "[100, 127]", "tensor<2xi8>") C("%w", "[100]", "tensor<1xi8>")
    "  %0 = \"stablehlo.reduce\"(%a, %z) (" SUM ") {dimensions = array<i64: 1>} : (tensor<2x3xi8>, tensor<i8>) -> tensor<2xi32>\n"
    "  %1 = \"stablehlo.reduce_window\"(%u, %z) <{window_dimensions = array<i64: 2>}> (" SUM ") : (tensor<2xi8>, tensor<i8>) -> tensor<1xi32>\n"
    "  %2 = \"stablehlo.scatter\"(%u, %i, %w) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> (" SUM ") : (tensor<2xi8>, tensor<1x1xi32>, tensor<1xi8>) -> tensor<2xi32>\n"
    "  %3 = \"stablehlo.select_and_scatter\"(%b, %u, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({\n"
    "  ^bb0(%x: tensor<i8>, %y: tensor<i8>):\n    %c = stablehlo.compare GE, %x, %y : (tensor<i8>, tensor<i8>) -> tensor<i1>\n"
    "    stablehlo.return %c : tensor<i1>\n  }, " SUM ") : (tensor<4xi8>, tensor<2xi8>, tensor<i8>) -> tensor<4xi32>\n"
    EQ("%0", "[400, 106]", "tensor<2xi32>") EQ("%1", "[327]", "tensor<1xi32>") EQ("%2", "[100, 227]", "tensor<2xi32>")
    EQ("%3", "[100, 200, 227, 100]", "tensor<4xi32>"),
    /* bits of signed integers and floats, which are those of unsigned ones; of Philox, whose count of 128 bits goes on in a third word: what
       XLA gives on a CPU */
    C("%a", "[1, 18446744073709551615]", "tensor<2xui64>") C("%b", "[1, 18446744073709551615, 7]", "tensor<3xui64>")
    BITS("%0", "%a", "2", "i64", "THREE_FRY") BITS("%1", "%a", "2", "f32", "PHILOX") BITS("%2", "%b", "3", "ui32", "PHILOX")
    BITS("%3", "%b", "3", "i64", "PHILOX")
    EQ("%0#0", "[1, 2]", "tensor<2xui64>") EQ("%0#1", "[5935036730470049944, -7571914893285808134, 3280001176275675250]", "tensor<3xi64>")
    EQ("%1#0", "[1, 0]", "tensor<2xui64>") "  %4 = stablehlo.bitcast_convert %1#1 : (tensor<3xf32>) -> tensor<3xui32>\n"
    EQ("%4", "[1483621553, 651866410, 3635972313]", "tensor<3xui32>")
    EQ("%2#0", "[1, 0, 8]", "tensor<3xui64>") EQ("%2#1", "[2939814351, 3089645902, 2240701313]", "tensor<3xui32>")
    EQ("%3#0", "[1, 1, 8]", "tensor<3xui64>")
    EQ("%3#1", "[-5176815965459316273, -1209212267165490303, 9277879332089801029]", "tensor<3xi64>"),
    /* a group of one row, an empty one, and one of two */
    C("%a", "[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]", "tensor<3x2xf32>")
    C("%b", "[[[1.0], [0.0]], [[9.0], [9.0]], [[0.0], [1.0]]]", "tensor<3x2x1xf32>") C("%n", "[1, 0, 2]", "tensor<3xi32>")
    "  %0 = \"chlo.ragged_dot\"(%a, %b, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], "
    "rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], "
    "rhs_group_dimensions = [0]>} : (tensor<3x2xf32>, tensor<3x2x1xf32>, tensor<3xi32>) -> tensor<3x1xf32>\n"
    EQ("%0", "[[1.0], [4.0], [6.0]]", "tensor<3x1xf32>"),
    /* ragged where it is contracted: a product for each group; in a dimension of the batch: groups change nothing */
    C("%a", "[[1.0, 2.0, 3.0]]", "tensor<1x3xf32>") C("%b", "[[4.0], [5.0], [6.0]]", "tensor<3x1xf32>") C("%n", "[2, 1]", "tensor<2xi64>")
    "  %0 = \"chlo.ragged_dot\"(%a, %b, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], "
    "rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1], rhs_group_dimensions = []>} : (tensor<1x3xf32>, tensor<3x1xf32>, "
    "tensor<2xi64>) -> tensor<2x1x1xf32>\n" EQ("%0", "[[[14.0]], [[18.0]]]", "tensor<2x1x1xf32>")
    "  %1 = \"chlo.ragged_dot\"(%b, %b, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], "
    "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], "
    "rhs_group_dimensions = []>} : (tensor<3x1xf32>, tensor<3x1xf32>, tensor<2xi64>) -> tensor<3xf32>\n"
    EQ("%1", "[16.0, 25.0, 36.0]", "tensor<3xf32>"),
    /* sizes of groups that differ by batch */
    C("%a", "[[[1.0], [2.0], [3.0]], [[1.0], [2.0], [3.0]]]", "tensor<2x3x1xf32>")
    C("%b", "[[[[10.0]], [[100.0]]], [[[7.0]], [[9.0]]]]", "tensor<2x2x1x1xf32>") C("%n", "[[1, 2], [2, 0]]", "tensor<2x2xi32>")
    "  %0 = \"chlo.ragged_dot\"(%a, %b, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], "
    "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], "
    "rhs_group_dimensions = [1]>} : (tensor<2x3x1xf32>, tensor<2x2x1x1xf32>, tensor<2x2xi32>) -> tensor<2x3x1xf32>\n"
    EQ("%0", "[[[10.0], [200.0], [300.0]], [[7.0], [14.0], [0.0]]]", "tensor<2x3x1xf32>"),
    /* transforms of nothing */
    C("%a", "", "tensor<2x0xcomplex<f32>>") C("%b", "", "tensor<2x0xf32>") C("%c", "(1.0, 2.0)", "tensor<2x1xcomplex<f32>>")
    "  %0 = stablehlo.fft %a, type = FFT, length = [0] : (tensor<2x0xcomplex<f32>>) -> tensor<2x0xcomplex<f32>>\n"
    "  %1 = stablehlo.fft %b, type = RFFT, length = [0] : (tensor<2x0xf32>) -> tensor<2x0xcomplex<f32>>\n"
    "  %2 = stablehlo.fft %c, type = IRFFT, length = [0] : (tensor<2x1xcomplex<f32>>) -> tensor<2x0xf32>\n"
    EQ("%0", "", "tensor<2x0xcomplex<f32>>") EQ("%1", "", "tensor<2x0xcomplex<f32>>") EQ("%2", "", "tensor<2x0xf32>"),
    /* a scan from the end along the second dimension; what comes out are differences of neighbours */
    C("%a", "[[1, 3, 6], [2, 2, 9]]", "tensor<2x3xi32>") C("%z", "0", "tensor<2xi32>")
    "  %0:2 = chlo.scan(%a) inits(%z) dimension=1 attributes {is_reverse = true} {\n  ^bb0(%x: tensor<2xi32>, %c: tensor<2xi32>):\n"
    "    %1 = stablehlo.subtract %c, %x : tensor<2xi32>\n    stablehlo.return %1, %x : tensor<2xi32>, tensor<2xi32>\n"
    "  } : (tensor<2x3xi32>, tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>)\n"
    EQ("%0#0", "[[2, 3, -6], [0, 7, -9]]", "tensor<2x3xi32>") EQ("%0#1", "[1, 2]", "tensor<2xi32>"),
    /* bits: of bool, of complex numbers and of nibbles, there and back */
    C("%a", "[[true, false, true, true, false, false, false, true]]", "tensor<1x8xi1>")
    "  %0 = stablehlo.bitcast_convert %a : (tensor<1x8xi1>) -> tensor<1xui8>\n" EQ("%0", "141", "tensor<1xui8>")
    "  %1 = stablehlo.bitcast_convert %0 : (tensor<1xui8>) -> tensor<1x8xi1>\n  check.expect_eq %a, %1 : tensor<1x8xi1>\n"
    C("%n", "[-1, 2]", "tensor<2xi4>") "  %4 = stablehlo.bitcast_convert %n : (tensor<2xi4>) -> tensor<i8>\n" EQ("%4", "47", "tensor<i8>")
    "  %5 = stablehlo.bitcast_convert %4 : (tensor<i8>) -> tensor<2xi4>\n  check.expect_eq %n, %5 : tensor<2xi4>\n"
    C("%i", "true", "tensor<4xi1>") "  %6 = stablehlo.bitcast_convert %i : (tensor<4xi1>) -> tensor<i4>\n" EQ("%6", "-1", "tensor<i4>")
    C("%f", "[(1.0, 2.0)]", "tensor<1xcomplex<f64>>") "  %7 = stablehlo.bitcast_convert %f : (tensor<1xcomplex<f64>>) -> tensor<1x2xcomplex<f32>>\n"
    EQ("%7", "[[(0.0, 1.875), (0.0, 2.0)]]", "tensor<1x2xcomplex<f32>>")
    "  %8 = stablehlo.bitcast_convert %7 : (tensor<1x2xcomplex<f32>>) -> tensor<1xcomplex<f64>>\n  check.expect_eq %f, %8 : tensor<1xcomplex<f64>>\n",
    /* the principal root: (1 + i)^3 = -2 + 2i */
    C("%z", "[(-2.0, 2.0), (0.0, 0.0), (27.0, 0.0)]", "tensor<3xcomplex<f64>>") "  %0 = stablehlo.cbrt %z : tensor<3xcomplex<f64>>\n"
    "  check.expect_almost_eq_const %0, dense<[(1.0, 1.0), (0.0, 0.0), (3.0, 0.0)]> : tensor<3xcomplex<f64>>\n",
    /* a float without a mantissa has no NaN */
    C("%a", "[0x7FC00000, 3.5]", "tensor<2xf32>") "  %0 = stablehlo.reduce_precision %a, format = e5m0 : tensor<2xf32>\n"
    EQ("%0", "[0x7F800000, 4.0]", "tensor<2xf32>"),
};

static const char turn[] = "func.func private @turn(%p: " PAIR ", %t: " T ") -> " PAIR " {\n"
                           "  %0 = stablehlo.get_tuple_element %p[0] : (" PAIR ") -> tensor<2xf32>\n"
                           "  %1 = stablehlo.get_tuple_element %p[1] : (" PAIR ") -> tuple<tensor<i32>>\n"
                           "  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<i32>>) -> tensor<i32>\n"
                           "  %3 = stablehlo.negate %0 : tensor<2xf32>\n  %4 = stablehlo.add %2, %2 : tensor<i32>\n"
                           "  %5 = stablehlo.tuple %4 : tuple<tensor<i32>>\n  %6 = stablehlo.tuple %3, %5 : " PAIR "\n  return %6 : " PAIR "\n}\n";

static void test_results(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(results); i++) {
    ax_text text = {0};
    ax_text_add(&text, "module {\nfunc.func public @main() {\n%s  return\n}\n%s}\n", results[i], turn);
    ax_program *program = import(text.data);
    if (test_try(program, NULL, NULL) != AX_OK) fail_msg("%s\n%s", ax_message(), text.data);
    ax_program_release(program);
    ax_text_deinit(&text);
  }
}

static void test_probes_differ(void **state) {
  static const char *const wrong[][2] = {{"%b, probe_id = \"p\"", "the value differs from that of the probe \"p\" at iteration 0"},
                                         {"%a, probe_id = \"p\", iter = 1", "iteration 1, which there was not"},
                                         {"%a, probe_id = \"q\"", "the probe \"q\" at iteration 0, which there was not"}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(wrong); i++) {
    ax_text text = {0};
    ax_text_add(&text, "func.func @main() {\n" C("%%a", "1", "tensor<i32>") C("%%b", "2", "tensor<i32>")
                "  %%p = interpreter.probe %%a, probe_id = \"p\" : tensor<i32>\n  check.expect_serialized_eq %s : tensor<i32>\n  return\n}\n",
                wrong[i][0]);
    ax_program *program = import(text.data);
    TEST_FAILS(test_try(program, NULL, NULL), AX_INVALID_ARGUMENT, wrong[i][1]);
    ax_program_release(program);
    ax_text_deinit(&text);
  }
}

/* --- Tuples of the main function --- */

static void test_arguments(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%p: " PAIR " {mhlo.x = 1 : i32}, %t: " T ", %q: tensor<i32>) -> (tensor<i32>, " PAIR ", " T ") {\n"
                             "  return %q, %p, %t : tensor<i32>, " PAIR ", " T "\n}\n";
  ax_program *program = import(text);
  char *printed;
  TEST_OK(ax_program_print(program, &printed));
  assert_string_equal(printed, "{ lambda a:f32[2] b:s32[] c:s32[]. let in (c, a, b) }\n");
  ax_string_free(printed);
  ax_program_release(program);
}

static void test_flat_module(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%p: " PAIR ", %t: " T ") {\n  return\n}\n";
  ax_hlo_module module;
  TEST_OK(ax_hlo_read_text(text, strlen(text), "m.mlir", &module));
  TEST_OK(ax_hlo_flatten(&module, false));
  const ax_hlo_operation *main = module.body.operations[0];
  const ax_hlo_attribute *names = ax_hlo_find(main, AX_HLO_ARGUMENT_NAMES);
  assert_int_equal(main->regions[0].blocks[0].argument_count, 2);
  assert_int_equal(names->count, 2);
  assert_true(ax_hlo_slice_is(names->items[0].text, "p.0") && ax_hlo_slice_is(names->items[1].text, "p.1"));
  ax_hlo_module_deinit(&module);
}

/* --- What a module asks of the host --- */

typedef struct feeds {
  float next, seen[8];
  int count;
} feeds;

static ax_status feed(ax_callback_call *call, void *context) {
  feeds *f = context;
  for (int i = 0; i < 2; i++) ((float *)call->out[0].data)[i] = f->next;
  f->next *= 2;
  return call->in_count == 0 ? AX_OK : AX_INVALID_ARGUMENT;
}

static ax_status take(ax_callback_call *call, void *context) {
  feeds *f = context;
  f->seen[f->count++] = ((const float *)call->in[0].data)[0];
  return AX_OK;
}

/* Two arrays are fed and their sum is taken, in a loop of two rounds; then one is received, and sent on. */
static const char host[] =
    "func.func @main(%n: tensor<i32>) {\n  %t = stablehlo.create_token : " T "\n  %0:2 = \"stablehlo.while\"(%n, %t) ({\n"
    "  ^bb0(%i: tensor<i32>, %x: " T "):\n    %z = stablehlo.constant dense<0> : tensor<i32>\n"
    "    %c = stablehlo.compare GT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  }, {\n"
    "  ^bb0(%i: tensor<i32>, %x: " T "):\n    %o = stablehlo.constant dense<1> : tensor<i32>\n"
    "    %a, %b, %y = \"stablehlo.infeed\"(%x) {infeed_config = \"\"} : (" T ") -> (tensor<2xf32>, tensor<0xf32>, " T ")\n"
    "    %p:2 = \"stablehlo.infeed\"(%y) : (" T ") -> (tensor<2xf32>, " T ")\n    %s = stablehlo.add %a, %p#0 : tensor<2xf32>\n"
    "    %w = \"stablehlo.outfeed\"(%s, %p#1) : (tensor<2xf32>, " T ") -> " T "\n    %m = stablehlo.subtract %i, %o : tensor<i32>\n"
    "    stablehlo.return %m, %w : tensor<i32>, " T "\n  }) : (tensor<i32>, " T ") -> (tensor<i32>, " T ")\n"
    "  %r:2 = \"stablehlo.recv\"(%0#1) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 3>, is_host_transfer = true} : (" T
    ") -> (tensor<2xf32>, " T ")\n  %u = \"stablehlo.send\"(%r#0, %r#1) {channel_handle = #stablehlo.channel_handle<handle = 4, type = 2>, "
    "is_host_transfer = true} : (tensor<2xf32>, " T ") -> " T "\n  return\n}\n";

static void add_callback(ax_runtime *runtime, const char *name, ax_callback_function function, feeds *f) {
  ax_callback *callback;
  TEST_OK(ax_callback_create(name, function, f, NULL, &callback));
  TEST_OK(ax_runtime_register(runtime, callback));
  ax_callback_release(callback);
}

static void test_host(void **state) {
  (void)state;
  ax_program *program = import(host);
  ax_runtime *runtime;
  ax_executable *executable;
  feeds f = {.next = 1};
  int32_t rounds = 2;
  ax_host_array in = {.dtype = AX_S32, .data = &rounds, .view = true};
  TEST_OK(ax_runtime_create(&(ax_runtime_options){0}, &runtime));
  TEST_FAILS(ax_compile(runtime, program, NULL, &executable), AX_INVALID_ARGUMENT, "no callback \"infeed\" is registered");
  add_callback(runtime, "infeed", feed, &f);
  add_callback(runtime, "recv:3", feed, &f);
  add_callback(runtime, "outfeed", take, &f);
  add_callback(runtime, "send:4", take, &f);
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK((ax_run_host)(executable, 1, &in, 0, NULL));
  const float wanted[] = {3, 12, 16};
  assert_int_equal(f.count, 3);
  assert_memory_equal(f.seen, wanted, sizeof wanted);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

/* --- Numbers drawn from the program's state --- */

#define RNG(name, kind, type, size) \
  "  %" name " = \"stablehlo.rng\"(%" name "0, %" name "1, %" name "2) {rng_distribution = #stablehlo<rng_distribution " kind ">} : (tensor<" type ">, tensor<" type ">, tensor<1xi64>) -> tensor<" size "x" type ">\n"
static const char rng[] =
    "func.func @main() -> (tensor<4000xf32>, tensor<4000xf32>, tensor<4000xi32>, tensor<f32>) {\n"
    C("%a0", "2.0", "tensor<f32>") C("%a1", "5.0", "tensor<f32>") C("%a2", "4000", "tensor<1xi64>") RNG("a", "UNIFORM", "f32", "4000")
    C("%b0", "-1.0", "tensor<f32>") C("%b1", "3.0", "tensor<f32>") C("%b2", "4000", "tensor<1xi64>") RNG("b", "NORMAL", "f32", "4000")
    C("%c0", "-2", "tensor<i32>") C("%c1", "3", "tensor<i32>") C("%c2", "4000", "tensor<1xi64>") RNG("c", "UNIFORM", "i32", "4000")
    /* the difference of the numbers that two rounds of a loop draw */
    C("%n", "0", "tensor<i32>") C("%d0", "0.0", "tensor<f32>") C("%d1", "1.0", "tensor<f32>") C("%d2", "1", "tensor<1xi64>")
    "  %l:2 = stablehlo.while(%i = %n, %x = %d0) : tensor<i32>, tensor<f32>\n  cond {\n    %q = stablehlo.constant dense<2> : tensor<i32>\n"
    "    %c3 = stablehlo.compare LT, %i, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %c3 : tensor<i1>\n  } do {\n  "
    RNG("d", "UNIFORM", "f32", "1")
    "    %e = stablehlo.reshape %d : (tensor<1xf32>) -> tensor<f32>\n    %g = stablehlo.subtract %e, %x : tensor<f32>\n"
    "    %o = stablehlo.constant dense<1> : tensor<i32>\n    %j = stablehlo.add %i, %o : tensor<i32>\n"
    "    stablehlo.return %j, %g : tensor<i32>, tensor<f32>\n  }\n"
    "  return %a, %b, %c, %l#1 : tensor<4000xf32>, tensor<4000xf32>, tensor<4000xi32>, tensor<f32>\n}\n";

static double mean(const float *x, double centre, double *square) {
  double sum = 0;
  *square = 0;
  for (int i = 0; i < 4000; i++) sum += x[i], *square += (x[i] - centre) * (x[i] - centre) / 4000;
  return sum / 4000;
}

static void draw(ax_tensor **out) {
  ax_program *program = import(rng);
  if (test_try(program, NULL, out) != AX_OK) fail_msg("%s", ax_message());
  ax_program_release(program);
}

static void test_rng(void **state) {
  (void)state;
  ax_tensor *out[4], *again[4];
  double square;
  draw(out);
  draw(again);
  const float *uniform = out[0]->data, *normal = out[1]->data, *last = out[3]->data;
  const int32_t *whole = out[2]->data;
  int counts[5] = {0};
  for (int i = 0; i < 4000; i++) {
    assert_true(uniform[i] >= 2 && uniform[i] < 5 && whole[i] >= -2 && whole[i] < 3);
    counts[whole[i] + 2]++;
  }
  for (int i = 0; i < 5; i++) assert_true(counts[i] > 700 && counts[i] < 900); /* 4 deviations of 25 */
  assert_true(mean(uniform, 3.5, &square) > 3.44 && square > 0.7 && square < 0.8);
  assert_true(mean(normal, -1, &square) < -0.8 && square > 8 && square < 10);
  assert_true(last[0] != 0);
  for (int k = 0; k < 4; k++) { /* a program that is read anew draws the same */
    assert_memory_equal(out[k]->data, again[k]->data, 4 * (k < 3 ? 4000 : 1));
    ax_tensor_release(out[k]);
    ax_tensor_release(again[k]);
  }
}

/* --- What is refused --- */

#define F(lines) "func.func @main(%a: tensor<4xf32>, %i: tensor<i32>, %t: " T ") {\n  " lines "\n  return\n}\n"
static const struct {
  const char *text;
  ax_status status;
  const char *message;
} refused[] = {
    {F("%0 = stablehlo.tuple %a : tuple<tensor<i32>>"), AX_INVALID_ARGUMENT, "the result, tuple<tensor<i32>>, must be the tuple of the operands"},
    {F("%0 = stablehlo.tuple %a, %i : tuple<tensor<4xf32>>"), AX_INVALID_ARGUMENT, "the result, tuple<tensor<4xf32>>, must be the tuple of the operands"},
    {F("%0 = stablehlo.tuple %a : tuple<tensor<4xf32>, tensor<4xf32>>"), AX_INVALID_ARGUMENT, "the result, tuple<tensor<4xf32>, tensor<4xf32>>, must be the tuple of the operands"},
    {F("%0 = stablehlo.tuple %a : tuple<tensor<4xf32>>\n  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xf32>>) -> tensor<4xf32>"),
     AX_INVALID_ARGUMENT, "index is 1, and tuple<tensor<4xf32>> has 1 elements"},
    {F("%0 = stablehlo.tuple %a : tuple<tensor<4xf32>>\n  %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<4xf32>>) -> tensor<i32>"),
     AX_INVALID_ARGUMENT, "the result must have the type of element 0 of tuple<tensor<4xf32>>"},
    {F("%0 = \"stablehlo.get_tuple_element\"(%a) {index = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>"), AX_INVALID_ARGUMENT, "operand 0 is tensor<4xf32>, and must be of these: a tuple"},
    {F("%0 = \"stablehlo.get_tuple_element\"() {index = 0 : i32} : () -> tensor<4xf32>"), AX_INVALID_ARGUMENT, "it must have 1 operands, and has 0"},
    {F("%0 = stablehlo.add %t, %t : " T), AX_INVALID_ARGUMENT, "stablehlo.add: "},
    {F("%0 = \"stablehlo.infeed\"(%a) : (tensor<4xf32>) -> " T), AX_INVALID_ARGUMENT, "operand 0 is tensor<4xf32>, and must be of these: a token"},
    {F("%0 = \"stablehlo.send\"(%a, %t) {is_host_transfer = true} : (tensor<4xf32>, " T ") -> " T), AX_INVALID_ARGUMENT, "the attribute channel_handle is missing"},
    {F("%0 = \"stablehlo.send\"(%a, %t) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>} : (tensor<4xf32>, " T ") -> " T),
     AX_INVALID_ARGUMENT, "the attribute source_target_pairs is missing"},
    {F("%0 = \"stablehlo.bitcast_convert\"(%a) : (tensor<4xf32>) -> tensor<4x16xi1>"), AX_INVALID_ARGUMENT, "16 elements of 1 bits do not make one of 32"},
    {F("%0 = \"stablehlo.rng\"(%a, %a, %a) {rng_distribution = #stablehlo<rng_distribution BETA>} : (tensor<4xf32>, tensor<4xf32>, "
       "tensor<4xf32>) -> tensor<4xf32>"), AX_INVALID_ARGUMENT, "operand 2 is tensor<4xf32>, and must be of these: signed integers, unsigned integers"},
    {F("%0 = chlo.mulhi %a, %a : tensor<4xf32>"), AX_INVALID_ARGUMENT, "chlo.mulhi: operand 0 is tensor<4xf32>, and must be of these: signed integers, unsigned integers"},
    {F("%0 = chlo.broadcast_add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>"), AX_INVALID_ARGUMENT, "chlo.broadcast_add: result 0 is tensor<f32>, and must have the shape [4]"},
    {F("%0 = \"chlo.scan\"(%a) ({\n  ^bb0(%x: tensor<f32>):\n    stablehlo.return %x : tensor<f32>\n  }) {dimension = 0 : i64, "
       "operandSegmentSizes = array<i32: 2, 0>} : (tensor<4xf32>) -> tensor<4xf32>"), AX_INVALID_ARGUMENT, "operandSegmentSizes must say"},
    {F("%0 = \"chlo.scan\"(%i) ({\n  ^bb0(%x: tensor<f32>):\n    stablehlo.return %x : tensor<f32>\n  }) {dimension = 0 : i64, "
       "operandSegmentSizes = array<i32: 1, 0>} : (tensor<i32>) -> tensor<4xf32>"), AX_INVALID_ARGUMENT, "chlo.scan: operand 0 and argument 0 of the region have different elements"},
    {F("%0 = \"stablehlo.async_start\"(%a) ({\n    stablehlo.return %a : tensor<4xf32>\n  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>"),
     AX_INVALID_ARGUMENT, "region 0 must take 1 values, and takes 0"},
    {F("%0 = \"chlo.ragged_dot\"(%a, %a, %a) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"), AX_INVALID_ARGUMENT,
     "chlo.ragged_dot: operand 2 is tensor<4xf32>, and must be of these: signed integers, unsigned integer"},
    {F("%0 = \"chlo.constant_like\"(%a) {value = 0x7F800000 : bf16} : (tensor<4xf32>) -> tensor<4xbf16>"), AX_INVALID_ARGUMENT,
     "the attribute value must be a number that its type has"},
    {F("%0 = \"chlo.constant_like\"(%a) {value = \"1\"} : (tensor<4xf32>) -> tensor<4xf32>"), AX_INVALID_ARGUMENT,
     "the attribute value must be a number that its type has"},
    {F("%0 = \"stablehlo.rng_bit_generator\"(%i) {rng_algorithm = #stablehlo<rng_algorithm PHILOX>} : (tensor<i32>) -> tensor<i32>"), AX_INVALID_ARGUMENT,
     "stablehlo.rng_bit_generator: "},
};

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(refused); i++) {
    ax_program *program;
    TEST_FAILS(ax_program_from_stablehlo(refused[i].text, strlen(refused[i].text), "m.mlir", &program), refused[i].status,
               refused[i].message);
    assert_null(program);
  }
}

/* Each alias is a pair of the one before: 2^40 elements, and 80 levels. */
static void test_large_tuples(void **state) {
  (void)state;
  for (int wide = 0; wide < 2; wide++) {
    ax_text text = {0};
    ax_program *program;
    ax_text_add(&text, "!t0 = tensor<f32>\n");
    for (int i = 1; i <= (wide ? 40 : 80); i++) ax_text_add(&text, wide ? "!t%d = tuple<!t%d, !t%d>\n" : "!t%d = tuple<!t%d>\n", i, i - 1, i - 1);
    ax_text_add(&text, "func.func @main(%%a: !t%d) {\n  return\n}\n", wide ? 40 : 80);
    TEST_FAILS(ax_program_from_stablehlo(text.data, text.length, "m.mlir", &program), AX_ABSENT, wide ? "4194304 elements" : "64 deep");
    ax_text_deinit(&text);
  }
}

static ax_status import_each(void *context) {
  (void)context;
  for (size_t i = 0; i < 2; i++) {
    char text[6000];
    ax_program *program;
    snprintf(text, sizeof text, "module {\nfunc.func public @main() {\n%s  return\n}\n%s}\n", results[0], turn);
    const ax_status status = ax_program_from_stablehlo(i == 0 ? text : rng, strlen(i == 0 ? text : rng), "m.mlir", &program);
    if (status != AX_OK) return status;
    ax_program_release(program);
  }
  return AX_OK;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(import_each, NULL) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_results), cmocka_unit_test(test_arguments), cmocka_unit_test(test_probes_differ), cmocka_unit_test(test_flat_module),    cmocka_unit_test(test_host),
      cmocka_unit_test(test_rng),     cmocka_unit_test(test_refused),   cmocka_unit_test(test_large_tuples), cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
