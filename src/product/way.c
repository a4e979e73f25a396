/* Chooses how a product is made: what is packed, in which blocks, and the memory for it. See product.c for what becomes of it. */
#include "product/way.h"

#include "base/base.h"
#include "product/few.h"
#include "product/table.h"

enum {
  many_groups = 3,       /* of rows: with so many, a last group of few rows costs little */
  whole_lines = 16,      /* units: blocks begin at cache lines, if rows do */
  turned_groups = 8,     /* of a transposed a, packed at once: a few cache lines from each of its rows */
  few_groups = 2,        /* of rows: if there are no more, b is read where it lies, whatever its size */
  some_groups = 9,       /* of rows: if there are no more, b is read where it lies if it lies near */
  near_parts = 4,        /* of the second cache: what is no larger than one of them is near */
  many_panels = 3,       /* of b's columns: from here on it pays to copy rows of a */
  conflict = 8192,       /* bytes: rows at this distance share a few sets of the cache */
  least_copied = 1024,   /* bytes of a row */
};

/* Says whether a factor of so many lines, so many bytes apart, stays in the second cache while it is read several times. Then
   tiles read it where it lies about as fast as from the first cache: a step takes longer than its two vectors need to come. */
static bool lies_near(int64_t lines, int64_t apart) { return lines * apart <= ax_caches_here()->second / near_parts; }

/* Says whether a block of k of all of b's columns is larger than the first cache. */
static bool exceeds_first(const ax_product *p, const ax_product_kernels *k, int64_t block) {
  return block * p->n * k->unit_bytes > ax_caches_here()->first;
}

static bool packs_b(const ax_product *p, const ax_product_kernels *k, int64_t block) {
  if (!k->in_place || p->b_column != 1) return true;
  if (!k->some && p->n % k->lanes != 0) return true;
  if (p->m <= few_groups * k->most_rows) return false;
  if (!exceeds_first(p, k, block)) return false;
  return p->m > some_groups * k->most_rows || p->far_b || block < p->k || !lies_near(p->k, p->b_row * k->unit_bytes);
}

static bool packs_a(const ax_product *p, const ax_product_kernels *k, int64_t block, bool packs_b) {
  bool turned = p->a_column != 1;
  if (!k->in_place) return true;
  if (p->n <= many_panels * 2 * k->lanes || block * k->unit_bytes < least_copied) return false;
  if (packs_b) return true;
  return turned ? p->far || !lies_near(p->k, p->a_column * k->unit_bytes) : p->a_row * k->number_bytes % conflict == 0;
}

bool ax_takes_in_place(const ax_product *p, const ax_product_kernels *k) {
  return k->in_tiles && p->a_column == 1 && p->k % (k->step_group * k->unit) == 0;
}

/* Rows of a group. If there are few groups, all have about as many rows, so that the last is not much slower for its size. */
static int64_t rows_of(const ax_product *p, const ax_product_kernels *k) {
  int64_t groups = ax_ceil_div(p->m, k->most_rows);
  return groups > many_groups || groups == 0 ? k->most_rows : ax_round_up(ax_ceil_div(p->m, groups), k->row_step);
}

/* Chooses the room for packed rows of a, and how many groups one pass over the columns makes. */
static void choose_slots(ax_product_way *way, const ax_product *p, int64_t units) {
  const ax_product_kernels *k = way->kernels;
  const bool turned = p->a_column != 1, kept = way->columns < p->n;
  way->groups = ax_ceil_div(p->m, way->rows);
  if (!way->packs_a) return;
  const int64_t step = (way->rows > k->lanes ? 2 : 1) * k->lanes * k->unit_bytes,
                packed = k->in_tiles || turned ? step * units : way->rows * PACKED_LINE(k->unit_bytes);
  way->slot_bytes = ax_round_up(packed, AX_LINE_BYTES) + (k->careful != NULL ? AX_LINE_BYTES : 0);
  const int64_t most = ax_caches_here()->kept;
  if (kept && way->groups * way->slot_bytes > most) way->groups = most > way->slot_bytes ? most / way->slot_bytes : 1;
  way->ahead = turned ? turned_groups : 1;
  way->slots = kept || way->groups < way->ahead ? way->groups : way->ahead;
}

/* Few columns do not fill a vector. Then it pays to put rows into lanes, if there are enough rows to fill one and each has
   enough numbers. Tiles that take rows where they lie are faster than memory anyway. */
static bool is_narrow(const ax_product *p, const ax_product_kernels *k, int64_t block, bool turned) {
  if (!turned && k->widens_narrow && ax_takes_in_place(p, k)) return false;
  return p->n <= k->most_columns && p->m >= k->lanes && p->a_column == 1 && 2 * ax_units_of(k, block) >= k->lanes;
}

ax_product ax_product_turned(const ax_product *p) {
  return (ax_product){.dtype = p->dtype,
                      .m = p->n,
                      .n = p->m,
                      .k = p->k,
                      .a_row = p->b_column,
                      .a_column = p->b_row,
                      .b_row = p->a_column,
                      .b_column = p->a_row,
                      .c_row = p->c_row,
                      .add = p->add,
                      .far = p->n * p->b_column * (int64_t)ax_dtype_bytes(p->dtype) > ax_caches_here()->far_rows};
}

