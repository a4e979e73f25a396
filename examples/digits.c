/* Trains a digit classifier on a mesh of devices: an MLP 64-512-10, the batch split over "data", the hidden layer over "model".

     digits [--mesh data=4,model=2] [--steps 600] [--out digits.npz] data/digits.csv.gz

   The same training then runs on one device, and every loss is compared. Data: 8x8 handwritten digits, UCI (CC BY 4.0). */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <axle/axle.h>

enum { PIXELS = 64, HIDDEN = 512, CLASSES = 10, TEST_ROWS = 360, WEIGHTS = 4, REPORT_EVERY = 100 };
static const double learning_rate = 0.4;

/* --- The model: what one device does with its part of the batch and its part of the hidden layer --- */

static ax_value logits(ax_value w1, ax_value b1, ax_value w2, ax_value b2, ax_value x) {
  ax_value hidden = ax_relu(ax_add(ax_matmul(x, w1), b1));
  return ax_add(ax_psum(ax_matmul(hidden, w2), "model"), b2);
}

/* w1, b1, w2, b2, x: f32[rows,64], labels: s32[rows] -> f32[], the mean over the whole batch */
static void loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value log_probabilities = ax_log_softmax(logits(in[0], in[1], in[2], in[3], in[4]), -1);
  ax_value picked = ax_reduce_sum(ax_mul(log_probabilities, ax_one_hot(in[5], CLASSES, AX_F32)), AX_DIMS(-1), false);
  out[0] = ax_pmean(ax_neg(ax_reduce_mean(picked, AX_ALL_DIMS, false)), "data");
}

/* -> loss, new w1, b1, w2, b2 */
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value result[1 + WEIGHTS];
  ax_value_and_grad(AX_FN(loss, 6, 1), AX_FIRST(WEIGHTS), in, result);
  out[0] = result[0];
  for (int i = 0; i < WEIGHTS; i++) {
    ax_value change = ax_mul(result[1 + i], ax_full_like(result[1 + i], learning_rate));
    out[1 + i] = ax_sub(in[i], change);
  }
}

/* -> the class of each row */
static void predict(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_argmax(logits(in[0], in[1], in[2], in[3], in[4]), -1, AX_S32);
}

static const char *const weight_names[WEIGHTS] = {"w1", "b1", "w2", "b2"};
static const char *const weight_specs[WEIGHTS] = {"_, model", "model", "model, _", ""};
static const int64_t weight_dims[WEIGHTS][2] = {{PIXELS, HIDDEN}, {HIDDEN}, {HIDDEN, CLASSES}, {CLASSES}};
static const uint32_t weight_ranks[WEIGHTS] = {2, 1, 2, 1};

static void step_on_mesh(const ax_value *in, ax_value *out, void *mesh) {
  ax_shard_map(mesh, "_,model; model; model; ; data; data -> ; _,model; model; model; ", AX_FN(step, 6, 5), in, out);
}
static void predict_on_mesh(const ax_value *in, ax_value *out, void *mesh) {
  ax_shard_map(mesh, "_,model; model; model; ;  -> ", AX_FN(predict, 5, 1), in, out);
}

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

static void check(ax_status status) {
  if (status == AX_OK) return;
  fprintf(stderr, "digits: %s\n", ax_message());
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes);
  if (memory == NULL) {
    fprintf(stderr, "digits: out of memory\n");
    exit(1);
  }
  return memory;
}

