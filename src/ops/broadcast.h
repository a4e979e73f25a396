/* broadcast_in_dim's parameters, for the rules of other primitives. */
#ifndef AX_OPS_BROADCAST_H
#define AX_OPS_BROADCAST_H

#include "ir/prim.h"

typedef struct ax_broadcast_params {
  ax_dims shape, broadcast_dimensions;
} ax_broadcast_params;

#endif
