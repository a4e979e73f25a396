/* The cache and the ways it is filled. New kernels are looked for in the folder (kept.h). Kernels that are not there either are
   compiled together into an object file (generator.h), or several on as many threads if they are many (generators.h), which are
   loaded (object.h) and kept. One mutex guards everything, since LLVM contexts are not thread-safe and compiles are rare. */
#include "jit/jit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/cache.h"
#include "jit/emit/codegen.h"
#include "jit/emit/generators.h"
#include "jit/kept.h"
#include "jit/object/object.h"
#include "jit/llvm/target.h"
#include "jit/turn/turn.h"

struct ax_compiler {
  pthread_mutex_t lock;
  ax_cache cache;
  uint64_t compiled, found, loaded; /* kernels: compiled, in the cache, come from the folder */
  uint64_t most_idle;     /* limit on the bytes of unused code */
  ax_generator generators[AX_MOST_GENERATORS];
  uint32_t threads; /* so many of them are used */
  ax_kept kept;
  ax_digest target; /* where the folder is in use */
  ax_objects objects; /* whose code the cache has */
};

enum { default_idle = 64 << 20 };

ax_status ax_jit_create(const ax_jit_options *options, ax_compiler **out) {
  static const ax_jit_options none;
  *out = NULL;
  if (options == NULL) options = &none;
  if (!ax_object_supported()) return ax_error(AX_ABSENT, "kernels are compiled for x86-64 and 64-bit ARM alone");
  ax_compiler *jit = ax_calloc(1, sizeof *jit);
  if (jit == NULL) return ax_out_of_memory(sizeof *jit);
  const bool keeps = options->folder != NULL && options->f16 == AX_F16_BY_PROCESSOR && !options->gathers &&
                     ax_jit_target(options->most_vector_bytes, options->processor, &jit->target);
  ax_status status = ax_kept_init(&jit->kept, keeps ? options->folder : NULL, options->folder_bytes);
  if (status != AX_OK) {
    ax_free(jit);
    return status;
  }
  jit->threads = options->threads > 0 ? options->threads : 1;
  for (uint32_t i = 0; i < AX_MOST_GENERATORS; i++) {
    jit->generators[i] = (ax_generator){.wanted = {.most_vector_bytes = options->most_vector_bytes,
                                                   .f16_as_f32 = options->f16 == AX_F16_AS_F32,
                                                   .f16_always = options->f16 == AX_F16_AS_F16,
                                                   .gathers = options->gathers}};
    if (i < jit->threads) ax_generator_take_kept(&jit->generators[i]);
  }
  jit->most_idle = options->idle_bytes > 0 ? options->idle_bytes : default_idle;
  pthread_mutex_init(&jit->lock, NULL);
  *out = jit;
  return AX_OK;
}

void ax_jit_destroy(ax_compiler *jit) {
  if (jit == NULL) return;
  ax_objects_deinit(&jit->objects);
  for (uint32_t i = 0; i < AX_MOST_GENERATORS; i++) ax_generator_keep(&jit->generators[i]);
  ax_kept_deinit(&jit->kept);
  ax_cache_deinit(&jit->cache);
  pthread_mutex_destroy(&jit->lock);
  ax_free(jit);
}

/* --- Compiling --- */

#if defined(__x86_64__)
/* The compiler's own, which no library exports: f16 to and from f32 and f64, where the machine has no instruction for that. */
void __extendhfsf2(void), __extendhfdf2(void), __truncsfhf2(void), __truncdfhf2(void);

static ax_object_function find_half(const char *name) {
  static const struct {
    const char *name;
    ax_object_function function;
  } all[] = {{"__extendhfsf2", __extendhfsf2},
             {"__extendhfdf2", __extendhfdf2},
             {"__truncsfhf2", __truncsfhf2},
             {"__truncdfhf2", __truncdfhf2}};
  for (size_t i = 0; i < AX_COUNT(all); i++)
    if (strcmp(name, all[i].name) == 0) return all[i].function;
  return NULL;
}
#else
static ax_object_function find_half(const char *name) {
  (void)name;
  return NULL;
}
#endif

/* The code generator may call C library functions by itself: floor, where the machine has no instruction for it; memset. */
static ax_object_function find_function(const char *name) {
  ax_object_function found = ax_math_find(name);
  if (found == NULL) found = (ax_object_function)ax_turn_find(name);
  if (found == NULL) found = find_half(name);
  void *symbol = found == NULL ? dlsym(RTLD_DEFAULT, name) : NULL;
  if (symbol != NULL) memcpy(&found, &symbol, sizeof found);
  return found;
}

static void add_word(void *digester, uint64_t word) { ax_digester_add(digester, &word, sizeof word); }

