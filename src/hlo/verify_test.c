/* What StableHLO's specification does not allow, with the message and its line; and what it allows, in functions that nothing calls. */
#include "hlo/verify.h"

#include <string.h>

#include "hlo/dialect.h"
#include "hlo/files.h"
#include "hlo/verify_rules.h"
#include "support/cmocka.h"
#include "support/oom.h"

static ax_status verify(const char *text) {
  ax_hlo_module module;
  AX_TRY(ax_hlo_read(text, strlen(text), "m", &module));
  const ax_status status = ax_hlo_verify(&module);
  ax_hlo_module_deinit(&module);
  return status;
}

#define F(body)                                                                                                                 \
  "func.func @main() { return }\n"                                                                                              \
  "func.func private @f(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %p: tensor<i1>) {\n" body \
  "  return\n}\n"

#define BOUNDED(body)                                                                                                           \
  "func.func @main() { return }\n"                                                                                              \
  "func.func private @f(%x: tensor<?xf32, #stablehlo.bounds<2>>, %s: tensor<3xf32>, %z: tensor<f32>, %p: tensor<i1>) {\n" body "  return\n}\n"

#define ALL "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"
#define ONES "tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>"

#define NORMAL(epsilon)                                                                                                    \
  "func.func @main(%a: tensor<2x2xf32>, %b: tensor<2xf32>) {\n  %0 = \"stablehlo.batch_norm_inference\"(%a, %b, %b, %b, %b) "  \
  "{epsilon = " epsilon ", feature_index = 1 : i64} : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, "       \
  "tensor<2xf32>) -> tensor<2x2xf32>\n  return\n}\n"

