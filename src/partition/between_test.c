/* What crosses processes, against counts by hand. A mesh a=2,b=4 on two processes in blocks: devices 0 to 3 (a = 0) and 4 to 7. */
#include "partition/between.h"

#include <string.h>

#include "axle/transform.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

#define ON(spec_, result_, takes_, body_, gives_)                                                                          \
  "{ lambda x:" takes_ ". let y:" gives_ " = shard_map[mesh=(a=2,b=4) unchecked=true in_specs=(" spec_ ") out_specs=(" result_ \
  ") body={ axes a=2? b=4? ; lambda x:f32[8,8]. let " body_ " in (y) }] x in (y) }"

static const char over_a[] = ON("P(a+b)", "P(b)", "f32[64,8]", "y:f32[8,8] = psum[axes=(a)] x", "f32[32,8]");
static const char over_b[] = ON("P(a+b)", "P(a)", "f32[64,8]", "y:f32[8,8] = psum[axes=(b)] x", "f32[16,8]");
static const char over_both[] = ON("P(a+b)", "P()", "f32[64,8]", "y:f32[8,8] = psum[axes=(a, b)] x", "f32[8,8]");
static const char gathered[] = ON("P(a+b)", "P()", "f32[64,8]", "y:f32[64,8] = all_gather[axes=(a, b) dimension=0] x", "f32[64,8]");
static const char scattered[] = ON("P(a+b)", "P(a+b)", "f32[64,8]", "y:f32[1,8] = psum_scatter[axes=(a, b) dimension=0] x", "f32[8,8]");
static const char shifted[] =
    ON("P(a+b)", "P(a+b)", "f32[64,8]", "y:f32[8,8] = ppermute[axes=(a, b) pairs=((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7))] x", "f32[64,8]");
static const char broadcasted[] = ON("P(a+b)", "P(a+b)", "f32[64,8]", "y:f32[8,8] = pbroadcast[axes=(a, b) source=1] x", "f32[64,8]");
static const char grouped[] =
    ON("P(a+b)", "P(a+b)", "f32[64,8]", "y:f32[8,8] = psum[axes=(a, b {0,1,2,3} {4,5,6,7})] x", "f32[64,8]");

/* Each device has 128 x 128 floats, 64 KiB. */
#define LARGE(over_, result_, spread_) \
  "{ lambda x:f32[1024,128]. let y:f32[" result_ "] = shard_map[mesh=(a=2,b=4) unchecked=true in_specs=(P(a+b)) out_specs=(" spread_ \
  ") body={ axes a=2? b=4? ; lambda x:f32[128,128]. let y:f32[128,128] = psum[axes=(" over_ ")] x in (y) }] x in (y) }"
static const char large_over_a[] = LARGE("a", "512,128", "P(b)"), large_over_both[] = LARGE("a, b", "128,128", "P()"),
                  large_grouped[] = LARGE("a, b {0,1,2,3,4} {5,6,7}", "1024,128", "P(a+b)");

static ax_cost cost_over(const char *text, const ax_process_layout *processes) {
  ax_program *program;
  ax_cost cost;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_program_cost_over(program, processes, &cost));
  ax_program_release(program);
  return cost;
}

static void expect_way(const char *way, const char *text, const ax_process_layout *processes, double within, double between,
                       double messages) {
  ax_cost cost = cost_over(text, processes);
  TEST_NEAR(cost.within, within, 0);
  TEST_NEAR(cost.between, between, 0);
  TEST_NEAR(cost.messages, messages, 0);
  assert_int_equal(cost.collective_count, 1);
  TEST_NEAR(cost.collectives[0].between, between, 0);
  TEST_NEAR(cost.collectives[0].seconds, cost.seconds, 0);
  assert_true(cost.seconds > 0);
  if (between > 0) assert_string_equal(cost.collectives[0].way, way);
  else assert_null(cost.collectives[0].way);
  ax_cost_release(&cost);
}

/* Each device has 8 x 8 floats, 256 bytes. */
static void expect(const char *text, const ax_process_layout *processes, double within, double between, double messages) {
  expect_way("gather", text, processes, within, between, messages);
}

