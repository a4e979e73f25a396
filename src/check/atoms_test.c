/* Atoms of records at random: two bytes are in one atom if they are in the same footprints, and else in two. */
#include "check/atoms.h"

#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"

enum { records = 300, regions = 2, bytes = 20, most_touches = 12 };

static bool has(const ax_touches *pool, const ax_touch *touch, uint32_t region, uint64_t byte) {
  bool found = false;
  for (uint32_t r = touch->first; r < touch->first + touch->count; r++)
    found = found || (touch->region == region && pool->runs[r].begin <= byte && byte < pool->runs[r].end);
  return found;
}

/* Bytes that touches have, each counted once for all that are in the same touches. */
static uint32_t classes(const ax_touches *pool) {
  uint32_t seen[regions * bytes], count = 0;
  for (uint32_t b = 0; b < regions * bytes; b++) {
    uint32_t of = 0;
    for (uint32_t t = 0; t < pool->touch_count; t++) of |= (uint32_t)has(pool, &pool->touches[t], b / bytes, b % bytes) << t;
    uint32_t k = 0;
    while (k < count && seen[k] != of) k++;
    if (of != 0 && k == count) seen[count++] = of;
  }
  return count;
}

static void add_touch(test_random *random, ax_touches *pool) {
  ax_bytes runs[bytes];
  uint32_t count = 0;
  for (uint64_t at = test_random_below(random, 8); at + 1 < bytes; at += 1 + test_random_below(random, 6)) {
    runs[count].begin = at;
    at += 1 + test_random_below(random, 5);
    runs[count++].end = at < bytes ? at : bytes;
  }
  if (count > 0) TEST_OK(ax_touches_add(pool, (uint32_t)test_random_below(random, regions), true, false, count, runs));
}

static void test_atoms(void **state) {
  (void)state;
  test_random random = {3};
  for (uint32_t round = 0; round < records; round++) {
    ax_act_record record = {0};
    ax_atoms atoms;
    for (uint32_t r = 0; r < regions; r++)
      TEST_OK(ax_act_objects_add_region(&record.objects, (ax_act_region){.name = "x", .bytes = bytes}));
    const uint32_t touches = (uint32_t)test_random_below(&random, most_touches);
    for (uint32_t k = 0; k < touches; k++) add_touch(&random, &record.touches);
    TEST_OK(ax_atoms_find(&record, &atoms));
    assert_int_equal(atoms.count, classes(&record.touches));
    const ax_touch *t = record.touches.touches;
    for (uint32_t i = 0; i < record.touches.touch_count; i++) /* two touches have an atom in common if they have a byte */
      for (uint32_t k = 0; k < record.touches.touch_count; k++) {
        bool common = false, shared = false;
        for (uint32_t b = 0; b < regions * bytes; b++)
          common =
              common || (has(&record.touches, &t[i], b / bytes, b % bytes) && has(&record.touches, &t[k], b / bytes, b % bytes));
        const uint32_t p = atoms.of_touch[i], q = atoms.of_touch[k];
        for (uint32_t x = atoms.first[p]; x < atoms.first[p + 1]; x++)
          for (uint32_t y = atoms.first[q]; y < atoms.first[q + 1]; y++) shared = shared || atoms.items[x] == atoms.items[y];
        assert_int_equal(shared, common);
      }
    ax_atoms_deinit(&atoms);
    ax_act_record_deinit(&record);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_atoms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
