/* Modules as programs: what each operation becomes, what is refused and where, and that a module that Axle has written comes back
   as a program with the same results. That JAX's own modules run to XLA's values is the oracle's to say (tests/oracle). */
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

static ax_program *import(const char *text) {
  ax_program *program;
  if (ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  return program;
}

/* --- Programs --- */

static const char *const programs[][2] = {
    {"func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {\n"
     "  %0 = stablehlo.add %a, %b : tensor<2xf32>\n  %1 = stablehlo.sine %0 : tensor<2xf32>\n  return %1 : tensor<2xf32>\n}\n",
     "{ lambda a:f32[2] b:f32[2]. let\n    c:f32[2] = add a b\n    d:f32[2] = sin c\n  in (d,) }\n"},
    {"func.func @main(%a: tensor<2x3xf32>) -> (tensor<3xf32>, tensor<f32>) {\n"
     "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> "
     "tensor<3xf32>\n"
     "  %1 = stablehlo.constant dense<2.0> : tensor<f32>\n  return %0, %1 : tensor<3xf32>, tensor<f32>\n}\n",
     "{ lambda a:f32[2,3]. let\n    b:f32[3] = reduce_sum[axes=(0,)] a\n  in (b, 2.0:f32[]) }\n"},
    {"func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n"
     "  %0 = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
     "    %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "    %1 = stablehlo.compare EQ, %x, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
     "    %2 = stablehlo.select %1, %c, %x : tensor<i1>, tensor<f32>\n"
     "    %3 = stablehlo.compare NE, %x, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
     "    %n = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
     "    %4 = stablehlo.select %3, %n, %2 : tensor<i1>, tensor<f32>\n"
     "    %d = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "    %5 = stablehlo.compare EQ, %y, %d, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
     "    %6 = stablehlo.select %5, %d, %y : tensor<i1>, tensor<f32>\n"
     "    %7 = stablehlo.compare NE, %y, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
     "    %m = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
     "    %8 = stablehlo.select %7, %m, %6 : tensor<i1>, tensor<f32>\n"
     "    %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
     "    stablehlo.return %9 : tensor<i1>\n  }) : (tensor<3xf32>) -> tensor<3xf32>\n  return %0 : tensor<3xf32>\n}\n",
     "{ lambda a:f32[3]. let\n    b:f32[3] = sort[dimension=0 num_keys=1 is_stable=true] a\n  in (b,) }\n"},
    {"module @m {\n  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
     "    %0 = call @f(%a) : (tensor<2xf32>) -> tensor<2xf32> loc(\"train.py\":31:4)\n    return %0 : tensor<2xf32>\n  }\n"
     "  func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n    %0 = stablehlo.tanh %a : tensor<2xf32>\n"
     "    return %0 : tensor<2xf32>\n  }\n}\n",
     "{ lambda a:f32[2]. let\n    b:f32[2] = closed_call[\n      body={ lambda a:f32[2]. let\n          b:f32[2] = tanh a\n"
     "        in (b,) }\n    ] a\n  in (b,) }\n"},
};

static void test_programs(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(programs); i++) {
    ax_program *program = import(programs[i][0]);
    char *text;
    TEST_OK(ax_program_print(program, &text));
    assert_string_equal(text, programs[i][1]);
    for (uint32_t k = 0; k < program->eqn_count; k++) assert_non_null(program->eqns[k].location);
    if (i + 1 == AX_COUNT(programs)) assert_string_equal(program->eqns[0].location, "train.py:31");
    ax_string_free(text);
    ax_program_release(program);
  }
}

/* --- Loops that count --- */

