/* What compiling promises whatever the size. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { SUMS = 8200 };

static void many_sums(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
  for (int i = 0; i < SUMS; i++) out[0] = ax_pvary(ax_psum(out[0], "d"), "d");
}

/* A counter for each sum and each of 2^19 groups: their number passes 32 bits. */
static void test_too_many_counters(void **state) {
  (void)state;
  const test_map map = {.mesh = "d=2,e=524288", .in_specs = {"d+e"}, .out_specs = {"d+e"}, .body = many_sums};
  ax_type type = ax_array_type(AX_F32, 1, (int64_t[]){0});
  ax_runtime *runtime;
  ax_executable *executable;
  assert_int_equal(ax_runtime_create(&(ax_runtime_options){.max_devices = 1 << 20}, &runtime), AX_OK);
  ax_program *program = test_trace_map(&map, &type);
  assert_int_equal(ax_compile(runtime, program, NULL, &executable), AX_OUT_OF_MEMORY);
  assert_null(executable);
  assert_non_null(strstr(ax_message(), "need more than 2^32 counters"));
  ax_program_release(program);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_too_many_counters)};
  return cmocka_run_group_tests_name("executable", tests, NULL, NULL);
}
