/* What transforms make of calls of the host: batches, derivatives; programs that are compiled where nobody reads, or exported; and
   what programs may not say of calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/run.h"

static const ax_type pair_type = {.dtype = AX_F32, .rank = 1, .dims = {2}};

static AX_BODY(pure_each) { ax_pure_callback(context, false, AX_LIST(1, in), AX_LIST(1, &pair_type), out); }
static AX_BODY(pure_all) { ax_pure_callback(context, true, AX_LIST(1, in), AX_LIST(1, &pair_type), out); }
static AX_BODY(io_each) { ax_io_callback(context, false, AX_LIST(1, in), AX_LIST(1, &pair_type), out); }
static AX_BODY(io_ordered) { ax_io_callback(context, true, AX_LIST(1, in), AX_LIST(1, &pair_type), out); }
static AX_BODY(print_each) { ax_debug_print("{}", false, AX_LIST(1, in)), out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(print_ordered) { ax_debug_print("{}", true, AX_LIST(1, in)), out[0] = in[0]; }

static ax_status batched(ax_function function, void *context, ax_program **out) {
  ax_program *program = test_trace(function, context, &pair_type, 1, 1);
  ax_status status = ax_program_vmap(program, &(ax_vmap_options){.size = 3}, out);
  ax_program_release(program);
  return status;
}

static void batches(void **state) {
  (void)state;
  static const struct {
    ax_function function;
    const char *wanted;
  } rows[] = {{pure_each, "device 0: c(1)\ndevice 0: c(3)\ndevice 0: c(5)\n"}, {pure_all, "device 0: c(1)\n"},
              {io_each, "device 0: c(1)\ndevice 0: c(3)\ndevice 0: c(5)\n"},  {print_each, "[1.0, 2.0]\n[3.0, 4.0]\n[5.0, 6.0]\n"}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    test_log log;
    double first[1];
    ax_program *program;
    test_log_begin(&log);
    ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 2}, &log);
    ax_callback *c = test_callback("c", test_count_call, &log);
    TEST_OK(batched(rows[i].function, c, &program));
    TEST_OK(test_run_calls(runtime, program, first));
    assert_string_equal(test_log_text(&log), rows[i].wanted);
    TEST_NEAR(first[0], rows[i].function == print_each ? 1 : 2, 0);
    ax_program_release(program);
    ax_callback_release(c);
    ax_runtime_release(runtime);
    test_log_end(&log);
  }
  ax_program *none;
  ax_callback *c = test_callback("c", test_count_call, NULL);
  TEST_FAILS(batched(io_ordered, c, &none), AX_ABSENT, "vmap: no ordered_io_callback: the elements of a batch have no order");
  TEST_FAILS(batched(print_ordered, NULL, &none), AX_ABSENT, "vmap: no ordered_debug_print");
  ax_callback_release(c);
}

static AX_BODY(choose) {
  ax_value positive = ax_gt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_real(0));
  ax_if(positive, AX_FN(print_each, 1, 1), AX_FN(print_ordered, 1, 1), in, out);
}
static AX_BODY(still) { out[0] = ax_lt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_real(9)); }
static AX_BODY(go_on) { ax_while(AX_FN(still, 1, 1), AX_FN(print_each, 1, 1), in, out); }

static void chosen_by_members(void **state) {
  (void)state;
  ax_program *none;
  TEST_FAILS(batched(choose, NULL, &none), AX_ABSENT, "calls the host, but each member of the batch chooses a branch of its own");
  TEST_FAILS(batched(go_on, NULL, &none), AX_ABSENT, "the loop calls the host, but each member of the batch ends by itself");
}

static void derivatives(void **state) {
  (void)state;
  static const struct {
    ax_function function;
    const char *name;
  } rows[] = {{pure_each, "pure_callback"}, {io_each, "io_callback"}, {io_ordered, "ordered_io_callback"}};
  ax_callback *c = test_callback("c", test_count_call, NULL);
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = test_trace(rows[i].function, c, &pair_type, 1, 1), *none, *other;
    uint32_t residuals;
    TEST_FAILS(ax_program_jvp(program, AX_ALL_ARGS, &none), AX_ABSENT, rows[i].name);
    assert_non_null(strstr(ax_message(), "has no derivatives; a function around it can be given some (custom_jvp, custom_vjp)"));
    TEST_FAILS(ax_program_linearize(program, AX_ALL_ARGS, &none, &other, &residuals), AX_ABSENT, rows[i].name);
    ax_program_release(program);
  }
  ax_callback_release(c);
}

/* What is printed in a function is printed once by its derivative: in loops, branches and bodies too; and where a rule of one's own
   prints tangents. */
