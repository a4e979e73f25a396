/* Training steps, and stages of pipelines, beside the loss that they are made of. */
#include "planner/step.h"

#include <stdio.h>
#include <string.h>

#include "support/layered.h"
#include "planner/pieces.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { LAYERS = 4, SAMPLES = 8 };

static ax_type batched(ax_type type, int64_t samples) {
  memmove(type.dims + 1, type.dims, type.rank * sizeof type.dims[0]);
  type.dims[0] = samples;
  type.rank++;
  return type;
}

static ax_type type_of(const ax_tensor *tensor) { return ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims)); }

static ax_tensor *filled(ax_type type, uint64_t seed) {
  ax_tensor *made = test_tensor(type, NULL);
  for (int64_t i = 0; i < test_elems(made); i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    test_set(made, i, (double)(int64_t)(seed >> 40) / (double)(1 << 23) - 1);
  }
  return made;
}

typedef struct fixture {
  ax_program *loss;
  ax_model model;
  ax_tensor *params[TEST_PARAMS], *batch[2];
} fixture;

/* As test_loss, but each layer also has its number: what a loop slices besides parameters. */
static AX_BODY(numbered_layer) {
  (void)context;
  out[0] =
      ax_add(in[0], ax_mul(ax_sin(ax_convert_element_type(in[3], AX_F64)), ax_matmul(ax_tanh(ax_matmul(in[0], in[1])), in[2])));
}

static AX_BODY(numbered_loss) {
  (void)context;
  ax_value h;
  ax_scan(AX_FN(numbered_layer, 4, 1), 1, LAYERS, false,
          AX_VALUES(ax_sin(in[3]), in[0], in[1], ax_iota(AX_S32, AX_DIMS(LAYERS), 0)), AX_LIST(1, &h));
  out[0] = ax_reduce_mean(ax_square(ax_sub(ax_mul(h, in[2]), in[4])), AX_ALL_DIMS, false);
}

/* Trained by gradients as they are, so that a step's difference is the gradient. */
static void set_up_of(fixture *f, ax_program *loss) {
  static ax_optimizer plain;
  plain = ax_sgd(ax_constant_schedule(1));
  ax_planner_options options = test_options(SAMPLES, 1);
  options.optimizer = &plain;
  f->loss = loss;
  TEST_OK(ax_model_make(f->loss, &options, &f->model));
  for (uint32_t p = 0; p < TEST_PARAMS; p++) f->params[p] = filled(f->loss->types[p], p + 1);
  for (uint32_t b = 0; b < 2; b++) f->batch[b] = filled(batched(f->loss->types[3 + b], SAMPLES), b + 7);
}

static void set_up(fixture *f) {
  ax_program *loss;
  TEST_OK(test_trace_loss(AX_F64, LAYERS, TEST_WIDTH, TEST_HIDDEN, &loss));
  set_up_of(f, loss);
}

static void set_up_numbered(fixture *f) {
  ax_program *like, *loss;
  TEST_OK(test_trace_loss(AX_F64, LAYERS, TEST_WIDTH, TEST_HIDDEN, &like));
  TEST_OK(ax_trace(AX_FN(numbered_loss, TEST_INPUTS, 1), AX_LIST(TEST_INPUTS, like->types), &loss));
  ax_program_release(like);
  set_up_of(f, loss);
}

static void tear_down(fixture *f) {
  test_release(f->params, TEST_PARAMS);
  test_release(f->batch, 2);
  ax_model_deinit(&f->model);
  ax_program_release(f->loss);
}

/* The part of a tensor from its first dimension's index `from` on. */
static ax_tensor *slice(const ax_tensor *whole, ax_type type, int64_t from) {
  ax_tensor *made = test_tensor(type, NULL);
  const int64_t offset = from * (test_elems(whole) / whole->dims[0]);
  for (int64_t i = 0; i < test_elems(made); i++) test_set(made, i, test_get(whole, offset + i));
  return made;
}

/* The mean of the loss, sample by sample. */
static double mean_loss(const fixture *f) {
  double sum = 0;
  for (int64_t s = 0; s < SAMPLES; s++) {
    ax_tensor *in[TEST_INPUTS] = {f->params[0], f->params[1], f->params[2], slice(f->batch[0], f->loss->types[3], s),
                                  slice(f->batch[1], f->loss->types[4], s)};
    ax_tensor *out;
    test_run(f->loss, in, &out);
    sum += test_get(out, 0);
    test_release(in + 3, 2);
    test_release(&out, 1);
  }
  return sum / SAMPLES;
}

