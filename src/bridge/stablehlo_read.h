/* Programs of StableHLO modules, inside the house. */
#ifndef AX_BRIDGE_STABLEHLO_READ_H
#define AX_BRIDGE_STABLEHLO_READ_H

#include "hlo/module.h"

/* The program of @main, or of the module's only function. *out is the caller's. Errors begin with the line of the module, or of what
   it was made from: AX_INVALID_ARGUMENT; AX_ABSENT: what is not read yet. */
AX_MUST_USE ax_status ax_program_import(const ax_hlo_module *module, ax_program **out);

#endif
