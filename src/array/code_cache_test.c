/* The words for the folder of compiled code, and that runtimes keep to them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "array/code_cache.h"
#include "support/cmocka.h"
#include "support/run.h"

static void means(const char *said, const char *wanted) {
  char path[PATH_MAX];
  const bool some = ax_code_cache_folder(said, path, sizeof path);
  assert_true(some == (wanted != NULL));
  if (some) assert_string_equal(path, wanted);
}

static void words(void **state) {
  (void)state;
  char path[8];
  unsetenv("AXLE_CODE_CACHE");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/of", 1);
  means(NULL, NULL);
  means("off", NULL);
  means("", NULL);
  means("some/folder", "some/folder");
  means("user", "/home/of/.cache/axle");
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  means("user", "/home/of/.cache/axle");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  means("user", "/caches/axle");
  setenv("AXLE_CODE_CACHE", "/from/outside", 1);
  means(NULL, "/from/outside");
  means("off", NULL);
  means("/said", "/said");
  setenv("AXLE_CODE_CACHE", "user", 1);
  means(NULL, "/caches/axle");
  setenv("AXLE_CODE_CACHE", "off", 1);
  means(NULL, NULL);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  means("user", NULL);
  assert_false(ax_code_cache_folder("/too/long", path, sizeof path));
}

static void function(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_exp(in[0]), ax_real(2));
}

static void keep_line(const char *line, void *context) {
  char *lines = context;
  if (strstr(line, "code cache") != NULL) snprintf(lines, 256, "%s", line);
}

/* One run by a runtime of its own: the result's bits, and what was counted. */
static ax_counters run(const char *folder, float *y, char *told) {
  const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {5}};
  const float x[5] = {-1, 0, 0.25f, 1, 2};
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *in, *out;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.code_cache = folder, .log = keep_line, .log_context = told}, &runtime));
  TEST_OK(ax_jit(runtime, AX_FN(function, 1, 1), &type, NULL, &executable));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, x, &in));
  TEST_OK(ax_run(executable, &in, &out));
  TEST_OK(ax_array_read(out, y, 5 * sizeof y[0]));
  const ax_counters counters = ax_runtime_counters(runtime);
  ax_array_release(in);
  ax_array_release(out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return counters;
}

static void runtimes(void **state) {
  (void)state;
  char folder[] = "/tmp/axle_code_cache_XXXXXX", command[64], told[256] = "";
  float first[5], second[5];
  assert_non_null(mkdtemp(folder));
  assert_int_equal(run(folder, first, told).kernels_compiled, 1);
  const ax_counters counters = run(folder, second, told);
  assert_int_equal(counters.kernels_compiled, 0);
  assert_int_equal(counters.kernels_loaded, 1);
  assert_memory_equal(first, second, sizeof first);
  assert_int_equal(run("off", second, told).kernels_compiled, 1);
  assert_memory_equal(first, second, sizeof first);
  assert_string_equal(told, "");
  assert_int_equal(run("/proc/nobody/can", second, told).kernels_compiled, 1);
  assert_string_equal(told, "compile: the code cache is not used: /proc/nobody/can: No such file or directory");
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runtimes), cmocka_unit_test(words)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
