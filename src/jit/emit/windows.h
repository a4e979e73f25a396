/* Windows: runs of memory that cover the scattered elements of a vector. A window has as many elements as the vector has lanes
   and is one load or store; a constant shuffle picks the lanes from it. */
#ifndef AX_JIT_EMIT_WINDOWS_H
#define AX_JIT_EMIT_WINDOWS_H

#include <stdint.h>

enum { AX_MAX_LANES = 64, AX_MAX_WINDOWS = 8 };

typedef struct ax_row_windows {
  uint32_t count; /* AX_MAX_WINDOWS + 1: more than that would be needed */
  int64_t start[AX_MAX_WINDOWS];
  uint8_t window[AX_MAX_LANES]; /* by lane: the window it lies in */
} ax_row_windows;

/* Covers lanes at these offsets, in elements, none beyond `last`. No window reads beyond `last`. A window begins before the
   lowest offset only if it would otherwise end after `last`. */
ax_row_windows ax_windows_cover(const int64_t *offset, uint32_t lanes, int64_t last);
/* The same with windows that begin at `first` or a whole number of vectors away from it. */
ax_row_windows ax_windows_cover_aligned(const int64_t *offset, uint32_t lanes, int64_t first);

#endif
