/* Functions that call each other, each the next one twice or more: a module of n of them stands for 2^n operations. Texts, comparing,
   verifying, writing and compiling cost what the functions are in memory; and what compiling makes of the calls computes the same. */
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "ir/program.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

#define T "tensor<4xf32>"

enum { deep = 100 };

static ax_program *import(ax_text *text) {
  ax_program *program;
  char *module;
  TEST_OK(ax_text_finish(text, &module));
  if (ax_program_from_stablehlo(module, strlen(module), "m.mlir", &program) != AX_OK) fail_msg("%s\n%.2000s", ax_message(), module);
  ax_free(module);
  return program;
}

static void begin_module(ax_text *text) {
  ax_text_add(text, "func.func @main(%%a: " T ", %%b: " T ") -> (" T ", " T ") {\n"
                    "  %%0:2 = call @f0(%%a, %%b) : (" T ", " T ") -> (" T ", " T ")\n  return %%0#0, %%0#1 : " T ", " T "\n}\n");
}

/* Each function calls the next one twice. */
static ax_program *chain(uint32_t count) {
  ax_text text = {0};
  begin_module(&text);
  for (uint32_t i = 0; i < count; i++) {
    ax_text_add(&text, "func.func private @f%u(%%a: " T ", %%b: " T ") -> (" T ", " T ") {\n", i);
    if (i + 1 == count) ax_text_add(&text, "  %%0 = stablehlo.add %%a, %%b : " T "\n  return %%0, %%a : " T ", " T "\n}\n");
    else
      ax_text_add(&text, "  %%0:2 = call @f%u(%%a, %%b) : (" T ", " T ") -> (" T ", " T ")\n"
                         "  %%1:2 = call @f%u(%%0#0, %%0#1) : (" T ", " T ") -> (" T ", " T ")\n  return %%1#0, %%1#1 : " T ", " T "\n}\n",
                  i + 1, i + 1);
  }
  return import(&text);
}

static uint32_t below(test_random *random, uint32_t count) { return (uint32_t)test_random_below(random, count); }

/* A function of some operations and of calls of later functions, each of which uses the last call's result. */
static void add_function(ax_text *text, test_random *random, uint32_t i, uint32_t count) {
  static const char *const operations[] = {"add", "subtract", "maximum", "minimum"};
  char values[64][8] = {"%a", "%b"}, last[8] = "%a";
  uint32_t value_count = 2, names = 0;
  ax_text_add(text, "func.func private @f%u(%%a: " T ", %%b: " T ") -> (" T ", " T ") {\n", i);
  const uint32_t calls = i + 1 < count ? 2 + below(random, 2) : 0;
  for (uint32_t c = 0; c <= calls; c++) {
    for (uint32_t k = below(random, 3) + (calls == 0); k-- > 0; names++) {
      ax_text_add(text, "  %%%u = stablehlo.%s %s, %s : " T "\n", names, operations[below(random, 4)],
                  values[below(random, value_count)], values[below(random, value_count)]);
      snprintf(values[value_count++], sizeof values[0], "%%%u", names);
    }
    if (c == calls) break;
    const uint32_t callee = i + 1 + (i + 2 < count && below(random, 3) == 0);
    ax_text_add(text, "  %%%u:2 = call @f%u(%s, %s) : (" T ", " T ") -> (" T ", " T ")\n", names, callee, last,
                values[below(random, value_count)]);
    snprintf(last, sizeof last, "%%%u#0", names);
    snprintf(values[value_count++], sizeof values[0], "%%%u#1", names++);
    snprintf(values[value_count++], sizeof values[0], "%s", last);
  }
  ax_text_add(text, "  return %s, %s : " T ", " T "\n}\n", calls > 0 ? last : values[value_count - 1],
              values[below(random, value_count)]);
}

static ax_program *random_calls(uint64_t seed, uint32_t count) {
  ax_text text = {0};
  test_random random = {seed};
  begin_module(&text);
  for (uint32_t i = 0; i < count; i++) add_function(&text, &random, i, count);
  return import(&text);
}

/* --- Texts --- */

static void texts_are_as_long_as_programs(void **state) {
  (void)state;
  ax_program *program = chain(deep), *again = chain(deep), *back;
  char *text, *module;
  assert_true(ax_program_equal(program, again)); /* no body of one is a body of the other */
  TEST_OK(ax_program_print(program, &text));
  assert_true(strlen(text) < 1000000);
  TEST_OK(ax_program_parse(text, strlen(text), "t", &back));
  assert_true(ax_program_equal(program, back));
  TEST_OK(ax_program_verify(back));
  TEST_OK(ax_program_stablehlo(back, &module));
  assert_true(strlen(module) < 100000);
  ax_free(module);
  ax_free(text);
  TEST_OK(ax_program_print_locations(program, &text));
  assert_true(strlen(text) < 1000000 && strstr(text, "m.mlir:") != NULL);
  ax_free(text);
  ax_program_release(back);
  ax_program_release(again);
  ax_program_release(program);
}

