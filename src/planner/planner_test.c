/* The planner beside exhaustive search and beside layouts that are well known, on few devices; memory limits; options that do not
   fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/search.h"
#include "support/cmocka.h"
#include "support/layered.h"
#include "support/mixture.h"
#include "support/tensor.h"

/* Slow links, so that layouts matter; memory for all but the largest. */
static const char machine_text[] =
    "machine \"test\" device flops f32 1e12 memory 1e11 launch 1e-6 capacity 1e9\n"
    "node devices 4 latency 1e-6 bandwidth 1e10 overhead 5e-7\n"
    "network latency 3e-6 bandwidth 2e9 overhead 1e-6\n";

/* Links so slow that samples are better cut little. */
static const char slow_text[] =
    "machine \"slow\" device flops f32 1e12 memory 1e11 launch 1e-6 capacity 1e9\nswitch latency 1e-6 bandwidth 1e8 overhead 1e-6\n";

static const char torus_text[] =
    "machine \"ring\" device flops f32 1e12 memory 1e11 launch 1e-7 capacity 1e9\ntorus dimensions 2 latency 1e-6 bandwidth 1e10 overhead 1e-6\n";

enum { LAYERS = 4, WIDTH = 256, HIDDEN = 1024, SAMPLES = 64 };

static ax_cluster *machine_of(const char *text) {
  ax_cluster *made;
  TEST_OK(ax_cluster_parse(text, "test", &made));
  return made;
}

static ax_program *loss_of(int64_t layers, int64_t width, int64_t hidden) {
  ax_program *made;
  TEST_OK(test_trace_loss(AX_F32, layers, width, hidden, &made));
  return made;
}

/* --- Exhaustive --- */

typedef struct exhausting {
  ax_planner *p;
  double best;
} exhausting;

static void try_layout(exhausting *e, ax_candidate *c) {
  bool possible;
  ax_candidate copy;
  TEST_OK(ax_candidate_copy(e->p, c, &copy));
  TEST_OK(ax_candidate_try(e->p, &copy, true, &possible));
  if (possible && copy.trial.bytes <= e->p->capacity && copy.trial.seconds < e->best) e->best = copy.trial.seconds;
  ax_candidate_deinit(&copy);
}

/* Each family of more than a vector: each axis cuts one of its dimensions but that of layers, or none. */
static void try_families(exhausting *e, ax_candidate *c, uint32_t family) {
  if (family == e->p->families.count || e->p->families.list[family].type.rank < 2) {
    try_layout(e, c);
    return;
  }
  for (int first = -1; first < 3; first++)
    for (int second = -1; second < (c->mesh.count > 1 ? 3 : 0); second++) {
      if (first == 0 || second == 0) continue;
      c->layout.family[family].axis[0] = (int8_t)first;
      c->layout.family[family].axis[1] = (int8_t)second;
      try_families(e, c, family + 1);
    }
  c->layout.family[family].axis[0] = c->layout.family[family].axis[1] = AX_WHOLE;
}

static double exhaust(const ax_program *loss, const ax_cluster *machine, int64_t devices) {
  ax_planner p;
  const ax_planner_options options = test_options(SAMPLES, devices);
  TEST_OK(ax_planner_begin(loss, machine, &options, &p));
  exhausting e = {&p, INFINITY};
  for (int64_t second = 1; second <= devices; second *= 2)
    for (int batch = 1; batch < 4; batch++) { /* samples are cut by the first axis, the second, or both */
      ax_candidate c = {.microbatches = 1, .stages = 1, .chunks = 1, .mesh.count = second > 1 ? 2 : 1};
      strcpy(c.mesh.axis[0].name, "a");
      strcpy(c.mesh.axis[1].name, "b");
      c.mesh.axis[0].size = devices / second;
      c.mesh.axis[1].size = second;
      TEST_OK(ax_arrangement_whole(&p.families, &c.layout));
      c.layout.batch.axis[0] = (batch & 1) != 0 ? 0 : AX_WHOLE;
      c.layout.batch.axis[1] = (batch & 2) != 0 && second > 1 ? 0 : AX_WHOLE;
      for (int state = 0; state < 2; state++) {
        c.layout.state_cut = state == 1;
        try_families(&e, &c, 0);
      }
      ax_candidate_deinit(&c);
    }
  ax_planner_end(&p);
  return e.best;
}

