/* Tensors of DLPack there and back, and with every wrong one that a library may give. */
#include "axle/dlpack.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

static ax_runtime *runtime_of(uint32_t workers) {
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  return runtime;
}

static int deleted;
static void count(ax_dlpack *tensor) { deleted += tensor->context == &deleted; }

/* A tensor of the caller's memory. */
static ax_dlpack tensor_of(void *data, ax_dlpack_type type, int32_t rank, int64_t *dims, int64_t *strides) {
  return (ax_dlpack){{AX_DLPACK_MAJOR, AX_DLPACK_MINOR}, &deleted, count, 0, {data, {1, 0}, rank, type, dims, strides, 0}};
}

static void expect(const ax_array *array, const char *type, const void *data, size_t bytes) {
  char back[256];
  assert_string_equal(ax_type_string(ax_array_typeof(array), NULL), type);
  TEST_OK((ax_array_read)(array, ax_array_typeof(array)->dtype, back, bytes));
  assert_memory_equal(back, data, bytes);
}

static const void *address_of(const ax_array *array) {
  const void *data;
  size_t bytes;
  TEST_OK(ax_array_part(array, 0, &data, &bytes, NULL));
  return data;
}

static void test_taken(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t dims[] = {2, 3}, turned[] = {3, 2}, strides[] = {1, 3};
  const ax_dlpack_type f32 = {AX_DLPACK_FLOAT, 32, 1};
  ax_dlpack tensor = tensor_of(data, f32, 2, dims, NULL);
  ax_array *array, *other;
  deleted = 0;
  TEST_OK(ax_array_from_dlpack(runtime, &tensor, &array));
  assert_ptr_equal(address_of(array), data);
  expect(array, "f32[2,3]", data, sizeof data);
  other = ax_array_retain(array);
  ax_array_release(array);
  assert_int_equal(deleted, 0);
  ax_array_release(other);
  assert_int_equal(deleted, 1);
  tensor = tensor_of(data, f32, 2, turned, strides); /* transposed: copied */
  TEST_OK(ax_array_from_dlpack(runtime, &tensor, &array));
  assert_int_equal(deleted, 2);
  expect(array, "f32[3,2]", (const float[]){0, 3, 1, 4, 2, 5}, sizeof data);
  ax_array_release(array);
  char bytes[2 * sizeof(float) + 1] = {0};
  memcpy(bytes + 1, data + 4, 2 * sizeof(float));
  int64_t two[] = {2};
  tensor = tensor_of(bytes, f32, 1, two, NULL); /* not aligned, behind an offset */
  tensor.tensor.byte_offset = 1;
  TEST_OK(ax_array_from_dlpack(runtime, &tensor, &array));
  expect(array, "f32[2]", data + 4, 2 * sizeof(float));
  ax_array_release(array);
  int64_t none[] = {0, 5};
  tensor = tensor_of(NULL, f32, 2, none, NULL);
  TEST_OK(ax_array_from_dlpack(runtime, &tensor, &array));
  assert_string_equal(ax_type_string(ax_array_typeof(array), NULL), "f32[0,5]");
  ax_array_release(array);
  assert_int_equal(deleted, 4);
  ax_runtime_release(runtime);
}

