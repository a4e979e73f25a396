/* Pipelines: what they compute under the machine's own order and under random ones. */
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "kernel/kernel.h"
#include "support/cmocka.h"
#include "support/pipelines.h"
#include "support/run.h"
#include "support/schedules.h"

static void check_trial(const test_pipeline *t, uint32_t schedules) {
  ax_tensor *in[3], *out[TEST_PIPELINE_RESULTS] = {NULL};
  ax_program *program = test_pipeline_program(t);
  char text[200];
  test_pipeline_operands(t, in);
  const char *wrong = test_schedules_try(program, in, out, schedules, 1);
  if (wrong != NULL && test_pipeline_steps(t) > 0) fail_msg("%s: %s", test_pipeline_text(t, text, sizeof text), wrong);
  test_pipeline_compare(t, out);
  for (int i = 0; i < 3; i++) ax_tensor_release(in[i]);
  for (uint32_t k = 0; k < test_pipeline_results(t); k++) ax_tensor_release(out[k]);
  ax_program_release(program);
}

static void on_lines(void **state) {
  (void)state;
  for (int64_t n = 0; n <= 16; n++)
    for (int64_t stages = 1; stages <= 4; stages++)
      for (int64_t delay = 0; delay < stages; delay++)
        check_trial(&(test_pipeline){.rank = 1, .grid = {n}, .stages = stages, .delay = delay}, 10);
}

static const int64_t planes[][2] = {{1, 4}, {4, 1}, {2, 3}, {3, 5}, {4, 4}, {0, 3}, {3, 0}};

static void on_planes(void **state) {
  (void)state;
  for (size_t g = 0; g < AX_COUNT(planes); g++)
    for (int64_t stages = 1; stages <= 4; stages++)
      for (int64_t delay = 0; delay < stages; delay++)
        check_trial(&(test_pipeline){.rank = 2, .grid = {planes[g][0], planes[g][1]}, .stages = stages, .delay = delay}, 10);
}

/* Operand x is released later than the others, or sooner. */
static void late_operands(void **state) {
  (void)state;
  for (int64_t late = 1; late <= 4; late++)
    for (int64_t delay = 0; delay < 4; delay++)
      for (int64_t wgs = 0; wgs <= 2; wgs++)
        check_trial(
            &(test_pipeline){.rank = 2, .grid = {3, 3}, .stages = 4, .delay = delay, .late = late, .wgs = wgs, .memory = -1}, 5);
}

/* --- Warp-specialised --- */

static void warps_on_lines(void **state) {
  (void)state;
  for (int64_t n = 0; n <= 16; n += n < 6 ? 1 : 5)
    for (int64_t stages = 1; stages <= 4; stages++)
      for (int64_t delay = 0; delay < stages; delay += stages - 1 > 0 ? stages - 1 : 1)
        for (int64_t wgs = 1; wgs <= 3; wgs++)
          check_trial(
              &(test_pipeline){
                  .rank = 1, .grid = {n}, .stages = stages, .delay = delay, .wgs = wgs, .memory = -1, .carries = n % 2 == 0},
              5);
}

static void warps_on_planes(void **state) {
  (void)state;
  for (size_t g = 0; g < AX_COUNT(planes); g++)
    for (int64_t stages = 1; stages <= 4; stages++)
      for (int64_t wgs = 1; wgs <= 3; wgs++)
        check_trial(&(test_pipeline){.rank = 2,
                                     .grid = {planes[g][0], planes[g][1]},
                                     .stages = stages,
                                     .wgs = wgs,
                                     .memory = stages % (wgs + 1),
                                     .manual = stages % 2 == 0,
                                     .carries = g % 2 == 0},
                    5);
}

/* --- In the executor: under every policy, what the machine gives --- */

static void executed(void **state) {
  (void)state;
  const test_pipeline some[] = {{.rank = 1, .grid = {5}, .stages = 2},
                                {.rank = 2, .grid = {3, 5}, .stages = 3, .delay = 1, .late = 1},
                                {.rank = 1, .grid = {6}, .stages = 2, .wgs = 1, .memory = 0, .carries = true},
                                {.rank = 2, .grid = {4, 4}, .stages = 4, .delay = 2, .wgs = 3, .memory = 2},
                                {.rank = 1, .grid = {7}, .stages = 3, .wgs = 2, .memory = -1, .manual = true, .carries = true}};
  for (size_t i = 0; i < AX_COUNT(some); i++) {
    ax_program *program = test_pipeline_program(&some[i]);
    ax_tensor *in[3];
    test_pipeline_operands(&some[i], in);
    TEST_EVERY_WAY(program, in, 0);
    for (int k = 0; k < 3; k++) ax_tensor_release(in[k]);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_lines),        cmocka_unit_test(on_planes),
                                     cmocka_unit_test(late_operands),   cmocka_unit_test(warps_on_lines),
                                     cmocka_unit_test(warps_on_planes), cmocka_unit_test(executed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
