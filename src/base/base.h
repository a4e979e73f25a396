/* Shared by all rooms: errors, allocation, arenas, growing arrays, texts, hashes. */
#ifndef AX_BASE_BASE_H
#define AX_BASE_BASE_H

#include <locale.h>
#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "axle/status.h"

/* Returns the status of a failed call to the caller; the one control-flow macro of the house. */
#define AX_TRY(call)                               \
  do {                                             \
    ax_status ax_try_status_ = (call);             \
    if (ax_try_status_ != AX_OK) return ax_try_status_; \
  } while (0)

#define AX_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AX_NONE UINT32_MAX

/* Sets this thread's message and returns `code`. */
AX_MUST_USE ax_status ax_error(ax_status code, const char *format, ...) AX_PRINTF(2, 3);
/* Puts more text in front of this thread's message; returns `code`. */
AX_MUST_USE ax_status ax_error_context(ax_status code, const char *format, ...) AX_PRINTF(2, 3);
AX_MUST_USE ax_status ax_out_of_memory(size_t bytes); /* 0: some */
/* This thread's message, for a call that succeeds although something in it fails: the caller may still be reading the message of a
   failure before. */
enum { AX_ERROR_BYTES = 8192 };
typedef struct ax_message_copy {
  char text[AX_ERROR_BYTES];
} ax_message_copy;
void ax_message_keep(ax_message_copy *out);
void ax_message_put_back(const ax_message_copy *kept);
/* For arguments of public functions that the caller may have failed to make. NULL: AX_INVALID_ARGUMENT, "there is no <what>". */
AX_MUST_USE ax_status ax_require(const void *given, const char *what);

/* Aligned to 64 bytes, not cleared; NULL on failure (or for 0 bytes: a unique pointer). Through the allocation hooks. */
void *ax_alloc(size_t bytes);
/* Aligned as malloc's, which takes a third of the time: for small objects, of which each call makes some. ax_calloc_plain: cleared. */
void *ax_alloc_plain(size_t bytes);
void *ax_calloc_plain(size_t bytes);
void *ax_calloc(size_t count, size_t bytes);
/* For arrays: 16 KiB and more begin at a page. A processor takes a load for one that depends on a store just before it whose address has
   the same last 12 bits. A loop that writes an array which begins some cache lines further on in its page than one that it reads meets such
   stores all the time, and takes up to twice as long; between arrays that begin alike it meets none. */
enum { AX_PAGE_BYTES = 4096, AX_PAGED_BYTES = 16 << 10 };
static inline size_t ax_array_alignment(size_t bytes) { return bytes >= AX_PAGED_BYTES ? AX_PAGE_BYTES : 64; }
void *ax_alloc_array(size_t bytes);
void ax_free(void *memory);
bool ax_allocator_is_default(void); /* there are no hooks */

/* AX_OUT_OF_MEMORY if the system would not give so many bytes now. Called before libraries that end the process when memory runs
   out. */
AX_MUST_USE ax_status ax_memory_for_library(size_t bytes);

/* Whether a file of this process may grow to so many bytes (RLIMIT_FSIZE). Beyond that, a write would end the process with a
   signal. */
bool ax_file_may_hold(uint64_t bytes);

/* Seconds since an arbitrary moment; only differences have a meaning. */
double ax_seconds(void);

static inline int64_t ax_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ax_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* False on overflow. */
bool ax_mul_size(size_t a, size_t b, size_t *out);
bool ax_mul_i64(int64_t a, int64_t b, int64_t *out);

/* Bump allocation; everything is freed at once. Zero-initialise to start. */
typedef struct ax_arena {
  struct ax_chunk *chunks, *spare; /* in use, the latest first; kept by ax_arena_empty */
} ax_arena;
void *ax_arena_alloc(ax_arena *arena, size_t bytes); /* cleared, 16-byte aligned; NULL on failure */
void *ax_arena_copy(ax_arena *arena, const void *data, size_t bytes);
/* Makes room for exactly `bytes` more, for an arena that will not grow; false: out of memory. An allocation of n bytes takes
   ax_arena_bytes(n) of it. */
bool ax_arena_reserve(ax_arena *arena, size_t bytes);
static inline size_t ax_arena_bytes(size_t bytes) { return (bytes + 15) & ~(size_t)15; }
void ax_arena_deinit(ax_arena *arena);
void ax_arena_empty(ax_arena *arena); /* as ax_arena_deinit, but the memory stays with the arena */
extern size_t ax_arena_chunk_bytes; /* tests make it small, so that more allocations can fail */

/* Grows `*items` (elements of `item_bytes`) so that `count + more` fit; keeps contents. */
AX_MUST_USE ax_status ax_grow(void *items, size_t item_bytes, uint32_t count, uint32_t more, uint32_t *capacity);

/* A growing text; always ends in NUL once anything was added. Out of memory is remembered and reported by finish. Numbers are
   written as in the "C" locale, whatever the host program has set: 0.5 has a point. */
typedef struct ax_text {
  char *data;
  size_t length, capacity;
  bool failed;
} ax_text;
void ax_text_add(ax_text *text, const char *format, ...) AX_PRINTF(2, 3);
void ax_text_add_bytes(ax_text *text, const char *bytes, size_t count);
AX_MUST_USE ax_status ax_text_finish(ax_text *text, char **out); /* *out: owned by the caller, ax_free */
void ax_text_deinit(ax_text *text);
/* Switch this thread to the "C" locale for numbers, and back, whatever locale the host program has set. Pairs nest.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_text_locale_enter(locale_t *saved);
void ax_text_locale_leave(locale_t saved);

/* a / b, rounded up. a >= 0 and b >= 1; a + b - 1 must fit. */
static inline int64_t ax_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* One turn of a loop that waits for another thread: the processor's pause instruction, where there is one. */
static inline void ax_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/* 1 in hostile builds (AXLE_HOSTILE), which break code that works only by luck: arrays move whenever they may, memory that is to
   be written before it is read holds NaN, and activations yield wherever a policy lets them. */
#ifndef AX_HOSTILE
#define AX_HOSTILE 0
#endif

/* A hash of a word or of bytes, continued from `seed`. A product carries only upwards, so its upper half is folded into the
   lower one to make all bits good. */
static inline uint64_t ax_hash_word(uint64_t seed, uint64_t word) {
  seed = (seed ^ word) * 0x9e3779b97f4a7c15ull;
  return seed ^ seed >> 32;
}
/* The next number of splitmix64, from a state that may start anywhere (Steele, Lea and Flood, 2014). */
static inline uint64_t ax_next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
#define AX_HASH_SEED 1469598103934665603ull
uint64_t ax_hash_bytes(uint64_t seed, const void *data, size_t bytes);

#endif
