/* Packing into places: what is alive at the same time never overlaps, nothing lies in a place beyond its end or its time, and the
   bytes are no more than those of ax_pack and no fewer than what must be alive beside the places. */
#include "assemble/pack.h"

#include "support/cmocka.h"
#include "support/random.h"

enum { N = 700, PLACES = 6 };

static bool meet(const ax_packed *a, const ax_packed *b) { return a->last >= b->first && b->last >= a->first; }

static void check(const ax_packed *items, uint32_t count, const ax_pack_place *places, int64_t bytes) {
  int64_t most = 0;
  for (uint32_t i = 0; i < count; i++) {
    const ax_packed *a = &items[i];
    if (a->bytes == 0) continue;
    assert_true(a->offset >= 0);
    if (a->place == AX_NONE) {
      if (a->offset + a->bytes > most) most = a->offset + a->bytes;
    } else {
      assert_true(!a->apart && a->last < places[a->place].until && a->offset + a->bytes <= places[a->place].bytes);
    }
    for (uint32_t k = 0; k < i; k++) {
      const ax_packed *b = &items[k];
      if (b->bytes == 0 || b->place != a->place || !meet(a, b)) continue;
      assert_true(a->offset >= b->offset + b->bytes || b->offset >= a->offset + a->bytes);
    }
  }
  assert_int_equal(bytes, most);
}

/* The most bytes that are alive at one time. */
static int64_t alive(const ax_packed *items, uint32_t count, uint32_t end) {
  int64_t most = 0;
  for (uint32_t at = 0; at < end; at++) {
    int64_t now = 0;
    for (uint32_t i = 0; i < count; i++) now += items[i].first <= at && at <= items[i].last ? items[i].bytes : 0;
    if (now > most) most = now;
  }
  return most;
}

static void test_random_items(void **state) {
  (void)state;
  test_random random = {.state = 11};
  for (int round = 0; round < 60; round++) {
    const uint32_t count = round % 10 == 9 ? N : 1 + (uint32_t)test_random_below(&random, 40), end = round % 2 == 0 ? 60 : 600;
    ax_packed items[N], plain[N];
    ax_pack_place places[PLACES];
    int64_t bytes, before, room = 0;
    const uint32_t place_count = (uint32_t)test_random_below(&random, PLACES + 1);
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t first = (uint32_t)test_random_below(&random, end), last = first + (uint32_t)test_random_below(&random, end - first);
      items[i] = plain[i] = (ax_packed){.first = first,
                                        .last = test_random_below(&random, 3) == 0 ? first : last,
                                        .bytes = 64 * test_random_below(&random, round % 3 == 0 ? 4 : 60),
                                        .apart = test_random_below(&random, 5) == 0};
    }
    for (uint32_t k = 0; k < place_count; k++) {
      places[k] = (ax_pack_place){(uint32_t)test_random_below(&random, end + 1), 64 * test_random_below(&random, 80)};
      room += places[k].bytes;
    }
    TEST_OK(ax_pack(plain, count, &before));
    TEST_OK(ax_pack_into(items, count, places, place_count, &bytes));
    check(items, count, places, bytes);
    assert_true(bytes <= before && bytes + room >= alive(items, count, end));
  }
}

/* Two large items, one after the other, and small ones between them that outlive the first: in the order of time, the second does not
   fit where the first was. */
static void test_by_size(void **state) {
  (void)state;
  ax_packed items[] = {{.first = 0, .last = 3, .bytes = 64}, {.first = 0, .last = 1, .bytes = 6400}, {.first = 1, .last = 5, .bytes = 128},
                       {.first = 2, .last = 5, .bytes = 6464}};
  int64_t bytes;
  TEST_OK(ax_pack_into(items, 4, NULL, 0, &bytes));
  check(items, 4, NULL, bytes);
  assert_int_equal(bytes, 64 + 128 + 6464);
}

/* A place takes what dies before its time, and the smallest place that is large enough takes it. */
static void test_places(void **state) {
  (void)state;
  const ax_pack_place places[] = {{.until = 9, .bytes = 6400}, {.until = 4, .bytes = 128}, {.until = 9, .bytes = 192}};
  ax_packed items[] = {{.first = 0, .last = 3, .bytes = 128}, {.first = 0, .last = 4, .bytes = 128}, {.first = 0, .last = 9, .bytes = 64}};
  int64_t bytes;
  TEST_OK(ax_pack_into(items, 3, places, 3, &bytes));
  assert_int_equal(items[0].place, 1);
  assert_int_equal(items[1].place, 2);
  assert_int_equal(items[2].place, AX_NONE);
  assert_int_equal(bytes, 64);
  TEST_OK(ax_pack_into(items, 0, places, 3, &bytes));
  assert_int_equal(bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_items), cmocka_unit_test(test_by_size), cmocka_unit_test(test_places)};
  return cmocka_run_group_tests_name("pack_into", tests, NULL, NULL);
}
