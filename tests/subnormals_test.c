/* Subnormal numbers kept and flushed: the same bits compiled and by reference evaluation, fused and not, in registers of each width,
   on one thread and several; executables of both kinds side by side on one runtime; and the modes of callers' threads and of
   callbacks. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "machine/float_mode.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static const ax_subnormals ways[] = {AX_SUBNORMALS_KEEP, AX_SUBNORMALS_FLUSH};
static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};

#if defined(__x86_64__) || defined(__aarch64__)
enum { flushes = true };
#else
enum { flushes = false };
#endif

static ax_subnormals other(ax_subnormals way) { return way == AX_SUBNORMALS_KEEP ? AX_SUBNORMALS_FLUSH : AX_SUBNORMALS_KEEP; }

/* --- The same bits in all ways to compute --- */

enum { rows = 40, columns = 37, most_results = 8 };

static ax_value counted(ax_value condition, ax_value like) { return ax_convert_element_type(condition, ax_typeof(like).dtype); }

static AX_BODY(arithmetic) {
  ax_value x = in[0], y = in[1];
  out[0] = ax_add(ax_mul(x, y), ax_sub(y, x));
  out[1] = ax_div(x, y);
  out[2] = ax_max(ax_min(x, y), ax_neg(x));
  out[3] = ax_sqrt(ax_abs(ax_mul(x, ax_full_like(x, 0.25))));
  out[4] = ax_rem(x, y);
  out[5] = ax_sign(x);
  out[6] = ax_add(ax_floor(x), ax_round(y));
  out[7] = ax_square(x);
}

static AX_BODY(choices) {
  ax_value x = in[0], y = in[1], zero = ax_full_like(x, 0);
  out[0] = ax_where(ax_gt(x, zero), x, y);
  out[1] = counted(ax_eq(x, y), x);
  out[2] = counted(ax_lt(ax_abs(x), ax_abs(y)), x);
  out[3] = ax_relu(x);
  out[4] = ax_clamp(ax_full_like(x, -1), x, ax_full_like(x, 1));
  out[5] = counted(ax_convert_element_type(x, AX_BOOL), x);
  out[6] = ax_neg(ax_abs(x));
  out[7] = ax_concatenate(AX_VALUES(x, ax_neg(y)), 1);
}

static AX_BODY(conversions) {
  static const ax_dtype through[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
  for (int i = 0; i < 4; i++) {
    ax_value there = ax_convert_element_type(in[1], through[i]), back = ax_mul(there, ax_full_like(there, 0.5));
    out[2 * i] = ax_convert_element_type(in[0], through[i]);
    out[2 * i + 1] = ax_convert_element_type(back, ax_typeof(in[0]).dtype);
  }
}

static AX_BODY(reductions) {
  ax_value x = in[0], y = in[1];
  out[0] = ax_reduce_max(ax_neg(ax_abs(x)), AX_DIMS(1), false);
  out[1] = ax_reduce_min(ax_abs(x), AX_DIMS(0), false);
  out[2] = ax_reduce_max(ax_mul(x, y), AX_ALL_DIMS, false);
  out[3] = ax_convert_element_type(ax_argmax(ax_neg(ax_abs(x)), 1, AX_S32), ax_typeof(x).dtype);
  out[4] = ax_reduce_max(x, AX_DIMS(0), false);
  out[5] = ax_reduce_min(ax_reshape(x, AX_DIMS(rows * columns, 1)), AX_DIMS(1), false);
  out[6] = ax_max_pool(ax_reshape(ax_neg(ax_abs(y)), AX_DIMS(1, rows, columns, 1)), AX_DIMS(2, 2), AX_DIMS(2, 2), "VALID");
  out[7] = ax_reduce_sum(ax_reshape(x, AX_DIMS(rows * columns, 1)), AX_DIMS(1), false);
}

static AX_BODY(movements) {
  ax_value x = in[0], y = in[1], order = ax_argsort(ax_at(y, 0, 1), 0);
  out[0] = ax_sort(x, 1);
  out[1] = ax_transpose(x, AX_DIMS(1, 0));
  out[2] = ax_take(x, order, 0);
  out[3] = ax_at_set(x, order, y, 0, NULL);
  out[4] = ax_at_add(x, order, y, 0, NULL);
  out[5] = ax_at_max(ax_full_like(x, 0), order, y, 0, NULL);
  out[6] = ax_at_min(x, order, y, 0, NULL);
  out[7] = ax_pad(x, ax_at(ax_at(y, 0, 0), 0, 0), AX_DIMS(1, 0), AX_DIMS(0, 2), AX_DIMS(0, 0));
}

static AX_BODY(exchanged) {
  ax_value x = in[0], y = in[1];
  out[0] = ax_psum(x, "d");
  out[1] = ax_pmax(ax_neg(ax_abs(x)), "d");
  out[2] = ax_pmin(ax_abs(y), "d");
  out[3] = ax_ppermute(x, "d", AX_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 0}));
}

