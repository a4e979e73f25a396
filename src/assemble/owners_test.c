/* Six devices of a mesh a=2, b=3 over two processes, so that groups along either axis lie in one process or in both: who computes what
   is the same along an axis, and who of a group is where. */
#include "assemble/assembly.h"
#include "processes/map.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { A = 1 << 0, B = 1 << 1, DEVICES = 6 };

static const uint32_t of[DEVICES] = {0, 1, 1, 0, 0, 1}; /* a=0: b=0, 1, 2; then a=1 */

typedef struct stage {
  ax_plan plan;
  ax_compiled compiled;
} stage;

static ax_compiled *begin(stage *s, uint32_t process) {
  const ax_process_rule rule = {.process = process, .processes = 2, .listed = DEVICES, .of = of};
  *s = (stage){.compiled = {.devices = DEVICES}};
  s->compiled.plan = &s->plan;
  TEST_OK(ax_mesh_parse("a=2,b=3", &s->plan.mesh));
  TEST_OK(ax_process_map_create(&rule, DEVICES, &s->compiled.map));
  return &s->compiled;
}

static void end(stage *s) {
  ax_free(s->compiled.map);
  ax_arena_deinit(&s->plan.arena);
}

static void are(const bool *marked, const char *wanted) { /* "011000": by device */
  for (uint32_t d = 0; d < DEVICES; d++)
    if (marked[d] != (wanted[d] == '1')) fail_msg("device %u: %d", d, marked[d]);
}

static void each_process_has_owners(void **state) {
  (void)state;
  static const struct {
    uint32_t process;
    ax_axis_set axes;
    const char *owners, *first;
  } cases[] = {
      {0, A, "100010", "111000"}, {1, A, "011000", "111000"}, {0, B, "100100", "100100"}, {1, B, "010001", "100100"},
      {0, A | B, "100000", "100000"}, {1, A | B, "010000", "100000"},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    stage s;
    bool marked[DEVICES];
    ax_compiled *c = begin(&s, cases[i].process);
    TEST_OK(ax_find_owners(c, cases[i].axes, marked));
    are(marked, cases[i].owners);
    ax_find_first(c, cases[i].axes, marked);
    are(marked, cases[i].first);
    end(&s);
  }
}

static void sets_of_owners_are_numbered_once(void **state) {
  (void)state;
  stage s;
  uint32_t along_a, along_b, again, once;
  ax_compiled *c = begin(&s, 1);
  TEST_OK(ax_owned_along(c, A, false, &along_a));
  TEST_OK(ax_owned_along(c, B, false, &along_b));
  TEST_OK(ax_owned_along(c, A, false, &again));
  TEST_OK(ax_owned_along(c, B, true, &once));
  assert_int_equal(again, along_a);
  assert_true(along_a != along_b && once != along_b);
  assert_int_equal(c->owned_count, 3);
  are(c->owned[once].owner, "000000"); /* they are all of process 0 */
  end(&s);
}

static void instructions_skip_by_sets_of_owners(void **state) {
  (void)state;
  stage s;
  ax_compiled *c = begin(&s, 1);
  ax_instr instrs[] = {{.kind = AX_INSTR_KERNEL, .skip = B}, {.kind = AX_INSTR_KERNEL}, {.kind = AX_INSTR_KERNEL, .skip = A | B}};
  ax_assembly a = {.compiled = c, .plan = &s.plan, .instrs = instrs, .instr_count = AX_COUNT(instrs)};
  assert_true(ax_instr_skipped(c, &instrs[0]) == B);
  TEST_OK(ax_number_owners(&a));
  c->code_count = 1;
  assert_true(instrs[0].skip == 1 && instrs[1].skip == 0 && instrs[2].skip == 2); /* bits of the first set, and of the second */
  assert_true(ax_instr_skipped(c, &instrs[0]) == B && ax_instr_skipped(c, &instrs[1]) == 0);
  assert_true(ax_instr_skipped(c, &instrs[2]) == (A | B));
  end(&s);
}

static void is_party(const ax_crossing *crossing, uint32_t group, uint32_t process, const char *members) {
  const ax_party *party = ax_party_of(crossing, group, process);
  for (uint32_t m = 0; m < crossing->members; m++)
    if (ax_party_has(crossing, party, m) != (members[m] == '1')) fail_msg("group %u, process %u: member %u", group, process, m);
}

