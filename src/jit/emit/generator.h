/* LLVM's code generator for this machine: takes kernels and fused loops, gives an object file. LLVM is loaded with the first
   call of ax_generator_emit. */
#ifndef AX_JIT_EMIT_GENERATOR_H
#define AX_JIT_EMIT_GENERATOR_H

#include "jit/nest/fused_loop.h"

/* Zero-initialise to start. Not locked: ax_compiler does that. */
typedef struct ax_generator {
  uint32_t vector_bytes; /* the size that is used; set with `machine` */
  bool f16;              /* the processor computes in f16 (ax_registers.f16); set with `machine` */
  bool gathers;          /* ax_codegen.gathers; set with `machine` */
  struct LLVMOpaqueTargetMachine *machine; /* NULL: LLVM has not been started */
  struct LLVMOpaqueContext *context; /* NULL: none yet, or forgotten after many units */
  uint32_t emitted; /* units, with this context */
  struct {
    uint32_t most_vector_bytes;  /* limit on the size of a vector register; 0: the machine's own size */
    bool f16_as_f32, f16_always; /* whether registers hold f16 as f16, whatever the processor has; at most one */
    bool gathers;                /* ax_codegen.gathers, whatever the processor has */
  } wanted;
} ax_generator;

typedef struct ax_unit { /* what becomes a function: one of the two */
  const ax_loop_kernel *kernel;
  const ax_fused_loop *fused_loop;
} ax_unit;

/* The names of emitted functions: this prefix, followed by the unit's number. */
#define AX_KERNEL_PREFIX "axle_kernel_"

/* Bytes that LLVM may take to compile so many units, as a guess. It ends the process if it gets no memory, so we ask before. */
size_t ax_generator_memory(uint32_t count);
/* Compiles the units into one object file, *object, of *bytes bytes; owned by the caller, ax_free. AX_INTERNAL: LLVM cannot be
   loaded, or refuses. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_generator_emit(ax_generator *generator, const ax_unit *units, uint32_t count, void **object,
                                        size_t *bytes);
void ax_generator_deinit(ax_generator *generator);
/* As ax_generator_deinit, but LLVM's machine stays for the next generator of the process that is like it and takes one: to make it
   takes 1 ms, a third of a small compile. For any threads. */
void ax_generator_keep(ax_generator *generator);
void ax_generator_take_kept(ax_generator *generator);

#endif
