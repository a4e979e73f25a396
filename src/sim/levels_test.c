/* Which cache an operation's bytes come from, cores that share operations, and what cores take for functions: against sums by hand,
   on machines of round figures. */
#undef AXLE_NO_LINES
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "axle/axle.h"
#include "axle/simulate.h"
#include "base/base.h"
#include "sim/device.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* 1e12 flops: nothing that these programs compute counts, unless they are said to be of cores. */
#define MEMORY "machine m device flops f32 1e15 memory 1e9 "
#define CACHES MEMORY "cache 1e6 1e12 cache 1e8 1e11 "
#define LINKS " switch bandwidth 1e9"

static void simulate(ax_fn fn, const ax_type *types, const char *machine, ax_simulation *out) {
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *made;
  TEST_OK(ax_trace(fn, types, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine, NULL, &made));
  TEST_OK(ax_simulate(lowered, made, NULL, out));
  ax_cluster_release(made);
  ax_lowered_release(lowered);
  ax_program_release(program);
}

static double seconds(ax_fn fn, int64_t elems, const char *machine) {
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(elems)), ax_array_type(AX_F32, AX_DIMS(elems))};
  ax_simulation s;
  simulate(fn, types, machine, &s);
  const double took = s.seconds;
  ax_simulation_release(&s);
  return took;
}

static void expect(double found, double wanted) {
  if (!(fabs(found / wanted - 1) < 1e-3)) fail_msg("%g, not %g", found, wanted);
}

static AX_BODY(twice) {
  (void)context;
  out[0] = ax_mul(in[0], 2);
}

/* Two kernels, since what is between them is a result too and is summed. */
static AX_BODY(squares) {
  (void)context;
  out[0] = ax_sort(in[0], 0);
  out[1] = ax_sort(in[1], 0);
}

static AX_BODY(step) {
  (void)context;
  out[0] = ax_sort(in[0], 0);
}

static AX_BODY(loop) {
  (void)context;
  ax_scan(AX_FN(step, 1, 1), 1, 10, false, AX_VALUES(in[0]), out);
}

/* y = 2 x moves 8 bytes an element, run after run: all of them lie in the smallest cache up to three quarters of it, and none from one
   and a half of it on. */
static void test_sizes(void **state) {
  (void)state;
  const ax_fn fn = AX_FN(twice, 1, 1);
  expect(seconds(fn, 1000000, MEMORY LINKS), 8e6 / 1e9);
  expect(seconds(fn, 90000, CACHES LINKS), 7.2e5 / 1e12);
  expect(seconds(fn, 200000, CACHES LINKS), 1.6e6 / 1e11);
  expect(seconds(fn, 140625, CACHES LINKS), 1.125e6 * (0.5 / 1e12 + 0.5 / 1e11)); /* half way */
  expect(seconds(fn, 9000000, CACHES LINKS), 7.2e7 / 1e11);
  expect(seconds(fn, 20000000, CACHES LINKS), 1.6e8 / 1e9);
  double before = 0;
  for (int64_t elems = 1000; elems < 100000000; elems = elems / 4 * 5) { /* more bytes never take less */
    const double now = seconds(fn, elems, CACHES LINKS);
    assert_true(now > before);
    before = now;
  }
}

/* Cores store what no cache holds past the caches, while they read. */
static void test_past_the_caches(void **state) {
  (void)state;
  const double took = seconds(AX_FN(twice, 1, 1), 15000000, "machine m device flops f32 1e15 memory 1e9 write 2e9 cache 1e8 1e11 core 1e-9" LINKS);
  expect(took, hypot(6e7 / 1e11, 6e7 / 2e9));
}

/* What another operation touches in between pushes a buffer out. */
static void test_in_between(void **state) {
  (void)state;
  const ax_type small[] = {ax_array_type(AX_F32, AX_DIMS(50000)), ax_array_type(AX_F32, AX_DIMS(50000))},
                large[] = {ax_array_type(AX_F32, AX_DIMS(50000)), ax_array_type(AX_F32, AX_DIMS(500000))};
  ax_simulation alone, beside;
  simulate(AX_FN(squares, 2, 2), small, MEMORY "cache 2e6 1e12" LINKS, &alone);
  simulate(AX_FN(squares, 2, 2), large, MEMORY "cache 2e6 1e12" LINKS, &beside);
  double least = HUGE_VAL;
  for (uint32_t i = 0; i < beside.op_count; i++) least = fmin(least, beside.ops[i].busy);
  expect(least, alone.ops[0].busy * 1e12 / 1e9 * (alone.ops[0].bytes > 0)); /* the same sort of 50,000, from memory */
  ax_simulation_release(&alone);
  ax_simulation_release(&beside);
}

