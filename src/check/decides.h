/* Which values decide what kernels touch and do: addresses, devices, amounts, predicates, masks, and where control flow goes. */
#ifndef AX_CHECK_DECIDES_H
#define AX_CHECK_DECIDES_H

#include "kernel/machine/machine.h"

/* operands: by operand of the machine's equation, constants among them; set to true where what it holds may decide. */
AX_MUST_USE ax_status ax_decides_of_kernel(const ax_machine *machine, bool *operands);

typedef struct ax_decides { /* of a kernel_call that was come to */
  const ax_eqn *eqn;
  bool *operands; /* as of ax_decides_of_kernel */
} ax_decides;

/* inputs: by input of the program; set to true where a kernel's operand that decides follows from it, or whether a kernel is come
   to. */
AX_MUST_USE ax_status ax_decides_of_program(const ax_program *program, const ax_decides *kernels, uint32_t kernel_count,
                                            bool *inputs);

#endif
