/* The records of kernels' steps (step.h): each primitive that stands in kernels alone has one, and it fits the primitive. */
#include "kernel/step.h"

#include "kernel/local.h"
#include "prim/prims.h"
#include "support/cmocka.h"

static void check(const ax_prim *prim, bool holds, const char *what) {
  if (!holds) fail_msg("the record of %s as a step of kernels: %s", prim->name, what);
}

static void every_step_has_a_record(void **state) {
  (void)state;
  uint32_t steps = 0;
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    check(ax_prims[i], (ax_prims[i]->step != NULL) == (ax_prims[i]->eval == ax_step_eval), "steps have one, and nothing else has");
    steps += ax_prims[i]->step != NULL;
  }
  assert_true(steps >= 20);
}

static void records_fit_their_primitives(void **state) {
  (void)state;
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    const ax_prim *prim = ax_prims[i];
    const ax_step *step = prim->step;
    if (step == NULL) continue;
    const bool has_effects = prim->effects == AX_KERNEL_STEP;
    check(prim, (step->role == AX_STEP_HOLDS_BODY) == (prim->kind == AX_REGION), "it holds a body, or does not");
    check(prim, (step->role == AX_STEP_MAKES_ACT || step->role == AX_STEP_MAKES_NOTE) == has_effects, "its effects are its role's");
    check(prim, step->role != AX_STEP_MAKES_VIEW || prim->out_count == 1, "it gives one view");
    check(prim, step->view == NULL || step->role == AX_STEP_MAKES_VIEW, "it is a view of an operand, and no view");
    check(prim, (step->note == NULL && step->span == AX_SPAN_NONE) || step->role == AX_STEP_MAKES_NOTE, "it is noted, and no note");
    check(prim, (step->role == AX_STEP_MAKES_ACT && step->access == NULL) == (step->about != NULL && step->act != NULL),
          "it says what its act is, or its access does");
    check(prim, step->run == NULL || step->about != NULL, "what the executor does is an act");
    check(prim, step->role != AX_STEP_HOLDS_BODY || (step->discharge != NULL && step->opens_scope != step->grid_point),
          "a body is a scope's or a point's");
    check(prim, !step->elsewhere || (prim->params[0].kind == AX_PARAM_AXES && prim->params[0].offset == 0),
          "its parameters begin with a core");
    check(prim, !step->copies || prim->params_bytes == sizeof(ax_copy_params), "its parameters are a copy's");
    check(prim, !step->grid_number || prim->params_bytes == sizeof(ax_program_id_params), "its parameters are a number's");
    check(prim, !step->grid_point || prim->params_bytes == sizeof(ax_grid_point_params), "its parameters are a point's");
    check(prim, !step->opens_scope || prim->params_bytes == sizeof(ax_run_scoped_params), "its parameters are a scope's");
    check(prim, step->span != AX_SPAN_BEGINS || prim->params_bytes == sizeof(ax_trace_params), "its parameters are a span's");
  }
}

static void views_fit_their_primitives(void **state) {
  (void)state;
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    const ax_prim *prim = ax_prims[i];
    const ax_step_view *view = prim->step != NULL ? prim->step->view : NULL;
    if (prim->step == NULL || prim->step->role != AX_STEP_MAKES_VIEW) continue;
    check(prim, (view != NULL) + prim->step->own_barrier + prim->step->grid_number == 1, "it is of an operand, or one of two others");
    check(prim, view == NULL || (view->shape != NULL && view->read != NULL && view->write != NULL), "a view has these rules");
    check(prim, view == NULL || !view->all || view->offset == NULL, "a view of all begins where the operand's does");
  }
}

static void accesses_fit_their_primitives(void **state) {
  (void)state;
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    const ax_prim *prim = ax_prims[i];
    const ax_step_access *access = prim->step != NULL ? prim->step->access : NULL;
    if (access == NULL) continue;
    check(prim, prim->step->role == AX_STEP_MAKES_ACT, "an access is an act");
    check(prim, access->reads || access->writes, "it reads or writes");
    check(prim, (access->value != 0) == access->writes, "it has a value if it writes");
    check(prim, access->combine == NULL || (access->reads && access->writes), "what it combines, it reads and writes");
    check(prim, access->combine == NULL || access->combine->in_count == 2, "it combines two values");
    check(prim, (access->mask != 0) == (prim->params_bytes == sizeof(ax_ref_masked_params)), "its parameters tell of its mask");
    check(prim, access->other == 0 || (access->reads && access->mask != 0), "a masked load gives another value");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_step_has_a_record),
      cmocka_unit_test(records_fit_their_primitives),
      cmocka_unit_test(views_fit_their_primitives),
      cmocka_unit_test(accesses_fit_their_primitives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
