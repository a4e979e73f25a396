/* Programs on meshes: every policy gives the same bits, and reference evaluation's values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static void check(test_map m, const ax_type *types) {
  test_random random = {7};
  ax_tensor *in[8];
  ax_program *program = test_trace_map(&m, types);
  uint32_t count = ax_program_in_count(program);
  for (uint32_t i = 0; i < count; i++) in[i] = test_random_tensor(&random, types[i], -2, 2);
  TEST_EVERY_WAY(program, in, 1e-5);
  test_release(in, count);
  ax_program_release(program);
}

static void add_one(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_full_like(in[0], 1));
}

static void one_device(void **state) {
  (void)state;
  ax_type type = TEST_TYPE(AX_F32, 5, 7);
  ax_program *program = test_trace(add_one, NULL, &type, 1, 1);
  test_random random = {1};
  ax_tensor *x = test_random_tensor(&random, type, -1, 1);
  TEST_EVERY_WAY(program, &x, 0);
  test_release(&x, 1);
  ax_program_release(program);
}

static void eight_devices(void **state) {
  (void)state;
  check((test_map){"d=8", {"d"}, {"d"}, .body = add_one}, (ax_type[]){TEST_TYPE(AX_F32, 16)});
}

static void sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
}

static void psum(void **state) {
  (void)state;
  check((test_map){"d=8", {"d"}, {""}, .body = sum}, (ax_type[]){TEST_TYPE(AX_F32, 16)});
  check((test_map){"d=64", {"d"}, {""}, .body = sum}, (ax_type[]){TEST_TYPE(AX_BF16, 64, 3)});
  check((test_map){"d=5", {"d"}, {""}, .body = sum}, (ax_type[]){TEST_TYPE(AX_S32, 35)});
}

static void sum_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_sub(ax_psum(in[0], "d"), in[0]), ax_full_like(in[0], 0.125)); /* differs in each step */
}

static void sums_in_a_scan(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(sum_body, 1, 1), 1, 20, false, in, out);
}

static void psum_in_a_scan(void **state) {
  (void)state;
  check((test_map){"d=8", {"d"}, {"d"}, .body = sums_in_a_scan}, (ax_type[]){TEST_TYPE(AX_F32, 8)});
  check((test_map){"d=3", {"d"}, {"d"}, .body = sums_in_a_scan}, (ax_type[]){TEST_TYPE(AX_F32, 3, 100)});
}

/* A few elements each, so that one call combines what all members have, where all have come. */
static void small_body(const ax_value *in, ax_value *out, void *context) {
  ax_value x = in[0], parts = ax_reshape(ax_broadcast_to(x, AX_DIMS(ax_axis_size("a"), ax_typeof(x).dims[0])),
                                         AX_DIMS(ax_axis_size("a") * ax_typeof(x).dims[0]));
  ax_value mixed = ax_convert_element_type(ax_psum(ax_convert_element_type(x, AX_BF16), "a"), AX_F32);
  (void)context;
  parts = ax_mul(parts, ax_add(ax_convert_element_type(ax_iota(AX_S32, AX_LIST(1, ax_typeof(parts).dims), 0), AX_F32),
                               ax_full_like(parts, 1)));
  x = ax_add(ax_mul(ax_psum_scatter(parts, "a", 0, true), ax_full_like(x, 0.01)), ax_mul(x, ax_full_like(x, 0.3)));
  out[0] = ax_sub(ax_max(x, ax_pmin(ax_neg(in[0]), "b,a")), ax_mul(mixed, ax_full_like(x, 0.02)));
}
static void small_sums(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(small_body, 1, 1), 1, 6, false, in, out);
}
static void psum_of_little(void **state) {
  (void)state;
  check((test_map){"a=8,b=2", {"a+b"}, {"a+b"}, .body = small_sums}, (ax_type[]){TEST_TYPE(AX_F32, 16)});
  check((test_map){"a=4,b=2", {"a+b"}, {"a+b"}, .body = small_sums}, (ax_type[]){TEST_TYPE(AX_F32, 24)});
  check((test_map){"a=16,b=1", {"a+b"}, {"a+b"}, .body = small_sums}, (ax_type[]){TEST_TYPE(AX_F32, 16)});
}

static void all_kinds(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}};
  ax_value x = in[0];
  out[0] = ax_all_gather(x, "a", 0, true);
  out[1] = ax_psum_scatter(x, "a", 0, true);
  out[2] = ax_all_to_all(x, "a", 0, 1, true);
  out[3] = ax_ppermute(x, "a", 3, ring);
  out[4] = ax_add(ax_pmax(x, "a"), ax_pmin(x, "b"));
  out[5] = ax_psum(ax_convert_element_type(ax_axis_index("b,a"), AX_F32), "a");
  out[6] = ax_psum(x, "b,a");
}

