/* The time of a run, instruction by instruction, and the least time that each could take. */
#ifndef AX_EXEC_PROFILE_H
#define AX_EXEC_PROFILE_H

#include "exec/exec.h"
#include "plan/amount.h"

/* Speeds of all threads of a machine together, as measured. */
enum { AX_SPEED_SIZES = 5 };
typedef struct ax_speeds {
  double size[AX_SPEED_SIZES];              /* bytes touched; ascending */
  double read[AX_SPEED_SIZES], write[AX_SPEED_SIZES]; /* bytes a second, if so many bytes are touched */
  double flops;                             /* f32 operations a second */
} ax_speeds;

/* Seconds: the bytes over the bandwidth for that many bytes, or the operations over the peak, whichever is longer. _which:
   "memory" or "arithmetic". */
double ax_speeds_bound(const ax_speeds *speeds, const ax_amount *amount);
const char *ax_speeds_which(const ax_speeds *speeds, const ax_amount *amount);

typedef struct ax_profile_row {
  const ax_op *op;  /* operation of the plan */
  uint32_t calls;   /* in one run, by all devices */
  double seconds;   /* during which a thread worked on it */
} ax_profile_row;

/* Gives a row for each instruction of an executable compiled with ax_compile_options.timeline, for the run that ended last.
   *rows is the caller's: ax_free. AX_INVALID_ARGUMENT: no timeline, or no run. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_executable_profile(ax_executable *e, ax_profile_row **rows, uint32_t *count);

/* Prints each kernel as loops, and each product: the bytes it reads and writes, its operations, and the least time that these
   take; speeds NULL: without the time. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nests_text(ax_text *text, const ax_assembly *a, const ax_speeds *speeds);

#endif
