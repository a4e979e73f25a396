/* Kernels to machine code through LLVM. The only room that includes LLVM headers; nothing of LLVM shows here. */
#ifndef AX_JIT_JIT_H
#define AX_JIT_JIT_H

#include "jit/nest/fused_loop.h"

typedef struct ax_compiler ax_compiler;

/* Machine code of a kernel. slots[k]: the base address of kernel slot k, aligned to its element. Behind the slots stand the
   numbers that are given (AX_LEAF_GIVEN), 8 bytes each, of which the number's bits come first. coordinates[a]: this device's
   coordinate along mesh axis a (for AX_LEAF_AXIS). Runs the range [begin, end) of kernel->ranged, which ends at ax_kernel_extent
   at the latest; several threads may run different ranges at once. If all dimensions are reduced over, the only range is 0, 1. A
   stored slot may share memory with a loaded one only if every load of it reads the position that the same iteration stores. */
typedef void (*ax_kernel_code)(void *const *slots, const int64_t *coordinates, int64_t begin, int64_t end);

/* The file name of LLVM's library, which is loaded with the first compile. */
const char *ax_jit_library(void);

/* What registers hold f16 as: what the processor computes in; or, for tests, f32, or f16, whose operations LLVM spells out in f32
   where the processor has none. */
typedef enum ax_f16_held { AX_F16_BY_PROCESSOR, AX_F16_AS_F32, AX_F16_AS_F16 } ax_f16_held;

typedef struct ax_jit_options {
  const char *folder;          /* keeps compiled code for other processes (jit/kept.h); NULL: none */
  uint64_t folder_bytes;       /* limit on the folder's size; 0: 256 MiB */
  uint64_t idle_bytes;         /* limit on unused code that stays in memory; 0: 64 MiB */
  uint32_t threads;            /* that compile at once, the caller's included; 0: 1 */
  uint32_t most_vector_bytes;  /* for tests: limit on registers, as of an older machine: 64, 32 or 16; 0: this machine's */
  ax_f16_held f16;             /* for tests; no folder is used with it */
  bool gathers;                /* for tests: numbers of one and two bytes are looked up as if gathers were fast; no folder is used with it */
  const char *processor;       /* for tests: names the processor that the folder's code is for; NULL: this one */
} ax_jit_options;

/* Cheap: LLVM starts with the first kernel that is compiled. Any thread may use the compiler; compiles wait for each other.
   `options` NULL: all 0. */
AX_MUST_USE ax_status ax_jit_create(const ax_jit_options *options, ax_compiler **out);
void ax_jit_destroy(ax_compiler *jit); /* the code it made goes with it; NULL is allowed */

/* Machine code for each kernel. Equal kernels, in this call or an earlier one, are compiled once; new kernels go into one
   module, or into one for each thread if they are many. */
AX_MUST_USE ax_status ax_jit_compile(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, ax_kernel_code *out);
/* The code that one caller uses: it stays until it is dropped. Zero-initialise to start. */
typedef struct ax_jit_use {
  uint32_t *objects, count;
} ax_jit_use;

/* The same for kernels and fused loops together. A fused loop's code is called like a kernel's: its slots are the addresses of
   its places, and it has no range. `use` must be empty, and gets the code; the caller drops it. NULL: the code stays as long as
   the compiler. */
AX_MUST_USE ax_status ax_jit_compile_all(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count,
                                         ax_kernel_code *out, const ax_fused_loop *const *fused_loops, uint32_t fused_loop_count,
                                         ax_kernel_code *fused_loop_out, ax_jit_use *use);
/* Ends a use, and leaves it empty. Code without a use stays in memory, up to options.idle_bytes, since the same kernels may be
   compiled again. */
void ax_jit_drop(ax_compiler *jit, ax_jit_use *use);
/* Frees the code that has no use. */
void ax_jit_trim(ax_compiler *jit);
/* Writes the kernel's loops as this machine runs them, one a line: order, ranges for threads, vectors, iterations done at a
   time. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_jit_nest_text(const ax_loop_kernel *kernel, ax_text *text);
/* Kernels compiled, found in the cache, and loaded from the folder, so far. */
typedef struct ax_jit_counts {
  uint64_t compiled, found, loaded;
  uint64_t code_bytes; /* held now */
} ax_jit_counts;
ax_jit_counts ax_jit_count(ax_compiler *jit);
/* Writes why the folder cannot be used, once after that is known. False, with an empty text: no news. */
bool ax_jit_trouble(ax_compiler *jit, char *text, size_t bytes);

#endif