#define LOOP(first, upper, test, step)                                                                                             \
  "func.func @main() {\n  %i = stablehlo.constant dense<" first "> : tensor<i32>\n  %x = stablehlo.constant dense<1> : "          \
  "tensor<i32>\n  %two = stablehlo.constant dense<2> : tensor<i32>\n  %r:2 = stablehlo.while(%k = %i, %a = %x) : tensor<i32>, "    \
  "tensor<i32>\n  cond {\n    %u = stablehlo.constant dense<" upper "> : tensor<i32>\n    %t = " test                              \
  " : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %t : tensor<i1>\n  } do {\n    %one = stablehlo.constant "    \
  "dense<1> : tensor<i32>\n    %n = " step " : tensor<i32>\n    %b = stablehlo.multiply %a, %two : tensor<i32>\n"                 \
  "    %d = stablehlo.add %b, %k : tensor<i32>\n    stablehlo.return %n, %d : tensor<i32>, tensor<i32>\n  }\n"
#define LOOP_GIVES(k, a)                                                                                                           \
  "  check.expect_eq_const %r#0, dense<" k "> : tensor<i32>\n  check.expect_eq_const %r#1, dense<" a "> : tensor<i32>\n  return\n}\n"
#define BELOW "stablehlo.compare LT, %k, %u, SIGNED"
#define NEXT "stablehlo.add %k, %one"

/* a = 2 a + k, from a = 1 */
static const struct {
  const char *text, *loop;
} loops[] = {
    {LOOP("0", "4", BELOW, NEXT) LOOP_GIVES("4", "27"), "scan"},
    {LOOP("2", "4", BELOW, "stablehlo.add %one, %k") LOOP_GIVES("4", "11"), "scan"},
    {LOOP("4", "4", BELOW, NEXT) LOOP_GIVES("4", "1"), ""},
    {LOOP("9", "4", BELOW, NEXT) LOOP_GIVES("9", "1"), ""},
    {LOOP("0", "4", BELOW, "stablehlo.add %k, %two") LOOP_GIVES("4", "6"), "while"},
    {LOOP("0", "4", BELOW, "stablehlo.subtract %k, %k") "  return\n}\n", "while"},
    {LOOP("0", "4", "stablehlo.compare NE, %k, %u, SIGNED", NEXT) LOOP_GIVES("4", "27"), "while"},
    {LOOP("0", "4", "stablehlo.compare GT, %u, %k, SIGNED", NEXT) LOOP_GIVES("4", "27"), "while"},
    {LOOP("0", "4", "stablehlo.compare LT, %a, %u, SIGNED", NEXT) LOOP_GIVES("2", "5"), "while"},
    {LOOP("0", "4", "stablehlo.compare LT, %k, %a, SIGNED", "stablehlo.add %k, %two") "  return\n}\n", "while"},
};

/* As JAX writes them where types have layouts. */
#define LAID(to, x) "    " to " = sdy.sharding_constraint " x " <@mesh, []> : tensor<i32>\n"
static const char laid_loop[] =
    "module {\nsdy.mesh @mesh = <[\"d\"=2]>\nfunc.func @main() {\n  %c = stablehlo.constant dense<0> : tensor<i32>\n" LAID("%i", "%c")
    "  %r = stablehlo.while(%k = %i) : tensor<i32>\n  cond {\n    %c4 = stablehlo.constant dense<4> : tensor<i32>\n" LAID("%u", "%c4") LAID("%j", "%k")
    "    %t = stablehlo.compare LT, %j, %u, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %t : tensor<i1>\n  } do {\n"
    "    %c1 = stablehlo.constant dense<1> : tensor<i32>\n" LAID("%one", "%c1") LAID("%j", "%k")
    "    %m = stablehlo.add %j, %one : tensor<i32>\n" LAID("%n", "%m") "    stablehlo.return %n : tensor<i32>\n  }\n"
    "  check.expect_eq_const %r, dense<4> : tensor<i32>\n  return\n}\n}\n";

