/* Modules that leave extents open: each operation whose shape is an operand, against numbers; the programs that arguments of several
   shapes give; what is refused, and where; input that is damaged. That modules of JAX run to XLA's values is the oracle's to say. */
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "axle/stablehlo.h"
#include "bridge/stablehlo_read.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_status import_with(const char *text, uint32_t dim_count, const ax_stablehlo_dim *dims, ax_program **out) {
  const ax_stablehlo_options options = {.dim_count = dim_count, .dims = dims};
  return ax_program_from_stablehlo_with(text, strlen(text), "m.mlir", &options, out);
}

/* --- Operations, in modules that check their results --- */

#define X \
  "  %x0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>\n" \
  "  %x = stablehlo.convert %x0 : (tensor<2x3xf32>) -> tensor<?x3xf32>\n" \
  "  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>\n" \
  "  %n3 = stablehlo.constant dense<3> : tensor<i32>\n  %n = stablehlo.multiply %b, %n3 : tensor<i32>\n" \
  "  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>\n  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n" \
  "  %o = stablehlo.constant dense<1> : tensor<1xi32>\n  %f = stablehlo.constant dense<0.0> : tensor<f32>\n" \
  "  %ob = stablehlo.concatenate %o, %b1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n" \
  "  %bo = stablehlo.concatenate %b1, %o, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n" \
  "  %n3v = stablehlo.reshape %n3 : (tensor<i32>) -> tensor<1xi32>\n" \
  "  %b3 = stablehlo.concatenate %b1, %n3v, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n" \
  "  %oo = stablehlo.constant dense<1> : tensor<2xi32>\n  %zz = stablehlo.constant dense<0> : tensor<2xi32>\n"
