/* The only object of libaxle_llvm: a table of the LLVM functions that the jit calls. Linking the table with LLVM's archives gives
   a library of just those functions and what they need. It is a quarter as large as LLVM's own library and loads in a quarter of
   the time, also because no function in it is looked up by name. CMakeLists.txt builds it if the archives are there. llvm.c opens
   it, or else LLVM's own library. */
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
