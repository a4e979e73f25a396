/* Arrangements: what divides, specs as text, bytes of a device. */
#include "planner/arrangement.h"

#include <string.h>

#include "axle/transform.h"
#include "planner/search.h"
#include "support/cmocka.h"
#include "support/layered.h"
#include "support/tensor.h"

enum { LAYERS = 4, WIDTH = 6, HIDDEN = 8, SAMPLES = 24 };

typedef struct fixture {
  ax_program *loss;
  ax_model model;
  ax_families families;
  ax_arrangement a;
  ax_mesh mesh;
} fixture;

static void set_up(fixture *f, const char *mesh) {
  const ax_planner_options options = test_options(SAMPLES, 4);
  TEST_OK(test_trace_loss(AX_F32, LAYERS, WIDTH, HIDDEN, &f->loss));
  TEST_OK(ax_model_make(f->loss, &options, &f->model));
  TEST_OK(ax_families_make(&f->model, &f->families));
  TEST_OK(ax_arrangement_whole(&f->families, &f->a));
  TEST_OK(ax_mesh_parse(mesh, &f->mesh));
}

static void tear_down(fixture *f) {
  ax_arrangement_deinit(&f->a);
  ax_families_deinit(&f->families);
  ax_model_deinit(&f->model);
  ax_program_release(f->loss);
}

static void check_specs(const fixture *f, bool stages, const char *expected) {
  ax_text text = {0};
  ax_arrangement_in_specs(&f->a, &f->model, &f->families, &f->mesh, stages, &text);
  assert_string_equal(text.data, expected);
  ax_text_deinit(&text);
}

static void test_families(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "data=2,model=2");
  assert_int_equal(f.families.count, 3); /* w1, w2, and a vector */
  assert_true(f.families.list[0].layered && f.families.list[1].layered && !f.families.list[2].layered);
  assert_true(f.families.list[0].bytes == 4.0 * LAYERS * WIDTH * HIDDEN);
  assert_int_equal(f.families.of[2], 2);
  assert_int_equal(ax_model_state_of(&f.model, 0), AX_NONE); /* the count of steps */
  assert_int_equal(ax_model_state_of(&f.model, 2), 1);
  tear_down(&f);
}

static void test_specs(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "data=2,model=2");
  check_specs(&f, false, "; ; ; ; ");
  check_specs(&f, true, "pipe; pipe; ; ; ");
  f.a.family[0].axis[0] = 2;
  f.a.family[0].axis[1] = 2;
  f.a.family[1].axis[1] = 1;
  f.a.batch.axis[0] = 0;
  check_specs(&f, false, "_,_,data+model; _,model; ; data; data");
  check_specs(&f, true, "pipe,_,data+model; pipe,model; ; data; data");
  f.a.gathered = true; /* w2 is cut by no axis of the batch */
  check_specs(&f, false, "_,_,data+model p1; _,model; ; data; data");
  f.families.list[0].experts = 2; /* experts are where samples go, and do not come to them */
  check_specs(&f, false, "_,_,data+model; _,model; ; data; data");
  f.families.list[0].experts = -1;
  ax_text text = {0};
  ax_arrangement_specs(&f.a, &f.model, &f.families, &f.mesh, &text);
  ax_program *step, *laid;
  TEST_OK(ax_model_step(&f.model, 1, AX_SAVE_EVERYTHING, &step));
  TEST_OK(ax_program_with_shardings(step, &f.mesh, text.data, &laid)); /* as many as the step has, and they fit */
  ax_program_release(step);
  ax_program_release(laid);
  ax_text_deinit(&text);
  tear_down(&f);
}

/* What specs say is found again. */
static void test_read(void **state) {
  (void)state;
  fixture f;
  ax_arrangement again;
  ax_text text = {0}, one = {0};
  set_up(&f, "data=2,expert=2,model=2");
  f.a.family[0].axis[0] = 2;
  f.a.family[0].axis[2] = 2;
  f.a.family[1].axis[1] = 1;
  f.a.batch.axis[0] = f.a.batch.axis[1] = 0;
  f.a.batch.axis[2] = 1;
  ax_cuts_spec(&f.a.family[0], &f.families.list[0].type, &f.mesh, &one);
  assert_string_equal(one.data, "_,_,data+model");
  for (int state_cut = 0; state_cut < 2; state_cut++) {
    f.a.state_cut = state_cut == 1;
    ax_text_deinit(&text);
    text = (ax_text){0};
    ax_arrangement_specs(&f.a, &f.model, &f.families, &f.mesh, &text);
    TEST_OK(ax_arrangement_read(text.data, &f.model, &f.families, &f.mesh, &again));
    again.state_cut = f.a.state_cut;
    assert_true(ax_arrangement_equal(&f.a, &again, &f.families));
    ax_arrangement_deinit(&again);
  }
  TEST_FAILS(ax_arrangement_read("_,other", &f.model, &f.families, &f.mesh, &again), AX_INVALID_ARGUMENT, "'_,other'");
  ax_arrangement_deinit(&again);
  TEST_FAILS(ax_arrangement_read("_,_,_,_,data; ; ; ; ; ; ; ; ; ; ; ; ", &f.model, &f.families, &f.mesh, &again),
             AX_INVALID_ARGUMENT, "_,_,_,_,data");
  ax_arrangement_deinit(&again);
  TEST_OK(ax_arrangement_read("", &f.model, &f.families, &f.mesh, &again)); /* nothing is said */
  ax_arrangement_deinit(&again);
  ax_text_deinit(&text);
  ax_text_deinit(&one);
  tear_down(&f);
}

