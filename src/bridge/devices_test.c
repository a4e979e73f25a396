/* Modules for several devices. They say themselves what must come out (check.expect_eq_const); values are worked out by hand. That
   JAX's modules run to XLA's values is the oracle's to say (tests/oracle/import_devices.py). */
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "bridge/sections.h"
#include "hlo/read_text.h"
#include "prim/hlo_groups.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"

/* --- Groups: @f on a grid of 2 replicas by 3 partitions; device k = 3 replica + partition has 10^k --- */

#define SUM                                                                                                                \
  "({\n  ^bb0(%x: tensor<i64>, %y: tensor<i64>):\n    %s = stablehlo.add %x, %y : tensor<i64>\n    stablehlo.return %s : " \
  "tensor<i64>\n  })"
#define GRID(function, type, results, checks)                                                                                   \
  "module {\n  func.func @f(%a: tensor<1xi64>) -> " type " {\n" function "    return %0 : " type                                \
  "\n  }\n"                                                                                                                     \
  "  func.func @main() {\n    %a = stablehlo.constant dense<1> : tensor<1xi64>\n    %b = stablehlo.constant dense<10> : "       \
  "tensor<1xi64>\n    %c = stablehlo.constant dense<100> : tensor<1xi64>\n    %d = stablehlo.constant dense<1000> : "           \
  "tensor<1xi64>\n    %e = stablehlo.constant dense<10000> : tensor<1xi64>\n    %g = stablehlo.constant dense<100000> : "       \
  "tensor<1xi64>\n    %r:6 = \"interpreter.run_parallel\"(%a, %b, %c, %d, %e, %g) {programs = [[@f, @f, @f], [@f, @f, @f]]} : " \
  "(tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> (" results ")\n" checks        \
  "    return\n  }\n}\n"
#define SIX(type) type ", " type ", " type ", " type ", " type ", " type
#define IS(k, value) "    check.expect_eq_const %r#" #k ", dense<" value "> : tensor<1xi64>\n"
#define SIX_ARE(a, b, c, d, e, g) IS(0, a) IS(1, b) IS(2, c) IS(3, d) IS(4, e) IS(5, g)
#define REDUCE(attributes, ...)                                                                                                  \
  GRID("    %0 = \"stablehlo.all_reduce\"(%a) <{" attributes "}> " SUM " : (tensor<1xi64>) -> tensor<1xi64>\n", "tensor<1xi64>", \
       SIX("tensor<1xi64>"), SIX_ARE(__VA_ARGS__))
#define CHANNEL "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
#define GLOBAL CHANNEL ", use_global_device_ids"
#define MOVE(op, attributes, ...)                                                                                                \
  GRID("    %0 = \"" op "\"(%a) <{" attributes "}> : (tensor<1xi64>) -> tensor<1xi64>\n", "tensor<1xi64>", SIX("tensor<1xi64>"), \
       SIX_ARE(__VA_ARGS__))

static const char *const grids[] = {
    /* of replicas, in each partition */
    REDUCE("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>", "1001", "10010", "100100", "1001", "10010", "100100"),
    REDUCE("replica_groups = dense<> : tensor<0x0xi64>", "1001", "10010", "100100", "1001", "10010", "100100"),
    REDUCE("replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>", "1", "10", "100", "1000", "10000", "100000"),
    /* of replicas with all their partitions */
    REDUCE("replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, " CHANNEL, "111111", "111111", "111111", "111111", "111111",
           "111111"),
    REDUCE("replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, " CHANNEL, "111", "111", "111", "111000", "111000", "111000"),
    /* of devices; uneven ones; a device that is in none */
    REDUCE("replica_groups = dense<[[0, 4], [5, 1], [3, 2]]> : tensor<3x2xi64>, " GLOBAL, "10001", "100010", "1100", "1100",
           "10001", "100010"),
    REDUCE("replica_groups = dense<[[0, 1, 2, 5], [4, 3, -1, -1]]> : tensor<2x4xi64>, " GLOBAL, "100111", "100111", "100111",
           "11000", "11000", "100111"),
    REDUCE("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, " GLOBAL, "11", "11", "100", "1000", "10000", "100000"),
    MOVE("stablehlo.collective_permute", "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>", "0", "0", "0", "1", "10",
         "100"),
    MOVE("stablehlo.collective_permute", "source_target_pairs = dense<[[0, 2], [2, 1]]> : tensor<2x2xi64>, " CHANNEL, "0", "100",
         "1", "0", "100000", "1000"),
    MOVE("stablehlo.collective_permute", "source_target_pairs = dense<> : tensor<0x2xi64>", "0", "0", "0", "0", "0", "0"),
    MOVE("stablehlo.collective_broadcast", "replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>", "1000", "10000", "100000", "1000",
         "10000", "100000"),
    MOVE("stablehlo.collective_broadcast", "replica_groups = dense<[[2, 0]]> : tensor<1x2xi64>, " CHANNEL, "100", "0", "100",
         "100000", "0", "100000"),
    GRID("    %0 = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>, "
         "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<1xi64>) -> "
         "tensor<3xi64>\n",
         "tensor<3xi64>", SIX("tensor<3xi64>"), ""),
    GRID("    %i = stablehlo.partition_id : tensor<ui32>\n    %j = stablehlo.replica_id : tensor<ui32>\n"
         "    %k = stablehlo.add %i, %j : tensor<ui32>\n    %l = stablehlo.convert %k : (tensor<ui32>) -> tensor<i64>\n"
         "    %m = stablehlo.reshape %l : (tensor<i64>) -> tensor<1xi64>\n    %0 = stablehlo.add %a, %m : tensor<1xi64>\n",
         "tensor<1xi64>", SIX("tensor<1xi64>"), SIX_ARE("1", "11", "102", "1001", "10002", "100003")),
    /* a body that is no monoid of ours: the last one's value; and one of several operations */
    GRID("    %0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>, " GLOBAL "}> ({\n"
         "  ^bb0(%x: tensor<i64>, %y: tensor<i64>):\n    stablehlo.return %y : tensor<i64>\n  }) : (tensor<1xi64>) -> "
         "tensor<1xi64>\n",
         "tensor<1xi64>", SIX("tensor<1xi64>"), SIX_ARE("100000", "100000", "100000", "100000", "100000", "100000")),
    GRID("    %0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>, " GLOBAL
         "}> ({\n"
         "  ^bb0(%x: tensor<i64>, %y: tensor<i64>):\n    %n = stablehlo.negate %y : tensor<i64>\n"
         "    %m = stablehlo.negate %n : tensor<i64>\n    %s = stablehlo.add %x, %m : tensor<i64>\n    stablehlo.return %s : "
         "tensor<i64>\n  }) : (tensor<1xi64>) -> tensor<1xi64>\n",
         "tensor<1xi64>", SIX("tensor<1xi64>"), SIX_ARE("111", "111", "111", "111000", "111000", "111000")),
    /* such bodies over groups of several sizes */
    GRID("    %0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 5, 2, 1], [4, 3, -1, -1]]> : tensor<2x4xi64>, " GLOBAL "}> ({\n"
         "  ^bb0(%x: tensor<i64>, %y: tensor<i64>):\n    %n = stablehlo.negate %y : tensor<i64>\n"
         "    %s = stablehlo.subtract %x, %n : tensor<i64>\n    stablehlo.return %s : tensor<i64>\n  }) : (tensor<1xi64>) -> "
         "tensor<1xi64>\n",
         "tensor<1xi64>", SIX("tensor<1xi64>"), SIX_ARE("100111", "100111", "100111", "11000", "11000", "100111")),
    GRID("    %0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 5, 2, 1], [4, 3, -1, -1]]> : tensor<2x4xi64>, " GLOBAL "}> ({\n"
         "  ^bb0(%x: tensor<i64>, %y: tensor<i64>):\n    stablehlo.return %y : tensor<i64>\n  }) : (tensor<1xi64>) -> tensor<1xi64>\n",
         "tensor<1xi64>", SIX("tensor<1xi64>"), SIX_ARE("10", "10", "10", "1000", "1000", "10")),
};

