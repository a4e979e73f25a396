/* Estimates beside simulations: equal where devices do not get in one another's way; near elsewhere. */
#include "sim/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "array/executable.h"
#include "axle/axle.h"
#include "machine/machine.h"
#include "sim/cluster.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static const char machine_text[] =
    "machine \"m\" device flops f32 1e12 memory 1e11 launch 1e-6\nnode devices 4 latency 1e-6 bandwidth 1e10 overhead 5e-7\n"
    "network latency 3e-6 bandwidth 5e9 overhead 1e-6\n";

/* Returns the estimate. */
static double compare_on(const char *machine_text, const char *body, const char *axes, double tolerance) {
  char text[4096];
  ax_program *program;
  ax_cluster *machine;
  ax_plan *plan;
  ax_simulation simulation;
  ax_sim_estimate about;
  snprintf(text, sizeof text,
           "{ lambda x:f32[256,256]. let y:f32[256,256] = shard_map[mesh=(%s) unchecked=false in_specs=(P(d+m)) out_specs=(P(d+m)) "
           "body={ axes %s ; lambda u:f32[16,256]{V:d,m}. let %s }] x in (y) }",
           axes, strcmp(axes, "d=4, m=4") == 0 ? "d=4 m=4" : axes, body);
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  ax_lowered *lowered;
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine_text, "m", &machine));
  TEST_OK(ax_lowered_plan(lowered, &plan));
  TEST_OK(ax_plan_estimate(plan, machine, NULL, &about));
  TEST_OK(ax_simulate(lowered, machine, NULL, &simulation));
  TEST_NEAR(about.computing + about.exchanging, about.seconds, 1e-12);
  if (!(about.seconds > simulation.seconds / (1 + tolerance) && about.seconds < simulation.seconds * (1 + tolerance)))
    fail_msg("%s: about %.9g s, simulated %.9g s", body, about.seconds, simulation.seconds);
  ax_simulation_release(&simulation);
  ax_plan_destroy(plan);
  ax_cluster_release(machine);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return about.seconds;
}

static void compare(const char *body, const char *axes, double tolerance) { (void)compare_on(machine_text, body, axes, tolerance); }

/* A sum goes where it is soonest, in a switch that adds too. */
static void test_switches(void **state) {
  (void)state;
  static const char adds[] =
      "machine \"m\" device flops f32 1e12 memory 1e11 launch 1e-6\nnode devices 4 latency 1e-6 bandwidth 1e10 overhead 5e-7 reduces f32 1e10\n"
      "network latency 3e-6 bandwidth 5e9 overhead 1e-6\n";
  static const char body[] = "a:f32[16,256]{V:d} = psum[axes=(m)] u b:f32[16,256]{V:d,m} = pvary[axes=(m)] a in (b)";
  const double plain = compare_on(machine_text, body, "d=4, m=4", 0.1), added = compare_on(adds, body, "d=4, m=4", 0.1);
  const double bytes = 16 * 256 * 4, doubling = 2 * (2 * 1.5e-6 + bytes * 3 / 4 / 1e10),
               direct = 1e-6 + 3 * bytes / 1e10; /* an estimate has messages of one step begin at once */
  TEST_NEAR(plain - added, fmin(doubling, direct) - (1.5e-6 + bytes / 1e10), 1e-12);
}

/* Sums over two groups that go on at once, over the same links: these carry the bytes of both. */
static void test_links(void **state) {
  (void)state;
  static const char slow[] = "machine \"m\" device flops f32 1e12 memory 1e11 launch 1e-6\nswitch latency 1e-6 bandwidth 1e8 overhead 1e-6\n";
  static const char one[] = "a:f32[16,256]{V:d} = psum[axes=(m)] u e:f32[16,256]{V:d,m} = pvary[axes=(m)] a in (e)",
                    both[] = "a:f32[16,256]{V:d} = psum[axes=(m)] u c:f32[16,256]{V:m} = psum[axes=(d)] u e:f32[16,256]{V:d,m} = pvary[axes=(m)] a "
                             "f:f32[16,256]{V:d,m} = pvary[axes=(d)] c b:f32[16,256]{V:d,m} = add e f in (b)";
  const double alone = compare_on(slow, one, "d=4, m=4", 0.05), together = compare_on(slow, both, "d=4, m=4", 0.05);
  assert_true(together > 1.9 * alone);
}

