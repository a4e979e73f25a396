/* Pipelines in time: stages that do forward and backward passes of microbatches, in the order of a schedule. */
#ifndef AX_PLANNER_SCHEDULE_H
#define AX_PLANNER_SCHEDULE_H

#include "axle/planner.h"

typedef struct ax_stage_times { /* seconds of one microbatch on a stage, all its chunks together */
  double forward;
  double backward; /* by its operands and by its parameters */
  double by_parameters; /* the part of `backward` that nothing waits for */
} ax_stage_times;

typedef struct ax_pipeline {
  ax_pipeline_schedule schedule;
  int64_t stages, microbatches, chunks;
  ax_stage_times first, middle, last; /* of the stages between them `middle` */
  double message; /* seconds from one stage to the next */
} ax_pipeline;

typedef struct ax_pipelined {
  double seconds;
  double busy;      /* of the stage that ends last */
  double in_flight; /* microbatches whose activations a stage holds at once, at most: as many stages' worth of layers, so that with
                       chunks it may be a fraction */
} ax_pipelined;

/* AX_INVALID_ARGUMENT: interleaving of microbatches that are no multiple of the stages. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_pipeline_run(const ax_pipeline *pipeline, ax_pipelined *out);

#endif
