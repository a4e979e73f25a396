/* Finds the values that decide the acts of kernels: their addresses, devices, amounts, predicates, masks and control flow. */
#ifndef AX_CHECK_DECIDES_H
#define AX_CHECK_DECIDES_H

#include "kernel/machine/machine.h"

/* operands: by operand of the machine's equation, constants among them; set to true where its content may decide. */
AX_MUST_USE ax_status ax_decides_of_kernel(const ax_machine *machine, bool *operands);

typedef struct ax_decides { /* of a kernel_call that evaluation has reached */
  const ax_eqn *eqn;
  bool *operands; /* as of ax_decides_of_kernel */
} ax_decides;

/* inputs: by input of the program; set to true where a deciding operand of a kernel depends on it, or where it decides whether a
   kernel is reached. */
AX_MUST_USE ax_status ax_decides_of_program(const ax_program *program, const ax_decides *kernels, uint32_t kernel_count,
                                            bool *inputs);

#endif
