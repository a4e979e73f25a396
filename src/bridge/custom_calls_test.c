/* Custom calls: functions in Axle's own terms, handlers of XLA's interface written against ffi/abi.h, functions of the older kinds; what
   is refused. tests/oracle/ffi.py has handlers that are compiled with XLA's own headers. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "axle/transform.h"
#include "ffi/abi.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

#define T "tensor<2x3xf32>"
#define CALL(target, operands, attributes, types) "%0 = \"stablehlo.custom_call\"(" operands ") {call_target_name = \"" target "\"" attributes "} : " types
#define MAIN(body) "func.func @main(%x: " T ") -> " T " {\n  " body "\n  return %0 : " T "\n}\n"
#define ONE(target, attributes) MAIN(CALL(target, "%x", attributes, "(" T ") -> " T))
#define TYPED ", api_version = 4 : i32"

static ax_status import(const char *text, ax_custom_calls *calls, ax_program **out) {
  return ax_program_from_stablehlo_with(text, strlen(text), "m.mlir", &(ax_stablehlo_options){.custom_calls = calls}, out);
}

static const float input[6] = {1, 2, 3, 4, 5, 6};

/* Of the program's first result. */
static ax_status run(ax_program *program, uint32_t in_count, uint32_t out_count, float *results) {
  ax_runtime *runtime;
  ax_executable *executable = NULL;
  ax_host_array in[] = {(ax_host_view)(AX_F32, 2, (int64_t[]){2, 3}, AX_F32, input, sizeof input)}, out[2] = {0};
  ax_status status = ax_runtime_create(&(ax_runtime_options){0}, &runtime);
  if (status != AX_OK) return status;
  status = ax_compile(runtime, program, NULL, &executable);
  if (status == AX_OK) status = (ax_run_host)(executable, in_count, in, out_count, out);
  if (status == AX_OK && results != NULL && out_count > 0) memcpy(results, out[0].data, 6 * sizeof results[0]);
  for (uint32_t k = 0; k < out_count; k++) ax_host_array_release(&out[k]);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return status;
}

static void check(const char *text, ax_custom_calls *calls, const float *wanted) {
  ax_program *program;
  float got[6];
  TEST_OK(import(text, calls, &program));
  TEST_OK(run(program, 1, 1, got));
  for (int i = 0; i < 6; i++) assert_float_equal(got[i], wanted[i], 1e-5);
  ax_program_release(program);
}

static void fails_to_run(const char *text, ax_custom_calls *calls, ax_status status, const char *message) {
  ax_program *program;
  TEST_OK(import(text, calls, &program));
  TEST_FAILS(run(program, 1, 1, NULL), status, message);
  ax_program_release(program);
}

static void refuses(const char *text, ax_custom_calls *calls, ax_status status, const char *message) {
  ax_program *program;
  TEST_FAILS(import(text, calls, &program), status, message);
  assert_null(program);
}

/* --- In Axle's own terms --- */

static ax_status scale(ax_callback_call *call, const ax_attribute *attributes, void *context) {
  double by = 1;
  const ax_attribute *more = ax_attribute_find(attributes, "more");
  const char *mode;
  if (ax_attribute_number(attributes, "by", &by) != AX_OK || ax_attribute_text(attributes, "mode", &mode) != AX_OK) return AX_INVALID_ARGUMENT;
  const ax_attribute *shift = ax_attribute_find(more, "shift");
  int64_t which = 0;
  if (ax_attribute_integer(more, "which", &which) != AX_OK || shift->kind != AX_ATTRIBUTE_ARRAY || shift->dtype != AX_F64) return AX_INVALID_ARGUMENT;
  if (strcmp(mode, "fail") == 0) {
    snprintf(call->message, AX_MESSAGE_BYTES, "the mode says so");
    return AX_IO_ERROR;
  }
  ++*(int *)context;
  int64_t count = 1;
  for (uint32_t d = 0; d < call->in[0].rank; d++) count *= call->in[0].dims[d];
  for (int64_t i = 0; i < count; i++)
    ((float *)call->out[0].data)[i] = (float)(((const float *)call->in[0].data)[i] * by + ((const double *)shift->data)[which]);
  return AX_OK;
}

static ax_status same_types(const ax_custom_call_site *site, char *message, void *context) {
  (void)context;
  if (site->in_count == 1 && site->out_count == 1 && site->in_types[0].dtype == AX_F32) return AX_OK;
  snprintf(message, AX_MESSAGE_BYTES, "@%s takes one array of f32, and here are %u", site->target, site->in_count);
  return AX_INVALID_ARGUMENT;
}

static void count_release(void *context) { *(int *)context += 100; }

#define SCALE(mode) ", backend_config = {mode = \"" mode "\", by = 2.0 : f32, more = {which = 1 : ui8, shift = array<f64: 0.5, 1.0>}}" TYPED