static void names_of_programs_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } wrong[] = {
      {"{ lambda a:f32[]. let b:f32[] = closed_call[body=@f] a in (b) }", "the program 'f' is not defined before"},
      {"{ lambda a:f32[]. let b:f32[] = closed_call[body=@f { lambda a:f32[]. let b:f32[] = closed_call[body=@f] a in (b) }] a in (b) }",
       "the program 'f' is not defined before"},
      {"{ lambda a:f32[]. let b:f32[] = closed_call[body=@f { lambda a:f32[]. let in (a) }] a "
       "c:f32[] = closed_call[body=@f { lambda a:f32[]. let in (a) }] b in (c) }",
       "the program 'f' is defined twice"},
      {"{ axes d=2 ; lambda a:f32[]. let b:f32[] = closed_call[body=@f { axes ; lambda a:f32[]. let in (a) }] a "
       "c:f32[] = closed_call[body=@] b in (c) }",
       "expected the name of a program"},
  };
  for (size_t i = 0; i < AX_COUNT(wrong); i++) {
    ax_program *program;
    TEST_FAILS(ax_program_parse(wrong[i].text, strlen(wrong[i].text), "t", &program), AX_PARSE_ERROR, wrong[i].message);
  }
}

/* --- Compiling --- */

static void deep_calls_are_compiled(void **state) {
  (void)state;
  ax_program *program = chain(deep);
  ax_runtime *runtime;
  ax_executable *executable;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

static void steps_compute_what_calls_do(void **state) {
  (void)state;
  uint32_t loops = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    ax_program *program = random_calls(seed, 7), *looped;
    test_random random = {seed};
    const ax_type type = TEST_TYPE(AX_F32, 4);
    ax_tensor *in[] = {test_random_tensor(&random, type, -1, 1), test_random_tensor(&random, type, -1, 1)}, *expected[2], *out[2];
    TEST_OK(ax_program_loop_calls(program, seed % 3 == 0 ? 512 : 16, &looped));
    TEST_OK(ax_program_verify(looped));
    loops += test_count_prim(looped, "scan");
    test_run(program, in, expected);
    test_run(looped, in, out);
    for (uint32_t k = 0; k < 2; k++) assert_true(test_same_tensors(expected[k], out[k]));
    test_release(out, 2);
    TEST_OK(test_try(looped, in, out));
    for (uint32_t k = 0; k < 2; k++) assert_true(test_same_tensors(expected[k], out[k]));
    test_release(out, 2);
    test_release(expected, 2);
    test_release(in, 2);
    ax_program_release(looped);
    ax_program_release(program);
  }
  assert_true(loops > 60);
}

/* Calls that no loop holds: each function calls the next one and the one after it, once each. */
static void too_many_calls_are_refused(void **state) {
  (void)state;
  ax_text text = {0};
  begin_module(&text);
  for (uint32_t i = 0; i < 60; i++) {
    ax_text_add(&text, "func.func private @f%u(%%a: " T ", %%b: " T ") -> (" T ", " T ") {\n", i);
    if (i < 58)
      ax_text_add(&text, "  %%0:2 = call @f%u(%%a, %%b) : (" T ", " T ") -> (" T ", " T ")\n"
                         "  %%1:2 = call @f%u(%%0#0, %%0#1) : (" T ", " T ") -> (" T ", " T ")\n  return %%1#0, %%1#1 : " T ", " T "\n}\n",
                  i + 1, i + 2);
    else ax_text_add(&text, "  %%0 = stablehlo.add %%a, %%b : " T "\n  return %%0, %%b : " T ", " T "\n}\n");
  }
  ax_program *program = import(&text), *looped;
  TEST_FAILS(ax_program_loop_calls(program, AX_MOST_WRITTEN_OUT, &looped), AX_INVALID_ARGUMENT, "equations: at most 16777216 are compiled");
  ax_program_release(program);
}

static ax_status loop_calls(void *program) {
  ax_program *looped, *back;
  char *text;
  AX_TRY(ax_program_loop_calls(program, 16, &looped));
  ax_program_release(looped);
  AX_TRY(ax_program_print(program, &text));
  const ax_status status = ax_program_parse(text, strlen(text), "t", &back);
  ax_free(text);
  if (status == AX_OK) ax_program_release(back);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  ax_program *program = random_calls(3, 4), *long_one = chain(14);
  assert_true(test_each_allocation(loop_calls, program) > 50);
  assert_true(test_each_allocation(loop_calls, long_one) > 50);
  ax_program_release(long_one);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_as_long_as_programs), cmocka_unit_test(names_of_programs_are_checked),
      cmocka_unit_test(deep_calls_are_compiled),       cmocka_unit_test(steps_compute_what_calls_do),
      cmocka_unit_test(too_many_calls_are_refused),    cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
