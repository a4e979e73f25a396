/* The parts of custom calls alone: the collection, attributes in XLA's form and as text, errors and futures, a call's site. What they do
   together is in src/bridge/custom_calls_test.c. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ffi/api.h"
#include "ffi/attributes.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

/* --- Attributes --- */

static const float half = 0.5f;
static const uint32_t words[] = {1, 4000000000u};
static const bool truth = true;
static const int64_t minus = -3;
static const uint64_t large = UINT64_MAX;
static const ax_attribute inner[] = {{"deep", AX_ATTRIBUTE_SCALAR, AX_S64, 1, &minus, NULL}};
/* in the order of their names */
static const ax_attribute entries[] = {{"a", AX_ATTRIBUTE_SCALAR, AX_F32, 1, &half, NULL},
                                       {"b", AX_ATTRIBUTE_ARRAY, AX_U32, 2, words, NULL},
                                       {"c d", AX_ATTRIBUTE_STRING, AX_NO_DTYPE, 3, "x\"\n", NULL},
                                       {"e", AX_ATTRIBUTE_DICTIONARY, AX_NO_DTYPE, 1, NULL, inner},
                                       {"f", AX_ATTRIBUTE_SCALAR, AX_BOOL, 1, &truth, NULL},
                                       {"g", AX_ATTRIBUTE_SCALAR, AX_U64, 1, &large, NULL}};
static const ax_attribute all = {"", AX_ATTRIBUTE_DICTIONARY, AX_NO_DTYPE, AX_COUNT(entries), NULL, entries};

static void test_attributes(void **state) {
  (void)state;
  int64_t integer = 7;
  double number = 0;
  const char *text = NULL;
  assert_ptr_equal(ax_attribute_find(&all, "f"), &entries[4]);
  assert_null(ax_attribute_find(&all, "d"));
  assert_null(ax_attribute_find(&entries[0], "a"));
  assert_null(ax_attribute_find(NULL, "a"));
  TEST_OK(ax_attribute_integer(&all, "f", &integer));
  assert_int_equal(integer, 1);
  TEST_OK(ax_attribute_integer(ax_attribute_find(&all, "e"), "deep", &integer));
  assert_int_equal(integer, -3);
  TEST_FAILS(ax_attribute_integer(&all, "g", &integer), AX_INVALID_ARGUMENT, "the attribute g is too large: 18446744073709551615");
  TEST_FAILS(ax_attribute_integer(&all, "a", &integer), AX_INVALID_ARGUMENT, "must be an integer, and is of f32");
  TEST_FAILS(ax_attribute_integer(&all, "b", &integer), AX_INVALID_ARGUMENT, "the attribute b must be a number");
  assert_int_equal(integer, -3);
  TEST_OK(ax_attribute_number(&all, "a", &number));
  assert_float_equal(number, 0.5, 0);
  TEST_FAILS(ax_attribute_number(&all, "z", &number), AX_INVALID_ARGUMENT, "the attribute z is missing");
  TEST_OK(ax_attribute_text(&all, "c d", &text));
  assert_string_equal(text, "x\"\n");
  TEST_FAILS(ax_attribute_text(&all, "a", &text), AX_INVALID_ARGUMENT, "the attribute a must be a string");
}

static void test_forms(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_ffi_attributes made;
  ax_text text = {0};
  TEST_OK(ax_ffi_attributes_make(&arena, &all, &made));
  assert_int_equal(made.struct_size, sizeof made);
  assert_int_equal(made.count, 6);
  const ax_ffi_array *array = made.values[1];
  assert_int_equal(made.kinds[1], AX_FFI_ATTRIBUTE_ARRAY);
  assert_int_equal(array->dtype, 8);
  assert_ptr_equal(array->data, words);
  const ax_ffi_attributes *deep = made.values[3];
  assert_memory_equal(deep->names[0]->data, "deep", 4);
  assert_int_equal(((const ax_ffi_scalar *)deep->values[0])->dtype, 5);
  const ax_attribute keys = {"k", AX_ATTRIBUTE_ARRAY, AX_KEY, 0, words, NULL}, has_keys = {"", AX_ATTRIBUTE_DICTIONARY, AX_NO_DTYPE, 1, NULL, &keys};
  TEST_FAILS(ax_ffi_attributes_make(&arena, &has_keys, &made), AX_ABSENT, "the attribute k is of key");
  assert_int_equal(ax_ffi_dtype(AX_S4), 0);
  assert_int_equal(ax_ffi_dtype(AX_BF16), 16);
  ax_ffi_attributes_text(&text, &all);
  assert_string_equal(text.data, "{\"a\" = 0x3F000000 : f32, \"b\" = dense<[1, 4000000000]> : tensor<2xui32>, \"c d\" = \"x\\22\\0A\", "
                                 "\"e\" = {\"deep\" = -3 : i64}, \"f\" = true, \"g\" = 18446744073709551615 : ui64}");
  ax_text_deinit(&text);
  ax_ffi_quoted_text(&text, "\\\377", 2);
  assert_string_equal(text.data, "\"\\5C\\FF\"");
  ax_text_deinit(&text);
  ax_arena_deinit(&arena);
}

