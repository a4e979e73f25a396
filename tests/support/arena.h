/* An arena for each test of a program: cmocka_unit_test_setup_teardown(test, test_arena_start, test_arena_end). */
#ifndef AX_TESTS_SUPPORT_ARENA_H
#define AX_TESTS_SUPPORT_ARENA_H

#include "base/base.h"

extern ax_arena test_arena;
int test_arena_start(void **state);
int test_arena_end(void **state);

#endif
