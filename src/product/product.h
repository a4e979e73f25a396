/* Products of matrices, on one thread: c (+)= a b, with factors of any strides. Of bf16 and f16 the results are f32, of s8 and u8
   s32, of which the last 8 bits are right. Each result is a sum in blocks of at most some hundred products, each block a chain in
   the order of k, and the blocks added in their order: by k and the processor alone, so not by the tile in which a product is made,
   nor by its other dimensions or strides. */
#ifndef AX_PRODUCT_PRODUCT_H
#define AX_PRODUCT_PRODUCT_H

#include "product/kernels.h"

enum {
  AX_PRODUCT_NEAR = 2 << 20, /* bytes of a factor that caches near the core hold */
  AX_PRODUCT_FAR = 16 << 20, /* and that no cache is sure to hold */
  AX_PRODUCT_LONG =
      16 << 10, /* numbers of a sum, of which more are too inexact in one product: whoever makes it adds up several (exec/gemm.c) */
  AX_REGISTER_BYTES = 64 /* the most that programs' products are made with */
};

typedef struct ax_product {
  ax_dtype dtype;                                 /* of the factors; one that ax_product_result knows */
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row; /* numbers between neighbours; those of c's rows lie side by side */
  bool add;
  bool far;   /* a, or what it is part of, is larger than what caches near the core hold */
  bool far_b; /* b, or what it is part of, lies in memory: it is larger than AX_PRODUCT_FAR */
  const void *next_a,
      *next_b; /* what lies like a and b and is multiplied next: fetched meanwhile, where that is worth it; NULL: nothing */
} ax_product;

/* How it is made: decided once for equal products, by ax_product_choose. */
typedef struct ax_product_way {
  const ax_product_kernels *kernels;
  int64_t blocks, block;   /* of k: how many, numbers in each but perhaps the last */
  int64_t rows;            /* of a group, which tiles make: all but perhaps the last */
  int64_t groups;          /* that one pass over b's columns makes */
  int64_t columns;         /* of b, packed at a time */
  bool narrow;             /* tiles have their rows in lanes */
  bool turned;             /* it is made as the product of b', then a' (their transposes); all else here is of that one */
  bool streams_b;          /* few rows: b is read where it lies, in the order in which it does */
  bool turns_b;            /* few rows: b, which lies transposed, is turned panel by panel, some steps at a time */
  bool packs_a, packs_b;
  bool plain;              /* nothing is packed, fetched or made in blocks: small products are over before that is looked at */
  int64_t slots, ahead; /* for packed groups: all of a pass, where b's columns come in several parts; how many are packed at once */
  int64_t slot_bytes, panel_bytes;
  int64_t block_bytes;     /* from one block of k to the next, where all columns of b are packed before */
  size_t b_bytes, work_bytes;
} ax_product_way;

/* What a product of such factors gives; false: there is none. */
bool ax_product_result(ax_dtype dtype, ax_dtype *result);
/* most_bytes: of a register, 64 but for tests. */
ax_product_way ax_product_choose(const ax_product *product, uint32_t most_bytes);
/* work: way->work_bytes, aligned to 64; NULL where that is 0. A way also makes a piece of a product along k that begins with a
   block: k and blocks are the piece's then. */
void ax_product_run(const ax_product *product, const ax_product_way *way, const void *a, const void *b, void *c, void *work);

/* Many products with the same b, of any rows: b can be packed whole for all of them. How it then lies follows from its dtype, rows
   and columns alone. */
/* Bytes of b as it is packed, aligned to 64; 0: the way reads it where it is, or turned. */
size_t ax_product_packed_bytes(const ax_product_way *way);
void ax_product_pack(const ax_product *product, const ax_product_way *way, const void *b, void *packed);
/* Where in it what begins `at` numbers into k is: a multiple of way->block. */
size_t ax_product_packed_at(const ax_product_way *way, int64_t at);
/* work: as for ax_product_run. */
void ax_product_run_packed(const ax_product *product, const ax_product_way *way, const void *a, const void *packed, void *c,
                           void *work);
/* The way of a product whose b is packed already. It may have some of b's columns only, from the beginning of a panel on: `columns`
   are all there are. */
ax_product_way ax_product_choose_packed(const ax_product *product, int64_t columns, uint32_t most_bytes);
/* Of such a way: columns of a panel; where the one that begins with that column is. */
int64_t ax_product_panel_columns(const ax_product_way *way);
int64_t ax_product_panel_at(const ax_product_way *way, int64_t column);

#endif
