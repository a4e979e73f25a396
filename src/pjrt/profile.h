/* Traces: while a profiler of PJRT's is at work, runs note what threads and devices did when. */
#ifndef AX_PJRT_PROFILE_H
#define AX_PJRT_PROFILE_H

#include "pjrt/pjrt.h"

extern ax_pjrt_profilers ax_pjrt_profilers_extension;

/* Whether a trace is being taken. */
bool ax_pjrt_is_profiled(void);
/* Adds the executable's latest run, under the program's name. What finds no memory is left out, and the trace says so. */
void ax_pjrt_profile_add(ax_executable *executable, const char *program);

#endif
