/* Rewrites are found by their kernels, of which equal ones are one object, and by which of their slots share a buffer. */
#include "plan/rewrites.h"

#include <string.h>

static const size_t least_limit = (size_t)32 << 20;

/* --- Kernels --- */

static void destroy(ax_pooled_kernel *pooled) {
  ax_arena_deinit(&pooled->own);
  ax_free(pooled);
}

void ax_kernel_pool_deinit(ax_kernel_pool *pool) {
  for (uint32_t i = 0; i < pool->count; i++) destroy(pool->all[i]);
  ax_free(pool->all);
  ax_memo_deinit(&pool->memo);
  ax_arena_deinit(&pool->scratch);
}

/* Forgets remembered rewrites, and frees the kernels without a use. */
static void shrink(ax_kernel_pool *pool) {
  uint32_t kept = 0;
  ax_memo_deinit(&pool->memo);
  pool->bytes = 0;
  for (uint32_t i = 0; i < pool->count; i++) {
    ax_pooled_kernel *pooled = pool->all[i];
    if (pooled->uses == 0) {
      destroy(pooled);
      continue;
    }
    pool->all[kept++] = pooled;
    pool->bytes += pooled->bytes;
  }
  pool->count = kept;
  pool->most_bytes = 2 * pool->bytes > least_limit ? 2 * pool->bytes : least_limit;
}

static ax_pooled_kernel *add(ax_kernel_pool *pool) {
  if (ax_grow(&pool->all, sizeof pool->all[0], pool->count, 1, &pool->capacity) != AX_OK) return NULL;
  ax_pooled_kernel *pooled = ax_calloc(1, sizeof *pooled);
  if (pooled != NULL) pool->all[pool->count++] = pooled;
  return pooled;
}

/* The pool's kernel that equals `kernel`. When there is none yet, `kernel` itself becomes it, or a copy if `copied`: the caller's
   is about to go. */
static ax_pooled_kernel *pooled_kernel(ax_kernel_pool *pool, ax_loop_kernel *kernel, bool copied) {
  const uint64_t hash = ax_kernel_hash(kernel);
  ax_memo_entry *entry = ax_memo_ask(&pool->memo, "kernel", NULL, &hash, sizeof hash);
  if (entry == NULL) return NULL;
  ax_pooled_kernel *pooled = entry->data;
  if (pooled == NULL || !ax_kernel_equal(pooled->kernel, kernel)) {
    size_t bytes = copied ? ax_kernel_copy_bytes(kernel) : 0;
    if ((pooled = add(pool)) == NULL || (copied && !ax_arena_reserve(&pooled->own, bytes))) return NULL;
    pooled->kernel = copied ? ax_kernel_copy(&pooled->own, kernel) : kernel;
    if (pooled->kernel == NULL) return NULL;
    pool->bytes += pooled->bytes = bytes;
    entry->data = pooled;
  }
  pooled->uses++;
  return pooled;
}

ax_pooled_kernel *ax_kernel_pool_find(ax_kernel_pool *pool, ax_loop_kernel *kernel) { return pooled_kernel(pool, kernel, false); }

void ax_kernel_pool_release(ax_pooled_kernel *pooled) {
  if (pooled != NULL) pooled->uses--;
}

/* --- Rewrites --- */

/* A rewrite: one or two kernels, the details of the rewrite, and which of their slots share a buffer. */
typedef struct question {
  const ax_loop_kernel *kernel[2];
  uint64_t detail[2];
  uint8_t same[2 * AX_MAX_SLOTS]; /* by slot, the second kernel's behind the first's: the first slot with its buffer */
} question;

/* The result of a rewrite. */
typedef struct answer {
  ax_pooled_kernel *pooled; /* NULL: it is not possible */
  uint8_t from[AX_MOST_SLOTS]; /* by slot: a slot of the inputs with its buffer */
} answer;

typedef struct rewrite {
  ax_kernel_pool *pool;
  uint32_t buffers[2 * AX_MAX_SLOTS], count; /* of the kernels */
  ax_memo_entry *entry;
  const ax_views *views;
  bool viewed; /* it took a view that is none of the buffers given */
} rewrite;

static uint32_t view_of(void *context, uint32_t buffer, uint32_t rank, const int64_t *dims) {
  rewrite *r = context;
  r->viewed = true;
  return r->views->make(r->views->context, buffer, rank, dims);
}

static void add_kernel(rewrite *r, question *q, uint32_t which, const ax_bound *bound) {
  q->kernel[which] = bound->kernel;
  for (uint32_t i = 0; i < bound->kernel->slot_count; i++) {
    uint32_t k = 0;
    r->buffers[r->count] = bound->buffers[i];
    while (r->buffers[k] != bound->buffers[i]) k++;
    q->same[r->count++] = (uint8_t)k;
  }
}

