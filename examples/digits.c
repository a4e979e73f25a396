/* Trains a digit classifier on a mesh of devices: an MLP 64-512-10, the batch split over "data", the hidden layer over "model".

     digits [--mesh data=4,model=2] [--steps 600] [--out digits.npz] data/digits.csv.gz

   Each step is also taken on one device, from the same weights, and compared. Data: 8x8 handwritten digits, UCI (CC BY 4.0). */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <axle/axle.h>

enum { PIXELS = 64, CLASSES = 10, TEST_ROWS = 360, REPORT_EVERY = 100 };
static const double learning_rate = 0.4;

/* --- The model: what one device does with its part of the batch and its part of the hidden layer --- */

static const char weights_text[] =
    "w1: f32[64,512] @ _,model; b1: f32[512] @ model; w2: f32[512,10] @ model,_; b2: f32[10]";
enum { W1, B1, W2, B2, WEIGHTS };

static ax_value logits(const ax_value *w, ax_value x) {
  ax_value hidden = ax_relu(ax_add(ax_matmul(x, w[W1]), w[B1]));
  return ax_add(ax_psum(ax_matmul(hidden, w[W2]), "model"), w[B2]);
}

/* weights.., x: f32[rows,64], labels: s32[rows] -> f32[], the mean over the whole batch */
static AX_BODY(loss) {
  ax_value picked = ax_mul(ax_log_softmax(logits(in, in[WEIGHTS]), -1), ax_one_hot(in[WEIGHTS + 1], CLASSES, AX_F32));
  ax_value mean = ax_reduce_mean(ax_reduce_sum(picked, AX_DIMS(-1), false), AX_ALL_DIMS, false);
  out[0] = ax_pmean(ax_neg(mean), "data");
}

/* -> loss, new weights.. */
static AX_BODY(step) {
  ax_value_and_grad(AX_FN(loss, WEIGHTS + 2, 1), AX_FIRST(WEIGHTS), in, out);
  for (int w = 0; w < WEIGHTS; w++) out[1 + w] = ax_sub(in[w], ax_mul(out[1 + w], learning_rate));
}

/* weights.., x -> the class of each row */
static AX_BODY(predict) { out[0] = ax_argmax(logits(in, in[WEIGHTS]), -1, AX_S32); }

/* --- The data --- */

typedef struct table {
  int rows;
  float *pixels; /* [rows, 64], 0 to 1 */
  int32_t *labels;
} table;

static uint64_t random_state = 1;
static uint64_t random_bits(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return random_state >> 33;
}

static void fail(const char *what) {
  fprintf(stderr, "digits: %s\n", what);
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes);
  if (memory == NULL) fail("out of memory");
  return memory;
}

static table read_digits(const char *path) {
  ax_host_array csv;
  ax_must(ax_csv_read(path, &csv));
  if (csv.dims[1] != PIXELS + 1 || csv.dims[0] <= TEST_ROWS) fail("expected rows of 64 pixels and a label, more than 360 of them");
  table t = {.rows = (int)csv.dims[0]};
  t.pixels = allocate((size_t)t.rows * PIXELS * sizeof t.pixels[0]);
  t.labels = allocate((size_t)t.rows * sizeof t.labels[0]);
  int *order = allocate((size_t)t.rows * sizeof order[0]);
  for (int i = 0; i < t.rows; i++) { /* shuffled once, so that the held-out rows are like the others */
    int j = (int)(random_bits() % (uint64_t)(i + 1));
    order[i] = order[j];
    order[j] = i;
  }
  for (int i = 0; i < t.rows; i++) {
    const double *row = (const double *)csv.data + (size_t)order[i] * (PIXELS + 1);
    for (int k = 0; k < PIXELS; k++) t.pixels[i * PIXELS + k] = (float)(row[k] / 16);
    t.labels[i] = (int32_t)row[PIXELS];
  }
  free(order);
  ax_host_array_release(&csv);
  return t;
}

/* `batch` random training rows a step, the same on every mesh. */
static void pick_batch(const table *data, int64_t batch, float *pixels, int32_t *labels) {
  for (int64_t i = 0; i < batch; i++) {
    size_t row = random_bits() % (uint64_t)(data->rows - TEST_ROWS);
    memcpy(pixels + i * PIXELS, data->pixels + row * PIXELS, PIXELS * sizeof pixels[0]);
    labels[i] = data->labels[row];
  }
}

/* --- Training --- */

typedef struct training {
  ax_runtime *runtime;
  ax_mesh mesh;
  ax_treedef *weights_def, *batch_def, *loss_def;
  ax_tree *weights, *batch, *loss;
  ax_executable *step, *predict;
} training;