static AX_BODY(print_in_scan) {
  ax_debug_print("body {:.1f}", true, AX_LIST(1, in));
  out[0] = ax_mul(in[0], in[0]);
}
static AX_BODY(print_alone) { ax_debug_print("call {:.1f}", true, AX_LIST(1, in)); }
static AX_BODY(printing) {
  ax_value x;
  ax_closed_call(AX_FN(print_alone, 1, 0), in, NULL);
  ax_debug_print("x {:.1f}", true, AX_LIST(1, in));
  ax_scan(AX_FN(print_in_scan, 1, 1), 1, 2, false, in, &x);
  ax_debug_print("after", true, AX_VALUES());
  out[0] = ax_reduce_sum(x, AX_ALL_DIMS, false);
}
static AX_BODY(gradient) { ax_grad(AX_FN(printing, 1, 1), AX_FIRST(1), in, out); }

static AX_BODY(square) { out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(square_rule) { /* x, dx */
  ax_debug_print("tangent {:.1f}", false, AX_LIST(1, in + 1));
  out[0] = ax_mul(in[0], in[0]);
  out[1] = ax_mul(ax_mul(in[0], ax_real(2)), in[1]);
}
static AX_BODY(ruled) {
  ax_value y;
  ax_custom_jvp(AX_FN(square, 1, 1), AX_FN(square_rule, 2, 2), in, &y);
  out[0] = ax_reduce_sum(y, AX_ALL_DIMS, false);
}
static AX_BODY(ruled_jvp) {
  ax_value one = ax_full(AX_F32, AX_DIMS(2), 1);
  ax_jvp(AX_FN(ruled, 1, 1), AX_FIRST(1), in, &one, out, out + 1);
}

static AX_BODY(printing_again) { ax_checkpoint(AX_FN(printing, 1, 1), in, out, context); }
static AX_BODY(gradient_again) { ax_grad(AX_CLOSURE(printing_again, 1, 1, context), AX_FIRST(1), in, out); }
static AX_BODY(gradient_everything) { gradient_again(in, out, &(ax_checkpoint_options){.save_everything = true}); }
static AX_BODY(gradient_prints) { gradient_again(in, out, &(ax_checkpoint_options){.save_primitives = "ordered_debug_print"}); }
static AX_BODY(in_two) { ax_checkpoint(AX_FN(print_each, 1, 1), in, out, NULL); }
static AX_BODY(sum_in_two) {
  ax_checkpoint(AX_FN(in_two, 1, 1), in, out, NULL);
  out[0] = ax_reduce_sum(out[0], AX_ALL_DIMS, false);
}
static AX_BODY(gradient_in_two) { ax_grad(AX_FN(sum_in_two, 1, 1), AX_FIRST(1), in, out); }
static AX_BODY(io_in_checkpoint) { ax_checkpoint(AX_CLOSURE(io_each, 1, 1, context), in, out, NULL); }
static AX_BODY(io_beside) { /* what it is called with has no tangent */
  ax_value seen;
  io_each((ax_value[]){ax_full(AX_F32, AX_DIMS(2), 1)}, &seen, context);
  out[0] = ax_mul(in[0], in[0]);
}

static void prints_once(ax_function function, uint32_t out_count, const char *wanted) {
  test_log log;
  double first[2];
  test_log_begin(&log);
  ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 2}, &log);
  ax_program *program = test_trace(function, NULL, &pair_type, 1, out_count);
  TEST_OK(test_run_calls(runtime, program, first));
  assert_string_equal(test_log_text(&log), wanted);
  ax_program_release(program);
  ax_runtime_release(runtime);
  test_log_end(&log);
}

