/* What is wrong with slices of ragged_all_to_all, and what is said of it: by the reference rule, and by runs in every order
   and in several processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/processes.h"
#include "support/run.h"

static const ax_runtime_options ways[] = {
    {.policy = AX_POLICY_FIXED},
    {.policy = AX_POLICY_SEEDED, .seed = 3},
    {.policy = AX_POLICY_SEEDED, .seed = 77},
    {.policy = AX_POLICY_PARALLEL, .workers = 2},
    {.policy = AX_POLICY_PARALLEL, .workers = 5},
};

enum { FROM, SIZE, TO, EXPECTED, tables, from_rows = 4, to_rows = 6 };
static const char four_rows[] = "leaves its 4 rows";

/* Both devices' tables, one slice for each; sound. */
static const double sound[tables * 4] = {0, 2, 1, 0, /* sizes */ 2, 1, 2, 3, /* to */ 0, 0, 2, 1, /* expected */ 2, 2, 1, 3};

typedef struct fault {
  int table, at;
  double value;
  const char *said; /* NULL: nothing is wrong */
  bool unchecked;   /* ax_compile_options.unchecked_ragged */
} fault;

static const fault faults[] = {
    {FROM, 0, 0, NULL, false},
    {FROM, 2, -1, "input_offsets[0] is -1 on device 1 (d=1)", false},
    {SIZE, 1, -2, "send_sizes[1] is -2 on device 0 (d=0)", false},
    {TO, 3, -3, "output_offsets[1] is -3 on device 1 (d=1)", false},
    {FROM, 3, 2, "slice 1 of device 1 (d=1) (offset 2, size 3, output offset 1) leaves its 4 rows", false},
    {FROM, 0, 2147483647, four_rows, false},
    {SIZE, 0, 2147483647, four_rows, false},
    {TO, 3, 4, "slice 1 of device 1 (d=1) (offset 0, size 3, output offset 4) leaves the 6 rows of the output on device 1 (d=1)",
     false},
    {TO, 0, 2147483647, "leaves the 6 rows of the output on device 0 (d=0)", false},
    {EXPECTED, 2, 2,
     "slice 1 of device 0 (d=0) (offset 2, size 1, output offset 0) is not of the size that recv_sizes[0] is, 2, on device 1 (d=1)",
     false},
    {EXPECTED, 2, 2, NULL, true},
    {EXPECTED, 0, -2, "is not of the size that recv_sizes[0] is, -2, on device 0 (d=0)", false},
    {TO, 2, 1,
     "slice 0 of device 0 (d=0) (offset 0, size 2, output offset 0) and slice 0 of device 1 (d=1) (offset 1, size 2, output offset 1) overlap in "
     "the output on device 0 (d=0)",
     false},
    {TO, 2, 1, "overlap in the output on device 0", true},
    {FROM, 3, 2, four_rows, true},
};

static void types_of(ax_type *types) {
  types[0] = TEST_TYPE(AX_F32, 2 * from_rows, 3);
  types[1] = TEST_TYPE(AX_F32, 2 * to_rows, 3);
  for (int k = 0; k < tables; k++) types[2 + k] = TEST_TYPE(AX_S32, 4);
}

/* Runs on inputs of these types, numbers from 0 on but for the tables, in every way: the same message, or none. */
static void check_runs_as(ax_status kind, ax_program *program, const ax_type *types, const double *table,
                          const ax_compile_options *options, const char *said) {
  char first[4096] = "";
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
    ax_runtime *runtime;
    ax_executable *executable;
    ax_array *in[6], *out;
    TEST_OK(ax_runtime_create(&ways[w], &runtime));
    TEST_OK(ax_compile(runtime, program, options, &executable));
    test_use_threads(executable);
    for (int k = 0; k < 6; k++) {
      ax_tensor *tensor = test_tensor(types[k], k >= 2 ? table + 4 * (k - 2) : NULL);
      TEST_OK(ax_executable_put(executable, (uint32_t)k, tensor->data, &in[k]));
      ax_tensor_release(tensor);
    }
    ax_status status = ax_run(executable, in, &out);
    if (said == NULL) TEST_OK(status);
    else TEST_FAILS(status, kind, said);
    if (first[0] == '\0') snprintf(first, sizeof first, "%s", ax_message());
    if (said != NULL) assert_string_equal(ax_message(), first);
    for (int k = 0; k < 6; k++) ax_array_release(in[k]);
    ax_array_release(out);
    ax_executable_release(executable);
    ax_runtime_release(runtime);
  }
}