static void collectives(void **state) {
  (void)state;
  test_map m = {"a=4,b=2", {"a,b"}, {"a,b", "a,b", "a,b", "a,b", "a,b", "", ""}, .body = all_kinds, .unchecked = true};
  check(m, (ax_type[]){TEST_TYPE(AX_F32, 16, 6)});
}

/* Uniform values computed by one device and read by all, inside a loop: reuse of their memory must wait. */
static void mix_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value uniform = ax_mul(in[0], ax_full_like(in[0], 0.5)), mine = ax_add(in[1], uniform);
  out[0] = ax_add(uniform, ax_psum(mine, "d"));
  out[1] = ax_tanh(mine);
}

static void mixed_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(mix_body, 2, 2), 2, 9, false, in, out);
}

static void uniform_values_in_loops(void **state) {
  (void)state;
  check((test_map){"d=4", {"", "d"}, {"", "d"}, .body = mixed_loop}, (ax_type[]){TEST_TYPE(AX_F32, 6), TEST_TYPE(AX_F32, 24)});
}

static void sum_and_scatter(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "b");
  out[1] = ax_psum_scatter(in[0], "b,a", 0, true);
  out[2] = ax_pmax(ax_mul(in[0], ax_full_like(in[0], 2)), "a");
}

/* Contributions large enough to be combined block by block by whoever comes last, and others beside them in turn. */
static void large_contributions(void **state) {
  (void)state;
  test_map m = {"a=2,b=4", {"a+b"}, {"a", "b+a", "b"}, .body = sum_and_scatter};
  check(m, (ax_type[]){TEST_TYPE(AX_F32, 8 * 64 * 1024)});
}

/* The same of values that devices make, one after another or as they come: sums cut in blocks, whole or in rows. */
static void sum_made_values(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made = ax_mul(in[0], ax_full_like(in[0], 0.3)), more = ax_tanh(made);
  out[0] = ax_psum(made, "b");
  out[1] = ax_psum_scatter(made, "b,a", 0, true);
  out[2] = ax_pmax(more, "a");
  out[3] = ax_psum_scatter(more, "b", 1, true);
}

static void large_made_values(void **state) {
  (void)state;
  test_map m = {"a=2,b=4", {"a+b"}, {"a", "b+a", "b", "a,b"}, .body = sum_made_values};
  check(m, (ax_type[]){TEST_TYPE(AX_F32, 8 * 64, 1024)});
}

/* What each device makes is large, and is added to a sum when its turn comes: what runs at once are as many as there are threads,
   and each has one block of scratch memory. */
enum { edge = 2048 };

static void sum_products(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(ax_tanh(ax_matmul(in[0], ax_transpose(in[0], AX_DIMS(1, 0)))), "d");
}

static void a_block_a_thread(void **state) {
  (void)state;
  const test_map map = {"d=12", {"d"}, {""}, .body = sum_products};
  const ax_type type = TEST_TYPE(AX_F32, 12 * edge, 4);
  const size_t whole = (size_t)edge * edge * sizeof(float);
  ax_program *program = test_trace_map(&map, &type);
  float *data = calloc((size_t)ax_type_elems(&type), sizeof data[0]);
  for (uint32_t workers = 1; workers <= 3; workers++) {
    ax_runtime *runtime;
    ax_executable *executable;
    ax_array *x, *y;
    size_t before, now, peak;
    TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
    TEST_OK(ax_compile(runtime, program, NULL, &executable));
    TEST_OK(ax_executable_put(executable, 0, data, &x));
    ax_runtime_memory(runtime, &before, &peak);
    TEST_OK(ax_run(executable, &x, &y));
    ax_runtime_memory(runtime, &now, &peak);
    assert_true(peak - before >= 2 * whole); /* the sum, and what one device makes */
    assert_true(peak - before <= (1 + workers) * (whole + whole / 32));
    ax_array_release(x);
    ax_array_release(y);
    ax_executable_release(executable);
    ax_runtime_release(runtime);
  }
  ax_program_release(program);
  free(data);
}

/* --- Temporaries of several programs --- */

enum { in_turn = 12, wide = 512 };

static void sum_of_sorted(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(ax_sub(ax_sort(in[0], 0), ax_transpose(ax_sort(ax_transpose(in[0], AX_DIMS(1, 0)), 0), AX_DIMS(1, 0))), AX_ALL_DIMS, false);
}

