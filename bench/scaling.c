/* How the time to trace, differentiate and compile grows with a program: families of programs of any size.

   Each is measured once in a process of its own. The derivative is taken inside the trace, by ax_value_and_grad; the time of the
   function it traces is the trace's, the rest is the derivative's. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "cases.h"
#include "job.h"
#include "serve.h"
#include "transformer.h"

/* One program under measurement. */
typedef struct subject {
  int64_t n;
  job_function job;
  ax_function loss;  /* NULL: the job's body is all there is; otherwise it is the loss and its gradients by the first wrt_count */
  void *loss_context;
  uint32_t wrt_count;
  double inner, whole; /* seconds in the loss, and in ax_value_and_grad */
} subject;

static void *room(int64_t count, size_t bytes) {
  void *memory = calloc((size_t)count, bytes);
  if (memory == NULL) abort();
  return memory;
}

/* --- The derivative, timed --- */

static void timed_loss(const ax_value *in, ax_value *out, void *context) {
  subject *s = context;
  double start = bench_seconds();
  s->loss(in, out, s->loss_context);
  s->inner += bench_seconds() - start;
}

static void value_and_grad(subject *s, const ax_value *in, uint32_t in_count, ax_value *out) {
  double start = bench_seconds();
  ax_value_and_grad(timed_loss, s, in, in_count, s->wrt_count, out);
  s->whole += bench_seconds() - start;
}

static void gradients_of_loss(const ax_value *in, ax_value *out, void *context) {
  subject *s = context;
  value_and_grad(s, in, s->job.in_count, out);
}

/* --- Inputs --- */

/* So many inputs of one shape, over "d" if there is a mesh, and results that lie as `out_spec` says. */
static void shape(subject *s, ax_function body, int64_t in_count, int64_t out_count, const int64_t *dims, uint32_t rank,
                  const char *out_spec) {
  ax_type *types = room(in_count, sizeof types[0]);
  const char **specs = room(in_count + out_count, sizeof specs[0]);
  for (int64_t i = 0; i < in_count; i++) {
    types[i] = ax_array_type(AX_F32, rank, dims);
    specs[i] = "d";
  }
  for (int64_t i = 0; i < out_count; i++) specs[in_count + i] = out_spec;
  s->job = (job_function){body, s, s->job.mesh, (uint32_t)in_count, (uint32_t)out_count, types, specs, specs + in_count};
}

#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void differentiated(subject *s, ax_function loss, uint32_t in_count, const int64_t *dims, uint32_t rank) {
  s->loss = loss;
  s->loss_context = s;
  s->wrt_count = in_count;
  shape(s, gradients_of_loss, in_count, 1 + in_count, dims, rank, "");
}

/* --- The families. n: equations, layers, parameters, steps or collectives --- */

static ax_value chained(const subject *s, ax_value x, ax_value y) {
  for (int64_t i = 0; i < s->n; i++) x = i % 2 == 0 ? ax_mul(x, y) : ax_add(x, y);
  return x;
}

static void chain_body(const ax_value *in, ax_value *out, void *context) { out[0] = chained(context, in[0], in[1]); }
static void chain(subject *s) { shape(s, chain_body, 2, 1, DIMS(1024), ""); }

static void chain_loss(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_reduce_sum(chained(context, in[0], in[1]), NULL, 0);
}
static void chain_grad(subject *s) { differentiated(s, chain_loss, 2, DIMS(1024)); }

static void products_loss(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  ax_value x = in[0];
  for (int64_t i = 0; i < s->n; i++) x = ax_matmul(x, in[1]);
  out[0] = ax_reduce_sum(x, NULL, 0);
}
static void products_grad(subject *s) { differentiated(s, products_loss, 2, DIMS(64, 64)); }

static void layernorm_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  const int64_t last = -1;
  ax_value x = in[0];
  for (int64_t i = 0; i < s->n; i++) {
    ax_value centred = ax_sub(x, ax_expand_dims(ax_mean(x, &last, 1), -1));
    ax_value variance = ax_expand_dims(ax_mean(ax_mul(centred, centred), &last, 1), -1);
    x = ax_mul(ax_mul(centred, ax_rsqrt(ax_add(variance, ax_full_like(variance, 1e-5)))), in[1]);
  }
  out[0] = x;
}
static void layernorm(subject *s) { shape(s, layernorm_body, 2, 1, DIMS(64, 256), ""); }

static ax_value times(double factor, ax_value x) { return ax_mul(ax_full_like(x, factor), x); }

/* (w.., g..) -> w.. */
static void sgd_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  for (int64_t i = 0; i < s->n; i++) out[i] = ax_sub(in[i], times(0.1, in[s->n + i]));
}
static void sgd(subject *s) { shape(s, sgd_body, 2 * s->n, s->n, DIMS(16, 16), ""); }

/* (w.., m.., v.., g..) -> w.., m.., v.. */
static void adam_body(const ax_value *in, ax_value *out, void *context) {
  int64_t n = ((const subject *)context)->n;
  for (int64_t i = 0; i < n; i++) {
    ax_value w = in[i], g = in[3 * n + i];
    ax_value m = ax_add(times(0.9, in[n + i]), times(0.1, g));
    ax_value v = ax_add(times(0.999, in[2 * n + i]), times(0.001, ax_mul(g, g)));
    ax_value root = ax_sqrt(v);
    out[i] = ax_sub(w, ax_div(times(0.01, m), ax_add(root, ax_full_like(root, 1e-8))));
    out[n + i] = m;
    out[2 * n + i] = v;
  }
}
static void adam(subject *s) { shape(s, adam_body, 4 * s->n, 3 * s->n, DIMS(16, 16), ""); }

