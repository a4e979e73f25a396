/* Questions about programs: what equations hold, where they stand, what is known of them. The programs are small texts. */
#include "ir/program.h"

#include <string.h>

#include "ir/memo.h"
#include "ir/path.h"
#include "ir/region_link.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_program *parse(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "t.axle", &program));
  return program;
}

/* Sums of a scan in a branch, and a constant. */
static const char nest[] =
    "{ lambda x:f32[3] n:s32[]. let\n"
    "    y:f32[] = cond[branches=(\n"
    "      { lambda a:f32[3]. let\n"
    "          t:f32[] s:f32[3] = scan[length=3 reverse=false num_consts=0 num_carry=1\n"
    "            body={ lambda c:f32[] i:f32[]. let d:f32[] = add c i in (d, d) }] 0.0:f32[] a\n"
    "        in (t,) },\n"
    "      { lambda a:f32[3]. let in (1.0:f32[],) })] n x\n"
    "    z:f32[] = mul y 2.0:f32[]\n"
    "  in (z, y) }\n";

static const ax_eqn *find(const ax_program *program, const char *name) {
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (strcmp(program->eqns[i].prim->name, name) == 0) return &program->eqns[i];
  fail_msg("there is no %s", name);
  return NULL;
}

static void equations_hold_programs(void **state) {
  (void)state;
  ax_program *program = parse(nest);
  const ax_eqn *cond = find(program, "cond"), *mul = find(program, "mul");
  assert_non_null(ax_eqn_program(cond, 1));
  assert_null(ax_eqn_program(cond, 2));
  assert_null(ax_eqn_program(mul, 0));
  assert_int_equal(ax_eqn_nesting(cond), 2);
  assert_int_equal(ax_eqn_nesting(mul), 0);
  assert_int_equal(program->nesting, 2);
  ax_program_release(program);
}

static void operands_and_results_are_counted(void **state) {
  (void)state;
  ax_program *program = parse(nest);
  const ax_program *branch = ax_eqn_program(find(program, "cond"), 0);
  assert_int_equal(ax_most_operands(program), 2);
  assert_int_equal(ax_most_results(program), 1);
  assert_int_equal(ax_most_results(branch), 2);
  assert_int_equal(ax_prim_outs(find(program, "mul")->prim, NULL, 2), 1);
  ax_program_release(program);
}

static void uses_are_those_as_operands_and_results(void **state) {
  (void)state;
  ax_program *program = parse(nest);
  uint32_t *uses;
  TEST_OK(ax_program_uses(program, &uses));
  assert_int_equal(uses[0], 1); /* x */
  assert_int_equal(uses[find(program, "cond")->out], 2); /* y: of mul, and as a result */
  ax_free(uses);
  ax_program_release(program);
}

static void constants_are_known_by_their_form(void **state) {
  (void)state;
  ax_program *program = parse(nest);
  const ax_eqn *mul = find(program, "mul");
  assert_null(ax_eqn_literal(mul));
  const ax_literal *two = ax_value_literal(program, mul->in[1]);
  assert_non_null(two);
  assert_true(*(const float *)two->data == 2);
  assert_null(ax_value_literal(program, 0));
  ax_program_release(program);
}

static void parameters_are_copied_to_be_changed(void **state) {
  (void)state;
  ax_program *program = parse(nest), *other = parse("{ lambda a:f32[3]. let in (2.0:f32[],) }");
  const ax_eqn *cond = find(program, "cond");
  ax_arena arena = {0};
  void *own = ax_eqn_own_params(cond, &arena);
  assert_true(ax_params_equal(cond->prim, cond->params, own));
  assert_true(ax_params_hash(1, cond->prim, cond->params) == ax_params_hash(1, cond->prim, own));
  ax_program **branch = ax_params_program(cond->prim, own, 1);
  *branch = other;
  assert_false(ax_params_equal(cond->prim, cond->params, own));
  assert_ptr_not_equal(ax_eqn_program(cond, 1), other);
  assert_null(ax_params_program(cond->prim, own, 2));
  ax_arena_deinit(&arena);
  ax_program_release(other);
  ax_program_release(program);
}

/* --- Links --- */

static void links_say_where_inputs_come_from(void **state) {
  (void)state;
  ax_program *program = parse(nest);
  const ax_eqn *cond = find(program, "cond"), *scan = find(ax_eqn_program(cond, 0), "scan");
  assert_int_equal(ax_region_link_programs(cond), 2);
  const ax_region_link a = ax_region_link_in(cond, 0, 0);
  assert_true(a.how == AX_LINK_SAME && a.number == 1 && a.carry == AX_NONE); /* x; operand 0 chooses */
  const ax_region_link carry = ax_region_link_in(scan, 0, 0), item = ax_region_link_in(scan, 0, 1);
  assert_true(carry.how == AX_LINK_SAME && carry.number == 0 && carry.carry == 0);
  assert_true(item.how == AX_LINK_SLICE && item.number == 1 && item.carry == AX_NONE);
  const ax_region_link next = ax_region_link_out(scan, 0, 0), sums = ax_region_link_out(scan, 0, 1);
  assert_true(next.how == AX_LINK_SAME && next.number == 0 && next.carry == 0);
  assert_true(sums.how == AX_LINK_SLICE && sums.number == 1);
  assert_true(ax_region_link_gives(scan, 0));
  TEST_OK(ax_region_link_check(scan->prim));
  ax_program_release(program);
}