/* Runs the step; gradients: TEST_PARAMS tensors. */
static double run_step(const fixture *f, int64_t microbatches, ax_checkpoint_policy saved, ax_tensor **gradients) {
  ax_program *step;
  TEST_OK(ax_model_step(&f->model, microbatches, saved, &step));
  assert_int_equal(step->in_count, TEST_PARAMS + f->model.state_count + 2);
  ax_tensor *in[16], *out[16];
  for (uint32_t p = 0; p < TEST_PARAMS; p++) in[p] = f->params[p];
  for (uint32_t k = 0; k < f->model.state_count; k++) in[TEST_PARAMS + k] = test_tensor(*ax_treedef_type(f->model.state_def, k), NULL);
  for (uint32_t k = 0; k < f->model.state_count; k++)
    for (int64_t i = 0; i < test_elems(in[TEST_PARAMS + k]); i++) test_set(in[TEST_PARAMS + k], i, 0);
  for (uint32_t b = 0; b < 2; b++) in[TEST_PARAMS + f->model.state_count + b] = f->batch[b];
  test_run(step, in, out);
  const double loss = test_get(out[0], 0);
  for (uint32_t p = 0; p < TEST_PARAMS; p++) {
    gradients[p] = test_tensor(type_of(f->params[p]), NULL);
    for (int64_t i = 0; i < test_elems(gradients[p]); i++) test_set(gradients[p], i, test_get(f->params[p], i) - test_get(out[1 + p], i));
  }
  test_release(in + TEST_PARAMS, f->model.state_count);
  test_release(out, step->out_count);
  ax_program_release(step);
  return loss;
}

static void test_model(void **state) {
  (void)state;
  fixture f;
  set_up(&f);
  assert_int_equal(f.model.layers, LAYERS);
  assert_true(f.model.layered[0] && f.model.layered[1] && !f.model.layered[2]);
  assert_int_equal(f.model.param_count, TEST_PARAMS);
  assert_true(ax_pieces_possible(&f.model));
  tear_down(&f);
}

/* tokens[E, T, D], w[E, D, D] -> as many tokens. As programs of JAX have it: w is given one more dimension, and loses it again. */
static AX_BODY(experts) {
  (void)context;
  ax_value w = ax_reshape(ax_reshape(in[1], AX_DIMS(1, 4, 8, 8)), AX_DIMS(4, 8, 8));
  out[0] = ax_tanh(ax_dot_general(in[0], w, AX_DIMS(2), AX_DIMS(1), AX_DIMS(0), AX_DIMS(0)));
}

static AX_BODY(layer_of_experts) {
  (void)context;
  ax_closed_call(AX_FN(experts, 2, 1), AX_LIST(2, in), AX_LIST(1, out));
}

static AX_BODY(mixture) { /* w[L, E, D, D], x[E, T, D] */
  (void)context;
  ax_value made;
  ax_scan(AX_FN(layer_of_experts, 2, 1), 1, LAYERS, false, AX_VALUES(in[1], in[0]), AX_LIST(1, &made));
  out[0] = ax_reduce_mean(ax_square(made), AX_ALL_DIMS, false);
}

/* w[1, E, D, D] is no stack of layers, though a loop slices what it is reshaped to; nor are its experts what is added for a product. */
static AX_BODY(one_at_a_time) {
  (void)context;
  ax_value tokens = ax_reshape(in[0], AX_DIMS(1, 8)), made;
  made = ax_dot_general(ax_reshape(tokens, AX_DIMS(1, 1, 8)), ax_reshape(in[1], AX_DIMS(1, 8, 8)), AX_DIMS(2), AX_DIMS(1), AX_DIMS(0), AX_DIMS(0));
  out[0] = ax_reshape(made, AX_DIMS(8));
}

static AX_BODY(reshaped_first) { /* w, x[D] */
  (void)context;
  ax_value made;
  ax_scan(AX_FN(one_at_a_time, 2, 1), 1, 4, false, AX_VALUES(in[1], ax_reshape(in[0], AX_DIMS(4, 8, 8))), AX_LIST(1, &made));
  out[0] = ax_reduce_mean(ax_square(made), AX_ALL_DIMS, false);
}

