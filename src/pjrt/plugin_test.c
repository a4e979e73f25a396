/* The plugin as jaxlib drives it, through the table of its functions alone, and with every misuse that a caller may make. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "support/plugin.h"

/* --- Clients, devices, memories --- */

static void test_table(void **state) {
  (void)state;
  const ax_pjrt_api *api = GetPjrtApi();
  assert_int_equal(api->struct_size, sizeof *api);
  assert_int_equal(api->version.major, 0);
  CALL(plugin_initialize, .extensions = NULL);
  CALL(plugin_attributes, .extensions = NULL);
  assert_int_equal(plugin_attributes_args.count, 2);
  REFUSES(AX_PJRT_UNIMPLEMENTED, "no PJRT_Client_DmaMap", client_dma_map, .data = NULL);
}

/* What the environment says of the number of devices: Axle's own word counts, then XLA's, the last one. */
static void test_count(void **state) {
  static const struct {
    const char *own, *flags;
    size_t count;
  } cases[] = {{NULL, NULL, 1},
               {"3", NULL, 3},
               {"3", "--xla_force_host_platform_device_count=5", 3},
               {"", "--xla_cpu_x=1 --xla_force_host_platform_device_count=5 --xla_y", 5},
               {NULL, "--xla_force_host_platform_device_count=5\t--xla_force_host_platform_device_count=6", 6},
               {NULL, "--xla_cpu_x=1", 1}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cases[i].own != NULL ? setenv("AXLE_DEVICES", cases[i].own, 1) : unsetenv("AXLE_DEVICES");
    cases[i].flags != NULL ? setenv("XLA_FLAGS", cases[i].flags, 1) : unsetenv("XLA_FLAGS");
    CALL(client_create, );
    CALL(client_devices, .of = client_create_args.client);
    assert_int_equal(client_devices_args.count, cases[i].count);
    destroy(client_create_args.client);
  }
  unsetenv("XLA_FLAGS");
  setenv("AXLE_DEVICES", "two", 1);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "AXLE_DEVICES is no number: two", client_create, );
  unsetenv("AXLE_DEVICES");
  setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4x", 1);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "--xla_force_host_platform_device_count= is no number: 4x", client_create, );
  unsetenv("XLA_FLAGS");
}

static void test_devices(void **state) {
  (void)state;
  ax_pjrt_client *client = create(4);
  CALL(client_devices, .of = client);
  CALL(client_addressable_devices, .of = client);
  CALL(client_addressable_memories, .of = client);
  assert_int_equal(client_devices_args.count, 4);
  assert_int_equal(client_addressable_devices_args.count, 4);
  assert_int_equal(client_addressable_memories_args.count, 12);
  ax_pjrt_device *device = device_of(client, 3);
  assert_ptr_equal(device, client_devices_args.items[3]);
  CALL(device_description, .of = device);
  CALL(device_description_id, .of = device_description_args.value);
  CALL(device_description_to_string, .of = device_description_args.value);
  CALL(device_local_hardware_id, .of = device);
  CALL(device_is_addressable, .of = device);
  assert_int_equal(device_description_id_args.value, 3);
  assert_int_equal(device_local_hardware_id_args.value, 3);
  assert_true(device_is_addressable_args.value);
  assert_string_equal(device_description_to_string_args.text, "AxleDevice(id=3)");
  CALL(device_default_memory, .of = device);
  CALL(memory_kind, .of = device_default_memory_args.value);
  CALL(memory_id, .of = device_default_memory_args.value);
  CALL(memory_addressable_by_devices, .of = device_default_memory_args.value);
  assert_string_equal(memory_kind_args.text, "device");
  assert_int_equal(memory_id_args.value, 9);
  assert_ptr_equal(memory_addressable_by_devices_args.items[0], device);
  int assignment[4] = {9, 9, 9, 9};
  CALL(client_default_assignment, .of = client, .replicas = 2, .partitions = 2, .count = 4, .assignment = assignment);
  assert_int_equal(assignment[3], 3);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "no device 4: there are 4", client_lookup_device, .of = client, .id = 4);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "no device -1", client_lookup_addressable_device, .of = client, .id = -1);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "3 replicas of 2 partitions on 4 devices", client_default_assignment, .of = client, .replicas = 3,
          .partitions = 2, .count = 6, .assignment = assignment);
  REFUSES(AX_PJRT_UNIMPLEMENTED, "no memory of their own", device_memory_stats, .of = device);
  destroy(client);
}