static void test_fit(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "data=4,model=3");
  f.a.batch.axis[0] = 0;
  f.a.family[0].axis[0] = 1; /* 6 by 4 */
  f.a.family[0].axis[1] = 1; /* 6 by 3 */
  f.a.family[1].axis[0] = 1; /* 8 by 4 */
  f.a.family[2].axis[1] = 0; /* 6 by 3 */
  assert_true(ax_arrangement_fit(&f.a, &f.model, &f.families, &f.mesh, 6));
  assert_int_equal(f.a.family[0].axis[0], AX_WHOLE);
  assert_int_equal(f.a.family[0].axis[1], 1);
  assert_int_equal(f.a.family[1].axis[0], 1);
  assert_int_equal(f.a.family[2].axis[1], 0);
  assert_false(ax_arrangement_fit(&f.a, &f.model, &f.families, &f.mesh, 4)); /* 24 samples in 4 parts of 4 */
  f.a.batch.axis[1] = 1;
  assert_true(ax_arrangement_fit(&f.a, &f.model, &f.families, &f.mesh, 1));
  f.mesh.axis[1].size = 5; /* a sample of 6 */
  assert_false(ax_arrangement_fit(&f.a, &f.model, &f.families, &f.mesh, 1));
  tear_down(&f);
}

static void test_shard(void **state) {
  (void)state;
  fixture f;
  set_up(&f, "data=2,model=2");
  f.a.family[0].axis[1] = 2;
  ax_arrangement_shard(&f.a, &f.families, &f.mesh, 0); /* the longest that is free, never layers */
  assert_int_equal(f.a.family[0].axis[0], 1);
  assert_int_equal(f.a.family[1].axis[0], 1);
  assert_int_equal(f.a.family[2].axis[0], 0);
  ax_arrangement again;
  TEST_OK(ax_arrangement_copy(&f.a, &f.families, &again));
  assert_true(ax_arrangement_equal(&f.a, &again, &f.families));
  again.state_cut = true;
  assert_false(ax_arrangement_equal(&f.a, &again, &f.families));
  again.state_cut = false;
  again.gathered = true;
  assert_false(ax_arrangement_equal(&f.a, &again, &f.families));
  ax_arrangement_deinit(&again);
  tear_down(&f);
}

static void test_memory(void **state) {
  (void)state;
  fixture f;
  const double matrix = 4.0 * LAYERS * WIDTH * HIDDEN, vector = 4.0 * WIDTH;
  ax_planned_memory memory;
  set_up(&f, "data=2,model=2");
  ax_arrangement_memory(&f.a, &f.model, &f.families, &f.mesh, &memory);
  assert_true(memory.parameters == 2 * matrix + vector);
  assert_true(memory.state == 2 * (2 * matrix + vector) + 4); /* and a count of steps */
  assert_true(memory.batch == 2 * SAMPLES * vector);
  f.a.batch.axis[0] = 0;
  f.a.family[0].axis[1] = 2;
  f.a.state_cut = true;
  ax_arrangement_memory(&f.a, &f.model, &f.families, &f.mesh, &memory);
  assert_true(memory.parameters == matrix / 2 + matrix + vector);
  assert_true(memory.state == 2 * (matrix / 4 + matrix / 2 + vector / 2) + 4);
  assert_true(memory.batch == SAMPLES * vector);
  const bool used[] = {true, false, true};
  double held[AX_HELD_SUM + 1];
  ax_arrangement_used_memory(&f.a, &f.model, &f.families, &f.mesh, used, 0.5, held);
  assert_true(held[AX_HELD_PARAM] == matrix / 4 + vector && held[AX_HELD_SUM] == matrix / 4 + vector);
  assert_true(held[AX_HELD_STATE] == 2 * (matrix / 8 + vector / 2));
  /* Sums lie as the state does, in each group by itself. */
  f.a.family[0].axis[1] = AX_WHOLE;
  f.a.batch.axis[1] = 0;
  ax_arrangement_used_memory(&f.a, &f.model, &f.families, &f.mesh, used, 1, held);
  assert_true(held[AX_HELD_PARAM] == matrix + vector && held[AX_HELD_STATE] == 2 * (matrix / 4 + vector / 2));
  assert_true(held[AX_HELD_SUM] == matrix / 2 + vector);
  tear_down(&f);
}