static void test_reshaped_parameters(void **state) {
  (void)state;
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(1, 4, 8, 8)), ax_array_type(AX_F32, AX_DIMS(8))};
  ax_planner_options options = test_options(SAMPLES, 1);
  ax_program *loss;
  ax_model model;
  TEST_OK(ax_trace(AX_FN(reshaped_first, 2, 1), AX_LIST(2, types), &loss));
  options.batch = (ax_args){.list = (const uint32_t[]){1}, .count = 1};
  TEST_OK(ax_model_make(loss, &options, &model));
  assert_false(model.layered[0]);
  assert_int_equal(ax_model_param(&model, 0, model.layers).dims[0], 1);
  ax_model_deinit(&model);
  ax_program_release(loss);
}

static void test_experts_in_calls(void **state) {
  (void)state;
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(LAYERS, 4, 8, 8)), ax_array_type(AX_F32, AX_DIMS(4, 2, 8))};
  ax_planner_options options = test_options(SAMPLES, 1);
  ax_program *loss;
  ax_model model;
  TEST_OK(ax_trace(AX_FN(mixture, 2, 1), AX_LIST(2, types), &loss));
  options.batch = (ax_args){.list = (const uint32_t[]){1}, .count = 1};
  TEST_OK(ax_model_make(loss, &options, &model));
  assert_true(model.layered[0]);
  assert_int_equal(model.experts[0], 1);
  ax_model_deinit(&model);
  ax_program_release(loss);
}

/* However many microbatches there are and whatever is kept, a step does the same. */
static void test_steps(void **state) {
  (void)state;
  fixture f;
  set_up(&f);
  ax_tensor *first[TEST_PARAMS];
  const double expected = mean_loss(&f), loss = run_step(&f, 1, AX_SAVE_EVERYTHING, first);
  TEST_NEAR(loss, expected, 1e-13);
  for (int64_t microbatches = 1; microbatches <= SAMPLES; microbatches *= 2)
    for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT; saved++) {
      ax_tensor *gradients[TEST_PARAMS];
      TEST_NEAR(run_step(&f, microbatches, (ax_checkpoint_policy)saved, gradients), expected, 1e-13);
      for (uint32_t p = 0; p < TEST_PARAMS; p++) TEST_TENSORS_NEAR(gradients[p], first[p], 1e-12);
      test_release(gradients, TEST_PARAMS);
    }
  /* The gradient itself, by differences. */
  for (uint32_t p = 0; p < TEST_PARAMS; p++)
    for (int64_t i = 0; i < test_elems(f.params[p]); i += 7) {
      const double x = test_get(f.params[p], i), h = 1e-5;
      test_set(f.params[p], i, x + h);
      const double above = mean_loss(&f);
      test_set(f.params[p], i, x - h);
      const double below = mean_loss(&f);
      test_set(f.params[p], i, x);
      TEST_NEAR(test_get(first[p], i), (above - below) / (2 * h), 1e-7);
    }
  test_release(first, TEST_PARAMS);
  tear_down(&f);
}

/* --- Pieces: all stages, one after the other, give the loss and its gradients --- */

typedef struct stage {
  ax_loss_piece piece;
  uint32_t kept_count;
  ax_tensor *params[TEST_PARAMS], *carry_in, *carry_out, *kept[64];
} stage;

static ax_tensor *zeros(ax_type type) {
  ax_tensor *made = test_tensor(type, NULL);
  for (int64_t i = 0; i < test_elems(made); i++) test_set(made, i, 0);
  return made;
}

static uint32_t give_piece(const fixture *f, const stage *s, ax_tensor **in) {
  uint32_t count = 0;
  for (uint32_t p = 0; p < TEST_PARAMS; p++)
    if (s->piece.used[p]) in[count++] = s->params[p];
  for (uint32_t b = 0; b < 2; b++) in[count++] = f->batch[b];
  if (ax_piece_taken(&s->piece) > 0) in[count++] = s->carry_in;
  return count;
}

