/* Parts that devices have by themselves: the types and layouts of inputs and results that are asked for with them. What programs of them
   compute is the plugin's test's to say (src/pjrt/runs_test.c). */
#include <string.h>

#include "bridge/parts.h"
#include "bridge/stablehlo_read.h"
#include "support/cmocka.h"
#include "support/oom.h"

static const ax_mesh mesh = {.count = 2, .axis = {{.name = "x", .size = 2}, {.name = "y", .size = 3}}};

static void test_types_and_specs(void **state) {
  (void)state;
  ax_type type = {.dtype = AX_F32, .rank = 2, .dims = {4, 5}}, full = {.rank = AX_MAX_RANK};
  ax_spec spec;
  assert_int_equal(ax_spec_parse("_,x", &mesh, &spec), AX_OK);
  const ax_spec stacked = ax_hlo_parts_spec(2, &spec);
  assert_true(stacked.rank == 3 && stacked.count[0] == 1 && stacked.axis[0][0] == 1 && stacked.count[1] == 0 && stacked.axis[2][0] == 0);
  assert_int_equal(ax_hlo_parts_type(&mesh, 3, &type), AX_OK);
  assert_string_equal(ax_type_string(&type, NULL), "f32[6,4,5]");
  assert_int_equal(ax_hlo_parts_type(&mesh, 1, &full), AX_ABSENT);
}

/* Outside of the entry function's trace nothing has parts that are taken. */
static void test_list(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_hlo_devices devices = {.arena = &arena, .parts_wanted = true, .main = &devices};
  const ax_value x = {.trace = 1, .id = 2}, y = {.trace = 1, .id = 3};
  ax_sdy_sharding layout = {.mesh.mesh = mesh, .unreduced = 1};
  assert_int_equal(ax_hlo_parts_note(&devices, &(ax_hlo_parts){.of = x, .mesh = mesh, .axes = 1, .summed = true}), AX_OK);
  assert_true(ax_hlo_parts_of(&devices, x)->summed);
  assert_null(ax_hlo_parts_of(&devices, y));
  assert_false(ax_hlo_parts_here(&devices));
  assert_null(ax_hlo_parts_for(&devices, x, &layout, 3));
  devices.main = NULL; /* as if the trace in progress, which is none, were that one */
  assert_non_null(ax_hlo_parts_for(&devices, x, &layout, 3));
  assert_null(ax_hlo_parts_for(&devices, x, &layout, 2)); /* the axis is not taken by hand */
  layout.unreduced = 0;
  assert_null(ax_hlo_parts_for(&devices, x, &layout, 3)); /* the sum is wanted */
  assert_int_equal(ax_hlo_parts_carry(&devices, y, &layout, x), AX_OK);
  assert_null(devices.parts->next);
  ax_arena_deinit(&arena);
}

#define MODULE "module attributes {mhlo.num_partitions = 6 : i32} {\n  sdy.mesh @m = <[\"x\"=2, \"y\"=3]>\n"
#define SUMMED "{sdy.sharding = #sdy.sharding<@m, [{\"y\"}], unreduced={\"x\"}>}"
static const char module[] =
    MODULE "  func.func @main(%a: tensor<6xf32> " SUMMED ", %b: tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>})\n"
           "      -> (tensor<6xf32> " SUMMED ", tensor<6xf32> " SUMMED ", tensor<6xf32>, tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) {\n"
           "    %0 = stablehlo.add %a, %b : tensor<6xf32>\n"
           "    %1 = sdy.manual_computation(%b) in_shardings=[<@m, [{}]>] out_shardings=[<@m, [{}]>] manual_axes={\"x\", \"y\"} (%c: tensor<6xf32>) {\n"
           "      %2 = stablehlo.sine %c : tensor<6xf32>\n      sdy.return %2 : tensor<6xf32>\n    } : (tensor<6xf32>) -> tensor<6xf32>\n"
           "    %3 = sdy.manual_computation(%a) in_shardings=[<@m, [{}], unreduced={\"x\"}>] out_shardings=[<@m, [{}]>] manual_axes={\"x\"} (%c: tensor<6xf32>) {\n"
           "      sdy.return %c : tensor<6xf32>\n    } : (tensor<6xf32>) -> tensor<6xf32>\n"
           "    return %a, %0, %1, %3 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>\n  }\n}\n";

