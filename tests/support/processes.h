/* Programs run in several processes that are threads of this one: each has a runtime of its own, over a transport inside the program. */
#ifndef AX_TESTS_SUPPORT_PROCESSES_H
#define AX_TESTS_SUPPORT_PROCESSES_H

#include "axle/exec.h"
#include "processes/transport.h"
#include "support/tensor.h"

enum { TEST_MOST_PROCESSES = 8 };

typedef struct test_spread {
  uint32_t processes, workers;
  uint32_t listed;    /* 0: devices are in blocks */
  const uint32_t *of; /* by device: its process */
  bool donate;        /* all arguments */
  bool delays;        /* messages wait for a random time (delays.c) */
  ax_policy policy;
  uint64_t seed;
  uint32_t check_numerics;                      /* as in ax_compile_options */
  void (*around)(uint32_t process, bool begins); /* called by each process before its run, and after it; may be NULL */
} test_spread;

/* Compiles and runs the program in all of them, each with the whole arguments. out: new tensors, put together from the blocks of all;
   NULL: what is run is expected to fail. Blocks that several processes have must be equal. Returns the status, which must be the same
   in all; message, if it is not NULL, has room for 8192 bytes and gets the message, which must be the same too. AX_ABSENT: also for an
   unchecked program which says that a value is the same on all devices, when it is not. */
ax_status test_in_processes(ax_program *program, const test_spread *spread, ax_tensor *const *in, ax_tensor **out, char *message);

/* The same with runtimes that are kept from program to program; `donate`, `policy` and `seed` may differ between the runs of a team. */
typedef struct test_team test_team;
test_team *test_team_create(const test_spread *spread);
ax_status test_in_team(test_team *team, ax_program *program, const test_spread *how, ax_tensor *const *in, ax_tensor **out,
                       char *message);
void test_team_release(test_team *team); /* NULL is allowed */

/* A transport over another one, which it takes, where messages and payloads wait for random times, and reading takes as long. */
ax_transport *test_delay(ax_transport *inner, uint64_t seed);

/* Of test_every_way (run.h): runs a share of the programs in several processes. executables, wanted: without and with donation of all
   arguments; wanted: results in one process. Which programs, and how, follows from `turn`. */
void test_spread_over(ax_executable *const *executables, ax_tensor *const *in, ax_tensor **const *wanted, uint64_t seed,
                      uint64_t turn, const char *file, int line);
/* Prints how many runs there were in how many processes. */
void test_tell_spreads(void);

#endif
