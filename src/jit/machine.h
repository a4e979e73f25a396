/* For tests: a JIT for an older machine than this one. */
#ifndef AX_JIT_MACHINE_H
#define AX_JIT_MACHINE_H

#include "jit/jit.h"

/* As ax_jit_create, with registers of at most 64, 32 or 16 bytes. */
AX_MUST_USE ax_status ax_jit_create_narrow(ax_compiler **out, uint32_t most_vector_bytes);

#endif
