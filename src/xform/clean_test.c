/* dce and cse. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static void wasteful(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value a = ax_exp(in[0]), b = ax_exp(in[0]);
  ax_log(in[1]);          /* dead */
  ax_neg(ax_tanh(in[1])); /* dead, both */
  ax_value c = ax_mul(a, b), d = ax_mul(b, a), e = ax_mul(a, a);
  out[0] = ax_add(c, e); /* c = d = e once a = b */
  out[1] = d;
}

static ax_program *trace_wasteful(void) {
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  return test_trace(wasteful, NULL, types, 2, 2);
}

static void check_values(const ax_program *program) {
  double x[] = {0, 1}, y[2];
  test_run_scalars(program, x, y);
  assert_true(y[0] == 2 && y[1] == 1);
}

static void drops_the_dead(void **state) {
  (void)state;
  ax_program *program = trace_wasteful(), *clean, *again;
  assert_int_equal(program->eqn_count, 9);
  TEST_OK(ax_program_dce(program, &clean));
  assert_int_equal(clean->eqn_count, 6);
  assert_int_equal(ax_program_in_count(clean), 2); /* inputs stay */
  check_values(clean);
  TEST_OK(ax_program_dce(clean, &again));
  assert_true(ax_program_equal(clean, again));
  ax_program *all[] = {program, clean, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

static void merges_the_equal(void **state) {
  (void)state;
  ax_program *program = trace_wasteful(), *merged, *clean, *again;
  TEST_OK(ax_program_cse(program, &merged));
  TEST_OK(ax_program_dce(merged, &clean));
  assert_int_equal(clean->eqn_count, 3); /* exp, mul, add */
  check_values(clean);
  TEST_OK(ax_program_cse(clean, &again));
  assert_true(ax_program_equal(clean, again));
  ax_program *all[] = {program, merged, clean, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

/* Parameters and dtypes tell equations apart; equal collectives are one. */
static void different(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_integer_pow(in[0], 2);
  out[1] = ax_integer_pow(in[0], 3);
  out[2] = ax_mul(ax_full(AX_F64, 0, NULL, 0.0), ax_full(AX_F64, 0, NULL, -0.0));
  out[3] = ax_psum(in[0], "data");
  out[4] = ax_psum(in[0], "model");
  out[5] = ax_psum(in[0], "data");
}

static void parameters_count(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=2,model=2", &mesh));
  ax_type type = TEST_SCALAR(AX_F64);
  type.spread.varying = 3;
  ax_program *program, *merged;
  TEST_OK(ax_trace_on(&mesh, different, NULL, &type, 1, 6, &program));
  TEST_OK(ax_program_cse(program, &merged));
  assert_int_equal(merged->eqn_count, program->eqn_count - 1);
  assert_int_equal(merged->outs[3], merged->outs[5]);
  assert_int_not_equal(merged->outs[3], merged->outs[4]);
  ax_program_release(merged);
  ax_program_release(program);
}

/* An equation with state is neither dropped nor merged; nor is one that holds a program with such an equation. */
static void state_stays(void **state) {
  (void)state;
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *programs[2], *clean, *merged;
  for (int stateful = 0; stateful < 2; stateful++) {
    ax_prim prim = *ax_prim_find("neg", 3);
    prim.effects = stateful ? AX_EFFECT_STATE : 0;
    ax_builder builder;
    ax_value x, out[3];
    ax_builder_begin(&builder, NULL);
    x = ax_builder_input(&builder, &type);
    for (int i = 0; i < 3; i++) ax_emit(&prim, NULL, &x, 1, &out[i], 1);
    TEST_OK(ax_builder_finish(&builder, out, 2, &programs[stateful], NULL, NULL));
    assert_int_equal(programs[stateful]->effects, prim.effects);
    TEST_OK(ax_program_dce(programs[stateful], &clean));
    TEST_OK(ax_program_cse(programs[stateful], &merged));
    assert_int_equal(clean->eqn_count, stateful ? 3 : 2);
    assert_int_equal(merged->eqn_count, stateful ? 3 : 1);
    ax_program *all[] = {programs[stateful], clean, merged};
    for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
  }
}

static void sums(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "data");
}

static void maps(const ax_value *in, ax_value *out, void *context) {
  const char *specs[] = {"data"}, *none[] = {""};
  ax_shard_map_options options = {.mesh = context, .in_specs = specs, .out_specs = none};
  ax_shard_map(&options, sums, NULL, in, 1, out, 1);
}

static void effects_come_from_inside(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  ax_type type = TEST_TYPE(AX_F64, 2);
  ax_program *program = test_trace(maps, &mesh, &type, 1, 1);
  assert_int_equal(program->eqns[0].prim->effects, 0);
  assert_int_equal(ax_eqn_effects(&program->eqns[0]), AX_EFFECT_EXCHANGE);
  assert_int_equal(program->effects, AX_EFFECT_EXCHANGE);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(state_stays),
      cmocka_unit_test(effects_come_from_inside),
      cmocka_unit_test(drops_the_dead),
      cmocka_unit_test(merges_the_equal),
      cmocka_unit_test(parameters_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
