/* Cores of one device: scopes that they share, semaphores in each other's scopes, counts that are read, copies of nothing. Each
   kernel is looked at in all three ways. */
#include "axle/check.h"

#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* What a body has: operand, result, and scratch of the kernel. */
enum { X, Y, SLOT, FIRST, SECOND, DONE, REFS };

static AX_BODY(nothing) {}

static void by_core(ax_function first, ax_function second, const void *context) {
  ax_if(ax_eq(ax_axis_index("core"), ax_integer(0)), AX_CLOSURE(first, 0, 0, context), AX_CLOSURE(second, 0, 0, context), NULL,
        NULL);
}

static void fill(const ax_value *refs) { ax_ref_store(refs[Y], ax_ref_load(refs[X])); }
static AX_BODY(fills) { fill(context); }

typedef struct kernel {
  ax_function body;
  bool threads; /* of one core: scratch is one for all */
} kernel;

static AX_BODY(call) {
  const kernel *k = context;
  const ax_core_mesh mesh = {
      .core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = 3}}}, .threads = k->threads ? "core" : NULL};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 8)},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_semaphore_type(AX_DIMS())},
                                {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(AX_COUNT(scratch), scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(k->body, REFS, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 8)), out);
}

/* Proved, or found wrong with a finding of this kind; exploring says the same. */
static void expect(const kernel *k, const char *kind) {
  for (int way = 0; way < 3; way++) {
    ax_program *program;
    ax_check_report *report;
    const ax_type type = AX_TYPE(AX_F32, 8);
    TEST_OK(ax_trace(AX_CLOSURE(call, 1, 1, k), &type, &program));
    TEST_OK(ax_check(program, &(ax_check_options){.explore = way == 1, .exhaustive = way == 2}, &report));
    ax_program_release(program);
    const ax_check_kernel *checked = &report->kernels[0];
    bool found = kind == NULL;
    for (uint32_t i = 0; i < checked->finding_count; i++) found = found || strcmp(checked->findings[i].kind, kind) == 0;
    if (report->verdict != (kind == NULL ? AX_PROVED : AX_WRONG) || !found)
      fail_msg("way %d: verdict %d, %s; not %s", way, report->verdict,
               checked->finding_count > 0 ? checked->findings[0].text : checked->how, kind == NULL ? "proved" : kind);
    ax_check_report_release(report);
  }
}

/* --- A scope that cores share ends with the last of them --- */

typedef struct sharing {
  const ax_value *refs;
  ax_value slot;
} sharing;

static AX_BODY(sends) {
  const sharing *s = context;
  ax_ref_store(s->slot, ax_ref_load(s->refs[X]));
  ax_copy_start(s->slot, s->refs[Y], &(ax_copy_options){.received = &s->refs[DONE]});
}

static AX_BODY(sends_and_waits) {
  const sharing *s = context;
  sends(NULL, NULL, context);
  ax_copy_wait(s->refs[DONE], s->refs[Y]);
}

static AX_BODY(awaits) {
  const ax_value *refs = context;
  ax_copy_wait(refs[DONE], refs[Y]);
}

static AX_BODY(last_awaits) {
  const sharing *s = context;
  ax_if(ax_eq(ax_axis_index("core"), ax_integer(2)), AX_CLOSURE(awaits, 0, 0, s->refs), AX_FN(nothing, 0, 0), NULL, NULL);
}

static AX_BODY(late_scope) { by_core(sends, nothing, &(sharing){context, in[0]}); }
static AX_BODY(awaited_scope) { by_core(sends_and_waits, nothing, &(sharing){context, in[0]}); }
static AX_BODY(handed_scope) { by_core(sends, last_awaits, &(sharing){context, in[0]}); }

static void scoped(ax_function body, const ax_value *refs) {
  ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 8)}), "core", AX_CLOSURE(body, 1, 0, refs), NULL);
}

static AX_BODY(awaited_late) {
  scoped(late_scope, in);
  by_core(awaits, nothing, in);
}
static AX_BODY(awaited_within) { scoped(awaited_scope, in); }
static AX_BODY(awaited_by_another) { scoped(handed_scope, in); }
static AX_BODY(opens) { scoped(awaited_scope, context); }
static AX_BODY(opened_by_one) { by_core(opens, nothing, in); }