static void test_own(void **state) {
  (void)state;
  ax_custom_calls *calls;
  ax_program *program, *batched;
  int count = 0;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register(calls, "scale", scale, &count, count_release, &(ax_custom_call_options){same_types, false, true}));
  TEST_FAILS(ax_custom_call_register(calls, "scale", scale, &count, NULL, NULL), AX_INVALID_ARGUMENT, "@scale is registered already");
  TEST_FAILS(ax_custom_call_register(calls, "", scale, &count, NULL, NULL), AX_INVALID_ARGUMENT, "1 to 255 bytes");
  TEST_FAILS(ax_custom_call_register(calls, "x", NULL, &count, NULL, NULL), AX_INVALID_ARGUMENT, "no function");
  check(ONE("scale", SCALE("fast")), calls, (float[]){3, 5, 7, 9, 11, 13});
  fails_to_run("#loc1 = loc(\"train.py\":31:0)\n" MAIN(CALL("scale", "%x", SCALE("fail"), "(" T ") -> " T " loc(#loc1)")), calls, AX_IO_ERROR,
               "the mode says so");
  assert_non_null(strstr(ax_message(), "train.py:31"));
  assert_int_equal(count, 1);
  refuses(MAIN(CALL("scale", "%x, %x", "", "(" T ", " T ") -> " T)), calls, AX_INVALID_ARGUMENT, "@scale takes one array of f32, and here are 2");
  /* unused: dropped; batched: called once for all */
  TEST_OK(import("func.func @main(%x: " T ") -> " T " {\n  " CALL("scale", "%x", SCALE("fast"), "(" T ") -> " T) "\n  return %x : " T "\n}\n", calls, &program));
  TEST_OK(run(program, 1, 1, NULL));
  assert_int_equal(count, 1);
  ax_program_release(program);
  TEST_OK(import("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n  " CALL("scale", "%x", SCALE("fast"), "(tensor<3xf32>) -> tensor<3xf32>")
                 "\n  return %0 : tensor<3xf32>\n}\n", calls, &program));
  ax_custom_calls_release(calls); /* the programs hold it */
  TEST_OK(ax_program_vmap(program, &(ax_vmap_options){.size = 2}, &batched));
  float got[6];
  TEST_OK(run(batched, 1, 1, got));
  assert_float_equal(got[5], 13, 0);
  assert_int_equal(count, 2);
  ax_program_release(batched);
  ax_program_release(program);
  assert_int_equal(count, 102);
}

static ax_status note(ax_callback_call *call, const ax_attribute *attributes, void *context) {
  const char *word = NULL;
  (void)call;
  if (ax_attribute_text(attributes, "backend_config", &word) != AX_OK) return AX_INVALID_ARGUMENT;
  strcat(context, word);
  return AX_OK;
}

/* Calls with effects are made once each, in the order of the text, also without results. */
static void test_effects(void **state) {
  (void)state;
  ax_custom_calls *calls;
  ax_program *program;
  char seen[16] = "";
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register(calls, "note", note, seen, NULL, NULL));
  TEST_OK(import("func.func @main(%x: " T ") {\n"
                 "  \"stablehlo.custom_call\"(%x) {call_target_name = \"note\", has_side_effect = true, backend_config = \"a\"} : (" T ") -> ()\n"
                 "  %t = \"stablehlo.custom_call\"(%x) {call_target_name = \"note\", has_side_effect = true, backend_config = \"b\"} : (" T ") -> " T "\n"
                 "  \"stablehlo.custom_call\"(%x) {call_target_name = \"note\", backend_config = \"c\"} : (" T ") -> ()\n  return\n}\n",
                 calls, &program));
  TEST_OK(run(program, 1, 0, NULL));
  assert_string_equal(seen, "ab");
  ax_program_release(program);
  ax_custom_calls_release(calls);
}

/* The memory of operand and result, call by call. */
static ax_status look(ax_callback_call *call, const ax_attribute *attributes, void *context) {
  const void **seen = context;
  (void)attributes;
  while (*seen != NULL) seen++;
  seen[0] = call->in[0].data, seen[1] = call->out[0].data;
  return AX_OK;
}

/* Nothing is copied between two calls. */
static void test_memory(void **state) {
  (void)state;
  ax_custom_calls *calls;
  ax_program *program;
  const void *seen[5] = {NULL};
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register(calls, "look", look, seen, NULL, NULL));
  TEST_OK(import(MAIN("%1 = stablehlo.custom_call @look(%x) : (" T ") -> " T "\n  %0 = stablehlo.custom_call @look(%1) : (" T ") -> " T), calls, &program));
  TEST_OK(run(program, 1, 1, NULL));
  assert_non_null(seen[3]);
  assert_ptr_equal(seen[1], seen[2]);
  ax_program_release(program);
  ax_custom_calls_release(calls);
}

static ax_status in_place(ax_callback_call *call, const ax_attribute *attributes, void *context) {
  (void)attributes, (void)context;
  if (call->in[0].data != call->out[0].data) return AX_INVALID_ARGUMENT;
  ((float *)call->out[0].data)[2] += 10;
  return AX_OK;
}

#define ALIAS(k, i) ", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [" k "], operand_index = " i ", operand_tuple_indices = []>]"

