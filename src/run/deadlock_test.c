/* Devices that wait for what never comes: found at once under every policy, with a report that says who waits, where, and who never
   comes; and what the runtime can do afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/run.h"

static const ax_runtime_options ways[] = {
    {.policy = AX_POLICY_FIXED},
    {.policy = AX_POLICY_SEEDED, .seed = 1},
    {.policy = AX_POLICY_SEEDED, .seed = 99},
    {.policy = AX_POLICY_PARALLEL, .workers = 1},
    {.policy = AX_POLICY_PARALLEL, .workers = 2},
    {.policy = AX_POLICY_PARALLEL, .workers = 7},
};

/* --- Bodies --- */

/* Reports number equations, so the order of a call's arguments, which a compiler is free to choose, says nothing here. */
static void sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value half = ax_full_like(in[0], 0.5);
  out[0] = ax_mul(ax_psum(in[0], "d"), half);
}

static void gather(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(ax_all_gather(in[0], "d", 0, false), AX_DIMS(0), false);
}

static void rotate(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  out[0] = ax_ppermute(in[0], "d", 4, ring);
}

static void nothing(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}

static void branch(const ax_value *in, ax_value *out, ax_value index, ax_function zero, ax_function more) {
  ax_if(index, AX_FN(more, 1, 1), AX_FN(zero, 1, 1), in, out);
}

static ax_value is_device(int64_t d) { return ax_eq(ax_axis_index("d"), ax_full(AX_S32, AX_DIMS(), (double)d)); }

static void all_but_the_third(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  branch(in, out, is_device(2), sum, nothing);
}

static void only_the_second_and_fourth(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  branch(in, out, ax_or(is_device(1), is_device(3)), nothing, sum);
}

static void some_permute(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  branch(in, out, is_device(0), rotate, nothing);
}

static void some_gather(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  branch(in, out, is_device(3), nothing, gather);
}

static void sum_or_gather(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  branch(in, out, is_device(1), sum, gather);
}

static void then_another_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value chosen;
  branch(in, &chosen, is_device(2), sum, nothing);
  out[0] = ax_psum(chosen, "d");
}

/* As many times as the device's number and one more. */
static void below(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_le(in[0], ax_axis_index("d"));
}

static void count_and_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_full_like(in[0], 1));
  const ax_value quarter = ax_full_like(in[1], 0.25);
  out[1] = ax_mul(ax_psum(in[1], "d"), quarter);
}

static void different_trips(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value results[2];
  ax_while(AX_FN(below, 2, 1), AX_FN(count_and_sum, 2, 2), AX_VALUES(ax_full(AX_S32, AX_DIMS(), 0), in[0]), results);
  out[0] = results[1];
}

/* In the third iteration, the fourth device stays away; in the end the others have a sum more to do. */
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_full_like(in[0], 1));
  ax_value third = ax_eq(in[0], ax_full_like(in[0], 2));
  branch(in + 1, out + 1, ax_and(third, is_device(3)), sum, nothing);
}

static void in_a_scan(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value results[2];
  ax_scan(AX_FN(step, 2, 2), 2, 5, false, AX_VALUES(ax_full(AX_S32, AX_DIMS(), 0), in[0]), results);
  out[0] = results[1];
}

/* Much of it is gone before devices run it: what is not used, equal or needless. */
static void after_much_else(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_tanh(in[0]), y = ax_tanh(in[0]), unused = ax_exp(ax_exp(ax_exp(in[0])));
  for (int i = 0; i < 4; i++) x = ax_mul(x, ax_full_like(x, 1));
  (void)ax_psum(unused, "d");
  branch((ax_value[]){ax_add(x, y)}, out, is_device(2), sum, nothing);
  out[0] = ax_psum(ax_neg(ax_neg(out[0])), "d");
}

static void over_one_of_two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value mine = ax_eq(ax_axis_index("d,e"), ax_full(AX_S32, AX_DIMS(), 3));
  branch(in, out, mine, sum, nothing);
}

