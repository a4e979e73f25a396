/* One run of an executable: frames, events' counters, memory. Kept by the executable for its next call. */
#ifndef AX_EXEC_EXECUTION_H
#define AX_EXEC_EXECUTION_H

#include "exec/counter.h"
#include "exec/exec.h"

typedef enum frame_state { FRAME_ACTIVE, FRAME_PARKED, FRAME_DONE } frame_state;

typedef struct ax_frame {
  uint32_t pc, device;
  frame_state state;
  ax_axis_set nonzero;     /* axes on which its coordinate is not 0 */
  void *scratch;           /* its block while it runs, or is parked where it must keep it */
  unsigned char *const *part; /* the run's */
  int64_t *entered;        /* by region */
  int64_t *iteration;      /* by loop */
  const int64_t *coordinates;
} ax_frame;

/* An instruction that several threads work on. Guarded by the execution's lock, but for `next`. */
typedef struct ax_split {
  const ax_instr *instr;
  const ax_frame *frame;
  _Atomic uint32_t next; /* part nobody has taken yet */
  _Atomic ax_status status; /* of a part that failed; AX_OK: none has */
  uint32_t helpers;      /* threads at work on it besides the frame's own */
} ax_split;

typedef struct ax_execution {
  struct ax_execution *next;
  ax_executable *executable;
  ax_frame *frames;
  ax_parking *parking; /* by frame */
  int64_t *words; /* the frames' arrays */
  ax_counter *counters;
  _Atomic uint32_t *arrived; /* by counter: members that came to a late push */
  unsigned char **part; /* by space, first + place: where it is; NULL: nowhere yet, or in another process */
  void **scratch; /* free blocks */
  uint32_t scratch_count, scratch_capacity, scratch_made;

  /* Who may go on. Guarded by `lock` when several threads run. */
  bool threaded;
  pthread_mutex_t lock;
  pthread_cond_t change;
  uint32_t *ready, ready_first, ready_count; /* a ring */
  _Atomic uint32_t ready_hint;
  uint32_t fresh; /* frames from here on have not started */
  uint32_t running, finished, idle;
  _Atomic bool over; /* written with the lock held */
  ax_status status;
  char message[4096];
  _Atomic(ax_split *) split; /* of the frame that shares its work now; NULL. Written with the lock held */
  uint64_t random; /* SEEDED: its state; 0 otherwise */
} ax_execution;

AX_MUST_USE ax_status ax_execution_create(ax_executable *executable, ax_execution **out);
void ax_execution_destroy(ax_executable *executable, ax_execution *run);
/* Points the frames at this call's arguments and resets everything. */
void ax_execution_reset(ax_execution *run, ax_parts *const *inputs, ax_parts *const *outputs);
/* The report of a deadlock: every waiting device, where, and who never came. Sets run->status and message. */
void ax_execution_report_deadlock(ax_execution *run);

#endif
