/* What this room calls of LLVM, linked from LLVM's archives into a library of its own, libaxle_llvm: a quarter of LLVM's own
   library, and nothing in it is looked up by name, so that it is loaded in a quarter of the time. CMakeLists.txt builds it where
   the archives are there; llvm.c opens it, and LLVM's own library where it is not. */
#include "jit/llvm/linked.h"

#include <llvm-c/Target.h>

#pragma GCC visibility push(default)
extern const ax_llvm_linked axle_llvm;
#pragma GCC visibility pop

static void start(void) {
  LLVM_NATIVE_TARGETINFO();
  LLVM_NATIVE_TARGET();
  LLVM_NATIVE_TARGETMC();
  LLVM_NATIVE_ASMPRINTER();
}

const ax_llvm_linked axle_llvm = {
    .names = AX_LLVM_NAMES,
    .start = start,
    .functions =
        {
#define AX_LLVM(name) .name = name,
#include "jit/llvm/llvm.def"
#undef AX_LLVM
        },
};
