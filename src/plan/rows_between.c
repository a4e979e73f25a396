#include "plan/rows_between.h"

#include <string.h>

#include "plan/op.h"

enum { /* of an allocation */
  reads = 1, writes = 2,
  staying = 0, member = 2, needing = 4 /* shifts of these: by whom; needing: members, or what they need, behind an operation */
};

ax_status ax_rows_between_init(ax_rows_between *b, const ax_plan *plan, ax_arena *tables, uint32_t allocations) {
  b->plan = plan;
  b->touched = ax_arena_alloc(tables, allocations * sizeof b->touched[0]);
  return b->touched != NULL ? AX_OK : ax_out_of_memory(allocations * sizeof b->touched[0]);
}

void ax_rows_between_deinit(ax_rows_between *b) { ax_free(b->noted); }

void ax_rows_between_clear(ax_rows_between *b) {
  for (uint32_t i = 0; i < b->count; i++) b->touched[b->noted[i]] = 0;
  b->count = b->before_count = b->staying = 0;
}

static void note(void *context, uint32_t buffer, bool written) {
  ax_rows_between *b = context;
  const uint32_t allocation = b->plan->buffers[buffer].allocation;
  if (b->touched[allocation] == 0) {
    if (ax_grow(&b->noted, sizeof b->noted[0], b->count, 1, &b->capacity) != AX_OK) {
      b->failed = true;
      return;
    }
    b->noted[b->count++] = allocation;
  }
  b->touched[allocation] |= (uint8_t)((written ? writes : reads) << b->shift);
}

static void note_all(ax_rows_between *b, const ax_op *op, uint8_t as) {
  b->shift = as;
  ax_op_visit(op, note, b);
}

static void look_for_hazard(void *context, uint32_t buffer, bool written) {
  ax_rows_between *b = context;
  const uint8_t by = (uint8_t)(b->touched[b->plan->buffers[buffer].allocation] >> b->shift & (reads | writes));
  if (written ? by != 0 : (by & writes) != 0) b->found = true;
}

/* One of the two writes what the other touches. */
static bool conflicts(ax_rows_between *b, const ax_op *op, uint8_t with) {
  b->shift = with;
  b->found = false;
  ax_op_visit(op, look_for_hazard, b);
  return b->found;
}

void ax_rows_note_member(ax_rows_between *b, const ax_op *op) { note_all(b, op, member); }

bool ax_rows_moves_up(ax_rows_between *b, const ax_op *op) { return !conflicts(b, op, staying); }

void ax_rows_note_other(ax_rows_between *b, const ax_op *op, uint32_t place, bool may_move) {
  if (may_move && !conflicts(b, op, staying) && !conflicts(b, op, member)) {
    b->before[b->before_count++] = place;
    return;
  }
  b->staying++;
  note_all(b, op, staying);
}

/* Moves the operation at `from` up to `to`. */
static void move_up(ax_block *block, bool *gone, uint32_t from, uint32_t to) {
  const ax_op op = block->ops[from];
  memmove(block->ops + to + 1, block->ops + to, (from - to) * sizeof block->ops[0]);
  memmove(gone + to + 1, gone + to, (from - to) * sizeof gone[0]);
  block->ops[to] = op;
  gone[to] = false;
}

/* Leaves those operations in the list that members behind them need, or others in the list that members need. */
static void keep_needed(ax_rows_between *b, const ax_block *block, const uint32_t *places, uint32_t count) {
  uint32_t kept = AX_ROWS_BETWEEN, left = count;
  for (uint32_t i = b->before_count; i-- > 0;) {
    for (; left > 0 && places[left - 1] > b->before[i]; left--) note_all(b, &block->ops[places[left - 1]], needing);
    if (!conflicts(b, &block->ops[b->before[i]], needing)) continue;
    note_all(b, &block->ops[b->before[i]], needing);
    b->before[--kept] = b->before[i];
  }
  b->before_count = AX_ROWS_BETWEEN - kept;
  memmove(b->before, b->before + kept, b->before_count * sizeof b->before[0]);
}

uint32_t ax_rows_move_before(ax_rows_between *b, ax_block *block, bool *gone, uint32_t *places, uint32_t count) {
  const uint32_t at = places[0];
  keep_needed(b, block, places, count);
  for (uint32_t i = 0; i < b->before_count; i++) {
    move_up(block, gone, b->before[i], at + i);
    for (uint32_t k = 0; k < count; k++) places[k] += places[k] < b->before[i];
  }
  return b->before_count;
}
