/* What handlers call back: errors, states, scratch, futures. */
#ifndef AX_FFI_API_H
#define AX_FFI_API_H

#include "ffi/custom_calls.h"

struct ax_ffi_error {
  int code; /* ax_ffi_code */
  char message[];
};

struct ax_ffi_context { /* of one call */
  ax_custom_calls *calls;
  int64_t device;
  uint32_t user_data_count; /* of the run */
  const ax_user_data *user_data;
  ax_ffi_state_slot states[AX_FFI_EXECUTE]; /* by the stage that made them */
};

/* The functions; static. */
const ax_ffi_api *ax_ffi_functions(void);
/* Never NULL: where there is no memory it is an error that says so. */
ax_ffi_error *ax_ffi_error_make(int code, const char *message);
void ax_ffi_error_end(ax_ffi_error *error);
const char *ax_ffi_code_name(int code);
ax_status ax_ffi_status_of(int code);
/* Waits until the future is set, and ends it. NULL: it succeeded. */
ax_ffi_error *ax_ffi_future_wait(ax_ffi_future *future);
/* Ends a future that nothing waits for: at once if it is set, else when it is. */
void ax_ffi_future_abandon(ax_ffi_future *future);
void ax_ffi_state_end(ax_ffi_state_slot *slot);

#endif
