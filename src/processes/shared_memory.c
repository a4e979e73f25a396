#include "processes/shared_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { page = 4096 };

/* Free memory; at its own beginning. */
typedef struct extent {
  struct extent *next; /* at a higher address */
  size_t bytes;
} extent;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static bool tried;
static ax_shared_memory_name own;
static extent *free_memory;

/* --- Making it --- */

/* Where the system promises no more memory than it has, a write to a page that it then cannot give would be a signal. */
static bool promises_freely(void) {
  char mode = '2';
  FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
  if (file == NULL) return false;
  const bool is_read = fread(&mode, 1, 1, file) == 1;
  fclose(file);
  return is_read && mode != '2';
}

static uint64_t memory_of_machine(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes / page * page : 0;
}

static bool map_own(int descriptor, uint64_t bytes) {
  struct stat seen;
  if (ftruncate(descriptor, (off_t)bytes) != 0 || fstat(descriptor, &seen) != 0) return false;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) return false;
#ifdef MADV_HUGEPAGE
  (void)madvise(memory, bytes, MADV_HUGEPAGE); /* refused: pages stay small */
#endif
  own = (ax_shared_memory_name){.address = (uint64_t)(uintptr_t)memory, .bytes = bytes, .number = seen.st_ino,
                                .pid = getpid(), .descriptor = descriptor};
  free_memory = (extent *)memory;
  *free_memory = (extent){.bytes = bytes};
  return true;
}

static void make(void) {
#ifdef MFD_CLOEXEC
  const uint64_t bytes = memory_of_machine();
  tried = true;
  if (bytes == 0 || !ax_file_may_hold(bytes) || !promises_freely()) return;
  const int descriptor = memfd_create("axle", MFD_CLOEXEC);
  if (descriptor >= 0 && !map_own(descriptor, bytes)) close(descriptor);
#else
  tried = true;
#endif
}

ax_shared_memory_name ax_shared_memory_begin(void) {
  pthread_mutex_lock(&lock);
  if (!tried) make();
  const ax_shared_memory_name name = own;
  pthread_mutex_unlock(&lock);
  return name;
}

/* --- Allocating: the first free memory that is long enough --- */

static size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

/* Takes the end of free memory, so that its beginning stays where it is; *link: a pointer to it. */
static char *take(extent **link, size_t bytes) {
  extent *from = *link;
  from->bytes -= bytes;
  if (from->bytes == 0) *link = from->next;
  return (char *)from + from->bytes;
}

void *ax_shared_memory_alloc(size_t bytes) {
  char *memory = NULL;
  if (bytes == 0 || bytes > SIZE_MAX / 2 || !ax_allocator_is_default()) return NULL;
  bytes = whole_pages(bytes);
  pthread_mutex_lock(&lock);
  extent *none = NULL, **link = own.pid == getpid() ? &free_memory : &none;
  while (*link != NULL && (*link)->bytes < bytes) link = &(*link)->next;
  if (*link != NULL) memory = take(link, bytes);
  pthread_mutex_unlock(&lock);
  return memory;
}

/* --- Freeing --- */

static void *end_of(extent *one) { return (char *)one + one->bytes; }

/* Joins a piece of free memory with the next one if nothing lies in between. */
static void join(extent *one) {
  if (one->next == NULL || end_of(one) != one->next) return;
  one->bytes += one->next->bytes;
  one->next = one->next->next;
}

static void put(extent *one) {
  extent *before = NULL;
  for (extent *at = free_memory; at != NULL && at < one; at = at->next) before = at;
  one->next = before != NULL ? before->next : free_memory;
  if (before != NULL) before->next = one;
  else free_memory = one;
  join(one);
  if (before != NULL) join(before);
}

bool ax_shared_memory_free(void *memory, size_t bytes) {
  pthread_mutex_lock(&lock);
  const uint64_t offset = (uint64_t)(uintptr_t)memory - own.address;
  const bool lies = (uint64_t)(uintptr_t)memory >= own.address && offset < own.bytes;
  if (lies && own.pid == getpid()) {
    (void)madvise(memory, whole_pages(bytes), MADV_REMOVE); /* refused: they stay this process's */
    *(extent *)memory = (extent){.bytes = whole_pages(bytes)};
    put(memory);
  }
  pthread_mutex_unlock(&lock);
  return lies;
}

void *ax_shared_or_own_alloc(size_t bytes) {
  void *memory = ax_shared_memory_alloc(bytes);
  return memory != NULL ? memory : ax_alloc(bytes);
}

void ax_shared_or_own_free(void *memory, size_t bytes) {
  if (!ax_shared_memory_free(memory, bytes)) ax_free(memory);
}

/* --- Of another process --- */

ax_shared_view ax_shared_view_open(const ax_shared_memory_name *name) {
  char path[64];
  struct stat seen;
  ax_shared_view view = {0};
  if (name->bytes == 0) return view;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)name->pid, (int)name->descriptor);
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return view;
  if (fstat(descriptor, &seen) == 0 && seen.st_ino == name->number && (uint64_t)seen.st_size == name->bytes) {
    char *at = mmap(NULL, name->bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (at != MAP_FAILED) view = (ax_shared_view){at, name->address, name->bytes};
  }
  close(descriptor);
  return view;
}

void ax_shared_view_close(ax_shared_view *view) {
  if (view->at != NULL) munmap(view->at, view->bytes);
  view->at = NULL;
}
