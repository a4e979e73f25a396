/* Time goes on, over lists of work made by hand: computing, transfers beside it, loops, messages. */
#include "sim/engine.h"

#include <math.h>

#include <string.h>

#include "sim/algorithms.h"
#include "sim/state.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { most = 8 };

/* `count` devices on a switch of latency 1 with 10 bytes a second, and what each of them does. */
typedef struct bench {
  ax_cluster *machine;
  ax_mesh mesh;
  ax_sim_place place;
  ax_sim_work_op ops[most];
  ax_sim_work_step steps[most];
  ax_sim_transfer transfers[most];
  ax_sim_post posts[most];
  uint32_t awaits[1];
  ax_sim_work work;
  ax_sim_engine_result result;
} bench;

static void set_up(const char *mesh, bench *b) {
  *b = (bench){.awaits = {0}};
  TEST_OK(ax_cluster_parse("machine m device flops f32 1 memory 1 switch latency 1 bandwidth 10", NULL, &b->machine));
  TEST_OK(ax_mesh_parse(mesh, &b->mesh));
  TEST_OK(ax_sim_place_make(b->machine, &b->mesh, &b->place));
  b->work = (ax_sim_work){.ops = b->ops, .steps = b->steps, .transfers = b->transfers, .posts = b->posts, .awaits = b->awaits};
  b->work.await_count = 1; /* of transfer 0 */
}

static void tear_down(bench *b) {
  ax_sim_engine_result_deinit(&b->result);
  for (uint32_t i = 0; i < most; i++) ax_sim_procedure_deinit(&b->transfers[i].procedure);
  for (uint32_t i = 0; i < most; i++) ax_sim_procedure_deinit(&b->posts[i].procedure);
  ax_cluster_release(b->machine);
}

static void add_step(bench *b, ax_sim_work_step step) { b->steps[b->work.step_count++] = step; }

static uint32_t add_op(bench *b, const char *name, double seconds, uint32_t transfer) {
  b->ops[b->work.op_count] = (ax_sim_work_op){.name = name, .seconds = seconds, .transfer = transfer};
  return b->work.op_count++;
}

static void compute(bench *b, double seconds, bool after_transfer) {
  const uint32_t op = add_op(b, "compute", seconds, AX_NONE);
  add_step(b, (ax_sim_work_step){.kind = AX_WORK_COMPUTE, .op = op, .await_count = after_transfer});
}

/* An all-gather of `bytes` each by a ring. */
static void gather(bench *b, double bytes) {
  const uint32_t t = b->work.transfer_count++;
  bool done;
  b->transfers[t] = (ax_sim_transfer){.procedure = {.kind = AX_COLLECTIVE_ALL_GATHER, .bytes = bytes}};
  ax_sim_group_make(&b->place, &(ax_axes){.count = 1, .name = {"x"}}, &b->transfers[t].procedure.group);
  TEST_OK(ax_sim_procedure_make(&b->transfers[t].procedure, AX_ALGORITHM_RING, &done));
  b->transfers[t].op = add_op(b, "all_gather", 100, t);
  add_step(b, (ax_sim_work_step){.kind = AX_WORK_TRANSFER, .op = b->transfers[t].op});
}

static void run(bench *b, bool repeats) {
  ax_sim_engine_result_deinit(&b->result);
  TEST_OK(ax_sim_engine_run(&b->work, &b->place, (ax_sim_limits){.messages = 1e6}, repeats, &b->result));
}

static void a_device_computes_one_after_the_other(void **state) {
  (void)state;
  bench b;
  set_up("x=2", &b);
  compute(&b, 2, false);
  compute(&b, 3, false);
  run(&b, false);
  assert_true(b.result.seconds == 5);
  assert_true(b.result.ops[1].start == 2 && b.result.ops[1].end == 5);
  assert_true(b.result.ops[1].busy == 6 && b.result.ops[1].runs == 2); /* on both devices */
  assert_int_equal(b.result.span_count, 4);
  tear_down(&b);
}

