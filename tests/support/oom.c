/* An allocator that fails the nth time and counts what is left; another that counts what is asked for. */
#include "support/oom.h"

#include <stdlib.h>

#include "base/base.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* 0: each allocation from an arena is one that can fail. Not under sanitizers, where attempts are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { arena_chunk_bytes = 2048 };
#else
enum { arena_chunk_bytes = 0 };
#endif

typedef struct meter {
  long until_failure, live;
  int count;
} meter;

static void *allocate(void *user, size_t bytes, size_t align) {
  meter *m = user;
  void *memory = NULL;
  m->count++;
  if (m->until_failure-- == 0 || posix_memalign(&memory, align, bytes) != 0) return NULL;
  m->live++;
  return memory;
}

static void release(void *user, void *memory) {
  meter *m = user;
  m->live--;
  free(memory);
}

/* Sanitized programs are slow: of long work fewer allocations fail there, the later the fewer. */
static long after(long nth) {
#ifdef __SANITIZE_ADDRESS__
  if (nth >= 150) return nth + nth / 50;
#endif
  return nth + 1;
}

int test_each_allocation(ax_status (*work)(void *context), void *context) {
  ax_status status = AX_OUT_OF_MEMORY;
  meter m = {0};
  const size_t chunk_bytes = ax_arena_chunk_bytes;
  const ax_allocator hostile = {allocate, release, &m};
  for (long nth = 0; status == AX_OUT_OF_MEMORY; nth = after(nth)) {
    m = (meter){.until_failure = nth};
    ax_set_allocator(&hostile);
    ax_arena_chunk_bytes = arena_chunk_bytes;
    status = work(context);
    ax_set_allocator(NULL);
    ax_arena_chunk_bytes = chunk_bytes;
    if (m.live != 0) fail_msg("allocation %ld failed: %ld are left", nth, m.live);
    if (status == AX_OK && nth < m.count) fail_msg("allocation %ld failed, but the work succeeded", nth);
  }
  if (status != AX_OK) fail_msg("%s: %s", ax_status_name(status), ax_message());
  return m.count;
}

/* --- Counted --- */

static void *counted(void *total, size_t bytes, size_t align) {
  *(size_t *)total += bytes;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}
static void release_counted(void *total, void *memory) {
  (void)total;
  free(memory);
}

double test_bytes_asked(ax_program *(*trace)(const void *context), const void *context,
                        ax_status (*transform)(const ax_program *program, ax_program **out)) {
  ax_program *made;
  size_t total = 0, chunk = ax_arena_chunk_bytes;
  ax_arena_chunk_bytes = 64;
  ax_set_allocator(&(ax_allocator){counted, release_counted, &total});
  ax_program *program = trace(context);
  total = 0;
  TEST_OK(transform(program, &made));
  size_t asked = total;
  ax_program_release(made), ax_program_release(program);
  ax_set_allocator(NULL);
  ax_arena_chunk_bytes = chunk;
  return (double)asked;
}
