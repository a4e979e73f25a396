/* What compiling promises whatever the size. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/program.h"
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

static void halves(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_full_like(in[0], 0.5));
  out[1] = ax_psum(in[1], "d");
}

static void expect_spec(const ax_executable *executable, const ax_spec *spec, const char *wanted) {
  ax_spec parsed;
  assert_non_null(spec);
  assert_int_equal(ax_spec_parse(wanted, ax_executable_get_mesh(executable), &parsed), AX_OK);
  assert_true(ax_spec_equal(spec, &parsed));
}

/* Arrays put as the executable wants them are used as they are; the results say how they lie. */
static void test_layouts(void **state) {
  (void)state;
  const test_map map = {.mesh = "d=2,e=2", .in_specs = {"_,e+d", "d"}, .out_specs = {"_,e+d", ""}, .body = halves};
  const ax_type types[] = {ax_array_type(AX_F32, 2, (int64_t[]){1, 4}), ax_array_type(AX_F32, 1, (int64_t[]){2})};
  const float x[] = {2, 4, 6, 8}, y[] = {1, 2};
  float halved[4], sum[1];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *in[2], *out[2], *none;
  assert_int_equal(ax_runtime_create(NULL, &runtime), AX_OK);
  ax_program *program = test_trace_map(&map, types);
  assert_int_equal(ax_compile(runtime, program, NULL, &executable), AX_OK);
  ax_program_release(program);
  assert_int_equal(ax_mesh_devices(ax_executable_get_mesh(executable)), 4);
  for (uint32_t i = 0; i < 2; i++) expect_spec(executable, ax_executable_in_spec(executable, i), map.in_specs[i]);
  for (uint32_t k = 0; k < 2; k++) expect_spec(executable, ax_executable_out_spec(executable, k), map.out_specs[k]);
  assert_null(ax_executable_in_spec(executable, 2));
  assert_null(ax_executable_out_spec(executable, 2));
  assert_int_equal(ax_executable_put(executable, 0, x, &in[0]), AX_OK);
  assert_int_equal(ax_executable_put(executable, 1, y, &in[1]), AX_OK);
  assert_int_equal(ax_executable_put(executable, 2, y, &none), AX_INVALID_ARGUMENT);
  assert_null(none);
  assert_true(ax_spec_equal(ax_array_get_spec(in[0]), ax_executable_in_spec(executable, 0)));
  assert_int_equal(ax_run(executable, in, 2, out, 2), AX_OK);
  assert_int_equal(ax_array_read(out[0], halved, sizeof halved), AX_OK);
  assert_int_equal(ax_array_read(out[1], sum, sizeof sum), AX_OK);
  for (int i = 0; i < 4; i++) assert_true(halved[i] == (float)(i + 1));
  assert_true(sum[0] == 3);
  for (int i = 0; i < 2; i++) ax_array_release(in[i]), ax_array_release(out[i]);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_too_many_counters), cmocka_unit_test(test_layouts)};
  return cmocka_run_group_tests_name("executable", tests, NULL, NULL);
}