static void test_topology(void **state) {
  (void)state;
  ax_pjrt_client *client = create(2);
  CALL(client_topology, .of = client);
  CALL(topology_platform_name, .of = client_topology_args.value);
  CALL(topology_device_descriptions, .of = client_topology_args.value);
  CALL(topology_fingerprint, .of = client_topology_args.value);
  assert_string_equal(topology_platform_name_args.text, "axle");
  assert_int_equal(topology_device_descriptions_args.count, 2);
  assert_true(topology_fingerprint_args.value != 0);
  destroy(client);
}

static int released;
static void count_release(void *data) { released += data != NULL; }
static void count_view(void *data, void *context) { released += data != NULL && context == NULL; }

/* Callers hang what they like on a memory, by keys of theirs. */
static void test_memory_data(void **state) {
  (void)state;
  int key, other, data[2];
  ax_pjrt_client *client = create(1);
  CALL(client_addressable_memories, .of = client);
  ax_pjrt_memory *memory = client_addressable_memories_args.items[0];
  const ax_pjrt_memory_functions *own = *(const ax_pjrt_memory_functions *const *)(const void *)memory;
  released = 0;
  assert_null(own->get_data(memory, &key));
  own->set_data(memory, &key, &data[0], count_release);
  own->set_data(memory, &other, &data[1], count_release);
  assert_ptr_equal(own->get_data(memory, &key), &data[0]);
  own->set_data(memory, &key, &data[1], count_release);
  assert_int_equal(released, 1);
  assert_ptr_equal(own->get_data(memory, &key), &data[1]);
  destroy(client);
  assert_int_equal(released, 3);
}

static void test_wrong_options(void **state) {
  (void)state;
  const ax_pjrt_named none = {.name = "num_devices", .name_length = 11, .kind = AX_PJRT_INTEGER, .integer = 0};
  const ax_pjrt_named text = {.name = "num_devices", .name_length = 11, .kind = AX_PJRT_STRING, .string = "2", .count = 1};
  const ax_pjrt_named many = {.name = "num_devices", .name_length = 11, .kind = AX_PJRT_INTEGER, .integer = 65537};
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "0 devices", client_create, .options = &none, .option_count = 1);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "no integer", client_create, .options = &text, .option_count = 1);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "there may be 1 to 65536", client_create, .options = &many, .option_count = 1);
}

/* --- Buffers --- */

static void test_buffers(void **state) {
  (void)state;
  ax_pjrt_client *client = create(2);
  const float data[6] = {0, 1, 2, 3, 4, 5};
  const int64_t dims[] = {2, 3};
  float back[6] = {0};
  ax_pjrt_buffer *buffer = put(client, 1, data, AX_PJRT_F32, dims, 2);
  CALL(buffer_element_type, .of = buffer);
  CALL(buffer_dimensions, .of = buffer);
  CALL(buffer_on_device_bytes, .of = buffer);
  CALL(buffer_device, .of = buffer);
  CALL(buffer_is_on_cpu, .of = buffer);
  assert_int_equal(buffer_element_type_args.value, AX_PJRT_F32);
  assert_memory_equal(buffer_dimensions_args.items, dims, sizeof dims);
  assert_int_equal(buffer_on_device_bytes_args.value, sizeof data);
  assert_ptr_equal(buffer_device_args.value, device_of(client, 1));
  assert_true(buffer_is_on_cpu_args.value);
  { /* how many bytes it takes */
    CALL(buffer_to_host_buffer, .of = buffer);
    assert_int_equal(buffer_to_host_buffer_args.bytes, sizeof data);
  }
  read_buffer(buffer, back, sizeof back);
  assert_memory_equal(back, data, sizeof data);
  { /* another order of dimensions on the host */
    const int64_t order[] = {0, 1};
    ax_pjrt_memory_layout layout = {.tiled = {.minor_to_major = order, .rank = 2}};
    CALL(buffer_to_host_buffer, .of = buffer, .layout = &layout, .data = back, .bytes = sizeof back);
    CALL(event_await, .of = buffer_to_host_buffer_args.done);
    CALL(event_destroy, .of = buffer_to_host_buffer_args.done);
    assert_memory_equal(back, ((const float[]){0, 3, 1, 4, 2, 5}), sizeof back);
  }
  { /* a copy on another device outlives it */
    CALL(buffer_copy_to_device, .of = buffer, .device = device_of(client, 0));
    CALL(buffer_unsafe_pointer, .of = buffer);
    CALL(buffer_device_pointer, .of = buffer_copy_to_device_args.value);
    assert_true((uintptr_t)buffer_device_pointer_args.value != buffer_unsafe_pointer_args.value);
    CALL(buffer_delete, .of = buffer);
    read_buffer(buffer_copy_to_device_args.value, back, sizeof back);
    assert_memory_equal(back, data, sizeof data);
    drop(buffer_copy_to_device_args.value);
  }
  CALL(buffer_is_deleted, .of = buffer);
  assert_true(buffer_is_deleted_args.value);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "deleted, or donated", buffer_to_host_buffer, .of = buffer, .data = back, .bytes = sizeof back);
  { /* nor will it ever be ready */
    CALL(buffer_ready_event, .of = buffer);
    REFUSES(AX_PJRT_INVALID_ARGUMENT, "deleted, or donated", event_await, .of = buffer_ready_event_args.value);
    CALL(event_destroy, .of = buffer_ready_event_args.value);
  }
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "no external references", buffer_decrease_references, .of = buffer);
  drop(buffer);
  destroy(client);
}

