/* Windows are placed greedily: each begins at the lowest lane that is not covered yet. */
#include "jit/emit/windows.h"

#include <assert.h>

enum { not_covered = UINT8_MAX };

/* The uncovered lane of lowest offset; -1: all are covered. */
static int lowest(const ax_row_windows *w, const int64_t *offset, uint32_t lanes) {
  int best = -1;
  for (uint32_t l = 0; l < lanes; l++)
    if (w->window[l] == not_covered && (best < 0 || offset[l] < offset[best])) best = (int)l;
  return best;
}

/* `step` 0: no window ends after `bound`. Otherwise windows begin at `bound` or whole steps away from it. */
static ax_row_windows cover(const int64_t *offset, uint32_t lanes, int64_t bound, int64_t step) {
  ax_row_windows w = {0};
  assert(lanes <= AX_MAX_LANES);
  for (uint32_t l = 0; l < lanes; l++) w.window[l] = not_covered;
  for (int first = lowest(&w, offset, lanes); first >= 0; first = lowest(&w, offset, lanes)) {
    int64_t start = offset[first], over = step > 0 ? (start - bound) % step : 0;
    if (w.count == AX_MAX_WINDOWS) {
      w.count++;
      break;
    }
    if (step > 0) start -= over < 0 ? over + step : over;
    else if (start > bound + 1 - lanes) start = bound + 1 - lanes;
    for (uint32_t l = 0; l < lanes; l++)
      if (w.window[l] == not_covered && offset[l] >= start && offset[l] < start + lanes) w.window[l] = (uint8_t)w.count;
    w.start[w.count++] = start;
  }
  return w;
}

ax_row_windows ax_windows_cover(const int64_t *offset, uint32_t lanes, int64_t last) { return cover(offset, lanes, last, 0); }

ax_row_windows ax_windows_cover_aligned(const int64_t *offset, uint32_t lanes, int64_t first) {
  return cover(offset, lanes, first, lanes);
}
