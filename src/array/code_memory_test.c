/* Machine code that no executable uses: it is kept up to a bound, goes with ax_runtime_trim, and is there as long as one executable
   uses it. */
#include <stdio.h>
#include <unistd.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { count = 3000, digits = 12, elems = 8 };

/* Each number makes another fused operation. */
static void chain(const ax_value *in, ax_value *out, void *context) {
  const uint32_t *number = context;
  ax_value x = in[0];
  for (uint32_t i = 0; i < digits; i++) x = *number >> i & 1 ? ax_add(x, in[0]) : ax_mul(x, in[0]);
  out[0] = x;
}

static double expected(uint32_t number, double x) {
  double result = x;
  for (uint32_t i = 0; i < digits; i++) result = number >> i & 1 ? result + x : result * x;
  return result;
}

static ax_executable *compile(ax_runtime *runtime, uint32_t number) {
  const ax_type type = TEST_TYPE(AX_F32, elems);
  ax_program *program;
  ax_executable *executable;
  TEST_OK(ax_trace(AX_CLOSURE(chain, 1, 1, &number), &type, &program));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  ax_program_release(program);
  return executable;
}

static void run(ax_runtime *runtime, ax_executable *executable, uint32_t number) {
  const ax_type type = TEST_TYPE(AX_F32, elems);
  const float data[elems] = {0, 1, 0.5, -1, 1, 1, 1, -0.5};
  float result[elems];
  ax_array *in, *out;
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, data, &in));
  TEST_OK(ax_run(executable, &in, &out));
  TEST_OK(ax_array_read(out, result, sizeof result));
  for (int i = 0; i < elems; i++) TEST_NEAR(result[i], expected(number, data[i]), 1e-6);
  ax_array_release(in);
  ax_array_release(out);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static size_t resident_bytes(void) {
  size_t all, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%zu %zu", &all, &resident) != 2) resident = 0;
  if (file != NULL) fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}
#else
static size_t resident_bytes(void) { return 0; } /* a sanitizer keeps what is freed */
#endif

static void many_programs(void **state) {
  (void)state;
  enum { most_idle = 1 << 20, most_growth = 8 << 20, warm = count / 3 };
  ax_runtime *runtime;
  size_t before = 0;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .idle_code_bytes = most_idle}, &runtime));
  for (uint32_t i = 0; i < count; i++) {
    ax_executable *executable = compile(runtime, i);
    if (i % 100 == 0) run(runtime, executable, i);
    ax_executable_release(executable);
    assert_true(ax_runtime_counters(runtime).code_bytes <= most_idle);
    if (i == warm) before = resident_bytes();
  }
  assert_int_equal(ax_runtime_counters(runtime).kernels_compiled, count);
  assert_true(resident_bytes() <= before + most_growth);
  ax_runtime_trim(runtime);
  assert_int_equal(ax_runtime_counters(runtime).code_bytes, 0);
  ax_runtime_release(runtime);
}

static void used_code_stays(void **state) {
  (void)state;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  ax_executable *first = compile(runtime, 1), *second = compile(runtime, 2);
  const uint64_t both = ax_runtime_counters(runtime).code_bytes;
  ax_runtime_trim(runtime);
  assert_int_equal(ax_runtime_counters(runtime).code_bytes, both);
  run(runtime, first, 1);
  ax_executable_release(first);
  first = compile(runtime, 1); /* it is still there, as nobody has trimmed */
  assert_int_equal(ax_runtime_counters(runtime).kernels_compiled, 2);
  ax_executable_release(first);
  ax_runtime_trim(runtime);
  assert_true(ax_runtime_counters(runtime).code_bytes > 0 && ax_runtime_counters(runtime).code_bytes < both);
  run(runtime, second, 2);
  first = compile(runtime, 1);
  assert_int_equal(ax_runtime_counters(runtime).kernels_compiled, 3);
  run(runtime, first, 1);
  run(runtime, second, 2);
  ax_executable_release(first);
  ax_executable_release(second);
  ax_runtime_trim(runtime);
  assert_int_equal(ax_runtime_counters(runtime).code_bytes, 0);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(many_programs), cmocka_unit_test(used_code_stays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
