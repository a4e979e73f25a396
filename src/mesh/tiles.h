/* Tile assignments in XLA's notation: the number of tiles along each dimension, and the number of the device that has tile k.

     {devices=[4,1,2]<=[8] last_tile_dim_replicate}     tiles 4 by 1, two copies of each; numbers 0 .. 7 in order
     {devices=[2,2]<=[2,2]T(1,0)}                       0, 2, 1, 3: reshaped to [2,2], transposed
     {devices=[2,2]3,1,0,2}                             a list that is neither

   Numbers that are a reshaped and transposed 0, 1, .. are a sum of digits times strides, so they need no list, and a mesh in the
   order of the numbers has the same tiles: its axes are the digits, cut as finely as the tile dimensions are, by falling stride. */
#ifndef AX_MESH_TILES_H
#define AX_MESH_TILES_H

#include "ir/program.h"

enum { AX_MOST_DIGITS = 32 }; /* each is at least 2, and there are at most 2^31 devices */

/* Number k is the sum of k's digits times their strides; the digits' bases are the sizes. Major first; no digit has size 1. */
typedef struct ax_tile_digits {
  uint32_t count;
  int64_t size[AX_MOST_DIGITS], stride[AX_MOST_DIGITS];
} ax_tile_digits;

typedef enum ax_tile_kind { AX_TILES_REPLICATED, AX_TILES_MAXIMAL, AX_TILES_TILED } ax_tile_kind;

typedef struct ax_tiles {
  ax_tile_kind kind;
  int64_t device; /* MAXIMAL */
  uint32_t rank;  /* TILED */
  int64_t dims[AX_MAX_RANK], copies;
  ax_tile_digits digits;
  int64_t *list;  /* owned; tile by tile, the copies of a tile side by side, by rising number. NULL: the digits give the numbers */
} ax_tiles;

/* AX_INVALID_ARGUMENT, AX_ABSENT: see ax_sharding_tiled. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_tiles_parse(const char *text, ax_tiles *out);
void ax_tiles_deinit(ax_tiles *tiles);
/* Writes the shortest form. */
void ax_tiles_text(ax_text *text, const ax_tiles *tiles);
int64_t ax_tiles_count(const ax_tiles *tiles); /* of devices */

/* The number at place k. */
int64_t ax_digits_number(const ax_tile_digits *digits, int64_t k);
/* Sorts copies by rising number, and replaces a list by digits if it can be. True: there is no list any more. */
bool ax_tiles_simplify(ax_tiles *tiles);
/* Finds the mesh in the order of the numbers, for tiles without a list, and the spec. False: the mesh would have too many axes, or
   the digits are not cut at the tiles' borders. */
bool ax_tiles_lay(const ax_tiles *tiles, ax_mesh *mesh, ax_spec *spec);

#endif