/* The tensor keeps the memory when the array is gone, and when it is donated. */
static void test_given(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  const float data[] = {1, 2, 3};
  ax_dlpack *tensor, *again;
  ax_array *array, *back, *result;
  ax_program *program;
  ax_executable *executable;
  const ax_type type = TEST_TYPE(AX_F32, 3);
  TEST_OK((ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data, sizeof data, &array));
  TEST_OK(ax_array_to_dlpack(array, &tensor));
  assert_true(tensor->version.major == 1 && tensor->flags == AX_DLPACK_READ_ONLY && tensor->tensor.rank == 1 && tensor->tensor.strides[0] == 1);
  assert_ptr_equal(tensor->tensor.data, address_of(array));
  TEST_OK(ax_array_from_dlpack(runtime, tensor, &back)); /* and is taken back */
  TEST_OK(ax_array_to_dlpack(back, &again));
  ax_array_release(back);
  expect(array, "f32[3]", data, sizeof data);
  static const char text[] = "{ lambda a:f32[3]. let b:f32[3] = add a a in (b) }";
  TEST_OK(ax_program_parse(text, strlen(text), "t", &program));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_ARGS(0)}, &executable));
  TEST_OK(ax_run(executable, AX_LIST(1, &array), AX_LIST(1, &result)));
  expect(result, "f32[3]", (const float[]){2, 4, 6}, sizeof data);
  assert_memory_equal(again->tensor.data, data, sizeof data);
  TEST_FAILS(ax_array_to_dlpack(array, &tensor), AX_INVALID_ARGUMENT, "donated");
  ax_array_release(array);
  ax_array_release(result);
  assert_memory_equal(again->tensor.data, data, sizeof data);
  again->deleter(again);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* Elements of each kind come back as they were. */
static void test_kinds(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  for (ax_dtype dtype = 0; dtype < AX_DTYPE_COUNT; dtype++) {
    const ax_type type = {.dtype = dtype, .rank = 1, .dims = {2}};
    const char zeros[64] = {0};
    ax_array *array, *back;
    ax_dlpack *tensor;
    if (dtype == AX_NO_DTYPE || ax_dtype_bytes(dtype) == 0 || ax_dtype_bytes(dtype) > 16) continue;
    if ((ax_device_put_data)(runtime, NULL, "", &type, dtype, zeros, 2 * ax_dtype_bytes(dtype), &array) != AX_OK) continue;
    if (dtype == AX_KEY) {
      TEST_FAILS(ax_array_to_dlpack(array, &tensor), AX_INVALID_ARGUMENT, "no tensor");
      ax_array_release(array);
      continue;
    }
    TEST_OK(ax_array_to_dlpack(array, &tensor));
    TEST_OK(ax_array_from_dlpack(runtime, tensor, &back));
    assert_int_equal(ax_array_typeof(back)->dtype, dtype);
    ax_array_release(back);
    ax_array_release(array);
  }
  ax_runtime_release(runtime);
}

/* The form without a version, there and back; its deleter is called once. */
static void count_plain(ax_dlpack_unversioned *tensor) { deleted += tensor->context == &deleted; }

static void test_unversioned(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  float data[3] = {1, 2, 3};
  int64_t dims[] = {3};
  ax_dlpack_unversioned tensor = {{data, {1, 0}, 1, {AX_DLPACK_FLOAT, 32, 1}, dims, NULL, 0}, &deleted, count_plain}, *given;
  ax_array *array, *back;
  deleted = 0;
  tensor.tensor.device.type = 13;
  TEST_FAILS(ax_array_from_dlpack_unversioned(runtime, &tensor, &array), AX_INVALID_ARGUMENT, "device type 13");
  TEST_FAILS(ax_array_from_dlpack_unversioned(runtime, NULL, &array), AX_INVALID_ARGUMENT, "tensor");
  tensor.tensor.device.type = 1;
  TEST_OK(ax_array_from_dlpack_unversioned(runtime, &tensor, &array));
  assert_ptr_equal(address_of(array), data);
  TEST_OK(ax_array_to_dlpack_unversioned(array, &given));
  assert_ptr_equal(given->tensor.data, data);
  ax_array_release(array);
  TEST_OK(ax_array_from_dlpack_unversioned(runtime, given, &back));
  expect(back, "f32[3]", data, sizeof data);
  assert_int_equal(deleted, 0);
  ax_array_release(back);
  assert_int_equal(deleted, 1);
  ax_runtime_release(runtime);
}

