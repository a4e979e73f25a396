/* Acts with all bytes that they touch for any input, as a record.

   Views whose starts depend on inputs are of a *class*: one start for each symbol and stride. Two views of a class lie equally far
   apart for all inputs. So each such touch is told twice:

       beside its class   in a region of the class alone, at its distance from the start       core 0  |--|
                                                                                             core 1      |--|
       beside all others  in the region that all classes share, everywhere it may be         both    |------------|
                          where touches of one class have one colour, and do not conflict */
#ifndef AX_CHECK_WIDE_H
#define AX_CHECK_WIDE_H

#include "base/table.h"
#include "check/abstract.h"
#include "check/strands.h"

typedef struct ax_wide_touch {
  uint32_t region, class; /* class 0: it is `touch`, as it is */
  bool write;
  ax_touch touch;            /* of class 0: its runs are in the pool */
  uint32_t near, near_count; /* runs, from the class's start .. */
  uint32_t far, far_count;   /* .. and anywhere it may be */
} ax_wide_touch;

typedef struct ax_wide_step {
  uint32_t agent, first; /* its touches begin at `first` */
  bool way;              /* it is of a branch on inputs */
  ax_point_label label;
  ax_act act;
} ax_wide_step;

typedef struct ax_wide_class {
  uint32_t region, first, count; /* its words, in the pool: strides and parts */
  uint32_t agent;                /* the first that touches it */
  bool several, written;         /* several agents; one of them writes */
} ax_wide_class;

typedef struct ax_wide { /* zero-initialise to start */
  ax_wide_step *steps;
  ax_wide_touch *touches;
  ax_wide_class *classes; /* class k is classes[k - 1] */
  uint64_t *words;
  ax_bytes *runs;
  uint32_t step_count, step_capacity, touch_count, touch_capacity, class_count, class_capacity, word_count, word_capacity;
  uint32_t run_count, run_capacity;
  ax_act_agent *agents; /* that the run has not: numbered from its last on; likewise regions and semaphores */
  ax_act_region *regions;
  uint32_t *semaphores; /* their devices */
  uint32_t agent_count, agent_capacity, region_count, region_capacity, semaphore_count, semaphore_capacity;
  ax_point_label label; /* of the acts that come next */
  ax_table table; /* of classes, by region and words */
} ax_wide;
void ax_wide_deinit(ax_wide *wide);

/* Begins an act; the touches that follow are its. */
AX_MUST_USE ax_status ax_wide_act(ax_wide *wide, uint32_t agent, const ax_act *act);
/* Touches as they are. */
AX_MUST_USE ax_status ax_wide_same(ax_wide *wide, const ax_touches *pool, const ax_touch *touch);
/* A touch of a view. */
AX_MUST_USE ax_status ax_wide_view(ax_wide *wide, const ax_abstract *view, bool write);
/* All bytes that a view may be of, ascending. *runs is the caller's. */
AX_MUST_USE ax_status ax_wide_bytes(const ax_abstract *view, ax_bytes **runs, uint32_t *count);
AX_MUST_USE ax_status ax_wide_add_agent(ax_wide *wide, const ax_act_agent *agent);
AX_MUST_USE ax_status ax_wide_add_region(ax_wide *wide, const ax_act_region *region);
AX_MUST_USE ax_status ax_wide_add_semaphore(ax_wide *wide, uint32_t device);
/* The record. objects: of the run; they are copied. */
AX_MUST_USE ax_status ax_wide_record(const ax_wide *wide, const ax_act_objects *objects, ax_act_record *out);

#endif
