/* Few rows by a large b, which is read once, where it lies, in long runs: block of k by block of k, some columns at a time, some steps at a time.

     b[some steps, columns]       runs side by side; they stay in the second-level cache for all groups of rows
     a[rows, block]               packed
     held[rows, columns]          sums, that wait in the second-level cache for the next steps

   What comes later is on its way meanwhile. */
#include "product/few.h"

#include "base/base.h"

enum {
  few_groups = 2,           /* of rows */
  least_bytes = 1 << 20,    /* of b and what lies between */
  least_apart = 4 << 10,    /* rows of b: nearer ones are read ahead as they are */
  least_run = 2 << 10,      /* of a row of b */
  far_bytes = 16 << 20,     /* that lie in memory: then runs are few, since that gives them one by one, and rows a power of two apart meet in one set */
  far_steps = 8, near_steps = 32,
  many_rows = 8,            /* that take longer than memory: sums need not wait as often */
  fetched_bytes = 16 << 10, /* on their way */
  held_bytes = 256 << 10,   /* of sums that wait */
  chunk_bytes = 128 << 10,  /* of b, that is read before the next group of rows does */
};

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

bool ax_few_streams(const ax_product *p, const ax_product_kernels *k) {
  if (k->stream == NULL || p->b_column != 1 || p->m == 0 || p->m > few_groups * k->most_rows || (!k->some && p->n % k->lanes != 0)) return false;
  const int64_t apart = p->b_row * k->number_bytes;
  return p->k * apart >= least_bytes && apart >= least_apart && p->n * k->number_bytes >= least_run;
}

/* Vectors of a panel. */
static int64_t panel_vectors(const ax_product_way *way) { return way->rows <= way->kernels->wide_rows ? 4 : 2; }

/* Of b: as many rows of it as are read side by side. */
static int64_t streamed_steps(const ax_product *p, const ax_product_kernels *k) {
  if (p->k * p->b_row * k->number_bytes < far_bytes) return near_steps;
  return p->m > many_rows ? 2 * far_steps : far_steps;
}

/* The rows of a group, packed: numbers of one step side by side. */
static int64_t packed_step(const ax_product_kernels *k, int64_t rows) { return (rows > k->lanes ? 2 : 1) * k->lanes * k->unit_bytes; }

void ax_few_choose(ax_product_way *way, const ax_product *p) {
  const ax_product_kernels *k = way->kernels;
  const int64_t groups = ceil_div(p->m, way->rows), width = panel_vectors(way) * k->lanes;
  const int64_t held = held_bytes / (groups * way->rows * width * k->result_bytes), chunk = chunk_bytes / (streamed_steps(p, k) * width * k->unit_bytes);
  const int64_t most = least(held, chunk), panels = ceil_div(p->n, width);
  way->streams_b = true;
  way->packs_a = way->packs_b = way->plain = false;
  way->groups = groups;
  way->slots = 0;
  way->b_bytes = 0;
  way->columns = ceil_div(panels, ceil_div(panels, most)) * width;
  way->slot_bytes = way->block * packed_step(k, way->rows);
  way->work_bytes = (size_t)(groups * (way->slot_bytes + way->columns * way->rows * k->result_bytes));
}

typedef struct streaming { /* of one block of k */
  const ax_product *product;
  const ax_product_way *way;
  char *packed, *held;
  int64_t groups, numbers;
  bool add;
} streaming;

static void pack(const streaming *s, const char *a) {
  const ax_product *p = s->product;
  const ax_product_kernels *k = s->way->kernels;
  for (int64_t group = 0; group < s->groups; group++) {
    const int64_t row = group * s->way->rows;
    ax_packing packing = {.from = a + row * p->a_row * k->number_bytes, .to = s->packed + group * s->way->slot_bytes, .line = p->a_row * k->number_bytes,
                          .number = p->a_column * k->number_bytes, .lines = least(s->way->rows, p->m - row), .count = s->numbers, .panel = s->way->slot_bytes,
                          .width = (int)s->way->rows, .least = no_exponent};
    (p->a_column == 1 ? k->along : k->across)(&packing);
  }
}

/* The columns that fill no panel; and all of a last group of so few rows that its panels would be wider than those of the others. */
static void make_rest(const streaming *s, const ax_stream *t, int64_t columns) {
  const ax_product_kernels *k = s->way->kernels;
  const int64_t width = 2 * k->lanes, at = t->panels * panel_vectors(s->way) * k->lanes;
  ax_tile tile = {.a = t->a, .steps = t->steps, .a_row = k->unit_bytes, .a_step = t->a_step, .b_step = t->b_step, .c_row = t->c_row, .rows = t->rows,
                  .add = t->add, .resumes = t->resumes, .pauses = t->pauses, .held = t->held + at * t->rows * k->result_bytes};
  for (int64_t column = at; column < columns; column += width, tile.held += width * t->rows * k->result_bytes) {
    tile.b = t->b + column * k->number_bytes;
    tile.c = t->c + column * k->result_bytes;
    tile.columns = (int)least(width, columns - column);
    k->tile(&tile);
  }
}

static void make_columns(const streaming *s, const char *b, char *c, int64_t columns) {
  const ax_product *p = s->product;
  const ax_product_kernels *k = s->way->kernels;
  const int64_t vectors = panel_vectors(s->way), panels = columns / (vectors * k->lanes);
  const int64_t steps = streamed_steps(p, k);
  ax_stream t = {.ahead = fetched_bytes / (steps * vectors * k->lanes * k->unit_bytes), .b_step = p->b_row * k->number_bytes,
                 .c_row = p->c_row * k->result_bytes, .add = s->add};
  for (int64_t step = 0; step < s->numbers; step += steps) {
    t.b = b + step * t.b_step;
    t.next = t.b + steps * t.b_step;
    t.steps = least(steps, s->numbers - step);
    t.resumes = step > 0;
    t.pauses = step + steps < s->numbers;
    for (int64_t group = 0; group < s->groups; group++) {
      const int64_t row = group * s->way->rows;
      t.rows = (int)least(s->way->rows, p->m - row);
      t.a_step = packed_step(k, t.rows);
      t.a = s->packed + group * s->way->slot_bytes + step * t.a_step;
      t.c = c + row * t.c_row;
      t.held = s->held + row * s->way->columns * k->result_bytes;
      t.panels = t.rows > k->wide_rows || vectors > 2 ? panels : 0;
      if (t.panels > 0) k->stream(&t);
      make_rest(s, &t, columns);
    }
  }
}

void ax_few_run(const ax_product *p, const ax_product_way *way, const char *a, const char *b, char *c, char *work) {
  const ax_product_kernels *k = way->kernels;
  streaming s = {.product = p, .way = way, .packed = work, .held = work + way->groups * way->slot_bytes, .groups = way->groups};
  for (int64_t i = 0; i < way->blocks; i++) {
    const int64_t at = i * way->block;
    s.numbers = least(way->block, p->k - at);
    s.add = p->add || i > 0;
    pack(&s, a + at * p->a_column * k->number_bytes);
    for (int64_t column = 0; column < p->n; column += way->columns)
      make_columns(&s, b + (at * p->b_row + column) * k->number_bytes, c + column * k->result_bytes, least(way->columns, p->n - column));
  }
}