/* Of host memory: strided, lent until the buffer is gone, and what cannot be taken. */
static void test_from_host(void **state) {
  (void)state;
  ax_pjrt_client *client = create(1);
  ax_pjrt_device *device = device_of(client, 0);
  static const int16_t data[] = {0, 1, 2, 3, 4, 5};
  const int64_t dims[] = {2, 2}, strides[] = {2, 6}, wrong[] = {2, -1};
  int16_t back[4];
  CALL(client_buffer_from_host_buffer, .of = client, .data = data, .element = AX_PJRT_S16, .dims = dims, .rank = 2, .strides = strides,
       .stride_count = 2, .device = device);
  CALL(event_destroy, .of = client_buffer_from_host_buffer_args.done);
  read_buffer(client_buffer_from_host_buffer_args.value, back, sizeof back);
  assert_memory_equal(back, ((const int16_t[]){0, 3, 1, 4}), sizeof back);
  drop(client_buffer_from_host_buffer_args.value);
  {
    CALL(client_buffer_from_host_buffer, .of = client, .data = data, .element = AX_PJRT_S16, .dims = dims, .rank = 2,
         .semantics = AX_PJRT_SHARED, .device = device);
    ax_pjrt_event *done = client_buffer_from_host_buffer_args.done;
    ax_pjrt_buffer *buffer = client_buffer_from_host_buffer_args.value;
    CALL(buffer_unsafe_pointer, .of = buffer);
    assert_int_equal(buffer_unsafe_pointer_args.value, (uintptr_t)data);
    CALL(event_is_ready, .of = done);
    assert_false(event_is_ready_args.value);
    drop(buffer);
    event_is_ready_args.value = false;
    expect_no_error("event_is_ready", GetPjrtApi()->event_is_ready(&event_is_ready_args));
    assert_true(event_is_ready_args.value);
    CALL(event_destroy, .of = done);
  }
  REFUSES(AX_PJRT_UNIMPLEMENTED, "element type 23", client_buffer_from_host_buffer, .of = client, .data = data, .element = AX_PJRT_TOKEN,
          .device = device);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "dimension 1 is -1", client_buffer_from_host_buffer, .of = client, .data = data,
          .element = AX_PJRT_S16, .dims = wrong, .rank = 2, .device = device);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "1 strides for 2 dimensions", client_buffer_from_host_buffer, .of = client, .data = data,
          .element = AX_PJRT_S16, .dims = dims, .rank = 2, .strides = strides, .stride_count = 1, .device = device);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "neither a device nor a memory", client_buffer_from_host_buffer, .of = client, .data = data,
          .element = AX_PJRT_S16, .dims = dims, .rank = 2);
  destroy(client);
}

/* Of memory that is there: as it is, copied from another layout, or refused. */
static void test_views(void **state) {
  (void)state;
  ax_pjrt_client *client = create(1);
  ax_pjrt_device *device = device_of(client, 0);
  _Alignas(16) static int16_t data[] = {0, 1, 2, 3, 4, 5};
  const int64_t dims[] = {2, 3}, order[] = {0, 1};
  int16_t back[6];
  ax_pjrt_memory_layout columns = {.tiled = {.minor_to_major = order, .rank = 2}};
  released = 0;
  {
    CALL(client_create_view_of_device_buffer, .of = client, .data = data, .dims = dims, .rank = 2, .element = AX_PJRT_S16, .device = device,
         .release = count_view);
    CALL(buffer_unsafe_pointer, .of = client_create_view_of_device_buffer_args.value);
    assert_int_equal(buffer_unsafe_pointer_args.value, (uintptr_t)data);
    assert_int_equal(released, 0);
    drop(client_create_view_of_device_buffer_args.value);
    assert_int_equal(released, 1);
  }
  CALL(client_create_view_of_device_buffer, .of = client, .data = data, .dims = dims, .rank = 2, .element = AX_PJRT_S16, .device = device,
       .layout = &columns, .release = count_view);
  assert_int_equal(released, 2);
  read_buffer(client_create_view_of_device_buffer_args.value, back, sizeof back);
  assert_memory_equal(back, ((const int16_t[]){0, 2, 4, 1, 3, 5}), sizeof back);
  drop(client_create_view_of_device_buffer_args.value);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "is not aligned to 4 bytes", client_create_view_of_device_buffer, .of = client, .data = data + 1, .dims = dims,
          .rank = 1, .element = AX_PJRT_S16, .device = device, .release = count_view);
  columns.tiled.rank = 1;
  REFUSES(AX_PJRT_UNIMPLEMENTED, "not of 2 dimensions", client_create_view_of_device_buffer, .of = client, .data = data, .dims = dims, .rank = 2,
          .element = AX_PJRT_S16, .device = device, .layout = &columns);
  assert_int_equal(released, 2);
  destroy(client);
}