/* Of all sizes, half of them next to the least normal number, with either sign. */
static ax_tensor *small_numbers(ax_dtype dtype, uint64_t seed) {
  ax_tensor *x = test_tensor(TEST_TYPE(dtype, rows, columns), NULL);
  test_random random = {seed};
  const unsigned bits = 8 * (unsigned)ax_dtype_bytes(dtype), digits = dtype == AX_F64 ? 52 : dtype == AX_F32 ? 23 : dtype == AX_BF16 ? 7 : 10;
  for (int64_t i = 0; i < test_elems(x); i++) {
    const uint64_t fraction = test_random_bits(&random) >> (64 - digits), kind = test_random_bits(&random) % 8;
    const uint64_t most = ((uint64_t)1 << (bits - 1 - digits)) - 1, half = most / 2;
    const uint64_t exponent = kind < 3 ? 0 : kind < 4 ? 1 : kind < 5 ? 2 : kind < 6 ? half : kind < 7 ? half / 2 : half + half / 3;
    const uint64_t all = (test_random_bits(&random) % 2 << (bits - 1)) | exponent << digits | (kind == 2 ? fraction & 3 : fraction);
    memcpy((char *)x->data + (size_t)i * (bits / 8), &all, bits / 8);
  }
  return x;
}

static void run_as(ax_runtime *runtime, ax_program *program, const ax_compile_options *options, ax_tensor *const *in,
                   ax_tensor **out) {
  ax_executable *executable;
  ax_array *x[2], *y[most_results];
  TEST_OK(ax_compile(runtime, program, options, &executable));
  test_use_threads(executable);
  for (uint32_t i = 0; i < 2; i++) TEST_OK(ax_executable_put(executable, i, in[i]->data, &x[i]));
  const uint32_t count = ax_program_out_count(program);
  TEST_OK(ax_run(executable, AX_LIST(2, x), AX_LIST(count, y)));
  for (uint32_t k = 0; k < count; k++) {
    out[k] = test_tensor(*ax_program_out_type(program, k), NULL);
    TEST_OK(ax_array_read(y[k], out[k]->data, test_tensor_bytes(out[k])));
    ax_array_release(y[k]);
  }
  for (uint32_t i = 0; i < 2; i++) ax_array_release(x[i]);
  ax_executable_release(executable);
}

static void same_bits(const char *name, ax_dtype dtype, ax_subnormals way, ax_tensor **got, ax_tensor **wanted, uint32_t count,
                      const char *how) {
  for (uint32_t k = 0; k < count; k++) {
    if (test_same_tensors(got[k], wanted[k])) continue;
    const size_t bytes = ax_dtype_bytes(got[k]->dtype);
    int64_t i = 0;
    while (memcmp((char *)got[k]->data + (size_t)i * bytes, (char *)wanted[k]->data + (size_t)i * bytes, bytes) == 0) i++;
    fail_msg("%s of %s, %s, %s: result %u at %lld is %g, by reference %g", name, ax_dtype_name(dtype),
             way == AX_SUBNORMALS_KEEP ? "kept" : "flushed", how, k, (long long)i, test_get(got[k], i), test_get(wanted[k], i));
  }
}

