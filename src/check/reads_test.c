/* Reads of counts order nothing, signals to other devices take their time, and what is proved has one result. Each kernel is looked
   at in all three ways. */
#include "axle/check.h"

#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* What a body has: operand, result, and scratch of the kernel. */
enum { X, Y, SLOT, A, B, C, REFS };

typedef struct kernel {
  ax_function body;
  bool devices; /* three devices of one core; else three threads of one */
} kernel;

static AX_BODY(call) {
  const kernel *k = context;
  const ax_core_mesh threads = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = 3}}}, .threads = "core"},
                     one = {.core = "core"};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 4)},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}};
  ax_mpmd_map(AX_LIST(1, k->devices ? &one : &threads), &AX_FN(k->body, REFS, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static AX_BODY(whole) {
  const kernel *k = context;
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 3}}};
  if (k->devices)
    ax_shard_map(&mesh, "d -> d", AX_CLOSURE(call, 1, 1, k), in, out);
  else
    call(in, out, context);
}

/* Proved, or found wrong with a finding of this kind, and with so many results. */
static void expect(const kernel *k, const char *kind, uint32_t outcomes) {
  for (int way = 0; way < 3; way++) {
    ax_program *program;
    ax_check_report *report;
    const ax_type type = AX_TYPE(AX_F32, k->devices ? 12 : 4);
    TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, k), &type, &program));
    TEST_OK(ax_check(program, &(ax_check_options){.explore = way == 1, .exhaustive = way == 2}, &report));
    ax_program_release(program);
    const ax_check_kernel *checked = &report->kernels[0];
    bool found = kind == NULL;
    for (uint32_t i = 0; i < checked->finding_count; i++) found = found || strcmp(checked->findings[i].kind, kind) == 0;
    if (report->verdict != (kind == NULL ? AX_PROVED : AX_WRONG) || !found)
      fail_msg("way %d: verdict %d, %s; not %s", way, report->verdict,
               checked->finding_count > 0 ? checked->findings[0].text : checked->how, kind == NULL ? "proved" : kind);
    assert_int_equal(checked->outcomes, outcomes);
    ax_check_report_release(report);
  }
}

static AX_BODY(nothing) {}
static ax_value me(const char *axis) { return ax_axis_index(axis); }
static void signal(ax_value semaphore) { ax_semaphore_signal(semaphore, ax_integer(1), NULL); }
static void await(ax_value semaphore) { ax_semaphore_wait(semaphore, ax_integer(1)); }
static void signal_to(ax_value semaphore, int64_t device) {
  ax_value to = ax_full_i64(AX_S32, AX_DIMS(), device);
  ax_semaphore_signal(semaphore, ax_integer(1), &(ax_target_core){.axes = "d", .coordinates = {AX_VALUES(to)}});
}
static AX_BODY(not_there) { out[0] = ax_lt(ax_semaphore_read(*(const ax_value *)context), ax_integer(1)); }
static void spin(const ax_value *semaphore) { ax_while(AX_CLOSURE(not_there, 0, 1, semaphore), AX_FN(nothing, 0, 0), NULL, NULL); }
static void by(const char *axis, ax_function first, ax_function second, ax_function third, const ax_value *refs) {
  const ax_fn fns[] = {AX_CLOSURE(first, 0, 0, refs), AX_CLOSURE(second, 0, 0, refs), AX_CLOSURE(third, 0, 0, refs)};
  ax_switch(me(axis), AX_LIST(3, fns), NULL, NULL);
}

/* --- A count that is read says nothing of memory --- */

static AX_BODY(stores_and_signals) {
  const ax_value *refs = context;
  ax_ref_store(refs[SLOT], ax_ref_load(refs[X]));
  signal(refs[A]);
}
static AX_BODY(spins_and_loads) {
  const ax_value *refs = context;
  spin(&refs[A]);
  ax_ref_store(refs[Y], ax_ref_load(refs[SLOT]));
  await(refs[A]);
}
static AX_BODY(spins_waits_and_loads) {
  const ax_value *refs = context;
  spin(&refs[A]);
  await(refs[A]);
  ax_ref_store(refs[Y], ax_ref_load(refs[SLOT]));
}
static AX_BODY(polling) { by("core", stores_and_signals, spins_and_loads, nothing, in); }
static AX_BODY(polling_and_waiting) { by("core", stores_and_signals, spins_waits_and_loads, nothing, in); }

/* The race is told with a schedule that can be run, up to where the later of the two is next. */
static void test_memory(void **state) {
  (void)state;
  expect(&(kernel){polling, false}, "data race", 1);
  ax_program *program;
  ax_check_report *report, *again;
  const ax_type type = AX_TYPE(AX_F32, 4);
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &(kernel){polling, false}), &type, &program));
  TEST_OK(ax_check(program, NULL, &report));
  assert_int_equal(report->kernels[0].finding_count, 1);
  const ax_check_finding *f = &report->kernels[0].findings[0];
  assert_non_null(strstr(f->text, "a read orders nothing"));
  assert_non_null(strstr(f->picture, "! store scratch 0"));
  assert_non_null(strstr(f->picture, "! load scratch 0"));
  TEST_OK(ax_check(program, &(ax_check_options){.replay = f->schedule}, &again));
  ax_check_report_release(again);
  ax_check_report_release(report);
  ax_program_release(program);
}

