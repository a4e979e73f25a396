/* Activations parked on a counter at random: let go exactly when their target is reached, those with lesser targets first. */
#include "run/counter.h"

#include "base/base.h"
#include "support/cmocka.h"
#include "support/random.h"

enum { activations = 60, programs = 300 };

typedef struct parked {
  uint64_t targets[activations]; /* 0: not parked */
} parked;

static uint64_t least_of(const parked *p) {
  uint64_t least = AX_NO_TARGET;
  for (int f = 0; f < activations; f++)
    if (p->targets[f] != 0 && p->targets[f] < least) least = p->targets[f];
  return least;
}

static void check_released(parked *p, const ax_parking *parking, uint32_t f, uint64_t count) {
  uint64_t last = 0;
  for (uint32_t head = f; f != AX_NONE; f = parking[f].next) {
    assert_true((parking[head].last == f) == (parking[f].next == AX_NONE));
    assert_true(p->targets[f] != 0 && p->targets[f] <= count && p->targets[f] >= last);
    last = p->targets[f];
    p->targets[f] = 0;
  }
  assert_true(least_of(p) > count);
}

/* With few different targets or many; by turns some park and the count goes on. */
static void park_and_release(test_random *random, int64_t spread) {
  ax_parking parking[activations];
  ax_counter counter;
  parked p = {{0}};
  uint64_t count = 0;
  ax_counter_reset(&counter);
  for (int step = 0; step < 200; step++) {
    uint32_t f = (uint32_t)test_random_below(random, activations);
    if (p.targets[f] == 0) {
      parking[f].target = p.targets[f] = count + 1 + (uint64_t)test_random_below(random, spread);
      ax_counter_park(&counter, parking, f);
    }
    assert_true(atomic_load(&counter.least) == least_of(&p));
    if (test_random_below(random, 4) > 0) continue;
    count += (uint64_t)test_random_below(random, 4);
    check_released(&p, parking, ax_counter_release(&counter, parking, count), count);
    assert_true(atomic_load(&counter.least) == least_of(&p));
  }
  check_released(&p, parking, ax_counter_release(&counter, parking, UINT64_MAX - 1), UINT64_MAX - 1);
}

static void at_random(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= programs; seed++) {
    test_random random = {seed};
    park_and_release(&random, seed % 3 == 0 ? 1 : seed % 3 == 1 ? 4 : 50);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
