/* The planner: chooses how a program, or the training of a model, is spread over the devices of a machine that is described
   (axle/simulate.h), by simulated time and within the memory of a device. docs/planner.md has the search, its limits and examples. */
#ifndef AXLE_PLANNER_H
#define AXLE_PLANNER_H

#include "axle/optimizer.h"
#include "axle/simulate.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* What a layer keeps for its gradient (axle/transform.h, ax_checkpoint_options). */
typedef enum ax_checkpoint_policy {
  AX_SAVE_EVERYTHING, /* whatever its gradient reads */
  AX_SAVE_DOTS,       /* results of products without batch dimensions; the rest is computed again */
  AX_SAVE_NOTHING,    /* the layer's operands; all is computed again */
  AX_CHECKPOINT_POLICY_COUNT
} ax_checkpoint_policy;
const char *ax_checkpoint_policy_name(ax_checkpoint_policy policy); /* "everything", "dots", "nothing"; static */

/* How the stages of a pipeline take turns with forward and backward passes of microbatches. */
typedef enum ax_pipeline_schedule {
  AX_PIPELINE_NONE,        /* there is one stage */
  AX_PIPELINE_GPIPE,       /* all forward passes, then all backward passes (Huang et al., arXiv:1811.06965) */
  AX_PIPELINE_1F1B,        /* one forward, one backward, as early as can be (Narayanan et al., arXiv:1806.03377 and 2104.04473) */
  AX_PIPELINE_INTERLEAVED, /* the same with several parts of the layers on each stage (arXiv:2104.04473) */
  AX_PIPELINE_ZERO_BUBBLE, /* 1F1B whose gradients by parameters come later, where a stage would wait (Qi et al., arXiv:2401.10241) */
  AX_PIPELINE_SCHEDULE_COUNT
} ax_pipeline_schedule;
const char *ax_pipeline_schedule_name(ax_pipeline_schedule schedule); /* "none", "gpipe", "1f1b", "interleaved", "zero-bubble"; static */

typedef struct ax_planner_options {
  int64_t devices; /* that the machine has; 1 to 2^20 */
  /* The program is a model's loss: parameters, which are floats, and a batch of one sample -> (f32[] loss, ..). It is planned for the
     step that trains it: the gradient of the mean loss of `samples` samples, and the optimizer's update of the parameters. Otherwise
     the program is planned for as it is. */
  bool train;
  int64_t samples;  /* of a step; 0: 1 */
  ax_args batch;    /* the inputs that are a sample's; {0}: those behind the last input that is a float of more than one element, or
                       else the last input */
  const ax_optimizer *optimizer; /* NULL: ax_adam */
  double memory;    /* bytes of a device; 0: as much as the machine's description says, or any */
  double seconds;   /* the search ends after about so many; 0: 60 */
  uint32_t keep;    /* how many strategies are given; 0: 5 */
  /* NULL: any. Otherwise strategies over this mesh alone are looked for, whose axes are called by what they do, as in
     ax_strategy.mesh. It is timed whether it fits or not. Borrowed. */
  const ax_mesh *mesh;
  const char *const *input_names; /* of all inputs of the program, for errors; NULL: these have inputs' numbers. Borrowed. */
} ax_planner_options;

/* Bytes of a device. */
typedef struct ax_planned_memory {
  double parameters, state; /* of what is not trained: arguments, and 0 */
  double batch;
  double temporaries;       /* activations, gradients and whatever else a run needs while it lasts, and results in memory of their own */
  double total;
} ax_planned_memory;

/* One way to spread the program. */
typedef struct ax_strategy {
  ax_mesh mesh;     /* of all stages of a pipeline, whose axis comes first: "pipe=4,data=64,model=8"; of the first devices, if of fewer */
  char *specs;      /* how inputs and results of the planned program lie, as ax_program_with_shardings takes it, over the mesh of a
                       stage, which lacks `pipe` */
  char *in_specs;   /* how the inputs of the program itself lie over `mesh`, "; " between, those of a sample as batches, whose first dimension is
                       that of samples: for ax_treedef_with_specs or jax.sharding. One may end in a priority, " p1", for ax_program_with_shardings:
                       arrays lie as without */
  ax_checkpoint_policy saved;
  int64_t microbatches;
  int64_t stages, chunks; /* of the loop over layers: stages, and parts of it on each; 1 and 1 */
  ax_pipeline_schedule schedule;
  double seconds;   /* of a run, simulated */
  double computing, exchanging, waiting; /* shares of it: a device computes; it waits for collectives; for another stage */
  double utilization; /* operations of the model, without what is computed again, over those that all devices could do in the time */
  ax_planned_memory memory;
  bool fits;        /* within the memory of a device */
  char kind[64]; /* how it is called: "data parallel", "tensor parallel, fully sharded", .. */
  char *picture; /* of a pipeline: which stage does what when, as SVG; NULL: it has one stage */
} ax_strategy;

/* The best strategies, of different meshes, policies or schedules; the best first: those that fit before those that do not, then by
   time. */