static void try_program(const char *name, ax_program *program, ax_dtype dtype) {
  const uint32_t count = ax_program_out_count(program);
  ax_tensor *in[] = {small_numbers(dtype, 1), small_numbers(dtype, 2)}, *got[most_results], *wanted[2][most_results];
  for (int w = 0; w < 2; w++) {
    TEST_OK(ax_evaluate_with(ways[w], NULL, program, in, wanted[w]));
    for (uint32_t bytes = 16; bytes <= 64; bytes *= 2)
      for (uint32_t workers = 1; workers <= 3; workers += 2) {
        ax_runtime *runtime;
        TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
        test_use_vectors(runtime, bytes);
        run_as(runtime, program, &(ax_compile_options){.subnormals = ways[w]}, in, got);
        same_bits(name, dtype, ways[w], got, wanted[w], count, bytes == 16 ? "16 bytes" : bytes == 32 ? "32 bytes" : "64 bytes");
        test_release(got, count);
        if (bytes == 16) {
          run_as(runtime, program, &(ax_compile_options){.subnormals = ways[w], .reference = true}, in, got);
          same_bits(name, dtype, ways[w], got, wanted[w], count, "in reference code");
          test_release(got, count);
        }
        ax_runtime_release(runtime);
      }
  }
  bool differs = false;
  for (uint32_t k = 0; k < count; k++) differs = differs || !test_same_tensors(wanted[0][k], wanted[1][k]);
  assert_int_equal(differs, flushes && dtype != AX_F16);
  for (int w = 0; w < 2; w++) test_release(wanted[w], count);
  test_release(in, 2);
}

static void same_bits_in_all_ways(void **state) {
  static const struct {
    const char *name;
    ax_function function;
  } bodies[] = {{"arithmetic", arithmetic}, {"choices", choices}, {"reductions", reductions}, {"movements", movements}};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_type types[] = {TEST_TYPE(dtypes[d], rows, columns), TEST_TYPE(dtypes[d], rows, columns)};
    for (size_t b = 0; b < AX_COUNT(bodies); b++) {
      ax_program *program = test_trace(bodies[b].function, NULL, types, 2, most_results);
      try_program(bodies[b].name, program, dtypes[d]);
      ax_program_release(program);
    }
    ax_program *program = test_trace(conversions, NULL, types, 2, most_results);
    if (dtypes[d] != AX_F16) try_program("conversions", program, dtypes[d]);
    ax_program_release(program);
    program = test_trace_map(&(test_map){"d=4", {"d", "d"}, {"", "", "", "d"}, exchanged, false, NULL}, types);
    try_program("exchanges", program, dtypes[d]);
    ax_program_release(program);
  }
}

/* --- Who says so --- */

static AX_BODY(halved) { out[0] = ax_mul(in[0], ax_full_like(in[0], 0.5)); }

static float half_of_the_least(ax_runtime *runtime, const ax_compile_options *options) {
  const ax_type type = TEST_TYPE(AX_F32, 1);
  const float least = 0x1p-126f;
  float half = -1;
  ax_executable *e;
  ax_array *x, *y;
  TEST_OK(ax_jit(runtime, AX_FN(halved, 1, 1), &type, options, &e));
  TEST_OK(ax_executable_put(e, 0, &least, &x));
  TEST_OK(ax_run(e, &x, &y));
  TEST_OK(ax_array_read(y, &half, sizeof half));
  ax_array_release(x);
  ax_array_release(y);
  ax_executable_release(e);
  return half;
}

