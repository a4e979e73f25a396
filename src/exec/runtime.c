/* The runtime: options, pooled memory, workers, and the cache of executables. */
#include <string.h>
#include <unistd.h>

#include "exec/exec.h"

/* --- The pool: free blocks by power of two, because touching fresh memory costs a hundred times what copying does. --- */

typedef struct ax_pool_block {
  struct ax_pool_block *next;
  size_t bytes;
} ax_pool_block;

static uint32_t class_of(size_t bytes) {
  uint32_t class = 6;
  while (((size_t)1 << class) < bytes) class++;
  return class;
}

/* Large blocks are exact to 1/8 of their power of two, so that little is wasted. */
static size_t class_bytes(size_t bytes) {
  size_t top = (size_t)1 << class_of(bytes), step = top / 16;
  if (top <= 1 << 16) return top;
  return (bytes + step - 1) / step * step;
}

ax_status ax_pool_alloc(ax_runtime *runtime, size_t bytes, void **out) {
  if (bytes > SIZE_MAX / 4) return ax_out_of_memory(bytes);
  size_t rounded = class_bytes(bytes);
  void *found = NULL;
  pthread_mutex_lock(&runtime->lock);
  for (ax_pool_block **link = &runtime->pool[class_of(rounded)]; *link != NULL; link = &(*link)->next)
    if ((*link)->bytes == rounded) {
      found = *link;
      *link = (*link)->next;
      break;
    }
  if (found == NULL) {
    runtime->bytes_now += rounded;
    if (runtime->bytes_now > runtime->bytes_peak) runtime->bytes_peak = runtime->bytes_now;
  }
  pthread_mutex_unlock(&runtime->lock);
  if (found == NULL) found = ax_alloc(rounded);
  *out = found;
  if (found != NULL) return AX_OK;
  pthread_mutex_lock(&runtime->lock);
  runtime->bytes_now -= rounded;
  pthread_mutex_unlock(&runtime->lock);
  return ax_out_of_memory(bytes);
}

void ax_pool_free(ax_runtime *runtime, void *memory, size_t bytes) {
  if (memory == NULL) return;
  ax_pool_block *block = memory;
  block->bytes = class_bytes(bytes);
  pthread_mutex_lock(&runtime->lock);
  ax_pool_block **bin = &runtime->pool[class_of(block->bytes)];
  block->next = *bin;
  *bin = block;
  pthread_mutex_unlock(&runtime->lock);
}

void ax_runtime_trim(ax_runtime *runtime) {
  if (runtime == NULL) return;
  pthread_mutex_lock(&runtime->lock);
  for (size_t i = 0; i < AX_COUNT(runtime->pool); i++)
    while (runtime->pool[i] != NULL) {
      ax_pool_block *block = runtime->pool[i];
      runtime->pool[i] = block->next;
      runtime->bytes_now -= block->bytes;
      ax_free(block);
    }
  pthread_mutex_unlock(&runtime->lock);
}

void ax_runtime_memory(const ax_runtime *runtime, size_t *now, size_t *peak) {
  ax_runtime *open = (ax_runtime *)runtime; /* the lock is not part of what is const */
  *now = *peak = 0;
  if (runtime == NULL) return;
  pthread_mutex_lock(&open->lock);
  *now = open->bytes_now;
  *peak = open->bytes_peak;
  pthread_mutex_unlock(&open->lock);
}

/* --- The runtime --- */

static uint32_t core_count(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? (uint32_t)cores : 1;
}

static ax_status check_options(const ax_runtime_options *options) {
  if (options == NULL) return AX_OK;
  if (options->max_devices < 0)
    return ax_error(AX_INVALID_ARGUMENT, "runtime: max_devices is %lld", (long long)options->max_devices);
  if (options->policy != AX_POLICY_PARALLEL && options->policy != AX_POLICY_FIXED && options->policy != AX_POLICY_SEEDED)
    return ax_error(AX_INVALID_ARGUMENT, "runtime: %d is no policy", (int)options->policy);
  return AX_OK;
}

ax_status ax_runtime_create(const ax_runtime_options *options, ax_runtime **out) {
  *out = NULL;
  AX_TRY(check_options(options));
  ax_runtime *runtime = *out = ax_calloc(1, sizeof *runtime);
  if (runtime == NULL) return ax_out_of_memory(sizeof *runtime);
  if (options != NULL) runtime->options = *options;
  if (runtime->options.workers == 0) runtime->options.workers = core_count();
  if (runtime->options.max_devices == 0) runtime->options.max_devices = 1 << 20;
  if (runtime->options.policy != AX_POLICY_PARALLEL) runtime->options.workers = 1;
  atomic_init(&runtime->references, 1);
  pthread_mutex_init(&runtime->lock, NULL);
  ax_compute_start();
  ax_status status = ax_jit_create(&runtime->jit);
  if (status == AX_OK && runtime->options.workers > 1) status = ax_workers_create(runtime->options.workers, &runtime->workers);
  if (status != AX_OK) {
    ax_runtime_release(runtime);
    *out = NULL;
  }
  return status;
}

ax_runtime *ax_runtime_retain(ax_runtime *runtime) {
  if (runtime != NULL) atomic_fetch_add_explicit(&runtime->references, 1, memory_order_relaxed);
  return runtime;
}

void ax_runtime_release(ax_runtime *runtime) {
  if (runtime == NULL || atomic_fetch_sub(&runtime->references, 1) != 1) return;
  ax_workers_destroy(runtime->workers);
  ax_jit_destroy(runtime->jit);
  ax_runtime_trim(runtime);
  pthread_mutex_destroy(&runtime->lock);
  ax_free(runtime);
}
