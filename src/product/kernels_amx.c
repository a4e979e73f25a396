/* Kernels for processors with AMX: products of bf16, and of s8 or u8, in the processor's tiles, 16 rows of 64 bytes each.

     a[2 x 16 rows, 16 units]     two tiles, which `lines` copied one after the other
     b[16 units, 2 x 16 columns]  two tiles, from a panel
     c[32 rows, 32 columns]       four tiles of sums

   One instruction multiplies two tiles and adds the 16 x 16 results to a third: for four of them there are four loads. Steps are
   filled up with zeros to 16, rows and columns of c with results that are not stored. Loads keep up with products even from the
   second cache (README.md), so blocks of k are long: each costs a pass over c.

   Sums of bf16 have an order of their own, which the processor's manual gives (TDPBF16PS): over 16 units, the first numbers of all
   units are one chain of fused multiply-adds that begins with 0, and the second numbers are another; both are added to each other,
   and then to the sum. All of this rounds to nearest, whatever the thread's rounding, takes subnormal numbers as 0 and flushes
   subnormal sums to 0. `careful` makes the same additions in f32, and keeps subnormals; so does `narrow`. */
#include "product/kernels_512.h"

/* Compilers' names for AMX; older versions of clang have others. */
#if (defined(__AMX_BF16__) && defined(__AMX_INT8__)) || (defined(__AMXBF16__) && defined(__AMXINT8__))
#define HAS_TILES 1
#endif

#if AX_HAS_512 && defined(__AVX512VNNI__) && HAS_TILES

enum { tile_rows = 16, row_bytes = 64, tile_bytes = tile_rows * row_bytes, group = 16, /* group: units in a row of a tile */
       long_block = 1024 };

/* --- The processor's tiles --- */

