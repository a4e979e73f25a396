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

/* Among small ones, which fill what is between them. */
static void test_large_ones_begin_at_pages(void **state) {
  (void)state;
  enum { N = 300 };
  test_random random = {.state = 6};
  for (int round = 0; round < 40; round++) {
    ax_packed items[N];
    int64_t bytes, into_bytes, alive = 0;
    for (uint32_t i = 0; i < N; i++) {
      const int64_t size = 64 * test_random_below(&random, i % 3 == 0 ? 2000 : 30);
      items[i] = (ax_packed){.first = i, .last = i + (uint32_t)test_random_below(&random, 20), .bytes = size};
    }
    for (int into = 0; into < 2; into++) {
      assert_int_equal(into ? ax_pack_into(items, N, NULL, 0, &into_bytes) : ax_pack(items, N, &bytes), AX_OK);
      for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(items[i].offset % (items[i].bytes >= AX_PAGED_BYTES ? AX_PAGE_BYTES : 64), 0);
        int64_t now = 0;
        for (uint32_t k = 0; k <= i; k++) {
          if (items[k].last < items[i].first) continue;
          now += items[k].bytes;
          if (k == i || items[k].bytes == 0 || items[i].bytes == 0) continue;
          assert_true(items[k].offset >= items[i].offset + items[i].bytes || items[k].offset + items[k].bytes <= items[i].offset);
        }
        if (now > alive) alive = now;
      }
    }
    assert_true(into_bytes >= alive && into_bytes <= bytes && into_bytes < alive + 3 * alive / 10);
  }
}

/* An item at the end of a small one: where it fits, but not from a page on, the next gap is taken. */
static void test_gap_that_is_too_short_from_its_page_on(void **state) {
  (void)state;
  enum { large = 4 * AX_PAGE_BYTES };
  ax_packed items[] = {{.first = 0, .last = 9, .bytes = 128}, {.first = 0, .last = 4, .bytes = large},
                       {.first = 1, .last = 9, .bytes = large - 64}, {.first = 5, .last = 9, .bytes = large}};
  int64_t bytes;
  assert_int_equal(ax_pack(items, 4, &bytes), AX_OK);
  assert_int_equal(items[1].offset, 0); /* the larger of two first */
  assert_int_equal(items[0].offset, large);
  assert_int_equal(items[2].offset, large + 128); /* no page: it is small enough */
  assert_int_equal(items[3].offset, 0);
  assert_int_equal(bytes, 2 * large + 64);
}

/* A gap below them that is long enough, but not from its page on, does not keep those from being found that fit. */
static void test_gaps_of_pages_are_found(void **state) {
  (void)state;
  enum { N = 200, large = 4 * AX_PAGE_BYTES };
  ax_packed items[2 + 2 * N];
  int64_t bytes;
  items[0] = (ax_packed){.first = 0, .last = 9, .bytes = large - 64}; /* below the size that begins at a page */
  items[1] = (ax_packed){.first = 0, .last = 1, .bytes = large + 256}; /* from a page on: what it leaves begins there */
  for (uint32_t i = 0; i < N; i++) items[2 + i] = (ax_packed){.first = 1, .last = i % 2 == 0 ? 2 : 9, .bytes = large};
  for (uint32_t i = 0; i < N; i++) items[2 + N + i] = (ax_packed){.first = 3, .last = 9, .bytes = i < N / 2 ? large : 0};
  assert_int_equal(ax_pack(items, AX_COUNT(items), &bytes), AX_OK);
  assert_true(bytes <= (N + 4) * (int64_t)large);
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lowest_offsets), cmocka_unit_test(test_large_ones_begin_at_pages),
                                     cmocka_unit_test(test_gap_that_is_too_short_from_its_page_on), cmocka_unit_test(test_gaps_of_pages_are_found),
                                     cmocka_unit_test(test_order), cmocka_unit_test(test_many)};
  return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