static const uint32_t alternating[] = {0, 1, 0, 1, 0, 1, 0, 1}, uneven[] = {0, 0, 0, 0, 0, 0, 0, 1};
static const ax_process_layout two = {.processes = 2}, eight = {.processes = 8},
                               by_turns = {.processes = 2, .process_of = alternating, .process_of_count = 8},
                               one_and_seven = {.processes = 2, .process_of = uneven, .process_of_count = 8};

static void an_axis_that_crosses(void **state) {
  (void)state;
  expect(over_a, &two, 0, 4 * 256, 4);         /* four groups of one member here and one there */
  expect(over_b, &two, 2 * 3 * 256, 0, 0);     /* a group of four in each */
  expect(over_both, &two, 2 * 3 * 256, 4 * 256, 1); /* short, so what all four give goes in one message */
  expect(over_a, &by_turns, 2 * 2 * 256, 0, 0); /* now b crosses */
  expect(over_b, &by_turns, 2 * 2 * 256, 2 * 2 * 256, 2);
  ax_cost across = cost_over(over_a, &two), inside = cost_over(over_b, &two);
  assert_true(across.received < inside.received && across.seconds > inside.seconds); /* fewer bytes, and dearer */
  ax_cost_release(&across), ax_cost_release(&inside);
}

static void each_kind(void **state) {
  (void)state;
  expect(gathered, &two, 4 * 3 * 256, 4 * 256, 1);
  expect(scattered, &two, 4 * 3 * 32, 4 * 4 * 32, 1); /* each gets 32 bytes of each other */
  expect(shifted, &two, 3 * 256, 256, 1);             /* from 3 to 4 */
  expect(broadcasted, &two, 3 * 256, 256, 1);
  expect(grouped, &two, 2 * 3 * 256, 0, 0);
  expect(grouped, &by_turns, 2 * 2 * (2 - 1) * 256, 2 * 2 * 256, 2);
  expect(over_both, &eight, 0, 7 * 256, 7);
  expect(over_both, &one_and_seven, 0, 7 * 256, 1); /* the process with one device waits longest */
}

static void assume(void) {
  ax_description machine;
  TEST_OK(ax_machine_parse("", &machine));
  ax_machine_pretend(&machine);
}

/* At most 2 KiB of a member, and 8 KiB in a message with the number of each. Where a process does not send all of its members, they go
   alone: here process 0 has members 0, 1 and 2, and process 1 has 2 itself. */
static void what_fits_in_a_message(void **state) {
  (void)state;
#define PSUM(axes_, elems_)                                                                                                     \
  "{ lambda x:f32[8," elems_ "]. let y:f32[8," elems_ "] = shard_map[mesh=(a=2,b=4) unchecked=true in_specs=(P(a+b)) "          \
  "out_specs=(P(a+b)) body={ axes a=2? b=4? ; lambda x:f32[1," elems_ "]. let y:f32[1," elems_ "] = psum[axes=(" axes_          \
  ")] x in (y) }] x in (y) }"
  expect(PSUM("a, b", "512"), &two, 2 * 3 * 2048, 4 * 2048, 2); /* three and one */
  expect(PSUM("a, b", "511"), &two, 2 * 3 * 2044, 4 * 2044, 1);
  expect(PSUM("a, b", "513"), &two, 2 * 3 * 2052, 4 * 2052, 4);
  static const char copies[] =
      "{ lambda x:f32[32,8]. let y:f32[8,8] = shard_map[mesh=(a=2,b=4) unchecked=false in_specs=(P(b)) out_specs=(P()) "
      "body={ axes a=2 b=4 ; lambda x:f32[8,8]{V:b}. let y:f32[8,8] = psum[axes=(b)] x in (y) }] x in (y) }";
  static const uint32_t some[] = {0, 0, 0, 1, 0, 0, 1, 1};
  const ax_process_layout overlapping = {.processes = 2, .process_of = some, .process_of_count = 8};
  expect(copies, &overlapping, 2 * 256, 2 * 256, 2); /* process 1 gets members 0 and 1 */
}

