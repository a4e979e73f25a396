/* Kernels to machine code through LLVM. The only room that includes LLVM headers; nothing of LLVM shows here. */
#ifndef AX_JIT_JIT_H
#define AX_JIT_JIT_H

#include "jit/nest/fused_loop.h"

typedef struct ax_compiler ax_compiler;

/* slots[k]: the base address of kernel slot k (aligned to its element). coordinates[a]: this device's coordinate along mesh axis
   a (for AX_LEAF_AXIS). Runs the range [begin, end) of kernel->ranged, which ends at ax_kernel_extent at the latest; ranges may
   run at once on different threads. Where all dimensions are reduced over there is only 0, 1. A slot that is stored may be the
   same memory as one that is loaded only when every load of it is at the very position stored by the same iteration. */
typedef void (*ax_kernel_code)(void *const *slots, const int64_t *coordinates, int64_t begin, int64_t end);

/* The file name of LLVM's library, which is loaded with the first compile. */
const char *ax_jit_library(void);

typedef struct ax_jit_options {
  const char *folder;          /* where compiled code is kept for other processes (jit/kept.h); NULL: nowhere */
  uint64_t folder_bytes;       /* how much it may hold; 0: 256 MiB */
  uint64_t idle_bytes;         /* how much code that nothing uses is kept in memory; 0: 64 MiB */
  uint32_t most_vector_bytes;  /* for tests: registers as of an older machine, at most 64, 32 or 16 bytes; 0: those of this one */
  const char *processor;       /* for tests: what code in the folder is for instead of this processor; NULL: this one */
} ax_jit_options;

/* Cheap: LLVM starts with the first kernel that is compiled. Used from any thread; one compile at a time. options may be NULL: all
   0. */
AX_MUST_USE ax_status ax_jit_create(const ax_jit_options *options, ax_compiler **out);
void ax_jit_destroy(ax_compiler *jit); /* the code it made goes with it; NULL is allowed */

/* Machine code for each kernel. Equal kernels (now or in an earlier call) are compiled once; the others go into one module. */
AX_MUST_USE ax_status ax_jit_compile(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, ax_kernel_code *out);
/* What somebody who compiled uses: this code stays until it is dropped. Zero-initialise to start. */
typedef struct ax_jit_use {
  uint32_t *objects, count;
} ax_jit_use;

/* The same of kernels and fused loops together. A fused loop's code is called as a kernel's: slots are the addresses of its places,
   and there is no range. use: empty, and to be dropped; NULL: the code stays as long as the compiler. */
AX_MUST_USE ax_status ax_jit_compile_all(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count,
                                         ax_kernel_code *out, const ax_fused_loop *const *fused_loops, uint32_t fused_loop_count,
                                         ax_kernel_code *fused_loop_out, ax_jit_use *use);
/* Leaves `use` empty. Code that nothing uses any more stays for a time, within the bound of the options: what is compiled next may
   be the same. */
void ax_jit_drop(ax_compiler *jit, ax_jit_use *use);
/* Gives the code back that nothing uses. */
void ax_jit_trim(ax_compiler *jit);
/* The kernel's loops as they are made on this machine, a line each: their order, parts, vectors and what is done at a time.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_jit_nest_text(const ax_loop_kernel *kernel, ax_text *text);
uint32_t ax_jit_vector_bytes(void); /* of this machine's widest registers that code is made for */
/* How many kernels were compiled, found among those that were, and loaded from the folder, so far. */
typedef struct ax_jit_counts {
  uint64_t compiled, found, loaded;
  uint64_t code_bytes; /* that are held now */
} ax_jit_counts;
ax_jit_counts ax_jit_count(ax_compiler *jit);
/* Once, when it is known that the folder cannot be used: why. False, and an empty text: no news. */
bool ax_jit_trouble(ax_compiler *jit, char *text, size_t bytes);

#endif