static void derivatives_of_prints(void **state) {
  (void)state;
  prints_once(gradient, 1, "call [1.0, 2.0]\nx [1.0, 2.0]\nbody [1.0, 2.0]\nbody [1.0, 4.0]\nafter\n");
  prints_once(ruled_jvp, 2, "tangent [1.0, 1.0]\n");
}

/* What is printed in a checkpoint is printed again, in the same order, where its derivative does it again, as in JAX; of two around
   it, the outer does the inner again, whose derivative does it once more. Kept parts do not print again; of a scan that is done
   again all does. */
#define PRINTED(scan) "call [1.0, 2.0]\nx [1.0, 2.0]\n" scan "after\n"
#define IN_SCAN "body [1.0, 2.0]\nbody [1.0, 4.0]\n"
static void prints_in_checkpoints(void **state) {
  (void)state;
  prints_once(printing_again, 1, PRINTED(IN_SCAN));
  prints_once(gradient_again, 1, PRINTED(IN_SCAN) PRINTED(IN_SCAN));
  prints_once(gradient_everything, 1, PRINTED(IN_SCAN));
  prints_once(gradient_prints, 1, PRINTED(IN_SCAN) "call [1.0, 2.0]\n" IN_SCAN);
  prints_once(gradient_in_two, 1, "[1.0, 2.0]\n[1.0, 2.0]\n[1.0, 2.0]\n");
}

static AX_BODY(io_beside_in_checkpoint) { ax_checkpoint(AX_CLOSURE(io_beside, 1, 1, context), in, out, NULL); }
static void io_in_checkpoints(void **state) {
  (void)state;
  test_log log;
  double first[1];
  test_log_begin(&log);
  ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 2}, &log);
  ax_callback *c = test_callback("c", test_count_call, &log);
  ax_program *program = test_trace(io_in_checkpoint, c, &pair_type, 1, 1), *none, *other;
  uint32_t residuals;
  TEST_OK(test_run_calls(runtime, program, first));
  assert_string_equal(test_log_text(&log), "device 0: c(1)\n");
  ax_program_release(program);
  program = test_trace(io_beside_in_checkpoint, c, &pair_type, 1, 1);
  TEST_FAILS(ax_program_linearize(program, AX_ALL_ARGS, &none, &other, &residuals), AX_ABSENT,
             "checkpoint has no derivatives where its body has an io_callback: it would be called again");
  ax_program_release(program);
  ax_callback_release(c);
  ax_runtime_release(runtime);
  test_log_end(&log);
}

/* Nobody reads: nothing is compiled. */
static void nobody_reads(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_executable *executable;
  char *text;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = test_parsed(
      "{ lambda x:f32[2]. let = debug_print[axes=() format=\"{}\"] x = ordered_debug_print[axes=() format=\"a\"] in (x) }");
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_executable_text(executable, &text));
  assert_null(strstr(text, "debug_print"));
  ax_string_free(text);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* Elsewhere a name means nothing. */
static void not_exported(void **state) {
  (void)state;
  char *text;
  ax_program *program = test_parsed("{ lambda x:f32[2]. let = debug_print[axes=() format=\"{}\"] x in (x) }");
  TEST_FAILS(ax_program_stablehlo(program, &text), AX_ABSENT,
             "debug_print has no StableHLO form: it calls a function of this process");
  ax_program_release(program);
}

