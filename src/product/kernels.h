/* What the products of one dtype are made of, for one width of register. A *unit* is what a lane of the left factor holds at one
   step of k: a number, or, where the processor multiplies two or four narrow ones and adds them all, so many. Narrow numbers
   without such an instruction become of 32 bits when they are packed.

     tile                c[rows, columns] (+)= a[rows, steps] b[steps, columns], sums in registers: each is one chain over the
   steps, in their order narrow              the same, of any number of rows, `lanes` at a time, and up to `most_columns`, whose
   rows are read where they lie, number beside number across, along       pack lines: numbers of one step beside one another, a
   panel of two vectors (the last one: perhaps of one) after the other; across also packs narrower panels: each of a tile's rows,
   where the left factor lies transposed lines               copies rows, each as it is

   Which number is added when depends on steps alone: not on where a result stands in a tile, nor on what was packed. */
#ifndef AX_PRODUCT_KERNELS_H
#define AX_PRODUCT_KERNELS_H

#include "axle/type.h"

enum { most_steps = 384, fetched_steps = 8 }; /* in a block; across: that memory is asked for ahead */
/* Bytes between rows that `lines` copied: an odd number of the cache's lines, so that rows do not meet in one set. */
#define PACKED_LINE(unit_bytes) ((int64_t)most_steps * (unit_bytes) + 64)

/* How the factors of a tile stand; packed ones in distances that its code knows. */
typedef enum ax_standing {
  AX_ANYHOW,
  AX_IN_LINES, /* a in lines, b in a panel */
  AX_IN_PANEL, /* a in a panel of as many lines as the tile has rows, b in one */
} ax_standing;

typedef struct ax_tile {
  const char *a, *b;
  char *c;
  int64_t steps, a_row, a_step, b_step, c_row; /* all but steps: bytes */
  int64_t numbers, lines,
      ahead; /* narrow: of a row, of which the steps are units; rows in all; bytes from what is read to what is fetched, or 0 */
  int rows, columns;                           /* at most most_rows, and two vectors */
  ax_standing stand;
  int b_least;                                 /* narrow: as packing notes it */
  bool add;
  bool turned;                                 /* narrow: c[columns, rows] is made */
  bool fetch;                                  /* c is far: it is fetched ahead */
  bool resumes, pauses;                        /* tile: the sums begin as they stand in `held`; and end there, not in c */
  char *held;                                  /* two vectors a row */
} ax_tile;

typedef struct ax_product_stream { /* few rows by some steps of b, over whole panels of its columns */
  const char *a, *b, *next; /* a: its rows side by side; next: of b, what is read after this */
  char *c, *held;           /* held: where sums wait, panel after panel */
  int64_t steps, panels, ahead;   /* ahead: panels on, whose b is fetched; 0: nothing is */
  int64_t a_step, b_step, c_row;  /* bytes */
  int rows;                 /* at most most_rows; panels are of four vectors for up to wide_rows, of two for more */
  bool add, resumes, pauses; /* as of a tile */
} ax_product_stream;

/* `lines` of `count` numbers each: number p of line l lies at from + l * line + p * number (bytes). */
typedef struct ax_packing {
  const char *from;
  char *to;
  int64_t line, number, lines, count;
  int64_t panel;   /* across, along: bytes from one panel to the next */
  int width;       /* across: lines of a panel, two vectors at most */
  int least;       /* made less or equal to the biased exponents of all numbers but 0, where kernels->careful asks for it */
} ax_packing;

enum { no_exponent = 1 << 12 }; /* above any */

typedef struct ax_product_kernels {
  int lanes, most_rows, most_columns, unit; /* results in a vector; rows of a tile; columns of a narrow one; numbers in a unit */
  int number_bytes, unit_bytes, result_bytes;
  bool in_place;  /* a unit is a number as it lies: nothing need be packed */
  bool some;      /* tiles load no more than `columns` of b */
  void (*tile)(const ax_tile *tile);
  void (*narrow)(const ax_tile *tile);
  void (*stream)(const ax_product_stream *stream); /* NULL: none; else in_place */
  int wide_rows;
  void (*across)(ax_packing *packing); /* number p of all lines lies side by side: line = number_bytes */
  void (*along)(ax_packing *packing);  /* number = number_bytes */
  void (*lines)(ax_packing *packing);  /* number = number_bytes; may write up to a vector more of the last unit's line */
  /* The processor's products of bf16 take subnormal numbers for 0, and make 0 of subnormal sums. Where the least exponents of both
     factors add up to careful_below there are none: each product is a multiple of 2^-126, so any sum is 0 or normal. Below that, a
     tile with the same additions, in f32. NULL: not needed. */
  void (*careful)(const ax_tile *tile);
} ax_product_kernels;

enum { careful_below = 142 }; /* 2 * 127 for the bias, 2 * 7 digits behind the point, 126 */

/* For registers of 64, 32 and 16 bytes; NULL: none for such numbers, or the processor has no such registers. */
const ax_product_kernels *ax_product_kernels_512(ax_dtype dtype);
const ax_product_kernels *ax_product_kernels_256(ax_dtype dtype);
const ax_product_kernels *ax_product_kernels_128(ax_dtype dtype);

#endif