static void options_and_environment(void **state) {
  (void)state;
  const ax_compile_options keep = {.subnormals = AX_SUBNORMALS_KEEP}, flush = {.subnormals = AX_SUBNORMALS_FLUSH};
  const char *before = getenv("AXLE_SUBNORMALS");
  char *kept = before != NULL ? strdup(before) : NULL;
  const ax_type type = TEST_TYPE(AX_F32, 1);
  ax_runtime *runtime;
  ax_executable *e;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  unsetenv("AXLE_SUBNORMALS");
  assert_true(half_of_the_least(runtime, NULL) == (flushes ? 0 : 0x1p-127f));
  assert_true(half_of_the_least(runtime, &keep) == 0x1p-127f);
  setenv("AXLE_SUBNORMALS", "keep", 1);
  assert_true(half_of_the_least(runtime, NULL) == 0x1p-127f);
  assert_true(half_of_the_least(runtime, &flush) == (flushes ? 0 : 0x1p-127f));
  setenv("AXLE_SUBNORMALS", "flush", 1);
  assert_true(half_of_the_least(runtime, NULL) == (flushes ? 0 : 0x1p-127f));
  setenv("AXLE_SUBNORMALS", "maybe", 1);
  TEST_FAILS(ax_jit(runtime, AX_FN(halved, 1, 1), &type, NULL, &e), AX_INVALID_ARGUMENT,
             "AXLE_SUBNORMALS is \"maybe\"; it is keep or flush");
  assert_true(half_of_the_least(runtime, &keep) == 0x1p-127f);
  TEST_FAILS(ax_jit(runtime, AX_FN(halved, 1, 1), &type, &(ax_compile_options){.subnormals = (ax_subnormals)7}, &e),
             AX_INVALID_ARGUMENT, "subnormals is 7");
  unsetenv("AXLE_SUBNORMALS");
  if (kept != NULL) setenv("AXLE_SUBNORMALS", kept, 1);
  free(kept);
  ax_runtime_release(runtime);
}

/* --- Side by side --- */

enum { many = 1 << 16, rounds = 40 };

typedef struct pair {
  ax_runtime *runtime;
  ax_executable *executables[2];
  ax_array *x;
  int first, failures;
} pair;

static AX_BODY(small_products) { out[0] = ax_mul(ax_mul(in[0], in[0]), ax_full_like(in[0], 4)); }

static bool right(const float *got, bool flushed) {
  const float small = 1e-20f * 1e-20f * 4;
  for (int i = 0; i < many; i++)
    if (i % 2 == 1 ? got[i] != 4 : flushed ? got[i] != 0 : got[i] != small) return false;
  return true;
}

/* Runs that are started, so that threads of the team take them in turn, and help in those of the other kind while they wait. */
static void *alternates(void *context) {
  pair *p = context;
  float *got = malloc(many * sizeof got[0]);
  for (int i = 0; i < rounds && p->failures == 0; i++) {
    ax_array *y[2] = {NULL};
    for (int k = 0; k < 2; k++)
      if (ax_run_start(p->executables[(p->first + k) % 2], &p->x, &y[k]) != AX_OK) p->failures++;
    for (int k = 0; k < 2; k++) {
      if (ax_array_read(y[k], got, many * sizeof got[0]) != AX_OK || !right(got, flushes && (p->first + k) % 2 == 1)) p->failures++;
      ax_array_release(y[k]);
    }
  }
  free(got);
  return NULL;
}

