/* Programs of one device that only compute, run in the caller's memory: without arrays, runs and activations that wait. The code
   of a user's kernel between two acts of a core is such a program. */
#ifndef AX_ARRAY_STRAIGHT_H
#define AX_ARRAY_STRAIGHT_H

#include "axle/exec.h"

typedef struct ax_straight ax_straight;

/* in_place: by result, the input whose memory it gets, of the same size; AX_NONE: memory of no input. *out NULL: the program is
   more than one list of computations, and cannot be run so. */
AX_MUST_USE ax_status ax_straight_create(ax_runtime *runtime, ax_program *program, const uint32_t *in_place, ax_straight **out);
void ax_straight_release(ax_straight *straight); /* NULL is allowed */
/* Bytes of memory that a run needs besides inputs and results. */
size_t ax_straight_bytes(const ax_straight *straight);
double ax_straight_time(const ax_straight *straight); /* nanoseconds, roughly */
/* in, out: by input and result of the program. work: ax_straight_bytes bytes, aligned to 64. Any number of threads may run it,
   each with memory of its own. */
AX_MUST_USE ax_status ax_straight_run(const ax_straight *straight, void *const *in, void *const *out, void *work);

#endif
