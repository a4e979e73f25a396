/* Modules in which Shardy's operations are custom calls of XLA. They say themselves what must come out; that JAX's modules in this form
   run to XLA's values is the oracle's to say (tests/oracle/import_devices.py). */
#include <string.h>

#include "axle/stablehlo.h"
#include "bridge/shardy_calls.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"

#define QUOTED(name) "\\22" name "\\22"
#define MODULE                                                                                                   \
  "module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = \"{m = #sdy.mesh<[" QUOTED("a") "=2, " QUOTED( \
      "b") "=3]>, n = #sdy.mesh<[" QUOTED("c") "=6]>}\"}} {\n"
#define MAIN(body) MODULE "  func.func @main() {\n    %x = stablehlo.iota dim = 0 : tensor<6xi64>\n" body "    return\n  }\n"
#define PER_VALUE(layouts) "\"#sdy.sharding_per_value<[" layouts "]>\""
#define AXES(axes) "xla.sdy.manual_axes = \"#sdy<manual_axes{" axes "}>\""
#define IN(layouts, axes) "{mhlo.frontend_attributes = {xla.sdy.in_shardings = " PER_VALUE(layouts) ", " AXES(axes) "}}"
#define OUT(layouts, axes) "{mhlo.frontend_attributes = {xla.sdy.out_shardings = " PER_VALUE(layouts) ", " AXES(axes) "}}"
#define LAYOUT(text) "{mhlo.frontend_attributes = {xla.sdy.sharding = " PER_VALUE(text) "}}"
#define LOCAL "stablehlo.custom_call @xla.sdy.GlobalToLocalShape"
#define GLOBAL "stablehlo.custom_call @xla.sdy.LocalToGlobalShape"
#define BODY "xla.sdy.manual_computation_body"
#define SUM_OVER(groups, n)                                                                                                            \
  "    %0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<" groups ">, channel_handle = #stablehlo.channel_handle<handle = 1, " \
  "type = 0>, use_global_device_ids}> ({\n    ^bb0(%p: tensor<i64>, %q: tensor<i64>):\n      %s = stablehlo.add %p, %q : tensor<i64>\n" \
  "      stablehlo.return %s : tensor<i64>\n    }) : (tensor<" n "xi64>) -> tensor<" n "xi64>\n"
#define BY_A "[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64"
#define ALL_AXES QUOTED("a") ", " QUOTED("b")