static ax_digest key_of(const ax_compiler *jit, const ax_cached *entry) {
  ax_digester digester;
  ax_digester_init(&digester);
  ax_digester_add(&digester, &jit->target, sizeof jit->target);
  add_word(&digester, entry->fused_loop != NULL);
  if (entry->fused_loop != NULL) ax_fused_loop_words(entry->fused_loop, add_word, &digester);
  else ax_kernel_words(entry->kernel, add_word, &digester);
  return ax_digester_finish(&digester);
}

/* Kernels and fused loops in the making: entries of the cache, in order. */
typedef struct batch {
  uint32_t count;
  uint32_t *entries;
  ax_unit *units;
  ax_digest *keys;
  ax_object_function *functions;
} batch;

static ax_status batch_init(ax_arena *arena, uint32_t first, uint32_t count, batch *b) {
  *b = (batch){.count = count};
  b->entries = ax_arena_alloc(arena, count * sizeof b->entries[0]);
  b->units = ax_arena_alloc(arena, count * sizeof b->units[0]);
  b->keys = ax_arena_alloc(arena, count * sizeof b->keys[0]);
  b->functions = ax_arena_alloc(arena, count * sizeof b->functions[0]);
  for (uint32_t i = 0; b->entries != NULL && i < count; i++) b->entries[i] = first + i;
  return b->entries != NULL && b->units != NULL && b->keys != NULL && b->functions != NULL
             ? AX_OK
             : ax_out_of_memory(count * sizeof b->keys[0]);
}

/* Gives code to the entries whose keys the folder has. The batch keeps the others. */
static void find_kept(ax_compiler *jit, batch *b) {
  uint32_t left = 0;
  if (jit->kept.path == NULL) return;
  for (uint32_t i = 0; i < b->count; i++) b->keys[i] = key_of(jit, &jit->cache.entries[b->entries[i]]);
  ax_kept_find(&jit->kept, b->keys, b->count, find_function, b->functions, &jit->objects);
  for (uint32_t i = 0; i < b->count; i++) {
    jit->cache.entries[b->entries[i]].code = (ax_kernel_code)b->functions[i];
    if (b->functions[i] != NULL) continue;
    b->entries[left] = b->entries[i];
    b->keys[left++] = b->keys[i];
  }
  b->count = left;
}

/* Loads what a generator made, and keeps it. */
static ax_status take(ax_compiler *jit, batch *b, const ax_emitted *made) {
  ax_object_function *functions = b->functions + made->first;
  AX_TRY(ax_objects_load(&jit->objects, made->object, made->bytes, find_function, AX_KERNEL_PREFIX, made->count, functions));
  for (uint32_t i = 0; i < made->count; i++)
    jit->cache.entries[b->entries[made->first + i]].code = (ax_kernel_code)functions[i];
  ax_kept_put(&jit->kept, b->keys + made->first, made->count, made->object, made->bytes);
  return AX_OK;
}

static ax_status compile_batch(ax_compiler *jit, batch *b) {
  ax_emitted made[AX_MOST_GENERATORS];
  for (uint32_t i = 0; i < b->count; i++) {
    const ax_cached *entry = &jit->cache.entries[b->entries[i]];
    b->units[i] = (ax_unit){entry->kernel, entry->fused_loop};
  }
  const uint32_t parts = ax_generators_worth(b->units, b->count, jit->threads);
  AX_TRY(ax_generators_emit(jit->generators, parts, b->units, b->count, made));
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < parts; i++) {
    if (status == AX_OK) status = take(jit, b, &made[i]);
    ax_free(made[i].object);
  }
  return status;
}

static ax_status compile_entries(ax_compiler *jit, uint32_t first) {
  batch b;
  ax_arena scratch = {0};
  const uint32_t count = jit->cache.count - first;
  jit->objects.fresh = 0;
  ax_status status = batch_init(&scratch, first, count, &b);
  if (status == AX_OK) find_kept(jit, &b);
  if (status == AX_OK && b.count > 0) status = compile_batch(jit, &b);
  for (uint32_t i = first; i < jit->cache.count && status == AX_OK; i++)
    jit->cache.entries[i].object = ax_objects_of(&jit->objects, (ax_object_function)jit->cache.entries[i].code);
  if (status == AX_OK) jit->compiled += b.count, jit->loaded += count - b.count;
  ax_arena_deinit(&scratch);
  return status;
}

static ax_status find_kernels(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, uint32_t *entries) {
  for (uint32_t i = 0; i < count; i++) {
    if (kernels[i]->failed) return ax_out_of_memory(0);
    AX_TRY(ax_cache_get(&jit->cache, kernels[i], &entries[i]));
  }
  return AX_OK;
}

