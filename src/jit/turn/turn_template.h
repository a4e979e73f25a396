/* The functions of turn.h for registers of WIDTH bytes, 16 or 32, as turn_16.c and turn_32.c say; TABLE is what they are found in.

   Squares are turned in registers, which consist of parts of 16 bytes, each of another row. Registers are zipped with others, and
   each round doubles the elements of one column that stand together:

     q0: a b c d        p0: a e i m
     q1: e f g h   -->  p1: b f j n
     q2: i j k l        p2: c g k o
     q3: m n o p        p3: d h l p

   What goes past the caches is done in tiles: run_in bytes of each row, and as many rows as make run_out bytes in each column. A
   tile is turned into scratch memory, whose rows are then copied out: so lines are stored whole, wherever columns begin. Columns
   are cut where their lines begin, and so a tile has as many rows more as its last line may need. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/base.h"
#include "jit/turn/turn.h"
#include "machine/caches.h"

#define INLINED __attribute__((always_inline))

enum { part = 16, line = AX_LINE_BYTES };
/* Bytes of a tile: in each row, in each column; of scratch memory, on the heap or on the stack; from a column to the next. */
enum { run_in = 4096, run_out = 256, wide_bytes = 384 << 10, narrow_bytes = 25 << 10, rest_pitch = 2 * line };

static inline INLINED int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline INLINED int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }

static inline INLINED int64_t step_to(const ax_turn_steps *s, int64_t index) {
  return index * s->pitch + (s->inner == 0 ? 0 : index / s->inner * s->uneven);
}

typedef struct tile { /* some rows, and columns from `column` on */
  bool dense; /* columns have no room between them, neither there nor in scratch memory */
  int64_t rows, column, columns, pitch; /* pitch: from a column to the next, where they go */
  char *to;
  const char *row[run_out + 2 * line];
} tile;

/* Bytes to where the next line begins. */
static inline INLINED int64_t to_line(const char *at) { return -(intptr_t)at & (line - 1); }

/* Whether columns of so many bytes lie one behind the other. */
static inline INLINED bool is_dense(const ax_turn *turn, int64_t bytes) {
  return turn->column_steps.inner == 0 && turn->column_steps.pitch == bytes && turn->row == 0;
}

/* Rows [r, end), if there are so many. Places beyond the last one repeat it. */
static inline INLINED void list_rows(const ax_turn *turn, tile *t, int64_t r, int64_t end, int64_t item) {
  const int64_t last = least(end, turn->row_end) - 1, full = line / item;
  const ax_turn_steps *steps = &turn->row_steps;
  t->rows = last + 1 - r;
  for (int64_t i = 0; i < (t->rows + full - 1) / full * full; i++) t->row[i] = turn->from + step_to(steps, least(r + i, last));
}

/* --- Squares --- */

typedef uint8_t part_vector __attribute__((vector_size(part)));
static inline INLINED part_vector part_at(const char *at) {
  part_vector value;
  memcpy(&value, at, sizeof value);
  return value;
}

#define ZIP_1(a, b) a, b, a + 1, b + 1, a + 2, b + 2, a + 3, b + 3, a + 4, b + 4, a + 5, b + 5, a + 6, b + 6, a + 7, b + 7
#define ZIP_2(a, b) a, a + 1, b, b + 1, a + 2, a + 3, b + 2, b + 3, a + 4, a + 5, b + 4, b + 5, a + 6, a + 7, b + 6, b + 7
#define ZIP_4(a, b) a, a + 1, a + 2, a + 3, b, b + 1, b + 2, b + 3, a + 4, a + 5, a + 6, a + 7, b + 4, b + 5, b + 6, b + 7
#define ZIP_8(a, b) a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7

#if WIDTH == 16
#define ZIPS(zip, first) zip(first, (first) + 16)
#define JOINED(a, b) (a)
#else
#define ZIPS(zip, first) zip(first, (first) + 32), zip((first) + 16, (first) + 48)
#define JOINED(a, b)                                                                                                     \
  __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, \
                          25, 26, 27, 28, 29, 30, 31)
#endif

typedef uint8_t vector __attribute__((vector_size(WIDTH)));
typedef uint8_t unaligned __attribute__((vector_size(WIDTH), aligned(1), may_alias));

