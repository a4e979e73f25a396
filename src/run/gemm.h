/* Products of matrices, by one thread or several. */
#ifndef AX_RUN_GEMM_H
#define AX_RUN_GEMM_H

#include "plan/panels.h"
#include "run/execution.h"

/* at[3]: indices of the first elements of a, b and c in product `index` of the batch. */
void ax_gemm_begin(const ax_gemm *g, int64_t index, int64_t *at);

/* Performs a whole GEMM instruction on this thread. pool: memory to work in; NULL: from the heap. The status has no message:
   ax_compute_failed sets it. */
AX_MUST_USE ax_status ax_gemm_compute(const ax_activation *activation, const ax_instr *instr, ax_pool *pool);
/* The same, in parts if other threads can help. */
AX_MUST_USE ax_status ax_gemm_run(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                                  const ax_instr *instr);

/* Products of several devices, which are added up where the first one is made. */
typedef struct ax_gemm_sum {
  const ax_activation *const *activations; /* in the order of additions */
  uint32_t count;
  bool first;             /* the first one makes the sum; else it is added to what is there */
  ax_kernel_code combine; /* adds elements: slots are the sum and what is added */
} ax_gemm_sum;
/* Performs a PUSH with a product for these. In parts, if other threads can help. The status has no message. */
AX_MUST_USE ax_status ax_gemm_add_up(ax_execution *run, ax_worker_slot *worker_slot, const ax_instr *instr, const ax_gemm_sum *sum);

#endif
