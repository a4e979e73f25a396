/* For tests: a compiler for each width of register; that for the middle one takes gathers for slow. */
#ifndef AX_JIT_WIDTHS_TEST_H
#define AX_JIT_WIDTHS_TEST_H

#include "jit/jit.h"

enum { width_count = 3 };
static const uint32_t widths[width_count] = {64, 32, 16};
static ax_compiler *jits[width_count];

static int make_jits(void **unused) {
  (void)unused;
  for (int w = 0; w < width_count; w++)
    if (ax_jit_create(&(ax_jit_options){.most_vector_bytes = widths[w], .gathers = widths[w] != 32}, &jits[w]) != AX_OK) return 1;
  return 0;
}

static int destroy_jits(void **unused) {
  (void)unused;
  for (int w = 0; w < width_count; w++) ax_jit_destroy(jits[w]);
  return 0;
}

#endif
