/* Windows over scattered elements, placed by hand. */
#include "jit/emit/windows.h"

#include "support/cmocka.h"

static void begin_at(const ax_row_windows *w, uint32_t count, const int64_t *starts) {
  assert_int_equal(w->count, count);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(w->start[i], starts[i]);
}

static void neighbours_are_one_window(void **state) {
  (void)state;
  const ax_row_windows w = ax_windows_cover((const int64_t[]){5, 6, 7, 8}, 4, 100);
  begin_at(&w, 1, (const int64_t[]){5});
}

/* Every other element: 0 2 of the first four, 4 6 of the last that end at 6. */
static void no_window_reads_beyond_the_last_element(void **state) {
  (void)state;
  const ax_row_windows w = ax_windows_cover((const int64_t[]){0, 2, 4, 6}, 4, 6),
                       free = ax_windows_cover((const int64_t[]){0, 2, 4, 6}, 4, 7);
  begin_at(&w, 2, (const int64_t[]){0, 3});
  begin_at(&free, 2, (const int64_t[]){0, 4});
  for (uint32_t lane = 0; lane < 4; lane++) assert_int_equal(w.window[lane], lane / 2);
}

static void lanes_may_come_in_any_order(void **state) {
  (void)state;
  const ax_row_windows w = ax_windows_cover((const int64_t[]){20, 1, 22, 0}, 4, 100);
  begin_at(&w, 2, (const int64_t[]){0, 20});
  const uint8_t wanted[] = {1, 0, 1, 0};
  for (uint32_t lane = 0; lane < 4; lane++) assert_int_equal(w.window[lane], wanted[lane]);
}

static void aligned_windows_are_whole_vectors_apart(void **state) {
  (void)state;
  const ax_row_windows w = ax_windows_cover_aligned((const int64_t[]){2, 5, 6, 13}, 4, 1),
                       before = ax_windows_cover_aligned((const int64_t[]){-2, -1, 0, 1}, 4, 1);
  begin_at(&w, 3, (const int64_t[]){1, 5, 13});
  begin_at(&before, 2, (const int64_t[]){-3, 1});
}

static void too_many_windows_are_counted_as_such(void **state) {
  (void)state;
  int64_t offsets[16];
  for (int i = 0; i < 16; i++) offsets[i] = 100 * i;
  const ax_row_windows w = ax_windows_cover(offsets, 16, 1600);
  assert_int_equal(w.count, AX_MAX_WINDOWS + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(neighbours_are_one_window),
      cmocka_unit_test(no_window_reads_beyond_the_last_element),
      cmocka_unit_test(lanes_may_come_in_any_order),
      cmocka_unit_test(aligned_windows_are_whole_vectors_apart),
      cmocka_unit_test(too_many_windows_are_counted_as_such),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
