/* Windows along one dimension. */
#include "ops/window.h"

#include <string.h>

#include "plan/lower.h"
#include "prim/prims.h"

int64_t ax_dilated(int64_t size, int64_t apart) { return size > 0 ? (size - 1) * apart + 1 : 0; }

static int64_t padded(const ax_window *w) { return ax_dilated(w->array, w->base) + w->low + w->high; }

int64_t ax_window_count(const ax_window *w) {
  int64_t room = padded(w) - ax_dilated(w->size, w->dilation);
  return room < 0 ? 0 : room / w->stride + 1;
}

/* Sizes stay below 2^60, so that no sum of them overflows. */
static bool dilates(int64_t size, int64_t apart) {
  int64_t made;
  return size <= 1 || (ax_mul_i64(size - 1, apart, &made) && made < (int64_t)1 << 60);
}

ax_status ax_window_positions(const ax_window *w, const char *array, uint32_t d, int64_t *out) {
  const int64_t most = (int64_t)1 << 60;
  const struct {
    const char *what;
    int64_t value;
  } steps[] = {{"stride", w->stride}, {"base dilation", w->base}, {"window dilation", w->dilation}};
  for (size_t i = 0; i < AX_COUNT(steps); i++)
    if (steps[i].value < 1)
      return ax_error(AX_INVALID_ARGUMENT, "the %s of dimension %u is %lld: at least 1 is needed", steps[i].what, d,
                      (long long)steps[i].value);
  if (w->low <= -most || w->low >= most || w->high <= -most || w->high >= most || !dilates(w->array, w->base) ||
      !dilates(w->size, w->dilation))
    return ax_error(AX_INVALID_ARGUMENT, "the padding or a dilation of dimension %u is too large", d);
  if (padded(w) < 0)
    return ax_error(AX_INVALID_ARGUMENT, "paddings %lld and %lld cut more than dimension %u of %s has, %lld", (long long)w->low,
                    (long long)w->high, d, array, (long long)ax_dilated(w->array, w->base));
  *out = ax_window_count(w);
  return AX_OK;
}

int64_t ax_window_element(const ax_window *w, int64_t position, int64_t tap) {
  int64_t at = position * w->stride + tap * w->dilation - w->low;
  return at >= 0 && at % w->base == 0 && at / w->base < w->array ? at / w->base : -1;
}

/* Element i, at i * base, is at place k of the window at position o where o * stride = i * base + low - k * dilation. With places
   counted backwards, that is at + k' * dilation, less what the last place is away. */
ax_window ax_window_transposed(const ax_window *w) {
  ax_window t = {.array = ax_window_count(w), .base = w->stride, .size = w->size, .dilation = w->dilation, .stride = w->base};
  t.low = ax_dilated(w->size, w->dilation) - 1 - w->low;
  t.high = (w->array - 1) * w->base + ax_dilated(w->size, w->dilation) - ax_dilated(t.array, t.base) - t.low;
  return t;
}

bool ax_window_pads(const char *function, const char *padding, ax_window *w) {
  bool lower = strcmp(padding, "SAME_LOWER") == 0;
  w->low = w->high = 0;
  if (strcmp(padding, "VALID") == 0) return true;
  if (!lower && strcmp(padding, "SAME") != 0) {
    ax_reject_as(function, "the padding is \"%.40s\", not SAME, SAME_LOWER or VALID", padding);
    return false;
  }
  int64_t size = ax_dilated(w->array, w->base), stride = w->stride > 0 ? w->stride : 1, positions = (size + stride - 1) / stride;
  int64_t more = (positions - 1) * stride + ax_dilated(w->size, w->dilation) - size;
  if (more < 0) more = 0;
  w->low = lower ? more - more / 2 : more / 2;
  w->high = more - w->low;
  return true;
}

/* --- For lower rules --- */

ax_value ax_window_part(ax_value x, uint32_t d, int64_t start, int64_t count, int64_t stride) {
  int64_t from[AX_MAX_RANK] = {0}, to[AX_MAX_RANK], by[AX_MAX_RANK];
  ax_type type = ax_typeof(x);
  if (start == 0 && stride == 1 && count == type.dims[d]) return x;
  for (uint32_t i = 0; i < type.rank; i++) to[i] = type.dims[i], by[i] = 1;
  from[d] = start;
  to[d] = count > 0 ? start + (count - 1) * stride + 1 : start;
  by[d] = stride;
  return ax_slice(x, from, to, by);
}

ax_value ax_window_padded(ax_value x, ax_value value, uint32_t first, uint32_t count, ax_window *windows) {
  int64_t low[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {0}, interior[AX_MAX_RANK] = {0};
  bool pads = false;
  for (uint32_t i = 0; i < count; i++) {
    ax_window *w = &windows[i];
    low[first + i] = w->low;
    high[first + i] = w->high;
    interior[first + i] = w->base - 1;
    pads = pads || w->low != 0 || w->high != 0 || w->base != 1;
    w->array = padded(w);
    w->low = w->high = 0;
    w->base = 1;
  }
  return pads ? ax_pad(x, value, low, high, interior) : x;
}
