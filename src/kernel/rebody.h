/* Bodies of kernels made anew: the same equations in another environment, and in the programs they hold. */
#ifndef AX_KERNEL_REBODY_H
#define AX_KERNEL_REBODY_H

#include "kernel/kernel.h"
#include "prim/region.h"

typedef struct ax_rebody {
  const void *context;
  /* The environment in place of another. */
  ax_mesh (*axes)(const void *context, const ax_mesh *was);
  /* Binds the equation, where it is to be another than the same with `params`. False: it is not. */
  bool (*bind)(const void *context, const ax_eqn *eqn, const ax_value *in, ax_value *out);
  /* Changes the parameters, of which these are a copy whose programs are made anew already. */
  void (*params)(const void *context, const ax_eqn *eqn, void *params);
} ax_rebody;

/* The equations in the trace in progress. Where one fails, the trace has. */
void ax_rebody_bind(const ax_rebody *how, const ax_program *program, const ax_value *in, ax_value *out);
/* A program of the same inputs and results. The caller's; NULL on failure. */
AX_MUST_USE ax_status ax_rebody_program(const ax_rebody *how, const ax_program *program, ax_program **out);

#endif
