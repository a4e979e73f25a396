/* A character transformer, trained as a program of whole arrays: the model has no collectives and knows of no devices. How
   parameters lie on the mesh is said in one table, by name; all else is found from that.

     gpt [--mesh data=2,model=4] [--steps 200] [FILE]        FILE: the text to learn; a sonnet, when not given

   The losses are the same on every mesh, to rounding, and on one mesh the same bits in any number of processes. Sizes that the mesh
   does not divide are padded inside. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <axle/axle.h>

enum { BATCH = 16, LENGTH = 32, WIDTH = 48, HEADS = 4, LAYERS = 2, CHARACTERS = 128, REPORT_EVERY = 20 };

static const char parameters[] =
    "embed:    f32[128,48]\n"
    "position: f32[32,48]\n"
    "layers/{0..1}/{q,k,v}: f32[48,4,12]\n" /* width, heads, width of a head */
    "layers/{0..1}/o:  f32[4,12,48]\n"
    "layers/{0..1}/up: f32[48,192]\n"
    "layers/{0..1}/down: f32[192,48]\n"
    "layers/{0..1}/{norm1,norm2}: f32[48]\n"
    "norm:     f32[48]\n";

/* How they lie: heads and the hidden layers along "model", the vocabulary too; the rest is whole on each device. */
static const char layout[] =
    "*/q: _,model; */k: _,model; */v: _,model; */o: model;"
    "*/up: _,model; */down: model;"
    "embed: model;"
    "*: ";

static const char batches[] = "x: s32[16,32] @ data; y: s32[16,32] @ data"; /* characters, and those after them */

static const char sonnet[] =
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date;\n"
    "Sometime too hot the eye of heaven shines,\nAnd often is his gold complexion dimm'd;\n"
    "And every fair from fair sometime declines,\nBy chance or nature's changing course untrimm'd;\n"
    "But thy eternal summer shall not fade,\nNor lose possession of that fair thou ow'st;\n"
    "Nor shall death brag thou wander'st in his shade,\nWhen in eternal lines to time thou grow'st:\n"
    "So long as men can breathe or eyes can see,\nSo long lives this, and this gives life to thee.\n";

/* --- The model: b batch, t and s positions, w width, h heads, k width of a head, c characters --- */

typedef struct model {
  ax_optimizer optimizer;
  ax_treedef *params, *state, *batch, *report;
  ax_treedef *in, *out; /* of a step: params, state, batch; report, params, state */
} model;

static ax_value einsum(const char *subscripts, ax_value a, ax_value b) { return ax_einsum(subscripts, AX_VALUES(a, b)); }

static ax_value normed(ax_value x, ax_value gain) {
  ax_value square = ax_reduce_mean(ax_square(x), AX_DIMS(-1), true);
  return ax_mul(ax_mul(x, ax_rsqrt(ax_add(square, 1e-5))), gain);
}

static ax_value attention(const model *m, const ax_value *in, int layer, ax_value x) {
  ax_value q = einsum("btw,whk->bhtk", x, ax_leaf(m->in, in, "params/layers/%d/q", layer));
  ax_value k = einsum("bsw,whk->bhsk", x, ax_leaf(m->in, in, "params/layers/%d/k", layer));
  ax_value v = einsum("bsw,whk->bhsk", x, ax_leaf(m->in, in, "params/layers/%d/v", layer));
  ax_value scores = ax_div(einsum("bhtk,bhsk->bhts", q, k), sqrt(WIDTH / HEADS));
  const int64_t square[] = {LENGTH, LENGTH};
  ax_value past = ax_ge(ax_iota(AX_S32, AX_LIST(2, square), 0), ax_iota(AX_S32, AX_LIST(2, square), 1));
  ax_value seen = einsum("bhts,bhsk->bhtk", ax_softmax(ax_where(past, scores, -1e9), -1), v);
  return einsum("bhtk,hkw->btw", seen, ax_leaf(m->in, in, "params/layers/%d/o", layer));
}

static ax_value feed_forward(const model *m, const ax_value *in, int layer, ax_value x) {
  ax_value hidden = ax_gelu(ax_matmul(x, ax_leaf(m->in, in, "params/layers/%d/up", layer)));
  return ax_matmul(hidden, ax_leaf(m->in, in, "params/layers/%d/down", layer));
}