static void a_condition_gives_nothing(void **state) {
  (void)state;
  ax_program *program = parse("{ lambda x:f32[]. let\n"
                              "    y:f32[] = while[\n"
                              "      cond={ lambda v:f32[]. let m:bool[] = lt v 3.0:f32[] in (m,) } cond_nconsts=0\n"
                              "      body={ lambda v:f32[]. let u:f32[] = mul v 2.0:f32[] in (u,) } body_nconsts=0] x\n"
                              "  in (y,) }");
  const ax_eqn *loop = find(program, "while");
  assert_false(ax_region_link_gives(loop, 0));
  assert_true(ax_region_link_gives(loop, 1));
  assert_int_equal(ax_region_link_out(loop, 0, 0).how, AX_LINK_OWN);
  ax_program_release(program);
}

static void a_region_without_links_is_refused(void **state) {
  (void)state;
  const ax_prim local = {.name = "local", .kind = AX_LOCAL}, region = {.name = "mine", .kind = AX_REGION};
  TEST_OK(ax_region_link_check(&local));
  TEST_FAILS(ax_region_link_check(&region), AX_INTERNAL, "mine holds programs, but its record has no `links` rule");
  const ax_region_link own = ax_region_link_own(), slice = ax_region_link_to(AX_LINK_SLICE, 4);
  assert_true(own.how == AX_LINK_OWN && own.number == AX_NONE && own.carry == AX_NONE);
  assert_true(slice.how == AX_LINK_SLICE && slice.number == 4 && slice.carry == AX_NONE);
}

/* --- Places --- */

static void is_at(const ax_program *whole, const ax_program *program, const ax_eqn *eqn, const char *wanted) {
  ax_path path;
  ax_text text = {0};
  ax_path_find(whole, program, eqn, &path);
  ax_path_text(&text, &path);
  assert_string_equal(text.data, wanted);
  ax_text_deinit(&text);
}

static void a_place_is_told_from_inside_out(void **state) {
  (void)state;
  ax_program *program = parse(nest);
  const ax_program *branch = ax_eqn_program(find(program, "cond"), 0), *body = ax_eqn_program(find(branch, "scan"), 0);
  is_at(program, program, find(program, "mul"), " (equation 1, line 8)");
  is_at(program, body, find(body, "add"), " (equation 0 of body of scan, equation 0 of branch 0 of cond, equation 0, line 5)");
  ax_program_release(program);
}

static void an_equation_comes_from_a_line(void **state) {
  (void)state;
  ax_program *program = parse(nest);
  ax_text text = {0};
  const ax_eqn plain = {.prim = find(program, "mul")->prim};
  ax_origin_text(&text, find(program, "mul"));
  ax_text_add(&text, "; ");
  ax_origin_text(&text, &plain);
  assert_string_equal(text.data, "mul, line 8; mul");
  assert_false(ax_source_text(&text, " at ", &plain));
  assert_string_equal(text.data, "mul, line 8; mul");
  ax_text_deinit(&text);
  ax_program_release(program);
}

/* --- What was asked before --- */

static void a_question_is_asked_once(void **state) {
  (void)state;
  ax_program *program = parse(nest), *same = parse(nest);
  ax_memo memo = {0};
  const uint32_t one = 1, two = 2;
  ax_memo_entry *entry = ax_memo_ask(&memo, "jvp", program, &one, sizeof one);
  entry->known = true;
  assert_ptr_equal(ax_memo_ask(&memo, "jvp", program, &one, sizeof one), entry);
  assert_ptr_not_equal(ax_memo_ask(&memo, "transpose", program, &one, sizeof one), entry);
  assert_ptr_not_equal(ax_memo_ask(&memo, "jvp", same, &one, sizeof one), entry); /* another object, if an equal one */
  assert_ptr_not_equal(ax_memo_ask(&memo, "jvp", program, &two, sizeof two), entry);
  assert_ptr_not_equal(ax_memo_ask(&memo, "jvp", program, NULL, 0), entry);
  for (uint32_t i = 10; i < 1000; i++) assert_false(ax_memo_ask(&memo, "jvp", program, &i, sizeof i)->known);
  assert_ptr_equal(ax_memo_ask(&memo, "jvp", program, &one, sizeof one), entry); /* its address has not changed */
  ax_program_release(program); /* the memo holds it */
  assert_true(entry->program == program && entry->program->eqn_count > 0);
  ax_memo_deinit(&memo);
  ax_program_release(same);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equations_hold_programs),
      cmocka_unit_test(operands_and_results_are_counted),
      cmocka_unit_test(uses_are_those_as_operands_and_results),
      cmocka_unit_test(constants_are_known_by_their_form),
      cmocka_unit_test(parameters_are_copied_to_be_changed),
      cmocka_unit_test(links_say_where_inputs_come_from),
      cmocka_unit_test(a_condition_gives_nothing),
      cmocka_unit_test(a_region_without_links_is_refused),
      cmocka_unit_test(a_place_is_told_from_inside_out),
      cmocka_unit_test(an_equation_comes_from_a_line),
      cmocka_unit_test(a_question_is_asked_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
