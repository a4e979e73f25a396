/* The place of an equation in a nest of programs, for messages: "(equation 0 of branch 1 of cond, equation 3, prog.c:41)". */
#ifndef AX_IR_PATH_H
#define AX_IR_PATH_H

#include "ir/program.h"

typedef struct ax_path { /* from the outermost equation to the equation itself */
  uint32_t count;
  struct ax_path_step {
    const ax_eqn *eqn;
    const ax_program *program; /* the program that holds eqn */
    uint32_t holders;          /* the number of equations that hold that program, of which the step before is the first; 0: eqn is
                                  the equation itself */
  } step[AX_MAX_NESTING + 1];
} ax_path;

/* Finds the way from `whole` to an equation of `program`, which is `whole` or is held by it, perhaps in several places: then the
   first one, with their number. If it is not found, the path is the equation alone. */
void ax_path_find(const ax_program *whole, const ax_program *program, const ax_eqn *eqn, ax_path *out);
/* Writes the path with a blank in front, or nothing if no place is known. Numbers and lines are those of the program that the
   caller ran. */
void ax_path_text(ax_text *text, const ax_path *path);
/* Writes `lead` and the place of the equation in the text or the C source: "line 7", "prog.c:41". False: neither is known; nothing
   is written. */
bool ax_source_text(ax_text *text, const char *lead, const ax_eqn *eqn);
/* Writes the primitive and, if known, the place it comes from, for listings: "log, prog.c:41". */
void ax_origin_text(ax_text *text, const ax_eqn *eqn);

#endif
