/* Opening OpenBLAS. It is never closed: its threads and memory are the process's. */
#include "linalg/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/features.h"

static ax_lapack of_f32, of_f64, of_c64, of_c128;
static char failure[256]; /* "" when all is there */

/* dlsym gives a pointer to data; the functions' pointers are of the same size. */
static void look_up(void *library, const char *name, void *pointer) {
  void *found = dlsym(library, name);
  if (found == NULL && failure[0] == '\0') snprintf(failure, sizeof failure, "OpenBLAS has no %s", name);
  memcpy(pointer, &found, sizeof found);
}

const char *ax_openblas_core(const char *core, bool avx2, bool avx512) {
  static const char *const before_avx[] = {"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem"};
  for (size_t i = 0; avx2 && i < AX_COUNT(before_avx); i++)
    if (strcmp(core, before_avx[i]) == 0) return avx512 ? "SkylakeX" : "Haswell";
  return NULL;
}

/* OpenBLAS takes a processor that is newer than itself for one of 2004, and needs three to eight times as long: it is opened again
   and told what the processor has, unless the user has told it something else. */
static void *open_for_processor(const char *file) {
  static const char variable[] = "OPENBLAS_CORETYPE";
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  char *(*core)(void) = NULL;
  if (library == NULL || getenv(variable) != NULL) return library;
  void *found = dlsym(library, "openblas_get_corename");
  memcpy(&core, &found, sizeof found);
  if (core == NULL) return library;
  const char *better = ax_openblas_core(core(), ax_machine_has(AX_FEATURE_AVX2), ax_machine_has(AX_FEATURE_AVX512));
  if (better == NULL || setenv(variable, better, 1) != 0) return library;
  dlclose(library);
  library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  unsetenv(variable);
  return library;
}

/* Opens the first of the files that is there and was built with threads. */
static void *open_first(const char *const *files, size_t count) {
  for (size_t i = 0; i < count; i++) {
    void *library = open_for_processor(files[i]);
    int (*built_with)(void) = NULL; /* 0: no threads */
    if (library == NULL) {
      snprintf(failure, sizeof failure, "%s", dlerror());
      continue;
    }
    failure[0] = '\0';
    look_up(library, "openblas_get_parallel", &built_with);
    if (failure[0] == '\0' && built_with() != 0) return library;
    snprintf(failure, sizeof failure, "%s was built without threads, so several cannot call it at once", files[i]);
    dlclose(library);
  }
  return NULL;
}

static void load(void) {
  static const char *const files[] = {AX_OPENBLAS_FILE, "libopenblas.so.0"};
  void *library = open_first(files, AX_COUNT(files));
  void (*set_threads)(int) = NULL;
  if (library == NULL) return;
#define AX_LAPACK_APART(name, field, complex)        \
  look_up(library, "s" #name "_", &of_f32.name);     \
  look_up(library, "d" #name "_", &of_f64.name);     \
  look_up(library, "c" #complex "_", &of_c64.field); \
  look_up(library, "z" #complex "_", &of_c128.field);
#define AX_LAPACK(name, complex) AX_LAPACK_APART(name, name, complex)
#include "linalg/lapack.def"
#undef AX_LAPACK
#undef AX_LAPACK_APART
  look_up(library, "openblas_set_num_threads", &set_threads);
  if (failure[0] == '\0') set_threads(1);
}

ax_status ax_lapack_of(ax_dtype dtype, const ax_lapack **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  *out = dtype == AX_F32 ? &of_f32 : dtype == AX_F64 ? &of_f64 : dtype == AX_C64 ? &of_c64 : &of_c128;
  if (failure[0] == '\0') return AX_OK;
  return ax_error(AX_UNAVAILABLE, "OpenBLAS cannot be used (Debian: libopenblas0-pthread): %s", failure);
}
