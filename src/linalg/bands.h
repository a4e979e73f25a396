/* Matrices that a mesh's axes cut, for block rules: bands of rows, or of columns, one on each device.

     P(x, _)   x=3, 7 rows        rows 0 1 2 | 3 4 5 | 6        the last band ends in padding
     P(x, y)   x=2, y=2, 8 rows   rows 0 1 | 2 3 | 4 5 | 6 7    y cuts each band of x again, once blocks have been exchanged

   Bands are numbered as devices are over the axes, those of the first dimension being major. Where sizes do not divide, bands may
   be short or empty, and what stands behind their end may be anything. */
#ifndef AX_LINALG_BANDS_H
#define AX_LINALG_BANDS_H

#include "prim/prims.h"
#include "prim/rules.h"

typedef struct ax_bands {
  ax_axes_list outer, inner, all; /* the axes that cut the dimension; those that cut its bands again; both. "": none */
  int64_t total;                  /* rows, or columns, of the matrix */
  int64_t outer_count, inner_count, count;
  int64_t outer_size, size; /* of a band before it is cut again, and after */
} ax_bands;

enum {
  AX_LEAST_IN_BANDS = 512 /* rows of a square matrix that is cut: smaller ones are gathered, which takes less time than to wait for
                             each band */
};

/* The bands of `total` rows by the axes of dimension `outer` of the spec, cut again by those of `inner`; AX_NONE: by none. Asked in
   the trace of a block rule. */
ax_bands ax_bands_of(const ax_spec *spec, uint32_t outer, uint32_t inner, int64_t total);
/* The rows of band k: from `begin` to `end`, which may be equal. */
int64_t ax_band_begin(const ax_bands *bands, int64_t k);
int64_t ax_band_end(const ax_bands *bands, int64_t k);
ax_value ax_bands_own(const ax_bands *bands);   /* s32[]: the number of this device's band */
ax_value ax_bands_start(const ax_bands *bands); /* s64[]: the first row of this device's band */
/* s64 of the shape of x: the number of each row, or column, of this device's band; dimension: where the band lies. */
ax_value ax_bands_places(const ax_bands *bands, ax_value x, int64_t dimension);
/* x, which has this device's band along the dimension, with zeros in the place of padding. */
ax_value ax_bands_without_padding(const ax_bands *bands, ax_value x, int64_t dimension);
/* Changes blocks that `outer` cuts along dimension d and `inner` along another one to bands along d, and back. other: the size of
   the other dimension in the whole matrix; kept: in a block. */
ax_value ax_bands_exchange(const ax_bands *bands, ax_value block, int64_t d, int64_t other_dimension, int64_t other);
ax_value ax_bands_exchange_back(const ax_bands *bands, ax_value band, int64_t d, int64_t other_dimension, int64_t kept);
/* x with zeros behind it along the dimension, up to `size`; or its first `size` elements there. */
ax_value ax_matrix_fitted(ax_value x, int64_t size, int64_t dimension);

/* body(in) on devices where the condition, bool[], holds, and in[0] on the others, which compute nothing. */
ax_value ax_where_needed(ax_value condition, ax_fn body, const ax_value *in, uint32_t count);

/* Block rules. */
void ax_cholesky_block(const ax_block_args *args);
void ax_triangular_solve_block(const ax_block_args *args);

#endif
