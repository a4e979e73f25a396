/* Elements moved between two orders: runs of those that are neighbours in both, or, where rows become columns, squares small enough
   that the lines of both places stay in the nearest cache. Of elements of 16 bytes a line has four, and where rows lie powers of two apart
   it does not stay: so four of its elements go at once to four lines. */
#include "base/strided.h"

#include <stdbool.h>
#include <string.h>

enum { SQUARE = 32, LINES = 4 }; /* elements of a side; lines that are turned at once, of as many elements */

typedef struct walk { /* over runs; dimensions of one element are left out, and those that are one in both places are joined */
  uint32_t rank;      /* 2 at least: the last two are the plane */
  int64_t dims[AX_STRIDED_RANK + 2], to[AX_STRIDED_RANK + 2], from[AX_STRIDED_RANK + 2];
  size_t run; /* bytes */
} walk;

static void add(walk *w, int64_t size, int64_t to, int64_t from) {
  const uint32_t last = w->rank - 1;
  if (w->rank > 0 && w->to[last] == size * to && w->from[last] == size * from) {
    w->dims[last] *= size, w->to[last] = to, w->from[last] = from;
    return;
  }
  w->dims[w->rank] = size, w->to[w->rank] = to, w->from[w->rank++] = from;
}

static void put_in_front(walk *w) {
  memmove(w->dims + 1, w->dims, w->rank * sizeof w->dims[0]);
  memmove(w->to + 1, w->to, w->rank * sizeof w->to[0]);
  memmove(w->from + 1, w->from, w->rank * sizeof w->from[0]);
  w->dims[0] = 1, w->to[0] = w->from[0] = 0, w->rank++;
}

static void exchange(int64_t *list, uint32_t a, uint32_t b) {
  const int64_t kept = list[a];
  list[a] = list[b], list[b] = kept;
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Of the dimensions but the last, that whose neighbours lie nearest to each other where the elements come from is the plane's other one: its
   lines are read whole while they are in the cache. */
static void choose_plane(walk *w) {
  uint32_t best = w->rank - 2;
  for (uint32_t d = 0; d + 2 < w->rank; d++)
    if (magnitude(w->from[d]) < magnitude(w->from[best])) best = d;
  exchange(w->dims, best, w->rank - 2), exchange(w->to, best, w->rank - 2), exchange(w->from, best, w->rank - 2);
}

static walk walk_of(uint32_t rank, const int64_t *dims, size_t bytes, const int64_t *to, const int64_t *from) {
  walk w = {.run = bytes};
  for (uint32_t d = 0; d < rank; d++)
    if (dims[d] != 1) add(&w, dims[d], to[d], from[d]);
  if (w.rank > 0 && w.to[w.rank - 1] == (int64_t)bytes && w.from[w.rank - 1] == (int64_t)bytes) w.run *= (size_t)w.dims[--w.rank];
  while (w.rank < 2) put_in_front(&w);
  choose_plane(&w);
  return w;
}

#define LINE(size)                                                                                  \
  for (int64_t i = 0; i < count; i++, to += to_stride, from += from_stride) memcpy(to, from, size); \
  return

static void line(int64_t count, size_t run, char *to, int64_t to_stride, const char *from, int64_t from_stride) {
  switch (run) { /* sizes that are known are moved by one instruction each */
    case 1: LINE(1);
    case 2: LINE(2);
    case 4: LINE(4);
    case 8: LINE(8);
    case 16: LINE(16);
    default: LINE(run);
  }
}

static int64_t side(int64_t left) { return left < SQUARE ? left : SQUARE; }

typedef struct wide {
  double part[2];
} wide;

static wide load(const char *from) {
  wide one;
  memcpy(&one, from, sizeof one);
  return one;
}

/* Four columns from `from`, of which each has four elements side by side there, to four rows from `to`. */
static void turn_lines(char *to, int64_t to_row, const char *from, int64_t from_column) {
  for (int64_t k = 0; k < LINES; k++, to += sizeof(wide), from += from_column) {
    const wide a = load(from), b = load(from + sizeof(wide)), c = load(from + 2 * sizeof(wide)), d = load(from + 3 * sizeof(wide));
    memcpy(to, &a, sizeof a), memcpy(to + to_row, &b, sizeof b), memcpy(to + 2 * to_row, &c, sizeof c), memcpy(to + 3 * to_row, &d, sizeof d);
  }
}

/* A square of `rows` by `columns` elements of 16 bytes, whose rows are dense there and whose columns are dense in `from`. */
static void wide_square(const walk *w, int64_t rows, int64_t columns, char *to, const char *from) {
  const uint32_t r = w->rank - 2, c = w->rank - 1;
  for (int64_t i = 0; i < rows; i += LINES)
    for (int64_t k = 0; k < columns; k += LINES) {
      char *there = to + i * w->to[r] + k * w->to[c];
      const char *here = from + i * w->from[r] + k * w->from[c];
      if (i + LINES <= rows && k + LINES <= columns) {
        turn_lines(there, w->to[r], here, w->from[c]);
        continue;
      }
      for (int64_t j = 0; j < LINES && i + j < rows; j++)
        line(columns - k < LINES ? columns - k : LINES, w->run, there + j * w->to[r], w->to[c], here + j * w->from[r], w->from[c]);
    }
}

static bool turns_wide(const walk *w) {
  return w->run == sizeof(wide) && w->from[w->rank - 2] == sizeof(wide) && w->to[w->rank - 1] == sizeof(wide);
}

static void plane(const walk *w, char *to, const char *from) {
  const uint32_t r = w->rank - 2, c = w->rank - 1;
  const bool is_wide = turns_wide(w);
  for (int64_t r0 = 0; r0 < w->dims[r]; r0 += SQUARE)
    for (int64_t c0 = 0; c0 < w->dims[c]; c0 += SQUARE) {
      const int64_t rows = side(w->dims[r] - r0), columns = side(w->dims[c] - c0);
      char *there = to + r0 * w->to[r] + c0 * w->to[c];
      const char *here = from + r0 * w->from[r] + c0 * w->from[c];
      if (is_wide) wide_square(w, rows, columns, there, here);
      for (int64_t i = 0; !is_wide && i < rows; i++)
        line(columns, w->run, there + i * w->to[r], w->to[c], here + i * w->from[r], w->from[c]);
    }
}

static void planes(const walk *w, uint32_t d, char *to, const char *from) {
  if (d + 2 == w->rank) {
    plane(w, to, from);
    return;
  }
  for (int64_t i = 0; i < w->dims[d]; i++) planes(w, d + 1, to + i * w->to[d], from + i * w->from[d]);
}

void ax_strided_move(uint32_t rank, const int64_t *dims, size_t bytes, ax_strided_place to, ax_strided_place from) {
  for (uint32_t d = 0; d < rank; d++)
    if (dims[d] == 0) return;
  const walk w = walk_of(rank, dims, bytes, to.strides, from.strides);
  planes(&w, 0, to.first, from.first);
}