static void test_loops(void **state) {
  (void)state;
  ax_program *laid = import(laid_loop);
  assert_int_equal(test_count_prim(laid, "while"), 0);
  TEST_OK(test_try(laid, NULL, NULL));
  ax_program_release(laid);
  for (size_t i = 0; i < AX_COUNT(loops); i++) {
    ax_program *program = import(loops[i].text);
    char *text;
    TEST_OK(ax_program_print(program, &text));
    if (strstr(text, loops[i].loop) == NULL || (strstr(text, "while") != NULL) != (strcmp(loops[i].loop, "while") == 0))
      fail_msg("%s\n%s", loops[i].text, text);
    if (strstr(loops[i].text, "check.") != NULL) TEST_OK(test_try(program, NULL, NULL));
    ax_string_free(text);
    ax_program_release(program);
  }
}

/* --- There and back --- */

static AX_BODY(step_body) { out[0] = ax_add(in[0], ax_sin(in[1])), out[1] = ax_mul(in[1], ax_real(1.25)); }
static AX_BODY(below_body) { out[0] = ax_lt(in[0], ax_real(40)); }
static AX_BODY(double_body) { out[0] = ax_mul(in[0], ax_real(2)); }
static AX_BODY(larger_body) { out[0] = ax_max(in[0], in[1]); }

/* x f32[4,6], n s32[4]: operations of most kinds, with bodies and without. */
static AX_BODY(many) {
  const ax_value x = in[0], n = in[1], least = ax_full(AX_F32, AX_DIMS(), -100), rows = ax_reduce_sum(x, AX_DIMS(1), false);
  const int64_t wide[] = {4, 6, 2}, window[] = {2, 3};
  ax_value carried[2] = {rows, ax_exp(ax_neg(rows))},
           doubled[1] = {ax_add(ax_abs(ax_reduce_sum(rows, AX_DIMS(0), false)), ax_real(1))};
  ax_value largest[1];
  (ax_scan)((ax_fn){step_body, 2, 2, NULL}, 2, 5, false, 2, carried, 2, carried);
  (ax_while)((ax_fn){below_body, 1, 1, NULL}, (ax_fn){double_body, 1, 1, NULL}, 1, doubled, 1, doubled);
  (ax_reduce)(1, &x, 1, &least, (ax_fn){larger_body, 2, 1, NULL}, AX_DIMS(0), 1, largest);
  out[0] = ax_add(ax_matmul(ax_matrix_transpose(x), x), ax_where(ax_gt(doubled[0], ax_real(60)), doubled[0], ax_real(0)));
  out[1] = (ax_concatenate)(2, carried, 0);
  out[2] = ax_take(ax_sort(x, 1), n, 0);
  out[3] = (ax_reduce_window_max)(x, AX_LIST(2, window), NULL);
  const ax_value counted = ax_convert_element_type((ax_iota)(AX_S32, AX_LIST(3, wide), 2), AX_F32);
  out[4] = ax_add((ax_broadcast_in_dim)(largest[0], AX_LIST(3, wide), AX_DIMS(1)), counted);
  out[5] = ax_at_add(x, n, ax_real(0.5), 0, NULL);
  out[6] = ax_logsumexp((ax_pad)(x, ax_real(-1), AX_DIMS(1, 0), AX_DIMS(0, 2), AX_DIMS(0, 1)), AX_DIMS(0), false);
}

static void test_there_and_back(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 6), TEST_TYPE(AX_S32, 4)};
  ax_program *program = test_trace(many, NULL, types, 2, 7);
  char *text;
  TEST_OK(ax_program_stablehlo(program, &text));
  ax_program *back = import(text);
  assert_int_equal(back->in_count, program->in_count);
  test_random random = {.state = 3};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], 0, 4)};
  ax_tensor *wanted[7], *got[7];
  TEST_OK(test_try(program, in, wanted));
  TEST_OK(test_try(back, in, got));
  for (uint32_t k = 0; k < 7; k++) {
    TEST_TENSORS_NEAR(got[k], wanted[k], 1e-6);
    ax_tensor_release(wanted[k]);
    ax_tensor_release(got[k]);
  }
  for (uint32_t i = 0; i < 2; i++) ax_tensor_release(in[i]);
  ax_string_free(text);
  ax_program_release(program);
  ax_program_release(back);
}

/* --- Checks of StableHLO's tests --- */