/* --- The walk --- */

typedef struct expected {
  test_map m;
  const char *parts[6]; /* of the report, in this order */
} expected;

static const char *find_in_order(const char *message, const char *const *parts, size_t count) {
  for (size_t i = 0; i < count && parts[i] != NULL; i++) {
    message = strstr(message, parts[i]);
    if (message == NULL) return parts[i];
    message += strlen(parts[i]);
  }
  return NULL;
}

static void check_message(const char *const *parts, size_t count) {
  const char *missing = find_in_order(ax_message(), parts, count);
  if (missing != NULL) fail_msg("no \"%s\" in \"%s\"", missing, ax_message());
}

/* The runtime goes on: another program of the same shape gives its result. */
static void still_works(ax_runtime *runtime, const test_map *m, ax_array *x) {
  test_map good = {m->mesh, {m->in_specs[0]}, {m->out_specs[0]}, .body = nothing};
  ax_type type = *ax_array_typeof(x);
  ax_program *program = test_trace_map(&good, &type);
  ax_executable *executable;
  ax_array *y;
  float values[8];
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  TEST_OK(ax_run(executable, &x, &y));
  TEST_OK(ax_array_read(y, values, sizeof values));
  for (int i = 0; i < 8; i++) assert_true(values[i] == -(float)(i + 1));
  ax_array_release(y);
  ax_executable_release(executable);
  ax_program_release(program);
}

static void deadlock_in(const expected *e, const ax_runtime_options *options, char **first) {
  ax_type type = TEST_TYPE(AX_F32, 8);
  float values[8];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  size_t before = 0, bytes, peak;
  test_map m = e->m;
  for (int i = 0; i < 8; i++) values[i] = (float)(i + 1);
  ax_program *program = test_trace_map(&m, &type);
  TEST_OK(ax_runtime_create(options, &runtime));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, values, &x));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  for (int again = 0; again < 3; again++) {
    y = x;
    assert_int_equal(ax_run(executable, &x, &y), AX_DEADLOCK);
    assert_null(y);
    check_message(e->parts, sizeof e->parts / sizeof e->parts[0]);
    if (*first == NULL) *first = strdup(ax_message());
    assert_string_equal(ax_message(), *first);
    still_works(runtime, &m, x);
    ax_runtime_memory(runtime, &bytes, &peak);
    if (again > 0 && options->workers <= 1) assert_int_equal(bytes, before); /* threads take scratch memory as they come */
    before = bytes;
  }
  ax_array_release(x);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_trim(runtime);
  ax_runtime_memory(runtime, &bytes, &peak);
  assert_int_equal(bytes, 0);
  ax_runtime_release(runtime);
}

static void every_way(const expected *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char *first = NULL; /* the report is the same however devices are scheduled */
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) deadlock_in(&cases[i], &ways[w], &first);
    free(first);
  }
}

static void branches(void **state) {
  (void)state;
  static const expected cases[] = {
      {{"d=4", {"d"}, {"d"}, .body = all_but_the_third, .unchecked = true},
       {"3 of 4 devices",
        "at psum f32[2] over d (equation 1 of branch 0 of cond, equation 3): device 0 (d=0), device 1 (d=1), device 3 (d=3)",
        "never come: device 2 (d=2), which has finished"}},
      {{"d=4", {"d"}, {"d"}, .body = only_the_second_and_fourth, .unchecked = true},
       {"2 of 4 devices", "at psum f32[2] over d (equation 1 of branch 1 of cond, equation 6): device 1 (d=1), device 3 (d=3)",
        "never come: device 0 (d=0), which has finished, device 2 (d=2), which has finished"}},
      {{"d=4", {"d"}, {"d"}, .body = some_permute, .unchecked = true},
       {"1 of 4 devices", "at ppermute f32[2] over d", "device 1 (d=1)\n", "never come: device 0 (d=0), which has finished"}},
      {{"d=4", {"d"}, {"d"}, .body = some_gather, .unchecked = true},
       {"1 of 4 devices", "at all_gather f32[1,2] over d", "device 3 (d=3)",
        "never come: device 0 (d=0), which has finished, device 1", "device 2"}},
  };
  every_way(cases, sizeof cases / sizeof cases[0]);
}

