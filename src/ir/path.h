/* Where an equation stands in a nest of programs, for messages: "(equation 0 of branch 1 of cond, equation 3, prog.c:41)". */
#ifndef AX_IR_PATH_H
#define AX_IR_PATH_H

#include "ir/program.h"

typedef struct ax_path { /* from the outermost equation to the one that is meant */
  uint32_t count;
  struct ax_path_step {
    const ax_eqn *eqn;
    const ax_program *program; /* that it is in */
    uint32_t holders;          /* equations that hold that program, of which the step before is the first; 0: that one is meant */
  } step[AX_MAX_NESTING + 1];
} ax_path;

/* The way to an equation of `program`, which `whole` is or holds, perhaps in several places: the first, with how many there are.
   Where it is not found the path is of the equation alone. */
void ax_path_find(const ax_program *whole, const ax_program *program, const ax_eqn *eqn, ax_path *out);
/* With a blank in front; nothing when nothing is known. Numbers and lines are those of the program that was given to be run. */
void ax_path_text(ax_text *text, const ax_path *path);
/* `lead` and "line 7", "prog.c:41": the line of the text, the C call. False: neither is known, and nothing is added. */
bool ax_source_text(ax_text *text, const char *lead, const ax_eqn *eqn);
/* "log, prog.c:41": the primitive, and where it comes from as far as that is known; for listings. */
void ax_origin_text(ax_text *text, const ax_eqn *eqn);

#endif