/* The operand stays as it was for others. */
static void test_aliases(void **state) {
  (void)state;
  ax_custom_calls *calls;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register(calls, "in_place", in_place, NULL, NULL, NULL));
  check(ONE("in_place", ALIAS("", "0")), calls, (float[]){1, 2, 13, 4, 5, 6});
  check("func.func @main(%x: " T ") -> " T " {\n  " CALL("in_place", "%x", ALIAS("", "0"), "(" T ") -> " T) "\n  %1 = stablehlo.add %0, %x : " T
        "\n  return %1 : " T "\n}\n", calls, (float[]){2, 4, 16, 8, 10, 12});
  refuses(ONE("in_place", ALIAS("", "1")), calls, AX_INVALID_ARGUMENT, "names result 0 and operand 1, which there are not");
  refuses(ONE("in_place", ALIAS("0, 1", "0")), calls, AX_ABSENT, "inside of tuples");
  ax_custom_calls_release(calls);
}

static ax_status count_calls(ax_callback_call *call, const ax_attribute *attributes, void *context) {
  (void)attributes;
  ++*(int *)context;
  *(int32_t *)call->out[0].data = 5;
  return AX_OK;
}

/* Integers that are known are computed while a module of open shapes is read; calls are not made then. */
static void test_known_operands(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: tensor<?xf32>) -> tensor<i32> {\n  %c = stablehlo.constant dense<3> : tensor<i32>\n  "
      "%0 = \"stablehlo.custom_call\"(%c) {call_target_name = \"five\"} : (tensor<i32>) -> tensor<i32>\n  return %0 : tensor<i32>\n}\n";
  ax_custom_calls *calls;
  ax_program *program;
  int count = 0;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register(calls, "five", count_calls, &count, NULL, NULL));
  const ax_stablehlo_dim dims[] = {{"x.0", 2}};
  TEST_OK(ax_program_from_stablehlo_with(text, strlen(text), "m.mlir", &(ax_stablehlo_options){.dim_count = 1, .dims = dims, .custom_calls = calls},
                                         &program));
  assert_int_equal(count, 0);
  ax_program_release(program);
  ax_custom_calls_release(calls);
}

#define TOKENS(call) "func.func @main(%x: " T ") -> " T " {\n  %t = stablehlo.create_token : !stablehlo.token\n  %y = stablehlo.add %x, %x : " T "\n  " call

/* Tokens and tuples are no arrays: what names values by their numbers names the same ones without them. */
static void test_aliases_beside_tokens(void **state) {
  (void)state;
  ax_custom_calls *calls;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register(calls, "in_place", in_place, NULL, NULL, NULL));
  check(TOKENS(CALL("in_place", "%t, %y, %x", ALIAS("", "1"), "(!stablehlo.token, " T ", " T ") -> " T)) "\n  return %0 : " T "\n}\n", calls,
        (float[]){2, 4, 16, 8, 10, 12});
  check(TOKENS(CALL("in_place", "%t, %y", ALIAS("1", "1"), "(!stablehlo.token, " T ") -> tuple<!stablehlo.token, " T ">"))
        "\n  %1 = stablehlo.get_tuple_element %0[1] : (tuple<!stablehlo.token, " T ">) -> " T "\n  return %1 : " T "\n}\n",
        calls, (float[]){2, 4, 16, 8, 10, 12});
  ax_custom_calls_release(calls);
}

/* --- Handlers --- */

static ax_ffi_error *failure(const ax_ffi_frame *frame, int code, const char *message) {
  return frame->api->error_create(&(ax_ffi_error_create){.struct_size = sizeof(ax_ffi_error_create), .message = message, .code = code});
}

/* Answers a question for metadata. False: it is a call. */
static bool answer(const ax_ffi_frame *frame) {
  ax_ffi_metadata_extension *asked = (ax_ffi_metadata_extension *)frame->extensions;
  if (asked == NULL || asked->head.type != AX_FFI_METADATA) return false;
  asked->metadata->version.major = 0, asked->metadata->version.minor = 3;
  return true;
}

static void *named(const ax_ffi_attributes *attributes, const char *name, int kind) {
  for (int64_t i = 0; i < attributes->count; i++)
    if (attributes->names[i]->count == strlen(name) && memcmp(attributes->names[i]->data, name, strlen(name)) == 0)
      return attributes->kinds[i] == kind ? attributes->values[i] : NULL;
  return NULL;
}

/* Adds a number to each element, which it has from nested attributes; by scratch, and in a task. */
typedef struct task {
  const float *x;
  float *y, by;
} task;
static void add(void *data) {
  const task *t = data;
  for (int i = 0; i < 6; i++) t->y[i] = t->x[i] + t->by;
}

