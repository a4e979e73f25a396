/* Programs that a program holds more than once, for its text: of a module whose functions call each other twice, texts would be
   exponentially longer than the program is in memory. */
#ifndef AX_IR_REPEATS_H
#define AX_IR_REPEATS_H

#include "ir/program.h"

typedef struct ax_repeat { /* one program, with all that are written as it is */
  const ax_program *program;
  uint64_t equations; /* with those of the programs in it, each as often as it occurs; UINT64_MAX: so many or more */
  uint32_t occurrences;
  uint32_t name; /* 1 + the number of its name; 0: its text has none yet */
} ax_repeat;

typedef struct ax_repeats { /* zero to start */
  ax_repeat *table;         /* open addressing, at most half full */
  uint32_t slots, count, names;
  bool same; /* two are one only if they are the same in memory */
} ax_repeats;

/* Finds all programs in `program`, each once. same: equal programs whose equations have other locations are two. */
AX_MUST_USE ax_status ax_repeats_find(const ax_program *program, bool same, ax_repeats *out);
void ax_repeats_deinit(ax_repeats *repeats);
/* NULL: the program is not among them. */
ax_repeat *ax_repeats_of(const ax_repeats *repeats, const ax_program *program);

#endif
