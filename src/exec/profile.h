/* Where the time of a run went, instruction by instruction, and the least that each could take. */
#ifndef AX_EXEC_PROFILE_H
#define AX_EXEC_PROFILE_H

#include "exec/exec.h"
#include "plan/amount.h"

/* What a machine's threads do together, as measured. */
enum { AX_SPEED_SIZES = 5 };
typedef struct ax_speeds {
  double size[AX_SPEED_SIZES];              /* bytes touched; ascending */
  double read[AX_SPEED_SIZES], write[AX_SPEED_SIZES]; /* bytes a second, where so many are touched */
  double flops;                             /* of f32, a second */
} ax_speeds;

/* Seconds: bytes over the bandwidth that there is for so many, or operations over the peak, whichever is longer; and "memory" or
   "arithmetic". */
double ax_speeds_bound(const ax_speeds *speeds, const ax_amount *amount);
const char *ax_speeds_which(const ax_speeds *speeds, const ax_amount *amount);

typedef struct ax_profile_row {
  const ax_op *op;  /* the plan's */
  uint32_t calls;   /* in one run, by all devices */
  double seconds;   /* in which somebody was at it */
} ax_profile_row;

/* By instruction of an executable compiled with ax_compile_options.timeline, of the run that ended last. *rows is the caller's,
   ax_free. AX_INVALID_ARGUMENT: no timeline, or no run. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_executable_profile(ax_executable *e, ax_profile_row **rows, uint32_t *count);

/* Each kernel as loops, each product: what it reads, writes and computes, and the least time that takes; speeds NULL: without that.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nests_text(ax_text *text, const ax_assembly *a, const ax_speeds *speeds);

#endif
