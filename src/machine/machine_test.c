/* The description of the machine: what is asked of this one, what texts give, and what the caches come out as on others. */
#include "machine/machine.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/caches.h"
#include "machine/features.h"
#include "machine/processor_set.h"
#include "support/cmocka.h"

static void this_machine(void **state) {
  (void)state;
  cpu_set_t allowed;
  for (int f = 0; f < AX_FACT_COUNT; f++) {
    const ax_known known = ax_machine_know((ax_fact)f), again = ax_machine_know((ax_fact)f);
    assert_true(isfinite(known.value) && known.value >= 0);
    assert_true(known.value == again.value && known.source == again.source); /* it is kept */
  }
  assert_int_equal(ax_machine_know(AX_FACT_VECTOR).value, ax_machine_register_bytes());
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    assert_int_equal(ax_machine_know(AX_FACT_USABLE).value, CPU_COUNT(&allowed));
  assert_true(ax_machine_threads() >= 1 && ax_machine_threads() <= ax_machine_know(AX_FACT_USABLE).value);
}

static ax_description parsed(const char *text) {
  ax_description m;
  assert_int_equal(ax_machine_parse(text, &m), AX_OK);
  return m;
}

static void threads_by_quota(void **state) {
  (void)state;
  static const struct {
    double usable, quota;
    uint32_t threads;
  } cases[] = {{8, 0, 8}, {8, 1.5, 2}, {8, 0.25, 1}, {8, 3, 3}, {2, 64, 2}, {1, 0.1, 1}, {2048, 1500.5, 1501}, {2048, 0, 2048}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_description m = parsed("");
    m.facts[AX_FACT_USABLE].value = cases[i].usable;
    m.facts[AX_FACT_QUOTA].value = cases[i].quota;
    ax_machine_pretend(&m);
    assert_int_equal(ax_machine_threads(), cases[i].threads);
  }
  ax_machine_pretend(NULL);
}

static void nothing_known(void **state) {
  (void)state;
  const ax_description m = ax_machine_assumed(AX_SOURCE_ASSUMED), given = parsed("");
  for (int f = 0; f < AX_FACT_COUNT; f++) {
    assert_true(m.facts[f].value == ax_machine_record((ax_fact)f)->assumed && m.facts[f].value == given.facts[f].value);
    assert_int_equal(m.facts[f].source, AX_SOURCE_ASSUMED);
    assert_int_equal(given.facts[f].source, f == AX_FACT_L3_HOLDS ? AX_SOURCE_ASSUMED : AX_SOURCE_GIVEN); /* it follows from l3 */
  }
}

/* --- Texts --- */

static void texts(void **state) {
  (void)state;
  const ax_description m = parsed("# a machine\n\n  l1 64 KiB # its first\nl2 1.5 MiB\nread 250 GB/s\nexchange 80 ns\nl3_cores 12\n");
  assert_true(m.facts[AX_FACT_L1].value == 65536 && m.facts[AX_FACT_L2].value == 1.5 * (1 << 20));
  assert_true(m.facts[AX_FACT_READ].value == 250e9 && fabs(m.facts[AX_FACT_EXCHANGE].value - 80e-9) < 1e-15);
  assert_true(m.facts[AX_FACT_L3_CORES].value == 12);
  assert_true(m.facts[AX_FACT_L3].value == 32 << 20); /* not given: assumed, whatever this machine has */
}

/* What is printed is read again as the same machine. */
static void a_text_comes_back(void **state) {
  (void)state;
  const ax_description m = parsed("l1 20 KiB\nl2 1280 KiB\nl2_cores 2\nl3 54 MiB\nl3_cores 36\nthreads 2\nread 7.5 GB/s\nf32 90 Gflop/s\n");
  ax_text text = {0};
  char *said;
  for (int f = 0; f < AX_FACT_COUNT; f++)
    if (ax_machine_record((ax_fact)f)->given) ax_machine_add_text(&text, (ax_fact)f, m.facts[f]);
  assert_int_equal(ax_text_finish(&text, &said), AX_OK);
  const ax_description again = parsed(said);
  for (int f = 0; f < AX_FACT_COUNT; f++) assert_true(fabs(again.facts[f].value / m.facts[f].value - 1) < 1e-9 || m.facts[f].value == 0);
  ax_free(said);
}

