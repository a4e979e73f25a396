/* Into which tiles a product is cut for threads, and the memory in which a thread works on one. */
#ifndef AX_CODE_TILES_H
#define AX_CODE_TILES_H

#include "plan/panels.h"

typedef struct ax_tiling {
  int64_t rows, columns; /* tiles in each product */
  int64_t groups;        /* groups of products of the batch; there are rows * columns * groups parts */
  int64_t row_edge, column_edge; /* rows and columns of a tile are multiples of these */
} ax_tiling;
/* plain: of the whole product's way (product/product.h). It follows from the number of threads; results do not. Without edges. */
ax_tiling ax_gemm_tiling(const ax_gemm *g, bool plain, int64_t threads);
/* way: of the whole product. */
void ax_gemm_edges(const ax_gemm *g, const ax_product_way *way, ax_tiling *tiling);
/* Cuts the rows of one product further, until a tile of its result takes at most so many bytes. */
void ax_gemm_cut_finer(const ax_gemm *g, int64_t bytes, ax_tiling *tiling);
/* The beginning of tile `index` of `count`, in `extent` rows or columns. */
int64_t ax_tile_begin(int64_t extent, int64_t edge, int64_t index, int64_t count);

enum { AX_RUN_OF_TERMS = 64, AX_RUN_OF_NUMBERS = 4096 }; /* of a run: a run is added up as usual, runs are added exactly */

/* A tile of rows * columns, and how memory for the work on it is divided: for the product, then right factors that are packed for all
   products, then three tiles of sums. */
typedef struct ax_tile_room {
  ax_product product;
  ax_product_way way;
  bool is_long;       /* it adds many terms, or terms of many numbers */
  size_t each;        /* of the packed factors of one term; 0: factors are not packed for all products */
  int64_t piece;      /* is_long: length along k that is multiplied at once: whole blocks, or all of k */
  int64_t sums_bytes; /* is_long: of each tile of sums */
  size_t packed_at, sums_at, bytes;
} ax_tile_room;
/* products: of the batch, that one thread makes one after the other. */
void ax_gemm_tile_room(const ax_gemm *g, int64_t rows, int64_t columns, int64_t products, ax_tile_room *out);
/* The memory in which the whole product can be made: by one thread, or by so many of which each has an equal share, in whole cache lines. */
size_t ax_gemm_room_bytes(const ax_gemm *g, uint32_t threads);

#endif
