/* To decode two such numbers, compute and round takes 50 to 100 ns; to look up what comes out, 1. */
#include "ops/combine_bytes.h"

#include <stdatomic.h>

#include "ops/pointwise.h"

enum { numbers = 256, most_tables = 24 /* a program has one or two */ };

/* What becomes of a when b is combined with it: result[b][a]. A table that others fill, or that is one too many, is done without. */
typedef struct table {
  atomic_int state;
  ax_scalar combine; /* set with CLAIMED, before FILLING */
  ax_dtype dtype;
  uint8_t result[numbers][numbers];
} table;
enum { FREE, CLAIMED, FILLING, FULL };

static table tables[most_tables];

static uint8_t combined(ax_scalar combine, ax_dtype dtype, uint8_t a, uint8_t b) {
  const ax_number x[] = {ax_number_load(dtype, &a, 0), ax_number_load(dtype, &b, 0)};
  ax_number_store(dtype, &a, 0, ax_scalar_eval(combine, dtype, x, 0));
  return a;
}

static void fill(table *t) {
  for (int b = 0; b < numbers; b++)
    for (int a = 0; a < numbers; a++) t->result[b][a] = combined(t->combine, t->dtype, (uint8_t)a, (uint8_t)b);
  atomic_store(&t->state, FULL);
}

/* NULL: there is none, or not yet. */
static const table *table_of(ax_scalar combine, ax_dtype dtype) {
  for (int i = 0; i < most_tables; i++) {
    table *t = &tables[i];
    int state = FREE;
    if (atomic_compare_exchange_strong(&t->state, &state, CLAIMED)) {
      t->combine = combine, t->dtype = dtype;
      atomic_store(&t->state, FILLING);
      fill(t);
      return t;
    }
    if (state == CLAIMED) return NULL;
    if (t->combine == combine && t->dtype == dtype) return state == FULL ? t : NULL;
  }
  return NULL;
}

void ax_combine_bytes(ax_scalar combine, ax_dtype dtype, const ax_combined *rows) {
  const ax_combined r = *rows;
  const table *t = table_of(combine, dtype);
  for (int64_t i = 0; i < r.rows; i++) {
    uint8_t *to = (uint8_t *)r.to + r.place[i] * r.to_pitch;
    const uint8_t *from = (const uint8_t *)r.from + r.row[i] * r.from_pitch;
    if (t != NULL)
      for (int64_t k = 0; k < r.count; k++) to[k] = t->result[from[k]][to[k]];
    else
      for (int64_t k = 0; k < r.count; k++) to[k] = combined(combine, dtype, to[k], from[k]);
  }
}
