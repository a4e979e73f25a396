/* Compiled kernels and fused loops by structure. Not locked: ax_compiler does that. */
#ifndef AX_JIT_CACHE_H
#define AX_JIT_CACHE_H

#include "jit/nest/fused_loop.h"
#include "jit/jit.h"
#include "jit/object/object.h"

typedef struct ax_cached { /* one of the two, the cache's own copy */
  const ax_loop_kernel *kernel;
  const ax_fused_loop *fused_loop;
  uint64_t hash;
  ax_kernel_code code; /* NULL until it is compiled */
  uint32_t object;     /* number of the object that holds the code (ax_objects) */
} ax_cached;

/* Zero-initialise to start. */
typedef struct ax_cache {
  ax_arena arena;
  ax_cached *entries; /* in the order they were added */
  uint32_t count, capacity;
  uint32_t *table; /* open addressing: 1 + entry; 0 is free */
  uint32_t table_size;
} ax_cache;

void ax_cache_deinit(ax_cache *cache);
/* The entry for a kernel, or a fused loop, added without code when there was none. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_cache_get(ax_cache *cache, const ax_loop_kernel *kernel, uint32_t *entry);
AX_MUST_USE ax_status ax_cache_get_fused_loop(ax_cache *cache, const ax_fused_loop *fused_loop, uint32_t *entry);
/* Forgets the entries whose object has been unloaded, and frees their memory. If there is no memory to copy another entry, that
   one is forgotten too: its code stays where it is used, and is compiled again for the next caller. */
void ax_cache_sweep(ax_cache *cache, const ax_objects *objects);
/* Forgets the entries from `count` on. */
void ax_cache_truncate(ax_cache *cache, uint32_t count);

#endif
