/* Schedules of pipelines beside closed forms. */
#include "planner/schedule.h"

#include <math.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static ax_pipelined run(ax_pipeline_schedule schedule, int64_t stages, int64_t microbatches, int64_t chunks, ax_stage_times times,
                        double message) {
  const ax_pipeline pipeline = {schedule, stages, microbatches, chunks, times, times, times, message};
  ax_pipelined made;
  TEST_OK(ax_pipeline_run(&pipeline, &made));
  return made;
}

static const int64_t stage_counts[] = {1, 2, 3, 4, 8}, microbatch_counts[] = {1, 2, 4, 8, 24};

/* Equal stages without messages: all wait for the first and the last microbatch to go through the others. */
static void test_bubbles(void **state) {
  (void)state;
  const ax_stage_times times = {2, 5, 3};
  for (size_t i = 0; i < AX_COUNT(stage_counts); i++)
    for (size_t k = 0; k < AX_COUNT(microbatch_counts); k++) {
      const int64_t p = stage_counts[i], m = microbatch_counts[k];
      const double expected = (double)(m + p - 1) * 7;
      const ax_pipelined gpipe = run(AX_PIPELINE_GPIPE, p, m, 1, times, 0), in_turns = run(AX_PIPELINE_1F1B, p, m, 1, times, 0);
      TEST_NEAR(gpipe.seconds, expected, 1e-12);
      TEST_NEAR(in_turns.seconds, expected, 1e-12);
      TEST_NEAR(in_turns.busy, (double)m * 7, 1e-12);
      assert_true(gpipe.in_flight == (double)m);
      assert_true(in_turns.in_flight == fmin((double)p, (double)m));
    }
}

/* v chunks: the bubble is a v-th (Narayanan et al., arXiv:2104.04473, section 2.2.2). */
static void test_interleaved(void **state) {
  (void)state;
  const ax_stage_times times = {2, 4, 2};
  for (int64_t p = 2; p <= 8; p *= 2)
    for (int64_t chunks = 1; chunks <= 4; chunks *= 2)
      for (int64_t m = p; m <= 4 * p; m *= 2) {
        const ax_pipelined made = run(AX_PIPELINE_INTERLEAVED, p, m, chunks, times, 0);
        if (chunks > 1) TEST_NEAR(made.seconds, ((double)m + (double)(p - 1) / (double)chunks) * 6, 1e-12);
      }
}

/* Nothing is better than stages that never wait but for their first microbatch; messages delay. */
static void test_zero_bubbles(void **state) {
  (void)state;
  const ax_stage_times times = {1, 2, 1};
  for (size_t i = 0; i < AX_COUNT(stage_counts); i++)
    for (size_t k = 0; k < AX_COUNT(microbatch_counts); k++) {
      const int64_t p = stage_counts[i], m = microbatch_counts[k];
      const ax_pipelined zero = run(AX_PIPELINE_ZERO_BUBBLE, p, m, 1, times, 0), in_turns = run(AX_PIPELINE_1F1B, p, m, 1, times, 0);
      assert_true(zero.seconds <= in_turns.seconds + 1e-9);
      assert_true(zero.seconds >= (double)m * 3);
      assert_true(zero.in_flight <= (double)p);
      /* The best is one unit for each stage but the first (ZB-H1, arXiv:2401.10241), 1F1B's are three. */
      if (m >= 2 * p) assert_true(zero.seconds <= (double)m * 3 + 2 * (double)(p - 1));
      assert_true(run(AX_PIPELINE_ZERO_BUBBLE, p, m, 1, times, 0.5).seconds >= zero.seconds);
    }
}

