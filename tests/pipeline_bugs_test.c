/* Pipelines with one fault each: the checker finds it, with a schedule that shows it, and proves those without. Going through all
   schedules says the same. */
#include <stdlib.h>
#include <string.h>

#include "axle/check.h"
#include "pipeline_bugs/bugs.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static bool is_kind(const char *kinds, const char *kind) {
  for (const char *at = kinds; at != NULL; at = strchr(at, '|') != NULL ? strchr(at, '|') + 1 : NULL) {
    size_t length = strcspn(at, "|");
    for (const char *k = kind; *k != 0; k++)
      if (strncmp(k, at, length) == 0) return true;
  }
  return false;
}

static ax_check_report *check(const bug *b, const ax_check_options *options) {
  ax_program *program;
  ax_check_report *report;
  const ax_type type = AX_TYPE(AX_F32, bug_steps, bug_block);
  TEST_OK(ax_trace(AX_CLOSURE(b->kernel, 1, 1, b), &type, &program));
  TEST_OK(ax_check(program, options, &report));
  assert_int_equal(report->kernel_count, 1);
  ax_program_release(program);
  return report;
}

static void look_at(const bug *b) {
  ax_check_report *report = check(b, NULL);
  const ax_check_kernel *k = &report->kernels[0];
  bool found = false;
  for (uint32_t i = 0; i < k->finding_count; i++) {
    if (getenv("AXLE_SHOW") != NULL) print_message("%s: %s\n", b->name, k->findings[i].text);
    found = found || (b->kinds != NULL && is_kind(b->kinds, k->findings[i].kind));
  }
  if (b->kinds == NULL && report->verdict != AX_PROVED)
    fail_msg("%s: it is right, but: %s %s", b->name, k->how, k->finding_count > 0 ? k->findings[0].text : "");
  if (b->kinds != NULL && report->verdict != AX_WRONG) fail_msg("%s: not found: %s", b->name, k->how);
  if (b->kinds != NULL && !found)
    fail_msg("%s: none of the findings is of %s; the first: %s", b->name, b->kinds,
             k->finding_count > 0 ? k->findings[0].text : "none");
  ax_check_report_release(report);
}

static void all_of(void **state) {
  const bug_list *list = *state;
  for (unsigned i = 0; i < list->count; i++) look_at(&list->bugs[i]);
}

/* The first finding's schedule leads to where it shows. */
static void replays(void **state) {
  const bug_list *list = *state;
  for (unsigned i = 0; i < list->count; i++) {
    if (list->bugs[i].kinds == NULL) continue;
    ax_check_report *report = check(&list->bugs[i], NULL);
    assert_true(report->kernels[0].finding_count > 0);
    ax_check_report *again = check(&list->bugs[i], &(ax_check_options){.replay = report->kernels[0].findings[0].schedule});
    assert_int_equal(again->kernels[0].finding_count, 1);
    ax_check_report_release(again);
    ax_check_report_release(report);
  }
}

static void explored(void **state) {
  const bug_list *list = *state;
  for (unsigned i = 0; i < list->count; i++) {
    const bug *b = &list->bugs[i];
    ax_check_report *report = check(b, &(ax_check_options){.explore = true, .max_states = 20000});
    if (report->verdict == AX_BOUNDED || (b->kinds != NULL) != (report->verdict == AX_WRONG))
      fail_msg("%s: exploring says %d: %s", b->name, report->verdict, report->kernels[0].how);
    if (b->kinds == NULL) assert_int_equal(report->kernels[0].outcomes, 1);
    ax_check_report_release(report);
  }
}

/* Where there are few states: each schedule, with none left out, says the same, and ends in as many ways. */
static void exhausted(void **state) {
  enum { most = 5000 };
  const bug_list *list = *state;
  unsigned compared = 0;
  for (unsigned i = 0; i < list->count; i++) {
    const bug *b = &list->bugs[i];
    ax_check_report *report = check(b, &(ax_check_options){.explore = true, .max_states = most}),
                    *all = check(b, &(ax_check_options){.exhaustive = true, .max_states = most});
    const ax_check_kernel *some = &report->kernels[0], *each = &all->kernels[0];
    if (each->states < most) {
      if (report->verdict != all->verdict || some->outcomes != each->outcomes)
        fail_msg("%s: %llu states say %d, with %u outcomes; all %llu say %d, with %u", b->name, (unsigned long long)some->states,
                 report->verdict, some->outcomes, (unsigned long long)each->states, all->verdict, each->outcomes);
      compared++;
    }
    ax_check_report_release(report);
    ax_check_report_release(all);
  }
  assert_true(compared * 2 > list->count);
}

#define OF(test, list) {#test " " #list, test, NULL, NULL, (void *)(uintptr_t)&bugs_##list}

int main(void) {
  const struct CMUnitTest tests[] = {OF(all_of, one_core),    OF(all_of, semaphores),    OF(all_of, warps),   OF(all_of, uses),
                                     OF(replays, one_core),   OF(replays, semaphores),   OF(replays, warps),  OF(replays, uses),
                                     OF(explored, one_core),  OF(explored, semaphores),  OF(explored, warps), OF(explored, uses),
                                     OF(exhausted, one_core), OF(exhausted, semaphores), OF(exhausted, uses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
