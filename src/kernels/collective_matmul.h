/* Inside of axle/collective_matmul.h: what the kernels, the primitives and their transforms share. */
#ifndef AX_KERNELS_COLLECTIVE_MATMUL_H
#define AX_KERNELS_COLLECTIVE_MATMUL_H

#include "kernels/ring.h"
#include "prim/bind.h"

typedef struct ax_ring_matmul { /* of one product, checked */
  ax_ring ring;
  bool scatter, columns;
  int64_t collective_id;
  ax_type lhs, rhs, out;
  ax_dtype sums; /* that sums are made in */
} ax_ring_matmul;

/* Checks the operands, and says what comes out. scatter: of a product whose result is scattered. False: the trace has failed, in
   `function`'s name. */
bool ax_ring_matmul_init(ax_ring_matmul *m, const char *function, bool scatter, const ax_value *in, const char *axes,
                         const ax_rings *rings, const ax_ring_options *options);
/* The dtype in which sums for results of this dtype are made. */
ax_dtype ax_ring_sums(ax_dtype dtype);
/* Refuses operands of two dtypes, which derivatives alone have. */
bool ax_ring_same_dtype(const char *function, ax_value lhs, ax_value rhs);
/* The kernels. (collective_matmul_gather.c, collective_matmul_scatter.c) */
ax_value ax_gather_kernel(const ax_ring_matmul *m, const ax_value *in);
ax_value ax_scatter_kernel(const ax_ring_matmul *m, const ax_value *in);

/* --- For bodies --- */
/* ref[.., start .. start + size, ..] along a dimension. start: s32[]. */
ax_value ax_ref_part(ax_value ref, uint32_t dimension, ax_value start, int64_t size);
/* The product of two refs' values, in m->sums. */
ax_value ax_ref_product(const ax_ring_matmul *m, ax_value lhs, ax_value rhs);
/* ref gets `value`, in its own dtype. */
void ax_ref_round(const ax_ring_matmul *m, ax_value ref, ax_value value);

#endif