static const char *const operations[] = {
    "  %0 = stablehlo.dynamic_reshape %x, %n1 : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>\n"
    "  %k1 = stablehlo.convert %0 : (tensor<?xf32>) -> tensor<6xf32>\n"
    "  check.expect_eq_const %k1, dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>\n",
    "  %0 = \"chlo.dynamic_reshape\"(%x, %n1) : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>\n"
    "  %k2 = stablehlo.convert %0 : (tensor<?xf32>) -> tensor<6xf32>\n"
    "  check.expect_eq_const %k2, dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>\n",
    "  %0 = stablehlo.dynamic_iota %bo, dim = 0 : (tensor<2xi32>) -> tensor<?x1xf32>\n"
    "  %k3 = stablehlo.convert %0 : (tensor<?x1xf32>) -> tensor<2x1xf32>\n"
    "  check.expect_eq_const %k3, dense<[[0.0], [1.0]]> : tensor<2x1xf32>\n",
    "  %0 = stablehlo.dynamic_broadcast_in_dim %f, %ob, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<1x?xf32>\n"
    "  %k4 = stablehlo.convert %0 : (tensor<1x?xf32>) -> tensor<1x2xf32>\n"
    "  check.expect_eq_const %k4, dense<[[0.0, 0.0]]> : tensor<1x2xf32>\n",
    "  %i = stablehlo.constant dense<[[1], [0], [1]]> : tensor<3x1xi32>\n"
    "  %0 = \"stablehlo.dynamic_gather\"(%x, %i, %ob) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = "
    "[0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<?x3xf32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x?xf32>\n"
    "  %k5 = stablehlo.convert %0 : (tensor<3x?xf32>) -> tensor<3x2xf32>\n"
    "  check.expect_eq_const %k5, dense<[[4.0, 5.0], [1.0, 2.0], [4.0, 5.0]]> : tensor<3x2xf32>\n",
    "  %l = stablehlo.reshape %x : (tensor<?x3xf32>) -> tensor<1x6x1xf32>\n  %k = stablehlo.constant dense<1.0> : tensor<2x1x1xf32>\n"
    "  %p = stablehlo.reshape %bo : (tensor<2xi32>) -> tensor<1x2xi32>\n"
    "  %0 = stablehlo.dynamic_conv(%l, %k, %p) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [3]} {batch_group_count = "
    "1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi32>) -> tensor<1x?x1xf32>\n"
    "  %k6 = stablehlo.convert %0 : (tensor<1x?x1xf32>) -> tensor<1x3x1xf32>\n"
    "  check.expect_eq_const %k6, dense<[[[0.0], [5.0], [11.0]]]> : tensor<1x3x1xf32>\n",
    "  %0 = stablehlo.dynamic_pad %x, %f, %ob, %zz, %bo : (tensor<?x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> "
    "tensor<?x?xf32>\n"
    "  %k7 = stablehlo.convert %0 : (tensor<?x?xf32>) -> tensor<5x7xf32>\n"
    "  check.expect_eq_const %k7, dense<[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0, 5.0, 0.0, 6.0]]> : tensor<5x7xf32>\n",
    "  %h = stablehlo.constant dense<[2, 3]> : tensor<2xi32>\n"
    "  %0 = stablehlo.real_dynamic_slice %x, %zz, %h, %ob : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> "
    "tensor<?x?xf32>\n"
    "  %k8 = stablehlo.convert %0 : (tensor<?x?xf32>) -> tensor<2x2xf32>\n"
    "  check.expect_eq_const %k8, dense<[[1.0, 3.0], [4.0, 6.0]]> : tensor<2x2xf32>\n",
    /* the start is not known, the extents are */
    "  %c = stablehlo.convert %x : (tensor<?x3xf32>) -> tensor<?x3xi32>\n"
    "  %s = stablehlo.slice %c [0:1, 0:2] : (tensor<?x3xi32>) -> tensor<1x2xi32>\n  %t = stablehlo.reshape %s : (tensor<1x2xi32>) -> tensor<2xi32>\n"
    "  %u = stablehlo.subtract %t, %oo : tensor<2xi32>\n  %v = stablehlo.subtract %t, %oo : tensor<2xi32>\n"
    "  %w = stablehlo.add %v, %bo : tensor<2xi32>\n"
    "  %0 = stablehlo.real_dynamic_slice %x, %u, %w, %oo : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> "
    "tensor<?x1xf32>\n"
    "  %k9 = stablehlo.convert %0 : (tensor<?x1xf32>) -> tensor<2x1xf32>\n"
    "  check.expect_eq_const %k9, dense<[[2.0], [5.0]]> : tensor<2x1xf32>\n",
    "  %0 = stablehlo.set_dimension_size %x, %b, dim = 0 : (tensor<?x3xf32>, tensor<i32>) -> tensor<?x3xf32>\n"
    "  check.expect_eq %0, %x : tensor<?x3xf32>\n",
    "  %p = stablehlo.constant dense<0> : tensor<2x2xi32>\n"
    "  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %f, %bo, %oo, %oo, %oo, %p) {called_computations = [@plus]} : "
    "(tensor<?x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x3xf32>\n"
    "  %k10 = stablehlo.convert %0 : (tensor<?x3xf32>) -> tensor<1x3xf32>\n"
    "  check.expect_eq_const %k10, dense<[[5.0, 7.0, 9.0]]> : tensor<1x3xf32>\n",
    "  %k = stablehlo.constant dense<[1, 2]> : tensor<2xui64>\n"
    "  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%k, %bo) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : "
    "(tensor<2xui64>, tensor<2xi32>) -> (tensor<2xui64>, tensor<?x1xui32>)\n"
    "  %1:2 = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x1xui32>)\n"
    "  %2 = stablehlo.convert %1#1 : (tensor<2x1xui32>) -> tensor<?x1xui32>\n  check.expect_eq %0#1, %2 : tensor<?x1xui32>\n",
    "  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %b) : (tensor<?x3xf32>, tensor<i32>) -> (tensor<?x?xf32>, "
    "tensor<?x?xi32>)\n"
    "  %k11 = stablehlo.convert %0#0 : (tensor<?x?xf32>) -> tensor<2x2xf32>\n"
    "  check.expect_eq_const %k11, dense<[[3.0, 2.0], [6.0, 5.0]]> : tensor<2x2xf32>\n"
    "  %k12 = stablehlo.convert %0#1 : (tensor<?x?xi32>) -> tensor<2x2xi32>\n"
    "  check.expect_eq_const %k12, dense<[[2, 1], [2, 1]]> : tensor<2x2xi32>\n",
    "  %i = stablehlo.dynamic_iota %b3, dim = 1 : (tensor<2xi32>) -> tensor<?x3xi32>\n  %z = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %f, %z, %o, %bo, %bo) {called_computations = [@above], "
    "indices_of_shape_operands = dense<[5, 6]> : tensor<2xi64>, mhlo.backend_config = {reduction_dim = 1 : i64}} : (tensor<?x3xf32>, "
    "tensor<?x3xi32>, tensor<f32>, tensor<i32>, tensor<1xi32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)\n"
    "  %k20 = stablehlo.convert %0#1 : (tensor<?x?xi32>) -> tensor<2x1xi32>\n"
    "  check.expect_eq_const %k20, dense<[[2], [2]]> : tensor<2x1xi32>\n",
    "  %r = stablehlo.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf32>\n"
    "  %0 = \"chlo.broadcast_add\"(%x, %r) : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>\n"
    "  %k13 = stablehlo.convert %0 : (tensor<?x3xf32>) -> tensor<2x3xf32>\n"
    "  check.expect_eq_const %k13, dense<[[11.0, 22.0, 33.0], [14.0, 25.0, 36.0]]> : tensor<2x3xf32>\n",
    "  %r = stablehlo.constant dense<[4.0, 5.0]> : tensor<2xf32>\n"
    "  %0 = \"chlo.broadcast_compare\"(%x, %r) <{broadcast_dimensions = array<i64: 0>, comparison_direction = #chlo<comparison_direction "
    "LT>}> : (tensor<?x3xf32>, tensor<2xf32>) -> tensor<?x3xi1>\n"
    "  %k14 = stablehlo.convert %0 : (tensor<?x3xi1>) -> tensor<2x3xi1>\n"
    "  check.expect_eq_const %k14, dense<[[true, true, true], [true, false, false]]> : tensor<2x3xi1>\n",
    "  %t = stablehlo.compare GE, %b, %n3 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n  %u = stablehlo.not %t : tensor<i1>\n"
    "  stablehlo.custom_call @shape_assertion(%u, %b) {error_message = \"b is {0}\", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> "
    "()\n",
    /* integers that functions return, one function of two shapes */
    "  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>\n"
    "  %t2 = stablehlo.convert %t : (tensor<3x?xf32>) -> tensor<?x?xf32>\n  %x2 = stablehlo.convert %x : (tensor<?x3xf32>) -> tensor<?x?xf32>\n"
    "  %0:2 = call @count(%x2, %b) : (tensor<?x?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<i32>)\n"
    "  %1:2 = call @count(%t2, %b) : (tensor<?x?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<i32>)\n"
    "  %2 = stablehlo.reshape %0#1 : (tensor<i32>) -> tensor<1xi32>\n"
    "  %3 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>\n  %k15 = stablehlo.convert %3 : (tensor<?xi32>) -> tensor<4xi32>\n"
    "  check.expect_eq_const %k15, dense<[0, 1, 2, 3]> : tensor<4xi32>\n"
    "  %k16 = stablehlo.convert %0#0 : (tensor<?xf32>) -> tensor<2xf32>\n"
    "  check.expect_eq_const %k16, dense<[0.0, 1.0]> : tensor<2xf32>\n  %k17 = stablehlo.convert %1#0 : (tensor<?xf32>) -> tensor<3xf32>\n"
    "  check.expect_eq_const %k17, dense<[0.0, 1.0, 2.0]> : tensor<3xf32>\n",
    /* a number of elements by a reduction; loops and branches of open types */
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %p = stablehlo.reduce(%ob init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<i32>\n"
    "  %q = stablehlo.reshape %p : (tensor<i32>) -> tensor<1xi32>\n  %z = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %y = stablehlo.dynamic_broadcast_in_dim %f, %q, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>\n"
    "  %0:2 = stablehlo.while(%i = %z, %a = %y) : tensor<i32>, tensor<?xf32>\n    cond {\n"
    "    %c = stablehlo.compare LT, %i, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  } do {\n"
    "    %j = stablehlo.add %i, %one : tensor<i32>\n    %d = stablehlo.dynamic_iota %q, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n"
    "    %e = stablehlo.add %a, %d : tensor<?xf32>\n    stablehlo.return %j, %e : tensor<i32>, tensor<?xf32>\n  }\n"
    "  %t = stablehlo.compare LT, %z, %0#0 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "  %1 = \"stablehlo.if\"(%t) ({\n    stablehlo.return %0#1 : tensor<?xf32>\n  }, {\n    stablehlo.return %y : tensor<?xf32>\n  }) : "
    "(tensor<i1>) -> tensor<?xf32>\n"
    "  %2 = stablehlo.optimization_barrier %1 : tensor<?xf32>\n  %k18 = stablehlo.convert %2 : (tensor<?xf32>) -> tensor<2xf32>\n"
    "  check.expect_eq_const %k18, dense<[0.0, 2.0]> : tensor<2xf32>\n"};

static const char functions[] =
    "  return\n}\nfunc.func private @plus(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {\n"
    "  %0 = stablehlo.add %x, %y : tensor<f32>\n  return %0 : tensor<f32>\n}\n"
    "func.func private @above(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {\n"
    "  %0 = stablehlo.compare GT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\n  return %0 : tensor<i1>\n}\n"
    "func.func private @count(%x: tensor<?x?xf32>, %b: tensor<i32>) -> (tensor<?xf32>, tensor<i32>) {\n"
    "  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>\n"
    "  %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n"
    "  %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n  %2 = stablehlo.add %n, %b : tensor<i32>\n"
    "  return %1, %2 : tensor<?xf32>, tensor<i32>\n}\n";

static void module_text(const char *body, ax_text *out) {
  ax_text_add(out, "func.func @main() {\n%s%s%s", X, body, functions);
}

static void test_operations(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(operations); i++) {
    ax_text text = {0};
    ax_program *program;
    module_text(operations[i], &text);
    if (import_with(text.data, 0, NULL, &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text.data);
    if (test_try(program, NULL, NULL) != AX_OK) fail_msg("%s\n%s", ax_message(), text.data);
    ax_program_release(program);
    ax_text_deinit(&text);
  }
}

/* --- Programs of several extents --- */

#define POLYMORPHIC \
  "func.func @main(%x: tensor<?x4xf32>, %y: tensor<?xf32>, %n: tensor<i64>) -> tensor<?x4xf32> {\n" \
  "  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>\n" \
  "  %d = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n" \
  "  %m = stablehlo.convert %n : (tensor<i64>) -> tensor<i32>\n" \
  "  %t = stablehlo.compare GE, %b, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "  stablehlo.custom_call @shape_assertion(%t, %b, %d) {error_message = \"b is {0} and c is {1}. Using the following polymorphic shapes " \
  "specifications: x.shape = (b, 4),y.shape = (2*b + floordiv(b, 2)^2 - 1,). Obtained\"} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()\n" \
  "  %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>\n  %f = stablehlo.constant dense<4> : tensor<1xi32>\n" \
  "  %sf = stablehlo.concatenate %s, %f, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n" \
  "  %0 = stablehlo.constant dense<0.0> : tensor<f32>\n" \
  "  %z = stablehlo.dynamic_broadcast_in_dim %0, %sf, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>\n" \
  "  %r = stablehlo.concatenate %x, %z, dim = 0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>\n" \
  "  return %r : tensor<?x4xf32>\n}\n"

static void expect_types(const ax_program *program, int64_t x, int64_t y, int64_t result) {
  assert_int_equal(program->in_count, 2);
  assert_int_equal(program->types[0].dims[0], x);
  assert_int_equal(program->types[1].dims[0], y);
  assert_int_equal(program->types[program->outs[0]].dims[0], result);
}

static void test_bound(void **state) {
  (void)state;
  const ax_stablehlo_dim by_name[] = {{"b", 5}, {"n", 2}}, by_place[] = {{"x.0", 3}, {"1.0", 7}, {"2", 1}};
  const ax_type types[] = {TEST_TYPE(AX_F32, 6, 4), {.dtype = AX_NO_DTYPE}};
  ax_program *program;
  TEST_OK(import_with(POLYMORPHIC, 2, by_name, &program));
  expect_types(program, 5, 13, 7);
  ax_program_release(program);
  TEST_OK(import_with(POLYMORPHIC, 3, by_place, &program));
  expect_types(program, 3, 7, 4);
  ax_program_release(program);
  TEST_OK(ax_program_from_stablehlo_with(
      POLYMORPHIC, strlen(POLYMORPHIC), NULL,
      &(ax_stablehlo_options){.dim_count = 1, .dims = &by_name[1], .type_count = 2, .types = types}, &program));
  expect_types(program, 6, 20, 8);
  ax_program_release(program);
}

static ax_status types_of_inputs(void *context, uint32_t index, ax_hlo_slice name, ax_type *out) {
  uint32_t *asked = context;
  assert_true(index == 0 ? ax_hlo_slice_is(name, "x") : index == 1 && ax_hlo_slice_is(name, "y"));
  ++*asked;
  *out = TEST_TYPE(AX_F32, 4);
  out->rank = 2 - index, out->dims[1] = 4;
  return AX_OK;
}

static void test_names(void **state) {
  (void)state;
  const ax_stablehlo_dim number = {"n", 1};
  uint32_t asked = 0;
  ax_program_names names;
  ax_program *program;
  const ax_hlo_binding binding = {.dim_count = 1, .dims = &number, .type_of = types_of_inputs, .context = &asked};
  TEST_OK(ax_program_from_stablehlo_named(POLYMORPHIC, strlen(POLYMORPHIC), "m.mlir", &binding, &names, &program));
  expect_types(program, 4, 4, 5);
  assert_int_equal(asked, 2);
  assert_string_equal(names.in[0], "x");
  assert_string_equal(names.in[1], "y");
  ax_program_names_deinit(&names);
  ax_program_release(program);
}

/* --- What is refused --- */

#define DIMS(...) {__VA_ARGS__}
#define ONE(argument, line, type) "func.func @main(%x: " argument ") -> " type " {\n  " line "\n  return %0 : " type "\n}\n"
static const struct {
  const char *text;
  ax_stablehlo_dim dims[3];
  ax_status status;
  const char *message;
} refused[] = {
    {POLYMORPHIC, DIMS({NULL, 0}), AX_INVALID_ARGUMENT,
     "extent 0 of argument 0, tensor<?x4xf32>, is not known: --dim b=N or --dim x.0=N"},
    {POLYMORPHIC, DIMS({"b", 5}), AX_INVALID_ARGUMENT, "m.mlir:6: stablehlo.custom_call: operand 0 says a shape, and is not known"},
    {POLYMORPHIC, DIMS({"b", 5}, {"n", 6}), AX_INVALID_ARGUMENT, "m.mlir:6: stablehlo.custom_call: b is 5 and c is 13. Using"},
    {POLYMORPHIC, DIMS({"b", 5}, {"x.0", 5}, {"x.1", 3}), AX_INVALID_ARGUMENT, "x.1 says 3 for extent 1 of argument 0, which is 4"},
    {POLYMORPHIC, DIMS({"b", 5}, {"x.2", 5}), AX_INVALID_ARGUMENT, "x.2: argument 0 has rank 2"},
    {POLYMORPHIC, DIMS({"c", 5}), AX_INVALID_ARGUMENT, "the module has no dimension c"},
    {POLYMORPHIC, DIMS({"floordiv", 5}), AX_INVALID_ARGUMENT, "is not known"},
    {POLYMORPHIC, DIMS({"x", 5}), AX_INVALID_ARGUMENT, "x = 5: argument 0 is tensor<?x4xf32>, and no number; its extents are x.0, .."},
    {POLYMORPHIC, DIMS({"b", -1}), AX_INVALID_ARGUMENT, "b = -1: an extent is not below 0"},
    {ONE("tensor<*xf32>", "%0 = stablehlo.sine %x : tensor<*xf32>", "tensor<*xf32>"), DIMS({NULL, 0}), AX_INVALID_ARGUMENT,
     "operand 0 is tensor<*xf32>, and must be an array of a known rank of these: floats, complex numbers, "},
    {ONE("tensor<?xf32>", "%0 = stablehlo.reshape %x : (tensor<?xf32>) -> tensor<?x1xf32>", "tensor<?x1xf32>"), DIMS({"x.0", 2}),
     AX_INVALID_ARGUMENT, "the result must have a shape that is known, but for one extent that has a bound"},
    {ONE("tensor<1xi32>", "%0 = stablehlo.dynamic_iota %x, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>", "tensor<?xf32>"),
     DIMS({NULL, 0}), AX_INVALID_ARGUMENT, "m.mlir:2: stablehlo.dynamic_iota: operand 0 says a shape, and is not known while the module is read"},
    {ONE("tensor<?xf32>", "%0 = stablehlo.sine %x : (tensor<?xf32>) -> tensor<3xf32>", "tensor<3xf32>"), DIMS({"x.0", 2}),
     AX_INVALID_ARGUMENT, "result 0 of stablehlo.sine is f32[2], and the module says tensor<3xf32>"},
    {ONE("tensor<?xf32>", "%0 = stablehlo.constant dense<-1> : tensor<1xi32>\n  %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> "
         "tensor<?xf32>", "tensor<1xi32>"),
     DIMS({"x.0", 2}), AX_INVALID_ARGUMENT, "operand 0 says the shape [?], which the result, tensor<?xf32>, does not have"},
    {ONE("tensor<?xf32>", "%1 = stablehlo.constant dense<1> : tensor<i32>\n  %0 = stablehlo.set_dimension_size %x, %1, dim = 0 : "
         "(tensor<?xf32>, tensor<i32>) -> tensor<?xf32>", "tensor<?xf32>"),
     DIMS({"x.0", 2}), AX_ABSENT, "sets an extent of 2 to 1: extents of which only a bound is known"},
    {ONE("tensor<?xf32>", "%0 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {indices_of_shape_operands = dense<3> : tensor<1xi64>} : "
         "(tensor<?xf32>) -> tensor<?xf32>", "tensor<?xf32>"),
     DIMS({"x.0", 2}), AX_INVALID_ARGUMENT, "indices_of_shape_operands must be the last operands"},
};

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(refused); i++) {
    uint32_t count = 0;
    ax_program *program;
    while (count < AX_COUNT(refused[i].dims) && refused[i].dims[count].name != NULL) count++;
    TEST_FAILS(import_with(refused[i].text, count, refused[i].dims, &program), refused[i].status, refused[i].message);
    assert_null(program);
  }
}

