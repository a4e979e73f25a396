/* Runs that go in circles, in which agents read memory under a lock, or their own: wrong if no end can be reached from somewhere. */
#include <string.h>

#include "axle/axle.h"
#include "axle/check.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { X, Y, SIGNAL, LOCK, FLAG, REFS };

static ax_value one(void) { return ax_integer(1); }
static ax_value core(void) { return ax_axis_index("core"); }
static ax_value number(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }
static ax_value flag(const ax_value *in) { return ax_ref_load(ax_ref_at(in[FLAG], ax_integer(0))); }
static void set(const ax_value *in, int64_t value) { ax_ref_store(in[FLAG], ax_full_i64(AX_S32, AX_DIMS(1), value)); }
static void finish(const ax_value *in) { ax_ref_store(ax_ref_at(in[Y], core()), ax_ref_load(ax_ref_at(in[X], core()))); }
static void take(const ax_value *in) { ax_semaphore_wait(in[LOCK], one()); }
static void give(const ax_value *in) { ax_semaphore_signal(in[LOCK], one(), NULL); }
static ax_value wait_for_flag(const ax_value *in) {
  ax_value seen = number(0);
  AX_WHILE (ax_eq(seen, ax_integer(0)), &seen) {
    take(in);
    seen = flag(in);
    give(in);
  }
  return seen;
}

/* Nobody sets it. */
static AX_BODY(alone) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    set(in, 0);
    give(in);
    (void)wait_for_flag(in);
  }
  finish(in);
}
static AX_BODY(both) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    set(in, 0);
    give(in);
  }
  (void)wait_for_flag(in);
  finish(in);
}
/* Core 1 sets it; to 2 if it comes before core 0 has been there, and then nobody lets core 0 go on. */
static AX_BODY(in_one_order) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    ax_value was;
    set(in, 0);
    give(in);
    take(in);
    was = flag(in);
    set(in, 1);
    give(in);
    AX_WHILE (ax_eq(was, ax_integer(2)), &was) {
      take(in);
      was = ax_add(ax_mul(flag(in), ax_integer(0)), ax_integer(2));
      give(in);
    }
    ax_semaphore_wait(in[SIGNAL], one());
    take(in);
  }
  AX_ELSE {
    take(in);
    set(in, 2);
    give(in);
    ax_semaphore_signal(in[SIGNAL], one(), NULL);
  }
  finish(in);
}
static AX_BODY(is_set) {
  AX_IF (ax_eq(core(), ax_integer(0))) {
    set(in, 0);
    give(in);
    (void)wait_for_flag(in);
    take(in);
  }
  AX_ELSE {
    take(in);
    set(in, 1);
    give(in);
  }
  finish(in);
}

static AX_BODY(whole) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch semaphore = {.type = ax_semaphore_type(AX_DIMS()), .shared = true}, memory = {.type = AX_SMEM(AX_S32, 1), .shared = true};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH(semaphore, semaphore, memory)}};
  const ax_fn body = AX_FN(*(const ax_function *)context, REFS, 0);
  ax_mpmd_map(AX_LIST(1, &mesh), &body, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

static void expect(ax_function body, bool exhaustive, ax_verdict verdict) {
  const ax_type type = AX_TYPE(AX_F32, 2);
  ax_program *program;
  ax_check_report *report;
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &body), &type, &program));
  TEST_OK(ax_check(program, &(ax_check_options){.exhaustive = exhaustive}, &report));
  assert_int_equal(report->verdict, verdict);
  if (verdict == AX_WRONG) assert_non_null(strstr(report->kernels[0].findings[0].text, "deadlock: some agents go on for ever"));
  assert_int_equal(report->stopped != NULL, body == alone || body == both); /* the run that was evaluated has no end either */
  ax_check_report_release(report);
  ax_program_release(program);
}

static void runs_without_an_end(void **state) {
  (void)state;
  for (int exhaustive = 0; exhaustive < 2; exhaustive++) {
    expect(alone, exhaustive, AX_WRONG);
    expect(both, exhaustive, AX_WRONG);
    expect(in_one_order, exhaustive, AX_WRONG);
    expect(is_set, exhaustive, AX_PROVED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_without_an_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