/* What is kept: the best of each mesh and schedule; of candidates that fit the fastest is better, of others the smallest. */
static void test_keeping(void **state) {
  (void)state;
  static const char text[] = "machine \"m\" device flops f32 1e12 memory 1e11 launch 1e-6 switch latency 1e-6 bandwidth 1e10 overhead 1e-6";
  fixture f;
  ax_cluster *machine;
  ax_planner p;
  ax_planner_options options = test_options(SAMPLES, 4);
  options.memory = 100;
  options.seconds = 1e-9;
  set_up(&f, "data=2,model=2");
  TEST_OK(ax_cluster_parse(text, "test", &machine));
  TEST_OK(ax_planner_begin(f.loss, machine, &options, &p));
  assert_false(p.cut_short);
  assert_true(ax_planner_is_late(&p, 1));
  assert_true(p.cut_short);
  ax_candidate slow = {.mesh = f.mesh, .stages = 1, .layout = f.a, .trial = {.bytes = 90, .seconds = 5}};
  ax_candidate fast = slow, large = slow, larger = slow;
  fast.trial.seconds = 3;
  large.trial.bytes = 101;
  larger.trial.bytes = 200;
  assert_true(ax_candidate_is_better(&p, &fast, &slow) && ax_candidate_is_better(&p, &slow, &large));
  assert_true(ax_candidate_is_better(&p, &large, &larger) && !ax_candidate_is_better(&p, &slow, &fast));
  TEST_OK(ax_planner_keep(&p, &large));
  assert_false(ax_planner_is_hopeless(&p, 1000, 1)); /* it does not fit */
  TEST_OK(ax_planner_keep(&p, &slow));
  TEST_OK(ax_planner_keep(&p, &fast));
  TEST_OK(ax_planner_keep(&p, &larger));
  assert_int_equal(p.found_count, 1);
  assert_true(p.found[0].trial.seconds == 3);
  assert_true(ax_planner_is_hopeless(&p, 5, 1.5) && !ax_planner_is_hopeless(&p, 4, 1.5));
  slow.layout.gathered = true;
  TEST_OK(ax_planner_keep(&p, &slow));
  assert_int_equal(p.found_count, 2);
  slow.stages = 2;
  TEST_OK(ax_planner_keep(&p, &slow));
  assert_int_equal(p.found_count, 3);
  ax_planner_end(&p);
  ax_cluster_release(machine);
  tear_down(&f);
}

/* --- What layouts are called --- */

static void check_kind(const char *mesh, const int8_t w1[AX_PLANNER_AXES], const int8_t w2[AX_PLANNER_AXES],
                       const int8_t batch[AX_PLANNER_AXES], bool state, const char *expected) {
  fixture f;
  char kind[64];
  set_up(&f, mesh);
  memcpy(f.a.family[0].axis, w1, sizeof f.a.family[0].axis);
  memcpy(f.a.family[1].axis, w2, sizeof f.a.family[1].axis);
  memcpy(f.a.batch.axis, batch, sizeof f.a.batch.axis);
  f.a.state_cut = state;
  ax_arrangement_kind(&f.a, &f.model, &f.families, &f.mesh, kind, sizeof kind);
  assert_string_equal(kind, expected);
  tear_down(&f);
}

static void test_kinds(void **state) {
  static const int8_t none[] = {-1, -1, -1, -1}, first[] = {0, -1, -1, -1}, by_first[] = {1, -1, -1, -1},
                      by_second[] = {-1, 1, -1, -1}, both[] = {0, 0, -1, -1}, sequence[] = {0, 1, -1, -1};
  (void)state;
  check_kind("a=4", none, none, none, false, "nothing cut");
  check_kind("a=4", none, none, first, false, "data parallel");
  check_kind("a=4", none, none, first, true, "data parallel, state sharded");
  check_kind("a=4", by_first, by_first, first, false, "fully sharded");
  check_kind("a=1,b=4", by_first, by_second, first, false, "tensor parallel"); /* an axis of 1 cuts nothing */
  check_kind("a=2,b=2", by_second, by_second, first, true, "tensor parallel, state sharded");
  check_kind("a=2,b=2", by_second, by_second, both, false, "hybrid sharded");
  check_kind("a=2,b=2", by_second, by_second, sequence, false, "sequence parallel");
  check_kind("a=2,b=2,c=2", by_first, (const int8_t[]){1, -1, 2, -1}, sequence, false, "sequence and tensor parallel, fully sharded");
  check_kind("a=2,b=2,c=2,d=2", none, (const int8_t[]){-1, -1, -1, 2}, (const int8_t[]){0, -1, 1, -1}, true,
             "sequence and tensor parallel, state sharded"); /* the fourth axis counts */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_families), cmocka_unit_test(test_specs),  cmocka_unit_test(test_read),    cmocka_unit_test(test_fit),
      cmocka_unit_test(test_shard),    cmocka_unit_test(test_memory), cmocka_unit_test(test_keeping), cmocka_unit_test(test_kinds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
