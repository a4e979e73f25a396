/* The search: candidates are made, tried, and the best are kept. */
#ifndef AX_PLANNER_SEARCH_H
#define AX_PLANNER_SEARCH_H

#include "planner/arrangement.h"
#include "planner/schedule.h"
#include "planner/trial.h"

typedef struct ax_candidate {
  ax_mesh mesh; /* of a stage, with at most AX_PLANNER_AXES axes */
  ax_arrangement layout;
  ax_checkpoint_policy saved;
  int64_t microbatches;
  int64_t stages, chunks;
  ax_pipeline_schedule schedule;
  const char *kind; /* static; NULL: as its layout says */
  bool exact;       /* its time is exact, and no estimate */
  ax_trial trial;
  double waiting; /* seconds for other stages */
  ax_pipeline pipeline; /* of several stages */
  ax_planned_memory memory;
} ax_candidate;

typedef struct ax_ahead ax_ahead; /* ahead.h */

typedef struct ax_planner {
  ax_model model;
  ax_families families;
  const ax_cluster *machine;
  ax_planner_options options;
  ax_runtime *runtime;
  ax_kept_times *times; /* of collectives; shared with views */
  double capacity;  /* INFINITY: there is no limit */
  int64_t devices;   /* that candidates use now: all, or fewer (counts.c) */
  double began, end; /* ax_seconds: of the search on so many devices, and of all */
  bool cut_short;    /* something was left out, since there was no time for it */
  char why[256];     /* the first candidate that could not be laid out: the error; "": all could */
  ax_arrangement tensor; /* how a second axis cuts parameters alone; `family` NULL: that does not help */
  ax_arrangement expert, sequence; /* and if it cuts samples and experts, or the positions of each sample */
  double ideal;     /* seconds of the products of a step on all devices, were nothing else to be done */
  double tried;
  double work;      /* seconds of computing without launches, all devices of a candidate together: the least met */
  ax_ahead *ahead;  /* what is known, and threads that go ahead; shared with views */
  bool is_view;     /* a copy that a job works on */
  uint32_t generation; /* of a view's job */
  bool is_met;      /* of a view: the search itself is at what its job does */
  ax_candidate *found; /* on so many devices: the best of each mesh and schedule */
  uint32_t found_count, found_capacity;
  ax_candidate *settled; /* the best on each number of devices, timed exactly */
  uint32_t settled_count, settled_capacity;
} ax_planner;

AX_MUST_USE ax_status ax_planner_begin(const ax_program *program, const ax_cluster *machine, const ax_planner_options *options,
                                       ax_planner *out);
void ax_planner_end(ax_planner *planner);
void ax_planner_forget_ways(ax_planner *planner); /* what was found of second axes, on so many devices */
/* Says whether that share of its time is over, or a trial would go on behind its end, and notes that something is left out for
   it. */
bool ax_planner_is_late(ax_planner *planner, double share);

/* A candidate with a layout of its own. */
AX_MUST_USE ax_status ax_candidate_copy(const ax_planner *planner, const ax_candidate *from, ax_candidate *out);
void ax_candidate_deinit(ax_candidate *candidate);
/* Tries it, unless that was done before. What does not fit gets its memory, and infinite seconds. *possible: the mesh divides what
   is cut, and the partitioner can do it. exact: as ax_trial_options has it. */
AX_MUST_USE ax_status ax_candidate_try(ax_planner *planner, ax_candidate *candidate, bool exact, bool *possible);
/* Improves it step by step, until that share of the time is over; improve.c. first_axis: axes before it, and with one what is not
   of parameters, stay. at_last: lengths of axes change too, which leads most candidates to the same. */
AX_MUST_USE ax_status ax_candidate_improve(ax_planner *planner, ax_candidate *candidate, uint32_t first_axis, bool at_last, double share);
/* Swaps an axis with the next, and what they cut. */
void ax_candidate_swap_axes(const ax_planner *planner, ax_candidate *candidate, uint32_t axis);
/* Leaves out axes of one device, makes one of two that cut the same, and calls each by what it does. */
void ax_candidate_tidy(const ax_planner *planner, ax_candidate *candidate);
/* Layouts can have less work than the least that was met, since fewer devices repeat less; not less than this part of it. */
#define AX_LEAST_WORK 0.9
/* Says whether it is better: it fits, or takes less memory where neither does; or it takes less time. */
bool ax_candidate_is_better(const ax_planner *planner, const ax_candidate *a, const ax_candidate *b);
/* Says whether something is kept that takes less than `times` part of so many seconds, and fits: looking further there is not worth
   it. */
