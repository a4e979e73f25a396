/* Handlers of XLA's FFI that are registered through the plugin's extensions, with data of the runs that call them; and tokens, by which
   one run follows another. */
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ffi/abi.h"
#include "client/api.h"
#include "support/cmocka.h"

const ax_pjrt_api *GetPjrtApi(void);

#define CALL(name, ...)                                                                 \
  ax_pjrt_##name##_args name##_args = {.struct_size = sizeof name##_args, __VA_ARGS__}; \
  expect_no_error(#name, GetPjrtApi()->name(&name##_args))

static const char *text_of(ax_pjrt_error *error) {
  ax_pjrt_error_message_args args = {.struct_size = sizeof args, .of = error};
  GetPjrtApi()->error_message(&args);
  return args.text;
}

static void end_error(ax_pjrt_error *error) {
  GetPjrtApi()->error_destroy(&(ax_pjrt_error_destroy_args){.struct_size = sizeof(ax_pjrt_error_destroy_args), .of = error});
}

static void expect_no_error(const char *name, ax_pjrt_error *error) {
  if (error != NULL) fail_msg("%s: %s", name, text_of(error));
}

static void expect_error(ax_pjrt_error *error, const char *message) {
  assert_non_null(error);
  if (strstr(text_of(error), message) == NULL) fail_msg("%s\nand not: %s", text_of(error), message);
  end_error(error);
}

static const void *extension(int type) {
  const ax_pjrt_extension *e = GetPjrtApi()->extensions;
  while (e != NULL && e->type != type) e = e->next;
  assert_non_null(e);
  return e;
}

static const ax_pjrt_ffi *ffi(void) { return extension(AX_PJRT_FFI); }

static void *pointer_to(ax_ffi_handler handler) {
  void *pointer;
  memcpy(&pointer, &handler, sizeof pointer);
  return pointer;
}

static ax_pjrt_error *add(const char *target, ax_ffi_handler handler) {
  return ffi()->register_handler(&(ax_pjrt_ffi_handler_args){.struct_size = sizeof(ax_pjrt_ffi_handler_args), .target = target,
                                                             .target_length = strlen(target), .execute = pointer_to(handler)});
}

/* --- Handlers --- */

static ax_ffi_type_id factor_type;
static int log_count;
static float logged[8];

/* Whether the frame only asks for the handler's version. */
static bool answers(ax_ffi_frame *frame) {
  if (frame->extensions == NULL || frame->extensions->type != AX_FFI_METADATA) return false;
  ax_ffi_version *version = &((ax_ffi_metadata_extension *)(void *)frame->extensions)->metadata->version;
  version->major = frame->api->version.major, version->minor = frame->api->version.minor;
  return true;
}

static float *elements(const ax_ffi_values *values, int64_t i) { return ((ax_ffi_buffer *)values->values[i])->data; }

/* y = factor * x, the factor being the run's. */
static ax_ffi_error *scale(ax_ffi_frame *frame) {
  ax_ffi_user_data asked = {.struct_size = sizeof asked, .context = frame->context, .id = &factor_type};
  if (answers(frame)) return NULL;
  ax_ffi_error *error = frame->api->user_data(&asked);
  if (error != NULL) return error;
  for (int i = 0; i < 2; i++) elements(&frame->out, 0)[i] = *(const float *)asked.data * elements(&frame->in, 0)[i];
  return NULL;
}

/* Notes its operand. */
static ax_ffi_error *note(ax_ffi_frame *frame) {
  if (!answers(frame)) logged[log_count++ % 8] = elements(&frame->in, 0)[0];
  return NULL;
}

static void test_registration(void **state) {
  (void)state;
  int64_t first = 0;
  const ax_pjrt_custom_calls *calls = extension(AX_PJRT_CUSTOM_CALLS);
  expect_no_error("register", add("test_scale", scale));
  expect_no_error("register", add("test_scale", scale)); /* the same again */
  expect_error(add("test_scale", note), "@test_scale is registered already");
  expect_error(add("", note), "1 to 255 bytes, not 0");
  ax_pjrt_custom_call_args args = {.struct_size = sizeof args, .target = "test_note", .target_length = 9, .api_version = 2,
                                   .execute = pointer_to(note)};
  expect_error(calls->register_call(&args), "api_version 2 is neither 0 nor 1");
  args.api_version = 1;
  expect_no_error("register", calls->register_call(&args));
  args.instantiate = args.execute, args.execute = NULL;
  expect_error(calls->register_call(&args), "no execute handler");
  for (int i = 0; i < 2; i++) { /* each type has a number of its own, and keeps one that it has */
    const ax_pjrt_ffi_type_info info = {0};
    ax_pjrt_ffi_type_args type = {.struct_size = sizeof type, .name = "T", .name_length = 1, .info = &info};
    expect_no_error("type", ffi()->register_type(&type));
    assert_true(type.number != 0 && type.number != first);
    const int64_t number = first = type.number;
    expect_no_error("type", ffi()->register_type(&type));
    assert_int_equal(type.number, number);
    factor_type.number = number;
  }
}

/* --- Runs --- */

typedef struct compiled {
  ax_pjrt_client *client;
  ax_pjrt_device *device;
  ax_pjrt_loaded_executable *loaded;
} compiled;

static compiled compile(const char *code) {
  compiled c;
  CALL(client_create, .options = NULL);
  CALL(client_lookup_device, .of = client_create_args.client, .id = 0);
  c.client = client_create_args.client, c.device = client_lookup_device_args.value;
  const ax_pjrt_program program = {.struct_size = sizeof program, .code = (char *)(uintptr_t)code, .code_bytes = strlen(code),
                                   .format = "mlir", .format_length = 4};
  CALL(client_compile, .of = c.client, .program = &program, .options = "", .option_bytes = 0);
  c.loaded = client_compile_args.value;
  return c;
}

static void end(const compiled *c) {
  CALL(loaded_destroy, .of = c->loaded);
  CALL(client_destroy, .of = c->client);
}

static ax_pjrt_buffer *buffer(const compiled *c, ax_pjrt_element element, const void *data, int64_t extent) {
  CALL(client_buffer_from_host_buffer, .of = c->client, .data = data, .element = element, .dims = &extent, .rank = 1, .device = c->device);
  CALL(event_destroy, .of = client_buffer_from_host_buffer_args.done);
  return client_buffer_from_host_buffer_args.value;
}

static void drop(ax_pjrt_buffer *buffer) {
  CALL(buffer_destroy, .of = buffer);
}

/* Waits for the run's event, and returns its failure. */
static ax_pjrt_error *run(const compiled *c, ax_pjrt_execute_context *context, ax_pjrt_buffer *const *in, size_t in_count, ax_pjrt_buffer **out) {
  ax_pjrt_event *event = NULL;
  ax_pjrt_execute_options options = {.struct_size = sizeof options, .context = context};
  ax_pjrt_loaded_execute_args args = {.struct_size = sizeof args, .of = c->loaded, .options = &options, .arguments = &in, .device_count = 1,
                                      .argument_count = in_count, .outputs = &out, .events = &event};
  ax_pjrt_error *error = GetPjrtApi()->loaded_execute(&args);
  if (error != NULL) return error;
  ax_pjrt_event_await_args await = {.struct_size = sizeof await, .of = event};
  error = GetPjrtApi()->event_await(&await);
  CALL(event_destroy, .of = event);
  return error;
}

static void read_back(ax_pjrt_buffer *from, float *out) {
  CALL(buffer_to_host_buffer, .of = from, .data = out, .bytes = 2 * sizeof out[0]);
  CALL(event_await, .of = buffer_to_host_buffer_args.done);
  CALL(event_destroy, .of = buffer_to_host_buffer_args.done);
}

#define TYPED "api_version = 4 : i32, backend_config = {}"

/* Each run has data of its own. */
static void test_user_data(void **state) {
  (void)state;
  compiled c = compile("module @m {\nfunc.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                       "  %0 = stablehlo.custom_call @test_scale(%x) {" TYPED "} : (tensor<2xf32>) -> tensor<2xf32>\n"
                       "  return %0 : tensor<2xf32>\n}\n}\n");
  ax_pjrt_buffer *in = buffer(&c, AX_PJRT_F32, ((const float[]){1, 2}), 2), *out = NULL;
  expect_error(run(&c, NULL, &in, 1, &out), "the run has no user data of this type");
  if (out != NULL) drop(out); /* a run that fails once it is started has results that say so */
  for (int i = 2; i < 4; i++) {
    float factor = (float)i, back[2];
    CALL(context_create, .extensions = NULL);
    ax_pjrt_execute_context *context = context_create_args.value;
    ax_pjrt_ffi_user_data_args data = {.struct_size = sizeof data, .of = context, .given = {factor_type.number, &factor}};
    expect_no_error("user data", ffi()->add_user_data(&data));
    expect_error(ffi()->add_user_data(&data), "user data of this type already");
    expect_no_error("run", run(&c, context, &in, 1, &out));
    CALL(context_destroy, .of = context);
    read_back(out, back);
    assert_float_equal(back[1], 2 * factor, 0);
    drop(out);
  }
  drop(in);
  end(&c);
}

static ax_pjrt_element element_of(ax_pjrt_buffer *buffer) {
  CALL(buffer_element_type, .of = buffer);
  return buffer_element_type_args.value;
}

/* A token that comes from a run and goes to the next is an array without elements; that of a run is called a token. */
static void test_tokens(void **state) {
  (void)state;
  compiled c = compile("module @m {\nfunc.func public @main(%t: !stablehlo.token {jax.token = true}, %x: tensor<2xf32>) -> (!stablehlo.token, tensor<2xf32>) {\n"
                       "  %0 = stablehlo.custom_call @test_note(%t, %x) {" TYPED ", has_side_effect = true, operand_layouts = [dense<> : "
                       "tensor<0xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<> : tensor<0xindex>]} : (!stablehlo.token, "
                       "tensor<2xf32>) -> !stablehlo.token\n"
                       "  %1 = stablehlo.add %x, %x : tensor<2xf32>\n"
                       "  return %0, %1 : !stablehlo.token, tensor<2xf32>\n}\n}\n");
  ax_pjrt_buffer *in[2] = {buffer(&c, AX_PJRT_PRED, "", 0), buffer(&c, AX_PJRT_F32, ((const float[]){1, 2}), 2)}, *out[2];
  log_count = 0;
  for (int i = 0; i < 3; i++) {
    expect_no_error("run", run(&c, NULL, in, 2, out));
    CALL(buffer_dimensions, .of = out[0]);
    assert_int_equal(buffer_dimensions_args.count, 0);
    assert_int_equal(element_of(out[0]), AX_PJRT_TOKEN);
    assert_int_equal(element_of(out[1]), AX_PJRT_F32);
    for (int k = 0; k < 2; k++) drop(in[k]), in[k] = out[k];
  }
  assert_int_equal(log_count, 3);
  for (int i = 0; i < 3; i++) assert_float_equal(logged[i], (float)(1 << i), 0);
  for (int k = 0; k < 2; k++) drop(in[k]);
  end(&c);
}

/* The event of a run without results comes about when the calls were made. */
static void test_no_results(void **state) {
  (void)state;
  compiled c = compile("module @m {\nfunc.func public @main(%x: tensor<2xf32>) {\n"
                       "  stablehlo.custom_call @test_note(%x) {" TYPED ", has_side_effect = true} : (tensor<2xf32>) -> ()\n"
                       "  return\n}\n}\n");
  ax_pjrt_buffer *in = buffer(&c, AX_PJRT_F32, ((const float[]){5, 2}), 2);
  log_count = 0;
  expect_no_error("run", run(&c, NULL, &in, 1, NULL));
  assert_int_equal(log_count, 1);
  drop(in);
  end(&c);
}

static ax_ffi_error *note_late(ax_ffi_frame *frame) {
  if (frame->extensions == NULL) usleep(20000);
  return note(frame);
}

/* So does that of a run whose one result is its argument. */
static void test_passed_result(void **state) {
  (void)state;
  expect_no_error("register", add("test_note_late", note_late));
  compiled c = compile("module @m {\nfunc.func public @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {\n"
                       "  stablehlo.custom_call @test_note_late(%y) {" TYPED ", has_side_effect = true} : (tensor<2xf32>) -> ()\n"
                       "  return %x : tensor<2xf32>\n}\n}\n");
  ax_pjrt_buffer *in[2] = {buffer(&c, AX_PJRT_F32, ((const float[]){5, 2}), 2), buffer(&c, AX_PJRT_F32, ((const float[]){7, 2}), 2)}, *out;
  log_count = 0;
  expect_no_error("run", run(&c, NULL, in, 2, &out));
  assert_int_equal(log_count, 1);
  assert_float_equal(logged[0], 7, 0);
  for (int k = 0; k < 2; k++) drop(in[k]);
  drop(out);
  end(&c);
}

/* Fails, late, if the operand is negative. */
static ax_ffi_error *call_python(ax_ffi_frame *frame) {
  if (answers(frame)) return NULL;
  usleep(20000);
  if (elements(&frame->in, 0)[0] >= 0) return note(frame);
  ax_ffi_error_create asked = {.struct_size = sizeof asked, .message = "it raised", .code = AX_FFI_INTERNAL};
  return frame->api->error_create(&asked);
}

/* A run that calls Python is over when its start returns, and that says what failed. */
static void test_python(void **state) {
  (void)state;
  expect_no_error("register", add("axle_python_callback", call_python));
  compiled c = compile("module @m {\nfunc.func public @main(%x: tensor<2xf32>) {\n"
                       "  stablehlo.custom_call @axle_python_callback(%x) {" TYPED ", has_side_effect = true} : (tensor<2xf32>) -> ()\n"
                       "  return\n}\n}\n");
  ax_pjrt_buffer *good = buffer(&c, AX_PJRT_F32, ((const float[]){5, 2}), 2), *bad = buffer(&c, AX_PJRT_F32, ((const float[]){-5, 2}), 2);
  for (int with_event = 0; with_event < 2; with_event++) {
    ax_pjrt_event *event = NULL;
    ax_pjrt_buffer *const *list = &good, *const *wrong = &bad;
    ax_pjrt_buffer **none = NULL;
    ax_pjrt_loaded_execute_args args = {.struct_size = sizeof args, .of = c.loaded, .arguments = &list, .device_count = 1, .argument_count = 1,
                                        .outputs = &none, .events = with_event ? &event : NULL};
    log_count = 0;
    expect_no_error("run", GetPjrtApi()->loaded_execute(&args));
    assert_int_equal(log_count, 1);
    if (with_event) {
      CALL(event_is_ready, .of = event);
      assert_true(event_is_ready_args.value);
    }
    ax_pjrt_event_destroy_args gone = {.struct_size = sizeof gone, .of = event};
    if (event != NULL) expect_no_error("destroy", GetPjrtApi()->event_destroy(&gone));
    args.arguments = &wrong;
    expect_error(GetPjrtApi()->loaded_execute(&args), "it raised");
  }
  drop(good), drop(bad);
  end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_registration), cmocka_unit_test(test_user_data), cmocka_unit_test(test_tokens),
                                     cmocka_unit_test(test_no_results), cmocka_unit_test(test_passed_result), cmocka_unit_test(test_python)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
