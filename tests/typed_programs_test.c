/* The types as a proof: programs made at random that the type checker accepts (support/typed.h). No device waits for one that never
   comes; what is typed invariant or reduced along an axis is the same bits on all devices along it; what the parts of an unreduced
   value come to is what the same operations make of the whole. Every policy gives that, with any number of workers. */
#include <stdlib.h>

#include "ir/program.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/typed.h"

static struct {
  uint64_t tried, accepted;
} tally;

/* --- Compiled --- */

static void check_compiled(ax_program *program, uint64_t seed) {
  ax_program *on_mesh;
  test_random data = {seed};
  ax_tensor *in[TYPED_INPUTS];
  TEST_OK(test_on_mesh(program, &on_mesh));
  for (uint32_t i = 0; i < on_mesh->in_count; i++) {
    bool scalar = program->types[i].rank == 0, integer = on_mesh->types[i].dtype == AX_S32;
    in[i] = test_random_tensor(&data, on_mesh->types[i], scalar ? 0 : integer ? -10 : -1, scalar ? 4 : integer ? 10 : 1);
  }
  test_every_way(on_mesh, in, program->types[0].dtype == AX_S32 ? 0 : 2e-3, seed, __FILE__, __LINE__);
  test_release(in, on_mesh->in_count);
  ax_program_release(on_mesh);
}

/* One of six: to run a program every way takes as long as twenty reference evaluations. */
static bool is_compiled(uint64_t seed) {
  test_random random = {seed};
  return test_random_below(&random, 6) == 0;
}

static void one_program(uint64_t seed, bool show) {
  typed_making made = typed_making_of(seed);
  made.maker.messages = true;
  ax_program *everything = NULL, *seen = NULL;
  ax_status status = typed_trace(&made, true, &everything);
  tally.tried++;
  tally.accepted += status == AX_OK;
  if (status != AX_OK && (show || getenv("AXLE_TYPED_TELL") != NULL))
    print_message("seed %llu: %s\n", (unsigned long long)seed, ax_message());
  if (status != AX_OK) {
    assert_true(status == AX_INVALID_ARGUMENT || status == AX_ABSENT);
    return;
  }
  if (show) test_show_program(everything);
  typed_check(everything, seed, true, false);
  ax_program_release(everything);
  if (!is_compiled(seed)) return;
  TEST_OK(typed_trace(&made, false, &seen));
  check_compiled(seen, seed);
  ax_program_release(seen);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(32, one_program);
  if (tally.tried >= 20 && tally.accepted * 10 < tally.tried * 9)
    fail_msg("of %llu programs only %llu were accepted", (unsigned long long)tally.tried, (unsigned long long)tally.accepted);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