static ax_ffi_error *adder(ax_ffi_frame *frame) {
  if (answer(frame)) return NULL;
  const ax_ffi_attributes *inner = named(&frame->attributes, "more", AX_FFI_ATTRIBUTE_DICTIONARY);
  const ax_ffi_bytes *mode = named(&frame->attributes, "mode", AX_FFI_ATTRIBUTE_STRING);
  const ax_ffi_scalar *by = named(&frame->attributes, "by", AX_FFI_ATTRIBUTE_SCALAR);
  const ax_ffi_array *shift = inner != NULL ? named(inner, "shift", AX_FFI_ATTRIBUTE_ARRAY) : NULL;
  if (mode == NULL || by == NULL || shift == NULL || by->dtype != 11 || shift->dtype != 12 || shift->count != 2)
    return failure(frame, AX_FFI_INVALID_ARGUMENT, "other attributes");
  if (mode->count == 4 && memcmp(mode->data, "fail", 4) == 0) return failure(frame, AX_FFI_UNIMPLEMENTED, "the mode says so");
  const ax_ffi_buffer *x = frame->in.values[0], *y = frame->out.values[0];
  if (x->dtype != 11 || x->rank != 2 || x->dims[1] != 3 || frame->in.kinds[0] != AX_FFI_BUFFER) return failure(frame, AX_FFI_INTERNAL, "another buffer");
  ax_ffi_allocate scratch = {.struct_size = sizeof scratch, .context = frame->context, .bytes = sizeof(task), .alignment = 4096};
  ax_ffi_error *error = frame->api->allocate(&scratch);
  if (error != NULL) return error;
  task *t = scratch.data;
  *t = (task){x->data, y->data, *(float *)by->data + (float)((double *)shift->data)[1]};
  error = (uintptr_t)scratch.data % 4096 != 0 ? failure(frame, AX_FFI_INTERNAL, "not aligned") : NULL;
  if (error == NULL) error = frame->api->schedule(&(ax_ffi_schedule){.struct_size = sizeof(ax_ffi_schedule), .context = frame->context, .task = add, .data = t});
  ax_ffi_error *other = frame->api->release(&(ax_ffi_release){.struct_size = sizeof(ax_ffi_release), .context = frame->context, .data = t});
  return error != NULL ? error : other;
}

/* Keeps a number as its state, from one stage to the others. */
static ax_ffi_type_id number_type;
static int made, ended;
static void end_number(void *number) {
  ended++;
  free(number);
}
static const ax_ffi_type_info number_info = {.struct_size = sizeof number_info, .deleter = end_number};

static ax_ffi_error *make_number(ax_ffi_frame *frame) {
  if (answer(frame)) return NULL;
  float *number = malloc(sizeof *number);
  *number = frame->stage == AX_FFI_INSTANTIATE ? 1 : 2;
  made++;
  ax_ffi_error *error = frame->api->state_set(&(ax_ffi_state){
      .struct_size = sizeof(ax_ffi_state), .context = frame->context, .stage = frame->stage, .id = &number_type, .state = number});
  if (error != NULL) free(number);
  return error;
}

static ax_ffi_error *add_number(ax_ffi_frame *frame) {
  if (answer(frame)) return NULL;
  ax_ffi_state first = {.struct_size = sizeof first, .context = frame->context, .stage = AX_FFI_INSTANTIATE, .id = &number_type}, second = first;
  ax_ffi_device device = {.struct_size = sizeof device, .context = frame->context};
  second.stage = AX_FFI_PREPARE;
  ax_ffi_error *error = frame->api->state_get(&first);
  if (error == NULL) error = frame->api->state_get(&second);
  if (error == NULL) error = frame->api->device(&device);
  const ax_ffi_buffer *x = frame->in.values[0], *y = frame->out.values[0];
  for (int i = 0; i < 6 && error == NULL; i++)
    ((float *)y->data)[i] = ((float *)x->data)[i] + *(float *)first.state + *(float *)second.state + (float)device.device;
  return error;
}

/* Goes on after it has returned; the module says by api_version 4's attribute `error` whether it fails. */
typedef struct later {
  ax_ffi_frame frame;
  pthread_t thread;
} later;
static void *finish(void *data) {
  later *l = data;
  const ax_ffi_buffer *x = l->frame.in.values[0], *y = l->frame.out.values[0];
  for (int i = 0; i < 6; i++) ((float *)y->data)[i] = -((float *)x->data)[i];
  if (l->frame.attributes.count > 0)
    l->frame.api->future_error(&(ax_ffi_future_error){.struct_size = sizeof(ax_ffi_future_error), .future = l->frame.future,
                                                      .error = failure(&l->frame, AX_FFI_DATA_LOSS, "later")});
  else
    l->frame.api->future_available(&(ax_ffi_future_available){.struct_size = sizeof(ax_ffi_future_available), .future = l->frame.future});
  free(l);
  return NULL;
}
static ax_ffi_error *negate_later(ax_ffi_frame *frame) {
  if (answer(frame)) return NULL;
  ax_ffi_future_create created = {.struct_size = AX_FFI_FUTURE_CREATE_BYTES};
  ax_ffi_error *error = frame->api->future_create(&created);
  later *l = malloc(sizeof *l);
  frame->future = created.future;
  l->frame = *frame;
  pthread_t thread;
  pthread_create(&thread, NULL, finish, l);
  pthread_detach(thread);
  return error;
}

