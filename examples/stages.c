/* One step of training in a pipeline: the planner's programs of four stages, each over two devices, and eight microbatches that go
   through them one behind the other, forth and back. It gives the loss and the new parameters of the step as one program.

   Here all stages run in this process, one pass after the other. Where each has devices of its own, passes of different stages run at
   the same time, in the order of the strategy's schedule, and carries and cotangents are what stages send one another. */
#include <axle/axle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 8, WIDTH = 16, HIDDEN = 64, SAMPLES = 16, STAGES = 4, MICROBATCHES = 8, PARAMS = 2, BATCH = 2, MOST = 16 };
enum { W1 = LAYERS * WIDTH * HIDDEN, ROWS = SAMPLES / MICROBATCHES * WIDTH };

static float params[PARAMS][W1], batch[BATCH][SAMPLES * WIDTH];

/* x, w1, w2 -> x: one layer */
static AX_BODY(layer) { out[0] = ax_add(in[0], ax_matmul(ax_tanh(ax_matmul(in[0], in[1])), in[2])); }

/* The loss of one sample. in: w1 and w2 of all layers; x, y. */
static AX_BODY(loss) {
  ax_value made;
  ax_scan(AX_FN(layer, 3, 1), 1, LAYERS, false, AX_VALUES(in[2], in[0], in[1]), AX_LIST(1, &made));
  out[0] = ax_reduce_mean(ax_square(ax_sub(made, in[3])), AX_ALL_DIMS, false);
}

typedef struct stage {
  ax_stage_programs programs;
  ax_executable *forward, *backward;
  ax_array *params[PARAMS], *sums[PARAMS], *kept[MICROBATCHES][MOST], *taken[MICROBATCHES]; /* taken: carries */
} stage;

/* This stage's layers of parameter p, in `params`. */
static const float *part_of(const stage *s, uint32_t p) {
  return params[s->programs.params[p]] + s->programs.first_layer * (W1 / LAYERS);
}
static size_t bytes_of(const stage *s) { return (size_t)s->programs.layers * (W1 / LAYERS) * sizeof(float); }

static ax_array *put(ax_executable *executable, uint32_t input, const float *data, size_t bytes) {
  ax_array *made;
  ax_must((ax_executable_put)(executable, input, AX_F32, data, bytes, &made));
  return made;
}

static void prepare(stage *s, ax_runtime *runtime) {
  if (s->programs.carry_count != 1 || s->programs.kept_count >= MOST) { /* another net: there is no room */
    fprintf(stderr, "stages: %u carries and %u values that are kept\n", s->programs.carry_count, s->programs.kept_count);
    exit(1);
  }
  ax_must(ax_compile(runtime, s->programs.forward, NULL, &s->forward));
  float *zeros = calloc(1, bytes_of(s));
  for (uint32_t p = 0; p < PARAMS; p++) {
    s->params[p] = put(s->forward, p, part_of(s, p), bytes_of(s));
    s->sums[p] = put(s->forward, p, zeros, bytes_of(s));
  }
  free(zeros);
}

/* Parameters, samples and carries of microbatch m. */
static uint32_t give(stage *s, int m, ax_array **in) {
  uint32_t count = 0;
  for (uint32_t p = 0; p < PARAMS; p++) in[count++] = ax_array_retain(s->params[p]);
  for (uint32_t b = 0; b < BATCH; b++, count++) in[count] = put(s->forward, count, batch[b] + m * ROWS, ROWS * sizeof(float));
  if (s->taken[m] != NULL) in[count++] = ax_array_retain(s->taken[m]);
  return count;
}

static void release(uint32_t count, ax_array **arrays) {
  for (uint32_t i = 0; i < count; i++) ax_array_release(arrays[i]);
}

/* Returns the carry, or the losses of the samples. */
static ax_array *forward(stage *s, int m) {
  ax_array *in[MOST], *out[MOST];
  const uint32_t count = give(s, m, in), kept = s->programs.kept_count;
  ax_must((ax_run)(s->forward, count, in, 1 + kept, out));
  for (uint32_t k = 0; k < kept; k++) s->kept[m][k] = out[1 + k];
  release(count, in);
  return out[0];
}

