/* Which way exchanges between processes go, and what ways take. */
#include "processes/ways.h"

#include <math.h>

#include "base/base.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_rates assumed(void) {
  ax_description m;
  assert_int_equal(ax_machine_parse("", &m), AX_OK);
  return ax_rates_of(&m, 1);
}

/* What runs do: large sums in shares, all else by all contributions to all, the short ones with their envelopes. */
static void runs_gather_or_split(void **state) {
  (void)state;
  assert_false(ax_ways[AX_WAY_CHAIN].runs);
  for (uint64_t bytes = 4; bytes <= 1 << 30; bytes *= 4)
    for (uint32_t others = 1; others <= 1024; others *= 2)
      for (uint32_t members = 1; members <= 8; members *= 2) {
        ax_way_case of = {.sum = true, .in_order = true, .once = true, .bytes = bytes, .processes = others + 1, .members = members};
        assert_int_equal(ax_way_choose(&of, false), bytes >= 65536 ? AX_WAY_SHARES : AX_WAY_GATHER);
        of.in_order = false;
        assert_int_equal(ax_way_choose(&of, false), bytes >= 65536 ? AX_WAY_SHARES : AX_WAY_GATHER);
        of.once = false; /* some members are in several processes */
        assert_int_equal(ax_way_choose(&of, false), AX_WAY_GATHER);
        of = (ax_way_case){.once = true, .bytes = bytes, .processes = others + 1, .members = members};
        assert_int_equal(ax_way_choose(&of, false), AX_WAY_GATHER); /* nothing to add */
      }
  const ax_way_case below = {.sum = true, .once = true, .bytes = 65535, .processes = 2, .members = 1},
                    alone = {.sum = true, .once = true, .bytes = 65536, .processes = 1, .members = 8};
  assert_int_equal(ax_way_choose(&below, false), AX_WAY_GATHER);
  assert_int_equal(ax_way_choose(&alone, true), AX_WAY_GATHER);
}

static void large_sums_go_as_chains(void **state) {
  (void)state;
  const ax_way_case large = {.sum = true, .in_order = true, .once = true, .bytes = 1 << 24, .processes = 64, .members = 4};
  ax_way_case of = large;
  assert_int_equal(ax_way_choose(&of, true), AX_WAY_CHAIN);
  of.bytes = 4;
  assert_int_equal(ax_way_choose(&of, true), AX_WAY_GATHER);
  of = large, of.sum = false;
  assert_int_equal(ax_way_choose(&of, true), AX_WAY_GATHER); /* an all_gather has nothing to add */
  of = large, of.in_order = false;
  assert_int_equal(ax_way_choose(&of, true), AX_WAY_SHARES); /* a chain would add in another order */
  of = large, of.members = 1;
  assert_int_equal(ax_way_choose(&of, true), AX_WAY_SHARES); /* they carry no more than a chain, in two steps */
}

static void what_a_way_needs(void **state) {
  (void)state;
  const ax_way_case all = {.sum = true, .in_order = true, .once = true, .processes = 2}, none = {.processes = 2};
  const ax_way_case mixed = {.sum = true, .once = true, .processes = 2}, copies = {.sum = true, .in_order = true, .processes = 2};
  for (int w = 0; w < AX_WAY_COUNT; w++) {
    assert_true(ax_way_can((ax_way)w, &all));
    assert_true(ax_way_can((ax_way)w, &none) == (w == AX_WAY_GATHER));
    assert_true(ax_way_can((ax_way)w, &mixed) == (w != AX_WAY_CHAIN));
    assert_true(ax_way_can((ax_way)w, &copies) == (w != AX_WAY_SHARES));
  }
}

/* A message without bytes, a short one, a long one; and a chain of three processes with two blocks, by hand. */
static void seconds(void **state) {
  (void)state;
  const ax_rates r = assumed();
  TEST_NEAR(ax_link_seconds(&r.host, 0), 8e-7, 1e-12);
  TEST_NEAR(ax_link_seconds(&r.host, 2500), 8e-7 + 1e-6, 1e-12);
  TEST_NEAR(ax_link_seconds(&r.network, 1.2e6), 1e-5 + 1e-4, 1e-12);
  TEST_NEAR(ax_shares_seconds(&r.host, 2, 1, 1 << 20), 2 * (5e-6 + (1 << 19) / 1e10), 1e-12); /* a share and a total, halves */
  TEST_NEAR(ax_shares_seconds(&r.host, 4, 3, 1 << 20), 12 * (5e-6 + (1 << 18) / 1e10), 1e-12);
  TEST_NEAR(ax_shares_seconds(&r.host, 64, 1, 64 << 10), 126 * (8e-7 + 1024 / 2.5e9), 1e-12); /* so many are short again */
  TEST_NEAR(ax_chain_seconds(&r, 2, 0, 2 * 65536), 4 * (5e-6 + 65536 / 1e10) + 2 * 65536 / 1e10, 1e-12);
  TEST_NEAR(ax_chain_seconds(&r, 1, 0, 2 * 65536), 2 * (5e-6 + 65536 / 1e10) + 65536 / 1e10, 1e-12);
  TEST_NEAR(ax_chain_seconds(&r, 1, 1, 65536), 2 * (5e-6 + 65536 / 1e10 + 1e-5 + 65536 / 1.2e10), 1e-12);
  TEST_NEAR(ax_chain_seconds(&r, 1, 0, 100), 2 * (8e-7 + 100 / 2.5e9), 1e-12);
}

/* The rows are those of the assumed speeds, within a factor of two: they are powers of two. Those beside shares are for 64 processes,
   of which a chain takes longest; the others for the least. */
static void rows_are_what_the_assumed_speeds_give(void **state) {
  (void)state;
  const ax_rates r = assumed();
  for (uint32_t i = 0; i < ax_way_row_count; i++) {
    const ax_way_row *row = &ax_way_rows[i];
    if (row->way != AX_WAY_CHAIN) continue;
    const bool beside_shares = row->bytes >= AX_SHARES_LEAST;
    const uint64_t pays = ax_chain_pays(&r.host, beside_shares ? 64 : row->processes, row->members);
    if (row->bytes > 2 * pays || pays > 2 * row->bytes)
      fail_msg("row %u: a chain pays from %llu bytes on, not %llu", i, (unsigned long long)pays, (unsigned long long)row->bytes);
  }
  for (uint32_t processes = 2; processes <= 1024; processes *= 2) assert_true(ax_chain_pays(&r.host, processes, 1) == UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_gather_or_split), cmocka_unit_test(large_sums_go_as_chains),
                                     cmocka_unit_test(what_a_way_needs),
                                     cmocka_unit_test(seconds), cmocka_unit_test(rows_are_what_the_assumed_speeds_give)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