static void a_transfer_goes_on_beside_computing(void **state) {
  (void)state;
  bench b;
  set_up("x=3", &b);
  gather(&b, 20);        /* two steps of 1 + 2 seconds */
  compute(&b, 4, false); /* beside it */
  compute(&b, 1, true);  /* after it */
  run(&b, false);
  assert_true(b.result.ops[0].end == 6);
  assert_true(b.result.ops[1].end == 4);
  assert_true(b.result.ops[2].start == 6);
  assert_true(b.result.seconds == 7);
  assert_true(b.result.messages == 6);
  assert_true(b.result.link_bytes[0] == 40 && b.result.link_bytes[1] == 40);
  tear_down(&b);
}

static void the_whole_lasts_until_all_have_ended(void **state) {
  (void)state;
  bench b;
  set_up("x=3", &b);
  gather(&b, 20);
  compute(&b, 9, false); /* longer than the transfer, which ends later than this begins */
  run(&b, false);
  assert_true(b.result.ops[0].end == 6);
  assert_true(b.result.seconds == 9);
  tear_down(&b);
}

/* Spans that are waited for are the causes of those that wait. */
static void the_last_span_is_traced_back(void **state) {
  (void)state;
  bench b;
  set_up("x=2", &b);
  compute(&b, 5, false);
  gather(&b, 10);
  b.steps[1].await_count = 0;
  compute(&b, 1, true);
  run(&b, false);
  const ax_sim_engine_span *last = &b.result.spans[b.result.last], *before = &b.result.spans[last->cause];
  assert_int_equal(last->span.op, 2);
  assert_int_equal(before->span.op, 1);
  assert_int_equal(b.result.spans[before->cause].span.op, 0);
  assert_int_equal(b.result.spans[before->cause].cause, AX_NONE);
  tear_down(&b);
}

static void messages_that_meet_share_a_link(void **state) {
  (void)state;
  bench b;
  set_up("x=3", &b);
  gather(&b, 10);
  gather(&b, 10);
  run(&b, false);
  assert_true(b.result.seconds == 2 * (1 + 2)); /* both are sent at once, and carry 20 bytes together */
  tear_down(&b);
}

static void add_loop(bench *b, int64_t trips) {
  add_step(b, (ax_sim_work_step){.kind = AX_WORK_LOOP, .trips = trips, .computes = true});
  compute(b, 0.5, false);
  add_step(b, (ax_sim_work_step){.kind = AX_WORK_NEXT});
  b->work.loops = 1;
}

static void a_loop_is_gone_round_so_often(void **state) {
  (void)state;
  bench b;
  set_up("x=1", &b);
  add_loop(&b, 6);
  run(&b, false);
  assert_true(b.result.seconds == 3 && b.result.ops[0].runs == 6);
  assert_int_equal(b.result.span_count, 6);
  tear_down(&b);
}

static void rounds_that_repeat_are_laid_out_at_once(void **state) {
  (void)state;
  bench b;
  set_up("x=1", &b);
  add_loop(&b, 1000);
  run(&b, true);
  assert_true(b.result.seconds == 500 && b.result.ops[0].runs == 1000 && b.result.ops[0].busy == 500);
  assert_int_equal(b.result.span_count, 3); /* the first, those between, the last */
  tear_down(&b);
}

static void steps_of_a_ring_that_repeat_are_skipped(void **state) {
  (void)state;
  bench b;
  set_up("x=200", &b);
  gather(&b, 10);
  run(&b, false);
  assert_true(b.result.seconds == 199 * (1 + 1));
  const double events = b.result.events, messages = b.result.messages, bytes = b.result.link_bytes[7];
  run(&b, true);
  assert_true(b.result.seconds == 199 * (1 + 1));
  assert_true(b.result.messages == messages && b.result.link_bytes[7] == bytes);
  assert_true(b.result.events < events / 10);
  tear_down(&b);
}