static void test_estimates(void **state) {
  (void)state;
  static const char mesh[] = "d=4, m=4";
  compare("a:f32[16,256]{V:d,m} = tanh u in (a)", mesh, 1e-9);
  compare("a:f32[16,256]{V:d} = psum[axes=(m)] u b:f32[16,256]{V:d,m} = pvary[axes=(m)] a in (b)", mesh, 0.1);
  compare("a:f32[16,256]{V:d} = psum[axes=(m)] u c:f32[16,256]{V:m} = psum[axes=(d)] u e:f32[16,256]{V:d,m} = pvary[axes=(m)] a f:f32[16,256]{V:d,m} = pvary[axes=(d)] c b:f32[16,256]{V:d,m} = add e f in (b)", mesh, 0.2);
  /* A loop of many rounds, each with an exchange. */
  compare("a:f32[16,256]{V:d,m} = scan[length=500 reverse=false num_carry=1 num_consts=0 body={ axes d=4 m=4 ; lambda v:f32[16,256]{V:d,m}. let "
          "w:f32[16,256]{V:d,m} = ppermute[axes=(d) pairs=((0,1),(1,2),(2,3),(3,0))] v z:f32[16,256]{V:d,m} = tanh w in (z) }] u in (a)",
          mesh, 0.05);
  /* Loops in loops. */
  compare("a:f32[16,256]{V:d,m} = scan[length=7 reverse=false num_carry=1 num_consts=0 body={ axes d=4 m=4 ; lambda v:f32[16,256]{V:d,m}. let "
          "w:f32[16,256]{V:d,m} = scan[length=9 reverse=false num_carry=1 num_consts=0 body={ axes d=4 m=4 ; lambda p:f32[16,256]{V:d,m}. let "
          "q:f32[16,256]{V:d} = psum[axes=(m)] p r:f32[16,256]{V:d,m} = pvary[axes=(m)] q s:f32[16,256]{V:d,m} = tanh r in (s) }] v in (w) }] "
          "u in (a)",
          mesh, 0.05);
}

/* Softmax of rows: how many of them go through a cache at once follows from the caches. source: who said them, this machine or
   AXLE_MACHINE. */
static double on_caches(const char *caches, ax_fact_source source, const char *machine_name) {
  static const char text[] =
      "{ lambda x:f32[4096,4096]. let m:f32[4096] = reduce_max[axes=(1)] x n:f32[4096,4096] = broadcast_in_dim[shape=(4096,4096) "
      "broadcast_dimensions=(0)] m a:f32[4096,4096] = sub x n e:f32[4096,4096] = exp a s:f32[4096] = reduce_sum[axes=(1)] e "
      "t:f32[4096,4096] = broadcast_in_dim[shape=(4096,4096) broadcast_dimensions=(0)] s y:f32[4096,4096] = div e t in (y) }";
  ax_description own;
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *machine;
  ax_simulation simulation;
  TEST_OK(ax_machine_parse(caches, &own));
  for (int f = 0; f < AX_FACT_COUNT; f++) own.facts[f].source = source;
  ax_machine_pretend(&own);
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine_text, "m", &machine));
  snprintf(machine->name, sizeof machine->name, "%s", machine_name);
  TEST_OK(ax_simulate(lowered, machine, NULL, &simulation));
  const double seconds = simulation.seconds;
  ax_simulation_release(&simulation);
  ax_cluster_release(machine);
  ax_lowered_release(lowered);
  ax_program_release(program);
  ax_machine_pretend(NULL);
  return seconds;
}

/* A machine that is only described takes the same time, wherever that is found and whatever AXLE_MACHINE says. */
static void test_wherever(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where blocks of rows are small whatever the caches */
  static const char few[] = "l1 4 KiB\nl2 8 KiB\nl3 0 B\n", usual[] = "l1 32 KiB\nl2 1 MiB\nl3 32 MiB\nl3_cores 8\n";
  const double seconds = on_caches(usual, AX_SOURCE_ASKED, "far");
  TEST_NEAR(on_caches(few, AX_SOURCE_ASKED, "far"), seconds, 0);
  TEST_NEAR(on_caches(few, AX_SOURCE_GIVEN, "far"), seconds, 0);
  /* this machine's plan is that which it would run */
  assert_true(on_caches(few, AX_SOURCE_ASKED, "cpu") > on_caches(usual, AX_SOURCE_ASKED, "cpu"));
  assert_true(on_caches(few, AX_SOURCE_GIVEN, "cpu") > on_caches(usual, AX_SOURCE_GIVEN, "cpu"));
}

/* A described machine's matrix units add up any number of products, and round the sum: there is no pass over sums in f32, as this
   processor makes one where a row of a factor is longer than its blocks, or where it has no instructions for such products. */
static void test_sums_are_rounded_once(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:bf16[2048,16384] w:bf16[16384,2048]. let y:bf16[2048,2048] = dot_general[lhs_contract=(1) rhs_contract=(0) "
      "lhs_batch=() "
      "rhs_batch=()] x w in (y) }";
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *machine;
  ax_simulation simulation;
  double bytes = 0;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine_text, "m", &machine));
  TEST_OK(ax_simulate(lowered, machine, NULL, &simulation));
  for (uint32_t i = 0; i < simulation.op_count; i++) bytes += simulation.ops[i].bytes;
  TEST_NEAR(bytes, 2 * (2048 * 16384 + 16384 * 2048 + 2048 * 2048), 0);
  ax_simulation_release(&simulation);
  ax_cluster_release(machine);
  ax_lowered_release(lowered);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_estimates), cmocka_unit_test(test_switches),
                                     cmocka_unit_test(test_links), cmocka_unit_test(test_wherever),
                                     cmocka_unit_test(test_sums_are_rounded_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