static table read_digits(const char *path) {
  ax_host_array csv;
  check(ax_csv_read(path, &csv));
  if (csv.dims[1] != PIXELS + 1 || csv.dims[0] <= TEST_ROWS) {
    fprintf(stderr, "digits: %s: expected more than %d rows of %d numbers\n", path, TEST_ROWS, PIXELS + 1);
    exit(1);
  }
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

/* --- Training --- */

typedef struct training {
  ax_runtime *runtime;
  ax_mesh mesh;
  ax_executable *step, *predict;
  ax_array *weights[WEIGHTS];
  int64_t batch;
} training;

static ax_executable *compile(training *t, ax_fn f, const ax_type *types, ax_args donate) {
  ax_program *program;
  ax_executable *executable;
  f.context = &t->mesh;
  check(ax_trace(f, types, &program));
  check(ax_compile(t->runtime, program, &(ax_compile_options){.donate = donate}, &executable));
  ax_program_release(program);
  return executable;
}

static void put_weights(training *t) {
  uint64_t kept = random_state;
  random_state = 7; /* the same weights on every mesh */
  for (int w = 0; w < WEIGHTS; w++) {
    ax_type type = ax_array_type(AX_F32, weight_ranks[w], weight_dims[w]);
    int64_t elems = ax_type_elems(&type);
    float *values = allocate((size_t)elems * sizeof values[0]);
    double scale = weight_ranks[w] == 2 ? sqrt(2.0 / (double)weight_dims[w][0]) : 0;
    for (int64_t i = 0; i < elems; i++) {
      double sum = 0; /* nearly normal */
      for (int k = 0; k < 12; k++) sum += (double)random_bits() / 2147483648.0;
      values[i] = (float)((sum - 6) * scale);
    }
    check(ax_device_put(t->runtime, &t->mesh, weight_specs[w], &type, values, &t->weights[w]));
    free(values);
  }
  random_state = kept;
}

static training start(const char *mesh, int64_t batch) {
  training t = {.batch = batch};
  check(ax_runtime_create(NULL, &t.runtime));
  check(ax_mesh_parse(mesh, &t.mesh));
  put_weights(&t);
  ax_type types[6];
  for (int w = 0; w < WEIGHTS; w++) types[w] = ax_array_type(AX_F32, weight_ranks[w], weight_dims[w]);
  types[4] = ax_array_type(AX_F32, 2, (int64_t[]){batch, PIXELS});
  types[5] = ax_array_type(AX_S32, 1, (int64_t[]){batch});
  t.step = compile(&t, AX_FN(step_on_mesh, 6, 5), types, AX_FIRST(WEIGHTS));
  types[4] = ax_array_type(AX_F32, 2, (int64_t[]){TEST_ROWS, PIXELS});
  t.predict = compile(&t, AX_FN(predict_on_mesh, 5, 1), types, AX_FIRST(0));
  return t;
}

static void finish(training *t) {
  for (int w = 0; w < WEIGHTS; w++) ax_array_release(t->weights[w]);
  ax_executable_release(t->step);
  ax_executable_release(t->predict);
  ax_runtime_release(t->runtime);
}

static float take_step(training *t, const float *pixels, const int32_t *labels) {
  ax_array *in[6], *out[5];
  float value;
  memcpy(in, t->weights, sizeof t->weights);
  check(ax_executable_put(t->step, 4, pixels, &in[4]));
  check(ax_executable_put(t->step, 5, labels, &in[5]));
  check(ax_run(t->step, 6, in, 5, out));
  check(ax_array_read(out[0], &value, sizeof value));
  ax_array_release(out[0]);
  for (int i = 0; i < 6; i++) ax_array_release(in[i]);
  memcpy(t->weights, out + 1, sizeof t->weights);
  return value;
}

static double accuracy(const training *t, const table *data) {
  ax_array *in[5], *out;
  int32_t classes[TEST_ROWS];
  int right = 0, first = data->rows - TEST_ROWS;
  memcpy(in, t->weights, sizeof t->weights);
  check(ax_executable_put(t->predict, 4, data->pixels + first * PIXELS, &in[4]));
  check(ax_run(t->predict, 5, in, 1, &out));
  check(ax_array_read(out, classes, sizeof classes));
  for (int i = 0; i < TEST_ROWS; i++) right += classes[i] == data->labels[first + i];
  ax_array_release(in[4]);
  ax_array_release(out);
  return 100.0 * right / TEST_ROWS;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* `batch` random training rows a step, the same on every mesh. */
static void pick_batch(const table *data, int64_t batch, float *pixels, int32_t *labels) {
  for (int64_t i = 0; i < batch; i++) {
    size_t row = random_bits() % (uint64_t)(data->rows - TEST_ROWS);
    memcpy(pixels + i * PIXELS, data->pixels + row * PIXELS, PIXELS * sizeof pixels[0]);
    labels[i] = data->labels[row];
  }
}

static float *read_weights(const training *t, int w, int64_t *count) {
  *count = ax_type_elems(ax_array_get_type(t->weights[w]));
  float *values = allocate((size_t)*count * sizeof values[0]);
  check(ax_array_read(t->weights[w], values, (size_t)*count * sizeof values[0]));
  return values;
}

/* t's weights as they are, for another training. */
static void copy_weights(const training *t, training *other) {
  for (int w = 0; w < WEIGHTS; w++) {
    int64_t count;
    float *values = read_weights(t, w, &count);
    ax_array_release(other->weights[w]);
    check(ax_device_put(other->runtime, &other->mesh, weight_specs[w], ax_array_get_type(t->weights[w]), values, &other->weights[w]));
    free(values);
  }
}

/* The largest difference of two trainings' weights, relative to the largest weight of its array. */
static double weights_apart(const training *t, const training *other) {
  double most = 0;
  for (int w = 0; w < WEIGHTS; w++) {
    int64_t count;
    float *a = read_weights(t, w, &count), *b = read_weights(other, w, &count);
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
      apart = fmax(apart, fabs((double)a[i] - (double)b[i]));
      size = fmax(size, fabs((double)b[i]));
    }
    if (size > 0 && !(apart / size <= most)) most = apart / size;
    free(a);
    free(b);
  }
  return most;
}

/* Trains, each step beside the same step on one device: from the same weights, on the same rows. *difference: the largest there is,
   relative, between the two losses or the weights they make. Gives the accuracy on the held-out rows. */
static double train(training *t, training *one, const table *data, int steps, double *difference) {
  float *pixels = allocate((size_t)t->batch * PIXELS * sizeof pixels[0]);
  int32_t *labels = allocate((size_t)t->batch * sizeof labels[0]);
  double spent = 0;
  random_state = 42;
  for (int i = 0; i < steps; i++) {
    pick_batch(data, t->batch, pixels, labels);
    copy_weights(t, one);
    double begin = seconds();
    double loss = (double)take_step(t, pixels, labels);
    spent += seconds() - begin;
    double alone = (double)take_step(one, pixels, labels);
    double apart[] = {fabs(loss - alone) / fabs(alone), weights_apart(t, one)};
    for (int k = 0; k < 2; k++)
      if (!(apart[k] <= *difference)) *difference = apart[k];
    if ((i + 1) % REPORT_EVERY == 0 || i + 1 == steps)
      printf("step %4d  loss %.4f  accuracy %5.2f %%  %6.0f steps/s\n", i + 1, loss, accuracy(t, data), (i + 1) / spent);
  }
  free(pixels);
  free(labels);
  return accuracy(t, data);
}

static void show_weights(const training *t) {
  for (int w = 0; w < WEIGHTS; w++) {
    char *picture;
    check(ax_array_picture(t->weights[w], &picture));
    printf("%s: %s\n", weight_names[w], picture);
    ax_string_free(picture);
  }
}

static void save_weights(const training *t, const char *path) {
  ax_host_array arrays[WEIGHTS] = {0};
  for (int w = 0; w < WEIGHTS; w++) {
    const ax_type *type = ax_array_get_type(t->weights[w]);
    size_t bytes = (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype);
    arrays[w] = (ax_host_array){.dtype = type->dtype, .rank = type->rank, .data = allocate(bytes)};
    memcpy(arrays[w].dims, type->dims, sizeof type->dims);
    check(ax_array_read(t->weights[w], arrays[w].data, bytes));
  }
  check(ax_npz_write(path, WEIGHTS, weight_names, arrays));
  for (int w = 0; w < WEIGHTS; w++) free(arrays[w].data);
  printf("saved %s\n", path);
}

/* "data=256" -> "data=256,model=1": the model names both axes. free(). */
static char *complete_mesh(const char *given) {
  static const char *const axes[] = {"data", "model"};
  size_t bytes = strlen(given) + sizeof ",data=1,model=1";
  char *mesh = allocate(bytes);
  snprintf(mesh, bytes, "%s", given);
  for (int i = 0; i < 2; i++) {
    ax_mesh parsed;
    check(ax_mesh_parse(mesh, &parsed));
    size_t length = strlen(mesh);
    if (ax_mesh_find(&parsed, axes[i]) < 0) snprintf(mesh + length, bytes - length, "%s%s=1", length ? "," : "", axes[i]);
  }
  return mesh;
}

static int64_t batch_for(const char *mesh) { /* at least 256, and what the data axis divides */
  ax_mesh parsed;
  check(ax_mesh_parse(mesh, &parsed));
  int64_t parts = parsed.axis[ax_mesh_find(&parsed, "data")].size;
  return (256 + parts - 1) / parts * parts;
}

int main(int argc, char **argv) {
  const char *given = "data=4,model=2", *out = "digits.npz";
  int steps = 600, option;
  static const struct option options[] = {
      {"mesh", required_argument, NULL, 'm'}, {"steps", required_argument, NULL, 's'},
      {"out", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0}};
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option == 'm') given = optarg;
    if (option == 's') steps = atoi(optarg);
    if (option == 'o') out = optarg;
    if (option == '?') return 2;
  }
  if (optind + 1 != argc || steps < 1) {
    fprintf(stderr, "usage: digits [--mesh data=4,model=2] [--steps 600] [--out digits.npz] data/digits.csv.gz\n");
    return 2;
  }
  char *mesh = complete_mesh(given);
  table data = read_digits(argv[optind]);

  training t = start(mesh, batch_for(mesh)), one = start("data=1,model=1", t.batch);
  printf("MLP %d-%d-%d on a mesh %s, batch %lld of %d rows\n\n", PIXELS, HIDDEN, CLASSES, mesh, (long long)t.batch, data.rows - TEST_ROWS);
  show_weights(&t);
  double difference = 0, right = train(&t, &one, &data, steps, &difference);
  save_weights(&t, out);
  printf("held-out accuracy %.2f %% of %d digits; no step differs from one device's by more than %.1e (relative)\n",
         right, TEST_ROWS, difference);
  bool good = right >= 97 && difference <= 1e-5;
  if (!good) fprintf(stderr, "digits: expected at least 97 %% and at most 1e-5\n");
  finish(&t);
  finish(&one);
  free(mesh);
  free(data.pixels);
  free(data.labels);
  return good ? 0 : 1;
}