bool ax_planner_is_hopeless(const ax_planner *planner, double seconds, double times);
/* Says whether they have the same schedule, and meshes of the same sizes. */
bool ax_candidate_is_alike(const ax_candidate *a, const ax_candidate *b);
/* Says whether they are alike, and their axes have the same names, as what they do. */
bool ax_candidate_is_named_alike(const ax_candidate *a, const ax_candidate *b);
/* Keeps a copy if nothing better is kept that is named alike and shares what is held in the same way: an estimate cannot always
   tell apart how that is best. */
AX_MUST_USE ax_status ax_planner_keep(ax_planner *planner, const ax_candidate *candidate);

/* The devices of its mesh, of all stages. */
int64_t ax_candidate_devices(const ax_candidate *candidate);
/* The best first; there are few. */
void ax_candidates_sort(const ax_planner *planner, ax_candidate *list, uint32_t count);

/* Searches on all devices, and on fewer as long as that may be faster: p->settled, the best first; so many of each number of
   devices at most; counts.c. */
AX_MUST_USE ax_status ax_planner_search_counts(ax_planner *planner, uint32_t most);
/* Says whether the devices that are used now are neither a part of all that are there nor a power of two; counts.c. */
bool ax_planner_is_between(const ax_planner *planner);
/* Seconds of the best that is settled, on more devices; INFINITY: nothing that fits. */
double ax_planner_known_seconds(const ax_planner *planner);
/* Searches on the mesh that the options give alone: p->settled as above; given.c. */
AX_MUST_USE ax_status ax_planner_search_given(ax_planner *planner);
/* The layout over a mesh of one stage whose axes are named by what they do: each cuts as its way of a second axis does. *shards:
   a bit for each axis that cuts all parameters too, which is not in the layout yet. AX_INVALID_ARGUMENT: a name that says nothing
   of the kind, or there is nothing that the axis would cut; given.c. */
AX_MUST_USE ax_status ax_planner_lay_named(ax_planner *planner, const ax_mesh *mesh, ax_arrangement *out, uint32_t *shards);
/* Moves the best `most` of what is found to what is settled, timed as ax_simulate does; counts.c. */
AX_MUST_USE ax_status ax_planner_settle(ax_planner *planner, uint32_t most);
/* Tries a mesh with a layout, for each way to share what is held along the axes of samples, and keeps what is best. shards: a bit
   for each axis that cuts all parameters that it does not cut yet; then they are not shared once more. search.c. */
AX_MUST_USE ax_status ax_planner_try_sharings(ax_planner *planner, const ax_mesh *mesh, const ax_arrangement *layout,
                                              uint32_t shards);
/* Improves the best of what is found, of those that gather and of the others; search.c. */
AX_MUST_USE ax_status ax_planner_improve_found(ax_planner *planner);
/* Candidates of one stage: meshes, layouts, checkpoints and microbatches; search.c. */
AX_MUST_USE ax_status ax_planner_search_meshes(ax_planner *planner);
/* Finds how a second axis cuts parameters alone: p->tensor. besides: "expert" or "sequence": that way of a second axis too. */
AX_MUST_USE ax_status ax_planner_find_ways(ax_planner *planner, const char *besides);
/* The layout over the axes data, `second`, `third` (NULL: there is none) and model: the second and the third cut as those ways of a
   second axis, the last as tensor parallelism, if that helps. */
AX_MUST_USE ax_status ax_planner_merge_ways(const ax_planner *planner, const ax_arrangement *second, const ax_arrangement *third,
                                            ax_arrangement *out);
/* Times one of several stages: stage_mesh.h says what its axes are; pipelines.c. */
AX_MUST_USE ax_status ax_planner_time_pipeline(ax_planner *planner, ax_candidate *candidate);
/* Candidates of several: pipelines.c. */
AX_MUST_USE ax_status ax_planner_search_pipelines(ax_planner *planner);
/* Candidates of so many stages over that mesh of a stage alone, each schedule, policy and number of microbatches.
   AX_INVALID_ARGUMENT: it has other axes than data, expert, sequence and model in this order; nothing is possible over it. */
AX_MUST_USE ax_status ax_planner_search_pipeline(ax_planner *planner, int64_t stages, const ax_mesh *mesh);
/* The axes of a stage of a pipeline, and their order: AX_INVALID_ARGUMENT. */
AX_MUST_USE ax_status ax_stage_check_axes(const ax_mesh *mesh);

#endif
