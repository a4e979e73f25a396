/* LLVM's code generator for this machine: kernels in, an object file out. Nothing of it is there, nor LLVM itself, before the first. */
#ifndef AX_JIT_GENERATOR_H
#define AX_JIT_GENERATOR_H

#include "loop/kernel.h"

/* Zero-initialise to start. Not locked: ax_compiler does that. */
typedef struct ax_generator {
  uint32_t most_vector_bytes; /* registers are to have no more; 0: as many as the machine's have */
  uint32_t vector_bytes;
  struct LLVMOpaqueTargetMachine *machine; /* NULL until the first */
  struct LLVMOpaqueContext *context;
} ax_generator;

/* What the functions are called: this, followed by the kernel's number. */
#define AX_KERNEL_PREFIX "axle_kernel_"

/* The kernels as one object file, *object, of *bytes bytes: owned by the caller, ax_free. AX_INTERNAL: LLVM is not there, or refuses.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_generator_emit(ax_generator *generator, const ax_loop_kernel *const *kernels, uint32_t count, void **object, size_t *bytes);
void ax_generator_deinit(ax_generator *generator);

#endif
