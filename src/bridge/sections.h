/* Manual computations as GSPMD writes them, made such as Shardy writes them.

     %1 = custom_call @SPMDFullToShardShape(%0)      %9 = sdy.manual_computation(%0) .. (%8) {
     %2 = call @body(%1)                       ->      %1 = propagation_barrier %8
     %3 = custom_call @SPMDShardToFullShape(%2)        %2 = call @body(%1)
                                                       sdy.return %2
                                                     }
                                                     %3 = propagation_barrier %9

   What depends on a block, up to where blocks become whole, is what each device runs. Time and memory grow with the module. */
#ifndef AX_BRIDGE_SECTIONS_H
#define AX_BRIDGE_SECTIONS_H

#include "hlo/module.h"

/* AX_ABSENT: an operation that needs both a block and what comes of blocks of the same computation; tiles that no mesh has.
   AX_INVALID_ARGUMENT: a call with other than one operand and one result; tiles that make no sense. */
AX_MUST_USE ax_status ax_hlo_manual_sections(ax_hlo_module *module);

#endif
