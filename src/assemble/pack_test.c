/* Packing is compared with a search over all that was placed before, which is how the offsets are defined. */
#include "assemble/pack.h"

#include "support/cmocka.h"
#include "support/random.h"

/* The items given, in the order in which they are placed: the lowest offset that collides with no earlier one. */
static int64_t lowest(const ax_packed *items, uint32_t i) {
  int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t k = 0; k < i; k++) {
      const ax_packed *other = &items[k];
      bool meet = other->last >= items[i].first && other->first <= items[i].last;
      if (!meet || other->bytes == 0 || other->offset >= offset + items[i].bytes || other->offset + other->bytes <= offset)
        continue;
      offset = other->offset + other->bytes;
      moved = true;
    }
  }
  return offset;
}

static void test_lowest_offsets(void **state) {
  (void)state;
  enum { N = 300 };
  test_random random = {.state = 5};
  for (int round = 0; round < 40; round++) {
    ax_packed items[N];
    uint32_t at = 0;
    for (uint32_t i = 0; i < N; i++) {
      at += 1 + (uint32_t)test_random_below(&random, 2);
      int64_t life = test_random_below(&random, 8) == 0 ? 400 : 12;
      items[i] = (ax_packed){.first = at, .last = at + (uint32_t)test_random_below(&random, life),
                             .bytes = 64 * test_random_below(&random, round % 2 == 0 ? 4 : 40)};
    }
    int64_t bytes, most = 0;
    assert_int_equal(ax_pack(items, N, &bytes), AX_OK);
    for (uint32_t i = 0; i < N; i++) {
      if (items[i].bytes > 0) assert_int_equal(items[i].offset, lowest(items, i));
      if (items[i].offset + items[i].bytes > most) most = items[i].offset + items[i].bytes;
    }
    assert_int_equal(bytes, most);
  }
}

static void test_order(void **state) {
  (void)state;
  ax_packed items[] = {
      {.first = 0, .last = 9, .bytes = 64}, {.first = 0, .last = 4, .bytes = 256}, {.first = 5, .last = 9, .bytes = 128}};
  int64_t bytes;
  assert_int_equal(ax_pack(items, 3, &bytes), AX_OK);
  assert_int_equal(items[1].offset, 0);
  assert_int_equal(items[0].offset, 256);
  assert_int_equal(items[2].offset, 0);
  assert_int_equal(bytes, 320);
  assert_int_equal(ax_pack(items, 0, &bytes), AX_OK);
  assert_int_equal(bytes, 0);
}

/* Half of them stay, so that there is a gap between any two: seconds, were each gap looked at for each item. */
static void test_many(void **state) {
  (void)state;
  enum { N = 200000 };
  ax_packed *items = ax_alloc(N * sizeof items[0]);
  assert_non_null(items);
  for (uint32_t i = 0; i < N; i++) {
    bool early = i < N / 2;
    items[i] = (ax_packed){.first = early ? 0 : N + i, .last = early && i % 2 == 0 ? 1 : 4 * N, .bytes = early ? 64 : 128};
  }
  int64_t bytes;
  assert_int_equal(ax_pack(items, N, &bytes), AX_OK);
  assert_int_equal(bytes, (64 + 128) * (N / 2)); /* no gap is large enough */
  ax_free(items);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lowest_offsets), cmocka_unit_test(test_order),
                                     cmocka_unit_test(test_many)};
  return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
