/* A digest of everything that compiled code depends on beside the kernel. Code is reused only under an equal digest. */
#ifndef AX_JIT_LLVM_TARGET_H
#define AX_JIT_LLVM_TARGET_H

#include "base/base.h"
#include "base/digest.h"

/* The processor and its caches as the code generator sees them, LLVM's version, the sources of our own code generator, the size of
   registers (0: any), and what a test says instead of the processor (NULL: nothing). False: this machine cannot tell what it is. */
bool ax_jit_target(uint32_t most_vector_bytes, const char *instead, ax_digest *out);

#endif