static void check_runs(ax_program *program, const ax_type *types, const double *table, const ax_compile_options *options,
                       const char *said) {
  check_runs_as(AX_INVALID_ARGUMENT, program, types, table, options, said);
}

static void exchange(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_ragged_all_to_all(in[0], in[1], in[2], in[3], in[4], in[5], context != NULL ? context : "d");
}

static ax_program *program_of(ax_function body) {
  ax_type types[6];
  types_of(types);
  const test_map map = {"d=2", {"d", "d", "d", "d", "d", "d"}, {"d"}, body, false, NULL};
  return test_trace_map(&map, types);
}

static void each_fault(void **state) {
  (void)state;
  ax_program *program = program_of(exchange);
  ax_type types[6];
  types_of(types);
  for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++) {
    const fault *fault = &faults[f];
    double table[tables * 4];
    ax_tensor *in[6], *out = NULL;
    memcpy(table, sound, sizeof table);
    table[4 * fault->table + fault->at] = fault->value;
    check_runs(program, types, table, &(ax_compile_options){.unchecked_ragged = fault->unchecked}, fault->said);
    if (fault->unchecked) continue; /* of compiled code alone */
    for (int k = 0; k < 6; k++) in[k] = test_tensor(types[k], k >= 2 ? table + 4 * (k - 2) : NULL);
    ax_status status = ax_evaluate(program, in, &out);
    if (fault->said == NULL) TEST_OK(status);
    else TEST_FAILS(status, AX_INVALID_ARGUMENT, fault->said);
    ax_tensor_release(out);
    test_release(in, 6);
  }
  ax_program_release(program);
}

/* --- In loops: the iteration is said, and the first one that is wrong --- */

static void go_on(const ax_value *in, ax_value *out, void *context) {
  const ax_value *t = context;
  out[0] = ax_ragged_all_to_all(t[0], in[0], in[1], t[3], t[4], t[5], "d");
  out[1] = ax_add(in[1], ax_full_like(in[1], 1));
}

static void again(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value carries[2];
  ax_scan(AX_CLOSURE(go_on, 2, 2, (void *)in), 2, 5, false, AX_VALUES(in[1], in[2]), carries);
  out[0] = carries[0];
}

static void iterations(void **state) {
  (void)state;
  ax_program *program = program_of(again);
  ax_type types[6];
  types_of(types);
  check_runs(program, types, sound, NULL,
             "slice 0 of device 1 (d=1) (offset 3, size 2, output offset 2) leaves its 4 rows, in iteration 2 of scan");
  ax_program_release(program);
}

/* --- In several processes: all say what one says --- */

static const uint32_t apart[] = {0, 1}, turned[] = {1, 0}, behind[] = {2, 1};
static const test_spread spreads[] = {
    {.processes = 2, .workers = 1, .listed = 2, .of = apart},
    {.processes = 2, .workers = 2, .listed = 2, .of = turned, .delays = true, .seed = 3},
    {.processes = 3, .workers = 1, .listed = 2, .of = behind, .delays = true, .seed = 4},
    {.processes = 3, .workers = 1, .listed = 2, .of = turned, .delays = true, .policy = AX_POLICY_SEEDED, .seed = 5},
};

/* said: by one process; others say in addition which process has found it. */
static void check_spreads(ax_program *program, const ax_type *types, const double *table, const char *said) {
  ax_tensor *in[6], *out;
  char message[8192];
  for (int k = 0; k < 6; k++) in[k] = test_tensor(types[k], k >= 2 ? table + 4 * (k - 2) : NULL);
  for (size_t i = 0; i < AX_COUNT(spreads); i++) {
    ax_status status = test_in_processes(program, &spreads[i], in, said == NULL ? &out : NULL, message);
    assert_int_equal(status, said == NULL ? AX_OK : AX_INVALID_ARGUMENT);
    if (said == NULL) ax_tensor_release(out);
    else assert_string_equal(strstr(message, ": ") + 2, said);
  }
  test_release(in, 6);
}

