/* Elements of 16 bytes are wider than what kernels turn in registers, and need no turning: four of them are a line of the cache, so what is
   moved is blocks of four by four. Blocks of blocks make both sides read and write whole lines of few pages. */
#include "ops/transpose_wide.h"

#include <string.h>

#include "plan/plan.h"
#include "prim/shape.h"

typedef struct element {
  double part[2];
} element;

/* Dimensions of the result, of which none is 1 and no two lie behind one another on both sides. The last one is dense in the result; `near`
   is dense in the operand. */
typedef struct turning {
  uint32_t rank, near, cut; /* cut: the dimension that parts share */
  uint32_t parts;
  int64_t dims[AX_MAX_RANK], to[AX_MAX_RANK], from[AX_MAX_RANK]; /* strides in elements */
} turning;

typedef struct range {
  int64_t begin, end;
} range;

enum { square = 4, block = 32 };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* to[j * to_row + i] = from[i * from_row + j] for j < rows, i < columns. */
static void turn_some(element *to, const element *from, int64_t to_row, int64_t from_row, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < columns; i++)
    for (int64_t j = 0; j < rows; j++) to[j * to_row + i] = from[i * from_row + j];
}

static void turn_square(element *to, const element *from, int64_t to_row, int64_t from_row) {
  for (int64_t i = 0; i < square; i++) {
    const element *line = from + i * from_row;
    const element a = line[0], b = line[1], c = line[2], d = line[3];
    to[i] = a, to[to_row + i] = b, to[2 * to_row + i] = c, to[3 * to_row + i] = d;
  }
}

static void turn_block(element *to, const element *from, int64_t to_row, int64_t from_row, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < rows; j += square)
    for (int64_t i = 0; i < columns; i += square) {
      element *there = to + j * to_row + i;
      const element *here = from + i * from_row + j;
      if (j + square <= rows && i + square <= columns) turn_square(there, here, to_row, from_row);
      else turn_some(there, here, to_row, from_row, least(square, rows - j), least(square, columns - i));
    }
}

/* The two innermost dimensions of a step: the last one, and the one that is dense in the operand. */
static void do_plane(const turning *t, element *to, const element *from, range rows, range columns) {
  const uint32_t last = t->rank - 1;
  if (t->near == last) {
    memcpy(to + columns.begin, from + columns.begin, (size_t)(columns.end - columns.begin) * sizeof *to);
    return;
  }
  const int64_t to_row = t->to[t->near], from_row = t->from[last];
  for (int64_t j = rows.begin; j < rows.end; j += block)
    for (int64_t i = columns.begin; i < columns.end; i += block)
      turn_block(to + j * to_row + i, from + i * from_row + j, to_row, from_row, least(block, rows.end - j), least(block, columns.end - i));
}

static ax_status turn_part(const void *data, void *const *memory, uint32_t part) {
  const turning *t = data;
  const int64_t cut = t->dims[t->cut];
  const uint32_t last = t->rank - 1;
  const element *from = memory[0];
  element *to = memory[1];
  range own[AX_MAX_RANK];
  int64_t index[AX_MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) {
    own[d] = d == t->cut ? (range){cut * part / t->parts, cut * (part + 1) / t->parts} : (range){0, t->dims[d]};
    index[d] = d == last || d == t->near ? 0 : own[d].begin;
    to += index[d] * t->to[d], from += index[d] * t->from[d];
  }
  for (;;) {
    do_plane(t, to, from, own[t->near], own[last]);
    uint32_t d = last;
    for (; d > 0; d--) {
      const uint32_t k = d - 1;
      if (k == t->near) continue;
      to += t->to[k], from += t->from[k];
      if (++index[k] < own[k].end) break;
      to -= (index[k] - own[k].begin) * t->to[k], from -= (index[k] - own[k].begin) * t->from[k];
      index[k] = own[k].begin;
    }
    if (d == 0) return AX_OK;
  }
}

/* --- Lowering --- */

static turning turning_of(const ax_type *in, const ax_dims *permutation) {
  turning t = {0};
  int64_t strides[AX_MAX_RANK], dense = 1;
  ax_dense_strides(in->rank, in->dims, strides);
  for (uint32_t d = 0; d < permutation->count; d++) {
    const int64_t extent = in->dims[permutation->v[d]], stride = strides[permutation->v[d]];
    if (extent == 1) continue;
    if (t.rank > 0 && t.from[t.rank - 1] == stride * extent) { /* it lies behind the one before, here as there */
      t.dims[t.rank - 1] *= extent;
      t.from[t.rank - 1] = stride;
      continue;
    }
    t.dims[t.rank] = extent;
    t.from[t.rank++] = stride;
  }
  for (uint32_t d = t.rank; d-- > 0; dense *= t.dims[d]) {
    t.to[d] = dense;
    if (t.from[d] == 1) t.near = d;
    if (t.dims[d] >= t.dims[t.cut]) t.cut = d;
  }
  return t;
}

ax_status ax_lower_transpose_wide(ax_lower *lower, const ax_dims *permutation, uint32_t in, uint32_t out) {
  const ax_type from = *ax_lower_type(lower, in);
  turning t = turning_of(&from, permutation);
  const double time = 0.8 * (double)ax_type_elems(&from);
  uint32_t buffers[] = {in, out};
  t.parts = ax_routine_parts(time, t.dims[t.cut]);
  return ax_lower_routine(lower,
                          &(ax_routine){.run = turn_part, .data = &t, .in_count = 1, .out_count = 1, .parts = t.parts, .buffers = buffers,
                                        .moves = true, .time = time},
                          sizeof t);
}
