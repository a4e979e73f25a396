/* Products of matrices, on one thread: c (+)= a b, with factors of any strides. Factors of bf16 and f16 give results in f32.
   Factors of s8 and u8 give s32. Sums of integers wrap. Each result is a sum of blocks of at most some hundred
   products: a block is one chain in the order of k, and blocks are added in their order. So the bits of a result follow from k and
   the processor alone. They depend neither on the tile in which a result is made, nor on the product's other dimensions or
   strides. */
#ifndef AX_PRODUCT_PRODUCT_H
#define AX_PRODUCT_PRODUCT_H

#include "machine/caches.h"
#include "machine/features.h"
#include "product/kernels.h"

enum {
  AX_PRODUCT_LONG =
      16 << 10 /* numbers of a sum; a longer one is too inexact as one product, so the caller adds up several (run/gemm.c) */
};

typedef struct ax_product {
  ax_dtype dtype;                                 /* of the factors; accepted by ax_product_result */
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row; /* numbers between neighbours; c's rows are dense */
  bool add;
  bool rounds; /* c is of the factors' dtype: sums are rounded to it once; only where ax_product_rounds, and not with `add` */
  bool far;   /* a, or the array that it is part of, is larger than ax_caches.far_rows */
  bool far_b; /* b, or the array that it is part of, is larger than ax_caches.far_factor: it lies in memory */
  const void *next_a,
      *next_b; /* factors of the next product, which lie like a and b; prefetched if that pays; NULL: none */
} ax_product;

/* How a product is made. ax_product_choose decides it once for all equal products. */
typedef struct ax_product_way {
  const ax_product_kernels *kernels;
  int64_t blocks, block;   /* blocks of k; numbers in each, except perhaps the last */
  int64_t rows;            /* of a group, which tiles make; the last may have fewer */
  int64_t groups;          /* groups of rows in one pass over b's columns */
  int64_t columns;         /* columns of b that are packed at a time */
  bool narrow;             /* rows are in the lanes of tiles */
  bool turned;             /* made as b' a' (the transposes); all other fields describe that product */
  bool streams_b;          /* few rows: b is read where it lies, row by row */
  bool turns_b;            /* few rows: b lies transposed and is transposed back panel by panel, some steps at a time */
  bool packs_a, packs_b;
  bool plain;              /* nothing is packed or made in blocks: the short path */
  bool fetches_b;          /* a plain one prefetches b, panel by panel: its first pass over b may find it far away */
  int64_t slots, ahead; /* packed groups that have room: a whole pass, if b's columns come in parts; how many are packed at once */
  int64_t slot_bytes, panel_bytes;
  int64_t block_bytes;     /* from one block of k to the next, if all columns of b are packed before */
  size_t b_bytes, work_bytes;
  size_t sums_at;          /* rounded products: where their sums are in the work memory. Those of a group of rows, if k is one block */
} ax_product_way;

/* Sets *result to the dtype of a product of such factors. False: there are no products of this dtype. */
bool ax_product_result(ax_dtype dtype, ax_dtype *result);
/* Says whether this processor multiplies numbers of this dtype several at a time. Otherwise narrow ones are widened as they are
   packed. */
bool ax_product_in_units(ax_dtype dtype);
/* Says whether sums of k products of such factors, f32, are rounded to the factors' dtype as they are made: if they are one block of
   k, since sums of several would go through memory once more. In plans of machines that are only described (machine/caches.h) they
   always are: matrix units keep sums of any k, and this processor's blocks say nothing of them. */
bool ax_product_rounds(ax_dtype dtype, int64_t k);
/* most_bytes: the widest register to use, 64 except in tests. */
ax_product_way ax_product_choose(const ax_product *product, uint32_t most_bytes);
/* work: way->work_bytes, aligned to 64; NULL if that is 0. A way also serves a piece of its product along k that begins with a
   block; `product` and `way` then have the piece's k and blocks. */
void ax_product_run(const ax_product *product, const ax_product_way *way, const void *a, const void *b, void *c, void *work);

/* What of the processor a thread takes for products of this way, it keeps between the first of these calls and the last, instead of
   taking it for each product. They may be nested. */
void ax_product_begin(const ax_product_way *way);
void ax_product_end(const ax_product_way *way);

/* Many products may share one b, whatever their rows: b can be packed once for all of them. The layout of a packed b follows
   from its dtype, rows and columns alone. */
/* Bytes of the packed b, which is aligned to 64. 0: the way does not pack b. */
size_t ax_product_packed_bytes(const ax_product_way *way);
void ax_product_pack(const ax_product *product, const ax_product_way *way, const void *b, void *packed);
/* The offset in the packed b, in bytes, of step `at` of k: a multiple of way->block. */
size_t ax_product_packed_at(const ax_product_way *way, int64_t at);
/* work: as for ax_product_run. */
void ax_product_run_packed(const ax_product *product, const ax_product_way *way, const void *a, const void *packed, void *c,
                           void *work);
/* The way of a product whose b is packed already. The product may have only some of b's columns, from the beginning of a panel
   on: `columns` counts all of them. */
ax_product_way ax_product_choose_packed(const ax_product *product, int64_t columns, uint32_t most_bytes);
/* For such a way: the columns of a panel; the offset of the panel that begins with `column`. */
int64_t ax_product_panel_columns(const ax_product_way *way);
int64_t ax_product_panel_at(const ax_product_way *way, int64_t column);

#endif
