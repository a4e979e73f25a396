/* Kernels and products as text: their loops as this machine runs them, and the least time that they could take. */
#ifndef AX_ASSEMBLE_NESTS_H
#define AX_ASSEMBLE_NESTS_H

#include "assemble/assembly.h"
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

/* Prints each kernel as loops, and each product: the bytes it reads and writes, its operations, and the least time that these
   take; speeds NULL: without the time. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nests_text(ax_text *text, const ax_assembly *a, const ax_speeds *speeds);

#endif