/* leaves of m->in -> f32[]: the cross entropy of each next character, mean over the batch */
static AX_BODY(loss) {
  const model *m = context;
  ax_value embed = ax_leaf(m->in, in, "params/embed");
  ax_value x = ax_add(ax_matmul(ax_one_hot(ax_leaf(m->in, in, "batch/x"), CHARACTERS, AX_F32), embed),
                      ax_leaf(m->in, in, "params/position"));
  for (int l = 0; l < LAYERS; l++) {
    x = ax_add(x, attention(m, in, l, normed(x, ax_leaf(m->in, in, "params/layers/%d/norm1", l))));
    x = ax_add(x, feed_forward(m, in, l, normed(x, ax_leaf(m->in, in, "params/layers/%d/norm2", l))));
  }
  ax_value logits = einsum("btw,cw->btc", normed(x, ax_leaf(m->in, in, "params/norm")), embed);
  ax_value picked = ax_mul(ax_log_softmax(logits, -1), ax_one_hot(ax_leaf(m->in, in, "batch/y"), CHARACTERS, AX_F32));
  out[0] = ax_neg(ax_reduce_mean(ax_reduce_sum(picked, AX_DIMS(-1), false), AX_ALL_DIMS, false));
}

/* leaves of m->in -> leaves of m->out */
static AX_BODY(step) {
  const model *m = context;
  const uint32_t n = ax_treedef_count(m->params);
  ax_value found[1 + 64];
  ax_value_and_grad(AX_CLOSURE(loss, ax_treedef_count(m->in), 1, context), ax_treedef_select(m->in, "params"), in, found);
  out[0] = found[0];
  ax_optimizer_update(&m->optimizer, m->params, found + 1, ax_leaves(m->in, in, "state"), ax_leaves(m->in, in, "params"),
                      out + 1 + n, out + 1);
}

static void describe(model *m) {
  ax_treedef *plain;
  m->optimizer = ax_adam(ax_constant_schedule(0.005));
  ax_must(ax_treedef_parse(parameters, &plain));
  ax_must(ax_treedef_with_specs(plain, layout, &m->params));
  ax_must(ax_treedef_parse(batches, &m->batch));
  ax_must(ax_treedef_parse("loss: f32[]", &m->report));
  ax_must(ax_optimizer_state(&m->optimizer, m->params, &m->state));
  ax_must(ax_treedef_join("params; state; batch", AX_TREEDEFS(m->params, m->state, m->batch), &m->in));
  ax_must(ax_treedef_join("report; params; state", AX_TREEDEFS(m->report, m->params, m->state), &m->out));
  ax_treedef_release(plain);
}

/* --- On a mesh --- */

/* The step for the mesh: traced whole, then laid out. Prints what it exchanges. */
static ax_executable *compile(const model *m, ax_runtime *runtime, const ax_mesh *mesh) {
  char specs[8192];
  ax_program *whole, *laid_out;
  ax_executable *executable;
  ax_cost cost;
  ax_fn function = AX_CLOSURE(step, ax_treedef_count(m->in), ax_treedef_count(m->out), (void *)m);
  snprintf(specs, sizeof specs, "%s -> %s", ax_treedef_specs(m->in), ax_treedef_specs(m->out));
  ax_must(ax_trace(function, ax_treedef_types(m->in), &whole));
  ax_must(ax_program_with_shardings(whole, mesh, specs, &laid_out));

  ax_must(ax_program_cost(laid_out, &cost));
  printf("\na step on each of %lld devices: %.3g operations, %.0f bytes from other devices\n", (long long)cost.devices, cost.flops,
         cost.received);
  for (uint32_t i = 0; i < cost.collective_count; i++) {
    const ax_collective_cost *c = &cost.collectives[i];
    printf("  %4.0f x %-20s over %-12s %9.0f bytes\n", c->runs, c->primitive, c->axes, c->bytes);
  }
  ax_cost_release(&cost);

  ax_must(ax_compile(runtime, laid_out, &(ax_compile_options){.donate = ax_treedef_select(m->in, "params; state")}, &executable));
  ax_program_release(whole);
  ax_program_release(laid_out);
  return executable;
}

static int shape(char *text, size_t bytes, const ax_type *type) {
  int length = snprintf(text, bytes, "%s[", ax_dtype_name(type->dtype));
  for (uint32_t d = 0; d < type->rank; d++)
    length += snprintf(text + length, bytes - (size_t)length, "%s%lld", d > 0 ? "," : "", (long long)type->dims[d]);
  return length + snprintf(text + length, bytes - (size_t)length, "]");
}