static void note_error(ax_pjrt_error *error, void *context) {
  *(int *)context += error != NULL ? 10 : 1;
  GetPjrtApi()->error_destroy(&(ax_pjrt_error_destroy_args){.struct_size = sizeof(ax_pjrt_error_destroy_args), .of = error});
}

static void test_events(void **state) {
  (void)state;
  int told = 0;
  CALL(event_create, .extensions = NULL);
  ax_pjrt_event *event = event_create_args.value;
  CALL(event_on_ready, .of = event, .callback = note_error, .context = &told);
  assert_int_equal(told, 0);
  CALL(event_set, .of = event, .code = AX_PJRT_ABORTED, .message = "no more", .message_length = 7);
  assert_int_equal(told, 10);
  REFUSES(AX_PJRT_ABORTED, "no more", event_error, .of = event);
  REFUSES(AX_PJRT_ABORTED, "no more", event_await, .of = event);
  REFUSES(AX_PJRT_FAILED_PRECONDITION, "come about already", event_set, .of = event);
  CALL(event_destroy, .of = event);
}

static void destroy_event(ax_pjrt_error *error, void *context) {
  note_error(error, &(int){0});
  CALL(event_destroy, .of = context);
}

/* A callback may destroy the event; one that never comes about tells so. */
static void test_events_end(void **state) {
  (void)state;
  static char long_text[3001];
  int told = 0;
  memset(long_text, 'x', sizeof long_text - 1);
  {
    CALL(event_create, .extensions = NULL);
    ax_pjrt_event *event = event_create_args.value;
    CALL(event_on_ready, .of = event, .callback = note_error, .context = &told);
    {
      CALL(event_on_ready, .of = event, .callback = destroy_event, .context = event); /* told first */
    }
    CALL(event_set, .of = event, .code = AX_PJRT_ABORTED, .message = "no more", .message_length = 7);
    assert_int_equal(told, 10);
  }
  CALL(event_create, .extensions = NULL);
  ax_pjrt_event *event = event_create_args.value;
  CALL(event_on_ready, .of = event, .callback = note_error, .context = &told);
  CALL(event_destroy, .of = event);
  assert_int_equal(told, 20);
  {
    CALL(event_create, .extensions = NULL);
    CALL(event_set, .of = event_create_args.value, .code = AX_PJRT_INTERNAL, .message = long_text, .message_length = sizeof long_text - 1);
    REFUSES(AX_PJRT_INTERNAL, long_text, event_await, .of = event_create_args.value); /* all of it */
    CALL(event_destroy, .of = event_create_args.value);
  }
}

/* Memory whose address a caller holds stays where it is, whatever becomes of the buffer. */
static void test_held(void **state) {
  (void)state;
  static char module[] = MODULE("1", "func.func public @main(%x: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {\n"
                                     "  %0 = stablehlo.add %x, %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  ax_pjrt_client *client = create(1);
  ax_pjrt_loaded_executable *loaded;
  const int64_t dims[] = {2};
  expect_no_error("compile", compile(client, module, "", 0, &loaded));
  for (int donate = 0; donate < 2; donate++) {
    ax_pjrt_buffer *x = put(client, 0, (const float[]){3, 4}, AX_PJRT_F32, dims, 1), *result = NULL, *const list[] = {x},
                   *const *const lists[] = {list}, **const outputs[] = {&result};
    CALL(buffer_increase_references, .of = x);
    CALL(buffer_unsafe_pointer, .of = x);
    const float *data = (const float *)(uintptr_t)buffer_unsafe_pointer_args.value;
    if (donate) {
      CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 1, .argument_count = 1, .outputs = outputs);
      float back[2];
      read_buffer(result, back, sizeof back);
      assert_true(back[0] == 6 && back[1] == 8);
    } else {
      CALL(buffer_delete, .of = x);
    }
    CALL(buffer_is_deleted, .of = x);
    assert_true(buffer_is_deleted_args.value);
    ax_pjrt_buffer *other = put(client, 0, (const float[]){9, 9}, AX_PJRT_F32, dims, 1); /* which would get the memory */
    assert_true(data[0] == 3 && data[1] == 4);
    CALL(buffer_decrease_references, .of = x);
    drop(other), drop(x);
    if (donate) drop(result);
  }
  CALL(loaded_destroy, .of = loaded);
  destroy(client);
}

