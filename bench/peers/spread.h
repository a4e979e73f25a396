/* A program on a mesh x=P, one device in each of P processes, that runs a step many times over in one run; and what bench/processes.py
   is told of it. The process has started MPI itself. */
#ifndef AXLE_BENCH_SPREAD_H
#define AXLE_BENCH_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "axle/axle.h"

enum { spread_most = 2 }; /* arrays that a step turns into as many of the same shapes */

typedef struct spread {
  ax_executable *executable;
  uint32_t count;
  ax_array *in[spread_most];
} spread;

/* step: (blocks..) -> (blocks..), of a device. `block` is the type of each, `data` what this process's device has of each. */
spread spread_create(ax_runtime *runtime, ax_fn step, int64_t steps, const ax_type *block, const float *const *data);
/* Seconds of a step, in one run of all. `results` is NULL, or receives the blocks of this process. */
double spread_run(const spread *s, int64_t steps, float *const *results);
void spread_release(spread *s);

/* Seconds since some moment, on this machine. */
double spread_seconds(void);
/* Collective, over MPI_COMM_WORLD: whether another round is to be run after so many since `start`. `most` are enough, and 3 where they
   take long, as they do where processes wait for processors. */
bool spread_goes_on(int rounds, int most, double start);
/* `steps`, or fewer if there are more processes than processors. */
int64_t spread_steps(int64_t steps);
/* Collective, over MPI_COMM_WORLD: process 0 prints the line "CASE TAB SIDE TAB SECONDS TAB DIGEST", with the largest of the processes'
   seconds. The digest is of what the arrays hold in all processes, 0 if there are none. */
void spread_report(const char *what, const char *side, double seconds, uint32_t count, float *const *arrays, int64_t elems);

#endif
