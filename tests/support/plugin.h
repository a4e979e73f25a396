/* What tests of the plugin share: calls through the table of its functions, as jaxlib makes them. */
#ifndef AX_TESTS_SUPPORT_PLUGIN_H
#define AX_TESTS_SUPPORT_PLUGIN_H

#include <string.h>

#include "axle/status.h"
#include "client/api.h"
#include "support/cmocka.h"

const ax_pjrt_api *GetPjrtApi(void);

/* Calls a function of the table with its members; the struct is `args` afterwards. */
#define CALL(name, ...)                                                                        \
  ax_pjrt_##name##_args name##_args = {.struct_size = sizeof name##_args, __VA_ARGS__};        \
  expect_no_error(#name, GetPjrtApi()->name(&name##_args))
#define REFUSES(expected, message, name, ...)                                                      \
  do {                                                                                             \
    ax_pjrt_##name##_args refused_args = {.struct_size = sizeof refused_args, __VA_ARGS__};        \
    expect_error(GetPjrtApi()->name(&refused_args), expected, message);                            \
  } while (0)

static inline void expect_no_error(const char *name, ax_pjrt_error *error) {
  if (error == NULL) return;
  ax_pjrt_error_message_args args = {.struct_size = sizeof args, .of = error};
  GetPjrtApi()->error_message(&args);
  fail_msg("%s: %.*s", name, (int)args.length, args.text);
}

static inline void visit(const char *key, size_t key_length, const char *value, size_t value_length, void *context) {
  (void)key, (void)key_length, (void)value, (void)value_length;
  ++*(int *)context;
}

/* By the table, and by the functions that the error itself has. */
static inline void expect_error(ax_pjrt_error *error, ax_pjrt_code expected, const char *message) {
  int payloads = 0;
  assert_non_null(error);
  CALL(error_code, .of = error);
  ax_pjrt_error_message_args args = {.struct_size = sizeof args, .of = error};
  GetPjrtApi()->error_message(&args);
  if (error_code_args.value != expected || strstr(args.text, message) == NULL)
    fail_msg("%d, %s\nand not: %d, %s", (int)error_code_args.value, args.text, (int)expected, message);
  CALL(error_payloads, .of = error, .visitor = visit, .context = &payloads);
  assert_int_equal(payloads, 0);
  const ax_pjrt_error_functions *own = *(const ax_pjrt_error_functions *const *)(const void *)error;
  assert_int_equal(own->code(error), expected);
  own->destroy(error);
}

static inline ax_pjrt_client *create(int64_t devices) {
  const ax_pjrt_named option = {.struct_size = sizeof option, .name = "num_devices", .name_length = 11, .kind = AX_PJRT_INTEGER,
                                .integer = devices, .count = 1};
  CALL(client_create, .options = &option, .option_count = 1);
  return client_create_args.client;
}

static inline void destroy(ax_pjrt_client *client) { CALL(client_destroy, .of = client); }

static inline ax_pjrt_device *device_of(ax_pjrt_client *client, int id) {
  CALL(client_lookup_device, .of = client, .id = id);
  return client_lookup_device_args.value;
}

/* --- Buffers --- */

static inline ax_pjrt_buffer *put(ax_pjrt_client *client, int device, const void *data, ax_pjrt_element element, const int64_t *dims, size_t rank) {
  CALL(client_buffer_from_host_buffer, .of = client, .data = data, .element = element, .dims = dims, .rank = rank,
       .semantics = AX_PJRT_DURING_CALL, .device = device_of(client, device));
  CALL(event_await, .of = client_buffer_from_host_buffer_args.done);
  CALL(event_destroy, .of = client_buffer_from_host_buffer_args.done);
  return client_buffer_from_host_buffer_args.value;
}

static inline void read_buffer(ax_pjrt_buffer *buffer, void *out, size_t bytes) {
  CALL(buffer_to_host_buffer, .of = buffer, .data = out, .bytes = bytes);
  CALL(event_await, .of = buffer_to_host_buffer_args.done);
  CALL(event_destroy, .of = buffer_to_host_buffer_args.done);
}

static inline void drop(ax_pjrt_buffer *buffer) { CALL(buffer_destroy, .of = buffer); }

/* --- Programs --- */

#define MODULE(partitions, body) "module @m attributes {mhlo.num_partitions = " partitions " : i32, mhlo.num_replicas = 1 : i32} {\n" body "}\n"

static inline ax_pjrt_error *compile(ax_pjrt_client *client, char *code, const char *options, size_t option_bytes, ax_pjrt_loaded_executable **out) {
  const ax_pjrt_program program = {.struct_size = sizeof program, .code = code, .code_bytes = strlen(code), .format = "mlir", .format_length = 4};
  ax_pjrt_client_compile_args args = {.struct_size = sizeof args, .of = client, .program = &program, .options = options,
                                      .option_bytes = option_bytes};
  ax_pjrt_error *error = GetPjrtApi()->client_compile(&args);
  *out = args.value;
  return error;
}

static inline const ax_pjrt_shardings *shardings_of(const ax_pjrt_api *api) {
  for (const ax_pjrt_extension *e = api->extensions; e != NULL; e = e->next)
    if (e->type == AX_PJRT_SHARDINGS) return (const ax_pjrt_shardings *)(const void *)e;
  fail_msg("there is no extension for shardings");
  return NULL;
}

/* --- Calls that may find no memory --- */

/* As CALL, in a function that returns an error and has one, `error`. */
#define TRY(name, ...)                                                                  \
  ax_pjrt_##name##_args name##_args = {.struct_size = sizeof name##_args, __VA_ARGS__}; \
  if ((error = GetPjrtApi()->name(&name##_args)) != NULL) return error

static inline ax_pjrt_error *try_put(ax_pjrt_client *client, int device, const float *data, int64_t count, ax_pjrt_buffer **out) {
  ax_pjrt_error *error;
  TRY(client_buffer_from_host_buffer, .of = client, .data = data, .element = AX_PJRT_F32, .dims = &count, .rank = 1,
      .semantics = AX_PJRT_DURING_CALL, .device = device_of(client, device));
  *out = client_buffer_from_host_buffer_args.value;
  TRY(event_destroy, .of = client_buffer_from_host_buffer_args.done);
  return NULL;
}

/* The status of the error, which ends: AX_INVALID_ARGUMENT for all but a want of memory. */
static inline ax_status status_of_try(ax_pjrt_error *error) {
  if (error == NULL) return AX_OK;
  CALL(error_code, .of = error);
  GetPjrtApi()->error_destroy(&(ax_pjrt_error_destroy_args){.struct_size = sizeof(ax_pjrt_error_destroy_args), .of = error});
  return error_code_args.value == AX_PJRT_RESOURCE_EXHAUSTED ? AX_OUT_OF_MEMORY : AX_INVALID_ARGUMENT;
}

#endif
