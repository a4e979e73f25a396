/* Helpers for tests of the file formats: a heap that counts calls and fails on demand, a temporary folder, seeded random bytes. */
#ifndef AX_BRIDGE_FILES_TEST_H
#define AX_BRIDGE_FILES_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bridge/npy.h"

/* --- The heap --- */
typedef struct test_heap {
  long live, calls, fail_at; /* the call that fails, from 1; 0: none */
  size_t largest;
} test_heap;
static test_heap heap;

static inline void *heap_allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  if (bytes > heap.largest) heap.largest = bytes;
  void *memory = NULL;
  if (++heap.calls == heap.fail_at || posix_memalign(&memory, align, bytes) != 0) return NULL;
  heap.live++;
  return memory;
}

static inline void heap_release(void *user, void *memory) {
  (void)user;
  heap.live--;
  free(memory);
}

static inline void heap_reset(long fail_at) { heap = (test_heap){.live = heap.live, .fail_at = fail_at}; }

/* --- The folder --- */
static char folder[PATH_MAX / 2];

static inline const char *in_folder(const char *name) {
  static char paths[4][PATH_MAX];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, PATH_MAX, "%s/%s", folder, name);
  return path;
}

static inline int folder_entries(void) {
  int count = 0;
  DIR *open = opendir(folder);
  assert_non_null(open);
  for (struct dirent *entry; (entry = readdir(open)) != NULL;) count += entry->d_name[0] != '.';
  closedir(open);
  return count;
}

static inline void folder_clear(void) {
  DIR *open = opendir(folder);
  assert_non_null(open);
  for (struct dirent *entry; (entry = readdir(open)) != NULL;)
    if (entry->d_name[0] != '.') remove(in_folder(entry->d_name));
  closedir(open);
}

static inline int files_setup(void **state) {
  (void)state;
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/axle-files-XXXXXX", base != NULL ? base : "/tmp");
  ax_set_allocator(&(ax_allocator){heap_allocate, heap_release, NULL});
  return mkdtemp(folder) == NULL;
}

static inline int files_teardown(void **state) {
  (void)state;
  folder_clear();
  ax_set_allocator(NULL);
  return rmdir(folder);
}

/* Each test ends with nothing allocated, and begins with an empty folder. */
static inline int files_before(void **state) {
  (void)state;
  folder_clear();
  heap = (test_heap){0};
  return 0;
}

static inline int files_after(void **state) {
  (void)state;
  return heap.live != 0;
}

static inline void file_put(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

/* malloc'd */
static inline unsigned char *file_get(const char *path, size_t *count) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *count = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*count + 1);
  assert_int_equal(fread(bytes, 1, *count, file), *count);
  fclose(file);
  return bytes;
}

/* Makes writes beyond `bytes` fail, as a full disk does; RLIM_INFINITY ends it. */
static inline void limit_file_size(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Runs `work` in a process whose files may hold `bytes`, and which SIGXFSZ ends if it writes more. True: the process ran to its
   end, and `work` returned true. */
static inline bool within_file_size(rlim_t bytes, bool (*work)(void)) {
  int status;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    limit_file_size(bytes);
    signal(SIGXFSZ, SIG_DFL);
    _exit(work() ? 0 : 1);
  }
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline size_t file_bytes(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return (size_t)info.st_size;
}

/* --- Bytes --- */
static inline uint64_t next_random(uint64_t *state) { /* xorshift64 */
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

/* Changes a few bytes, and now and then the length: cut, or grown up to `capacity` with random bytes. */
static inline size_t mutate(unsigned char *bytes, size_t count, size_t capacity, uint64_t *state) {
  uint64_t changes = 1 + next_random(state) % 4;
  for (uint64_t i = 0; i < changes; i++) {
    static const unsigned char telling[] = {0, 1, 0x7f, 0x80, 0xff, '(', ')', ',', '\'', '9', '\n'};
    uint64_t choice = next_random(state);
    unsigned char *target = &bytes[next_random(state) % count];
    if (choice % 4 == 0) *target ^= (unsigned char)(1 << choice / 4 % 8);
    else if (choice % 4 == 1) *target = (unsigned char)(choice >> 8);
    else *target = telling[(choice >> 8) % sizeof telling];
  }
  if (next_random(state) % 8 != 0) return count;
  size_t length = 1 + next_random(state) % capacity;
  for (size_t i = count; i < length; i++) bytes[i] = (unsigned char)next_random(state);
  return length;
}

/* A buffer of exactly `count` bytes, so that a sanitizer sees a read past it: malloc'd. */
static inline unsigned char *exact_copy(const void *bytes, size_t count) {
  unsigned char *copy = malloc(count > 0 ? count : 1);
  if (count > 0) memcpy(copy, bytes, count);
  return copy;
}

static inline void assert_message(const char *part) {
  if (strstr(ax_message(), part) == NULL) fail_msg("no \"%s\" in \"%s\"", part, ax_message());
}

static inline void assert_cleared(const ax_host_array *array) {
  assert_null(array->data);
  assert_int_equal(array->dtype, AX_NO_DTYPE);
  assert_int_equal(array->rank, 0);
}

/* An array of `dims` filled with a pattern (for bools, zeros and ones); release it. */
static inline ax_host_array patterned(ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_host_array array = {.dtype = dtype, .rank = rank};
  size_t elems = 1;
  for (uint32_t i = 0; i < rank; i++) elems *= (size_t)(array.dims[i] = dims[i]);
  size_t bytes = elems * ax_dtype_bytes(dtype);
  unsigned char *data = array.data = ax_alloc(bytes);
  for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(dtype == AX_BOOL ? i % 3 == 1 : i * 37 + 11);
  return array;
}

static inline void assert_array_equal(const ax_host_array *a, const ax_host_array *b) {
  size_t bytes = ax_dtype_bytes(a->dtype);
  assert_int_equal(a->dtype, b->dtype);
  assert_int_equal(a->rank, b->rank);
  for (uint32_t i = 0; i < a->rank; i++) {
    assert_int_equal(a->dims[i], b->dims[i]);
    bytes *= (size_t)a->dims[i];
  }
  assert_non_null(b->data);
  assert_memory_equal(a->data, b->data, bytes);
}

#endif