/* A function on each device: weights.., then what `more` names, to `results`. */
typedef struct on_mesh {
  const training *t;
  ax_fn body;
  const char *more, *results;
} on_mesh;
static AX_BODY(call_on_mesh) {
  const on_mesh *f = context;
  char specs[256];
  snprintf(specs, sizeof specs, "%s; %s -> %s", ax_treedef_specs(f->t->weights_def), f->more, f->results);
  ax_shard_map(&f->t->mesh, specs, f->body, in, out);
}

static ax_executable *compile(on_mesh f, const ax_type *more, ax_args donate) {
  ax_type types[WEIGHTS + 2];
  ax_executable *executable;
  memcpy(types, ax_treedef_types(f.t->weights_def), WEIGHTS * sizeof types[0]);
  memcpy(types + WEIGHTS, more, (f.body.in_count - WEIGHTS) * sizeof types[0]);
  ax_must(ax_jit(f.t->runtime, AX_CLOSURE(call_on_mesh, f.body.in_count, f.body.out_count, &f), types,
                 &(ax_compile_options){.donate = donate}, &executable));
  return executable;
}

static ax_tree *tree(const training *t, ax_treedef *def) {
  ax_tree *made;
  ax_must(ax_tree_create(t->runtime, &t->mesh, def, &made));
  return made;
}

static training start(const char *mesh, int64_t batch) {
  training t = {0};
  char text[100], results[200];
  ax_must(ax_runtime_create(NULL, &t.runtime));
  ax_must(ax_mesh_parse(mesh, &t.mesh));
  snprintf(text, sizeof text, "x: f32[%lld,%d] @ data; labels: s32[%lld] @ data", (long long)batch, PIXELS, (long long)batch);
  ax_must(ax_treedef_parse(weights_text, &t.weights_def));
  ax_must(ax_treedef_parse(text, &t.batch_def));
  ax_must(ax_treedef_parse("loss: f32[]", &t.loss_def));
  t.weights = tree(&t, t.weights_def);
  t.batch = tree(&t, t.batch_def);
  t.loss = tree(&t, t.loss_def);
  ax_must(ax_tree_init(t.weights, "w*: he_normal; b*: zeros", 7)); /* the same weights on every mesh */
  snprintf(results, sizeof results, "; %s", ax_treedef_specs(t.weights_def));
  t.step = compile((on_mesh){&t, AX_FN(step, WEIGHTS + 2, 1 + WEIGHTS), "data; data", results}, ax_treedef_types(t.batch_def),
                   AX_FIRST(WEIGHTS));
  t.predict = compile((on_mesh){&t, AX_FN(predict, WEIGHTS + 1, 1), "", ""}, (const ax_type[]){AX_TYPE(AX_F32, TEST_ROWS, PIXELS)},
                      AX_FIRST(0));
  return t;
}

static void finish(training *t) {
  ax_tree *trees[] = {t->weights, t->batch, t->loss};
  ax_treedef *defs[] = {t->weights_def, t->batch_def, t->loss_def};
  for (int i = 0; i < 3; i++) ax_tree_release(trees[i]), ax_treedef_release(defs[i]);
  ax_executable_release(t->step);
  ax_executable_release(t->predict);
  ax_runtime_release(t->runtime);
}

static double take_step(training *t, const float *pixels, const int32_t *labels) {
  float value;
  ax_must(ax_tree_put(t->batch, pixels, "x"));
  ax_must(ax_tree_put(t->batch, labels, "labels"));
  ax_must(ax_tree_run(t->step, AX_TREES(t->weights, t->batch), AX_TREES(t->loss, t->weights)));
  ax_must(ax_tree_read(t->loss, &value, sizeof value, "loss"));
  return (double)value;
}

static double accuracy(const training *t, const table *data) {
  ax_array *in[WEIGHTS + 1], *out;
  int32_t classes[TEST_ROWS];
  int right = 0, first = data->rows - TEST_ROWS;
  for (uint32_t w = 0; w < WEIGHTS; w++) in[w] = ax_tree_get(t->weights, "%s", ax_treedef_name(t->weights_def, w));
  ax_must(ax_executable_put(t->predict, WEIGHTS, data->pixels + first * PIXELS, &in[WEIGHTS]));
  ax_must(ax_run(t->predict, AX_LIST(WEIGHTS + 1, in), &out));
  ax_must(ax_array_read(out, classes, sizeof classes));
  for (int i = 0; i < TEST_ROWS; i++) right += classes[i] == data->labels[first + i];
  ax_array_release(in[WEIGHTS]);
  ax_array_release(out);
  return 100.0 * right / TEST_ROWS;
}