static void run_forward(const fixture *f, stage *s, ax_tensor *carry_in) {
  ax_program *forward;
  ax_tensor *in[6], *out[64];
  s->carry_in = carry_in;
  TEST_OK(ax_piece_program(&s->piece, AX_PASS_FORWARD, &forward));
  assert_int_equal(give_piece(f, s, in), forward->in_count);
  test_run(forward, in, out);
  s->carry_out = out[0];
  s->kept_count = forward->out_count - 1;
  assert_int_equal(s->kept_count, ax_piece_kept(&s->piece));
  for (uint32_t k = 0; k < s->kept_count; k++) s->kept[k] = out[1 + k];
  ax_program_release(forward);
}

/* Adds the gradients of the stage's parameters to `sums`, and gives the cotangent of what it was given. */
static ax_tensor *run_backward(const fixture *f, const stage *s, ax_tensor *cotangent, ax_tensor **sums, int64_t first_layer) {
  ax_program *backward;
  ax_tensor *in[96], *out[16];
  uint32_t count = give_piece(f, s, in), made = 0;
  TEST_OK(ax_piece_program(&s->piece, AX_PASS_BACKWARD, &backward));
  for (uint32_t k = 0; k < s->kept_count; k++) in[count++] = s->kept[k];
  if (ax_piece_cotangents(&s->piece) > 0) in[count++] = cotangent;
  const uint32_t first = count;
  for (uint32_t p = 0; p < TEST_PARAMS; p++)
    if (s->piece.used[p]) in[count++] = zeros(type_of(s->params[p]));
  assert_int_equal(count, backward->in_count);
  test_run(backward, in, out);
  for (uint32_t p = 0; p < TEST_PARAMS; p++) {
    if (!s->piece.used[p]) continue;
    const int64_t offset = f->model.layered[p] ? first_layer * test_elems(out[made]) / s->piece.options.layers : 0;
    for (int64_t i = 0; i < test_elems(out[made]); i++)
      test_set(sums[p], offset + i, test_get(sums[p], offset + i) + test_get(out[made], i));
    made++;
  }
  test_release(out, made);
  test_release(in + first, count - first);
  ax_tensor *given = ax_piece_taken(&s->piece) > 0 ? out[made] : NULL;
  ax_program_release(backward);
  return given;
}

static void check_stages(const fixture *f, int64_t stages, ax_checkpoint_policy saved) {
  stage list[LAYERS];
  const int64_t layers = LAYERS / stages;
  ax_tensor *sums[TEST_PARAMS], *gradients[TEST_PARAMS], *cotangent = NULL;
  const double expected = run_step(f, 1, AX_SAVE_EVERYTHING, gradients);
  for (int64_t n = 0; n < stages; n++) {
    stage *s = &list[n];
    const ax_stage_piece number = n == 0 ? AX_PIECE_FIRST : n == stages - 1 ? AX_PIECE_LAST : AX_PIECE_MIDDLE;
    TEST_OK(ax_piece_make(&f->model, &(ax_piece_options){number, layers, n * layers, SAMPLES, saved}, &s->piece));
    assert_true(s->piece.used[0] && s->piece.used[1] && s->piece.used[2] == (n == stages - 1));
    for (uint32_t p = 0; p < TEST_PARAMS; p++)
      s->params[p] = slice(f->params[p], ax_model_param(&f->model, p, layers), f->model.layered[p] ? n * layers : 0);
    run_forward(f, s, n == 0 ? NULL : list[n - 1].carry_out);
  }
  double sum = 0; /* the last piece gives the loss of each sample */
  for (int64_t i = 0; i < SAMPLES; i++) sum += test_get(list[stages - 1].carry_out, i);
  TEST_NEAR(sum / SAMPLES, expected, 1e-13);
  for (uint32_t p = 0; p < TEST_PARAMS; p++) sums[p] = zeros(type_of(f->params[p]));
  for (int64_t n = stages - 1; n >= 0; n--) {
    ax_tensor *next = run_backward(f, &list[n], cotangent, sums, n * layers);
    test_release(&cotangent, cotangent != NULL);
    cotangent = next;
  }
  for (uint32_t p = 0; p < TEST_PARAMS; p++) TEST_TENSORS_NEAR(sums[p], gradients[p], 1e-12);
  test_release(sums, TEST_PARAMS);
  test_release(gradients, TEST_PARAMS);
  for (int64_t n = 0; n < stages; n++) {
    test_release(list[n].params, TEST_PARAMS);
    test_release(list[n].kept, list[n].kept_count);
    ax_piece_deinit(&list[n].piece);
    test_release(&list[n].carry_out, 1);
  }
}

