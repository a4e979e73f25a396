/* LLJIT and the cache in front of it. LLVM starts with the first compile and makes code for this very machine; one mutex guards
   everything, since LLVM contexts are not thread-safe and compiles are rare. */
#include "jit/jit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/cache.h"
#include "jit/llvm.h"
#include "jit/machine.h"
#include "jit/nest.h"

struct ax_compiler {
  pthread_mutex_t lock;
  ax_cache cache;
  uint64_t found; /* kernels that were in it */
  uint32_t most_vector_bytes, vector_bytes;
  LLVMOrcLLJITRef lljit; /* NULL until the first compile */
  LLVMOrcThreadSafeContextRef context;
};

static ax_status llvm_error(LLVMErrorRef error, const char *what) {
  char *message = LLVMGetErrorMessage(error);
  ax_status status = ax_error(AX_INTERNAL, "LLVM: %s: %s", what, message);
  LLVMDisposeErrorMessage(message);
  return status;
}

/* --- The machine --- */

static bool has_feature(const char *features, const char *name) {
  const char *found = strstr(features, name);
  return found != NULL && (found[strlen(name)] == ',' || found[strlen(name)] == '\0');
}

static uint32_t widest_vector(const char *features) {
  if (has_feature(features, "+avx512f") && has_feature(features, "+avx512vl") && has_feature(features, "+avx512bw") &&
      has_feature(features, "+avx512dq"))
    return 64;
  return has_feature(features, "+avx2") && has_feature(features, "+fma") ? 32 : 16;
}

/* Kernels refer to nothing outside their own module (math.c writes addresses out), so the small code model does.
   The host as it is, or an older one of its family when vectors are to be shorter. */
static LLVMTargetMachineRef make_machine(ax_compiler *jit) {
  char *triple = LLVMGetDefaultTargetTriple(), *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures(),
       *error = NULL;
  LLVMTargetRef target;
  LLVMTargetMachineRef machine = NULL;
  uint32_t widest = widest_vector(features);
  bool host = widest <= jit->most_vector_bytes;
  jit->vector_bytes = host ? widest : jit->most_vector_bytes;
  const char *older = jit->vector_bytes == 32 ? "x86-64-v3" : "x86-64";
  if (LLVMGetTargetFromTriple(triple, &target, &error) == 0)
    machine = LLVMCreateTargetMachine(target, triple, host ? cpu : older, host ? features : "", LLVMCodeGenLevelLess,
                                      LLVMRelocPIC, LLVMCodeModelSmall);
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
  LLVMDisposeMessage(error);
  return machine;
}

/* Errors come back from the calls that hit them; LLVM would print them as well. */
static void say_nothing(void *unused, LLVMErrorRef error) {
  (void)unused;
  LLVMConsumeError(error);
}

static ax_status start(ax_compiler *jit) {
  if (jit->lljit != NULL) return AX_OK;
  AX_TRY(ax_llvm_load());
  LLVMTargetMachineRef machine = make_machine(jit);
  if (machine == NULL) return ax_error(AX_INTERNAL, "LLVM has no code generator for this machine");
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder,
                                                LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
  LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit->lljit, builder);
  if (error != NULL) {
    jit->lljit = NULL;
    return llvm_error(error, "LLJIT");
  }
  LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit->lljit), say_nothing, NULL);
  jit->context = LLVMOrcCreateNewThreadSafeContext();
  return AX_OK;
}

ax_status ax_jit_create_narrow(ax_compiler **out, uint32_t most_vector_bytes) {
  ax_compiler *jit = *out = ax_calloc(1, sizeof *jit);
  if (jit == NULL) return ax_out_of_memory(sizeof *jit);
  jit->most_vector_bytes = most_vector_bytes;
  pthread_mutex_init(&jit->lock, NULL);
  return AX_OK;
}

ax_status ax_jit_create(ax_compiler **out) { return ax_jit_create_narrow(out, UINT32_MAX); }

void ax_jit_destroy(ax_compiler *jit) {
  if (jit == NULL) return;
  if (jit->lljit != NULL) {
    LLVMConsumeError(LLVMOrcDisposeLLJIT(jit->lljit));
    LLVMOrcDisposeThreadSafeContext(jit->context);
  }
  ax_cache_deinit(&jit->cache);
  pthread_mutex_destroy(&jit->lock);
  ax_free(jit);
}

/* --- Compiling --- */

static void symbol_name(char *name, size_t bytes, uint32_t entry) { snprintf(name, bytes, "axle_kernel_%u", entry); }

