/* The records of kernels' steps (step.h): each primitive that stands in kernels alone has one, and it fits the primitive. A new
   step is made here, which no room knows: its record alone has it checked, run in every way and found wrong. */
#include "kernel/step.h"

#include <string.h>

#include "axle/axle.h"
#include "axle/check.h"
#include "kernel/local.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

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
    check(prim, (access->mask != 0) == (prim->params_bytes == sizeof(ax_ref_masked_params)), "its parameters tell of a mask");
    check(prim, access->other == 0 || (access->reads && access->mask != 0), "a masked load gives another value");
  }
}

/* --- A step that no room knows --- */

static ax_status larger_infer(const ax_infer_args *args) {
  const bool masked = ((const ax_ref_masked_params *)args->params)->masked;
  AX_TRY(ax_step_count(args, 2 + masked, 2 + masked));
  AX_TRY(ax_step_ref(args, 0));
  return ax_step_array(args, 1, args->in[0].dtype, &args->in[0], "the value");
}

static const ax_param larger_params[] = {{"masked", AX_PARAM_BOOL, offsetof(ax_ref_masked_params, masked)}};
static const ax_step_access takes_larger = {.reads = true, .writes = true, .value = 1, .mask = 2, .combine = &ax_prim_max};
static const ax_step larger_step = {.role = AX_STEP_MAKES_ACT, .access = &takes_larger};

/* ref_larger: ref, value, [mask] -> ()     the larger of what is there and the value */
static const ax_prim ref_larger = {
    .name = "ref_larger", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = -1, .out_count = 0, .infer = larger_infer,
    AX_PARAMS(larger_params, ax_ref_masked_params),
    .step = &larger_step,
};

static void bind_larger(ax_value ref, ax_value value, const ax_value *mask) {
  const ax_value in[] = {ref, value, mask != NULL ? *mask : value};
  ax_step_bind(&ref_larger, &(ax_ref_masked_params){mask != NULL}, in, mask != NULL ? 3 : 2);
}

enum { ELEMS = 96 };
typedef struct larger_ways {
  bool masked, unset, interpret;
} larger_ways;

/* in: x, y, out, scratch. The larger of x and 2 y, where y is positive if it is masked, by way of the scratch. */
static AX_BODY(larger) {
  const larger_ways *ways = context;
  const ax_value y = ax_ref_load(in[1]), positive = ax_gt(y, ax_full(AX_F32, AX_DIMS(ELEMS), 0));
  if (!ways->unset) ax_ref_store(in[3], ax_ref_load(in[0]));
  bind_larger(in[3], ax_add(y, y), ways->masked ? &positive : NULL);
  ax_ref_store(in[2], ax_ref_load(in[3]));
}

static AX_BODY(larger_kernel) {
  const larger_ways *ways = context;
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, ELEMS)};
  ax_kernel_call((&(ax_kernel){.outs = {AX_TYPES(AX_TYPE(AX_F32, ELEMS))},
                              .options = {.scratch = {AX_SCRATCH(scratch)}, .interpret = ways->interpret}}),
                 AX_CLOSURE(larger, 4, 0, context), AX_LIST(2, in), out);
}

static ax_program *larger_program(const larger_ways *ways) {
  ax_program *program;
  TEST_OK(ax_trace(AX_CLOSURE(larger_kernel, 2, 1, ways), AX_TYPES(AX_TYPE(AX_F32, ELEMS), AX_TYPE(AX_F32, ELEMS)), &program));
  return program;
}

static void check_larger(const larger_ways *ways, ax_tensor *const *in, const ax_tensor *got) {
  for (int64_t e = 0; e < ELEMS; e++) {
    const double x = test_get(in[0], e), y = test_get(in[1], e), wanted = (ways->masked && y <= 0) || x > 2 * y ? x : 2 * y;
    if (test_get(got, e) != wanted) fail_msg("element %lld is %g, not %g", (long long)e, test_get(got, e), wanted);
  }
}

/* The machine, the executor and the plain program of it. */
static void a_record_is_enough_to_run(void **state) {
  (void)state;
  ax_runtime *runtime;
  double x[ELEMS], y[ELEMS];
  for (int e = 0; e < ELEMS; e++) x[e] = e % 7 - 3, y[e] = e % 5 - 2;
  ax_tensor *in[] = {test_tensor(AX_TYPE(AX_F32, ELEMS), x), test_tensor(AX_TYPE(AX_F32, ELEMS), y)};
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  for (int way = 0; way < 8; way++) {
    const larger_ways ways = {.masked = (way & 1) != 0, .interpret = (way & 2) != 0};
    ax_program *program = larger_program(&ways);
    ax_tensor *got[1];
    if ((way & 4) != 0) test_run(program, in, got);
    else test_execute(runtime, program, in, got);
    check_larger(&ways, in, got[0]);
    test_release(got, 1);
    ax_program_release(program);
  }
  ax_runtime_release(runtime);
  test_release(in, 2);
}

static void a_record_is_enough_to_check(void **state) {
  (void)state;
  for (int way = 0; way < 4; way++) {
    const larger_ways ways = {.masked = (way & 1) != 0, .unset = (way & 2) != 0};
    ax_program *program = larger_program(&ways);
    ax_check_report *report;
    TEST_OK(ax_check(program, NULL, &report));
    assert_int_equal(report->verdict, ways.unset ? AX_WRONG : AX_PROVED);
    if (ways.unset) assert_non_null(strstr(report->kernels[0].findings[0].text, "ref_larger"));
    ax_check_report_release(report);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_step_has_a_record),
      cmocka_unit_test(records_fit_their_primitives),
      cmocka_unit_test(views_fit_their_primitives),
      cmocka_unit_test(accesses_fit_their_primitives),
      cmocka_unit_test(a_record_is_enough_to_run),
      cmocka_unit_test(a_record_is_enough_to_check),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
