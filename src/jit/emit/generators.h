/* Several code generators, each on a thread of its own, for a compile of many kernels. A function's code does not depend on what is
   compiled beside it, so it does not depend on threads. */
#ifndef AX_JIT_EMIT_GENERATORS_H
#define AX_JIT_EMIT_GENERATORS_H

#include "jit/emit/generator.h"

enum { AX_MOST_GENERATORS = 16 };

/* An object file with the functions of units [first, first + count), which are numbered from 0 in it. */
typedef struct ax_emitted {
  uint32_t first, count;
  void *object; /* ax_free */
  size_t bytes;
} ax_emitted;

/* How many of the generators a compile of these units is worth, and has memory for: 1 .. most. */
uint32_t ax_generators_worth(const ax_unit *units, uint32_t count, uint32_t most);

/* Compiles the units with so many generators, on this thread and on others that end with the call; out[i] is what generator i made.
   Errors are those of ax_generator_emit; *out is empty then. */
AX_MUST_USE ax_status ax_generators_emit(ax_generator *generators, uint32_t generator_count, const ax_unit *units, uint32_t count,
                                         ax_emitted *out);

#endif
