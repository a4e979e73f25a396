/* An allocator that fails the nth time, and counts what is left. */
#include "support/oom.h"

#include <stdlib.h>

#include "base/base.h"
#include "support/cmocka.h"

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

int test_each_allocation(ax_status (*work)(void *context), void *context) {
  ax_status status = AX_OUT_OF_MEMORY;
  meter m = {0};
  const size_t chunk_bytes = ax_arena_chunk_bytes;
  const ax_allocator hostile = {allocate, release, &m};
  for (long nth = 0; status == AX_OUT_OF_MEMORY; nth++) {
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