static void both_at_once(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, many);
  static float data[many];
  pair p = {0}, q;
  pthread_t thread;
  for (int i = 0; i < many; i++) data[i] = i % 2 == 0 ? 1e-20f : 1;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 4}, &p.runtime));
  for (int k = 0; k < 2; k++) {
    TEST_OK(ax_jit(p.runtime, AX_FN(small_products, 1, 1), &type, &(ax_compile_options){.subnormals = ways[k]}, &p.executables[k]));
    test_use_threads(p.executables[k]);
  }
  assert_ptr_not_equal(p.executables[0], p.executables[1]);
  TEST_OK(ax_executable_put(p.executables[0], 0, data, &p.x));
  q = p;
  q.first = 1;
  assert_int_equal(pthread_create(&thread, NULL, alternates, &q), 0);
  alternates(&p);
  pthread_join(thread, NULL);
  assert_int_equal(p.failures + q.failures, 0);
  ax_array_release(p.x);
  for (int k = 0; k < 2; k++) ax_executable_release(p.executables[k]);
  ax_runtime_release(p.runtime);
}

/* --- Callers and callbacks --- */

static volatile float least = 0x1p-126f, half = 0.5f;

static bool thread_flushes(void) {
  volatile float y = least * half;
  return y == 0;
}

typedef struct visit {
  ax_runtime *runtime;
  ax_subnormals inner;
  int calls, wrong;
} visit;

/* Calls a run of the other kind. What it computes itself keeps subnormal numbers, before and after. */
static ax_status visited(ax_callback_call *call, void *context) {
  visit *v = context;
  const ax_compile_options options = {.subnormals = v->inner};
  v->calls++;
  v->wrong += thread_flushes();
  v->wrong += half_of_the_least(v->runtime, &options) != (flushes && v->inner == AX_SUBNORMALS_FLUSH ? 0 : 0x1p-127f);
  v->wrong += thread_flushes();
  *(float *)call->out[0].data = *(const float *)call->in[0].data * half; /* is kept: it only moves from here on */
  return AX_OK;
}

static AX_BODY(around) {
  ax_callback *callback = context;
  ax_value y;
  const ax_type type = TEST_TYPE(AX_F32, 1);
  ax_io_callback(callback, true, AX_VALUES(in[0]), AX_TYPES(type), AX_LIST(1, &y));
  out[0] = y;
  out[1] = ax_add(ax_mul(in[0], ax_full_like(in[0], 0.5)), ax_mul(y, ax_full_like(y, 0)));
}

static void callers_and_callbacks(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 1);
  const float x = 0x1p-126f;
  for (int k = 0; k < 4; k++) {
    const ax_subnormals way = ways[k % 2];
    visit v = {.inner = other(way)};
    ax_callback *callback;
    ax_executable *e;
    ax_array *in, *out[2];
    float got[2];
    TEST_OK(ax_runtime_create(NULL, &v.runtime));
    TEST_OK(ax_callback_create("visited", visited, &v, NULL, &callback));
    TEST_OK(ax_jit(v.runtime, AX_CLOSURE(around, 1, 2, callback), &type, &(ax_compile_options){.subnormals = way}, &e));
    TEST_OK(ax_executable_put(e, 0, &x, &in));
    const ax_float_mode own = ax_float_mode_enter(k >= 2); /* the caller's thread flushes, or not */
    const ax_status status = ax_run(e, AX_LIST(1, &in), AX_LIST(2, out));
    const bool still = thread_flushes() == (flushes && k >= 2);
    ax_float_mode_leave(own);
    TEST_OK(status);
    assert_true(still);
    for (int i = 0; i < 2; i++) {
      TEST_OK(ax_array_read(out[i], &got[i], sizeof got[i]));
      ax_array_release(out[i]);
    }
    assert_int_equal(v.calls, 1);
    assert_int_equal(v.wrong, 0);
    assert_true(got[0] == 0x1p-127f);
    assert_true(got[1] == (flushes && way == AX_SUBNORMALS_FLUSH ? 0 : 0x1p-127f)); /* the run goes on in its own mode */
    ax_array_release(in);
    ax_executable_release(e);
    ax_callback_release(callback);
    ax_runtime_release(v.runtime);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_in_all_ways), cmocka_unit_test(options_and_environment),
                                     cmocka_unit_test(both_at_once), cmocka_unit_test(callers_and_callbacks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
