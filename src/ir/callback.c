/* Callbacks: reference counts, and lookup by name. */
#include "ir/callback.h"

#include <stdatomic.h>
#include <string.h>

ax_status ax_callback_make(const char *name, size_t length, ax_callback **out) {
  *out = NULL;
  if (length == 0 || length > AX_MAX_CALLBACK_NAME)
    return ax_error(AX_INVALID_ARGUMENT, "a callback's name has 1 to %d bytes, not %zu", AX_MAX_CALLBACK_NAME, length);
  ax_callback *callback = ax_calloc(1, sizeof *callback + length + 1);
  if (callback == NULL) return ax_out_of_memory(sizeof *callback + length + 1);
  atomic_init(&callback->references, 1);
  memcpy(callback->name, name, length);
  *out = callback;
  return AX_OK;
}

ax_status ax_callback_create(const char *name, ax_callback_function function, void *context, void (*release)(void *context),
                             ax_callback **out) {
  *out = NULL;
  AX_TRY(ax_require(name, "name"));
  if (function == NULL) return ax_error(AX_INVALID_ARGUMENT, "callback \"%.255s\" has no function", name);
  AX_TRY(ax_callback_make(name, strlen(name), out));
  (*out)->function = function;
  (*out)->context = context;
  (*out)->release = release;
  return AX_OK;
}

ax_callback *ax_callback_retain(ax_callback *callback) {
  if (callback != NULL) atomic_fetch_add_explicit(&callback->references, 1, memory_order_relaxed);
  return callback;
}

void ax_callback_release(ax_callback *callback) {
  if (callback == NULL || atomic_fetch_sub(&callback->references, 1) != 1) return;
  if (callback->release != NULL) callback->release(callback->context);
  ax_free(callback);
}

const char *ax_callback_name(const ax_callback *callback) { return callback != NULL ? callback->name : NULL; }

bool ax_callback_equal(const ax_callback *a, const ax_callback *b) {
  return a == b || (a->function == b->function && a->context == b->context && strcmp(a->name, b->name) == 0);
}

/* --- By name --- */

void ax_callbacks_init(ax_callbacks *callbacks) { pthread_mutex_init(&callbacks->lock, NULL); }

void ax_callbacks_deinit(ax_callbacks *callbacks) {
  for (uint32_t i = 0; i < callbacks->count; i++) ax_callback_release(callbacks->v[i]);
  ax_free(callbacks->v);
}

/* With the lock held. */
static ax_callback *find(const ax_callbacks *callbacks, const char *name) {
  for (uint32_t i = 0; i < callbacks->count; i++)
    if (strcmp(callbacks->v[i]->name, name) == 0) return callbacks->v[i];
  return NULL;
}

ax_status ax_callbacks_add(ax_callbacks *callbacks, ax_callback *callback) {
  ax_status status = AX_OK;
  pthread_mutex_lock(&callbacks->lock);
  const ax_callback *other = find(callbacks, callback->name);
  if (other == NULL) {
    status = ax_grow(&callbacks->v, sizeof callbacks->v[0], callbacks->count, 1, &callbacks->capacity);
    if (status == AX_OK) callbacks->v[callbacks->count++] = ax_callback_retain(callback);
  } else if (!ax_callback_equal(other, callback)) {
    status = ax_error(AX_INVALID_ARGUMENT, "another callback \"%s\" is registered already", callback->name);
  }
  pthread_mutex_unlock(&callbacks->lock);
  return status;
}

ax_callback *ax_callbacks_find(ax_callbacks *callbacks, const char *name) {
  if (callbacks == NULL) return NULL;
  pthread_mutex_lock(&callbacks->lock);
  ax_callback *found = find(callbacks, name);
  pthread_mutex_unlock(&callbacks->lock);
  return found;
}

ax_status ax_callback_resolve(const ax_hooks *hooks, ax_callback *callback, ax_callback **out) {
  *out = callback;
  if (callback->function != NULL) return AX_OK;
  *out = hooks != NULL ? ax_callbacks_find(hooks->callbacks, callback->name) : NULL;
  if (*out != NULL) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "no callback \"%s\" is registered (ax_runtime_register)", callback->name);
}