static void elsewhere(void **state) {
  (void)state;
  static const expected cases[] = {
      {{"d=4", {"d"}, {"d"}, .body = sum_or_gather, .unchecked = true},
       {"4 of 4 devices",
        "at psum f32[2] over d (equation 1 of branch 0 of cond, equation 3): device 0 (d=0), device 2 (d=2), device 3 (d=3)",
        "never come: device 1 (d=1), which waits at all_gather f32[1,2] over d",
        "at all_gather f32[1,2] over d (equation 1 of branch 1 of cond, equation 3): device 1 (d=1)",
        "never come: device 0 (d=0), which waits at psum f32[2] over d", "device 3 (d=3), which waits at psum"}},
      {{"d=4", {"d"}, {"d"}, .body = then_another_sum, .unchecked = true},
       {"4 of 4 devices",
        "at psum f32[2] over d (equation 1 of branch 0 of cond, equation 3): device 0 (d=0), device 1 (d=1), device 3 (d=3)",
        "never come: device 2 (d=2), which waits at psum f32[2] over d (equation", "device 2 (d=2)\n",
        "never come: device 0 (d=0), which waits at psum f32[2] over d (equation 1 of branch 0 of cond, equation 3), device 1"}},
      {{"d=4", {"d"}, {"d"}, .body = after_much_else, .unchecked = true}, /* numbered as the program that was compiled is printed */
       {"4 of 4 devices",
        "at psum f32[2] over d (equation 1 of branch 0 of cond, equation 18): device 0 (d=0), device 1 (d=1), device 3 (d=3)",
        "never come: device 2 (d=2), which waits at psum f32[2] over d (equation 21)"}},
      {{"d=2,e=2", {"d"}, {"d"}, .body = over_one_of_two, .unchecked = true},
       {"1 of 4 devices", "at psum f32[4] over d (equation 1 of branch 0 of cond, equation 3): device 1 (d=0,e=1)",
        "never come: device 3 (d=1,e=1), which has finished"}},
  };
  every_way(cases, sizeof cases / sizeof cases[0]);
}

static void loops(void **state) {
  (void)state;
  static const expected cases[] = {
      {{"d=4", {"d"}, {"d"}, .body = different_trips, .unchecked = true},
       {"3 of 4 devices", "at psum f32[2] over d (equation", "device 1 (d=1), device 2 (d=2), device 3 (d=3)",
        "never come: device 0 (d=0), which has finished"}},
      {{"d=4", {"d"}, {"d"}, .body = in_a_scan, .unchecked = true},
       {"3 of 4 devices",
        "at psum f32[2] over d (equation 1 of branch 0 of cond, equation 6 of body of scan, equation 0): device 0 (d=0), device 1 (d=1), device 2 (d=2)",
        "never come: device 3 (d=3), which has finished"}},
  };
  every_way(cases, sizeof cases / sizeof cases[0]);
}

/* With its types checked, the same is refused where it is built. */
static void refused_when_checked(void **state) {
  (void)state;
  const ax_function bodies[] = {all_but_the_third, some_permute,    some_gather, sum_or_gather,
                                then_another_sum,  different_trips, in_a_scan};
  ax_type type = TEST_TYPE(AX_F32, 8);
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    test_map m = {"d=4", {"d"}, {"d"}, .body = bodies[i]};
    ax_program *program;
    TEST_FAILS(ax_trace(AX_CLOSURE(test_map_body, 1, 1, &m), &type, &program), AX_INVALID_ARGUMENT,
               "devices may differ along {d} in what they run here, so not all of them would reach the ");
    assert_null(program);
  }
}

