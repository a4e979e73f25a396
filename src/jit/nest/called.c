/* Decides which transposes are calls of jit/turn: one array moved to another, element by element, in rows of a line at least. Where
   what is written goes past the caches, and in whole lines, squares do as well: they go along each row that is read for longer. */
#include "jit/nest/schedule.h"
#include "jit/turn/turn.h"
#include "machine/caches.h"

enum { line = AX_LINE_BYTES, least_bytes = 4096 /* of both loops; a call takes some 50 ns */ };

/* Columns at such distances drive each other out of a core's first cache, where each is written line by line beside the others.
   Small squares, on the stack, are written one after the other along each column. */
static bool columns_collide(int64_t pitch) {
  enum { ways = 16 };
  return pitch % (ax_caches_here()->first / ways) == 0;
}

bool ax_nest_schedule_can_call(const ax_nest_schedule *s) {
  const ax_nest_access *to = ax_nest_schedule_store(s, 0);
  const ax_ex moved = s->kernel->stores[0].expr;
  if (s->shape != AX_NEST_TRANSPOSE || !ax_nest_schedule_only_moves(s)) return false;
  if (s->kernel->exprs[moved].op != AX_LEAF_LOAD) return false;
  const ax_nest_access *from = &s->accesses[moved];
  const uint32_t bytes = (uint32_t)ax_dtype_bytes(s->kernel->slots[to->slot].dtype), last = s->loop_count - 1;
  if (!from->transposed || ax_turn_of(bytes, false) == NULL) return false;
  if (s->kernel->slots[from->slot].dtype != s->kernel->slots[to->slot].dtype) return false;
  const int64_t rows = s->loops[s->vector].extent, columns = s->loops[last].extent;
  if (rows * bytes < line || columns * bytes < line || rows * columns * bytes < least_bytes) return false;
  if (to->stride[s->vector] != 1 || to->uneven[s->vector] != 0 || from->stride[last] != 1 || from->uneven[last] != 0) return false;
  if (s->kernel->streams) return !ax_nest_schedule_stores_lines(s);
  return to->uneven[last] == 0 && !columns_collide(to->stride[last] * bytes);
}