/* Programs that are kept hold no temporaries between their calls, on one device and on several: all together hold those of the largest. */
static void temporaries_of_programs_in_turn(const char *devices) {
  ax_executable *executables[in_turn];
  ax_program *programs[in_turn];
  ax_array *x[in_turn], *y;
  ax_runtime *runtime;
  float *data = calloc((size_t)wide * wide, sizeof data[0]);
  size_t before, now, peak, one = 0;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  for (int p = 0; p < in_turn; p++) {
    const ax_type type = TEST_TYPE(AX_F32, wide - 32 * p, wide);
    const test_map map = {devices, {""}, {""}, .body = sum_of_sorted};
    programs[p] = test_trace_map(&map, &type);
    TEST_OK(ax_compile(runtime, programs[p], NULL, &executables[p]));
    TEST_OK(ax_executable_put(executables[p], 0, data, &x[p]));
  }
  ax_runtime_memory(runtime, &before, &peak);
  for (int round = 0; round < 2; round++)
    for (int p = 0; p < in_turn; p++) {
      TEST_OK(ax_run(executables[p], &x[p], &y));
      ax_array_release(y);
      ax_runtime_memory(runtime, &now, &peak);
      if (one == 0) one = now - before;
      assert_true(now - before <= one + one / 16);
    }
  assert_true(one >= (size_t)wide * wide * sizeof data[0]);
  ax_runtime_trim(runtime);
  ax_runtime_memory(runtime, &now, &peak);
  assert_true(now <= before + one / 16); /* even while they are kept */
  for (int p = 0; p < in_turn; p++) {
    ax_array_release(x[p]);
    ax_executable_release(executables[p]);
    ax_program_release(programs[p]);
  }
  ax_runtime_release(runtime);
  free(data);
}

static void temporaries_in_turn(void **state) {
  (void)state;
  temporaries_of_programs_in_turn("d=1");
  temporaries_of_programs_in_turn("d=4");
}

/* --- Many devices --- */

static void sum_and_own(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_mul(ax_psum(in[0], "d"), ax_full_like(in[0], 0.001)), in[0]);
}

static void sums_in_a_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(sum_and_own, 1, 1), 1, 3, false, in, out);
}

static void pass_on(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  int64_t size = ax_axis_size("d"), (*ring)[2] = calloc((size_t)size, sizeof ring[0]);
  for (int64_t i = 0; i < size; i++) ring[i][0] = i, ring[i][1] = (i + 1) % size;
  out[0] = ax_add(ax_mul(ax_ppermute(in[0], "d", (uint32_t)size, (const int64_t(*)[2])ring), ax_full_like(in[0], 0.5)), in[0]);
  free(ring);
}

static void ring_in_a_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(pass_on, 1, 1), 1, 8, false, in, out);
}

static double seconds(void) { /* this thread's own: a busy machine does not count */
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The least of some runs on one thread. */
static double run_time(ax_function body, int64_t devices, int times) {
  char mesh[32];
  snprintf(mesh, sizeof mesh, "d=%lld", (long long)devices);
  const ax_type type = TEST_TYPE(AX_F32, devices);
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  float *values = calloc((size_t)devices, sizeof values[0]);
  double least = 1e9;
  ax_program *program = test_trace_map(&(test_map){mesh, {"d"}, {"d"}, .body = body}, &type);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, values, &x));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  for (int i = 0; i < times; i++) {
    double begin = seconds();
    TEST_OK(ax_run(executable, &x, &y));
    double took = seconds() - begin;
    if (took < least) least = took;
    ax_array_release(y);
  }
  free(values);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return least;
}

/* What each device reads itself from a collective: 64 times as many devices take 64 times as long, not their square. */
static void many_devices(void **state) {
  (void)state;
  const ax_function bodies[] = {sum_and_own, sums_in_a_loop, ring_in_a_loop};
  for (size_t i = 0; i < AX_COUNT(bodies); i++) {
    double few = run_time(bodies[i], 256, 20), many = run_time(bodies[i], 256 * 64, 3);
    if (many > few * 64 * 20) fail_msg("256 devices take %g s, 64 times as many %g s", few, many);
  }
}

static void wasteful_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(ax_reduce_sum(in[0], AX_DIMS(0, 1), false), "d");
  ax_matmul(in[0], in[0]);
}

/* What nobody reads is not computed, inside shard_maps either. */
static void unread(void **state) {
  (void)state;
  test_map m = {"d=2", {"d"}, {""}, .body = wasteful_body};
  ax_program *program = test_trace_map(&m, (ax_type[]){TEST_TYPE(AX_F32, 256, 128)});
  ax_runtime *runtime;
  ax_executable *made, *again;
  char *text;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &made));
  TEST_OK(ax_compile(runtime, program, NULL, &again));
  assert_ptr_equal(made, again); /* found as the program it was compiled from */
  TEST_OK(ax_executable_text(made, &text));
  assert_null(strstr(text, "gemm"));
  assert_non_null(strstr(text, "push"));
  ax_string_free(text);
  ax_executable_release(made);
  ax_executable_release(again);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_device),
      cmocka_unit_test(eight_devices),
      cmocka_unit_test(psum),
      cmocka_unit_test(psum_in_a_scan),
      cmocka_unit_test(psum_of_little),
      cmocka_unit_test(collectives),
      cmocka_unit_test(uniform_values_in_loops),
      cmocka_unit_test(large_contributions),
      cmocka_unit_test(large_made_values),
      cmocka_unit_test(a_block_a_thread), cmocka_unit_test(temporaries_in_turn),
      cmocka_unit_test(many_devices),
      cmocka_unit_test(unread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
