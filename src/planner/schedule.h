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

typedef enum ax_stage_pass_kind { AX_STAGE_FORWARD, AX_STAGE_BACKWARD, AX_STAGE_BY_PARAMETERS } ax_stage_pass_kind;

typedef struct ax_stage_pass { /* what a stage does of a microbatch */
  ax_stage_pass_kind kind;
  int64_t stage, chunk, microbatch;
  double begin, seconds;
} ax_stage_pass;
typedef void ax_on_stage_pass(void *context, const ax_stage_pass *pass);

/* AX_INVALID_ARGUMENT: interleaving of microbatches that are no multiple of the stages. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_pipeline_run(const ax_pipeline *pipeline, ax_pipelined *out);
/* The same, and tells each pass, those of a stage in order. on_pass NULL: none. */
AX_MUST_USE ax_status ax_pipeline_visit(const ax_pipeline *pipeline, ax_on_stage_pass *on_pass, void *context, ax_pipelined *out);
/* The passes as SVG, a row for each stage; of long pipelines the beginning. (schedule_picture.c) `*out`: ax_string_free. */
AX_MUST_USE ax_status ax_pipeline_picture(const ax_pipeline *pipeline, char **out);

#endif
