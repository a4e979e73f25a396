/* Runs on several devices: results that devices have by themselves or in sums, modules that are what each device runs, and chains of
   runs of which none is waited for. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/status.h"
#include "support/oom.h"
#include "support/plugin.h"

#define ON(partitions, body) MODULE(partitions, "sdy.mesh @mesh = <[\"d\"=2]>\n" body)
#define REPLICATED "{sdy.sharding = #sdy.sharding<@mesh, [{}]>}"
#define UNREDUCED "{sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={\"d\"}>}"
#define TURNED(spec, result)                                                                                                    \
  MODULE("2", "sdy.mesh @mesh = <[\"d\"=2]>\nsdy.mesh @turned = <[\"d\"=2], device_ids=[1, 0]>\n"                               \
              "func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@turned, " spec ">}) -> (tensor<4xf32> "   \
              "{sdy.sharding = #sdy.sharding<" result ">}) {\n  return %x : tensor<4xf32>\n}\n")
#define CUT "{sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}"

/* executable_build_options {num_replicas, num_partitions} */
static const char two_partitions[] = "\x1a\x04\x20\x01\x28\x02", two_replicas[] = "\x1a\x04\x20\x02\x28\x01";

static ax_pjrt_loaded_executable *compile_for(ax_pjrt_client *client, char *module, const char *options) {
  ax_pjrt_loaded_executable *loaded;
  expect_no_error("compile", compile(client, module, options, 6, &loaded));
  return loaded;
}

/* Runs a program of one argument and one result on two devices; nothing is waited for. */
static void run_on_two(ax_pjrt_loaded_executable *loaded, ax_pjrt_buffer *const *in, ax_pjrt_buffer **out, ax_pjrt_event **events) {
  ax_pjrt_buffer *const *const lists[] = {&in[0], &in[1]};
  ax_pjrt_buffer **const outputs[] = {&out[0], &out[1]};
  CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 2, .argument_count = 1, .outputs = outputs, .events = events);
}

static void put_two(ax_pjrt_client *client, const float *data, size_t count, ax_pjrt_buffer **out) {
  const int64_t dims[] = {(int64_t)count};
  for (int d = 0; d < 2; d++) out[d] = put(client, d, data + (size_t)d * count, AX_PJRT_F32, dims, 1);
}

static void expect_two(ax_pjrt_buffer *const *buffers, size_t count, const float *expected) {
  float back[8];
  for (int d = 0; d < 2; d++) {
    CALL(buffer_dimensions, .of = buffers[d]);
    assert_int_equal(buffer_dimensions_args.count, 1);
    assert_int_equal(buffer_dimensions_args.items[0], count);
    read_buffer(buffers[d], back, count * sizeof back[0]);
    assert_memory_equal(back, expected + (size_t)d * count, count * sizeof back[0]);
  }
}

static void drop_event(ax_pjrt_event *event) { CALL(event_destroy, .of = event); }
static void drop_two(ax_pjrt_buffer **buffers) { drop(buffers[0]), drop(buffers[1]); }
static void unload(ax_pjrt_loaded_executable *loaded) { CALL(loaded_destroy, .of = loaded); }

static void expect_sharding(ax_pjrt_loaded_executable *loaded, bool of_result, const char *bytes, size_t count) {
  CALL(loaded_executable, .of = loaded);
  ax_pjrt_executable_shardings_args told = {.struct_size = sizeof told, .of = loaded_executable_args.value};
  const ax_pjrt_shardings *functions = shardings_of(GetPjrtApi());
  expect_no_error("shardings", of_result ? functions->results(&told) : functions->parameters(&told));
  assert_int_equal(told.lengths[0], count);
  if (count > 0) assert_memory_equal(told.items[0], bytes, count);
  CALL(executable_output_dimensions, .of = loaded_executable_args.value);
  assert_int_equal(executable_output_dimensions_args.ranks[0], 1);
  CALL(executable_destroy, .of = loaded_executable_args.value);
}

