/* Reference evaluation of kernels. */
#include "kernel/kernel.h"

ax_status ax_kernel_eval(const ax_eval_args *args) {
  (void)args;
  return ax_error(AX_ABSENT, "kernel_call: kernels are not run yet");
}
