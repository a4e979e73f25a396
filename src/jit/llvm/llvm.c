/* Opening LLVM's library. It is never closed: it keeps state of its own. */
#include "jit/llvm/llvm.h"

#include <dlfcn.h>
#include <llvm/Config/llvm-config.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "jit/llvm/linked.h"

ax_llvm_functions ax_llvm;

static char failure[256]; /* "" when all is there */

#define AX_TEXT_OF(name) #name
#define AX_NAME_OF(name) AX_TEXT_OF(name)

/* dlsym gives a pointer to data; the functions' pointers are of the same size. */
static void look_up(void *library, const char *name, void *pointer) {
  void *found = dlsym(library, name);
  if (found == NULL && failure[0] == '\0') snprintf(failure, sizeof failure, "%s has no %s", AX_LLVM_SONAME, name);
  memcpy(pointer, &found, sizeof found);
}

static void start_code_generator(void *library) {
  static const char *const parts[] = {AX_NAME_OF(LLVM_NATIVE_TARGETINFO), AX_NAME_OF(LLVM_NATIVE_TARGET),
                                      AX_NAME_OF(LLVM_NATIVE_TARGETMC), AX_NAME_OF(LLVM_NATIVE_ASMPRINTER)};
  for (size_t i = 0; i < AX_COUNT(parts); i++) {
    void (*start)(void) = NULL;
    look_up(library, parts[i], &start);
    if (start != NULL) start();
  }
}

/* All that is called, in a library of its own. False: it is not there, or of another build. */
static bool load_linked(void) {
  void *library = AX_LLVM_LINKED[0] != '\0' ? dlopen(AX_LLVM_LINKED, RTLD_LAZY | RTLD_LOCAL) : NULL;
  const ax_llvm_linked *linked = library != NULL ? dlsym(library, "axle_llvm") : NULL;
  if (linked == NULL || strcmp(linked->names, AX_LLVM_NAMES) != 0) return false;
  ax_llvm = linked->functions;
  linked->start();
  return true;
}

static void load(void) {
  if (load_linked()) return;
  void *library = dlopen(AX_LLVM_SONAME, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) library = dlopen(AX_LLVM_FILE, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) {
    snprintf(failure, sizeof failure, "%s", dlerror());
    return;
  }
#define AX_LLVM(name) look_up(library, #name, &ax_llvm.name);
#include "jit/llvm/llvm.def"
#undef AX_LLVM
  if (failure[0] == '\0') start_code_generator(library);
}

ax_status ax_llvm_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return failure[0] == '\0' ? AX_OK : ax_error(AX_INTERNAL, "LLVM cannot be loaded: %s", failure);
}

const char *ax_llvm_library(void) { return AX_LLVM_LINKED[0] != '\0' ? AX_LLVM_LINKED : AX_LLVM_SONAME; }
