/* Products of few rows by a large b, which is read once. Where b lies in rows, it is read in long runs: block of k by block of k,
   some columns at a time, some steps at a time.

     b[some steps, columns]       its rows are read side by side, and stay in the second-level cache for all groups of rows of a
     a[rows, block]               packed
     held[rows, columns]          sums, kept in the second-level cache until the next steps

   The b of the next steps is prefetched meanwhile. Where b lies transposed, it is taken panel by panel of its columns. A panel is
   transposed some steps at a time, and used while these are in the first-level cache:

     panel[turned_steps, two vectors]   transposed
     a[rows, k]                         packed, in the second-level cache
     held[rows, two vectors]

   A tall a that lies transposed is such a b of the transposed product. That is made some columns at a time and turned back. */
#include "product/few.h"

#include <string.h>

#include "base/base.h"

enum {
  few_groups = 5,        /* groups of rows; with more of them it pays to pack b */
  least_run = 2 << 10,   /* bytes of a row of a b in a cache: the processor prefetches shorter rows well */
  least_far_run = 512,   /* the same for a b in memory */
  far_steps = 8,
  near_steps = 32, /* rows of b read side by side. Memory gets fewer, far_steps: it serves one row after another, and rows a power
                      of two apart share a set */
  many_rows = 8,
  more_rows = 28, /* rows of a whose arithmetic takes longer than memory, and twice as long: their sums are held less often */
  fetched_bytes = 16 << 10, /* prefetched ahead */
  least_turned = 5,
  most_turned = 16,        /* rows by a transposed b: fewer are made by narrow products; for more, b is packed */
  least_panels = 8,        /* panels of such a b; the last may have few columns */
  turned_steps = 128,      /* steps transposed at a time: they stay in the first-level cache */
  held_bytes = 256 << 10,  /* of sums held for the next steps */
  chunk_bytes = 128 << 10, /* of b, read for one group of rows before the next group reads it */
};

/* b is in no cache of a core's own. The gaps between its rows count. */
static bool is_large(int64_t bytes) { return bytes >= ax_caches_here()->second; }

/* b lies in memory. */
static bool is_far(const ax_product *p, const ax_product_kernels *k) {
  return p->far_b || p->k * p->b_row * k->number_bytes >= ax_caches_here()->far_factor;
}

bool ax_few_streams(const ax_product *p, const ax_product_kernels *k) {
  if (k->stream == NULL || p->b_column != 1 || p->m == 0 || p->m > few_groups * k->most_rows || (!k->some && p->n % k->lanes != 0))
    return false;
  const int64_t apart = p->b_row * k->number_bytes;
  return is_large(p->k * apart) && p->n * k->number_bytes >= (is_far(p, k) ? least_far_run : least_run);
}

/* The number of vectors in a panel. */
static int64_t panel_vectors(const ax_product_way *way) { return way->rows <= way->kernels->wide_rows ? 4 : 2; }

/* The number of rows of b that are read side by side. */
static int64_t streamed_steps(const ax_product *p, const ax_product_kernels *k) {
  if (p->m > more_rows || p->k * p->b_row * k->number_bytes < ax_caches_here()->far_factor) return near_steps;
  return p->m > many_rows ? 2 * far_steps : far_steps;
}

/* Bytes from one step to the next in the packed rows of a group: a step has the numbers of all rows side by side. */
static int64_t packed_step(const ax_product_kernels *k, int64_t rows) {
  return (rows > k->lanes ? 2 : 1) * k->lanes * k->unit_bytes;
}

