/* Inputs that are made up, and that addresses or control flow follow from, are named, unless the kernel is proved for all of them; others
   are not. */
#include <string.h>

#include "axle/axle.h"
#include "axle/check.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* Two cores, each with an element of the result: in: index s32[2], data f32[2], result, a copy of the index. */
static AX_BODY(straight) {
  ax_value me = ax_axis_index("w");
  ax_ref_store(ax_ref_at(in[2], me), ax_ref_load(ax_ref_at(in[1], me)));
}
static AX_BODY(scattered) {
  ax_value me = ax_axis_index("w"), at = ax_add(ax_ref_load(ax_ref_at(in[0], me)), me);
  ax_ref_store(ax_ref_at(in[2], at), ax_ref_load(ax_ref_at(in[1], me)));
}
/* The index goes through scratch, and a copy. */
static AX_BODY(by_scratch) {
  ax_value me = ax_axis_index("w"), own = ax_ref_at(in[3], me);
  ax_copy(ax_ref_at(in[0], me), own);
  ax_ref_store(ax_ref_at(in[2], ax_add(ax_ref_load(own), me)), ax_ref_load(ax_ref_at(in[1], me)));
}
static AX_BODY(store_one) { ax_ref_store(((const ax_value *)context)[0], ax_real(1)); }
static AX_BODY(nothing) {}
/* Data decide on a branch: a store more or less, of the core's own element. */
static AX_BODY(branching) {
  ax_value me = ax_axis_index("w"), to = ax_ref_at(in[2], me);
  ax_ref_store(to, ax_real(0));
  ax_if(ax_gt(ax_ref_load(ax_ref_at(in[1], me)), ax_real(0)), AX_CLOSURE(store_one, 0, 0, &to), AX_FN(nothing, 0, 0), NULL, NULL);
}

/* .. whether a core waits. */
static AX_BODY(signal_and_wait) {
  const ax_value *semaphore = context;
  ax_semaphore_signal(*semaphore, ax_integer(1), NULL);
  ax_semaphore_wait(*semaphore, ax_integer(1));
}
static AX_BODY(meeting) {
  ax_value me = ax_axis_index("w"), own = ax_ref_at(in[4], me);
  ax_ref_store(ax_ref_at(in[2], me), ax_real(0));
  ax_if(ax_gt(ax_ref_load(ax_ref_at(in[1], me)), ax_real(0)), AX_CLOSURE(signal_and_wait, 0, 0, &own), AX_FN(nothing, 0, 0), NULL, NULL);
}

typedef struct kernel {
  ax_function body;
  int place; /* 0: of the function itself; 1: in a loop, with an index of the round before; 2: in a branch that the third input
                decides on */
} kernel;

static void call(ax_function body, ax_value index, ax_value data, ax_value *out) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "w", .size = 2}}}, .threads = "w"};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH({.type = AX_SMEM(AX_S32, 2)}, {.type = ax_semaphore_type(AX_DIMS(2))})}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(body, 5, 0), &options, AX_VALUES(index, data), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

/* in: round, index of the round before, result; index of this one is another. */
static AX_BODY(one_round) {
  const ax_value *around = context;
  ax_value none = ax_full_i64(AX_S32, AX_DIMS(2), 0);
  call(scattered, in[1], in[2], &out[1]);
  out[0] = ax_add(around[0], none);
}
static AX_BODY(then) {
  const ax_value *around = context;
  call(straight, around[0], around[1], out);
}
static AX_BODY(otherwise) { out[0] = ((const ax_value *)context)[1]; }

static AX_BODY(whole) {
  const kernel *k = context;
  if (k->place == 0) {
    call(k->body, in[0], in[1], out);
  } else if (k->place == 1) {
    ax_value results[2];
    ax_fori_loop(ax_integer(0), ax_integer(3), AX_CLOSURE(one_round, 3, 2, in),
                 AX_VALUES(ax_full_i64(AX_S32, AX_DIMS(2), 0), in[1]), results);
    out[0] = results[1];
  } else
    ax_if(ax_gt(in[2], ax_real(0)), AX_CLOSURE(then, 0, 1, in), AX_CLOSURE(otherwise, 0, 1, in), NULL, out);
}

/* `named`: a letter for each input that is. */
static void expect(const kernel *k, bool given, const char *named) {
  ax_program *program;
  ax_check_report *report;
  const ax_type types[] = {AX_TYPE(AX_S32, 2), AX_TYPE(AX_F32, 2), AX_TYPE(AX_F32)};
  int32_t index[] = {0, 0};
  const ax_host_array in[3] = {given ? ax_host_view(AX_S32, AX_DIMS(2), index) : (ax_host_array){0}};
  char letters[4] = {0};
  TEST_OK(ax_trace(AX_CLOSURE(whole, 3, 1, k), types, &program));
  TEST_OK(ax_check(program, &(ax_check_options){.in = {AX_LIST(3, in)}}, &report));
  for (uint32_t i = 0; i < report->made_up_count; i++) letters[i] = (char)('a' + report->made_up[i]);
  assert_string_equal(letters, named);
  ax_check_report_release(report);
  ax_program_release(program);
}

static void test_kernels(void **state) {
  (void)state;
  expect(&(kernel){straight, 0}, false, "");
  expect(&(kernel){scattered, 0}, false, "a");
  expect(&(kernel){scattered, 0}, true, "");
  expect(&(kernel){by_scratch, 0}, false, "a");
  expect(&(kernel){branching, 0}, false, "");
  expect(&(kernel){meeting, 0}, false, "b");
}

static void test_programs(void **state) {
  (void)state;
  expect(&(kernel){NULL, 1}, false, "a");
  expect(&(kernel){NULL, 2}, false, "c");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
