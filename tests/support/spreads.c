#include "support/spreads.h"

#include "support/cmocka.h"

const uint32_t test_alternating[] = {0, 1, 0, 1, 0, 1, 0, 1}, test_scattered[] = {2, 0, 1, 1, 0, 2, 0, 1},
               test_most_in_one[] = {1, 1, 0, 1, 1, 1, 1, 1}, test_by_pairs[] = {0, 0, 1, 1, 0, 0, 1, 1},
               test_with_empty_ones[] = {3, 3, 1, 1, 3, 1, 3, 3};

const test_spread test_all_spreads[] = {
    {.processes = 2, .workers = 1},
    {.processes = 2, .workers = 2},
    {.processes = 3, .workers = 1},
    {.processes = 4, .workers = 2, .donate = true},
    {.processes = 8, .workers = 1},
    {.processes = 2, .workers = 1, .listed = 8, .of = test_alternating},
    {.processes = 3, .workers = 2, .listed = 8, .of = test_scattered},
    {.processes = 2, .workers = 1, .listed = 8, .of = test_most_in_one, .policy = AX_POLICY_SEEDED, .seed = 3},
    {.processes = 2, .workers = 2, .listed = 8, .of = test_by_pairs, .policy = AX_POLICY_SEEDED, .seed = 9},
    {.processes = 3, .workers = 1, .listed = 8, .of = test_scattered, .delays = true, .seed = 5},
    {.processes = 4, .workers = 2, .delays = true, .seed = 6},
};

void test_compare_spreads(const char *name, ax_program *program, ax_tensor *const *in, const test_spread *spreads, size_t count) {
  enum { most_results = 4 };
  const uint32_t results = ax_program_out_count(program);
  ax_tensor *wanted[most_results], *got[most_results];
  assert_true(results <= most_results);
  TEST_OK(test_in_processes(program, &(test_spread){.processes = 1, .workers = 1}, in, wanted, NULL));
  for (size_t s = 0; s < count; s++) {
    if (test_in_processes(program, &spreads[s], in, got, NULL) != AX_OK) fail_msg("%s: spread %zu", name, s);
    for (uint32_t k = 0; k < results; k++)
      if (!test_same_tensors(wanted[k], got[k])) fail_msg("%s: spread %zu: result %u differs", name, s, k);
    test_release(got, results);
  }
  test_release(wanted, results);
}
