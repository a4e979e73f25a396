/* How a measuring program talks with bench/run, so that ours and theirs can take turns: it sets its case up, warms it, prints
   "ready", and answers each line on its standard input with a line of numbers, until the input ends. */
#ifndef AXLE_BENCH_SERVE_H
#define AXLE_BENCH_SERVE_H

#include <stdint.h>

double bench_seconds(void); /* monotonic */

/* Does the work `count` times over. */
typedef void bench_work(void *context, int64_t count);

/* Answers with seconds per `parts`-th of one work: the mean over as many works as take 50 ms. */
void bench_serve(bench_work *work, void *context, double parts);
/* Says "ready" and waits to be asked; exits when nobody asks any more. For programs that answer in their own way. */
void bench_wait(void);
void bench_answer(double value);

#endif
