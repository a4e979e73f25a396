/* What the axes of a stage's mesh do: groups, parts of samples, what goes from stage to stage, specs. */
#include "planner/stage_mesh.h"

#include <string.h>
#include "support/cmocka.h"
#include "support/mixture.h"
#include "support/tensor.h"

enum { SAMPLES = 8, TOKENS = 6, WIDTH = 4, CARRY = TOKENS * WIDTH * 4 };
static const test_mixture net = {.layers = 4, .tokens = TOKENS, .width = WIDTH, .hidden = 8, .experts = 2};

typedef struct fixture {
  ax_program *loss;
  ax_model model;
  ax_families families;
  ax_arrangement a;
  ax_mesh mesh;
} fixture;

static void set_up(fixture *f, const char *mesh, int second_of_batch) {
  const ax_planner_options options = test_options(SAMPLES, 8);
  TEST_OK(test_trace_mixture(&net, &f->loss));
  TEST_OK(ax_model_make(f->loss, &options, &f->model));
  TEST_OK(ax_families_make(&f->model, &f->families));
  TEST_OK(ax_arrangement_whole(&f->families, &f->a));
  TEST_OK(ax_mesh_parse(mesh, &f->mesh));
  f->a.state_cut = true;
  f->a.batch.axis[0] = 0;
  f->a.batch.axis[1] = (int8_t)second_of_batch;
}

static void tear_down(fixture *f) {
  ax_arrangement_deinit(&f->a);
  ax_families_deinit(&f->families);
  ax_model_deinit(&f->model);
  ax_program_release(f->loss);
}

static void test_groups(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "data=2,expert=4", 0);
  const ax_mesh group = ax_stage_group(&f.mesh);
  assert_int_equal(ax_stage_groups(&f.mesh), 2);
  assert_int_equal(ax_stage_groups(&group), 1);
  assert_int_equal(ax_mesh_devices(&group), 4);
  assert_int_equal(ax_stage_sample_parts(&f.a, &f.mesh), 4);
  f.a.batch.axis[1] = 1; /* positions are no samples */
  assert_int_equal(ax_stage_sample_parts(&f.a, &f.mesh), 1);
  tear_down(&f);
}

/* A device sends the part of the samples, or of each sample, that it has. */
static void test_messages(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "data=2,sequence=2,model=2", AX_WHOLE);
  assert_true(ax_stage_message_bytes(&f.a, &f.model, &f.mesh, 3) == 3 * CARRY);
  f.a.batch.axis[1] = 0;
  assert_true(ax_stage_message_bytes(&f.a, &f.model, &f.mesh, 4) == 2 * CARRY);
  f.a.batch.axis[1] = 1;
  assert_true(ax_stage_message_bytes(&f.a, &f.model, &f.mesh, 3) == 3 * CARRY / 2);
  assert_true(ax_stage_cuts_carries(&f.a, &f.model, &f.mesh));
  tear_down(&f);
}

/* A loss whose carry has another first dimension than its sample: positions cannot be cut from stage to stage. */
static void test_other_carries(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda w:f32[4,3,3] x:f32[8,3]. let h:f32[3] = reduce_sum[axes=(0)] x a:f32[3] = scan[length=4 reverse=false num_consts=0 "
      "num_carry=1 "
      "body={ lambda h:f32[3] u:f32[3,3]. let b:f32[3] = dot_general[lhs_contract=(0) rhs_contract=(0) lhs_batch=() rhs_batch=()] "
      "h u in (b) }] h w "
      "c:f32[] = reduce_sum[axes=(0)] a in (c) }";
  static const uint32_t batch[] = {1};
  const ax_planner_options options = {.devices = 4, .train = true, .samples = 4, .batch = {.list = batch, .count = 1}};
  ax_program *loss;
  ax_model model;
  ax_families families;
  ax_arrangement a;
  ax_mesh mesh;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &loss));
  TEST_OK(ax_model_make(loss, &options, &model));
  TEST_OK(ax_families_make(&model, &families));
  TEST_OK(ax_arrangement_whole(&families, &a));
  TEST_OK(ax_mesh_parse("data=2,sequence=2", &mesh));
  a.batch.axis[0] = 0;
  assert_true(ax_stage_cuts_carries(&a, &model, &mesh));
  a.batch.axis[1] = 1;
  assert_false(ax_stage_cuts_carries(&a, &model, &mesh));
  assert_true(ax_stage_message_bytes(&a, &model, &mesh, 2) == 2 * 3 * 4); /* whole */
  ax_arrangement_deinit(&a);
  ax_families_deinit(&families);
  ax_model_deinit(&model);
  ax_program_release(loss);
}

static void test_specs(void **state) {
  (void)state;
  fixture f;
  ax_arena arena = {0};
  ax_piece_specs specs;
  set_up(&f, "data=2,expert=2,model=2", 0);
  for (uint32_t g = 0; g < f.families.count; g++)
    if (f.families.list[g].experts >= 0) f.a.family[g].axis[1] = f.families.list[g].experts;
  f.a.family[f.families.of[1]].axis[2] = 3;
  TEST_OK(ax_stage_specs(&f.a, &f.model, &f.families, &f.mesh, &arena, &specs));
  assert_string_equal(specs.param[0], "");
  assert_string_equal(specs.param[1], "_,expert,_,model");
  assert_string_equal(specs.param[2], "_,expert");
  assert_string_equal(specs.state[0], "_,data,expert p1");
  assert_string_equal(specs.sum[0], "_,_,expert p1"); /* as the state, but in each group */
  assert_string_equal(specs.state[1], "_,expert,data,model p1");
  assert_string_equal(specs.sum[1], "_,expert,_,model"); /* whole otherwise: each device has all that its expert is given */
  assert_string_equal(specs.sample[0], "expert");        /* within a group */
  assert_string_equal(specs.carry[0], "expert");
  f.a.batch.axis[1] = 1;
  TEST_OK(ax_stage_specs(&f.a, &f.model, &f.families, &f.mesh, &arena, &specs));
  assert_string_equal(specs.sample[1], "_,expert");
  assert_string_equal(specs.carry[0], "_,expert");
  ax_arena_deinit(&arena);
  tear_down(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_messages),
                                     cmocka_unit_test(test_other_carries), cmocka_unit_test(test_specs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