/* Bytes of so many columns, packed for one block: whole panels, and a last one that is no wider than needed. */
static size_t columns_bytes(const ax_product_way *way, int64_t columns) {
  const ax_product_kernels *k = way->kernels;
  const int64_t width = 2 * k->lanes, whole = columns / width, rest = columns - whole * width;
  const bool narrow = rest <= k->lanes && k->careful == NULL;
  return (size_t)(whole * way->panel_bytes + (rest == 0 ? 0 : narrow ? way->panel_bytes / 2 : way->panel_bytes));
}

/* Bytes of b that are packed at a time: half of a second cache. */
static int64_t panels_bytes(void) { return ax_caches_here()->second / 2; }

bool ax_rounds_groups(const ax_product *p, const ax_product_way *way) {
  return p->rounds && way->blocks == 1 && !way->narrow && !way->turned;
}

int64_t ax_sums_row(const ax_product_way *way) { return ax_round_up(way->columns * (int64_t)sizeof(float), AX_LINE_BYTES) + AX_LINE_BYTES; }

static void add_room_for_sums(ax_product_way *way, const ax_product *p) {
  if (!p->rounds) return;
  way->sums_at = (size_t)ax_round_up((int64_t)way->work_bytes, AX_LINE_BYTES);
  way->work_bytes =
      way->sums_at + (size_t)(ax_rounds_groups(p, way) ? way->rows * ax_sums_row(way) : p->m * p->n * (int64_t)sizeof(float));
}

/* columns: all columns of b if it is packed already; otherwise 0. turned: the product is a transposed one, whose result lies transposed. */
static ax_product_way choose(const ax_product *p, const ax_product_kernels *k, int64_t columns, bool turned) {
  const int64_t most = (int64_t)k->block_steps * k->unit;
  int64_t blocks = p->k > most ? ax_ceil_div(p->k, most) : 1,
          block = ax_round_up(ax_ceil_div(p->k, blocks), blocks > 1 ? whole_lines * k->unit : k->unit);
  int64_t width = 2 * k->lanes, units = ax_round_up(ax_units_of(k, block), k->step_group);
  int64_t fit = panels_bytes() / (units * k->unit_bytes + 1) / width * width;
  if (fit < width) fit = width;
  ax_product_way way = {.kernels = k, .blocks = block > 0 ? ax_ceil_div(p->k, block) : 1, .block = block, .rows = rows_of(p, k)};
  way.packs_b = columns > 0 || packs_b(p, k, block);
  way.packs_a = packs_a(p, k, block, way.packs_b);
  if (is_narrow(p, k, block, turned)) {
    way.narrow = true;
    way.rows = k->lanes;
    way.packs_a = false;
    way.packs_b = columns > 0 || !k->in_place || p->b_column != 1;
  }
  way.columns = !way.packs_b || p->n <= fit ? p->n : fit;
  if (way.packs_b) {
    way.panel_bytes = width * (units + k->shifts) * k->unit_bytes + (k->careful != NULL ? AX_LINE_BYTES : 0);
    way.b_bytes = columns > 0 ? 0 : columns_bytes(&way, way.columns);
    way.block_bytes = ax_ceil_div(columns > 0 ? columns : p->n, width) * way.panel_bytes;
  }
  choose_slots(&way, p, units);
  way.work_bytes = way.b_bytes + (size_t)(way.slots * way.slot_bytes);
  const bool fetches = p->far && p->k >= AX_WAY_LONG_TILE;
  way.plain = way.blocks == 1 && !way.packs_a && !way.packs_b && !way.narrow && !fetches;
  way.fetches_b = p->m > few_groups * k->most_rows && exceeds_first(p, k, block);
  if (way.narrow || columns > 0) return way;
  if (ax_few_streams(p, k)) ax_few_choose(&way, p);
  if (ax_few_turns(p, k)) ax_few_choose_turns(&way, p);
  return way;
}

/* If a has few rows and b lies transposed, the transposed product is narrow: b's lines are its rows. So b need not be packed,
   unless it is large (few.h). */
static ax_product_way choose_any(const ax_product *p, uint32_t most_bytes) {
  const ax_product_kernels *k = ax_product_kernels_of(p->dtype, most_bytes);
  if (ax_few_may_stream_left(p, k)) {
    const ax_product turned = ax_product_turned(p);
    ax_product_way way = choose(&turned, k, 0, true);
    if (way.streams_b && way.blocks == 1) {
      ax_few_turn_back(&way, &turned);
      return way;
    }
  }
  if (!ax_few_turns(p, k) && p->m <= k->most_columns && p->b_row == 1 && p->b_column != 1 &&
      p->n > k->most_columns) {
    const ax_product turned = ax_product_turned(p);
    ax_product_way way = choose(&turned, k, 0, true);
    way.turned = true;
    if (way.narrow) return way;
  }
  return choose(p, k, 0, false);
}

ax_product_way ax_product_choose(const ax_product *p, uint32_t most_bytes) {
  ax_product_way way = choose_any(p, most_bytes);
  add_room_for_sums(&way, p);
  return way;
}

ax_product_way ax_product_choose_packed(const ax_product *p, int64_t columns, uint32_t most_bytes) {
  ax_product_way way = choose(p, ax_product_kernels_of(p->dtype, most_bytes), columns, false);
  add_room_for_sums(&way, p);
  return way;
}
int64_t ax_product_panel_columns(const ax_product_way *way) { return 2 * way->kernels->lanes; }
int64_t ax_product_panel_at(const ax_product_way *way, int64_t column) {
  return column / ax_product_panel_columns(way) * way->panel_bytes;
}
