/* Nothing that compiling does grows faster than the program, and no run faster than the number of devices, or of arguments.
   Processor time is compared, not allocations, since what was once quadratic here took no memory for it. A program four times as
   large takes four times as long, somewhat more when caches are too small for it; the bound is half way, by exponent, to the
   sixteen times that something quadratic takes. The least of a few tries counts. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "axle/collectives.h"
#include "axle/exec.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* *context: how many. Each ppermute has other pairs than those before it. */
static void different_ppermutes(const ax_value *in, ax_value *out, void *context) {
  uint64_t state = 1;
  out[0] = in[0];
  for (int i = 0; i < *(const int *)context; i++) {
    int64_t pairs[8][2];
    for (int64_t k = 0; k < 8; k++) pairs[k][0] = pairs[k][1] = k;
    for (uint64_t k = 7; k > 0; k--) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      uint64_t other = (state >> 33) % (k + 1);
      int64_t swapped = pairs[k][1];
      pairs[k][1] = pairs[other][1];
      pairs[other][1] = swapped;
    }
    out[0] = ax_neg(ax_ppermute(out[0], "d", 8, (const int64_t(*)[2])pairs));
  }
}

static double seconds_to_compile(ax_runtime *runtime, ax_function body, int count) {
  ax_executable *executable;
  const ax_type type = TEST_TYPE(AX_F32, 8);
  const test_map map = {.mesh = "d=8", .in_specs = {"d"}, .out_specs = {"d"}, .body = body, .context = &count};
  ax_program *program = test_trace_map(&map, &type);
  double start = processor_seconds();
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  double took = processor_seconds() - start;
  ax_executable_release(executable);
  ax_program_release(program);
  return took;
}

static void compiling_follows_size(void **state) {
  (void)state;
#ifdef AXLE_VERIFIES
  skip(); /* verifiers cost more than what they look at */
#endif
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  double ratio = 16;
  (void)seconds_to_compile(runtime, different_ppermutes, 2); /* LLVM starts */
  for (int tries = 0; tries < 5 && ratio >= 8; tries++) {
    double small = seconds_to_compile(runtime, different_ppermutes, 3000),
           large = seconds_to_compile(runtime, different_ppermutes, 12000);
    if (large / small < ratio) ratio = large / small;
  }
  assert_true(ratio < 8);
  ax_runtime_release(runtime);
}

/* So many heads of attention, each on its 16 columns of three arrays. */
static void heads(const ax_value *in, ax_value *out, void *context) {
  for (int64_t i = 0; i < *(const int *)context; i++) {
    ax_value part[3];
    for (int k = 0; k < 3; k++) part[k] = ax_slice_in_dim(in[k], 16 * i, 16 * i + 16, 1, 1);
    ax_value scores = ax_matmul(part[0], ax_transpose(part[1], AX_DIMS(1, 0)));
    ax_value sum = ax_reduce_sum(ax_matmul(ax_softmax(scores, -1), part[2]), AX_ALL_DIMS, false);
    out[0] = i == 0 ? sum : ax_add(out[0], sum);
  }
}

static void gradient_of_heads(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(heads, 3, 1, context), AX_FIRST(3), in, out);
}

static uint64_t kernels_of(ax_fn function) {
  ax_runtime *runtime;
  ax_executable *executable;
  const ax_type x = TEST_TYPE(AX_F32, 32, 512), types[] = {x, x, x};
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_jit(runtime, function, types, NULL, &executable));
  const uint64_t compiled = ax_runtime_counters(runtime).kernels_compiled;
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return compiled;
}

/* Heads do the same at other places, so they share code; there may be a few more sums. */
static void kernels_do_not_follow_places(void **state) {
  (void)state;
  int few = 5, many = 20;
  assert_true(kernels_of(AX_CLOSURE(heads, 3, 1, &many)) <= kernels_of(AX_CLOSURE(heads, 3, 1, &few)) + 4);
}

/* Nor do those of their gradient, which writes each part of the gradient where it lies. */
static void kernels_of_gradients_do_not_follow_places(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where other kernels are done together */
  int few = 8, many = 32;
  assert_true(kernels_of(AX_CLOSURE(gradient_of_heads, 3, 3, &many)) <=
              kernels_of(AX_CLOSURE(gradient_of_heads, 3, 3, &few)) + 4);
}

/* Columns scaled by one factor after the other. */
static void factors(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int i = 0; i < *(const int *)context; i++) {
    ax_value sum = ax_reduce_sum(out[0], AX_DIMS(0), true);
    out[0] = ax_mul(ax_sub(out[0], ax_mul(sum, ax_full_like(sum, 1.0 / (3 + i)))), in[1]);
  }
}

/* Kernels that differ in a number alone share code. */
static void kernels_do_not_follow_numbers(void **state) {
  (void)state;
  int few = 8, many = 64;
  assert_true(kernels_of(AX_CLOSURE(factors, 3, 1, &many)) <= kernels_of(AX_CLOSURE(factors, 3, 1, &few)) + 4);
}

