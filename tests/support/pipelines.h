/* A kernel with a pipeline that has an operand and a result of each kind, for tests of what it computes and of what is proved of
   it.

     x[steps, 6]   a block of a row a step        y[steps, 6]   x + w + table[step]: likewise
     w[6]          invariant                      rows[r, 6]    the sum of x over a row of the grid: its block stays while the row
                                                                does
     table[steps]  pinned                         all[6]        the sum of x: invariant
                                                  carried[wgs]  pinned: the sums of each compute warpgroup's part, carried through
                                                  the steps */
#ifndef AX_TESTS_SUPPORT_PIPELINES_H
#define AX_TESTS_SUPPORT_PIPELINES_H

#include "support/tensor.h"

typedef struct test_pipeline {
  uint32_t rank;
  int64_t grid[2], stages, delay;
  int64_t wgs, memory;   /* compute warpgroups, each with its part of the blocks: 1, 2 or 3; 0: ax_emit_pipeline. The memory thread;
                            -1: the last */
  bool manual, carries;  /* of those: the body arrives at the barriers `consumed` itself; there is `carried` */
  int64_t late;          /* the delay of operand x alone: -1 + own; 0: as all */
} test_pipeline;

enum { TEST_PIPELINE_STEPS = 32, TEST_PIPELINE_BLOCK = 6, TEST_PIPELINE_RESULTS = 4 };
int64_t test_pipeline_steps(const test_pipeline *t);
ax_status test_pipeline_trace(const test_pipeline *t, ax_program **out);
ax_program *test_pipeline_program(const test_pipeline *t); /* the caller's; the test fails where it cannot be traced */
uint32_t test_pipeline_results(const test_pipeline *t);
/* Its three operands; the caller's. */
void test_pipeline_operands(const test_pipeline *t, ax_tensor **in);
/* Whether the results are as the plain computation says; the test fails. */
void test_pipeline_compare(const test_pipeline *t, ax_tensor *const *made);
/* "grid 4 x 2, 3 stages, delay 1, 2 compute warpgroups": for messages. In text, which is returned. */
const char *test_pipeline_text(const test_pipeline *t, char *text, size_t bytes);

#endif