/* --- Errors, futures, states --- */

static void test_errors(void **state) {
  (void)state;
  ax_ffi_error *error = ax_ffi_error_make(AX_FFI_NOT_FOUND, "nowhere");
  ax_ffi_error_message said = {.struct_size = sizeof said, .error = error};
  ax_ffi_functions()->error_message(&said);
  assert_string_equal(said.message, "nowhere");
  ax_ffi_error_end(error);
  assert_string_equal(ax_ffi_code_name(AX_FFI_DATA_LOSS), "DATA_LOSS");
  assert_string_equal(ax_ffi_code_name(99), "UNKNOWN");
  assert_int_equal(ax_ffi_status_of(AX_FFI_UNIMPLEMENTED), AX_ABSENT);
  assert_int_equal(ax_ffi_status_of(-1), AX_INVALID_ARGUMENT);
}

static void *set_later(void *future) {
  assert_null(ax_ffi_functions()->future_available(&(ax_ffi_future_available){.struct_size = sizeof(ax_ffi_future_available), .future = future}));
  return NULL;
}

static void test_futures(void **state) {
  (void)state;
  const ax_ffi_api *api = ax_ffi_functions();
  for (int fails = 0; fails < 2; fails++) {
    ax_ffi_future_create created = {.struct_size = AX_FFI_FUTURE_CREATE_BYTES};
    pthread_t thread;
    assert_null(api->future_create(&created));
    ax_ffi_future_error set = {.struct_size = sizeof set, .future = created.future, .error = ax_ffi_error_make(AX_FFI_ABORTED, "over")};
    if (fails == 1) {
      assert_null(api->future_error(&set));
      set.error = ax_ffi_error_make(AX_FFI_ABORTED, "again");
      ax_ffi_error *twice = api->future_error(&set);
      assert_non_null(twice);
      ax_ffi_error_end(twice);
    } else {
      ax_ffi_error_end(set.error);
      assert_int_equal(pthread_create(&thread, NULL, set_later, created.future), 0);
    }
    ax_ffi_error *error = ax_ffi_future_wait(created.future);
    assert_true((error != NULL) == (fails == 1));
    if (error != NULL) ax_ffi_error_end(error);
    if (fails == 0) pthread_join(thread, NULL);
  }
}

/* Futures that nothing waits for are ended when both sides are done with them, in any order, with their errors. */
static void test_abandoned_futures(void **state) {
  (void)state;
  const ax_ffi_api *api = ax_ffi_functions();
  for (int way = 0; way < 4; way++) {
    ax_ffi_future_create created = {.struct_size = AX_FFI_FUTURE_CREATE_BYTES};
    assert_null(api->future_create(&created));
    ax_ffi_future_error set = {.struct_size = sizeof set, .future = created.future};
    if (way % 2 == 0) ax_ffi_future_abandon(created.future);
    if (way / 2 == 0) set_later(created.future);
    if (way / 2 == 1) set.error = ax_ffi_error_make(AX_FFI_ABORTED, "over");
    if (way / 2 == 1) assert_null(api->future_error(&set));
    if (way % 2 == 1) ax_ffi_future_abandon(created.future);
  }
}

/* A collection of many targets finds each. */
static void test_many(void **state) {
  ax_custom_calls *calls;
  ax_custom_call_entry found;
  char name[16];
  (void)state;
  TEST_OK(ax_custom_calls_create(&calls));
  assert_false(ax_custom_calls_find(calls, "call0", &found));
  for (int i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, "call%d", i);
    TEST_OK(ax_custom_call_register_untyped(calls, name, (ax_foreign_function)test_many));
  }
  for (int i = 0; i < 1001; i++) {
    snprintf(name, sizeof name, "call%d", i);
    assert_true(ax_custom_calls_find(calls, name, &found) == (i < 1000));
    if (i < 1000) assert_string_equal(found.name, name);
  }
  ax_custom_calls_release(calls);
}

static void count(void *object) { ++*(int *)object; }