/* Of 64 KiB each a process gets, of each member elsewhere, its share, and of each other process the total of that one's share. Its
   own members add a share, and take the whole. */
static void large_sums_go_in_shares(void **state) {
  (void)state;
  const double whole = 64 << 10, half = whole / 2, eighth = whole / 8;
  expect_way("shares", large_over_a, &two, 0, 4 * (half + half), 4 * 2); /* four groups of one member here and one there */
  expect_way("shares", large_over_both, &two, 3 * (half + whole), 4 * half + half, 5);
  expect_way("shares", large_over_both, &by_turns, 3 * (half + whole), 4 * half + half, 5);
  expect_way("shares", large_over_both, &eight, 0, 7 * eighth + 7 * eighth, 14);
  expect_way("shares", large_over_both, &one_and_seven, 0, 7 * half + half, 8); /* the process with one device waits longest */
  /* Members 0 to 3 and 4 of a group, whose other process has one; the group 5, 6, 7 is in one process. */
  expect_way("shares", large_grouped, &two, 2 * 2 * whole, 4 * half + half, 5);
  expect_way("gather", over_both, &two, 2 * 3 * 256, 4 * 256, 1); /* short */
}

/* A member that several processes have: contributions go to each that lacks them. */
static void copies_are_gathered(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[512,128]. let y:f32[128,128] = shard_map[mesh=(a=2,b=4) unchecked=false in_specs=(P(b)) out_specs=(P()) "
      "body={ axes a=2 b=4 ; lambda x:f32[128,128]{V:b}. let y:f32[128,128] = psum[axes=(b)] x in (y) }] x in (y) }";
  static const uint32_t some[] = {0, 0, 0, 1, 1, 1, 1, 1};
  const ax_process_layout overlapping = {.processes = 2, .process_of = some, .process_of_count = 8};
  const double whole = 64 << 10, half = whole / 2;
  expect_way("gather", text, &overlapping, 2 * 2 * whole, whole, 1); /* process 1 has all, process 0 lacks member 3 */
  expect_way("shares", text, &by_turns, half + whole, 2 * half + half, 3);
}

/* By hand, as below: a share and a total of 32 KiB each, for four groups. */
static void seconds_of_shares(void **state) {
  (void)state;
  assume();
  ax_cost cost = cost_over(large_over_a, &two);
  TEST_NEAR(cost.seconds, 8 * (5e-6 + 32768 / 1e10) + 65536 * 8 / 5e10 + 13e-7, 1e-12);
  ax_cost_release(&cost);
  ax_machine_pretend(NULL);
}

/* The same along an axis: each process has all members by itself. */
static void copies_are_not_sent(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[32,8]. let y:f32[8,8] = shard_map[mesh=(a=2,b=4) unchecked=false in_specs=(P(b)) out_specs=(P()) "
      "body={ axes a=2 b=4 ; lambda x:f32[8,8]{V:b}. let y:f32[8,8] = psum[axes=(b)] x in (y) }] x in (y) }";
  expect(text, &two, 2 * 3 * 256, 0, 0);
  expect(text, &by_turns, 2 * 256, 2 * 256, 1); /* a = 0 alone pushes: members 1 and 3 come from process 1 */
}

/* Between hosts messages take longer, and what all processes of a host get shares its link. */
static void hosts(void **state) {
  (void)state;
  const ax_process_layout one = {.processes = 8}, four = {.processes = 8, .per_host = 2}, apart = {.processes = 8, .per_host = 1};
  ax_cost a = cost_over(over_both, &one), b = cost_over(over_both, &four), c = cost_over(over_both, &apart);
  assert_true(a.between == b.between && b.between == c.between);
  assert_true(a.seconds < b.seconds && b.seconds < c.seconds);
  ax_cost_release(&a), ax_cost_release(&b), ax_cost_release(&c);
}

/* Assumed speeds by hand: a message of 256 bytes on a host takes 0.8 us and its bytes at 2.5 GB/s; bytes that come to a device are moved
   eight times at 50 GB/s; 13 lines are handed over in 0.1 us each. */
static void seconds(void **state) {
  (void)state;
  assume();
  ax_cost cost = cost_over(over_a, &two);
  TEST_NEAR(cost.seconds, 4 * (8e-7 + 256 / 2.5e9) + 256 * 8 / 5e10 + 13e-7, 1e-12);
  ax_cost_release(&cost);
  ax_machine_pretend(NULL);
}

static void one_process(void **state) {
  (void)state;
  const ax_process_layout one = {.processes = 1};
  ax_cost cost = cost_over(over_a, &one);
  assert_true(cost.processes == 1 && cost.within == 0 && cost.between == 0 && cost.seconds == 0 && cost.received > 0);
  ax_cost_release(&cost);
  cost = cost_over(over_a, NULL);
  assert_int_equal(cost.processes, 1);
  ax_cost_release(&cost);
}

static void refused(void **state) {
  (void)state;
  static const uint32_t wrong[] = {0, 2, 0, 0, 0, 0, 0, 0};
  const ax_process_layout no_such = {.processes = 2, .process_of = wrong, .process_of_count = 8},
                          too_short = {.processes = 2, .process_of = alternating, .process_of_count = 4};
  ax_program *program;
  ax_cost cost;
  TEST_OK(ax_program_parse(over_a, strlen(over_a), "test", &program));
  TEST_FAILS(ax_program_cost_over(program, &no_such, &cost), AX_INVALID_ARGUMENT, "device 1 is given to process 2");
  TEST_FAILS(ax_program_cost_over(program, &too_short, &cost), AX_INVALID_ARGUMENT, "the processes' list has 4");
  assert_null(cost.collectives);
  ax_program_release(program);
}

static void one_case(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_over_processes over;
  ax_between between;
  TEST_OK(ax_mesh_parse("a=2,b=4", &mesh));
  TEST_OK(ax_over_processes_init(&two, &mesh, &over));
  const ax_axes names = ax_axis_set_names(2, &mesh);
  const ax_between_case of = {.mesh = &mesh, .names = &names, .on = 3, .traffic = AX_TRAFFIC_COMBINED, .bytes = 1 << 20};
  TEST_OK(ax_between_count(&over, ax_rates_planned(), &of, &between));
  TEST_NEAR(between.within, 6.0 * (1 << 20), 0);
  TEST_NEAR(between.bytes, 0, 0);
  ax_over_processes_deinit(&over);
  assert_null(over.map);
}

static void text(void **state) {
  (void)state;
  assume();
  char *table;
  ax_cost cost = cost_over(over_both, &two);
  TEST_OK(ax_cost_text(&cost, &table));
  assert_string_equal(table,
                      "on each of 8 devices, a run:\n"
                      "               0  flops\n"
                      "             512  bytes read and written, nothing fused\n"
                      "             448  bytes received from other devices\n"
                      "on 2 processes, in the one that it takes longest:\n"
                      "            1536  bytes received within the process\n"
                      "            1024  bytes received from other processes, in 1 message\n"
                      "            2.61  us for both, at speeds that are given or assumed\n\n"
                      "  bytes received        within       between  messages          us       times   members  collective\n"
                      "             448          1536          1024         1        2.61           1         8  psum over a,b, gather\n");
  ax_string_free(table);
  ax_cost_release(&cost);
  ax_machine_pretend(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_axis_that_crosses), cmocka_unit_test(each_kind),
                                     cmocka_unit_test(large_sums_go_in_shares), cmocka_unit_test(what_fits_in_a_message),
                                     cmocka_unit_test(copies_are_gathered),
                                     cmocka_unit_test(seconds_of_shares),
                                     cmocka_unit_test(copies_are_not_sent), cmocka_unit_test(hosts), cmocka_unit_test(seconds),
                                     cmocka_unit_test(one_process), cmocka_unit_test(refused), cmocka_unit_test(one_case),
                                     cmocka_unit_test(text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
