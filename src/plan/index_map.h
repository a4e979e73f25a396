/* The addresses that a kernel's steps touch, independent of the array's dimensions: an address is affine in the loop indices,

     address(i) = offset + sum over d of coef[d] * i[d]                                          in elements

   An array with other dimensions over the same memory (a reshape, the rows of a slice) has the same addresses. So a load through
   it tells which steps of the kernel that computed the array it needs: the indices are the digits of the address. */
#ifndef AX_PLAN_INDEX_MAP_H
#define AX_PLAN_INDEX_MAP_H

#include "plan/kernel.h"

typedef struct ax_affine {
  int64_t offset, coef[2 * AX_MAX_RANK];
} ax_affine;

/* Digits first .. last of an address, read as one number, as a function of the loop indices. */
typedef struct ax_digits {
  uint32_t first, last;
  ax_affine number;
} ax_digits;

/* The address of position `at` in a dense array of `dims`. False: it depends on a value known only at run time. */
bool ax_affine_of(uint32_t rank, const int64_t *dims, const ax_position *at, ax_affine *out);
/* Writes an address in digits of base `dims`, for loop indices below `loop`: out[0 .. *count], the first digits first, each
   entry as few digits as can be separated from the others without a division. False: some addresses lie outside of the array. */
bool ax_affine_digits(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                      ax_digits *out, uint32_t *count);
/* The inverse: an array over at most `elems` elements of the same memory, and positions in it that give the address. */
bool ax_affine_array(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, int64_t elems, uint32_t *rank,
                     int64_t *dims, ax_position *at);
/* Positions in the array of `dims` itself. False: some position would need more than one loop index. */
bool ax_affine_at(const ax_affine *address, uint32_t loop_rank, const int64_t *loop, uint32_t rank, const int64_t *dims,
                  ax_position *at);

/* The node as a number that is affine in the loop indices: integers of 4 and 8 bytes whose sums, products by constants and conversions lose
   nothing. False: it is none. */
bool ax_affine_node(const ax_loop_kernel *kernel, ax_ex node, ax_affine *out);
/* A node counts the steps of dimensions dim - 1 and dim as those of one. */
bool ax_kernel_counts_over(const ax_loop_kernel *kernel, uint32_t dim);
/* The position without its dynamic part, if that is a number, or a loop index with a factor and an offset, and no clamp changes it: what
   columns of indices are that count rows. Else the position itself. */
ax_position ax_position_settled(const ax_loop_kernel *kernel, const ax_position *at);

#endif