static void test_states(void **state) {
  (void)state;
  ax_custom_calls *calls;
  int ended = 0;
  ax_ffi_type_id id = {0}, other = {0}, known = {17};
  const ax_ffi_type_info info = {.struct_size = sizeof info, .deleter = count}, none = {.struct_size = sizeof none};
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register_ffi_type(calls, &id, &info));
  TEST_OK(ax_custom_call_register_ffi_type(calls, &other, &info));
  TEST_OK(ax_custom_call_register_ffi_type(calls, &known, &info));
  assert_true(id.number != other.number && known.number == 17);
  TEST_FAILS(ax_custom_call_register_ffi_type(calls, &known, &none), AX_INVALID_ARGUMENT, "no deleter");
  assert_true(ax_custom_calls_deleter(calls, 17) == count);
  assert_null(ax_custom_calls_deleter(calls, 18));
  const ax_ffi_api *api = ax_ffi_functions();
  ax_ffi_context context = {.calls = calls};
  ax_ffi_state set = {.struct_size = sizeof set, .context = &context, .stage = AX_FFI_PREPARE, .id = &id, .state = &ended};
  ax_ffi_state get = {.struct_size = sizeof get, .context = &context, .stage = AX_FFI_PREPARE, .id = &other};
  ax_ffi_error *errors[4] = {api->state_get(&get)}; /* none is set */
  assert_null(api->state_set(&set));
  errors[1] = api->state_set(&set); /* one is set */
  errors[2] = api->state_get(&get); /* of another type */
  get.id = &id;
  assert_null(api->state_get(&get));
  assert_ptr_equal(get.state, &ended);
  get.stage = AX_FFI_EXECUTE;
  errors[3] = api->state_get(&get); /* no such stage */
  for (int i = 0; i < 4; i++) {
    assert_non_null(errors[i]);
    ax_ffi_error_end(errors[i]);
  }
  ax_ffi_state_end(&context.states[AX_FFI_PREPARE]);
  ax_ffi_state_end(&context.states[AX_FFI_PREPARE]);
  assert_int_equal(ended, 1);
  ax_custom_calls_release(calls);
}

/* --- The collection, and a site --- */

static ax_status twice(ax_callback_call *call, const ax_attribute *attributes, void *context) {
  assert_ptr_equal(context, &half);
  assert_int_equal(attributes->kind, AX_ATTRIBUTE_DICTIONARY);
  *(float *)call->out[0].data = 2 * *(const float *)call->in[0].data;
  return AX_OK;
}

static void test_site(void **state) {
  (void)state;
  ax_custom_calls *calls;
  ax_custom_call_entry found;
  ax_ffi_site *site;
  ax_text names = {0};
  float x = 3, y = 0;
  TEST_OK(ax_custom_calls_create(&calls));
  TEST_OK(ax_custom_call_register(calls, "twice", twice, (void *)(uintptr_t)&half, NULL, NULL));
  assert_true(ax_custom_calls_find(calls, "twice", &found) && found.function == twice);
  assert_false(ax_custom_calls_find(calls, "thrice", &found) || ax_custom_calls_find(NULL, "twice", &found));
  ax_custom_calls_names(calls, &names);
  assert_string_equal(names.data, "twice");
  ax_text_deinit(&names);
  TEST_FAILS(ax_ffi_site_create(calls, "thrice", 6, &site), AX_ABSENT, "not registered");
  assert_null(site);
  TEST_OK(ax_ffi_site_create(calls, "twice(", 5, &site));
  ax_custom_calls_release(calls);
  site->version = 1, site->in_count = site->out_count = 1;
  TEST_OK(ax_ffi_site_begin(site));
  ax_host_array in = {.dtype = AX_F32, .data = &x, .view = true}, out = {.dtype = AX_F32, .data = &y, .view = true};
  char message[AX_MESSAGE_BYTES] = "";
  ax_callback_call call = {.name = "twice", .in_count = 1, .out_count = 1, .in = &in, .out = &out, .message = message};
  TEST_OK(ax_ffi_site_call(&call, site));
  assert_float_equal(y, 6, 0);
  site->alias = (uint32_t[]){0};
  TEST_OK(ax_ffi_site_call(&call, site));
  assert_ptr_equal(in.data, &y);
  ax_ffi_site_release(site);
}

static ax_status register_all(void *context) {
  ax_custom_calls *calls;
  ax_ffi_site *site;
  ax_status status = ax_custom_calls_create(&calls);
  if (status != AX_OK) return status;
  status = ax_custom_call_register(calls, "twice", twice, NULL, NULL, NULL);
  if (status == AX_OK) status = ax_custom_call_register_untyped(calls, "once", (ax_foreign_function)count);
  if (status == AX_OK) status = ax_ffi_site_create(calls, "twice", 5, &site);
  if (status == AX_OK) ax_ffi_site_release(site);
  if (status == AX_OK) {
    status = ax_custom_calls_load(calls, "libm.so.6:cos=cos");
    status = status == AX_OK ? ax_custom_calls_load(calls, "libm.so.6:prepare:sin=cos") : status;
  }
  ax_custom_calls_release(calls);
  (void)context;
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(register_all, NULL) > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_attributes), cmocka_unit_test(test_forms), cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_futures), cmocka_unit_test(test_abandoned_futures), cmocka_unit_test(test_many),    cmocka_unit_test(test_states), cmocka_unit_test(test_site),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
