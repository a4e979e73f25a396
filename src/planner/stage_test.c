/* Stages within which experts, sequences and parameters are cut: their programs, run, do what the step as one program does; and a
   strategy's time and memory are those of these programs. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "support/cmocka.h"
#include "support/mixture.h"
#include "support/tensor.h"

enum { LAYERS = 4, SAMPLES = 8, STAGES = 2, MOST = 64, MOST_GROUPS = 2 };
static const test_mixture small = {LAYERS, .tokens = 4, .width = 8, .hidden = 16, .experts = 2};

/* On the one it is worth to cut all that can be cut. On the other what goes from stage to stage, each on a node of its own, takes
   most of the time. */
static const char fast_text[] =
    "machine \"fast\" device flops f32 1e9 memory 1e9 launch 0\nswitch latency 1e-9 bandwidth 1e12 overhead 0\n";
static const char slow_text[] =
    "machine \"slow\" device flops f32 1e12 memory 1e11 launch 1e-6\n"
    "node devices 4 latency 1e-6 bandwidth 1e11\nnetwork latency 1e-6 bandwidth 1e7\n";

typedef struct fixture {
  test_mixture net;
  int64_t samples;
  ax_program *loss;
  ax_cluster *machine;
  ax_runtime *runtime;
  ax_optimizer optimizer;
  ax_arena arena;                                /* of all arrays */
  ax_host_array param[MIXTURE_PARAMS], batch[2]; /* of all layers, and all samples */
} fixture;

static ax_planner_options options_of(const fixture *f, int64_t devices) {
  ax_planner_options options = test_options(f->samples, devices);
  options.optimizer = &f->optimizer;
  return options;
}

/* --- Arrays --- */

static ax_host_array view_of(const ax_type *type, const void *data) {
  return (ax_host_view)(type->dtype, type->rank, type->dims, type->dtype, data,
                        (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype));
}

/* seed 0: zeros. */
static ax_host_array array_of(fixture *f, const ax_type *type, int seed) {
  const size_t count = (size_t)ax_type_elems(type);
  float *data = ax_arena_alloc(&f->arena, count * 8 + 8);
  assert_non_null(data);
  memset(data, 0, count * 8);
  for (size_t i = 0; seed > 0 && i < count; i++) data[i] = (float)((int)((size_t)seed * (i + 1) % 23) - 11) / 16;
  return view_of(type, data);
}

static size_t elems_of(const ax_host_array *a) {
  size_t count = 1;
  for (uint32_t d = 0; d < a->rank; d++) count *= (size_t)a->dims[d];
  return count;
}

/* Part `number` of so many along the first dimension; a view. */
static ax_host_array part_of(const ax_host_array *whole, int64_t number, int64_t parts) {
  const size_t bytes = elems_of(whole) / (size_t)parts * ax_dtype_bytes(whole->dtype);
  ax_host_array part = *whole;
  part.dims[0] /= parts;
  return (ax_host_view)(whole->dtype, part.rank, part.dims, whole->dtype, (char *)whole->data + (size_t)number * bytes, bytes);
}

static void run(fixture *f, ax_executable *executable, const ax_program *program, const ax_host_array *in, ax_host_array *out) {
  ax_host_array made[MOST] = {0};
  const uint32_t count = ax_program_out_count(program);
  assert_true(ax_program_in_count(program) <= MOST && count <= MOST);
  TEST_OK((ax_run_host)(executable, ax_program_in_count(program), in, count, made));
  for (uint32_t k = 0; k < count; k++) {
    out[k] = array_of(f, ax_program_out_type(program, k), 0);
    memcpy(out[k].data, made[k].data, elems_of(&out[k]) * ax_dtype_bytes(out[k].dtype));
    ax_host_array_release(&made[k]);
  }
}

static void run_once(fixture *f, ax_program *program, const ax_host_array *in, ax_host_array *out) {
  ax_executable *executable;
  TEST_OK(ax_compile(f->runtime, program, NULL, &executable));
  run(f, executable, program, in, out);
  ax_executable_release(executable);
}

/* --- Fixture --- */

static void set_up(fixture *f, const char *machine, const test_mixture *net, int64_t samples) {
  *f = (fixture){.net = *net, .samples = samples, .optimizer = ax_sgd(ax_constant_schedule(0.5))};
  TEST_OK(test_trace_mixture(net, &f->loss));
  TEST_OK(ax_cluster_parse(machine, "test", &f->machine));
  TEST_OK(ax_runtime_create(NULL, &f->runtime));
  for (uint32_t p = 0; p < MIXTURE_PARAMS; p++) f->param[p] = array_of(f, ax_program_in_type(f->loss, p), 5 + (int)p);
  const ax_type sample = AX_TYPE(AX_F32, samples, net->tokens, net->width);
  for (int b = 0; b < 2; b++) f->batch[b] = array_of(f, &sample, 9 + b);
}

