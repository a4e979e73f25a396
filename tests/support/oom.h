/* Allocations failed in turn, and counted. */
#ifndef AX_TESTS_SUPPORT_OOM_H
#define AX_TESTS_SUPPORT_OOM_H

#include "axle/program.h"

/* Calls `work` with the first allocation failing, then the second, and so on until none fails. Each call must return
   AX_OUT_OF_MEMORY (AX_OK the last), and leave nothing allocated. Returns how many allocations there were. */
int test_each_allocation(ax_status (*work)(void *context), void *context);

/* The bytes that `transform` asks for on the program that `trace` makes: a cost that is the same on every machine. */
double test_bytes_asked(ax_program *(*trace)(const void *context), const void *context,
                        ax_status (*transform)(const ax_program *program, ax_program **out));

#endif