/* Asks for what there is not, and gives structs of another version. */
static ax_ffi_error *ask(ax_ffi_frame *frame) {
  if (answer(frame)) return NULL;
  ax_ffi_error *errors[] = {frame->api->stream(&(ax_ffi_stream){.struct_size = sizeof(ax_ffi_stream), .context = frame->context}),
                            frame->api->user_data(&(ax_ffi_user_data){.struct_size = sizeof(ax_ffi_user_data), .context = frame->context}),
                            frame->api->run_id(&(ax_ffi_run_id){.struct_size = sizeof(ax_ffi_run_id), .context = frame->context}),
                            frame->api->register_handler(&(ax_ffi_register){.struct_size = sizeof(ax_ffi_register)}),
                            frame->api->register_type(&(ax_ffi_type_register){.struct_size = sizeof(ax_ffi_type_register)}),
                            frame->api->allocate(&(ax_ffi_allocate){.struct_size = sizeof(ax_ffi_allocate) - 8}),
                            frame->api->allocate(&(ax_ffi_allocate){.struct_size = sizeof(ax_ffi_allocate), .alignment = 72})};
  for (size_t i = 0; i < AX_COUNT(errors); i++) {
    if (errors[i] == NULL) return failure(frame, AX_FFI_INTERNAL, "it was given");
    ax_ffi_error_message said = {.struct_size = sizeof said, .error = errors[i]};
    frame->api->error_message(&said);
    if (strlen(said.message) == 0) return failure(frame, AX_FFI_INTERNAL, "no message");
    frame->api->error_destroy(&(ax_ffi_error_destroy){.struct_size = sizeof(ax_ffi_error_destroy), .error = errors[i]});
  }
  int64_t threads = 0;
  ax_ffi_error *error = frame->api->threads(&(ax_ffi_threads){.struct_size = sizeof(ax_ffi_threads), .context = frame->context, .count = &threads});
  memcpy(((ax_ffi_buffer *)frame->out.values[0])->data, ((ax_ffi_buffer *)frame->in.values[0])->data, 24);
  return error != NULL || threads == 1 ? error : failure(frame, AX_FFI_INTERNAL, "threads");
}

static ax_ffi_error *of_the_future(ax_ffi_frame *frame) {
  if (answer(frame)) ((ax_ffi_metadata_extension *)frame->extensions)->metadata->version.minor = 4;
  return NULL;
}

/* A matrix whose columns lie one after the other: the element in row r and column c of 2 by 3 is at 2 c + r. */
static ax_ffi_error *column_sums(ax_ffi_frame *frame) {
  if (answer(frame)) return NULL;
  const ax_ffi_buffer *x = frame->in.values[0], *y = frame->out.values[0];
  if (x->dims[0] != 2 || x->dims[1] != 3) return failure(frame, AX_FFI_INTERNAL, "dimensions");
  for (int c = 0; c < 3; c++)
    for (int r = 1; r >= 0; r--) ((float *)y->data)[2 * c + r] = ((float *)x->data)[2 * c] + (float)r * ((float *)x->data)[2 * c + 1];
  return NULL;
}

static ax_foreign_function as(ax_ffi_handler handler) { return (ax_foreign_function)handler; }

static ax_custom_calls *handlers(void) {
  ax_custom_calls *calls;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register_ffi(calls, "adder", &(ax_ffi_handlers){.execute = as(adder)}));
  TEST_OK(ax_custom_call_register_ffi(calls, "later", &(ax_ffi_handlers){.execute = as(negate_later)}));
  TEST_OK(ax_custom_call_register_ffi(calls, "ask", &(ax_ffi_handlers){.execute = as(ask)}));
  TEST_OK(ax_custom_call_register_ffi(calls, "columns", &(ax_ffi_handlers){.execute = as(column_sums)}));
  TEST_OK(ax_custom_call_register_ffi(calls, "future", &(ax_ffi_handlers){.execute = as(of_the_future)}));
  TEST_OK(ax_custom_call_register_ffi(calls, "number", &(ax_ffi_handlers){as(make_number), as(make_number), NULL, as(add_number)}));
  return calls;
}

#define LAYOUTS ", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]"

#define TOKEN_LAYOUTS \
  ", operand_layouts = [dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]"

static void test_handlers(void **state) {
  (void)state;
  ax_custom_calls *calls = handlers();
  check(ONE("adder", SCALE("fast")), calls, (float[]){4, 5, 6, 7, 8, 9});
  check(ONE("adder", TYPED ", backend_config = \"{mode = \\\"fast\\\", by = 2.0 : f32, more = {which = 1 : ui8, shift = array<f64: 0.5, 1.0>}}\""), calls,
        (float[]){4, 5, 6, 7, 8, 9});
  fails_to_run(ONE("adder", SCALE("fail")), calls, AX_ABSENT, "UNIMPLEMENTED: the mode says so");
  check(ONE("later", TYPED), calls, (float[]){-1, -2, -3, -4, -5, -6});
  fails_to_run(ONE("later", TYPED ", backend_config = {error = true}"), calls, AX_IO_ERROR, "DATA_LOSS: later");
  check(ONE("ask", TYPED), calls, input);
  check(ONE("columns", TYPED LAYOUTS), calls, (float[]){1, 2, 3, 5, 7, 9});
  check(TOKENS(CALL("columns", "%t, %x", TYPED TOKEN_LAYOUTS, "(!stablehlo.token, " T ") -> " T)) "\n  return %0 : " T "\n}\n", calls,
        (float[]){1, 2, 3, 5, 7, 9});
  check(ONE("columns", ", mhlo.backend_config = {}" LAYOUTS ALIAS("", "0")), calls, (float[]){1, 2, 3, 5, 7, 9}); /* as JAX writes it */
  ax_custom_calls_release(calls);
}

