/* The token game of a run, and what is known of its order without a game; the runs are scripts of a few lines. */
#include "check/game.h"

#include "check/conflict.h"
#include "check/joins.h"
#include "check/symmetry.h"
#include "support/cmocka.h"
#include "support/script.h"
#include "support/tensor.h"

typedef struct played {
  test_script script;
  ax_act_record record;
  ax_game *game;
} played;

/* One run, to its end. */
static void play(const char *text, played *out) {
  *out = (played){.game = NULL};
  test_script_parse(text, &out->script);
  TEST_OK(ax_system_record(&out->script.system, NULL, true, 0, &out->record));
  TEST_OK(ax_game_create(&out->record, &out->game));
}

static void put_away(played *p) {
  ax_game_destroy(p->game);
  ax_act_record_deinit(&p->record);
  test_script_free(&p->script);
}

/* A gives what B takes. */
static const char handed_over[] = "sem free\n"
                                  "region buf 8\n"
                                  "core A: store buf 0 4; signal free\n"
                                  "core B: load buf 4 8; wait free; load buf 0 4";
enum { A, B };

static void a_game_does_all_acts_of_a_run(void **state) {
  (void)state;
  played p;
  play(handed_over, &p);
  assert_true(p.game->complete);
  assert_int_equal(ax_game_acts(p.game, A), 2);
  assert_int_equal(ax_game_acts(p.game, B), 3);
  assert_int_equal(ax_game_token(p.game, B, 1)->kind, AX_ACT_WAIT);
  ax_game_run(p.game);
  assert_true(p.game->at[A] == 2 && p.game->at[B] == 3);
  ax_game_reset(p.game);
  assert_true(p.game->at[A] == 0 && p.game->at[B] == 0);
  ax_game_run_in_order(p.game);
  assert_true(p.game->at[A] == 2 && p.game->at[B] == 3);
  put_away(&p);
}

static void who_is_held_holds_up_who_waits(void **state) {
  (void)state;
  played p;
  play(handed_over, &p);
  ax_game_reset(p.game);
  ax_game_hold(p.game, A, 1); /* before its signal */
  ax_game_run(p.game);
  assert_true(p.game->at[A] == 1 && p.game->at[B] == 1);
  assert_false(ax_game_enabled(p.game, B));
  assert_true(ax_game_enabled(p.game, A)); /* but for its limit */
  ax_game_hold(p.game, A, 2);
  ax_game_run(p.game);
  assert_int_equal(p.game->at[B], 3);
  put_away(&p);
}

static void steps_are_undone(void **state) {
  (void)state;
  played p;
  play(handed_over, &p);
  ax_game_reset(p.game);
  ax_game_hold(p.game, A, 1);
  ax_game_run(p.game);
  const uint32_t before = p.game->trail_count;
  assert_int_equal(before, 2);
  ax_game_hold(p.game, A, 2);
  ax_game_run(p.game);
  assert_int_equal(p.game->trail_count, 5);
  ax_game_undo(p.game, before);
  assert_true(p.game->at[A] == 1 && p.game->at[B] == 1);
  assert_false(ax_game_enabled(p.game, B)); /* the signal is taken back */
  put_away(&p);
}

static void a_run_that_is_stuck_has_acts_left(void **state) {
  (void)state;
  played p;
  play("sem free\n"
       "core A: wait free; nothing",
       &p);
  assert_true(p.game->complete); /* none of those left can be done */
  assert_int_equal(p.record.pending_count, 1);
  assert_int_equal(ax_game_step(p.game, p.record.step_count)->act.kind, AX_ACT_WAIT);
  assert_int_equal(p.game->done[A], 0);
  put_away(&p);
}

/* --- Conflicts --- */

static void accesses_of_the_same_bytes_conflict(void **state) {
  (void)state;
  played p;
  ax_pair_list pairs = {0};
  play(handed_over, &p);
  TEST_OK(ax_conflicts_find(p.game, true, NULL, &pairs));
  assert_int_equal(pairs.count, 1); /* bytes 4 to 8 are read only */
  const ax_act_step *earlier = ax_game_step(p.game, pairs.items[0].earlier), *later = ax_game_step(p.game, pairs.items[0].later);
  assert_int_equal(pairs.items[0].conflict, AX_CONFLICT_MEMORY);
  assert_true(earlier->agent == A && later->agent == B && p.game->position[pairs.items[0].later] == 2);
  ax_free(pairs.items);
  put_away(&p);
}

static void two_waits_on_a_semaphore_conflict(void **state) {
  (void)state;
  played p;
  ax_pair_list pairs = {0};
  play("sem free = 2\n"
       "core A: wait free\n"
       "core B: wait free",
       &p);
  TEST_OK(ax_conflicts_find(p.game, true, NULL, &pairs));
  assert_int_equal(pairs.count, 1);
  assert_int_equal(pairs.items[0].conflict, AX_CONFLICT_WAITS);
  ax_free(pairs.items);
  put_away(&p);
}