/* --- Growth --- */

/* Functions, each of which calls the next one twice: with the same numbers, or with two that it makes of its own. */
static void chain(ax_text *text, uint32_t depth, bool same) {
  ax_text_add(text, "func.func @main() -> tensor<i64> {\n  %%c = stablehlo.constant dense<1> : tensor<i64>\n"
                    "  %%0 = call @f0(%%c) : (tensor<i64>) -> tensor<i64>\n  return %%0 : tensor<i64>\n}\n");
  for (uint32_t i = 0; i < depth; i++)
    ax_text_add(text,
                "func.func private @f%u(%%n: tensor<i64>) -> tensor<i64> {\n  %%a = stablehlo.add %%n, %%n : tensor<i64>\n"
                "  %%o = stablehlo.constant dense<1> : tensor<i64>\n  %%b = stablehlo.add %%a, %%o : tensor<i64>\n  %%0 = call @f%u(%%a) : (tensor<i64>) -> tensor<i64>\n"
                "  %%1 = call @f%u(%s) : (tensor<i64>) -> tensor<i64>\n  %%2 = stablehlo.subtract %%0, %%1 : tensor<i64>\n"
                "  return %%2 : tensor<i64>\n}\n",
                i, i + 1, i + 1, same ? "%a" : "%b");
  ax_text_add(text,
              "func.func private @f%u(%%n: tensor<i64>) -> tensor<i64> {\n  %%s = stablehlo.constant dense<2> : tensor<1xi64>\n"
              "  %%0 = stablehlo.dynamic_iota %%s, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>\n  return %%n : tensor<i64>\n}\n",
              depth);
}