/* --- What programs may not say --- */

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *equation, *part;
  } rows[] = {
      {"= debug_print[axes=() format=\"{} {}\"] x", "the format has 2 fields, but there is 1 value"},
      {"= debug_print[axes=() format=\"\"] x", "the format has 0 fields, but there is 1 value"},
      {"= debug_print[axes=() format=\"a {\"] x", "the format, at byte 2: a field is {} or {:[width][.precision][type]}"},
      {"= debug_print[axes=() format=\"a }\"] x", "the format, at byte 2: a closing brace stands alone"},
      {"= debug_print[axes=() format=\"{0}\"] x", "at byte 0: a field is {} or"},
      {"= debug_print[axes=() format=\"{:.f}\"] x", "the point is not followed by a precision"},
      {"= debug_print[axes=() format=\"{:100f}\"] x", "a width or precision is above 99"},
      {"= debug_print[axes=() format=\"{:d}\"] x", "field 0 is for integers, but its value is f32[2]"},
      {"= debug_print[axes=() format=\"{:.2f}\"] i", "field 0 is for floats, but its value is s32[]"},
      {"= debug_print[axes=() format=\"{:.2d}\"] i", "field 0 has a precision, which type d has not"},
      {"= debug_print[axes=() format={}] i", "expected a text, as \"x={}\""},
      {"= debug_print[axes=() format=\"\\q\"]", "a backslash is followed by n, another one, or x and two hexadecimal digits"},
      {"= debug_print[axes=() format=\"\\x00\"]", "a backslash is followed by n"},
      {"= debug_print[axes=() format=\"\\x4\"]", "a backslash is followed by n"},
      {"= debug_print[axes=() format=\"open\n\"]", "the string has no end on its line"},
      {"= debug_print[axes=(d) format=\"\"]", "axis \"d\" is not bound"},
      {"= pure_callback[vectorized=false callback=\"c\" types=()] x",
       "there are no results; a function with effects is an io_callback"},
      {"= io_callback[axes=() callback=\"\" types=()] x", "a callback's name has 1 to 255 bytes, not 0"},
      {"y:f32[3] = io_callback[axes=() callback=\"c\" types=(f32[2])] x", "io_callback gives f32[2] here"},
      {"y:f32[3] = io_callback[axes=() callback=\"c\" types=(f32[2], f32[3])] x", "io_callback gives 2 results, but 1 are named"},
      {"f:future<f32[2]> = start[body={ lambda a:f32[2]. let = debug_print[axes=() format=\"\"] in (a) }] x y:f32[2] = done f",
       "the body calls the host"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    char text[512];
    ax_program *program;
    snprintf(text, sizeof text, "{ lambda x:f32[2] i:s32[]. let\n %s\n in (x) }", rows[i].equation);
    TEST_FAILS(ax_program_parse(text, strlen(text), "t", &program), AX_PARSE_ERROR, rows[i].part);
  }
  static const char diverging[] =
      "{ axes d=2 ; lambda x:f32[2]{V:d}. let i:s32[]{V:d} = axis_index[axes=(d)]\n"
      " = cond[branches=({ axes d=2 ; lambda . let = ordered_debug_print[axes=(d) format=\"\"] in () })] i in (x) }";
  ax_program *program;
  TEST_FAILS(ax_program_parse(diverging, strlen(diverging), "t", &program), AX_PARSE_ERROR,
             "not all of them would reach the ordered_debug_print over {d}");
  TEST_FAILS(ax_trace(AX_CLOSURE(io_each, 1, 1, NULL), &pair_type, &program), AX_INVALID_ARGUMENT,
             "io_callback: there is no callback");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches),
                                     cmocka_unit_test(chosen_by_members),
                                     cmocka_unit_test(derivatives),
                                     cmocka_unit_test(derivatives_of_prints),
                                     cmocka_unit_test(prints_in_checkpoints),
                                     cmocka_unit_test(io_in_checkpoints),
                                     cmocka_unit_test(nobody_reads),
                                     cmocka_unit_test(not_exported),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
