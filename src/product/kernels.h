/* The kernels that make products of one dtype, for one width of register. A *unit* is the content of one lane of the left factor at
   one step of k. It is one number, or the two or four narrow numbers that the processor multiplies and adds in one instruction.
   Narrow numbers without such an instruction are widened to 32 bits when they are packed.

     tile            c[rows, columns] (+)= a[rows, steps] b[steps, columns], with sums in registers: each sum is one chain over the
                     steps, in their order
     narrow          the same for any number of rows, `lanes` at a time, and up to `most_columns` columns; the rows are read where
                     they lie, with their numbers side by side
     across, along   pack lines into panels of two vectors, one panel after the other (the last may have one vector); the numbers
                     of one step lie side by side. across also packs narrower panels, of a tile's rows each, where the left factor
                     lies transposed
     lines           copies rows as they are

   Instructions for four numbers of 8 bits take the left ones as unsigned and the right ones as signed, or the other way round. Such
   kernels are *shifted*: the left numbers' highest bits are turned over when they are packed, so that those of s8 are unsigned and
   128 too large, and those of u8 signed and 128 too small. All sums of a column have the same excess then: 128 or -128 times the
   sum of the column's numbers. Packing of b puts that behind each panel's last step, and a tile takes it off after its steps. 32
   bits wrap, so this is exact for any number of steps.

   The order of additions depends on the steps alone: not on the place of a result in its tile, nor on which factors are packed. */
#ifndef AX_PRODUCT_KERNELS_H
#define AX_PRODUCT_KERNELS_H

#include <string.h>

#include "axle/type.h"

enum { most_steps = 384, fetched_steps = 8 }; /* steps of a block, but of tiles; how many steps ahead `across` prefetches */
/* Bytes between rows that `lines` copied: an odd number of cache lines, so that rows are not all in one set of the cache. */
#define PACKED_LINE(unit_bytes) ((int64_t)most_steps * (unit_bytes) + 64)

/* How a tile's factors lie. The distances of packed factors are constants in the kernels. */
typedef enum ax_standing {
  AX_ANYHOW,
  AX_IN_LINES, /* a copied by `lines`, b in a panel */
  AX_IN_PANEL, /* a in a panel of as many lines as the tile has rows, b in a panel */
} ax_standing;

typedef struct ax_tile {
  const char *a, *b;
  char *c;
  int64_t steps, a_row, a_step, b_step, c_row; /* bytes, except steps */
  int64_t numbers, lines;                      /* for narrow: numbers in a row; rows in all */
  /* For narrow, in bytes: how far ahead rows are prefetched, 0: not; how far behind that a line is asked for again, 0: not; the
     length of a run of lines, behind whose beginning the next one begins a_row; what as many rows as lanes prefetch in all. */
  int64_t ahead, again, run, fetched;
  bool second;                                 /* for narrow: rows so far ahead come into the second cache */
  int rows, columns;                           /* at most most_rows, and two vectors */
  ax_standing stand;
  int b_least;                                 /* for narrow: the least exponent of b, as packing noted it */
  bool add;
  bool turned;                                 /* for narrow: makes c[columns, rows] */
  bool fetch;                                  /* c is not in a near cache: it is prefetched */
  bool resumes, pauses;                        /* for tile: begins with the sums in `held`; leaves sums there, not in c */
  char *held;                                  /* two vectors for each row */
} ax_tile;

typedef struct ax_product_stream { /* few rows by some steps of b, over whole panels of its columns */
  const char *a, *b, *next; /* a: its rows side by side; next: the part of b read after this one */
  char *c, *held;           /* held: sums kept for the next steps, panel after panel */
  int64_t steps, panels, ahead;   /* ahead: how many panels ahead b is prefetched; 0: not */
  int64_t a_step, b_step, c_row;  /* bytes */
  int rows;                 /* at most most_rows; panels have four vectors for up to wide_rows rows, two for more */
  bool add, resumes, pauses; /* as in a tile */
} ax_product_stream;