static void test_growth(void **state) {
  (void)state;
  ax_program *program;
  for (uint32_t same = 0; same < 2; same++) {
    ax_text text = {0};
    chain(&text, 60, same != 0);
    if (same != 0) {
      TEST_OK(import_with(text.data, 0, NULL, &program));
      ax_program_release(program);
    } else {
      TEST_FAILS(import_with(text.data, 0, NULL, &program), AX_ABSENT, "functions are called with so many shapes");
    }
    ax_text_deinit(&text);
  }
}

/* --- Damage, and no memory --- */

static void test_damaged(void **state) {
  (void)state;
  test_random random = {.state = 11};
  const ax_stablehlo_dim dims[] = {{"b", 3}, {"n", 1}};
  for (size_t length = 0; length < strlen(POLYMORPHIC); length += 7) {
    ax_program *program;
    const ax_stablehlo_options options = {.dim_count = 2, .dims = dims};
    if (ax_program_from_stablehlo_with(POLYMORPHIC, length, "m.mlir", &options, &program) == AX_OK) ax_program_release(program);
  }
  for (int round = 0; round < 3000; round++) {
    ax_text text = {0};
    ax_program *program;
    module_text(operations[test_random_bits(&random) % AX_COUNT(operations)], &text);
    if (round % 3 == 0) ax_text_deinit(&text), ax_text_add(&text, "%s", POLYMORPHIC);
    for (uint64_t changes = 1 + test_random_bits(&random) % 3; changes > 0; changes--)
      text.data[test_random_bits(&random) % text.length] = "?0123456789x-<>%,.()[]bn"[test_random_bits(&random) % 24];
    if (import_with(text.data, 2, dims, &program) == AX_OK) ax_program_release(program);
    ax_text_deinit(&text);
  }
}

static ax_status import_some(void *context) {
  const ax_stablehlo_dim dims[] = {{"b", 5}, {"n", 2}};
  ax_program *program;
  const ax_status status = import_with(context, 2, dims, &program);
  if (status == AX_OK) ax_program_release(program);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(import_some, (void *)(uintptr_t)POLYMORPHIC) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations), cmocka_unit_test(test_bound),  cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_refused),    cmocka_unit_test(test_growth), cmocka_unit_test(test_damaged),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
