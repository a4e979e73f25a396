/* How values lie over devices, in XLA's words. */
#ifndef AX_PJRT_SHARDINGS_H
#define AX_PJRT_SHARDINGS_H

#include "pjrt/pjrt.h"

/* An OpSharding of arrays of this rank; sharding NULL: all is on each device. `*out`: ax_free. */
ax_pjrt_error *ax_pjrt_sharding_bytes(const ax_sharding *sharding, uint32_t rank, char **out, size_t *count);
extern ax_pjrt_shardings ax_pjrt_shardings_extension;

#endif