static void tear_down(fixture *f) {
  ax_runtime_release(f->runtime);
  ax_cluster_release(f->machine);
  ax_program_release(f->loss);
  ax_arena_deinit(&f->arena);
}

static void time_given(const fixture *f, const char *mesh, int64_t microbatches, ax_pipeline_schedule schedule,
                       ax_planner_options *options, ax_strategy *out) {
  ax_strategy given = {.stages = STAGES, .microbatches = microbatches, .schedule = schedule};
  TEST_OK(ax_mesh_parse(mesh, &given.mesh));
  *options = options_of(f, STAGES * ax_mesh_devices(&given.mesh));
  TEST_OK(ax_planner_time(f->loss, f->machine, options, &given, out));
}

/* --- What the programs do --- */

/* The step as one program on one device: its loss and new parameters. */
static double step_at_once(fixture *f, ax_host_array *made) {
  const ax_planner_options options = options_of(f, 1);
  ax_strategy whole = {.stages = 1, .microbatches = 1};
  ax_host_array in[MOST], out[MOST];
  ax_program *step;
  TEST_OK(ax_mesh_parse("data=1", &whole.mesh));
  TEST_OK(ax_planner_program(f->loss, &options, &whole, &step));
  const uint32_t count = ax_program_in_count(step);
  for (uint32_t i = 0; i < count; i++)
    in[i] = i < MIXTURE_PARAMS ? f->param[i]
            : i + 2 >= count   ? f->batch[i + 2 - count]
                               : array_of(f, ax_program_in_type(step, i), 0);
  run_once(f, step, in, out);
  for (uint32_t p = 0; p < MIXTURE_PARAMS; p++) made[p] = out[1 + p];
  ax_program_release(step);
  return (double)*(const float *)out[0].data;
}

typedef struct stage {
  ax_stage_programs programs;
  ax_executable *forward, *backward;
  ax_host_array sums[MOST_GROUPS][MIXTURE_PARAMS], in[MOST], kept[MOST];
  uint32_t in_count;
} stage;

/* The forward pass of one part of all samples. Returns the carry that the next stage takes, or the losses. */
static ax_host_array go_forward(fixture *f, stage *s, int64_t part, int64_t parts, const ax_host_array *carry) {
  ax_host_array out[MOST];
  s->in_count = 0;
  for (uint32_t p = 0; p < s->programs.param_count; p++)
    s->in[s->in_count++] = part_of(&f->param[s->programs.params[p]], s->programs.first_layer / s->programs.layers, STAGES);
  for (int b = 0; b < 2; b++) s->in[s->in_count++] = part_of(&f->batch[b], part, parts);
  if (carry != NULL) s->in[s->in_count++] = *carry;
  run(f, s->forward, s->programs.forward, s->in, out);
  memcpy(s->kept, out + 1, s->programs.kept_count * sizeof out[0]);
  return out[0];
}

/* Adds to the sums of that group. cotangent NULL: of the last stage. Returns the cotangent of what the stage took. */
static ax_host_array go_back(fixture *f, stage *s, int64_t group, const ax_host_array *cotangent) {
  ax_host_array in[MOST], out[MOST] = {{0}};
  uint32_t count = s->in_count;
  memcpy(in, s->in, count * sizeof in[0]);
  for (uint32_t k = 0; k < s->programs.kept_count; k++) in[count++] = s->kept[k];
  if (cotangent != NULL) in[count++] = *cotangent;
  for (uint32_t p = 0; p < s->programs.param_count; p++) in[count++] = s->sums[group][p];
  assert_int_equal(count, ax_program_in_count(s->programs.backward));
  run(f, s->backward, s->programs.backward, in, out);
  memcpy(s->sums[group], out, s->programs.param_count * sizeof out[0]);
  return out[s->programs.param_count];
}

/* New parameters of the stage, at their place in `made`. */
static void update(fixture *f, stage *s, int64_t groups, ax_host_array *made) {
  ax_host_array in[MOST], out[MOST];
  const uint32_t params = s->programs.param_count, count = ax_program_in_count(s->programs.update);
  for (uint32_t i = 0; i < count; i++) {
    in[i] = i < params ? s->in[i] : array_of(f, ax_program_in_type(s->programs.update, i), 0);
    for (int64_t g = 0; i >= count - params && g < groups; g++) {
      const ax_host_array *sum = &s->sums[g][i - (count - params)], to = part_of(&in[i], g, groups);
      memcpy(to.data, sum->data, elems_of(sum) * sizeof(float));
    }
  }
  run_once(f, s->programs.update, in, out);
  for (uint32_t p = 0; p < params; p++) {
    const ax_host_array to = part_of(&made[s->programs.params[p]], s->programs.first_layer / s->programs.layers, STAGES);
    memcpy(to.data, out[p].data, elems_of(&out[p]) * sizeof(float));
  }
}