static void test_checks(void **state) {
  (void)state;
  static const char *const checks[][2] = {
      {"check.expect_eq_const %a, dense<[1.0, 0x7FC00000]> : tensor<2xf32>", NULL},
      {"check.expect_eq_const %a, dense<[1.5, 0x7FC00000]> : tensor<2xf32>", "element 0 is 1.0, and should be 1.5"},
      {"check.expect_eq %a, %a : tensor<2xf32>", NULL},
      {"check.expect_almost_eq_const %a, dense<[1.00001, 0x7FC00000]> : tensor<2xf32>", NULL},
      {"check.expect_almost_eq_const %a, dense<[1.001, 0x7FC00000]> : tensor<2xf32>, tolerance = 0.01", NULL},
      {"check.expect_almost_eq_const %a, dense<[1.001, 0x7FC00000]> : tensor<2xf32>", "element 0 is 1.0"},
      {"check.expect_close %a, %b, max_ulp_difference = 3 : tensor<2xf32>, tensor<2xf32>", NULL},
      {"check.expect_close %a, %b, max_ulp_difference = 2 : tensor<2xf32>, tensor<2xf32>",
       "element 0 is 1.0, and should be 0.9999998"},
      {"stablehlo.custom_call @check.expect_close(%a, %b) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()", NULL},
      {"stablehlo.custom_call @check.expect_eq(%a, %b) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()",
       "element 0"}};
  for (size_t i = 0; i < AX_COUNT(checks); i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "func.func @main() {\n  %%a = stablehlo.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>\n"
             "  %%b = stablehlo.constant dense<[0x3F7FFFFD, 0x7FC00001]> : tensor<2xf32>\n  %s\n  return\n}\n",
             checks[i][0]);
    ax_program *program = import(text);
    if (checks[i][1] == NULL)
      TEST_OK(test_try(program, NULL, NULL));
    else
      TEST_FAILS(test_try(program, NULL, NULL), AX_INVALID_ARGUMENT, checks[i][1]);
    ax_program_release(program);
  }
}

/* --- Results that were once wrong --- */

#define SORT(directions, first, second, types)                                                                 \
  "  %0:2 = \"stablehlo.sort\"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({\n  ^bb0(%x: tensor<" first \
  ">, %y: tensor<" first ">, %u: tensor<" second ">, %v: tensor<" second ">):\n" directions "  }) : " types " -> " types "\n"
