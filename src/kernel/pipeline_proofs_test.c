/* Pipelines, proved: in whatever order cores, warpgroups and copies go on, there is no race, no deadlock, and nothing is left over.
   AXLE_SHOW=1 prints the table of docs/checker.md. */
#include <stdio.h>
#include <stdlib.h>

#include "axle/axle.h"
#include "axle/check.h"
#include "support/cmocka.h"
#include "support/pipelines.h"

typedef struct tally { /* of many kernels; the most of each */
  uint32_t count, agents;
  uint64_t acts, pairs;
  double seconds, longest;
} tally;

static void prove(const test_pipeline *t, tally *sum) {
  ax_program *program = test_pipeline_program(t);
  ax_check_report *report;
  char text[200];
  TEST_OK(ax_check(program, NULL, &report));
  assert_int_equal(report->kernel_count, 1);
  const ax_check_kernel *k = &report->kernels[0];
  if (report->verdict != AX_PROVED)
    fail_msg("%s: %s: %s", test_pipeline_text(t, text, sizeof text), k->how,
             k->finding_count > 0 ? k->findings[0].text : "nothing is found");
  sum->count++;
  sum->seconds += k->seconds;
  if (k->agents > sum->agents) sum->agents = k->agents;
  if (k->acts > sum->acts) sum->acts = k->acts;
  if (k->pairs > sum->pairs) sum->pairs = k->pairs;
  if (k->seconds > sum->longest) sum->longest = k->seconds;
  ax_check_report_release(report);
  ax_program_release(program);
}

static void show(const char *what, const tally *t) {
  if (getenv("AXLE_SHOW") != NULL)
    print_message("| %s | %u | %u | %llu | %llu | %.2f | %.2f |\n", what, t->count, t->agents, (unsigned long long)t->acts,
                  (unsigned long long)t->pairs, t->longest, t->seconds);
}

/* Each delay below the stages, as all others are refused; a step at least, as nothing is run on an empty grid. */
static void on_lines(void **state) {
  (void)state;
  for (int64_t stages = 1; stages <= 4; stages++)
    for (int64_t delay = 0; delay < stages; delay++) {
      tally sum = {0};
      char what[112];
      for (int64_t n = 1; n <= 16; n++) prove(&(test_pipeline){.rank = 1, .grid = {n}, .stages = stages, .delay = delay}, &sum);
      snprintf(what, sizeof what, "1 to 16 steps, %lld stages, delay %lld", (long long)stages, (long long)delay);
      show(what, &sum);
    }
}

static void on_planes(void **state) {
  (void)state;
  static const int64_t planes[][2] = {{1, 4}, {4, 1}, {2, 3}, {2, 8}, {4, 4}, {8, 2}};
  for (int64_t stages = 1; stages <= 4; stages++)
    for (int64_t delay = 0; delay < stages; delay++) {
      tally sum = {0};
      char what[112];
      for (size_t g = 0; g < AX_COUNT(planes); g++)
        prove(&(test_pipeline){.rank = 2, .grid = {planes[g][0], planes[g][1]}, .stages = stages, .delay = delay}, &sum);
      snprintf(what, sizeof what, "6 grids of two dimensions, %lld stages, delay %lld", (long long)stages, (long long)delay);
      show(what, &sum);
    }
}

/* The memory thread at each place, with carries and barriers that the body arrives at itself among them. */
static void warps(void **state) {
  (void)state;
  for (int64_t wgs = 1; wgs <= 3; wgs++)
    for (int64_t stages = 1; stages <= 4; stages++) {
      tally sum = {0};
      char what[112];
      for (int64_t n = 1; n <= 16; n++)
        for (int64_t delay = 0; delay < stages; delay++)
          prove(&(test_pipeline){.rank = 1,
                                 .grid = {n},
                                 .stages = stages,
                                 .delay = delay,
                                 .wgs = wgs,
                                 .memory = (n + delay) % (wgs + 1),
                                 .manual = delay == 0 && n % 2 == 0,
                                 .carries = n % 3 == 0},
                &sum);
      snprintf(what, sizeof what, "%lld compute warpgroups, 1 to 16 steps, %lld stages", (long long)wgs, (long long)stages);
      show(what, &sum);
    }
}

/* How it grows. */
static void longer(void **state) {
  (void)state;
  for (int64_t wgs = 0; wgs <= 3; wgs += 3)
    for (int64_t n = 64; n <= 1024; n *= 4) {
      tally sum = {0};
      char what[112];
      prove(&(test_pipeline){.rank = 1, .grid = {n}, .stages = 4, .delay = 1, .wgs = wgs, .memory = -1}, &sum);
      snprintf(what, sizeof what, "%lld steps, 4 stages, %lld compute warpgroups", (long long)n, (long long)wgs);
      show(what, &sum);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_lines), cmocka_unit_test(on_planes), cmocka_unit_test(warps),
                                     cmocka_unit_test(longer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
