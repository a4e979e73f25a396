#include "base/shared.h"

#include <stdatomic.h>

struct ax_shared {
  _Alignas(64) atomic_size_t references; /* so that the memory behind it is aligned */
  void (*release)(void *context); /* NULL: the memory stands behind this */
  void *context;
  void (*forget)(void *context, const void *start, size_t bytes); /* NULL: nothing can be forgotten */
};

ax_status ax_shared_create(size_t bytes, ax_shared **out) {
  *out = bytes <= SIZE_MAX - sizeof(ax_shared) ? ax_alloc(sizeof(ax_shared) + bytes) : NULL;
  if (*out == NULL) return ax_out_of_memory(bytes);
  (*out)->release = NULL, (*out)->context = NULL, (*out)->forget = NULL;
  atomic_init(&(*out)->references, 1);
  return AX_OK;
}

ax_status ax_shared_lend(void (*release)(void *context), void *context, ax_shared **out) {
  AX_TRY(ax_shared_create(0, out));
  (*out)->release = release, (*out)->context = context;
  return AX_OK;
}

void ax_shared_set_forget(ax_shared *shared, void (*forget)(void *context, const void *start, size_t bytes)) {
  shared->forget = forget;
}

void ax_shared_forget(const ax_shared *shared, const void *start, size_t bytes) {
  if (shared != NULL && shared->forget != NULL) shared->forget(shared->context, start, bytes);
}

void *ax_shared_data(ax_shared *shared) { return shared + 1; }

ax_shared *ax_shared_retain(ax_shared *shared) {
  if (shared != NULL) atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
  return shared;
}

void ax_shared_release(ax_shared *shared) {
  if (shared == NULL || atomic_fetch_sub_explicit(&shared->references, 1, memory_order_acq_rel) != 1) return;
  if (shared->release != NULL) shared->release(shared->context);
  ax_free(shared);
}
