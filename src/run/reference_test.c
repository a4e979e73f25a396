/* Programs whose local work runs by the primitives' own reference code inside the executor: what reference evaluation gives, bit
   by bit, because only the order of devices differs. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static void body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_softmax(ax_matmul(in[0], in[1]), -1);
  out[0] = ax_tanh(ax_psum(x, "d"));
  out[1] = ax_add(ax_concatenate(AX_VALUES(x, ax_neg(x)), 0), ax_convert_element_type(ax_axis_index("d"), AX_F32));
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const char *in_specs[] = {"d", ""}, *out_specs[] = {"", "d"};
  test_shard_map(context, in_specs, out_specs, false, AX_FN(body, 2, 2), in, out);
}

static ax_array *put(ax_runtime *runtime, const ax_tensor *tensor) {
  ax_type type = ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims));
  ax_array *array;
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, tensor->data, &array));
  return array;
}

static void same_bits(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_type types[] = {TEST_TYPE(AX_F32, 12, 5), TEST_TYPE(AX_F32, 5, 6)};
  ax_program *program = test_trace(on_mesh, &mesh, types, 2, 2);
  test_random random = {11};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)}, *expected[2];
  test_run(program, in, expected);
  ax_runtime *runtime;
  ax_executable *executable, *fast;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.reference = true}, &executable));
  TEST_OK(ax_compile(runtime, program, NULL, &fast));
  assert_ptr_not_equal(executable, fast);
  ax_array *arrays[] = {put(runtime, in[0]), put(runtime, in[1])}, *out[2];
  TEST_OK(ax_run(executable, arrays, out));
  for (int k = 0; k < 2; k++) {
    size_t bytes = (size_t)test_elems(expected[k]) * sizeof(float);
    float *got = ax_alloc(bytes);
    TEST_OK(ax_array_read(out[k], got, bytes));
    assert_memory_equal(got, expected[k]->data, bytes);
    ax_free(got);
    ax_array_release(out[k]);
    ax_array_release(arrays[k]);
  }
  ax_executable_release(executable);
  ax_executable_release(fast);
  ax_runtime_release(runtime);
  test_release(in, 2);
  test_release(expected, 2);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
