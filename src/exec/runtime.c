/* The runtime: options, pooled memory, workers, and the cache of executables. */
#include <string.h>
#include <unistd.h>

#include "exec/exec.h"
#include "exec/pending.h"

/* --- The pool: free blocks by power of two, because touching fresh memory costs a hundred times what copying does. --- */

typedef struct ax_pool_block {
  struct ax_pool_block *next;
  size_t bytes;
} ax_pool_block;

/* Sizes that are pooled: up to 64 KiB the powers of two, then eight between each and the next, so that little is wasted. Gives the number
   of the size, and rounds *bytes up to it. */
static uint32_t round_to_size(size_t *bytes) {
  uint32_t power = 6;
  while (((size_t)1 << power) < *bytes) power++;
  size_t top = (size_t)1 << power, step = top / 16; /* more than half of `top` is wanted */
  uint32_t steps = power <= 16 ? 16 : (uint32_t)((*bytes + step - 1) / step);
  *bytes = power <= 16 ? top : steps * step;
  return power * 8 + (steps - 1) % 8;
}

ax_status ax_pool_alloc(ax_runtime *runtime, size_t bytes, void **out) {
  if (bytes > SIZE_MAX / 4) return ax_out_of_memory(bytes);
  size_t rounded = bytes;
  uint32_t size = round_to_size(&rounded);
  pthread_mutex_lock(&runtime->lock);
  ax_pool_block *block = runtime->pool[size];
  if (block != NULL) {
    runtime->pool[size] = block->next;
  } else {
    runtime->bytes_now += rounded;
    if (runtime->bytes_now > runtime->bytes_peak) runtime->bytes_peak = runtime->bytes_now;
  }
  pthread_mutex_unlock(&runtime->lock);
  *out = block != NULL ? block : ax_alloc(rounded);
  if (*out != NULL && AX_HOSTILE) memset(*out, 0xff, rounded);
  if (*out != NULL) return AX_OK;
  pthread_mutex_lock(&runtime->lock);
  runtime->bytes_now -= rounded;
  pthread_mutex_unlock(&runtime->lock);
  return ax_out_of_memory(bytes);
}

void ax_pool_free(ax_runtime *runtime, void *memory, size_t bytes) {
  if (memory == NULL) return;
  ax_pool_block *block = memory;
  block->bytes = bytes;
  uint32_t size = round_to_size(&block->bytes);
  pthread_mutex_lock(&runtime->lock);
  ax_pool_block **bin = &runtime->pool[size];
  block->next = *bin;
  *bin = block;
  pthread_mutex_unlock(&runtime->lock);
}

static void free_pool(ax_runtime *runtime) {
  for (size_t i = 0; i < AX_COUNT(runtime->pool); i++)
    while (runtime->pool[i] != NULL) {
      ax_pool_block *block = runtime->pool[i];
      runtime->pool[i] = block->next;
      runtime->bytes_now -= block->bytes;
      ax_free(block);
    }
}

void ax_runtime_trim(ax_runtime *runtime) {
  if (runtime == NULL) return;
  pthread_mutex_lock(&runtime->lock);
  free_pool(runtime);
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
  atomic_init(&runtime->owners, 1);
  runtime->process = getpid();
  pthread_mutex_init(&runtime->lock, NULL);
  pthread_mutex_init(&runtime->order, NULL);
  ax_compute_start();
  ax_status status = ax_jit_create(&runtime->jit);
  if (status == AX_OK) status = ax_workers_create(runtime->options.workers - 1, &runtime->workers);
  if (status != AX_OK) {
    ax_runtime_destroy(runtime);
    *out = NULL;
  }
  return status;
}

ax_runtime *ax_runtime_hold(ax_runtime *runtime) {
  atomic_fetch_add_explicit(&runtime->references, 1, memory_order_relaxed);
  return runtime;
}

bool ax_runtime_let_go(ax_runtime *runtime) { return atomic_fetch_sub(&runtime->references, 1) == 1; }

void ax_runtime_destroy(ax_runtime *runtime) {
  ax_workers_destroy(runtime->workers);
  ax_jit_destroy(runtime->jit);
  free_pool(runtime);
  if (runtime->process == getpid()) { /* else a thread that is not here may hold them */
    pthread_mutex_destroy(&runtime->lock);
    pthread_mutex_destroy(&runtime->order);
  }
  ax_free(runtime);
}

ax_runtime *ax_runtime_retain(ax_runtime *runtime) {
  if (runtime == NULL) return NULL;
  atomic_fetch_add_explicit(&runtime->owners, 1, memory_order_relaxed);
  return ax_runtime_hold(runtime);
}

void ax_runtime_release(ax_runtime *runtime) {
  if (runtime == NULL) return;
  if (atomic_fetch_sub(&runtime->owners, 1) == 1 && runtime->process == getpid()) ax_pending_wait_for_all(runtime);
  ax_runtime_drop(runtime);
}
