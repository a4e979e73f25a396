/* Where a kernel's steps lie in memory, whatever dimensions it is seen under: an address is affine in the loop indices,

     address(i) = offset + sum over d of coef[d] * i[d]                                          in elements

   An array with other dimensions over the same memory (a reshape, the rows of a slice) is the same addresses, so a load through it
   says which steps of the kernel that computed the array it needs: those whose indices, as digits, make up the address. */
#ifndef AX_PLAN_INDEX_MAP_H
#define AX_PLAN_INDEX_MAP_H

#include "plan/kernel.h"

typedef struct ax_affine {
  int64_t offset, coef[2 * AX_MAX_RANK];
} ax_affine;

/* The digits first .. last of an address, taken as one number, in terms of the loop indices. */
typedef struct ax_digits {
  uint32_t first, last;
  ax_affine number;
} ax_digits;

/* The address in a dense array of `dims` that `at` says; false when it is moved by something known only at run time. */
bool ax_affine_of(uint32_t rank, const int64_t *dims, const ax_position *at, ax_affine *out);
/* The digits of an address to the bases `dims`, for loop indices below `loop`: out[0 .. *count], each as few digits as can be told
   apart from the others without a division, the first ones first. False: some addresses are outside. */
bool ax_affine_digits(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                      ax_digits *out, uint32_t *count);
/* The other way round: an array over no more than `elems` elements of the same memory, and positions in it that are the address. */
bool ax_affine_array(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, int64_t elems, uint32_t *rank,
                     int64_t *dims, ax_position *at);
/* Positions in the array of `dims` itself, where each can be one loop index. */
bool ax_affine_at(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                  ax_position *at);

#endif
