/* Stages: what each can be asked, what is found in caches, what the log is told. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "ir/program.h"
#include "ir/text.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct heard {
  char lines[8][200];
  int count;
} heard;

static void hear(const char *line, void *context) {
  heard *h = context;
  assert_true(h->count < 8);
  snprintf(h->lines[h->count++], sizeof h->lines[0], "%s", line);
}

static void product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_matmul(in[0], in[1]));
  out[1] = ax_reduce_sum(out[0], AX_ALL_DIMS, false);
}

static ax_program *traced(void) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 16), TEST_TYPE(AX_F32, 16, 8)};
  return test_trace(product, NULL, types, 2, 2);
}

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

static void each_stage(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("d=4");
  const ax_compile_options options = {.mesh = &mesh, .shardings = "d; ? -> d; ", .donate = AX_FIRST(1)};
  ax_program *program = traced();
  ax_lowered *lowered;
  ax_runtime *runtime;
  ax_executable *e, *same;
  ax_memory before, after;
  ax_cost cost;
  char *text;
  assert_true(ax_program_seconds(program) > 0);
  TEST_OK(ax_program_lower(program, &options, &lowered));
  assert_true(ax_lowered_seconds(lowered) > 0);
  assert_int_equal(ax_mesh_devices(ax_lowered_mesh(lowered)), 4);
  assert_int_equal(ax_lowered_in_spec(lowered, 0)->count[0], 1);
  assert_int_equal(ax_lowered_in_spec(lowered, 1)->count[0], 0);
  assert_int_equal(ax_lowered_out_spec(lowered, 0)->count[0], 1);
  assert_null(ax_lowered_in_spec(lowered, 2));
  assert_null(ax_lowered_out_spec(lowered, 2));
  TEST_OK(ax_program_print(ax_lowered_program(lowered), &text));
  assert_non_null(strstr(text, "psum"));
  ax_string_free(text);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_lowered_memory(runtime, lowered, &before));
  TEST_OK(ax_lowered_compile(runtime, lowered, &e));
  TEST_OK(ax_executable_memory(e, &after));
  assert_memory_equal(&before, &after, sizeof before);
  assert_int_equal(after.device.arguments, 2 * 16 * 4 + 16 * 8 * 4);
  assert_int_equal(after.all.arguments, 8 * 16 * 4 + 16 * 8 * 4); /* the second is stored once */
  TEST_OK(ax_executable_cost(e, &cost));
  assert_int_equal(cost.devices, 4);
  TEST_NEAR(cost.flops, 2 * 2 * 16 * 8 + 16 + 16, 0);
  ax_cost_release(&cost);
  assert_true(ax_executable_compile_seconds(e) > 0);
  TEST_NEAR(ax_executable_lower_seconds(e), ax_lowered_seconds(lowered), 0);
  TEST_OK(ax_compile(runtime, program, &options, &same));
  assert_ptr_equal(same, e);
  ax_executable_release(same);
  ax_executable_release(e);
  ax_runtime_release(runtime);
  ax_lowered_release(ax_lowered_retain(lowered));
  ax_lowered_release(lowered);
  ax_program_release(program);
}

/* A program is found again by its shardings' meaning: "d" and "d,_" are one. So are kernels, by programs that are not. */
static void caches(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("d=4");
  ax_program *program = traced();
  ax_runtime *runtime;
  ax_executable *all[3];
  TEST_OK(ax_runtime_create(NULL, &runtime));
  assert_int_equal(ax_runtime_counters(runtime).programs_compiled, 0);
  static const char *const shardings[] = {"d; -> d; ", "d,_; _,_ -> d,_; ", "_,d; -> d; "};
  for (int i = 0; i < 3; i++)
    TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.mesh = &mesh, .shardings = shardings[i]}, &all[i]));
  assert_ptr_equal(all[0], all[1]);
  assert_ptr_not_equal(all[0], all[2]);
  const ax_counters counters = ax_runtime_counters(runtime);
  assert_int_equal(counters.programs_compiled, 2);
  assert_int_equal(counters.programs_found, 1);
  assert_true(counters.kernels_compiled > 0);
  assert_true(counters.kernels_found > 0);
  for (int i = 0; i < 3; i++) ax_executable_release(all[i]);
  ax_runtime_release(runtime);
  ax_program_release(program);
  assert_int_equal(ax_runtime_counters(NULL).programs_found, 0);
}

static void sums(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
  out[1] = ax_reduce_sum(in[1], AX_ALL_DIMS, false);
}

/* What is told: the stages, and what is donated to no use. */
static void the_log(void **state) {
  (void)state;
  heard h = {.count = 0};
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 16), TEST_TYPE(AX_F32, 16, 8)};
  const ax_compile_options options = {.donate = AX_ALL_ARGS};
  ax_runtime *runtime;
  ax_executable *e, *again;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.log = hear, .log_context = &h}, &runtime));
  TEST_OK(ax_jit(runtime, AX_FN(sums, 2, 2), types, &options, &e));
  assert_int_equal(h.count, 4);
  assert_non_null(strstr(h.lines[0], "trace: 2 equations"));
  assert_non_null(strstr(h.lines[1], "lower: 2 equations for 1 devices"));
  assert_non_null(strstr(h.lines[2], "compile: "));
  assert_string_equal(h.lines[3], "compile: argument 1, f32[16,8], is donated to no use: no result lives in its memory");
  assert_int_equal(ax_executable_donated(e, 0), 0);
  assert_int_equal(ax_executable_donated(e, 1), -1);
  TEST_OK(ax_jit(runtime, AX_FN(sums, 2, 2), types, &options, &again));
  assert_int_equal(h.count, 6);
  assert_string_equal(h.lines[5], "compile: found in the cache");
  ax_executable_release(again);
  ax_executable_release(e);
  ax_runtime_release(runtime);
}

static void refusals(void **state) {
  (void)state;
  const ax_mesh mesh = mesh_of("d=3");
  ax_program *program = traced();
  ax_lowered *lowered;
  ax_executable *e;
  ax_memory memory;
  ax_cost cost;
  TEST_FAILS(ax_program_lower(NULL, NULL, &lowered), AX_INVALID_ARGUMENT, "program");
  TEST_FAILS(ax_program_lower(program, &(ax_compile_options){.mesh = &mesh, .shardings = "d,d; ? -> ?"}, &lowered),
             AX_INVALID_ARGUMENT, "lower: specs");
  assert_null(lowered);
  TEST_OK(ax_program_lower(program, &(ax_compile_options){.donate = AX_ARGS(7)}, &lowered));
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_FAILS(ax_lowered_compile(runtime, lowered, &e), AX_INVALID_ARGUMENT, "donate: ");
  TEST_FAILS(ax_lowered_memory(runtime, lowered, &memory), AX_INVALID_ARGUMENT, "input 7");
  TEST_FAILS(ax_lowered_compile(NULL, lowered, &e), AX_INVALID_ARGUMENT, "runtime");
  TEST_FAILS(ax_lowered_compile(runtime, NULL, &e), AX_INVALID_ARGUMENT, "lowered");
  TEST_FAILS(ax_executable_memory(NULL, &memory), AX_INVALID_ARGUMENT, "executable");
  TEST_FAILS(ax_executable_cost(NULL, &cost), AX_INVALID_ARGUMENT, "executable");
  assert_null(ax_lowered_program(NULL));
  assert_null(ax_lowered_mesh(NULL));
  ax_lowered_release(NULL);
  ax_lowered_release(lowered);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_stage), cmocka_unit_test(caches), cmocka_unit_test(the_log), cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
