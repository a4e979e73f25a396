/* For tests: arrays that end (or begin) at a page that may not be touched, since sanitizers do not see what compiled kernels do. */
#ifndef AX_JIT_GUARDED_TEST_H
#define AX_JIT_GUARDED_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

typedef struct guarded {
  char *pages;
  size_t page_bytes; /* of all pages */
  void *data;
} guarded;

static inline guarded guarded_create(size_t bytes, bool at_end) {
  size_t page = 4096, inner = (bytes + page - 1) / page * page;
  guarded g = {.page_bytes = inner + 2 * page};
  g.pages = mmap(NULL, g.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (inner > 0) mprotect(g.pages + page, inner, PROT_READ | PROT_WRITE);
  g.data = g.pages + page + (at_end ? inner - bytes : 0);
  return g;
}

static inline void guarded_destroy(guarded *g) { munmap(g->pages, g->page_bytes); }

#endif
