/* Products of which one operand is spread over the devices of a ring and is gathered while the product is computed, or whose result
   is scattered while it is computed. While a step multiplies, the copies for the next step travel. The kernels are written with
   axle/kernel.h, as a user's would be; docs/collective_matmul.md has pictures.

     collective matmul          x[m/n, k] w[k, j] -> [m, j]      all_gather(x) w, without waiting for all of x
     matmul and reduce-scatter  x[m, k] w[k, j] -> [m/n, j]      psum_scatter(x w), the sum made on its way

   Each goes both ways round the ring at once, and each is what the other's derivative is. T is any dtype of numbers. Operands of
   both have leading dimensions in pairs, if any: [b.., m, k] and [b.., k, j].
   Errors of all functions here (kept by the trace): operands of two dtypes, of bools, of less than two dimensions or of leading
   ones that differ; sizes that do not go together; a dtype of another kind than theirs; an axis that is not in scope; a negative
   buffering. */
#ifndef AXLE_COLLECTIVE_MATMUL_H
#define AXLE_COLLECTIVE_MATMUL_H

#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

#pragma push_macro("columns") /* <term.h> has a macro of this name */
#undef columns
/* {0}, or NULL: the defaults. */
typedef struct ax_ring_options {
  bool columns;          /* true: columns are gathered or scattered; false: rows */
  ax_dtype dtype;        /* of the result: a float for float operands, a signed (unsigned) integer for signed (unsigned) ones;
                            AX_NO_DTYPE: that of the operands. Sums are made in it, but in f32 or 32 bits at least */
  int64_t buffering;     /* parts on their way that each device has room for, in each direction; 0 and 1: 2. Never more are made
                            than there are parts */
  int64_t collective_id; /* of the barrier semaphore at which the devices meet (ax_kernel_options); devices with other neighbours
                            must not use it. 0: one for these axes and rings */
} ax_ring_options;
#pragma pop_macro("columns")

/* Inside a shard_map (or a trace on axes). n: the members along `axes`, in whose order parts are; x and w are made to vary over
   them.
   rows:    x: T[b.., m, k], w: T[b.., k, j]   -> [b.., n m, j]   as all_gather(x, axes, -2, tiled) w
   columns: x: T[b.., m, k], w: T[b.., n k, j] -> [b.., m, j]     as all_gather(x, axes, -1, tiled) w
   Of columns the products are added in the order own, then those of members 1, 2, .. further on and -1, -2, .. back in pairs. All
   derivatives, forwards and backwards, again by these two functions; batches, of which one operand's alone are more rows or
   columns. As jax.lax.all_gather and jnp.matmul. */
ax_value ax_collective_matmul(ax_value x, ax_value w, const char *axes, const ax_ring_options *options);
/* Likewise. rows:    x: T[b.., n m, k], w: T[b.., k, j] -> [b.., m, j]   as psum_scatter(x w, axes, -2, tiled)
             columns: x: T[b.., m, k], w: T[b.., k, n j] -> [b.., m, j]   as psum_scatter(x w, axes, -1, tiled)
   Added on the way: from both sides, each beginning with the member that is farthest, then both sums and the own product. */
ax_value ax_matmul_reduce_scatter(ax_value x, ax_value w, const char *axes, const ax_ring_options *options);

/* Rings: a table s32[rings, length] of numbers of members along `axes`, row-major (all axes of devices: the logical ids of
   devices). Each row is a ring, in its order, which is that of the parts too. Borrowed. */
typedef struct ax_rings {
  ax_type type;
  const int32_t *ids;
} ax_rings;
#ifndef __cplusplus
#define AX_RING(...)                                                                                      \
  (&(ax_rings){.type = AX_TYPE(AX_S32, 1, (int64_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))), \
               .ids = (const int32_t[]){__VA_ARGS__}})
#endif

/* The kernels of both on rings of a table: many rings at once, of any length and in any order; members of no ring get zeros. rings
   NULL: one ring, of all members in their order. They have no derivatives of their own.
   Errors also: a table that is not s32, or has not two dimensions; ids that there are not, or twice. */
ax_value ax_collective_matmul_kernel(ax_value lhs, ax_value rhs, const char *axes, const ax_rings *rings,
                                     const ax_ring_options *options);
ax_value ax_matmul_reduce_scatter_kernel(ax_value lhs, ax_value rhs, const char *axes, const ax_rings *rings,
                                         const ax_ring_options *options);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_collective_matmul(...) AX_LINED(collective_matmul, __VA_ARGS__)
#define ax_matmul_reduce_scatter(...) AX_LINED(matmul_reduce_scatter, __VA_ARGS__)
#define ax_collective_matmul_kernel(...) AX_LINED(collective_matmul_kernel, __VA_ARGS__)
#define ax_matmul_reduce_scatter_kernel(...) AX_LINED(matmul_reduce_scatter_kernel, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
