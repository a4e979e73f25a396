/* Parameters, the optimiser's state, a batch and the metrics, each a tree of named arrays: an MLP whose batch is cut along "data"
   and whose hidden layer along "model", trained by AdamW. docs/trees.md goes through it.
     trees [FILE.npz]        where the weights are saved; nowhere when not given */
#include <math.h>
#include <stdio.h>

#include <axle/axle.h>

enum { ROWS = 32, STEPS = 200 };

typedef struct model {
  ax_mesh mesh;
  ax_optimizer optimizer;
  ax_treedef *params, *state, *batch, *report;
  ax_treedef *in, *out; /* of a step: params, state, batch; report, params, state */
} model;

static void model_release(model *m) {
  ax_treedef *defs[] = {m->params, m->state, m->batch, m->report, m->in, m->out};
  for (int i = 0; i < 6; i++) ax_treedef_release(defs[i]);
}

static void describe(model *m) {
  ax_must(ax_mesh_parse("data=2,model=2", &m->mesh));
  m->optimizer = ax_adamw(ax_warmup_cosine_decay_schedule(0, 0.05, 20, STEPS, 0.001));
  m->optimizer.decay = "w?"; /* biases do not decay */
  m->optimizer.clip_norm = 1;
  ax_must(ax_treedef_parse("w1: f32[3,16] @ _,model; b1: f32[16] @ model; w2: f32[16] @ model; b2: f32[]", &m->params));
  ax_must(ax_treedef_parse("x: f32[32,3] @ data; y: f32[32] @ data", &m->batch));
  ax_must(ax_treedef_parse("loss: f32[]", &m->report));
  ax_must(ax_optimizer_state(&m->optimizer, m->params, &m->state));
  ax_must(ax_treedef_join("params; state; batch", AX_TREEDEFS(m->params, m->state, m->batch), &m->in));
  ax_must(ax_treedef_join("report; params; state", AX_TREEDEFS(m->report, m->params, m->state), &m->out));
}

/* leaves of m->in -> f32[], on each device with its parts */
static AX_BODY(loss) {
  const ax_treedef *def = ((const model *)context)->in;
  ax_value x = ax_leaf(def, in, "batch/x"), y = ax_leaf(def, in, "batch/y");
  ax_value hidden = ax_tanh(ax_add(ax_matmul(x, ax_leaf(def, in, "params/w1")), ax_leaf(def, in, "params/b1")));
  ax_value found = ax_add(ax_psum(ax_matmul(hidden, ax_leaf(def, in, "params/w2")), "model"), ax_leaf(def, in, "params/b2"));
  out[0] = ax_pmean(ax_reduce_mean(ax_square(ax_sub(found, y)), AX_ALL_DIMS, false), "data");
}

/* leaves of m->in -> leaves of m->out */
static AX_BODY(step) {
  model *m = context;
  const uint32_t n = ax_treedef_count(m->params);
  ax_value found[1 + 16];
  ax_value_and_grad(AX_CLOSURE(loss, ax_treedef_count(m->in), 1, m), ax_treedef_select(m->in, "params"), in, found);
  out[0] = found[0];
  ax_optimizer_update(&m->optimizer, m->params, found + 1, ax_leaves(m->in, in, "state"), ax_leaves(m->in, in, "params"),
                      out + 1 + n, out + 1);
}

static void put_batch(ax_tree *batch) {
  float x[ROWS][3], y[ROWS];
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < 3; j++) x[i][j] = sinf((float)(5 * i + 3 * j));
    y[i] = x[i][0] * x[i][1] + x[i][2];
  }
  ax_must(ax_tree_put(batch, x, "x"));
  ax_must(ax_tree_put(batch, y, "y"));
}

int main(int argc, char **argv) {
  AX_OWNED_STRUCT(model, m);
  AX_OWNED(ax_runtime, runtime);
  AX_OWNED(ax_executable, executable);
  AX_OWNED(ax_tree, params, state, batch, report);
  describe(&m);
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_compile_options options = {.donate = ax_treedef_select(m.in, "params; state")};
  ax_must(ax_tree_jit(runtime, &m.mesh, m.in, m.out, AX_CLOSURE(step, 0, 0, &m), &options, &executable));

  ax_must(ax_tree_create(runtime, &m.mesh, m.params, &params));
  ax_must(ax_tree_create(runtime, &m.mesh, m.state, &state));
  ax_must(ax_tree_create(runtime, &m.mesh, m.batch, &batch));
  ax_must(ax_tree_create(runtime, &m.mesh, m.report, &report));
  ax_must(ax_tree_init(params, "w1: lecun_normal; w2: normal(0.25); *: zeros", 1));
  ax_must(ax_tree_init(state, "*: zeros", 0));
  put_batch(batch);

  float value = 0;
  for (int n = 0; n <= STEPS; n++) {
    ax_must(ax_tree_run(executable, AX_TREES(params, state, batch), AX_TREES(report, params, state)));
    ax_must(ax_tree_read(report, &value, sizeof value, "loss"));
    if (n % 100 == 0) printf("step %3d: loss %.2f\n", n, (double)value);
  }
  if (argc > 1) ax_must(ax_tree_write_npz(params, argv[1]));
  return value < 0.1f ? 0 : 1;
}
