/* A training loop written with trees alone, on a mesh, against optax step by step (tests/vectors/make_trees.py): an MLP, its batch
   split over "data" and its hidden layer over "model"; adamw with a schedule, weight decay of the weights alone and clipping. */
#include <math.h>
#include <stdio.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct model {
  ax_mesh mesh;
  ax_optimizer optimizer;
  ax_treedef *params, *state, *batch, *metrics;
  ax_treedef *in, *out; /* of a step */
} model;

/* leaves of m->in -> f32[] */
static void loss(const ax_value *in, ax_value *out, void *context) {
  const ax_treedef *def = ((model *)context)->in;
  ax_value hidden =
      ax_tanh(ax_add(ax_matmul(ax_leaf(def, in, "batch/x"), ax_leaf(def, in, "params/w1")), ax_leaf(def, in, "params/b1")));
  ax_value y = ax_add(ax_psum(ax_matmul(hidden, ax_leaf(def, in, "params/w2")), "model"), ax_leaf(def, in, "params/b2"));
  ax_value error = ax_sub(y, ax_leaf(def, in, "batch/y"));
  out[0] = ax_pmean(ax_reduce_mean(ax_mul(error, error), AX_ALL_DIMS, false), "data");
}

/* leaves of m->in -> leaves of m->out: the loss, the learning rate, new params, new state */
static void step(const ax_value *in, ax_value *out, void *context) {
  model *m = context;
  uint32_t n = ax_treedef_count(m->params);
  ax_value gradients[16], *results = out + ax_treedef_count(m->metrics);
  ax_value_and_grad(AX_CLOSURE(loss, ax_treedef_count(m->in), 1, m), ax_treedef_select(m->in, "params"), in, gradients);
  out[0] = gradients[0];
  out[1] = ax_schedule_at(&m->optimizer.learning_rate, ax_leaf(m->in, in, "state/count"));
  ax_optimizer_update(&m->optimizer, m->params, gradients + 1, ax_leaves(m->in, in, "state"), ax_leaves(m->in, in, "params"),
                      results + n, results);
}

static void model_begin(model *m, const char *mesh) {
  TEST_OK(ax_mesh_parse(mesh, &m->mesh));
  m->optimizer = ax_adamw(ax_warmup_cosine_decay_schedule(0.002, 0.05, 5, 25, 0.001));
  m->optimizer.weight_decay = 0.01, m->optimizer.decay = "w?", m->optimizer.clip_norm = 1;
  TEST_OK(ax_treedef_parse("b1: f32[8] @ model; b2: f32[3]; w1: f32[6,8] @ _,model; w2: f32[8,3] @ model", &m->params));
  TEST_OK(ax_treedef_parse("x: f32[8,6] @ data; y: f32[8,3] @ data", &m->batch));
  TEST_OK(ax_treedef_parse("loss: f32[]; rate: f32[]", &m->metrics));
  TEST_OK(ax_optimizer_state(&m->optimizer, m->params, &m->state));
  TEST_OK(ax_treedef_join("params; state; batch", AX_TREEDEFS(m->params, m->state, m->batch), &m->in));
  TEST_OK(ax_treedef_join("metrics; params; state", AX_TREEDEFS(m->metrics, m->params, m->state), &m->out));
}

static void model_end(model *m) {
  ax_treedef *all[] = {m->params, m->state, m->batch, m->metrics, m->in, m->out};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_treedef_release(all[i]);
}

static ax_executable *compiled(ax_runtime *runtime, model *m) {
  ax_executable *executable;
  ax_compile_options options = {.donate = ax_treedef_select(m->in, "params; state")};
  TEST_OK(ax_tree_jit(runtime, &m->mesh, m->in, m->out, AX_CLOSURE(step, 0, 0, m), &options, &executable));
  return executable;
}

/* --- Beside optax --- */

static const char *vectors_path = "tests/vectors/trees.npz";
static ax_npz *vectors;
static ax_runtime *runtime;

static int setup(void **state) {
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_npz_read(vectors_path, &vectors));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  ax_npz_release(vectors);
  ax_runtime_release(runtime);
  return 0;
}

static const float *vector(const char *kind, const char *leaf) {
  char name[64];
  snprintf(name, sizeof name, "train.%s%s", kind, leaf);
  const ax_host_array *array = ax_npz_find(vectors, name);
  if (array == NULL) fail_msg("no vector %s", name);
  return array->data;
}

/* As far apart as the roundings of so many steps let them be: relative to the largest element. */
static void compare(const ax_tree *tree, const char *leaf, const float *theirs, int64_t at) {
  float ours[64];
  int64_t elems = ax_type_elems(ax_array_typeof(ax_tree_get(tree, "%s", leaf)));
  double size = 0;
  TEST_OK(ax_tree_read(tree, ours, (size_t)elems * sizeof ours[0], "%s", leaf));
  for (int64_t i = 0; i < elems; i++) size = fmax(size, fabs((double)theirs[at * elems + i]));
  for (int64_t i = 0; i < elems; i++)
    if (!(fabs((double)ours[i] - (double)theirs[at * elems + i]) <= 1e-5 * size))
      fail_msg("%s[%lld] after step %lld is %.9g, in optax %.9g", leaf, (long long)i, (long long)at, (double)ours[i],
               (double)theirs[at * elems + i]);
}

static void train(const char *mesh) {
  model m = {0};
  ax_tree *params, *state, *batch, *metrics;
  model_begin(&m, mesh);
  ax_executable *executable = compiled(runtime, &m);
  TEST_OK(ax_tree_create(runtime, &m.mesh, m.params, &params));
  TEST_OK(ax_tree_create(runtime, &m.mesh, m.state, &state));
  TEST_OK(ax_tree_create(runtime, &m.mesh, m.batch, &batch));
  TEST_OK(ax_tree_create(runtime, &m.mesh, m.metrics, &metrics));
  TEST_OK(ax_tree_init(state, "*: zeros", 0));
  for (uint32_t i = 0; i < ax_treedef_count(m.params); i++) {
    const char *leaf = ax_treedef_name(m.params, i);
    TEST_OK(ax_tree_put(params, vector("in.", leaf), "%s", leaf));
  }
  for (int64_t i = 0; i < 25; i++) {
    TEST_OK(ax_tree_put(batch, vector("x", "") + i * 8 * 6, "x"));
    TEST_OK(ax_tree_put(batch, vector("y", "") + i * 8 * 3, "y"));
    TEST_OK(ax_tree_run(executable, AX_TREES(params, state, batch), AX_TREES(metrics, params, state)));
    compare(metrics, "loss", vector("loss", ""), i);
    for (uint32_t k = 0; k < ax_treedef_count(m.params); k++)
      compare(params, ax_treedef_name(m.params, k), vector("out.", ax_treedef_name(m.params, k)), i);
  }
  float rate;
  TEST_OK(ax_tree_read(metrics, &rate, sizeof rate, "rate")); /* of step 24 */
  assert_true(rate > 0.001f && rate < 0.002f);
  ax_tree_release(params), ax_tree_release(state), ax_tree_release(batch), ax_tree_release(metrics);
  ax_executable_release(executable);
  model_end(&m);
}

static void on_eight_devices(void **state) {
  (void)state;
  train("data=4,model=2");
}

static void on_one_device(void **state) {
  (void)state;
  train("data=1,model=1");
}

int main(int argc, char **argv) {
  if (argc > 1) vectors_path = argv[1]; /* tests/oracle/run gives fresh ones */
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_eight_devices), cmocka_unit_test(on_one_device)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
