/* LLVM, loaded when the first kernel is compiled: most of what a process does needs no kernel. So the library is opened by name,
   and each function is called through a pointer. LLVM's own library is large (12 ms of relocations and constructors); what of it is
   called here is linked into one of ours (linked.c; 3 ms), which is tried first.

     jit/llvm/llvm.def    the names
     ax_llvm         a pointer each, of the type the headers declare
     llvm_names.h    #define NAME(...) (ax_llvm.NAME)(__VA_ARGS__), made from llvm.def when the build is configured

   Every file of this room includes this header instead of LLVM's. */
#ifndef AX_JIT_LLVM_LLVM_H
#define AX_JIT_LLVM_LLVM_H

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "base/base.h"

typedef struct ax_llvm_functions {
#define AX_LLVM(name) __typeof__(name) *name;
#include "jit/llvm/llvm.def"
#undef AX_LLVM
} ax_llvm_functions;

/* Filled by ax_llvm_load, once, and never changed after. */
extern ax_llvm_functions ax_llvm;

/* Opens the library and readies its code generator for this machine, the first time; any thread. AX_INTERNAL: it is not there, or
   not whole; the same answer at each later call. */
AX_MUST_USE ax_status ax_llvm_load(void);
/* The name of the library that ax_llvm_load looks for first. */
const char *ax_llvm_library(void);

#include "jit/llvm/llvm_names.h"

#endif