void ax_few_choose(ax_product_way *way, const ax_product *p) {
  const ax_product_kernels *k = way->kernels;
  const int64_t groups = ax_ceil_div(p->m, way->rows), width = panel_vectors(way) * k->lanes;
  const int64_t held = held_bytes / (groups * way->rows * width * k->result_bytes),
                chunk = chunk_bytes / (streamed_steps(p, k) * width * k->unit_bytes);
  const int64_t most = ax_least(held, chunk), panels = ax_ceil_div(p->n, width);
  way->streams_b = true;
  way->packs_a = way->packs_b = way->plain = false;
  way->groups = groups;
  way->slots = 0;
  way->b_bytes = 0;
  way->columns = ax_ceil_div(panels, ax_ceil_div(panels, most)) * width;
  way->slot_bytes = way->block * packed_step(k, way->rows);
  way->work_bytes = (size_t)(groups * (way->slot_bytes + way->columns * way->rows * k->result_bytes));
}

typedef struct streaming { /* over one block of k */
  const ax_product *product;
  const ax_product_way *way;
  char *packed, *held;
  int64_t groups, numbers;
  bool add;
} streaming;

/* Packs the rows of a over `numbers` steps of k, group by group; groups are way->slot_bytes apart. */
static void pack(const ax_product *p, const ax_product_way *way, const char *a, int64_t numbers, char *packed) {
  const ax_product_kernels *k = way->kernels;
  for (int64_t row = 0; row < p->m; row += way->rows, packed += way->slot_bytes) {
    ax_packing packing = {.from = a + row * p->a_row * k->number_bytes,
                          .to = packed,
                          .line = p->a_row * k->number_bytes,
                          .number = p->a_column * k->number_bytes,
                          .lines = ax_least(way->rows, p->m - row),
                          .count = numbers,
                          .panel = way->slot_bytes,
                          .width = (int)way->rows,
                          .least = no_exponent};
    (p->a_column == 1 ? k->along : k->across)(&packing);
  }
}

/* Makes the columns that fill no panel. It also makes all columns of a last group with so few rows that its panels would be
   wider than those of the other groups. */
static void make_rest(const streaming *s, const ax_product_stream *t, int64_t columns) {
  const ax_product_kernels *k = s->way->kernels;
  const int64_t width = 2 * k->lanes, at = t->panels * panel_vectors(s->way) * k->lanes;
  ax_tile tile = {.a = t->a,
                  .steps = t->steps,
                  .a_row = k->unit_bytes,
                  .a_step = t->a_step,
                  .b_step = t->b_step,
                  .c_row = t->c_row,
                  .rows = t->rows,
                  .add = t->add,
                  .resumes = t->resumes,
                  .pauses = t->pauses,
                  .held = t->held + at * t->rows * k->result_bytes};
  for (int64_t column = at; column < columns; column += width, tile.held += width * t->rows * k->result_bytes) {
    tile.b = t->b + column * k->number_bytes;
    tile.c = t->c + column * k->result_bytes;
    tile.columns = (int)ax_least(width, columns - column);
    k->tile(&tile);
  }
}