/* -> the loss */
static double step_in_stages(fixture *f, const ax_planner_options *options, const ax_strategy *strategy, int64_t groups,
                             ax_host_array *made) {
  static stage stages[STAGES];
  const int64_t parts = groups * strategy->microbatches;
  double sum = 0;
  for (int k = 0; k < STAGES; k++) {
    stage *s = &stages[k];
    TEST_OK(ax_planner_stage(f->loss, options, strategy, k, &s->programs));
    TEST_OK(ax_compile(f->runtime, s->programs.forward, NULL, &s->forward));
    TEST_OK(ax_compile(f->runtime, s->programs.backward, NULL, &s->backward));
    for (int64_t g = 0; g < groups; g++)
      for (uint32_t p = 0; p < s->programs.param_count; p++)
        s->sums[g][p] = array_of(f, ax_program_in_type(s->programs.forward, p), 0);
  }
  for (int64_t part = 0; part < parts; part++) {
    const ax_host_array carry = go_forward(f, &stages[0], part, parts, NULL),
                        losses = go_forward(f, &stages[1], part, parts, &carry);
    for (size_t i = 0; i < elems_of(&losses); i++) sum += (double)((const float *)losses.data)[i];
    const ax_host_array cotangent = go_back(f, &stages[1], part / strategy->microbatches, NULL);
    (void)go_back(f, &stages[0], part / strategy->microbatches, &cotangent);
  }
  for (int k = 0; k < STAGES; k++) {
    update(f, &stages[k], groups, made);
    ax_executable_release(stages[k].forward);
    ax_executable_release(stages[k].backward);
    ax_stage_programs_release(&stages[k].programs);
  }
  return sum / (double)f->samples;
}

/* in_specs: part of what the strategy says. */
static void check_step(const char *mesh, int64_t groups, int64_t microbatches, const char *in_specs) {
  fixture f;
  ax_planner_options options;
  ax_strategy strategy;
  ax_host_array expected[MIXTURE_PARAMS], made[MIXTURE_PARAMS];
  set_up(&f, fast_text, &small, SAMPLES);
  time_given(&f, mesh, microbatches, AX_PIPELINE_1F1B, &options, &strategy);
  if (strstr(strategy.in_specs, in_specs) == NULL) fail_msg("%s: %s has no %s", mesh, strategy.in_specs, in_specs);
  const double at_once = step_at_once(&f, expected);
  for (uint32_t p = 0; p < MIXTURE_PARAMS; p++) made[p] = array_of(&f, ax_program_in_type(f.loss, p), 0);
  TEST_NEAR(step_in_stages(&f, &options, &strategy, groups, made), at_once, 1e-5);
  for (uint32_t p = 0; p < MIXTURE_PARAMS; p++) {
    float step = 0, difference = 0;
    for (size_t i = 0; i < elems_of(&made[p]); i++) {
      const float was = ((const float *)f.param[p].data)[i], is = ((const float *)made[p].data)[i],
                  should = ((const float *)expected[p].data)[i];
      step = fmaxf(step, fabsf(should - was));
      difference = fmaxf(difference, fabsf(should - is));
    }
    if (!(step > 0 && difference < 1e-4f * step))
      fail_msg("%s: parameter %u differs by %g, after a step of %g", mesh, p, (double)difference, (double)step);
  }
  ax_strategy_release(&strategy);
  tear_down(&f);
}

static void test_steps(void **state) {
  (void)state;
  check_step("data=1,model=2", 1, 4, AX_HOSTILE ? "model" : "pipe,_,_,model"); /* plans that are hostile make another cut worth it */
  check_step("data=1,expert=2", 1, 4, "pipe,expert; pipe,expert; expert; expert");
  check_step("data=2,expert=2", 2, 2, "pipe,expert; pipe,expert; data+expert; data+expert");
  check_step("data=1,expert=2,model=2", 1, 2, "model");
  check_step("data=1,sequence=4", 1, 8, "; _,sequence; _,sequence");
  check_step("data=2,sequence=2", 2, 2, "; data,sequence; data,sequence");
  check_step("data=1,expert=2,sequence=2", 1, 2, "; expert,sequence; expert,sequence");
  check_step("data=2,expert=2,sequence=2,model=2", 2, 1, "; data+expert,sequence; data+expert,sequence");
}

/* --- What they take --- */

typedef struct taken {
  double seconds;
  ax_memory_bytes memory; /* of a device */
} taken;