static ax_status verify(LLVMModuleRef module) {
  char *message = NULL;
  ax_status status = AX_OK;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    char *text = LLVMPrintModuleToString(module);
    status = ax_error(AX_INTERNAL, "LLVM refuses a kernel: %s\n%s", message, text);
    LLVMDisposeMessage(text);
  }
  LLVMDisposeMessage(message);
  return status;
}

static ax_status emit_all(ax_compiler *jit, LLVMModuleRef module, uint32_t first) {
  ax_codegen cg = {.vector_bytes = jit->vector_bytes, .module = module};
  ax_status status = AX_OK;
  cg.context = LLVMOrcThreadSafeContextGetContext(jit->context);
  cg.builder = LLVMCreateBuilderInContext(cg.context);
  for (uint32_t i = first; i < jit->cache.count && status == AX_OK; i++) {
    ax_arena scratch = {0};
    char name[32];
    symbol_name(name, sizeof name, i);
    status = ax_nest_emit(&scratch, &cg, jit->cache.entries[i].kernel, name);
    ax_arena_deinit(&scratch);
  }
  LLVMDisposeBuilder(cg.builder);
#ifndef NDEBUG
  if (status == AX_OK) status = verify(module);
#else
  (void)verify;
#endif
  return status;
}

static ax_status look_up(ax_compiler *jit, uint32_t first) {
  for (uint32_t i = first; i < jit->cache.count; i++) {
    char name[32];
    LLVMOrcExecutorAddress address;
    symbol_name(name, sizeof name, i);
    LLVMErrorRef error = LLVMOrcLLJITLookup(jit->lljit, &address, name);
    if (error != NULL) return llvm_error(error, name);
    jit->cache.entries[i].code = (ax_kernel_code)(uintptr_t)address;
  }
  return AX_OK;
}

/* The entries from `first` on, as one module. On failure the module's code is taken out again, so its names are free. */
static ax_status compile_entries(ax_compiler *jit, uint32_t first) {
  enum { to_start = 16 << 20, a_kernel = 64 << 10, most_kernels = 4096 }; /* bytes. A look, no reservation: more than this is never asked for */
  uint32_t fresh = jit->cache.count - first;
  AX_TRY(ax_memory_for_library(to_start + (size_t)(fresh < most_kernels ? fresh : most_kernels) * a_kernel));
  AX_TRY(start(jit));
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("axle", LLVMOrcThreadSafeContextGetContext(jit->context));
  ax_status status = emit_all(jit, module, first);
  if (status != AX_OK) {
    LLVMDisposeModule(module);
    return status;
  }
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit->lljit);
  LLVMOrcResourceTrackerRef tracker = LLVMOrcJITDylibCreateResourceTracker(library);
  LLVMOrcThreadSafeModuleRef safe = LLVMOrcCreateNewThreadSafeModule(module, jit->context);
  LLVMErrorRef error = LLVMOrcLLJITAddLLVMIRModuleWithRT(jit->lljit, tracker, safe);
  status = error != NULL ? llvm_error(error, "adding a module") : look_up(jit, first);
  if (status != AX_OK) LLVMConsumeError(LLVMOrcResourceTrackerRemove(tracker));
  LLVMOrcReleaseResourceTracker(tracker);
  return status;
}

static ax_status compile_locked(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, uint32_t *entries) {
  uint32_t before = jit->cache.count;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < count && status == AX_OK; i++) {
    if (kernels[i]->failed)
      status = ax_out_of_memory(0);
    else
      status = ax_cache_get(&jit->cache, kernels[i], &entries[i]);
  }
  if (status == AX_OK && jit->cache.count > before) status = compile_entries(jit, before);
  if (status != AX_OK) ax_cache_truncate(&jit->cache, before);
  else jit->found += count - (jit->cache.count - before);
  return status;
}

ax_status ax_jit_compile(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, ax_kernel_code *out) {
  uint32_t *entries = ax_alloc(count * sizeof entries[0]);
  if (entries == NULL) return ax_out_of_memory(count * sizeof entries[0]);
  pthread_mutex_lock(&jit->lock);
  ax_status status = compile_locked(jit, kernels, count, entries);
  for (uint32_t i = 0; i < count; i++) out[i] = status == AX_OK ? jit->cache.entries[entries[i]].code : NULL;
  pthread_mutex_unlock(&jit->lock);
  ax_free(entries);
  return status;
}

void ax_jit_count(ax_compiler *jit, uint64_t *compiled, uint64_t *found) {
  pthread_mutex_lock(&jit->lock);
  *compiled = jit->cache.count;
  *found = jit->found;
  pthread_mutex_unlock(&jit->lock);
}