static void training_loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value error = ax_sub(ax_matmul(ax_tanh(ax_matmul(in[2], in[0])), in[1]), in[3]);
  out[0] = ax_mean(ax_mul(error, error), NULL, 0);
}

/* n steps, one after the other: (w1, w2, x, y) -> w1, w2 */
static void training_body(const ax_value *in, ax_value *out, void *context) {
  subject *s = context;
  ax_value now[4] = {in[0], in[1], in[2], in[3]}, made[3];
  for (int64_t i = 0; i < s->n; i++) {
    value_and_grad(s, now, 4, made);
    for (int k = 0; k < 2; k++) now[k] = ax_sub(now[k], times(0.1, made[1 + k]));
  }
  out[0] = now[0];
  out[1] = now[1];
}
static void training(subject *s) {
  s->loss = training_loss;
  s->wrt_count = 2;
  shape(s, training_body, 4, 2, DIMS(32, 32), "");
}

static void sequence_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  ax_value x = in[0];
  for (int64_t i = 0; i < s->n; i++) x = ax_mul(ax_psum(x, "d"), in[1]);
  out[0] = x;
}
static void psums_in_sequence(subject *s) {
  s->job.mesh = "d=8";
  shape(s, sequence_body, 2, 1, DIMS(64), "d");
}

static void side_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  for (int64_t i = 0; i < s->n; i++) out[i] = ax_psum(in[i], "d");
}
static void psums_side_by_side(subject *s) {
  s->job.mesh = "d=8";
  shape(s, side_body, s->n, s->n, DIMS(64), "");
}

static void transformer(subject *s) {
  transformer_sizes *sizes = room(1, sizeof *sizes);
  *sizes = (transformer_sizes){s->n, 256, 8, 1024, 128, 32, 256};
  model *m = transformer_model(sizes);
  const char **out_specs = room(1 + m->weight_count, sizeof out_specs[0]);
  out_specs[0] = "";
  memcpy(out_specs + 1, m->specs, m->weight_count * sizeof out_specs[0]);
  s->loss = m->loss;
  s->loss_context = m;
  s->wrt_count = m->weight_count;
  s->job = (job_function){gradients_of_loss, s, m->mesh, m->input_count, 1 + m->weight_count, m->types, m->specs, out_specs};
}

static const struct {
  const char *name;
  void (*make)(subject *);
} families[] = {
    {"chain", chain},
    {"chain_grad", chain_grad},
    {"products_grad", products_grad},
    {"layernorm", layernorm},
    {"sgd", sgd},
    {"adam", adam},
    {"training", training},
    {"psums_in_sequence", psums_in_sequence},
    {"psums_side_by_side", psums_side_by_side},
    {"transformer", transformer},
};

/* --- Memory: what Axle itself holds --- */

/* `user` counts the bytes held. The size stands before the memory. */
static void *counted_allocate(void *user, size_t bytes, size_t align) {
  char *memory;
  size_t lead = align > sizeof bytes ? align : sizeof bytes;
  if (posix_memalign((void **)&memory, lead, lead + bytes) != 0) return NULL;
  memcpy(memory + lead - sizeof bytes, &bytes, sizeof bytes);
  atomic_fetch_add((atomic_size_t *)user, bytes);
  return memory + lead;
}

static void counted_release(void *user, void *memory) {
  size_t bytes, lead = 64; /* Axle asks for nothing but lines */
  memcpy(&bytes, (char *)memory - sizeof bytes, sizeof bytes);
  atomic_fetch_sub((atomic_size_t *)user, bytes);
  free((char *)memory - lead);
}

static int64_t equations_of(const ax_program *program) {
  char *text;
  int64_t count = 0;
  check(ax_program_print(program, &text));
  for (const char *at = text; (at = strchr(at, '=')) != NULL; at++) count += at[-1] == ' ' && at[1] == ' ';
  ax_string_free(text);
  return count > 0 ? count : 1;
}

/* FAMILY N: seconds in all, to trace, to differentiate and to compile; bytes that the executable keeps, an equation. */
void scaling(char **arguments) {
  static atomic_size_t held; /* threads that end with the process may still release memory */
  subject s = {.n = atoll(arguments[1])};
  size_t which = 0;
  while (which < sizeof families / sizeof families[0] && strcmp(families[which].name, arguments[0]) != 0) which++;
  if (which == sizeof families / sizeof families[0]) {
    fprintf(stderr, "no family of programs is called %s\n", arguments[0]);
    exit(1);
  }
  ax_set_allocator(&(ax_allocator){counted_allocate, counted_release, &held});
  families[which].make(&s);
  ax_runtime *runtime;
  ax_executable *executable;
  check(ax_runtime_create(NULL, &runtime));
  bench_wait();
  double start = bench_seconds();
  ax_program *program = job_trace(&s.job);
  double traced = bench_seconds();
  size_t before = held;
  check(ax_compile(runtime, program, NULL, &executable));
  double compiled = bench_seconds(), grad = s.whole - s.inner;
  size_t kept = held - before;
  printf("%.6g %.6g %.6g %.6g %.6g\n", compiled - start, traced - start - grad, grad, compiled - traced,
         (double)kept / (double)equations_of(program));
  fflush(stdout);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}
