/* Programs of StableHLO modules, inside the house. */
#ifndef AX_BRIDGE_STABLEHLO_READ_H
#define AX_BRIDGE_STABLEHLO_READ_H

#include "hlo/module.h"
#include "ir/text.h"

/* ax_program_from_stablehlo, with the names that the text gives to the inputs; results have none. NULL: not wanted. */
AX_MUST_USE ax_status ax_program_from_stablehlo_named(const char *text, size_t bytes, const char *source, ax_program_names *names,
                                                      ax_program **out);

#endif
