/* Programs that a plugin compiles and runs (src/client). What the executor does for others, is here a module in StableHLO that is handed
   over, and lists of buffers; how arguments are held, donated and waited for is the same. */
#ifndef AX_ARRAY_REMOTE_H
#define AX_ARRAY_REMOTE_H

#include "array/call.h"
#include "client/client.h"

/* Compiles the program; in place of ax_assemble. AX_ABSENT: options that only Axle's own compiler has, and primitives that have no
   StableHLO. AX_INVALID_ARGUMENT: more devices than the plugin has. Otherwise what the plugin says. */
AX_MUST_USE ax_status ax_remote_compile(ax_executable *executable, const ax_compile_options *options);
/* AX_ABSENT: options that a plugin's compiler does not know, before defaults are decided. */
AX_MUST_USE ax_status ax_remote_check_options(const ax_compile_options *options);
/* Hands the call over. outputs: by result of the plan; the caller's. They may be arguments at once, before the run is over, which
   ax_client_finish(going) waits for. On failure nothing was handed over. */
AX_MUST_USE ax_status ax_remote_launch(const ax_run_call *call, ax_parts **outputs, ax_client_going *going);

#endif