static const struct {
  const char *text, *message;
} refused[] = {
    {F("  %0 = \"stablehlo.add\"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"),
     "m:3: stablehlo.add: it must have 2 operands, and has 1"},
    {F("  %0 = stablehlo.not %a : tensor<2x3xf32>\n"),
     "operand 0 is tensor<2x3xf32>, and must be of these: signed integers, unsigned"},
    {F("  %0 = stablehlo.multiply %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>\n"), "must have the same shape"},
    {F("  %0 = stablehlo.transpose %a, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>\n"), "permutation has 0 twice"},
    {F("  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"), "must have the shape [3, 2]"},
    {F("  %0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<7xf32>\n"), "the operand has 6 elements, and the result 7"},
    {F("  %0 = stablehlo.concatenate %a, %a, dim = 2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>\n"), "dimension is 2"},
    {F("  %0 = stablehlo.slice %a [0:3, 0:1] : (tensor<2x3xf32>) -> tensor<3x1xf32>\n"), "along dimension 0 it goes from 0 to 3"},
    {F("  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3xf32>\n"),
     "contracting dimensions 1 and 0 have different extents: 3 and 2"},
    {F("  %0 = stablehlo.iota dim = 1 : tensor<4xi32>\n"), "iota_dimension is 1, which goes beyond the result's rank, 1"},
    {F("  %0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [2] : (tensor<2x3xf32>, tensor<f32>) -> "
       "tensor<2xf32>\n"),
     "dimensions has 2, which is not in [0, 2)"},
    {F("  %0 = stablehlo.reduce(%a init: %s) applies stablehlo.subtract across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) "
       "-> "
       "tensor<2xf32>\n"),
     "stablehlo.subtract is no operation of StableHLO on two operands in any order"},
    {F("  %0 = \"stablehlo.collective_permute\"(%a) {source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>} : "
       "(tensor<2x3xf32>) -> tensor<2x3xf32>\n"),
     "source_target_pairs has 0 twice as a source"},
    {F("  %0 = \"stablehlo.cbrt\"(%i) : (tensor<2xi32>) -> tensor<2xi32>\n"),
     "operand 0 is tensor<2xi32>, and must be of these: floats"},
    {F("  %0 = \"stablehlo.if\"(%p) ({\n    stablehlo.return %a : tensor<2x3xf32>\n  }, {\n    stablehlo.return %b : "
       "tensor<3x4xf32>\n"
       "  }) : (tensor<i1>) -> tensor<2x3xf32>\n"),
     "regions 0 and 1 return different types as value 0"},
    {F("  %0 = stablehlo.composite \"gelu\" %a {decomposition = @main} : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"),
     "in a namespace"},
    {F("  %0 = stablehlo.select %p, %a, %a : tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>\n"), "3 types stand behind the operation"},
    {BOUNDED("  %0 = \"stablehlo.add\"(%x, %s) : (tensor<?xf32, #stablehlo.bounds<2>>, tensor<3xf32>) -> tensor<?xf32>\n"),
     "must have the same shape"},
    {BOUNDED("  %0 = stablehlo.negate %x : (tensor<?xf32, #stablehlo.bounds<2>>) -> tensor<3xf32>\n"), "must have the same shape"},
    {BOUNDED("  %0 = stablehlo.slice %x [0:3] : (tensor<?xf32, #stablehlo.bounds<2>>) -> tensor<3xf32>\n"),
     "along dimension 0 it goes from 0 to 3"},
    {BOUNDED("  %0 = stablehlo.pad %x, %z, low = [-4], high = [1], interior = [0] : (tensor<?xf32, #stablehlo.bounds<2>>, "
             "tensor<f32>) -> tensor<?xf32>\n"),
     "padding leaves dimension 0 a bound of less than 0"},
    {"func.func @main(%x: tensor<4xsi8>) {\n  %0 = stablehlo.negate %x : tensor<4xsi8>\n  return\n}\n",
     "operand 0 is tensor<4xsi8>, and must be of these"},
    {"func.func @main(%x: tensor<4x!quant.uniform<si8:f32, 1.0>>) {\n  %0 = stablehlo.uniform_dequantize %x : "
     "(tensor<4x!quant.uniform<si8:f32, 1.0>>) -> tensor<4xf32>\n  return\n}\n",
     "and must be of these"},
    {"func.func @main(%x: tensor<1x!quant.uniform<i8:f32:0, {0.1:-30}>>) {\n  %0 = stablehlo.optimization_barrier %x : "
     "tensor<1x!quant.uniform<i8:f32:0, {0.1:-30}>>\n  return\n}\n",
     "and must be of these"},
    {"func.func @main(%x: !stablehlo.foobar) { return }\n", "!stablehlo.foobar is no type of StableHLO"},
    {"func.func @main(%x: !stablehlo.future<f32>) { return }\n", "a future is of arrays of known ranks"},
    {"func.func @main(%x: tensor<?x?xf32, #stablehlo.bounds<3>>) { return }\n", "there are 1 bounds, and 2 dimensions"},
    {"func.func @main(%x: tensor<3xf32, #stablehlo.bounds<3>>) { return }\n", "dimension 0 has an extent, and cannot have a bound"},
    {"func.func @main(%x: tensor<2x!quant.uniform<i4:f16, 1.0e5>>) { return }\n", "the scale 100000 is no number of f16"},
    {F("  %0:2 = \"chlo.scan\"(%a, %s) <{dimension = -3000000 : i64, is_reverse = false, operandSegmentSizes = array<i32: 1, 1>, "
       "resultSegmentSizes = array<i32: 1, 1>}> ({\n  ^bb0(%x: tensor<3xf32>, %y: tensor<f32>):\n    stablehlo.return %x, %y : "
       "tensor<3xf32>, tensor<f32>\n  }) : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>)\n"),
     "dimension is -3000000, which operand 0 does not have"},
    {"func.func @main(%a: " ONES ", %g: tensor<1xi32>) -> tensor<f32> {\n  %0 = \"chlo.ragged_dot\"(%a, %a, %g) "
     "{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [" ALL "], rhs_batching_dimensions = [" ALL
     "], lhs_contracting_dimensions = [" ALL "], rhs_contracting_dimensions = [" ALL
     "], lhs_ragged_dimensions = [15], rhs_group_dimensions = []>} : (" ONES ", " ONES
     ", tensor<1xi32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n",
     "dimension 0 is both in lhs_batching_dimensions and in lhs_contracting_dimensions"},
    {F("  %0 = \"stablehlo.composite\"(%s) {name = \"a.b\", decomposition = @mesh} : (tensor<f32>) -> tensor<f32>\n")
     "sdy.mesh @mesh = <[\"x\"=2]>\n",
     "there is no function @mesh"},
    {F("  %0 = call @a::@main(%s) : (tensor<f32>) -> tensor<f32>\n"), "the attribute callee must be a symbol of one name, and not ..@a::@main"},
    {F("  %0 = \"stablehlo.custom_call\"(%s) {call_target_name = \"t\", called_computations = [@a::@b::@c]} : (tensor<f32>) -> tensor<f32>\n"),
     "the attribute called_computations must be a symbol of one name, and not ..@b::@c"},
    /* attributes of other kinds */
    {NORMAL("5 : i64"), "the attribute epsilon must be a number of f32"},
    {NORMAL("\"0.1\""), "the attribute epsilon must be a number of f32"},
    {NORMAL("@x"), "the attribute epsilon must be a number of f32"},
    {NORMAL("[]"), "the attribute epsilon must be a number of f32"},
    {NORMAL("true"), "the attribute epsilon must be a number of f32"},
    {NORMAL("1.0e-3 : f64"), "the attribute epsilon must be a number of f32"},
    {F("  \"stablehlo.custom_call\"(%a) {call_target_name = \"t\", has_side_effect = \"s\"} : (tensor<2x3xf32>) -> ()\n"),
     "the attribute has_side_effect must be true or false"},
    {F("  %0 = \"stablehlo.all_gather\"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = 7 "
       ": i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>\n"),
     "the attribute channel_handle must be a #stablehlo.channel_handle<..>"},
    {F("  %0 = \"stablehlo.transpose\"(%a) {permutation = 1 : i64} : (tensor<2x3xf32>) -> tensor<3x2xf32>\n"),
     "the attribute permutation must be a list of integers"},
    {F("  %0 = \"stablehlo.gather\"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], "
       "start_index_map = [0], index_vector_dim = \"1\">, slice_sizes = array<i64: 1, 3>} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<3x2xf32>\n"),
     "the attribute index_vector_dim must be an integer"},
    {"module attributes {stablehlo.dot = #stablehlo.dot<foo = [0]>} {}\n", "#stablehlo.dot has no entry foo"},
    {"module attributes {stablehlo.conv = #stablehlo.conv<[b, 0, 1]x[0, 1, i, o]->[b, 0, 1, f]>} {}\n",
     "the dimension f is missing"}};

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(refused); i++) {
    const ax_status status = verify(refused[i].text);
    if (status != AX_OK && strstr(ax_message(), refused[i].message) != NULL) continue;
    fail_msg("%s, not \"%s\": %s\n%s", ax_status_name(status), refused[i].message, ax_message(), refused[i].text);
  }
}

