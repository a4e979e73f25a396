/* Functions that modules call by name, and what a run has for them. */
#ifndef AX_PJRT_FFI_H
#define AX_PJRT_FFI_H

#include "axle/custom_call.h"
#include "pjrt/pjrt.h"

extern ax_pjrt_ffi ax_pjrt_ffi_extension;
extern ax_pjrt_custom_calls ax_pjrt_custom_calls_extension;

/* What is registered in this process. */
ax_pjrt_error *ax_pjrt_ffi_calls(ax_custom_calls **out);
typedef struct ax_pjrt_ffi_run {
  ax_array *const *in;
  ax_array **out;
  const ax_pjrt_execute_context *context; /* whose user data handlers find; NULL: none. It may go once the run has been started */
  bool awaited;                           /* as in ax_run_options */
} ax_pjrt_ffi_run;
/* ax_run_start of `made`. over: NULL, or it gets an event that comes about when the run is over. */
ax_pjrt_error *ax_pjrt_ffi_start(const ax_pjrt_executable *e, ax_executable *made, const ax_pjrt_ffi_run *run, ax_pjrt_event **over);

#endif