static const char *const modules[] = {
    /* a sum over one axis; layouts of results, of values in between, and of mhlo.sharding, which says less; a group, a barrier */
    MAIN("    %1 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%x) {has_side_effect = true, mhlo.frontend_attributes = "
         "{xla.sdy.allowed_direction = \"1 : i32\"}} : (tensor<6xi64>) -> tensor<6xi64>\n"
         "    %2 = stablehlo.custom_call @Sharding(%1) {mhlo.frontend_attributes = {xla.sdy.sharding = " PER_VALUE("<@m, [{" QUOTED("a") "}]>") "}, "
         "mhlo.sharding = \"{devices=[2,3]<=[6] last_tile_dim_replicate}\"} : (tensor<6xi64>) -> tensor<6xi64>\n"
         "    stablehlo.custom_call @xla.sdy.ShardingGroup(%2) {has_side_effect = true, mhlo.frontend_attributes = "
         "{xla.sdy.sharding_group_id = \"3 : i64\"}} : (tensor<6xi64>) -> ()\n"
         "    %3 = " LOCAL "(%2) " IN("<@m, [{" ALL_AXES "}]>", ALL_AXES) " : (tensor<6xi64>) -> tensor<1xi64>\n"
         "    %4 = call @" BODY ".7(%3) : (tensor<1xi64>) -> tensor<1xi64>\n"
         "    %5 = " GLOBAL "(%4) " OUT("<@m, [{" QUOTED("b") "}]>", ALL_AXES) " : (tensor<1xi64>) -> tensor<3xi64>\n"
         "    %6 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%5) " LAYOUT("<@m, [{" QUOTED("b") ", ?}p1]>") " : (tensor<3xi64>) -> tensor<3xi64>\n"
         "    check.expect_eq_const %6, dense<[3, 5, 7]> : tensor<3xi64>\n")
    "  func.func @" BODY ".7(%a: tensor<1xi64>) -> tensor<1xi64> {\n" SUM_OVER(BY_A, "1") "    return %0 : tensor<1xi64>\n  }\n}\n",
    /* a body that is called twice, with an axis left free; an array without elements, in whose place XLA puts a constant; tuples */
    MAIN("    %e = stablehlo.constant dense<> : tensor<0xi64>\n"
         "    %1 = " LOCAL "(%x, %e) " IN("<@m, [{" QUOTED("a") "}]>, <@m, [{}]>", QUOTED("a")) " : (tensor<6xi64>, tensor<0xi64>) -> tuple<tensor<3xi64>, tensor<0xi64>>\n"
         "    %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<3xi64>, tensor<0xi64>>) -> tensor<3xi64>\n"
         "    %3 = call @pre." BODY "(%2, %e) : (tensor<3xi64>, tensor<0xi64>) -> tensor<3xi64>\n"
         "    %4 = " GLOBAL "(%3) " OUT("<@m, [{}]>", QUOTED("a")) " : (tensor<3xi64>) -> tensor<3xi64>\n"
         "    %y = stablehlo.negate %x : tensor<6xi64>\n"
         "    %5:2 = " LOCAL "(%y, %e) " IN("<@m, [{" QUOTED("a") "}]>, <@m, [{}]>", QUOTED("a")) " : (tensor<6xi64>, tensor<0xi64>) -> (tensor<3xi64>, tensor<0xi64>)\n"
         "    %6 = call @pre." BODY "(%5#0, %5#1) : (tensor<3xi64>, tensor<0xi64>) -> tensor<3xi64>\n"
         "    %7 = " GLOBAL "(%6) " OUT("<@m, [{}]>", QUOTED("a")) " : (tensor<3xi64>) -> tensor<3xi64>\n"
         "    check.expect_eq_const %4, dense<[3, 5, 7]> : tensor<3xi64>\n    check.expect_eq_const %7, dense<[-3, -5, -7]> : tensor<3xi64>\n")
    "  func.func @pre." BODY "(%a: tensor<3xi64>, %e: tensor<0xi64>) -> tensor<3xi64> {\n" SUM_OVER(BY_A, "3") "    return %0 : tensor<3xi64>\n  }\n}\n",
    /* one in another; one without operands; one that nobody uses; attributes at the call of the body, as older versions write them */
    MAIN("    %1 = " LOCAL "(%x) " IN("<@m, [{" QUOTED("a") "}]>", QUOTED("a")) " : (tensor<6xi64>) -> tensor<3xi64>\n"
         "    %2 = call @" BODY "(%1) : (tensor<3xi64>) -> tensor<3xi64>\n"
         "    %3 = " GLOBAL "(%2) " OUT("<@m, [{" QUOTED("a") "}]>", QUOTED("a")) " : (tensor<3xi64>) -> tensor<6xi64>\n"
         "    %4 = call @" BODY "_1() : () -> tensor<2xi64>\n"
         "    %5 = " GLOBAL "(%4) " OUT("<@n, [{" QUOTED("c") "}]>", QUOTED("c")) " : (tensor<2xi64>) -> tensor<12xi64>\n"
         "    %6 = call @" BODY "_1() : () -> tensor<2xi64>\n"
         "    %7 = " LOCAL "(%x) : (tensor<6xi64>) -> tensor<2xi64>\n"
         "    %8 = call @" BODY "_2(%7) {mhlo.frontend_attributes = {xla.sdy.in_shardings = " PER_VALUE("<@m, [{" QUOTED("b") "}]>") ", xla.sdy.out_shardings = "
         PER_VALUE("<@m, [{" QUOTED("b") "}]>") ", " AXES(QUOTED("b")) "}} : (tensor<2xi64>) -> tensor<2xi64>\n"
         "    %9 = " GLOBAL "(%8) : (tensor<2xi64>) -> tensor<6xi64>\n"
         "    check.expect_eq_const %3, dense<[0, 2, 4, 6, 8, 10]> : tensor<6xi64>\n"
         "    check.expect_eq_const %5, dense<[8, 9, 8, 9, 8, 9, 8, 9, 8, 9, 8, 9]> : tensor<12xi64>\n"
         "    check.expect_eq_const %9, dense<[0, 2, 4, 6, 8, 10]> : tensor<6xi64>\n")
    "  func.func @" BODY "(%a: tensor<3xi64>) -> tensor<3xi64> {\n"
    "    %1 = " LOCAL "(%a) " IN("<@m, [{" QUOTED("b") "}]>", QUOTED("b")) " : (tensor<3xi64>) -> tensor<1xi64>\n"
    "    %2 = call @" BODY "_3(%1) : (tensor<1xi64>) -> tensor<1xi64>\n"
    "    %3 = " GLOBAL "(%2) " OUT("<@m, [{" QUOTED("b") "}]>", QUOTED("b")) " : (tensor<1xi64>) -> tensor<3xi64>\n    return %3 : tensor<3xi64>\n  }\n"
    "  func.func @" BODY "_1() -> tensor<2xi64> {\n    %0 = stablehlo.constant dense<[8, 9]> : tensor<2xi64>\n    return %0 : tensor<2xi64>\n  }\n"
    "  func.func @" BODY "_2(%a: tensor<2xi64>) -> tensor<2xi64> {\n    %0 = stablehlo.add %a, %a : tensor<2xi64>\n    return %0 : tensor<2xi64>\n  }\n"
    "  func.func @" BODY "_3(%a: tensor<1xi64>) -> tensor<1xi64> {\n    %0 = stablehlo.add %a, %a : tensor<1xi64>\n    return %0 : tensor<1xi64>\n  }\n}\n",
    /* layouts over parts of an axis, as XLA makes of two meshes: by both halves, of which the second comes first */
    MAIN("    %1 = " LOCAL "(%x) " IN("<@n, [{" QUOTED("c") ":(2)3, " QUOTED("c") ":(1)2}]>", QUOTED("c")) " : (tensor<6xi64>) -> tensor<1xi64>\n"
         "    %2 = call @" BODY "(%1) : (tensor<1xi64>) -> tensor<1xi64>\n"
         "    %3 = " GLOBAL "(%2) " OUT("<@n, [{" QUOTED("c") "}]>", QUOTED("c")) " : (tensor<1xi64>) -> tensor<6xi64>\n"
         "    check.expect_eq_const %3, dense<[0, 2, 4, 1, 3, 5]> : tensor<6xi64>\n")
    "  func.func @" BODY "(%a: tensor<1xi64>) -> tensor<1xi64> {\n    return %a : tensor<1xi64>\n  }\n}\n",
};