static void too_many_messages_are_refused(void **state) {
  (void)state;
  bench b;
  set_up("x=4", &b);
  gather(&b, 10);
  TEST_FAILS(ax_sim_engine_run(&b.work, &b.place, (ax_sim_limits){.messages = 11}, false, &b.result), AX_INVALID_ARGUMENT,
             "more than 11 messages: 4 of");
  ax_sim_engine_result_deinit(&b.result);
  TEST_OK(ax_sim_engine_run(&b.work, &b.place, (ax_sim_limits){.messages = 12}, false, &b.result));
  ax_sim_engine_result_deinit(&b.result);
  /* where all are known to be too many, an eighth of them says whether any repeat themselves */
  assert_true(ax_sim_work_messages(&b.work, &b.place) == 12);
  TEST_FAILS(ax_sim_engine_run(&b.work, &b.place, (ax_sim_limits){.messages = 16, .all = 17}, true, &b.result), AX_INVALID_ARGUMENT,
             "more than 16 messages: 4 of");
  ax_sim_engine_result_deinit(&b.result);
  TEST_OK(ax_sim_engine_run(&b.work, &b.place, (ax_sim_limits){.messages = 16, .all = 12}, true, &b.result));
  tear_down(&b);
}

/* Whoever compares runs gives the best so far as a limit: what is faster is gone through as without one, and nothing else to its
   end. */
static void a_slower_run_ends_early(void **state) {
  (void)state;
  bench b;
  set_up("x=4", &b);
  gather(&b, 10);
  run(&b, false);
  const double seconds = b.result.seconds, events = b.result.events;
  ax_sim_engine_result_deinit(&b.result);
  TEST_OK(ax_sim_engine_run(&b.work, &b.place, (ax_sim_limits){.messages = 1e6, .seconds = seconds / 2}, false, &b.result));
  assert_true(isinf(b.result.seconds) && b.result.events < events);
  ax_sim_engine_result_deinit(&b.result);
  TEST_OK(ax_sim_engine_run(&b.work, &b.place, (ax_sim_limits){.messages = 1e6, .seconds = 1.001 * seconds}, false, &b.result));
  assert_true(b.result.seconds == seconds && b.result.events == events);
  tear_down(&b);
}

/* --- Single messages --- */

static const int64_t from[] = {-1, 0}, to[] = {1, -1}; /* device 0 sends to device 1 */

static void post(bench *b, ax_sim_work_kind kind) {
  const uint32_t p = b->work.post_count++;
  bool done;
  b->posts[p].procedure = (ax_sim_procedure){.kind = AX_COLLECTIVE_PERMUTE, .bytes = 30, .source = from, .target = to};
  ax_sim_group_make(&b->place, &(ax_axes){.count = 1, .name = {"x"}}, &b->posts[p].procedure.group);
  TEST_OK(ax_sim_procedure_make(&b->posts[p].procedure, AX_ALGORITHM_DIRECT, &done));
  b->work.queues = 1;
  add_step(b, (ax_sim_work_step){.kind = kind, .op = add_op(b, kind == AX_WORK_SEND ? "psend" : "precv", 0, AX_NONE), .target = p});
}

static void a_receiver_waits_for_its_message(void **state) {
  (void)state;
  bench b;
  set_up("x=2", &b);
  compute(&b, 2, false);
  post(&b, AX_WORK_SEND);
  post(&b, AX_WORK_RECEIVE);
  run(&b, false);
  assert_true(b.result.ops[1].end == 2);
  assert_true(b.result.ops[2].end == 2 + 1 + 3);
  assert_true(b.result.messages == 1);
  tear_down(&b);
}

static void a_message_that_is_never_sent_is_a_deadlock(void **state) {
  (void)state;
  bench b;
  set_up("x=2", &b);
  post(&b, AX_WORK_RECEIVE);
  TEST_FAILS(ax_sim_engine_run(&b.work, &b.place, (ax_sim_limits){.messages = 1e6}, false, &b.result), AX_DEADLOCK,
             "device 1 waits in precv");
  tear_down(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_device_computes_one_after_the_other),   cmocka_unit_test(a_transfer_goes_on_beside_computing),
      cmocka_unit_test(the_whole_lasts_until_all_have_ended),    cmocka_unit_test(the_last_span_is_traced_back),
      cmocka_unit_test(messages_that_meet_share_a_link),         cmocka_unit_test(a_loop_is_gone_round_so_often),
      cmocka_unit_test(rounds_that_repeat_are_laid_out_at_once), cmocka_unit_test(steps_of_a_ring_that_repeat_are_skipped),
      cmocka_unit_test(too_many_messages_are_refused),           cmocka_unit_test(a_slower_run_ends_early),
      cmocka_unit_test(a_receiver_waits_for_its_message),        cmocka_unit_test(a_message_that_is_never_sent_is_a_deadlock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
