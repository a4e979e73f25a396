/* What libaxle_llvm (linked.c) holds: one object, axle_llvm. */
#ifndef AX_JIT_LLVM_LINKED_H
#define AX_JIT_LLVM_LINKED_H

#include "jit/llvm/llvm.h"

typedef struct ax_llvm_linked {
  const char *names;   /* AX_LLVM_NAMES as it was when the library was built; with other names it is of no use */
  void (*start)(void); /* readies the code generator for this machine */
  ax_llvm_functions functions;
} ax_llvm_linked;

#define AX_LLVM(name) #name " "
static const char AX_LLVM_NAMES[] =
#include "jit/llvm/llvm.def"
    ;
#undef AX_LLVM

#endif
