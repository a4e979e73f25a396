/* test_every_way over processes: a program with several devices is run in 2, 3, 4 or 8 processes too, in blocks of devices or in other
   assignments, and must give the bits that it gives in one. Runtimes go from program to program, since each costs a start. */
#include <stdio.h>
#include <stdlib.h>

#include "array/executable.h"
#include "support/cmocka.h"
#include "support/processes.h"
#include "support/random.h"
#include "support/run.h"

enum { programs_a_team = 24, one_in = 3, most_devices = 512 };

static test_team *team;
static test_spread spread;
static uint32_t of[most_devices];
static uint64_t team_number;
static char drawn[64]; /* how devices are spread */

static struct {
  uint64_t by_processes[TEST_MOST_PROCESSES + 1], refused;
} tally;

static void release_team(void) {
  test_team_release(team);
  team = NULL;
}

/* Devices in blocks; one axis after the other alternating between processes; at random, where a process may have none. */
static void draw_devices(test_random *random) {
  const uint32_t apart = 1u << test_random_below(random, 3);
  const int64_t kind = test_random_below(random, 3);
  for (uint32_t d = 0; d < most_devices; d++)
    of[d] = kind == 1 ? d / apart % spread.processes : (uint32_t)test_random_below(random, spread.processes);
  spread.listed = kind == 0 ? 0 : most_devices;
  spread.of = of;
  if (kind == 0) snprintf(drawn, sizeof drawn, "in blocks");
  else if (kind == 1) snprintf(drawn, sizeof drawn, "alternating by %u", apart);
  else snprintf(drawn, sizeof drawn, "at random, %u%u%u%u%u%u%u%u..", of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7]);
}

static void draw_team(uint64_t number) {
  static const uint32_t counts[] = {2, 2, 3, 4, 8};
  static bool registered;
  test_random random = {number};
  if (!registered) atexit(release_team);
  registered = true;
  release_team();
  team_number = number;
  spread = (test_spread){.processes = counts[test_random_below(&random, AX_COUNT(counts))],
                         .workers = 1 + (uint32_t)test_random_below(&random, 2),
                         .delays = test_random_below(&random, 2) == 0,
                         .seed = number};
  draw_devices(&random);
  team = test_team_create(&spread);
}

static void draw_manner(test_random *random) {
  static const ax_policy policies[] = {AX_POLICY_FIXED, AX_POLICY_SEEDED, AX_POLICY_PARALLEL};
  spread.donate = test_random_below(random, 2) == 0;
  spread.policy = policies[test_random_below(random, AX_COUNT(policies))];
  spread.seed = test_random_bits(random);
}

static void blame(uint64_t seed, const char *what, const char *file, int line) {
  static const char *const policies[] = {"parallel", "fixed", "seeded"};
  print_error("seed %llu: %s in %u processes, devices %s, %u workers, %s%s%s\n", (unsigned long long)seed, what, spread.processes, drawn,
              spread.workers, policies[spread.policy], spread.donate ? ", donated" : "", spread.delays ? ", with delays" : "");
  _fail(file, line);
}

void test_spread_over(ax_executable *const *executables, ax_tensor *const *in, ax_tensor **const *wanted, uint64_t seed,
                      uint64_t turn, const char *file, int line) {
  ax_program *program = executables[0]->program;
  const uint32_t count = ax_program_out_count(program);
  test_random random = {turn};
  char message[8192];
  if (executables[0]->compiled.devices < 2 || executables[0]->compiled.devices > most_devices) return;
  if (test_random_below(&random, one_in) != 0) return;
  if (team == NULL || team_number != turn / programs_a_team) draw_team(turn / programs_a_team);
  draw_manner(&random);
  ax_tensor **got = calloc(count + 1, sizeof got[0]);
  assert_non_null(got);
  const ax_status status = test_in_team(team, program, &spread, in, got, message);
  tally.by_processes[spread.processes]++;
  if (status == AX_ABSENT) tally.refused++;
  else if (status != AX_OK) blame(seed, message, file, line);
  for (uint32_t k = 0; status == AX_OK && k < count; k++)
    if (!test_same_tensors(got[k], wanted[spread.donate][k])) blame(seed, "other bits", file, line);
  test_release(got, count);
  free(got);
}

void test_tell_spreads(void) {
  uint64_t all = 0;
  for (uint32_t p = 2; p <= TEST_MOST_PROCESSES; p++) all += tally.by_processes[p];
  if (all == 0) return;
  print_message("runs in 2, 3, 4 and 8 processes: %llu %llu %llu %llu; of these refused %llu\n",
                (unsigned long long)tally.by_processes[2], (unsigned long long)tally.by_processes[3],
                (unsigned long long)tally.by_processes[4], (unsigned long long)tally.by_processes[8],
                (unsigned long long)tally.refused);
}