/* Extents that are not known fit any others; what is no operation of StableHLO is taken as it is. */
static const char *const taken[] = {
    F("  %0 = stablehlo.add %a, %a : tensor<2x3xf32>\n  %1 = \"mine.op\"(%0) {x = 1 : i64} : (tensor<2x3xf32>) -> tensor<9xf32>\n"),
    "func.func @main(%x: tensor<?x3xf32>, %y: tensor<2x?xf32>) -> tensor<?x?xf32> {\n"
    "  %0 = stablehlo.add %x, %y : (tensor<?x3xf32>, tensor<2x?xf32>) -> tensor<?x?xf32>\n  return %0 : tensor<?x?xf32>\n}\n",
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.cosine %x : tensor<4xf32>\n  return %0 : "
    "tensor<4xf32>\n}\n",
    BOUNDED("  %0 = stablehlo.negate %x : (tensor<?xf32, #stablehlo.bounds<2>>) -> tensor<2xf32>\n"
            "  %1 = \"stablehlo.negate\"(%x) : (tensor< ?xf32,#stablehlo.type_extensions<bounds = [2]>>) -> tensor<?xf32>\n"
            "  %2 = \"stablehlo.negate\"(%s) : (tensor< 3xf32 >) -> tensor<3xf32>\n"
            "  %3 = stablehlo.select %p, %s, %s : tensor<i1>, tensor<3xf32>\n"),
    /* regions of a composite are for those who know it by name */
    F("  %0 = \"stablehlo.composite\"(%s) ({\n  ^bb0(%x: tensor<f32>):\n    stablehlo.return %x : tensor<f32>\n  }) {name = \"a.b\", "
      "decomposition = @g} : (tensor<f32>) -> tensor<f32>\n")
    "func.func private @g(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n",
    "func.func @main(%x: tensor<1x8x8x1xf32>, %w: tensor<3x3x1x1xf32>) {\n  %0 = stablehlo.convolution(%x, %w) dim_numbers = "
    "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [], pad = [], lhs_dilate = [], rhs_dilate = [], reverse = []} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x1xf32>, tensor<3x3x1x1xf32>) -> "
    "tensor<1x6x6x1xf32>\n  return\n}\n"};

static void test_taken(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(taken); i++)
    if (verify(taken[i]) != AX_OK) fail_msg("%s\n%s", ax_message(), taken[i]);
}

/* Types of 2^60 parts, which share them: however they are spelled they are one if their parts are; those that only fit are not walked
   through. */