static ax_status read(void *context) {
  const ax_hlo_binding binding = {.parts = true};
  ax_program_names names;
  ax_program *program;
  (void)context;
  AX_TRY(ax_program_from_stablehlo_named(module, strlen(module), "m", &binding, &names, &program));
  ax_program_names_deinit(&names);
  ax_program_release(program);
  return AX_OK;
}

static void check(bool parts) {
  const ax_hlo_binding binding = {.parts = parts};
  ax_program_names names;
  ax_program *program;
  assert_int_equal(ax_program_from_stablehlo_named(module, strlen(module), "m", &binding, &names, &program), AX_OK);
  assert_string_equal(ax_type_string(ax_program_in_type(program, 0), NULL), parts ? "f32[2,6]" : "f32[6]");
  assert_string_equal(ax_type_string(ax_program_in_type(program, 1), NULL), "f32[6]");
  assert_string_equal(ax_type_string(ax_program_out_type(program, 1), NULL), parts ? "f32[2,6]" : "f32[6]");
  assert_string_equal(ax_type_string(ax_program_out_type(program, 2), NULL), "f32[6]"); /* nothing in it differs */
  assert_string_equal(ax_type_string(ax_program_out_type(program, 3), NULL), parts ? "f32[2,6]" : "f32[6]");
  assert_true(parts == (names.in_having != NULL));
  if (parts) {
    assert_true(names.in_having[0] == AX_HAVE_SUMMED && names.in_having[1] == AX_HAVE_ARRAY);
    assert_true(names.out_having[0] == AX_HAVE_SUMMED && names.out_having[1] == AX_HAVE_SUMMED);
    assert_true(names.out_having[2] == AX_HAVE_ARRAY && names.out_having[3] == AX_HAVE_BY_DEVICE);
  }
  ax_program_names_deinit(&names);
  ax_program_release(program);
}

static void test_module(void **state) {
  (void)state;
  check(false);
  check(true);
  assert_true(test_each_allocation(read, NULL) > 50);
}

/* Along an axis of one device nothing is apart. */
static void test_one_device(void **state) {
  (void)state;
  static const char one[] = "module {\n  sdy.mesh @m = <[\"x\"=1]>\n  func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={\"x\"}>}) -> "
                            "(tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={\"x\"}>}) {\n"
                            "    %1 = sdy.manual_computation(%a) in_shardings=[<@m, [{}], unreduced={\"x\"}>] out_shardings=[<@m, [{}], unreduced={\"x\"}>] manual_axes={\"x\"} "
                            "(%c: tensor<6xf32>) {\n      sdy.return %c : tensor<6xf32>\n    } : (tensor<6xf32>) -> tensor<6xf32>\n    return %1 : tensor<6xf32>\n  }\n}\n";
  const ax_hlo_binding binding = {.parts = true};
  ax_program_names names;
  ax_program *program;
  assert_int_equal(ax_program_from_stablehlo_named(one, strlen(one), "m", &binding, &names, &program), AX_OK);
  assert_string_equal(ax_type_string(ax_program_in_type(program, 0), NULL), "f32[6]");
  assert_string_equal(ax_type_string(ax_program_out_type(program, 0), NULL), "f32[6]");
  assert_true(names.in_having[0] == AX_HAVE_ARRAY && names.out_having[0] == AX_HAVE_ARRAY);
  ax_program_names_deinit(&names);
  ax_program_release(program);
}

/* Booleans are no terms of a sum. */
static void test_refused(void **state) {
  (void)state;
  static const char truth[] = MODULE "  func.func @main(%a: tensor<6xi1> " SUMMED ") -> tensor<6xi1> {\n    return %a : tensor<6xi1>\n  }\n}\n";
  const ax_hlo_binding binding = {.parts = true};
  ax_program *program;
  assert_int_equal(ax_program_from_stablehlo_named(truth, strlen(truth), "m", &binding, NULL, &program), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(ax_message(), "bool"));
  assert_null(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_types_and_specs), cmocka_unit_test(test_list), cmocka_unit_test(test_module),
                                     cmocka_unit_test(test_one_device), cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