static double all_bytes(const taken *t) {
  return (double)(t->memory.arguments + t->memory.results + t->memory.kept + t->memory.scratch + t->memory.constants);
}

static taken take(const fixture *f, ax_program *program, ax_args donated) {
  ax_lowered *lowered;
  ax_simulation simulation;
  ax_memory memory;
  TEST_OK(ax_program_lower(program, &(ax_compile_options){.donate = donated, .late_sums = true}, &lowered));
  TEST_OK(ax_simulate(lowered, f->machine, NULL, &simulation));
  TEST_OK(ax_lowered_memory(f->runtime, lowered, &memory));
  const taken made = {simulation.seconds, memory.device};
  ax_simulation_release(&simulation);
  ax_lowered_release(lowered);
  return made;
}

enum { FORWARD, BACKWARD, UPDATE, PASSES };

static void take_stage(const fixture *f, const ax_planner_options *options, const ax_strategy *strategy, int64_t k, taken *out) {
  ax_stage_programs s;
  TEST_OK(ax_planner_stage(f->loss, options, strategy, k, &s));
  const uint32_t count = ax_program_in_count(s.backward);
  out[FORWARD] = take(f, s.forward, AX_FIRST(0));
  out[BACKWARD] = take(f, s.backward, AX_RANGE(count - s.param_count, s.param_count));
  out[UPDATE] = take(f, s.update, AX_FIRST(s.param_count + s.state_count));
  ax_stage_programs_release(&s);
}

/* One forward, one backward, on two stages. */
static double schedule(taken stage[STAGES][PASSES], int64_t microbatches, double message) {
  double first = stage[0][FORWARD].seconds, second = 0,
         ended = first; /* when each is free; when the first stage's last forward pass ended */
  for (int64_t m = 0; m < microbatches; m++) {
    const double given = ended;
    if (m + 1 < microbatches) ended = first += stage[0][FORWARD].seconds;
    second = fmax(second, given + message) + stage[1][FORWARD].seconds + stage[1][BACKWARD].seconds;
    first = fmax(first, second + message) + stage[0][BACKWARD].seconds;
  }
  return fmax(first, second) + fmax(stage[0][UPDATE].seconds, stage[1][UPDATE].seconds);
}

/* Bytes of a device that holds the parts of so many microbatches at once. own: of its parameters, in bytes of a device. */
static double held(const taken *stage, double in_flight, double sums, double parameters) {
  const double kept = (double)stage[FORWARD].memory.results, state = (double)stage[UPDATE].memory.arguments - parameters - sums;
  const double before = state + (in_flight - 1) * kept; /* besides the pass */
  return fmax(fmax(before + sums + all_bytes(&stage[FORWARD]), before + all_bytes(&stage[BACKWARD])), all_bytes(&stage[UPDATE]));
}

/* bytes: of a microbatch's carry on one device, which is what goes from stage to stage. parameters and sums: of a device. */
static void check_taken(const char *mesh, int64_t microbatches, double bytes, double parameters, double sums) {
  static const test_mixture net = {LAYERS, .tokens = 16, .width = 64, .hidden = 256, .experts = 4};
  fixture f;
  ax_planner_options options;
  ax_strategy strategy;
  taken stage[STAGES][PASSES];
  set_up(&f, slow_text, &net, 32);
  f.optimizer = ax_adam(ax_constant_schedule(0.5));
  time_given(&f, mesh, microbatches, AX_PIPELINE_1F1B, &options, &strategy);
  for (int k = 0; k < STAGES; k++) take_stage(&f, &options, &strategy, k, stage[k]);
  const double seconds = schedule(stage, microbatches, 1e-6 + bytes / 1e7);
  const double memory = fmax(held(stage[0], 2, sums, parameters), held(stage[1], 1, sums, parameters));
  TEST_NEAR(strategy.memory.parameters, parameters, 1e-9);
  TEST_NEAR(strategy.seconds, seconds, 0.01);
  TEST_NEAR(strategy.memory.total, memory, 0.01);
  ax_strategy_release(&strategy);
  tear_down(&f);
}

static void test_taken(void **state) {
  (void)state;
  const double places = 2 * 64 * 4 * 2 * 4, experts = 2.0 * 2 * 4 * 64 * 256 * 4,
               carry = 16 * 64 * 4; /* of the layers of a stage */
  check_taken("data=1,expert=4", 4, 2 * carry, places + experts / 4, places / 4 + experts / 4);
  check_taken("data=2,expert=2", 4, 2 * carry, places + experts / 2, places / 2 + experts / 2);
  check_taken("data=1,expert=2,sequence=2", 4, carry, places / 2 + experts / 4, places / 4 + experts / 4);
  check_taken("data=1,sequence=4", 8, carry, (places + experts) / 4, (places + experts) / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_taken)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