static void test_states(void **state) {
  (void)state;
  ax_custom_calls *calls = handlers();
  made = ended = 0;
  refuses(ONE("number", TYPED), calls, AX_INVALID_ARGUMENT, "FAILED_PRECONDITION: the type of the state is not registered");
  made = ended = 0;
  TEST_FAILS(ax_custom_call_register_ffi_type(calls, &number_type, NULL), AX_INVALID_ARGUMENT, "no XLA_FFI_TypeInfo");
  TEST_OK(ax_custom_call_register_ffi_type(calls, &number_type, &number_info));
  TEST_OK(ax_custom_call_register_ffi_type(calls, &number_type, &number_info));
  assert_true(number_type.number > 0);
  check(ONE("number", TYPED), calls, (float[]){4, 5, 6, 7, 8, 9});
  assert_int_equal(made, 2);
  assert_int_equal(ended, 2);
  ax_custom_calls_release(calls);
}

/* --- The older kinds --- */

static void first(float *out, const float **in) {
  for (int i = 0; i < 6; i++) out[i] = in[0][i] + 1;
}
static void third(float **out, const float **in, const char *config, size_t bytes, void *status) {
  (void)status;
  for (int i = 0; i < 6; i++) out[0][i] = in[0][i] * (float)bytes, out[1][i] = (float)config[0];
}
/* What std::optional<std::string> is after it was given a text: a short one lies in itself, a longer one in memory of operator new. */
static void *of_new(size_t bytes) {
  void *symbol = dlsym(RTLD_DEFAULT, "_Znwm"), *(*operator_new)(size_t) = malloc;
  if (symbol != NULL) memcpy(&operator_new, &symbol, sizeof symbol);
  return operator_new(bytes);
}
static void fail_with(const char *text, char *status) {
  const size_t count = strlen(text);
  char *begin = count < 16 ? status + 16 : of_new(count + 1);
  memcpy(begin, text, count + 1);
  memcpy(status, &begin, sizeof begin);
  memcpy(status + 8, &count, sizeof count);
  status[32] = 1;
}
static void second(float *out, const float **in, char *status) { (void)out, (void)in, fail_with("no way", status); }
static void second_long(float *out, const float **in, char *status) {
  (void)out, (void)in, fail_with("no way through here, nor through there", status);
}

static void test_untyped(void **state) {
  (void)state;
  ax_custom_calls *calls;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register_untyped(calls, "first", (ax_foreign_function)first));
  TEST_OK(ax_custom_call_register_untyped(calls, "second", (ax_foreign_function)second));
  TEST_OK(ax_custom_call_register_untyped(calls, "third", (ax_foreign_function)third));
  TEST_OK(ax_custom_call_register_ffi(calls, "first", &(ax_ffi_handlers){.execute = as(ask)})); /* a name may have both */
  check(ONE("first", ""), calls, (float[]){2, 3, 4, 5, 6, 7});
  check(ONE("first", TYPED), calls, input);
  fails_to_run(ONE("second", ", api_version = 2 : i32"), calls, AX_INVALID_ARGUMENT, "no way");
  TEST_OK(ax_custom_call_register_untyped(calls, "second_long", (ax_foreign_function)second_long));
  fails_to_run(ONE("second_long", ", api_version = 2 : i32"), calls, AX_INVALID_ARGUMENT, "no way through here, nor through there");
  check("func.func @main(%x: " T ") -> " T " {\n  %0, %1 = \"stablehlo.custom_call\"(%x) {call_target_name = \"third\", api_version = 3 : i32, "
        "backend_config = \"abc\"} : (" T ") -> (" T ", " T ")\n  return %0 : " T "\n}\n", calls, (float[]){3, 6, 9, 12, 15, 18});
  ax_custom_calls_release(calls);
}

/* --- What is refused --- */