static const char *const results[] = {
    /* a comparator's arguments come in pairs, operand by operand */
    "  %a = stablehlo.constant dense<[2.0, 1.0, 3.0]> : tensor<3xf32>\n  %b = stablehlo.constant dense<[10, 30, 20]> : tensor<3xi32>\n"
    SORT("    %1 = stablehlo.compare GT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n",
         "f32", "i32", "(tensor<3xf32>, tensor<3xi32>)")
    "  check.expect_eq_const %0#0, dense<[3.0, 2.0, 1.0]> : tensor<3xf32>\n"
    "  check.expect_eq_const %0#1, dense<[20, 10, 30]> : tensor<3xi32>\n",
    /* a bound that is NaN is the result */
    "  %a = stablehlo.constant dense<[-1.0, 2.0]> : tensor<2xf32>\n  %b = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "  %c = stablehlo.constant dense<1.0> : tensor<f32>\n"
    "  %0 = stablehlo.clamp %b, %a, %c : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\n"
    "  check.expect_eq_const %0, dense<0x7FC00000> : tensor<2xf32>\n",
    /* padding is never selected */
    "  %a = stablehlo.constant dense<[0xFF800000, 5.0]> : tensor<2xf32>\n  %b = stablehlo.constant dense<[10.0, 20.0]> : tensor<2xf32>\n"
    "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %0 = \"stablehlo.select_and_scatter\"(%a, %b, %c) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>, "
    "padding = dense<1> : tensor<1x2xi64>}> ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "    %1 = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n"
    "  }, {\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %1 = stablehlo.add %x, %y : tensor<f32>\n    stablehlo.return %1 : tensor<f32>\n"
    "  }) : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\n"
    "  check.expect_eq_const %0, dense<[10.0, 20.0]> : tensor<2xf32>\n",
    /* the upper factor of real matrices */
    "  %a = stablehlo.constant dense<[[4.0, 2.0], [9.0, 5.0]]> : tensor<2x2xf32>\n"
    "  %0 = stablehlo.cholesky %a, lower = false : tensor<2x2xf32>\n"
    "  %1 = stablehlo.slice %0 [0:2, 1:2] : (tensor<2x2xf32>) -> tensor<2x1xf32>\n"
    "  check.expect_eq_const %1, dense<[[1.0], [2.0]]> : tensor<2x1xf32>\n",
    /* truth values that are added */
    "  %a = stablehlo.constant dense<[false, false, true]> : tensor<3xi1>\n  %b = stablehlo.constant dense<[[1], [1]]> : tensor<2x1xi32>\n"
    "  %c = stablehlo.constant dense<true> : tensor<2xi1>\n"
    "  %0 = \"stablehlo.scatter\"(%a, %b, %c) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n  ^bb0(%x: tensor<i1>, %y: tensor<i1>):\n"
    "    %1 = stablehlo.add %x, %y : tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n"
    "  }) : (tensor<3xi1>, tensor<2x1xi32>, tensor<2xi1>) -> tensor<3xi1>\n"
    "  check.expect_eq_const %0, dense<[false, true, true]> : tensor<3xi1>\n",
    /* the bits of numbers, the lowest first, as truth values, and back; of complex numbers those of their parts */
    "  %a = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf16>\n"
    "  %0 = stablehlo.bitcast_convert %a : (tensor<2xf16>) -> tensor<2x16xi1>\n"
    "  %1 = stablehlo.slice %0 [1:2, 12:16] : (tensor<2x16xi1>) -> tensor<1x4xi1>\n"
    "  check.expect_eq_const %1, dense<[[false, false, true, true]]> : tensor<1x4xi1>\n"
    "  %2 = stablehlo.bitcast_convert %0 : (tensor<2x16xi1>) -> tensor<2xf16>\n  check.expect_eq %2, %a : tensor<2xf16>\n",
    "  %a = stablehlo.constant dense<(0x3FF000003F800000, 0x4000000000000000)> : tensor<complex<f64>>\n"
    "  %0 = stablehlo.bitcast_convert %a : (tensor<complex<f64>>) -> tensor<2xcomplex<f32>>\n"
    "  check.expect_eq_const %0, dense<[(1.0, 1.875), (0.0, 2.0)]> : tensor<2xcomplex<f32>>\n"
    "  %1 = stablehlo.bitcast_convert %0 : (tensor<2xcomplex<f32>>) -> tensor<complex<f64>>\n  check.expect_eq %1, %a : tensor<complex<f64>>\n",
    /* dimensions that are broadcast in another order */
    "  %a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>\n"
    "  %0 = stablehlo.broadcast_in_dim %a, dims = [2, 0] : (tensor<2x3xi32>) -> tensor<3x1x2xi32>\n"
    "  check.expect_eq_const %0, dense<[[[1, 4]], [[2, 5]], [[3, 6]]]> : tensor<3x1x2xi32>\n",
    /* the upper halves of products */
    "  %a = stablehlo.constant dense<[-1, 4611686018427387905, -9223372036854775808]> : tensor<3xi64>\n"
    "  %b = stablehlo.constant dense<[-1, -7, -9223372036854775808]> : tensor<3xi64>\n"
    "  %0 = \"chlo.mulhi\"(%a, %b) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>\n"
    "  check.expect_eq_const %0, dense<[0, -2, 4611686018427387904]> : tensor<3xi64>\n",
    "  %a = stablehlo.constant dense<[255, 16]> : tensor<2xui8>\n  %0 = \"chlo.mulhi\"(%a, %a) : (tensor<2xui8>, tensor<2xui8>) -> "
    "tensor<2xui8>\n  check.expect_eq_const %0, dense<[254, 1]> : tensor<2xui8>\n",
    /* integers to powers */
    "  %a = stablehlo.constant dense<[-3, 2, -1, 1, 5]> : tensor<5xi32>\n  %b = stablehlo.constant dense<[3, 10, -3, -7, -1]> : tensor<5xi32>\n"
    "  %0 = stablehlo.power %a, %b : tensor<5xi32>\n  check.expect_eq_const %0, dense<[-27, 1024, -1, 1, 0]> : tensor<5xi32>\n",
};

