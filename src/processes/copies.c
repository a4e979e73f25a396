#include "processes/copies.h"

#include <unistd.h>

#include "processes/shared_memory.h"

struct ax_copy {
  _Alignas(64) ax_copy *next;
  size_t bytes; /* of the copy that it is for, at most */
};
_Static_assert(sizeof(ax_copy) == 64, "the bytes behind it begin at a line of the cache");

void ax_copies_init(ax_copies *copies) {
  *copies = (ax_copies){.process = getpid()};
  pthread_mutex_init(&copies->lock, NULL);
}

static void free_all(ax_copy *list) {
  for (ax_copy *next; list != NULL; list = next) {
    next = list->next;
    ax_shared_or_own_free(list, sizeof *list + list->bytes);
  }
}

static bool is_forked(const ax_copies *copies) { return copies->process != getpid(); }

void ax_copies_deinit(ax_copies *copies) {
  if (!is_forked(copies)) free_all(copies->kept);
  pthread_mutex_destroy(&copies->lock);
}

/* --- Making --- */

static ax_copy *make(size_t bytes) {
  ax_copy *copy = bytes <= SIZE_MAX / 2 ? ax_shared_or_own_alloc(sizeof *copy + bytes) : NULL;
  if (copy != NULL) *copy = (ax_copy){.bytes = bytes};
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

/* --- Taking and giving back --- */

/* Takes out those that were given back first, until all others and what is in use are no more than ever was in use. */
static ax_copy *beyond(ax_copies *copies) {
  ax_copy **link = &copies->kept;
  for (size_t bytes = copies->bytes_used; *link != NULL && (bytes += (*link)->bytes) <= copies->bytes_most;) link = &(*link)->next;
  ax_copy *rest = *link;
  *link = NULL;
  return rest;
}

static ax_copy *take_all(ax_copies *copies) {
  pthread_mutex_lock(&copies->lock);
  ax_copy *kept = copies->kept;
  copies->kept = NULL;
  pthread_mutex_unlock(&copies->lock);
  return kept;
}

void *ax_copies_take(ax_copies *copies, size_t bytes) {
  if (is_forked(copies)) return NULL;
  pthread_mutex_lock(&copies->lock);
  ax_copy *copy = fitting(copies, bytes);
  pthread_mutex_unlock(&copies->lock);
  if (copy == NULL && (copy = make(bytes)) == NULL) { /* what is kept may make room */
    free_all(take_all(copies));
    copy = make(bytes);
  }
  if (copy == NULL) return NULL;
  pthread_mutex_lock(&copies->lock);
  copies->bytes_used += copy->bytes;
  if (copies->bytes_used > copies->bytes_most) copies->bytes_most = copies->bytes_used;
  ax_copy *rest = beyond(copies);
  pthread_mutex_unlock(&copies->lock);
  free_all(rest);
  return copy + 1;
}

void ax_copies_give(ax_copies *copies, void *memory) {
  if (memory == NULL || is_forked(copies)) return;
  ax_copy *copy = (ax_copy *)memory - 1;
  pthread_mutex_lock(&copies->lock);
  copies->bytes_used -= copy->bytes;
  copy->next = copies->kept;
  copies->kept = copy;
  ax_copy *rest = beyond(copies);
  pthread_mutex_unlock(&copies->lock);
  free_all(rest);
}
