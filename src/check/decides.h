/* Finds the values that decide the acts of kernels: their addresses, devices, amounts, predicates, masks and control flow; and those
   that flow into what kernels store. */
#ifndef AX_CHECK_DECIDES_H
#define AX_CHECK_DECIDES_H

#include "kernel/machine/machine.h"

/* What a value may have to do with; several at once. */
enum {
  AX_DECIDES_ACTS = 1,    /* with the acts of kernels, or with which kernels are reached */
  AX_DECIDES_RESULTS = 2, /* with the values that kernels store, or copy */
  AX_DECIDES_LOOPS = 4    /* with loops and branches of the program, also those without kernels: how long it runs */
};

/* operands: by operand of the machine's equation, constants among them: ACTS, RESULTS or both, where its content may decide. */
AX_MUST_USE ax_status ax_decides_of_kernel(const ax_machine *machine, uint8_t *operands);

typedef struct ax_decides { /* of a kernel_call that evaluation has reached */
  const ax_eqn *eqn;
  uint8_t *operands; /* as of ax_decides_of_kernel; of RESULTS those that count */
} ax_decides;

/* inputs: by input of the program: what operands of kernels decide that depend on it, and what it decides in the program itself. */
AX_MUST_USE ax_status ax_decides_of_program(const ax_program *program, const ax_decides *kernels, uint32_t kernel_count,
                                            uint8_t *inputs);

#endif
