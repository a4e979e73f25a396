/* Shardy's operations as XLA keeps them in a module without Shardy's dialect, made Shardy's operations again. What PJRT plugins get and
   what `serialize_portable_artifact` writes is such a module, and so is what comes of HLO:

     %1 = custom_call @xla.sdy.GlobalToLocalShape(%0)        %3 = sdy.manual_computation(%0) .. {callee = @body}
     %2 = call @xla.sdy.manual_computation_body(%1)     ->   %4 = sdy.sharding_constraint %3
     %3 = custom_call @xla.sdy.LocalToGlobalShape(%2)        return %4
     %4 = custom_call @xla.sdy.FuncResultSharding(%3)
     return %4

   What Shardy's attributes say stands as text in mhlo.frontend_attributes. A manual computation has no region then, but the function
   that is its body. Time and memory grow with the module. */
#ifndef AX_BRIDGE_SHARDY_CALLS_H
#define AX_BRIDGE_SHARDY_CALLS_H

#include "hlo/module.h"

/* AX_INVALID_ARGUMENT, with the operation's line: a body that takes other values than those of one call of @GlobalToLocalShape, or whose
   results are used by others than @LocalToGlobalShape. */
AX_MUST_USE ax_status ax_hlo_shardy_calls(ax_hlo_module *module);

/* What a frontend keeps as text, mhlo.frontend_attributes = {name = ".."}; NULL: nothing of the name. */
const ax_hlo_attribute *ax_hlo_frontend(const ax_hlo_attribute *attributes, uint32_t count, const char *name);

#endif
