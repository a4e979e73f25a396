#include "processes/copies.h"

#include "processes/shared_memory.h"

enum { line = 64 };

struct ax_copy {
  _Alignas(64) ax_copy *next;
  void *memory; /* that was allocated, which begins here or just before */
  size_t bytes; /* of the copy that it is for, at most */
  size_t whole; /* that were allocated */
  bool shared;
};
_Static_assert(sizeof(ax_copy) == line, "the bytes behind it begin at a line");

void ax_copies_init(ax_copies *copies) {
  *copies = (ax_copies){0};
  pthread_mutex_init(&copies->lock, NULL);
}

static void free_copy(ax_copy *copy) {
  if (copy->shared) (void)ax_shared_memory_free(copy->memory, copy->whole);
  else ax_free(copy->memory);
}

void ax_copies_deinit(ax_copies *copies) {
  for (ax_copy *next, *copy = copies->kept; copy != NULL; copy = next) {
    next = copy->next;
    free_copy(copy);
  }
  pthread_mutex_destroy(&copies->lock);
}

/* --- Taking --- */

static ax_copy *make(size_t bytes) {
  const size_t whole = bytes + 2 * line;
  if (bytes > SIZE_MAX / 2) return NULL;
  void *memory = ax_shared_memory_alloc(whole);
  const bool shared = memory != NULL;
  if (!shared && (memory = ax_alloc(whole)) == NULL) return NULL;
  ax_copy *copy = (ax_copy *)(((uintptr_t)memory + line - 1) / line * line);
  *copy = (ax_copy){.memory = memory, .bytes = bytes, .whole = whole, .shared = shared};
  return copy;
}

/* The smallest that is large enough, and not twice as large. */
static ax_copy *fitting(ax_copies *copies, size_t bytes) {
  ax_copy **best = NULL;
  for (ax_copy **link = &copies->kept; *link != NULL; link = &(*link)->next)
    if ((*link)->bytes >= bytes && (*link)->bytes / 2 <= bytes && (best == NULL || (*link)->bytes < (*best)->bytes)) best = link;
  ax_copy *copy = best != NULL ? *best : NULL;
  if (copy != NULL) *best = copy->next;
  return copy;
}

void *ax_copies_take(ax_copies *copies, size_t bytes) {
  pthread_mutex_lock(&copies->lock);
  ax_copy *copy = fitting(copies, bytes);
  pthread_mutex_unlock(&copies->lock);
  if (copy == NULL && (copy = make(bytes)) == NULL) return NULL;
  pthread_mutex_lock(&copies->lock);
  copies->bytes_used += copy->bytes;
  if (copies->bytes_used > copies->bytes_most) copies->bytes_most = copies->bytes_used;
  pthread_mutex_unlock(&copies->lock);
  return copy + 1;
}

/* --- Giving back --- */

/* Takes out those that were given back first, until all others and what is in use are no more than ever was in use. */
static ax_copy *beyond(ax_copies *copies) {
  ax_copy **link = &copies->kept;
  for (size_t bytes = copies->bytes_used; *link != NULL && (bytes += (*link)->bytes) <= copies->bytes_most;) link = &(*link)->next;
  ax_copy *rest = *link;
  *link = NULL;
  return rest;
}

void ax_copies_give(ax_copies *copies, void *memory) {
  if (memory == NULL) return;
  ax_copy *copy = (ax_copy *)memory - 1;
  pthread_mutex_lock(&copies->lock);
  copies->bytes_used -= copy->bytes;
  copy->next = copies->kept;
  copies->kept = copy;
  ax_copy *rest = beyond(copies);
  pthread_mutex_unlock(&copies->lock);
  for (ax_copy *next; rest != NULL; rest = next) {
    next = rest->next;
    free_copy(rest);
  }
}
