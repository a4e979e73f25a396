/* States that were met, by their hashes; and hashes of agents' pasts. */
#include "check/known.h"

#include "check/history.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static bool is_new(ax_known_states *known, uint64_t a, uint64_t b) {
  uint64_t slot;
  bool fresh;
  TEST_OK(ax_known_states_add(known, (uint64_t[]){a, b}, &slot, &fresh));
  return fresh;
}

static void a_state_is_new_once(void **state) {
  (void)state;
  ax_known_states known = {0};
  assert_true(is_new(&known, 1, 2));
  assert_false(is_new(&known, 1, 2));
  assert_true(is_new(&known, 1, 4) && is_new(&known, 2, 2)); /* either half makes another */
  assert_true(is_new(&known, 0, 0));                         /* also where the hash is what marks a free slot */
  ax_known_states_leave(&known, (uint64_t[]){0, 0});
  assert_false(is_new(&known, 0, 0));
  ax_known_states_clear(&known);
  assert_true(is_new(&known, 1, 2));
  ax_known_states_deinit(&known);
}

static void many_states_stay_known(void **state) {
  (void)state;
  ax_known_states known = {0};
  for (uint64_t i = 1; i <= 5000; i++) assert_true(is_new(&known, 1024 * i, 2 * i)); /* all begin at one slot */
  for (uint64_t i = 1; i <= 5000; i++) assert_false(is_new(&known, 1024 * i, 2 * i));
  for (uint64_t i = 0; i < 300; i++) assert_true(is_new(&known, 1, 2 * i)); /* and these share a half */
  for (uint64_t i = 0; i < 5000; i++) (void)is_new(&known, 77 + 1024 * i, 4);
  for (uint64_t i = 0; i < 300; i++) assert_false(is_new(&known, 1, 2 * i));
  assert_int_equal(known.count, 10300);
  ax_known_states_deinit(&known);
}

static void a_state_is_on_the_way_until_it_is_left(void **state) {
  (void)state;
  ax_known_states known = {0};
  const uint64_t hash[] = {5, 7};
  uint64_t slot;
  bool fresh;
  TEST_OK(ax_known_states_add(&known, hash, &slot, &fresh));
  assert_true(ax_known_states_on_way(&known, slot));
  ax_known_states_leave(&known, hash);
  assert_false(ax_known_states_on_way(&known, slot));
  assert_false(is_new(&known, 5, 7)); /* it stays known, */
  assert_false(ax_known_states_on_way(&known, slot)); /* and is not on the way again */
  ax_known_states_deinit(&known);
}

/* --- Pasts --- */

static ax_history after(ax_history before, ax_act act, int64_t count) {
  static const ax_touches none;
  return ax_history_add(&before, &act, &none, count);
}

static void reads_that_give_the_same_again_are_no_step(void **state) {
  (void)state;
  const ax_act read = {.kind = AX_ACT_READ, .object = 3}, other = {.kind = AX_ACT_READ, .object = 4};
  const ax_history start = {0}, once = after(start, read, 5), twice = after(once, read, 5);
  assert_true(ax_history_hash(&start) == 0);
  assert_true(ax_history_hash(&once) != 0 && ax_history_hash(&once) == ax_history_hash(&twice));
  const ax_history more = after(once, read, 6), elsewhere = after(once, other, 5);
  assert_true(ax_history_hash(&more) != ax_history_hash(&once) && ax_history_hash(&elsewhere) != ax_history_hash(&once));
}

static void the_order_of_reads_says_nothing(void **state) {
  (void)state;
  const ax_act a = {.kind = AX_ACT_READ, .object = 3}, b = {.kind = AX_ACT_READ, .object = 4};
  const ax_history ab = after(after((ax_history){0}, a, 1), b, 2), ba = after(after((ax_history){0}, b, 2), a, 1);
  assert_true(ax_history_hash(&ab) == ax_history_hash(&ba));
}

static void the_order_of_other_acts_does(void **state) {
  (void)state;
  const ax_act signal = {.kind = AX_ACT_SIGNAL, .object = 1, .amount = 2}, wait = {.kind = AX_ACT_WAIT, .object = 1, .amount = 2};
  const ax_history a = after(after((ax_history){0}, signal, 0), wait, 0), b = after(after((ax_history){0}, wait, 0), signal, 0);
  const ax_history waited = after((ax_history){0}, wait, 0);
  assert_true(ax_history_hash(&a) != ax_history_hash(&b) && ax_history_hash(&a) != ax_history_hash(&waited));
  ax_act more = signal;
  more.amount = 3;
  const ax_history c = after((ax_history){0}, signal, 0), d = after((ax_history){0}, more, 0);
  assert_true(ax_history_hash(&c) != ax_history_hash(&d));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_state_is_new_once),
      cmocka_unit_test(many_states_stay_known),
      cmocka_unit_test(a_state_is_on_the_way_until_it_is_left),
      cmocka_unit_test(reads_that_give_the_same_again_are_no_step),
      cmocka_unit_test(the_order_of_reads_says_nothing),
      cmocka_unit_test(the_order_of_other_acts_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