/* A thousand devices: the report stays short, and says how many it leaves out. */
static void many_devices(void **state) {
  (void)state;
  test_map m = {"d=1024", {"d"}, {"d"}, .body = all_but_the_third, .unchecked = true};
  ax_type type = TEST_TYPE(AX_F32, 2048);
  float *values = calloc(2048, sizeof values[0]);
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  ax_program *program = test_trace_map(&m, &type);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, values, &x));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  test_use_threads(executable);
  TEST_FAILS(ax_run(executable, &x, &y), AX_DEADLOCK, "1023 of 1024 devices");
  check_message((const char *[]){"device 16 (d=16) and 1007 more", "never come: device 2 (d=2), which has finished"}, 2);
  assert_true(strlen(ax_message()) < 4096);
  free(values);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

/* Equal programs of two texts: each is reported at its own line. */
static void lines(void **state) {
  (void)state;
  static const char *const head = "# a comment\n\n";
  ax_type type = TEST_TYPE(AX_F32, 8);
  float values[8] = {0};
  char *text, longer[4096];
  ax_runtime *runtime;
  ax_array *x, *y;
  ax_program *traced = test_trace_map(&(test_map){"d=4", {"d"}, {"d"}, .body = all_but_the_third, .unchecked = true}, &type);
  TEST_OK(ax_program_print(traced, &text));
  snprintf(longer, sizeof longer, "%s%s", head, text);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, values, &x));
  ax_executable *executables[2];
  ax_program *programs[2];
  unsigned reported[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    TEST_OK(ax_program_parse(i == 0 ? text : longer, strlen(i == 0 ? text : longer), "text", &programs[i]));
    TEST_OK(ax_compile(runtime, programs[i], NULL, &executables[i]));
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(ax_run(executables[i], &x, &y), AX_DEADLOCK);
    const char *line = strstr(ax_message(), ", line ");
    assert_non_null(line);
    reported[i] = (unsigned)atoi(line + strlen(", line "));
  }
  assert_int_equal(reported[1], reported[0] + 2);
  for (int i = 0; i < 2; i++) {
    ax_executable_release(executables[i]);
    ax_program_release(programs[i]);
  }
  ax_string_free(text);
  ax_array_release(x);
  ax_program_release(traced);
  ax_runtime_release(runtime);
}

/* An array donated to a run that failed midway may have been overwritten: it is gone, and its memory is not lost. */
static void donated(void **state) {
  (void)state;
  test_map m = {"d=4", {"d"}, {"d"}, .body = all_but_the_third, .unchecked = true};
  ax_type type = TEST_TYPE(AX_F32, 8);
  float values[8] = {0};
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  ax_mesh mesh;
  size_t bytes, peak;
  TEST_OK(ax_mesh_parse(m.mesh, &mesh));
  ax_program *program = test_trace_map(&m, &type);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_FIRST(1)}, &executable));
  for (int other_layout = 0; other_layout < 2; other_layout++) {
    TEST_OK(ax_device_put_data(runtime, &mesh, other_layout ? "" : "d", &type, values, &x));
    TEST_FAILS(ax_run(executable, &x, &y), AX_DEADLOCK, "3 of 4 devices");
    TEST_FAILS(ax_array_read(x, values, sizeof values), AX_INVALID_ARGUMENT, "donated");
    TEST_FAILS(ax_run(executable, &x, &y), AX_INVALID_ARGUMENT, "donated to an earlier run");
    ax_array_release(x);
  }
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_trim(runtime);
  ax_runtime_memory(runtime, &bytes, &peak);
  assert_int_equal(bytes, 0);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(branches), cmocka_unit_test(elsewhere),    cmocka_unit_test(loops),
      cmocka_unit_test(refused_when_checked), cmocka_unit_test(many_devices), cmocka_unit_test(donated),
      cmocka_unit_test(lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