/* Within 5 % of the best of all layouts over one axis or two, on devices in several shapes. */
static void check_beside_all(const char *machine_of_text, int64_t layers, int64_t width, int64_t hidden, int64_t devices) {
  ax_cluster *machine = machine_of(machine_of_text);
  ax_program *loss = loss_of(layers, width, hidden);
  const ax_planner_options options = test_options(SAMPLES, devices);
  ax_strategies found;
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  const double best = exhaust(loss, machine, devices);
  assert_true(found.count > 0 && found.complete && found.list[0].fits);
  print_message("%lld devices, %lld layers of %lld to %lld: %.4g ms, the best of all %.4g ms\n", (long long)devices, (long long)layers,
                (long long)width, (long long)hidden, 1e3 * found.list[0].seconds, 1e3 * best);
  if (!(found.list[0].seconds <= 1.05 * best)) fail_msg("%.9g s, the best of all %.9g s", found.list[0].seconds, best);
  ax_strategies_release(&found);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

static void test_exhaustive(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* with sanitizers each search of all takes a minute */
  /* all of those that the page speaks of: AXLE_PLANNER_DEVICES=32, in three minutes */
  const int64_t most = getenv("AXLE_PLANNER_DEVICES") != NULL ? atoll(getenv("AXLE_PLANNER_DEVICES")) : 16;
  for (int64_t devices = 8; devices <= most; devices *= 2) {
    check_beside_all(machine_text, LAYERS, WIDTH, HIDDEN, devices);
    if (devices == 8 || most > 16) check_beside_all(machine_text, 8, 64, 4096, devices);
    if (devices == 8 || most > 16) check_beside_all(slow_text, 2, 64, 256, devices);
  }
}

/* --- What needs no search --- */

/* Where links are fast and samples many, each device takes its part of what one takes alone. Then no other way is looked for. */
static void test_samples_alone(void **state) {
  (void)state;
  static const char text[] =
      "machine \"quick\" device flops f32 1e12 memory 1e12 launch 1e-9 capacity 1e10\nswitch latency 1e-9 bandwidth 1e12\n";
  enum { MANY = 4096, DEVICES = 16 };
  ax_cluster *machine = machine_of(text), *slow = machine_of(slow_text);
  ax_program *loss = loss_of(LAYERS, WIDTH, HIDDEN);
  const ax_planner_options options = test_options(MANY, DEVICES);
  ax_strategies found, searched;
  ax_strategy given = {0}, one;
  TEST_OK(ax_mesh_parse("data=1", &given.mesh));
  TEST_OK(ax_planner_time(loss, machine, &options, &given, &one));
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  TEST_OK(ax_planner_search(loss, slow, &options, &searched));
  print_message("%d devices: %.4g ms, one %.4g ms; %g programs tried, on slow links %g\n", DEVICES, 1e3 * found.list[0].seconds,
                1e3 * one.seconds, found.tried, searched.tried);
  assert_true(found.complete && found.list[0].seconds <= 1.06 * one.seconds / DEVICES);
  assert_true(3 * found.tried < searched.tried);
  ax_strategy_release(&one);
  ax_strategies_release(&found);
  ax_strategies_release(&searched);
  ax_program_release(loss);
  ax_cluster_release(slow);
  ax_cluster_release(machine);
}

/* --- Time --- */

enum { UNROLLED = 96 };

/* w.., x: as many layers as parameters, without a loop */
static AX_BODY(unrolled) {
  (void)context;
  ax_value h = in[UNROLLED];
  for (int k = 0; k < UNROLLED; k++) h = ax_add(h, ax_tanh(ax_matmul(h, in[k])));
  out[0] = ax_reduce_mean(ax_square(h), AX_ALL_DIMS, false);
}

/* Of many layers a trial takes long. Then few are made, none of them for long beyond the end, and the first ones are those that
   are seldom far from good. */
static void test_time_is_kept(void **state) {
  (void)state;
  enum { DEVICES = 64, MANY = 4096 };
  ax_cluster *machine = machine_of(machine_text);
  ax_type types[UNROLLED + 1];
  const uint32_t batch[] = {UNROLLED};
  ax_planner_options options = {.devices = DEVICES, .train = true, .samples = MANY, .batch = {.list = batch, .count = 1}};
  ax_program *loss;
  ax_strategies found;
  ax_strategy given = {0}, timed;
  for (int k = 0; k < UNROLLED; k++) types[k] = ax_array_type(AX_F32, AX_DIMS(256, 256));
  types[UNROLLED] = ax_array_type(AX_F32, AX_DIMS(256));
  TEST_OK(ax_trace(AX_FN(unrolled, UNROLLED + 1, 1), AX_LIST(UNROLLED + 1, types), &loss));
  TEST_OK(ax_mesh_parse("data=64", &given.mesh));
  const double began = ax_seconds();
  TEST_OK(ax_planner_time(loss, machine, &options, &given, &timed));
  const double one = ax_seconds() - began; /* it makes the step, and simulates it, besides */
  options.seconds = 12 * one;
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  print_message("a trial takes %.2f s: %.0f in %.2f s of %.2f, %.4g ms; data=64 %.4g\n", one, found.tried, found.seconds,
                options.seconds, 1e3 * found.list[0].seconds, 1e3 * timed.seconds);
  assert_true(found.list[0].seconds <= 8 * timed.seconds); /* all alike: 60 times */
  if (!AX_HOSTILE) assert_true(found.seconds < 3 * options.seconds); /* 1.1 times, where nothing else runs */
  ax_strategies_release(&found);
  ax_strategy_release(&timed);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* --- More devices --- */

/* More devices are never slower: what fewer would do faster is done by fewer. */
static void check_more(const char *text, int64_t width, int64_t hidden, int64_t samples, int64_t most) {
  ax_cluster *machine = machine_of(text);
  ax_program *loss = loss_of(2, width, hidden);
  double before = INFINITY;
  for (int64_t devices = 1; devices <= most; devices *= 2) {
    const ax_planner_options options = test_options(samples, devices);
    ax_strategies found;
    TEST_OK(ax_planner_search(loss, machine, &options, &found));
    assert_true(found.count > 0 && found.complete && ax_mesh_devices(&found.list[0].mesh) <= devices);
    if (!(found.list[0].seconds <= before))
      fail_msg("%lld devices take %.9g s, half of them %.9g s", (long long)devices, found.list[0].seconds, before);
    before = found.list[0].seconds;
    ax_strategies_release(&found);
  }
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* 7 devices cut few things evenly, and what all of them repeat, as updates of parameters, is no work: 4 of them are faster. */
static void test_primes(void **state) {
  (void)state;
  static const char text[] =
      "machine \"near\" device flops f32 1e14 memory 1e11 launch 1e-7 capacity 1e10\nswitch latency 1e-7 bandwidth 1e11 overhead 1e-7\n";
  ax_cluster *machine = machine_of(text);
  ax_program *loss = loss_of(2, WIDTH, HIDDEN);
  double seconds[2];
  for (int i = 0; i < 2; i++) {
    const ax_planner_options options = test_options(SAMPLES, i == 0 ? 4 : 7);
    ax_strategies found;
    TEST_OK(ax_planner_search(loss, machine, &options, &found));
    seconds[i] = found.list[0].seconds;
    ax_strategies_release(&found);
  }
  print_message("4 devices: %.4g us, of 7 the best: %.4g\n", 1e6 * seconds[0], 1e6 * seconds[1]);
  assert_true(seconds[1] <= seconds[0]);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* 7 and 13 devices have no parts, but 6 and 12 of them cut 96 samples: they are faster than a power of two. */
static void test_parts_of_samples(void **state) {
  (void)state;
  static const char text[] =
      "machine \"near\" device flops f32 1e10 memory 1e11 launch 1e-7 capacity 1e10\nswitch latency 1e-7 bandwidth 1e11 overhead "
      "1e-7\n";
  assert_true(ax_planner_is_between(&(ax_planner){.options.devices = 60, .devices = 48}));
  assert_false(ax_planner_is_between(&(ax_planner){.options.devices = 60, .devices = 32}));
  assert_false(ax_planner_is_between(&(ax_planner){.options.devices = 60, .devices = 30}));
  ax_cluster *machine = machine_of(text);
  ax_program *loss = loss_of(2, WIDTH, HIDDEN);
  double before = INFINITY;
  for (int i = 0; i < (AX_HOSTILE ? 3 : 5); i++) {
    static const int64_t tried[] = {4, 6, 7, 12, 13};
    const int64_t devices = tried[i];
    const ax_planner_options options = test_options(96, devices);
    ax_strategies found;
    TEST_OK(ax_planner_search(loss, machine, &options, &found));
    print_message("%lld devices, 96 samples: %.4g us on %lld\n", (long long)devices, 1e6 * found.list[0].seconds,
                  (long long)ax_mesh_devices(&found.list[0].mesh));
    assert_true(found.complete && found.list[0].seconds <= before);
    if (devices % 6 == 0) assert_true(found.list[0].seconds < before); /* or this would show nothing */
    before = found.list[0].seconds;
    ax_strategies_release(&found);
  }
  ax_program_release(loss);
  ax_cluster_release(machine);
}

static void test_more_devices(void **state) {
  (void)state;
  const bool all = getenv("AXLE_PLANNER_DEVICES") != NULL; /* in another minute */
  const int64_t most = AX_HOSTILE ? 4 : all ? 64 : 16;
  check_more(machine_text, 64, 256, 16, most);
  check_more(torus_text, 32, 2048, 4, most);
  if (!all) return;
  check_more(machine_text, WIDTH, HIDDEN, SAMPLES, most);
  check_more(slow_text, 64, 256, SAMPLES, most);
}

/* --- All pipelines --- */

/* The best of all numbers of microbatches, policies and schedules, of stages with that mesh. */
static void try_stages(exhausting *e, const ax_candidate *stage, int64_t stages) {
  const int64_t most = e->p->model.samples / stage->mesh.axis[0].size;
  for (int64_t microbatches = 1; microbatches <= most; microbatches *= 2)
    for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT; saved++)
      for (int schedule = AX_PIPELINE_GPIPE; schedule < AX_PIPELINE_SCHEDULE_COUNT; schedule++) {
        ax_candidate c;
        if (schedule == AX_PIPELINE_INTERLEAVED && (microbatches % stages != 0 || e->p->model.layers % (2 * stages) != 0)) continue;
        TEST_OK(ax_candidate_copy(e->p, stage, &c));
        c.stages = stages;
        c.microbatches = microbatches;
        c.saved = (ax_checkpoint_policy)saved;
        c.schedule = (ax_pipeline_schedule)schedule;
        c.chunks = schedule == AX_PIPELINE_INTERLEAVED ? 2 : 1;
        if (ax_planner_time_pipeline(e->p, &c) == AX_OK && c.trial.bytes <= e->p->capacity)
          e->best = fmin(e->best, c.trial.seconds);
        ax_candidate_deinit(&c);
      }
}

/* Of stages that cut experts, positions and parameters each in so many parts. */
static void try_stage(exhausting *e, int64_t stages, int64_t experts, int64_t positions, int64_t parameters) {
  const int64_t data = e->p->devices / stages / experts / positions / parameters;
  ax_candidate stage = {.mesh = {.count = 4,
                                 .axis = {{.name = "data", .size = data},
                                          {.name = "expert", .size = experts},
                                          {.name = "sequence", .size = positions},
                                          {.name = "model", .size = parameters}}}};
  if (data < 1) return;
  TEST_OK(ax_planner_merge_ways(e->p, &e->p->expert, &e->p->sequence, &stage.layout));
  stage.layout.state_cut = true;
  try_stages(e, &stage, stages);
  ax_candidate_deinit(&stage);
}

static double exhaust_pipelines(const ax_program *loss, const ax_cluster *machine, const ax_planner_options *options) {
  ax_planner p;
  const int64_t devices = options->devices;
  TEST_OK(ax_planner_begin(loss, machine, options, &p));
  TEST_OK(ax_planner_find_ways(&p, "expert"));
  TEST_OK(ax_planner_find_ways(&p, "sequence"));
  assert_true(p.expert.family != NULL && p.sequence.family != NULL);
  exhausting e = {&p, INFINITY};
  for (int64_t stages = 2; stages <= LAYERS && stages <= devices; stages *= 2)
    for (int64_t experts = 1; experts <= devices; experts *= 2)
      for (int64_t positions = 1; positions <= devices; positions *= 2)
        for (int64_t model = 1; model <= devices; model *= 2) try_stage(&e, stages, experts, positions, model);
  ax_planner_end(&p);
  return e.best;
}

/* Of the pipelines none is 1 % better than what is found. */
static void check_beside_pipelines(const ax_program *loss, const ax_cluster *machine, const ax_planner_options *options,
                                   const ax_strategy *best) {
  const double all = exhaust_pipelines(loss, machine, options);
  print_message("%lld devices, a mixture of experts: %.4g ms, the best of all pipelines %.4g ms\n", (long long)options->devices,
                1e3 * best->seconds, 1e3 * all);
  if (!(best->seconds <= 1.01 * all)) fail_msg("%.9g s, the best of all pipelines %.9g s", best->seconds, all);
}

static bool has_axis(const ax_mesh *mesh, const char *name) {
  const int axis = ax_mesh_find(mesh, name);
  return axis >= 0 && mesh->axis[axis].size > 1;
}

/* On slow links experts stay within a stage: the best that is found is such a pipeline, and no other is 1 % better. */
static void test_experts_in_stages(void **state) {
  (void)state;
  static const test_mixture net = {LAYERS, .tokens = 8, .width = 32, .hidden = 1024, .experts = 4};
  const ax_planner_options options = test_options(16, AX_HOSTILE ? 4 : 8);
  ax_cluster *machine = machine_of(slow_text);
  ax_program *loss;
  ax_strategies found;
  TEST_OK(test_trace_mixture(&net, &loss));
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  const ax_strategy *best = &found.list[0];
  assert_true(found.complete);
  if (options.devices == 8) { /* with fewer it is another */
    assert_true(best->stages > 1 && has_axis(&best->mesh, "expert"));
    assert_non_null(strstr(best->kind, "pipeline, expert parallel"));
  }
  check_beside_pipelines(loss, machine, &options, best);
  ax_strategies_release(&found);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* Few samples, positions of which four are no divisor, and hidden units that nothing divides, on nodes of four: the four devices of a
   stage cut experts in two and positions in two, and nothing else is as good. */
static void test_both_in_stages(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* with sanitizers it takes a minute */
  static const char text[] =
      "machine \"near\" device flops f32 1e12 memory 1e13 launch 1e-7 capacity 1e9\n"
      "node devices 4 latency 1e-6 bandwidth 1e12 overhead 1e-7\nnetwork latency 1e-6 bandwidth 1e8 overhead 1e-6\n";
  static const test_mixture net = {LAYERS, .tokens = 6, .width = 127, .hidden = 8191, .experts = 4};
  const ax_planner_options options = test_options(4, 16);
  ax_cluster *machine = machine_of(text);
  ax_program *loss;
  ax_strategies found;
  TEST_OK(test_trace_mixture(&net, &loss));
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  const ax_strategy *best = &found.list[0];
  assert_true(found.complete && best->stages > 1 && has_axis(&best->mesh, "expert") && has_axis(&best->mesh, "sequence"));
  assert_non_null(strstr(best->kind, "pipeline, expert and sequence parallel"));
  check_beside_pipelines(loss, machine, &options, best);
  ax_strategies_release(&found);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* The ways of a second axis are found on about eight devices. Where so many do not divide the positions, fewer do. */
static void test_odd_positions(void **state) {
  (void)state;
  static const test_mixture net = {LAYERS, .tokens = 6, .width = 8, .hidden = 16, .experts = 2};
  const ax_planner_options options = test_options(16, 16);
  ax_cluster *machine = machine_of(slow_text);
  ax_program *loss;
  ax_strategy given = {0}, timed;
  TEST_OK(test_trace_mixture(&net, &loss));
  TEST_OK(ax_mesh_parse("data=8,sequence=2", &given.mesh));
  TEST_OK(ax_planner_time(loss, machine, &options, &given, &timed));
  assert_non_null(strstr(timed.in_specs, "data,sequence"));
  ax_strategy_release(&timed);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* --- Layouts that are known --- */

/* Parameters, their state (count, mu, nu of adam), x and y; then loss, parameters and state. */
static void specs_of(const char *w1, const char *w2, const char *samples, char *out, size_t bytes) {
  snprintf(out, bytes, "%s; %s; ; ; %s; %s; ; %s; %s; ; %s; %s -> ; %s; %s; ; ; %s; %s; ; %s; %s; ", w1, w2, w1, w2, w1, w2, samples, samples, w1,
           w2, w1, w2, w1, w2);
}

static void test_known(void **state) {
  (void)state;
  static const struct {
    const char *name, *mesh, *w1, *w2, *samples;
  } known[] = {
      {"data parallel", "data=16", "", "", "data"},
      {"fully sharded", "data=16", "_,_,data", "_,data", "data"},
      {"fully sharded, gathered", "data=16", "_,_,data p1", "_,data p1", "data"},
      {"Megatron", "data=4,model=4", "_,_,model", "_,model", "data"},
      {"Megatron, two to a group", "data=8,model=2", "_,_,model", "_,model", "data"},
      {"both", "data=4,model=4", "_,data,model", "_,model,data", "data"},
      {"hybrid", "data=4,shard=4", "_,_,shard", "_,shard", "data+shard"},
      {"hybrid, gathered", "data=4,shard=4", "_,_,shard p1", "_,shard p1", "data+shard"},
  };
  ax_cluster *machine = machine_of(machine_text);
  ax_program *loss = loss_of(LAYERS, WIDTH, HIDDEN);
  const ax_planner_options options = test_options(SAMPLES, 16);
  ax_strategies found;
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  for (size_t i = 0; i < AX_COUNT(known); i++)
    for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT; saved++)
      for (int64_t microbatches = 1; microbatches <= 2; microbatches++) {
        char specs[1000];
        ax_strategy given = {.specs = specs, .saved = (ax_checkpoint_policy)saved, .microbatches = microbatches}, timed;
        specs_of(known[i].w1, known[i].w2, known[i].samples, specs, sizeof specs);
        TEST_OK(ax_mesh_parse(known[i].mesh, &given.mesh));
        TEST_OK(ax_planner_time(loss, machine, &options, &given, &timed));
        assert_true(timed.seconds > 0 && timed.memory.total > 0 && timed.stages == 1);
        if (!(found.list[0].seconds <= timed.seconds))
          fail_msg("%s: %.9g s, found %.9g s", known[i].name, timed.seconds, found.list[0].seconds);
        ax_strategy_release(&timed);
      }
  ax_strategies_release(&found);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* --- What is given --- */

static bool is_same_mesh(const ax_mesh *a, const ax_mesh *b) {
  bool same = a->count == b->count;
  for (uint32_t i = 0; same && i < a->count; i++)
    same = a->axis[i].size == b->axis[i].size && strcmp(a->axis[i].name, b->axis[i].name) == 0;
  return same;
}

/* Each mesh that is found can be given, and is the same, or has a faster layout: on it alone more is looked for. */
static void check_rows(const char *text, bool train, int64_t devices) {
  ax_cluster *machine = machine_of(text);
  ax_program *loss = loss_of(LAYERS, WIDTH, HIDDEN);
  ax_planner_options options = test_options(SAMPLES, devices);
  if (!train) options = (ax_planner_options){.devices = devices, .seconds = options.seconds};
  options.keep = 30;
  ax_strategies found;
  uint32_t same = 0;
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  for (uint32_t i = 0; i < found.count; i++) {
    ax_strategies again;
    ax_planner_options one = options;
    one.mesh = &found.list[i].mesh;
    one.devices = ax_mesh_devices(one.mesh);
    TEST_OK(ax_planner_search(loss, machine, &one, &again));
    if (!(again.list[0].seconds <= 1.001 * found.list[i].seconds) || !is_same_mesh(&again.list[0].mesh, one.mesh))
      fail_msg("row %u: %.9g s, %s; again %.9g s", i + 1, found.list[i].seconds, found.list[i].kind, again.list[0].seconds);
    same += again.list[0].seconds >= 0.999 * found.list[i].seconds;
    ax_strategies_release(&again);
  }
  print_message("%lld devices: %u of %u rows are the same, and the others faster\n", (long long)devices, same, found.count);
  assert_true(2 * same >= found.count);
  ax_strategies_release(&found);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* On a mesh of stages no number of microbatches is faster than the one that is found: of few large ones parameters are read less
   often. */
static void test_microbatches(void **state) {
  (void)state;
  ax_cluster *machine = machine_of(machine_text);
  ax_program *loss = loss_of(4, 512, 2048);
  ax_planner_options options = test_options(SAMPLES, 4);
  ax_mesh mesh;
  ax_strategies found;
  TEST_OK(ax_mesh_parse("pipe=2,data=1,model=2", &mesh));
  options.mesh = &mesh;
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  for (int64_t microbatches = 1; microbatches <= SAMPLES; microbatches *= 2) {
    ax_strategy given = {.microbatches = microbatches, .stages = 2, .schedule = AX_PIPELINE_1F1B}, timed;
    TEST_OK(ax_mesh_parse("data=1,model=2", &given.mesh));
    TEST_OK(ax_planner_time(loss, machine, &options, &given, &timed));
    print_message("%lld microbatches take %.4g ms; %lld were found, %.4g\n", (long long)microbatches, 1e3 * timed.seconds,
                  (long long)found.list[0].microbatches, 1e3 * found.list[0].seconds);
    assert_true(found.list[0].seconds <= timed.seconds);
    ax_strategy_release(&timed);
  }
  ax_strategies_release(&found);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

static void test_rows(void **state) {
  (void)state;
  check_rows(machine_text, true, 8);
  check_rows(slow_text, true, AX_HOSTILE ? 4 : 8);
  check_rows(machine_text, false, 8);
}

/* What is found can be laid out, and takes what was said. */
static void test_programs(void **state) {
  (void)state;
  ax_cluster *machine = machine_of(slow_text);
  ax_program *loss = loss_of(8, 512, 512);
  ax_planner_options options = test_options(SAMPLES, 8);
  options.keep = 40;
  ax_strategies found;
  bool pipelines = false;
  TEST_OK(ax_planner_search(loss, machine, &options, &found));
  assert_true(found.count > 4);
  for (uint32_t i = 0; i < found.count; i++) {
    const ax_strategy *s = &found.list[i];
    ax_program *program;
    assert_true(8 % ax_mesh_devices(&s->mesh) == 0);
    TEST_NEAR(s->computing + s->exchanging + s->waiting, 1, 0.02);
    assert_true(s->utilization > 0 && s->utilization <= 1);
    TEST_NEAR(s->memory.parameters + s->memory.state + s->memory.batch + s->memory.temporaries, s->memory.total, 1e-9);
    if (s->stages > 1) { /* timed by itself it takes the same */
      ax_strategy again = *s, timed;
      again.specs = NULL;
      again.mesh.count--;
      memmove(again.mesh.axis, again.mesh.axis + 1, again.mesh.count * sizeof again.mesh.axis[0]);
      TEST_OK(ax_planner_time(loss, machine, &options, &again, &timed));
      TEST_NEAR(timed.seconds, s->seconds, 1e-12);
      TEST_NEAR(timed.memory.total, s->memory.total, 1e-12);
      ax_strategy_release(&timed);
      pipelines = true;
      continue;
    }
    ax_lowered *lowered;
    ax_simulation simulation;
    TEST_OK(ax_planner_program(loss, &options, s, &program));
    TEST_OK(ax_program_lower(program, &(ax_compile_options){.donate = AX_FIRST(TEST_PARAMS + 7)}, &lowered));
    TEST_OK(ax_simulate(lowered, machine, NULL, &simulation));
    TEST_NEAR(simulation.seconds, s->seconds, 1e-12);
    TEST_NEAR(simulation.memory, s->memory.total, 1e-12);
    ax_simulation_release(&simulation);
    ax_lowered_release(lowered);
    ax_program_release(program);
  }
  assert_true(pipelines);
  ax_strategies_release(&found);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* Less memory: what takes more is not taken; none: the strategy with the least is given, and said not to fit. */
static void test_memory(void **state) {
  (void)state;
  ax_cluster *machine = machine_of(slow_text);
  ax_program *loss = loss_of(8, 512, 512);
  ax_planner_options options = test_options(SAMPLES, 8);
  ax_strategies all, less, none;
  TEST_OK(ax_planner_search(loss, machine, &options, &all));
  options.memory = 0.6 * all.list[0].memory.total;
  TEST_OK(ax_planner_search(loss, machine, &options, &less));
  assert_true(less.list[0].fits && less.list[0].memory.total <= options.memory);
  assert_true(less.list[0].seconds >= all.list[0].seconds);
  options.memory = 1000;
  TEST_OK(ax_planner_search(loss, machine, &options, &none));
  assert_true(none.count > 0 && !none.list[0].fits);
  char *text;
  TEST_OK(ax_strategies_print(&none, 0, NULL, &text));
  assert_non_null(strstr(text, "nothing was found that fits the memory of a device"));
  ax_string_free(text);
  ax_strategies_release(&none);
  options.seconds = 1e-9; /* which is over before the first candidate is made */
  TEST_OK(ax_planner_search(loss, machine, &options, &none));
  assert_true(none.count == 1 && !none.complete && none.tried <= 4); /* one for each way, and the candidate */
  ax_strategies_release(&all);
  ax_strategies_release(&less);
  ax_strategies_release(&none);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

/* A program that is not trained: a product. */
static void test_plain(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[1024,512] w:f32[512,2048]. let y:f32[1024,2048] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() "
      "rhs_batch=()] x w in (y) }";
  ax_cluster *machine = machine_of(machine_text);
  ax_program *program;
  ax_strategies found;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_planner_search(program, machine, &(ax_planner_options){.devices = 8}, &found));
  assert_true(found.count > 0 && found.list[0].fits);
  assert_true(found.list[0].exchanging == 0); /* its rows, or its columns */
  ax_strategies_release(&found);
  ax_program_release(program);
  ax_cluster_release(machine);
}

static void test_refused(void **state) {
  (void)state;
  ax_cluster *machine = machine_of(machine_text);
  ax_program *loss = loss_of(2, 8, 8), *axes;
  ax_strategies found;
  ax_planner_options options = test_options(SAMPLES, 0);
  TEST_FAILS(ax_planner_search(loss, machine, &options, &found), AX_INVALID_ARGUMENT, "0 devices");
  options.devices = 8;
  static const uint32_t none[] = {9};
  options.batch = (ax_args){.list = none, .count = 1};
  TEST_FAILS(ax_planner_search(loss, machine, &options, &found), AX_INVALID_ARGUMENT, "9");
  static const uint32_t all[] = {0, 1, 2, 3, 4};
  options.batch = (ax_args){.list = all, .count = 5};
  TEST_FAILS(ax_planner_search(loss, machine, &options, &found), AX_INVALID_ARGUMENT, "has no parameters");
  TEST_FAILS(ax_planner_search(NULL, machine, &options, &found), AX_INVALID_ARGUMENT, "program");
  TEST_FAILS(ax_planner_search(loss, NULL, &options, &found), AX_INVALID_ARGUMENT, "machine");
  static const char device[] = "{ axes d=2 ; lambda x:f32[4]{V:d}. let in (x) }";
  TEST_OK(ax_program_parse(device, strlen(device), "test", &axes));
  TEST_FAILS(ax_planner_search(axes, machine, &options, &found), AX_INVALID_ARGUMENT, "a program of one device");
  static const char vector[] = "{ lambda x:f32[4] s:s32[]. let in (x) }";
  ax_program_release(axes);
  TEST_OK(ax_program_parse(vector, strlen(vector), "test", &axes));
  options = (ax_planner_options){.devices = 2, .train = true};
  TEST_FAILS(ax_planner_search(axes, machine, &options, &found), AX_INVALID_ARGUMENT, "must be a float scalar");
  ax_program_release(axes);
  options = test_options(SAMPLES, 8);
  ax_strategy given = {.microbatches = 7, .specs = (char[]){"? -> ?"}}, timed;
  TEST_OK(ax_mesh_parse("data=8", &given.mesh));
  TEST_FAILS(ax_planner_time(loss, machine, &options, &given, &timed), AX_INVALID_ARGUMENT, "7 microbatches of 64 samples");
  given = (ax_strategy){.stages = 2};
  TEST_FAILS(ax_planner_time(loss, machine, &options, &given, &timed), AX_INVALID_ARGUMENT, "the schedule of 2 stages is none");
  TEST_OK(ax_mesh_parse("data=4,model=1", &given.mesh));
  given.schedule = AX_PIPELINE_1F1B;
  given.microbatches = 3;
  TEST_FAILS(ax_planner_time(loss, machine, &options, &given, &timed), AX_INVALID_ARGUMENT, "64 samples in 3 microbatches of 4 groups");
  given.microbatches = 4;
  given.stages = 3;
  TEST_FAILS(ax_planner_time(loss, machine, &options, &given, &timed), AX_INVALID_ARGUMENT, "2 layers on 3 stages");
  TEST_FAILS(ax_planner_program(loss, &options, &given, &axes), AX_ABSENT, "3 stages is several programs");
  ax_stage_programs parts;
  TEST_FAILS(ax_planner_stage(loss, &options, &given, 0, &parts), AX_INVALID_ARGUMENT, "a strategy of several stages is wanted"); /* no specs */
  given.stages = 2;
  TEST_OK(ax_planner_time(loss, machine, &options, &given, &timed));
  TEST_FAILS(ax_planner_stage(loss, &options, &timed, 2, &parts), AX_INVALID_ARGUMENT, "part 2 of a strategy of 2 parts");
  TEST_FAILS(ax_planner_stage(loss, &options, &timed, -1, &parts), AX_INVALID_ARGUMENT, "part -1 of");
  timed.microbatches = 5;
  TEST_FAILS(ax_planner_stage(loss, &options, &timed, 0, &parts), AX_INVALID_ARGUMENT, "64 samples in 5 microbatches of 4 groups");
  assert_null(parts.forward);
  ax_strategy_release(&timed);
  ax_program_release(loss);
  ax_cluster_release(machine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exhaustive),     cmocka_unit_test(test_samples_alone),
      cmocka_unit_test(test_time_is_kept),   cmocka_unit_test(test_experts_in_stages),
      cmocka_unit_test(test_both_in_stages), cmocka_unit_test(test_odd_positions),
      cmocka_unit_test(test_primes),         cmocka_unit_test(test_parts_of_samples),
      cmocka_unit_test(test_more_devices),   cmocka_unit_test(test_known),
      cmocka_unit_test(test_rows),           cmocka_unit_test(test_microbatches),
      cmocka_unit_test(test_programs),       cmocka_unit_test(test_memory),
      cmocka_unit_test(test_plain),          cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
