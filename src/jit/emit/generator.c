/* Starts LLVM with the first kernels, and makes code for this very machine. The code refers to its own sections, which lie close
   together, and to outside functions by name: those of math.c, and those of the C library to which LLVM adds calls, such as memset.
   The loader (object/object.c) puts a jump to each outside function near the code. So the small code model, whose addresses reach
   2 GiB, is enough wherever the code is loaded. */
#include "jit/emit/generator.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "jit/emit/fused_loop_emit.h"
#include "jit/llvm/llvm.h"
#include "jit/emit/nest.h"
#include "machine/features.h"

/* --- The machine --- */

/* Whether the list, "+avx,+avx512fp16,-amx-fp8,+avx512f", has the entry as a whole. */
static bool has_feature(const char *features, const char *entry) {
  const size_t length = strlen(entry);
  for (const char *at = features; at != NULL; at = strchr(at, ',')) {
    if (*at == ',') at++;
    if (strncmp(at, entry, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
  }
  return false;
}

/* The bytes of the widest vector register. A width counts only if the instructions that our code needs at that width are there:
   arithmetic on all element sizes and masks for 64, fused multiplication and addition for 32. */
static uint32_t widest_vector(const char *features) {
  if (has_feature(features, "+avx512f") && has_feature(features, "+avx512vl") && has_feature(features, "+avx512bw") &&
      has_feature(features, "+avx512dq"))
    return 64;
  return has_feature(features, "+avx2") && has_feature(features, "+fma") ? 32 : 16;
}

/* LLVM's names for the host. Each is a copy in LLVM's malloc; NULL: out of memory. */
typedef struct host_names {
  char *triple, *processor, *features;
} host_names;

/* Frees the names. LLVMDisposeMessage does nothing with NULL. */
static void forget_host(host_names *host) {
  LLVMDisposeMessage(host->triple);
  LLVMDisposeMessage(host->processor);
  LLVMDisposeMessage(host->features);
}

/* Makes LLVM's code generator for the host. If most_vector_bytes asks for shorter vectors than the host has, it is made for an
   older x86-64 processor instead, whose widest vectors are as short. NULL: LLVM has no code generator for the host. */
static LLVMTargetMachineRef make_machine(ax_generator *generator, const host_names *host) {
  char *error = NULL;
  LLVMTargetRef target;
  LLVMTargetMachineRef machine = NULL;
  uint32_t widest = widest_vector(host->features);
  bool as_it_is = generator->wanted.most_vector_bytes == 0 || widest <= generator->wanted.most_vector_bytes;
  generator->vector_bytes = as_it_is ? widest : generator->wanted.most_vector_bytes;
  const bool computes_f16 = as_it_is && widest == 64 && has_feature(host->features, "+avx512fp16");
  generator->f16 = generator->wanted.f16_always || (computes_f16 && !generator->wanted.f16_as_f32);
  generator->gathers = generator->wanted.gathers || (as_it_is && ax_machine_has(AX_FEATURE_FAST_GATHERS));
  const char *older = generator->vector_bytes == 32 ? "x86-64-v3" : "x86-64";
  if (LLVMGetTargetFromTriple(host->triple, &target, &error) == 0)
    machine = LLVMCreateTargetMachine(target, host->triple, as_it_is ? host->processor : older, as_it_is ? host->features : "",
                                      LLVMCodeGenLevelLess, LLVMRelocPIC, LLVMCodeModelSmall);
  LLVMDisposeMessage(error);
  return machine;
}

static ax_status make_for_host(ax_generator *generator) {
  host_names host = {LLVMGetDefaultTargetTriple(), LLVMGetHostCPUName(), LLVMGetHostCPUFeatures()};
  const bool known = host.triple != NULL && host.processor != NULL && host.features != NULL;
  if (known) generator->machine = make_machine(generator, &host);
  forget_host(&host);
  if (!known) return ax_out_of_memory(0);
  return generator->machine != NULL ? AX_OK : ax_error(AX_INTERNAL, "LLVM has no code generator for this machine");
}

static ax_status start(ax_generator *generator) {
  AX_TRY(ax_llvm_load());
  if (generator->machine == NULL) AX_TRY(make_for_host(generator));
  if (generator->context == NULL) generator->context = LLVMContextCreate();
  return AX_OK;
}

static void forget_context(ax_generator *generator) {
  if (generator->context != NULL) LLVMContextDispose(generator->context);
  generator->context = NULL;
  generator->emitted = 0;
}

void ax_generator_deinit(ax_generator *generator) {
  forget_context(generator);
  if (generator->machine != NULL) LLVMDisposeTargetMachine(generator->machine);
  *generator = (ax_generator){.wanted = generator->wanted};
}

/* --- Generators that are kept --- */

enum { most_kept = 4 };
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static ax_generator kept[most_kept]; /* without contexts; a place without a machine is free */

static bool is_alike(const ax_generator *a, const ax_generator *b) {
  return a->wanted.most_vector_bytes == b->wanted.most_vector_bytes && a->wanted.f16_as_f32 == b->wanted.f16_as_f32 &&
         a->wanted.f16_always == b->wanted.f16_always && a->wanted.gathers == b->wanted.gathers;
}

/* In a process that was forked while another thread held the lock, nobody gives it back: such a process does without. */
void ax_generator_take_kept(ax_generator *generator) {
  if (pthread_mutex_trylock(&kept_lock) != 0) return;
  for (uint32_t i = 0; i < most_kept && generator->machine == NULL; i++) {
    if (kept[i].machine == NULL || !is_alike(&kept[i], generator)) continue;
    *generator = kept[i];
    kept[i] = (ax_generator){0};
  }
  pthread_mutex_unlock(&kept_lock);
}

void ax_generator_keep(ax_generator *generator) {
  forget_context(generator);
  if (generator->machine != NULL && pthread_mutex_trylock(&kept_lock) == 0) {
    for (uint32_t i = 0; i < most_kept && generator->machine != NULL; i++) {
      if (kept[i].machine != NULL) continue;
      kept[i] = *generator;
      generator->machine = NULL;
    }
    pthread_mutex_unlock(&kept_lock);
  }
  ax_generator_deinit(generator);
}

/* --- Code --- */

enum { kernels_a_context = 256 };

/* LLVM ends the process over code that it takes for granted. To look at it first costs less than can be measured. */
static ax_status verify(LLVMModuleRef module) {
  char *message = NULL;
  ax_status status = AX_OK;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    char *text = LLVMPrintModuleToString(module);
    const bool told = message != NULL && text != NULL;
    status = told ? ax_error(AX_INTERNAL, "LLVM refuses a kernel: %s\n%s", message, text) : ax_out_of_memory(0);
    LLVMDisposeMessage(text);
  }
  LLVMDisposeMessage(message);
  return status;
}

static ax_status emit_all(const ax_generator *generator, LLVMModuleRef module, const ax_unit *units, uint32_t count) {
  ax_codegen cg = {.vector_bytes = generator->vector_bytes, .f16 = generator->f16, .gathers = generator->gathers,
                   .context = generator->context, .module = module};
  ax_status status = AX_OK;
  cg.builder = LLVMCreateBuilderInContext(cg.context);
  for (uint32_t i = 0; i < count && status == AX_OK; i++) {
    ax_arena scratch = {0};
    char name[32];
    snprintf(name, sizeof name, AX_KERNEL_PREFIX "%u", i);
    status = units[i].fused_loop != NULL ? ax_fused_loop_emit(&scratch, &cg, units[i].fused_loop, name)
                                         : ax_nest_emit(&scratch, &cg, units[i].kernel, name);
    ax_arena_deinit(&scratch);
  }
  LLVMDisposeBuilder(cg.builder);
  return status == AX_OK ? verify(module) : status;
}

static ax_status write_object(const ax_generator *generator, LLVMModuleRef module, void **object, size_t *bytes) {
  LLVMMemoryBufferRef buffer = NULL;
  char *message = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(generator->machine, module, LLVMObjectFile, &message, &buffer)) {
    ax_status status = message != NULL ? ax_error(AX_INTERNAL, "LLVM: %s", message) : ax_out_of_memory(0);
    LLVMDisposeMessage(message);
    return status;
  }
  *bytes = LLVMGetBufferSize(buffer);
  *object = ax_alloc(*bytes);
  if (*object != NULL) memcpy(*object, LLVMGetBufferStart(buffer), *bytes);
  LLVMDisposeMemoryBuffer(buffer);
  return *object != NULL ? AX_OK : ax_out_of_memory(*bytes);
}

size_t ax_generator_memory(uint32_t count) {
  enum { to_start = 16 << 20, a_kernel = 64 << 10, most_kernels = 4096 };
  return to_start + (size_t)(count < most_kernels ? count : most_kernels) * a_kernel;
}

ax_status ax_generator_emit(ax_generator *generator, const ax_unit *units, uint32_t count, void **object, size_t *bytes) {
  *object = NULL;
  AX_TRY(ax_memory_for_library(ax_generator_memory(count)));
  AX_TRY(start(generator));
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("axle", generator->context);
  ax_status status = emit_all(generator, module, units, count);
  if (status == AX_OK) status = write_object(generator, module, object, bytes);
  LLVMDisposeModule(module);
  generator->emitted += count;
  if (generator->emitted >= kernels_a_context) forget_context(generator); /* it keeps each number and type that was ever in it */
  return status;
}