static const struct {
  const char *text;
  ax_status status;
  const char *message;
} refused[] = {
    {ONE("nobody", ""), AX_ABSENT, "m.mlir:2: stablehlo.custom_call: the target @nobody is not known. Registered (ax_custom_call_register, --ffi): "
                                   "adder, later, ask, columns, future, number. Built in: lapack_"},
    {ONE("xla_ffi_python_cpu_callback", TYPED), AX_ABSENT, "the target @xla_ffi_python_cpu_callback is not known: it is a Python function"},
    {ONE("ask", ""), AX_INVALID_ARGUMENT, "@ask: it is registered for api_version 4 only, and this one is 1"},
    {ONE("ask", ", api_version = 5 : i32"), AX_ABSENT, "api_version 5 is none of 1 to 4"},
    {ONE("future", TYPED), AX_ABSENT, "its execute handler is built for version 0.4 of XLA's interface, and here are 0.1 to 0.3"},
    {ONE("ask", TYPED ", backend_config = {a = [1, \"x\"]}"), AX_ABSENT, "the attribute a of the call is no number, array, string or dictionary"},
    {ONE("ask", TYPED ", backend_config = {a = f32}"), AX_ABSENT, "the attribute a of the call is no number"},
    {ONE("ask", TYPED ", backend_config = {a = dense<1> : tensor<99999999x99999999xi8>}"), AX_ABSENT, "one element, repeated too often"},
    {ONE("ask", TYPED ", backend_config = 7 : i32"), AX_ABSENT, "the attribute backend_config of the call is no dictionary"},
    {ONE("ask", TYPED ", backend_config = \"7\""), AX_ABSENT, "text that is no dictionary"},
    {ONE("ask", TYPED ", backend_config = \"{a = \""), AX_PARSE_ERROR, "backend_config:1"},
    {ONE("ask", TYPED ", operand_layouts = [dense<[0, 0]> : tensor<2xindex>]"), AX_INVALID_ARGUMENT, "each dimension of value 0 once"},
    {ONE("ask", TYPED ", operand_layouts = [dense<0> : tensor<1xindex>]"), AX_INVALID_ARGUMENT, "the dimensions of value 0"},
    {ONE("ask", TYPED ALIAS("", "0") ", operand_layouts = [dense<[0, 1]> : tensor<2xindex>]"), AX_ABSENT, "different layouts"},
    {ONE("ask", TYPED ", called_computations = [@main]"), AX_ABSENT, "called_computations"},
    {"func.func @main(%x: tensor<2xi4>) -> tensor<2xi4> {\n  " CALL("ask", "%x", TYPED, "(tensor<2xi4>) -> tensor<2xi4>") "\n  return %0 : tensor<2xi4>\n}\n",
     AX_ABSENT, "operand 0 is of s4, which XLA's interface has not"},
};

static void test_refused(void **state) {
  (void)state;
  ax_custom_calls *calls = handlers();
  for (size_t i = 0; i < AX_COUNT(refused); i++) refuses(refused[i].text, calls, refused[i].status, refused[i].message);
  refuses(ONE("nobody", ""), NULL, AX_ABSENT, "--ffi): none. Built in");
  TEST_FAILS(ax_custom_call_register_ffi(calls, "x", &(ax_ffi_handlers){0}), AX_INVALID_ARGUMENT, "no execute handler");
  TEST_FAILS(ax_custom_calls_load(calls, "lib.so"), AX_INVALID_ARGUMENT, "LIBRARY:SYMBOL=TARGET");
  TEST_FAILS(ax_custom_calls_load(calls, "lib.so:type:A=b"), AX_INVALID_ARGUMENT, "LIBRARY:SYMBOL=TARGET");
  TEST_FAILS(ax_custom_calls_load(calls, "/no/such/lib.so:f=g"), AX_IO_ERROR, "/no/such/lib.so");
  TEST_FAILS(ax_custom_calls_load(calls, "libm.so.6:no_such_function=g"), AX_INVALID_ARGUMENT, "libm.so.6 has no symbol no_such_function");
  ax_custom_calls_release(calls);
}

/* --- Blocks --- */

typedef struct block_call {
  int64_t rows, columns;
  float first;
} block_call;
enum { most_block_calls = 16 };
static struct {
  pthread_mutex_t lock;
  int count;
  block_call calls[most_block_calls];
} blocks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static ax_ffi_error *see_block(ax_ffi_frame *frame) {
  if (answer(frame)) return NULL;
  const ax_ffi_buffer *x = frame->in.values[0];
  pthread_mutex_lock(&blocks.lock);
  if (blocks.count < most_block_calls) blocks.calls[blocks.count++] = (block_call){x->dims[0], x->dims[1], *(const float *)x->data};
  pthread_mutex_unlock(&blocks.lock);
  return NULL;
}

static void expect_block_calls(int times, block_call wanted) {
  int found = 0;
  for (int i = 0; i < blocks.count; i++)
    found += blocks.calls[i].rows == wanted.rows && blocks.calls[i].columns == wanted.columns && blocks.calls[i].first == wanted.first;
  assert_int_equal(found, times);
}

#define BLOCKS ", has_side_effect = true, axle.blocks = true" TYPED
#define SEE(x) "\"stablehlo.custom_call\"(" x ") {call_target_name = \"see\"" BLOCKS "} : (" T ") -> ()\n"
#define ON_TWO "module {\nsdy.mesh @mesh = <[\"d\"=2]>\nfunc.func @main(%x: " T " {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}, {}]>}) {\n"