/* Layouts on the host that callers got wrong. */
static void test_wrong_layouts(void **state) {
  (void)state;
  ax_pjrt_client *client = create(1);
  const int64_t dims[] = {2, 2}, twice[] = {0, 0}, far[] = {64, 4}, backwards[] = {-8, 4}, many[] = {1, 1, 1};
  char back[128];
  ax_pjrt_buffer *x = put(client, 0, (const float[]){1, 2, 3, 4}, AX_PJRT_F32, dims, 2);
  ax_pjrt_memory_layout layout = {.tiled = {.minor_to_major = twice, .rank = 2}};
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "", buffer_to_host_buffer, .of = x, .layout = &layout, .data = back, .bytes = sizeof back);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "", client_create_view_of_device_buffer, .of = client, .data = back, .dims = dims, .rank = 2,
          .element = AX_PJRT_F32, .device = device_of(client, 0), .layout = &layout);
  layout = (ax_pjrt_memory_layout){.kind = 1, .strides = {.strides = far, .rank = 2}};
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "16 bytes are too few for 72", buffer_to_host_buffer, .of = x, .layout = &layout, .data = back, .bytes = 16);
  layout.strides.strides = backwards;
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "the stride of dimension 0 on the host is -8", buffer_to_host_buffer, .of = x, .layout = &layout, .data = back,
          .bytes = sizeof back);
  layout.strides.strides = many, layout.strides.rank = 3;
  REFUSES(AX_PJRT_UNIMPLEMENTED, "arrays are dense", client_buffer_from_host_buffer, .of = client, .data = back, .element = AX_PJRT_F32, .dims = dims,
          .rank = 2, .device = device_of(client, 0), .layout = &layout);
  const int64_t huge[] = {(int64_t)1 << 40, (int64_t)1 << 40};
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "more bytes than there are addresses", client_buffer_from_host_buffer, .of = client, .data = back,
          .element = AX_PJRT_F32, .dims = huge, .rank = 2, .device = device_of(client, 0));
  drop(x);
  destroy(client);
}

/* --- Programs --- */

static char doubled[] = MODULE("1", "func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {\n"
                                    "  %0 = stablehlo.add %x, %x : tensor<2xf32>\n"
                                    "  %1 = stablehlo.multiply %0, %x : tensor<2xf32>\n"
                                    "  return %0, %1 : tensor<2xf32>, tensor<2xf32>\n}\n");
static char summed[] = MODULE("2", "sdy.mesh @mesh = <[\"d\"=2]>\n"
                                   "func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) -> (tensor<4xf32> "
                                   "{sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {\n"
                                   "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
                                   "  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, "
                                   "tensor<f32>) -> tensor<f32>\n"
                                   "  return %x, %0 : tensor<4xf32>, tensor<f32>\n}\n");

