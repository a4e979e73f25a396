/* Computing the parts of arrays that are read (narrow.c). */
#ifndef AX_XFORM_NARROW_H
#define AX_XFORM_NARROW_H

#include "axle/program.h"

/* The program that computes of each array what its slices read, where that is a half of it or less. Inputs and results stay as they
   are. */
AX_MUST_USE ax_status ax_program_narrow(const ax_program *program, ax_program **out);

#endif