static void test_pieces(void **state) {
  (void)state;
  fixture f;
  set_up(&f);
  for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT; saved++) {
    check_stages(&f, 2, (ax_checkpoint_policy)saved);
    check_stages(&f, 4, (ax_checkpoint_policy)saved);
  }
  tear_down(&f);
  set_up_numbered(&f);
  check_stages(&f, 4, AX_SAVE_EVERYTHING);
  tear_down(&f);
}

/* Inputs w[4, 4], v[6, 4], s[4] are parameters, and x[6, 4] is a sample. */
static const char *why_not(const char *loop) {
  static const uint32_t batch[] = {3};
  const ax_planner_options options = {.devices = 1, .train = true, .samples = 2, .batch = {.list = batch, .count = 1}};
  ax_program *loss;
  ax_model model;
  char text[1024];
  snprintf(text, sizeof text,
           "{ lambda w:f32[4,4] v:f32[6,4] s:f32[4] x:f32[6,4]. let h:f32[4] = scan[length=6 %s "
           "m:f32[] = reduce_sum[axes=(0)] h in (m) }",
           loop);
  TEST_OK(ax_program_parse(text, strlen(text), "test", &loss));
  TEST_OK(ax_model_make(loss, &options, &model));
  const char *why = ax_pieces_why_not(&model);
  ax_model_deinit(&model);
  ax_program_release(loss);
  return why;
}

#define STEP "{ lambda h:f32[4] r:f32[4]. let a:f32[4] = add h r b:f32[4] = tanh a in (b) }"
#define STEP_OF_W                                                                                                     \
  "{ lambda w:f32[4,4] h:f32[4] r:f32[4]. let a:f32[4] = dot_general[lhs_contract=(0) rhs_contract=(0) lhs_batch=() " \
  "rhs_batch=()] h w "                                                                                                \
  "b:f32[4] = add a r c:f32[4] = tanh b in (c) }"

/* A loop over time, as recurrent nets have it, is no pipeline: its steps have their weights in common. */
static void test_other_loops(void **state) {
  (void)state;
  assert_null(why_not("reverse=false num_consts=0 num_carry=1 body=" STEP "] s v"));
  assert_non_null(strstr(why_not("reverse=true num_consts=0 num_carry=1 body=" STEP "] s v"), "backwards"));
  assert_non_null(strstr(why_not("reverse=false num_consts=0 num_carry=1 body=" STEP "] s x"), "parts of a sample"));
  assert_non_null(strstr(why_not("reverse=false num_consts=1 num_carry=1 body=" STEP_OF_W "] w s v"), "use a parameter in common"));
}

#define WIDE "1,1,1,1,1,1,1,1,1,1,1,1,1,1,3"

/* A parameter with as many dimensions as there may be has no room for one of devices: no stages are made of it. */
static void test_room(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda w:f32[4," WIDE "] x:f32[" WIDE "]. let a:f32[" WIDE "] = scan[length=4 reverse=false num_consts=0 num_carry=1 body={ lambda "
      "h:f32[" WIDE "] u:f32[" WIDE "]. let b:f32[" WIDE "] = mul h u in (b) }] x w "
      "c:f32[] = reduce_sum[axes=(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14)] a in (c) }";
  static const uint32_t batch[] = {1};
  const ax_planner_options options = {.devices = 1, .train = true, .samples = 2, .batch = {.list = batch, .count = 1}};
  ax_program *loss, *step;
  ax_model model;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &loss));
  TEST_OK(ax_model_make(loss, &options, &model));
  assert_int_equal(model.layers, 4);
  assert_false(ax_pieces_possible(&model));
  TEST_FAILS(ax_model_step(&model, 2, AX_SAVE_NOTHING, &step), AX_INVALID_ARGUMENT, "the batch has too many dimensions");
  ax_model_deinit(&model);
  ax_program_release(loss);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model), cmocka_unit_test(test_experts_in_calls), cmocka_unit_test(test_reshaped_parameters),
      cmocka_unit_test(test_steps), cmocka_unit_test(test_pieces),           cmocka_unit_test(test_other_loops),
      cmocka_unit_test(test_room)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