static AX_BODY(parts) {
  const bool *apart = context;
  out[0] = ax_full(AX_F32, AX_DIMS(), 0);
  for (int i = 0; i < 16; i++) {
    const ax_value part = *apart ? in[i] : ax_slice_in_dim(in[0], 100000 * i, 100000 * (i + 1), 1, 0);
    out[0] = ax_add(out[0], ax_reduce_max(ax_sort(part, 0), AX_DIMS(0), false));
  }
}

/* Parts of one array come from where the same parts as arrays of their own do. */
static void test_parts(void **state) {
  (void)state;
  ax_type types[16];
  ax_simulation s[2];
  bool apart = true;
  for (int i = 0; i < 16; i++) types[i] = ax_array_type(AX_F32, AX_DIMS(100000));
  simulate(AX_CLOSURE(parts, 16, 1, &apart), types, MEMORY "cache 4e6 1e12" LINKS, &s[0]);
  apart = false;
  types[0] = ax_array_type(AX_F32, AX_DIMS(1600000));
  simulate(AX_CLOSURE(parts, 1, 1, &apart), types, MEMORY "cache 4e6 1e12" LINKS, &s[1]);
  assert_true(s[0].seconds > 6.4e6 / 1e9); /* more than the cache holds */
  assert_true(s[1].seconds > 0.9 * s[0].seconds && s[1].seconds < 1.5 * s[0].seconds);
  for (int i = 0; i < 2; i++) ax_simulation_release(&s[i]);
}

/* A loop's steps find what the step before left, whatever was there before the loop. */
static void test_loops(void **state) {
  (void)state;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(50000));
  ax_simulation s;
  simulate(AX_FN(loop, 1, 1), &type, CACHES LINKS, &s);
  uint32_t found = 0;
  for (uint32_t i = 0; i < s.op_count; i++) {
    if (s.ops[i].runs != 10) continue;
    expect(s.ops[i].busy / s.ops[i].bytes, 1 / 1e12);
    found++;
  }
  assert_true(found > 0);
  ax_simulation_release(&s);
}

/* Two cores halve what is cut into parts, and take the time of sharing it; what is short stays with one. */
static void test_cores(void **state) {
  (void)state;
  const ax_fn fn = AX_FN(twice, 1, 1);
  const double one = seconds(fn, 1000000, MEMORY LINKS);
  expect(seconds(fn, 1000000, "machine m device flops f32 1e15 memory 2e9 cores 2 share 1e-5" LINKS), one / 2 + 1e-5);
  expect(seconds(fn, 1000, "machine m device flops f32 1e15 memory 2e9 cores 2 share 1" LINKS), 8e3 / 1e9);
  expect(seconds(fn, 1000000, "machine m device flops f32 1e15 memory 2e9 cores 2 share 1" LINKS), one);
}

/* What a device takes of an operation that is counted by hand. */
static void test_efforts(void **state) {
  (void)state;
  const ax_cluster device = {.memory = 1e9, .launch = 1e-6}, writes = {.memory = 1e9, .write = 2e9},
                   core = {.memory = 1e9, .core = 2, .cores = 4, .share = 1e-6},
                   wide = {.memory = 1e9, .core = 2, .cores = 4, .core_memory = 8e8};
  const ax_sim_effort amount = {.read = 3000, .written = 1000};
  const char *bound;
  expect(ax_sim_cores(&device), 1);
  expect(ax_sim_cores(&core), 4);
  expect(ax_sim_memory_alone(&device), 1);
  expect(ax_sim_memory_alone(&core), 4);
  expect(ax_sim_memory_alone(&wide), 1.25);
  expect(ax_sim_moving(&device, &amount).all, 4e-6);
  expect(ax_sim_moving(&writes, &amount).all, 3.5e-6);
  expect(ax_sim_moving(&writes, &amount).alone, 3.5e-6);
  expect(ax_sim_moving(&core, &amount).alone, 4 * 4e-6);
  expect(ax_sim_moving(&wide, &amount).alone, 1.25 * 4e-6); /* one core gets to four fifths of the memory's speed */
  expect(ax_sim_write_rate(&device), 1e9);
  expect(ax_sim_write_rate(&writes), 2e9);
  expect(ax_sim_effort_seconds(&device, &(ax_sim_effort){.computing = 3e-6, .launched = true}, (ax_sim_moved){4e-6, 4 * 4e-6}, &bound), 5e-6);
  assert_string_equal(bound, "memory");
  expect(ax_sim_effort_seconds(&device, &(ax_sim_effort){.computing = 3e-6}, (ax_sim_moved){4e-6, 4 * 4e-6}, &bound), 4e-6);
  expect(ax_sim_effort_seconds(&device, &(ax_sim_effort){.computing = 1e-7, .launched = true}, (ax_sim_moved){1e-7, 4 * 1e-7}, &bound), 1.1e-6);
  assert_string_equal(bound, "launch");
  /* of ten parts some of four cores have three: 12 instead of 10; a device without parts has one core at work */
  expect(ax_sim_effort_seconds(&core, &(ax_sim_effort){.computing = 3e-5, .parts = 10}, (ax_sim_moved){4e-5, 4 * 4e-5}, &bound), 5e-5 * 1.2 + 1e-6);
  expect(ax_sim_effort_seconds(&core, &(ax_sim_effort){.computing = 3e-5, .parts = 10, .in_turn = true}, (ax_sim_moved){4e-5, 4 * 4e-5}, &bound), 7e-5 * 1.2 + 1e-6);
  expect(ax_sim_effort_seconds(&core, &(ax_sim_effort){.computing = 3e-5}, (ax_sim_moved){4e-5, 4 * 4e-5}, &bound), 5e-5 * 4);
}