/* --- Runs --- */

static void read_by_each(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_psum(in[0], "d"), in[0]);
}

static void step_around(const ax_value *in, ax_value *out, void *context) {
  int devices = *(const int *)context;
  int64_t(*pairs)[2] = malloc((size_t)devices * sizeof pairs[0]);
  assert_non_null(pairs);
  for (int d = 0; d < devices; d++) pairs[d][0] = d, pairs[d][1] = (d + 1) % devices;
  out[0] = ax_add(ax_ppermute(in[0], "d", (uint32_t)devices, (const int64_t(*)[2])pairs), in[0]);
  free(pairs);
}

static void around_in_a_loop(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(step_around, 1, 1, context), 1, 4, false, in, out);
}

/* What each device reads itself of a collective: on a mesh of so many. The least of a few runs. */
static double seconds_to_run(ax_runtime *runtime, ax_function body, int devices) {
  ax_executable *executable;
  ax_array *in, *out;
  char mesh[32];
  snprintf(mesh, sizeof mesh, "d=%d", devices);
  const ax_type type = TEST_TYPE(AX_F32, devices);
  const test_map map = {.mesh = mesh, .in_specs = {"d"}, .out_specs = {"d"}, .body = body, .context = &devices};
  ax_program *program = test_trace_map(&map, &type);
  float *data = calloc((size_t)devices, sizeof data[0]);
  assert_non_null(data);
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_executable_put(executable, 0, data, &in));
  double least = 0;
  for (int time = 0; time < 4; time++) {
    double start = processor_seconds();
    TEST_OK(ax_run(executable, &in, &out));
    double took = processor_seconds() - start;
    if (time == 0 || took < least) least = took;
    ax_array_release(out);
  }
  ax_array_release(in);
  free(data);
  ax_executable_release(executable);
  ax_program_release(program);
  return least;
}

static void running_follows_devices(void **state) {
  (void)state;
  const ax_function bodies[] = {read_by_each, around_in_a_loop};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  for (size_t i = 0; i < AX_COUNT(bodies); i++) {
    double ratio = 16;
    for (int tries = 0; tries < 5 && ratio >= 8; tries++) {
      double small = seconds_to_run(runtime, bodies[i], 4096), large = seconds_to_run(runtime, bodies[i], 16384);
      if (large / small < ratio) ratio = large / small;
    }
    assert_true(ratio < 8);
  }
  ax_runtime_release(runtime);
}

static void same(const ax_value *in, ax_value *out, void *context) {
  for (int i = 0; i < *(const int *)context; i++) out[i] = in[i];
}

/* Of a program that gives each of so many donated arguments as a result. The least of a few runs. */
static double seconds_to_pass_on(ax_runtime *runtime, int count) {
  const size_t size = (size_t)count;
  const ax_type scalar = {.dtype = AX_F32};
  const float zero = 0;
  ax_executable *executable;
  ax_type *types = calloc(size, sizeof types[0]);
  ax_array **in = calloc(size, sizeof(ax_array *)), **out = calloc(size, sizeof(ax_array *));
  assert_true(types != NULL && in != NULL && out != NULL);
  for (int i = 0; i < count; i++) types[i] = scalar;
  TEST_OK(ax_jit(runtime, AX_CLOSURE(same, (uint32_t)count, (uint32_t)count, &count), types,
                 &(ax_compile_options){.donate = AX_ALL_ARGS}, &executable));
  double least = 0;
  for (int time = 0; time < 4; time++) {
    for (int i = 0; i < count; i++) TEST_OK(ax_device_put_data(runtime, NULL, "", &scalar, &zero, &in[i]));
    double start = processor_seconds();
    TEST_OK(ax_run(executable, AX_LIST((uint32_t)count, in), AX_LIST((uint32_t)count, out)));
    double took = processor_seconds() - start;
    if (time == 0 || took < least) least = took;
    for (int i = 0; i < count; i++) ax_array_release(in[i]);
    for (int i = 0; i < count; i++) ax_array_release(out[i]);
  }
  ax_executable_release(executable);
  free(types);
  free(in);
  free(out);
  return least;
}

static void calls_follow_arguments(void **state) {
  (void)state;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  double ratio = 16;
  for (int tries = 0; tries < 5 && ratio >= 8; tries++) {
    double small = seconds_to_pass_on(runtime, 4000), large = seconds_to_pass_on(runtime, 16000);
    if (large / small < ratio) ratio = large / small;
  }
  assert_true(ratio < 8);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compiling_follows_size),
      cmocka_unit_test(kernels_do_not_follow_places),
      cmocka_unit_test(kernels_of_gradients_do_not_follow_places),
      cmocka_unit_test(kernels_do_not_follow_numbers),
      cmocka_unit_test(running_follows_devices),
      cmocka_unit_test(calls_follow_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
