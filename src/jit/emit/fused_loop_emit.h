/* Code for fused loops. */
#ifndef AX_JIT_EMIT_FUSED_LOOP_EMIT_H
#define AX_JIT_EMIT_FUSED_LOOP_EMIT_H

#include "jit/emit/codegen.h"
#include "jit/nest/fused_loop.h"

/* Emits the function `name` into cg->module. Scratch memory comes from the arena. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_fused_loop_emit(ax_arena *arena, const ax_codegen *cg, const ax_fused_loop *fused_loop, const char *name);

#endif