static void groups_lie_where_their_members_are(void **state) {
  (void)state;
  stage s;
  const ax_axes names = {.count = 1, .name = {"a"}};
  const ax_crossing *crossing, *again;
  ax_compiled *c = begin(&s, 1);
  TEST_OK(ax_find_crossing(c, &names, A, A | B, &crossing));
  assert_non_null(crossing);
  assert_int_equal(crossing->groups, 3);
  assert_int_equal(crossing->members, 2);
  is_party(crossing, 0, 0, "11"), is_party(crossing, 0, 1, "00");
  is_party(crossing, 1, 0, "01"), is_party(crossing, 1, 1, "10");
  is_party(crossing, 2, 0, "00"), is_party(crossing, 2, 1, "11");
  assert_true(crossing->index[0] == AX_NONE && crossing->index[1] == 0 && crossing->index[2] == 1 && crossing->here_count == 2);
  assert_true(crossing->first[2] == 1 && crossing->first[3] == 4); /* of the group that crosses: 4 sends what process 1 misses */
  assert_true(crossing->here[2] == 1 && crossing->here[3] == AX_NONE);
  TEST_OK(ax_find_crossing(c, &names, A, A | B, &again));
  assert_ptr_equal(again, crossing);
  end(&s);
}

/* Pushed once for what is the same along b: both processes have a device of each member, so nothing is sent. */
static void what_each_process_has_whole_does_not_cross(void **state) {
  (void)state;
  stage s;
  const ax_axes names = {.count = 1, .name = {"a"}};
  const ax_crossing *crossing;
  ax_compiled *c = begin(&s, 1);
  TEST_OK(ax_find_crossing(c, &names, A, A, &crossing));
  assert_null(crossing);
  end(&s);
}

/* One call for all along b: by devices 0 and 3, both of process 0. In process 1 devices 1 and 5 take the results, if there are
   any. */
static void calls_are_made_once_in_all_processes(void **state) {
  (void)state;
  for (uint32_t results = 0; results < 2; results++) {
    stage s;
    ax_eqn eqn = {.out_count = results};
    ax_op op = {.axes = A}, *ops[] = {&op, &op};
    ax_instr instrs[] = {{.kind = AX_INSTR_CALL, .eqn = &eqn}, {.kind = AX_INSTR_CALL, .eqn = &eqn}};
    ax_compiled *c = begin(&s, 1);
    ax_assembly a = {.compiled = c, .plan = &s.plan, .instrs = instrs, .instr_count = 2, .ops = (void *)ops};
    c->counter_count = 7;
    TEST_OK(ax_instrs_turns(&a));
    assert_true(c->turns == 7 && c->counter_count == 9);
    for (uint32_t i = 0; i < 2; i++) {
      const ax_turns *turns = instrs[i].call.turns;
      assert_int_equal(turns->calls, 2);
      assert_memory_equal(turns->number, ((uint32_t[]){0, AX_NONE, AX_NONE, 1, AX_NONE, AX_NONE}), DEVICES * sizeof(uint32_t));
      assert_true(turns->caller[0] == 0 && turns->caller[1] == 3);
      assert_true(turns->other_count == 1 && turns->others[0] == 0);
      if (results == 0) {
        assert_null(turns->takes);
        continue;
      }
      assert_memory_equal(turns->takes, ((uint32_t[]){AX_NONE, 0, AX_NONE, AX_NONE, AX_NONE, 1}), DEVICES * sizeof(uint32_t));
      assert_memory_equal(turns->first_taker, ((uint32_t[]){0, 1, 2}), 3 * sizeof(uint32_t));
      assert_memory_equal(turns->taker, ((uint32_t[]){1, 5}), 2 * sizeof(uint32_t));
    }
    ax_arena_deinit(&a.scratch);
    end(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_process_has_owners),
      cmocka_unit_test(sets_of_owners_are_numbered_once),
      cmocka_unit_test(instructions_skip_by_sets_of_owners),
      cmocka_unit_test(groups_lie_where_their_members_are),
      cmocka_unit_test(what_each_process_has_whole_does_not_cross),
      cmocka_unit_test(calls_are_made_once_in_all_processes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
