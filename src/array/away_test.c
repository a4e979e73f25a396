/* Parts on a plugin's device: they have no addresses until they are brought here, and no buffers until they are sent. */
#include <string.h>

#include "array/runtime.h"
#include "axle/sharding.h"
#include "client/client.h"
#include "client/elements.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_runtime *runtime;
static const float data[] = {1, 2, 3};

static ax_array *put(void) {
  const ax_type type = TEST_TYPE(AX_F32, 3);
  ax_array *array;
  TEST_OK((ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data, sizeof data, &array));
  return array;
}

static void brought(void **state) {
  (void)state;
  ax_array *array = put();
  ax_parts *parts = array->parts;
  assert_true(parts->away);
  assert_null(parts->part[0]);
  TEST_OK(ax_parts_bring(parts, array->layout));
  assert_false(parts->away);
  assert_memory_equal(parts->part[0], data, sizeof data);
  const unsigned char *at = parts->part[0];
  TEST_OK(ax_parts_bring(parts, array->layout));
  assert_ptr_equal(parts->part[0], at);
  ax_array_release(array);
}

static void sent(void **state) {
  (void)state;
  ax_array *array = put();
  ax_parts *here, *away;
  ax_buffers *buffers, *again;
  TEST_OK(ax_parts_create(runtime, array->layout, &here));
  memcpy(here->part[0], data, sizeof data);
  TEST_OK(ax_parts_send(here, array->layout, &buffers));
  TEST_OK(ax_parts_send(here, array->layout, &again));
  assert_ptr_equal(buffers, again);
  assert_true(ax_buffers_shared(buffers));
  ax_buffers_release(again);
  TEST_OK(ax_parts_send_away(here, array->layout));
  assert_true(here->away);
  TEST_OK(ax_parts_create_away(runtime, array->layout, buffers, &away)); /* which consumes them */
  ax_parts_release(here);
  TEST_OK(ax_parts_bring(away, array->layout));
  assert_memory_equal(away->part[0], data, sizeof data);
  ax_parts_release(away);
  ax_array_release(array);
}

static void other_devices(void **state) {
  (void)state;
  const ax_host_array host = (ax_host_view)(AX_F32, AX_DIMS(3), AX_F32, data, sizeof data);
  ax_sharding *second;
  ax_array *array;
  TEST_OK(ax_sharding_single(1, &second));
  TEST_FAILS(ax_device_put_as(runtime, second, &host, &array), AX_INVALID_ARGUMENT, "device 1 of the 1 there are");
  ax_sharding_release(second);
}

/* Every dtype but keys is one of PJRT's, and that one is its own. */
static void elements(void **state) {
  (void)state;
  uint32_t without = 0;
  for (ax_dtype dtype = AX_NO_DTYPE + 1; dtype < AX_DTYPE_COUNT; dtype++) {
    const ax_pjrt_element element = ax_pjrt_element_of(dtype);
    without += element == AX_PJRT_NO_ELEMENT;
    if (element != AX_PJRT_NO_ELEMENT) assert_int_equal(ax_pjrt_dtype_of(element), dtype);
  }
  assert_int_equal(without, 1);
  assert_int_equal(ax_pjrt_dtype_of(AX_PJRT_TOKEN), AX_NO_DTYPE);
}

static void errors(void **state) {
  (void)state;
  TEST_FAILS(ax_client_lacks("PJRT_Thing"), AX_ABSENT, "the plugin has no PJRT_Thing");
  TEST_OK(ax_client_status(runtime->client->api, NULL, "nothing"));
  TEST_OK(ax_client_await(runtime->client, NULL, "nothing"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(brought), cmocka_unit_test(sent), cmocka_unit_test(other_devices),
                                     cmocka_unit_test(elements), cmocka_unit_test(errors)};
  if (ax_runtime_create(&(ax_runtime_options){.workers = 1, .plugin = AXLE_FAKE_PLUGIN_FILE}, &runtime) != AX_OK) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ax_runtime_release(runtime);
  return failed;
}
