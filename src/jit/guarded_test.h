/* For tests: arrays that end (or begin) at a page that may not be touched, since sanitizers do not see what compiled kernels do. What lies
   between their other end and a page may be read, and is not to be written. */
#ifndef AX_JIT_GUARDED_TEST_H
#define AX_JIT_GUARDED_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct guarded {
  char *pages;
  size_t page_bytes; /* of all pages */
  void *data;
  size_t bytes;
} guarded;

enum { guarded_page = 4096, guarded_filling = 0xa5 };

static inline guarded guarded_create(size_t bytes, bool at_end) {
  size_t page = guarded_page, inner = (bytes + page - 1) / page * page;
  guarded g = {.page_bytes = inner + 2 * page, .bytes = bytes};
  g.pages = mmap(NULL, g.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (inner > 0) mprotect(g.pages + page, inner, PROT_READ | PROT_WRITE);
  memset(g.pages + page, guarded_filling, inner);
  g.data = g.pages + page + (at_end ? inner - bytes : 0);
  return g;
}

/* Ends the test if something was written beside the array. */
static inline void guarded_destroy(guarded *g) {
  const char *first = g->pages + guarded_page, *end = g->pages + g->page_bytes - guarded_page, *data = g->data;
  for (const char *at = first; at < end; at++) {
    if (at == data) at += g->bytes;
    if (at >= end || (unsigned char)*at == guarded_filling) continue;
    fprintf(stderr, "a byte is written %td behind the beginning of an array of %zu\n", at - data, g->bytes);
    abort();
  }
  munmap(g->pages, g->page_bytes);
}

#endif