static void test_one_device(void **state) {
  (void)state;
  static const char portable[] = "\x20\x01"; /* compile_portable_executable */
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded;
  expect_no_error("compile", compile(client, doubled, portable, 2, &loaded));
  CALL(loaded_executable, .of = loaded);
  ax_pjrt_executable *executable = loaded_executable_args.value;
  CALL(executable_outputs, .of = executable);
  CALL(executable_output_element_types, .of = executable);
  CALL(executable_output_dimensions, .of = executable);
  CALL(executable_fingerprint, .of = executable);
  CALL(executable_memory_stats, .of = executable);
  assert_int_equal(executable_outputs_args.value, 2);
  assert_int_equal(executable_output_element_types_args.items[1], AX_PJRT_F32);
  assert_int_equal(executable_output_dimensions_args.dims[1], 2);
  assert_int_equal(executable_fingerprint_args.length, 32);
  assert_true(executable_memory_stats_args.device.arguments > 0);
  const int64_t dims[] = {2}, other[] = {3};
  ax_pjrt_buffer *x = put(client, 1, (const float[]){3, 4}, AX_PJRT_F32, dims, 1), *wrong = put(client, 1, (const float[]){3, 4, 5}, AX_PJRT_F32, other, 1);
  ax_pjrt_buffer *const list[] = {x}, *const wrong_list[] = {wrong}, *const *const lists[] = {list}, *const *const wrong_lists[] = {wrong_list};
  ax_pjrt_buffer *results[2] = {0}, **const outputs[] = {results};
  ax_pjrt_event *events[1];
  CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 1, .argument_count = 1, .outputs = outputs, .events = events,
       .device = device_of(client, 1));
  CALL(event_await, .of = events[0]);
  CALL(event_destroy, .of = events[0]);
  CALL(buffer_device, .of = results[1]);
  assert_ptr_equal(buffer_device_args.value, device_of(client, 1));
  float back[2];
  read_buffer(results[1], back, sizeof back);
  assert_true(back[0] == 18 && back[1] == 32);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "argument 0 is f32[3], and the program's is f32[2]", loaded_execute, .of = loaded, .arguments = wrong_lists,
          .device_count = 1, .argument_count = 1, .outputs = outputs, .device = device_of(client, 1));
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "takes 1 arguments, and here are 0", loaded_execute, .of = loaded, .arguments = lists, .device_count = 1,
          .outputs = outputs, .device = device_of(client, 1));
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "run on 2", loaded_execute, .of = loaded, .arguments = lists, .device_count = 2, .argument_count = 1,
          .outputs = outputs, .device = device_of(client, 1));
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "a run names its device", loaded_execute, .of = loaded, .arguments = lists, .device_count = 1, .argument_count = 1,
          .outputs = outputs);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "argument 0 lies on device 1, and the run is on device 0", loaded_execute, .of = loaded, .arguments = lists,
          .device_count = 1, .argument_count = 1, .outputs = outputs, .device = device_of(client, 0));
  {
    CALL(loaded_device_assignment, .of = loaded); /* a portable executable has none */
    assert_int_equal(loaded_device_assignment_args.count, 0);
    loaded_device_assignment_args.release(loaded_device_assignment_args.held);
  }
  CALL(loaded_delete, .of = loaded);
  REFUSES(AX_PJRT_INVALID_ARGUMENT, "was deleted", loaded_execute, .of = loaded, .arguments = lists, .device_count = 1, .argument_count = 1,
          .outputs = outputs, .device = device_of(client, 1));
  for (int k = 0; k < 2; k++) drop(results[k]);
  drop(x);
  drop(wrong);
  CALL(executable_destroy, .of = executable);
  CALL(loaded_destroy, .of = loaded);
  destroy(client);
}

/* A result that depends on no argument lies on the devices that the run is for, all the same. */
static void test_without_arguments(void **state) {
  (void)state;
  /* executable_build_options {num_replicas 1, num_partitions 2 or 1, device_assignment} */
  static const char turned[] = "\x1a\x12\x20\x01\x28\x02\x4a\x0c\x08\x01\x10\x02\x1a\x02\x08\x01\x1a\x02\x08\x00",
                    last[] = "\x1a\x12\x20\x01\x28\x02\x4a\x0c\x08\x01\x10\x02\x1a\x02\x08\x02\x1a\x02\x08\x03",
                    second[] = "\x1a\x0e\x20\x01\x28\x01\x4a\x08\x08\x01\x10\x01\x1a\x02\x08\x01";
  static char counted[] = MODULE("2", "sdy.mesh @mesh = <[\"d\"=2]>\n"
                                      "func.func public @main() -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}) {\n"
                                      "  %0 = stablehlo.iota dim = 0 : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"),
              constant[] = MODULE("1", "func.func public @main(%x: tensor<f32>) -> tensor<f32> {\n"
                                       "  %0 = stablehlo.constant dense<7.0> : tensor<f32>\n  return %0 : tensor<f32>\n}\n");
  const char *const options[] = {turned, last};
  const int devices[2][2] = {{1, 0}, {2, 3}};
  ax_pjrt_client *client = create(4);
  ax_pjrt_loaded_executable *loaded;
  for (int i = 0; i < 2; i++) {
    ax_pjrt_buffer *first = NULL, *second_part = NULL, *const *const lists[] = {NULL, NULL}, **const outputs[] = {&first, &second_part};
    expect_no_error("compile", compile(client, counted, options[i], sizeof turned - 1, &loaded));
    CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 2, .outputs = outputs);
    float back[2];
    read_buffer(first, back, sizeof back);
    assert_true(back[0] == 0 && back[1] == 1);
    read_buffer(second_part, back, sizeof back);
    assert_true(back[0] == 2 && back[1] == 3);
    CALL(buffer_device, .of = first);
    assert_ptr_equal(buffer_device_args.value, device_of(client, devices[i][0]));
    drop(first), drop(second_part);
    CALL(loaded_destroy, .of = loaded);
  }
  expect_no_error("compile", compile(client, constant, second, sizeof second - 1, &loaded));
  ax_pjrt_buffer *x = put(client, 1, (const float[]){1}, AX_PJRT_F32, NULL, 0), *y = NULL, *const list[] = {x}, *const *const lists[] = {list},
                 **const outputs[] = {&y};
  CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 1, .argument_count = 1, .outputs = outputs);
  float back;
  read_buffer(y, &back, sizeof back);
  assert_true(back == 7);
  CALL(buffer_device, .of = y);
  assert_ptr_equal(buffer_device_args.value, device_of(client, 1));
  drop(x), drop(y);
  CALL(loaded_destroy, .of = loaded);
  destroy(client);
}

