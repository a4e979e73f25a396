/* The contents of libaxle_llvm (linked.c): one object, axle_llvm. */
#ifndef AX_JIT_LLVM_LINKED_H
#define AX_JIT_LLVM_LINKED_H

#include "jit/llvm/llvm.h"

typedef struct ax_llvm_linked {
  const char *names;   /* AX_LLVM_NAMES when the library was built; a library with other names is not used */
  void (*start)(void); /* readies the code generator for this machine */
  ax_llvm_functions functions;
  void (*set_options)(int count, const char *const *words, const char *overview); /* LLVM's own, for tests */
} ax_llvm_linked;

#define AX_LLVM(name) #name " "
static const char AX_LLVM_NAMES[] =
#include "jit/llvm/llvm.def"
    ;
#undef AX_LLVM

#endif
