/* Errors live in a thread-local buffer, so that reporting one never allocates. */
#include "base/base.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { alignment = 64, plain_alignment = 16 };

static _Thread_local char message[AX_ERROR_BYTES];

const char *ax_message(void) { return message; }

void ax_message_keep(ax_message_copy *out) { memcpy(out->text, message, sizeof message); }
void ax_message_put_back(const ax_message_copy *kept) { memcpy(message, kept->text, sizeof message); }

const char *ax_status_name(ax_status status) {
  static const char *const names[] = {"AX_OK",       "AX_INVALID_ARGUMENT", "AX_OUT_OF_MEMORY", "AX_ABSENT",      "AX_PARSE_ERROR",
                                      "AX_IO_ERROR", "AX_DEADLOCK",         "AX_NOT_FINITE",    "AX_UNAVAILABLE", "AX_INTERNAL"};
  return (size_t)status < AX_COUNT(names) ? names[status] : "AX_UNKNOWN";
}

ax_status ax_error(ax_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char fresh[AX_ERROR_BYTES]; /* the arguments may point into the old message */
  vsnprintf(fresh, sizeof fresh, format, arguments);
  va_end(arguments);
  memcpy(message, fresh, sizeof message);
  return code;
}

ax_status ax_error_context(ax_status code, const char *format, ...) {
  char context[AX_ERROR_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(context, sizeof context, format, arguments);
  va_end(arguments);
  return ax_error(code, "%s%s", context, message);
}

ax_status ax_out_of_memory(size_t bytes) {
  if (bytes == 0) return ax_error(AX_OUT_OF_MEMORY, "out of memory");
  return ax_error(AX_OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
}

ax_status ax_require(const void *given, const char *what) {
  return given != NULL ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "there is no %s", what);
}

enum { huge_page = 2 << 20, large = 2 * huge_page };

/* Memory of two huge pages or more is aligned to them, and the system is asked for them. With small pages a pass over it would
   spend most of its time on address translation. The rest beyond the last whole huge page stays in small pages, so that the
   allocation takes no more memory. */
static void *default_allocate(void *user, size_t bytes, size_t align) {
  (void)user;
  void *memory = NULL;
  if (align <= plain_alignment) return malloc(bytes);
  if (bytes >= large && align < huge_page) align = huge_page;
  if (posix_memalign(&memory, align, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (bytes >= large) (void)madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE); /* refused: pages stay small */
#endif
  return memory;
}

static void default_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static const ax_allocator default_allocator = {default_allocate, default_release, NULL};
static ax_allocator allocator = {default_allocate, default_release, NULL};

void ax_set_allocator(const ax_allocator *replacement) {
  allocator = replacement != NULL ? *replacement : default_allocator;
}

bool ax_allocator_is_default(void) { return allocator.allocate == default_allocate; }

void *ax_alloc(size_t bytes) { return allocator.allocate(allocator.user, bytes > 0 ? bytes : 1, alignment); }

void *ax_alloc_array(size_t bytes) { return allocator.allocate(allocator.user, bytes > 0 ? bytes : 1, ax_array_alignment(bytes)); }

void *ax_calloc(size_t count, size_t bytes) {
  size_t total;
  if (!ax_mul_size(count, bytes, &total)) return NULL;
  void *memory = ax_alloc(total);
  if (memory != NULL) memset(memory, 0, total);
  return memory;
}

void *ax_alloc_plain(size_t bytes) { return allocator.allocate(allocator.user, bytes > 0 ? bytes : 1, plain_alignment); }

void *ax_calloc_plain(size_t bytes) {
  void *memory = ax_alloc_plain(bytes);
  if (memory != NULL) memset(memory, 0, bytes);
  return memory;
}

void ax_free(void *memory) {
  if (memory != NULL) allocator.release(allocator.user, memory);
}

ax_status ax_memory_for_library(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ax_out_of_memory(bytes);
  munmap(memory, bytes);
  return AX_OK;
}

bool ax_file_may_hold(uint64_t bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

double ax_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool ax_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
bool ax_mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }

size_t ax_arena_chunk_bytes = 16 * 1024;

struct ax_chunk {
  struct ax_chunk *next;
  size_t used, capacity;
  _Alignas(16) unsigned char data[];
};

static struct ax_chunk *spare_chunk(ax_arena *arena, size_t capacity) {
  struct ax_chunk **link = &arena->spare;
  while (*link != NULL && (*link)->capacity < capacity) link = &(*link)->next;
  struct ax_chunk *chunk = *link;
  if (chunk != NULL) *link = chunk->next;
  return chunk;
}

static struct ax_chunk *add_chunk(ax_arena *arena, size_t capacity) {
  struct ax_chunk *chunk = spare_chunk(arena, capacity);
  if (chunk != NULL) capacity = chunk->capacity;
  else chunk = ax_alloc(sizeof *chunk + capacity);
  if (chunk == NULL) return NULL;
  *chunk = (struct ax_chunk){.next = arena->chunks, .capacity = capacity};
  return arena->chunks = chunk;
}

bool ax_arena_reserve(ax_arena *arena, size_t bytes) { return add_chunk(arena, bytes) != NULL; }

void *ax_arena_alloc(ax_arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  size_t rounded = ax_arena_bytes(bytes);
  struct ax_chunk *chunk = arena->chunks;
  if (chunk == NULL || chunk->capacity - chunk->used < rounded) {
    chunk = add_chunk(arena, rounded > ax_arena_chunk_bytes ? rounded : ax_arena_chunk_bytes);
    if (chunk == NULL) return NULL;
  }
  void *memory = chunk->data + chunk->used;
  chunk->used += rounded;
  memset(memory, 0, rounded);
  return memory;
}

void *ax_arena_copy(ax_arena *arena, const void *data, size_t bytes) {
  void *copy = ax_arena_alloc(arena, bytes);
  if (copy != NULL && bytes > 0) memcpy(copy, data, bytes);
  return copy;
}

static void free_chunks(struct ax_chunk **chunks) {
  while (*chunks != NULL) {
    struct ax_chunk *next = (*chunks)->next;
    ax_free(*chunks);
    *chunks = next;
  }
}

void ax_arena_deinit(ax_arena *arena) {
  free_chunks(&arena->chunks);
  free_chunks(&arena->spare);
}

/* A hostile build keeps nothing, so that what was there is not found again by luck. */
void ax_arena_empty(ax_arena *arena) {
  struct ax_chunk **end = &arena->spare;
  if (AX_HOSTILE) free_chunks(&arena->chunks);
  while (*end != NULL) end = &(*end)->next;
  *end = arena->chunks;
  arena->chunks = NULL;
}

/* A hostile build moves arrays at every step, up to this length, so that no pointer into one outlives it by luck. */
enum { hostile_count = 64 };

ax_status ax_grow(void *items, size_t item_bytes, uint32_t count, uint32_t more, uint32_t *capacity) {
  uint64_t needed = (uint64_t)count + more;
  bool moves = AX_HOSTILE && needed > 0 && needed < hostile_count;
  if (needed <= *capacity && !moves) return AX_OK;
  uint64_t larger = moves ? needed : needed < 8 ? 8 : needed + needed / 2;
  size_t bytes;
  if (larger > AX_NONE || !ax_mul_size(larger, item_bytes, &bytes)) return ax_out_of_memory(SIZE_MAX);
  void *old, *fresh = ax_alloc(bytes);
  memcpy(&old, items, sizeof old);
  if (fresh == NULL) return ax_out_of_memory(bytes);
  if (count > 0) memcpy(fresh, old, count * item_bytes);
  ax_free(old);
  memcpy(items, &fresh, sizeof fresh);
  *capacity = (uint32_t)larger;
  return AX_OK;
}

static bool text_reserve(ax_text *text, size_t more) {
  if (text->failed) return false;
  if (text->capacity - text->length > more) return true;
  size_t capacity = (text->length + more + 1) * 2 + 64;
  char *data = ax_alloc(capacity);
  if (data == NULL) {
    text->failed = true;
    return false;
  }
  if (text->length > 0) memcpy(data, text->data, text->length);
  ax_free(text->data);
  text->data = data;
  text->capacity = capacity;
  return true;
}

void ax_text_add_bytes(ax_text *text, const char *bytes, size_t count) {
  if (!text_reserve(text, count)) return;
  if (count > 0) memcpy(text->data + text->length, bytes, count); /* no bytes may be nowhere */
  text->length += count;
  text->data[text->length] = '\0';
}

static void add_formatted(ax_text *text, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  if (length >= 0 && text_reserve(text, (size_t)length)) {
    vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
}

void ax_text_add(ax_text *text, const char *format, ...) {
  const bool has_point = strcmp(nl_langinfo(RADIXCHAR), ".") == 0; /* then numbers are as in the "C" locale */
  locale_t saved = (locale_t)0;
  va_list arguments;
  if (!has_point && ax_text_locale_enter(&saved) != AX_OK) {
    text->failed = true;
    return;
  }
  va_start(arguments, format);
  add_formatted(text, format, arguments);
  va_end(arguments);
  if (!has_point) ax_text_locale_leave(saved);
}

ax_status ax_text_locale_enter(locale_t *saved) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (plain == (locale_t)0) return ax_out_of_memory(0);
  *saved = uselocale(plain);
  return AX_OK;
}

void ax_text_locale_leave(locale_t saved) { freelocale(uselocale(saved)); }

ax_status ax_text_finish(ax_text *text, char **out) {
  *out = NULL;
  ax_text_add_bytes(text, "", 0);
  if (text->failed) {
    ax_text_deinit(text);
    return ax_out_of_memory(0);
  }
  *out = text->data;
  *text = (ax_text){0};
  return AX_OK;
}

void ax_text_deinit(ax_text *text) {
  ax_free(text->data);
  *text = (ax_text){0};
}

uint64_t ax_hash_bytes(uint64_t seed, const void *data, size_t bytes) {
  const unsigned char *cursor = data;
  uint64_t word;
  for (; bytes >= sizeof word; bytes -= sizeof word, cursor += sizeof word) {
    memcpy(&word, cursor, sizeof word);
    seed = ax_hash_word(seed, word);
  }
  word = 0;
  if (bytes > 0) memcpy(&word, cursor, bytes);
  return ax_hash_word(seed, word << 8 | bytes); /* at most 7 bytes are left: their number has room */
}
