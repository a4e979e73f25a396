/* Errors, products that overflow, arenas, growing arrays, texts, hashes. */
#include "base/base.h"

#include <string.h>
#include <sys/resource.h>

#include "support/cmocka.h"

/* --- Errors --- */

static ax_status fails(void) { return ax_error(AX_PARSE_ERROR, "line %d", 7); }
static ax_status passes_on(bool *after) {
  AX_TRY(fails());
  *after = true;
  return AX_OK;
}

static void a_failure_is_passed_on(void **state) {
  (void)state;
  bool after = false;
  assert_int_equal(passes_on(&after), AX_PARSE_ERROR);
  assert_false(after);
  assert_string_equal(ax_message(), "line 7");
}

static void context_goes_in_front(void **state) {
  (void)state;
  (void)fails();
  assert_int_equal(ax_error_context(AX_IO_ERROR, "%s: ", "file"), AX_IO_ERROR);
  assert_string_equal(ax_message(), "file: line 7");
}

static void a_message_may_have_the_old_one_in_it(void **state) {
  (void)state;
  (void)fails();
  assert_int_equal(ax_error(AX_INTERNAL, "%s, again %s", ax_message(), ax_message()), AX_INTERNAL);
  assert_string_equal(ax_message(), "line 7, again line 7");
}

static void what_is_missing_is_named(void **state) {
  (void)state;
  assert_int_equal(ax_require("", "name"), AX_OK);
  assert_int_equal(ax_require(NULL, "name"), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "there is no name");
  assert_int_equal(ax_out_of_memory(12), AX_OUT_OF_MEMORY);
  assert_string_equal(ax_message(), "out of memory: 12 bytes");
}

/* --- Numbers --- */

static void products_that_overflow_are_found(void **state) {
  (void)state;
  size_t size;
  int64_t number;
  assert_true(ax_mul_size(SIZE_MAX / 3, 3, &size) && size == SIZE_MAX / 3 * 3);
  assert_false(ax_mul_size(SIZE_MAX / 2 + 1, 2, &size));
  assert_true(ax_mul_i64(-3, 5, &number) && number == -15);
  assert_true(ax_mul_i64(INT64_MIN, 1, &number) && !ax_mul_i64(INT64_MIN, -1, &number));
}

static void quotients_are_rounded_up(void **state) {
  (void)state;
  assert_int_equal(ax_ceil_div(0, 4), 0);
  assert_int_equal(ax_ceil_div(8, 4), 2);
  assert_int_equal(ax_ceil_div(9, 4), 3);
}

/* The first numbers from 0, as in Vigna's splitmix64.c. */
static void random_numbers_are_those_of_splitmix64(void **state) {
  (void)state;
  uint64_t seed = 0;
  assert_true(ax_next_random(&seed) == 0xe220a8397b1dcdafull);
  assert_true(ax_next_random(&seed) == 0x6e789e6aa1b965f4ull);
}

static void hashes_differ_by_bytes_length_and_seed(void **state) {
  (void)state;
  const char bytes[16] = "abcdefgh";
  const uint64_t hash = ax_hash_bytes(AX_HASH_SEED, bytes, 8);
  assert_true(hash == ax_hash_bytes(AX_HASH_SEED, "abcdefgh", 8));
  assert_true(hash != ax_hash_bytes(AX_HASH_SEED, bytes, 9)); /* a byte 0 more */
  assert_true(hash != ax_hash_bytes(AX_HASH_SEED, "abcdefgi", 8));
  assert_true(hash != ax_hash_bytes(AX_HASH_SEED + 1, bytes, 8));
  assert_true(ax_hash_word(ax_hash_word(0, 1), 2) != ax_hash_word(ax_hash_word(0, 2), 1)); /* by the order of words */
  assert_true((uint32_t)ax_hash_word(0, (uint64_t)1 << 63) != (uint32_t)ax_hash_word(0, 0)); /* upper bits reach the lower ones */
}

/* --- Memory --- */

static void memory_is_aligned_and_never_null(void **state) {
  (void)state;
  char *none = ax_alloc(0), *some = ax_calloc(3, 5);
  assert_non_null(none);
  assert_int_equal((uintptr_t)some % 64, 0);
  for (int i = 0; i < 15; i++) assert_int_equal(some[i], 0);
  assert_null(ax_calloc(SIZE_MAX / 2 + 2, 2)); /* 2 bytes, if the product were to overflow */
  ax_free(none), ax_free(some), ax_free(NULL);
}

static void an_arena_gives_cleared_aligned_memory(void **state) {
  (void)state;
  ax_arena arena = {0};
  char *a = ax_arena_alloc(&arena, 5), *b = ax_arena_copy(&arena, "text", 5);
  assert_int_equal((uintptr_t)a % 16, 0);
  assert_int_equal(b - a, ax_arena_bytes(5));
  assert_memory_equal(a, "\0\0\0\0\0", 5);
  assert_string_equal(b, "text");
  char *large = ax_arena_alloc(&arena, 1 << 20); /* more than a chunk */
  memset(large, 1, 1 << 20);
  assert_string_equal(b, "text");
  assert_null(ax_arena_alloc(&arena, SIZE_MAX));
  ax_arena_deinit(&arena);
  assert_null(arena.chunks);
}

