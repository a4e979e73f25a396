/* The cache of executables: a search looks at few executables however many there are, and tells programs and options apart. */
#include "array/executable_cache.h"

#include "array/executable.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { programs = 1000 };

static void same(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

static void two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[1]);
}

static ax_program *trace_same(int64_t elems) {
  const ax_type type = ax_array_type(AX_F32, AX_LIST(1, &elems));
  return test_trace(same, NULL, &type, 1, 1);
}

static ax_executable *compile(ax_runtime *runtime, ax_program *program, const ax_compile_options *options) {
  ax_executable *e;
  TEST_OK(ax_compile(runtime, program, options, &e));
  return e;
}

/* Half of them are compiled once more, when all are there; then all are released, every other one first. */
static void looks_at_few(void **state) {
  (void)state;
  static ax_program *program[programs];
  static ax_executable *e[programs];
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (int i = 0; i < programs; i++) {
    program[i] = trace_same(i + 1);
    e[i] = compile(runtime, program[i], NULL);
  }
  assert_int_equal(runtime->cache.count, programs);
  assert_int_equal(ax_runtime_counters(runtime).programs_compiled, programs);
  assert_in_range(runtime->cache.looked_at, 0, 2 * programs); /* the searches that found nothing */
  const uint64_t before = runtime->cache.looked_at;
  for (int i = 0; i < programs; i += 2) {
    ax_executable *found = compile(runtime, program[i], NULL);
    assert_ptr_equal(found, e[i]);
    ax_executable_release(found);
  }
  assert_int_equal(ax_runtime_counters(runtime).programs_found, programs / 2);
  assert_in_range(runtime->cache.looked_at - before, programs / 2, 2 * programs / 2);
  for (int odd = 0; odd < 2; odd++)
    for (int i = odd; i < programs; i += 2) ax_executable_release(e[i]), ax_program_release(program[i]);
  assert_int_equal(runtime->cache.count, 0);
  ax_runtime_release(runtime);
}

/* One program with each option: each executable is found again, and by its own options only. */
static void options_are_told_apart(void **state) {
  (void)state;
  const ax_compile_options options[] = {{.timeline = false},
                                        {.timeline = true},
                                        {.reference = true},
                                        {.check_numerics = AX_CHECK_NAN},
                                        {.check_numerics = AX_CHECK_INF},
                                        {.unchecked_ragged = true},
                                        {.keep_unused = true},
                                        {.subnormals = AX_SUBNORMALS_KEEP},
                                        {.contraction = AX_CONTRACTION_FUSED},
                                        {.donate = AX_ARGS(0)},
                                        {.donate = AX_ARGS(1)},
                                        {.donate = AX_ARGS(0, 1)},
                                        {.names = {AX_NAMES("x", "y")}},
                                        {.names = {AX_NAMES("x", "z")}},
                                        {.names = {AX_NAMES("x", NULL)}}};
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4)};
  ax_program *program = test_trace(two, NULL, types, 2, 1);
  ax_executable *e[AX_COUNT(options)];
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t i = 0; i < AX_COUNT(options); i++) {
    e[i] = compile(runtime, program, &options[i]);
    for (size_t k = 0; k < i; k++) assert_ptr_not_equal(e[i], e[k]);
  }
  for (size_t i = 0; i < AX_COUNT(options); i++) {
    ax_executable *again = compile(runtime, program, &options[i]);
    assert_ptr_equal(again, e[i]);
    ax_executable_release(again);
  }
  for (size_t i = 0; i < AX_COUNT(options); i++) ax_executable_release(e[i]);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(looks_at_few), cmocka_unit_test(options_are_told_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
