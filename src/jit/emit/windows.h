/* Lanes of a vector that lie here and there in memory, covered by windows: runs of as many elements as there are lanes, each of
   which is one load or store, from which lanes are picked by a shuffle of constants. */
#ifndef AX_JIT_EMIT_WINDOWS_H
#define AX_JIT_EMIT_WINDOWS_H

#include <stdint.h>

enum { AX_MAX_LANES = 64, AX_MAX_WINDOWS = 8 };

typedef struct ax_row_windows {
  uint32_t count; /* AX_MAX_WINDOWS + 1: it takes more than that */
  int64_t start[AX_MAX_WINDOWS];
  uint8_t window[AX_MAX_LANES]; /* by lane: which one it lies in */
} ax_row_windows;

/* Of lanes at these offsets, none of them beyond `last`. No window begins before the lowest offset of all that may be read, if
   there is room for one before `last`, and none ends after that. */
ax_row_windows ax_windows_cover(const int64_t *offset, uint32_t lanes, int64_t last);
/* The same, with windows that begin at `first` and whole vectors from there. */
ax_row_windows ax_windows_cover_aligned(const int64_t *offset, uint32_t lanes, int64_t first);

#endif