/* An argument that is given is gone; one that the caller keeps is still there, and so is what was not asked for, or what no result could have
   the memory of. */
static void test_donated(void **state) {
  (void)state;
  static char module[] = MODULE("1", "func.func public @main(%x: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<2xf32> {jax.buffer_donor = true}, "
                                     "%z: tensor<2xf32> {jax.buffer_donor = false}) -> tensor<2xf32> {\n  %0 = stablehlo.add %x, %y : tensor<2xf32>\n"
                                     "  %1 = stablehlo.add %0, %z : tensor<2xf32>\n  return %1 : tensor<2xf32>\n}\n");
  ax_pjrt_client *client = create(1);
  ax_pjrt_loaded_executable *loaded;
  const int64_t dims[] = {2}, kept[] = {0};
  expect_no_error("compile", compile(client, module, "", 0, &loaded));
  for (int keep = 0; keep < 2; keep++) {
    ax_pjrt_buffer *list[3], *result = NULL, **const outputs[] = {&result}, *const *const lists[] = {list};
    for (int i = 0; i < 3; i++) list[i] = put(client, 0, (const float[]){1, (float)i}, AX_PJRT_F32, dims, 1);
    ax_pjrt_execute_options options = {.struct_size = sizeof options, .kept = kept, .kept_count = (size_t)keep};
    CALL(loaded_execute, .of = loaded, .options = &options, .arguments = lists, .device_count = 1, .argument_count = 3, .outputs = outputs);
    float back[2];
    read_buffer(result, back, sizeof back);
    assert_true(back[0] == 3 && back[1] == 3);
    for (int i = 0; i < 3; i++) {
      CALL(buffer_is_deleted, .of = list[i]);
      assert_int_equal(buffer_is_deleted_args.value, i == 0 && !keep);
    }
    if (keep) {
      read_buffer(list[0], back, sizeof back);
      assert_true(back[0] == 1 && back[1] == 0);
    }
    for (int i = 0; i < 3; i++) drop(list[i]);
    drop(result);
  }
  { /* a run that is refused takes nothing */
    ax_pjrt_buffer *x = put(client, 0, (const float[]){1, 2}, AX_PJRT_F32, dims, 1), *list[] = {x, x, x}, *result = NULL, **const outputs[] = {&result},
                   *const *const lists[] = {list};
    REFUSES(AX_PJRT_INVALID_ARGUMENT, "", loaded_execute, .of = loaded, .arguments = lists, .device_count = 1, .argument_count = 3, .outputs = outputs);
    float back[2];
    read_buffer(x, back, sizeof back);
    assert_true(back[0] == 1 && back[1] == 2);
    drop(x);
  }
  CALL(loaded_destroy, .of = loaded);
  destroy(client);
}

