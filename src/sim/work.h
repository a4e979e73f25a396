/* The work of a device, in order: a plan's operations with their seconds on a machine, loops around them, and for each operation
   the transfers that must be over before it begins.

   Readers wait, transfers do not: a transfer goes on beside the operations that follow, until one of them touches memory that it
   writes, or writes memory that it reads. This follows from the plan's buffers, whose memory is still their own.

   Every device does all of it. The executor computes a value that is the same on several devices once, as they share memory; a
   machine's devices do not. */
#ifndef AX_SIM_WORK_H
#define AX_SIM_WORK_H

#include "sim/device.h"
#include "sim/kernel.h"
#include "sim/procedure.h"

typedef struct ax_sim_transfer {
  ax_sim_procedure procedure;
  uint32_t op;
  uint32_t reads, writes; /* roots */
  ax_sim_alone alone; /* of the algorithm that is chosen */
} ax_sim_transfer;

/* One side of messages between two devices. */
typedef struct ax_sim_post {
  ax_sim_procedure procedure; /* its pairs */
  uint32_t queue;         /* sides with the same number belong together; messages are received in the order of sending */
} ax_sim_post;

typedef struct ax_sim_work_op {
  const char *name;     /* the primitive's; static */
  const void *equation; /* its identity: a loop that does two steps in one has each operation twice. NULL: of none */
  const char *location; /* of the C call: borrowed from the plan; or NULL */
  uint32_t line;
  uint32_t transfer;    /* AX_NONE: it computes */
  double flops, bytes;  /* of one run */
  ax_sim_effort effort; /* of what computes, but for kernels of cores, whose seconds are known */
  double seconds;       /* of a collective about, alone */
  const char *bound;
} ax_sim_work_op;

typedef enum ax_sim_work_kind {
  AX_WORK_COMPUTE,
  AX_WORK_TRANSFER,
  AX_WORK_SEND,
  AX_WORK_RECEIVE,
  AX_WORK_LOOP,
  AX_WORK_NEXT
} ax_sim_work_kind;
typedef struct ax_sim_work_step {
  ax_sim_work_kind kind;
  uint32_t op;
  uint32_t await_first, await_count; /* transfers */
  int64_t trips;   /* LOOP: at least 1 */
  bool computes;   /* LOOP: it does nothing else */
  uint32_t target; /* NEXT: its LOOP; SEND, RECEIVE: the post */
  const ax_op *of; /* while it is made */
} ax_sim_work_step;

typedef struct ax_sim_work {
  ax_sim_work_op *ops;
  ax_sim_work_step *steps;
  ax_sim_transfer *transfers;
  ax_sim_post *posts;
  uint32_t *awaits;
  uint32_t op_count, op_capacity, step_count, step_capacity, transfer_count, transfer_capacity, post_count, post_capacity, queues,
      await_count, await_capacity;
  uint32_t loops; /* the deepest nesting */
  bool at_least;  /* a loop goes on until a condition says so: one step of it was taken */
  ax_arena arena; /* tables of pairs */
} ax_sim_work;

bool ax_plan_has_kernels(const ax_plan *plan);
/* Schedules are not made yet, but for kind, group, bytes, root and pairs. The plan is borrowed. *out is to be deinited, whatever is
   returned. */
AX_MUST_USE ax_status ax_sim_work_make(const ax_plan *plan, const ax_sim_place *place, const ax_timed_kernels *kernels,
                                       ax_sim_work *out);
void ax_sim_work_deinit(ax_sim_work *work);

#endif
