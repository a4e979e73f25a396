/* The cache and what fills it: kernels that are new become an object file together (generator.h), which is loaded (object.h). One mutex
   guards everything, since LLVM contexts are not thread-safe and compiles are rare. */
#include "jit/jit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "jit/cache.h"
#include "jit/codegen.h"
#include "jit/generator.h"
#include "jit/machine.h"
#include "jit/object.h"

struct ax_compiler {
  pthread_mutex_t lock;
  ax_cache cache;
  uint64_t found; /* kernels that were in it */
  ax_generator generator;
  ax_object *objects; /* whose code the cache has */
  uint32_t object_count, object_capacity;
};

ax_status ax_jit_create_narrow(ax_compiler **out, uint32_t most_vector_bytes) {
  *out = NULL;
  if (!ax_object_supported()) return ax_error(AX_ABSENT, "kernels are compiled for x86-64 and 64-bit ARM alone");
  ax_compiler *jit = *out = ax_calloc(1, sizeof *jit);
  if (jit == NULL) return ax_out_of_memory(sizeof *jit);
  jit->generator.most_vector_bytes = most_vector_bytes;
  pthread_mutex_init(&jit->lock, NULL);
  return AX_OK;
}

ax_status ax_jit_create(ax_compiler **out) { return ax_jit_create_narrow(out, 0); }

void ax_jit_destroy(ax_compiler *jit) {
  if (jit == NULL) return;
  for (uint32_t i = 0; i < jit->object_count; i++) ax_object_unload(&jit->objects[i]);
  ax_free(jit->objects);
  ax_generator_deinit(&jit->generator);
  ax_cache_deinit(&jit->cache);
  pthread_mutex_destroy(&jit->lock);
  ax_free(jit);
}

/* --- Compiling --- */

/* What the code generator itself calls is the C library's (floor, where the machine has no instruction for it; memset). */
static ax_object_function find_function(const char *name) {
  ax_object_function found = ax_math_find(name);
  void *symbol = found == NULL ? dlsym(RTLD_DEFAULT, name) : NULL;
  if (symbol != NULL) memcpy(&found, &symbol, sizeof found);
  return found;
}

/* The object's functions are those of the entries from `first` on. */
static ax_status load_entries(ax_compiler *jit, uint32_t first, const void *object, size_t bytes) {
  const uint32_t count = jit->cache.count - first;
  AX_TRY(ax_grow(&jit->objects, sizeof jit->objects[0], jit->object_count, 1, &jit->object_capacity));
  ax_object_function *functions = ax_alloc(count * sizeof functions[0]);
  if (functions == NULL) return ax_out_of_memory(count * sizeof functions[0]);
  ax_status status =
      ax_object_load(object, bytes, find_function, AX_KERNEL_PREFIX, count, functions, &jit->objects[jit->object_count]);
  for (uint32_t i = 0; i < count && status == AX_OK; i++) jit->cache.entries[first + i].code = (ax_kernel_code)functions[i];
  if (status == AX_OK) jit->object_count++;
  ax_free(functions);
  return status;
}

static ax_status compile_entries(ax_compiler *jit, uint32_t first) {
  const uint32_t count = jit->cache.count - first;
  void *object = NULL;
  size_t bytes = 0;
  ax_unit *units = ax_alloc(count * sizeof units[0]);
  if (units == NULL) return ax_out_of_memory(count * sizeof units[0]);
  for (uint32_t i = 0; i < count; i++) units[i] = (ax_unit){jit->cache.entries[first + i].kernel, jit->cache.entries[first + i].strand};
  ax_status status = ax_generator_emit(&jit->generator, units, count, &object, &bytes);
  if (status == AX_OK) status = load_entries(jit, first, object, bytes);
  ax_free(object);
  ax_free(units);
  return status;
}

static ax_status find_kernels(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, uint32_t *entries) {
  for (uint32_t i = 0; i < count; i++) {
    if (kernels[i]->failed) return ax_out_of_memory(0);
    AX_TRY(ax_cache_get(&jit->cache, kernels[i], &entries[i]));
  }
  return AX_OK;
}

static ax_status find_strands(ax_compiler *jit, const ax_strand *const *strands, uint32_t count, uint32_t *entries) {
  for (uint32_t i = 0; i < count; i++) AX_TRY(ax_cache_get_strand(&jit->cache, strands[i], &entries[i]));
  return AX_OK;
}

static ax_status compile_locked(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, const ax_strand *const *strands, uint32_t strand_count,
                                uint32_t *entries) {
  uint32_t before = jit->cache.count;
  ax_status status = find_kernels(jit, kernels, count, entries);
  if (status == AX_OK) status = find_strands(jit, strands, strand_count, entries + count);
  if (status == AX_OK && jit->cache.count > before) status = compile_entries(jit, before);
  if (status != AX_OK) ax_cache_truncate(&jit->cache, before);
  else jit->found += count + strand_count - (jit->cache.count - before);
  return status;
}

ax_status ax_jit_compile_all(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, ax_kernel_code *out, const ax_strand *const *strands,
                             uint32_t strand_count, ax_kernel_code *strand_out) {
  uint32_t *entries = ax_alloc((count + (size_t)strand_count) * sizeof entries[0]);
  if (entries == NULL) return ax_out_of_memory((count + (size_t)strand_count) * sizeof entries[0]);
  pthread_mutex_lock(&jit->lock);
  ax_status status = compile_locked(jit, kernels, count, strands, strand_count, entries);
  for (uint32_t i = 0; i < count; i++) out[i] = status == AX_OK ? jit->cache.entries[entries[i]].code : NULL;
  for (uint32_t i = 0; i < strand_count; i++) strand_out[i] = status == AX_OK ? jit->cache.entries[entries[count + i]].code : NULL;
  pthread_mutex_unlock(&jit->lock);
  ax_free(entries);
  return status;
}

ax_status ax_jit_compile(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, ax_kernel_code *out) {
  return ax_jit_compile_all(jit, kernels, count, out, NULL, 0, NULL);
}

void ax_jit_count(ax_compiler *jit, uint64_t *compiled, uint64_t *found) {
  pthread_mutex_lock(&jit->lock);
  *compiled = jit->cache.count;
  *found = jit->found;
  pthread_mutex_unlock(&jit->lock);
}
