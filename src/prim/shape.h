/* Helpers shared by the files of shapes, reductions and products: lists of dimensions, strided access, and kernels that move
   elements. */
#ifndef AX_PRIM_SHAPE_H
#define AX_PRIM_SHAPE_H

#include "ir/number.h"
#include "plan/kernel.h"
#include "prim/rules.h"

/* --- Lists of dimensions --- */
/* For front functions and batch rules: each fails the trace and returns false on bad input. */
bool ax_dims_take(const ax_prim *prim, uint32_t count, const int64_t *v, ax_dims *out);
bool ax_dims_insert(const ax_prim *prim, ax_dims *dims, uint32_t at, int64_t value);

bool ax_dims_has(const ax_dims *dims, int64_t value);
/* Renumbers the dimensions for a new dimension at `at`. */
void ax_dims_shift(ax_dims *dims, int64_t at);
/* The dimensions 0 .. rank that are in neither list, in order; `b` may be NULL. */
ax_dims ax_dims_others(uint32_t rank, const ax_dims *a, const ax_dims *b);
/* The sizes of x's dimensions that are not among the axes, in order. */
ax_dims ax_dims_left(const ax_type *x, const ax_dims *axes);
/* The permutation of a transpose equation: by result dimension, the operand's dimension. */
const ax_dims *ax_transposed_dims(const ax_eqn *eqn);
int64_t ax_concatenated_dimension(const ax_eqn *eqn);

/* --- For infer --- */
/* An array type; refuses negative dimensions and an unknown dtype. */
AX_MUST_USE ax_status ax_infer_shape(ax_dtype dtype, const ax_dims *dims, ax_type *out);
/* Refuses a dimension outside 0 .. rank or one named twice. `what` names the parameter. */
AX_MUST_USE ax_status ax_infer_distinct(const char *what, const ax_dims *dims, uint32_t rank);
/* Refuses a list that does not have one entry a dimension. */
AX_MUST_USE ax_status ax_infer_one_each(const char *what, const ax_dims *dims, uint32_t rank);

/* --- Strided access; strides in elements --- */
void ax_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides);
/* The offset of the element with row-major number `index`. */
int64_t ax_strided_at(int64_t index, uint32_t rank, const int64_t *dims, const int64_t *strides);
/* An array's elements under strides other than its own, from element `offset` on. */
typedef struct ax_strided {
  void *data;
  int64_t offset, strides[AX_MAX_RANK];
} ax_strided;
ax_strided ax_strided_dense(const ax_tensor *tensor);
void ax_strided_copy(uint32_t rank, const int64_t *dims, size_t element_bytes, const ax_strided *to,
                     const ax_strided *from);

/* --- For lower --- */
/* for i in dims: dst[dst_at(i)] = src[src_at(i)], converted when the dtypes differ. */
AX_MUST_USE ax_status ax_lower_move(ax_lower *lower, uint32_t rank, const int64_t *dims, uint32_t dst,
                                    const ax_position *dst_at, uint32_t src, const ax_position *src_at);
AX_MUST_USE ax_status ax_lower_fill(ax_lower *lower, uint32_t dst, ax_number value);
/* The result is the operand's memory under the result's type, `offset` elements in. */
AX_MUST_USE ax_status ax_lower_as_view(ax_lower *lower, const ax_eqn *eqn, uint32_t in, int64_t offset, uint32_t *out);

/* --- Reductions (reduce.c) --- */
/* Repeats y, which lacks the axes, along them to the shape of `like`. */
ax_value ax_repeat(ax_value y, const ax_type *like, const ax_dims *axes);
/* The neutral element of the reduction: 0, 1, or the least or greatest number of the dtype. */
ax_number ax_reduce_identity(ax_scalar op, ax_dtype dtype);
/* In what eval combines elements: the widest dtype of the kind. Extremes, which are exact, in that of compiled code, where subnormal
   numbers are flushed as there. NONE as op is logaddexp. */
ax_dtype ax_partial_dtype(ax_scalar op, ax_dtype dtype);
ax_value ax_reduce_neutral(ax_scalar op, ax_dtype dtype); /* the same as a scalar of the trace in progress */
/* x's kept dimensions and axes in the order of a kernel whose last dimensions are reduced over. */
typedef struct ax_reduction {
  ax_dims kept, reduced;     /* numbers of dimensions, in order */
  uint32_t rank;             /* rank of the loop nest, which is x's */
  int64_t dims[AX_MAX_RANK]; /* sizes of the kept dimensions, then of the reduced ones */
  ax_position at[AX_MAX_RANK];     /* by dimension of x: its loop */
} ax_reduction;
ax_reduction ax_reduction_of(uint32_t rank, const int64_t *dims, const ax_dims *axes);
/* stablehlo.reduce of `x` over `axes` by ADD, MAX or MIN. */
uint32_t ax_hlo_reduce_axes(ax_hlo *hlo, ax_scalar op, uint32_t x, const ax_type *type, const ax_dims *axes);

#endif
