/* Plans of small programs: how inputs and results are stored, and what keeps its order. */
#include <string.h>

#include "ir/prim.h"
#include "ir/program.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* An unreduced value is another part on each device, whatever kind of sum it is a part of; a reduced one is the same on all. */
static void stored_as_typed(void **state) {
  (void)state;
  static const char text[] =
      "{ axes a=2 b=3 ; lambda u:f32[4]{Umax:b} v:f32[4]{V:a U:b} r:f32[4]{R:a} i:f32[4]. let in (u, v, r, i) }";
  static const ax_axis_set wanted[] = {2, 3, 0, 0};
  ax_program *program;
  ax_plan *plan;
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  for (uint32_t k = 0; k < 4; k++) {
    assert_int_equal(plan->buffers[plan->in[k]].axes, wanted[k]);
    assert_int_equal(plan->buffers[plan->out[k]].axes, wanted[k]);
  }
  ax_plan_destroy(plan);
  ax_program_release(program);
}

/* Two equations, of which the first waits for a sum and the second does not; each operation's primitive, in the order scheduled. */
static void check_order(uint32_t effects, const char *wanted) {
  ax_prim late = *ax_prim_find("neg", 3), early = *ax_prim_find("abs", 3);
  late.effects = early.effects = effects;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_type type = TEST_TYPE(AX_F32, 4);
  type.spread.varying = 1;
  ax_axes names = {.count = 1, .name = {"d"}};
  ax_builder builder;
  ax_value x, sum, out[2];
  ax_program *program;
  ax_plan *plan;
  ax_builder_begin(&builder, &mesh);
  x = ax_builder_input(&builder, &type);
  ax_emit(ax_prim_find("psum", 4), &names, &x, 1, &sum, 1);
  ax_emit(&late, NULL, &sum, 1, &out[0], 1);
  ax_emit(&early, NULL, &x, 1, &out[1], 1);
  TEST_OK(ax_builder_finish(&builder, out, 2, &program, NULL, NULL));
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_order(plan));
  ax_text order = {0};
  char *got;
  for (uint32_t i = 0; i < plan->block.count; i++)
    if (plan->block.ops[i].kind == AX_OP_KERNEL) ax_text_add(&order, "%s ", plan->block.ops[i].eqn->prim->name);
  TEST_OK(ax_text_finish(&order, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

static void effects_keep_order(void **state) {
  (void)state;
  check_order(0, "abs neg ");
  check_order(AX_EFFECT_ORDER, "neg abs ");
  check_order(AX_EFFECT_STATE, "neg abs ");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(stored_as_typed), cmocka_unit_test(effects_keep_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
