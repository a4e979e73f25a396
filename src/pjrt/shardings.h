/* How values lie over devices, in XLA's words. */
#ifndef AX_PJRT_SHARDINGS_H
#define AX_PJRT_SHARDINGS_H

#include "pjrt/pjrt.h"

/* An OpSharding of the value's buffers; without a sharding all is on each device. `*out`: ax_free. */
ax_pjrt_error *ax_pjrt_sharding_bytes(const ax_pjrt_value *value, char **out, size_t *count);
extern ax_pjrt_shardings ax_pjrt_shardings_extension;

#endif