static void test_shared_parts(void **state) {
  static const struct {
    const char *other, *message;
  } cases[] = {{"tensor<2xf32>", NULL}, {"tensor<?xf32>", "region 0: argument 0 is tuple<!b58, !b58 >, and operand 0 is tuple<!a58, !a58>"}};
  (void)state;
  for (size_t k = 0; k < AX_COUNT(cases); k++) {
    ax_text text = {0};
    ax_text_add(&text, "!a0 = tensor<2xf32>\n!b0 = %s\n", cases[k].other);
    for (int i = 1; i < 60; i++)
      ax_text_add(&text, "!a%d = tuple<!a%d, !a%d>\n!b%d = tuple<!b%d, !b%d >\n", i, i - 1, i - 1, i, i - 1, i - 1);
    ax_text_add(&text, "func.func @main(%%x: !a59, %%p: tensor<i1>) {\n  %%0 = \"stablehlo.while\"(%%x) ({\n  ^bb0(%%y: !b59):\n"
                       "    stablehlo.return %%p : tensor<i1>\n  }, {\n  ^bb0(%%y: !b59):\n    stablehlo.return %%y : !b59\n"
                       "  }) : (!a59) -> !a59\n  return\n}\n");
    const ax_status status = verify(text.data);
    if (cases[k].message == NULL && status != AX_OK) fail_msg("%s", ax_message());
    if (cases[k].message != NULL && (status != AX_INVALID_ARGUMENT || strstr(ax_message(), cases[k].message) == NULL))
      fail_msg("%s", ax_message());
    ax_text_deinit(&text);
  }
}

/* The table is searched by halves: each operation is found, with its rule, and nothing else is. */
static const struct {
  const char *op;
  ax_hlo_check_fn *check;
} rules[] = {{"chlo.broadcast_add", ax_hlo_check_chlo_broadcast},
             {"chlo.constant", ax_hlo_check_constant},
             {"chlo.ragged_dot", ax_hlo_check_ragged_dot},
             {"chlo.scan", ax_hlo_check_scan},
             {"chlo.top_k", ax_hlo_check_top_k},
             {"stablehlo.abs", ax_hlo_check_parts},
             {"stablehlo.add", ax_hlo_check_add},
             {"stablehlo.all_gather", ax_hlo_check_all_gather},
             {"stablehlo.all_reduce", ax_hlo_check_all_reduce},
             {"stablehlo.all_to_all", ax_hlo_check_all_to_all},
             {"stablehlo.async_done", ax_hlo_check_async_done},
             {"stablehlo.async_start", ax_hlo_check_async_start},
             {"stablehlo.batch_norm_grad", ax_hlo_check_batch_norm_grad},
             {"stablehlo.batch_norm_inference", ax_hlo_check_batch_norm_inference},
             {"stablehlo.batch_norm_training", ax_hlo_check_batch_norm_training},
             {"stablehlo.bitcast_convert", ax_hlo_check_bitcast},
             {"stablehlo.broadcast", ax_hlo_check_broadcast},
             {"stablehlo.broadcast_in_dim", ax_hlo_check_broadcast_in_dim},
             {"stablehlo.case", ax_hlo_check_case},
             {"stablehlo.cholesky", ax_hlo_check_cholesky},
             {"stablehlo.clamp", ax_hlo_check_clamp},
             {"stablehlo.collective_broadcast", ax_hlo_check_rooted},
             {"stablehlo.collective_permute", ax_hlo_check_permute},
             {"stablehlo.compare", ax_hlo_check_compare},
             {"stablehlo.complex", ax_hlo_check_complex},
             {"stablehlo.composite", ax_hlo_check_composite},
             {"stablehlo.concatenate", ax_hlo_check_concatenate},
             {"stablehlo.convolution", ax_hlo_check_convolution},
             {"stablehlo.cross-replica-sum", ax_hlo_check_cross_replica_sum},
                      {"stablehlo.dot", ax_hlo_check_dot},
             {"stablehlo.dot_general", ax_hlo_check_dot_general},
             {"stablehlo.dynamic_broadcast_in_dim", ax_hlo_check_dynamic_broadcast},
             {"stablehlo.dynamic_gather", ax_hlo_check_dynamic_gather},
             {"stablehlo.dynamic_iota", ax_hlo_check_dynamic_iota},
             {"stablehlo.dynamic_pad", ax_hlo_check_dynamic_pad},
             {"stablehlo.dynamic_reshape", ax_hlo_check_dynamic_reshape},
             {"stablehlo.dynamic_slice", ax_hlo_check_dynamic_slice},
             {"stablehlo.dynamic_update_slice", ax_hlo_check_update_slice},
             {"stablehlo.einsum", ax_hlo_check_einsum},
             {"stablehlo.fft", ax_hlo_check_fft},
             {"stablehlo.gather", ax_hlo_check_gather},
             {"stablehlo.get_dimension_size", ax_hlo_check_dimension_size},
             {"stablehlo.get_tuple_element", ax_hlo_check_tuple_element},
             {"stablehlo.if", ax_hlo_check_if},
             {"stablehlo.infeed", ax_hlo_check_infeed},
             {"stablehlo.iota", ax_hlo_check_iota},
             {"stablehlo.map", ax_hlo_check_map},
             {"stablehlo.pad", ax_hlo_check_pad},
             {"stablehlo.real_dynamic_slice", ax_hlo_check_real_dynamic_slice},
             {"stablehlo.recv", ax_hlo_check_recv},
             {"stablehlo.reduce", ax_hlo_check_reduce},
             {"stablehlo.reduce_scatter", ax_hlo_check_reduce_scatter},
             {"stablehlo.reduce_window", ax_hlo_check_reduce_window},
             {"stablehlo.reshape", ax_hlo_check_reshape},
             {"stablehlo.reverse", ax_hlo_check_reverse},
             {"stablehlo.rng", ax_hlo_check_rng},
             {"stablehlo.rng_bit_generator", ax_hlo_check_rng_bits},
             {"stablehlo.scatter", ax_hlo_check_scatter},
             {"stablehlo.select", ax_hlo_check_select},
             {"stablehlo.select_and_scatter", ax_hlo_check_select_and_scatter},
             {"stablehlo.send", ax_hlo_check_send},
             {"stablehlo.set_dimension_size", ax_hlo_check_set_dimension_size},
             {"stablehlo.slice", ax_hlo_check_slice},
             {"stablehlo.sort", ax_hlo_check_sort},
             {"stablehlo.torch_index_select", ax_hlo_check_torch_index_select},
             {"stablehlo.transpose", ax_hlo_check_transpose},
             {"stablehlo.triangular_solve", ax_hlo_check_triangular_solve},
             {"stablehlo.tuple", ax_hlo_check_tuple},
             {"stablehlo.uniform_dequantize", ax_hlo_check_quantize},
             {"stablehlo.while", ax_hlo_check_while}};

