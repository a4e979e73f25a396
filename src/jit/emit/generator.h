/* LLVM's code generator for this machine: kernels and fused loops in, an object file out. Nothing of it is there, nor LLVM itself,
   before the first. */
#ifndef AX_JIT_EMIT_GENERATOR_H
#define AX_JIT_EMIT_GENERATOR_H

#include "jit/nest/fused_loop.h"

/* Zero-initialise to start. Not locked: ax_compiler does that. */
typedef struct ax_generator {
  uint32_t most_vector_bytes; /* registers are to have no more; 0: as many as the machine's have */
  uint32_t vector_bytes;
  struct LLVMOpaqueTargetMachine *machine; /* NULL until the first */
  struct LLVMOpaqueContext *context;
} ax_generator;

typedef struct ax_unit { /* what becomes a function: one of the two */
  const ax_loop_kernel *kernel;
  const ax_fused_loop *fused_loop;
} ax_unit;

/* What the functions are called: this, followed by the unit's number. */
#define AX_KERNEL_PREFIX "axle_kernel_"

/* The units as one object file, *object, of *bytes bytes: owned by the caller, ax_free. AX_INTERNAL: LLVM is not there, or refuses.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_generator_emit(ax_generator *generator, const ax_unit *units, uint32_t count, void **object,
                                        size_t *bytes);
void ax_generator_deinit(ax_generator *generator);

#endif
