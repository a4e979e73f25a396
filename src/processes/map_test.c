/* Which process has which devices. */
#include "processes/map.h"

#include "base/base.h"
#include "support/cmocka.h"

/* What is said of single devices is what the map says. */
static void check_singly(const ax_process_rule *rule, const ax_process_map *map) {
  uint32_t count, process, own = 0;
  assert_int_equal(ax_process_devices(rule, map->devices, &count), AX_OK);
  assert_int_equal(count, map->here);
  for (uint32_t d = 0; d < map->devices; d++) {
    assert_int_equal(ax_process_of(rule, map->devices, d, &process), AX_OK);
    assert_int_equal(process, map->of[d]);
    if (ax_device_is_here(map, d)) assert_int_equal(map->own[own++], d);
  }
  assert_int_equal(own, map->here);
}

static void check(uint32_t processes, uint32_t devices, const uint32_t *counts) {
  for (uint32_t p = 0, first = 0; p < processes; first += counts[p++]) {
    ax_process_map *map;
    const ax_process_rule rule = {.process = p, .processes = processes};
    assert_int_equal(ax_process_map_create(&rule, devices, &map), AX_OK);
    assert_int_equal(map->here, counts[p]);
    for (uint32_t d = 0; d < devices; d++)
      assert_int_equal(ax_device_is_here(map, d), d >= first && d < first + counts[p]);
    check_singly(&rule, map);
    ax_free(map);
  }
}

static void blocks_are_as_equal_as_can_be(void **state) {
  (void)state;
  check(2, 8, (uint32_t[]){4, 4});
  check(3, 8, (uint32_t[]){3, 3, 2});
  check(4, 3, (uint32_t[]){1, 1, 1, 0});
  check(1, 5, (uint32_t[]){5});
  assert_true(ax_device_is_here(NULL, 7));
}

static void a_list_decides(void **state) {
  (void)state;
  ax_process_map *map;
  uint32_t number;
  const uint32_t of[] = {1, 0, 1, 1};
  const ax_process_rule rule = {.process = 1, .processes = 2, .listed = 4, .of = of};
  assert_int_equal(ax_process_map_create(&rule, 4, &map), AX_OK);
  assert_int_equal(map->here, 3);
  assert_false(ax_device_is_here(map, 1));
  check_singly(&rule, map);
  ax_free(map);
  assert_int_equal(ax_process_map_create(&rule, 5, &map), AX_INVALID_ARGUMENT);
  assert_null(map);
  assert_int_equal(ax_process_of(&rule, 5, 0, &number), AX_INVALID_ARGUMENT);
  assert_int_equal(ax_process_devices(&rule, 5, &number), AX_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_as_equal_as_can_be),
      cmocka_unit_test(a_list_decides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
