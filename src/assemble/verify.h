/* Shared by the files of the verifier of instruction lists. */
#ifndef AX_ASSEMBLE_VERIFY_H
#define AX_ASSEMBLE_VERIFY_H

#include "assemble/assembly.h"

/* verify_pushes.c: checks how the pieces of each exchange get to their places. The members of each push and its event are those of
   its exchange. arena: for data of the check. AX_INTERNAL: a push does not hold what its way relies on. */
AX_MUST_USE ax_status ax_pushes_verify(const ax_assembly *assembly, ax_arena *arena);

#endif