static void said_by_one(ax_program *program, const ax_type *types, const double *table, char *message) {
  ax_tensor *in[6];
  for (int k = 0; k < 6; k++) in[k] = test_tensor(types[k], k >= 2 ? table + 4 * (k - 2) : NULL);
  (void)!test_in_processes(program, &(test_spread){.processes = 1, .workers = 1}, in, NULL, message);
  test_release(in, 6);
}

static void each_fault_between_processes(void **state) {
  (void)state;
  ax_program *program = program_of(exchange);
  ax_type types[6];
  types_of(types);
  for (size_t f = 0; f < AX_COUNT(faults); f++) {
    double table[tables * 4];
    char message[8192] = "";
    if (faults[f].unchecked) continue;
    memcpy(table, sound, sizeof table);
    table[4 * faults[f].table + faults[f].at] = faults[f].value;
    if (faults[f].said != NULL) said_by_one(program, types, table, message);
    if (faults[f].said != NULL) assert_non_null(strstr(message, faults[f].said));
    check_spreads(program, types, table, faults[f].said != NULL ? message : NULL);
  }
  ax_program_release(program);
}

/* Both devices find something: the earlier in the program is said, and at one place that of the lower device, whichever process
   has it and whichever came first. */
static void the_first_of_several_is_said(void **state) {
  (void)state;
  ax_program *once = program_of(exchange), *looped = program_of(again);
  ax_type types[6];
  double table[tables * 4];
  char message[8192];
  types_of(types);
  memcpy(table, sound, sizeof table);
  table[4 * TO + 2] = table[4 * TO + 3] = 7; /* device 1 sends beyond the outputs of both */
  said_by_one(once, types, table, message);
  assert_non_null(strstr(message, "on device 0 (d=0)"));
  check_spreads(once, types, table, message);
  said_by_one(looped, types, sound, message);
  assert_non_null(strstr(message, "in iteration 2 of scan"));
  check_spreads(looped, types, sound, message);
  memcpy(table, sound, sizeof table);
  table[4 * FROM + 3] = -1; /* of device 1 in the first iteration; later ones of device 0 */
  said_by_one(looped, types, table, message);
  assert_non_null(strstr(message, "in iteration 0 of scan"));
  check_spreads(looped, types, table, message);
  ax_program_release(once);
  ax_program_release(looped);
}

/* --- Where some devices never come --- */

static void leave(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
}

static void on_the_first_alone(const ax_value *in, ax_value *out, void *context) {
  ax_value index = ax_axis_index("d");
  ax_if(ax_eq(index, ax_full_like(index, 0)), AX_CLOSURE(exchange, 6, 1, context), AX_CLOSURE(leave, 6, 1, context), in, out);
}

static void deadlocks(void **state) {
  (void)state;
  ax_type types[6];
  types_of(types);
  const test_map map = {"d=2", {"d", "d", "d", "d", "d", "d"}, {"d"}, on_the_first_alone, true, NULL};
  ax_program *program = test_trace_map(&map, types);
  check_runs_as(AX_DEADLOCK, program, types, sound, NULL, "ragged_all_to_all");
  ax_tensor *in[6];
  char message[8192];
  for (int k = 0; k < 6; k++) in[k] = test_tensor(types[k], k >= 2 ? sound + 4 * (k - 2) : NULL);
  for (size_t i = 0; i < AX_COUNT(spreads); i++) {
    assert_int_equal(test_in_processes(program, &spreads[i], in, NULL, message), AX_DEADLOCK);
    assert_non_null(strstr(message, "ragged_all_to_all"));
  }
  test_release(in, 6);
  ax_program_release(program);
}

static void sum_of(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[1], "d");
}

/* The first device has given its tables, and then waits for ever; the others wait for its rows. */
static void between_tables_and_rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value index = ax_axis_index("d"), future = ax_start(ax_ragged_all_to_all(in[0], in[1], in[2], in[3], in[4], in[5], "d"));
  ax_if(ax_eq(index, ax_full_like(index, 0)), AX_FN(sum_of, 6, 1), AX_FN(leave, 6, 1), in, out);
  out[0] = ax_add(out[0], ax_done(future));
}