/* Whatever the times, a schedule takes at least what the busiest stage does, and at most all passes one after the other. */
static void test_bounds(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int round = 0; round < 400; round++) {
    double number[10];
    for (int i = 0; i < 10; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      number[i] = (double)(random >> 40) / (double)(1 << 24);
    }
    ax_pipeline p = {.schedule = (ax_pipeline_schedule)(1 + round % 4), .stages = 2 + round % 5, .chunks = round % 4 == 2 ? 2 : 1,
                     .first = {number[0], number[1] + number[2], number[2]}, .middle = {number[3], number[4] + number[5], number[5]},
                     .last = {number[6], number[7] + number[8], number[8]}, .message = number[9]};
    p.microbatches = p.stages * (1 + round % 3);
    ax_pipelined made;
    TEST_OK(ax_pipeline_run(&p, &made));
    const double first = p.first.forward + p.first.backward, middle = p.middle.forward + p.middle.backward;
    const double last = p.last.forward + p.last.backward, others = (double)(p.stages - 2);
    const double messages = 2 * (double)(p.stages * p.chunks) * p.message;
    const double most = fmax(fmax(first, last), p.stages > 2 ? middle : 0);
    assert_true(made.seconds >= (double)p.microbatches * most);
    assert_true(made.seconds <= (double)p.microbatches * (first + last + others * middle + messages) + 1e-9);
  }
}

static void test_refused(void **state) {
  (void)state;
  const ax_pipeline uneven = {.schedule = AX_PIPELINE_INTERLEAVED, .stages = 4, .microbatches = 6, .chunks = 2};
  ax_pipelined made;
  TEST_FAILS(ax_pipeline_run(&uneven, &made), AX_INVALID_ARGUMENT, "6 microbatches are interleaved over 4 stages");
}

/* --- Each pass, and pictures --- */

typedef struct met { /* by stage: when it is free; by virtual stage and microbatch: when the forward pass is over */
  const ax_pipeline *p;
  int64_t count;
  double free[8], forward[32 * 24];
} met;

static void meet(void *context, const ax_stage_pass *pass) {
  met *m = context;
  const int64_t virtual_stage = pass->chunk * m->p->stages + pass->stage;
  m->count++;
  assert_true(pass->begin >= m->free[pass->stage]);
  m->free[pass->stage] = pass->begin + pass->seconds;
  if (pass->kind != AX_STAGE_FORWARD) return;
  if (virtual_stage > 0) assert_true(pass->begin >= m->forward[(virtual_stage - 1) * m->p->microbatches + pass->microbatch]);
  m->forward[virtual_stage * m->p->microbatches + pass->microbatch] = pass->begin + pass->seconds;
}

static void test_passes(void **state) {
  (void)state;
  const ax_stage_times times = {1, 2, 1};
  for (int schedule = AX_PIPELINE_GPIPE; schedule < AX_PIPELINE_SCHEDULE_COUNT; schedule++) {
    const ax_pipeline pipeline = {(ax_pipeline_schedule)schedule, 4, 8, schedule == AX_PIPELINE_INTERLEAVED ? 2 : 1, times, times, times, 0.25};
    met m = {.p = &pipeline};
    ax_pipelined made;
    TEST_OK(ax_pipeline_visit(&pipeline, meet, &m, &made));
    assert_int_equal(m.count, 4 * 8 * pipeline.chunks * (schedule == AX_PIPELINE_ZERO_BUBBLE ? 3 : 2));
  }
}

static int64_t boxes_of(const ax_pipeline *pipeline) {
  char *picture;
  int64_t count = -1; /* the ground */
  TEST_OK(ax_pipeline_picture(pipeline, &picture));
  for (const char *at = picture; (at = strstr(at, "<rect")) != NULL; at++) count++;
  assert_non_null(strstr(picture, "</svg>"));
  ax_string_free(picture);
  return count;
}

static void test_pictures(void **state) {
  (void)state;
  const ax_stage_times times = {1, 2, 1};
  ax_pipeline pipeline = {AX_PIPELINE_1F1B, 4, 8, 1, times, times, times, 0.25};
  assert_int_equal(boxes_of(&pipeline), 4 * 8 * 2);
  pipeline.stages = 128;
  pipeline.microbatches = 4096; /* the beginning of it, of the first stages */
  const int64_t boxes = boxes_of(&pipeline);
  assert_true(boxes > 5000 && boxes <= 20000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bubbles), cmocka_unit_test(test_interleaved), cmocka_unit_test(test_zero_bubbles),
      cmocka_unit_test(test_bounds),  cmocka_unit_test(test_refused),
      cmocka_unit_test(test_passes),  cmocka_unit_test(test_pictures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