static ax_status find_fused_loops(ax_compiler *jit, const ax_fused_loop *const *fused_loops, uint32_t count, uint32_t *entries) {
  for (uint32_t i = 0; i < count; i++) AX_TRY(ax_cache_get_fused_loop(&jit->cache, fused_loops[i], &entries[i]));
  return AX_OK;
}

static ax_status compile_locked(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count,
                                const ax_fused_loop *const *fused_loops, uint32_t fused_loop_count, uint32_t *entries) {
  uint32_t before = jit->cache.count;
  ax_status status = find_kernels(jit, kernels, count, entries);
  if (status == AX_OK) status = find_fused_loops(jit, fused_loops, fused_loop_count, entries + count);
  if (status == AX_OK && jit->cache.count > before) status = compile_entries(jit, before);
  if (status != AX_OK) ax_cache_truncate(&jit->cache, before);
  else jit->found += count + fused_loop_count - (jit->cache.count - before);
  return status;
}

/* --- Uses of code --- */

static int by_number(const void *x, const void *y) {
  const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return a < b ? -1 : a > b;
}

/* Replaces entries by the objects that hold their code, each once, and adds a use to each. */
static uint32_t use_objects(ax_compiler *jit, uint32_t *entries, uint32_t count) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; i++) entries[i] = jit->cache.entries[entries[i]].object;
  if (count > 0) qsort(entries, count, sizeof entries[0], by_number);
  for (uint32_t i = 0; i < count; i++)
    if (i == 0 || entries[i] != entries[i - 1]) entries[left++] = entries[i];
  for (uint32_t i = 0; i < left; i++) ax_objects_use(&jit->objects, entries[i]);
  return left;
}

void ax_jit_drop(ax_compiler *jit, ax_jit_use *use) {
  pthread_mutex_lock(&jit->lock);
  for (uint32_t i = 0; i < use->count; i++) ax_objects_drop(&jit->objects, use->objects[i]);
  if (jit->objects.idle_bytes > jit->most_idle) {
    ax_objects_trim(&jit->objects, jit->most_idle / 2); /* half, so that walks over all objects are rare */
    ax_cache_sweep(&jit->cache, &jit->objects);
  }
  pthread_mutex_unlock(&jit->lock);
  ax_free(use->objects);
  *use = (ax_jit_use){0};
}

void ax_jit_trim(ax_compiler *jit) {
  pthread_mutex_lock(&jit->lock);
  ax_objects_trim_all(&jit->objects);
  ax_cache_sweep(&jit->cache, &jit->objects);
  pthread_mutex_unlock(&jit->lock);
}

ax_status ax_jit_compile_all(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, ax_kernel_code *out,
                             const ax_fused_loop *const *fused_loops, uint32_t fused_loop_count, ax_kernel_code *fused_loop_out,
                             ax_jit_use *use) {
  uint32_t *entries = ax_alloc((count + (size_t)fused_loop_count) * sizeof entries[0]);
  if (entries == NULL) return ax_out_of_memory((count + (size_t)fused_loop_count) * sizeof entries[0]);
  pthread_mutex_lock(&jit->lock);
  ax_status status = compile_locked(jit, kernels, count, fused_loops, fused_loop_count, entries);
  for (uint32_t i = 0; i < count; i++) out[i] = status == AX_OK ? jit->cache.entries[entries[i]].code : NULL;
  for (uint32_t i = 0; i < fused_loop_count; i++)
    fused_loop_out[i] = status == AX_OK ? jit->cache.entries[entries[count + i]].code : NULL;
  const uint32_t objects = status == AX_OK ? use_objects(jit, entries, count + fused_loop_count) : 0;
  pthread_mutex_unlock(&jit->lock);
  if (use != NULL && status == AX_OK) *use = (ax_jit_use){entries, objects};
  else ax_free(entries);
  return status;
}

ax_status ax_jit_compile(ax_compiler *jit, const ax_loop_kernel *const *kernels, uint32_t count, ax_kernel_code *out) {
  return ax_jit_compile_all(jit, kernels, count, out, NULL, 0, NULL, NULL);
}

ax_jit_counts ax_jit_count(ax_compiler *jit) {
  pthread_mutex_lock(&jit->lock);
  const ax_jit_counts counts = {jit->compiled, jit->found, jit->loaded, jit->objects.bytes};
  pthread_mutex_unlock(&jit->lock);
  return counts;
}

bool ax_jit_trouble(ax_compiler *jit, char *text, size_t bytes) {
  pthread_mutex_lock(&jit->lock);
  const bool told = snprintf(text, bytes, "%s", jit->kept.trouble) > 0;
  jit->kept.trouble[0] = '\0';
  pthread_mutex_unlock(&jit->lock);
  return told;
}

const char *ax_jit_library(void) { return ax_llvm_library(); }