static void test_table(void **state) {
  (void)state;
  uint32_t index;
  for (size_t i = 0; i < AX_COUNT(rules); i++) {
    const ax_hlo_rule *rule = ax_hlo_find_rule((ax_hlo_slice){rules[i].op, strlen(rules[i].op)}, &index);
    if (rule == NULL || rule->check != rules[i].check || index >= AX_HLO_MOST_RULES) fail_msg("%s has another rule", rules[i].op);
  }
  assert_null(ax_hlo_find_rule((ax_hlo_slice){"stablehlo.ad", 12}, &index));
  assert_null(ax_hlo_find_rule((ax_hlo_slice){"zeta", 4}, &index));
}

/* 5 elements, 2 between two, and 1 before them are 14 places: windows of 2 elements, 3 apart, reach over 4. */
static void test_windows(void **state) {
  (void)state;
  assert_int_equal(ax_hlo_windows_in(5, 1, 0, 3, 2, 3, 1), 11);
  assert_int_equal(ax_hlo_windows_in(5, 1, 0, 3, 2, 3, 5), 3);
  assert_int_equal(ax_hlo_windows_in(2, 0, 0, 1, 3, 1, 1), 0);
  assert_int_equal(ax_hlo_windows_in(AX_HLO_DYNAMIC, 0, 0, 1, 3, 1, 1), AX_HLO_DYNAMIC);
  assert_int_equal(ax_hlo_windows_in(INT64_MAX, INT64_MAX, 0, 1, 3, 1, 1), AX_HLO_DYNAMIC);
}