static void test_shared_scopes(void **state) {
  (void)state;
  expect(&(kernel){awaited_within, true}, NULL);
  expect(&(kernel){awaited_by_another, true}, NULL); /* who starts it leaves the scope sooner */
  expect(&(kernel){awaited_late, true}, "use after scope");
  expect(&(kernel){opened_by_one, true}, "use after scope");
}

/* --- A semaphore in another core's scope, which may not have begun --- */

static void second(ax_function body, const void *context) {
  ax_if(ax_eq(ax_axis_index("core"), ax_integer(1)), AX_CLOSURE(body, 0, 0, context), AX_FN(nothing, 0, 0), NULL, NULL);
}

static AX_BODY(signals_second) {
  const ax_value one = ax_integer(1);
  ax_semaphore_signal(*(const ax_value *)context, one, &(ax_target_core){.axes = "core", .coordinates = {AX_VALUES(one)}});
}
static AX_BODY(waits) { ax_semaphore_wait(*(const ax_value *)context, ax_integer(1)); }
static AX_BODY(second_waits) { second(waits, context); }
static AX_BODY(meet) { by_core(signals_second, second_waits, in); }
static AX_BODY(meet_alone) {
  second(signals_second, in);
  second(waits, in);
}

static void with_semaphore(ax_function body, const ax_value *refs) {
  by_core(fills, nothing, refs);
  ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = ax_semaphore_type(AX_DIMS())}), NULL, AX_FN(body, 1, 0), NULL);
}
static AX_BODY(of_another) { with_semaphore(meet, in); }
static AX_BODY(of_its_own) { with_semaphore(meet_alone, in); }

static void test_semaphores_in_scopes(void **state) {
  (void)state;
  expect(&(kernel){of_its_own, false}, NULL);
  expect(&(kernel){of_another, false}, "use after scope");
}

/* --- Counts that are read --- */

static void signal(ax_value semaphore) { ax_semaphore_signal(semaphore, ax_integer(1), NULL); }
static void await(ax_value semaphore) { ax_semaphore_wait(semaphore, ax_integer(1)); }

static AX_BODY(none_yet) { out[0] = ax_eq(ax_semaphore_read(((const ax_value *)context)[FIRST]), ax_integer(0)); }
static AX_BODY(spins) {
  const ax_value *refs = context;
  ax_while(AX_CLOSURE(none_yet, 0, 1, context), AX_FN(nothing, 0, 0), NULL, NULL);
  ax_ref_store(refs[Y], ax_ref_load(refs[SLOT]));
  await(refs[FIRST]);
}
static void brings(const ax_value *refs, bool late) {
  if (late) signal(refs[FIRST]);
  ax_ref_store(refs[SLOT], ax_ref_load(refs[X]));
  if (!late) signal(refs[FIRST]);
}
static AX_BODY(brings_first) { brings(context, false); }
static AX_BODY(brings_late) { brings(context, true); }
static AX_BODY(second_brings) { second(brings_first, context); }
static AX_BODY(second_late) { second(brings_late, context); }
static AX_BODY(spinning) { by_core(spins, second_brings, in); }
static AX_BODY(spinning_too_soon) { by_core(spins, second_late, in); }

/* The first writes only if nothing is there, which it finds only when the second let it go, and had written before. */
static AX_BODY(writes) { ax_ref_store(((const ax_value *)context)[SLOT], ax_real(2)); }
static AX_BODY(asks) {
  const ax_value *refs = context;
  await(refs[SECOND]);
  ax_if(ax_eq(ax_semaphore_read(refs[FIRST]), ax_integer(0)), AX_CLOSURE(writes, 0, 0, context), AX_FN(nothing, 0, 0), NULL, NULL);
  await(refs[SECOND]);
  await(refs[FIRST]);
  fill(refs);
}
static AX_BODY(writes_and_lets_go) {
  const ax_value *refs = context;
  ax_ref_store(refs[SLOT], ax_real(1));
  signal(refs[SECOND]);
}
static AX_BODY(lets_go) {
  const ax_value *refs = context;
  for (int i = 0; i < 6; i++) ax_ref_load(refs[X]); /* so that the second comes first in the run that is looked at */
  signal(refs[FIRST]);
  signal(refs[SECOND]);
}
static AX_BODY(others) {
  ax_if(ax_eq(ax_axis_index("core"), ax_integer(1)), AX_CLOSURE(writes_and_lets_go, 0, 0, context),
        AX_CLOSURE(lets_go, 0, 0, context), NULL, NULL);
}
static AX_BODY(asking) { by_core(asks, others, in); }