/* A manual computation whose result is unreduced gives each device's part, and a sum is made of parts that are taken. */
static void test_unreduced(void **state) {
  (void)state;
  static char parts[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<2xf32> " UNREDUCED ") {\n"
                                "  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"d\"}]>] out_shardings=[<@mesh, [{}], unreduced={\"d\"}>] "
                                "manual_axes={\"d\"} (%a: tensor<2xf32>) {\n    sdy.return %a : tensor<2xf32>\n"
                                "  } : (tensor<4xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  static char sum[] = ON("2", "func.func public @main(%x: tensor<2xf32> " UNREDUCED ") -> (tensor<2xf32> " REPLICATED ") {\n"
                              "  %0 = stablehlo.add %x, %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  static char whole[] = ON("2", "func.func public @main(%x: tensor<2xf32> " REPLICATED ") -> (tensor<2xf32> " UNREDUCED ") {\n"
                                "  return %x : tensor<2xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *first = compile_for(client, parts, two_partitions), *second = compile_for(client, sum, two_partitions),
                            *third = compile_for(client, whole, two_partitions);
  ax_pjrt_buffer *x[2], *unreduced[2], *sums[2], *again[2];
  expect_sharding(first, true, "\x08\x06", 2); /* UNREDUCED */
  expect_sharding(second, false, "\x08\x06", 2);
  expect_sharding(second, true, "", 0);
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(first, x, unreduced, NULL);
  run_on_two(second, unreduced, sums, NULL);
  run_on_two(third, sums, again, NULL);
  expect_two(unreduced, 2, (const float[]){1, 2, 3, 4});
  expect_two(sums, 2, (const float[]){8, 12, 8, 12});
  expect_two(again, 2, (const float[]){8, 12, 0, 0});
  drop_two(again);
  run_on_two(second, x, again, NULL); /* buffers that no run has made */
  expect_two(again, 2, (const float[]){8, 12, 8, 12});
  drop_two(again), drop_two(sums), drop_two(unreduced), drop_two(x);
  unload(first), unload(second), unload(third);
  destroy(client);
}

/* A sum over devices that a function makes: each device gives what it has of it, and so does one of blocks. */
static void test_not_reduced(void **state) {
  (void)state;
  static char sums[] = ON("2", "func.func public @main(%x: tensor<4x2xf32> " CUT ") -> (tensor<2xf32> " UNREDUCED ") {\n"
                               "  %0 = call @sum(%x) : (tensor<4x2xf32>) -> tensor<2xf32>\n"
                               "  %1 = sdy.sharding_constraint %0 <@mesh, [{}], unreduced={\"d\"}> : tensor<2xf32>\n"
                               "  return %1 : tensor<2xf32>\n}\n"
                               "func.func private @sum(%x: tensor<4x2xf32>) -> tensor<2xf32> {\n"
                               "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
                               "  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>\n"
                               "  %1 = sdy.sharding_constraint %0 <@mesh, [{}], unreduced={\"d\"}> : tensor<2xf32>\n  return %1 : tensor<2xf32>\n}\n"),
              blocks[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<4xf32> " UNREDUCED ") {\n  return %x : tensor<4xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *one = compile_for(client, sums, two_partitions), *other = compile_for(client, blocks, two_partitions);
  const float data[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t dims[] = {2, 2};
  ax_pjrt_buffer *x[2], *y[2];
  for (int d = 0; d < 2; d++) x[d] = put(client, d, data + (size_t)d * 4, AX_PJRT_F32, dims, 2);
  run_on_two(one, x, y, NULL);
  expect_two(y, 2, (const float[]){4, 6, 12, 14});
  drop_two(x), drop_two(y);
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(other, x, y, NULL);
  expect_two(y, 4, (const float[]){1, 2, 0, 0, 0, 0, 3, 4});
  drop_two(x), drop_two(y);
  unload(one), unload(other);
  destroy(client);
}

/* What devices have by themselves, though the layout says that all have the same; also if a function inside makes it. */
static void test_by_device(void **state) {
  (void)state;
#define OWN(name, privacy, layout)                                                                                                 \
  "func.func " privacy " @" name "(%x: tensor<2xf32> " layout ") -> (tensor<2xf32> " layout ") {\n"                               \
  "  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={\"d\"} (%a: tensor<2xf32>) {\n" \
  "    %1 = stablehlo.partition_id : tensor<ui32>\n    %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<f32>\n"                \
  "    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<2xf32>\n"                                           \
  "    %4 = stablehlo.add %a, %3 : tensor<2xf32>\n    sdy.return %4 : tensor<2xf32>\n"                                             \
  "  } : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"
  static char direct[] = ON("2", OWN("main", "public", REPLICATED));
  static char inside[] = ON("2", "func.func public @main(%x: tensor<2xf32> " REPLICATED ") -> (tensor<2xf32> " REPLICATED ") {\n"
                                 "  %0 = call @own(%x) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n" OWN("own", "private", ""));
  char *const modules[] = {direct, inside};
  ax_pjrt_client *client = create(2);
  for (int m = 0; m < 2; m++) {
    ax_pjrt_loaded_executable *loaded = compile_for(client, modules[m], two_partitions);
    ax_pjrt_buffer *x[2], *own[2], *more[2];
    expect_sharding(loaded, true, "", 0);
    put_two(client, (const float[]){1, 2, 1, 2}, 2, x);
    run_on_two(loaded, x, own, NULL);
    expect_two(own, 2, (const float[]){1, 2, 2, 3});
    for (int again = 0; again < 3; again++) { /* the result of each is the next one's argument */
      run_on_two(loaded, own, more, NULL);
      expect_two(more, 2, (const float[]){1, 2, 3 + (float)again, 4 + (float)again});
      drop_two(own);
      memcpy(own, more, sizeof own);
    }
    drop_two(own), drop_two(x);
    unload(loaded);
  }
  destroy(client);
}

/* A module of replicas is what each device runs, with collectives or without. */
static void test_replicas(void **state) {
  (void)state;
#define REPLICAS(body) "module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32} {\n" body "}\n"
  static char alone[] = REPLICAS("func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                                 "  %0 = stablehlo.add %x, %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  static char together[] = REPLICAS("func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                                    "  %0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n"
                                    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %1 = stablehlo.add %a, %b : tensor<f32>\n"
                                    "    stablehlo.return %1 : tensor<f32>\n  }) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *first = compile_for(client, alone, two_replicas), *second = compile_for(client, together, two_replicas);
  ax_pjrt_buffer *x[2], *doubled[2], *sums[2];
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(first, x, doubled, NULL);
  run_on_two(second, doubled, sums, NULL);
  expect_two(doubled, 2, (const float[]){2, 4, 6, 8});
  expect_two(sums, 2, (const float[]){8, 12, 8, 12});
  drop_two(sums), drop_two(doubled), drop_two(x);
  unload(first), unload(second);
  destroy(client);
}

/* Runs follow on runs, and the error of one is that of all that take its results. */
static void test_failure_flows(void **state) {
  (void)state;
  static char module[] = ON("2", "func.func public @main(%x: tensor<2xf32> " CUT ") -> (tensor<2xf32> " CUT ") {\n"
                                 "  check.expect_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>\n"
                                 "  %0 = stablehlo.add %x, %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions);
  ax_pjrt_buffer *x[4][2];
  ax_pjrt_event *events[4][2];
  put_two(client, (const float[]){1, 2}, 1, x[0]);
  for (int step = 0; step < 3; step++) run_on_two(loaded, x[step], x[step + 1], events[step]);
  expect_two(x[1], 1, (const float[]){2, 4});
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "expect_eq", event_await, .of = events[2][1]);
  CALL(buffer_ready_event, .of = x[3][0]);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "expect_eq", event_await, .of = buffer_ready_event_args.value);
  drop_event(buffer_ready_event_args.value);
  float back;
  CALL(buffer_to_host_buffer, .of = x[3][1], .data = &back, .bytes = sizeof back);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "expect_eq", event_await, .of = buffer_to_host_buffer_args.done);
  drop_event(buffer_to_host_buffer_args.done);
  for (int step = 0; step < 3; step++)
    for (int d = 0; d < 2; d++) drop_event(events[step][d]);
  for (int step = 0; step < 4; step++) drop_two(x[step]);
  unload(loaded);
  destroy(client);
}

/* A caller that has waited for each of its runs before it began the next finds the next over when it has begun; one that has not goes on
   meanwhile, whatever it waits for later. */
static void test_waited_for(void **state) {
  (void)state;
  static char module[] = ON("2", "func.func public @main(%x: tensor<2xf32> " CUT ") -> (tensor<2x200000xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}, {}]>}) {\n"
                                 "  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<2xf32>) -> tensor<2x200000xf32>\n"
                                 "  %1 = stablehlo.iota dim = 1 : tensor<2x200000xf32>\n  %2 = stablehlo.add %0, %1 : tensor<2x200000xf32>\n"
                                 "  %3 = stablehlo.sine %2 : tensor<2x200000xf32>\n  return %3 : tensor<2x200000xf32>\n}\n");
  enum { runs = 6 };
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions);
  ax_pjrt_buffer *x[2], *y[2];
  ax_pjrt_event *events[2];
  put_two(client, (const float[]){1, 2}, 1, x);
  for (int i = 0; i < runs; i++) {
    run_on_two(loaded, x, y, events);
    CALL(event_is_ready, .of = events[0]);
    if (i >= 2) assert_true(event_is_ready_args.value); /* two were waited for */
    CALL(buffer_ready_event, .of = y[1]);
    CALL(event_await, .of = buffer_ready_event_args.value);
    drop_event(buffer_ready_event_args.value);
    drop_event(events[0]), drop_event(events[1]);
    drop_two(y);
  }
  drop_two(x);
  unload(loaded);
  destroy(client);
}

/* Parts of one run's results are another one's argument in any order, alone, and donated. */
static void test_parts_apart(void **state) {
  (void)state;
  static char module[] = ON("2", "func.func public @main(%x: tensor<4xf32> {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) -> "
                                 "(tensor<4xf32> " CUT ") {\n  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions);
  ax_pjrt_buffer *x[2], *once[2], *twice[2], *mixed[2];
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(loaded, x, once, NULL);
  run_on_two(loaded, once, twice, NULL);
  CALL(buffer_is_deleted, .of = once[1]);
  assert_true(buffer_is_deleted_args.value);
  drop_two(once), drop_two(x);
  put_two(client, (const float[]){5, 6, 7, 8}, 2, x);
  run_on_two(loaded, (ax_pjrt_buffer *[]){x[0], twice[1]}, mixed, NULL); /* of two owners */
  expect_two(mixed, 2, (const float[]){10, 12, 24, 32});
  CALL(buffer_copy_to_device, .of = twice[0], .device = device_of(client, 1));
  float back[2];
  read_buffer(buffer_copy_to_device_args.value, back, sizeof back);
  assert_true(back[0] == 4 && back[1] == 8);
  drop(buffer_copy_to_device_args.value);
  drop_two(mixed), drop_two(twice), drop_two(x);
  unload(loaded);
  destroy(client);
}

/* Meshes of one module with the devices in different orders: an argument and a result lie as their own meshes say. */
static void test_orders(void **state) {
  (void)state;
  static char to[] = TURNED("[{\"d\"}]", "@mesh, [{\"d\"}]"), whole[] = TURNED("[{}]", "@mesh, [{\"d\"}]"),
              back[] = MODULE("2", "sdy.mesh @mesh = <[\"d\"=2]>\nsdy.mesh @turned = <[\"d\"=2], device_ids=[1, 0]>\n"
                                   "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@turned, "
                                   "[{\"d\"}]>}) {\n  return %x : tensor<4xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *one = compile_for(client, to, two_partitions), *other = compile_for(client, back, two_partitions),
                            *cut = compile_for(client, whole, two_partitions);
  ax_pjrt_buffer *x[2], *y[2], *z[2];
  expect_sharding(one, false, "\x08\x03\x1a\x01\x02\x22\x02\x01\x00", 9);
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(one, x, y, NULL);
  expect_two(y, 2, (const float[]){3, 4, 1, 2});
  run_on_two(other, y, z, NULL);
  expect_two(z, 2, (const float[]){1, 2, 3, 4});
  drop_two(y);
  run_on_two(one, z, y, NULL);
  expect_two(y, 2, (const float[]){3, 4, 1, 2});
  drop_two(x), drop_two(y), drop_two(z);
  put_two(client, (const float[]){1, 2, 3, 4, 1, 2, 3, 4}, 4, x);
  run_on_two(cut, x, y, NULL);
  expect_two(y, 2, (const float[]){1, 2, 3, 4});
  drop_two(x), drop_two(y);
  unload(one), unload(other), unload(cut);
  destroy(client);
}

/* An argument that lies on two devices, of a program that uses none of them; and values that are to lie alike. */
static void test_layouts_said(void **state) {
  (void)state;
  static char unused[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> tensor<4xf32> {\n"
                                 "  %0 = stablehlo.constant dense<7.0> : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"),
              alike[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> tensor<4xf32> {\n"
                                "  %0 = stablehlo.iota dim = 0 : tensor<4xf32>\n  sdy.sharding_group %x group_id=5 : tensor<4xf32>\n"
                                "  sdy.sharding_group %0 group_id=5 : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *one = compile_for(client, unused, two_partitions), *other = compile_for(client, alike, two_partitions);
  ax_pjrt_buffer *x[2], *y[2];
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(one, x, y, NULL);
  expect_two(y, 4, (const float[]){7, 7, 7, 7, 7, 7, 7, 7});
  drop_two(y);
  run_on_two(other, x, y, NULL);
  expect_two(y, 2, (const float[]){0, 1, 2, 3});
  drop_two(x), drop_two(y);
  unload(one), unload(other);
  destroy(client);
}

/* Results are in the memory that the module says; all kinds are the same memory here. */
static void test_memories(void **state) {
  (void)state;
#define IN(kind)                                                                                                                        \
  ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<4xf32> {mhlo.memory_kind = \"" kind                              \
          "\", sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) {\n  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n")
  static char pinned[] = IN("pinned_host"), none[] = IN("disk");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, pinned, two_partitions), *refused;
  expect_error(compile(client, none, two_partitions, 6, &refused), AX_PJRT_INVALID_ARGUMENT, "no memory of the kind disk");
  CALL(loaded_executable, .of = loaded);
  CALL(executable_parameter_memory_kinds, .of = loaded_executable_args.value);
  assert_string_equal(executable_parameter_memory_kinds_args.texts[0], "device");
  CALL(executable_output_memory_kinds, .of = loaded_executable_args.value);
  assert_string_equal(executable_output_memory_kinds_args.texts[0], "pinned_host");
  CALL(executable_destroy, .of = loaded_executable_args.value);
  ax_pjrt_buffer *x[2], *once[2], *twice[2];
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(loaded, x, once, NULL);
  run_on_two(loaded, once, twice, NULL);
  expect_two(twice, 2, (const float[]){4, 8, 12, 16});
  CALL(buffer_memory, .of = twice[1]);
  CALL(memory_kind, .of = buffer_memory_args.value);
  assert_string_equal(memory_kind_args.text, "pinned_host");
  CALL(buffer_device, .of = twice[1]);
  assert_ptr_equal(buffer_device_args.value, device_of(client, 1));
  drop_two(x), drop_two(once), drop_two(twice);
  unload(loaded);
  destroy(client);
}

/* A loop that adds to a sum which stays in parts: the sum is made once, behind the loop, and the program's text says so. */
static void test_sums_of_loops(void **state) {
  (void)state;
  static char text[8192], module[] = ON("2",
      "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<1xf32> " REPLICATED ") {\n  %z = stablehlo.constant dense<0.0> : tensor<1xf32>\n"
      "  %a = sdy.sharding_constraint %z <@mesh, [{}], unreduced={\"d\"}> : tensor<1xf32>\n  %c = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %r:2 = stablehlo.while(%i = %c, %y = %a) : tensor<i32>, tensor<1xf32>\n  cond {\n    %n = stablehlo.constant dense<3> : tensor<i32>\n"
      "    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  } do {\n"
      "    %o = stablehlo.constant dense<1> : tensor<i32>\n    %1 = stablehlo.add %i, %o : tensor<i32>\n    %f = stablehlo.constant dense<1.0> : tensor<4x1xf32>\n"
      "    %2 = stablehlo.dot_general %x, %f, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4x1xf32>) -> tensor<1xf32>\n"
      "    %3 = sdy.sharding_constraint %2 <@mesh, [{}], unreduced={\"d\"}> : tensor<1xf32>\n    %4 = stablehlo.add %y, %3 : tensor<1xf32>\n"
      "    %5 = sdy.sharding_constraint %4 <@mesh, [{}], unreduced={\"d\"}> : tensor<1xf32>\n    stablehlo.return %1, %5 : tensor<i32>, tensor<1xf32>\n  }\n"
      "  %s = sdy.sharding_constraint %r#1 <@mesh, [{}]> : tensor<1xf32>\n  return %s : tensor<1xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions);
  ax_pjrt_buffer *x[2], *y[2];
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(loaded, x, y, NULL);
  expect_two(y, 1, (const float[]){30, 30});
  CALL(loaded_executable, .of = loaded);
  ax_pjrt_program program = {.struct_size = sizeof program, .code = text, .code_bytes = sizeof text};
  CALL(executable_optimized_program, .of = loaded_executable_args.value, .program = &program);
  text[program.code_bytes] = '\0';
  const char *loop = strstr(text, "stablehlo.while"), *sum = strstr(text, "stablehlo.all_reduce");
  const char *end = loop != NULL ? strstr(loop, "\n    }) : ") : NULL;
  assert_true(end != NULL && sum != NULL && end < sum);
  assert_null(strstr(sum + 1, "stablehlo.all_reduce"));
  CALL(executable_destroy, .of = loaded_executable_args.value);
  drop_two(x), drop_two(y);
  unload(loaded);
  destroy(client);
}

/* How a value lies, as JAX asks for it: a function and its data in the module. */
typedef struct asked {
  char bytes[64];
  size_t count;
  const char *error;
} asked;
typedef struct answer { /* as executables.c has it */
  const char *sharding;
  size_t sharding_bytes;
  const char *error;
  void *scratch;
  void (*free_error)(struct answer *answer);
} answer;
static void be_told(void *data, answer *told) {
  asked *a = data;
  a->count = told->sharding_bytes < sizeof a->bytes ? told->sharding_bytes : sizeof a->bytes;
  memcpy(a->bytes, told->sharding, a->count);
  told->error = a->error;
}

/* The module with whom it names, as JAX writes that; %s is there once. */
static void name_asked(const char *module, const void *who, size_t bytes, char *out, size_t room) {
  char text[3 * 16 + 1] = "";
  const char *at = strstr(module, "%s");
  for (size_t i = 0; i < bytes; i++) snprintf(text + 3 * i, 4, "\\%02X", ((const unsigned char *)who)[i]);
  snprintf(out, room, "%.*s%s%s", (int)(at - module), module, text, at + 2);
}

#define ASKS "stablehlo.custom_call @InspectSharding"
#define FOR " {has_side_effect = true, backend_config = \"%s\"}"
#define COUNTED "%c = stablehlo.constant dense<0> : tensor<i32>\n  %n = stablehlo.constant dense<3> : tensor<i32>\n  "

/* In a loop it is told how a carry lies; in a manual computation, that it lies by hand. */
static void test_inspected_inside(void **state) {
  (void)state;
  static const struct {
    const char *module, *told;
    size_t bytes;
  } cases[] = {
      {ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> tensor<4xf32> {\n  " COUNTED
               "%0:2 = stablehlo.while(%i = %c, %y = %x) : tensor<i32>, tensor<4xf32>\n  cond {\n    %1 = stablehlo.compare LT, %i, %n : "
               "(tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  } do {\n    %o = stablehlo.constant dense<1> : tensor<i32>\n"
               "    %1 = stablehlo.add %i, %o : tensor<i32>\n    %2 = stablehlo.add %y, %y : tensor<4xf32>\n"
               "    %3 = " ASKS "(%2)" FOR " : (tensor<4xf32>) -> tensor<4xf32>\n    stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>\n  }\n"
               "  return %0#1 : tensor<4xf32>\n}\n"),
       "\x08\x03\x1a\x01\x02\x4a\x01\x02\x52\x01\x00", 11},
      {ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> tensor<4xf32> {\n"
               "  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"d\"}]>] out_shardings=[<@mesh, [{\"d\"}]>] manual_axes={\"d\"} "
               "(%y: tensor<2xf32>) {\n    %1 = " ASKS "(%y)" FOR " : (tensor<2xf32>) -> tensor<2xf32>\n    sdy.return %y : tensor<2xf32>\n"
               "  } : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"),
       "\x08\x04", 2},
  };
  ax_pjrt_client *client = create(2);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    asked a = {.count = 0};
    const struct {
      void (*call)(void *data, answer *told);
      void *data;
    } who = {be_told, &a};
    char module[4096];
    name_asked(cases[i].module, &who, sizeof who, module, sizeof module);
    unload(compile_for(client, module, two_partitions));
    assert_int_equal(a.count, cases[i].bytes);
    assert_memory_equal(a.bytes, cases[i].told, cases[i].bytes);
  }
  destroy(client);
}

static void test_inspected(void **state) {
  (void)state;
  static const char before[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> tensor<4xf32> {\n  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
                                       "  return %0 : tensor<4xf32>\n}\nfunc.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                                       "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  %1 = stablehlo.custom_call @InspectSharding(%0) "
                                       "{has_side_effect = true, backend_config = \"%s\"} : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  asked a = {.count = 0};
  const struct {
    void (*call)(void *data, answer *told);
    void *data;
  } who = {be_told, &a};
  char module[4096], other[4096];
  const char *at = strstr(before, "%s");
  name_asked(before, &who, sizeof who, module, sizeof module);
  snprintf(other, sizeof other, "%.*sno pointers%s", (int)(at - before), before, at + 2);
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions), *none = compile_for(client, other, two_partitions);
  assert_int_equal(a.count, 11);
  assert_memory_equal(a.bytes, "\x08\x03\x1a\x01\x02\x4a\x01\x02\x52\x01\x00", 11); /* two tiles over device 0 and on */
  ax_pjrt_buffer *x[2], *y[2];
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  run_on_two(loaded, x, y, NULL);
  expect_two(y, 2, (const float[]){2, 4, 6, 8});
  drop_two(x), drop_two(y);
  a.error = "not now";
  ax_pjrt_loaded_executable *refused;
  expect_error(compile(client, module, two_partitions, 6, &refused), AX_PJRT_INTERNAL, "not now");
  unload(loaded), unload(none);
  destroy(client);
}

/* Threads run one program on one argument, and read and drop what they get, each in its own order. */
typedef struct task {
  ax_pjrt_loaded_executable *loaded;
  ax_pjrt_buffer *const *x;
  int number, wrong;
} task;

static void *run_often(void *context) {
  task *t = context;
  for (int round = 0; round < 50; round++) {
    ax_pjrt_buffer *once[2], *twice[2];
    float back[2];
    run_on_two(t->loaded, t->x, once, NULL);
    const int d = (t->number + round) % 2;
    if (round % 3 == 0) read_buffer(once[d], back, sizeof back);
    run_on_two(t->loaded, once, twice, NULL);
    drop(once[d]);
    read_buffer(twice[1 - d], back, sizeof back);
    t->wrong += back[0] != (1 - d == 0 ? 4 : 12) || back[1] != (1 - d == 0 ? 8 : 16);
    drop(once[1 - d]);
    drop_two(twice);
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  enum { threads = 4 };
  static char module[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<4xf32> " CUT ") {\n"
                                 "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions);
  ax_pjrt_buffer *x[2];
  pthread_t thread[threads];
  task tasks[threads];
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  for (int i = 0; i < threads; i++) {
    tasks[i] = (task){loaded, x, i, 0};
    assert_int_equal(pthread_create(&thread[i], NULL, run_often, &tasks[i]), 0);
  }
  for (int i = 0; i < threads; i++) {
    pthread_join(thread[i], NULL);
    assert_int_equal(tasks[i].wrong, 0);
  }
  drop_two(x);
  unload(loaded);
  destroy(client);
}

static int released;
static void count_released(void *data, void *context) { released += data != NULL && context == NULL; }

static ax_pjrt_buffer *view(ax_pjrt_client *client, int device, float *data) {
  const int64_t dims[] = {2};
  CALL(client_create_view_of_device_buffer, .of = client, .data = data, .dims = dims, .rank = 1, .element = AX_PJRT_F32,
       .device = device_of(client, device), .release = count_released);
  return client_create_view_of_device_buffer_args.value;
}

/* Buffers of the host's are put together once for all runs, in each company that they are in, and the memory of one goes with it. */
static void test_taken_again(void **state) {
  (void)state;
  static char module[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<4xf32> " CUT ") {\n"
                                 "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  _Alignas(64) static float data[3][16] = {{1, 2}, {3, 4}, {5, 6}}; /* each in lines of its own, so that it does not move */
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions);
  ax_pjrt_buffer *x[2] = {view(client, 0, data[0]), view(client, 1, data[1])}, *other = view(client, 1, data[2]), *y[2];
  for (int round = 0; round < 3; round++) {
    run_on_two(loaded, x, y, NULL);
    expect_two(y, 2, (const float[]){2, 4, 6, 8});
    drop_two(y);
    run_on_two(loaded, (ax_pjrt_buffer *[]){x[0], other}, y, NULL);
    expect_two(y, 2, (const float[]){2, 4, 10, 12});
    drop_two(y);
  }
  assert_int_equal(released, 0);
  drop(other);
  assert_int_equal(released, 1);
  run_on_two(loaded, x, y, NULL);
  expect_two(y, 2, (const float[]){2, 4, 6, 8});
  drop_two(y);
  drop(x[1]);
  assert_int_equal(released, 2);
  float back[2];
  read_buffer(x[0], back, sizeof back);
  assert_true(back[0] == 1 && back[1] == 2);
  drop(x[0]);
  assert_int_equal(released, 3);
  unload(loaded);
  destroy(client);
}

/* A buffer that went into another company, or into one with a part of a result, takes its memory with it: the first company does not keep it. */
static void test_other_company(void **state) {
  (void)state;
  static char module[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<4xf32> " CUT ") {\n"
                                 "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  _Alignas(64) static float data[3][16] = {{1, 2}, {3, 4}, {5, 6}};
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded = compile_for(client, module, two_partitions);
  ax_pjrt_buffer *x[2] = {view(client, 0, data[0]), view(client, 1, data[1])}, *other = view(client, 1, data[2]), *y[2], *z[2];
  released = 0;
  run_on_two(loaded, x, y, NULL);
  expect_two(y, 2, (const float[]){2, 4, 6, 8});
  run_on_two(loaded, (ax_pjrt_buffer *[]){x[0], other}, z, NULL);
  expect_two(z, 2, (const float[]){2, 4, 10, 12});
  drop_two(z);
  drop(x[0]);
  assert_int_equal(released, 1);
  run_on_two(loaded, (ax_pjrt_buffer *[]){y[0], other}, z, NULL); /* y: of a result */
  expect_two(z, 2, (const float[]){4, 8, 10, 12});
  drop_two(y), drop_two(z);
  drop(other);
  assert_int_equal(released, 2);
  drop(x[1]);
  assert_int_equal(released, 3);
  unload(loaded);
  destroy(client);
}

/* Whichever allocation fails, the caller hears of it, and nothing is left. */
typedef struct attempt {
  ax_pjrt_client *client;
  ax_pjrt_loaded_executable *loaded;
  ax_pjrt_buffer *x[2], *result[2];
  ax_pjrt_event *events[2];
} attempt;

static ax_pjrt_error *try_run(attempt *a) {
  ax_pjrt_buffer *const *const lists[] = {&a->x[0], &a->x[1]};
  ax_pjrt_buffer **const outputs[] = {&a->result[0], &a->result[1]};
  float back[2];
  ax_pjrt_error *error;
  TRY(loaded_execute, .of = a->loaded, .arguments = lists, .device_count = 2, .argument_count = 1, .outputs = outputs, .events = a->events);
  TRY(event_await, .of = a->events[1]);
  TRY(buffer_to_host_buffer, .of = a->result[1], .data = back, .bytes = sizeof back);
  ax_pjrt_event_await_args await = {.struct_size = sizeof await, .of = buffer_to_host_buffer_args.done};
  error = GetPjrtApi()->event_await(&await);
  drop_event(buffer_to_host_buffer_args.done);
  if (error == NULL) assert_true(back[0] == 2 && back[1] == 4);
  return error;
}

static ax_pjrt_error *try_all(attempt *a) {
  static char module[] = ON("2", "sdy.mesh @turned = <[\"d\"=2], device_ids=[1, 0]>\nfunc.func public @main(%x: tensor<2xf32> " UNREDUCED
                                 ") -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@turned, [{}]>}) {\n  return %x : tensor<2xf32>\n}\n");
  const ax_pjrt_named two = {.struct_size = sizeof two, .name = "num_devices", .name_length = 11, .kind = AX_PJRT_INTEGER, .integer = 2, .count = 1};
  ax_pjrt_error *error;
  TRY(client_create, .options = &two, .option_count = 1);
  a->client = client_create_args.client;
  if ((error = compile(a->client, module, two_partitions, 6, &a->loaded)) != NULL) return error;
  for (int d = 0; d < 2; d++)
    if ((error = try_put(a->client, d, (const float[]){1, 2}, 2, &a->x[d])) != NULL) return error;
  return try_run(a);
}

static ax_status attempt_all(void *context) {
  attempt a = {0};
  (void)context;
  ax_pjrt_error *error = try_all(&a);
  for (int d = 0; d < 2; d++) {
    if (a.events[d] != NULL) drop_event(a.events[d]);
    drop(a.x[d]), drop(a.result[d]);
  }
  unload(a.loaded);
  if (a.client != NULL) destroy(a.client);
  return status_of_try(error);
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(attempt_all, NULL) > 100);
}

/* Allocations that are live, from before a client is made. */
static atomic_long live;
static void *allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);
  if (memory != NULL) atomic_fetch_add(&live, 1);
  return memory;
}
static void release(void *user, void *memory) {
  (void)user;
  if (memory != NULL) atomic_fetch_sub(&live, 1);
  free(memory);
}

/* Nothing is left by a run: of 100,000 of them, on one device and on two, no allocation is live that was not after the first ones. */
static void test_many(void **state) {
  (void)state;
  enum { first = 100, many = 50000 };
  static char one[] = MODULE("1", "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.negate %x : tensor<2xf32>\n"
                                  "  return %0 : tensor<2xf32>\n}\n");
  static char two[] = ON("2", "func.func public @main(%x: tensor<4xf32> " CUT ") -> (tensor<4xf32> " CUT ") {\n"
                              "  %0 = stablehlo.negate %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  ax_set_allocator(&(ax_allocator){allocate, release, NULL});
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *alone, *both = compile_for(client, two, two_partitions);
  expect_no_error("compile", compile(client, one, "", 0, &alone));
  ax_pjrt_buffer *x[2], *next[2], *single;
  put_two(client, (const float[]){1, 2, 3, 4}, 2, x);
  CALL(buffer_copy_to_device, .of = x[0], .device = device_of(client, 0));
  single = buffer_copy_to_device_args.value;
  long settled = 0;
  for (int round = 0; round < first + many; round++) {
    if (round == first) settled = atomic_load(&live);
    ax_pjrt_buffer *result = NULL, *const list[] = {single}, *const *const lists[] = {list}, **const outputs[] = {&result};
    ax_pjrt_event *event, *events[2];
    CALL(loaded_execute, .of = alone, .arguments = lists, .device_count = 1, .argument_count = 1, .outputs = outputs, .events = &event);
    drop(single), drop_event(event);
    single = result;
    run_on_two(both, x, next, events);
    drop_two(x), drop_event(events[0]), drop_event(events[1]);
    memcpy(x, next, sizeof x);
    if (round % 1000 != first - 1 && round + 1 < first + many) continue;
    expect_two(x, 2, round % 2 == 0 ? (const float[]){-1, -2, -3, -4} : (const float[]){1, 2, 3, 4}); /* also waits */
    float back[2];
    read_buffer(single, back, sizeof back);
  }
  assert_in_range(atomic_load(&live), 0, settled + 8);
  drop(single), drop_two(x);
  unload(alone), unload(both);
  destroy(client);
  ax_set_allocator(NULL);
  assert_int_equal(atomic_load(&live), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_unreduced), cmocka_unit_test(test_not_reduced), cmocka_unit_test(test_by_device), cmocka_unit_test(test_replicas),
                                     cmocka_unit_test(test_failure_flows), cmocka_unit_test(test_waited_for), cmocka_unit_test(test_parts_apart), cmocka_unit_test(test_orders), cmocka_unit_test(test_layouts_said), cmocka_unit_test(test_inspected), cmocka_unit_test(test_sums_of_loops), cmocka_unit_test(test_inspected_inside), cmocka_unit_test(test_memories),
                                     cmocka_unit_test(test_threads), cmocka_unit_test(test_taken_again), cmocka_unit_test(test_other_company), cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