static void rows_that_never_come(void **state) {
  (void)state;
  ax_type types[6];
  types_of(types);
  const test_map map = {"d=2", {"d", "d", "d", "d", "d", "d"}, {"d"}, between_tables_and_rows, true, NULL};
  ax_program *program = test_trace_map(&map, types);
  ax_tensor *in[6];
  char message[8192];
  for (int k = 0; k < 6; k++) in[k] = test_tensor(types[k], k >= 2 ? sound + 4 * (k - 2) : NULL);
  for (size_t i = 0; i < AX_COUNT(spreads); i++) {
    assert_int_equal(test_in_processes(program, &spreads[i], in, NULL, message), AX_DEADLOCK);
    assert_non_null(strstr(message, "at psum f32[6,3] over d"));
    assert_non_null(strstr(message, "device 1 (d=1)\n    never come: rows of device 0 (d=0) of process"));
  }
  test_release(in, 6);
  ax_program_release(program);
}

/* --- When it is traced --- */

static ax_status trace(const ax_type *types, const char *axes_of_mesh, const char *axes) {
  ax_mesh mesh;
  ax_program *program;
  TEST_OK(ax_mesh_parse(axes_of_mesh, &mesh));
  ax_status status = ax_trace_on(&mesh, AX_CLOSURE(exchange, 6, 1, (char *)axes), types, &program);
  ax_program_release(program);
  return status;
}

static void when_traced(void **state) {
  (void)state;
  const ax_type good[] = {TEST_TYPE(AX_F32, 4, 3), TEST_TYPE(AX_F32, 6, 3), TEST_TYPE(AX_S32, 4),
                          TEST_TYPE(AX_U8, 4),     TEST_TYPE(AX_S64, 4),    TEST_TYPE(AX_S8, 4)};
  static const struct {
    int operand;
    ax_dtype dtype;
    uint32_t rank;
    int64_t dims[2];
    const char *said;
  } bad[] = {{0, AX_F32, 0, {0}, "operand is f32[]{V:d}; it must be of rows"},
             {1, AX_F64, 2, {6, 3}, "output is f64[6,3]{V:d}; it must be of operand's dtype and rank"},
             {1, AX_F32, 1, {6}, "output is f32[6]{V:d}; it must be of operand's dtype and rank"},
             {1, AX_F32, 2, {6, 2}, "output is f32[6,2]{V:d}; it must be of rows like operand's"},
             {2, AX_F32, 1, {4}, "input_offsets is f32[4]{V:d}; it must be of integers"},
             {3, AX_BOOL, 1, {4}, "send_sizes is bool[4]{V:d}; it must be of integers"},
             {4, AX_S32, 2, {2, 2}, "output_offsets is s32[2,2]{V:d}; it must be a row of at least one"},
             {5, AX_S32, 1, {0}, "recv_sizes is s32[0]{V:d}; it must be a row of at least one"},
             {5, AX_S32, 1, {6}, "recv_sizes is s32[6]{V:d}; it must be as long as input_offsets"}};
  TEST_OK(trace(good, "d=2", NULL));
  TEST_FAILS(trace(good, "d=3", NULL), AX_INVALID_ARGUMENT, "input_offsets has 4 entries, which do not divide among the 3 members");
  TEST_FAILS(trace(good, "e=2", NULL), AX_INVALID_ARGUMENT, "ragged_all_to_all: ");
  TEST_FAILS(trace(good, "d=3", "d {0,1} {2}"), AX_INVALID_ARGUMENT,
             "group 0 has 2 members and group 1 has 1; here groups must be of one size, as each member gets as many slices");
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ax_type types[6];
    memcpy(types, good, sizeof types);
    types[bad[i].operand] = ax_array_type(bad[i].dtype, AX_LIST(bad[i].rank, bad[i].dims));
    TEST_FAILS(trace(types, "d=2", NULL), AX_INVALID_ARGUMENT, bad[i].said);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_fault), cmocka_unit_test(iterations),
                                     cmocka_unit_test(each_fault_between_processes), cmocka_unit_test(the_first_of_several_is_said),
                                     cmocka_unit_test(deadlocks), cmocka_unit_test(rows_that_never_come), cmocka_unit_test(when_traced)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