static void make_columns(const streaming *s, const char *b, char *c, int64_t columns) {
  const ax_product *p = s->product;
  const ax_product_kernels *k = s->way->kernels;
  const int64_t vectors = panel_vectors(s->way), panels = columns / (vectors * k->lanes);
  const int64_t steps = streamed_steps(p, k);
  ax_product_stream t = {.ahead = fetched_bytes / (steps * vectors * k->lanes * k->unit_bytes),
                         .b_step = p->b_row * k->number_bytes,
                         .c_row = p->c_row * k->result_bytes,
                         .add = s->add};
  for (int64_t step = 0; step < s->numbers; step += steps) {
    t.b = b + step * t.b_step;
    t.next = t.b + steps * t.b_step;
    t.steps = ax_least(steps, s->numbers - step);
    t.resumes = step > 0;
    t.pauses = step + steps < s->numbers;
    for (int64_t group = 0; group < s->groups; group++) {
      const int64_t row = group * s->way->rows;
      t.rows = (int)ax_least(s->way->rows, p->m - row);
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

/* --- A tall a transposed --- */

bool ax_few_may_stream_left(const ax_product *p, const ax_product_kernels *k) {
  return p->a_row == 1 && p->a_column != 1 && p->n <= k->most_columns && p->m > p->n;
}

void ax_few_turn_back(ax_product_way *way, const ax_product *turned) {
  way->turned = true;
  way->work_bytes += (size_t)(turned->m * way->columns * way->kernels->result_bytes);
}

/* A result at these places, of 4 or 8 bytes. */
static inline void copy_result(char *to, const char *from, int64_t bytes) {
  if (bytes == 4) memcpy(to, from, 4);
  else memcpy(to, from, (size_t)bytes);
}

/* Copies `columns` columns of the transposed product, whose rows are `apart` results apart, to rows of c, or from there. */
static void copy_rows(const ax_product *p, const ax_product_kernels *k, char *made, int64_t apart, int64_t columns, char *c,
                      bool from) {
  const int64_t bytes = k->result_bytes;
  for (int64_t i = 0; i < columns; i++)
    for (int64_t j = 0; j < p->m; j++) {
      char *there = made + (j * apart + i) * bytes, *here = c + (i * p->c_row + j) * bytes;
      if (from) copy_result(there, here, bytes);
      else copy_result(here, there, bytes);
    }
}

/* --- Running --- */

/* All of k is one block. */
static void run_turned(const ax_product *p, const ax_product_way *way, const char *a, const char *b, char *c, char *work) {
  const ax_product_kernels *k = way->kernels;
  char *made = work + way->groups * (way->slot_bytes + way->columns * way->rows * k->result_bytes);
  ax_product part = *p;
  part.c_row = way->columns;
  streaming s = {.product = &part,
                 .way = way,
                 .packed = work,
                 .held = work + way->groups * way->slot_bytes,
                 .groups = way->groups,
                 .numbers = p->k,
                 .add = p->add};
  pack(p, way, a, p->k, s.packed);
  for (int64_t column = 0; column < p->n; column += way->columns) {
    const int64_t columns = ax_least(way->columns, p->n - column);
    char *rows = c + column * p->c_row * k->result_bytes;
    if (p->add) copy_rows(p, k, made, way->columns, columns, rows, true);
    make_columns(&s, b + column * k->number_bytes, made, columns);
    copy_rows(p, k, made, way->columns, columns, rows, false);
  }
}

void ax_few_run(const ax_product *p, const ax_product_way *way, const char *a, const char *b, char *c, char *work) {
  const ax_product_kernels *k = way->kernels;
  if (way->turned) {
    run_turned(p, way, a, b, c, work);
    return;
  }
  streaming s = {.product = p, .way = way, .packed = work, .held = work + way->groups * way->slot_bytes, .groups = way->groups};
  for (int64_t i = 0; i < way->blocks; i++) {
    const int64_t at = i * way->block;
    s.numbers = ax_least(way->block, p->k - at);
    s.add = p->add || i > 0;
    pack(p, way, a + at * p->a_column * k->number_bytes, s.numbers, s.packed);
    for (int64_t column = 0; column < p->n; column += way->columns)
      make_columns(&s, b + (at * p->b_row + column) * k->number_bytes, c + column * k->result_bytes,
                   ax_least(way->columns, p->n - column));
  }
}

/* --- b transposed --- */

bool ax_few_turns(const ax_product *p, const ax_product_kernels *k) {
  const int64_t bytes = p->n * p->b_column * k->number_bytes;
  if (k->stream == NULL || p->b_row != 1 || p->b_column == 1 || p->m < least_turned || p->m > most_turned || p->k == 0)
    return false;
  return is_large(bytes) && p->n >= least_panels * 2 * k->lanes;
}

void ax_few_choose_turns(ax_product_way *way, const ax_product *p) {
  const ax_product_kernels *k = way->kernels;
  const int64_t panel = 2 * k->lanes;
  way->turns_b = true;
  way->packs_a = way->packs_b = way->plain = false;
  way->groups = ax_ceil_div(p->m, way->rows);
  way->slots = 0;
  way->b_bytes = 0;
  way->columns = p->n;
  way->slot_bytes = way->block * packed_step(k, way->rows);
  way->work_bytes = (size_t)(way->blocks * way->groups * way->slot_bytes +
                             panel * (2 * turned_steps * k->unit_bytes + way->groups * way->rows * k->result_bytes));
}

typedef struct turning { /* over one panel of b's columns */
  const ax_product *product;
  const ax_product_way *way;
  char *rows, *panel, *held; /* packed rows of a; some steps of the panel; sums held until the next steps */
  int64_t columns;
} turning;

static void turn_steps(const turning *t, const char *b, int64_t step, int64_t steps) {
  const ax_product *p = t->product;
  const ax_product_kernels *k = t->way->kernels;
  ax_packing packing = {.from = b + step * k->number_bytes,
                        .to = t->panel,
                        .line = p->b_column * k->number_bytes,
                        .number = k->number_bytes,
                        .lines = t->columns,
                        .count = steps,
                        .least = no_exponent};
  k->along(&packing);
}

/* The number of steps to make next, if `left` remain in the block: a short remainder is made together with the steps before
   it. */
static int64_t steps_of(int64_t left) { return left < 2 * turned_steps - turned_steps / 2 ? left : turned_steps; }

/* Makes steps_of(numbers - at) steps of a block of k, from step `at` on, for all rows. */
static void make_steps(const turning *t, int64_t block, int64_t at, int64_t numbers, char *c) {
  const ax_product *p = t->product;
  const ax_product_way *way = t->way;
  const ax_product_kernels *k = way->kernels;
  const int64_t width = 2 * k->lanes;
  ax_tile tile = {.b = t->panel,
                  .steps = steps_of(numbers - at),
                  .a_row = k->unit_bytes,
                  .b_step = (t->columns > k->lanes ? width : k->lanes) * k->unit_bytes,
                  .c_row = p->c_row * k->result_bytes,
                  .columns = (int)t->columns,
                  .stand = AX_IN_PANEL,
                  .add = p->add || block > 0,
                  .resumes = at > 0,
                  .pauses = at + steps_of(numbers - at) < numbers};
  for (int64_t group = 0; group < way->groups; group++) {
    const int64_t row = group * way->rows;
    tile.rows = (int)ax_least(way->rows, p->m - row);
    tile.a_step = packed_step(k, tile.rows);
    tile.a = t->rows + (block * way->groups + group) * way->slot_bytes + at * tile.a_step;
    tile.c = c + row * tile.c_row;
    tile.held = t->held + row * width * k->result_bytes;
    k->tile(&tile);
  }
}

void ax_few_run_turns(const ax_product *p, const ax_product_way *way, const char *a, const char *b, char *c, char *work) {
  const ax_product_kernels *k = way->kernels;
  const int64_t width = 2 * k->lanes;
  turning t = {.product = p, .way = way, .rows = work, .panel = work + way->blocks * way->groups * way->slot_bytes};
  t.held = t.panel + width * 2 * turned_steps * k->unit_bytes;
  for (int64_t i = 0; i < way->blocks; i++)
    pack(p, way, a + i * way->block * p->a_column * k->number_bytes, ax_least(way->block, p->k - i * way->block),
         t.rows + i * way->groups * way->slot_bytes);
  for (int64_t column = 0; column < p->n; column += width) {
    t.columns = ax_least(width, p->n - column);
    for (int64_t i = 0; i < way->blocks; i++) {
      const int64_t step = i * way->block, numbers = ax_least(way->block, p->k - step);
      for (int64_t at = 0; at < numbers; at += steps_of(numbers - at)) {
        turn_steps(&t, b + column * p->b_column * k->number_bytes, step + at, steps_of(numbers - at));
        make_steps(&t, i, at, numbers, c + column * k->result_bytes);
      }
    }
  }
}
