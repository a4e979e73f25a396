/* Products of matrices, on one thread: c (+)= a b, with factors of any strides. Of bf16 and f16 the results are f32, of s8 and u8 s32, of which
   the last 8 bits are right. Each result is a sum in blocks of at
   most some hundred products, each block a chain in the order of k, and the blocks added in their order: by k and the processor alone, so not by
   the tile in which a product is made, nor by its other dimensions or strides. */
#ifndef AX_PRODUCT_PRODUCT_H
#define AX_PRODUCT_PRODUCT_H

#include "product/kernels.h"

enum { AX_PRODUCT_NEAR = 2 << 20 }; /* bytes of a factor that caches near the core hold */

typedef struct ax_product {
  ax_dtype dtype;                                 /* of the factors; one that ax_product_result knows */
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row; /* numbers between neighbours; those of c's rows lie side by side */
  bool add;
  bool far;   /* a, or what it is part of, is larger than what caches near the core hold */
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
  int64_t slots, ahead;    /* for packed groups: all of a pass, where b's columns come in several parts; how many are packed at once */
  int64_t slot_bytes, panel_bytes;
  size_t b_bytes, work_bytes;
} ax_product_way;

/* A factor that was packed before, for all blocks of k: groups of rows, way->slot_bytes each, or panels of columns, way->panel_bytes each. */
typedef struct ax_product_packed {
  char *packed;  /* the first, aligned to 64; NULL: it is not packed */
  int64_t block; /* bytes from one block of k to the next: as many groups or panels as there are */
} ax_product_packed;

/* Both factors, each where it lies or packed. */
typedef struct ax_product_factors {
  const void *a, *b;
  ax_product_packed rows, columns; /* then a, or b, is not read */
} ax_product_factors;

/* What a product of such factors gives; false: there is none. */
bool ax_product_result(ax_dtype dtype, ax_dtype *result);
/* most_bytes: of a register, 64 but for tests. */
ax_product_way ax_product_choose(const ax_product *product, uint32_t most_bytes);
/* work: way->work_bytes, aligned to 64; NULL where that is 0. */
void ax_product_run(const ax_product *product, const ax_product_way *way, const void *a, const void *b, void *c, void *work);

/* One product in parts, perhaps on several threads, and products that have a factor in common: what way->packs_a and way->packs_b say can be packed once
   for all of them. The way is one that was chosen for at least as many rows and columns; the parts begin with any group, and any panel. */
int64_t ax_product_groups(const ax_product *product, const ax_product_way *way);
int64_t ax_product_panels(const ax_product *product, const ax_product_way *way);
/* Packs groups begin .. end - 1 of a's rows, to where they belong in rows; begin: a multiple of way->ahead. */
void ax_product_pack_rows(const ax_product *product, const ax_product_way *way, const void *a, int64_t begin, int64_t end, ax_product_packed rows);
/* Panels begin .. end - 1 of b's columns. */
void ax_product_pack_columns(const ax_product *product, const ax_product_way *way, const void *b, int64_t begin, int64_t end, ax_product_packed columns);
/* product: the part's m and n; work: as many bytes as ax_product_parts_bytes says, aligned to 64. */
size_t ax_product_parts_bytes(const ax_product *product, const ax_product_way *way, const ax_product_factors *factors);
void ax_product_run_parts(const ax_product *product, const ax_product_way *way, const ax_product_factors *factors, void *c, void *work);

#endif