/* Each device calls with its block, in loops too; with the whole array where it lies in blocks that differ in size. */
static void test_blocks(void **state) {
  (void)state;
  ax_custom_calls *calls;
  ax_program *program;
  char *text;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register_ffi(calls, "see", &(ax_ffi_handlers){.execute = as(see_block)}));
  TEST_OK(import(ON_TWO SEE("%x") "  %y = sdy.sharding_constraint %x <@mesh, [{}, {\"d\"}]> : " T "\n  %z = stablehlo.add %y, %y : " T "\n" SEE("%z")
                 "  %c = stablehlo.constant dense<0> : tensor<i32>\n  %n = stablehlo.constant dense<3> : tensor<i32>\n"
                 "  %w:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, " T "\n  cond {\n"
                 "    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  } do {\n"
                 "    %o = stablehlo.constant dense<1> : tensor<i32>\n    %1 = stablehlo.add %i, %o : tensor<i32>\n    %2 = stablehlo.negate %v : " T "\n" SEE("%2")
                 "    stablehlo.return %1, %2 : tensor<i32>, " T "\n  }\n  return\n}\n}\n",
                 calls, &program));
  TEST_OK(run(program, 1, 0, NULL));
  assert_int_equal(blocks.count, 2 + 2 + 2 * 3);
  expect_block_calls(2, (block_call){1, 3, 1}); /* of device 0, at first and in the second iteration */
  expect_block_calls(2, (block_call){1, 3, 4});
  expect_block_calls(2, (block_call){1, 3, -1});
  expect_block_calls(2, (block_call){1, 3, -4});
  expect_block_calls(2, (block_call){2, 3, 2});
  TEST_OK(ax_program_stablehlo(program, &text)); /* what each device runs */
  assert_non_null(strstr(text, "axle.blocks = true"));
  assert_non_null(strstr(text, "(tensor<1x3xf32>) -> ()"));
  ax_string_free(text);
  ax_program_release(program);
  refuses(ONE("see", BLOCKS), calls, AX_INVALID_ARGUMENT, "without results");
  refuses(ON_TWO "  \"stablehlo.custom_call\"(%x) {call_target_name = \"see\", axle.blocks = true" TYPED "} : (" T ") -> ()\n  return\n}\n}\n", calls,
          AX_INVALID_ARGUMENT, "axle.blocks is for calls with a side effect");
  refuses(ON_TWO "  \"stablehlo.custom_call\"(%x) {call_target_name = \"see\", operand_layouts = [dense<[0, 1]> : tensor<2xindex>]" BLOCKS "} : (" T
                 ") -> ()\n  return\n}\n}\n", calls, AX_ABSENT, "operands must be row-major");
  ax_custom_calls_release(calls);
}

/* --- Out again --- */

static void test_written(void **state) {
  (void)state;
  ax_custom_calls *calls = handlers();
  ax_program *program, *again;
  char *text, *second;
  const char *module = "func.func @main(%x: " T ") -> " T " {\n  " CALL("adder", "%x", SCALE("f\\22st") ", has_side_effect = true" ALIAS("", "0"), "(" T ") -> " T)
                       "\n  return %0 : " T "\n}\n";
  TEST_OK(import(module, calls, &program));
  TEST_OK(ax_program_stablehlo(program, &text));
  assert_non_null(strstr(text, "{api_version = 4 : i32, backend_config = {by = 2.00000000e+00 : f32, mode = \"f\\22st\", more = {shift = "
                               "array<f64: 0x3FE0000000000000, 0x3FF0000000000000>, which = 1 : ui8}}, call_target_name = \"adder\", "
                               "has_side_effect = true, "));
  TEST_OK(import(text, calls, &again));
  TEST_OK(ax_program_stablehlo(again, &second));
  assert_string_equal(second, text);
  ax_string_free(text);
  ax_string_free(second);
  ax_program_release(again);
  ax_program_release(program);
  /* with layouts: what was transposed for the call is transposed back before it */
  TEST_OK(import(ONE("columns", TYPED LAYOUTS), calls, &program));
  TEST_OK(ax_program_stablehlo(program, &text));
  assert_non_null(strstr(text, "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]"));
  assert_non_null(strstr(text, "(tensor<2x3xf32>) -> tensor<2x3xf32>"));
  check(text, calls, (float[]){1, 2, 3, 5, 7, 9});
  ax_string_free(text);
  ax_program_release(program);
  ax_custom_calls_release(calls);
}

/* --- Memory --- */

static ax_status import_all(void *context) {
  (void)context;
  ax_custom_calls *calls;
  ax_program *program;
  ax_status status = ax_custom_calls_create(&calls);
  if (status != AX_OK) return status;
  status = ax_custom_call_register_ffi_type(calls, &number_type, &number_info);
  if (status == AX_OK) status = ax_custom_call_register_ffi(calls, "adder", &(ax_ffi_handlers){.execute = as(adder)});
  if (status == AX_OK) status = import(ONE("adder", SCALE("fast") ALIAS("", "0")), calls, &program);
  if (status == AX_OK) ax_program_release(program);
  if (status == AX_OK) status = import(ONE("adder", TYPED LAYOUTS ", backend_config = \"{a = 1 : i32}\""), calls, &program);
  if (status == AX_OK) ax_program_release(program);
  ax_custom_calls_release(calls);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(import_all, NULL) > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_own),     cmocka_unit_test(test_effects), cmocka_unit_test(test_aliases), cmocka_unit_test(test_aliases_beside_tokens), cmocka_unit_test(test_known_operands), cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_handlers), cmocka_unit_test(test_states),  cmocka_unit_test(test_untyped),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_written), cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
