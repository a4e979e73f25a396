/* AMX instructions on a processor without AMX: each is an illegal instruction there, whose signal is caught, and which is computed
   in C. The object code that runs is the one that a processor with AMX would run. */
#ifndef AX_TEST_TILES_H
#define AX_TEST_TILES_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to catch these instructions. False: this machine cannot, since it is no x86-64 or its system is not Linux. A test calls it
   by itself, since cmocka catches signals anew for each test. */
bool test_tiles_catch(void);
/* How many products of tiles were computed in C, on all threads. */
uint64_t test_tiles_products(void);
/* Says whether this thread has configured tiles and not given them back. */
bool test_tiles_taken(void);

#endif