static AX_BODY(sine) {
  (void)context;
  out[0] = ax_sin(in[0]);
}

static AX_BODY(quotient) {
  (void)context;
  out[0] = ax_div(in[0], ax_add(in[0], in[0]));
}

static AX_BODY(product) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

/* On cores functions take longer than additions, twice as long where the machine says so; elsewhere each is one flop. Products take
   their flops on both. */
static void test_functions(void **state) {
  (void)state;
  static const char device[] = "machine m device flops f32 1e12 memory 1e15 switch bandwidth 1e9",
                    core[] = "machine m device flops f32 1e12 memory 1e15 core 1 switch bandwidth 1e9",
                    slow[] = "machine m device flops f32 1e12 memory 1e15 core 2 switch bandwidth 1e9",
                    divider[] = "machine m device flops f32 1e12 memory 1e15 core 1 quotients 3 switch bandwidth 1e9";
  const ax_fn add = AX_FN(twice, 1, 1), sin = AX_FN(sine, 1, 1), div = AX_FN(quotient, 1, 1);
  expect(seconds(sin, 100000, device), seconds(add, 100000, device));
  assert_true(seconds(sin, 100000, core) > 5 * seconds(add, 100000, core));
  expect(seconds(sin, 100000, slow), 2 * seconds(sin, 100000, core));
  expect(seconds(div, 100000, slow), 2 * seconds(div, 100000, core)); /* as all else, where nothing is said of quotients */
  expect(seconds(sin, 100000, divider), seconds(sin, 100000, core));
  const double once = seconds(div, 100000, core), thrice = seconds(div, 100000, divider);
  assert_true(thrice > 2 * once && thrice < 3 * once);
  const ax_type square = ax_array_type(AX_F32, AX_DIMS(1000, 1000)), both[] = {square, square};
  ax_simulation s[2];
  simulate(AX_FN(product, 2, 1), both, device, &s[0]);
  simulate(AX_FN(product, 2, 1), both, core, &s[1]);
  expect(s[0].seconds, 2e9 / 1e12);
  assert_true(s[1].seconds > s[0].seconds && s[1].seconds < 1.5 * s[0].seconds); /* its factors are packed */
  for (int i = 0; i < 2; i++) ax_simulation_release(&s[i]);
}

/* A program of many operations takes a time that grows with them. */
static AX_BODY(chain) {
  const int *length = context;
  out[0] = in[0];
  for (int i = 0; i < *length; i++) out[0] = ax_sort(out[0], 0);
}

static void test_growth(void **state) {
  (void)state;
  double took[2] = {HUGE_VAL, HUGE_VAL}; /* of processors' time, the least of three: others may be busy here */
  for (int i = 0; i < 6; i++) {
    int length = i % 2 == 0 ? 500 : 4000;
    const clock_t begin = clock();
    (void)seconds(AX_CLOSURE(chain, 1, 1, &length), 1000, CACHES LINKS);
    took[i % 2] = fmin(took[i % 2], (double)(clock() - begin));
  }
  assert_true(took[1] < 24 * took[0]); /* eight times as many */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes), cmocka_unit_test(test_past_the_caches), cmocka_unit_test(test_in_between), cmocka_unit_test(test_loops),
      cmocka_unit_test(test_cores), cmocka_unit_test(test_functions),  cmocka_unit_test(test_growth), cmocka_unit_test(test_efforts), cmocka_unit_test(test_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
