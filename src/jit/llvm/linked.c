/* The only object of libaxle_llvm: a table of the LLVM functions that the jit calls. Linking the table with LLVM's archives gives
   a library of just those functions and what they need. It is a quarter as large as LLVM's own library and loads in a quarter of
   the time, also because no function in it is looked up by name. CMakeLists.txt builds it if the archives are there. llvm.c opens
   it, or else LLVM's own library. */
#include "jit/llvm/linked.h"

#include <llvm-c/Support.h>
#include <llvm-c/Target.h>

#pragma GCC visibility push(default)
extern const ax_llvm_linked axle_llvm;
#pragma GCC visibility pop

/* Passes that do nothing to a function with `optnone` (emit/types.c). LLVM would still make the analyses that they ask for, such as
   the evolution of each loop's scalars, which take a quarter of the time. LLVM's own library has the same options, but whatever
   else uses it in this process would get them too. */
static const char *const options[] = {
    "axle", /* stands where a program's name would */
    "-disable-block-placement",
    "-disable-branch-fold",
    "-disable-cgp",
    "-disable-constant-hoisting",
    "-disable-copyprop",
    "-disable-early-ifcvt",
    "-disable-early-taildup",
    "-disable-lsr",
    "-disable-machine-cse",
    "-disable-machine-dce",
    "-disable-machine-licm",
    "-disable-machine-sink",
    "-disable-mergeicmps",
    "-disable-partial-libcall-inlining",
    "-disable-post-ra",
    "-disable-postra-machine-licm",
    "-disable-postra-machine-sink",
    "-disable-select-optimize",
    "-disable-ssc",
    "-disable-tail-duplicate",
};

static void start(void) {
  LLVMParseCommandLineOptions(sizeof options / sizeof options[0], options, "");
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
    .set_options = LLVMParseCommandLineOptions,
};