/* A count that is read, and forgotten, says which half each of two copies goes to. The second copy goes to the second half, the
   first one only if the count was there early. */
static AX_BODY(chooses) {
  const ax_value *refs = context, zero = ax_integer(0), four = ax_integer(4);
  ax_semaphore_wait(refs[SECOND], in[0]); /* nothing, or the one signal */
  ax_value there = ax_gt(ax_semaphore_read(refs[FIRST]), zero), low = ax_ref_slice(refs[SLOT], &zero, AX_DIMS(4)),
           high = ax_ref_slice(refs[SLOT], &four, AX_DIMS(4));
  ax_value from = ax_ref_slice(refs[X], &zero, AX_DIMS(4)), not_there = ax_not(there);
  ax_copy_start(from, low, &(ax_copy_options){.received = &refs[DONE], .predicate = &not_there});
  ax_copy_start(from, high, &(ax_copy_options){.received = &refs[DONE], .predicate = &there});
}
static AX_BODY(chooses_twice) {
  const ax_value *refs = context;
  fill(refs);
  ax_fori_loop(ax_integer(0), ax_integer(2), AX_CLOSURE(chooses, 1, 0, context), NULL, NULL);
  ax_copy_wait(refs[DONE], refs[SLOT]);
  await(refs[FIRST]);
}
static AX_BODY(second_lets_go) { second(lets_go, context); }
static AX_BODY(choosing) { by_core(chooses_twice, second_lets_go, in); }

static void test_counts(void **state) {
  (void)state;
  expect(&(kernel){spinning, true}, "data race"); /* only the count says that the slot is there */
  expect(&(kernel){spinning_too_soon, true}, "data race");
  expect(&(kernel){asking, true}, NULL);
  expect(&(kernel){choosing, true}, "data race");
}

/* --- Copies of nothing --- */

static AX_BODY(copies_nothing) {
  const ax_value *refs = context, zero = ax_integer(0);
  ax_copy(in[0], ax_ref_slice(refs[Y], &zero, AX_DIMS(0)));
  fill(refs);
}
static AX_BODY(in_scope) {
  ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 0)}), NULL, AX_CLOSURE(copies_nothing, 1, 0, context), NULL);
}
static AX_BODY(of_nothing) { by_core(in_scope, nothing, in); }

static void test_nothing(void **state) {
  (void)state;
  expect(&(kernel){of_nothing, true}, NULL);
}

/* --- Findings of other lines are others --- */

static AX_BODY(stores_halves) {
  const ax_value *refs = context, zero = ax_integer(0), four = ax_integer(4);
  ax_ref_store(ax_ref_slice(refs[SLOT], &zero, AX_DIMS(4)), ax_real(1));
  ax_ref_store(ax_ref_slice(refs[SLOT], &four, AX_DIMS(4)), ax_real(2));
  signal(refs[FIRST]);
  fill(refs);
}
static AX_BODY(stores_again) {
  const ax_value *refs = context;
  ax_ref_store(refs[SLOT], ax_real(3));
  await(refs[FIRST]);
}
static AX_BODY(second_stores) { second(stores_again, context); }
static AX_BODY(racing) { by_core(stores_halves, second_stores, in); }

static void test_lines(void **state) {
  (void)state;
  ax_program *traced, *program;
  ax_check_report *report;
  char *text;
  const ax_type type = AX_TYPE(AX_F32, 8);
  TEST_OK(ax_trace(AX_CLOSURE(call, 1, 1, &(kernel){racing, true}), &type, &traced));
  TEST_OK(ax_program_print(traced, &text));
  TEST_OK(ax_program_parse(text, strlen(text), "text", &program)); /* whose steps stand on lines of it */
  TEST_OK(ax_check(program, NULL, &report));
  assert_int_equal(report->kernels[0].finding_count, 2);
  ax_check_report_release(report);
  ax_program_release(program);
  ax_program_release(traced);
  ax_string_free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared_scopes), cmocka_unit_test(test_semaphores_in_scopes),
                                     cmocka_unit_test(test_counts), cmocka_unit_test(test_nothing), cmocka_unit_test(test_lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