static void test_wait_orders(void **state) {
  (void)state;
  expect(&(kernel){polling_and_waiting, false}, NULL, 1);
}

/* --- Signals to another device come at their own time --- */

static void give_count(const ax_value *refs) {
  ax_ref_store(refs[Y], ax_broadcast_to(ax_convert_element_type(ax_semaphore_read(refs[A]), AX_F32), AX_DIMS(4)));
  await(refs[A]);
}
static void fill(const ax_value *refs) { ax_ref_store(refs[Y], ax_real(0)); }
static AX_BODY(fills) { fill(context); }
static AX_BODY(signals_both) {
  const ax_value *refs = context;
  signal_to(refs[A], 1);
  signal_to(refs[B], 1);
  fill(refs);
}
static AX_BODY(awaits_second) {
  const ax_value *refs = context;
  await(refs[B]);
  give_count(refs);
}
static AX_BODY(in_order) { by("d", signals_both, awaits_second, fills, in); }

static AX_BODY(signals_each) {
  const ax_value *refs = context;
  signal_to(refs[A], 1);
  signal_to(refs[B], 2);
  fill(refs);
}
static AX_BODY(awaits_third) {
  const ax_value *refs = context;
  await(refs[C]);
  give_count(refs);
}
static AX_BODY(passes_on) {
  const ax_value *refs = context;
  await(refs[B]);
  signal_to(refs[C], 1);
  fill(refs);
}
static AX_BODY(by_way_of_another) { by("d", signals_each, awaits_third, passes_on, in); }

static AX_BODY(awaits_all) {
  const ax_value *refs = context;
  await(refs[A]);
  await(refs[B]);
  ax_ref_store(refs[Y], ax_broadcast_to(ax_convert_element_type(ax_semaphore_read(refs[A]), AX_F32), AX_DIMS(4)));
}
static AX_BODY(read_after_all) { by("d", signals_both, awaits_all, fills, in); }

static void test_signals(void **state) {
  (void)state;
  expect(&(kernel){in_order, true}, "several results", 2);
  expect(&(kernel){by_way_of_another, true}, "several results", 2);
}

static void test_read_after_waits(void **state) {
  (void)state;
  ax_program *program;
  ax_check_report *report;
  const ax_type type = AX_TYPE(AX_F32, 12);
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &(kernel){read_after_all, true}), &type, &program));
  TEST_OK(ax_check(program, NULL, &report));
  assert_int_equal(report->verdict, AX_PROVED);
  assert_int_equal(report->kernels[0].states, 0); /* one run is enough, as the waits have all signals before the read */
  ax_check_report_release(report);
  ax_program_release(program);
}

/* --- Several results --- */

static AX_BODY(lets_in) { signal(((const ax_value *)context)[A]); }
static AX_BODY(gives) {
  const ax_value *refs = context;
  ax_semaphore_wait(refs[B], ax_integer(3));
  ax_ref_store(refs[Y], ax_ref_load(refs[SLOT]));
  await(refs[A]);
}
static AX_BODY(last_one) {
  by("core", lets_in, nothing, nothing, in);
  await(in[A]);
  ax_ref_store(in[SLOT], ax_broadcast_to(ax_convert_element_type(me("core"), AX_F32), AX_DIMS(4)));
  signal(in[A]);
  signal(in[B]);
  by("core", gives, nothing, nothing, in);
}

/* 1 and twice 2^-24, which is lost beside 1: the order decides about the last digit. */
static AX_BODY(begins_sum) {
  const ax_value *refs = context;
  ax_ref_store(refs[SLOT], ax_real(0));
  signal(refs[A]);
}
static AX_BODY(sum_of_all) {
  by("core", begins_sum, nothing, nothing, in);
  await(in[A]);
  ax_value mine = ax_where(ax_eq(me("core"), ax_integer(1)), ax_full(AX_F32, AX_DIMS(4), 1), ax_real(1.0 / (1 << 24)));
  ax_ref_store(in[SLOT], ax_add(ax_ref_load(in[SLOT]), mine));
  signal(in[A]);
  signal(in[B]);
  by("core", gives, nothing, nothing, in);
}

static void test_results(void **state) {
  (void)state;
  expect(&(kernel){last_one, false}, "several results", 3);
  expect(&(kernel){sum_of_all, false}, "order of additions", 2);
}

/* --- For ever --- */

static AX_BODY(takes_it) { await(((const ax_value *)context)[A]); }
static AX_BODY(spins) {
  const ax_value *refs = context;
  fill(refs);
  spin(&refs[A]);
}
static AX_BODY(taken_before) { by("core", lets_in, takes_it, spins, in); } /* the second may take it before the third sees it */
static AX_BODY(never_there) { by("core", nothing, nothing, spins, in); }

static void test_for_ever(void **state) {
  (void)state;
  expect(&(kernel){taken_before, false}, "deadlock", 1);
  expect(&(kernel){never_there, false}, "deadlock", 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory),  cmocka_unit_test(test_wait_orders),
                                     cmocka_unit_test(test_signals), cmocka_unit_test(test_read_after_waits),
                                     cmocka_unit_test(test_results), cmocka_unit_test(test_for_ever)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
