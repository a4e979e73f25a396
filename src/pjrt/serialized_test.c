/* Executables that are saved and loaded, topologies, programs that are compiled for these, and what is told of executables. */
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"
#include "support/plugin.h"
#include "support/random.h"

static char module[] = "module @squares attributes {mhlo.num_partitions = 1 : i32} {\nfunc.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                       "  %0 = stablehlo.multiply %x, %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n}\n";

/* Runs the program on device 0 of the client, and drops it. */
static void expect_squares(ax_pjrt_client *client, ax_pjrt_loaded_executable *loaded) {
  const int64_t dims[] = {2};
  ax_pjrt_buffer *x = put(client, 0, (const float[]){3, 4}, AX_PJRT_F32, dims, 1), *result = NULL, **const outputs[] = {&result};
  ax_pjrt_buffer *const list[] = {x}, *const *const lists[] = {list};
  float back[2];
  CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 1, .argument_count = 1, .outputs = outputs);
  read_buffer(result, back, sizeof back);
  assert_true(back[0] == 9 && back[1] == 16);
  CALL(buffer_memory_layout, .of = result);
  assert_int_equal(buffer_memory_layout_args.value.tiled.rank, 1);
  assert_int_equal(buffer_memory_layout_args.value.tiled.minor_to_major[0], 0);
  drop(result), drop(x);
  CALL(loaded_destroy, .of = loaded);
}

/* The bytes, from malloc. */
static char *save(ax_pjrt_client *client, size_t *count) {
  ax_pjrt_loaded_executable *loaded;
  expect_no_error("compile", compile(client, module, "", 0, &loaded));
  CALL(loaded_executable, .of = loaded);
  CALL(executable_serialize, .of = loaded_executable_args.value);
  char *bytes = malloc(executable_serialize_args.count);
  *count = executable_serialize_args.count;
  memcpy(bytes, executable_serialize_args.bytes, *count);
  executable_serialize_args.release(executable_serialize_args.held);
  CALL(executable_destroy, .of = loaded_executable_args.value);
  CALL(loaded_destroy, .of = loaded);
  return bytes;
}

static void test_saved(void **state) {
  (void)state;
  size_t count;
  ax_pjrt_client *client = create(1), *other = create(2);
  char *bytes = save(client, &count);
  {
    CALL(executable_deserialize_and_load, .of = other, .bytes = bytes, .count = count);
    expect_squares(other, executable_deserialize_and_load_args.value);
  }
  for (size_t cut = 0; cut < count; cut += 7) { /* torn, anywhere */
    ax_pjrt_executable_deserialize_and_load_args args = {.struct_size = sizeof args, .of = client, .bytes = bytes, .count = cut};
    ax_pjrt_error *error = GetPjrtApi()->executable_deserialize_and_load(&args);
    assert_null(args.value);
    expect_error(error, cut <= 10 + 32 ? AX_PJRT_INVALID_ARGUMENT : AX_PJRT_DATA_LOSS, cut <= 10 + 32 ? "no executable" : "damaged");
  }
  for (size_t at = 30; at < count; at++) { /* one bit, anywhere behind the version */
    bytes[at] ^= 4;
    REFUSES(AX_PJRT_DATA_LOSS, "damaged", executable_deserialize_and_load, .of = client, .bytes = bytes, .count = count);
    bytes[at] ^= 4;
  }
  bytes[20] ^= 1;
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "and this is Axle", executable_deserialize_and_load, .of = client, .bytes = bytes, .count = count);
  free(bytes);
  destroy(client);
  destroy(other);
}

static void test_told(void **state) {
  (void)state;
  static const char portable[] = "\x20\x01";
  ax_pjrt_client *client = create(1);
  ax_pjrt_loaded_executable *loaded;
  expect_no_error("compile", compile(client, module, portable, 2, &loaded));
  CALL(loaded_executable, .of = loaded);
  ax_pjrt_executable *executable = loaded_executable_args.value;
  CALL(executable_name, .of = executable);
  assert_int_equal(executable_name_args.length, 7);
  assert_memory_equal(executable_name_args.text, "squares", 7);
  CALL(executable_cost_analysis, .of = executable);
  assert_int_equal(executable_cost_analysis_args.count, 3);
  assert_memory_equal(executable_cost_analysis_args.items[0].name, "flops", 5);
  assert_true(executable_cost_analysis_args.items[0].number == 2);
  assert_true(executable_cost_analysis_args.items[2].number == 0);
  CALL(executable_compile_options, .of = executable);
  assert_int_equal(executable_compile_options_args.count, 2);
  assert_memory_equal(executable_compile_options_args.bytes, portable, 2);
  executable_compile_options_args.release(executable_compile_options_args.held);
  CALL(executable_destroy, .of = executable);
  CALL(loaded_destroy, .of = loaded);
  destroy(client);
}