/* Prints the table's spec of each parameter, and the block of it that one device holds. */
static void show_layout(const ax_treedef *def, const ax_tree *params) {
  printf("\n%-16s %-14s %-10s %s\n", "parameter", "type", "spec", "on each device");
  for (uint32_t i = 0; i < ax_treedef_count(def); i++) {
    char whole[100], part[100];
    int64_t start[AX_MAX_RANK];
    ax_type block;
    ax_must(ax_array_shard(ax_tree_get(params, "%s", ax_treedef_name(def, i)), 0, &block, start));
    shape(whole, sizeof whole, ax_treedef_type(def, i));
    shape(part, sizeof part, &block);
    printf("%-16s %-14s %-10s %s\n", ax_treedef_name(def, i), whole, ax_treedef_spec(def, i), part);
  }
}

/* Pieces of the text from random places, the same on every mesh. */
static void put_batch(ax_tree *batch, const char *text, size_t bytes) {
  static uint64_t random = 1;
  int32_t x[BATCH][LENGTH], y[BATCH][LENGTH];
  for (int b = 0; b < BATCH; b++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const char *from = text + (random >> 33) % (bytes - LENGTH);
    for (int t = 0; t < LENGTH; t++) x[b][t] = from[t] & 127, y[b][t] = from[t + 1] & 127;
  }
  ax_must(ax_tree_put(batch, x, "x"));
  ax_must(ax_tree_put(batch, y, "y"));
}

static ax_tree *tree(ax_runtime *runtime, ax_treedef *def) { /* of whole arrays; the first step lays them out */
  ax_treedef *whole;
  ax_tree *made;
  ax_must(ax_treedef_with_specs(def, "*: ", &whole));
  ax_must(ax_tree_create(runtime, NULL, whole, &made));
  ax_treedef_release(whole);
  return made;
}

static void train(const model *m, const ax_mesh *mesh, const char *text, size_t bytes, int steps) {
  ax_runtime *runtime;
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_executable *executable = compile(m, runtime, mesh);
  ax_tree *params = tree(runtime, m->params), *state = tree(runtime, m->state), *batch = tree(runtime, m->batch);
  ax_tree *report = tree(runtime, m->report);
  ax_must(ax_tree_init(params, "embed: normal(0.1); position: normal(0.1); *norm*: ones; *: normal(0.08)", 1));
  ax_must(ax_tree_init(state, "*: zeros", 0));
  for (int i = 1; i <= steps; i++) {
    float value;
    put_batch(batch, text, bytes);
    ax_must(ax_tree_run(executable, AX_TREES(params, state, batch), AX_TREES(report, params, state)));
    ax_must(ax_tree_read(report, &value, sizeof value, "loss"));
    if (i == 1) show_layout(m->params, params), printf("\n");
    if (i == 1 || i == steps || i % REPORT_EVERY == 0) printf("step %4d  loss %.9g\n", i, (double)value);
  }
  ax_tree *trees[] = {params, state, batch, report};
  for (int i = 0; i < 4; i++) ax_tree_release(trees[i]);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* "data=8" -> "data=8,model=1": the table names both axes. */
static ax_mesh parse_mesh(const char *text) {
  char both[400];
  ax_mesh mesh;
  snprintf(both, sizeof both - 20, "%s", text);
  for (int i = 0; i < 2; i++) {
    const char *axis = i == 0 ? "data" : "model";
    ax_must(ax_mesh_parse(both, &mesh));
    if (ax_mesh_find(&mesh, axis) < 0) snprintf(both + strlen(both), 20, "%s%s=1", both[0] ? "," : "", axis);
  }
  ax_must(ax_mesh_parse(both, &mesh));
  return mesh;
}

static void usage(void) {
  fprintf(stderr, "usage: gpt [--mesh data=2,model=4] [--steps 200] [FILE]: a text of more than %d characters\n", LENGTH);
  exit(2);
}

int main(int argc, char **argv) {
  static char file[1 << 20];
  const char *mesh = "data=2,model=4", *text = sonnet;
  size_t bytes = strlen(sonnet);
  int steps = 200, option;
  static const struct option options[] = {
      {"mesh", required_argument, NULL, 'm'}, {"steps", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option == 'm') mesh = optarg;
    else if (option == 's') steps = atoi(optarg);
    else usage();
  }
  if (optind < argc) {
    FILE *from = fopen(argv[optind], "rb");
    if (from == NULL) usage();
    bytes = fread(file, 1, sizeof file, from);
    text = file;
    fclose(from);
  }
  if (bytes <= LENGTH + 1 || steps < 1) usage();

  model m;
  ax_mesh parsed = parse_mesh(mesh);
  describe(&m);
  printf("a transformer of %d layers on a mesh %s\n", LAYERS, mesh);
  train(&m, &parsed, text, bytes, steps);
  ax_treedef *defs[] = {m.params, m.state, m.batch, m.report, m.in, m.out};
  for (int i = 0; i < 6; i++) ax_treedef_release(defs[i]);
  return 0;
}
