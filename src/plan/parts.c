/* Complex values in a plan. A buffer of a complex dtype holds pairs, the real part first, as C and NumPy have them. No kernel has
   complex numbers: a complex operation is lowered as operations on the parts, and each part is a buffer of its own.

     c = complex a b                      kernel: c[.., 0] = a[..], c[.., 1] = b[..]        the parts of c are a and b
     d = mul c e                          parts of e: kernels e0[..] = e[.., 0], e1[..] = e[.., 1]
                                          kernels on a, b, e0, e1 for each part of d; and d's pairs from them

   The parts that made a value are remembered for the block in which it was made, so that a chain of operations goes from parts to
   parts: the kernels fuse as those of real numbers do, and pairs that only operations on parts read are never stored, as no kernel
   is left that reads them. Moves, sums and products of complex numbers work on parts as well; exchanges, loops, branches and the
   reference code take the pairs. So do slices and updates of an array whose parts are not known: a loop that takes one element of its
   carry would otherwise take all of the carry apart. Transposes and gathers of c64 move words of 8 bytes,
   which lie side by side, where parts stand two apart; transposes of c128 move pairs. */
#include <string.h>

#include "plan/lower.h"
#include "plan/plan.h"

typedef struct ax_complex_pair {
  const ax_block *block; /* NULL: not known */
  uint32_t part[2];
} ax_complex_pair;

static ax_status remember(ax_lower *lower, uint32_t buffer, const uint32_t *part) {
  const uint32_t needed = buffer + 1 > lower->parts_count ? buffer + 1 - lower->parts_count : 0;
  AX_TRY(ax_grow(&lower->parts, sizeof lower->parts[0], lower->parts_count, needed, &lower->parts_capacity));
  if (needed > 0) memset(lower->parts + lower->parts_count, 0, needed * sizeof lower->parts[0]);
  lower->parts_count += needed;
  lower->parts[buffer] = (ax_complex_pair){lower->block, {part[0], part[1]}};
  return AX_OK;
}

/* Pairs as arrays of two: the dimensions and one of 2 behind them, or in an array of the greatest rank all in one. */
static ax_type pairs_type(const ax_type *type) {
  ax_type pairs = ax_array_type(ax_part_dtype(type->dtype), AX_LIST(type->rank, type->dims));
  if (pairs.rank == AX_MAX_RANK) {
    pairs.rank = 1;
    pairs.dims[0] = ax_type_elems(type);
  }
  pairs.dims[pairs.rank++] = 2;
  return pairs;
}

ax_status ax_lower_as_reals(ax_lower *lower, uint32_t buffer, uint32_t *out) {
  const ax_type type = *ax_lower_type(lower, buffer);
  const int64_t reals = 2 * ax_type_elems(&type);
  *out = buffer;
  if (!ax_is_complex(type.dtype)) return AX_OK;
  const ax_type flat = ax_array_type(ax_part_dtype(type.dtype), AX_DIMS(reals));
  return ax_lower_view(lower, buffer, &flat, 0, AX_NONE, 0, out);
}

/* Where part `part` of the elements of a kernel's steps lies among the pairs. */
static void at_part(ax_position *at, const ax_type *pairs, int part) {
  ax_at_identity(at, pairs->rank - 1);
  at[pairs->rank - 1] = (ax_position){.dim = -1, .offset = part, .dynamic = AX_NONE};
}

/* A part, taken out of memory. Of a constant of one element it is one too. */
static ax_status take_part(ax_lower *lower, uint32_t buffer, int part, uint32_t *out) {
  const ax_buffer from = *ax_lower_get(lower, buffer);
  const ax_dtype dtype = ax_part_dtype(from.type.dtype);
  ax_type type = ax_array_type(dtype, AX_LIST(from.type.rank, from.type.dims)), pairs = pairs_type(&from.type);
  ax_position at[AX_MAX_RANK], to[AX_MAX_RANK];
  uint32_t view, flat;
  if (from.kind == AX_BUFFER_CONST && from.loop == AX_NONE && ax_type_elems(&from.type) == 1)
    return ax_lower_view(lower, buffer, &type, part * (int64_t)ax_dtype_bytes(dtype), AX_NONE, 0, out);
  AX_TRY(ax_lower_view(lower, buffer, &pairs, 0, AX_NONE, 0, &view));
  AX_TRY(ax_lower_buffer(lower, &type, from.axes, out));
  type = ax_array_type(dtype, AX_LIST(pairs.rank - 1, pairs.dims));
  AX_TRY(ax_lower_view(lower, *out, &type, 0, AX_NONE, 0, &flat));
  at_part(at, &pairs, part);
  ax_at_identity(to, type.rank);
  AX_TRY(ax_lower_kernel_begin(lower, type.rank, 0, type.dims));
  ax_lower_store(lower, type.rank == from.type.rank ? *out : flat, to, ax_lower_load(lower, view, at), AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

bool ax_lower_has_parts(const ax_lower *lower, uint32_t buffer) {
  return buffer < lower->parts_count && lower->parts[buffer].block != NULL && lower->parts[buffer].block == lower->block;
}

ax_status ax_lower_as_pairs(ax_lower *lower, uint32_t buffer, ax_type *pairs, uint32_t *out) {
  *pairs = pairs_type(ax_lower_type(lower, buffer));
  return ax_lower_view(lower, buffer, pairs, 0, AX_NONE, 0, out);
}

ax_status ax_lower_part(ax_lower *lower, uint32_t buffer, int part, uint32_t *out) {
  *out = buffer;
  if (!ax_is_complex(ax_lower_type(lower, buffer)->dtype)) return AX_OK;
  if (ax_lower_has_parts(lower, buffer)) {
    *out = lower->parts[buffer].part[part];
    return AX_OK;
  }
  uint32_t both[2];
  for (int k = 0; k < 2; k++) AX_TRY(take_part(lower, buffer, k, &both[k]));
  *out = both[part];
  return remember(lower, buffer, both);
}

ax_status ax_lower_as_words(ax_lower *lower, uint32_t buffer, uint32_t *out) {
  ax_type words = *ax_lower_type(lower, buffer);
  words.dtype = AX_U64;
  return ax_lower_view(lower, buffer, &words, 0, AX_NONE, 0, out);
}

ax_status ax_lower_of_parts(ax_lower *lower, const ax_type *type, ax_axis_set axes, const uint32_t *part, uint32_t *out) {
  const ax_type pairs = pairs_type(type), flat = ax_array_type(pairs.dtype, AX_LIST(pairs.rank - 1, pairs.dims));
  ax_position at[AX_MAX_RANK], to[2][AX_MAX_RANK];
  uint32_t view, from[2] = {part[0], part[1]};
  AX_TRY(ax_lower_buffer(lower, type, axes, out));
  AX_TRY(ax_lower_view(lower, *out, &pairs, 0, AX_NONE, 0, &view));
  for (int k = 0; k < 2; k++) {
    if (flat.rank != type->rank) AX_TRY(ax_lower_view(lower, part[k], &flat, 0, AX_NONE, 0, &from[k]));
    at_part(to[k], &pairs, k);
  }
  ax_at_identity(at, flat.rank);
  AX_TRY(ax_lower_kernel_begin(lower, flat.rank, 0, flat.dims));
  for (int k = 0; k < 2; k++) ax_lower_store(lower, view, to[k], ax_lower_load(lower, from[k], at), AX_SCALAR_NONE);
  AX_TRY(ax_lower_kernel_end(lower));
  return remember(lower, *out, part);
}
