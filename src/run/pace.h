/* Whether small work of a run of one device is sooner done by helpers too, or by one thread alone: found by trying.

   What sharing costs follows from where the threads' processors lie. Kernels of some microseconds that go through a matrix by rows and
   by columns in turn have to fetch half of it from the other core's cache: two cores with a cache in common are a little faster than
   one, two without take two to three times as long. That is not known when a program is compiled, and a virtual machine's processors
   move. So a run does now and then what it does in the other way for a millisecond, and keeps to the way that is clearly faster. */
#ifndef AX_RUN_PACE_H
#define AX_RUN_PACE_H

#include "base/base.h"

typedef struct ax_pace_step { /* of an instruction */
  float least[2];  /* nanoseconds from its beginning to that of the next, shared and alone, in the windows that are compared; 0: none */
  uint32_t trials; /* how often it was done in those of the trial */
} ax_pace_step;

typedef struct ax_pace { /* zero to start, but for `steps` */
  ax_pace_step *steps; /* by instruction, `count` of them; NULL: it is not asked */
  uint32_t count;
  bool alone;          /* how work is done now */
  bool tries;          /* `alone` is a trial: the opposite of the way in use */
  uint32_t windows;    /* of this way so far */
  uint32_t until;      /* windows of the way in use before the other is tried; 0: none was yet */
  int64_t elapsed;     /* nanoseconds of this window */
  int64_t begun;       /* when the step in progress began; 0: none has in this call */
  uint32_t step;
} ax_pace;

/* A step begins, at `now`: instruction `instr`, which is worth sharing. Returns whether it is done alone. */
bool ax_pace_step_begins(ax_pace *pace, uint32_t instr, int64_t now);
/* The call is over, and with it the step in progress, which there must be. Time between calls belongs to no step. */
void ax_pace_ends(ax_pace *pace, int64_t now);

#endif