/* Looks the rewrite up. *known says whether it was made before; then `out` has what came of it. */
static ax_status ask(rewrite *r, ax_kernel_pool *pool, const char *what, const ax_bound *a, const ax_bound *b,
                     const uint64_t detail[2], bool *known, ax_rewritten *out) {
  question q;
  memset(&q, 0, offsetof(question, same));
  q.detail[0] = detail[0];
  q.detail[1] = detail[1];
  r->viewed = false;
  if (pool->most_bytes == 0) pool->most_bytes = least_limit;
  if (pool->bytes > pool->most_bytes) shrink(pool);
  r->pool = pool;
  r->count = 0;
  add_kernel(r, &q, 0, a);
  if (b != NULL) add_kernel(r, &q, 1, b);
  r->entry = ax_memo_ask(&pool->memo, what, NULL, &q, offsetof(question, same) + r->count);
  if (r->entry == NULL) return ax_out_of_memory(sizeof q);
  *known = r->entry->known;
  out->pooled = NULL;
  const answer *answer = r->entry->data;
  if (!*known || answer->pooled == NULL) return AX_OK;
  out->pooled = answer->pooled;
  out->pooled->uses++;
  for (uint32_t i = 0; i < answer->pooled->kernel->slot_count; i++) out->buffers[i] = r->buffers[answer->from[i]];
  return AX_OK;
}

/* Puts the new kernel in the pool, with one use for the caller. */
static ax_status take(ax_kernel_pool *pool, const ax_bound *made, ax_rewritten *out) {
  out->pooled = NULL;
  if (made->kernel == NULL) return AX_OK;
  out->pooled = pooled_kernel(pool, made->kernel, true);
  if (out->pooled == NULL) return ax_out_of_memory(0);
  memcpy(out->buffers, made->buffers, made->kernel->slot_count * sizeof out->buffers[0]);
  return AX_OK;
}

static ax_status remember(rewrite *r, const ax_rewritten *made) {
  answer *answer = ax_arena_alloc(&r->pool->memo.arena, sizeof *answer);
  if (answer == NULL) return ax_out_of_memory(sizeof *answer);
  answer->pooled = made->pooled;
  for (uint32_t i = 0; made->pooled != NULL && i < made->pooled->kernel->slot_count; i++) {
    uint32_t k = 0;
    while (r->buffers[k] != made->buffers[i]) k++;
    answer->from[i] = (uint8_t)k;
  }
  r->entry->data = answer;
  r->entry->known = true;
  return AX_OK;
}

/* made: in the scratch memory, which is emptied. */
static ax_status finish(rewrite *r, ax_status status, const ax_bound *made, ax_rewritten *out) {
  if (status == AX_OK) status = take(r->pool, made, out);
  if (status == AX_OK && !r->viewed) status = remember(r, out);
  ax_arena_empty(&r->pool->scratch);
  return status;
}

ax_status ax_pool_inline(ax_kernel_pool *pool, const ax_bound *producer, uint32_t store, const ax_bound *consumer, uint32_t slot,
                         int64_t offset, const ax_views *views, ax_rewritten *out) {
  rewrite r = {.views = views};
  bool known;
  ax_bound made = {NULL, NULL};
  const ax_views seen = {view_of, &r};
  const uint64_t detail[] = {(uint64_t)store << 32 | slot, (uint64_t)offset};
  AX_TRY(ask(&r, pool, "inline", producer, consumer, detail, &known, out));
  if (known) return AX_OK;
  ax_status status =
      ax_kernel_inline(&pool->scratch, producer, &producer->kernel->stores[store], consumer, slot, offset, &seen, &made);
  return finish(&r, status, &made, out);
}

ax_status ax_pool_merge(ax_kernel_pool *pool, const ax_bound *first, const ax_bound *second, ax_rewritten *out) {
  rewrite r = {0};
  bool known;
  ax_bound made = {NULL, NULL};
  AX_TRY(ask(&r, pool, "merge", first, second, (uint64_t[2]){0, 0}, &known, out));
  if (known) return AX_OK;
  ax_status status = ax_kernel_merge(&pool->scratch, first, second, &made);
  return finish(&r, status, &made, out);
}

/* It takes views, but where it comes to nothing. */
ax_status ax_pool_redimension(ax_kernel_pool *pool, const ax_bound *kernel, uint32_t rank, const int64_t *dims,
                              const ax_views *views, ax_rewritten *out) {
  ax_bound made = {NULL, NULL};
  ax_status status = ax_kernel_redimension(&pool->scratch, kernel, rank, dims, views, &made);
  if (status == AX_OK) status = take(pool, &made, out);
  ax_arena_empty(&pool->scratch);
  return status;
}

ax_status ax_pool_prune(ax_kernel_pool *pool, const ax_bound *kernel, const bool *dropped, ax_rewritten *out) {
  rewrite r = {0};
  bool known;
  uint64_t detail[2] = {0};
  ax_bound made = {NULL, NULL};
  for (uint32_t i = 0; i < kernel->kernel->store_count; i++) detail[0] |= (uint64_t)dropped[i] << i;
  AX_TRY(ask(&r, pool, "prune", kernel, NULL, detail, &known, out));
  if (known) return AX_OK;
  ax_status status = ax_kernel_prune(&pool->scratch, kernel, dropped, &made);
  return finish(&r, status, &made, out);
}