typedef struct tile_shapes { /* as LDTILECFG reads them */
  uint8_t palette, start, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_shapes;

/* Tiles belong to the thread. While they are in use, the system saves their 8 KiB with the thread's other registers. */
static void take_tiles(void) {
  static const tile_shapes shapes = {
      .palette = 1,
      .row_bytes = {row_bytes, row_bytes, row_bytes, row_bytes, row_bytes, row_bytes, row_bytes, row_bytes},
      .rows = {tile_rows, tile_rows, tile_rows, tile_rows, tile_rows, tile_rows, tile_rows, tile_rows}};
  _tile_loadconfig(&shapes);
}

static void give_tiles(void) { _tile_release(); }

/* Adds rows of a tile of sums to those of c, or stores them there. */
static inline void put_floats(const ax_tile *t, const char *sums, int row, int column) {
  const int rows = t->rows - row < tile_rows ? t->rows - row : tile_rows,
            columns = t->columns - column < 16 ? t->columns - column : 16;
  char *c = t->c + row * t->c_row + column * (int64_t)sizeof(float);
  for (int i = 0; i < rows; i++, c += t->c_row, sums += row_bytes) {
    floats sum = f32_load(sums);
    if (t->add) sum += f32_load_some(c, columns);
    f32_store_some(c, sum, columns);
  }
}

static inline void put_words(const ax_tile *t, const char *sums, int row, int column) {
  const int rows = t->rows - row < tile_rows ? t->rows - row : tile_rows,
            columns = t->columns - column < 16 ? t->columns - column : 16;
  char *c = t->c + row * t->c_row + column * (int64_t)sizeof(uint32_t);
  for (int i = 0; i < rows; i++, c += t->c_row, sums += row_bytes) {
    words sum = s32_load(sums);
    if (t->add) sum += s32_load_some(c, columns);
    s32_store_some(c, sum, columns);
  }
}

/* --- bf16 --- */

#define KIND(name) pair_##name
#define UNITS(name) s32_##name
#define RESULTS(name) f32_##name
#define CAREFUL 1
#define NO_TILE 1
#define NO_NARROW 1
#define LANES 16
#define ROWS 32
#define UNIT 2
#define SOME 1
#define FACTOR words
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

#define KIND(name) pair_##name
#define MULTIPLY(c, a, b) _tile_dpbf16ps(c, a, b)
#define PUT put_floats
#define UNIT 2
#define NUMBER_BYTES 2
#include "product/amx_template.h"

/* A chain of sums of the first numbers of units, and one of the second numbers. */
static inline void add_unit(floats *first, floats *second, words a, words b) {
  const words upper = (words){0} + 0xffff0000u;
  *first = f32_multiply_add(*first, (floats)(a << 16), (floats)(b << 16));
  *second = f32_multiply_add(*second, (floats)(a & upper), (floats)(b & upper));
}

/* One row and 16 columns, or fewer, in f32. */
static void careful_row(const ax_tile *t, int row, int column) {
  const int columns = t->columns - column < 16 ? t->columns - column : 16;
  const char *a = t->a + row * t->a_row, *b = t->b + column * (int64_t)sizeof(uint32_t);
  char *c = t->c + row * t->c_row + column * (int64_t)sizeof(float);
  floats sum = {0};
  for (int64_t step = 0; step < t->steps; step += group, a += t->a_step) {
    floats first = {0}, second = {0};
    for (int64_t u = step; u < step + group && u < t->steps; u++)
      add_unit(&first, &second, s32_broadcast(a + (u - step) * (int64_t)sizeof(uint32_t)), s32_load(b + u * t->b_step));
    sum += first + second;
  }
  if (t->add) sum += f32_load_some(c, columns);
  f32_store_some(c, sum, columns);
}

static void careful(const ax_tile *t) {
  for (int row = 0; row < t->rows; row++)
    for (int column = 0; column < t->columns; column += 16) careful_row(t, row, column);
}

/* Adds a group of units of LANES rows to the sums. Returns the place in b behind them. columns is a constant at every call, since
   this is always inlined. */
static inline __attribute__((always_inline)) const char *add_group(floats *sum, const words *x, int units, const char *b,
                                                                   int64_t b_step, const int columns) {
  floats first[4] = {{0}}, second[4] = {{0}};
  for (int u = 0; u < units; u++, b += b_step)
    for (int j = 0; j < columns; j++) add_unit(&first[j], &second[j], x[u], s32_broadcast(b + j * (int64_t)sizeof(uint32_t)));
  for (int j = 0; j < columns; j++) sum[j] += first[j] + second[j];
  return b;
}

/* See narrow_template.h. */
static inline __attribute__((always_inline)) void narrow_of(const ax_tile *t, const int columns) {
  enum { numbers_of_group = 2 * group };
  ax_tile one = *t;
  int64_t rows[16];
  for (int l = 0; l < 16; l++) rows[l] = l * t->a_row;
  for (int64_t left = t->lines; left > 0; left -= 16) {
    floats sum[12] = {{0}};
    words x[16], least = pair_none(); /* exponents do not matter to f32 */
    const char *a = one.a, *b = t->b;
    pair_coming coming = {a + t->ahead, 0, t->fetched};
    one.lines = one.rows = left < 16 ? (int)left : 16;
    for (int l = one.rows; l < 16; l++) rows[l] = (one.rows - 1) * t->a_row; /* lanes without a row compute the last one again */
    for (int64_t numbers = t->numbers; numbers > 0; numbers -= numbers_of_group, a += row_bytes) {
      const int64_t some = numbers < numbers_of_group ? numbers : numbers_of_group;
      const int units = (int)(some + 1) / 2;
      if (one.rows == 16 && some == numbers_of_group) pair_take_square(x, a, t->a_row, &least);
      else pair_take_some(x, a, rows, (int)some, &least);
      for (int u = 0; t->ahead > 0 && u < units; u++) pair_fetch_step(t, &coming);
      b = add_group(sum, x, units, b, t->b_step, columns);
    }
    while (coming.left > 0) pair_fetch_step(t, &coming);
    pair_put_columns(&one, sum);
    one.a += 16 * t->a_row;
    one.c += 16 * (t->turned ? (int64_t)sizeof(float) : t->c_row);
  }
}

static void narrow(const ax_tile *t) {
  switch (t->columns) {
    case 1: narrow_of(t, 1); break;
    case 2: narrow_of(t, 2); break;
    case 3: narrow_of(t, 3); break;
    case 4: narrow_of(t, 4); break;
  }
}

static const ax_product_kernels pairs = {.lanes = 16,
                                         .most_rows = 2 * tile_rows,
                                         .most_columns = 4,
                                         .unit = 2,
                                         .number_bytes = 2,
                                         .unit_bytes = 4,
                                         .result_bytes = 4,
                                         .some = true,
                                         .tile = pair_in_tiles,
                                         .narrow = narrow,
                                         .across = pair_filled_across,
                                         .along = pair_filled_along,
                                         .lines = pair_into_tiles,
                                         .careful = careful,
                                         .round = bf16_round,
                                         .widens_narrow = true,
                                         .block_steps = long_block,
                                         .row_step = tile_rows,
                                         .step_group = group,
                                         .in_tiles = true,
                                         .begin = take_tiles,
                                         .end = give_tiles};

/* --- s8, and u8 --- */

/* Tiles take both factors as signed, or as unsigned. Only narrow products are shifted, by their kernel. */
#define KIND(name) four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD four_multiply_add
#define SHIFTED 1
#define NO_TILE 1
#define LANES 16
#define ROWS 32
#define UNIT 4
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

#define KIND(name) four_##name
#define MULTIPLY(c, a, b) _tile_dpbssd(c, a, b)
#define PUT put_words
#define UNIT 4
#define NUMBER_BYTES 1
#include "product/amx_template.h"

static const ax_product_kernels fours = {.lanes = 16,
                                         .most_rows = 2 * tile_rows,
                                         .most_columns = 12,
                                         .unit = 4,
                                         .number_bytes = 1,
                                         .unit_bytes = 4,
                                         .result_bytes = 4,
                                         .some = true,
                                         .tile = four_in_tiles,
                                         .narrow = four_narrow,
                                         .across = four_filled_across,
                                         .along = four_filled_along,
                                         .lines = four_into_tiles,
                                         .block_steps = long_block,
                                         .row_step = tile_rows,
                                         .step_group = group,
                                         .in_tiles = true,
                                         .begin = take_tiles,
                                         .end = give_tiles};

#define KIND(name) u8_four_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD u8_four_multiply_add
#define SHIFTED 1
#define NO_TILE 1
#define LANES 16
#define ROWS 32
#define UNIT 4
#define SOME 1
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

#define KIND(name) u8_four_##name
#define MULTIPLY(c, a, b) _tile_dpbuud(c, a, b)
#define PUT put_words
#define UNIT 4
#define NUMBER_BYTES 1
#include "product/amx_template.h"

static const ax_product_kernels u8_fours = {.lanes = 16,
                                            .most_rows = 2 * tile_rows,
                                            .most_columns = 12,
                                            .unit = 4,
                                            .number_bytes = 1,
                                            .unit_bytes = 4,
                                            .result_bytes = 4,
                                            .some = true,
                                            .tile = u8_four_in_tiles,
                                            .narrow = u8_four_narrow,
                                            .across = u8_four_filled_across,
                                            .along = u8_four_filled_along,
                                            .lines = u8_four_into_tiles,
                                            .block_steps = long_block,
                                            .row_step = tile_rows,
                                            .step_group = group,
                                            .in_tiles = true,
                                            .begin = take_tiles,
                                            .end = give_tiles};

const ax_product_kernels *ax_product_amx_pairs(void) { return &pairs; }
const ax_product_kernels *ax_product_amx_fours(void) { return &fours; }
const ax_product_kernels *ax_product_amx_u8_fours(void) { return &u8_fours; }

#else

const ax_product_kernels *ax_product_amx_pairs(void) { return NULL; }
const ax_product_kernels *ax_product_amx_fours(void) { return NULL; }
const ax_product_kernels *ax_product_amx_u8_fours(void) { return NULL; }

#endif