/* Emptied, it gives the memory that it has again, cleared, before it takes more. */
static void an_emptied_arena_gives_its_memory_again(void **state) {
  (void)state;
  enum { count = 40, bytes = 3000 }; /* several chunks */
  ax_arena arena = {0};
  char *before[count], *after;
  ax_arena_empty(&arena);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < count; i++) {
      after = ax_arena_alloc(&arena, bytes);
      assert_non_null(after);
      for (int k = 0; k < bytes; k++) assert_int_equal(after[k], 0);
      memset(after, 1, bytes);
      bool is_there = round == 0;
      for (int k = 0; k < count && !is_there; k++) is_there = before[k] == after;
      assert_true(is_there || AX_HOSTILE);
      if (round == 0) before[i] = after;
    }
    ax_arena_empty(&arena);
    assert_null(arena.chunks);
  }
  ax_arena_deinit(&arena);
  assert_null(arena.spare);
}

static void what_is_reserved_is_in_one_piece(void **state) {
  (void)state;
  ax_arena arena = {0};
  assert_true(ax_arena_reserve(&arena, ax_arena_bytes(100000) + ax_arena_bytes(7)));
  const char *a = ax_arena_alloc(&arena, 100000), *b = ax_arena_alloc(&arena, 7);
  assert_int_equal(b - a, ax_arena_bytes(100000));
  ax_arena_deinit(&arena);
}

static void an_array_grows_with_its_contents(void **state) {
  (void)state;
  int *items = NULL;
  uint32_t capacity = 0;
  for (int i = 0; i < 100; i++) {
    assert_int_equal(ax_grow(&items, sizeof items[0], (uint32_t)i, 1, &capacity), AX_OK);
    items[i] = i;
    assert_true(capacity > (uint32_t)i && capacity <= 2 * (uint32_t)i + 8);
  }
  for (int i = 0; i < 100; i++) assert_int_equal(items[i], i);
  assert_int_equal(ax_grow(&items, 0, 100, UINT32_MAX, &capacity), AX_OUT_OF_MEMORY); /* more than can be counted */
  assert_int_equal(items[99], 99);
  ax_free(items);
}

static void a_library_may_have_what_the_system_has(void **state) {
  (void)state;
  assert_int_equal(ax_memory_for_library(4096), AX_OK);
  assert_int_equal(ax_memory_for_library((size_t)1 << 62), AX_OUT_OF_MEMORY);
}

static void a_file_is_as_long_as_the_limit(void **state) {
  (void)state;
  struct rlimit limit, low;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  low = limit;
  low.rlim_cur = 1000;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  const bool fits = ax_file_may_hold(1000), fails = ax_file_may_hold(1001);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  assert_true(fits);
  assert_false(fails);
}

/* --- Texts --- */

static void a_text_grows_and_ends_in_nul(void **state) {
  (void)state;
  ax_text text = {0};
  char *out;
  ax_text_add(&text, "%d", 12);
  ax_text_add_bytes(&text, "a\0b", 3);
  for (int i = 0; i < 100; i++) ax_text_add(&text, "%s", "0123456789");
  assert_int_equal(text.length, 2 + 3 + 1000);
  assert_memory_equal(text.data, "12a\0b0", 6);
  assert_int_equal(ax_text_finish(&text, &out), AX_OK);
  assert_int_equal(out[1005], '\0');
  assert_null(text.data);
  ax_free(out);
}

static void an_empty_text_is_a_text(void **state) {
  (void)state;
  ax_text text = {0};
  char *out;
  assert_int_equal(ax_text_finish(&text, &out), AX_OK);
  assert_string_equal(out, "");
  ax_free(out);
}

static void a_text_remembers_that_memory_ran_out(void **state) {
  (void)state;
  ax_text text = {.failed = true};
  char *out = "";
  ax_text_add(&text, "lost");
  assert_int_equal(text.length, 0);
  assert_int_equal(ax_text_finish(&text, &out), AX_OUT_OF_MEMORY);
  assert_null(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failure_is_passed_on),
      cmocka_unit_test(context_goes_in_front),
      cmocka_unit_test(a_message_may_have_the_old_one_in_it),
      cmocka_unit_test(what_is_missing_is_named),
      cmocka_unit_test(products_that_overflow_are_found),
      cmocka_unit_test(quotients_are_rounded_up),
      cmocka_unit_test(random_numbers_are_those_of_splitmix64),
      cmocka_unit_test(hashes_differ_by_bytes_length_and_seed),
      cmocka_unit_test(memory_is_aligned_and_never_null),
      cmocka_unit_test(an_arena_gives_cleared_aligned_memory),
      cmocka_unit_test(an_emptied_arena_gives_its_memory_again),
      cmocka_unit_test(what_is_reserved_is_in_one_piece),
      cmocka_unit_test(an_array_grows_with_its_contents),
      cmocka_unit_test(a_library_may_have_what_the_system_has),
      cmocka_unit_test(a_file_is_as_long_as_the_limit),
      cmocka_unit_test(a_text_grows_and_ends_in_nul),
      cmocka_unit_test(an_empty_text_is_a_text),
      cmocka_unit_test(a_text_remembers_that_memory_ran_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