typedef struct ax_strategies {
  uint32_t count;
  ax_strategy *list;
  double devices, capacity; /* capacity: bytes of a device; 0: not known */
  double tried;    /* programs laid out and simulated */
  double seconds;  /* that the search took */
  bool complete;   /* nothing was left out because its time was over */
} ax_strategies;

/* Plans. `*out` is to be released, and empty on failure. Any thread; while it lasts it has others, up to seven, as far as there
   are processors. What it finds does not depend on how many, as long as its time suffices. The program is of whole arrays:
   without axes and shard_maps. options.devices must be set. AX_INVALID_ARGUMENT: a program with axes; an option that does not fit
   the program; a machine with fewer devices; no layout at all is possible. AX_ABSENT, AX_OUT_OF_MEMORY: as ax_program_partition
   and ax_simulate. */
AX_MUST_USE ax_status ax_planner_search(const ax_program *program, const ax_cluster *machine, const ax_planner_options *options,
                                        ax_strategies *out);
void ax_strategies_release(ax_strategies *strategies); /* leaves it empty */
/* Times one strategy that the caller describes, to compare it with those that are found. given: mesh, saved, microbatches (0: 1),
   and either specs, or NULL: then axes are called by what they do, as in ax_strategy.mesh. data cuts the samples and the
   optimizer's state, and shard parameters too; the others cut as ax_planner_search finds it: model parameters, expert samples and
   experts, sequence the first dimension of each sample. With stages > 1 also schedule and chunks (0: 1), specs NULL, and the mesh
   of the devices of one stage: data, behind it expert, sequence and model, each if any. `out` gets the rest, and is released by
   ax_strategy_release. Statuses as above; AX_PARSE_ERROR: specs. AX_INVALID_ARGUMENT also: stages, chunks or microbatches that do
   not divide the layers or the samples; a loss that has no loop over layers, or nothing that an axis would cut. */
AX_MUST_USE ax_status ax_planner_time(const ax_program *program, const ax_cluster *machine, const ax_planner_options *options,
                                      const ax_strategy *given, ax_strategy *out);
void ax_strategy_release(ax_strategy *strategy);
/* The program of a strategy, with its layouts (axle/transform.h, ax_program_with_shardings): to be looked at, compiled or simulated.
   `*out` is owned by the caller. AX_ABSENT: a strategy of several stages, which is several programs
   (ax_planner_stage). */
AX_MUST_USE ax_status ax_planner_program(const ax_program *program, const ax_planner_options *options, const ax_strategy *strategy,
                                         ax_program **out);

/* A part of the layers of a strategy of several stages, as programs for whoever runs them in the order of its schedule. Part k runs
   on stage k modulo their number. `data` groups of devices do the same, each on its own samples; the strategy's other axes are
   within a group.

     forward   (parameters.., samples.., carries..) -> (carries.., kept..)
     backward  (parameters.., samples.., carries.., kept.., cotangents.., sums..) -> (sums.., cotangents..)
     update    (parameters.., state.., gradients..) -> (parameters.., state..)

   forward and backward are of one microbatch on the devices of one group, and lie over its axes: carries go to the next part, each
   device's block to the device at the same place, since results lie as the next part takes them; what is kept goes to the same
   part's backward, which can be given it as it lies (ax_compile_options.like). The first part takes no carries and gives no
   cotangents; the last gives the losses of the samples for carries, and takes no cotangents. Sums start at 0, and after all
   microbatches are the gradients of the mean loss over a step's samples, of one group. update is once a step and lies over all axes
   of a stage; gradients have one more dimension in front, of the groups. A zero-bubble schedule's later half of backward is not cut
   off. */
typedef struct ax_stage_programs {
  ax_program *forward, *backward, *update;
  uint32_t param_count, sample_count, carry_count, kept_count, cotangent_count, state_count;
  uint32_t *params; /* numbers of the inputs of the planned program that are the part's parameters; a parameter that the loop slices has
                       the layers of the part */
  bool *sliced;     /* by those: whether it has */
  int64_t first_layer, layers;
} ax_stage_programs;
/* strategy: as ax_planner_search gives it, or ax_planner_time. `*out` is released by ax_stage_programs_release, and empty on failure.
   AX_INVALID_ARGUMENT: a strategy of one stage, or whose sizes do not fit the program; no such part (stages times chunks). */
AX_MUST_USE ax_status ax_planner_stage(const ax_program *program, const ax_planner_options *options, const ax_strategy *strategy,
                                       int64_t part, ax_stage_programs *out);
void ax_stage_programs_release(ax_stage_programs *programs);

/* A table of them, and how each input of the program lies in the first, as Axle and as JAX say it. names: of the program's inputs;
   NULL: they are numbered.
   `*out`: ax_string_free. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_strategies_print(const ax_strategies *strategies, uint32_t name_count, const char *const *names, char **out);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_planner_search(...) AX_LINED_STATUS(planner_search, __VA_ARGS__)
#define ax_planner_time(...) AX_LINED_STATUS(planner_time, __VA_ARGS__)
#define ax_planner_program(...) AX_LINED_STATUS(planner_program, __VA_ARGS__)
#define ax_planner_stage(...) AX_LINED_STATUS(planner_stage, __VA_ARGS__)
#define ax_strategies_print(...) AX_LINED_STATUS(strategies_print, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