static ax_program *import(const char *text) {
  ax_program *program;
  if (ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  return program;
}

static void run_checked(const char *text) {
  ax_program *program = import(text);
  if (test_try(program, NULL, NULL) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  ax_program_release(program);
}

/* JAX takes manual computations over one device away, and leaves collectives of groups of one. */
static const char alone[] =
    "module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n  sdy.mesh @mesh = <[\"i\"=1]>\n"
    "  func.func @main() {\n    %x = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"i\"}]>]>} dense<[3]> : tensor<1xi64>\n"
    "    %0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({\n    ^bb0(%a: tensor<i64>, %b: tensor<i64>):\n"
    "      %s = stablehlo.add %a, %b : tensor<i64>\n      stablehlo.return %s : tensor<i64>\n    }) : (tensor<1xi64>) -> tensor<1xi64>\n"
    "    check.expect_eq_const %0, dense<[3]> : tensor<1xi64>\n    return\n  }\n}\n";

static void test_grids(void **state) {
  (void)state;
  run_checked(alone);
  for (size_t i = 0; i < AX_COUNT(grids); i++) {
    if (strstr(grids[i], "all_gather") == NULL)
      run_checked(grids[i]);
    else { /* groups of 3 and of 1 give results of several shapes */
      ax_program *program;
      TEST_FAILS(ax_program_from_stablehlo(grids[i], strlen(grids[i]), NULL, &program), AX_INVALID_ARGUMENT,
                 "groups must be of one size");
    }
  }
}

/* --- Layouts --- */

#define MESH "  sdy.mesh @m = <[\"a\"=2, \"my axis\"=3]>\n  sdy.mesh @n = <[\"c\"=6]>\n"
#define MAIN(body) \
  "module {\n" MESH "  func.func @main() {\n    %x = stablehlo.iota dim = 0 : tensor<6xi64>\n" body "    return\n  }\n}\n"
#define MANUAL(axes, in, out, arg, result, body)                                                                         \
  "    %r = sdy.manual_computation(%x) in_shardings=[<@m, [" in "]>] out_shardings=[<@m, [" out "]>] manual_axes={" axes \
  "} (%a: "                                                                                                              \
  "tensor<" arg "xi64>) {\n" body "      sdy.return %0 : tensor<" result "xi64>\n    } : (tensor<6xi64>) -> "
#define ALL "      %0 = \"stablehlo.all_reduce\"(%a) <{"
#define TO_NEXT(channel)                                                                                                \
  "<{channel_handle = #stablehlo.channel_handle<handle = " channel ", type = 1>, is_host_transfer = false, " \
  "source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]> : tensor<5x2xi64>}>"
#define OF(n) "}> " SUM " : (tensor<" n "xi64>) -> tensor<" n "xi64>\n"

#define PART(part, wanted)                                                                                                                       \
    MAIN("    %r = sdy.manual_computation(%x) in_shardings=[<@n, [{\"c\"}]>] out_shardings=[<@n, [{\"c\"}]>] manual_axes={\"c\"} (%a: tensor<1xi64>) {\n" ALL \
         "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @n, axes = [#stablehlo.axis_ref<name = \"c\", sub_axis_info = " part ">]>, " GLOBAL OF("1")  \
         "      sdy.return %0 : tensor<1xi64>\n    } : (tensor<6xi64>) -> tensor<6xi64>\n    check.expect_eq_const %r, dense<" wanted "> : tensor<6xi64>\n")

static const char *const layouts[] = {
    /* sums along one axis, both, and one with the other left free */
    MAIN(MANUAL("\"a\", \"my axis\"", "{\"a\", \"my axis\"}", "{\"my axis\"}", "1", "1",
                ALL "replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>, " GLOBAL OF("1")) "tensor<3xi64>\n"
         "    check.expect_eq_const %r, dense<[3, 5, 7]> : tensor<3xi64>\n"),
    MAIN(MANUAL("\"a\", \"my axis\"", "{\"my axis\", \"a\"}", "{}", "1", "1",
                ALL "replica_groups = dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>, " GLOBAL OF("1")) "tensor<1xi64>\n"
         "    check.expect_eq_const %r, dense<15> : tensor<1xi64>\n"),
    MAIN(MANUAL("\"a\"", "{\"a\", \"my axis\"}", "{?}", "3", "3",
                ALL "replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>, " GLOBAL OF("3")) "tensor<3xi64>\n"
         "    check.expect_eq_const %r, dense<[3, 5, 7]> : tensor<3xi64>\n"),
    MAIN(MANUAL("\"a\", \"my axis\"", "{\"a\"}", "{\"a\"}", "3", "3",
                ALL "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = \"a\">]>, " GLOBAL
                    OF("3")) "tensor<6xi64>\n"
         "    check.expect_eq_const %r, dense<[3, 5, 7, 3, 5, 7]> : tensor<6xi64>\n"),
    /* groups along a part of an axis: of six places by 3 and by 2 those that lie one apart, and those that lie two apart */
    PART("(3)2", "[1, 1, 5, 5, 9, 9]"), PART("(1)3", "[6, 9, 6, 9, 6, 9]"),
    /* sums of what devices have: an operand that is one, a result that is one, and a layout that says so */
    MAIN("    %y = sdy.sharding_constraint %x <@m, [{}], unreduced={\"a\"}> : tensor<6xi64>\n"
         "    %r = sdy.manual_computation(%y) in_shardings=[<@m, [{\"my axis\"}], unreduced={\"a\"}>] out_shardings=[<@m, [{\"my axis\"}]>] "
         "manual_axes={\"a\", \"my axis\"} (%a: tensor<2xi64>) {\n" ALL "replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>, " GLOBAL OF("2")
         "      sdy.return %0 : tensor<2xi64>\n    } : (tensor<6xi64>) -> tensor<6xi64>\n"
         "    %s = sdy.manual_computation(%r) in_shardings=[<@m, [{\"my axis\"}]>] out_shardings=[<@m, [{\"a\"}], unreduced={\"my axis\"}>] "
         "manual_axes={\"a\", \"my axis\"} (%a: tensor<2xi64>) {\n      sdy.return %a : tensor<2xi64>\n    } : (tensor<6xi64>) -> tensor<4xi64>\n"
         "    check.expect_eq_const %r, dense<[0, 1, 2, 3, 4, 5]> : tensor<6xi64>\n    check.expect_eq_const %s, dense<[6, 9, 6, 9]> : tensor<4xi64>\n"),
    /* nothing by hand */
    MAIN(MANUAL("", "{\"a\"}", "{}", "6", "6", "      %0 = stablehlo.add %a, %a : tensor<6xi64>\n") "tensor<6xi64>\n"
         "    check.expect_eq_const %r, dense<[0, 2, 4, 6, 8, 10]> : tensor<6xi64>\n"),
    /* layouts, in the short and the generic form, of parts of axes and of a mesh of its own */
    MAIN("    %1 = sdy.sharding_constraint %x <@m, [{\"a\", ?}p1]> : tensor<6xi64>\n"
         "    %2 = \"sdy.sharding_constraint\"(%1) <{sharding = #sdy.sharding<@m, [{?}], replicated={\"a\"}>}> : (tensor<6xi64>) -> "
         "tensor<6xi64>\n"
         "    %3 = sdy.reshard %2 <mesh<[\"q\"=6]>, [{\"q\":(1)2}]> : tensor<6xi64>\n"
         "    %4 = sdy.reshard %3 <mesh<[\"q\"=6]>, [{\"q\":(2)3}]> : tensor<6xi64>\n"
         "    sdy.sharding_group %4 group_id=3 : tensor<6xi64>\n"
         "    %5 = sdy.propagation_barrier %4 allowed_direction=FORWARD : tensor<6xi64>\n"
         "    %6 = sdy.named_computation<\"n\">(%5) in_shardings=[<@m, [{\"a\"}]>] out_shardings=[<@m, [{}]>] (%7: tensor<6xi64>) {\n"
         "      %8 = stablehlo.add %7, %7 : tensor<6xi64>\n      sdy.return %8 : tensor<6xi64>\n    } : (tensor<6xi64>) -> tensor<6xi64>\n"
         "    %9 = sdy.all_gather [{\"a\"}] %6 out_sharding=<@m, [{}]> : tensor<6xi64>\n"
         "    %10 = stablehlo.negate %9 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{\"my axis\"}]>]>} : tensor<6xi64>\n"
         "    %11 = sdy.replicated_to_unreduced {\"a\"} %10 out_sharding=<@m, [{}], unreduced={\"a\"}> : tensor<6xi64>\n"
         "    %12 = sdy.all_reduce {\"a\"} %11 out_sharding=<@m, [{}]> : tensor<6xi64>\n"
         "    %13 = sdy.sharded_to_unreduced [{\"a\"}] %12 out_sharding=<@m, [{}], unreduced={\"a\"}> : tensor<6xi64>\n"
         "    %14 = sdy.reduce_scatter [{\"a\"}] %13 out_sharding=<@m, [{\"a\"}]> : tensor<6xi64>\n"
         "    check.expect_eq_const %14, dense<[0, -2, -4, -6, -8, -10]> : tensor<6xi64>\n"),
    /* layouts of scalars in a reducer, where no operation of scalars stands alone */
    MAIN("    %c = stablehlo.constant dense<0> : tensor<i64>\n    %r:2 = stablehlo.reduce(%x init: %c), (%x init: %c) across dimensions = [0] : "
         "(tensor<6xi64>, tensor<6xi64>, tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)\n"
         "     reducer(%p: tensor<i64>, %q: tensor<i64>) (%s: tensor<i64>, %t: tensor<i64>) {\n"
         "      %1 = sdy.sharding_constraint %p <@m, []> : tensor<i64>\n      %2 = stablehlo.add %1, %q : tensor<i64>\n"
         "      %3 = stablehlo.maximum %s, %t : tensor<i64>\n      %4 = sdy.sharding_constraint %3 <@m, []> : tensor<i64>\n"
         "      stablehlo.return %2, %4 : tensor<i64>, tensor<i64>\n    }\n"
         "    check.expect_eq_const %r#0, dense<15> : tensor<i64>\n    check.expect_eq_const %r#1, dense<5> : tensor<i64>\n"),
    /* messages: from each device to the next one, over two channels, of which the second is asked first; who gets none has zeros */
    MAIN(MANUAL("\"a\", \"my axis\"", "{\"a\", \"my axis\"}", "{\"a\", \"my axis\"}", "1", "1",
                "      %t = stablehlo.create_token : !stablehlo.token\n      %n = stablehlo.negate %a : tensor<1xi64>\n"
                "      %u = \"stablehlo.send\"(%a, %t) " TO_NEXT("1") " : (tensor<1xi64>, !stablehlo.token) -> !stablehlo.token\n"
                "      %v = \"stablehlo.send\"(%n, %n, %u) " TO_NEXT("2") " : (tensor<1xi64>, tensor<1xi64>, !stablehlo.token) -> !stablehlo.token\n"
                "      %b:3 = \"stablehlo.recv\"(%v) " TO_NEXT("2") " : (!stablehlo.token) -> (tensor<1xi64>, tensor<1xi64>, !stablehlo.token)\n"
                "      %c:2 = \"stablehlo.recv\"(%b#2) " TO_NEXT("1") " : (!stablehlo.token) -> (tensor<1xi64>, !stablehlo.token)\n"
                "      %d = stablehlo.multiply %b#0, %b#1 : tensor<1xi64>\n      %0 = stablehlo.add %d, %c#0 : tensor<1xi64>\n")
         "tensor<6xi64>\n    check.expect_eq_const %r, dense<[0, 0, 2, 6, 12, 20]> : tensor<6xi64>\n"),
    /* devices in another order: partition p stands at place (p mod 2, p / 2) */
    "module {\n  sdy.mesh @t = <[\"a\"=2, \"b\"=2], device_ids=[0, 2, 1, 3]>\n  func.func @main() {\n"
    "    %x = stablehlo.iota dim = 0 : tensor<4xi64>\n"
    "    %r = sdy.manual_computation(%x) in_shardings=[<@t, [{\"a\", \"b\"}]>] out_shardings=[<@t, [{\"a\", \"b\"}]>] "
    "manual_axes={\"a\", \"b\"} (%a: tensor<1xi64>) {\n      %p = stablehlo.partition_id : tensor<ui32>\n"
    "      %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<i64>\n      %t = stablehlo.reshape %q : (tensor<i64>) -> tensor<1xi64>\n"
    "      %s = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, " GLOBAL OF("1")
    "      %h = stablehlo.constant dense<100> : tensor<1xi64>\n      %u = stablehlo.multiply %s, %h : tensor<1xi64>\n"
    "      %0 = stablehlo.add %t, %u : tensor<1xi64>\n      sdy.return %0 : tensor<1xi64>\n    } : (tensor<4xi64>) -> tensor<4xi64>\n"
    "    check.expect_eq_const %r, dense<[200, 402, 201, 403]> : tensor<4xi64>\n    return\n  }\n}\n",
    /* where integers are computed while the module is read, a device's number is none of them */
    "module {\n  sdy.mesh @t = <[\"a\"=4]>\n  func.func @main() {\n    %x0 = stablehlo.iota dim = 0 : tensor<4xi64>\n"
    "    %x = stablehlo.optimization_barrier %x0 : tensor<4xi64>\n"
    "    %r = sdy.manual_computation(%x) in_shardings=[<@t, [{\"a\"}]>] out_shardings=[<@t, [{\"a\"}]>] manual_axes={\"a\"} "
    "(%a: tensor<1xi64>) {\n      %p = stablehlo.partition_id : tensor<ui32>\n"
    "      %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<i64>\n      %s = stablehlo.constant dense<1> : tensor<1xi64>\n"
    "      %t = stablehlo.dynamic_broadcast_in_dim %q, %s, dims = [] : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>\n"
    "      %0 = stablehlo.add %t, %t : tensor<1xi64>\n      sdy.return %0 : tensor<1xi64>\n    } : (tensor<4xi64>) -> tensor<4xi64>\n"
    "    check.expect_eq_const %r, dense<[0, 2, 4, 6]> : tensor<4xi64>\n    return\n  }\n}\n",
    /* GSPMD: what needs the first computation's result stands between its operations, and begins the second one */
    "module attributes {mhlo.num_partitions = 6 : i32} {\n  func.func @main() {\n    %x = stablehlo.iota dim = 0 : tensor<6xi64>\n"
    "    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = \"{devices=[6]<=[2,3]T(1,0)}\"} : (tensor<6xi64>) -> tensor<6xi64>\n"
    "    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = \"{manual}\"} : (tensor<6xi64>) -> tensor<1xi64>\n"
    "    %2 = \"stablehlo.all_reduce\"(%1) <{replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>, " GLOBAL OF("1")
    "    %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = \"{devices=[3,2]<=[2,3]T(1,0) last_tile_dim_replicate}\"} : "
    "(tensor<1xi64>) -> tensor<3xi64>\n"
    "    %c = stablehlo.constant dense<1> : tensor<3xi64>\n    %4 = stablehlo.add %3, %c : tensor<3xi64>\n"
    "    %5 = stablehlo.custom_call @Sharding(%4) {mhlo.sharding = \"{replicated}\"} : (tensor<3xi64>) -> tensor<3xi64>\n"
    "    %6 = stablehlo.custom_call @SPMDFullToShardShape(%5) {mhlo.sharding = \"{manual}\"} : (tensor<3xi64>) -> tensor<3xi64>\n"
    "    %7 = stablehlo.negate %1 : tensor<1xi64>\n"
    "    %8 = stablehlo.custom_call @SPMDShardToFullShape(%7) {mhlo.sharding = \"{devices=[6]<=[2,3]T(1,0)}\"} : (tensor<1xi64>) -> "
    "tensor<6xi64>\n"
    "    %9 = \"stablehlo.all_reduce\"(%6) <{replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>, " GLOBAL OF("3")
    "    %10 = stablehlo.custom_call @SPMDShardToFullShape(%9) {mhlo.sharding = \"{replicated}\"} : (tensor<3xi64>) -> tensor<3xi64>\n"
    "    check.expect_eq_const %3, dense<[1, 5, 9]> : tensor<3xi64>\n"
    "    check.expect_eq_const %8, dense<[0, -1, -2, -3, -4, -5]> : tensor<6xi64>\n"
    "    check.expect_eq_const %10, dense<[4, 12, 20]> : tensor<3xi64>\n    return\n  }\n}\n",
};

/* Each of two devices has rows 1, 2, 3 times 1 or 10, and sends one to the first and two to the second. */
static const char ragged[] =
    "module {\n  func.func @f(%x: tensor<3xi64>, %to: tensor<2xi32>, %got: tensor<2xi32>) -> tensor<4xi64> {\n"
    "    %o = stablehlo.constant dense<[7, 7, 7, 7]> : tensor<4xi64>\n    %from = stablehlo.constant dense<[0, 1]> : tensor<2xi32>\n"
    "    %send = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
    "    %0 = stablehlo.custom_call @ragged_all_to_all(%x, %o, %from, %send, %to, %got) {api_version = 4 : i32, backend_config = "
    "{channel_id = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<3xi64>, tensor<4xi64>, tensor<2xi32>, "
    "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4xi64>\n    return %0 : tensor<4xi64>\n  }\n  func.func @main() {\n"
    "    %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64>\n    %b = stablehlo.constant dense<[10, 20, 30]> : tensor<3xi64>\n"
    "    %t = stablehlo.constant dense<0> : tensor<2xi32>\n    %u = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
    "    %g = stablehlo.constant dense<1> : tensor<2xi32>\n    %h = stablehlo.constant dense<2> : tensor<2xi32>\n"
    "    %r:2 = \"interpreter.run_parallel\"(%a, %t, %g, %b, %u, %h) {programs = [[@f, @f]]} : (tensor<3xi64>, tensor<2xi32>, "
    "tensor<2xi32>, tensor<3xi64>, tensor<2xi32>, tensor<2xi32>) -> (tensor<4xi64>, tensor<4xi64>)\n"
    "    check.expect_eq_const %r#0, dense<[1, 10, 7, 7]> : tensor<4xi64>\n"
    "    check.expect_eq_const %r#1, dense<[2, 3, 20, 30]> : tensor<4xi64>\n    return\n  }\n}\n";

/* What is fed in, by functions, in the order in which it is taken. */
#define FED(body, given, attributes)                                                                                        \
  "module {\n  func.func @f(%t: !stablehlo.token) -> (tensor<i64>, tensor<i64>) {\n" body                                    \
  "    return %a#0, %b#0 : tensor<i64>, tensor<i64>\n  }\n"                                                                 \
  "  func.func @one() -> tensor<i64> {\n    %0 = stablehlo.constant dense<1> : tensor<i64>\n    return %0 : tensor<i64>\n  }\n" \
  "  func.func @two() -> tensor<i64> {\n    %0 = stablehlo.constant dense<2> : tensor<i64>\n    return %0 : tensor<i64>\n  }\n" \
  "  func.func @none() {\n    return\n  }\n  func.func @main() {\n    %t = stablehlo.after_all : !stablehlo.token\n"         \
  "    %r:2 = \"interpreter.run_parallel\"(" given ") {" attributes "programs = [[@f]]} : (!stablehlo.token) -> (tensor<i64>, " \
  "tensor<i64>)\n    check.expect_eq_const %r#0, dense<1> : tensor<i64>\n"                                                  \
  "    check.expect_eq_const %r#1, dense<2> : tensor<i64>\n    return\n  }\n}\n"
#define TAKE(name) "    " name ":2 = \"stablehlo.infeed\"(%t) : (!stablehlo.token) -> (tensor<i64>, !stablehlo.token)\n"
#define TWO TAKE("%a") TAKE("%b") "    %u = \"stablehlo.outfeed\"(%a#0, %t) : (tensor<i64>, !stablehlo.token) -> !stablehlo.token\n"

static void test_infeed(void **state) {
  static const struct {
    const char *text, *message;
  } wrong[] = {{FED(TWO, "%t", ""), "nothing is fed in"},
               {FED(TWO, "%t", "infeed = [], "), "infeed must be a list of functions"},
               {FED(TWO, "%t", "infeed = [@three], "), "infeed: there is no function @three"},
               {FED(TWO, "%t", "infeed = [@none], "), "infeed: @none must give one array, and gives 0"},
               {FED(TWO, "%t", "infeed = [@one], "), "1 arrays are fed in, and this would take one more"}};
  (void)state;
  run_checked(FED(TWO, "%t", "infeed = [@one, @two], "));
  for (size_t i = 0; i < AX_COUNT(wrong); i++) {
    ax_program *program;
    if (ax_program_from_stablehlo(wrong[i].text, strlen(wrong[i].text), "m", &program) == AX_OK) fail_msg("taken: %s", wrong[i].text);
    if (strstr(ax_message(), wrong[i].message) == NULL) fail_msg("%s, not \"%s\"", ax_message(), wrong[i].message);
  }
}

/* --- Functions that differ by device, and the host of tests --- */

#define OVER(handle, type) "{channel_handle = #stablehlo.channel_handle<handle = " handle ", type = " type ">, is_host_transfer = true}"
#define TOKEN "!stablehlo.token"
#define PARALLEL(programs, results)                                                                                    \
  "  func.func @main() {\n    %x = stablehlo.constant dense<[1, 2]> : tensor<2xi64>\n    %y = stablehlo.constant dense<10> : tensor<i64>\n" \
  "    %t = stablehlo.after_all : " TOKEN "\n    %r:3 = \"interpreter.run_parallel\"(%x, %t, %t, %y) {programs = " programs "} : (tensor<2xi64>, " TOKEN ", " TOKEN \
  ", tensor<i64>) -> (" TOKEN ", tensor<2xi64>, tensor<i64>)\n" results "    return\n  }\n}\n"

static const char different[] =
    "module {\n  func.func @first(%a: tensor<2xi64>, %t: " TOKEN ") -> " TOKEN " {\n"
    "    %u = \"stablehlo.send\"(%a, %t) " OVER("5", "2") " : (tensor<2xi64>, " TOKEN ") -> " TOKEN "\n    return %u : " TOKEN "\n  }\n"
    "  func.func @second(%t: " TOKEN ") -> tensor<2xi64> {\n"
    "    %b:2 = \"stablehlo.recv\"(%t) " OVER("5", "3") " : (" TOKEN ") -> (tensor<2xi64>, " TOKEN ")\n"
    "    %c = stablehlo.slice %b#0 [1:2] : (tensor<2xi64>) -> tensor<1xi64>\n    %d = stablehlo.reshape %c : (tensor<1xi64>) -> tensor<i64>\n"
    "    %u = \"stablehlo.send\"(%d, %b#1) " OVER("6", "2") " : (tensor<i64>, " TOKEN ") -> " TOKEN "\n    return %b#0 : tensor<2xi64>\n  }\n"
    "  func.func @third(%a: tensor<i64>) -> tensor<i64> {\n    %t = stablehlo.create_token : " TOKEN "\n"
    "    %b:2 = \"stablehlo.recv\"(%t) " OVER("6", "3") " : (" TOKEN ") -> (tensor<i64>, " TOKEN ")\n"
    "    %c = stablehlo.add %a, %b#0 : tensor<i64>\n    return %c : tensor<i64>\n  }\n"
    PARALLEL("[[@first, @second, @third]]", "    check.expect_eq_const %r#1, dense<[1, 2]> : tensor<2xi64>\n"
             "    check.expect_eq_const %r#2, dense<12> : tensor<i64>\n");

static const char host[] =
    "module {\n  func.func @f(%t: " TOKEN ") -> (tensor<2xi64>, tensor<i64>) {\n"
    "    %a:2 = \"stablehlo.infeed\"(%t) : (" TOKEN ") -> (tensor<2xi64>, " TOKEN ")\n    %b:2 = \"stablehlo.infeed\"(%a#1) : (" TOKEN ") -> (tensor<i64>, " TOKEN ")\n"
    "    %u = \"stablehlo.outfeed\"(%a#0, %b#1) : (tensor<2xi64>, " TOKEN ") -> " TOKEN "\n    return %a#0, %b#0 : tensor<2xi64>, tensor<i64>\n  }\n"
    "  func.func @p() -> tensor<2xi64> {\n    %0 = stablehlo.constant dense<[5, 6]> : tensor<2xi64>\n    return %0 : tensor<2xi64>\n  }\n"
    "  func.func @q() -> tensor<i64> {\n    %0 = stablehlo.constant dense<7> : tensor<i64>\n    return %0 : tensor<i64>\n  }\n"
    "  func.func @main() {\n    %t = stablehlo.after_all : " TOKEN "\n    %r:2 = \"interpreter.run_parallel\"(%t) {infeed = [@p, @q], programs = [[@f]]} : (" TOKEN
    ") -> (tensor<2xi64>, tensor<i64>)\n    check.expect_eq_const %r#0, dense<[5, 6]> : tensor<2xi64>\n    check.expect_eq_const %r#1, dense<7> : tensor<i64>\n"
    "    return\n  }\n}\n";

static void test_functions(void **state) {
  (void)state;
  run_checked(different);
  run_checked(host);
}

static void test_layouts(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(layouts); i++) run_checked(layouts[i]);
  run_checked(ragged);
}

/* --- What each device runs --- */

static void test_each_device(void **state) {
  static const char text[] =
      "module attributes {mhlo.num_replicas = 2 : i32} {\n  func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n"
      "    %0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n"
      "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n      %1 = stablehlo.maximum %x, %y : tensor<f32>\n"
      "      stablehlo.return %1 : tensor<f32>\n    }) : (tensor<3xf32>) -> tensor<3xf32>\n    return %0 : tensor<3xf32>\n  }\n}\n";
  const double given[] = {1, 5, 3, 4, 2, 6};
  const float wanted[] = {4, 5, 6, 4, 5, 6};
  (void)state;
  ax_program *program = import(text);
  const ax_type type = TEST_TYPE(AX_F32, 2, 3);
  assert_true(ax_type_equal(ax_program_in_type(program, 0), &type));
  ax_tensor *in = test_tensor(type, given), *out = NULL;
  TEST_OK(test_try(program, &in, &out));
  assert_memory_equal(out->data, wanted, sizeof wanted);
  ax_tensor_release(in);
  ax_tensor_release(out);
  ax_program_release(program);
}

/* --- What is refused --- */

static const struct {
  const char *text;
  ax_status status;
  const char *message;
} refused[] = {
    {REDUCE("replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>", "0", "0", "0", "0", "0", "0"), AX_INVALID_ARGUMENT,
     "replica_groups has 2, and must have each number from 0 on"},
    {REDUCE("replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>", "0", "0", "0", "0", "0", "0"), AX_INVALID_ARGUMENT,
     "replica_groups has 0 twice"},
    {REDUCE("replica_groups = dense<[0, 1]> : tensor<2xi64>", "0", "0", "0", "0", "0", "0"), AX_INVALID_ARGUMENT,
     "replica_groups must be a list of lists of i64"},
    {REDUCE("", "0", "0", "0", "0", "0", "0"), AX_INVALID_ARGUMENT, "the attribute replica_groups is missing"},
    {MOVE("stablehlo.collective_permute", "source_target_pairs = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>", "0", "0", "0", "0",
          "0", "0"),
     AX_INVALID_ARGUMENT, "source_target_pairs has 0 twice as a source"},
    {MOVE("stablehlo.collective_permute", "source_target_pairs = dense<[[0, 7]]> : tensor<1x2xi64>, " CHANNEL, "0", "0", "0", "0",
          "0", "0"),
     AX_INVALID_ARGUMENT, "partition 7 is none of the 3 there are"},
    {MAIN(MANUAL("\"a\"", "{\"a\"}", "{}", "3", "3",
                 ALL "replica_groups = dense<[[0, 1], [2, 3], [4, 5]]> : tensor<3x2xi64>, " GLOBAL OF("3")) "tensor<3xi64>\n"),
     AX_ABSENT, "no manual computation around it takes these axes"},
    {MAIN(MANUAL("\"a\"", "{\"my axis\", \"a\"}", "{}", "3", "3",
                 "      %0 = stablehlo.add %a, %a : tensor<3xi64>\n") "tensor<3xi64>\n"),
     AX_INVALID_ARGUMENT, "a dimension is cut by a free axis before one that is taken by hand"},
    {MAIN(MANUAL("\"z\"", "{\"a\"}", "{}", "3", "3", "      %0 = stablehlo.add %a, %a : tensor<3xi64>\n") "tensor<3xi64>\n"),
     AX_INVALID_ARGUMENT, "the mesh has no axis \"z\""},
    {MAIN(MANUAL("\"a\"", "{\"a\"}", "{}", "2", "2", "      %0 = stablehlo.add %a, %a : tensor<2xi64>\n") "tensor<2xi64>\n"),
     AX_INVALID_ARGUMENT, "argument 0 of a block is s64[3], and the module says tensor<2xi64>"},
    {MAIN("    %r = sdy.sharding_constraint %x <@other, [{}]> : tensor<6xi64>\n"), AX_INVALID_ARGUMENT, "there is no mesh @other"},
    {MAIN("    %r = sdy.sharding_constraint %x <@m, [{\"a\"}, {\"a\"}]> : tensor<6xi64>\n"), AX_INVALID_ARGUMENT,
     "the axis \"a\" twice"},
    {MAIN("    %r = sdy.sharding_constraint %x <@m, [{\"my axis\":(2)2}]> : tensor<6xi64>\n"), AX_ABSENT,
     "(2)2 is no part of the axis"},
    {MAIN("    %r = sdy.sharding_constraint %x <@m, [{}], unreduced={\"my axis\":(1)3, \"a\"}> : tensor<6xi64>\n    %s = sdy.sharding_constraint %x <@n, [{}], "
          "unreduced={\"c\":(1)2}> : tensor<6xi64>\n"), AX_ABSENT, "unreduced along parts of axes"},
    {MAIN("    %r = sdy.sharding_constraint %x <@m, {}> : tensor<6xi64>\n"), AX_PARSE_ERROR, "'{}>' where [ is expected"},
    {MAIN(
         "    %p = stablehlo.partition_id {mhlo.sharding = \"{replicated}\"} : tensor<ui32>\n    %r = \"stablehlo.all_gather\"(%x) "
         "<{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, " GLOBAL
         "}> : (tensor<6xi64>) -> tensor<12xi64>\n"),
     AX_ABSENT, "there is no one device"},
    {"func.func @main(%x: tensor<4xf32>) {\n  %0 = \"stablehlo.collective_broadcast\"(%x) {replica_groups = dense<9223372036854775807> : "
     "tensor<2x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>\n  return\n}\n",
     AX_INVALID_ARGUMENT, "9223372036854775807"},
    {"module {\n  sdy.mesh @m = <[\"a\"=0]>\n  func.func @main() {\n    return\n  }\n}\n", AX_INVALID_ARGUMENT,
     "the mesh @m: axis \"a\""},
    {"module {\n  sdy.mesh @m = <[\"a\"=2], device_ids=[1, 1]>\n  func.func @main() {\n    return\n  }\n}\n", AX_INVALID_ARGUMENT,
     "device_ids must be 0 to 1, each once"},
    {"module {\n  sdy.mesh @m = <[\"a\"=2000000000], device_ids=[1, 1]>\n  func.func @main() {\n    return\n  }\n}\n",
     AX_PARSE_ERROR, "as many ids as the mesh has places"},
    {"module attributes {mhlo.num_partitions = 2000000000 : i64, mhlo.num_replicas = 2000000000 : i64} {\n  func.func @main() {\n  "
     "  return\n"
     "  }\n}\n",
     AX_ABSENT, "are more than the 1048576 devices that are read"},
    {"module {\n  func.func @main(%x: tensor<6xi64>) -> tensor<6xi64> {\n    %1 = stablehlo.custom_call @SPMDFullToShardShape(%x) "
     "{mhlo.sharding = \"{manual}\"} : (tensor<6xi64>) -> tensor<6xi64>\n    return %1 : tensor<6xi64>\n  }\n}\n",
     AX_INVALID_ARGUMENT, "m.mlir: a manual computation, and mhlo.num_partitions is missing"},
    {"module attributes {mhlo.num_partitions = \"x\"} {\n  func.func @main() {\n    return\n  }\n}\n", AX_INVALID_ARGUMENT,
     "m.mlir: mhlo.num_partitions must be an integer"},
    {"module attributes {mhlo.num_partitions = -3 : i32} {\n  func.func @main(%x: tensor<6xi64>) -> tensor<6xi64> {\n    %1 = "
     "stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.sharding = \"{manual}\"} : (tensor<6xi64>) -> tensor<6xi64>\n    return %1 : "
     "tensor<6xi64>\n  }\n}\n",
     AX_INVALID_ARGUMENT, "m.mlir: mhlo.num_partitions must be an integer from 1 to 1048576"},
    {"module {\n  func.func @main(%x: tensor<6xi64>) -> tensor<2xi64> {\n    %1 = stablehlo.custom_call @SPMDFullToShardShape(%x) "
     "{mhlo.sharding = \"{devices=[3]<=[3]}\"} : (tensor<6xi64>) -> tensor<2xi64>\n    return %1 : tensor<2xi64>\n  }\n}\n",
     AX_INVALID_ARGUMENT, "m.mlir:3: stablehlo.custom_call: tiles of a block that say nothing of manual: {devices=[3]<=[3]}"},
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

/* Any text is read or refused: cut off anywhere, with characters changed, in little memory. */
static ax_status read_some(void *context) {
  const char *text = context;
  ax_program *program;
  const ax_status status = ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program);
  ax_program_release(program);
  return status;
}

static void spoil(const char *text, test_random *random) {
  static const char signs[] = "0129<>[]{}\"#@,:x-";
  const size_t length = strlen(text);
  char *copy = ax_alloc(length + 1);
  assert_non_null(copy);
  memcpy(copy, text, length + 1);
  for (int64_t k = test_random_below(random, 3); k >= 0; k--)
    copy[test_random_below(random, (int64_t)length)] = signs[test_random_below(random, sizeof signs - 1)];
  (void)read_some(copy);
  memcpy(copy, text, length + 1);
  copy[test_random_below(random, (int64_t)length)] = '\0';
  (void)read_some(copy);
  ax_free(copy);
}

static void test_any_text(void **state) {
  test_random random = {.state = 11};
  (void)state;
  for (int round = 0; round < 40; round++) {
    for (size_t i = 0; i < AX_COUNT(layouts); i++) spoil(layouts[i], &random);
    for (size_t i = 0; i < AX_COUNT(grids); i += 3) spoil(grids[i], &random);
    spoil(different, &random);
    spoil(host, &random);
  }
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(read_some, (void *)layouts[AX_COUNT(layouts) - 1]) > 50);
  assert_true(test_each_allocation(read_some, (void *)layouts[AX_COUNT(layouts) - 3]) > 50);
  assert_true(test_each_allocation(read_some, (void *)grids[5]) > 50);
  assert_true(test_each_allocation(read_some, (void *)different) > 50);
  assert_true(test_each_allocation(read_some, (void *)host) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_grids),       cmocka_unit_test(test_layouts), cmocka_unit_test(test_infeed), cmocka_unit_test(test_functions),
                                     cmocka_unit_test(test_each_device), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_any_text),    cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