static ax_status read_some(void *context) {
  const char *text = context;
  ax_program *program;
  const ax_status status = ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program);
  ax_program_release(program);
  return status;
}

static void test_modules(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(modules); i++) {
    ax_program *program;
    if (ax_program_from_stablehlo(modules[i], strlen(modules[i]), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), modules[i]);
    if (test_try(program, NULL, NULL) != AX_OK) fail_msg("%s\n%s", ax_message(), modules[i]);
    ax_program_release(program);
  }
}

#define CALL(operands, types, result) "    %2 = call @" BODY "(" operands ") : (" types ") -> " result "\n"
#define SAME "  func.func @" BODY "(%a: tensor<3xi64>) -> tensor<3xi64> {\n    return %a : tensor<3xi64>\n  }\n}\n"
#define FIRST "    %1 = " LOCAL "(%x) " IN("<@m, [{" QUOTED("a") "}]>", QUOTED("a")) " : (tensor<6xi64>) -> tensor<3xi64>\n"
#define LAST "    %3 = " GLOBAL "(%2) " OUT("<@m, [{" QUOTED("a") "}]>", QUOTED("a")) " : (tensor<3xi64>) -> tensor<6xi64>\n"

static const struct {
  const char *text;
  ax_status status;
  const char *message;
} refused[] = {
    {MAIN(FIRST "    %2 = stablehlo.negate %1 : tensor<3xi64>\n") SAME, AX_INVALID_ARGUMENT,
     "stablehlo.negate: it takes a block of a manual computation"},
    {MAIN(FIRST CALL("%1", "tensor<3xi64>", "tensor<3xi64>") "    %3 = stablehlo.negate %2 : tensor<3xi64>\n") SAME, AX_INVALID_ARGUMENT,
     "stablehlo.negate: it takes a block of a manual computation"},
    {MAIN("    %1 = stablehlo.constant dense<1> : tensor<3xi64>\n" CALL("%1", "tensor<3xi64>", "tensor<3xi64>") LAST) SAME, AX_INVALID_ARGUMENT,
     "takes what one call of @xla.sdy.GlobalToLocalShape gives"},
    {MAIN("    %1:2 = " LOCAL "(%x, %x) " IN("<@m, [{" QUOTED("a") "}]>", QUOTED("a")) " : (tensor<6xi64>, tensor<6xi64>) -> (tensor<3xi64>, tensor<3xi64>)\n"
          CALL("%1#0", "tensor<3xi64>", "tensor<3xi64>") LAST) SAME, AX_INVALID_ARGUMENT, "takes what one call of @xla.sdy.GlobalToLocalShape gives"},
    {MAIN(FIRST CALL("%1", "tensor<3xi64>", "tensor<3xi64>")
          "    %3:2 = " GLOBAL "(%2, %2) " OUT("<@m, [{" QUOTED("a") "}]>", QUOTED("a")) " : (tensor<3xi64>, tensor<3xi64>) -> (tensor<6xi64>, tensor<6xi64>)\n") SAME,
     AX_INVALID_ARGUMENT, "@xla.sdy.LocalToGlobalShape takes what one body of a manual computation gives"},
    {MAIN(FIRST CALL("%1", "tensor<3xi64>", "tensor<3xi64>") LAST)
     "  func.func @" BODY "(%a: tensor<3xi64>) -> tensor<3xi64> {\n    %2 = " LOCAL "(%a) " IN("<@m, [{" QUOTED("b") "}]>", QUOTED("b")) " : (tensor<3xi64>) -> tensor<3xi64>\n"
     "    %3 = call @" BODY "(%2) : (tensor<3xi64>) -> tensor<3xi64>\n    %4 = " GLOBAL "(%3) " OUT("<@m, [{" QUOTED("b") "}]>", QUOTED("b")) " : (tensor<3xi64>) -> tensor<3xi64>\n"
     "    return %4 : tensor<3xi64>\n  }\n}\n", AX_INVALID_ARGUMENT, "calls itself"},
    {MAIN(FIRST CALL("%1", "tensor<3xi64>", "tensor<3xi64>") LAST) "}\n", AX_INVALID_ARGUMENT, "there is no function @" BODY},
    {MAIN(FIRST CALL("%1", "tensor<3xi64>", "tensor<3xi64>") "    %3 = " GLOBAL "(%2) " OUT("<@q, [{" QUOTED("a") "}]>", QUOTED("a")) " : (tensor<3xi64>) -> tensor<6xi64>\n") SAME,
     AX_INVALID_ARGUMENT, "there is no mesh @q"},
    {MAIN(FIRST CALL("%1", "tensor<3xi64>", "tensor<3xi64>") "    %3 = " GLOBAL "(%2) " OUT("<@n, [{}]>", QUOTED("a")) " : (tensor<3xi64>) -> tensor<3xi64>\n") SAME,
     AX_ABSENT, "its layouts are over different meshes"},
};

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(refused); i++) {
    ax_program *program;
    TEST_FAILS(ax_program_from_stablehlo(refused[i].text, strlen(refused[i].text), "m.mlir", &program), refused[i].status, refused[i].message);
    assert_null(program);
  }
}

/* Any text is read or refused: with characters changed, cut off anywhere, in little memory. */
static void test_any_text(void **state) {
  static const char signs[] = "0129<>[]{}\"#@,:%x-";
  test_random random = {.state = 5};
  (void)state;
  for (int round = 0; round < 200; round++) {
    const char *text = modules[round % AX_COUNT(modules)];
    const size_t length = strlen(text);
    char *copy = ax_alloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, text, length + 1);
    for (int64_t k = test_random_below(&random, 3); k >= 0; k--)
      copy[test_random_below(&random, (int64_t)length)] = signs[test_random_below(&random, sizeof signs - 1)];
    (void)read_some(copy);
    ax_free(copy);
  }
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(read_some, (void *)modules[0]) > 50);
  assert_true(test_each_allocation(read_some, (void *)modules[3]) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_modules), cmocka_unit_test(test_refused), cmocka_unit_test(test_any_text),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