/* The lower, or upper, halves of each part of two registers, item by item in turn. */
static inline INLINED vector low(vector a, vector b, int64_t item) {
  switch (item) {
    case 1: return __builtin_shufflevector(a, b, ZIPS(ZIP_1, 0));
    case 2: return __builtin_shufflevector(a, b, ZIPS(ZIP_2, 0));
    case 4: return __builtin_shufflevector(a, b, ZIPS(ZIP_4, 0));
    default: return __builtin_shufflevector(a, b, ZIPS(ZIP_8, 0));
  }
}
static inline INLINED vector high(vector a, vector b, int64_t item) {
  switch (item) {
    case 1: return __builtin_shufflevector(a, b, ZIPS(ZIP_1, part / 2));
    case 2: return __builtin_shufflevector(a, b, ZIPS(ZIP_2, part / 2));
    case 4: return __builtin_shufflevector(a, b, ZIPS(ZIP_4, part / 2));
    default: return __builtin_shufflevector(a, b, ZIPS(ZIP_8, part / 2));
  }
}

/* WIDTH / item rows of a part each, from byte `at` of them on, become part / item rows of a register. */
static inline INLINED void square(char *to, int64_t pitch, const char *const *rows, int64_t at, int64_t item) {
  const int side = (int)(part / item);
  vector q[part], p[part];
#pragma GCC unroll 16
  for (int i = 0; i < side; i++) q[i] = JOINED(part_at(rows[i] + at), part_at(rows[i + (WIDTH / part - 1) * side] + at));
#pragma GCC unroll 4
  for (int width = 1; width < side; width *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < side / 2; i++) {
      p[2 * i] = low(q[i], q[i + side / 2], item);
      p[2 * i + 1] = high(q[i], q[i + side / 2], item);
    }
#pragma GCC unroll 16
    for (int i = 0; i < side; i++) q[i] = p[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < side; i++) *(unaligned *)(void *)(to + i * pitch) = q[i];
}

/* Rows [r, r + count * lanes) of the tile. Columns that make no square are part of the last one, again. */
static inline INLINED void turn_rows(const tile *t, int64_t r, int count, int64_t item) {
  const int64_t side = part / item, pitch = t->pitch, columns = t->columns, column = t->column;
  const char *const *rows = t->row + r;
  char *const to = t->to + r * item;
  for (int64_t c = 0; c < columns; c += side) {
    const int64_t from = least(c, columns - side);
#pragma GCC unroll 4
    for (int k = 0; k < count; k++)
      square(to + from * pitch + k * WIDTH, pitch, rows + k * (WIDTH / item), (column + from) * item, item);
  }
}

/* To scratch memory: rows in their order, as processors fetch ahead; but where columns have no room between them the last ones go
   first: what these store beyond the ends of columns is stored over. */
static inline INLINED void turn_tile(const tile *t, int64_t item) {
  const int64_t lanes = WIDTH / item, last = (t->rows - 1) / lanes * lanes;
  for (int64_t r = 0; r <= last; r += lanes) turn_rows(t, t->dense ? last - r : r, 1, item);
}

/* --- Out of scratch memory --- */

static inline INLINED void store_past(char *to, vector value) {
#if !defined(__x86_64__)
  memcpy(to, &value, sizeof value);
#elif WIDTH == 16
  _mm_stream_si128((__m128i *)(void *)to, (__m128i)value);
#else
  _mm256_stream_si256((__m256i *)(void *)to, (__m256i)value);
#endif
}