/* Takes the cotangent of the carry that the stage gave, and returns that of the one that it took; NULL: it gave, or took, none. */
static ax_array *backward(stage *s, int m, ax_array *cotangent, ax_runtime *runtime) {
  ax_array *in[2 * MOST], *out[MOST] = {NULL};
  uint32_t count = give(s, m, in);
  for (uint32_t k = 0; k < s->programs.kept_count; k++) in[count++] = s->kept[m][k];
  if (cotangent != NULL) in[count++] = cotangent;
  for (uint32_t p = 0; p < PARAMS; p++) in[count++] = s->sums[p];
  if (s->backward == NULL) /* what was kept is taken as it lies */
    ax_must(ax_compile(runtime, s->programs.backward, &(ax_compile_options){.like = {count, in}}, &s->backward));
  ax_must((ax_run)(s->backward, count, in, PARAMS + (s->taken[m] != NULL), out));
  for (uint32_t p = 0; p < PARAMS; p++) s->sums[p] = out[p];
  release(count, in);
  return out[PARAMS];
}

/* The new parameters of the stage, at their place in `made`. */
static void update(stage *s, ax_runtime *runtime, float (*made)[W1]) {
  ax_executable *executable;
  ax_array *in[MOST], *out[MOST];
  float *sum = malloc(bytes_of(s));
  uint32_t count = 0;
  ax_must(ax_compile(runtime, s->programs.update, NULL, &executable));
  for (uint32_t p = 0; p < PARAMS; p++) in[count++] = ax_array_retain(s->params[p]);
  for (uint32_t k = 0; k < s->programs.state_count; k++) { /* a new one is zeros */
    static const char zeros[sizeof(float) * W1];
    const ax_type *type = ax_program_in_type(s->programs.update, count);
    ax_must((ax_executable_put)(executable, count, type->dtype, zeros, sizeof zeros, &in[count]));
    count++;
  }
  for (uint32_t p = 0; p < PARAMS; p++, count++) { /* of one group of devices */
    ax_must((ax_array_read)(s->sums[p], AX_F32, sum, bytes_of(s)));
    in[count] = put(executable, count, sum, bytes_of(s));
  }
  ax_must((ax_run)(executable, count, in, PARAMS + s->programs.state_count, out));
  for (uint32_t p = 0; p < PARAMS; p++)
    ax_must((ax_array_read)(out[p], AX_F32, made[s->programs.params[p]] + (part_of(s, p) - params[s->programs.params[p]]), bytes_of(s)));
  release(count, in);
  release(PARAMS + s->programs.state_count, out);
  ax_executable_release(executable);
  free(sum);
}

static void end(stage *s) {
  release(PARAMS, s->params);
  release(PARAMS, s->sums);
  for (int m = 0; m < MICROBATCHES; m++) ax_array_release(s->taken[m]);
  ax_executable_release(s->forward);
  ax_executable_release(s->backward);
  ax_stage_programs_release(&s->programs);
}

/* -> the loss */
static double train_in_stages(ax_program *program, const ax_planner_options *options, const ax_strategy *strategy, ax_runtime *runtime,
                              float (*made)[W1]) {
  static stage stages[STAGES];
  double sum = 0;
  for (int k = 0; k < STAGES; k++) {
    ax_must(ax_planner_stage(program, options, strategy, k, &stages[k].programs));
    prepare(&stages[k], runtime);
  }
  for (int m = 0; m < MICROBATCHES; m++) {
    ax_array *given = NULL;
    float losses[SAMPLES / MICROBATCHES];
    for (int k = 0; k < STAGES; k++) {
      stages[k].taken[m] = given;
      given = forward(&stages[k], m);
    }
    ax_must((ax_array_read)(given, AX_F32, losses, sizeof losses));
    for (int i = 0; i < SAMPLES / MICROBATCHES; i++) sum += (double)losses[i];
    ax_array_release(given);
  }
  for (int m = 0; m < MICROBATCHES; m++) {
    ax_array *cotangent = NULL;
    for (int k = STAGES; k-- > 0;) cotangent = backward(&stages[k], m, cotangent, runtime);
  }
  for (int k = 0; k < STAGES; k++) update(&stages[k], runtime, made);
  for (int k = 0; k < STAGES; k++) end(&stages[k]);
  return sum / SAMPLES;
}