static void test_refused(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  float data[4] = {0};
  int64_t dims[] = {4}, negative[] = {-1}, huge[] = {INT64_MAX / 2, 8};
  const ax_dlpack_type f32 = {AX_DLPACK_FLOAT, 32, 1};
  const ax_dlpack good = tensor_of(data, f32, 1, dims, NULL);
  ax_dlpack tensor = good, *out;
  ax_array *array;
  deleted = 0;
  tensor.version.major = 2;
  TEST_FAILS(ax_array_from_dlpack(runtime, &tensor, &array), AX_INVALID_ARGUMENT, "version 2");
  tensor = good, tensor.tensor.device.type = 2;
  TEST_FAILS(ax_array_from_dlpack(runtime, &tensor, &array), AX_INVALID_ARGUMENT, "device type 2");
  tensor = good, tensor.tensor.rank = 17;
  TEST_FAILS(ax_array_from_dlpack(runtime, &tensor, &array), AX_INVALID_ARGUMENT, "17 dimensions");
  tensor = good, tensor.tensor.dims = negative;
  TEST_FAILS(ax_array_from_dlpack(runtime, &tensor, &array), AX_INVALID_ARGUMENT, "dimension 0 is -1");
  tensor = good, tensor.tensor.rank = 2, tensor.tensor.dims = huge;
  TEST_FAILS(ax_array_from_dlpack(runtime, &tensor, &array), AX_INVALID_ARGUMENT, "too many elements");
  tensor = good, tensor.tensor.type.lanes = 4;
  TEST_FAILS(ax_array_from_dlpack(runtime, &tensor, &array), AX_ABSENT, "4 lanes");
  tensor = good, tensor.tensor.type = (ax_dlpack_type){AX_DLPACK_INT, 4, 1}; /* two in a byte */
  TEST_FAILS(ax_array_from_dlpack(runtime, &tensor, &array), AX_ABSENT, "4 bits");
  TEST_FAILS(ax_array_from_dlpack(NULL, &tensor, &array), AX_INVALID_ARGUMENT, "runtime");
  TEST_FAILS(ax_array_from_dlpack(runtime, NULL, &array), AX_INVALID_ARGUMENT, "tensor");
  TEST_FAILS(ax_array_to_dlpack(NULL, &out), AX_INVALID_ARGUMENT, "array");
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 2}}};
  const ax_type type = TEST_TYPE(AX_F32, 4);
  TEST_OK((ax_device_put_data)(runtime, &mesh, "d", &type, AX_F32, data, sizeof data, &array));
  TEST_FAILS(ax_array_to_dlpack(array, &out), AX_INVALID_ARGUMENT, "in 2 parts");
  ax_array_release(array);
  assert_int_equal(deleted, 0);
  ax_runtime_release(runtime);
}

static ax_status there_and_back(void *context) {
  ax_runtime *runtime = context;
  float data[6] = {0};
  int64_t dims[] = {3, 2}, strides[] = {1, 3};
  ax_dlpack tensor = tensor_of(data, (ax_dlpack_type){AX_DLPACK_FLOAT, 32, 1}, 2, dims, strides), *given;
  ax_array *array;
  AX_TRY(ax_array_from_dlpack(runtime, &tensor, &array));
  ax_status status = ax_array_to_dlpack(array, &given);
  if (status == AX_OK) given->deleter(given);
  ax_dlpack_unversioned *plain;
  if (status == AX_OK) status = ax_array_to_dlpack_unversioned(array, &plain);
  ax_array_release(array);
  if (status != AX_OK) return status;
  status = ax_array_from_dlpack_unversioned(runtime, plain, &array);
  if (status == AX_OK) ax_array_release(array);
  else plain->deleter(plain);
  return status;
}

static ax_status whole(void *context) {
  ax_runtime *runtime;
  (void)context;
  AX_TRY(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  const ax_status status = there_and_back(runtime);
  ax_runtime_release(runtime);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(whole, NULL) > 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken), cmocka_unit_test(test_given), cmocka_unit_test(test_kinds), cmocka_unit_test(test_unversioned),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
