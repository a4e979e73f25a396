/* Which pieces devices need of each other's blocks, and in which rounds they come: every element that is asked for comes once, to its place, and in
   a round a device sends and receives once. */
#include <string.h>

#include "partition/redistribute.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"

enum { most_elements = 4096 };

/* The example of redistribute.h: x and y, one behind the other. */
static void two_arrays_are_joined(void **state) {
  (void)state;
  const ax_piece_source sources[] = {{.block = 2}, {.block = 2}};
  ax_redistribution t = {.parts = 4, .length = 4, .sources = sources, .source_count = 2};
  int64_t elements, exchanges;
  for (int64_t to = 0; to < 4; to++) TEST_OK(ax_redistribution_need(&t, to / 2, to, 4 * (to % 2), 4 * (to % 2) + 4, 0));
  TEST_OK(ax_redistribution_arrange(&t));
  ax_redistribution_received(&t, &elements, &exchanges);
  assert_true(!t.uniform && t.count == 8);
  assert_int_equal(exchanges, 4); /* device 0 keeps its own half of x, and 3 of y; 1 and 2 receive from two: two rounds of either */
  assert_int_equal(elements, 8);
  ax_redistribution_deinit(&t);
}

/* Adds up where the elements of all sources come to. Element e of source s is worth 1 + e + most_elements s. */
static void put(const ax_redistribution *t, int64_t to, int64_t *made) {
  for (uint32_t i = 0; i < t->count; i++) {
    const ax_moved_piece *piece = &t->all[i];
    for (int64_t k = 0; k < piece->count && piece->to == to; k++)
      made[piece->place + k] += 1 + piece->from * t->sources[piece->source].block + piece->first + k + most_elements * piece->source;
  }
}

/* In a round a device sends one piece and receives one, of one source; a local round has the devices' own. */
static void check_rounds(const ax_redistribution *t) {
  for (uint32_t i = 0; i < t->count; i++) {
    const ax_moved_piece *a = &t->all[i];
    const ax_piece_round *round = &t->rounds[a->round];
    assert_true(a->round < t->round_count && round->source == a->source);
    if (t->uniform) {
      assert_true(round->low <= a->place && a->place + a->count <= round->end);
      assert_true(a->place - a->first == round->offset && (a->to + round->distance) % t->parts == a->from);
    } else {
      assert_true(round->longest >= a->count);
    }
    assert_int_equal(round->local, a->from == a->to || t->sources[a->source].whole);
    for (uint32_t k = 0; k < i; k++)
      assert_true(t->all[k].round != a->round || (t->all[k].to != a->to && (round->local || t->all[k].from != a->from)));
  }
}

static void random_parts_come_to_their_places(void **state) {
  test_random random = {7};
  uint32_t arranged = 0;
  (void)state;
  for (int n = 0; n < 2000; n++) {
    const int64_t parts = 1 + test_random_below(&random, 12), length = 1 + test_random_below(&random, 40);
    const ax_piece_source sources[] = {{.block = 1 + test_random_below(&random, 20)}, {.block = 1 + test_random_below(&random, 20)}};
    ax_redistribution t = {.parts = parts, .length = length, .sources = sources, .source_count = 2};
    int64_t wanted[12][40] = {{0}}, made[40];
    for (int64_t to = 0; to < parts; to++) {
      for (int64_t place = 0; place < length;) {
        const uint32_t source = (uint32_t)test_random_below(&random, 2);
        const int64_t all = parts * sources[source].block, first = test_random_below(&random, all);
        int64_t count = 1 + test_random_below(&random, all - first);
        if (count > length - place) count = length - place;
        TEST_OK(ax_redistribution_need(&t, source, to, first, first + count, place));
        for (int64_t k = 0; k < count; k++) wanted[to][place++] = 1 + first + k + most_elements * source;
      }
    }
    const ax_status status = ax_redistribution_arrange(&t);
    assert_true(status == AX_OK || status == AX_ABSENT);
    for (int64_t to = 0; to < parts && status == AX_OK; to++) {
      memset(made, 0, sizeof made);
      put(&t, to, made);
      assert_memory_equal(made, wanted[to], (size_t)length * sizeof made[0]);
    }
    if (status == AX_OK) check_rounds(&t), arranged++;
    ax_redistribution_deinit(&t);
  }
  assert_true(arranged > 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_arrays_are_joined),
      cmocka_unit_test(random_parts_come_to_their_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
