/* The inputs of a program that is checked: given, or made up. */
#ifndef AX_CHECK_MADE_UP_H
#define AX_CHECK_MADE_UP_H

#include "axle/host.h"
#include "ir/program.h"
#include "prim/region.h"

/* Input `index`: as given, or where that is NULL made up: small floats, several alike; integers and booleans 0, or, if they are to be
   `distinct`, each unlike its neighbours and the one at its place in the next input, as far as the dtype has numbers. */
AX_MUST_USE ax_status ax_made_up_input(const ax_type *type, const ax_host_array *given, uint32_t index, bool distinct,
                                       ax_tensor **out);

#endif