static void test_results(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(results); i++) {
    ax_text text = {0};
    ax_text_add(&text, "func.func @main() {\n%s  return\n}\n", results[i]);
    ax_program *program = import(text.data);
    if (test_try(program, NULL, NULL) != AX_OK) fail_msg("%s\n%s", ax_message(), text.data);
    ax_program_release(program);
    ax_text_deinit(&text);
  }
}

/* --- What is refused --- */

#define F(line, types) \
  "func.func @main(%a: tensor<4xf32>, %i: tensor<i32>) -> " types " {\n  " line "\n  return %0 : " types "\n}\n"
static const struct {
  const char *text;
  ax_status status;
  const char *message;
} refused[] = {
    {F("%0 = stablehlo.add %a, %i : tensor<4xf32>", "tensor<4xf32>"), AX_INVALID_ARGUMENT, "m.mlir:2: stablehlo.add: "},
    {F("%0 = stablehlo.sine %a : (tensor<4xf32>) -> tensor<5xf32>", "tensor<5xf32>"), AX_INVALID_ARGUMENT,
     "all operands and results must have the same shape, and there are tensor<4xf32> and tensor<5xf32>"},
    {F("%0 = stablehlo.sine %a : (tensor<4xf32>) -> tensor<?xf32, #stablehlo.bounds<9>>", "tensor<?xf32, #stablehlo.bounds<9>>"),
     AX_ABSENT, "extents of which only a bound is known are not supported"},
    {"func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.sine %a : tensor<f32>\n}\n", AX_INVALID_ARGUMENT,
     "m.mlir:1: func.func: a function must be one block that ends in a return"},
    {"func.func @main(%a: tensor<f32>) {\n  func.call @f(%a) : (tensor<f32>) -> ()\n  return\n}\nfunc.func private @f(%a: tensor<f32>) {\n}\n",
     AX_INVALID_ARGUMENT, "m.mlir:2: func.call: m.mlir:5: func.func: a function must be one block that ends in a return"},
    {"func.func @main() {\n  return\n^bb1:\n  return\n}\n", AX_INVALID_ARGUMENT, "m.mlir:1: func.func: a function must have one block"},
    {"func.func @main(%a: tensor<f32>, %b: memref<4xf32>) {\n  return\n}\n", AX_ABSENT,
     "m.mlir:1: func.func: argument 1, %b: values of type memref<4xf32> are not supported"},
    {"func.func @main(%a: tensor<4xsi8>) {\n  return\n}\n", AX_ABSENT,
     "m.mlir:1: func.func: argument 0, %a: tensor<4xsi8>: elements of this type are not supported"},
    {"func.func @main(%a: tensor<*xf32>) {\n  return\n}\n", AX_ABSENT,
     "m.mlir:1: func.func: argument 0, %a: tensor<*xf32>: an argument without a rank is not supported"},
    {F("%0 = stablehlo.sin %a : tensor<4xf32>", "tensor<4xf32>"), AX_ABSENT,
     "m.mlir:2: stablehlo.sin: there is no operation of this name; the nearest: \"stablehlo.sign\", \"stablehlo.sine\""},
    {"HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\n", AX_PARSE_ERROR, "m.mlir:1:1: this is HLO text; StableHLO is read"},
    {F("%0 = \"x.y\"(%a) : (tensor<4xf32>) -> tensor<4xf32> loc(\"train.py\":3:1)", "tensor<4xf32>"), AX_ABSENT,
     "train.py:3: x.y: this operation is not read yet"},
    {F("%0 = stablehlo.transpose %a, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>", "tensor<4xf32>"), AX_INVALID_ARGUMENT,
     "m.mlir:2: "},
    {F("%0 = \"stablehlo.transpose\"(%a) : (tensor<4xf32>) -> tensor<4xf32>", "tensor<4xf32>"), AX_INVALID_ARGUMENT,
     "the attribute permutation is missing"},
    {F("%0 = call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>", "tensor<4xf32>"), AX_INVALID_ARGUMENT, "there is no function @g"},
    {F("%0 = call @main(%a, %i) : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>", "tensor<4xf32>"), AX_INVALID_ARGUMENT,
     "@main calls itself"},
    {F("%0 = stablehlo.custom_call @t(%a) : (tensor<4xf32>) -> tensor<4xf32>", "tensor<4xf32>"), AX_ABSENT,
     "the target @t is not known"},
    {F("%0 = \"stablehlo.clamp\"(%a, %a, %a) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()", "tensor<4xf32>"),
     AX_PARSE_ERROR, "stablehlo.clamp has 0 results, and names for 1"},
    {"func.func @main() {\n  \"stablehlo.partition_id\"() : () -> ()\n  \"stablehlo.rng_bit_generator\"() : () -> ()\n  "
     "return\n}\n",
     AX_INVALID_ARGUMENT, "m.mlir:2: stablehlo.partition_id: "},
    {"func.func @main() {\n  \"stablehlo.fft\"() {fft_length = array<i64: 4>, fft_type = #stablehlo<fft_type FFT>} : () -> ()\n  "
     "return\n}\n",
     AX_INVALID_ARGUMENT, "m.mlir:2: stablehlo.fft: "},
    {F("%0 = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = array<i64: 1>, slice_sizes = array<i64: 1>}> : (tensor<4xf32>, "
       "tensor<i32>) -> "
       "tensor<f32>",
       "tensor<f32>"),
     AX_INVALID_ARGUMENT, "the attribute dimension_numbers must be a #stablehlo.gather<..>"},
    {F("%0 = \"stablehlo.select_and_scatter\"(%a, %a, %a) ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<i1>):\n    stablehlo.return "
       "%z : tensor<i1>\n  }, {\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %1 = stablehlo.add %x, %y : tensor<f32>\n    stablehlo.return %1 : "
       "tensor<f32>\n  }) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
       "tensor<4xf32>"),
     AX_INVALID_ARGUMENT, "region 0 must take 2 values, and takes 3"},
    {"func.func @main(%a: tensor<2xf32>) -> tensor<3xf32> {\n  return %a : tensor<2xf32>\n}\n", AX_INVALID_ARGUMENT,
     "m.mlir:2: func.return: the function returns other values than those that it says"},
    {"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n  return %a : tensor<2xf32>\n}\n",
     AX_INVALID_ARGUMENT, "operations stand behind it"},
    {"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = \"stablehlo.while\"(%a) ({\n  ^bb0(%x: tensor<2xi32>):\n"
     "    %c = stablehlo.constant dense<false> : tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  }, {\n  ^bb0(%x: "
     "tensor<4xf32>):\n"
     "    stablehlo.return %x : tensor<4xf32>\n  }) : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n",
     AX_INVALID_ARGUMENT, "region 0: argument 0 is tensor<2xi32>, and operand 0 is tensor<4xf32>"},
    {"module attributes {mhlo.num_partitions = 0 : i32} {\n  func.func @main() {\n    return\n  }\n}\n", AX_INVALID_ARGUMENT,
     "m.mlir: mhlo.num_partitions is 0"},
    {"module {\n  func.func @f() {\n    return\n  }\n  func.func @g() {\n    return\n  }\n}\n", AX_INVALID_ARGUMENT,
     "the module has 2 functions, and none is @main"},
    {"module {\n  func.func @f() {\n    return\n  }\n  func.func @f() {\n    return\n  }\n}\n", AX_INVALID_ARGUMENT,
     "there are two functions @f"},
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

/* --- What inputs and results are called (ax_keep_names) --- */

#define NAMED "#loc1 = loc(\"params['w']\")\nmodule {\n  func.func public @main(%arg0: tensor<4xf32> loc(#loc1), %b: tensor<f32> loc(\"f.py\":3:0), " \
              "%arg2: tensor<2xi32> loc(\"n\"(#loc2))) -> (tensor<4xf32> {jax.result_info = \"result['grads'][0]\"}, tensor<f32> " \
              "{jax.result_info = \"\"}, tensor<2xi32>) {\n    return %arg0, %b, %arg2 : tensor<4xf32>, tensor<f32>, tensor<2xi32>\n  }\n}\n" \
              "#loc2 = loc(unknown)\n"

static void test_names(void **state) {
  (void)state;
  static const char *const in[] = {"params['w']", "b", "n"}, *const also[] = {"arg0", "", "arg2"}, *const out[] = {"result['grads'][0]", "", ""};
  ax_program_names names;
  ax_program *program;
  TEST_OK(ax_program_from_stablehlo_named(NAMED, strlen(NAMED), "m.mlir", NULL, &names, &program));
  for (size_t i = 0; i < AX_COUNT(in); i++) {
    assert_string_equal(names.in[i], in[i]);
    assert_string_equal(names.in_also[i], also[i]);
    assert_string_equal(names.out[i], out[i]);
  }
  ax_program_names_deinit(&names);
  ax_program_release(program);
}

static ax_status import_named(void *context) {
  ax_program_names names;
  ax_program *program;
  (void)context;
  const ax_status status = ax_program_from_stablehlo_named(NAMED, strlen(NAMED), "m.mlir", NULL, &names, &program);
  if (status != AX_OK) return status;
  ax_program_names_deinit(&names);
  ax_program_release(program);
  return AX_OK;
}

/* The reason is not hidden behind the lines of all calls. */
static void test_calls_too_deep(void **state) {
  (void)state;
  ax_text text = {0};
  ax_program *program;
  for (int i = 0; i < 300; i++)
    ax_text_add(&text, "func.func @f%d(%%a: tensor<f32>) -> tensor<f32> {\n  %%0 = call @f%d(%%a) : (tensor<f32>) -> tensor<f32>\n"
                       "  return %%0 : tensor<f32>\n}\n", i, i + 1);
  ax_text_add(&text, "func.func @main(%%a: tensor<f32>) -> tensor<f32> {\n  %%0 = call @f0(%%a) : (tensor<f32>) -> tensor<f32>\n"
                     "  return %%0 : tensor<f32>\n}\nfunc.func @f300(%%a: tensor<f32>) -> tensor<f32> {\n  return %%a : tensor<f32>\n}\n");
  assert_false(text.failed);
  TEST_FAILS(ax_program_from_stablehlo(text.data, text.length, "m.mlir", &program), AX_INVALID_ARGUMENT,
             ": func.call: programs more than 256 deep inside one another");
  uint32_t calls = 0;
  for (const char *at = ax_message(); (at = strstr(at, ": func.call: ")) != NULL; at++) calls++;
  assert_int_equal(calls, 3);
  ax_text_deinit(&text);
}

/* --- Memory and growth --- */

static ax_status import_first(void *context) {
  (void)context;
  for (size_t i = 0; i < AX_COUNT(programs); i++) {
    ax_program *program;
    const ax_status status = ax_program_from_stablehlo(programs[i][0], strlen(programs[i][0]), "m.mlir", &program);
    if (status != AX_OK) return status;
    ax_program_release(program);
  }
  return AX_OK;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(import_first, NULL) > 50);
  assert_true(test_each_allocation(import_named, NULL) > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs), cmocka_unit_test(test_loops),
                                     cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_checks),   cmocka_unit_test(test_results),
                                     cmocka_unit_test(test_refused),  cmocka_unit_test(test_calls_too_deep),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
