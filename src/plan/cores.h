/* Kernels that users write (axle/kernel.h), as plans and the executor see them: what room `kernel` makes of one is code with a few
   entry points, and a plan has steps of it.

   A kernel whose bodies stay on their device is one step, RUN. One that signals or copies to other devices is run by all devices of
   a group together. Its steps, with an exchange of a byte each in between:

     ENTER     operands, results -> state, came       my memory may be read and written by others, and my cores stand at their
   beginnings exchange  came              -> all_came          so do everybody's RUN       all_came, state, operands, results ->
   results, done    cores go on, whosever they are, until none is left or none can exchange  done              -> all_done
   everybody's cores are through LEAVE     all_done, operands, results            from here on my operands' memory may be written,
   and my results are there

   So memory that others touch is ordered by the exchanges alone, and passes know nothing of kernels but what these steps read and
   write.

   `state` is memory for all that a kernel has beside operands and results while it runs: cores, semaphores, scratch. The first
   device of a group has in its state what the group has in common. */
#ifndef AX_PLAN_CORES_H
#define AX_PLAN_CORES_H

#include "ir/program.h"

typedef enum ax_cores_step { AX_CORES_ENTER, AX_CORES_RUN, AX_CORES_LEAVE } ax_cores_step;

/* Who runs cores: a frame of the executor, or a part of its instruction. */
typedef struct ax_cores_runner {
  void *(*state)(const void *context, uint32_t member); /* where each member's state is */
  void (*wake)(const void *context, uint32_t count);    /* so many of those that were told to wait may go on */
  const void *context;
  uint32_t members;
  uint64_t seed; /* 0: the core that is ready first; else any */
} ax_cores_runner;

typedef struct ax_cores_rules {
  void (*release)(void *kernel);
  /* Makes a device's state. memory: of operands and results, as the plan lists them. base: of the counter that those who wait are
     parked on, what it has counted by now. AX_INVALID_ARGUMENT, AX_OUT_OF_MEMORY. */
  ax_status (*enter)(const void *kernel, void *state, void *const *memory, int64_t device, uint32_t member, uint64_t base);
  /* Runs cores that are ready until there are none. *ticket: 0: all are through; else others are running some, and whoever asked
     may come again when the counter has reached it. AX_DEADLOCK: none is running, and none ever will. Any number of threads at
     once. */
  ax_status (*run)(const void *kernel, const ax_cores_runner *runner, uint64_t *ticket);
} ax_cores_rules;

typedef struct ax_cores {
  const ax_cores_rules *rules;
  void *kernel; /* the plan's, with its copies in calls */
  struct ax_cores *next;
  ax_axes names; /* of the group: members are numbered row-major over these axes */
  ax_axis_set axes;
  uint32_t in_count, out_count;
  uint32_t
      fresh_count; /* of what is written, the first so many are written without being read; the others hold something already */
  uint32_t *buffers;    /* those that are read, then those that are written */
  uint32_t state, came, all_came, done, all_done; /* came, ..: AX_NONE where each device is alone */
  uint32_t core_count;
  double time; /* nanoseconds on one thread, roughly */
} ax_cores;

typedef struct ax_cores_buffer {
  uint32_t buffer;
  bool reads, writes;
} ax_cores_buffer;
/* What a step touches, in the order of its instruction's operands: state, what is read, what is written, then bytes of
   exchanges. */
uint32_t ax_cores_buffer_count(const ax_cores *cores, ax_cores_step step);
ax_cores_buffer ax_cores_buffer_at(const ax_cores *cores, ax_cores_step step, uint32_t k);

#endif
