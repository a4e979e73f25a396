/* Short forms of sdy's operations that have regions. */
#ifndef AX_HLO_READ_SDY_H
#define AX_HLO_READ_SDY_H

#include "hlo/reader.h"

AX_MUST_USE ax_status ax_hlo_read_manual(ax_hlo_scan *r, ax_hlo_draft *draft); /* sdy.manual_computation */
AX_MUST_USE ax_status ax_hlo_read_named(ax_hlo_scan *r, ax_hlo_draft *draft);  /* sdy.named_computation */

#endif
