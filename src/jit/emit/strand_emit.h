/* Code for strands. */
#ifndef AX_JIT_EMIT_STRAND_EMIT_H
#define AX_JIT_EMIT_STRAND_EMIT_H

#include "jit/emit/codegen.h"
#include "jit/nest/strand.h"

/* Emits the function `name` into cg->module. Scratch memory comes from the arena. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_strand_emit(ax_arena *arena, const ax_codegen *cg, const ax_strand *strand, const char *name);

#endif