static inline INLINED void copy_out(char *to, const char *from, int64_t bytes) {
  int64_t i = least(to_line(to), bytes);
  if (i > 0) memcpy(to, from, (size_t)i);
  for (; i + line <= bytes; i += line)
    for (int k = 0; k < line; k += WIDTH) store_past(to + i + k, *(const unaligned *)(const void *)(from + i + k));
  if (i < bytes) memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* Rows [r, end) of columns [c, until) of the tile. A column's run is from its first line that begins in there to its first that
   begins after, but for the ends of what is moved. */
static inline INLINED void put_columns(const ax_turn *turn, const tile *t, int64_t r, int64_t end, int64_t c, int64_t until,
                                       int64_t item) {
  for (; c < until; c++) {
    char *to = turn->to + step_to(&turn->column_steps, c) + r * item;
    const char *from = t->to + (c - t->column) * t->pitch;
    const int64_t begin = r > turn->row ? to_line(to) : 0, bytes = (end - r) * item;
    const int64_t stop = end < turn->row_end ? least(bytes + to_line(to + bytes), (turn->row_end - r) * item) : bytes;
    if (begin < stop) copy_out(to + begin, from + begin, stop - begin);
  }
}

/* Columns that have nothing between them are one run. */
static inline INLINED void put_run(const ax_turn *turn, const tile *t, int64_t c, int64_t until) {
  const int64_t pitch = t->pitch;
  copy_out(turn->to + c * pitch, t->to + (c - t->column) * pitch, (until - c) * pitch);
}

/* --- All --- */

/* A tile's columns, of so many rows in scratch memory. */
static inline INLINED int64_t across(int64_t pitch, int64_t bytes, int64_t item) {
  return most(least(run_in / item, bytes / pitch), line / item);
}

static inline INLINED void in_tiles(const ax_turn *turn, tile *t, int64_t columns, int64_t item) {
  const int64_t side = part / item, run = run_out / item, more = t->dense ? 0 : line / item;
  for (int64_t r = turn->row; r < turn->row_end; r += run) {
    const int64_t end = least(r + run, turn->row_end);
    list_rows(turn, t, r, end + more, item);
    for (int64_t c = turn->column; c < turn->column_end; c += columns) {
      const int64_t until = least(c + columns, turn->column_end);
      t->column = least(c, turn->columns - side);
      t->columns = most(until - t->column, side);
      turn_tile(t, item);
      if (t->dense) put_run(turn, t, c, until);
      else put_columns(turn, t, r, end, c, until, item);
    }
  }
}

/* Scratch memory for wide tiles; if there is none, they are narrow. */
static inline INLINED void through_scratch(const ax_turn *turn, int64_t item) {
  _Alignas(line) char narrow[narrow_bytes];
  char *wide = ax_alloc(wide_bytes);
  const int64_t height = (turn->row_end - turn->row) * item;
  const bool dense = height <= run_out && is_dense(turn, height);
  const int64_t pitch = dense ? height : run_out + line;
  tile t = {.dense = dense, .pitch = pitch, .to = wide != NULL ? wide : narrow};
  in_tiles(turn, &t, across(pitch, (wide != NULL ? wide_bytes : narrow_bytes) - 2 * line, item), item);
  ax_free(wide);
}

/* Rows that fill no line, or columns that make no square, go by way of scratch memory. */
static inline INLINED void put_rest(const ax_turn *turn, tile *t, int64_t r, char *scratch, int64_t item) {
  enum { pitch = rest_pitch };
  const int64_t side = part / item, across = line / item, bytes = t->rows * item;
  t->pitch = pitch, t->to = scratch;
  for (int64_t c = turn->column; c < turn->column_end; c += across) {
    const int64_t until = least(c + across, turn->column_end);
    t->column = least(c, turn->columns - side);
    t->columns = most(until - t->column, side);
    turn_tile(t, item);
    for (int64_t k = c; k < until; k++)
      memcpy(turn->to + step_to(&turn->column_steps, k) + r * item, scratch + (k - t->column) * pitch, (size_t)bytes);
  }
}

/* A line of each column at a time; at the end the last one again in part. */
static inline INLINED void directly(const ax_turn *turn, int64_t item) {
  const int64_t side = part / item, full = line / item, columns = turn->column_end - turn->column;
  const bool by_lines = columns >= side && turn->column_steps.inner == 0 && turn->row_end - turn->row >= full;
  _Alignas(line) char scratch[line * rest_pitch];
  tile t = {0};
  for (int64_t r = turn->row; r < turn->row_end; r += full) {
    const int64_t from = by_lines ? least(r, turn->row_end - full) : r;
    list_rows(turn, &t, from, from + full, item);
    if (!by_lines) {
      put_rest(turn, &t, r, scratch, item);
      continue;
    }
    t.pitch = turn->column_steps.pitch, t.column = turn->column, t.columns = columns;
    t.to = turn->to + turn->column * t.pitch + from * item;
    turn_rows(&t, 0, line / WIDTH, item);
  }
}

/* --- By elements --- */

#define TURNS(item)                                                                \
  static void direct_##item(const ax_turn *turn) { directly(turn, item); }         \
  static void streamed_##item(const ax_turn *turn) { through_scratch(turn, item); }

TURNS(1)
TURNS(2)
TURNS(4)
TURNS(8)

const ax_turn_table TABLE = {{direct_1, streamed_1}, {direct_2, streamed_2}, {direct_4, streamed_4}, {direct_8, streamed_8}};