/* The same step as one program. */
static double train_whole(ax_program *program, const ax_planner_options *options, ax_runtime *runtime, float (*made)[W1]) {
  ax_strategy whole = {.stages = 1, .microbatches = 1};
  ax_program *step;
  ax_executable *executable;
  ax_must(ax_mesh_parse("data=1", &whole.mesh));
  ax_must(ax_planner_program(program, options, &whole, &step));
  ax_must(ax_compile(runtime, step, NULL, &executable));
  const uint32_t count = ax_program_in_count(step), results = ax_program_out_count(step);
  ax_host_array in[MOST] = {0}, out[MOST] = {0};
  static const char zeros[sizeof(float) * W1];
  for (uint32_t i = 0; i < count; i++) {
    const ax_type *type = ax_program_in_type(step, i);
    const void *data = i < PARAMS ? (const void *)params[i] : i >= count - BATCH ? (const void *)batch[i - (count - BATCH)] : zeros;
    const size_t bytes = i < count - BATCH ? sizeof zeros : sizeof batch[0];
    in[i] = (ax_host_view)(type->dtype, type->rank, type->dims, type->dtype, data, bytes);
  }
  ax_must((ax_run_host)(executable, count, in, results, out));
  const double loss = (double)*(const float *)out[0].data;
  for (uint32_t p = 0; p < PARAMS; p++) memcpy(made[p], out[1 + p].data, sizeof made[p]);
  for (uint32_t k = 0; k < results; k++) ax_host_array_release(&out[k]);
  ax_executable_release(executable);
  ax_program_release(step);
  return loss;
}

int main(void) {
  const ax_type types[] = {AX_TYPE(AX_F32, LAYERS, WIDTH, HIDDEN), AX_TYPE(AX_F32, LAYERS, HIDDEN, WIDTH), AX_TYPE(AX_F32, WIDTH),
                           AX_TYPE(AX_F32, WIDTH)};
  static const uint32_t sample[] = {2, 3}; /* x and y; the other inputs are parameters */
  const ax_optimizer optimizer = ax_sgd(ax_constant_schedule(0.5));
  const ax_planner_options options = {.devices = 2 * STAGES, .train = true, .samples = SAMPLES, .batch = {.list = sample, .count = 2}, .optimizer = &optimizer};
  ax_strategy asked = {.stages = STAGES, .microbatches = MICROBATCHES, .schedule = AX_PIPELINE_1F1B}, strategy;
  ax_program *program;
  ax_cluster *machine;
  ax_runtime *runtime;
  static float staged[PARAMS][W1], whole[PARAMS][W1];
  for (int i = 0; i < PARAMS * W1; i++) params[i / W1][i % W1] = (float)(7 * i % 19 - 9) / 40;
  for (int i = 0; i < BATCH * SAMPLES * WIDTH; i++) batch[i / (SAMPLES * WIDTH)][i % (SAMPLES * WIDTH)] = (float)(5 * i % 13 - 6) / 6;
  ax_must(ax_mesh_parse("data=1,model=2", &asked.mesh));
  ax_must(ax_trace(AX_FN(loss, 4, 1), types, &program));
  ax_must(ax_cluster_read("tpu-v5p", &machine));
  ax_must(ax_planner_time(program, machine, &options, &asked, &strategy)); /* or one that ax_planner_search found */
  ax_must(ax_runtime_create(NULL, &runtime));
  const double in_stages = train_in_stages(program, &options, &strategy, runtime, staged);
  const double at_once = train_whole(program, &options, runtime, whole);
  float difference = 0, step = 0;
  for (int i = 0; i < PARAMS * W1; i++) {
    difference = fmaxf(difference, fabsf(staged[i / W1][i % W1] - whole[i / W1][i % W1]));
    step = fmaxf(step, fabsf(params[i / W1][i % W1] - whole[i / W1][i % W1]));
  }
  const bool same = fabs(in_stages - at_once) < 1e-5 * at_once && difference < 1e-5f * step;
  printf("loss %.4f in stages, %.4f at once; parameters %s\n", in_stages, at_once, same ? "agree" : "differ");
  ax_strategy_release(&strategy);
  ax_cluster_release(machine);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return same ? 0 : 1;
}