static void touches_conflict_where_one_writes(void **state) {
  (void)state;
  ax_touches pool = {0};
  bool scope;
  TEST_OK(ax_touches_add(&pool, 0, true, false, 1, &(ax_bytes){0, 8}));
  TEST_OK(ax_touches_add(&pool, 0, false, false, 1, &(ax_bytes){4, 12}));
  TEST_OK(ax_touches_add(&pool, 0, false, false, 1, &(ax_bytes){8, 12}));
  TEST_OK(ax_touches_add(&pool, 1, true, false, 1, &(ax_bytes){0, 8}));
  TEST_OK(ax_touches_add(&pool, 0, true, true, 1, &(ax_bytes){0, 99}));
  TEST_OK(ax_touches_add(&pool, 0, false, true, 1, &(ax_bytes){0, 99}));
  ax_act acts[6];
  for (uint32_t i = 0; i < 6; i++) acts[i] = (ax_act){.kind = AX_ACT_LOCAL, .touch_first = i, .touch_count = 1};
  assert_true(ax_touches_conflict(&pool, &acts[0], &pool, &acts[1], &scope) && !scope);
  assert_false(ax_touches_conflict(&pool, &acts[0], &pool, &acts[2], &scope)); /* other bytes */
  assert_false(ax_touches_conflict(&pool, &acts[1], &pool, &acts[2], NULL));   /* two reads */
  assert_false(ax_touches_conflict(&pool, &acts[0], &pool, &acts[3], NULL));   /* another region */
  assert_true(ax_touches_conflict(&pool, &acts[4], &pool, &acts[2], &scope) && scope);
  assert_false(ax_touches_conflict(&pool, &acts[5], &pool, &acts[0], NULL)); /* one of several leaves the scope */
  ax_touches_deinit(&pool);
}

/* --- Joins --- */

static void starts_and_joins_are_known_order(void **state) {
  (void)state;
  enum { core, copy };
  played p;
  ax_joins joins = {0};
  play("region buf 8\n"
       "core A: nothing; start C; nothing; join C 1; load buf 0 4; join C; load buf 0 8\n"
       "copy C: store buf 0 4; store buf 4 8",
       &p);
  TEST_OK(ax_joins_init(&joins, p.game));
  assert_true(ax_joins_need(&joins, core, 0, core, 6)); /* its own order */
  assert_false(ax_joins_need(&joins, core, 6, core, 0));
  assert_true(ax_joins_need(&joins, core, 0, copy, 0)); /* what is before the start */
  assert_false(ax_joins_need(&joins, core, 2, copy, 1));
  assert_true(ax_joins_need(&joins, copy, 0, core, 4)); /* behind the first join */
  assert_false(ax_joins_need(&joins, copy, 1, core, 4));
  assert_true(ax_joins_need(&joins, copy, 1, core, 6));
  ax_joins_deinit(&joins);
  put_away(&p);
}

/* --- Symmetry --- */

static void a_ring_is_turned(void **state) {
  (void)state;
  played p;
  ax_symmetry symmetry;
  bool found;
  play("sem a\nsem b\nsem c\n"
       "core A: signal b; wait a\n"
       "core B: signal c; wait b\n"
       "core C: signal a; wait c",
       &p);
  TEST_OK(ax_symmetry_find(p.game, (const uint32_t[]){1, 2, 0}, &symmetry, &found));
  assert_true(found);
  assert_int_equal(symmetry.cycle_count, 1);
  assert_int_equal(ax_symmetry_chosen(&symmetry, 2), 0);
  assert_int_equal(ax_symmetry_turned(&symmetry, 2, 2), 0); /* the turn that takes 2 to 0 */
  assert_int_equal(ax_symmetry_turned(&symmetry, 2, 0), 1);
  ax_symmetry_deinit(&symmetry);
  put_away(&p);
}

static void agents_that_do_different_things_are_no_ring(void **state) {
  (void)state;
  played p;
  ax_symmetry symmetry;
  bool found;
  play("sem a\nsem b\n"
       "core A: signal b; wait a\n"
       "core B: signal a 2; wait b",
       &p);
  TEST_OK(ax_symmetry_find(p.game, (const uint32_t[]){1, 0}, &symmetry, &found));
  assert_false(found);
  assert_int_equal(symmetry.cycle_count, 2);
  assert_int_equal(ax_symmetry_chosen(&symmetry, 1), 1);
  ax_symmetry_deinit(&symmetry);
  put_away(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_game_does_all_acts_of_a_run),
      cmocka_unit_test(who_is_held_holds_up_who_waits),
      cmocka_unit_test(steps_are_undone),
      cmocka_unit_test(a_run_that_is_stuck_has_acts_left),
      cmocka_unit_test(accesses_of_the_same_bytes_conflict),
      cmocka_unit_test(two_waits_on_a_semaphore_conflict),
      cmocka_unit_test(touches_conflict_where_one_writes),
      cmocka_unit_test(starts_and_joins_are_known_order),
      cmocka_unit_test(a_ring_is_turned),
      cmocka_unit_test(agents_that_do_different_things_are_no_ring),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