/* A program is compiled for a topology, and loaded by a client. */
static void test_ahead_of_time(void **state) {
  (void)state;
  const ax_pjrt_named two = {.struct_size = sizeof two, .name = "num_devices", .name_length = 11, .kind = AX_PJRT_INTEGER, .integer = 2, .count = 1};
  const ax_pjrt_program program = {.struct_size = sizeof program, .code = module, .code_bytes = strlen(module), .format = "mlir", .format_length = 4};
  ax_pjrt_client *client = create(2);
  CALL(topology_create, .options = &two, .option_count = 1);
  ax_pjrt_topology *topology = topology_create_args.value, *again;
  CALL(topology_serialize, .of = topology);
  CALL(topology_deserialize, .bytes = topology_serialize_args.bytes, .count = topology_serialize_args.count);
  again = topology_deserialize_args.value;
  topology_serialize_args.release(topology_serialize_args.held);
  CALL(topology_device_descriptions, .of = again);
  assert_int_equal(topology_device_descriptions_args.count, 2);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "no topology", topology_deserialize, .bytes = "axle topology of x", .count = 18);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "0 devices", topology_deserialize, .bytes = "axle topology of 0", .count = 18);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "no topology", topology_deserialize, .bytes = "x", .count = 1);
  CALL(compile, .of = topology, .program = &program);
  ax_pjrt_executable *executable = compile_args.value;
  {
    CALL(topology_destroy, .of = topology);
  }
  CALL(client_load, .of = client, .executable = executable);
  CALL(topology_destroy, .of = again);
  CALL(executable_destroy, .of = executable);
  expect_squares(client, client_load_args.value);
  destroy(client);
}

/* Options with any bytes changed, cut or added are read or refused. */
static void test_any_options(void **state) {
  (void)state;
  static const char good[] = "\x1a\x12\x20\x01\x28\x02\x4a\x0c\x08\x01\x10\x02\x1a\x02\x08\x01\x1a\x02\x08\x00\x3a\x08\x0a\x06xla_ab";
  test_random random = {.state = 7};
  int read = 0, refused = 0;
  for (int round = 0; round < 20000; round++) {
    char bytes[sizeof good + 8];
    size_t count = sizeof good - 1;
    memcpy(bytes, good, count);
    for (int64_t changes = test_random_below(&random, 4); changes > 0; changes--)
      bytes[test_random_below(&random, (int64_t)count)] = (char)test_random_below(&random, 256);
    if (test_random_below(&random, 3) == 0) count = (size_t)test_random_below(&random, (int64_t)count + 1);
    ax_pjrt_options options;
    ax_pjrt_error *error = ax_pjrt_options_read(bytes, count, &options);
    if (error == NULL) {
      assert_in_range(options.replicas * options.partitions, 1, 65536);
      for (int64_t i = 0; options.devices != NULL && i < options.replicas * options.partitions; i++) read += options.devices[i] == INT64_MAX;
      ax_pjrt_options_free(&options);
    } else {
      ax_pjrt_do_error_destroy(&(ax_pjrt_error_destroy_args){.struct_size = sizeof(ax_pjrt_error_destroy_args), .of = error});
    }
    *(error == NULL ? &read : &refused) += 1;
  }
  assert_true(read > 1000 && refused > 1000);
}

static void test_held(void **state) {
  (void)state;
  ax_pjrt_held *held = ax_pjrt_held_of(3);
  assert_int_equal(held->count, 3);
  ax_pjrt_held_release(held);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_saved), cmocka_unit_test(test_told), cmocka_unit_test(test_ahead_of_time),
                                     cmocka_unit_test(test_any_options), cmocka_unit_test(test_held)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
