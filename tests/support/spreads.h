/* Ways to spread eight devices over processes, and programs that give the same bits in all of them. */
#ifndef AX_TESTS_SUPPORT_SPREADS_H
#define AX_TESTS_SUPPORT_SPREADS_H

#include "support/processes.h"

enum { TEST_SPREAD_DEVICES = 8 };

/* By device: its process, of 2, 3, 2, 2 and 4. */
extern const uint32_t test_alternating[TEST_SPREAD_DEVICES], test_scattered[TEST_SPREAD_DEVICES],
    test_most_in_one[TEST_SPREAD_DEVICES], test_by_pairs[TEST_SPREAD_DEVICES], test_with_empty_ones[TEST_SPREAD_DEVICES];

/* Of all kinds: blocks and lists, one thread and several, policies, donation, delays. The first has two processes. */
enum { TEST_ALL_SPREADS = 11 };
extern const test_spread test_all_spreads[TEST_ALL_SPREADS];

/* Runs the program in one process and in each of the spreads. All must give the same bits. */
void test_compare_spreads(const char *name, ax_program *program, ax_tensor *const *in, const test_spread *spreads, size_t count);

#endif
