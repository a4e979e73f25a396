/* Kernels with a pipeline, each in a form that is right and in forms with one fault: a few words of the kernel are other than they
   should be. */
#ifndef AX_TESTS_PIPELINE_BUGS_H
#define AX_TESTS_PIPELINE_BUGS_H

#include "axle/axle.h"
#include "base/base.h"

enum { bug_steps = 4, bug_stages = 2, bug_block = 6 };

typedef struct bug {
  const char *name; /* what is wrong */
  const char *kinds; /* one of these kinds of finding shows it, apart by "|"; NULL: nothing is wrong */
  int slip;
  ax_function kernel; /* x: f32[steps,block] -> y: f32[steps,block]; context: the bug */
} bug;

typedef struct bug_list {
  const bug *bugs;
  unsigned count;
} bug_list;
extern const bug_list bugs_one_core, bugs_warps, bugs_uses, bugs_semaphores;

static inline ax_value bug_slot(ax_value step) {
  return ax_sub(step, ax_mul(ax_div(step, ax_integer(bug_stages)), ax_integer(bug_stages)));
}

#endif