static void test_two_devices(void **state) {
  (void)state;
  /* executable_build_options {num_replicas 1, num_partitions 2, device_assignment {1, 2, {{1}, {0}}}}: in the other order */
  static const char options[] = "\x1a\x12\x20\x01\x28\x02\x4a\x0c\x08\x01\x10\x02\x1a\x02\x08\x01\x1a\x02\x08\x00";
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded;
  expect_no_error("compile", compile(client, summed, options, sizeof options - 1, &loaded));
  CALL(loaded_addressable_devices, .of = loaded);
  CALL(loaded_logical_ids, .of = loaded);
  CALL(loaded_executable, .of = loaded);
  assert_int_equal(loaded_addressable_devices_args.count, 2);
  assert_ptr_equal(loaded_addressable_devices_args.items[0], device_of(client, 1));
  assert_int_equal(loaded_logical_ids_args.items[1].partition, 1);
  CALL(loaded_device_assignment, .of = loaded);
  static const char assignment[] = "\x08\x01\x10\x02\x1a\x03\x0a\x01\x01\x1a\x03\x0a\x01\x00";
  assert_int_equal(loaded_device_assignment_args.count, sizeof assignment - 1);
  assert_memory_equal(loaded_device_assignment_args.bytes, assignment, sizeof assignment - 1);
  loaded_device_assignment_args.release(loaded_device_assignment_args.held);
  ax_pjrt_executable_shardings_args told = {.struct_size = sizeof told, .of = loaded_executable_args.value};
  expect_no_error("shardings", shardings_of(GetPjrtApi())->results(&told));
  assert_int_equal(told.count, 2);
  assert_memory_equal(told.items[0], "\x08\x03\x1a\x01\x02", 5); /* OTHER, 2 tiles */
  assert_int_equal(told.lengths[1], 0);                            /* REPLICATED */
  CALL(executable_destroy, .of = loaded_executable_args.value);
  const int64_t dims[] = {2};
  ax_pjrt_buffer *parts[] = {put(client, 1, (const float[]){1, 2}, AX_PJRT_F32, dims, 1), put(client, 0, (const float[]){3, 4}, AX_PJRT_F32, dims, 1)};
  ax_pjrt_buffer *const *const lists[] = {&parts[0], &parts[1]};
  ax_pjrt_buffer *first[2] = {0}, *second[2] = {0}, **const outputs[] = {first, second};
  CALL(loaded_execute, .of = loaded, .arguments = lists, .device_count = 2, .argument_count = 1, .outputs = outputs);
  float back[2], sum;
  read_buffer(second[0], back, sizeof back);
  read_buffer(second[1], &sum, sizeof sum);
  assert_true(back[0] == 3 && back[1] == 4 && sum == 10);
  CALL(buffer_device, .of = second[0]);
  assert_ptr_equal(buffer_device_args.value, device_of(client, 0));
  for (int k = 0; k < 2; k++) drop(first[k]), drop(second[k]), drop(parts[k]);
  CALL(loaded_destroy, .of = loaded);
  destroy(client);
}

static void test_not_compiled(void **state) {
  (void)state;
  static const char three[] = "\x1a\x02\x28\x03", torn[] = "\x1a\x09", far[] = "\x1a\x0e\x20\x01\x28\x01\x4a\x08\x08\x01\x10\x01\x1a\x02\x08\x07";
  static char syntax[] = "module {", recursive[] = MODULE("1", "func.func @main() {\n  call @main() : () -> ()\n  return\n}\n");
  ax_pjrt_client *client = create(2);
  ax_pjrt_loaded_executable *loaded;
  expect_error(compile(client, syntax, "", 0, &loaded), AX_PJRT_INVALID_ARGUMENT, "module:1");
  assert_null(loaded);
  expect_error(compile(client, recursive, "", 0, &loaded), AX_PJRT_INVALID_ARGUMENT, "main");
  expect_error(compile(client, summed, three, sizeof three - 1, &loaded), AX_PJRT_INVALID_ARGUMENT, "wants 3 devices, and there are 2");
  expect_error(compile(client, doubled, torn, sizeof torn - 1, &loaded), AX_PJRT_INVALID_ARGUMENT, "no CompileOptionsProto");
  expect_error(compile(client, doubled, far, sizeof far - 1, &loaded), AX_PJRT_INVALID_ARGUMENT, "no device 7");
  static const char unknown[] = "\x3a\x03\x0a\x01x", known[] = "\x3a\x08\x0a\x06xla_ab";
  expect_error(compile(client, doubled, unknown, sizeof unknown - 1, &loaded), AX_PJRT_INVALID_ARGUMENT, "No such compile option: 'x'");
  expect_no_error("compile", compile(client, doubled, known, sizeof known - 1, &loaded));
  CALL(loaded_destroy, .of = loaded);
  const ax_pjrt_program hlo = {.code = doubled, .code_bytes = strlen(doubled), .format = "hlo", .format_length = 3};
  REFUSES(AX_PJRT_UNIMPLEMENTED, "format hlo", client_compile, .of = client, .program = &hlo);
  destroy(client);
}

int main(void) {
  unsetenv("AXLE_DEVICES"), unsetenv("AXLE_PLATFORM"); /* what the caller's shell says is another plugin */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),       cmocka_unit_test(test_devices), cmocka_unit_test(test_count),       cmocka_unit_test(test_topology),
      cmocka_unit_test(test_memory_data), cmocka_unit_test(test_wrong_options), cmocka_unit_test(test_buffers),
      cmocka_unit_test(test_from_host),   cmocka_unit_test(test_views),   cmocka_unit_test(test_events),        cmocka_unit_test(test_one_device),
      cmocka_unit_test(test_two_devices), cmocka_unit_test(test_donated), cmocka_unit_test(test_events_end),
      cmocka_unit_test(test_held), cmocka_unit_test(test_wrong_layouts), cmocka_unit_test(test_without_arguments), cmocka_unit_test(test_not_compiled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
