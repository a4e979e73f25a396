/* Kernels and products as text: their loops as this machine runs them, and the least time that they could take. */
#ifndef AX_ASSEMBLE_NESTS_H
#define AX_ASSEMBLE_NESTS_H

#include "assemble/assembly.h"
#include "machine/rates.h"
#include "plan/amount.h"

/* Seconds: what its bytes take, or its operations, whichever is longer. _by: "memory" or "arithmetic". */
double ax_least_seconds(const ax_rates *rates, const ax_amount *amount);
const char *ax_least_seconds_by(const ax_rates *rates, const ax_amount *amount);

/* Prints each kernel as loops, and each product: the bytes it reads and writes, its operations, and the least time that these
   take; rates NULL: without the time. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nests_text(ax_text *text, const ax_assembly *a, const ax_rates *rates);

#endif