static void test_places(void **state) {
  char text[256];
  (void)state;
  assert_true(ax_hlo_extents_fit(3, 3) && ax_hlo_extents_fit(AX_HLO_DYNAMIC, 3) && !ax_hlo_extents_fit(2, 3));
  assert_string_equal(ax_hlo_dims_text(&(ax_dims){.count = 3, .v = {2, AX_HLO_DYNAMIC, 0}}, text), "[2, ?, 0]");
  const ax_dims list = {.count = 3, .v = {0, 2, 1}}, twice = {.count = 2, .v = {1, 1}}, other = {.count = 1, .v = {2}};
  assert_int_equal(ax_hlo_check_places("d", &list, 3, false), AX_OK);
  assert_int_equal(ax_hlo_check_places("d", &list, 3, true), AX_INVALID_ARGUMENT);
  assert_int_equal(ax_hlo_check_places("d", &list, 2, false), AX_INVALID_ARGUMENT);
  assert_int_equal(ax_hlo_check_places("d", &twice, 3, false), AX_INVALID_ARGUMENT);
  assert_int_equal(ax_hlo_check_disjoint("d", &list, "e", &other), AX_INVALID_ARGUMENT);
  assert_int_equal(ax_hlo_check_disjoint("d", &twice, "e", &other), AX_OK);
}

static void test_types(void **state) {
  const char *text =
      "func.func @main(%a: tensor<2x?xf32>, %b: tensor<?x3xf32>, %c: tensor<i32>, %d: !stablehlo.token, %e: tensor<2x3xi1>, "
      "%f: tensor<*xf32>) { return }\n";
  ax_hlo_module m;
  int64_t rows, columns;
  (void)state;
  assert_int_equal(ax_hlo_read(text, strlen(text), "m", &m), AX_OK);
  const ax_hlo_value_type *const *t = m.values;
  assert_int_equal(ax_hlo_class_of(t[0]), AX_HLO_FLOATS);
  assert_int_equal(ax_hlo_class_of(t[3]), AX_HLO_TOKENS);
  assert_int_equal(ax_hlo_class_of(t[4]), AX_HLO_TRUTHS);
  assert_true(ax_hlo_ranked(t[0]) && !ax_hlo_ranked(t[3]) && !ax_hlo_ranked(t[5]));
  assert_true(ax_hlo_shapes_fit(t[0], t[1]) && ax_hlo_shapes_fit(t[0], t[4]) && !ax_hlo_shapes_fit(t[0], t[2]));
  assert_true(ax_hlo_elements_fit(t[0], t[5]) && !ax_hlo_elements_fit(t[0], t[4]));
  assert_true(ax_hlo_types_fit(t[0], t[1]) && !ax_hlo_types_fit(t[0], t[4]) && !ax_hlo_types_fit(t[0], t[3]));
  assert_true(ax_hlo_is_scalar(t[2], AX_S32) && !ax_hlo_is_scalar(t[2], AX_S64) && !ax_hlo_is_scalar(t[0], AX_F32));
  const ax_dims dims = ax_hlo_dims_of(t[4]);
  assert_true(dims.count == 2 && dims.v[0] == 2 && dims.v[1] == 3);
  for (uint32_t i = 0; i < m.value_count; i++) assert_int_equal(ax_hlo_check_type(t[i]), AX_OK);
  assert_false(ax_hlo_table(NULL, &rows, &columns));
  assert_int_equal(ax_hlo_length((ax_hlo_slice){text, 1000}), 160);
  assert_non_null(ax_hlo_find_named_group((ax_hlo_slice){"stablehlo.conv", 14}));
  assert_null(ax_hlo_find_named_group((ax_hlo_slice){"stablehlo.con", 13}));
  ax_hlo_module_deinit(&m);
}

/* Of each rule that takes memory one operation. */
static const char many[] =
    "func.func @main(%a: tensor<4x2xf32>, %z: tensor<f32>, %i: tensor<1x1xi32>, %u: tensor<1x2xf32>) {\n"
    "  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x2xf32>, tensor<f32>) -> "
    "tensor<4xf32>\n"
    "  %1 = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
    "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    stablehlo.return %y : tensor<f32>\n"
    "  }) : (tensor<4x2xf32>, tensor<1x1xi32>, tensor<1x2xf32>) -> tensor<4x2xf32>\n"
    "  %2 = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : "
    "(tensor<4x2xf32>) -> tensor<8x2xf32>\n  return\n}\n";

static ax_status verify_again(void *context) { return ax_hlo_verify(context); }

static void test_out_of_memory(void **state) {
  ax_hlo_module module;
  (void)state;
  assert_int_equal(ax_hlo_read(many, strlen(many), "m", &module), AX_OK);
  assert_true(test_each_allocation(verify_again, &module) >= 3);
  ax_hlo_module_deinit(&module);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),  cmocka_unit_test(test_types),   cmocka_unit_test(test_windows),
                                     cmocka_unit_test(test_places), cmocka_unit_test(test_refused), cmocka_unit_test(test_taken),
                                     cmocka_unit_test(test_shared_parts),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
