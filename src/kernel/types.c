/* Types of memory. */
#include "kernel/kernel.h"

static ax_type memory(ax_form form, ax_space space, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_type type = ax_array_type(dtype, AX_LIST(rank, dims));
  if (type.dtype == AX_NO_DTYPE) return type;
  type.form = form;
  type.space = space;
  return type;
}

ax_type (ax_ref_type)(ax_space space, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  return memory(AX_REF, space, dtype, rank, dims);
}

ax_type (ax_semaphore_type)(uint32_t rank, const int64_t *dims) { return memory(AX_SEMAPHORE, AX_SPACE_NONE, AX_S32, rank, dims); }

ax_type (ax_dma_semaphore_type)(uint32_t rank, const int64_t *dims) {
  return memory(AX_DMA_SEMAPHORE, AX_SPACE_NONE, AX_S32, rank, dims);
}

ax_type (ax_barrier_type)(uint32_t rank, const int64_t *dims) { return memory(AX_BARRIER, AX_SPACE_NONE, AX_S32, rank, dims); }