/* The largest difference of two trainings' weights, relative to the largest weight of its array. */
static double weights_apart(const training *t, const training *other) {
  double most = 0;
  for (uint32_t w = 0; w < WEIGHTS; w++) {
    ax_host_array a, b;
    double apart = 0, size = 0;
    ax_must(ax_tree_to_host(t->weights, &a, "%s", ax_treedef_name(t->weights_def, w)));
    ax_must(ax_tree_to_host(other->weights, &b, "%s", ax_treedef_name(t->weights_def, w)));
    for (int64_t i = 0; i < ax_type_elems(ax_treedef_type(t->weights_def, w)); i++) {
      double x = (double)((float *)a.data)[i], y = (double)((float *)b.data)[i];
      apart = fmax(apart, fabs(x - y));
      size = fmax(size, fabs(y));
    }
    if (size > 0 && !(apart / size <= most)) most = apart / size;
    ax_host_array_release(&a);
    ax_host_array_release(&b);
  }
  return most;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Trains, each step beside the same step on one device: from the same weights, on the same rows. *difference: the largest there is,
   relative, between the two losses or the weights they make. Gives the accuracy on the held-out rows. */
static double train(training *t, training *one, const table *data, int64_t batch, int steps, double *difference) {
  float *pixels = allocate((size_t)batch * PIXELS * sizeof pixels[0]);
  int32_t *labels = allocate((size_t)batch * sizeof labels[0]);
  double spent = 0;
  for (int i = 0; i < steps; i++) {
    pick_batch(data, batch, pixels, labels);
    ax_must(ax_tree_copy(t->weights, one->weights));
    double begin = seconds(), value = take_step(t, pixels, labels);
    spent += seconds() - begin;
    double alone = take_step(one, pixels, labels), apart[] = {fabs(value - alone) / fabs(alone), weights_apart(t, one)};
    for (int k = 0; k < 2; k++)
      if (!(apart[k] <= *difference)) *difference = apart[k];
    if ((i + 1) % REPORT_EVERY == 0 || i + 1 == steps)
      printf("step %4d  loss %.4f  accuracy %5.2f %%  %6.0f steps/s\n", i + 1, value, accuracy(t, data), (i + 1) / spent);
  }
  free(pixels);
  free(labels);
  return accuracy(t, data);
}

static void show_weights(const training *t) {
  for (uint32_t w = 0; w < WEIGHTS; w++) {
    char *picture;
    ax_must(ax_array_picture(ax_tree_get(t->weights, "%s", ax_treedef_name(t->weights_def, w)), &picture));
    printf("%s: %s\n", ax_treedef_name(t->weights_def, w), picture);
    ax_string_free(picture);
  }
}

/* "data=256" -> "data=256,model=1": the model names both axes. */
static void complete_mesh(char *mesh, size_t bytes) {
  static const char *const axes[] = {"data", "model"};
  for (int i = 0; i < 2; i++) {
    ax_mesh parsed;
    ax_must(ax_mesh_parse(mesh, &parsed));
    size_t length = strlen(mesh);
    if (ax_mesh_find(&parsed, axes[i]) < 0) snprintf(mesh + length, bytes - length, "%s%s=1", length ? "," : "", axes[i]);
  }
}

static int64_t batch_for(const char *mesh) { /* at least 256, and what the data axis divides */
  ax_mesh parsed;
  ax_must(ax_mesh_parse(mesh, &parsed));
  int64_t parts = parsed.axis[ax_mesh_find(&parsed, "data")].size;
  return (256 + parts - 1) / parts * parts;
}

int main(int argc, char **argv) {
  char mesh[400] = "data=4,model=2";
  const char *out = "digits.npz";
  int steps = 600, option;
  static const struct option options[] = {
      {"mesh", required_argument, NULL, 'm'}, {"steps", required_argument, NULL, 's'},
      {"out", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0}};
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option == 'm') snprintf(mesh, sizeof mesh - 20, "%s", optarg);
    if (option == 's') steps = atoi(optarg);
    if (option == 'o') out = optarg;
    if (option == '?') return 2;
  }
  if (optind + 1 != argc || steps < 1) {
    fprintf(stderr, "usage: digits [--mesh data=4,model=2] [--steps 600] [--out digits.npz] data/digits.csv.gz\n");
    return 2;
  }
  complete_mesh(mesh, sizeof mesh);
  table data = read_digits(argv[optind]);

  int64_t batch = batch_for(mesh);
  training t = start(mesh, batch), one = start("data=1,model=1", batch);
  printf("MLP 64-512-10 on a mesh %s, batch %lld of %d rows\n\n", mesh, (long long)batch, data.rows - TEST_ROWS);
  show_weights(&t);
  double difference = 0, right = train(&t, &one, &data, batch, steps, &difference);
  ax_must(ax_tree_write_npz(t.weights, out));
  printf("saved %s\n", out);
  printf("held-out accuracy %.2f %% of %d digits; no step differs from one device's by more than %.1e (relative)\n",
         right, TEST_ROWS, difference);
  bool good = right >= 97 && difference <= 1e-5;
  if (!good) fprintf(stderr, "digits: expected at least 97 %% and at most 1e-5\n");
  finish(&t);
  finish(&one);
  free(data.pixels);
  free(data.labels);
  return good ? 0 : 1;
}
