/* Every function of jit/turn, for each size of element, against plain loops: extents around lines and tiles, ranges of rows and of
   columns, rows in two loops, places that begin no line. Nothing beyond what is moved is written, and nothing beyond the arrays is
   read. */
#include "jit/turn/turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "jit/guarded_test.h"
#include "support/cmocka.h"

typedef struct matrix {
  uint32_t bytes;
  int64_t rows, columns, row_room, column_room; /* room: elements between rows, and between columns */
} matrix;

static int64_t place(const ax_turn_steps *s, int64_t i) { return i * s->pitch + (s->inner == 0 ? 0 : i / s->inner * s->uneven); }

static void plainly(const ax_turn *t, uint32_t bytes) {
  for (int64_t r = t->row; r < t->row_end; r++)
    for (int64_t c = t->column; c < t->column_end; c++)
      memcpy(t->to + place(&t->column_steps, c) + r * bytes, t->from + place(&t->row_steps, r) + c * bytes, bytes);
}

static size_t end_of(const ax_turn_steps *s, int64_t count, int64_t run) {
  size_t end = 0;
  for (int64_t i = 0; i < count; i++)
    if ((size_t)(place(s, i) + run) > end) end = (size_t)(place(s, i) + run);
  return end;
}

static void check(const ax_turn_table *table, ax_turn t, uint32_t bytes, int64_t rows, bool streams) {
  const size_t from_bytes = end_of(&t.row_steps, rows, t.columns * bytes),
               to_bytes = end_of(&t.column_steps, t.columns, rows * bytes);
  guarded from = guarded_create(from_bytes, true), to = guarded_create(to_bytes, streams);
  char *wanted = malloc(to_bytes);
  for (size_t i = 0; i < from_bytes; i++) ((char *)from.data)[i] = (char)(i * 2654435761u >> 13);
  memset(to.data, 0x55, to_bytes);
  memset(wanted, 0x55, to_bytes);
  t.from = from.data, t.to = wanted;
  plainly(&t, bytes);
  t.to = to.data;
  (*table)[__builtin_ctz(bytes)][streams](&t);
  assert_memory_equal(to.data, wanted, to_bytes);
  free(wanted);
  guarded_destroy(&from);
  guarded_destroy(&to);
}

static void each_way(ax_turn t, uint32_t bytes, int64_t rows) {
  for (int streams = 0; streams < 2; streams++) {
    check(&ax_turn_16, t, bytes, rows, streams);
    if (ax_turn_of(bytes, streams) != ax_turn_16[__builtin_ctz(bytes)][streams]) check(&ax_turn_32, t, bytes, rows, streams);
  }
}

static ax_turn dense(uint32_t bytes, int64_t rows, int64_t columns) {
  return (ax_turn){.row_end = rows, .column_end = columns, .columns = columns, .row_steps = {columns * bytes, 0, 0},
                   .column_steps = {rows * bytes, 0, 0}};
}

static void all_extents(void **state) {
  static const int64_t extents[] = {1, 3, 4, 15, 16, 17, 31, 33, 63, 64, 65, 100, 131, 257, 300};
  (void)state;
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
    for (size_t i = 0; i < AX_COUNT(extents); i++)
      for (size_t j = 0; j < AX_COUNT(extents); j++)
        if (extents[j] * bytes >= 16) each_way(dense(bytes, extents[i], extents[j]), bytes, extents[i]);
}

static void ranges(void **state) {
  static const int64_t from[] = {0, 1, 30, 64, 99}, end[] = {1, 33, 64, 100, 130};
  const int64_t rows = 130, columns = 1100;
  (void)state;
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
    for (size_t i = 0; i < AX_COUNT(from); i++)
      for (size_t j = 0; j < AX_COUNT(end); j++) {
        ax_turn t = dense(bytes, rows, columns);
        if (from[i] >= end[j]) continue;
        t.row = from[i], t.row_end = end[j];
        each_way(t, bytes, rows);
        t = dense(bytes, rows, columns);
        t.column = from[i], t.column_end = end[j];
        each_way(t, bytes, rows);
        t.row = 7, t.row_end = 91;
        each_way(t, bytes, rows);
      }
}

static void *no_memory(void *user, size_t bytes, size_t align) { return (void)user, (void)bytes, (void)align, NULL; }
static void nothing_to_release(void *user, void *memory) { (void)user, (void)memory; }

/* Tiles are narrow then. */
static void without_memory(void **state) {
  const ax_allocator none = {no_memory, nothing_to_release, NULL};
  (void)state;
  ax_set_allocator(&none);
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) each_way(dense(bytes, 1000, 300), bytes, 1000);
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) each_way(dense(bytes, 17, 1000), bytes, 17);
  ax_set_allocator(NULL);
}

/* Rows are those of two loops, and so are columns; there is room between them. */
static void two_loops(void **state) {
  const int64_t rows = 5 * 30, columns = 3 * 40;
  (void)state;
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) {
    ax_turn t = dense(bytes, rows, columns);
    t.row_steps = (ax_turn_steps){(columns + 5) * bytes, 30, 700 * bytes};
    each_way(t, bytes, rows);
    t.column_steps = (ax_turn_steps){(rows + 3) * bytes, 40, 900 * bytes};
    each_way(t, bytes, rows);
  }
}

static void names(void **state) {
  char name[AX_TURN_NAME];
  (void)state;
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
    for (int streams = 0; streams < 2; streams++) {
      ax_turn_name(bytes, streams, name);
      assert_true(ax_turn_find(name) == ax_turn_of(bytes, streams) && ax_turn_find(name) != NULL);
    }
  static const char *const wrong[] = {"", "axle_turn", "axle_turn_3_0", "axle_turn_4_2", "axle_turn_4_0x", "axle_math_1_0_0_0"};
  for (size_t i = 0; i < AX_COUNT(wrong); i++) assert_null(ax_turn_find(wrong[i]));
  assert_null(ax_turn_of(0, false));
  assert_null(ax_turn_of(16, true));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_extents),
      cmocka_unit_test(ranges),
      cmocka_unit_test(without_memory),
      cmocka_unit_test(two_loops),
      cmocka_unit_test(names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
