/* What speeds come to: which level of memory holds the bytes, how many cores there are, and that plans see no measurement. */
#include "machine/rates.h"

#include <math.h>
#include <stdlib.h>

#include "machine/caches.h"
#include "support/cmocka.h"

static ax_description parsed(const char *text) {
  ax_description m;
  assert_int_equal(ax_machine_parse(text, &m), AX_OK);
  return m;
}

static const char machine[] =
    "l1 32 KiB\nl2 1 MiB\nl3 32 MiB\nl3_cores 8\nread 10 GB/s\nwrite 5 GB/s\nread_all 30 GB/s\nwrite_all 20 GB/s\n"
    "l2_read 100 GB/s\nl3_read 50 GB/s\nexchange 200 ns\n"
    "f32 100 Gflop/s\nf64 50 Gflop/s\nf16 200 Gflop/s\nbf16 300 Gflop/s\ns8 400 Gflop/s\nmixed 40 Gflop/s\nquotients 22 Gflop/s\n";

static void expect(double value, double wanted) {
  if (!(fabs(value / wanted - 1) < 1e-9)) fail_msg("%g, not %g", value, wanted);
}

static void by_level(void **state) {
  (void)state;
  const ax_description m = parsed(machine);
  const ax_rates r = ax_rates_of(&m, 1);
  expect(ax_rates_moving(&r, 5e5, 5e5), 1e6 / 100e9);
  expect(ax_rates_moving(&r, 1e6, 1e6), 2e6 / 50e9);
  expect(ax_rates_moving(&r, 1e8, 1e8), 1e8 / 10e9 + 1e8 / 5e9);
  expect(ax_rates_computing(&r, 1e9, AX_F32), 1e9 / 100e9);
  expect(ax_rates_computing(&r, 1e9, AX_U8), 1e9 / 400e9);
  expect(ax_rates_computing(&r, 1e9, AX_S64), 1e9 / 50e9);
  expect(ax_rates_computing(&r, 1e9, AX_BF16), 1e9 / 300e9);
  expect(r.exchange, 200e-9);
}

/* Caches and arithmetic come with cores; memory has a limit, and so have cores. */
static void by_threads(void **state) {
  (void)state;
  ax_description m = parsed(machine);
  m.facts[AX_FACT_USABLE_CORES].value = 16;
  const ax_rates two = ax_rates_of(&m, 2), all = ax_rates_of(&m, 16), more = ax_rates_of(&m, 64);
  expect(two.read, 20e9), expect(two.write, 10e9), expect(two.near, 200e9), expect(two.flops[AX_F32], 200e9);
  expect(all.read, 30e9), expect(all.write, 20e9), expect(all.shared, 16 * 50e9), expect(all.flops[AX_F32], 1.6e12);
  expect(two.near_bytes, 2 << 20), expect(all.near_bytes, 16 << 20);
  expect(two.shared_bytes, 24 << 20), expect(all.shared_bytes, 48 << 20); /* two last caches */
  expect(more.flops[AX_F32], all.flops[AX_F32]); /* two threads of a core share its units */
}

/* The machine that times were fitted on is the one whose facts are all assumed. */
static void beside_the_fitted_machine(void **state) {
  (void)state;
  const ax_description m = parsed(machine), assumed = parsed("");
  expect(ax_rates_of(&assumed, 1).computing, 1);
  expect(ax_rates_of(&assumed, 1).dividing, 1);
  expect(ax_rates_of(&assumed, 1).sharing, 1);
  expect(ax_rates_of(&m, 1).computing, 2);
  expect(ax_rates_of(&m, 1).dividing, 0.25);
  expect(ax_rates_of(&m, 1).sharing, 2);
}

/* Messages are never measured by themselves: a description has them, or they are assumed. */
static void messages(void **state) {
  (void)state;
  const ax_description m = parsed("message 2 ns\nmessage_bytes 1 GB/s\nhandshake 50 ns\ntransfer 4 GB/s\n"
                                  "network_message 20 ns\nnetwork_message_bytes 2 GB/s\nnetwork_handshake 70 ns\nnetwork_transfer 8 GB/s\n");
  const ax_rates r = ax_rates_of(&m, 1);
  expect(ax_link_seconds(&r.host, 16384), 2e-9 + 16384 / 1e9);
  expect(ax_link_seconds(&r.host, 16385), 50e-9 + 16385 / 4e9);
  expect(ax_link_seconds(&r.network, 8192), 20e-9 + 8192 / 2e9);
  expect(ax_link_seconds(&r.network, 8193), 70e-9 + 8193 / 8e9);
  ax_machine_pretend(NULL);
  unsetenv("AXLE_MACHINE");
  for (int f = AX_FACT_MESSAGE; f < AX_FACT_COUNT; f++) assert_int_equal(ax_machine_know((ax_fact)f).source, AX_SOURCE_ASSUMED);
}

static void for_plans_nothing_is_measured(void **state) {
  (void)state;
  unsetenv("AXLE_MACHINE"); /* tests run with one */
  ax_machine_pretend(NULL);
  for (int f = AX_FACT_READ; f < AX_FACT_COUNT; f++) assert_int_equal(ax_machine_expect((ax_fact)f).source, AX_SOURCE_ASSUMED);
  const double before = ax_rates_planned()->flops[AX_F32];
  (void)ax_machine_know(AX_FACT_F32); /* measures */
  assert_true(ax_rates_planned()->flops[AX_F32] == before && ax_machine_expect(AX_FACT_F32).value == before);

  const ax_description m = parsed(machine);
  ax_machine_pretend(&m); /* as if it were given */
  expect(ax_rates_planned()->flops[AX_F32], 100e9);
  expect(ax_rates_measured(1).flops[AX_F32], 100e9);
  const bool was = ax_caches_assume(true); /* a plan of a machine that is only described */
  expect(ax_rates_planned()->flops[AX_F32], ax_machine_record(AX_FACT_F32)->assumed);
  assert_true(ax_caches_assume(was));
  expect(ax_rates_planned()->flops[AX_F32], 100e9);
  ax_machine_pretend(NULL);
  assert_true(ax_rates_planned()->flops[AX_F32] == before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_level), cmocka_unit_test(by_threads),
                                     cmocka_unit_test(beside_the_fitted_machine), cmocka_unit_test(messages),
                                     cmocka_unit_test(for_plans_nothing_is_measured)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