static void refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"l1 32 KiB\nl4 1 MiB", "line 2: a machine has no 'l4'"},
      {"usable 8", "'usable' cannot be given"},
      {"vector 64 B", "'vector' cannot be given"},
      {"l1", "line 1: expected 'l1', a number and its unit, as B"},
      {"l1 32", "expected 'l1', a number and its unit"},
      {"l1 32 KB", "expected 'l1', a number and its unit"},
      {"l1 32 KiB more", "expected 'l1', a number and its unit"},
      {"l1 x KiB", "expected 'l1', a number and its unit"},
      {"l3_cores 8 B", "expected 'l3_cores', a number"},
      {"l3_cores 0", "'l3_cores' is a whole number from 1 to 16384"},
      {"l3_cores 1.5", "'l3_cores' is a whole number"},
      {"l1 nan B", "'l1' is a whole number"},
      {"l1 inf B", "'l1' is a whole number"},
      {"l1 1 B", "'l1' is a whole number from 4096"},
      {"read -1 B/s", "'read' is a number from 1"},
      {"exchange 0 s", "'exchange' is a number from 1e-12"},
  };
  ax_description m;
  char longest[300];
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    assert_int_equal(ax_machine_parse(cases[i][0], &m), AX_INVALID_ARGUMENT);
    if (strstr(ax_message(), cases[i][1]) == NULL) fail_msg("'%s' says: %s", cases[i][0], ax_message());
  }
  memset(longest, ' ', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_int_equal(ax_machine_parse(longest, &m), AX_INVALID_ARGUMENT);
}

static void machines_by_name(void **state) {
  (void)state;
  const char *text;
  uint32_t count = 0;
  for (; ax_machine_named(count, &text) != NULL; count++) (void)parsed(text);
  assert_true(count >= 3 && text == NULL);
  assert_int_equal(setenv("AXLE_MACHINE", "zen-4", 1), 0);
  assert_int_equal(ax_machine_check(), AX_OK);
  ax_machine_pretend(NULL); /* forgets what is kept */
  assert_true(ax_machine_know(AX_FACT_L1).value == 32 << 10 && ax_machine_know(AX_FACT_L1).source == AX_SOURCE_GIVEN);
  assert_true(ax_machine_know(AX_FACT_USABLE).source != AX_SOURCE_GIVEN);
  assert_int_equal(setenv("AXLE_MACHINE", "/no/such/machine", 1), 0);
  ax_machine_pretend(NULL);
  assert_int_equal(ax_machine_check(), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(ax_message(), "AXLE_MACHINE '/no/such/machine': no machine is called so"));
  assert_int_equal(setenv("AXLE_MACHINE", "/", 1), 0); /* a folder opens, and cannot be read */
  assert_int_equal(ax_machine_check(), AX_INVALID_ARGUMENT);
  assert_int_equal(unsetenv("AXLE_MACHINE"), 0);
  assert_int_equal(ax_machine_check(), AX_OK);
  ax_machine_pretend(NULL);
}

static void put_machine(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  assert_int_equal(setenv("AXLE_MACHINE", path, 1), 0);
}

/* A description that changes while the process runs: facts asked for later are of the same machine as those before. */
static void one_machine_for_the_process(void **state) {
  (void)state;
  char path[] = "/tmp/axle_machine_text_XXXXXX";
  const int made = mkstemp(path);
  assert_true(made >= 0 && close(made) == 0);
  put_machine(path, "l1 20 KiB\nread 7 GB/s\n");
  ax_machine_pretend(NULL);
  assert_true(ax_machine_know(AX_FACT_L1).value == 20 << 10);
  put_machine(path, "l1 24 KiB\nread 9 GB/s\n");
  assert_true(ax_machine_know(AX_FACT_READ).value == 7e9);
  put_machine(path, "l1\n");
  assert_int_equal(ax_machine_check(), AX_OK); /* as it was read */
  assert_int_equal(unlink(path) | unsetenv("AXLE_MACHINE"), 0);
  ax_machine_pretend(NULL);
}

/* A description that cannot be read, found where a fact is needed: the message of a failure before stays. */
static void facts_leave_the_message(void **state) {
  (void)state;
  ax_description m;
  assert_int_equal(ax_machine_parse("l1 x", &m), AX_INVALID_ARGUMENT);
  const char *message = ax_message();
  assert_int_equal(setenv("AXLE_MACHINE", "/no/such/machine", 1), 0);
  ax_machine_pretend(NULL);
  assert_true(ax_machine_know(AX_FACT_L1).source != AX_SOURCE_GIVEN);
  assert_non_null(strstr(message, "line 1: expected 'l1'"));
  assert_int_equal(ax_machine_check(), AX_INVALID_ARGUMENT); /* which is asked, and says so */
  assert_non_null(strstr(ax_message(), "no machine is called so"));
  assert_int_equal(setenv("AXLE_MACHINE", "zen-4", 1), 0);
  assert_int_equal(ax_machine_check(), AX_OK);
  assert_true(ax_machine_know(AX_FACT_READ).source != AX_SOURCE_GIVEN); /* as the first cache */
  assert_int_equal(unsetenv("AXLE_MACHINE"), 0);
  ax_machine_pretend(NULL);
}