/* Packs `lines` lines of `count` numbers each: number p of line l lies at from + l * line + p * number (bytes). */
typedef struct ax_packing {
  const char *from;
  char *to;
  int64_t line, number, lines, count;
  int64_t panel;   /* across, along: bytes from one panel to the next */
  int width;       /* across: lines in a panel, at most two vectors */
  bool shifts;     /* for the left factor of shifted kernels */
  bool sums;       /* for the right factor of such: puts the excess of sums behind panels */
  int least;       /* if kernels->careful is set: lowered to the least biased exponent of all nonzero numbers */
} ax_packing;

/* Rows of sums, f32, and of what they become; bytes from one row to the next. */
typedef struct ax_rounding {
  const char *sums;
  char *to;
  int64_t sums_row, to_row, rows, count; /* count: in a row */
} ax_rounding;

enum { no_exponent = 1 << 12 }; /* above any exponent */

typedef struct ax_product_kernels {
  int lanes, most_rows, most_columns, unit; /* results in a vector; rows of a tile; columns of a narrow one; numbers in a unit */
  int number_bytes, unit_bytes, result_bytes;
  bool in_place;  /* units are numbers as they lie in memory: neither factor need be packed */
  bool some;      /* tiles load no more than `columns` columns of b */
  void (*tile)(const ax_tile *tile);
  void (*narrow)(const ax_tile *tile);
  void (*stream)(const ax_product_stream *stream); /* NULL if there is none; otherwise in_place holds */
  int wide_rows;
  void (*across)(ax_packing *packing); /* for lines side by side: line = number_bytes */
  void (*along)(ax_packing *packing);  /* for numbers side by side: number = number_bytes */
  void (*lines)(ax_packing *packing);  /* number = number_bytes; may write up to a vector beyond the line of the last unit */
  /* The processor's bf16 instructions take subnormal numbers as 0, and flush subnormal sums to 0. If the least exponents of both
     factors add up to careful_below or more, no such number arises: each product is a multiple of 2^-126, so every sum is 0 or
     normal. Below that, this tile is used: it makes the same additions in f32. NULL: not needed. */
  void (*careful)(const ax_tile *tile);
  int block_steps; /* the most steps of a block */
  int row_step;    /* rows of a packed group are made in multiples of this many: there is room for them behind the last */
  int step_group;  /* steps of a packed b are filled up with zeros to a multiple of this many */
  bool shifts;     /* packed factors are those of shifted kernels; panels have one more step */
  /* The processor's tiles: rows of a are a_row apart, and a_step is the distance from one group of steps to the next. `lines` packs a
     however it lies, tile after tile. */
  bool in_tiles;
  bool widens_narrow; /* narrow multiplies wider numbers than tiles do */
  /* Rounds sums to the factors' dtype, to nearest even; NULL: there is none. */
  void (*round)(const ax_rounding *rounding);
  /* Called before the first tile of a product and after its last, on the thread that makes it; NULL: not needed. */
  void (*begin)(void), (*end)(void);
} ax_product_kernels;

/* Bytes of a number of a result. */
static inline int64_t ax_made_bytes(const ax_product_kernels *kernels, bool rounds) {
  return rounds ? kernels->number_bytes : kernels->result_bytes;
}

/* The bf16 nearest to an f32; of two equally near, the even one. The lowest bit that is kept makes the difference only where exactly
   half is dropped, whose own lowest bit is 0; so it is put there. */
static inline uint16_t ax_bf16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return (uint16_t)((bits | 0x400000u) >> 16);
  return (uint16_t)(((bits | (bits >> 16 & 1)) + 0x7fffu) >> 16);
}

static inline void ax_bf16_round_row(const char *sums, char *to, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    float sum;
    memcpy(&sum, sums + i * (int64_t)sizeof sum, sizeof sum);
    const uint16_t made = ax_bf16_of(sum);
    memcpy(to + i * (int64_t)sizeof made, &made, sizeof made);
  }
}

/* For kernels' `round`, which give their own function for a row: a constant, so that it is inlined. */
static inline void ax_round_rows(const ax_rounding *r, void (*row)(const char *sums, char *to, int64_t count)) {
  for (int64_t i = 0; i < r->rows; i++) row(r->sums + i * r->sums_row, r->to + i * r->to_row, r->count);
}

enum { careful_below = 142 }; /* 2 * 127 (bias) - 126 (least normal exponent) + 2 * 7 (bits of fraction) */

#endif