/* --- Caches --- */

static ax_caches caches_of(const char *name) {
  const char *text, *other;
  for (uint32_t i = 0; (other = ax_machine_named(i, &text)) != NULL; i++) {
    if (strcmp(other, name) != 0) continue;
    const ax_description m = parsed(text);
    return ax_caches_of(&m);
  }
  fail_msg("no machine %s", name);
  return (ax_caches){0};
}

static void expect_about(int64_t value, double wanted) {
  if ((double)value < wanted / 1.3 || (double)value > wanted * 1.3) fail_msg("%lld is not about %g", (long long)value, wanted);
}

/* On the machines on which thresholds were measured, the formulas give about what was measured. */
static void thresholds_where_they_were_measured(void **state) {
  (void)state;
  static const char virtual_machine[] = "l1 48 KiB\nl2 2 MiB\nl3 480 MiB\nl3_cores 2\n";
  const ax_description m = parsed(virtual_machine);
  const ax_caches all[] = {caches_of("zen-4"), caches_of("zen-5"), ax_caches_of(&m)};
  for (size_t i = 0; i < AX_COUNT(all); i++) {
    assert_int_equal(all[i].first, 32 << 10);
    expect_about(all[i].shared, 24 << 20);
    expect_about(all[i].far_rows, 12 << 20);
    expect_about(all[i].far_factor, 16 << 20);
    expect_about(all[i].streamed, 32 << 20);
    expect_about(all[i].streamed_turned, 10 << 20);
  }
  assert_int_equal(all[0].second, 1 << 20);
  assert_int_equal(all[2].second, 2 << 20);
  expect_about(all[0].kept, 5 << 20);
  expect_about(caches_of("sapphire-rapids").kept, 4 << 20);
}

/* Every size is above 0, and none near a core is above one that is further away. */
static void caches_of_any_machine(void **state) {
  (void)state;
  static const char *const machines[] = {"", "l1 4096 B\nl2 4096 B\nl2_cores 1\nl3 0 B", "l2 512 KiB\nl2_cores 4\nl3 0 B",
                                         "l1 1 MiB\nl2 1 MiB\nl3 4096 B\nl3_cores 128", "l2 3 MiB\nl2_cores 16384"};
  for (size_t i = 0; i < AX_COUNT(machines); i++) {
    const ax_description m = parsed(machines[i]);
    const ax_caches c = ax_caches_of(&m);
    assert_true(c.first > 0 && c.second > 0 && c.kept >= c.second && c.shared > 0 && c.last > 0);
    assert_true(c.far_rows > 0 && c.far_factor > 0 && c.streamed >= c.far_factor && c.streamed_turned > 0);
  }
}

static void sets_of_processors(void **state) {
  (void)state;
  ax_processor_set set, others;
  assert_true(ax_processor_set_parse("0-3,8-11,63-64,2000\n", &set));
  assert_int_equal(ax_processor_set_count(&set), 11);
  assert_true(ax_processor_set_has(&set, 64) && ax_processor_set_has(&set, 2000) && !ax_processor_set_has(&set, 4));
  assert_int_equal(ax_processor_set_next(&set, 4), 8);
  assert_int_equal(ax_processor_set_next(&set, 65), 2000);
  assert_int_equal(ax_processor_set_next(&set, 2001), AX_MOST_PROCESSORS);
  assert_true(ax_processor_set_parse("3-8", &others));
  ax_processor_set_keep(&set, &others);
  assert_int_equal(ax_processor_set_count(&set), 2);
  assert_false(ax_processor_set_has(&set, AX_MOST_PROCESSORS) || ax_processor_set_parse("16384", &set));
}

int main(void) {
  unsetenv("AXLE_MACHINE"); /* tests run with one */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(this_machine), cmocka_unit_test(threads_by_quota), cmocka_unit_test(nothing_known), cmocka_unit_test(texts), cmocka_unit_test(a_text_comes_back),
      cmocka_unit_test(refused), cmocka_unit_test(machines_by_name),
      cmocka_unit_test(one_machine_for_the_process), cmocka_unit_test(facts_leave_the_message), cmocka_unit_test(thresholds_where_they_were_measured),
      cmocka_unit_test(caches_of_any_machine), cmocka_unit_test(sets_of_processors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
